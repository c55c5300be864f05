//! What is said about bad reads: every message in full.

mod common;

use std::path::Path;

use common::{Folder, bgzf, fastq, gzip, interleave};
use genuma_reads::{
    AlignedOptions, Cut, Error, Lane, LaneFiles, Layout, Meter, NORMAL, ReadBatch, ReadLane, ReadStream,
    StreamOptions, TUMOUR, check_lanes, for_each_batch,
};

/// The message, with the test folder's name taken out.
fn said(folder: &Folder, error: Error) -> String {
    error.to_string().replace(&format!("{}/", folder.path().display()), "")
}

/// What pulling reads says.
fn pulling(folder: &Folder, lane: ReadLane, inflaters: usize) -> String {
    let options = StreamOptions { inflaters, ..StreamOptions::new(Cut::at_reads(100)) };
    let pull = || {
        let (mut stream, mut batch) = (ReadStream::open(&[lane], options)?, ReadBatch::new());
        while stream.fill(&mut batch)? {}
        Ok(())
    };
    said(folder, pull().expect_err("the input is wrong"))
}

/// What reading a lane says, with one thread and with three, and pulled.
fn reading(folder: &Folder, files: LaneFiles) -> String {
    let lane = match files.clone() {
        LaneFiles::Pair(one, two) => ReadLane::Pair(one, two),
        LaneFiles::Interleaved(one) => ReadLane::Interleaved(one),
        LaneFiles::Single(one) => ReadLane::Single(one),
        LaneFiles::Aligned(aligned) => ReadLane::Aligned(aligned),
    };
    let text = worked_on(folder, files);
    for inflaters in [1, 4] {
        assert_eq!(pulling(folder, lane.clone(), inflaters), text, "{inflaters} inflating threads");
    }
    text
}

/// What batches of pairs say, with one thread and with three.
fn worked_on(folder: &Folder, files: LaneFiles) -> String {
    let lanes = [Lane::whole(NORMAL, files)];
    let [one, three] = [1, 3].map(|threads| {
        let read = for_each_batch(&lanes, threads, &Meter::default(), || (), |(), _| Ok::<(), Error>(()));
        said(folder, read.expect_err("the input is wrong"))
    });
    assert_eq!(one, three);
    one
}

fn reading_pair(folder: &Folder, one: impl AsRef<[u8]>, two: impl AsRef<[u8]>) -> String {
    reading(folder, LaneFiles::Pair(folder.write("a_1.fq", one), folder.write("a_2.fq", two)))
}

/// What reading good records 1 and 2 and then this one as read 1 says.
fn third_record(record: &str) -> String {
    let start = "@a/1\nACGT\n+\nFFFF\n@b/1\nAC\n+\nFF\n";
    let mates = "@a/2\nACGT\n+\nFFFF\n@b/2\nAC\n+\nFF\n@c/2\nACGT\n+\nFFFF\n";
    reading_pair(&Folder::new(), format!("{start}{record}"), mates)
}

#[test]
fn records() {
    let cases = [
        ("@c/1\nACGT\n+\nFFF\n", "4 bases but 3 qualities: the file is damaged, copy or make it again"),
        ("c/1\nACGT\n+\nFFFF\n", "starts with 'c' instead of '@': not four lines a record, or damaged"),
        (
            "\n@c/1\nACGT\n+\nFFFF\n",
            "starts with an empty line instead of '@': not four lines a record, or damaged",
        ),
        (
            "@c/1\nACGT\nACGT\n+\nFFFF\n",
            "its third line starts with 'A' instead of '+': not four lines a record, or damaged",
        ),
        ("@c/1\nAC-T\n+\nFFFF\n", "'-' in the sequence is not a base (IUPAC letter)"),
        ("@c/1\nAC\x07T\n+\nFFFF\n", "byte 0x07 in the sequence is not a base (IUPAC letter)"),
        ("@c/1\nACGT\n+\nFF F\n", "' ' in the qualities is outside '!' to '~' (Phred+33)"),
        ("@c/1\nACGT\n+\nFF\x7fF\n", "byte 0x7f in the qualities is outside '!' to '~' (Phred+33)"),
        (
            "@c/1\nACGT\n+\n",
            "the file ends in the middle of it: the file is truncated, copy or make it again",
        ),
        (
            "@c/1\nACGT\n+\nFF",
            "the file ends in the middle of it: the file is truncated, copy or make it again",
        ),
        ("@c/1\nAC", "the file ends in the middle of it: the file is truncated, copy or make it again"),
        ("@d/1\nACGT\n+\nFFFF\n", "read \"d\" has mate \"c\" in a_2.fq: mates must come in the same order"),
        (
            "@c/2\nACGT\n+\nFFFF\n",
            "\"c\" and its mate in a_2.fq both say that they are read 2: give read 1 and read 2",
        ),
    ];
    for (record, message) in cases {
        assert_eq!(third_record(record), format!("a_1.fq: record 3: {message}"));
    }
}

