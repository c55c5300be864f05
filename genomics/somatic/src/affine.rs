//! Alignment of two short sequences with two-piece affine gaps (Gotoh 1982; two pieces as in minimap2), the whole
//! query against the best stretch of the target.

/// One step of an alignment, query against target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Bases face each other, equal or not.
    Match(u32),
    /// Query bases that the target lacks.
    Insert(u32),
    /// Target bases that the query lacks.
    Delete(u32),
}

/// A query laid on a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alignment {
    /// First target base used.
    pub start: usize,
    /// Steps from the first query base to the last.
    pub steps: Vec<Step>,
    /// Score in tenths of a matching base.
    pub score: i32,
}

impl Alignment {
    /// Target bases used.
    pub(crate) fn target_len(&self) -> usize {
        let used = |s: &Step| match *s {
            Step::Match(n) | Step::Delete(n) => n as usize,
            Step::Insert(_) => 0,
        };
        self.steps.iter().map(used).sum()
    }
}

const MATCH: i32 = 10;
const MISMATCH: i32 = -40;
/// Opening and extending costs of short and of long gaps: they cross at 20 bases.
const OPEN: [i32; 2] = [60, 250];
const EXTEND: [i32; 2] = [10, 1];
const FAR: i32 = i32::MIN / 2;

/// Which cell the best path into a state came from, packed in one byte a cell.
mod trace {
    /// Low three bits: 0 diagonal, 1 and 2 insertion, 3 and 4 deletion (short, long).
    pub const STATE: u8 = 7;
    /// The gap of that kind goes on from the cell before.
    pub(crate) const INSERT_GOES_ON: [u8; 2] = [8, 16];
    pub(crate) const DELETE_GOES_ON: [u8; 2] = [32, 64];
}

/// Aligns all of `query` to the best stretch of `target`; ties go to diagonal steps, then to the leftmost end.
pub fn fit(query: &[u8], target: &[u8]) -> Alignment {
    let gapless = without_gaps(query, target);
    match gapless {
        // One wrong base costs less than any gap does, two may not.
        Some((alignment, 0..=1)) => alignment,
        _ => {
            let reached =
                gapless.map(|(alignment, _)| alignment.score).into_iter().chain(with_one_gap(query, target));
            with_gaps(query, target, reached.max().unwrap_or(FAR))
        }
    }
}

fn same(q: u8, t: u8) -> bool {
    q == t && q != b'N'
}

/// The score of so many bases that face each other, `wrong` of which differ.
fn faced(bases: usize, wrong: usize) -> i32 {
    bases as i32 * MATCH + wrong as i32 * (MISMATCH - MATCH)
}

/// The best alignment that has no gap, the leftmost of equals, and its differing bases.
fn without_gaps(query: &[u8], target: &[u8]) -> Option<(Alignment, usize)> {
    if query.is_empty() {
        return None;
    }
    let mut best: Option<(usize, usize)> = None;
    for (start, beside) in target.windows(query.len()).enumerate() {
        let most = best.map_or(query.len(), |(wrong, _)| wrong - 1);
        let wrong = query.iter().zip(beside).filter(|(q, t)| !same(**q, **t)).take(most + 1).count();
        if wrong <= most {
            best = Some((wrong, start));
        }
        if wrong == 0 {
            break;
        }
    }
    let (wrong, start) = best?;
    let steps = vec![Step::Match(query.len() as u32)];
    Some((Alignment { start, steps, score: faced(query.len(), wrong) }, wrong))
}

/// Bases at the ends of a query by which its place on both sides of a gap is found.
const ANCHOR: usize = 16;

/// The score of an alignment with one gap, if the ends of the query stand somewhere as they are.
fn with_one_gap(query: &[u8], target: &[u8]) -> Option<i32> {
    let n = query.len();
    let (first, last) = (query.first_chunk::<ANCHOR>()?, query.last_chunk::<ANCHOR>()?);
    let left = target.windows(ANCHOR).position(|w| w == first)? as i64;
    let right = target.windows(ANCHOR).rposition(|w| w == last)? as i64 + ANCHOR as i64 - n as i64;
    // Query bases that face nothing, and the first of them: the longer the left side, the later.
    let (gap, inserted) = ((right - left).unsigned_abs() as usize, (left - right).max(0) as usize);
    let wrong = |at: usize, diagonal: i64| {
        let facing = usize::try_from(at as i64 + diagonal).ok().and_then(|t| target.get(t));
        // What faces nothing is no alignment.
        facing.map_or(n, |&t| usize::from(!same(query[at], t)))
    };
    let from = n.checked_sub(inserted)?;
    let mut differ: usize = (inserted..n).map(|at| wrong(at, right)).sum();
    let mut least = differ;
    for at in 0..from {
        differ = differ + wrong(at, left) - wrong(at + inserted, right);
        least = least.min(differ);
    }
    let cost = (0..2).map(|p| OPEN[p] + EXTEND[p] * gap as i32).min()?;
    (gap > 0).then(|| faced(from, least) - cost)
}

