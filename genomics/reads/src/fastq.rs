//! FASTQ, four lines a record: cutting a file into blocks of whole records, and checking and pairing the records.
//!
//! Cutting only looks for line ends, so it is short enough to be done by one thread at a time;
//! everything else happens in whichever thread holds the block.

use std::path::{Path, PathBuf};

use crate::batch::{Mate, PairBatch};
use crate::error::{Error, FileFault, RecordFault, Shown};
use crate::inflate::{Damage, Inflate};
use crate::meter::Meter;

/// Bytes decompressed at once: measured best of 32, 64, 128 and 256 KiB.
const CHUNK: usize = 128 << 10;
/// Records in a block of short reads: about 350 KiB of 2×150 bp per file.
const BLOCK_RECORDS: usize = 1024;
/// Longer records make blocks of fewer of them, so that a block stays near this many bytes.
const BLOCK_BYTES: usize = 512 << 10;
/// No paired read is as long as this, in bytes of its record; a block thus stays below 1.2 GB whatever the input.
const MAX_RECORD: usize = 1 << 20;
const LINES: usize = 4;

/// Consecutive whole records of one file.
#[derive(Debug, Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    /// Bytes of `bytes` that are in use; the rest is room that keeps its pages.
    filled: usize,
    /// Where each line ends (its `\n`), four a record.
    ends: Vec<usize>,
    /// Records of the file before this block.
    before: u64,
    /// The file ends with this block and its last line has no line end.
    unterminated: bool,
    /// What stopped the reading after the last record.
    fault: Option<Error>,
}

impl Block {
    pub(crate) fn records(&self) -> usize {
        self.ends.len() / LINES
    }

    /// Records of the file before the block.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    /// Empties the block and begins it with `rest`, what was read of the file after `before` records.
    fn start(&mut self, before: u64, rest: &[u8]) {
        (self.before, self.filled, self.unterminated, self.fault) = (before, 0, false, None);
        self.ends.clear();
        self.reserve(rest.len());
        self.bytes[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
    }

    /// Makes room for `more` bytes.
    fn reserve(&mut self, more: usize) {
        if self.bytes.len() < self.filled + more {
            self.bytes.resize(self.filled + more, 0);
        }
    }

    /// Where the last whole record ends in `bytes`.
    fn whole(&self) -> usize {
        let lines = self.records() * LINES;
        if lines == 0 { 0 } else { self.ends[lines - 1] + 1 }
    }

    /// The lines of the record at `i`, without line ends.
    fn lines(&self, i: usize) -> [&[u8]; LINES] {
        let ends = &self.ends[i * LINES..(i + 1) * LINES];
        let mut start = if i == 0 { 0 } else { self.ends[i * LINES - 1] + 1 };
        std::array::from_fn(|line| {
            let text = &self.bytes[start..ends[line]];
            start = ends[line] + 1;
            text.strip_suffix(b"\r").unwrap_or(text)
        })
    }
}

/// One FASTQ file being cut into blocks.
pub(crate) struct Stream<'m> {
    path: PathBuf,
    inflate: Inflate<'m>,
    /// What was decompressed beyond the last block.
    rest: Vec<u8>,
    /// Records handed out.
    records: u64,
    chunk: usize,
}

impl<'m> Stream<'m> {
    /// Opens a file and checks that it starts like FASTQ.
    pub(crate) fn open(path: &Path, meter: &'m Meter) -> Result<Self, Error> {
        Self::with_chunk(path, meter, CHUNK)
    }

    /// Same, decompressing `chunk` bytes at a time.
    fn with_chunk(path: &Path, meter: &'m Meter, chunk: usize) -> Result<Self, Error> {
        let inflate = Inflate::open(path, meter)?;
        let mut stream = Stream { path: path.into(), inflate, rest: Vec::new(), records: 0, chunk };
        stream.rest.resize(chunk, 0);
        let n = stream.inflate.fill(&mut stream.rest).map_err(|d| damaged(path, 1, d))?;
        stream.rest.truncate(n);
        let Some(&first) = stream.rest.first() else {
            return Err(Error::file(path, FileFault::Empty));
        };
        if let Some((found, remedy)) = other_format(&stream.rest) {
            return Err(Error::file(path, FileFault::Format { found, wanted: "FASTQ", remedy }));
        }
        if first != b'@' {
            return Err(Error::record(path, 1, RecordFault::NoAt(Shown(first))));
        }
        Ok(stream)
    }

    /// A number of records, even, that makes blocks of a good size.
    pub(crate) fn block_records(&self) -> usize {
        let first = memchr::memchr_iter(b'\n', &self.rest).nth(LINES - 1).unwrap_or(BLOCK_BYTES) + 1;
        (BLOCK_BYTES / first).clamp(2, BLOCK_RECORDS) & !1
    }