#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let folder = Folder::new();
    let one = folder.write("1.fq", format!("@a\nACGT\n+\nFFFF\n@c/1\n{}", "A".repeat(8 << 20)));
    let two = folder.write("2.fq", "@a\nACGT\n+\nFFFF\n@c/2\nACGT\n+\nFFFF\n");
    // Reads that are pulled may be as long as a chromosome.
    assert_eq!(
        worked_on(&folder, LaneFiles::Pair(one, two)),
        "1.fq: record 2: longer than 1048576 bytes: not a FASTQ of reads, or damaged"
    );
}

#[test]
fn forms_of_names_that_are_fine() {
    let folder = Folder::new();
    for (one, two) in [
        ("r/1", "r/2"),
        ("r", "r"),
        ("r 1:N:0:ACGT", "r 2:N:0:ACGT"),
        ("r/1 x", "r/2 y"),
        ("r\tlength=4", "r\tlength=4"),
        ("r/2", "r/1"),
        ("r.1/1", "r.1 2:Y:18:1"),
    ] {
        let [a, b] = [one, two].map(|name| format!("@{name}\nACGT\n+{name}\nFFFF\n"));
        let files = LaneFiles::Pair(folder.write("1.fq", a), folder.write("2.fq", b));
        let read = for_each_batch(
            &[Lane::whole(NORMAL, files)],
            1,
            &Meter::default(),
            || 0,
            |pairs, batch| {
                *pairs += batch.len();
                Ok::<(), Error>(())
            },
        );
        assert_eq!(read.map_err(|e| e.to_string()), Ok(vec![1]), "{one} and {two}");
    }
}

#[test]
fn mates_that_are_missing() {
    let folder = Folder::new();
    for (n, m) in [(3000, 2999), (1025, 1024), (2048, 1024), (1024, 1023)] {
        let end = format!(
            "ends after {m} records while {{}} goes on: mates are missing, give files that hold the same templates in the same order"
        );
        assert_eq!(
            reading_pair(&folder, fastq(0, n, 1), fastq(0, m, 2)),
            format!("a_2.fq: {}", end.replace("{}", "a_1.fq"))
        );
        assert_eq!(
            reading_pair(&folder, fastq(0, m, 1), fastq(0, n, 2)),
            format!("a_1.fq: {}", end.replace("{}", "a_2.fq"))
        );
    }
    let mut both = interleave(&fastq(0, 1500, 1), &fastq(0, 1500, 2));
    both.extend(fastq(1500, 1, 1));
    assert_eq!(
        reading(&folder, LaneFiles::Interleaved(folder.write("both.fq", both))),
        "both.fq: record 3001: has no mate: an interleaved file holds read 1 and read 2 in turn"
    );
}

#[test]
fn a_mate_lost_in_the_middle_is_found_where_it_was() {
    let folder = Folder::new();
    let two = [fastq(0, 1499, 2), fastq(1500, 1500, 2)].concat();
    assert_eq!(
        reading_pair(&folder, fastq(0, 3000, 1), two),
        "a_1.fq: record 1500: read \"lane:1499\" has mate \"lane:1500\" in a_2.fq: mates must come in the same order"
    );
}

