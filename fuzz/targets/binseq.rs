//! Reads CBQ, VBQ and BQ files: the reads do not depend on the batch size.
#![no_main]

use genuma_fuzz::{InputFile, read_all};
use genuma_reads::{AlignedInput, AlignedOptions, BatchLimits, StreamLane};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let magics: [&[u8]; 3] = [b"CBQFILE", b"VSEQ", b"BSEQ"];
    if !magics.iter().any(|magic| bytes.starts_with(magic)) {
        return;
    }
    let input = InputFile::new("binseq", bytes);
    let lane = || StreamLane::Aligned(AlignedInput::new(input.path(), AlignedOptions::default()));
    let (all, error) = read_all(lane(), BatchLimits::with_reads_per_batch(1000));
    // Rarely, because each reader starts threads.
    if bytes.len() % 8 == 0 {
        let (one_by_one, other) = read_all(lane(), BatchLimits::with_reads_per_batch(1));
        assert!(error.is_some() == other.is_some() && (error.is_some() || all == one_by_one));
    }
});
