//! Summary of a pair of samples (identity, contamination, coverage, damage, purity), computed from a k-mer sketch of
//! both samples.

use serde::{Deserialize, Serialize};

use crate::confidence_interval::Estimate;
use crate::contamination::{ContaminationEstimate, ContaminationInput, estimate_contamination};
use crate::contamination_params::CONTAMINATION_PARAMS;
use crate::depth_and_evenness::CoverageMetrics;
use crate::identity::IdentityResult;
use crate::modal_depth::estimate_modal_depth;
use crate::non_somatic::NonSomaticModelInputs;
use crate::purity::{self, PurityPloidyEstimate};
use crate::purity_params;
use crate::root_depths::{RootDepth, select_single_copy_roots};
use crate::segments::OptionalGenomePosition;
use crate::site_tally::{SiteTally, TwoAlleleSite};
use crate::sketch::{KmerSketch, SketchRootSampling};
use crate::somatic_changes::SomaticChange;

/// Estimates for a normal and a tumour. In arrays of two, the normal comes first and the tumour second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplePairSummary {
    /// Share of all roots of the samples' k-mers that are in the sketch (0 to 1).
    pub sampled_share: f64,
    /// Number of roots (canonical (k−2)-mers) in the sketch.
    pub roots: u64,
    /// Whether both samples come from one person, from relatives, or from unrelated people.
    pub identity: IdentityResult,
    /// Contamination of each sample with another person's DNA. `None` if there are too few sites for an estimate, if
    /// the depth is too low to recognise heterozygous sites, or if the samples are not from one person.
    pub contamination: [Option<ContaminationEstimate>; 2],
    /// Share of the read pairs of each sample that are PCR duplicates, as estimated from the sketch (0 to 1).
    pub duplicate_share: [f64; 2],
    /// Depth of each sample, its evenness, and its dependence on GC content.
    pub coverage: [CoverageMetrics; 2],
    /// Sequencing errors per base of quality 30 or more, for each sample and each of the six substitution classes of
    /// [`crate::site_tally::SUBSTITUTION_CLASS_NAMES`] (both strands together). A class with a much higher rate than
    /// the others indicates damage: C>T deamination, C>A oxidation. `None` for samples with a mean depth below 5, in
    /// which a single deviating molecule may be an allele.
    pub substitution_error_rates: [Option<[f64; 6]>; 2],
    /// Purity, ploidy and LOH of the tumour. `None` if the samples are from two people.
    pub tumour: Option<PurityPloidyEstimate>,
}

/// Sites, depths and estimates of a pair of samples that need no reference. Only the purity estimate is missing; it
/// needs the positions of roots on the reference ([`Self::estimate_purity_and_summarise`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceFreePairEvidence {
    summary: SamplePairSummary,
    /// Length of the sampled roots and the rule by which they were sampled.
    pub sketch_shape: SketchRootSampling,
    /// A sample of the sites at which the normal is heterozygous.
    het_sites: Vec<TwoAlleleSite>,
    /// A sample of the sites at which the tumour has an allele that the normal lacks, at usual depth of the normal.
    somatic_sites: Vec<TwoAlleleSite>,
    /// Number of homozygous and of heterozygous sites of the normal, by depth of the normal, multiplied by the share of
    /// all somatic sites that are in `somatic_sites`.
    zygosity_counts: Vec<[f64; 2]>,
    /// Share of all examined sites at which the normal is heterozygous.
    heterozygosity: f64,
    /// Depth of both samples at single-copy roots.
    root_depths: Vec<RootDepth>,
}

/// Minimum lower end of the confidence interval of the contamination share for which the tumour is treated as
/// contaminated. Chosen: with a lower share, too few molecules have a foreign allele for a false call.
const MIN_FOREIGN_SHARE: f64 = 0.005;

/// Minimum mean depth, in molecules, at which error rates are estimated: from this depth on, a single molecule that
/// differs from all others can be taken for an error. Chosen; with a higher value more shallow samples have no error
/// rates.
const MIN_ERROR_RATE_DEPTH: f64 = 5.0;

