//! Length changes of tandem repeats, counted as artificial k-mers made from the repeat's flanks.
//!
//! A length change inside a repeat of k bases or more makes no new k-mer. Only the distance between the two flanks
//! changes. So each read that contains a repeat of 16 bp or more and both of its flanks adds one artificial k-mer to
//! the count. The middle of this k-mer (its root) is a hash of the flanks; its first and last base encode the length.
//! The 16 k-mers with one root (first base, last base) are 16 lengths, and the counter compares the samples at this
//! root as at any other root. A read with one flank of a minisatellite adds other artificial k-mers
//! ([`for_each_repeat_kmer`]).

use genuma_kmers::encode::{kmer_mask, pack, reverse_complement_kmer, unpack};
use genuma_kmers::run_with_widest_simd;
use genuma_reads::packed_bases::{PackedBases, WORD_BASES};
use genuma_work::hash::mix_bits;

use crate::minisatellite::{self, MAX_MINISATELLITE_UNIT_BP, MIN_MINISATELLITE_UNIT_BP};

/// Maximum length in bp of the unit of a short tandem repeat. Longer units are those of minisatellites
/// ([`crate::minisatellite`]).
pub const MAX_SHORT_REPEAT_UNIT_BP: usize = 6;
/// Minimum length in bp of a short tandem repeat that gets an artificial k-mer. The value is well below k, because
/// k-mers that are mostly repeat do not identify a locus.
const MIN_SHORT_REPEAT_BP: usize = 16;
/// Minimum number of copies of the unit in a short tandem repeat (unit of at most 6 bp) that gets an artificial k-mer.
/// Minisatellites have their own minimum length ([`minisatellite::min_minisatellite_length_bp`]).
const MIN_SHORT_REPEAT_UNITS: usize = 3;
/// Number of bases at each end by which an artificial k-mer identifies the repeat, in addition to the unit length and
/// the number of bases beyond whole units. For short units these bases are flanks.
const REPEAT_ANCHOR_BP: usize = 15;
/// Length in bp of each flank of a minisatellite that a read must contain. The remaining bases of [`REPEAT_ANCHOR_BP`]
/// are in the repeat. Chosen: with longer flanks few reads would contain a long minisatellite, and bases of the repeat
/// alone do not identify its position.
const MINISATELLITE_FLANK_BP: usize = 8;
/// Length in bp of the flank in the k-mer of a minisatellite of which a read holds one flank. Chosen: with the bases of
/// the repeat up to [`SINGLE_FLANK_ANCHOR_BP`] it identifies the place.
const SINGLE_FLANK_BP: usize = 12;
/// Number of bases, of the flank and of the repeat next to it, that identify a minisatellite by one flank.
const SINGLE_FLANK_ANCHOR_BP: usize = 2 * REPEAT_ANCHOR_BP;
/// Distance in bp between the lengths of a minisatellite that get k-mers with one flank. Chosen: a shorter distance
/// makes more k-mers, a longer one needs reads that show more of the gained unit.
const SINGLE_FLANK_STEP_BP: usize = 8;
/// Number of repeat lengths, in units, that have different artificial k-mers: one for each k-mer of a root. Lengths are
/// taken modulo this number.
const NUM_REPEAT_LENGTHS: usize = 16;

/// A tandem repeat in a read, extended in both directions as far as its units continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TandemRepeat {
    /// Position of the first base (0-based).
    pub start: usize,
    /// Position after the last base.
    pub end: usize,
    /// Length of the shortest repeat unit in bp.
    pub unit_bp: usize,
}

impl TandemRepeat {
    /// Length of the repeat in bp.
    pub fn length_bp(&self) -> usize {
        self.end - self.start
    }

    /// Length in bp of each flank that a read must contain so that the repeat gets an artificial k-mer.
    fn flank_bp(&self) -> usize {
        if self.unit_bp <= MAX_SHORT_REPEAT_UNIT_BP { REPEAT_ANCHOR_BP } else { MINISATELLITE_FLANK_BP }
    }

    /// A number that combines the unit length and the number of bases beyond whole units, for the hash of the repeat.
    fn unit_and_remainder(&self) -> u64 {
        let unit_weight =
            if self.unit_bp <= MAX_SHORT_REPEAT_UNIT_BP { MAX_SHORT_REPEAT_UNIT_BP } else { MINISATELLITE_UNIT_WEIGHT };
        (self.unit_bp * unit_weight + self.length_bp() % self.unit_bp) as u64
    }
}

