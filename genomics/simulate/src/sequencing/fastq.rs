//! Writes read pairs as gzip'd FASTQ or as an interleaved stream. Threads generate the blocks in any order.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use genuma_work::publish::{AtomicFile, FileSet};
use libdeflater::{CompressionLvl, Compressor};

use super::dna_pool::DnaSource;
use super::library::Library;
use super::molecule::Molecule;
use super::read_counts::ReadCounts;
use super::sequencer::{MateRead, Sequencer};
use crate::error::{Error, Result};
use crate::reference_origins::ReferencePlacement;
use crate::rng::Rng;

/// Read pairs per block. Each block is a gzip member and has its own random stream.
const PAIRS_PER_BLOCK: usize = 8192;
/// Compression level. It is low because random bases and qualities hardly compress better at higher levels.
const GZIP_LEVEL: i32 = 1;

/// Options of the FASTQ output of one sample.
#[derive(Debug)]
pub struct FastqOptions<'a> {
    /// Whether mates alternate in one plain text.
    pub interleaved: bool,
    /// Sample name, used in read names.
    pub sample: &'a str,
    /// Contig names, if read names are to report the true origin of both mates.
    pub contigs: Option<&'a [String]>,
    /// Number of read pairs.
    pub pairs: usize,
    /// Share of the pairs that are duplicates of another pair, 0 to 1.
    pub duplicates: f64,
    /// Random seed of the sample.
    pub seed: u64,
    /// Number of threads. The output does not depend on it.
    pub threads: usize,
}

/// Destination of the reads.
pub enum FastqSink<'a> {
    /// One file per mate, added to the file set.
    Files([PathBuf; 2], &'a mut FileSet),
    /// One interleaved stream.
    Stream(&'a mut dyn Write),
}

/// Sequences a library and returns the counts of its reads.
pub fn sequence_library(
    library: &Library,
    machine: &Sequencer,
    output: &FastqOptions,
    sink: FastqSink<'_>,
) -> Result<ReadCounts> {
    let blocks = output.pairs.div_ceil(PAIRS_PER_BLOCK);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel::<(usize, FastqBlock)>(2 * output.threads);
    std::thread::scope(|scope| {
        for i in 0..output.threads.max(1) {
            let (sender, next) = (sender.clone(), &next);
            let make = move || {
                let mut maker = BlockGenerator::new(library, machine, output);
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    // The receiver is closed if writing failed.
                    if block >= blocks || sender.send((block, maker.generate_block(block))).is_err() {
                        return;
                    }
                }
            };
            // One thread is enough, because any thread can generate any block.
            match std::thread::Builder::new().spawn_scoped(scope, make) {
                Err(source) if i == 0 => return Err(Error::Thread(source)),
                Err(_) => break,
                Ok(_) => {}
            }
        }
        drop(sender);
        write_blocks(receiver, sink)
    })
}

/// The gzip members of both mates of a block (for a stream: the interleaved text and an empty vector), and its
/// counts.
type FastqBlock = ([Vec<u8>; 2], ReadCounts);

fn write_blocks(receiver: mpsc::Receiver<(usize, FastqBlock)>, sink: FastqSink<'_>) -> Result<ReadCounts> {
    match sink {
        FastqSink::Stream(out) => {
            let counts = for_each_in_order(receiver, |[text, _]| out.write_all(text))?;
            out.flush()?;
            Ok(counts)
        }
        FastqSink::Files(paths, set) => {
            let mut files = [AtomicFile::create(&paths[0])?, AtomicFile::create(&paths[1])?];
            let counts = for_each_in_order(receiver, |members| {
                files.iter_mut().zip(members).try_for_each(|(file, member)| file.write_all(member))
            })?;
            for file in files {
                set.add(file.flush_buffer()?);
            }
            Ok(counts)
        }
    }
}

/// Calls `each` with the blocks in their order.
fn for_each_in_order(
    receiver: mpsc::Receiver<(usize, FastqBlock)>,
    mut each: impl FnMut(&[Vec<u8>; 2]) -> std::io::Result<()>,
) -> Result<ReadCounts> {
    let mut counts = ReadCounts::default();
    let (mut early, mut due) = (BTreeMap::new(), 0);
    for (block, (members, of_block)) in receiver {
        counts += of_block;
        early.insert(block, members);
        while let Some(members) = early.remove(&due) {
            each(&members)?;
            due += 1;
        }
    }
    Ok(counts)
}

