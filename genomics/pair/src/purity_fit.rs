//! Fit of purity, depth and copy states to segments and somatic changes. Log-likelihoods are natural logarithms.
//!
//! Let `p` be the purity, `d` the depth ratio where the tumour has two copies, `n` the copies of a segment in tumour
//! cells, and `b` those of its minor allele. The segment has the depth ratio `d (p n + 2 (1 - p)) / 2`, and its minor
//! allele has the share `(p b + 1 - p) / (p n + 2 (1 - p))` of the reads (ASCAT, Van Loo 2010; ABSOLUTE, Carter 2012).
//! Each segment is in one of several copy states, each with a prior. There are three kinds of genomes with different
//! priors: a genome that changed step by step, a doubled genome, and a genome with one large subclone. A doubled genome
//! and a subclone of half of the cells can look alike; then the priors decide.

use std::ops::Range;

use crate::beta_binomial::NUM_MINOR_SHARE_STEPS;
use crate::confidence_interval::MIN_DIVISOR;
use crate::copy_states::{
    CopyState, list_clonal_copy_states, list_copy_states_by_subclone_fraction, list_subclonal_copy_states,
};
use crate::purity_params::PURITY_PARAMS;
use crate::segments::{MinorShareLogLikelihoods, Segment};
use crate::somatic_changes::SomaticChangeModel;

/// Distance by which interpolation stays away from the end of the table, in steps of the table. Chosen: larger than
/// rounding errors and too small to affect the result.
const INTERPOLATION_MARGIN: f64 = 1e-6;

/// A combination of purity and depth ratio, with the quantities that follow from it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PurityFit {
    /// Share of the sample's cells that are tumour cells (0 to 1).
    pub purity: f64,
    /// Depth ratio of tumour to normal in segments where the tumour has two copies.
    pub diploid_ratio: f64,
    /// Relative standard deviation of the depths of segments beyond counting noise.
    depth_error: f64,
    /// Natural logarithm of the posterior: likelihood times priors, not normalised.
    pub log_posterior: f64,
    /// Mean number of copies of the genome in tumour cells.
    pub ploidy: f64,
    /// Share of the segmented genome with LOH (0 to 1).
    pub loh_fraction: f64,
    /// Share of the segmented genome with one copy of each parental allele (0 to 1).
    pub balanced_diploid_fraction: f64,
    /// Share of the segmented genome that no copy state explains (0 to 1).
    pub unexplained_fraction: f64,
    /// Share of the apparent somatic changes that this fit explains as foreign alleles (0 to 1).
    pub foreign_fraction: f64,
}

/// Segments and somatic changes of a tumour, and the copy states that may explain them.
pub(crate) struct PurityModel<'a> {
    segments: &'a [Segment],
    changes: &'a SomaticChangeModel,
    /// Mean depth ratio of all segments, weighted by length.
    mean_ratio: f64,
    total_weight: f64,
    /// All copy states: the first `common_states` are possible in every genome, the others only in a genome with a
    /// large subclone of a certain cell fraction.
    states: Vec<CopyState>,
    common_states: Range<usize>,
    subclone_states: Vec<Range<usize>>,
    /// The different total copy numbers of the states, ascending. States with equal totals have equal depths.
    total_copies: Vec<f64>,
    /// For each state, the index of its total copy number in `total_copies`.
    total_of_state: Vec<usize>,
    /// For each segment, its log-likelihood in no known state.
    unexplained_logs: Vec<f64>,
}

/// Sum of the probabilities of several copy states, in a form that does not underflow: index of the likeliest state,
/// its log-probability, and the sum divided by its probability.
#[derive(Clone, Copy)]
struct StateSum {
    best_state: usize,
    max_log: f64,
    relative_sum: f64,
}

impl StateSum {
    /// Sums over states; `logs` are pairs (index of the state, natural logarithm of its probability).
    fn from_logs(logs: impl Iterator<Item = (usize, f64)> + Clone) -> StateSum {
        let none = (0, f64::NEG_INFINITY);
        let (best, most) = logs.clone().fold(none, |a, b| if b.1 > a.1 { b } else { a });
        let near = logs.map(|(_, log)| log - most).filter(|less| *less > -PURITY_PARAMS.negligible_log_difference);
        StateSum { best_state: best, max_log: most, relative_sum: near.map(f64::exp).sum() }
    }

