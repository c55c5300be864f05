//! Compares sorting with `samtools sort`, for several thread counts and memory budgets.

mod sorting;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use genuma_align::bgzf::CompressionLevel;
use genuma_align::sort::markdup::MarkdupOptions;
use genuma_align::sort::{BlockSorter, SortedFileHeader};
use sorting::{How, Random, Records, lines, samtools, sort, sorter, text, try_sort};

/// Records of many kinds at few positions: with and without a position, on both strands, equal ones.
fn made(random: &mut Random, templates: usize) -> String {
    let mut sam = "@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:a\tLN:200000\n@SQ\tSN:b\tLN:90000\n@CO\tkept\n".to_owned();
    for i in 0..templates {
        for j in 0..1 + random.below(3) {
            let flags = [0, 16, 4, 20, 1, 17][random.below(6)] | if j > 0 { 256 } else { 0 };
            let (sequence, position) = match random.below(8) {
                0 if flags & 4 != 0 => ("*", random.below(2) * random.below(50)),
                1 => ("b", 1 + random.below(80_000)),
                2 => ("b", 1 + random.below(5)),
                _ => ("a", 1 + random.below(190_000)),
            };
            let n = 1 + random.below(150);
            let cigar = match (flags & 4, random.below(10)) {
                (4, _) => "*".to_owned(),
                (_, 0) => format!("{n}M9000N1S"),
                (_, 1) => format!("{n}M20D1M"),
                _ => format!("{}M", n + 1),
            };
            let bases: String = (0..=n).map(|_| random.pick(&["A", "C", "G", "T"])).collect();
            let qualities = if random.one_in(5) { "*".to_owned() } else { "F".repeat(n + 1) };
            writeln!(sam, "r{i}\t{flags}\t{sequence}\t{position}\t7\t{cigar}\t*\t0\t0\t{bases}\t{qualities}\tNM:i:{j}")
                .expect("a string");
        }
    }
    sam
}

/// The records after `samtools sort`.
fn reference(sam: &str, folder: &Path) -> PathBuf {
    let (from, to) = (folder.join("reference.sam"), folder.join("reference.bam"));
    fs::write(&from, sam).expect("a file");
    samtools(&["sort", "--no-PG", "--write-index", "-o", &format!("{0}##idx##{0}.bai", text(&to)), text(&from)]);
    to
}

#[test]
fn as_samtools_sort_and_its_index() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..6 {
        let mut random = Random(seed);
        let sam = made(&mut random, 30 + 600 * seed as usize);
        let expected = reference(&sam, folder.path());
        let records = Records::of(&sam, folder.path());
        let (path, summary) = sort(&records, folder.path(), &How::default());
        assert!(lines(&path) == lines(&expected), "seed {seed}");
        assert_eq!(
            samtools(&["view", "-H", "--no-PG", text(&path)]),
            samtools(&["view", "-H", "--no-PG", text(&expected)])
        );
        assert_eq!(summary.records, records.records.len() as u64);
        assert_eq!(summary.templates, 30 + 600 * seed);
        samtools(&["quickcheck", text(&path)]);
        assert_eq!(samtools(&["idxstats", text(&path)]), samtools(&["idxstats", text(&expected)]));
        for _ in 0..30 {
            let begin = 1 + random.below(190_000);
            let region = format!("{}:{begin}-{}", random.pick(&["a", "b"]), begin + random.below(20_000));
            let found = [&path, &expected].map(|p| samtools(&["view", text(p), &region]));
            assert!(found[0] == found[1], "{region}");
        }
        assert!(!samtools(&["view", text(&path), "b:1-10"]).is_empty());
        let unplaced = [&path, &expected].map(|p| samtools(&["view", text(p), "*"]));
        assert!(unplaced[0] == unplaced[1]);
    }
}

