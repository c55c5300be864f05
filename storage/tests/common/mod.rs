//! What the tests of depots share.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod proxy;
pub mod server;

use std::fs;
use std::io::Write;
use std::path::Path;

use genuma_storage::{Depot, Entry, Error};

/// Says that a test is skipped, and why, past the capture of what passing tests print.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// Bytes that differ everywhere, and with the seed.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(step).collect()
}

/// Publishes bytes under a name.
pub fn put(depot: &Depot, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let draft = depot.draft(name)?;
    fs::write(draft.path(), bytes).unwrap();
    depot.publish(draft, name)
}

/// The object of a name, which is there.
pub fn entry(depot: &Depot, name: &str) -> Entry {
    depot.find(name).unwrap().expect("the object is there")
}

/// The bytes of a range, by way of a local file.
pub fn fetched(entry: &Entry, range: std::ops::Range<u64>) -> Result<Vec<u8>, Error> {
    let fetched = entry.fetch(range.clone())?;
    let bytes = fs::read(fetched.path()).unwrap();
    let at = |byte: u64| (byte - fetched.start()) as usize;
    Ok(bytes[at(range.start)..at(range.end)].to_vec())
}

/// All names in a folder, hidden ones too, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
