//! Test files.
#![allow(dead_code, reason = "each test binary uses some of it")]

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};
use tempfile::TempDir;

/// A folder of test files that goes when it is dropped.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

/// One mate file of `n` templates from `from` on; lengths, letters and qualities vary, some reads are empty.
pub fn fastq(from: usize, n: usize, mate: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for i in from..from + n {
        let length = if i % 97 == 96 { 0 } else { 100 + (i * 7 + mate * 31) % 52 };
        let letter = |j: usize| b"ACGTN"[(i * 13 + j * j * 5 + j / 3 + mate) % 5];
        let quality = |j: usize| b'!' + ((i + j * 11 + mate) % 42) as u8;
        writeln!(text, "@lane:{i} {mate}:N:0:ACGT").unwrap();
        text.extend((0..length).map(letter));
        text.extend(b"\n+\n");
        text.extend((0..length).map(quality));
        text.push(b'\n');
    }
    text
}

/// Interleaves two mate files.
pub fn interleave(one: &[u8], two: &[u8]) -> Vec<u8> {
    fn records(text: &[u8]) -> Vec<Vec<u8>> {
        let lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
        lines.chunks(4).map(|r| r.concat()).collect()
    }
    records(one).into_iter().zip(records(two)).flat_map(|(a, b)| [a, b]).flatten().collect()
}

/// One gzip member.
pub fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Several gzip members, one after the other, some of them empty.
pub fn gzip_members(text: &[u8], size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.chunks(size).flat_map(|part| [gzip(part), gzip(b"")]).flatten().collect();
    bytes.extend(gzip(b""));
    bytes
}

/// BGZF (SAM specification, section 4.1) with its end marker.
pub fn bgzf(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in text.chunks(0xff00).chain([&b""[..]]) {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(part).unwrap();
        let packed = encoder.finish().unwrap();
        let mut crc = Crc::new();
        crc.update(part);
        bytes.extend([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 6, 0, b'B', b'C', 2, 0]);
        bytes.extend(((packed.len() + 25) as u16).to_le_bytes());
        bytes.extend(packed);
        bytes.extend(crc.sum().to_le_bytes());
        bytes.extend((part.len() as u32).to_le_bytes());
    }
    bytes
}
