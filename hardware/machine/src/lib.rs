//! A machine's memory: what there is, and putting data and threads where they belong.
//!
//! [`topology`] tells what a machine is made of; [`placement`] pins threads, places memory under a policy and asks the kernel
//! afterwards where the pages are.
mod ids;
mod sys;
pub mod topology;
pub mod placement;

pub use ids::IdSet;
pub use topology::{Source, Topology};
