//! Parses `machine.json`, writes it, and parses the copy.
#![no_main]

use genuma_probe::profile::MachineProfile;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(profile) = MachineProfile::parse_json(text, "machine.json".as_ref()) else { return };
    let mut written = Vec::new();
    profile.write_json(&mut written).expect("memory");
    let written = String::from_utf8(written).expect("JSON is UTF-8");
    MachineProfile::parse_json(&written, "written.json".as_ref()).expect("what was written");
});
