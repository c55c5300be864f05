//! Bytes of a file, decompressed if need be: plain, gzip of one or more members, and BGZF (which is such a gzip).
//!
//! A stretch of BGZF is read as its blocks are from that in which it begins up to that in which it ends; of the first of them what lies before the stretch is left out, and
//! of the last block, which is read by itself, only its beginning is handed out.

use std::io::{self, BufReader, Chain, Cursor, PipeReader, Read};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use crate::bgzf::{self, Bgzf};
use crate::error::{Error, FileFault};
use crate::source::Source;
use crate::span::{Offset, Span};
use genuma_work::Meter;

/// Bytes read from the disk at once.
const DISK_CHUNK: usize = 256 << 10;

/// The bytes of a file as they lie on the disk; the first ones have been looked at.
type Packed<M> = Chain<Cursor<Vec<u8>>, BufReader<Source<M>>>;

/// How a file may be read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Access {
    /// Threads that inflate BGZF, beside the one that reads; with 0 that one does it.
    pub(crate) inflaters: usize,
    /// Pipes are welcome; waiting for one ends when the other end of this is dropped.
    pub(crate) pipes: Option<Arc<PipeReader>>,
    /// The stretch that is read; absent for all of a file.
    pub(crate) span: Option<Span>,
    /// What a pipe has to end with.
    pub(crate) end: &'static [u8],
}

/// The content of a file; gzip is told by its first bytes, not by its name.
pub(crate) struct Inflate<M> {
    stream: Kind<M>,
    /// Bytes to leave out: those of the first block that lie before the stretch.
    skip: usize,
    /// Where the stretch begins, and where it ends if that is within a block.
    from: Offset,
    tail: Option<Offset>,
    /// Met after the last bytes handed out.
    damage: Option<Damage>,
}

enum Kind<M> {
    Plain(Packed<M>),
    Gzip(Box<MultiGzDecoder<Packed<M>>>),
    Bgzf(Box<Bgzf<Packed<M>>>),
    /// The beginning of the block that a stretch ends in.
    Tail(Cursor<Vec<u8>>),
    /// The end, or what is between two kinds.
    Over,
}

impl<M: Deref<Target = Meter>> Inflate<M> {
    /// Opens a file that has at least one byte, or a stretch of one.
    pub(crate) fn open(path: &Path, meter: M, access: &Access) -> Result<Self, Error> {
        let unreadable = |source| Error::Read { path: path.into(), source };
        let source = Source::open(path, access.span, meter, access.pipes.as_ref())?.ending(access.end);
        let mut disk = BufReader::with_capacity(DISK_CHUNK, source);
        let mut head = Vec::new();
        // A pipe may give its first bytes one by one.
        disk.by_ref().take(bgzf::HEADER as u64).read_to_end(&mut head).map_err(unreadable)?;
        let from = access.span.map_or_else(Offset::default, |span| span.from);
        let tail = access.span.and_then(|span| span.to).filter(|to| to.within > 0);
        if head.is_empty() && tail.is_none() {
            return Err(Error::file(path, FileFault::Empty));
        }
        if let Some(found) = other_compression(&head) {
            let remedy = "decompress it, or compress it with gzip or bgzip";
            return Err(Error::file(path, FileFault::Format { found, wanted: "gzip or plain text", remedy }));
        }
        let gzip = head.starts_with(&[0x1f, 0x8b]);
        // A stretch may lie in one block, which is then its last.
        let blocks = bgzf::block_size(&head).is_some() || head.is_empty();
        // Of nothing but BGZF can a stretch begin or end within a block, or a gzip be cut at all.
        if access.span.is_some() && !blocks && (gzip || from.within > 0 || tail.is_some()) {
            return Err(Error::file(path, FileFault::Changed(from)));
        }
        let packed = Cursor::new(head).chain(disk);
        let stream = match (gzip, blocks) {
            (_, true) => Kind::Bgzf(Box::new(Bgzf::new(packed, access.inflaters))),
            (true, false) => Kind::Gzip(Box::new(MultiGzDecoder::new(packed))),
            (false, false) => Kind::Plain(packed),
        };
        Ok(Inflate { stream, skip: usize::from(from.within), from, tail, damage: None })
    }

    /// Fills `buf` as far as the file reaches and returns how much that is.
    ///
    /// # Errors
    /// See [`Damage`]; all that could be decompressed has been handed out before.
    pub(crate) fn fill(&mut self, buf: &mut [u8]) -> Result<usize, Damage> {
        let mut filled = 0;
        while filled < buf.len() && self.damage.is_none() {
            let (stream, gzip): (&mut dyn Read, bool) = match &mut self.stream {
                Kind::Plain(stream) => (stream, false),
                Kind::Gzip(stream) => (stream, true),
                Kind::Bgzf(stream) => (stream, true),
                Kind::Tail(stream) => (stream, true),
                Kind::Over => break,
            };
            match stream.read(&mut buf[filled..]) {
                Ok(0) => match self.after_end() {
                    Ok(stream) => self.stream = stream,
                    Err(damage) => self.damage = Some(damage),
                },
                Ok(n) => {
                    let skipped = self.skip.min(n);
                    self.skip -= skipped;
                    buf.copy_within(filled + skipped..filled + n, filled);
                    filled += n - skipped;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => self.damage = Some(Damage::of(e, gzip)),
            }
        }
        match self.damage.take_if(|_| filled == 0) {
            Some(damage) => Err(damage),
            None => Ok(filled),
        }
    }

    /// What follows the stream that has ended: blocks of BGZF may be followed by members that are none, and a stretch may end within the next block.
    fn after_end(&mut self) -> Result<Kind<M>, Damage> {
        let packed = match std::mem::replace(&mut self.stream, Kind::Over) {
            Kind::Bgzf(blocks) => {
                let (begun, packed) = blocks.into_rest();
                if !begun.is_empty() {
                    let (_, disk) = packed.into_inner();
                    return Ok(Kind::Gzip(Box::new(MultiGzDecoder::new(Cursor::new(begun).chain(disk)))));
                }
                packed
            }
            Kind::Gzip(members) => members.into_inner(),
            Kind::Plain(_) | Kind::Tail(_) | Kind::Over => return self.over(),
        };
        let Some(end) = self.tail.take() else {
            return self.over();
        };
        let (_, disk) = packed.into_inner();
        let mut content = Vec::new();
        let block = bgzf::read_block(disk.get_ref().file(), end.byte, &mut content);
        let within = usize::from(end.within);
        if block.map_err(|e| Damage::of(e, true))?.is_none() || content.len() < within {
            return Err(Damage::Changed(end));
        }
        content.truncate(within);
        Ok(Kind::Tail(Cursor::new(content)))
    }

    /// The end, unless it comes before the place where the stretch begins.
    fn over(&self) -> Result<Kind<M>, Damage> {
        if self.skip > 0 { Err(Damage::Changed(self.from)) } else { Ok(Kind::Over) }
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
    /// Nothing that a stretch can begin or end with is at this place, where one does.
    Changed(Offset),
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