/// Records wholly within the first `bytes` of a text.
fn records_within(text: &[u8], bytes: usize) -> usize {
    text[..bytes].iter().filter(|&&b| b == b'\n').count() / 4
}

#[test]
fn gzip_that_is_truncated() {
    let folder = Folder::new();
    let text = fastq(0, 3000, 1);
    let truncated = "the gzip data end before their end: the file is truncated, copy or make it again";
    let mates = folder.write("2.fq.gz", gzip(&fastq(0, 3000, 2)));

    // Without its trailer the file gives all its records, and yet it is not whole.
    let packed = gzip(&text);
    for lost in [1, 4, 8] {
        let one = folder.write("1.fq.gz", &packed[..packed.len() - lost]);
        assert_eq!(
            reading(&folder, LaneFiles::Pair(one, mates.clone())),
            format!("1.fq.gz: record 3001: {truncated}")
        );
    }
    // BGZF blocks come whole or not at all, so the record is known.
    let packed = bgzf(&text);
    let second_block =
        packed.windows(4).enumerate().skip(4).find(|(_, w)| w == b"\x1f\x8b\x08\x04").unwrap().0;
    let one = folder.write("1.fq.gz", &packed[..second_block + 10]);
    assert_eq!(
        reading(&folder, LaneFiles::Pair(one, mates.clone())),
        format!("1.fq.gz: record {}: {truncated}", records_within(&text, 0xff00) + 1)
    );
    // Cut between two members it is plain FASTQ that ends too early.
    let one = folder.write("1.fq.gz", &packed[..second_block]);
    assert_eq!(
        reading(&folder, LaneFiles::Pair(one, mates)),
        format!(
            "1.fq.gz: record {}: the file ends in the middle of it: the file is truncated, copy or make it again",
            records_within(&text, 0xff00) + 1
        )
    );
}

#[test]
fn gzip_that_is_damaged() {
    let folder = Folder::new();
    let text = fastq(0, 3000, 1);
    let mates = folder.write("2.fq.gz", gzip(&fastq(0, 3000, 2)));
    let packed = gzip(&text);
    let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = packed.clone();
        change(&mut bytes);
        let one = folder.write("1.fq.gz", bytes);
        reading(&folder, LaneFiles::Pair(one, mates.clone()))
    };
    let end = packed.len();
    let tail = "copy or make the file again";
    assert_eq!(
        damaged(&|b| b[end - 6] ^= 1),
        format!(
            "1.fq.gz: record 3001: damaged gzip data (corrupt gzip stream does not have a matching checksum): {tail}"
        )
    );
    assert_eq!(
        damaged(&|b| b[end - 2] ^= 1),
        format!(
            "1.fq.gz: record 3001: damaged gzip data (corrupt gzip stream does not have a matching checksum): {tail}"
        )
    );
    assert_eq!(
        damaged(&|b| b.extend(b"trailing garbage")),
        format!("1.fq.gz: record 3001: damaged gzip data (invalid gzip header): {tail}")
    );
    assert_eq!(
        damaged(&|b| b[2] = 7),
        format!("1.fq.gz: record 1: damaged gzip data (invalid gzip header): {tail}")
    );
    // Flipped bits in the middle are found somewhere from there on; what is said first depends on the bits.
    for at in [end / 3, end / 2, end - 40] {
        let message = damaged(&|b| b[at..at + 8].fill(0xff));
        assert!(message.starts_with("1.fq.gz: record ") || message.starts_with("2.fq.gz: ends"), "{message}");
    }
}

fn checking(folder: &Folder, files: &[&Path]) -> String {
    let pair = |files: &[&Path]| LaneFiles::Pair(files[0].into(), files[1].into());
    let lanes: Vec<Lane> = files.chunks(2).map(|files| Lane::whole(TUMOUR, pair(files))).collect();
    said(folder, check_lanes(&lanes).expect_err("not fit"))
}

