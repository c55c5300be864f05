//! The file format of a table: header, pages of entries, and sections. Documented in `docs/formats/table.md`.

use std::hash::Hasher;

use bytemuck::{Pod, Zeroable};
use twox_hash::XxHash3_64;

use crate::error::TablePart;
use crate::filter::{self, FilterLayout};

#[cfg(target_endian = "big")]
compile_error!("tables are little-endian and are read where they lie");

/// Bytes of a page, the unit of reading.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Bytes of a page that its checksum covers.
const CHECKSUMMED_BYTES: usize = PAGE_BYTES - 8;
pub(crate) const KEY_BYTES: usize = 8;
/// Maximum size of a value in bytes: one entry then fills a page.
pub const MAX_VALUE_BYTES: usize = CHECKSUMMED_BYTES - KEY_BYTES;
/// Maximum size of the note in a header, in bytes.
pub const MAX_NOTE_BYTES: usize = 2048;
/// Format version that is written.
pub(crate) const TABLE_FORMAT_VERSION: u32 = 2;
/// Format version with a single filter for all pages. It is still read, but without its filter.
const SINGLE_FILTER_VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"GENUMATB";
/// Byte offset of the note in the header.
const NOTE_OFFSET: usize = 192;

/// One page, aligned for direct I/O.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(4096))]
pub(crate) struct Page(pub [u8; PAGE_BYTES]);

impl Page {
    /// Checksum of the page's bytes before the checksum field. The page number is part of it, so a page at a wrong
    /// place is detected.
    fn checksum(&self, number: u64) -> u64 {
        XxHash3_64::oneshot_with_seed(number, &self.0[..CHECKSUMMED_BYTES])
    }

    /// Writes the checksum of page number `number` into the page.
    pub(crate) fn write_checksum(&mut self, number: u64) {
        let checksum = self.checksum(number);
        self.0[CHECKSUMMED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Whether the checksum is that of page number `number`.
    pub(crate) fn has_valid_checksum(&self, number: u64) -> bool {
        self.0[CHECKSUMMED_BYTES..] == self.checksum(number).to_le_bytes()
    }
}

/// Running checksum of a section, which is not made of pages.
#[derive(Default)]
pub(crate) struct SectionChecksum(XxHash3_64);

impl SectionChecksum {
    /// Adds bytes to the checksum.
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The checksum of all bytes added so far.
    pub(crate) fn checksum(&self) -> u64 {
        self.0.finish()
    }
}

/// Layout of entries in a page: first all keys in order, then all values in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLayout {
    /// Size of a value in bytes.
    pub value_bytes: usize,
    /// Entries per full page. All pages but the last are full.
    pub entries_per_page: usize,
}

impl PageLayout {
    /// Layout for values of `value` bytes, at most [`MAX_VALUE_BYTES`].
    pub(crate) fn new(value: usize) -> PageLayout {
        PageLayout { value_bytes: value, entries_per_page: CHECKSUMMED_BYTES / (KEY_BYTES + value) }
    }

    /// Number of pages that `entries` entries need.
    pub(crate) fn count_pages(&self, entries: u64) -> u64 {
        entries.div_ceil(self.entries_per_page as u64)
    }

    /// Number of entries on page `page` (from 0) of a table with `entries` entries.
    pub(crate) fn entries_in_page(&self, page: u64, entries: u64) -> usize {
        let before = page * self.entries_per_page as u64;
        (entries - before).min(self.entries_per_page as u64) as usize
    }

    /// The keys of a page with this number of entries.
    pub(crate) fn keys_of_page<'p>(&self, page: &'p Page, entries: usize) -> &'p [u64] {
        bytemuck::cast_slice(&page.0[..entries * KEY_BYTES])
    }

    /// The value of entry number `entry` of a page.
    pub(crate) fn value_of_entry<'p>(&self, page: &'p Page, entry: usize) -> &'p [u8] {
        let start = self.entries_per_page * KEY_BYTES + entry * self.value_bytes;
        &page.0[start..start + self.value_bytes]
    }

    /// All values of a page with this number of entries, concatenated.
    pub(crate) fn values_of_page<'p>(&self, page: &'p Page, entries: usize) -> &'p [u8] {
        &page.0[self.entries_per_page * KEY_BYTES..][..entries * self.value_bytes]
    }

    /// Writes consecutive entries into a page, starting at entry number `first`.
    #[inline]
    pub(crate) fn write_entries(&self, page: &mut Page, first: usize, keys: &[u64], values: &[u8]) {
        let bytes: &[u8] = bytemuck::cast_slice(keys);
        page.0[first * KEY_BYTES..][..bytes.len()].copy_from_slice(bytes);
        page.0[self.entries_per_page * KEY_BYTES + first * self.value_bytes..][..values.len()].copy_from_slice(values);
    }

    /// Writes one entry into a page.
    #[inline]
    pub(crate) fn write_entry(&self, page: &mut Page, entry: usize, key: u64, value: &[u8]) {
        page.0[entry * KEY_BYTES..][..KEY_BYTES].copy_from_slice(&key.to_le_bytes());
        let start = self.entries_per_page * KEY_BYTES + entry * self.value_bytes;
        let room = &mut page.0[start..start + self.value_bytes];
        // Common sizes are copied without a function call.
        match value.len() {
            4 => room[..4].copy_from_slice(&value[..4]),
            8 => room[..8].copy_from_slice(&value[..8]),
            _ => room.copy_from_slice(value),
        }
    }
}

