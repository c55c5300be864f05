//! Entries of a table in order, some pages at a time, with nothing of it in memory but these: for whoever goes through many tables at once.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use genuma_machine::placement::{self, Pages, Placed, Placement, Policy};

use crate::error::{Error, Part};
use crate::file;
use crate::format::{self, Header, KEY, PAGE, Page};
use crate::table::read_header;
use crate::together::rise;

/// Entries that lie one after the other in a table. Use one again and again: it keeps its memory.
#[derive(Debug, Clone)]
pub struct Piece<V> {
    /// Their keys, which rise.
    pub keys: Vec<u64>,
    /// Their values, one after the other.
    pub values: Vec<V>,
}

impl<V> Piece<V> {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }
}

impl<V> Default for Piece<V> {
    fn default() -> Self {
        Piece { keys: Vec::new(), values: Vec::new() }
    }
}

/// Pages of a table as they lie in its file. Use it again and again.
#[derive(Debug)]
pub struct Raw {
    pages: Placed<Page>,
    /// Number of the first in the table.
    first: u64,
    full: usize,
}

impl Raw {
    /// Room for so many pages (4096 bytes each).
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(pages: usize) -> Result<Raw, placement::Error> {
        let at = Placement { policy: Policy::Local, pages: Pages::Base };
        Ok(Raw { pages: Placed::zeroed(pages, &at)?, first: 0, full: 0 })
    }
}

/// A table whose pages are read in order, or some of them, by any number of threads. Only the header is read when it is opened; each page is checked when
/// it is unpacked: by its checksum, by the index, and by its keys, which rise and lie before those of the next page. Filter and hot entries are neither read
/// nor checked.
#[derive(Debug)]
pub struct Scan {
    path: PathBuf,
    header: Header,
    /// Open for whole pages.
    file: File,
    /// Open for whatever is small.
    plain: File,
    /// The kernel's cache has it: pages are read from there.
    cached: bool,
}

impl Scan {
    /// Opens a table.
    ///
    /// # Errors
    /// When the file is no table, is of another version, or has another length than it should.
    pub fn open(path: impl AsRef<Path>) -> Result<Scan, Error> {
        let path = path.as_ref().to_path_buf();
        let opened = |source| Error::Open { path: path.clone(), source };
        let plain = File::open(&path).map_err(opened)?;
        let header = read_header(&path, &plain)?;
        let file = file::open_direct(&path).map_err(opened)?;
        let cached = file::is_cached(&plain, header.file_bytes() / PAGE as u64);
        Ok(Scan { path, header, file, plain, cached })
    }

