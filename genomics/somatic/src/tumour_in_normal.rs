//! Estimates the tumour in normal (TiN): the share of tumour cells in the normal sample, from alleles that the tumour
//! clearly has ([`crate::tumour_alleles`]).
//!
//! The counts in the tumour give the allele fractions there: a mixture of fractions, of which only alleles above a
//! minimum count are observed. In the normal an allele has this fraction times `ratio`, plus the error rate of the
//! normal. It is observed only up to a known bound, because an allele above it may be inherited. Alleles that are
//! equally frequent in both samples for other reasons, such as repeats, are a second mixture component if it improves
//! the fit. The maximum-likelihood ratio times the tumour's purity is the tumour in normal.

use std::collections::HashMap;

use genuma_pair::confidence_interval::{Estimate, MIN_PROBABILITY_FOR_LOG, log_factorials};
use genuma_pair::purity::PurityPloidyEstimate;

use crate::tumour_alleles::{
    MIN_ROOT_COUNT, TumourAlleleCounts, TumourAlleles, max_normal_count_of_tumour_allele, min_tumour_allele_count,
};

/// Reason why the tumour in normal is not estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotEstimatedReason {
    /// Most single-copy sequence of the normal has fewer reads than alleles are examined at.
    ShallowNormal,
    /// Too few alleles of the tumour are clearly missing in the normal.
    TooFewAlleles,
    /// The tumour's purity is unknown.
    UnknownPurity,
    /// The normal has so many tumour cells that alleles of the tumour cannot be distinguished from inherited alleles.
    TooMuchTumour,
}

impl NotEstimatedReason {
    /// Text of the reason, for reports.
    pub fn reason_text(self) -> &'static str {
        match self {
            NotEstimatedReason::ShallowNormal => "the normal is too shallow",
            NotEstimatedReason::TooFewAlleles => "too few changes that the normal clearly lacks",
            NotEstimatedReason::UnknownPurity => "the tumour's purity is unknown",
            NotEstimatedReason::TooMuchTumour => {
                "the normal has so many tumour cells that the tumour's changes look inherited"
            }
        }
    }
}