/// A section after the pages: offset, length and checksum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileSection {
    /// Offset of the first byte, a multiple of [`PAGE_BYTES`].
    pub offset: u64,
    /// Length in bytes, without the padding of the last page.
    pub bytes: u64,
    /// Checksum of the section's bytes.
    pub checksum: u64,
}

impl FileSection {
    /// Offset of the first page after the section.
    pub(crate) fn end_offset(&self) -> u64 {
        self.offset + self.bytes.next_multiple_of(PAGE_BYTES as u64)
    }
}

/// Content of the header page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableHeader {
    /// Layout of entries in pages.
    pub page_layout: PageLayout,
    /// Number of keys with their values.
    pub entries: u64,
    /// Smallest key; 0 in an empty table.
    pub first_key: u64,
    /// Largest key; 0 in an empty table.
    pub last_key: u64,
    /// Section with the first key of each page.
    pub index: FileSection,
    /// Section with the blocks of the Bloom filter.
    pub filter: FileSection,
    /// Filter blocks per page. `None` in a table of format version 1.
    pub(crate) filter_blocks_per_page: Option<u64>,
    /// Section with the keys, then the values of the hot entries.
    pub hot: FileSection,
    /// Note stored by the writer.
    pub note: Vec<u8>,
}

/// Why a header page is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// The file is not a table.
    NotATable,
    /// The table has this unsupported format version.
    Version(u32),
    /// A field is inconsistent with the others.
    Damaged(&'static str),
}

impl TableHeader {
    /// Number of pages of entries.
    pub(crate) fn num_pages(&self) -> u64 {
        self.page_layout.count_pages(self.entries)
    }

    /// Length of the whole file in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.hot.end_offset()
    }

    /// Layout of the filter blocks. It has no blocks if the filter cannot be used.
    pub(crate) fn filter_layout(&self) -> FilterLayout {
        FilterLayout::new(self.filter_blocks_per_page.unwrap_or(0), self.num_pages())
    }

    pub(crate) fn num_hot_entries(&self) -> u64 {
        self.hot.bytes / (KEY_BYTES + self.page_layout.value_bytes) as u64
    }

    /// Encodes the header as a page.
    pub(crate) fn to_page(&self) -> Page {
        let mut page = Page::zeroed();
        let mut put = |at: usize, bytes: &[u8]| page.0[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        let version = if self.filter_blocks_per_page.is_some() { TABLE_FORMAT_VERSION } else { SINGLE_FILTER_VERSION };
        let words =
            [version, PAGE_BYTES as u32, self.page_layout.value_bytes as u32, self.page_layout.entries_per_page as u32];
        put(8, bytemuck::cast_slice(&words));
        let section = |part: &FileSection| [part.offset, part.bytes, part.checksum];
        let [index, filter, hot] = [&self.index, &self.filter, &self.hot].map(section);
        put(24, bytemuck::cast_slice(&[self.entries, self.num_pages(), self.first_key, self.last_key]));
        put(56, bytemuck::cast_slice(&[index, filter, hot]));
        put(128, bytemuck::cast_slice(&[self.note.len() as u64, self.filter_blocks_per_page.unwrap_or(0)]));
        put(NOTE_OFFSET, &self.note);
        page.write_checksum(0);
        page
    }

    /// Decodes a header page and checks that all fields are consistent.
    pub(crate) fn parse(page: &Page) -> Result<TableHeader, HeaderError> {
        let word = |at: usize| u64::from_le_bytes(page.0[at..at + 8].try_into().expect("8 bytes"));
        let half = |at: usize| u32::from_le_bytes(page.0[at..at + 4].try_into().expect("4 bytes"));
        if page.0[..8] != MAGIC {
            return Err(HeaderError::NotATable);
        }
        if !matches!(half(8), TABLE_FORMAT_VERSION | SINGLE_FILTER_VERSION) {
            return Err(HeaderError::Version(half(8)));
        }
        let fits = |fits: bool, what| if fits { Ok(()) } else { Err(HeaderError::Damaged(what)) };
        fits(page.has_valid_checksum(0), "its checksum does not match")?;
        fits(half(12) as usize == PAGE_BYTES, "pages are not of 4096 bytes")?;
        fits(half(16) as usize <= MAX_VALUE_BYTES, "values are too large")?;
        let shape = PageLayout::new(half(16) as usize);
        fits(half(20) as usize == shape.entries_per_page, "the number of entries per page does not match their size")?;
        let section = |at| FileSection { offset: word(at), bytes: word(at + 8), checksum: word(at + 16) };
        let note = word(128);
        fits(note <= MAX_NOTE_BYTES as u64, "the note is too long")?;
        let header = TableHeader {
            page_layout: shape,
            entries: word(24),
            first_key: word(40),
            last_key: word(48),
            index: section(56),
            filter: section(80),
            filter_blocks_per_page: (half(8) == TABLE_FORMAT_VERSION).then(|| word(136)),
            hot: section(104),
            note: page.0[NOTE_OFFSET..NOTE_OFFSET + note as usize].to_vec(),
        };
        fits(header.entries < 1 << 56, "there are too many entries")?;
        fits(word(32) == header.num_pages(), "the number of pages does not match the number of entries")?;
        fits(header.first_key <= header.last_key, "the smallest key is above the largest")?;
        let [index, filter, hot] = [&header.index, &header.filter, &header.hot];
        fits(index.offset == (1 + header.num_pages()) * PAGE_BYTES as u64, "the index has a wrong offset")?;
        fits(index.bytes == header.num_pages() * KEY_BYTES as u64, "the index has a wrong length")?;
        fits(filter.bytes < 1 << 56 && hot.bytes < 1 << 56, "a part is too long")?;
        fits(filter.offset == index.end_offset() && filter.bytes.is_multiple_of(64), "the filter has a wrong offset")?;
        fits(
            header.filter_blocks_per_page.is_none_or(|each| each <= filter::MAX_FILTER_BLOCKS_PER_PAGE),
            "the filter has too many blocks",
        )?;
        let blocks = header.filter_blocks_per_page.map_or(filter.bytes / 64, |_| header.filter_layout().num_blocks());
        fits(filter.bytes == blocks * 64, "the filter has a wrong length")?;
        fits(hot.offset == filter.end_offset(), "the hot entries have a wrong offset")?;
        fits(hot.bytes.is_multiple_of((KEY_BYTES + shape.value_bytes) as u64), "the hot entries have a wrong length")?;
        fits(header.num_hot_entries() <= header.entries, "there are more hot entries than entries")?;
        Ok(header)
    }
}

