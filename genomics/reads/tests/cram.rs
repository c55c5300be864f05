//! Reads of CRAM files of unusual kinds equal those that samtools decodes. The files are made by samtools from SAM texts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Folder, Read, bzip2, gzip, pull, xz, zstd};
use genuma_reads::{AlignedInput, AlignedOptions, BatchLimits, CramReference, StreamLane, StreamOptions};

/// Length of each of the two reference sequences.
const CONTIG_BASES: usize = 3000;

/// Options with which samtools writes CRAM: with a reference outside and inside of the file and without, one sequence and
/// several in a slice, and all versions.
const LAYOUTS: [&str; 11] = [
    "version=3.0",
    "version=3.1",
    "version=3.0,no_ref=1",
    "version=3.0,embed_ref=1",
    "version=3.0,multi_seq_per_slice=1",
    "version=3.0,multi_seq_per_slice=1,no_ref=1",
    "version=3.1,seqs_per_slice=1",
    "version=2.1",
    "version=2.1,embed_ref=1",
    "version=2.1,multi_seq_per_slice=1",
    "version=2.1,seqs_per_slice=10,slices_per_container=3",
];

/// Runs samtools. Its standard error on failure.
pub(super) fn samtools(args: &[&str]) -> Result<(), String> {
    let output = Command::new("samtools").args(args).output().expect("samtools starts");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

pub(super) fn is_missing() -> bool {
    let missing = Command::new("samtools").arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: no samtools");
    }
    missing
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Bases of a reference sequence.
fn contig(seed: u64) -> String {
    let mut state = seed;
    let base = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"ACGT"[(state >> 33) as usize % 4])
    };
    (0..CONTIG_BASES).map(base).collect()
}

/// A reference of two sequences, and records aligned to them.
pub(super) struct Sample {
    pub(super) folder: Folder,
    pub(super) reference: PathBuf,
    contigs: [String; 2],
    pub(super) sam: String,
    records: usize,
}

impl Sample {
    pub(super) fn new() -> Sample {
        let folder = Folder::new();
        let contigs = [contig(3), contig(4)];
        let reference = folder.write("ref.fa", format!(">c1\n{}\n>c2\n{}\n", contigs[0], contigs[1]));
        samtools(&["faidx", text(&reference)]).expect("an index");
        let sam = format!("@HD\tVN:1.6\n@SQ\tSN:c1\tLN:{CONTIG_BASES}\n@SQ\tSN:c2\tLN:{CONTIG_BASES}\n");
        Sample { folder, reference, contigs, sam, records: 0 }
    }

    /// Bases of the reference from a position, counted from 1.
    pub(super) fn bases(&self, contig: usize, from: usize, length: usize) -> String {
        self.contigs[contig][from - 1..][..length].to_owned()
    }

    /// Adds a record with these flags, position, CIGAR, bases and qualities.
    pub(super) fn add(
        &mut self,
        flags: u16,
        contig: usize,
        position: usize,
        cigar: &str,
        seq: &str,
        qual: &str,
    ) -> &mut Self {
        self.records += 1;
        let (name, chromosome) =
            (self.records, if flags & 4 != 0 && position == 0 { "*" } else { ["c1", "c2"][contig] });
        writeln!(self.sam, "r{name}\t{flags}\t{chromosome}\t{position}\t60\t{cigar}\t*\t0\t0\t{seq}\t{qual}").unwrap();
        self
    }

    /// Adds ordinary records of both sequences, in turn.
    pub(super) fn add_ordinary(&mut self, count: usize) -> &mut Self {
        for i in 0..count {
            let mut seq = self.bases(i % 2, 50 + 7 * i, 80);
            if i % 3 == 0 {
                seq.replace_range(40..41, "N");
            }
            let flags = if i % 5 == 0 { 16 } else { 0 };
            self.add(flags, i % 2, 50 + 7 * i, "80M", &seq, &"F".repeat(80));
        }
        self
    }

    /// Writes the records as CRAM with options.
    pub(super) fn cram(&self, options: &str) -> PathBuf {
        let (sam, cram) = (self.folder.write("in.sam", &self.sam), self.folder.path().join("out.cram"));
        let format = format!("cram,{options}");
        samtools(&["view", "-O", &format, "-T", text(&self.reference), "-o", text(&cram), text(&sam)]).expect("CRAM");
        cram
    }

