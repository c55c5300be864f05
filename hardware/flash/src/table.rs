//! An open table, with the parts of the file that are kept in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};
use genuma_machine::placement::{self, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice};

use crate::compact_page::{self, CompactPage};
use crate::error::{Error, TablePart};
use crate::file;
use crate::filter::{BloomBlock, FilterLayout};
use crate::format::{
    self, FileSection, HeaderError, NEWEST_TABLE_FORMAT_VERSION, PAGE_BYTES, Page, PageEncoding, PageLayout,
    SectionChecksum, TableHeader,
};
use crate::hot_entries::HotEntries;
use crate::index::FirstKeyIndex;
use crate::queue::PageReadMethod;

/// Options for opening a table: how its pages are read, and what is kept in memory on which NUMA nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOpenOptions {
    /// Method by which pages are read.
    pub access: PageReadMethod,
    /// NUMA nodes and page size of the memory for the index, the filter, the hot entries, the read buffers, and pages
    /// that are kept in memory.
    pub placement: MemoryPlacement,
    /// Whether the hot entries are loaded into memory. Without them, hot entries are read from their pages like all
    /// others.
    pub load_hot_entries: bool,
}

impl Default for TableOpenOptions {
    /// Chooses the best read method that the system permits, local memory in transparent huge pages, and loads the hot
    /// entries.
    fn default() -> Self {
        let placement = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Transparent };
        TableOpenOptions { access: PageReadMethod::Auto, placement, load_hot_entries: true }
    }
}

/// Memory that an open table takes, in bytes, by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableMemoryBytes {
    /// Bytes of the index: the first keys of all pages and, with compact pages, of all filter groups, and the levels
    /// above them.
    pub index: u64,
    /// Bytes of the Bloom filters.
    pub filter: u64,
    /// Bytes of the hot entries and their hash table.
    pub hot: u64,
    /// Bytes of the pages in memory: all pages with [`PageReadMethod::Memory`], otherwise 0.
    pub pages: u64,
}

/// An immutable sorted table, opened for lookups. Any number of threads may create readers of it.
#[derive(Debug)]
pub struct Table {
    pub(crate) path: PathBuf,
    pub(crate) header: TableHeader,
    pub(crate) index: FirstKeyIndex,
    /// Index of the first keys of the filter groups, if groups do not begin with pages (compact pages).
    pub(crate) group_index: Option<FirstKeyIndex>,
    pub(crate) filter: PlacedSlice<BloomBlock>,
    pub(crate) filter_layout: FilterLayout,
    pub(crate) hot: HotEntries,
    /// All pages of entries, if they are kept in memory.
    pub(crate) pages: Option<PlacedSlice<Page>>,
    /// The file opened for direct I/O of whole pages.
    pub(crate) file: File,
    pub(crate) access: PageReadMethod,
    pub(crate) placement: MemoryPlacement,
}

