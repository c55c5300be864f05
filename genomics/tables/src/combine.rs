//! Combines k-mer tables with several threads: each thread merges one k-mer range of all tables at a time.

use std::thread;

use genuma_flash::{TablePageReader, TableSpec};

use crate::error::Error;
use crate::kmer_ranges::KmerRange;
use crate::merge::{self, KmerCountBatch, TableMerger};
use crate::note::{TableDerivation, TableNote};
use crate::output::{self, KmerOutputFile, SharedOutput, UnpublishedFile};
use crate::read_ahead::{KmerRangeQueue, NUM_READING_THREADS};
use crate::rule::{CombineRule, CountMode, SetOperation};

/// Target size of a k-mer range: bytes of the entries of all tables in it. With this size, the entries and the result
/// fit in the cache of one core.
const TARGET_RANGE_BYTES: u64 = 512 << 10;
/// Size of a page of a k-mer table (bytes).
pub const PAGE_BYTES: u64 = genuma_flash::PAGE_BYTES as u64;

/// Returns the number of k-mer ranges that are in memory at the same time.
fn range_slots_for_threads(threads: usize) -> usize {
    threads + NUM_READING_THREADS + 1
}

/// Returns the maximum memory for one page of a table in all k-mer ranges in memory: the raw page, and in each thread
/// the page unpacked, partly merged and merged (bytes).
pub fn page_memory_bytes(scan: &TablePageReader, threads: usize) -> u64 {
    range_slots_for_threads(threads) as u64 * PAGE_BYTES + 3 * threads as u64 * scan.max_unpacked_page_bytes()
}

/// Returns for each table the maximum number of its pages in a k-mer range, when all ranges together have `memory`
/// bytes. The numbers are proportional to the sizes of the tables, so that all tables end at about the same range.
fn pages_per_range(scans: &[TablePageReader], threads: usize, memory: u64) -> Vec<u64> {
    let all: u64 = scans.iter().map(TablePageReader::num_pages).sum();
    let entry_bytes: u64 = scans.iter().map(|scan| scan.len() * (8 + scan.value_bytes() as u64)).sum();
    let pages_in_cache = (TARGET_RANGE_BYTES * all).div_ceil(entry_bytes.max(1));
    let page_bytes = scans.iter().map(|scan| page_memory_bytes(scan, threads)).max().unwrap_or(PAGE_BYTES);
    let max_pages = (memory / 2 / page_bytes).min(pages_in_cache);
    let step = |scan: &TablePageReader| u128::from(max_pages) * u128::from(scan.num_pages()) / u128::from(all.max(1));
    scans.iter().map(|scan| (step(scan) as u64).max(1)).collect()
}

/// Returns the note of the table that `rule` makes of tables with these notes. `samples` are the names of the result's
/// samples. The minimum count is the lowest of the tables, if it is known for the result, and at least the limit of the
/// rule. K-mer length and minimum base quality are those of the first table.
///
/// # Panics
/// There is no note.
pub fn note_of_result(notes: &[&TableNote], rule: &CombineRule, samples: Vec<String>) -> TableNote {
    let first = notes[0];
    let min_output_count = u32::try_from(*rule.output_counts.start()).unwrap_or(u32::MAX);
    if rule.operation == SetOperation::Filter {
        let min_count = if rule.filter_samples.is_empty() { min_output_count } else { 0 };
        let mut note = first.clone();
        note.min_count = first.min_count.max(min_count);
        note.samples = samples;
        return note;
    }
    let keeps_all_counts = rule.input_counts == (1..=u32::MAX);
    let has_table_counts = !matches!(rule.counts, CountMode::Difference | CountMode::Samples);
    let lowest_min_count = notes.iter().map(|note| note.min_count).min();
    let inherited_min_count = lowest_min_count.filter(|_| keeps_all_counts && has_table_counts).unwrap_or(1);
    let min_count = inherited_min_count.max(min_output_count).max(1);
    let mut note = TableNote::for_counted_table(first.k, min_count, first.min_base_quality, samples);
    note.made = Some(describe_derivation(notes, rule.operation, rule.counts));
    note
}

