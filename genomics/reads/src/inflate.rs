//! Decompression of input files: plain text, gzip with one or more members, BGZF, bzip2, xz and zstd.
//!
//! A span of a BGZF file is read from the block that it starts in. The bytes of that block before the span are
//! skipped. The block that the span ends in is read separately, and only the bytes before the end are delivered.

use std::io::{self, BufReader, Chain, Cursor, PipeReader, Read};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use crate::bgzf::{self, BgzfReader};
use crate::compression::{CompressionFormat, DecompressError, NonGzipDecoder};
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
    pub(crate) pipe_waker: Option<Arc<PipeReader>>,
    /// The span to read; `None` for the whole file.
    pub(crate) span: Option<FileSpan>,
    /// Bytes that must be at the end of a pipe (end-of-file marker); empty if there is no such requirement.
    pub(crate) required_end: &'static [u8],
}

/// Decompresses a file. The format is recognised by the first bytes, not by the file name.
pub(crate) struct Decompressor<M: Deref<Target = ProgressCounters>> {
    stream: InputStream<M>,
    /// Number of uncompressed bytes that still have to be skipped: those of the first block before the span.
    skip_bytes: usize,
    /// Start of the span. `end_in_block` is its end, if that is inside a block.
    start: VirtualOffset,
    end_in_block: Option<VirtualOffset>,
    /// Error to report after the last delivered bytes.
    pending_error: Option<DecompressError>,
}

enum InputStream<M: Deref<Target = ProgressCounters>> {
    Plain(BufferedInput<M>),
    Gzip(Box<MultiMemberGzipReader<BufferedInput<M>>>),
    Bgzf(Box<BgzfReader<BufferedInput<M>>>),
    /// bzip2, xz or zstd.
    Other(NonGzipDecoder<BufferedInput<M>>),
    /// The uncompressed bytes before the end of the span, of the block in which the span ends.
    LastBlock(Cursor<Vec<u8>>),
    /// End of the input. Also a placeholder while the stream is replaced by the next one.
    End,
}

impl<M: Deref<Target = ProgressCounters>> Decompressor<M> {
    /// Opens a file that must have at least one byte, or a span of a file.
    pub(crate) fn open(path: &Path, progress: M, access: &FileReadOptions) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.into(), source };
        let source = RawInputFile::open(path, access.span, progress, access.pipe_waker.as_ref())?
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
        if head.starts_with(ZIP_MAGIC) {
            let (found, remedy) = ("a zip archive", "unpack it with unzip, and give the files in it");
            return Err(Error::error_in_file(path, FileFault::Format { found, wanted: "one file", remedy }));
        }
        let compression = CompressionFormat::detect(&head);
        // A span may be inside one block, which is then its last block.
        let blocks = bgzf::parse_block_size(&head).is_some() || head.is_empty();
        // Only in BGZF can a span start or end inside a block, and only BGZF among compressed files can have spans.
        if access.span.is_some() && !blocks && (compression.is_some() || from.offset_in_block > 0 || tail.is_some()) {
            return Err(Error::error_in_file(path, FileFault::ContentChanged(from)));
        }
        let packed = Cursor::new(head).chain(disk);
        let stream = match compression {
            _ if blocks => InputStream::Bgzf(Box::new(BgzfReader::new(packed, access.inflate_threads))),
            None => InputStream::Plain(packed),
            Some(CompressionFormat::Gzip) => InputStream::Gzip(Box::new(MultiMemberGzipReader::new(packed))),
            Some(CompressionFormat::Bzip2) => InputStream::Other(NonGzipDecoder::new_bzip2(packed)),
            Some(CompressionFormat::Xz) => InputStream::Other(NonGzipDecoder::new_xz(packed)),
            Some(CompressionFormat::Zstd) => InputStream::Other(NonGzipDecoder::new_zstd(packed)),
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
        while filled < buf.len() && self.pending_error.is_none() && !matches!(self.stream, InputStream::End) {
            match self.stream.read(&mut buf[filled..]) {
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
                Err(DecompressError::Io(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => self.pending_error = Some(e),
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
                    return Ok(InputStream::Gzip(Box::new(MultiMemberGzipReader::new_after_member(
                        Cursor::new(begun).chain(disk),
                    ))));
                }
                packed
            }
            InputStream::Gzip(members) => match members.into_inner() {
                Some(packed) => packed,
                None => return self.end_of_input(),
            },
            InputStream::Plain(_) | InputStream::Other(_) | InputStream::LastBlock(_) | InputStream::End => {
                return self.end_of_input();
            }
        };
        let Some(end) = self.end_in_block.take() else {
            return self.end_of_input();
        };
        let (_, disk) = packed.into_inner();
        let mut content = Vec::new();
        let block = bgzf::inflate_block_at(disk.get_ref().file(), end.file_offset, &mut content);
        let within = usize::from(end.offset_in_block);
        if block.map_err(DecompressError::from_gzip_error)?.is_none() || content.len() < within {
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

impl<M: Deref<Target = ProgressCounters>> InputStream<M> {
    /// Reads decompressed bytes; 0 at the end of the stream.
    fn read(&mut self, buf: &mut [u8]) -> Result<usize, DecompressError> {
        match self {
            InputStream::Plain(stream) => stream.read(buf).map_err(DecompressError::Io),
            InputStream::Gzip(stream) => stream.read(buf).map_err(DecompressError::from_gzip_error),
            InputStream::Bgzf(stream) => stream.read(buf).map_err(DecompressError::from_gzip_error),
            InputStream::LastBlock(content) => content.read(buf).map_err(DecompressError::Io),
            InputStream::Other(decoder) => decoder.read_decompressed(buf),
            InputStream::End => Ok(0),
        }
    }
}

/// First bytes of a zip archive, which may have several files.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
