//! Writes the results of lookups: a line for each k-mer, a summary of each sequence, or a matrix.

use std::io::{self, Write};

use clap::ValueEnum;
use genuma_reads::{ReadBatch, ReadRef};
use genuma_work::parallel;

use super::count_tally::CountTally;
use super::kmer_chunk::KmerChunk;
use super::kmer_file::{KMERS_PER_TASK, KmerLookup};

/// Text for a value that a sequence without k-mers does not have.
const MISSING_VALUE: &str = "NA";
/// Text of the column `reason` for a sequence with k-mers.
const NO_REASON: &str = ".";

/// Value of a cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum MatrixValue {
    /// Share of the k-mers of the sequence that the sample has
    Share,
    /// Median count of the k-mers of the sequence; absent k-mers have a count of 0
    Median,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultForm {
    /// A line for each k-mer with its counts.
    Kmers,
    /// A line for each sequence and sample.
    Summary,
    /// A line for each sequence, with a column for each sample.
    Matrix(MatrixValue),
}

/// A column of counts.
#[derive(Debug, Clone)]
pub(super) struct CountColumn {
    /// Name of the sample.
    pub(super) name: String,
    /// Whether the column has counts. Otherwise 1 stands for a k-mer that is present.
    pub(super) has_counts: bool,
}

/// Writes the results of lookups to `out`.
pub(super) struct ResultWriter<W> {
    pub(super) out: W,
    form: ResultForm,
    k: u32,
    threads: usize,
    columns: Vec<CountColumn>,
    /// For each column the counts of the current sequence. Unused if there is a line for each k-mer.
    tallies: Vec<CountTally>,
}

impl<W: Write> ResultWriter<W> {
    /// Creates a writer and writes the header line.
    ///
    /// # Errors
    /// The error of the output.
    pub(super) fn start(
        mut out: W,
        form: ResultForm,
        k: u32,
        threads: usize,
        columns: Vec<CountColumn>,
    ) -> io::Result<ResultWriter<W>> {
        let first = match form {
            ResultForm::Kmers => "sequence\tposition\tkmer",
            ResultForm::Summary => "sequence\tlength\tkmers\tsample\tfound\tshare\tmedian\treason",
            ResultForm::Matrix(_) => "sequence",
        };
        out.write_all(first.as_bytes())?;
        if form != ResultForm::Summary {
            columns.iter().try_for_each(|column| write!(out, "\t{}", column.name))?;
        }
        out.write_all(b"\n")?;
        let tallies = columns.iter().map(|_| CountTally::default()).collect();
        Ok(ResultWriter { out, form, k, threads, columns, tallies })
    }

    /// Writes the results of the k-mers of a chunk, which were looked up in all files. `batch` has their sequences.
    ///
    /// # Errors
    /// The error of the output.
    pub(super) fn write_chunk(
        &mut self,
        batch: &ReadBatch,
        chunk: &KmerChunk,
        lookups: &[KmerLookup<'_>],
    ) -> io::Result<()> {
        if self.form == ResultForm::Kmers {
            return self.write_kmer_lines(batch, chunk, lookups);
        }
        for part in &chunk.parts {
            let mut tallies = self.tallies.iter_mut();
            for lookup in lookups {
                for (column, tally) in tallies.by_ref().take(lookup.file.columns.len()).enumerate() {
                    part.kmers.clone().for_each(|kmer| tally.push(lookup.counts_of_kmer(kmer)[column]));
                }
            }
            if part.is_last {
                self.write_sequence(batch.read(part.sequence))?;
                self.tallies.iter_mut().for_each(CountTally::clear);
            }
        }
        Ok(())
    }

    fn write_kmer_lines(&mut self, batch: &ReadBatch, chunk: &KmerChunk, lookups: &[KmerLookup<'_>]) -> io::Result<()> {
        let (kmers, k) = (&chunk.kmers, self.k as usize);
        let format_task = |(): &mut (), task: usize| -> io::Result<Vec<u8>> {
            let mut text = Vec::new();
            for (number, kmer) in kmers.iter().enumerate().skip(task * KMERS_PER_TASK).take(KMERS_PER_TASK) {
                let sequence = batch.read(kmer.sequence);
                text.extend_from_slice(sequence.name);
                write!(text, "\t{}\t", kmer.start + 1)?;
                text.extend_from_slice(&sequence.seq[kmer.start..kmer.start + k]);
                for lookup in lookups {
                    lookup.counts_of_kmer(number).iter().try_for_each(|count| write!(text, "\t{count}"))?;
                }
                text.push(b'\n');
            }
            Ok(text)
        };
        let num_tasks = kmers.len().div_ceil(KMERS_PER_TASK);
        let texts = parallel::try_map_in_order(num_tasks, self.threads, || (), format_task)?;
        texts.iter().try_for_each(|text| self.out.write_all(text))
    }

    /// Writes the lines of a sequence, all of whose k-mers are in the tallies.
    fn write_sequence(&mut self, sequence: ReadRef<'_>) -> io::Result<()> {
        let out = &mut self.out;
        let format_value = |value: Option<String>| value.unwrap_or_else(|| MISSING_VALUE.to_owned());
        let share = |tally: &CountTally| format_value(tally.share_found().map(|share| format!("{share:.6}")));
        let median = |tally: &mut CountTally, column: &CountColumn| {
            format_value(tally.median().filter(|_| column.has_counts).map(|median| median.to_string()))
        };
        if let ResultForm::Matrix(value) = self.form {
            out.write_all(sequence.name)?;
            for (tally, column) in self.tallies.iter_mut().zip(&self.columns) {
                let cell = match value {
                    MatrixValue::Share => share(tally),
                    MatrixValue::Median => median(tally, column),
                };
                write!(out, "\t{cell}")?;
            }
            return out.write_all(b"\n");
        }
        let length = sequence.seq.len();
        for (tally, column) in self.tallies.iter_mut().zip(&self.columns) {
            let reason = match tally.num_kmers() {
                0 if length < self.k as usize => "shorter_than_k",
                0 => "ambiguous_bases",
                _ => NO_REASON,
            };
            let (num_kmers, num_found) = (tally.num_kmers(), tally.num_found());
            out.write_all(sequence.name)?;
            write!(out, "\t{length}\t{num_kmers}\t{}\t{num_found}", column.name)?;
            writeln!(out, "\t{}\t{}\t{reason}", share(tally), median(tally, column))?;
        }
        Ok(())
    }
}
