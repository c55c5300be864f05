//! The bytes of a table: header, pages of entries, where the other parts lie. `docs/formats/table.md` describes them all.

use std::hash::Hasher;

use bytemuck::{Pod, Zeroable};
use twox_hash::XxHash3_64;

use crate::error::Part;
use crate::filter::{self, Layout};

#[cfg(target_endian = "big")]
compile_error!("tables are little-endian and are read where they lie");

/// Bytes of a page, the unit of reading.
pub const PAGE: usize = 4096;
/// Bytes of a page before its checksum.
const CHECKED: usize = PAGE - 8;
/// Bytes of a key.
pub const KEY: usize = 8;
/// The largest value: one entry fills a page.
pub const MAX_VALUE: usize = CHECKED - KEY;
/// The longest note in a header.
pub const MAX_NOTE: usize = 2048;
/// The version that is written.
pub const VERSION: u32 = 2;
/// The one before, which is read too, but for its filter: that was one for all pages.
const ONE_FILTER: u32 = 1;
const MAGIC: [u8; 8] = *b"GENUMATB";
/// Where the note starts.
const NOTE: usize = 192;

/// A page's bytes, where a disk may write them directly.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(4096))]
pub struct Page(pub [u8; PAGE]);

impl Page {
    /// The checksum over all bytes before it. The page's number goes into it, so a page in another's place does not pass.
    fn checksum(&self, number: u64) -> u64 {
        XxHash3_64::oneshot_with_seed(number, &self.0[..CHECKED])
    }

    /// Writes the checksum.
    pub fn seal(&mut self, number: u64) {
        let checksum = self.checksum(number);
        self.0[CHECKED..].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Whether the checksum fits.
    pub fn whole(&self, number: u64) -> bool {
        self.0[CHECKED..] == self.checksum(number).to_le_bytes()
    }
}

/// Checksum of a part that is not made of pages.
#[derive(Default)]
pub struct Checksum(XxHash3_64);

impl Checksum {
    /// Goes on with these bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The checksum of all of them.
    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// How entries lie in a page: the keys in order, then the values in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a value.
    pub value: usize,
    /// Entries of a full page; all pages but the last are full.
    pub per_page: usize,
}

impl Shape {
    /// For values of so many bytes, at most [`MAX_VALUE`].
    pub fn new(value: usize) -> Shape {
        Shape { value, per_page: CHECKED / (KEY + value) }
    }

    /// Pages of so many entries.
    pub fn pages(&self, entries: u64) -> u64 {
        entries.div_ceil(self.per_page as u64)
    }

    /// Entries in page `page`, counted from 0, of a table of so many.
    pub(crate) fn in_page(&self, page: u64, entries: u64) -> usize {
        let before = page * self.per_page as u64;
        (entries - before).min(self.per_page as u64) as usize
    }

    /// The keys of a page with so many entries.
    pub fn keys<'p>(&self, page: &'p Page, entries: usize) -> &'p [u64] {
        bytemuck::cast_slice(&page.0[..entries * KEY])
    }

    /// The value of an entry of a page.
    pub(crate) fn value_of<'p>(&self, page: &'p Page, entry: usize) -> &'p [u8] {
        let start = self.per_page * KEY + entry * self.value;
        &page.0[start..start + self.value]
    }

    /// The values of a page with so many entries, one after the other.
    pub fn values<'p>(&self, page: &'p Page, entries: usize) -> &'p [u8] {
        &page.0[self.per_page * KEY..][..entries * self.value]
    }

    /// Writes entries that follow one another into a page, from entry `first` on.
    #[inline]
    pub(crate) fn put_all(&self, page: &mut Page, first: usize, keys: &[u64], values: &[u8]) {
        let bytes: &[u8] = bytemuck::cast_slice(keys);
        page.0[first * KEY..][..bytes.len()].copy_from_slice(bytes);
        page.0[self.per_page * KEY + first * self.value..][..values.len()].copy_from_slice(values);
    }

    /// Writes an entry into a page.
    #[inline]
    pub fn put(&self, page: &mut Page, entry: usize, key: u64, value: &[u8]) {
        page.0[entry * KEY..][..KEY].copy_from_slice(&key.to_le_bytes());
        let start = self.per_page * KEY + entry * self.value;
        let room = &mut page.0[start..start + self.value];
        // What has a usual length is moved without a call.
        match value.len() {
            4 => room[..4].copy_from_slice(&value[..4]),
            8 => room[..8].copy_from_slice(&value[..8]),
            _ => room.copy_from_slice(value),
        }
    }
}

