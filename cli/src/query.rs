//! `genuma query`: how often samples have the k-mers of sequences.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use anyhow::bail;
use genuma_flash::{Answers, Cached, Options, Table};
use genuma_kmers::encode::kmers;
use genuma_reads::{Cut, ReadBatch, ReadLane, ReadStream, StreamOptions};
use tracing::info;

use crate::note::{Note, counts};
use crate::{command, sizes, voice};

/// K-mers looked up at once.
const AT_ONCE: usize = 1 << 16;
/// Reads under way in each thread.
const DEPTH: usize = 64;
/// Bases of sequences in memory at once, unless one alone has more.
const BASES: u64 = 1 << 24;
/// One in so many entries has room in the cache unless asked otherwise (a twentieth, as in cadenelli2019, section 5.4.4).
const CACHED_ONE_IN: u64 = 20;

/// Look up k-mers in a table that `genuma count` made.
///
/// Prints a line for every k-mer of the sequences: the sequence's name, where the k-mer starts in it (from 1), the k-mer as
/// it stands there, and a count for each sample. K-mers that are not in the table have counts of 0. Windows with other
/// letters than A, C, G and T are left out. What was found stays in memory, up to --cache, for when it is asked for again.
#[derive(Debug, clap::Args)]
#[command(
    about = "Look up k-mers in a table that `genuma count` made",
    after_help = "Examples:\n  \
    genuma query S.gkt genes.fa > counts.tsv\n  \
    echo -e '>x\\nACGTTGCAACGTTGCAACGTTGCAACGTTGCAC' | genuma query S.gkt -"
)]
pub(crate) struct Args {
    /// Table that `genuma count -o x.gkt` made
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// Sequences: FASTA or FASTQ, plain, gzip'd or BGZF; `-` is stdin
    #[arg(value_name = "SEQUENCES", required = true, num_args = 1..)]
    sequences: Vec<PathBuf>,
    /// Threads that look up [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads())]
    threads: Option<u16>,
    /// Memory for k-mers that were found, such as 500M; 0 keeps none [default: room for a twentieth of the table's]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse)]
    cache: Option<u64>,
}

/// Looks up and prints.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let stdout = voice::results()?;
    match query(args, BufWriter::with_capacity(1 << 18, stdout)) {
        // Who reads it has seen enough.
        Err(error) if is_broken_pipe(&error) => Ok(()),
        Err(error) if error.is::<io::Error>() => Err(error.context("standard output")),
        done => done,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

fn query(args: &Args, mut out: impl Write) -> anyhow::Result<()> {
    let table = Table::open(&args.table, &Options::default())?;
    let Some(note) = Note::read(table.note()).filter(|note| note.value_bytes() == table.value_bytes()) else {
        bail!("{}: is a table, but not of k-mer counts: make one with `genuma count`", args.table.display());
    };
    let threads = command::all_or(args.threads);
    let lanes: Vec<ReadLane> = args.sequences.iter().cloned().map(ReadLane::Single).collect();
    let mut sequences = ReadStream::open(&lanes, StreamOptions::new(Cut::at_bases(BASES)))?;
    writeln!(out, "sequence\tposition\tkmer\t{}", note.samples.join("\t"))?;

    let twentieth = || Cached::memory(table.len().div_ceil(CACHED_ONE_IN), table.value_bytes());
    let cached = Cached::new(&table, args.cache.unwrap_or_else(twentieth))?;
    let mut lookup = Lookup { cached, note: &note, threads, answers: Answers::new(), asked: 0, found: 0 };
    let (mut batch, mut places, mut keys) = (ReadBatch::new(), Vec::new(), Vec::new());
    while sequences.fill(&mut batch)? {
        for (number, sequence) in batch.iter().enumerate() {
            for (start, kmer) in kmers(sequence.seq, note.k) {
                places.push((number, start));
                keys.push(kmer.canonical());
                if keys.len() == AT_ONCE {
                    lookup.print(&batch, &mut places, &mut keys, &mut out)?;
                }
            }
        }
        lookup.print(&batch, &mut places, &mut keys, &mut out)?;
    }
    out.flush()?;
    let (asked, found) = (lookup.asked, lookup.found);
    let (remembered, room) = (lookup.cached.remembered(), lookup.cached.room());
    info!(
        "{asked} k-mers looked up, {found} found, {remembered} of them in the cache, which has room for {room}"
    );
    Ok(())
}

/// Looks many k-mers up at once.
struct Lookup<'a> {
    cached: Cached<'a>,
    note: &'a Note,
    threads: usize,
    answers: Answers,
    asked: u64,
    found: u64,
}

impl Lookup<'_> {
    /// Prints a line for each key, which is at a place (number of the sequence in its batch, start), and forgets them.
    fn print(
        &mut self,
        batch: &ReadBatch,
        places: &mut Vec<(usize, usize)>,
        keys: &mut Vec<u64>,
        out: &mut impl Write,
    ) -> anyhow::Result<()> {
        self.cached.get_many(keys, self.threads, DEPTH, &mut self.answers)?;
        let k = self.note.k as usize;
        for (&(number, start), answer) in places.iter().zip(self.answers.iter()) {
            let sequence = batch.read(number);
            out.write_all(sequence.name)?;
            write!(out, "\t{}\t", start + 1)?;
            out.write_all(&sequence.seq[start..start + k])?;
            match answer {
                Some(value) => counts(value).try_for_each(|count| write!(out, "\t{count}"))?,
                None => self.note.samples.iter().try_for_each(|_| write!(out, "\t0"))?,
            }
            out.write_all(b"\n")?;
            self.found += u64::from(answer.is_some());
        }
        self.asked += keys.len() as u64;
        places.clear();
        keys.clear();
        Ok(())
    }
}
