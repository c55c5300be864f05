//! Joint k-mer counting of up to eight samples. The modules are listed in the order of the data flow.
//!
//! The k-mers of one sample with their counts:
//!
//! ```
//! use genuma_kmers::{CountParams, Devices, Partition, ScatteredSamples, encode, min_memory_bytes};
//! use genuma_reads::{AlignedOptions, Lane, MateLayout, ProgressCounters};
//!
//! let folder = tempfile::tempdir()?;
//! let reads = folder.path().join("reads.fq");
//! std::fs::write(&reads, "@1\nACGTTGCATTCAGGA\n+\nIIIIIIIIIIIIIII\n@2\nTCCTGAATGCAACGT\n+\nIIIIIIIIIIIIIII\n")?;
//! let lanes = Lane::group_files_into_lanes(0, &[reads], MateLayout::Single, &AlignedOptions::default())?;
//! let params = CountParams {
//!     k: 15,
//!     min_base_quality: 20,
//!     threads: 1,
//!     memory_bytes: 2 * min_memory_bytes(1),
//!     work_dir: folder.path().into(),
//!     max_scratch_bytes: u64::MAX,
//!     partition: Partition::WHOLE_KMER_SPACE,
//!     devices: Devices::default(),
//! };
//! let bins = ScatteredSamples::scatter_lanes(1, &lanes, &params, &ProgressCounters::default())?;
//! let mut counts = Vec::new();
//! bins.count_and_keep_frequent_kmers(1)?.for_each_kmer(|kmer, samples| {
//!     counts.push((encode::unpack(kmer, 15), samples[0]));
//!     Ok::<(), genuma_kmers::Error>(())
//! })?;
//! // The second read is the reverse complement of the first.
//! assert_eq!(counts, [(b"ACGTTGCATTCAGGA".to_vec(), 2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub mod encode;
mod minimizer;
mod superkmer;
mod seed_filter;
mod partition;
mod plan;
mod node_assignment;
mod extents;
mod bins;
mod bin_buffers;
mod run_time_sample_number;
mod scatter;
mod collapse;
mod counter_table;
mod device;
mod sorted_kmers;
mod pipeline;
mod shards;
mod checkpoint;

use std::path::PathBuf;

use genuma_reads::{Lane, ReadEstimate, ReadPair};

pub use checkpoint::{BinnedReadsCheckpoint, CountedKmersCheckpoint};
pub use device::{CountingTimesWithAndWithoutDevices, Devices, estimate_times_with_and_without_devices};
pub use genuma_machine::simd_and_prefetch::{prefetch, run_with_widest_simd};
pub use node_assignment::NodeThreadsAndMemory;
pub use partition::{BinGrid, CountedOrTooLarge, MAX_PARTITIONS, Partition, count_all_partitions};
pub use pipeline::{ScatteredReads, count_partition};
pub use plan::{CountForecast, ExpectedKmers, bin_grid_for_kmers, min_memory_bytes, min_memory_bytes_for_grid};
pub use run_time_sample_number::{ScatteredSamples, SortableSampleKmers};
pub use scatter::{ScatterDevice, SimulatedFpga};
pub use seed_filter::SeedFilter;
pub use shards::{ShardKmerIndex, count_partition_from_shards};
pub use sorted_kmers::SortableKmers;

/// Smallest k that is accepted (tests use it); real genomes need at least 24.
pub(crate) const MIN_K: u32 = 12;
/// Largest k: a k-mer fits one 64-bit word.
pub const MAX_K: u32 = 32;
/// Maximum number of samples that can be counted jointly.
pub const MAX_SAMPLES: usize = 8;
/// Number of entries of a k-mer spectrum ([`CountResult::spectra`]): counts from 0 to 1022, and all higher counts.
pub(crate) const NUM_SPECTRUM_ENTRIES: usize = 1024;

/// What to count, and the threads, memory and disk space for it.
#[derive(Debug, Clone)]
pub struct CountParams {
    /// Length of the k-mers, [`MIN_K`]..=[`MAX_K`].
    pub k: u32,
    /// Minimum Phred quality of all bases of a counted k-mer; 0 ignores qualities.
    pub min_base_quality: u8,
    /// Number of threads, at least 1.
    pub threads: usize,
    /// Maximum number of bytes that the counter allocates, without batches of reads and selected results. At least
    /// [`min_memory_bytes`].
    pub memory_bytes: u64,
    /// Folder of the spill file, for data that does not fit in memory.
    pub work_dir: PathBuf,
    /// Maximum size of the spill file in bytes.
    pub max_scratch_bytes: u64,
    /// Partition of the k-mer space to count. K-mers of other partitions only enter [`CountStats::kmers`].
    pub partition: Partition,
    /// OpenCL devices that count in addition to the threads, with a share of the memory, and the device that scatters
    /// reads. They do not change the result.
    pub devices: Devices,
}

