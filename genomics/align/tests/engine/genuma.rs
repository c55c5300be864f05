//! The engine `genuma`: its records are consistent with each other, with the reads and with the reference.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use genuma_align::engine::genuma::{GenumaEngineOptions, ScoringOptions, TOO_LONG_READS_LABEL, build_index};
use genuma_align::engine::{Engine, Error, GenumaEngine, ReadLayout, seal};
use genuma_align::sam::{parse_sam_line, split_bam_records};
use genuma_machine::simd_and_prefetch::SimdLevel;
use tempfile::TempDir;

use crate::data::{
    Dice, Read, answer, answer_in_parallel, blocks, genome, lines, pairs, revcomp, singles, write_fasta,
};

mod alt;

struct Bench {
    folder: TempDir,
    genome: Vec<(String, Vec<u8>)>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        Bench::of(genome(seed))
    }

    fn of(genome: Vec<(String, Vec<u8>)>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_fasta(&folder.path().join("ref.fa"), &genome);
        build_index(&folder.path().join("ref.fa"), &folder.path().join("ref.fa"), 2).unwrap();
        Bench { folder, genome }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn load(&self, options: GenumaEngineOptions) -> Result<GenumaEngine, Error> {
        GenumaEngine::load_index(&self.path("ref.fa"), &self.path("ref.fa"), options, 2)
    }

    /// The sequence with this name.
    fn sequence(&self, name: &str) -> &[u8] {
        &self.genome.iter().find(|(other, _)| other == name).unwrap().1
    }
}

/// A line of SAM.
#[derive(Debug)]
struct Line {
    name: String,
    flag: u16,
    contig: String,
    position: usize,
    quality: i32,
    cigar: String,
    next: (String, usize),
    length: i64,
    seq: String,
    tags: Vec<(String, String)>,
}

impl Line {
    fn new(line: &str) -> Line {
        let fields: Vec<&str> = line.split('\t').collect();
        let tag = |tag: &&str| (tag[..2].to_owned(), tag[5..].to_owned());
        let next = if fields[6] == "=" { fields[2] } else { fields[6] };
        Line {
            name: fields[0].into(),
            flag: fields[1].parse().unwrap(),
            contig: fields[2].into(),
            position: fields[3].parse().unwrap(),
            quality: fields[4].parse().unwrap(),
            cigar: fields[5].into(),
            next: (next.into(), fields[7].parse().unwrap()),
            length: fields[8].parse().unwrap(),
            seq: fields[9].into(),
            tags: fields[11..].iter().map(tag).collect(),
        }
    }

    fn is(&self, bit: u16) -> bool {
        self.flag & bit != 0
    }

    fn is_primary(&self) -> bool {
        !self.is(0x900)
    }

    fn tag(&self, name: &str) -> Option<&str> {
        let mut all = self.tags.iter().filter(|(tag, _)| tag == name);
        let first = all.next().map(|(_, text)| text.as_str());
        assert!(all.next().is_none(), "{name} stands twice: {self:?}");
        first
    }

    fn number(&self, name: &str) -> i32 {
        self.tag(name).unwrap().parse().unwrap()
    }

    fn place(&self) -> (String, usize) {
        (self.contig.clone(), self.position)
    }

    fn operations(&self) -> Vec<(usize, char)> {
        let mut n = 0;
        let mut all = Vec::new();
        for letter in self.cigar.chars().filter(|_| self.cigar != "*") {
            match letter.to_digit(10) {
                Some(digit) => n = 10 * n + digit as usize,
                None => all.push((std::mem::take(&mut n), letter)),
            }
        }
        all
    }

    /// The entry for this record in the `SA` tag of another record of the read.
    fn as_piece(&self) -> String {
        let strand = if self.is(0x10) { '-' } else { '+' };
        let cigar = self.cigar.replace('H', "S");
        format!("{},{},{strand},{cigar},{},{}", self.contig, self.position, self.quality, self.number("NM"))
    }
}

