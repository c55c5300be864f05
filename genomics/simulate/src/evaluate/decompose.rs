//! Splits a complex allele (several bases replaced by others) into substitutions, insertions and deletions, by the
//! alignment with the lowest cost.

use super::normalise::SequenceReplacement;
use crate::somatic::MIN_SV_BP;

/// Alignment cost of a substitution. With these costs the same alleles result whether a caller wrote them as one record
/// or as several; two gaps cost more than three substitutions.
const SUBSTITUTION_COST: u32 = 3;
const GAP_OPEN_COST: u32 = 5;
const GAP_EXTEND_COST: u32 = 1;

/// Type of one column of an alignment of a REF allele with an ALT allele.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AlignmentStep {
    /// A reference base is aligned with an ALT base.
    Aligned,
    /// A reference base is removed.
    Removed,
    /// An ALT base is added.
    Added,
}

const ALIGNMENT_STEPS: [AlignmentStep; 3] = [AlignmentStep::Aligned, AlignmentStep::Removed, AlignmentStep::Added];
const UNREACHABLE_COST: u32 = u32::MAX / 2;

/// Maximum length of an allele that is split, bp.
const MAX_SPLIT_ALLELE_BP: usize = 500;
/// An ALT allele counts as unrelated to the reference if it needs more substitutions and indels than the first number,
/// plus one for every so many bp as the second number.
const MAX_PARTS_AND_BP_PER_PART: (usize, usize) = (3, 6);

/// Splits an allele into substitutions, insertions and deletions. Returns `None` if there are too many of them, or if
/// alleles of unequal length are too long; then the ALT bases count as unrelated to the reference.
pub(super) fn decompose_allele(allele: &SequenceReplacement) -> Option<Vec<SequenceReplacement>> {
    if allele.is_pure_indel() {
        return Some(vec![allele.clone()]);
    }
    let (lost, gained) = (allele.removed.len(), allele.added.len());
    let longest = lost.max(gained);
    let most = MAX_PARTS_AND_BP_PER_PART.0 + longest / MAX_PARTS_AND_BP_PER_PART.1;
    let split = (longest <= MAX_SPLIT_ALLELE_BP).then(|| align_and_split(allele)).filter(|parts| parts.len() <= most);
    if lost != gained {
        return split;
    }
    // Substitutions of equal length change base by base if they are few or take no more parts than gaps would.
    let single: Vec<SequenceReplacement> = (0..lost)
        .filter(|&i| allele.removed[i] != allele.added[i])
        .map(|i| SequenceReplacement {
            start: allele.start + i,
            removed: vec![allele.removed[i]],
            added: vec![allele.added[i]],
        })
        .collect();
    let few = longest < MIN_SV_BP || single.len() <= most;
    split.filter(|parts| parts.len() < single.len()).or(few.then_some(single))
}