/// The best alignment, of which is known that it has a score of `reached` at least. What can no longer have that is not followed: columns from
/// the first to the last that can are gone through in each row, which soon are few.
fn with_gaps(query: &[u8], target: &[u8], reached: i32) -> Alignment {
    let (n, m) = (query.len(), target.len());
    let width = m + 1;
    let mut from = vec![0u8; (n + 1) * width];
    let mut best = vec![0i32; width];
    let mut insert = [vec![FAR; width], vec![FAR; width]];
    // Columns of the row above that may lead to the best; what lies beside them leads nowhere.
    let (mut first, mut last) = (0, m);
    for i in 1..=n {
        // All that is to come may match.
        let wanted = reached.saturating_sub((n - i) as i32 * MATCH);
        let (mut diagonal, mut delete) = (FAR, [FAR; 2]);
        let (mut leads, mut j) = (None, first);
        // Beyond the row above only deletions go on.
        let deleted = |left: i32, delete: [i32; 2]| {
            (0..2).any(|p| (left - OPEN[p]).max(delete[p]) - EXTEND[p] >= wanted)
        };
        while j <= m && (j <= last + 1 || deleted(best[j - 1], delete)) {
            let cell = &mut from[i * width + j];
            let (mut score, mut state) = (FAR, 0u8);
            if j > 0 && diagonal > FAR {
                score = diagonal + if same(query[i - 1], target[j - 1]) { MATCH } else { MISMATCH };
            }
            let above = if j <= last { best[j] } else { FAR };
            for p in 0..2 {
                let open = above - OPEN[p] - EXTEND[p];
                let on = if j <= last { insert[p][j] - EXTEND[p] } else { FAR };
                if on > open {
                    *cell |= trace::INSERT_GOES_ON[p];
                }
                insert[p][j] = open.max(on);
                if insert[p][j] > score {
                    (score, state) = (insert[p][j], 1 + p as u8);
                }
            }
            if j > first {
                for p in 0..2 {
                    let open = best[j - 1] - OPEN[p] - EXTEND[p];
                    let on = delete[p] - EXTEND[p];
                    if on > open {
                        *cell |= trace::DELETE_GOES_ON[p];
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
            if score >= wanted {
                leads = Some((leads.map_or(j, |(first, _)| first), j));
            }
            j += 1;
        }
        // That there is an alignment with this score was the promise.
        (first, last) = leads.unwrap_or((first, m.min(j)));
    }
    let end = (first..=last).max_by_key(|&j| (best[j], std::cmp::Reverse(j))).unwrap_or(0);
    let (steps, start) = walk_back(&from, width, n, end);
    Alignment { start, steps, score: best[end] }
}

fn walk_back(from: &[u8], width: usize, n: usize, end: usize) -> (Vec<Step>, usize) {
    let (mut i, mut j) = (n, end);
    let mut steps: Vec<Step> = Vec::new();
    while i > 0 {
        let cell = from[i * width + j];
        match cell & trace::STATE {
            0 => {
                push(&mut steps, Step::Match(1));
                (i, j) = (i - 1, j - 1);
            }
            state @ (1 | 2) => loop {
                let goes_on = from[i * width + j] & trace::INSERT_GOES_ON[state as usize - 1] != 0;
                push(&mut steps, Step::Insert(1));
                i -= 1;
                if !goes_on {
                    break;
                }
            },
            state => loop {
                let goes_on = from[i * width + j] & trace::DELETE_GOES_ON[state as usize - 3] != 0;
                push(&mut steps, Step::Delete(1));
                j -= 1;
                if !goes_on {
                    break;
                }
            },
        }
    }
    steps.reverse();
    (steps, j)
}

fn push(steps: &mut Vec<Step>, step: Step) {
    match (steps.last_mut(), step) {
        (Some(Step::Match(n)), Step::Match(m))
        | (Some(Step::Insert(n)), Step::Insert(m))
        | (Some(Step::Delete(n)), Step::Delete(m)) => *n += m,
        _ => steps.push(step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores the steps from first principles.
    fn rescore(query: &[u8], target: &[u8], alignment: &Alignment) -> (i32, usize) {
        let gap = |n: u32| (0..2).map(|p| OPEN[p] + EXTEND[p] * n as i32).min().unwrap();
        let (mut i, mut j, mut score) = (0, alignment.start, 0);
        for step in &alignment.steps {
            match *step {
                Step::Match(n) => {
                    for _ in 0..n {
                        score += if query[i] == target[j] { MATCH } else { MISMATCH };
                        (i, j) = (i + 1, j + 1);
                    }
                }
                Step::Insert(n) => {
                    score -= gap(n);
                    i += n as usize;
                }
                Step::Delete(n) => {
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
            let found = fit(&inserted, &target);
            assert_eq!(rescore(&inserted, &target, &found), (found.score, inserted.len()));
            assert!(found.steps.contains(&Step::Insert(size as u32)), "{size} {:?}", found.steps);
            let deleted = [&target[50..170], &target[170 + size..290 + size]].concat();
            let found = fit(&deleted, &target);
            assert_eq!(rescore(&deleted, &target, &found), (found.score, deleted.len()));
            assert!(found.steps.contains(&Step::Delete(size as u32)), "{size} {:?}", found.steps);
        }
        assert_eq!(fit(b"", b"ACGT").steps, []);
        assert_eq!(fit(b"ACGT", b"").steps, [Step::Insert(4)]);
    }

    #[test]
    fn what_needs_no_gap_is_found_without_looking_for_one() {
        let mut seed = 9;
        let mut short = 0;
        for round in 0..300usize {
            // Few letters, so that places resemble each other.
            let letters = if round % 2 == 0 { 2 } else { 4 };
            let mut draw = |n| -> Vec<u8> {
                random(n, &mut seed)
                    .iter()
                    .map(|b| b"AACCGGTT"[usize::from(b >> 1 & 3) % letters * 2])
                    .collect()
            };
            let target = draw(60);
            let mut query = target[round % 20..round % 20 + 12 + round % 7].to_vec();
            let others = draw(3);
            for (i, &base) in others.iter().take(round % 3).enumerate() {
                let at = (round * 7 + 5 * i) % query.len();
                query[at] = if round % 11 == 0 { b'N' } else { base };
            }
            if let Some((found, 0..=1)) = without_gaps(&query, &target) {
                short += 1;
                assert_eq!(found, with_gaps(&query, &target, FAR), "{round}");
            }
        }
        assert!(short > 100, "{short}");
        assert_eq!(without_gaps(b"ACGT", b"ACG"), None);
    }

    #[test]
    fn what_cannot_be_the_best_is_not_missed_when_it_is_not_followed() {
        let mut seed = 11;
        let (mut several, mut gaps) = (0, 0);
        for round in 0..600usize {
            // Few letters or a repeat, so that places resemble each other.
            let letters = [1, 2, 4][round % 3];
            let mut draw = |n| -> Vec<u8> {
                let all = random(n, &mut seed);
                all.iter().map(|b| b"AACCGGTT"[usize::from(b >> 1 & 3) % letters * 2]).collect()
            };
            let mut target = draw(90);
            if letters == 1 {
                target[20 + round % 40..]
                    .iter_mut()
                    .zip(b"CA".iter().cycle())
                    .take(30)
                    .for_each(|(t, &u)| *t = u);
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
            let reached = without_gaps(&query, &target).map(|(alignment, wrong)| {
                several += usize::from(wrong > 1);
                alignment.score
            });
            let one_gap = with_one_gap(&query, &target);
            gaps += usize::from(one_gap.is_some());
            let best = with_gaps(&query, &target, FAR);
            let reached = reached.into_iter().chain(one_gap).max().unwrap_or(FAR);
            assert!(reached <= best.score, "{round}: {reached} {best:?}");
            for least in [reached, best.score, best.score - 35] {
                assert_eq!(with_gaps(&query, &target, least), best, "{round}, {least}");
            }
            assert_eq!(fit(&query, &target), best, "{round}");
        }
        assert!(several > 200 && gaps > 100, "{several} {gaps}");
    }
}
