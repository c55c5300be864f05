//! Writes a table from entries in key order.

use std::fs::File;
use std::path::Path;

use genuma_machine::placement::{MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice};
use genuma_work::publish::PartialFile;

use crate::Error;
use crate::compact_page::{self, MAX_COUNTS_PER_ENTRY};
use crate::file;
use crate::file_writer::TableFileWriter;
use crate::filter::{BloomBlock, FILTER_UNITS_PER_GROUP, FilterBlocksOfAllGroups, FilterGroupBuilder, FilterLayout};
use crate::format::{
    self, COUNT_BYTES, FileSection, KEY_BYTES, MAX_NOTE_BYTES, MAX_VALUE_BYTES, PAGE_BYTES, Page, PageEncoding,
    PageLayout, TableHeader,
};
use crate::hot_entries::{HotEntries, HotEntrySelector};
use crate::page_cutter::{PageCutter, PageEntryCountAndEncoding};

/// Number of entries that are divided into pages together.
const ENTRIES_PER_CUT: usize = 1024;

/// Layout, size and parameters of a table to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSpec {
    /// Size of every value in bytes: 0 to [`MAX_VALUE_BYTES`].
    pub value_bytes: usize,
    /// How entries are stored in pages.
    pub encoding: PageEncoding,
    /// Maximum number of entries of the table, less than 2^48.
    pub max_entries: u64,
    /// Bits of the Bloom filter per entry, at most 64; 0 for no filter. With 12 bits, about 3 of 1000 absent keys are
    /// not detected.
    pub filter_bits: u32,
    /// Maximum number of hot entries: the entries with the largest weights, which readers find in memory. 0 for none.
    pub hot_entries: usize,
    /// Minimum number of entries per hot entry: limits the hot entries to the number of entries divided by this value.
    pub min_entries_per_hot_entry: u64,
    /// Metadata note of at most [`MAX_NOTE_BYTES`] bytes, which the file stores unchanged.
    pub note: Vec<u8>,
    /// Memory budget for writing, in bytes. It does not change the file: filter groups that do not fit in memory are
    /// built afterwards from pages that are read again.
    pub memory_bytes: u64,
}

impl TableSpec {
    /// Specification for at most `entries` entries with `counts` 32-bit counts each (1 to 64), in compact pages. All
    /// other fields are as in [`TableSpec::new`].
    pub fn new_for_counts(counts: usize, entries: u64) -> TableSpec {
        TableSpec { encoding: PageEncoding::Compact, ..TableSpec::new(counts * COUNT_BYTES, entries) }
    }

    /// Specification for at most `entries` entries with values of `value_bytes` bytes: fixed page layout, a filter of
    /// 12 bits per entry, no hot entries, no note, unlimited memory.
    pub fn new(value_bytes: usize, entries: u64) -> TableSpec {
        let (filter_bits, hot_entries, hot_one_in, note, memory) = (12, 0, 1, Vec::new(), u64::MAX);
        TableSpec {
            value_bytes,
            encoding: PageEncoding::Fixed,
            max_entries: entries,
            filter_bits,
            hot_entries,
            min_entries_per_hot_entry: hot_one_in,
            note,
            memory_bytes: memory,
        }
    }

    /// Maximum memory in bytes that writing takes. It exceeds [`TableSpec::memory_bytes`] only if that is too little
    /// for the first keys of all pages, the candidates for hot entries, 2 MiB of write buffers, 256 KiB of read buffer,
    /// and the filter of one group of pages.
    pub fn max_writing_memory_bytes(&self) -> u64 {
        self.non_filter_bytes()
            + FilterBlocksOfAllGroups::max_stored_bytes(self.max_filter_layout(), self.filter_memory_bytes())
    }

    fn shape(&self) -> PageLayout {
        match self.encoding {
            PageEncoding::Fixed => PageLayout::new_fixed_layout(self.value_bytes.min(MAX_VALUE_BYTES)),
            PageEncoding::Compact => {
                PageLayout::new_compact_layout(self.value_bytes.min(MAX_COUNTS_PER_ENTRY * COUNT_BYTES))
            }
        }
    }

