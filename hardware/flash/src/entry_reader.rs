//! Reads all entries of a table in key order.

use genuma_machine::placement::PlacedSlice;

use crate::Error;
use crate::file;
use crate::format::Page;
use crate::table::{CheckedPage, Table};

/// Pages per read: 1 MiB.
const PAGES_PER_READ: u64 = 256;

/// Iterates over the entries of a table in key order.
#[derive(Debug)]
pub struct EntryReader<'t> {
    table: &'t Table,
    buffer: PlacedSlice<Page>,
    /// Number of the current page in the table, from 0; `entry` is the number of the next entry on that page.
    page: u64,
    entry: usize,
    /// Number of pages read so far.
    pages_read: u64,
}

impl Table {
    /// Reads all entries in key order, in reads of 1 MiB.
    ///
    /// # Errors
    /// There is no memory for the buffer of 1 MiB.
    pub fn read_entries(&self) -> Result<EntryReader<'_>, Error> {
        EntryReader::new(self)
    }
}

impl<'t> EntryReader<'t> {
    fn new(table: &'t Table) -> Result<EntryReader<'t>, Error> {
        let memory = |source| Error::NotEnoughMemory { path: table.path.clone(), source };
        let pages = PAGES_PER_READ.min(table.num_pages()) as usize;
        let buffer = PlacedSlice::new_zeroed(pages, &table.placement).map_err(memory)?;
        Ok(EntryReader { table, buffer, page: 0, entry: 0, pages_read: 0 })
    }

    /// The next entry, or `None` at the end. The value is valid until the next call.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged.
    pub fn next_entry(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        let shape = self.table.header.page_layout;
        if self.entry == shape.entries_per_page {
            (self.page, self.entry) = (self.page + 1, 0);
        }
        if self.page * shape.entries_per_page as u64 + self.entry as u64 >= self.table.len() {
            return Ok(None);
        }
        if self.page == self.pages_read {
            self.read_next_pages()?;
        }
        let page = &self.buffer[(self.page % PAGES_PER_READ) as usize];
        let page = CheckedPage::from_checked(self.table, self.page, page);
        let entry = self.entry;
        self.entry += 1;
        Ok(Some((page.keys()[entry], page.value_of_entry(entry))))
    }

    /// Reads and checks the next pages.
    fn read_next_pages(&mut self) -> Result<(), Error> {
        let first = self.pages_read;
        let pages = PAGES_PER_READ.min(self.table.num_pages() - first) as usize;
        let pages = &mut self.buffer[..pages];
        file::read_pages(&self.table.path, &self.table.file, pages, first)?;
        for (page, number) in pages.iter().zip(first..) {
            self.table.check_page(number, page)?;
        }
        self.pages_read += pages.len() as u64;
        Ok(())
    }
}
