//! CBQ, VBQ and BQ: the same reads however batches are cut.
#![no_main]

use genuma_fuzz::{Input, reads};
use genuma_reads::{Aligned, AlignedOptions, Cut, ReadLane};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let magics: [&[u8]; 3] = [b"CBQFILE", b"VSEQ", b"BSEQ"];
    if !magics.iter().any(|magic| bytes.starts_with(magic)) {
        return;
    }
    let input = Input::new("binseq", bytes);
    let lane = || ReadLane::Aligned(Aligned::new(input.path(), AlignedOptions::default()));
    let (all, error) = reads(lane(), Cut::at_reads(1000));
    // Seldom, as each opens threads.
    if bytes.len() % 8 == 0 {
        let (one_by_one, other) = reads(lane(), Cut::at_reads(1));
        assert!(error.is_some() == other.is_some() && (error.is_some() || all == one_by_one));
    }
});
