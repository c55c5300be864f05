//! The kernel forbids the calls, as Docker's default profile does.

use std::collections::BTreeMap;

use genuma_machine::IdSet;
use genuma_machine::placement::{
    Error, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice, ReplicatedPerNode, ScopedMemoryPolicy, pin,
    query_slice_residence,
};

use super::{Check, cpus, logged, nodes, numa_maps, seccomp};

/// What must hold there on a machine of several nodes.
pub const FORBIDDEN: &[Check] = &[
    ("forbidden policies", policies),
    ("forbidden scoped policies", scoped),
    ("forbidden pinning and copies", threads),
    ("wrong asks where all is forbidden", wrong),
    ("one warning", one_warning),
];

/// What must hold where move_pages alone is forbidden, as it is for Docker with `--cap-add SYS_NICE`.
pub const UNASKED: &[Check] = &[("numa_maps answers for move_pages", unasked)];

/// From here on the kernel does not answer where pages are.
pub fn forbid_asking() {
    seccomp::forbid(&[libc::SYS_move_pages]);
}

fn unasked() {
    for policy in all(&nodes()) {
        for (pages, bytes) in [(PageSize::Base, (4 << 20) + 5), (PageSize::Transparent, 32 << 20)] {
            let asked = MemoryPlacement { policy: policy.clone(), page_size: pages };
            let placed: PlacedSlice<u8> = PlacedSlice::new_zeroed(bytes, &asked).expect("memory");
            let verdict = placed.verify_placement().expect("an answer");
            assert!(verdict.is_as_requested, "{verdict}");
            assert_eq!(verdict.residence.pages_by_node, numa_maps(placed.as_ptr()).1);
        }
    }
}

/// From here on the kernel forbids the calls, and warnings are kept.
pub fn forbid() {
    logged::start();
    // So that local memory is one node's.
    std::mem::forget(pin::pin_to_cpu(0).expect("a CPU"));
    seccomp::forbid(seccomp::PLACING);
}

/// The policies of a machine with these nodes.
fn all(nodes: &IdSet) -> Vec<MemoryPolicy> {
    vec![
        MemoryPolicy::Local,
        MemoryPolicy::Bind(nodes.clone()),
        MemoryPolicy::Interleave(nodes.clone()),
        MemoryPolicy::Weighted(nodes.iter().zip([3, 1, 2].into_iter().cycle()).collect()),
        MemoryPolicy::KernelWeighted(nodes.clone()),
        MemoryPolicy::PreferredMany(nodes.clone()),
    ]
}

fn policies() {
    for policy in all(&nodes()) {
        for (pages, bytes) in [(PageSize::Base, 4 << 20), (PageSize::Transparent, 32 << 20)] {
            let asked = MemoryPlacement { policy: policy.clone(), page_size: pages };
            let mut placed: PlacedSlice<u8> = PlacedSlice::new_zeroed(bytes, &asked).expect("memory");
            placed.fill(7);
            assert_eq!(placed.applied_placement(), &MemoryPlacement { policy: MemoryPolicy::Local, page_size: pages });
            // numa_maps is used where move_pages is forbidden.
            let verdict = placed.verify_placement().expect("an answer");
            assert_eq!(verdict.residence.pages_by_node, numa_maps(placed.as_ptr()).1);
            let spread =
                !matches!(policy, MemoryPolicy::Local | MemoryPolicy::Bind(_) | MemoryPolicy::PreferredMany(_));
            assert_eq!(verdict.is_as_requested, !spread, "{verdict}");
        }
    }
    // One node's memory is the thread's own, which is not what was requested.
    let other = nodes().iter().find(|&node| node != pin::current_location().node).expect("another node");
    let asked = MemoryPlacement::from(MemoryPolicy::Bind(IdSet::from([other])));
    let placed: PlacedSlice<u8> = PlacedSlice::new_zeroed(1 << 20, &asked).expect("memory");
    let verdict = placed.verify_placement().expect("an answer");
    assert!(verdict.misplaced_pages > 0 && !verdict.is_as_requested, "{verdict}");
    assert!(verdict.to_string().ends_with("pages are elsewhere"), "{verdict}");
}

fn scoped() {
    for policy in all(&nodes()).into_iter().filter(|policy| !matches!(policy, MemoryPolicy::Weighted(_))) {
        let scoped = ScopedMemoryPolicy::set_thread_policy(&policy).expect("a guard");
        assert_eq!(scoped.applied_policy(), &MemoryPolicy::Local);
    }
    let foreign = vec![1_u8; 1 << 20];
    assert!(matches!(query_slice_residence(&foreign), Err(Error::SystemCallFailed { call: "move_pages", .. })));
}

fn threads() {
    let cpu = cpus().values().filter_map(IdSet::smallest_id).max().expect("a CPU");
    let pinned = pin::pin_to_cpu(cpu).expect("a guard");
    assert_eq!(pinned.pinned_cpus(), &pin::allowed_cpus());
    let copies = ReplicatedPerNode::from_slice(&[1_u64, 2, 3], &nodes(), PageSize::Base).expect("copies");
    assert!(copies.iter_copies().all(|(_, copy)| copy[..] == [1, 2, 3]) && copies.nearest_copy()[2] == 3);
}

fn wrong() {
    let asked = MemoryPlacement::from(MemoryPolicy::Weighted(BTreeMap::from([(99, 1)])));
    assert!(matches!(PlacedSlice::<u8>::new_zeroed(1, &asked), Err(Error::UnknownNode { .. })));
    assert!(pin::pin_to_cpu(9999).is_err());
}

fn one_warning() {
    let said = logged::warnings();
    assert!(said.len() == 1 && said[0].starts_with("memory is not placed on the requested NUMA nodes"), "{said:?}");
    assert!(said[0].contains("(os error 1)"), "{said:?}");
}
