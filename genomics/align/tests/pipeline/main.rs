//! The pipeline gives the same records at any number of threads, for lanes of every kind. Sorted output equals that of samtools.

#[path = "../engine/data.rs"]
#[allow(dead_code)]
mod data;
mod bench;
mod identity;
mod sorted;
mod failures;
