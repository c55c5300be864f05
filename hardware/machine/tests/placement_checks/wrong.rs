//! Requests that cannot be met.

use std::collections::BTreeMap;
use std::fs;

use genuma_machine::IdSet;
use genuma_machine::placement::{
    Error, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice, ReplicatedPerNode, ScopedMemoryPolicy, pin,
};

use super::{Check, cpus, nodes, place, two};

/// What must hold in the cpuset of nodes and CPUs 0 and 1.
pub const CPUSET: &[Check] =
    &[("a cpuset's nodes", cpuset_nodes), ("a cpuset's CPUs", cpuset_cpus), ("a control group's memory", group_memory)];

/// What must hold where node 2 has no memory and node 3 no CPU.
pub const ODD: &[Check] = &[("a node without memory", without_memory), ("a node without CPUs", without_cpus)];

/// The error message for a request.
fn refused(policy: &MemoryPolicy) -> String {
    let asked = MemoryPlacement { policy: policy.clone(), page_size: PageSize::Base };
    let said = PlacedSlice::<u8>::new_zeroed(1, &asked).expect_err("a wrong ask").to_string();
    let nothing = PlacedSlice::<u8>::new_zeroed(0, &asked).expect_err("a wrong ask, even of nothing").to_string();
    let scoped = ScopedMemoryPolicy::set_thread_policy(policy).expect_err("a wrong ask").to_string();
    assert_eq!((&said, &said), (&scoped, &nothing));
    said
}

/// Every policy that names `node` together with `beside`.
fn naming(node: u32, beside: u32) -> [MemoryPolicy; 5] {
    let set = IdSet::from([beside, node]);
    [
        MemoryPolicy::Bind(set.clone()),
        MemoryPolicy::Interleave(set.clone()),
        MemoryPolicy::Weighted([(beside, 1), (node, 2)].into()),
        MemoryPolicy::KernelWeighted(set.clone()),
        MemoryPolicy::PreferredMany(set),
    ]
}

pub fn not_there() {
    for policy in naming(9, 0) {
        let usable = format!("this process may use memory of nodes {}", nodes());
        assert_eq!(refused(&policy), format!("{policy}: no node 9 on this machine: {usable}"));
    }
    for policy in naming(5000, 0) {
        assert!(refused(&policy).contains("no node 5000 on this machine"));
    }
    assert!(refused(&MemoryPolicy::Interleave(IdSet::new())).contains("names no node"));
    assert!(refused(&MemoryPolicy::Weighted(BTreeMap::new())).contains("names no node"));
    let error = ReplicatedPerNode::from_slice(&[1_u8], &IdSet::from([0, 9]), PageSize::Base).expect_err("no node 9");
    assert!(matches!(error, Error::UnknownNode { ref nodes, .. } if *nodes == IdSet::from([9])), "{error}");
}

pub fn weights() {
    for weight in [0, 256] {
        let said = refused(&MemoryPolicy::Weighted([(0, 1), (1, weight)].into()));
        assert_eq!(said, format!("weighted 0:1,1:{weight}: the weight of node 1 must be between 1 and 255"));
    }
}

pub fn no_such_cpu() {
    let there: IdSet = cpus().values().flat_map(IdSet::iter).collect();
    for cpu in [999, 9000] {
        let error = pin::pin_to_cpus(&IdSet::from([0, cpu])).expect_err("no such CPU").to_string();
        assert_eq!(error, format!("CPU {cpu} does not exist or is not allowed: this process may use CPUs {there}"));
    }
    assert!(pin::pin_to_cpus(&IdSet::new()).is_err());
    assert!(matches!(pin::pin_to_node(9), Err(Error::NodeWithoutCpu { node: 9, .. })));
}

/// The error message for a number of bytes that do not fit, and the number that would fit.
fn too_much(policy: &MemoryPolicy, bytes: usize) -> (String, u64) {
    let asked = MemoryPlacement { policy: policy.clone(), page_size: PageSize::Base };
    match PlacedSlice::<u8>::new_zeroed(bytes, &asked).expect_err("too much") {
        error @ Error::NotEnoughMemory { free, .. } => (error.to_string(), free),
        error => panic!("{error}"),
    }
}

