//! Workers' part of sorting: the records of a batch → a sorted block, with what duplicate marking compares.

use std::sync::Arc;

use super::Error;
use super::markdup::{Ends, Marking};
use super::merge::{Item, ORDINAL};
use super::record::{self, Record, flag};

/// An alignment: its ordinal, then the record.
#[derive(Debug)]
pub(crate) struct Alignment;

impl Item for Alignment {
    type Key = u64;
    const LAST: u64 = u64::MAX;

    fn length(bytes: &[u8]) -> usize {
        ORDINAL + record::length(&bytes[ORDINAL..])
    }

    fn key(item: &[u8]) -> u64 {
        Record::at(&item[ORDINAL..]).key()
    }
}

/// The records of consecutive templates, sorted: made by a [`Blocks`], for [`super::Sorter::push`].
#[derive(Debug)]
pub struct SortedBlock {
    /// Alignments, whose ordinals count from 0.
    pub(super) items: Vec<u8>,
    pub(super) ends: Ends,
    pub(super) records: u64,
    pub(super) templates: u64,
}

/// Makes sorted blocks; one for each worker.
#[derive(Debug)]
pub struct Blocks {
    marking: Option<Arc<Marking>>,
    /// Key and index of each record; reused.
    order: Vec<(u64, usize)>,
    /// Of each record in the order given: its offset, and the ordinal of its template.
    places: Vec<(usize, u64)>,
}

/// The records of one template, seen one after the other.
#[derive(Debug, Default)]
struct Template<'a> {
    name: Option<&'a [u8]>,
    /// Primary records of read 1 or the only read, and of read 2.
    primary: [Option<Record<'a>>; 2],
}

impl<'a> Template<'a> {
    /// Takes the record when it is one of this template.
    fn takes(&mut self, record: Record<'a>) -> bool {
        if self.name.is_some_and(|name| name != record.name()) {
            return false;
        }
        if !record.is(flag::SECONDARY | flag::SUPPLEMENTARY) {
            let read = &mut self.primary[usize::from(record.is(flag::PAIRED) && record.is(flag::LAST))];
            if read.is_some() {
                return false;
            }
            *read = Some(record);
        }
        self.name = Some(record.name());
        true
    }
}

impl Blocks {
    /// `marking` is that of the [`super::Sorter`].
    pub fn new(marking: Option<Arc<Marking>>) -> Blocks {
        Blocks { marking, order: Vec::new(), places: Vec::new() }
    }

    /// Sorts encoded BAM records (each with its `block_size`), of which those of a template follow one another.
    ///
    /// A template ends where the name changes, or where a second record claims to be the primary one of the same read.
    ///
    /// # Errors
    /// The bytes are no whole records.
    pub fn block(&mut self, records: &[u8]) -> Result<SortedBlock, Error> {
        self.order.clear();
        self.places.clear();
        let mut ends = Ends::default();
        let mut template = Template::default();
        let mut ordinal = 0;
        let mut rest = records;
        while !rest.is_empty() {
            let (record, after) = Record::first(rest)?;
            if !template.takes(record) {
                self.end(&template, ordinal, &mut ends);
                template = Template::default();
                template.takes(record);
                ordinal += 1;
            }
            self.order.push((record.key(), self.places.len()));
            self.places.push((records.len() - rest.len(), ordinal));
            rest = after;
        }
        self.end(&template, ordinal, &mut ends);
        // Equal keys stay in the order given.
        self.order.sort_unstable();
        let mut items = Vec::with_capacity(records.len() + ORDINAL * self.order.len());
        for &(_, i) in &self.order {
            let (at, ordinal) = self.places[i];
            items.extend_from_slice(&ordinal.to_le_bytes());
            items.extend_from_slice(Record::at(&records[at..]).bytes());
        }
        let templates = if self.order.is_empty() { 0 } else { ordinal + 1 };
        Ok(SortedBlock { items, ends: ends.sorted(), records: self.order.len() as u64, templates })
    }

    fn end(&self, template: &Template<'_>, ordinal: u64, ends: &mut Ends) {
        if let Some(marking) = &self.marking {
            ends.push(template.primary, marking, ordinal);
        }
    }
}
