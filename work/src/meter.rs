//! How far work has come, for whoever shows progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters that readers advance and anyone may poll.
#[derive(Debug)]
pub struct Meter {
    what: &'static str,
    bytes_done: AtomicU64,
    bytes_total: AtomicU64,
    reads: AtomicU64,
    pairs: AtomicU64,
}

impl Default for Meter {
    /// Of reads.
    fn default() -> Meter {
        Meter::of("reads")
    }
}

impl Meter {
    /// Nothing done yet; the bytes are those of `what`.
    pub fn of(what: &'static str) -> Meter {
        Meter {
            what,
            bytes_done: AtomicU64::new(0),
            bytes_total: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            pairs: AtomicU64::new(0),
        }
    }

    /// What the bytes are of, for messages.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// Input bytes read so far, as they lie on the disk (compressed).
    pub fn bytes_done(&self) -> u64 {
        self.bytes_done.load(Relaxed)
    }

    /// Input bytes to read in all, as they lie on the disk; 0 before reading starts, and when a pipe is among the files.
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total.load(Relaxed)
    }

    /// Reads handed out by a reader in the order of the input so far, mates counted one by one.
    pub fn reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }

    /// Read pairs handed to the workers so far.
    pub fn pairs(&self) -> u64 {
        self.pairs.load(Relaxed)
    }

    /// More input bytes will be read.
    pub fn expect_bytes(&self, n: u64) {
        self.bytes_total.fetch_add(n, Relaxed);
    }

    /// Input bytes were read.
    pub fn add_bytes(&self, n: u64) {
        self.bytes_done.fetch_add(n, Relaxed);
    }

    /// Reads were handed out.
    pub fn add_reads(&self, n: u64) {
        self.reads.fetch_add(n, Relaxed);
    }

    /// Read pairs were handed to the workers.
    pub fn add_pairs(&self, n: u64) {
        self.pairs.fetch_add(n, Relaxed);
    }
}

/// Told what is going on.
pub trait Watch: Sync {
    /// A unit begins, or a part of one; `meter` counts the bytes it has read, when it reads.
    fn begins(&self, unit: &str, meter: Option<Arc<Meter>>);
}
