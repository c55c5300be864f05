//! Beta-binomial distribution of allele counts.

use crate::confidence_interval::log_factorials;
use crate::purity_params::PURITY_PARAMS;

/// Number of steps of the grid of minor allele shares from 0 to one half.
pub(crate) const NUM_MINOR_SHARE_STEPS: usize = 100;

/// Natural-log probabilities of the beta-binomial distribution, for a grid of mean shares.
pub(crate) struct BetaBinomial {
    /// Maximum number of trials.
    pub(crate) max_n: usize,
    log_factorials: Vec<f64>,
    /// For each mean share of the grid, and for each k: sum of the logarithms of the first k factors of the rising
    /// factorial.
    rising_log_sums: Vec<Vec<f64>>,
}

impl BetaBinomial {
    /// The distribution for up to `max_n` trials. `overdispersion` is between 0 (binomial) and 1.
    pub(crate) fn with_max_trials(max_n: usize, overdispersion: f64) -> BetaBinomial {
        let sums_of = |share: f64| {
            let mut sum = 0.0;
            let mut sums = vec![0.0];
            for i in 0..max_n {
                sum += (share * (1.0 - overdispersion) + i as f64 * overdispersion).ln();
                sums.push(sum);
            }
            sums
        };
        // Clamped, as a base may be wrong. The last entry normalises the others.
        let share = |i: usize| {
            (i as f64 / (2 * NUM_MINOR_SHARE_STEPS) as f64)
                .clamp(PURITY_PARAMS.allele_share_limits[0], PURITY_PARAMS.allele_share_limits[1])
        };
        let sums = (0..=2 * NUM_MINOR_SHARE_STEPS).map(|i| sums_of(share(i))).chain([sums_of(1.0)]).collect();
        BetaBinomial { max_n, log_factorials: log_factorials(max_n), rising_log_sums: sums }
    }

    /// Natural logarithm of the probability of `k` successes in `n` draws, for the mean share `i / (2 *
    /// NUM_MINOR_SHARE_STEPS)`.
    pub(crate) fn log_pmf(&self, i: usize, k: usize, n: usize) -> f64 {
        // docs/model/purity_ploidy.md (4)
        let choose = self.log_factorials[n] - self.log_factorials[k] - self.log_factorials[n - k];
        choose + self.rising_log_sums[i][k] + self.rising_log_sums[2 * NUM_MINOR_SHARE_STEPS - i][n - k]
            - self.rising_log_sums[2 * NUM_MINOR_SHARE_STEPS + 1][n]
    }
}
