//! Parses the SAM output of an aligner: accepted output is returned completely, however it is split into chunks.
#![no_main]

use genuma_strategy::fuzz::parse_sam_of_two_batches;
use libfuzzer_sys::fuzz_target;

// The first byte selects the order of the records and the chunk size.
fuzz_target!(|input: &[u8]| {
    let &[how, ref text @ ..] = input else { return };
    let (in_order, piece) = (how & 1 == 0, usize::from(how >> 1));
    let taken = parse_sam_of_two_batches(text, in_order, piece);
    assert_eq!(taken.is_ok(), parse_sam_of_two_batches(text, in_order, text.len()).is_ok());
    let Ok(taken) = taken else { return };
    let lines = |bytes: &[u8]| {
        let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort();
        lines
    };
    let header = text.split_inclusive(|b| *b == b'\n').take_while(|line| line.starts_with(b"@"));
    let records = &text[header.map(<[u8]>::len).sum()..];
    assert_eq!(lines(&taken), lines(records));
});
