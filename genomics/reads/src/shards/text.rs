//! The text of a file near any byte of it, plain or BGZF, and where in the file each byte of the text lies.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::bgzf::{self, block_size_at, read_block};
use crate::span::{Offset, Span};

use super::WhyUncut;

/// Longest block of BGZF, in bytes of the file.
const BLOCK: u64 = 1 << 16;
/// Blocks that have to follow each other from a block on, or up to the end of the file, before it counts as one.
const CHAIN: usize = 4;
/// Bytes of plain text that are read at once.
const STEP: u64 = 256 << 10;

/// A file, or a stretch of one, that can be read from any place.
pub(super) struct Part {
    file: File,
    packed: bool,
    span: Span,
}

impl Part {
    /// Opens a file of plain text or BGZF; any other is none to cut.
    pub(super) fn open(path: &Path, span: Option<Span>) -> io::Result<Result<Part, WhyUncut>> {
        let file = File::open(path)?;
        let mut head = Vec::new();
        (&file).take(bgzf::HEADER as u64).read_to_end(&mut head)?;
        let packed = bgzf::block_size(&head).is_some();
        match head.first() {
            _ if packed => {}
            None => return Ok(Err(WhyUncut::Small)),
            Some(b'@') => {}
            Some(0x1f) => return Ok(Err(WhyUncut::Gzip)),
            Some(_) => return Ok(Err(WhyUncut::NotFastq)),
        }
        let whole = Span { from: Offset::default(), to: None, size: file.metadata()?.len() };
        Ok(Ok(Part { file, packed, span: span.unwrap_or(whole) }))
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }

    pub(super) fn is_packed(&self) -> bool {
        self.packed
    }

    /// Whether a place lies within the stretch, so that both sides of it have some of its text.
    pub(super) fn holds(&self, place: Offset) -> bool {
        place > self.span.from && self.span.to.is_none_or(|to| place < to)
    }

    /// The text near a byte of the file, none of it read yet beyond the block that holds the byte; `None` where BGZF has no blocks that follow each other.
    pub(super) fn text_near(&self, near: u64) -> io::Result<Option<Text<'_>>> {
        let mut text =
            Text { part: self, bytes: Vec::new(), before: 0, pieces: Vec::new(), next: near, near: 0 };
        if !self.packed {
            // The line end before the byte tells that a line starts with it.
            text.next = near.saturating_sub(1);
            return Ok(Some(text));
        }
        let Some((block, size)) = self.block_with(near)? else {
            return Ok(None);
        };
        text.next = block;
        text.extend()?;
        text.near = (text.bytes.len() as u64 * (near - block) / size) as usize;
        Ok(Some(text))
    }

    /// Where the block starts that has a byte of the file, and its size.
    fn block_with(&self, near: u64) -> io::Result<Option<(u64, u64)>> {
        let from = near.saturating_sub(BLOCK - 1);
        let mut bytes = Vec::new();
        let upto = near + bgzf::HEADER as u64;
        read_upto(&self.file, from, (upto - from) as usize, &mut bytes)?;
        for at in memchr::memmem::find_iter(&bytes, b"\x1f\x8b\x08\x04") {
            let mut block = from + at as u64;
            if !self.is_block(block)? {
                continue;
            }
            while block <= near
                && let Some(size) = block_size_at(&self.file, block)?
            {
                if block + size > near {
                    return Ok(Some((block, size)));
                }
                block += size;
            }
        }
        Ok(None)
    }

    /// Whether blocks follow each other from a byte on.
    fn is_block(&self, mut at: u64) -> io::Result<bool> {
        for _ in 0..CHAIN {
            match block_size_at(&self.file, at)? {
                Some(size) => at += size,
                None => return Ok(at == self.span.size),
            }
        }
        Ok(true)
    }
}

/// Some text of a file, that can go on.
pub(super) struct Text<'a> {
    part: &'a Part,
    pub(super) bytes: Vec<u8>,
    /// Bytes that were read before these and forgotten.
    before: usize,
    /// Where in the text, from the first byte read, each piece of it starts, and at which byte of the file.
    pieces: Vec<(usize, u64)>,
    /// Byte of the file that the text goes on at.
    next: u64,
    /// Which of the bytes the one asked for is, or about.
    pub(super) near: usize,
}

impl Text<'_> {
    /// Reads on: a block, or as much plain text; false, and nothing read, at the end of the file or where blocks end.
    pub(super) fn extend(&mut self) -> io::Result<bool> {
        let (had, at) = (self.bytes.len(), self.next);
        if self.part.packed {
            // Blocks may be empty.
            while self.bytes.len() == had {
                self.pieces.push((self.before + had, self.next));
                match read_block(&self.part.file, self.next, &mut self.bytes) {
                    Ok(Some(size)) => self.next += size,
                    Ok(None) => return Ok(false),
                    // Damage is told by whoever reads the file.
                    Err(e) if is_damage(&e) => return Ok(false),
                    Err(e) => return Err(e),
                }
            }
        } else {
            self.pieces.push((self.before + had, at));
            read_upto(&self.part.file, at, STEP as usize, &mut self.bytes)?;
            self.next += (self.bytes.len() - had) as u64;
        }
        Ok(self.bytes.len() > had)
    }

    /// Whether there is no more text in the file.
    pub(super) fn is_last(&self) -> bool {
        self.next >= self.part.span.size
    }

    /// Byte of the file that the text has come to.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Forgets the first `n` bytes.
    pub(super) fn forget(&mut self, n: usize) {
        self.bytes.drain(..n);
        self.before += n;
    }

    /// Where in the file the byte at `i` of the text lies; `None` where no place can say it.
    pub(super) fn place(&self, i: usize) -> Option<Offset> {
        let i = self.before + i;
        let piece = self.pieces.partition_point(|&(start, _)| start <= i).checked_sub(1)?;
        let (start, byte) = self.pieces[piece];
        if self.part.packed {
            Some(Offset { byte, within: u16::try_from(i - start).ok()? })
        } else {
            Some(Offset { byte: byte + (i - start) as u64, within: 0 })
        }
    }
}

fn is_damage(e: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(e.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// Appends as many of `n` bytes from `at` on as the file has.
fn read_upto(file: &File, at: u64, n: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    let had = bytes.len();
    bytes.resize(had + n, 0);
    let mut filled = had;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at + (filled - had) as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    bytes.truncate(filled);
    Ok(())
}
