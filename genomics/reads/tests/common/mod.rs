//! Test files for the integration tests.
#![allow(dead_code, reason = "each test binary uses some of it")]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};
use genuma_reads::{BatchLimits, Error, ReadBatch, ReadStream, StreamLane, StreamOptions};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

/// A folder of test files that is removed when it is dropped.
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

/// One mate file of `n` templates, numbered from `from`; lengths, letters and qualities vary, some reads are empty.
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

/// The text as two concatenated streams of bzip2.
pub fn bzip2(text: &[u8]) -> Vec<u8> {
    let compress = |part: &[u8]| {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    };
    let (first, second) = text.split_at(text.len() / 3);
    [compress(first), compress(second)].concat()
}

/// The text as two concatenated streams of xz, with the padding that its specification allows between them.
pub fn xz(text: &[u8]) -> Vec<u8> {
    let compress = |part: &[u8]| {
        let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    };
    let (first, second) = text.split_at(text.len() / 3);
    [compress(first), vec![0; 8], compress(second)].concat()
}

/// The text as two frames of zstd, each after a skippable frame.
pub fn zstd(text: &[u8]) -> Vec<u8> {
    let compress = |part: &[u8]| compress_to_vec(part, CompressionLevel::Fastest);
    let (first, second) = text.split_at(text.len() / 3);
    let skippable = [&0x184d_2a53_u32.to_le_bytes()[..], &5_u32.to_le_bytes(), b"notes"].concat();
    [skippable.clone(), compress(first), skippable, compress(second)].concat()
}

/// BGZF (SAM specification, section 4.1) with its end-of-file marker.
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

/// The fields of a read: name, comment, bases, qualities.
pub type Read = [Vec<u8>; 4];

/// The fields of a batch: lane, number of reads of the lane before the batch, whether they are pairs, reads.
pub type Batch = (u32, u64, bool, Vec<Read>);

fn owned(batch: &ReadBatch) -> Batch {
    let reads = batch.iter().map(|r| [r.name, r.comment, r.seq, r.qual].map(<[u8]>::to_vec)).collect();
    (batch.lane_index, batch.reads_before, batch.is_paired, reads)
}

