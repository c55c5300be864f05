//! What is measured, in which order, and how long that should take.
//!
//! The number of pairs grows with the square of the nodes, so a plan drops what says least until it fits into its time, and tells so.

mod sizes;
mod cost;
#[cfg(test)]
mod tests;

use genuma_machine::{IdSet, Topology};

use crate::profile::{Kernel, PageKind, Spot};
use sizes::Sizes;

/// Idle steps between the bursts of injectors, from rest to full speed.
const PAUSES: [Option<u32>; 9] =
    [None, Some(8192), Some(2048), Some(768), Some(384), Some(192), Some(96), Some(32), Some(0)];

/// Measurements in the order they are done.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name: `quick`, `full`.
    pub name: String,
    /// The measurements; those that use the same buffer follow one another.
    pub jobs: Vec<Job>,
    /// What is not measured and why, one sentence each.
    pub missing: Vec<String>,
    /// Seconds that each job should take, making its buffers included.
    seconds: Vec<f64>,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// Latency.
    Chase(Chase),
    /// Bandwidth.
    Stream(Stream),
    /// Latency under load.
    Loaded(Loaded),
}

/// One thread follows a ring of pointers.
#[derive(Debug, Clone, PartialEq)]
pub struct Chase {
    /// CPU of the thread.
    pub cpu: u32,
    /// Its node.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// Pages of the memory.
    pub pages: PageKind,
    /// Bytes of the buffer, of which the ring takes the first part.
    pub buffer: u64,
    /// Bytes of the ring.
    pub bytes: u64,
    /// Whether it stands for DRAM: the largest ring.
    pub dram: bool,
    /// Loads before the first repetition.
    pub warm_up: u64,
    /// Loads of a repetition.
    pub loads: u64,
    /// How often it is measured.
    pub repetitions: u32,
}

/// Threads go through arrays at the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// What they do.
    pub kernel: Kernel,
    /// Their node; absent when they may be on several.
    pub cpu_node: Option<u32>,
    /// A CPU for each.
    pub cpus: Vec<u32>,
    /// Where the arrays lie. Weights of 1 stand for those that will have been measured by then.
    pub memory: Spot,
    /// Pages of the arrays.
    pub pages: PageKind,
    /// Bytes of the three arrays together.
    pub bytes: u64,
    /// How often all go through, after once without a clock.
    pub repetitions: u32,
    /// Part of the profile that it belongs to.
    pub part: Part,
}

/// Where the result of a [`Stream`] goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `bandwidth`.
    Bandwidth,
    /// `contention`.
    Contention,
}

/// One thread follows a ring while others read at several rates.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The thread that follows pointers, and its ring.
    pub chase: Chase,
    /// A CPU for each thread that reads.
    pub injectors: Vec<u32>,
    /// Bytes of the arrays they read.
    pub bytes: u64,
    /// Their idle steps after each KiB, one point of the curve each; `None` when they rest.
    pub pauses: Vec<Option<u32>>,
}

/// How much a plan should measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// Name of the plan.
    pub name: String,
    /// Seconds it may take.
    pub budget_s: f64,
    /// Ring sizes for each doubling.
    pub steps: u32,
    /// Repetitions of everything.
    pub repetitions: u32,
    /// Seconds of a repetition of a chase.
    pub(crate) repetition_s: f64,
    /// Largest array (a third of what is gone through) and largest ring, bytes.
    pub largest: u64,
    /// What is dropped from the start: 0 nothing, [`THINNEST`] all that can be.
    pub thin: u32,
}

/// Most that can be dropped from a plan.
pub(crate) const THINNEST: u32 = 5;

impl Wish {
    /// Under a minute where there are few nodes.
    pub fn quick() -> Wish {
        Wish {
            name: "quick".into(),
            budget_s: 45.0,
            steps: 2,
            repetitions: 9,
            // Short ones fit into the moments when nothing else runs.
            repetition_s: 0.004,
            largest: 1 << 30,
            thin: 2,
        }
    }

    /// Everything, within ten minutes.
    pub fn full() -> Wish {
        Wish {
            name: "full".into(),
            budget_s: 600.0,
            steps: 4,
            repetitions: 11,
            repetition_s: 0.02,
            largest: 4 << 30,
            thin: 0,
        }
    }

    /// Whether everything works, in about a second: buffers of a few MiB, so the numbers mean nothing.
    pub fn smoke() -> Wish {
        Wish {
            name: "smoke".into(),
            budget_s: 1.0,
            steps: 1,
            repetitions: 1,
            repetition_s: 0.0005,
            largest: 4 << 20,
            thin: THINNEST,
        }
    }
}

/// Why there is no plan.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No CPU or no memory may be used.
    #[error("there is nothing to measure: this process may use CPUs '{cpus}' and memory of nodes '{nodes}'")]
    Nothing {
        /// CPUs that may be used.
        cpus: IdSet,
        /// Nodes with memory that may be used.
        nodes: IdSet,
    },
    /// Not even the smallest buffers fit.
    #[error(
        "node {node} has {free} bytes free, too few to measure anything: free memory or exclude the node with a cpuset"
    )]
    NoRoom {
        /// The node.
        node: u32,
        /// Its free bytes.
        free: u64,
    },
}

