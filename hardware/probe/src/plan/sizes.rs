//! How large buffers are, and in which order CPUs are used.

use genuma_machine::topology::{CacheKind, Transparent};
use genuma_machine::{IdSet, Topology};

use super::{Error, Wish};
use crate::profile::PageKind;

/// Smallest ring: half of the smallest L1 there is.
const SMALLEST_RING: u64 = 8 << 10;
/// Largest cache where the kernel tells of none.
const ASSUMED_CACHE: u64 = 32 << 20;
/// Arrays and rings are so many times as large as the caches: STREAM's rule.
const TIMES: u64 = 4;
/// Smallest array that is worth a clock.
const SMALLEST_ARRAY: u64 = 1 << 20;
const MIB: u64 = 1 << 20;

/// Sizes of caches and room for buffers.
#[derive(Debug)]
pub struct Sizes {
    /// Bytes of the data caches that one CPU sees, nearest first.
    caches: Vec<u64>,
    /// Bytes of all last-level caches: of the node that has most, and of the machine.
    last_level: (u64, u64),
    /// Bytes that buffers may take on each node.
    room: Vec<(u32, u64)>,
    largest: u64,
    pages: Vec<PageKind>,
    no_huge_pages: bool,
    no_caches: bool,
    single: bool,
    lonely: bool,
}

impl Sizes {
    pub fn of(topology: &Topology, wish: &Wish) -> Result<Sizes, Error> {
        let (cpus, nodes) = (usable_cpus(topology), topology.memory_nodes());
        if cpus.is_empty() || nodes.is_empty() {
            return Err(Error::Nothing { cpus: topology.allowed.cpus.clone(), nodes });
        }
        // Half of what is free, and half of what the control group leaves to all nodes together.
        let limit = topology.allowed.memory.unwrap_or(u64::MAX) / 2;
        let free = |id: u32| topology.node(id).map_or(0, |node| node.free);
        let room: Vec<(u32, u64)> = nodes.iter().map(|id| (id, (free(id) / 2).min(limit))).collect();
        if let Some(&(node, _)) = room.iter().find(|(_, room)| *room < 8 * SMALLEST_ARRAY) {
            return Err(Error::NoRoom { node, free: free(node).min(limit.saturating_mul(2)) });
        }
        let data = topology.caches.iter().filter(|cache| cache.kind != CacheKind::Instruction);
        let data: Vec<_> = data.filter(|cache| !cache.cpus.and(&cpus).is_empty()).collect();
        let top = data.iter().map(|cache| cache.level).max().unwrap_or(0);
        let last: Vec<_> = data.iter().filter(|cache| cache.level == top).collect();
        let of_node = |node: u32| -> u64 {
            let on_node: IdSet = topology.node(node).map(|n| n.cpus.clone()).unwrap_or_default();
            last.iter().filter(|cache| !cache.cpus.and(&on_node).is_empty()).map(|cache| cache.bytes).sum()
        };
        let most = topology.cpu_nodes().iter().map(of_node).max().unwrap_or(0);
        let all: u64 = last.iter().map(|cache| cache.bytes).sum();
        let no_caches = all == 0;
        let mut caches: Vec<u64> = (1..=top)
            .filter_map(|level| data.iter().filter(|c| c.level == level).map(|c| c.bytes).max())
            .collect();
        if no_caches {
            caches.push(ASSUMED_CACHE);
        }
        let no_huge_pages = matches!(topology.transparent, None | Some(Transparent::Never));
        Ok(Sizes {
            last_level: (most.max(caches[caches.len() - 1]), all.max(caches[caches.len() - 1])),
            caches,
            room,
            largest: wish.largest,
            pages: if no_huge_pages { vec![PageKind::Base] } else { vec![PageKind::Huge, PageKind::Base] },
            no_huge_pages,
            no_caches,
            single: nodes.len() == 1,
            lonely: topology.cpu_nodes().iter().all(|node| cores(topology, &cpus_on(topology, node)) < 2),
        })
    }

