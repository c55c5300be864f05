use std::sync::LazyLock;

use genuma_machine::processor::Vectors;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::bases::{LETTERS, Packed, is_base, pack_word};
use crate::index::tests::Dice;

/// 3000 random bases and their words.
static REFERENCE: LazyLock<(Vec<u8>, Vec<u64>)> = LazyLock::new(|| {
    let letters = Dice(3).bases(3000);
    let mut words: Vec<u64> = letters.chunks(WORD).map(pack_word).collect();
    words.extend([0; 70]);
    (letters, words)
});

/// A read copied from base `at` with some letters changed, in one direction, and where it was copied from.
fn read(longest: usize) -> impl Strategy<Value = (usize, Vec<u8>)> {
    let letter = prop_oneof![6 => (0..4usize).prop_map(|i| LETTERS[i]), 1 => Just(b'N')];
    (0..900usize, 1..=longest, vec((0..2000usize, letter), 0..40)).prop_map(|(at, length, changes)| {
        let mut letters = REFERENCE.0[at..at + length].to_vec();
        for (i, letter) in changes {
            letters[i % length] = letter;
        }
        (at, letters)
    })
}

/// Which bases of `letters` differ from those of the reference from `at` on.
fn naive(reference: &[u8], at: usize, letters: &[u8]) -> Vec<usize> {
    (0..letters.len())
        .filter(|&i| !is_base(letters[i]) || reference.get(at + i) != Some(&letters[i]))
        .collect()
}

fn packed(letters: &[u8], reverse: bool) -> Packed {
    let mut packed = Packed::default();
    packed.push(&if reverse { genuma_reads::dna::revcomp(letters) } else { letters.to_vec() });
    // Something is behind it.
    packed.push(&[b'C'; 8 * WORD]);
    packed
}

/// What a stretch of a read is worth, and less its clips.
fn worth(
    differing: &[bool],
    letters: &[u8],
    from: usize,
    to: usize,
    reverse: bool,
    options: &Options,
) -> (i32, i32) {
    let [left, right] = options.clips(reverse);
    let score = (from..to)
        .map(|i| match differing[i] {
            false => options.equal,
            true if is_base(letters[i]) => -options.differs,
            true => AMBIGUOUS,
        })
        .sum::<i32>();
    let clipped = if from > 0 { left } else { 0 } + if to < letters.len() { right } else { 0 };
    (score - clipped, score)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn differing_bases_are_those_of_a_naive_loop(
        (at, letters) in read(LONGEST),
        off in prop_oneof![4 => Just(0usize), 1 => 1..40usize],
        reverse: bool,
        range in (0..2000usize, 0..2000usize),
    ) {
        let (reference, words) = &*REFERENCE;
        let (packed, at) = (packed(&letters, reverse), at + off);
        let differing = naive(reference, at, &letters);
        for &vectors in Vectors::all() {
            // What was there before does not matter.
            let mut masks = Masks([u64::MAX; WORDS]);
            let strand = packed.strand(0, reverse);
            let count = vectors.run(
                #[inline(always)]
                || differences(words, at as u64, strand, &mut masks),
            );
            prop_assert_eq!(count as usize, differing.len());
            prop_assert_eq!(&places(&masks, 0, letters.len()).collect::<Vec<_>>(), &differing);
            let [from, to] = [range.0, range.1].map(|i| i.min(letters.len()));
            let some: Vec<usize> = differing.iter().copied().filter(|i| (from..to).contains(i)).collect();
            prop_assert_eq!(places(&masks, from, to).collect::<Vec<_>>(), some);
            for seed in 0..(letters.len() + 1).saturating_sub(crate::syncmers::SEED) {
                let same = differing.iter().all(|i| !(seed..seed + crate::syncmers::SEED).contains(i));
                prop_assert_eq!(has_seed(&masks, seed), same);
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
            2 => Just(Options::default()),
            1 => Just(Options { clip: [0, 0], ..Options::default() }),
            1 => Just(Options { equal: 2, differs: 3, clip: [40, 3], ..Options::default() }),
            1 => Just(Options { differs: 0, clip: [3, 100], ..Options::default() }),
        ],
    ) {
        let words = &REFERENCE.1;
        let packed = packed(&letters, reverse);
        let length = letters.len();
        let inside = match ends {
            (0, ..) => (0, length),
            (_, first, behind) => (first.min(length - 1), (length - behind.min(length - 1)).max(first.min(length - 1) + 1)),
        };
        let mut masks = Masks::default();
        let strand = packed.strand(0, reverse);
        differences(words, (at + off) as u64, strand, &mut masks);
        let mut differing = vec![false; length];
        places(&masks, 0, length).for_each(|i| differing[i] = true);
        let all = (inside.0..inside.1).flat_map(|from| (from + 1..=inside.1).map(move |to| (from, to)));
        let most = all.map(|(from, to)| worth(&differing, &letters, from, to, reverse, &options).0).max().unwrap();
        for &vectors in Vectors::all() {
            let (total, score, from, to) = vectors.run(
                #[inline(always)]
                || best_stretch(&masks, strand, inside, reverse, &options),
            );
            // There may be nothing that is worth anything.
            if from < to {
                prop_assert!(inside.0 <= from && to <= inside.1);
                prop_assert_eq!(worth(&differing, &letters, from, to, reverse, &options), (total, score));
                // What is worth less than a clip is not told apart.
                prop_assert!(total == most || most <= -options.clips(reverse)[0], "{} of {}", total, most);
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
        let next = counts.iter().filter(|found| **found != best && found.0 <= best.0 + NEAR).min().copied();
        for &vectors in Vectors::all() {
            let mut buffer = vec![1; 5];
            let found = vectors.run(
                #[inline(always)]
                || scan(words, packed.strand(0, reverse), from as u64, to as u64, &mut buffer),
            );
            prop_assert_eq!(found, [Some(best), next]);
        }
    }
}
