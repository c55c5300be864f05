//! Each policy with base pages.

use std::collections::BTreeMap;

use genuma_machine::IdSet;
use genuma_machine::placement::{MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice, ScopedMemoryPolicy, pin};

use super::{cpus, nodes, numa_maps, place, two};

const BYTES: usize = 4 << 20;
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

/// Nodes with memory nearest to `node`.
fn nearest(node: u32) -> IdSet {
    let row = std::fs::read_to_string(format!("/sys/devices/system/node/node{node}/distance")).expect("distances");
    let online = super::list("/sys/devices/system/node/online");
    let far: BTreeMap<u32, u32> =
        online.iter().zip(row.split_whitespace().map(|word| word.parse().expect("a distance"))).collect();
    let least = nodes().iter().map(|node| far[&node]).min();
    nodes().iter().filter(|node| Some(far[node]) == least).collect()
}

pub fn local() {
    for (node, cpus) in cpus() {
        let _pinned = pin::pin_to_cpus(&cpus).expect("a thread on the node");
        let (_, found) = place(&MemoryPolicy::Local, PageSize::Base, BYTES);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found.keys().all(|&on| nearest(node).contains(on)), "node {node}: {found:?}");
    }
}

pub fn bind_to_each() {
    for node in nodes().iter() {
        let (placed, found) = place(&MemoryPolicy::Bind(IdSet::from([node])), PageSize::Base, BYTES);
        assert_eq!(found, BTreeMap::from([(node, 1024)]));
        assert_eq!(numa_maps(placed.as_ptr()).0, format!("bind:{node}"));
    }
}

pub fn bind_to_two() {
    let (_, found) = place(&MemoryPolicy::Bind(two()), PageSize::Base, BYTES);
    assert!(found.keys().all(|&node| two().contains(node)), "{found:?}");
}

/// Whether the pages are spread evenly over `over` and nowhere else.
fn even(found: &BTreeMap<u32, u64>, over: &IdSet) {
    let (least, most) = (found.values().min(), found.values().max());
    assert_eq!(found.keys().copied().collect::<IdSet>(), *over);
    assert!(most <= least.map(|pages| pages + 1).as_ref(), "{found:?}");
}

pub fn interleave_over_all() {
    let (placed, found) = place(&MemoryPolicy::Interleave(nodes()), PageSize::Base, BYTES);
    even(&found, &nodes());
    assert_eq!(*placed.applied_placement(), MemoryPolicy::Interleave(nodes()).into());
    assert_eq!(numa_maps(placed.as_ptr()).0, format!("interleave:{}", nodes()));
}

pub fn interleave_over_two() {
    let (_, found) = place(&MemoryPolicy::Interleave(two()), PageSize::Base, BYTES + 4096 * 5);
    even(&found, &two());
}

/// Weights 3, 1, 2, 3, 1, 2, …
fn weights(over: &IdSet) -> BTreeMap<u32, u32> {
    over.iter().zip([3, 1, 2].into_iter().cycle()).collect()
}

/// Whether each node has its share of the pages, give or take a turn.
pub fn shared(found: &BTreeMap<u32, u64>, weights: &BTreeMap<u32, u32>, unit: u64) {
    let (pages, turn): (u64, u32) = (found.values().sum(), weights.values().sum());
    assert_eq!(found.keys().collect::<Vec<_>>(), weights.keys().collect::<Vec<_>>());
    for (node, &weight) in weights {
        let share = pages * u64::from(weight) / u64::from(turn);
        assert!(found[node].abs_diff(share) <= u64::from(weight) * unit, "{found:?} {weights:?}");
    }
}

pub fn weighted() {
    // The greatest common divisor does not count.
    let given = weights(&nodes()).into_iter().map(|(node, weight)| (node, 7 * weight)).collect();
    let policy = MemoryPolicy::Weighted(given);
    let (placed, found) = place(&policy, PageSize::Base, BYTES);
    shared(&found, &weights(&nodes()), 1);
    assert_eq!(placed.applied_placement().policy, policy);
    // One mapping, which automatic balancing leaves alone because it has a policy.
    assert_eq!(numa_maps(placed.as_ptr()).0, format!("bind:{}", nodes()));
    let (_, found) = place(&MemoryPolicy::Weighted(weights(&two())), PageSize::Base, BYTES);
    shared(&found, &weights(&two()), 1);
}

