//! Fast compression (LZ4) of the data in the spill file.

use std::io;

/// Compresses with LZ4. Each thread has its own.
#[derive(Debug, Default)]
pub(crate) struct Lz4Compressor;

impl Lz4Compressor {
    /// Replaces the content of `out` by the compressed `data`.
    pub(crate) fn compress(&mut self, data: &[u8], out: &mut Vec<u8>) {
        out.resize(lz4_flex::block::get_maximum_output_size(data.len()), 0);
        let n = lz4_flex::block::compress_into(data, out).unwrap_or(0);
        out.truncate(n);
    }
}

/// Decompresses `packed` to `size` bytes.
pub(crate) fn decompress(packed: &[u8], size: usize) -> io::Result<Vec<u8>> {
    lz4_flex::block::decompress(packed, size).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}
