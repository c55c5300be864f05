//! Extends exact matches: first without gaps (X-drop), then with short gaps (banded Gotoh alignment).

use crate::hit::{CigarKind, CigarOp};

/// Score of a pair of equal bases. This score and the following penalties are the defaults of bwa mem.
const MATCH_SCORE: i32 = 1;
/// Score penalty of a pair of different bases.
const MISMATCH_PENALTY: i32 = 4;
/// Score penalty of opening a gap.
const GAP_OPEN_PENALTY: i32 = 6;
/// Score penalty of each base of a gap.
const GAP_EXTEND_PENALTY: i32 = 1;
/// Score bonus for an alignment that reaches the end of the sequence. It counts for the choice of the alignment, but
/// is not part of its score.
const QUERY_END_BONUS: i32 = 5;
/// Score drop below the best score at which the ungapped extension stops (X-drop). Empirical.
const X_DROP: i32 = 20;
/// Score drop below the best score at which the gapped extension stops. Empirical.
const GAPPED_X_DROP: i32 = 40;
/// Longest gap within an alignment (bp). A longer gap splits it into two hits.
const MAX_GAP_BP: usize = 35;
/// Number of diagonals in the band of the gapped extension.
const BAND_COLUMNS: usize = 2 * MAX_GAP_BP + 1;
/// Minimum number of unaligned bases next to a segment for which a gapped extension is tried.
const MIN_OVERHANG_BP: usize = 8;
/// Maximum number of bases at each end of a segment that the gapped extension aligns again, because the ungapped
/// segment may extend past the gap.
const REALIGNED_BP: usize = 24;

/// Score of a matrix cell that no alignment reaches.
const UNREACHABLE: i32 = i32::MIN / 2;

/// A range of bases of a sequence that is aligned to the reference without gaps, and the score of this alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScoredUngappedRange {
    /// First base; `to` is the end (exclusive). Both have 32 bits to save memory.
    from: u32,
    to: u32,
    pub(super) score: i32,
}

impl ScoredUngappedRange {
    /// The range `bases` of a sequence with its alignment score.
    pub(super) fn new(bases: std::ops::Range<usize>, score: i32) -> ScoredUngappedRange {
        ScoredUngappedRange { from: bases.start as u32, to: bases.end as u32, score }
    }

    /// Range of the bases of the sequence.
    pub(super) fn base_range(&self) -> std::ops::Range<usize> {
        self.from as usize..self.to as usize
    }
}

/// Whether two bases are equal and not N.
#[inline(always)]
fn is_match(one: u8, other: u8) -> bool {
    one == other && one != b'N'
}

/// Score of a pair of aligned bases.
#[inline(always)]
fn base_score(one: u8, other: u8) -> i32 {
    if is_match(one, other) { MATCH_SCORE } else { -MISMATCH_PENALTY }
}

/// Number of positions at which two sequences of the same length have equal bases other than N.
pub(super) fn count_matching_bases(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).filter(|(one, other)| is_match(**one, **other)).count()
}

/// Number of bases that are compared at once.
const WORD_BASES: usize = 8;
/// A 64-bit word each of whose bytes is `byte`.
const fn repeat_byte(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; WORD_BASES])
}