#[test]
fn files_that_are_not_fit() {
    let folder = Folder::new();
    let good = folder.write("good.fq", fastq(0, 3, 1));
    let cases: [(&str, &[u8], &str); 13] = [
        ("e.fq", b"", "is empty: give a file with at least one record"),
        ("e.fq.gz", &gzip(b""), "is empty: give a file with at least one record"),
        ("e.bgzf", &bgzf(b""), "is empty: give a file with at least one record"),
        (
            "r.bam",
            &bgzf(b"BAM\x01rest"),
            "is BAM, not FASTQ: of pipes, and here, only FASTQ is read: turn it into that with samtools fastq",
        ),
        ("r.sam", b"@HD\tVN:1.6\n", "is a SAM file, not FASTQ: turn it into FASTQ with samtools fastq"),
        (
            "r.cram",
            b"CRAM\x03",
            "is CRAM, not FASTQ: of pipes, and here, only FASTQ is read: turn it into that with samtools fastq",
        ),
        (
            "r.vbq",
            b"VSEQ\x01",
            "is VBQ, not FASTQ: of pipes, and here, only FASTQ is read: save it to a file, or turn it into FASTQ with bqtools decode",
        ),
        ("r.fa", b">r\nACGT\n", "is a FASTA file, not FASTQ: give reads with qualities"),
        (
            "r.fq.bz2",
            b"BZh91AY",
            "is compressed with bzip2, not gzip or plain text: decompress it, or compress it with gzip or bgzip",
        ),
        (
            "r.fq.xz",
            b"\xfd7zXZ\0",
            "is compressed with xz, not gzip or plain text: decompress it, or compress it with gzip or bgzip",
        ),
        (
            "r.fq.zst",
            b"\x28\xb5\x2f\xfd\x00",
            "is compressed with zstd, not gzip or plain text: decompress it, or compress it with gzip or bgzip",
        ),
        (
            "r.txt",
            b"\n\n",
            "record 1: starts with an empty line instead of '@': not four lines a record, or damaged",
        ),
        (
            "half.gz",
            &gzip(&fastq(0, 1, 1))[..15],
            "record 1: the gzip data end before their end: the file is truncated, copy or make it again",
        ),
    ];
    for (name, content, message) in cases {
        let bad = folder.write(name, content);
        assert_eq!(checking(&folder, &[&good, &bad]), format!("{name}: {message}"));
        // Without the check, reading says the same.
        let files = LaneFiles::Pair(bad, good.clone());
        // Reads from FASTA can be pulled, though not counted or called.
        let text = if name == "r.fa" { worked_on(&folder, files) } else { reading(&folder, files) };
        assert_eq!(text, format!("{name}: {message}"));
    }
    assert_eq!(
        checking(&folder, &[&good, &folder.path().join("absent.fq")]),
        "absent.fq: cannot read: No such file or directory (os error 2)"
    );
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    assert_eq!(
        checking(&folder, &[&good, &folder.path().join("dir")]),
        "dir: is not a regular file: reads are read twice, so save them to a file first"
    );
    assert_eq!(
        said(
            &folder,
            check_lanes(&[Lane::whole(NORMAL, LaneFiles::Interleaved("/dev/null".into()))]).unwrap_err()
        ),
        "/dev/null: is not a regular file: reads are read twice, so save them to a file first"
    );
}

#[test]
fn files_given_twice() {
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name);
    let (one, two) = (folder.write("1.fq", fastq(0, 3, 1)), folder.write("2.fq", fastq(0, 3, 2)));
    std::fs::copy(&one, path("copy.fq")).unwrap();
    std::fs::hard_link(&one, path("hard.fq")).unwrap();
    std::os::unix::fs::symlink(&one, path("soft.fq")).unwrap();
    for other in ["1.fq", "copy.fq", "hard.fq", "soft.fq"] {
        assert_eq!(
            checking(&folder, &[&one, &two, &path(other), &two]),
            format!("1.fq and {other} are the same reads: give each file once")
        );
    }
    // As long and yet different.
    let text = String::from_utf8(fastq(0, 3, 1)).unwrap().replace(" 1:N", " 2:N");
    let other = folder.write("other.fq", text);
    let files = [one.clone(), other];
    assert_eq!(one.metadata().unwrap().len(), files[1].metadata().unwrap().len());
    check_lanes(&Lane::from_files(TUMOUR, &files, Layout::Pairs, &AlignedOptions::default()).unwrap())
        .unwrap();
    // The same file as tumour and as normal.
    let lanes = [NORMAL, TUMOUR].map(|sample| Lane::whole(sample, LaneFiles::Pair(one.clone(), two.clone())));
    assert_eq!(
        said(&folder, check_lanes(&lanes).unwrap_err()),
        "1.fq and 1.fq are the same reads: give each file once"
    );
}