/// Names a page of entries in error messages. `page` counts from 0 without the header page; the number in
/// [`TablePart::Page`] includes it.
pub(crate) fn table_part_of_page(page: u64) -> TablePart {
    TablePart::Page(page + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> TableHeader {
        let shape = PageLayout::new(128);
        let pages = shape.count_pages(1000);
        let index = FileSection { offset: (1 + pages) * 4096, bytes: pages * 8, checksum: 1 };
        let filter = FileSection { offset: index.end_offset(), bytes: 64 * 3 * 64, checksum: 2 };
        let hot = FileSection { offset: filter.end_offset(), bytes: 136 * 7, checksum: 3 };
        let note = b"k 31".to_vec();
        TableHeader {
            page_layout: shape,
            entries: 1000,
            first_key: 5,
            last_key: u64::MAX,
            index,
            filter,
            filter_blocks_per_page: Some(3),
            hot,
            note,
        }
    }

    #[test]
    fn a_header_says_what_it_was_told() {
        let header = header();
        assert_eq!(TableHeader::parse(&header.to_page()), Ok(header.clone()));
        assert_eq!((header.num_pages(), header.num_hot_entries()), (34, 7));
        assert_eq!(header.file_bytes(), (1 + 34 + 1 + 3 + 1) * 4096);
        let before = TableHeader { filter_blocks_per_page: None, ..header };
        assert_eq!(TableHeader::parse(&before.to_page()), Ok(before.clone()));
        assert_eq!(before.filter_layout().num_blocks(), 0);
    }

    #[test]
    fn no_bit_of_a_header_may_change() {
        let page = header().to_page();
        for bit in 0..PAGE_BYTES * 8 {
            let mut other = page;
            other.0[bit / 8] ^= 1 << (bit % 8);
            let said = TableHeader::parse(&other);
            match bit / 8 {
                0..8 => assert_eq!(said, Err(HeaderError::NotATable)),
                8..12 => assert!(matches!(said, Err(HeaderError::Version(_)))),
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
            let mut page = TableHeader { first_key: u64::MAX, ..header() }.to_page();
            page.0[at] ^= 0xff;
            page.write_checksum(0);
            assert_eq!(TableHeader::parse(&page), Err(HeaderError::Damaged(what)), "byte {at}");
        }
    }

    #[test]
    fn whole_entries_fill_a_page() {
        for (value, per_page) in [(0, 511), (1, 454), (8, 255), (128, 30), (2036, 2), (2037, 1), (4080, 1)] {
            let shape = PageLayout::new(value);
            assert_eq!(shape.entries_per_page, per_page);
            let mut page = Page::zeroed();
            let bytes = vec![0xa5; value];
            for entry in 0..per_page {
                shape.write_entry(&mut page, entry, u64::MAX - entry as u64, &bytes);
            }
            page.write_checksum(3);
            assert!(page.has_valid_checksum(3) && !page.has_valid_checksum(4));
            assert_eq!(shape.keys_of_page(&page, per_page)[per_page - 1], u64::MAX - (per_page as u64 - 1));
            assert_eq!(shape.value_of_entry(&page, per_page - 1), bytes);
        }
    }
}
