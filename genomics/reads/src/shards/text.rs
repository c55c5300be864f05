//! Random access to the text of a plain or BGZF file, with the file position of each byte of the text.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::bgzf::{self, block_size_at, inflate_block_at};
use crate::compression::CompressionFormat;
use crate::file_span::{FileSpan, VirtualOffset};

use super::SplitObstacle;

/// Maximum compressed size of a BGZF block in bytes.
const MAX_BLOCK_BYTES: u64 = 1 << 16;
/// Number of consecutive blocks, or all up to the end of the file, that must be valid to confirm the start of a block.
const MIN_CHAINED_BLOCKS: usize = 4;
/// Bytes of plain text per read call.
const PLAIN_STEP_BYTES: u64 = 256 << 10;

/// A plain or BGZF text file, or a span of it, with random access.
pub(super) struct RandomAccessText {
    file: File,
    is_bgzf: bool,
    span: FileSpan,
}

impl RandomAccessText {
    /// Opens a file of plain text or BGZF; returns the reason if the file has another format.
    pub(super) fn open(path: &Path, span: Option<FileSpan>) -> io::Result<Result<RandomAccessText, SplitObstacle>> {
        let file = File::open(path)?;
        let mut head = Vec::new();
        (&file).take(bgzf::HEADER_BYTES as u64).read_to_end(&mut head)?;
        let packed = bgzf::parse_block_size(&head).is_some();
        match (head.first(), CompressionFormat::detect(&head)) {
            _ if packed => {}
            (None, _) => return Ok(Err(SplitObstacle::TooSmall)),
            (_, Some(format)) => return Ok(Err(SplitObstacle::Compressed(format))),
            (Some(b'@'), None) => {}
            (Some(_), None) => return Ok(Err(SplitObstacle::NotFastq)),
        }
        let whole = FileSpan { start: VirtualOffset::default(), end: None, file_bytes: file.metadata()?.len() };
        Ok(Ok(RandomAccessText { file, is_bgzf: packed, span: span.unwrap_or(whole) }))
    }

    /// The span of the file that may be read.
    pub(super) fn span(&self) -> FileSpan {
        self.span
    }

    /// Whether the file is BGZF, otherwise plain text.
    pub(super) fn is_bgzf(&self) -> bool {
        self.is_bgzf
    }

    /// Whether a position is inside the span and neither at its start nor at its end.
    pub(super) fn contains_strictly_inside(&self, place: VirtualOffset) -> bool {
        place > self.span.start && self.span.end.is_none_or(|to| place < to)
    }

