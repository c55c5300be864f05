//! Damaged, truncated, foreign and unsorted tables give errors that name the place.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use genuma_flash::{
    Error, LookupResults, MAX_NOTE_BYTES, MAX_VALUE_BYTES, PageReadMethod, Table, TableOpenOptions, TablePart,
    TableSpec, TableWriter,
};
use tempfile::TempDir;

const ENTRIES: u64 = 3000;

/// A table of 100 pages, with all parts.
fn made(folder: &Path) -> PathBuf {
    let path = folder.join("t.table");
    let spec = TableSpec { hot_entries: 50, note: b"a note".to_vec(), ..TableSpec::new(128, ENTRIES) };
    let mut writer = TableWriter::create(&path, spec).unwrap();
    for key in 0..ENTRIES {
        writer.push_entry(key * 3, &[key as u8; 128], key).unwrap();
    }
    writer.finish_and_publish().unwrap();
    path
}

fn open(path: &Path, access: PageReadMethod) -> Result<Table, Error> {
    Table::open(path, &TableOpenOptions { access, ..TableOpenOptions::default() })
}

/// The table with one bit of one byte changed.
fn flip(path: &Path, whole: &[u8], byte: usize) {
    let mut bytes = whole.to_vec();
    bytes[byte] ^= 1 << (byte % 8);
    fs::write(path, bytes).unwrap();
}

fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

#[test]
fn a_flipped_bit_anywhere_is_found_before_it_answers() {
    let folder = TempDir::new().unwrap();
    let path = made(folder.path());
    let whole = fs::read(&path).unwrap();
    let [index, filter, hot] = [56, 80, 104].map(|at| (word(&whole, at), word(&whole, at + 8)));
    let everywhere = |(start, bytes): (usize, usize)| (start..start + bytes).step_by(bytes.div_ceil(40));
    for (part, bytes) in [(TablePart::Index, index), (TablePart::Filter, filter), (TablePart::HotEntries, hot)] {
        for byte in everywhere(bytes) {
            flip(&path, &whole, byte);
            let said = open(&path, PageReadMethod::Auto).unwrap_err();
            assert!(matches!(said, Error::Damaged { part: found, .. } if found == part), "byte {byte}: {said}");
        }
    }
    for byte in everywhere((12, 4084)) {
        flip(&path, &whole, byte);
        let said = open(&path, PageReadMethod::Auto).unwrap_err();
        assert!(matches!(said, Error::Damaged { part: TablePart::Header, .. }), "byte {byte}: {said}");
    }
    let keys: Vec<u64> = (0..ENTRIES).map(|key| key * 3).collect();
    for byte in everywhere((4096, index.0 - 4096)) {
        flip(&path, &whole, byte);
        let page = (byte / 4096) as u64;
        let damaged = |said: Error| {
            assert!(matches!(said, Error::Damaged { part: TablePart::Page(found), .. } if found == page), "{said}");
        };
        let options = TableOpenOptions { load_hot_entries: false, ..TableOpenOptions::default() };
        let table = Table::open(&path, &options).unwrap();
        let mut reader = table.new_reader(8).unwrap();
        let mut answers = LookupResults::new();
        damaged(reader.get_many(&keys, &mut answers).unwrap_err());
        // Undamaged pages can still be read, also by the same reader.
        let others: Vec<u64> = keys.iter().copied().filter(|key| key / 90 + 1 != page).collect();
        reader.get_many(&others, &mut answers).unwrap();
        assert!(others.iter().zip(answers.iter()).all(|(key, found)| found == Some(&[(key / 3) as u8; 128][..])));
        damaged(table.get_many_with_threads(&keys, 2, 8, &mut answers).unwrap_err());
        let mut entries = table.new_entry_reader().unwrap();
        damaged(
            std::iter::from_fn(|| entries.next_entry().map(|e| e.map(drop)).transpose()).find_map(Result::err).unwrap(),
        );
        damaged(open(&path, PageReadMethod::Memory).unwrap_err());
    }
}

