//! Decompression of input files: plain text, gzip with one or more members, and BGZF.
//!
//! A span of a BGZF file is read from the block that it starts in. The bytes of that block before the span are
//! skipped. The block that the span ends in is read separately, and only the bytes before the end are delivered.

use std::io::{self, BufReader, Chain, Cursor, PipeReader, Read};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use crate::bgzf::{self, BgzfReader};
use crate::error::{Error, FileFault};
use crate::file_span::{FileSpan, VirtualOffset};
use crate::gzip_members::MultiMemberGzipReader;
use crate::input_file::RawInputFile;
use genuma_work::ProgressCounters;

/// Number of bytes per read call.
const DISK_CHUNK_BYTES: usize = 256 << 10;

/// The compressed bytes of a file: first the bytes that were read to recognise the format, then the rest of the file.
type BufferedInput<M> = Chain<Cursor<Vec<u8>>, BufReader<RawInputFile<M>>>;

/// How to open and read a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileReadOptions {
    /// Number of threads that decompress BGZF in addition to the reading thread; with 0, the reading thread
    /// decompresses.
    pub(crate) inflate_threads: usize,
    /// If present, the input may be a pipe. A thread that waits for input is woken when the other end of this internal
    /// pipe is dropped.
    pub(crate) pipe_stop: Option<Arc<PipeReader>>,
    /// The span to read; `None` for the whole file.
    pub(crate) span: Option<FileSpan>,
    /// Bytes that must be at the end of a pipe (end-of-file marker); empty if there is no such requirement.
    pub(crate) required_end: &'static [u8],
}

/// Decompresses a file. Gzip is recognised by its first bytes, not by the file name.
pub(crate) struct Decompressor<M> {
    stream: InputStream<M>,
    /// Number of uncompressed bytes that still have to be skipped: those of the first block before the span.
    skip_bytes: usize,
    /// Start of the span. `end_in_block` is its end, if that is inside a block.
    start: VirtualOffset,
    end_in_block: Option<VirtualOffset>,
    /// Error to report after the last delivered bytes.
    pending_error: Option<DecompressError>,
}

enum InputStream<M> {
    Plain(BufferedInput<M>),
    Gzip(Box<MultiMemberGzipReader<BufferedInput<M>>>),
    Bgzf(Box<BgzfReader<BufferedInput<M>>>),
    /// The uncompressed bytes before the end of the span, of the block in which the span ends.
    LastBlock(Cursor<Vec<u8>>),
    /// End of the input. Also a placeholder while the stream is replaced by the next one.
    End,
}

