//! Plan → measurements → profile.

use std::collections::BTreeMap;

use genuma_machine::topology::CacheKind;
use genuma_machine::{IdSet, Topology};

use crate::backend::{Backend, Error as JobError, UnderLoad};
use crate::levels::levels;
use crate::plan::{Chase, Job, Loaded, Part, Plan, Stream};
use crate::profile::{
    Bandwidth, ContentionCurve, ContentionPoint, Effort, FORMAT, Kernel, Latency, LatencyCurve, LatencyPoint,
    LoadedCurve, LoadedPoint, MachineProfile, Measured, PageKind, PairLatency, Spot, Theory, Unit, VERSION,
};

/// Largest weight of a node: finer shares are within the noise of measuring.
const LARGEST_WEIGHT: f64 = 8.0;

/// Seconds after which measuring may be late.
const PATIENCE_S: f64 = 10.0;
/// Measuring is late when it took so many times what was expected.
const LATE: f64 = 2.0;
/// Repetitions of everything while measuring is late.
const LATE_REPETITIONS: u32 = 3;

/// What is known of a machine besides what is measured.
#[derive(Debug, Clone)]
pub struct Machine {
    /// What it is made of.
    pub topology: Topology,
    /// What its memory modules promise.
    pub theory: Theory,
    /// Its name.
    pub host: Option<String>,
    /// Seconds since 1970-01-01 UTC.
    pub now: Option<u64>,
}

/// How far measuring is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is measured next, in words.
    pub job: String,
    /// Seconds that the jobs before it were expected to take.
    pub done_s: f64,
    /// Seconds that all jobs are expected to take.
    pub all_s: f64,
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No latency of DRAM or no bandwidth could be measured.
    #[error("nothing could be measured: {0}")]
    Nothing(String),
}

/// Carries out a plan. A job that cannot be done is told in the profile's `missing`.
///
/// # Errors
/// Not one latency or not one bandwidth could be measured.
pub fn measure(
    machine: Machine,
    plan: &Plan,
    backend: &mut dyn Backend,
    watch: &mut dyn FnMut(&Progress),
) -> Result<MachineProfile, Error> {
    let begin = backend.clock_s();
    let all_s = plan.expected_s();
    let mut done_s = 0.0;
    let mut book = Book::default();
    for (job, seconds) in plan.timed_jobs() {
        watch(&Progress { job: words(job), done_s, all_s });
        let elapsed_s = backend.clock_s() - begin;
        let late = elapsed_s > PATIENCE_S && elapsed_s > LATE * done_s;
        if late {
            book.miss(format!(
                "measuring was slower than expected, so some of it was repeated {LATE_REPETITIONS} times only: other programs run here"
            ));
        }
        let job = &if late { shortened(job) } else { job.clone() };
        if let Err(error) = book.enter(job, backend) {
            book.miss(format!("{}: {error}", words(job)));
        }
        done_s += seconds;
    }
    watch(&Progress { job: "done".into(), done_s: all_s, all_s });
    if book.latency.pairs.is_empty() || book.bandwidth.is_empty() {
        return Err(Error::Nothing(book.missing.first().cloned().unwrap_or_else(|| "an empty plan".into())));
    }
    let Machine { topology, theory, host, now } = machine;
    let caches = data_caches(&topology);
    let whole = book.latency.curves.iter().find(|curve| curve.points.len() > 2);
    let found = whole.map(|curve| levels(curve, &caches)).unwrap_or_default();
    for (level, bytes) in caches.iter().enumerate() {
        if !found.iter().any(|l| l.cache_bytes == Some(*bytes)) {
            book.miss(format!("no plateau of the latency curve fits L{} of {} KiB", level + 1, bytes >> 10));
        }
    }
    book.latency.levels = found;
    let mut missing = topology.missing.clone();
    missing
        .extend(theory.unknown_because.iter().map(|why| format!("theoretical bandwidth is unknown: {why}")));
    missing.extend(plan.missing.iter().cloned());
    missing.extend(backend.remarks());
    missing.extend(book.missing);
    Ok(MachineProfile {
        format: FORMAT.into(),
        version: VERSION,
        made_by: format!("genuma {}", env!("CARGO_PKG_VERSION")),
        made_at: now,
        host,
        effort: Effort {
            plan: plan.name.clone(),
            expected_s: all_s,
            took_s: backend.clock_s() - begin,
            instructions: backend.instructions().into(),
        },
        topology,
        theory,
        latency: book.latency,
        bandwidth: book.bandwidth,
        loaded: book.loaded,
        contention: book.contention,
        buffers: backend.buffers(),
        devices: Vec::new(),
        missing,
    })
}