/// Estimates the contamination of both samples. Returns `None` for both if they are from two people or too shallow to
/// show heterozygous sites. `copies` are the duplicate shares of the samples.
fn estimate_contaminations(
    tally: &SiteTally,
    identity: &IdentityResult,
    modal_depths: [f64; 2],
    copies: [f64; 2],
) -> [Option<ContaminationEstimate>; 2] {
    if !identity.may_be_same_person() || identity.heterozygosity.is_none() {
        return [None; 2];
    }
    let (het, lost) = (tally.heterozygosity(modal_depths[0]), tally.allele_loss_shares());
    let of = |sample: usize, other: f64, both: bool| {
        let [own_depth, other_depth] = [modal_depths[sample], modal_depths[1 - sample]];
        let (copies, lost) = (copies[sample], lost[sample]);
        estimate_contamination(
            tally,
            &ContaminationInput {
                sample,
                modal_depths: [own_depth, other_depth],
                duplicate_share: copies,
                heterozygosity: het,
                allele_loss_share: lost,
                other_contamination: other,
                use_shared_sites: both,
            },
        )
    };
    // If both samples contain the same contaminant, each hides some of the contaminant's alleles in the other. So the
    // estimates are repeated with the other sample's share until they converge. Once both shares are roughly known,
    // sites where both samples have reads of the allele are used too.
    let mut known = [0.0; 2];
    let mut estimates = [0, 1].map(|s| of(s, known[s], false));
    for both in [false, true] {
        for round in 0..CONTAMINATION_PARAMS.max_rounds {
            let before = known;
            for s in 0..2 {
                let other = estimates[1 - s].map_or(0.0, |estimates| estimates.share.value);
                if (other - known[s]).abs() >= CONTAMINATION_PARAMS.convergence_tolerance || (both && round == 0) {
                    (known[s], estimates[s]) = (other, of(s, other, both));
                }
            }
            if known == before && round > 0 {
                break;
            }
        }
    }
    estimates
}

impl ReferenceFreePairEvidence {
    /// Tallies the sites of a sketch and computes all estimates that need no reference.
    pub fn estimate_without_reference(sampled: &KmerSketch) -> ReferenceFreePairEvidence {
        let tally = SiteTally::from_sketch(sampled);
        let copies = sampled.duplicate_shares();
        let modal_depths = [0, 1].map(|s| estimate_modal_depth(&tally.depth_histograms[s]));
        let identity = IdentityResult::decide_from_site_tally(&tally, modal_depths);
        let contamination = estimate_contaminations(&tally, &identity, modal_depths, copies);
        let single = |site: &&TwoAlleleSite| {
            let depth = f64::from(site.normal[0]);
            site.normal[1] == 0
                && depth >= purity_params::PURITY_PARAMS.somatic_site_depth_range[0] * modal_depths[0]
                && depth <= purity_params::PURITY_PARAMS.somatic_site_depth_range[1] * modal_depths[0]
        };
        let changed = tally.sampled_somatic_sites().into_iter().filter(|site| single(&site)).collect();
        let bases = sampled.num_root_bases();
        let coverage = [0, 1].map(|s| CoverageMetrics::from_site_tally(&tally, s, bases));
        let facts = SamplePairSummary {
            sampled_share: sampled.sampled_root_share(),
            roots: tally.num_roots,
            identity,
            contamination,
            duplicate_share: copies,
            substitution_error_rates: [0, 1]
                .map(|s| (coverage[s].mean_depth >= MIN_ERROR_RATE_DEPTH).then(|| tally.substitution_error_rates(s))),
            coverage,
            tumour: None,
        };
        ReferenceFreePairEvidence {
            summary: facts,
            sketch_shape: sampled.root_sampling(),
            het_sites: tally.sampled_het_sites(),
            somatic_sites: changed,
            zygosity_counts: tally.scaled_zygosity_counts_by_depth(),
            heterozygosity: tally.heterozygosity(modal_depths[0]),
            root_depths: select_single_copy_roots(sampled, modal_depths[0]),
        }
    }

