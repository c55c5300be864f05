//! Queries the kernel for the NUMA nodes on which pages are resident.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::fill::PageDistribution;
use super::{Error, MemoryPlacement, format_bytes};
use crate::sys;

/// Number of pages of some memory on each NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageResidence {
    /// Size in bytes of the pages that are counted: the size of hugetlb pages for memory in such pages, otherwise that of
    /// base pages, also for memory in transparent huge pages.
    #[serde(rename = "page")]
    pub page_bytes: u64,
    /// Number of pages on each node.
    #[serde(rename = "nodes")]
    pub pages_by_node: BTreeMap<u32, u64>,
    /// Number of pages that are not resident: never written, or swapped out.
    #[serde(rename = "absent")]
    pub absent_pages: u64,
}

impl PageResidence {
    /// Number of resident pages.
    pub fn num_resident_pages(&self) -> u64 {
        self.pages_by_node.values().sum()
    }
}

impl fmt::Display for PageResidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for (node, pages) in &self.pages_by_node {
            write!(f, "{before}node {node} {pages}")?;
            before = ", ";
        }
        match (self.pages_by_node.is_empty(), self.absent_pages) {
            (true, 0) => write!(f, "no pages"),
            (_, 0) => Ok(()),
            (_, absent) => write!(f, "{before}absent {absent}"),
        }
    }
}

/// Queries on which nodes the pages of `elements` are, regardless of who allocated the memory. Queries each base page
/// with move_pages(2).
///
/// # Errors
/// When the kernel forbids the call.
pub fn query_slice_residence<T>(elements: &[T]) -> Result<PageResidence, Error> {
    let range = elements.as_ptr_range();
    query_address_range_residence(range.start as usize..range.end as usize)
}

/// Queries on which nodes the pages of an address range are. Reads no memory: pages without a mapping count as absent.
/// Queries each base page with move_pages(2).
///
/// # Errors
/// When the kernel forbids the call.
pub fn query_address_range_residence(range: Range<usize>) -> Result<PageResidence, Error> {
    let unit = sys::base_page_bytes();
    let start = range.start / unit * unit;
    let count = if range.is_empty() { 0 } else { (range.end - start).div_ceil(unit) };
    query_residence_by_move_pages(start, unit, count)
}

/// Queries on which nodes `count` pages of `unit` bytes are, starting at the address `start`, with move_pages(2).
pub(super) fn query_residence_by_move_pages(start: usize, unit: usize, count: usize) -> Result<PageResidence, Error> {
    let mut found = PageResidence { page_bytes: unit as u64, ..PageResidence::default() };
    sys::query_page_nodes(start, unit, count, |node| match node {
        Some(node) => *found.pages_by_node.entry(node).or_default() += 1,
        None => found.absent_pages += 1,
    })
    .map_err(|source| Error::SystemCallFailed {
        asked: format!("where {} are", format_bytes((unit * count) as u64)),
        call: "move_pages",
        source,
    })?;
    Ok(found)
}

/// Queries on which nodes the pages of a whole mapping are, with move_pages(2), or from /proc/self/numa_maps where
/// the call is forbidden.
pub(super) fn query_mapping_by_move_pages_or_numa_maps(
    start: usize,
    unit: usize,
    count: usize,
) -> Result<PageResidence, Error> {
    query_residence_by_move_pages(start, unit, count)
        .or_else(|error| read_residence_from_numa_maps(start, unit, count).ok_or(error))
}

/// Queries on which nodes the pages of a whole mapping are, from /proc/self/numa_maps if possible, because it is
/// faster than one query per page, else with move_pages(2).
pub(super) fn query_mapping_by_numa_maps_or_move_pages(
    start: usize,
    unit: usize,
    count: usize,
) -> Result<PageResidence, Error> {
    read_residence_from_numa_maps(start, unit, count)
        .map_or_else(|| query_residence_by_move_pages(start, unit, count), Ok)
}

fn read_residence_from_numa_maps(start: usize, unit: usize, count: usize) -> Option<PageResidence> {
    let maps = std::fs::read_to_string("/proc/self/numa_maps").ok()?;
    parse_numa_maps(&maps, start, unit, count)
}

