//! Going through tables in pieces, and writing many entries at once: the same entries as one by one, and every damage found.

use std::fs;
use std::path::Path;

use genuma_flash::{Answers, Error, Options, Part, Piece, Scan, Spec, Table, TableWriter};
use tempfile::TempDir;

/// Keys at odd distances, and values that tell them.
fn entries(n: u64) -> (Vec<u64>, Vec<u32>) {
    let keys: Vec<u64> = (0..n).map(|i| i * 1000 + i * i % 97).collect();
    let values = keys.iter().map(|&key| (key % 1009) as u32).collect();
    (keys, values)
}

fn write(path: &Path, spec: Spec, keys: &[u64], values: &[u32], at_once: usize) {
    let mut writer = TableWriter::create(path, spec).unwrap();
    for (keys, values) in keys.chunks(at_once).zip(values.chunks(at_once)) {
        let weight = |entry: usize| u64::from(values[entry]);
        match keys {
            [key] => writer.push(*key, &values[0].to_le_bytes(), weight(0)).unwrap(),
            _ => writer.push_all(keys, bytemuck::cast_slice(values), weight).unwrap(),
        }
    }
    writer.finish().unwrap();
}

#[test]
fn pieces_hold_all_entries() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    for n in [0, 1, 340, 341, 5000] {
        let (keys, values) = entries(n);
        write(&path, Spec::new(4, n), &keys, &values, 777);
        for pages in [1, 3, 100] {
            let mut scan = Scan::open(&path, pages).unwrap();
            assert_eq!((scan.len(), scan.value_bytes()), (n, 4));
            let (mut found, mut piece) = (Piece::<u32>::default(), Piece::default());
            loop {
                scan.fill(&mut piece).unwrap();
                if piece.keys.is_empty() {
                    break;
                }
                assert!(piece.keys.len() as u64 <= pages as u64 * scan.per_page());
                found.keys.extend(&piece.keys);
                found.values.extend(&piece.values);
            }
            assert!(found.keys == keys && found.values == values, "{n} entries by {pages}");
        }
    }
    let mut scan = Scan::open(&path, 2).unwrap();
    let (keys, _) = entries(5000);
    let mut piece = Piece::<u32>::default();
    for key in [0, keys[339], keys[340], keys[340] + 1, keys[4999], u64::MAX] {
        let page = scan.page_of(key).unwrap();
        scan.go_to(page);
        scan.fill_some(&mut piece, 1).unwrap();
        let place = keys.partition_point(|&other| other <= key).max(1) - 1;
        assert!(piece.keys.contains(&keys[place]), "{key} is not where {page} says");
        assert_eq!(scan.first_key(page).unwrap(), piece.keys[0]);
    }
}

#[test]
fn many_at_once_are_written_as_one_by_one() {
    let folder = TempDir::new().unwrap();
    let paths = [1, 2, 340, 1021, 5000].map(|at_once| {
        let path = folder.path().join(at_once.to_string());
        let (keys, values) = entries(5000);
        let spec = Spec { hot_entries: 60, note: b"x".to_vec(), ..Spec::new(4, 5000) };
        write(&path, spec, &keys, &values, at_once);
        path
    });
    let [first, others @ ..] = paths.map(|path| fs::read(path).unwrap());
    assert!(others.iter().all(|other| *other == first));

    let mut writer = TableWriter::create(folder.path().join("wrong"), Spec::new(4, 5)).unwrap();
    let mut push = |keys: &[u64]| writer.push_all(keys, &vec![0; 4 * keys.len()], |_| 0);
    push(&[5, 6]).unwrap();
    assert!(matches!(push(&[6, 7]), Err(Error::Order { entry: 2, key: 6, before: 6, .. })));
    assert!(matches!(push(&[7, 9, 8]), Err(Error::Order { entry: 4, key: 8, before: 9, .. })));
    assert!(matches!(push(&[10, 11]), Err(Error::TooMany { most: 5, .. })));
    assert!(matches!(writer.push_all(&[12], &[0; 5], |_| 0), Err(Error::Value { given: 5, wanted: 4, .. })));
}

#[test]
fn a_filter_knows_all_keys_whatever_was_expected() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    let (keys, values) = entries(20_000);
    let absent: Vec<u64> = keys.iter().map(|key| key + 500).collect();
    let mut sizes = Vec::new();
    for expected in [None, Some(0), Some(3000), Some(16_000), Some(20_000), Some(24_000), Some(90_000)] {
        for memory in [0, u64::MAX] {
            write(&path, Spec { expected, memory, ..Spec::new(4, 25_000) }, &keys, &values, 4096);
            let table = Table::open(&path, &Options::default()).unwrap();
            let mut answers = Answers::new();
            table.get_many(&keys, 1, 16, &mut answers).unwrap();
            let all =
                answers.iter().zip(&values).all(|(found, value)| found == Some(&value.to_le_bytes()[..]));
            assert!(all, "{expected:?} expected");
            let mut reader = table.reader(16).unwrap();
            reader.get_many(&absent, &mut answers).unwrap();
            assert!(answers.iter().all(|found| found.is_none()));
            let told = reader.counted().told_absent;
            assert!(told > 19_500, "{expected:?} expected: {told} of 20000 told absent");
            sizes.push((expected, table.resident().filter));
        }
    }
    let size = |expected| sizes.iter().find(|size| size.0 == expected).unwrap().1;
    // What was far off does not show, what was near does.
    assert!([Some(0), Some(3000), Some(90_000), Some(20_000)].into_iter().all(|e| size(e) == size(None)));
    assert!(size(Some(16_000)) < size(None) && size(None) < size(Some(24_000)));
}

#[test]
fn damaged_pages_are_found() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t");
    let (keys, values) = entries(3000);
    write(&path, Spec::new(4, 3000), &keys, &values, 500);
    let whole = fs::read(&path).unwrap();
    let said = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let mut scan = Scan::open(&path, 2)?;
        let mut piece = Piece::<u32>::default();
        loop {
            scan.fill(&mut piece)?;
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
        assert!(matches!(found, Error::Damaged { part: Part::Page(n), .. } if n == page), "{byte}: {found}");
    }
    // A page in another's place.
    let mut bytes = whole.clone();
    bytes.copy_within(2 * 4096..3 * 4096, 3 * 4096);
    assert!(matches!(said(&bytes), Err(Error::Damaged { part: Part::Page(3), .. })));
    assert!(matches!(said(&whole[..whole.len() - 4096]), Err(Error::Length { .. })));
    assert!(matches!(said(b"something else"), Err(Error::NotATable { .. })));
}
