//! `genuma kmers query`: prints the counts of the k-mers of sequences, for each k-mer or summarized for each sequence.

mod count_tally;
mod kmer_chunk;
mod kmer_file;
mod result_text;

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use genuma_kmers::encode::kmers;
use genuma_reads::{BatchLimits, ReadBatch, ReadStream, StreamLane, StreamOptions, leave_out_empty_stream_lanes};
use genuma_tables::note::name_samples_of_tables;
use genuma_work::quantity;

use crate::errors::UsageError;
use crate::{command_line, logging};
use kmer_chunk::{KmerChunk, SequenceKmer};
use kmer_file::{KmerFile, KmerLookup};
use result_text::{CountColumn, MatrixValue, ResultForm, ResultWriter};

pub(crate) use kmer_file::open_dictionary_with_note;

/// Maximum number of k-mers that are looked up together.
const MAX_KMERS_PER_CHUNK: usize = 1 << 18;
/// Maximum number of counts of the k-mers that are looked up together. It bounds the memory if there are many samples.
const MAX_COUNTS_PER_CHUNK: usize = 1 << 22;
/// Maximum number of bases of sequences that are read into memory at a time. A longer sequence is read completely.
const BASES_PER_BATCH: u64 = 1 << 24;
/// Extensions of tables and dictionaries.
const KMER_FILE_EXTENSIONS: [&str; 2] = ["gkt", "gkd"];

/// Look up k-mers in k-mer tables (.gkt) or dictionaries (.gkd) that `genuma kmers` made.
///
/// Prints a line for each k-mer of the sequences: name of the sequence, position of the k-mer (from 1), the k-mer on
/// the strand of the sequence, and a count for each sample. K-mers that are not in the table have counts of 0. K-mers
/// with other letters than A, C, G and T are skipped. With --summary or --matrix it prints lines for each sequence
/// instead. The entries of k-mers that were found are kept in a cache in memory (--cache).
/// A dictionary (`genuma kmers compact`) is read into memory. The output does not depend on the number of threads.
#[derive(Debug, clap::Args)]
#[command(
    about = "Look up k-mers in k-mer tables (.gkt) or dictionaries (.gkd) that `genuma kmers` made",
    after_help = "Examples:\n  \
    genuma kmers query S.gkt genes.fa > counts.tsv\n  \
    genuma kmers query --summary S.gkd genes.fa > genes.tsv\n  \
    genuma kmers query --matrix share A.gkt B.gkt C.gkd genes.fa > shares.tsv\n  \
    echo -e '>x\\nACGTTGCAACGTTGCAACGTTGCAACGTTGCAC' | genuma kmers query S.gkt -"
)]
pub(crate) struct Args {
    /// K-mer table (.gkt) or dictionary (.gkd) that `genuma kmers` made
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// Sequences: FASTA or FASTQ, plain or compressed; `-` is standard input. Files that end in .gkt or .gkd are further
    /// tables and dictionaries with the same k: their samples become further columns
    #[arg(value_name = "SEQUENCES", required = true, num_args = 1..)]
    sequences: Vec<PathBuf>,
    /// Print a line for each sequence and sample: length of the sequence, number of its k-mers, number and share of
    /// those that the sample has, and median count. Absent k-mers have a count of 0. A sequence without k-mers has NA
    /// and a reason: shorter_than_k, or ambiguous_bases (each k-mer has a letter other than A, C, G and T)
    #[arg(long, conflicts_with = "matrix")]
    summary: bool,
    /// Print a line for each sequence with a column for each sample; NA for a sequence without k-mers
    #[arg(long, value_name = "VALUE")]
    matrix: Option<MatrixValue>,
    /// Threads that look up k-mers [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser())]
    threads: Option<u16>,
    /// Memory of the cache, which keeps the entries of k-mers that were found in tables, such as 500M; several tables
    /// share it; 0 disables it [default: enough for 5% of each table's k-mers]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes)]
    cache: Option<u64>,
}