#[test]
fn lists_of_files() {
    let files: Vec<_> = ["a_1", "a_2", "b_1"].map(Into::into).into();
    assert_eq!(
        Lane::from_files(TUMOUR, &files, Layout::Pairs, &AlignedOptions::default()).unwrap_err().to_string(),
        "b_1: has no mate file: give the files of read 1 and read 2 in turn, or say that mates are interleaved"
    );
    assert_eq!(
        Lane::from_files(NORMAL, &[], Layout::Pairs, &AlignedOptions::default()).unwrap_err().to_string(),
        "no reads given for the normal sample: name at least one lane of FASTQ files"
    );
    let interleaved =
        Lane::from_files(TUMOUR, &files, Layout::Interleaved, &AlignedOptions::default()).unwrap();
    assert_eq!(interleaved.len(), 3);
    assert!(interleaved.iter().all(|lane| lane.sample == TUMOUR && lane.paths().count() == 1));
    let pairs = Lane::from_files(NORMAL, &files[..2], Layout::Pairs, &AlignedOptions::default()).unwrap();
    assert_eq!(pairs, [Lane::whole(NORMAL, LaneFiles::Pair("a_1".into(), "a_2".into()))]);
}

#[test]
fn names_that_no_sam_record_can_have() {
    let long = "n".repeat(255);
    let cases = [
        ("@\nACGT\n+\nFFFF\n", "has no name: name every read"),
        ("@ x\nACGT\n+\nFFFF\n", "has no name: name every read"),
        ("@/1\nACGT\n+\nFFFF\n", "has no name: name every read"),
        (
            "@a\x07b\nACGT\n+\nFFFF\n",
            "byte 0x07 in its name is outside '!' to '~': SAM has no place for it, rename the reads",
        ),
        (">x\n\n> y\nA\n", "has no name: name every read"),
        (
            &format!("@{long}\nACGT\n+\nFFFF\n"),
            "its name is 255 bytes long, and SAM holds 254: shorten the names",
        ),
    ];
    for (text, message) in cases {
        let folder = Folder::new();
        let path = folder.write("r.fq", text);
        let record = if text.starts_with('>') { 2 } else { 1 };
        assert_eq!(pulling(&folder, ReadLane::Single(path), 1), format!("r.fq: record {record}: {message}"));
    }
}

#[test]
fn what_cannot_be_pulled() {
    let folder = Folder::new();
    let good = folder.write("good.fq", fastq(0, 5, 1));
    let absent = folder.path().join("absent");
    assert_eq!(
        pulling(&folder, ReadLane::Pair(good.clone(), absent), 1),
        "absent: cannot read: No such file or directory (os error 2)"
    );
    assert_eq!(
        pulling(&folder, ReadLane::Pair(good.clone(), good), 1),
        "good.fq and good.fq are the same reads: give each file once"
    );
    assert_eq!(
        pulling(&folder, ReadLane::Pair("-".into(), "-".into()), 1),
        "- and - are the same reads: give each file once"
    );
    assert_eq!(
        pulling(&folder, ReadLane::Single("/dev/null".into()), 1),
        "/dev/null: is empty: give a file with at least one record"
    );
    assert_eq!(
        pulling(&folder, ReadLane::Single(folder.path().into()), 1).rsplit("cannot").next(),
        Some(" read: Is a directory (os error 21)")
    );
}
