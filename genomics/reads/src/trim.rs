//! Trimming of read ends that are not sequence of the sample: adapters after short fragments, tails of failed
//! quality, and poly-G tails, which two-colour sequencers write where they detect no light.
//!
//! If a fragment is shorter than its reads, the part of each mate before the adapter is the reverse complement of that
//! of the other mate. This overlap gives the exact length of the fragment, whatever the adapter. Known adapters are
//! searched for as well, because low-quality mates may differ too much to show the overlap. Nothing is removed from
//! the start or the middle of a read.

use genuma_machine::simd_and_prefetch::run_with_widest_simd;
use serde::{Deserialize, Serialize};

use crate::dna;
use crate::packed_bases::{CodesAndPackedBases, PackedBases, WORD_BASES, reverse_complement_16_bases};
use crate::pair_batch::{Mate, ReadPair};

/// Length in bases of the seeds (exact matches) by which the overlap of two mates is found.
const SEED_BASES: usize = 16;
/// Maximum number of bases after the end of a fragment that are removed even if they are not similar to a known
/// adapter.
const MAX_UNKNOWN_TAIL_BASES: usize = 8;
/// Number of bases at the start of a known adapter that must match exactly.
const ADAPTER_PREFIX_BASES: usize = 12;
/// Number of bases of a known adapter that are compared to verify a match.
const ADAPTER_BASES: usize = 20;
/// Minimum length of a poly-G tail in bases. In a genome, runs of this length are rare, particularly at the very end
/// of a read.
const MIN_POLY_G_BASES: usize = 12;
/// Quality byte up to which a base counts as failed: Phred 2, which Illumina writes for failed tails.
const MAX_FAILED_QUALITY: u8 = b'#';

/// The first 20 bases of common adapters: Illumina TruSeq (both mates), Nextera (both mates), MGI read 1 and read 2,
/// and Illumina small RNA.
const ADAPTERS: [&[u8; ADAPTER_BASES]; 6] = [
    b"AGATCGGAAGAGCACACGTC",
    b"AGATCGGAAGAGCGTCGTGT",
    b"CTGTCTCTTATACACATCTC",
    b"AAGTCGGAGGCCAAGCGGTC",
    b"AAGTCGGATCGTAGCCATGT",
    b"TGGAATTCTCGGGTGCCAAG",
];

/// Counts of trimming: pairs that were processed, bases that were removed, by reason, and fold-back reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimCounts {
    /// Number of pairs that were processed.
    pub pairs: u64,
    /// Number of pairs that have adapter sequence, because the fragment is shorter than a read.
    pub pairs_with_adapter: u64,
    /// Number of bases removed as adapter: those after the end of the fragment.
    pub adapter_bases: u64,
    /// Number of bases removed as tails of failed quality (Phred 2 or less).
    pub low_quality_bases: u64,
    /// Number of bases removed as poly-G tails.
    pub poly_g_bases: u64,
    /// Number of fold-back reads: mates whose end is the reverse complement of an earlier part. They are not trimmed.
    pub fold_back_mates: u64,
    /// Bit set by which the different fold-back sites are counted: the bases at the turning point of each fold-back
    /// read are hashed, and the bit of the hash value is set.
    pub fold_back_turns: [u64; FOLD_BACK_HASHES / 64],
}

/// Number of hash values, and of bits, for the bases at the turning points of fold-back reads.
const FOLD_BACK_HASHES: usize = 1024;
/// Minimum number of unset bits for an estimate of the number of fold-back sites. Chosen: the standard deviation of
/// the estimate is then a tenth of the estimate.
const MIN_UNUSED_HASHES: u32 = 16;

impl TrimCounts {
    /// Adds the counts of another trimmer.
    pub fn merge_counts(&mut self, other: &TrimCounts) {
        self.pairs += other.pairs;
        self.pairs_with_adapter += other.pairs_with_adapter;
        self.adapter_bases += other.adapter_bases;
        self.low_quality_bases += other.low_quality_bases;
        self.poly_g_bases += other.poly_g_bases;
        self.fold_back_mates += other.fold_back_mates;
        for (turns, more) in self.fold_back_turns.iter_mut().zip(other.fold_back_turns) {
            *turns |= more;
        }
    }