/// Parameters of the model of tumour in normal. The formulas are those of
/// `docs/model/tumor_in_normal.md`.
#[derive(Debug)]
pub(crate) struct TumourInNormalModelParams {
    /// Minimum number of alleles, each observed at two roots, for an estimate. Unit: alleles. Source: empirical; not
    /// fitted. If higher: more tumours without an estimate.
    pub(crate) min_alleles: u64,
    /// Number of roots that count as one observation: the two roots of an allele are mostly in the same reads (formula
    /// 4). Unit: roots. Source: definition. If higher: wider interval.
    pub(crate) roots_per_observation: f64,
    /// Overdispersion below which each occurrence counts as one molecule (formula 5). Unit: ratio of observed to
    /// binomial standard deviation. Source: empirical; not fitted. If higher: counts are divided less often.
    pub(crate) max_single_molecule_overdispersion: f64,
    /// Maximum depth of a root in the normal at which the root is taken to occur once in the genome. Unit: multiples of
    /// the modal depth of the normal. Source: empirical; not fitted. If higher: more repeats are used.
    pub(crate) max_single_copy_depth_ratio: f64,
    /// Minimum and maximum depth of the roots at which the balance of inherited alleles is measured (formula 5). Unit:
    /// multiples of the modal depth of the normal. Source: chosen (in repeats the alleles are not balanced). If higher:
    /// first value: fewer sites; second value: more repeats.
    pub(crate) single_copy_range: [f64; 2],
    /// Number of steps of the grid on which the likelihood of the ratio is computed, and the largest ratio on it: half
    /// of the ratio of an inherited allele, beyond which no counts are collected (formula 2). Unit: steps; ratio.
    /// Source: empirical; not fitted. If higher: finer grid.
    pub(crate) ratio_grid: (usize, f64),
    /// Exponent of the spacing of the ratios on the grid: above 1 they are denser near 0 (formula 2). Unit: none.
    /// Source: empirical; not fitted. If higher: denser near 0.
    pub(crate) ratio_grid_exponent: f64,
    /// Maximum ratio that is reported; above it the normal has too many tumour cells. Unit: ratio. Source: empirical;
    /// not fitted. If higher: higher tumour in normal is reported.
    pub(crate) max_ratio: f64,
    /// Number of allele fractions of the tumour on the grid (formula 1). Unit: fractions. Source: empirical; not
    /// fitted. If higher: finer and slower.
    pub(crate) num_fractions: usize,
    /// Number of expectation–maximisation rounds of the weights of the fractions (formula 1). Unit: rounds. Source:
    /// empirical; not fitted. If higher: slower.
    pub(crate) num_fraction_rounds: usize,
    /// Largest allele fraction of the tumour (formula 1). Unit: share of reads. Source: chosen (a read may be wrong).
    /// If higher: other alleles in a tumour with all reads weigh more.
    pub(crate) max_fraction: f64,
    /// Minimum probability to observe an allele by which its likelihood is divided (formula 1). Unit: probability.
    /// Source: chosen (keeps the quotient finite). If higher: rarely seen fractions become less likely.
    pub(crate) min_detection_probability: f64,
    /// Number of expectation–maximisation rounds of the second component at each ratio (formula 3). Unit: rounds.
    /// Source: empirical; not fitted. If higher: slower.
    pub(crate) num_component_rounds: usize,
    /// Initial value of the share of the second component (formula 3). Unit: share of alleles. Source: empirical; not
    /// fitted. If higher: no visible effect.
    pub(crate) first_component_share: f64,
    /// Smallest and largest share of the second component (formula 3). Unit: share of alleles. Source: chosen (keeps
    /// the likelihood finite). If higher: a larger share may be the second component.
    pub(crate) component_share_limits: [f64; 2],
    /// Minimum gain of the log-likelihood at which the second component is used (formula 3). Unit: natural-log units.
    /// Source: empirical; not fitted. If higher: the second component is used less often.
    pub(crate) min_component_log_gain: f64,
    /// Largest expected allele fraction in the normal (formula 2). Unit: share of reads. Source: chosen (keeps the
    /// likelihood finite). If higher: no visible effect.
    pub(crate) max_normal_fraction: f64,
    /// Upper bound of the observed fraction of an allele in the tumour, which is the expected fraction in the normal if
    /// the allele is equally frequent in both samples (formula 3). Unit: share of
    /// reads. Source: chosen (keeps the likelihood finite). If higher: no visible effect.
    pub(crate) max_observed_fraction: f64,
    /// Minimum error rate of the normal (formula 2). Unit: probability. Source: chosen (keeps the likelihood finite).
    /// If higher: single reads in the normal weigh less.
    pub(crate) min_error_rate: f64,
    /// Number of rounds that estimate the overdispersion (formula 5). Unit: rounds. Source: empirical; not fitted. If
    /// higher: slower.
    pub(crate) num_overdispersion_rounds: usize,
    /// Minimum number of roots at which the ratio of the sums is computed (formula 7). Unit: roots. Source: chosen
    /// (four alleles). If higher: fewer small samples get a ratio.
    pub(crate) min_few_roots: f64,
    /// Maximum share of inherited alleles among all alleles at which the ratio of the sums is computed (formula 7).
    /// Unit: share of alleles. Source: chosen. If higher: more samples get a ratio, with more bias.
    pub(crate) max_inherited_share_of_few: f64,
    /// Half width of the confidence interval of the ratio of the sums (formula 7). Unit: standard deviations. Source:
    /// definition (95 %). If higher: wider interval.
    pub(crate) few_alleles_deviations: f64,
    /// Maximum share of the observed alleles that are inherited alleles with few reads in the normal by chance. Unit:
    /// share of alleles. Source: empirical; not fitted. If higher: more alleles of low depth are used.
    pub(crate) max_inherited_share: f64,
}

