//! Partitions of the k-mer space: classes of minimizers that are counted separately, each in a pass over all reads.
//!
//! Partition `n` of `p` contains the minimizers whose hash modulo `p` is `n`. It consists of the partitions `n` and
//! `n + p` of `2p`. So a partition that is too large can be split, and the counts of the others stay valid.

use std::collections::VecDeque;
use std::fmt;

use crate::minimizer::bin_of_minimizer_hash;

/// Maximum number of partitions of the k-mers; the reads are read once for each.
pub const MAX_PARTITIONS: u32 = 1 << 12;
/// Maximum number of bins of a count.
pub(crate) const MAX_BINS: u64 = 1 << 14;

/// One partition of the k-mer space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Partition {
    /// Index of the partition, from 0.
    number: u32,
    /// Number of partitions that the k-mer space is divided into.
    total: u32,
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partition {} of {}", self.number + 1, self.total)
    }
}

impl Partition {
    /// The only partition if the k-mer space is not divided.
    pub const WHOLE_KMER_SPACE: Partition = Partition { number: 0, total: 1 };

    /// Partition `number` (from 0) of `total` partitions; `None` if a number is out of range.
    pub fn from_number_and_total(number: u32, total: u32) -> Option<Partition> {
        (number < total && total <= MAX_PARTITIONS).then_some(Partition { number, total })
    }

    /// Index of the partition, from 0.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Number of partitions that the k-mer space is divided into.
    pub fn num_partitions(self) -> u32 {
        self.total
    }

    /// Label that is valid as a part of a file name: `2-of-4` for the partition with index 1 of four.
    pub fn file_name_label(self) -> String {
        format!("{}-of-{}", self.number + 1, self.total)
    }

    /// Parses a label as written by [`Partition::file_name_label`]; `None` for any other text.
    pub fn from_file_name_label(label: &str) -> Option<Partition> {
        let (number, of) = label.split_once("-of-")?;
        let part = Partition::from_number_and_total(number.parse::<u32>().ok()?.checked_sub(1)?, of.parse().ok()?)?;
        (part.file_name_label() == label).then_some(part)
    }

    /// Whether roots with this minimizer belong to the partition.
    #[inline]
    pub(crate) fn contains_minimizer(self, minimizer: u32) -> bool {
        self.total == 1 || hash_minimizer(minimizer) % self.total == self.number
    }

    /// The two halves of the partition; `None` if the number of partitions would exceed the maximum.
    fn halves(self) -> Option<[Partition; 2]> {
        let half = |number| Partition::from_number_and_total(number, 2 * self.total);
        Some([half(self.number)?, half(self.number + self.total)?])
    }

    /// Whether `other` is this partition or results from splitting it in halves repeatedly.
    fn contains_partition(self, other: Partition) -> bool {
        other.total.is_multiple_of(self.total)
            && (other.total / self.total).is_power_of_two()
            && other.number % self.total == self.number
    }

    /// Splits the partition in halves repeatedly, until the number of partitions is at least `min_total` or the
    /// maximum.
    fn split(self, min_total: u32) -> Vec<Partition> {
        match self.halves() {
            Some(halves) if self.total < min_total => {
                halves.into_iter().flat_map(|half| half.split(min_total)).collect()
            }
            _ => vec![self],
        }
    }

    /// The partitions that cover this partition without those in `done`, split until the number of partitions of the
    /// k-mer space is at least `min_total`.
    fn without(self, done: &[Partition], min_total: u32) -> Vec<Partition> {
        if done.contains(&self) {
            return Vec::new();
        }
        match self.halves() {
            Some(halves) if done.iter().any(|&part| self.contains_partition(part)) => {
                halves.into_iter().flat_map(|half| half.without(done, min_total)).collect()
            }
            _ => self.split(min_total),
        }
    }
}

/// Layout of the bins if all partitions are scattered in one pass over the reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BinGrid {
    /// Number of partitions that one pass over the reads scatters, at least 1.
    pub num_partitions: u32,
    /// Number of bins into which each partition is divided; bins are counted one after another.
    pub bins_per_partition: u32,
}

impl BinGrid {
    /// Whether reads can be scattered into this grid: both numbers are at least 1 and within the limits of a count.
    pub fn is_valid_grid(self) -> bool {
        let bins = u64::from(self.num_partitions) * u64::from(self.bins_per_partition);
        self.num_partitions <= MAX_PARTITIONS && (1..=MAX_BINS).contains(&bins)
    }