    /// Layout of the filter for the maximum number of entries.
    pub(crate) fn max_filter_layout(&self) -> FilterLayout {
        let shape = self.shape();
        let per_unit = shape.entries_per_filter_unit();
        FilterLayout::with_blocks_per_unit(
            FilterLayout::compute_blocks_per_unit(per_unit as usize, self.filter_bits),
            self.max_entries.div_ceil(per_unit),
        )
    }

    fn non_filter_bytes(&self) -> u64 {
        let index_keys =
            self.shape().max_pages_for_entries(self.max_entries) + self.shape().num_group_first_keys(self.max_entries);
        let index = index_keys * KEY_BYTES as u64;
        let chosen = HotEntrySelector::max_selector_bytes(self.hot_entries, self.shape().value_bytes);
        let group = self.max_filter_layout().blocks_per_full_group() * size_of::<BloomBlock>() as u64;
        index + chosen + TableFileWriter::WRITE_BUFFER_MEMORY_BYTES + FILTER_UNITS_PER_GROUP * PAGE_BYTES as u64 + group
    }

    /// Memory in bytes that is left for building the filter.
    fn filter_memory_bytes(&self) -> u64 {
        self.memory_bytes.saturating_sub(self.non_filter_bytes())
    }

    /// Checks that the specification is valid.
    fn check(&self, path: &Path) -> Result<(), Error> {
        let what = if self.value_bytes > MAX_VALUE_BYTES {
            format!("values of {} bytes, a page has room for {MAX_VALUE_BYTES}", self.value_bytes)
        } else if self.encoding == PageEncoding::Compact
            && !(self.value_bytes.is_multiple_of(COUNT_BYTES)
                && (1..=MAX_COUNTS_PER_ENTRY).contains(&(self.value_bytes / COUNT_BYTES)))
        {
            format!("values of {} bytes, compact pages have 1 to {MAX_COUNTS_PER_ENTRY} counts of 4", self.value_bytes)
        } else if self.note.len() > MAX_NOTE_BYTES {
            format!("a note of {} bytes, the header has room for {MAX_NOTE_BYTES}", self.note.len())
        } else if self.hot_entries > HotEntries::MAX_HOT_ENTRIES {
            format!("{} hot entries, the most are {}", self.hot_entries, HotEntries::MAX_HOT_ENTRIES)
        } else if self.filter_bits > 64 {
            format!("a filter of {} bits a key, the most are 64", self.filter_bits)
        } else if self.max_entries >= 1 << 48 {
            format!("{} entries, the most are {}", self.max_entries, (1_u64 << 48) - 1)
        } else {
            return Ok(());
        };
        Err(Error::InvalidSpec { path: path.to_path_buf(), what })
    }
}

/// Numbers of entries and pages, and file size, of a finished table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableSummary {
    /// Number of entries.
    pub entries: u64,
    /// Number of pages of entries.
    pub pages: u64,
    /// Number of hot entries, which were also written to a section of their own.
    pub hot_entries: u64,
    /// Size of the file in bytes.
    pub file_bytes: u64,
}

/// Writes a table to a partial file, which gets its final name when it is published. If the writer is dropped before,
/// the partial file is removed.
///
/// ```
/// use genuma_flash::{Table, TableOpenOptions, TableSpec, TableWriter};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("counts.table");
/// let mut writer = TableWriter::create(&path, TableSpec::new(2, 1000))?;
/// for key in 0..1000_u64 {
///     writer.push_entry(key * key, &(key as u16).to_le_bytes(), 0)?;
/// }
/// writer.finish_and_publish()?;
///
/// let table = Table::open(&path, &TableOpenOptions::default())?;
/// assert_eq!(table.new_reader(64)?.get(81)?, Some(&[9, 0][..]));
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Debug)]
pub struct TableWriter {
    pub(crate) file_writer: TableFileWriter,
    pub(crate) spec: TableSpec,
    pub(crate) shape: PageLayout,
    pub(crate) entries: u64,
    pub(crate) page_cutter: PageCutter,
    /// Keys of entries that are not in pages yet: those of the current page, and entries that were not given to the
    /// page cutter yet.
    pub(crate) keys: Vec<u64>,
    pub(crate) values: Vec<u8>,
    /// Number of entries in `keys` that were given to the page cutter.
    pub(crate) num_paged_entries: usize,
    pub(crate) first_key: u64,
    pub(crate) last_key: u64,
    pub(crate) page_first_keys: Vec<u64>,
    /// Number and first key of each filter group.
    pub(crate) group_first_keys: Vec<(u64, u64)>,
    pub(crate) filter_groups: FilterBlocksOfAllGroups,
    /// Number of entries that were added to the filter.
    pub(crate) num_filter_entries: u64,
    pub(crate) filter_builder: FilterGroupBuilder,
    pub(crate) hot_selector: HotEntrySelector,
}

