//! Checks that samtools and noodles read the same records from CRAM as from BAM.

mod sorting;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use genuma_align::sort::{CramFileWriter, CramVersion, SortedFileHeader};
use genuma_reads::CramReference;
use genuma_work::publish::AtomicFileSet;
use sorting::{How, Random, Records, samtools, sorter, text};

/// Two long sequences and many short ones; with stretches of N, letters of several bases, and lower case.
fn genome(random: &mut Random) -> Vec<(String, Vec<u8>)> {
    let mut sequences = Vec::new();
    let sizes = [("a".to_owned(), 200_000), ("b".to_owned(), 30_000)];
    for (name, size) in sizes.into_iter().chain((0..300).map(|i| (format!("few{i}"), 300 + i))) {
        let mut bases: Vec<u8> = (0..size).map(|_| b"ACGTacgt"[random.below(8)]).collect();
        (0..size / 500).for_each(|_| bases[random.below(size)] = b"RYMKN"[random.below(5)]);
        if size > 10_000 {
            bases[5_000..5_200].fill(b'N');
        }
        sequences.push((name, bases));
    }
    sequences
}

fn fasta(sequences: &[(String, Vec<u8>)], path: &Path) {
    let mut out = Vec::new();
    for (name, bases) in sequences {
        out.extend_from_slice(format!(">{name} of the test\n").as_bytes());
        bases.chunks(70).for_each(|line| out.extend([line, b"\n"].concat()));
    }
    fs::write(path, out).expect("a file");
}

/// A read of `length` bases at a position, its CIGAR, and the number of reference bases that it spans.
fn read(random: &mut Random, reference: &[u8], at: usize, kind: usize) -> (String, Vec<u8>, usize) {
    let ops: &[(usize, char)] = match kind {
        0..=5 => &[(100, 'M')],
        6 => &[(5, 'S'), (40, 'M'), (3, 'I'), (50, 'M'), (2, 'S')],
        7 => &[(30, 'M'), (4, 'D'), (60, 'M'), (10, 'S')],
        8 => &[(7, 'H'), (50, 'M'), (20, 'N'), (30, 'M'), (9, 'H')],
        9 => &[(20, 'M'), (1, 'I'), (1, 'P'), (2, 'I'), (20, 'M')],
        _ => &[(20, '='), (1, 'X'), (29, '=')],
    };
    let (mut bases, mut there, mut cigar) = (Vec::new(), at, String::new());
    for &(length, op) in ops {
        write!(cigar, "{length}{op}").expect("a string");
        match op {
            'M' | '=' | 'X' => {
                bases.extend(reference[there..there + length].to_ascii_uppercase());
                there += length;
            }
            'I' | 'S' => bases.extend((0..length).map(|_| b"ACGTN"[random.below(5)])),
            'D' | 'N' => there += length,
            _ => {}
        }
    }
    for base in &mut bases {
        if random.one_in(30) {
            *base = b"ACGTNRY"[random.below(7)];
        }
    }
    (cigar, bases, there - at)
}

const TAGS: [&str; 7] = [
    "NM:i:3\tRG:Z:one",
    "RG:Z:two\tNM:i:300\tMD:Z:10A5^AC6",
    "RG:Z:nowhere\tAS:i:-5\tXA:A:x",
    "XF:f:1.5\tXH:H:1AE3\tXI:i:-70000\tXZ:Z:",
    "B0:B:c,-128,127\tB1:B:S,65535\tB2:B:f,0.25\tB3:B:I\tRG:Z:one\tZZ:Z:last one",
    "XI:i:4294967295\tXJ:i:-32768",
    "",
];

/// A line of SAM with more operations than the CIGAR field of BAM can hold.
fn line_with_long_cigar(reference: &[u8]) -> String {
    let cigar = "1M1D".repeat(40_000);
    let bases: String = reference.iter().step_by(2).take(40_000).map(|&b| char::from(b)).collect();
    format!("long\t0\ta\t1\t60\t{cigar}\t*\t0\t0\t{}\t*\tNM:i:40000\n", bases.to_ascii_uppercase())
}