/// Values of the parameters of the model of tumour in normal.
pub(crate) const TUMOUR_IN_NORMAL_MODEL_PARAMS: TumourInNormalModelParams = TumourInNormalModelParams {
    min_alleles: 10,
    roots_per_observation: 2.0,
    max_single_molecule_overdispersion: 1.5,
    max_single_copy_depth_ratio: 2.0,
    single_copy_range: [0.5, 1.5],
    ratio_grid: (300, 0.5),
    ratio_grid_exponent: 1.5,
    max_ratio: 0.4,
    num_fractions: 48,
    num_fraction_rounds: 60,
    max_fraction: 0.995,
    min_detection_probability: 1e-6,
    num_component_rounds: 8,
    first_component_share: 0.01,
    component_share_limits: [1e-5, 0.9],
    min_component_log_gain: 4.0,
    max_normal_fraction: 0.99,
    max_observed_fraction: 0.9,
    min_error_rate: 1e-6,
    num_overdispersion_rounds: 12,
    min_few_roots: 8.0,
    max_inherited_share_of_few: 0.1,
    few_alleles_deviations: 2.0,
    max_inherited_share: 0.002,
};

/// Roots with equal counts and an equal error rate.
struct AlleleCounts {
    /// Number of reads of the normal with the allele, and of all its reads at the root, in units of independent
    /// molecules.
    normal: [f64; 2],
    /// Maximum number of reads of the normal with the allele that is collected, and number of all its reads at the
    /// root, as whole numbers of molecules.
    bound: [usize; 2],
    /// Expected allele fraction in the tumour.
    fraction: f64,
    /// Observed allele fraction in the tumour.
    observed_fraction: f64,
    /// Error rate of the normal for the substitution of the allele.
    error_rate: f64,
    /// Number of roots with these counts.
    num_roots: f64,
}

/// Estimates the tumour in normal: the ratio of the allele fractions, times the purity of the tumour and corrected for
/// its ploidy. `modal_depth` is the modal depth of the normal's k-mers. If there is no estimate, the error is the
/// reason.
pub fn estimate_tumour_in_normal(
    alleles: &TumourAlleles,
    modal_depth: f64,
    purity_estimate: Option<&PurityPloidyEstimate>,
) -> Result<Estimate, NotEstimatedReason> {
    let ratio = estimate_fraction_ratio(alleles, modal_depth)?;
    let Some(purity) = purity_estimate.and_then(|purity_estimate| purity_estimate.purity) else {
        return Err(NotEstimatedReason::UnknownPurity);
    };
    let copies = purity_estimate.and_then(|purity_estimate| purity_estimate.ploidy).map_or(2.0, |ploidy| ploidy.value);
    // A tumour cell may have more DNA than a normal cell.
    let of = |ratio: f64, purity: f64| {
        let beyond = copies - 2.0;
        let product = ratio * purity;
        // docs/model/tumor_in_normal.md (6)
        (2.0 * product / (2.0 + beyond * (purity - product))).min(1.0)
    };
    let value = of(ratio.value, purity.value);
    // The uncertainties of both factors are added in quadrature.
    let end = |of_ratio: f64, of_purity: f64| (of_ratio - value).hypot(of_purity - value);
    let low = value - end(of(ratio.low, purity.value), of(ratio.value, purity.low));
    let high = value + end(of(ratio.high, purity.value), of(ratio.value, purity.high));
    Ok(Estimate { value, low: low.max(0.0), high: high.min(1.0) })
}

/// Ratio of the allele fraction in the normal to that in the tumour, estimated before calls are made. If there are too
/// few alleles for the model, it is the ratio of the sums of counts, unless inherited alleles may be among them. `None`
/// if it cannot be estimated.
pub(crate) fn estimate_fraction_ratio_before_calls(alleles: &TumourAlleles, modal_depth: f64) -> Option<Estimate> {
    match estimate_fraction_ratio(alleles, modal_depth) {
        Ok(ratio) => return Some(ratio),
        Err(NotEstimatedReason::TooFewAlleles) => {}
        Err(_) => return None,
    }
    let params = &TUMOUR_IN_NORMAL_MODEL_PARAMS;
    let single = |(seen, _): &&(TumourAlleleCounts, u64)| {
        f64::from(seen.normal[1]) <= params.max_single_copy_depth_ratio * modal_depth
    };
    let mut roots = 0.0;
    let (mut found, mut if_alike) = (0.0, 0.0);
    for (seen, n) in alleles.alleles.iter().filter(single) {
        let fraction = f64::from(seen.tumour[0]) / f64::from(seen.tumour[1]);
        roots += *n as f64;
        found += *n as f64 * f64::from(seen.normal[0]);
        if_alike += *n as f64 * f64::from(seen.normal[1]) * fraction;
    }
    let overdispersion = estimate_overdispersion(alleles, modal_depth);
    if roots < params.min_few_roots
        || roots * params.max_inherited_share_of_few < expected_inherited_roots(alleles, modal_depth, overdispersion)
    {
        return None;
    }
    // docs/model/tumor_in_normal.md (7)
    let deviation = (params.roots_per_observation * f64::max(overdispersion * found, 1.0)).sqrt() / if_alike;
    let value = found / if_alike;
    let [low, high] = [-1.0, 1.0].map(|side| value + side * params.few_alleles_deviations * deviation);
    (high < params.ratio_grid.1).then_some(Estimate { value, low: low.max(0.0), high })
}

