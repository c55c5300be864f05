//! Carries out a measurement plan and builds the machine profile.

use std::collections::BTreeMap;

use genuma_machine::topology::CacheKind;
use genuma_machine::{IdSet, Topology};

use crate::backend::{Error as JobError, LoadedLatencySample, MeasurementBackend};
use crate::memory_levels::find_memory_levels;
use crate::plan::{BandwidthJob, LatencyJob, LoadedLatencyJob, MeasurementJob, MeasurementPlan, ResultSection};
use crate::profile::{
    BandwidthKernel, BandwidthMeasurement, BufferPageKind, ContentionCurve, ContentionPoint, LatencyCurve,
    LatencyMeasurements, LatencyPoint, LoadedLatencyCurve, LoadedLatencyPoint, MachineProfile, Measurement,
    MeasurementRunInfo, MeasurementUnit, MemoryLocation, NodePairLatency, PROFILE_FORMAT_NAME, PROFILE_FORMAT_VERSION,
    TheoreticalBandwidth,
};

/// Maximum interleave weight of a node. Chosen: finer proportions are within the measurement noise.
const MAX_NODE_WEIGHT: f64 = 8.0;

/// Minimum elapsed seconds before measuring can count as slow. Chosen.
const MIN_SECONDS_BEFORE_LATE: f64 = 10.0;
/// Ratio of elapsed to expected time above which measuring counts as slow. Chosen.
const MAX_SLOWDOWN: f64 = 2.0;
/// Maximum number of repetitions of each job while measuring is slow. Chosen.
const REPETITIONS_WHEN_LATE: u32 = 3;

/// Properties of a machine that are known without measurements.
#[derive(Debug, Clone)]
pub struct UnmeasuredMachineFacts {
    /// NUMA nodes, CPUs, caches and memory of the machine.
    pub topology: Topology,
    /// Theoretical bandwidth of the memory modules.
    pub theory: TheoreticalBandwidth,
    /// Host name; `None` to leave it out of the profile.
    pub host: Option<String>,
    /// Time of the measurement, in seconds since 1970-01-01 UTC.
    pub unix_time_s: Option<u64>,
}

/// Progress of the measurements: the next job, and the expected seconds of the finished jobs and of all jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasurementProgress {
    /// Description of the job that is measured next.
    pub next_job: String,
    /// Expected duration in seconds of the finished jobs.
    pub done_s: f64,
    /// Expected duration in seconds of all jobs.
    pub total_s: f64,
}

/// Why no machine profile was built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a single DRAM latency, or not a single bandwidth, could be measured. The field is the first note on missing
    /// data.
    #[error("nothing could be measured: {0}")]
    NothingMeasured(String),
}

/// Carries out a plan and returns the profile. `watch` is called with the progress before each job, and once at the
/// end. A job that fails does not end the measurement: [`MachineProfile::missing`] then has a sentence on the failure.
///
/// # Errors
/// Not a single DRAM latency between two nodes, or not a single bandwidth, could be measured.
pub fn measure_profile(
    machine: UnmeasuredMachineFacts,
    plan: &MeasurementPlan,
    backend: &mut dyn MeasurementBackend,
    watch: &mut dyn FnMut(&MeasurementProgress),
) -> Result<MachineProfile, Error> {
    let begin = backend.elapsed_s();
    let all_s = plan.expected_s();
    let mut done_s = 0.0;
    let mut book = Measurements::default();
    for (job, seconds) in plan.jobs_with_expected_seconds() {
        watch(&MeasurementProgress { next_job: describe_job(job), done_s, total_s: all_s });
        let elapsed_s = backend.elapsed_s() - begin;
        let late = elapsed_s > MIN_SECONDS_BEFORE_LATE && elapsed_s > MAX_SLOWDOWN * done_s;
        if late {
            book.note_missing(format!(
                "measuring was slower than expected, so some jobs were repeated only {REPETITIONS_WHEN_LATE} times: other programs are running"
            ));
        }
        let job = &if late { with_fewer_repetitions(job) } else { job.clone() };
        if let Err(error) = book.run_job(job, backend) {
            book.note_missing(format!("{}: {error}", describe_job(job)));
        }
        done_s += seconds;
    }
    watch(&MeasurementProgress { next_job: "done".into(), done_s: all_s, total_s: all_s });
    if book.latency.node_pairs.is_empty() || book.bandwidth.is_empty() {
        return Err(Error::NothingMeasured(book.missing.first().cloned().unwrap_or_else(|| "an empty plan".into())));
    }
    let UnmeasuredMachineFacts { topology, theory, host, unix_time_s: now } = machine;
    let caches = data_cache_bytes(&topology);
    let whole = book.latency.curves.iter().find(|curve| curve.points.len() > 2);
    let found = whole.map(|curve| find_memory_levels(curve, &caches)).unwrap_or_default();
    for (level, bytes) in caches.iter().enumerate() {
        if !found.iter().any(|l| l.cache_bytes == Some(*bytes)) {
            book.note_missing(format!("no plateau of the latency curve fits L{} of {} KiB", level + 1, bytes >> 10));
        }
    }
    book.latency.memory_levels = found;
    let mut missing = topology.missing_notes.clone();
    missing.extend(theory.unknown_because.iter().map(|why| format!("theoretical bandwidth is unknown: {why}")));
    missing.extend(plan.missing.iter().cloned());
    missing.extend(backend.warnings());
    missing.extend(book.missing);
    Ok(MachineProfile {
        format: PROFILE_FORMAT_NAME.into(),
        version: PROFILE_FORMAT_VERSION,
        made_by: format!("genuma {}", env!("CARGO_PKG_VERSION")),
        made_at: now,
        host,
        load: None,
        effort: MeasurementRunInfo {
            plan: plan.name.clone(),
            expected_s: all_s,
            took_s: backend.elapsed_s() - begin,
            instructions: backend.instruction_set().into(),
        },
        topology,
        theory,
        latency: book.latency,
        bandwidth: book.bandwidth,
        loaded: book.loaded,
        contention: book.contention,
        buffers: backend.buffer_checks(),
        devices: Vec::new(),
        missing,
    })
}

