//! Compresses BGZF blocks (SAM specification, section 4.1): up to 64 KiB of data, each block a separate gzip member.

use std::num::NonZero;

use libdeflater::{CompressionLvl, Compressor, crc32};

/// Maximum number of data bytes in a block, as in htslib: even a block that does not compress stays below 64 KiB.
pub const MAX_BLOCK_DATA_BYTES: usize = 0xff00;

/// The empty BGZF block that marks the end of a file.
pub const EOF_BLOCK: [u8; 28] =
    [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0, 27, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Bytes of a block before the compressed data.
const BLOCK_HEADER_BYTES: usize = 18;
const BLOCK_FOOTER_BYTES: usize = 8;

/// Compression level from 1 (fast) to 9 (small), as in `samtools -l`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionLevel(NonZero<u8>);

impl CompressionLevel {
    /// Creates a compression level; `None` if `level` is not in 1..=9.
    pub fn from_level_number(level: u8) -> Option<CompressionLevel> {
        NonZero::new(level).filter(|l| l.get() <= 9).map(CompressionLevel)
    }
}

impl Default for CompressionLevel {
    /// Level 6, the default of samtools.
    fn default() -> CompressionLevel {
        CompressionLevel(const { NonZero::new(6).unwrap() })
    }
}

/// Compresses BGZF blocks. Each thread has its own compressor.
pub struct BlockCompressor(Compressor);

impl std::fmt::Debug for BlockCompressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deflater")
    }
}

impl BlockCompressor {
    /// Creates a compressor with this level.
    pub fn with_compression_level(level: CompressionLevel) -> BlockCompressor {
        BlockCompressor(Compressor::new(CompressionLvl::new(level.0.get().into()).unwrap_or_default()))
    }

    /// Appends the block of `data` to `out` and returns the size of the block (bytes). The result depends only on the
    /// data and the level.
    ///
    /// # Panics
    /// `data` is longer than [`MAX_BLOCK_DATA_BYTES`].
    pub fn compress_block(&mut self, data: &[u8], out: &mut Vec<u8>) -> usize {
        assert!(data.len() <= MAX_BLOCK_DATA_BYTES, "a block has at most {MAX_BLOCK_DATA_BYTES} bytes");
        let at = out.len();
        out.extend_from_slice(&EOF_BLOCK[..BLOCK_HEADER_BYTES]);
        // Data that does not become smaller is stored uncompressed, which takes 5 more bytes (RFC 1951, section
        // 3.2.4).
        out.resize(at + BLOCK_HEADER_BYTES + data.len() + 5, 0);
        let deflated = match self.0.deflate_compress(data, &mut out[at + BLOCK_HEADER_BYTES..]) {
            Ok(n) => n,
            Err(libdeflater::CompressionError::InsufficientSpace) => {
                let n = data.len() as u16;
                let stored = &mut out[at + BLOCK_HEADER_BYTES..];
                stored[0] = 1;
                stored[1..3].copy_from_slice(&n.to_le_bytes());
                stored[3..5].copy_from_slice(&(!n).to_le_bytes());
                stored[5..].copy_from_slice(data);
                data.len() + 5
            }
        };
        out.truncate(at + BLOCK_HEADER_BYTES + deflated);
        out.extend_from_slice(&crc32(data).to_le_bytes());
        out.extend_from_slice(&(data.len() as u32).to_le_bytes());
        let size = BLOCK_HEADER_BYTES + deflated + BLOCK_FOOTER_BYTES;
        out[at + 16..at + BLOCK_HEADER_BYTES].copy_from_slice(&((size - 1) as u16).to_le_bytes());
        size
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn blocks_are_read_back() {
        let mut state = 1u64;
        let noise: Vec<u8> = (0..MAX_BLOCK_DATA_BYTES)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 40) as u8
            })
            .collect();
        for level in [1, 6, 9] {
            let mut deflater =
                BlockCompressor::with_compression_level(CompressionLevel::from_level_number(level).unwrap());
            for data in [&b""[..], b"A", &noise[..1000], &noise, &[7; MAX_BLOCK_DATA_BYTES]] {
                let mut out = b"before".to_vec();
                let size = deflater.compress_block(data, &mut out);
                assert_eq!(size, out.len() - 6);
                assert!(size <= 0x10000, "{size}");
                out.extend_from_slice(&EOF_BLOCK);
                let mut back = Vec::new();
                noodles_bgzf::io::Reader::new(&out[6..]).read_to_end(&mut back).unwrap();
                assert!(back == data, "level {level}, {} bytes", data.len());
            }
        }
    }

    #[test]
    fn the_last_block_is_an_empty_one() {
        let mut out = Vec::new();
        BlockCompressor::with_compression_level(CompressionLevel::default()).compress_block(b"", &mut out);
        let mut back = Vec::new();
        noodles_bgzf::io::Reader::new(&EOF_BLOCK[..]).read_to_end(&mut back).unwrap();
        assert!(back.is_empty());
        assert_eq!(out.len(), out[16] as usize + 1);
    }

    #[test]
    fn levels_are_those_of_samtools() {
        assert_eq!(
            (0..=255).filter(|&l| CompressionLevel::from_level_number(l).is_some()).collect::<Vec<u8>>(),
            [1, 2, 3, 4, 5, 6, 7, 8, 9]
        );
    }
}
