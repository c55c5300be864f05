//! Length errors of short homopolymers. Platforms that measure a whole homopolymer as one signal (Ion Torrent) also
//! lose or gain bases in runs of two to five bases, where other platforms hardly ever do.

use std::ops::RangeInclusive;

use crate::slippage::{RepeatRange, SLIPPAGE_MODEL_PARAMS, SlippageRate};

/// Lengths of short homopolymers in bases. Longer ones are repeats with slippage ([`crate::slippage`]).
const SHORT_LENGTHS: RangeInclusive<usize> = 2..=5;
/// Number of homopolymer lengths that are counted.
const NUM_SHORT_LENGTHS: usize = 4;

/// Numbers of reads of short homopolymers, by length of the homopolymer: reads with the expected length, with a shorter
/// length, and with a longer length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShortHomopolymerReadCounts([[u64; 3]; NUM_SHORT_LENGTHS]);

impl ShortHomopolymerReadCounts {
    /// Chooses the short homopolymers of the contig `seq` whose reads are counted: the first few of each length,
    /// outside the columns `left_out`.
    pub(crate) fn choose_homopolymers_to_count(seq: &[u8], left_out: &[bool]) -> Vec<RepeatRange> {
        let mut num_chosen = [0; NUM_SHORT_LENGTHS];
        let mut chosen = Vec::new();
        let mut start = 0;
        for run in seq.chunk_by(|a, b| a == b) {
            let range = RepeatRange { start, end: start + run.len(), unit: 1 };
            start = range.end;
            let around = range.start.saturating_sub(1)..(range.end + 1).min(seq.len());
            if !SHORT_LENGTHS.contains(&run.len()) || left_out[around].contains(&true) {
                continue;
            }
            let of_length = &mut num_chosen[run.len() - SHORT_LENGTHS.start()];
            if *of_length < SLIPPAGE_MODEL_PARAMS.max_short_homopolymers_per_contig {
                *of_length += 1;
                chosen.push(range);
            }
        }
        chosen
    }

    /// Counts the reads of one homopolymer of `expected` bases by the `lengths` that they show. The homopolymer is not
    /// counted if more than the share `min_allele_share` of the reads is shorter, or is longer: they may show another
    /// allele.
    pub(crate) fn count_reads_of_homopolymer(&mut self, expected: usize, lengths: &[usize]) {
        let shorter = lengths.iter().filter(|&&length| length < expected).count();
        let longer = lengths.iter().filter(|&&length| length > expected).count();
        if shorter.max(longer) as f64 > SLIPPAGE_MODEL_PARAMS.min_allele_share * lengths.len() as f64 {
            return;
        }
        let counts = [lengths.len() - shorter - longer, shorter, longer];
        self.0[expected - SHORT_LENGTHS.start()].iter_mut().zip(counts).for_each(|(sum, n)| *sum += n as u64);
    }

    /// Adds the counts that another thread collected.
    pub(crate) fn merge_counts(&mut self, other: &ShortHomopolymerReadCounts) {
        self.0.as_flattened_mut().iter_mut().zip(other.0.as_flattened()).for_each(|(sum, n)| *sum += n);
    }

    /// Estimates the rates at which homopolymers of each length are read shorter, and longer. No rates are known if all
    /// lengths up to `max_bases_of_frequent_errors` have too few reads, or so few errors that other causes explain
    /// them. A length with too few reads gets the rates of the nearest length.
    pub(crate) fn estimate_length_error_rates(&self) -> ShortHomopolymerRates {
        let p = &SLIPPAGE_MODEL_PARAMS;
        let num_reads = |counts: &[u64; 3]| counts.iter().sum::<u64>();
        let has_enough_reads = |counts: &[u64; 3]| num_reads(counts) >= p.min_short_homopolymer_reads;
        // docs/model/slippage.md (9)
        let decisive = &self.0[..=p.max_bases_of_frequent_errors - SHORT_LENGTHS.start()];
        let has_frequent_errors = decisive.iter().any(|counts| {
            let errors = counts[1] + counts[2];
            has_enough_reads(counts) && errors as f64 >= p.min_short_homopolymer_rate * num_reads(counts) as f64
        });
        if !has_frequent_errors {
            return ShortHomopolymerRates::default();
        }
        let measured: [Option<[SlippageRate; 2]>; NUM_SHORT_LENGTHS] = self.0.map(|counts| {
            let rate = |errors: u64| SlippageRate {
                rate: (errors as f64 / num_reads(&counts) as f64).max(p.unexplained_length_probability),
                log_spread: p.prior_rate_spread,
            };
            has_enough_reads(&counts).then(|| [rate(counts[1]), rate(counts[2])])
        });
        let nearest = |length: usize| {
            let known = (0..NUM_SHORT_LENGTHS).filter(|&other| measured[other].is_some());
            known.min_by_key(|&other| length.abs_diff(other)).and_then(|other| measured[other])
        };
        ShortHomopolymerRates(std::array::from_fn(nearest))
    }
}

