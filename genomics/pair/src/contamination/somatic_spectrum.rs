//! Hypotheses about the somatic changes of a sample: how many there are, and which fractions of the reads show them.

use crate::contamination_params::CONTAMINATION_PARAMS;

/// Number of combinations of a read fraction of clonal changes with a share of subclonal changes: shapes of a somatic
/// spectrum.
pub(super) const NUM_SPECTRUM_SHAPES: usize =
    CONTAMINATION_PARAMS.somatic_fraction_grid.len() * CONTAMINATION_PARAMS.subclonal_change_share_grid.len();

/// A hypothesis about the somatic changes of a sample: their density, and the fractions of the reads that show them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SomaticSpectrumHypothesis {
    /// Expected number of somatic changes per examined site. `transition_share` is the share of transitions among them.
    pub(super) density: f64,
    /// Index of the combination of read fraction and subclonal share: index in
    /// `CONTAMINATION_PARAMS.somatic_fraction_grid` × length of `subclonal_change_share_grid` + index in
    /// `CONTAMINATION_PARAMS.subclonal_change_share_grid`.
    pub(super) shape: usize,
    pub(super) transition_share: f64,
    /// Natural logarithm of the prior probability of this spectrum.
    pub(super) log_prior: f64,
}

impl SomaticSpectrumHypothesis {
    /// The spectrum of a sample without somatic changes.
    pub(super) const NO_SOMATIC_CHANGES: SomaticSpectrumHypothesis =
        SomaticSpectrumHypothesis { density: 0.0, shape: 0, transition_share: 0.5, log_prior: 0.0 };
}

/// Lists the somatic spectra to try, all with the first transition share of the grid. `heterozygosity` is the share of
/// the sites at which the person is heterozygous; `is_normal` makes somatic changes less likely.
pub(super) fn list_somatic_spectra_to_try(heterozygosity: f64, is_normal: bool) -> Vec<SomaticSpectrumHypothesis> {
    let mut all = Vec::new();
    for sites in CONTAMINATION_PARAMS.somatic_density_grid.map(|of| of * heterozygosity) {
        for kind in 0..NUM_SPECTRUM_SHAPES {
            let few = f64::from(u8::from(
                CONTAMINATION_PARAMS.somatic_fraction_grid
                    [kind / CONTAMINATION_PARAMS.subclonal_change_share_grid.len()]
                    < CONTAMINATION_PARAMS.low_fraction_limit,
            ));
            let few = few
                + CONTAMINATION_PARAMS.subclonal_log_penalties
                    [kind % CONTAMINATION_PARAMS.subclonal_change_share_grid.len()]
                + if is_normal { CONTAMINATION_PARAMS.normal_somatic_log_penalty } else { 0.0 };
            // docs/model/contamination.md (10)
            let prior = -(1.0 + sites / CONTAMINATION_PARAMS.somatic_density_prior_scale).ln() / 2.0 - few;
            all.push(SomaticSpectrumHypothesis {
                density: sites,
                shape: kind,
                transition_share: CONTAMINATION_PARAMS.transition_share_grid[0],
                log_prior: prior,
            });
        }
    }
    all
}

/// Selects the somatic spectra with the highest log-posterior at any of the `N` contamination shares, and the best ones
/// for each of these shares. `logs` returns the log-posterior of a spectrum at each share.
pub(super) fn select_likeliest_spectra<const N: usize>(
    all: Vec<SomaticSpectrumHypothesis>,
    logs: impl Fn(&SomaticSpectrumHypothesis) -> [f64; N],
) -> Vec<SomaticSpectrumHypothesis> {
    let all: Vec<([f64; N], SomaticSpectrumHypothesis)> = all.into_iter().map(|own| (logs(&own), own)).collect();
    let mut found: Vec<SomaticSpectrumHypothesis> = Vec::new();
    let mut take = |of: &dyn Fn(&[f64; N]) -> f64, most: usize| {
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by(|&a, &b| of(&all[b].0).total_cmp(&of(&all[a].0)));
        for own in order.into_iter().take(most).map(|i| all[i].1) {
            if !found.contains(&own) {
                found.push(own);
            }
        }
    };
    take(&|logs| logs.iter().copied().fold(f64::NEG_INFINITY, f64::max), CONTAMINATION_PARAMS.num_best_spectra);
    (0..N).for_each(|share| take(&|logs| logs[share], CONTAMINATION_PARAMS.num_best_spectra_per_share));
    found
}
