//! FASTQ, four lines a record, and FASTA: cutting a file into blocks of whole records, and checking and pairing these.
//!
//! Cutting only looks for line ends, so it is short enough to be done by one thread at a time;
//! everything else happens in whichever thread holds the block.

mod block;

mod fasta;

mod record;

use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::error::{Error, FileFault, RecordFault, Shown};
use crate::inflate::{Access, Damage, Inflate};
use crate::span::Span;
use genuma_work::Meter;

pub(crate) use block::Block;
use block::LINES;
pub(crate) use record::{
    Place, Record, check_mates, is_iupac, is_printable, pair_up, pair_up_interleaved, pair_up_single,
    template_name,
};

/// Bytes decompressed at once: measured best of 32, 64, 128 and 256 KiB.
const CHUNK: usize = 128 << 10;
/// Records in a block of short reads: about 350 KiB of 2×150 bp per file.
const BLOCK_RECORDS: usize = 1024;
/// Longer records make blocks of fewer of them, so that a block stays near this many bytes.
pub(crate) const BLOCK_BYTES: usize = 512 << 10;
/// No paired read is as long as this, in bytes of its record; a block thus stays below 1.2 GB whatever the input.
const MAX_PAIRED: usize = 1 << 20;
/// More than the longest human chromosome in one record; a file of no line ends is thus refused before it fills the
/// memory.
const MAX_READ: usize = 256 << 20;

/// What is read, and how.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// How the files may be read.
    pub(crate) access: Access,
    /// Reads without qualities are welcome.
    pub(crate) fasta: bool,
    /// Bytes of the longest record.
    pub(crate) longest: usize,
    /// Bytes decompressed at once.
    pub(crate) chunk: usize,
}

impl Terms {
    /// Pairs with qualities, from regular files, or from a stretch of one.
    pub(crate) fn pairs(span: Option<Span>) -> Self {
        Terms {
            access: Access { span, ..Access::default() },
            fasta: false,
            longest: MAX_PAIRED,
            chunk: CHUNK,
        }
    }

    /// Reads of any kind.
    pub(crate) fn reads(access: Access) -> Self {
        Terms { access, fasta: true, longest: MAX_READ, chunk: CHUNK }
    }
}

/// Where a block ends: at whichever comes first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// Records, an even number.
    pub(crate) records: usize,
    /// Bytes, unless these are fewer than two records.
    pub(crate) bytes: usize,
}

/// One file being cut into blocks.
pub(crate) struct Stream<M> {
    path: PathBuf,
    inflate: Inflate<M>,
    /// What was decompressed beyond the last block.
    rest: Vec<u8>,
    /// In FASTA: where in `rest` the next line starts, or goes on.
    at: usize,
    /// In FASTA: that is within a line of bases.
    within: bool,
    /// What a header starts with.
    mark: u8,
    /// The file was read to its end, which is no line end.
    unterminated: bool,
    /// Records handed out.
    records: u64,
    longest: usize,
    chunk: usize,
}

impl<M: Deref<Target = Meter>> Stream<M> {
    /// Opens a file and checks that it starts like FASTQ, or like FASTA where that is welcome.
    pub(crate) fn open(path: &Path, meter: M, terms: &Terms) -> Result<Self, Error> {
        let mut inflate = Inflate::open(path, meter, &terms.access)?;
        let mut rest = vec![0; terms.chunk];
        let n = inflate.fill(&mut rest).map_err(|d| damaged(path, 1, d))?;
        rest.truncate(n);
        let Some(&first) = rest.first() else {
            let fault = terms.access.span.map_or(FileFault::Empty, |span| FileFault::Changed(span.from));
            return Err(Error::file(path, fault));
        };
        let mark = if terms.fasta && first == b'>' { b'>' } else { b'@' };
        if first != mark || mark == b'@' {
            if let Some((found, remedy)) = other_format(&rest) {
                return Err(Error::file(path, FileFault::Format { found, wanted: "FASTQ", remedy }));
            }
            if first != mark {
                return Err(Error::record(path, 1, RecordFault::NoAt(Shown(first))));
            }
        }
        let (longest, chunk) = (terms.longest, terms.chunk);
        let (at, within, unterminated, records) = (0, false, false, 0);
        Ok(Stream {
            path: path.into(),
            inflate,
            rest,
            at,
            within,
            mark,
            unterminated,
            records,
            longest,
            chunk,
        })
    }

