//! Blocks and containers (CRAM specification 3.1, sections 7 and 8): what each series of values is coded with.

use libdeflater::{CompressionLvl, Compressor};

use super::number::{itf8, ltf8};
use super::rans::{Coder, Order};

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Header = 0,
    Compression = 1,
    Slice = 2,
    Values = 4,
    Core = 5,
}

/// How bytes are made fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Stored,
    Gzip,
    Rans(Order),
}

/// gzip's level.
const LEVEL: i32 = 6;
/// Smaller ones are not worth a table.
const LEAST: usize = 24;

/// Makes blocks; one for each thread.
pub(super) struct Coders {
    rans: Coder,
    gzip: Compressor,
    room: Vec<u8>,
}

impl Coders {
    pub(super) fn new() -> Coders {
        let level = CompressionLvl::new(LEVEL).unwrap_or_default();
        Coders { rans: Coder::new(), gzip: Compressor::new(level), room: Vec::new() }
    }

    /// Appends a block. What does not become smaller is stored.
    pub(super) fn block(&mut self, kind: Kind, id: i32, codec: Codec, data: &[u8], out: &mut Vec<u8>) {
        let begin = out.len();
        let room = &mut self.room;
        room.clear();
        let mut method = match codec {
            _ if data.len() < LEAST => 0,
            Codec::Stored => 0,
            Codec::Gzip => {
                room.resize(self.gzip.gzip_compress_bound(data.len()), 0);
                // There is room for whatever it makes.
                self.gzip.gzip_compress(data, room).map_or(0, |size| {
                    room.truncate(size);
                    1
                })
            }
            Codec::Rans(order) => {
                self.rans.encode(data, order, room);
                4
            }
        };
        if room.len() >= data.len() {
            method = 0;
        }
        let bytes = if method == 0 { data } else { room };
        out.extend_from_slice(&[method, kind as u8]);
        itf8(out, id);
        itf8(out, bytes.len() as i32);
        itf8(out, data.len() as i32);
        out.extend_from_slice(bytes);
        let sum = crc32fast::hash(&out[begin..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }
}

/// Where the records of a slice or a container lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    /// Number of the sequence, [`Reach::NONE`] or [`Reach::SEVERAL`].
    pub(super) sequence: i32,
    /// First base, from 1.
    pub(super) start: i32,
    /// How many.
    pub(super) span: i32,
}

impl Reach {
    /// Of records without a place.
    pub(super) const NONE: i32 = -1;
    /// Of records of several sequences.
    pub(super) const SEVERAL: i32 = -2;

    pub(super) fn write(self, out: &mut Vec<u8>) {
        itf8(out, self.sequence);
        itf8(out, self.start);
        itf8(out, self.span);
    }
}

/// What stands before the blocks of a container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Container {
    pub(super) bytes: usize,
    pub(super) reach: Reach,
    pub(super) records: usize,
    /// Records before it in the file.
    pub(super) before: u64,
    pub(super) bases: u64,
    pub(super) blocks: usize,
    /// Where in the blocks the slice begins.
    pub(super) slice: Option<usize>,
}

impl Container {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&(self.bytes as i32).to_le_bytes());
        self.reach.write(out);
        itf8(out, self.records as i32);
        ltf8(out, self.before);
        ltf8(out, self.bases);
        itf8(out, self.blocks as i32);
        itf8(out, 1);
        itf8(out, self.slice.unwrap_or(0) as i32);
        let sum = crc32fast::hash(&out[begin..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }
}

/// The container that ends every file of version 3 (section 9).
pub(super) const END: [u8; 38] = [
    0x0f, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xe0, 0x45, 0x4f, 0x46, 0, 0, 0, 0, 1, 0, 5, 0xbd, 0xd9,
    0x4f, 0, 1, 0, 6, 6, 1, 0, 1, 0, 1, 0, 0xee, 0x63, 0x01, 0x4b,
];
