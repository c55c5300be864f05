//! Mapping memory, putting it under a policy and faulting every page in.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::nodes::{self, Nodes};
use super::scoped::{as_the_kernels, kernel_policy, one_node, reduced};
use super::{Error, Pages, Placement, Policy, pin, room};
use crate::IdSet;
use crate::sys::{self, Kind, Region};

/// Bytes that are worth a thread of their own when memory is filled.
const WORTH_A_THREAD: usize = 8 << 20;
/// Bytes that a thread fills at a time.
const AT_ONCE: usize = 2 << 20;
/// More threads than these do not fill memory faster.
const THREADS: usize = 8;

/// Memory that was placed.
#[derive(Debug)]
pub(super) struct Filled {
    /// The memory.
    pub region: Region,
    /// What was really done.
    pub used: Placement,
    /// Which node should have how much.
    pub shares: Shares,
    /// Bytes of the units that were spread: huge pages or base pages.
    pub unit: usize,
    /// Bytes that the kernel spread page by page because it had no huge page left for them.
    pub scattered: usize,
}

/// A call that failed.
struct Failed(&'static str, io::Error);

/// Which node should have how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shares {
    /// Any of these, as much as it likes.
    Any(IdSet),
    /// All of them in turn, so many units at a time.
    Turns(BTreeMap<u32, u32>),
}

/// Places `bytes`, more than none, as asked.
pub(super) fn place(bytes: usize, asked: &Placement) -> Result<Filled, Error> {
    let nodes = Nodes::read();
    nodes.check(&asked.policy)?;
    if let Pages::Huge(size) = asked.pages
        && !(size.is_power_of_two() && size >= sys::page() as u64)
    {
        return Err(Error::HugePageSize { bytes: size });
    }
    let policy = feasible(&asked.policy, &nodes);
    let shares = shares(&asked.policy, &policy, &nodes);
    let transparent = nodes::transparent_page();
    let turn = match &shares {
        Shares::Any(_) => 1,
        Shares::Turns(weights) => weights.values().sum::<u32>() as usize,
    };
    let mut pages = asked.pages;
    if let Pages::Huge(size) = pages {
        match fill_from_pool(bytes, size as usize, turn, &policy, &nodes, &shares) {
            Ok(filled) => return Ok(filled),
            Err(why) => pages_instead(asked, Pages::Transparent, &why),
        }
        pages = Pages::Transparent;
    }
    room::check(bytes as u64, &policy, &nodes)?;
    let unit = match (pages, transparent) {
        (Pages::Transparent, Some(unit)) if bytes / unit >= turn => unit,
        (Pages::Transparent, Some(unit)) => {
            tracing::debug!("{asked}: base pages, for {bytes} B are less than {turn} pages of {unit} B");
            sys::page()
        }
        (Pages::Transparent, None) => {
            pages_instead(asked, Pages::Base, "transparent huge pages are switched off");
            sys::page()
        }
        _ => sys::page(),
    };
    let failed = |Failed(call, source)| Error::System { asked: asked.to_string(), call, source };
    let huge = unit > sys::page();
    let region =
        Region::new(bytes, Kind::Base { align: unit }).map_err(|error| failed(Failed("mmap", error)))?;
    if let Err(error) = region.transparent(huge) {
        // A kernel without transparent huge pages; there is nothing to switch off either.
        tracing::debug!("{asked}: madvise: {error}");
    }
    let policy = fill(&region, &policy, &shares, unit).map_err(failed)?;
    let whole = if huge { region.bytes() / unit * unit } else { 0 };
    let merged = if huge { huge_bytes(region.address()).unwrap_or(whole) } else { 0 };
    let (pages, unit, scattered) = match (merged, &policy) {
        (0, Policy::Weighted(_)) => (Pages::Base, unit, 0),
        (0, _) => (Pages::Base, sys::page(), 0),
        (_, Policy::Weighted(_)) => (Pages::Transparent, unit, 0),
        _ => (Pages::Transparent, unit, whole.saturating_sub(merged)),
    };
    if huge && merged == 0 {
        pages_instead(asked, pages, "the kernel gave none");
    }
    Ok(Filled { region, used: Placement { policy, pages }, shares, unit, scattered })
}

