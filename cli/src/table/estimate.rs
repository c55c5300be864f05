//! About how many k-mers a merge will make, by doing it on samples of the tables.

use genuma_flash::{Error, Scan};

use super::ahead::{Entries, Source};
use super::merge::{NONE, merge};
use super::rule::Rule;

/// Stretches that are looked at, evenly spread over the largest table, ...
const STRETCHES: u64 = 96;
/// ... and pages of it in each.
const PAGES: u64 = 8;

/// How many k-mers the rule will keep: within a few in a hundred, or exactly where the tables are so small that all of them can be gone through.
///
/// # Errors
/// When a table cannot be read or is damaged where it is looked at.
pub fn kept(rule: &Rule, scans: &mut [Scan]) -> Result<u64, Error> {
    let all: u64 = scans.iter().map(Scan::len).sum();
    let Some(largest) = (0..scans.len()).max_by_key(|&table| scans[table].len()) else { return Ok(0) };
    let pages = scans[largest].pages();
    let small = pages < 2 * STRETCHES * PAGES;
    let step = if small { PAGES } else { (pages - PAGES) / STRETCHES };
    let (mut seen, mut kept) = (0, 0);
    for page in (0..pages).step_by(step as usize) {
        let end = page + PAGES;
        // Where all stretches are looked at, those at the ends have whatever lies beyond.
        let first = if page == 0 { 0 } else { scans[largest].first_key(page)? };
        let end = if end < pages { scans[largest].first_key(end)? } else { NONE };
        let mut pieces = Vec::with_capacity(scans.len());
        for scan in &mut *scans {
            let piece = between(scan, first, end)?;
            seen += piece.keys.len() as u64;
            pieces.push((Source::Given, piece));
        }
        merge(rule, pieces, |block| {
            kept += block.keys.len() as u64;
            block.clear();
            Ok::<_, Error>(())
        })?;
    }
    scans.iter_mut().for_each(|scan| scan.go_to(0));
    // All that there is was seen, or a share of it.
    let share = kept as f64 / (seen as f64).max(1.0);
    Ok(if seen == all { kept } else { (share * all as f64).ceil() as u64 })
}

/// The entries of a table from k-mer `first` to before `end`.
fn between(scan: &mut Scan, first: u64, end: u64) -> Result<Entries, Error> {
    let (mut found, mut piece) = (Entries::default(), Entries::default());
    if scan.is_empty() {
        return Ok(found);
    }
    let page = scan.page_of(first)?;
    scan.go_to(page);
    loop {
        scan.fill_some(&mut piece, PAGES as usize / 2)?;
        let samples = piece.values.len() / piece.keys.len().max(1);
        let range =
            piece.keys.partition_point(|&key| key < first)..piece.keys.partition_point(|&key| key < end);
        found.keys.extend_from_slice(&piece.keys[range.clone()]);
        found.values.extend_from_slice(&piece.values[range.start * samples..range.end * samples]);
        if piece.keys.last().is_none_or(|&last| last >= end || last == NONE) {
            return Ok(found);
        }
    }
}
