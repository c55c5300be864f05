//! Reading of FASTQ, FASTA, BAM, CRAM and BINSEQ files: reads and read pairs in batches, adapter trimming, packed
//! reads, and the division of files into shards. The modules are listed in the order of the data flow.
//!
//! The number of bases of each pair, on several threads:
//!
//! ```
//! use genuma_reads::{AlignedOptions, Error, Lane, MateLayout, ProgressCounters, for_each_batch};
//!
//! let folder = tempfile::tempdir()?;
//! let files = [1, 2].map(|mate| folder.path().join(format!("reads_{mate}.fq")));
//! std::fs::write(&files[0], "@a/1\nACGT\n+\nIIII\n")?;
//! std::fs::write(&files[1], "@a/2\nGG\n+\nII\n")?;
//! let lanes = Lane::group_files_into_lanes(0, &files, MateLayout::Pairs, &AlignedOptions::default())?;
//! let per_thread = for_each_batch(&lanes, 2, &ProgressCounters::default(), || 0, |bases, batch| {
//!     *bases += batch.iter().map(|pair| pair.mates[0].seq.len() + pair.mates[1].seq.len()).sum::<usize>();
//!     Ok::<(), Error>(())
//! })?;
//! assert_eq!(per_thread.iter().sum::<usize>(), 6);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod file_span;

mod pipe;

mod input_file;

mod bgzf;

mod gzip_members;

mod compression;

mod inflate;

mod fastq;

pub mod umi;

mod tags;

mod read_structure;

mod record_counts;

mod pair_batch;

mod inline_umi;

mod read_batch;

pub mod packed_bases;

pub mod packed_read;

mod aligned;

mod lane;

mod trim;

mod reference_reads;

mod pipeline;

pub mod packed_reads;

mod stream;

mod check;

mod empty_lanes;

mod shards;

mod estimate;

pub mod fasta;

pub mod targets;
pub mod known_info;
pub mod known_vcf;
pub mod population_frequencies;
mod text_lines;

pub mod dna;

pub mod md5_sum;

mod error;

pub use genuma_work::ProgressCounters;

pub use aligned::{AlignedHeader, AlignedInput, AlignedOptions, CramReference, HeaderSequence, is_in_cram_decoder};
pub use check::{check_lanes, check_lanes_for_one_pass};
pub use compression::CompressionFormat;
pub use empty_lanes::{
    format_empty_lane_warning, leave_out_empty_stream_lanes, remove_empty_lanes, which_lanes_to_leave_out,
};
pub use error::{ByteForDisplay, Error, FastaLineFault, FileFault, RecordFault, SequenceNameFault, TargetFault};
pub use estimate::{ReadEstimate, sample_file_bytes_per_text_byte};
pub use fastq::check_no_other_format;
pub use file_span::{FileSpan, VirtualOffset};
pub use inline_umi::InlineUmiStructures;
pub use lane::{Lane, LaneFiles, LaneSlice, MateLayout, NORMAL_SAMPLE, TUMOUR_SAMPLE, num_samples};
pub use pair_batch::{Mate, PairBatch, ReadPair};
pub use pipeline::for_each_batch;
pub use read_batch::{ReadBatch, ReadRef};
pub use read_structure::{ReadStructure, ReadStructures};
pub use record_counts::{INCOMPLETE_READ_KINDS, IncompleteReadKind, RecordCounts};
pub use shards::{ShardPlan, SplitObstacle, UnderSplitLane, split_lanes_into_shards};
pub use stream::{BatchLimits, ReadStream, StreamLane, StreamOptions};
pub use tags::{BamTag, BamTagIter, CarriedTags, InvalidTags, parse_tag_name};
pub use trim::{TrimCounts, Trimmer};
