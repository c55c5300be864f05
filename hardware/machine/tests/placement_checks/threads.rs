//! Threads, copies and the policy of a thread.

use std::collections::BTreeMap;

use genuma_machine::IdSet;
use genuma_machine::placement::{
    Error, MemoryPolicy, PageResidence, PageSize, ReplicatedPerNode, ScopedMemoryPolicy, pin, query_slice_residence,
};

use super::{cpus, nodes, two};

/// What a foreign library allocates: so much that the C library's allocator always maps it anew (`mallopt`, `M_MMAP_THRESHOLD`).
const BYTES: usize = 33 << 20;

/// Memory of the C library's allocator, touched by this thread.
fn foreign() -> (Vec<u8>, PageResidence) {
    let memory = vec![1_u8; BYTES];
    let found = query_slice_residence(&memory).expect("an answer");
    assert_eq!(found.absent_pages, 0);
    (memory, found)
}

/// The CPU that /proc says this thread runs on: field 39 of its stat.
fn cpu_by_proc() -> u32 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("stat");
    let after = stat.rsplit_once(')').expect("a name in brackets").1;
    after.split_whitespace().nth(36).expect("a field").parse().expect("a number")
}

pub fn pin_to_each() {
    let before = std::fs::read_to_string("/proc/thread-self/status").expect("status");
    for (node, cpus) in cpus() {
        for cpu in cpus.iter() {
            let pinned = pin::pin_to_cpu(cpu).expect("a CPU");
            assert_eq!(pin::current_location(), pin::ThreadLocation { cpu, node });
            assert_eq!((cpu_by_proc(), pinned.pinned_cpus()), (cpu, &IdSet::from([cpu])));
        }
    }
    let allowed = |status: &str| status.lines().find(|line| line.starts_with("Cpus_allowed_list")).map(str::to_owned);
    let after = std::fs::read_to_string("/proc/thread-self/status").expect("status");
    assert_eq!(allowed(&before), allowed(&after));
}

pub fn pin_to_node() {
    for (node, cpus) in cpus() {
        let outer = pin::pin_to_node(node).expect("a node");
        assert!(pin::current_location().node == node && outer.pinned_cpus() == &cpus);
        // A pinned thread may still be pinned elsewhere, and comes back.
        for cpu in pin::allowed_cpus().iter() {
            drop(pin::pin_to_cpu(cpu).expect("a CPU"));
        }
        assert_eq!(pin::current_location().node, node);
    }
}

pub fn replicated_slices() {
    let table: Vec<u64> = (0..500_000).collect();
    let copies = ReplicatedPerNode::from_slice(&table, &nodes(), PageSize::Base).expect("copies");
    assert_eq!(copies.iter_copies().map(|(node, _)| node).collect::<IdSet>(), nodes());
    for (node, copy) in copies.iter_copies() {
        assert_eq!(copy[..], table[..]);
        let verdict = copy.verify_placement().expect("an answer");
        assert!(verdict.is_as_requested, "{verdict}");
        assert_eq!(verdict.residence.pages_by_node.keys().collect::<Vec<_>>(), [&node]);
    }
    for (node, cpus) in cpus() {
        for cpu in cpus.iter() {
            let _pinned = pin::pin_to_cpu(cpu).expect("a CPU");
            if let Some(own) = copies.find_copy_on_node(node) {
                assert!(std::ptr::eq(copies.nearest_copy(), own), "CPU {cpu} of node {node}");
            }
        }
    }
    // Without a copy of its own a node takes the nearest: of 0 and 2 in pairs of neighbours that is the neighbour's.
    let some: IdSet = nodes().iter().step_by(2).collect();
    let copies = ReplicatedPerNode::from_slice(&table, &some, PageSize::Base).expect("copies");
    for (node, cpus) in cpus() {
        let _pinned = pin::pin_to_cpus(&cpus).expect("the node's CPUs");
        if nodes().contains(node) {
            assert!(
                std::ptr::eq(copies.nearest_copy(), copies.find_copy_on_node(node / 2 * 2).expect("a copy")),
                "node {node}"
            );
        }
    }
}

