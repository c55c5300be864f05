//! Merges adjacent substitutions of a contig into one change (MNV) if the same molecules show them.

use std::collections::HashMap;

use crate::aligned_contig::{AlignedContig, ContigChange};
use crate::change::Change;
use crate::locus::Locus;
use crate::molecule_vote::TwoChangeMoleculeCounts;
use crate::recruit::RecruitedPair;
use crate::sequencing_errors::ErrorModel;

/// If a change is a substitution: its chromosome index, position, reference bases and alternative bases; otherwise
/// `None`.
fn as_substitution(change: &Change) -> Option<(usize, usize, &[u8], &[u8])> {
    match change {
        Change::Allele { chrom, pos, reference, alternative } if reference.len() == alternative.len() => {
            Some((*chrom, *pos, reference, alternative))
        }
        _ => None,
    }
}

/// The single change that two substitutions of adjacent bases form together; `None` if they are not adjacent.
fn merge_substitutions(a: &Change, b: &Change) -> Option<Change> {
    let (a, b) = (as_substitution(a)?, as_substitution(b)?);
    let (first, second) = if a.1 < b.1 { (a, b) } else { (b, a) };
    (first.0 == second.0 && first.1 + first.2.len() == second.1).then(|| Change::Allele {
        chrom: first.0,
        pos: first.1,
        reference: [first.2, second.2].concat(),
        alternative: [first.3, second.3].concat(),
    })
}

/// The single contig change that two adjacent substitutions form together; `a` is before `b` on the contig. `None` if
/// they are not adjacent.
fn merge_contig_changes(a: &ContigChange, b: &ContigChange) -> Option<ContigChange> {
    let change = merge_substitutions(&a.change, &b.change).filter(|_| a.contig_range.end == b.contig_range.start)?;
    let mut normal = a.left_normal.clone();
    normal.get_mut(b.contig_range.clone())?.copy_from_slice(b.left_normal.get(b.contig_range.clone())?);
    Some(ContigChange {
        change,
        contig_range: a.contig_range.start..b.contig_range.end,
        left_normal: normal.clone(),
        right_normal: normal,
        right_shift: 0,
        mapq: a.mapq.min(b.mapq),
    })
}

/// Index pairs of adjacent substitutions among the changes of a contig, from left to right.
fn adjacent_pairs(contig: &AlignedContig) -> Vec<[usize; 2]> {
    let mut order: Vec<usize> = (0..contig.changes.len()).collect();
    order.sort_by_key(|&f| (contig.changes[f].contig_range.start, f));
    let adjacent = |two: &&[usize]| merge_contig_changes(&contig.changes[two[0]], &contig.changes[two[1]]).is_some();
    order.windows(2).filter(adjacent).map(|two| [two[0], two[1]]).collect()
}

/// Whether the contig has two adjacent substitutions.
pub(crate) fn has_adjacent_substitutions(contig: &AlignedContig) -> bool {
    !adjacent_pairs(contig).is_empty()
}

/// The change that two adjacent substitutions form together, and how many molecules of all samples show both, or only
/// one of them.
pub(crate) type MergedChangeWithMoleculeCounts = (Change, TwoChangeMoleculeCounts);

/// For each pair of adjacent substitutions of the contig of `loci[l]`, counts the molecules that show both, or only one
/// of them.
pub fn count_molecules_of_adjacent_substitutions(
    l: usize,
    loci: &[Locus],
    pairs: &[RecruitedPair],
    errors: &ErrorModel,
) -> Vec<MergedChangeWithMoleculeCounts> {
    let contig = &loci[l].contig;
    let found = adjacent_pairs(contig);
    if found.is_empty() {
        return Vec::new();
    }
    let evidence = loci[l].compute_locus_evidence(loci, pairs, errors);
    let count = |[a, b]: [usize; 2]| {
        let mut shared = TwoChangeMoleculeCounts::default();
        for (first, second) in evidence.molecule_votes(a).iter().zip(&evidence.molecule_votes(b)) {
            shared.merge_counts(&TwoChangeMoleculeCounts::from_votes(first, second));
        }
        merge_substitutions(&contig.changes[a].change, &contig.changes[b].change).map(|change| (change, shared))
    };
    found.into_iter().filter_map(count).collect()
}

