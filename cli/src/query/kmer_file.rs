//! Looks k-mers up in a table or in a dictionary.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use genuma_dictionary::{Dictionary, SequenceKmerLookup, is_dictionary_file};
use genuma_flash::{CachedTable, LookupResults, Table, TableOpenOptions};
use genuma_tables::note::{TableNote, decode_kmer_counts};
use genuma_work::parallel;
use tracing::info;

use super::kmer_chunk::SequenceKmer;

/// Number of concurrent read requests to the table file for each thread.
const TABLE_READ_REQUESTS_PER_THREAD: usize = 64;
/// The default cache holds the number of table entries divided by this number: 5% (cadenelli2019, section 5.4.4).
const TABLE_ENTRIES_PER_CACHE_ENTRY: u64 = 20;
/// Number of k-mers that a thread takes at a time.
pub(super) const KMERS_PER_TASK: usize = 1 << 13;
/// Name of the count column for a dictionary without counts. The column shows whether the dictionary has the k-mer.
const PRESENCE_COLUMN: &str = "present";

/// An open table or dictionary of k-mer counts.
#[derive(Debug)]
pub(super) struct KmerFile {
    pub(super) path: PathBuf,
    pub(super) k: u32,
    /// Names of the count columns: the samples, or [`PRESENCE_COLUMN`].
    pub(super) columns: Vec<String>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Table(Box<Table>),
    Dictionary(Box<Dictionary>),
}

impl KmerFile {
    /// Opens a table, or reads a dictionary into memory.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or is not of k-mer counts.
    pub(super) fn open(path: &Path) -> anyhow::Result<KmerFile> {
        let (note, columns, content) = if is_dictionary_file(path)? {
            let (dictionary, note) = open_dictionary_with_note(path)?;
            let columns =
                if dictionary.num_samples() == 0 { vec![PRESENCE_COLUMN.to_owned()] } else { note.samples.clone() };
            (note, columns, Content::Dictionary(Box::new(dictionary)))
        } else {
            let table = Table::open(path, &TableOpenOptions::default())?;
            let Some(note) = TableNote::parse_table_note(table.note(), table.value_bytes()) else {
                bail!("{}: is a table, but not of k-mer counts: make one with `genuma kmers count`", path.display());
            };
            let columns = note.samples.clone();
            (note, columns, Content::Table(Box::new(table)))
        };
        Ok(KmerFile { path: path.to_path_buf(), k: note.k, columns, content })
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.content, Content::Table(_))
    }

    /// Whether the file has counts. A dictionary without counts only shows which k-mers it has.
    pub(super) fn has_counts(&self) -> bool {
        match &self.content {
            Content::Table(_) => true,
            Content::Dictionary(dictionary) => dictionary.num_samples() > 0,
        }
    }

    /// Prepares lookups with `threads` threads. The cache of a table has `cache_bytes` bytes, or its default size.
    ///
    /// # Errors
    /// There is no memory for the cache.
    pub(super) fn start_lookups(&self, threads: usize, cache_bytes: Option<u64>) -> anyhow::Result<KmerLookup<'_>> {
        let method = match &self.content {
            Content::Table(table) => {
                let num_entries = table.len().div_ceil(TABLE_ENTRIES_PER_CACHE_ENTRY);
                let default_bytes = || CachedTable::cache_bytes_for_entries(num_entries, table.value_bytes());
                let cached = CachedTable::allocate_cache_for_table(table, cache_bytes.unwrap_or_else(default_bytes))?;
                LookupMethod::Table { cached: Box::new(cached), keys: Vec::new(), answers: LookupResults::new() }
            }
            Content::Dictionary(dictionary) => LookupMethod::Dictionary { dictionary, num_index_lookups: 0 },
        };
        Ok(KmerLookup { file: self, method, threads, counts: Vec::new(), num_looked_up: 0, num_found: 0 })
    }
}

/// Opens a dictionary of k-mer counts. Returns the dictionary and its note.
pub(crate) fn open_dictionary_with_note(path: &Path) -> anyhow::Result<(Dictionary, TableNote)> {
    let dictionary = Dictionary::open(path)?;
    let note = TableNote::parse_dictionary_note(dictionary.note(), dictionary.k(), dictionary.num_samples())
        .with_context(|| format!("{}: is a dictionary, but not of k-mer counts", path.display()))?;
    Ok((dictionary, note))
}

/// Looks k-mers up in a file, many at a time.
pub(super) struct KmerLookup<'f> {
    pub(super) file: &'f KmerFile,
    method: LookupMethod<'f>,
    threads: usize,
    /// Counts of the k-mers that were looked up last: for each k-mer one for each column, 0 if it is absent.
    counts: Vec<u32>,
    num_looked_up: u64,
    num_found: u64,
}

