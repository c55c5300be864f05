//! The memory of the pipeline depends on its blocks and not on the input. An allocator counts bytes, an engine counts
//! batches.
#![allow(unsafe_code)] // An allocator that counts and hands every call on to the system's.

mod synthetic;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use genuma_align::index_placement::LoadedIndex;
use synthetic::{Synthetic, run, write};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator with the same arguments; counting touches no memory of theirs.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        PEAK.fetch_max(HELD.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bases of a read, of a batch (one pair), and of a block.
const READ: usize = 8;
const PIECE: u64 = 16;
const BLOCK: u64 = 100 * PIECE;

/// Memory and batches of a run.
#[derive(Debug)]
struct Cost {
    allocations: u64,
    /// Bytes in addition to those held before the run.
    peak: usize,
}

fn cost(path: &Path, pairs: u64) -> Cost {
    write(path, pairs, READ).unwrap();
    let engine = LoadedIndex::Single(Synthetic::new(Duration::ZERO, Duration::ZERO, BLOCK));
    let (calls, held) = (CALLS.load(Relaxed), HELD.load(Relaxed));
    PEAK.store(held, Relaxed);
    let summary = run(&engine, path, pairs, PIECE, 8);
    assert_eq!(summary.num_blocks, pairs.div_ceil(BLOCK / PIECE));
    assert_eq!(summary.workers.iter().map(|worker| worker.tasks).sum::<u64>(), 2 * pairs);
    Cost { allocations: CALLS.load(Relaxed) - calls, peak: PEAK.load(Relaxed) - held }
}

#[test]
fn ten_times_the_pieces_take_no_more_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reads.fq");
    // Long enough to fill the buffers of the reader, too.
    let short = cost(&path, 30_000);
    let long = cost(&path, 300_000);
    // The number of batches in progress varies.
    assert!(long.peak <= short.peak + short.peak / 10, "{short:?} {long:?}");
    // A block allocates its list of batches and its estimate; a batch allocates nothing.
    let more = long.allocations.saturating_sub(short.allocations);
    assert!(more < 270_000 / 10, "{short:?} {long:?}");
}