/// Asserts that the CIGAR, bases and tags of a record match the read and the reference.
fn check_record(bench: &Bench, scores: &ScoringOptions, read: &Read, line: &Line) {
    let seq = if line.is(0x10) { revcomp(&read.seq) } else { read.seq.clone() };
    if line.is(0x4) {
        assert_eq!((line.cigar.as_str(), line.quality, line.is(0x2)), ("*", 0, false));
        return;
    }
    let operations = line.operations();
    let count = |kinds: &str| operations.iter().filter(|o| kinds.contains(o.1)).map(|o| o.0).sum::<usize>();
    assert_eq!(count("MISH"), seq.len());
    assert!(operations.iter().all(|o| o.0 > 0) && operations.windows(2).all(|two| two[0].1 != two[1].1));
    let reference = bench.sequence(&line.contig);
    assert!(line.position > 0 && line.position - 1 + count("MD") <= reference.len());
    let (mut at, mut target, mut equal, mut md) = (0, line.position - 1, 0, String::new());
    // Score of the path so far without its beginning, where that makes it higher; and the highest one.
    let (mut score, mut best, mut edit_distance, mut shown) = (0, 0, 0, Vec::new());
    for (n, kind) in operations {
        match kind {
            'M' => {
                for _ in 0..n {
                    let (letter, there) = (seq[at], reference[target]);
                    if letter == there {
                        equal += 1;
                    } else {
                        md += &format!("{equal}{}", there as char);
                        (equal, edit_distance) = (0, edit_distance + 1);
                    }
                    score += match (letter, there) {
                        (b'N', _) => -1,
                        _ if letter == there => scores.match_score,
                        _ => -scores.mismatch_penalty,
                    };
                    score = score.max(0);
                    best = best.max(score);
                    (at, target) = (at + 1, target + 1);
                }
            }
            'D' => {
                md += &format!("{equal}^{}", String::from_utf8_lossy(&reference[target..target + n]));
                (target, equal, edit_distance) = (target + n, 0, edit_distance + n);
                score = (score - scores.gap_open[0] - n as i32 * scores.gap_extend[0]).max(0);
            }
            'I' => {
                (at, edit_distance) = (at + n, edit_distance + n);
                score = (score - scores.gap_open[1] - n as i32 * scores.gap_extend[1]).max(0);
            }
            _ => at += n,
        }
        if kind != 'H' && kind != 'D' {
            shown.extend_from_slice(&seq[at - n..at]);
        }
    }
    md += &equal.to_string();
    assert_eq!((line.tag("MD"), line.number("NM")), (Some(md.as_str()), edit_distance as i32));
    // The mapper replaces ambiguous bases of the reference by random ones.
    let ambiguous_ranges = reference[line.position - 1..target].contains(&b'N');
    // With gaps, it may be the score of a part without gaps on another path.
    let gapped = line.cigar.contains(['I', 'D']);
    let fits = line.number("AS") == best || gapped && line.number("AS") > best;
    assert!(ambiguous_ranges || fits, "AS is {best}");
    assert!(line.number("AS") >= scores.min_score);
    if line.seq != "*" || line.is_primary() {
        let shown = if shown.is_empty() { "*".into() } else { String::from_utf8(shown).unwrap() };
        assert_eq!(line.seq, shown);
    }
}

/// Asserts that the records of a template, one or two reads, are consistent.
fn check_template(bench: &Bench, options: &GenumaEngineOptions, reads: &[Read], lines: &[Line]) {
    let of =
        |mate: usize| lines.iter().filter(move |line| reads.len() == 1 || line.is(if mate == 0 { 0x40 } else { 0x80 }));
    let primary = |mate: usize| of(mate).find(|line| line.is_primary()).unwrap();
    for (mate, read) in reads.iter().enumerate() {
        let own = primary(mate);
        assert_eq!(of(mate).filter(|line| line.is_primary()).count(), 1);
        for line in of(mate) {
            assert_eq!((&line.name, line.is(0x1)), (&read.name, reads.len() == 2));
            check_record(bench, &options.scores, read, line);
            assert!(!line.is(0x800) || !options.supplementary_as_secondary && !line.is(0x100));
            if reads.len() == 1 {
                assert_eq!((line.next.clone(), line.length), (("*".into(), 0), 0));
                assert!(!line.is(0x2 | 0x8 | 0x20 | 0x40 | 0x80));
                continue;
            }
            let other = primary(1 - mate);
            let there = if other.is(0x4) { own.place() } else { other.place() };
            assert_eq!(line.next, there);
            assert_eq!((line.is(0x8), line.is(0x20)), (other.is(0x4), other.is(0x10)));
            let mapped = !other.is(0x4);
            assert_eq!(line.tag("MC"), mapped.then_some(other.cigar.as_str()));
            assert_eq!(line.tag("MQ"), mapped.then_some(other.quality.to_string()).as_deref());
            if line.is(0x4) {
                assert_eq!(line.place(), if mapped { other.place() } else { ("*".into(), 0) });
            }
            assert!(line.is(0x4) || line.is(0x2) == own.is(0x2));
            assert!(mapped && line.contig == other.contig || line.length == 0);
        }
        // The `SA` tag of each segment lists all others.
        let pieces: Vec<&Line> = of(mate).filter(|line| line.tag("XS").is_some()).collect();
        for piece in &pieces {
            let named: BTreeSet<&str> = piece.tag("SA").unwrap_or("").split_terminator(';').collect();
            let others: BTreeSet<String> =
                pieces.iter().filter(|other| !std::ptr::eq(**other, *piece)).map(|other| other.as_piece()).collect();
            assert!(named.iter().copied().eq(others.iter().map(String::as_str)), "{named:?}, {others:?}");
        }
    }
    if let [_, _] = reads {
        let (one, two) = (primary(0), primary(1));
        assert_eq!(one.length + two.length, 0);
        assert_eq!(one.is(0x2), two.is(0x2));
        assert!(!one.is(0x2) || one.contig == two.contig);
    }
}

