//! How deep each sample is, how evenly, and how its depth goes by GC.

use serde::{Deserialize, Serialize};

use crate::roots::{Coverage, DEPTHS, GC, RootTally};
use crate::usual::usual;

/// How a sample covers its genome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Covered {
    /// Molecules that have a root of a single place in good bases, on average: less than the depth of the reads, as a read has fewer roots than bases.
    pub depth: f64,
    /// Standard deviation of that depth over places beyond what chance makes, relative to it.
    pub unevenness: f64,
    /// Share of the places that have less than a fifth of it.
    pub thin: f64,
    /// Depth relative to the average, by the share of G and C of some 30 bases: pairs of that share and the depth, where enough places have it.
    pub by_gc: Vec<(f64, f64)>,
}

/// Fewest roots of a share of GC.
const ENOUGH: u64 = 500;

impl Covered {
    /// Of a sample, 0 the normal and 1 the tumour; roots of the sample have so many bases.
    pub fn of(tally: &RootTally, sample: usize, bases: u32) -> Covered {
        let usual = usual(&tally.depths[sample]);
        let most = ((usual * 2.0) as usize).clamp(1, DEPTHS - 1);
        let within = || tally.depths[sample].iter().enumerate().take(most + 1);
        let roots: u64 = within().map(|(_, n)| n).sum();
        let mean = within().map(|(depth, n)| depth as f64 * *n as f64).sum::<f64>() / roots.max(1) as f64;
        let variance = within().map(|(depth, n)| (depth as f64 - mean).powi(2) * *n as f64).sum::<f64>()
            / roots.max(1) as f64;
        let thin: u64 = within().filter(|(depth, _)| (*depth as f64) < mean / 5.0).map(|(_, n)| n).sum();
        let sum = |own: &Coverage| own.sum as f64 / own.roots.max(1) as f64;
        let all = tally.coverage[sample].iter().fold(Coverage::default(), |all, own| Coverage {
            roots: all.roots + own.roots,
            sum: all.sum + own.sum,
        });
        let by_gc = (0..GC)
            .zip(&tally.coverage[sample])
            .filter(|(_, own)| own.roots >= ENOUGH)
            .map(|(gc, own)| (gc as f64 / f64::from(bases), sum(own) / sum(&all).max(1e-9)))
            .collect();
        Covered {
            depth: mean,
            unevenness: (variance - mean).max(0.0).sqrt() / mean.max(1e-9),
            thin: thin as f64 / roots.max(1) as f64,
            by_gc,
        }
    }
}
