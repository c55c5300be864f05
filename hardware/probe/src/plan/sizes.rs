//! Chooses the sizes of measurement buffers, and the order in which CPUs are used for measuring threads.

use genuma_machine::topology::{CacheKind, TransparentHugePageMode};
use genuma_machine::{IdSet, Topology};

use super::{Error, PlanOptions};
use crate::profile::BufferPageKind;

/// Minimum bytes of a pointer chain: half of the smallest L1 cache of current processors.
const MIN_CHAIN_BYTES: u64 = 8 << 10;
/// Size in bytes assumed for the largest cache if the kernel reports none.
const DEFAULT_CACHE_BYTES: u64 = 32 << 20;
/// Minimum size of arrays and chains as a multiple of the size of the caches (STREAM's rule).
const BUFFER_TO_CACHE_RATIO: u64 = 4;
/// Minimum bytes of an array. Smaller arrays are too fast to time.
const MIN_ARRAY_BYTES: u64 = 1 << 20;
const MIB: u64 = 1 << 20;

/// Cache sizes and the memory available for buffers.
#[derive(Debug)]
pub(super) struct CacheSizesAndBufferLimits {
    /// Bytes of the data caches of one CPU, nearest first.
    caches: Vec<u64>,
    /// Total bytes of the last-level caches: of the node with the largest total, and of the whole machine.
    last_level_cache_bytes: (u64, u64),
    /// Bytes that buffers may use on each node.
    available_bytes: Vec<(u32, u64)>,
    max_buffer_bytes: u64,
    pages: Vec<BufferPageKind>,
    lacks_huge_pages: bool,
    lacks_cache_sizes: bool,
    has_single_memory_node: bool,
    has_single_core_nodes_only: bool,
}