/// Maps reads in batches of many sizes and checks all records.
fn check(bench: &Bench, options: GenumaEngineOptions, reads: &[Read], layout: ReadLayout) -> Vec<Line> {
    let mut engine = bench.load(options.clone()).unwrap();
    let whole = answer(&engine, &blocks(&engine, reads, layout, 1_000_000));
    for templates in [1, 200] {
        let blocks = blocks(&engine, reads, layout, templates);
        assert!(answer(&engine, &blocks) == whole, "pieces of {templates}");
        assert!(answer_in_parallel(&engine, &blocks) == whole, "pieces of {templates}, three threads");
    }
    let text = lines(&engine, &whole);
    for (line, record) in text.iter().zip(split_bam_records(&whole)) {
        // In SAM text, a single quality `*` means missing qualities.
        if line.split('\t').nth(9).is_some_and(|seq| seq.len() == 1) {
            continue;
        }
        let mut parsed = Vec::new();
        parse_sam_line(line.as_bytes(), engine.contigs(), &mut parsed).unwrap();
        assert_eq!(parsed, record.unwrap(), "made from {line}");
    }
    for &vectors in SimdLevel::available_simd_levels() {
        engine = engine.with_simd_level(vectors);
        assert!(answer(&engine, &blocks(&engine, reads, layout, 90)) == whole, "{vectors:?}");
    }
    let all: Vec<Line> = text.iter().map(|line| Line::new(line)).collect();
    let mut templates = reads.chunks(if layout == ReadLayout::Single { 1 } else { 2 });
    for lines in all.chunk_by(|a, b| a.name == b.name) {
        let reads = templates.next().unwrap();
        let checked = std::panic::catch_unwind(|| check_template(bench, &options, reads, lines));
        assert!(checked.is_ok(), "{layout:?}, {options:?}: {lines:#?}");
    }
    assert!(templates.next().is_none(), "every template has records");
    all
}

#[test]
fn the_records_of_a_pair_fit_together_in_pieces_of_any_size() {
    let bench = Bench::new(41);
    let reads = pairs(&bench.genome, 3000, 42);
    let all = check(&bench, GenumaEngineOptions::default(), &reads, ReadLayout::Paired);
    let count = |bit| all.iter().filter(|line| line.is(bit)).count();
    assert!(count(0x2) > reads.len() / 2, "{} are proper", count(0x2));
    let [pieces, unmapped, secondary] = [0x800, 0x4, 0x100].map(count);
    assert!(pieces > 10 && unmapped > 50 && secondary == 0, "{pieces}, {unmapped}, {secondary}");
    check(&bench, GenumaEngineOptions::default(), &reads[..2000], ReadLayout::Interleaved);
    // With few pairs the insert size is unknown.
    for few in [0, 1, 9] {
        let few = check(&bench, GenumaEngineOptions::default(), &reads[..2 * few], ReadLayout::Paired);
        assert!(few.iter().all(|line| !line.is(0x2)));
    }
}

#[test]
fn the_records_of_single_reads_of_all_lengths_fit_together() {
    let bench = Bench::new(43);
    let mut reads = singles(&bench.genome, 44);
    reads.retain(|read| read.seq.len() <= 2000 && !read.seq.contains(&b'U'));
    check(&bench, GenumaEngineOptions::default(), &reads, ReadLayout::Single);
}

