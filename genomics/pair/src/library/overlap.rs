//! Detection of overlapping mates, which gives the fragment length.
//!
//! The mates of a pair point towards each other. If they overlap, the end of each mate is the reverse complement of a
//! part of the other mate. Some seeds near the end of each mate are searched in the other one; seeds that are tandem
//! repeats are skipped.

use genuma_reads::packed_bases::{CodesAndPackedBases, PackedBases, WORD_BASES, reverse_complement_16_bases};

/// Length of a seed in bases.
const SEED_BASES: usize = 16;
/// Number of seeds that are tried, from the end of each mate backwards.
const NUM_SEEDS: usize = 3;
/// Minimum overlap of two mates, in bases.
pub(crate) const MIN_OVERLAP_BASES: usize = 24;
/// Longest unit, in bases, of a tandem repeat that is not used as a seed, because a repeat matches itself at many
/// offsets.
const MAX_REPEAT_UNIT_BASES: usize = 6;

/// Returns the fragment length in bases of two mates, each given as bases and quality characters; `None` if no clear
/// overlap is found.
pub(crate) fn fragment_length_from_overlap(
    one: (&CodesAndPackedBases, &[u8]),
    two: (&CodesAndPackedBases, &[u8]),
) -> Option<usize> {
    fragment_from_end_seeds(one, two).or_else(|| fragment_from_end_seeds(two, one))
}

/// Returns the fragment length that follows if the reverse complement of one of the last seeds of the first mate is
/// found in the second mate and the mates agree there; `None` otherwise.
fn fragment_from_end_seeds(
    (one, first): (&CodesAndPackedBases, &[u8]),
    (two, second): (&CodesAndPackedBases, &[u8]),
) -> Option<usize> {
    let (len, read) = (one.codes().len(), two.packed_bases());
    let starts = (two.codes().len() + 1).checked_sub(SEED_BASES).filter(|_| len >= MIN_OVERLAP_BASES)?;
    let seeds = (1..=NUM_SEEDS).filter_map(|i| len.checked_sub(i * SEED_BASES));
    seeds.into_iter().find_map(|from| {
        let seed = seed(one.packed_bases(), from);
        if is_tandem_repeat(seed) {
            return None;
        }
        let wanted = reverse_complement_16_bases(seed);
        // The last base of the seed faces the first base of the match.
        let found = |at: usize| (at < starts).then_some(at + from + SEED_BASES);
        find_seed(read, starts, wanted, |at| {
            found(at).filter(|&fragment| do_mates_agree([one.codes(), two.codes()], [first, second], fragment))
        })
    })
}

#[inline(always)]
fn seed(read: PackedBases<'_>, at: usize) -> u32 {
    (read.word_from_base(at) >> (2 * (WORD_BASES - SEED_BASES))) as u32
}

/// Calls `accept` with each position at which the read contains the seed, and returns the first result that is not
/// `None`.
fn find_seed(
    read: PackedBases<'_>,
    starts: usize,
    seed: u32,
    accept: impl Fn(usize) -> Option<usize>,
) -> Option<usize> {
    for at in (0..starts).step_by(WORD_BASES) {
        let sixteens = read.next_32_sixteen_mers(at);
        if sixteens.iter().fold(u32::MAX, |least, &sixteen| least.min(sixteen ^ seed)) > 0 {
            continue;
        }
        let here = (at..).zip(sixteens).filter(|(_, sixteen)| *sixteen == seed);
        if let Some(answer) = here.into_iter().find_map(|(at, _)| accept(at)) {
            return Some(answer);
        }
    }
    None
}

/// Whether a seed is a tandem repeat with at most two deviating bases.
fn is_tandem_repeat(seed: u32) -> bool {
    (1..=MAX_REPEAT_UNIT_BASES).any(|unit| {
        let differ = (seed ^ (seed << (2 * unit))) >> (2 * unit);
        ((differ | differ >> 1) & 0x5555_5555).count_ones() <= 2
    })
}

