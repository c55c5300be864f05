//! SAM: lines to templates, templates to batches (SAM specification, sections 1.4 and 4).

mod by_name;

mod line;

use std::sync::Arc;

use crate::deal::{Batch, Chunk};

use super::{Fault, Given, shown};
use by_name::ByName;
use line::{Line, Sequences};

/// Name of the reads that stand for those that an instance does not get.
pub(crate) const PLACEHOLDER: &[u8] = b"x";

/// Bytes of records handed over at once.
const PIECE: usize = 256 << 10;

/// Bytes of the longest header: several million sequences.
const LONGEST_HEADER: usize = 256 << 20;
/// Bytes of the longest line, and of all records of a template.
const LONGEST: usize = 1 << 30;

/// Takes the output of one process apart.
pub(crate) struct Sam {
    /// Bytes that are no whole line yet.
    rest: Vec<u8>,
    header: Option<Vec<u8>>,
    sequences: Sequences,
    records: Records,
}

enum Records {
    InOrder(InOrder),
    ByName(ByName),
}

impl Sam {
    /// `in_order` if the process answers reads as it gets them; `numbered` if it is also given reads that stand for others.
    pub fn new(in_order: bool, numbered: bool) -> Self {
        let records = match in_order {
            true => Records::InOrder(InOrder { numbered, ..InOrder::default() }),
            false => Records::ByName(ByName::default()),
        };
        Sam { rest: Vec::new(), header: Some(Vec::new()), sequences: Sequences::default(), records }
    }

    /// Takes what was read.
    pub fn take(&mut self, bytes: &[u8], given: &impl Given) -> Result<(), Fault> {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            if self.rest.is_empty() {
                self.line(&bytes[start..=end], given)?;
            } else {
                let mut text = std::mem::take(&mut self.rest);
                text.extend_from_slice(&bytes[start..=end]);
                self.line(&text, given)?;
                text.clear();
                self.rest = text;
            }
            start = end + 1;
        }
        self.rest.extend_from_slice(&bytes[start..]);
        match self.rest.len() > LONGEST {
            true => Err(endless("a line")),
            false => Ok(()),
        }
    }

    fn line(&mut self, text: &[u8], given: &impl Given) -> Result<(), Fault> {
        if let Some(header) = &mut self.header {
            if text.starts_with(b"@") {
                header.extend_from_slice(text);
                return match header.len() > LONGEST_HEADER {
                    true => Err(endless("a header")),
                    false => Ok(()),
                };
            }
            self.end_header(given)?;
        }
        let line = Line::parse(text, &self.sequences)?;
        match &mut self.records {
            Records::InOrder(records) => records.line(&line, given),
            Records::ByName(records) => records.line(&line, given),
        }
    }

    fn end_header(&mut self, given: &impl Given) -> Result<(), Fault> {
        let Some(header) = self.header.take() else { return Ok(()) };
        self.sequences = Sequences::of(&header)?;
        given.header(header)
    }

    /// Whether records came.
    pub fn answered(&self) -> bool {
        self.header.is_none()
    }

    /// The output has ended, and the process ended well.
    pub fn end(&mut self, given: &impl Given) -> Result<(), Fault> {
        if !self.rest.is_empty() {
            return Err(Fault::NoFormat { format: "SAM", what: "it ends within a line".to_owned() });
        }
        self.end_header(given)?;
        match &mut self.records {
            Records::InOrder(records) => records.end(given),
            Records::ByName(records) => records.end(given),
        }
    }
}

fn endless(what: &str) -> Fault {
    Fault::NoFormat { format: "SAM", what: format!("{what} that does not end") }
}

/// A batch that is being answered, and which of its templates is.
struct Open {
    batch: Arc<Batch>,
    chunk: Arc<Chunk>,
    /// Number of `chunk` in the batch.
    chunks: usize,
    /// Number of the template in `chunk`.
    at: usize,
    /// The same in the batch.
    template: usize,
    /// Templates whose records an earlier process delivered.
    skip: usize,
}