/// Why opening failed, without the path of the file.
enum OpenError {
    Damaged(TablePart, &'static str),
    Read(TablePart, io::Error),
    Memory(placement::Error),
}

impl From<placement::Error> for OpenError {
    fn from(error: placement::Error) -> Self {
        OpenError::Memory(error)
    }
}

impl OpenError {
    fn with_path(self, path: &Path) -> Error {
        let path = path.to_path_buf();
        match self {
            OpenError::Damaged(part, what) => Error::Damaged { path, part, what },
            OpenError::Read(part, source) => Error::Read { path, part, source },
            OpenError::Memory(source) => Error::NotEnoughMemory { path, source },
        }
    }
}

impl Table {
    /// Opens a table and loads its index, filter and, if `options` says so, hot entries; with
    /// [`PageReadMethod::Memory`] also all pages. The checksums of the loaded parts, and of hot entries that are not
    /// loaded, are checked now, those of other pages when they are read.
    ///
    /// # Errors
    /// When the file cannot be opened or read, is not a table, has an unsupported version or a wrong length, a loaded
    /// part or the header is damaged, or there is no memory for the loaded parts.
    pub fn open(path: impl AsRef<Path>, options: &TableOpenOptions) -> Result<Table, Error> {
        let path = path.as_ref();
        let opened = |source| Error::Open { path: path.to_path_buf(), source };
        let plain = File::open(path).map_err(opened)?;
        let header = read_header(path, &plain)?;
        let at = &options.placement;
        let (index, group_index, filter, hot) = (|| {
            let (index, group_index) = read_index(&plain, &header, at)?;
            // The filter of a table of version 1 is not used: every key may be present.
            let filter = match header.filter_blocks_per_unit {
                Some(_) => read_section(&plain, &header.filter, TablePart::Filter, at)?,
                None => PlacedSlice::new_zeroed(0, at)?,
            };
            let hot = read_hot(&plain, &header, options.load_hot_entries, at)?;
            Ok((index, group_index, filter, hot))
        })()
        .map_err(|fault: OpenError| fault.with_path(path))?;
        let file = file::open_for_direct_reading(path).map_err(opened)?;
        let (access, placement) = (options.access, at.clone());
        let path = path.to_path_buf();
        let layout = header.filter_layout();
        let mut table = Table {
            path,
            header,
            index,
            group_index,
            filter,
            filter_layout: layout,
            hot,
            pages: None,
            file,
            access,
            placement,
        };
        if access == PageReadMethod::Memory {
            table.pages = Some(table.read_pages()?);
        }
        Ok(table)
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

    /// Number of pages of entries, of 4096 bytes each.
    pub fn num_pages(&self) -> u64 {
        self.header.pages
    }

    /// Memory that the open table takes, in bytes, by part.
    pub fn memory_bytes_by_part(&self) -> TableMemoryBytes {
        let pages = self.pages.as_ref().map_or(0, |pages| size_of_val(&pages[..]) as u64);
        let filter = size_of_val(&self.filter[..]) as u64;
        let group_index_bytes = self.group_index.as_ref().map_or(0, FirstKeyIndex::memory_bytes);
        let index = (self.index.memory_bytes() + group_index_bytes) as u64;
        TableMemoryBytes { index, filter, hot: self.hot.memory_bytes() as u64, pages }
    }

    /// Checks the checksum and the first key of a page of entries that was read, and the header of a compact page.
    /// `number` counts from 0.
    pub(crate) fn check_page<'p>(&self, number: u64, page: &'p Page) -> Result<CheckedPage<'p>, Error> {
        let shape = self.header.page_layout;
        let what = if !page.has_valid_checksum(number + 1) {
            "its checksum does not match"
        } else if shape.num_entries_of_page(page, number, self.header.entries).is_none() {
            compact_page::DAMAGED_COMPACT_PAGE_MESSAGE
        } else if shape.first_key_of_page(page) != self.index.first_keys()[number as usize] {
            "its first key differs from the index"
        } else {
            return Ok(CheckedPage::assume_checked(self, number, page));
        };
        Err(self.damaged_page_error(number, what))
    }

    /// Creates the error for a damaged page. `number` counts from 0.
    pub(crate) fn damaged_page_error(&self, number: u64, what: &'static str) -> Error {
        Error::Damaged { path: self.path.clone(), part: format::table_part_of_page(number), what }
    }

    /// Reads all pages of entries into memory and checks them.
    fn read_pages(&self) -> Result<PlacedSlice<Page>, Error> {
        let memory = |source| Error::NotEnoughMemory { path: self.path.clone(), source };
        let mut pages: PlacedSlice<Page> =
            PlacedSlice::new_zeroed(self.num_pages() as usize, &self.placement).map_err(memory)?;
        for (piece, first) in pages.chunks_mut(256).zip((0..).step_by(256)) {
            file::read_entry_pages(&self.path, &self.file, piece, first)?;
            for (page, number) in piece.iter().zip(first..) {
                self.check_page(number, page)?;
            }
        }
        Ok(pages)
    }
}

/// A page of entries whose checksum is valid.
pub(crate) struct CheckedPage<'p> {
    page: &'p Page,
    entries: usize,
    shape: PageLayout,
}