    /// The table.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Entries of the table.
    pub fn len(&self) -> u64 {
        self.header.entries
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of each value.
    pub fn value_bytes(&self) -> usize {
        self.header.shape.value
    }

    /// The smallest and the largest key.
    pub fn range(&self) -> Option<(u64, u64)> {
        (!self.is_empty()).then_some((self.header.first, self.header.last))
    }

    /// What the writer wanted to be found again.
    pub fn note(&self) -> &[u8] {
        &self.header.note
    }

    /// Pages of entries.
    pub fn pages(&self) -> u64 {
        self.header.pages()
    }

    /// Entries of each page but the last.
    pub fn per_page(&self) -> u64 {
        self.header.shape.per_page as u64
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        self.header.file_bytes()
    }

    /// Hot entries.
    pub fn hot_entries(&self) -> u64 {
        self.header.hot_entries()
    }

    /// The page on which a key is if it is there: the last one whose first key is not above it.
    ///
    /// # Errors
    /// When the index cannot be read. Its checksum is not looked at: where it is damaged this is another page.
    pub fn page_of(&self, key: u64) -> Result<u64, Error> {
        let (mut low, mut high) = (0, self.pages());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.first_key(middle)? <= key {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The first key of a page, as the index has it.
    ///
    /// # Errors
    /// When the index cannot be read. Its checksum is not looked at.
    pub fn first_key(&self, page: u64) -> Result<u64, Error> {
        let mut key = [0];
        self.read_index(page, &mut key)?;
        Ok(key[0])
    }

    /// Adds the first keys of pages, as the index has them, to `keys`.
    ///
    /// # Errors
    /// When the index cannot be read, or they do not rise. Its checksum is not looked at: unpacking pages shows whether these are their first keys.
    pub fn first_keys(&self, pages: Range<u64>, keys: &mut Vec<u64>) -> Result<(), Error> {
        if pages.is_empty() {
            return Ok(());
        }
        let from = keys.len();
        keys.resize(from + (pages.end - pages.start) as usize, 0);
        self.read_index(pages.start, &mut keys[from..])?;
        let what = "its keys are not in order";
        let damaged = || Error::Damaged { path: self.path.clone(), part: Part::Index, what };
        if rise(&keys[from.saturating_sub(1)..]) { Ok(()) } else { Err(damaged()) }
    }

    fn read_index(&self, page: u64, keys: &mut [u64]) -> Result<(), Error> {
        let at = self.header.index.offset + page * KEY as u64;
        let unread = |source| Error::Read { path: self.path.clone(), part: Part::Index, source };
        self.plain.read_exact_at(bytemuck::cast_slice_mut(keys), at).map_err(unread)
    }

    /// Reads pages as they are.
    ///
    /// # Errors
    /// When they cannot be read.
    ///
    /// # Panics
    /// When there is no room for so many.
    pub fn read(&self, pages: Range<u64>, raw: &mut Raw) -> Result<(), Error> {
        raw.first = pages.start;
        raw.full = pages.end.saturating_sub(pages.start) as usize;
        if raw.full == 0 {
            return Ok(());
        }
        let file = if self.cached { &self.plain } else { &self.file };
        file::read_pages(&self.path, file, &mut raw.pages[..raw.full], pages.start)
    }

    /// Goes through all entries from the first on, so many pages (one at least) at a time.
    ///
    /// # Errors
    /// There is no memory for the pages.
    pub fn walk(&self, pages: usize) -> Result<Walk<'_>, Error> {
        let pages = (pages.max(1) as u64).min(self.pages().max(1));
        let memory = |source| Error::Memory { path: self.path.clone(), source };
        let raw = Raw::new(pages as usize).map_err(memory)?;
        Ok(Walk { scan: self, raw, pages, next: 0, firsts: Vec::new() })
    }

    /// Checks pages that were read and adds their entries to `piece`. `firsts` has the first keys of these pages as the index has them, and of the page
    /// after them if there is one.
    ///
    /// # Errors
    /// When a page is damaged, or the index.
    ///
    /// # Panics
    /// When values of `V` do not fit into the table's values without a rest, or `firsts` has other keys than it should.
    pub fn unpack<V: Pod>(&self, raw: &Raw, firsts: &[u64], piece: &mut Piece<V>) -> Result<(), Error> {
        let shape = self.header.shape;
        for (at, (page, number)) in raw.pages[..raw.full].iter().zip(raw.first..).enumerate() {
            let entries = shape.in_page(number, self.header.entries);
            let keys = shape.keys(page, entries);
            let what = if !page.whole(number + 1) {
                "its checksum is another"
            } else if keys[0] != firsts[at] {
                "its first key is not that of the index"
            } else if !(rise(keys) && firsts.get(at + 1).is_none_or(|next| keys[entries - 1] < *next)) {
                "its keys are not in order"
            } else {
                piece.keys.extend_from_slice(keys);
                piece.values.extend_from_slice(bytemuck::cast_slice(shape.values(page, entries)));
                continue;
            };
            return Err(Error::Damaged { path: self.path.clone(), part: format::part(number), what });
        }
        Ok(())
    }
}

/// A way through a table.
#[derive(Debug)]
pub struct Walk<'s> {
    scan: &'s Scan,
    raw: Raw,
    /// Pages at a time.
    pages: u64,
    /// The page that comes next.
    next: u64,
    firsts: Vec<u64>,
}

impl Walk<'_> {
    /// Puts the entries of the next pages into `piece` in place of what it has: none when there are no more.
    ///
    /// # Errors
    /// As for [`Scan::read`] and [`Scan::unpack`].
    ///
    /// # Panics
    /// As [`Scan::unpack`] does.
    pub fn next<V: Pod>(&mut self, piece: &mut Piece<V>) -> Result<(), Error> {
        piece.clear();
        let all = self.scan.pages();
        let end = (self.next + self.pages).min(all);
        self.firsts.clear();
        self.scan.first_keys(self.next..(end + 1).min(all), &mut self.firsts)?;
        self.scan.read(self.next..end, &mut self.raw)?;
        self.next = end;
        self.scan.unpack(&self.raw, &self.firsts, piece)
    }
}