/// Factor of a minisatellite's unit length in [`TandemRepeat::unit_and_remainder`]. Numbers of different unit lengths
/// differ, and differ from those of short units.
const MINISATELLITE_UNIT_WEIGHT: usize = 64;
const _: () = assert!(
    MAX_MINISATELLITE_UNIT_BP < MINISATELLITE_UNIT_WEIGHT && MAX_SHORT_REPEAT_UNIT_BP < MIN_MINISATELLITE_UNIT_BP
);

/// Number of bases that are compared at once when a read is scanned for repeats.
const BLOCK_BP: usize = 4;

/// Minimum number of consecutive bases in any short repeat that equal the base one unit before: [`MIN_SHORT_REPEAT_BP`]
/// less a unit of 5 bp.
const MIN_RUN_BP: usize = 11;
/// Distance in bp between the tested 32-base windows of a read. Each run of [`MIN_RUN_BP`] bases, with the unit before
/// it, is contained in one window.
const WINDOW_STEP_BP: usize = WORD_BASES / 2;
const _: () = assert!(WINDOW_STEP_BP - 1 + MIN_RUN_BP + MAX_SHORT_REPEAT_UNIT_BP <= WORD_BASES);
/// Number of 32-base windows of a read that are tested for repeats in one step of the loop, with vector instructions.
const WINDOWS_PER_STEP: usize = 4;

/// Tests windows of packed bases of a read for [`MIN_RUN_BP`] consecutive bases that equal the base one unit after.
/// Sets bits of the entry of a window in `runs_found` if it has such bases.
#[inline(always)]
fn find_periodic_runs(windows: &[u64; WINDOWS_PER_STEP], runs_found: &mut [u64; WINDOWS_PER_STEP]) {
    for unit in 1..=MAX_SHORT_REPEAT_UNIT_BP {
        for (window, found) in windows.iter().zip(&mut *runs_found) {
            // The bases after the window count as A.
            let differences = window ^ (window << (2 * unit));
            // One bit for each base.
            let mut runs = !(differences | (differences >> 1)) & 0x5555_5555_5555_5555;
            // Keep runs of at least 1, 2, 4, 8 and finally 11 bases, marked at one base.
            for step in [1, 2, 4, MIN_RUN_BP - 8] {
                runs &= runs << (2 * step);
            }
            *found |= runs;
        }
    }
}

/// Whether the first `bases` bases of a read may contain a short tandem repeat: a fast test, because most reads have
/// none. False positives are possible, false negatives are not.
#[inline(always)]
fn may_contain_repeat_scalar(read: PackedBases<'_>, bases: usize) -> bool {
    // The windows after the last one that lies within the read are replaced by the last 32 bases.
    let last_window = bases.saturating_sub(WORD_BASES);
    let mut runs_found = [0; WINDOWS_PER_STEP];
    for at in (0..last_window + WINDOW_STEP_BP).step_by(WINDOW_STEP_BP * WINDOWS_PER_STEP) {
        let windows = std::array::from_fn(|i| read.word_from_base((at + i * WINDOW_STEP_BP).min(last_window)));
        find_periodic_runs(&windows, &mut runs_found);
    }
    runs_found != [0; WINDOWS_PER_STEP]
}

/// Whether the first `bases` bases of a read may contain a short tandem repeat, tested with the widest vector
/// instructions of this CPU.
fn may_contain_repeat(read: PackedBases<'_>, bases: usize) -> bool {
    let mut may_repeat = false;
    run_with_widest_simd(
        #[inline(always)]
        || may_repeat = may_contain_repeat_scalar(read, bases),
    );
    may_repeat
}

/// Calls `each` with every short tandem repeat of at least 16 bp and three units in a read, in order of start, and then
/// with every minisatellite. `read` is the packed form of `seq`.
pub fn for_each_repeat(seq: &[u8], read: PackedBases<'_>, mut each: impl FnMut(TandemRepeat)) {
    if may_contain_repeat(read, seq.len()) {
        scan_for_repeats(seq, &mut each);
    }
    minisatellite::for_each_minisatellite(seq, read, |range, unit_bp| {
        each(TandemRepeat { start: range.start, end: range.end, unit_bp });
    });
}

