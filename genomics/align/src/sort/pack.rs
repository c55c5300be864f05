//! Fast compression of what goes into the spill file.

use std::io;

/// Packs; one for each thread.
#[derive(Debug, Default)]
pub(crate) struct Packer;

impl Packer {
    /// Replaces `out` by `data` packed.
    pub(crate) fn pack(&mut self, data: &[u8], out: &mut Vec<u8>) {
        out.resize(lz4_flex::block::get_maximum_output_size(data.len()), 0);
        let n = lz4_flex::block::compress_into(data, out).unwrap_or(0);
        out.truncate(n);
    }
}

/// The `size` bytes that were packed.
pub(crate) fn unpack(packed: &[u8], size: usize) -> io::Result<Vec<u8>> {
    lz4_flex::block::decompress(packed, size).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}
