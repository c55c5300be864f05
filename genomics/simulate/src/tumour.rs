//! The tumour: its somatic variants with their haplotypes and clones, its karyotypes, and the expected allele
//! fractions.

use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::healthy_ploidy::HealthyPloidy;
use crate::karyotype::Karyotype;
use crate::rng::Rng;
use crate::variant::{GenomePosition, SequenceEdit, StructuralVariant};

/// A small or structural variant, with the haplotype and clone that have it.
#[derive(Debug, Clone)]
pub(crate) struct PlacedVariant<V> {
    /// The variant: its position and the change of the sequence.
    pub variant: V,
    /// Index of the haplotype that has the variant, 0 or 1.
    pub haplotype: usize,
    /// Clone that has the variant: 0 is the founder clone, whose variants all tumour cells have; subclones count from
    /// 1.
    pub clone: usize,
    /// If the position is in an amplified span: which copies of the span have the variant.
    pub carriers: CarrierCopies,
    /// Number of the variant cluster, from 1; `None` outside of clusters.
    pub cluster: Option<usize>,
}

impl<V> PlacedVariant<V> {
    /// Creates a variant that all copies of its haplotype have and that is in no cluster.
    pub(crate) fn on_all_copies(variant: V, haplotype: usize, clone: usize) -> Self {
        PlacedVariant { variant, haplotype, clone, carriers: CarrierCopies::All, cluster: None }
    }
}

/// Which copies of an amplified span have a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarrierCopies {
    /// All copies: the variant is older than the amplification, or the span is not amplified.
    All,
    /// About half of the copies: the variant arose during the amplification.
    Half,
}

/// All somatic variants and karyotypes of a simulated tumour.
#[derive(Debug)]
pub struct Tumour {
    /// SNVs, indels and MNVs, sorted by position.
    pub small: Vec<PlacedVariant<SequenceEdit>>,
    /// Structural variants, sorted by their first breakpoint.
    pub structural: Vec<PlacedVariant<StructuralVariant>>,
    /// Deletions of 50 bp and more within amplified spans. They are reported as structural variants, but applied to the
    /// sequence like small variants.
    pub amplified_span_deletions: Vec<PlacedVariant<SequenceEdit>>,
    /// Share of the tumour cells in each population: cells with the founder clone only, then cells with each subclone.
    pub population_shares: Vec<f64>,
    /// For each population of tumour cells: its two haplotypes.
    pub(crate) karyotypes: Vec<[Karyotype; 2]>,
    /// The two haplotypes of healthy cells.
    pub healthy: [Karyotype; 2],
    /// Haplotypes of each contig that healthy cells have.
    pub ploidy: HealthyPloidy,
}

/// A structural variant with the values that the truth reports.
#[derive(Debug)]
pub(crate) struct ReportedStructuralVariant {
    /// The structural variant: which ranges of the reference are deleted, copied, inverted or joined.
    pub variant: StructuralVariant,
    /// Index of the haplotype that has the variant, 0 or 1.
    pub haplotype: usize,
    /// Clone that has the variant: 0 is the founder clone, subclones count from 1.
    pub clone: usize,
    /// Expected share of the tumour sample's reads at the breakpoint that show the variant, 0 to 1.
    pub(crate) allele_fraction: f64,
    /// Number of copies of an amplified span in an average tumour cell; `None` for other variants.
    pub copies: Option<f64>,
}

