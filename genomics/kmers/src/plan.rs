//! How a counter divides its memory.

use crate::collapse::PIECE_BYTES;
use crate::superkmer::MAX_RECORD;
use crate::tally::{MIN_SLOTS, SLOT_BYTES};

/// K-mers a bin should have: at 30-fold depth or more their table then fits a core's own cache.
const KMERS_PER_BIN: u64 = 1 << 18;

const KIB: u64 = 1024;
const MIN_BINS: u64 = 16;
const MAX_BINS: u64 = 1 << 14;
const MIN_EXTENT: u64 = 4 * KIB;
const MAX_EXTENT: u64 = 256 * KIB;
const MIN_PRIVATE: u64 = 256;
const MAX_PRIVATE: u64 = 512;
const MIN_PIECES: usize = 64;
const MAX_PIECES: usize = 8192;
/// Fewer bins rather than smaller extents, as long as there are bins enough.
const GOOD_EXTENT: u64 = 16 * KIB;
/// What a thread needs beside buffers and tables: spectra, one read's minimizers.
const PER_THREAD: u64 = 64 * KIB;

/// Division of the memory. All sizes in bytes unless named otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Number of bins.
    pub bins: usize,
    /// Size of an extent, the piece in which bins grow and spill.
    pub extent: usize,
    /// Extents that may be in memory at once, at least one a bin.
    pub extents: usize,
    /// Size of the buffer each thread has for each bin.
    pub private: usize,
    /// Super-k-mers a thread holds to collapse equal ones.
    pub pieces: usize,
    /// Slots of a thread's hash table; it may hold two tables while it grows.
    pub slots: usize,
}

/// The least memory `threads` threads can count in, in bytes.
pub fn least_memory(threads: usize) -> u64 {
    let thread = (2 * MIN_SLOTS * SLOT_BYTES + 2 * MIN_PIECES * PIECE_BYTES) as u64
        + MIN_BINS * MIN_PRIVATE
        + PER_THREAD;
    2 * MIN_BINS * MIN_EXTENT + 2 * thread * threads as u64
}

impl Plan {
    /// For about `kmers` k-mers and `memory` bytes, at least [`least_memory`].
    pub fn new(kmers: u64, memory: u64, threads: usize) -> Self {
        let threads = threads as u64;
        let memory = memory - threads * PER_THREAD;
        // A quarter for extents being filled and an eighth for private buffers, at their smallest.
        let most = (memory / 4 / GOOD_EXTENT).min(memory / 8 / (threads * MIN_PRIVATE));
        let bins = (kmers / KMERS_PER_BIN).clamp(MIN_BINS, MAX_BINS).min(most.max(MIN_BINS));

        // Tables for bins four times the average whose k-mers all differ, if that leaves half for the bins. Private
        // buffers are gone before the tables come.
        let table = 2 * SLOT_BYTES as u64 * (4 * kmers / bins).max(MIN_SLOTS as u64);
        let tables = (2 * table * threads).clamp(memory / 8, memory / 2);
        let private = (tables / (threads * bins)).clamp(MIN_PRIVATE, MAX_PRIVATE);

        let pool = memory - tables.max(private * bins * threads);
        // Each thread also reads spilled extents into memory, one at a time.
        let extent = (pool / 4 / (bins + threads)).clamp(MIN_EXTENT, MAX_EXTENT) / MIN_EXTENT * MIN_EXTENT;
        let thread = (tables / threads) as usize;
        let pieces = (thread / 8 / PIECE_BYTES).clamp(MIN_PIECES, MAX_PIECES);
        Self {
            bins: bins as usize,
            extent: extent as usize,
            extents: (pool / extent - threads) as usize,
            private: private as usize,
            pieces,
            slots: (thread - pieces * PIECE_BYTES) / 2 / SLOT_BYTES,
        }
    }
}

const _: () = assert!(MIN_PRIVATE as usize >= MAX_RECORD + 8 && MIN_EXTENT >= MAX_PRIVATE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_stays_within_its_memory() {
        for threads in [1, 2, 5, 64] {
            for kmers in [0, 1_000, 280_000_000, 300_000_000_000] {
                let least = least_memory(threads);
                for memory in
                    [least, least + 1, 3 * least, 1 << 30, 1 << 34].into_iter().filter(|&m| m >= least)
                {
                    let plan = Plan::new(kmers, memory, threads);
                    let pool = (plan.extents + threads) * plan.extent;
                    let scatter = plan.private * plan.bins * threads;
                    let tables = threads * (2 * plan.slots * SLOT_BYTES + plan.pieces * PIECE_BYTES);
                    assert!(
                        (pool + scatter.max(tables)) as u64 + threads as u64 * PER_THREAD <= memory,
                        "{plan:?}"
                    );
                    assert!(plan.extents >= plan.bins && plan.slots >= MIN_SLOTS, "{plan:?}");
                }
            }
        }
    }
}
