//! The file format of a table: header, pages of entries, and sections. `docs/formats/table.md` documents it.

use std::hash::Hasher;

use bytemuck::Zeroable;
use twox_hash::XxHash3_64;

use crate::compact_page::{self, CompactPage, CompactPageEncoding};
use crate::error::TablePart;
use crate::filter::{self, ENTRIES_PER_COMPACT_FILTER_GROUP, FILTER_UNITS_PER_GROUP, FilterLayout};

pub(crate) use crate::page::{CHECKSUMMED_BYTES, PAGE_BYTES, Page};

#[cfg(target_endian = "big")]
compile_error!("tables are little-endian and are read where they lie");

/// Size of a key in bytes.
pub(crate) const KEY_BYTES: usize = 8;
/// Maximum size of a value in bytes. One entry with a value of this size fills a page.
pub const MAX_VALUE_BYTES: usize = CHECKSUMMED_BYTES - KEY_BYTES;
/// Maximum size in bytes of the metadata note in the header.
pub const MAX_NOTE_BYTES: usize = 2048;
/// Size in bytes of a count in a table with compact pages.
pub(crate) const COUNT_BYTES: usize = 4;
/// Newest format version, which introduced compact pages.
pub(crate) const NEWEST_TABLE_FORMAT_VERSION: u32 = 3;
/// Format version of tables whose pages have a fixed layout.
const FIXED_LAYOUT_VERSION: u32 = 2;
/// Oldest format version, with a single filter for all pages. Such tables are read without their filter.
const SINGLE_FILTER_VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"GENUMATB";
/// Byte offset of the metadata note in the header.
const NOTE_OFFSET: usize = 192;

/// Checksum of a section, computed while the section is read or written.
#[derive(Default)]
pub(crate) struct SectionChecksum(XxHash3_64);

impl SectionChecksum {
    /// Includes bytes in the checksum.
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The checksum of all bytes included so far.
    pub(crate) fn checksum(&self) -> u64 {
        self.0.finish()
    }
}

/// How entries are stored in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageEncoding {
    /// Uncompressed: first all keys in order, then all values in order. All pages but the last have the same number of
    /// entries.
    Fixed,
    /// Compressed, for values that consist of 32-bit counts: distances between keys, and counts, in as few bits as they
    /// need.
    Compact,
}

/// How the entries of a table are stored in its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLayout {
    /// Size of a value in bytes.
    pub value_bytes: usize,
    /// Maximum number of entries on a page. With [`PageEncoding::Fixed`], all pages but the last have this number.
    pub entries_per_page: usize,
    /// How the entries are encoded.
    pub encoding: PageEncoding,
}

impl PageLayout {
    /// Layout with [`PageEncoding::Fixed`] for values of `value` bytes, at most [`MAX_VALUE_BYTES`].
    pub(crate) fn new_fixed_layout(value: usize) -> PageLayout {
        let entries_per_page = CHECKSUMMED_BYTES / (KEY_BYTES + value);
        PageLayout { value_bytes: value, entries_per_page, encoding: PageEncoding::Fixed }
    }

    /// Layout with [`PageEncoding::Compact`] for values of `value` bytes.
    pub(crate) fn new_compact_layout(value: usize) -> PageLayout {
        let entries_per_page = compact_page::MAX_ENTRIES_PER_COMPACT_PAGE;
        PageLayout { value_bytes: value, entries_per_page, encoding: PageEncoding::Compact }
    }

    /// Number of 32-bit counts in the value of an entry.
    pub(crate) fn counts_per_entry(&self) -> usize {
        self.value_bytes / COUNT_BYTES
    }

    /// Maximum number of pages for `entries` entries; exact with [`PageEncoding::Fixed`].
    pub(crate) fn max_pages_for_entries(&self, entries: u64) -> u64 {
        match self.encoding {
            PageEncoding::Fixed => entries.div_ceil(self.entries_per_page as u64),
            // The code of a page may be a poor one, so a page may have few entries.
            PageEncoding::Compact => entries.div_ceil(compact_page::min_entries_per_full_page(self.counts_per_entry())),
        }
    }

    /// Number of entries that share one Bloom filter.
    pub(crate) fn entries_per_filter_group(&self) -> u64 {
        match self.encoding {
            PageEncoding::Fixed => FILTER_UNITS_PER_GROUP * self.entries_per_page as u64,
            PageEncoding::Compact => ENTRIES_PER_COMPACT_FILTER_GROUP,
        }
    }