    pub(super) fn read(&self, file: &Path) -> Result<Vec<Read>, String> {
        reads(file, Some(&self.reference))
    }

    /// Fails unless the records, in each layout, are read as samtools reads them.
    #[track_caller]
    fn assert_as_samtools(&self) {
        for layout in LAYOUTS {
            let (cram, bam) = (self.cram(layout), self.folder.path().join("back.bam"));
            samtools(&["view", "-b", "-T", text(&self.reference), "-o", text(&bam), text(&cram)]).expect("BAM");
            let (expected, found) = (reads(&bam, None).expect("BAM is read"), self.read(&cram));
            let found = found.unwrap_or_else(|error| panic!("{layout}: {error}"));
            assert_eq!(found.len(), self.records, "{layout}");
            for (found, expected) in found.iter().zip(&expected) {
                let shown =
                    |read: &Read| read.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect();
                let (found, expected): (Vec<String>, Vec<String>) = (shown(found), shown(expected));
                assert_eq!(found, expected, "{layout}");
            }
        }
    }
}

/// Reads of a file in its order.
pub(super) fn reads(file: &Path, reference: Option<&Path>) -> Result<Vec<Read>, String> {
    let reference = CramReference::new(reference.map(Path::to_path_buf));
    let options = AlignedOptions { pair_mates: false, reference, ..AlignedOptions::default() };
    let stream = StreamLane::Aligned(AlignedInput::new(file, options));
    let (batches, error) = pull(&[stream], StreamOptions::new(BatchLimits::with_reads_per_batch(100)));
    let reads = batches.into_iter().flat_map(|batch| batch.3).collect();
    error.map_or(Ok(reads), |error| Err(error.to_string()))
}

#[test]
fn ordinary_records_are_read() {
    if !is_missing() {
        Sample::new().add_ordinary(300).assert_as_samtools();
        let mut sorted = Sample::new();
        for i in 0..100 {
            let seq = sorted.bases(0, 30 * i + 1, 70.min(CONTIG_BASES - 30 * i));
            sorted.add(0, 0, 30 * i + 1, &format!("{}M", seq.len()), &seq, &"F".repeat(seq.len()));
        }
        let seq = sorted.bases(0, CONTIG_BASES - 9, 10) + "GATTACA";
        sorted.add(0, 0, CONTIG_BASES - 9, "17M", &seq, &"F".repeat(17));
        sorted.assert_as_samtools();
    }
}

/// hts-specs 1200: an alignment may extend beyond the end of its reference sequence.
#[test]
fn reads_beyond_the_end_of_a_sequence_are_read() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    sample.add_ordinary(30);
    let at = CONTIG_BASES - 49;
    let seq = sample.bases(0, at, 50) + "ACGTACGTAC";
    sample.add(0, 0, at, "60M", &seq, &"F".repeat(60));
    sample.add(16, 0, at, "40M10I10M", &seq, &"F".repeat(60));
    let seq = sample.bases(1, CONTIG_BASES, 1) + &"GATTACA".repeat(8);
    sample.add(0, 1, CONTIG_BASES, "57M", &seq, &"F".repeat(57));
    sample.assert_as_samtools();
}

#[test]
fn records_without_bases_are_read() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    sample.add_ordinary(20).add(0, 0, 400, "30M", "*", "*").add(0, 0, 410, "*", "*", "*");
    sample.add(4, 0, 420, "*", "*", "*").add(0, 1, 430, "10S20M5H", "*", "*").add(4, 0, 0, "*", "*", "*");
    sample.assert_as_samtools();
    let mut alone = Sample::new();
    alone.add(0, 0, 400, "30M", "*", "*").add(0, 0, 410, "*", "*", "*").assert_as_samtools();
}

#[test]
fn operations_of_length_zero_are_read() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    sample.add_ordinary(20);
    for cigar in ["0M60M", "0S60M", "30M0I30M", "30M0D30M", "30M0N30M", "60M0S", "0H60M", "30M0P30M", "20M0I0D40M"] {
        let seq = sample.bases(0, 500, 60);
        sample.add(0, 0, 500, cigar, &seq, &"F".repeat(60));
    }
    sample.assert_as_samtools();
}