    fn add_log(self, log: f64) -> StateSum {
        StateSum { max_log: self.max_log + log, ..self }
    }

    /// Adds two sums over different sets of copy states.
    fn combine(self, other: StateSum) -> StateSum {
        let (more, less) = if self.max_log >= other.max_log { (self, other) } else { (other, self) };
        StateSum { relative_sum: more.relative_sum + less.relative_sum * (less.max_log - more.max_log).exp(), ..more }
    }

    /// Natural logarithm of the sum of the probabilities.
    fn log_sum(self) -> f64 {
        self.max_log + self.relative_sum.ln()
    }
}

impl<'a> PurityModel<'a> {
    /// Prepares the model for the given segments and somatic changes.
    pub fn from_segments_and_changes(segments: &'a [Segment], changes: &'a SomaticChangeModel) -> PurityModel<'a> {
        let weight: f64 = segments.iter().map(|segment| segment.weight).sum();
        let mean =
            segments.iter().map(|segment| segment.weight * segment.depth_ratio).sum::<f64>() / weight.max(MIN_DIVISOR);
        let mut states: Vec<CopyState> =
            list_clonal_copy_states().into_iter().chain(list_subclonal_copy_states()).collect();
        let common = 0..states.len();
        let subclones = list_copy_states_by_subclone_fraction().into_iter().map(|own| {
            let from = states.len();
            states.extend(own);
            from..states.len()
        });
        let subclones = subclones.collect();
        let mut total_copies: Vec<f64> = states.iter().map(CopyState::total_copies).collect();
        total_copies.sort_by(f64::total_cmp);
        total_copies.dedup();
        let total_of_state =
            states.iter().map(|state| total_copies.partition_point(|total| *total < state.total_copies())).collect();
        PurityModel {
            segments,
            changes,
            mean_ratio: mean,
            total_weight: weight,
            states,
            common_states: common,
            subclone_states: subclones,
            total_copies,
            total_of_state,
            unexplained_logs: segments.iter().map(|segment| unexplained_log_likelihood(segment, mean)).collect(),
        }
    }

    /// Chooses the likeliest kind of genome (undoubled, doubled, or with a subclone), and the best copy state of each
    /// segment with the probability that the segment is in no known state. Returns the log-likelihood of all segments
    /// with these.
    fn choose_states(&self, purity: f64, diploid_ratio: f64, depth_error: f64) -> (f64, Vec<(&CopyState, f64)>) {
        // docs/model/purity_ploidy.md (1), (2)
        let minor_share = |state: &CopyState| {
            let [a, b] = state.copies.map(|copies| purity * copies + 1.0 - purity);
            let minor = a.min(b) / (a + b).max(MIN_DIVISOR);
            let at =
                (minor * 2.0 * NUM_MINOR_SHARE_STEPS as f64).min(NUM_MINOR_SHARE_STEPS as f64 - INTERPOLATION_MARGIN);
            (at as usize, at.fract())
        };
        let minor_shares: Vec<(usize, f64)> = self.states.iter().map(minor_share).collect();
        let ratio = |total: &f64| diploid_ratio * (purity * total + 2.0 * (1.0 - purity)) / 2.0;
        let ratios: Vec<f64> = self.total_copies.iter().map(ratio).collect();
        // Log-probability of each kind of genome (undoubled, doubled, each subclone size). For each segment and kind,
        // the best state and the probability of no known state.
        // docs/model/purity_ploidy.md (10)
        let subclone = (PURITY_PARAMS.large_subclone_prior / self.subclone_states.len() as f64).ln();
        let mut sums = vec![(1.0 - PURITY_PARAMS.genome_doubling_prior).ln(), PURITY_PARAMS.genome_doubling_prior.ln()];
        sums.resize(2 + self.subclone_states.len(), subclone);
        let mut chosen: Vec<(usize, f64)> = Vec::with_capacity(self.segments.len() * sums.len());
        let mut logs: Vec<f64> = vec![0.0; self.states.len()];
        let mut depth_logs: Vec<f64> = vec![0.0; ratios.len()];
        for (segment, &odd) in self.segments.iter().zip(&self.unexplained_logs) {
            for (log, ratio) in depth_logs.iter_mut().zip(&ratios) {
                *log = self.depth_log_likelihood(segment, *ratio, depth_error);
            }
            for ((log, &(at, part)), &total) in logs.iter_mut().zip(&minor_shares).zip(&self.total_of_state) {
                *log = segment.minor_share_log_likelihoods[at] * (1.0 - part)
                    + segment.minor_share_log_likelihoods[at + 1] * part
                    + depth_logs[total];
            }
            let of = |range: &Range<usize>, doubled: usize| {
                StateSum::from_logs(range.clone().map(|i| (i, self.states[i].log_priors[doubled] + logs[i])))
            };
            let plain = of(&self.common_states, 0);
            let rest = plain.add_log((1.0 - PURITY_PARAMS.subclone_segment_prior).ln());
            let subclones = self
                .subclone_states
                .iter()
                .map(|range| of(range, 0).add_log(PURITY_PARAMS.subclone_segment_prior.ln()).combine(rest));
            for (sum, likely) in sums.iter_mut().zip([plain, of(&self.common_states, 1)].into_iter().chain(subclones)) {
                let all = likely
                    .combine(StateSum { best_state: likely.best_state, max_log: odd, relative_sum: 1.0 })
                    .log_sum();
                *sum += all;
                chosen.push((likely.best_state, (odd - all).exp()));
            }
        }
        let kinds = sums.iter().copied().enumerate();
        let (kind, log) = kinds.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default();
        let chosen = chosen.chunks(sums.len()).map(|own| own[kind]).map(|(i, odd)| (&self.states[i], odd));
        (log, chosen.collect())
    }

    /// Copies of the two alleles in tumour cells for each segment, the larger number first. `None` for a segment
    /// whose probability of being in none of the known states is at least one half.
    pub(crate) fn allele_copies_by_segment(&self, fit: &PurityFit) -> Vec<Option<[f64; 2]>> {
        let (_, chosen) = self.choose_states(fit.purity, fit.diploid_ratio, fit.depth_error);
        let copies = |(state, odd): (&CopyState, f64)| {
            let [a, b] = state.copies;
            (odd < 0.5).then_some([a.max(b), a.min(b)])
        };
        chosen.into_iter().map(copies).collect()
    }

    /// Computes the fit for a purity, a depth ratio of two copies, and a relative depth error. The likelihood of the
    /// somatic changes is included if `with_changes`.
    pub(crate) fn fit_at_purity_and_depth_ratio(
        &self,
        purity: f64,
        diploid_ratio: f64,
        depth_error: f64,
        with_changes: bool,
    ) -> PurityFit {
        let (log, chosen) = self.choose_states(purity, diploid_ratio, depth_error);
        let mut fit = PurityFit { purity, diploid_ratio, depth_error, log_posterior: log, ..PurityFit::default() };
        let share = |weight: f64| weight / self.total_weight.max(MIN_DIVISOR);
        for (segment, &(state, odd)) in self.segments.iter().zip(&chosen) {
            let weight = share(segment.weight);
            let [a, b] = state.copies;
            // The depth gives the copies even in no known state.
            let copies = (2.0 * segment.depth_ratio / diploid_ratio - 2.0 * (1.0 - purity)) / purity;
            // docs/model/purity_ploidy.md (11)
            fit.ploidy += weight * ((1.0 - odd) * (a + b) + odd * copies.max(0.0));
            fit.loh_fraction += weight * (1.0 - odd) * state.loh_fraction;
            fit.unexplained_fraction += weight * odd;
            fit.balanced_diploid_fraction += weight * (1.0 - odd) * f64::from(u8::from(state.copies == [1.0, 1.0]));
        }
        if with_changes {
            let own: Vec<&CopyState> = chosen.iter().map(|(state, _)| *state).collect();
            let weighted_states = own.iter().zip(self.segments).map(|(state, segment)| (*state, share(segment.weight)));
            let (log, foreign) =
                self.changes.log_likelihood_and_foreign_share(purity, &own, &weighted_states.collect::<Vec<_>>());
            fit.log_posterior += log;
            fit.foreign_fraction = foreign;
        }
        fit
    }

    /// Log-likelihood of the depth ratio of a segment whose expected depth ratio is `ratio`.
    fn depth_log_likelihood(&self, segment: &Segment, ratio: f64, depth_error: f64) -> f64 {
        // Half of the variance is from the tumour's reads, which are proportional to the copies.
        // docs/model/purity_ploidy.md (8)
        let variance =
            segment.ratio_variance * (self.mean_ratio * ratio + ratio * ratio) / 2.0 + (depth_error * ratio).powi(2);
        let variance = variance.max((PURITY_PARAMS.min_depth_error * self.mean_ratio).powi(2));
        let away = segment.depth_ratio - ratio;
        -away * away / (2.0 * variance) - (2.0 * std::f64::consts::PI * variance).ln() / 2.0
    }

    /// Finds the best fits: the local maxima of the posterior, best first.
    pub(crate) fn find_best_fits(&self) -> Vec<PurityFit> {
        let mut coarse: Vec<PurityFit> = Vec::new();
        let steps = PURITY_PARAMS.num_coarse_purities;
        for i in 0..=steps {
            let purity = PURITY_PARAMS.purity_range[0]
                + (PURITY_PARAMS.purity_range[1] - PURITY_PARAMS.purity_range[0]) * f64::from(i) / f64::from(steps);
            let [most, least] = PURITY_PARAMS.ploidy_range.map(|ploidy| self.diploid_ratio_at(purity, ploidy));
            let parts = ((most / least).ln() / PURITY_PARAMS.coarse_log_ratio_step).ceil().max(1.0) as u32;
            let step = (most / least).ln() / f64::from(parts);
            coarse.extend((0..=parts).map(|j| {
                self.fit_at_purity_and_depth_ratio(
                    purity,
                    least * (step * f64::from(j)).exp(),
                    PURITY_PARAMS.coarse_depth_error,
                    false,
                )
            }));
        }
        coarse.sort_by(|a, b| b.log_posterior.total_cmp(&a.log_posterior));
        let mut chosen: Vec<PurityFit> = Vec::new();
        for fit in coarse {
            let like = |other: &PurityFit| {
                (fit.purity - other.purity).abs() < PURITY_PARAMS.candidate_separation[0]
                    && (fit.diploid_ratio / other.diploid_ratio).ln().abs() < PURITY_PARAMS.candidate_separation[1]
            };
            if chosen.len() < PURITY_PARAMS.max_candidates && !chosen.iter().any(like) {
                chosen.push(fit);
            }
        }
        let mut found: Vec<PurityFit> = chosen.into_iter().map(|fit| self.hill_climb(fit)).collect();
        found.sort_by(|a, b| b.log_posterior.total_cmp(&a.log_posterior));
        let mut kinds: Vec<PurityFit> = Vec::new();
        for fit in found {
            let like = |other: &PurityFit| {
                (fit.purity - other.purity).abs() < PURITY_PARAMS.fit_separation[0]
                    && (fit.ploidy - other.ploidy).abs() < PURITY_PARAMS.fit_separation[1]
            };
            if !kinds.iter().any(like) {
                kinds.push(fit);
            }
        }
        kinds
    }

    /// Depth ratio of tumour to normal where the tumour has two copies, for a given purity and ploidy.
    fn diploid_ratio_at(&self, purity: f64, ploidy: f64) -> f64 {
        2.0 * self.mean_ratio / (purity * ploidy + 2.0 * (1.0 - purity))
    }

    /// Improves a fit step by step until it is at a local maximum of the posterior.
    fn hill_climb(&self, from: PurityFit) -> PurityFit {
        let mut best = PurityFit { log_posterior: f64::NEG_INFINITY, ..from };
        for off in PURITY_PARAMS.depth_error_grid {
            let fit = self.fit_at_purity_and_depth_ratio(from.purity, from.diploid_ratio, off, true);
            if fit.log_posterior > best.log_posterior {
                best = fit;
            }
        }
        let [purity_step, ratio_step] = PURITY_PARAMS.climb_steps;
        for halved in 0..PURITY_PARAMS.num_climb_halvings {
            let by = 0.5f64.powi(halved);
            let mut again = PURITY_PARAMS.max_climb_rounds;
            while again > 0 {
                again -= 1;
                let before = best.log_posterior;
                for (purity, depth) in [
                    (purity_step, 0.0),
                    (-purity_step, 0.0),
                    (0.0, ratio_step),
                    (0.0, -ratio_step),
                    (purity_step, -ratio_step),
                    (-purity_step, ratio_step),
                    (purity_step, ratio_step),
                    (-purity_step, -ratio_step),
                ] {
                    let purity =
                        (best.purity + purity * by).clamp(PURITY_PARAMS.purity_range[0], PURITY_PARAMS.purity_range[1]);
                    let fit = self.fit_at_purity_and_depth_ratio(
                        purity,
                        best.diploid_ratio * (1.0 + depth * by),
                        best.depth_error,
                        true,
                    );
                    if fit.log_posterior > best.log_posterior + PURITY_PARAMS.min_climb_gain {
                        best = fit;
                    }
                }
                if best.log_posterior <= before {
                    break;
                }
            }
            for off in PURITY_PARAMS.depth_error_grid {
                let fit = self.fit_at_purity_and_depth_ratio(best.purity, best.diploid_ratio, off, true);
                if fit.log_posterior > best.log_posterior {
                    best = fit;
                }
            }
        }
        best
    }

    /// Computes the profile of the posterior over the purity: the best fit at each purity, starting from `from` in both
    /// directions, until the log-posterior has dropped by `max_log_drop`.
    pub(crate) fn best_fits_by_purity(&self, from: PurityFit, max_log_drop: f64) -> Vec<PurityFit> {
        let mut all = vec![from];
        for side in [-1.0, 1.0] {
            let mut last = from;
            loop {
                let purity = last.purity + side * PURITY_PARAMS.purity_step;
                if !(PURITY_PARAMS.purity_range[0]..=PURITY_PARAMS.purity_range[1]).contains(&purity) {
                    break;
                }
                let mut best = PurityFit { log_posterior: f64::NEG_INFINITY, ..last };
                // Start from the last depth ratio, and from the one that keeps the mean depth.
                let whole = self.diploid_ratio_at(purity, last.ploidy);
                for start in [last.diploid_ratio, whole] {
                    for by in PURITY_PARAMS.profile_ratio_steps {
                        let fit =
                            self.fit_at_purity_and_depth_ratio(purity, start * (1.0 + by), from.depth_error, true);
                        if fit.log_posterior > best.log_posterior {
                            best = fit;
                        }
                    }
                }
                all.push(best);
                last = best;
                if best.log_posterior < from.log_posterior - max_log_drop {
                    break;
                }
            }
        }
        all
    }
}

/// Log-likelihood of a segment in no known state, in which any depth ratio and any allelic balance are equally likely.
/// `mean_ratio` is the mean depth ratio of all segments.
fn unexplained_log_likelihood(segment: &Segment, mean_ratio: f64) -> f64 {
    // docs/model/purity_ploidy.md (9)
    PURITY_PARAMS.unexplained_segment_prior.ln() + log_mean_exp(&segment.minor_share_log_likelihoods)
        - (PURITY_PARAMS.unexplained_ratio_range * mean_ratio).max(MIN_DIVISOR).ln()
}

// Logarithm of the mean of exponentials, without underflow.
fn log_mean_exp(balance: &MinorShareLogLikelihoods) -> f64 {
    let most = balance.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (balance.iter().map(|log| (log - most).exp()).sum::<f64>() / balance.len() as f64).ln() + most
}
