//! Assigns CPUs and NUMA nodes to instances.
//!
//! Each instance gets the same number of whole nodes, which are near to each other (the hybrid strategy of lenis2017).
//! With more instances than nodes, the cores of a node are divided among instances. Hardware threads of a core stay
//! together if the node has at least one core per instance.

use std::collections::BTreeMap;

use genuma_machine::placement::MemoryPolicy;
use genuma_machine::topology::Cpu;
use genuma_machine::{IdSet, Topology};

use crate::memory_pages::MemoryPages;
use crate::strategy::{InstanceMemoryPolicy, Strategy};

#[cfg(test)]
mod tests;

/// CPUs, nodes and memory policy of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuSlot {
    /// CPUs on which the instance may run.
    pub cpus: IdSet,
    /// Memory nodes of the instance: those of its CPUs, or the nearest ones if those have no memory.
    pub nodes: IdSet,
    /// Memory policy; `None` for the kernel's default, and on a machine with one memory node.
    pub policy: Option<MemoryPolicy>,
    /// Number of threads of the instance, at least 1.
    pub threads: usize,
    /// Size of the pages of the instance's memory.
    pub pages: MemoryPages,
}

/// Reason why a strategy is not possible on a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The process may use no online CPU.
    #[error("{0}: this process may not use any online CPU")]
    NoCpus(Strategy),
    /// The process may use no node with memory.
    #[error("{0}: this process may not use any node with memory")]
    NoMemory(Strategy),
    /// There are more instances than CPUs.
    #[error("{strategy}: {} instances on {cpus} CPUs; ask for {cpus} at most", strategy.instances)]
    TooManyInstances {
        /// The requested strategy.
        strategy: Strategy,
        /// Number of CPUs that this process may use.
        cpus: usize,
    },
}

/// CPUs of one instance, and the nodes of these CPUs.
type CpuShare = (IdSet, IdSet);

/// Assigns CPU slots to the instances of `strategy`. `threads` is the number of threads of all instances together (at
/// least one per instance); it is divided in proportion to the CPUs of the slots.
///
/// Slots do not overlap and together contain all allowed CPUs. Exception: on a machine with one node and fewer CPUs
/// than instances, instances share CPUs.
///
/// # Errors
/// The process may use no CPU or no memory, or there are more instances than CPUs on several nodes.
pub fn assign_cpu_slots(strategy: &Strategy, topology: &Topology, threads: usize) -> Result<Vec<CpuSlot>, Error> {
    let instances = strategy.instances.max(1) as usize;
    let nodes = cores_by_node(topology);
    let cpus: usize = nodes.values().flatten().map(IdSet::len).sum();
    let memory = topology.allowed_memory_nodes();
    if cpus == 0 {
        return Err(Error::NoCpus(*strategy));
    }
    if memory.is_empty() {
        return Err(Error::NoMemory(*strategy));
    }
    if instances > cpus && nodes.len() > 1 {
        return Err(Error::TooManyInstances { strategy: *strategy, cpus });
    }
    let shares = match instances {
        1 => vec![(all_cpus(&nodes), nodes.keys().copied().collect())],
        few if few <= nodes.len() => share_whole_nodes(topology, &nodes, few),
        many => share_parts_of_nodes(&nodes, many),
    };
    let sizes: Vec<usize> = shares.iter().map(|(cpus, _)| cpus.len()).collect();
    let threads = apportion(threads.max(instances), &sizes, |_| usize::MAX);
    let cpu_slot = |((cpus, of), threads): (CpuShare, usize)| {
        let nodes = if instances == 1 { memory.clone() } else { nearest_memory_nodes(topology, &of, &memory) };
        let policy = kernel_policy(strategy.memory, &nodes).filter(|_| memory.len() > 1);
        CpuSlot { cpus, nodes, policy, threads, pages: MemoryPages::Default }
    };
    Ok(shares.into_iter().zip(threads).map(cpu_slot).collect())
}

