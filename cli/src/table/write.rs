//! K-mers in order → a table or text, in a thread of its own.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use genuma_flash::{Spec, TableWriter};
use genuma_reads::dna;
use genuma_work::publish::{AtomicFile, Partial};

use super::merge::Block;
use crate::count::outputs::Target;
use crate::note::Note;

/// Blocks that wait to be written.
const WAITING: usize = 4;

/// What is written to.
enum Sink {
    Table(Box<TableWriter>),
    Text(AtomicFile),
}

/// Where blocks go to be written, and where they come back from.
pub struct Writing {
    full: Option<SyncSender<Block>>,
    empty: Receiver<Block>,
}

impl Writing {
    /// Hands a block over and leaves an empty one in its place. Whether the writer is still there.
    pub fn take(&mut self, block: &mut Block) -> bool {
        let next = self.empty.recv().unwrap_or_default();
        let full = std::mem::replace(block, next);
        block.clear();
        self.full.as_ref().is_some_and(|sender| sender.send(full).is_ok())
    }
}

/// What a thread writes.
pub struct Writer {
    sink: Sink,
    k: u32,
    samples: usize,
    from: Receiver<Block>,
    back: SyncSender<Block>,
    entries: u64,
}

/// A file that waits for its name, and how many k-mers it holds.
pub struct Done {
    pub file: Partial,
    pub entries: u64,
}

/// Begins a file; a table as `spec` has it.
///
/// # Errors
/// When the file cannot be made, or there is no memory.
pub fn begin(target: &Target, note: &Note, spec: Spec) -> anyhow::Result<(Writing, Writer)> {
    let sink = match target {
        Target::Table(path) => Sink::Table(Box::new(TableWriter::create(path, spec)?)),
        Target::Text(path) => Sink::Text(text(path, note)?),
    };
    let (full, from) = sync_channel(WAITING);
    let (back, empty) = sync_channel(WAITING);
    for _ in 0..WAITING {
        _ = back.send(Block::default());
    }
    let (k, samples) = (note.k, note.samples.len());
    Ok((Writing { full: Some(full), empty }, Writer { sink, k, samples, from, back, entries: 0 }))
}

fn text(path: &Path, note: &Note) -> anyhow::Result<AtomicFile> {
    let mut file = AtomicFile::create(path)?;
    writeln!(file, "kmer\t{}", note.samples.join("\t"))?;
    Ok(file)
}

impl Writer {
    /// Writes all blocks that come.
    ///
    /// # Errors
    /// When the disk is full or refuses.
    pub fn run(mut self) -> anyhow::Result<Done> {
        let mut lines = Vec::new();
        while let Ok(block) = self.from.recv() {
            self.entries += block.keys.len() as u64;
            let samples = self.samples;
            match &mut self.sink {
                Sink::Table(table) => {
                    let weight = |entry: usize| match samples {
                        1 => u64::from(block.counts[entry]),
                        _ => block.counts[entry * samples..][..samples].iter().map(|&n| u64::from(n)).sum(),
                    };
                    table.push_all(&block.keys, bytemuck::cast_slice(&block.counts), weight)?;
                }
                Sink::Text(file) => {
                    for (kmer, counts) in block.keys.iter().zip(block.counts.chunks_exact(samples)) {
                        lines.extend((0..self.k).rev().map(|base| dna::base((kmer >> (2 * base)) as u8 & 3)));
                        counts.iter().try_for_each(|count| write!(lines, "\t{count}"))?;
                        lines.push(b'\n');
                    }
                    file.write_all(&lines)?;
                    lines.clear();
                }
            }
            // Who merges may have ended.
            _ = self.back.try_send(block);
        }
        let entries = self.entries;
        match self.sink {
            Sink::Table(table) => {
                let (_, file) = table.complete()?;
                Ok(Done { file, entries })
            }
            Sink::Text(file) => Ok(Done { file: file.complete()?, entries }),
        }
    }
}
