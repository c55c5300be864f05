//! Model of apparent somatic changes that are not somatic: germline alleles that the normal does not show by chance,
//! and alleles of a contaminant.

use crate::confidence_interval::{Estimate, MIN_DIVISOR, MIN_SHARE_FOR_LOG};
use crate::contamination_params::CONTAMINATION_PARAMS;
use crate::purity_params::PURITY_PARAMS;

/// Properties of a sample pair from which the expected number of non-somatic alleles among apparent somatic changes is
/// computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NonSomaticModelInputs<'a> {
    /// Number of homozygous and of heterozygous sites of the normal, by depth of the normal, at which changes were
    /// searched. Empty if the changes come from a call, which has already removed germline alleles.
    pub(crate) zygosity_counts: &'a [[f64; 2]],
    /// Share of all examined sites at which the person is heterozygous.
    pub heterozygosity: f64,
    /// Contamination share of the tumour sample; `None` if unknown.
    pub contamination: Option<Estimate>,
    /// Depth of the tumour, in molecules, at a sample of heterozygous sites of the normal.
    pub tumour_depths: &'a [u32],
}

/// Probabilities that an apparent somatic change is a germline allele or an allele of a contaminant.
#[derive(Debug, Clone)]
pub(crate) struct NonSomaticModel {
    /// Probability that a change is a germline allele, by depth of the normal in molecules.
    germline_by_depth: Vec<f64>,
    /// Alleles for which a contaminant is heterozygous, and for which he is homozygous: share of the tumour's reads
    /// that have such an allele, and number of such alleles per foreign allele that is expected to be detected
    /// ([`allele_detection_probability`]).
    pub foreign_alleles: [(f64, f64); 2],
    /// The tried values of the share of changes that are alleles of a contaminant, each with the natural logarithm of
    /// its prior probability, up to a constant.
    pub foreign_share_priors: Vec<(f64, f64)>,
}

impl NonSomaticModel {
    /// Builds the model for changes with at least `PURITY_PARAMS.min_change_reads` molecules in the tumour and none in
    /// the normal. `normal_depths` is the depth of the normal at each change.
    pub fn from_normal_depths(normal_depths: &[u32], context: &NonSomaticModelInputs<'_>) -> NonSomaticModel {
        // The last entry is for this depth and more.
        let last = context.zygosity_counts.len().saturating_sub(1);
        let depths = || normal_depths.iter().map(|depth| (*depth as usize).min(last));
        let [from, to] = [depths().min(), depths().max()].map(|depth| depth.unwrap_or(0));
        let looked_at = |depth: usize| f64::from(u8::from((from..=to).contains(&depth)));
        let zygosities = context.zygosity_counts.iter().enumerate();
        let zygosities: Vec<[f64; 2]> =
            zygosities.map(|(depth, sites)| sites.map(|sites| sites * looked_at(depth))).collect();
        NonSomaticModel {
            germline_by_depth: germline_probabilities(normal_depths.len(), &zygosities),
            ..foreign_model(normal_depths.len(), &zygosities, context)
        }
    }

    /// Probability that a change is a germline allele that the normal does not show by chance, if the normal has
    /// `normal` molecules at the site.
    pub(crate) fn missed_germline_probability(&self, normal: u32) -> f64 {
        self.germline_by_depth.get(normal as usize).copied().unwrap_or(0.0)
    }
}

/// Probability that a change is a germline allele, by depth of the normal. At a depth of `n` molecules, a share of
/// 2^(1 − n) of the heterozygous sites shows only one allele; the other allele looks like a somatic change if the
/// tumour has it. The fewer somatic changes a tumour has and the larger its genome is, the larger is the share of such
/// sites.
fn germline_probabilities(changes: usize, zygosities: &[[f64; 2]]) -> Vec<f64> {
    let expected = |(n, [_, two]): (usize, &[f64; 2])| two * 0.5f64.powi(n as i32 - 1);
    let inherited: f64 = zygosities.iter().enumerate().map(expected).sum();
    let sites: f64 = zygosities.iter().map(|[one, _]| one).sum();
    let number = changes as f64;
    let own = (number - inherited).max(PURITY_PARAMS.min_somatic_share * number) / sites.max(1.0);
    let by_depth = zygosities.iter().enumerate();
    by_depth
        .map(|own_and| (expected(own_and), own * own_and.1[0]))
        // docs/model/purity_ploidy.md (16)
        .map(|(a, b)| a / (a + b).max(MIN_DIVISOR))
        .collect()
}

