//! Support for long runs, independent of what they compute: output files, work folder, spilling, threads, progress
//! and signals.
//!
//! - [`publish`] makes output files appear under their final names only when they are complete (atomic publish).
//! - [`folder`] manages the work folder of a run; [`unit`] stores the results of finished units in that folder, so that
//!   a run can resume.
//! - [`spill`] writes blocks of data that exceed the memory budget to a temporary file; [`disk_buckets`] and
//!   [`spillable_buckets`] store serialised values in that file.
//! - [`parallel`] distributes work over threads; [`ordered_section`] lets these threads execute one step in the order
//!   of their work items.
//! - [`cost`], [`progress`] and [`timeline`] measure time, memory, I/O and progress; [`energy`] measures or estimates
//!   energy.
//! - [`counters`] counts what processes used: CPU time, context switches, page faults, cache misses, memory by node.
//! - [`hash`] has the hash function of 64-bit words.
//! - [`quantity`] formats and parses quantities: counts, sizes, durations.
//! - [`proc_parsing`] parses files of `/proc`.
//! - [`signals`] ends an interrupted or failed run cleanly.

pub mod cost;
pub mod counters;
pub mod energy;
pub mod folder;
pub mod hash;
mod critical_section;
pub mod proc_parsing;
pub mod progress;
pub mod parallel;
pub mod spillable_buckets;
pub mod publish;
pub mod quantity;
pub mod disk_buckets;
pub mod signals;
pub mod spill;
pub mod timeline;
pub mod ordered_section;
pub mod unit;
mod rusage;

pub use progress::{ProgressCounters, ProgressListener};
