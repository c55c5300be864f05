//! Putting memory and threads where they belong, and asking the kernel afterwards where they are.
//!
//! Memory is placed when it is made ([`Placed`], [`Replicated`]) or by the thread's policy while a foreign library allocates
//! ([`Scoped`]). [`pin`] keeps threads on CPUs. Wrong asks (a node that is not there, has no memory, or is outside of the process's cpuset)
//! are errors that say what may be used. Where the machine has one node, or the kernel forbids the calls (containers), everything works
//! with local memory, one warning is logged, and [`Placed::placement`] tells what was done instead.

mod policy;
mod error;
mod nodes;
pub mod pin;
mod scoped;
mod residence;
mod room;
mod fill;
mod placed;
mod replicated;
mod slab;
mod huge;

pub use error::Error;
pub use huge::{collapse, harmless};
pub use placed::Placed;
pub use policy::{Pages, Placement, Policy};
pub use replicated::Replicated;
pub use residence::{Residence, Verdict, residence_of};
pub use room::fits;
pub use scoped::Scoped;
pub use slab::{Piece, Slab};

/// Bytes for people: `64 MiB`, `1.5 GiB`, `12 B`.
pub(crate) fn readable(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.into_iter().find(|&(_, unit)| bytes >= unit) {
        None => format!("{bytes} B"),
        Some((name, unit)) if bytes.is_multiple_of(unit) => format!("{} {name}", bytes / unit),
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
    }
}
