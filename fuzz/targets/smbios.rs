//! Parses the SMBIOS table of memory modules.
#![no_main]

use genuma_fuzz::InputFile;
use genuma_probe::smbios::read_theoretical_bandwidth;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|table: &[u8]| {
    let theory = read_theoretical_bandwidth(InputFile::new("smbios", table).path());
    assert!(theory.peak_gbs.is_none_or(|peak| peak.is_finite() && peak > 0.0));
});
