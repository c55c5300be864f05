//! Plans what is measured, in which order, and estimates how long the measurements take.
//!
//! The number of node pairs grows with the square of the number of nodes. So a plan drops the least informative jobs
//! until it fits its time budget, and notes what it dropped.

mod sizes;
mod cost;
#[cfg(test)]
mod tests;

use genuma_machine::{IdSet, Topology};

use crate::profile::{BandwidthKernel, BufferPageKind, MemoryLocation};
use sizes::CacheSizesAndBufferLimits;

/// Idle loop iterations of injectors between bursts, from idle (`None`) to full speed.
const INJECTOR_PAUSES: [Option<u32>; 9] =
    [None, Some(8192), Some(2048), Some(768), Some(384), Some(192), Some(96), Some(32), Some(0)];

/// A measurement plan: jobs in the order in which they are run.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasurementPlan {
    /// Name of the plan: `quick`, `full` or `smoke`.
    pub name: String,
    /// The measurement jobs. Jobs that use the same buffer follow one another.
    pub jobs: Vec<MeasurementJob>,
    /// Sentences for the user: what is not measured, and why.
    pub missing: Vec<String>,
    /// Expected seconds of each job, including the allocation of its buffers.
    job_seconds: Vec<f64>,
}

/// One measurement of a plan: which quantity, on which CPUs and memory.
#[derive(Debug, Clone, PartialEq)]
pub enum MeasurementJob {
    /// Measures the latency of an idle machine.
    Latency(LatencyJob),
    /// Measures bandwidth.
    Bandwidth(BandwidthJob),
    /// Measures latency while other threads load the memory.
    LoadedLatency(LoadedLatencyJob),
}

/// A latency measurement: one thread follows a pointer chain.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyJob {
    /// CPU of the thread.
    pub cpu: u32,
    /// NUMA node of that CPU.
    pub cpu_node: u32,
    /// NUMA node of the memory.
    pub memory_node: u32,
    /// Page kind of the memory.
    pub pages: BufferPageKind,
    /// Bytes of the buffer. The pointer chain uses the first part of it.
    pub buffer_bytes: u64,
    /// Bytes of the pointer chain.
    pub chain_bytes: u64,
    /// Whether this job measures DRAM latency: it uses the largest chain.
    pub is_dram: bool,
    /// Loads before the first repetition.
    pub warm_up_loads: u64,
    /// Loads per repetition.
    pub loads_per_repetition: u64,
    /// Number of repetitions.
    pub repetitions: u32,
}

/// A bandwidth measurement: threads run a kernel on their parts of the arrays at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct BandwidthJob {
    /// The kernel that the threads run.
    pub kernel: BandwidthKernel,
    /// NUMA node of the threads. `None` if they may be on several nodes.
    pub cpu_node: Option<u32>,
    /// One CPU per thread.
    pub cpus: Vec<u32>,
    /// Location of the arrays. Weights are placeholders of 1 that are replaced by measured weights.
    pub memory: MemoryLocation,
    /// Page kind of the arrays.
    pub pages: BufferPageKind,
    /// Bytes of the three arrays together.
    pub arrays_bytes: u64,
    /// Number of timed passes, after one untimed pass.
    pub repetitions: u32,
    /// Section of the profile that the result belongs to.
    pub result_section: ResultSection,
}

/// Section of the machine profile that a bandwidth result belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultSection {
    /// Section `bandwidth`.
    Bandwidth,
    /// Section `contention`.
    Contention,
}

/// A latency measurement under load: one thread follows a pointer chain while other threads read at several rates.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedLatencyJob {
    /// The thread that follows pointers, and its chain.
    pub latency_job: LatencyJob,
    /// One CPU per reading thread.
    pub injector_cpus: Vec<u32>,
    /// Bytes of the arrays that the reading threads read.
    pub arrays_bytes: u64,
    /// Idle loop iterations of the reading threads after each KiB, one per point of the curve. `None`: they are idle.
    pub pauses: Vec<Option<u32>>,
}

