//! Recordings of machines that are made from a few facts, and a description of what is understood of them.

use std::collections::{BTreeMap, BTreeSet};

use genuma_machine::topology::{CacheKind, RecordedMachine};
use genuma_machine::{IdSet, Topology, TopologySource};

/// The kernel files of a machine: text by path.
#[derive(Default)]
pub struct Machine(BTreeMap<String, String>);

pub const CPU: &str = "/sys/devices/system/cpu";
pub const NODE: &str = "/sys/devices/system/node";

impl Machine {
    /// A machine with these CPUs online, and all of them and these nodes allowed.
    pub fn new(cpus: &str, nodes: &str) -> Machine {
        let allowed = format!("Cpus_allowed_list:\\t{cpus}\\nMems_allowed_list:\\t{nodes}");
        Machine::default()
            .file(&format!("{CPU}/online"), cpus)
            .file(&format!("{CPU}/present"), cpus)
            .file(&format!("{NODE}/online"), nodes)
            .file("/proc/self/status", &allowed)
            .file("/proc/self/cgroup", "")
            .file("/proc/self/mountinfo", "")
            .file("/proc/self/smaps", "KernelPageSize: 4 kB")
            .file("/proc/meminfo", "MemTotal: 1 kB\\nMemFree: 1 kB")
            .file("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
    }

    pub fn file(mut self, path: &str, text: &str) -> Machine {
        self.0.insert(path.to_owned(), text.to_owned());
        self
    }

    /// Adds the CPUs and the memory (MiB) of nodes. `distance` is that between two of them.
    pub fn nodes(mut self, nodes: &[(u32, &str, u64)], distance: impl Fn(u32, u32) -> u32) -> Machine {
        for (id, cpus, mib) in nodes {
            let row: Vec<String> = nodes.iter().map(|(to, ..)| distance(*id, *to).to_string()).collect();
            let kib = mib << 10;
            self = self
                .file(&format!("{NODE}/node{id}/cpulist"), cpus)
                .file(&format!("{NODE}/node{id}/distance"), &row.join(" "))
                .file(
                    &format!("{NODE}/node{id}/meminfo"),
                    &format!("Node {id} MemTotal: {kib} kB\\nNode {id} MemFree: {kib} kB"),
                );
        }
        self
    }

    /// Adds cores of a package, with numbers from `first_core` on: the hardware threads of each.
    pub fn cores(mut self, package: i64, first_core: i64, cores: &[IdSet]) -> Machine {
        for (core, threads) in (first_core..).zip(cores) {
            for cpu in threads.iter() {
                let folder = format!("{CPU}/cpu{cpu}/topology");
                self = self
                    .file(&format!("{folder}/physical_package_id"), &package.to_string())
                    .file(&format!("{folder}/core_id"), &core.to_string())
                    .file(&format!("{folder}/core_cpus_list"), &threads.to_string());
            }
        }
        self
    }

    /// Adds caches: the CPUs of each.
    pub fn caches(mut self, level: u32, kind: &str, kib: u32, caches: &[IdSet]) -> Machine {
        for cpus in caches {
            for cpu in cpus.iter() {
                let index = (0..).find(|i| !self.0.contains_key(&format!("{CPU}/cpu{cpu}/cache/index{i}/level")));
                let folder = format!("{CPU}/cpu{cpu}/cache/index{}", index.expect("a number"));
                self = self
                    .file(&format!("{folder}/level"), &level.to_string())
                    .file(&format!("{folder}/type"), kind)
                    .file(&format!("{folder}/size"), &format!("{kib}K"))
                    .file(&format!("{folder}/coherency_line_size"), "64")
                    .file(&format!("{folder}/shared_cpu_list"), &cpus.to_string());
            }
        }
        self
    }

    pub fn allowed(self, cpus: &str, nodes: &str) -> Machine {
        self.file("/proc/self/status", &format!("Cpus_allowed_list:\\t{cpus}\\nMems_allowed_list:\\t{nodes}"))
    }

    pub fn topology(&self, name: &str) -> Topology {
        let lines = self.0.iter().map(|(path, text)| match path.ends_with('/') {
            true => format!("{path}\n"),
            false => format!("{path} {text}\n"),
        });
        let text: String = ["genuma recording 1\n".to_owned()].into_iter().chain(lines).collect();
        let recorded = RecordedMachine::parse(name, &text).unwrap_or_else(|e| panic!("{name}: {e}"));
        recorded.topology().unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

/// Consecutive groups of `size` numbers from `first` to `last`.
pub fn groups(first: u32, last: u32, size: u32) -> Vec<IdSet> {
    (first..=last).step_by(size as usize).map(|start| (start..start + size).collect()).collect()
}

/// Cores whose first threads are `first` to `last`, and whose other threads follow at distances of `stride`.
pub fn split_threads(first: u32, last: u32, threads: u32, stride: u32) -> Vec<IdSet> {
    (first..=last).map(|cpu| (0..threads).map(|thread| cpu + thread * stride).collect()).collect()
}

pub fn set(text: &str) -> IdSet {
    text.parse().expect("a list")
}

/// Distance 10 within a node, otherwise `other`.
pub fn flat(other: u32) -> impl Fn(u32, u32) -> u32 {
    move |from, to| if from == to { 10 } else { other }
}

/// What is understood of a machine, in lines.
fn describe(topology: &Topology) -> Vec<String> {
    let count = |keys: Vec<String>| {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for key in keys {
            match counts.iter_mut().find(|(other, _)| *other == key) {
                Some((_, n)) => *n += 1,
                None => counts.push((key, 1)),
            }
        }
        counts.iter().map(|(key, n)| format!("{n} × {key}")).collect::<Vec<_>>().join(", ")
    };
    let packages: BTreeSet<u32> = topology.cpus.iter().map(|cpu| cpu.package).collect();
    let cores: BTreeSet<&IdSet> = topology.cpus.iter().map(|cpu| &cpu.siblings).collect();
    let mut lines = vec![format!(
        "{} CPUs in {} packages, threads of cores: {}",
        topology.cpus.len(),
        packages.len(),
        count(cores.iter().map(|threads| threads.len().to_string()).collect())
    )];
    let cache = |cache: &genuma_machine::topology::CpuCache| {
        let kind = match cache.kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        format!("L{}{kind} {} KiB of {} CPUs", cache.level, cache.bytes >> 10, cache.cpus.len())
    };
    lines.extend((!topology.caches.is_empty()).then(|| count(topology.caches.iter().map(cache).collect())));
    let mut nodes: Vec<(IdSet, String)> = Vec::new();
    for node in &topology.nodes {
        let cpus = match (node.cpus.len(), topology.nodes.len()) {
            (0, _) => "no CPUs".to_owned(),
            (n, 10..) => format!("{n} CPUs each"),
            _ => format!("CPUs {}", node.cpus),
        };
        let gpu = if node.is_gpu_memory { " of a GPU" } else { "" };
        let text = format!("{cpus}, {} MiB{gpu}", node.memory_bytes >> 20);
        match nodes.iter_mut().find(|(_, other)| *other == text) {
            Some((ids, _)) => ids.insert(node.id),
            None => nodes.push((IdSet::from([node.id]), text)),
        }
    }
    lines.extend(nodes.iter().map(|(ids, text)| format!("nodes {ids}: {text}")));
    let distances: BTreeSet<u32> = topology.nodes.iter().flat_map(|node| node.distances.values().copied()).collect();
    let is_symmetric = topology
        .nodes
        .iter()
        .all(|from| topology.nodes.iter().all(|to| from.distances.get(&to.id) == to.distances.get(&from.id)));
    if topology.nodes.len() > 1 {
        let words: Vec<String> = distances.iter().map(u32::to_string).collect();
        lines.push(format!("distances {}{}", words.join(" "), if is_symmetric { "" } else { ", not symmetric" }));
    }
    let (all, may_run) = (topology.cpus.iter().map(|cpu| cpu.id).collect::<IdSet>(), &topology.allowed.cpus);
    let (nodes, may_take) = (topology.allowed_cpu_nodes(), topology.allowed_memory_nodes());
    if *may_run != all || nodes != may_take {
        lines.push(format!("may run on {may_run} of nodes {nodes}, and use memory of nodes {may_take}"));
    }
    lines.extend((!topology.offline_cpus.is_empty()).then(|| format!("offline: {}", topology.offline_cpus)));
    // Most machines here are made without caches.
    let notes = topology.missing_notes.iter().filter(|note| !topology.caches.is_empty() || !note.contains("/cache "));
    lines.extend(notes.map(|note| format!("note: {note}")));
    lines
}

#[track_caller]
pub fn assert_understood(name: &str, machine: Machine, expected: &[&str]) {
    let topology = machine.topology(name);
    assert_eq!(describe(&topology), expected, "{name}");
    let json = serde_json::to_string(&topology).expect("JSON");
    assert_eq!(serde_json::from_str::<Topology>(&json).expect("a topology"), topology, "{name}: JSON loses nothing");
    let table = topology.format_topology();
    assert!(table.starts_with(&format!("{}: {} node", topology.origin, topology.nodes.len())), "{name}: {table}");
}
