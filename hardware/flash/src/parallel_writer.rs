//! Writes a table with several threads. Each thread produces the entries of some key ranges (ranges of consecutive
//! keys). In the order of the key ranges, each thread learns at which entry and page its entries begin, and then fills
//! its pages independently of the other threads. Entries that do not fill the last page of a key range are passed on to
//! the next key range.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use genuma_machine::placement::PlacedSlice;
use genuma_machine::simd_and_prefetch::SimdLevel;
use genuma_work::ordered_section::{CloseOnPanicGuard, OrderedSection};

use crate::error::Error;
use crate::file_writer::SharedWriteBufferQueues;
use crate::filter::{FilterBlocksOfAllGroups, FilterGroupBuilder};
use crate::format::{Page, PageLayout};
use crate::hot_entries::HotEntrySelector;
use crate::page_cutter::{PageCutter, PageEntryCountAndEncoding};
use crate::writer::TableWriter;

/// State of the table between two key ranges, passed from one thread to the next.
#[derive(Debug)]
struct WriteState {
    /// Number of entries in all earlier key ranges.
    entries: u64,
    /// Number of complete pages of all earlier key ranges.
    pages: u64,
    /// Divides the entries into pages.
    cutter: PageCutter,
    /// Keys of the entries on the page that is not complete.
    keys: Vec<u64>,
    /// Values of the entries on the page that is not complete.
    values: Vec<u8>,
    first: u64,
    last: u64,
    /// The first error, after which no thread continues to write.
    error: Option<Error>,
}

/// A table to which several threads write: see [`TableWriter::write_in_parallel`].
#[derive(Debug)]
pub struct ParallelTableWriter<'w> {
    path: PathBuf,
    shape: PageLayout,
    /// Maximum number of entries of the table.
    max_entries: u64,
    num_hot_entries: usize,
    ordered_state: OrderedSection<WriteState>,
    groups: &'w FilterBlocksOfAllGroups,
    buffers: SharedWriteBufferQueues<'w>,
    /// First key of each complete page.
    firsts: Mutex<Vec<u64>>,
    /// Number and first key of each filter group.
    group_first_keys: Mutex<Vec<(u64, u64)>>,
    choosers: Mutex<Vec<HotEntrySelector>>,
    has_write_failed: AtomicBool,
}

/// Writes the entries of some key ranges to the table. Each thread has its own writer.
#[derive(Debug)]
pub struct KeyRangeWriter<'t, 'w> {
    table: &'t ParallelTableWriter<'w>,
    _watch: CloseOnPanicGuard<'t, WriteState>,
    buffer: PlacedSlice<Page>,
    firsts: Vec<u64>,
    /// Number and first key of each filter group that begins in the key ranges of this thread.
    group_first_keys: Vec<(u64, u64)>,
    /// Keys of the entries of a page whose entries come from several runs.
    page_keys: Vec<u64>,
    page_values: Vec<u8>,
    filling: FilterGroupBuilder,
    chooser: HotEntrySelector,
}

/// Consecutive entries: their keys, and their concatenated values.
pub(crate) type EntrySlices<'a> = (&'a [u64], &'a [u8]);