/// Returns a copy of a job with at most [`REPETITIONS_WHEN_LATE`] repetitions.
fn with_fewer_repetitions(job: &MeasurementJob) -> MeasurementJob {
    let mut job = job.clone();
    let repetitions = match &mut job {
        MeasurementJob::Latency(chase) => &mut chase.repetitions,
        MeasurementJob::Bandwidth(stream) => &mut stream.repetitions,
        MeasurementJob::LoadedLatency(loaded) => &mut loaded.latency_job.repetitions,
    };
    *repetitions = REPETITIONS_WHEN_LATE.min(*repetitions);
    job
}

/// Sizes in bytes of the data caches that one CPU uses, the nearest to the core first.
fn data_cache_bytes(topology: &Topology) -> Vec<u64> {
    let mut by_level = BTreeMap::new();
    for cache in topology.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction) {
        by_level.entry(cache.level).or_insert(cache.bytes);
    }
    by_level.into_values().collect()
}

/// The results of the jobs that have been measured so far.
#[derive(Default)]
struct Measurements {
    latency: LatencyMeasurements,
    bandwidth: Vec<BandwidthMeasurement>,
    loaded: Vec<LoadedLatencyCurve>,
    contention: Vec<ContentionCurve>,
    missing: Vec<String>,
}

impl Measurements {
    fn run_job(&mut self, job: &MeasurementJob, backend: &mut dyn MeasurementBackend) -> Result<(), JobError> {
        match job {
            MeasurementJob::Latency(job) => {
                let times = backend.measure_latency(job)?;
                self.add_latency(job, &times);
            }
            MeasurementJob::Bandwidth(job) => {
                let job = BandwidthJob { memory: self.with_measured_weights(&job.memory), ..job.clone() };
                let rates = backend.measure_bandwidth(&job)?;
                self.add_bandwidth(&job, &rates);
            }
            MeasurementJob::LoadedLatency(job) => {
                let points = backend.measure_loaded_latency(job)?;
                self.add_loaded_latency(job, &points);
            }
        }
        Ok(())
    }

    fn note_missing(&mut self, what: String) {
        if !self.missing.contains(&what) {
            self.missing.push(what);
        }
    }

    /// Summarises repetitions. Notes missing data and returns `None` if a repetition is not a positive number.
    fn summarize(&mut self, unit: MeasurementUnit, repetitions: &[f64], job: &MeasurementJob) -> Option<Measurement> {
        let measured = Measurement::summarize_repetitions(unit, repetitions);
        if measured.is_none() {
            self.note_missing(format!("{}: the clock did not advance", describe_job(job)));
        }
        measured
    }

    fn add_latency(&mut self, job: &LatencyJob, times: &[f64]) {
        let Some(latency) = self.summarize(MeasurementUnit::Nanoseconds, times, &MeasurementJob::Latency(job.clone()))
        else {
            return;
        };
        let LatencyJob { cpu_node, memory_node, pages, chain_bytes: bytes, .. } = *job;
        let of_job = |curve: &&mut LatencyCurve| {
            (curve.cpu_node, curve.memory_node, curve.pages) == (cpu_node, memory_node, pages)
        };
        let point = LatencyPoint { bytes, latency };
        match self.latency.curves.iter_mut().find(of_job) {
            Some(curve) => curve.points.push(point),
            None => self.latency.curves.push(LatencyCurve { cpu_node, memory_node, pages, points: vec![point] }),
        }
        if job.is_dram {
            self.latency.node_pairs.push(NodePairLatency { cpu_node, memory_node, pages, bytes, latency });
        }
    }