/// Estimates the ratio of the allele fraction in the normal to that in the tumour (formulas 2 to 5).
fn estimate_fraction_ratio(alleles: &TumourAlleles, modal_depth: f64) -> Result<Estimate, NotEstimatedReason> {
    // In a shallower normal the examined roots are mostly repeats, whose alleles are in both samples.
    if modal_depth < f64::from(MIN_ROOT_COUNT) {
        return Err(NotEstimatedReason::ShallowNormal);
    }
    let overdispersion = estimate_overdispersion(alleles, modal_depth);
    // Counts of single molecules, of which a few count twice, are used as they are; only the interval is widened.
    let molecule = if overdispersion < TUMOUR_IN_NORMAL_MODEL_PARAMS.max_single_molecule_overdispersion {
        1.0
    } else {
        overdispersion
    };
    // docs/model/tumor_in_normal.md (4)
    let says = overdispersion / molecule * TUMOUR_IN_NORMAL_MODEL_PARAMS.roots_per_observation;
    let cells = group_alleles(alleles, modal_depth, molecule);
    if cells.iter().map(|cell| cell.num_roots).sum::<f64>() < (2 * TUMOUR_IN_NORMAL_MODEL_PARAMS.min_alleles) as f64 {
        return Err(NotEstimatedReason::TooFewAlleles);
    }
    let deepest = cells.iter().map(|cell| cell.bound[1]).max().unwrap_or(0);
    let logs = log_factorials(deepest);
    let ratios = (0..=TUMOUR_IN_NORMAL_MODEL_PARAMS.ratio_grid.0).rev().map(|i| {
        TUMOUR_IN_NORMAL_MODEL_PARAMS.ratio_grid.1
            * (i as f64 / TUMOUR_IN_NORMAL_MODEL_PARAMS.ratio_grid.0 as f64)
                .powf(TUMOUR_IN_NORMAL_MODEL_PARAMS.ratio_grid_exponent)
    });
    // The second component is fitted from the highest ratio on, where its share is smallest.
    let alike_logs: Vec<f64> = cells.iter().map(|cell| cell.log_likelihood(cell.observed_fraction, &logs)).collect();
    let mut share = TUMOUR_IN_NORMAL_MODEL_PARAMS.first_component_share;
    let (mut without_component, mut with_component) = (Vec::new(), Vec::new());
    for ratio in ratios {
        let own_logs: Vec<f64> = cells
            .iter()
            .map(|c| {
                c.log_likelihood(
                    (ratio * c.fraction + c.error_rate).min(TUMOUR_IN_NORMAL_MODEL_PARAMS.max_normal_fraction),
                    &logs,
                )
            })
            .collect();
        without_component.push((
            ratio,
            cells.iter().zip(&own_logs).map(|(cell, own_log)| cell.num_roots * own_log).sum::<f64>() / says,
        ));
        with_component.push((ratio, fit_component(&cells, &own_logs, &alike_logs, &mut share) / says));
    }
    let best = |profile: &[(f64, f64)]| profile.iter().map(|at| at.1).fold(f64::NEG_INFINITY, f64::max);
    let profile =
        if best(&with_component) > best(&without_component) + TUMOUR_IN_NORMAL_MODEL_PARAMS.min_component_log_gain {
            with_component
        } else {
            without_component
        };
    let ratio = Estimate::from_likelihood_profile(&profile).ok_or(NotEstimatedReason::TooFewAlleles)?;
    if ratio.value > TUMOUR_IN_NORMAL_MODEL_PARAMS.max_ratio || ratio.high >= TUMOUR_IN_NORMAL_MODEL_PARAMS.ratio_grid.1
    {
        Err(NotEstimatedReason::TooMuchTumour)
    } else {
        Ok(ratio)
    }
}