#[test]
fn a_page_in_anothers_place_is_found() {
    let folder = TempDir::new().unwrap();
    let path = made(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes.copy_within(5 * 4096..6 * 4096, 7 * 4096);
    fs::write(&path, bytes).unwrap();
    let table = open(&path, PageReadMethod::Pread).unwrap();
    let said = table.new_reader(1).unwrap().get(6 * 90).unwrap_err().to_string();
    assert_eq!(
        said,
        format!(
            "{}: page 7 damaged (its checksum does not match): create the table again, and check the disk",
            path.display()
        )
    );

    // A whole page of another table, at the same place.
    let other = TempDir::new().unwrap();
    let stranger = other.path().join("t.table");
    let mut writer = TableWriter::create(&stranger, TableSpec::new(128, ENTRIES)).unwrap();
    (0..ENTRIES).for_each(|key| writer.push_entry(key * 3 + 1, &[0; 128], 0).unwrap());
    writer.finish_and_publish().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[7 * 4096..8 * 4096].copy_from_slice(&fs::read(&stranger).unwrap()[7 * 4096..8 * 4096]);
    fs::write(&path, bytes).unwrap();
    let said = open(&path, PageReadMethod::Auto).unwrap().new_reader(1).unwrap().get(6 * 90).unwrap_err().to_string();
    assert!(said.contains("page 7 damaged (its first key differs from the index)"), "{said}");
}

#[test]
fn a_page_that_changes_while_the_table_is_written_is_found_when_it_is_read_again() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.table");
    // More come than the least memory has room for in the filter.
    let entries = 1_000_000;
    let mut writer = TableWriter::create(&path, TableSpec { memory_bytes: 0, ..TableSpec::new(8, entries) }).unwrap();
    (0..entries).for_each(|key| writer.push_entry(key, &[1; 8], 0).unwrap());
    let [partial] = &names(folder.path())[..] else { panic!("one file") };
    let partial = fs::File::options().write(true).open(folder.path().join(partial)).unwrap();
    // 1 MiB is written while the next is filled: pages so far from the end are on their way no more.
    partial.write_all_at(b"x", 5 * 4096 + 100).unwrap();
    let said = writer.finish_and_publish().unwrap_err().to_string();
    let what = "page 5 damaged (its checksum does not match): create the table again, and check the disk";
    assert_eq!(said, format!("{}: {what}", path.display()));
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_file_cut_short_or_too_long_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = made(folder.path());
    let whole = fs::read(&path).unwrap();
    for bytes in [8, 100, 4095, 4096, 4097, 8192, whole.len() - 4096, whole.len() - 1] {
        fs::write(&path, &whole[..bytes]).unwrap();
        let said = open(&path, PageReadMethod::Auto).unwrap_err();
        assert!(matches!(said, Error::WrongFileLength { found, .. } if found == bytes as u64), "{bytes}: {said}");
    }
    fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
    assert!(matches!(open(&path, PageReadMethod::Auto), Err(Error::WrongFileLength { .. })));

    // Cut while it is open: the page is named.
    fs::write(&path, &whole).unwrap();
    for access in [PageReadMethod::Auto, PageReadMethod::LinuxAio, PageReadMethod::Pread] {
        let table = open(&path, access).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_len(50 * 4096).unwrap();
        let mut reader = table.new_reader(4).unwrap();
        assert_eq!(reader.get(90 * 48).unwrap(), Some(&[(30 * 48) as u8; 128][..]));
        let said = reader.get(90 * 49).unwrap_err();
        assert!(matches!(said, Error::Read { part: TablePart::Page(50), .. }), "{said}");
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn other_files_and_versions_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = made(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 4;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(
        open(&path, PageReadMethod::Auto).unwrap_err().to_string(),
        format!(
            "{}: has table version 4, but this program reads versions up to 3: create the table again",
            path.display()
        )
    );
    for other in [&b""[..], b"GENUMAT", b"@read1\nACGT\n+\nIIII\n", &[0; 10_000]] {
        fs::write(&path, other).unwrap();
        let said = open(&path, PageReadMethod::Auto).unwrap_err().to_string();
        assert_eq!(said, format!("{}: is not a genuma table: give a table that genuma wrote", path.display()));
    }
    let missing = folder.path().join("missing");
    let said = open(&missing, PageReadMethod::Auto).unwrap_err().to_string();
    assert_eq!(said, format!("{}: cannot open: No such file or directory (os error 2)", missing.display()));
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn entries_out_of_order_or_of_another_size_are_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.table");
    let mut writer = TableWriter::create(&path, TableSpec::new(1, 2)).unwrap();
    let [partial] = &names(folder.path())[..] else { panic!("one file") };
    assert!(partial.starts_with(".t.table.") && partial.ends_with(".partial"), "{partial}");
    let said = |error: Error| error.to_string().replace(&path.display().to_string(), "t");
    assert_eq!(
        said(writer.push_entry(0, b"ab", 0).unwrap_err()),
        "internal error, please report: t: entry 0 has a value of 2 bytes, but values of this table have 1"
    );
    writer.push_entry(0, b"a", 0).unwrap();
    assert_eq!(
        said(writer.push_entry(0, b"b", 0).unwrap_err()),
        "t: entry 1: key 0x0 is not above 0x0: sort the keys and remove duplicates"
    );
    writer.push_entry(9, b"b", 0).unwrap();
    assert_eq!(
        said(writer.push_entry(10, b"c", 0).unwrap_err()),
        "internal error, please report: t: more than the 2 entries that were announced"
    );
    drop(writer);
    assert!(names(folder.path()).is_empty());

    for (spec, what) in [
        (TableSpec::new(MAX_VALUE_BYTES + 1, 1), "values of 4081 bytes, a page has room for 4080"),
        (
            TableSpec { note: vec![0; MAX_NOTE_BYTES + 1], ..TableSpec::new(1, 1) },
            "a note of 2049 bytes, the header has room for 2048",
        ),
        (TableSpec { filter_bits: 65, ..TableSpec::new(1, 1) }, "a filter of 65 bits a key, the most are 64"),
        (TableSpec::new(1, 1 << 48), "281474976710656 entries, the most are 281474976710655"),
    ] {
        let error = TableWriter::create(&path, spec).unwrap_err();
        assert_eq!(said(error), format!("t: cannot create this table: {what}"));
    }
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "genuma-test"]).arg(folder.path()).output();
    if !mounted.is_ok_and(|mount| mount.status.success()) {
        writeln!(std::io::stderr(), "skipped: a full disk: no tmpfs can be mounted here").expect("stderr");
        return;
    }
    // Full while pages are written, and full while the parts after them are.
    for entries in [100_000, 15_000] {
        let path = folder.path().join("t.table");
        let mut writer =
            TableWriter::create(&path, TableSpec { filter_bits: 64, ..TableSpec::new(128, entries) }).unwrap();
        let pushed = (0..entries).try_for_each(|key| writer.push_entry(key, &[1; 128], 0));
        assert_eq!(pushed.is_ok(), entries == 15_000);
        let said = pushed.and_then(|()| writer.finish_and_publish()).unwrap_err().to_string();
        let expected = format!("{}: cannot write: No space left on device (os error 28)", path.display());
        assert_eq!(said, expected);
    }
    let left = names(folder.path());
    let unmounted = Command::new("umount").arg(folder.path()).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(left, Vec::<String>::new());
}
