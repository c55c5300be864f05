//! How far what begins with an exact match goes on: without gaps, then with short ones.

use crate::hit::{CigarKind, CigarOp};

/// Points: of equal bases, of different ones, of a gap and each of its bases, and for reaching the end of the sequence.
const EQUAL: i32 = 1;
const DIFFERS: i32 = 4;
const OPEN: i32 = 6;
const EXTEND: i32 = 1;
const END: i32 = 5;
/// Points behind the best at which nobody goes further.
const DROP: i32 = 20;
const DROP_WITH_GAPS: i32 = 40;
/// Longest gap: longer ones part an alignment.
const LONGEST: usize = 35;
const BAND: usize = 2 * LONGEST + 1;
/// Bases before or behind a stretch from which a gap may pay.
const WORTH_IT: usize = 8;
/// Bases of a stretch beside them that are aligned again, as it may have run beyond the gap.
const AGAIN: usize = 24;

const FAR: i32 = i32::MIN / 2;

/// Bases of a sequence that lie on the reference without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// First base, and one past the last. They are many: in as few bytes as they need.
    from: u32,
    to: u32,
    pub(super) score: i32,
}

impl Stretch {
    pub(super) fn new(bases: std::ops::Range<usize>, score: i32) -> Stretch {
        Stretch { from: bases.start as u32, to: bases.end as u32, score }
    }

    /// Its bases of the sequence.
    pub(super) fn bases(&self) -> std::ops::Range<usize> {
        self.from as usize..self.to as usize
    }
}

/// Whether two bases are equal, and known.
#[inline(always)]
fn same(one: u8, other: u8) -> bool {
    one == other && one != b'N'
}

/// What two bases side by side score.
#[inline(always)]
fn score(one: u8, other: u8) -> i32 {
    if same(one, other) { EQUAL } else { -DIFFERS }
}

/// Bases that are equal side by side.
pub(super) fn equal_bases(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).filter(|(one, other)| same(**one, **other)).count()
}

/// Bases that are compared at once, and such a number in each of their bytes.
const WORD: usize = 8;
const fn in_each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; WORD])
}

