use std::fs;
use std::path::PathBuf;

use genuma_kmers::RootCounters;
use genuma_kmers::encode::{kmers, mask};
use genuma_reads::dna::revcomp;

use super::facts::{Known, Reads};
use super::*;

const K: u32 = 31;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    fn bases(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.next() as usize % 4]).collect()
    }
}

fn fasta(folder: &tempfile::TempDir, name: &str, sequences: &[(&str, &[u8])]) -> PathBuf {
    let path = folder.path().join(name);
    let text = sequences.iter().map(|(name, seq)| format!(">{name}\n{}\n", String::from_utf8_lossy(seq)));
    fs::write(&path, text.collect::<String>()).unwrap();
    path
}

/// The counters of reads, root by root.
fn roots(reads: &[(usize, Vec<u8>)]) -> Vec<RootCounters> {
    let mut roots = HashMap::<u64, [[u32; 2]; 16]>::new();
    for (sample, read) in reads {
        for (_, kmer) in kmers(read, K) {
            let key = key(kmer.forward, K).min(key(kmer.reverse, K));
            roots.entry(key >> 4).or_default()[(key & 15) as usize][*sample] += 1;
        }
    }
    roots.into_iter().map(|(stem, counts)| RootCounters { stem, counts }).collect()
}

/// Reads of 150 bases, so deep, on both strands.
fn reads(seq: &[u8], depth: f64, sample: usize, random: &mut Random, out: &mut Vec<(usize, Vec<u8>)>) {
    for _ in 0..(depth * seq.len() as f64 / 150.0).round() as usize {
        let at = random.next() as usize % (seq.len() - 149);
        let read = &seq[at..at + 150];
        out.push((sample, if random.next() < 1 << 30 { read.to_vec() } else { revcomp(read) }));
    }
}

fn told(marks: &Marks, all: &[(usize, Vec<u8>)]) -> Known {
    roots(all).iter().for_each(|root| marks.see(root));
    let of = |sample| Reads { number: all.iter().filter(|(s, _)| *s == sample).count() as f64, kmers: 120.0 };
    Known::of(&marks.take(), [of(0), of(1)])
}

#[test]
fn sex_losses_and_organelles_are_as_they_were_made() {
    let mut random = Random(5);
    let lengths = [
        ("chr1", 60_000),
        ("chr2", 50_000),
        ("chr3", 40_000),
        ("chrX", 45_000),
        ("chrY", 40_000),
        ("chrM", 16_000),
    ];
    let mut genome: Vec<(&str, Vec<u8>)> =
        lengths.iter().map(|(name, n)| (*name, random.bases(*n))).collect();
    // A part of Y is that of X, and all have a repeat.
    let (shared, repeat) = (genome[3].1[..6000].to_vec(), random.bases(300));
    genome[4].1[..6000].copy_from_slice(&shared);
    genome
        .iter_mut()
        .take(5)
        .for_each(|(_, seq)| (1..25).for_each(|i| seq[i * 1400..i * 1400 + 300].copy_from_slice(&repeat)));
    let folder = tempfile::tempdir().unwrap();
    let sequences: Vec<(&str, &[u8])> = genome.iter().map(|(name, seq)| (*name, &seq[..])).collect();
    let path = fasta(&folder, "genome.fa", &sequences);
    let karyotype = |copies: [[f64; 6]; 2], depth: f64| {
        let (mut all, mut random) = (Vec::new(), Random(9));
        for (sample, copies) in copies.iter().enumerate() {
            genome
                .iter()
                .zip(copies)
                .for_each(|((_, seq), n)| reads(seq, depth * n / 2.0, sample, &mut random, &mut all));
        }
        let marks = Marks::choose(K, Some(&path), None).unwrap().unwrap();
        told(&marks, &all).karyotype.unwrap()
    };
    let lost = karyotype([[2.0, 2.0, 2.0, 1.0, 1.0, 40.0], [2.0, 3.0, 2.0, 1.0, 0.4, 80.0]], 20.0);
    assert_eq!((&lost.sex[0][..], &lost.sex[1][..]), ("male", "male, Y only in a part of the cells"));
    assert_eq!(lost.changed, ["chr2", "chrY"]);
    let y = lost.y_lost.unwrap();
    assert!(y.low < 0.6 && y.high > 0.6 && y.high - y.low < 0.3, "{y:?}");
    let [normal, tumour] = lost.mitochondria.map(Option::unwrap);
    assert!(
        normal.low < 40.0 && normal.high > 40.0 && tumour.low < 80.0 && tumour.high > 80.0,
        "{normal:?} {tumour:?}"
    );
    // k-mers of a base are a few less than reads.
    assert!((lost.usual[0] - 20.0 * 120.0 / 150.0).abs() < 1.0, "{:?}", lost.usual);
    let female = karyotype([[2.0, 2.0, 2.0, 2.0, 0.0, 0.0]; 2], 3.0);
    assert_eq!((&female.sex[0][..], female.y_lost, female.changed.len()), ("female", None, 0));
    let nothing = karyotype([[0.0; 6]; 2], 3.0);
    assert_eq!(nothing.sex[1], "not known: too few reads");
}

