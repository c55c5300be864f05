//! Injects faults into genuma's system calls, one by one, and checks the results.
//!
//! [`fault`] defines the faults, [`shim`] injects them, [`test_cases`] has the command lines, [`fault_bench`] runs
//! them, [`oracle`] judges the output by comparing the files that `snapshot` reads, [`file_damage`] damages input
//! files, [`campaign_plan`] lists the trials of a campaign, [`tally`] counts the outcomes.

pub mod fault_bench;
pub mod test_cases;
pub mod file_damage;
pub mod fault;
pub mod oracle;
pub mod campaign_plan;
pub mod process;
pub mod shim;
mod snapshot;
pub mod tally;
