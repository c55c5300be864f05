//! Places memory and threads on NUMA nodes, and asks the kernel afterwards where the pages are.
//!
//! Memory is placed when it is allocated ([`PlacedSlice`], [`ReplicatedPerNode`]), or by the thread's policy while a
//! foreign library allocates ([`ScopedMemoryPolicy`]). [`pin`] restricts threads to CPUs. Invalid requests (a node
//! that does not exist, has no memory, or is outside of the process's cpuset) are errors that name the valid nodes.
//! Where the machine has one node, or the kernel forbids the calls (containers), local memory is used, one warning is
//! logged, and [`PlacedSlice::applied_placement`] returns the placement that was applied.

mod policy;
mod error;
mod node_sets;
pub mod pin;
mod scoped;
mod residence;
mod free_memory;
mod fill;
mod placed_slice;
mod replicated;
mod slab;
mod huge_pages;

pub use error::Error;
pub use free_memory::check_memory_fits;
pub use huge_pages::{collapse_into_huge_pages, thread_policy_uses_one_node};
pub use node_sets::{online_nodes, usable_nodes};
pub use placed_slice::PlacedSlice;
pub use policy::{MemoryPlacement, MemoryPolicy, PageSize};
pub use replicated::ReplicatedPerNode;
pub use residence::{PageResidence, PlacementCheck, query_address_range_residence, query_slice_residence};
pub use scoped::ScopedMemoryPolicy;
pub use slab::{Slab, SlabBuffer};

/// Formats a byte count with a binary unit: `64 MiB`, `1.5 GiB`, `12 B`.
pub(crate) fn format_bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|&(_, unit)| bytes >= unit) {
        None => format!("{bytes} B"),
        Some((name, unit)) if bytes.is_multiple_of(unit) => format!("{} {name}", bytes / unit),
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
    }
}
