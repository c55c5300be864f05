//! Parses SAM output: assigns records to templates and templates to batches (SAM specification, sections 1.4 and 4).

mod by_name;

mod line;

use std::sync::Arc;

use crate::batching::{InstanceBatch, TextChunk};

use super::{AlignerOutputError, AlignerOutputReceiver, read_name_to_text};
use by_name::NameMatcher;
use line::{ReferenceSequenceNames, SamRecordLine};

/// Name of the placeholder reads that replace reads of other instances.
pub(crate) const PLACEHOLDER_READ_NAME: &[u8] = b"x";

/// Minimum bytes of records that are delivered to the merger at once, except at the end of a batch.
const MIN_DELIVERY_BYTES: usize = 256 << 10;

/// Maximum size of a header, bytes: several million sequences.
const MAX_HEADER_BYTES: usize = 256 << 20;
/// Maximum size of a line, and of all records of a template, bytes.
const MAX_LINE_BYTES: usize = 1 << 30;

/// Parser of the SAM output of one process.
pub(crate) struct SamParser {
    /// Bytes of an incomplete line.
    rest: Vec<u8>,
    header: Option<Vec<u8>>,
    sequences: ReferenceSequenceNames,
    records: RecordMatcher,
}

enum RecordMatcher {
    InOrder(OrderedMatcher),
    ByName(NameMatcher),
}

impl SamParser {
    /// Creates a parser. `in_order`: the process writes records in the order of the reads. `numbered`: the process also
    /// gets placeholder reads, whose records are skipped.
    pub(crate) fn new(in_order: bool, numbered: bool) -> Self {
        let records = match in_order {
            true => RecordMatcher::InOrder(OrderedMatcher { numbered, ..OrderedMatcher::default() }),
            false => RecordMatcher::ByName(NameMatcher::default()),
        };
        SamParser { rest: Vec::new(), header: Some(Vec::new()), sequences: ReferenceSequenceNames::default(), records }
    }

    /// Parses the next bytes of the output of the process and delivers the records of each read to its batch.
    pub(crate) fn parse_bytes(
        &mut self,
        bytes: &[u8],
        given: &impl AlignerOutputReceiver,
    ) -> Result<(), AlignerOutputError> {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            if self.rest.is_empty() {
                self.parse_line(&bytes[start..=end], given)?;
            } else {
                let mut text = std::mem::take(&mut self.rest);
                text.extend_from_slice(&bytes[start..=end]);
                self.parse_line(&text, given)?;
                text.clear();
                self.rest = text;
            }
            start = end + 1;
        }
        self.rest.extend_from_slice(&bytes[start..]);
        match self.rest.len() > MAX_LINE_BYTES {
            true => Err(endless_error("a line")),
            false => Ok(()),
        }
    }

    fn parse_line(&mut self, text: &[u8], given: &impl AlignerOutputReceiver) -> Result<(), AlignerOutputError> {
        if let Some(header) = &mut self.header {
            if text.starts_with(b"@") {
                header.extend_from_slice(text);
                return match header.len() > MAX_HEADER_BYTES {
                    true => Err(endless_error("a header")),
                    false => Ok(()),
                };
            }
            self.end_header(given)?;
        }
        let line = SamRecordLine::parse_record(text, &self.sequences)?;
        match &mut self.records {
            RecordMatcher::InOrder(records) => records.add_line(&line, given),
            RecordMatcher::ByName(records) => records.add_line(&line, given),
        }
    }

    fn end_header(&mut self, given: &impl AlignerOutputReceiver) -> Result<(), AlignerOutputError> {
        let Some(header) = self.header.take() else { return Ok(()) };
        self.sequences = ReferenceSequenceNames::from_header(&header)?;
        given.accept_header(header)
    }

    /// Returns whether the header is complete: a line after it was read, or the output has ended.
    pub(crate) fn has_parsed_header(&self) -> bool {
        self.header.is_none()
    }

    /// Checks that the output is complete, after the process ended successfully.
    pub(crate) fn finish_parsing(&mut self, given: &impl AlignerOutputReceiver) -> Result<(), AlignerOutputError> {
        if !self.rest.is_empty() {
            return Err(AlignerOutputError::InvalidFormat { format: "SAM", what: "it ends within a line".to_owned() });
        }
        self.end_header(given)?;
        match &mut self.records {
            RecordMatcher::InOrder(records) => records.finish_parsing(given),
            RecordMatcher::ByName(records) => records.finish_parsing(given),
        }
    }
}

fn endless_error(what: &str) -> AlignerOutputError {
    AlignerOutputError::InvalidFormat { format: "SAM", what: format!("{what} that does not end") }
}

/// The batch whose records are being parsed, and the current template.
struct OpenBatch {
    batch: Arc<InstanceBatch>,
    chunk: Arc<TextChunk>,
    /// Index of `chunk` in the batch.
    chunks: usize,
    /// Index of the current template in `chunk`.
    at: usize,
    /// Index of the current template in the batch.
    template: usize,
    /// Number of templates of the batch whose records an earlier process delivered already.
    skip: usize,
}