    /// Total number of bins.
    pub fn num_bins(self) -> usize {
        self.num_partitions as usize * self.bins_per_partition as usize
    }

    /// Index of the bin of roots with this minimizer; the bins of a partition are consecutive.
    #[inline]
    pub(crate) fn bin_of_minimizer(self, minimizer: u32) -> usize {
        let within = bin_of_minimizer_hash(minimizer, self.bins_per_partition as usize);
        if self.num_partitions == 1 {
            within
        } else {
            self.first_bin_of_partition(hash_minimizer(minimizer) % self.num_partitions) + within
        }
    }

    /// Index of the first bin of a partition.
    pub(crate) fn first_bin_of_partition(self, partition: u32) -> usize {
        partition as usize * self.bins_per_partition as usize
    }
}

/// Outcome of counting one partition.
#[derive(Debug)]
pub enum CountedOrTooLarge<T> {
    /// The partition fitted in memory and scratch space; the result of counting it.
    Counted(T),
    /// The partition did not fit in memory and scratch space. Counting stopped when this share of the input had been
    /// read (above 0, at most 1).
    TooLarge(f64),
}

/// Counts all partitions of the k-mer space, one after the other.
///
/// `done` are partitions that an earlier run has counted; the space is divided so that they need not be counted again.
/// Without them it is divided into `min_partitions` partitions. `count_one` counts each missing partition. A partition
/// that is too large is split and counted again; remaining partitions that are probably too large are split before they
/// are counted. Returns the partitions of `done` that can be used, and the results of `count_one`.
///
/// # Errors
/// Returns the first error of `count_one`, or that of `too_large` for a partition that cannot be split further.
pub fn count_all_partitions<T, E>(
    min_partitions: u32,
    done: &[Partition],
    mut count_one: impl FnMut(Partition) -> Result<CountedOrTooLarge<T>, E>,
    too_large: impl FnOnce(Partition) -> E,
) -> Result<(Vec<Partition>, Vec<T>), E> {
    let first = done.iter().map(|part| part.total).min().unwrap_or(min_partitions.clamp(1, MAX_PARTITIONS));
    let all = || (0..first).map(|number| Partition { number, total: first });
    // A partition inside another one that is done is not used.
    let within = |part: Partition| done.iter().any(|&other| other != part && other.contains_partition(part));
    let usable = |&part: &Partition| all().any(|whole| whole.contains_partition(part)) && !within(part);
    let done: Vec<Partition> = done.iter().copied().filter(usable).collect();
    let mut queue: VecDeque<Partition> = all().flat_map(|part| part.without(&done, min_partitions)).collect();
    let parts = queue.len() + done.len();
    if parts > 1 {
        let counted = if done.is_empty() { String::new() } else { format!(" ({} are already counted)", done.len()) };
        tracing::info!("counts the k-mers in {parts} partitions{counted}, each in one pass over all reads");
    }
    let mut made = Vec::new();
    while let Some(part) = queue.pop_front() {
        match count_one(part)? {
            CountedOrTooLarge::Counted(result) => made.push(result),
            CountedOrTooLarge::TooLarge(read) => {
                // As many partitions as would have fit, judged by the share that was read.
                let would = f64::from(part.total) / read.max(1.0 / f64::from(MAX_PARTITIONS));
                let least = (would.ceil() as u32).max(part.total + 1);
                if part.halves().is_none() {
                    return Err(too_large(part));
                }
                tracing::info!(
                    "{part} of the k-mers does not fit into memory and scratch space; it is split and counted again"
                );
                let others = std::mem::take(&mut queue);
                queue.extend(part.split(least));
                queue.extend(others.into_iter().flat_map(|other| other.split(would.round() as u32)));
            }
        }
    }
    Ok((done, made))
}