    /// A number of records, even, that makes blocks of a good size.
    pub(crate) fn block_records(&self) -> usize {
        let first = memchr::memchr_iter(b'\n', &self.rest).nth(LINES - 1).unwrap_or(BLOCK_BYTES) + 1;
        (BLOCK_BYTES / first).clamp(2, BLOCK_RECORDS) & !1
    }

    /// Moves the next records into `block`, an even number unless the file ends or has a fault with it;
    /// the block keeps the fault, so that what is wrong with records before it is found first.
    pub(crate) fn cut(&mut self, block: &mut Block, limit: Limit) {
        if self.mark == b'>' {
            self.cut_fasta(block, limit);
        } else {
            self.cut_fastq(block, limit);
        }
        self.records += block.records() as u64;
    }

    fn cut_fastq(&mut self, block: &mut Block, limit: Limit) {
        block.start(self.mark, self.records, &self.rest);
        self.rest.clear();
        let lines = limit.records * LINES;
        let mut scanned = 0;
        block.more = loop {
            let room = lines - block.ends.len();
            let found = memchr::memchr_iter(b'\n', &block.bytes[scanned..block.filled]).take(room);
            block.ends.extend(found.map(|at| scanned + at));
            scanned = block.filled;
            if block.ends.len() == lines || (block.filled >= limit.bytes && block.records() >= 2) {
                break true;
            }
            match self.grow(block) {
                Ok(true) => {}
                Ok(false) => break false,
                Err(e) => {
                    block.fault = Some(e);
                    break false;
                }
            }
        };
        block.unterminated = self.unterminated;
        if block.more {
            block.truncate(block.records() & !1);
            let end = block.whole();
            self.rest.extend_from_slice(&block.bytes[end..block.filled]);
        } else if block.fault.is_none() && !block.bytes[block.whole()..block.filled].iter().all(is_line_end) {
            let record = self.records + block.records() as u64 + 1;
            block.fault = Some(Error::record(&self.path, record, RecordFault::Truncated));
        }
    }

    /// Decompresses the next chunk into `block`; false at the end of the file.
    fn grow(&mut self, block: &mut Block) -> Result<bool, Error> {
        let (record, whole) = (block.before + block.records() as u64 + 1, block.whole());
        if block.filled - whole > self.longest {
            return Err(Error::record(&self.path, record, RecordFault::TooLong(self.longest)));
        }
        // One byte more than the chunk, for the line end that the last line of a file may lack.
        block.reserve(self.chunk + 1);
        let room = &mut block.bytes[block.filled..block.filled + self.chunk];
        let n = self.inflate.fill(room).map_err(|d| damaged(&self.path, record, d))?;
        block.filled += n;
        if n == 0 && block.filled > whole && block.bytes[block.filled - 1] != b'\n' {
            block.append(b"\n");
            self.unterminated = true;
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
        Damage::Changed(at) => return Error::file(path, FileFault::Changed(at)),
        Damage::Truncated => RecordFault::GzipTruncated,
        Damage::Corrupt(what) => RecordFault::GzipCorrupt(what),
    };
    Error::record(path, record, fault)
}

/// What to do with the formats of bqtools.
const BINSEQ: &str =
    "of pipes, and here, only FASTQ is read: save it to a file, or turn it into FASTQ with bqtools decode";

/// Formats that are often given by mistake.
fn other_format(head: &[u8]) -> Option<(&'static str, &'static str)> {
    match head {
        [b'B', b'A', b'M', 1, ..] => {
            Some(("BAM", "of pipes, and here, only FASTQ is read: turn it into that with samtools fastq"))
        }
        [b'C', b'R', b'A', b'M', ..] => {
            Some(("CRAM", "of pipes, and here, only FASTQ is read: turn it into that with samtools fastq"))
        }
        [b'C', b'B', b'Q', b'F', ..] => Some(("CBQ", BINSEQ)),
        [b'V', b'S', b'E', b'Q', ..] => Some(("VBQ", BINSEQ)),
        [b'B', b'S', b'E', b'Q', ..] => Some(("BQ", BINSEQ)),
        [b'>', ..] => Some(("a FASTA file", "give reads with qualities")),
        [b'@', b'H', b'D', b'\t', ..] | [b'@', b'S', b'Q', b'\t', ..] => {
            Some(("a SAM file", "turn it into FASTQ with samtools fastq"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
