//! Dictionaries have the k-mers and counts that they were made of, and no others.

mod common;

use common::{Counts, MEMORY_BYTES, assert_same_kmers, build, count_kmers, mix, random_sequence, row, strand};
use genuma_dictionary::{Dictionary, DictionaryHeader, SequenceKmerLookup};
use genuma_kmers::encode;
use proptest::prelude::*;

const KMER_LENGTHS: [u32; 7] = [2, 4, 15, 21, 24, 31, 32];

/// Writes a dictionary and reads it back.
fn reopened(dictionary: &Dictionary) -> Dictionary {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.gkd");
    let (file, num_bytes) = dictionary.write_unpublished(&path).expect("written");
    file.publish().expect("published");
    assert_eq!(std::fs::metadata(&path).expect("a file").len(), num_bytes);
    let read = Dictionary::open(&path).expect("a dictionary");
    let header = DictionaryHeader {
        k: dictionary.k(),
        num_kmers: dictionary.len(),
        num_samples: dictionary.num_samples(),
        note: dictionary.note().to_vec(),
        file_bytes: num_bytes,
    };
    assert_eq!(DictionaryHeader::read(&path).expect("a header"), header);
    assert_eq!(
        (read.k(), read.len(), read.note(), read.part_sizes()),
        (dictionary.k(), dictionary.len(), dictionary.note(), dictionary.part_sizes())
    );
    read
}

/// Asserts that a stream finds what lookups of single k-mers find.
fn assert_stream_is_correct(dictionary: &Dictionary, counts: &Counts, sequences: &[Vec<u8>]) {
    let mut stream = SequenceKmerLookup::for_dictionary(dictionary);
    for sequence in sequences {
        stream.start_query_sequence();
        for (start, kmer) in encode::kmers(sequence, dictionary.k()) {
            let found = stream.find_kmer_number(start, kmer).map(|number| row(dictionary, number));
            assert_eq!(found.as_ref(), counts.get(&kmer.canonical()), "{start}: {kmer:?}");
        }
    }
}

/// A genome with repeats on both strands, tandem repeats, palindromes and runs of one base.
fn repetitive_genome(seed: u64) -> Vec<Vec<u8>> {
    let unit = random_sequence(seed, 300);
    let mut one = random_sequence(seed + 1, 400);
    for copy in 0..20 {
        let from = (mix(seed + copy) % 200) as usize;
        one.extend_from_slice(&unit[from..from + 80]);
        one.extend(random_sequence(seed + 100 + copy, 40));
        one.extend(
            genuma_kmers::encode::kmers(&unit, 30).take(1).flat_map(|(_, kmer)| encode::unpack(kmer.reverse, 30)),
        );
    }
    one.extend([b'A'; 70]);
    one.extend(b"ACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGTACGT".repeat(2));
    one.extend([b'T'; 90]);
    one.extend(b"CAG".repeat(40));
    vec![one, unit, b"AATT".repeat(12), random_sequence(seed + 2, 33)]
}

#[test]
fn repeats_palindromes_and_runs_are_found() {
    for k in KMER_LENGTHS {
        for num_samples in [1, 3] {
            let genome = repetitive_genome(u64::from(k));
            let counts = count_kmers(&genome, k, num_samples);
            let dictionary = reopened(&build(&counts, k, MEMORY_BYTES).expect("a dictionary"));
            assert_same_kmers(&dictionary, &counts);
            let mut reads = genome.clone();
            reads.extend((0..10).map(|i| random_sequence(900 + i, 200)));
            reads.extend(genome.iter().map(|sequence| {
                sequence.iter().enumerate().map(|(i, &base)| if i % 83 == 60 { b'C' } else { base }).collect()
            }));
            assert_stream_is_correct(&dictionary, &counts, &reads);
        }
    }
}

#[test]
fn a_circle_is_one_string() {
    let mut circle = random_sequence(5, 5000);
    circle.extend_from_within(..30);
    let counts = count_kmers(&[circle.clone()], 31, 1);
    let dictionary = build(&counts, 31, MEMORY_BYTES).expect("a dictionary");
    assert_eq!((dictionary.num_strings(), dictionary.len()), (1, 5000));
    assert_same_kmers(&dictionary, &counts);
    // A stream needs the index at its start and where the circle was cut.
    let mut stream = SequenceKmerLookup::for_dictionary(&dictionary);
    let found =
        encode::kmers(&circle, 31).filter(|&(start, kmer)| stream.find_kmer_number(start, kmer).is_some()).count();
    assert!(found == 5000 && stream.num_index_lookups() <= 2, "{found}, {}", stream.num_index_lookups());
}

#[test]
fn sets_without_neighbours_and_empty_sets_work() {
    for k in KMER_LENGTHS {
        let scattered: Vec<Vec<u8>> = (0..200).map(|i| random_sequence(i, k as usize)).collect();
        let counts = count_kmers(&scattered, k, 1);
        let dictionary = reopened(&build(&counts, k, MEMORY_BYTES).expect("a dictionary"));
        assert_same_kmers(&dictionary, &counts);
        let none = reopened(&build(&Counts::new(), k, MEMORY_BYTES).expect("a dictionary"));
        assert!(none.is_empty() && counts.keys().all(|&key| none.find_kmer_number(strand(key, k, false)).is_none()));
    }
}

#[test]
fn a_dictionary_without_counts_has_the_kmers() {
    let genome = repetitive_genome(3);
    let mut counts = count_kmers(&genome, 31, 1);
    counts.values_mut().for_each(Vec::clear);
    let dictionary = reopened(&build(&counts, 31, MEMORY_BYTES).expect("a dictionary"));
    assert_eq!((dictionary.num_samples(), dictionary.part_sizes().counts), (0, 0));
    assert_same_kmers(&dictionary, &counts);
}

#[test]
fn a_minimizer_of_many_kmers_does_not_hide_any() {
    // One sequence of 20 bases with different surroundings: more places than a minimizer may have.
    let core = random_sequence(77, 20);
    let sequences: Vec<Vec<u8>> = (0..3000u64)
        .map(|i| [&random_sequence(2 * i + 1000, 11)[..], &core, &random_sequence(2 * i + 1001, 11)].concat())
        .collect();
    let counts = count_kmers(&sequences, 31, 1);
    assert!(counts.len() > 20_000);
    let dictionary = reopened(&build(&counts, 31, MEMORY_BYTES).expect("a dictionary"));
    assert_same_kmers(&dictionary, &counts);
    assert_stream_is_correct(&dictionary, &counts, &sequences);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn random_genomes_come_back(
        k in prop::sample::select(&KMER_LENGTHS[..]),
        sequences in prop::collection::vec("[ACGT]{1,150}|[AC]{20,90}|(ACGT){8,20}|A{30,50}", 1..6),
        num_samples in 1usize..4,
    ) {
        let sequences: Vec<Vec<u8>> = sequences.into_iter().map(String::into_bytes).collect();
        let counts = count_kmers(&sequences, k, num_samples);
        let dictionary = build(&counts, k, MEMORY_BYTES).expect("a dictionary");
        assert_same_kmers(&dictionary, &counts);
        assert_stream_is_correct(&dictionary, &counts, &sequences);
    }
}
