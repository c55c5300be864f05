//! The memory below which a call does not start.

use genuma_kmers::min_memory_bytes;

/// Minimum memory of a call, however small its input (bytes). A call with less is refused. Measured: 90 MiB with two
/// threads on 0.2 Mbp.
const BASE_MEMORY_BYTES: u64 = 96 << 20;
/// Minimum memory for the reads that one thread processes (bytes).
const MEMORY_PER_THREAD_BYTES: u64 = 16 << 20;

/// Returns the minimum memory of a call with this number of threads and without a reference (bytes). A call with less
/// is refused.
pub fn min_memory_bytes_without_reference(threads: usize) -> u64 {
    (BASE_MEMORY_BYTES + MEMORY_PER_THREAD_BYTES * threads as u64).max(2 * min_memory_bytes(threads))
}

/// Returns the minimum memory of a call (bytes). The reference takes one byte a base. The result is rounded up to MiB,
/// so that the value shown in messages is sufficient.
pub fn min_call_memory_bytes(threads: usize, reference: Option<u64>) -> u64 {
    (min_memory_bytes_without_reference(threads) + reference.unwrap_or(0)).next_multiple_of(1 << 20)
}
