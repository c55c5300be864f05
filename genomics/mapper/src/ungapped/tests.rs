use std::sync::LazyLock;

use genuma_machine::simd_and_prefetch::SimdLevel;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::bases::{BASE_LETTERS, PackedReadBatch, is_acgt, pack_letters_into_word};
use crate::index::tests::Dice;

/// 3000 random bases, as letters and packed.
static REFERENCE: LazyLock<(Vec<u8>, Vec<u64>)> = LazyLock::new(|| {
    let letters = Dice(3).bases(3000);
    let mut words: Vec<u64> = letters.chunks(BASES_PER_WORD).map(pack_letters_into_word).collect();
    words.extend([0; 70]);
    (letters, words)
});

/// A read copied from base `at` with some letters changed, on one strand, and its origin.
fn read(longest: usize) -> impl Strategy<Value = (usize, Vec<u8>)> {
    let letter = prop_oneof![6 => (0..4usize).prop_map(|i| BASE_LETTERS[i]), 1 => Just(b'N')];
    (0..900usize, 1..=longest, vec((0..2000usize, letter), 0..40)).prop_map(|(at, length, changes)| {
        let mut letters = REFERENCE.0[at..at + length].to_vec();
        for (i, letter) in changes {
            letters[i % length] = letter;
        }
        (at, letters)
    })
}

/// Positions at which `letters` differs from the reference from `at` on.
fn naive(reference: &[u8], at: usize, letters: &[u8]) -> Vec<usize> {
    (0..letters.len()).filter(|&i| !is_acgt(letters[i]) || reference.get(at + i) != Some(&letters[i])).collect()
}

fn packed(letters: &[u8], reverse: bool) -> PackedReadBatch {
    let mut packed = PackedReadBatch::default();
    packed.push_read(&if reverse { genuma_reads::dna::reverse_complement(letters) } else { letters.to_vec() });
    // There are words after the last one.
    packed.push_read(&[b'C'; 8 * BASES_PER_WORD]);
    packed
}