impl Plan {
    /// Plans as much of what is wished as fits into its time on this machine.
    ///
    /// # Errors
    /// No CPU, no memory, or next to no free memory may be used.
    pub fn new(topology: &Topology, wish: &Wish) -> Result<Plan, Error> {
        let mut plan = Plan::thinned(topology, wish, wish.thin)?;
        for thin in wish.thin + 1..=THINNEST {
            if plan.expected_s() <= wish.budget_s {
                break;
            }
            plan = Plan::thinned(topology, wish, thin)?;
            plan.missing.push(format!(
                "the whole plan would take more than {:.0} s: {}",
                wish.budget_s,
                dropped(thin)
            ));
        }
        Ok(plan)
    }

    /// Seconds that all jobs should take.
    pub fn expected_s(&self) -> f64 {
        self.seconds.iter().sum()
    }

    /// The jobs with the seconds that each should take.
    pub(crate) fn timed_jobs(&self) -> impl Iterator<Item = (&Job, f64)> {
        self.jobs.iter().zip(self.seconds.iter().copied())
    }

    fn thinned(topology: &Topology, wish: &Wish, thin: u32) -> Result<Plan, Error> {
        let sizes = Sizes::of(topology, wish)?;
        let missing = sizes.missing();
        let mut builder = Builder { topology, wish, thin, sizes, jobs: Vec::new() };
        for node in topology.memory_nodes().iter() {
            builder.latency(node);
            builder.bandwidth(node);
            builder.contention(node);
        }
        builder.spread();
        let Builder { jobs, sizes, .. } = builder;
        let seconds = cost::seconds(&jobs, &sizes);
        Ok(Plan { name: wish.name.clone(), jobs, missing, seconds })
    }
}

fn dropped(thin: u32) -> &'static str {
    match thin {
        0 | 1 => {
            "remote pairs are measured with one thread and with all of a node, their latency at the largest size"
        }
        2 => "remote pairs are measured with fewer kernels, too",
        3 => "contention and loaded latency are measured on the first node only, too",
        4 => "repetitions are fewer, too",
        _ => "all is measured with the fewest steps",
    }
}

struct Builder<'a> {
    topology: &'a Topology,
    wish: &'a Wish,
    thin: u32,
    sizes: Sizes,
    jobs: Vec<Job>,
}