/// Hash of a minimizer that gives its partition. Its value is not correlated with the order by which minimizers are
/// chosen, nor with their bins, because each bit depends on all bits of the minimizer.
#[inline]
fn hash_minimizer(minimizer: u32) -> u32 {
    let x = (minimizer ^ (minimizer >> 16)).wrapping_mul(0x9e37_79b1);
    let x = (x ^ (x >> 15)).wrapping_mul(0x85eb_ca77);
    x ^ (x >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(number: u32, of: u32) -> Partition {
        Partition::from_number_and_total(number - 1, of).expect("a partition")
    }

    /// Returns the order in which partitions are counted, if those for which `too_large` returns a share are too
    /// large.
    fn order(wanted: u32, done: &[Partition], too_large: impl Fn(Partition) -> Option<f64>) -> Vec<Partition> {
        let one = |part| Ok(too_large(part).map_or(CountedOrTooLarge::Counted(part), CountedOrTooLarge::TooLarge));
        let (used, made) = count_all_partitions(wanted, done, one, |part| part.to_string()).expect("small enough");
        // Each hash is in exactly one partition.
        for hash in 0..MAX_PARTITIONS * 15 {
            let of = |p: &&Partition| hash % p.total == p.number;
            assert_eq!(used.iter().chain(&made).filter(of).count(), 1, "{used:?} {made:?}");
        }
        made
    }

    #[test]
    fn the_kmer_space_is_covered_exactly_once() {
        assert_eq!(order(1, &[], |_| None), [Partition::WHOLE_KMER_SPACE]);
        assert_eq!(order(0, &[], |_| None), [Partition::WHOLE_KMER_SPACE]);
        assert_eq!(order(3, &[], |_| None), [part(1, 3), part(2, 3), part(3, 3)]);
        assert_eq!(order(3, &[part(2, 3)], |_| None), [part(1, 3), part(3, 3)]);
        // The earlier partitions determine the split, but the remaining ones are no larger than wanted.
        assert_eq!(order(1, &[part(2, 2)], |_| None), [part(1, 2)]);
        assert_eq!(order(4, &[part(2, 2)], |_| None), [part(1, 4), part(3, 4)]);
        assert_eq!(order(3, &[part(2, 2)], |_| None), [part(1, 4), part(3, 4)]);
        assert_eq!(order(1, &[part(1, 2), part(4, 8)], |_| None), [part(2, 4), part(8, 8)]);
        // A partition of another split, or inside another one.
        assert_eq!(order(1, &[part(2, 2), part(3, 3)], |_| None), [part(1, 2)]);
        assert_eq!(order(1, &[part(2, 2), part(4, 8)], |_| None), [part(1, 2)]);

        let whole = |p: Partition| (p.total < 2).then_some(0.9);
        assert_eq!(order(1, &[], whole), [part(1, 2), part(2, 2)]);
        let early = |p: Partition| (p.total < 2).then_some(0.3);
        assert_eq!(order(1, &[], early), [part(1, 4), part(3, 4), part(2, 4), part(4, 4)]);
        // Other partitions are split too if they look as large.
        let second = |p: Partition| (p == part(2, 3)).then_some(0.95);
        assert_eq!(order(3, &[], second), [part(1, 3), part(2, 6), part(5, 6), part(3, 3)]);
        let second = |p: Partition| (p == part(2, 3)).then_some(0.6);
        assert_eq!(order(3, &[], second), [1, 2, 5, 3, 6].map(|n| part(n, if n == 1 { 3 } else { 6 })));
    }

    #[test]
    fn partitions_that_cannot_be_split_are_an_error() {
        let never = |_| Ok::<CountedOrTooLarge<()>, String>(CountedOrTooLarge::TooLarge(0.01));
        let said = count_all_partitions(1, &[], never, |part| part.to_string()).expect_err("too large");
        assert_eq!(said, "partition 1 of 4096");
        let said = count_all_partitions(3, &[], never, |part| part.to_string()).expect_err("too large");
        assert_eq!(said, "partition 1 of 3072");
    }

    #[test]
    fn labels_survive_a_round_trip() {
        for part in [Partition::WHOLE_KMER_SPACE, part(2, 4), part(4096, 4096)] {
            assert_eq!(Partition::from_file_name_label(&part.file_name_label()), Some(part));
        }
        for label in ["", "1", "0-of-4", "5-of-4", "1-of-0", "01-of-4", "1-of-8192", "+1-of-4", "1-of-4-of-5"] {
            assert_eq!(Partition::from_file_name_label(label), None, "{label}");
        }
    }

    #[test]
    fn partitions_have_equal_sizes() {
        for of in [2, 3, 4, 7, 64] {
            let mut sizes = vec![0u32; of as usize];
            let part = |number| Partition { number, total: of };
            // Minimizers are small and of low complexity.
            (0..64_000u32).for_each(|m| {
                let n = (0..of).find(|&n| part(n).contains_minimizer(m.wrapping_mul(m) >> 3)).expect("one has it");
                sizes[n as usize] += 1;
            });
            let even = 64_000 / of;
            assert!(sizes.iter().all(|&n| n > even * 9 / 10 && n < even * 11 / 10), "{of}: {sizes:?}");
        }
    }
}
