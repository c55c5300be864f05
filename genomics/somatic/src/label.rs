//! The reads that carry interesting k-mers.

use std::cmp::{Ordering, Reverse};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use genuma_kmers::Prepare;
use genuma_reads::packed::Packed as Bases;
use genuma_reads::{Pair, Trimmed, Trimmer};
use serde::{Deserialize, Serialize};

use crate::molecule::{Mates, Molecules, PREFIX, lot};
use crate::packed::{Packed, Read};
use crate::select::{GOOD, Pick, TOGETHER, beyond_errors, beyond_good_errors, by_kmer};
use crate::sought::{KmerHit, Looking, Sought};
use crate::tract;

/// A pair kept because one of its mates carries interesting k-mers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labelled {
    /// Template name.
    pub name: Box<[u8]>,
    /// Which sample it is from.
    pub sample: u8,
    /// The mates.
    pub mates: [Packed; 2],
    /// Interesting k-mers of each mate, in read order.
    pub hits: [Vec<KmerHit>; 2],
}

/// By what pairs of one molecule are told: how their mates begin.
struct Starts {
    sample: u8,
    bases: [[u8; PREFIX]; 2],
    lengths: [u8; 2],
}

impl Starts {
    fn of(pair: &Labelled) -> Starts {
        let (mut bases, mut lengths) = ([[0; PREFIX]; 2], [0; 2]);
        for (i, mate) in pair.mates.iter().enumerate() {
            let start = mate.bases(0..mate.len().min(PREFIX));
            bases[i][..start.len()].copy_from_slice(&start);
            lengths[i] = start.len() as u8;
        }
        Starts { sample: pair.sample, bases, lengths }
    }
}

impl Mates for Starts {
    fn sample(&self) -> u8 {
        self.sample
    }

    fn seqs(&self) -> [&[u8]; 2] {
        [0, 1].map(|i| &self.bases[i][..usize::from(self.lengths[i])])
    }
}

/// Prepares pairs for the count: what is not of the sample's DNA goes, tandem repeats are spelled.
#[derive(Debug)]
pub(crate) struct Spelling {
    k: u32,
    /// One for each sample.
    trimmers: Vec<Trimmer>,
}

impl Spelling {
    /// For `k`-mers of so many samples.
    pub fn new(k: u32, samples: usize) -> Spelling {
        Spelling { k, trimmers: (0..samples).map(|_| Trimmer::default()).collect() }
    }

    /// What was cut off the reads of each sample.
    pub fn trimmed(&self) -> impl Iterator<Item = Trimmed> {
        self.trimmers.iter().map(Trimmer::counts)
    }

    /// The bases of the last pair of a sample, and what was cut behind them.
    pub fn packed(&self, sample: u8) -> [Bases<'_>; 2] {
        self.trimmers[usize::from(sample)].packed()
    }
}

impl Prepare for Spelling {
    fn prepare<'a>(&mut self, pair: Pair<'a>, sample: u8, added: &mut Vec<u8>) -> Pair<'a> {
        let trimmer = &mut self.trimmers[usize::from(sample)];
        let pair = trimmer.trim(pair);
        for (mate, packed) in pair.mates.iter().zip(trimmer.packed()) {
            tract::write(mate.seq, packed, self.k, added);
        }
        pair
    }
}

/// The interesting k-mers of one read, appended to `out` by position; repeats that were spelled come last.
pub fn hits(seq: &[u8], sought: &Sought, looking: &mut Looking, out: &mut Vec<KmerHit>) {
    let packed = sought.find(seq, looking, out);
    tract::for_each(seq, packed, |tract| {
        let hit =
            tract::spell(seq, tract, sought.k()).and_then(|s| sought.rank(s.kmer).map(|rank| (s, rank)));
        out.extend(hit.map(|(s, rank)| KmerHit {
            at: s.at as u32,
            span: s.span as u32,
            rank,
            forward: s.forward,
        }));
    });
}

/// The k-mers of picks, to look for them: ranks are those of the distinct ones.
pub fn sought(k: u32, picks: &[Pick]) -> Sought {
    if picks.windows(2).all(|two| two[0].kmer != two[1].kmer) {
        return Sought::new(k, picks.iter().map(|pick| pick.kmer));
    }
    let distinct: Vec<u64> = by_kmer(picks).map(|same| same[0].kmer).collect();
    Sought::new(k, distinct.iter().copied())
}

