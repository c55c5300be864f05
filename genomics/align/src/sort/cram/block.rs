//! Writes blocks and container headers (CRAM specification 3.1, sections 7 and 8).

use libdeflater::{CompressionLvl, Compressor};

use super::CramVersion;
use super::itf8::{write_itf8, write_ltf8};
use super::name_tokenizer::encode_read_names;
use super::rans::{ContextOrder, RansEncoder};
use super::rans_nx16::{Nx16Encoder, Nx16Method};

/// Content type of a CRAM block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum BlockType {
    FileHeader = 0,
    CompressionHeader = 1,
    SliceHeader = 2,
    ExternalData = 4,
    CoreData = 5,
}

/// How a block is compressed. CRAM 3.1 has rANS Nx16 for `Rans`, and also tries it for `Gzip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Stored,
    Gzip,
    Rans(ContextOrder),
    /// Read names: gzip in CRAM 3.0, the name tokeniser in CRAM 3.1 unless gzip is smaller.
    Names,
}

/// Codes of the compression methods in the file (section 8.1 and the codec specification).
mod method {
    pub const STORED: u8 = 0;
    pub const GZIP: u8 = 1;
    pub(crate) const RANS_4X8: u8 = 4;
    pub(crate) const RANS_NX16: u8 = 5;
    pub(crate) const NAME_TOKENIZER: u8 = 8;
}

/// Compression level of gzip.
const GZIP_LEVEL: i32 = 6;
/// Blocks with fewer bytes than this are stored uncompressed: the frequency table would be larger than the gain.
const MIN_COMPRESSED_BYTES: usize = 24;

/// In CRAM 3.1, blocks of up to this number of bytes are encoded with both context orders, and the smaller result is
/// kept. In larger blocks, the order that is fixed for the data series is nearly always the better one.
const MAX_BYTES_FOR_BOTH_ORDERS: usize = 128 << 10;
/// Ratio of the bytes of read names to those of their encoded tokens below which gzip is tried as well. Chosen:
/// typical names have 6 to 10.
const MIN_TOKENIZED_RATIO: usize = 4;

/// Writes compressed blocks. Each thread has its own.
pub(super) struct BlockWriter {
    version: CramVersion,
    rans: RansEncoder,
    nx16: Nx16Encoder,
    gzip: Compressor,
    compressed: Vec<u8>,
    /// Result of a second compression method for the same block.
    other: Vec<u8>,
}

impl BlockWriter {
    pub(super) fn new(version: CramVersion) -> BlockWriter {
        let level = CompressionLvl::new(GZIP_LEVEL).unwrap_or_default();
        BlockWriter {
            version,
            rans: RansEncoder::new(),
            nx16: Nx16Encoder::new(),
            gzip: Compressor::new(level),
            compressed: Vec::new(),
            other: Vec::new(),
        }
    }