/// Positions of the first mate that overlap the second mate, for mates of `one` and `two` bases in a fragment of
/// `fragment` bases: position `i` overlaps position `fragment - 1 - i` of the second mate.
pub(crate) fn first_mate_overlap_positions(one: usize, two: usize, fragment: usize) -> std::ops::Range<usize> {
    fragment.saturating_sub(two)..fragment.min(one)
}

/// Smallest quality character (Phred + 33) of a base that counts as good: Phred 20.
const MIN_GOOD_QUALITY_CHAR: u8 = b'!' + 20;

/// Whether the mates agree in their overlap: at most one base in eight differs, and at most one in 25 of the good
/// bases, plus one. The second limit rejects false overlaps of repeat copies, which differ in good bases too.
fn do_mates_agree([one, two]: [&[u8]; 2], [first, second]: [&[u8]; 2], fragment: usize) -> bool {
    let facing = first_mate_overlap_positions(one.len(), two.len(), fragment);
    if facing.len() < MIN_OVERLAP_BASES {
        return false;
    }
    let (all, mut differing, mut good, mut good_differing) = (facing.len(), 0, 0, 0);
    for i in facing {
        let j = fragment - 1 - i;
        let (differs, is_good) = (one[i] != two[j] ^ 3, first[i].min(second[j]) >= MIN_GOOD_QUALITY_CHAR);
        differing += usize::from(differs);
        good += usize::from(is_good);
        good_differing += usize::from(differs && is_good);
    }
    differing * 8 <= all && good_differing * 25 <= good + 25
}

#[cfg(test)]
mod tests {
    use super::*;
    use genuma_reads::dna;

    fn fragment_length(one: &[u8], two: &[u8]) -> Option<usize> {
        let codes = |seq: &[u8]| {
            let mut codes = CodesAndPackedBases::default();
            codes.encode_bases(seq, seq, 0);
            codes
        };
        super::fragment_length_from_overlap((&codes(one), one), (&codes(two), two))
    }

    #[test]
    fn fragments_of_all_lengths_with_enough_overlap_are_measured() {
        let mut seed = 3u64;
        let mut base = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(seed >> 62) as usize]
        };
        for length in 30..330 {
            let mut dna: Vec<u8> = (0..length).map(|_| base()).collect();
            let mut turned = dna::reverse_complement(&dna);
            dna.truncate(150);
            turned.truncate(120);
            // An error in the last seed of each mate.
            let (ends, wrong) = ([dna.len(), turned.len()].map(|len| len - 3), length % 3);
            if wrong == 0 && length > 120 {
                dna[ends[0]] = dna::complement(dna[ends[0]]);
                turned[ends[1]] = dna::complement(turned[ends[1]]);
            }
            let measured = fragment_length(&dna, &turned);
            let overlap = (dna.len() + turned.len()).saturating_sub(length);
            match overlap {
                0..MIN_OVERLAP_BASES => assert_eq!(measured, None, "{length}"),
                // After the errors no whole seed is left.
                MIN_OVERLAP_BASES..36 if wrong == 0 => assert!(measured.is_none_or(|m| m == length), "{length}"),
                _ => assert_eq!(measured, Some(length)),
            }
        }
    }

    #[test]
    fn repeats_and_unrelated_mates_do_not_overlap() {
        let mut seed = 9u64;
        let mut base = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(seed >> 62) as usize]
        };
        let mut random = |n: usize| (0..n).map(|_| base()).collect::<Vec<u8>>();
        let (left, right, repeat) = (random(90), random(90), b"CAG".repeat(20));
        let ends_in_repeat = [left.clone(), repeat.clone()].concat();
        let turned = dna::reverse_complement(&[repeat, right].concat());
        assert_eq!(fragment_length(&ends_in_repeat, &turned), None);
        assert_eq!(fragment_length(&left, &random(90)), None);
        assert_eq!(fragment_length(b"", &left), None);
        assert_eq!(fragment_length(b"ACG", b"CGT"), None);
    }
}