/// `bare`: some records have no qualities, some no bases.
fn made(random: &mut Random, sequences: &[(String, Vec<u8>)], templates: usize, bare: bool) -> String {
    let mut sam = "@HD\tVN:1.6\n".to_owned();
    for (name, bases) in sequences {
        writeln!(sam, "@SQ\tSN:{name}\tLN:{}", bases.len()).expect("a string");
    }
    sam += "@RG\tID:one\tSM:s\n@RG\tSM:s\tID:two\n@CO\tkept\n";
    for i in 0..templates {
        let number = match random.below(5) {
            0 => 2 + random.below(sequences.len() - 2),
            1 => 1,
            _ => 0,
        };
        let (name, bases) = &sequences[number];
        let room = bases.len().min(1_000) - 140;
        let start = random.below(bases.len() - room);
        let ats = [start, start + random.below(room - 140)];
        let made = ats.map(|at| {
            let kind = random.below(11);
            read(random, bases, at, kind)
        });
        let ends = [0, 1].map(|mate| ats[mate] + made[mate].2);
        let length = (ends[1] - ats[0]) as i64;
        // Proper pairs; pairs with a length or flags that do not follow from the positions; pairs with one or both
        // mates unmapped; single reads.
        let kind = random.below(10);
        let flags = match kind {
            0..=4 => [99, 147],
            5 => [163, 83],
            6 => [65, 129],
            7 => [99, 131],
            8 => [73, 133],
            _ => [0, 2064],
        };
        for mate in 0..2 {
            let (cigar, bases, _) = &made[mate];
            let bases = std::str::from_utf8(bases).expect("letters");
            let qualities: String = match random.below(6) {
                0 if bare => "*".to_owned(),
                _ => bases.bytes().map(|_| char::from(35 + random.below(30) as u8)).collect(),
            };
            let tags = random.pick(&TAGS);
            let (at, there) = (ats[mate] + 1, ats[1 - mate] + 1);
            let sign = if mate == 0 { length } else { -length };
            let sign = if random.one_in(20) { sign + 1 } else { sign };
            let mapping = random.below(61);
            let flag = flags[mate];
            let place = match (kind, mate) {
                (8, 1) => format!("{name}\t{there}\t0\t*\t=\t{there}\t0"),
                (8, 0) => format!("{name}\t{at}\t{mapping}\t{cigar}\t=\t{at}\t0"),
                (9, _) => format!("{name}\t{at}\t{mapping}\t{cigar}\t*\t0\t0"),
                _ => format!("{name}\t{at}\t{mapping}\t{cigar}\t=\t{there}\t{sign}"),
            };
            let line = format!("r{i}\t{flag}\t{place}\t{bases}\t{qualities}\t{tags}");
            writeln!(sam, "{}", line.trim_end()).expect("a string");
            if bare && flag & 4 == 0 && random.one_in(15) {
                // At another position, and without bases.
                let next = if flag & 1 == 1 { format!("{name}\t{at}") } else { "*\t0".to_owned() };
                writeln!(sam, "r{i}\t{}\tb\t77\t3\t{cigar}\t{next}\t0\t*\t*\tNM:i:1", flag | 256).expect("a string");
            }
        }
        if bare && random.one_in(40) {
            writeln!(
                sam,
                "n{i}\t77\t*\t0\t0\t*\t*\t0\t0\tACGTNRA\tIIIIIII\tRG:Z:one\nn{i}\t141\t*\t0\t0\t*\t*\t0\t0\t*\t*"
            )
            .expect("a string");
        }
    }
    if bare {
        sam += &line_with_long_cigar(&sequences[0].1);
    }
    sam
}

/// A line as CRAM can represent it: `M` instead of `=` and `X`, and the tag of a known read group after all other
/// tags.
fn as_cram(line: &str) -> String {
    let mut fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
    if fields[5] == "20=1X29=" {
        fields[5] = "50M".to_owned();
    }
    let (groups, mut rest): (Vec<String>, Vec<String>) =
        fields.into_iter().partition(|field| ["RG:Z:one", "RG:Z:two"].contains(&field.as_str()));
    rest.extend(groups);
    rest.join("\t")
}

const VERSIONS: [CramVersion; 2] = [CramVersion::V3_0, CramVersion::V3_1];

fn write(records: &Records, genome: &CramReference, path: &Path, how: &How, version: CramVersion) {
    let header = SortedFileHeader::from_sam_header(&records.header).expect("a header");
    let file = CramFileWriter::create(path, header, genome).expect("a file").with_version(version);
    let mut set = AtomicFileSet::default();
    let sorter = sorter(records, path.parent().expect("a folder"), how).expect("sorted");
    sorter.write_cram(file, &mut set).expect("written");
    set.publish_all().expect("published");
}