    /// Appends a block to `out`. Data that does not become smaller is stored uncompressed.
    pub(super) fn write_block(&mut self, kind: BlockType, id: i32, codec: Codec, data: &[u8], out: &mut Vec<u8>) {
        let begin = out.len();
        let mut method = match (codec, self.version) {
            _ if data.len() < MIN_COMPRESSED_BYTES => method::STORED,
            (Codec::Stored, _) => method::STORED,
            (Codec::Gzip | Codec::Names, CramVersion::V3_0) => self.compress_gzip(data),
            (Codec::Rans(order), CramVersion::V3_0) => {
                self.compressed.clear();
                self.rans.encode(data, order, &mut self.compressed);
                method::RANS_4X8
            }
            (Codec::Rans(order), CramVersion::V3_1) => self.compress_nx16(data, order),
            (Codec::Gzip, CramVersion::V3_1) => {
                self.compress_nx16(data, ContextOrder::One);
                self.gzip_if_smaller(data, method::RANS_NX16)
            }
            (Codec::Names, CramVersion::V3_1) => self.compress_names(data),
        };
        if self.compressed.len() >= data.len() {
            method = method::STORED;
        }
        let bytes = if method == method::STORED { data } else { &self.compressed };
        out.extend_from_slice(&[method, kind as u8]);
        write_itf8(out, id);
        write_itf8(out, bytes.len() as i32);
        write_itf8(out, data.len() as i32);
        out.extend_from_slice(bytes);
        let sum = crc32fast::hash(&out[begin..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }

    fn compress_gzip(&mut self, data: &[u8]) -> u8 {
        self.compressed.resize(self.gzip.gzip_compress_bound(data.len()), 0);
        // The buffer is large enough for any result; an empty one would be stored.
        let size = self.gzip.gzip_compress(data, &mut self.compressed).unwrap_or(data.len());
        self.compressed.truncate(size);
        if size < data.len() { method::GZIP } else { method::STORED }
    }

    /// Compresses with rANS Nx16 of `order` and, if there are few distinct values, with several values in a byte;
    /// small blocks also with the other order. Keeps the smallest result and returns its method.
    fn compress_nx16(&mut self, data: &[u8], order: ContextOrder) -> u8 {
        let other = if order == ContextOrder::One { ContextOrder::Zero } else { ContextOrder::One };
        let methods = [Nx16Method::Plain(order), Nx16Method::Packed(order), Nx16Method::Plain(other)];
        let tried = if data.len() <= MAX_BYTES_FOR_BOTH_ORDERS { &methods[..] } else { &methods[..2] };
        self.compressed.clear();
        self.nx16.append_smallest_encoding(data, tried, &mut self.compressed);
        method::RANS_NX16
    }

    fn compress_names(&mut self, data: &[u8]) -> u8 {
        self.compressed.clear();
        let is_encoded = encode_read_names(data, &mut self.nx16, &mut self.compressed);
        if !is_encoded {
            return self.compress_gzip(data);
        }
        if self.compressed.len() * MIN_TOKENIZED_RATIO <= data.len() {
            return method::NAME_TOKENIZER;
        }
        self.gzip_if_smaller(data, method::NAME_TOKENIZER)
    }

    /// Replaces the result of another method by that of gzip if it is smaller. Returns the method of the result.
    fn gzip_if_smaller(&mut self, data: &[u8], method: u8) -> u8 {
        std::mem::swap(&mut self.compressed, &mut self.other);
        let gzip = self.compress_gzip(data);
        if gzip == method::GZIP && self.compressed.len() < self.other.len() {
            return gzip;
        }
        std::mem::swap(&mut self.compressed, &mut self.other);
        method
    }
}

/// The range of the reference that the records of a slice or container cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReferenceSpan {
    /// Index of the reference sequence, or [`ReferenceSpan::UNMAPPED_REFERENCE_ID`] or
    /// [`ReferenceSpan::MULTIPLE_REFERENCES_ID`].
    pub(super) sequence: i32,
    /// First base, 1-based.
    pub(super) start: i32,
    pub(super) span: i32,
}

impl ReferenceSpan {
    /// Reference sequence ID of a slice whose records have no position.
    pub(super) const UNMAPPED_REFERENCE_ID: i32 = -1;
    /// Reference sequence ID of a slice whose records are on several reference sequences.
    pub(super) const MULTIPLE_REFERENCES_ID: i32 = -2;

    /// Appends sequence number, start and length as ITF8.
    pub(super) fn write_span(self, out: &mut Vec<u8>) {
        write_itf8(out, self.sequence);
        write_itf8(out, self.start);
        write_itf8(out, self.span);
    }
}

/// Header of a container with one slice, or with the file header.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContainerHeader {
    pub(super) bytes: usize,
    pub(super) span: ReferenceSpan,
    pub(super) records: usize,
    /// Number of records before this container in the file.
    pub(super) record_counter: u64,
    pub(super) bases: u64,
    pub(super) blocks: usize,
    /// Offset (bytes) of the slice within the blocks of the container (landmark); `None` if the container has the file
    /// header.
    pub(super) slice_offset: Option<usize>,
}

impl ContainerHeader {
    /// Appends the encoded header with its checksum.
    pub(super) fn write_container_header(self, out: &mut Vec<u8>) {
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
