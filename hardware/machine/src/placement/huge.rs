//! Huge pages for memory that was not made by [`super::Placed`], such as what a foreign library has allocated.
//!
//! What is read at random in an array far larger than the caches finds the address of its page in a table that is not in a
//! cache either. A huge page (2 MiB on x86-64) covers 512 small ones with one entry.

use std::sync::Once;

use super::nodes::Nodes;
use crate::sys;

/// Bytes of a transparent huge page on x86-64, and on arm64 with pages of 4 KiB.
const HUGE: usize = 2 << 20;

/// Gathers the pages behind `bytes` into transparent huge pages, as far as whole ones lie within, and returns how many bytes they cover.
///
/// A huge page lies on one node: that on which most of the small pages were. So this is for memory of one node, not for memory that
/// is spread. Needs Linux 6.1 and transparent huge pages that are not switched off; where there are none, or no free ones, memory stays as it
/// is, and that is logged once.
pub fn collapse(bytes: &[u8]) -> usize {
    static TOLD: Once = Once::new();
    let range = bytes.as_ptr_range();
    let start = range.start.expose_provenance().next_multiple_of(HUGE);
    let end = range.end.addr() / HUGE * HUGE;
    if start >= end {
        return 0;
    }
    match sys::collapse(start..end) {
        Ok(()) => end - start,
        Err(error) => {
            TOLD.call_once(|| tracing::debug!("no huge pages for what is in memory already: {error}"));
            0
        }
    }
}

/// Whether the calling thread's new memory comes from one node as long as that has some, so that huge pages from the start do it no harm. Where the
/// thread's policy spreads memory they would: a huge page lies on one node.
pub fn harmless() -> bool {
    sys::policy().map_or_else(|_| Nodes::read().single(), |policy| !policy.mode.spreads())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Bytes in huge pages of the mapping that has `address`, by the kernel's account.
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
        let covered = collapse(&bytes);
        if covered == 0 {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                b"skipped: what_is_there_moves_into_huge_pages: this kernel gives none\n",
            );
            return;
        }
        assert!(covered >= 30 << 20 && covered.is_multiple_of(HUGE), "{covered}");
        assert!(huge_at(bytes.as_ptr().addr() + (16 << 20)) >= covered, "the kernel has them elsewhere");
        assert!(bytes == before);
    }

    #[test]
    fn huge_pages_from_the_start_harm_only_what_is_spread() {
        let node = crate::IdSet::from([0]);
        let with = |mode| {
            let policy = sys::Policy { mode, nodes: node.clone() };
            std::thread::scope(|scope| {
                scope.spawn(|| sys::set_policy(&policy).is_ok().then(harmless)).join().expect("no panic")
            })
        };
        let spread = [sys::Mode::INTERLEAVE, sys::Mode::WEIGHTED_INTERLEAVE];
        for (mode, expected) in spread.map(|mode| (mode, false)).into_iter().chain([(sys::Mode::BIND, true)])
        {
            // Old kernels do not weigh, containers may set nothing.
            if let Some(found) = with(mode) {
                assert_eq!(found, expected, "{mode:?}");
            }
        }
    }

    #[test]
    fn what_is_smaller_than_a_huge_page_stays_as_it_is() {
        assert_eq!(collapse(&[]), 0);
        assert_eq!(collapse(&vec![7; 1 << 20]), 0);
    }
}
