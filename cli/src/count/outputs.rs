//! What a count writes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use genuma_flash::{MAX_NOTE, Spec, TableWriter};
use genuma_kmers::{CountStats, Devices, NodeShare, Sorted};
use genuma_reads::dna;
use genuma_work::clock::{UnitCost, process_cost};
use genuma_work::publish::{AtomicFile, Set};
use serde_json::{Value, json};

use super::Named;
use crate::failure::Usage;
use crate::note::Note;
use genuma_work::{folder, signals};

use crate::multiqc::Counted;
use crate::{command, json};

/// One in so many k-mers is kept in memory by whoever looks them up: those that reads have most often, ...
const HOT_ONE_IN: u64 = 1024;
/// ... up to so many.
const MOST_HOT: u64 = 1 << 16;

/// Where the k-mers go.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// A table on flash.
    Table(PathBuf),
    /// Text.
    Text(PathBuf),
}

/// What was written there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    /// K-mers.
    pub(crate) entries: u64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
}

impl Target {
    /// By the end of the name.
    pub(crate) fn of(path: &Path) -> Result<Self, Usage> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gkt") => Ok(Target::Table(path.to_path_buf())),
            Some("tsv") => Ok(Target::Text(path.to_path_buf())),
            _ => Err(Usage(format!("-o {}: give a name that ends in .gkt or .tsv", path.display()))),
        }
    }

    /// Writes all k-mers in order to a file of `set`, holding at most `memory` bytes.
    pub(crate) fn write<const S: usize>(
        &self,
        sorted: &Sorted<S>,
        note: &Note,
        memory: u64,
        set: &mut Set,
    ) -> anyhow::Result<Written> {
        match self {
            Target::Table(path) => table(path, sorted, note, memory, set),
            Target::Text(path) => text(path, sorted, note, set),
        }
    }
}

/// Sees that an interrupted run leaves in the work folder, if any, what is finished, and nothing else.
pub(crate) fn heed_interruption(folder: Option<PathBuf>) {
    signals::on_interruption(Some(Box::new(move || {
        folder.filter(|folder| folder::leave(folder)).map(|folder| folder::kept(&folder))
    })));
}

/// How a table of counts is written: of `most` k-mers at most.
pub(crate) fn spec(note: &Note, most: u64) -> anyhow::Result<Spec> {
    let hot_entries = (most / HOT_ONE_IN).min(MOST_HOT) as usize;
    let bytes = serde_json::to_vec(note)?;
    if bytes.len() > MAX_NOTE {
        return Err(Usage("the names of the samples are too long: shorten them".to_owned()).into());
    }
    Ok(Spec { hot_entries, hot_one_in: HOT_ONE_IN, note: bytes, ..Spec::new(note.value_bytes(), most) })
}

fn table<const S: usize>(
    path: &Path,
    sorted: &Sorted<S>,
    note: &Note,
    memory: u64,
    set: &mut Set,
) -> anyhow::Result<Written> {
    let entries = sorted.len();
    let spec = Spec { memory: memory / 2, ..spec(note, entries)? };
    sorted.shrink(memory.saturating_sub(spec.held()))?;
    let mut writer = TableWriter::create(path, spec)?;
    sorted.for_each(|kmer, counts| {
        let weight = counts.iter().map(|&count| u64::from(count)).sum();
        writer.push(kmer, note.value(counts), weight).map_err(anyhow::Error::from)
    })?;
    let (written, file) = writer.complete()?;
    set.add(file);
    Ok(Written { entries, bytes: written.bytes })
}

fn text<const S: usize>(
    path: &Path,
    sorted: &Sorted<S>,
    note: &Note,
    set: &mut Set,
) -> anyhow::Result<Written> {
    let mut file = AtomicFile::create(path)?;
    let mut bytes = 0;
    let mut line = format!("kmer\t{}\n", note.samples.join("\t")).into_bytes();
    let mut put = |line: &mut Vec<u8>| {
        bytes += line.len() as u64;
        let put = file.write_all(line);
        line.clear();
        put.map_err(anyhow::Error::from)
    };
    put(&mut line)?;
    sorted.for_each(|kmer, counts| {
        line.extend((0..note.k).rev().map(|base| dna::base((kmer >> (2 * base)) as u8 & 3)));
        for count in &counts[..note.samples.len()] {
            write!(line, "\t{count}")?;
        }
        line.push(b'\n');
        put(&mut line)
    })?;
    set.add(file.complete()?);
    Ok(Written { entries: sorted.len(), bytes })
}

/// A finished count.
#[derive(Debug)]
pub(crate) struct Outcome<'a, const S: usize> {
    pub(crate) note: Note,
    pub(crate) stats: CountStats<S>,
    pub(crate) spectra: &'a [Vec<u64>; S],
    pub(crate) shares: &'a [NodeShare],
    pub(crate) devices: &'a Devices,
    pub(crate) written: Written,
    pub(crate) costs: Vec<UnitCost>,
}

impl<const S: usize> Outcome<'_, S> {
    /// Writes, to a file of `set`, how many k-mers there are of each count, up to the last count that any k-mer has; with names of columns where
    /// there are several samples.
    pub(crate) fn histogram(&self, path: &Path, set: &mut Set) -> anyhow::Result<()> {
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
        set.add(file.complete()?);
        Ok(())
    }

    /// What each sample has.
    pub(crate) fn counted(&self) -> impl Iterator<Item = Counted<'_>> {
        let named = self.note.samples.iter().zip(&self.stats.bases);
        named.zip(self.spectra).map(|((sample, bases), spectrum)| Counted { sample, bases: *bases, spectrum })
    }

    /// Writes what was done to a file of `set`.
    pub(crate) fn json(
        &self,
        path: &Path,
        samples: &[Named],
        aligned: Value,
        wall: Duration,
        set: &mut Set,
    ) -> anyhow::Result<()> {
        let Outcome { note, stats, shares, devices, written, costs, .. } = self;
        let samples: Vec<_> = (samples.iter().zip(stats.bases.iter().zip(&stats.kmers)))
            .map(|((name, files), (bases, kmers))| {
                json!({ "name": name, "files": files, "bases": bases, "kmers": kmers })
            })
            .collect();
        let node = |share: &NodeShare| {
            let NodeShare { node, threads, here, elsewhere } = share;
            json!({ "node": node, "threads": threads, "bytes_here": here, "bytes_elsewhere": elsewhere })
        };
        let nodes: Vec<_> = shares.iter().map(node).collect();
        let cost = process_cost();
        let value = json!({
            "command": command::line(),
            "version": env!("CARGO_PKG_VERSION"),
            "k": note.k,
            "min_count": note.min_count,
            "min_base_quality": note.min_base_quality,
            "samples": samples,
            "aligned": aligned,
            "distinct": stats.distinct,
            "written": { "kmers": written.entries, "bytes": written.bytes },
            "bins": stats.bins,
            "extra_passes": stats.extra_passes,
            "packed_bytes": stats.packed_bytes,
            "spilled_bytes": stats.spilled_bytes,
            "nodes": nodes,
            "devices": devices.names(),
            "bins_on_devices": devices.bins()[1],
            "bins_devices_lost": devices.bins()[2],
            "wall_s": wall.as_secs_f64(),
            "cpu_s": cost.cpu_s,
            "peak_bytes": cost.peak_bytes,
            "steps": costs,
        });
        json::add(path, &value, set)
    }
}