    /// Estimated number of fold-back sites: different sequences at the turning points of fold-back reads (linear
    /// counting, Whang et al. 1990). A hairpin of the genome is one site however deep it is sequenced, but artefacts
    /// of a library are all at different sites. The estimate is at most the number of fold-back
    /// reads, and equals it if there are too many sites for linear counting.
    pub fn estimate_fold_back_sites(&self) -> f64 {
        let unused: u32 = self.fold_back_turns.iter().map(|turns| turns.count_zeros()).sum();
        let reads = self.fold_back_mates as f64;
        if unused < MIN_UNUSED_HASHES {
            return reads;
        }
        let hashes = FOLD_BACK_HASHES as f64;
        (hashes * (hashes / f64::from(unused)).ln()).min(reads)
    }

    /// Estimated number of fold-back sites divided by the number of mates (see
    /// [`TrimCounts::estimate_fold_back_sites`]).
    pub fn estimate_fold_back_sites_per_mate(&self) -> f64 {
        self.estimate_fold_back_sites() / (2 * self.pairs).max(1) as f64
    }

    /// Total number of bases that trimming has removed.
    pub fn num_trimmed_bases(&self) -> u64 {
        self.adapter_bases + self.low_quality_bases + self.poly_g_bases
    }
}

/// Trims read pairs and counts what is removed. The memory is reused for all pairs.
#[derive(Debug, Default)]
pub struct Trimmer {
    counts: TrimCounts,
    reads: [CodesAndPackedBases; 2],
}

fn truncate_mate(mate: Mate<'_>, len: usize) -> Mate<'_> {
    Mate { seq: &mate.seq[..len], qual: &mate.qual[..len] }
}

/// Number of bases of a mate before its tail of failed quality.
fn len_before_low_quality_tail(mate: Mate<'_>) -> usize {
    mate.qual.iter().rposition(|&q| q > MAX_FAILED_QUALITY).map_or(0, |last| last + 1)
}

/// Number of bases of a read before its poly-G tail: a run of G at the end, of which one base in eight may differ.
fn len_before_poly_g(seq: &[u8]) -> usize {
    // Score from the end: +1 for G, -7 for other bases. The tail starts where the score is highest; a negative score
    // ends the search.
    let (mut balance, mut best, mut start) = (0i32, 0, seq.len());
    for (at, &base) in seq.iter().enumerate().rev() {
        balance += if base & !0x20 == b'G' { 1 } else { -7 };
        if balance < 0 {
            break;
        }
        if balance > best {
            (best, start) = (balance, at);
        }
    }
    if seq.len() - start >= MIN_POLY_G_BASES { start } else { seq.len() }
}

/// Two-bit codes of the first [`ADAPTER_PREFIX_BASES`] bases of each adapter.
const ADAPTER_PREFIXES: [u32; ADAPTERS.len()] = {
    let mut marks = [0; ADAPTERS.len()];
    let mut i = 0;
    while i < ADAPTERS.len() {
        let mut at = 0;
        while at < ADAPTER_PREFIX_BASES {
            let code = match ADAPTERS[i][at] {
                b'A' => 0,
                b'C' => 1,
                b'G' => 2,
                _ => 3,
            };
            marks[i] = marks[i] << 2 | code;
            at += 1;
        }
        i += 1;
    }
    marks
};

/// Whether two sequences of base codes, compared without gaps, differ in at most one of six positions.
fn is_similar<'a>(a: impl Iterator<Item = &'a u8>, b: impl Iterator<Item = &'a u8>) -> bool {
    let (mut all, mut differing) = (0, 0);
    for (a, b) in a.zip(b) {
        all += 1;
        differing += usize::from(a != b);
    }
    differing * 6 <= all
}

/// Two-bit codes of the [`SEED_BASES`] bases from base `at` on.
#[inline(always)]
fn seed_at(read: PackedBases<'_>, at: usize) -> u32 {
    (read.word_from_base(at) >> (2 * (WORD_BASES - SEED_BASES))) as u32
}

/// Reverse complements of seeds that trimming searches for in a mate: of the start of the other mate (a match shows a
/// short fragment) and of the mate's own end (a match shows a fold-back read).
#[derive(Debug, Clone, Copy)]
struct SeedSearch {
    /// Reverse complements of the first two seeds of the other mate.
    mate_seeds: Option<[u32; 2]>,
    /// Reverse complement of the last seed of the mate itself.
    fold_back_seed: Option<u32>,
}

/// Which seeds may occur in a mate. `false` means that the seed does not occur; `true` must be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SeedHits {
    has_mate_seed: bool,
    has_fold_back_seed: bool,
    has_adapter_prefix: bool,
}

