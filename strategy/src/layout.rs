//! Where the instances sit.
//!
//! Instances are packed onto whole nodes: as many nodes for each, near ones together (the hybrid of lenis2017). More
//! instances than nodes share a node's cores, and a core's hardware threads stay together while cores last.

use std::collections::BTreeMap;

use genuma_machine::placement::Policy;
use genuma_machine::topology::Cpu;
use genuma_machine::{IdSet, Topology};

use crate::strategy::{Memory, Strategy};

#[cfg(test)]
mod tests;

/// Where an instance runs and its memory lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// CPUs it may run on.
    pub cpus: IdSet,
    /// Nodes whose memory is its own: those of its CPUs, or the nearest ones where those have none.
    pub nodes: IdSet,
    /// The policy of its memory; none where the kernel's own will do, or there is one node only.
    pub policy: Option<Policy>,
    /// Its threads, from 1.
    pub threads: usize,
}

/// Why a strategy has no place on a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is nothing to run on.
    #[error("{0}: this process may use no CPU that is online")]
    NoCpus(Strategy),
    /// There is nothing to keep memory in.
    #[error("{0}: this process may use no node with memory")]
    NoMemory(Strategy),
    /// Instances would share CPUs.
    #[error("{strategy}: {} instances on {cpus} CPUs; ask for {cpus} at most", strategy.instances)]
    TooMany {
        /// What was asked for.
        strategy: Strategy,
        /// CPUs that this process may use.
        cpus: usize,
    },
}

/// CPUs and the nodes they are of, of one instance.
type Share = (IdSet, IdSet);

/// Seats for the instances of `strategy`, which have `threads` threads in all but one each at least, shared out by CPUs.
///
/// No CPU is in two seats and all allowed CPUs are in one, but where a machine of one node has fewer CPUs than there are
/// instances: there they share.
///
/// # Errors
/// The process may use no CPU or no memory, or there are more instances than CPUs on several nodes.
pub fn seats(strategy: &Strategy, topology: &Topology, threads: usize) -> Result<Vec<Seat>, Error> {
    let instances = strategy.instances.max(1) as usize;
    let nodes = cores_by_node(topology);
    let cpus: usize = nodes.values().flatten().map(IdSet::len).sum();
    let memory = topology.memory_nodes();
    if cpus == 0 {
        return Err(Error::NoCpus(*strategy));
    }
    if memory.is_empty() {
        return Err(Error::NoMemory(*strategy));
    }
    if instances > cpus && nodes.len() > 1 {
        return Err(Error::TooMany { strategy: *strategy, cpus });
    }
    let shares = match instances {
        1 => vec![(all_of(&nodes), nodes.keys().copied().collect())],
        few if few <= nodes.len() => whole_nodes(topology, &nodes, few),
        many => parts_of_nodes(&nodes, many),
    };
    let sizes: Vec<usize> = shares.iter().map(|(cpus, _)| cpus.len()).collect();
    let threads = apportioned(threads.max(instances), &sizes, |_| usize::MAX);
    let seat = |((cpus, of), threads): (Share, usize)| {
        let nodes = if instances == 1 { memory.clone() } else { with_memory(topology, &of, &memory) };
        let policy = policy(strategy.memory, &nodes).filter(|_| memory.len() > 1);
        Seat { cpus, nodes, policy, threads }
    };
    Ok(shares.into_iter().zip(threads).map(seat).collect())
}

/// Strategies worth a thought on this machine, the plain run first: instances up to `most` and the number of threads.
pub fn candidates(topology: &Topology, threads: usize, most: u32) -> Vec<Strategy> {
    let memory = topology.memory_nodes().len();
    let nodes = topology.cpu_nodes().len();
    let most = most.min(u32::try_from(threads).unwrap_or(u32::MAX)).max(1);
    let each = |instances: u32, memory: &[Memory]| -> Vec<Strategy> {
        memory.iter().map(|&memory| Strategy { instances, memory }).collect()
    };
    if memory < 2 {
        // There is no choice of memory; what is left is a program that does not scale with its threads.
        let cpus = topology.allowed.cpus.len().max(1);
        let instances = (0..).map(|power| 1u32 << power);
        let fits = |&k: &u32| k <= most && k as usize <= cpus;
        return instances.take_while(fits).flat_map(|k| each(k, &[Memory::Default])).collect();
    }
    let mut all = each(1, &[Memory::Default, Memory::Local, Memory::Interleave]);
    if topology.weights.is_some() {
        all.extend(each(1, &[Memory::Weighted]));
    }
    for k in 2..=most.min(u32::try_from(nodes).unwrap_or(u32::MAX)) {
        all.extend(each(k, &[Memory::Local, Memory::Bind]));
        // On one node each, interleaving is binding.
        if (k as usize) < nodes {
            all.extend(each(k, &[Memory::Interleave]));
        }
    }
    all
}

fn policy(memory: Memory, nodes: &IdSet) -> Option<Policy> {
    match memory {
        Memory::Default => None,
        Memory::Local => Some(Policy::Local),
        Memory::Interleave => Some(Policy::Interleave(nodes.clone())),
        Memory::Weighted => Some(Policy::KernelWeighted(nodes.clone())),
        Memory::Bind => Some(Policy::Bind(nodes.clone())),
    }
}

