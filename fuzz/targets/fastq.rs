//! Reads FASTQ and FASTA files: the reads do not depend on the batch size.
#![no_main]

use genuma_fuzz::{InputFile, read_all};
use genuma_reads::{BatchLimits, StreamLane};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let input = InputFile::new("fastq", text);
    let path = input.path().to_path_buf();
    let (all, error) = read_all(StreamLane::Single(path.clone()), BatchLimits::with_reads_per_batch(1000));
    // Rarely, because each reader starts threads.
    if text.len() % 8 == 0 {
        let (one_by_one, other) = read_all(StreamLane::Single(path.clone()), BatchLimits::with_reads_per_batch(1));
        assert!(error.is_some() == other.is_some() && (error.is_some() || all == one_by_one));
        let (mates, _) = read_all(StreamLane::Interleaved(path), BatchLimits::with_reads_per_batch(2));
        assert!(mates.len() % 2 == 0);
    }
});
