//! Entries in order of keys → a table on flash.

use std::path::Path;

use genuma_machine::placement::{Pages, Placed, Placement, Policy};
use genuma_work::publish::Partial;

use crate::Error;
use crate::file;
use crate::filter::{self, Making};
use crate::format::{self, Header, KEY, MAX_NOTE, MAX_VALUE, PAGE, Page, Section, Shape};
use crate::hash::hash;
use crate::hot::{Chooser, Hot};
use crate::sink::Sink;

/// Pages that are read again at once: 1 MiB.
const AT_ONCE: usize = 256;

/// What a table is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Bytes of every value: 0 to [`MAX_VALUE`].
    pub value_bytes: usize,
    /// How many entries there will be at most. When fewer come, all are read again to make the filter.
    pub entries: u64,
    /// Bits of the filter for each entry, up to 64; 0 for no filter. With 12 about 4 absent keys in 1000 are not told.
    pub filter_bits: u32,
    /// How many entries the filter is made for, where that is known better than by [`Spec::entries`] and not exactly: if as many come, or up to a third
    /// more or a quarter less, they need not be read again, and each has that many bits less or more.
    pub expected: Option<u64>,
    /// Entries that are read without touching flash: those of the largest weights. 0 for none.
    pub hot_entries: usize,
    /// Up to [`MAX_NOTE`] bytes that the reader finds again.
    pub note: Vec<u8>,
    /// Bytes of memory to write in. They do not show in the table: a filter that is too large for them is made in pieces, and all entries are
    /// read again for each piece but the first.
    pub memory: u64,
}

impl Spec {
    /// For at most `entries` entries with values of `value_bytes`: a filter of 12 bits a key, no hot entries, no note, any memory.
    pub fn new(value_bytes: usize, entries: u64) -> Spec {
        let (filter_bits, hot_entries, note, memory) = (12, 0, Vec::new(), u64::MAX);
        Spec { value_bytes, entries, filter_bits, expected: None, hot_entries, note, memory }
    }

    /// Bytes of memory that writing takes at most, beyond [`Spec::memory`] only where that is too little for the first keys of pages,
    /// candidates for hot entries, 2 MiB to write from, 1 MiB to read into, and 0.3 MiB of the filter.
    /// Transparent huge pages may round the filter up to 2 MiB.
    pub fn held(&self) -> u64 {
        self.beside_filter() + Making::memory(self.blocks(), self.for_filter())
    }

    fn beside_filter(&self) -> u64 {
        let value = self.value_bytes.min(MAX_VALUE);
        let index = Shape::new(value).pages(self.entries) * KEY as u64;
        index + Chooser::memory(self.hot_entries, value) + Sink::MEMORY + (AT_ONCE * PAGE) as u64
    }

    /// Bytes of memory to make the filter in.
    fn for_filter(&self) -> u64 {
        self.memory.saturating_sub(self.beside_filter())
    }

    /// Blocks of the filter when as many entries come as are expected.
    fn blocks(&self) -> usize {
        filter::blocks_for(self.expected.unwrap_or(self.entries), self.filter_bits)
    }

    /// Blocks of the filter when so many entries have come.
    fn blocks_for(&self, entries: u64) -> usize {
        let near =
            |&expected: &u64| expected / 4 * 3 <= entries && entries <= expected.saturating_add(expected / 3);
        filter::blocks_for(self.expected.filter(near).unwrap_or(entries), self.filter_bits)
    }

    /// Says what is impossible about it.
    fn check(&self, path: &Path) -> Result<(), Error> {
        let what = if self.value_bytes > MAX_VALUE {
            format!("values of {} bytes, a page has room for {MAX_VALUE}", self.value_bytes)
        } else if self.note.len() > MAX_NOTE {
            format!("a note of {} bytes, the header has room for {MAX_NOTE}", self.note.len())
        } else if self.hot_entries > Hot::MOST {
            format!("{} hot entries, the most are {}", self.hot_entries, Hot::MOST)
        } else if self.filter_bits > 64 {
            format!("a filter of {} bits a key, the most are 64", self.filter_bits)
        } else if self.entries >= 1 << 48 {
            format!("{} entries, the most are {}", self.entries, (1_u64 << 48) - 1)
        } else {
            return Ok(());
        };
        Err(Error::Spec { path: path.to_path_buf(), what })
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Entries.
    pub entries: u64,
    /// Pages of entries.
    pub pages: u64,
    /// Hot entries.
    pub hot: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Writes a table as a partial file, which gets its final name when it is published. Dropped before, it is removed.
///
/// ```
/// use genuma_flash::{Options, Spec, Table, TableWriter};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("counts.table");
/// let mut writer = TableWriter::create(&path, Spec::new(2, 1000))?;
/// for key in 0..1000_u64 {
///     writer.push(key * key, &(key as u16).to_le_bytes(), 0)?;
/// }
/// writer.finish()?;
///
/// let table = Table::open(&path, &Options::default())?;
/// assert_eq!(table.reader(64)?.get(81)?, Some(&[9, 0][..]));
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Debug)]
pub struct TableWriter {
    pub(crate) sink: Sink,
    pub(crate) spec: Spec,
    pub(crate) shape: Shape,
    pub(crate) entries: u64,
    /// Those of them on the page that is being filled.
    pub(crate) on_page: usize,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) firsts: Vec<u64>,
    pub(crate) filter: Making,
    pub(crate) chooser: Chooser,
}