enum LookupMethod<'f> {
    Table { cached: Box<CachedTable<'f>>, keys: Vec<u64>, answers: LookupResults },
    Dictionary { dictionary: &'f Dictionary, num_index_lookups: u64 },
}

impl KmerLookup<'_> {
    /// Looks the k-mers up. [`KmerLookup::counts_of_kmer`] returns the result.
    ///
    /// # Errors
    /// The table cannot be read, or is damaged.
    pub(super) fn look_up(&mut self, kmers: &[SequenceKmer]) -> anyhow::Result<()> {
        self.counts.clear();
        self.num_looked_up += kmers.len() as u64;
        match &mut self.method {
            LookupMethod::Table { cached, keys, answers } => {
                keys.clear();
                keys.extend(kmers.iter().map(|kmer| kmer.kmer.canonical()));
                cached.get_many(keys, self.threads, TABLE_READ_REQUESTS_PER_THREAD, answers)?;
                for answer in answers.iter() {
                    match answer {
                        Some(value) => self.counts.extend(decode_kmer_counts(value)),
                        None => self.counts.resize(self.counts.len() + self.file.columns.len(), 0),
                    }
                    self.num_found += u64::from(answer.is_some());
                }
            }
            LookupMethod::Dictionary { dictionary, num_index_lookups } => {
                let (dictionary, num_tasks) = (*dictionary, kmers.len().div_ceil(KMERS_PER_TASK));
                let look_up_task = |(): &mut (), task: usize| {
                    let end = kmers.len().min((task + 1) * KMERS_PER_TASK);
                    look_up_in_dictionary(dictionary, &kmers[task * KMERS_PER_TASK..end])
                };
                for found in parallel::map_in_order(num_tasks, self.threads, || (), look_up_task) {
                    self.counts.extend(found.counts);
                    self.num_found += found.num_found;
                    *num_index_lookups += found.num_index_lookups;
                }
            }
        }
        Ok(())
    }

    /// The counts of a k-mer of the last lookup, one for each column.
    pub(super) fn counts_of_kmer(&self, kmer: usize) -> &[u32] {
        let num_columns = self.file.columns.len();
        &self.counts[kmer * num_columns..(kmer + 1) * num_columns]
    }

    /// Logs the number of lookups. `names_file`: whether the message names the file.
    pub(super) fn log_statistics(&self, names_file: bool) {
        let name = if names_file { format!("{}: ", self.file.path.display()) } else { String::new() };
        let (num_looked_up, num_found) = (self.num_looked_up, self.num_found);
        match &self.method {
            LookupMethod::Table { cached, .. } => {
                let (remembered, room) = (cached.num_cache_hits(), cached.cache_capacity_entries());
                info!(
                    "{name}{num_looked_up} k-mers looked up, {num_found} found, {remembered} of them in the cache, which has room for {room}"
                );
            }
            LookupMethod::Dictionary { num_index_lookups, .. } => {
                info!(
                    "{name}{num_looked_up} k-mers looked up, {num_found} found; {num_index_lookups} lookups needed the index"
                );
            }
        }
    }
}

/// Counts of some k-mers in a dictionary.
struct DictionaryAnswers {
    counts: Vec<u32>,
    num_found: u64,
    num_index_lookups: u64,
}

/// Looks up consecutive k-mers of sequences.
fn look_up_in_dictionary(dictionary: &Dictionary, kmers: &[SequenceKmer]) -> DictionaryAnswers {
    let num_samples = dictionary.num_samples();
    let mut counts = Vec::with_capacity(kmers.len() * num_samples.max(1));
    let (mut lookup, mut num_found, mut last_sequence) = (SequenceKmerLookup::for_dictionary(dictionary), 0, None);
    for kmer in kmers {
        if last_sequence != Some(kmer.sequence) {
            lookup.start_query_sequence();
            last_sequence = Some(kmer.sequence);
        }
        let number = lookup.find_kmer_number(kmer.start, kmer.kmer);
        num_found += u64::from(number.is_some());
        match number {
            Some(number) if num_samples > 0 => {
                counts.extend((0..num_samples).map(|sample| dictionary.get_count(number, sample)));
            }
            Some(_) => counts.push(1),
            None => counts.resize(counts.len() + num_samples.max(1), 0),
        }
    }
    DictionaryAnswers { counts, num_found, num_index_lookups: lookup.num_index_lookups() }
}
