//! Detects DNA of another species in the tumour, such as that of the host of a xenograft, and filters the small variants
//! of its contigs.

use crate::change::is_small_variant;
use crate::divergence::are_mostly_deaminations;
use crate::genotype::MIN_CALL_MOLECULES_COMMON_ERROR;
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::ledger::{Ledger, OTHER_SPECIES_CONTIGS_LEDGER_LINE, TUMOUR_ONLY_CONTIGS_LEDGER_LINE};
use crate::linked_changes::cluster_log_odds_of_contig;
use crate::locus::{Locus, VariantCall, filter_small_variants_as_divergent};

/// Minimum number of changes of the tumour only with which a contig counts as one of another species. Chosen: in 154
/// calls of pairs of one species at most two contigs had as many.
const MIN_CHANGES_TO_DETECT: usize = 5;
/// Minimum number of changes of the tumour only with which a contig is filtered after another species was detected.
/// Chosen: three mutations within one contig are far rarer than contigs of the other species, two may be one event.
const MIN_CHANGES_TO_FILTER: usize = 3;
/// Minimum number of contigs that show another species. Chosen: inserted mobile elements and hypermutated genes of
/// lymphomas are fewer.
const MIN_CONTIGS: u64 = 20;
/// Minimum share of these contigs among all contigs with changes of the tumour only. Chosen: in pairs of one species it is
/// at most 0.4 %. With a lower value the copies of mobile elements in a tumour could look like another species.
const MIN_CONTIG_SHARE: f64 = 0.05;

/// Numbers of contigs that have small variants of the tumour only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct TumourOnlyContigCounts {
    /// All of them.
    all: u64,
    /// Those with so many that their bases may be those of another species.
    many_changes: u64,
}

impl TumourOnlyContigCounts {
    /// Counts the contigs of all calls, which must be grouped by locus.
    fn count(calls: &[VariantCall], loci: &[Locus]) -> TumourOnlyContigCounts {
        let mut counts = TumourOnlyContigCounts::default();
        for own in calls.chunk_by(|a, b| a.locus == b.locus) {
            counts.all += u64::from(own.iter().any(is_tumour_only));
            counts.many_changes += u64::from(has_spread_changes(own, loci, MIN_CHANGES_TO_DETECT));
        }
        counts
    }

    /// Whether so many contigs have many changes that the tumour has DNA of another species.
    fn has_other_species(self) -> bool {
        self.many_changes >= MIN_CONTIGS && self.many_changes as f64 >= MIN_CONTIG_SHARE * self.all as f64
    }
}

/// Whether a call is a small variant with enough molecules of the tumour and none of the normal.
fn is_tumour_only(call: &VariantCall) -> bool {
    is_small_variant(&call.change)
        && call.genotype.normal.alternative == 0
        && call.genotype.tumour.alternative as usize >= MIN_CALL_MOLECULES_COMMON_ERROR
}

/// Whether a contig has at least `min_changes` small variants of the tumour only that are not a cluster of mutations.
/// `own` has the calls of the contig.
fn has_spread_changes(own: &[VariantCall], loci: &[Locus], min_changes: usize) -> bool {
    let changes = || own.iter().filter(|call| is_tumour_only(call)).map(|call| &call.change);
    changes().count() >= min_changes
        && !are_mostly_deaminations(changes())
        && cluster_log_odds_of_contig(&loci[own[0].locus].contig) < GENOTYPE_MODEL_PARAMS.linked_allele_log_odds
}