/// Options of a measurement plan: time budget, repetitions, and sizes of buffers.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanOptions {
    /// Name of the plan.
    pub name: String,
    /// Maximum expected time of all jobs in seconds. Jobs are dropped until the plan fits, or none can be dropped.
    pub budget_s: f64,
    /// Number of pointer chain sizes per doubling of the size.
    pub sizes_per_octave: u32,
    /// Repetitions of each job.
    pub repetitions: u32,
    /// Approximate duration of one repetition of a latency job in seconds.
    pub(crate) repetition_s: f64,
    /// Maximum bytes of one array (a third of all arrays) and of a pointer chain.
    pub max_buffer_bytes: u64,
    /// Reduction level at which planning starts: 0 keeps all jobs, [`MAX_REDUCTION_LEVEL`] drops all jobs that can be
    /// dropped.
    pub reduction_level: u32,
}

/// Highest reduction level of a plan.
pub(crate) const MAX_REDUCTION_LEVEL: u32 = 5;

impl PlanOptions {
    /// Options of a quick plan: under a minute on machines with few nodes.
    pub fn quick_plan() -> PlanOptions {
        PlanOptions {
            name: "quick".into(),
            budget_s: 45.0,
            sizes_per_octave: 2,
            repetitions: 9,
            // Short repetitions fit into the moments when nothing else runs.
            repetition_s: 0.004,
            max_buffer_bytes: 1 << 30,
            reduction_level: 2,
        }
    }

    /// Options of a full plan: all measurements that fit into ten minutes.
    pub fn full_plan() -> PlanOptions {
        PlanOptions {
            name: "full".into(),
            budget_s: 600.0,
            sizes_per_octave: 4,
            repetitions: 11,
            repetition_s: 0.02,
            max_buffer_bytes: 4 << 30,
            reduction_level: 0,
        }
    }

    /// Options of a smoke test: checks in about a second that all measurements work. The buffers have a few MiB, so the
    /// results are meaningless.
    pub fn smoke_plan() -> PlanOptions {
        PlanOptions {
            name: "smoke".into(),
            budget_s: 1.0,
            sizes_per_octave: 1,
            repetitions: 1,
            repetition_s: 0.0005,
            max_buffer_bytes: 4 << 20,
            reduction_level: MAX_REDUCTION_LEVEL,
        }
    }
}

/// Why the measurements cannot be planned.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// This process may use no CPU, or no node with memory.
    #[error("there is nothing to measure: this process may use CPUs '{cpus}' and memory of nodes '{nodes}'")]
    NothingAllowed {
        /// CPUs that the process may use.
        cpus: IdSet,
        /// Nodes with memory that the process may use.
        nodes: IdSet,
    },
    /// A node has too little free memory for the smallest buffers.
    #[error(
        "node {node} has {free} bytes free, too few to measure anything: free memory or exclude the node with a cpuset"
    )]
    NotEnoughMemory {
        /// Number of the node.
        node: u32,
        /// Free bytes on the node.
        free: u64,
    },
}

impl MeasurementPlan {
    /// Plans the measurements of a machine within the options `wish`. Drops jobs and repetitions until the expected
    /// time fits the time budget, or nothing more can be dropped.
    ///
    /// # Errors
    /// The process may use no CPU or no memory, or a node has too little free memory.
    pub fn new(topology: &Topology, wish: &PlanOptions) -> Result<MeasurementPlan, Error> {
        let mut plan = MeasurementPlan::at_reduction_level(topology, wish, wish.reduction_level)?;
        for thin in wish.reduction_level + 1..=MAX_REDUCTION_LEVEL {
            if plan.expected_s() <= wish.budget_s {
                break;
            }
            plan = MeasurementPlan::at_reduction_level(topology, wish, thin)?;
            plan.missing.push(format!(
                "the whole plan would take more than {:.0} s: {}",
                wish.budget_s,
                describe_reduction(thin)
            ));
        }
        Ok(plan)
    }

