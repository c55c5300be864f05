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

use serde::{Deserialize, Serialize};

use crate::confidence_interval::{Estimate, MIN_PROBABILITY_FOR_LOG, MIN_SHARE_FOR_LOG, log_factorials};
use crate::site_tally::{NUM_DEPTH_CLASSES, NUM_MINOR_ALLELE_COUNT_CLASSES, SiteTally};
use crate::sketch::molecule_count_probabilities;

/// Share of another person's DNA in a sample, and the number of sites on which the estimate is based.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ContaminationEstimate {
    /// Share of the DNA of the sample that is another person's (0 to 1).
    pub share: Estimate,
    /// Number of sites at which the sample could show an allele of a contaminant, and on which the estimate is based.
    pub sites: u64,
}

/// Parameters of the contamination model. The formulas are those of
/// `docs/model/contamination.md`.
#[derive(Debug)]
pub(crate) struct ContaminationModelParams {
    /// Contamination shares at which the likelihood is computed (formula 13), denser near 0. Unit: share of DNA.
    /// Source: chosen (above 0.3 the alleles of both people mix too much). If higher: wider range of shares.
    pub(crate) share_grid: [f64; 24],
    /// Number of steps into which the intervals of `share_grid` around the likeliest shares are divided. Unit: steps.
    /// Source: empirical; not fitted. If higher: finer estimate, more computation.
    pub(crate) grid_refinement: u32,
    /// Intervals of `share_grid` with an end whose log-likelihood is at most this much below the maximum are refined.
    /// Unit: natural-log units. Source: empirical; not fitted. If higher: more intervals are refined, more
    /// computation.
    pub(crate) refined_log_drop: f64,
    /// Contamination shares at which the somatic spectra are compared first. Unit: share of DNA. Source: chosen (a
    /// subset for speed). If higher: no direct effect.
    pub(crate) coarse_share_grid: [f64; 7],
    /// Number of sites at which a contaminant is heterozygous for an allele that the person lacks, and at which he is
    /// homozygous for one (formula 2). Unit: sites per heterozygous site of the person. Source: derived for unrelated
    /// people with neutral allele frequencies (Watterson 1975; KING kinship 0, Manichaikul 2010). If higher: lower
    /// estimates.
    pub(crate) foreign_sites_per_het_site: [f64; 2],
    /// Standard deviations of the natural logarithms of `foreign_sites_per_het_site`, because people differ in
    /// diversity (formula 2). Unit: natural-log units. Source: empirical; not fitted. If higher: wider interval.
    pub(crate) foreign_density_log_sds: [f64; 2],
    /// Deviations of the density of foreign sites that are tried (formula 2). Unit: multiples of
    /// `foreign_density_log_sds`. Source: chosen (three points of a normal distribution). If higher: wider range of
    /// densities.
    pub(crate) foreign_density_deviations: [f64; 3],
    /// Scale of the prior of the contamination share (formula 11). Unit: share of DNA. Source: chosen (most samples
    /// have next to no contamination). If higher: weaker pull of small estimates towards 0.
    pub(crate) share_prior_scale: f64,
    /// Densities of somatic changes that are tried (formula 9). Unit: changes per heterozygous site of the person.
    /// Source: chosen (covers 0.003 to 0.9). If higher: more somatic changes are possible.
    pub(crate) somatic_density_grid: [f64; 8],
    /// Shares of the reads that clonal somatic changes have, as tried (formula 9). Unit: share of reads. Source: chosen
    /// (covers purities up to about 1). If higher: amplified changes are covered.
    pub(crate) somatic_fraction_grid: [f64; 8],
    /// Shares of the somatic changes that are subclonal, as tried (formula 9). Unit: share of somatic changes. Source:
    /// empirical; not fitted. If higher: more of the alleles with few reads may be subclonal changes.
    pub(crate) subclonal_change_share_grid: [f64; 3],
    /// Number of read fractions, equally spaced up to that of clonal changes, over which subclonal changes are averaged
    /// (formula 9). Unit: read fractions. Source: empirical; not fitted. If higher: finer average, more computation.
    pub(crate) num_subclonal_read_fractions: usize,
    /// Negative logarithm of the prior of each value of `subclonal_change_share_grid` (formula 10). Unit: natural-log
    /// units. Source: chosen (more subclonal changes are less likely). If higher: fewer alleles are attributed to
    /// subclonal changes.
    pub(crate) subclonal_log_penalties: [f64; 3],
    /// Shares of the somatic changes that are transitions, as tried; the first is used for the first search (formula
    /// 3). Unit: share of somatic changes. Source: empirical; not fitted. If higher: more transitions among the somatic
    /// changes.
    pub(crate) transition_share_grid: [f64; 3],
    /// Scale of the prior of the density of somatic changes (formula 10). Unit: changes per base. Source: empirical;
    /// not fitted. If higher: many somatic changes become more likely.
    pub(crate) somatic_density_prior_scale: f64,
    /// Share of the reads below which clonal somatic changes are taken to be in few cells; their log-prior is then
    /// lower by one natural-log unit (formula 10). Unit: share of reads. Source: empirical; not fitted. If higher: more
    /// spectra are penalised, so more alleles with few reads are attributed to contamination.
    pub(crate) low_fraction_limit: f64,
    /// Penalty of somatic changes in a normal sample (formula 10). Unit: natural-log units. Source: chosen (samples may
    /// be swapped, but rarely are). If higher: more alleles of the normal are attributed to contamination.
    pub(crate) normal_somatic_log_penalty: f64,
    /// Number of somatic spectra, the likeliest ones, that are examined at all contamination shares. Unit: spectra.
    /// Source: chosen (for speed). If higher: slower and more exhaustive search.
    pub(crate) num_best_spectra: usize,
    /// Number of further somatic spectra that are kept for each share of `coarse_share_grid`. Unit: spectra. Source:
    /// chosen (for speed). If higher: slower and more exhaustive search.
    pub(crate) num_best_spectra_per_share: usize,
    /// Minimum number of sites for an estimate. Unit: sites. Source: chosen (with fewer sites a few odd places of the
    /// library or genome would look like a contaminant). If higher: more small samples without an estimate.
    pub(crate) min_sites: u64,
    /// Minimum expected number of heterozygous sites among the examined sites; a contaminant has about as many
    /// alleles of his own. Unit: sites. Source: empirical; not fitted. If higher: more shallow samples without an
    /// estimate.
    pub(crate) min_het_sites: f64,
    /// Smallest and largest depth of the examined sites. Unit: multiples of the modal depth. Source: chosen (beyond
    /// it deletions and repeats are frequent). If higher: first value: fewer shallow sites; second value: more
    /// repeats.
    pub(crate) depth_range: [f64; 2],
    /// Smallest depth of the examined sites. Unit: molecules. Source: empirical; not fitted. If higher: fewer sites
    /// of shallow samples.
    pub(crate) min_depth: f64,
    /// Number of other bases that could be the minor allele of a site (formula 3). Each site is counted once for each
    /// of them. Unit: alleles per site. Source: definition. If higher: not to be changed.
    pub(crate) minor_alleles_per_site: f64,
    /// Shares of inherited alleles that are transitions, and that are one given transversion of the two that a site has
    /// (formula 3). Unit: share of inherited alleles. Source: transition to transversion ratio of 2 of the human
    /// genome. If higher: not to be changed alone, because the first plus twice the second is 1.
    pub(crate) inherited_class_shares: [f64; 2],
    /// Number of sites with the same error in two molecules: PCR errors whose duplicates were not recognised, and sites
    /// with frequent errors (formula 6). Unit: sites per site with an error in one molecule and per share of
    /// duplicates. Source: empirical; the factor `repeated_error_factors` is fitted to each sample. If higher: lower
    /// small estimates.
    pub(crate) repeated_error_rate: f64,
    /// Factors of `repeated_error_rate` that are tried; the second is used for the first search (formula 6). Unit:
    /// factor. Source: empirical; not fitted. If higher: more repeated errors are allowed.
    pub(crate) repeated_error_factors: [f64; 3],
    /// Standard deviation of the natural logarithm of the factor of `repeated_error_rate` (formula 12). Unit:
    /// natural-log units. Source: empirical; not fitted. If higher: more variation between libraries is allowed.
    pub(crate) repeated_error_factor_log_sd: f64,
    /// Smallest duplicate share that `repeated_error_rate` is multiplied by. Unit: share of read pairs. Source:
    /// empirical; not fitted. If higher: more repeated errors in libraries without duplicates.
    pub(crate) min_duplicate_share: f64,
    /// Lower bound of the fitted error rate (formula 7). Unit: errors per base. Source: chosen (keeps the likelihood
    /// finite). If higher: no effect unless errors are that rare.
    pub(crate) min_error_rate: f64,
    /// Substitution classes whose error rate exceeds this multiple of the lowest rate are damaged and left out. Unit:
    /// factor. Source: empirical; not fitted. If higher: more damaged classes are used.
    pub(crate) max_error_rate_ratio: f64,
    /// Substitution classes with an error rate below this value are never left out. Unit: errors per base. Source:
    /// empirical; not fitted. If higher: more damaged classes are used.
    pub(crate) always_used_error_rate: f64,
    /// Maximum share of the sites with one read of the minor allele in the other sample that may be foreign alleles
    /// (formula 8). Unit: share of sites. Source: chosen (keeps the likelihood finite). If higher: more of these sites
    /// may be foreign.
    pub(crate) max_foreign_shared_site_share: f64,
    /// Maximum number of reads of the minor allele in this sample at sites with a read of it in the other sample
    /// (formula 8). Unit: reads. Source: chosen (with more, the allele may be inherited and by chance or loss rare in
    /// the other sample). If higher: more sites, and more inherited alleles among them.
    pub(crate) max_shared_minor_reads: usize,
    /// Probability of a second allele for a reason that the model does not cover (formula 6). Unit: probability per
    /// site. Source: empirical; not fitted. If higher: more robust and less sensitive estimate.
    pub(crate) unexplained_site_rate: f64,
    /// Maximum number of rounds in which the contamination of both samples is re-estimated, because each estimate
    /// depends on the other. Unit: rounds. Source: empirical; not fitted. If higher: slower, closer to convergence.
    pub(crate) max_rounds: usize,
    /// Largest change of a contamination share between two rounds that counts as converged. Unit: share of DNA.
    /// Source: empirical; not fitted. If higher: the rounds stop earlier.
    pub(crate) convergence_tolerance: f64,
}

