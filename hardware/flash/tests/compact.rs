//! Tables of compact pages: the same entries and answers as tables of the version before, and every damage found.

use std::fs;
use std::path::Path;

use genuma_flash::{
    EntryBatch, Error, LookupResults, PageReadMethod, Table, TableOpenOptions, TablePageReader, TablePart, TableSpec,
    TableWriter,
};
use tempfile::TempDir;

/// Keys as of sorted k-mers, most far apart and some close together, and counts of `samples` samples.
fn entries(n: usize, samples: usize) -> (Vec<u64>, Vec<u32>) {
    let mut state = 7_u64;
    let mut number = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 16
    };
    let mut keys = Vec::with_capacity(n);
    let mut key = 5;
    for _ in 0..n {
        keys.push(key);
        key += 1 + (number() >> (9 + number() % 40 * u64::from(number() % 3 == 0)));
    }
    let count = |number: u64| match number % 11 {
        0..5 => 1,
        5..7 => 0,
        7..10 => 10 + (number >> 8) as u32 % 40,
        _ => (number >> 8) as u32 >> ((number >> 40) % 32),
    };
    let counts = (0..n * samples).map(|_| count(number())).collect();
    (keys, counts)
}

fn write(path: &Path, spec: TableSpec, keys: &[u64], counts: &[u32]) {
    let (mut writer, samples) = (TableWriter::create(path, spec).unwrap(), counts.len() / keys.len().max(1));
    let weight = |entry: usize| u64::from(counts[entry * samples]);
    writer.push_entries(keys, bytemuck::cast_slice(counts), weight).unwrap();
    writer.finish_and_publish().unwrap();
}

fn open(path: &Path, access: PageReadMethod) -> Table {
    Table::open(path, &TableOpenOptions { access, ..TableOpenOptions::default() }).unwrap()
}

#[test]
fn both_versions_have_the_same_entries_and_answers() {
    let folder = TempDir::new().unwrap();
    let [before, compact] = ["before", "compact"].map(|name| folder.path().join(name));
    for (n, samples) in [(0, 1), (1, 1), (2, 3), (16_384, 1), (16_385, 2), (70_000, 1), (70_000, 8)] {
        let (keys, counts) = entries(n, samples);
        let hot = |spec| TableSpec { hot_entries: 30, ..spec };
        write(&before, hot(TableSpec::new(4 * samples, n as u64)), &keys, &counts);
        write(&compact, hot(TableSpec::new_for_counts(samples, n as u64)), &keys, &counts);
        let asked: Vec<u64> = keys.iter().flat_map(|&key| [key + 1, key, key - 1]).chain([0, u64::MAX]).collect();
        for access in [PageReadMethod::Auto, PageReadMethod::Memory, PageReadMethod::Pread] {
            let tables = [&before, &compact].map(|path| open(path, access));
            let mut answers = [LookupResults::new(), LookupResults::new()];
            for (table, answers) in tables.iter().zip(&mut answers) {
                table.get_many_with_threads(&asked, 2, 16, answers).unwrap();
            }
            assert!(answers[0].iter().eq(answers[1].iter()), "{n} entries, {samples} samples");
            let mut readers = tables.each_ref().map(|table| table.new_entry_reader().unwrap());
            loop {
                let [a, b] = readers.each_mut().map(|reader| reader.next_entry().unwrap());
                assert_eq!(a, b);
                if a.is_none() {
                    break;
                }
            }
        }
        let mut batches = [&before, &compact].map(|path| {
            let scan = TablePageReader::open(path).unwrap();
            assert_eq!((scan.len(), scan.value_bytes()), (n as u64, 4 * samples));
            let (mut all, mut batch) = (EntryBatch::<u32>::default(), EntryBatch::default());
            let mut walk = scan.new_entry_batch_reader(5).unwrap();
            loop {
                walk.read_next_batch(&mut batch).unwrap();
                if batch.keys.is_empty() {
                    return (all.keys, all.values);
                }
                all.keys.append(&mut batch.keys);
                all.values.append(&mut batch.values);
            }
        });
        assert!(batches[0] == batches[1] && batches[1] == (keys, counts));
        batches[0].0.clear();
    }
}