    /// Number of entries for which the filter has [`FilterLayout::blocks_per_unit`] blocks: one 64th of a group.
    pub(crate) fn entries_per_filter_unit(&self) -> u64 {
        self.entries_per_filter_group() / FILTER_UNITS_PER_GROUP
    }

    /// Number of first keys of groups that the index stores in addition to those of pages; 0 with
    /// [`PageEncoding::Fixed`], whose groups begin with pages.
    pub(crate) fn num_group_first_keys(&self, entries: u64) -> u64 {
        match self.encoding {
            PageEncoding::Fixed => 0,
            PageEncoding::Compact => entries.div_ceil(ENTRIES_PER_COMPACT_FILTER_GROUP),
        }
    }

    /// Number of entries on page `number` (from 0) of a table with `entries` entries. `None` if the page is compact and
    /// damaged.
    pub(crate) fn num_entries_of_page(&self, page: &Page, number: u64, entries: u64) -> Option<usize> {
        match self.encoding {
            PageEncoding::Fixed => Some(self.num_entries_of_fixed_page(number, entries)),
            PageEncoding::Compact => Some(CompactPage::parse_header(page, self.counts_per_entry())?.num_entries()),
        }
    }

    /// Encodes the entries of a complete page, without its checksum. `code` has the parameters of a compact page;
    /// `None` with a fixed layout.
    pub(crate) fn encode_page(&self, code: Option<&CompactPageEncoding>, keys: &[u64], values: &[u8], page: &mut Page) {
        match code {
            None => self.encode_fixed_page(page, keys, values),
            Some(code) => compact_page::encode_page(code, keys, values.as_chunks().0, page),
        }
    }

    /// Decodes the entries of a page into `keys` and `values`, whose lengths must match the number of entries. `None`
    /// if the page is damaged. Does not check the checksum.
    pub(crate) fn decode_entries(&self, page: &Page, keys: &mut [u64], values: &mut [u8]) -> Option<()> {
        match self.encoding {
            PageEncoding::Fixed => {
                keys.copy_from_slice(self.keys_of_fixed_page(page, keys.len()));
                values.copy_from_slice(self.values_of_fixed_page(page, keys.len()));
                Some(())
            }
            PageEncoding::Compact => {
                let compact = CompactPage::parse_header(page, self.counts_per_entry())?;
                compact.decode_keys(keys)?;
                compact.decode_counts(values.as_chunks_mut().0)
            }
        }
    }

    /// Number of entries on page `page` (from 0) of a table with `entries` entries and a fixed layout.
    pub(crate) fn num_entries_of_fixed_page(&self, page: u64, entries: u64) -> usize {
        let before = page * self.entries_per_page as u64;
        (entries - before).min(self.entries_per_page as u64) as usize
    }

    /// The first (smallest) key on a page.
    pub(crate) fn first_key_of_page(&self, page: &Page) -> u64 {
        let at = match self.encoding {
            PageEncoding::Fixed => 0,
            PageEncoding::Compact => compact_page::FIRST_KEY_OFFSET_BYTES,
        };
        u64::from_le_bytes(page.0[at..at + KEY_BYTES].try_into().unwrap_or_default())
    }

    /// The keys of a page with a fixed layout and `entries` entries.
    pub(crate) fn keys_of_fixed_page<'p>(&self, page: &'p Page, entries: usize) -> &'p [u64] {
        bytemuck::cast_slice(&page.0[..entries * KEY_BYTES])
    }

    /// The value of entry number `entry` (from 0) of a page with a fixed layout.
    pub(crate) fn entry_value_on_fixed_page<'p>(&self, page: &'p Page, entry: usize) -> &'p [u8] {
        let start = self.entries_per_page * KEY_BYTES + entry * self.value_bytes;
        &page.0[start..start + self.value_bytes]
    }

    /// All values of a page with a fixed layout and this number of entries, concatenated.
    pub(crate) fn values_of_fixed_page<'p>(&self, page: &'p Page, entries: usize) -> &'p [u8] {
        &page.0[self.entries_per_page * KEY_BYTES..][..entries * self.value_bytes]
    }

    /// Writes the entries of a page with a fixed layout, without its checksum.
    pub(crate) fn encode_fixed_page(&self, page: &mut Page, keys: &[u64], values: &[u8]) {
        page.0.fill(0);
        let bytes: &[u8] = bytemuck::cast_slice(keys);
        page.0[..bytes.len()].copy_from_slice(bytes);
        page.0[self.entries_per_page * KEY_BYTES..][..values.len()].copy_from_slice(values);
    }
}

