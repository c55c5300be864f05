//! Sets of k-mers for the tests.
#![allow(dead_code, reason = "each test uses some of them")]

use std::collections::BTreeMap;

use genuma_dictionary::{Dictionary, DictionaryBuilder, DictionarySpec, Error};
use genuma_kmers::encode::{self, KmerOnBothStrands, reverse_complement_kmer};

/// Enough memory for the sets of the tests.
pub const MEMORY_BYTES: u64 = 64 << 20;

/// Counts of canonical k-mers, by sample.
pub type Counts = BTreeMap<u64, Vec<u32>>;

/// A number that looks random.
pub fn mix(seed: u64) -> u64 {
    let word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// `length` random bases.
pub fn random_sequence(seed: u64, length: usize) -> Vec<u8> {
    (0..length).map(|i| b"ACGT"[(mix(seed << 32 | i as u64) % 4) as usize]).collect()
}

/// The k-mers of sequences with how often each occurs, and for further samples numbers that depend on the k-mer.
pub fn count_kmers(sequences: &[Vec<u8>], k: u32, num_samples: usize) -> Counts {
    let mut counts = Counts::new();
    for (_, kmer) in sequences.iter().flat_map(|sequence| encode::kmers(sequence, k)) {
        let key = kmer.canonical();
        let other = |sample: u64| (mix(key.wrapping_add(sample)) % 40) as u32;
        let row = || (0..num_samples as u64).map(|sample| if sample == 0 { 0 } else { other(sample) });
        let row = counts.entry(key).or_insert_with(|| row().collect());
        row.iter_mut().take(1).for_each(|count| *count += 1);
    }
    counts
}

/// The dictionary of counts that all have one number for each sample.
pub fn build(counts: &Counts, k: u32, memory_bytes: u64) -> Result<Dictionary, Error> {
    let num_samples = counts.values().next().map_or(1, Vec::len);
    let (num_kmers, note) = (counts.len() as u64, b"a note".to_vec());
    let mut builder = DictionaryBuilder::with_spec(DictionarySpec { k, num_kmers, num_samples, note, memory_bytes })?;
    counts.iter().try_for_each(|(&key, row)| builder.push_kmer(key, row))?;
    builder.build()
}

/// A canonical k-mer, or its reverse complement.
pub fn strand(key: u64, k: u32, reverse: bool) -> KmerOnBothStrands {
    let other = reverse_complement_kmer(key, k);
    if reverse {
        KmerOnBothStrands { forward: other, reverse: key }
    } else {
        KmerOnBothStrands { forward: key, reverse: other }
    }
}

/// The counts that the dictionary has for a k-mer, given by its number.
pub fn row(dictionary: &Dictionary, number: u64) -> Vec<u32> {
    (0..dictionary.num_samples()).map(|sample| dictionary.get_count(number, sample)).collect()
}

/// Asserts that the strings have these k-mers, each once, and that their numbers lead to these counts.
pub fn assert_strings_have(dictionary: &Dictionary, counts: &Counts) {
    let (mut next_number, mut num_strings, mut keys) = (0, 0, Vec::new());
    for string in dictionary.strings() {
        let (string, mut bases) = (string.expect("a string"), Vec::new());
        string.write_bases(&mut bases).expect("written");
        assert_eq!(bases.len() as u64, string.num_bases());
        assert_eq!(string.kmer_numbers().start, next_number);
        let kmers: Vec<u64> = encode::kmers(&bases, dictionary.k()).map(|(_, kmer)| kmer.canonical()).collect();
        assert_eq!(kmers.len() as u64, string.kmer_numbers().end - next_number);
        for (number, key) in string.kmer_numbers().zip(&kmers) {
            assert_eq!(counts.get(key), Some(&row(dictionary, number)), "{key:#x}");
        }
        (next_number, num_strings) = (string.kmer_numbers().end, num_strings + 1);
        keys.extend(kmers);
    }
    keys.sort_unstable();
    assert!(keys.iter().eq(counts.keys()), "the k-mers of the strings");
    assert_eq!((next_number, num_strings), (dictionary.len(), dictionary.num_strings()));
}

/// Asserts that the dictionary has these k-mers with these counts, on either strand and each once, and no neighbour of
/// them that is not among them.
pub fn assert_same_kmers(dictionary: &Dictionary, counts: &Counts) {
    let k = dictionary.k();
    assert_eq!(dictionary.len(), counts.len() as u64);
    let mut numbers = Vec::new();
    for (&key, expected) in counts {
        for reverse in [false, true] {
            let number =
                dictionary.find_kmer_number(strand(key, k, reverse)).unwrap_or_else(|| panic!("{key:#x} is missing"));
            assert_eq!(&row(dictionary, number), expected, "{key:#x}");
            numbers.push(number);
        }
        for changed in (0..2 * k).map(|bit| key ^ 1 << bit) {
            let changed = strand(changed, k, false);
            if !counts.contains_key(&changed.canonical()) {
                assert_eq!(dictionary.find_kmer_number(changed), None, "{changed:?}");
            }
        }
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq((0..dictionary.len()).flat_map(|number| [number; 2])), "numbers of k-mers");
    assert_strings_have(dictionary, counts);
}