#[test]
fn options_change_what_they_are_for() {
    let bench = Bench::new(45);
    let reads = pairs(&bench.genome, 600, 46);
    let mapped = |options| check(&bench, options, &reads, ReadLayout::Paired);
    let count = |lines: &[Line], bit| lines.iter().filter(|line| line.is(bit)).count();
    let plain = mapped(GenumaEngineOptions::default());
    let secondary = mapped(GenumaEngineOptions { supplementary_as_secondary: true, ..GenumaEngineOptions::default() });
    assert_eq!((count(&secondary, 0x100), count(&secondary, 0x800)), (count(&plain, 0x800), 0));
    let soft = mapped(GenumaEngineOptions { soft_clip_supplementary: true, ..GenumaEngineOptions::default() });
    assert!(soft.iter().all(|line| !line.cigar.contains('H')));
    let all = mapped(GenumaEngineOptions { report_all: true, ..GenumaEngineOptions::default() });
    assert!(count(&all, 0x100) > 0 && all.iter().all(|line| line.tag("XA").is_none()));
    assert!(plain.iter().any(|line| line.tag("XA").is_some()));
    let unnamed = mapped(GenumaEngineOptions { max_xa_placements: [0; 2], ..GenumaEngineOptions::default() });
    assert!(unnamed.iter().all(|line| line.tag("XA").is_none()));
    let tagged = mapped(GenumaEngineOptions {
        copy_comments: true,
        read_groups: vec!["lane".into()],
        ..GenumaEngineOptions::default()
    });
    assert!(tagged.iter().all(|line| line.tag("RG") == Some("lane") && line.tag("BC").is_some()));
    for scores in [
        ScoringOptions { min_score: 0, ..ScoringOptions::default() },
        ScoringOptions { clip_penalty: [100; 2], gap_open: [2, 1], min_score: 50, ..ScoringOptions::default() },
        ScoringOptions {
            match_score: 2,
            mismatch_penalty: 3,
            gap_open: [4, 6],
            gap_extend: [2, 1],
            clip_penalty: [0; 2],
            unpaired_penalty: 5,
            min_score: 40,
        },
    ] {
        mapped(GenumaEngineOptions { scores, report_all: true, ..GenumaEngineOptions::default() });
    }
}

#[test]
fn an_index_that_is_not_whole_or_of_another_reference_is_refused() {
    let bench = Bench::new(47);
    let refused = |what: &[&str]| match bench.load(GenumaEngineOptions::default()).map(drop) {
        Err(error) => {
            let said = error.to_string();
            assert!(what.iter().all(|what| said.contains(what)), "{said}: {what:?}");
        }
        Ok(()) => panic!("not refused: {what:?}"),
    };
    let path = bench.path("ref.fa.gnm");
    let seal = seal::seal_path(&path);
    let [whole, sealed, fasta] = [&path, &seal, &bench.path("ref.fa")].map(|path| fs::read(path).unwrap());
    let mut dice = Dice(48);
    let random: Vec<usize> = (0..20).map(|_| dice.roll(whole.len())).collect();
    for at in (0..12).map(|i| i * 8).chain(random).chain([whole.len() - 1]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << dice.roll(8);
        fs::write(&path, bytes).unwrap();
        refused(&["ref.fa.gnm", "damaged: its bytes changed since it was made", "genuma index"]);
    }
    for bytes in [&whole[..whole.len() - 1], &whole[..100], &[], &[&whole[..], &[0]].concat()] {
        fs::write(&path, bytes).unwrap();
        refused(&["ref.fa.gnm", "genuma index"]);
    }
    fs::write(&path, &whole).unwrap();
    bench.load(GenumaEngineOptions::default()).unwrap();

    fs::remove_file(&seal).unwrap();
    refused(&["ref.fa.gnm.seal is missing", "genuma index"]);
    let text = String::from_utf8(sealed.clone()).unwrap();
    for (from, to) in [("engine genuma", "engine others"), ("file ref.fa.gnm", "file ref.fa.xyz"), ("seal 2", "seal 3")]
    {
        assert!(text.contains(from), "{text}");
        fs::write(&seal, text.replace(from, to)).unwrap();
        refused(&["ref.fa.gnm", "genuma index"]);
    }
    fs::write(&seal, &sealed).unwrap();

    write_fasta(&bench.path("ref.fa"), &genome(49));
    refused(&["ref.fa.gnm", "not an index of", "genuma index"]);
    // Without the reference file the index is not compared, but it is complete.
    fs::remove_file(bench.path("ref.fa")).unwrap();
    bench.load(GenumaEngineOptions::default()).unwrap();
    fs::write(bench.path("ref.fa"), fasta).unwrap();
    fs::remove_file(&path).unwrap();
    refused(&["ref.fa.gnm", "no index; make it with `genuma index "]);
}