/// What can be done about `policy` here before the kernel is asked.
fn feasible(policy: &Policy, nodes: &Nodes) -> Policy {
    if nodes.single() {
        one_node(policy, nodes);
        return Policy::Local;
    }
    match policy {
        Policy::Weighted(weights) if as_the_kernels(weights) => Policy::KernelWeighted(policy.nodes()),
        Policy::KernelWeighted(over) if nodes::kernel_weights(over).is_none() => {
            Policy::Interleave(over.clone())
        }
        other => other.clone(),
    }
}

/// Which node should have how much by what was asked; `policy` is what can be done about it.
fn shares(asked: &Policy, policy: &Policy, nodes: &Nodes) -> Shares {
    let ones = |over: &IdSet| Shares::Turns(over.iter().map(|node| (node, 1)).collect());
    match (asked, policy) {
        (Policy::Local, _) => Shares::Any(nodes::nearest(pin::here().node, &nodes.usable)),
        (Policy::Bind(over) | Policy::PreferredMany(over), _) => Shares::Any(over.clone()),
        (Policy::Interleave(over), _) => ones(over),
        (Policy::KernelWeighted(over), _) | (Policy::Weighted(_), Policy::KernelWeighted(over)) => {
            nodes::kernel_weights(over).map_or_else(|| ones(over), Shares::Turns)
        }
        (Policy::Weighted(weights), _) => Shares::Turns(reduced(weights)),
    }
}

/// Places `bytes` in pages of the pool, or says why not.
fn fill_from_pool(
    bytes: usize,
    size: usize,
    turn: usize,
    policy: &Policy,
    nodes: &Nodes,
    shares: &Shares,
) -> Result<Filled, String> {
    let needed = bytes.div_ceil(size) as u64;
    if turn > 1 && bytes / size < turn {
        return Err(format!("{bytes} B are less than {turn} of them"));
    }
    let enough = |over: &IdSet, needed: u64| match nodes::pool(over, size) {
        None => Err("this machine has no pool of them".to_owned()),
        Some(free) if free < needed => Err(format!("node {over} has {free} free, {needed} are needed")),
        Some(_) => Ok(()),
    };
    match shares {
        Shares::Turns(weights) if !nodes.single() => {
            for (&node, &weight) in weights {
                enough(&IdSet::from([node]), (needed * u64::from(weight)).div_ceil(turn as u64))?;
            }
        }
        Shares::Any(over) if matches!(policy, Policy::Bind(_)) => enough(over, needed)?,
        _ => enough(&nodes.usable, needed)?,
    }
    let region = Region::new(bytes, Kind::Pool(size)).map_err(|error| format!("mmap: {error}"))?;
    let policy =
        fill(&region, policy, shares, size).map_err(|Failed(call, error)| format!("{call}: {error}"))?;
    let used = Placement { policy, pages: Pages::Huge(size as u64) };
    Ok(Filled { region, used, shares: shares.clone(), unit: size, scattered: 0 })
}

/// Says once a process that other pages than asked for are used.
fn pages_instead(asked: &Placement, instead: Pages, why: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| tracing::warn!("{} cannot be had, {instead} are used instead: {why}", asked.pages));
}

/// Faults all of the region in under `policy`; returns the policy that was really followed.
fn fill(region: &Region, policy: &Policy, shares: &Shares, unit: usize) -> Result<Policy, Failed> {
    let placed = match (policy, shares) {
        (Policy::Weighted(weights), _) => fill_in_turns(region, &reduced(weights), unit),
        _ => Ok(()),
    };
    let bound = placed.and_then(|()| {
        let bind = |policy: &sys::Policy| region.bind(policy);
        let bound = match (policy, shares) {
            // Preferring one node keeps memory together when the kernel moves the thread halfway.
            (Policy::Local, Shares::Any(home)) => {
                let nodes = home.first().into_iter().collect();
                bind(&sys::Policy { mode: sys::Mode::PREFERRED, nodes }).map(|()| Policy::Local)
            }
            _ => kernel_policy(policy, bind),
        };
        bound.map_err(|error| Failed("mbind", error))
    });
    let (used, threads) = match bound {
        Ok(used) => (used, sys::affinity(0).map_or(1, |cpus| cpus.len())),
        // Local memory is that of this thread.
        Err(Failed(call, error)) if sys::refused(&error) => {
            if *policy != Policy::Local {
                nodes::degraded(nodes::LOCAL, &format!("{call}: {error}"));
            }
            (Policy::Local, 1)
        }
        Err(failed) => return Err(failed),
    };
    let populate = |part| region.populate(part).map_err(|error| Failed("madvise", error));
    let threads = (region.bytes() / WORTH_A_THREAD).min(threads).clamp(1, THREADS);
    if threads == 1 {
        populate(0..region.bytes())?;
    } else {
        // Some pages take many times as long as others, as where a virtual machine is given them first, so each thread takes the next few when it is done.
        let (next, part) = (AtomicUsize::new(0), AT_ONCE.next_multiple_of(unit));
        in_threads(0..threads, |_| {
            loop {
                let start = next.fetch_add(part, Relaxed);
                if start >= region.bytes() {
                    return Ok(());
                }
                populate(start..region.bytes().min(start + part))?;
            }
        })?;
    }
    Ok(used)
}

