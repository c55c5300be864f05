//! Compares the parser with a simple parser that keeps the whole file as a list of lines.

use std::path::Path;

use proptest::prelude::*;

use super::record::{is_graphic_ascii, is_upper_case_acgtn};
use super::*;
use crate::pair_batch::PairBatch;

type Owned = (Vec<u8>, [Vec<u8>; 4]);

/// Pairs before the first error, and the record number and fault of that error.
type Outcome = (Vec<Owned>, Option<(u64, RecordFault)>);

fn parsed(path: &Path, chunk: usize, limit: BlockLimits) -> Outcome {
    let progress = ProgressCounters::default();
    let mut pairs = Vec::new();
    let mut run = || -> Result<(), Error> {
        let terms = FastqOptions { chunk_bytes: chunk, ..FastqOptions::for_pairs(None) };
        let mut stream = FastqReader::open(path, &progress, &terms)?;
        let (mut block, mut batch) = (FastqBlock::default(), PairBatch::default());
        loop {
            stream.fill_block(&mut block, limit);
            let more = block.has_more;
            let result = append_interleaved_pairs(&mut block, path, None, &mut batch);
            pairs.extend(batch.iter().map(|p| {
                let [one, two] = p.mates;
                (p.name.to_vec(), [one.seq, one.qual, two.seq, two.qual].map(<[u8]>::to_vec))
            }));
            batch.clear();
            result?;
            if !more {
                return Ok(());
            }
        }
    };
    let error = match run() {
        Ok(()) => None,
        Err(Error::Record { record, fault, .. }) => Some((record, fault)),
        Err(other) => panic!("unexpected: {other}"),
    };
    (pairs, error)
}

/// The fault of a record, if it has one. `is_cut` is set for a last record whose last line has no end.
fn naive_fault(record: &[&[u8]], is_first: bool, is_cut: bool) -> Option<RecordFault> {
    let shown = |line: &[u8]| ByteForDisplay(*line.first().unwrap_or(&b'\n'));
    match *record {
        [header, ..] if is_first && !header.starts_with(b"@") => Some(RecordFault::MissingHeaderMark(shown(header))),
        [header, seq, plus, qual] => {
            if header.first() != Some(&b'@') {
                Some(RecordFault::MissingHeaderMark(shown(header)))
            } else if plus.first() != Some(&b'+') {
                let is_sequence = !plus.is_empty() && plus.iter().all(|&b| is_read_base(b));
                let fault = RecordFault::MissingPlusLine(shown(plus));
                Some(if is_sequence { RecordFault::SeveralSequenceLines } else { fault })
            } else if is_cut && qual.len() < seq.len() {
                Some(RecordFault::Truncated)
            } else if seq.len() != qual.len() {
                Some(RecordFault::LengthMismatch { seq: seq.len(), qual: qual.len() })
            } else if let Some(&b) = seq.iter().find(|b| !b"ACGTUNRYSWKMBDHVacgtunryswkmbdhv".contains(b)) {
                Some(RecordFault::InvalidBase(ByteForDisplay(b)))
            } else {
                qual.iter().find(|q| !(33..=126).contains(*q)).map(|&q| RecordFault::InvalidQuality(ByteForDisplay(q)))
            }
        }
        _ => Some(RecordFault::Truncated),
    }
}

/// The name of a read in a header line without its first byte, and the number of the mate.
fn naive_name_and_mate_number(header: &str) -> (&str, Option<char>) {
    let (word, rest) = header.split_at(header.find([' ', '\t']).unwrap_or(header.len()));
    let comment = rest.get(1..).unwrap_or_default();
    if let Some(name) = word.strip_suffix("/1") {
        (name, Some('1'))
    } else if let Some(name) = word.strip_suffix("/2") {
        (name, Some('2'))
    } else {
        (word, ['1', '2'].into_iter().find(|number| comment.starts_with(&format!("{number}:"))))
    }
}

