//! Writes the results of a k-mer count: table or text, k-mer spectrum, and JSON.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use genuma_flash::{TableSpec, TableWriter};
use genuma_kmers::{CountStats, Devices, MAX_SAMPLES, NodeThreadsAndMemory, SortableSampleKmers};
use genuma_tables::Error;
use genuma_tables::note::TableNote;
use genuma_tables::output::{KmerOutputFile, append_kmer_line};
use genuma_work::cost::{UnitCost, measure_process_cost};
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use serde_json::{Value, json};

use super::NamedFiles;
use crate::errors::UsageError;
use genuma_work::{folder, signals};

use crate::multiqc::KmerCountStatistics;
use crate::{command_line, json_file};

/// Number of k-mers in the written file, and size of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrittenKmerFileSize {
    /// Number of k-mers.
    pub(crate) kmers: u64,
    /// Size of the file (bytes).
    pub(crate) bytes: u64,
}

/// Returns the output to the file `path`. The extension determines the format.
///
/// # Errors
/// The extension is unknown.
pub(crate) fn choose_format_by_extension(path: &Path) -> Result<KmerOutputFile, UsageError> {
    KmerOutputFile::from_extension(path)
        .ok_or_else(|| UsageError(format!("-o {}: give a name that ends in .gkt or .tsv", path.display())))
}

/// Writes all k-mers in ascending order to a temporary file and adds the file to `set`. If the file is a table, its
/// writer and the k-mers use at most `memory` bytes of memory together.
pub(crate) fn write_kmers(
    target: &KmerOutputFile,
    sorted: &SortableSampleKmers,
    note: &TableNote,
    memory: u64,
    set: &mut AtomicFileSet,
) -> anyhow::Result<WrittenKmerFileSize> {
    match target {
        KmerOutputFile::Table(path) => write_table(path, sorted, note, memory, set),
        KmerOutputFile::Text(path) => write_text(path, sorted, note, set),
    }
}

/// Sets what an interruption of the program does: it keeps the results of finished units in the work folder `folder`,
/// if one is given, and removes all other temporary files.
pub(crate) fn keep_finished_units_on_interruption(folder: Option<PathBuf>) {
    signals::set_termination_handler(Some(Box::new(move || {
        folder
            .filter(|folder| folder::keep_only_resumable_files(folder))
            .map(|folder| folder::format_resume_hint(&folder))
    })));
}

/// Converts an error of the tables crate: names of samples that are too long for the note of a table are a
/// [`UsageError`].
pub(crate) fn to_usage_error_if_note_too_long(error: Error) -> anyhow::Error {
    match error {
        Error::NoteTooLong => UsageError(error.to_string()).into(),
        error => error.into(),
    }
}

fn write_table(
    path: &Path,
    sorted: &SortableSampleKmers,
    note: &TableNote,
    memory: u64,
    set: &mut AtomicFileSet,
) -> anyhow::Result<WrittenKmerFileSize> {
    let entries = sorted.num_kept_kmers();
    let spec = note.table_spec(entries).map_err(to_usage_error_if_note_too_long)?;
    let spec = TableSpec { memory_bytes: memory / 2, ..spec };
    sorted.spill_to_shrink_memory_to(memory.saturating_sub(spec.max_writing_memory_bytes()))?;
    let mut writer = TableWriter::create(path, spec)?;
    sorted.for_each_kmer(|kmer, counts| {
        let weight = counts.iter().map(|&count| u64::from(count)).sum();
        writer.push_entry(kmer, note.encode_kmer_counts(counts), weight).map_err(anyhow::Error::from)
    })?;
    let (written, file) = writer.finish_without_publishing()?;
    set.add_file(file);
    Ok(WrittenKmerFileSize { kmers: entries, bytes: written.file_bytes })
}

fn write_text(
    path: &Path,
    sorted: &SortableSampleKmers,
    note: &TableNote,
    set: &mut AtomicFileSet,
) -> anyhow::Result<WrittenKmerFileSize> {
    let mut file = AtomicFile::create(path)?;
    let mut bytes = 0;
    let mut line = format!("kmer\t{}\n", note.samples.join("\t")).into_bytes();
    let mut write_line = |line: &mut Vec<u8>| {
        bytes += line.len() as u64;
        let put = file.write_all(line);
        line.clear();
        put.map_err(anyhow::Error::from)
    };
    write_line(&mut line)?;
    sorted.for_each_kmer(|kmer, counts| {
        append_kmer_line(&mut line, kmer, note.k, &counts[..note.samples.len()]);
        write_line(&mut line)
    })?;
    set.add_file(file.flush_to_partial_file()?);
    Ok(WrittenKmerFileSize { kmers: sorted.num_kept_kmers(), bytes })
}

