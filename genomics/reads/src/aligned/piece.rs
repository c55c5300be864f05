//! Pieces: consecutive whole records of one file, and which of them are reads.

use std::ops::Range;
use std::path::Path;

use crate::error::{Error, RecordFault, Shown};
use crate::fastq::template_name;

use super::tally::Tally;

/// Longest name that a SAM record can hold, in bytes (SAM specification, section 1.4).
const LONGEST_NAME: usize = 254;
/// Highest quality that FASTQ can have.
const HIGHEST: u8 = b'~' - b'!';

/// Flags of a record (SAM specification, section 1.4).
pub(super) mod flag {
    pub const PAIRED: u16 = 0x1;
    pub const REVERSE: u16 = 0x10;
    pub const FIRST: u16 = 0x40;
    pub const LAST: u16 = 0x80;
    pub const SECONDARY: u16 = 0x100;
    pub const SUPPLEMENTARY: u16 = 0x800;
}

/// Which read of its template a read is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    First,
    Second,
    /// The only one.
    Alone,
}

impl Which {
    fn of(flags: u16) -> Which {
        match (flags & flag::PAIRED, flags & (flag::FIRST | flag::LAST)) {
            (flag::PAIRED, flag::FIRST) => Which::First,
            (flag::PAIRED, flag::LAST) => Which::Second,
            _ => Which::Alone,
        }
    }
}

/// How bases and qualities lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As BAM has them: two bases a byte, qualities without offset.
    Bam { reverse: bool },
    /// As FASTQ has them.
    Letters,
}

/// What a record says of a read, on the strand of the reference.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) flags: u16,
    pub(super) name: &'a [u8],
    /// Bases were cut off.
    pub(super) clipped: bool,
    /// Letters.
    pub(super) seq: &'a [u8],
    /// Without offset; empty, or 0xff, where there are none.
    pub(super) qual: &'a [u8],
}

/// A read, where it lies in [`Piece::bytes`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    /// Number of its record in the piece, from 0.
    pub(super) record: u32,
    pub(super) which: Which,
    form: Form,
    /// Without qualities.
    pub(super) plain: bool,
    name: (u32, u8),
    bases: u32,
    seq: u32,
    qual: u32,
}

/// Consecutive whole records.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// As in BAM: each the length of what follows, and that.
    pub(super) bytes: Vec<u8>,
    /// Bytes of `bytes` that are in use; the rest is room that keeps its pages.
    pub(super) filled: usize,
    /// Records of the file before the piece.
    pub(super) before: u64,
    pub(super) reads: Vec<Read>,
}

/// Of the bases in a byte, for each strand: in the order in which they are read.
const LETTERS: [[[u8; 2]; 256]; 2] = {
    let (here, there) = (b"=ACMGRSVTWYHKDBN", b"=TGKCYSBAWRDMHVN");
    let mut letters = [[[0; 2]; 256]; 2];
    let mut byte = 0;
    while byte < 256 {
        letters[0][byte] = [here[byte >> 4], here[byte & 15]];
        letters[1][byte] = [there[byte & 15], there[byte >> 4]];
        byte += 1;
    }
    letters
};

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Bytes of a record before its name.
pub(super) const FIXED: usize = 32;

impl Piece {
    /// Finds the reads among the records, and counts these.
    ///
    /// # Errors
    /// The first record that is not what the specification says.
    pub(super) fn find(&mut self, path: &Path, tally: &mut Tally) -> Result<(), Error> {
        self.reads.clear();
        let (mut at, mut record) = (0, 0);
        while at < self.filled {
            // Pieces are cut between records.
            let end = at + 4 + u32_at(&self.bytes, at) as usize;
            let found = self.read(at + 4..end, record, tally);
            let found = found.map_err(|fault| Error::record(path, self.number(record), fault))?;
            self.reads.extend(found);
            (at, record) = (end, record + 1);
        }
        tally.records += u64::from(record);
        Ok(())
    }