impl CountParams {
    /// Estimates the number of k-mers of all lanes from their first reads.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn estimate_kmers_of_lanes(&self, lanes: &[Lane]) -> Result<ExpectedKmers, Error> {
        Ok(ExpectedKmers::from_read_estimate(&ReadEstimate::estimate_reads_of_lanes(lanes)?, self.k))
    }

    /// Bytes of the memory that are reserved for device lanes: at most a quarter, and no more than the threads can
    /// spare.
    fn reserved_for_devices(&self) -> u64 {
        let left = self.memory_bytes.saturating_sub(min_memory_bytes(self.threads));
        self.devices.max_host_bytes().min(self.memory_bytes / 4).min(left)
    }

    /// Bytes of the memory that remain for the threads.
    fn memory_for_threads(&self) -> u64 {
        self.memory_bytes - self.reserved_for_devices()
    }

    /// Minimum number of partitions with which [`count_partition`] fits into memory and scratch space for the expected
    /// input; `None` if more than [`MAX_PARTITIONS`] are needed. The parameters must be valid.
    pub fn partitions_needed<const S: usize>(&self, expected: &ExpectedKmers) -> Option<u32> {
        plan::partitions_needed::<S>(expected, self)
    }

    /// Forecasts the resources of [`count_partition`] with as many partitions as needed; `None` if more than
    /// [`MAX_PARTITIONS`] are needed. The parameters must be valid, and the memory at least [`min_memory_bytes`].
    pub fn forecast_resources<const S: usize>(&self, expected: &ExpectedKmers) -> Option<CountForecast> {
        plan::forecast_count_resources::<S>(expected, self)
    }
}

/// Changes read pairs before their k-mers are counted, for example by trimming. Each thread has its own value.
pub trait PreparePair: Send {
    /// Returns the pair with the bases whose k-mers are counted. Bases appended to `added`, a multiple of k, are
    /// further k-mers of the sample: each k bases are one.
    fn prepare<'a>(&mut self, pair: ReadPair<'a>, sample: u8, added: &mut Vec<u8>) -> ReadPair<'a>;
}

/// A [`PreparePair`] that returns all pairs unchanged.
#[derive(Debug, Clone, Copy)]
pub struct KeepPairUnchanged;

impl PreparePair for KeepPairUnchanged {
    fn prepare<'a>(&mut self, pair: ReadPair<'a>, _: u8, _: &mut Vec<u8>) -> ReadPair<'a> {
        pair
    }
}

/// Joint counters of one root in `S` samples. The root is the canonical (k−2)-mer in the middle of k-mers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootCounters<const S: usize = 2> {
    /// The root, two bits per base, the first base in the highest bits.
    pub root: u64,
    /// `counts[4 * first + last][sample]`: number of occurrences of the k-mer first-root-last in `sample`, both
    /// strands summed.
    ///
    /// If the root is its own reverse complement (even k), first-root-last and its reverse complement have the same
    /// root. Their count is in the smaller of the slots `4 * first + last` and `4 * (3 - last) + (3 - first)`, and
    /// the other slot is 0.
    pub counts: [[u32; S]; 16],
}

/// Result of [`count_partition`].
#[derive(Debug)]
pub struct CountResult<P, const S: usize = 2> {
    /// Items that the closure `select` of [`count_partition`] pushed, sorted.
    pub selected: Vec<P>,
    /// k-mer spectrum of each sample: `spectra[sample][m]` is the number of distinct canonical k-mers that the sample
    /// has `m` times; the last entry includes all higher counts; entry 0 is 0.
    pub spectra: [Vec<u64>; S],
    /// Numbers of bases, k-mers, bins and bytes of the count.
    pub stats: CountStats<S>,
    /// Number of distinct roots in all samples together.
    pub roots: u64,
}

/// How many bases and k-mers were counted, and how much memory and disk space that took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountStats<const S: usize = 2> {
    /// Number of bases read, per sample, before [`PreparePair`] changes the pairs.
    pub bases: [u64; S],
    /// Number of k-mers read, per sample, in all partitions.
    pub kmers: [u64; S],
    /// Number of distinct canonical k-mers in all samples together.
    pub distinct: u64,
    /// Bytes of all super-k-mers in bins.
    pub super_kmer_bytes: u64,
    /// Bytes written to spill files.
    pub spilled_bytes: u64,
    /// Largest size of the unnamed spill file in bytes; 0 if the count read its bins from files.
    pub peak_spill_bytes: u64,
    /// Number of bins into which the k-mers were divided.
    pub bins: u64,
    /// Number of additional passes over bins whose table did not fit into memory, of threads and devices.
    pub extra_passes: u64,
}

/// Why k-mers cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reads could not be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// A parameter is out of range.
    #[error("{0}")]
    InvalidParams(String),
    /// The system could not provide memory.
    #[error(transparent)]
    Memory(#[from] genuma_machine::placement::Error),
    /// The spill file failed or is damaged.
    #[error(transparent)]
    Spill(#[from] genuma_work::spill::Error),
    /// The device that scatters reads cannot be used; the text is the reason.
    #[error("{0}")]
    ScatterDevice(String),
    /// The super-k-mers fit neither in memory nor in the scratch space.
    #[error(
        "{partition} of the k-mers does not fit into the memory and {:.1} GB of scratch space: raise --memory or --scratch", *.scratch_bytes as f64 / 1e9
    )]
    TooLarge {
        /// The partition that was counted.
        partition: Partition,
        /// Maximum size of the spill file in bytes.
        scratch_bytes: u64,
        /// Share of the input that had been read when the space was used up (above 0, at most 1).
        read_share: f64,
    },
}

#[cfg(test)]
mod tests;