/// Parses the line of the mapping at `start` in numa_maps, for example `7f00 interleave:0-1 anon=8 dirty=8 N0=4 N1=4
/// kernelpagesize_kB=4`. Its counts are in pages of `kernelpagesize_kB`.
fn parse_numa_maps(maps: &str, start: usize, unit: usize, count: usize) -> Option<PageResidence> {
    let head = format!("{start:x} ");
    let line = maps.lines().find_map(|line| line.strip_prefix(&head))?;
    let mut nodes = BTreeMap::new();
    for word in line.split_whitespace() {
        if let Some((name, number)) = word.split_once('=')
            && let Some(Ok(node)) = name.strip_prefix('N').map(str::parse)
        {
            nodes.insert(node, number.parse().ok()?);
        }
    }
    let present: u64 = nodes.values().sum();
    Some(PageResidence {
        page_bytes: unit as u64,
        pages_by_node: nodes,
        absent_pages: (count as u64).checked_sub(present)?,
    })
}

/// Counts the pages of `found` that are not on the nodes that `shares` requires. Of all `pages` pages, groups of
/// `per_unit` pages were distributed over the nodes as a whole (huge pages); pages beyond the last whole group were
/// distributed one by one. `scattered` is the number of pages in whole groups that were distributed one by one, too.
pub(super) fn count_misplaced_pages(
    found: &PageResidence,
    shares: &PageDistribution,
    pages: u64,
    per_unit: u64,
    scattered: usize,
) -> u64 {
    let on = |node: u32| found.pages_by_node.get(&node).copied().unwrap_or(0);
    let weights = match shares {
        PageDistribution::AnyOf(nodes) => return found.num_resident_pages() - nodes.iter().map(on).sum::<u64>(),
        PageDistribution::RoundRobin(weights) => weights,
    };
    let turn: u64 = weights.values().copied().map(u64::from).sum();
    // Smallest and largest number of `units` that `weight` out of every `turn` can be, at any start within a round.
    let bounds = |units: u64, weight: u64| {
        let (whole, rest) = (units / turn * weight, units % turn);
        (whole + rest.saturating_sub(turn - weight), whole + rest.min(weight))
    };
    let (units, rest) = (pages / per_unit, pages % per_unit);
    let (mut missing, mut excess) = (0, found.num_resident_pages() - weights.keys().map(|&node| on(node)).sum::<u64>());
    for (&node, &weight) in weights {
        let (coarse, fine) = (bounds(units, weight.into()), bounds(rest, weight.into()));
        let least = (coarse.0 * per_unit + fine.0).saturating_sub(scattered as u64);
        let most = coarse.1 * per_unit + fine.1 + scattered as u64;
        missing += least.saturating_sub(on(node));
        excess += on(node).saturating_sub(most);
    }
    missing.saturating_sub(found.absent_pages).max(excess)
}

/// Result of comparing a requested placement with the nodes on which the pages are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementCheck {
    /// Requested nodes, policy and page size.
    #[serde(rename = "asked")]
    pub requested: MemoryPlacement,
    /// Number of bytes that were placed.
    pub bytes: u64,
    /// Nodes on which the pages are.
    #[serde(rename = "found")]
    pub residence: PageResidence,
    /// Number of pages that are on another node than requested.
    #[serde(rename = "misplaced")]
    pub misplaced_pages: u64,
    /// Whether all pages are resident and on the requested nodes. The page size is not compared.
    #[serde(rename = "fits")]
    pub is_as_requested: bool,
}