    /// What cannot be measured here, or not as it should be.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if self.no_huge_pages {
            missing.push("transparent huge pages are off: all memory is in base pages".to_owned());
        }
        if self.no_caches {
            missing.push(format!("no sizes of caches are known: {} MiB are assumed", ASSUMED_CACHE / MIB));
        }
        if self.single {
            missing
                .push("one node has memory: there are no remote pairs, and nothing to interleave".to_owned());
        }
        if self.lonely {
            missing.push("no node has a second core: latency under load is not measured".to_owned());
        }
        let nodes: Vec<u32> = self.room.iter().map(|(node, _)| *node).collect();
        if let Some(node) = nodes.iter().find(|node| self.ring(**node) < self.wanted_ring()) {
            missing.push(format!(
                "rings are only {} MiB on node {node}, less than {TIMES} times the last-level cache: \
                 their latency is partly the cache's",
                self.ring(*node) / MIB
            ));
        }
        let wanted = TIMES * self.last_level.0;
        if let Some(node) = nodes.iter().find(|node| self.arrays_for_a_pair(**node) / 3 < wanted) {
            missing.push(format!(
                "arrays are only {} MiB on node {node}, less than {TIMES} times the last-level caches: \
                 their bandwidth is partly the caches'",
                self.arrays_for_a_pair(*node) / 3 / MIB
            ));
        }
        missing
    }

    /// Kinds of pages to measure with, the better first.
    pub fn pages(&self) -> Vec<PageKind> {
        self.pages.clone()
    }

    fn wanted_ring(&self) -> u64 {
        (TIMES * self.caches[self.caches.len() - 1]).next_power_of_two()
    }

    /// Bytes of the largest ring on a node: a power of two, at most a quarter of its room.
    pub fn ring(&self, node: u32) -> u64 {
        let most = (self.room(node) / 4).min(self.largest).max(SMALLEST_RING);
        self.wanted_ring().min(1 << most.ilog2())
    }

    /// Bytes of the three arrays that one node's CPUs go through.
    pub(crate) fn arrays_for_a_pair(&self, memory_node: u32) -> u64 {
        self.arrays(TIMES * self.last_level.0, self.room(memory_node))
    }

    /// Bytes of the three arrays that all CPUs go through, spread over `nodes`.
    pub(crate) fn arrays_for_all(&self, nodes: &IdSet) -> u64 {
        let least = nodes.iter().map(|node| self.room(node)).min().unwrap_or(0);
        self.arrays(TIMES * self.last_level.1, least)
    }

    fn arrays(&self, wanted: u64, room: u64) -> u64 {
        let each = wanted.min(self.largest).min(room / 4).max(SMALLEST_ARRAY);
        3 * (each / MIB * MIB)
    }

    fn room(&self, node: u32) -> u64 {
        self.room.iter().find(|(id, _)| *id == node).map_or(0, |(_, room)| *room)
    }

    /// A guess at the ns of a load from a ring of this size, to choose how many make a repetition.
    pub(crate) fn load_ns(&self, bytes: u64, pages: PageKind) -> f64 {
        let level = self.caches.iter().position(|cache| bytes <= *cache);
        let beyond_translations = if pages == PageKind::Base { 1.4 } else { 1.0 };
        match level {
            Some(0) => 1.6,
            Some(1) if self.caches.len() > 2 => 5.0,
            Some(_) => 25.0 * beyond_translations,
            None => 120.0 * beyond_translations,
        }
    }

    /// Loads that drive out of the caches what linking the ring left there.
    pub fn warm_up(&self, bytes: u64) -> u64 {
        let largest_cache = self.caches.iter().max().copied().unwrap_or(ASSUMED_CACHE);
        bytes.min(largest_cache + largest_cache / 4) / crate::kernels::LINE as u64
    }
}

/// Sizes of rings up to `largest`, a power of two: `steps` for each doubling.
pub fn steps(largest: u64, steps: u32) -> Vec<u64> {
    let octaves = (largest / SMALLEST_RING).max(1).ilog2();
    let size = |i: u32| {
        let exact = SMALLEST_RING as f64 * (f64::from(i) / f64::from(steps)).exp2();
        (exact / 1024.0).round() as u64 * 1024
    };
    (0..=octaves * steps).map(size).collect()
}

/// CPUs this process may use.
fn usable_cpus(topology: &Topology) -> IdSet {
    topology.cpus.iter().map(|cpu| cpu.id).collect::<IdSet>().and(&topology.allowed.cpus)
}

/// How many hardware threads of its core come before this CPU.
fn rank(topology: &Topology, id: u32) -> usize {
    let siblings = topology.cpu(id).map(|cpu| cpu.siblings.and(&topology.allowed.cpus)).unwrap_or_default();
    siblings.iter().take_while(|sibling| *sibling < id).count()
}

/// The CPUs of a node that may be used: one of each core first.
pub(crate) fn cpus_on(topology: &Topology, node: u32) -> Vec<u32> {
    let mut cpus: Vec<u32> =
        usable_cpus(topology).iter().filter(|id| topology.cpu(*id).is_some_and(|c| c.node == node)).collect();
    cpus.sort_by_key(|id| (rank(topology, *id), *id));
    cpus
}

/// All CPUs that may be used: one of each core first, those near to a node first.
pub(crate) fn cpus_by_distance(topology: &Topology, node: u32) -> Vec<u32> {
    let mut cpus: Vec<u32> = usable_cpus(topology).iter().collect();
    let away = |id: u32| topology.cpu(id).map_or(u32::MAX, |cpu| distance(topology, cpu.node, node));
    cpus.sort_by_key(|id| (rank(topology, *id), away(*id), *id));
    cpus
}

/// How many of these CPUs, ordered as by [`cpus_on`], are the first of their core.
pub fn cores(topology: &Topology, cpus: &[u32]) -> usize {
    cpus.iter().filter(|id| rank(topology, **id) == 0).count()
}

/// Nodes with usable CPUs, the nearest to a node's memory first.
pub fn nearest(topology: &Topology, memory_node: u32) -> Vec<u32> {
    let mut nodes: Vec<u32> = topology.cpu_nodes().iter().collect();
    nodes.sort_by_key(|node| (*node != memory_node, distance(topology, *node, memory_node), *node));
    nodes
}

fn distance(topology: &Topology, from: u32, to: u32) -> u32 {
    let told = topology.node(from).and_then(|node| node.distances.get(&to).copied());
    told.unwrap_or(if from == to { 10 } else { 20 })
}

/// One thread, all cores, all hardware threads.
pub fn ends(cores: usize, all: usize) -> Vec<usize> {
    let mut ends = vec![1, cores.max(1), all.max(1)];
    ends.dedup();
    ends
}

/// Numbers of threads from one to all: powers of two, those between on a fine scale, all cores, all hardware threads.
pub(crate) fn thread_steps(cores: usize, all: usize, fine: bool) -> Vec<usize> {
    let powers = (0..usize::BITS - 1).map(|i| 1usize << i).take_while(|n| *n < all);
    let mut steps: Vec<usize> =
        powers.flat_map(|n| if fine && n > 1 { vec![n, n + n / 2] } else { vec![n] }).collect();
    steps.extend([cores.max(1), all.max(1)]);
    steps.retain(|n| *n <= all.max(1));
    steps.sort_unstable();
    steps.dedup();
    steps
}
