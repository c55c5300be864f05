//! A table that is open: what is kept of it in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};
use genuma_machine::placement::{self, Pages, Placed, Placement, Policy};

use crate::error::{Error, Part};
use crate::file;
use crate::filter::{Block, Layout};
use crate::format::{self, Checksum, Header, Misfit, PAGE, Page, Section, Shape, VERSION};
use crate::hot::Hot;
use crate::index::Index;
use crate::queue::Access;

/// How a table is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How pages are read.
    pub access: Access,
    /// Where index, filter, hot entries and buffers lie, and pages that are kept in memory.
    pub placement: Placement,
    /// Whether the hot entries are kept in memory; they are in the pages too.
    pub hot: bool,
}

impl Default for Options {
    /// The best access the system permits, local memory in transparent huge pages, with hot entries.
    fn default() -> Self {
        let placement = Placement { policy: Policy::Local, pages: Pages::Transparent };
        Options { access: Access::Auto, placement, hot: true }
    }
}

/// Bytes that an open table keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resident {
    /// First keys of pages, and the levels above.
    pub index: u64,
    /// The filter.
    pub filter: u64,
    /// Hot entries.
    pub hot: u64,
    /// Pages of entries ([`Access::Memory`]).
    pub pages: u64,
}

/// An immutable sorted table. Any number of threads may have readers of it.
#[derive(Debug)]
pub struct Table {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    pub(crate) index: Index,
    pub(crate) filter: Placed<Block>,
    pub(crate) layout: Layout,
    pub(crate) hot: Hot,
    /// All pages, where they are kept in memory.
    pub(crate) pages: Option<Placed<Page>>,
    /// Open for whole pages.
    pub(crate) file: File,
    pub(crate) access: Access,
    pub(crate) placement: Placement,
}

/// An error of opening before it has the path.
enum Fault {
    Damaged(Part, &'static str),
    Read(Part, io::Error),
    Memory(placement::Error),
}

impl From<placement::Error> for Fault {
    fn from(error: placement::Error) -> Self {
        Fault::Memory(error)
    }
}

impl Fault {
    fn of(self, path: &Path) -> Error {
        let path = path.to_path_buf();
        match self {
            Fault::Damaged(part, what) => Error::Damaged { path, part, what },
            Fault::Read(part, source) => Error::Read { path, part, source },
            Fault::Memory(source) => Error::Memory { path, source },
        }
    }
}

impl Table {
    /// Opens a table and brings its index, filter and hot entries into memory. All of these are checked; pages are when they are read.
    ///
    /// # Errors
    /// When the file is no table, is of another version, has another length than it should, or one of the parts read is damaged; when there
    /// is no memory for them.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Table, Error> {
        let path = path.as_ref();
        let opened = |source| Error::Open { path: path.to_path_buf(), source };
        let plain = File::open(path).map_err(opened)?;
        let header = read_header(path, &plain)?;
        let at = &options.placement;
        let (index, filter, hot) = (|| {
            let index = read_index(&plain, &header, at)?;
            // That of a table of the version before is left where it is: every key may be there.
            let filter = match header.filter_each {
                Some(_) => read_section(&plain, &header.filter, Part::Filter, at)?,
                None => Placed::zeroed(0, at)?,
            };
            let hot = read_hot(&plain, &header, options.hot, at)?;
            Ok((index, filter, hot))
        })()
        .map_err(|fault: Fault| fault.of(path))?;
        let file = file::open_direct(path).map_err(opened)?;
        let (access, placement) = (options.access, at.clone());
        let path = path.to_path_buf();
        let layout = header.layout();
        let mut table =
            Table { path, header, index, filter, layout, hot, pages: None, file, access, placement };
        if access == Access::Memory {
            table.pages = Some(table.read_pages()?);
        }
        Ok(table)
    }

    /// Entries.
    pub fn len(&self) -> u64 {
        self.header.entries
    }

    /// Whether there is no entry.
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