/// Finds what is sought in both mates; `found` is overwritten. Says whether there is any.
pub fn search(pair: Pair<'_>, sought: &Sought, looking: &mut Looking, found: &mut [Vec<KmerHit>; 2]) -> bool {
    for (mate, found) in pair.mates.iter().zip(found.iter_mut()) {
        found.clear();
        hits(mate.seq, sought, looking, found);
    }
    found.iter().any(|h| !h.is_empty())
}

impl Labelled {
    /// Copies a pair out of its batch, with what was found in it.
    pub fn keep(pair: Pair<'_>, sample: u8, hits: &[Vec<KmerHit>; 2]) -> Labelled {
        let mates = pair.mates.map(|mate| Packed::from(&Read::keep(mate)));
        Labelled { name: pair.name.into(), sample, mates, hits: hits.clone() }
    }

    /// The order in which pairs are worked on, wherever they come from.
    pub fn by_name(a: &Labelled, b: &Labelled) -> Ordering {
        (&a.name, &a.mates, a.sample).cmp(&(&b.name, &b.mates, b.sample))
    }
}

/// Runs of interesting k-mers longer than this lie in novel sequence, which no single wrong base makes.
const NOVEL_BEYOND_K: u32 = 5;
/// Fewest molecules with a k-mer.
const FEWEST: u32 = 2;
/// Bases at the start of a mate by which copies are brought together.
const START: usize = 8;

impl Labelled {
    /// A number that copies of a molecule have in common, whichever end they are read from, unless the bases that it is made of are wrong in
    /// one of them: those at the start of one mate. Whoever looks for copies among pairs of one number misses a few in a hundred.
    pub fn start(&self) -> u64 {
        let start = |mate: &Packed| lot(&mate.bases(0..mate.len().min(START)));
        self.mates.iter().map(start).min().unwrap_or(0)
    }

    /// Bytes of memory that it takes.
    pub fn resident(&self) -> u64 {
        let hits: usize = self.hits.iter().map(Vec::len).sum();
        let reads: usize = self.mates.iter().map(Packed::bytes).sum();
        (2 * size_of::<Labelled>() + self.name.len() + reads + size_of::<KmerHit>() * hits) as u64
    }
}

/// How many molecules of each tumour have each k-mer that was picked.
#[derive(Debug)]
pub struct Carriers {
    tumours: usize,
    /// By rank and tumour.
    all: Vec<AtomicU32>,
    /// Of them those with good bases where the samples differ.
    good: Vec<AtomicU32>,
}

impl Carriers {
    /// Nobody in so many tumours carries any of so many k-mers yet.
    pub fn none(kmers: usize, tumours: usize) -> Carriers {
        let none = || (0..kmers * tumours).map(|_| AtomicU32::new(0)).collect();
        Carriers { tumours, all: none(), good: none() }
    }

    /// Counts pairs, each a molecule of its own.
    pub fn count(&self, pairs: &[Labelled]) {
        count(&self.all, self.tumours, pairs, |_, _| true);
        // Where samples part they differ in the first base or the last.
        count(&self.good, self.tumours, pairs, |read, hit| {
            let last = hit.at + hit.span - 1;
            [hit.at, last].iter().all(|&at| read.qual(at as usize) >= GOOD)
        });
    }

    /// How many carry a k-mer among the pairs that a rule looks at.
    fn of(&self, carriers: &[AtomicU32], rank: usize, rule: u8) -> u32 {
        let own = &carriers[rank * self.tumours..(rank + 1) * self.tumours];
        match rule {
            TOGETHER => own.iter().map(|n| n.load(Relaxed)).sum(),
            tumour => own[usize::from(tumour) - 1].load(Relaxed),
        }
    }

