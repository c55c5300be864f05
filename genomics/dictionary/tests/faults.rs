//! Damaged files, wrong input and too little memory give one clear error.

mod common;

use std::fs;

use common::{Counts, MEMORY_BYTES, build, count_kmers, mix, random_sequence, row};
use genuma_dictionary::{
    Dictionary, DictionaryBuilder, DictionaryHeader, DictionarySpec, Error, SequenceKmerLookup, is_dictionary_file,
};
use genuma_kmers::encode;
use twox_hash::XxHash3_64;

fn counts() -> Counts {
    count_kmers(&[random_sequence(1, 3000), b"CAGT".repeat(30)], 31, 2)
}

#[test]
fn any_changed_byte_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.gkd");
    let dictionary = build(&counts(), 31, MEMORY_BYTES).expect("a dictionary");
    dictionary.write_unpublished(&path).expect("written").0.publish().expect("published");
    assert!(is_dictionary_file(&path).expect("a file"));
    let whole = fs::read(&path).expect("a file");
    let places = (0..300).chain(4080..4200).chain((0..200).map(|i| mix(i) as usize % whole.len()));
    for place in places.chain([whole.len() - 1]) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        fs::write(&path, bytes).expect("written");
        let error = Dictionary::open(&path).expect_err("damage");
        let told = match place {
            0..8 => matches!(error, Error::NotADictionary { .. }),
            8..12 => matches!(error, Error::UnsupportedVersion { .. }),
            _ => matches!(error, Error::Damaged { .. }),
        };
        assert!(told && error.to_string().contains("x.gkd"), "byte {place}: {error}");
    }
}

/// Gives a file the checksums that its parts and header have by the format.
fn make_checksums_valid(bytes: &mut [u8]) {
    let mut start = 4096;
    for part in (88..264).step_by(16) {
        let words = u64::from_le_bytes(bytes[part..part + 8].try_into().expect("8 bytes")) as usize;
        let end = start + 8 * words;
        let checksum = XxHash3_64::oneshot(&bytes[start..end]);
        bytes[part + 8..part + 16].copy_from_slice(&checksum.to_le_bytes());
        start = end;
    }
    let checksum = XxHash3_64::oneshot(&bytes[..4088]);
    bytes[4088..4096].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn wrong_parts_with_valid_checksums_do_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.gkd");
    let mut sequences: Vec<Vec<u8>> = (0..40).map(|i| random_sequence(i, 60)).collect();
    sequences
        .extend((0..30).map(|i| [&random_sequence(50 + i, 9)[..], &[b'A'; 40], &random_sequence(90 + i, 9)].concat()));
    let counts = count_kmers(&sequences, 31, 2);
    let dictionary = build(&counts, 31, MEMORY_BYTES).expect("a dictionary");
    dictionary.write_unpublished(&path).expect("written").0.publish().expect("published");
    let whole = fs::read(&path).expect("a file");
    let mut num_inconsistent = 0;
    for round in 0..400 {
        let mut bytes = whole.clone();
        for change in 0..1 + round % 40 {
            let place = 4096 + mix(round << 8 | change) as usize % (whole.len() - 4096);
            let value = [0, 0xff, mix(round + change) as u8][(round % 3) as usize];
            bytes[place..(place + 8).min(whole.len())].fill(value);
        }
        make_checksums_valid(&mut bytes);
        fs::write(&path, bytes).expect("written");
        let changed = Dictionary::open(&path).expect("its checksums are valid");
        let mut stream = SequenceKmerLookup::for_dictionary(&changed);
        for sequence in &sequences {
            stream.start_query_sequence();
            for (start, kmer) in encode::kmers(sequence, 31) {
                for number in
                    [changed.find_kmer_number(kmer), stream.find_kmer_number(start, kmer)].into_iter().flatten()
                {
                    row(&changed, number);
                }
            }
        }
        let numbers = changed.strings().map(|string| string.map(|string| string.kmer_numbers()));
        match numbers.collect::<Result<Vec<_>, Error>>() {
            Ok(numbers) => assert!(numbers.into_iter().flatten().eq(0..changed.len()), "round {round}"),
            Err(error) => {
                assert!(matches!(error, Error::InconsistentStrings), "round {round}: {error}");
                num_inconsistent += 1;
            }
        }
    }
    assert!((1..400).contains(&num_inconsistent), "{num_inconsistent}");
    // Numbers of the header that contradict each other are refused.
    for place in [12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 72, 80, 88, 104, 232] {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x40;
        let checksum = XxHash3_64::oneshot(&bytes[..4088]);
        bytes[4088..4096].copy_from_slice(&checksum.to_le_bytes());
        fs::write(&path, bytes).expect("written");
        let refused = Dictionary::open(&path);
        assert!(matches!(refused, Err(Error::Damaged { .. })) || place == 28, "byte {place}: {refused:?}");
        let refused = DictionaryHeader::read(&path);
        assert!(matches!(refused, Err(Error::Damaged { .. })) || place == 28, "byte {place}: {refused:?}");
    }
}