#[test]
fn other_programs_read_what_bam_would_have() {
    VERSIONS.into_iter().for_each(other_programs_read);
}

fn other_programs_read(version: CramVersion) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (cram, bam, reference) = (path("x.cram"), path("x.bam"), path("genome.fa"));
    let mut random = Random(5);
    let sequences = genome(&mut random);
    fasta(&sequences, &reference);
    let genome = CramReference::new(Some(reference.clone()));
    let records = Records::of(&made(&mut random, &sequences, 12_000, true), folder.path());
    write(&records, &genome, &cram, &How::default(), version);

    samtools(&["quickcheck", text(&cram)]);
    let minor = if version == CramVersion::V3_0 { 0 } else { 1 };
    assert_eq!(fs::read(&cram).expect("CRAM")[4..6], [3, minor]);
    samtools(&["sort", "--no-PG", "-o", text(&bam), text(&path("made.bam"))]);
    let view = |of: &Path, options: &[&str]| {
        let plain = ["view", "--input-fmt-option", "decode_md=0", "-T", text(&reference), text(of)];
        String::from_utf8(samtools(&[&plain, options].concat())).expect("text")
    };
    samtools(&["index", text(&bam)]);
    let expected: Vec<String> = view(&bam, &[]).lines().map(as_cram).collect();
    let all = view(&cram, &[]);
    for (ours, theirs) in all.lines().zip(&expected) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(all.lines().count(), expected.len());
    // Access by the index: to a container of one sequence, and to one of several.
    for region in ["a:100000-100300", "b", "few17", "few299:1-50", "*"] {
        let expected: Vec<String> = view(&bam, &[region]).lines().map(as_cram).collect();
        let found = view(&cram, &[region]);
        assert!(!expected.is_empty() && found.lines().eq(expected.iter()), "{region}");
    }
    // The MD5 sums of the sequences equal those of samtools.
    let sums = |text: Vec<u8>| -> Vec<String> {
        let text = String::from_utf8(text).expect("text");
        let fields = text.lines().filter(|line| line.starts_with("@SQ")).flat_map(|line| line.split('\t'));
        fields.filter(|field| field.starts_with("M5:")).map(str::to_owned).collect()
    };
    let dictionary = samtools(&["dict", text(&reference)]);
    assert_eq!(sums(samtools(&["view", "-H", text(&cram)])), sums(dictionary));

    // noodles-cram 0.102 returns reads without qualities or without bases in a form that is invalid in SAM.
    let records = Records::of(&made(&mut random, &sequences, 3_000, false), folder.path());
    write(&records, &genome, &cram, &How::default(), version);
    let (expected, found) = (view(&cram, &[]), by_noodles(&cram, &reference));
    assert_eq!(found.len(), expected.lines().count());
    for (ours, theirs) in found.iter().zip(expected.lines()) {
        // noodles reorders tags, uses the case of the reference bases, and gives unmapped reads the mapping quality
        // 255.
        let eleven = |line: &str| {
            let mut fields: Vec<String> = line.split('\t').take(11).map(str::to_owned).collect();
            fields[9].make_ascii_uppercase();
            if fields[5] == "*" {
                fields[4].clear();
            }
            fields
        };
        assert_eq!(eleven(ours), eleven(theirs));
    }
}

fn by_noodles(cram: &Path, reference: &Path) -> Vec<String> {
    // The index was made by samtools.
    let reader = noodles_fasta::io::indexed_reader::Builder::default().build_from_path(reference).expect("FASTA");
    let adapter = noodles_fasta::repository::adapters::IndexedReader::new(reader);
    let mut reader = noodles_cram::io::reader::Builder::default()
        .set_reference_sequence_repository(noodles_fasta::Repository::new(adapter))
        .build_from_path(cram)
        .expect("CRAM");
    let header = reader.read_header().expect("a header");
    let mut writer = noodles_sam::io::Writer::new(Vec::new());
    for record in reader.records(&header) {
        use noodles_sam::alignment::io::Write as _;
        writer.write_alignment_record(&header, &record.expect("a record")).expect("a line");
    }
    String::from_utf8(writer.into_inner()).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn the_same_bytes_whatever_the_threads_and_the_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut random = Random(6);
    let sequences = genome(&mut random);
    fasta(&sequences, &path("genome.fa"));
    let genome = CramReference::new(Some(path("genome.fa")));
    let records = Records::of(&made(&mut random, &sequences, 9_000, true), folder.path());
    let bytes = |how: &How, version| {
        write(&records, &genome, &path("x.cram"), how, version);
        [fs::read(path("x.cram")).expect("CRAM"), fs::read(path("x.cram.crai")).expect("its index")]
    };
    for version in VERSIONS {
        let expected = bytes(&How { threads: 1, ..How::default() }, version);
        for (threads, memory) in [(2, 1 << 26), (5, 100_000)] {
            assert!(bytes(&How { threads, memory, ..How::default() }, version) == expected, "{threads} threads");
        }
    }
}

