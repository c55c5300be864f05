//! Probabilities of the numbers of molecules with the minor allele of a site.

use super::somatic_spectrum::NUM_SPECTRUM_SHAPES;
use crate::confidence_interval::MIN_SHARE_FOR_LOG;
use crate::contamination_params::CONTAMINATION_PARAMS;
use crate::site_tally::NUM_MINOR_ALLELE_COUNT_CLASSES;
use crate::sketch::probabilities_of_counted_molecules;

/// Probability of each counted number of molecules with the minor allele among `n` molecules, each of which has the
/// allele with probability `p`; the last entry is that of its number or more. Two molecules whose read starts have the
/// same hash are counted as one; the probabilities account for this. `logs[i]` is the natural logarithm of `i!`.
/// `docs/model/contamination.md` (4).
pub(super) fn minor_count_probabilities(n: usize, p: f64, logs: &[f64]) -> [f64; NUM_MINOR_ALLELE_COUNT_CLASSES] {
    let mut all = [0.0; NUM_MINOR_ALLELE_COUNT_CLASSES];
    let (own, other) = (p.max(MIN_SHARE_FOR_LOG).ln(), (1.0 - p).ln());
    for k in 0..=n {
        let chance = (logs[n] - logs[k] - logs[n - k] + k as f64 * own + (n - k) as f64 * other).exp();
        match probabilities_of_counted_molecules().get(k) {
            Some(counted) => all.iter_mut().zip(&counted[..=k]).for_each(|(all, counted)| *all += chance * counted),
            None => all[k.min(NUM_MINOR_ALLELE_COUNT_CLASSES - 1)] += chance,
        }
    }
    all
}

/// Probabilities of each number of molecules with the minor allele, at one depth.
pub(super) struct HetAndSomaticCountProbabilities {
    /// Probabilities for an allele in half of the molecules, by number of molecules with the allele. `somatic` are
    /// those for a somatic change, also by shape of the somatic spectrum.
    pub(super) het: [f64; NUM_MINOR_ALLELE_COUNT_CLASSES],
    pub(super) somatic: Vec<[f64; NUM_SPECTRUM_SHAPES]>,
}

impl HetAndSomaticCountProbabilities {
    /// Computes the probabilities for sites of `n` molecules. `logs[i]` is the natural logarithm of `i!`.
    pub(super) fn at_depth(n: usize, logs: &[f64]) -> HetAndSomaticCountProbabilities {
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
        HetAndSomaticCountProbabilities { het: minor_count_probabilities(n, 0.5, logs), somatic: kinds }
    }
}
