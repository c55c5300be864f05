//! Totals of a k-mer count.

use super::KmerSpectra;

/// Spectra, number of distinct k-mers, and number of passes over bins of one thread or device lane, or of several.
pub(crate) struct CountTotals<const S: usize> {
    /// Number of distinct k-mers by number of occurrences, for each sample.
    pub spectra: KmerSpectra<S>,
    /// Number of distinct k-mers.
    pub distinct: u64,
    /// Number of passes over bins; more than one for each bin that was counted in several root classes.
    pub passes: u64,
}

impl<const S: usize> CountTotals<S> {
    /// Totals before anything is counted.
    pub(crate) fn zero() -> Self {
        Self { spectra: KmerSpectra::zero_spectra(), distinct: 0, passes: 0 }
    }

    /// Adds the totals of another thread or device lane.
    pub(crate) fn merge_totals(&mut self, other: &Self) {
        self.distinct += other.distinct;
        self.passes += other.passes;
        for (all, part) in self.spectra.0.iter_mut().zip(&other.spectra.0) {
            all.iter_mut().zip(part).for_each(|(a, p)| *a += p);
        }
    }
}
