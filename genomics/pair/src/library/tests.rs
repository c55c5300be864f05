use genuma_reads::{Mate, Trimmer, dna};

use super::metrics::LibraryMetrics;
use super::*;

struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }

    fn bases(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.below(4)]).collect()
    }
}

/// Parameters of a simulated library.
struct Made {
    pairs: usize,
    /// Number of molecules that pairs are drawn from; 0: each pair is a new molecule.
    molecules: usize,
    /// Error probability in the first and in the last cycle.
    errors: [f64; 2],
    /// Mean fragment length in bases; lengths deviate by up to 60.
    insert: usize,
}

const LENGTH: usize = 100;

type Reads = Vec<(Vec<u8>, [[Vec<u8>; 2]; 2])>;

impl Made {
    fn reads(&self) -> Reads {
        let mut random = Random(17);
        let genome = random.bases(200_000);
        let molecule = |random: &mut Random| {
            let length = self.insert - 60 + random.below(121);
            let at = random.below(genome.len() - length);
            let seq = &genome[at..at + length];
            if random.unit() < 0.5 { seq.to_vec() } else { dna::reverse_complement(seq) }
        };
        let library: Vec<Vec<u8>> = (0..self.molecules).map(|_| molecule(&mut random)).collect();
        let pair = |i: usize| {
            let molecule = match library.len() {
                0 => molecule(&mut random),
                n => library[random.below(n)].clone(),
            };
            let mates = [molecule.clone(), dna::reverse_complement(&molecule)].map(|mut seq| {
                seq.extend(b"AGATCGGAAGAGCACACGTCTGAACTCCAGTCACATCACGATCTCGTATGCCGTCTTCTGCTTGAAAAAAAAAA");
                seq.extend(random.bases(LENGTH));
                seq.truncate(LENGTH);
                let mut qual = Vec::new();
                for (cycle, base) in seq.iter_mut().enumerate() {
                    let [first, last] = self.errors;
                    let rate = first + (last - first) * cycle as f64 / LENGTH as f64;
                    let wrong = random.unit() < rate;
                    if wrong {
                        let code = dna::encode_base(*base);
                        *base = dna::decode_base((code + 1 + random.below(3) as u8) % 4);
                    }
                    // As often wrong as the quality of 12 predicts.
                    let poor = random.unit() < if wrong { 0.9 } else { 13.4 * rate };
                    qual.push(b'!' + if poor { 12 } else { 37 });
                }
                [seq, qual]
            });
            (format!("run:1:{i}").into_bytes(), mates)
        };
        (0..self.pairs).map(pair).collect()
    }
}

fn tallies(reads: &Reads, parts: usize) -> (LibraryTally, genuma_reads::TrimCounts) {
    let (mut all, mut cut) = (LibraryTally::default(), genuma_reads::TrimCounts::default());
    for part in (0..parts).rev() {
        let (mut observer, mut trimmer) = (LibraryTallyCollector::with_expected_pairs(&[0; 2]), Trimmer::default());
        for (name, mates) in reads.iter().skip(part).step_by(parts) {
            let mates = mates.each_ref().map(|[seq, qual]| Mate { seq, qual });
            let raw = ReadPair { name, mates };
            let cut = trimmer.trim_pair(raw);
            observer.add_pair(
                &RawAndTrimmedPair { raw, trimmed: cut, packed: trimmer.packed_mates_before_adapter_trimming() },
                1,
            );
        }
        let [none, tumour] = observer.into_tallies().try_into().expect("two samples");
        assert_eq!(none, LibraryTally::default());
        all.merge_tally(&tumour);
        cut.merge_counts(&trimmer.counts());
    }
    (all, cut)
}

fn library(made: &Made) -> LibraryMetrics {
    let (tally, trimmed) = tallies(&made.reads(), 1);
    LibraryMetrics::from_tally(&tally, &trimmed, None)
}

#[test]
fn errors_inserts_and_adapters_match_the_simulation() {
    let made = Made { pairs: 30_000, molecules: 0, errors: [0.002, 0.012], insert: 160 };
    let library = library(&made);
    // Fragments of 100 to 176 bases overlap by at least 24 bases; all have 100 to 220.
    let overlapping = library.insert.overlapping_share.unwrap();
    assert!((overlapping.value - 77.0 / 121.0).abs() < 0.02, "{overlapping:?}");
    let quarter = library.insert.quantiles[1].unwrap();
    assert!(quarter.abs_diff(130) <= 2, "{quarter}");
    assert_eq!((library.insert.quantiles[3], library.insert.max_measurable), (None, 176));
    let (rate, compared) = (library.errors.rate.unwrap(), library.errors.compared_rate.unwrap());
    assert!((rate.value - 0.00695).abs() < 0.0003 && rate.high - rate.low < 0.0006, "{rate:?}");
    assert!(rate.value < compared.value, "the ends of reads are compared, which are worse");
    let cycles = &library.mates[0].cycles;
    assert!(cycles[95].errors.unwrap() > 1.2 * cycles[50].errors.unwrap());
    assert_eq!(library.errors.substitutions.len(), 12);
    assert!(library.errors.substitutions.iter().all(|s| (s.share.value - 1.0 / 12.0).abs() < 0.015));
    let poor = library.errors.by_quality.iter().find(|q| q.quality == 12).unwrap();
    assert!((poor.errors.value - 0.063).abs() < 0.006, "{poor:?}");
    assert!(library.adapter_share.unwrap().value < 0.01);
    assert!(library.duplicates.share.unwrap().value < 0.01 && library.telomeres.motif.is_none());
    assert_eq!(library.mates[0].lengths, [100; 3]);
}