impl Tumour {
    /// Creates a tumour without variants. `subclones` are the shares of the tumour cells that belong to each subclone.
    /// A subclone with share 0 is absent from this sample, but present in other samples of the patient.
    ///
    /// # Errors
    /// Returns an error if a share is negative or the sum of the shares is above 1.
    pub(crate) fn without_variants(genome: &Genome, subclones: &[f64], ploidy: HealthyPloidy) -> Result<Self> {
        let subclonal: f64 = subclones.iter().sum();
        if subclonal > 1.0 + 1e-9 || subclones.iter().any(|&f| f < 0.0) {
            let message = "the subclones' shares must not be negative, and sum up to at most 1; make them smaller";
            return Err(Error::Parameters(message.into()));
        }
        let mut shares = vec![(1.0 - subclonal).max(0.0)];
        shares.extend(subclones);
        let healthy = Karyotype::create_healthy_haplotypes(genome, &ploidy);
        let karyotypes = vec![healthy.clone(); shares.len()];
        Ok(Tumour {
            small: vec![],
            structural: vec![],
            amplified_span_deletions: vec![],
            population_shares: shares,
            karyotypes,
            healthy,
            ploidy,
        })
    }

    /// Returns the share of the tumour cells that have the variants of a clone.
    pub(crate) fn cellular_fraction(&self, clone: usize) -> f64 {
        if clone == 0 { 1.0 } else { self.population_shares[clone] }
    }

    /// Returns whether at least one tumour cell of the sample has the variant.
    pub(crate) fn is_variant_in_sample<V>(&self, placed: &PlacedVariant<V>) -> bool {
        self.cellular_fraction(placed.clone) > 0.0
    }

    /// Returns whether tumour cells of the founder clone have no copy of a haplotype of a contig: they lost it, or
    /// healthy cells lack it too.
    pub(crate) fn founder_lacks_haplotype(&self, contig: usize, haplotype: usize) -> bool {
        self.karyotypes[0][haplotype].copies_per_chromosome()[contig] == 0
    }

    /// Returns the structural variant whose affected span contains a position, if any.
    fn enclosing_structural(&self, at: GenomePosition) -> Option<&PlacedVariant<StructuralVariant>> {
        self.structural.iter().find(|p| {
            p.variant.affected_span().is_some_and(|b| b.contig == at.contig && b.start <= at.pos && at.pos < b.end)
        })
    }

    /// Returns the haplotype on which a small variant at a position inside a structural variant must be placed; `None`
    /// if either is possible.
    fn required_haplotype(&self, at: GenomePosition) -> Option<usize> {
        // The haplotype without the structural variant is neither deleted nor duplicated there. Within an amplified
        // span, use the amplified haplotype.
        self.enclosing_structural(at).map(|p| match p.variant {
            StructuralVariant::Amplification { .. } => p.haplotype,
            _ => 1 - p.haplotype,
        })
    }

    /// Returns whether two positions are in the affected span of the same structural variant, or both in none.
    pub(crate) fn are_in_same_or_no_structural_variant(&self, a: GenomePosition, b: GenomePosition) -> bool {
        let variant = |at| self.enclosing_structural(at).map(std::ptr::from_ref);
        variant(a) == variant(b)
    }

    /// Returns whether the tumour has a haplotype on which a small variant can be placed at a position.
    pub(crate) fn has_haplotype_for_variant_at(&self, at: GenomePosition) -> bool {
        self.required_haplotype(at).is_none_or(|haplotype| !self.founder_lacks_haplotype(at.contig, haplotype))
    }

    /// Draws the haplotype of a small variant, and which copies of the haplotype have the variant.
    pub(crate) fn draw_haplotype_and_copies(&self, at: GenomePosition, rng: &mut Rng) -> (usize, CarrierCopies) {
        let mut haplotype = self.required_haplotype(at).unwrap_or_else(|| rng.draw_below(2));
        if self.founder_lacks_haplotype(at.contig, haplotype) {
            haplotype = 1 - haplotype;
        }
        let amplified =
            self.enclosing_structural(at).is_some_and(|p| matches!(p.variant, StructuralVariant::Amplification { .. }));
        let half = amplified && rng.draw_bernoulli(0.5);
        (haplotype, if half { CarrierCopies::Half } else { CarrierCopies::All })
    }