impl CacheSizesAndBufferLimits {
    /// Finds the cache sizes, and the memory that buffers may take, from the topology and the options of the plan.
    pub(super) fn from_topology_and_options(
        topology: &Topology,
        options: &PlanOptions,
    ) -> Result<CacheSizesAndBufferLimits, Error> {
        let (cpus, nodes) = (usable_cpus(topology), topology.allowed_memory_nodes());
        if cpus.is_empty() || nodes.is_empty() {
            return Err(Error::NothingAllowed { cpus: topology.allowed.cpus.clone(), nodes });
        }
        // Half of the free memory, and half of the control group's limit for all nodes together.
        let limit = topology.allowed.memory_limit_bytes.unwrap_or(u64::MAX) / 2;
        let free = |id: u32| topology.find_node(id).map_or(0, |node| node.free_bytes);
        let room: Vec<(u32, u64)> = nodes.iter().map(|id| (id, (free(id) / 2).min(limit))).collect();
        if let Some(&(node, _)) = room.iter().find(|(_, room)| *room < 8 * MIN_ARRAY_BYTES) {
            return Err(Error::NotEnoughMemory { node, free: free(node).min(limit.saturating_mul(2)) });
        }
        let data = topology.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction);
        let data: Vec<_> = data.filter(|cache| !cache.cpus.intersection(&cpus).is_empty()).collect();
        let top = data.iter().map(|cache| cache.level).max().unwrap_or(0);
        let last: Vec<_> = data.iter().filter(|cache| cache.level == top).collect();
        let of_node = |node: u32| -> u64 {
            let on_node: IdSet = topology.find_node(node).map(|n| n.cpus.clone()).unwrap_or_default();
            last.iter().filter(|cache| !cache.cpus.intersection(&on_node).is_empty()).map(|cache| cache.bytes).sum()
        };
        let most = topology.allowed_cpu_nodes().iter().map(of_node).max().unwrap_or(0);
        let all: u64 = last.iter().map(|cache| cache.bytes).sum();
        let no_caches = all == 0;
        let mut caches: Vec<u64> =
            (1..=top).filter_map(|level| data.iter().filter(|c| c.level == level).map(|c| c.bytes).max()).collect();
        if no_caches {
            caches.push(DEFAULT_CACHE_BYTES);
        }
        let no_huge_pages = matches!(topology.transparent_huge_pages, None | Some(TransparentHugePageMode::Never));
        Ok(CacheSizesAndBufferLimits {
            last_level_cache_bytes: (most.max(caches[caches.len() - 1]), all.max(caches[caches.len() - 1])),
            caches,
            available_bytes: room,
            max_buffer_bytes: options.max_buffer_bytes,
            pages: if no_huge_pages {
                vec![BufferPageKind::Base]
            } else {
                vec![BufferPageKind::Huge, BufferPageKind::Base]
            },
            lacks_huge_pages: no_huge_pages,
            lacks_cache_sizes: no_caches,
            has_single_memory_node: nodes.len() == 1,
            has_single_core_nodes_only: topology
                .allowed_cpu_nodes()
                .iter()
                .all(|node| count_cores_of_cpus(topology, &usable_cpus_of_node(topology, node)) < 2),
        })
    }

    /// Sentences for the user on measurements that are impossible or limited on this machine.
    pub(super) fn describe_measurement_limitations(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.lacks_huge_pages {
            missing.push("transparent huge pages are off: all memory is in base pages".to_owned());
        }
        if self.lacks_cache_sizes {
            missing.push(format!("no cache sizes are known: assuming {} MiB", DEFAULT_CACHE_BYTES / MIB));
        }
        if self.has_single_memory_node {
            missing.push("one node has memory: there are no remote pairs, and nothing to interleave".to_owned());
        }
        if self.has_single_core_nodes_only {
            missing.push("no node has a second core: latency under load is not measured".to_owned());
        }
        let nodes: Vec<u32> = self.available_bytes.iter().map(|(node, _)| *node).collect();
        if let Some(node) = nodes.iter().find(|node| self.max_chain_bytes(**node) < self.preferred_chain_bytes()) {
            missing.push(format!(
                "pointer chains are only {} MiB on node {node}, less than {BUFFER_TO_CACHE_RATIO} times the last-level cache: \
                 their latency is partly the cache's",
                self.max_chain_bytes(*node) / MIB
            ));
        }
        let wanted = BUFFER_TO_CACHE_RATIO * self.last_level_cache_bytes.0;
        if let Some(node) = nodes.iter().find(|node| self.arrays_bytes_for_node(**node) / 3 < wanted) {
            missing.push(format!(
                "arrays are only {} MiB on node {node}, less than {BUFFER_TO_CACHE_RATIO} times the last-level caches: \
                 their bandwidth is partly the caches'",
                self.arrays_bytes_for_node(*node) / 3 / MIB
            ));
        }
        missing
    }

    /// Page kinds to measure with, the preferred one first.
    pub(super) fn page_kinds_to_measure(&self) -> Vec<BufferPageKind> {
        self.pages.clone()
    }

    fn preferred_chain_bytes(&self) -> u64 {
        (BUFFER_TO_CACHE_RATIO * self.caches[self.caches.len() - 1]).next_power_of_two()
    }

    /// Bytes of the largest pointer chain on node `node`: 4 times a last-level cache, rounded up to a power of two, but
    /// at most the buffer limit of the plan and a quarter of the available bytes, rounded down to a power of two.
    pub(super) fn max_chain_bytes(&self, node: u32) -> u64 {
        let most = (self.available_bytes_on(node) / 4).min(self.max_buffer_bytes).max(MIN_CHAIN_BYTES);
        self.preferred_chain_bytes().min(1 << most.ilog2())
    }

    /// Bytes of the three arrays for measurements with the CPUs of one node and memory on `memory_node`.
    pub(crate) fn arrays_bytes_for_node(&self, memory_node: u32) -> u64 {
        self.arrays_bytes(BUFFER_TO_CACHE_RATIO * self.last_level_cache_bytes.0, self.available_bytes_on(memory_node))
    }

    /// Bytes of the three arrays for measurements with all CPUs and memory distributed over `nodes`.
    pub(crate) fn arrays_bytes_for_all_cpus(&self, nodes: &IdSet) -> u64 {
        let least = nodes.iter().map(|node| self.available_bytes_on(node)).min().unwrap_or(0);
        self.arrays_bytes(BUFFER_TO_CACHE_RATIO * self.last_level_cache_bytes.1, least)
    }

    fn arrays_bytes(&self, wanted: u64, room: u64) -> u64 {
        let each = wanted.min(self.max_buffer_bytes).min(room / 4).max(MIN_ARRAY_BYTES);
        3 * (each / MIB * MIB)
    }

    fn available_bytes_on(&self, node: u32) -> u64 {
        self.available_bytes.iter().find(|(id, _)| *id == node).map_or(0, |(_, room)| *room)
    }

    /// Estimates the latency in nanoseconds of a load from a pointer chain of `bytes` bytes, to choose the number of
    /// loads per repetition.
    pub(crate) fn estimate_latency_ns(&self, bytes: u64, pages: BufferPageKind) -> f64 {
        let level = self.caches.iter().position(|cache| bytes <= *cache);
        let beyond_translations = if pages == BufferPageKind::Base { 1.4 } else { 1.0 };
        match level {
            Some(0) => 1.6,
            Some(1) if self.caches.len() > 2 => 5.0,
            Some(_) => 25.0 * beyond_translations,
            None => 120.0 * beyond_translations,
        }
    }

    /// Number of loads before timing that is enough to evict from the caches what linking the pointer chain left there.
    pub(super) fn num_warm_up_loads_for_chain(&self, bytes: u64) -> u64 {
        let largest_cache = self.caches.iter().max().copied().unwrap_or(DEFAULT_CACHE_BYTES);
        bytes.min(largest_cache + largest_cache / 4) / crate::bandwidth_kernels::CACHE_LINE_BYTES as u64
    }
}