/// Position, length and checksum of a section of the file, after the pages of entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileSection {
    /// Byte offset of the section in the file, a multiple of [`PAGE_BYTES`].
    pub offset: u64,
    /// Length of the section in bytes, without the padding of its last page.
    pub bytes: u64,
    /// Checksum of the bytes of the section.
    pub checksum: u64,
}

impl FileSection {
    /// Byte offset of the first page after the section: its end, rounded up to whole pages.
    pub(crate) fn padded_end_offset(&self) -> u64 {
        self.offset + self.bytes.next_multiple_of(PAGE_BYTES as u64)
    }
}

/// Content of the header page of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableHeader {
    /// How entries are stored in pages.
    pub page_layout: PageLayout,
    /// Number of entries.
    pub entries: u64,
    /// Number of pages of entries.
    pub pages: u64,
    /// Smallest key; 0 in an empty table.
    pub first_key: u64,
    /// Largest key; 0 in an empty table.
    pub last_key: u64,
    /// Section of the index: the first key of each page, and with compact pages also the first key of each filter
    /// group.
    pub index: FileSection,
    /// Section of the filter: the blocks of the Bloom filters.
    pub filter: FileSection,
    /// Number of filter blocks per filter unit: per page, or per 256 entries with compact pages. `None` in a table of
    /// format version 1.
    pub(crate) filter_blocks_per_unit: Option<u64>,
    /// Section of the hot entries: all keys, then all values.
    pub hot: FileSection,
    /// Metadata note that the writer stored.
    pub note: Vec<u8>,
}

/// Why the header page of a file is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// The file does not begin with the magic bytes of a table.
    NotATable,
    /// The file has this format version, which is not supported.
    Version(u32),
    /// A field of the header is invalid. Contains a description.
    Damaged(&'static str),
}

impl TableHeader {
    /// Format version of the table.
    fn version(&self) -> u32 {
        match (self.page_layout.encoding, self.filter_blocks_per_unit) {
            (PageEncoding::Compact, _) => NEWEST_TABLE_FORMAT_VERSION,
            (PageEncoding::Fixed, Some(_)) => FIXED_LAYOUT_VERSION,
            (PageEncoding::Fixed, None) => SINGLE_FILTER_VERSION,
        }
    }

