//! Predicts the resources of each step of a distributed call, to request them from a cluster's scheduler.

use genuma_kmers::{BinGrid, min_memory_bytes_for_grid};
use genuma_somatic::distributed_call::StepKind;
use genuma_somatic::pipeline::Resources;

use crate::input::ForecastInput;
use crate::min_memory::min_call_memory_bytes;
use crate::rates::CostRates;
use crate::units::UnitForecast;

/// Predicted resources of one task of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepTaskForecast {
    /// The step that the task belongs to.
    pub kind: StepKind,
    /// CPU seconds, summed over all threads.
    pub cpu_s: f64,
    /// Wall-clock time (s).
    pub wall_s: f64,
    /// Memory to request (bytes): the predicted peak with a margin, but no more than a task may use, unless the
    /// reference needs more.
    pub memory_bytes: u64,
    /// Disk space to request for the task's own work folder (bytes), with a margin.
    pub scratch_bytes: u64,
}

/// Share of the CPU time of counting that the step `scatter` takes; the step `count` takes the rest. Measured
/// (docs/evidence/2026-11-24-distributed-call.md).
const SCATTER_SHARE_OF_COUNT: f64 = 0.69;
/// Share of the CPU time of assembling that the step `label` takes; the step `assemble` takes the rest. Estimated.
const LABEL_SHARE_OF_ASSEMBLE: f64 = 0.7;
/// Share of the CPU time of the comparison with the reference that the step `pick` takes, besides a scan of the
/// reference. Estimated.
const PICK_SHARE_OF_REFERENCE: f64 = 0.5;
/// Memory of the selected k-mers before they are compared with the reference, which bounds their number (bytes per base
/// of the reference). Estimated.
const SELECTED_KMER_BYTES_PER_REFERENCE_BASE: f64 = 1.2;
/// Memory of the buffers of one thread that counts a partition (bytes). Estimated.
const COUNT_BUFFER_BYTES_PER_THREAD: f64 = 64e6;
/// Size of the k-mers that the step `scatter` writes (bytes per base of the reads).
const KMER_BYTES_PER_BASE: f64 = 1.0;
/// Factor by which requested memory and disk space exceed the expected ones, because shards and partitions differ in
/// size. Chosen.
const SAFETY_FACTOR: f64 = 1.3;
/// Minimum memory that is requested for a task (bytes).
const MIN_STEP_MEMORY_BYTES: u64 = 512 << 20;

impl ForecastInput {
    /// Predicts the resources of one task of each step, for reads in `shards` shards. `self.resources` are the
    /// resources that a task may use.
    pub fn forecast_steps(&self, shards: u32, grid: BinGrid, rates: &CostRates) -> Vec<StepTaskForecast> {
        let threads = self.resources.threads;
        let (shards, parts) = (f64::from(shards.max(1)), f64::from(grid.num_partitions));
        let unit = |name: &str| self.forecast_unit(name, 1, true, rates);
        let reference_bytes = self.reference_bases.unwrap_or(0) as f64;
        let all_bases = self.bases.iter().sum::<u64>() as f64;
        let base = rates.base_bytes + rates.thread_bytes * threads as f64;
        let tumour = self.bases[1] as f64 / 1e9;
        let candidate_bytes = rates.candidate_kmer_bytes * tumour;
        let evidence_bytes = self.sketch_and_library_memory_bytes(rates) as f64;
        let waiting = rates.waiting_mates_bytes * self.num_aligned_files as f64;
        let panel = self.panel.map_or(0, |panel| panel.filter_and_index_bytes) as f64;
        let recruited = rates.recruited_disk_bytes * all_bases / 1e9;
        let step = |kind: StepKind| {
            let cost_of = |name: &str, share: f64| {
                unit(name)
                    .map_or((0.0, 0.0), |UnitForecast { cpu_s, peak_bytes, .. }| (cpu_s * share, peak_bytes as f64))
            };
            let kmers = all_bases / shards * KMER_BYTES_PER_BASE;
            let (cpu_s, peak, scratch) = match kind {
                StepKind::Scatter => {
                    let min_scatter_bytes = min_memory_bytes_for_grid(grid, threads) as f64;
                    (
                        cost_of("count", SCATTER_SHARE_OF_COUNT / shards).0,
                        base + kmers + min_scatter_bytes + evidence_bytes + waiting,
                        kmers,
                    )
                }
                StepKind::Count => {
                    let selected = SELECTED_KMER_BYTES_PER_REFERENCE_BASE * reference_bytes / parts;
                    (
                        cost_of("count", (1.0 - SCATTER_SHARE_OF_COUNT) / parts).0,
                        base + selected + evidence_bytes + COUNT_BUFFER_BYTES_PER_THREAD * threads as f64,
                        0.0,
                    )
                }
                StepKind::Pick => {
                    let scan = rates.scan_reference_cpu_s * reference_bytes / 1e9;
                    (
                        cost_of("reference", PICK_SHARE_OF_REFERENCE).0 + scan,
                        base + (1.0 + SELECTED_KMER_BYTES_PER_REFERENCE_BASE) * reference_bytes + candidate_bytes,
                        0.0,
                    )
                }
                StepKind::Label => {
                    (cost_of("assemble", LABEL_SHARE_OF_ASSEMBLE / shards).0, base + candidate_bytes, 0.0)
                }
                StepKind::Assemble => (
                    cost_of("assemble", 1.0 - LABEL_SHARE_OF_ASSEMBLE).0,
                    cost_of("assemble", 1.0).1,
                    rates.candidate_pair_bytes * tumour,
                ),
                StepKind::Place => (cost_of("place", 1.0).0, cost_of("place", 1.0).1, 0.0),
                StepKind::Recruit => {
                    (cost_of("recruit", 1.0 / shards).0, cost_of("recruit", 1.0).1 - reference_bytes, 0.0)
                }
                StepKind::Finish => {
                    // The pairs get half of the memory that is left. With less memory than this they are processed in
                    // several ranges, each read four times.
                    let twice = rates.recruited_memory_bytes * all_bases / 1e9;
                    let cpu_s = cost_of("judge", 1.0).0 + cost_of("write", 1.0).0;
                    (cpu_s, (cost_of("write", 1.0).1 + twice).max(base + candidate_bytes + panel), 2.0 * recruited)
                }
            };
            StepTaskForecast {
                kind,
                cpu_s,
                wall_s: cpu_s / (threads as f64 * rates.busy_share),
                memory_bytes: self.requested_memory_bytes(kind, peak),
                scratch_bytes: (scratch * SAFETY_FACTOR) as u64,
            }
        };
        StepKind::ALL_STEP_KINDS.into_iter().map(step).collect()
    }

