//! A page of a table: 4096 bytes that are read together, with a checksum.

use bytemuck::{Pod, Zeroable};
use twox_hash::XxHash3_64;

/// Size of a page in bytes.
pub const PAGE_BYTES: usize = 4096;
/// Number of bytes of a page that its checksum covers.
pub(crate) const CHECKSUMMED_BYTES: usize = PAGE_BYTES - 8;

/// One page in memory, aligned for direct I/O.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(4096))]
pub(crate) struct Page(pub [u8; PAGE_BYTES]);

impl Page {
    /// Computes the checksum of the page. The page number is included, so that a page at a wrong offset is detected.
    fn checksum(&self, number: u64) -> u64 {
        XxHash3_64::oneshot_with_seed(number, &self.0[..CHECKSUMMED_BYTES])
    }

    /// Writes the checksum of the page into its last bytes. `number` is the number of the page in the file, where the
    /// header is page 0.
    pub(crate) fn write_checksum(&mut self, number: u64) {
        let checksum = self.checksum(number);
        self.0[CHECKSUMMED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Whether the page has the checksum of its content and of page number `number`.
    pub(crate) fn has_valid_checksum(&self, number: u64) -> bool {
        self.0[CHECKSUMMED_BYTES..] == self.checksum(number).to_le_bytes()
    }
}
