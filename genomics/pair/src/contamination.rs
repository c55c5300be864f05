//! Estimation of the contamination of a sample with another person's DNA. Log-likelihoods are natural logarithms.
//!
//! The estimate uses sites at which the other sample of the pair shows one allele only. A few reads with a second
//! allele at such a site are sequencing errors, alleles of a contaminant, or somatic changes of the sample itself.
//! Sequencing errors occur at about the same rate at every site. A contaminant is heterozygous for an allele that the
//! person lacks at 0.65 times as many sites as the person is heterozygous at; there the allele is in half of the
//! contaminant's reads. He is homozygous for such an allele at 0.175 times as many sites; there it is in all of the
//! contaminant's reads. These numbers hold for unrelated people and neutral allele frequencies (Watterson 1975; KING
//! kinship 0, Manichaikul 2010). Clonal somatic changes of a tumour are all in about the same share of its reads, and
//! subclonal ones in a smaller share. So the number of sites by the number of reads with the second allele separates
//! the three sources, at any depth and in any species.

mod likelihood;
mod minor_counts;
mod site_rows;
mod somatic_spectrum;

use serde::{Deserialize, Serialize};

use crate::confidence_interval::Estimate;
use crate::contamination_params::CONTAMINATION_PARAMS;
use crate::site_tally::SiteTally;
use likelihood::ContaminationLikelihood;
use site_rows::collect_undamaged_site_counts;
use somatic_spectrum::{SomaticSpectrumHypothesis, list_somatic_spectra_to_try, select_likeliest_spectra};

/// Share of another person's DNA in a sample, and the number of sites on which the estimate is based.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ContaminationEstimate {
    /// Share of the DNA of the sample that is another person's (0 to 1).
    pub share: Estimate,
    /// Number of sites at which the sample could show an allele of a contaminant, and on which the estimate is based.
    pub sites: u64,
}

/// Input of [`estimate_contamination`]: the sample to examine, and what is already known about the sample pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContaminationInput {
    /// Sample whose contamination is estimated: 0 for the normal, 1 for the tumour.
    pub sample: usize,
    /// Modal depth, in molecules, of the sample whose contamination is estimated, and of the other sample.
    pub modal_depths: [f64; 2],
    /// Share of the read pairs of the examined sample that are PCR duplicates (0 to 1).
    pub duplicate_share: f64,
    /// Share of all examined sites at which the person is heterozygous.
    pub heterozygosity: f64,
    /// Share of the sites at which the examined sample is heterozygous and the other sample is not (0 to 1).
    pub allele_loss_share: f64,
    /// Contamination share of the other sample (0 to 1), assumed to be from the same contaminant.
    pub other_contamination: f64,
    /// Whether to use also the sites at which the other sample has one read of the minor allele. This requires that
    /// [`Self::other_contamination`] is reliable.
    pub use_shared_sites: bool,
}

/// Estimates the contamination of a sample from the read counts of minor alleles. Returns `None` if there are too few
/// sites, or if too few of them are expected to be heterozygous.
pub(crate) fn estimate_contamination(tally: &SiteTally, input: &ContaminationInput) -> Option<ContaminationEstimate> {
    let &ContaminationInput {
        sample,
        modal_depths: [modal_depth, other_depth],
        duplicate_share: copies,
        heterozygosity: het,
        allele_loss_share: lost,
        other_contamination: other,
        use_shared_sites: both,
    } = input;
    let rows = collect_undamaged_site_counts(tally, sample, modal_depth, both);
    // Each site counts three times, once for each base that could be the minor allele.
    let sites = rows.iter().flat_map(|row| &row.sites).sum::<f64>() / CONTAMINATION_PARAMS.minor_alleles_per_site;
    if (sites as u64) < CONTAMINATION_PARAMS.min_sites || sites * het < CONTAMINATION_PARAMS.min_het_sites {
        return None;
    }
    // Plus the heterozygous sites at which the other sample shows one allele only by chance.
    let lost = lost + 2.0 * het * (other_depth * 0.5f64.ln()).exp();
    // A place is seen from both sides if both roots were sampled.
    let likelihood = ContaminationLikelihood::new(&rows, copies, lost, 1.0 + tally.sampled_share, other_depth * other);
    let near = find_likely_spectra(&likelihood, het, sample == 0);
    let profile = compute_likelihood_profile(&likelihood, het, &near);
    // The prior decides between several explanations; the interval follows from the likelihood alone.
    let modal_depth: Vec<(f64, f64)> =
        profile.iter().map(|&(share, log)| (share, log + share_log_prior(share))).collect();
    let (seen, value) =
        (Estimate::from_likelihood_profile(&profile)?, Estimate::from_likelihood_profile(&modal_depth)?.value);
    let share = Estimate { value, low: seen.low.min(value), high: seen.high.max(value) };
    Some(ContaminationEstimate { share, sites: sites as u64 })
}