/// Allowed CPUs, core by core, node by node.
fn cores_by_node(topology: &Topology) -> BTreeMap<u32, Vec<IdSet>> {
    let allowed = |cpu: &&Cpu| topology.allowed.cpus.contains(cpu.id);
    let mut nodes: BTreeMap<u32, Vec<IdSet>> = BTreeMap::new();
    for cpu in topology.cpus.iter().filter(allowed) {
        let here: IdSet = cpu.siblings.iter().filter(|&id| of_node(topology, id) == Some(cpu.node)).collect();
        let mut core = here.and(&topology.allowed.cpus);
        core.insert(cpu.id);
        // A core comes with the first of its threads.
        if core.first() == Some(cpu.id) {
            nodes.entry(cpu.node).or_default().push(core);
        }
    }
    nodes
}

fn of_node(topology: &Topology, cpu: u32) -> Option<u32> {
    topology.cpu(cpu).map(|cpu| cpu.node)
}

fn all_of(nodes: &BTreeMap<u32, Vec<IdSet>>) -> IdSet {
    nodes.values().flatten().flat_map(IdSet::iter).collect()
}

/// Those of `nodes` that have memory, else the nearest that have.
fn with_memory(topology: &Topology, nodes: &IdSet, memory: &IdSet) -> IdSet {
    let own = nodes.and(memory);
    if !own.is_empty() {
        return own;
    }
    let far = |to: u32| nodes.iter().map(|from| distance(topology, from, to)).min().unwrap_or(u32::MAX);
    let least = memory.iter().map(far).min();
    memory.iter().filter(|&node| Some(far(node)) == least).collect()
}

/// Distance of two nodes, there and back the same; the farthest where it is not known.
fn distance(topology: &Topology, a: u32, b: u32) -> u32 {
    let one_way = |from, to| topology.node(from).and_then(|node| node.distances.get(&to).copied());
    one_way(a, b).into_iter().chain(one_way(b, a)).max().unwrap_or(u32::from(u8::MAX))
}

/// One instance on as many whole nodes as the next, or one more.
fn whole_nodes(topology: &Topology, nodes: &BTreeMap<u32, Vec<IdSet>>, instances: usize) -> Vec<Share> {
    let mut left: Vec<u32> = nodes.keys().copied().collect();
    let (each, over) = (left.len() / instances, left.len() % instances);
    let mut groups: Vec<Vec<u32>> = Vec::with_capacity(instances);
    for n in 0..instances {
        let mut group = vec![left.remove(0)];
        while group.len() < each + usize::from(n < over) {
            let far = |&node: &u32| group.iter().map(|&of| distance(topology, of, node)).sum::<u32>();
            let nearest = (0..left.len()).min_by_key(|&at| (far(&left[at]), left[at]));
            group.extend(nearest.map(|at| left.remove(at)));
        }
        groups.push(group);
    }
    improve(topology, &mut groups);
    groups.sort_unstable_by_key(|group| group.iter().copied().min());
    let share = |group: Vec<u32>| {
        let cpus = group.iter().filter_map(|node| nodes.get(node)).flatten().flat_map(IdSet::iter);
        (cpus.collect(), group.iter().copied().collect())
    };
    groups.into_iter().map(share).collect()
}

/// Swaps nodes of two groups as long as that brings nodes of a group nearer: what is taken first leaves the others what is left.
fn improve(topology: &Topology, groups: &mut [Vec<u32>]) {
    let within = |group: &[u32]| -> u32 {
        let to_later =
            |(n, &a): (usize, &u32)| group[n + 1..].iter().map(|&b| distance(topology, a, b)).sum::<u32>();
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

/// More instances than nodes: each within one node, on a run of its cores.
fn parts_of_nodes(nodes: &BTreeMap<u32, Vec<IdSet>>, instances: usize) -> Vec<Share> {
    let sizes: Vec<usize> = nodes.values().map(|cores| cores.iter().map(IdSet::len).sum()).collect();
    let total: usize = sizes.iter().sum();
    let most = |node: usize| if instances > total { usize::MAX } else { sizes[node] };
    let counts = apportioned(instances, &sizes, most);
    let of_node = |((&node, cores), count): ((&u32, &Vec<IdSet>), usize)| {
        split(cores, count).into_iter().map(move |cpus| (cpus, IdSet::from([node]))).collect::<Vec<_>>()
    };
    nodes.iter().zip(counts).flat_map(of_node).collect()
}

/// Cores in so many even runs; hardware threads one by one where there are fewer cores, over again where there are fewer of those.
fn split(cores: &[IdSet], parts: usize) -> Vec<IdSet> {
    let threads: Vec<IdSet> = cores.iter().flat_map(IdSet::iter).map(|cpu| IdSet::from([cpu])).collect();
    if parts > threads.len() {
        return threads.into_iter().cycle().take(parts).collect();
    }
    let units = if parts <= cores.len() { cores } else { &threads };
    let cut = |n: usize| n * units.len() / parts;
    (0..parts).map(|n| units[cut(n)..cut(n + 1)].iter().flat_map(IdSet::iter).collect()).collect()
}

/// `count` things over places by their size: one each, then each next one to where there is most room for one more
/// (D'Hondt), never more than `most` says.
fn apportioned(count: usize, sizes: &[usize], most: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut given = vec![1usize; sizes.len()];
    for _ in sizes.len()..count {
        let open = (0..sizes.len()).filter(|&n| given[n] < most(n));
        // a / b > c / d without fractions; the first of equals.
        let next =
            open.reduce(|a, b| if sizes[b] * (given[a] + 1) > sizes[a] * (given[b] + 1) { b } else { a });
        if let Some(next) = next {
            given[next] += 1;
        }
    }
    given
}
