//! Maps memory, applies a memory policy to it and faults in every page.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::error::FailedSystemCall;
use super::node_sets::{self, NumaNodeSets};
use super::scoped::{
    are_proportional_to_kernel_weights, divide_weights_by_gcd, set_policy_with_fallback,
    warn_policy_needs_several_nodes,
};
use super::{Error, MemoryPlacement, MemoryPolicy, PageSize, free_memory, pin};
use crate::IdSet;
use crate::sys::{self, MappedRegion, MappingPageKind};

/// Minimum bytes per thread when pages are faulted in. Chosen: for fewer bytes, starting a thread takes longer than the
/// work.
const MIN_BYTES_PER_FILL_THREAD: usize = 8 << 20;
/// Bytes that a thread faults in at a time.
const FILL_CHUNK_BYTES: usize = 2 << 20;
/// Maximum number of threads that fault in pages. Empirical: more threads are not faster.
const MAX_FILL_THREADS: usize = 8;

/// Memory that was mapped, placed on NUMA nodes and faulted in.
#[derive(Debug)]
pub(super) struct FaultedInRegion {
    /// The memory. All of its pages are resident.
    pub region: MappedRegion,
    /// The placement that was applied, which may differ from the requested one.
    pub applied_placement: MemoryPlacement,
    /// Distribution of the pages over nodes that the requested policy should give.
    pub expected_distribution: PageDistribution,
    /// Size in bytes of the pages that are distributed over nodes: huge pages or base pages.
    pub unit_bytes: usize,
    /// Bytes that the kernel distributed in base pages because it had no huge page for them.
    pub scattered_bytes: usize,
}

/// How the pages of a region should be distributed over NUMA nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PageDistribution {
    /// On any of these nodes, in any proportion.
    AnyOf(IdSet),
    /// Round-robin over the nodes, with each node's number of units per round.
    RoundRobin(BTreeMap<u32, u32>),
}

/// Maps `bytes` bytes (more than 0) with the requested placement, or the nearest one that machine and kernel support,
/// and faults in all pages.
pub(super) fn allocate_placed_region(bytes: usize, asked: &MemoryPlacement) -> Result<FaultedInRegion, Error> {
    let nodes = NumaNodeSets::read_current_node_sets();
    nodes.check_policy(&asked.policy)?;
    if let PageSize::Huge(size) = asked.page_size
        && !(size.is_power_of_two() && size >= sys::base_page_bytes() as u64)
    {
        return Err(Error::InvalidHugePageSize { bytes: size });
    }
    let policy = supported_policy(&asked.policy, &nodes);
    let shares = expected_distribution(&asked.policy, &policy, &nodes);
    let transparent = node_sets::read_transparent_huge_page_size_bytes();
    let units_per_round = match &shares {
        PageDistribution::AnyOf(_) => 1,
        PageDistribution::RoundRobin(weights) => weights.values().sum::<u32>() as usize,
    };
    let mut pages = asked.page_size;
    if let PageSize::Huge(size) = pages {
        match fill_from_huge_page_pool(bytes, size as usize, units_per_round, &policy, &nodes, &shares) {
            Ok(filled) => return Ok(filled),
            Err(why) => warn_page_fallback(asked, PageSize::Transparent, &why),
        }
        pages = PageSize::Transparent;
    }
    free_memory::check_available_memory(bytes as u64, &policy, &nodes)?;
    let unit = match (pages, transparent) {
        (PageSize::Transparent, Some(unit)) if bytes / unit >= units_per_round => unit,
        (PageSize::Transparent, Some(unit)) => {
            tracing::debug!("{asked}: base pages, for {bytes} B are less than {units_per_round} pages of {unit} B");
            sys::base_page_bytes()
        }
        (PageSize::Transparent, None) => {
            warn_page_fallback(asked, PageSize::Base, "transparent huge pages are switched off");
            sys::base_page_bytes()
        }
        _ => sys::base_page_bytes(),
    };
    let failed = |FailedSystemCall(call, source)| Error::SystemCallFailed { asked: asked.to_string(), call, source };
    let huge = unit > sys::base_page_bytes();
    let region = MappedRegion::map_anonymous(bytes, MappingPageKind::Base { align_bytes: unit })
        .map_err(|error| failed(FailedSystemCall("mmap", error)))?;
    if let Err(error) = region.advise_transparent_huge_pages(huge) {
        // A kernel without transparent huge pages: there is nothing to disable either.
        tracing::debug!("{asked}: madvise: {error}");
    }
    let policy = apply_policy_and_fault_in(&region, &policy, &shares, unit).map_err(failed)?;
    let whole = if huge { region.len_bytes() / unit * unit } else { 0 };
    let merged = if huge { transparent_huge_bytes_in_mapping(region.start_address()).unwrap_or(whole) } else { 0 };
    let (pages, unit, scattered) = match (merged, &policy) {
        (0, MemoryPolicy::Weighted(_)) => (PageSize::Base, unit, 0),
        (0, _) => (PageSize::Base, sys::base_page_bytes(), 0),
        (_, MemoryPolicy::Weighted(_)) => (PageSize::Transparent, unit, 0),
        _ => (PageSize::Transparent, unit, whole.saturating_sub(merged)),
    };
    if huge && merged == 0 {
        warn_page_fallback(asked, pages, "the kernel gave none");
    }
    Ok(FaultedInRegion {
        region,
        applied_placement: MemoryPlacement { policy, page_size: pages },
        expected_distribution: shares,
        unit_bytes: unit,
        scattered_bytes: scattered,
    })
}