/// Formats the true origin of a mate for its read name: contig, first and last base (1-based), strand.
fn format_read_origin(place: Option<ReferencePlacement>, contigs: &[String]) -> String {
    place.map_or_else(
        || ",*,0,0,+".to_owned(),
        |ReferencePlacement { span, reverse }| {
            let strand = if reverse { '-' } else { '+' };
            format!(",{},{},{},{strand}", contigs[span.contig], span.start + 1, span.end)
        },
    )
}

/// Generates blocks in one thread, with reused buffers.
struct BlockGenerator<'a> {
    library: &'a Library<'a>,
    machine: &'a Sequencer<'a>,
    output: &'a FastqOptions<'a>,
    compressor: Compressor,
    mates: [MateRead; 2],
    texts: [Vec<u8>; 2],
}

impl<'a> BlockGenerator<'a> {
    fn new(library: &'a Library<'a>, machine: &'a Sequencer<'a>, output: &'a FastqOptions<'a>) -> Self {
        let level = CompressionLvl::new(GZIP_LEVEL).expect("libdeflate has this level");
        let compressor = Compressor::new(level);
        let (mates, texts) = Default::default();
        BlockGenerator { library, machine, output, compressor, mates, texts }
    }

    fn generate_block(&mut self, block: usize) -> FastqBlock {
        let mut rng = Rng::from_labels(self.output.seed, &[block as u64]);
        let mut counts = ReadCounts::default();
        let first = block * PAIRS_PER_BLOCK;
        let pairs = PAIRS_PER_BLOCK.min(self.output.pairs - first);
        self.texts.iter_mut().for_each(Vec::clear);
        let mut molecules: Vec<Molecule> = Vec::with_capacity(pairs);
        // Index of the molecule of each pair.
        let mut sequenced: Vec<usize> = Vec::with_capacity(pairs);
        for i in 0..pairs {
            let molecule = if i > 0 && rng.draw_bernoulli(self.output.duplicates) {
                counts.duplicate_pairs += 1;
                *rng.choose_item(&sequenced)
            } else {
                molecules.push(self.library.draw_molecule(&mut rng, &mut counts));
                molecules.len() - 1
            };
            sequenced.push(molecule);
            self.append_pair(first + i, &molecules[molecule], &mut rng, &mut counts);
        }
        let members = match self.output.interleaved {
            true => [std::mem::take(&mut self.texts[0]), Vec::new()],
            false => [0, 1].map(|mate| self.compress_mate(mate)),
        };
        (members, counts)
    }

    fn append_pair(&mut self, number: usize, molecule: &Molecule, rng: &mut Rng, counts: &mut ReadCounts) {
        counts.foreign_pairs += u64::from(molecule.source == DnaSource::Foreign);
        counts.mitochondrial_pairs += u64::from(molecule.source == DnaSource::Mitochondrion);
        counts.captured_pairs += u64::from(molecule.captured);
        self.machine.sequence_both_mates(molecule, &mut self.mates, rng, counts);
        let places = self.output.contigs.map_or_else(String::new, |contigs| {
            [0, 1]
                .map(|mate| format_read_origin(molecule.mate_placement(mate, self.mates[mate].molecule_bases), contigs))
                .concat()
        });
        for mate in 0..2 {
            let text = &mut self.texts[if self.output.interleaved { 0 } else { mate }];
            let _ = writeln!(text, "@sim:{}:{}{places}/{}", self.output.sample, number + 1, mate + 1);
            text.extend_from_slice(&self.mates[mate].bases);
            text.extend_from_slice(b"\n+\n");
            text.extend_from_slice(&self.mates[mate].quals);
            text.push(b'\n');
        }
    }

    fn compress_mate(&mut self, mate: usize) -> Vec<u8> {
        let text = &self.texts[mate];
        let mut member = vec![0; self.compressor.gzip_compress_bound(text.len())];
        let size = self
            .compressor
            .gzip_compress(text, &mut member)
            .expect("a buffer of the size that libdeflate asks for is large enough");
        member.truncate(size);
        member
    }
}
