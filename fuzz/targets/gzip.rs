//! Reads gzip and BGZF files: the content equals what was compressed, and damage is detected.
#![no_main]

use std::io::Write;

use flate2::{Compression, GzBuilder};
use genuma_fuzz::{InputFile, read_all};
use genuma_reads::{BatchLimits, StreamLane};
use libfuzzer_sys::fuzz_target;

/// Compresses text as one BGZF block: a gzip member with an extra field.
fn compress_bgzf_block(text: &[u8]) -> Vec<u8> {
    let mut member = GzBuilder::new().extra(*b"BC\x02\0\0\0").write(Vec::new(), Compression::fast());
    member.write_all(text).expect("memory");
    let mut member = member.finish().expect("memory");
    let size = (member.len() - 1) as u16;
    member[16..18].copy_from_slice(&size.to_le_bytes());
    member
}

fn compress_gzip_member(text: &[u8]) -> Vec<u8> {
    let mut member = GzBuilder::new().write(Vec::new(), Compression::fast());
    member.write_all(text).expect("memory");
    member.finish().expect("memory")
}

// The first byte selects the compression, the second the damage.
fuzz_target!(|input: &[u8]| {
    let &[how, harm, ref text @ ..] = input else { return };
    let text = &text[..text.len().min(4096)];
    let pack = if how & 1 == 0 { compress_gzip_member } else { compress_bgzf_block };
    let half = text.len() * usize::from(how >> 2) / 64;
    let mut packed = match how & 2 {
        0 => pack(text),
        _ => [pack(&text[..half]), pack(&text[half..])].concat(),
    };
    if how == 255 {
        packed = text.to_vec();
    } else if harm & 1 == 1 {
        let at = packed.len() * usize::from(harm >> 1) / 128;
        packed[at] ^= 1 << (how & 7);
    }
    let file = InputFile::new("gzip", &packed);
    let (unpacked, error) =
        read_all(StreamLane::Single(file.path().to_path_buf()), BatchLimits::with_reads_per_batch(1000));
    if error.is_none() && how != 255 {
        let plain = InputFile::new("plain", text);
        let (wanted, _) =
            read_all(StreamLane::Single(plain.path().to_path_buf()), BatchLimits::with_reads_per_batch(1000));
        assert!(unpacked == wanted, "damage was not detected");
    }
});
