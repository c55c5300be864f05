//! Entries in order of keys → a table on flash.

use std::fs::File;
use std::path::Path;

use genuma_machine::placement::{Pages, Placed, Placement, Policy};
use genuma_work::publish::Partial;

use crate::Error;
use crate::file;
use crate::filter::{Block, Filling, GROUP, Groups, Layout};
use crate::format::{self, Header, KEY, MAX_NOTE, MAX_VALUE, PAGE, Page, Section, Shape};
use crate::hot::{Chooser, Hot};
use crate::sink::Sink;

/// What a table is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Bytes of every value: 0 to [`MAX_VALUE`].
    pub value_bytes: usize,
    /// How many entries there will be at most.
    pub entries: u64,
    /// Bits of the filter for each entry, up to 64; 0 for no filter. With 12 some 3 absent keys in 1000 are not told.
    pub filter_bits: u32,
    /// Entries that are read without touching flash: those of the largest weights. 0 for none.
    pub hot_entries: usize,
    /// Of so many entries that have come one is hot at most.
    pub hot_one_in: u64,
    /// Up to [`MAX_NOTE`] bytes that the reader finds again.
    pub note: Vec<u8>,
    /// Bytes of memory to write in. They do not show in the table: where a filter is too large for them, the pages of the groups that have no room are
    /// read again.
    pub memory: u64,
}

impl Spec {
    /// For at most `entries` entries with values of `value_bytes`: a filter of 12 bits a key, no hot entries, no note, any memory.
    pub fn new(value_bytes: usize, entries: u64) -> Spec {
        let (filter_bits, hot_entries, hot_one_in, note, memory) = (12, 0, 1, Vec::new(), u64::MAX);
        Spec { value_bytes, entries, filter_bits, hot_entries, hot_one_in, note, memory }
    }

    /// Bytes of memory that writing takes at most, beyond [`Spec::memory`] only where that is too little for the first keys of pages,
    /// candidates for hot entries, 2 MiB to write from, 256 KiB to read into, and the group of pages whose filter is being made.
    pub fn held(&self) -> u64 {
        self.beside_filter() + Groups::memory(self.layout(), self.for_filter())
    }

    fn shape(&self) -> Shape {
        Shape::new(self.value_bytes.min(MAX_VALUE))
    }

    /// Of the filter when as many entries come as may.
    pub(crate) fn layout(&self) -> Layout {
        let shape = self.shape();
        Layout::new(Layout::each(shape.per_page, self.filter_bits), shape.pages(self.entries))
    }

    fn beside_filter(&self) -> u64 {
        let index = self.shape().pages(self.entries) * KEY as u64;
        let chosen = Chooser::memory(self.hot_entries, self.shape().value);
        let group = self.layout().full() * size_of::<Block>() as u64;
        index + chosen + Sink::MEMORY + GROUP * PAGE as u64 + group
    }

    /// Bytes of memory to make the filter in.
    fn for_filter(&self) -> u64 {
        self.memory.saturating_sub(self.beside_filter())
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
    pub(crate) groups: Groups,
    pub(crate) filling: Filling,
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
        let groups = Groups::new(spec.layout(), spec.for_filter());
        let filling = groups.filling();
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
            groups,
            filling,
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
            self.begin_page(key);
        }
        self.filling.add_one(key);
        self.shape.put(self.sink.page(), place, key, value);
        self.on_page += 1;
        self.last = key;
        self.entries += 1;
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
                self.begin_page(next);
            }
            self.filling.add(page_keys);
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
        for (entry, &key) in keys.iter().enumerate() {
            self.chooser.offer(key, &values[entry * value..][..value], weight(entry));
        }
        Ok(())
    }

    /// Begins a page with this key.
    pub(crate) fn begin_page(&mut self, key: u64) {
        self.filling.page(&self.groups, self.firsts.len() as u64);
        self.firsts.push(key);
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
        let layout = Layout { pages: self.firsts.len() as u64, ..self.spec.layout() };
        let filter = self.write_filter(layout)?;
        let most = self.entries / self.spec.hot_one_in.max(1);
        let (keys, values) = self.chooser.finish(most.min(self.spec.hot_entries as u64) as usize);
        let hot = self.sink.section(&[bytemuck::cast_slice(&keys), &values])?;
        let (first, last, note) = (self.first, self.last, self.spec.note);
        let (shape, entries, filter_each) = (self.shape, self.entries, Some(layout.each));
        let header = Header { shape, entries, first, last, index, filter, filter_each, hot, note };
        let table = self.sink.finish(&header.page())?;
        let (entries, pages, hot) = (header.entries, header.pages(), header.hot_entries());
        Ok((Written { entries, pages, hot, bytes: header.file_bytes() }, table))
    }

    /// Writes the filter. That of a group for which memory had no room is made of its pages in the file.
    fn write_filter(&mut self, layout: Layout) -> Result<Section, Error> {
        self.filling.hand_over(&self.groups);
        let (mut part, mut again) = (self.sink.part(), None);
        for group in 0..layout.groups() {
            let blocks = match self.groups.take(group, layout.of(group)) {
                Some(blocks) => blocks,
                None => {
                    let (file, pages) = match &mut again {
                        Some(again) => again,
                        none => none.insert(self.begin_again()?),
                    };
                    self.make_again(layout, group, file, pages)?
                }
            };
            self.sink.put(&mut part, bytemuck::cast_slice(&blocks))?;
        }
        self.sink.end_part(&part)
    }

    /// To read pages again: the file, and room for a group.
    fn begin_again(&mut self) -> Result<(File, Placed<Page>), Error> {
        let file = self.sink.written()?;
        let at = Placement { policy: Policy::Local, pages: Pages::Base };
        let path = self.sink.path();
        let memory = |source| Error::Memory { path: path.to_path_buf(), source };
        Ok((file, Placed::zeroed(GROUP as usize, &at).map_err(memory)?))
    }

    /// The blocks of a group, of its pages in the file.
    fn make_again(
        &mut self,
        layout: Layout,
        group: u64,
        file: &File,
        pages: &mut [Page],
    ) -> Result<Vec<Block>, Error> {
        let (path, own) = (self.sink.path(), layout.pages_of(group));
        let pages = &mut pages[..(own.end - own.start) as usize];
        file::read_pages(path, file, pages, own.start)?;
        let mut filling = self.groups.filling();
        for (page, number) in pages.iter().zip(own) {
            if !page.whole(number + 1) {
                let (path, part) = (path.to_path_buf(), format::part(number));
                return Err(Error::Damaged { path, part, what: "its checksum is another" });
            }
            filling.add(self.shape.keys(page, self.shape.in_page(number, self.entries)));
        }
        Ok(filling.folded(layout.of(group)))
    }
}
