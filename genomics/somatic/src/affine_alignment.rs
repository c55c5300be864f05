//! Global-local alignment of a short query with a short target under a two-piece affine gap cost (Gotoh 1982; two
//! pieces as in minimap2). The whole query is aligned; the ends of the target may remain unaligned.

/// One operation of an alignment, as in a CIGAR string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlignmentOp {
    /// Number of aligned base pairs, equal or not (CIGAR: M).
    Match(u32),
    /// Number of query bases without a counterpart in the target (CIGAR: I).
    Insert(u32),
    /// Number of target bases without a counterpart in the query (CIGAR: D).
    Delete(u32),
}

/// Alignment of a whole query with a range of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alignment {
    /// Index of the first aligned target base.
    pub start: usize,
    /// Operations in the direction of the query.
    pub ops: Vec<AlignmentOp>,
    /// Alignment score in units of a tenth of a match: a match adds 10.
    pub score: i32,
}

impl Alignment {
    /// Number of target bases in the alignment, from the first to the last aligned base.
    pub(crate) fn aligned_target_len(&self) -> usize {
        let used = |s: &AlignmentOp| match *s {
            AlignmentOp::Match(n) | AlignmentOp::Delete(n) => n as usize,
            AlignmentOp::Insert(_) => 0,
        };
        self.ops.iter().map(used).sum()
    }
}

/// Score of two equal bases (match).
const MATCH_SCORE: i32 = 10;
/// Score of two different bases (mismatch).
const MISMATCH_SCORE: i32 = -40;
/// Cost of opening a gap in the first and in the second piece of the gap cost. A gap has the lower cost of both pieces:
/// that of the first up to 21 bases.
const GAP_OPEN_COST: [i32; 2] = [60, 250];
/// Cost of each base of a gap in the first piece (short gaps) and in the second piece (long gaps).
const GAP_EXTEND_COST: [i32; 2] = [10, 1];
/// Score of an impossible alignment: half of the minimum, so that subtracting costs does not overflow.
const NEGATIVE_INFINITY: i32 = i32::MIN / 2;

/// Traceback: one byte for each cell records which cell the best path came from.
mod trace {
    /// Mask of the low three bits of a traceback byte, the state of the best path: 0 diagonal, 1 short insertion, 2
    /// long insertion, 3 short deletion, 4 long deletion.
    pub const TRACE_STATE_MASK: u8 = 7;
    /// Flag bits, for the short and the long piece of the gap cost: the insertion extends one that is open in the cell
    /// above.
    pub(crate) const TRACE_INSERTION_EXTENDED_FLAGS: [u8; 2] = [8, 16];
    /// Flag bits, for the short and the long piece of the gap cost: the deletion extends one that is open in the cell
    /// to the left.
    pub(crate) const TRACE_DELETION_EXTENDED_FLAGS: [u8; 2] = [32, 64];
}

/// Aligns all of `query` with the range of `target` that gives the highest score. Among equal scores it prefers matches
/// to gaps, then the leftmost end.
pub fn align_whole_query(query: &[u8], target: &[u8]) -> Alignment {
    let gapless = align_gapless(query, target);
    match gapless {
        // One mismatch costs less than any gap; two may not.
        Some((alignment, 0..=1)) => alignment,
        _ => {
            let min_score =
                gapless.map(|(alignment, _)| alignment.score).into_iter().chain(one_gap_score(query, target));
            align_with_gaps(query, target, min_score.max().unwrap_or(NEGATIVE_INFINITY))
        }
    }
}

fn is_equal_base(q: u8, t: u8) -> bool {
    q == t && q != b'N'
}

/// Score of a gapless alignment of `bases` bases with `mismatches` mismatches.
fn gapless_score(bases: usize, mismatches: usize) -> i32 {
    bases as i32 * MATCH_SCORE + mismatches as i32 * (MISMATCH_SCORE - MATCH_SCORE)
}