/// Looks up the k-mers of the sequences, and prints their counts.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let stdout = BufWriter::with_capacity(1 << 18, logging::lock_stdout_for_results()?);
    match look_up_sequences(args, stdout) {
        // The reader of the pipe has closed it: this is no error.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        Err(error) if error.is::<io::Error>() => Err(error.context("standard output")),
        done => done,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

fn is_kmer_file_name(path: &Path) -> bool {
    path.extension().is_some_and(|extension| KMER_FILE_EXTENSIONS.iter().any(|known| extension == *known))
}

fn look_up_sequences(args: &Args, out: impl Write) -> anyhow::Result<()> {
    let (further_files, sequences): (Vec<&PathBuf>, Vec<&PathBuf>) =
        args.sequences.iter().partition(|path| is_kmer_file_name(path));
    if sequences.is_empty() {
        let last = args.sequences.last().unwrap_or(&args.table).display();
        return Err(UsageError(format!("no sequences to look up: give FASTA or FASTQ after {last}")).into());
    }
    let form = match args.matrix {
        Some(value) => ResultForm::Matrix(value),
        None if args.summary => ResultForm::Summary,
        None => ResultForm::Kmers,
    };
    let files = open_kmer_files(args, &further_files, form)?;
    let columns = name_columns(&files)?;
    let (threads, num_tables) =
        (command_line::threads_or_all_cpus(args.threads), files.iter().filter(|file| file.is_table()).count() as u64);
    let cache_bytes = args.cache.map(|bytes| bytes / num_tables.max(1));
    let lookups = files.iter().map(|file| file.start_lookups(threads, cache_bytes)).collect::<Result<Vec<_>, _>>()?;
    let mut sequences = open_sequences(&sequences)?;
    let k = files[0].k;
    let max_kmers = (MAX_COUNTS_PER_CHUNK / columns.len()).clamp(1, MAX_KMERS_PER_CHUNK);
    let writer = ResultWriter::start(out, form, k, threads, columns)?;
    let mut query = SequenceQuery { lookups, writer, chunk: KmerChunk::default() };
    let mut batch = ReadBatch::new();
    while sequences.fill_batch(&mut batch)? {
        for (number, sequence) in batch.iter().enumerate() {
            for (start, kmer) in kmers(sequence.seq, k) {
                if query.chunk.kmers.len() == max_kmers {
                    query.chunk.end_part(number, false);
                    query.look_up_and_write_chunk(&batch)?;
                }
                query.chunk.kmers.push(SequenceKmer { sequence: number, start, kmer });
            }
            query.chunk.end_part(number, true);
        }
        query.look_up_and_write_chunk(&batch)?;
    }
    query.writer.out.flush()?;
    query.lookups.iter().for_each(|lookup| lookup.log_statistics(files.len() > 1));
    Ok(())
}

/// Opens the tables and dictionaries, which must have the same k.
fn open_kmer_files(args: &Args, further_files: &[&PathBuf], form: ResultForm) -> anyhow::Result<Vec<KmerFile>> {
    let first = KmerFile::open(&args.table)?;
    let mut files = vec![first];
    for path in further_files {
        let file = KmerFile::open(path)?;
        if file.k != files[0].k {
            let (path, k, other, first) = (path.display(), file.k, args.table.display(), files[0].k);
            return Err(UsageError(format!(
                "{path}: has {k}-mers, {other} has {first}-mers: look them up one after the other"
            ))
            .into());
        }
        files.push(file);
    }
    if args.cache.is_some() && !files.iter().any(KmerFile::is_table) {
        let what = "--cache is for tables: a dictionary is in memory as a whole";
        return Err(UsageError(format!("{}: {what}", args.table.display())).into());
    }
    if form == ResultForm::Matrix(MatrixValue::Median)
        && let Some(file) = files.iter().find(|file| !file.has_counts())
    {
        let path = file.path.display();
        return Err(UsageError(format!("{path}: has no counts and so no median: give --matrix share")).into());
    }
    Ok(files)
}

/// Returns the count columns of all files.
fn name_columns(files: &[KmerFile]) -> Result<Vec<CountColumn>, UsageError> {
    let given: Vec<(&Path, &[String])> = files.iter().map(|file| (file.path.as_path(), &file.columns[..])).collect();
    let names = name_samples_of_tables(&given);
    if let Some((_, name)) = names.iter().enumerate().find(|(column, name)| names[..*column].contains(name)) {
        return Err(UsageError(format!(
            "two columns would be named {name}: give each table once, and rename files of the same name"
        )));
    }
    let has_counts = files.iter().flat_map(|file| file.columns.iter().map(move |_| file.has_counts()));
    Ok(names.into_iter().zip(has_counts).map(|(name, has_counts)| CountColumn { name, has_counts }).collect())
}

fn open_sequences(paths: &[&PathBuf]) -> anyhow::Result<ReadStream> {
    let files: Vec<StreamLane> = paths.iter().map(|path| StreamLane::Single((*path).clone())).collect();
    let lanes = leave_out_empty_stream_lanes(files)?;
    Ok(ReadStream::open(&lanes, StreamOptions::new(BatchLimits::with_bases_per_batch(BASES_PER_BATCH)))?)
}

/// Looks up the k-mers of sequences in all files, and writes the results.
struct SequenceQuery<'f, W> {
    lookups: Vec<KmerLookup<'f>>,
    writer: ResultWriter<W>,
    chunk: KmerChunk,
}

impl<W: Write> SequenceQuery<'_, W> {
    /// Looks up the k-mers of the chunk and writes the results. `batch` has the sequences of the chunk. The chunk is
    /// empty afterwards.
    fn look_up_and_write_chunk(&mut self, batch: &ReadBatch) -> anyhow::Result<()> {
        for lookup in &mut self.lookups {
            lookup.look_up(&self.chunk.kmers)?;
        }
        self.writer.write_chunk(batch, &self.chunk, &self.lookups)?;
        self.chunk.clear();
        Ok(())
    }
}
