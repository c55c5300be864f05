//! SAM of an aligner, merged: what is taken whole is all that was written, whatever the pieces it comes in.
#![no_main]

use genuma_strategy::fuzz::sam;
use libfuzzer_sys::fuzz_target;

// The first byte says in which order records may come, and in what pieces.
fuzz_target!(|input: &[u8]| {
    let &[how, ref text @ ..] = input else { return };
    let (in_order, piece) = (how & 1 == 0, usize::from(how >> 1));
    let taken = sam(text, in_order, piece);
    assert_eq!(taken.is_ok(), sam(text, in_order, text.len()).is_ok());
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
