//! Measures a machine's memory: the NUMA performance aspects of lenis2018, chapter 3.
//!
//! A [`MeasurementPlan`] lists what is measured on a topology. A backend measures it: [`local_machine::LocalMachine`]
//! on this machine, [`simulated_machine::SimulatedMachine`] from given numbers. [`measure_profile()`] collects the
//! results in a [`MachineProfile`], which is written to and read from `machine.json`.
//!
//! ```
//! use genuma_machine::topology::{TopologySource, SyntheticMachine};
//! use genuma_probe::measure::{UnmeasuredMachineFacts, measure_profile};
//! use genuma_probe::simulated_machine::SimulatedMachine;
//! use genuma_probe::plan::{MeasurementPlan, PlanOptions};
//! use genuma_probe::profile::{BandwidthKernel, TheoreticalBandwidth};
//!
//! let server: SyntheticMachine = "4 nodes x 8 cores, 64 GiB".parse()?;
//! let topology = server.topology()?;
//! let plan = MeasurementPlan::new(&topology, &PlanOptions::quick_plan())?;
//! let machine = UnmeasuredMachineFacts {
//!     topology: topology.clone(),
//!     theory: TheoreticalBandwidth::default(),
//!     host: None,
//!     unix_time_s: None,
//! };
//! let profile = measure_profile(machine, &plan, &mut SimulatedMachine::new_typical_server(topology), &mut |_| {})?;
//! let near = profile.dram_latency_between(0, 0).expect("measured").median;
//! let far = profile.dram_latency_between(0, 3).expect("measured").median;
//! assert!(far > near);
//! assert!(profile.bandwidth_between(BandwidthKernel::Triad, 0, 0).expect("measured").total.median > 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub mod smbios;
pub mod plan;
pub mod bandwidth_kernels;
pub mod pointer_chain;
pub mod backend;
pub mod local_machine;
pub mod simulated_machine;
pub mod repetition_summary;
pub mod memory_levels;
pub mod measure;
pub mod profile;
pub mod profile_io;
pub mod placement_check;

pub use measure::measure_profile;
pub use plan::MeasurementPlan;
pub use profile::MachineProfile;
