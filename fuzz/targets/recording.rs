//! Recordings of machines, and descriptions of machines in words.
#![no_main]

use genuma_machine::topology::{Recorded, Source, Synthetic};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Ok(recorded) = Recorded::parse("x", text) {
        let again = Recorded::parse("x", &recorded.to_text()).expect("what was written");
        assert_eq!(again.to_text(), recorded.to_text());
        let _ = recorded.topology();
    }
    if let Ok(synthetic) = text.parse::<Synthetic>() {
        assert_eq!(synthetic.to_string().parse::<Synthetic>().ok().as_ref(), Some(&synthetic));
        // The largest machines take long.
        if synthetic.nodes * synthetic.cores * synthetic.threads < 1000 {
            synthetic.topology().expect("a description makes sense");
        }
    }
});
