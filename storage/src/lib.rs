//! The run store: objects (immutable files) by which the steps of a distributed call pass results to later steps.
//!
//! A [`RunStore`] is a folder that all machines can access, or a bucket of object storage (S3, Google Cloud Storage).
//! Both guarantee: an object appears under its name only when it is complete; a newer object replaces an older one
//! atomically; and a reader of an object never gets bytes of another object that has replaced it. Folders are accessed
//! by ordinary system calls. The asynchronous code for buckets is private to this crate.
//!
//! Buckets need the feature `cluster`. Without it this crate has no network code, and the location of a bucket is an
//! error.
//!
//! The run store has no locks. If two machines publish an object with the same name, the later one replaces the earlier
//! one.

#![warn(missing_docs)]

mod error;
mod bucket_options;
mod store_location;
mod temp_object;
#[cfg(feature = "cluster")]
mod retry;
#[cfg(feature = "cluster")]
mod bucket_client;
#[cfg(feature = "cluster")]
mod network_thread;
mod folder_store;
#[cfg(feature = "cluster")]
mod bucket_store;
#[cfg(not(feature = "cluster"))]
#[path = "no_bucket_store.rs"]
mod bucket_store;
mod run_store;
pub mod step_output;

pub use bucket_options::BucketOptions;
pub use error::Error;
pub use run_store::{LocalObjectFile, RunStore, StoredObject};
pub use temp_object::TempObject;