/// Sets the kernel's weights for as long as `check` takes.
pub fn with_kernel_weights(weights: &BTreeMap<u32, u32>, check: impl FnOnce()) {
    let file = |node: &u32| format!("{WEIGHTS}/node{node}");
    for (node, weight) in weights {
        std::fs::write(file(node), weight.to_string()).expect("a weight");
    }
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
    weights.keys().for_each(|node| std::fs::write(file(node), "1").expect("a weight"));
    if let Err(why) = done {
        std::panic::resume_unwind(why);
    }
}

pub fn weighted_as_the_kernels() {
    let ones = nodes().iter().map(|node| (node, 5)).collect();
    let (placed, found) = place(&MemoryPolicy::Weighted(ones), PageSize::Base, BYTES);
    even(&found, &nodes());
    assert_eq!(placed.applied_placement().policy, MemoryPolicy::KernelWeighted(nodes()));
}

pub fn kernel_weighted() {
    let (_, found) = place(&MemoryPolicy::KernelWeighted(nodes()), PageSize::Base, BYTES);
    even(&found, &nodes());
    with_kernel_weights(&weights(&nodes()), || {
        let (placed, found) = place(&MemoryPolicy::KernelWeighted(nodes()), PageSize::Base, BYTES);
        shared(&found, &weights(&nodes()), 1);
        assert_eq!(placed.applied_placement().policy, MemoryPolicy::KernelWeighted(nodes()));
        assert!(numa_maps(placed.as_ptr()).0.starts_with("weighted"));
    });
}

pub fn preferred() {
    let (placed, found) = place(&MemoryPolicy::PreferredMany(two()), PageSize::Base, BYTES);
    assert!(found.keys().all(|&node| two().contains(node)), "{found:?}");
    assert_eq!(placed.applied_placement().policy, MemoryPolicy::PreferredMany(two()));
}

pub fn odd_lengths() {
    let all = [
        MemoryPolicy::Local,
        MemoryPolicy::Bind(two()),
        MemoryPolicy::Interleave(nodes()),
        MemoryPolicy::Weighted(weights(&nodes())),
        MemoryPolicy::KernelWeighted(nodes()),
        MemoryPolicy::PreferredMany(two()),
    ];
    for policy in &all {
        for pages in [PageSize::Base, PageSize::Transparent] {
            for bytes in [1, 4097, (2 << 20) + 1, (6 << 20) + 3 * 4096 + 5] {
                place(policy, pages, bytes);
            }
        }
        let none: PlacedSlice<u64> = PlacedSlice::new_zeroed(0, &policy.clone().into()).expect("nothing");
        assert!(none.is_empty() && none.verify_placement().expect("an answer").is_as_requested);
    }
}

pub fn policy_is_kept() {
    let scoped = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Interleave(nodes())).expect("a policy");
    place(&MemoryPolicy::Weighted(weights(&nodes())), PageSize::Base, BYTES);
    // A placement goes before the thread's policy.
    let local: PlacedSlice<u8> =
        PlacedSlice::new_zeroed(BYTES, &MemoryPlacement::from(MemoryPolicy::Local)).expect("memory");
    assert!(local.verify_placement().expect("an answer").is_as_requested);
    let foreign = vec![1_u8; 33 << 20];
    let found = genuma_machine::placement::query_slice_residence(&foreign).expect("an answer");
    assert_eq!(found.pages_by_node.len(), nodes().len(), "{found}");
    drop(scoped);
}

pub fn filled_by_several() {
    // Above 64 MiB for each thread; 160 MiB fit the smallest guest.
    for pages in [PageSize::Base, PageSize::Transparent] {
        let (_, found) = place(&MemoryPolicy::Interleave(nodes()), pages, (160 << 20) + 5);
        assert_eq!(found.len(), nodes().len(), "{found:?}");
    }
    let (node, cpus) = cpus().into_iter().next_back().expect("a node with CPUs");
    let _pinned = pin::pin_to_cpus(&cpus).expect("a thread on the node");
    let (_, found) = place(&MemoryPolicy::Local, PageSize::Base, 130 << 20);
    assert!(found.len() == 1 && nearest(node).contains(*found.keys().next().expect("a node")), "{found:?}");
}