impl TableWriter {
    /// Creates a writer of the future table at `path`. `spec` describes the table.
    ///
    /// # Errors
    /// When `spec` is impossible, there is not enough memory, or the file cannot be created.
    pub fn create(path: impl AsRef<Path>, spec: TableSpec) -> Result<TableWriter, Error> {
        let path = path.as_ref();
        spec.check(path)?;
        let shape = spec.shape();
        let groups = FilterBlocksOfAllGroups::new_for_groups_that_fit(
            spec.max_filter_layout(),
            shape.entries_per_filter_group(),
            spec.filter_memory_bytes(),
        );
        let filling = groups.new_group_builder();
        let chooser = HotEntrySelector::with_max_entries(spec.hot_entries, spec.value_bytes);
        let mut sink = TableFileWriter::create(path)?;
        // Reserves the header page; its content is known at the end.
        sink.current_page();
        sink.finish_current_page()?;
        Ok(TableWriter {
            file_writer: sink,
            spec,
            shape,
            entries: 0,
            page_cutter: PageCutter::new(shape),
            keys: Vec::new(),
            values: Vec::new(),
            num_paged_entries: 0,
            first_key: 0,
            last_key: 0,
            page_first_keys: Vec::new(),
            group_first_keys: Vec::new(),
            filter_groups: groups,
            num_filter_entries: 0,
            filter_builder: filling,
            hot_selector: chooser,
        })
    }

    /// Adds an entry; keys must be added in ascending order. `weight` is the relative number of expected lookups: the
    /// entries with the largest weights become hot entries, those of weight 0 never.
    ///
    /// # Errors
    /// When the key is not larger than the key before, the value does not have the size in the specification, there are
    /// more entries than [`TableSpec::max_entries`], or the file cannot be written, for example because the disk is
    /// full.
    pub fn push_entry(&mut self, key: u64, value: &[u8], weight: u64) -> Result<(), Error> {
        let entry = self.entries;
        if value.len() != self.shape.value_bytes {
            let (given, wanted) = (value.len(), self.shape.value_bytes);
            return Err(Error::WrongValueSize { path: self.file_writer.final_path().to_owned(), entry, given, wanted });
        }
        if entry == self.spec.max_entries {
            return Err(Error::TooManyEntries { path: self.file_writer.final_path().to_owned(), most: entry });
        }
        if entry == 0 {
            self.first_key = key;
        } else if key <= self.last_key {
            return Err(Error::KeysOutOfOrder {
                path: self.file_writer.final_path().to_owned(),
                entry,
                key,
                before: self.last_key,
            });
        }
        self.keys.push(key);
        self.values.extend_from_slice(value);
        self.last_key = key;
        self.entries += 1;
        self.hot_selector.offer_entry(key, value, weight);
        if self.keys.len() - self.num_paged_entries == ENTRIES_PER_CUT { self.write_complete_pages() } else { Ok(()) }
    }