/// Splits an allele by the affine-gap alignment with the lowest cost (Gotoh, Journal of Molecular Biology 1982). The
/// resulting variants are sorted and do not overlap. Adjacent removed or added bases are one variant, adjacent
/// substitutions are single variants.
fn align_and_split(allele: &SequenceReplacement) -> Vec<SequenceReplacement> {
    let (out, added) = (&allele.removed, &allele.added);
    let columns = added.len() + 1;
    let cell = |i: usize, j: usize| i * columns + j;
    // Cost of aligning the first i and j bases, by last step, and the step before it.
    let mut costs = vec![[UNREACHABLE_COST; 3]; (out.len() + 1) * columns];
    let mut before = vec![[AlignmentStep::Aligned; 3]; costs.len()];
    costs[0][0] = 0;
    for i in 0..=out.len() {
        for j in 0..=added.len() {
            for (k, step) in ALIGNMENT_STEPS.into_iter().enumerate() {
                let from = match step {
                    AlignmentStep::Aligned if i > 0 && j > 0 => cell(i - 1, j - 1),
                    AlignmentStep::Removed if i > 0 => cell(i - 1, j),
                    AlignmentStep::Added if j > 0 => cell(i, j - 1),
                    _ => continue,
                };
                let cost = |last: AlignmentStep| match step {
                    AlignmentStep::Aligned if out[i - 1] == added[j - 1] => 0,
                    AlignmentStep::Aligned => SUBSTITUTION_COST,
                    _ if last == step => GAP_EXTEND_COST,
                    _ => GAP_OPEN_COST,
                };
                for (l, last) in ALIGNMENT_STEPS.into_iter().enumerate() {
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
    let mut step = ALIGNMENT_STEPS[(0..3).min_by_key(|&k| costs[cell(i, j)][k]).unwrap_or(0)];
    let mut parts: Vec<SequenceReplacement> = vec![];
    while i > 0 || j > 0 {
        let previous = before[cell(i, j)][step as usize];
        i -= usize::from(step != AlignmentStep::Added);
        j -= usize::from(step != AlignmentStep::Removed);
        let (removed, put) = (
            &out[i..i + usize::from(step != AlignmentStep::Added)],
            &added[j..j + usize::from(step != AlignmentStep::Removed)],
        );
        if removed != put {
            let start = allele.start + i;
            match parts.last_mut() {
                // Gaps are extended; substitutions stay single.
                Some(part)
                    if step != AlignmentStep::Aligned
                        && part.is_pure_indel()
                        && part.start == start + removed.len() =>
                {
                    part.start = start;
                    part.removed.splice(0..0, removed.iter().copied());
                    part.added.splice(0..0, put.iter().copied());
                }
                _ => parts.push(SequenceReplacement { start, removed: removed.to_vec(), added: put.to_vec() }),
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
        let allele = SequenceReplacement::from_vcf_alleles(101, reference.as_bytes(), alternate.as_bytes());
        let text = |bases: Vec<u8>| String::from_utf8(bases).unwrap();
        align_and_split(&allele).into_iter().map(|a| (a.start, text(a.removed), text(a.added))).collect()
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
        let mut rng = Rng::from_seed_and_labels(9, &[]);
        let mut word = |n: usize| -> Vec<u8> { (0..n).map(|_| *rng.choose_item(b"ACGT")).collect() };
        let (one, other) = (word(60), word(45));
        assert_eq!(decompose_allele(&SequenceReplacement { start: 9, removed: one.clone(), added: other }), None);
        // A long allele with few differences is split; so is one in which all bases shift by one.
        let mut changed = one.clone();
        changed[2] = if changed[2] == b'A' { b'C' } else { b'A' };
        changed.splice(50..53, []);
        let found = decompose_allele(&SequenceReplacement { start: 9, removed: one.clone(), added: changed }).unwrap();
        assert_eq!((found.len(), found[0].start, found[1].length_change_bp()), (2, 11, -3));
        let mut substituted = one.clone();
        for at in [0, 30, 59] {
            substituted[at] = if substituted[at] == b'A' { b'C' } else { b'A' };
        }
        let found =
            decompose_allele(&SequenceReplacement { start: 9, removed: one.clone(), added: substituted }).unwrap();
        assert_eq!(found.iter().map(|a| a.start).collect::<Vec<_>>(), [9, 39, 68]);
        let moved = [&one[1..], b"G"].concat();
        let found = decompose_allele(&SequenceReplacement { start: 9, removed: one, added: moved }).unwrap();
        assert_eq!(found.iter().map(SequenceReplacement::length_change_bp).collect::<Vec<_>>(), [-1, 1]);
    }

    #[test]
    fn parts_do_together_what_the_whole_does() {
        let mut rng = Rng::from_seed_and_labels(8, &[]);
        for _ in 0..2000 {
            let mut word = |n: usize| -> Vec<u8> { (0..n).map(|_| *rng.choose_item(b"ACGT")).collect() };
            let (removed, added) = (word(7), word(5));
            let allele = SequenceReplacement { start: 40, removed: removed.clone(), added: added.clone() };
            let mut spelled = removed;
            for part in align_and_split(&allele).iter().rev() {
                let at = part.start - 40;
                spelled.splice(at..at + part.removed.len(), part.added.iter().copied());
            }
            assert_eq!(spelled, added);
        }
    }
}
