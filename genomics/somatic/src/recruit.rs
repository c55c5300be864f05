//! Third pass over both samples: every pair that overlaps a change, whichever allele it has.
//!
//! A contig's shared k-mers next to its novel stretch stand in both alleles; its novel k-mers stand in the tumour's
//! only, those across the undone change in the normal's. Pairs that carry any of them are kept for the contig, if the
//! k-mer stands but once in the genome: what else stands in many places is told by the genome, not by how often it is
//! read, so that an amplified place keeps its reads. In a repeat, where no k-mer near the change is unique, those
//! further off are taken: the pair is known by one mate and the other mate is weighed.
//!
//! A place of extreme depth is thinned: of its pairs a half, a quarter, an eighth is kept, chosen by their names, the
//! same half whatever the order of reads.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

use genuma_kmers::encode::kmers;
use genuma_reads::fasta::Reference;
use genuma_reads::{NORMAL, Pair};
use genuma_work::parallel::in_order;
use serde::{Deserialize, Serialize};

use crate::compare::Compared;
use crate::molecule::{Mates, lot};
use crate::packed::Read;
use crate::sought::{KmerHit, Looking, Sought};

/// Shared k-mers are taken from this many bases beyond the novel stretch.
const REACH: usize = 40;
/// Only one k-mer in so many recruits: a read that covers the change has several all the same.
const STRIDE: usize = 4;
/// Where the change lies in a repeat: how far off a k-mer may lie by which a mate is known, and one in how many is taken.
const FAR: usize = 450;
const FAR_STRIDE: usize = 16;
/// Unique k-mers beside a change, on each side, that make it unnecessary to look further off.
const ENOUGH: usize = 3;
/// Pairs of a sample with one k-mer from which a place is thinned.
const DEEP: u32 = 4096;
/// Contigs that a thread takes at once.
const BLOCK: usize = 256;
/// Copies of a repeat beyond which a change in it is not followed where no k-mer beside it has fewer: whatever reads say,
/// it fits all of them. Places of a k-mer are counted up to one more.
const FAMILY: u8 = 32;

/// Where a recruiting k-mer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Site {
    rank: u32,
    contig: u32,
}

/// The recruiting k-mers of all contigs.
#[derive(Debug, Serialize, Deserialize)]
pub struct Wanted {
    /// Length of the k-mers.
    k: u32,
    /// Distinct and ascending; their places here are their ranks.
    kmers: Vec<u64>,
    /// Sorted by rank.
    sites: Vec<Site>,
    /// Of each rank the first of its sites, and one more.
    starts: Vec<u32>,
    /// Whether it is known that all of them stand once in the genome.
    unique: bool,
    /// Contigs without a k-mer of their own.
    pub(crate) nowhere_unique: u64,
    /// Which of the contigs were left out, ascending: in repeats of so many copies that they have no k-mer that stands in few places.
    pub families: Vec<u32>,
}

/// The same, to look with.
#[derive(Debug)]
pub struct Index {
    sought: Sought,
    /// Sorted by rank.
    sites: Vec<Site>,
    /// Of each rank the first of its sites, and one more.
    starts: Vec<u32>,
    /// Whether it is known that all of them stand once in the genome.
    unique: bool,
}

/// How often each recruiting k-mer was met in each sample, counted by all threads.
#[derive(Debug)]
pub struct Seen {
    samples: usize,
    /// By rank and sample.
    counts: Vec<AtomicU32>,
}

impl Seen {
    /// Nothing met yet in so many samples.
    pub fn new(index: &Index, samples: usize) -> Seen {
        let kmers = index.starts.len().saturating_sub(1);
        Seen { samples, counts: (0..kmers * samples).map(|_| AtomicU32::new(0)).collect() }
    }

    /// How often each was met in each sample, as long as nobody counts.
    pub fn counts(&self) -> Vec<u32> {
        self.counts.iter().map(|seen| seen.load(Relaxed)).collect()
    }

    /// Adds what others have counted of the same k-mers. False when there are not as many.
    pub fn add(&self, counts: &[u32]) -> bool {
        for (seen, &n) in self.counts.iter().zip(counts) {
            seen.fetch_add(n, Relaxed);
        }
        self.counts.len() == counts.len()
    }

    /// Meets a k-mer once more, and says how often it was met before.
    fn meet(&self, rank: u32, sample: u8) -> u32 {
        self.counts[rank as usize * self.samples + usize::from(sample)].fetch_add(1, Relaxed)
    }
}

