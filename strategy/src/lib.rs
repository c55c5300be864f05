//! Runs unmodified aligners of other projects under the memory strategy that is fastest on the machine.
//!
//! A strategy is a number of instances of the program, the threads of each, and a memory policy. Reads are
//! distributed to the instances, and the outputs are merged into the order of the reads.
//!
//! Sources: lenis2015, lenis2017, lenis2018.

pub mod strategy;

pub mod invocation;

pub mod command_presets;

pub mod model;

pub mod model_fitting;

pub mod trial_race;

pub mod aligner_model_params;

pub mod advisor;

pub mod read_sample;

pub mod replay;

pub mod memory_pages;

pub mod cpu_layout;

pub mod node_subset;

pub mod launch_commands;

pub mod known_cases;

pub mod index_replicas;

mod batching;

pub mod instance;

pub mod merge;

pub mod page_placement;

pub mod thread_placement;

pub mod run;

pub mod sweep;

pub mod placed_command;

pub mod by_interval;

pub use cpu_layout::CpuSlot;
pub use invocation::Invocation;
pub use strategy::{InstanceMemoryPolicy, Strategy};

#[cfg(fuzzing)]
pub mod fuzz;