pub fn too_large() {
    let node = two().smallest_id().expect("a node");
    let (said, _) = too_much(&MemoryPolicy::Bind(IdSet::from([node])), 300 << 20);
    let start = format!("bind {node}: 300 MiB do not fit: ");
    assert!(said.starts_with(&start) && said.ends_with(&format!(" MiB are free on node {node}")), "{said}");
    // Of 400 MiB one node would get 300.
    let weights: BTreeMap<u32, u32> = two().iter().zip([3, 1]).collect();
    let (said, _) = too_much(&MemoryPolicy::Weighted(weights), 400 << 20);
    assert!(said.contains(&format!("on node {node}, which would get 3 of every 4 pages")), "{said}");
    for policy in [MemoryPolicy::Local, MemoryPolicy::Interleave(nodes()), MemoryPolicy::PreferredMany(two())] {
        let (said, _) = too_much(&policy, (260 * nodes().len()) << 20);
        assert!(said.ends_with(&format!("are free on nodes {}", nodes())), "{said}");
        too_much(&policy, usize::MAX);
    }
    let asked = MemoryPlacement::from(MemoryPolicy::Local);
    assert!(matches!(PlacedSlice::<u64>::new_zeroed(usize::MAX, &asked), Err(Error::NotEnoughMemory { .. })));
}

pub fn all_of_a_node() {
    let node = nodes().iter().last().expect("a node");
    let policy = MemoryPolicy::Bind(IdSet::from([node]));
    let (_, free) = too_much(&policy, 1 << 40);
    let (_, found) = place(&policy, PageSize::Base, (free - free / 256) as usize);
    assert_eq!(found.keys().collect::<Vec<_>>(), [&node]);
}

/// Moves this process into a group of its own with nodes and CPUs 0 and 1 and 64 MiB of memory.
pub fn enter_cpuset() {
    let root = "/sys/fs/cgroup";
    let mount = ["-t", "cgroup2", "none", root];
    let mounted = std::process::Command::new("mount").args(mount).status().expect("mount");
    assert!(mounted.success());
    fs::write(format!("{root}/cgroup.subtree_control"), "+cpuset +memory").expect("a controller");
    fs::create_dir_all(format!("{root}/two")).expect("a group");
    for (file, content) in
        [("cpuset.mems", "0-1"), ("cpuset.cpus", "0-1"), ("memory.max", "67108864"), ("cgroup.procs", "0")]
    {
        fs::write(format!("{root}/two/{file}"), content).expect(file);
    }
}

fn cpuset_nodes() {
    for policy in naming(2, 1) {
        let why = "node 2 is outside of this process's cpuset: it may use memory of nodes 0-1";
        assert_eq!(refused(&policy), format!("{policy}: {why}"));
    }
    let (_, found) = place(&MemoryPolicy::Interleave(IdSet::from([0, 1])), PageSize::Base, 8 << 20);
    assert_eq!(found, BTreeMap::from([(0, 1024), (1, 1024)]));
    let (_, found) = place(&MemoryPolicy::Bind(IdSet::from([1])), PageSize::Base, 8 << 20);
    assert_eq!(found, BTreeMap::from([(1, 2048)]));
    place(&MemoryPolicy::Weighted([(0, 1), (1, 5)].into()), PageSize::Base, 8 << 20);
}

fn cpuset_cpus() {
    assert_eq!(pin::allowed_cpus(), IdSet::from([0, 1]));
    let error = pin::pin_to_cpu(3).expect_err("a CPU outside").to_string();
    assert_eq!(error, "CPU 3 does not exist or is not allowed: this process may use CPUs 0-1");
    let pinned = pin::pin_to_cpu(1).expect("a CPU inside");
    assert_eq!(pin::current_location().cpu, 1);
    drop(pinned);
}

fn group_memory() {
    let (said, free) = too_much(&MemoryPolicy::Interleave(IdSet::from([0, 1])), 70 << 20);
    assert!(said.ends_with(" MiB are free in this process's control group"), "{said}");
    assert!((32 << 20..64 << 20).contains(&free), "{free}");
    place(&MemoryPolicy::Bind(IdSet::from([1])), PageSize::Base, free as usize * 9 / 10);
}

fn without_memory() {
    for policy in naming(2, 0) {
        let why = "node 2 has no memory: this process may use memory of nodes 0-1,3";
        assert_eq!(refused(&policy), format!("{policy}: {why}"));
    }
    // Its CPUs still read the nearest copy, that of node 3 (distance 16, others 22).
    let copies = ReplicatedPerNode::from_slice(&[7_u8; 5000], &nodes(), PageSize::Base).expect("copies");
    let _pinned = pin::pin_to_node(2).expect("a node with CPUs");
    assert!(
        copies.find_copy_on_node(2).is_none()
            && std::ptr::eq(copies.nearest_copy(), copies.find_copy_on_node(3).expect("a copy"))
    );
}

fn without_cpus() {
    let (_, found) = place(&MemoryPolicy::Bind(IdSet::from([3])), PageSize::Base, 8 << 20);
    assert_eq!(found, BTreeMap::from([(3, 2048)]));
    assert!(matches!(pin::pin_to_node(3), Err(Error::NodeWithoutCpu { node: 3, .. })));
}