/// A part after the pages: where it starts, how long it is, what its checksum is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Section {
    /// Its first byte, a multiple of [`PAGE`].
    pub offset: u64,
    /// Its length in bytes, without what fills its last page.
    pub bytes: u64,
    /// Checksum of its bytes.
    pub checksum: u64,
}

impl Section {
    /// The first byte of a page that is free after it.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.next_multiple_of(PAGE as u64)
    }
}

/// What the first page says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// How entries lie in pages.
    pub shape: Shape,
    /// How many there are.
    pub entries: u64,
    /// The smallest key; 0 when there is none.
    pub first: u64,
    /// The largest key; 0 when there is none.
    pub last: u64,
    /// First key of each page.
    pub index: Section,
    /// Blocks of the filter.
    pub filter: Section,
    /// How many of them there are for each page; `None` in a table of the version before.
    pub(crate) filter_each: Option<u64>,
    /// Keys, then values of the hot entries.
    pub hot: Section,
    /// What the caller wants to find again.
    pub note: Vec<u8>,
}

/// Why a first page is not understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It is no table.
    Magic,
    /// It is one of this version.
    Version(u32),
    /// Something does not fit.
    Damaged(&'static str),
}

impl Header {
    /// Pages of entries.
    pub fn pages(&self) -> u64 {
        self.shape.pages(self.entries)
    }

    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        self.hot.end()
    }

    /// Where the blocks of the filter lie; a filter of none where it cannot be used.
    pub fn layout(&self) -> Layout {
        Layout::new(self.filter_each.unwrap_or(0), self.pages())
    }

    /// Hot entries.
    pub fn hot_entries(&self) -> u64 {
        self.hot.bytes / (KEY + self.shape.value) as u64
    }

    /// The page that says so.
    pub fn page(&self) -> Page {
        let mut page = Page::zeroed();
        let mut put = |at: usize, bytes: &[u8]| page.0[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        let version = if self.filter_each.is_some() { VERSION } else { ONE_FILTER };
        let words = [version, PAGE as u32, self.shape.value as u32, self.shape.per_page as u32];
        put(8, bytemuck::cast_slice(&words));
        let section = |part: &Section| [part.offset, part.bytes, part.checksum];
        let [index, filter, hot] = [&self.index, &self.filter, &self.hot].map(section);
        put(24, bytemuck::cast_slice(&[self.entries, self.pages(), self.first, self.last]));
        put(56, bytemuck::cast_slice(&[index, filter, hot]));
        put(128, bytemuck::cast_slice(&[self.note.len() as u64, self.filter_each.unwrap_or(0)]));
        put(NOTE, &self.note);
        page.seal(0);
        page
    }

    /// What a page says, if it is a header and everything in it fits together.
    pub fn parse(page: &Page) -> Result<Header, Misfit> {
        let word = |at: usize| u64::from_le_bytes(page.0[at..at + 8].try_into().expect("8 bytes"));
        let half = |at: usize| u32::from_le_bytes(page.0[at..at + 4].try_into().expect("4 bytes"));
        if page.0[..8] != MAGIC {
            return Err(Misfit::Magic);
        }
        if !matches!(half(8), VERSION | ONE_FILTER) {
            return Err(Misfit::Version(half(8)));
        }
        let fits = |fits: bool, what| if fits { Ok(()) } else { Err(Misfit::Damaged(what)) };
        fits(page.whole(0), "its checksum is another")?;
        fits(half(12) as usize == PAGE, "pages are not of 4096 bytes")?;
        fits(half(16) as usize <= MAX_VALUE, "values are too large")?;
        let shape = Shape::new(half(16) as usize);
        fits(half(20) as usize == shape.per_page, "entries in a page do not follow from their size")?;
        let section = |at| Section { offset: word(at), bytes: word(at + 8), checksum: word(at + 16) };
        let note = word(128);
        fits(note <= MAX_NOTE as u64, "the note is too long")?;
        let header = Header {
            shape,
            entries: word(24),
            first: word(40),
            last: word(48),
            index: section(56),
            filter: section(80),
            filter_each: (half(8) == VERSION).then(|| word(136)),
            hot: section(104),
            note: page.0[NOTE..NOTE + note as usize].to_vec(),
        };
        fits(header.entries < 1 << 56, "there are too many entries")?;
        fits(word(32) == header.pages(), "pages do not follow from entries")?;
        fits(header.first <= header.last, "the smallest key is above the largest")?;
        let [index, filter, hot] = [&header.index, &header.filter, &header.hot];
        fits(index.offset == (1 + header.pages()) * PAGE as u64, "the index is elsewhere")?;
        fits(index.bytes == header.pages() * KEY as u64, "the index has another length")?;
        fits(filter.bytes < 1 << 56 && hot.bytes < 1 << 56, "a part is too long")?;
        fits(filter.offset == index.end() && filter.bytes.is_multiple_of(64), "the filter is elsewhere")?;
        fits(header.filter_each.is_none_or(|each| each <= filter::MOST), "the filter has too many blocks")?;
        let blocks = header.filter_each.map_or(filter.bytes / 64, |_| header.layout().blocks());
        fits(filter.bytes == blocks * 64, "the filter has another length")?;
        fits(hot.offset == filter.end(), "the hot entries are elsewhere")?;
        fits(hot.bytes.is_multiple_of((KEY + shape.value) as u64), "the hot entries have another length")?;
        fits(header.hot_entries() <= header.entries, "there are more hot entries than entries")?;
        Ok(header)
    }
}