    /// Returns the number of copies of a position, averaged over the tumour cells.
    fn mean_copies(&self, at: GenomePosition) -> f64 {
        let change = |p: &PlacedVariant<StructuralVariant>| match p.variant.affected_span() {
            Some(b) if b.contig == at.contig && b.start <= at.pos && at.pos < b.end => {
                f64::from(p.variant.num_added_copies()) * self.cellular_fraction(p.clone)
            }
            _ => 0.0,
        };
        2.0 + self.structural.iter().map(change).sum::<f64>() + self.mean_copies_gained(at)
    }

    /// Returns the number of copies of a position beyond two that are due to the copy numbers of whole chromosomes,
    /// averaged over the tumour cells. It is negative where chromosomes are lost, or healthy cells lack a haplotype.
    fn mean_copies_gained(&self, at: GenomePosition) -> f64 {
        let cell = |pair: &[Karyotype; 2]| pair.iter().map(|k| k.extra_chromosome_copies_at(at)).sum::<f64>();
        self.population_shares.iter().zip(&self.karyotypes).map(|(share, pair)| share * cell(pair)).sum()
    }

    /// Returns the number of copies of a variant at `at`, averaged over the tumour cells.
    fn mean_allele_copies<V>(&self, placed: &PlacedVariant<V>, at: GenomePosition) -> f64 {
        let beyond_one = |population: usize| {
            let (all, late) = self.karyotypes[population][placed.haplotype].count_all_and_late_copies_of_base(at);
            let count = if placed.carriers == CarrierCopies::All { all } else { late };
            self.population_shares[population] * (count as f64 - 1.0)
        };
        let carriers = (0..self.population_shares.len()).filter(|&p| placed.clone == 0 || p == placed.clone);
        self.cellular_fraction(placed.clone) + carriers.map(beyond_one).sum::<f64>()
    }

    /// Returns the expected share of the tumour sample's reads that show a small variant. `purity` is the share of
    /// tumour cells in the sample.
    pub(crate) fn allele_fraction(&self, placed: &PlacedVariant<SequenceEdit>, purity: f64) -> f64 {
        let at = placed.variant.position;
        purity * self.mean_allele_copies(placed, at)
            / (purity * self.mean_copies(at) + (1.0 - purity) * self.ploidy.healthy_copy_number(at.contig) as f64)
    }

    /// Returns the structural variants that at least one tumour cell of the sample has, with the values that the truth
    /// reports. Deletions within amplified spans come last. `purity` is the share of tumour cells in the sample.
    pub(crate) fn list_structural_variants_in_sample(&self, purity: f64) -> Vec<ReportedStructuralVariant> {
        let event = |p: &PlacedVariant<StructuralVariant>| {
            let cut = p.variant.breakpoints()[0];
            // The base left of the breakpoint has as many copies as its chromosome.
            let left = GenomePosition { pos: cut.pos - 1, ..cut };
            let (junctions, copies) = match p.variant {
                StructuralVariant::Amplification { copies, .. } => (copies as f64 - 1.0, Some(self.mean_copies(cut))),
                _ => (1.0, None),
            };
            let absent = 2.0 - self.ploidy.healthy_copy_number(cut.contig) as f64;
            let extra = copies.map_or_else(|| self.mean_copies_gained(left), |copies| copies - 2.0);
            ReportedStructuralVariant {
                variant: p.variant.clone(),
                haplotype: p.haplotype,
                clone: p.clone,
                allele_fraction: purity * (self.mean_allele_copies(p, left) * junctions)
                    / (2.0 + purity * extra - (1.0 - purity) * absent),
                copies,
            }
        };
        let inner = |p: &PlacedVariant<SequenceEdit>| ReportedStructuralVariant {
            variant: StructuralVariant::Deletion(p.variant.reference_span()),
            haplotype: p.haplotype,
            clone: p.clone,
            allele_fraction: self.allele_fraction(p, purity),
            copies: None,
        };
        let (structural, inside) = (self.structural.iter(), self.amplified_span_deletions.iter());
        let structural = structural.filter(|p| self.is_variant_in_sample(p)).map(event);
        structural.chain(inside.filter(|p| self.is_variant_in_sample(p)).map(inner)).collect()
    }
}