/// Model of the contaminant's alleles. Their expected number follows from
/// `CONTAMINATION_PARAMS.foreign_sites_per_het_site`.
fn foreign_model(changes: usize, zygosities: &[[f64; 2]], context: &NonSomaticModelInputs<'_>) -> NonSomaticModel {
    let none = NonSomaticModel {
        germline_by_depth: Vec::new(),
        foreign_alleles: [(0.0, 0.0); 2],
        foreign_share_priors: vec![(0.0, 0.0)],
    };
    let Some(share) = context.contamination else { return none };
    if share.value <= 0.0 || changes == 0 || context.tumour_depths.is_empty() {
        return none;
    }
    // Number of foreign alleles that are detected, per heterozygous site of the person.
    let number = |share: f64| {
        let mean = |of: f64| {
            context.tumour_depths.iter().map(|n| allele_detection_probability(*n, of)).sum::<f64>()
                / context.tumour_depths.len() as f64
        };
        (CONTAMINATION_PARAMS.foreign_sites_per_het_site[0] * mean(share / 2.0)
            + CONTAMINATION_PARAMS.foreign_sites_per_het_site[1] * mean(share))
        .max(MIN_SHARE_FOR_LOG)
    };
    let all = number(share.value);
    let foreign = [
        (share.value / 2.0, CONTAMINATION_PARAMS.foreign_sites_per_het_site[0] / all),
        (share.value, CONTAMINATION_PARAMS.foreign_sites_per_het_site[1] / all),
    ];
    let sites: f64 = zygosities.iter().map(|[one, _]| one).sum();
    let shares = if zygosities.is_empty() {
        PURITY_PARAMS.foreign_share_grid.map(|share| (share, 0.0)).to_vec()
    } else {
        // docs/model/purity_ploidy.md (17)
        let varies = ((number(share.high) / number(share.low)).ln() / PURITY_PARAMS.interval_width_sds)
            .max(PURITY_PARAMS.min_foreign_count_log_sd);
        let expected = sites * context.heterozygosity * all / changes as f64;
        let times = |times: f64| {
            ((expected * times).min(1.0 - PURITY_PARAMS.min_somatic_share), -(times.ln() / varies).powi(2) / 2.0)
        };
        PURITY_PARAMS.foreign_count_factors.map(times).to_vec()
    };
    NonSomaticModel { foreign_alleles: foreign, foreign_share_priors: shares, ..none }
}

/// Probability that an allele with a share `share` of the reads is in at least `PURITY_PARAMS.min_change_reads` of `n`
/// molecules.
pub(crate) fn allele_detection_probability(n: u32, share: f64) -> f64 {
    let mut chance = (1.0 - share).powi(n as i32);
    let mut missed = 0.0;
    for k in 0..PURITY_PARAMS.min_change_reads {
        missed += chance;
        chance *= f64::from(n.saturating_sub(k)) / f64::from(k + 1) * share / (1.0 - share);
    }
    (1.0 - missed).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: NonSomaticModelInputs<'_> =
        NonSomaticModelInputs { zygosity_counts: &[], heterozygosity: 0.001, contamination: None, tumour_depths: &[] };

    #[test]
    fn unseen_germline_alleles_are_expected_by_depth() {
        // A thousand heterozygous sites each at depths 8, 12 and 15; at depth 8 eight of them show one allele only.
        let mut zygosities = [[0.0; 2]; 16];
        for (depth, sites) in [(8, 100_000.0), (12, 300_000.0), (15, 100_000.0)] {
            zygosities[depth] = [sites, 1_024.0];
        }
        let all: Vec<u32> = (0..40).map(|i| if i < 16 { 8 } else { 12 }).collect();
        let others =
            NonSomaticModel::from_normal_depths(&all, &NonSomaticModelInputs { zygosity_counts: &zygosities, ..NONE });
        // Of 40 changes 8.5 are expected to be inherited, so 31.5 are somatic, a quarter of them at depth 8.
        let chances = [8, 12, 15, 20].map(|depth| others.missed_germline_probability(depth));
        let expected = [8.0 / (8.0 + 31.5 / 4.0), 0.5 / (0.5 + 31.5 * 0.75), 0.0, 0.0];
        for (chance, expected) in chances.into_iter().zip(expected) {
            assert!((chance - expected).abs() < 1e-9, "{chances:?}, not {expected}");
        }
        // A call has removed inherited alleles already.
        assert_eq!(NonSomaticModel::from_normal_depths(&all, &NONE).missed_germline_probability(8), 0.0);
    }

    #[test]
    fn foreign_alleles_are_as_many_as_between_unrelated_people() {
        let (zygosities, depths) = ([[0.0, 0.0], [0.0, 0.0], [1e6, 0.0]], [40; 3]);
        let all = vec![2; 600];
        let foreign = Some(Estimate { value: 0.1, low: 0.09, high: 0.11 });
        let context = NonSomaticModelInputs {
            zygosity_counts: &zygosities,
            contamination: foreign,
            tumour_depths: &depths,
            ..NONE
        };
        let model = NonSomaticModel::from_normal_depths(&all, &context);
        // 650 sites with 2 of 40 molecules on average, of which 13.8 % show at least four, and 175 sites with four,
        // of which 57.7 % do.
        let [half, whole] = [650.0 * 0.138_149, 175.0 * 0.576_869];
        let [a, b] = model.foreign_alleles;
        assert_eq!([a.0, b.0], [0.05, 0.1]);
        assert!([a.1 - 650.0 / (half + whole), b.1 - 175.0 / (half + whole)].iter().all(|off| off.abs() < 1e-3));
        let likeliest = model.foreign_share_priors.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("shares");
        assert!((likeliest.0 - (half + whole) / 600.0).abs() < 1e-4, "{likeliest:?}");
        // The number of sites that a call examined is unknown: any share is possible.
        assert_eq!(
            NonSomaticModel::from_normal_depths(&all, &NonSomaticModelInputs { zygosity_counts: &[], ..context })
                .foreign_share_priors
                .len(),
            PURITY_PARAMS.foreign_share_grid.len()
        );
        assert_eq!(NonSomaticModel::from_normal_depths(&all, &NONE).foreign_share_priors, [(0.0, 0.0)]);
    }
}