/// The policy to apply instead of `policy`: `policy` itself if this machine and kernel support it, else the nearest
/// supported policy. The kernel may still refuse the result.
fn supported_policy(policy: &MemoryPolicy, nodes: &NumaNodeSets) -> MemoryPolicy {
    if nodes.has_one_usable_node() {
        warn_policy_needs_several_nodes(policy, nodes);
        return MemoryPolicy::Local;
    }
    match policy {
        MemoryPolicy::Weighted(weights) if are_proportional_to_kernel_weights(weights) => {
            MemoryPolicy::KernelWeighted(policy.named_nodes())
        }
        MemoryPolicy::KernelWeighted(over) if node_sets::read_kernel_interleave_weights(over).is_none() => {
            MemoryPolicy::Interleave(over.clone())
        }
        other => other.clone(),
    }
}

/// The distribution of pages over nodes that the requested policy `asked` should give. `policy` is the policy that is
/// applied instead of `asked`.
fn expected_distribution(asked: &MemoryPolicy, policy: &MemoryPolicy, nodes: &NumaNodeSets) -> PageDistribution {
    let ones = |over: &IdSet| PageDistribution::RoundRobin(over.iter().map(|node| (node, 1)).collect());
    match (asked, policy) {
        (MemoryPolicy::Local, _) => {
            PageDistribution::AnyOf(node_sets::nearest_nodes(pin::current_location().node, &nodes.usable))
        }
        (MemoryPolicy::Bind(over) | MemoryPolicy::PreferredMany(over), _) => PageDistribution::AnyOf(over.clone()),
        (MemoryPolicy::Interleave(over), _) => ones(over),
        (MemoryPolicy::KernelWeighted(over), _) | (MemoryPolicy::Weighted(_), MemoryPolicy::KernelWeighted(over)) => {
            node_sets::read_kernel_interleave_weights(over).map_or_else(|| ones(over), PageDistribution::RoundRobin)
        }
        (MemoryPolicy::Weighted(weights), _) => PageDistribution::RoundRobin(divide_weights_by_gcd(weights)),
    }
}