    /// Length of the whole file in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.hot.padded_end_offset()
    }

    /// Layout of the filter blocks, without blocks if the table has no filter or one that cannot be used.
    pub(crate) fn filter_layout(&self) -> FilterLayout {
        let units = self.entries.div_ceil(self.page_layout.entries_per_filter_unit());
        FilterLayout::with_blocks_per_unit(self.filter_blocks_per_unit.unwrap_or(0), units)
    }

    /// Number of hot entries in the file.
    pub(crate) fn num_hot_entries(&self) -> u64 {
        self.hot.bytes / (KEY_BYTES + self.page_layout.value_bytes) as u64
    }

    /// Encodes the header as a page.
    pub(crate) fn to_header_page(&self) -> Page {
        let mut page = Page::zeroed();
        let mut put = |at: usize, bytes: &[u8]| page.0[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        let words = [
            self.version(),
            PAGE_BYTES as u32,
            self.page_layout.value_bytes as u32,
            self.page_layout.entries_per_page as u32,
        ];
        put(8, bytemuck::cast_slice(&words));
        let section = |part: &FileSection| [part.offset, part.bytes, part.checksum];
        let [index, filter, hot] = [&self.index, &self.filter, &self.hot].map(section);
        put(24, bytemuck::cast_slice(&[self.entries, self.pages, self.first_key, self.last_key]));
        put(56, bytemuck::cast_slice(&[index, filter, hot]));
        put(128, bytemuck::cast_slice(&[self.note.len() as u64, self.filter_blocks_per_unit.unwrap_or(0)]));
        put(NOTE_OFFSET, &self.note);
        page.write_checksum(0);
        page
    }

    /// Parses a header page and checks that its fields are consistent.
    pub(crate) fn parse_header_page(page: &Page) -> Result<TableHeader, HeaderError> {
        let word = |at: usize| u64::from_le_bytes(page.0[at..at + 8].try_into().expect("8 bytes"));
        let half = |at: usize| u32::from_le_bytes(page.0[at..at + 4].try_into().expect("4 bytes"));
        if page.0[..8] != MAGIC {
            return Err(HeaderError::NotATable);
        }
        let version = half(8);
        if !(SINGLE_FILTER_VERSION..=NEWEST_TABLE_FORMAT_VERSION).contains(&version) {
            return Err(HeaderError::Version(version));
        }
        let fits = |fits: bool, what| if fits { Ok(()) } else { Err(HeaderError::Damaged(what)) };
        fits(page.has_valid_checksum(0), "its checksum does not match")?;
        fits(half(12) as usize == PAGE_BYTES, "pages are not of 4096 bytes")?;
        fits(half(16) as usize <= MAX_VALUE_BYTES, "values are too large")?;
        let is_compact = version == NEWEST_TABLE_FORMAT_VERSION;
        let value_bytes = half(16) as usize;
        let shape = if is_compact {
            PageLayout::new_compact_layout(value_bytes)
        } else {
            PageLayout::new_fixed_layout(value_bytes)
        };
        let max_counts = compact_page::MAX_COUNTS_PER_ENTRY;
        let are_counts =
            value_bytes.is_multiple_of(COUNT_BYTES) && (1..=max_counts).contains(&shape.counts_per_entry());
        fits(!is_compact || are_counts, "values are no counts")?;
        fits(half(20) as usize == shape.entries_per_page, "the number of entries per page does not match their size")?;
        let section = |at| FileSection { offset: word(at), bytes: word(at + 8), checksum: word(at + 16) };
        let note = word(128);
        fits(note <= MAX_NOTE_BYTES as u64, "the note is too long")?;
        let header = TableHeader {
            page_layout: shape,
            entries: word(24),
            pages: word(32),
            first_key: word(40),
            last_key: word(48),
            index: section(56),
            filter: section(80),
            filter_blocks_per_unit: (version != SINGLE_FILTER_VERSION).then(|| word(136)),
            hot: section(104),
            note: page.0[NOTE_OFFSET..NOTE_OFFSET + note as usize].to_vec(),
        };
        fits(header.entries < 1 << 56, "there are too many entries")?;
        let min_pages = header.entries.div_ceil(shape.entries_per_page as u64);
        let max_pages_for_entries = if is_compact { header.entries } else { min_pages };
        let num_pages_fits = (min_pages..=max_pages_for_entries).contains(&header.pages) && header.pages < 1 << 48;
        fits(num_pages_fits, "the number of pages does not match the number of entries")?;
        fits(header.first_key <= header.last_key, "the smallest key is above the largest")?;
        let [index, filter, hot] = [&header.index, &header.filter, &header.hot];
        fits(index.offset == (1 + header.pages) * PAGE_BYTES as u64, "the index has a wrong offset")?;
        let index_keys = header.pages + shape.num_group_first_keys(header.entries);
        fits(index.bytes == index_keys * KEY_BYTES as u64, "the index has a wrong length")?;
        fits(filter.bytes < 1 << 56 && hot.bytes < 1 << 56, "a part is too long")?;
        fits(
            filter.offset == index.padded_end_offset() && filter.bytes.is_multiple_of(64),
            "the filter has a wrong offset",
        )?;
        fits(
            header.filter_blocks_per_unit.is_none_or(|each| each <= filter::MAX_FILTER_BLOCKS_PER_UNIT),
            "the filter has too many blocks",
        )?;
        let blocks = header.filter_blocks_per_unit.map_or(filter.bytes / 64, |_| header.filter_layout().num_blocks());
        fits(filter.bytes == blocks * 64, "the filter has a wrong length")?;
        fits(hot.offset == filter.padded_end_offset(), "the hot entries have a wrong offset")?;
        fits(hot.bytes.is_multiple_of((KEY_BYTES + shape.value_bytes) as u64), "the hot entries have a wrong length")?;
        fits(header.num_hot_entries() <= header.entries, "there are more hot entries than entries")?;
        Ok(header)
    }
}