/// A block whose bases are all N.
const BLOCK_OF_N: u32 = u32::from_ne_bytes([b'N'; BLOCK_BP]);

/// Finds short tandem repeats by comparing each block of [`BLOCK_BP`] bases with the bases one unit after it.
fn scan_for_repeats(seq: &[u8], mut each: impl FnMut(TandemRepeat)) {
    let word = |at: usize| seq.get(at..at + BLOCK_BP).and_then(|b| b.first_chunk()).map(|b| u32::from_ne_bytes(*b));
    let mut done = 0;
    for at in (0..seq.len().saturating_sub(BLOCK_BP)).step_by(BLOCK_BP) {
        // A repeat of this length contains a whole block that equals the bases one unit after it.
        let Some(here) = word(at) else { break };
        if at >= done && here == BLOCK_OF_N && word(at + 1) == Some(here) {
            let run = extend_repeat(seq, at, 1);
            // A run of N that is as long as a unit is never inside a repeat. Its blocks are skipped, because each of
            // them would be extended over the whole run.
            if run.length_bp() >= MAX_SHORT_REPEAT_UNIT_BP {
                done = run.end + 1 - BLOCK_BP;
            }
        }
        for unit in 1..=MAX_SHORT_REPEAT_UNIT_BP {
            if at < done || word(at + unit) != Some(here) {
                continue;
            }
            let repeat = extend_repeat(seq, at, unit);
            if repeat.length_bp() >= MIN_SHORT_REPEAT_BP.max(MIN_SHORT_REPEAT_UNITS * unit) && seq[repeat.start] != b'N'
            {
                done = repeat.end;
                each(repeat);
            }
        }
    }
}

/// The repeat with units of `unit` bp that contains the block at `at`: extended as far as each base equals the base one
/// unit away.
fn extend_repeat(seq: &[u8], at: usize, unit: usize) -> TandemRepeat {
    let mut start = at;
    while start > 0 && seq[start - 1] == seq[start - 1 + unit] {
        start -= 1;
    }
    let mut last = at + BLOCK_BP;
    while last + unit < seq.len() && seq[last] == seq[last + unit] {
        last += 1;
    }
    TandemRepeat { start, end: last + unit, unit_bp: unit }
}

/// The artificial k-mer of a tandem repeat with its flanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatKmer {
    /// Position in the read of the first base that the k-mer encodes: of the left flank, or of the repeat's last bases
    /// if only the right flank is encoded.
    pub start: usize,
    /// Length in bp of the encoded bases in the read: the repeat with both flanks, or a part of it with one flank.
    pub span_bp: usize,
    /// The canonical artificial k-mer, which encodes the hash of the flanks and the length of the repeat.
    pub kmer: u64,
    /// Whether the flanks were hashed in the orientation of the read, rather than reverse-complemented. With one flank:
    /// whether it is the left one.
    pub forward: bool,
}

/// Computes the artificial k-mer of a tandem repeat in a read. Returns `None` if the read does not contain both flanks
/// without N, or if both strands would give the same k-mer.
pub fn encode_repeat_kmer(seq: &[u8], repeat: TandemRepeat, k: u32) -> Option<RepeatKmer> {
    let at = repeat.start.checked_sub(repeat.flank_bp())?;
    let end = repeat.end + repeat.flank_bp();
    let left = pack(&seq[at..at + REPEAT_ANCHOR_BP])?;
    let right = pack(seq.get(end - REPEAT_ANCHOR_BP..end)?)?;
    let bases = REPEAT_ANCHOR_BP as u32;
    let (read_strand, reverse_strand) =
        ((left, right), (reverse_complement_kmer(right, bases), reverse_complement_kmer(left, bases)));
    let forward = read_strand <= reverse_strand;
    let (canonical_left, canonical_right) = read_strand.min(reverse_strand);
    let digest = mix_bits(mix_bits(canonical_left << (2 * bases) | canonical_right) ^ repeat.unit_and_remainder());
    let digest = digest & kmer_mask(k - 2);
    let root = digest.min(reverse_complement_kmer(digest, k - 2));
    if read_strand == reverse_strand || root == reverse_complement_kmer(root, k - 2) {
        return None;
    }
    let length = (repeat.length_bp() / repeat.unit_bp % NUM_REPEAT_LENGTHS) as u64;
    let word = (length >> 2) << (2 * (k - 1)) | root << 2 | (length & 3);
    let kmer = word.min(reverse_complement_kmer(word, k));
    Some(RepeatKmer { start: at, span_bp: end - at, kmer, forward })
}