/// One bit for each base of two words that is not the same: the lowest for that in the lowest byte.
#[inline(always)]
fn differing(one: u64, other: u64) -> u64 {
    // The highest bit of each byte that is not zero.
    let not_zero = |word: u64| (((word & in_each(0x7f)) + in_each(0x7f)) | word) & in_each(0x80);
    let known = not_zero(one ^ in_each(b'N'));
    let highest = (not_zero(one ^ other) | !known) & in_each(0x80);
    (highest >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// How many pairs of bases are worth it, and what they score, from the first on or, if `BACK`, from the last. `whole`: the farthest of them is the
/// sequence's last. What it costs is as many steps as there are differences, and one for each [`WORD`] bases.
#[inline(always)]
fn further<const BACK: bool>(one: &[u8], other: &[u8], whole: bool) -> (usize, i32) {
    let n = one.len().min(other.len());
    let load = |bases: &[u8], at: usize| {
        let here = WORD.min(n - at);
        let bases =
            if BACK { &bases[bases.len() - at - here..bases.len() - at] } else { &bases[at..at + here] };
        let word = bases.try_into().unwrap_or_else(|_| {
            let mut word = [0; WORD];
            if BACK {
                word[WORD - here..].copy_from_slice(bases)
            } else {
                word[..here].copy_from_slice(bases)
            }
            word
        });
        if BACK { u64::from_be_bytes(word) } else { u64::from_le_bytes(word) }
    };
    // `from`: the first base that is not summed up.
    let (mut sum, mut best, mut length, mut from) = (0, 0, 0, 0);
    for at in (0..n).step_by(WORD) {
        // What is beyond the last is the same.
        let mut bits = differing(load(one, at), load(other, at));
        while bits != 0 {
            let here = at + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            sum += EQUAL * (here - from) as i32;
            if sum > best {
                (best, length) = (sum, here);
            }
            sum -= DIFFERS;
            from = here + 1;
            if sum < best - DROP {
                return (length, best);
            }
        }
    }
    sum += EQUAL * (n - from) as i32;
    if sum > best {
        (best, length) = (sum, n);
    }
    if whole && sum + END >= best { (n, sum) } else { (length, best) }
}

/// The stretch without gaps that has the bases from `q` on, some of which are those from `t` on of the reference.
#[inline(always)]
pub(super) fn without_gaps(query: &[u8], reference: &[u8], q: usize, t: usize) -> Stretch {
    let (before, behind) = (q.min(t), (query.len() - q).min(reference.len() - t));
    let ends = q + behind == query.len();
    let (right, gained) = further::<false>(&query[q..q + behind], &reference[t..t + behind], ends);
    let (left, more) = further::<true>(&query[q - before..q], &reference[t - before..t], before == q);
    Stretch::new(q - left..q + right, gained + more)
}

/// An alignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Alignment {
    /// First base of the sequence, and one past the last.
    pub(super) query: (usize, usize),
    /// The same on the reference.
    pub(super) target: (usize, usize),
    pub(super) score: i32,
    pub(super) cigar: Vec<CigarOp>,
    /// Equal bases.
    pub(super) equal: usize,
}

/// A stretch, of which base 0 of the sequence would lie on base `left` of the reference, carried on with gaps where bases beside it are not on it.
pub(super) fn with_gaps(query: &[u8], reference: &[u8], left: i64, stretch: Stretch) -> Alignment {
    let std::ops::Range { start: from, end: to } = stretch.bases();
    let on = |q: usize| (left + q as i64) as usize;
    let run = longest_run(from..to, |q| same(query[q], reference[on(q)]));
    let middle = (run.start + run.end) / 2;
    let begin = if from >= WORTH_IT { middle.min(from + AGAIN) } else { from };
    let end = if query.len() - to >= WORTH_IT { middle.max(to - AGAIN.min(to - from)) } else { to };
    let (mut ops, mut sum) = (Vec::new(), 0);
    let (mut first, mut start) = (begin, on(begin));
    if begin > from {
        let back: Vec<u8> = query[..begin].iter().rev().copied().collect();
        let reach = start.min(begin + LONGEST);
        let before: Vec<u8> = reference[start - reach..start].iter().rev().copied().collect();
        let side = banded(&back, &before);
        (first, start, sum) = (begin - side.query, start - side.target, side.score);
        ops.extend(side.ops.into_iter().rev());
    }
    push(&mut ops, CigarKind::Match, end - begin);
    sum += (begin..end).map(|q| score(query[q], reference[on(q)])).sum::<i32>();
    let (mut last, mut stop) = (end, on(begin) + (end - begin));
    if end < to {
        let reach = (reference.len() - stop).min(query.len() - end + LONGEST);
        let side = banded(&query[end..], &reference[stop..stop + reach]);
        (last, stop, sum) = (end + side.query, stop + side.target, sum + side.score);
        side.ops.into_iter().for_each(|op| push(&mut ops, op.kind, op.len as usize));
    }
    let mut equal = 0;
    let (mut q, mut t) = (first, start);
    for op in &ops {
        let n = op.len as usize;
        match op.kind {
            CigarKind::Ins => q += n,
            CigarKind::Del => t += n,
            _ => {
                equal += equal_bases(&query[q..q + n], &reference[t..t + n]);
                (q, t) = (q + n, t + n);
            }
        }
    }
    Alignment { query: (first, last), target: (start, stop), score: sum, cigar: ops, equal }
}

fn longest_run(within: std::ops::Range<usize>, equal: impl Fn(usize) -> bool) -> std::ops::Range<usize> {
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

fn push(ops: &mut Vec<CigarOp>, kind: CigarKind, len: usize) {
    match ops.last_mut() {
        Some(last) if last.kind == kind => last.len += len as u32,
        _ if len == 0 => {}
        _ => ops.push(CigarOp { kind, len: len as u32 }),
    }
}

/// Some first bases of a sequence on some first ones of the reference.
struct Side {
    query: usize,
    target: usize,
    score: i32,
    ops: Vec<CigarOp>,
}

/// Which cell the best way into a cell came from, packed.
mod trace {
    pub const STATE: u8 = 3;
    pub const DIAGONAL: u8 = 0;
    pub const DELETION: u8 = 1;
    pub const INSERTION: u8 = 2;
    pub(crate) const DELETION_GOES_ON: u8 = 4;
    pub(crate) const INSERTION_GOES_ON: u8 = 8;
}

/// The best alignment of first bases with first bases with affine gaps (Gotoh 1982) in a band about the diagonal.
fn banded(query: &[u8], target: &[u8]) -> Side {
    let (n, m) = (query.len(), target.len());
    // Column b of row i: the reference's base i + b - LONGEST.
    let mut best_here = [FAR; BAND];
    let mut inserted = [FAR; BAND];
    let mut traces: Vec<[u8; BAND]> = Vec::with_capacity(n + 1);
    let mut row = [0; BAND];
    best_here[LONGEST] = 0;
    for (gap, b) in (LONGEST + 1..BAND).enumerate().filter(|&(gap, _)| gap < m) {
        best_here[b] = -OPEN - EXTEND * (gap as i32 + 1);
        row[b] = trace::DELETION | if gap > 0 { trace::DELETION_GOES_ON } else { 0 };
    }
    traces.push(row);
    let (mut best, mut at) = (0, (0, LONGEST));
    for i in 1..=n {
        let (mut row, mut deleted, mut most) = ([0; BAND], FAR, FAR);
        for b in 0..BAND {
            let Some(j) = (i + b).checked_sub(LONGEST).filter(|&j| j <= m) else {
                (best_here[b], inserted[b]) = (FAR, FAR);
                deleted = FAR;
                continue;
            };
            // Still of the row before: this column is one base further on there.
            let diagonal = if j == 0 || best_here[b] <= FAR / 2 {
                FAR
            } else {
                best_here[b] + score(query[i - 1], target[j - 1])
            };
            let mut way = 0;
            let (above, gap_above) =
                if b + 1 < BAND { (best_here[b + 1], inserted[b + 1]) } else { (FAR, FAR) };
            inserted[b] = (above - OPEN - EXTEND).max(gap_above - EXTEND);
            if gap_above - EXTEND > above - OPEN - EXTEND {
                way |= trace::INSERTION_GOES_ON;
            }
            let beside = if b > 0 { best_here[b - 1] } else { FAR };
            if deleted - EXTEND > beside - OPEN - EXTEND {
                way |= trace::DELETION_GOES_ON;
            }
            deleted = (beside - OPEN - EXTEND).max(deleted - EXTEND);
            let (mut value, mut state) = (diagonal, trace::DIAGONAL);
            if deleted > value {
                (value, state) = (deleted, trace::DELETION);
            }
            if inserted[b] > value {
                (value, state) = (inserted[b], trace::INSERTION);
            }
            row[b] = way | state;
            best_here[b] = value.max(FAR);
            most = most.max(value);
            if value > best {
                (best, at) = (value, (i, b));
            }
        }
        traces.push(row);
        if i == n {
            let whole = (0..BAND).max_by_key(|&b| (best_here[b], std::cmp::Reverse(b.abs_diff(LONGEST))));
            if let Some(b) = whole.filter(|&b| best_here[b] + END >= best) {
                (best, at) = (best_here[b], (n, b));
            }
        }
        if most < best - DROP_WITH_GAPS {
            break;
        }
    }
    let (mut i, mut b) = at;
    let (query, target) = (i, i + b - LONGEST);
    let mut ops = Vec::new();
    let mut state = traces[i][b] & trace::STATE;
    while i > 0 || b != LONGEST {
        let way = traces[i][b];
        match state {
            trace::DIAGONAL => {
                push(&mut ops, CigarKind::Match, 1);
                i -= 1;
                state = traces[i][b] & trace::STATE;
            }
            trace::DELETION => {
                push(&mut ops, CigarKind::Del, 1);
                b -= 1;
                if way & trace::DELETION_GOES_ON == 0 {
                    state = traces[i][b] & trace::STATE;
                }
            }
            _ => {
                push(&mut ops, CigarKind::Ins, 1);
                (i, b) = (i - 1, b + 1);
                if way & trace::INSERTION_GOES_ON == 0 {
                    state = traces[i][b] & trace::STATE;
                }
            }
        }
    }
    ops.reverse();
    Side { query, target, score: best, ops }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::tests::Dice;

    #[test]
    fn words_are_summed_up_as_bases_are() {
        let naive = |pairs: &mut dyn Iterator<Item = (u8, u8)>, whole: bool| {
            let (mut sum, mut best, mut length, mut n) = (0, 0, 0, 0);
            for (one, other) in pairs {
                n += 1;
                sum += score(one, other);
                if sum > best {
                    (best, length) = (sum, n);
                }
                if sum < best - DROP {
                    return (length, best);
                }
            }
            if whole && sum + END >= best { (n, sum) } else { (length, best) }
        };
        let mut dice = Dice(9);
        for round in 0..4000 {
            let one = {
                let n = dice.roll(120);
                dice.bases(n)
            };
            let mut other = one.clone();
            for _ in 0..dice.roll(12).min(other.len()) {
                let at = dice.roll(other.len());
                other[at] = b"ACGTNR"[dice.roll(6)];
            }
            // Unknown bases are never the same.
            let one: Vec<u8> =
                one.iter().zip(&other).map(|(a, b)| if *b == b'N' { *b } else { *a }).collect();
            let whole = round % 2 == 0;
            let pairs = || one.iter().copied().zip(other.iter().copied());
            assert_eq!(further::<false>(&one, &other, whole), naive(&mut pairs(), whole), "{round}");
            assert_eq!(further::<true>(&one, &other, whole), naive(&mut pairs().rev(), whole), "{round}");
        }
    }

    /// The best score of first bases with first bases, by all cells.
    fn naive(query: &[u8], target: &[u8]) -> i32 {
        let (n, m) = (query.len(), target.len());
        let mut cells = vec![vec![[FAR; 3]; m + 1]; n + 1];
        let (mut best, mut whole) = (0, FAR);
        cells[0][0][0] = 0;
        for i in 0..=n {
            for j in 0..=m {
                if i > 0 && j > 0 {
                    let before = cells[i - 1][j - 1].into_iter().max().unwrap();
                    cells[i][j][0] = before + score(query[i - 1], target[j - 1]);
                }
                let opened = |cell: [i32; 3], gap: usize| {
                    let others = (0..3).filter(|&k| k != gap).map(|k| cell[k] - OPEN - EXTEND).max();
                    others.unwrap().max(cell[gap] - EXTEND)
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
        if whole + END >= best { whole } else { best }
    }

    #[test]
    fn the_best_alignment_is_what_a_naive_loop_finds() {
        let mut dice = Dice(9);
        for _ in 0..2000 {
            let target = dice.bases(LONGEST);
            let mut query = target.clone();
            for _ in 0..dice.roll(4) {
                let at = dice.roll(query.len());
                match dice.roll(3) {
                    0 => query[at] = b"ACGT"[dice.roll(4)],
                    1 => drop(query.drain(at..query.len().min(at + 1 + dice.roll(5)))),
                    _ => {
                        let n = 1 + dice.roll(5);
                        query.splice(at..at, dice.bases(n));
                    }
                }
            }
            query.truncate(LONGEST);
            let side = banded(&query, &target);
            assert_eq!(side.score, naive(&query, &target), "{query:?} {target:?}");
            let used = |kinds: [CigarKind; 2]| {
                side.ops.iter().filter(|op| kinds.contains(&op.kind)).map(|op| op.len as usize).sum::<usize>()
            };
            assert_eq!(used([CigarKind::Match, CigarKind::Ins]), side.query);
            assert_eq!(used([CigarKind::Match, CigarKind::Del]), side.target);
        }
    }
}
