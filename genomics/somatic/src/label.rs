//! The reads that carry interesting k-mers.

use std::cmp::Reverse;

use genuma_kmers::Prepare;
use genuma_reads::{Pair, Trimmed, Trimmer};

use crate::molecule::{Mates, Molecules, PREFIX};
use crate::packed::{Packed, Read};
use crate::select::{GOOD, Pick, beyond_errors, beyond_good_errors};
use crate::sought::{KmerHit, Looking, Sought};
use crate::tract;

/// A pair kept because one of its mates carries interesting k-mers.
#[derive(Debug, Clone, PartialEq, Eq)]
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
pub struct Spelling {
    k: u32,
    /// One for each sample.
    trimmers: [Trimmer; 2],
}

impl Spelling {
    /// For `k`-mers.
    pub fn new(k: u32) -> Spelling {
        Spelling { k, trimmers: Default::default() }
    }

    /// What was cut off the reads of each sample.
    pub fn trimmed(&self) -> [Trimmed; 2] {
        self.trimmers.each_ref().map(Trimmer::counts)
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
}

/// Labelled pairs of which each is a molecule of its own and has a k-mer that is believed.
#[derive(Debug)]
pub struct Believed {
    /// The pairs.
    pub pairs: Vec<Labelled>,
    /// For each pick, whether the samples part there.
    pub parting: Vec<bool>,
    /// PCR copies left out.
    pub copies: u64,
    /// k-mers in reads left out, of errors that recur.
    pub errors: u64,
}

/// Runs of interesting k-mers longer than this lie in novel sequence, which no single wrong base makes.
const NOVEL_BEYOND_K: u32 = 5;
/// Fewest molecules with a k-mer.
const FEWEST: u32 = 2;

/// Leaves one pair of each molecule, the one with the best bases, and takes away the hits that only a recurrent error explains.
///
/// A change puts k interesting k-mers in a row into a read, or as many as the read holds, and at the inner ends of the
/// row the samples part. A wrong base that several reads have makes the same row, but at its ends it is too seldom for
/// the depth there, which the picking knew and left those ends out (see [`crate::select`]), or which shows when a molecule counts but
/// once. So a row without a parting k-mer is an error, unless it is longer than a wrong base makes it: without a gap, as at great
/// depth every second read has two wrong bases that recur. Where a k-mer of a repeat is too seldom for bases of any quality, it counts when
/// enough molecules have good bases there.
pub fn believe(labelled: Vec<Labelled>, picks: &[Pick], k: u32) -> Believed {
    let all = labelled.len();
    let mut pairs = without_copies(labelled);
    let share = pairs.len() as f64 / all.max(1) as f64;
    let carriers = carriers_of(&pairs, picks.len(), |_, _| true);
    // Where samples part they differ in the first base or the last.
    let good = carriers_of(&pairs, picks.len(), |read, hit| {
        let last = hit.at + hit.span - 1;
        [hit.at, last].iter().all(|&at| read.qual(at as usize) >= GOOD)
    });
    let parts = |rank: usize| {
        let pick = &picks[rank];
        let here = f64::from(pick.depth) * share;
        let beyond = f64::from(carriers[rank]) >= beyond_errors(here);
        let repeat = || pick.wants_good_bases() && f64::from(good[rank]) >= beyond_good_errors(here);
        pick.parting() && (beyond || repeat())
    };
    let parting: Vec<bool> = (0..picks.len()).map(parts).collect();
    let mut errors = 0;
    for hits in pairs.iter_mut().flat_map(|pair| &mut pair.hits) {
        let before = hits.len();
        hits.retain(|hit| carriers[hit.rank as usize] >= FEWEST);
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
    let unique = pairs.len();
    // What has no hit is in no group: of a large genome most pairs are such, and they are GB.
    pairs.retain(|pair| pair.hits.iter().any(|hits| !hits.is_empty()));
    Believed { copies: (all - unique) as u64, pairs, parting, errors }
}

/// How many pairs have each of so many k-mers in a way that is `wanted`.
fn carriers_of(pairs: &[Labelled], picks: usize, wanted: impl Fn(&Packed, &KmerHit) -> bool) -> Vec<u32> {
    let mut carriers = vec![0u32; picks];
    let mut ranks: Vec<u32> = Vec::new();
    for pair in pairs {
        ranks.clear();
        for (read, hits) in pair.mates.iter().zip(&pair.hits) {
            ranks.extend(hits.iter().filter(|hit| wanted(read, hit)).map(|hit| hit.rank));
        }
        ranks.sort_unstable();
        ranks.dedup();
        ranks.iter().for_each(|&rank| carriers[rank as usize] += 1);
    }
    carriers
}

/// One pair of each molecule: that with the best bases, or the first of equals.
fn without_copies(mut labelled: Vec<Labelled>) -> Vec<Labelled> {
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