impl<'w> ParallelTableWriter<'w> {
    /// Creates the writer of one thread.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new_key_range_writer(&self) -> Result<KeyRangeWriter<'_, 'w>, Error> {
        let memory = |source| Error::NotEnoughMemory { path: self.path.clone(), source };
        Ok(KeyRangeWriter {
            table: self,
            _watch: self.ordered_state.close_on_panic(),
            buffer: SharedWriteBufferQueues::allocate_write_buffer().map_err(memory)?,
            firsts: Vec::new(),
            group_first_keys: Vec::new(),
            page_keys: Vec::new(),
            page_values: Vec::new(),
            filling: self.groups.new_group_builder(),
            chooser: HotEntrySelector::with_max_entries(self.num_hot_entries, self.shape.value_bytes),
        })
    }

    /// Finds the first invalid entry in `runs`, which follow the entries before the key range: a key out of order, a
    /// value of the wrong size, or more entries than specified.
    fn find_error(&self, turn: &WriteState, runs: &[EntrySlices<'_>]) -> Option<Error> {
        let (mut entry, mut before) = (turn.entries, (turn.entries > 0).then_some(turn.last));
        for (keys, values) in runs {
            let path = self.path.clone();
            if values.len() != keys.len() * self.shape.value_bytes {
                let wanted = keys.len() * self.shape.value_bytes;
                return Some(Error::WrongValueSize { path, entry, given: values.len(), wanted });
            }
            if entry + keys.len() as u64 > self.max_entries {
                return Some(Error::TooManyEntries { path, most: self.max_entries });
            }
            let follows = |&key: &u64| before.is_none_or(|before| before < key);
            if !(keys.first().is_none_or(follows) && is_strictly_ascending(keys)) {
                for &key in *keys {
                    match before {
                        Some(before) if before >= key => {
                            return Some(Error::KeysOutOfOrder { path, entry, key, before });
                        }
                        _ => (entry, before) = (entry + 1, Some(key)),
                    }
                }
            }
            entry += keys.len() as u64;
            before = keys.last().copied().or(before);
        }
        None
    }
}

/// Whether each key is larger than the one before.
pub(crate) fn is_strictly_ascending(keys: &[u64]) -> bool {
    // Without an early exit, so that the loop can be vectorised.
    SimdLevel::widest_available().run_at_level(
        #[inline(always)]
        || keys.iter().zip(keys.get(1..).unwrap_or_default()).fold(true, |rise, (a, b)| rise & (a < b)),
    )
}

/// Copies the last `entries` entries of `runs` to the end of `keys` and `values`.
fn copy_last_entries(
    runs: &[EntrySlices<'_>],
    mut entries: usize,
    shape: PageLayout,
    keys: &mut Vec<u64>,
    values: &mut Vec<u8>,
) {
    let mut from = runs.len();
    let mut skip = 0;
    while entries > 0 {
        from -= 1;
        let there = runs[from].0.len();
        skip = there.saturating_sub(entries);
        entries = entries.saturating_sub(there);
    }
    for (run_keys, run_values) in &runs[from..] {
        keys.extend_from_slice(&run_keys[skip..]);
        values.extend_from_slice(&run_values[skip * shape.value_bytes..]);
        skip = 0;
    }
}

/// Splits off the first `n` of `entries`, and returns them.
fn split_entries<'a>(entries: &mut EntrySlices<'a>, n: usize, shape: PageLayout) -> EntrySlices<'a> {
    let ((keys, more_keys), (values, more_values)) = (entries.0.split_at(n), entries.1.split_at(n * shape.value_bytes));
    *entries = (more_keys, more_values);
    (keys, values)
}