/// hts-specs 1003 to 1005: records without qualities among records that have them.
#[test]
fn missing_qualities_stay_missing() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    for (i, qual) in
        ["*", &"F".repeat(70), "*", &"!".repeat(70), &("!!".to_owned() + &"#".repeat(68))].iter().enumerate()
    {
        let seq = sample.bases(0, 600 + i, 70);
        sample.add(0, 0, 600 + i, "70M", &seq, qual);
    }
    sample.add(4, 0, 0, "*", "ACGTACGT", "*").add(4, 0, 0, "*", "ACGTACGT", "IIIIIIII");
    sample.assert_as_samtools();
    let cram = sample.cram("version=3.0");
    let missing: Vec<bool> = sample.read(&cram).expect("reads").iter().map(|read| read[3].is_empty()).collect();
    assert_eq!(missing, [true, false, true, false, false, true, false]);
}

/// A wrong reference is refused in slices of several sequences, too, which have no checksum of their own.
#[test]
fn a_wrong_reference_is_refused_in_all_layouts() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    sample.add_ordinary(60);
    let mut wrong = sample.contigs.clone();
    for position in 100..200 {
        wrong[1].replace_range(position..=position, "N");
    }
    let wrong = sample.folder.write("wrong.fa", format!(">c1\n{}\n>c2\n{}\n", wrong[0], wrong[1]));
    samtools(&["faidx", text(&wrong)]).expect("an index");
    for layout in LAYOUTS {
        let cram = sample.cram(layout);
        let read = reads(&cram, Some(&wrong));
        if layout.contains("no_ref") || layout.contains("embed_ref") {
            assert_eq!(read, sample.read(&cram), "{layout}: the reference is not used");
            continue;
        }
        let error = read.expect_err(layout);
        let reasons = ["was made with another reference (checksums differ", "has other bases than in the file (M5)"];
        assert!(reasons.iter().any(|reason| error.contains(reason)), "{layout}: {error}");
    }
}

/// Slices of several sequences have no checksum. Without those of the header a wrong reference is not noticed.
#[test]
fn a_reference_that_cannot_be_checked_is_refused() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    sample.add_ordinary(60);
    for (layout, is_checked) in [
        ("version=3.0,multi_seq_per_slice=1", false),
        ("version=3.0,multi_seq_per_slice=1,no_ref=1", true),
        ("version=3.0,multi_seq_per_slice=0,seqs_per_slice=1", true),
    ] {
        let cram = sample.cram(layout);
        let expected = sample.read(&cram).expect("reads");
        // The header as it was given has no M5.
        let header = sample.sam.lines().filter(|line| line.starts_with('@')).map(|line| line.to_owned() + "\n");
        let header = sample.folder.write("header.sam", header.collect::<String>());
        let output =
            Command::new("samtools").args(["reheader", text(&header), text(&cram)]).output().expect("samtools");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bare = sample.folder.write("bare.cram", output.stdout);
        match (sample.read(&bare), is_checked) {
            (Ok(reads), true) => assert_eq!(reads, expected, "{layout}"),
            (Err(error), false) => {
                assert!(error.contains("bare.cram: sequence \"c") && error.contains("has no M5"), "{error}");
            }
            (result, _) => panic!("{layout}: {result:?}"),
        }
    }
}

fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

/// Length of the container header, without its checksum, with which the bytes begin.
fn container_header_length(bytes: &[u8]) -> usize {
    (11..60).find(|length| crc(&bytes[..*length]) == bytes[*length..][..4]).expect("a header of a container")
}

/// Position of the first container after that of the file's header.
fn first_container(cram: &[u8]) -> usize {
    let start = 26;
    let length = i32::from_le_bytes(cram[start..][..4].try_into().unwrap()) as usize;
    start + container_header_length(&cram[start..]) + 4 + length
}

/// Sizes that are a lie end in an error that names the file. None of them panics, or takes memory that the file does
/// not have.
#[test]
fn lying_sizes_are_errors() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    sample.add_ordinary(60);
    let cram = std::fs::read(sample.cram("version=3.0")).unwrap();
    let start = first_container(&cram);
    let header_length = container_header_length(&cram[start..]);
    // Every byte of the header of the container is changed, with a correct checksum.
    for at in 0..header_length {
        for change in [1u8, 0x40, 0x7f, 0x80, 0xff] {
            let mut bad = cram.clone();
            bad[start + at] ^= change;
            let sum = crc(&bad[start..start + header_length]);
            bad[start + header_length..][..4].copy_from_slice(&sum);
            let file = sample.folder.write("bad.cram", &bad);
            // Counts that nothing depends on may be wrong.
            if let Err(error) = sample.read(&file) {
                assert!(error.contains("bad.cram: "), "byte {at}: {error}");
            }
        }
    }
    let mut long = cram.clone();
    long[start..start + 4].copy_from_slice(&i32::MAX.to_le_bytes());
    let file = sample.folder.write("bad.cram", &long);
    let error = sample.read(&file).expect_err("too long");
    assert!(error.contains("bad.cram: ") && error.contains("goes beyond the end of the file"), "{error}");
}

