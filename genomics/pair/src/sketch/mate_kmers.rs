//! K-mers of a mate whose bases all have good quality.

use genuma_kmers::encode::{kmer_mask, reverse_complement_kmer};
use genuma_reads::packed_bases::{PackedBases, WORD_BASES};
use genuma_reads::{Mate, ReadPair, dna};

use super::hash_key;
use super::params::SketchParams;
use super::pattern::PATTERN_BITS;

/// Hash of the first 16 bases of both mates; it is the same if the mates are swapped.
pub(super) fn hash_read_starts(pair: &ReadPair<'_>, packed: [PackedBases<'_>; 2]) -> u64 {
    const BASES: usize = 16;
    let word = |i: usize| {
        let bases = pair.mates[i].seq.len().min(BASES);
        let word = packed[i].word_from_base(0) >> (2 * (WORD_BASES - BASES)) >> (2 * (BASES - bases));
        hash_key(1 << (2 * bases) | word)
    };
    hash_key(word(0).wrapping_add(word(1))) >> 32
}

/// Appends the keys of the k-mers of a mate whose bases have good quality and whose sampling level is at least `level`.
/// `matches` has one bit per base for the k-mers whose roots match the pattern.
#[inline(always)]
pub(super) fn append_sampled_kmer_keys(
    mate: Mate<'_>,
    packed: PackedBases<'_>,
    params: &SketchParams,
    level: u32,
    matches: &[u64],
    keys: &mut Vec<u64>,
) {
    let (k, root) = (params.k as usize, params.num_root_bases());
    let Some(last) = mate.seq.len().checked_sub(k) else { return };
    let asked = level.min(PATTERN_BITS).min(root as u32 / 2);
    for (word, matches) in matches.iter().enumerate().take(last / 64 + 1) {
        let start = 64 * word;
        let mut matches = matches & (u64::MAX << (63 - (last - start).min(63)));
        let before = keys.len();
        keys.resize(before + matches.count_ones() as usize, 0);
        let mut n = before;
        // Without a branch that depends on the bases, as it could not be predicted.
        while matches != 0 {
            let one = matches.leading_zeros();
            matches ^= 1 << (63 - one);
            let here = start + one as usize;
            let (key, turns) =
                canonical_key_and_is_palindrome(packed.word_from_base(here) >> (2 * (WORD_BASES - k)), params.k);
            keys[n] = key;
            let mut good = has_kmer_min_quality(&mate.qual[here..here + k], params.min_quality) & !turns;
            if packed.has_non_acgt {
                good &= mate.seq[here..here + k].iter().all(|&base| dna::encode_base(base) < 4);
            }
            if level > asked {
                good &= params.sampling_level_of_key(key) >= level;
            }
            n += usize::from(good);
        }
        keys.truncate(n);
    }
}

/// Whether the base qualities of a k-mer (`qual`: Phred + 33) reach the minimum for inner bases and the minimum for its
/// first and last base.
#[inline(always)]
pub(super) fn has_kmer_min_quality(qual: &[u8], [inner, ends]: [u8; 2]) -> bool {
    let [Some(first), Some(last)] = [qual.first(), qual.last()] else { return false };
    let inside = match (qual.first_chunk(), qual.last_chunk()) {
        // The two chunks of 16 letters overlap.
        (Some(begin), Some(end)) => is_every_letter_at_least([begin, end], inner + 33),
        _ => qual.iter().all(|&letter| letter >= inner + 33),
    };
    inside & (*first.min(last) >= ends + 33)
}

/// Whether all of 32 quality characters (Phred + 33, below 128) are at least `lowest`.
#[inline(always)]
fn is_every_letter_at_least(letters: [&[u8; 16]; 2], lowest: u8) -> bool {
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    let lowest = (HIGHEST >> 7) * u64::from(lowest);
    let good = letters.into_iter().fold(HIGHEST, |good, letters| {
        let both = u128::from_le_bytes(*letters);
        // The highest bit of each byte stays set if the letter is not below the lowest.
        [both as u64, (both >> 64) as u64]
            .into_iter()
            .fold(good, |good, eight| good & (eight | ((eight | HIGHEST) - lowest)))
    });
    good == HIGHEST
}

/// Returns the key of a k-mer on the strand on which its root is canonical, and whether the root is its own reverse
/// complement. Such k-mers are not used, because their strand is undefined.
#[inline(always)]
pub(super) fn canonical_key_and_is_palindrome(kmer: u64, k: u32) -> (u64, bool) {
    let bases = k - 2;
    let (first, last) = (kmer >> (2 * (k - 1)), kmer & 3);
    let root = (kmer >> 2) & kmer_mask(bases);
    let reverse = reverse_complement_kmer(root, bases);
    let [one, other] = [root << 4 | first << 2 | last, reverse << 4 | (3 - last) << 2 | (3 - first)];
    (if root < reverse { one } else { other }, root == reverse)
}
