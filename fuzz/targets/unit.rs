//! Files of finished units: whatever the file, what is resumed is what was saved, or an error.
#![no_main]

use std::fs;
use std::sync::OnceLock;

use genuma_work::unit::{Error, Store};
use libfuzzer_sys::fuzz_target;

/// Something like what units hold: text, bytes, numbers, lists in lists.
type Held = Vec<(String, Vec<u8>, Option<u64>, [Vec<u32>; 2], f64)>;

fn store() -> &'static Store {
    static STORE: OnceLock<Store> = OnceLock::new();
    STORE.get_or_init(|| {
        let work = std::env::temp_dir().join("genuma-fuzz-unit");
        fs::create_dir_all(&work).expect("a folder");
        Store { work, fingerprint: "k 31\nreads x.fq".to_owned(), resume: true }
    })
}

// The first byte says whether the sum is made to fit: else little beyond it would be reached.
fuzz_target!(|input: &[u8]| {
    let &[seal, ref bytes @ ..] = input else { return };
    let mut bytes = bytes.to_vec();
    if seal & 1 == 1 {
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    }
    let path = store().path("x");
    fs::write(&path, bytes).expect("a file");
    let mut costs = Vec::new();
    let held: Result<Held, Error> = store().unit("x", &mut costs, || unreachable!("the file is there"));
    let Ok(held) = held else { return };
    fs::remove_file(&path).expect("it was there");
    let saved: Held = store().unit("x", &mut costs, || Ok::<_, Error>(held)).expect("room for it");
    let again: Result<Held, Error> = store().unit("x", &mut costs, || unreachable!("the file is there"));
    assert_eq!(format!("{saved:?}"), format!("{:?}", again.expect("what was saved")));
});
