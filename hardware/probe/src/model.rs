//! A machine whose numbers are given: it answers as a measured one would, at once and always the same.
//!
//! Latency follows its caches, bandwidth grows with threads until the node's memory is busy, and distance makes both worse.
//! For tests, and for what is drawn or decided from a profile.

use std::collections::BTreeMap;

use genuma_machine::Topology;

use crate::backend::{Backend, Error, UnderLoad};
use crate::plan::{Chase, Loaded, Stream};
use crate::profile::{BufferCheck, PageKind, Spot};

/// A machine that is only numbers.
#[derive(Debug, Clone)]
pub struct Model {
    /// Who is how far from whom.
    pub topology: Topology,
    /// Bytes and ns of each cache, nearest first.
    pub caches: Vec<(u64, f64)>,
    /// ns of local DRAM.
    pub(crate) dram_ns: f64,
    /// GB/s of a thread on local memory.
    pub(crate) thread_gbs: f64,
    /// GB/s of a node's memory.
    pub(crate) node_gbs: f64,
    /// Seconds that each job takes.
    pub job_s: f64,
    clock_s: f64,
    placed: BTreeMap<Spot, (PageKind, u64)>,
}

impl Model {
    /// A server like those of today: 32 KiB, 1 MiB and 32 MiB of caches, 100 ns, 12 GB/s a thread and 100 GB/s a node.
    pub fn new(topology: Topology) -> Model {
        Model {
            topology,
            caches: vec![(32 << 10, 1.5), (1 << 20, 5.0), (32 << 20, 20.0)],
            dram_ns: 100.0,
            thread_gbs: 12.0,
            node_gbs: 100.0,
            job_s: 0.25,
            clock_s: 0.0,
            placed: BTreeMap::new(),
        }
    }

    fn work(&mut self) {
        self.clock_s += self.job_s;
    }

    /// How many times slower than local.
    fn slowness(&self, cpu_node: u32, memory_node: u32) -> f64 {
        let told = self.topology.node(cpu_node).and_then(|node| node.distances.get(&memory_node));
        f64::from(told.copied().unwrap_or(10)) / 10.0
    }

    fn load_ns(&self, bytes: u64, slowness: f64, pages: PageKind) -> f64 {
        let cached = self.caches.iter().find(|(size, _)| bytes <= *size).map(|(_, ns)| *ns);
        let translation = if pages == PageKind::Base { 1.2 } else { 1.0 };
        cached.unwrap_or(self.dram_ns * slowness * translation)
    }

    /// Repetitions: the quantity itself, then a little more and a little less.
    fn around(quantity: f64, repetitions: u32) -> Vec<f64> {
        (0..repetitions).map(|i| quantity * [1.0, 1.02, 0.98][i as usize % 3]).collect()
    }

    fn place(&mut self, spot: &Spot, pages: PageKind, bytes: u64) {
        let kept = self.placed.entry(spot.clone()).or_insert((pages, 0));
        kept.1 = kept.1.max(bytes);
    }
}

impl Backend for Model {
    fn chase(&mut self, job: &Chase) -> Result<Vec<f64>, Error> {
        self.work();
        self.place(&Spot::Node(job.memory_node), job.pages, job.buffer);
        let slowness = self.slowness(job.cpu_node, job.memory_node);
        Ok(Model::around(self.load_ns(job.bytes, slowness, job.pages), job.repetitions))
    }

    fn stream(&mut self, job: &Stream) -> Result<Vec<f64>, Error> {
        self.work();
        self.place(&job.memory, job.pages, job.bytes);
        let nodes: Vec<u32> = match &job.memory {
            Spot::Node(node) => vec![*node],
            Spot::Interleaved(nodes) => nodes.iter().collect(),
            Spot::Weighted(weights) => weights.keys().copied().collect(),
            Spot::Local => self.topology.memory_nodes().iter().collect(),
        };
        let node_of = |cpu: u32| self.topology.cpu(cpu).map_or(0, |cpu| cpu.node);
        let thread = |cpu: u32| {
            let local = job.memory == Spot::Local;
            let slow: f64 = nodes.iter().map(|node| self.slowness(node_of(cpu), *node)).sum();
            self.thread_gbs / if local { 1.0 } else { slow / nodes.len() as f64 }
        };
        let wanted: f64 = job.cpus.iter().map(|cpu| thread(*cpu)).sum();
        Ok(Model::around(wanted.min(self.node_gbs * nodes.len() as f64), job.repetitions))
    }

    fn loaded(&mut self, job: &Loaded) -> Result<Vec<Vec<UnderLoad>>, Error> {
        self.work();
        let chase = &job.chase;
        let slowness = self.slowness(chase.cpu_node, chase.memory_node);
        let idle = self.load_ns(chase.bytes, slowness, chase.pages);
        let point = |pause: &Option<u32>| {
            let rate = |pause: u32| self.thread_gbs / slowness / (1.0 + f64::from(pause) / 100.0);
            let wanted = pause.map_or(0.0, rate) * job.injectors.len() as f64;
            let injected_gbs = wanted.min(0.95 * self.node_gbs);
            // Waiting grows as a queue's does.
            let load_ns = idle / (1.0 - injected_gbs / self.node_gbs);
            vec![UnderLoad { injected_gbs, load_ns }; chase.repetitions as usize]
        };
        Ok(job.pauses.iter().map(point).collect())
    }

    fn buffers(&self) -> Vec<BufferCheck> {
        let check = |(spot, (pages, bytes)): (&Spot, &(PageKind, u64))| BufferCheck {
            asked: format!("{spot:?}").to_lowercase(),
            pages: *pages,
            bytes: *bytes,
            found: match spot {
                Spot::Node(node) => [(*node, *bytes)].into(),
                _ => BTreeMap::new(),
            },
            as_asked: matches!(spot, Spot::Node(_)).then_some(true),
        };
        self.placed.iter().map(check).collect()
    }

    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    fn instructions(&self) -> &'static str {
        "model"
    }

    fn clock_s(&self) -> f64 {
        self.clock_s
    }
}
