//! Joint k-mer counting. Modules in the order data flows through them.
pub mod encode;
mod minimizer;
mod superkmer;
mod sieve;
mod parts;
mod plan;
mod nodes;
mod extents;
mod bins;
mod buffers;
mod scatter;
mod collapse;
mod tally;
mod device;
mod sorted;
mod pipeline;
mod shards;
mod checkpoint;

use std::path::PathBuf;

use genuma_reads::{Estimate, Lane, Pair};

pub use checkpoint::{CountCheckpoint, ReadCheckpoint};
pub use device::{Devices, Gain, gain};
pub use genuma_machine::processor::{prefetch, widest};
pub use nodes::NodeShare;
pub use parts::{Fit, Grid, MAX_PARTS, Part, in_parts};
pub use pipeline::{Scattered, count};
pub use plan::{Expected, Planned, grid, least_for_grid, least_memory};
pub use shards::{Shard, count_shards};
pub use sieve::{Sieve, Sifter};
pub use sorted::Sorted;

/// Smallest k: the tests use it; the genomes of interest start at 24.
pub(crate) const MIN_K: u32 = 12;
/// Largest k: a k-mer is one 64-bit word.
pub const MAX_K: u32 = 32;
/// Most samples that can be counted jointly.
pub const MAX_SAMPLES: usize = 8;
/// Slots of a [`Counted::spectra`] entry.
pub(crate) const SPECTRUM_SLOTS: usize = 1024;

/// What to count, and with what.
#[derive(Debug, Clone)]
pub struct CountParams {
    /// K-mer length, [`MIN_K`]..=[`MAX_K`].
    pub k: u32,
    /// K-mers with a base under this Phred quality are not counted; 0 counts all.
    pub min_base_quality: u8,
    /// Threads to use, at least 1.
    pub threads: usize,
    /// Bytes the counter may allocate, beside the batches of reads and the picks. See [`least_memory`].
    pub memory: u64,
    /// Folder for what does not fit in `memory`.
    pub work: PathBuf,
    /// Bytes that the file may have there.
    pub scratch: u64,
    /// Which k-mers are counted; the others are read, and are in [`CountStats::kmers`] only.
    pub part: Part,
    /// Devices that count beside the threads, with a share of the memory. They never show in what is counted.
    pub devices: Devices,
}

impl CountParams {
    /// What the first reads of the lanes let one expect of them all.
    pub fn expected(&self, lanes: &[Lane]) -> Expected {
        Expected::of(&Estimate::of(lanes), self.k)
    }

    /// Bytes of the memory that lanes of devices get, if there is so much beside what threads need.
    fn reserved(&self) -> u64 {
        let left = self.memory.saturating_sub(least_memory(self.threads));
        self.devices.wants().min(self.memory / 4).min(left)
    }

    /// Bytes of the memory that are left to the threads.
    fn for_threads(&self) -> u64 {
        self.memory - self.reserved()
    }

    /// Fewest partitions of the k-mer space in which [`count`] will do with memory and scratch if the reads are as expected; `None` when
    /// [`MAX_PARTS`] are too few. The parameters must be in range.
    pub fn parts_wanted<const S: usize>(&self, expected: &Expected) -> Option<u32> {
        plan::parts_wanted::<S>(expected, self)
    }

    /// What [`count`] is expected to take, in as many partitions as are wanted; `None` when [`MAX_PARTS`] are too few. The parameters must
    /// be in range, and the memory [`least_memory`] at least.
    pub fn planned<const S: usize>(&self, expected: &Expected) -> Option<Planned> {
        plan::planned::<S>(expected, self)
    }
}

/// Prepares the pairs that one thread counts.
pub trait Prepare: Send {
    /// The pair of a sample as its k-mers are to be counted. Each k letters appended to `added` count as one more k-mer of that sample.
    fn prepare<'a>(&mut self, pair: Pair<'a>, sample: u8, added: &mut Vec<u8>) -> Pair<'a>;
}

/// Leaves pairs as they are in their files.
#[derive(Debug, Clone, Copy)]
pub struct AsRead;

impl Prepare for AsRead {
    fn prepare<'a>(&mut self, pair: Pair<'a>, _: u8, _: &mut Vec<u8>) -> Pair<'a> {
        pair
    }
}

/// Joint counters of one root in `S` samples: the canonical (k-2)-mer in the middle of k-mers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootCounters<const S: usize = 2> {
    /// The root, two bits a base, the first base in the highest bits.
    pub stem: u64,
    /// `counts[4 * first + last][sample]`: how often `sample` has the k-mer first-stem-last, both strands summed.
    ///
    /// When the stem is its own reverse complement (even k), first-stem-last and its reverse complement have the same
    /// stem: their count is in the smaller of the slots `4 * first + last` and `4 * (3 - last) + (3 - first)`, and
    /// the other is 0.
    pub counts: [[u32; S]; 16],
}

/// The outcome of [`count`].
#[derive(Debug)]
pub struct Counted<P, const S: usize = 2> {
    /// What `select` picked, sorted.
    pub picks: Vec<P>,
    /// `spectra[sample][m]`: distinct canonical k-mers that `sample` has `m` times; the last slot also holds those it
    /// has more often; slot 0 is 0.
    pub spectra: [Vec<u64>; S],
    /// Sizes.
    pub stats: CountStats<S>,
    /// Distinct roots of all samples together.
    pub roots: u64,
}

/// Sizes of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountStats<const S: usize = 2> {
    /// Bases read, per sample.
    pub bases: [u64; S],
    /// K-mers of the reads, per sample, of whatever partition.
    pub kmers: [u64; S],
    /// Distinct canonical k-mers of all samples together.
    pub distinct: u64,
    /// Bytes of all super-k-mers in bins.
    pub packed_bytes: u64,
    /// Bytes written to the spill file.
    pub spilled_bytes: u64,
    /// Most bytes that the unnamed spill file had.
    pub spill_peak: u64,
    /// Number of bins.
    pub bins: u64,
    /// Passes over bins beyond one a bin, made because a bin's table did not fit the memory.
    pub extra_passes: u64,
}

/// Why a count failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reads could not be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// A parameter is out of range.
    #[error("{0}")]
    Params(String),
    /// There is no memory to be had.
    #[error(transparent)]
    Memory(#[from] genuma_machine::placement::Error),
    /// A spill file failed, or holds other bytes than were written.
    #[error(transparent)]
    Spill(#[from] genuma_work::spill::Error),
    /// The k-mers take more than there is memory and scratch.
    #[error(
        "{part} of the k-mers does not fit in the memory and in the {:.1} GB of scratch space: give more of either", *.scratch as f64 / 1e9
    )]
    TooLarge {
        /// Those of which partition.
        part: Part,
        /// Bytes that the spill file may have.
        scratch: u64,
        /// Share of the input that was read by then, more than 0 and at most 1.
        read: f64,
    },
}

#[cfg(test)]
mod tests;