pub fn replicated_anything() {
    let run_on = cpus();
    let made = ReplicatedPerNode::new(&two(), |node| {
        let here = pin::current_location().node;
        assert!(here == node || !run_on.contains_key(&node), "made on {here} for {node}");
        Ok::<_, Error>((node, vec![node as u8 + 1; BYTES]))
    });
    for (node, (made_for, memory)) in made.expect("copies").iter_copies() {
        let found = query_slice_residence(memory).expect("an answer");
        assert_eq!((node, found.pages_by_node.keys().copied().collect::<IdSet>()), (*made_for, IdSet::from([node])));
        assert_eq!(found.absent_pages, 0);
    }
    let failed = ReplicatedPerNode::<u8>::new(&nodes(), |_| Err::<u8, _>(Error::InvalidHugePageSize { bytes: 1 }));
    assert!(matches!(failed, Err(Error::InvalidHugePageSize { bytes: 1 })));
}

pub fn scoped_interleave() {
    for over in [nodes(), two()] {
        let scoped = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Interleave(over.clone())).expect("a policy");
        let (_memory, found) = foreign();
        assert_eq!(scoped.applied_policy(), &MemoryPolicy::Interleave(over.clone()));
        assert_eq!(found.pages_by_node.keys().copied().collect::<IdSet>(), over);
        // The guest's kernel uses huge pages without a request: the granularity is 2 MiB.
        let share = found.num_resident_pages() / over.len() as u64;
        assert!(found.pages_by_node.values().all(|pages| pages.abs_diff(share) <= 1024), "{found}");
    }
}

pub fn scoped_bind() {
    for node in two().iter() {
        let scoped = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Bind(IdSet::from([node]))).expect("a policy");
        let (_memory, found) = foreign();
        assert_eq!(found.pages_by_node.keys().collect::<Vec<_>>(), [&node]);
        drop(scoped);
    }
    let _preferred = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::PreferredMany(two())).expect("a policy");
    let (_memory, found) = foreign();
    assert!(found.pages_by_node.keys().all(|&node| two().contains(node)), "{found}");
}

pub fn scoped_weights() {
    let weights: BTreeMap<u32, u32> = two().iter().zip([3, 1]).collect();
    let error = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Weighted(weights.clone()))
        .expect_err("weights of its own");
    assert!(matches!(error, Error::UnsupportedCustomWeights { .. }), "{error}");
    super::memory::with_kernel_weights(&weights, || {
        for policy in [MemoryPolicy::Weighted(weights.clone()), MemoryPolicy::KernelWeighted(two())] {
            let scoped = ScopedMemoryPolicy::set_thread_policy(&policy).expect("a policy");
            let (_memory, found) = foreign();
            assert_eq!(scoped.applied_policy(), &MemoryPolicy::KernelWeighted(two()));
            super::memory::shared(&found.pages_by_node, &weights, 1024);
        }
    });
}

pub fn scoped_nested() {
    let (first, second) = (two().smallest_id().expect("a node"), nodes().iter().last().expect("a node"));
    let on = |node| BTreeMap::from([(node, (BYTES as u64).div_ceil(4096))]);
    let exact = |found: &PageResidence, node: u32| {
        assert!(found.pages_by_node.len() == 1 && found.pages_by_node[&node].abs_diff(on(node)[&node]) <= 1, "{found}");
    };
    let outer = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Bind(IdSet::from([first]))).expect("a policy");
    exact(&foreign().1, first);
    let inner = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Bind(IdSet::from([second]))).expect("a policy");
    exact(&foreign().1, second);
    drop(inner);
    exact(&foreign().1, first);
    drop(outer);
    for (node, cpus) in cpus().into_iter().take(2) {
        let _pinned = pin::pin_to_cpus(&cpus).expect("the node's CPUs");
        let (_memory, found) = foreign();
        let own = found.pages_by_node.len() == 1 && found.pages_by_node.contains_key(&node);
        assert!(own || !nodes().contains(node), "node {node}: {found}");
    }
}

pub fn scoped_inherited() {
    let node = nodes().iter().last().expect("a node");
    let scoped = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Bind(IdSet::from([node]))).expect("a policy");
    let found = std::thread::spawn(|| foreign().1).join().expect("a thread");
    assert_eq!(found.pages_by_node.keys().collect::<Vec<_>>(), [&node]);
    drop(scoped);
}