/// Results of `genuma kmers count`, for the files of the k-mer spectrum, JSON and MultiQC.
#[derive(Debug)]
pub(crate) struct CountOutcome<'a> {
    pub(crate) note: TableNote,
    pub(crate) stats: CountStats<MAX_SAMPLES>,
    pub(crate) spectra: &'a [Vec<u64>],
    pub(crate) shares: &'a [NodeThreadsAndMemory],
    pub(crate) devices: &'a Devices,
    pub(crate) written: WrittenKmerFileSize,
    pub(crate) costs: Vec<UnitCost>,
}

impl CountOutcome<'_> {
    /// Adds a file with the k-mer spectrum to `set`: one row for each count from 1 to the largest, with the number of
    /// distinct k-mers of each sample. The row of count 1023 has the k-mers with higher counts too. With several
    /// samples the first line names the columns.
    pub(crate) fn add_kmer_spectrum_file(&self, path: &Path, set: &mut AtomicFileSet) -> anyhow::Result<()> {
        let samples = &self.note.samples;
        let spectra = &self.spectra[..samples.len()];
        let last = spectra.iter().filter_map(|s| s.iter().rposition(|&kmers| kmers > 0)).max().unwrap_or(0);
        let mut file = AtomicFile::create(path)?;
        if samples.len() > 1 {
            writeln!(file, "count\t{}", samples.join("\t"))?;
        }
        for count in 1..=last {
            let kmers: Vec<String> = spectra.iter().map(|spectrum| spectrum[count].to_string()).collect();
            writeln!(file, "{count}\t{}", kmers.join("\t"))?;
        }
        set.add_file(file.flush_to_partial_file()?);
        Ok(())
    }

    /// Returns the statistics of each sample for MultiQC.
    pub(crate) fn to_multiqc_statistics_by_sample(&self) -> impl Iterator<Item = KmerCountStatistics<'_>> {
        let named = self.note.samples.iter().zip(&self.stats.bases);
        named.zip(self.spectra).map(|((sample, bases), spectrum)| KmerCountStatistics {
            sample,
            bases: *bases,
            spectrum,
        })
    }

    /// Adds statistics, times and sizes as a JSON file to `set`.
    pub(crate) fn add_json_file_to_set(
        &self,
        path: &Path,
        samples: &[NamedFiles],
        aligned: Value,
        wall: Duration,
        set: &mut AtomicFileSet,
    ) -> anyhow::Result<()> {
        let CountOutcome { note, stats, shares, devices, written, costs, .. } = self;
        let samples: Vec<_> = (samples.iter().zip(stats.bases.iter().zip(&stats.kmers)))
            .map(|((name, files), (bases, kmers))| {
                json!({ "name": name, "files": files, "bases": bases, "kmers": kmers })
            })
            .collect();
        let node = |share: &NodeThreadsAndMemory| {
            let NodeThreadsAndMemory { node, threads, local_bytes: here, remote_bytes: elsewhere } = share;
            json!({ "node": node, "threads": threads, "bytes_here": here, "bytes_elsewhere": elsewhere })
        };
        let nodes: Vec<_> = shares.iter().map(node).collect();
        let cost = measure_process_cost();
        let value = json!({
            "command": command_line::quoted_command_line(),
            "version": env!("CARGO_PKG_VERSION"),
            "k": note.k,
            "min_count": note.min_count,
            "min_base_quality": note.min_base_quality,
            "samples": samples,
            "aligned": aligned,
            "distinct": stats.distinct,
            "written": { "kmers": written.kmers, "bytes": written.bytes },
            "bins": stats.bins,
            "extra_passes": stats.extra_passes,
            "packed_bytes": stats.super_kmer_bytes,
            "spilled_bytes": stats.spilled_bytes,
            "nodes": nodes,
            "devices": devices.names(),
            "bins_on_devices": devices.bin_statistics()[1],
            "bins_devices_lost": devices.bin_statistics()[2],
            "wall_s": wall.as_secs_f64(),
            "cpu_s": cost.cpu_s,
            "peak_bytes": cost.peak_bytes,
            "steps": costs,
        });
        json_file::add_json_file_with_schema_number(
            path,
            json_file::schema_numbers::KMER_COUNT_SCHEMA_NUMBER,
            &value,
            set,
        )
    }
}