/// A job with few repetitions.
fn shortened(job: &Job) -> Job {
    let mut job = job.clone();
    let repetitions = match &mut job {
        Job::Chase(chase) => &mut chase.repetitions,
        Job::Stream(stream) => &mut stream.repetitions,
        Job::Loaded(loaded) => &mut loaded.chase.repetitions,
    };
    *repetitions = LATE_REPETITIONS.min(*repetitions);
    job
}

/// Sizes of the data caches that a CPU sees, nearest first.
fn data_caches(topology: &Topology) -> Vec<u64> {
    let mut by_level = BTreeMap::new();
    for cache in topology.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction) {
        by_level.entry(cache.level).or_insert(cache.bytes);
    }
    by_level.into_values().collect()
}

/// The measurements so far.
#[derive(Default)]
struct Book {
    latency: Latency,
    bandwidth: Vec<Bandwidth>,
    loaded: Vec<LoadedCurve>,
    contention: Vec<ContentionCurve>,
    missing: Vec<String>,
}

impl Book {
    fn enter(&mut self, job: &Job, backend: &mut dyn Backend) -> Result<(), JobError> {
        match job {
            Job::Chase(job) => {
                let times = backend.chase(job)?;
                self.chase(job, &times);
            }
            Job::Stream(job) => {
                let job = Stream { memory: self.weighed(&job.memory), ..job.clone() };
                let rates = backend.stream(&job)?;
                self.stream(&job, &rates);
            }
            Job::Loaded(job) => {
                let points = backend.loaded(job)?;
                self.load(job, &points);
            }
        }
        Ok(())
    }

    fn miss(&mut self, what: String) {
        if !self.missing.contains(&what) {
            self.missing.push(what);
        }
    }

    /// Repetitions summed up; what is no quantity is missed.
    fn sum_up(&mut self, unit: Unit, repetitions: &[f64], job: &Job) -> Option<Measured> {
        let measured = Measured::of(unit, repetitions);
        if measured.is_none() {
            self.miss(format!("{}: the clock told no time", words(job)));
        }
        measured
    }

    fn chase(&mut self, job: &Chase, times: &[f64]) {
        let Some(latency) = self.sum_up(Unit::Nanoseconds, times, &Job::Chase(job.clone())) else { return };
        let Chase { cpu_node, memory_node, pages, bytes, .. } = *job;
        let of_job = |curve: &&mut LatencyCurve| {
            (curve.cpu_node, curve.memory_node, curve.pages) == (cpu_node, memory_node, pages)
        };
        let point = LatencyPoint { bytes, latency };
        match self.latency.curves.iter_mut().find(of_job) {
            Some(curve) => curve.points.push(point),
            None => {
                self.latency.curves.push(LatencyCurve { cpu_node, memory_node, pages, points: vec![point] })
            }
        }
        if job.dram {
            self.latency.pairs.push(PairLatency { cpu_node, memory_node, pages, bytes, latency });
        }
    }