/// Merges adjacent substitutions that arose in one event, in all contigs that show them. `joint_counts` has the counts
/// of each contig; if several contigs show the same substitutions, the counts with the most molecules that show both
/// are used.
pub fn merge_adjacent_substitutions(
    loci: &mut [Locus],
    joint_counts: impl IntoIterator<Item = MergedChangeWithMoleculeCounts>,
) {
    let mut best: HashMap<Change, TwoChangeMoleculeCounts> = HashMap::new();
    for (change, shared) in joint_counts {
        let known = best.entry(change).or_insert(shared);
        if shared.both > known.both {
            *known = shared;
        }
    }
    best.retain(|_, shared| shared.arose_in_one_event());
    if !best.is_empty() {
        loci.iter_mut().for_each(|locus| merge_in_contig(&mut locus.contig, |change| best.contains_key(change)));
    }
}

/// Merges the adjacent substitutions of a contig whose joint change fulfils `together`.
fn merge_in_contig(contig: &mut AlignedContig, together: impl Fn(&Change) -> bool) {
    let change = |f: usize| &contig.changes[f].change;
    let mut two = adjacent_pairs(contig);
    two.retain(|&[a, b]| merge_substitutions(change(a), change(b)).is_some_and(|c| together(&c)));
    let mut gone = vec![false; contig.changes.len()];
    // From the last to the first: each merge includes the changes after it.
    for [a, b] in two.into_iter().rev() {
        if let Some(whole) = merge_contig_changes(&contig.changes[a], &contig.changes[b]) {
            contig.changes[a] = whole;
            gone[b] = true;
        }
    }
    let mut gone = gone.into_iter();
    contig.changes.retain(|_| gone.next() != Some(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A contig of repeated `ACGT` with changed bases at the given positions on the contig and in the genome.
    fn contig(places: &[(usize, usize)]) -> AlignedContig {
        let normal = b"ACGT".repeat(10);
        let mut seq = normal.clone();
        places.iter().for_each(|&(at, _)| seq[at] = b'N');
        let finding = |&(at, pos): &(usize, usize)| {
            let mut undone = seq.clone();
            undone[at] = normal[at];
            let (reference, alternative) = (vec![normal[at]], vec![at as u8]);
            ContigChange {
                change: Change::Allele { chrom: 0, pos, reference, alternative },
                contig_range: at..at + 1,
                left_normal: undone.clone(),
                right_normal: undone,
                right_shift: 0,
                mapq: 60,
            }
        };
        AlignedContig {
            changes: places.iter().map(finding).collect(),
            novel: vec![true; seq.len()],
            quality_sums: vec![400; seq.len()],
            assembled: 0..seq.len(),
            num_reads: 9,
            diagonals: [None; 2],
            family_alleles: Vec::new(),
            other_loci: Default::default(),
            explanations: Vec::new(),
            seq,
        }
    }

    /// Contig range, position and tumour bases of each change after all adjacent substitutions are merged.
    fn all_joined(places: &[(usize, usize)]) -> Vec<(std::ops::Range<usize>, usize, Vec<u8>)> {
        let mut contig = contig(places);
        merge_in_contig(&mut contig, |_| true);
        let told = |f: &ContigChange| {
            // Exactly the changed bases are undone.
            for i in 0..contig.seq.len() {
                let expected = if f.contig_range.contains(&i) { b"ACGT"[i % 4] } else { contig.seq[i] };
                assert_eq!(f.left_normal[i], expected);
            }
            assert_eq!(f.left_normal, f.right_normal);
            let (_, pos, _, alternative) = as_substitution(&f.change).unwrap();
            (f.contig_range.clone(), pos, alternative.to_vec())
        };
        contig.changes.iter().map(told).collect()
    }

    #[test]
    fn neighbours_are_joined_in_the_order_of_the_genome() {
        assert_eq!(all_joined(&[(9, 109), (10, 110)]), [(9..11, 109, vec![9, 10])]);
        // The contig is on the reverse strand here.
        assert_eq!(all_joined(&[(9, 112), (10, 111), (11, 110)]), [(9..12, 110, vec![11, 10, 9])]);
        // The order of the changes does not matter; changes that are not adjacent remain.
        let apart = [(20, 120), (10, 110), (12, 112), (9, 109), (21, 121)];
        assert_eq!(
            all_joined(&apart),
            [(20..22, 120, vec![20, 21]), (12..13, 112, vec![12]), (9..11, 109, vec![9, 10])]
        );
        // Changes adjacent on the contig but not in the genome.
        assert_eq!(all_joined(&[(9, 109), (10, 310)]).len(), 2);
    }
}
