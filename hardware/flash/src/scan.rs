//! Entries of a table in order, piece by piece, with nothing of it in memory but the piece: for whoever goes through many tables at once.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use genuma_machine::placement::{Pages, Placed, Placement, Policy};

use crate::error::{Error, Part};
use crate::file;
use crate::format::{self, Header, KEY, Page};
use crate::table::read_header;

/// Entries that lie one after the other in a table. Use one again and again: it keeps its memory.
#[derive(Debug, Clone)]
pub struct Piece<V> {
    /// Their keys, which rise.
    pub keys: Vec<u64>,
    /// Their values, one after the other.
    pub values: Vec<V>,
}

impl<V> Default for Piece<V> {
    fn default() -> Self {
        Piece { keys: Vec::new(), values: Vec::new() }
    }
}

/// Goes through a table from its start, or from where it is sent. Only the header is read when it is opened; each page is checked when it is read: by
/// its checksum, and by its keys, which follow those of the page before. Index, filter and hot entries are neither read nor checked.
#[derive(Debug)]
pub struct Scan {
    path: PathBuf,
    header: Header,
    /// Open for whole pages.
    file: File,
    /// Open for whatever is small.
    plain: File,
    buffer: Placed<Page>,
    /// The page that comes next.
    next: u64,
    /// The last key of the page before it.
    last: Option<u64>,
}

impl Scan {
    /// Opens a table to go through it `pages` pages (4096 bytes each, one at least) at a time.
    ///
    /// # Errors
    /// When the file is no table, is of another version, or has another length than it should; when there is no memory for the pages.
    pub fn open(path: impl AsRef<Path>, pages: usize) -> Result<Scan, Error> {
        let path = path.as_ref().to_path_buf();
        let opened = |source| Error::Open { path: path.clone(), source };
        let plain = File::open(&path).map_err(opened)?;
        let header = read_header(&path, &plain)?;
        let file = file::open_direct(&path).map_err(opened)?;
        let pages = (pages.max(1) as u64).min(header.pages().max(1)) as usize;
        let at = Placement { policy: Policy::Local, pages: Pages::Base };
        let memory = |source| Error::Memory { path: path.clone(), source };
        let buffer = Placed::zeroed(pages, &at).map_err(memory)?;
        Ok(Scan { path, header, file, plain, buffer, next: 0, last: None })
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

    /// Goes on from a page, counted from 0.
    pub fn go_to(&mut self, page: u64) {
        (self.next, self.last) = (page, None);
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
        let at = self.header.index.offset + page * KEY as u64;
        let unread = |source| Error::Read { path: self.path.clone(), part: Part::Index, source };
        let mut key = [0; KEY];
        self.plain.read_exact_at(&mut key, at).map_err(unread)?;
        Ok(u64::from_le_bytes(key))
    }

    /// Puts the entries of the next pages into `piece` in place of what it has: none when there are no more.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged.
    ///
    /// # Panics
    /// When values of `V` do not fit into the table's values without a rest.
    pub fn fill<V: Pod>(&mut self, piece: &mut Piece<V>) -> Result<(), Error> {
        self.fill_some(piece, self.buffer.len())
    }

    /// [`Scan::fill`] of so many pages, as far as that is no more.
    ///
    /// # Errors
    /// As for [`Scan::fill`].
    ///
    /// # Panics
    /// As [`Scan::fill`] does.
    pub fn fill_some<V: Pod>(&mut self, piece: &mut Piece<V>, pages: usize) -> Result<(), Error> {
        piece.keys.clear();
        piece.values.clear();
        let shape = self.header.shape;
        let pages =
            (self.buffer.len().min(pages) as u64).min(self.pages().saturating_sub(self.next)) as usize;
        let read = &mut self.buffer[..pages];
        file::read_pages(&self.path, &self.file, read, self.next)?;
        for (page, number) in read.iter().zip(self.next..) {
            let entries = shape.in_page(number, self.header.entries);
            let keys = shape.keys(page, entries);
            let rises = self.last.is_none_or(|last| last < keys[0]) && keys.is_sorted_by(|a, b| a < b);
            let what = match (page.whole(number + 1), rises) {
                (false, _) => "its checksum is another",
                (true, false) => "its keys are not in order",
                (true, true) => {
                    piece.keys.extend_from_slice(keys);
                    piece.values.extend_from_slice(bytemuck::cast_slice(shape.values(page, entries)));
                    self.last = keys.last().copied();
                    continue;
                }
            };
            return Err(Error::Damaged { path: self.path.clone(), part: format::part(number), what });
        }
        self.next += pages as u64;
        Ok(())
    }
}
