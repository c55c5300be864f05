//! Huge pages for memory that was not allocated by [`super::PlacedSlice`], for example by a foreign library.
//!
//! Random reads of an array far larger than the caches miss the TLB and the cached page tables. A huge page (2 MiB on
//! x86-64) covers 512 base pages with one entry.

use std::sync::Once;

use super::node_sets::NumaNodeSets;
use crate::sys;

/// Bytes of a transparent huge page on x86-64, and on arm64 with base pages of 4 KiB.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Merges the base pages of `bytes` into transparent huge pages. Returns the number of bytes in huge pages: the whole
/// huge pages inside the slice, or 0 on failure.
///
/// A huge page is on one node: the node that had most of its base pages. So use this function for memory of one node,
/// not for interleaved memory. The function needs Linux 6.1 with transparent huge pages enabled. Without them, or if no
/// huge page is free, the memory stays as it is and a message is logged once.
pub fn collapse_into_huge_pages(bytes: &[u8]) -> usize {
    static LOG_ONCE: Once = Once::new();
    let range = bytes.as_ptr_range();
    let start = range.start.expose_provenance().next_multiple_of(HUGE_PAGE_BYTES);
    let end = range.end.addr() / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if start >= end {
        return 0;
    }
    match sys::madvise_collapse(start..end) {
        Ok(()) => end - start,
        Err(error) => {
            LOG_ONCE.call_once(|| tracing::debug!("cannot merge pages into huge pages: {error}"));
            0
        }
    }
}

/// Whether the memory policy of the calling thread allocates new memory on one node as long as that node has free
/// memory. Then huge pages can be used from the start. Under an interleave policy, huge pages would make the
/// interleaving coarser, because a huge page is on one node.
pub fn thread_policy_uses_one_node() -> bool {
    sys::thread_mempolicy().map_or_else(
        |_| NumaNodeSets::read_current_node_sets().has_one_usable_node(),
        |policy| !policy.mode.is_interleaved(),
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Bytes in huge pages of the mapping that contains `address`, according to the kernel.
    fn huge_at(address: usize) -> usize {
        let maps = fs::read_to_string("/proc/self/smaps").expect("Linux has it");
        let mut here = false;
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            if let Some((from, to)) = first.split_once('-')
                && let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
            {
                here = (from..to).contains(&address);
            } else if here && first == "AnonHugePages:" {
                return words.next().and_then(|kib| kib.parse::<usize>().ok()).expect("a number") << 10;
            }
        }
        panic!("no mapping at {address:#x}");
    }

    #[test]
    fn what_is_there_moves_into_huge_pages_and_stays_the_same() {
        let bytes: Vec<u8> = (0..32 << 20).map(|i: u32| (i ^ (i >> 11)) as u8).collect();
        let before = bytes.clone();
        let covered = collapse_into_huge_pages(&bytes);
        if covered == 0 {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"skipped: what_is_there_moves_into_huge_pages: this kernel gives none\n",
            );
            return;
        }
        assert!(covered >= 30 << 20 && covered.is_multiple_of(HUGE_PAGE_BYTES), "{covered}");
        assert!(huge_at(bytes.as_ptr().addr() + (16 << 20)) >= covered, "the kernel has them elsewhere");
        assert!(bytes == before);
    }

    #[test]
    fn huge_pages_from_the_start_harm_only_what_is_spread() {
        let node = crate::IdSet::from([0]);
        let with = |mode| {
            let policy = sys::KernelMempolicy { mode, nodes: node.clone() };
            std::thread::scope(|scope| {
                scope
                    .spawn(|| sys::set_thread_mempolicy(&policy).is_ok().then(thread_policy_uses_one_node))
                    .join()
                    .expect("no panic")
            })
        };
        let spread = [sys::MempolicyMode::MPOL_INTERLEAVE, sys::MempolicyMode::MPOL_WEIGHTED_INTERLEAVE];
        for (mode, expected) in
            spread.map(|mode| (mode, false)).into_iter().chain([(sys::MempolicyMode::MPOL_BIND, true)])
        {
            // Old kernels lack weighted interleave, and containers may forbid every policy.
            if let Some(found) = with(mode) {
                assert_eq!(found, expected, "{mode:?}");
            }
        }
    }

    #[test]
    fn what_is_smaller_than_a_huge_page_stays_as_it_is() {
        assert_eq!(collapse_into_huge_pages(&[]), 0);
        assert_eq!(collapse_into_huge_pages(&vec![7; 1 << 20]), 0);
    }
}
