//! Counters of the progress of a run, and the trait [`ProgressListener`], through which a command displays them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Progress counters that reader threads increment and any thread may read.
#[derive(Debug)]
pub struct ProgressCounters {
    counted_contents: &'static str,
    bytes_done: AtomicU64,
    bytes_total: AtomicU64,
    reads: AtomicU64,
    pairs: AtomicU64,
}

impl Default for ProgressCounters {
    /// Creates counters with the contents `reads`.
    fn default() -> ProgressCounters {
        ProgressCounters::new("reads")
    }
}

impl ProgressCounters {
    /// Creates counters, all zero. `counted_contents` is a noun for what the counted bytes contain, for messages:
    /// `reads`.
    pub fn new(counted_contents: &'static str) -> ProgressCounters {
        ProgressCounters {
            counted_contents,
            bytes_done: AtomicU64::new(0),
            bytes_total: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            pairs: AtomicU64::new(0),
        }
    }

    /// What the counted bytes contain, as a noun for messages, for example `reads`.
    pub fn counted_contents(&self) -> &'static str {
        self.counted_contents
    }

    /// Input bytes read so far, as stored on disk (compressed). Where a genome is scanned instead of a file: bases.
    pub fn bytes_done(&self) -> u64 {
        self.bytes_done.load(Relaxed)
    }

    /// Total input bytes as stored on disk (compressed); 0 before reading starts and if one of the inputs is a pipe.
    /// Where a genome is scanned instead of a file: bases.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total.load(Relaxed)
    }

    /// Number of reads that have been read in input order so far; each mate counts as one.
    pub fn num_reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }

    /// Number of read pairs given to worker threads so far.
    pub fn num_pairs(&self) -> u64 {
        self.pairs.load(Relaxed)
    }

    /// Increases the total number of input bytes ([`Self::bytes_total`]).
    pub fn add_expected_bytes(&self, n: u64) {
        self.bytes_total.fetch_add(n, Relaxed);
    }

    /// Increases the number of input bytes read.
    pub fn add_bytes(&self, n: u64) {
        self.bytes_done.fetch_add(n, Relaxed);
    }

    /// Increases the number of reads that have been read in input order.
    pub fn add_reads(&self, n: u64) {
        self.reads.fetch_add(n, Relaxed);
    }

    /// Increases the number of read pairs given to worker threads.
    pub fn add_pairs(&self, n: u64) {
        self.pairs.fetch_add(n, Relaxed);
    }
}

/// Receives notifications about the progress of a run, for example to display it.
pub trait ProgressListener: Sync {
    /// Called when a unit or a part of a unit starts. `progress` counts the bytes that it reads; `None` if it reads no
    /// input.
    fn unit_started(&self, unit: &str, progress: Option<Arc<ProgressCounters>>);
}