    /// Returns the share of the tumour's molecules that come from another person, and the share of the positions at
    /// which that person has an allele that the patient lacks (assumed to be the patient's heterozygosity). `None` if
    /// the contamination is unknown, too small or too uncertain, or if the patient shows no heterozygous sites.
    pub fn tumour_contamination_and_foreign_site_share(&self) -> Option<(Estimate, f64)> {
        let share = self.summary.contamination[1]?.share;
        // An unrelated person has such an allele about as often as the patient has two alleles at a position.
        let is_clear = share.low >= MIN_FOREIGN_SHARE && share.high - share.low <= share.value;
        (is_clear && self.heterozygosity > 0.0).then_some((share, self.heterozygosity))
    }

    /// Lists the roots whose positions on the reference [`Self::estimate_purity_and_summarise`] needs: those of the
    /// heterozygous sites, of the somatic sites and of the root depths, in this order.
    pub fn list_roots_to_locate(&self) -> Vec<u64> {
        let sites = self.het_sites.iter().chain(&self.somatic_sites).map(|site| site.root);
        sites.chain(self.root_depths.iter().map(|own| own.root)).collect()
    }

    /// Returns the summary, completed with the purity estimate unless the samples are from two people.
    ///
    /// `positions` are the reference positions of the roots of [`Self::list_roots_to_locate`], in the same order; empty
    /// without a reference. `contig_names` are the names of the contigs of the reference. `changes` are the somatic
    /// changes of a call; without a call the somatic sites of the sketch are used.
    pub fn estimate_purity_and_summarise(
        &self,
        positions: &[OptionalGenomePosition],
        contig_names: &[&str],
        changes: Option<&[SomaticChange]>,
    ) -> SamplePairSummary {
        let mut positions = positions.iter().copied().chain(std::iter::repeat(None));
        let het: Vec<(TwoAlleleSite, OptionalGenomePosition)> =
            self.het_sites.iter().copied().zip(positions.by_ref()).collect();
        let changed: Vec<SomaticChange> = self
            .somatic_sites
            .iter()
            .zip(positions.by_ref())
            .map(|(site, position)| SomaticChange { position, molecules: site.tumour, normal_depth: site.normal[0] })
            .collect();
        let deep: Vec<(RootDepth, OptionalGenomePosition)> = self.root_depths.iter().copied().zip(positions).collect();
        // A high normal depth may come from several copies of the place in the genome.
        let normal_depth = self.summary.coverage[0].mean_depth;
        let single = |site: &&TwoAlleleSite| {
            (purity_params::PURITY_PARAMS.detection_depth_range[0]
                ..purity_params::PURITY_PARAMS.detection_depth_range[1])
                .contains(&(f64::from(site.normal[0] + site.normal[1]) / normal_depth))
        };
        let single = self.het_sites.iter().filter(single).take(purity_params::PURITY_PARAMS.max_detection_depths);
        let depths: Vec<u32> = single.map(|site| site.tumour.iter().sum()).collect();
        let evidence = purity::PurityEvidence {
            het_sites: &het,
            root_depths: &deep,
            changes: changes.unwrap_or(&changed),
            context: NonSomaticModelInputs {
                zygosity_counts: if changes.is_some() { &[] } else { &self.zygosity_counts },
                heterozygosity: self.heterozygosity,
                contamination: self.summary.contamination[1].map(|found| found.share),
                tumour_depths: &depths,
            },
            mean_normal_depth: normal_depth,
            root_bases: self.sketch_shape.root_bases,
            contig_names,
        };
        SamplePairSummary {
            tumour: self.summary.identity.may_be_same_person().then(|| purity::estimate_purity_ploidy(&evidence)),
            ..self.summary.clone()
        }
    }
}