/// Calls `each` with every artificial k-mer of a tandem repeat: the one of both flanks ([`encode_repeat_kmer`]), and
/// those of one flank of a minisatellite and its least lengths.
///
/// A read that holds one flank shows that the repeat is at least as long as the bases up to the end of the read. It has
/// one k-mer for each length up to that, in steps of [`SINGLE_FLANK_STEP_BP`]. So a gained unit makes k-mers that no
/// read of the shorter repeat has, also where no read holds the whole repeat.
pub fn for_each_repeat_kmer(seq: &[u8], repeat: TandemRepeat, k: u32, mut each: impl FnMut(RepeatKmer)) {
    encode_repeat_kmer(seq, repeat, k).into_iter().for_each(&mut each);
    if repeat.unit_bp >= MIN_MINISATELLITE_UNIT_BP {
        for has_left_flank in [true, false] {
            encode_minisatellite_lengths(seq, repeat, has_left_flank, k, &mut each);
        }
    }
}

/// Calls `each` with the k-mers of one flank of a minisatellite and each length that the read shows.
fn encode_minisatellite_lengths(
    seq: &[u8],
    repeat: TandemRepeat,
    has_left_flank: bool,
    k: u32,
    each: &mut impl FnMut(RepeatKmer),
) {
    // The range of the flank and the repeat's first bases, seen from the flank.
    let anchor = if has_left_flank {
        repeat.start.checked_sub(SINGLE_FLANK_BP).map(|at| at..at + SINGLE_FLANK_ANCHOR_BP)
    } else {
        (repeat.end + SINGLE_FLANK_BP).checked_sub(SINGLE_FLANK_ANCHOR_BP).map(|at| at..repeat.end + SINGLE_FLANK_BP)
    };
    let Some(bases) = anchor.and_then(|range| seq.get(range)) else { return };
    let (Some(first), Some(second)) = (pack(&bases[..REPEAT_ANCHOR_BP]), pack(&bases[REPEAT_ANCHOR_BP..])) else {
        return;
    };
    let bases = REPEAT_ANCHOR_BP as u32;
    let (flank, inner) = if has_left_flank {
        (first, second)
    } else {
        (reverse_complement_kmer(second, bases), reverse_complement_kmer(first, bases))
    };
    let place = mix_bits(flank << (2 * bases) | inner);
    let shortest = minisatellite::min_minisatellite_length_bp(repeat.unit_bp).next_multiple_of(SINGLE_FLANK_STEP_BP);
    for length in (shortest..=repeat.length_bp()).step_by(SINGLE_FLANK_STEP_BP) {
        // Different from the numbers of repeats with both flanks, whose remainder is less than a unit.
        let number = ((length << 16) + repeat.unit_bp * MINISATELLITE_UNIT_WEIGHT + repeat.unit_bp) as u64;
        let digest = mix_bits(place ^ number) & kmer_mask(k - 2);
        let root = digest.min(reverse_complement_kmer(digest, k - 2));
        if root == reverse_complement_kmer(root, k - 2) {
            continue;
        }
        let word = root << 2;
        let start = if has_left_flank { repeat.start - SINGLE_FLANK_BP } else { repeat.end - length };
        let kmer = word.min(reverse_complement_kmer(word, k));
        each(RepeatKmer { start, span_bp: SINGLE_FLANK_BP + length, kmer, forward: has_left_flank });
    }
}

/// Whether bases are a minisatellite with the flanks, or the flank, that belong to its artificial k-mer.
pub(crate) fn is_minisatellite_with_flanks(bases: &[u8]) -> bool {
    let without = |before: usize, after: usize| bases.len().checked_sub(after).and_then(|end| bases.get(before..end));
    [(MINISATELLITE_FLANK_BP, MINISATELLITE_FLANK_BP), (SINGLE_FLANK_BP, 0), (0, SINGLE_FLANK_BP)]
        .iter()
        .any(|&(before, after)| without(before, after).is_some_and(minisatellite::consists_of_one_minisatellite))
}

