//! One replacement of some bases by some others as the fewest substitutions, insertions and deletions that do the same.

use super::normalise::Allele;
use crate::somatic::SHORTEST_SV;

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

/// The longest allele that is split, bp.
const LONGEST: usize = 500;
/// An allele has nothing in common with what it replaces if that takes more parts than this, and one more for so many bases.
const PARTS: (usize, usize) = (3, 6);

/// The substitutions, insertions and deletions that an allele comes down to; `None` if they are so many that it is
/// rather bases replaced by unlike ones.
pub fn parts(allele: &Allele) -> Option<Vec<Allele>> {
    if allele.is_gap() {
        return Some(vec![allele.clone()]);
    }
    let (lost, gained) = (allele.removed.len(), allele.added.len());
    let longest = lost.max(gained);
    let most = PARTS.0 + longest / PARTS.1;
    let split = (longest <= LONGEST).then(|| decompose(allele)).filter(|parts| parts.len() <= most);
    if lost != gained {
        return split;
    }
    // As long as they are few, or take no more than gaps would, bases change one by one.
    let single: Vec<Allele> = (0..lost)
        .filter(|&i| allele.removed[i] != allele.added[i])
        .map(|i| Allele {
            start: allele.start + i,
            removed: vec![allele.removed[i]],
            added: vec![allele.added[i]],
        })
        .collect();
    let few = longest < SHORTEST_SV || single.len() <= most;
    split.filter(|parts| parts.len() < single.len()).or(few.then_some(single))
}

/// Splits an allele by the cheapest alignment of its bases (Gotoh, Journal of Molecular Biology 1982). The parts are in
/// order and do not touch; a pure insertion or deletion stays as it is.
fn decompose(allele: &Allele) -> Vec<Allele> {
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
    fn unlike_bases_stay_together() {
        let mut rng = Rng::stream(9, &[]);
        let mut word = |n: usize| -> Vec<u8> { (0..n).map(|_| *rng.pick(b"ACGT")).collect() };
        let (one, other) = (word(60), word(45));
        assert_eq!(parts(&Allele { start: 9, removed: one.clone(), added: other }), None);
        // Long ones with little between them come apart; so do as many bases that move by one.
        let mut changed = one.clone();
        changed[2] = if changed[2] == b'A' { b'C' } else { b'A' };
        changed.splice(50..53, []);
        let found = parts(&Allele { start: 9, removed: one.clone(), added: changed }).unwrap();
        assert_eq!((found.len(), found[0].start, found[1].net()), (2, 11, -3));
        let mut substituted = one.clone();
        for at in [0, 30, 59] {
            substituted[at] = if substituted[at] == b'A' { b'C' } else { b'A' };
        }
        let found = parts(&Allele { start: 9, removed: one.clone(), added: substituted }).unwrap();
        assert_eq!(found.iter().map(|a| a.start).collect::<Vec<_>>(), [9, 39, 68]);
        let moved = [&one[1..], b"G"].concat();
        let found = parts(&Allele { start: 9, removed: one, added: moved }).unwrap();
        assert_eq!(found.iter().map(Allele::net).collect::<Vec<_>>(), [-1, 1]);
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