/// Chain sizes in bytes up to `largest`, a power of two: `steps` sizes per doubling.
pub(super) fn list_chain_sizes(largest: u64, steps: u32) -> Vec<u64> {
    let octaves = (largest / MIN_CHAIN_BYTES).max(1).ilog2();
    let size = |i: u32| {
        let exact = MIN_CHAIN_BYTES as f64 * (f64::from(i) / f64::from(steps)).exp2();
        (exact / 1024.0).round() as u64 * 1024
    };
    (0..=octaves * steps).map(size).collect()
}

/// CPUs that this process may use.
fn usable_cpus(topology: &Topology) -> IdSet {
    topology.cpus.iter().map(|cpu| cpu.id).collect::<IdSet>().intersection(&topology.allowed.cpus)
}

/// Number of allowed hardware threads of the same core with a lower CPU number.
fn core_thread_rank(topology: &Topology, id: u32) -> usize {
    let siblings =
        topology.find_cpu(id).map(|cpu| cpu.siblings.intersection(&topology.allowed.cpus)).unwrap_or_default();
    siblings.iter().take_while(|sibling| *sibling < id).count()
}

/// The usable CPUs of a node: one CPU of each core first.
pub(crate) fn usable_cpus_of_node(topology: &Topology, node: u32) -> Vec<u32> {
    let mut cpus: Vec<u32> =
        usable_cpus(topology).iter().filter(|id| topology.find_cpu(*id).is_some_and(|c| c.node == node)).collect();
    cpus.sort_by_key(|id| (core_thread_rank(topology, *id), *id));
    cpus
}

/// All usable CPUs: one CPU of each core first, those near to `node` first.
pub(crate) fn usable_cpus_by_thread_rank_and_distance(topology: &Topology, node: u32) -> Vec<u32> {
    let mut cpus: Vec<u32> = usable_cpus(topology).iter().collect();
    let away = |id: u32| topology.find_cpu(id).map_or(u32::MAX, |cpu| node_distance(topology, cpu.node, node));
    cpus.sort_by_key(|id| (core_thread_rank(topology, *id), away(*id), *id));
    cpus
}

/// Number of cores that these CPUs (in the order of [`usable_cpus_of_node`]) belong to.
pub(super) fn count_cores_of_cpus(topology: &Topology, cpus: &[u32]) -> usize {
    cpus.iter().filter(|id| core_thread_rank(topology, **id) == 0).count()
}

/// Nodes with usable CPUs, the nearest to `memory_node` first.
pub(super) fn cpu_nodes_by_distance(topology: &Topology, memory_node: u32) -> Vec<u32> {
    let mut nodes: Vec<u32> = topology.allowed_cpu_nodes().iter().collect();
    nodes.sort_by_key(|node| (*node != memory_node, node_distance(topology, *node, memory_node), *node));
    nodes
}

fn node_distance(topology: &Topology, from: u32, to: u32) -> u32 {
    let told = topology.find_node(from).and_then(|node| node.distances.get(&to).copied());
    told.unwrap_or(if from == to { 10 } else { 20 })
}

/// Thread counts: one, all cores, all hardware threads.
pub(super) fn list_one_and_all_thread_counts(cores: usize, all: usize) -> Vec<usize> {
    let mut ends = vec![1, cores.max(1), all.max(1)];
    ends.dedup();
    ends
}

/// Thread counts from one to all: powers of two, with `fine` also values between them, all cores, all hardware
/// threads.
pub(crate) fn list_thread_counts(cores: usize, all: usize, fine: bool) -> Vec<usize> {
    let powers = (0..usize::BITS - 1).map(|i| 1usize << i).take_while(|n| *n < all);
    let mut steps: Vec<usize> = powers.flat_map(|n| if fine && n > 1 { vec![n, n + n / 2] } else { vec![n] }).collect();
    steps.extend([cores.max(1), all.max(1)]);
    steps.retain(|n| *n <= all.max(1));
    steps.sort_unstable();
    steps.dedup();
    steps
}
