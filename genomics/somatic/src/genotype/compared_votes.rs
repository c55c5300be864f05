//! The explanations of an allele, compared by the votes of all samples: the limits of the somatic quality.

use std::borrow::Cow;

use super::likelihood::{
    NormalWithoutAlleleLikelihood, average_with_common_fraction, error_log_likelihood,
    fitted_log_likelihood_of_tumours, germline_fraction_density, joint_somatic_log_likelihood,
    log_likelihood_at_fraction, log_likelihood_averaged_over_fractions, order_independent_sum,
    phasing_error_log_likelihood, shared_low_fraction_log_likelihood,
};
use super::result::{AlleleSupport, QualityLimits};
use super::{ErrorFrequency, GenotypingParams, pool_votes_of_samples};
use crate::molecule_vote::MoleculeVote;

/// The votes for a change in all samples, with what several comparisons use.
pub(super) struct VotesOfAllSamples<'a> {
    pub(super) params: GenotypingParams,
    pub(super) normal: &'a [MoleculeVote],
    /// Votes of each tumour.
    pub(super) tumours: &'a [Vec<MoleculeVote>],
    /// Votes of all tumours together, sorted by read pair.
    pub(super) pooled: Cow<'a, [MoleculeVote]>,
    pub(super) normal_support: AlleleSupport,
    /// Support in all tumours together.
    pub(super) tumour_support: AlleleSupport,
    pub(super) normal_without_allele: NormalWithoutAlleleLikelihood,
    /// Log-likelihood ratio of the allele at the best-fitting fractions over errors of all supporting reads.
    pub(super) log_ratio_over_errors: f64,
    /// Log-likelihood of the votes of all tumours if the change is somatic.
    joint_somatic: f64,
    /// Log-likelihood of the votes of all samples if the change is somatic.
    pub(super) somatic: f64,
    /// Number of molecules that would support the allele in the normal if it were as frequent there as in the tumour; 0
    /// if the normal has it, or if common errors look like the change.
    pub(super) expected_in_normal: f64,
}

impl<'a> VotesOfAllSamples<'a> {
    pub(super) fn new(
        normal: &'a [MoleculeVote],
        tumours: &'a [Vec<MoleculeVote>],
        params: GenotypingParams,
    ) -> VotesOfAllSamples<'a> {
        let pooled = pool_votes_of_samples(tumours);
        let (normal_support, tumour_support) =
            (AlleleSupport::count_supporting_molecules(normal), AlleleSupport::count_supporting_molecules(&pooled));
        let in_normal = params.admixture.tumour_in_normal_ratio;
        let normal_without_allele =
            NormalWithoutAlleleLikelihood::fit_contamination(normal, tumours, tumour_support, in_normal);
        // Slippage has the same rate in all tumours.
        let log_ratio_over_errors = fitted_log_likelihood_of_tumours(tumours)
            - error_log_likelihood(&pooled, params.error_probability, params.slippage_rate);
        // docs/model/genotype.md (7)
        let joint_somatic = joint_somatic_log_likelihood(tumours);
        let somatic = normal_without_allele.log_likelihood_with_prior + joint_somatic;
        // If few molecules support an allele, as at a short tandem duplication, the absence of the allele among many
        // molecules is evidence too: a germline variant would be as frequent as in the tumour. This does not hold for
        // repeat lengths: reads that end in the repeat support no allele.
        let is_evidence = normal_support.alternative == 0 && params.error_frequency == ErrorFrequency::Rare;
        let [in_normal, in_tumour] = params.num_molecules.map(f64::from);
        let expected_in_normal =
            if is_evidence { f64::from(tumour_support.alternative) * in_normal / in_tumour.max(1.0) } else { 0.0 };
        VotesOfAllSamples {
            params,
            normal,
            tumours,
            pooled,
            normal_support,
            tumour_support,
            normal_without_allele,
            log_ratio_over_errors,
            joint_somatic,
            somatic,
            expected_in_normal,
        }
    }

    /// Sum of a log-likelihood over all tumours.
    pub(super) fn sum_log_likelihood_over_tumours(&self, log_likelihood: impl Fn(&[MoleculeVote]) -> f64) -> f64 {
        order_independent_sum(self.tumours.iter().map(|votes| log_likelihood(votes)).collect())
    }

    /// Log-odds of a somatic change over each other explanation; infinite if it is not compared.
    pub(super) fn compute_quality_limits(&self) -> QualityLimits {
        // docs/model/genotype.md (9)
        QualityLimits {
            against_error: self.log_ratio_over_errors - self.params.prior_log_odds,
            against_germline: self.log_odds_over_germline(),
            against_shared: self.log_odds_over_shared(),
        }
    }

    /// Log-odds over a germline variant. Without a normal `tumour_only.rs` compares when all calls are known.
    fn log_odds_over_germline(&self) -> f64 {
        if !self.params.has_normal {
            return f64::INFINITY;
        }
        // A germline variant has its fraction in the tumour too: one half, or one, without copy number changes.
        let heterozygous = log_likelihood_at_fraction(self.normal, 0.5)
            + self.sum_log_likelihood_over_tumours(|votes| {
                log_likelihood_averaged_over_fractions(votes, germline_fraction_density)
            });
        let homozygous = log_likelihood_at_fraction(self.normal, 1.0)
            + self.sum_log_likelihood_over_tumours(|votes| log_likelihood_at_fraction(votes, 1.0));
        // docs/model/genotype.md (8)
        (self.somatic - heterozygous.max(homozygous)).max(self.expected_in_normal)
            - self.params.germline_prior_log_odds()
    }

    /// Log-odds over an allele that the normal and all tumours share at one fraction.
    fn log_odds_over_shared(&self) -> f64 {
        if !self.params.has_normal {
            return f64::INFINITY;
        }
        // An allele of unknown fraction (Poisson counts, averaged over all fractions) is missing in the normal more
        // often.
        let expected_log_ratio = if self.expected_in_normal > 0.0 {
            let ratio = self.expected_in_normal / f64::from(self.tumour_support.alternative);
            f64::from(self.tumour_support.alternative + 1) * (1.0 + ratio).ln()
        } else {
            0.0
        };
        let somatic = self.normal_without_allele.log_likelihood_with_prior
            + average_with_common_fraction(self.joint_somatic, self.tumours.len(), &self.pooled);
        // docs/model/genotype.md (21)
        let haplotype_log_ratio = self
            .params
            .haplotype_log_ratio
            .unwrap_or_else(|| somatic - shared_low_fraction_log_likelihood(self.normal, &self.pooled));
        let phasing_error = self
            .params
            .orientation_with_phasing_errors
            .map_or(f64::NEG_INFINITY, |strand| phasing_error_log_likelihood(self.normal, &self.pooled, strand));
        (haplotype_log_ratio.max(expected_log_ratio) - self.params.shared_prior_log_odds()).min(somatic - phasing_error)
    }
}
