//! What the formats of the crate `binseq` 0.11 share (CBQ, VBQ, BQ): blocks one after the other, what zstd has packed, and how their reads become those of a piece.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read as _};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use genuma_work::Meter;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::error::{Error, RecordFault, Shown};
use crate::fastq::template_name;
use crate::source::Source;

use super::piece::{Fields, Piece, flag};
use super::tally::Tally;

/// No column or index is as long as this, in bytes: a damaged length is thus told before it fills the memory.
pub(super) const LONGEST: u64 = 1 << 30;
/// Bytes read from the disk at once.
const DISK_CHUNK: usize = 256 << 10;

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

/// A file being read.
pub(super) struct Blocks<M> {
    path: PathBuf,
    reader: BufReader<Source<M>>,
    /// Reads, or pairs, of the blocks before.
    pub(super) records: u64,
}

impl<M: Deref<Target = Meter>> Blocks<M> {
    /// Opens a file, at its first byte.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn open(path: &Path, meter: M) -> Result<Self, Error> {
        let reader = BufReader::with_capacity(DISK_CHUNK, Source::open(path, None, meter, None)?);
        Ok(Blocks { path: path.into(), reader, records: 0 })
    }

    /// Reads on.
    ///
    /// # Errors
    /// The file cannot be read, or ends too early.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.reader.read_exact(bytes).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => self.truncated(),
            _ => Error::Read { path: self.path.clone(), source },
        })
    }

    /// Reads up to so many bytes, in place of those in `bytes`: memory is taken for those that there are, whatever a length says. Tells how many these are.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn most(&mut self, most: u64, bytes: &mut Vec<u8>) -> Result<u64, Error> {
        bytes.clear();
        let read = self.reader.by_ref().take(most).read_to_end(bytes);
        read.map(|read| read as u64).map_err(|source| Error::Read { path: self.path.clone(), source })
    }

    /// Reads so many bytes.
    ///
    /// # Errors
    /// The file cannot be read, or ends too early.
    pub(super) fn take(&mut self, wanted: u64, bytes: &mut Vec<u8>) -> Result<(), Error> {
        if self.most(wanted, bytes)? < wanted { Err(self.truncated()) } else { Ok(()) }
    }

    /// Says that it ends within the next record.
    pub(super) fn truncated(&self) -> Error {
        Error::record(&self.path, self.records + 1, RecordFault::Truncated)
    }

    /// What is wrong from the next record on.
    pub(super) fn damaged(&self, what: &'static str) -> Error {
        Error::record(&self.path, self.records + 1, RecordFault::Damaged(what))
    }

    /// Bytes that were read from the disk and not asked for yet.
    pub(super) fn ahead(&self) -> u64 {
        self.reader.buffer().len() as u64
    }
}

/// Unpacks what has so many bytes then; `None` where it has not.
pub(super) fn unpack(packed: &[u8], bytes: usize, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    out.resize(bytes, 0);
    if bytes == 0 && packed.is_empty() {
        return Some(());
    }
    let found = FrameDecoder::new().decode_all(packed, out).ok()?;
    (found == bytes).then_some(())
}

/// Unpacks what nobody knows the length of: all of it, or one byte more than `most`; `None` where it is damaged.
pub(super) fn unpack_most(mut packed: &[u8], most: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    StreamingDecoder::new(&mut packed).ok()?.take(most + 1).read_to_end(&mut out).ok()?;
    (out.len() as u64 > most || packed.is_empty()).then_some(out)
}

/// What is left of some bytes.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    pub(super) fn skip(&mut self, n: usize) -> Option<&'a [u8]> {
        let (skipped, after) = self.0.split_at_checked(n)?;
        self.0 = after;
        Some(skipped)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        self.skip(8).map(|bytes| u64_at(bytes, 0))
    }

    /// Values of so many bytes each, with their number before them.
    pub(super) fn list(&mut self, size: usize) -> Option<&'a [u8]> {
        let values = usize::try_from(self.number()?).ok()?;
        self.skip(values.checked_mul(size)?)
    }
}

/// A read of a block.
pub(super) struct Read<'a, 'b> {
    /// All of its header; none in a file that has none.
    pub(super) header: Option<&'a [u8]>,
    pub(super) seq: &'b [u8],
    /// As FASTQ has them; empty in a file that has none.
    pub(super) qual: &'b [u8],
}

/// Puts reads of a block into a piece, in their order.
pub(super) struct Reads<'a> {
    path: &'a Path,
    paired: bool,
    piece: &'a mut Piece,
    tally: &'a mut Tally,
    /// Name of read 1.
    first: &'a [u8],
    number: String,
    scores: Vec<u8>,
}

impl<'a> Reads<'a> {
    /// Of a file, pairs or not.
    pub(super) fn new(path: &'a Path, paired: bool, piece: &'a mut Piece, tally: &'a mut Tally) -> Self {
        Reads { path, paired, piece, tally, first: b"", number: String::new(), scores: Vec::new() }
    }

    /// Puts read 1 (0) or 2 (1) of a record of the piece. Where reads have no names they have the number of their record in the file.
    ///
    /// # Errors
    /// It is no read, or has another name than its mate.
    pub(super) fn put(&mut self, record: usize, mate: usize, read: Read<'a, '_>) -> Result<(), RecordFault> {
        let Read { header, seq, qual } = read;
        let flags = match (self.paired, mate) {
            (false, _) => 0,
            (true, 0) => flag::PAIRED | flag::FIRST,
            (true, _) => flag::PAIRED | flag::LAST,
        };
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let named = header.map(|header| header.split(blank).next().unwrap_or_default());
        if let Some(name) = named {
            if mate == 0 {
                self.first = name;
            } else if template_name(self.first) != template_name(name) {
                let text = |name: &[u8]| String::from_utf8_lossy(template_name(name)).into_owned();
                let (name, mate) = (text(self.first), text(name));
                return Err(RecordFault::Names { name, mate, mate_path: self.path.into() });
            }
        } else {
            self.number.clear();
            // Writing to a string cannot fail.
            let _ = write!(self.number, "{}", self.piece.number(record as u32));
        }
        if let Some(&outside) = qual.iter().find(|score| !(b'!'..=b'~').contains(score)) {
            return Err(RecordFault::Quality(Shown(outside)));
        }
        self.scores.clear();
        self.scores.extend(qual.iter().map(|score| score - b'!'));
        let name = named.unwrap_or(self.number.as_bytes());
        let fields = Fields { flags, name, clipped: false, seq, qual: &self.scores };
        self.piece.put(record as u32, fields, self.tally)?;
        self.tally.records += 1;
        Ok(())
    }
}