/// Fits the share of the component of alleles that normal and tumour have alike, beginning at `share`. Returns the
/// log-likelihood of both components. `own_logs` and `alike_logs` have the log-likelihood of each cell in either.
fn fit_component(cells: &[AlleleCounts], own_logs: &[f64], alike_logs: &[f64], share: &mut f64) -> f64 {
    let [least, most_share] = TUMOUR_IN_NORMAL_MODEL_PARAMS.component_share_limits;
    let mut log = 0.0;
    for _ in 0..TUMOUR_IN_NORMAL_MODEL_PARAMS.num_component_rounds {
        let mut found = [0.0; 2];
        log = 0.0;
        for ((cell, own_log), alike_log) in cells.iter().zip(own_logs).zip(alike_logs) {
            let most = own_log.max(*alike_log);
            // docs/model/tumor_in_normal.md (3)
            let [own, alike] = [(1.0 - *share) * (own_log - most).exp(), *share * (alike_log - most).exp()];
            log += cell.num_roots * (most + (own + alike).ln());
            found[0] += cell.num_roots * alike / (own + alike);
            found[1] += cell.num_roots;
        }
        *share = (found[0] / found[1]).clamp(least, most_share);
    }
    log
}

impl AlleleCounts {
    /// Natural-log likelihood of the normal's count at an allele fraction, given that only counts up to the bound are
    /// collected. Terms that do not depend on the fraction are left out.
    fn log_likelihood(&self, fraction: f64, logs: &[f64]) -> f64 {
        let [of, all] = self.normal;
        // docs/model/tumor_in_normal.md (2)
        of * fraction.ln() + (all - of) * (1.0 - fraction).ln() - binomial_cdf(self.bound, fraction, logs).ln()
    }
}

/// Binomial probability of at most `most` successes in `all` trials. `logs` are the natural logarithms of the
/// factorials.
fn binomial_cdf([most, all]: [usize; 2], share: f64, logs: &[f64]) -> f64 {
    let (yes, no) = (share.ln(), (1.0 - share).ln());
    let log = |k: usize| logs[all] - logs[k] - logs[all - k] + k as f64 * yes + (all - k) as f64 * no;
    (0..=most.min(all)).map(|k| log(k).exp()).sum::<f64>().clamp(MIN_PROBABILITY_FOR_LOG, 1.0)
}

