//! The kernel forbids the calls, as Docker's default profile does.

use std::collections::BTreeMap;

use genuma_machine::IdSet;
use genuma_machine::placement::{
    Error, Pages, Placed, Placement, Policy, Replicated, Scoped, pin, residence_of,
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
        for (pages, bytes) in [(Pages::Base, (4 << 20) + 5), (Pages::Transparent, 32 << 20)] {
            let asked = Placement { policy: policy.clone(), pages };
            let placed: Placed<u8> = Placed::zeroed(bytes, &asked).expect("memory");
            let verdict = placed.verify().expect("an answer");
            assert!(verdict.fits, "{verdict}");
            assert_eq!(verdict.found.nodes, numa_maps(placed.as_ptr()).1);
        }
    }
}

/// From here on the kernel forbids the calls, and warnings are kept.
pub fn forbid() {
    logged::start();
    // So that local memory is one node's.
    std::mem::forget(pin::to_cpu(0).expect("a CPU"));
    seccomp::forbid(seccomp::PLACING);
}

/// The policies of a machine with these nodes.
fn all(nodes: &IdSet) -> Vec<Policy> {
    vec![
        Policy::Local,
        Policy::Bind(nodes.clone()),
        Policy::Interleave(nodes.clone()),
        Policy::Weighted(nodes.iter().zip([3, 1, 2].into_iter().cycle()).collect()),
        Policy::KernelWeighted(nodes.clone()),
        Policy::PreferredMany(nodes.clone()),
    ]
}

fn policies() {
    for policy in all(&nodes()) {
        for (pages, bytes) in [(Pages::Base, 4 << 20), (Pages::Transparent, 32 << 20)] {
            let asked = Placement { policy: policy.clone(), pages };
            let mut placed: Placed<u8> = Placed::zeroed(bytes, &asked).expect("memory");
            placed.fill(7);
            assert_eq!(placed.placement(), &Placement { policy: Policy::Local, pages });
            // numa_maps tells where move_pages may not.
            let verdict = placed.verify().expect("an answer");
            assert_eq!(verdict.found.nodes, numa_maps(placed.as_ptr()).1);
            let spread = !matches!(policy, Policy::Local | Policy::Bind(_) | Policy::PreferredMany(_));
            assert_eq!(verdict.fits, !spread, "{verdict}");
        }
    }
    // One node's memory is the thread's own, which is not what was asked for.
    let other = nodes().iter().find(|&node| node != pin::here().node).expect("another node");
    let asked = Placement::from(Policy::Bind(IdSet::from([other])));
    let placed: Placed<u8> = Placed::zeroed(1 << 20, &asked).expect("memory");
    let verdict = placed.verify().expect("an answer");
    assert!(verdict.misplaced > 0 && !verdict.fits, "{verdict}");
    assert!(verdict.to_string().ends_with("pages are elsewhere"), "{verdict}");
}

fn scoped() {
    for policy in all(&nodes()).into_iter().filter(|policy| !matches!(policy, Policy::Weighted(_))) {
        let scoped = Scoped::new(&policy).expect("a guard");
        assert_eq!(scoped.policy(), &Policy::Local);
    }
    let foreign = vec![1_u8; 1 << 20];
    assert!(matches!(residence_of(&foreign), Err(Error::System { call: "move_pages", .. })));
}

fn threads() {
    let cpu = cpus().values().filter_map(IdSet::first).max().expect("a CPU");
    let pinned = pin::to_cpu(cpu).expect("a guard");
    assert_eq!(pinned.cpus(), &pin::allowed());
    let copies = Replicated::of_slice(&[1_u64, 2, 3], &nodes(), Pages::Base).expect("copies");
    assert!(copies.iter().all(|(_, copy)| copy[..] == [1, 2, 3]) && copies.local()[2] == 3);
}

fn wrong() {
    let asked = Placement::from(Policy::Weighted(BTreeMap::from([(99, 1)])));
    assert!(matches!(Placed::<u8>::zeroed(1, &asked), Err(Error::NodeNotThere { .. })));
    assert!(pin::to_cpu(9999).is_err());
}

fn one_warning() {
    let said = logged::warnings();
    assert!(said.len() == 1 && said[0].starts_with("memory is not placed, local memory is used"), "{said:?}");
    assert!(said[0].contains("(os error 1)"), "{said:?}");
}