#[test]
fn an_index_is_the_same_whatever_the_threads_and_a_bad_reference_is_not_indexed() {
    let bench = Bench::new(50);
    let made = |prefix: &str, threads| {
        build_index(&bench.path("ref.fa"), &bench.path(prefix), threads).unwrap();
        fs::read(bench.path(prefix).with_extension("gnm")).unwrap()
    };
    let whole = fs::read(bench.path("ref.fa.gnm")).unwrap();
    assert!(made("one", 1) == whole && made("five", 5) == whole);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ref.fa");
    for (text, what) in [("", "empty"), ("ACGT\n", ">"), (">a\n>b\nACGT\n", "no bases"), (">a\nAC!T\n", "'!'")] {
        fs::write(&path, text).unwrap();
        let error = build_index(&path, &path, 1).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("ref.fa"), "{text:?}: {error}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().map(|f| f.file_name()).collect();
    assert_eq!(left, ["ref.fa"]);
}

#[test]
fn a_read_that_cannot_be_mapped_or_written_is_named() {
    let bench = Bench::new(51);
    let engine = bench.load(GenumaEngineOptions { copy_comments: true, ..GenumaEngineOptions::default() }).unwrap();
    let fault = |read: Read| {
        let pieces = blocks(&engine, &[read], ReadLayout::Single, 1);
        let (mut state, mut drafts, mut out) = (engine.new_worker_state(), Vec::new(), Vec::new());
        engine.align_block(&mut state, &pieces[0], &mut drafts, &mut out).map_err(|error| error.to_string())
    };
    let read = |n: usize| Read {
        name: format!("read{n}"),
        seq: bench.genome[0].1[5000..5000 + n].to_vec(),
        qual: vec![b'I'; n],
        ..Read::default()
    };
    assert_eq!(fault(read(2000)), Ok(()));
    let said = fault(Read { comment: "1:N:0:ACGT".into(), ..read(150) }).unwrap_err();
    assert!(said.contains("read150") && said.contains("its comment cannot be copied"), "{said}");
    let said = fault(Read { name: "n".repeat(255), ..read(150) }).unwrap_err();
    assert!(said.contains("255 bytes"), "{said}");
}

/// Reads that are too long for the mapper are unmapped and counted; their mates and neighbours are mapped as without
/// them.
#[test]
fn reads_that_are_too_long_are_unmapped_and_counted() {
    let bench = Bench::new(52);
    let engine = bench.load(GenumaEngineOptions::default()).unwrap();
    let mut reads = pairs(&bench.genome, 300, 53);
    let long: Vec<usize> = vec![0, 201, 400, 401];
    for &at in &long {
        let seq = bench.genome[0].1[7000 + at..10_000 + 2 * at].to_vec();
        reads[at] = Read { qual: vec![b'I'; seq.len()], seq, ..reads[at].clone() };
    }
    let (mut state, mut drafts, mut out) = (engine.new_worker_state(), Vec::new(), Vec::new());
    for block in blocks(&engine, &reads, ReadLayout::Paired, 50) {
        engine.align_block(&mut state, &block, &mut drafts, &mut out).unwrap();
    }
    assert_eq!(
        engine.skipped_reads(&state).iter().find(|(kind, _)| *kind == TOO_LONG_READS_LABEL),
        Some(&(TOO_LONG_READS_LABEL, 4))
    );
    let all: Vec<Line> = lines(&engine, &out).iter().map(|line| Line::new(line)).collect();
    for (at, read) in reads.iter().enumerate() {
        let of_mate = if at % 2 == 0 { 0x40 } else { 0x80 };
        let own = all.iter().find(|line| line.name == read.name && line.is(of_mate) && line.is_primary()).unwrap();
        check_record(&bench, &ScoringOptions::default(), read, own);
        assert_eq!(own.seq.len().max(1), read.seq.len().max(1), "{own:?}");
        assert!(!long.contains(&at) || own.is(0x4), "{own:?}");
    }
    let mate = all.iter().find(|line| line.name == reads[201].name && line.is(0x40)).unwrap();
    assert!(!mate.is(0x4) && mate.is(0x8), "{mate:?}");
}