impl<M: Deref<Target = ProgressCounters>> Decompressor<M> {
    /// Opens a file that must have at least one byte, or a span of a file.
    pub(crate) fn open(path: &Path, progress: M, access: &FileReadOptions) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.into(), source };
        let source = RawInputFile::open(path, access.span, progress, access.pipe_stop.as_ref())?
            .with_required_pipe_end(access.required_end);
        let mut disk = BufReader::with_capacity(DISK_CHUNK_BYTES, source);
        let mut head = Vec::new();
        // A pipe may deliver its first bytes one at a time.
        disk.by_ref().take(bgzf::HEADER_BYTES as u64).read_to_end(&mut head).map_err(unreadable)?;
        let from = access.span.map_or_else(VirtualOffset::default, |span| span.start);
        let tail = access.span.and_then(|span| span.end).filter(|to| to.offset_in_block > 0);
        if head.is_empty() && tail.is_none() {
            return Err(Error::error_in_file(path, FileFault::Empty));
        }
        if let Some(found) = detect_other_compression(&head) {
            let remedy = "decompress it, or compress it with gzip or bgzip";
            return Err(Error::error_in_file(path, FileFault::Format { found, wanted: "gzip or plain text", remedy }));
        }
        let gzip = head.starts_with(&[0x1f, 0x8b]);
        // A span may be inside one block, which is then its last block.
        let blocks = bgzf::parse_block_size(&head).is_some() || head.is_empty();
        // Only in BGZF can a span start or end inside a block, and only BGZF among gzip files can have spans.
        if access.span.is_some() && !blocks && (gzip || from.offset_in_block > 0 || tail.is_some()) {
            return Err(Error::error_in_file(path, FileFault::ContentChanged(from)));
        }
        let packed = Cursor::new(head).chain(disk);
        let stream = match (gzip, blocks) {
            (_, true) => InputStream::Bgzf(Box::new(BgzfReader::new(packed, access.inflate_threads))),
            (true, false) => InputStream::Gzip(Box::new(MultiMemberGzipReader::new(packed))),
            (false, false) => InputStream::Plain(packed),
        };
        Ok(Decompressor {
            stream,
            skip_bytes: usize::from(from.offset_in_block),
            start: from,
            end_in_block: tail,
            pending_error: None,
        })
    }

    /// Reads decompressed bytes into `buf` and returns their number. It is smaller than the size of `buf` only at the
    /// end of the file or span, or before an error.
    ///
    /// # Errors
    /// See [`DecompressError`]; all bytes before the error were delivered by earlier calls.
    pub(crate) fn fill_buffer(&mut self, buf: &mut [u8]) -> Result<usize, DecompressError> {
        let mut filled = 0;
        while filled < buf.len() && self.pending_error.is_none() {
            let (stream, gzip): (&mut dyn Read, bool) = match &mut self.stream {
                InputStream::Plain(stream) => (stream, false),
                InputStream::Gzip(stream) => (stream, true),
                InputStream::Bgzf(stream) => (stream, true),
                InputStream::LastBlock(stream) => (stream, true),
                InputStream::End => break,
            };
            match stream.read(&mut buf[filled..]) {
                Ok(0) => match self.next_stream() {
                    Ok(stream) => self.stream = stream,
                    Err(damage) => self.pending_error = Some(damage),
                },
                Ok(n) => {
                    let skipped = self.skip_bytes.min(n);
                    self.skip_bytes -= skipped;
                    buf.copy_within(filled + skipped..filled + n, filled);
                    filled += n - skipped;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => self.pending_error = Some(DecompressError::from_io(e, gzip)),
            }
        }
        match self.pending_error.take_if(|_| filled == 0) {
            Some(damage) => Err(damage),
            None => Ok(filled),
        }
    }

    /// Opens the stream after the current one: BGZF blocks may be followed by ordinary gzip members, and a span may
    /// end inside the next block.
    fn next_stream(&mut self) -> Result<InputStream<M>, DecompressError> {
        let packed = match std::mem::replace(&mut self.stream, InputStream::End) {
            InputStream::Bgzf(blocks) => {
                let (begun, packed) = blocks.into_unread_input();
                if !begun.is_empty() {
                    let (_, disk) = packed.into_inner();
                    return Ok(InputStream::Gzip(Box::new(MultiMemberGzipReader::after_member(
                        Cursor::new(begun).chain(disk),
                    ))));
                }
                packed
            }
            InputStream::Gzip(members) => match members.into_inner() {
                Some(packed) => packed,
                None => return self.end_of_input(),
            },
            InputStream::Plain(_) | InputStream::LastBlock(_) | InputStream::End => return self.end_of_input(),
        };
        let Some(end) = self.end_in_block.take() else {
            return self.end_of_input();
        };
        let (_, disk) = packed.into_inner();
        let mut content = Vec::new();
        let block = bgzf::inflate_block_at(disk.get_ref().file(), end.file_offset, &mut content);
        let within = usize::from(end.offset_in_block);
        if block.map_err(|e| DecompressError::from_io(e, true))?.is_none() || content.len() < within {
            return Err(DecompressError::ContentChanged(end));
        }
        content.truncate(within);
        Ok(InputStream::LastBlock(Cursor::new(content)))
    }

    /// Returns [`InputStream::End`], or an error if the input ends before the start of the span.
    fn end_of_input(&self) -> Result<InputStream<M>, DecompressError> {
        if self.skip_bytes > 0 { Err(DecompressError::ContentChanged(self.start)) } else { Ok(InputStream::End) }
    }
}

/// Why compressed data cannot be decompressed.
#[derive(Debug)]
pub(crate) enum DecompressError {
    /// A system call failed.
    Io(io::Error),
    /// The gzip data end inside a member.
    Truncated,
    /// The gzip data are invalid: checksum, length, code, or data after the last member.
    Corrupt(String),
    /// The file has changed: the span starts or ends at a position that does not exist in it. The field is that
    /// position.
    ContentChanged(VirtualOffset),
}

impl DecompressError {
    fn from_io(e: io::Error, gzip: bool) -> Self {
        match e.kind() {
            io::ErrorKind::UnexpectedEof if gzip => DecompressError::Truncated,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if gzip => DecompressError::Corrupt(e.to_string()),
            _ => DecompressError::Io(e),
        }
    }
}

/// Recognises, by the first bytes, compressed formats that are not supported. Returns the name of the format.
fn detect_other_compression(head: &[u8]) -> Option<&'static str> {
    const MAGICS: [(&[u8], &str); 4] = [
        (b"BZh", "compressed with bzip2"),
        (b"\xfd7zXZ\0", "compressed with xz"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
        (b"PK\x03\x04", "a zip archive"),
    ];
    MAGICS.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, what)| what)
}