    /// Adds entries with concatenated values; faster than adding them one by one. `weight` returns the weight of the
    /// entry with this index in `keys`, as for [`TableWriter::push_entry`].
    ///
    /// # Errors
    /// As for [`TableWriter::push_entry`]. Entries before the invalid one may have been added.
    pub fn push_entries(&mut self, keys: &[u64], values: &[u8], weight: impl Fn(usize) -> u64) -> Result<(), Error> {
        let value = self.shape.value_bytes;
        if values.len() != keys.len() * value {
            let (entry, wanted) = (self.entries, keys.len() * value);
            let path = self.file_writer.final_path().to_owned();
            return Err(Error::WrongValueSize { path, entry, given: values.len(), wanted });
        }
        let [Some(&first), Some(&last)] = [keys.first(), keys.last()] else { return Ok(()) };
        let follow = self.entries == 0 || first > self.last_key;
        let room = self.entries + keys.len() as u64 <= self.spec.max_entries;
        if !(follow && room && keys.is_sorted_by(|a, b| a < b)) {
            // One of the entries is invalid: adding them one by one finds it.
            let each =
                |(entry, &key): (usize, &u64)| self.push_entry(key, &values[entry * value..][..value], weight(entry));
            return keys.iter().enumerate().try_for_each(each);
        }
        if self.entries == 0 {
            self.first_key = first;
        }
        self.last_key = last;
        self.entries += keys.len() as u64;
        for (entry, &key) in keys.iter().enumerate() {
            self.hot_selector.offer_entry(key, &values[entry * value..][..value], weight(entry));
        }
        for (keys, first) in keys.chunks(ENTRIES_PER_CUT).zip((0..).step_by(ENTRIES_PER_CUT)) {
            self.keys.extend_from_slice(keys);
            self.values.extend_from_slice(&values[first * value..][..keys.len() * value]);
            self.write_complete_pages()?;
        }
        Ok(())
    }

    /// Divides the new entries into pages, and writes the complete pages.
    fn write_complete_pages(&mut self) -> Result<(), Error> {
        let value = self.shape.value_bytes;
        let (new_keys, new_values) =
            (&self.keys[self.num_paged_entries..], &self.values[self.num_paged_entries * value..]);
        let mut cuts = Vec::new();
        self.page_cutter.cut_entries_into_pages(new_keys, new_values, &mut cuts);
        let first = self.num_filter_entries;
        self.filter_builder.add_keys_across_groups(&self.filter_groups, first, new_keys, &mut self.group_first_keys);
        self.num_filter_entries += new_keys.len() as u64;
        let mut written = 0;
        for cut in &cuts {
            self.write_page(cut, written)?;
            written += cut.entries;
        }
        self.keys.drain(..written);
        self.values.drain(..written * value);
        self.num_paged_entries = self.keys.len();
        Ok(())
    }

    /// Writes a page with the entries from index `first` of `keys` on.
    fn write_page(&mut self, cut: &PageEntryCountAndEncoding, first: usize) -> Result<(), Error> {
        let (keys, value) = (&self.keys[first..first + cut.entries], self.shape.value_bytes);
        let values = &self.values[first * value..][..cut.entries * value];
        self.page_first_keys.push(keys[0]);
        let number = self.file_writer.current_page_number();
        let page = self.file_writer.current_page();
        self.shape.encode_page(cut.code.as_deref(), keys, values, page);
        page.write_checksum(number);
        self.file_writer.finish_current_page()
    }

    /// Writes the rest of the table, syncs the file and publishes it under its final name, replacing an older table.
    ///
    /// # Errors
    /// When the disk is full or writing fails. The partial file is then removed.
    pub fn finish_and_publish(self) -> Result<TableSummary, Error> {
        let (written, table) = self.finish_without_publishing()?;
        table.publish()?;
        Ok(written)
    }

    /// Writes the remaining pages, index, filter, hot entries and header. Returns a summary and the partial file, which
    /// the caller must publish.
    ///
    /// # Errors
    /// When the disk is full or writing fails. The partial file is then removed.
    pub fn finish_without_publishing(mut self) -> Result<(TableSummary, PartialFile), Error> {
        self.write_complete_pages()?;
        if let Some(cut) = self.page_cutter.last_page_entry_count_and_encoding() {
            self.write_page(&cut, 0)?;
        }
        let group_keys: Vec<u64> = match self.shape.encoding {
            PageEncoding::Fixed => Vec::new(),
            PageEncoding::Compact => self.group_first_keys.iter().map(|&(_, key)| key).collect(),
        };
        let index = self
            .file_writer
            .write_section(&[bytemuck::cast_slice(&self.page_first_keys), bytemuck::cast_slice(&group_keys)])?;
        let units = self.entries.div_ceil(self.shape.entries_per_filter_unit());
        let layout = FilterLayout { units, ..self.spec.max_filter_layout() };
        let filter = self.write_filter(layout)?;
        let most = self.entries / self.spec.min_entries_per_hot_entry.max(1);
        let (keys, values) = self.hot_selector.into_selected_entries(most.min(self.spec.hot_entries as u64) as usize);
        let hot = self.file_writer.write_section(&[bytemuck::cast_slice(&keys), &values])?;
        let (first, last, note) = (self.first_key, self.last_key, self.spec.note);
        let (shape, entries, filter_each) = (self.shape, self.entries, Some(layout.blocks_per_unit));
        let header = TableHeader {
            page_layout: shape,
            entries,
            pages: self.page_first_keys.len() as u64,
            first_key: first,
            last_key: last,
            index,
            filter,
            filter_blocks_per_unit: filter_each,
            hot,
            note,
        };
        let table = self.file_writer.write_header_and_finish(&header.to_header_page())?;
        let (entries, pages, hot) = (header.entries, header.pages, header.num_hot_entries());
        Ok((TableSummary { entries, pages, hot_entries: hot, file_bytes: header.file_bytes() }, table))
    }