#[test]
fn the_reference_has_to_be_the_one_of_the_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut random = Random(7);
    let mut sequences = genome(&mut random);
    let records = Records::of(&made(&mut random, &sequences, 50, true), folder.path());
    let failed = |genome: &CramReference| {
        let file = CramFileWriter::create(
            &path("x.cram"),
            SortedFileHeader::from_sam_header(&records.header).expect("a header"),
            genome,
        );
        let sorter = sorter(&records, folder.path(), &How::default()).expect("sorted");
        let said =
            sorter.write_cram(file.expect("a file"), &mut AtomicFileSet::default()).expect_err("an error").to_string();
        let left: Vec<_> = fs::read_dir(folder.path()).expect("the folder").flatten().map(|e| e.file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().contains("cram")), "{left:?}");
        said
    };
    sequences[1].1.pop();
    fasta(&sequences, &path("genome.fa"));
    let said = failed(&CramReference::new(Some(path("genome.fa"))));
    assert!(said.contains("has 29999 bases, but 30000 in the file"), "{said}");
    sequences.remove(1);
    fasta(&sequences, &path("genome.fa"));
    let said = failed(&CramReference::new(Some(path("genome.fa"))));
    assert!(said.contains("has no sequence"), "{said}");
    let said = failed(&CramReference::new(Some(path("none.fa"))));
    assert!(said.contains("none.fa"), "{said}");
}

/// Makes the name of the read with a number.
type NameMaker = dyn Fn(usize, &mut Random) -> String;

#[test]
fn read_names_and_tags_of_any_kind_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let mut random = Random(8);
    fasta(&genome(&mut random), &path("genome.fa"));
    let reference = CramReference::new(Some(path("genome.fa")));
    let kinds: [&NameMaker; 6] = [
        &|_, random| {
            let [lane, tile, x, y] = [4, 1578, 32_000, 37_000].map(|most| 1000 + random.below(most));
            format!("A00123:71:HXX5TDSXX:{}:{tile}:{x}:{y}", lane % 10)
        },
        &|i, _| format!("r{}", i / 2),
        &|i, _| format!("m54238_180901_011437/{}/ccs", 4_194_400 + 7 * i),
        &|i, _| format!("{}{i:012}.0", "0".repeat(i % 5)),
        &|_, random| (0..1 + random.below(60)).map(|_| char::from(b"ab019:_.%-"[random.below(10)])).collect(),
        // Too many parts for the tokeniser.
        &|i, _| format!("{}{i}", "a:".repeat(if i == 1500 { 120 } else { 20 })),
    ];
    for (kind, name) in kinds.into_iter().enumerate() {
        let mut sam = "@HD\tVN:1.6\n".to_owned();
        for i in 0..3_000 {
            let (number, name) = (random.below(100_000), name(i, &mut random));
            let tags = format!("x0:i:{}\tx1:Z:t{number}\tx2:B:S,{i},{number}", 70_000 + number);
            writeln!(sam, "{name}\t4\t*\t0\t0\t*\t*\t0\t0\tACGTA\tIIII#\t{tags}").expect("a string");
        }
        let records = Records::of(&sam, folder.path());
        write(&records, &reference, &path("x.cram"), &How::default(), CramVersion::V3_1);
        let lines = |file: &str| samtools(&["view", text(&path(file))]);
        samtools(&["sort", "--no-PG", "-o", text(&path("x.bam")), text(&path("made.bam"))]);
        assert!(lines("x.cram") == lines("x.bam"), "names of kind {kind}");
    }
}