/// Groups the alleles by their counts. `overdispersion` is the number of occurrences that count as one molecule. Leaves
/// out alleles in repeats, and alleles above the bound.
fn group_alleles(alleles: &TumourAlleles, modal_depth: f64, overdispersion: f64) -> Vec<AlleleCounts> {
    let errors = alleles.normal_substitution_error_rates();
    let single = |seen: &TumourAlleleCounts| {
        f64::from(seen.normal[1]) <= TUMOUR_IN_NORMAL_MODEL_PARAMS.max_single_copy_depth_ratio * modal_depth
    };
    let whole = |n: u32| (f64::from(n) / overdispersion).round() as usize;
    // Inherited alleles are far more frequent, and some of them have few reads in the normal by chance: the bound
    // excludes these.
    let inherited: u64 = inherited_allele_balance(alleles, modal_depth).map(|(_, of)| of[0]).sum();
    let few = |seen: &TumourAlleleCounts| seen.normal[0] * 8 <= seen.normal[1] && single(seen);
    let all: u64 = alleles.alleles.iter().filter(|(seen, _)| few(seen)).map(|(_, roots)| roots).sum();
    let leak = TUMOUR_IN_NORMAL_MODEL_PARAMS.max_inherited_share * all as f64 / inherited.max(1) as f64;
    let deepest = alleles.alleles.iter().map(|(seen, _)| whole(seen.normal[1])).max().unwrap_or(0);
    let logs = log_factorials(deepest);
    let mut bounds: HashMap<usize, Option<usize>> = HashMap::new();
    let mut bound = |depth: usize| {
        let find = || (0..=depth / 4).take_while(|&n| binomial_cdf([n, depth], 0.5, &logs) <= leak).last();
        *bounds.entry(depth).or_insert_with(find)
    };
    let bounded = |(seen, roots): &(TumourAlleleCounts, u64)| {
        let depth = whole(seen.normal[1]);
        // The bound must include only counts that were all collected.
        let most = (f64::from(max_normal_count_of_tumour_allele(seen.normal[1], seen.tumour) + 1) / overdispersion
            - 0.5) as usize;
        let most = most.min(bound(depth)?);
        (single(seen) && whole(seen.normal[0]) <= most).then_some((*seen, *roots, [most, depth]))
    };
    let seen: Vec<(TumourAlleleCounts, u64, [usize; 2])> = alleles.alleles.iter().filter_map(bounded).collect();
    let mut by_tumour: Vec<([u32; 2], f64)> = seen.iter().map(|(s, n, _)| (s.tumour, *n as f64)).collect();
    by_tumour.sort_by_key(|(tumour, _)| *tumour);
    by_tumour.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0.0 };
        same
    });
    let fractions = expected_fractions(&by_tumour, overdispersion);
    let cell = |&(seen, roots, bound): &(TumourAlleleCounts, u64, [usize; 2])| {
        let at = by_tumour.partition_point(|(tumour, _)| *tumour < seen.tumour);
        AlleleCounts {
            normal: seen.normal.map(|n| f64::from(n) / overdispersion),
            bound,
            fraction: fractions[at],
            observed_fraction: (f64::from(seen.tumour[0]) / f64::from(seen.tumour[1]))
                .min(TUMOUR_IN_NORMAL_MODEL_PARAMS.max_observed_fraction),
            error_rate: errors[usize::from(seen.substitution)].max(TUMOUR_IN_NORMAL_MODEL_PARAMS.min_error_rate),
            num_roots: roots as f64,
        }
    };
    seen.iter().map(cell).collect()
}

/// For each distinct pair of tumour counts, the expected allele fraction in the tumour, from the maximum-likelihood
/// mixture of fractions. Takes into account that only alleles above the minimum count are observed.
fn expected_fractions(counts: &[([u32; 2], f64)], overdispersion: f64) -> Vec<f64> {
    let grid: Vec<f64> = (1..=TUMOUR_IN_NORMAL_MODEL_PARAMS.num_fractions)
        .map(|i| i as f64 / TUMOUR_IN_NORMAL_MODEL_PARAMS.num_fractions as f64)
        .collect();
    let whole = |n: u32| (f64::from(n) / overdispersion).round() as usize;
    let deepest = counts.iter().map(|(tumour, _)| whole(tumour[1])).max().unwrap_or(0);
    let logs = log_factorials(deepest + 1);
    let likely: Vec<Vec<f64>> = counts
        .iter()
        .map(|([of, all], _)| {
            let [supporting, others] = [*of, all - of].map(|n| f64::from(n) / overdispersion);
            let bound = whole(min_tumour_allele_count(*all)).max(1) - 1;
            let log = |f: f64| {
                // An allele with all reads is possible only up to errors.
                let f = f.min(TUMOUR_IN_NORMAL_MODEL_PARAMS.max_fraction);
                // Alleles with fewer reads are not observed.
                let seen = 1.0 - binomial_cdf([bound, whole(*all)], f, &logs);
                // docs/model/tumor_in_normal.md (1)
                supporting * f.ln() + others * (1.0 - f).ln()
                    - seen.max(TUMOUR_IN_NORMAL_MODEL_PARAMS.min_detection_probability).ln()
            };
            let logs: Vec<f64> = grid.iter().map(|&f| log(f)).collect();
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            logs.iter().map(|log| (log - most).exp()).collect()
        })
        .collect();
    let mut weights =
        vec![1.0 / TUMOUR_IN_NORMAL_MODEL_PARAMS.num_fractions as f64; TUMOUR_IN_NORMAL_MODEL_PARAMS.num_fractions];
    let all: f64 = counts.iter().map(|(_, roots)| roots).sum();
    for _ in 0..TUMOUR_IN_NORMAL_MODEL_PARAMS.num_fraction_rounds {
        let mut found = vec![0.0; TUMOUR_IN_NORMAL_MODEL_PARAMS.num_fractions];
        for (likely, (_, roots)) in likely.iter().zip(counts) {
            let sum: f64 = likely.iter().zip(&weights).map(|(l, w)| l * w).sum();
            let each = roots / sum.max(f64::MIN_POSITIVE) / all;
            found.iter_mut().zip(likely.iter().zip(&weights)).for_each(|(f, (l, w))| *f += each * l * w);
        }
        weights = found;
    }
    let expected = |likely: &Vec<f64>| {
        let weighed = || likely.iter().zip(&weights).map(|(l, w)| l * w);
        weighed().zip(&grid).map(|(p, f)| p * f).sum::<f64>() / weighed().sum::<f64>().max(f64::MIN_POSITIVE)
    };
    likely.iter().map(expected).collect()
}