/// Returns the strategies that are worth trying on this machine, the plain run first. `most` is the maximum number of
/// instances; there are never more instances than `threads`.
pub fn candidate_strategies(topology: &Topology, threads: usize, most: u32) -> Vec<Strategy> {
    let memory = topology.allowed_memory_nodes().len();
    let nodes = topology.allowed_cpu_nodes().len();
    let most = most.min(u32::try_from(threads).unwrap_or(u32::MAX)).max(1);
    let each = |instances: u32, memory: &[InstanceMemoryPolicy]| -> Vec<Strategy> {
        memory.iter().map(|&memory| Strategy { instances, memory }).collect()
    };
    if memory < 2 {
        // With one memory node only the number of instances can be chosen, for programs that do not scale with
        // threads.
        let cpus = topology.allowed.cpus.len().max(1);
        let instances = (0..).map(|power| 1u32 << power);
        let fits = |&k: &u32| k <= most && k as usize <= cpus;
        return instances.take_while(fits).flat_map(|k| each(k, &[InstanceMemoryPolicy::Default])).collect();
    }
    let mut all =
        each(1, &[InstanceMemoryPolicy::Default, InstanceMemoryPolicy::Local, InstanceMemoryPolicy::Interleave]);
    if topology.interleave_weights.is_some() {
        all.extend(each(1, &[InstanceMemoryPolicy::Weighted]));
    }
    for k in 2..=most.min(u32::try_from(nodes).unwrap_or(u32::MAX)) {
        all.extend(each(k, &[InstanceMemoryPolicy::Local, InstanceMemoryPolicy::Bind]));
        // On one node per instance, interleaving equals binding.
        if (k as usize) < nodes {
            all.extend(each(k, &[InstanceMemoryPolicy::Interleave]));
        }
    }
    all
}

fn kernel_policy(memory: InstanceMemoryPolicy, nodes: &IdSet) -> Option<MemoryPolicy> {
    match memory {
        InstanceMemoryPolicy::Default => None,
        InstanceMemoryPolicy::Local => Some(MemoryPolicy::Local),
        InstanceMemoryPolicy::Interleave => Some(MemoryPolicy::Interleave(nodes.clone())),
        InstanceMemoryPolicy::Weighted => Some(MemoryPolicy::KernelWeighted(nodes.clone())),
        InstanceMemoryPolicy::Bind => Some(MemoryPolicy::Bind(nodes.clone())),
    }
}

/// Returns the allowed CPUs by node and core.
fn cores_by_node(topology: &Topology) -> BTreeMap<u32, Vec<IdSet>> {
    let allowed = |cpu: &&Cpu| topology.allowed.cpus.contains(cpu.id);
    let mut nodes: BTreeMap<u32, Vec<IdSet>> = BTreeMap::new();
    for cpu in topology.cpus.iter().filter(allowed) {
        let here: IdSet = cpu.siblings.iter().filter(|&id| node_of_cpu(topology, id) == Some(cpu.node)).collect();
        let mut core = here.intersection(&topology.allowed.cpus);
        core.insert(cpu.id);
        // A core is added with the first of its hardware threads.
        if core.smallest_id() == Some(cpu.id) {
            nodes.entry(cpu.node).or_default().push(core);
        }
    }
    nodes
}

fn node_of_cpu(topology: &Topology, cpu: u32) -> Option<u32> {
    topology.find_cpu(cpu).map(|cpu| cpu.node)
}

fn all_cpus(nodes: &BTreeMap<u32, Vec<IdSet>>) -> IdSet {
    nodes.values().flatten().flat_map(IdSet::iter).collect()
}

/// Returns the nodes of `nodes` that have memory, else the nearest nodes that have memory.
fn nearest_memory_nodes(topology: &Topology, nodes: &IdSet, memory: &IdSet) -> IdSet {
    let own = nodes.intersection(memory);
    if !own.is_empty() {
        return own;
    }
    let far = |to: u32| nodes.iter().map(|from| node_distance(topology, from, to)).min().unwrap_or(u32::MAX);
    let least = memory.iter().map(far).min();
    memory.iter().filter(|&node| Some(far(node)) == least).collect()
}

/// Returns the NUMA distance of two nodes: the larger one of both directions; 255 if it is unknown.
fn node_distance(topology: &Topology, a: u32, b: u32) -> u32 {
    let one_way = |from, to| topology.find_node(from).and_then(|node| node.distances.get(&to).copied());
    one_way(a, b).into_iter().chain(one_way(b, a)).max().unwrap_or(u32::from(u8::MAX))
}

