//! About how many k-mers a merge will make, by doing it on samples of the tables.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use genuma_flash::{Error, Raw, Scan};
use genuma_machine::placement;

use super::merge::{Entries, Merger, NONE};
use super::rule::Rule;

/// Stretches that are looked at, evenly spread over the largest table, ...
const STRETCHES: u64 = 96;
/// ... and pages of it in each.
const PAGES: u64 = 8;
/// Threads that look: they wait for the disk, mostly.
const THREADS: u64 = 4;

/// How many k-mers the rule will keep: within a few in a hundred, or exactly where the tables are so small that all of them can be gone through.
///
/// # Errors
/// When a table cannot be read or is damaged where it is looked at; there is no memory or no thread.
pub fn kept(rule: &Rule, scans: &[Scan]) -> anyhow::Result<u64> {
    let all: u64 = scans.iter().map(Scan::len).sum();
    let Some(largest) = scans.iter().max_by_key(|scan| scan.len()) else { return Ok(0) };
    let pages = largest.pages();
    let small = pages < 2 * STRETCHES * PAGES;
    let step = if small { PAGES } else { (pages - PAGES) / STRETCHES };
    let stretches = if small { pages.div_ceil(PAGES) } else { pages.div_ceil(step) };
    let (next, seen, kept) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let fault = Mutex::new(None);
    let look = || -> anyhow::Result<()> {
        let mut looked = Looked::new()?;
        loop {
            let page = next.fetch_add(1, Relaxed) * step;
            if page >= pages {
                return Ok(());
            }
            let end = page + PAGES;
            // Where all stretches are looked at, those at the ends have whatever lies beyond.
            let first = if page == 0 { 0 } else { largest.first_key(page)? };
            let end = if end < pages { largest.first_key(end)? } else { NONE };
            let (there, made) = looked.between(rule, scans, first, end)?;
            seen.fetch_add(there, Relaxed);
            kept.fetch_add(made, Relaxed);
        }
    };
    std::thread::scope(|scope| -> anyhow::Result<()> {
        for _ in 0..THREADS.min(stretches) {
            let work = || {
                if let Err(error) = look() {
                    next.store(u64::MAX / 2 / step.max(1), Relaxed);
                    fault.lock().map_or_else(|_| (), |mut fault| *fault = Some(error));
                }
            };
            std::thread::Builder::new().name("estimate".to_owned()).spawn_scoped(scope, work)?;
        }
        Ok(())
    })?;
    if let Ok(Some(error)) = fault.into_inner() {
        return Err(error);
    }
    let (seen, kept) = (seen.into_inner(), kept.into_inner());
    // All that there is was seen, or a share of it.
    let share = kept as f64 / (seen as f64).max(1.0);
    Ok(if seen == all { kept } else { (share * all as f64).ceil() as u64 })
}

/// What one thread looks with.
struct Looked {
    raw: Raw,
    firsts: Vec<u64>,
    pieces: Vec<Entries>,
    merger: Merger,
}

impl Looked {
    fn new() -> Result<Looked, placement::Error> {
        let raw = Raw::new(2 * PAGES as usize)?;
        Ok(Looked { raw, firsts: Vec::new(), pieces: Vec::new(), merger: Merger::default() })
    }

    /// How many k-mers tables have from `first` to before `end`, and how many the rule makes of them.
    fn between(&mut self, rule: &Rule, scans: &[Scan], first: u64, end: u64) -> Result<(u64, u64), Error> {
        self.pieces.resize_with(scans.len(), Entries::default);
        let mut ranges = Vec::with_capacity(scans.len());
        for (scan, piece) in scans.iter().zip(&mut self.pieces) {
            piece.clear();
            let mut page = scan.page_of(first)?;
            while page < scan.pages() && (page == 0 || piece.keys.last().is_none_or(|&last| last < end)) {
                let to = (page + 2 * PAGES).min(scan.pages());
                self.firsts.clear();
                scan.first_keys(page..(to + 1).min(scan.pages()), &mut self.firsts)?;
                let needed = self.firsts.partition_point(|&first| first < end) as u64;
                let to = to.min(page + needed);
                if to == page {
                    break;
                }
                scan.read(page..to, &mut self.raw)?;
                scan.unpack(
                    &self.raw,
                    &self.firsts[..self.firsts.len().min((to - page) as usize + 1)],
                    piece,
                )?;
                page = to;
            }
            let range = range_of(piece, first, end);
            ranges.push(range);
        }
        let seen = ranges.iter().map(|range| range.len() as u64).sum();
        self.merger.merge(rule, &mut self.pieces, &ranges);
        Ok((seen, self.merger.runs().iter().map(|run| run.keys.len() as u64).sum()))
    }
}

/// The entries of a piece from k-mer `low` to before `high`.
pub fn range_of(piece: &Entries, low: u64, high: u64) -> std::ops::Range<usize> {
    piece.keys.partition_point(|&key| key < low)..piece.keys.partition_point(|&key| key < high)
}
