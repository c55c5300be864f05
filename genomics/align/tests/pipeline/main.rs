//! The pipeline answers as the engines' own command lines do, at any number of threads, for lanes of every kind; sorted it gives
//! what samtools gives of them.

#[path = "../engine/peers.rs"]
mod peers;
#[path = "../engine/data.rs"]
#[allow(dead_code)]
mod data;
mod bench;
mod identity;
mod sorted;
mod failures;