    fn add_bandwidth(&mut self, job: &BandwidthJob, rates: &[f64]) {
        let Some(total) =
            self.summarize(MeasurementUnit::GigabytesPerSecond, rates, &MeasurementJob::Bandwidth(job.clone()))
        else {
            return;
        };
        let cpus: IdSet = job.cpus.iter().copied().collect();
        let threads = u32::try_from(job.cpus.len()).unwrap_or(u32::MAX);
        let BandwidthJob { kernel, cpu_node, pages, arrays_bytes: bytes, .. } = *job;
        let memory = job.memory.clone();
        if job.result_section == ResultSection::Bandwidth {
            self.bandwidth.push(BandwidthMeasurement { kernel, cpu_node, memory, pages, threads, cpus, bytes, total });
            return;
        }
        let per_thread = total.divide_values_by(f64::from(threads));
        let point = ContentionPoint { threads, cpus, total, per_thread };
        let of_job =
            |curve: &&mut ContentionCurve| (curve.kernel, &curve.memory, curve.pages) == (kernel, &memory, pages);
        match self.contention.iter_mut().find(of_job) {
            Some(curve) => curve.points.push(point),
            None => self.contention.push(ContentionCurve { kernel, memory, pages, points: vec![point] }),
        }
    }

    fn add_loaded_latency(&mut self, job: &LoadedLatencyJob, points: &[Vec<LoadedLatencySample>]) {
        let LatencyJob { cpu_node, memory_node, pages, .. } = job.latency_job;
        let injectors: IdSet = job.injector_cpus.iter().copied().collect();
        let mut curve = LoadedLatencyCurve { cpu_node, memory_node, pages, injectors, points: Vec::new() };
        for (pause, repetitions) in job.pauses.iter().zip(points) {
            let times: Vec<f64> = repetitions.iter().map(|r| r.latency_ns).collect();
            let rates: Vec<f64> = repetitions.iter().map(|r| r.injected_gbs).collect();
            let Some(latency) =
                self.summarize(MeasurementUnit::Nanoseconds, &times, &MeasurementJob::LoadedLatency(job.clone()))
            else {
                continue;
            };
            let injected = Measurement::summarize_repetitions(MeasurementUnit::GigabytesPerSecond, &rates);
            // A point is dropped if its injectors measured no bandwidth although they should run.
            if pause.is_none() == injected.is_none() {
                curve.points.push(LoadedLatencyPoint { pause: *pause, injected, latency });
            }
        }
        self.loaded.push(curve);
    }

    /// Replaces the placeholder weights of the plan by weights in proportion to the highest measured read bandwidth
    /// of each node's memory.
    fn with_measured_weights(&self, memory: &MemoryLocation) -> MemoryLocation {
        let MemoryLocation::Weighted(nodes) = memory else { return memory.clone() };
        let best = |node: u32| {
            let reads = self
                .bandwidth
                .iter()
                .filter(|b| b.kernel == BandwidthKernel::Read && b.memory == MemoryLocation::Node(node));
            reads.map(|b| b.total.median).fold(0.0, f64::max)
        };
        let rates: BTreeMap<u32, f64> = nodes.keys().map(|node| (*node, best(*node))).collect();
        MemoryLocation::Weighted(interleave_weights_from_bandwidths(&rates))
    }
}

/// Computes small integer weights in proportion to the bandwidths `rates` of nodes; 1 for a node without a bandwidth.
pub fn interleave_weights_from_bandwidths(rates: &BTreeMap<u32, f64>) -> BTreeMap<u32, u32> {
    let fastest = rates.values().copied().fold(0.0, f64::max);
    let share = |rate: f64| if fastest > 0.0 { (rate / fastest * MAX_NODE_WEIGHT).round().max(1.0) } else { 1.0 };
    let weights: BTreeMap<u32, u32> = rates.iter().map(|(node, rate)| (*node, share(*rate) as u32)).collect();
    let common = weights.values().copied().fold(0, greatest_common_divisor).max(1);
    weights.into_iter().map(|(node, weight)| (node, weight / common)).collect()
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Description of a job for progress messages and for notes about missing data.
fn describe_job(job: &MeasurementJob) -> String {
    let pages = |pages: BufferPageKind| if pages == BufferPageKind::Base { "base pages" } else { "huge pages" };
    match job {
        MeasurementJob::Latency(c) => format!("latency, node {} to {}, {}", c.cpu_node, c.memory_node, pages(c.pages)),
        MeasurementJob::Bandwidth(s) => {
            let what = if s.result_section == ResultSection::Bandwidth { "bandwidth" } else { "contention" };
            let kernel = format!("{:?}", s.kernel).to_lowercase();
            format!("{what}, {kernel}, {} threads, {}", s.cpus.len(), describe_memory(&s.memory))
        }
        MeasurementJob::LoadedLatency(l) => {
            format!("loaded latency, node {} to {}", l.latency_job.cpu_node, l.latency_job.memory_node)
        }
    }
}

fn describe_memory(spot: &MemoryLocation) -> String {
    match spot {
        MemoryLocation::Node(node) => format!("node {node}"),
        MemoryLocation::Interleaved(nodes) => format!("interleaved {nodes}"),
        MemoryLocation::Weighted(_) => "weighted".into(),
        MemoryLocation::Local => "local".into(),
    }
}
