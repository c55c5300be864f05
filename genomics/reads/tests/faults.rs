//! The complete error messages for invalid reads.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::common::{Folder, bgzf, bzip2, fastq, gzip, gzip_members, interleave, pull, xz, zstd};
use genuma_reads::{
    AlignedOptions, BatchLimits, Error, Lane, LaneFiles, MateLayout, NORMAL_SAMPLE, ProgressCounters, ReadBatch,
    ReadStream, StreamLane, StreamOptions, TUMOUR_SAMPLE, check_lanes, for_each_batch,
};

/// The message without the path of the test folder.
fn error_text(folder: &Folder, error: Error) -> String {
    error.to_string().replace(&format!("{}/", folder.path().display()), "")
}

/// The error of a read stream.
fn pulling(folder: &Folder, lane: StreamLane, inflaters: usize) -> String {
    let options =
        StreamOptions { inflate_threads: inflaters, ..StreamOptions::new(BatchLimits::with_reads_per_batch(100)) };
    let pull = || {
        let (mut stream, mut batch) = (ReadStream::open(&[lane], options)?, ReadBatch::new());
        while stream.fill_batch(&mut batch)? {}
        Ok(())
    };
    error_text(folder, pull().expect_err("the input is wrong"))
}

/// The error of reading a lane: with one thread, with three threads, and as a stream, which must be equal.
fn reading(folder: &Folder, files: LaneFiles) -> String {
    let lane = match files.clone() {
        LaneFiles::Pair(one, two) => StreamLane::Pair(one, two),
        LaneFiles::Interleaved(one) => StreamLane::Interleaved(one),
        LaneFiles::Single(one) => StreamLane::Single(one),
        LaneFiles::Aligned(aligned) => StreamLane::Aligned(aligned),
        LaneFiles::Reference(_) => panic!("a reference has no stream"),
    };
    let text = worked_on(folder, files);
    for inflaters in [1, 4] {
        assert_eq!(pulling(folder, lane.clone(), inflaters), text, "{inflaters} inflating threads");
    }
    text
}

/// The error of batches of pairs, with one thread and with three.
fn worked_on(folder: &Folder, files: LaneFiles) -> String {
    let lanes = [Lane::with_whole_files(NORMAL_SAMPLE, files)];
    let [one, three] = [1, 3].map(|threads| {
        let read = for_each_batch(&lanes, threads, &ProgressCounters::default(), || (), |(), _| Ok::<(), Error>(()));
        error_text(folder, read.expect_err("the input is wrong"))
    });
    assert_eq!(one, three);
    one
}

fn reading_pair(folder: &Folder, one: impl AsRef<[u8]>, two: impl AsRef<[u8]>) -> String {
    reading(folder, LaneFiles::Pair(folder.write("a_1.fq", one), folder.write("a_2.fq", two)))
}

/// The error of reading two valid pairs and then this record as read 1.
fn third_record(record: &str) -> String {
    let start = "@a/1\nACGT\n+\nFFFF\n@b/1\nAC\n+\nFF\n";
    let mates = "@a/2\nACGT\n+\nFFFF\n@b/2\nAC\n+\nFF\n@c/2\nACGT\n+\nFFFF\n";
    reading_pair(&Folder::new(), format!("{start}{record}"), mates)
}

