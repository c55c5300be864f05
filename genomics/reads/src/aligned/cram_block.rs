//! Fields and blocks of CRAM containers (CRAM format specification 3, sections 2 and 8).

use std::borrow::Cow;
use std::io::{self, Read};

use flate2::Crc;
use flate2::bufread::GzDecoder;

use super::cram_version::CramVersion;

/// Number of bytes of a container or block header's CRC32.
pub(super) const CRC_BYTES: usize = 4;

/// Compression method of a block that is stored as it is.
pub(super) const RAW: u8 = 0;

/// The error for a container whose headers contradict each other.
pub(super) fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

/// Reads the fields of a header one after the other.
pub(super) struct Fields<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Fields { bytes, at: 0 }
    }

    pub(super) fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| invalid("a field or block is longer than its container"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Reads an ITF8 number: the number of leading one bits in the first byte is the number of further bytes.
    pub(super) fn itf8(&mut self) -> io::Result<i32> {
        let first = self.byte()?;
        let further = first.leading_ones().min(4);
        let mut number = if further == 4 { u32::from(first & 15) } else { u32::from(first) & (0x7f >> further) };
        for (i, byte) in self.take(further as usize)?.iter().enumerate() {
            // Of the fifth byte only the lower four bits count.
            number = if i == 3 { number << 4 | u32::from(byte & 15) } else { number << 8 | u32::from(*byte) };
        }
        Ok(number as i32)
    }

    /// Reads an ITF8 number that must not be negative.
    pub(super) fn size(&mut self) -> io::Result<usize> {
        let number = self.itf8()?;
        usize::try_from(number).map_err(|_| invalid(format!("a size of {number}")))
    }

    pub(super) fn skip_ltf8(&mut self) -> io::Result<()> {
        let further = self.byte()?.leading_ones();
        self.take(further as usize).map(drop)
    }
}

/// A block of a container.
pub(super) struct Block<'a> {
    pub(super) header: BlockHeader,
    /// The data as they are stored.
    pub(super) stored: &'a [u8],
}

/// The header of a block.
pub(super) struct BlockHeader {
    pub(super) method: u8,
    pub(super) content_type: u8,
    pub(super) content_id: i32,
    pub(super) stored_bytes: usize,
    pub(super) decompressed_bytes: usize,
}

impl BlockHeader {
    /// Reads the header of the next block.
    pub(super) fn read(fields: &mut Fields<'_>) -> io::Result<Self> {
        let (method, content_type, content_id) = (fields.byte()?, fields.byte()?, fields.itf8()?);
        let (stored_bytes, decompressed_bytes) = (fields.size()?, fields.size()?);
        Ok(BlockHeader { method, content_type, content_id, stored_bytes, decompressed_bytes })
    }
}

impl<'a> Block<'a> {
    /// Reads the next block. In version 3 a CRC32 follows its data.
    pub(super) fn read(fields: &mut Fields<'a>, version: CramVersion) -> io::Result<Self> {
        let header = BlockHeader::read(fields)?;
        let stored = fields.take(header.stored_bytes)?;
        if version.is_version_3() {
            fields.take(CRC_BYTES)?;
        }
        Ok(Block { header, stored })
    }

    /// The data of a block that is uncompressed or compressed with gzip; `None` for other methods.
    pub(super) fn data(&self) -> io::Result<Option<Cow<'a, [u8]>>> {
        const GZIP: u8 = 1;
        match self.header.method {
            RAW => Ok(Some(Cow::Borrowed(self.stored))),
            GZIP => {
                let mut data = Vec::new();
                let limit = self.header.decompressed_bytes as u64;
                GzDecoder::new(self.stored).take(limit).read_to_end(&mut data)?;
                Ok(Some(Cow::Owned(data)))
            }
            _ => Ok(None),
        }
    }
}

/// Appends a number as ITF8. It must be less than 2^32.
pub(super) fn push_itf8(bytes: &mut Vec<u8>, number: usize) {
    let number = number as u32;
    match number {
        0..0x80 => bytes.push(number as u8),
        0x80..0x4000 => bytes.extend([(number >> 8) as u8 | 0x80, number as u8]),
        0x4000..0x20_0000 => bytes.extend([(number >> 16) as u8 | 0xc0, (number >> 8) as u8, number as u8]),
        0x20_0000..0x1000_0000 => {
            bytes.extend([(number >> 24) as u8 | 0xe0, (number >> 16) as u8, (number >> 8) as u8, number as u8]);
        }
        _ => {
            bytes.push((number >> 28) as u8 | 0xf0);
            bytes.extend([(number >> 20) as u8, (number >> 12) as u8, (number >> 4) as u8, number as u8 & 15]);
        }
    }
}

/// Appends the CRC32 of the bytes from the offset `start` on.
pub(super) fn push_crc(bytes: &mut Vec<u8>, start: usize) {
    let mut crc = Crc::new();
    crc.update(&bytes[start..]);
    bytes.extend(crc.sum().to_le_bytes());
}