impl SeedSearch {
    fn for_mate(mate: &CodesAndPackedBases, other: &CodesAndPackedBases) -> SeedSearch {
        let bases = mate.codes().len();
        let has_two_seeds = |mate: &CodesAndPackedBases| mate.codes().len() >= 2 * SEED_BASES;
        SeedSearch {
            mate_seeds: has_two_seeds(other)
                .then(|| [0, SEED_BASES].map(|at| reverse_complement_16_bases(seed_at(other.packed_bases(), at)))),
            fold_back_seed: has_two_seeds(mate)
                .then(|| reverse_complement_16_bases(seed_at(mate.packed_bases(), bases - SEED_BASES))),
        }
    }

    /// Searches a mate for the seeds and the adapter prefixes, with the widest vector instructions of the CPU. Seeds
    /// that extend beyond the end of the mate are included.
    fn search(&self, mate: &CodesAndPackedBases) -> SeedHits {
        let mut hits = SeedHits { has_mate_seed: false, has_fold_back_seed: false, has_adapter_prefix: false };
        run_with_widest_simd(
            #[inline(always)]
            || hits = self.search_scalar(mate),
        );
        hits
    }

    /// Like [`SeedSearch::search`], without a choice of vector instructions.
    #[inline(always)]
    fn search_scalar(&self, mate: &CodesAndPackedBases) -> SeedHits {
        let (read, bases) = (mate.packed_bases(), mate.codes().len());
        let [first, second] = self.mate_seeds.unwrap_or_default();
        let fold = self.fold_back_seed.unwrap_or_default();
        // A match is where the XOR is 0. The minimum of each lane needs no branch.
        let [mut seeds, mut folds, mut marks] = [[u32::MAX; WORD_BASES]; 3];
        for at in (0..bases).step_by(WORD_BASES) {
            let words = read.next_32_sixteen_mers(at);
            for i in 0..WORD_BASES {
                seeds[i] = seeds[i].min(words[i] ^ first).min(words[i] ^ second);
                folds[i] = folds[i].min(words[i] ^ fold);
                let mark = words[i] >> (2 * (SEED_BASES - ADAPTER_PREFIX_BASES));
                for prefix in ADAPTER_PREFIXES {
                    marks[i] = marks[i].min(mark ^ prefix);
                }
            }
        }
        let any = |lanes: [u32; WORD_BASES]| lanes.into_iter().fold(u32::MAX, u32::min) == 0;
        SeedHits {
            has_mate_seed: self.mate_seeds.is_some() && any(seeds),
            has_fold_back_seed: self.fold_back_seed.is_some() && any(folds),
            has_adapter_prefix: any(marks),
        }
    }
}

impl Trimmer {
    /// Counts of all pairs that this trimmer has processed so far.
    pub fn counts(&self) -> TrimCounts {
        self.counts
    }

