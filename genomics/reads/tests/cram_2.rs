//! CRAM 2.0 and 2.1 give the same reads as the BAM of the same records. The files are made by samtools.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

use crate::common::{Read, make_fifo};
use crate::cram::{Sample, is_missing, reads, samtools, text};

/// Number of bytes of the end-of-file container of version 2.1.
const EOF_CONTAINER_BYTES: usize = 30;

/// Options with which samtools writes CRAM, but for the version.
const LAYOUTS: [&str; 7] = [
    "seqs_per_slice=10000",
    "no_ref=1",
    "embed_ref=1",
    "seqs_per_slice=50,slices_per_container=2",
    "multi_seq_per_slice=1",
    "multi_seq_per_slice=1,seqs_per_slice=20,slices_per_container=3,no_ref=1",
    "level=0",
];

/// Reads of the BAM of the records.
fn expected_reads(sample: &Sample) -> Vec<Read> {
    let (sam, bam) = (sample.folder.write("plain.sam", &sample.sam), sample.folder.path().join("plain.bam"));
    samtools(&["view", "-b", "-o", text(&bam), text(&sam)]).expect("BAM");
    reads(&bam, None).expect("BAM is read")
}

/// Mapped and unmapped records, with and without qualities.
fn mixed_sample() -> Sample {
    let mut sample = Sample::new();
    sample.add_ordinary(180);
    for i in 0..20 {
        let seq = sample.bases(1, 2000 + 3 * i, 60);
        let qual = if i % 2 == 0 { "*".to_owned() } else { "5".repeat(60) };
        sample.add(0, 1, 2000 + 3 * i, "20S30M10I", &seq, &qual);
    }
    for i in 0..40 {
        let seq = sample.bases(0, 900 + 11 * i, 50);
        sample.add(4, 0, 0, "*", &seq, &"I".repeat(50));
    }
    sample
}

/// The bytes as a named pipe that is written once.
fn piped(sample: &Sample, name: &str, bytes: Vec<u8>) -> PathBuf {
    let fifo = sample.folder.path().join(name);
    make_fifo(&fifo);
    let path = fifo.clone();
    thread::spawn(move || {
        let mut file = fs::OpenOptions::new().write(true).open(path).expect("the pipe");
        let (first, rest) = bytes.split_at(5);
        first.iter().for_each(|byte| file.write_all(&[*byte]).expect("a byte"));
        // The reader may have closed the pipe after an error.
        let _ = file.write_all(rest);
    });
    fifo
}

#[test]
fn all_layouts_are_read_as_bam() {
    if is_missing() {
        return;
    }
    let mixed = mixed_sample();
    let mut unmapped = Sample::new();
    for i in 0..120 {
        let seq = unmapped.bases(0, 1 + 7 * i, 70);
        unmapped.add(4, 0, 0, "*", &seq, &"F".repeat(70));
    }
    let mut without_qualities = Sample::new();
    for i in 0..120 {
        let seq = without_qualities.bases(0, 1 + 7 * i, 70);
        without_qualities.add(0, 0, 1 + 7 * i, "70M", &seq, "*");
    }
    for sample in [mixed, unmapped, without_qualities] {
        let expected = expected_reads(&sample);
        for layout in LAYOUTS {
            for version in ["2.0", "2.1"] {
                let cram = sample.cram(&format!("version={version},{layout}"));
                assert_eq!(fs::read(&cram).expect("CRAM")[4..6], [2, version.as_bytes()[2] - b'0']);
                assert_eq!(sample.read(&cram).as_ref(), Ok(&expected), "{version}, {layout}");
            }
        }
    }
}

#[test]
fn pipes_are_read() {
    if is_missing() {
        return;
    }
    let sample = mixed_sample();
    let expected = expected_reads(&sample);
    for (version, is_marked) in [("2.1", true), ("2.0", false)] {
        let cram = fs::read(sample.cram(&format!("version={version},seqs_per_slice=50"))).expect("CRAM");
        let fifo = piped(&sample, &format!("{version}.whole"), cram.clone());
        assert_eq!(sample.read(&fifo).as_ref(), Ok(&expected), "{version}");
        // Version 2.0 does not mark the end of a file.
        let unmarked = cram[..cram.len() - EOF_CONTAINER_BYTES].to_vec();
        let fifo = piped(&sample, &format!("{version}.unmarked"), unmarked.clone());
        match (sample.read(&fifo), is_marked) {
            (Ok(reads), false) => assert_eq!(reads, expected),
            (Err(error), true) => assert!(error.contains("has no end-of-file block"), "{error}"),
            (result, _) => panic!("{version}: {result:?}"),
        }
        let truncated = unmarked[..unmarked.len() - 1].to_vec();
        let fifo = piped(&sample, &format!("{version}.truncated"), truncated);
        let error = sample.read(&fifo).expect_err("truncated");
        assert!(error.contains("has no end-of-file block"), "{version}: {error}");
    }
}

