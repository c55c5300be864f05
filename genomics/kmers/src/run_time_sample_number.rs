//! Joint counts of a number of samples that is known at run time only.
//!
//! Counters are arrays of a fixed number of samples, so the loops over k-mers exist once for each number. They are
//! compiled here, for 1, 2, 4 and [`MAX_SAMPLES`] samples; a count of three samples has a fourth counter that stays 0.

use std::path::Path;

use genuma_reads::{Lane, ProgressCounters};

use crate::{
    BinnedReadsCheckpoint, CountParams, CountStats, CountedKmersCheckpoint, Error, MAX_SAMPLES, NodeThreadsAndMemory,
    ScatteredReads, SortableKmers,
};

/// Evaluates `$result` with the constant `$S`: the smallest supported number of counters that is at least `$samples`.
macro_rules! with_counters {
    ($samples:expr, $S:ident => $result:expr) => {
        match $samples {
            0 | 1 => {
                const $S: usize = 1;
                $result
            }
            2 => {
                const $S: usize = 2;
                $result
            }
            3 | 4 => {
                const $S: usize = 4;
                $result
            }
            _ => {
                const $S: usize = MAX_SAMPLES;
                $result
            }
        }
    };
}

/// All reads of some samples as super-k-mers in bins, for a number of samples that is known at run time only.
pub struct ScatteredSamples(Box<dyn CountBins>);

/// The counted k-mers of some samples, which can be iterated once in sorted order, for a number of samples that is
/// known at run time only.
pub struct SortableSampleKmers(Box<dyn VisitKmers>);

impl ScatteredSamples {
    /// Scatters the reads of all lanes of samples 0 to `samples - 1` into bins; `samples` is at most [`MAX_SAMPLES`].
    ///
    /// # Errors
    /// As [`ScatteredReads::scatter_lanes`].
    pub fn scatter_lanes(
        samples: usize,
        lanes: &[Lane],
        params: &CountParams,
        meter: &ProgressCounters,
    ) -> Result<Self, Error> {
        Ok(with_counters!(samples, S => Self(Box::new(ScatteredReads::<S>::scatter_lanes(lanes, params, meter)?))))
    }

    /// Counts the bins, and keeps the k-mers whose total count is at least `min_count`.
    ///
    /// # Errors
    /// As [`ScatteredReads::count_and_keep_frequent_kmers`].
    pub fn count_and_keep_frequent_kmers(self, min_count: u32) -> Result<SortableSampleKmers, Error> {
        Ok(SortableSampleKmers(self.0.count_and_keep_frequent_kmers(min_count)?))
    }
}

impl SortableSampleKmers {
    /// Number of k-mers kept.
    pub fn num_kept_kmers(&self) -> u64 {
        self.0.num_kept_kmers()
    }

    /// Numbers of bases, k-mers, bins and bytes so far. Entries of samples that do not exist are 0.
    pub fn count_stats(&self) -> CountStats<MAX_SAMPLES> {
        self.0.count_stats()
    }

    /// k-mer spectrum of each counter ([`SortableKmers::spectra`]); there may be more counters than samples.
    pub fn spectra(&self) -> &[Vec<u64>] {
        self.0.spectra()
    }

    /// Memory by NUMA node ([`SortableKmers::memory_by_node`]).
    pub fn memory_by_node(&self) -> &[NodeThreadsAndMemory] {
        self.0.memory_by_node()
    }

    /// Moves k-mers to the spill file ([`SortableKmers::spill_to_shrink_memory_to`]).
    ///
    /// # Errors
    /// As [`SortableKmers::spill_to_shrink_memory_to`].
    pub fn spill_to_shrink_memory_to(&self, bytes: u64) -> Result<(), Error> {
        self.0.spill_to_shrink_memory_to(bytes)
    }

    /// Calls `each` with all kept k-mers and their counters in ascending order, and frees them
    /// ([`SortableKmers::for_each_kmer`]). There may be more counters than samples.
    ///
    /// # Errors
    /// As [`SortableKmers::for_each_kmer`].
    pub fn for_each_kmer<E>(&self, mut each: impl FnMut(u64, &[u32]) -> Result<(), E> + Send) -> Result<(), E>
    where
        E: From<Error> + Send,
    {
        let mut failure = None;
        let visited = self.0.visit_kmers(&mut |kmer, counts| match each(kmer, counts) {
            Ok(()) => true,
            Err(error) => {
                failure = Some(error);
                false
            }
        });
        match failure {
            Some(error) => Err(error),
            None => visited.map_err(E::from),
        }
    }
}

