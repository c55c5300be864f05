//! The aligner as an engine: it turns the reads of a batch into alignment records. The only engine is
//! [`GenumaEngine`]. Tests use an engine that only waits.
//!
//! An engine does not start threads. The caller gives each worker an [`Engine::WorkerState`], splits the reads as the
//! engine's [`BlockRule`] requires, and calls three functions:
//!
//! 1. [`Engine::map_batch`] for each *batch* (some consecutive reads: a [`ReadBatch`]), on any worker: maps every read
//!    separately. The result is an [`Engine::MappedBatch`].
//! 2. [`Engine::estimate_library`] once for each *block* (some consecutive batches), when all its batches are mapped:
//!    estimates the insert sizes from the whole block. This is the only barrier, and it is cheap.
//! 3. [`Engine::write_records`] for each batch with the estimate of its block, on any worker: pairs the mates,
//!    searches for unplaced mates near their mates (mate rescue), and appends the records.
//!
//! ```text
//!            batch 1 -> map -> mapped 1 -.             .-> write -> records 1
//!   block    batch 2 -> map -> mapped 2 --+- estimate -+-> write -> records 2
//!            batch 3 -> map -> mapped 3 -'             '-> write -> records 3
//! ```
//!
//! Workers do not wait at the barrier: they map batches of the next block meanwhile. Two blocks in progress are
//! enough.
//!
//! The block boundaries affect the records, because the insert sizes are estimated from the block. So the engine sets
//! the size of a block. The division of a block into batches has no effect. A block never extends beyond the end of a
//! lane. So the records depend on the reads of a lane only, not on threads, batches or placement.
//!
//! Pairs have blocks of 25 Mbp by default. Reads without mates are independent of each other: each of their batches is
//! a block.
//!
//! Records are BAM records back to back, each with its `block_size` (see [`crate::sam`]). Reads are in input order;
//! the further records of a read directly follow its first record.

use std::path::{Path, PathBuf};

use genuma_reads::ReadBatch;

use crate::sam::{self, Contigs};

pub mod seal;
mod file_in_memory;
pub mod genuma;

pub use genuma::GenumaEngine;

/// Why an index cannot be built or loaded, or why a read cannot be mapped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reference cannot be read, or a file of the index cannot be written. The message names the file.
    #[error(transparent)]
    File(#[from] genuma_reads::Error),
    /// A file of the index cannot be published under its final name.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file with which the operation failed.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The index does not exist.
    #[error("{path}: no index; make it with `genuma index {reference}`")]
    NoIndex {
        /// Path of the index file that does not exist.
        path: PathBuf,
        /// Path of the FASTA file from which the index can be made.
        reference: PathBuf,
    },
    /// The index is damaged, or is the index of another reference.
    #[error("{path}: {reason}; make the index again with `genuma index`")]
    Index {
        /// Path of the index file.
        path: PathBuf,
        /// What is wrong with the index.
        reason: String,
    },
    /// The reference cannot be indexed, it changed meanwhile, or its list of ALT contigs is not valid.
    #[error("{path}: {reason}")]
    Reference {
        /// Path of the FASTA file of the reference, or of the list of ALT contigs.
        path: PathBuf,
        /// What is wrong with this file.
        reason: String,
    },
    /// A read whose name would make its SAM record a header line.
    #[error("read {name}: its name begins with '@', so SAM cannot hold it: rename the reads")]
    NameBeginsWithAt {
        /// Name of the read that cannot be aligned or written.
        name: String,
    },
    /// A read that the engine cannot map, or whose record BAM cannot hold.
    #[error("read {name}: {reason}")]
    Read {
        /// Name of the read that cannot be aligned or written.
        name: String,
        /// What is wrong with the read.
        reason: String,
    },
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_path_buf(), source }
    }

    fn read(name: &[u8], reason: impl ToString) -> Error {
        let name = match name {
            [] => "without a name".to_owned(),
            _ => String::from_utf8_lossy(name).into_owned(),
        };
        Error::Read { name, reason: reason.to_string() }
    }

    fn record(name: &[u8]) -> impl FnOnce(sam::Error) -> Error + '_ {
        move |reason| Error::read(name, reason)
    }
}

/// Whether the reads of a lane have mates, and in which files the mates are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLayout {
    /// Reads without mates: each read is a template.
    Single,
    /// Read pairs: read 1 and read 2 are in two files.
    Paired,
    /// Read pairs: read 1 and read 2 alternate in one file.
    Interleaved,
}

