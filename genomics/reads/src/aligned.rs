//! Reads of BAM, CRAM and BINSEQ (CBQ, VBQ, BQ) files, aligned or not: on the sequenced strand and with mates paired,
//! whatever the order of the records.
//!
//! ```text
//! file ─ whole records, container or block ─ record buffers ─ primary records ─ paired, on the sequenced strand ─ pairs
//!        (one thread at a time)                                 │  ▲
//!                                       waiting mates, spilled to disk beyond a memory limit
//! ```
//!
//! A record is a read of a template (SAM specification, sections 1.4 and 4.2). Secondary and supplementary records
//! repeat the primary record and are counted and skipped. Reads that an aligner reverse-complemented are
//! reverse-complemented again, so that they equal those of the FASTQ file.

mod eof_marker;

mod cram_reference;

mod reference_search_path;

mod cram_version;

mod cram_block;

mod cram_container;

mod cram_2;

mod cram_decoder_guard;

mod cram_header;

mod header;

mod record_buffer;

mod bam;

mod cram;

mod binseq;

mod cbq;

mod vbq;

mod file;

mod waiting_mates;

mod pairing;

mod readers;

pub use cram_decoder_guard::is_in_cram_decoder;
pub use cram_reference::CramReference;
pub use file::{AlignedInput, AlignedOptions};
pub use header::{AlignedHeader, HeaderSequence};
pub(crate) use pairing::TemplateReads;
pub(crate) use readers::{
    FileReadingResources, OrderedReader, ReaderScratch, SharedReader, check_eof_marker_and_header,
    count_reads_in_first_bytes,
};
