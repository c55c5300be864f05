//! Where the mates of a pair overlap: how long their fragment is.
//!
//! Mates face each other, so each ends in the reverse complement of a piece of the other one. A few seeds before the end of each mate are
//! looked for in the other; a seed that repeats itself says nothing.

use genuma_reads::packed::{Codes, Packed, WORD, reversed};

/// Bases of a seed.
const SEED: usize = 16;
/// Seeds tried before the end of each mate.
const SEEDS: usize = 3;
/// Fewest bases that have to overlap.
pub const LEAST: usize = 24;
/// Longest unit of a tandem repeat, which overlaps with itself at many places.
const UNIT: usize = 6;

/// Length in bases of the fragment of two mates, with their quality letters; `None` where they do not overlap, or not clearly.
pub fn fragment(one: (&Codes, &[u8]), two: (&Codes, &[u8])) -> Option<usize> {
    by_ends(one, two).or_else(|| by_ends(two, one))
}

/// By the seeds before the end of `one`, in `two`.
fn by_ends((one, first): (&Codes, &[u8]), (two, second): (&Codes, &[u8])) -> Option<usize> {
    let (len, read) = (one.codes().len(), two.packed());
    let starts = (two.codes().len() + 1).checked_sub(SEED).filter(|_| len >= LEAST)?;
    let seeds = (1..=SEEDS).filter_map(|i| len.checked_sub(i * SEED));
    seeds.into_iter().find_map(|from| {
        let seed = seed(one.packed(), from);
        if repeats(seed) {
            return None;
        }
        let wanted = reversed(seed);
        // The last base of the seed faces the first base of what is found.
        let found = |at: usize| (at < starts).then_some(at + from + SEED);
        places(read, starts, wanted, |at| {
            found(at).filter(|&fragment| is_fragment([one.codes(), two.codes()], [first, second], fragment))
        })
    })
}

#[inline(always)]
fn seed(read: Packed<'_>, at: usize) -> u32 {
    (read.word(at) >> (2 * (WORD - SEED))) as u32
}

/// The first answer of `each` for a place where a read has some bases.
fn places(
    read: Packed<'_>,
    starts: usize,
    wanted: u32,
    each: impl Fn(usize) -> Option<usize>,
) -> Option<usize> {
    for at in (0..starts).step_by(WORD) {
        let sixteens = read.sixteens(at);
        if sixteens.iter().fold(u32::MAX, |least, &sixteen| least.min(sixteen ^ wanted)) > 0 {
            continue;
        }
        let here = (at..).zip(sixteens).filter(|(_, sixteen)| *sixteen == wanted);
        if let Some(answer) = here.into_iter().find_map(|(at, _)| each(at)) {
            return Some(answer);
        }
    }
    None
}

/// Whether a seed is a tandem repeat, but for two bases.
fn repeats(seed: u32) -> bool {
    (1..=UNIT).any(|unit| {
        let differ = (seed ^ (seed << (2 * unit))) >> (2 * unit);
        ((differ | differ >> 1) & 0x5555_5555).count_ones() <= 2
    })
}

/// Which bases of `one` face bases of `two` in a fragment: base i faces base `fragment - 1 - i`.
pub fn facing(one: usize, two: usize, fragment: usize) -> std::ops::Range<usize> {
    fragment.saturating_sub(two)..fragment.min(one)
}

/// Letter of a quality from which a base is hardly ever wrong.
const GOOD: u8 = b'!' + 20;

/// Whether the mates agree where they face each other: but for one base in eight, and one in 25 of good quality, as copies of a repeat differ in
/// good bases too.
fn is_fragment([one, two]: [&[u8]; 2], [first, second]: [&[u8]; 2], fragment: usize) -> bool {
    let facing = facing(one.len(), two.len(), fragment);
    if facing.len() < LEAST {
        return false;
    }
    let (all, mut differing, mut good, mut good_differing) = (facing.len(), 0, 0, 0);
    for i in facing {
        let j = fragment - 1 - i;
        let (differs, is_good) = (one[i] != two[j] ^ 3, first[i].min(second[j]) >= GOOD);
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

    fn fragment(one: &[u8], two: &[u8]) -> Option<usize> {
        let codes = |seq: &[u8]| {
            let mut codes = Codes::default();
            codes.load(seq, seq, 0);
            codes
        };
        super::fragment((&codes(one), one), (&codes(two), two))
    }

    #[test]
    fn fragments_of_all_lengths_up_to_the_least_overlap_are_measured() {
        let mut seed = 3u64;
        let mut base = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(seed >> 62) as usize]
        };
        for length in 30..330 {
            let mut dna: Vec<u8> = (0..length).map(|_| base()).collect();
            let mut turned = dna::revcomp(&dna);
            dna.truncate(150);
            turned.truncate(120);
            // A wrong base in the last seed of one, and of the other.
            let (ends, wrong) = ([dna.len(), turned.len()].map(|len| len - 3), length % 3);
            if wrong == 0 && length > 120 {
                dna[ends[0]] = dna::complement(dna[ends[0]]);
                turned[ends[1]] = dna::complement(turned[ends[1]]);
            }
            let measured = fragment(&dna, &turned);
            let overlap = (dna.len() + turned.len()).saturating_sub(length);
            match overlap {
                0..LEAST => assert_eq!(measured, None, "{length}"),
                // Behind the wrong bases no whole seed is left.
                LEAST..36 if wrong == 0 => assert!(measured.is_none_or(|m| m == length), "{length}"),
                _ => assert_eq!(measured, Some(length)),
            }
        }
    }

    #[test]
    fn repeats_and_strangers_do_not_overlap() {
        let mut seed = 9u64;
        let mut base = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(seed >> 62) as usize]
        };
        let mut random = |n: usize| (0..n).map(|_| base()).collect::<Vec<u8>>();
        let (left, right, repeat) = (random(90), random(90), b"CAG".repeat(20));
        let ends_in_repeat = [left.clone(), repeat.clone()].concat();
        let turned = dna::revcomp(&[repeat, right].concat());
        assert_eq!(fragment(&ends_in_repeat, &turned), None);
        assert_eq!(fragment(&left, &random(90)), None);
        assert_eq!(fragment(b"", &left), None);
        assert_eq!(fragment(b"ACG", b"CGT"), None);
    }
}