impl BinnedReadsCheckpoint {
    /// Reads all lanes of samples 0 to `samples - 1` into bins in a new file at `path`.
    ///
    /// # Errors
    /// As [`BinnedReadsCheckpoint::scatter_lanes_to_file`].
    pub fn scatter_lanes_to_file_for_samples(
        samples: usize,
        lanes: &[Lane],
        params: &CountParams,
        meter: &ProgressCounters,
        path: &Path,
    ) -> Result<Self, Error> {
        with_counters!(samples, S => BinnedReadsCheckpoint::scatter_lanes_to_file::<S>(lanes, params, meter, path))
    }
}

impl CountedKmersCheckpoint {
    /// Counts the bins in the file at `bins` with as many counters as they were read for.
    ///
    /// # Errors
    /// As [`CountedKmersCheckpoint::count_bins_to_file`].
    pub fn count_bins_to_file_for_samples(
        read: BinnedReadsCheckpoint,
        bins: &Path,
        params: &CountParams,
        min_count: u32,
        path: &Path,
    ) -> Result<Self, Error> {
        with_counters!(read.num_counters_per_kmer(), S => CountedKmersCheckpoint::count_bins_to_file::<S>(read, bins, params, min_count, path))
    }

    /// Opens the k-mers in the file at `path` with as many counters as they were counted with.
    ///
    /// # Errors
    /// As [`CountedKmersCheckpoint::open_sortable_kmers`].
    pub fn open_sortable_sample_kmers(self, params: &CountParams, path: &Path) -> Result<SortableSampleKmers, Error> {
        Ok(
            with_counters!(self.num_counters_per_kmer(), S => SortableSampleKmers(Box::new(self.open_sortable_kmers::<S>(params, path)?))),
        )
    }
}

trait CountBins {
    fn count_and_keep_frequent_kmers(self: Box<Self>, min_count: u32) -> Result<Box<dyn VisitKmers>, Error>;
}

trait VisitKmers {
    fn num_kept_kmers(&self) -> u64;
    fn count_stats(&self) -> CountStats<MAX_SAMPLES>;
    fn spectra(&self) -> &[Vec<u64>];
    fn memory_by_node(&self) -> &[NodeThreadsAndMemory];
    fn spill_to_shrink_memory_to(&self, bytes: u64) -> Result<(), Error>;
    /// Calls `each` with k-mers and counters until it returns false.
    fn visit_kmers(&self, each: &mut (dyn FnMut(u64, &[u32]) -> bool + Send)) -> Result<(), Error>;
}

impl<const S: usize> CountBins for ScatteredReads<S> {
    fn count_and_keep_frequent_kmers(self: Box<Self>, min_count: u32) -> Result<Box<dyn VisitKmers>, Error> {
        Ok(Box::new(ScatteredReads::count_and_keep_frequent_kmers(*self, min_count)?))
    }
}

/// Why the iteration over the k-mers ended early.
enum Stop {
    Requested,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(error)
    }
}

impl<const S: usize> VisitKmers for SortableKmers<S> {
    fn num_kept_kmers(&self) -> u64 {
        self.len()
    }

    fn count_stats(&self) -> CountStats<MAX_SAMPLES> {
        let stats = SortableKmers::count_stats(self);
        let padded = |numbers: [u64; S]| std::array::from_fn(|sample| numbers.get(sample).copied().unwrap_or(0));
        CountStats {
            bases: padded(stats.bases),
            kmers: padded(stats.kmers),
            distinct: stats.distinct,
            super_kmer_bytes: stats.super_kmer_bytes,
            spilled_bytes: stats.spilled_bytes,
            peak_spill_bytes: stats.peak_spill_bytes,
            bins: stats.bins,
            extra_passes: stats.extra_passes,
        }
    }

    fn spectra(&self) -> &[Vec<u64>] {
        &self.spectra
    }

    fn memory_by_node(&self) -> &[NodeThreadsAndMemory] {
        &self.memory_by_node
    }

    fn spill_to_shrink_memory_to(&self, bytes: u64) -> Result<(), Error> {
        SortableKmers::spill_to_shrink_memory_to(self, bytes)
    }

    fn visit_kmers(&self, each: &mut (dyn FnMut(u64, &[u32]) -> bool + Send)) -> Result<(), Error> {
        match self.for_each_kmer(|kmer, counts| if each(kmer, counts) { Ok(()) } else { Err(Stop::Requested) }) {
            Ok(()) | Err(Stop::Requested) => Ok(()),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}
