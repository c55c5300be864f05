//! Reads BAM files: the reads do not depend on the batch size.
#![no_main]

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use genuma_fuzz::{InputFile, read_all};
use genuma_reads::{AlignedInput, AlignedOptions, BatchLimits, StreamLane};
use libfuzzer_sys::fuzz_target;

/// Maximum number of bytes in a BGZF block.
const BLOCK_BYTES: usize = 0xff00;

/// Returns one BGZF block with `content`.
fn bgzf_block(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).expect("memory");
    let deflated = encoder.finish().expect("memory");
    let mut block = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0".to_vec();
    block.extend((deflated.len() as u16 + 25).to_le_bytes());
    block.extend(deflated);
    block.extend(crc32fast::hash(content).to_le_bytes());
    block.extend((content.len() as u32).to_le_bytes());
    block
}

// The first byte selects whether the rest is a BAM file or the uncompressed content of one.
fuzz_target!(|input: &[u8]| {
    let &[compress, ref content @ ..] = input else { return };
    let file = if compress & 1 == 1 {
        if !content.starts_with(b"BAM\x01") {
            return;
        }
        content.chunks(BLOCK_BYTES).chain([&[][..]]).flat_map(bgzf_block).collect()
    } else {
        content.to_vec()
    };
    let input = InputFile::new("bam", &file);
    if !AlignedInput::is_bam_cram_or_binseq(input.path()).expect("the file can be read") {
        return;
    }
    let lane = |pair_mates| {
        StreamLane::Aligned(AlignedInput::new(input.path(), AlignedOptions { pair_mates, ..AlignedOptions::default() }))
    };
    let (all, error) = read_all(lane(false), BatchLimits::with_reads_per_batch(1000));
    // Rarely, because each reader starts threads.
    if content.len() % 8 == 0 {
        let (one_by_one, other) = read_all(lane(false), BatchLimits::with_reads_per_batch(1));
        assert!(error.is_some() == other.is_some() && (error.is_some() || all == one_by_one));
        read_all(lane(true), BatchLimits::with_reads_per_batch(2));
    }
});
