//! The table of run times that `genuma advise --replay` learns from.
#![no_main]

use genuma_strategy::replay::table;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let _ = table::parse("table.csv", text);
});
