//! Comparison of counts with those of KMC and Jellyfish, if these are installed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use genuma_kmers::{
    CountParams, Devices, Error, KeepPairUnchanged, Partition, RootCounters, ScatteredReads, count_partition, encode,
    min_memory_bytes,
};
use genuma_reads::{Lane, LaneFiles, ProgressCounters};

/// FASTQ text of reads from both strands of a small genome, with errors, repeats and N.
fn reads(seed: u64) -> String {
    let mut state = 42u64;
    let mut below = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut genome: Vec<u8> = (0..20_000).map(|_| b"ACGT"[below(4) as usize]).collect();
    genome.extend(b"AC".repeat(200));
    genome.extend(b"A".repeat(300));
    genome.extend_from_within(1000..3000);
    // The same genome for every seed, with other reads.
    (0..seed).for_each(|_| _ = below(2));
    let mut text = String::new();
    for i in 0..3000 {
        let at = below(genome.len() as u64 - 150) as usize;
        let mut seq = genome[at..at + 150].to_vec();
        if below(2) == 1 {
            seq = genuma_reads::dna::reverse_complement(&seq);
        }
        seq[below(150) as usize] = b"ACGTN"[below(5) as usize];
        let seq = String::from_utf8(seq).expect("ASCII");
        text += &format!("@r{i}\n{seq}\n+\n{}\n", "I".repeat(150));
    }
    text
}

/// Two samples as files, in a temporary folder.
fn samples() -> (tempfile::TempDir, [PathBuf; 2]) {
    let dir = tempfile::tempdir().expect("a folder");
    let files = [0, 1].map(|seed| {
        let path = dir.path().join(format!("{seed}.fq"));
        fs::write(&path, reads(seed)).expect("written");
        path
    });
    (dir, files)
}

/// K-mers as text, with their counts.
type Counts = BTreeMap<String, u32>;

/// Counts the k-mers of a file with a total count of at least `least`. `None` if the tool is not installed.
type Peer = fn(&Path, u32, u32, &Path) -> Option<Counts>;

const PEERS: [(&str, Peer); 2] = [("kmc", by_kmc), ("jellyfish", by_jellyfish)];

fn by_kmc(fastq: &Path, k: u32, least: u32, dir: &Path) -> Option<Counts> {
    let (database, dump) = (dir.join("kmc"), dir.join("kmc.txt"));
    let (k, least) = (format!("-k{k}"), format!("-ci{least}"));
    let kmc = Command::new("kmc").args([&k, &least, "-cs1000000", "-m2", "-t1"]).args([fastq, &database, dir]).output();
    assert!(kmc.ok()?.status.success());
    let status = Command::new("kmc_dump").args([&database, &dump]).status().expect("kmc_dump comes with kmc");
    assert!(status.success());
    Some(parse(&dump, '\t'))
}

fn by_jellyfish(fastq: &Path, k: u32, least: u32, dir: &Path) -> Option<Counts> {
    let (database, dump) = (dir.join("jellyfish"), dir.join("jellyfish.txt"));
    let (k, least) = (k.to_string(), least.to_string());
    let count = Command::new("jellyfish")
        .args(["count", "-C", "-s", "1M", "-m", &k, "-L", &least, "-o"])
        .args([&database, fastq])
        .output();
    assert!(count.ok()?.status.success());
    let dumped = Command::new("jellyfish").args(["dump", "-c", "-o"]).args([&dump, &database]).status();
    assert!(dumped.expect("it runs").success());
    Some(parse(&dump, ' '))
}

fn parse(dump: &Path, between: char) -> Counts {
    let lines = fs::read_to_string(dump).expect("a dump");
    let entry = |line: &str| {
        let (kmer, n) = line.split_once(between).expect("two columns");
        (kmer.to_owned(), n.parse().expect("a number"))
    };
    lines.lines().map(entry).collect()
}

fn skipped(test: &str, peer: &str) {
    // Bypasses the output capture of passing tests.
    writeln!(std::io::stderr(), "skipped: {test}: {peer} is not installed").expect("stderr");
}

fn text(kmer: u64, k: u32) -> String {
    String::from_utf8(encode::unpack(kmer, k)).expect("ASCII")
}

/// Counts of all lanes in order, with a total count of at least `least`.
fn sorted<const S: usize>(lanes: &[Lane], params: &CountParams, least: u32) -> Vec<(String, [u32; S])> {
    let scattered = ScatteredReads::<S>::scatter_lanes(lanes, params, &ProgressCounters::default()).expect("read");
    let mut found = Vec::new();
    let done = scattered.count_and_keep_frequent_kmers(least).expect("counted").for_each_kmer(|kmer, &counts| {
        found.push((text(kmer, params.k), counts));
        Ok::<_, Error>(())
    });
    done.map(|()| found).expect("readable")
}

fn params(k: u32, threads: usize, memory: u64, work: &Path) -> CountParams {
    CountParams {
        k,
        min_base_quality: 0,
        threads,
        memory_bytes: memory,
        work_dir: work.into(),
        max_scratch_bytes: u64::MAX,
        partition: Partition::WHOLE_KMER_SPACE,
        devices: Devices::default(),
    }
}

