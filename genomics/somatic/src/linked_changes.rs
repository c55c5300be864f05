//! Finds small changes of a contig that are linked: the same tumour molecules have them, so they are on one haplotype.
//! Each molecule that crosses any of them shows whether a sample has the haplotype.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::aligned_contig::{AlignedContig, ContigChange};
use crate::change::{Change, is_small_variant};
use crate::divergence;
use crate::genotype::{self, AlleleSupport};
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::molecule_vote::{MoleculeVote, TwoChangeMoleculeCounts};

/// A change of a contig with the molecules' votes on it, sorted by pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChangeWithVotes<'a> {
    pub(crate) change: &'a Change,
    /// Range of the changed bases on the contig.
    pub(crate) contig_range: &'a Range<usize>,
    pub(crate) normal: &'a [MoleculeVote],
    pub(crate) tumours: &'a [Vec<MoleculeVote>],
    /// Votes of the molecules of all tumours together, sorted by pair.
    pub(crate) pooled: &'a [MoleculeVote],
}

/// Evidence for one change from other small changes on its haplotype.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct LinkageEvidence {
    /// Whether the tumour molecules with the change also have another small change that is not a germline variant of
    /// the normal. In a cluster of deaminated cytosines (kataegis) the changes are mutations of one event, and none
    /// counts as linked.
    pub(crate) is_linked: bool,
    /// Natural-log likelihood ratio of a somatic haplotype over a haplotype that normal and tumour share, from all
    /// molecules that cross any of the changes that arose in one event; `None` if no other change did.
    pub(crate) haplotype_log_ratio: Option<f64>,
    /// Natural-log odds that the changes that arose in one event are a cluster of mutations rather than differences
    /// spread over the contig; 0 if they are too few or too far apart for a cluster.
    pub(crate) cluster_log_odds: f64,
}

/// Minimum number of changes in a cluster. Chosen: kataegis has six mutations or more.
const MIN_CLUSTER_CHANGES: usize = 6;

/// Maximum length of a cluster as a fraction of its contig. Chosen: a contig reaches up to a read length beyond its
/// outermost changes. With hundreds of differences of another species or copy, that rest alone would be so improbable
/// as to count as a cluster.
const MAX_CLUSTER_CONTIG_FRACTION: f64 = 0.5;

/// Returns the linkage of each change of a contig whose assembled bases are `assembled`. `in_normal` is the known ratio of
/// the allele fraction in the normal to that in the tumour (tumour in normal); 0 if none is known.
pub(crate) fn compute_linkage_evidence(
    changes: &[ChangeWithVotes<'_>],
    assembled: &Range<usize>,
    in_normal: f64,
) -> Vec<LinkageEvidence> {
    let small = || changes.iter().map(|own| own.change).filter(|change| is_small_variant(change));
    if small().nth(1).is_none() {
        return vec![LinkageEvidence::default(); changes.len()];
    }
    let is_kataegis = divergence::are_mostly_deaminations(small());
    let is_germline = |own: &ChangeWithVotes<'_>| {
        AlleleSupport::count_supporting_molecules(own.normal).supporting_vote_share()
            >= GENOTYPE_MODEL_PARAMS.min_germline_fraction
    };
    let can_be_linked: Vec<bool> =
        changes.iter().map(|own| is_small_variant(own.change) && !is_germline(own)).collect();
    let of_change = |f: usize| {
        let own = &changes[f];
        let others = (0..changes.len()).filter(|&g| g != f && can_be_linked[g] && is_small_variant(own.change));
        let supports: Vec<(usize, TwoChangeMoleculeCounts)> =
            others.map(|g| (g, TwoChangeMoleculeCounts::from_votes(own.pooled, changes[g].pooled))).collect();
        let is_linked = !is_kataegis && supports.iter().any(|(_, support)| support.is_in_phase());
        let (together, apart): (Vec<_>, Vec<_>) =
            supports.iter().partition(|(_, support)| support.arose_in_one_event());
        let haplotype: Vec<&ChangeWithVotes<'_>> =
            std::iter::once(own).chain(together.iter().map(|(g, _)| &changes[*g])).collect();
        let ranges = haplotype.iter().map(|own| own.contig_range);
        let free_len = free_len(ranges.clone(), apart.iter().map(|(g, _)| changes[*g].contig_range), assembled);
        LinkageEvidence {
            is_linked,
            haplotype_log_ratio: haplotype_log_ratio(&haplotype, in_normal),
            cluster_log_odds: cluster_log_odds(ranges, free_len),
        }
    };
    (0..changes.len()).map(of_change).collect()
}

