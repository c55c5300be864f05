//! Reads bzip2, xz and zstd files: the content equals what was compressed, damage is detected, and nothing panics.
#![no_main]

use std::io::Write;

use genuma_fuzz::{InputFile, read_all};
use genuma_reads::{BatchLimits, StreamLane};
use libfuzzer_sys::fuzz_target;
use lzma_rust2::{XzOptions, XzWriter};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

fn compress_bzip2(text: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

fn compress_xz(text: &[u8]) -> Vec<u8> {
    let mut encoder = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).expect("memory");
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

fn compress_zstd(text: &[u8]) -> Vec<u8> {
    compress_to_vec(text, CompressionLevel::Fastest)
}

// The first byte selects the format, whether the rest is text or compressed data, and the bit that is damaged; the
// second the place of the damage.
fuzz_target!(|input: &[u8]| {
    let &[how, harm, ref text @ ..] = input else { return };
    let text = &text[..text.len().min(4096)];
    let (magic, pack): (&[u8], fn(&[u8]) -> Vec<u8>) = match how % 3 {
        0 => (b"BZh", compress_bzip2),
        1 => (b"\xfd7zXZ\0", compress_xz),
        _ => (b"\x28\xb5\x2f\xfd", compress_zstd),
    };
    let is_raw = how >= 128;
    let mut packed = if is_raw {
        [magic, text].concat()
    } else {
        [pack(&text[..text.len() / 2]), pack(&text[text.len() / 2..])].concat()
    };
    if !is_raw && harm & 1 == 1 {
        let at = packed.len() * usize::from(harm >> 1) / 128;
        packed[at] ^= 1 << (how & 7);
    }
    let file = InputFile::new("compressed", &packed);
    let (unpacked, error) =
        read_all(StreamLane::Single(file.path().to_path_buf()), BatchLimits::with_reads_per_batch(1000));
    if error.is_none() && !is_raw {
        let plain = InputFile::new("plain", text);
        let (wanted, _) =
            read_all(StreamLane::Single(plain.path().to_path_buf()), BatchLimits::with_reads_per_batch(1000));
        assert!(unpacked == wanted, "damage was not detected");
    }
});