    /// Starts a window of text at byte `near` of the file. In BGZF, the block that contains the byte is read; `None` if
    /// there are no blocks near it. Of plain text, nothing is read yet.
    pub(super) fn open_window_near(&self, near: u64) -> io::Result<Option<TextWindow<'_>>> {
        let mut text = TextWindow {
            file: self,
            bytes: Vec::new(),
            dropped_bytes: 0,
            block_starts: Vec::new(),
            next_file_offset: near,
            near_index: 0,
        };
        if !self.is_bgzf {
            // Start at the byte before: if it is a line end, a line starts at `near`.
            text.next_file_offset = near.saturating_sub(1);
            return Ok(Some(text));
        }
        let Some((block, size)) = self.block_containing(near)? else {
            return Ok(None);
        };
        text.next_file_offset = block;
        text.read_more_text()?;
        text.near_index = (text.bytes.len() as u64 * (near - block) / size) as usize;
        Ok(Some(text))
    }

    /// Finds the start and size of the block that contains byte `near` of the file.
    fn block_containing(&self, near: u64) -> io::Result<Option<(u64, u64)>> {
        let from = near.saturating_sub(MAX_BLOCK_BYTES - 1);
        let mut bytes = Vec::new();
        let upto = near + bgzf::HEADER_BYTES as u64;
        read_up_to(&self.file, from, (upto - from) as usize, &mut bytes)?;
        for at in memchr::memmem::find_iter(&bytes, b"\x1f\x8b\x08\x04") {
            let mut block = from + at as u64;
            if !self.starts_block_chain(block)? {
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

    /// Whether [`MIN_CHAINED_BLOCKS`] consecutive blocks, or all up to the end of the file, start at byte `at` of the
    /// file.
    fn starts_block_chain(&self, mut at: u64) -> io::Result<bool> {
        for _ in 0..MIN_CHAINED_BLOCKS {
            match block_size_at(&self.file, at)? {
                Some(size) => at += size,
                None => return Ok(at == self.span.file_bytes),
            }
        }
        Ok(true)
    }
}

/// A part of the text of a file that was read around a requested byte of the file. It can be extended towards the end
/// of the file.
pub(super) struct TextWindow<'a> {
    file: &'a RandomAccessText,
    pub(super) bytes: Vec<u8>,
    /// Number of bytes of text that were read before `bytes` and have been dropped.
    dropped_bytes: usize,
    /// For each block that was read: its start in the text, counted from the first byte ever read, and its start in
    /// the file.
    block_starts: Vec<(usize, u64)>,
    /// Offset in the file, in bytes, of the data after the text.
    next_file_offset: u64,
    /// Index in `bytes` of about the requested byte of the file.
    pub(super) near_index: usize,
}

impl TextWindow<'_> {
    /// Appends the next BGZF block that has content, or the next [`PLAIN_STEP_BYTES`] bytes of plain text. Returns
    /// false and reads nothing at the end of the file, or where the blocks end.
    pub(super) fn read_more_text(&mut self) -> io::Result<bool> {
        let (had, at) = (self.bytes.len(), self.next_file_offset);
        if self.file.is_bgzf {
            // Blocks may be empty.
            while self.bytes.len() == had {
                self.block_starts.push((self.dropped_bytes + had, self.next_file_offset));
                match inflate_block_at(&self.file.file, self.next_file_offset, &mut self.bytes) {
                    Ok(Some(size)) => self.next_file_offset += size,
                    Ok(None) => return Ok(false),
                    // Damage is reported when the file is read.
                    Err(e) if is_corruption(&e) => return Ok(false),
                    Err(e) => return Err(e),
                }
            }
        } else {
            self.block_starts.push((self.dropped_bytes + had, at));
            read_up_to(&self.file.file, at, PLAIN_STEP_BYTES as usize, &mut self.bytes)?;
            self.next_file_offset += (self.bytes.len() - had) as u64;
        }
        Ok(self.bytes.len() > had)
    }

    /// Whether the text extends to the end of the file (not of the span).
    pub(super) fn reaches_file_end(&self) -> bool {
        self.next_file_offset >= self.file.span.file_bytes
    }

    /// Offset in the file, in bytes, of the data after the text.
    pub(super) fn next_file_offset(&self) -> u64 {
        self.next_file_offset
    }

    /// Drops the first `n` bytes of the text.
    pub(super) fn drop_first_bytes(&mut self, n: usize) {
        self.bytes.drain(..n);
        self.dropped_bytes += n;
    }

    /// Position in the file of byte `i` of the text; `None` if it has no virtual offset.
    pub(super) fn file_position(&self, i: usize) -> Option<VirtualOffset> {
        let i = self.dropped_bytes + i;
        let piece = self.block_starts.partition_point(|&(start, _)| start <= i).checked_sub(1)?;
        let (start, byte) = self.block_starts[piece];
        if self.file.is_bgzf {
            Some(VirtualOffset { file_offset: byte, offset_in_block: u16::try_from(i - start).ok()? })
        } else {
            Some(VirtualOffset { file_offset: byte + (i - start) as u64, offset_in_block: 0 })
        }
    }
}

fn is_corruption(e: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(e.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// Appends `n` bytes of the file from `at` on, or as many as the file has.
fn read_up_to(file: &File, at: u64, n: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
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
