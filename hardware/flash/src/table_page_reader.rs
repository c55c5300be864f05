//! Reads the entries of a table in order, a few pages at a time, with little memory, so that many tables can be read
//! together.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use genuma_machine::placement::{self, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice};

use crate::compact_page;
use crate::error::{Error, TablePart};
use crate::file;
use crate::format::{self, KEY_BYTES, PAGE_BYTES, Page, TableHeader};
use crate::parallel_writer::is_strictly_ascending;
use crate::table::read_header;

/// Keys and values of consecutive entries of a table. The batch keeps its memory, so it should be reused.
#[derive(Debug, Clone)]
pub struct EntryBatch<V> {
    /// Keys, in ascending order.
    pub keys: Vec<u64>,
    /// Values of the entries, concatenated; a value may consist of several elements.
    pub values: Vec<V>,
}

impl<V> EntryBatch<V> {
    /// Makes the batch empty and keeps its memory.
    pub fn remove_all_entries(&mut self) {
        self.keys.clear();
        self.values.clear();
    }
}

impl<V> Default for EntryBatch<V> {
    fn default() -> Self {
        EntryBatch { keys: Vec::new(), values: Vec::new() }
    }
}

/// Pages of a table as they are stored in the file, not yet checked. The buffer keeps its memory, so it should be
/// reused.
#[derive(Debug)]
pub struct UncheckedPages {
    pages: PlacedSlice<Page>,
    /// Number of the first page in the buffer, from 0.
    first_page: u64,
    num_pages: usize,
}

impl UncheckedPages {
    /// Allocates a buffer of `pages` pages (4096 bytes each).
    ///
    /// # Errors
    /// There is no memory.
    pub fn allocate(pages: usize) -> Result<UncheckedPages, placement::Error> {
        let at = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base };
        Ok(UncheckedPages { pages: PlacedSlice::new_zeroed(pages, &at)?, first_page: 0, num_pages: 0 })
    }
}

/// A table opened to read all or some of its pages, by any number of threads. Opening reads only the header. Unpacking
/// a page checks its checksum, that its first key is that of the index, and that its keys are ascending and below those
/// of the next page. The filter and the hot entries are not read.
#[derive(Debug)]
pub struct TablePageReader {
    path: PathBuf,
    header: TableHeader,
    /// The file opened for direct I/O of whole pages, bypassing the page cache.
    direct_file: File,
    /// The file opened for buffered reads: of the index, and of pages if they are in the page cache.
    buffered_file: File,
    /// Whether the file is in the page cache, so that pages are read through it.
    is_cached: bool,
}

impl TablePageReader {
    /// Opens a table for reading its pages. Reads only the header.
    ///
    /// # Errors
    /// When the file cannot be opened or read, is not a table, has an unsupported version, a damaged header, or a wrong
    /// length.
    pub fn open(path: impl AsRef<Path>) -> Result<TablePageReader, Error> {
        let path = path.as_ref().to_path_buf();
        let opened = |source| Error::Open { path: path.clone(), source };
        let plain = File::open(&path).map_err(opened)?;
        let header = read_header(&path, &plain)?;
        let file = file::open_for_direct_reading(&path).map_err(opened)?;
        let cached = file::is_probably_in_page_cache(&plain, header.file_bytes() / PAGE_BYTES as u64);
        Ok(TablePageReader { path, header, direct_file: file, buffered_file: plain, is_cached: cached })
    }

    /// Path of the table file, as it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of keys in the table.
    pub fn len(&self) -> u64 {
        self.header.entries
    }

    /// Whether the table has no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of each value in bytes.
    pub fn value_bytes(&self) -> usize {
        self.header.page_layout.value_bytes
    }

    /// Smallest and largest key. `None` for an empty table.
    pub fn min_and_max_key(&self) -> Option<(u64, u64)> {
        (!self.is_empty()).then_some((self.header.first_key, self.header.last_key))
    }

    /// Metadata note that the writer of the table stored.
    pub fn note(&self) -> &[u8] {
        &self.header.note
    }

    /// Number of pages of entries.
    pub fn num_pages(&self) -> u64 {
        self.header.pages
    }

