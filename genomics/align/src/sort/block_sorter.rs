//! The worker's part of sorting: sorts the records of a batch and collects the read ends for duplicate marking.

use std::sync::Arc;

use super::Error;
use super::loser_tree::{SortItem, TEMPLATE_ORDINAL_BYTES};
use super::markdup::{BlockReadEnds, MarkdupOptions};
use super::record::{self, Record, flag};

/// Sort item of a BAM record: the ordinal of its template, then the encoded record.
#[derive(Debug)]
pub(crate) struct RecordSortItem;

impl SortItem for RecordSortItem {
    type Key = u64;
    const MAX_KEY: u64 = u64::MAX;

    fn encoded_len(bytes: &[u8]) -> usize {
        TEMPLATE_ORDINAL_BYTES + record::first_record_len(&bytes[TEMPLATE_ORDINAL_BYTES..])
    }

    fn key(item: &[u8]) -> u64 {
        Record::first_of_checked_bytes(&item[TEMPLATE_ORDINAL_BYTES..]).sort_key()
    }
}

/// The sorted records of consecutive templates, and their read ends for duplicate marking. A [`BlockSorter`] makes it
/// for [`super::Sorter::push_block`].
#[derive(Debug)]
pub struct SortedBlock {
    /// Sort items of the records. The template ordinals count from 0.
    pub(super) items: Vec<u8>,
    pub(super) ends: BlockReadEnds,
    pub(super) num_records: u64,
    pub(super) num_templates: u64,
}

/// Sorts the records of batches. Each worker has its own.
#[derive(Debug)]
pub struct BlockSorter {
    marking: Option<Arc<MarkdupOptions>>,
    /// Sort key and index of each record; reused between batches.
    sort_keys: Vec<(u64, usize)>,
    /// For each record in input order: its offset in the batch and the ordinal of its template.
    record_offsets: Vec<(usize, u64)>,
}

/// The records of one template, collected one after the other.
#[derive(Debug, Default)]
struct TemplateRecords<'a> {
    name: Option<&'a [u8]>,
    /// Primary record of read 1 (or the only read), and of read 2.
    primary: [Option<Record<'a>>; 2],
}

impl<'a> TemplateRecords<'a> {
    /// Adds the record if it belongs to this template, and returns whether it does.
    fn try_add(&mut self, record: Record<'a>) -> bool {
        if self.name.is_some_and(|name| name != record.name()) {
            return false;
        }
        if !record.has_any_flag(flag::SECONDARY | flag::SUPPLEMENTARY) {
            let read =
                &mut self.primary[usize::from(record.has_any_flag(flag::PAIRED) && record.has_any_flag(flag::READ2))];
            if read.is_some() {
                return false;
            }
            *read = Some(record);
        }
        self.name = Some(record.name());
        true
    }
}

impl BlockSorter {
    /// Creates a sorter of batches. `marking` must be the duplicate marking options of the [`super::Sorter`] that gets
    /// the blocks.
    pub fn new(marking: Option<Arc<MarkdupOptions>>) -> BlockSorter {
        BlockSorter { marking, sort_keys: Vec::new(), record_offsets: Vec::new() }
    }

    /// Sorts encoded BAM records, each with its `block_size`. The records of a template must be consecutive.
    ///
    /// A template ends where the read name changes, or where a second primary record of the same read follows.
    ///
    /// # Errors
    /// The bytes are not complete BAM records.
    pub fn sort_records(&mut self, records: &[u8]) -> Result<SortedBlock, Error> {
        self.sort_keys.clear();
        self.record_offsets.clear();
        let mut ends = BlockReadEnds::default();
        let mut template = TemplateRecords::default();
        let mut ordinal = 0;
        let mut rest = records;
        while !rest.is_empty() {
            let (record, after) = Record::check_and_split_first(rest)?;
            if !template.try_add(record) {
                self.push_template_ends(&template, ordinal, &mut ends);
                template = TemplateRecords::default();
                template.try_add(record);
                ordinal += 1;
            }
            self.sort_keys.push((record.sort_key(), self.record_offsets.len()));
            self.record_offsets.push((records.len() - rest.len(), ordinal));
            rest = after;
        }
        self.push_template_ends(&template, ordinal, &mut ends);
        // Records with equal keys keep the input order.
        self.sort_keys.sort_unstable();
        let mut items = Vec::with_capacity(records.len() + TEMPLATE_ORDINAL_BYTES * self.sort_keys.len());
        for &(_, i) in &self.sort_keys {
            let (at, ordinal) = self.record_offsets[i];
            items.extend_from_slice(&ordinal.to_le_bytes());
            items.extend_from_slice(Record::first_of_checked_bytes(&records[at..]).encoded_bytes());
        }
        let templates = if self.sort_keys.is_empty() { 0 } else { ordinal + 1 };
        Ok(SortedBlock {
            items,
            ends: ends.into_sorted_read_ends(),
            num_records: self.sort_keys.len() as u64,
            num_templates: templates,
        })
    }

    fn push_template_ends(&self, template: &TemplateRecords<'_>, ordinal: u64, ends: &mut BlockReadEnds) {
        if let Some(marking) = &self.marking {
            ends.push_template_read_ends(template.primary, marking, ordinal);
        }
    }
}
