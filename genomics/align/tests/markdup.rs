//! Compares duplicate marking with `samtools fixmate -m | samtools sort | samtools markdup`, record by record.

mod sorting;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use genuma_align::sort::markdup::{MarkdupOptions, ReadGroupLibraries};
use sorting::{How, Random, Records, lines, samtools, sort, text};

const HEADER: &str = "@HD\tVN:1.6\tSO:unsorted\tGO:query\n@SQ\tSN:a\tLN:100000\n@SQ\tSN:b\tLN:100000\n\
                      @RG\tID:x\tSM:s\tLB:one\n@RG\tID:y\tSM:s\tLB:one\n@RG\tID:z\tSM:s\tLB:two\n";

/// A primary record that is being made.
#[derive(Clone)]
struct Read {
    sequence: &'static str,
    position: usize,
    cigar: String,
    bases: usize,
    reverse: bool,
    mapped: bool,
    failed: bool,
}

impl Read {
    /// A record at one of a few positions, so that duplicates are frequent, with all kinds of clips and gaps.
    fn random(random: &mut Random, spread: usize) -> Read {
        let mut cigar = String::new();
        let (mut bases, mut clipped) = (0, 0);
        let clips = |random: &mut Random, cigar: &mut String, bases: &mut usize| {
            let mut total = 0;
            for kind in [random.pick(&["H", "S"]), "S"] {
                if random.one_in(6) {
                    let n = 1 + random.below(4);
                    write!(cigar, "{n}{kind}").expect("a string");
                    *bases += if kind == "S" { n } else { 0 };
                    total += n;
                    if kind == "S" {
                        break;
                    }
                }
            }
            total
        };
        clipped += clips(random, &mut cigar, &mut bases);
        let n = 18 + random.below(3);
        bases += n;
        match random.below(8) {
            0 => {
                write!(cigar, "{}M2I{}M", n - 7, 5).expect("a string");
            }
            1 => {
                write!(cigar, "{}M2D{}M", n - 5, 5).expect("a string");
            }
            2 => {
                write!(cigar, "{}={}N{}X", n - 5, 1 + random.below(3), 5).expect("a string");
            }
            _ => write!(cigar, "{n}M").expect("a string"),
        }
        let mut tail = String::new();
        clips(random, &mut tail, &mut bases);
        // Hard clips are outside of soft clips.
        let (soft, hard): (Vec<&str>, Vec<&str>) =
            tail.split_inclusive(|c: char| c.is_alphabetic()).partition(|op| op.ends_with('S'));
        cigar.extend(soft.into_iter().chain(hard));
        Read {
            sequence: random.pick(&["a", "a", "b"]),
            position: 200 * (1 + random.below(spread)) + random.below(4) + clipped,
            cigar,
            bases,
            reverse: random.one_in(2),
            mapped: true,
            failed: false,
        }
    }

    fn line(&self, name: &str, flags: usize, mate: Option<&Read>, random: &mut Random) -> String {
        let mut flags = flags | if self.reverse { 16 } else { 0 } | if self.failed { 512 } else { 0 };
        let mut next = ("*".to_owned(), 0);
        if let Some(mate) = mate {
            flags |= 1 | if mate.reverse { 32 } else { 0 } | if mate.mapped { 0 } else { 8 };
            let at = if mate.mapped { mate } else { self };
            if at.mapped {
                next = (at.sequence.to_owned(), at.position);
            }
        }
        let at = if self.mapped {
            Some(self)
        } else {
            flags |= 4;
            mate.filter(|m| m.mapped)
        };
        let (sequence, position) = at.map_or(("*", 0), |r| (r.sequence, r.position));
        let (cigar, mapq) = if self.mapped { (&self.cigar[..], 60) } else { ("*", 0) };
        let qualities: String =
            (0..self.bases).map(|i| if i < 3 { random.pick(&["F", ":", "/", "#"]) } else { "F" }).collect();
        let bases: String = (0..self.bases).map(|_| random.pick(&["A", "C", "G", "T"])).collect();
        let group = random.pick(&["", "\tRG:Z:x", "\tRG:Z:y", "\tRG:Z:z", "\tXX:B:s,1,2\tRG:Z:z"]);
        format!(
            "{name}\t{flags}\t{sequence}\t{position}\t{mapq}\t{cigar}\t{}\t{}\t0\t{bases}\t{qualities}{group}\n",
            next.0, next.1
        )
    }
}

/// Whether some reads failed quality control.
#[derive(PartialEq)]
enum Failed {
    None,
    Some,
}