impl TableWriter {
    /// Starts writing what will be `path`.
    ///
    /// # Errors
    /// When `spec` is impossible, there is not enough memory, or the file cannot be made.
    pub fn create(path: impl AsRef<Path>, spec: Spec) -> Result<TableWriter, Error> {
        let path = path.as_ref();
        spec.check(path)?;
        let shape = Shape::new(spec.value_bytes);
        let filter = Making::new(spec.blocks(), spec.for_filter())
            .map_err(|source| Error::Memory { path: path.to_path_buf(), source })?;
        let chooser = Chooser::new(spec.hot_entries, spec.value_bytes);
        let mut sink = Sink::create(path)?;
        // The header's place; what it says is known at the end.
        sink.page();
        sink.next_page()?;
        Ok(TableWriter {
            sink,
            spec,
            shape,
            entries: 0,
            on_page: 0,
            first: 0,
            last: 0,
            firsts: Vec::new(),
            filter,
            chooser,
        })
    }

    /// Adds an entry. `weight` is how often it will be looked up, in any unit: the heaviest become hot entries, those of weight 0 never.
    ///
    /// # Errors
    /// When the key does not follow the one before, the value has another size, there are more entries than announced, or
    /// the disk is full.
    pub fn push(&mut self, key: u64, value: &[u8], weight: u64) -> Result<(), Error> {
        let entry = self.entries;
        if value.len() != self.shape.value {
            let (given, wanted) = (value.len(), self.shape.value);
            return Err(Error::Value { path: self.sink.path().to_owned(), entry, given, wanted });
        }
        if entry == self.spec.entries {
            return Err(Error::TooMany { path: self.sink.path().to_owned(), most: entry });
        }
        if entry == 0 {
            self.first = key;
        } else if key <= self.last {
            return Err(Error::Order { path: self.sink.path().to_owned(), entry, key, before: self.last });
        }
        let place = self.on_page;
        if place == 0 {
            self.firsts.push(key);
        }
        self.shape.put(self.sink.page(), place, key, value);
        self.on_page += 1;
        self.last = key;
        self.entries += 1;
        self.filter.push(hash(key));
        self.chooser.offer(key, value, weight);
        if self.on_page == self.shape.per_page { self.end_page() } else { Ok(()) }
    }

    /// Adds entries whose values lie one after the other, faster than one by one; `weight` says how often the one of that number will be looked up, as
    /// for [`TableWriter::push`].
    ///
    /// # Errors
    /// As for [`TableWriter::push`]; those before the wrong one may have been added.
    pub fn push_all(
        &mut self,
        keys: &[u64],
        values: &[u8],
        weight: impl Fn(usize) -> u64,
    ) -> Result<(), Error> {
        let value = self.shape.value;
        if values.len() != keys.len() * value {
            let (entry, wanted) = (self.entries, keys.len() * value);
            let path = self.sink.path().to_owned();
            return Err(Error::Value { path, entry, given: values.len(), wanted });
        }
        let [Some(&first), Some(&last)] = [keys.first(), keys.last()] else { return Ok(()) };
        let follow = self.entries == 0 || first > self.last;
        let room = self.entries + keys.len() as u64 <= self.spec.entries;
        if !(follow && room && keys.is_sorted_by(|a, b| a < b)) {
            // One of them is wrong, and said to be.
            let each = |(entry, &key): (usize, &u64)| {
                self.push(key, &values[entry * value..][..value], weight(entry))
            };
            return keys.iter().enumerate().try_for_each(each);
        }
        let (mut keys_left, mut values_left) = (keys, values);
        while let Some(&next) = keys_left.first() {
            let now = keys_left.len().min(self.shape.per_page - self.on_page);
            let (page_keys, keys_after) = keys_left.split_at(now);
            let (page_values, values_after) = values_left.split_at(now * value);
            if self.on_page == 0 {
                self.firsts.push(next);
            }
            self.shape.put_all(self.sink.page(), self.on_page, page_keys, page_values);
            self.on_page += now;
            if self.on_page == self.shape.per_page {
                self.end_page()?;
            }
            (keys_left, values_left) = (keys_after, values_after);
        }
        if self.entries == 0 {
            self.first = first;
        }
        self.last = last;
        self.entries += keys.len() as u64;
        keys.iter().for_each(|&key| self.filter.push(hash(key)));
        for (entry, &key) in keys.iter().enumerate() {
            self.chooser.offer(key, &values[entry * value..][..value], weight(entry));
        }
        Ok(())
    }