impl fmt::Display for PlacementCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}: ", format_bytes(self.bytes), self.requested.policy, self.residence)?;
        match self.is_as_requested {
            true => write!(f, "as asked"),
            false => write!(
                f,
                "not as asked: {} of {} pages are elsewhere",
                self.misplaced_pages,
                self.residence.num_resident_pages() + self.residence.absent_pages
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn residence(nodes: &[(u32, u64)], absent: u64) -> PageResidence {
        PageResidence { page_bytes: 4096, pages_by_node: nodes.iter().copied().collect(), absent_pages: absent }
    }

    #[test]
    fn turns_may_start_anywhere_but_not_leave_a_node_short() {
        let even = PageDistribution::RoundRobin([(0, 1), (1, 1), (2, 1)].into());
        let wrong = |nodes: &[(u32, u64)]| {
            let found = residence(nodes, 0);
            count_misplaced_pages(&found, &even, found.num_resident_pages(), 1, 0)
        };
        assert_eq!(wrong(&[(0, 3), (1, 3), (2, 3)]), 0);
        assert_eq!(wrong(&[(0, 3), (1, 4), (2, 3)]), 0);
        assert_eq!(wrong(&[(0, 5), (1, 3), (2, 2)]), 1);
        assert_eq!(wrong(&[(0, 10)]), 6);
        assert_eq!(wrong(&[(0, 3), (1, 3), (5, 3)]), 3);
    }

    #[test]
    fn weights_and_units_count() {
        let shares = PageDistribution::RoundRobin([(0, 3), (1, 1)].into());
        let wrong = |nodes: &[(u32, u64)], per_unit, scattered| {
            let found = residence(nodes, 0);
            count_misplaced_pages(&found, &shares, found.num_resident_pages(), per_unit, scattered)
        };
        assert_eq!(wrong(&[(0, 6), (1, 2)], 1, 0), 0);
        assert_eq!(wrong(&[(0, 4), (1, 4)], 1, 0), 2);
        // Eight units of four pages, and three pages at the end.
        assert_eq!(wrong(&[(0, 24 + 2), (1, 8 + 1)], 4, 0), 0);
        assert_eq!(wrong(&[(0, 20 + 2), (1, 12 + 1)], 4, 0), 4);
        assert_eq!(wrong(&[(0, 20 + 2), (1, 12 + 1)], 4, 4), 0);
    }

    #[test]
    fn pages_elsewhere_than_on_any_node_asked_for_are_misplaced() {
        let found = residence(&[(0, 5), (3, 2)], 1);
        assert_eq!(count_misplaced_pages(&found, &PageDistribution::AnyOf([0].into()), 8, 1, 0), 2);
        assert_eq!(count_misplaced_pages(&found, &PageDistribution::AnyOf([0, 3].into()), 8, 1, 0), 0);
        // Pages that are not resident are not on a wrong node.
        let found = residence(&[(0, 2), (1, 1)], 5);
        assert_eq!(count_misplaced_pages(&found, &PageDistribution::RoundRobin([(0, 1), (1, 1)].into()), 8, 1, 0), 0);
    }

    #[test]
    fn numa_maps_is_read_for_the_mapping_alone() {
        let maps = "7f00 default file=/bin/x mapped=2 N0=2 kernelpagesize_kB=4\n\
                    7f0000 interleave:0-1 anon=8 dirty=8 active=0 N0=5 N1=3 kernelpagesize_kB=4\n";
        let found = parse_numa_maps(maps, 0x7f0000, 4096, 9).expect("a line");
        assert_eq!(found, residence(&[(0, 5), (1, 3)], 1));
        assert_eq!(found.to_string(), "node 0 5, node 1 3, absent 1");
        assert_eq!(parse_numa_maps(maps, 0x7f1000, 4096, 9), None);
        // A mapping with more pages than requested is another mapping.
        assert_eq!(parse_numa_maps(maps, 0x7f0000, 4096, 7), None);
    }

    #[test]
    fn a_verdict_is_one_line() {
        let asked = MemoryPlacement::from(super::super::MemoryPolicy::Interleave([0, 1].into()));
        let found = residence(&[(0, 8192), (1, 8192)], 0);
        let mut verdict = PlacementCheck {
            requested: asked,
            bytes: 64 << 20,
            residence: found,
            misplaced_pages: 0,
            is_as_requested: true,
        };
        assert_eq!(verdict.to_string(), "64 MiB interleave 0-1: node 0 8192, node 1 8192: as asked");
        verdict.residence = residence(&[(0, 16000)], 384);
        (verdict.misplaced_pages, verdict.is_as_requested) = (7808, false);
        let said = "64 MiB interleave 0-1: node 0 16000, absent 384: not as asked: 7808 of 16384 pages are elsewhere";
        assert_eq!(verdict.to_string(), said);
    }
}
