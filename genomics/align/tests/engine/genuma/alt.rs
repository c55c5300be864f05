//! ALT contigs: checks the records and compares them with bwa mem.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::data::write_reads;
use crate::report_skipped_test;

/// A chromosome with a repeat, two alternative forms of 40 kbp of it, one of them reverse-complemented, and a unique
/// sequence; all but the first are ALT contigs.
fn bench(seed: u64) -> Bench {
    let mut dice = Dice(seed);
    let mut chromosome = dice.bases(150_000);
    chromosome.copy_within(30_000..34_000, 120_000);
    let other = |dice: &mut Dice, rate| dice.copy(&chromosome[20_000..60_000], rate);
    let near = other(&mut dice, 100);
    let far = revcomp(&other(&mut dice, 40));
    let own = dice.bases(5000);
    let named = [("chr1", chromosome), ("chr1_near_alt", near), ("chr1_far_alt", far), ("HLA*01:02", own)];
    let bench = Bench::of(named.map(|(name, seq)| (name.to_owned(), seq)).into());
    let names: Vec<&str> = bench.genome[1..].iter().map(|(name, _)| name.as_str()).collect();
    fs::write(bench.path("ref.fa.alt"), format!("@HD\tVN:1.6\n{}\t0\tchr1\t20001\n", names.join("\t0\tchr1\n")))
        .unwrap();
    bench
}

/// Pairs of 2×150 bp from all contigs, equally many from the part with alternative forms and from each form.
fn reads(bench: &Bench, n: usize, seed: u64) -> Vec<Read> {
    let mut dice = Dice(seed);
    let mut reads = Vec::new();
    for i in 0..n {
        let seq = match dice.roll(8) {
            0 => &bench.genome[0].1[..],
            1..4 => &bench.genome[0].1[20_000..60_000],
            4 | 5 => &bench.genome[1].1[..],
            6 => &bench.genome[2].1[..],
            _ => &bench.genome[3].1[..],
        };
        let insert = 250 + (0..6).map(|_| dice.roll(50)).sum::<usize>();
        let at = dice.roll(seq.len() - insert);
        let fragment = dice.copy(&seq[at..at + insert], 400);
        let mut mates = [fragment[..150].to_vec(), revcomp(&fragment[fragment.len() - 150..])];
        mates.rotate_left(dice.roll(2));
        let read = |seq: Vec<u8>| Read { name: format!("p{i}"), qual: vec![b'I'; seq.len()], seq, ..Read::default() };
        reads.extend(mates.map(read));
    }
    reads
}

fn is_alt(line: &Line) -> bool {
    line.contig != "chr1"
}

#[test]
fn records_tell_of_alt_contigs() {
    let bench = bench(61);
    let reads = reads(&bench, 1200, 62);
    let engine = bench.load(GenumaEngineOptions::default()).unwrap();
    let header = engine.contigs().format_sq_header_lines();
    let marked: Vec<bool> = header.lines().map(|line| line.ends_with("\tAH:*")).collect();
    assert_eq!(marked, [false, true, true, true]);

    let all = check(&bench, GenumaEngineOptions::default(), &reads, ReadLayout::Paired);
    let mut better = 0;
    for lines in all.chunk_by(|a, b| a.name == b.name && (a.flag & 0xc0) == (b.flag & 0xc0)) {
        let [first, rest @ ..] = lines else { panic!("a read without a record") };
        match rest {
            [] => assert_eq!(first.tag("pa"), None),
            [alt] => {
                assert!(!is_alt(first) && is_alt(alt) && alt.is(0x800), "{lines:?}");
                assert!(alt.number("AS") > first.number("AS") && !alt.cigar.contains('H'));
                assert_eq!((alt.tag("pa"), first.tag("XA")), (None, None));
                let share = f64::from(first.number("AS")) / f64::from(alt.number("AS"));
                assert!((first.tag("pa").unwrap().parse::<f64>().unwrap() - share).abs() < 0.00051);
                // A worse placement is listed in the record of the best one.
                assert!(
                    share < 0.8
                        || alt.tag("XA").unwrap().contains(&format!("chr1,{}", if first.is(0x10) { '-' } else { '+' }))
                );
                better += 1;
            }
            more => panic!("{more:?}"),
        }
    }
    assert!(better > 500, "{better}");

    let count = |lines: &[Line], what: &dyn Fn(&Line) -> bool| lines.iter().filter(|line| what(line)).count();
    let secondary = check(
        &bench,
        GenumaEngineOptions { supplementary_as_secondary: true, ..GenumaEngineOptions::default() },
        &reads,
        ReadLayout::Paired,
    );
    assert_eq!((count(&secondary, &|line| line.is(0x100)), count(&secondary, &|line| line.is(0x800))), (better, 0));
    let every = check(
        &bench,
        GenumaEngineOptions { report_all: true, ..GenumaEngineOptions::default() },
        &reads,
        ReadLayout::Paired,
    );
    assert!(count(&every, &|line| line.is(0x100)) > 0);
    assert!(every.iter().all(|line| !(line.is(0x100) && is_alt(line))));
    let alone: Vec<Read> =
        (reads.iter().enumerate()).map(|(i, read)| Read { name: format!("s{i}"), ..read.clone() }).collect();
    let single = check(&bench, GenumaEngineOptions::default(), &alone, ReadLayout::Single);
    assert!(count(&single, &|line| line.tag("pa").is_some()) > 500);

    let ignored = |options| -> Vec<String> {
        let engine = bench.load(options).unwrap();
        assert!(!engine.contigs().format_sq_header_lines().contains("AH"));
        lines(&engine, &answer(&engine, &blocks(&engine, &reads, ReadLayout::Paired, 1000)))
    };
    let asked = ignored(GenumaEngineOptions { ignore_alt: true, ..GenumaEngineOptions::default() });
    fs::remove_file(bench.path("ref.fa.alt")).unwrap();
    assert!(ignored(GenumaEngineOptions::default()) == asked && asked.iter().all(|line| !line.contains("\tpa:f:")));
}