/// Appends to `out` the bases of the artificial k-mers of every tandem repeat in a read, k bases each. `read` is the
/// packed form of `seq`.
pub fn append_bases_of_repeat_kmers(seq: &[u8], read: PackedBases<'_>, k: u32, out: &mut Vec<u8>) {
    for_each_repeat(seq, read, |repeat| {
        for_each_repeat_kmer(seq, repeat, k, |encoded| out.extend(unpack(encoded.kmer, k)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::dna;
    use genuma_reads::packed_bases::CodesAndPackedBases;

    fn coded(seq: &[u8]) -> CodesAndPackedBases {
        let mut codes = CodesAndPackedBases::default();
        codes.encode_bases(seq, seq, 0);
        codes
    }

    fn found(seq: &[u8]) -> Vec<(usize, usize, usize)> {
        let mut all = Vec::new();
        for_each_repeat(seq, coded(seq).packed_bases(), |t| all.push((t.start, t.end, t.unit_bp)));
        all
    }

    #[test]
    fn tracts_are_found_whole_wherever_they_begin() {
        for (unit, copies) in [(&b"A"[..], 16), (b"AC", 9), (b"CAG", 6), (b"AATG", 5), (b"ACGTT", 4), (b"AACCGT", 3)] {
            let repeat = unit.repeat(copies);
            for before in 0..9 {
                let seq = [&b"GATTACCTGAGTC"[..4 + before], b"G", &repeat, b"GTCCAGATTC"].concat();
                let all = found(&seq);
                assert_eq!(all.len(), 1, "{}", String::from_utf8_lossy(&seq));
                let (start, end, u) = all[0];
                assert!(start <= 5 + before && end >= 5 + before + repeat.len() && u == unit.len());
            }
        }
        assert_eq!(found(&b"A".repeat(15)), []);
        assert_eq!(found(&b"N".repeat(40)), []);
        assert_eq!(found(b"ACG"), []);
    }

    #[test]
    fn no_tract_is_missed_by_looking_at_many_bases_at_once() {
        let mut x = 5u64;
        let mut below = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        let (mut with, mut without) = (0, 0);
        for round in 0..20_000 {
            let len = below(300) as usize;
            let mut seq: Vec<u8> = (0..len).map(|_| b"ACGT"[below(4) as usize]).collect();
            if round % 2 == 0 {
                let unit: Vec<u8> = (0..=below(6)).map(|_| b"ACGT"[below(4) as usize]).collect();
                let at = below(len as u64 + 1) as usize;
                let repeat: Vec<u8> = unit.iter().copied().cycle().take(12 + below(8) as usize).collect();
                seq.splice(at..at, repeat);
            }
            let mut expected = Vec::new();
            scan_for_repeats(&seq, |t| expected.push((t.start, t.end, t.unit_bp)));
            let short = found(&seq).into_iter().filter(|t| t.2 <= MAX_SHORT_REPEAT_UNIT_BP).collect::<Vec<_>>();
            assert_eq!(short, expected, "{}", String::from_utf8_lossy(&seq));
            let codes = coded(&seq);
            let may_repeat = may_contain_repeat(codes.packed_bases(), seq.len());
            assert_eq!(may_repeat, may_contain_repeat_scalar(codes.packed_bases(), seq.len()));
            with += usize::from(!expected.is_empty());
            without += usize::from(!may_repeat);
        }
        assert!(with > 2_000 && without > 7_000, "{with} {without}");
    }

    #[test]
    fn runs_of_n_are_skipped_without_other_repeats() {
        let mut x = 3u64;
        let mut below = |n: u64| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        let mut num_repeats = 0;
        for _ in 0..5_000 {
            let mut seq = Vec::new();
            while seq.len() < 200 {
                let letters = [&b"N"[..], b"N", b"A", b"ACGT", b"NA", b"NNNNNAC"][below(6) as usize];
                seq.extend(letters.iter().cycle().take(1 + below(30) as usize));
            }
            // Every block, also those of N.
            let (mut expected, mut done) = (Vec::new(), 0);
            for at in (0..seq.len() - BLOCK_BP).step_by(BLOCK_BP) {
                for unit in 1..=MAX_SHORT_REPEAT_UNIT_BP {
                    if at < done || seq.get(at + unit..at + unit + BLOCK_BP) != Some(&seq[at..at + BLOCK_BP]) {
                        continue;
                    }
                    let repeat = extend_repeat(&seq, at, unit);
                    let min_bp = MIN_SHORT_REPEAT_BP.max(MIN_SHORT_REPEAT_UNITS * unit);
                    if repeat.length_bp() >= min_bp && seq[repeat.start] != b'N' {
                        done = repeat.end;
                        expected.push(repeat);
                    }
                }
            }
            let mut found = Vec::new();
            scan_for_repeats(&seq, |repeat| found.push(repeat));
            assert_eq!(found, expected, "{}", String::from_utf8_lossy(&seq));
            num_repeats += found.len();
        }
        assert!(num_repeats > 5_000);
    }

    #[test]
    fn both_strands_spell_alike_and_lengths_do_not() {
        let read =
            |copies: usize| [&b"TTGACCATGCAAGTCCGTAA"[..], &b"CA".repeat(copies), b"GGATTACCGTGCATTAGCAAT"].concat();
        let encoded = |seq: &[u8]| {
            let mut all = Vec::new();
            for_each_repeat(seq, coded(seq).packed_bases(), |t| all.extend(encode_repeat_kmer(seq, t, 31)));
            assert_eq!(all.len(), 1);
            all[0]
        };
        let (canonical_left, canonical_right) = (encoded(&read(12)), encoded(&dna::reverse_complement(&read(12))));
        assert_eq!((canonical_left.kmer, canonical_left.span_bp), (canonical_right.kmer, canonical_right.span_bp));
        assert_ne!(canonical_left.forward, canonical_right.forward);
        let longer = encoded(&read(13));
        assert_ne!(longer.kmer, canonical_left.kmer);
        // One root: the same middle on one strand or the other.
        let root = |kmer: u64| (kmer >> 2 & kmer_mask(29)).min(reverse_complement_kmer(kmer >> 2 & kmer_mask(29), 29));
        assert_eq!(root(longer.kmer), root(canonical_left.kmer));
        let mut letters = Vec::new();
        append_bases_of_repeat_kmers(&read(12), coded(&read(12)).packed_bases(), 31, &mut letters);
        assert_eq!(pack(&letters), Some(canonical_left.kmer));
    }

    #[test]
    fn only_a_repeat_with_both_flanks_and_a_direction_is_spelled() {
        let (left, right) = (&b"TTGACCATGCAAGTCCGTAA"[..], &b"GGATTACCGTGCATTAGCAAT"[..]);
        let repeat = b"CA".repeat(12);
        let encoded = |seq: &[u8]| {
            let mut letters = Vec::new();
            append_bases_of_repeat_kmers(seq, coded(seq).packed_bases(), 31, &mut letters);
            letters.len() / 31
        };
        assert_eq!(encoded(&[left, &repeat, right].concat()), 1);
        assert_eq!(encoded(&[left, &repeat, &right[..8]].concat()), 0);
        assert_eq!(encoded(&[&left[12..], &repeat, right].concat()), 0);
        assert_eq!(encoded(&[left, &repeat, b"GGATNACCGTGCATTAGCAAT"].concat()), 0);
        // Its own reverse complement.
        assert_eq!(encoded(&[left, &b"AT".repeat(12), &dna::reverse_complement(left)].concat()), 0);
        // Two repeats in one read.
        assert_eq!(encoded(&[left, &repeat, right, &b"AAG".repeat(7), left].concat()), 2);
    }

    #[test]
    fn minisatellites_are_encoded_with_short_flanks() {
        let unit = b"TGGACCATCGGATACCA";
        let (left, right) = (&b"GCTTAGACG"[..], &b"CGTATTGCA"[..]);
        let read = |copies: usize| [left, &unit.repeat(copies), b"TGGA", right].concat();
        let encoded = |seq: &[u8]| {
            let mut all = Vec::new();
            for_each_repeat(seq, coded(seq).packed_bases(), |t| all.extend(encode_repeat_kmer(seq, t, 31)));
            all
        };
        let root = |kmer: u64| (kmer >> 2 & kmer_mask(29)).min(reverse_complement_kmer(kmer >> 2 & kmer_mask(29), 29));
        let (three, four) = (encoded(&read(3)), encoded(&read(4)));
        assert_eq!((three.len(), four.len()), (1, 1));
        assert_ne!(three[0].kmer, four[0].kmer);
        assert_eq!(root(three[0].kmer), root(four[0].kmer));
        assert_eq!(encoded(&dna::reverse_complement(&read(4)))[0].kmer, four[0].kmer);
        let held = &read(4)[four[0].start..four[0].start + four[0].span_bp];
        assert!(is_minisatellite_with_flanks(held) && !is_minisatellite_with_flanks(&read(4)));
        // A flank is too short.
        assert_eq!(encoded(&read(4)[2..]), []);
        // Other bases at the ends of the repeat are another place.
        let other = [left, &b"TGCACCATCGGATACCA".repeat(4), b"TGCA", right].concat();
        assert_ne!(root(encoded(&other)[0].kmer), root(four[0].kmer));
    }

    #[test]
    fn one_flank_shows_each_length_up_to_the_end_of_the_read() {
        let unit = b"TGGACCATCGGATACCA";
        let (left, right) = (&b"ACGGCTTAGACG"[..], &b"CGTATTGCATTC"[..]);
        let encoded = |seq: &[u8]| {
            let mut all = Vec::new();
            for_each_repeat(seq, coded(seq).packed_bases(), |t| {
                for_each_repeat_kmer(seq, t, 31, |kmer| all.push(kmer))
            });
            all
        };
        let kmers = |seq: &[u8]| encoded(seq).iter().map(|e| e.kmer).collect::<std::collections::BTreeSet<u64>>();
        let beginning = |bases: usize| [left, &unit.repeat(7)[..bases]].concat();
        // Lengths of 32, 40, ... up to 64 bases.
        assert_eq!((encoded(&beginning(66)).len(), encoded(&beginning(31)).len()), (5, 0));
        assert!(kmers(&beginning(66)).is_subset(&kmers(&beginning(80))));
        assert_eq!(kmers(&dna::reverse_complement(&beginning(80))), kmers(&beginning(80)));
        for kmer in encoded(&beginning(80)) {
            let held = &beginning(80)[kmer.start..kmer.start + kmer.span_bp];
            assert!(kmer.forward && is_minisatellite_with_flanks(held));
        }
        // The other flank is another place; a whole repeat has both, and the k-mer of its length.
        let ending = |copies: usize| [&unit.repeat(copies), right].concat();
        assert!(kmers(&ending(5)).is_disjoint(&kmers(&beginning(85))));
        let whole = kmers(&[left, &unit.repeat(5), right].concat());
        assert!(kmers(&ending(5)).union(&kmers(&beginning(85))).all(|kmer| whole.contains(kmer)));
        assert_eq!(whole.len(), 15);
        // A read of a repeat with four copies has no k-mer of a length that only five copies have.
        let four = kmers(&[left, &unit.repeat(4), right].concat());
        assert_eq!(kmers(&beginning(80)).difference(&four).count(), 2);
        // Short tandem repeats have the k-mer of both flanks only.
        assert_eq!(encoded(&[b"TTGACCATGCAAGTC", &b"CA".repeat(12)[..]].concat()), []);
    }

    #[test]
    fn other_flanks_and_other_units_are_other_places() {
        let (left, right) = (b"TTGACCATGCAAGTCCGTAA", b"GGATTACCGTGCATTAGCAAT");
        let kmer = |left: &[u8], repeat: &[u8], right: &[u8]| {
            let mut letters = Vec::new();
            let seq = [left, repeat, right].concat();
            append_bases_of_repeat_kmers(&seq, coded(&seq).packed_bases(), 31, &mut letters);
            pack(&letters).unwrap()
        };
        let root = |kmer: u64| (kmer >> 2 & kmer_mask(29)).min(reverse_complement_kmer(kmer >> 2 & kmer_mask(29), 29));
        let here = root(kmer(left, &b"CA".repeat(12), right));
        assert_ne!(root(kmer(b"TTGACCATGCTAGTCCGTAA", &b"CA".repeat(12), right)), here);
        assert_ne!(root(kmer(left, &b"CA".repeat(12), b"GGATTACCTTGCATTAGCAAT")), here);
        assert_ne!(root(kmer(left, &b"CTT".repeat(8), right)), here);
        // Sixteen lengths have different k-mers.
        let lengths: std::collections::HashSet<u64> = (10..26).map(|n| kmer(left, &b"CA".repeat(n), right)).collect();
        assert_eq!(lengths.len(), 16);
    }
}
