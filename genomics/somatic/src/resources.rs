//! Parameters of a call that determine its result, and its resource limits.

use std::path::PathBuf;

use genuma_kmers::{CountParams, Devices, Partition};
use genuma_pair::assay::Assay;
use genuma_work::timeline;
use serde::{Deserialize, Serialize};

use crate::count;

/// Parameters that determine the result of a call, in addition to the reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallParams {
    /// k-mer length in bp, 17 to 32.
    pub k: u32,
    /// Minimum Phred quality: k-mers with a base below it are not counted.
    pub min_base_quality: u8,
    /// Minimum number of occurrences of a candidate k-mer in the tumour, or in all tumours pooled; raised if errors
    /// explain as many.
    #[serde(alias = "least_tumour")]
    pub min_tumour_count: u32,
    /// Minimum somatic quality (Phred) of a call that passes.
    #[serde(alias = "least_quality")]
    pub min_quality: f64,
    /// Assay of all samples (`--assay`); `None` if it is determined from the reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assay: Option<Assay>,
}

/// Default length of k-mers in bp. Chosen: the largest odd number for which a k-mer fits one 64-bit word.
pub const DEFAULT_KMER_LENGTH: u32 = 31;

/// Default minimum number of occurrences of a k-mer in the tumour reads; rarer k-mers count as sequencing errors.
/// Chosen: the smallest number that one read alone cannot reach. Likelihoods decide later about errors that occur twice.
const MIN_TUMOUR_KMER_COUNT: u32 = 2;

/// Default minimum quality (Phred) of a call that passes. Chosen: such a call is somatic with a probability of 0.84.
const DEFAULT_MIN_QUALITY: f64 = 8.0;

/// Default minimum quality (Phred) of a call without a normal. Chosen: a call passes if it is more probably somatic than
/// not.
const DEFAULT_MIN_QUALITY_WITHOUT_NORMAL: f64 = 3.0;

impl CallParams {
    /// The default parameters of a call with or without a normal.
    pub fn with_defaults(has_normal: bool) -> CallParams {
        CallParams {
            k: DEFAULT_KMER_LENGTH,
            min_base_quality: 0,
            min_tumour_count: MIN_TUMOUR_KMER_COUNT,
            min_quality: if has_normal { DEFAULT_MIN_QUALITY } else { DEFAULT_MIN_QUALITY_WITHOUT_NORMAL },
            assay: None,
        }
    }
}

/// Resource limits of a call. They change its run time, never its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// Number of worker threads, at least 1.
    pub threads: usize,
    /// Memory budget of the process in bytes.
    pub memory: u64,
    /// Maximum number of bytes in the work folder for spilled k-mers and packed reads.
    pub scratch: u64,
    /// GPUs and other devices of this process that count in addition to the threads. Not stored in unit results.
    #[serde(skip)]
    pub devices: Devices,
}

impl Resources {
    /// Parameters of the k-mer counter. `reference` is the number of reference bases, `None` without a reference. Part
    /// of the memory, at most half, is reserved for the candidate k-mers and the k-mer sketch of each tumour and for
    /// other allocations. K-mers that do not fit in memory are spilled to the folder `work`.
    pub fn kmer_count_params(
        &self,
        params: &CallParams,
        reference: Option<u64>,
        tumours: usize,
        work: PathBuf,
    ) -> CountParams {
        let candidates = (reference.unwrap_or(0) as f64 * count::CANDIDATE_KMER_BYTES_PER_REFERENCE_BASE) as u64;
        let reserved = (candidates + SKETCH_BYTES) * tumours.max(1) as u64;
        CountParams {
            k: params.k,
            min_base_quality: params.min_base_quality,
            threads: self.threads,
            memory_bytes: self.memory.saturating_sub(RESERVED_BYTES + reserved).max(self.memory / 2),
            work_dir: work,
            max_scratch_bytes: self.scratch,
            partition: Partition::WHOLE_KMER_SPACE,
            devices: self.devices.clone(),
        }
    }

    /// Number of bytes that may be allocated now: the memory budget minus resident memory (half of the budget if it is
    /// unknown) and a reserve for small allocations.
    pub fn allocatable_memory_bytes(&self) -> u64 {
        let resident = timeline::own_resident_bytes().unwrap_or(self.memory / 2);
        self.memory.saturating_sub(resident + RESERVED_BYTES)
    }
}

/// Bytes reserved for the k-mer sketch of a tumour, which is in memory while k-mers are counted.
const SKETCH_BYTES: u64 = 112 << 20;

/// Bytes reserved for allocations other than the counter and the candidates: batches of reads, tables.
const RESERVED_BYTES: u64 = 256 << 20;
