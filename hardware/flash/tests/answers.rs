//! A table answers as a BTreeMap does: every way of reading, any values, any keys.

use std::collections::BTreeMap;
use std::path::Path;

use genuma_flash::{
    CachedTable, Error, LookupResults, MAX_VALUE_BYTES, PageEncoding, PageReadMethod, Table, TableOpenOptions,
    TableSpec, TableWriter,
};
use genuma_machine::placement::{MemoryPlacement, MemoryPolicy, PageSize};
use proptest::prelude::*;
use tempfile::TempDir;

const WAYS: [PageReadMethod; 5] = [
    PageReadMethod::Auto,
    PageReadMethod::IoUring,
    PageReadMethod::LinuxAio,
    PageReadMethod::Pread,
    PageReadMethod::Memory,
];

fn options(access: PageReadMethod, hot: bool) -> TableOpenOptions {
    TableOpenOptions {
        access,
        load_hot_entries: hot,
        placement: MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base },
    }
}

/// A value that identifies its key and its table.
fn value(key: u64, bytes: usize) -> Vec<u8> {
    let mixed = (key ^ bytes as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_le_bytes().into_iter().cycle().take(bytes).collect()
}

fn write(path: &Path, spec: TableSpec, weights: &BTreeMap<u64, u64>) -> genuma_flash::TableSummary {
    let bytes = spec.value_bytes;
    let mut writer = TableWriter::create(path, spec).unwrap();
    for (&key, &weight) in weights {
        writer.push_entry(key, &value(key, bytes), weight).unwrap();
    }
    writer.finish_and_publish().unwrap()
}

/// Holds a table against the map it was made of, in one way of reading.
fn agrees(table: &Table, weights: &BTreeMap<u64, u64>, asked: &[u64], bytes: usize) {
    let expected = |key: &u64| weights.contains_key(key).then(|| value(*key, bytes));
    let mut answers = LookupResults::new();
    for depth in [1, 3, 64] {
        let mut reader = match table.new_reader(depth) {
            Err(error @ Error::ReadMethodNotPermitted { .. }) => {
                use std::io::Write;
                writeln!(std::io::stderr(), "skipped: a way of reading: {error}").expect("stderr");
                return;
            }
            reader => reader.unwrap(),
        };
        reader.get_many(asked, &mut answers).unwrap();
        assert_eq!(answers.len(), asked.len());
        for (key, answer) in asked.iter().zip(answers.iter()) {
            assert_eq!(answer, expected(key).as_deref(), "{key:#x} by {:?}", reader.page_read_method());
        }
        let key = asked[asked.len() / 2];
        assert_eq!(reader.get(key).unwrap(), expected(&key).as_deref());
    }
    table.get_many_with_threads(asked, 3, 8, &mut answers).unwrap();
    assert!(asked.iter().zip(answers.iter()).all(|(key, answer)| answer == expected(key).as_deref()));

    // Caches that hold none, some and all of the entries; the second lookup repeats the first.
    let all = CachedTable::cache_bytes_for_entries(table.len(), bytes);
    for memory in [0, all / 7, all, u64::MAX] {
        let mut cached = CachedTable::allocate_cache_for_table(table, memory).unwrap();
        assert!(
            memory == u64::MAX
                || CachedTable::cache_bytes_for_entries(cached.cache_capacity_entries(), bytes) <= memory
        );
        for keys in asked.chunks(asked.len() / 2 + 1).chain(asked.rchunks(asked.len() * 2 / 3 + 1)) {
            cached.get_many(keys, 2, 8, &mut answers).unwrap();
            assert_eq!(answers.len(), keys.len());
            assert!(keys.iter().zip(answers.iter()).all(|(key, answer)| answer == expected(key).as_deref()));
        }
        assert!(cached.cache_capacity_entries() > 0 || cached.num_cache_hits() == 0);
    }

    let mut entries = table.new_entry_reader().unwrap();
    for &key in weights.keys() {
        assert_eq!(entries.next_entry().unwrap(), Some((key, &value(key, bytes)[..])));
    }
    assert_eq!(entries.next_entry().unwrap(), None);
    assert_eq!(entries.next_entry().unwrap(), None);
}

/// Keys from everywhere, from a few dense places, and from both ends of all keys.
fn keys() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0_u64..4, 0_u64..3000).prop_map(|(place, key)| (place << 61) + key),
        (0_u64..3).prop_map(|key| u64::MAX - key),
        0_u64..3,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_are_those_of_a_map(
        weights in proptest::collection::btree_map(keys(), 0_u64..50, 0..2500),
        others in proptest::collection::vec(keys(), 1..500),
        (bytes, encoding) in prop_oneof![
            Just((0, PageEncoding::Fixed)),
            Just((1, PageEncoding::Fixed)),
            Just((2, PageEncoding::Fixed)),
            Just((128, PageEncoding::Fixed)),
            Just((700, PageEncoding::Fixed)),
            Just((4, PageEncoding::Compact)),
            Just((8, PageEncoding::Compact)),
            Just((256, PageEncoding::Compact)),
        ],
        filter_bits in prop_oneof![Just(0), Just(4), Just(12)],
        hot_entries in prop_oneof![Just(0), Just(10), Just(4000)],
        loose in 0_u64..20_000,
    ) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("t.table");
        let entries = weights.len() as u64 + loose;
        let note = vec![7; bytes];
        let spec = TableSpec { encoding, filter_bits, hot_entries, note: note.clone(), ..TableSpec::new(bytes, entries) };
        let written = write(&path, spec, &weights);
        let chosen = weights.values().filter(|weight| **weight > 0).count().min(hot_entries);
        prop_assert_eq!((written.entries, written.hot_entries), (weights.len() as u64, chosen as u64));
        prop_assert_eq!(written.file_bytes, std::fs::metadata(&path).unwrap().len());

        // Each key, its neighbours, and others, out of order and some twice.
        let mut asked = others;
        asked.extend(weights.keys().rev().flat_map(|&key| [key, key.wrapping_add(1), key.wrapping_sub(1)]));
        let half = asked.len() / 2;
        asked.rotate_left(half);
        asked.extend_from_within(..asked.len().min(100));
        for (way, hot) in WAYS.into_iter().zip([true, false, true, false, true]) {
            let table = Table::open(&path, &options(way, hot)).unwrap();
            prop_assert_eq!(table.len(), weights.len() as u64);
            prop_assert_eq!(table.note(), &note[..]);
            prop_assert_eq!(table.min_and_max_key(), weights.first_key_value().zip(weights.last_key_value())
                .map(|((&first, _), (&last, _))| (first, last)));
            agrees(&table, &weights, &asked, bytes);
        }
    }
}