#[test]
fn single_sample_counts_equal_those_of_peers() {
    let (dir, [fastq, _]) = samples();
    let lanes = [Lane::with_whole_files(0, LaneFiles::Single(fastq.clone()))];
    for (name, peer) in PEERS {
        for k in [24, 25, 30, 31, 32] {
            let Some(expected) = peer(&fastq, k, 2, dir.path()) else {
                skipped("one_samples_counts_are_those_of_peers", name);
                break;
            };
            assert!(expected.len() > 20_000);
            for (threads, memory) in [(1, min_memory_bytes(1)), (2, 4 << 20), (4, 64 << 20)] {
                let found = sorted::<1>(&lanes, &params(k, threads, memory, dir.path()), 2);
                let found = found.into_iter().map(|(kmer, [n])| (kmer, n));
                assert!(found.eq(expected.clone()), "{name}, k {k}, {threads} threads, {memory} bytes");
            }
        }
    }
}

#[test]
fn low_quality_bases_equal_n_in_peers() {
    let (dir, [fastq, _]) = samples();
    let (marked, masked) = (dir.path().join("marked.fq"), dir.path().join("masked.fq"));
    let (mut qualities, mut letters) = (String::new(), String::new());
    for (i, record) in fs::read_to_string(fastq).expect("reads").lines().collect::<Vec<_>>().chunks(4).enumerate() {
        let (name, seq, low) = (record[0], record[1], i * 7 % 150);
        // Phred 19, 20 and 40; the minimum is 20.
        let quality: String = (0..150)
            .map(|at| {
                if at == low {
                    '4'
                } else if at == low / 2 {
                    '5'
                } else {
                    'I'
                }
            })
            .collect();
        let mut other = seq.to_owned();
        other.replace_range(low..=low, "N");
        qualities += &format!("{name}\n{seq}\n+\n{quality}\n");
        letters += &format!("{name}\n{other}\n+\n{quality}\n");
    }
    fs::write(&marked, qualities).expect("written");
    fs::write(&masked, letters).expect("written");
    let lanes = [Lane::with_whole_files(0, LaneFiles::Single(marked))];
    for (name, peer) in PEERS {
        let Some(expected) = peer(&masked, 31, 2, dir.path()) else {
            skipped("bases_of_low_quality_are_foreign_letters_to_peers", name);
            continue;
        };
        let params = CountParams { min_base_quality: 20, ..params(31, 2, 8 << 20, dir.path()) };
        let found = sorted::<1>(&lanes, &params, 2).into_iter().map(|(kmer, [n])| (kmer, n));
        assert!(expected.len() > 20_000 && found.eq(expected), "{name}");
    }
}

#[test]
fn joint_counts_equal_those_of_peers() {
    let (dir, files) = samples();
    let lanes =
        [0u8, 1].map(|sample| Lane::with_whole_files(sample, LaneFiles::Single(files[usize::from(sample)].clone())));
    for (name, peer) in PEERS {
        for k in [24, 25, 30, 31, 32] {
            let mut expected = BTreeMap::<String, [u32; 2]>::new();
            for (sample, file) in files.iter().enumerate() {
                for (kmer, n) in peer(file, k, 1, dir.path()).into_iter().flatten() {
                    expected.entry(kmer).or_default()[sample] = n;
                }
            }
            if expected.is_empty() {
                skipped("joint_counts_are_those_of_peers", name);
                break;
            }
            expected.retain(|_, counts| counts.iter().sum::<u32>() >= 2);
            let found = sorted::<2>(&lanes, &params(k, 2, 4 << 20, dir.path()), 2);
            assert!(found.into_iter().eq(expected), "{name}, k {k}");
        }
    }
}

#[test]
fn root_counters_equal_those_of_kmc() {
    let (dir, [fastq, _]) = samples();
    let lanes = [Lane::with_whole_files(0, LaneFiles::Single(fastq.clone()))];
    for k in [25, 32] {
        let Some(expected) = by_kmc(&fastq, k, 1, dir.path()) else {
            return skipped("root_counters_are_those_of_kmc", "kmc");
        };
        let kmers = |root: &RootCounters<1>, picks: &mut Vec<(String, u32)>| {
            for (slot, &[n]) in root.counts.iter().enumerate().filter(|(_, n)| n[0] > 0) {
                let (first, last) = (slot as u64 / 4, slot as u64 % 4);
                let kmer = (first << (2 * (k - 1))) | (root.root << 2) | last;
                picks.push((text(kmer.min(encode::reverse_complement_kmer(kmer, k)), k), n));
            }
        };
        let counted = count_partition(
            &lanes,
            &params(k, 2, 16 << 20, dir.path()),
            &ProgressCounters::default(),
            || KeepPairUnchanged,
            |_, _| kmers,
        );
        let picks = counted.expect("counted").0.selected;
        assert!(picks.len() > 20_000);
        assert!(picks.into_iter().eq(expected), "k {k}");
    }
}
