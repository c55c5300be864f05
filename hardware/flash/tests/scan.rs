//! Going through tables in pieces, and writing many entries at once: the same entries as one by one, and every damage found.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use genuma_flash::{
    EntryBatch, Error, LookupResults, Table, TableOpenOptions, TablePageReader, TablePart, TableSpec, TableWriter,
    UncheckedPages,
};
use tempfile::TempDir;

/// Keys at odd distances, and values that identify them.
fn entries(n: u64) -> (Vec<u64>, Vec<u32>) {
    let keys: Vec<u64> = (0..n).map(|i| i * 1000 + i * i % 97).collect();
    let values = keys.iter().map(|&key| (key % 1009) as u32).collect();
    (keys, values)
}

/// Both ways of storing one count: with a fixed layout, and in compact pages.
fn specs(n: u64) -> [TableSpec; 2] {
    [TableSpec::new(4, n), TableSpec::new_for_counts(1, n)]
}

fn write(path: &Path, spec: TableSpec, keys: &[u64], values: &[u32], at_once: usize) {
    let mut writer = TableWriter::create(path, spec).unwrap();
    for (keys, values) in keys.chunks(at_once).zip(values.chunks(at_once)) {
        let weight = |entry: usize| u64::from(values[entry]);
        match keys {
            [key] => writer.push_entry(*key, &values[0].to_le_bytes(), weight(0)).unwrap(),
            _ => writer.push_entries(keys, bytemuck::cast_slice(values), weight).unwrap(),
        }
    }
    writer.finish_and_publish().unwrap();
}

#[test]
fn pieces_hold_all_entries() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    for spec in [0, 1, 340, 341, 5000].into_iter().flat_map(specs) {
        let n = spec.max_entries;
        let (keys, values) = entries(n);
        write(&path, spec, &keys, &values, 777);
        for pages in [1, 3, 100] {
            let scan = TablePageReader::open(&path).unwrap();
            assert_eq!((scan.len(), scan.value_bytes()), (n, 4));
            let (mut found, mut piece) = (EntryBatch::<u32>::default(), EntryBatch::default());
            let mut walk = scan.new_entry_batch_reader(pages).unwrap();
            loop {
                walk.read_next_batch(&mut piece).unwrap();
                if piece.keys.is_empty() {
                    break;
                }
                assert!(piece.keys.len() as u64 <= pages as u64 * scan.max_entries_per_page());
                found.keys.extend(&piece.keys);
                found.values.extend(&piece.values);
            }
            assert!(found.keys == keys && found.values == values, "{n} entries by {pages}");
        }
    }
    let scan = TablePageReader::open(&path).unwrap();
    let (keys, _) = entries(5000);
    let (mut piece, mut raw) = (EntryBatch::<u32>::default(), UncheckedPages::allocate(1).unwrap());
    for key in [0, keys[339], keys[340], keys[340] + 1, keys[4999], u64::MAX] {
        let page = scan.find_page_of_key(key).unwrap();
        piece.remove_all_entries();
        scan.read_unchecked_pages(page..page + 1, &mut raw).unwrap();
        scan.check_and_unpack_pages(&raw, &[scan.read_first_key_of_page(page).unwrap()], &mut piece).unwrap();
        let place = keys.partition_point(|&other| other <= key).max(1) - 1;
        assert!(piece.keys.contains(&keys[place]), "{key} is not where {page} says");
        assert_eq!(scan.read_first_key_of_page(page).unwrap(), piece.keys[0]);
    }
}

/// Writes entries cut into stretches of `sizes`, repeated, by several threads.
fn together(
    path: &Path,
    spec: TableSpec,
    keys: &[u64],
    values: &[u32],
    sizes: &[usize],
    threads: usize,
) -> Result<(), Error> {
    let mut stretches = Vec::new();
    let mut at = 0;
    for &size in sizes.iter().cycle() {
        let end = (at + size).min(keys.len());
        stretches.push(at..end);
        at = end;
        if at == keys.len() {
            break;
        }
    }
    let mut writer = TableWriter::create(path, spec)?;
    let next = AtomicUsize::new(0);
    writer.write_in_parallel(|table| {
        let work = || {
            let mut hand = table.new_key_range_writer().unwrap();
            loop {
                let number = next.fetch_add(1, Relaxed);
                let Some(range) = stretches.get(number).cloned() else { break };
                let middle = range.start + range.len() / 3;
                let run = |range: Range<usize>| (&keys[range.clone()], bytemuck::cast_slice(&values[range]));
                let runs: [(&[u64], &[u8]); 2] = [run(range.start..middle), run(middle..range.end)];
                let weight = |value: &[u8]| u64::from(u32::from_le_bytes(value.try_into().unwrap()));
                if !hand.add_key_range(number as u64, &runs, weight) {
                    return;
                }
            }
            hand.merge_filter_and_hot_entries();
        };
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    })?;
    writer.finish_and_publish().map(drop)
}

