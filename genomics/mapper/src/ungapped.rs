//! Compares a read with the reference without gaps, 32 bases at a time, and finds the best-scoring stretch of the read.

use crate::bases::{BASES_PER_WORD, LOW_BIT_OF_EACH_BASE, ReadStrand, low_bits_of_range_in_word};
use crate::index::IndexView;
use crate::options::{AMBIGUOUS_BASE_SCORE, MAX_READ_BP, ScoringOptions};
use crate::placement::Placement;
use crate::syncmers::SEED_BP;

/// Number of words of the longest read.
pub(crate) const MAX_READ_WORDS: usize = MAX_READ_BP.div_ceil(BASES_PER_WORD);

/// Number of words of a short read, which are compared at once.
const SHORT_READ_WORDS: usize = 8;

/// Mismatches of a read at a position of the reference: words in which the lower of the two bits is set for each
/// mismatching base.
#[derive(Debug, Clone)]
pub struct MismatchMasks([u64; MAX_READ_WORDS]);

impl Default for MismatchMasks {
    fn default() -> Self {
        MismatchMasks([0; MAX_READ_WORDS])
    }
}

/// Compares a read with the packed reference bases `words` from position `at` on. Sets `masks` and returns the number
/// of mismatches; an ambiguous base of the read is a mismatch.
#[inline(always)]
pub fn mask_and_count_mismatches(words: &[u64], at: u64, read: ReadStrand<'_>, masks: &mut MismatchMasks) -> u32 {
    let n = read.words.len();
    let (first, shift) = (at as usize / BASES_PER_WORD, 2 * (at as usize % BASES_PER_WORD) as u32);
    if n <= SHORT_READ_WORDS
        && read.ambiguous.is_empty()
        && let Some(bases) = read.words_to_end.first_chunk()
        && let Some(reference) = words[first..].first_chunk()
        && let Some(masks) = masks.0.first_chunk_mut()
    {
        return count_mismatches_in_line(reference, shift, bases, read.length, masks);
    }
    let reference = &words[first..first + n + 1];
    let masks = &mut masks.0[..n];
    let mut count = 0;
    for i in 0..n {
        let here = (reference[i] >> shift) | (reference[i + 1] << 1 << (63 - shift));
        let other = here ^ read.words[i];
        masks[i] = (other | other >> 1) & LOW_BIT_OF_EACH_BASE;
    }
    if let Some(last) = masks.last_mut() {
        *last &= low_bits_of_range_in_word(n - 1, 0, read.length);
    }
    for (mask, odd) in masks.iter_mut().zip(read.ambiguous) {
        *mask |= odd;
    }
    for mask in masks {
        count += mask.count_ones();
    }
    count
}

/// Like [`mask_and_count_mismatches`], for a read of at most eight words, which are compared at once. Words after the
/// last word of the read are masked.
#[inline(always)]
fn count_mismatches_in_line(
    reference: &[u64; SHORT_READ_WORDS + 1],
    shift: u32,
    bases: &[u64; SHORT_READ_WORDS],
    length: usize,
    masks: &mut [u64; SHORT_READ_WORDS],
) -> u32 {
    let mut counts = [0; SHORT_READ_WORDS];
    for i in 0..SHORT_READ_WORDS {
        let here = (reference[i] >> shift) | (reference[i + 1] << 1 << (63 - shift));
        let other = here ^ bases[i];
        let inside = (length as u64).saturating_sub((BASES_PER_WORD * i) as u64).min(BASES_PER_WORD as u64);
        let inside = if inside == 0 { 0 } else { LOW_BIT_OF_EACH_BASE >> (64 - 2 * inside) };
        masks[i] = (other | other >> 1) & inside;
        counts[i] = masks[i].count_ones();
    }
    counts.iter().sum()
}

/// Whether the seed that starts at base `at` of the read has no mismatch.
#[inline(always)]
pub(crate) fn seed_matches_reference(masks: &MismatchMasks, at: usize) -> bool {
    mismatch_positions(masks, at, at + SEED_BP).next().is_none()
}

/// Numbers of the read bases in `from..to` that have a mismatch.
#[inline(always)]
pub fn mismatch_positions(masks: &MismatchMasks, from: usize, to: usize) -> impl Iterator<Item = usize> + '_ {
    (from / BASES_PER_WORD..to.div_ceil(BASES_PER_WORD)).flat_map(move |i| {
        let mut mask = masks.0[i] & low_bits_of_range_in_word(i, from, to);
        std::iter::from_fn(move || {
            (mask != 0).then(|| {
                let at = BASES_PER_WORD * i + mask.trailing_zeros() as usize / 2;
                mask &= mask - 1;
                at
            })
        })
    })
}

