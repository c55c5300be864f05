//! Writes merged k-mer ranges to a table or a text file. Several threads write, and the ranges keep their order.

use std::io::Write;
use std::path::{Path, PathBuf};

use genuma_flash::{KeyRangeWriter, ParallelTableWriter, TableSpec, TableWriter};
use genuma_reads::dna;
use genuma_work::ordered_section::{CloseOnPanicGuard, OrderedSection};
use genuma_work::publish::{AtomicFile, PartialFile};

use crate::error::Error;
use crate::merge::EntrySlice;
use crate::note::TableNote;

/// File and format of k-mers with their counts.
#[derive(Debug, Clone)]
pub enum KmerOutputFile {
    /// A k-mer table in this file (`.gkt`).
    Table(PathBuf),
    /// Text in this file (`.tsv`): a k-mer a line, with its counts, separated by tabs.
    Text(PathBuf),
}

impl KmerOutputFile {
    /// Returns the output to the file `path`, whose extension determines the format; `None` if the extension is unknown.
    pub fn from_extension(path: &Path) -> Option<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gkt") => Some(KmerOutputFile::Table(path.to_path_buf())),
            Some("tsv") => Some(KmerOutputFile::Text(path.to_path_buf())),
            _ => None,
        }
    }
}

/// A complete temporary file that is not published yet, and its number of k-mers.
#[derive(Debug)]
pub struct UnpublishedFile {
    /// The file, which gets its name when it is published.
    pub file: PartialFile,
    /// Number of k-mers in the file.
    pub kmers: u64,
}

/// Appends the line of a k-mer of length `k` in a text file: its bases and its counts, separated by tabs.
pub fn append_kmer_line(lines: &mut Vec<u8>, kmer: u64, k: u32, counts: &[u32]) {
    lines.extend((0..k).rev().map(|base| dna::decode_base((kmer >> (2 * base)) as u8 & 3)));
    // Writing to memory cannot fail.
    counts.iter().for_each(|count| drop(write!(lines, "\t{count}")));
    lines.push(b'\n');
}

/// Output to a table or a text file that several threads write.
pub(crate) enum SharedOutput<'o, 'w> {
    Table(&'o ParallelTableWriter<'w>),
    Text(&'o SharedTextOutput),
}

/// Output to a text file that several threads write.
pub(crate) struct SharedTextOutput {
    ordered_lines: OrderedSection<OrderedTextFile>,
    k: u32,
}

/// The text file. Threads access it one after another, in the order of the k-mer ranges.
pub(crate) struct OrderedTextFile {
    file: AtomicFile,
    kmers: u64,
    fault: Option<std::io::Error>,
}

/// The part of the output that belongs to one thread.
pub(crate) enum ThreadWriter<'o, 'w> {
    Table(Box<KeyRangeWriter<'o, 'w>>),
    Text { text: &'o SharedTextOutput, _watch: CloseOnPanicGuard<'o, OrderedTextFile>, lines: Vec<u8> },
}

/// Creates the output file, a table with the specification `spec` or text, and calls `work`, which runs the threads
/// that write it. Returns the complete file.
///
/// # Errors
/// The file cannot be created or written, or memory cannot be allocated; or `work` failed.
pub(crate) fn create_output_and_run_writers(
    target: &KmerOutputFile,
    note: &TableNote,
    spec: TableSpec,
    work: impl FnOnce(SharedOutput<'_, '_>) -> Result<(), Error>,
) -> Result<UnpublishedFile, Error> {
    match target {
        KmerOutputFile::Table(path) => {
            let mut writer = TableWriter::create(path, spec)?;
            writer.write_in_parallel(|together| work(SharedOutput::Table(together)))??;
            let (written, file) = writer.finish_without_publishing()?;
            Ok(UnpublishedFile { file, kmers: written.entries })
        }
        KmerOutputFile::Text(path) => {
            let file = create_text_file(path, note)?;
            let text = SharedTextOutput {
                ordered_lines: OrderedSection::new(OrderedTextFile { file, kmers: 0, fault: None }),
                k: note.k,
            };
            let done = work(SharedOutput::Text(&text));
            let OrderedTextFile { file, kmers: entries, fault } = text.ordered_lines.into_inner();
            match fault {
                // The error names the file.
                Some(fault) => Err(fault.into()),
                None => {
                    done?;
                    Ok(UnpublishedFile { file: file.flush_to_partial_file()?, kmers: entries })
                }
            }
        }
    }
}

fn create_text_file(path: &Path, note: &TableNote) -> Result<AtomicFile, Error> {
    let mut file = AtomicFile::create(path)?;
    writeln!(file, "kmer\t{}", note.samples.join("\t"))?;
    Ok(file)
}

impl<'o, 'w> SharedOutput<'o, 'w> {
    /// Creates the writer of one thread.
    ///
    /// # Errors
    /// Memory cannot be allocated.
    pub(crate) fn new_thread_writer(&self) -> Result<ThreadWriter<'o, 'w>, Error> {
        Ok(match self {
            SharedOutput::Table(table) => ThreadWriter::Table(Box::new(table.new_key_range_writer()?)),
            SharedOutput::Text(text) => {
                ThreadWriter::Text { text, _watch: text.ordered_lines.close_on_panic(), lines: Vec::new() }
            }
        })
    }
}

impl ThreadWriter<'_, '_> {
    /// Writes the k-mers of range `number`, with counts of `samples` samples, after all earlier ranges. `runs` are
    /// consecutive sorted lists. Returns false if writing has stopped.
    pub(crate) fn write_range(&mut self, number: u64, runs: &[EntrySlice<'_>], samples: usize) -> bool {
        match self {
            ThreadWriter::Table(hand) => {
                let count_of_bytes = |count: &[u8; 4]| u64::from(u32::from_ne_bytes(*count));
                let weight = |value: &[u8]| value.as_chunks::<4>().0.iter().map(count_of_bytes).sum();
                let runs: Vec<(&[u64], &[u8])> =
                    runs.iter().map(|&EntrySlice { keys, counts }| (keys, bytemuck::cast_slice(counts))).collect();
                hand.add_key_range(number, &runs, weight)
            }
            ThreadWriter::Text { text, lines, .. } => {
                lines.clear();
                for run in runs {
                    for (kmer, counts) in run.keys.iter().zip(run.counts.chunks_exact(samples)) {
                        append_kmer_line(lines, *kmer, text.k, counts);
                    }
                }
                let entries: usize = runs.iter().map(|run| run.keys.len()).sum();
                let written = text.ordered_lines.run_in_turn(number, |file| {
                    file.kmers += entries as u64;
                    file.fault = file.file.write_all(lines).err();
                    file.fault.is_none()
                });
                if written == Some(false) {
                    text.ordered_lines.close();
                }
                written == Some(true)
            }
        }
    }

    /// Stops the output after an error in range `number`: no thread writes this or a later range. Returns false if an
    /// earlier range has stopped the output already.
    pub(crate) fn stop_output_after_failed_range(&mut self, number: u64) -> bool {
        match self {
            ThreadWriter::Table(hand) => hand.stop_at_key_range(number),
            ThreadWriter::Text { text, .. } => text.ordered_lines.run_in_turn_and_close(number, |_| ()).is_some(),
        }
    }

    /// Completes the output of this thread. No more ranges can be written with it.
    pub(crate) fn finish_thread_output(self) {
        if let ThreadWriter::Table(hand) = self {
            hand.merge_filter_and_hot_entries();
        }
    }
}