impl Open {
    fn name(&self) -> &[u8] {
        self.chunk.name(self.at)
    }

    /// Primary records of the template: its reads.
    fn reads(&self) -> u32 {
        self.chunk.reads(self.at)
    }

    /// Moves to the next template; false if there is none.
    fn advance(&mut self) -> bool {
        self.at += 1;
        self.template += 1;
        if self.at == self.chunk.templates() {
            let Some(chunk) = self.batch.chunk(self.chunks + 1) else { return false };
            (self.chunk, self.at) = (chunk, 0);
            self.chunks += 1;
        }
        true
    }
}

/// Records in the order of the reads.
#[derive(Default)]
struct InOrder {
    numbered: bool,
    /// Batches opened.
    index: usize,
    open: Option<Open>,
    /// Primary records of the open template so far.
    primaries: u32,
    /// Reads that the process has counted.
    counted: u64,
    /// Lines of placeholders before the open batch.
    placeholders: u64,
    out: Vec<u8>,
}

impl InOrder {
    fn line(&mut self, line: &Line<'_>, given: &impl Given) -> Result<(), Fault> {
        if let Some(open) = &self.open
            && self.placeholders == 0
            && self.primaries == open.reads()
            && (line.primary || line.name != open.name())
        {
            self.end_template(given);
        }
        if self.open.is_none() && !self.open(given) {
            return Err(Fault::Surplus);
        }
        let Some(open) = &self.open else { return Err(Fault::Surplus) };
        if self.placeholders > 0 {
            self.placeholders -= 1;
            return match line.name == PLACEHOLDER {
                true => Ok(()),
                false => Err(Fault::Other { found: shown(line.name), expected: shown(PLACEHOLDER) }),
            };
        }
        if line.name != open.name() {
            return Err(Fault::Other { found: shown(line.name), expected: shown(open.name()) });
        }
        self.primaries += u32::from(line.primary);
        if open.template >= open.skip {
            self.out.extend_from_slice(line.text);
        }
        match self.out.len() > LONGEST {
            true => Err(endless("a template")),
            false => Ok(()),
        }
    }

    /// Opens the next batch; false if there is none.
    fn open(&mut self, given: &impl Given) -> bool {
        let Some(batch) = given.given(self.index) else { return false };
        let Some(chunk) = batch.chunk(0) else { return false };
        self.index += 1;
        if self.numbered {
            self.placeholders = batch.first - self.counted;
        }
        let skip = batch.delivered();
        self.open = Some(Open { batch, chunk, chunks: 0, at: 0, template: 0, skip });
        self.primaries = 0;
        true
    }

    fn end_template(&mut self, given: &impl Given) {
        self.primaries = 0;
        let Some(open) = &mut self.open else { return };
        if open.advance() {
            if self.out.len() >= PIECE {
                open.batch.deliver(open.template);
                given.deliver(&open.batch, std::mem::take(&mut self.out), false);
            }
            return;
        }
        if self.numbered {
            self.counted = open.batch.first + open.batch.reads();
        }
        given.deliver(&open.batch, std::mem::take(&mut self.out), true);
        self.open = None;
    }

    fn end(&mut self, given: &impl Given) -> Result<(), Fault> {
        if let Some(open) = &self.open
            && self.placeholders == 0
            && self.primaries == open.reads()
        {
            self.end_template(given);
        }
        if self.open.is_none() && !self.open(given) {
            return Ok(());
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let first = shown(open.name());
        let mut templates = 1;
        while open.advance() {
            templates += 1;
        }
        let others = (self.index..).map_while(|i| given.given(i)).map(|batch| templates_of(&batch));
        Err(Fault::Missing { templates: templates + others.sum::<u64>(), first })
    }
}

fn templates_of(batch: &Batch) -> u64 {
    (0..).map_while(|i| batch.chunk(i)).map(|chunk| chunk.templates() as u64).sum()
}