/// Maps and faults in `bytes` bytes in huge pages of `size` bytes from the hugetlb pool. The error is the reason why
/// this is impossible.
fn fill_from_huge_page_pool(
    bytes: usize,
    size: usize,
    units_per_round: usize,
    policy: &MemoryPolicy,
    nodes: &NumaNodeSets,
    shares: &PageDistribution,
) -> Result<FaultedInRegion, String> {
    let needed = bytes.div_ceil(size) as u64;
    if units_per_round > 1 && bytes / size < units_per_round {
        return Err(format!("{bytes} B are less than {units_per_round} of these huge pages"));
    }
    let enough = |over: &IdSet, needed: u64| match node_sets::count_free_hugetlb_pages(over, size) {
        None => Err("this machine has no pool of these huge pages".to_owned()),
        Some(free) if free < needed => Err(format!("node {over} has {free} free, {needed} are needed")),
        Some(_) => Ok(()),
    };
    match shares {
        PageDistribution::RoundRobin(weights) if !nodes.has_one_usable_node() => {
            for (&node, &weight) in weights {
                enough(&IdSet::from([node]), (needed * u64::from(weight)).div_ceil(units_per_round as u64))?;
            }
        }
        PageDistribution::AnyOf(over) if matches!(policy, MemoryPolicy::Bind(_)) => enough(over, needed)?,
        _ => enough(&nodes.usable, needed)?,
    }
    let region = MappedRegion::map_anonymous(bytes, MappingPageKind::HugePool(size))
        .map_err(|error| format!("mmap: {error}"))?;
    let policy = apply_policy_and_fault_in(&region, policy, shares, size)
        .map_err(|FailedSystemCall(call, error)| format!("{call}: {error}"))?;
    let used = MemoryPlacement { policy, page_size: PageSize::Huge(size as u64) };
    Ok(FaultedInRegion {
        region,
        applied_placement: used,
        expected_distribution: shares.clone(),
        unit_bytes: size,
        scattered_bytes: 0,
    })
}

/// Warns, once per process, that the page size `instead` is used in place of the requested one. `why` is the reason.
fn warn_page_fallback(asked: &MemoryPlacement, instead: PageSize, why: &str) {
    static WARN_ONCE: Once = Once::new();
    WARN_ONCE.call_once(|| {
        tracing::warn!(
            "{} are not available ({why}), so {instead} are used: results are the same, but may take longer; an administrator can \
             provide huge pages (/sys/kernel/mm)",
            asked.page_size
        );
    });
}

/// Faults in the whole region under `policy`. Returns the policy that the kernel applied.
fn apply_policy_and_fault_in(
    region: &MappedRegion,
    policy: &MemoryPolicy,
    shares: &PageDistribution,
    unit: usize,
) -> Result<MemoryPolicy, FailedSystemCall> {
    let placed = match (policy, shares) {
        (MemoryPolicy::Weighted(weights), _) => fault_in_weighted(region, &divide_weights_by_gcd(weights), unit),
        _ => Ok(()),
    };
    let bound = placed.and_then(|()| {
        let bind = |policy: &sys::KernelMempolicy| region.apply_mempolicy(policy);
        let bound = match (policy, shares) {
            // Preferring one node keeps the memory together if the kernel moves the thread in the meantime.
            (MemoryPolicy::Local, PageDistribution::AnyOf(home)) => {
                let nodes = home.smallest_id().into_iter().collect();
                bind(&sys::KernelMempolicy { mode: sys::MempolicyMode::MPOL_PREFERRED, nodes })
                    .map(|()| MemoryPolicy::Local)
            }
            _ => set_policy_with_fallback(policy, bind),
        };
        bound.map_err(|error| FailedSystemCall("mbind", error))
    });
    let (used, threads) = match bound {
        Ok(used) => (used, sys::thread_affinity(0).map_or(1, |cpus| cpus.len())),
        // Local memory is on the node of this thread, so only this thread faults it in.
        Err(FailedSystemCall(call, error)) if sys::is_policy_refused(&error) => {
            if *policy != MemoryPolicy::Local {
                node_sets::warn_placement_degraded(node_sets::LOCAL_FALLBACK_MESSAGE, &format!("{call}: {error}"));
            }
            (MemoryPolicy::Local, 1)
        }
        Err(failed) => return Err(failed),
    };
    let populate = |part| region.fault_in_pages(part).map_err(|error| FailedSystemCall("madvise", error));
    let threads = (region.len_bytes() / MIN_BYTES_PER_FILL_THREAD).min(threads).clamp(1, MAX_FILL_THREADS);
    if threads == 1 {
        populate(0..region.len_bytes())?;
    } else {
        // Some pages take many times as long as others, for example when a virtual machine has to get them first. So
        // each thread takes the next chunk when it has finished one.
        let (next, part) = (AtomicUsize::new(0), FILL_CHUNK_BYTES.next_multiple_of(unit));
        run_in_threads(0..threads, |_| {
            loop {
                let start = next.fetch_add(part, Relaxed);
                if start >= region.len_bytes() {
                    return Ok(());
                }
                populate(start..region.len_bytes().min(start + part))?;
            }
        })?;
    }
    Ok(used)
}

