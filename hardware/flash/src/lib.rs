//! Immutable sorted key-value tables on flash (SSD). Values have a fixed size. Random lookups run at the full rate of
//! the device.
//!
//! [`TableWriter`] takes entries in ascending key order. [`Table`] keeps in memory a Bloom filter, the hot entries,
//! and an index that maps keys to pages. A [`TableReader`] looks up many keys at once with many reads in flight.
//! [`CachedTable`] also caches results. Every page has a checksum, so damage gives an error, never a wrong result.
//! The design is that of cadenelli2019, chapter 5. `docs/internals/flash.md` has measurements, `docs/formats/table.md`
//! the file format.

mod error;
mod hash;
mod filter;
mod hot_entries;
mod page;
mod compact_page;
mod format;
mod page_cutter;
mod file;
mod file_writer;
mod writer;
mod parallel_writer;
mod index;
mod table;
mod in_memory_lookup;
mod queue;
mod reader;
mod lookup_results;
mod cached_table;
mod entry_reader;
mod table_page_reader;

pub use cached_table::CachedTable;
pub use entry_reader::EntryReader;
pub use error::{Error, TablePart};
pub use format::{MAX_NOTE_BYTES, MAX_VALUE_BYTES, PageEncoding};
pub use in_memory_lookup::LookupStatistics;
pub use lookup_results::LookupResults;
pub use page::PAGE_BYTES;
pub use parallel_writer::{KeyRangeWriter, ParallelTableWriter};
pub use queue::PageReadMethod;
pub use reader::TableReader;
pub use table::{Table, TableMemoryBytes, TableOpenOptions};
pub use table_page_reader::{EntryBatch, EntryBatchReader, TablePageReader, UncheckedPages};
pub use writer::{TableSpec, TableSummary, TableWriter};
