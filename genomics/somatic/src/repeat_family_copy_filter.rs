//! Filters the small variants of contigs that are a copy of another member of the repeat family, inserted here, as
//! mobile elements are.

use crate::change::{change_sort_position, is_small_variant};
use crate::genotype::{Filter, MIN_CALL_MOLECULES_COMMON_ERROR};
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::locus::{Locus, VariantCall, filter_small_variants_as_divergent};

/// Whether a call counts as a difference between a copy of another member of the repeat family and the genome: a small
/// variant with enough molecules that is not a germline variant.
fn is_copy_difference(call: &VariantCall) -> bool {
    is_small_variant(&call.change)
        && !call.genotype.filters.contains(&Filter::Germline)
        && call.genotype.tumour.alternative as usize >= MIN_CALL_MOLECULES_COMMON_ERROR
}

/// Numbers of differences between a contig and the genome at its locus, by whether other members of the repeat family
/// have the contig's bases.
#[derive(Debug, Clone, Copy, Default)]
struct CopyDifferences {
    /// Number of differences at which most other members have the contig's bases.
    to_family_base: u32,
    /// Number of all other differences.
    other: u32,
}

impl CopyDifferences {
    /// Counts the differences between the contig and the genome. `own` has the calls of one locus.
    fn count(own: &[VariantCall], loci: &[Locus]) -> CopyDifferences {
        let mut counts = CopyDifferences::default();
        for call in own.iter().filter(|call| is_copy_difference(call)) {
            let contig = &loci[call.locus].contig;
            match contig.has_repeat_family_allele_at(&contig.changes[call.change_index].contig_range) {
                true => counts.to_family_base += 1,
                false => counts.other += 1,
            }
        }
        counts
    }

    /// Log-odds that the contig is a copy of another member of the repeat family, over mutations.
    fn copy_log_odds(self) -> f64 {
        let p = &GENOTYPE_MODEL_PARAMS;
        // docs/model/genotype.md (23)
        f64::from(self.to_family_base) * p.family_allele_log_odds + f64::from(self.other) * p.other_allele_log_odds
    }

    /// Log-odds that the contig is a copy of another member of the repeat family, over mutations, if another contig
    /// nearby is divergent. Then several changes on one haplotype are more likely differences of a copy than mutations.
    fn copy_log_odds_beside_divergent(self) -> f64 {
        let p = &GENOTYPE_MODEL_PARAMS;
        let linked = (self.to_family_base + self.other).saturating_sub(1).min(p.max_linked_differences);
        self.copy_log_odds() + p.beside_copy_log_odds + f64::from(linked) * p.linked_allele_log_odds
    }
}

/// The changes of all divergent contigs: chromosome index, position, and index of the locus; sorted.
struct DivergentChanges(Vec<(usize, usize, usize)>);

impl DivergentChanges {
    fn from_calls(calls: &[VariantCall]) -> DivergentChanges {
        let divergent = calls.iter().filter(|call| call.genotype.filters.contains(&Filter::Divergent));
        let mut places: Vec<(usize, usize, usize)> = divergent
            .map(|call| {
                let (chrom, pos) = change_sort_position(&call.change);
                (chrom, pos, call.locus)
            })
            .collect();
        places.sort_unstable();
        DivergentChanges(places)
    }

    /// Whether a divergent contig of another locus has a change near that of `call`.
    fn has_divergent_change_nearby(&self, call: &VariantCall) -> bool {
        let (chrom, pos) = change_sort_position(&call.change);
        let distance = GENOTYPE_MODEL_PARAMS.max_copy_distance_bp;
        let from = self.0.partition_point(|place| (place.0, place.1) < (chrom, pos.saturating_sub(distance)));
        self.0[from..]
            .iter()
            .take_while(|place| (place.0, place.1) <= (chrom, pos + distance))
            .any(|place| place.2 != call.locus)
    }
}

/// Adds the filter `divergent` to the small variants of contigs that are a copy of another member of the repeat family.
/// `calls` must be grouped by locus.
pub(crate) fn filter_changes_of_family_copies(calls: &mut [VariantCall], loci: &[Locus]) {
    let p = &GENOTYPE_MODEL_PARAMS;
    for own in calls.chunk_by_mut(|a, b| a.locus == b.locus) {
        if CopyDifferences::count(own, loci).copy_log_odds() >= p.min_copy_log_odds {
            filter_small_variants_as_divergent(own);
        }
    }
    let divergent = DivergentChanges::from_calls(calls);
    for own in calls.chunk_by_mut(|a, b| a.locus == b.locus) {
        let is_beside_copy = own.iter().any(|call| divergent.has_divergent_change_nearby(call));
        if is_beside_copy && CopyDifferences::count(own, loci).copy_log_odds_beside_divergent() >= p.min_copy_log_odds {
            filter_small_variants_as_divergent(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_alleles_of_the_family_outweigh_mutations() {
        let least = GENOTYPE_MODEL_PARAMS.min_copy_log_odds;
        let is_copy = |to_family_base, other| CopyDifferences { to_family_base, other }.copy_log_odds() >= least;
        assert!(is_copy(2, 0) && is_copy(3, 3));
        assert!(!is_copy(1, 0) && !is_copy(0, 0) && !is_copy(2, 1));
        // Ten mutations of which three meet the base of the family by chance.
        assert!(!is_copy(3, 7));
        // Beside another contig of the copy one allele suffices, or several on one haplotype.
        let is_beside =
            |to_family_base, other| CopyDifferences { to_family_base, other }.copy_log_odds_beside_divergent() >= least;
        assert!(is_beside(1, 0) && is_beside(1, 1) && is_beside(0, 2) && is_beside(0, 4));
        assert!(!is_beside(0, 1) && !is_beside(0, 0) && !is_beside(0, 10));
    }
}
