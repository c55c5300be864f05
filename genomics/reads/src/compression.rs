//! Compression formats of input files, and decoders of those other than gzip: bzip2, xz and zstd. A file may consist of
//! several concatenated streams of one format.

use std::fmt;
use std::io::{self, BufRead, Read};

use bzip2::bufread::MultiBzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::file_span::VirtualOffset;

/// Maximum size in bytes of the dictionary of xz and of the window of zstd. `xz -9` uses 64 MiB, `zstd -19` 8 MiB and
/// `zstd --ultra -22` 128 MiB; `zstd --long=31` is refused, as `zstd -d` does without `--long`.
const MAX_WINDOW_BYTES: u64 = 128 << 20;
/// Kibibytes that the decoder of xz takes in addition to its dictionary.
const XZ_STATE_KIB: u32 = 1 << 10;

/// A compression format, recognised by the first bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionFormat {
    /// gzip, including BGZF.
    Gzip,
    /// bzip2.
    Bzip2,
    /// xz, not the older lzma.
    Xz,
    /// Zstandard.
    Zstd,
}

impl CompressionFormat {
    /// Number of bytes at the start of a file that show its format.
    pub(crate) const MAX_MAGIC_BYTES: usize = 6;
    /// First bytes of a file of each format.
    const MAGICS: [(&[u8], CompressionFormat); 4] = [
        (b"\x1f\x8b", CompressionFormat::Gzip),
        (b"BZh", CompressionFormat::Bzip2),
        (b"\xfd7zXZ\0", CompressionFormat::Xz),
        (b"\x28\xb5\x2f\xfd", CompressionFormat::Zstd),
    ];

    /// Recognises the format of a file by its first bytes; `None` for all others, such as plain text.
    pub fn detect(head: &[u8]) -> Option<CompressionFormat> {
        // A skippable frame of zstd, with which the files of pzstd begin (RFC 8878, section 3.1.2).
        if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] = head {
            return Some(CompressionFormat::Zstd);
        }
        CompressionFormat::MAGICS.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, format)| format)
    }
}

impl fmt::Display for CompressionFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CompressionFormat::Gzip => "gzip",
            CompressionFormat::Bzip2 => "bzip2",
            CompressionFormat::Xz => "xz",
            CompressionFormat::Zstd => "zstd",
        })
    }
}

/// Why compressed data cannot be decompressed.
#[derive(Debug)]
pub(crate) enum DecompressError {
    /// A system call failed.
    Io(io::Error),
    /// The compressed data end inside a stream or gzip member.
    Truncated(CompressionFormat),
    /// The compressed data are invalid: checksum, length, code, or data after the end. The text is the message of the
    /// decoder.
    Corrupt(CompressionFormat, String),
    /// The file has changed: the span starts or ends at a position that does not exist in it. The field is that
    /// position.
    ContentChanged(VirtualOffset),
}

impl DecompressError {
    /// Converts an error of a decoder of gzip.
    pub(crate) fn from_gzip_error(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::UnexpectedEof => DecompressError::Truncated(CompressionFormat::Gzip),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                DecompressError::Corrupt(CompressionFormat::Gzip, e.to_string())
            }
            _ => DecompressError::Io(e),
        }
    }
}

/// Decompresses bzip2, xz or zstd.
pub(crate) enum NonGzipDecoder<R: BufRead> {
    Bzip2(Box<MultiBzDecoder<InputFaultRecorder<R>>>),
    Xz(Box<XzReader<InputFaultRecorder<R>>>),
    Zstd(Box<MultiFrameZstdReader<InputFaultRecorder<R>>>),
}

impl<R: BufRead> NonGzipDecoder<R> {
    /// Creates a decoder of bzip2.
    pub(crate) fn new_bzip2(input: R) -> NonGzipDecoder<R> {
        NonGzipDecoder::Bzip2(Box::new(MultiBzDecoder::new(InputFaultRecorder::new(input))))
    }

    /// Creates a decoder of xz.
    pub(crate) fn new_xz(input: R) -> NonGzipDecoder<R> {
        let max_kib = (MAX_WINDOW_BYTES >> 10) as u32 + XZ_STATE_KIB;
        NonGzipDecoder::Xz(Box::new(XzReader::new_mem_limit(InputFaultRecorder::new(input), true, max_kib)))
    }