    /// Pages of entries, of 4096 bytes.
    pub fn pages(&self) -> u64 {
        self.header.pages()
    }

    /// Bytes it keeps in memory.
    pub fn resident(&self) -> Resident {
        let pages = self.pages.as_ref().map_or(0, |pages| size_of_val(&pages[..]) as u64);
        let filter = size_of_val(&self.filter[..]) as u64;
        Resident { index: self.index.bytes() as u64, filter, hot: self.hot.bytes() as u64, pages }
    }

    /// Checks a page of entries that was read: counted from 0.
    pub(crate) fn check<'p>(&self, number: u64, page: &'p Page) -> Result<Checked<'p>, Error> {
        let shape = self.header.shape;
        let keys = shape.keys(page, shape.in_page(number, self.header.entries));
        let what = if !page.whole(number + 1) {
            "its checksum is another"
        } else if keys[0] != self.index.first_keys()[number as usize] {
            "its first key is not that of the index"
        } else {
            return Ok(Checked { page, keys, shape });
        };
        Err(Error::Damaged { path: self.path.clone(), part: format::part(number), what })
    }

    /// Reads and checks all pages.
    fn read_pages(&self) -> Result<Placed<Page>, Error> {
        let memory = |source| Error::Memory { path: self.path.clone(), source };
        let mut pages: Placed<Page> =
            Placed::zeroed(self.pages() as usize, &self.placement).map_err(memory)?;
        for (piece, first) in pages.chunks_mut(256).zip((0..).step_by(256)) {
            file::read_pages(&self.path, &self.file, piece, first)?;
            for (page, number) in piece.iter().zip(first..) {
                self.check(number, page)?;
            }
        }
        Ok(pages)
    }
}

/// A page that is whole.
pub(crate) struct Checked<'p> {
    page: &'p Page,
    keys: &'p [u64],
    shape: Shape,
}

impl<'p> Checked<'p> {
    /// A page that was checked before.
    pub fn again(table: &Table, number: u64, page: &'p Page) -> Checked<'p> {
        let shape = table.header.shape;
        Checked { page, keys: shape.keys(page, shape.in_page(number, table.header.entries)), shape }
    }

    /// Its keys in order.
    pub fn keys(&self) -> &'p [u64] {
        self.keys
    }

    /// The value of its `entry`th key.
    pub fn value(&self, entry: usize) -> &'p [u8] {
        self.shape.value_of(self.page, entry)
    }

    /// The value of a key.
    pub fn get(&self, key: u64) -> Option<&'p [u8]> {
        self.keys.binary_search(&key).ok().map(|entry| self.value(entry))
    }
}

/// Reads and checks the header of a table.
pub(crate) fn read_header(path: &Path, file: &File) -> Result<Header, Error> {
    let unread = |source| Error::Read { path: path.to_path_buf(), part: Part::Header, source };
    let found = file.metadata().map_err(unread)?.len();
    let mut page = Page::zeroed();
    let present = found.min(PAGE as u64) as usize;
    file.read_exact_at(&mut page.0[..present], 0).map_err(unread)?;
    let path = path.to_path_buf();
    let parsed = Header::parse(&page);
    if present < PAGE && !matches!(parsed, Err(Misfit::Magic)) {
        return Err(Error::Length { path, found, wanted: PAGE as u64 });
    }
    let header = parsed.map_err(|misfit| match misfit {
        Misfit::Magic => Error::NotATable { path: path.clone() },
        Misfit::Version(found) => Error::Version { path: path.clone(), found, known: VERSION },
        Misfit::Damaged(what) => Error::Damaged { path: path.clone(), part: Part::Header, what },
    })?;
    let wanted = header.file_bytes();
    if found == wanted { Ok(header) } else { Err(Error::Length { path, found, wanted }) }
}