/// Whether all changes of a contig are a cluster that arose in the tumour in one event: they are nearer to each other
/// than differences of a paralog, and molecules of the normal lack their haplotype.
pub(crate) fn is_somatic_cluster(linkage: &[LinkageEvidence]) -> bool {
    let least = GENOTYPE_MODEL_PARAMS.linked_allele_log_odds;
    linkage
        .iter()
        .all(|own| own.cluster_log_odds >= least && own.haplotype_log_ratio.is_some_and(|log_ratio| log_ratio >= least))
}

/// Whether the small changes of a contig are nearer to each other than differences of a paralog.
pub(crate) fn are_changes_clustered(contig: &AlignedContig) -> bool {
    cluster_log_odds_of_contig(contig) > 0.0
}

/// Natural-log odds that the small changes of a contig are a cluster of mutations rather than differences of another
/// locus. Those are spread over the whole contig, or over its stretch beside a junction.
pub(crate) fn cluster_log_odds_of_contig(contig: &AlignedContig) -> f64 {
    let is_small = |f: &&ContigChange| is_small_variant(&f.change);
    let small = contig.changes.iter().filter(is_small).map(|f| &f.contig_range);
    let junctions =
        contig.changes.iter().filter(|f| !is_small(f)).flat_map(|f| [f.contig_range.start, f.contig_range.end]);
    let mut bounds: Vec<usize> = junctions.chain([contig.assembled.start, contig.assembled.end]).collect();
    bounds.sort_unstable();
    let has_change = |stretch: &&[usize]| small.clone().any(|at| stretch[0] <= at.start && at.end <= stretch[1]);
    let len = bounds.windows(2).filter(has_change).map(|stretch| stretch[1] - stretch[0]).sum();
    cluster_log_odds(small, len)
}

/// Length of the stretch of a contig that holds the changes at `ranges` and ends at the nearest changes of `others` on
/// either side, or at the ends of the assembled bases. Molecules link only changes within a fragment of each other. If
/// there are other changes on both sides of the linked ones, all of them are differences of another locus.
fn free_len<'a>(
    ranges: impl Iterator<Item = &'a Range<usize>> + Clone,
    others: impl Iterator<Item = &'a Range<usize>> + Clone,
    assembled: &Range<usize>,
) -> usize {
    let start = ranges.clone().map(|range| range.start).min().unwrap_or(assembled.start);
    let end = ranges.map(|range| range.end).max().unwrap_or(assembled.end);
    let left = others.clone().map(|range| range.end).filter(|&at| at <= start).max().unwrap_or(assembled.start);
    let right = others.map(|range| range.start).filter(|&at| at >= end).min().unwrap_or(assembled.end);
    right.saturating_sub(left)
}

/// Natural-log odds of a cluster of mutations over differences of a paralog, which are anywhere on the contig: from the
/// probability that all are as near to each other by chance. 0 if they are too few or too far apart.
fn cluster_log_odds<'a>(ranges: impl Iterator<Item = &'a Range<usize>> + Clone, contig_len: usize) -> f64 {
    let n = ranges.clone().count();
    let start = ranges.clone().map(|range| range.start).min().unwrap_or(0);
    let span = ranges.map(|range| range.end).max().unwrap_or(0).saturating_sub(start).max(1);
    if n < MIN_CLUSTER_CHANGES || span as f64 > MAX_CLUSTER_CONTIG_FRACTION * contig_len as f64 {
        return 0.0;
    }
    // docs/model/genotype.md (21)
    ((n - 1) as f64 * (contig_len as f64 / span as f64).ln() - (n as f64).ln()).max(0.0)
}

