//! Parses recordings of machines, and textual descriptions of synthetic machines.
#![no_main]

use genuma_machine::topology::{RecordedMachine, SyntheticMachine, TopologySource};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Ok(recorded) = RecordedMachine::parse("x", text) {
        let again = RecordedMachine::parse("x", &recorded.to_text()).expect("what was written");
        assert_eq!(again.to_text(), recorded.to_text());
        let _ = recorded.topology();
    }
    if let Ok(synthetic) = text.parse::<SyntheticMachine>() {
        assert_eq!(synthetic.to_string().parse::<SyntheticMachine>().ok().as_ref(), Some(&synthetic));
        // Large machines take too long.
        if synthetic.nodes * synthetic.cores_per_node * synthetic.threads_per_core < 1000 {
            synthetic.topology().expect("a description makes sense");
        }
    }
});