#[test]
fn duplicates_are_estimated_despite_errors_in_keys() {
    for (errors, molecules) in [([0.0, 0.0], 20_000), ([0.004, 0.012], 20_000), ([0.002, 0.002], 100_000)] {
        let made = Made { pairs: 20_000, molecules, errors, insert: 160 };
        let duplicates = library(&made).duplicates;
        let (pairs, size) = (made.pairs as f64, molecules as f64);
        let truth = 1.0 - size * (1.0 - (-pairs / size).exp()) / pairs;
        let (seen, share) = (duplicates.observed.unwrap(), duplicates.share.unwrap());
        assert!((share.value - truth).abs() < 0.012, "{duplicates:?} {truth}");
        assert!(errors[0] < 0.004 || seen.value < 0.85 * truth, "{duplicates:?}: errors hide duplicates");
        let found = duplicates.molecules.unwrap();
        assert!(found.low < size && size < found.high && found.high < 1.4 * found.low, "{found:?}");
    }
    let amplicons = library(&Made { pairs: 20_000, molecules: 40, errors: [0.001; 2], insert: 160 });
    assert!(amplicons.duplicates.note.starts_with("probably amplicons") && amplicons.duplicates.molecules.is_none());
}

#[test]
fn short_fragments_show_as_adapters_and_full_overlaps() {
    let library = library(&Made { pairs: 5_000, molecules: 0, errors: [0.002; 2], insert: 100 });
    // Fragments of 40 to 160 bases: 60 of the 121 lengths are shorter than a read.
    let adapters = library.adapter_share.unwrap();
    assert!((adapters.value - 60.0 / 121.0).abs() < 0.03, "{adapters:?}");
    assert!(library.insert.overlapping_share.unwrap().value > 0.97);
    assert!(library.insert.quantiles[2].unwrap().abs_diff(100) <= 4);
    assert!((library.insert.mean_measured.unwrap() - 100.0).abs() < 2.0);
}

#[test]
fn tallies_do_not_depend_on_the_division_of_the_pairs() {
    // Enough pairs that a level is dropped.
    let reads = Made { pairs: 40_000, molecules: 30_000, errors: [0.002; 2], insert: 160 }.reads();
    let (whole, _) = tallies(&reads, 1);
    let drawn = whole.details.sum_of_levels().pairs;
    assert!(
        whole.details.min_level > 0 && drawn > MAX_PAIRS_PER_LEVEL / 2 && drawn < 2 * MAX_PAIRS_PER_LEVEL + 200,
        "{drawn}"
    );
    for parts in [2, 7] {
        assert!(tallies(&reads, parts).0 == whole, "{parts}");
    }
}

#[test]
fn empty_and_poor_input_gives_no_estimates() {
    let none = LibraryMetrics::from_tally(&LibraryTally::default(), &genuma_reads::TrimCounts::default(), None);
    assert!(none.gc.is_none() && none.errors.rate.is_none() && none.duplicates.share.is_none());
    assert!(none.duplicates.note.starts_with("unknown"));
    let empty = [Vec::new(), Vec::new()];
    let n = [vec![b'N'; 30], vec![b'#'; 30]];
    let one = [b"ACGTTGCA".to_vec(), b"IIIIIIII".to_vec()];
    let reads: Reads = vec![
        (b"a".to_vec(), [empty.clone(), empty]),
        (b"b".to_vec(), [n.clone(), n]),
        (b"".to_vec(), [one.clone(), one]),
    ];
    let (tally, trimmed) = tallies(&reads, 1);
    let poor = LibraryMetrics::from_tally(&tally, &trimmed, Some(9000.0));
    assert_eq!((poor.pairs, poor.bases, poor.examined_pairs, poor.duplicates.short_pairs), (3, 76, 3, 3));
    let text = serde_json::to_string(&poor).unwrap();
    assert!(!text.contains("NaN") && text.contains("\"overlapping_share\""));
}

#[test]
fn telomeres_are_counted_over_all_pairs() {
    let mut reads = Made { pairs: 2_000, molecules: 0, errors: [0.0; 2], insert: 160 }.reads();
    for (i, (_, mates)) in reads.iter_mut().enumerate().filter(|(i, _)| i % 200 == 0) {
        mates[i / 200 % 2][0] = b"CCCTAA".repeat(17)[i % 3..100 + i % 3].to_vec();
    }
    let (tally, trimmed) = tallies(&reads, 3);
    let found = LibraryMetrics::from_tally(&tally, &trimmed, None).telomeres;
    assert_eq!(
        (found.pairs, found.motif.as_deref(), found.taxon.as_deref()),
        (10, Some("TTAGGG"), Some("vertebrates"))
    );
    let rate = found.per_million.unwrap();
    assert!((rate.value - 5000.0).abs() < 1e-6 && rate.low > 2000.0 && rate.high < 10_000.0, "{rate:?}");
}
