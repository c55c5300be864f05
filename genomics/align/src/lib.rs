//! Alignment of reads. [`engine`] turns reads into alignment records; [`pipeline`] runs
//! an engine on many threads; [`sort`] sorts the records and marks duplicates ([`sort::markdup`]); [`sam`] encodes
//! records as BAM and SAM. [`scan`] aligns sequences to a reference without an index, for variant calling.
//!
//! The SAM line of one read:
//!
//! ```
//! use genuma_align::engine::genuma::{GenumaEngine, GenumaEngineOptions, build_index};
//! use genuma_align::engine::Engine;
//! use genuma_align::sam::{split_bam_records, write_sam_line};
//! use genuma_reads::{ReadBatch, ReadRef};
//!
//! let folder = tempfile::tempdir()?;
//! let fasta = folder.path().join("ref.fa");
//! let mut state = 1_u64;
//! let bases: String = (0..2000).map(|_| {
//!     state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
//!     char::from(b"ACGT"[(state >> 62) as usize])
//! }).collect();
//! std::fs::write(&fasta, format!(">chr1\n{bases}\n"))?;
//! build_index(&fasta, &fasta, 1)?;
//! let engine = GenumaEngine::load_index(&fasta, &fasta, GenumaEngineOptions::default(), 1)?;
//!
//! let seq = bases[500..650].as_bytes();
//! let mut reads = ReadBatch::new();
//! reads.push(ReadRef { name: b"read", comment: b"", tags: b"", seq, qual: &[b'I'; 150] });
//! let (mut records, mut line) = (Vec::new(), Vec::new());
//! engine.align_block(&mut engine.new_worker_state(), &[reads], &mut Vec::new(), &mut records)?;
//! for record in split_bam_records(&records) {
//!     write_sam_line(record?, engine.contigs(), &mut line)?;
//! }
//! assert!(line.starts_with(b"read\t0\tchr1\t501\t60\t150M\t"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub mod engine;
pub mod sam;

pub mod sort;

pub mod bgzf;
pub mod indexed_file;

pub mod hit;
pub mod scan;
pub mod scan_to_bam;

pub mod header;
pub mod index_placement;
pub mod pipeline;

pub use engine::Error;
pub use hit::{CigarKind, CigarOp, Hit, Strand};
