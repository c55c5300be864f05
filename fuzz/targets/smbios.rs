//! Parses the SMBIOS table of memory modules.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|table: &[u8]| {
    let theory = genuma_probe::smbios::theoretical_bandwidth(table);
    assert!(theory.peak_gbs.is_none_or(|peak| peak.is_finite() && peak > 0.0));
});
