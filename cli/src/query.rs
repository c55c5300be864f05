//! `genuma kmers query`: prints the counts of the k-mers of sequences.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use genuma_dictionary::{Dictionary, SequenceKmerLookup, is_dictionary_file};
use genuma_flash::{CachedTable, LookupResults, Table, TableOpenOptions};
use genuma_kmers::encode::kmers;
use genuma_reads::{BatchLimits, ReadBatch, ReadStream, StreamLane, StreamOptions, leave_out_empty_stream_lanes};
use tracing::info;

use crate::errors::UsageError;
use crate::table_note::{TableNote, decode_kmer_counts};
use crate::{command_line, logging, size_format};

/// Maximum number of k-mers that are looked up in the table in one batch.
const KMERS_PER_LOOKUP: usize = 1 << 16;
/// Number of concurrent read requests to the table file for each thread.
const TABLE_READ_REQUESTS_PER_THREAD: usize = 64;
/// Maximum number of bases of sequences that are read into memory at a time. A longer sequence is read completely.
const BASES_PER_BATCH: u64 = 1 << 24;
/// The default cache holds the number of table entries divided by this number: 5% (cadenelli2019, section 5.4.4).
const TABLE_ENTRIES_PER_CACHE_ENTRY: u64 = 20;

/// Name of the count column for a dictionary without counts. The column shows whether the dictionary has the k-mer.
const PRESENCE_COLUMN: &str = "present";

/// Look up k-mers in a k-mer table (.gkt) or dictionary (.gkd) that `genuma kmers` made.
///
/// Prints a line for each k-mer of the sequences: name of the sequence, position of the k-mer (from 1), the k-mer on
/// the strand of the sequence, and a count for each sample. K-mers that are not in the table have counts of 0. K-mers
/// with other letters than A, C, G and T are skipped. The entries of k-mers that were found are kept in a cache in memory (--cache).
/// A dictionary (`genuma kmers compact`) is read into memory.
#[derive(Debug, clap::Args)]
#[command(
    about = "Look up k-mers in a k-mer table (.gkt) or dictionary (.gkd) that `genuma kmers` made",
    after_help = "Examples:\n  \
    genuma kmers query S.gkt genes.fa > counts.tsv\n  \
    echo -e '>x\\nACGTTGCAACGTTGCAACGTTGCAACGTTGCAC' | genuma kmers query S.gkt -"
)]
pub(crate) struct Args {
    /// K-mer table (.gkt) or dictionary (.gkd) that `genuma kmers` made
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// Sequences: FASTA or FASTQ, plain or compressed; `-` is standard input
    #[arg(value_name = "SEQUENCES", required = true, num_args = 1..)]
    sequences: Vec<PathBuf>,
    /// Threads that look up k-mers in a table; a dictionary is always looked up with one thread [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser())]
    threads: Option<u16>,
    /// Memory of the cache, which keeps the entries of k-mers that were found, such as 500M; 0 disables it [default: enough for 5% of the table's k-mers]
    #[arg(long, value_name = "SIZE", value_parser = size_format::parse_bytes)]
    cache: Option<u64>,
}

