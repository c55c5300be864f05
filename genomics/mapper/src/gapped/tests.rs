use std::sync::LazyLock;

use genuma_machine::simd_and_prefetch::SimdLevel;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::bases::{BASE_LETTERS, PackedReadBatch, is_acgt};
use crate::index::Index;
use crate::index::tests::{Dice, Held, index};

/// Two short sequences: random, then a tandem repeat of three bases, then random; and a homopolymer within another.
static REFERENCE: LazyLock<(Vec<Vec<u8>>, Index<Held>)> = LazyLock::new(|| {
    let mut dice = Dice(1);
    let first = [dice.bases(300), b"CAG".repeat(30), dice.bases(200)].concat();
    let second = [dice.bases(200), vec![b'A'; 60], dice.bases(240)].concat();
    let named = [("first", &first), ("second", &second)].map(|(name, letters)| (name.to_owned(), letters.clone()));
    let index = index(&named);
    (vec![first, second], index)
});

/// Changes that are applied to a copied read.
#[derive(Debug, Clone)]
enum Edit {
    Change(u8),
    InsertSizeModel(Vec<u8>),
    Delete(usize),
}

fn letter() -> impl Strategy<Value = u8> {
    prop_oneof![16 => (0..4usize).prop_map(|i| BASE_LETTERS[i]), 1 => Just(b'N')]
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => letter().prop_map(Edit::Change),
        1 => vec(letter(), 1..=35).prop_map(Edit::InsertSizeModel),
        1 => (1..=35usize).prop_map(Edit::Delete),
        1 => vec(letter(), 1..=3).prop_map(Edit::InsertSizeModel),
        1 => (1..=3usize).prop_map(Edit::Delete),
    ]
}

/// A read with its position on the reference, and a gapped alignment job for it.
#[derive(Debug, Clone)]
struct Case {
    letters: Vec<u8>,
    job: GappedJob,
}

fn case() -> impl Strategy<Value = Case> {
    let read = (0..2usize, 0..600usize, 1..=300usize, vec((0..400usize, edit()), 0..8));
    let around = (vec(letter(), 0..12), vec(letter(), 0..12), any::<bool>());
    (read, around, -10..10i64, 0..=35i64, any::<prop::sample::Index>()).prop_map(
        |((contig, from, length, edits), (before, behind, reverse), jitter, side, anchor)| {
            let (contigs, index) = &*REFERENCE;
            let source = &contigs[contig];
            let from = from % source.len();
            let mut letters = source[from..source.len().min(from + length)].to_vec();
            for (at, edit) in edits {
                let at = at % letters.len().max(1);
                match edit {
                    _ if letters.is_empty() => {}
                    Edit::Change(letter) => letters[at] = letter,
                    Edit::InsertSizeModel(more) => drop(letters.splice(at..at, more)),
                    Edit::Delete(n) => drop(letters.drain(at..letters.len().min(at + n))),
                }
            }
            // Some reads extend beyond the end of the sequence.
            let letters = [before.clone(), letters, behind, vec![b'T']].concat();
            let letters = letters[..letters.len().min(300)].to_vec();
            let bounds = index.contigs()[contig].start..index.contigs()[contig].packed_end();
            let length = letters.len() as u64;
            let middle = bounds.start as i64 + from as i64 - before.len() as i64 + jitter;
            let middle = (middle as u64).clamp(bounds.start - length + 1, bounds.end - 1);
            let least = bounds.start.saturating_sub(middle);
            let most = length.min(bounds.end - middle);
            let job = GappedJob {
                read: 0,
                place: 0,
                at: middle - side as u64,
                anchor: (least + anchor.index((most - least) as usize) as u64) as u16,
                reverse,
                length: length as u16,
                width: (2 * side + 1) as u8,
                net_score: i32::MIN,
                covers_all_gaps: true,
            };
            Case { letters, job }
        },
    )
}

fn options() -> impl Strategy<Value = ScoringOptions> {
    let one = |equal, differs, open, extend, clip| ScoringOptions {
        match_score: equal,
        mismatch_penalty: differs,
        gap_open: open,
        gap_extend: extend,
        clip_penalty: clip,
        ..ScoringOptions::default()
    };
    prop_oneof![
        3 => Just(ScoringOptions::default()),
        1 => Just(one(1, 1, [1, 1], [1, 1], [0, 0])),
        1 => Just(one(2, 8, [12, 20], [2, 1], [10, 3])),
        1 => Just(one(1, 4, [6, 2], [1, 3], [100, 7])),
        1 => Just(one(8, 1000, [1000, 900], [1000, 8], [1000, 1000])),
        1 => Just(one(3, 2, [0, 0], [1, 2], [0, 5])),
        1 => Just(one(1, 4, [0, 5], [0, 1], [5, 5])),
        1 => Just(one(1, 4, [6, 6], [0, 0], [5, 5])),
    ]
}

