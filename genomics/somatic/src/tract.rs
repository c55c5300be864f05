//! Tandem repeats longer than a k-mer can see round, told by their flanks and counted as k-mers.
//!
//! A change of length inside a repeat of k bases or more makes no new k-mer. What is new is a distance: how far one
//! flank lies from the other. So a read that holds a repeat with both its flanks adds one k-mer to the count whose
//! middle is a digest of the flanks and whose outer bases are the length: its root is the place, its sixteen extensions
//! are the lengths, and the counter compares the samples as it does at any root.

use genuma_kmers::encode::{mask, pack, revcomp, unpack};
use genuma_kmers::widest;
use genuma_reads::packed::{Packed, WORD, after};

/// Longest unit of a tandem repeat, bases.
pub const LONGEST_UNIT: usize = 6;
/// Shortest repeat counted by its flanks, bases: well below k, as k-mers that hold little but a repeat tell no place.
const SHORTEST: usize = 16;
/// Fewest copies of the unit.
const COPIES: usize = 3;
/// Bases of each flank.
pub const FLANK: usize = 15;
/// Lengths told apart, in units: the extensions of a root.
const LENGTHS: usize = 16;

/// A stretch of a read that repeats a unit, as long as it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tract {
    /// First base.
    pub start: usize,
    /// One past the last base.
    pub end: usize,
    /// Bases of the unit, the shortest that explains it.
    pub unit: usize,
}

impl Tract {
    /// How long it is.
    pub fn bases(&self) -> usize {
        self.end - self.start
    }
}

/// Bases compared at once to find repeats.
const BLOCK: usize = 4;

/// Bases in a row that equal those a unit behind them, in any tract: [`SHORTEST`] less a unit of five.
const RUN: usize = 11;
/// How far windows of a word are apart, so that each run and the bases behind it lie whole in one.
const APART: usize = WORD / 2;
const _: () = assert!(APART - 1 + RUN + LONGEST_UNIT <= WORD);
/// Windows looked at together.
const WINDOWS: usize = 8;

/// Whether a window of a read with so many bases, packed, holds [`RUN`] bases in a row that equal those a unit behind: not nothing if so.
#[inline(always)]
fn runs(window: u64, bases: usize) -> u64 {
    let mut any = 0;
    for unit in 1..=LONGEST_UNIT {
        let differ = window ^ (window << (2 * unit));
        // A bit for each base that has another one behind it.
        let within = !after(bases.saturating_sub(unit)) & 0x5555_5555_5555_5555;
        let mut runs = !(differ | (differ >> 1)) & within;
        // Runs of 1, 2, 4, 8 and at last 11 from each base on.
        for step in [1, 2, 4, RUN - 8] {
            runs &= runs << (2 * step);
        }
        any |= runs;
    }
    any
}

/// Whether there may be a tract in the first `bases` bases. In most reads there is none, and this tells it of many bases at once.
#[inline(always)]
fn may_repeat_scalar(read: Packed<'_>, bases: usize) -> bool {
    let mut any = [0; WINDOWS];
    for at in (0..bases).step_by(APART * WINDOWS) {
        let (mut windows, mut left) = ([0; WINDOWS], [0; WINDOWS]);
        for i in 0..WINDOWS {
            windows[i] = read.word(at + i * APART);
            left[i] = bases.saturating_sub(at + i * APART).min(WORD);
        }
        for i in 0..WINDOWS {
            any[i] |= runs(windows[i], left[i]);
        }
    }
    any != [0; WINDOWS]
}

/// The same with the widest vectors there are.
fn may_repeat(read: Packed<'_>, bases: usize) -> bool {
    let mut may = false;
    widest(
        #[inline(always)]
        || may = may_repeat_scalar(read, bases),
    );
    may
}

/// Calls `each` with every tract of [`SHORTEST`] bases or more, by start. `read` is packed what `seq` begins with.
pub fn for_each(seq: &[u8], read: Packed<'_>, each: impl FnMut(Tract)) {
    if may_repeat(read, seq.len()) {
        look_for_each(seq, each);
    }
}

/// Calls `each` with every tract of a sequence of a genome.
pub fn in_sequence(seq: &[u8], each: impl FnMut(Tract)) {
    look_for_each(seq, each);
}