    /// Expected duration of all jobs in seconds.
    pub fn expected_s(&self) -> f64 {
        self.job_seconds.iter().sum()
    }

    /// The jobs with their expected durations in seconds.
    pub(crate) fn jobs_with_expected_seconds(&self) -> impl Iterator<Item = (&MeasurementJob, f64)> {
        self.jobs.iter().zip(self.job_seconds.iter().copied())
    }

    fn at_reduction_level(topology: &Topology, wish: &PlanOptions, thin: u32) -> Result<MeasurementPlan, Error> {
        let sizes = CacheSizesAndBufferLimits::from_topology_and_options(topology, wish)?;
        let missing = sizes.describe_measurement_limitations();
        let mut builder = PlanBuilder { topology, options: wish, reduction_level: thin, sizes, jobs: Vec::new() };
        for node in topology.allowed_memory_nodes().iter() {
            builder.add_latency_jobs(node);
            builder.add_bandwidth_jobs(node);
            builder.add_node_contention_jobs(node);
        }
        builder.add_interleaved_jobs();
        let PlanBuilder { jobs, sizes, .. } = builder;
        let seconds = cost::estimate_seconds_of_each_job(&jobs, &sizes);
        Ok(MeasurementPlan { name: wish.name.clone(), jobs, missing, job_seconds: seconds })
    }
}

fn describe_reduction(thin: u32) -> &'static str {
    match thin {
        0 | 1 => "remote pairs are measured with one thread and with all of a node, their latency at the largest size",
        2 => "remote pairs are measured with fewer kernels, too",
        3 => "contention and loaded latency are measured on the first node only, too",
        4 => "repetitions are fewer, too",
        _ => "all is measured with the fewest steps",
    }
}

struct PlanBuilder<'a> {
    topology: &'a Topology,
    options: &'a PlanOptions,
    reduction_level: u32,
    sizes: CacheSizesAndBufferLimits,
    jobs: Vec<MeasurementJob>,
}