#[test]
fn several_threads_write_what_one_does() {
    let folder = TempDir::new().unwrap();
    let (one, many) = (folder.path().join("one"), folder.path().join("many"));
    for n in [0, 1, 339, 340, 341, 5000, 200_000] {
        let (keys, values) = entries(n);
        for (memory, spec) in [0, u64::MAX].into_iter().flat_map(|memory| specs(n).map(|spec| (memory, spec))) {
            let spec = TableSpec { hot_entries: 60, memory_bytes: memory, ..spec };
            write(&one, spec.clone(), &keys, &values, 340);
            let whole = fs::read(&one).unwrap();
            for sizes in [&[1_000_000][..], &[340], &[1, 0, 339, 341], &[90_000, 7, 1000], &[3]] {
                for threads in [1, 3] {
                    if sizes == [3] && n > 10_000 {
                        continue;
                    }
                    together(&many, spec.clone(), &keys, &values, sizes, threads).unwrap();
                    assert!(fs::read(&many).unwrap() == whole, "{n} entries by {sizes:?}, {threads} threads");
                }
            }
        }
    }
}

#[test]
fn several_threads_are_told_what_is_wrong() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    let (mut keys, values) = entries(5000);
    for spec in specs(4000) {
        let most = together(&path, spec, &keys, &values, &[700], 2);
        assert!(matches!(most, Err(Error::TooManyEntries { most: 4000, .. })), "{most:?}");
    }
    let most = together(&path, TableSpec::new(4, 4000), &keys, &values, &[700], 2);
    assert!(matches!(most, Err(Error::TooManyEntries { most: 4000, .. })), "{most:?}");
    // Within a run, where two runs meet, and where two stretches do.
    for wrong in [1500, 933, 1400] {
        let right = std::mem::replace(&mut keys[wrong], 5);
        let order = together(&path, TableSpec::new(4, 5000), &keys, &values, &[700], 2);
        assert!(
            matches!(order, Err(Error::KeysOutOfOrder { entry, key: 5, .. }) if entry == wrong as u64),
            "{wrong}: {order:?}"
        );
        keys[wrong] = right;
    }
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "something is left");
}

#[test]
fn many_at_once_are_written_as_one_by_one() {
    let folder = TempDir::new().unwrap();
    let paths = [1, 2, 340, 1021, 5000].map(|at_once| {
        let path = folder.path().join(at_once.to_string());
        let (keys, values) = entries(5000);
        let spec = TableSpec { hot_entries: 60, note: b"x".to_vec(), ..TableSpec::new(4, 5000) };
        write(&path, spec, &keys, &values, at_once);
        path
    });
    let [first, others @ ..] = paths.map(|path| fs::read(path).unwrap());
    assert!(others.iter().all(|other| *other == first));

    let mut writer = TableWriter::create(folder.path().join("wrong"), TableSpec::new(4, 5)).unwrap();
    let mut push = |keys: &[u64]| writer.push_entries(keys, &vec![0; 4 * keys.len()], |_| 0);
    push(&[5, 6]).unwrap();
    assert!(matches!(push(&[6, 7]), Err(Error::KeysOutOfOrder { entry: 2, key: 6, before: 6, .. })));
    assert!(matches!(push(&[7, 9, 8]), Err(Error::KeysOutOfOrder { entry: 4, key: 8, before: 9, .. })));
    assert!(matches!(push(&[10, 11]), Err(Error::TooManyEntries { most: 5, .. })));
    assert!(matches!(
        writer.push_entries(&[12], &[0; 5], |_| 0),
        Err(Error::WrongValueSize { given: 5, wanted: 4, .. })
    ));
}