/// Faults in the pages of a region under weighted interleave: the pages of each node by a thread bound to that node.
fn fault_in_weighted(region: &MappedRegion, weights: &BTreeMap<u32, u32>, unit: usize) -> Result<(), FailedSystemCall> {
    run_in_threads(weights.keys().copied(), |node| {
        let bind = sys::KernelMempolicy { mode: sys::MempolicyMode::MPOL_BIND, nodes: IdSet::from([node]) };
        sys::set_thread_mempolicy(&bind).map_err(|error| FailedSystemCall("set_mempolicy", error))?;
        let populate = |run| region.fault_in_pages(run).map_err(|error| FailedSystemCall("madvise", error));
        node_ranges(weights, node, region.len_bytes(), unit).try_for_each(populate)
    })
}

/// The byte ranges of a region that belong to `node` under weighted interleave. Units of `unit` bytes are distributed
/// over the nodes in turn; the remainder at the end, which is shorter than a unit, is distributed in base pages.
fn node_ranges(
    weights: &BTreeMap<u32, u32>,
    node: u32,
    bytes: usize,
    unit: usize,
) -> impl Iterator<Item = Range<usize>> {
    let turn: usize = weights.values().map(|&weight| weight as usize).sum();
    let before: usize = weights.range(..node).map(|(_, &weight)| weight as usize).sum();
    let own = weights.get(&node).map_or(0, |&weight| weight as usize);
    let whole = bytes / unit * unit;
    [(0..whole, unit), (whole..bytes, sys::base_page_bytes())].into_iter().flat_map(move |(part, unit)| {
        let first = part.start + before * unit;
        (first..part.end).step_by(turn * unit).map(move |start| start..part.end.min(start + own * unit))
    })
}

/// Runs `work` on each item, each in its own thread.
fn run_in_threads<W: Send>(
    items: impl Iterator<Item = W>,
    work: impl Fn(W) -> Result<(), FailedSystemCall> + Sync,
) -> Result<(), FailedSystemCall> {
    let work = &work;
    std::thread::scope(|scope| {
        let start = |piece| std::thread::Builder::new().spawn_scoped(scope, move || work(piece));
        let threads: io::Result<Vec<_>> = items.map(start).collect();
        let threads = threads.map_err(|error| FailedSystemCall("a thread to fill memory", error))?;
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Bytes of the mapping at `start` that are in transparent huge pages (`AnonHugePages` in /proc/self/smaps).
fn transparent_huge_bytes_in_mapping(start: usize) -> Option<usize> {
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let head = format!("{start:x}-");
    let mut lines = maps.lines().skip_while(|line| !line.starts_with(&head)).skip(1);
    let line = lines.find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<usize>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_cover_every_page_once() {
        let page = sys::base_page_bytes();
        for (unit, bytes) in [(page, 103 * page), (8 * page, 103 * page), (8 * page, 5 * page), (page, page)] {
            for weights in [[(0, 3), (2, 1), (5, 2)].into(), BTreeMap::from([(1, 1)]), [(0, 1), (1, 7)].into()] {
                let mut owner = vec![Vec::new(); bytes / page];
                for &node in weights.keys() {
                    for run in node_ranges(&weights, node, bytes, unit) {
                        assert!(run.start.is_multiple_of(page) && run.end.is_multiple_of(page) && run.start < run.end);
                        owner[run.start / page..run.end / page].iter_mut().for_each(|at| at.push(node));
                    }
                }
                assert!(owner.iter().all(|nodes| nodes.len() == 1), "{weights:?} {unit} {bytes}: {owner:?}");
            }
        }
        let runs: Vec<_> = node_ranges(&[(0, 3), (1, 1)].into(), 0, 8 * page, page).collect();
        assert_eq!(runs, [0..3 * page, 4 * page..7 * page]);
    }
}
