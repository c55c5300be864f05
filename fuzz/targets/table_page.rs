//! Decodes a compact page of a table: the result is ascending keys with their counts, or an error, whatever the page. Lookups find what the page
//! has.
#![no_main]

use genuma_flash::{LookupResults, PageReadMethod, Table, TableOpenOptions, TableSpec, TableWriter};
use genuma_fuzz::InputFile;
use genuma_machine::placement::{MemoryPlacement, MemoryPolicy, PageSize};
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_64;

const PAGE: usize = 4096;
/// Bytes of a page before its checksum.
const CONTENT: usize = PAGE - 8;
/// Place of the first key, which the index has too.
const FIRST_KEY: std::ops::Range<usize> = 8..16;

/// The file of a table with one entry, whose key is 0, and `samples` counts.
fn table_of_one_page(input: &InputFile, samples: usize) -> Vec<u8> {
    let spec = TableSpec { filter_bits: 0, ..TableSpec::new_for_counts(samples, 1) };
    let mut writer = TableWriter::create(input.path(), spec).expect("a table");
    writer.push_entry(0, &vec![1; 4 * samples], 0).expect("an entry");
    writer.finish_and_publish().expect("a table");
    std::fs::read(input.path()).expect("a table")
}

// The first byte is the number of samples, the others are the page.
fuzz_target!(|bytes: &[u8]| {
    let &[samples, ref bytes @ ..] = bytes else { return };
    let input = InputFile::new("table-page", &[]);
    let mut file = table_of_one_page(&input, 1 + usize::from(samples % 8));
    let page = &mut file[PAGE..2 * PAGE];
    let length = bytes.len().min(CONTENT);
    page[..length].copy_from_slice(&bytes[..length]);
    page[FIRST_KEY].fill(0);
    let sum = XxHash3_64::oneshot_with_seed(1, &page[..CONTENT]);
    page[CONTENT..].copy_from_slice(&sum.to_le_bytes());
    // The largest key of the header is that of the page at most.
    file[48..56].fill(0xff);
    let sum = XxHash3_64::oneshot_with_seed(0, &file[..CONTENT]);
    file[CONTENT..PAGE].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(input.path(), &file).expect("/dev/shm can be written");
    let placement = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base };
    let options = TableOpenOptions { access: PageReadMethod::Pread, placement, ..TableOpenOptions::default() };
    let table = Table::open(input.path(), &options).expect("only the page is unusual");
    let mut entries = table.new_entry_reader().expect("memory");
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    while let Ok(Some((key, value))) = entries.next_entry() {
        keys.push(key);
        values.push(value.to_vec());
    }
    assert!(keys.is_sorted_by(|a, b| a < b));
    let mut results = LookupResults::default();
    table.new_reader(4).expect("a reader").get_many(&keys, &mut results).expect("a page that was decoded");
    assert!(results.iter().map(|result| result.expect("a key of the page")).eq(values.iter().map(|value| &value[..])));
});