/// The best-scoring stretch of a read without gaps, within the range `inside` of bases that are on the reference
/// sequence. Returns the net score (that of the whole stretch minus clip penalties), the score ([`Placement::score`]),
/// the first base and the end (exclusive) of the stretch. `reverse` is set if `read` is a reverse complement.
#[inline(always)]
pub(crate) fn find_best_ungapped_segment(
    masks: &MismatchMasks,
    read: ReadStrand<'_>,
    inside: (usize, usize),
    reverse: bool,
    options: &ScoringOptions,
) -> (i32, i32, usize, usize) {
    let [left, right] = options.left_and_right_clip_penalties(reverse);
    let (first, behind) = inside;
    // Where the reference ends before the read does, bases must be clipped.
    let (begin, end) = (if first > 0 { -left } else { 0 }, if behind < read.length { right } else { 0 });
    let (mut now, mut from, mut last) = (begin, first, first);
    // An empty segment is clipped on both sides.
    let (mut best, mut best_from, mut best_to) = (-left - right, first, first);
    for at in mismatch_positions(masks, first, behind) {
        now += (at - last) as i32 * options.match_score;
        if now - right > best && at > from {
            (best, best_from, best_to) = (now - right, from, at);
        }
        now += mismatch_score(read, at, options);
        last = at + 1;
        if now <= -left {
            (now, from) = (-left, last);
        }
    }
    now += (behind - last) as i32 * options.match_score;
    if now - end > best && from < behind {
        (best, best_from, best_to) = (now - end, from, behind);
    }
    (best, best_local_score(masks, read, best_from, best_to, options), best_from, best_to)
}

/// Best score of a stretch within the bases `from..to` of a read, without gaps and clip penalties.
#[inline(always)]
fn best_local_score(
    masks: &MismatchMasks,
    read: ReadStrand<'_>,
    from: usize,
    to: usize,
    options: &ScoringOptions,
) -> i32 {
    let (mut best, mut now, mut last) = (0, 0, from);
    for at in mismatch_positions(masks, from, to) {
        now += (at - last) as i32 * options.match_score;
        best = best.max(now);
        now = (now + mismatch_score(read, at, options)).max(0);
        last = at + 1;
    }
    best.max(now + (to - last) as i32 * options.match_score)
}

/// Score of base `at` of a read where it differs from the reference.
#[inline(always)]
fn mismatch_score(read: ReadStrand<'_>, at: usize, options: &ScoringOptions) -> i32 {
    let odd = !read.ambiguous.is_empty() && read.ambiguous[at / BASES_PER_WORD] >> (2 * (at % BASES_PER_WORD)) & 1 == 1;
    if odd { AMBIGUOUS_BASE_SCORE } else { -options.mismatch_penalty }
}

/// Upper bound of the ungapped score of a read, from its mismatch masks and without clip penalties. A word of 32 bases
/// that is aligned only in part is counted as if all its matching bases were aligned.
#[inline(always)]
pub(crate) fn ungapped_score_upper_bound(masks: &MismatchMasks, read: ReadStrand<'_>, options: &ScoringOptions) -> i32 {
    let lost =
        options.match_score + if read.ambiguous.is_empty() { options.mismatch_penalty } else { -AMBIGUOUS_BASE_SCORE };
    // Best segment of all words so far, and best segment that ends with the last word.
    let (mut best, mut now) = (0, 0);
    for i in 0..read.words.len() {
        let bases = (read.length - BASES_PER_WORD * i).min(BASES_PER_WORD) as i32 * options.match_score;
        let differing = masks.0[i].count_ones() as i32;
        let part = bases - options.match_score * differing;
        best = best.max(now + part);
        now = part.max(now + bases - lost * differing);
    }
    best
}

/// Range of the read's bases that are on the same reference sequence as base `anchor` of the read, if base 0 is at
/// packed position `at`.
#[inline(always)]
pub(crate) fn read_range_on_contig(view: &IndexView<'_>, at: u64, anchor: usize, length: usize) -> (usize, usize) {
    let bounds = view.contig_bounds(at + anchor as u64);
    let first = bounds.start.saturating_sub(at) as usize;
    let behind = bounds.end.saturating_sub(at).min(length as u64) as usize;
    (first.min(behind), behind)
}

/// Sets alignment range, scores and other fields of a placement to those of the best ungapped stretch of the read,
/// which is computed from `masks`. `neighbour` is set if the read has another diagonal near.
#[inline(always)]
pub(crate) fn set_to_best_ungapped_segment(
    view: &IndexView<'_>,
    masks: &MismatchMasks,
    read: ReadStrand<'_>,
    place: &mut Placement,
    neighbour: bool,
    options: &ScoringOptions,
) {
    let inside = read_range_on_contig(view, place.left, usize::from(place.anchor), read.length);
    let (total, score, from, to) = find_best_ungapped_segment(masks, read, inside, place.reverse, options);
    (place.net_score, place.score) = (total, score);
    (place.from, place.to) = (from as u16, to as u16);
    (place.right, place.num_cigar_ops) = (place.left, 0);
    place.is_on_alt = view.is_on_alt_contig(place.left + u64::from(place.anchor));
    place.max_gapped_score = total + max_gap_gain(masks, read.length, place, neighbour, options);
}