#[test]
fn a_list_of_alt_contigs_that_is_none_is_refused() {
    let bench = bench(63);
    let said = |text: &[u8]| {
        fs::write(bench.path("ref.fa.alt"), text).unwrap();
        bench
            .load(GenumaEngineOptions::default())
            .map(|engine| engine.contigs().format_sq_header_lines())
            .map_err(|e| e.to_string())
    };
    let error = said(b"chr1_near_alt\n>chr1\nACGT\n").unwrap_err();
    assert!(error.contains("ref.fa.alt: line 2 does not begin with the name of an ALT contig"), "{error}");
    assert!(said(b"\x1f\x8b\x08\x00").unwrap_err().contains("line 1"));
    // Names that the reference does not have are ignored, as in bwa.
    assert_eq!(said(b"chr1_near_alt\nnobody\t0\n").unwrap().matches("AH:*").count(), 1);
    assert!(!said(b"").unwrap().contains("AH"));
    fs::remove_file(bench.path("ref.fa.alt")).unwrap();
    fs::create_dir(bench.path("ref.fa.alt")).unwrap();
    assert!(bench.load(GenumaEngineOptions::default()).map(drop).unwrap_err().to_string().contains("ref.fa.alt"));
}

#[test]
fn bwa_says_the_same_of_reads_that_stand_on_alt_contigs() {
    let bwa = Path::new("bwa");
    // Without a command, bwa prints its usage and fails.
    if Command::new(bwa).output().is_err() {
        return report_skipped_test("bwa_says_the_same_of_reads_that_stand_on_alt_contigs", "bwa is not installed");
    }
    let bench = bench(65);
    let folder = bench.folder.path();
    run_peer(bwa, &["index", "ref.fa"], folder);
    let reads = reads(&bench, 2500, 66);
    let engine = bench.load(GenumaEngineOptions::default()).unwrap();
    for layout in [ReadLayout::Paired, ReadLayout::Single] {
        let ours = lines(&engine, &answer(&engine, &blocks(&engine, &reads, layout, 1000)));
        let files = write_reads(folder, &reads, layout);
        let files = files.iter().map(|path| path.to_str().unwrap());
        let arguments: Vec<&str> = ["mem", "ref.fa"].into_iter().chain(files).collect();
        let theirs = String::from_utf8(run_peer(bwa, &arguments, folder)).unwrap();
        let sorted = |lines: Vec<&str>| {
            let mut of: Vec<Vec<Line>> = Vec::new();
            for line in lines.into_iter().filter(|line| !line.starts_with('@')).map(Line::new) {
                if line.is_primary() {
                    of.push(Vec::new());
                }
                of.last_mut().unwrap().push(line);
            }
            of
        };
        let (ours, theirs) = (sorted(ours.iter().map(String::as_str).collect()), sorted(theirs.lines().collect()));
        assert_eq!((ours.len(), theirs.len()), (reads.len(), reads.len()));
        // Reads that bwa places uniquely: same position, flag, quality, tag, and position on an ALT contig.
        let [mut sure, mut place, mut flag, mut quality, mut share, mut better, mut alt] = [0; 7];
        for (ours, theirs) in ours.iter().zip(&theirs).filter(|(_, theirs)| theirs[0].quality >= 20) {
            sure += 1;
            let (own, other) = (&ours[0], &theirs[0]);
            if own.contig != other.contig || own.position.abs_diff(other.position) > 5 {
                continue;
            }
            place += 1;
            flag += usize::from(own.flag == other.flag);
            quality += usize::from(own.quality.abs_diff(other.quality) <= 5);
            let told = |line: &Line| line.tag("pa").map(|text| text.parse::<f64>().unwrap());
            share += usize::from(match (told(own), told(other)) {
                (Some(a), Some(b)) => (a - b).abs() < 0.05,
                (a, b) => a == b,
            });
            better += usize::from(told(other).is_some());
            let on_alt = |lines: &[Line]| -> Vec<(u16, String, usize)> {
                lines[1..].iter().map(|line| (line.flag, line.contig.clone(), line.position / 10)).collect()
            };
            alt += usize::from(on_alt(ours) == on_alt(theirs));
        }
        let counts = format!("{layout:?}: of {sure}: {place} {flag} {quality} {share} {alt}; {better} better");
        println!("{counts}");
        assert!(sure > 3500 && better > 1000, "{counts}");
        let nearly_all = |n: usize, share: f64| n as f64 > share * sure as f64;
        assert!(
            nearly_all(place, 0.99) && nearly_all(flag, 0.98) && nearly_all(share, 0.97) && nearly_all(alt, 0.97),
            "{counts}"
        );
        assert!(nearly_all(quality, 0.97), "{counts}");
    }
}

/// Standard output of a command line, which must succeed.
fn run_peer(binary: &Path, arguments: &[&str], folder: &Path) -> Vec<u8> {
    let output = Command::new(binary).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
