use std::fs;
use std::path::PathBuf;

use genuma_kmers::RootCounters;
use genuma_kmers::encode::{kmer_mask, kmers};
use genuma_reads::dna::reverse_complement;

use super::contig_copies_and_screen::{ContigCopiesAndScreen, ReadCountAndKmersPerRead};
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

fn roots(reads: &[(usize, Vec<u8>)]) -> Vec<RootCounters> {
    let mut roots = HashMap::<u64, [[u32; 2]; 16]>::new();
    for (sample, read) in reads {
        for (_, kmer) in kmers(read, K) {
            let key =
                root_first_kmer_key_on_strand(kmer.forward, K).min(root_first_kmer_key_on_strand(kmer.reverse, K));
            roots.entry(key >> 4).or_default()[(key & 15) as usize][*sample] += 1;
        }
    }
    roots.into_iter().map(|(stem, counts)| RootCounters { root: stem, counts }).collect()
}

/// Simulated reads of 150 bases from both strands at a depth.
fn reads(seq: &[u8], depth: f64, sample: usize, random: &mut Random, out: &mut Vec<(usize, Vec<u8>)>) {
    for _ in 0..(depth * seq.len() as f64 / 150.0).round() as usize {
        let at = random.next() as usize % (seq.len() - 149);
        let read = &seq[at..at + 150];
        out.push((sample, if random.next() < 1 << 30 { read.to_vec() } else { reverse_complement(read) }));
    }
}

fn evaluate(markers: &MarkerKmers, all: &[(usize, Vec<u8>)]) -> ContigCopiesAndScreen {
    roots(all).iter().for_each(|root| markers.record_root_counts(root));
    let of = |sample| ReadCountAndKmersPerRead {
        num_reads: all.iter().filter(|(s, _)| *s == sample).count() as f64,
        kmers_per_read: 120.0,
    };
    ContigCopiesAndScreen::from_marker_tally(&markers.take_recorded_counts(), [of(0), of(1)])
}

#[test]
fn sex_losses_and_organelles_match_the_simulation() {
    let mut random = Random(5);
    let lengths =
        [("chr1", 60_000), ("chr2", 50_000), ("chr3", 40_000), ("chrX", 45_000), ("chrY", 40_000), ("chrM", 16_000)];
    let mut genome: Vec<(&str, Vec<u8>)> = lengths.iter().map(|(name, n)| (*name, random.bases(*n))).collect();
    // A part of Y equals X, and the chromosomes share a repeat.
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
        let markers = MarkerKmers::select_markers(K, Some(&path), None).unwrap().unwrap();
        evaluate(&markers, &all).karyotype.unwrap()
    };
    let lost = karyotype([[2.0, 2.0, 2.0, 1.0, 1.0, 40.0], [2.0, 3.0, 2.0, 1.0, 0.4, 80.0]], 20.0);
    assert_eq!((&lost.sex[0][..], &lost.sex[1][..]), ("male", "male, with Y lost in a part of the cells"));
    assert_eq!(lost.changed_contigs, ["chr2", "chrY"]);
    let y = lost.y_loss.unwrap();
    assert!(y.low < 0.6 && y.high > 0.6 && y.high - y.low < 0.3, "{y:?}");
    let [normal, tumour] = lost.mitochondrial_copies.map(Option::unwrap);
    assert!(
        normal.low < 40.0 && normal.high > 40.0 && tumour.low < 80.0 && tumour.high > 80.0,
        "{normal:?} {tumour:?}"
    );
    // A base has fewer k-mers than reads.
    assert!((lost.autosome_depth[0] - 20.0 * 120.0 / 150.0).abs() < 1.0, "{:?}", lost.autosome_depth);
    let female = karyotype([[2.0, 2.0, 2.0, 2.0, 0.0, 0.0]; 2], 3.0);
    assert_eq!((&female.sex[0][..], female.y_loss, female.changed_contigs.len()), ("female", None, 0));
    let nothing = karyotype([[0.0; 6]; 2], 3.0);
    assert_eq!(nothing.sex[1], "unknown: too few reads");
}