/// A page of entries as an error names it: pages of the file count the header.
pub fn part(page: u64) -> Part {
    Part::Page(page + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let shape = Shape::new(128);
        let pages = shape.pages(1000);
        let index = Section { offset: (1 + pages) * 4096, bytes: pages * 8, checksum: 1 };
        let filter = Section { offset: index.end(), bytes: 64 * 3 * 64, checksum: 2 };
        let hot = Section { offset: filter.end(), bytes: 136 * 7, checksum: 3 };
        let note = b"k 31".to_vec();
        Header {
            shape,
            entries: 1000,
            first: 5,
            last: u64::MAX,
            index,
            filter,
            filter_each: Some(3),
            hot,
            note,
        }
    }

    #[test]
    fn a_header_says_what_it_was_told() {
        let header = header();
        assert_eq!(Header::parse(&header.page()), Ok(header.clone()));
        assert_eq!((header.pages(), header.hot_entries()), (34, 7));
        assert_eq!(header.file_bytes(), (1 + 34 + 1 + 3 + 1) * 4096);
        let before = Header { filter_each: None, ..header };
        assert_eq!(Header::parse(&before.page()), Ok(before.clone()));
        assert_eq!(before.layout().blocks(), 0);
    }

    #[test]
    fn no_bit_of_a_header_may_change() {
        let page = header().page();
        for bit in 0..PAGE * 8 {
            let mut other = page;
            other.0[bit / 8] ^= 1 << (bit % 8);
            let said = Header::parse(&other);
            match bit / 8 {
                0..8 => assert_eq!(said, Err(Misfit::Magic)),
                8..12 => assert!(matches!(said, Err(Misfit::Version(_)))),
                _ => assert!(matches!(said, Err(Misfit::Damaged(_))), "bit {bit}: {said:?}"),
            }
        }
    }

    /// With a good checksum, as a wrong program would write it.
    #[test]
    fn parts_have_to_fit_together() {
        for (at, what) in [
            (12, "pages are not of 4096 bytes"),
            (17, "values are too large"),
            (20, "entries in a page do not follow from their size"),
            (31, "there are too many entries"),
            (32, "pages do not follow from entries"),
            (54, "the smallest key is above the largest"),
            (56, "the index is elsewhere"),
            (64, "the index has another length"),
            (95, "a part is too long"),
            (81, "the filter is elsewhere"),
            (104, "the hot entries are elsewhere"),
            (89, "the filter has another length"),
            (136, "the filter has too many blocks"),
            (112, "the hot entries have another length"),
            (130, "the note is too long"),
        ] {
            let mut page = Header { first: u64::MAX, ..header() }.page();
            page.0[at] ^= 0xff;
            page.seal(0);
            assert_eq!(Header::parse(&page), Err(Misfit::Damaged(what)), "byte {at}");
        }
    }

    #[test]
    fn whole_entries_fill_a_page() {
        for (value, per_page) in [(0, 511), (1, 454), (8, 255), (128, 30), (2036, 2), (2037, 1), (4080, 1)] {
            let shape = Shape::new(value);
            assert_eq!(shape.per_page, per_page);
            let mut page = Page::zeroed();
            let bytes = vec![0xa5; value];
            for entry in 0..per_page {
                shape.put(&mut page, entry, u64::MAX - entry as u64, &bytes);
            }
            page.seal(3);
            assert!(page.whole(3) && !page.whole(4));
            assert_eq!(shape.keys(&page, per_page)[per_page - 1], u64::MAX - (per_page as u64 - 1));
            assert_eq!(shape.value_of(&page, per_page - 1), bytes);
        }
    }
}
