//! BGZF blocks (SAM specification, section 4.1): up to 64 KiB of data, each deflated as a gzip member of its own.

use std::num::NonZero;

use libdeflater::{CompressionLvl, Compressor, crc32};

/// Most bytes of data that this writer puts into a block: as many as htslib does, so that even a block that cannot be
/// deflated stays below 64 KiB.
pub const PAYLOAD: usize = 0xff00;

/// The empty block that ends every file.
pub const END: [u8; 28] =
    [0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0, 27, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Bytes before the deflated data, and after them.
const HEAD: usize = 18;
const TAIL: usize = 8;

/// How hard deflating tries: 1 (fast) to 9 (small), as `samtools -l` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(NonZero<u8>);

impl Level {
    /// `None` unless 1 to 9.
    pub fn new(level: u8) -> Option<Level> {
        NonZero::new(level).filter(|l| l.get() <= 9).map(Level)
    }
}

impl Default for Level {
    /// 6, as samtools.
    fn default() -> Level {
        Level(const { NonZero::new(6).unwrap() })
    }
}

/// Makes blocks; one for each thread.
pub struct Deflater(Compressor);

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deflater")
    }
}

impl Deflater {
    /// One that works at `level`.
    pub fn new(level: Level) -> Deflater {
        Deflater(Compressor::new(CompressionLvl::new(level.0.get().into()).unwrap_or_default()))
    }

    /// Appends the block of `data` to `out` and returns its size, bytes. The bytes depend on the data and the level.
    ///
    /// # Panics
    /// `data` is longer than [`PAYLOAD`].
    pub fn block(&mut self, data: &[u8], out: &mut Vec<u8>) -> usize {
        assert!(data.len() <= PAYLOAD, "a block has at most {PAYLOAD} bytes");
        let at = out.len();
        out.extend_from_slice(&END[..HEAD]);
        // Data that deflating does not make smaller are stored as they are: 5 bytes more (RFC 1951, section 3.2.4).
        out.resize(at + HEAD + data.len() + 5, 0);
        let deflated = match self.0.deflate_compress(data, &mut out[at + HEAD..]) {
            Ok(n) => n,
            Err(libdeflater::CompressionError::InsufficientSpace) => {
                let n = data.len() as u16;
                let stored = &mut out[at + HEAD..];
                stored[0] = 1;
                stored[1..3].copy_from_slice(&n.to_le_bytes());
                stored[3..5].copy_from_slice(&(!n).to_le_bytes());
                stored[5..].copy_from_slice(data);
                data.len() + 5
            }
        };
        out.truncate(at + HEAD + deflated);
        out.extend_from_slice(&crc32(data).to_le_bytes());
        out.extend_from_slice(&(data.len() as u32).to_le_bytes());
        let size = HEAD + deflated + TAIL;
        out[at + 16..at + HEAD].copy_from_slice(&((size - 1) as u16).to_le_bytes());
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
        let noise: Vec<u8> = (0..PAYLOAD)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 40) as u8
            })
            .collect();
        for level in [1, 6, 9] {
            let mut deflater = Deflater::new(Level::new(level).unwrap());
            for data in [&b""[..], b"A", &noise[..1000], &noise, &[7; PAYLOAD]] {
                let mut out = b"before".to_vec();
                let size = deflater.block(data, &mut out);
                assert_eq!(size, out.len() - 6);
                assert!(size <= 0x10000, "{size}");
                out.extend_from_slice(&END);
                let mut back = Vec::new();
                noodles_bgzf::io::Reader::new(&out[6..]).read_to_end(&mut back).unwrap();
                assert!(back == data, "level {level}, {} bytes", data.len());
            }
        }
    }

    #[test]
    fn the_last_block_is_an_empty_one() {
        let mut out = Vec::new();
        Deflater::new(Level::default()).block(b"", &mut out);
        let mut back = Vec::new();
        noodles_bgzf::io::Reader::new(&END[..]).read_to_end(&mut back).unwrap();
        assert!(back.is_empty());
        assert_eq!(out.len(), out[16] as usize + 1);
    }

    #[test]
    fn levels_are_those_of_samtools() {
        assert_eq!(
            (0..=255).filter(|&l| Level::new(l).is_some()).collect::<Vec<u8>>(),
            [1, 2, 3, 4, 5, 6, 7, 8, 9]
        );
    }
}