    /// Returns the memory to request for a task of a step that is expected to use `peak` bytes.
    fn requested_memory_bytes(&self, kind: StepKind, peak: f64) -> u64 {
        let Resources { threads, memory, .. } = self.resources;
        let needed =
            ((peak * SAFETY_FACTOR) as u64).max(MIN_STEP_MEMORY_BYTES).max(min_call_memory_bytes(threads, None));
        // More memory than allowed is requested only if the reference needs it.
        let floor = if matches!(kind, StepKind::Pick | StepKind::Place | StepKind::Finish) {
            min_call_memory_bytes(threads, self.reference_bases)
        } else {
            0
        };
        needed.min(memory).max(floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_forecast::tests::human_genome_input;
    use crate::rates::MEASURED_RATES;

    #[test]
    fn more_shards_and_partitions_make_smaller_steps_and_no_less_work() {
        let resources = Resources { threads: 4, memory: 16 << 30, scratch: 1 << 40, devices: Default::default() };
        let given = ForecastInput { resources, ..human_genome_input() };
        let steps =
            |n: u32| given.forecast_steps(n, genuma_kmers::bin_grid_for_kmers(150_000_000_000, n), &MEASURED_RATES);
        let (few, many) = (steps(8), steps(32));
        let all = |steps: &[StepTaskForecast], n: u32| -> f64 {
            let tasks =
                |kind| if kind == StepKind::Count || StepKind::has_task_per_shard(kind) { f64::from(n) } else { 1.0 };
            steps.iter().map(|need| need.cpu_s * tasks(need.kind)).sum()
        };
        assert!(all(&many, 32) >= all(&few, 8) && all(&many, 32) < 1.1 * all(&few, 8));
        for (few, many) in few.iter().zip(&many) {
            assert_eq!(few.kind, many.kind);
            assert!(many.cpu_s <= few.cpu_s && many.memory_bytes <= few.memory_bytes, "{few:?} {many:?}");
            assert!((MIN_STEP_MEMORY_BYTES..=16 << 30).contains(&many.memory_bytes), "{many:?}");
        }
        let tiny = ForecastInput { bases: [1000; 2], reference_bases: Some(500), ..given };
        assert!(
            tiny.forecast_steps(1, BinGrid { num_partitions: 1, bins_per_partition: 16 }, &MEASURED_RATES)
                .iter()
                .all(|need| need.memory_bytes < 1 << 30)
        );
    }
}