/// The best gapless alignment of the whole query, the leftmost of equal ones, and its number of mismatches. `None` if
/// the query is empty or longer than the target.
fn align_gapless(query: &[u8], target: &[u8]) -> Option<(Alignment, usize)> {
    if query.is_empty() {
        return None;
    }
    let mut best: Option<(usize, usize)> = None;
    for (start, target_bases) in target.windows(query.len()).enumerate() {
        let most = best.map_or(query.len(), |(mismatches, _)| mismatches - 1);
        let mismatches =
            query.iter().zip(target_bases).filter(|(q, t)| !is_equal_base(**q, **t)).take(most + 1).count();
        if mismatches <= most {
            best = Some((mismatches, start));
        }
        if mismatches == 0 {
            break;
        }
    }
    let (mismatches, start) = best?;
    let ops = vec![AlignmentOp::Match(query.len() as u32)];
    Some((Alignment { start, ops, score: gapless_score(query.len(), mismatches) }, mismatches))
}

/// Length in bases of the first and last k-mer of the query, whose exact matches anchor the two sides of a gap.
const ANCHOR_BASES: usize = 16;

/// Score of the best alignment with exactly one gap. The first and last [`ANCHOR_BASES`] bases of the query anchor the
/// two sides by exact matches. `None` if an anchor has no match or the anchors imply no gap.
fn one_gap_score(query: &[u8], target: &[u8]) -> Option<i32> {
    let n = query.len();
    let (first, last) = (query.first_chunk::<ANCHOR_BASES>()?, query.last_chunk::<ANCHOR_BASES>()?);
    let left = target.windows(ANCHOR_BASES).position(|w| w == first)? as i64;
    let right = target.windows(ANCHOR_BASES).rposition(|w| w == last)? as i64 + ANCHOR_BASES as i64 - n as i64;
    // Number of unaligned query bases, and the index of the first of them, which is larger the longer the left side
    // is.
    let (gap, inserted) = ((right - left).unsigned_abs() as usize, (left - right).max(0) as usize);
    let mismatches = |at: usize, diagonal: i64| {
        let facing = usize::try_from(at as i64 + diagonal).ok().and_then(|t| target.get(t));
        // A base without a counterpart makes the alignment invalid.
        facing.map_or(n, |&t| usize::from(!is_equal_base(query[at], t)))
    };
    let from = n.checked_sub(inserted)?;
    let mut differ: usize = (inserted..n).map(|at| mismatches(at, right)).sum();
    let mut least = differ;
    for at in 0..from {
        differ = differ + mismatches(at, left) - mismatches(at + inserted, right);
        least = least.min(differ);
    }
    let cost = (0..2).map(|p| GAP_OPEN_COST[p] + GAP_EXTEND_COST[p] * gap as i32).min()?;
    (gap > 0).then(|| gapless_score(from, least) - cost)
}

/// The best alignment with any number of gaps. `min_score` is a lower bound of its score: cells that cannot reach it
/// are not computed.
fn align_with_gaps(query: &[u8], target: &[u8], min_score: i32) -> Alignment {
    let (n, m) = (query.len(), target.len());
    let width = m + 1;
    let mut from = vec![0u8; (n + 1) * width];
    let mut best = vec![0i32; width];
    let mut insert = [vec![NEGATIVE_INFINITY; width], vec![NEGATIVE_INFINITY; width]];
    // Columns of the row above that may lead to the best alignment.
    let (mut first, mut last) = (0, m);
    for i in 1..=n {
        // Assumes that all remaining query bases match.
        let min_useful_score = min_score.saturating_sub((n - i) as i32 * MATCH_SCORE);
        let (mut diagonal, mut delete) = (NEGATIVE_INFINITY, [NEGATIVE_INFINITY; 2]);
        let (mut useful_columns, mut j) = (None, first);
        // Right of the columns computed in the row above, only deletions are possible.
        let deleted = |left: i32, delete: [i32; 2]| {
            (0..2).any(|p| (left - GAP_OPEN_COST[p]).max(delete[p]) - GAP_EXTEND_COST[p] >= min_useful_score)
        };
        while j <= m && (j <= last + 1 || deleted(best[j - 1], delete)) {
            let cell = &mut from[i * width + j];
            let (mut score, mut state) = (NEGATIVE_INFINITY, 0u8);
            if j > 0 && diagonal > NEGATIVE_INFINITY {
                score =
                    diagonal + if is_equal_base(query[i - 1], target[j - 1]) { MATCH_SCORE } else { MISMATCH_SCORE };
            }
            let above = if j <= last { best[j] } else { NEGATIVE_INFINITY };
            for p in 0..2 {
                let open = above - GAP_OPEN_COST[p] - GAP_EXTEND_COST[p];
                let on = if j <= last { insert[p][j] - GAP_EXTEND_COST[p] } else { NEGATIVE_INFINITY };
                if on > open {
                    *cell |= trace::TRACE_INSERTION_EXTENDED_FLAGS[p];
                }
                insert[p][j] = open.max(on);
                if insert[p][j] > score {
                    (score, state) = (insert[p][j], 1 + p as u8);
                }
            }
            if j > first {
                for p in 0..2 {
                    let open = best[j - 1] - GAP_OPEN_COST[p] - GAP_EXTEND_COST[p];
                    let on = delete[p] - GAP_EXTEND_COST[p];
                    if on > open {
                        *cell |= trace::TRACE_DELETION_EXTENDED_FLAGS[p];
                    }
                    delete[p] = open.max(on);
                    if delete[p] > score {
                        (score, state) = (delete[p], 3 + p as u8);
                    }
                }
            }
            *cell |= state;
            diagonal = above;
            best[j] = score;
            if score >= min_useful_score {
                useful_columns = Some((useful_columns.map_or(j, |(first, _)| first), j));
            }
            j += 1;
        }
        // `min_score` is a lower bound of the best score, so there is always such a column.
        (first, last) = useful_columns.unwrap_or((first, m.min(j)));
    }
    let end = (first..=last).max_by_key(|&j| (best[j], std::cmp::Reverse(j))).unwrap_or(0);
    let (ops, start) = trace_back(&from, width, n, end);
    Alignment { start, ops, score: best[end] }
}