#[test]
fn what_was_found_is_remembered() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.table");
    let weights: BTreeMap<u64, u64> = (0..40_000).map(|i| (i * 977, 0)).collect();
    write(&path, TableSpec::new(4, 40_000), &weights);
    let table = Table::open(&path, &options(PageReadMethod::Auto, true)).unwrap();
    let keys: Vec<u64> = weights.keys().copied().collect();
    let (few, absent) = (&keys[..1000], keys.iter().map(|key| key + 1).collect::<Vec<_>>());
    let mut answers = LookupResults::new();
    let mut again = |memory: u64, keys: &[u64]| {
        let mut cached = CachedTable::allocate_cache_for_table(&table, memory).unwrap();
        (0..2).for_each(|_| cached.get_many(keys, 1, 8, &mut answers).unwrap());
        cached.num_cache_hits()
    };
    let twentieth = CachedTable::cache_bytes_for_entries(2000, 4);
    assert_eq!(again(0, few), 0);
    // Keys fall on sets as they like: some sets of a cache for twice as many are full.
    assert!((950..=1000).contains(&again(twentieth, few)), "{}", again(twentieth, few));
    assert_eq!(again(u64::MAX, &absent), 0);
    // Entries that are looked up again stay in the cache while others are evicted.
    let mut cached = CachedTable::allocate_cache_for_table(&table, twentieth).unwrap();
    for others in keys[1000..].chunks(500) {
        cached.get_many(&few[..200], 1, 8, &mut answers).unwrap();
        cached.get_many(others, 1, 8, &mut answers).unwrap();
    }
    let most = 200 * (39_000 / 500 - 1);
    assert!((most * 9 / 10..=most).contains(&cached.num_cache_hits()), "{} of {most}", cached.num_cache_hits());
}