    /// Removes the ends of the mates of `pair` that are not sequence of the fragment: adapters, low-quality tails and
    /// poly-G tails. Returns the remaining pair. A mate may become empty.
    pub fn trim_pair<'a>(&mut self, pair: ReadPair<'a>) -> ReadPair<'a> {
        let counts = &mut self.counts;
        counts.pairs += 1;
        let mut mates = pair.mates;
        for mate in &mut mates {
            let kept_bases = len_before_low_quality_tail(*mate);
            counts.low_quality_bases += (mate.seq.len() - kept_bases) as u64;
            *mate = truncate_mate(*mate, kept_bases);
        }
        for (mate, read) in mates.iter().zip(&mut self.reads) {
            read.encode_bases(mate.seq, mate.qual, 0);
        }
        let [one, two] = &self.reads;
        let searches = [SeedSearch::for_mate(one, two), SeedSearch::for_mate(two, one)];
        let hits = [searches[0].search(one), searches[1].search(two)];
        // Most pairs have no hit: skip the searches for seeds that do not occur.
        let seeds = |i: usize| searches[i].mate_seeds.filter(|_| hits[i].has_mate_seed);
        let by_mates = || {
            let in_two = seeds(1).and_then(|seeds| find_fragment_length(seeds, one, two));
            in_two.or_else(|| seeds(0).and_then(|seeds| find_fragment_length(seeds, two, one)))
        };
        let by_adapter = || {
            let mates = [one, two].into_iter().zip(&hits).filter(|(_, hits)| hits.has_adapter_prefix);
            mates.filter_map(|(mate, _)| find_adapter(mate)).min()
        };
        for (i, read) in self.reads.iter().enumerate() {
            let fold = searches[i].fold_back_seed.filter(|_| hits[i].has_fold_back_seed);
            if let Some(turn) = fold.and_then(|seed| find_fold_back(seed, read)) {
                counts.fold_back_mates += 1;
                let hash = hash_of_turn(turn);
                counts.fold_back_turns[hash / 64] |= 1 << (hash % 64);
            }
        }
        if let Some(fragment) = by_mates().or_else(by_adapter) {
            counts.pairs_with_adapter += 1;
            for mate in &mut mates {
                let kept_bases = mate.seq.len().min(fragment);
                counts.adapter_bases += (mate.seq.len() - kept_bases) as u64;
                *mate = truncate_mate(*mate, kept_bases);
            }
        }
        for mate in &mut mates {
            let kept_bases = len_before_poly_g(mate.seq);
            counts.poly_g_bases += (mate.seq.len() - kept_bases) as u64;
            *mate = truncate_mate(*mate, kept_bases);
        }
        ReadPair { mates, ..pair }
    }

    /// The bases of the last trimmed pair, packed: without low-quality tails, but with adapters and poly-G tails.
    pub fn packed_mates_before_adapter_trimming(&self) -> [PackedBases<'_>; 2] {
        self.reads.each_ref().map(CodesAndPackedBases::packed_bases)
    }
}

/// Finds the length of a fragment that ends inside a mate: searches `read` for the reverse complements of the first
/// two seeds of its `mate` and verifies the overlap.
fn find_fragment_length(seeds: [u32; 2], mate: &CodesAndPackedBases, read: &CodesAndPackedBases) -> Option<usize> {
    let starts = 0..(read.codes().len() + 1).saturating_sub(SEED_BASES);
    starts.into_iter().find_map(|at| {
        let here = seed_at(read.packed_bases(), at);
        let mut fragments = (1..).zip(seeds).filter(|(_, seed)| here == *seed).map(|(i, _)| at + i * SEED_BASES);
        fragments.find(|&fragment| is_fragment(mate.codes(), read.codes(), fragment))
    })
}

/// Whether both mates show a fragment of `fragment` bases that is followed by adapters.
fn is_fragment(one: &[u8], two: &[u8], fragment: usize) -> bool {
    if fragment >= one.len().max(two.len()) {
        return false;
    }
    // Base i of one mate is opposite to base fragment - 1 - i of the other.
    let first = fragment.saturating_sub(two.len());
    let opposite: Vec<u8> = two[..fragment.min(two.len())].iter().rev().map(|c| c ^ 3).collect();
    if !is_similar(one[first..fragment.min(one.len())].iter(), opposite.iter()) {
        return false;
    }
    // A tandem repeat whose period is the assumed fragment length gives the same overlap, but then both mates
    // continue with genomic sequence instead of adapters.
    let behind = [one, two].map(|mate| mate.get(fragment..).unwrap_or_default());
    let [short, long] = if behind[0].len() < behind[1].len() { behind } else { [behind[1], behind[0]] };
    long.len() <= MAX_UNKNOWN_TAIL_BASES
        || is_adapter(long)
        || (short.len() > MAX_UNKNOWN_TAIL_BASES && is_similar(short.iter().take(ADAPTER_PREFIX_BASES), long.iter()))
}

/// Maximum unit length in bases of a tandem repeat, whose reverse complement may match by chance.
const MAX_REPEAT_UNIT_BASES: usize = 6;

/// Returns the bases at the turning point of a fold-back read: the reverse complement of its last bases (`end`) occurs
/// earlier in the read. `None` if the read does not fold back.
fn find_fold_back(end: u32, read: &CodesAndPackedBases) -> Option<u32> {
    let codes = read.codes();
    let last = codes.len().checked_sub(SEED_BASES).filter(|&last| last >= SEED_BASES)?;
    let at = (0..=last - SEED_BASES).find(|&at| seed_at(read.packed_bases(), at) == end)?;
    // Compare both arms from the seed inwards, up to the turning point.
    let arm = (last - at) / 2;
    let backwards: Vec<u8> = codes[codes.len() - arm..].iter().rev().map(|c| c ^ 3).collect();
    let end = &codes[last..];
    let repeats =
        (1..=MAX_REPEAT_UNIT_BASES).any(|unit| end[unit..].iter().zip(end).filter(|(a, b)| a != b).count() <= 2);
    let is_fold = !repeats && is_similar(codes[at..at + arm].iter().take(2 * SEED_BASES), backwards.iter());
    let middle = (at + codes.len()) / 2;
    is_fold.then(|| seed_at(read.packed_bases(), middle - SEED_BASES / 2))
}

