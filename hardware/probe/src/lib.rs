//! Measures a machine's memory: the NUMA performance aspects of lenis2018, chapter 3.
//!
//! A [`Plan`] says what is measured on a topology; a backend measures it ([`native::Native`] this machine, [`model::Model`] one whose
//! numbers are given); [`measure()`] makes a [`MachineProfile`] of it, which is written and read as `machine.json`.
//!
//! ```
//! use genuma_machine::topology::{Source, Synthetic};
//! use genuma_probe::measure::{Machine, measure};
//! use genuma_probe::model::Model;
//! use genuma_probe::plan::{Plan, Wish};
//! use genuma_probe::profile::{Kernel, Theory};
//!
//! let server: Synthetic = "4 nodes x 8 cores, 64 GiB".parse()?;
//! let topology = server.topology()?;
//! let plan = Plan::new(&topology, &Wish::quick())?;
//! let machine = Machine { topology: topology.clone(), theory: Theory::default(), host: None, now: None };
//! let profile = measure(machine, &plan, &mut Model::new(topology), &mut |_| {})?;
//! let near = profile.latency_between(0, 0).expect("measured").median;
//! let far = profile.latency_between(0, 3).expect("measured").median;
//! assert!(far > near);
//! assert!(profile.bandwidth_between(Kernel::Triad, 0, 0).expect("measured").total.median > 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub mod dmi;
pub mod plan;
pub mod kernels;
pub mod chase;
pub mod backend;
pub mod native;
pub mod model;
pub mod stats;
pub mod levels;
pub mod measure;
pub mod profile;
pub mod check;
pub mod placement;

pub use measure::measure;
pub use plan::Plan;
pub use profile::MachineProfile;