/// A pair kept for some contigs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Which sample it is from.
    pub sample: u8,
    /// Template name.
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    /// The mates.
    pub mates: [Read; 2],
    /// Told apart from all others by it.
    pub id: u64,
    /// The contigs.
    pub contigs: Vec<u32>,
}

impl Kept {
    /// Those of the normal first, those of all tumours by name and bases: which of them comes first does not show.
    fn rank(&self) -> impl Ord + '_ {
        let Kept { sample, name, mates, id, contigs } = self;
        (*sample != NORMAL, name, mates, *sample, *id, contigs)
    }
}

impl Ord for Kept {
    fn cmp(&self, other: &Kept) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Kept {
    fn partial_cmp(&self, other: &Kept) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Mates for Kept {
    fn sample(&self) -> u8 {
        self.sample
    }

    fn seqs(&self) -> [&[u8]; 2] {
        self.mates.each_ref().map(|mate| &mate.seq[..])
    }
}

/// How deep places are, when all reads were seen.
#[derive(Debug)]
pub struct Deep {
    samples: usize,
    /// Of each recruiting k-mer, by sample.
    kmers: Vec<u32>,
    /// Of each contig, by sample.
    contigs: Vec<u32>,
}

impl Deep {
    /// For each contig: one pair in so many is kept of the normal, and of the deepest tumour.
    pub fn thinned(&self) -> Vec<[u32; 2]> {
        let of_contig = |depth: &[u32]| {
            let (normal, tumours) = depth.split_at(1);
            [normal, tumours].map(|of| 1 << of.iter().map(|&n| level(n)).max().unwrap_or(0))
        };
        self.contigs.chunks(self.samples).map(of_contig).collect()
    }
}

/// A candidate for recruiting.
struct Candidate {
    kmer: u64,
    /// Bases between it and the change; 0 when it is near.
    off: u32,
    /// Whether it lies before the change.
    before: bool,
    /// Whether it holds changed bases: then it stands nowhere in the genome, or it is another place's.
    changed: bool,
}

/// The k-mers by which pairs are recruited for a contig.
#[derive(Clone)]
struct Chosen {
    kmers: Vec<u64>,
    /// Whether none of them stands where it should alone.
    common: bool,
}

impl Chosen {
    /// Chooses from its candidates, of which `copies` says in how many places of the genome they stand, if there is one.
    fn of(own: &[Candidate], copies: impl Fn(&Candidate) -> Option<u8>) -> Chosen {
        // The tumour's own stand nowhere in the genome, the others once.
        let fits = |c: &Candidate| copies(c).is_none_or(|copies| copies == u8::from(!c.changed));
        let (mut chosen, mut shared): (Vec<&Candidate>, Vec<&Candidate>) =
            own.iter().filter(|c| c.off == 0 && fits(c)).partition(|c| c.changed);
        let beside = |before: bool| shared.iter().filter(|c| c.before == before).count();
        if beside(true) < ENOUGH && beside(false) < ENOUGH {
            // Inside a repeat the tumour's own k-mers may be errors in any of its copies: only what stands here alone tells.
            chosen.clear();
        }
        for before in [true, false] {
            let beside = shared.iter().filter(|c| c.before == before).count();
            if beside < ENOUGH {
                shared.extend(own.iter().filter(|c| c.off > 0 && c.before == before && fits(c)));
            }
        }
        chosen.append(&mut shared);
        let common = chosen.is_empty() && !own.is_empty();
        if common {
            // A repeat as long as fragments are: all that is left is to take its copies together.
            let few = |c: &Candidate| copies(c).is_none_or(|copies| copies <= FAMILY);
            chosen.extend(own.iter().filter(|c| c.off == 0 && few(c)));
            if chosen.iter().all(|c| c.changed) {
                // What the copies share is in too many of them.
                chosen.clear();
            }
        }
        Chosen { kmers: chosen.iter().map(|c| c.kmer).collect(), common }
    }
}

/// Candidates of one contig: beside every change, on the contig and on what the normal has there.
fn candidates(contig: &Compared, k: u32) -> Vec<Candidate> {
    let mut out = Vec::new();
    let novel = (0..contig.novel.len()).filter(|&at| contig.novel[at]);
    let changed = contig.findings.iter().flat_map(|f| [f.at.start, f.at.end]);
    let places: Vec<usize> = novel.chain(changed).collect();
    let (Some(&start), Some(&end)) = (places.iter().min(), places.iter().max()) else { return out };
    let changed: Vec<_> = contig.findings.iter().map(|f| f.at.start..f.at.end).collect();
    let mut take = |seq: &[u8], start: usize, end: usize, changed: &[std::ops::Range<usize>]| {
        let window = start.saturating_sub(FAR)..(end + FAR).min(seq.len());
        if window.start >= window.end {
            return;
        }
        for (at, kmer) in kmers(&seq[window.clone()], k).map(|(at, kmer)| (at + window.start, kmer)) {
            let to = at + k as usize;
            let near = at + REACH >= start && to <= end + REACH;
            let stride = if near { STRIDE } else { FAR_STRIDE };
            if at % stride != 0 || kmer.forward == kmer.reverse {
                continue;
            }
            let before = to <= start;
            let off = if before { start - to } else { at.saturating_sub(end) };
            let off = if near { 0 } else { off as u32 + 1 };
            // Where bases are gone the k-mer has to reach over the place.
            let holds = |r: &std::ops::Range<usize>| at < r.end.max(r.start) && to > r.start;
            out.push(Candidate {
                kmer: kmer.canonical(),
                off,
                before: at + k as usize / 2 < usize::midpoint(start, end),
                changed: changed.iter().any(holds),
            });
        }
    };
    take(&contig.seq, start, end, &changed);
    for f in &contig.findings {
        let right = usize::try_from(f.at.end as i32 + f.right_shift).unwrap_or(0);
        // Only what crosses the change: the rest stands on the contig.
        for (normal, from, to) in [(&f.left_normal, f.at.start, f.at.start), (&f.right_normal, right, right)]
        {
            let reach = from.saturating_sub(k as usize - 1)..(to + k as usize - 1).min(normal.len());
            if reach.start < reach.end {
                take(&normal[reach.clone()], from - reach.start, to - reach.start, &[]);
            }
        }
    }
    out
}

impl Wanted {
    /// Indexes the novel stretches of `contigs` and their surroundings, and leaves those of them that have reads to be looked for. `genome`
    /// tells which k-mers stand in several places; without one all are taken.
    pub fn among(contigs: &mut Vec<Compared>, k: u32, genome: Option<&Reference>, threads: usize) -> Wanted {
        // Of a large genome candidates are GB: they are made twice, and only their k-mers are held meanwhile.
        let each = |c: usize| candidates(&contigs[c], k);
        let blocks = contigs.len().div_ceil(BLOCK);
        let block = |b: usize| b * BLOCK..((b + 1) * BLOCK).min(contigs.len());
        let distinct = |(): &mut (), b: usize| {
            let mut kmers: Vec<u64> = block(b).flat_map(each).map(|c| c.kmer).collect();
            kmers.sort_unstable();
            kmers.dedup();
            kmers
        };
        let mut distinct: Vec<u64> = in_order(blocks, threads, || (), distinct).concat();
        distinct.sort_unstable();
        distinct.dedup();
        let copies = genome.map(|genome| copies(&distinct, k, genome, threads));
        let copies =
            |c: &Candidate| copies.as_ref().map(|copies| copies[distinct.partition_point(|&d| d < c.kmer)]);
        let chosen = |(): &mut (), b: usize| -> Vec<Chosen> {
            block(b).map(|c| Chosen::of(&each(c), copies)).collect()
        };
        let chosen = in_order(blocks, threads, || (), chosen).concat();
        let mut entries = Vec::new();
        let (mut number, mut nowhere_unique, mut families) = (0, 0, Vec::new());
        for (c, Chosen { kmers, common }) in (0..).zip(&chosen) {
            nowhere_unique += u64::from(*common);
            if *common && kmers.is_empty() && genome.is_some() {
                families.push(c);
            } else {
                entries.extend(kmers.iter().map(|&kmer| (kmer, number)));
                number += 1;
            }
        }
        drop((distinct, chosen));
        let mut c = 0;
        contigs.retain(|_| {
            c += 1;
            families.binary_search(&(c - 1)).is_err()
        });
        entries.sort_unstable();
        entries.dedup();
        let (mut kmers, mut sites, mut starts) = (Vec::new(), Vec::with_capacity(entries.len()), Vec::new());
        for (kmer, contig) in entries {
            if kmers.last() != Some(&kmer) {
                kmers.push(kmer);
                starts.push(sites.len() as u32);
            }
            sites.push(Site { rank: kmers.len() as u32 - 1, contig });
        }
        starts.push(sites.len() as u32);
        Wanted { k, kmers, sites, starts, unique: genome.is_some(), nowhere_unique, families }
    }
}

impl Index {
    /// To look for what is wanted.
    pub fn of(wanted: Wanted) -> Index {
        let Wanted { k, kmers, sites, starts, unique, .. } = wanted;
        Index { sought: Sought::new(k, kmers.into_iter()), sites, starts, unique }
    }

    /// Whether a mate carries a recruiting k-mer.
    pub(crate) fn may_recruit(&self, pair: Pair<'_>, looking: &mut Looking, hits: &mut Vec<KmerHit>) -> bool {
        hits.clear();
        pair.mates.iter().any(|mate| {
            self.sought.find(mate.seq, looking, hits);
            !hits.is_empty()
        })
    }

    /// Keeps the pair if a mate carries a recruiting k-mer, for every contig that has it.
    pub fn recruit(
        &self,
        pair: Pair<'_>,
        sample: u8,
        seen: &Seen,
        looking: &mut Looking,
        hits: &mut Vec<KmerHit>,
    ) -> Option<Kept> {
        hits.clear();
        for mate in pair.mates {
            self.sought.find(mate.seq, looking, hits);
        }
        if hits.is_empty() {
            return None;
        }
        hits.sort_unstable_by_key(|h| h.rank);
        hits.dedup_by_key(|h| h.rank);
        let lot = lot(pair.name);
        let mut contigs = Vec::new();
        for hit in hits.iter() {
            let before = seen.meet(hit.rank, sample);
            // Thinning only ever becomes stricter: who is kept at the end was kept before.
            if drawn(lot, before) {
                contigs.extend(self.sites_of(hit.rank).iter().map(|s| s.contig));
            }
        }
        if contigs.is_empty() {
            return None;
        }
        contigs.sort_unstable();
        contigs.dedup();
        Some(Kept { sample, name: pair.name.to_vec(), mates: pair.mates.map(Read::keep), id: 0, contigs })
    }

    /// What a thread needs to look for the k-mers.
    pub fn looking(&self) -> Looking {
        self.sought.looking()
    }

    /// How deep the places of so many contigs are.
    pub fn deep(&self, seen: &Seen, contigs: usize) -> Deep {
        let (samples, kmers) = (seen.samples, seen.counts());
        Deep { samples, contigs: self.depth(&kmers, samples, contigs), kmers }
    }

    /// Leaves a pair those of its contigs, ascending, that keep it when all their pairs are thinned alike.
    pub fn thin(&self, pair: &mut Kept, deep: &Deep, looking: &mut Looking, hits: &mut Vec<KmerHit>) {
        let (lot, sample) = (lot(&pair.name), usize::from(pair.sample));
        hits.clear();
        for mate in &pair.mates {
            self.sought.find(&mate.seq, looking, hits);
        }
        pair.contigs.clear();
        for hit in hits {
            let own = deep.kmers[hit.rank as usize * deep.samples + sample];
            let depth = |c: u32| deep.contigs[c as usize * deep.samples + sample];
            let sites = self.sites_of(hit.rank).iter().map(|s| s.contig);
            pair.contigs.extend(sites.filter(|&c| drawn(lot, own.max(depth(c)))));
        }
        pair.contigs.sort_unstable();
        pair.contigs.dedup();
    }

    /// Pairs of each contig in each sample, by its k-mers: the most that one of them was met with, as all are unique. Where it is not known
    /// which are, the median, as a repeat among them says nothing of the place.
    fn depth(&self, seen: &[u32], samples: usize, contigs: usize) -> Vec<u32> {
        let mut all: Vec<Vec<u32>> = vec![Vec::new(); contigs * samples];
        for site in &self.sites {
            let (own, seen) = (site.contig as usize * samples, &seen[site.rank as usize * samples..]);
            for (all, &seen) in all[own..own + samples].iter_mut().zip(seen) {
                all.push(seen);
            }
        }
        let told = |mut counts: Vec<u32>| {
            counts.sort_unstable();
            let at = if self.unique { counts.len().saturating_sub(1) } else { counts.len() / 2 };
            counts.get(at).copied().unwrap_or(0)
        };
        all.into_iter().map(told).collect()
    }

    fn sites_of(&self, rank: u32) -> &[Site] {
        &self.sites[self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize]
    }
}

/// How often a place with so many pairs is halved.
fn level(pairs: u32) -> u32 {
    (pairs / DEEP).checked_ilog2().map_or(0, |l| l + 1)
}

/// Whether a pair stays at a place with so many pairs.
fn drawn(lot: u64, pairs: u32) -> bool {
    lot.leading_zeros() >= level(pairs)
}

/// How often each of the sorted `distinct` k-mers stands in the genome, on either strand; no further than one more than [`FAMILY`].
fn copies(distinct: &[u64], k: u32, genome: &Reference, threads: usize) -> Vec<u8> {
    const PIECE: usize = 1 << 20;
    let sought = Sought::new(k, distinct.iter().copied());
    let pieces: Vec<&[u8]> = genome
        .contigs
        .iter()
        .flat_map(|c| {
            (0..c.seq.len())
                .step_by(PIECE)
                .map(|at| &c.seq[at..(at + PIECE + k as usize - 1).min(c.seq.len())])
        })
        .collect();
    let copies: Vec<AtomicU8> = distinct.iter().map(|_| AtomicU8::new(0)).collect();
    let count = |(looking, hits): &mut (Looking, Vec<KmerHit>), i: usize| {
        hits.clear();
        sought.find(pieces[i], looking, hits);
        for hit in hits {
            let more = |n: u8| (n <= FAMILY).then_some(n + 1);
            // What stands in more places stays as it is.
            let _ = copies[hit.rank as usize].fetch_update(Relaxed, Relaxed, more);
        }
    };
    in_order(pieces.len(), threads, || (sought.looking(), Vec::new()), count);
    copies.into_iter().map(AtomicU8::into_inner).collect()
}

#[cfg(test)]
mod tests {
    use genuma_reads::fasta::Contig;

    use super::*;
    use crate::change::Change;
    use crate::compare::Finding;

    fn bases(n: usize, dice: &mut u64) -> Vec<u8> {
        let mut next = || {
            *dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(*dice >> 62) as usize]
        };
        (0..n).map(|_| next()).collect()
    }

    /// The contig of 300 bases from `from` on with its middle changed.
    fn contig(genome: &[u8], from: usize) -> Compared {
        let normal = genome[from..from + 300].to_vec();
        let mut seq = normal.clone();
        seq[150] = if seq[150] == b'A' { b'C' } else { b'A' };
        let (reference, alternative) = (vec![normal[150]], vec![seq[150]]);
        Compared {
            novel: (0..300).map(|at| (120..181).contains(&at)).collect(),
            weight: vec![74; 300],
            assembled: 0..300,
            depth: 4,
            findings: vec![Finding {
                change: Change::Allele { chrom: 0, pos: from + 150, reference, alternative },
                at: 150..151,
                left_normal: normal.clone(),
                right_normal: normal,
                right_shift: 0,
                mapq: 0,
            }],
            diagonals: [None; 2],
            seq,
        }
    }

    #[test]
    fn no_reads_are_looked_for_where_too_many_copies_are_alike() {
        let mut dice = 5;
        let [few, many] = [0; 2].map(|_| bases(1_200, &mut dice));
        let mut genome = bases(2_000, &mut dice);
        let mut add = |copy: &[u8], times: u8| {
            let at = genome.len();
            (0..times).for_each(|_| genome.extend(copy.iter().copied().chain(bases(50, &mut dice))));
            at
        };
        let (few, many) = (add(&few, FAMILY), add(&many, FAMILY + 1));
        let all = [500, many + 450, few + 450].map(|from| contig(&genome, from));
        let reference = Reference::from_contigs(vec![Contig { name: "one".into(), seq: genome.clone() }]);
        let mut contigs = all.to_vec();
        let wanted = Wanted::among(&mut contigs, 31, Some(&reference), 2);
        assert_eq!((wanted.families.as_slice(), wanted.nowhere_unique), (&[1][..], 2));
        let index = Index::of(wanted);
        assert_eq!(contigs, [all[0].clone(), all[2].clone()]);
        let mut hits = Vec::new();
        let mut contigs_of = |from: usize| {
            let seq = &genome[from..from + 150];
            let pair = Pair { name: b"p", mates: [genuma_reads::Mate { seq, qual: seq }; 2] };
            let (mut looking, seen) = (index.looking(), Seen::new(&index, 2));
            index.recruit(pair, 0, &seen, &mut looking, &mut hits).map(|kept| kept.contigs)
        };
        assert_eq!([550, many + 520, few + 520].map(&mut contigs_of), [Some(vec![0]), None, Some(vec![1])]);
        // Another of its copies.
        assert_eq!(contigs_of(few + 1_250 + 520), Some(vec![1]));
        let mut without = all.to_vec();
        let index = Wanted::among(&mut without, 31, None, 2);
        assert_eq!((without.len(), index.families.len()), (3, 0));
    }
}