    /// Moves the next `records` records into `block`, or fewer at the end of the file or before a fault in it;
    /// the block keeps the fault, so that what is wrong with records before it is found first.
    pub(crate) fn cut(&mut self, block: &mut Block, records: usize) {
        block.start(self.records, &self.rest);
        self.rest.clear();
        let lines = records * LINES;
        let mut scanned = 0;
        while block.ends.len() < lines {
            let room = lines - block.ends.len();
            let found = memchr::memchr_iter(b'\n', &block.bytes[scanned..block.filled]).take(room);
            block.ends.extend(found.map(|at| scanned + at));
            scanned = block.filled;
            if block.ends.len() < lines {
                match self.grow(block) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(e) => {
                        block.fault = Some(e);
                        break;
                    }
                }
            }
        }
        self.records += block.records() as u64;
        if block.ends.len() == lines {
            let end = block.whole();
            self.rest.extend_from_slice(&block.bytes[end..block.filled]);
        } else if block.fault.is_none() && !block.bytes[block.whole()..block.filled].iter().all(is_line_end) {
            block.fault = Some(Error::record(&self.path, self.records + 1, RecordFault::Truncated));
        }
    }

    /// Decompresses the next chunk into `block`; false at the end of the file.
    fn grow(&mut self, block: &mut Block) -> Result<bool, Error> {
        let (record, whole) = (block.before + block.records() as u64 + 1, block.whole());
        if block.filled - whole > MAX_RECORD {
            return Err(Error::record(&self.path, record, RecordFault::TooLong(MAX_RECORD)));
        }
        // One byte more than the chunk, for the line end that the last line of a file may lack.
        block.reserve(self.chunk + 1);
        let room = &mut block.bytes[block.filled..block.filled + self.chunk];
        let n = self.inflate.fill(room).map_err(|d| damaged(&self.path, record, d))?;
        block.filled += n;
        if n == 0 && block.filled > whole && block.bytes[block.filled - 1] != b'\n' {
            block.bytes[block.filled] = b'\n';
            block.filled += 1;
            block.unterminated = true;
            return Ok(true);
        }
        Ok(n > 0)
    }
}

/// Of a blank line: editors leave some at the end of a file.
fn is_line_end(b: &u8) -> bool {
    matches!(b, b'\n' | b'\r')
}

fn damaged(path: &Path, record: u64, damage: Damage) -> Error {
    let fault = match damage {
        Damage::Io(source) => return Error::Read { path: path.into(), source },
        Damage::Truncated => RecordFault::GzipTruncated,
        Damage::Corrupt(what) => RecordFault::GzipCorrupt(what),
    };
    Error::record(path, record, fault)
}

/// Formats that are often given by mistake.
fn other_format(head: &[u8]) -> Option<(&'static str, &'static str)> {
    match head {
        [b'B', b'A', b'M', 1, ..] => Some(("a BAM file", "turn it into FASTQ with samtools fastq")),
        [b'C', b'R', b'A', b'M', ..] => Some(("a CRAM file", "turn it into FASTQ with samtools fastq")),
        [b'>', ..] => Some(("a FASTA file", "give reads with qualities")),
        [b'@', b'H', b'D', b'\t', ..] | [b'@', b'S', b'Q', b'\t', ..] => {
            Some(("a SAM file", "turn it into FASTQ with samtools fastq"))
        }
        _ => None,
    }
}

/// A checked record.
struct Record<'a> {
    /// First word of the header, without a closing `/1` or `/2`.
    name: &'a [u8],
    /// `1` or `2` where the header says which read of the template it is.
    number: Option<u8>,
    mate: Mate<'a>,
}

/// Where a record is: its block, its number in it, and the file's path.
#[derive(Clone, Copy)]
struct Place<'a> {
    block: &'a Block,
    path: &'a Path,
    index: usize,
}

impl<'a> Place<'a> {
    fn fault(&self, fault: RecordFault) -> Error {
        Error::record(self.path, self.block.before + self.index as u64 + 1, fault)
    }

    /// Whether the file ends within the last line of the record, or at least without a line end.
    fn is_cut_off(&self) -> bool {
        let Block { unterminated, filled, .. } = *self.block;
        unterminated && self.index + 1 == self.block.records() && self.block.whole() == filled
    }