impl<'p> CheckedPage<'p> {
    /// Wraps a page whose checksum and header were checked before.
    pub(crate) fn assume_checked(table: &Table, number: u64, page: &'p Page) -> CheckedPage<'p> {
        let shape = table.header.page_layout;
        let entries = shape.num_entries_of_page(page, number, table.header.entries).unwrap_or(0);
        CheckedPage { page, entries, shape }
    }

    /// Decodes all entries of the page, and replaces the content of `keys` and `values` by them.
    ///
    /// # Errors
    /// The content is not a valid compact page.
    pub(crate) fn decode_entries(&self, keys: &mut Vec<u64>, values: &mut Vec<u8>) -> Result<(), &'static str> {
        keys.resize(self.entries, 0);
        values.resize(self.entries * self.shape.value_bytes, 0);
        self.shape.decode_entries(self.page, keys, values).ok_or(compact_page::DAMAGED_COMPACT_PAGE_MESSAGE)
    }

    /// Copies the value of `key` to `value`. Returns whether the page has the key.
    ///
    /// # Errors
    /// The content is not a valid compact page.
    #[inline]
    pub(crate) fn copy_value_of_key(&self, key: u64, value: &mut [u8]) -> Result<bool, &'static str> {
        match self.shape.encoding {
            PageEncoding::Fixed => {
                let found = self.shape.keys_of_fixed_page(self.page, self.entries).binary_search(&key);
                Ok(found
                    .map(|entry| value.copy_from_slice(self.shape.entry_value_on_fixed_page(self.page, entry)))
                    .is_ok())
            }
            PageEncoding::Compact => {
                let damaged = compact_page::DAMAGED_COMPACT_PAGE_MESSAGE;
                let page = CompactPage::parse_header(self.page, self.shape.counts_per_entry()).ok_or(damaged)?;
                let Some(entry) = page.find_entry(key) else { return Ok(false) };
                page.decode_counts_of_entry(entry, value.as_chunks_mut().0).ok_or(damaged)?;
                Ok(true)
            }
        }
    }
}

/// Reads and checks the header page of a table.
pub(crate) fn read_header(path: &Path, file: &File) -> Result<TableHeader, Error> {
    let unread = |source| Error::Read { path: path.to_path_buf(), part: TablePart::Header, source };
    let found = file.metadata().map_err(unread)?.len();
    let mut page = Page::zeroed();
    let present = found.min(PAGE_BYTES as u64) as usize;
    file.read_exact_at(&mut page.0[..present], 0).map_err(unread)?;
    let path = path.to_path_buf();
    let parsed = TableHeader::parse_header_page(&page);
    if present < PAGE_BYTES && !matches!(parsed, Err(HeaderError::NotATable)) {
        return Err(Error::WrongFileLength { path, found, wanted: PAGE_BYTES as u64 });
    }
    let header = parsed.map_err(|misfit| match misfit {
        HeaderError::NotATable => Error::NotATable { path: path.clone() },
        HeaderError::Version(found) => {
            Error::UnsupportedVersion { path: path.clone(), found, known: NEWEST_TABLE_FORMAT_VERSION }
        }
        HeaderError::Damaged(what) => Error::Damaged { path: path.clone(), part: TablePart::Header, what },
    })?;
    let wanted = header.file_bytes();
    if found == wanted { Ok(header) } else { Err(Error::WrongFileLength { path, found, wanted }) }
}

/// Reads a section of the file into `bytes` and checks its checksum.
fn read_and_check(file: &File, section: &FileSection, part: TablePart, bytes: &mut [u8]) -> Result<(), OpenError> {
    file.read_exact_at(bytes, section.offset).map_err(|error| OpenError::Read(part, error))?;
    let mut checksum = SectionChecksum::default();
    checksum.add_bytes(bytes);
    let fits = checksum.checksum() == section.checksum;
    if fits { Ok(()) } else { Err(OpenError::Damaged(part, "its checksum does not match")) }
}

fn read_section<T: Pod>(
    file: &File,
    section: &FileSection,
    part: TablePart,
    at: &MemoryPlacement,
) -> Result<PlacedSlice<T>, OpenError> {
    let mut elements = PlacedSlice::new_zeroed(section.bytes as usize / size_of::<T>(), at)?;
    read_and_check(file, section, part, bytemuck::cast_slice_mut(&mut elements))?;
    Ok(elements)
}

