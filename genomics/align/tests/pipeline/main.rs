//! The pipeline gives the same records as the engines' own command lines, at any number of threads, for lanes of
//! every kind. Sorted output equals that of samtools.

#[path = "../engine/peers.rs"]
mod peers;
#[path = "../engine/data.rs"]
#[allow(dead_code)]
mod data;
mod bench;
mod identity;
mod sorted;
mod failures;
