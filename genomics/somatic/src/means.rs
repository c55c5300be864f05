//! What the result of a call depends on, and the means to make it with.

use std::path::PathBuf;

use genuma_kmers::{CountParams, Devices, Part};
use genuma_work::timeline;
use serde::{Deserialize, Serialize};

use crate::count;

/// Everything the result of a call depends on, beside the reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// k-mer length, 24..=32.
    pub k: u32,
    /// k-mers with a base under this Phred quality are not counted.
    pub min_base_quality: u8,
    /// Fewest tumour occurrences of an interesting k-mer.
    pub least_tumour: u32,
    /// Lowest quality that passes.
    pub least_quality: f64,
}

/// The means: they change how long a call takes, never its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Means {
    /// Worker threads, at least 1.
    pub threads: usize,
    /// Memory budget of the process in bytes.
    pub memory: u64,
    /// Bytes that k-mers which do not fit in it, and a packed copy of the reads, may take in the work folder.
    pub scratch: u64,
    /// Devices that count beside the threads: those of this process, whatever another had.
    #[serde(skip)]
    pub devices: Devices,
}

impl Means {
    /// What counting with `params` gets of them, where the reference has so many bases and there are so many tumours, each with picks and a sample of roots
    /// of its own; k-mers that have no room go to `work`.
    pub fn counting(
        &self,
        params: &Params,
        reference: Option<u64>,
        tumours: usize,
        work: PathBuf,
    ) -> CountParams {
        let picks = (reference.unwrap_or(0) as f64 * count::PICKS_PER_BASE) as u64;
        let beside = (picks + SAMPLED) * tumours.max(1) as u64;
        CountParams {
            k: params.k,
            min_base_quality: params.min_base_quality,
            threads: self.threads,
            memory: self.memory.saturating_sub(RESERVE + beside).max(self.memory / 2),
            work,
            scratch: self.scratch,
            part: Part::WHOLE,
            devices: self.devices.clone(),
        }
    }

    /// Bytes that may be taken now beside what the process holds, less what is kept free for small things.
    pub fn room(&self) -> u64 {
        let held = timeline::resident().unwrap_or(self.memory / 2);
        self.memory.saturating_sub(held + RESERVE)
    }
}

/// Bytes of a tumour's sample of roots, which is there while k-mers are counted.
const SAMPLED: u64 = 112 << 20;

/// Bytes kept free for what is not the counter's beside the picks: batches, tables.
const RESERVE: u64 = 256 << 20;