/// Hash value of the bases at a turning point; equal for both strands.
fn hash_of_turn(turn: u32) -> usize {
    // Multiplicative hashing with the golden ratio (Knuth).
    let hash = turn.min(reverse_complement_16_bases(turn)).wrapping_mul(0x9E37_79B9);
    hash as usize >> (u32::BITS - FOLD_BACK_HASHES.ilog2())
}

/// Whether codes match the start of a known adapter.
fn is_adapter(codes: &[u8]) -> bool {
    ADAPTERS.iter().any(|adapter| {
        codes.iter().zip(*adapter).filter(|(c, a)| **c != dna::encode_base(**a)).count() * 6
            <= codes.len().min(ADAPTER_BASES)
    })
}

/// Position of the first known adapter in a mate.
fn find_adapter(mate: &CodesAndPackedBases) -> Option<usize> {
    let marked = |at: &usize| {
        ADAPTER_PREFIXES.contains(&(seed_at(mate.packed_bases(), *at) >> (2 * (SEED_BASES - ADAPTER_PREFIX_BASES))))
    };
    let mut starts = (0..(mate.codes().len() + 1).saturating_sub(ADAPTER_PREFIX_BASES)).filter(marked);
    starts.find(|&at| is_adapter(&mate.codes()[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vector_and_scalar_search_agree() {
        let mut seed = 3u64;
        let mut below = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        let mut found = [0; 3];
        for round in 0..6_000 {
            let mut mates = [0, 1].map(|_| {
                let len = below(200) as usize;
                (0..len).map(|_| b"ACGTN"[below(if round % 7 == 0 { 5 } else { 4 }) as usize]).collect::<Vec<u8>>()
            });
            // Insert an adapter, a part of the other mate, or a part of the mate itself at a random position.
            let inserted = match round % 4 {
                0 => ADAPTERS[below(6) as usize][..ADAPTER_PREFIX_BASES].to_vec(),
                1 => dna::reverse_complement(&mates[1][..mates[1].len().min(SEED_BASES)]),
                2 => dna::reverse_complement(&mates[0][mates[0].len().saturating_sub(SEED_BASES)..]),
                _ => Vec::new(),
            };
            let at = below(mates[0].len() as u64 + 1) as usize;
            mates[0].splice(at..at, inserted);
            let [one, two] = mates.each_ref().map(|seq| {
                let mut codes = CodesAndPackedBases::default();
                codes.encode_bases(seq, seq, 0);
                codes
            });
            let searches = SeedSearch::for_mate(&one, &two);
            let hits = searches.search(&one);
            assert_eq!(hits, searches.search_scalar(&one));
            // Compare as letters; a byte that is not a base counts as A.
            let letters = |seq: &[u8]| seq.iter().map(|&b| if b == b'N' { b'A' } else { b }).collect::<Vec<u8>>();
            let [one, two] = mates.each_ref().map(|seq| letters(seq));
            let holds = |piece: &[u8]| one.windows(piece.len()).any(|window| window == piece);
            let seeds = two.len() >= 2 * SEED_BASES
                && [0, SEED_BASES].iter().any(|&at| holds(&dna::reverse_complement(&two[at..at + SEED_BASES])));
            let fold = one.len() >= 2 * SEED_BASES && holds(&dna::reverse_complement(&one[one.len() - SEED_BASES..]));
            let adapter = ADAPTERS.iter().any(|adapter| holds(&adapter[..ADAPTER_PREFIX_BASES]));
            for (n, (hits, is)) in found.iter_mut().zip([
                (hits.has_mate_seed, seeds),
                (hits.has_fold_back_seed, fold),
                (hits.has_adapter_prefix, adapter),
            ]) {
                assert!(hits || !is, "{round}");
                assert!(!hits || is || round % 7 == 0, "{round}: hit where there is none");
                *n += usize::from(is);
            }
        }
        assert!(found.iter().all(|&n| n > 800), "{found:?}");
    }
}