/// Net score of a segment of a read, and the best score of a part of it.
fn worth(
    differing: &[bool],
    letters: &[u8],
    from: usize,
    to: usize,
    reverse: bool,
    options: &ScoringOptions,
) -> (i32, i32) {
    let [left, right] = options.left_and_right_clip_penalties(reverse);
    let (mut score, mut part, mut best) = (0, 0, 0);
    for i in from..to {
        let of_base = match differing[i] {
            false => options.match_score,
            true if is_acgt(letters[i]) => -options.mismatch_penalty,
            true => AMBIGUOUS_BASE_SCORE,
        };
        score += of_base;
        part = (part + of_base).max(0);
        best = best.max(part);
    }
    let clipped = if from > 0 { left } else { 0 } + if to < letters.len() { right } else { 0 };
    (score - clipped, best)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn differing_bases_are_those_of_a_naive_loop(
        (at, letters) in read(MAX_READ_BP),
        off in prop_oneof![4 => Just(0usize), 1 => 1..40usize],
        reverse: bool,
        range in (0..2000usize, 0..2000usize),
    ) {
        let (reference, words) = &*REFERENCE;
        let (packed, at) = (packed(&letters, reverse), at + off);
        let differing = naive(reference, at, &letters);
        for &vectors in SimdLevel::available_simd_levels() {
            // The previous content of the buffer does not matter.
            let mut masks = MismatchMasks([u64::MAX; MAX_READ_WORDS]);
            let strand = packed.read_strand(0, reverse);
            let count = vectors.run_at_level(
                #[inline(always)]
                || mask_and_count_mismatches(words, at as u64, strand, &mut masks),
            );
            prop_assert_eq!(count as usize, differing.len());
            prop_assert_eq!(&mismatch_positions(&masks, 0, letters.len()).collect::<Vec<_>>(), &differing);
            let [from, to] = [range.0, range.1].map(|i| i.min(letters.len()));
            let some: Vec<usize> = differing.iter().copied().filter(|i| (from..to).contains(i)).collect();
            prop_assert_eq!(mismatch_positions(&masks, from, to).collect::<Vec<_>>(), some);
            for seed in 0..(letters.len() + 1).saturating_sub(crate::syncmers::SEED_BP) {
                let same = differing.iter().all(|i| !(seed..seed + crate::syncmers::SEED_BP).contains(i));
                prop_assert_eq!(seed_matches_reference(&masks, seed), same);
            }
        }
    }

    #[test]
    fn no_stretch_is_better_than_the_best(
        (at, letters) in prop_oneof![read(120), read(6)],
        off in prop_oneof![3 => Just(0usize), 1 => 1..40usize],
        reverse: bool,
        ends in (0..2usize, 0..20usize, 0..20usize),
        options in prop_oneof![
            2 => Just(ScoringOptions::default()),
            1 => Just(ScoringOptions { clip_penalty: [0, 0], ..ScoringOptions::default() }),
            1 => Just(ScoringOptions { match_score: 2, mismatch_penalty: 3, clip_penalty: [40, 3], ..ScoringOptions::default() }),
            1 => Just(ScoringOptions { mismatch_penalty: 0, clip_penalty: [3, 100], ..ScoringOptions::default() }),
        ],
    ) {
        let words = &REFERENCE.1;
        let packed = packed(&letters, reverse);
        let length = letters.len();
        let inside = match ends {
            (0, ..) => (0, length),
            (_, first, behind) => (first.min(length - 1), (length - behind.min(length - 1)).max(first.min(length - 1) + 1)),
        };
        let mut masks = MismatchMasks::default();
        let strand = packed.read_strand(0, reverse);
        mask_and_count_mismatches(words, (at + off) as u64, strand, &mut masks);
        let mut differing = vec![false; length];
        mismatch_positions(&masks, 0, length).for_each(|i| differing[i] = true);
        let all = (inside.0..inside.1).flat_map(|from| (from + 1..=inside.1).map(move |to| (from, to)));
        let most = all.map(|(from, to)| worth(&differing, &letters, from, to, reverse, &options).0).max().unwrap();
        for &vectors in SimdLevel::available_simd_levels() {
            let (total, score, from, to) = vectors.run_at_level(
                #[inline(always)]
                || find_best_ungapped_segment(&masks, strand, inside, reverse, &options),
            );
            // There may be no segment with a positive score.
            if from < to {
                prop_assert!(inside.0 <= from && to <= inside.1);
                prop_assert_eq!(worth(&differing, &letters, from, to, reverse, &options), (total, score));
                // Segments that score less than a clip penalty are not distinguished.
                let [left, _] = options.left_and_right_clip_penalties(reverse);
                prop_assert!(total == most || most <= -left, "{} of {}", total, most);
            } else {
                prop_assert!((inside.0..inside.1).all(|i| differing[i]), "an empty stretch {}, {}", total, most);
            }
        }
    }

    #[test]
    fn the_best_two_places_of_a_stretch_are_those_of_a_naive_loop(
        (at, letters) in read(300),
        before in 0..400usize,
        behind in 1..400usize,
        reverse: bool,
    ) {
        let (reference, words) = &*REFERENCE;
        let packed = packed(&letters, reverse);
        let (from, to) = (at.saturating_sub(before), at + behind);
        let counts: Vec<(u32, u64)> =
            (from..to).map(|at| (naive(reference, at, &letters).len() as u32, at as u64)).collect();
        let best = *counts.iter().min().unwrap();
        let next = counts.iter().filter(|found| **found != best && found.0 <= best.0 + MAX_EXTRA_MISMATCHES).min().copied();
        for &vectors in SimdLevel::available_simd_levels() {
            let mut buffer = vec![1; 5];
            let found = vectors.run_at_level(
                #[inline(always)]
                || {
                    let strand = packed.read_strand(0, reverse);
                    find_two_best_ungapped_positions(words, strand, from as u64, to as u64, &mut buffer)
                },
            );
            prop_assert_eq!(found, [Some(best), next]);
        }
    }
}
