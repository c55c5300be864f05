//! Tables on flash: whatever the file, opening and reading it ends in entries in order or in an error.
#![no_main]

use genuma_flash::{Access, Answers, Options, Table};
use genuma_fuzz::Input;
use genuma_machine::placement::{Pages, Placement, Policy};
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_64;

const PAGE: usize = 4096;

/// The file with checksums that fit, as a wrong program would write it: else little beyond them would be reached.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    for section in [56, 80, 104] {
        let Some([offset, length]) = bytes.get(section..section + 16).map(|at| [&at[..8], &at[8..]].map(number)) else { continue };
        let part = offset.checked_add(length).and_then(|end| bytes.get(offset..end));
        let Some(sum) = part.map(XxHash3_64::oneshot) else { continue };
        if let Some(place) = bytes.get_mut(section + 16..section + 24) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    }
    for (number, page) in bytes.chunks_exact_mut(PAGE).enumerate() {
        let sum = XxHash3_64::oneshot_with_seed(number as u64, &page[..PAGE - 8]);
        page[PAGE - 8..].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

// The first byte says whether the checksums are made to fit.
fuzz_target!(|bytes: &[u8]| {
    let &[seal, ref bytes @ ..] = bytes else { return };
    let bytes = if seal & 1 == 1 { sealed(bytes.to_vec()) } else { bytes.to_vec() };
    let input = Input::new("table", &bytes);
    let placement = Placement { policy: Policy::Local, pages: Pages::Base };
    let options = Options { access: Access::Pread, placement, ..Options::default() };
    let Ok(table) = Table::open(input.path(), &options) else { return };
    let Ok(mut entries) = table.entries() else { return };
    let mut keys = Vec::new();
    while let Ok(Some((key, value))) = entries.next() {
        assert_eq!(value.len(), table.value_bytes());
        keys.push(key);
    }
    let Ok(mut reader) = table.reader(4) else { return };
    let mut answers = Answers::default();
    let _ = reader.get_many(&keys, &mut answers);
});