    /// Bytes that it has.
    pub(super) fn len(&self) -> usize {
        self.filled.max(if self.filled == 0 { self.bytes.len() } else { 0 })
    }

    /// The number in its file, from 1, of a record of the piece.
    pub(super) fn number(&self, record: u32) -> u64 {
        self.before + u64::from(record) + 1
    }

    /// The read of a record, if it is one.
    fn read(&self, at: Range<usize>, record: u32, tally: &mut Tally) -> Result<Option<Read>, RecordFault> {
        let (start, bytes) = (at.start, &self.bytes[at]);
        let (name_bytes, operations) = (usize::from(bytes[8]), usize::from(u16_at(bytes, 12)));
        let (flags, bases) = (u16_at(bytes, 14), u32_at(bytes, 16));
        let cigar = FIXED + name_bytes;
        let seq = cigar + 4 * operations;
        let qual = seq.saturating_add((bases as usize).div_ceil(2));
        if qual.saturating_add(bases as usize) > bytes.len() {
            return Err(RecordFault::Damaged("its fields are longer than it is"));
        }
        let Some((0, name)) = bytes[FIXED..cigar].split_last() else {
            return Err(RecordFault::Damaged("its name has no end"));
        };
        let operation = |i: usize| bytes[cigar + 4 * i] & 15;
        const HARD_CLIP: u8 = 5;
        let clipped = operations > 0 && [operation(0), operation(operations - 1)].contains(&HARD_CLIP);
        let quals = &bytes[qual..][..bases as usize];
        let Some(Sifted { name, which, plain }) = sift(flags, name, clipped, bases as usize, quals, tally)?
        else {
            return Ok(None);
        };
        let place = |at: usize| (start + at) as u32;
        Ok(Some(Read {
            record,
            which,
            form: Form::Bam { reverse: flags & flag::REVERSE != 0 },
            plain,
            name: (place(FIXED), name.len() as u8),
            bases,
            seq: place(seq),
            qual: place(qual),
        }))
    }

    /// Forgets all records; the next ones follow so many of the file.
    pub(super) fn start(&mut self, before: u64) {
        (self.filled, self.before) = (0, before);
        self.bytes.clear();
        self.reads.clear();
    }

    /// Appends the read of a record, if it is one, turned as it was read.
    ///
    /// # Errors
    /// The record is not what the specification says.
    pub(super) fn put(&mut self, record: u32, of: Fields<'_>, tally: &mut Tally) -> Result<(), RecordFault> {
        let Fields { flags, name, clipped, seq, qual } = of;
        if !qual.is_empty() && qual.len() != seq.len() {
            return Err(RecordFault::Lengths { seq: seq.len(), qual: qual.len() });
        }
        let Some(Sifted { name, which, plain }) = sift(flags, name, clipped, seq.len(), qual, tally)? else {
            return Ok(());
        };
        let bytes = &mut self.bytes;
        let mut place = |letters: &mut dyn Iterator<Item = u8>| {
            let at = bytes.len() as u32;
            bytes.extend(letters);
            at
        };
        let name_at = place(&mut name.iter().copied());
        let scores = qual.iter().map(|score| score.wrapping_add(b'!'));
        let (seq_at, qual_at) = if flags & flag::REVERSE != 0 {
            (place(&mut seq.iter().rev().map(|&base| other_strand(base))), place(&mut scores.rev()))
        } else {
            (place(&mut seq.iter().copied()), place(&mut { scores }))
        };
        let (name, bases) = ((name_at, name.len() as u8), seq.len() as u32);
        self.reads.push(Read {
            record,
            which,
            form: Form::Letters,
            plain,
            name,
            bases,
            seq: seq_at,
            qual: qual_at,
        });
        Ok(())
    }

    /// The name of the template of a read.
    pub(super) fn name(&self, read: &Read) -> &[u8] {
        &self.bytes[read.name.0 as usize..][..usize::from(read.name.1)]
    }