impl OpenBatch {
    fn name(&self) -> &[u8] {
        self.chunk.name_of_template(self.at)
    }

    /// Returns the number of reads of the template, which is its number of primary records.
    fn reads(&self) -> u32 {
        self.chunk.count_reads_of_template(self.at)
    }

    /// Moves to the next template. Returns `false` if there is none.
    fn next_template(&mut self) -> bool {
        self.at += 1;
        self.template += 1;
        if self.at == self.chunk.num_templates() {
            let Some(chunk) = self.batch.wait_for_chunk(self.chunks + 1) else { return false };
            (self.chunk, self.at) = (chunk, 0);
            self.chunks += 1;
        }
        true
    }
}

/// Assigns records to templates, for processes that write records in the order of the reads.
#[derive(Default)]
struct OrderedMatcher {
    numbered: bool,
    /// Number of batches opened.
    index: usize,
    open: Option<OpenBatch>,
    /// Number of primary records of the current template so far.
    primaries: u32,
    /// Number of input reads that the instance has counted at the end of its last finished batch, placeholder reads
    /// included.
    counted: u64,
    /// Number of placeholder records that are still expected before the records of the open batch.
    placeholders: u64,
    out: Vec<u8>,
}

impl OrderedMatcher {
    fn add_line(
        &mut self,
        line: &SamRecordLine<'_>,
        given: &impl AlignerOutputReceiver,
    ) -> Result<(), AlignerOutputError> {
        if let Some(open) = &self.open
            && self.placeholders == 0
            && self.primaries == open.reads()
            && (line.primary || line.name != open.name())
        {
            self.end_template(given);
        }
        if self.open.is_none() && !self.open_next_batch(given) {
            return Err(AlignerOutputError::TooManyRecords);
        }
        let Some(open) = &self.open else { return Err(AlignerOutputError::TooManyRecords) };
        if self.placeholders > 0 {
            self.placeholders -= 1;
            return match line.name == PLACEHOLDER_READ_NAME {
                true => Ok(()),
                false => Err(AlignerOutputError::UnexpectedRead {
                    found: read_name_to_text(line.name),
                    expected: read_name_to_text(PLACEHOLDER_READ_NAME),
                }),
            };
        }
        if line.name != open.name() {
            return Err(AlignerOutputError::UnexpectedRead {
                found: read_name_to_text(line.name),
                expected: read_name_to_text(open.name()),
            });
        }
        self.primaries += u32::from(line.primary);
        if open.template >= open.skip {
            self.out.extend_from_slice(line.text);
        }
        match self.out.len() > MAX_LINE_BYTES {
            true => Err(endless_error("a template")),
            false => Ok(()),
        }
    }

    /// Opens the next batch. Returns `false` if there is none.
    fn open_next_batch(&mut self, given: &impl AlignerOutputReceiver) -> bool {
        let Some(batch) = given.assigned_batch(self.index) else { return false };
        let Some(chunk) = batch.wait_for_chunk(0) else { return false };
        self.index += 1;
        if self.numbered {
            self.placeholders = batch.first_read - self.counted;
        }
        let skip = batch.num_templates_delivered_to_merger();
        self.open = Some(OpenBatch { batch, chunk, chunks: 0, at: 0, template: 0, skip });
        self.primaries = 0;
        true
    }

    fn end_template(&mut self, given: &impl AlignerOutputReceiver) {
        self.primaries = 0;
        let Some(open) = &mut self.open else { return };
        if open.next_template() {
            if self.out.len() >= MIN_DELIVERY_BYTES {
                open.batch.set_num_templates_delivered_to_merger(open.template);
                given.deliver_records(&open.batch, std::mem::take(&mut self.out), false);
            }
            return;
        }
        if self.numbered {
            self.counted = open.batch.first_read + open.batch.wait_for_num_reads();
        }
        given.deliver_records(&open.batch, std::mem::take(&mut self.out), true);
        self.open = None;
    }

    fn finish_parsing(&mut self, given: &impl AlignerOutputReceiver) -> Result<(), AlignerOutputError> {
        if let Some(open) = &self.open
            && self.placeholders == 0
            && self.primaries == open.reads()
        {
            self.end_template(given);
        }
        if self.open.is_none() && !self.open_next_batch(given) {
            return Ok(());
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let first = read_name_to_text(open.name());
        let mut templates = 1;
        while open.next_template() {
            templates += 1;
        }
        let others = (self.index..).map_while(|i| given.assigned_batch(i)).map(|batch| num_templates(&batch));
        Err(AlignerOutputError::MissingRecords { templates: templates + others.sum::<u64>(), first })
    }
}

fn num_templates(batch: &InstanceBatch) -> u64 {
    (0..).map_while(|i| batch.wait_for_chunk(i)).map(|chunk| chunk.num_templates() as u64).sum()
}
