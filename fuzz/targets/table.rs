//! Opens and reads a table file on flash: the result is sorted entries or an error, whatever the file.
#![no_main]

use genuma_flash::{LookupResults, PageReadMethod, Table, TableOpenOptions};
use genuma_fuzz::InputFile;
use genuma_machine::placement::{MemoryPlacement, MemoryPolicy, PageSize};
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_64;

const PAGE: usize = 4096;

/// Returns the file with valid checksums, so that fuzzing reaches the code behind the checks.
fn with_valid_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
    for section in [56, 80, 104] {
        let Some([offset, length]) = bytes.get(section..section + 16).map(|at| [&at[..8], &at[8..]].map(read_le)) else { continue };
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

fn read_le(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

// The first byte selects whether the checksums are made valid.
fuzz_target!(|bytes: &[u8]| {
    let &[seal, ref bytes @ ..] = bytes else { return };
    let bytes = if seal & 1 == 1 { with_valid_checksums(bytes.to_vec()) } else { bytes.to_vec() };
    let input = InputFile::new("table", &bytes);
    let placement = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base };
    let options = TableOpenOptions { access: PageReadMethod::Pread, placement, ..TableOpenOptions::default() };
    let Ok(table) = Table::open(input.path(), &options) else { return };
    let Ok(mut entries) = table.new_entry_reader() else { return };
    let mut keys = Vec::new();
    while let Ok(Some((key, value))) = entries.next_entry() {
        assert_eq!(value.len(), table.value_bytes());
        keys.push(key);
    }
    let Ok(mut reader) = table.new_reader(4) else { return };
    let mut results = LookupResults::default();
    let _ = reader.get_many(&keys, &mut results);
});