#[test]
fn screened_sequences_are_detected_unless_the_reference_has_them() {
    let mut random = Random(7);
    let (chromosome, virus, other, absent) =
        (random.bases(100_000), random.bases(8_000), random.bases(8_000), random.bases(5_000));
    // A strain of the virus with every hundredth base changed, and a sequence that is part of the genome.
    let mut strain = virus.clone();
    (0..80).for_each(|i| strain[i * 100] = if strain[i * 100] == b'A' { b'C' } else { b'A' });
    let folder = tempfile::tempdir().unwrap();
    let reference = fasta(&folder, "genome.fa", &[("one", &chromosome)]);
    let endogenous = &chromosome[3000..9000];
    let sequences: [(&str, &[u8]); 5] =
        [("virus", &virus), ("strain", &strain), ("endogenous", endogenous), ("other", &other), ("absent", &absent)];
    let screen = fasta(&folder, "screen.fa", &sequences);
    let markers = MarkerKmers::select_markers(K, Some(&reference), Some(&screen)).unwrap().unwrap();
    let mut all = Vec::new();
    for sample in [0, 1] {
        reads(&chromosome, 10.0, sample, &mut random, &mut all);
    }
    reads(&virus, 5.0, 1, &mut random, &mut all);
    (0..4).for_each(|i| all.push((1, other[i * 1500..i * 1500 + 150].to_vec())));
    let screen = evaluate(&markers, &all).screen.unwrap();
    let names: Vec<&str> = screen.detected.iter().map(|found| &found.name[..]).collect();
    assert_eq!(names, ["virus", "other"], "{screen:?}");
    assert_eq!((screen.sequences, screen.not_detected, screen.indistinguishable), (5, 2, 1));
    let [normal, tumour] = &screen.detected[0].samples;
    assert_eq!((&normal.note[..], &tumour.note[..]), ("not detected", "detected"));
    let read = 5.0 * 8000.0 / 150.0;
    assert!((tumour.reads / read - 1.0).abs() < 0.1 && tumour.breadth > 0.95, "{tumour:?}");
    assert_eq!(screen.detected[1].samples[1].note, "traces (possible carry-over)");
    // Without a reference more k-mers are markers.
    let alone = MarkerKmers::select_markers(K, None, Some(&folder.path().join("screen.fa"))).unwrap().unwrap();
    assert!(
        alone.take_recorded_counts().sequences[2].markers > 300
            && MarkerKmers::select_markers(K, None, None).unwrap().is_none()
    );
}

#[test]
fn tallies_of_partitions_add_up_and_other_markers_are_refused() {
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
                let key =
                    root_first_kmer_key_on_strand(kmer.forward, k).min(root_first_kmer_key_on_strand(kmer.reverse, k));
                counters.entry(key >> 4).or_default()[(key & 15) as usize][*sample] += 1;
            }
        }
        let roots: Vec<RootCounters> =
            counters.into_iter().map(|(stem, counts)| RootCounters { root: stem, counts }).collect();
        assert!(roots.iter().all(|root| root.root <= kmer_mask(k - 2)));
        let marks = MarkerKmers::select_markers(k, Some(&path), None).unwrap().unwrap();
        roots.iter().for_each(|root| marks.record_root_counts(root));
        let whole = marks.take_recorded_counts();
        let mut parts = MarkerTally::default();
        for part in 0..3 {
            roots.iter().filter(|root| root.root % 3 == part).for_each(|root| marks.record_root_counts(root));
            let tally = marks.take_recorded_counts();
            parts = if part == 0 {
                tally
            } else {
                assert!(parts.merge_partition_counts(&tally));
                parts
            };
        }
        assert!(parts == whole && whole.sequences[0].count_histograms[0].len() > 8, "{k}");
        let mut less = whole.clone();
        less.sequences[0].markers -= 1;
        assert!(!less.merge_partition_counts(&whole) && !less.merge_partition_counts(&MarkerTally::default()));
    }
}
