//! Operations on sorted tables of k-mer counts: union, intersection, difference, filters and panels of normals, and the
//! conversion of a table to a dictionary.
//!
//! Tables are cut at the same k-mers into ranges that fit in the cache of a core. Some threads read the ranges ahead, the
//! others merge them; a range is written when all ranges before it are, so that the result does not depend on the number
//! of threads. A panel of normals is a union with [`rule::CountMode::Samples`]: its counts are numbers of samples.
//!
//! The union of two tables, with the sum of the counts:
//!
//! ```
//! use genuma_flash::{EntryBatch, TablePageReader, TableWriter};
//! use genuma_tables::combine::{combine_tables, note_of_result, page_memory_bytes};
//! use genuma_tables::note::TableNote;
//! use genuma_tables::output::KmerOutputFile;
//! use genuma_tables::rule::{CombineRule, CountMode, SetOperation};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = |name: &str| folder.path().join(name);
//! let note = TableNote::for_counted_table(5, 1, 0, vec!["blood".to_owned()]);
//! for (name, kmers) in [("a.gkt", [3, 7]), ("b.gkt", [7, 9])] {
//!     let mut table = TableWriter::create(path(name), note.table_spec(2)?)?;
//!     for kmer in kmers {
//!         table.push_entry(kmer, note.encode_kmer_counts(&[10]), 10)?;
//!     }
//!     table.finish_and_publish()?;
//! }
//! let tables = [TablePageReader::open(path("a.gkt"))?, TablePageReader::open(path("b.gkt"))?];
//! let rule = CombineRule::new(SetOperation::Union, CountMode::Sum, &[1, 1]);
//! let note = note_of_result(&[&note, &note], &rule, note.samples.clone());
//! let memory_bytes = (64 << 20) + 2 * tables.iter().map(|table| page_memory_bytes(table, 2)).sum::<u64>();
//! let target = KmerOutputFile::Table(path("union.gkt"));
//! let written = combine_tables(&tables, &rule, &note, &target, 2, memory_bytes)?;
//! assert_eq!(written.kmers, 3);
//! written.file.publish()?;
//!
//! let union = TablePageReader::open(path("union.gkt"))?;
//! let mut entries = EntryBatch::<u32>::default();
//! union.new_entry_batch_reader(1)?.read_next_batch(&mut entries)?;
//! assert_eq!((entries.keys, entries.values), (vec![3, 7, 9], vec![10, 20, 10]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
pub mod note;
pub mod rule;
mod merge;
mod kmer_ranges;
mod read_ahead;
pub mod output;
pub mod combine;
pub mod dictionary;

pub use error::Error;
