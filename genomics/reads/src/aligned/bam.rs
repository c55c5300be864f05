//! BAM (SAM specification, section 4.2): a header, then records, each with its length before it.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::error::{Error, FileFault, RecordFault};
use crate::inflate::{Access, Damage, Inflate};
use genuma_work::Meter;

use super::end::check_end;
use super::piece::{FIXED, Piece};

/// What a BAM file begins with.
pub(super) const MAGIC: &[u8] = b"BAM\x01";
/// The block of nothing that ends a file (section 4.1.2).
const END: [u8; 28] =
    [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0, 0x1b, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Bytes of records that make a piece.
const PIECE: usize = 512 << 10;
/// Bytes inflated at once.
const CHUNK: usize = 128 << 10;
/// No record is as long as this, in bytes: a damaged length is thus told before it fills the memory.
const LONGEST: usize = 512 << 20;
/// Nor the text and the names of a header.
const LONGEST_HEADER: usize = 1 << 30;

/// A file being cut into pieces.
pub(super) struct Bam<M> {
    path: PathBuf,
    inflate: Inflate<M>,
    /// What was inflated beyond the last piece.
    rest: Vec<u8>,
    /// Records handed out.
    records: u64,
    /// Samples that its read groups are of.
    pub(super) samples: BTreeSet<String>,
}

/// Samples that the read groups of a header's text are of (`@RG`, `SM`).
fn samples(text: &[u8]) -> BTreeSet<String> {
    let groups = text.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b"@RG\t"));
    let fields = groups.flat_map(|line| line.split(|&byte| byte == b'\t'));
    fields
        .filter_map(|field| Some(String::from_utf8_lossy(field.strip_prefix(b"SM:")?).trim_end().to_owned()))
        .collect()
}

impl<M: Deref<Target = Meter>> Bam<M> {
    /// Opens a file, at its first record.
    ///
    /// # Errors
    /// It cannot be read, is no BAM file, or has no end; its header is damaged.
    pub(super) fn open(path: &Path, meter: M, access: Access) -> Result<Self, Error> {
        check_end(path, &END)?;
        let inflate = Inflate::open(path, meter, &Access { end: &END, ..access })?;
        let mut bam =
            Bam { path: path.into(), inflate, rest: Vec::new(), records: 0, samples: BTreeSet::new() };
        if bam.bytes(MAGIC.len())? != MAGIC {
            return Err(Error::file(
                path,
                FileFault::Format { found: "another file", wanted: "BAM", remedy: "give BAM" },
            ));
        }
        let mut left = bam.number()?;
        let mut text = Vec::new();
        while left > 0 {
            let some = left.min(CHUNK);
            text.extend_from_slice(&bam.bytes(some)?);
            left -= some;
        }
        bam.samples = samples(&text);
        for _ in 0..bam.number()? {
            let name = bam.number()?;
            bam.skip(name + 4)?;
        }
        Ok(bam)
    }

    /// The next bytes of the header.
    fn bytes(&mut self, n: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; n];
        let filled = self.inflate.fill(&mut bytes).map_err(|damage| self.damaged(damage))?;
        if filled < n {
            return Err(Error::file(&self.path, FileFault::Header("the file ends in the middle of it")));
        }
        Ok(bytes)
    }

    fn number(&mut self) -> Result<usize, Error> {
        let bytes = self.bytes(4)?;
        let number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        if number > LONGEST_HEADER {
            return Err(Error::file(&self.path, FileFault::Header("a length is too large")));
        }
        Ok(number)
    }

    fn skip(&mut self, mut n: usize) -> Result<(), Error> {
        while n > 0 {
            let some = n.min(CHUNK);
            self.bytes(some)?;
            n -= some;
        }
        Ok(())
    }

    fn damaged(&self, damage: Damage) -> Error {
        let fault = match damage {
            Damage::Io(source) => return Error::reading(&self.path, source),
            Damage::Changed(at) => return Error::file(&self.path, FileFault::Changed(at)),
            Damage::Truncated => RecordFault::GzipTruncated,
            Damage::Corrupt(what) => RecordFault::GzipCorrupt(what),
        };
        Error::record(&self.path, self.records + 1, fault)
    }

    /// Moves the next records into `piece`; false when there are none left.
    ///
    /// # Errors
    /// The file cannot be read on, is damaged, or ends within a record.
    pub(super) fn cut(&mut self, piece: &mut Piece) -> Result<bool, Error> {
        let room = |bytes: &mut Vec<u8>, n: usize| {
            if bytes.len() < n {
                bytes.resize(n, 0);
            }
        };
        room(&mut piece.bytes, self.rest.len().max(PIECE + CHUNK));
        piece.bytes[..self.rest.len()].copy_from_slice(&self.rest);
        piece.filled = self.rest.len();
        piece.before = self.records;
        self.rest.clear();
        // Where whole records end.
        let (mut whole, mut more) = (0, true);
        loop {
            while let Some(length) = piece.bytes[whole..piece.filled].first_chunk() {
                let length = u32::from_le_bytes(*length) as usize;
                if !(FIXED..=LONGEST).contains(&length) {
                    let fault = RecordFault::Damaged("its length cannot be one");
                    return Err(Error::record(&self.path, self.records + 1, fault));
                }
                if length + 4 > piece.filled - whole {
                    break;
                }
                whole += length + 4;
                self.records += 1;
            }
            if !more || (whole > 0 && piece.filled >= PIECE) {
                break;
            }
            let to = piece.filled + CHUNK;
            room(&mut piece.bytes, to);
            let filled = self.inflate.fill(&mut piece.bytes[piece.filled..to]);
            let n = filled.map_err(|damage| self.damaged(damage))?;
            piece.filled += n;
            more = n > 0;
        }
        if !more && whole < piece.filled {
            return Err(Error::record(&self.path, self.records + 1, RecordFault::Truncated));
        }
        self.rest.extend_from_slice(&piece.bytes[whole..piece.filled]);
        piece.filled = whole;
        Ok(whole > 0)
    }
}
