//! Parses the plan of a distributed call: an accepted plan is the same after it was written and parsed again.
#![no_main]

use genuma_somatic::distributed_call::DistributedCallPlan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(plan) = serde_json::from_slice::<DistributedCallPlan>(text) else { return };
    let written = serde_json::to_vec(&plan).expect("paths are UTF-8");
    let again: DistributedCallPlan = serde_json::from_slice(&written).expect("an accepted plan");
    assert_eq!(format!("{plan:?}"), format!("{again:?}"));
});
