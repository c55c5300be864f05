//! Entries in order of keys → a table on flash.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use bytemuck::Zeroable;
use genuma_machine::placement::{Pages, Placed, Placement, Policy};

use crate::Error;
use crate::file;
use crate::filter::{self, Block};
use crate::format::{self, Header, KEY, MAX_NOTE, MAX_VALUE, PAGE, Page, Section, Shape};
use crate::hash::hash;
use crate::hot::{Chooser, Hot};

/// Pages written at once: 1 MiB.
const AT_ONCE: usize = 256;

/// Keys that wait while their blocks of the filter are fetched.
const WAITING: usize = 32;

/// What a table is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Bytes of every value: 0 to [`MAX_VALUE`].
    pub value_bytes: usize,
    /// How many entries there will be at most. The filter is made for so many, and made smaller when less than half of them come.
    pub entries: u64,
    /// Bits of the filter for each entry, up to 64; 0 for no filter. With 12 about 4 absent keys in 1000 are not told.
    pub filter_bits: u32,
    /// Entries that are read without touching flash: those of the largest weights. 0 for none.
    pub hot_entries: usize,
    /// Up to [`MAX_NOTE`] bytes that the reader finds again.
    pub note: Vec<u8>,
}

impl Spec {
    /// For at most `entries` entries with values of `value_bytes`: a filter of 12 bits a key, no hot entries, no note.
    pub fn new(value_bytes: usize, entries: u64) -> Spec {
        Spec { value_bytes, entries, filter_bits: 12, hot_entries: 0, note: Vec::new() }
    }

    /// Bytes of memory that writing takes at most: filter, first keys of pages, candidates for hot entries, and 1 MiB to write from.
    /// Transparent huge pages may round the filter up to 2 MiB.
    pub fn memory(&self) -> u64 {
        let filter = filter::blocks_for(self.entries, self.filter_bits) as u64 * size_of::<Block>() as u64;
        let value = self.value_bytes.min(MAX_VALUE);
        let index = Shape::new(value).pages(self.entries) * KEY as u64;
        filter + index + Chooser::memory(self.hot_entries, value) + (AT_ONCE * PAGE) as u64
    }

    /// Says what is impossible about it.
    fn check(&self, path: &Path) -> Result<(), Error> {
        let what = if self.value_bytes > MAX_VALUE {
            format!("values of {} bytes, a page has room for {MAX_VALUE}", self.value_bytes)
        } else if self.note.len() > MAX_NOTE {
            format!("a note of {} bytes, the header has room for {MAX_NOTE}", self.note.len())
        } else if self.hot_entries > Hot::MOST {
            format!("{} hot entries, the most are {}", self.hot_entries, Hot::MOST)
        } else if self.filter_bits > 64 {
            format!("a filter of {} bits a key, the most are 64", self.filter_bits)
        } else if self.entries >= 1 << 48 {
            format!("{} entries, the most are {}", self.entries, (1_u64 << 48) - 1)
        } else {
            return Ok(());
        };
        Err(Error::Spec { path: path.to_path_buf(), what })
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Entries.
    pub entries: u64,
    /// Pages of entries.
    pub pages: u64,
    /// Hot entries.
    pub hot: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Writes a table as `.NAME.partial` beside its final name, which it gets when it is finished. Dropped before, it is removed.
///
/// ```
/// use genuma_flash::{Options, Spec, Table, TableWriter};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("counts.table");
/// let mut writer = TableWriter::create(&path, Spec::new(2, 1000))?;
/// for key in 0..1000_u64 {
///     writer.push(key * key, &(key as u16).to_le_bytes(), 0)?;
/// }
/// writer.finish()?;
///
/// let table = Table::open(&path, &Options::default())?;
/// assert_eq!(table.reader(64)?.get(81)?, Some(&[9, 0][..]));
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Debug)]
pub struct TableWriter {
    sink: Sink,
    spec: Spec,
    shape: Shape,
    entries: u64,
    first: u64,
    last: u64,
    firsts: Vec<u64>,
    filter: Placed<Block>,
    /// Hashes of keys that are still to be added to the filter.
    waiting: Vec<u64>,
    chooser: Chooser,
}