#[test]
fn tables_of_none_of_one_and_of_whole_pages() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.table");
    let asked = [0, 1, 5, u64::MAX - 1, u64::MAX];
    for bytes in [0, 128, 2036, MAX_VALUE_BYTES] {
        let full = 4088 / (8 + bytes) as u64;
        for count in [0, 1, full, full + 1, 8 * full, 64 * full + 1] {
            // The largest key is among them.
            let weights: BTreeMap<u64, u64> = (0..count).map(|i| (u64::MAX - 7 * i, i % 3)).collect();
            let spec = TableSpec { hot_entries: 2, ..TableSpec::new(bytes, count) };
            let written = write(&path, spec, &weights);
            assert_eq!(written.pages, count.div_ceil(full));
            for way in WAYS {
                let table = Table::open(&path, &options(way, true)).unwrap();
                assert_eq!((table.is_empty(), table.value_bytes()), (count == 0, bytes));
                let asked: Vec<u64> = weights.keys().copied().chain(asked).collect();
                agrees(&table, &weights, &asked, bytes);
            }
        }
    }
}

#[test]
fn absent_keys_hardly_touch_flash_and_hot_ones_never() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.table");
    let count = 60_000;
    let weights: BTreeMap<u64, u64> = (0..count).map(|i| (i * 1000, 1 + i % 100)).collect();
    write(&path, TableSpec { hot_entries: 600, ..TableSpec::new(16, count) }, &weights);
    let table = Table::open(&path, &options(PageReadMethod::Pread, true)).unwrap();
    let mut answers = LookupResults::new();

    let absent: Vec<u64> = (0..count).map(|i| i * 1000 + 1 + i % 999).collect();
    let mut reader = table.new_reader(1).unwrap();
    reader.get_many(&absent, &mut answers).unwrap();
    let counted = reader.lookup_statistics();
    assert!(counted.pages_read * 100 < count, "{counted:?}");
    assert!(counted.known_absent * 100 > count * 99, "{counted:?}");

    // Outside of the table's range nothing is read at all.
    let mut reader = table.new_reader(1).unwrap();
    let outside: Vec<u64> = (0..count).map(|i| u64::MAX - i).collect();
    reader.get_many(&outside, &mut answers).unwrap();
    assert_eq!((reader.lookup_statistics().pages_read, reader.lookup_statistics().known_absent), (0, count));

    // Every hundredth key has the largest weight.
    let mut reader = table.new_reader(1).unwrap();
    let hot: Vec<u64> = (0..count).filter(|i| i % 100 == 99).map(|i| i * 1000).collect();
    reader.get_many(&hot, &mut answers).unwrap();
    assert_eq!((reader.lookup_statistics().pages_read, reader.lookup_statistics().hot_hits), (0, 600));
    assert!(answers.iter().all(|answer| answer.is_some()));
}

#[test]
fn a_page_that_many_keys_want_is_read_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.table");
    let weights: BTreeMap<u64, u64> = (0..3000).map(|key| (key, 0)).collect();
    let written = write(&path, TableSpec::new(128, 3000), &weights);
    let table = Table::open(&path, &options(PageReadMethod::Auto, true)).unwrap();
    let mut reader = table.new_reader(16).unwrap();
    let asked: Vec<u64> = (0..9000).map(|i| i * 7919 % 3000).collect();
    agrees(&table, &weights, &asked, 128);
    reader.get_many(&asked, &mut LookupResults::new()).unwrap();
    assert_eq!(reader.lookup_statistics().pages_read, written.pages);
}

#[test]
fn the_same_entries_make_the_same_bytes() {
    let folder = TempDir::new().unwrap();
    // Of 106 groups of pages.
    let weights: BTreeMap<u64, u64> = (0..2_500_000).map(|i| (i * i, i % 7)).collect();
    let count = weights.len() as u64;
    let bytes = [(count, u64::MAX), (count, 0), (count, 6 << 20), (2 * count, u64::MAX), (count + 1, 0)];
    let tables = bytes.map(|(entries, memory)| {
        let path = folder.path().join("t.table");
        write(&path, TableSpec { hot_entries: 99, memory_bytes: memory, ..TableSpec::new(3, entries) }, &weights);
        std::fs::read(&path).unwrap()
    });
    assert!(tables.iter().all(|table| *table == tables[0]));
    let path = folder.path().join("t.table");
    let filter = Table::open(path, &TableOpenOptions::default()).unwrap().memory_bytes_by_part().filter;
    // 371 entries a page, in 9 blocks; of the last group as many as 32 pages have.
    let pages = count.div_ceil(371);
    assert_eq!((pages / 64, pages % 64), (105, 19));
    assert_eq!(filter, (105 * 64 + 32) * 9 * 64);
}
