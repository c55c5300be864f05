//! Where the objects of a run that is done in parts on many machines are: the files that one part leaves for another.
//!
//! A [`Depot`] is a folder that all machines see, or a bucket of object storage. Both give the same promises: an object has its name when
//! it is complete, an older one is replaced in one step, and who reads one that was found never gets bytes of another. A folder is used by
//! plain system calls; what a bucket needs of asynchronous code stays in here.
//!
//! No machine waits for another in here: of two that publish one name the later wins.

#![warn(missing_docs)]

mod error;
mod options;
mod place;
mod draft;
mod retry;
mod wire;
mod network;
mod folder;
mod bucket;
mod depot;
pub mod object;

pub use depot::{Depot, Entry, Fetched};
pub use draft::Draft;
pub use error::Error;
pub use options::Options;
