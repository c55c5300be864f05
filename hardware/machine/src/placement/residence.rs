//! Asking the kernel where pages are.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::fill::Shares;
use super::{Error, Placement, readable};
use crate::sys;

/// On which nodes pages are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Residence {
    /// Bytes of the pages counted here: base pages, also of memory in transparent huge pages.
    pub page: u64,
    /// Pages on each node.
    pub nodes: BTreeMap<u32, u64>,
    /// Pages that are in no memory: never written, or swapped out.
    pub absent: u64,
}

impl Residence {
    /// Pages that are in memory.
    pub fn present(&self) -> u64 {
        self.nodes.values().sum()
    }
}

impl fmt::Display for Residence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        for (node, pages) in &self.nodes {
            write!(f, "{before}node {node} {pages}")?;
            before = ", ";
        }
        match (self.nodes.is_empty(), self.absent) {
            (true, 0) => write!(f, "no pages"),
            (_, 0) => Ok(()),
            (_, absent) => write!(f, "{before}absent {absent}"),
        }
    }
}

/// On which nodes the pages are that `elements` lie in, wherever the memory came from. Asks move_pages about each base page.
///
/// # Errors
/// When the kernel forbids the question and the process may use several nodes.
pub fn residence_of<T>(elements: &[T]) -> Result<Residence, Error> {
    let unit = sys::page();
    let range = elements.as_ptr_range();
    let (start, end) = (range.start as usize / unit * unit, range.end as usize);
    let count = if size_of_val(elements) == 0 { 0 } else { (end - start).div_ceil(unit) };
    count_pages(start, unit, count)
}

/// On which nodes `count` pages of `unit` bytes from `start` on are.
pub(super) fn count_pages(start: usize, unit: usize, count: usize) -> Result<Residence, Error> {
    let mut found = Residence { page: unit as u64, ..Residence::default() };
    sys::pages(start, unit, count, |node| match node {
        Some(node) => *found.nodes.entry(node).or_default() += 1,
        None => found.absent += 1,
    })
    .map_err(|source| Error::System {
        asked: format!("where {} are", readable((unit * count) as u64)),
        call: "move_pages",
        source,
    })?;
    Ok(found)
}

/// The same for pages that are a mapping of their own: where move_pages is forbidden, /proc/self/numa_maps tells.
pub(super) fn of_mapping(start: usize, unit: usize, count: usize) -> Result<Residence, Error> {
    count_pages(start, unit, count).or_else(|error| by_numa_maps(start, unit, count).ok_or(error))
}

/// The same, but /proc/self/numa_maps is asked first: it does not name pages one by one.
pub(super) fn counted_by_kernel(start: usize, unit: usize, count: usize) -> Result<Residence, Error> {
    by_numa_maps(start, unit, count).map_or_else(|| count_pages(start, unit, count), Ok)
}

fn by_numa_maps(start: usize, unit: usize, count: usize) -> Option<Residence> {
    let maps = std::fs::read_to_string("/proc/self/numa_maps").ok()?;
    from_numa_maps(&maps, start, unit, count)
}

/// Reads where the pages of the mapping at `start` are: `7f00 interleave:0-1 anon=8 dirty=8 N0=4 N1=4 kernelpagesize_kB=4`. Counts are in
/// pages of the size at the end.
fn from_numa_maps(maps: &str, start: usize, unit: usize, count: usize) -> Option<Residence> {
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
    Some(Residence { page: unit as u64, nodes, absent: (count as u64).checked_sub(present)? })
}

/// Pages of `found` that are not where `shares` says. Of `pages` pages, units of `per_unit` were spread as far as they are whole, the rest
/// page by page; `scattered` pages were spread one by one although they make up units.
pub(super) fn misplaced(
    found: &Residence,
    shares: &Shares,
    pages: u64,
    per_unit: u64,
    scattered: usize,
) -> u64 {
    let on = |node: u32| found.nodes.get(&node).copied().unwrap_or(0);
    let weights = match shares {
        Shares::Any(nodes) => return found.present() - nodes.iter().map(on).sum::<u64>(),
        Shares::Turns(weights) => weights,
    };
    let turn: u64 = weights.values().copied().map(u64::from).sum();
    // The least and the most of `units` that `weight` of every `turn` can be, wherever in a turn the first unit is.
    let bounds = |units: u64, weight: u64| {
        let (whole, rest) = (units / turn * weight, units % turn);
        (whole + rest.saturating_sub(turn - weight), whole + rest.min(weight))
    };
    let (units, rest) = (pages / per_unit, pages % per_unit);
    let (mut missing, mut excess) = (0, found.present() - weights.keys().map(|&node| on(node)).sum::<u64>());
    for (&node, &weight) in weights {
        let (coarse, fine) = (bounds(units, weight.into()), bounds(rest, weight.into()));
        let least = (coarse.0 * per_unit + fine.0).saturating_sub(scattered as u64);
        let most = coarse.1 * per_unit + fine.1 + scattered as u64;
        missing += least.saturating_sub(on(node));
        excess += on(node).saturating_sub(most);
    }
    missing.saturating_sub(found.absent).max(excess)
}

