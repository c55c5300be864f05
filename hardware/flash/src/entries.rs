//! All entries of a table, in order.

use genuma_machine::placement::Placed;

use crate::Error;
use crate::file;
use crate::format::Page;
use crate::table::{Checked, Table};

/// Pages read at once: 1 MiB.
const AT_ONCE: u64 = 256;

/// Goes through the entries of a table in order of their keys.
#[derive(Debug)]
pub struct Entries<'t> {
    table: &'t Table,
    buffer: Placed<Page>,
    /// The page that is gone through, and the entry of it that comes next.
    page: u64,
    entry: usize,
    /// Pages read before.
    read: u64,
}

impl Table {
    /// All entries in order, read in large pieces.
    ///
    /// # Errors
    /// No memory for a piece of 1 MiB.
    pub fn entries(&self) -> Result<Entries<'_>, Error> {
        Entries::new(self)
    }
}

impl<'t> Entries<'t> {
    fn new(table: &'t Table) -> Result<Entries<'t>, Error> {
        let memory = |source| Error::Memory { path: table.path.clone(), source };
        let pages = AT_ONCE.min(table.pages()) as usize;
        let buffer = Placed::zeroed(pages, &table.placement).map_err(memory)?;
        Ok(Entries { table, buffer, page: 0, entry: 0, read: 0 })
    }

    /// The next entry, if there is one. The value lives until the one after it is asked for.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged.
    #[expect(clippy::should_implement_trait, reason = "an Iterator's items could not borrow from it")]
    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>, Error> {
        let shape = self.table.header.shape;
        if self.entry == shape.per_page {
            (self.page, self.entry) = (self.page + 1, 0);
        }
        if self.page * shape.per_page as u64 + self.entry as u64 >= self.table.len() {
            return Ok(None);
        }
        if self.page == self.read {
            self.fill()?;
        }
        let page = &self.buffer[(self.page % AT_ONCE) as usize];
        let page = Checked::again(self.table, self.page, page);
        let entry = self.entry;
        self.entry += 1;
        Ok(Some((page.keys()[entry], page.value(entry))))
    }

    /// Reads and checks the next pages.
    fn fill(&mut self) -> Result<(), Error> {
        let first = self.read;
        let pages = AT_ONCE.min(self.table.pages() - first) as usize;
        let pages = &mut self.buffer[..pages];
        file::read_pages(&self.table.path, &self.table.file, pages, first)?;
        for (page, number) in pages.iter().zip(first..) {
            self.table.check(number, page)?;
        }
        self.read += pages.len() as u64;
        Ok(())
    }
}