/// Templates of all kinds at few positions. The names are in random order.
fn made(random: &mut Random, templates: usize, spread: usize, failed: Failed) -> String {
    let mut sam = HEADER.to_owned();
    let mut before: Vec<[Read; 2]> = Vec::new();
    for i in 0..templates {
        let name = format!("{}{}:{i}", random.pick(&["r", "r1", "r9"]), random.below(12));
        let mut pair = [Read::random(random, spread), Read::random(random, spread)];
        if !before.is_empty() && random.one_in(2) {
            pair = before[random.below(before.len())].clone();
            if random.one_in(4) {
                pair.swap(0, 1);
            }
            if random.one_in(4) {
                pair[random.below(2)] = Read::random(random, spread);
            }
        }
        before.push(pair.clone());
        for read in &mut pair {
            read.failed = failed == Failed::Some && random.one_in(60);
        }
        let [mut read, mut mate] = pair;
        match random.below(10) {
            0 => {
                sam += &read.line(&name, 0, None, random);
            }
            kind => {
                read.mapped = kind != 1;
                mate.mapped = kind != 2 && (kind != 1 || random.one_in(2));
                for r in [&mut read, &mut mate] {
                    // An unmapped record has no strand.
                    r.reverse &= r.mapped;
                }
                let further = [&read, &mate].map(|r| r.mapped && random.one_in(5));
                // samtools searches for further records only if a tag says that there are some.
                let tag = if further.contains(&true) { "\tSA:Z:a,7,+,20M,60,0;\n" } else { "\n" };
                for (r, other, flags, further) in [(&read, &mate, 64, further[0]), (&mate, &read, 128, further[1])] {
                    sam += r.line(&name, flags, Some(other), random).trim_end();
                    sam += tag;
                    if further {
                        let flags = flags | [256, 2048, 2048 | 256][random.below(3)];
                        sam += &Read::random(random, spread).line(&name, flags, Some(other), random);
                    }
                }
            }
        }
    }
    sam
}

/// The records after `fixmate`, and the result of `sort | markdup`.
fn reference(sam: &str, folder: &Path, options: &[&str]) -> (Records, Vec<String>) {
    let [from, fixed, sorted, marked] = ["in.sam", "fixed.bam", "sorted.bam", "marked.bam"].map(|n| folder.join(n));
    fs::write(&from, sam).expect("a file");
    samtools(&["fixmate", "-m", "--no-PG", text(&from), text(&fixed)]);
    samtools(&["sort", "--no-PG", "-o", text(&sorted), text(&fixed)]);
    samtools(&[&["markdup", "--no-PG"], options, &[text(&sorted), text(&marked)]].concat());
    (Records::read(&fixed), lines(&marked))
}

#[track_caller]
fn assert_same(found: &[String], expected: &[String], what: &str) {
    if found == expected {
        return;
    }
    let mut wrong = String::new();
    for (f, e) in found.iter().zip(expected).filter(|(f, e)| f != e).take(10) {
        writeln!(wrong, "found    {f}\nexpected {e}").expect("a string");
    }
    panic!(
        "{what}: {} of {} records are not as samtools has them\n{wrong}",
        found.iter().zip(expected).filter(|(f, e)| f != e).count(),
        expected.len()
    );
}

#[test]
fn as_samtools_markdup() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut pairs, mut singles) = (0, 0);
    for seed in 0..60 {
        let mut random = Random(seed);
        let sam = made(&mut random, 20 + 10 * (seed as usize % 60), 1 + seed as usize % 6, Failed::Some);
        let (records, expected) = reference(&sam, folder.path(), &[]);
        let how = How { marking: Some(MarkdupOptions::default()), ..How::default() };
        let (path, summary) = sort(&records, folder.path(), &how);
        assert_same(&lines(&path), &expected, &format!("seed {seed}"));
        let marked = summary.duplicates.expect("counts");
        let duplicates = expected.iter().filter(|l| flags(l) & 1024 != 0).count() as u64;
        assert_eq!(marked.paired_duplicates + marked.single_duplicates, duplicates);
        pairs += marked.paired_duplicates;
        singles += marked.single_duplicates;
    }
    assert!(pairs > 1000 && singles > 300, "{pairs} {singles}");
}

#[test]
fn whole_templates_as_samtools_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut more = 0;
    for seed in 100..140 {
        let mut random = Random(seed);
        // samtools does not mark the further records of a mate that failed quality control, genuma does.
        let sam = made(&mut random, 20 + 10 * (seed as usize - 100), 1 + seed as usize % 6, Failed::None);
        let (records, expected) = reference(&sam, folder.path(), &["-S"]);
        let marking = Some(MarkdupOptions { mark_whole_template: true, ..MarkdupOptions::default() });
        let (path, summary) = sort(&records, folder.path(), &How { marking, ..How::default() });
        assert_same(&lines(&path), &expected, &format!("seed {seed}"));
        let marked = summary.duplicates.expect("counts");
        let duplicates = expected.iter().filter(|l| flags(l) & 1024 != 0).count() as u64;
        more += duplicates - marked.paired_duplicates - marked.single_duplicates;
    }
    assert!(more > 200, "{more}");
}

