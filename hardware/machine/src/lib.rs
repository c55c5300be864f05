//! A machine's memory: what there is, and putting data and threads where they belong.
//!
//! [`topology`] tells what a machine is made of; [`placement`] pins threads, places memory under a policy and asks the kernel
//! afterwards where the pages are; [`processor`] asks for cache lines and wide vectors.
mod ids;
mod sys;
pub mod processor;
pub mod topology;
pub mod placement;

pub use ids::IdSet;
pub use topology::{Source, Topology};
