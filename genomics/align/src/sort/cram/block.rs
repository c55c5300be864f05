//! Writes blocks and container headers (CRAM specification 3.1, sections 7 and 8).

use libdeflater::{CompressionLvl, Compressor};

use super::itf8::{write_itf8, write_ltf8};
use super::rans::{ContextOrder, RansEncoder};

/// Content type of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum BlockType {
    FileHeader = 0,
    CompressionHeader = 1,
    SliceHeader = 2,
    ExternalData = 4,
    CoreData = 5,
}

/// Compression method of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Stored,
    Gzip,
    Rans(ContextOrder),
}

/// Compression level of gzip.
const GZIP_LEVEL: i32 = 6;
/// Blocks with fewer bytes than this are stored uncompressed: the table would be larger than the gain.
const MIN_COMPRESSED_BYTES: usize = 24;

/// Writes compressed blocks; each thread has its own.
pub(super) struct BlockWriter {
    rans: RansEncoder,
    gzip: Compressor,
    compressed: Vec<u8>,
}

impl BlockWriter {
    pub(super) fn new() -> BlockWriter {
        let level = CompressionLvl::new(GZIP_LEVEL).unwrap_or_default();
        BlockWriter { rans: RansEncoder::new(), gzip: Compressor::new(level), compressed: Vec::new() }
    }

    /// Appends a block to `out`. Data that does not become smaller is stored uncompressed.
    pub(super) fn write_block(&mut self, kind: BlockType, id: i32, codec: Codec, data: &[u8], out: &mut Vec<u8>) {
        let begin = out.len();
        let compressed = &mut self.compressed;
        compressed.clear();
        let mut method = match codec {
            _ if data.len() < MIN_COMPRESSED_BYTES => 0,
            Codec::Stored => 0,
            Codec::Gzip => {
                compressed.resize(self.gzip.gzip_compress_bound(data.len()), 0);
                // The buffer is large enough for any result.
                self.gzip.gzip_compress(data, compressed).map_or(0, |size| {
                    compressed.truncate(size);
                    1
                })
            }
            Codec::Rans(order) => {
                self.rans.encode(data, order, compressed);
                4
            }
        };
        if compressed.len() >= data.len() {
            method = 0;
        }
        let bytes = if method == 0 { data } else { compressed };
        out.extend_from_slice(&[method, kind as u8]);
        write_itf8(out, id);
        write_itf8(out, bytes.len() as i32);
        write_itf8(out, data.len() as i32);
        out.extend_from_slice(bytes);
        let sum = crc32fast::hash(&out[begin..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }
}

/// The range of the reference that the records of a slice or container cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReferenceSpan {
    /// Index of the reference sequence, or [`ReferenceSpan::UNMAPPED`] or [`ReferenceSpan::MULTIPLE_SEQUENCES`].
    pub(super) sequence: i32,
    /// First base, 1-based.
    pub(super) start: i32,
    pub(super) span: i32,
}

impl ReferenceSpan {
    /// Sequence number of records without a position.
    pub(super) const UNMAPPED: i32 = -1;
    /// Sequence number of a slice with records of several sequences.
    pub(super) const MULTIPLE_SEQUENCES: i32 = -2;

    /// Appends sequence number, start and length as ITF8.
    pub(super) fn write_span(self, out: &mut Vec<u8>) {
        write_itf8(out, self.sequence);
        write_itf8(out, self.start);
        write_itf8(out, self.span);
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ContainerHeader {
    pub(super) bytes: usize,
    pub(super) span: ReferenceSpan,
    pub(super) records: usize,
    /// Number of records before this container in the file.
    pub(super) record_counter: u64,
    pub(super) bases: u64,
    pub(super) blocks: usize,
    /// Offset of the slice in the blocks of the container.
    pub(super) slice_offset: Option<usize>,
}

impl ContainerHeader {
    /// Appends the encoded header with its checksum.
    pub(super) fn write_header(self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&(self.bytes as i32).to_le_bytes());
        self.span.write_span(out);
        write_itf8(out, self.records as i32);
        write_ltf8(out, self.record_counter);
        write_ltf8(out, self.bases);
        write_itf8(out, self.blocks as i32);
        write_itf8(out, 1);
        write_itf8(out, self.slice_offset.unwrap_or(0) as i32);
        let sum = crc32fast::hash(&out[begin..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }
}

/// The container that marks the end of a CRAM 3 file (section 9).
pub(super) const EOF_CONTAINER: [u8; 38] = [
    0x0f, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0xe0, 0x45, 0x4f, 0x46, 0, 0, 0, 0, 1, 0, 5, 0xbd, 0xd9, 0x4f, 0, 1,
    0, 6, 6, 1, 0, 1, 0, 1, 0, 0xee, 0x63, 0x01, 0x4b,
];