fn naive(text: &[u8], path: &Path) -> Outcome {
    let terminated = text.ends_with(b"\n");
    let mut lines: Vec<&[u8]> = text.split(|&b| b == b'\n').collect();
    if terminated {
        lines.pop();
    }
    let mut pairs = Vec::new();
    let mut waiting: Option<(String, Option<char>, [Vec<u8>; 2])> = None;
    for (i, record) in lines.chunks(4).enumerate() {
        let last = (i + 1) * 4 >= lines.len();
        let record: Vec<&[u8]> = record.iter().map(|l| l.strip_suffix(b"\r").unwrap_or(l)).collect();
        if i > 0 && record.len() < 4 && record.iter().all(|line| line.iter().all(|&b| b == b'\r')) {
            break;
        }
        // An invalid record is reported before an error of the pair that it completes.
        if let Some(fault) = naive_fault(&record, i == 0, last && !terminated) {
            return (pairs, Some((i as u64 + 1, fault)));
        }
        let header = String::from_utf8_lossy(&record[0][1..]).into_owned();
        let (name, number) = naive_name_and_mate_number(&header);
        let fields = [record[1].to_vec(), record[3].to_vec()];
        match waiting.take() {
            None => waiting = Some((name.to_owned(), number, fields)),
            Some((one, number_one, [seq, qual])) => {
                if one != name {
                    let fault =
                        RecordFault::MateNameMismatch { name: one, mate: name.to_owned(), mate_path: path.to_owned() };
                    return (pairs, Some((i as u64, fault)));
                }
                if let (Some(number), true) = (number, number == number_one) {
                    let fault = RecordFault::DuplicateMateNumber { name: one, number, mate_path: path.to_owned() };
                    return (pairs, Some((i as u64, fault)));
                }
                let [seq_two, qual_two] = fields;
                pairs.push((name.as_bytes().to_vec(), [seq, qual, seq_two, qual_two]));
            }
        }
    }
    let error = waiting.map(|_| (2 * pairs.len() as u64 + 1, RecordFault::MissingMate));
    (pairs, error)
}

#[derive(Clone)]
struct Text {
    bytes: Vec<u8>,
    chunk: usize,
    limit: BlockLimits,
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Text { bytes, chunk, limit } = self;
        write!(f, "\"{}\", chunk {chunk}, {limit:?}", bytes.escape_ascii())
    }
}

fn limit() -> impl Strategy<Value = BlockLimits> {
    let bytes = prop_oneof![Just(usize::MAX), 1usize..1000];
    (1usize..5, bytes).prop_map(|(pairs, bytes)| BlockLimits { records: 2 * pairs, bytes })
}