/// For each homopolymer length the rates at which it is read shorter, and longer; `None` if the library has hardly any
/// length errors or too few reads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ShortHomopolymerRates([Option<[SlippageRate; 2]>; NUM_SHORT_LENGTHS]);

impl ShortHomopolymerRates {
    /// Whether length errors of short homopolymers are so frequent that their rates were measured.
    pub(crate) fn has_frequent_errors(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// Rate at which a homopolymer of `before` bases is read as `after` bases. `None` if the library has hardly any
    /// length errors, or if the change is not a loss or gain of one base in a short homopolymer. A single base counts
    /// as a homopolymer of two bases.
    pub(crate) fn length_error_rate(&self, before: usize, after: usize) -> Option<SlippageRate> {
        if before.abs_diff(after) != 1 || !(1..=*SHORT_LENGTHS.end()).contains(&before) {
            return None;
        }
        let [shorter, longer] = self.0[before.max(*SHORT_LENGTHS.start()) - SHORT_LENGTHS.start()]?;
        Some(if after < before { shorter } else { longer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homopolymers_away_from_changes_are_chosen() {
        let seq = b"ACCTGGGGGGGATTTCAA";
        let starts = |left_out: &[bool]| {
            let chosen = ShortHomopolymerReadCounts::choose_homopolymers_to_count(seq, left_out);
            chosen.into_iter().map(|range| (range.start, range.length_bp())).collect::<Vec<_>>()
        };
        let mut left_out = [false; 18];
        assert_eq!(starts(&left_out), [(1, 2), (12, 3), (16, 2)]);
        left_out[3] = true;
        assert_eq!(starts(&left_out), [(12, 3), (16, 2)]);
    }

    #[test]
    fn rates_are_those_of_libraries_with_such_errors_only() {
        let rates = |shorter: usize, reads: usize| {
            let mut counts = ShortHomopolymerReadCounts::default();
            for _ in 0..reads / 100 {
                counts.count_reads_of_homopolymer(2, &[vec![1; shorter], vec![2; 100 - shorter]].concat());
            }
            // An allele of half of the reads.
            counts.count_reads_of_homopolymer(2, &[1, 1, 2, 2]);
            counts.estimate_length_error_rates()
        };
        let ion = rates(1, 20_000);
        assert!((ion.length_error_rate(2, 1).expect("measured").rate - 0.01).abs() < 1e-9);
        assert_eq!(ion.length_error_rate(1, 2), ion.length_error_rate(2, 3));
        assert!([(2, 4), (6, 5), (6, 7)].iter().all(|&(before, after)| ion.length_error_rate(before, after).is_none()));
        assert!(rates(0, 20_000).length_error_rate(2, 1).is_none() && rates(1, 400).length_error_rate(2, 1).is_none());
    }

    #[test]
    fn rates_of_all_lengths_are_used_if_a_length_of_two_or_three_has_frequent_errors() {
        let rates = |frequent: usize| {
            let mut counts = ShortHomopolymerReadCounts::default();
            // 1 read in 2,000 with two bases and 1 in 100 of the other length lose one; other lengths have hardly any
            // reads.
            for i in 0..40 {
                counts.count_reads_of_homopolymer(2, &[vec![1; usize::from(i % 20 == 0)], vec![2; 99]].concat());
                counts.count_reads_of_homopolymer(frequent, &[vec![frequent - 1; 1], vec![frequent; 99]].concat());
            }
            counts.estimate_length_error_rates()
        };
        let rate = |before: usize| rates(3).length_error_rate(before, before - 1).map_or(0.0, |rate| rate.rate);
        assert!((rate(2) - 2.0 / 3962.0).abs() < 1e-9, "{}", rate(2));
        assert!((rate(3) - 0.01).abs() < 1e-9 && rate(5) == rate(3) && rate(4) == rate(3));
        // Amplification makes errors of four bases and more.
        assert!(!rates(4).has_frequent_errors() && rates(3).has_frequent_errors());
    }
}