/// Faults the units in that each node gets in its turns, each node in a thread bound to it.
fn fill_in_turns(region: &Region, weights: &BTreeMap<u32, u32>, unit: usize) -> Result<(), Failed> {
    in_threads(weights.keys().copied(), |node| {
        let bind = sys::Policy { mode: sys::Mode::BIND, nodes: IdSet::from([node]) };
        sys::set_policy(&bind).map_err(|error| Failed("set_mempolicy", error))?;
        let populate = |run| region.populate(run).map_err(|error| Failed("madvise", error));
        turns(weights, node, region.bytes(), unit).try_for_each(populate)
    })
}

/// The runs of bytes that are `node`'s: whole units first, then base pages where the end is no whole unit.
fn turns(
    weights: &BTreeMap<u32, u32>,
    node: u32,
    bytes: usize,
    unit: usize,
) -> impl Iterator<Item = Range<usize>> {
    let turn: usize = weights.values().map(|&weight| weight as usize).sum();
    let before: usize = weights.range(..node).map(|(_, &weight)| weight as usize).sum();
    let own = weights.get(&node).map_or(0, |&weight| weight as usize);
    let whole = bytes / unit * unit;
    [(0..whole, unit), (whole..bytes, sys::page())].into_iter().flat_map(move |(part, unit)| {
        let first = part.start + before * unit;
        (first..part.end).step_by(turn * unit).map(move |start| start..part.end.min(start + own * unit))
    })
}

/// Does each piece of work in a thread of its own.
fn in_threads<W: Send>(
    pieces: impl Iterator<Item = W>,
    work: impl Fn(W) -> Result<(), Failed> + Sync,
) -> Result<(), Failed> {
    let work = &work;
    std::thread::scope(|scope| {
        let start = |piece| std::thread::Builder::new().spawn_scoped(scope, move || work(piece));
        let threads: io::Result<Vec<_>> = pieces.map(start).collect();
        let threads = threads.map_err(|error| Failed("a thread to fill memory", error))?;
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Bytes of the mapping at `start` that are in transparent huge pages, from /proc/self/smaps.
fn huge_bytes(start: usize) -> Option<usize> {
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
        let page = sys::page();
        for (unit, bytes) in [(page, 103 * page), (8 * page, 103 * page), (8 * page, 5 * page), (page, page)]
        {
            for weights in
                [[(0, 3), (2, 1), (5, 2)].into(), BTreeMap::from([(1, 1)]), [(0, 1), (1, 7)].into()]
            {
                let mut owner = vec![Vec::new(); bytes / page];
                for &node in weights.keys() {
                    for run in turns(&weights, node, bytes, unit) {
                        assert!(
                            run.start.is_multiple_of(page)
                                && run.end.is_multiple_of(page)
                                && run.start < run.end
                        );
                        owner[run.start / page..run.end / page].iter_mut().for_each(|at| at.push(node));
                    }
                }
                assert!(owner.iter().all(|nodes| nodes.len() == 1), "{weights:?} {unit} {bytes}: {owner:?}");
            }
        }
        let runs: Vec<_> = turns(&[(0, 3), (1, 1)].into(), 0, 8 * page, page).collect();
        assert_eq!(runs, [0..3 * page, 4 * page..7 * page]);
    }
}
