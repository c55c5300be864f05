//! Immutable sorted tables on flash: key → value of a fixed size, looked up at random at the device's own rate.
//!
//! [`TableWriter`] takes entries in order of their keys. [`Table`] keeps in memory what tells absent keys, the entries that are looked up
//! most, and in which page any other is; a [`Reader`] looks up many keys at once, with many reads under way, and [`Cached`] remembers what was found. Every page carries a checksum:
//! a damaged one is an error, never a wrong answer. The design is that of cadenelli2019, chapter 5; `docs/flash.md` tells what
//! was measured, `docs/formats/table.md` what the bytes mean.

mod error;
mod hash;
mod filter;
mod hot;
mod format;
mod file;
mod sink;
mod writer;
mod together;
mod index;
mod table;
mod sift;
mod queue;
mod reader;
mod answers;
mod cached;
mod entries;
mod scan;

pub use answers::Answers;
pub use cached::Cached;
pub use entries::Entries;
pub use error::{Error, Part};
pub use format::{MAX_NOTE, MAX_VALUE};
pub use queue::Access;
pub use reader::Reader;
pub use scan::{Piece, Raw, Scan, Walk};
pub use sift::Counted;
pub use table::{Options, Resident, Table};
pub use together::{Hand, Together};
pub use writer::{Spec, TableWriter, Written};