impl Builder<'_> {
    fn repetitions(&self) -> u32 {
        match self.thin {
            0..4 => self.wish.repetitions,
            4 => (self.wish.repetitions / 2).max(3).min(self.wish.repetitions),
            _ => self.wish.repetitions.min(3),
        }
    }

    /// Rings on `memory_node`: all sizes from its nearest CPUs, perhaps only the largest from others.
    fn latency(&mut self, memory_node: u32) {
        let buffer = self.sizes.ring(memory_node);
        let steps = if self.thin < THINNEST { self.wish.steps } else { self.wish.steps.min(2) };
        for pages in self.sizes.pages() {
            for (rank, cpu_node) in sizes::nearest(self.topology, memory_node).into_iter().enumerate() {
                let whole_curve = rank == 0 || self.thin == 0;
                if rank > 0 && pages == PageKind::Base && self.thin >= 2 && self.sizes.pages().len() > 1 {
                    continue;
                }
                let all = sizes::steps(buffer, steps);
                let from = if whole_curve { 0 } else { all.len() - 1 };
                for bytes in &all[from..] {
                    let chase = self.chase(cpu_node, memory_node, pages, *bytes);
                    self.jobs.extend(chase.map(Job::Chase));
                }
            }
        }
    }

    fn chase(&self, cpu_node: u32, memory_node: u32, pages: PageKind, bytes: u64) -> Option<Chase> {
        let buffer = self.sizes.ring(memory_node);
        let load_s = self.sizes.load_ns(bytes, pages) / 1e9;
        Some(Chase {
            cpu: *sizes::cpus_on(self.topology, cpu_node).first()?,
            cpu_node,
            memory_node,
            pages,
            buffer,
            bytes,
            dram: bytes == buffer,
            warm_up: self.sizes.warm_up(bytes),
            loads: ((self.wish.repetition_s / load_s) as u64).max(1024),
            repetitions: self.repetitions(),
        })
    }

    /// All pairs with memory on `memory_node`.
    fn bandwidth(&mut self, memory_node: u32) {
        let nearest = sizes::nearest(self.topology, memory_node);
        let bytes = self.sizes.arrays_for_a_pair(memory_node);
        for (rank, pages) in self.sizes.pages().into_iter().enumerate() {
            for (distance, &cpu_node) in nearest.iter().enumerate() {
                if rank > 0 && (distance > 0 || self.thin >= THINNEST) {
                    continue;
                }
                let kernels = match (rank, distance, self.thin) {
                    (0, 0, _) | (0, _, 0..2) => &Kernel::ALL[..],
                    (0, _, 2..5) => &[Kernel::Triad, Kernel::Read, Kernel::Random],
                    (0, ..) => &[Kernel::Triad, Kernel::Random],
                    _ => &[Kernel::Triad, Kernel::Read, Kernel::Random],
                };
                let cpus = sizes::cpus_on(self.topology, cpu_node);
                let cores = sizes::cores(self.topology, &cpus);
                let steps = match (rank, distance, self.thin) {
                    (0, 0, 0..3) | (0, _, 0) => sizes::thread_steps(cores, cpus.len(), self.thin == 0),
                    (0, _, 0..5) => sizes::ends(cores, cores),
                    _ => vec![cores],
                };
                for (threads, &kernel) in steps.iter().flat_map(|t| kernels.iter().map(move |k| (*t, k))) {
                    self.jobs.push(Job::Stream(Stream {
                        kernel,
                        cpu_node: Some(cpu_node),
                        cpus: cpus[..threads].to_vec(),
                        memory: Spot::Node(memory_node),
                        pages,
                        bytes,
                        repetitions: self.repetitions(),
                        part: Part::Bandwidth,
                    }));
                }
                if rank == 0 {
                    self.loaded(cpu_node, memory_node, distance, nearest.len());
                }
            }
        }
    }

    fn loaded(&mut self, cpu_node: u32, memory_node: u32, distance: usize, pairs: usize) {
        let cpus = sizes::cpus_on(self.topology, cpu_node);
        let first = self.topology.memory_nodes().first() == Some(memory_node);
        let wanted = match self.thin {
            0 => true,
            1 | 2 => distance == 0 || (first && distance + 1 == pairs),
            _ => first && (distance == 0 || distance + 1 == pairs),
        };
        let cores = sizes::cores(self.topology, &cpus);
        // Hardware threads of the chasing core would share its caches: only other cores inject.
        let injectors = cpus.get(1..cores).unwrap_or_default();
        let Some(&pages) = self.sizes.pages().first() else { return };
        let bytes = self.sizes.ring(memory_node);
        let chase = self.chase(cpu_node, memory_node, pages, bytes);
        let every = if self.thin < 2 { 1 } else { 2 };
        if let (true, false, Some(chase)) = (wanted, injectors.is_empty(), chase) {
            self.jobs.push(Job::Loaded(Loaded {
                chase,
                injectors: injectors.to_vec(),
                bytes: self.sizes.arrays_for_a_pair(memory_node),
                pauses: PAUSES.into_iter().step_by(every).collect(),
            }));
        }
    }

    /// More and more threads of the whole machine on one node's memory.
    fn contention(&mut self, memory_node: u32) {
        let first = self.topology.memory_nodes().first() == Some(memory_node);
        if self.thin < 2 || first {
            let bytes = self.sizes.arrays_for_all(&IdSet::from([memory_node]));
            self.contend(Spot::Node(memory_node), memory_node, bytes);
        }
    }

    fn contend(&mut self, memory: Spot, nearest_to: u32, bytes: u64) {
        let Some(&pages) = self.sizes.pages().first() else { return };
        let cpus = sizes::cpus_by_distance(self.topology, nearest_to);
        let steps = sizes::thread_steps(sizes::cores(self.topology, &cpus), cpus.len(), self.thin == 0);
        for kernel in [Kernel::Read, Kernel::Random, Kernel::Strided] {
            for &threads in &steps {
                self.jobs.push(Job::Stream(Stream {
                    kernel,
                    cpu_node: None,
                    cpus: cpus[..threads].to_vec(),
                    memory: memory.clone(),
                    pages,
                    bytes,
                    repetitions: self.repetitions(),
                    part: Part::Contention,
                }));
            }
        }
    }

    /// All threads on memory spread over all nodes.
    fn spread(&mut self) {
        let nodes = self.topology.memory_nodes();
        let (Some(first), Some(&pages)) = (nodes.first(), self.sizes.pages().first()) else { return };
        if nodes.len() < 2 {
            return;
        }
        let cpus = sizes::cpus_by_distance(self.topology, first);
        let cores = sizes::cores(self.topology, &cpus);
        let bytes = self.sizes.arrays_for_all(&nodes);
        let interleaved = Spot::Interleaved(nodes.clone());
        let weighted = Spot::Weighted(nodes.iter().map(|node| (node, 1)).collect());
        for memory in [interleaved.clone(), weighted, Spot::Local] {
            if memory == Spot::Local && !self.topology.cpu_nodes().within(&nodes) {
                continue;
            }
            for threads in sizes::ends(cores, cpus.len()).into_iter().filter(|t| *t > 1 || cores == 1) {
                for kernel in [Kernel::Triad, Kernel::Read, Kernel::Random] {
                    self.jobs.push(Job::Stream(Stream {
                        kernel,
                        cpu_node: None,
                        cpus: cpus[..threads].to_vec(),
                        memory: memory.clone(),
                        pages,
                        bytes,
                        repetitions: self.repetitions(),
                        part: Part::Bandwidth,
                    }));
                }
            }
            if memory == interleaved {
                self.contend(memory, first, bytes);
            }
        }
    }
}
