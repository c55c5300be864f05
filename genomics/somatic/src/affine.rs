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
    pub fn target_len(&self) -> usize {
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
    pub const INSERT_GOES_ON: [u8; 2] = [8, 16];
    pub const DELETE_GOES_ON: [u8; 2] = [32, 64];
}

/// Aligns all of `query` to the best stretch of `target`; ties go to diagonal steps, then to the leftmost end.
pub fn fit(query: &[u8], target: &[u8]) -> Alignment {
    without_gaps(query, target).unwrap_or_else(|| with_gaps(query, target))
}

/// The alignment where it needs no gap: one wrong base costs less than any gap does, two may not.
fn without_gaps(query: &[u8], target: &[u8]) -> Option<Alignment> {
    if query.is_empty() {
        return None;
    }
    let mut best: Option<(usize, usize)> = None;
    for (start, beside) in target.windows(query.len()).enumerate() {
        let most = best.map_or(1, |(wrong, _)| wrong - 1);
        let wrong = query.iter().zip(beside).filter(|(q, t)| q != t || **q == b'N').take(most + 1).count();
        if wrong <= most {
            best = Some((wrong, start));
        }
        if wrong == 0 {
            break;
        }
    }
    let (wrong, start) = best?;
    let score = query.len() as i32 * MATCH + wrong as i32 * (MISMATCH - MATCH);
    Some(Alignment { start, steps: vec![Step::Match(query.len() as u32)], score })
}

fn with_gaps(query: &[u8], target: &[u8]) -> Alignment {
    let (n, m) = (query.len(), target.len());
    let width = m + 1;
    let mut from = vec![0u8; (n + 1) * width];
    let mut best = vec![0i32; width];
    let mut insert = [vec![FAR; width], vec![FAR; width]];
    for i in 1..=n {
        let mut diagonal = best[0];
        let mut delete = [FAR; 2];
        for j in 0..=m {
            let cell = &mut from[i * width + j];
            let (mut score, mut state) = (FAR, 0u8);
            if j > 0 {
                let same = query[i - 1] == target[j - 1] && query[i - 1] != b'N';
                score = diagonal + if same { MATCH } else { MISMATCH };
            }
            let above = best[j];
            for p in 0..2 {
                let open = above - OPEN[p] - EXTEND[p];
                let on = insert[p][j] - EXTEND[p];
                if on > open {
                    *cell |= trace::INSERT_GOES_ON[p];
                }
                insert[p][j] = open.max(on);
                if insert[p][j] > score {
                    (score, state) = (insert[p][j], 1 + p as u8);
                }
            }
            if j > 0 {
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
        }
    }
    let end = (0..=m).max_by_key(|&j| (best[j], std::cmp::Reverse(j))).unwrap_or(0);
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
            if let Some(found) = without_gaps(&query, &target) {
                short += 1;
                assert_eq!(found, with_gaps(&query, &target), "{round}");
            }
        }
        assert!(short > 100, "{short}");
        assert_eq!(without_gaps(b"ACGT", b"ACG"), None);
    }
}