/// A sample of six reads, and its file in both versions, each of one data container. The flag: whether the version marks
/// the end of a file.
fn small_files() -> (Sample, [(bool, Vec<u8>); 2]) {
    let mut sample = Sample::new();
    for i in 0..6 {
        let seq = sample.bases(0, 100 + 5 * i, 40);
        sample.add(0, 0, 100 + 5 * i, "40M", &seq, &"F".repeat(40));
    }
    let versions = [("version=2.1,level=0", true), ("version=2.0,level=0,no_ref=1", false)];
    let files = versions.map(|(options, is_marked)| (is_marked, fs::read(sample.cram(options)).expect("CRAM")));
    (sample, files)
}

#[test]
fn truncated_files_are_errors() {
    if is_missing() {
        return;
    }
    let (sample, files) = small_files();
    let expected = expected_reads(&sample);
    for (is_marked, whole) in files {
        let header_bytes = first_container_end(&whole);
        let padding_end = header_bytes - 16;
        for length in (6..whole.len()).filter(|length| *length < 40 || *length > padding_end) {
            let read = sample.read(&sample.folder.write("cut.cram", &whole[..length]));
            match read {
                // Files that end with a whole container are read, with a warning in version 2.1.
                Ok(reads) if length == whole.len() - EOF_CONTAINER_BYTES => assert_eq!(reads, expected),
                Ok(reads) if length == header_bytes => assert!(reads.is_empty()),
                Ok(_) => panic!("{is_marked}: {length} of {} bytes", whole.len()),
                Err(error) => assert!(error.contains("cut.cram: "), "{error}"),
            }
        }
    }
}

/// Position at which the container of a file's header ends.
fn first_container_end(cram: &[u8]) -> usize {
    let start = 26;
    let itf8_bytes = |at: usize| 1 + (cram[at].leading_ones() as usize).min(4);
    // After the length come eight numbers; the last is the number of slice offsets.
    let header = (0..8).fold(start + 4, |at, _| at + itf8_bytes(at));
    let landmarks = (0..cram[header - 1]).fold(header, |at, _| at + itf8_bytes(at));
    landmarks + i32::from_le_bytes(cram[start..start + 4].try_into().expect("4 bytes")) as usize
}

/// Some old files, such as those of the tests of htsjdk, state a length of the first container that is too small by two
/// bytes.
#[test]
fn a_first_container_longer_than_stated_is_read() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    sample.add_ordinary(20);
    let mut cram = fs::read(sample.cram("version=2.1")).expect("CRAM");
    let length = u32::from_le_bytes(cram[26..30].try_into().expect("4 bytes"));
    cram[26..30].copy_from_slice(&(length - 2).to_le_bytes());
    let file = sample.folder.write("old.cram", cram);
    assert_eq!(sample.read(&file), Ok(expected_reads(&sample)));
}

/// Version 2 has no checksums: a changed byte is an error, or gives other reads, but no panic.
#[test]
fn changed_bytes_do_no_harm() {
    if is_missing() {
        return;
    }
    let (sample, files) = small_files();
    let expected = expected_reads(&sample);
    for (_, whole) in files {
        let (mut num_errors, mut num_changed_reads) = (0, 0);
        for at in 4..whole.len() {
            // The first container has room for a longer header.
            let is_padding = at + 16 < first_container_end(&whole) && whole[at - 4..at + 16] == [0; 20];
            for change in [1, 0x80, 0xff].into_iter().filter(|_| !is_padding) {
                let mut bad = whole.clone();
                bad[at] ^= change;
                match sample.read(&sample.folder.write("bad.cram", &bad)) {
                    Ok(reads) => num_changed_reads += usize::from(reads != expected),
                    Err(error) => {
                        assert!(error.contains("bad.cram: ") || error.contains("ref.fa"), "byte {at}: {error}");
                        num_errors += 1;
                    }
                }
            }
        }
        assert!(num_errors > 100 && num_changed_reads > 0, "{num_errors} errors, {num_changed_reads} with other reads");
    }
}

/// Versions 1 and 4 are refused.
#[test]
fn other_versions_are_refused() {
    let folder = crate::common::Folder::new();
    let message = |path: &Path| reads(path, None).expect_err("refused");
    for (major, minor) in [(1, 0), (1, 1), (2, 2), (4, 0)] {
        let file = folder.write("other.cram", [b"CRAM", &[major, minor][..], &[0; 60]].concat());
        let error = message(&file);
        assert!(error.contains(&format!("other.cram: is CRAM {major}.{minor}, but only 2.0 to 3.1")), "{error}");
    }
}
