//! Reads in. Modules in the order data flows through them.
mod lane;

mod source;

mod bgzf;

mod inflate;

mod fastq;

mod batch;

mod read_batch;

mod trim;

mod pipeline;

mod stream;

mod check;

mod meter;

pub mod fasta;

pub mod dna;

pub mod atomic_file;

mod error;

pub use batch::{Mate, Pair, PairBatch};
pub use check::check_lanes;
pub use error::{Error, FileFault, LineFault, RecordFault, Shown};
pub use lane::{Lane, LaneFiles, Layout, NORMAL, TUMOUR};
pub use meter::Meter;
pub use pipeline::for_each_batch;
pub use read_batch::{ReadBatch, ReadRef};
pub use stream::{Cut, ReadLane, ReadStream, StreamOptions};
pub use trim::{Trimmed, Trimmer};