/// Densities of the sites at which a contaminant is heterozygous and homozygous for an allele that the person lacks.
/// `deviation` is in units of `CONTAMINATION_PARAMS.foreign_density_log_sds`.
fn foreign_site_densities(heterozygosity: f64, deviation: f64) -> [f64; 2] {
    // docs/model/contamination.md (2)
    [0, 1].map(|i| {
        heterozygosity
            * CONTAMINATION_PARAMS.foreign_sites_per_het_site[i]
            * (CONTAMINATION_PARAMS.foreign_density_log_sds[i] * deviation).exp()
    })
}

fn share_log_prior(share: f64) -> f64 {
    // docs/model/contamination.md (11)
    -(1.0 + share / CONTAMINATION_PARAMS.share_prior_scale).ln() / 2.0
}

/// Finds the somatic spectra that are likely at any contamination share, and no somatic changes as the last one.
fn find_likely_spectra(
    likelihood: &ContaminationLikelihood,
    het: f64,
    is_normal: bool,
) -> Vec<SomaticSpectrumHypothesis> {
    let coarse = CONTAMINATION_PARAMS
        .coarse_share_grid
        .map(|share| (share, likelihood.foreign_allele_count_probabilities(share)));
    let densities = foreign_site_densities(het, 0.0);
    let logs = |own: &SomaticSpectrumHypothesis| {
        coarse.each_ref().map(|(share, foreign)| {
            let error_factor = CONTAMINATION_PARAMS.repeated_error_factors[1];
            own.log_prior + likelihood.log_likelihood(foreign, densities, own, error_factor) + share_log_prior(*share)
        })
    };
    let mut near = select_likeliest_spectra(list_somatic_spectra_to_try(het, is_normal), logs);
    let other = CONTAMINATION_PARAMS
        .transition_share_grid
        .into_iter()
        .filter(|share| *share != CONTAMINATION_PARAMS.transition_share_grid[0]);
    let others = other.flat_map(|transitions| {
        near.iter().map(move |own| SomaticSpectrumHypothesis { transition_share: transitions, ..*own })
    });
    near = select_likeliest_spectra(near.iter().copied().chain(others).collect(), logs);
    near.push(SomaticSpectrumHypothesis::NO_SOMATIC_CHANGES);
    near
}

/// Computes the log-likelihood at the shares of `CONTAMINATION_PARAMS.share_grid`, and between the likeliest of them.
/// It is the maximum over `spectra`, the density of foreign sites and the rate of repeated errors, with the log-priors
/// of these three.
fn compute_likelihood_profile(
    likelihood: &ContaminationLikelihood,
    het: f64,
    spectra: &[SomaticSpectrumHypothesis],
) -> Vec<(f64, f64)> {
    let fit = |share: f64| {
        let foreign = likelihood.foreign_allele_count_probabilities(share);
        let each = CONTAMINATION_PARAMS
            .foreign_density_deviations
            .iter()
            .flat_map(|denser| CONTAMINATION_PARAMS.repeated_error_factors.map(|times| (*denser, times)));
        let each = each.flat_map(|(denser, times)| spectra.iter().map(move |own| (denser, times, own)));
        let log = |(denser, times, own): (f64, f64, &SomaticSpectrumHypothesis)| {
            // docs/model/contamination.md (12)
            let apart = denser * denser + (times.ln() / CONTAMINATION_PARAMS.repeated_error_factor_log_sd).powi(2);
            likelihood.log_likelihood(&foreign, foreign_site_densities(het, denser), own, times) + own.log_prior
                - apart / 2.0
        };
        (share, each.map(log).fold(f64::NEG_INFINITY, f64::max))
    };
    let mut profile: Vec<(f64, f64)> = CONTAMINATION_PARAMS.share_grid.into_iter().map(fit).collect();
    let likely =
        profile.iter().map(|one| one.1).fold(f64::NEG_INFINITY, f64::max) - CONTAMINATION_PARAMS.refined_log_drop;
    let between: Vec<f64> = profile
        .windows(2)
        .filter(|two| two.iter().any(|one| one.1 > likely))
        .flat_map(|two| {
            let ([from, to], parts) = ([two[0].0, two[1].0], f64::from(CONTAMINATION_PARAMS.grid_refinement));
            (1..CONTAMINATION_PARAMS.grid_refinement).map(move |i| from + (to - from) * f64::from(i) / parts)
        })
        .collect();
    profile.extend(between.into_iter().map(fit));
    profile
}

#[cfg(test)]
mod tests;
