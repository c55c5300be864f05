//! gzip and BGZF around reads: what inflates is what was packed, and damage is told, never read over.
#![no_main]

use std::io::Write;

use flate2::{Compression, GzBuilder};
use genuma_fuzz::{Input, reads};
use genuma_reads::{Cut, ReadLane};
use libfuzzer_sys::fuzz_target;

/// A member with an extra field that makes it a block of BGZF.
fn block(text: &[u8]) -> Vec<u8> {
    let mut member = GzBuilder::new().extra(*b"BC\x02\0\0\0").write(Vec::new(), Compression::fast());
    member.write_all(text).expect("memory");
    let mut member = member.finish().expect("memory");
    let size = (member.len() - 1) as u16;
    member[16..18].copy_from_slice(&size.to_le_bytes());
    member
}

fn member(text: &[u8]) -> Vec<u8> {
    let mut member = GzBuilder::new().write(Vec::new(), Compression::fast());
    member.write_all(text).expect("memory");
    member.finish().expect("memory")
}

// The first byte says how the rest is packed, the second how it is damaged.
fuzz_target!(|input: &[u8]| {
    let &[how, harm, ref text @ ..] = input else { return };
    let text = &text[..text.len().min(4096)];
    let pack = if how & 1 == 0 { member } else { block };
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
    let file = Input::new("gzip", &packed);
    let (unpacked, error) = reads(ReadLane::Single(file.path().to_path_buf()), Cut::at_reads(1000));
    if error.is_none() && how != 255 {
        let plain = Input::new("plain", text);
        let (wanted, _) = reads(ReadLane::Single(plain.path().to_path_buf()), Cut::at_reads(1000));
        assert!(unpacked == wanted, "damage was read over");
    }
});
