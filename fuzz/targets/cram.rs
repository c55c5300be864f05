//! Reads CRAM files: the result is reads or an error, whatever the file.
#![no_main]

use std::panic;
use std::sync::Once;

use genuma_fuzz::{InputFile, read_all};
use genuma_reads::{AlignedInput, AlignedOptions, BatchLimits, StreamLane};
use libfuzzer_sys::fuzz_target;

/// Position of the major version in the file definition.
const MAJOR_VERSION_AT: usize = 4;
/// Length of the file definition: magic, version, file ID.
const FILE_DEFINITION_BYTES: usize = 26;

/// A panic of the decoder is caught by genuma and becomes an error, so only other panics are findings.
fn abort_on_own_panics_only() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let abort = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if info.location().is_none_or(|location| !location.file().contains("noodles")) {
                abort(info);
            }
        }));
    });
}

/// Returns the end of the ITF8 integer at `at` and its value.
fn itf8(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let first = *bytes.get(at)?;
    let more = (first.leading_ones() as usize).min(4);
    let rest = bytes.get(at + 1..at + 1 + more)?;
    let head = if more == 4 { usize::from(first & 0xf) } else { usize::from(first) & (0x7f >> more) };
    let value = match rest {
        [a, b, c, d] => head << 28 | usize::from(*a) << 20 | usize::from(*b) << 12 | usize::from(*c) << 4 | usize::from(d & 0xf),
        _ => rest.iter().fold(head, |sum, byte| sum << 8 | usize::from(*byte)),
    };
    Some((at + 1 + more, value))
}

/// Returns the end of the LTF8 integer at `at`.
fn ltf8_end(bytes: &[u8], at: usize) -> Option<usize> {
    Some(at + 1 + bytes.get(at)?.leading_ones() as usize)
}

/// Sets the CRC32 at `end` to that of the bytes from `start` to `end`, and returns the position after it.
fn set_crc(bytes: &mut [u8], start: usize, end: usize) -> Option<usize> {
    let sum = crc32fast::hash(bytes.get(start..end)?);
    bytes.get_mut(end..end + 4)?.copy_from_slice(&sum.to_le_bytes());
    Some(end + 4)
}

/// Makes the CRC32 of the container at `start` and of its blocks valid. Returns the end of the container.
fn set_container_crcs(bytes: &mut [u8], start: usize) -> Option<usize> {
    let length = u32::from_le_bytes(bytes.get(start..start + 4)?.try_into().ok()?) as usize;
    let mut at = start + 4;
    for _ in 0..4 {
        (at, _) = itf8(bytes, at)?;
    }
    at = ltf8_end(bytes, ltf8_end(bytes, at)?)?;
    let (next, num_blocks) = itf8(bytes, at)?;
    let (next, num_landmarks) = itf8(bytes, next)?;
    at = next;
    for _ in 0..num_landmarks.min(bytes.len()) {
        (at, _) = itf8(bytes, at)?;
    }
    at = set_crc(bytes, start, at)?;
    let end = at.checked_add(length)?;
    for _ in 0..num_blocks.min(bytes.len()) {
        let (next, _) = itf8(bytes, at + 2)?;
        let (next, size) = itf8(bytes, next)?;
        let (next, _) = itf8(bytes, next)?;
        at = set_crc(bytes, at, next.checked_add(size)?)?;
    }
    Some(end)
}

// The first byte selects whether the checksums are made valid, so that fuzzing reaches the code behind the checks.
// Version 2 has no checksums.
fuzz_target!(|input: &[u8]| {
    let &[seal, ref bytes @ ..] = input else { return };
    if !bytes.starts_with(b"CRAM") {
        return;
    }
    abort_on_own_panics_only();
    let mut bytes = bytes.to_vec();
    let mut at = FILE_DEFINITION_BYTES;
    let is_sealed = seal & 1 == 1 && bytes.get(MAJOR_VERSION_AT) != Some(&2);
    while is_sealed && let Some(end) = set_container_crcs(&mut bytes, at).filter(|&end| end > at) {
        at = end;
    }
    let input = InputFile::new("cram", &bytes);
    let options = AlignedOptions { pair_mates: seal & 2 == 0, ..AlignedOptions::default() };
    let lane = StreamLane::Aligned(AlignedInput::new(input.path(), options));
    read_all(lane, BatchLimits::with_reads_per_batch(1000));
});
