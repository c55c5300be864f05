//! Huge pages, transparent ones and those of a pool.

use std::collections::BTreeMap;

use genuma_machine::IdSet;
use genuma_machine::placement::{Error, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice};

use super::memory::{shared, with_kernel_weights};
use super::{Check, logged, nodes, numa_maps, place, two};

/// Bytes of a huge page of the guest.
const HUGE: usize = 2 << 20;
/// Base pages in one.
const UNIT: u64 = 512;

/// What must hold where each node has huge pages in its pool.
pub const POOL: &[Check] = &[
    ("pool bind", pool_bind),
    ("pool interleave", pool_interleave),
    ("pool weighted", pool_weighted),
    ("pool too small", pool_too_small),
    ("pages of no size", no_size),
];

/// Places and checks that huge pages were had.
fn huge(policy: &MemoryPolicy, bytes: usize) -> BTreeMap<u32, u64> {
    let (placed, found) = place(policy, PageSize::Transparent, bytes);
    assert_eq!(placed.applied_placement().page_size, PageSize::Transparent, "{}", placed.applied_placement());
    assert_eq!(placed.as_ptr() as usize % HUGE, 0);
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let own = maps.lines().skip_while(|line| !line.starts_with(&format!("{:x}-", placed.as_ptr() as usize)));
    let line = own.take(30).find_map(|line| line.strip_prefix("AnonHugePages:")).expect("a line");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("kB");
    assert_eq!(kib * 1024, bytes / HUGE * HUGE);
    found
}

pub fn huge_bind() {
    for node in nodes().iter() {
        let found = huge(&MemoryPolicy::Bind(IdSet::from([node])), 2 * HUGE + 4096);
        assert_eq!(found, BTreeMap::from([(node, 2 * UNIT + 1)]));
    }
}

pub fn huge_interleave() {
    let found = huge(&MemoryPolicy::Interleave(nodes()), 2 * nodes().len() * HUGE);
    assert!(found.len() == nodes().len() && found.values().all(|&pages| pages == 2 * UNIT), "{found:?}");
}

/// Weights 3 and 1.
fn weights() -> BTreeMap<u32, u32> {
    two().iter().zip([3, 1]).collect()
}

pub fn huge_weighted() {
    let found = huge(&MemoryPolicy::Weighted(weights()), 8 * HUGE);
    assert_eq!(found.values().copied().collect::<Vec<_>>(), [6 * UNIT, 2 * UNIT], "{found:?}");
}

pub fn huge_kernel_weighted() {
    with_kernel_weights(&weights(), || {
        let found = huge(&MemoryPolicy::KernelWeighted(two()), 8 * HUGE);
        shared(&found, &weights(), UNIT);
    });
}

pub fn too_little_for_huge() {
    // Fewer huge pages than nodes would leave some nodes out.
    let bytes = 3 << 20;
    let (placed, found) = place(&MemoryPolicy::Interleave(nodes()), PageSize::Transparent, bytes);
    assert_eq!(placed.applied_placement().page_size, PageSize::Base);
    assert_eq!(found.len(), nodes().len(), "{found:?}");
    let (placed, _) = place(&MemoryPolicy::Bind(two()), PageSize::Transparent, bytes);
    assert_eq!(placed.applied_placement().page_size, PageSize::Transparent);
}

/// Places in the pool's pages and checks that they are the pool's.
fn pool(policy: &MemoryPolicy, bytes: usize) -> BTreeMap<u32, u64> {
    let (placed, found) = place(policy, PageSize::Huge(HUGE as u64), bytes);
    assert_eq!(placed.applied_placement().page_size, PageSize::Huge(HUGE as u64));
    assert_eq!(numa_maps(placed.as_ptr()).2, HUGE as u64);
    found
}

fn pool_bind() {
    for node in nodes().iter() {
        assert_eq!(pool(&MemoryPolicy::Bind(IdSet::from([node])), 3 * HUGE - 5), BTreeMap::from([(node, 3)]));
    }
}

fn pool_interleave() {
    let found = pool(&MemoryPolicy::Interleave(nodes()), 2 * nodes().len() * HUGE);
    assert!(found.len() == nodes().len() && found.values().all(|&pages| pages == 2), "{found:?}");
}

fn pool_weighted() {
    let found = pool(&MemoryPolicy::Weighted(weights()), 8 * HUGE);
    assert_eq!(found.values().copied().collect::<Vec<_>>(), [6, 2], "{found:?}");
}

fn pool_too_small() {
    logged::start();
    let node = two().smallest_id().expect("a node");
    for _ in 0..2 {
        let (placed, found) = place(&MemoryPolicy::Bind(IdSet::from([node])), PageSize::Huge(HUGE as u64), 40 * HUGE);
        assert_eq!(placed.applied_placement().page_size, PageSize::Transparent);
        assert_eq!(found, BTreeMap::from([(node, 40 * UNIT)]));
    }
    let (placed, _) = place(&MemoryPolicy::Local, PageSize::Huge(64 << 10), HUGE);
    assert_eq!(placed.applied_placement().page_size, PageSize::Transparent);
    let said = logged::warnings();
    assert!(said.len() == 1 && said[0].starts_with("huge pages of 2 MiB are not available"), "{said:?}");
}

fn no_size() {
    let asked = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Huge(3 << 20) };
    let error = PlacedSlice::<u8>::new_zeroed(1, &asked).expect_err("no such page");
    assert!(matches!(error, Error::InvalidHugePageSize { bytes: 3_145_728 }), "{error}");
}