    /// Checks a record as far as that is possible without its mate.
    fn record(&self) -> Result<Record<'a>, Error> {
        let [header, seq, plus, qual] = self.block.lines(self.index);
        let first = |line: &[u8]| Shown(line.first().copied().unwrap_or(b'\n'));
        let Some(header) = header.strip_prefix(b"@") else {
            return Err(self.fault(RecordFault::NoAt(first(header))));
        };
        if !plus.starts_with(b"+") {
            return Err(self.fault(RecordFault::NoPlus(first(plus))));
        }
        if seq.len() != qual.len() {
            if self.is_cut_off() && qual.len() < seq.len() {
                return Err(self.fault(RecordFault::Truncated));
            }
            return Err(self.fault(RecordFault::Lengths { seq: seq.len(), qual: qual.len() }));
        }
        if !seq.iter().fold(true, |ok, &b| ok & usual(b))
            && let Some(&b) = seq.iter().find(|&&b| !is_iupac(b))
        {
            return Err(self.fault(RecordFault::Letter(Shown(b))));
        }
        if !qual.iter().fold(true, |ok, &q| ok & is_quality(q)) {
            let bad = qual.iter().find(|&&q| !is_quality(q)).map_or(0, |&q| q);
            return Err(self.fault(RecordFault::Quality(Shown(bad))));
        }
        let (name, number) = template(header);
        Ok(Record { name, number, mate: Mate { seq, qual } })
    }
}

/// Letters nearly every read is made of; compared one by one so that the compiler can do it for many bases at once.
fn usual(b: u8) -> bool {
    (b == b'A') | (b == b'C') | (b == b'G') | (b == b'T') | (b == b'N')
}

const IUPAC: [bool; 256] = {
    let mut table = [false; 256];
    let letters = b"ACGTUNRYSWKMBDHV";
    let mut i = 0;
    while i < letters.len() {
        table[letters[i] as usize] = true;
        table[letters[i].to_ascii_lowercase() as usize] = true;
        i += 1;
    }
    table
};

/// Whether a byte is a letter of the IUPAC nucleotide alphabet, in either case.
pub(crate) fn is_iupac(b: u8) -> bool {
    IUPAC[b as usize]
}

fn is_quality(q: u8) -> bool {
    q.wrapping_sub(b'!') <= b'~' - b'!'
}

/// Template name and read number of a header: `name/1`, or `name 1:N:0:ACGT` (Casava 1.8), or just a name.
fn template(header: &[u8]) -> (&[u8], Option<u8>) {
    let end = header.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(header.len());
    let (word, rest) = header.split_at(end);
    match (word, rest) {
        ([name @ .., b'/', number @ (b'1' | b'2')], _) => (name, Some(*number)),
        (_, [_, number @ (b'1' | b'2'), b':', ..]) => (word, Some(*number)),
        _ => (word, None),
    }
}

/// Checks the records of two blocks of mate files and appends them to `batch` as pairs.
pub(crate) fn pair_up(
    blocks: &mut [Block; 2],
    paths: [&Path; 2],
    batch: &mut PairBatch,
) -> Result<(), Error> {
    let records = [0, 1].map(|mate| blocks[mate].records());
    let both = records[0].min(records[1]);
    for index in 0..both {
        push_pair([0, 1].map(|mate| Place { block: &blocks[mate], path: paths[mate], index }), batch)?;
    }
    if let Some(fault) = blocks.iter_mut().find_map(|block| block.fault.take()) {
        return Err(fault);
    }
    if records[0] == records[1] {
        return Ok(());
    }
    // Only the last block of a file is shorter than asked for, so the shorter one ends its file.
    let (short, long) = if records[0] < records[1] { (0, 1) } else { (1, 0) };
    Err(Error::MatesMissing {
        short: paths[short].into(),
        records: blocks[short].before + both as u64,
        long: paths[long].into(),
    })
}

/// Same for a block of an interleaved file.
pub(crate) fn pair_up_interleaved(
    block: &mut Block,
    path: &Path,
    batch: &mut PairBatch,
) -> Result<(), Error> {
    let records = block.records();
    for pair in 0..records / 2 {
        push_pair([2 * pair, 2 * pair + 1].map(|index| Place { block, path, index }), batch)?;
    }
    let mut alone = None;
    if records % 2 == 1 {
        let last = Place { block, path, index: records - 1 };
        last.record()?;
        alone = Some(last.fault(RecordFault::NoMate));
    }
    block.fault.take().or(alone).map_or(Ok(()), Err)
}

fn push_pair(places: [Place<'_>; 2], batch: &mut PairBatch) -> Result<(), Error> {
    let [one, two] = [places[0].record()?, places[1].record()?];
    let text = |s: &[u8]| String::from_utf8_lossy(s).into_owned();
    if one.name != two.name {
        let (name, mate) = (text(one.name), text(two.name));
        return Err(places[0].fault(RecordFault::Names { name, mate, mate_path: places[1].path.into() }));
    }
    if let (Some(number), true) = (one.number, one.number == two.number) {
        let (name, number) = (text(one.name), number as char);
        return Err(places[0].fault(RecordFault::SameMate {
            name,
            number,
            mate_path: places[1].path.into(),
        }));
    }
    batch.push(one.name, [one.mate, two.mate]);
    Ok(())
}

#[cfg(test)]
mod tests;