/// Detects DNA of another species in the tumour, adds the filter `divergent` to the small variants of its contigs, and
/// appends the numbers of contigs to the ledger. `calls` must be grouped by locus. The call must have a normal.
pub(crate) fn filter_changes_of_other_species(calls: &mut [VariantCall], loci: &[Locus], ledger: &mut Ledger) {
    let counts = TumourOnlyContigCounts::count(calls, loci);
    if !counts.has_other_species() {
        return;
    }
    ledger.append_produced_line("judge", TUMOUR_ONLY_CONTIGS_LEDGER_LINE, counts.all);
    ledger.append_produced_line("judge", OTHER_SPECIES_CONTIGS_LEDGER_LINE, counts.many_changes);
    for own in calls.chunk_by_mut(|a, b| a.locus == b.locus) {
        if has_spread_changes(own, loci, MIN_CHANGES_TO_FILTER) {
            filter_small_variants_as_divergent(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aligned_contig::{AlignedContig, ContigChange};
    use crate::assemble::Contig;
    use crate::change::Change;
    use crate::genotype::{AlleleSupport, ErrorFrequency, GenotypingResult};

    /// Length of the contigs of the tests.
    const CONTIG_LEN: usize = 300;

    /// Calls of `num_contigs` contigs with `num_changes` SNVs each, `distance` bases apart.
    fn calls(first_locus: usize, num_contigs: usize, num_changes: usize, distance: usize) -> Vec<VariantCall> {
        let call = |locus: usize, n: usize| VariantCall {
            change: Change::Allele {
                chrom: 0,
                pos: locus * 1000 + n * distance,
                reference: b"A".to_vec(),
                alternative: b"T".to_vec(),
            },
            error_frequency: ErrorFrequency::Common,
            genotype: GenotypingResult {
                normal: AlleleSupport { alternative: 0, reference: 30, ..AlleleSupport::default() },
                tumour: AlleleSupport { alternative: 8, reference: 40, ..AlleleSupport::default() },
                ..GenotypingResult::default()
            },
            population_frequency: Default::default(),
            panel_normals: None,
            is_fold_back: false,
            locus,
            change_index: n,
            supporting_pairs: Vec::new(),
            phased_changes: Vec::new(),
        };
        let loci = first_locus..first_locus + num_contigs;
        loci.flat_map(|locus| (0..num_changes).map(move |n| call(locus, n))).collect()
    }

    /// The loci of calls, whose contigs have the changes of these calls.
    fn loci(calls: &[VariantCall]) -> Vec<Locus> {
        let assembled = Contig {
            novel: vec![true; CONTIG_LEN],
            quality_sums: vec![90; CONTIG_LEN],
            seq: vec![b'A'; CONTIG_LEN],
            reads: Vec::new(),
            outer_mates: Default::default(),
        };
        let locus = |own: &[VariantCall]| {
            let mut contig = AlignedContig::from_unplaced_contig(&assembled);
            contig.assembled = 0..CONTIG_LEN;
            contig.changes = own
                .iter()
                .map(|call| {
                    let Change::Allele { pos, .. } = &call.change else { unreachable!("all changes are SNVs") };
                    ContigChange {
                        change: call.change.clone(),
                        contig_range: pos % 1000..pos % 1000 + 1,
                        left_normal: Vec::new(),
                        right_normal: Vec::new(),
                        right_shift: 0,
                        mapq: 60,
                    }
                })
                .collect();
            Locus::from_contig_without_reads(contig, [1; 2])
        };
        calls.chunk_by(|a, b| a.locus == b.locus).map(locus).collect()
    }

    /// Number of contigs with calls that pass, and number of contigs of another species in the ledger.
    fn passing_contigs(mut calls: Vec<VariantCall>) -> (usize, u64) {
        let (loci, mut ledger) = (loci(&calls), Ledger::default());
        filter_changes_of_other_species(&mut calls, &loci, &mut ledger);
        let mut passing: Vec<usize> = calls.iter().filter(|c| c.genotype.filters.is_empty()).map(|c| c.locus).collect();
        passing.dedup();
        (passing.len(), ledger.sum_counts_of_description(OTHER_SPECIES_CONTIGS_LEDGER_LINE))
    }

    #[test]
    fn many_contigs_with_spread_changes_are_of_another_species() {
        let species = calls(0, 20, 5, 50);
        assert_eq!(passing_contigs([species.clone(), calls(20, 30, 3, 80), calls(50, 7, 2, 80)].concat()), (7, 20));
        // Too few such contigs, too small a share of all, and clusters of mutations.
        assert_eq!(passing_contigs([calls(0, 19, 5, 50), calls(19, 30, 3, 80)].concat()), (49, 0));
        assert_eq!(passing_contigs([species.clone(), calls(20, 400, 1, 1)].concat()), (420, 0));
        assert_eq!(passing_contigs(calls(0, 30, 10, 10)), (30, 0));
        assert_eq!(passing_contigs([species, calls(20, 4, 10, 10)].concat()), (4, 20));
    }

    #[test]
    fn molecules_of_the_normal_exclude_another_species() {
        let mut calls = [calls(0, 20, 5, 50), calls(20, 30, 3, 80)].concat();
        calls.iter_mut().for_each(|call| call.genotype.normal.alternative = 1);
        assert_eq!(passing_contigs(calls), (50, 0));
    }
}
