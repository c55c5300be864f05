//! Opens a k-mer dictionary and looks k-mers up: the result is a dictionary that answers, or an error, whatever the file.
#![no_main]

use genuma_dictionary::{Dictionary, SequenceKmerLookup};
use genuma_fuzz::InputFile;
use genuma_kmers::encode::{KmerOnBothStrands, kmer_mask, kmers, reverse_complement_kmer};
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_64;

const HEADER: usize = 4096;
/// Bytes of the header before its checksum.
const CONTENT: usize = HEADER - 8;
/// Place of the words and checksums of the parts in the header.
const PARTS: std::ops::Range<usize> = 88..264;

/// Returns the file with valid checksums, so that fuzzing reaches the code behind the checks.
fn with_valid_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut start = HEADER;
    for part in PARTS.step_by(16) {
        let Some(words) = bytes.get(part..part + 8) else { break };
        let words = words.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let Some(end) = words.checked_mul(8).and_then(|length| start.checked_add(length)) else { break };
        let Some(sum) = bytes.get(start..end).map(XxHash3_64::oneshot) else { break };
        bytes[part + 8..part + 16].copy_from_slice(&sum.to_le_bytes());
        start = end;
    }
    if bytes.len() >= HEADER {
        let sum = XxHash3_64::oneshot(&bytes[..CONTENT]);
        bytes[CONTENT..HEADER].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

// The first byte selects whether the checksums are made valid.
fuzz_target!(|bytes: &[u8]| {
    let &[seal, ref bytes @ ..] = bytes else { return };
    let bytes = if seal & 1 == 1 { with_valid_checksums(bytes.to_vec()) } else { bytes.to_vec() };
    let input = InputFile::new("dictionary", &bytes);
    let Ok(dictionary) = Dictionary::open(input.path()) else { return };
    let k = dictionary.k();
    let show = |number: u64| (0..dictionary.num_samples()).for_each(|sample| _ = dictionary.get_count(number, sample));
    for word in bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes"))) {
        let forward = word & kmer_mask(k);
        let kmer = KmerOnBothStrands { forward, reverse: reverse_complement_kmer(forward, k) };
        dictionary.find_kmer_number(kmer).into_iter().for_each(show);
    }
    let sequence: Vec<u8> = bytes.iter().map(|byte| b"ACGT"[usize::from(byte & 3)]).collect();
    let mut stream = SequenceKmerLookup::for_dictionary(&dictionary);
    kmers(&sequence, k).filter_map(|(start, kmer)| stream.find_kmer_number(start, kmer)).for_each(show);
    for string in dictionary.strings().map_while(Result::ok) {
        string.write_bases(&mut std::io::sink()).expect("a sink takes all bytes");
        string.kmer_numbers().for_each(show);
    }
});
