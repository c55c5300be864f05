//! Alignment of reads. [`engine`] turns reads into alignment records with one of several aligners; [`pipeline`] runs
//! an engine on many threads; [`sort`] sorts the records and marks duplicates ([`sort::markdup`]); [`sam`] encodes
//! records as BAM and SAM. [`scan`] aligns sequences to a reference without an index, for variant calling.
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
