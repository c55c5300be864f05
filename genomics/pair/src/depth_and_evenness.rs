//! Depth of each sample, its evenness over the genome, and its dependence on GC content.

use serde::{Deserialize, Serialize};

use crate::confidence_interval::MIN_DIVISOR;
use crate::modal_depth::estimate_modal_depth;
use crate::site_tally::{GcDepthSum, NUM_DEPTH_CLASSES, NUM_GC_CLASSES, SiteTally};

/// Coverage of the genome by one sample, measured at roots that are single-copy in the other sample. Roots deeper than
/// twice the modal depth are left out, except in [`Self::depth_by_gc`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoverageMetrics {
    /// Mean number of molecules with a single-copy root, counted from k-mers of high base quality only. It is lower
    /// than the read depth, because a read has fewer k-mers than bases.
    pub mean_depth: f64,
    /// Coefficient of variation of the depth of single-copy roots, after subtraction of the variance that Poisson
    /// sampling explains.
    pub unevenness: f64,
    /// Share of the single-copy roots with less than a fifth of the mean depth (0 to 1).
    pub low_depth_share: f64,
    /// Pairs (GC content of a root, mean depth of such roots relative to the overall mean), for GC classes with at
    /// least 500 roots. A root has k−2 bases, about 30.
    pub depth_by_gc: Vec<(f64, f64)>,
}

/// Minimum number of roots in a GC class to report the depth of the class. Chosen; a higher value leaves out more rare
/// classes.
const MIN_ROOTS_PER_GC_CLASS: u64 = 500;

/// Divisor of the mean depth that gives the threshold of low depth. Chosen; with a higher value fewer roots have a low
/// depth.
const LOW_DEPTH_DIVISOR: f64 = 5.0;

impl CoverageMetrics {
    /// Computes the coverage of a sample (0: normal, 1: tumour). `root_bases` is the length of a root in bases, k−2.
    pub fn from_site_tally(tally: &SiteTally, sample: usize, root_bases: u32) -> CoverageMetrics {
        let modal_depth = estimate_modal_depth(&tally.depth_histograms[sample]);
        let max_depth = ((modal_depth * 2.0) as usize).clamp(1, NUM_DEPTH_CLASSES - 1);
        let within = || tally.depth_histograms[sample].iter().enumerate().take(max_depth + 1);
        let roots: u64 = within().map(|(_, n)| n).sum();
        let mean = within().map(|(depth, n)| depth as f64 * *n as f64).sum::<f64>() / roots.max(1) as f64;
        let variance =
            within().map(|(depth, n)| (depth as f64 - mean).powi(2) * *n as f64).sum::<f64>() / roots.max(1) as f64;
        let thin: u64 = within().filter(|(depth, _)| (*depth as f64) < mean / LOW_DEPTH_DIVISOR).map(|(_, n)| n).sum();
        let sum = |own: &GcDepthSum| own.depth_sum as f64 / own.roots.max(1) as f64;
        let all = tally.depth_by_gc[sample].iter().fold(GcDepthSum::default(), |all, own| GcDepthSum {
            roots: all.roots + own.roots,
            depth_sum: all.depth_sum + own.depth_sum,
        });
        let by_gc = (0..NUM_GC_CLASSES)
            .zip(&tally.depth_by_gc[sample])
            .filter(|(_, own)| own.roots >= MIN_ROOTS_PER_GC_CLASS)
            .map(|(gc, own)| (gc as f64 / f64::from(root_bases), sum(own) / sum(&all).max(MIN_DIVISOR)))
            .collect();
        CoverageMetrics {
            mean_depth: mean,
            unevenness: (variance - mean).max(0.0).sqrt() / mean.max(MIN_DIVISOR),
            low_depth_share: thin as f64 / roots.max(1) as f64,
            depth_by_gc: by_gc,
        }
    }
}