#[test]
fn the_same_bytes_whatever_the_threads_the_memory_and_the_blocks() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = Records::of(&made(&mut Random(7), 20_000), folder.path());
    let size: usize = records.records.iter().map(Vec::len).sum();
    let mark = How { marking: Some(MarkdupOptions::default()), ..How::default() };
    let (path, summary) = sort(&records, folder.path(), &mark);
    assert_eq!(summary.spilled_bytes, 0);
    assert!(summary.duplicates.expect("counts").single_duplicates > 100);
    let bai = folder.path().join("sorted.bam.bai");
    let expected = [fs::read(&path).expect("the BAM"), fs::read(&bai).expect("its index")];
    for (threads, memory, block) in
        [(1, size, 30_000), (2, size / 3, 200), (5, size / 3, 30_000), (1, 100_000, 5_000), (5, 0, 9_000)]
    {
        let how = How { threads, memory, block, ..mark.clone() };
        let (path, again) = sort(&records, folder.path(), &how);
        assert!(again.spilled_bytes > 0);
        assert_eq!(again.duplicates, summary.duplicates);
        let found = [fs::read(&path).expect("the BAM"), fs::read(&bai).expect("its index")];
        assert!(found == expected, "{threads} threads, {memory} bytes, blocks of {block}");
        let left: Vec<_> = fs::read_dir(folder.path()).expect("the folder").flatten().map(|e| e.file_name()).collect();
        assert_eq!(left.len(), 4, "{left:?}");
    }
    // Without an index, to any stream.
    let mut stream = Vec::new();
    let header = SortedFileHeader::from_sam_header(&records.header).expect("a header");
    let sorter = sorter(&records, folder.path(), &mark).expect("sorted");
    sorter
        .write_unindexed_bam(&header, CompressionLevel::from_level_number(1).expect("a level"), &mut stream)
        .expect("written");
    assert!(stream == expected[0]);
}

#[test]
fn nothing_to_sort() {
    let folder = tempfile::tempdir().expect("a folder");
    for header in ["", "@SQ\tSN:a\tLN:1000\n"] {
        let nothing = Records { header: header.into(), records: Vec::new() };
        let how = How { marking: Some(MarkdupOptions::default()), ..How::default() };
        let (path, summary) = sort(&nothing, folder.path(), &how);
        assert_eq!((summary.records, summary.templates, summary.spilled_bytes), (0, 0, 0));
        assert_eq!(summary.duplicates, Some(Default::default()));
        assert_eq!(lines(&path), [""; 0]);
        let said = String::from_utf8(samtools(&["view", "-H", "--no-PG", text(&path)])).expect("text");
        assert_eq!(said, format!("@HD\tVN:1.6\tSO:coordinate\n{header}"));
        if !header.is_empty() {
            samtools(&["quickcheck", text(&path)]);
            assert_eq!(samtools(&["view", text(&path), "a:1-100"]), b"");
        }
    }
}

#[test]
fn long_reads_and_long_cigars() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Random(11);
    let mut sam = made(&mut random, 200);
    for i in 0..12 {
        let n = 70_000 + 5_000 * i;
        let bases: String = (0..n).map(|_| random.pick(&["A", "C", "G", "T"])).collect();
        // More operations than fit into the CIGAR field are stored in a tag.
        let cigar = if i % 3 == 0 { "1M1I".repeat(n / 2) } else { format!("5H10S{}M", n - 10) };
        let flags = 16 * (i % 2);
        let at = 10 + random.below(2) * 50_000;
        writeln!(sam, "long{i}\t{flags}\ta\t{at}\t9\t{cigar}\t*\t0\t0\t{bases}\t{}", "5".repeat(n)).expect("a string");
    }
    let expected = reference(&sam, folder.path());
    let records = Records::of(&sam, folder.path());
    for memory in [1 << 26, 300_000] {
        let (path, _) = sort(&records, folder.path(), &How { memory, ..How::default() });
        assert!(lines(&path) == lines(&expected));
        for region in ["a:1-60", "a:59000-60000", "a:130000-140000"] {
            let found = [&path, &expected].map(|p| samtools(&["view", "-c", text(p), region]));
            assert_eq!(found[0], found[1], "{region}");
        }
    }
}

#[test]
fn sequences_too_long_for_bai() {
    let folder = tempfile::tempdir().expect("a folder");
    let sam = "@SQ\tSN:long\tLN:1500000000\nx\t0\tlong\t1400000000\t9\t4M\t*\t0\t0\tACGT\tFFFF\n\
               y\t0\tlong\t9\t9\t4M\t*\t0\t0\tACGT\tFFFF\n";
    // An existing index of another kind must be removed.
    fs::write(folder.path().join("sorted.bam.bai"), "old").expect("a file");
    let (path, _) = sort(&Records::of(sam, folder.path()), folder.path(), &How::default());
    assert!(folder.path().join("sorted.bam.csi").exists() && !folder.path().join("sorted.bam.bai").exists());
    assert_eq!(samtools(&["view", "-c", text(&path), "long:1400000000-1400000003"]), b"1\n");
}

