//! Estimates how long measurement jobs take. The constants are rough, rather too slow values for servers of the last
//! ten years.

use super::sizes::CacheSizesAndBufferLimits;
use super::{BandwidthJob, LatencyJob, LoadedLatencyJob, MeasurementJob};
use crate::bandwidth_kernels::CACHE_LINE_BYTES;
use crate::profile::{BandwidthKernel, BufferPageKind, MemoryLocation};

/// Seconds per byte to allocate, write and check a buffer.
const PLACING_S_PER_BYTE: f64 = 0.6e-9;
/// Seconds per cache line to link a pointer chain: within the caches, beyond the caches.
const LINKING_S_PER_LINE: (f64, f64) = (15e-9, 90e-9);
/// Bandwidth in GB/s of sequential kernels: of one thread, and the limit of all threads of one node.
const SEQUENTIAL_GBS: (f64, f64) = (8.0, 24.0);
/// Bandwidth in GB/s of random and strided kernels: of one thread, and the limit of all threads of one node.
const RANDOM_GBS: (f64, f64) = (3.0, 16.0);
/// Seconds to start and join one thread of a job.
const START_S_PER_THREAD: f64 = 200e-6;

/// Estimates the seconds of each job, run in this order.
pub(super) fn estimate_seconds_of_each_job(jobs: &[MeasurementJob], sizes: &CacheSizesAndBufferLimits) -> Vec<f64> {
    let mut kept = ReusedBuffers::default();
    let time = |job: &MeasurementJob| match job {
        MeasurementJob::Latency(chase) => kept.chain_seconds(chase) + latency_seconds(chase, sizes),
        MeasurementJob::Bandwidth(stream) => {
            kept.arrays_seconds(&stream.memory, stream.pages, stream.arrays_bytes) + bandwidth_seconds(stream)
        }
        MeasurementJob::LoadedLatency(loaded) => {
            let spot = MemoryLocation::Node(loaded.latency_job.memory_node);
            let placing = kept.chain_seconds(&loaded.latency_job)
                + kept.arrays_seconds(&spot, loaded.latency_job.pages, loaded.arrays_bytes);
            placing + loaded_latency_seconds(loaded, sizes)
        }
    };
    jobs.iter().map(time).collect()
}

/// Buffers that earlier jobs allocated and the next job can use.
#[derive(Default)]
struct ReusedBuffers {
    chain: Option<(u32, BufferPageKind, u64)>,
    arrays: Option<(MemoryLocation, BufferPageKind, u64)>,
}

impl ReusedBuffers {
    /// Seconds to allocate the buffer of a pointer chain; 0 if the last job used the same buffer.
    fn chain_seconds(&mut self, chase: &LatencyJob) -> f64 {
        let wanted = Some((chase.memory_node, chase.pages, chase.buffer_bytes));
        let same = std::mem::replace(&mut self.chain, wanted) == wanted;
        if same { 0.0 } else { chase.buffer_bytes as f64 * PLACING_S_PER_BYTE }
    }

    /// Seconds to allocate arrays; 0 if the last job used the same arrays.
    fn arrays_seconds(&mut self, spot: &MemoryLocation, pages: BufferPageKind, bytes: u64) -> f64 {
        let wanted = Some((spot.clone(), pages, bytes));
        let same = self.arrays == wanted;
        self.arrays = wanted;
        if same { 0.0 } else { bytes as f64 * PLACING_S_PER_BYTE }
    }
}

fn linking_seconds(chase: &LatencyJob, sizes: &CacheSizesAndBufferLimits) -> f64 {
    let lines = (chase.chain_bytes / CACHE_LINE_BYTES as u64) as f64;
    let beyond = sizes.num_warm_up_loads_for_chain(chase.chain_bytes) < chase.chain_bytes / CACHE_LINE_BYTES as u64;
    lines * if beyond { LINKING_S_PER_LINE.1 } else { LINKING_S_PER_LINE.0 }
}

fn latency_seconds(chase: &LatencyJob, sizes: &CacheSizesAndBufferLimits) -> f64 {
    let load_s = sizes.estimate_latency_ns(chase.chain_bytes, chase.pages) / 1e9;
    let loads = chase.warm_up_loads + chase.loads_per_repetition * u64::from(chase.repetitions);
    START_S_PER_THREAD + linking_seconds(chase, sizes) + loads as f64 * load_s
}

fn bandwidth_seconds(stream: &BandwidthJob) -> f64 {
    let length = stream.arrays_bytes / 3 / size_of::<f64>() as u64;
    let bytes = stream.kernel.counted_bytes_per_pass(length as usize) as f64;
    let (one, most) = match stream.kernel {
        BandwidthKernel::Random | BandwidthKernel::Strided => RANDOM_GBS,
        _ => SEQUENTIAL_GBS,
    };
    let threads = stream.cpus.len() as f64;
    let passes = f64::from(stream.repetitions + 1);
    threads * START_S_PER_THREAD + passes * bytes / 1e9 / (one * threads).min(most)
}

fn loaded_latency_seconds(loaded: &LoadedLatencyJob, sizes: &CacheSizesAndBufferLimits) -> f64 {
    let chase = &loaded.latency_job;
    let load_s = sizes.estimate_latency_ns(chase.chain_bytes, chase.pages) / 1e9;
    // Under full load a memory access takes several times as long.
    let walking = (chase.loads_per_repetition * u64::from(chase.repetitions)) as f64 * load_s * 3.0;
    let warm = chase.warm_up_loads as f64 * load_s;
    linking_seconds(chase, sizes)
        + warm
        + loaded.pauses.len() as f64 * (walking + START_S_PER_THREAD * loaded.injector_cpus.len() as f64)
}