/// Values of the parameters of the contamination model.
pub(crate) const CONTAMINATION_PARAMS: ContaminationModelParams = ContaminationModelParams {
    share_grid: [
        0.0, 0.002, 0.004, 0.007, 0.01, 0.014, 0.018, 0.023, 0.028, 0.034, 0.04, 0.047, 0.054, 0.062, 0.07, 0.08, 0.09,
        0.1, 0.115, 0.13, 0.16, 0.2, 0.25, 0.3,
    ],
    grid_refinement: 4,
    refined_log_drop: 4.0,
    coarse_share_grid: [0.0, 0.008, 0.02, 0.04, 0.08, 0.13, 0.2],
    foreign_sites_per_het_site: [0.65, 0.175],
    foreign_density_log_sds: [0.08, 0.15],
    foreign_density_deviations: [-1.4, 0.0, 1.4],
    share_prior_scale: 0.02,
    somatic_density_grid: [0.003, 0.01, 0.03, 0.07, 0.14, 0.28, 0.5, 0.9],
    somatic_fraction_grid: [0.08, 0.12, 0.17, 0.22, 0.28, 0.35, 0.42, 0.49],
    subclonal_change_share_grid: [0.0, 0.3, 0.6],
    num_subclonal_read_fractions: 12,
    subclonal_log_penalties: [0.0, 0.5, 1.5],
    transition_share_grid: [0.6, 0.45, 0.8],
    somatic_density_prior_scale: 2e-5,
    low_fraction_limit: 0.15,
    normal_somatic_log_penalty: 6.0,
    num_best_spectra: 5,
    num_best_spectra_per_share: 2,
    min_sites: 20_000,
    min_het_sites: 250.0,
    depth_range: [0.5, 1.6],
    min_depth: 6.0,
    minor_alleles_per_site: 3.0,
    inherited_class_shares: [2.0 / 3.0, 1.0 / 6.0],
    repeated_error_rate: 0.03,
    repeated_error_factors: [0.5, 1.5, 4.0],
    repeated_error_factor_log_sd: 0.7,
    min_duplicate_share: 0.01,
    min_error_rate: 1e-7,
    max_error_rate_ratio: 1.8,
    always_used_error_rate: 2e-4,
    max_foreign_shared_site_share: 0.97,
    max_shared_minor_reads: 2,
    unexplained_site_rate: 2e-7,
    max_rounds: 5,
    convergence_tolerance: 0.001,
};

