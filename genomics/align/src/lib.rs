//! Alignment: reads → records with one of several aligners ([`engine`], [`sam`]), by all workers of a farm ([`pipeline`]),
//! sorted and marked ([`sort`], [`sort::markdup`]); and the placing of sequences that calling needs ([`scan`]), which takes no index.
pub mod engine;
pub mod sam;

pub mod sort;

pub mod bgzf;
pub mod indexed;

pub mod hit;
pub mod scan;
pub mod bam;

pub mod header;
pub mod placement;
pub mod pipeline;

pub use engine::Error;
pub use hit::{CigarKind, CigarOp, Hit, Strand};