    /// Creates a decoder of zstd.
    pub(crate) fn new_zstd(input: R) -> NonGzipDecoder<R> {
        NonGzipDecoder::Zstd(Box::new(MultiFrameZstdReader::new(InputFaultRecorder::new(input))))
    }

    /// Reads decompressed bytes; 0 at the end of the input, unless `buf` is empty.
    pub(crate) fn read_decompressed(&mut self, buf: &mut [u8]) -> Result<usize, DecompressError> {
        let read = match self {
            NonGzipDecoder::Bzip2(decoder) => decoder.read(buf),
            NonGzipDecoder::Xz(decoder) => decoder.read(buf),
            NonGzipDecoder::Zstd(decoder) => decoder.read(buf),
        };
        read.map_err(|error| self.explain_error(&error))
    }

    /// Finds out why a decoder returned `error`.
    fn explain_error(&mut self, error: &io::Error) -> DecompressError {
        let (format, input) = match self {
            NonGzipDecoder::Bzip2(decoder) => (CompressionFormat::Bzip2, decoder.get_mut()),
            NonGzipDecoder::Xz(decoder) => (CompressionFormat::Xz, decoder.inner_mut()),
            NonGzipDecoder::Zstd(decoder) => (CompressionFormat::Zstd, &mut decoder.input),
        };
        match input.error.take() {
            Some(error) => DecompressError::Io(error),
            None if input.is_read_past_end => DecompressError::Truncated(format),
            None => DecompressError::Corrupt(format, error.to_string()),
        }
    }
}

impl<R: BufRead> Read for NonGzipDecoder<R> {
    /// Errors of damaged data have the kind `InvalidData`.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_decompressed(buf).map_err(|error| match error {
            DecompressError::Io(error) => error,
            damage => io::Error::new(io::ErrorKind::InvalidData, format!("{damage:?}")),
        })
    }
}

/// Compressed input that records why a decoder did not get the bytes it asked for. Decoders wrap or replace errors of
/// their input.
pub(crate) struct InputFaultRecorder<R> {
    input: R,
    error: Option<io::Error>,
    /// Whether the decoder requested bytes after the end of the input.
    is_read_past_end: bool,
}

impl<R> InputFaultRecorder<R> {
    fn new(input: R) -> InputFaultRecorder<R> {
        InputFaultRecorder { input, error: None, is_read_past_end: false }
    }
}

impl<R: BufRead> BufRead for InputFaultRecorder<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        // The result of the first call cannot be returned from the loop (a limit of the borrow checker).
        loop {
            match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error = Some(error);
                    return Err(io::Error::other("the input cannot be read"));
                }
                Ok(bytes) => {
                    self.is_read_past_end |= bytes.is_empty();
                    break;
                }
            }
        }
        self.input.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.input.consume(n);
    }
}

impl<R: BufRead> Read for InputFaultRecorder<R> {
    /// Reads as many bytes as fit into `buf`; fewer only at the end of the input. The decoder of xz takes a short read
    /// for damage.
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            let bytes = self.fill_buf()?;
            let n = bytes.len().min(buf.len() - filled);
            if n == 0 {
                break;
            }
            buf[filled..filled + n].copy_from_slice(&bytes[..n]);
            self.consume(n);
            filled += n;
        }
        Ok(filled)
    }
}

/// Decompresses zstd of one or more frames, and compares their checksums. Skippable frames are skipped.
pub(crate) struct MultiFrameZstdReader<R> {
    input: R,
    decoder: FrameDecoder,
    /// Whether a frame has begun and is not finished.
    is_in_frame: bool,
}

impl<R: BufRead> MultiFrameZstdReader<R> {
    fn new(input: R) -> MultiFrameZstdReader<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW_BYTES);
        MultiFrameZstdReader { input, decoder, is_in_frame: false }
    }

    /// Reads the header of the next frame that has data. Returns false at the end of the input.
    fn start_frame(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.is_in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let skipped = io::copy(&mut self.input.by_ref().take(u64::from(length)), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn check_checksum(&self) -> io::Result<()> {
        let stored = self.decoder.get_checksum_from_data();
        if stored.is_some() && stored != self.decoder.get_calculated_checksum() {
            return Err(io::Error::other("wrong checksum"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for MultiFrameZstdReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.is_in_frame && !self.start_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, one).map_err(io::Error::other)?;
            }
            match self.decoder.read(buf)? {
                0 => {
                    self.check_checksum()?;
                    self.is_in_frame = false;
                }
                n => return Ok(n),
            }
        }
    }
}