impl PlanBuilder<'_> {
    fn repetitions(&self) -> u32 {
        match self.reduction_level {
            0..4 => self.options.repetitions,
            4 => (self.options.repetitions / 2).max(3).min(self.options.repetitions),
            _ => self.options.repetitions.min(3),
        }
    }

    /// Adds latency jobs with memory on `memory_node`: all chain sizes from the nearest CPUs; at a reduction level
    /// above 0 only the largest size from other CPUs, from level 2 on in one page kind.
    fn add_latency_jobs(&mut self, memory_node: u32) {
        let buffer = self.sizes.max_chain_bytes(memory_node);
        let steps = if self.reduction_level < MAX_REDUCTION_LEVEL {
            self.options.sizes_per_octave
        } else {
            self.options.sizes_per_octave.min(2)
        };
        for pages in self.sizes.page_kinds_to_measure() {
            for (rank, cpu_node) in sizes::cpu_nodes_by_distance(self.topology, memory_node).into_iter().enumerate() {
                let whole_curve = rank == 0 || self.reduction_level == 0;
                if rank > 0
                    && pages == BufferPageKind::Base
                    && self.reduction_level >= 2
                    && self.sizes.page_kinds_to_measure().len() > 1
                {
                    continue;
                }
                let all = sizes::list_chain_sizes(buffer, steps);
                let from = if whole_curve { 0 } else { all.len() - 1 };
                for bytes in &all[from..] {
                    let chase = self.latency_job(cpu_node, memory_node, pages, *bytes);
                    self.jobs.extend(chase.map(MeasurementJob::Latency));
                }
            }
        }
    }

    fn latency_job(&self, cpu_node: u32, memory_node: u32, pages: BufferPageKind, bytes: u64) -> Option<LatencyJob> {
        let buffer = self.sizes.max_chain_bytes(memory_node);
        let load_s = self.sizes.estimate_latency_ns(bytes, pages) / 1e9;
        Some(LatencyJob {
            cpu: *sizes::usable_cpus_of_node(self.topology, cpu_node).first()?,
            cpu_node,
            memory_node,
            pages,
            buffer_bytes: buffer,
            chain_bytes: bytes,
            is_dram: bytes == buffer,
            warm_up_loads: self.sizes.num_warm_up_loads_for_chain(bytes),
            loads_per_repetition: ((self.options.repetition_s / load_s) as u64).max(1024),
            repetitions: self.repetitions(),
        })
    }

    /// Adds bandwidth and loaded latency jobs of all node pairs with memory on `memory_node`.
    fn add_bandwidth_jobs(&mut self, memory_node: u32) {
        let nearest = sizes::cpu_nodes_by_distance(self.topology, memory_node);
        let bytes = self.sizes.arrays_bytes_for_node(memory_node);
        for (rank, pages) in self.sizes.page_kinds_to_measure().into_iter().enumerate() {
            for (distance, &cpu_node) in nearest.iter().enumerate() {
                if rank > 0 && (distance > 0 || self.reduction_level >= MAX_REDUCTION_LEVEL) {
                    continue;
                }
                let kernels = match (rank, distance, self.reduction_level) {
                    (0, 0, _) | (0, _, 0..2) => &BandwidthKernel::ALL_KERNELS[..],
                    (0, _, 2..5) => &[BandwidthKernel::Triad, BandwidthKernel::Read, BandwidthKernel::Random],
                    (0, ..) => &[BandwidthKernel::Triad, BandwidthKernel::Random],
                    _ => &[BandwidthKernel::Triad, BandwidthKernel::Read, BandwidthKernel::Random],
                };
                let cpus = sizes::usable_cpus_of_node(self.topology, cpu_node);
                let cores = sizes::count_cores_of_cpus(self.topology, &cpus);
                let steps = match (rank, distance, self.reduction_level) {
                    (0, 0, 0..3) | (0, _, 0) => sizes::list_thread_counts(cores, cpus.len(), self.reduction_level == 0),
                    (0, _, 0..5) => sizes::list_one_and_all_thread_counts(cores, cores),
                    _ => vec![cores],
                };
                for (threads, &kernel) in steps.iter().flat_map(|t| kernels.iter().map(move |k| (*t, k))) {
                    self.jobs.push(MeasurementJob::Bandwidth(BandwidthJob {
                        kernel,
                        cpu_node: Some(cpu_node),
                        cpus: cpus[..threads].to_vec(),
                        memory: MemoryLocation::Node(memory_node),
                        pages,
                        arrays_bytes: bytes,
                        repetitions: self.repetitions(),
                        result_section: ResultSection::Bandwidth,
                    }));
                }
                if rank == 0 {
                    self.add_loaded_latency_jobs(cpu_node, memory_node, distance, nearest.len());
                }
            }
        }
    }

    fn add_loaded_latency_jobs(&mut self, cpu_node: u32, memory_node: u32, distance: usize, pairs: usize) {
        let cpus = sizes::usable_cpus_of_node(self.topology, cpu_node);
        let first = self.topology.allowed_memory_nodes().smallest_id() == Some(memory_node);
        let wanted = match self.reduction_level {
            0 => true,
            1 | 2 => distance == 0 || (first && distance + 1 == pairs),
            _ => first && (distance == 0 || distance + 1 == pairs),
        };
        let cores = sizes::count_cores_of_cpus(self.topology, &cpus);
        // Other hardware threads of the pointer-chasing core would share its caches, so only other cores inject.
        let injectors = cpus.get(1..cores).unwrap_or_default();
        let Some(&pages) = self.sizes.page_kinds_to_measure().first() else { return };
        let bytes = self.sizes.max_chain_bytes(memory_node);
        let chase = self.latency_job(cpu_node, memory_node, pages, bytes);
        let every = if self.reduction_level < 2 { 1 } else { 2 };
        if let (true, false, Some(chase)) = (wanted, injectors.is_empty(), chase) {
            self.jobs.push(MeasurementJob::LoadedLatency(LoadedLatencyJob {
                latency_job: chase,
                injector_cpus: injectors.to_vec(),
                arrays_bytes: self.sizes.arrays_bytes_for_node(memory_node),
                pauses: INJECTOR_PAUSES.into_iter().step_by(every).collect(),
            }));
        }
    }

    /// Adds contention jobs: more and more threads of the whole machine on the memory of one node. From reduction
    /// level 2 on only for the first node.
    fn add_node_contention_jobs(&mut self, memory_node: u32) {
        let first = self.topology.allowed_memory_nodes().smallest_id() == Some(memory_node);
        if self.reduction_level < 2 || first {
            let bytes = self.sizes.arrays_bytes_for_all_cpus(&IdSet::from([memory_node]));
            self.add_contention_jobs(MemoryLocation::Node(memory_node), memory_node, bytes);
        }
    }

    fn add_contention_jobs(&mut self, memory: MemoryLocation, nearest_to: u32, bytes: u64) {
        let Some(&pages) = self.sizes.page_kinds_to_measure().first() else { return };
        let cpus = sizes::usable_cpus_by_thread_rank_and_distance(self.topology, nearest_to);
        let steps = sizes::list_thread_counts(
            sizes::count_cores_of_cpus(self.topology, &cpus),
            cpus.len(),
            self.reduction_level == 0,
        );
        for kernel in [BandwidthKernel::Read, BandwidthKernel::Random, BandwidthKernel::Strided] {
            for &threads in &steps {
                self.jobs.push(MeasurementJob::Bandwidth(BandwidthJob {
                    kernel,
                    cpu_node: None,
                    cpus: cpus[..threads].to_vec(),
                    memory: memory.clone(),
                    pages,
                    arrays_bytes: bytes,
                    repetitions: self.repetitions(),
                    result_section: ResultSection::Contention,
                }));
            }
        }
    }

    /// Adds jobs in which threads of all nodes use memory that is distributed over all nodes, or memory of their own
    /// nodes.
    fn add_interleaved_jobs(&mut self) {
        let nodes = self.topology.allowed_memory_nodes();
        let (Some(first), Some(&pages)) = (nodes.smallest_id(), self.sizes.page_kinds_to_measure().first()) else {
            return;
        };
        if nodes.len() < 2 {
            return;
        }
        let cpus = sizes::usable_cpus_by_thread_rank_and_distance(self.topology, first);
        let cores = sizes::count_cores_of_cpus(self.topology, &cpus);
        let bytes = self.sizes.arrays_bytes_for_all_cpus(&nodes);
        let interleaved = MemoryLocation::Interleaved(nodes.clone());
        let weighted = MemoryLocation::Weighted(nodes.iter().map(|node| (node, 1)).collect());
        for memory in [interleaved.clone(), weighted, MemoryLocation::Local] {
            if memory == MemoryLocation::Local && !self.topology.allowed_cpu_nodes().is_subset(&nodes) {
                continue;
            }
            for threads in
                sizes::list_one_and_all_thread_counts(cores, cpus.len()).into_iter().filter(|t| *t > 1 || cores == 1)
            {
                for kernel in [BandwidthKernel::Triad, BandwidthKernel::Read, BandwidthKernel::Random] {
                    self.jobs.push(MeasurementJob::Bandwidth(BandwidthJob {
                        kernel,
                        cpu_node: None,
                        cpus: cpus[..threads].to_vec(),
                        memory: memory.clone(),
                        pages,
                        arrays_bytes: bytes,
                        repetitions: self.repetitions(),
                        result_section: ResultSection::Bandwidth,
                    }));
                }
            }
            if memory == interleaved {
                self.add_contention_jobs(memory, first, bytes);
            }
        }
    }
}