impl TableWriter {
    /// Starts writing what will be `path`.
    ///
    /// # Errors
    /// When `spec` is impossible, there is not enough memory, or the file cannot be made.
    pub fn create(path: impl AsRef<Path>, spec: Spec) -> Result<TableWriter, Error> {
        let path = path.as_ref();
        spec.check(path)?;
        let shape = Shape::new(spec.value_bytes);
        let blocks = filter::blocks_for(spec.entries, spec.filter_bits);
        let at = Placement { policy: Policy::Local, pages: Pages::Transparent };
        let filter = Placed::zeroed(blocks, &at)
            .map_err(|source| Error::Memory { path: path.to_path_buf(), source })?;
        let chooser = Chooser::new(spec.hot_entries, spec.value_bytes);
        let mut sink = Sink::create(path)?;
        // The header's place; what it says is known at the end.
        sink.page();
        sink.next_page()?;
        let (firsts, waiting) = (Vec::new(), Vec::with_capacity(WAITING));
        Ok(TableWriter { sink, spec, shape, entries: 0, first: 0, last: 0, firsts, filter, waiting, chooser })
    }

    /// Adds an entry. `weight` is how often it will be looked up, in any unit: the heaviest become hot entries, those of weight 0 never.
    ///
    /// # Errors
    /// When the key does not follow the one before, the value has another size, there are more entries than announced, or
    /// the disk is full.
    pub fn push(&mut self, key: u64, value: &[u8], weight: u64) -> Result<(), Error> {
        let entry = self.entries;
        if value.len() != self.shape.value {
            let (given, wanted) = (value.len(), self.shape.value);
            return Err(Error::Value { path: self.sink.path.clone(), entry, given, wanted });
        }
        if entry == self.spec.entries {
            return Err(Error::TooMany { path: self.sink.path.clone(), most: entry });
        }
        if entry == 0 {
            self.first = key;
        } else if key <= self.last {
            return Err(Error::Order { path: self.sink.path.clone(), entry, key, before: self.last });
        }
        let place = (entry % self.shape.per_page as u64) as usize;
        if place == 0 {
            self.firsts.push(key);
        }
        self.shape.put(self.sink.page(), place, key, value);
        self.last = key;
        self.entries += 1;
        if !self.filter.is_empty() {
            let hash = hash(key);
            filter::fetch(&self.filter, hash);
            self.waiting.push(hash);
            if self.waiting.len() == WAITING {
                self.fill_filter();
            }
        }
        self.chooser.offer(key, value, weight);
        if place + 1 == self.shape.per_page { self.end_page() } else { Ok(()) }
    }

    /// Adds the keys that wait to the filter.
    fn fill_filter(&mut self) {
        self.waiting.drain(..).for_each(|hash| filter::add(&mut self.filter, hash));
    }

    /// Gives the page its checksum.
    fn end_page(&mut self) -> Result<(), Error> {
        let number = self.sink.page_number();
        self.sink.page().seal(number);
        self.sink.next_page()
    }

    /// Writes index, filter, hot entries and header, brings everything to the disk and gives the file its final name, replacing what had it.
    ///
    /// # Errors
    /// When the disk is full or refuses; the partial file is then removed.
    pub fn finish(mut self) -> Result<Written, Error> {
        if !self.entries.is_multiple_of(self.shape.per_page as u64) {
            self.end_page()?;
        }
        self.fill_filter();
        let blocks = match self.entries {
            0 => 0,
            entries => filter::fold(&mut self.filter, entries, self.spec.filter_bits),
        };
        let index = self.sink.section(&[bytemuck::cast_slice(&self.firsts)])?;
        let filter = self.sink.section(&[bytemuck::cast_slice(&self.filter[..blocks])])?;
        let (keys, values) = self.chooser.finish();
        let hot = self.sink.section(&[bytemuck::cast_slice(&keys), &values])?;
        let (first, last, note) = (self.first, self.last, self.spec.note);
        let header =
            Header { shape: self.shape, entries: self.entries, first, last, index, filter, hot, note };
        self.sink.finish(&header.page())?;
        let (entries, pages, hot) = (header.entries, header.pages(), header.hot_entries());
        Ok(Written { entries, pages, hot, bytes: header.file_bytes() })
    }
}

