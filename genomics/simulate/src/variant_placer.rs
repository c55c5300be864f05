//! Places somatic variants at free positions of the genome and adds them to the tumour.

use crate::error::Error;
use crate::genome::Genome;
use crate::karyotype::Karyotype;
use crate::occupied_regions::OccupiedRegions;
use crate::rng::Rng;
use crate::small_variants::ProposedVariant;
use crate::tumour::{PlacedVariant, Tumour};
use crate::variant::{ContigSpan, GenomePosition, StructuralVariant};

/// Maximum number of attempts to find a position for a variant, after which the simulation fails.
pub(crate) const MAX_PLACEMENT_TRIES: usize = 2000;

/// Genome, tumour, occupied regions and random generator, as needed to place somatic variants.
#[derive(Debug)]
pub(crate) struct VariantPlacer<'a, 'g> {
    /// The reference genome, without the patient's variants.
    pub genome: &'g Genome,
    /// Regions of the genome that already have a variant or breakpoint.
    pub(crate) occupied: &'a mut OccupiedRegions<'g>,
    /// The tumour to which the variants are added.
    pub tumour: &'a mut Tumour,
    /// Random number generator from which positions, clones and haplotypes are drawn.
    pub rng: &'a mut Rng,
    /// Minimum distance between two variants or breakpoints, bp.
    pub min_spacing_bp: usize,
}

/// Creates the error for a genome that has no space for all variants. `what` is the kind of variant; `placed` of
/// `wanted` variants were placed.
pub(crate) fn no_space_error(what: &str, placed: usize, wanted: usize) -> Error {
    Error::Parameters(format!(
        "this genome has no space for {wanted} {what} ({placed} placed); reduce their number or the spacing (--snvs, --indels, --svs, --spacing)"
    ))
}

impl VariantPlacer<'_, '_> {
    /// Draws a clone: the founder clone or one of the subclones, each with the same probability.
    pub(crate) fn draw_clone(&mut self) -> usize {
        self.rng.draw_below(self.tumour.population_shares.len())
    }

    /// Returns whether a small variant can be placed at its proposed position: the position is free, and the tumour has
    /// a haplotype there.
    pub(crate) fn can_place_small_variant(&self, made: &ProposedVariant) -> bool {
        self.occupied.can_place_at_span(made.reserved, self.min_spacing_bp)
            && self.tumour.has_haplotype_for_variant_at(made.edit.position)
    }

    /// Adds a structural variant to a random haplotype of all tumour cells of `clone`, or to the other haplotype if it
    /// cannot be applied to that one. Returns `false`, without changes, if its position is not free or if it can be
    /// applied to neither haplotype.
    pub(crate) fn place_structural_variant(&mut self, clone: usize, variant: StructuralVariant) -> bool {
        if !self.is_free_for_structural_variant(&variant) {
            return false;
        }
        let first = self.rng.draw_below(2);
        [first, 1 - first]
            .into_iter()
            .any(|haplotype| self.apply_structural_variant_in_clone(haplotype, clone, &variant))
    }

    /// Returns whether the breakpoints and the affected span of a structural variant are free, and it changes the
    /// sequence. Whether a haplotype has the breakpoints is checked only when the variant is applied.
    pub(crate) fn is_free_for_structural_variant(&self, variant: &StructuralVariant) -> bool {
        let ground = &*self.occupied;
        let mut cuts = variant.breakpoints().into_iter();
        cuts.all(|c| ground.can_place_at_span(flanking_bases(c), self.min_spacing_bp) && !ground.is_in_sv_span(c))
            && variant
                .affected_span()
                .is_none_or(|b| !ground.overlaps_sv_span(b) && !ground.has_occupied_bases_near(b, self.min_spacing_bp))
            && !is_palindromic_inversion(self.genome, variant)
    }

    /// Applies a structural variant to a haplotype in all cell populations with `clone`, and records it. Returns
    /// `false`, without changes, if the haplotype lacks a breakpoint or the variant cannot be applied.
    pub(crate) fn apply_structural_variant_in_clone(
        &mut self,
        haplotype: usize,
        clone: usize,
        variant: &StructuralVariant,
    ) -> bool {
        let cuts = variant.breakpoints();
        if cuts.iter().any(|c| self.tumour.founder_lacks_haplotype(c.contig, haplotype)) {
            return false;
        }
        let carriers = (0..self.tumour.population_shares.len()).filter(|&p| clone == 0 || p == clone);
        let carriers: Vec<usize> = carriers.collect();
        let mut changed: Vec<Karyotype> =
            carriers.iter().map(|&p| self.tumour.karyotypes[p][haplotype].clone()).collect();
        if changed.iter_mut().any(|k| k.apply_structural_variant(variant).is_err()) {
            return false;
        }
        for (&p, karyotype) in carriers.iter().zip(changed) {
            self.tumour.karyotypes[p][haplotype] = karyotype;
        }
        cuts.iter().for_each(|c| self.occupied.occupy_span(flanking_bases(*c)));
        if let Some(body) = variant.affected_span() {
            self.occupied.exclude_further_svs_from_span(body);
        }
        self.tumour.structural.push(PlacedVariant::on_all_copies(variant.clone(), haplotype, clone));
        true
    }
}

/// Returns the span of the two bases on either side of a breakpoint.
fn flanking_bases(cut: GenomePosition) -> ContigSpan {
    ContigSpan { contig: cut.contig, start: cut.pos.saturating_sub(1), end: cut.pos + 1 }
}

/// Returns whether the variant inverts a sequence that is its own reverse complement, which changes nothing.
fn is_palindromic_inversion(genome: &Genome, variant: &StructuralVariant) -> bool {
    let StructuralVariant::Inversion(span) = variant else { return false };
    let bases = &genome.seqs[span.contig][span.start..span.end];
    genuma_reads::dna::reverse_complement(bases) == bases
}