    /// Maximum number of entries on a page. With [`PageEncoding::Fixed`](crate::PageEncoding::Fixed), all pages but the
    /// last have this number.
    pub fn max_entries_per_page(&self) -> u64 {
        self.header.page_layout.entries_per_page as u64
    }

    /// Maximum number of bytes that the entries of one page take in an [`EntryBatch`].
    pub fn max_unpacked_page_bytes(&self) -> u64 {
        self.max_entries_per_page() * (KEY_BYTES + self.value_bytes()) as u64
    }

    /// Size of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.header.file_bytes()
    }

    /// Number of hot entries: entries that will probably be looked up often, copied to a section of their own.
    pub fn num_hot_entries(&self) -> u64 {
        self.header.num_hot_entries()
    }

    /// Finds the page that may have `key`: the last page whose first key is at most `key`, or the first page.
    ///
    /// # Errors
    /// When the index cannot be read. The checksum of the index is not checked: a damaged index gives a wrong page.
    pub fn find_page_of_key(&self, key: u64) -> Result<u64, Error> {
        let (mut low, mut high) = (0, self.num_pages());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.read_first_key_of_page(middle)? <= key {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Reads the first key of a page from the index.
    ///
    /// # Errors
    /// When the index cannot be read. The checksum of the index is not checked.
    pub fn read_first_key_of_page(&self, page: u64) -> Result<u64, Error> {
        let mut key = [0];
        self.read_index(page, &mut key)?;
        Ok(key[0])
    }

    /// Reads the first keys of consecutive pages from the index and appends them to `keys`.
    ///
    /// # Errors
    /// When the index cannot be read, or the keys, with the last one that `keys` had before, do not ascend. The
    /// checksum of the index is not checked: unpacking the pages shows whether these are their first keys.
    pub fn read_first_keys_of_pages(&self, pages: Range<u64>, keys: &mut Vec<u64>) -> Result<(), Error> {
        if pages.is_empty() {
            return Ok(());
        }
        let from = keys.len();
        keys.resize(from + (pages.end - pages.start) as usize, 0);
        self.read_index(pages.start, &mut keys[from..])?;
        let what = "its keys are not in order";
        let damaged = || Error::Damaged { path: self.path.clone(), part: TablePart::Index, what };
        if is_strictly_ascending(&keys[from.saturating_sub(1)..]) { Ok(()) } else { Err(damaged()) }
    }

    fn read_index(&self, page: u64, keys: &mut [u64]) -> Result<(), Error> {
        let at = self.header.index.offset + page * KEY_BYTES as u64;
        let unread = |source| Error::Read { path: self.path.clone(), part: TablePart::Index, source };
        self.buffered_file.read_exact_at(bytemuck::cast_slice_mut(keys), at).map_err(unread)
    }

    /// Reads consecutive pages into `raw` without checking them.
    ///
    /// # Errors
    /// When they cannot be read.
    ///
    /// # Panics
    /// When the buffer has fewer pages.
    pub fn read_unchecked_pages(&self, pages: Range<u64>, raw: &mut UncheckedPages) -> Result<(), Error> {
        raw.first_page = pages.start;
        raw.num_pages = pages.end.saturating_sub(pages.start) as usize;
        if raw.num_pages == 0 {
            return Ok(());
        }
        let file = if self.is_cached { &self.buffered_file } else { &self.direct_file };
        file::read_entry_pages(&self.path, file, &mut raw.pages[..raw.num_pages], pages.start)
    }

    /// Creates a reader of all entries in key order that reads `pages` pages (at least one) at a time.
    ///
    /// # Errors
    /// There is no memory for the pages.
    pub fn new_entry_batch_reader(&self, pages: usize) -> Result<EntryBatchReader<'_>, Error> {
        let pages = (pages.max(1) as u64).min(self.num_pages().max(1));
        let memory = |source| Error::NotEnoughMemory { path: self.path.clone(), source };
        let raw = UncheckedPages::allocate(pages as usize).map_err(memory)?;
        Ok(EntryBatchReader {
            page_reader: self,
            raw,
            pages_per_batch: pages,
            next_page: 0,
            page_first_keys: Vec::new(),
        })
    }

    /// Checks the pages in `raw` and appends their entries to `batch`. `firsts` has the first keys of these pages
    /// according to the index, and of the page after them if there is one.
    ///
    /// # Errors
    /// When a page or the index is damaged.
    ///
    /// # Panics
    /// When the size of the table's values is not a multiple of the size of `V`, or `firsts` has too few keys.
    pub fn check_and_unpack_pages<V: Pod>(
        &self,
        raw: &UncheckedPages,
        firsts: &[u64],
        batch: &mut EntryBatch<V>,
    ) -> Result<(), Error> {
        for (at, (page, number)) in raw.pages[..raw.num_pages].iter().zip(raw.first_page..).enumerate() {
            let unpacked = self.unpack_page(page, number, firsts[at], firsts.get(at + 1).copied(), batch);
            unpacked.map_err(|what| {
                let (path, part) = (self.path.clone(), format::table_part_of_page(number));
                Error::Damaged { path, part, what }
            })?;
        }
        Ok(())
    }

    /// Checks a page and appends its entries to `batch`. `first` and `next` are the first keys of this page and of the
    /// next page according to the index.
    fn unpack_page<V: Pod>(
        &self,
        page: &Page,
        number: u64,
        first: u64,
        next: Option<u64>,
        batch: &mut EntryBatch<V>,
    ) -> Result<(), &'static str> {
        let shape = self.header.page_layout;
        if !page.has_valid_checksum(number + 1) {
            return Err("its checksum does not match");
        }
        let entries = shape
            .num_entries_of_page(page, number, self.header.entries)
            .ok_or(compact_page::DAMAGED_COMPACT_PAGE_MESSAGE)?;
        if shape.first_key_of_page(page) != first {
            return Err("its first key differs from the index");
        }
        let (old_keys, old_values) = (batch.keys.len(), batch.values.len());
        batch.keys.resize(old_keys + entries, 0);
        let units = (entries * shape.value_bytes).checked_div(size_of::<V>()).unwrap_or(0);
        batch.values.resize(old_values + units, V::zeroed());
        let (keys, values) = (&mut batch.keys[old_keys..], bytemuck::cast_slice_mut(&mut batch.values[old_values..]));
        shape.decode_entries(page, keys, values).ok_or(compact_page::DAMAGED_COMPACT_PAGE_MESSAGE)?;
        if is_strictly_ascending(keys) && next.is_none_or(|next| keys[entries - 1] < next) {
            Ok(())
        } else {
            Err("its keys are not in order")
        }
    }
}