/// For each depth, at roots where the normal has two alleles: number of roots, and sum of the squared differences
/// between the counts of the alleles. Only depths of single-copy sequence are included, because in repeats the alleles
/// are not balanced.
fn inherited_allele_balance(alleles: &TumourAlleles, modal_depth: f64) -> impl Iterator<Item = (usize, [u64; 2])> + '_ {
    let single = move |depth: usize| {
        depth as f64 >= TUMOUR_IN_NORMAL_MODEL_PARAMS.single_copy_range[0] * modal_depth
            && depth as f64 <= TUMOUR_IN_NORMAL_MODEL_PARAMS.single_copy_range[1] * modal_depth
    };
    alleles.allele_imbalance.iter().copied().enumerate().filter(move |(depth, of)| of[0] > 0 && single(*depth))
}

/// Expected number of roots at which an inherited allele looks like an allele of the tumour, because at most a quarter
/// of the normal's molecules have it by chance. `overdispersion` is the number of occurrences that count as one molecule.
fn expected_inherited_roots(alleles: &TumourAlleles, modal_depth: f64, overdispersion: f64) -> f64 {
    let logs = log_factorials(alleles.allele_imbalance.len());
    let expected = |(depth, of): (usize, [u64; 2])| {
        let molecules = (depth as f64 / overdispersion).round() as usize;
        let rare = binomial_cdf([molecules / 4, molecules], 0.5, &logs);
        // Roots at which either allele is as rare are not among those counted.
        of[0] as f64 * rare / (1.0 - 2.0 * rare)
    };
    inherited_allele_balance(alleles, modal_depth).map(expected).sum()
}

/// Estimates the overdispersion: the mean number of occurrences that come from one molecule, because both mates and
/// duplicates count; at least 1. The estimate is based on the balance of inherited alleles.
fn estimate_overdispersion(alleles: &TumourAlleles, modal_depth: f64) -> f64 {
    let logs = log_factorials(alleles.allele_imbalance.len());
    // Expected squared imbalance, given that the rarer allele has more than a quarter of the reads.
    let square = |n: usize| {
        let (mut sum, mut all) = (0.0, 0.0);
        for k in (0..=n).filter(|k| 4 * k.min(&(n - k)) > n) {
            let chance = (logs[n] - logs[k] - logs[n - k] - n as f64 * std::f64::consts::LN_2).exp();
            sum += chance * (2.0 * k as f64 - n as f64).powi(2);
            all += chance;
        }
        sum / f64::max(all, f64::MIN_POSITIVE)
    };
    let there = || inherited_allele_balance(alleles, modal_depth);
    let found: f64 = there().map(|(_, of)| of[1] as f64).sum();
    let mut overdispersion = 1.0;
    for _ in 0..TUMOUR_IN_NORMAL_MODEL_PARAMS.num_overdispersion_rounds {
        let molecules = |n: usize| (n as f64 / overdispersion).round() as usize;
        let expected: f64 = there().map(|(n, of)| of[0] as f64 * square(molecules(n))).sum();
        if expected > 0.0 {
            // docs/model/tumor_in_normal.md (5)
            overdispersion = f64::max((found / expected).sqrt(), 1.0);
        }
    }
    overdispersion
}

#[cfg(test)]
mod tests;