impl KeyRangeWriter<'_, '_> {
    /// Adds the entries of key range `number` (from 0), which are given as consecutive `runs`. Each key range must be
    /// added exactly once, by any thread. The call waits until all earlier key ranges were added. `weight` returns the
    /// weight of a value, as for [`TableWriter::push_entry`].
    ///
    /// Returns whether to continue: false if another thread has stopped, an entry is invalid or writing failed.
    /// [`TableWriter::write_in_parallel`] then returns the error, but none after [`Self::stop_at_key_range`].
    pub fn add_key_range(&mut self, number: u64, runs: &[EntrySlices<'_>], weight: impl Fn(&[u8]) -> u64) -> bool {
        let (shape, turns) = (self.table.shape, &self.table.ordered_state);
        let entries: usize = runs.iter().map(|(keys, _)| keys.len()).sum();
        let (mut fit, mut first, mut last) = (true, None, None);
        for &(keys, values) in runs.iter().filter(|run| !run.0.is_empty()) {
            fit &= values.len() == keys.len() * shape.value_bytes && last.is_none_or(|last| last < keys[0]);
            fit &= is_strictly_ascending(keys);
            first = first.or(Some(keys[0]));
            last = keys.last().copied();
        }
        let begun = turns.run_in_turn(number, |turn| {
            let follows = turn.entries == 0 || first.is_none_or(|first| turn.last < first);
            if !(fit && follows && turn.entries + entries as u64 <= self.table.max_entries) {
                turn.error = self.table.find_error(turn, runs);
                return None;
            }
            let before = turn.entries;
            if before == 0 {
                turn.first = first.unwrap_or(0);
            }
            turn.entries += entries as u64;
            turn.last = last.unwrap_or(turn.last);
            let mut cuts = Vec::new();
            runs.iter().for_each(|(keys, values)| turn.cutter.cut_entries_into_pages(keys, values, &mut cuts));
            if cuts.is_empty() {
                copy_last_entries(runs, entries, shape, &mut turn.keys, &mut turn.values);
                return Some((before, None));
            }
            let carried = (std::mem::take(&mut turn.keys), std::mem::take(&mut turn.values));
            let on_pages: usize = cuts.iter().map(|cut| cut.entries).sum();
            let left = carried.0.len() + entries - on_pages;
            copy_last_entries(runs, left, shape, &mut turn.keys, &mut turn.values);
            turn.pages += cuts.len() as u64;
            Some((before, Some((turn.pages - cuts.len() as u64, carried, cuts))))
        });
        let Some(begun) = begun else { return false };
        let Some((mut entry, complete)) = begun else {
            turns.close();
            return false;
        };
        for (keys, _) in runs {
            self.filling.add_keys_across_groups(self.table.groups, entry, keys, &mut self.group_first_keys);
            entry += keys.len() as u64;
        }
        let go_on =
            complete.is_none_or(|(page, carried, cuts)| self.write_pages(page, (&carried.0, &carried.1), runs, &cuts));
        if go_on && self.table.num_hot_entries > 0 {
            for (keys, values) in runs {
                for (entry, &key) in keys.iter().enumerate() {
                    let value = &values[entry * shape.value_bytes..][..shape.value_bytes];
                    self.chooser.offer_entry(key, value, weight(value));
                }
            }
        }
        go_on
    }

    /// Writes complete pages, starting at page `page` (from 0), with the entries carried over from earlier key ranges
    /// and those of `runs`.
    fn write_pages(
        &mut self,
        page: u64,
        carried: EntrySlices<'_>,
        runs: &[EntrySlices<'_>],
        cuts: &[PageEntryCountAndEncoding],
    ) -> bool {
        let shape = self.table.shape;
        self.firsts.clear();
        // Page numbers in the file include the header.
        let (mut first, mut full) = (page + 1, 0);
        let mut pieces = [carried].into_iter().chain(runs.iter().copied());
        let mut rest: EntrySlices<'_> = (&[], &[]);
        for cut in cuts {
            while rest.0.is_empty() {
                rest = pieces.next().expect("complete pages have entries");
            }
            let page = &mut self.buffer[full];
            if rest.0.len() >= cut.entries {
                let (keys, values) = split_entries(&mut rest, cut.entries, shape);
                self.firsts.push(keys[0]);
                shape.encode_page(cut.code.as_deref(), keys, values, page);
            } else {
                self.page_keys.clear();
                self.page_values.clear();
                while self.page_keys.len() < cut.entries {
                    if rest.0.is_empty() {
                        rest = pieces.next().expect("complete pages have entries");
                    }
                    let now = rest.0.len().min(cut.entries - self.page_keys.len());
                    let (keys, values) = split_entries(&mut rest, now, shape);
                    self.page_keys.extend_from_slice(keys);
                    self.page_values.extend_from_slice(values);
                }
                self.firsts.push(self.page_keys[0]);
                shape.encode_page(cut.code.as_deref(), &self.page_keys, &self.page_values, page);
            }
            page.write_checksum(first + full as u64);
            full += 1;
            if full == self.buffer.len() {
                if !self.write_buffer(full, first) {
                    return false;
                }
                (first, full) = (first + full as u64, 0);
            }
        }
        let mut firsts = self.table.firsts.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, end) = (page as usize, page as usize + self.firsts.len());
        let len = firsts.len().max(end);
        firsts.resize(len, 0);
        firsts[from..end].copy_from_slice(&self.firsts);
        drop(firsts);
        full == 0 || self.write_buffer(full, first)
    }

    fn write_buffer(&mut self, full: usize, first: u64) -> bool {
        let written = self.table.buffers.queue_pages_and_swap_buffer(&mut self.buffer, full, first);
        if !written {
            self.table.has_write_failed.store(true, Relaxed);
            self.table.ordered_state.close();
        }
        written
    }

    /// Stops writing because the entries of key range `number` cannot be produced. Waits until all earlier key ranges
    /// were added. Returns false if another thread has stopped before. [`TableWriter::write_in_parallel`] does not
    /// report the stop: the caller must not finish the table.
    pub fn stop_at_key_range(&mut self, number: u64) -> bool {
        self.table.ordered_state.run_in_turn_and_close(number, |_| ()).is_some()
    }

    /// Adds the filter groups and hot entries of this thread to those of the table. Each thread must call it when it
    /// has no more key ranges to add.
    pub fn merge_filter_and_hot_entries(mut self) {
        self.filling.merge_into_groups(self.table.groups);
        let mut group_keys = self.table.group_first_keys.lock().unwrap_or_else(PoisonError::into_inner);
        group_keys.append(&mut self.group_first_keys);
        drop(group_keys);
        self.table.choosers.lock().unwrap_or_else(PoisonError::into_inner).push(self.chooser);
    }
}

impl TableWriter {
    /// Calls `work`, which must start threads that add all entries of the table as key ranges, and join them. The
    /// caller must not add entries otherwise. The table is the same as with [`TableWriter::push_entry`], however the
    /// entries are divided into key ranges. Returns the result of `work`.
    ///
    /// # Errors
    /// As for [`TableWriter::push_entry`].
    pub fn write_in_parallel<T>(&mut self, work: impl FnOnce(&ParallelTableWriter<'_>) -> T) -> Result<T, Error> {
        let (shape, wanted_hot) = (self.shape, self.spec.hot_entries);
        let together = ParallelTableWriter {
            path: self.file_writer.final_path().to_path_buf(),
            shape,
            max_entries: self.spec.max_entries,
            num_hot_entries: wanted_hot,
            ordered_state: OrderedSection::new(WriteState {
                entries: 0,
                pages: 0,
                cutter: PageCutter::new(shape),
                keys: Vec::new(),
                values: Vec::new(),
                first: 0,
                last: 0,
                error: None,
            }),
            groups: &self.filter_groups,
            buffers: self.file_writer.share_writer_thread()?,
            firsts: Mutex::default(),
            group_first_keys: Mutex::default(),
            choosers: Mutex::default(),
            has_write_failed: AtomicBool::new(false),
        };
        let done = work(&together);
        let ParallelTableWriter {
            ordered_state: turns,
            firsts,
            group_first_keys,
            choosers,
            has_write_failed: refused,
            ..
        } = together;
        let turn = turns.into_inner();
        if let Some(fault) = turn.error {
            return Err(fault);
        }
        self.page_first_keys = firsts.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.file_writer.skip_pages_of_other_threads(self.page_first_keys.len() as u64, refused.into_inner())?;
        self.group_first_keys = group_first_keys.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.group_first_keys.sort_unstable();
        (self.entries, self.first_key, self.last_key) = (turn.entries, turn.first, turn.last);
        self.page_cutter = turn.cutter;
        self.num_filter_entries = turn.entries;
        self.num_paged_entries = turn.keys.len();
        (self.keys, self.values) = (turn.keys, turn.values);
        self.hot_selector = HotEntrySelector::merge_selectors(
            choosers.into_inner().unwrap_or_else(PoisonError::into_inner),
            wanted_hot,
            shape.value_bytes,
        );
        Ok(done)
    }
}
