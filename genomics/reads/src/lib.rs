//! Reads in. Modules in the order data flows through them.
mod span;

mod pipe;

mod source;

mod bgzf;

mod inflate;

mod fastq;

mod batch;

mod read_batch;

pub mod packed;

pub mod packed_read;

mod aligned;

mod lane;

mod trim;

mod pipeline;

pub mod copy;

mod stream;

mod check;

mod shards;

mod estimate;

pub mod fasta;

pub mod dna;

mod error;

pub use genuma_work::Meter;

pub use aligned::{Aligned, AlignedOptions, Genome, Tally};
pub use batch::{Mate, Pair, PairBatch};
pub use check::{check_lanes, check_lanes_once};
pub use error::{Error, FileFault, LineFault, NameFault, RecordFault, Shown};
pub use estimate::Estimate;
pub use lane::{Lane, LaneFiles, Layout, NORMAL, Slice, TUMOUR, samples};
pub use pipeline::for_each_batch;
pub use read_batch::{ReadBatch, ReadRef};
pub use shards::{Sharding, Uncut, WhyUncut, shards};
pub use span::{Offset, Span};
pub use stream::{Cut, ReadLane, ReadStream, StreamOptions};
pub use trim::{Trimmed, Trimmer};