/// Fills memory from a part of the file.
fn fill(file: &File, section: &Section, part: Part, bytes: &mut [u8]) -> Result<(), Fault> {
    file.read_exact_at(bytes, section.offset).map_err(|error| Fault::Read(part, error))?;
    let mut checksum = Checksum::default();
    checksum.add(bytes);
    let fits = checksum.finish() == section.checksum;
    if fits { Ok(()) } else { Err(Fault::Damaged(part, "its checksum is another")) }
}

fn read_section<T: Pod>(
    file: &File,
    section: &Section,
    part: Part,
    at: &Placement,
) -> Result<Placed<T>, Fault> {
    let mut elements = Placed::zeroed(section.bytes as usize / size_of::<T>(), at)?;
    fill(file, section, part, bytemuck::cast_slice_mut(&mut elements))?;
    Ok(elements)
}

fn read_index(file: &File, header: &Header, at: &Placement) -> Result<Index, Fault> {
    let index = Index::new(header.pages() as usize, at, |keys| {
        fill(file, &header.index, Part::Index, bytemuck::cast_slice_mut(keys))
    })?;
    let firsts = index.first_keys();
    if !firsts.is_sorted_by(|a, b| a < b) {
        return Err(Fault::Damaged(Part::Index, "its keys are not in order"));
    }
    let ends = (firsts.first().copied().unwrap_or(0), firsts.last().copied().unwrap_or(0));
    let fits = ends.0 == header.first && ends.1 <= header.last;
    if fits { Ok(index) } else { Err(Fault::Damaged(Part::Index, "its ends are not those of the header")) }
}

/// Reads and checks the hot entries; without `wanted` none are kept.
fn read_hot(file: &File, header: &Header, wanted: bool, at: &Placement) -> Result<Hot, Fault> {
    let bytes: Placed<u8> = read_section(file, &header.hot, Part::Hot, at)?;
    let count = header.hot_entries() as usize;
    if count > Hot::MOST {
        return Err(Fault::Damaged(Part::Hot, "there are too many"));
    }
    let (keys, values) = bytes.split_at(count * format::KEY);
    // No bytes have no alignment.
    let keys: &[u64] = if keys.is_empty() { &[] } else { bytemuck::cast_slice(keys) };
    if !keys.is_sorted_by(|a, b| a < b) {
        return Err(Fault::Damaged(Part::Hot, "its keys are not in order"));
    }
    let (keys, values) = if wanted { (keys, values) } else { (&keys[..0], &values[..0]) };
    Ok(Hot::new(keys, Placed::copy_of(values, at)?, header.shape.value, at)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answers, Spec, TableWriter};

    #[test]
    fn a_table_of_the_version_before_answers_without_its_filter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut writer = TableWriter::create(&path, Spec::new(4, 40_000)).unwrap();
        let keys: Vec<u64> = (0..40_000).map(|i| 7 + 3 * i).collect();
        keys.iter().for_each(|&key| writer.push(key, &(key as u32).to_le_bytes(), 0).unwrap());
        writer.finish().unwrap();
        let mut answers = Answers::new();
        let mut told = Vec::new();
        for before in [false, true] {
            if before {
                let file = File::options().read(true).write(true).open(&path).unwrap();
                let header = Header { filter_each: None, ..read_header(&path, &file).unwrap() };
                file.write_all_at(&header.page().0, 0).unwrap();
            }
            let table = Table::open(&path, &Options::default()).unwrap();
            assert_eq!(table.resident().filter == 0, before);
            let mut reader = table.reader(16).unwrap();
            let asked: Vec<u64> = (0..120_010).collect();
            reader.get_many(&asked, &mut answers).unwrap();
            for (key, found) in asked.iter().zip(answers.iter()) {
                let there = *key >= 7 && (key - 7) % 3 == 0 && *key < 120_007;
                assert_eq!(found, there.then_some(&(*key as u32).to_le_bytes()[..]), "{key}");
            }
            told.push(reader.counted().told_absent);
        }
        assert!(told[0] > 79_000 && told[1] == 12, "{told:?}");
    }
}