fn trace_back(from: &[u8], width: usize, n: usize, end: usize) -> (Vec<AlignmentOp>, usize) {
    let (mut i, mut j) = (n, end);
    let mut ops: Vec<AlignmentOp> = Vec::new();
    while i > 0 {
        let cell = from[i * width + j];
        match cell & trace::TRACE_STATE_MASK {
            0 => {
                push_op(&mut ops, AlignmentOp::Match(1));
                (i, j) = (i - 1, j - 1);
            }
            state @ (1 | 2) => loop {
                let is_extended = from[i * width + j] & trace::TRACE_INSERTION_EXTENDED_FLAGS[state as usize - 1] != 0;
                push_op(&mut ops, AlignmentOp::Insert(1));
                i -= 1;
                if !is_extended {
                    break;
                }
            },
            state => loop {
                let is_extended = from[i * width + j] & trace::TRACE_DELETION_EXTENDED_FLAGS[state as usize - 3] != 0;
                push_op(&mut ops, AlignmentOp::Delete(1));
                j -= 1;
                if !is_extended {
                    break;
                }
            },
        }
    }
    ops.reverse();
    (ops, j)
}

fn push_op(ops: &mut Vec<AlignmentOp>, op: AlignmentOp) {
    match (ops.last_mut(), op) {
        (Some(AlignmentOp::Match(n)), AlignmentOp::Match(m))
        | (Some(AlignmentOp::Insert(n)), AlignmentOp::Insert(m))
        | (Some(AlignmentOp::Delete(n)), AlignmentOp::Delete(m)) => *n += m,
        _ => ops.push(op),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores the steps from first principles.
    fn rescore(query: &[u8], target: &[u8], alignment: &Alignment) -> (i32, usize) {
        let gap = |n: u32| (0..2).map(|p| GAP_OPEN_COST[p] + GAP_EXTEND_COST[p] * n as i32).min().unwrap();
        let (mut i, mut j, mut score) = (0, alignment.start, 0);
        for step in &alignment.ops {
            match *step {
                AlignmentOp::Match(n) => {
                    for _ in 0..n {
                        score += if query[i] == target[j] { MATCH_SCORE } else { MISMATCH_SCORE };
                        (i, j) = (i + 1, j + 1);
                    }
                }
                AlignmentOp::Insert(n) => {
                    score -= gap(n);
                    i += n as usize;
                }
                AlignmentOp::Delete(n) => {
                    score -= gap(n);
                    j += n as usize;
                }
            }
        }
        (score, i)
    }

    fn random(n: usize, seed: &mut u64) -> Vec<u8> {
        (0..n)
            .map(|_| {
                *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                b"ACGT"[(*seed >> 60) as usize & 3]
            })
            .collect()
    }

    #[test]
    fn finds_planted_changes_and_scores_what_it_says() {
        let mut seed = 7;
        for size in [1usize, 5, 19, 20, 60, 150] {
            let target = random(500, &mut seed);
            let extra = random(size, &mut seed);
            let inserted = [&target[100..220], &extra[..], &target[220..340]].concat();
            let found = align_whole_query(&inserted, &target);
            assert_eq!(rescore(&inserted, &target, &found), (found.score, inserted.len()));
            assert!(found.ops.contains(&AlignmentOp::Insert(size as u32)), "{size} {:?}", found.ops);
            let deleted = [&target[50..170], &target[170 + size..290 + size]].concat();
            let found = align_whole_query(&deleted, &target);
            assert_eq!(rescore(&deleted, &target, &found), (found.score, deleted.len()));
            assert!(found.ops.contains(&AlignmentOp::Delete(size as u32)), "{size} {:?}", found.ops);
        }
        assert_eq!(align_whole_query(b"", b"ACGT").ops, []);
        assert_eq!(align_whole_query(b"ACGT", b"").ops, [AlignmentOp::Insert(4)]);
    }

    #[test]
    fn what_needs_no_gap_is_found_without_looking_for_one() {
        let mut seed = 9;
        let mut short = 0;
        for round in 0..300usize {
            // Few letters, so that positions resemble each other.
            let letters = if round % 2 == 0 { 2 } else { 4 };
            let mut draw = |n| -> Vec<u8> {
                random(n, &mut seed).iter().map(|b| b"AACCGGTT"[usize::from(b >> 1 & 3) % letters * 2]).collect()
            };
            let target = draw(60);
            let mut query = target[round % 20..round % 20 + 12 + round % 7].to_vec();
            let others = draw(3);
            for (i, &base) in others.iter().take(round % 3).enumerate() {
                let at = (round * 7 + 5 * i) % query.len();
                query[at] = if round % 11 == 0 { b'N' } else { base };
            }
            if let Some((found, 0..=1)) = align_gapless(&query, &target) {
                short += 1;
                assert_eq!(found, align_with_gaps(&query, &target, NEGATIVE_INFINITY), "{round}");
            }
        }
        assert!(short > 100, "{short}");
        assert_eq!(align_gapless(b"ACGT", b"ACG"), None);
    }

    #[test]
    fn what_cannot_be_the_best_is_not_missed_when_it_is_not_followed() {
        let mut seed = 11;
        let (mut several, mut gaps) = (0, 0);
        for round in 0..600usize {
            // Few letters or a repeat, so that positions resemble each other.
            let letters = [1, 2, 4][round % 3];
            let mut draw = |n| -> Vec<u8> {
                let all = random(n, &mut seed);
                all.iter().map(|b| b"AACCGGTT"[usize::from(b >> 1 & 3) % letters * 2]).collect()
            };
            let mut target = draw(90);
            if letters == 1 {
                target[20 + round % 40..].iter_mut().zip(b"CA".iter().cycle()).take(30).for_each(|(t, &u)| *t = u);
            }
            let from = round % 17;
            let mut query = target[from..from + 60].to_vec();
            let (at, size) = (20 + round * 7 % 20, round / 7 % 9);
            match round % 4 {
                0 => drop(query.drain(at..at + size)),
                1 => drop(query.splice(at..at, draw(size))),
                2 => query = draw(40),
                _ => {}
            }
            for i in 0..round % 5 {
                let at = (round * 11 + 13 * i) % query.len();
                query[at] = if i == 3 { b'N' } else { draw(1)[0] };
            }
            let reached = align_gapless(&query, &target).map(|(alignment, wrong)| {
                several += usize::from(wrong > 1);
                alignment.score
            });
            let one_gap = one_gap_score(&query, &target);
            gaps += usize::from(one_gap.is_some());
            let best = align_with_gaps(&query, &target, NEGATIVE_INFINITY);
            let reached = reached.into_iter().chain(one_gap).max().unwrap_or(NEGATIVE_INFINITY);
            assert!(reached <= best.score, "{round}: {reached} {best:?}");
            for least in [reached, best.score, best.score - 35] {
                assert_eq!(align_with_gaps(&query, &target, least), best, "{round}, {least}");
            }
            assert_eq!(align_whole_query(&query, &target), best, "{round}");
        }
        assert!(several > 200 && gaps > 100, "{several} {gaps}");
    }
}