fn text() -> impl Strategy<Value = Text> {
    let line = prop::collection::vec(prop::sample::select(b"ACGTNacgtRYU".to_vec()), 0..40);
    let pair = (line.clone(), line, 0usize..4, 33u8..127, any::<bool>());
    let records = prop::collection::vec(pair, 1..12);
    // Bytes that a mutation writes, and their position (as a fraction of the text); some do nothing, some truncate the
    // text.
    let change = prop::option::of((0.0f64..1.0, prop::sample::select(b"\n\r@+ /12\x00~!AX".to_vec())));
    let cut = prop::option::weighted(0.3, 0.0f64..1.0);
    (records, change, cut, 0..4, 1usize..300, limit()).prop_map(|(records, change, cut, ending, chunk, limit)| {
        let mut bytes = Vec::new();
        for (i, (one, two, style, quality, crlf)) in records.iter().enumerate() {
            let end = if *crlf { "\r\n" } else { "\n" };
            for (mate, seq) in [(1, one), (2, two)] {
                let header = match style {
                    0 => format!("@r{i}"),
                    1 => format!("@r{i}/{mate}"),
                    2 => format!("@r{i} {mate}:N:0:ACGT"),
                    _ => format!("@r{i}\tlength={}", seq.len()),
                };
                for line in [header.as_bytes(), seq, b"+", &vec![*quality; seq.len()]] {
                    bytes.extend_from_slice(line);
                    bytes.extend_from_slice(end.as_bytes());
                }
            }
        }
        if let Some((at, byte)) = change {
            let at = (at * bytes.len() as f64) as usize;
            bytes[at] = byte;
        }
        if let Some(at) = cut {
            bytes.truncate(1 + (at * (bytes.len() - 1) as f64) as usize);
        }
        match ending {
            0 if bytes.len() > 1 && bytes.ends_with(b"\n") => {
                bytes.pop();
            }
            1 => bytes.extend(b"\n\r\n"),
            _ => {}
        }
        Text { bytes, chunk, limit }
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(29),
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_text_is_parsed_like_by_the_naive_parser(text in text()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.fq");
        std::fs::write(&path, &text.bytes).unwrap();
        prop_assert_eq!(parsed(&path, text.chunk, text.limit), naive(&text.bytes, &path));
    }
}

/// Headers and bases of all records of a FASTA file, and the error that stopped reading.
fn joined(path: &Path, terms: &FastqOptions, limit: BlockLimits) -> (Vec<[Vec<u8>; 2]>, Option<String>) {
    let progress = ProgressCounters::default();
    let mut stream = FastqReader::open(path, &progress, terms).unwrap();
    let (mut block, mut records) = (FastqBlock::default(), Vec::new());
    loop {
        stream.fill_block(&mut block, limit);
        for index in 0..block.num_records() {
            let [header, seq, plus, qual] = block.record_lines(index);
            assert!(plus.is_empty() && qual.is_empty());
            records.push([header.to_vec(), seq.to_vec()]);
        }
        assert!(!block.has_more || block.num_records().is_multiple_of(2) && block.num_records() >= 2);
        if !block.has_more {
            return (records, block.fault.take().map(|e| e.to_string()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(41),
        ..ProptestConfig::default()
    })]

    #[test]
    fn fasta_lines_are_joined_for_any_chunk_size(
        lines in prop::collection::vec("(>[a-z ]{0,9}|[ACGT]{0,30}|)\r?\n", 0..40),
        end in "(>[a-z]{0,3}|[ACGT]{1,9})?\r?",
        chunk in 1usize..60,
        limit in limit(),
    ) {
        let text = format!(">first\n{}{end}", lines.concat());
        let mut expected: Vec<[Vec<u8>; 2]> = Vec::new();
        for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
            if line.starts_with('>') {
                expected.push([line.into(), Vec::new()]);
            } else {
                expected.last_mut().unwrap()[1].extend(line.bytes());
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.fa");
        std::fs::write(&path, &text).unwrap();
        let defaults = FastqOptions::for_reads_of_any_length(FileReadOptions::default());
        let terms = FastqOptions { chunk_bytes: chunk, ..defaults };
        prop_assert_eq!(joined(&path, &terms, limit), (expected, None));
    }
}

#[test]
fn a_record_without_end_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let terms = FastqOptions {
        chunk_bytes: 100,
        max_record_bytes: 1000,
        ..FastqOptions::for_reads_of_any_length(FileReadOptions::default())
    };
    let limit = BlockLimits { records: 1024, bytes: usize::MAX };
    let long = "A".repeat(5000);
    let lines = "ACGT\n".repeat(1000);
    for text in [format!(">a\nAC\n>b\n{long}"), format!(">a\nAC\n>b\n{lines}"), format!(">a\nAC\n>{long}")] {
        std::fs::write(&path, text).unwrap();
        let (records, fault) = joined(&path, &terms, limit);
        assert_eq!(records, [[b">a".to_vec(), b"AC".to_vec()]]);
        let message = format!("{}: record 2: longer than 1000 bytes: not a FASTQ of reads, or damaged", path.display());
        assert_eq!(fault, Some(message));
    }
}

#[test]
fn long_records_make_blocks_with_few_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.fq");
    for (length, expected) in [(150, 1024), (2_000, 130), (300_000, 2)] {
        let (seq, qual) = ("A".repeat(length), "F".repeat(length));
        std::fs::write(&path, format!("@r\n{seq}\n+\n{qual}\n")).unwrap();
        let progress = ProgressCounters::default();
        let stream = FastqReader::open(&path, &progress, &FastqOptions::for_pairs(None)).unwrap();
        assert_eq!(stream.estimate_records_per_block(), expected, "reads of {length} bp");
    }
}

#[test]
fn valid_letters_and_qualities_are_the_documented_ones() {
    for b in 0..=255u8 {
        let letter = b"ACGTUNRYSWKMBDHV".contains(&b.to_ascii_uppercase());
        assert_eq!(is_iupac(b), letter, "{b}");
        assert_eq!(is_read_base(b), letter || b == b'.', "{b}");
        assert!(!is_upper_case_acgtn(b) || letter, "{b}");
        assert_eq!(is_graphic_ascii(b), (33..=126).contains(&b), "{b}");
    }
}

#[test]
fn files_given_by_mistake_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut tar = vec![b'r'; 600];
    tar[257..262].copy_from_slice(b"ustar");
    let progress = ProgressCounters::default();
    for (bytes, name) in [
        (&b"BAI\x01\x02\0\0\0"[..], "an index of BAM"),
        (b"<!DOCTYPE html>\n<html>404</html>\n", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git-lfs"),
        (b"NCBI.sra\x05\x03", "fasterq-dump"),
        (b"@RG\tID:a\n", "a SAM file"),
        (b"##fileformat=VCFv4.2\n", "a VCF file"),
        (b"BCF\x02\x02", "a BCF file"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\xef\xbb\xbf@r\nACGT\n+\nFFFF\n", "byte order mark"),
        (b"\xff\xfe@\0r\0", "UTF-16"),
        (b"\xfe\xff\0@\0r", "UTF-16"),
        (&tar, "a tar archive"),
    ] {
        let path = folder.path().join("reads.fq");
        std::fs::write(&path, bytes).unwrap();
        let fault = FastqReader::open(&path, &progress, &FastqOptions::for_pairs(None)).err().unwrap().to_string();
        assert!(fault.contains(name) && fault.contains("not FASTQ"), "{fault}");
        // Given alone, the file is not reported as one without mates.
        assert_eq!(check_no_other_format(&path, true).unwrap_err().to_string(), fault);
        if bytes[0] != b'@' {
            let fault = crate::fasta::Reference::read_fasta_file(&path).unwrap_err().to_string();
            assert!(fault.contains(name) && fault.contains("not FASTA"), "{fault}");
        }
    }
}