/// A partial file, written from its start to its end in large aligned pieces.
#[derive(Debug)]
struct Sink {
    file: File,
    path: PathBuf,
    partial: PathBuf,
    finished: bool,
    buffer: Placed<Page>,
    /// Pages of the buffer that are full.
    full: usize,
    /// Pages written before those of the buffer.
    written: u64,
}

impl Sink {
    fn create(path: &Path) -> Result<Sink, Error> {
        let failed = |source| Error::Write { path: path.to_path_buf(), source };
        let Some(name) = path.file_name() else {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a file name")));
        };
        let partial = path.with_file_name(format!(".{}.partial", name.to_string_lossy()));
        let at = Placement { policy: Policy::Local, pages: Pages::Base };
        let buffer = Placed::zeroed(AT_ONCE, &at)
            .map_err(|source| Error::Memory { path: path.to_path_buf(), source })?;
        let file = file::create_direct(&partial).map_err(failed)?;
        let path = path.to_path_buf();
        Ok(Sink { file, path, partial, finished: false, buffer, full: 0, written: 0 })
    }

    /// The page that is being filled, zero at first.
    fn page(&mut self) -> &mut Page {
        &mut self.buffer[self.full]
    }

    /// Its number in the file.
    fn page_number(&self) -> u64 {
        self.written + self.full as u64
    }

    /// Goes on to the next page.
    fn next_page(&mut self) -> Result<(), Error> {
        self.full += 1;
        if self.full == self.buffer.len() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let full = &mut self.buffer[..self.full];
        let written = file::write_pages(&self.file, full, self.written);
        written.map_err(|source| Error::Write { path: self.path.clone(), source })?;
        self.written += self.full as u64;
        full.fill(Page::zeroed());
        self.full = 0;
        Ok(())
    }

    /// Writes bytes from the start of a page on, and fills their last page with zeros.
    fn section(&mut self, pieces: &[&[u8]]) -> Result<Section, Error> {
        let offset = self.page_number() * PAGE as u64;
        let mut checksum = format::Checksum::default();
        let mut at = 0;
        for mut bytes in pieces.iter().copied() {
            checksum.add(bytes);
            while !bytes.is_empty() {
                let (now, rest) = bytes.split_at(bytes.len().min(PAGE - at));
                self.page().0[at..at + now.len()].copy_from_slice(now);
                (at, bytes) = (at + now.len(), rest);
                if at == PAGE {
                    self.next_page()?;
                    at = 0;
                }
            }
        }
        if at > 0 {
            self.next_page()?;
        }
        let bytes = pieces.iter().map(|bytes| bytes.len() as u64).sum();
        Ok(Section { offset, bytes, checksum: checksum.finish() })
    }

    /// Writes the header, and gives the file its name when all of it is on the disk.
    fn finish(mut self, header: &Page) -> Result<(), Error> {
        self.flush()?;
        self.buffer[0] = *header;
        let done = file::write_pages(&self.file, &self.buffer[..1], 0)
            .and_then(|()| self.file.sync_all())
            .and_then(|()| fs::rename(&self.partial, &self.path));
        done.map_err(|source| Error::Write { path: self.path.clone(), source })?;
        self.finished = true;
        // The new name itself is safe only once the folder is on the disk.
        file::sync_folder(&self.path).map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing better can be done with a failure here than to leave the partial file.
            let _ = fs::remove_file(&self.partial);
        }
    }
}