/// The alignments of the cases with their CIGAR operations, from one call.
fn found(
    index: &Index<Held>,
    options: &ScoringOptions,
    vectors: SimdLevel,
    cases: &[Case],
) -> Vec<Option<(Placement, Vec<u32>)>> {
    let (view, mut packed, mut aligner) = (index.view(), PackedReadBatch::default(), GappedAligner::default());
    let mut jobs = Vec::new();
    for (i, case) in cases.iter().enumerate() {
        let turned = genuma_reads::dna::reverse_complement(&case.letters);
        packed.push_read(if case.job.reverse { &turned } else { &case.letters });
        jobs.push(GappedJob { read: i as u32, place: 7 + i as u32, ..case.job });
    }
    let (mut cigars, mut all) = (vec![99], vec![None; cases.len()]);
    vectors.run_at_level(
        #[inline(always)]
        || {
            let strand = |read: u32, reverse| packed.read_strand(read as usize, reverse);
            aligner.align_jobs(&view, options, &mut jobs, &mut cigars, strand, |found| {
                assert_eq!(found.place, 7 + found.read);
                all[found.read as usize] = found.better;
            });
        },
    );
    assert!(jobs.is_empty());
    let with_operations = |place: Placement| {
        let at = place.cigar_start as usize;
        (Placement { cigar_start: 0, ..place }, cigars[at..at + usize::from(place.num_cigar_ops)].to_vec())
    };
    all.into_iter().map(|place| place.map(with_operations)).collect()
}

const NEVER: i64 = i64::MIN / 4;

/// Best net scores of the alignments of a case that end before the read does, and of those that reach its end:
/// Gotoh's recurrences over read and reference, within the band.
fn twin(index: &Index<Held>, options: &ScoringOptions, case: &Case) -> (i64, i64) {
    let (view, job) = (index.view(), &case.job);
    let bounds = view.contig_bounds(job.at + u64::from(job.width / 2) + u64::from(job.anchor));
    let (n, width) = (case.letters.len(), usize::from(job.width));
    let m = n + width;
    let [left, right] = options.left_and_right_clip_penalties(job.reverse).map(i64::from);
    let [equal, differs] = [options.match_score, options.mismatch_penalty].map(i64::from);
    let [open, extend] = [options.gap_open, options.gap_extend].map(|both| both.map(i64::from));
    // Row and column 0 are before the first base.
    let none = vec![vec![NEVER; m + 1]; n + 1];
    let (mut best, mut deleted, mut inserted) = (none.clone(), none.clone(), none);
    let (mut within, mut to_end) = (NEVER, NEVER);
    for i in 1..=n {
        for j in i..(i + width).min(m + 1) {
            let at = job.at + j as u64 - 1;
            if !bounds.contains(&at) {
                continue;
            }
            let letter = case.letters[i - 1];
            let score = match letter {
                _ if !is_acgt(letter) => i64::from(AMBIGUOUS_BASE_SCORE),
                _ if BASE_LETTERS[usize::from(view.base_code_at(at))] == letter => equal,
                _ => -differs,
            };
            let start = if i == 1 { 0 } else { -left };
            deleted[i][j] = (best[i][j - 1] - open[0]).max(deleted[i][j - 1]) - extend[0];
            inserted[i][j] = (best[i - 1][j] - open[1]).max(inserted[i - 1][j]) - extend[1];
            best[i][j] = (best[i - 1][j - 1].max(start) + score).max(deleted[i][j]).max(inserted[i][j]);
            if i < n {
                within = within.max(best[i][j] - right);
            } else {
                to_end = to_end.max(best[i][j]);
            }
        }
    }
    (within, to_end)
}

/// Best sum of consecutive scores.
fn best_part(scores: &[i32]) -> i32 {
    let (mut best, mut sum, mut least) = (0, 0, 0);
    for score in scores {
        sum += score;
        best = best.max(sum - least);
        least = least.min(sum);
    }
    best
}