    fn stream(&mut self, job: &Stream, rates: &[f64]) {
        let Some(total) = self.sum_up(Unit::GigabytesPerSecond, rates, &Job::Stream(job.clone())) else {
            return;
        };
        let cpus: IdSet = job.cpus.iter().copied().collect();
        let threads = u32::try_from(job.cpus.len()).unwrap_or(u32::MAX);
        let Stream { kernel, cpu_node, pages, bytes, .. } = *job;
        let memory = job.memory.clone();
        if job.part == Part::Bandwidth {
            self.bandwidth.push(Bandwidth { kernel, cpu_node, memory, pages, threads, cpus, bytes, total });
            return;
        }
        let per_thread = total.divided(f64::from(threads));
        let point = ContentionPoint { threads, cpus, total, per_thread };
        let of_job = |curve: &&mut ContentionCurve| {
            (curve.kernel, &curve.memory, curve.pages) == (kernel, &memory, pages)
        };
        match self.contention.iter_mut().find(of_job) {
            Some(curve) => curve.points.push(point),
            None => self.contention.push(ContentionCurve { kernel, memory, pages, points: vec![point] }),
        }
    }

    fn load(&mut self, job: &Loaded, points: &[Vec<UnderLoad>]) {
        let Chase { cpu_node, memory_node, pages, .. } = job.chase;
        let injectors: IdSet = job.injectors.iter().copied().collect();
        let mut curve = LoadedCurve { cpu_node, memory_node, pages, injectors, points: Vec::new() };
        for (pause, repetitions) in job.pauses.iter().zip(points) {
            let times: Vec<f64> = repetitions.iter().map(|r| r.load_ns).collect();
            let rates: Vec<f64> = repetitions.iter().map(|r| r.injected_gbs).collect();
            let Some(latency) = self.sum_up(Unit::Nanoseconds, &times, &Job::Loaded(job.clone())) else {
                continue;
            };
            let injected = Measured::of(Unit::GigabytesPerSecond, &rates);
            // A point whose injectors did nothing although they should tells nothing.
            if pause.is_none() == injected.is_none() {
                curve.points.push(LoadedPoint { pause: *pause, injected, latency });
            }
        }
        self.loaded.push(curve);
    }

    /// Puts measured weights where the plan has 1 for all: in proportion to the best read bandwidth of each node's memory.
    fn weighed(&self, memory: &Spot) -> Spot {
        let Spot::Weighted(nodes) = memory else { return memory.clone() };
        let best = |node: u32| {
            let reads =
                self.bandwidth.iter().filter(|b| b.kernel == Kernel::Read && b.memory == Spot::Node(node));
            reads.map(|b| b.total.median).fold(0.0, f64::max)
        };
        let rates: BTreeMap<u32, f64> = nodes.keys().map(|node| (*node, best(*node))).collect();
        Spot::Weighted(weights(&rates))
    }
}

/// Small whole numbers in proportion to rates; 1 for a node without a rate.
pub fn weights(rates: &BTreeMap<u32, f64>) -> BTreeMap<u32, u32> {
    let fastest = rates.values().copied().fold(0.0, f64::max);
    let share =
        |rate: f64| if fastest > 0.0 { (rate / fastest * LARGEST_WEIGHT).round().max(1.0) } else { 1.0 };
    let weights: BTreeMap<u32, u32> = rates.iter().map(|(node, rate)| (*node, share(*rate) as u32)).collect();
    let common = weights.values().copied().fold(0, greatest_common_divisor).max(1);
    weights.into_iter().map(|(node, weight)| (node, weight / common)).collect()
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// A job in words, for progress and for what is missing.
fn words(job: &Job) -> String {
    let pages = |pages: PageKind| if pages == PageKind::Base { "base pages" } else { "huge pages" };
    match job {
        Job::Chase(c) => format!("latency, node {} to {}, {}", c.cpu_node, c.memory_node, pages(c.pages)),
        Job::Stream(s) => {
            let what = if s.part == Part::Bandwidth { "bandwidth" } else { "contention" };
            let kernel = format!("{:?}", s.kernel).to_lowercase();
            format!("{what}, {kernel}, {} threads, {}", s.cpus.len(), place(&s.memory))
        }
        Job::Loaded(l) => format!("loaded latency, node {} to {}", l.chase.cpu_node, l.chase.memory_node),
    }
}

fn place(spot: &Spot) -> String {
    match spot {
        Spot::Node(node) => format!("node {node}"),
        Spot::Interleaved(nodes) => format!("interleaved {nodes}"),
        Spot::Weighted(_) => "weighted".into(),
        Spot::Local => "local".into(),
    }
}
