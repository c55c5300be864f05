//! Scratch space of the counting unit: whether the packed reads fit beside the k-mers, and what becomes of them.

use genuma_kmers::{CountForecast, CountParams, ExpectedKmers, MAX_SAMPLES};
use genuma_reads::ReadEstimate;
use genuma_reads::packed_reads::{self, PackedReadBlockIndex};

use super::Error;
use crate::ledger::Ledger;

/// Expected number of bytes of recruited pairs in the work folder for each base of the reads. They are stored in
/// addition to the packed reads.
const RECRUITED_BYTES_PER_BASE: f64 = 1.0 / 16.0;

/// Number of bytes of scratch space to use for the packed reads. `None` if their size cannot be estimated, or if the
/// scratch space cannot hold them in addition to the k-mers of a single counting pass and, later, the recruited pairs.
pub fn packed_reads_budget_bytes(
    params: &CountParams,
    samples: usize,
    expected: &ExpectedKmers,
    estimate: &ReadEstimate,
) -> Option<u64> {
    let budget_bytes = min_packed_reads_bytes(params, estimate);
    let left = params.max_scratch_bytes.checked_sub(budget_bytes)?;
    let context = CountParams { max_scratch_bytes: left, ..params.clone() };
    let fits = min_partitions_for_samples(&context, samples, expected) == Some(1)
        && left >= expected_recruited_bytes(estimate);
    (fits && estimate.packed_bytes > 0).then_some(budget_bytes)
}

/// Number of bytes of scratch space that suffice for the packed reads together with the spilled k-mers of one counting
/// pass, and later with the recruited pairs.
pub fn scratch_bytes_for_reads_and_kmers(
    params: &CountParams,
    samples: usize,
    expected: &ExpectedKmers,
    estimate: &ReadEstimate,
) -> u64 {
    let none = CountParams { max_scratch_bytes: 0, ..params.clone() };
    let spill_peak_bytes = match min_partitions_for_samples(&none, samples, expected) {
        Some(1) => 0,
        _ => expected.super_kmer_bytes + expected.super_kmer_bytes / 16,
    };
    min_packed_reads_bytes(params, estimate) + spill_peak_bytes.max(expected_recruited_bytes(estimate))
}

/// Minimum number of partitions into which the k-mers of `samples` samples must be divided: see
/// [`CountParams::partitions_needed`]. `None` if more than [`genuma_kmers::MAX_PARTITIONS`] are needed.
pub(super) fn min_partitions_for_samples(
    params: &CountParams,
    samples: usize,
    expected: &ExpectedKmers,
) -> Option<u32> {
    match samples {
        0..=2 => params.partitions_needed::<2>(expected),
        3 | 4 => params.partitions_needed::<4>(expected),
        _ => params.partitions_needed::<MAX_SAMPLES>(expected),
    }
}

/// Expected memory and scratch use of counting the k-mers of `samples` samples: see
/// [`CountParams::forecast_resources`].
pub fn forecast_counting_resources(
    params: &CountParams,
    samples: usize,
    expected: &ExpectedKmers,
) -> Option<CountForecast> {
    match samples {
        0..=2 => params.forecast_resources::<2>(expected),
        3 | 4 => params.forecast_resources::<4>(expected),
        _ => params.forecast_resources::<MAX_SAMPLES>(expected),
    }
}

/// Number of bytes to reserve for the packed reads: their estimated size, a sixteenth as margin, and a block for each
/// thread, because the last block of a thread is not full.
fn min_packed_reads_bytes(params: &CountParams, estimate: &ReadEstimate) -> u64 {
    estimate.packed_bytes + estimate.packed_bytes / 16 + (params.threads * packed_reads::FULL_BLOCK_BYTES) as u64
}

/// Expected size in bytes of the recruited pairs in the work folder.
fn expected_recruited_bytes(estimate: &ReadEstimate) -> u64 {
    (estimate.bases as f64 * RECRUITED_BYTES_PER_BASE) as u64
}

/// Whether the packed reads were stored, or why they were not.
pub(super) enum PackedReadsOutcome {
    Complete(PackedReadBlockIndex),
    /// Each shard of the reads has its own packed reads (distributed call).
    PerShard,
    /// The scratch space is too small for the packed reads, which need this number of bytes.
    ScratchTooSmall(u64),
    /// The packed reads exceeded their limit of this number of bytes.
    LimitExceeded(u64),
    /// The file of the packed reads, with a limit of this number of bytes, could not be written.
    WriteFailed(u64),
}

impl PackedReadsOutcome {
    /// Returns the index of the packed reads, if they were stored.
    pub(super) fn into_packed_reads_index(self) -> Option<PackedReadBlockIndex> {
        match self {
            PackedReadsOutcome::Complete(packed_reads) => Some(packed_reads),
            _ => None,
        }
    }

    /// Adds a line about the packed reads to the ledger.
    pub(super) fn add_to_ledger(&self, ledger: &mut Ledger) {
        let mut no = |why: &str, bytes| {
            let what =
                format!("bytes of packed reads that were not written, {why}: later passes read the input files again");
            ledger.append_skipped_line("count", &what, bytes);
        };
        match self {
            // Its bytes go by which thread had which pairs.
            PackedReadsOutcome::Complete(copied) => {
                ledger.append_produced_line("count", PACKED_READS_LEDGER_LINE, copied.num_pairs())
            }
            PackedReadsOutcome::PerShard => {}
            PackedReadsOutcome::ScratchTooSmall(bytes) => no("because the scratch space is too small", *bytes),
            PackedReadsOutcome::LimitExceeded(bytes) => no("because they exceeded this limit", *bytes),
            PackedReadsOutcome::WriteFailed(bytes) => no("because of a write error", *bytes),
        }
    }
}

/// Name of the ledger line that counts the read pairs stored as packed reads in the work folder.
pub const PACKED_READS_LEDGER_LINE: &str = "pairs in the packed reads in the work folder, which later passes read";

/// Share of the scratch space for packed reads if reads come from pipes; the k-mers get the rest. A base takes 0.55 to
/// 1.3 bytes in packed reads and up to 1.3 bytes in k-mers.
pub(super) const PACKED_READS_SHARE_OF_PIPE_SCRATCH: f64 = 0.45;

/// Bytes of scratch space that always suffice for each base of reads from pipes.
const PIPED_SCRATCH_BYTES_PER_BASE: f64 = 2.6;

/// Makes the error for reads from a pipe whose k-mers and packed reads do not fit in the scratch space. Such reads can
/// be read only once. `bases` is the number of bases, if all of them were read.
pub(super) fn make_pipe_scratch_error(bases: Option<u64>) -> Error {
    let advice = match bases {
        Some(bases) => {
            let gib = (bases as f64 * PIPED_SCRATCH_BYTES_PER_BASE / f64::from(1 << 30)).ceil() as u64;
            format!("for {bases} bases set --scratch {gib}G and use a work folder with that much free space")
        }
        None => {
            "set --scratch to 2.6 bytes per base or more and use a work folder with that much free space".to_owned()
        }
    };
    Error::Input(format!(
        "reads from a pipe cannot be read again, and the scratch space is too small for their k-mers and packed reads: {advice}, \
         or increase --memory, or save the reads to files"
    ))
}