/// Few bytes of CRAM can become many bytes of reads: the data of a slice are limited.
#[test]
fn large_slices_are_refused() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    for i in 0..100 {
        // Bases of the reference without qualities take no bytes in the file.
        let seq = sample.bases(0, 1 + i, 2000.min(CONTIG_BASES - i));
        sample.add(0, 0, 1 + i, &format!("{}M", seq.len()), &seq, "*");
    }
    let cram = sample.cram("version=3.0");
    let read = |max_slice_bytes| {
        let reference = CramReference::new(Some(sample.reference.clone()));
        let options = AlignedOptions { pair_mates: false, reference, max_slice_bytes, ..AlignedOptions::default() };
        let lane = StreamLane::Aligned(AlignedInput::new(&cram, options));
        let (_, error) = pull(&[lane], StreamOptions::new(BatchLimits::with_reads_per_batch(100)));
        error.map(|error| error.to_string())
    };
    assert_eq!(read(1 << 20), None);
    // Less than the bases, and less than the blocks.
    for max_slice_bytes in [100_000, 100] {
        let error = read(max_slice_bytes).expect("too large");
        assert!(error.contains("out.cram: has a CRAM slice of") && error.contains("raise --memory"), "{error}");
    }
}

#[test]
fn damage_of_an_embedded_reference_is_found() {
    if is_missing() {
        return;
    }
    let mut sample = Sample::new();
    for i in 0..40 {
        let seq = sample.bases(0, 300 + 10 * i, 80);
        sample.add(0, 0, 300 + 10 * i, "80M", &seq, &"F".repeat(80));
    }
    let cram = std::fs::read(sample.cram("version=3.0,embed_ref=1,level=0")).unwrap();
    // The bases are stored as they are with level 0. The checksum of the block is corrected.
    let bases = sample.bases(0, 500, 40).into_bytes();
    let Some(at) = cram.windows(bases.len()).position(|window| window == bases) else {
        panic!("the reference is not stored as it is");
    };
    let mut bad = cram.clone();
    bad[at + 20] = if bad[at + 20] == b'A' { b'C' } else { b'A' };
    let (start, end) = block_around(&cram, at);
    let sum = crc(&bad[start..end]);
    bad[end..end + 4].copy_from_slice(&sum);
    let file = sample.folder.write("bad.cram", &bad);
    let error = sample.read(&file).expect_err("damaged");
    assert!(error.contains("has a damaged reference inside"), "{error}");
}

/// Start and end, without its checksum, of the block with the byte at `at`.
fn block_around(cram: &[u8], at: usize) -> (usize, usize) {
    let starts = (at.saturating_sub(CONTIG_BASES + 20)..at).rev();
    let ends = |start: usize| {
        let mut crc = flate2::Crc::new();
        (start..cram.len() - 4).find(move |end| {
            let found = *end > at && crc.sum().to_le_bytes() == cram[*end..*end + 4];
            crc.update(&cram[*end..=*end]);
            found
        })
    };
    starts.filter_map(|start| Some((start, ends(start)?))).find(|(start, _)| cram[*start] == 0).expect("a block")
}

#[test]
fn a_reference_may_be_compressed() {
    let folder = Folder::new();
    let text = b">one\nACGTTGCA\nacgt\n>two\nTTTT\n";
    let plain = folder.write("ref.fa", text);
    let packed = [("gz", gzip(text)), ("bz2", bzip2(text)), ("xz", xz(text)), ("zst", zstd(text))];
    let files = packed.map(|(end, packed)| folder.write(&format!("ref.fa.{end}"), packed));
    for path in [plain].into_iter().chain(files) {
        let reference = CramReference::new(Some(path.clone()));
        assert_eq!(reference.read_sequence(b"one", 12).unwrap(), b"ACGTTGCAACGT", "{}", path.display());
    }
}