/// The part of a table file that error messages name for a page of entries. `page` counts from 0 without the header;
/// [`TablePart::Page`] counts the header too.
pub(crate) fn table_part_of_page(page: u64) -> TablePart {
    TablePart::Page(page + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> TableHeader {
        let shape = PageLayout::new_fixed_layout(128);
        let pages = shape.max_pages_for_entries(1000);
        let index = FileSection { offset: (1 + pages) * 4096, bytes: pages * 8, checksum: 1 };
        let filter = FileSection { offset: index.padded_end_offset(), bytes: 64 * 3 * 64, checksum: 2 };
        let hot = FileSection { offset: filter.padded_end_offset(), bytes: 136 * 7, checksum: 3 };
        let note = b"k 31".to_vec();
        TableHeader {
            page_layout: shape,
            entries: 1000,
            pages,
            first_key: 5,
            last_key: u64::MAX,
            index,
            filter,
            filter_blocks_per_unit: Some(3),
            hot,
            note,
        }
    }

    #[test]
    fn a_header_says_what_it_was_told() {
        let header = header();
        assert_eq!(TableHeader::parse_header_page(&header.to_header_page()), Ok(header.clone()));
        assert_eq!((header.pages, header.num_hot_entries()), (34, 7));
        assert_eq!(header.file_bytes(), (1 + 34 + 1 + 3 + 1) * 4096);
        let before = TableHeader { filter_blocks_per_unit: None, ..header };
        assert_eq!(TableHeader::parse_header_page(&before.to_header_page()), Ok(before.clone()));
        assert_eq!(before.filter_layout().num_blocks(), 0);
    }

    #[test]
    fn no_bit_of_a_header_may_change() {
        let page = header().to_header_page();
        for bit in 0..PAGE_BYTES * 8 {
            let mut other = page;
            other.0[bit / 8] ^= 1 << (bit % 8);
            let said = TableHeader::parse_header_page(&other);
            match bit / 8 {
                0..8 => assert_eq!(said, Err(HeaderError::NotATable)),
                // One bit makes it version 3, whose checksum is then wrong.
                8..12 => assert!(matches!(said, Err(HeaderError::Version(_) | HeaderError::Damaged(_)))),
                _ => assert!(matches!(said, Err(HeaderError::Damaged(_))), "bit {bit}: {said:?}"),
            }
        }
    }

    /// The checksum is valid, as a faulty writer would leave it.
    #[test]
    fn parts_have_to_fit_together() {
        for (at, what) in [
            (12, "pages are not of 4096 bytes"),
            (17, "values are too large"),
            (20, "the number of entries per page does not match their size"),
            (31, "there are too many entries"),
            (32, "the number of pages does not match the number of entries"),
            (54, "the smallest key is above the largest"),
            (56, "the index has a wrong offset"),
            (64, "the index has a wrong length"),
            (95, "a part is too long"),
            (81, "the filter has a wrong offset"),
            (104, "the hot entries have a wrong offset"),
            (89, "the filter has a wrong length"),
            (136, "the filter has too many blocks"),
            (112, "the hot entries have a wrong length"),
            (130, "the note is too long"),
        ] {
            let mut page = TableHeader { first_key: u64::MAX, ..header() }.to_header_page();
            page.0[at] ^= 0xff;
            page.write_checksum(0);
            assert_eq!(TableHeader::parse_header_page(&page), Err(HeaderError::Damaged(what)), "byte {at}");
        }
    }

    #[test]
    fn whole_entries_fill_a_page() {
        for (value, per_page) in [(0, 511), (1, 454), (8, 255), (128, 30), (2036, 2), (2037, 1), (4080, 1)] {
            let shape = PageLayout::new_fixed_layout(value);
            assert_eq!(shape.entries_per_page, per_page);
            let mut page = Page::zeroed();
            let bytes = vec![0xa5; value];
            let keys: Vec<u64> = (0..per_page as u64).map(|entry| u64::MAX - entry).collect();
            shape.encode_fixed_page(&mut page, &keys, &bytes.repeat(per_page));
            page.write_checksum(3);
            assert!(page.has_valid_checksum(3) && !page.has_valid_checksum(4));
            assert_eq!(shape.keys_of_fixed_page(&page, per_page)[per_page - 1], u64::MAX - (per_page as u64 - 1));
            assert_eq!(shape.entry_value_on_fixed_page(&page, per_page - 1), bytes);
        }
    }
}