    /// Writes the filter section. Groups that did not fit in memory are rebuilt from their pages in the file.
    fn write_filter(&mut self, layout: FilterLayout) -> Result<FileSection, Error> {
        self.filter_builder.merge_into_groups(&self.filter_groups);
        let (mut part, mut again) = (self.file_writer.begin_section(), None);
        for group in 0..layout.num_groups() {
            let blocks = match self.filter_groups.take_folded_group_blocks(group, layout.num_blocks_of_group(group)) {
                Some(blocks) => blocks,
                None => {
                    let (file, pages) = match &mut again {
                        Some(again) => again,
                        none => none.insert(self.open_for_rereading()?),
                    };
                    self.rebuild_filter_group(layout, group, file, pages)?
                }
            };
            self.file_writer.append_to_section(&mut part, bytemuck::cast_slice(&blocks))?;
        }
        self.file_writer.end_section(&part)
    }

    /// Opens the file to read pages again, and allocates a buffer for the pages of one group.
    fn open_for_rereading(&mut self) -> Result<(File, PlacedSlice<Page>), Error> {
        let file = self.file_writer.reopen_for_reading()?;
        let at = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base };
        let path = self.file_writer.final_path();
        let memory = |source| Error::NotEnoughMemory { path: path.to_path_buf(), source };
        Ok((file, PlacedSlice::new_zeroed(FILTER_UNITS_PER_GROUP as usize, &at).map_err(memory)?))
    }

    /// Rebuilds the filter blocks of a group from its pages in the file.
    fn rebuild_filter_group(
        &mut self,
        layout: FilterLayout,
        group: u64,
        file: &File,
        pages: &mut [Page],
    ) -> Result<Vec<BloomBlock>, Error> {
        let (path, all) = (self.file_writer.final_path(), self.page_first_keys.len());
        let group_key = |group: u64| self.group_first_keys.get(group as usize).map(|&(_, key)| key);
        let (first, next) = (group_key(group).unwrap_or(0), group_key(group + 1));
        let begin = self.page_first_keys.partition_point(|&key| key <= first).saturating_sub(1);
        let end = next.map_or(all, |next| self.page_first_keys.partition_point(|&key| key < next));
        let mut filling = self.filter_groups.new_group_builder();
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for chunk in (begin..end).step_by(pages.len()) {
            let pages = &mut pages[..(end - chunk).min(FILTER_UNITS_PER_GROUP as usize)];
            file::read_entry_pages(path, file, pages, chunk as u64)?;
            for (page, number) in pages.iter().zip(chunk as u64..) {
                let damaged = |what| {
                    let (path, part) = (path.to_path_buf(), format::table_part_of_page(number));
                    Error::Damaged { path, part, what }
                };
                if !page.has_valid_checksum(number + 1) {
                    return Err(damaged("its checksum does not match"));
                }
                let entries = self.shape.num_entries_of_page(page, number, self.entries).unwrap_or(0);
                keys.resize(entries, 0);
                values.resize(entries * self.shape.value_bytes, 0);
                let decoded = self.shape.decode_entries(page, &mut keys, &mut values);
                decoded.ok_or_else(|| damaged(compact_page::DAMAGED_COMPACT_PAGE_MESSAGE))?;
                let own = keys.partition_point(|&key| key < first)
                    ..next.map_or(entries, |next| keys.partition_point(|&key| key < next));
                filling.add_keys_to_current_group(&keys[own]);
            }
        }
        Ok(filling.into_folded_blocks(layout.num_blocks_of_group(group)))
    }
}
