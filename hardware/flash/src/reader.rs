//! Looks up keys in a table, with one reader per thread.

use std::sync::Once;
use std::thread;

use crate::error::Error;
use crate::format::{self, PAGE_BYTES};
use crate::in_memory_lookup::{LookupStatistics, PendingKeyLookup, look_up_without_page_reads};
use crate::lookup_results::{LookupResults, LookupResultsMut as ResultSlots};
use crate::queue::{self, CompletedRead, PageReadMethod, PageReadQueue, QueueError};
use crate::table::{CheckedPage, Table};

/// Maximum number of keys whose pages are sorted and read together. It bounds the memory of a call, not counting the
/// results.
const KEYS_PER_WINDOW: usize = 1 << 20;
/// Maximum number of reads in flight per reader.
const MAX_READS_IN_FLIGHT: usize = 4096;

/// Looks up keys in a table. A reader must stay on the thread that created it, as io_uring requires.
#[derive(Debug)]
pub struct TableReader<'t> {
    table: &'t Table,
    access: PageReadMethod,
    /// Queue of page reads; `None` if all pages are in memory.
    queue: Option<Box<dyn PageReadQueue>>,
    depth: usize,
    lookups: Vec<PendingKeyLookup>,
    free_slots: Vec<usize>,
    /// For each slot: number of its page, and range of the `lookups` on this page.
    slot_reads: Vec<(u64, std::ops::Range<usize>)>,
    completed_reads: Vec<CompletedRead>,
    counts: LookupStatistics,
    single_result: LookupResults,
}