/// Asserts that the CIGAR operations of a placement match its other fields.
fn consistent(index: &Index<Held>, options: &ScoringOptions, case: &Case, place: &Placement, operations: &[u32]) {
    let (view, length) = (index.view(), case.letters.len());
    let whole = [u32::from(place.to - place.from) << 4 | CIGAR_MATCH];
    let operations = if operations.is_empty() { &whole } else { operations };
    assert!(operations.windows(2).all(|two| two[0] & 15 != two[1] & 15), "{operations:?} are merged");
    assert!(operations.iter().all(|operation| operation >> 4 > 0));
    assert_eq!(operations[0] & 15, CIGAR_MATCH);
    let (mut at, mut target, mut scores) = (usize::from(place.from), place.ref_start(), Vec::new());
    for operation in operations {
        let n = (operation >> 4) as i32;
        match operation & 15 {
            CIGAR_INSERTION => {
                at += n as usize;
                scores.push(-options.gap_open[1] - n * options.gap_extend[1]);
            }
            CIGAR_DELETION => {
                target += n as u64;
                scores.push(-options.gap_open[0] - n * options.gap_extend[0]);
            }
            kind => {
                assert_eq!(kind, CIGAR_MATCH);
                for _ in 0..n {
                    let letter = case.letters[at];
                    scores.push(match letter {
                        _ if !is_acgt(letter) => AMBIGUOUS_BASE_SCORE,
                        _ if BASE_LETTERS[usize::from(view.base_code_at(target))] == letter => options.match_score,
                        _ => -options.mismatch_penalty,
                    });
                    (at, target) = (at + 1, target + 1);
                }
            }
        }
    }
    assert_eq!((at, target), (usize::from(place.to), place.ref_end()));
    assert_eq!(place.score, best_part(&scores));
    let [left, right] = options.left_and_right_clip_penalties(place.reverse);
    let clipped = if place.from > 0 { left } else { 0 } + if at < length { right } else { 0 };
    assert_eq!(place.net_score, scores.iter().sum::<i32>() - clipped);
    let middle = case.job.at + u64::from(case.job.width / 2);
    let bounds = view.contig_bounds(middle + u64::from(case.job.anchor));
    assert!(bounds.start <= place.ref_start() && place.ref_end() <= bounds.end);
    let band = case.job.at..case.job.at + u64::from(case.job.width);
    assert!(band.contains(&place.left) && band.contains(&place.right), "{place:?} is not in {band:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn each_alignment_is_the_best_of_its_band_and_what_its_operations_say(
        cases in vec(case(), 1..50),
        options in options(),
    ) {
        prop_assert_eq!(options.validation_error(), None);
        let index = &REFERENCE.1;
        let together = found(index, &options, SimdLevel::available_simd_levels()[0], &cases);
        for (case, found) in cases.iter().zip(&together) {
            let (within, to_end) = twin(index, &options, case);
            let (place, operations) = found.as_ref().unwrap();
            prop_assert_eq!(i64::from(place.net_score), within.max(to_end));
            prop_assert_eq!(usize::from(place.to) == case.letters.len(), to_end > within);
            consistent(index, &options, case, place, operations);
        }
        for &vectors in SimdLevel::available_simd_levels() {
            prop_assert_eq!(&found(index, &options, vectors, &cases), &together);
        }
        for (case, together) in cases.iter().zip(&together) {
            let alone = found(index, &options, SimdLevel::widest_available(), std::slice::from_ref(case));
            prop_assert_eq!(&alone[0], together, "one by one");
        }
    }
}

#[test]
fn long_reads_with_the_largest_scores_do_not_overflow() {
    let mut dice = Dice(2);
    let letters = dice.bases(2100);
    let index = index(&[("one".to_owned(), letters.clone())]);
    let options = ScoringOptions {
        match_score: 8,
        mismatch_penalty: 1000,
        gap_open: [1000; 2],
        gap_extend: [1; 2],
        clip_penalty: [1000; 2],
        ..ScoringOptions::default()
    };
    for cut in [0, 1, 35, 70] {
        let mut read = letters[..2000 + cut].to_vec();
        read.drain(900..900 + cut);
        let start = index.contigs()[0].start;
        let job = GappedJob {
            read: 0,
            place: 0,
            at: start - 35,
            anchor: 0,
            reverse: false,
            length: 2000,
            width: 71,
            net_score: i32::MIN,
            covers_all_gaps: true,
        };
        let case = Case { letters: read, job };
        let found = found(&index, &options, SimdLevel::widest_available(), std::slice::from_ref(&case));
        let (place, operations) = found[0].as_ref().unwrap();
        let (within, to_end) = twin(&index, &options, &case);
        assert_eq!(i64::from(place.net_score), within.max(to_end), "{cut}");
        consistent(&index, &options, &case, place, operations);
    }
}

#[test]
fn a_band_is_as_wide_as_what_may_be_better() {
    let options = ScoringOptions::default();
    let place = |total| Placement {
        left: 5000,
        net_score: total,
        max_gapped_score: total + 40,
        anchor: 3,
        ..Placement::default()
    };
    // A gap of one base costs seven.
    for (total, side) in [(100, None), (93, None), (92, Some(1)), (80, Some(13)), (40, Some(35))] {
        let job = GappedJob::for_placement(1, 2, &place(total), 100, false, &options);
        assert_eq!(job.map(|job| (job.at, job.width)), side.map(|side| (5000 - side, 2 * side as u8 + 1)), "{total}");
    }
}