/// Looks up the k-mers of the sequences, and prints their counts.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let stdout = BufWriter::with_capacity(1 << 18, logging::lock_stdout_for_results()?);
    let result = match is_dictionary_file(&args.table)? {
        true => look_up_in_dictionary(args, stdout),
        false => look_up_in_table(args, stdout),
    };
    match result {
        // The reader of the pipe has closed it: this is no error.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        Err(error) if error.is::<io::Error>() => Err(error.context("standard output")),
        done => done,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

fn look_up_in_table(args: &Args, mut out: impl Write) -> anyhow::Result<()> {
    let table = Table::open(&args.table, &TableOpenOptions::default())?;
    let Some(note) =
        TableNote::parse_note(table.note()).filter(|note| note.value_bytes_per_kmer() == table.value_bytes())
    else {
        bail!("{}: is a table, but not of k-mer counts: make one with `genuma kmers count`", args.table.display());
    };
    let threads = command_line::threads_or_all_cpus(args.threads);
    let mut sequences = open_sequences(args)?;
    writeln!(out, "sequence\tposition\tkmer\t{}", note.samples.join("\t"))?;

    let twentieth = || {
        CachedTable::cache_bytes_for_entries(table.len().div_ceil(TABLE_ENTRIES_PER_CACHE_ENTRY), table.value_bytes())
    };
    let cached = CachedTable::allocate_cache_for_table(&table, args.cache.unwrap_or_else(twentieth))?;
    let mut lookup =
        KmerLookup { cached, note: &note, threads, answers: LookupResults::new(), num_looked_up: 0, num_found: 0 };
    let (mut batch, mut positions, mut keys) = (ReadBatch::new(), Vec::new(), Vec::new());
    while sequences.fill_batch(&mut batch)? {
        for (number, sequence) in batch.iter().enumerate() {
            for (start, kmer) in kmers(sequence.seq, note.k) {
                positions.push((number, start));
                keys.push(kmer.canonical());
                if keys.len() == KMERS_PER_LOOKUP {
                    lookup.look_up_and_print(&batch, &mut positions, &mut keys, &mut out)?;
                }
            }
        }
        lookup.look_up_and_print(&batch, &mut positions, &mut keys, &mut out)?;
    }
    out.flush()?;
    let (num_looked_up, num_found) = (lookup.num_looked_up, lookup.num_found);
    let (remembered, room) = (lookup.cached.num_cache_hits(), lookup.cached.cache_capacity_entries());
    info!(
        "{num_looked_up} k-mers looked up, {num_found} found, {remembered} of them in the cache, which has room for {room}"
    );
    Ok(())
}

fn open_sequences(args: &Args) -> anyhow::Result<ReadStream> {
    let files: Vec<StreamLane> = args.sequences.iter().cloned().map(StreamLane::Single).collect();
    let lanes = leave_out_empty_stream_lanes(files)?;
    Ok(ReadStream::open(&lanes, StreamOptions::new(BatchLimits::with_bases_per_batch(BASES_PER_BATCH)))?)
}

/// Opens a dictionary of k-mer counts. Returns the dictionary and its note.
pub(crate) fn open_dictionary_with_note(path: &Path) -> anyhow::Result<(Dictionary, TableNote)> {
    let dictionary = Dictionary::open(path)?;
    let note = TableNote::parse_note(dictionary.note())
        .filter(|note| note.k == dictionary.k() && [0, note.samples.len()].contains(&dictionary.num_samples()))
        .with_context(|| format!("{}: is a dictionary, but not of k-mer counts", path.display()))?;
    Ok((dictionary, note))
}

fn look_up_in_dictionary(args: &Args, mut out: impl Write) -> anyhow::Result<()> {
    if args.cache.is_some() {
        let what = "--cache is for tables: a dictionary is in memory as a whole";
        return Err(UsageError(format!("{}: {what}", args.table.display())).into());
    }
    let (dictionary, note) = open_dictionary_with_note(&args.table)?;
    let mut sequences = open_sequences(args)?;
    let num_samples = dictionary.num_samples();
    let columns = if num_samples == 0 { PRESENCE_COLUMN.to_owned() } else { note.samples.join("\t") };
    writeln!(out, "sequence\tposition\tkmer\t{columns}")?;
    let mut stream = SequenceKmerLookup::for_dictionary(&dictionary);
    let (mut batch, mut num_looked_up, mut num_found) = (ReadBatch::new(), 0u64, 0u64);
    while sequences.fill_batch(&mut batch)? {
        for sequence in batch.iter() {
            stream.start_query_sequence();
            for (start, kmer) in kmers(sequence.seq, note.k) {
                let found = stream.find_kmer_number(start, kmer);
                write_kmer(&mut out, sequence.name, start, &sequence.seq[start..start + note.k as usize])?;
                match found {
                    None => (0..num_samples.max(1)).try_for_each(|_| out.write_all(b"\t0"))?,
                    Some(_) if num_samples == 0 => out.write_all(b"\t1")?,
                    Some(number) => (0..num_samples)
                        .try_for_each(|sample| write!(out, "\t{}", dictionary.get_count(number, sample)))?,
                }
                out.write_all(b"\n")?;
                (num_looked_up, num_found) = (num_looked_up + 1, num_found + u64::from(found.is_some()));
            }
        }
    }
    out.flush()?;
    let by_index = stream.num_index_lookups();
    info!("{num_looked_up} k-mers looked up, {num_found} found; {by_index} lookups needed the index");
    Ok(())
}

/// Writes the first columns of a k-mer's line: name of the sequence, position from 1, k-mer.
fn write_kmer(out: &mut impl Write, sequence: &[u8], start: usize, kmer: &[u8]) -> io::Result<()> {
    out.write_all(sequence)?;
    write!(out, "\t{}\t", start + 1)?;
    out.write_all(kmer)
}

/// Looks up batches of k-mers in a table through a cache.
struct KmerLookup<'a> {
    cached: CachedTable<'a>,
    note: &'a TableNote,
    threads: usize,
    answers: LookupResults,
    num_looked_up: u64,
    num_found: u64,
}

impl KmerLookup<'_> {
    /// Looks up the k-mers `keys` and prints a line for each. `places` has for each k-mer the number of its sequence in
    /// `batch` and its start. Both lists are empty afterwards.
    fn look_up_and_print(
        &mut self,
        batch: &ReadBatch,
        places: &mut Vec<(usize, usize)>,
        keys: &mut Vec<u64>,
        out: &mut impl Write,
    ) -> anyhow::Result<()> {
        self.cached.get_many(keys, self.threads, TABLE_READ_REQUESTS_PER_THREAD, &mut self.answers)?;
        let k = self.note.k as usize;
        for (&(number, start), answer) in places.iter().zip(self.answers.iter()) {
            let sequence = batch.read(number);
            write_kmer(out, sequence.name, start, &sequence.seq[start..start + k])?;
            match answer {
                Some(value) => decode_kmer_counts(value).try_for_each(|count| write!(out, "\t{count}"))?,
                None => self.note.samples.iter().try_for_each(|_| write!(out, "\t0"))?,
            }
            out.write_all(b"\n")?;
            self.num_found += u64::from(answer.is_some());
        }
        self.num_looked_up += keys.len() as u64;
        places.clear();
        keys.clear();
        Ok(())
    }
}
