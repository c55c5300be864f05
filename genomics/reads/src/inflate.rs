//! Bytes of a file, decompressed if need be: plain, gzip of one or more members, and BGZF (which is such a gzip).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, FileFault};
use crate::meter::Meter;

/// Bytes read from the disk at once.
const DISK_CHUNK: usize = 256 << 10;

/// A file that counts what is read from it.
struct Metered<'m> {
    file: File,
    meter: &'m Meter,
}

impl Read for Metered<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buf)?;
        self.meter.add_bytes(n as u64);
        Ok(n)
    }
}

/// The content of a file; gzip is told by its first bytes, not by its name.
pub(crate) struct Inflate<'m> {
    stream: Kind<'m>,
    /// Met after the last bytes handed out.
    damage: Option<Damage>,
}

enum Kind<'m> {
    Plain(BufReader<Metered<'m>>),
    Gzip(Box<MultiGzDecoder<BufReader<Metered<'m>>>>),
}

impl<'m> Inflate<'m> {
    /// Opens a regular file that has at least one byte.
    pub(crate) fn open(path: &Path, meter: &'m Meter) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.into(), source };
        // Asked before opening, because opening a pipe that nobody writes to would wait for ever.
        if !path.metadata().map_err(unreadable)?.is_file() {
            return Err(Error::file(path, FileFault::NotRegular));
        }
        let file = File::open(path).map_err(unreadable)?;
        let mut disk = BufReader::with_capacity(DISK_CHUNK, Metered { file, meter });
        let head = disk.fill_buf().map_err(unreadable)?;
        if head.is_empty() {
            return Err(Error::file(path, FileFault::Empty));
        }
        if let Some(found) = other_compression(head) {
            let remedy = "decompress it, or compress it with gzip or bgzip";
            return Err(Error::file(path, FileFault::Format { found, wanted: "gzip or plain text", remedy }));
        }
        let stream = if head.starts_with(&[0x1f, 0x8b]) {
            Kind::Gzip(Box::new(MultiGzDecoder::new(disk)))
        } else {
            Kind::Plain(disk)
        };
        Ok(Inflate { stream, damage: None })
    }

    /// Fills `buf` as far as the file reaches and returns how much that is.
    ///
    /// # Errors
    /// See [`Damage`]; all that could be decompressed has been handed out before.
    pub(crate) fn fill(&mut self, buf: &mut [u8]) -> Result<usize, Damage> {
        let (stream, gzip): (&mut dyn Read, bool) = match &mut self.stream {
            Kind::Plain(stream) => (stream, false),
            Kind::Gzip(stream) => (stream, true),
        };
        let mut filled = 0;
        while filled < buf.len() && self.damage.is_none() {
            match stream.read(&mut buf[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => self.damage = Some(Damage::of(e, gzip)),
            }
        }
        match self.damage.take_if(|_| filled == 0) {
            Some(damage) => Err(damage),
            None => Ok(filled),
        }
    }
}

/// Why decompression stopped.
#[derive(Debug)]
pub(crate) enum Damage {
    /// The system could not read.
    Io(io::Error),
    /// The gzip data end within a member.
    Truncated,
    /// The gzip data are wrong: checksum, length, code or what follows the last member.
    Corrupt(String),
}

impl Damage {
    fn of(e: io::Error, gzip: bool) -> Self {
        match e.kind() {
            io::ErrorKind::UnexpectedEof if gzip => Damage::Truncated,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if gzip => {
                Damage::Corrupt(e.to_string())
            }
            _ => Damage::Io(e),
        }
    }
}

/// Compressed formats that genuma does not read.
fn other_compression(head: &[u8]) -> Option<&'static str> {
    const MAGICS: [(&[u8], &str); 4] = [
        (b"BZh", "compressed with bzip2"),
        (b"\xfd7zXZ\0", "compressed with xz"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
        (b"PK\x03\x04", "a zip archive"),
    ];
    MAGICS.iter().find(|(magic, _)| head.starts_with(magic)).map(|&(_, what)| what)
}