/// Natural-log likelihood ratio of a somatic haplotype over a haplotype that the normal and all tumours share. `None` for
/// a single change.
fn haplotype_log_ratio(haplotype: &[&ChangeWithVotes<'_>], in_normal: f64) -> Option<f64> {
    let first = haplotype.first().filter(|_| haplotype.len() > 1)?;
    let normal = add_votes(haplotype.iter().map(|own| own.normal));
    let votes_of_tumour = |t: usize| add_votes(haplotype.iter().map(|own| &own.tumours[t][..]));
    let tumours: Vec<Vec<MoleculeVote>> = (0..first.tumours.len()).map(votes_of_tumour).collect();
    Some(genotype::somatic_over_shared_log_ratio(&normal, &tumours, in_normal))
}

/// Combines the votes on several changes of one haplotype to one vote for each molecule, sorted by pair. The log-odds
/// are added, but limited to the largest of one change: a molecule may be wrong as a whole.
fn add_votes<'a>(votes_by_change: impl Iterator<Item = &'a [MoleculeVote]>) -> Vec<MoleculeVote> {
    let mut by_molecule: BTreeMap<u32, (MoleculeVote, f64)> = BTreeMap::new();
    for vote in votes_by_change.flatten() {
        by_molecule
            .entry(vote.pair)
            .and_modify(|(sum, largest)| {
                sum.log_odds += vote.log_odds;
                *largest = largest.max(vote.log_odds.abs());
            })
            .or_insert((*vote, vote.log_odds.abs()));
    }
    let limit =
        |(sum, largest): (MoleculeVote, f64)| MoleculeVote { log_odds: sum.log_odds.clamp(-largest, largest), ..sum };
    by_molecule.into_values().map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::Contig;
    use crate::change::{Breakend, RetainedSide};

    fn vote(pair: u32, supports: bool) -> MoleculeVote {
        MoleculeVote::for_test(pair, if supports { 9.0 } else { -9.0 })
    }

    /// Votes of `depth` pairs from `first` on; the first `alternative` of them support the change.
    fn votes(first: u32, alternative: u32, depth: u32) -> Vec<MoleculeVote> {
        (first..first + depth).map(|pair| vote(pair, pair < first + alternative)).collect()
    }

    fn snv(pos: usize, reference: &[u8], alternative: &[u8]) -> Change {
        Change::Allele { chrom: 0, pos, reference: reference.to_vec(), alternative: alternative.to_vec() }
    }

    /// The linkage of two changes at an allele fraction of one fifth. Half of the molecules cross both; `in_normal`
    /// molecules of the normal have the second change.
    fn linkage_of(second: &Change, in_normal: u32) -> Vec<LinkageEvidence> {
        let first = snv(100, b"A", b"G");
        // Pairs 0 to 9 have both changes and cross both; others cross one of them.
        let both = [votes(0, 10, 10), votes(10, 0, 20)].concat();
        let tumours = [vec![[both.clone(), votes(40, 2, 30)].concat()], vec![[both, votes(100, 2, 30)].concat()]];
        let normals = [votes(200, 0, 30), votes(220, in_normal, 30)];
        let changes: Vec<ChangeWithVotes<'_>> = [&first, second]
            .into_iter()
            .zip(normals.iter().zip(&tumours))
            .map(|(change, (normal, tumours))| ChangeWithVotes {
                change,
                contig_range: &(100..101),
                normal,
                tumours,
                pooled: &tumours[0],
            })
            .collect();
        compute_linkage_evidence(&changes, &(0..300), 0.0)
    }

    #[test]
    fn molecules_across_either_change_exclude_the_haplotype() {
        let linkage = linkage_of(&snv(160, b"T", b"C"), 0);
        let own = genotype::somatic_over_shared_log_ratio(
            &votes(200, 0, 30),
            &[[votes(0, 10, 30), votes(40, 2, 30)].concat()],
            0.0,
        );
        for one in &linkage {
            assert!(one.is_linked, "{linkage:?}");
            assert!(one.haplotype_log_ratio.is_some_and(|ratio| ratio > own + 1.0), "{linkage:?} {own}");
        }
        // A molecule of the normal with either change counts against both.
        let shared = linkage_of(&snv(160, b"T", b"C"), 2);
        assert!(shared[0].haplotype_log_ratio < linkage[0].haplotype_log_ratio, "{shared:?}");
    }

    #[test]
    fn changes_without_common_molecules_are_not_linked() {
        let alone = linkage_of(&snv(160, b"T", b"C"), 10);
        // The second change is germline.
        assert_eq!(alone[0], LinkageEvidence::default());
        let junction = Change::Novel {
            end: crate::change::Breakend { chrom: 0, pos: 5, side: crate::change::RetainedSide::Left },
            sequence: b"ACGT".repeat(20),
        };
        assert_eq!(linkage_of(&junction, 0), [LinkageEvidence::default(); 2]);
    }

    #[test]
    fn a_somatic_cluster_needs_both_kinds_of_evidence() {
        let linkage =
            |cluster_log_odds, ratio| LinkageEvidence { is_linked: true, haplotype_log_ratio: ratio, cluster_log_odds };
        let [both, shared] = [linkage(5.0, Some(6.0)), linkage(5.0, Some(3.0))];
        assert!(is_somatic_cluster(&[both; 10]));
        for other in [shared, linkage(5.0, None), linkage(0.0, Some(6.0))] {
            assert!(!is_somatic_cluster(&[both, other]));
        }
    }

    #[test]
    fn many_changes_near_each_other_are_a_cluster() {
        let log_odds = |places: &[usize]| {
            let ranges: Vec<Range<usize>> = places.iter().map(|&at| at..at + 1).collect();
            cluster_log_odds(ranges.iter(), 340)
        };
        assert!(log_odds(&[120, 130, 150, 160, 170, 180, 190, 210]) > 5.0);
        // Differences of another locus, and few changes.
        assert!(log_odds(&[10, 60, 110, 150, 200, 260, 320]) < 0.5);
        assert_eq!([log_odds(&[120, 130, 150]), log_odds(&[])], [0.0; 2]);
    }

    #[test]
    fn a_cluster_is_alone_on_its_stretch_of_the_contig() {
        let ranges = |places: &[usize]| -> Vec<Range<usize>> { places.iter().map(|&at| at..at + 1).collect() };
        let free_len =
            |own: &[usize], others: &[usize]| free_len(ranges(own).iter(), ranges(others).iter(), &(500..2500));
        assert_eq!(free_len(&[1000, 1050], &[]), 2000);
        assert_eq!(free_len(&[1000, 1050], &[600, 900, 1020, 1200, 1400]), 299);
        assert_eq!(free_len(&[1000, 1050], &[1200]), 700);
        // Differences of another species, of which molecules link those within a fragment.
        let linked: Vec<usize> = (1000..1400).step_by(20).collect();
        let others: Vec<usize> = (500..1000).step_by(20).chain((1400..2500).step_by(20)).collect();
        assert_eq!(cluster_log_odds(ranges(&linked).iter(), free_len(&linked, &others)), 0.0);
        // Hundreds of differences that reach nearly to the ends of the contig.
        let all: Vec<usize> = (600..2400).step_by(6).collect();
        assert_eq!(cluster_log_odds(ranges(&all).iter(), 2000), 0.0);
    }

    #[test]
    fn differences_of_an_inserted_element_are_spread_over_its_stretch() {
        let contig = |places: &[usize], junction: Option<usize>| {
            let seq = vec![b'A'; 800];
            let assembled = Contig {
                novel: vec![true; seq.len()],
                quality_sums: vec![90; seq.len()],
                seq,
                reads: Vec::new(),
                outer_mates: Default::default(),
            };
            let found = |change: Change, at: Range<usize>| ContigChange {
                change,
                contig_range: at,
                left_normal: Vec::new(),
                right_normal: Vec::new(),
                right_shift: 0,
                mapq: 60,
            };
            let mut contig = AlignedContig::from_unplaced_contig(&assembled);
            let ends = [(300, RetainedSide::Left), (900, RetainedSide::Right)];
            let ends = ends.map(|(pos, side)| Breakend { chrom: 0, pos, side });
            let junction =
                junction.map(|at| found(Change::Junction { ends, inserted: Vec::new(), homology: 0 }, at..at));
            let snvs = places.iter().map(|&at| found(snv(at, b"A", b"G"), at..at + 1));
            contig.changes = junction.into_iter().chain(snvs).collect();
            contig
        };
        let spread: Vec<usize> = (420..790).step_by(30).collect();
        assert!(are_changes_clustered(&contig(&spread, None)), "they fill one half");
        assert!(!are_changes_clustered(&contig(&spread, Some(400))));
        assert!(are_changes_clustered(&contig(&(500..600).step_by(10).collect::<Vec<_>>(), Some(400))));
    }

    #[test]
    fn log_odds_of_one_molecule_are_added_within_those_of_one_change() {
        let votes = |log_odds: f64| [MoleculeVote { log_odds, ..vote(3, true) }];
        let sum = |odds: [f64; 2]| {
            let [a, b] = odds.map(votes);
            add_votes([&a[..], &b[..]].into_iter())[0].log_odds
        };
        assert_eq!([sum([4.0, 5.0]), sum([9.0, -9.0]), sum([-7.0, 2.0])], [5.0, 0.0, -5.0]);
    }
}