/// Number of combinations of a read fraction of clonal changes with a share of subclonal changes: shapes of a somatic
/// spectrum.
const NUM_SPECTRUM_SHAPES: usize =
    CONTAMINATION_PARAMS.somatic_fraction_grid.len() * CONTAMINATION_PARAMS.subclonal_change_share_grid.len();

/// A hypothesis about the somatic changes of a sample: their density, and the fractions of the reads that show them.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SomaticSpectrum {
    /// Expected number of somatic changes per examined site. `transition_share` is the share of transitions among them.
    density: f64,
    /// Index of the combination of read fraction and subclonal share: index in
    /// `CONTAMINATION_PARAMS.somatic_fraction_grid` × length of `subclonal_change_share_grid` + index in
    /// `CONTAMINATION_PARAMS.subclonal_change_share_grid`.
    shape: usize,
    transition_share: f64,
    /// Natural logarithm of the prior probability of this spectrum.
    log_prior: f64,
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
    /// Whether to use sites at which both samples have reads of the same second allele. This requires that
    /// [`Self::other_contamination`] is reliable.
    pub use_shared_sites: bool,
}

/// Estimates the contamination of a sample from the read counts of minor alleles. Returns `None` if there are too few
/// sites.
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
    let rows = collect_rows(tally, sample, modal_depth, both);
    // Each site counts three times, once for each base that could be the minor allele.
    let sites = rows.iter().flat_map(|row| &row.sites).sum::<f64>() / CONTAMINATION_PARAMS.minor_alleles_per_site;
    if (sites as u64) < CONTAMINATION_PARAMS.min_sites || sites * het < CONTAMINATION_PARAMS.min_het_sites {
        return None;
    }
    // Plus the heterozygous sites at which the other sample shows one allele only by chance.
    let lost = lost + 2.0 * het * (other_depth * 0.5f64.ln()).exp();
    // A place is seen from both sides if both roots were sampled.
    let could = tally.single_copy_site_share(sample);
    let likelihood =
        ContaminationLikelihood::new(&rows, copies, lost, 1.0 + tally.sampled_share, other_depth * other, could);
    // docs/model/contamination.md (2)
    let densities = |denser: f64| {
        [0, 1].map(|i| {
            het * CONTAMINATION_PARAMS.foreign_sites_per_het_site[i]
                * (CONTAMINATION_PARAMS.foreign_density_log_sds[i] * denser).exp()
        })
    };
    // docs/model/contamination.md (11)
    let prior = |share: f64| -(1.0 + share / CONTAMINATION_PARAMS.share_prior_scale).ln() / 2.0;
    // First find the best somatic spectra, then the other parameters for these.
    let coarse = CONTAMINATION_PARAMS.coarse_share_grid.map(|share| (share, likelihood.foreign_probabilities(share)));
    let logs = |own: &SomaticSpectrum| {
        coarse.each_ref().map(|(share, foreign)| {
            own.log_prior
                + likelihood.log_likelihood(
                    foreign,
                    densities(0.0),
                    own,
                    CONTAMINATION_PARAMS.repeated_error_factors[1],
                )
                + prior(*share)
        })
    };
    let mut near = select_likeliest(somatic_spectra(het, sample == 0), logs);
    let other = CONTAMINATION_PARAMS
        .transition_share_grid
        .into_iter()
        .filter(|share| *share != CONTAMINATION_PARAMS.transition_share_grid[0]);
    let others = other
        .flat_map(|transitions| near.iter().map(move |own| SomaticSpectrum { transition_share: transitions, ..*own }));
    near = select_likeliest(near.iter().copied().chain(others).collect(), logs);
    near.push(SomaticSpectrum::NONE);
    let fit = |share: f64| {
        let foreign = likelihood.foreign_probabilities(share);
        let each = CONTAMINATION_PARAMS
            .foreign_density_deviations
            .iter()
            .flat_map(|denser| CONTAMINATION_PARAMS.repeated_error_factors.map(|times| (*denser, times)));
        let each = each.flat_map(|(denser, times)| near.iter().map(move |own| (denser, times, own)));
        let log = |(denser, times, own): (f64, f64, &SomaticSpectrum)| {
            // docs/model/contamination.md (12)
            let apart = denser * denser + (times.ln() / CONTAMINATION_PARAMS.repeated_error_factor_log_sd).powi(2);
            likelihood.log_likelihood(&foreign, densities(denser), own, times) + own.log_prior - apart / 2.0
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
    // The prior decides between several explanations; the interval follows from the likelihood alone.
    let modal_depth: Vec<(f64, f64)> = profile.iter().map(|&(share, log)| (share, log + prior(share))).collect();
    let (seen, value) =
        (Estimate::from_likelihood_profile(&profile)?, Estimate::from_likelihood_profile(&modal_depth)?.value);
    let share = Estimate { value, low: seen.low.min(value), high: seen.high.max(value) };
    Some(ContaminationEstimate { share, sites: sites as u64 })
}

impl SomaticSpectrum {
    const NONE: SomaticSpectrum = SomaticSpectrum { density: 0.0, shape: 0, transition_share: 0.5, log_prior: 0.0 };
}

/// Lists the somatic spectra to try. `heterozygosity` is the share of the sites at which the person is heterozygous;
/// `is_normal` makes somatic changes less likely.
fn somatic_spectra(heterozygosity: f64, is_normal: bool) -> Vec<SomaticSpectrum> {
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
            all.push(SomaticSpectrum {
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
fn select_likeliest<const N: usize>(
    all: Vec<SomaticSpectrum>,
    logs: impl Fn(&SomaticSpectrum) -> [f64; N],
) -> Vec<SomaticSpectrum> {
    let all: Vec<([f64; N], SomaticSpectrum)> = all.into_iter().map(|own| (logs(&own), own)).collect();
    let mut found: Vec<SomaticSpectrum> = Vec::new();
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

/// Sites of one depth, for transitions or for transversions: `sites[m]` is the number of sites with `m` reads of the
/// minor allele. The other sample has `other_reads` reads (0 or 1) of the minor allele at all of these sites.
struct DepthRow {
    is_transition: bool,
    other_reads: usize,
    depth: usize,
    sites: Vec<f64>,
}

fn collect_rows(tally: &SiteTally, sample: usize, modal_depth: f64, with_shared: bool) -> Vec<DepthRow> {
    let [shallow, deep] = CONTAMINATION_PARAMS.depth_range;
    let (from, to) = (
        (modal_depth * shallow).max(CONTAMINATION_PARAMS.min_depth) as usize,
        ((modal_depth * deep) as usize + 1).min(NUM_DEPTH_CLASSES - 1),
    );
    let row = |other_reads: usize, class: usize, depth: usize| {
        let table = if other_reads == 0 { &tally.minor_counts[sample] } else { &tally.shared_minor_counts[sample] };
        &table[(class * NUM_DEPTH_CLASSES + depth) * NUM_MINOR_ALLELE_COUNT_CLASSES..][..NUM_MINOR_ALLELE_COUNT_CLASSES]
    };
    let rate = |class: usize| {
        let sum = (from..=to).fold([0.0; 2], |sum, depth| {
            let row = row(0, class, depth);
            [sum[0] + row[1] as f64, sum[1] + row.iter().sum::<u64>() as f64 * depth as f64]
        });
        sum[0] / sum[1].max(1.0)
    };
    let rates: Vec<f64> = (0..6).map(rate).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let sound: Vec<usize> = (0..6)
        .filter(|&class| {
            rates[class] <= CONTAMINATION_PARAMS.max_error_rate_ratio * least
                || rates[class] < CONTAMINATION_PARAMS.always_used_error_rate
        })
        .collect();
    [true, false]
        .into_iter()
        .flat_map(|transition| (0..=usize::from(with_shared)).map(move |other_reads| (transition, other_reads)))
        .flat_map(|(transition, other_reads)| (from..=to).map(move |depth| (transition, other_reads, depth)))
        .map(|(transition, other_reads, depth)| {
            let own = || sound.iter().filter(|class| (**class == 2 || **class == 4) == transition);
            let most = if other_reads == 0 {
                NUM_MINOR_ALLELE_COUNT_CLASSES - 1
            } else {
                CONTAMINATION_PARAMS.max_shared_minor_reads + 1
            };
            let sites = (0..(depth / 2 + 1).min(most))
                .map(|m| own().map(|class| row(other_reads, *class, depth)[m] as f64).sum())
                .collect();
            DepthRow { is_transition: transition, other_reads, depth, sites }
        })
        .filter(|row| row.sites.iter().sum::<f64>() > 0.0)
        .collect()
}

/// The sites of a [`DepthRow`] with the same number of reads of the minor allele, and the probabilities of this number.
struct MinorCountCell {
    minor_reads: usize,
    sites: f64,
    /// Probability of this number of reads for a heterozygous allele, which is in half of the reads.
    /// `somatic_probabilities` are those for a somatic change, by shape of the somatic spectrum.
    het_probability: f64,
    somatic_probabilities: [f64; NUM_SPECTRUM_SHAPES],
}

/// Probability of each counted number of molecules with the minor allele among `n` molecules, each of which has the
/// allele with probability `p`. Two molecules whose read starts have the same hash are counted as one; the
/// probabilities account for this. `logs[i]` is the natural logarithm of `i!`. `docs/model/contamination.md` (4).
fn minor_count_probabilities(n: usize, p: f64, logs: &[f64]) -> [f64; NUM_MINOR_ALLELE_COUNT_CLASSES] {
    let mut all = [0.0; NUM_MINOR_ALLELE_COUNT_CLASSES];
    let (own, other) = (p.max(MIN_SHARE_FOR_LOG).ln(), (1.0 - p).ln());
    for k in 0..=n {
        let chance = (logs[n] - logs[k] - logs[n - k] + k as f64 * own + (n - k) as f64 * other).exp();
        match molecule_count_probabilities().get(k) {
            Some(counted) => all.iter_mut().zip(&counted[..=k]).for_each(|(all, counted)| *all += chance * counted),
            None => all[k.min(NUM_MINOR_ALLELE_COUNT_CLASSES - 1)] += chance,
        }
    }
    all
}

/// Probabilities of each number of molecules with the minor allele, at one depth.
struct MinorCountProbabilities {
    /// Probabilities for an allele in half of the molecules, by number of molecules with the allele. `somatic` are
    /// those for a somatic change, also by shape of the somatic spectrum.
    het: [f64; NUM_MINOR_ALLELE_COUNT_CLASSES],
    somatic: Vec<[f64; NUM_SPECTRUM_SHAPES]>,
}

impl MinorCountProbabilities {
    fn at_depth(n: usize, logs: &[f64]) -> MinorCountProbabilities {
        // Subclonal changes have any share of the reads up to that of clonal ones with equal probability.
        const PARTS: usize = CONTAMINATION_PARAMS.num_subclonal_read_fractions;
        let each = CONTAMINATION_PARAMS.somatic_fraction_grid.map(|share| {
            let mut some = [0.0; NUM_MINOR_ALLELE_COUNT_CLASSES];
            for i in 0..PARTS {
                let part = minor_count_probabilities(n, share * (i as f64 + 0.5) / PARTS as f64, logs);
                some.iter_mut().zip(part).for_each(|(sum, one)| *sum += one / PARTS as f64);
            }
            [minor_count_probabilities(n, share, logs), some]
        });
        let kind = |m: usize, kind: usize| {
            let (both, partly) = (
                &each[kind / CONTAMINATION_PARAMS.subclonal_change_share_grid.len()],
                CONTAMINATION_PARAMS.subclonal_change_share_grid
                    [kind % CONTAMINATION_PARAMS.subclonal_change_share_grid.len()],
            );
            // docs/model/contamination.md (9)
            (1.0 - partly) * both[0][m] + partly * both[1][m]
        };
        let kinds = (0..NUM_MINOR_ALLELE_COUNT_CLASSES).map(|m| std::array::from_fn(|i| kind(m, i))).collect();
        MinorCountProbabilities { het: minor_count_probabilities(n, 0.5, logs), somatic: kinds }
    }
}

/// The rows of transitions or of transversions at which the other sample has the same number of reads of the minor
/// allele.
struct RowGroup {
    is_transition: bool,
    other_reads: usize,
    /// Factors by which a site is more likely to be in this group if the contaminant is heterozygous there, and if he
    /// is homozygous there.
    foreign_enrichment: [f64; 2],
    /// For each row: depth, number of sites, and the cells by number of reads with the minor allele.
    rows: Vec<(usize, f64, Vec<MinorCountCell>)>,
}

/// The site counts, with the parts of the contamination likelihood that do not depend on the contamination share or the
/// somatic spectrum.
struct ContaminationLikelihood {
    groups: Vec<RowGroup>,
    /// Approximate sequencing error rate per base, for transversions and for transitions.
    error_rates: [f64; 2],
    /// Number of sites at which two molecules have the same error, per site at which one molecule has an error. It is
    /// proportional to the sample's share of duplicates.
    repeated_error_rate: f64,
    allele_loss_share: f64,
    /// Mean number of times that one genome position is counted as a site (1 to 2): twice if the roots on both sides of
    /// it are in the sketch.
    views_per_site: f64,
    /// Whether the other sample is contaminated and there are sites at which both samples have reads of the minor
    /// allele.
    has_shared_rows: bool,
    log_factorials: Vec<f64>,
}

/// For each cell: its probability at sites where the contaminant is heterozygous, and where he is homozygous.
struct ForeignProbabilities(Vec<[f64; 2]>);

impl ContaminationLikelihood {
    /// Computes the parts of the likelihood that are independent of the contamination share. `copies` is the duplicate
    /// share, `lost` the share of sites at which the other sample does not show an inherited allele, `seen` the mean
    /// number of times that a position is counted, and `other` the mean number of molecules of the contaminant at a
    /// site of the other sample. `could` is the share of the sites that can be in rows where the other sample has a
    /// read of the minor allele.
    fn new(rows: &[DepthRow], copies: f64, lost: f64, seen: f64, other: f64, could: f64) -> ContaminationLikelihood {
        let logs = log_factorials(NUM_DEPTH_CLASSES);
        let mut shown: Vec<Option<MinorCountProbabilities>> = (0..NUM_DEPTH_CLASSES).map(|_| None).collect();
        for row in rows {
            shown[row.depth].get_or_insert_with(|| MinorCountProbabilities::at_depth(row.depth, &logs));
        }
        let cell = |n: usize, m: usize, sites: f64| {
            let (half, kinds) =
                shown[n].as_ref().map_or((0.0, [0.0; NUM_SPECTRUM_SHAPES]), |own| (own.het[m], own.somatic[m]));
            MinorCountCell { minor_reads: m, sites, het_probability: half, somatic_probabilities: kinds }
        };
        let of_row = |row: &DepthRow| {
            let seen = row
                .sites
                .iter()
                .enumerate()
                .filter(|(m, sites)| *m <= CONTAMINATION_PARAMS.max_shared_minor_reads || **sites > 0.0);
            let cells = seen.map(|(m, sites)| cell(row.depth, m, *sites)).collect();
            (row.depth, row.sites.iter().sum(), cells)
        };
        let usual = |transition: bool| move |row: &&DepthRow| row.is_transition == transition && row.other_reads == 0;
        let sites = |rows: &[&DepthRow]| rows.iter().flat_map(|row| &row.sites).sum::<f64>();
        let error = |transition: bool| {
            let sum = rows.iter().filter(usual(transition)).fold([0.0; 2], |sum, row| {
                let all: f64 = row.sites.iter().sum();
                [sum[0] + row.sites.get(1).unwrap_or(&0.0), sum[1] + all * row.depth as f64]
            });
            sum[0] / f64::max(sum[1], 1.0)
        };
        let errors = [false, true].map(error);
        let poisson = |mean: f64, m: usize| (m as f64 * mean.max(MIN_SHARE_FOR_LOG).ln() - mean - logs[m]).exp();
        let alike = |own: &[&DepthRow]| {
            let DepthRow { is_transition: transition, other_reads: beside, .. } = *own[0];
            let all = |beside: usize| {
                let fit = |row: &&DepthRow| row.is_transition == transition && row.other_reads == beside;
                sites(&rows.iter().filter(fit).collect::<Vec<_>>())
            };
            let share = |beside: usize| all(beside) / (all(0) + all(1));
            // Reads of the contaminant's allele in the other sample, plus its errors. Errors that could not be in
            // these rows are left out.
            let errors = share(1) / could;
            let could = if beside == 0 { 1.0 } else { could };
            // docs/model/contamination.md (5)
            let foreign = [0.5, 1.0].map(|of| could * poisson(of * other + errors, beside) / share(beside));
            let rows = own.iter().map(|row| of_row(row)).collect();
            RowGroup { is_transition: transition, other_reads: beside, foreign_enrichment: foreign, rows }
        };
        let all: Vec<&DepthRow> = rows.iter().collect();
        let beside = other > 0.0 && all.iter().any(|row| row.other_reads > 0);
        let alike = all
            .chunk_by(|a, b| (a.is_transition, a.other_reads) == (b.is_transition, b.other_reads))
            .map(alike)
            .collect();
        ContaminationLikelihood {
            groups: alike,
            error_rates: errors,
            repeated_error_rate: CONTAMINATION_PARAMS.repeated_error_rate
                * copies.max(CONTAMINATION_PARAMS.min_duplicate_share),
            allele_loss_share: lost,
            views_per_site: seen,
            has_shared_rows: beside,
            log_factorials: logs,
        }
    }

    /// Computes the probability of each cell for alleles of a contaminant with this contamination share.
    fn foreign_probabilities(&self, share: f64) -> ForeignProbabilities {
        let each = self.groups.iter().flat_map(|alike| {
            let error = self.error_rates[usize::from(alike.is_transition)];
            alike.rows.iter().flat_map(move |(n, _, cells)| {
                let [half, whole] = [share / 2.0, share]
                    .map(|share| minor_count_probabilities(*n, share + error, &self.log_factorials));
                cells.iter().map(move |cell| [half[cell.minor_reads], whole[cell.minor_reads]])
            })
        });
        ForeignProbabilities(each.collect())
    }

    /// Log-likelihood for the given densities of heterozygous and homozygous foreign sites, somatic changes, and a
    /// factor for the rate of repeated errors. Uses the likelier of two cases: the contaminant is the one of the other
    /// sample, or another person.
    fn log_likelihood(
        &self,
        foreign: &ForeignProbabilities,
        densities: [f64; 2],
        changes: &SomaticSpectrum,
        error_factor: f64,
    ) -> f64 {
        let of = |same| self.log_likelihood_for_contaminant(foreign, densities, changes, error_factor, same);
        // docs/model/contamination.md (1)
        if self.has_shared_rows { of(true).max(of(false)) } else { of(true) }
    }

    /// Log-likelihood if the contaminant is the one of the other sample (`is_same`), or another person.
    fn log_likelihood_for_contaminant(
        &self,
        foreign: &ForeignProbabilities,
        [one, both]: [f64; 2],
        changes: &SomaticSpectrum,
        error_factor: f64,
        is_same: bool,
    ) -> f64 {
        let mut sum = 0.0;
        let mut from = 0;
        let mut usual_error = 0.0;
        for group in &self.groups {
            // Of inherited alleles two thirds are transitions. Each site has two possible transversions.
            let (density, own) = match group.is_transition {
                true => (CONTAMINATION_PARAMS.inherited_class_shares[0], changes.transition_share),
                false => (CONTAMINATION_PARAMS.inherited_class_shares[1], (1.0 - changes.transition_share) / 2.0),
            };
            let of = if is_same { group.foreign_enrichment } else { [1.0; 2] };
            // docs/model/contamination.md (3)
            let [one, both] = [density * one * of[0], density * both * of[1]];
            let own = own * changes.density;
            let foreign = &foreign.0[from..];
            from += group.rows.iter().map(|(.., cells)| cells.len()).sum::<usize>();
            if group.other_reads == 0 {
                let shares = [one, both, density * self.allele_loss_share, own];
                let (log, error) = self.unshared_log_likelihood(group, foreign, shares, changes.shape, error_factor);
                usual_error = error;
                sum += log;
                continue;
            }
            let too_many = ((one + both) / CONTAMINATION_PARAMS.max_foreign_shared_site_share).max(1.0);
            sum += self.shared_log_likelihood(
                group,
                foreign,
                [one / too_many, both / too_many],
                error_factor,
                usual_error,
            );
        }
        sum / self.views_per_site
    }

    /// Log-likelihood of the rows where the other sample has no read of the minor allele, and the fitted error rate.
    /// The array has densities per site: heterozygous (`one`) and homozygous (`both`) foreign sites, inherited alleles
    /// that the other sample does not show (`lost`), and somatic changes (`own`).
    fn unshared_log_likelihood(
        &self,
        group: &RowGroup,
        foreign: &[[f64; 2]],
        [one, both, lost, own]: [f64; 4],
        shape: usize,
        error_factor: f64,
    ) -> (f64, f64) {
        let rest = 1.0 - one - both - lost - own;
        // Single minor reads that nothing else explains, over the reads that could show an error.
        let mut error = self.error_rates[usize::from(group.is_transition)];
        let (mut single, mut reads, mut at) = (0.0, 0.0, 0);
        for (n, all, cells) in &group.rows {
            if let Some(cell) = cells.get(1) {
                let [half, whole] = foreign[at + 1];
                let explained = one * half + both * whole + own * cell.somatic_probabilities[shape];
                single += cell.sites - all * explained;
                let n = *n as f64;
                reads += all * n * (-n * error).exp() * rest;
            }
            at += cells.len();
        }
        // docs/model/contamination.md (7)
        error = (single / f64::max(reads, 1.0)).max(CONTAMINATION_PARAMS.min_error_rate);
        let (mut sum, mut from) = (0.0, 0);
        for (n, all, cells) in &group.rows {
            let mean = *n as f64 * error;
            let mut wrong = (-mean).exp();
            let mut last = 0;
            let twice = error_factor * self.repeated_error_rate * mean;
            for (cell, [half, whole]) in cells.iter().zip(&foreign[from..]) {
                while last < cell.minor_reads {
                    last += 1;
                    wrong *= mean / last as f64;
                }
                let (more, unknown) = match cell.minor_reads {
                    2 => (twice, CONTAMINATION_PARAMS.unexplained_site_rate),
                    m => (0.0, if m > 2 { CONTAMINATION_PARAMS.unexplained_site_rate } else { 0.0 }),
                };
                // docs/model/contamination.md (6)
                let chance = rest * (wrong + more)
                    + one * half
                    + both * whole
                    + lost * cell.het_probability
                    + own * cell.somatic_probabilities[shape]
                    + unknown;
                sum += cell.sites * chance.max(MIN_PROBABILITY_FOR_LOG).ln();
            }
            from += cells.len();
            // The probabilities of a row add up to this factor.
            sum -= all
                * (rest * twice + CONTAMINATION_PARAMS.unexplained_site_rate * (n / 2).saturating_sub(2) as f64)
                    .ln_1p();
        }
        (sum, error)
    }

    /// Log-likelihood of the rows where the other sample has one read of the minor allele. Only sites where the
    /// examined sample has at most `CONTAMINATION_PARAMS.max_shared_minor_reads` reads of this allele are used. The
    /// error rate is fitted and at least `min_error_rate`: it is higher where both samples tend to have errors.
    fn shared_log_likelihood(
        &self,
        group: &RowGroup,
        foreign: &[[f64; 2]],
        [one, both]: [f64; 2],
        error_factor: f64,
        min_error_rate: f64,
    ) -> f64 {
        let rest = 1.0 - one - both;
        let (mut single, mut reads, mut at) = (0.0, 0.0, 0);
        for (n, all, cells) in &group.rows {
            let [half, whole] = foreign[at + 1];
            single += cells[1].sites - all * (one * half + both * whole);
            reads += all * *n as f64 * rest;
            at += cells.len();
        }
        let error = (single / f64::max(reads, 1.0)).max(min_error_rate);
        let (mut sum, mut from) = (0.0, 0);
        for (n, all, cells) in &group.rows {
            let mean = *n as f64 * error;
            let wrong = [
                1.0,
                mean,
                mean * mean / 2.0
                    + error_factor * self.repeated_error_rate * mean
                    + CONTAMINATION_PARAMS.unexplained_site_rate,
            ];
            let mut whole_row = 0.0;
            for ((cell, [half, whole]), wrong) in cells.iter().zip(&foreign[from..]).zip(wrong) {
                // docs/model/contamination.md (8)
                let chance = rest * wrong * (-mean).exp() + one * half + both * whole;
                whole_row += chance;
                sum += cell.sites * chance.max(MIN_PROBABILITY_FOR_LOG).ln();
            }
            sum -= all * whole_row.max(MIN_PROBABILITY_FOR_LOG).ln();
            from += cells.len();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HET: f64 = 7e-4;

    /// Contamination of a simulated sample of four million sites with 20 molecules each: `share` is the
    /// contamination, `diverse` the relative diversity of the contaminant, `changes` the density of somatic changes
    /// and their share of the reads.
    fn estimate(share: f64, diverse: f64, changes: (f64, f64), seed: u64) -> Estimate {
        let tally = made(share, 0.0, diverse, changes, seed);
        estimate_contamination(&tally, &known(0.0, false)).expect("enough sites").share
    }

    fn known(other: f64, both: bool) -> ContaminationInput {
        ContaminationInput {
            sample: 1,
            modal_depths: [20.0, 20.0],
            duplicate_share: 0.02,
            heterozygosity: HET,
            allele_loss_share: 0.0,
            other_contamination: other,
            use_shared_sites: both,
        }
    }

    /// Tally of a simulated sample. `other` is the share of the other sample that is the same contaminant's.
    fn made(share: f64, other: f64, diverse: f64, (changes, of): (f64, f64), seed: u64) -> SiteTally {
        let mut seed = seed;
        let mut random = move || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((seed ^ (seed >> 31)) >> 8) as f64 / (1u64 << 56) as f64
        };
        let logs = log_factorials(NUM_DEPTH_CLASSES);
        let poisson = |mean: f64, k: usize| (k as f64 * mean.max(1e-300).ln() - mean - logs[k]).exp();
        let binomial = |m: usize, n: usize, p: f64| {
            (logs[n] - logs[m] - logs[n - m] + m as f64 * p.ln() + (n - m) as f64 * (1.0 - p).ln()).exp()
        };
        let mut tally = SiteTally::default();
        tally.sampled_share = 0.01;
        for (class, n, beside) in (0..6)
            .flat_map(|class| (8..40).map(move |n| (class, n)))
            .flat_map(|(class, n)| (0..2).map(move |beside| (class, n, beside)))
        {
            // A class has half of the bases; two of the six classes are transitions.
            let sites = 4e6 * poisson(20.0, n);
            let (inherited, own) = if class == 2 || class == 4 { (1.0 / 3.0, 0.25) } else { (1.0 / 12.0, 0.125) };
            let foreign = CONTAMINATION_PARAMS.foreign_sites_per_het_site.map(|of| of * HET * diverse * inherited);
            const ERROR: f64 = 1.5e-4;
            let seen = |share: f64| poisson(20.0 * (share + ERROR), beside);
            for m in 0..=n / 2 {
                let mean = n as f64 * ERROR;
                let alike = if m == 2 { CONTAMINATION_PARAMS.repeated_error_rate * 0.02 * mean } else { 0.0 };
                let odd = if m >= 2 { CONTAMINATION_PARAMS.unexplained_site_rate } else { 0.0 };
                let chance = 0.5 * (poisson(mean, m) + alike + odd) * seen(0.0)
                    + foreign[0] * minor_count_probabilities(n, share / 2.0 + ERROR, &logs)[m] * seen(other / 2.0)
                    + foreign[1] * minor_count_probabilities(n, share + ERROR, &logs)[m] * seen(other)
                    + own * changes * binomial(m, n, of) * seen(0.0)
                    // Inherited alleles that few molecules of the other sample show.
                    + inherited * HET * binomial(m, n, 0.5) * binomial(beside, 20, 0.5);
                let expected = sites * chance;
                let normal = (-2.0 * random().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * random()).cos();
                let seen = match expected {
                    0.0..3.0 => expected.floor() + f64::from(u8::from(random() < expected.fract())),
                    _ => (expected + expected.sqrt() * normal).round(),
                };
                let at = (class * NUM_DEPTH_CLASSES + n) * NUM_MINOR_ALLELE_COUNT_CLASSES
                    + m.min(NUM_MINOR_ALLELE_COUNT_CLASSES - 1);
                let table = if beside == 0 { &mut tally.minor_counts[1] } else { &mut tally.shared_minor_counts[1] };
                table[at] += seen.max(0.0) as u64;
            }
        }
        tally
    }

    /// The contaminant's alleles in the other sample hide some of those in this one, unless shared sites are used.
    #[test]
    fn shared_contamination_is_estimated_from_shared_sites() {
        for (i, (share, other)) in [(0.08, 0.08), (0.05, 0.1), (0.02, 0.05), (0.0, 0.06)].into_iter().enumerate() {
            let (mut off, mut wide) = ([0.0; 2], [0.0; 2]);
            for seed in 0..4 {
                let tally = made(share, other, 1.0, (2e-5, 0.35), 17 + 7 * i as u64 + seed);
                for both in [false, true] {
                    let found = estimate_contamination(&tally, &known(other, both)).expect("enough sites").share;
                    off[usize::from(both)] += (found.value - share) / 4.0;
                    wide[usize::from(both)] += (found.high - found.low) / 4.0;
                    let what = format!("{share} beside {other}, {both}: {found:?}");
                    assert!(found.low - 0.004 <= share && share <= found.high + 0.004, "{what}");
                }
            }
            assert!(off[1].abs() < 0.005, "{share} beside {other}: off by {off:?}");
            assert!(share == 0.0 || wide[1] < 0.95 * wide[0], "{share} beside {other}: {wide:?}");
        }
    }

    /// The contaminant of the other sample may be a different person, who has no foreign sites in common.
    #[test]
    fn both_samples_may_have_different_contaminants() {
        let (alone, beside) = (made(0.05, 0.0, 1.0, (2e-5, 0.35), 5), made(0.0, 0.08, 1.0, (0.0, 0.35), 6));
        let mut tally = alone;
        tally.shared_minor_counts[1]
            .iter_mut()
            .zip(&beside.shared_minor_counts[1])
            .for_each(|(sites, others)| *sites += others);
        let found = estimate_contamination(&tally, &known(0.08, true)).expect("enough sites").share;
        assert!((found.value - 0.05).abs() < 0.012, "{found:?}");
    }

    #[test]
    fn contamination_is_estimated_for_any_diversity_and_somatic_changes() {
        let (mut held, mut all, mut off) = (0, 0, 0.0);
        for (i, share) in [0.0, 0.01, 0.03, 0.05, 0.1].into_iter().enumerate() {
            for (j, (diverse, changes)) in
                [(1.0, (0.0, 0.3)), (1.08, (5e-6, 0.35)), (0.93, (2e-5, 0.3))].into_iter().enumerate()
            {
                let found = estimate(share, diverse, changes, (7 * i + j) as u64);
                let what = format!("{share} {diverse} {changes:?}: {found:?}");
                assert!((found.value - share).abs() < 0.006 + 0.12 * share, "{what}");
                held += u32::from(found.low <= share + 0.0005 && share - 0.0005 <= found.high);
                (all, off) = (all + 1, off + found.value - share);
            }
        }
        assert!(held + 2 >= all, "{held} of {all}");
        assert!((off / f64::from(all)).abs() < 0.003, "{off} in all");
    }

    #[test]
    fn somatic_changes_are_not_taken_for_contamination() {
        for (changes, of) in [(1e-4, 0.35), (3e-4, 0.25), (2e-4, 0.45)] {
            let found = estimate(0.0, 1.0, (changes, of), 7);
            assert!(found.value < 0.02 && found.low == 0.0, "{changes} {of}: {found:?}");
        }
    }
}