/// Minimum length (bp) of a long run of matching bases: a useful gap is before the first such run or after the last
/// one. Chosen.
const MIN_MATCH_RUN_BP: usize = 16;

/// Maximum number of bases (bp) at an end of the read, beyond a gap, that may contain no seed. Chosen.
const MAX_SEEDLESS_BP: usize = 90;

/// Upper bound of the score that a gap could gain. A useful gap is before the first long run of matching bases or after
/// the last one, because a gap between two runs on one diagonal would have to be undone by another gap. Many bases
/// beyond a gap have seeds of their own, on another diagonal. If no such diagonal is near (`neighbour` is false), a gap
/// before many bases gains nothing.
#[inline(always)]
fn max_gap_gain(
    masks: &MismatchMasks,
    length: usize,
    place: &Placement,
    neighbour: bool,
    options: &ScoringOptions,
) -> i32 {
    let (from, to) = (usize::from(place.from), usize::from(place.to));
    let clips = options.left_and_right_clip_penalties(place.reverse);
    let lost = options.match_score + options.mismatch_penalty;
    let cheapest = options.min_gap_cost();
    let end = |beyond: usize, clipped: usize, clip: i32, differing: i32| {
        if beyond > MAX_SEEDLESS_BP && !neighbour {
            return 0;
        }
        let clip = if clipped > 0 { clip } else { 0 };
        (clipped as i32 * options.match_score + clip + lost * differing - cheapest).max(0)
    };
    let (mut before, mut first) = (0, from);
    // Mismatches since the last run, and the end of that run.
    let (mut behind, mut last, mut run) = (0, from, from);
    for at in mismatch_positions(masks, from, to) {
        if at - last >= MIN_MATCH_RUN_BP {
            (behind, run) = (0, at);
        }
        if run == from && behind == before {
            before += 1;
            first = at + 1;
        }
        behind += 1;
        last = at + 1;
    }
    if to - last >= MIN_MATCH_RUN_BP {
        (behind, run) = (0, to);
    }
    end(first, from, clips[0], before) + end(length - run, length - to, clips[1], behind)
}

/// Finds the two positions in `from..to` at which a read has the fewest mismatches without gaps: number of mismatches
/// and packed position of each. The second is `None` if it has far more mismatches. `counts` is a reusable buffer.
#[inline(always)]
pub(crate) fn find_two_best_ungapped_positions(
    words: &[u64],
    read: ReadStrand<'_>,
    from: u64,
    to: u64,
    counts: &mut Vec<u32>,
) -> [Option<(u32, u64)>; 2] {
    let n = read.words.len();
    let last = low_bits_of_range_in_word(n - 1, 0, read.length);
    let (first, behind) = (from as usize / BASES_PER_WORD, (to as usize).div_ceil(BASES_PER_WORD));
    counts.clear();
    counts.resize((behind - first) * BASES_PER_WORD, 0);
    for (word, counts) in (first..behind).zip(counts.as_chunks_mut::<BASES_PER_WORD>().0) {
        let reference = &words[word..word + n + 1];
        for i in 0..n {
            let (low, high, bases) = (reference[i], reference[i + 1], read.words[i]);
            let kept = if i + 1 == n { last } else { LOW_BIT_OF_EACH_BASE };
            let odd = if read.ambiguous.is_empty() { 0 } else { read.ambiguous[i] };
            for (shift, count) in counts.iter_mut().enumerate() {
                let shift = 2 * shift as u64;
                let here = (low >> shift) | (high << 1 << (63 - shift));
                let other = here ^ bases;
                *count += (((other | other >> 1) & kept) | odd).count_ones();
            }
        }
    }
    let base = (first * BASES_PER_WORD) as u64;
    let inside = &counts[(from - base) as usize..(to - base) as usize];
    let least = |without: Option<usize>| {
        let mut least = u32::MAX;
        for (i, &count) in inside.iter().enumerate() {
            least = least.min(if Some(i) == without { u32::MAX } else { count });
        }
        let at = inside.iter().enumerate().position(|(i, &count)| count == least && Some(i) != without);
        at.map(|at| (least, at))
    };
    let best = least(None);
    let next =
        best.and_then(|(differing, at)| least(Some(at)).filter(|next| next.0 <= differing + MAX_EXTRA_MISMATCHES));
    [best, next].map(|found| found.map(|(differing, at)| (differing, from + at as u64)))
}

/// Maximum number of mismatches that the second-best position of a window has more than the best one.
const MAX_EXTRA_MISMATCHES: u32 = 5;

#[cfg(test)]
mod tests;
