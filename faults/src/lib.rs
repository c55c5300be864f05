//! Fault injection tests of genuma: make its system calls fail, one at a time, and check how the program behaves.
//!
//! [`fault`] defines the faults, [`shim`] injects them into a process, [`test_cases`] has the command lines,
//! [`fault_test_runner`] runs them, [`oracle`] judges a run by comparing its files (`snapshot`) with those of a run
//! without faults, `sync_trace` checks the order of its syncs, [`file_damage`] damages input files, [`campaign_plan`]
//! lists the trials of a campaign, [`tally`] counts the outcomes.

pub mod fault_test_runner;
pub mod test_cases;
pub mod test_inputs;
pub mod file_damage;
pub mod fault;
pub mod oracle;
pub mod campaign_plan;
pub mod process;
pub mod shim;
mod snapshot;
mod sync_trace;
pub mod tally;
