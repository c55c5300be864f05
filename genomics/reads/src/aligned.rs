//! Reads of BAM, CRAM, CBQ, VBQ and BQ files: as they were sequenced, mates together, whatever the order of the records.
//!
//! ```text
//! file ─ cut: whole records, container, block ─ pieces ─ primary records ─ paired, turned ─ pairs
//!        (one thread at a time)                       │  ▲
//!                                        mates that wait for theirs, on the disk past a bound
//! ```
//!
//! A record is a read of a template (SAM specification, sections 1.4 and 4.2): secondary and supplementary ones say no more of it than the primary one does, and are
//! skipped and counted. What an aligner has turned is turned back, so that reads are those that a FASTQ file had.

mod tally;

mod end;

mod genome;

mod piece;

mod bam;

mod cram;

mod binseq;

mod cbq;

mod vbq;

mod file;

mod mates;

mod pairing;

mod source;

pub use file::{Aligned, AlignedOptions};
pub use genome::Genome;
pub(crate) use pairing::Template;
pub(crate) use source::{Crew, Hands, Reader, Source, check, estimate};
pub use tally::Tally;