/// Reads all batches, up to an error; also checks properties of every stream.
pub fn pull(lanes: &[StreamLane], options: StreamOptions) -> (Vec<Batch>, Option<Error>) {
    let meter = options.progress.clone();
    let mut stream = match ReadStream::open(lanes, options) {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let (mut batch, mut batches) = (ReadBatch::new(), Vec::new());
    let error = loop {
        match stream.fill_batch(&mut batch) {
            Ok(true) => batches.push(owned(&batch)),
            Ok(false) => break None,
            Err(error) => break Some(error),
        }
        assert!(!batch.is_empty());
        assert_eq!(batch.num_bases(), batch.iter().map(|read| read.seq.len() as u64).sum::<u64>());
    };
    assert!(batch.is_empty());
    assert!(!stream.fill_batch(&mut batch).unwrap(), "after the end comes nothing more");
    if error.is_none() {
        let reads: usize = batches.iter().map(|(.., reads)| reads.len()).sum();
        assert_eq!(meter.num_reads() as usize, reads, "every read is counted");
    }
    (batches, error)
}

pub fn reads(lanes: &[StreamLane]) -> Vec<Read> {
    let (batches, error) = pull(lanes, StreamOptions::new(BatchLimits::with_reads_per_batch(1000)));
    assert!(error.is_none(), "{error:?}");
    batches.into_iter().flat_map(|(.., reads)| reads).collect()
}

/// Replaces files by named pipes: threads write the contents once, byte by byte at first.
pub fn as_pipes(lane: StreamLane) -> StreamLane {
    let pipe = |path: PathBuf| {
        let fifo = path.with_extension("fifo");
        make_fifo(&fifo);
        let writing = fifo.clone();
        thread::spawn(move || {
            let content = std::fs::read(path).unwrap();
            let mut fifo = OpenOptions::new().write(true).open(writing).unwrap();
            let (first, rest) = content.split_at(content.len().min(3));
            first.iter().for_each(|byte| fifo.write_all(&[*byte]).unwrap());
            // The reader may have closed the pipe after an error.
            let _ = fifo.write_all(rest);
        });
        fifo
    };
    match lane {
        StreamLane::Single(one) => StreamLane::Single(pipe(one)),
        StreamLane::Pair(one, two) => StreamLane::Pair(pipe(one), pipe(two)),
        StreamLane::Interleaved(one) => StreamLane::Interleaved(pipe(one)),
        StreamLane::Aligned(_) => panic!("aligned reads come from files"),
    }
}

pub fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The fields of a BAM record that describe the read.
#[derive(Debug, Clone)]
pub struct Aligned {
    pub name: Vec<u8>,
    pub flags: u16,
    /// Bases as in BAM: reverse-complemented if the record has flag 0x10.
    pub seq: Vec<u8>,
    /// Qualities without offset; 0xff if there are none.
    pub qual: Vec<u8>,
    /// CIGAR operations, encoded as in BAM.
    pub cigar: Vec<u32>,
    /// Further tags, encoded as in BAM.
    pub tags: Vec<u8>,
}

impl Aligned {
    /// A BAM record from the fields of a FASTQ record, on the strand that the flags say.
    pub fn of(name: &[u8], flags: u16, seq: &[u8], qual: &[u8]) -> Aligned {
        let mut qual: Vec<u8> = qual.iter().map(|qual| qual - b'!').collect();
        let mut seq = seq.to_vec();
        if flags & 0x10 != 0 {
            qual.reverse();
            let other = |base: &u8| match base {
                b'A' => b'T',
                b'C' => b'G',
                b'G' => b'C',
                b'T' => b'A',
                other => *other,
            };
            seq = seq.iter().rev().map(other).collect();
        }
        Aligned { name: name.to_vec(), flags, seq, qual, cigar: Vec::new(), tags: Vec::new() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((-1i32).to_le_bytes());
        bytes.extend((-1i32).to_le_bytes());
        bytes.extend([self.name.len() as u8 + 1, 0]);
        bytes.extend(4680u16.to_le_bytes());
        bytes.extend((self.cigar.len() as u16).to_le_bytes());
        bytes.extend(self.flags.to_le_bytes());
        bytes.extend((self.seq.len() as u32).to_le_bytes());
        bytes.extend([0xff; 8]);
        bytes.extend([0; 4]);
        bytes.extend(&self.name);
        bytes.push(0);
        self.cigar.iter().for_each(|operation| bytes.extend(operation.to_le_bytes()));
        let code = |base: &u8| b"=ACMGRSVTWYHKDBN".iter().position(|b| b == base).unwrap() as u8;
        bytes.extend(self.seq.chunks(2).map(|two| code(&two[0]) << 4 | two.get(1).map_or(0, code)));
        bytes.extend(&self.qual);
        // A tag.
        bytes.extend(b"NMC\0");
        bytes.extend(&self.tags);
        [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
    }
}

/// The uncompressed bytes of a BAM file with a header and some records.
pub fn bam_text(records: &[Aligned]) -> Vec<u8> {
    let mut text = b"BAM\x01".to_vec();
    let header = b"@HD\tVN:1.6\n@SQ\tSN:one\tLN:1000\n";
    text.extend((header.len() as u32).to_le_bytes());
    text.extend(header);
    text.extend([1, 0, 0, 0, 4, 0, 0, 0]);
    text.extend(b"one\0");
    text.extend(1000u32.to_le_bytes());
    records.iter().for_each(|record| text.extend(record.bytes()));
    text
}

/// The reads of two mate files as BAM records, in the order of the files; every third pair has swapped strands.
pub fn as_records(mates: &[Vec<u8>; 2]) -> Vec<Aligned> {
    let lines = mates.each_ref().map(|text| text.split(|&b| b == b'\n').collect::<Vec<_>>());
    let mut records = Vec::new();
    for i in 0..lines[0].len() / 4 {
        for (mate, flags) in [(0, 0x41), (1, 0x81)] {
            let [header, seq, _, qual] = [0, 1, 2, 3].map(|line| lines[mate][4 * i + line]);
            let name = header[1..].split(|&b| b == b' ').next().unwrap();
            let turned = if (i + mate) % 3 == 0 { 0x10 } else { 0 };
            // Every fifth has failed quality control, which FASTQ cannot represent.
            let failed = if i % 5 == 0 { 0x200 } else { 0 };
            records.push(Aligned::of(name, flags | turned | failed, seq, qual));
        }
    }
    records
}