#[test]
fn a_lookup_reads_one_page_and_absent_keys_hardly_any() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    let (keys, counts) = entries(100_000, 1);
    for memory_bytes in [0, u64::MAX] {
        write(&path, TableSpec { memory_bytes, ..TableSpec::new_for_counts(1, 150_000) }, &keys, &counts);
        let table = open(&path, PageReadMethod::Pread);
        assert!(table.num_pages() * 590 < 100_000, "{} pages", table.num_pages());
        // 12 bits a key: 24 blocks of 64 bytes for 1024 keys.
        assert_eq!(table.memory_bytes_by_part().filter, (6 * 64 + 8) * 6 * 64);
        let mut reader = table.new_reader(1).unwrap();
        for (number, &key) in keys.iter().enumerate().step_by(101) {
            assert_eq!(reader.get(key).unwrap(), Some(&counts[number].to_le_bytes()[..]));
        }
        assert_eq!(reader.lookup_statistics().pages_read, 100_000_u64.div_ceil(101));
        let mut reader = table.new_reader(1).unwrap();
        let absent: Vec<u64> = keys.windows(2).filter(|pair| pair[1] > pair[0] + 1).map(|pair| pair[0] + 1).collect();
        reader.get_many(&absent, &mut LookupResults::new()).unwrap();
        let counted = reader.lookup_statistics();
        assert!(counted.known_absent * 1000 > absent.len() as u64 * 990, "{counted:?}");
    }
}

#[test]
fn the_filter_does_not_depend_on_memory_or_on_what_was_announced() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    let (keys, counts) = entries(100_000, 2);
    let mut first = None;
    for (most, memory_bytes) in [(100_000, u64::MAX), (100_000, 0), (170_000, 0), (170_000, 9 << 20), (1 << 30, 0)] {
        write(&path, TableSpec { memory_bytes, ..TableSpec::new_for_counts(2, most) }, &keys, &counts);
        let bytes = fs::read(&path).unwrap();
        assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{most} announced, {memory_bytes} bytes");
    }
}

fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

#[test]
fn a_changed_byte_anywhere_is_found() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    let (keys, counts) = entries(20_000, 1);
    write(&path, TableSpec { hot_entries: 40, ..TableSpec::new_for_counts(1, 20_000) }, &keys, &counts);
    let whole = fs::read(&path).unwrap();
    let options = TableOpenOptions { load_hot_entries: false, ..TableOpenOptions::default() };
    let read_all = || {
        let table = Table::open(&path, &options)?;
        table.new_reader(8)?.get_many(&keys, &mut LookupResults::new())
    };
    let scan_all = || {
        let (scan, mut batch) = (TablePageReader::open(&path)?, EntryBatch::<u32>::default());
        let mut walk = scan.new_entry_batch_reader(3)?;
        loop {
            walk.read_next_batch(&mut batch)?;
            if batch.keys.is_empty() {
                return Ok::<(), Error>(());
            }
        }
    };
    read_all().unwrap();
    scan_all().unwrap();
    let parts = [56, 80, 104].map(|at| word(&whole, at)..word(&whole, at) + word(&whole, at + 8));
    let part_of = |byte: usize| match byte {
        0..4096 => TablePart::Header,
        _ if parts[0].contains(&byte) => TablePart::Index,
        _ if parts[1].contains(&byte) => TablePart::Filter,
        _ if parts[2].contains(&byte) => TablePart::HotEntries,
        _ => TablePart::Page((byte / 4096) as u64),
    };
    let pages = 4096..parts[0].start;
    let everywhere = |part: std::ops::Range<usize>| part.clone().step_by(part.len().div_ceil(90));
    let places = [12..4096, pages.clone(), parts[0].clone(), parts[1].clone(), parts[2].clone()];
    for byte in places.into_iter().flat_map(everywhere) {
        let mut bytes = whole.clone();
        bytes[byte] ^= 1 << (byte % 8);
        fs::write(&path, bytes).unwrap();
        let said = read_all().unwrap_err();
        assert!(matches!(said, Error::Damaged { part, .. } if part == part_of(byte)), "byte {byte}: {said}");
        if pages.contains(&byte) {
            let said = scan_all().unwrap_err();
            assert!(matches!(said, Error::Damaged { part, .. } if part == part_of(byte)), "byte {byte}: {said}");
        }
    }
    // A page in another's place.
    let mut bytes = whole.clone();
    bytes.copy_within(2 * 4096..3 * 4096, 3 * 4096);
    fs::write(&path, bytes).unwrap();
    assert!(matches!(read_all(), Err(Error::Damaged { part: TablePart::Page(3), .. })));
    assert!(matches!(scan_all(), Err(Error::Damaged { part: TablePart::Page(3), .. })));
    for bytes in [4096, 8192, whole.len() - 4096, whole.len() - 1] {
        fs::write(&path, &whole[..bytes]).unwrap();
        assert!(matches!(read_all(), Err(Error::WrongFileLength { .. })), "{bytes} bytes");
        assert!(matches!(scan_all(), Err(Error::WrongFileLength { .. })), "{bytes} bytes");
    }
}

#[test]
fn only_counts_are_compact() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    for value_bytes in [0, 3, 7, 4 * 65] {
        let spec = TableSpec { value_bytes, ..TableSpec::new_for_counts(1, 9) };
        let said = TableWriter::create(&path, spec).unwrap_err().to_string();
        assert!(
            said.ends_with(&format!("values of {value_bytes} bytes, compact pages have 1 to 64 counts of 4")),
            "{said}"
        );
    }
}