#[test]
fn records_that_are_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let sam = "@SQ\tSN:a\tLN:1000\nx\t0\ta\t5\t9\t4M\t*\t0\t0\tACGT\tFFFF\n";
    let whole = Records::of(sam, folder.path());
    let record = &whole.records[0];
    let mut blocks = BlockSorter::new(None);
    for cut in [1, 3, 20, record.len() - 1] {
        let said = blocks.sort_records(&record[..cut]).expect_err("cut").to_string();
        assert_eq!(said, "a record of the aligner is cut short");
    }
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut record = record.clone();
        change(&mut record);
        BlockSorter::new(None).sort_records(&record).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(changed(&|_| ()), Ok(()));
    let short = Err("a record of the aligner is shorter than its name, CIGAR, sequence and qualities".to_owned());
    assert_eq!(changed(&|r| r[12] = 0), short);
    assert_eq!(changed(&|r| r[16] = 40), short);
    assert_eq!(changed(&|r| r[20..24].fill(255)), short);
    let fixed = changed(&|r| {
        r[0] = 20;
        r.truncate(24);
    });
    assert_eq!(fixed, Err("a record of the aligner is too short for its fixed fields".to_owned()));

    // A record on a sequence that the header does not have.
    let mut elsewhere = record.clone();
    elsewhere[4] = 1;
    let records = Records { header: whole.header.clone(), records: vec![record.clone(), elsewhere] };
    let path = folder.path().join("elsewhere.bam");
    let said = try_sort(&records, &path, &How::default()).expect_err("refused").to_string();
    let expected = "record 2 cannot be indexed: its sequence is not in the header";
    assert_eq!(said, format!("{}: {expected}", path.display()));
    assert!(!path.exists());
}

/// A small file system.
struct Tiny(PathBuf);

impl Tiny {
    fn mount(folder: PathBuf, size: &str) -> Option<Tiny> {
        fs::create_dir_all(&folder).expect("a folder");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"]).arg(&folder).output();
        if !mount.is_ok_and(|m| m.status.success()) {
            let reason = "a small file system cannot be mounted here (not root, or a container)";
            writeln!(std::io::stderr(), "skipped: no_space_left: {reason}").expect("stderr");
            return None;
        }
        Some(Tiny(folder))
    }

    fn names(&self) -> Vec<std::ffi::OsString> {
        fs::read_dir(&self.0).expect("the folder").flatten().map(|e| e.file_name()).collect()
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        // The folder is temporary.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn no_space_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = Records::of(&made(&mut Random(3), 8000), folder.path());
    let Some(tiny) = Tiny::mount(folder.path().join("tiny"), "192k") else { return };

    let path = tiny.0.join("out.bam");
    let how = How { threads: 3, ..How::default() };
    let said = try_sort(&records, &path, &how).expect_err("no room").to_string();
    let expected = format!("{}: cannot write: No space left on device (os error 28)", path.display());
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(tiny.names(), [""; 0]);

    // The spill file is full: while records arrive, and when only the last run cannot be written.
    for memory in [100_000, 900_000] {
        let how = How { memory, ..how.clone() };
        let said = sorter(&records, &tiny.0, &how).and_then(|s| {
            let mut out = Vec::new();
            s.write_unindexed_bam(
                &SortedFileHeader::from_sam_header(&records.header)?,
                CompressionLevel::default(),
                &mut out,
            )
        });
        let said = said.expect_err("no room").to_string();
        let expected = format!("cannot write the sorting spill file in {}", tiny.0.display());
        assert!(said.starts_with(&expected) && said.contains("No space left"), "{said}");
        assert_eq!(tiny.names(), [""; 0]);
    }
}

#[test]
fn a_reader_that_goes_away() {
    struct Gone(usize);
    impl std::io::Write for Gone {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let records = Records::of(&made(&mut Random(3), 20_000), folder.path());
    for room in [0, 1000, 300_000] {
        let sorter = sorter(&records, folder.path(), &How::default()).expect("sorted");
        let header = SortedFileHeader::from_sam_header(&records.header).expect("a header");
        let said = sorter.write_unindexed_bam(&header, CompressionLevel::default(), Gone(room)).expect_err("gone");
        assert!(matches!(&said, genuma_align::sort::Error::Write(e) if e.kind() == std::io::ErrorKind::BrokenPipe));
    }
}
