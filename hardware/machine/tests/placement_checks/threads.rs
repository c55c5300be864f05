//! Threads, copies and the policy of a thread.

use std::collections::BTreeMap;

use genuma_machine::IdSet;
use genuma_machine::placement::{Error, Pages, Policy, Replicated, Residence, Scoped, pin, residence_of};

use super::{cpus, nodes, two};

/// What a foreign library allocates: so much that the C library's allocator always maps it anew (`mallopt`, `M_MMAP_THRESHOLD`).
const BYTES: usize = 33 << 20;

/// Memory of the C library's allocator, touched by this thread.
fn foreign() -> (Vec<u8>, Residence) {
    let memory = vec![1_u8; BYTES];
    let found = residence_of(&memory).expect("an answer");
    assert_eq!(found.absent, 0);
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
            let pinned = pin::to_cpu(cpu).expect("a CPU");
            assert_eq!(pin::here(), pin::Here { cpu, node });
            assert_eq!((cpu_by_proc(), pinned.cpus()), (cpu, &IdSet::from([cpu])));
        }
    }
    let allowed =
        |status: &str| status.lines().find(|line| line.starts_with("Cpus_allowed_list")).map(str::to_owned);
    let after = std::fs::read_to_string("/proc/thread-self/status").expect("status");
    assert_eq!(allowed(&before), allowed(&after));
}

pub fn pin_to_node() {
    for (node, cpus) in cpus() {
        let outer = pin::to_node(node).expect("a node");
        assert!(pin::here().node == node && outer.cpus() == &cpus);
        // A pinned thread may still be pinned elsewhere, and comes back.
        for cpu in pin::allowed().iter() {
            drop(pin::to_cpu(cpu).expect("a CPU"));
        }
        assert_eq!(pin::here().node, node);
    }
}

pub fn replicated_slices() {
    let table: Vec<u64> = (0..500_000).collect();
    let copies = Replicated::of_slice(&table, &nodes(), Pages::Base).expect("copies");
    assert_eq!(copies.iter().map(|(node, _)| node).collect::<IdSet>(), nodes());
    for (node, copy) in copies.iter() {
        assert_eq!(copy[..], table[..]);
        let verdict = copy.verify().expect("an answer");
        assert!(verdict.fits, "{verdict}");
        assert_eq!(verdict.found.nodes.keys().collect::<Vec<_>>(), [&node]);
    }
    for (node, cpus) in cpus() {
        for cpu in cpus.iter() {
            let _pinned = pin::to_cpu(cpu).expect("a CPU");
            if let Some(own) = copies.on(node) {
                assert!(std::ptr::eq(copies.local(), own), "CPU {cpu} of node {node}");
            }
        }
    }
    // Without a copy of its own a node takes the nearest: of 0 and 2 in pairs of neighbours that is the neighbour's.
    let some: IdSet = nodes().iter().step_by(2).collect();
    let copies = Replicated::of_slice(&table, &some, Pages::Base).expect("copies");
    for (node, cpus) in cpus() {
        let _pinned = pin::to_cpus(&cpus).expect("the node's CPUs");
        if nodes().contains(node) {
            assert!(std::ptr::eq(copies.local(), copies.on(node / 2 * 2).expect("a copy")), "node {node}");
        }
    }
}

pub fn replicated_anything() {
    let run_on = cpus();
    let made = Replicated::new(&two(), |node| {
        let here = pin::here().node;
        assert!(here == node || !run_on.contains_key(&node), "made on {here} for {node}");
        Ok::<_, Error>((node, vec![node as u8 + 1; BYTES]))
    });
    for (node, (made_for, memory)) in made.expect("copies").iter() {
        let found = residence_of(memory).expect("an answer");
        assert_eq!((node, found.nodes.keys().copied().collect::<IdSet>()), (*made_for, IdSet::from([node])));
        assert_eq!(found.absent, 0);
    }
    let failed = Replicated::<u8>::new(&nodes(), |_| Err::<u8, _>(Error::HugePageSize { bytes: 1 }));
    assert!(matches!(failed, Err(Error::HugePageSize { bytes: 1 })));
}

pub fn scoped_interleave() {
    for over in [nodes(), two()] {
        let scoped = Scoped::new(&Policy::Interleave(over.clone())).expect("a policy");
        let (_memory, found) = foreign();
        assert_eq!(scoped.policy(), &Policy::Interleave(over.clone()));
        assert_eq!(found.nodes.keys().copied().collect::<IdSet>(), over);
        // The guest's kernel gives huge pages without being asked: 2 MiB is the grain.
        let share = found.present() / over.len() as u64;
        assert!(found.nodes.values().all(|pages| pages.abs_diff(share) <= 1024), "{found}");
    }
}

pub fn scoped_bind() {
    for node in two().iter() {
        let scoped = Scoped::new(&Policy::Bind(IdSet::from([node]))).expect("a policy");
        let (_memory, found) = foreign();
        assert_eq!(found.nodes.keys().collect::<Vec<_>>(), [&node]);
        drop(scoped);
    }
    let _preferred = Scoped::new(&Policy::PreferredMany(two())).expect("a policy");
    let (_memory, found) = foreign();
    assert!(found.nodes.keys().all(|&node| two().contains(node)), "{found}");
}

pub fn scoped_weights() {
    let weights: BTreeMap<u32, u32> = two().iter().zip([3, 1]).collect();
    let error = Scoped::new(&Policy::Weighted(weights.clone())).expect_err("weights of its own");
    assert!(matches!(error, Error::WeightsOfItsOwn { .. }), "{error}");
    super::memory::with_kernel_weights(&weights, || {
        for policy in [Policy::Weighted(weights.clone()), Policy::KernelWeighted(two())] {
            let scoped = Scoped::new(&policy).expect("a policy");
            let (_memory, found) = foreign();
            assert_eq!(scoped.policy(), &Policy::KernelWeighted(two()));
            super::memory::shared(&found.nodes, &weights, 1024);
        }
    });
}

pub fn scoped_nested() {
    let (first, second) = (two().first().expect("a node"), nodes().iter().last().expect("a node"));
    let on = |node| BTreeMap::from([(node, (BYTES as u64).div_ceil(4096))]);
    let exact = |found: &Residence, node: u32| {
        assert!(found.nodes.len() == 1 && found.nodes[&node].abs_diff(on(node)[&node]) <= 1, "{found}");
    };
    let outer = Scoped::new(&Policy::Bind(IdSet::from([first]))).expect("a policy");
    exact(&foreign().1, first);
    let inner = Scoped::new(&Policy::Bind(IdSet::from([second]))).expect("a policy");
    exact(&foreign().1, second);
    drop(inner);
    exact(&foreign().1, first);
    drop(outer);
    for (node, cpus) in cpus().into_iter().take(2) {
        let _pinned = pin::to_cpus(&cpus).expect("the node's CPUs");
        let (_memory, found) = foreign();
        let own = found.nodes.len() == 1 && found.nodes.contains_key(&node);
        assert!(own || !nodes().contains(node), "node {node}: {found}");
    }
}

pub fn scoped_inherited() {
    let node = nodes().iter().last().expect("a node");
    let scoped = Scoped::new(&Policy::Bind(IdSet::from([node]))).expect("a policy");
    let found = std::thread::spawn(|| foreign().1).join().expect("a thread");
    assert_eq!(found.nodes.keys().collect::<Vec<_>>(), [&node]);
    drop(scoped);
}