#[test]
fn invalid_records_are_reported() {
    let cases = [
        ("@c/1\nACGT\n+\nFFF\n", "4 bases but 3 qualities: the file is damaged, copy or make it again"),
        (
            "c/1\nACGT\n+\nFFFF\n",
            "starts with 'c' instead of '@': FASTQ must have four lines per record; check the file",
        ),
        (
            "\n@c/1\nACGT\n+\nFFFF\n",
            "starts with an empty line instead of '@': FASTQ must have four lines per record; check the file",
        ),
        (
            "@c/1\nACGT\nFACT\n+\nFFFF\n",
            "its third line starts with 'F' instead of '+': FASTQ must have four lines per record; check the file",
        ),
        (
            "@c/1\nACGT\nACGT\n+\nFFFF\n",
            "its sequence has several lines, but FASTQ must have four lines per record: join the lines with seqtk seq -l 0",
        ),
        ("@c/1\nAC-T\n+\nFFFF\n", "'-' in the sequence is not a base (IUPAC letter)"),
        ("@c/1\nAC\x07T\n+\nFFFF\n", "byte 0x07 in the sequence is not a base (IUPAC letter)"),
        ("@c/1\nACGT\n+\nFF F\n", "' ' in the qualities is outside '!' to '~' (Phred+33)"),
        ("@c/1\nACGT\n+\nFF\x7fF\n", "byte 0x7f in the qualities is outside '!' to '~' (Phred+33)"),
        ("@c/1\nACGT\n+\n", "the file ends inside the record: it is truncated, copy or make it again"),
        ("@c/1\nACGT\n+\nFF", "the file ends inside the record: it is truncated, copy or make it again"),
        ("@c/1\nAC", "the file ends inside the record: it is truncated, copy or make it again"),
        ("@d/1\nACGT\n+\nFFFF\n", "read \"d\" has mate \"c\" in a_2.fq: mates must come in the same order"),
        ("@c/2\nACGT\n+\nFFFF\n", "\"c\" and its mate in a_2.fq are both read 2: give read 1 and read 2"),
    ];
    for (record, message) in cases {
        assert_eq!(third_record(record), format!("a_1.fq: record 3: {message}"));
    }
}

#[test]
fn a_line_without_end_is_refused_before_it_fills_the_memory() {
    let folder = Folder::new();
    let one = folder.write("1.fq", format!("@a\nACGT\n+\nFFFF\n@c/1\n{}", "A".repeat(8 << 20)));
    let two = folder.write("2.fq", "@a\nACGT\n+\nFFFF\n@c/2\nACGT\n+\nFFFF\n");
    // Reads of a stream may be as long as a chromosome.
    assert_eq!(
        worked_on(&folder, LaneFiles::Pair(one, two)),
        "1.fq: record 2: longer than 1048576 bytes: not a FASTQ of reads, or damaged"
    );
}

#[test]
fn valid_forms_of_names_are_accepted() {
    let folder = Folder::new();
    for (one, two) in [
        ("r/1", "r/2"),
        ("r", "r"),
        ("r 1:N:0:ACGT", "r 2:N:0:ACGT"),
        ("r/1 x", "r/2 y"),
        ("r\tlength=4", "r\tlength=4"),
        ("r.1/1", "r.1 2:Y:18:1"),
    ] {
        let [a, b] = [one, two].map(|name| format!("@{name}\nACGT\n+{name}\nFFFF\n"));
        let files = LaneFiles::Pair(folder.write("1.fq", a), folder.write("2.fq", b));
        let read = for_each_batch(
            &[Lane::with_whole_files(NORMAL_SAMPLE, files)],
            1,
            &ProgressCounters::default(),
            || 0,
            |pairs, batch| {
                *pairs += batch.len();
                Ok::<(), Error>(())
            },
        );
        assert_eq!(read.map_err(|e| e.to_string()), Ok(vec![1]), "{one} and {two}");
    }
}

/// Names say that the files are exchanged.
#[test]
fn exchanged_mates_are_refused() {
    let folder = Folder::new();
    for (one, two) in [("r 2:N:0:ACGT", "r 1:N:0:ACGT"), ("r/2", "r/1")] {
        let [a, b] = [one, two].map(|name| format!("@{name}\nACGT\n+\nFFFF\n"));
        let files = LaneFiles::Pair(folder.write("1.fq", a), folder.write("2.fq", b));
        let lanes = [Lane::with_whole_files(NORMAL_SAMPLE, files)];
        let nothing = |_: &mut (), _: &genuma_reads::PairBatch| Ok::<(), Error>(());
        let read = for_each_batch(&lanes, 1, &ProgressCounters::default(), || (), nothing);
        let error = read.expect_err("refused").to_string();
        assert!(error.contains("1.fq: record 1: \"r\" is read 2, and its mate in "), "{error}");
        assert!(error.ends_with("2.fq is read 1: give the files in the order read 1, read 2"), "{error}");
    }
}