#[test]
fn truncated_and_other_files_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.gkd");
    let dictionary = build(&counts(), 31, MEMORY_BYTES).expect("a dictionary");
    dictionary.write_unpublished(&path).expect("written").0.publish().expect("published");
    let whole = fs::read(&path).expect("a file");
    for length in [8, 100, 4095, 4096, 4104, whole.len() - 1] {
        fs::write(&path, &whole[..length]).expect("written");
        let error = Dictionary::open(&path).expect_err("truncated");
        assert!(matches!(error, Error::WrongFileLength { .. }), "{length} bytes: {error}");
        assert!(matches!(DictionaryHeader::read(&path), Err(Error::WrongFileLength { .. })), "{length} bytes");
    }
    fs::write(&path, [&whole[..], b"12345678"].concat()).expect("written");
    assert!(matches!(Dictionary::open(&path), Err(Error::WrongFileLength { .. })));
    for other in [&b""[..], b"GENUMA", b"GENUMATB and more"] {
        fs::write(&path, other).expect("written");
        assert!(!is_dictionary_file(&path).expect("a file"));
        assert!(matches!(Dictionary::open(&path), Err(Error::NotADictionary { .. })));
    }
    fs::remove_file(&path).expect("removed");
    assert!(matches!(is_dictionary_file(&path), Err(Error::Open { .. })));
    assert!(matches!(Dictionary::open(&path), Err(Error::Open { .. })));
}

#[test]
fn wrong_input_is_refused() {
    let spec = DictionarySpec { k: 15, num_kmers: 2, num_samples: 1, note: Vec::new(), memory_bytes: MEMORY_BYTES };
    let invalid = |result: Result<(), Error>| assert!(matches!(result, Err(Error::InvalidInput { .. })), "{result:?}");
    for k in [0, 1, 33] {
        invalid(DictionaryBuilder::with_spec(DictionarySpec { k, ..spec.clone() }).map(drop));
    }
    invalid(DictionaryBuilder::with_spec(DictionarySpec { num_samples: 65, ..spec.clone() }).map(drop));
    invalid(DictionaryBuilder::with_spec(DictionarySpec { note: vec![b' '; 2049], ..spec.clone() }).map(drop));
    let new = || DictionaryBuilder::with_spec(spec.clone()).expect("a builder");
    // T with 14 times A is not canonical: its reverse complement begins with T, too, but goes on with T.
    invalid(new().push_kmer((1 << 30) - 1, &[1]));
    invalid(new().push_kmer(1 << 30, &[1]));
    invalid(new().push_kmer(5, &[1, 1]));
    let mut builder = new();
    builder.push_kmer(5, &[1]).expect("a k-mer");
    invalid(builder.push_kmer(5, &[1]));
    invalid(builder.push_kmer(4, &[1]));
    invalid(builder.build().map(drop));
    let mut builder = new();
    builder.push_kmer(5, &[1]).expect("a k-mer");
    builder.push_kmer(6, &[1]).expect("a k-mer");
    invalid(builder.push_kmer(7, &[1]));
}

#[test]
fn too_little_memory_is_told_with_what_is_needed() {
    let counts = count_kmers(&[random_sequence(1, 200_000)], 31, 1);
    let error = build(&counts, 31, 1 << 20).expect_err("too little");
    let Error::MemoryLimit { needed_bytes, allowed_bytes } = error else { panic!("{error}") };
    assert_eq!(allowed_bytes, 1 << 20);
    build(&counts, 31, needed_bytes).expect("enough for one string");
    // K-mers without neighbours take more, which shows only while they are joined.
    let scattered: Vec<Vec<u8>> = (0..400_000).map(|i| random_sequence(i, 31)).collect();
    let counts = count_kmers(&scattered, 31, 1);
    let spec = DictionarySpec { k: 31, num_kmers: 400_000, num_samples: 1, note: Vec::new(), memory_bytes: 0 };
    let least = spec.min_memory_bytes();
    let error = build(&counts, 31, least).expect_err("too little");
    let Error::MemoryLimit { needed_bytes, .. } = error else { panic!("{error}") };
    assert!(needed_bytes > least && needed_bytes < 2 * least, "{needed_bytes} after {least}");
    build(&counts, 31, needed_bytes + (1 << 20)).expect("enough");
}
