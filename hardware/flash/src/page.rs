//! A page of a table: the unit of reading, with a checksum.

use bytemuck::{Pod, Zeroable};
use twox_hash::XxHash3_64;

/// Bytes of a page, the unit of reading.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Bytes of a page that its checksum covers.
pub(crate) const CHECKSUMMED_BYTES: usize = PAGE_BYTES - 8;

/// One page, aligned for direct I/O.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(4096))]
pub(crate) struct Page(pub [u8; PAGE_BYTES]);

impl Page {
    /// Checksum of the page's bytes before the checksum field. The page number is part of it, so a page at a wrong
    /// offset is detected.
    fn checksum(&self, number: u64) -> u64 {
        XxHash3_64::oneshot_with_seed(number, &self.0[..CHECKSUMMED_BYTES])
    }

    /// Writes the checksum of page number `number` into the page.
    pub(crate) fn write_checksum(&mut self, number: u64) {
        let checksum = self.checksum(number);
        self.0[CHECKSUMMED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Whether the checksum is that of page number `number`.
    pub(crate) fn has_valid_checksum(&self, number: u64) -> bool {
        self.0[CHECKSUMMED_BYTES..] == self.checksum(number).to_le_bytes()
    }
}