/// Block by block.
fn look_for_each(seq: &[u8], mut each: impl FnMut(Tract)) {
    let word =
        |at: usize| seq.get(at..at + BLOCK).and_then(|b| b.first_chunk()).map(|b| u32::from_ne_bytes(*b));
    let mut done = 0;
    for at in (0..seq.len().saturating_sub(BLOCK)).step_by(BLOCK) {
        // A repeat this long holds a whole block that equals what stands a unit behind it.
        let Some(here) = word(at) else { break };
        for unit in 1..=LONGEST_UNIT {
            if at < done || word(at + unit) != Some(here) {
                continue;
            }
            let tract = extend(seq, at, unit);
            if tract.bases() >= SHORTEST.max(COPIES * unit) && seq[tract.start] != b'N' {
                done = tract.end;
                each(tract);
            }
        }
    }
}

/// The whole repeat of `unit` bases round a block.
fn extend(seq: &[u8], at: usize, unit: usize) -> Tract {
    let mut start = at;
    while start > 0 && seq[start - 1] == seq[start - 1 + unit] {
        start -= 1;
    }
    let mut last = at + BLOCK;
    while last + unit < seq.len() && seq[last] == seq[last + unit] {
        last += 1;
    }
    Tract { start, end: last + unit, unit }
}

/// A tract between its flanks, spelled as a k-mer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spelled {
    /// First base of the left flank in the read.
    pub at: usize,
    /// Bases from there to the end of the right flank.
    pub span: usize,
    /// The canonical k-mer that stands for it.
    pub kmer: u64,
    /// Whether the read runs along the strand that was spelled.
    pub forward: bool,
}

/// Spreads every bit of `x` over all bits (the finaliser of MurmurHash3).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Spells a tract; `None` when the read does not hold both flanks, or when both strands have one digest.
pub fn spell(seq: &[u8], tract: Tract, k: u32) -> Option<Spelled> {
    let at = tract.start.checked_sub(FLANK)?;
    let left = pack(&seq[at..tract.start])?;
    let right = pack(seq.get(tract.end..tract.end + FLANK)?)?;
    let bases = FLANK as u32;
    let (along, against) = ((left, right), (revcomp(right, bases), revcomp(left, bases)));
    let forward = along <= against;
    let (one, other) = along.min(against);
    let kind = (tract.unit * LONGEST_UNIT + tract.bases() % tract.unit) as u64;
    let digest = mix(mix(one << (2 * bases) | other) ^ kind) & mask(k - 2);
    let stem = digest.min(revcomp(digest, k - 2));
    if along == against || stem == revcomp(stem, k - 2) {
        return None;
    }
    let length = (tract.bases() / tract.unit % LENGTHS) as u64;
    let word = (length >> 2) << (2 * (k - 1)) | stem << 2 | (length & 3);
    let kmer = word.min(revcomp(word, k));
    Some(Spelled { at, span: tract.bases() + 2 * FLANK, kmer, forward })
}