    /// Gives the page its checksum.
    fn end_page(&mut self) -> Result<(), Error> {
        let number = self.sink.page_number();
        self.sink.page().seal(number);
        self.on_page = 0;
        self.sink.next_page()
    }

    /// Writes all that is left, brings everything to the disk and gives the file its final name, replacing what had it.
    ///
    /// # Errors
    /// When the disk is full or refuses; the partial file is then removed.
    pub fn finish(self) -> Result<Written, Error> {
        let (written, table) = self.complete()?;
        table.publish()?;
        Ok(written)
    }

    /// Writes index, filter, hot entries and header: what is left to be done is to publish.
    ///
    /// # Errors
    /// When the disk is full or refuses; the partial file is then removed.
    pub fn complete(mut self) -> Result<(Written, Partial), Error> {
        if self.on_page > 0 {
            self.end_page()?;
        }
        let index = self.sink.section(&[bytemuck::cast_slice(&self.firsts)])?;
        let filter = self.write_filter()?;
        let (keys, values) = self.chooser.finish();
        let hot = self.sink.section(&[bytemuck::cast_slice(&keys), &values])?;
        let (first, last, note) = (self.first, self.last, self.spec.note);
        let header =
            Header { shape: self.shape, entries: self.entries, first, last, index, filter, hot, note };
        let table = self.sink.finish(&header.page())?;
        let (entries, pages, hot) = (header.entries, header.pages(), header.hot_entries());
        Ok((Written { entries, pages, hot, bytes: header.file_bytes() }, table))
    }

    /// Writes the filter. A piece that was not made while entries came is made of those in the file.
    fn write_filter(&mut self) -> Result<Section, Error> {
        let blocks = self.spec.blocks_for(self.entries);
        if blocks > self.filter.begun().0 {
            // More came than were expected.
            let (room, path) = (self.spec.for_filter(), self.sink.path());
            let memory = |source| Error::Memory { path: path.to_path_buf(), source };
            self.filter = Making::new(0, 0).map_err(memory)?;
            self.filter = Making::new(blocks, room).map_err(memory)?;
            self.push_again()?;
        }
        let mut part = self.sink.part();
        for first in (0..blocks).step_by(self.filter.len().max(1)) {
            if self.filter.begun() != (blocks, first) {
                self.filter.begin(blocks, first);
                self.push_again()?;
            }
            self.sink.put(&mut part, bytemuck::cast_slice(self.filter.finish()))?;
        }
        self.sink.end_part(&part)
    }

    /// Reads all entries again and adds their keys to the piece of the filter that is made now.
    fn push_again(&mut self) -> Result<(), Error> {
        let file = self.sink.written()?;
        let path = self.sink.path();
        let at = Placement { policy: Policy::Local, pages: Pages::Base };
        let mut buffer = Placed::<Page>::zeroed(AT_ONCE, &at)
            .map_err(|source| Error::Memory { path: path.to_path_buf(), source })?;
        let pages = self.shape.pages(self.entries);
        for first in (0..pages).step_by(AT_ONCE) {
            let read = &mut buffer[..AT_ONCE.min((pages - first) as usize)];
            file::read_pages(path, &file, read, first)?;
            for (page, number) in read.iter().zip(first..) {
                if !page.whole(number + 1) {
                    let (path, part) = (path.to_path_buf(), format::part(number));
                    return Err(Error::Damaged { path, part, what: "its checksum is another" });
                }
                let keys = self.shape.keys(page, self.shape.in_page(number, self.entries));
                keys.iter().for_each(|&key| self.filter.push(hash(key)));
            }
        }
        Ok(())
    }
}