/// Compares the eight bases (one per byte) of two words: bit i of the result is set if byte i, counted from the
/// lowest, differs or is N.
#[inline(always)]
fn mismatch_bits(one: u64, other: u64) -> u64 {
    // The highest bit of each byte that is not zero.
    let not_zero = |word: u64| (((word & repeat_byte(0x7f)) + repeat_byte(0x7f)) | word) & repeat_byte(0x80);
    let known = not_zero(one ^ repeat_byte(b'N'));
    let highest = (not_zero(one ^ other) | !known) & repeat_byte(0x80);
    (highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Extends an alignment over pairs of bases, from the first one on or, if `BACKWARDS`, from the last one backwards.
/// Returns the number of pairs with the best score, and that score. `reaches_query_end`: whether the farthest pair is
/// at the end of the sequence; all pairs are then preferred if their score is lower by at most [`QUERY_END_BONUS`].
/// Takes one step per difference and one per [`WORD_BASES`] bases.
#[inline(always)]
fn extend_one_way<const BACKWARDS: bool>(one: &[u8], other: &[u8], reaches_query_end: bool) -> (usize, i32) {
    let n = one.len().min(other.len());
    let load = |bases: &[u8], at: usize| {
        let here = WORD_BASES.min(n - at);
        let bases = if BACKWARDS { &bases[bases.len() - at - here..bases.len() - at] } else { &bases[at..at + here] };
        let word = bases.try_into().unwrap_or_else(|_| {
            let mut word = [0; WORD_BASES];
            if BACKWARDS {
                word[WORD_BASES - here..].copy_from_slice(bases)
            } else {
                word[..here].copy_from_slice(bases)
            }
            word
        });
        if BACKWARDS { u64::from_be_bytes(word) } else { u64::from_le_bytes(word) }
    };
    // `from`: the first pair that is not counted in `sum` yet.
    let (mut sum, mut best, mut length, mut from) = (0, 0, 0, 0);
    for at in (0..n).step_by(WORD_BASES) {
        // Bases beyond the last one compare as equal.
        let mut bits = mismatch_bits(load(one, at), load(other, at));
        while bits != 0 {
            let here = at + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            sum += MATCH_SCORE * (here - from) as i32;
            if sum > best {
                (best, length) = (sum, here);
            }
            sum -= MISMATCH_PENALTY;
            from = here + 1;
            if sum < best - X_DROP {
                return (length, best);
            }
        }
    }
    sum += MATCH_SCORE * (n - from) as i32;
    if sum > best {
        (best, length) = (sum, n);
    }
    if reaches_query_end && sum + QUERY_END_BONUS >= best { (n, sum) } else { (length, best) }
}

/// The best ungapped alignment through base `q` of the sequence and base `t` of the reference.
#[inline(always)]
pub(super) fn extend_ungapped(query: &[u8], reference: &[u8], q: usize, t: usize) -> ScoredUngappedRange {
    let (before, behind) = (q.min(t), (query.len() - q).min(reference.len() - t));
    let ends = q + behind == query.len();
    let (right, gained) = extend_one_way::<false>(&query[q..q + behind], &reference[t..t + behind], ends);
    let (left, more) = extend_one_way::<true>(&query[q - before..q], &reference[t - before..t], before == q);
    ScoredUngappedRange::new(q - left..q + right, gained + more)
}

/// Result of [`extend_gapped`]: the alignment with gaps, its score and its CIGAR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GappedAlignment {
    /// Aligned range of the sequence: start, end (exclusive); 0-based.
    pub(super) query: (usize, usize),
    /// Aligned range of the reference: start, end (exclusive); 0-based.
    pub(super) target: (usize, usize),
    pub(super) score: i32,
    pub(super) cigar: Vec<CigarOp>,
    /// Number of aligned bases that are equal to the reference.
    pub(super) equal: usize,
}

/// Extends an ungapped alignment, now with gaps, at each end beyond which at least [`MIN_OVERHANG_BP`] bases of
/// `query` are unaligned. `stretch` are the aligned bases of `query`, `left` is the reference position of its base 0.
pub(super) fn extend_gapped(
    query: &[u8],
    reference: &[u8],
    left: i64,
    stretch: ScoredUngappedRange,
) -> GappedAlignment {
    let std::ops::Range { start: from, end: to } = stretch.base_range();
    let on = |q: usize| (left + q as i64) as usize;
    let run = longest_match_run(from..to, |q| is_match(query[q], reference[on(q)]));
    let middle = (run.start + run.end) / 2;
    let begin = if from >= MIN_OVERHANG_BP { middle.min(from + REALIGNED_BP) } else { from };
    let end = if query.len() - to >= MIN_OVERHANG_BP { middle.max(to - REALIGNED_BP.min(to - from)) } else { to };
    let (mut ops, mut sum) = (Vec::new(), 0);
    let (mut first, mut start) = (begin, on(begin));
    if begin > from {
        let back: Vec<u8> = query[..begin].iter().rev().copied().collect();
        let reach = start.min(begin + MAX_GAP_BP);
        let before: Vec<u8> = reference[start - reach..start].iter().rev().copied().collect();
        let side = align_banded(&back, &before);
        (first, start, sum) = (begin - side.query, start - side.target, side.score);
        ops.extend(side.ops.into_iter().rev());
    }
    push_cigar_op(&mut ops, CigarKind::Match, end - begin);
    sum += (begin..end).map(|q| base_score(query[q], reference[on(q)])).sum::<i32>();
    let (mut last, mut stop) = (end, on(begin) + (end - begin));
    if end < to {
        let reach = (reference.len() - stop).min(query.len() - end + MAX_GAP_BP);
        let side = align_banded(&query[end..], &reference[stop..stop + reach]);
        (last, stop, sum) = (end + side.query, stop + side.target, sum + side.score);
        side.ops.into_iter().for_each(|op| push_cigar_op(&mut ops, op.kind, op.len as usize));
    }
    let mut equal = 0;
    let (mut q, mut t) = (first, start);
    for op in &ops {
        let n = op.len as usize;
        match op.kind {
            CigarKind::Ins => q += n,
            CigarKind::Del => t += n,
            _ => {
                equal += count_matching_bases(&query[q..q + n], &reference[t..t + n]);
                (q, t) = (q + n, t + n);
            }
        }
    }
    GappedAlignment { query: (first, last), target: (start, stop), score: sum, cigar: ops, equal }
}

fn longest_match_run(within: std::ops::Range<usize>, equal: impl Fn(usize) -> bool) -> std::ops::Range<usize> {
    let (mut best, mut begun) = (within.start..within.start, within.start);
    for q in within {
        if !equal(q) {
            begun = q + 1;
        } else if q + 1 - begun > best.len() {
            best = begun..q + 1;
        }
    }
    best
}

fn push_cigar_op(ops: &mut Vec<CigarOp>, kind: CigarKind, len: usize) {
    match ops.last_mut() {
        Some(last) if last.kind == kind => last.len += len as u32,
        _ if len == 0 => {}
        _ => ops.push(CigarOp { kind, len: len as u32 }),
    }
}

/// Alignment of a prefix of the sequence with a prefix of the reference.
struct BandedAlignment {
    query: usize,
    target: usize,
    score: i32,
    ops: Vec<CigarOp>,
}

/// Traceback bits of a cell of the alignment matrix.
mod trace {
    /// Mask of the bits of a trace byte that store the state from which the best path comes: [`FROM_DIAGONAL`],
    /// [`FROM_DELETION`] or [`FROM_INSERTION`].
    pub(super) const PATH_STATE_MASK: u8 = 3;
    /// The best path comes from the diagonal: two aligned bases.
    pub(super) const FROM_DIAGONAL: u8 = 0;
    /// The best path comes from a deletion.
    pub(super) const FROM_DELETION: u8 = 1;
    /// The best path comes from an insertion.
    pub(super) const FROM_INSERTION: u8 = 2;
    /// Flag: the best deletion that ends here extends a deletion of the cell before.
    pub(crate) const DELETION_EXTENDS: u8 = 4;
    /// Flag: the best insertion that ends here extends an insertion of the cell before.
    pub(crate) const INSERTION_EXTENDS: u8 = 8;
}

/// Best alignment of a prefix of `query` with a prefix of `target`, with affine gaps (Gotoh 1982) in a band around
/// the diagonal.
fn align_banded(query: &[u8], target: &[u8]) -> BandedAlignment {
    let (n, m) = (query.len(), target.len());
    // Column b of row i is reference base i + b - MAX_GAP_BP.
    let mut best_here = [UNREACHABLE; BAND_COLUMNS];
    let mut inserted = [UNREACHABLE; BAND_COLUMNS];
    let mut traces: Vec<[u8; BAND_COLUMNS]> = Vec::with_capacity(n + 1);
    let mut row = [0; BAND_COLUMNS];
    best_here[MAX_GAP_BP] = 0;
    for (gap, b) in (MAX_GAP_BP + 1..BAND_COLUMNS).enumerate().filter(|&(gap, _)| gap < m) {
        best_here[b] = -GAP_OPEN_PENALTY - GAP_EXTEND_PENALTY * (gap as i32 + 1);
        row[b] = trace::FROM_DELETION | if gap > 0 { trace::DELETION_EXTENDS } else { 0 };
    }
    traces.push(row);
    let (mut best, mut at) = (0, (0, MAX_GAP_BP));
    for i in 1..=n {
        let (mut row, mut deleted, mut most) = ([0; BAND_COLUMNS], UNREACHABLE, UNREACHABLE);
        for b in 0..BAND_COLUMNS {
            let Some(j) = (i + b).checked_sub(MAX_GAP_BP).filter(|&j| j <= m) else {
                (best_here[b], inserted[b]) = (UNREACHABLE, UNREACHABLE);
                deleted = UNREACHABLE;
                continue;
            };
            // Still the value of the previous row, where this column is one base further on.
            let diagonal = if j == 0 || best_here[b] <= UNREACHABLE / 2 {
                UNREACHABLE
            } else {
                best_here[b] + base_score(query[i - 1], target[j - 1])
            };
            let mut way = 0;
            let (above, gap_above) =
                if b + 1 < BAND_COLUMNS { (best_here[b + 1], inserted[b + 1]) } else { (UNREACHABLE, UNREACHABLE) };
            inserted[b] = (above - GAP_OPEN_PENALTY - GAP_EXTEND_PENALTY).max(gap_above - GAP_EXTEND_PENALTY);
            if gap_above - GAP_EXTEND_PENALTY > above - GAP_OPEN_PENALTY - GAP_EXTEND_PENALTY {
                way |= trace::INSERTION_EXTENDS;
            }
            let beside = if b > 0 { best_here[b - 1] } else { UNREACHABLE };
            if deleted - GAP_EXTEND_PENALTY > beside - GAP_OPEN_PENALTY - GAP_EXTEND_PENALTY {
                way |= trace::DELETION_EXTENDS;
            }
            deleted = (beside - GAP_OPEN_PENALTY - GAP_EXTEND_PENALTY).max(deleted - GAP_EXTEND_PENALTY);
            let (mut value, mut state) = (diagonal, trace::FROM_DIAGONAL);
            if deleted > value {
                (value, state) = (deleted, trace::FROM_DELETION);
            }
            if inserted[b] > value {
                (value, state) = (inserted[b], trace::FROM_INSERTION);
            }
            row[b] = way | state;
            best_here[b] = value.max(UNREACHABLE);
            most = most.max(value);
            if value > best {
                (best, at) = (value, (i, b));
            }
        }
        traces.push(row);
        if i == n {
            let whole = (0..BAND_COLUMNS).max_by_key(|&b| (best_here[b], std::cmp::Reverse(b.abs_diff(MAX_GAP_BP))));
            if let Some(b) = whole.filter(|&b| best_here[b] + QUERY_END_BONUS >= best) {
                (best, at) = (best_here[b], (n, b));
            }
        }
        if most < best - GAPPED_X_DROP {
            break;
        }
    }
    let (i, b) = at;
    BandedAlignment { query: i, target: i + b - MAX_GAP_BP, score: best, ops: trace_back(&traces, at) }
}

/// Follows the best path from the cell with this row and column back to the first cell of both sequences. Returns the
/// operations of the path in the order of the sequences.
fn trace_back(traces: &[[u8; BAND_COLUMNS]], (mut i, mut b): (usize, usize)) -> Vec<CigarOp> {
    let mut ops = Vec::new();
    let mut state = traces[i][b] & trace::PATH_STATE_MASK;
    while i > 0 || b != MAX_GAP_BP {
        let way = traces[i][b];
        match state {
            trace::FROM_DIAGONAL => {
                push_cigar_op(&mut ops, CigarKind::Match, 1);
                i -= 1;
                state = traces[i][b] & trace::PATH_STATE_MASK;
            }
            trace::FROM_DELETION => {
                push_cigar_op(&mut ops, CigarKind::Del, 1);
                b -= 1;
                if way & trace::DELETION_EXTENDS == 0 {
                    state = traces[i][b] & trace::PATH_STATE_MASK;
                }
            }
            _ => {
                push_cigar_op(&mut ops, CigarKind::Ins, 1);
                (i, b) = (i - 1, b + 1);
                if way & trace::INSERTION_EXTENDS == 0 {
                    state = traces[i][b] & trace::PATH_STATE_MASK;
                }
            }
        }
    }
    ops.reverse();
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::tests::TestRng;

    #[test]
    fn words_are_summed_up_as_bases_are() {
        let naive = |pairs: &mut dyn Iterator<Item = (u8, u8)>, whole: bool| {
            let (mut sum, mut best, mut length, mut n) = (0, 0, 0, 0);
            for (one, other) in pairs {
                n += 1;
                sum += base_score(one, other);
                if sum > best {
                    (best, length) = (sum, n);
                }
                if sum < best - X_DROP {
                    return (length, best);
                }
            }
            if whole && sum + QUERY_END_BONUS >= best { (n, sum) } else { (length, best) }
        };
        let mut rng = TestRng(9);
        for round in 0..4000 {
            let one = {
                let n = rng.below(120);
                rng.bases(n)
            };
            let mut other = one.clone();
            for _ in 0..rng.below(12).min(other.len()) {
                let at = rng.below(other.len());
                other[at] = b"ACGTNR"[rng.below(6)];
            }
            // Unknown bases never match.
            let one: Vec<u8> = one.iter().zip(&other).map(|(a, b)| if *b == b'N' { *b } else { *a }).collect();
            let whole = round % 2 == 0;
            let pairs = || one.iter().copied().zip(other.iter().copied());
            assert_eq!(extend_one_way::<false>(&one, &other, whole), naive(&mut pairs(), whole), "{round}");
            assert_eq!(extend_one_way::<true>(&one, &other, whole), naive(&mut pairs().rev(), whole), "{round}");
        }
    }

    /// Best score of a prefix alignment, computed over all cells.
    fn naive(query: &[u8], target: &[u8]) -> i32 {
        let (n, m) = (query.len(), target.len());
        let mut cells = vec![vec![[UNREACHABLE; 3]; m + 1]; n + 1];
        let (mut best, mut whole) = (0, UNREACHABLE);
        cells[0][0][0] = 0;
        for i in 0..=n {
            for j in 0..=m {
                if i > 0 && j > 0 {
                    let before = cells[i - 1][j - 1].into_iter().max().unwrap();
                    cells[i][j][0] = before + base_score(query[i - 1], target[j - 1]);
                }
                let opened = |cell: [i32; 3], gap: usize| {
                    let others =
                        (0..3).filter(|&k| k != gap).map(|k| cell[k] - GAP_OPEN_PENALTY - GAP_EXTEND_PENALTY).max();
                    others.unwrap().max(cell[gap] - GAP_EXTEND_PENALTY)
                };
                if j > 0 {
                    cells[i][j][1] = opened(cells[i][j - 1], 1);
                }
                if i > 0 {
                    cells[i][j][2] = opened(cells[i - 1][j], 2);
                }
                let here = cells[i][j].into_iter().max().unwrap();
                best = best.max(here);
                if i == n {
                    whole = whole.max(here);
                }
            }
        }
        if whole + QUERY_END_BONUS >= best { whole } else { best }
    }

    #[test]
    fn the_best_alignment_is_what_a_naive_loop_finds() {
        let mut rng = TestRng(9);
        for _ in 0..2000 {
            let target = rng.bases(MAX_GAP_BP);
            let mut query = target.clone();
            for _ in 0..rng.below(4) {
                let at = rng.below(query.len());
                match rng.below(3) {
                    0 => query[at] = b"ACGT"[rng.below(4)],
                    1 => drop(query.drain(at..query.len().min(at + 1 + rng.below(5)))),
                    _ => {
                        let n = 1 + rng.below(5);
                        query.splice(at..at, rng.bases(n));
                    }
                }
            }
            query.truncate(MAX_GAP_BP);
            let side = align_banded(&query, &target);
            assert_eq!(side.score, naive(&query, &target), "{query:?} {target:?}");
            let used = |kinds: [CigarKind; 2]| {
                side.ops.iter().filter(|op| kinds.contains(&op.kind)).map(|op| op.len as usize).sum::<usize>()
            };
            assert_eq!(used([CigarKind::Match, CigarKind::Ins]), side.query);
            assert_eq!(used([CigarKind::Match, CigarKind::Del]), side.target);
        }
    }
}
