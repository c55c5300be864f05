//! Parses the table of published run times of `genuma machine advise --replay`.
#![no_main]

use genuma_strategy::replay::published_runs;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let _ = published_runs::parse_published_runs("table.csv", text);
});
