//! One replacement of some bases by some others as the fewest substitutions, insertions and deletions that do the same.

use super::normalise::Allele;

/// What a substitution costs, the first base of a gap, and each further one: neighbours that one caller joins and
/// another keeps apart come out alike, and two gaps are dearer than three substitutions.
const SUBSTITUTION: u32 = 3;
const FIRST: u32 = 5;
const FURTHER: u32 = 1;

/// What the last step of an alignment was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A base of both.
    Both,
    /// A base taken out.
    Out,
    /// A base put in.
    In,
}

const STEPS: [Step; 3] = [Step::Both, Step::Out, Step::In];
const NEVER: u32 = u32::MAX / 2;

/// Splits an allele by the cheapest alignment of its bases (Gotoh, Journal of Molecular Biology 1982). The parts are in
/// order and do not touch; a pure insertion or deletion stays as it is.
pub fn decompose(allele: &Allele) -> Vec<Allele> {
    let (out, added) = (&allele.removed, &allele.added);
    let columns = added.len() + 1;
    let cell = |i: usize, j: usize| i * columns + j;
    // The cost of the first i and j bases aligned, by the last step, and the step before it.
    let mut costs = vec![[NEVER; 3]; (out.len() + 1) * columns];
    let mut before = vec![[Step::Both; 3]; costs.len()];
    costs[0][0] = 0;
    for i in 0..=out.len() {
        for j in 0..=added.len() {
            for (k, step) in STEPS.into_iter().enumerate() {
                let from = match step {
                    Step::Both if i > 0 && j > 0 => cell(i - 1, j - 1),
                    Step::Out if i > 0 => cell(i - 1, j),
                    Step::In if j > 0 => cell(i, j - 1),
                    _ => continue,
                };
                let cost = |last: Step| match step {
                    Step::Both if out[i - 1] == added[j - 1] => 0,
                    Step::Both => SUBSTITUTION,
                    _ if last == step => FURTHER,
                    _ => FIRST,
                };
                for (l, last) in STEPS.into_iter().enumerate() {
                    let sum = costs[from][l] + cost(last);
                    if sum < costs[cell(i, j)][k] {
                        costs[cell(i, j)][k] = sum;
                        before[cell(i, j)][k] = last;
                    }
                }
            }
        }
    }
    let (mut i, mut j) = (out.len(), added.len());
    let mut step = STEPS[(0..3).min_by_key(|&k| costs[cell(i, j)][k]).unwrap_or(0)];
    let mut parts: Vec<Allele> = vec![];
    while i > 0 || j > 0 {
        let previous = before[cell(i, j)][step as usize];
        i -= usize::from(step != Step::In);
        j -= usize::from(step != Step::Out);
        let (removed, put) =
            (&out[i..i + usize::from(step != Step::In)], &added[j..j + usize::from(step != Step::Out)]);
        if removed != put {
            let start = allele.start + i;
            match parts.last_mut() {
                // Gaps grow; substitutions stay single.
                Some(part) if step != Step::Both && part.is_gap() && part.start == start + removed.len() => {
                    part.start = start;
                    part.removed.splice(0..0, removed.iter().copied());
                    part.added.splice(0..0, put.iter().copied());
                }
                _ => parts.push(Allele { start, removed: removed.to_vec(), added: put.to_vec() }),
            }
        }
        step = previous;
    }
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn split(reference: &str, alternate: &str) -> Vec<(usize, String, String)> {
        let allele = Allele::new(101, reference.as_bytes(), alternate.as_bytes());
        let text = |bases: Vec<u8>| String::from_utf8(bases).unwrap();
        decompose(&allele).into_iter().map(|a| (a.start, text(a.removed), text(a.added))).collect()
    }

    fn part(start: usize, removed: &str, added: &str) -> (usize, String, String) {
        (start, removed.into(), added.into())
    }

    #[test]
    fn neighbours_come_apart() {
        assert_eq!(split("GAC", "G"), [part(101, "AC", "")]);
        assert_eq!(split("ACGTTGCA", "TCGTTG"), [part(100, "A", "T"), part(106, "CA", "")]);
        assert_eq!(split("ACGTAC", "GCGTATTC"), [part(100, "A", "G"), part(105, "", "TT")]);
        assert_eq!(split("AC", "GT"), [part(100, "A", "G"), part(101, "C", "T")]);
        assert_eq!(split("ACGT", "TG").len(), 3);
    }

    #[test]
    fn parts_do_together_what_the_whole_does() {
        let mut rng = Rng::stream(8, &[]);
        for _ in 0..2000 {
            let mut word = |n: usize| -> Vec<u8> { (0..n).map(|_| *rng.pick(b"ACGT")).collect() };
            let (removed, added) = (word(7), word(5));
            let allele = Allele { start: 40, removed: removed.clone(), added: added.clone() };
            let mut spelled = removed;
            for part in decompose(&allele).iter().rev() {
                let at = part.start - 40;
                spelled.splice(at..at + part.removed.len(), part.added.iter().copied());
            }
            assert_eq!(spelled, added);
        }
    }
}
