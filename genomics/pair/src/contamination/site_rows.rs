//! Rows of a [`SiteTally`] from which contamination is estimated.

use crate::contamination_params::CONTAMINATION_PARAMS;
use crate::site_tally::{NUM_DEPTH_CLASSES, NUM_MINOR_ALLELE_COUNT_CLASSES, SiteTally};

/// Sites of one depth, for transitions or for transversions, without damaged substitution classes: `sites[m]` is the
/// number of sites with `m` reads of the minor allele, up to half of the depth and to a fixed maximum. A site counts
/// once for each base that may be its minor allele. The other sample has `other_reads` reads (0 or 1) of the minor
/// allele at all of these sites.
pub(super) struct SiteCountsByMinorReads {
    pub(super) is_transition: bool,
    pub(super) other_reads: usize,
    pub(super) depth: usize,
    pub(super) sites: Vec<f64>,
}

/// Collects the counts of a sample's sites at each usual depth, without substitution classes whose error rate is high
/// and much above the lowest one, because of damage. Rows where the other sample has one read of the minor allele are
/// included only if `with_shared`.
pub(super) fn collect_undamaged_site_counts(
    tally: &SiteTally,
    sample: usize,
    modal_depth: f64,
    with_shared: bool,
) -> Vec<SiteCountsByMinorReads> {
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
            SiteCountsByMinorReads { is_transition: transition, other_reads, depth, sites }
        })
        .filter(|row| row.sites.iter().sum::<f64>() > 0.0)
        .collect()
}