/// Assigns whole nodes to instances: the same number to each, or one more if the number of nodes is not a multiple of
/// the instances. Nodes of one instance are near to each other.
fn share_whole_nodes(topology: &Topology, nodes: &BTreeMap<u32, Vec<IdSet>>, instances: usize) -> Vec<CpuShare> {
    let mut left: Vec<u32> = nodes.keys().copied().collect();
    let (each, over) = (left.len() / instances, left.len() % instances);
    let mut groups: Vec<Vec<u32>> = Vec::with_capacity(instances);
    for n in 0..instances {
        let mut group = vec![left.remove(0)];
        while group.len() < each + usize::from(n < over) {
            let far = |&node: &u32| group.iter().map(|&of| node_distance(topology, of, node)).sum::<u32>();
            let nearest = (0..left.len()).min_by_key(|&at| (far(&left[at]), left[at]));
            group.extend(nearest.map(|at| left.remove(at)));
        }
        groups.push(group);
    }
    swap_towards_near_nodes(topology, &mut groups);
    groups.sort_unstable_by_key(|group| group.iter().copied().min());
    let share = |group: Vec<u32>| {
        let cpus = group.iter().filter_map(|node| nodes.get(node)).flatten().flat_map(IdSet::iter);
        (cpus.collect(), group.iter().copied().collect())
    };
    groups.into_iter().map(share).collect()
}

/// Swaps nodes between groups as long as that reduces the distances within groups, because greedy selection leaves
/// distant nodes for the last groups.
fn swap_towards_near_nodes(topology: &Topology, groups: &mut [Vec<u32>]) {
    let within = |group: &[u32]| -> u32 {
        let to_later =
            |(n, &a): (usize, &u32)| group[n + 1..].iter().map(|&b| node_distance(topology, a, b)).sum::<u32>();
        group.iter().enumerate().map(to_later).sum()
    };
    let mut better = true;
    while better {
        better = false;
        for g in 0..groups.len() {
            for h in g + 1..groups.len() {
                for a in 0..groups[g].len() {
                    for b in 0..groups[h].len() {
                        let before = within(&groups[g]) + within(&groups[h]);
                        let (one, other) = (groups[g][a], groups[h][b]);
                        (groups[g][a], groups[h][b]) = (other, one);
                        if within(&groups[g]) + within(&groups[h]) < before {
                            better = true;
                        } else {
                            (groups[g][a], groups[h][b]) = (one, other);
                        }
                    }
                }
            }
        }
    }
}

/// Assigns ranges of cores to instances if there are several instances per node.
fn share_parts_of_nodes(nodes: &BTreeMap<u32, Vec<IdSet>>, instances: usize) -> Vec<CpuShare> {
    let sizes: Vec<usize> = nodes.values().map(|cores| cores.iter().map(IdSet::len).sum()).collect();
    let total: usize = sizes.iter().sum();
    let most = |node: usize| if instances > total { usize::MAX } else { sizes[node] };
    let counts = apportion(instances, &sizes, most);
    let of_node = |((&node, cores), count): ((&u32, &Vec<IdSet>), usize)| {
        split_cores(cores, count).into_iter().map(move |cpus| (cpus, IdSet::from([node]))).collect::<Vec<_>>()
    };
    nodes.iter().zip(counts).flat_map(of_node).collect()
}

/// Divides cores into `parts` ranges of nearly equal size. If there are fewer cores than parts, divides hardware
/// threads; if there are fewer hardware threads, assigns them repeatedly.
fn split_cores(cores: &[IdSet], parts: usize) -> Vec<IdSet> {
    let threads: Vec<IdSet> = cores.iter().flat_map(IdSet::iter).map(|cpu| IdSet::from([cpu])).collect();
    if parts > threads.len() {
        return threads.into_iter().cycle().take(parts).collect();
    }
    let units = if parts <= cores.len() { cores } else { &threads };
    let cut = |n: usize| n * units.len() / parts;
    (0..parts).map(|n| units[cut(n)..cut(n + 1)].iter().flat_map(IdSet::iter).collect()).collect()
}

/// Distributes `count` items over bins in proportion to the sizes of the bins (D'Hondt method). Each bin gets at least
/// one item and at most `most(bin)`, where `bin` is its index. Returns the number of items of each bin.
fn apportion(count: usize, sizes: &[usize], most: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut given = vec![1usize; sizes.len()];
    for _ in sizes.len()..count {
        let open = (0..sizes.len()).filter(|&n| given[n] < most(n));
        // Compares a / b > c / d without division; the first of equal ones wins.
        let next = open.reduce(|a, b| if sizes[b] * (given[a] + 1) > sizes[a] * (given[b] + 1) { b } else { a });
        if let Some(next) = next {
            given[next] += 1;
        }
    }
    given
}
