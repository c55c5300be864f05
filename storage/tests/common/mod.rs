//! Common functions of the tests of run stores.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod proxy;
pub mod server;

use std::fs;
use std::io::Write;
use std::path::Path;

use genuma_storage::{Error, RunStore, StoredObject};

/// Prints that a test is skipped, and why, bypassing the output capture of passing tests.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Pseudo-random bytes.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(step).collect()
}

/// Publishes bytes under a name.
pub fn publish_bytes(store: &RunStore, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let temp_object = store.create_temp_object(name)?;
    fs::write(temp_object.path(), bytes).unwrap();
    store.publish(temp_object, name)
}

/// The object with this name, which must exist.
pub fn find_object(store: &RunStore, name: &str) -> StoredObject {
    store.open_object_if_exists(name).unwrap().expect("the object is there")
}

/// The bytes of a range, read from the local copy.
pub fn fetch_bytes(object: &StoredObject, range: std::ops::Range<u64>) -> Result<Vec<u8>, Error> {
    let fetch_bytes = object.fetch_range_to_file(range.clone())?;
    let bytes = fs::read(fetch_bytes.local_path()).unwrap();
    let at = |byte: u64| (byte - fetch_bytes.object_offset()) as usize;
    Ok(bytes[at(range.start)..at(range.end)].to_vec())
}

/// All names in a folder, hidden ones too, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