/// Describes for the note of the result how it was made. The sum of panels of normals is again a panel of normals.
fn describe_derivation(notes: &[&TableNote], operation: SetOperation, counts: CountMode) -> TableDerivation {
    let panels: Option<u64> = notes.iter().map(|note| note.num_panel_samples()).sum();
    let num_samples: usize = notes.iter().map(|note| note.samples.len()).sum();
    let added = panels.filter(|_| operation == SetOperation::Union && counts == CountMode::Sum);
    let counts = if added.is_some() { TableDerivation::COUNTS_VALUE_FOR_NUM_SAMPLES } else { counts.name() };
    TableDerivation {
        operation: operation.name().to_owned(),
        counts: counts.to_owned(),
        tables: notes.len() as u64,
        samples: added.unwrap_or(num_samples as u64),
    }
}

/// Combines tables by `rule`, with `threads` threads besides those that read, and writes the result with `note`.
/// `memory_bytes` is the memory for all pages, ranges and the output: at least twice the sum of [`page_memory_bytes`].
/// The result does not depend on threads and memory, and gets its name when the caller publishes it.
///
/// # Errors
/// A table cannot be read or is damaged: of several errors, that of the lowest k-mers is returned. The output cannot be
/// written. Memory cannot be allocated, or a thread cannot be started. The note is too long.
///
/// # Panics
/// The tables do not have the numbers of samples for which the rule was created.
pub fn combine_tables(
    scans: &[TablePageReader],
    rule: &CombineRule,
    note: &TableNote,
    target: &KmerOutputFile,
    threads: usize,
    memory_bytes: u64,
) -> Result<UnpublishedFile, Error> {
    let count_bytes = rule.row_starts.windows(2).map(|table| size_of::<u32>() * (table[1] - table[0]));
    assert!(count_bytes.eq(scans.iter().map(TablePageReader::value_bytes)), "the tables are those of the rule");
    let steps = pages_per_range(scans, threads, memory_bytes);
    let range_bytes: u64 = scans.iter().zip(&steps).map(|(scan, pages)| page_memory_bytes(scan, threads) * pages).sum();
    let max_kmers = scans.iter().map(TablePageReader::len).sum();
    let spec = TableSpec { memory_bytes: memory_bytes.saturating_sub(range_bytes), ..note.table_spec(max_kmers)? };
    let feed = KmerRangeQueue::with_allocated_slots(scans, &steps, range_slots_for_threads(threads))?;
    output::create_output_and_run_writers(target, note, spec, |out| {
        thread::scope(|scope| {
            for _ in 0..NUM_READING_THREADS {
                thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, || feed.run_reading_thread())?;
            }
            let work = || combine_ranges(rule, scans, &feed, &out);
            let begun =
                (0..threads).map(|_| thread::Builder::new().name("combine".to_owned()).spawn_scoped(scope, work));
            let begun: Vec<_> = begun.collect();
            let ended = begun.into_iter().map(|thread| {
                thread
                    .map_err(Error::from)
                    .and_then(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            });
            let ended: Vec<Result<(), Error>> = ended.collect();
            feed.stop_reading();
            ended.into_iter().collect()
        })
    })
}

/// Combines k-mer ranges until none are left. Each combining thread runs this function.
fn combine_ranges(
    rule: &CombineRule,
    scans: &[TablePageReader],
    feed: &KmerRangeQueue<'_>,
    out: &SharedOutput<'_, '_>,
) -> Result<(), Error> {
    let mut writer = out.new_thread_writer()?;
    let mut merger = TableMerger::default();
    let mut entries: Vec<KmerCountBatch> = vec![KmerCountBatch::default(); scans.len()];
    let mut ranges = vec![0..0; scans.len()];
    while let Some((number, slot)) = feed.wait_for_next_range() {
        let unpacked = slot.and_then(|slot| {
            let KmerRange { low, high, table_pages: ref shares } = slot.kmer_range;
            for (table, scan) in scans.iter().enumerate() {
                let piece = &mut entries[table];
                piece.remove_all_entries();
                scan.check_and_unpack_pages(&slot.raw_pages[table], &shares[table].first_kmers, piece)?;
                ranges[table] = merge::entry_range_of_kmers(piece, low, high);
            }
            feed.return_slot(slot);
            Ok(())
        });
        if let Err(error) = unpacked {
            // The error of the earliest range is reported, whichever error occurred first.
            let first = writer.stop_output_after_failed_range(number);
            feed.stop_reading();
            return if first { Err(error.into()) } else { Ok(()) };
        }
        merger.merge_range(rule, &mut entries, &ranges);
        if !writer.write_range(number, &merger.last_merge_result(), rule.num_samples) {
            feed.stop_reading();
            return Ok(());
        }
    }
    writer.finish_thread_output();
    Ok(())
}
