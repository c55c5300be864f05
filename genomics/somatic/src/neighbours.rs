//! Neighbouring substitutions of a contig that the same molecules have become one change.

use std::collections::HashMap;

use crate::change::Change;
use crate::compare::{Compared, Finding};
use crate::errors::Errors;
use crate::locus::Locus;
use crate::recruit::Kept;
use crate::vote::Shared;

/// A substitution: sequence, position, bases before and after.
fn substitution(change: &Change) -> Option<(usize, usize, &[u8], &[u8])> {
    match change {
        Change::Allele { chrom, pos, reference, alternative } if reference.len() == alternative.len() => {
            Some((*chrom, *pos, reference, alternative))
        }
        _ => None,
    }
}

/// Two substitutions of neighbouring bases as one change.
fn joined_change(a: &Change, b: &Change) -> Option<Change> {
    let (a, b) = (substitution(a)?, substitution(b)?);
    let (first, second) = if a.1 < b.1 { (a, b) } else { (b, a) };
    (first.0 == second.0 && first.1 + first.2.len() == second.1).then(|| Change::Allele {
        chrom: first.0,
        pos: first.1,
        reference: [first.2, second.2].concat(),
        alternative: [first.3, second.3].concat(),
    })
}

/// The same as findings, `a` before `b` on their contig.
fn joined(a: &Finding, b: &Finding) -> Option<Finding> {
    let change = joined_change(&a.change, &b.change).filter(|_| a.at.end == b.at.start)?;
    let mut normal = a.left_normal.clone();
    normal.get_mut(b.at.clone())?.copy_from_slice(b.left_normal.get(b.at.clone())?);
    Some(Finding {
        change,
        at: a.at.start..b.at.end,
        left_normal: normal.clone(),
        right_normal: normal,
        right_shift: 0,
        mapq: a.mapq.min(b.mapq),
    })
}

/// The findings of a contig, by index and in its order, that neighbour the one before them.
fn neighbours(contig: &Compared) -> Vec<[usize; 2]> {
    let mut order: Vec<usize> = (0..contig.findings.len()).collect();
    order.sort_by_key(|&f| (contig.findings[f].at.start, f));
    let adjacent = |two: &&[usize]| joined(&contig.findings[two[0]], &contig.findings[two[1]]).is_some();
    order.windows(2).filter(adjacent).map(|two| [two[0], two[1]]).collect()
}

/// Whether a contig shows neighbouring substitutions.
pub(crate) fn has_neighbours(contig: &Compared) -> bool {
    !neighbours(contig).is_empty()
}

/// Two neighbouring substitutions by the change they make together, and the molecules of both samples that show them.
pub(crate) type Neighbours = (Change, Shared);

/// What the reads of locus `l` say of its neighbouring substitutions.
pub fn weigh_neighbours(l: usize, loci: &[Locus], pairs: &[Kept], errors: &Errors) -> Vec<Neighbours> {
    let contig = &loci[l].contig;
    let found = neighbours(contig);
    if found.is_empty() {
        return Vec::new();
    }
    let evidence = loci[l].evidence(loci, pairs, errors);
    let weigh = |[a, b]: [usize; 2]| {
        let mut shared = Shared::default();
        for (first, second) in evidence.votes(a).iter().zip(&evidence.votes(b)) {
            shared.add(&Shared::of(first, second));
        }
        joined_change(&contig.findings[a].change, &contig.findings[b].change).map(|change| (change, shared))
    };
    found.into_iter().filter_map(weigh).collect()
}

/// Makes one change of neighbouring substitutions that came about together, on all contigs alike, by what is told on the contig where
/// most molecules have both.
pub fn join_neighbours(loci: &mut [Locus], weighed: impl IntoIterator<Item = Neighbours>) {
    let mut best: HashMap<Change, Shared> = HashMap::new();
    for (change, shared) in weighed {
        let known = best.entry(change).or_insert(shared);
        if shared.both > known.both {
            *known = shared;
        }
    }
    best.retain(|_, shared| shared.at_once());
    if !best.is_empty() {
        loci.iter_mut().for_each(|locus| join(&mut locus.contig, |change| best.contains_key(change)));
    }
}

/// Joins the neighbours on a contig that make a change of which `together` holds.
fn join(contig: &mut Compared, together: impl Fn(&Change) -> bool) {
    let change = |f: usize| &contig.findings[f].change;
    let mut two = neighbours(contig);
    two.retain(|&[a, b]| joined_change(change(a), change(b)).is_some_and(|c| together(&c)));
    let mut gone = vec![false; contig.findings.len()];
    // From the last to the first: each takes along what follows it.
    for [a, b] in two.into_iter().rev() {
        if let Some(whole) = joined(&contig.findings[a], &contig.findings[b]) {
            contig.findings[a] = whole;
            gone[b] = true;
        }
    }
    let mut gone = gone.into_iter();
    contig.findings.retain(|_| gone.next() != Some(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A contig of `ACGT` repeated, with changed bases: of each, where it lies on the contig and in the genome.
    fn contig(places: &[(usize, usize)]) -> Compared {
        let normal = b"ACGT".repeat(10);
        let mut seq = normal.clone();
        places.iter().for_each(|&(at, _)| seq[at] = b'N');
        let finding = |&(at, pos): &(usize, usize)| {
            let mut undone = seq.clone();
            undone[at] = normal[at];
            let (reference, alternative) = (vec![normal[at]], vec![at as u8]);
            Finding {
                change: Change::Allele { chrom: 0, pos, reference, alternative },
                at: at..at + 1,
                left_normal: undone.clone(),
                right_normal: undone,
                right_shift: 0,
                mapq: 60,
            }
        };
        Compared {
            findings: places.iter().map(finding).collect(),
            novel: vec![true; seq.len()],
            weight: vec![400; seq.len()],
            assembled: 0..seq.len(),
            depth: 9,
            diagonals: [None; 2],
            seq,
        }
    }

    /// Contig range, position and tumour bases of each finding once all neighbours are joined.
    fn all_joined(places: &[(usize, usize)]) -> Vec<(std::ops::Range<usize>, usize, Vec<u8>)> {
        let mut contig = contig(places);
        join(&mut contig, |_| true);
        let told = |f: &Finding| {
            // Undone are all its bases and no others.
            for i in 0..contig.seq.len() {
                let expected = if f.at.contains(&i) { b"ACGT"[i % 4] } else { contig.seq[i] };
                assert_eq!(f.left_normal[i], expected);
            }
            assert_eq!(f.left_normal, f.right_normal);
            let (_, pos, _, alternative) = substitution(&f.change).unwrap();
            (f.at.clone(), pos, alternative.to_vec())
        };
        contig.findings.iter().map(told).collect()
    }

    #[test]
    fn neighbours_are_joined_in_the_order_of_the_genome() {
        assert_eq!(all_joined(&[(9, 109), (10, 110)]), [(9..11, 109, vec![9, 10])]);
        // The contig runs against the genome here.
        assert_eq!(all_joined(&[(9, 112), (10, 111), (11, 110)]), [(9..12, 110, vec![11, 10, 9])]);
        // Whatever the order of findings; what is no neighbour stays.
        let apart = [(20, 120), (10, 110), (12, 112), (9, 109), (21, 121)];
        assert_eq!(
            all_joined(&apart),
            [(20..22, 120, vec![20, 21]), (12..13, 112, vec![12]), (9..11, 109, vec![9, 10])]
        );
        // Neighbours on the contig that are none in the genome.
        assert_eq!(all_joined(&[(9, 109), (10, 310)]).len(), 2);
    }
}
