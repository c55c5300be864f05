//! Loads the file of a finished unit: the result is what was saved, or an error, whatever the file.
#![no_main]

use std::fs;
use std::sync::OnceLock;

use genuma_work::unit::{Error, UnitStore};
use libfuzzer_sys::fuzz_target;

/// Content similar to that of units: text, bytes, numbers, nested lists.
type UnitContent = Vec<(String, Vec<u8>, Option<u64>, [Vec<u32>; 2], f64)>;

fn store() -> &'static UnitStore {
    static STORE: OnceLock<UnitStore> = OnceLock::new();
    STORE.get_or_init(|| {
        let work = std::env::temp_dir().join("genuma-fuzz-unit");
        fs::create_dir_all(&work).expect("a folder");
        UnitStore { work_folder: work, fingerprint: "k 31\nreads x.fq".to_owned(), resume: true }
    })
}

// The first byte selects whether the checksum is made valid, so that fuzzing reaches the code behind the check.
fuzz_target!(|input: &[u8]| {
    let &[seal, ref bytes @ ..] = input else { return };
    let mut bytes = bytes.to_vec();
    if seal & 1 == 1 {
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    }
    let path = store().unit_result_path("x");
    fs::write(&path, bytes).expect("a file");
    let mut costs = Vec::new();
    let held: Result<UnitContent, Error> =
        store().run_or_load_unit("x", &mut costs, || unreachable!("the file is there"));
    let Ok(held) = held else { return };
    fs::remove_file(&path).expect("it was there");
    let saved: UnitContent = store().run_or_load_unit("x", &mut costs, || Ok::<_, Error>(held)).expect("room for it");
    let again: Result<UnitContent, Error> =
        store().run_or_load_unit("x", &mut costs, || unreachable!("the file is there"));
    assert_eq!(format!("{saved:?}"), format!("{:?}", again.expect("what was saved")));
});