/// Reads and checks the index: the first keys of pages, and those of filter groups if groups do not begin with pages.
fn read_index(
    file: &File,
    header: &TableHeader,
    at: &MemoryPlacement,
) -> Result<(FirstKeyIndex, Option<FirstKeyIndex>), OpenError> {
    let keys: PlacedSlice<u64> = read_section(file, &header.index, TablePart::Index, at)?;
    let (pages, groups) = keys.split_at(header.pages as usize);
    for firsts in [pages, groups] {
        if !firsts.is_sorted_by(|a, b| a < b) {
            return Err(OpenError::Damaged(TablePart::Index, "its keys are not in order"));
        }
        let ends = (firsts.first().copied(), firsts.last().copied());
        if ends.0.is_some_and(|first| first != header.first_key) || ends.1.is_some_and(|last| last > header.last_key) {
            return Err(OpenError::Damaged(TablePart::Index, "its first or last key differs from the header"));
        }
    }
    let new_index = |firsts: &[u64]| {
        FirstKeyIndex::build(firsts.len(), at, |keys| {
            keys.copy_from_slice(firsts);
            Ok::<(), OpenError>(())
        })
    };
    let group_index = if groups.is_empty() { None } else { Some(new_index(groups)?) };
    Ok((new_index(pages)?, group_index))
}

/// Reads and checks the hot entries. Returns an empty table if `wanted` is false.
fn read_hot(file: &File, header: &TableHeader, wanted: bool, at: &MemoryPlacement) -> Result<HotEntries, OpenError> {
    let bytes: PlacedSlice<u8> = read_section(file, &header.hot, TablePart::HotEntries, at)?;
    let count = header.num_hot_entries() as usize;
    if count > HotEntries::MAX_HOT_ENTRIES {
        return Err(OpenError::Damaged(TablePart::HotEntries, "there are too many"));
    }
    let (keys, values) = bytes.split_at(count * format::KEY_BYTES);
    // An empty slice of bytes may be unaligned.
    let keys: &[u64] = if keys.is_empty() { &[] } else { bytemuck::cast_slice(keys) };
    if !keys.is_sorted_by(|a, b| a < b) {
        return Err(OpenError::Damaged(TablePart::HotEntries, "its keys are not in order"));
    }
    let (keys, values) = if wanted { (keys, values) } else { (&keys[..0], &values[..0]) };
    Ok(HotEntries::build_hash_table(keys, PlacedSlice::from_slice(values, at)?, header.page_layout.value_bytes, at)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LookupResults, TableSpec, TableWriter};

    #[test]
    fn a_table_of_the_version_before_answers_without_its_filter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let mut writer = TableWriter::create(&path, TableSpec::new(4, 40_000)).unwrap();
        let keys: Vec<u64> = (0..40_000).map(|i| 7 + 3 * i).collect();
        keys.iter().for_each(|&key| writer.push_entry(key, &(key as u32).to_le_bytes(), 0).unwrap());
        writer.finish_and_publish().unwrap();
        let mut results = LookupResults::new();
        let mut told = Vec::new();
        for before in [false, true] {
            if before {
                let file = File::options().read(true).write(true).open(&path).unwrap();
                let header = TableHeader { filter_blocks_per_unit: None, ..read_header(&path, &file).unwrap() };
                file.write_all_at(&header.to_header_page().0, 0).unwrap();
            }
            let table = Table::open(&path, &TableOpenOptions::default()).unwrap();
            assert_eq!(table.memory_bytes_by_part().filter == 0, before);
            let mut reader = table.new_reader(16).unwrap();
            let asked: Vec<u64> = (0..120_010).collect();
            reader.get_many(&asked, &mut results).unwrap();
            for (key, found) in asked.iter().zip(results.iter()) {
                let there = *key >= 7 && (key - 7) % 3 == 0 && *key < 120_007;
                assert_eq!(found, there.then_some(&(*key as u32).to_le_bytes()[..]), "{key}");
            }
            told.push(reader.lookup_statistics().known_absent);
        }
        assert!(told[0] > 79_000 && told[1] == 12, "{told:?}");
    }
}