#[test]
fn what_is_screened_for_is_found_and_what_the_reference_has_is_not() {
    let mut random = Random(7);
    let (chromosome, virus, other, absent) =
        (random.bases(100_000), random.bases(8_000), random.bases(8_000), random.bases(5_000));
    // A strain of the virus, with a base in hundred changed; and one that is a piece of the genome.
    let mut strain = virus.clone();
    (0..80).for_each(|i| strain[i * 100] = if strain[i * 100] == b'A' { b'C' } else { b'A' });
    let folder = tempfile::tempdir().unwrap();
    let reference = fasta(&folder, "genome.fa", &[("one", &chromosome)]);
    let endogenous = &chromosome[3000..9000];
    let sequences: [(&str, &[u8]); 5] = [
        ("virus", &virus),
        ("strain", &strain),
        ("endogenous", endogenous),
        ("other", &other),
        ("absent", &absent),
    ];
    let screen = fasta(&folder, "screen.fa", &sequences);
    let marks = Marks::choose(K, Some(&reference), Some(&screen)).unwrap().unwrap();
    let mut all = Vec::new();
    for sample in [0, 1] {
        reads(&chromosome, 10.0, sample, &mut random, &mut all);
    }
    reads(&virus, 5.0, 1, &mut random, &mut all);
    (0..4).for_each(|i| all.push((1, other[i * 1500..i * 1500 + 150].to_vec())));
    let screen = told(&marks, &all).screen.unwrap();
    let names: Vec<&str> = screen.found.iter().map(|found| &found.name[..]).collect();
    assert_eq!(names, ["virus", "other"], "{screen:?}");
    assert_eq!((screen.sequences, screen.others, screen.not_told_apart), (5, 2, 1));
    let [normal, tumour] = &screen.found[0].samples;
    assert_eq!((&normal.word[..], &tumour.word[..]), ("not there", "there"));
    let read = 5.0 * 8000.0 / 150.0;
    assert!((tumour.reads / read - 1.0).abs() < 0.1 && tumour.breadth > 0.95, "{tumour:?}");
    assert_eq!(screen.found[1].samples[1].word, "traces, may be carry-over");
    // Without a reference there is more to look for.
    let alone = Marks::choose(K, None, Some(&folder.path().join("screen.fa"))).unwrap().unwrap();
    assert!(alone.take().sequences[2].marks > 300 && Marks::choose(K, None, None).unwrap().is_none());
}

#[test]
fn partitions_add_up_and_other_marks_do_not() {
    let mut random = Random(3);
    let chromosome = random.bases(50_000);
    let folder = tempfile::tempdir().unwrap();
    let path = fasta(&folder, "genome.fa", &[("one", &chromosome)]);
    let mut all = Vec::new();
    reads(&chromosome, 8.0, 0, &mut random, &mut all);
    reads(&chromosome, 4.0, 1, &mut random, &mut all);
    for k in [24, 31, 32] {
        let mut counters = HashMap::<u64, [[u32; 2]; 16]>::new();
        for (sample, read) in &all {
            for (_, kmer) in kmers(read, k) {
                let key = key(kmer.forward, k).min(key(kmer.reverse, k));
                counters.entry(key >> 4).or_default()[(key & 15) as usize][*sample] += 1;
            }
        }
        let roots: Vec<RootCounters> =
            counters.into_iter().map(|(stem, counts)| RootCounters { stem, counts }).collect();
        assert!(roots.iter().all(|root| root.stem <= mask(k - 2)));
        let marks = Marks::choose(k, Some(&path), None).unwrap().unwrap();
        roots.iter().for_each(|root| marks.see(root));
        let whole = marks.take();
        let mut parts = MarksTally::default();
        for part in 0..3 {
            roots.iter().filter(|root| root.stem % 3 == part).for_each(|root| marks.see(root));
            let tally = marks.take();
            parts = if part == 0 {
                tally
            } else {
                assert!(parts.add(&tally));
                parts
            };
        }
        assert!(parts == whole && whole.sequences[0].seen[0].len() > 8, "{k}");
        let mut less = whole.clone();
        less.sequences[0].marks -= 1;
        assert!(!less.add(&whole) && !less.add(&MarksTally::default()));
    }
}