#[test]
fn libraries_are_kept_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let libraries = ReadGroupLibraries::parse_libraries_from_sam_header(HEADER);
    let marking =
        |libraries| How { marking: Some(MarkdupOptions { libraries, ..MarkdupOptions::default() }), ..How::default() };
    for seed in 200..220 {
        let sam = made(&mut Random(seed), 400, 2, Failed::Some);
        // A template belongs to one library; library 0 is that of reads without a read group.
        let library = |name: &str| name.bytes().map(usize::from).sum::<usize>() % 3;
        let with = |keep: &dyn Fn(usize) -> bool| -> String {
            let line = |l: &str| {
                let name = l.split('\t').next().expect("a name");
                let of = library(name);
                let bare = l.split("\tRG:Z:").next().expect("fields");
                // Tags may follow the read group.
                let after = l.split_once("\tSA:Z:").map_or(String::new(), |t| format!("\tSA:Z:{}", t.1));
                let bare = bare.split("\tSA:Z:").next().expect("fields");
                let group = ["", "\tRG:Z:x", "\tRG:Z:z"][of];
                let group = if of == 1 && name.len().is_multiple_of(2) { "\tRG:Z:y" } else { group };
                keep(of).then(|| format!("{bare}{group}{after}\n"))
            };
            let (head, lines): (Vec<&str>, Vec<&str>) = sam.lines().partition(|l| l.starts_with('@'));
            head.join("\n") + "\n" + &lines.into_iter().filter_map(line).collect::<String>()
        };
        let (records, _) = reference(&with(&|_| true), folder.path(), &[]);
        let (path, _) = sort(&records, folder.path(), &marking(Some(libraries.clone())));
        let together = lines(&path);
        for one in 0..3 {
            let (_, expected) = reference(&with(&|l| l == one), folder.path(), &[]);
            let of_one = |l: &&String| library(l.split('\t').next().expect("a name")) == one;
            let found: Vec<String> = together.iter().filter(of_one).cloned().collect();
            assert_same(&found, &expected, &format!("seed {seed}, library {one}"));
        }
        let (path, _) = sort(&records, folder.path(), &marking(None));
        assert!(lines(&path) != together);
    }
}

#[test]
fn copies_with_long_clips() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |name, position, cigar, quality: &str| {
        format!("{name}\t0\ta\t{position}\t60\t{cigar}\t*\t0\t0\t{}\t{}\n", "A".repeat(450), quality.repeat(450))
    };
    // samtools forgets earlier reads once it has moved on.
    let reads = [
        line("x", 1000, "450M", "F"),
        line("y", 1400, "400S50M", ":"),
        line("z", 1200, "200S250M", ":"),
        line("w", 1390, "390S60M", ":"),
    ];
    let sam = HEADER.to_owned() + &reads.concat();
    // samtools needs an option to search farther than 300 bases.
    let (records, near) = reference(&sam, folder.path(), &[]);
    let (_, far) = reference(&sam, folder.path(), &["-l", "1000"]);
    let how = How { marking: Some(MarkdupOptions::default()), ..How::default() };
    let (path, _) = sort(&records, folder.path(), &how);
    assert_same(&lines(&path), &far, "-l 1000");
    assert!(near != far);
}

/// A pair with one missing read is judged by the other read alone.
#[test]
fn reads_without_their_mates() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |name, flags, quality: &str| {
        format!("{name}\t{flags}\ta\t100\t60\t4M\t=\t300\t0\tACGT\t{}\n", quality.repeat(4))
    };
    let sam = format!("{HEADER}{}{}{}", line("x", 65, "5"), line("y", 129, "F"), line("z", 65 | 256, "F"));
    let how = How { marking: Some(MarkdupOptions::default()), ..How::default() };
    let (path, summary) = sort(&Records::of(&sam, folder.path()), folder.path(), &how);
    assert_eq!(lines(&path).iter().map(|l| flags(l)).collect::<Vec<_>>(), [65 | 1024, 129, 65 | 256]);
    let marked = summary.duplicates.expect("counts");
    assert_eq!((marked.single_reads, marked.single_duplicates, marked.paired_reads), (2, 1, 0));
}

#[test]
fn a_name_twice_is_two_templates() {
    let folder = tempfile::tempdir().expect("a folder");
    let line = |flags, quality: &str| format!("same\t{flags}\ta\t100\t60\t4M\t*\t0\t0\tACGT\t{}\n", quality.repeat(4));
    let sam = format!("{HEADER}{}{}{}", line(0, "5"), line(0, "F"), line(0, ":"));
    let how = How { marking: Some(MarkdupOptions::default()), ..How::default() };
    let (path, summary) = sort(&Records::of(&sam, folder.path()), folder.path(), &how);
    assert_eq!(summary.templates, 3);
    assert_eq!(lines(&path).iter().map(|l| flags(l)).collect::<Vec<_>>(), [1024, 0, 1024]);
}

fn flags(line: &str) -> usize {
    line.split('\t').nth(1).and_then(|f| f.parse().ok()).expect("flags")
}