/// Reads all entries of a table in key order, several pages at a time.
#[derive(Debug)]
pub struct EntryBatchReader<'s> {
    page_reader: &'s TablePageReader,
    raw: UncheckedPages,
    pages_per_batch: u64,
    next_page: u64,
    page_first_keys: Vec<u64>,
}

impl EntryBatchReader<'_> {
    /// Replaces the content of `batch` by the entries of the next pages. `batch` is empty after the end of the table.
    ///
    /// # Errors
    /// As for [`TablePageReader::read_first_keys_of_pages`], [`TablePageReader::read_unchecked_pages`] and
    /// [`TablePageReader::check_and_unpack_pages`].
    ///
    /// # Panics
    /// As for [`TablePageReader::check_and_unpack_pages`].
    pub fn read_next_batch<V: Pod>(&mut self, batch: &mut EntryBatch<V>) -> Result<(), Error> {
        batch.remove_all_entries();
        let all = self.page_reader.num_pages();
        let end = (self.next_page + self.pages_per_batch).min(all);
        self.page_first_keys.clear();
        self.page_reader.read_first_keys_of_pages(self.next_page..(end + 1).min(all), &mut self.page_first_keys)?;
        self.page_reader.read_unchecked_pages(self.next_page..end, &mut self.raw)?;
        self.next_page = end;
        self.page_reader.check_and_unpack_pages(&self.raw, &self.page_first_keys, batch)
    }
}