impl Table {
    /// Creates a reader that keeps up to `depth` reads in flight (1 to 4096; other values are clamped). The reader must
    /// stay on the calling thread.
    ///
    /// # Errors
    /// When the system does not permit the read method of the table ([`crate::TableOpenOptions::access`]), or there is
    /// no memory for the buffers (4096 bytes per read).
    pub fn new_reader(&self, depth: usize) -> Result<TableReader<'_>, Error> {
        TableReader::new(self, depth)
    }

    /// Looks up many keys with `threads` threads, each with up to `depth` reads in flight. Starts the threads anew in
    /// each call; to avoid this, keep a [`TableReader`] in each of your own threads.
    ///
    /// # Errors
    /// As for [`Table::new_reader`] and [`TableReader::get_many`], or when a thread cannot be started.
    pub fn get_many_with_threads(
        &self,
        keys: &[u64],
        threads: usize,
        depth: usize,
        results: &mut LookupResults,
    ) -> Result<(), Error> {
        let mut result_slots = results.reset_for_keys(keys.len(), self.value_bytes());
        let share = keys.len().div_ceil(threads.max(1)).max(1);
        let look_up =
            |keys: &[u64], result_slots: ResultSlots<'_>| self.new_reader(depth)?.fill_results(keys, result_slots);
        thread::scope(|scope| {
            let mut started = Vec::new();
            for keys in keys.chunks(share) {
                let (own, others) = result_slots.split_at(keys.len());
                result_slots = others;
                let thread = thread::Builder::new().spawn_scoped(scope, move || look_up(keys, own));
                started.push(thread.map_err(|source| Error::CannotStartThread { path: self.path.clone(), source })?);
            }
            let joined = started.into_iter().map(|thread| thread.join());
            joined.into_iter().try_for_each(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

impl<'t> TableReader<'t> {
    fn new(table: &'t Table, depth: usize) -> Result<TableReader<'t>, Error> {
        let depth = depth.clamp(1, MAX_READS_IN_FLIGHT);
        let (access, queue) = if table.pages.is_some() {
            (PageReadMethod::Memory, None)
        } else {
            let (access, queue) = open_permitted_queue(table, depth)?;
            (access, Some(queue))
        };
        let (wanted, done, counted, one) = (Vec::new(), Vec::new(), LookupStatistics::default(), LookupResults::new());
        let (free, asked) = ((0..depth).collect(), vec![(0, 0..0); depth]);
        Ok(TableReader {
            table,
            access,
            queue,
            depth,
            lookups: wanted,
            free_slots: free,
            slot_reads: asked,
            completed_reads: done,
            counts: counted,
            single_result: one,
        })
    }

    /// Method by which the reader reads pages; never [`PageReadMethod::Auto`].
    pub fn page_read_method(&self) -> PageReadMethod {
        self.access
    }

    /// Numbers of lookups and page reads since the reader was created.
    pub fn lookup_statistics(&self) -> LookupStatistics {
        self.counts
    }

    /// Looks up one key and returns its value. `None` if the table does not have the key.
    ///
    /// # Errors
    /// When its page cannot be read or is damaged.
    pub fn get(&mut self, key: u64) -> Result<Option<&[u8]>, Error> {
        let mut one = std::mem::take(&mut self.single_result);
        let looked = self.get_many(&[key], &mut one);
        self.single_result = one;
        looked.map(|()| self.single_result.get(0))
    }

    /// Looks up many keys, in any order; keys may be repeated. A page that several keys need is read once (once per
    /// 2^20 keys in a larger call).
    ///
    /// # Errors
    /// When a page cannot be read or is damaged. The results are then undefined.
    pub fn get_many(&mut self, keys: &[u64], results: &mut LookupResults) -> Result<(), Error> {
        let result_slots = results.reset_for_keys(keys.len(), self.table.value_bytes());
        self.fill_results(keys, result_slots)
    }

    fn fill_results(&mut self, keys: &[u64], mut result_slots: ResultSlots<'_>) -> Result<(), Error> {
        for (window, first) in keys.chunks(KEYS_PER_WINDOW).zip((0..).step_by(KEYS_PER_WINDOW)) {
            self.lookups.clear();
            look_up_without_page_reads(
                self.table,
                first,
                window,
                &mut result_slots,
                &mut self.lookups,
                &mut self.counts,
            );
            match &self.table.pages {
                Some(pages) => {
                    for wanted in &self.lookups {
                        let page = CheckedPage::assume_checked(self.table, wanted.page, &pages[wanted.page as usize]);
                        let filled = result_slots.fill_value_if_present(wanted.key_index, |value| {
                            page.copy_value_of_key(keys[wanted.key_index], value)
                        });
                        filled.map_err(|what| self.table.damaged_page_error(wanted.page, what))?;
                    }
                }
                None => {
                    self.lookups.sort_unstable_by_key(|wanted| wanted.page);
                    self.read_lookup_pages(keys, &mut result_slots)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the pages of all pending lookups, as many as possible at the same time, and stores the values in
    /// `result_slots`.
    fn read_lookup_pages(&mut self, keys: &[u64], result_slots: &mut ResultSlots<'_>) -> Result<(), Error> {
        let queue = self.queue.as_mut().expect("pages are not in memory");
        let table = self.table;
        let mut next = 0;
        let mut failed = None;
        loop {
            while next < self.lookups.len() && failed.is_none() {
                let Some(slot) = self.free_slots.pop() else { break };
                let page = self.lookups[next].page;
                let first = next;
                while self.lookups.get(next).is_some_and(|wanted| wanted.page == page) {
                    next += 1;
                }
                // Page 0 of the file is the header.
                queue.request_page(slot, page + 1);
                self.slot_reads[slot] = (page, first..next);
                self.counts.pages_read += 1;
            }
            if self.free_slots.len() == self.depth {
                return failed.map_or(Ok(()), Err);
            }
            if let Err(source) = queue.wait_for_reads(&mut self.completed_reads) {
                // The kernel accepts no more calls on this queue; dropping it ends the reads in flight.
                let part = format::table_part_of_page(self.slot_reads[0].0);
                let (access, queue) = open_permitted_queue(table, self.depth)?;
                (self.access, self.queue, self.free_slots) = (access, Some(queue), (0..self.depth).collect());
                return Err(Error::Read { path: table.path.clone(), part, source });
            }
            for CompletedRead { slot, result: read } in self.completed_reads.drain(..) {
                self.free_slots.push(slot);
                let (number, asked) = self.slot_reads[slot].clone();
                let bytes = match read {
                    Ok(PAGE_BYTES) => Ok(queue.page_in_slot(slot)),
                    Ok(_) => Err(std::io::ErrorKind::UnexpectedEof.into()),
                    Err(error) => Err(error),
                };
                let part = format::table_part_of_page(number);
                let page = bytes.map_err(|source| Error::Read { path: table.path.clone(), part, source });
                let filled = page.and_then(|page| table.check_page(number, page)).and_then(|page| {
                    self.lookups[asked].iter().try_for_each(|wanted| {
                        let key = keys[wanted.key_index];
                        let filled = result_slots
                            .fill_value_if_present(wanted.key_index, |value| page.copy_value_of_key(key, value));
                        filled.map_err(|what| table.damaged_page_error(number, what))
                    })
                });
                // The reads in flight must be complete before the function returns.
                failed = failed.or(filled.err());
            }
        }
    }
}

/// Opens a queue for the read method of the table; if that is `Auto`, for the first method that the system permits.
fn open_permitted_queue(table: &Table, depth: usize) -> Result<(PageReadMethod, Box<dyn PageReadQueue>), Error> {
    let path = || table.path.clone();
    let ways = match table.access {
        PageReadMethod::Auto => &[PageReadMethod::IoUring, PageReadMethod::LinuxAio, PageReadMethod::Pread][..],
        ref asked => std::slice::from_ref(asked),
    };
    let mut refused = None;
    for &way in ways {
        match queue::open_page_read_queue(way, &table.file, depth, &table.placement) {
            Ok(queue) => {
                if let Some((before, error)) = refused {
                    static WARN_ONCE: Once = Once::new();
                    WARN_ONCE.call_once(|| {
                        tracing::warn!(
                            "{} is not permitted here ({error}), so tables are read with {}: results are the same, but may take \
                             longer; allow it in the container or the kernel settings for full speed",
                            PageReadMethod::method_name(before),
                            way.method_name()
                        );
                    });
                }
                return Ok((way, queue));
            }
            Err(QueueError::Memory(source)) => return Err(Error::NotEnoughMemory { path: path(), source }),
            Err(QueueError::System(error)) => refused = Some((way, error)),
        }
    }
    let (way, source) = refused.expect("there is a way to try");
    Err(Error::ReadMethodNotPermitted { path: path(), way: way.method_name(), source })
}
