//! K-mers of stretches → a table or text, by several threads, in the order of the stretches.

use std::io::Write;
use std::path::Path;

use genuma_flash::{Hand, Spec, TableWriter, Together};
use genuma_reads::dna;
use genuma_work::publish::{AtomicFile, Partial};
use genuma_work::turns::{Turns, Watch};

use super::merge::Run;
use crate::count::outputs::Target;
use crate::note::Note;

/// A file that waits for its name, and how many k-mers it holds.
pub(crate) struct Done {
    pub(crate) file: Partial,
    pub(crate) entries: u64,
}

/// Where several threads write.
pub(crate) enum Out<'o, 'w> {
    Table(&'o Together<'w>),
    Text(&'o Text),
}

/// Text that several threads write.
pub(crate) struct Text {
    turns: Turns<Lines>,
    k: u32,
}

/// What is handed on from stretch to stretch.
pub(crate) struct Lines {
    file: AtomicFile,
    entries: u64,
    fault: Option<std::io::Error>,
}

/// What one thread writes with.
pub(crate) enum Writer<'o, 'w> {
    Table(Box<Hand<'o, 'w>>),
    Text { text: &'o Text, _watch: Watch<'o, Lines>, lines: Vec<u8> },
}

/// Writes a table as `spec` has it, or text, by threads that `work` starts and ends. What `work` gives, and the file if all was written.
///
/// # Errors
/// When the file cannot be made or the disk refuses, or there is no memory.
pub(crate) fn all<T>(
    target: &Target,
    note: &Note,
    spec: Spec,
    work: impl FnOnce(Out<'_, '_>) -> anyhow::Result<T>,
) -> anyhow::Result<(T, Done)> {
    match target {
        Target::Table(path) => {
            let mut writer = TableWriter::create(path, spec)?;
            let done = writer.together(|together| work(Out::Table(together)))??;
            let (written, file) = writer.complete()?;
            Ok((done, Done { file, entries: written.entries }))
        }
        Target::Text(path) => {
            let file = begin_text(path, note)?;
            let text = Text { turns: Turns::new(Lines { file, entries: 0, fault: None }), k: note.k };
            let done = work(Out::Text(&text));
            let Lines { file, entries, fault } = text.turns.into_inner();
            match fault {
                // It names the file.
                Some(fault) => Err(fault.into()),
                None => Ok((done?, Done { file: file.complete()?, entries })),
            }
        }
    }
}

fn begin_text(path: &Path, note: &Note) -> anyhow::Result<AtomicFile> {
    let mut file = AtomicFile::create(path)?;
    writeln!(file, "kmer\t{}", note.samples.join("\t"))?;
    Ok(file)
}

impl<'o, 'w> Out<'o, 'w> {
    /// For one thread.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn writer(&self) -> anyhow::Result<Writer<'o, 'w>> {
        Ok(match self {
            Out::Table(table) => Writer::Table(Box::new(table.hand()?)),
            Out::Text(text) => Writer::Text { text, _watch: text.turns.watch(), lines: Vec::new() },
        })
    }
}

impl Writer<'_, '_> {
    /// Writes the k-mers of stretch `number`, with so many counts each. Whether to go on.
    pub(crate) fn add(&mut self, number: u64, runs: &[Run<'_>], samples: usize) -> bool {
        match self {
            Writer::Table(hand) => {
                let of = |count: &[u8; 4]| u64::from(u32::from_ne_bytes(*count));
                let weight = |value: &[u8]| value.as_chunks::<4>().0.iter().map(of).sum();
                let runs: Vec<(&[u64], &[u8])> =
                    runs.iter().map(|&Run { keys, counts }| (keys, bytemuck::cast_slice(counts))).collect();
                hand.add(number, &runs, weight)
            }
            Writer::Text { text, lines, .. } => {
                lines.clear();
                for run in runs {
                    for (kmer, counts) in run.keys.iter().zip(run.counts.chunks_exact(samples)) {
                        lines.extend((0..text.k).rev().map(|base| dna::base((kmer >> (2 * base)) as u8 & 3)));
                        // Writing to memory does not fail.
                        counts.iter().for_each(|count| drop(write!(lines, "\t{count}")));
                        lines.push(b'\n');
                    }
                }
                let entries: usize = runs.iter().map(|run| run.keys.len()).sum();
                let written = text.turns.take(number, |all| {
                    all.entries += entries as u64;
                    all.fault = all.file.write_all(lines).err();
                    all.fault.is_none()
                });
                if written == Some(false) {
                    text.turns.stop();
                }
                written == Some(true)
            }
        }
    }

    /// Ends all in the turn of stretch `number`, which cannot be made. Whether no other ended all before.
    pub(crate) fn stop(&mut self, number: u64) -> bool {
        match self {
            Writer::Table(hand) => hand.stop(number),
            Writer::Text { text, .. } => text.turns.end(number, |_| ()).is_some(),
        }
    }

    /// Ends this thread's part.
    pub(crate) fn finish(self) {
        if let Writer::Table(hand) = self {
            hand.finish();
        }
    }
}
