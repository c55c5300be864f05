//! The count against KMC's, where KMC is installed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use genuma_kmers::{CountParams, RootCounters, count, encode};
use genuma_reads::{Lane, LaneFiles, Meter, NORMAL};

/// FASTQ text of reads from both strands of a small genome, with errors, repeats and foreign letters.
fn reads() -> String {
    let mut state = 42u64;
    let mut below = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut genome: Vec<u8> = (0..20_000).map(|_| b"ACGT"[below(4) as usize]).collect();
    genome.extend(b"AC".repeat(200));
    genome.extend_from_within(1000..3000);
    let mut text = String::new();
    for i in 0..4000 {
        let at = below(genome.len() as u64 - 150) as usize;
        let mut seq = genome[at..at + 150].to_vec();
        if below(2) == 1 {
            seq = genuma_reads::dna::revcomp(&seq);
        }
        seq[below(150) as usize] = b"ACGTN"[below(5) as usize];
        let seq = String::from_utf8(seq).expect("ASCII");
        text += &format!("@r{}\n{seq}\n+\n{}\n", i / 2, "I".repeat(150));
    }
    text
}

/// Every canonical k-mer with its count, or `None` when KMC is not installed.
fn by_kmc(fastq: &Path, k: u32, dir: &Path) -> Option<BTreeMap<String, u32>> {
    let database = dir.join("kmc");
    let dump = dir.join("kmc.txt");
    let k = format!("-k{k}");
    let kmc = Command::new("kmc")
        .args([&k, "-ci1", "-cs1000000", "-m2", "-t1"])
        .args([fastq, &database, dir])
        .output();
    assert!(kmc.ok()?.status.success());
    let status = Command::new("kmc_dump").args([&database, &dump]).status().expect("kmc_dump comes with kmc");
    assert!(status.success());
    let lines = fs::read_to_string(dump).expect("a dump");
    let entry = |line: &str| {
        let (kmer, n) = line.split_once('\t').expect("two columns");
        (kmer.to_owned(), n.parse().expect("a number"))
    };
    Some(lines.lines().map(entry).collect())
}

#[test]
fn counts_are_those_of_kmc() {
    let dir = tempfile::tempdir().expect("a folder");
    let fastq = dir.path().join("reads.fq");
    fs::write(&fastq, reads()).expect("written");
    let lanes = [Lane { sample: NORMAL, files: LaneFiles::Interleaved(fastq.clone()) }];
    for k in [25, 32] {
        let Some(expected) = by_kmc(&fastq, k, dir.path()) else {
            // Past the capture of what passing tests print.
            writeln!(std::io::stderr(), "skipped: counts_are_those_of_kmc: kmc is not installed")
                .expect("stderr");
            return;
        };
        let kmers = |root: &RootCounters, picks: &mut Vec<(String, u32)>| {
            for (slot, &[n, _]) in root.counts.iter().enumerate().filter(|(_, n)| n[0] > 0) {
                let (first, last) = (slot as u64 / 4, slot as u64 % 4);
                let kmer = (first << (2 * (k - 1))) | (root.stem << 2) | last;
                let canonical = encode::unpack(kmer.min(encode::revcomp(kmer, k)), k);
                picks.push((String::from_utf8(canonical).expect("ASCII"), n));
            }
        };
        let params =
            CountParams { k, min_base_quality: 0, threads: 2, memory: 16 << 20, work: dir.path().into() };
        let counted = count(&lanes, &params, &Meter::default(), kmers).expect("counted");
        assert!(counted.picks.len() > 20_000);
        assert!(counted.picks.into_iter().eq(expected), "k {k}");
    }
}
