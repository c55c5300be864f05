//! FASTQ and FASTA of reads: the same reads however batches are cut.
#![no_main]

use genuma_fuzz::{Input, reads};
use genuma_reads::{Cut, ReadLane};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let input = Input::new("fastq", text);
    let path = input.path().to_path_buf();
    let (all, error) = reads(ReadLane::Single(path.clone()), Cut::at_reads(1000));
    // Seldom, as each opens threads.
    if text.len() % 8 == 0 {
        let (one_by_one, other) = reads(ReadLane::Single(path.clone()), Cut::at_reads(1));
        assert!(error.is_some() == other.is_some() && (error.is_some() || all == one_by_one));
        let (mates, _) = reads(ReadLane::Interleaved(path), Cut::at_reads(2));
        assert!(mates.len() % 2 == 0);
    }
});