    /// For each k-mer whether the samples part there by what one of its picks says, where `shares` of the pairs that each rule looks at are molecules of
    /// their own.
    ///
    /// Where a k-mer of a repeat is too seldom for bases of any quality, it counts when enough molecules have good bases there.
    pub fn parting(&self, picks: &[Pick], shares: &[f64]) -> Vec<bool> {
        let parts = |rank: usize, pick: &Pick| {
            let here = f64::from(pick.depth) * shares[usize::from(pick.rule)];
            let beyond = f64::from(self.of(&self.all, rank, pick.rule)) >= beyond_errors(here);
            let good = || f64::from(self.of(&self.good, rank, pick.rule)) >= beyond_good_errors(here);
            pick.parting() && (beyond || (pick.wants_good_bases() && good()))
        };
        by_kmer(picks).enumerate().map(|(rank, same)| same.iter().any(|pick| parts(rank, pick))).collect()
    }
}

/// Counts in how many pairs of each tumour each k-mer is in a way that is `wanted`.
fn count(
    carriers: &[AtomicU32],
    tumours: usize,
    pairs: &[Labelled],
    wanted: impl Fn(&Packed, &KmerHit) -> bool,
) {
    let mut ranks: Vec<u32> = Vec::new();
    for pair in pairs {
        ranks.clear();
        for (read, hits) in pair.mates.iter().zip(&pair.hits) {
            ranks.extend(hits.iter().filter(|hit| wanted(read, hit)).map(|hit| hit.rank));
        }
        ranks.sort_unstable();
        ranks.dedup();
        for &rank in &ranks {
            carriers[rank as usize * tumours + usize::from(pair.sample) - 1].fetch_add(1, Relaxed);
        }
    }
}

/// Takes away the hits that only a recurrent error explains, and the pairs that are left without any. Says how many hits went.
///
/// A change puts k interesting k-mers in a row into a read, or as many as the read holds, and at the inner ends of the
/// row the samples part. A wrong base that several reads have makes the same row, but at its ends it is too seldom for
/// the depth there, which the picking knew and left those ends out (see [`crate::select`]), or which shows when a molecule counts but
/// once. So a row without a parting k-mer is an error, unless it is longer than a wrong base makes it: without a gap, as at great
/// depth every second read has two wrong bases that recur.
pub fn believe(pairs: &mut Vec<Labelled>, carriers: &Carriers, parting: &[bool], k: u32) -> u64 {
    let mut errors = 0;
    for hits in pairs.iter_mut().flat_map(|pair| &mut pair.hits) {
        let before = hits.len();
        hits.retain(|hit| carriers.of(&carriers.all, hit.rank as usize, TOGETHER) >= FEWEST);
        let mut kept = Vec::with_capacity(hits.len());
        for row in hits.chunk_by(|a, b| a.span == k && b.span == k && b.at <= a.at + k) {
            let parts = row.iter().any(|hit| parting[hit.rank as usize]);
            let mut unbroken = row.chunk_by(|a, b| b.at == a.at + 1);
            if parts || unbroken.any(|run| run.len() as u32 > k + NOVEL_BEYOND_K) {
                kept.extend_from_slice(row);
            }
        }
        errors += (before - kept.len()) as u64;
        *hits = kept;
    }
    // What has no hit is in no group: of a large genome most pairs are such, and they are GB.
    pairs.retain(|pair| pair.hits.iter().any(|hits| !hits.is_empty()));
    errors
}

/// Leaves one pair of each molecule: that with the best bases, or the first of equals. They come in order of name and bases.
pub fn molecules(mut labelled: Vec<Labelled>) -> Vec<Labelled> {
    labelled.sort_unstable_by(Labelled::by_name);
    let members: Vec<u32> = (0..labelled.len() as u32).collect();
    let quality = |pair: &Labelled| pair.mates.iter().flat_map(Packed::quals).map(u64::from).sum::<u64>();
    let mut stays = vec![false; labelled.len()];
    let starts: Vec<Starts> = labelled.iter().map(Starts::of).collect();
    for copies in Molecules::among(&members, &starts).groups() {
        if let [one] = copies[..] {
            stays[one as usize] = true;
            continue;
        }
        let best = copies.into_iter().min_by_key(|&p| (Reverse(quality(&labelled[p as usize])), p));
        best.into_iter().for_each(|p| stays[p as usize] = true);
    }
    drop(starts);
    let mut stays = stays.into_iter();
    labelled.retain(|_| stays.next().unwrap_or(false));
    labelled
}