/// Appends the letters of every tract of a read, k each; `read` is as [`for_each`] has it.
pub fn write(seq: &[u8], read: Packed<'_>, k: u32, out: &mut Vec<u8>) {
    for_each(seq, read, |tract| {
        if let Some(spelled) = spell(seq, tract, k) {
            out.extend(unpack(spelled.kmer, k));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::dna;
    use genuma_reads::packed::Codes;

    fn coded(seq: &[u8]) -> Codes {
        let mut codes = Codes::default();
        codes.load(seq, seq, 0);
        codes
    }

    fn found(seq: &[u8]) -> Vec<(usize, usize, usize)> {
        let mut all = Vec::new();
        for_each(seq, coded(seq).packed(), |t| all.push((t.start, t.end, t.unit)));
        all
    }

    #[test]
    fn tracts_are_found_whole_wherever_they_begin() {
        for (unit, copies) in
            [(&b"A"[..], 16), (b"AC", 9), (b"CAG", 6), (b"AATG", 5), (b"ACGTT", 4), (b"AACCGT", 3)]
        {
            let tract = unit.repeat(copies);
            for before in 0..9 {
                let seq = [&b"GATTACCTGAGTC"[..4 + before], b"G", &tract, b"GTCCAGATTC"].concat();
                let all = found(&seq);
                assert_eq!(all.len(), 1, "{}", String::from_utf8_lossy(&seq));
                let (start, end, u) = all[0];
                assert!(start <= 5 + before && end >= 5 + before + tract.len() && u == unit.len());
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
                let tract: Vec<u8> = unit.iter().copied().cycle().take(12 + below(8) as usize).collect();
                seq.splice(at..at, tract);
            }
            let mut expected = Vec::new();
            look_for_each(&seq, |t| expected.push((t.start, t.end, t.unit)));
            assert_eq!(found(&seq), expected, "{}", String::from_utf8_lossy(&seq));
            let codes = coded(&seq);
            let may = may_repeat(codes.packed(), seq.len());
            assert_eq!(may, may_repeat_scalar(codes.packed(), seq.len()));
            with += usize::from(!expected.is_empty());
            without += usize::from(!may);
        }
        assert!(with > 2_000 && without > 7_000, "{with} {without}");
    }

    #[test]
    fn both_strands_spell_alike_and_lengths_do_not() {
        let read = |copies: usize| {
            [&b"TTGACCATGCAAGTCCGTAA"[..], &b"CA".repeat(copies), b"GGATTACCGTGCATTAGCAAT"].concat()
        };
        let spelled = |seq: &[u8]| {
            let mut all = Vec::new();
            for_each(seq, coded(seq).packed(), |t| all.extend(spell(seq, t, 31)));
            assert_eq!(all.len(), 1);
            all[0]
        };
        let (one, other) = (spelled(&read(12)), spelled(&dna::revcomp(&read(12))));
        assert_eq!((one.kmer, one.span), (other.kmer, other.span));
        assert_ne!(one.forward, other.forward);
        let longer = spelled(&read(13));
        assert_ne!(longer.kmer, one.kmer);
        // One root: the same middle on one strand or the other.
        let stem = |kmer: u64| (kmer >> 2 & mask(29)).min(revcomp(kmer >> 2 & mask(29), 29));
        assert_eq!(stem(longer.kmer), stem(one.kmer));
        let mut letters = Vec::new();
        write(&read(12), coded(&read(12)).packed(), 31, &mut letters);
        assert_eq!(pack(&letters), Some(one.kmer));
    }

    #[test]
    fn only_a_repeat_with_both_flanks_and_a_direction_is_spelled() {
        let (left, right) = (&b"TTGACCATGCAAGTCCGTAA"[..], &b"GGATTACCGTGCATTAGCAAT"[..]);
        let repeat = b"CA".repeat(12);
        let spelled = |seq: &[u8]| {
            let mut letters = Vec::new();
            write(seq, coded(seq).packed(), 31, &mut letters);
            letters.len() / 31
        };
        assert_eq!(spelled(&[left, &repeat, right].concat()), 1);
        assert_eq!(spelled(&[left, &repeat, &right[..8]].concat()), 0);
        assert_eq!(spelled(&[&left[12..], &repeat, right].concat()), 0);
        assert_eq!(spelled(&[left, &repeat, b"GGATNACCGTGCATTAGCAAT"].concat()), 0);
        // Its own reverse complement.
        assert_eq!(spelled(&[left, &b"AT".repeat(12), &dna::revcomp(left)].concat()), 0);
        // Two repeats in one read.
        assert_eq!(spelled(&[left, &repeat, right, &b"AAG".repeat(7), left].concat()), 2);
    }

    #[test]
    fn other_flanks_and_other_units_are_other_places() {
        let (left, right) = (b"TTGACCATGCAAGTCCGTAA", b"GGATTACCGTGCATTAGCAAT");
        let kmer = |left: &[u8], repeat: &[u8], right: &[u8]| {
            let mut letters = Vec::new();
            let seq = [left, repeat, right].concat();
            write(&seq, coded(&seq).packed(), 31, &mut letters);
            pack(&letters).unwrap()
        };
        let stem = |kmer: u64| (kmer >> 2 & mask(29)).min(revcomp(kmer >> 2 & mask(29), 29));
        let here = stem(kmer(left, &b"CA".repeat(12), right));
        assert_ne!(stem(kmer(b"TTGACCATGCTAGTCCGTAA", &b"CA".repeat(12), right)), here);
        assert_ne!(stem(kmer(left, &b"CA".repeat(12), b"GGATTACCTTGCATTAGCAAT")), here);
        assert_ne!(stem(kmer(left, &b"CTT".repeat(8), right)), here);
        // Sixteen lengths are told apart.
        let lengths: std::collections::HashSet<u64> =
            (10..26).map(|n| kmer(left, &b"CA".repeat(n), right)).collect();
        assert_eq!(lengths.len(), 16);
    }
}
