//! Assigns records to templates by name, for output in any order.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashTable;

use crate::batching::{InstanceBatch, TextChunk};
use crate::merge::{AlignerOutputError, AlignerOutputReceiver, read_name_to_text};

use super::{MAX_LINE_BYTES, SamRecordLine, endless_error};

/// Assigns records to templates by name, for processes that write templates in any order. The records of one template
/// are consecutive. They are delivered in the order of the reads.
#[derive(Default)]
pub(super) struct NameMatcher {
    /// Batches whose names are loaded.
    batches: Vec<BatchByName>,
    /// Templates for which the process has not written records yet; the key is the hash of their name.
    due: HashTable<PendingTemplate>,
    hasher: RandomState,
    /// Template of the last record.
    current: Option<CurrentTemplate>,
}

/// Position of a template in the input. Templates are ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PendingTemplate {
    /// Index of the batch among those assigned to the process ([`NameMatcher::batches`]), not its number.
    batch: u32,
    /// Index of the chunk in the batch.
    chunk: u32,
    /// Index of the template in the chunk.
    at: u32,
}

struct CurrentTemplate {
    due: PendingTemplate,
    reads: u32,
    primaries: u32,
    /// Start of the template's records in the text of its batch.
    start: usize,
}

/// A batch with the records that the process has written for it.
struct BatchByName {
    batch: Arc<InstanceBatch>,
    /// Chunks whose names are loaded; empty when the batch is complete.
    chunks: Vec<Arc<TextChunk>>,
    /// Number of chunks whose names are loaded.
    known: usize,
    /// Number of templates in the loaded chunks.
    templates: usize,
    /// Records in the order in which they arrived.
    text: Vec<u8>,
    records: Vec<(PendingTemplate, Range<usize>)>,
}

fn name_of_template<'a>(batches: &'a [BatchByName], due: &PendingTemplate) -> &'a [u8] {
    batches[due.batch as usize].chunks[due.chunk as usize].name_of_template(due.at as usize)
}

impl NameMatcher {
    /// Adds a SAM line. If the line begins a new template, first stores the records of the previous template.
    pub(super) fn add_line(
        &mut self,
        line: &SamRecordLine<'_>,
        given: &impl AlignerOutputReceiver,
    ) -> Result<(), AlignerOutputError> {
        let batches = &self.batches;
        let same = |current: &CurrentTemplate| {
            (!line.primary || current.primaries < current.reads) && name_of_template(batches, &current.due) == line.name
        };
        if !self.current.as_ref().is_some_and(same) {
            self.end_template(given)?;
            let due = self
                .take_template(line.name, given)
                .ok_or_else(|| AlignerOutputError::UnknownRead(read_name_to_text(line.name)))?;
            let batch = &self.batches[due.batch as usize];
            let reads = batch.chunks[due.chunk as usize].count_reads_of_template(due.at as usize);
            self.current = Some(CurrentTemplate { due, reads, primaries: 0, start: batch.text.len() });
        }
        if let Some(current) = &mut self.current {
            current.primaries += u32::from(line.primary);
            let text = &mut self.batches[current.due.batch as usize].text;
            text.extend_from_slice(line.text);
            if text.len() - current.start > MAX_LINE_BYTES {
                return Err(endless_error("a template"));
            }
        }
        Ok(())
    }

    /// Removes and returns the first pending template with this name.
    fn take_template(&mut self, wanted: &[u8], given: &impl AlignerOutputReceiver) -> Option<PendingTemplate> {
        let hash = self.hasher.hash_one(wanted);
        loop {
            let named = |due: &&PendingTemplate| name_of_template(&self.batches, due) == wanted;
            if let Some(first) = self.due.iter_hash(hash).filter(named).min().copied() {
                if let Ok(entry) = self.due.find_entry(hash, |due| *due == first) {
                    entry.remove();
                }
                return Some(first);
            }
            if !self.load_names(given) {
                return None;
            }
        }
    }

    /// Adds the templates of the next chunk to the pending templates. Returns `false` if no more chunks are assigned.
    fn load_names(&mut self, given: &impl AlignerOutputReceiver) -> bool {
        loop {
            let number = self.batches.len();
            if let Some(last) = self.batches.last_mut()
                && let Some(chunk) = last.next_chunk()
            {
                last.templates += chunk.num_templates();
                last.chunks.push(Arc::clone(&chunk));
                let of = last.known;
                last.known += 1;
                let hash = |due: &PendingTemplate| self.hasher.hash_one(name_of_template(&self.batches, due));
                for at in 0..chunk.num_templates() {
                    let due = PendingTemplate { batch: (number - 1) as u32, chunk: of as u32, at: at as u32 };
                    self.due.insert_unique(self.hasher.hash_one(chunk.name_of_template(at)), due, hash);
                }
                return true;
            }
            let Some(batch) = given.assigned_batch(number) else { return false };
            self.batches.push(BatchByName::new(batch));
        }
    }

    fn end_template(&mut self, given: &impl AlignerOutputReceiver) -> Result<(), AlignerOutputError> {
        let Some(CurrentTemplate { due, reads, primaries, start }) = self.current.take() else { return Ok(()) };
        if primaries != reads {
            return Err(AlignerOutputError::MissingRecords {
                templates: 1,
                first: read_name_to_text(name_of_template(&self.batches, &due)),
            });
        }
        let answered = &mut self.batches[due.batch as usize];
        answered.records.push((due, start..answered.text.len()));
        if answered.records.len() == answered.templates && answered.next_chunk().is_none() {
            let text = answered.records_in_read_order();
            given.deliver_records(&answered.batch, text, true);
        }
        Ok(())
    }

    /// Stores the records of the last template, and checks that all templates have records.
    pub(super) fn finish_parsing(&mut self, given: &impl AlignerOutputReceiver) -> Result<(), AlignerOutputError> {
        self.end_template(given)?;
        while self.load_names(given) {}
        match self.due.iter().min() {
            None => Ok(()),
            Some(first) => Err(AlignerOutputError::MissingRecords {
                templates: self.due.len() as u64,
                first: read_name_to_text(name_of_template(&self.batches, first)),
            }),
        }
    }
}

impl BatchByName {
    fn new(batch: Arc<InstanceBatch>) -> Self {
        BatchByName { batch, chunks: Vec::new(), known: 0, templates: 0, text: Vec::new(), records: Vec::new() }
    }

    /// Returns the next chunk whose names are not loaded.
    fn next_chunk(&self) -> Option<Arc<TextChunk>> {
        self.batch.wait_for_chunk(self.known)
    }

    /// Returns all records of the batch in the order of the reads, and releases the memory of the batch.
    fn records_in_read_order(&mut self) -> Vec<u8> {
        let (text, mut records) = (std::mem::take(&mut self.text), std::mem::take(&mut self.records));
        self.chunks.clear();
        if records.is_sorted_by_key(|(due, _)| *due) {
            return text;
        }
        records.sort_unstable_by_key(|(due, _)| *due);
        let mut sorted = Vec::with_capacity(text.len());
        records.into_iter().for_each(|(_, range)| sorted.extend_from_slice(&text[range]));
        sorted
    }
}