#[test]
fn missing_mates_are_reported() {
    let folder = Folder::new();
    for (n, m) in [(3000, 2999), (1025, 1024), (2048, 1024), (1024, 1023)] {
        let end = format!(
            "ends after {m} records while {{}} continues: mates are missing, give files that have the same templates in the same order"
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
        "both.fq: record 3001: has no mate: an interleaved file must have read 1 and read 2 alternately"
    );
}

#[test]
fn a_mate_missing_in_the_middle_is_reported_at_its_position() {
    let folder = Folder::new();
    let two = [fastq(0, 1499, 2), fastq(1500, 1500, 2)].concat();
    assert_eq!(
        reading_pair(&folder, fastq(0, 3000, 1), two),
        "a_1.fq: record 1500: read \"lane:1499\" has mate \"lane:1500\" in a_2.fq: mates must come in the same order"
    );
}

/// Number of whole records in the first `bytes` of a text.
fn records_within(text: &[u8], bytes: usize) -> usize {
    text[..bytes].iter().filter(|&&b| b == b'\n').count() / 4
}

#[test]
fn truncated_gzip_is_reported() {
    let folder = Folder::new();
    let text = fastq(0, 3000, 1);
    let truncated = "the gzip data end too early: the file is truncated, copy or make it again";
    let mates = folder.write("2.fq.gz", gzip(&fastq(0, 3000, 2)));

    // Without its trailer the file delivers all its records, but is truncated.
    let packed = gzip(&text);
    for lost in [1, 4, 8] {
        let one = folder.write("1.fq.gz", &packed[..packed.len() - lost]);
        assert_eq!(reading(&folder, LaneFiles::Pair(one, mates.clone())), format!("1.fq.gz: record 3001: {truncated}"));
    }
    // BGZF blocks are delivered completely or not at all, so the record number is exact.
    let packed = bgzf(&text);
    let second_block = packed.windows(4).enumerate().skip(4).find(|(_, w)| w == b"\x1f\x8b\x08\x04").unwrap().0;
    let one = folder.write("1.fq.gz", &packed[..second_block + 10]);
    assert_eq!(
        reading(&folder, LaneFiles::Pair(one, mates.clone())),
        format!("1.fq.gz: record {}: {truncated}", records_within(&text, 0xff00) + 1)
    );
    // A file truncated between two members is FASTQ that ends too early.
    let one = folder.write("1.fq.gz", &packed[..second_block]);
    assert_eq!(
        reading(&folder, LaneFiles::Pair(one, mates)),
        format!(
            "1.fq.gz: record {}: the file ends inside the record: it is truncated, copy or make it again",
            records_within(&text, 0xff00) + 1
        )
    );
}

#[test]
fn truncated_and_damaged_bzip2_xz_and_zstd_are_reported() {
    let folder = Folder::new();
    let text = fastq(0, 3000, 1);
    let mates = folder.write("2.fq", fastq(0, 3000, 2));
    let reading = |bytes: &[u8]| reading(&folder, LaneFiles::Pair(folder.write("1.fq", bytes), mates.clone()));
    type Pack = fn(&[u8]) -> Vec<u8>;
    for (name, pack) in [("bzip2", bzip2 as Pack), ("xz", xz), ("zstd", zstd)] {
        let packed = pack(&text);
        for len in [packed.len() - 1, packed.len() - 4, packed.len() * 2 / 3, packed.len() / 4] {
            let error = reading(&packed[..len]);
            let expected = format!(": the {name} data end too early: the file is truncated, copy or make it again");
            assert!(error.starts_with("1.fq: record ") && error.ends_with(&expected), "{error}");
        }
        // Flipped bits may become wrong records before the checksum is reached: the error is of the records or data.
        for at in [packed.len() / 4, packed.len() * 2 / 3] {
            let mut damaged = packed.clone();
            damaged[at] ^= 4;
            let error = reading(&damaged);
            assert!(error.starts_with("1.fq: ") || error.starts_with("2.fq: "), "{error}");
        }
        let error = reading(&[&packed[..], b"trailing garbage"].concat());
        assert!(error.starts_with(&format!("1.fq: record 3001: damaged {name} data (")), "{error}");
    }
    // The last four bytes of zstd are the checksum.
    let mut damaged = zstd(&text);
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(reading(&damaged), "1.fq: record 3001: damaged zstd data (wrong checksum): copy or make the file again");
}

/// Files of the programs themselves, with the largest windows that are accepted, and one that is too large.
#[test]
fn files_of_bzip2_xz_and_zstd_are_read() {
    let folder = Folder::new();
    let text = fastq(0, 3000, 1);
    let plain = folder.write("r.fq", &text);
    let single = |path: &Path| {
        pull(&[StreamLane::Single(path.into())], StreamOptions::new(BatchLimits::with_reads_per_batch(100)))
    };
    let (expected, error) = single(&plain);
    assert!(error.is_none(), "{error:?}");
    let commands: [(&str, &[&str]); 6] = [
        ("bzip2", &["-9"]),
        ("xz", &["-9e"]),
        ("xz", &["-1", "--check=sha256"]),
        ("xz", &["-1", "--check=none", "--block-size=10000"]),
        ("zstd", &["-19", "--no-check"]),
        ("zstd", &["--ultra", "-22", "--long=27"]),
    ];
    for (program, args) in commands {
        let Ok(run) = Command::new(program).args(args).arg("-c").stdin(File::open(&plain).unwrap()).output() else {
            let _ =
                writeln!(std::io::stderr(), "skipped: files_of_bzip2_xz_and_zstd_are_read: {program} is not installed");
            continue;
        };
        assert!(run.status.success(), "{run:?}");
        let (found, error) = single(&folder.write("packed", run.stdout));
        assert!(error.is_none() && found == expected, "{program} {args:?}: {error:?}");
    }
    // Its header asks for a window of 2 GiB.
    let huge = folder.write("huge.zst", b"\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00");
    let (_, error) = single(&huge);
    let error = error.expect("too large a window").to_string();
    assert!(error.contains("damaged zstd data (") && error.contains("window"), "{error}");
}

#[test]
fn damaged_gzip_is_reported() {
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
    assert_eq!(damaged(&|b| b[2] = 7), format!("1.fq.gz: record 1: damaged gzip data (invalid gzip header): {tail}"));
    // Flipped bits in the middle are detected at that position or later; the message depends on the bits.
    for at in [end / 3, end / 2, end - 40] {
        let message = damaged(&|b| b[at..at + 8].fill(0xff));
        assert!(message.starts_with("1.fq.gz: record ") || message.starts_with("2.fq.gz: ends"), "{message}");
    }
}

/// gzip ignores zero bytes after the last member, for example of files that were read from tape.
#[test]
fn zero_bytes_after_gzip_are_skipped() {
    let folder = Folder::new();
    let text = fastq(0, 3000, 1);
    let mates = folder.write("2.fq.gz", gzip(&fastq(0, 3000, 2)));
    for packed in [gzip(&text), gzip_members(&text, 70_001), bgzf(&text)] {
        let read_with = |tail: &[u8]| {
            let one = folder.write("1.fq.gz", [&packed[..], tail].concat());
            let lane = StreamLane::Pair(one, mates.clone());
            let (batches, error) = pull(&[lane], StreamOptions::new(BatchLimits::with_reads_per_batch(100)));
            error.map_or(Ok(batches.iter().map(|batch| batch.3.len()).sum::<usize>()), Err)
        };
        for zeros in [1, 7, 512, 400_000] {
            assert_eq!(read_with(&vec![0; zeros]).expect("read"), 6000, "{zeros}");
        }
        let error = error_text(&folder, read_with(b"\0\0\0x").expect_err("damaged"));
        assert!(error.contains("data after zero bytes at the end of a member"), "{error}");
        assert!(read_with(b"x").is_err());
    }
}

fn checking(folder: &Folder, files: &[&Path]) -> String {
    let pair = |files: &[&Path]| LaneFiles::Pair(files[0].into(), files[1].into());
    let lanes: Vec<Lane> = files.chunks(2).map(|files| Lane::with_whole_files(TUMOUR_SAMPLE, pair(files))).collect();
    error_text(folder, check_lanes(&lanes).expect_err("not fit"))
}

#[test]
fn unusable_files_are_reported() {
    let folder = Folder::new();
    let good = folder.write("good.fq", fastq(0, 3, 1));
    let cases: [(&str, &[u8], &str); 14] = [
        ("e.fq", b"", "is empty: give a file with at least one record"),
        ("e.fq.gz", &gzip(b""), "is empty: give a file with at least one record"),
        ("e.bgzf", &bgzf(b""), "is empty: give a file with at least one record"),
        (
            "r.bam",
            &bgzf(b"BAM\x01rest"),
            "is BAM, not FASTQ: only FASTQ is supported here: convert it with samtools fastq",
        ),
        (
            "r.sam",
            b"@HD\tVN:1.6\n",
            "is a SAM file, not FASTQ: convert it to BAM with samtools view -b, or to FASTQ with samtools fastq",
        ),
        ("r.cram", b"CRAM\x03", "is CRAM, not FASTQ: only FASTQ is supported here: convert it with samtools fastq"),
        (
            "r.vbq",
            b"VSEQ\x01",
            "is VBQ, not FASTQ: here and from a pipe, only FASTQ can be read: save it to a file, or convert it to FASTQ with bqtools decode",
        ),
        ("r.fa", b">r\nACGT\n", "is a FASTA file, not FASTQ: give reads with qualities"),
        (
            "r.fq.bz2",
            b"BZh91AY",
            "record 1: the bzip2 data end too early: the file is truncated, copy or make it again",
        ),
        ("r.fq.xz", b"\xfd7zXZ\0", "record 1: the xz data end too early: the file is truncated, copy or make it again"),
        (
            "r.fq.zst",
            b"\x28\xb5\x2f\xfd\x00",
            "record 1: the zstd data end too early: the file is truncated, copy or make it again",
        ),
        ("r.zip", b"PK\x03\x04rest", "is a zip archive, not one file: unpack it with unzip, and give the files in it"),
        (
            "r.txt",
            b"\n\n",
            "record 1: starts with an empty line instead of '@': FASTQ must have four lines per record; check the file",
        ),
        (
            "half.gz",
            &gzip(&fastq(0, 1, 1))[..15],
            "record 1: the gzip data end too early: the file is truncated, copy or make it again",
        ),
    ];
    for (name, content, message) in cases {
        let bad = folder.write(name, content);
        assert_eq!(checking(&folder, &[&good, &bad]), format!("{name}: {message}"));
        // Without the check, reading reports the same.
        let files = LaneFiles::Pair(bad, good.clone());
        // FASTA can be streamed, but not counted or called.
        let text = if name == "r.fa" { worked_on(&folder, files) } else { reading(&folder, files) };
        assert_eq!(text, format!("{name}: {message}"));
    }
    assert_eq!(
        checking(&folder, &[&good, &folder.path().join("absent.fq")]),
        "absent.fq: cannot read: No such file or directory (os error 2)"
    );
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    assert_eq!(checking(&folder, &[&good, &folder.path().join("dir")]), "dir: is a folder: give the files in it");
    assert_eq!(
        error_text(
            &folder,
            check_lanes(&[Lane::with_whole_files(NORMAL_SAMPLE, LaneFiles::Interleaved("/dev/null".into()))])
                .unwrap_err()
        ),
        "/dev/null: is not a regular file: reads are read twice, so save them to a file first"
    );
}

#[test]
fn files_given_twice_are_reported() {
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
    // Same length, different contents.
    let text = String::from_utf8(fastq(0, 3, 1)).unwrap().replace(" 1:N", " 2:N");
    let other = folder.write("other.fq", text);
    let files = [one.clone(), other];
    assert_eq!(one.metadata().unwrap().len(), files[1].metadata().unwrap().len());
    check_lanes(
        &Lane::group_files_into_lanes(TUMOUR_SAMPLE, &files, MateLayout::Pairs, &AlignedOptions::default()).unwrap(),
    )
    .unwrap();
    // The same file as tumour and as normal sample.
    let lanes = [NORMAL_SAMPLE, TUMOUR_SAMPLE]
        .map(|sample| Lane::with_whole_files(sample, LaneFiles::Pair(one.clone(), two.clone())));
    assert_eq!(
        error_text(&folder, check_lanes(&lanes).unwrap_err()),
        "1.fq and 1.fq are the same reads: give each file once"
    );
}

#[test]
fn invalid_lists_of_files_are_reported() {
    let files: Vec<_> = ["a_1", "a_2", "b_1"].map(Into::into).into();
    let missing = Lane::group_files_into_lanes(TUMOUR_SAMPLE, &files, MateLayout::Pairs, &AlignedOptions::default());
    assert!(missing.unwrap_err().to_string().starts_with("b_1: cannot read: No such file"));
    let files: Vec<_> = ["a_1", "a_2", "Cargo.toml"].map(Into::into).into();
    assert_eq!(
        Lane::group_files_into_lanes(TUMOUR_SAMPLE, &files, MateLayout::Pairs, &AlignedOptions::default())
            .unwrap_err()
            .to_string(),
        "Cargo.toml: has no mate file: give the files of read 1 and read 2 in turn, or add --interleaved (mates alternate in each file) \
         or --single (reads have no mates)"
    );
    assert_eq!(
        Lane::group_files_into_lanes(NORMAL_SAMPLE, &[], MateLayout::Pairs, &AlignedOptions::default())
            .unwrap_err()
            .to_string(),
        "no reads given for the normal sample: give at least one FASTQ, BAM or CRAM file"
    );
    let interleaved =
        Lane::group_files_into_lanes(TUMOUR_SAMPLE, &files, MateLayout::Interleaved, &AlignedOptions::default())
            .unwrap();
    assert_eq!(interleaved.len(), 3);
    assert!(interleaved.iter().all(|lane| lane.sample == TUMOUR_SAMPLE && lane.paths().count() == 1));
    let pairs = Lane::group_files_into_lanes(NORMAL_SAMPLE, &files[..2], MateLayout::Pairs, &AlignedOptions::default())
        .unwrap();
    assert_eq!(pairs, [Lane::with_whole_files(NORMAL_SAMPLE, LaneFiles::Pair("a_1".into(), "a_2".into()))]);
}

#[test]
fn names_invalid_in_sam_are_reported() {
    let long = "n".repeat(255);
    let cases = [
        ("@\nACGT\n+\nFFFF\n", "has no name: name every read"),
        ("@ x\nACGT\n+\nFFFF\n", "has no name: name every read"),
        ("@/1\nACGT\n+\nFFFF\n", "has no name: name every read"),
        (
            "@a\x07b\nACGT\n+\nFFFF\n",
            "byte 0x07 in its name is outside '!' to '~': SAM does not allow it, rename the reads",
        ),
        (">x\n\n> y\nA\n", "has no name: name every read"),
        (&format!("@{long}\nACGT\n+\nFFFF\n"), "its name is 255 bytes long, but SAM allows 254: shorten the names"),
    ];
    for (text, message) in cases {
        let folder = Folder::new();
        let path = folder.write("r.fq", text);
        let record = if text.starts_with('>') { 2 } else { 1 };
        assert_eq!(pulling(&folder, StreamLane::Single(path), 1), format!("r.fq: record {record}: {message}"));
    }
}

#[test]
fn stream_errors_are_reported() {
    let folder = Folder::new();
    let good = folder.write("good.fq", fastq(0, 5, 1));
    let absent = folder.path().join("absent");
    assert_eq!(
        pulling(&folder, StreamLane::Pair(good.clone(), absent), 1),
        "absent: cannot read: No such file or directory (os error 2)"
    );
    assert_eq!(
        pulling(&folder, StreamLane::Pair(good.clone(), good), 1),
        "good.fq and good.fq are the same reads: give each file once"
    );
    assert_eq!(
        pulling(&folder, StreamLane::Pair("-".into(), "-".into()), 1),
        "- and - are the same reads: give each file once"
    );
    assert_eq!(
        pulling(&folder, StreamLane::Single("/dev/null".into()), 1),
        "/dev/null: is empty: give a file with at least one record"
    );
    let read = pulling(&folder, StreamLane::Single(folder.path().into()), 1);
    assert!(read.ends_with(": is a folder: give the files in it"), "{read}");
}
