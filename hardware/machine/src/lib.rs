//! Machine topology, memory placement and thread affinity on Linux.
//!
//! [`topology`] reads CPUs, caches and NUMA nodes. [`placement`] pins threads, allocates memory under a memory policy
//! and asks the kernel on which nodes the pages are. [`simd_and_prefetch`] prefetches cache lines and selects SIMD
//! instruction sets.
mod ids;
mod sys;
pub mod simd_and_prefetch;
pub mod topology;
pub mod placement;

pub use ids::IdSet;
pub use topology::{Topology, TopologySource};
