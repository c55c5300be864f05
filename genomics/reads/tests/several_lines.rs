//! FASTQ records whose sequence and qualities take several lines.

use std::path::PathBuf;

use genuma_reads::{BatchLimits, Error, StreamLane, StreamOptions};

use crate::common::{Folder, Read, bgzf, fastq, gzip, interleave, pull, reads};

/// The text with sequences and qualities in lines of `width` letters, from record `start` on.
fn wrap(text: &[u8], width: usize, start: usize) -> Vec<u8> {
    let lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
    let mut wrapped = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if i % 2 == 0 || i / 4 < start || line.len() == 1 {
            wrapped.extend_from_slice(line);
        } else {
            line.strip_suffix(b"\n").unwrap().chunks(width).for_each(|part| wrapped.extend([part, b"\n"].concat()));
        }
    }
    wrapped
}

fn pull_joined(lane: StreamLane) -> (Vec<Read>, Option<Error>) {
    let options = StreamOptions {
        accepts_unusual_fastq: true,
        ..StreamOptions::new(BatchLimits::with_reads_per_batch(if matches!(lane, StreamLane::Single(_)) {
            1
        } else {
            2
        }))
    };
    let (batches, error) = pull(&[lane], options);
    (batches.into_iter().flat_map(|(.., reads)| reads).collect(), error)
}

#[test]
fn lines_are_joined() {
    let folder = Folder::new();
    // More than one block.
    let mates = [1, 2].map(|mate| fastq(0, 3000, mate));
    let both = interleave(&mates[0], &mates[1]);
    let file = |name: &str, text: &[u8]| -> PathBuf { folder.write(name, text) };
    let plain = [StreamLane::Single(file("1", &mates[0])), StreamLane::Interleaved(file("both", &both))]
        .map(|lane| reads(&[lane]));
    for (width, start) in [(60, 0), (1, 0), (99, 1), (100, 0), (60, 2), (60, 1025), (80, 2999)] {
        let wrapped = mates.each_ref().map(|text| wrap(text, width, start));
        assert_ne!(wrapped, mates);
        let (found, error) = pull_joined(StreamLane::Single(file("w1", &wrapped[0])));
        assert!(error.is_none() && found == plain[0], "{width}, {start}: {error:?}");
        let lane = StreamLane::Pair(file("w1.gz", &gzip(&wrapped[0])), file("w2.gz", &bgzf(&wrapped[1])));
        let (found, error) = pull_joined(lane);
        assert!(error.is_none() && found == plain[1], "{width}, {start}: {error:?}");
        // One file of mates with four lines.
        let (found, error) = pull_joined(StreamLane::Pair(file("w1", &wrapped[0]), file("2", &mates[1])));
        assert!(error.is_none() && found == plain[1], "{width}, {start}: {error:?}");
        let (found, error) = pull_joined(StreamLane::Interleaved(file("w", &wrap(&both, width, start))));
        assert!(error.is_none() && found == plain[1], "{width}, {start}: {error:?}");
        let crlf = String::from_utf8(wrap(&both, width, start)).unwrap().replace('\n', "\r\n");
        let (found, error) = pull_joined(StreamLane::Interleaved(file("w", crlf.trim_end().as_bytes())));
        assert!(error.is_none() && found == plain[1], "{width}, {start}: {error:?}");
    }
}

#[test]
fn quality_lines_may_look_like_others() {
    let folder = Folder::new();
    let path = folder.write("x.fq", "@a\nAC\nGT\n+a\n@+\n+>\n\n@b\n\n+\n\n@c\nA\n+\n@\n\n\n");
    let (found, error) = pull_joined(StreamLane::Single(path));
    assert!(error.is_none(), "{error:?}");
    let fields = |name: &str, seq: &str, qual: &str| [name, "", seq, qual].map(|text| text.as_bytes().to_vec());
    assert_eq!(found, [fields("a", "ACGT", "@++>"), fields("b", "", ""), fields("c", "A", "@")]);
}

#[test]
fn faults_name_file_and_record() {
    let folder = Folder::new();
    let text = "@a\nAC\nGT\n+\nFF\nFF\n@b\nACG\nTA\n+\nFFF\nFF\n";
    let fault = |text: &[u8]| {
        let (found, error) = pull_joined(StreamLane::Single(folder.write("x.fq", text)));
        let error = error.map(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""));
        (found.len(), error)
    };
    assert_eq!(fault(text.as_bytes()), (2, None));
    assert_eq!(fault(text.trim_end().as_bytes()), (2, None));
    let first = text.find("@b").unwrap();
    for end in 1..text.len() - 1 {
        let record = if end > first { 2 } else { 1 };
        let truncated =
            format!("x.fq: record {record}: the file ends inside the record: it is truncated, copy or make it again");
        let whole = end == first || end == first - 1;
        let expected = if whole { (1, None) } else { (record - 1, Some(truncated)) };
        assert_eq!(fault(&text.as_bytes()[..end]), expected, "{end}");
    }
    for (part, other, message) in [
        ("FFF\nFF", "FFF\nFFF", "5 bases but 6 qualities: the file is damaged, copy or make it again"),
        ("TA", "T-", "'-' in the sequence is not a base (IUPAC letter)"),
        ("@b", "b", "starts with 'b' instead of '@': FASTQ must have four lines per record; check the file"),
        ("@b", "@", "has no name: name every read"),
    ] {
        let damaged = text.replace(part, other);
        assert_eq!(fault(damaged.as_bytes()), (1, Some(format!("x.fq: record 2: {message}"))));
    }
    // The compressed data end, in the first block and in a later one.
    for records in [100, 6000] {
        let whole = gzip(&wrap(&fastq(0, records, 1), 60, 0));
        let (_, error) = fault(&whole[..whole.len() - 20]);
        assert!(error.unwrap().contains("the gzip data end too early"), "{records}");
    }
}