/// What was asked for, and what the kernel says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// What was asked for.
    pub asked: Placement,
    /// Bytes that were placed.
    pub bytes: u64,
    /// Where the pages are.
    pub found: Residence,
    /// Pages that are elsewhere than asked.
    pub misplaced: u64,
    /// Whether all pages are in memory and where asked.
    pub fits: bool,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}: ", readable(self.bytes), self.asked.policy, self.found)?;
        match self.fits {
            true => write!(f, "as asked"),
            false => write!(
                f,
                "not as asked: {} of {} pages are elsewhere",
                self.misplaced,
                self.found.present() + self.found.absent
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn residence(nodes: &[(u32, u64)], absent: u64) -> Residence {
        Residence { page: 4096, nodes: nodes.iter().copied().collect(), absent }
    }

    #[test]
    fn turns_may_start_anywhere_but_not_leave_a_node_short() {
        let even = Shares::Turns([(0, 1), (1, 1), (2, 1)].into());
        let wrong = |nodes: &[(u32, u64)]| {
            let found = residence(nodes, 0);
            misplaced(&found, &even, found.present(), 1, 0)
        };
        assert_eq!(wrong(&[(0, 3), (1, 3), (2, 3)]), 0);
        assert_eq!(wrong(&[(0, 3), (1, 4), (2, 3)]), 0);
        assert_eq!(wrong(&[(0, 5), (1, 3), (2, 2)]), 1);
        assert_eq!(wrong(&[(0, 10)]), 6);
        assert_eq!(wrong(&[(0, 3), (1, 3), (5, 3)]), 3);
    }

    #[test]
    fn weights_and_units_count() {
        let shares = Shares::Turns([(0, 3), (1, 1)].into());
        let wrong = |nodes: &[(u32, u64)], per_unit, scattered| {
            let found = residence(nodes, 0);
            misplaced(&found, &shares, found.present(), per_unit, scattered)
        };
        assert_eq!(wrong(&[(0, 6), (1, 2)], 1, 0), 0);
        assert_eq!(wrong(&[(0, 4), (1, 4)], 1, 0), 2);
        // Eight units of four pages and three pages at the end.
        assert_eq!(wrong(&[(0, 24 + 2), (1, 8 + 1)], 4, 0), 0);
        assert_eq!(wrong(&[(0, 20 + 2), (1, 12 + 1)], 4, 0), 4);
        assert_eq!(wrong(&[(0, 20 + 2), (1, 12 + 1)], 4, 4), 0);
    }

    #[test]
    fn pages_elsewhere_than_on_any_node_asked_for_are_misplaced() {
        let found = residence(&[(0, 5), (3, 2)], 1);
        assert_eq!(misplaced(&found, &Shares::Any([0].into()), 8, 1, 0), 2);
        assert_eq!(misplaced(&found, &Shares::Any([0, 3].into()), 8, 1, 0), 0);
        // What is in no memory is not on a wrong node.
        let found = residence(&[(0, 2), (1, 1)], 5);
        assert_eq!(misplaced(&found, &Shares::Turns([(0, 1), (1, 1)].into()), 8, 1, 0), 0);
    }

    #[test]
    fn numa_maps_is_read_for_the_mapping_alone() {
        let maps = "7f00 default file=/bin/x mapped=2 N0=2 kernelpagesize_kB=4\n\
                    7f0000 interleave:0-1 anon=8 dirty=8 active=0 N0=5 N1=3 kernelpagesize_kB=4\n";
        let found = from_numa_maps(maps, 0x7f0000, 4096, 9).expect("a line");
        assert_eq!(found, residence(&[(0, 5), (1, 3)], 1));
        assert_eq!(found.to_string(), "node 0 5, node 1 3, absent 1");
        assert_eq!(from_numa_maps(maps, 0x7f1000, 4096, 9), None);
        // A mapping with more pages than were asked about is another one.
        assert_eq!(from_numa_maps(maps, 0x7f0000, 4096, 7), None);
    }

    #[test]
    fn a_verdict_is_one_line() {
        let asked = Placement::from(super::super::Policy::Interleave([0, 1].into()));
        let found = residence(&[(0, 8192), (1, 8192)], 0);
        let mut verdict = Verdict { asked, bytes: 64 << 20, found, misplaced: 0, fits: true };
        assert_eq!(verdict.to_string(), "64 MiB interleave 0-1: node 0 8192, node 1 8192: as asked");
        verdict.found = residence(&[(0, 16000)], 384);
        (verdict.misplaced, verdict.fits) = (7808, false);
        let said = "64 MiB interleave 0-1: node 0 16000, absent 384: not as asked: 7808 of 16384 pages are elsewhere";
        assert_eq!(verdict.to_string(), said);
    }
}
