//! Reads all entries of a table in key order.

use genuma_machine::placement::PlacedSlice;

use crate::Error;
use crate::error::TablePart;
use crate::file;
use crate::format::Page;
use crate::table::{CheckedPage, Table};

/// Number of pages that are read at once: 1 MiB.
const PAGES_PER_READ: u64 = 256;

/// Reads the entries of a table one after another in key order.
#[derive(Debug)]
pub struct EntryReader<'t> {
    table: &'t Table,
    buffer: PlacedSlice<Page>,
    /// Number of the next page to decode, from 0.
    page: u64,
    /// Keys of the current page; `values` has their values, and `entry` is the index of the next entry to return.
    keys: Vec<u64>,
    values: Vec<u8>,
    entry: usize,
    /// Number of entries decoded so far.
    entries: u64,
    /// Number of pages read so far.
    pages_read: u64,
}

impl Table {
    /// Creates a reader of all entries in key order. It reads 1 MiB at a time.
    ///
    /// # Errors
    /// There is no memory for the buffer of 1 MiB.
    pub fn new_entry_reader(&self) -> Result<EntryReader<'_>, Error> {
        EntryReader::new(self)
    }
}

impl<'t> EntryReader<'t> {
    fn new(table: &'t Table) -> Result<EntryReader<'t>, Error> {
        let memory = |source| Error::NotEnoughMemory { path: table.path.clone(), source };
        let pages = PAGES_PER_READ.min(table.num_pages()) as usize;
        let buffer = PlacedSlice::new_zeroed(pages, &table.placement).map_err(memory)?;
        let (keys, values) = (Vec::new(), Vec::new());
        Ok(EntryReader { table, buffer, page: 0, keys, values, entry: 0, entries: 0, pages_read: 0 })
    }

    /// Returns the next entry (key and value), or `None` after the last one. The value is valid until the next call.
    ///
    /// # Errors
    /// A page cannot be read or is damaged, or all pages together do not have the number of entries in the header.
    pub fn next_entry(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        if self.entry == self.keys.len() {
            if self.page == self.table.num_pages() {
                return if self.entries == self.table.len() { Ok(None) } else { Err(self.wrong_number_of_entries()) };
            }
            self.decode_next_page()?;
        }
        let (entry, bytes) = (self.entry, self.table.value_bytes());
        self.entry += 1;
        Ok(Some((self.keys[entry], &self.values[entry * bytes..(entry + 1) * bytes])))
    }

    fn wrong_number_of_entries(&self) -> Error {
        let (path, part) = (self.table.path.clone(), TablePart::Header);
        Error::Damaged { path, part, what: "its number of entries is not that of the pages" }
    }

    fn decode_next_page(&mut self) -> Result<(), Error> {
        if self.page == self.pages_read {
            self.read_next_pages()?;
        }
        let page = &self.buffer[(self.page % PAGES_PER_READ) as usize];
        let page = CheckedPage::assume_checked(self.table, self.page, page);
        let decoded = page.decode_entries(&mut self.keys, &mut self.values);
        decoded.map_err(|what| self.table.damaged_page_error(self.page, what))?;
        self.entries += self.keys.len() as u64;
        (self.page, self.entry) = (self.page + 1, 0);
        Ok(())
    }

    /// Reads the next pages into the buffer and checks them.
    fn read_next_pages(&mut self) -> Result<(), Error> {
        let first = self.pages_read;
        let pages = PAGES_PER_READ.min(self.table.num_pages() - first) as usize;
        let pages = &mut self.buffer[..pages];
        file::read_entry_pages(&self.table.path, &self.table.file, pages, first)?;
        for (page, number) in pages.iter().zip(first..) {
            self.table.check_page(number, page)?;
        }
        self.pages_read += pages.len() as u64;
        Ok(())
    }
}
