//! Reads in. Modules in the order data flows through them.
mod error;
mod meter;

mod inflate;

mod fastq;

mod batch;
pub mod lane;
mod pipeline;

pub mod atomic_file;
pub mod dna;
pub mod fasta;

pub use batch::{Mate, Pair, PairBatch};
pub use error::{Error, FileFault, LineFault, RecordFault, Shown};
pub use lane::{Lane, LaneFiles, Layout, NORMAL, TUMOUR};
pub use meter::Meter;
pub use pipeline::for_each_batch;