#[test]
fn a_filter_knows_all_keys_whatever_was_announced() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    let (keys, values) = entries(60_000);
    let absent: Vec<u64> = keys.iter().map(|key| key + 500).collect();
    let mut whole = None;
    for most in [60_000, 60_001, 500_000] {
        // Memory for no filter group, for the first of three groups (32 KiB of blocks, in addition to 2 MiB of write
        // buffers, 256 KiB of read buffer and one group), and for all.
        for memory in [0, (2 << 20) + ((256 + 32 + 48) << 10), u64::MAX] {
            write(&path, TableSpec { memory_bytes: memory, ..TableSpec::new(4, most) }, &keys, &values, 4096);
            let bytes = fs::read(&path).unwrap();
            assert!(*whole.get_or_insert_with(|| bytes.clone()) == bytes, "{most} announced, {memory} bytes");
            let table = Table::open(&path, &TableOpenOptions::default()).unwrap();
            let mut answers = LookupResults::new();
            table.get_many_with_threads(&keys, 1, 16, &mut answers).unwrap();
            let all = answers.iter().zip(&values).all(|(found, value)| found == Some(&value.to_le_bytes()[..]));
            assert!(all, "{most} announced, {memory} bytes");
            let mut reader = table.new_reader(16).unwrap();
            reader.get_many(&absent, &mut answers).unwrap();
            assert!(answers.iter().all(|found| found.is_none()));
            let told = reader.lookup_statistics().known_absent;
            assert!(told > 59_400, "{most} announced: {told} of 60000 told absent");
        }
    }
}

#[test]
fn of_so_many_entries_that_come_one_is_hot_at_most() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    let (keys, values) = entries(5000);
    for (hot_one_in, hot) in [(1, 60), (100, 50), (1000, 5), (9000, 0)] {
        let spec = TableSpec { hot_entries: 60, min_entries_per_hot_entry: hot_one_in, ..TableSpec::new(4, 20_000) };
        let mut writer = TableWriter::create(&path, spec).unwrap();
        writer.push_entries(&keys, bytemuck::cast_slice(&values), |entry| 1 + entry as u64).unwrap();
        assert_eq!(writer.finish_and_publish().unwrap().hot_entries, hot);
        let table = Table::open(&path, &TableOpenOptions::default()).unwrap();
        let mut reader = table.new_reader(1).unwrap();
        // The heaviest are the last.
        reader.get_many(&keys[5000 - hot as usize..], &mut LookupResults::new()).unwrap();
        assert_eq!((reader.lookup_statistics().hot_hits, reader.lookup_statistics().pages_read), (hot, 0));
    }
}

#[test]
fn damaged_pages_are_found() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    let (keys, values) = entries(3000);
    write(&path, TableSpec::new(4, 3000), &keys, &values, 500);
    let whole = fs::read(&path).unwrap();
    let said = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let scan = TablePageReader::open(&path)?;
        let (mut walk, mut piece) = (scan.new_entry_batch_reader(2)?, EntryBatch::<u32>::default());
        loop {
            walk.read_next_batch(&mut piece)?;
            if piece.keys.is_empty() {
                return Ok::<(), Error>(());
            }
        }
    };
    said(&whole).unwrap();
    for byte in (4096..9 * 4096).step_by(61) {
        let mut bytes = whole.clone();
        bytes[byte] ^= 1 << (byte % 8);
        let page = byte as u64 / 4096;
        let found = said(&bytes).unwrap_err();
        assert!(matches!(found, Error::Damaged { part: TablePart::Page(n), .. } if n == page), "{byte}: {found}");
    }
    // The index, which is page 10: the keys of both are right, but not the same.
    let mut bytes = whole.clone();
    bytes[10 * 4096 + 16] ^= 1;
    assert!(
        matches!(said(&bytes), Err(Error::Damaged { part: TablePart::Page(3), what, .. }) if what.contains("index"))
    );
    bytes[10 * 4096 + 22] ^= 1;
    assert!(matches!(said(&bytes), Err(Error::Damaged { part: TablePart::Index, .. })));
    // A page in another's place.
    let mut bytes = whole.clone();
    bytes.copy_within(2 * 4096..3 * 4096, 3 * 4096);
    assert!(matches!(said(&bytes), Err(Error::Damaged { part: TablePart::Page(3), .. })));
    assert!(matches!(said(&whole[..whole.len() - 4096]), Err(Error::WrongFileLength { .. })));
    assert!(matches!(said(b"something else"), Err(Error::NotATable { .. })));
}