/// How the reads of a lane are grouped into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockRule {
    /// Reads are independent of each other: each batch is a block and may have any size.
    EachBatch,
    /// A block ends with the template with which the block reaches this number of bases (bp), or at the end of the
    /// lane. A block has one or more batches.
    MinBases(u64),
}

/// Name and version of an aligner, for the `@PG` header line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlignerNameAndVersion {
    /// Program name (`ID` and `PN`).
    pub name: &'static str,
    /// Program version (`VN`).
    pub version: &'static str,
}

/// A large array of a loaded index. Its memory pages can be placed on NUMA nodes.
#[derive(Debug, Clone, Copy)]
pub struct IndexArray<'a> {
    /// Content of the array, such as `buckets`.
    pub name: &'static str,
    /// The memory of the array.
    pub bytes: &'a [u8],
}

/// An aligner with its index in memory, shared by all workers.
///
/// The thread that loads the index is the first to write to its large arrays, so that the memory policy of this thread
/// decides on which NUMA nodes the pages are. An engine may be loaded several times: one copy for each NUMA node.
pub trait Engine: Send + Sync {
    /// Buffers of one worker, reused for all its batches.
    type WorkerState: Send;
    /// Result of [`Engine::map_batch`], used by [`Engine::write_records`]. It is reused: each `map_batch` replaces the
    /// previous result.
    type MappedBatch: Default + Send;
    /// Properties of the library that are estimated from the reads of a block, above all the insert sizes.
    type LibraryEstimate: Send + Sync;

    /// Name and version for the header.
    fn program(&self) -> AlignerNameAndVersion;

    /// The reference sequences, in the order of the `@SQ` lines.
    fn contigs(&self) -> &Contigs;

    /// How reads with this layout must be grouped into blocks.
    fn block_rule(&self, layout: ReadLayout) -> BlockRule;

    /// Memory (bytes) of the index.
    fn memory_bytes(&self) -> u64;

    /// The large arrays of the index; empty if the engine does not expose them.
    fn index_arrays(&self) -> Vec<IndexArray<'_>>;

    /// Creates the buffers of one worker.
    fn new_worker_state(&self) -> Self::WorkerState;

    /// Finds the placements of each read of a batch, without regard to its mate, and stores them in `mapped`.
    ///
    /// # Errors
    /// A read cannot be mapped.
    fn map_batch(
        &self,
        state: &mut Self::WorkerState,
        reads: &ReadBatch,
        mapped: &mut Self::MappedBatch,
    ) -> Result<(), Error>;

    /// Estimates the insert sizes from all mapped batches of a block, which are given in input order.
    fn estimate_library<'d>(
        &self,
        mapped_batches: impl Iterator<Item = &'d Self::MappedBatch>,
    ) -> Self::LibraryEstimate
    where
        Self::MappedBatch: 'd;

    /// Pairs the mates of a batch and appends all its records to `out`.
    ///
    /// # Errors
    /// A record cannot be represented in BAM; `out` then ends with a part of the batch.
    fn write_records(
        &self,
        state: &mut Self::WorkerState,
        reads: &ReadBatch,
        mapped: &mut Self::MappedBatch,
        estimate: &Self::LibraryEstimate,
        out: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// Numbers of reads for which this worker has skipped or dropped placements so far, as pairs of a kind and a
    /// number. The kind `reads` counts a read once, even if several kinds apply.
    fn skipped_reads(&self, _state: &Self::WorkerState) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Maps all batches of a block, estimates the insert sizes and appends the records to `out`, on the calling
    /// thread.
    ///
    /// `mapped_batches` is a reusable buffer; it grows to one item for each batch.
    ///
    /// # Errors
    /// The errors of [`Engine::map_batch`] and [`Engine::write_records`].
    fn align_block(
        &self,
        state: &mut Self::WorkerState,
        batches: &[ReadBatch],
        mapped_batches: &mut Vec<Self::MappedBatch>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        mapped_batches.resize_with(batches.len().max(mapped_batches.len()), Default::default);
        let mapped_batches = &mut mapped_batches[..batches.len()];
        for (reads, mapped) in batches.iter().zip(&mut *mapped_batches) {
            self.map_batch(state, reads, mapped)?;
        }
        let estimate = self.estimate_library(mapped_batches.iter());
        for (reads, mapped) in batches.iter().zip(mapped_batches) {
            self.write_records(state, reads, mapped, &estimate, out)?;
        }
        Ok(())
    }
}

/// Appends `.extension` to the file name of `prefix`, whether or not it has an extension.
fn append_extension(prefix: &Path, extension: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}