    /// The bases and qualities of a read as FASTQ has them, in place of what is in `seq` and `qual`. Where it has no qualities there are none.
    pub(super) fn letters(&self, read: &Read, seq: &mut Vec<u8>, qual: &mut Vec<u8>) {
        let bases = read.bases as usize;
        let Form::Bam { reverse } = read.form else {
            let letters = |at: u32, n: usize| &self.bytes[at as usize..][..n];
            seq.clear();
            qual.clear();
            seq.extend_from_slice(letters(read.seq, bases));
            qual.extend_from_slice(letters(read.qual, if read.plain { 0 } else { bases }));
            return;
        };
        let packed = &self.bytes[read.seq as usize..][..bases.div_ceil(2)];
        let quals = &self.bytes[read.qual as usize..][..if read.plain { 0 } else { bases }];
        seq.clear();
        qual.clear();
        if reverse {
            // Of an odd number of bases the last half of a byte is none.
            let skip = usize::from(bases % 2 == 1);
            let letters = packed.iter().rev().map(|&two| LETTERS[1][usize::from(two)]);
            seq.extend(letters.flatten().skip(skip));
            qual.extend(quals.iter().rev().map(|&qual| qual + b'!'));
        } else {
            seq.extend(packed.iter().flat_map(|&two| LETTERS[0][usize::from(two)]));
            seq.truncate(bases);
            qual.extend(quals.iter().map(|&qual| qual + b'!'));
        }
    }

    /// An error of a read.
    pub(super) fn fault(&self, read: &Read, path: &Path, fault: RecordFault) -> Error {
        Error::record(path, self.number(read.record), fault)
    }
}

/// What is known of a record that is a read.
struct Sifted<'a> {
    name: &'a [u8],
    which: Which,
    plain: bool,
}

/// Counts a record, and says what is known of it if it is a read.
fn sift<'a>(
    flags: u16,
    name: &'a [u8],
    clipped: bool,
    bases: usize,
    quals: &[u8],
    tally: &mut Tally,
) -> Result<Option<Sifted<'a>>, RecordFault> {
    if flags & flag::SECONDARY != 0 {
        tally.secondary += 1;
        return Ok(None);
    }
    if flags & flag::SUPPLEMENTARY != 0 {
        tally.supplementary += 1;
        return Ok(None);
    }
    let which = Which::of(flags);
    // As in FASTQ: what has no mate keeps `/1`.
    let name = if which == Which::Alone { name } else { template_name(name) };
    match name {
        b"" | b"*" => return Err(RecordFault::NoName),
        name if name.len() > LONGEST_NAME => {
            return Err(RecordFault::LongName { length: name.len(), longest: LONGEST_NAME });
        }
        _ => {}
    }
    if clipped {
        tally.clipped.count(name);
    }
    if which == Which::Alone {
        tally.alone += 1;
    }
    if bases == 0 {
        tally.empty.count(name);
    }
    let highest = quals.iter().fold(0, |highest, &qual| qual.max(highest));
    // Without qualities all are 0xff (section 4.2).
    let plain = bases > 0 && (quals.is_empty() || (highest == 0xff && quals[0] == 0xff));
    if !plain && highest > HIGHEST {
        return Err(RecordFault::Damaged("a quality is higher than 93"));
    }
    Ok(Some(Sifted { name, which, plain }))
}

/// The base across from one, both IUPAC letters.
fn other_strand(base: u8) -> u8 {
    let (here, there) = (b"ACMGRSVTWYHKDBN", b"TGKCYSBAWRDMHVN");
    here.iter().position(|&letter| letter == base).map_or(base, |at| there[at])
}

/// `=` in a sequence says that the base is that of the reference, which nobody knows here.
pub(super) fn check_letters(seq: &[u8]) -> Result<(), RecordFault> {
    if seq.contains(&b'=') { Err(RecordFault::Letter(Shown(b'='))) } else { Ok(()) }
}
