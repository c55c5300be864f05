//! The output of `genuma align` is accepted by Picard's ValidateSamFile (within GATK) and samtools: SAM, sorted BAM
//! and CRAM, single and paired reads, one and two lanes, with marked duplicates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{data, gatk, gunzip, installed, records, run, scratch, text};

/// One of this many pairs has one or both mates that map nowhere.
const EVERY: usize = 9;
const GROUPS: [&str; 2] = ["ID:a\\tSM:me\\tLB:one\\tPL:ILLUMINA", "ID:b\\tSM:me\\tLB:two\\tPL:ILLUMINA"];

/// Standard output of a program that must succeed without warnings.
fn run_without_warnings(program: &Path, args: &[&str]) -> String {
    let ended = Command::new(program).args(args).output().expect("a program that starts");
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && !err.contains("[W::") && !err.contains("[E::"), "{args:?}: {err}{out}");
    out.into_owned()
}

/// Bases that occur in no genome.
fn noise(seed: usize) -> Vec<u8> {
    let next = |state: &mut u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(b"ACGT"[(*state >> 62) as usize])
    };
    let mut state = seed as u64;
    std::iter::from_fn(|| next(&mut state)).take(150).collect()
}

/// A FASTQ record.
fn record(name: usize, bases: &[u8]) -> Vec<u8> {
    [format!("@{name}\n").as_bytes(), bases, b"\n+\n", &vec![b'F'; bases.len()], b"\n"].concat()
}

/// Writes the simulated reads, and in between pairs with noise in read 1, in read 2 or in both, halves of two reads,
/// half noise, only N, one base, and one pair twice. Returns the paths of both mate files.
fn reads(folder: &Path) -> [PathBuf; 2] {
    let mates = [0, 1].map(|mate: usize| gunzip(&data().normal[mate]));
    let bases = |mate: &[u8]| -> Vec<Vec<u8>> {
        let line = |record: &&[u8]| record.split(|&byte| byte == b'\n').nth(1).expect("bases").to_vec();
        records(mate).iter().map(line).collect()
    };
    let mut mates = [bases(&mates[0]), bases(&mates[1])];
    for pair in (0..mates[0].len() - 1).step_by(EVERY) {
        let kind = pair / EVERY % 8;
        let other = mates[0][pair + 1].clone();
        match kind {
            0 | 1 => mates[kind][pair] = noise(pair),
            2 => (0..2).for_each(|mate| mates[mate][pair] = noise(pair + mate)),
            3 => mates[0][pair].splice(75.., other[75..].iter().copied()).for_each(drop),
            4 => mates[1][pair].splice(75.., noise(pair)[75..].iter().copied()).for_each(drop),
            5 => mates[0][pair].fill(b'N'),
            6 => mates[1][pair].truncate(1),
            _ => (0..2).for_each(|mate| mates[mate][pair] = mates[mate][pair + 1].clone()),
        }
    }
    [0, 1].map(|mate| {
        let path = folder.join(format!("reads_{}.fq", mate + 1));
        let fastq: Vec<u8> = mates[mate].iter().enumerate().flat_map(|(pair, bases)| record(pair, bases)).collect();
        fs::write(&path, fastq).expect("a file");
        path
    })
}

#[test]
fn output_is_valid() {
    let (Some(gatk), Some(samtools)) = (gatk(), installed("samtools")) else { return };
    let folder = scratch("valid");
    let genome = folder.join("genome.fa");
    for name in ["genome.fa", "genome.fa.fai"] {
        fs::copy(data().folder.join(name), folder.join(name)).expect("a copy");
    }
    let genome = text(&genome);
    run(["index", genome]).assert_success();
    // Picard needs a sequence dictionary next to the reference.
    run_without_warnings(&gatk, &["CreateSequenceDictionary", "-R", genome]);
    let mates = reads(&folder);
    let [one, two] = mates.each_ref().map(|path| text(path));
    let again = [1, 2].map(|mate| text(&data().normal[mate - 1]));
    let lanes = [one, two, again[0], again[1], "-R", GROUPS[0], "-R", GROUPS[1]];
    for (name, reads, marked) in [
        ("pairs.sam", &[one, two, "-R", GROUPS[0]][..], false),
        ("single.bam", &["--single", one, "-R", GROUPS[0]], false),
        ("lanes.bam", &lanes, true),
        ("lanes.cram", &lanes, true),
        ("lanes31.cram", &[&lanes[..], &["--cram-version", "3.1"]].concat(), true),
    ] {
        let out = folder.join(name);
        let out = text(&out);
        let mark: &[&str] = if marked { &["--mark-duplicates"] } else { &[] };
        run([&["align", "-o", out, genome], reads, mark].concat()).assert_success();

        run_without_warnings(&samtools, &["quickcheck", "-v", out]);
        let count = |options: &[&str]| -> u64 {
            let counted =
                run_without_warnings(&samtools, &[&["view", "-c", "--reference", genome], options, &[out]].concat());
            counted.trim().parse().expect("a number")
        };
        let all = count(&["-F", "2304"]);
        assert!(count(&["-f", "4"]) > all / 50, "{name}: some are unmapped");
        assert!(count(&["-f", "2048"]) > 0, "{name}: some are split");
        assert_eq!(count(&["-f", "1024"]) > 0, marked, "{name}");
        if !name.starts_with("single") {
            assert!(count(&["-f", "8", "-F", "4"]) > all / 100, "{name}: some have no mapped mate");
        }
        let statistics = run_without_warnings(&samtools, &["stats", "--reference", genome, out]);
        let sorted = u8::from(!name.ends_with(".sam"));
        assert!(statistics.contains(&format!("\nSN\tis sorted:\t{sorted}\n")), "{statistics}");
        assert!(statistics.contains(&format!("\nSN\tsequences:\t{all}\n")), "{statistics}");

        let mut validate = vec!["ValidateSamFile", "--QUIET", "true", "-I", out];
        // Picard reads the reference only in its own order.
        if sorted == 1 {
            validate.extend(["-R", genome]);
        }
        let found = run_without_warnings(&gatk, &validate);
        assert!(found.contains("No errors found"), "{name}: {found}");
    }
}
