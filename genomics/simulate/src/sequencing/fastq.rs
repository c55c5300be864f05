//! Writes read pairs as gzipped FASTQ files or as an interleaved stream. Several threads generate blocks of read pairs,
//! which are written in order.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use genuma_work::publish::{AtomicFile, AtomicFileSet};
use libdeflater::{CompressionLvl, Compressor};

use super::consensus::{BaseLikelihoods, combine_strand_consensuses};
use super::dna_pool::DnaSource;
use super::library::Library;
use super::molecule::Molecule;
use super::read_counts::ReadAndArtefactCounts;
use super::sequencer::{SequencedMate, Sequencer};
use super::umi::{MOLECULE_TABLE_HEADER, UmiMolecule};
use super::umi_params::UmiParams;
use crate::error::{Error, Result};
use crate::reference_origins::ReferencePlacement;
use crate::rng::Rng;

/// Number of read pairs in a block. Each block is one gzip member and has its own random stream.
const PAIRS_PER_BLOCK: usize = 8192;
/// Compression level of gzip. It is low because random bases and qualities hardly compress better at higher levels.
const GZIP_LEVEL: i32 = 1;

/// Options of the FASTQ output of one sample, and the number of reads to write.
#[derive(Debug)]
pub(crate) struct SampleFastqSpec<'a> {
    /// Whether both mates are written to one uncompressed text, alternately.
    pub interleaved: bool,
    /// Name of the sample, which is part of the read names.
    pub sample: &'a str,
    /// Names of the contigs, which the true positions in read names refer to.
    pub contigs: &'a [String],
    /// Whether read names contain the true reference positions of both mates.
    pub true_positions: bool,
    /// Parameters of the UMIs; `None` for a library without UMIs.
    pub umi: Option<&'a UmiParams>,
    /// Number of read pairs to write.
    pub pairs: usize,
    /// Share of the read pairs that are duplicates of another pair, 0 to 1.
    pub duplicates: f64,
    /// Random seed from which the reads of the sample are drawn.
    pub seed: u64,
    /// Number of threads. It does not change the output.
    pub threads: usize,
}

/// Destination of the FASTQ output.
pub(crate) enum FastqSink<'a> {
    /// One file per mate and, for a UMI library, one for the table of molecules. They are added to the file set, which
    /// publishes them later.
    Files(Vec<PathBuf>, &'a mut AtomicFileSet),
    /// One stream of uncompressed interleaved FASTQ.
    Stream(&'a mut dyn Write),
}

/// Sequences the molecules of a library and writes their reads. Returns the numbers of reads and artefacts.
pub(crate) fn sequence_library(
    library: &Library,
    machine: &Sequencer,
    output: &SampleFastqSpec,
    sink: FastqSink<'_>,
) -> Result<ReadAndArtefactCounts> {
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

/// One block of the output: the gzip members of read 1, of read 2 and of the table of molecules, and the counts of the
/// block. For a stream the first member is the interleaved text, and the others are empty.
type FastqBlock = ([Vec<u8>; 3], ReadAndArtefactCounts);

fn write_blocks(receiver: mpsc::Receiver<(usize, FastqBlock)>, sink: FastqSink<'_>) -> Result<ReadAndArtefactCounts> {
    match sink {
        FastqSink::Stream(out) => {
            let counts = for_each_in_order(receiver, |[text, ..]| out.write_all(text))?;
            out.flush()?;
            Ok(counts)
        }
        FastqSink::Files(paths, set) => {
            let files = paths.iter().map(|path| Ok(AtomicFile::create(path)?));
            let mut files = files.collect::<Result<Vec<_>>>()?;
            let counts = for_each_in_order(receiver, |members| {
                files.iter_mut().zip(members).try_for_each(|(file, member)| file.write_all(member))
            })?;
            for file in files {
                set.add_file(file.flush_to_partial_file()?);
            }
            Ok(counts)
        }
    }
}

/// Receives blocks from the threads in any order, and calls `each` with them in order. Returns the sum of their counts.
fn for_each_in_order(
    receiver: mpsc::Receiver<(usize, FastqBlock)>,
    mut each: impl FnMut(&[Vec<u8>; 3]) -> std::io::Result<()>,
) -> Result<ReadAndArtefactCounts> {
    let mut counts = ReadAndArtefactCounts::default();
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

/// Formats the true reference position of a mate for its read name: contig, first and last base (1-based), strand; `*`
/// and zeros if it has none.
fn format_read_origin(place: Option<ReferencePlacement>, contigs: &[String]) -> String {
    place.map_or_else(
        || ",*,0,0,+".to_owned(),
        |ReferencePlacement { span, reverse }| {
            let strand = if reverse { '-' } else { '+' };
            format!(",{},{},{},{strand}", contigs[span.contig], span.start + 1, span.end)
        },
    )
}

/// Counts a read pair by the DNA source of its molecule, and whether it was captured.
fn count_source(molecule: &Molecule, counts: &mut ReadAndArtefactCounts) {
    counts.foreign_pairs += u64::from(molecule.source == DnaSource::Foreign);
    counts.mitochondrial_pairs += u64::from(molecule.source == DnaSource::Mitochondrion);
    counts.captured_pairs += u64::from(molecule.captured);
}

/// Generates blocks of read pairs in one thread. Its buffers are reused for each block.
struct BlockGenerator<'a> {
    library: &'a Library<'a>,
    machine: &'a Sequencer<'a>,
    output: &'a SampleFastqSpec<'a>,
    compressor: Compressor,
    mates: [SequencedMate; 2],
    /// FASTQ text of read 1 and of read 2, and the table of molecules.
    texts: [Vec<u8>; 3],
}

impl<'a> BlockGenerator<'a> {
    fn new(library: &'a Library<'a>, machine: &'a Sequencer<'a>, output: &'a SampleFastqSpec<'a>) -> Self {
        let level = CompressionLvl::new(GZIP_LEVEL).expect("libdeflate has this level");
        let compressor = Compressor::new(level);
        let (mates, texts) = Default::default();
        BlockGenerator { library, machine, output, compressor, mates, texts }
    }

    fn generate_block(&mut self, block: usize) -> FastqBlock {
        let mut rng = Rng::from_seed_and_labels(self.output.seed, &[block as u64]);
        let mut counts = ReadAndArtefactCounts::default();
        let first = block * PAIRS_PER_BLOCK;
        let pairs = PAIRS_PER_BLOCK.min(self.output.pairs - first);
        self.texts.iter_mut().for_each(Vec::clear);
        match self.output.umi {
            None => self.append_molecules(first, pairs, &mut rng, &mut counts),
            Some(umi) => self.append_families(umi, first, pairs, &mut rng, &mut counts),
        }
        let members = match self.output.interleaved {
            true => [std::mem::take(&mut self.texts[0]), Vec::new(), Vec::new()],
            false => [0, 1, 2].map(|file| self.compress_text(file)),
        };
        (members, counts)
    }

    /// Appends `pairs` read pairs of molecules without UMIs to the FASTQ texts, duplicates included.
    fn append_molecules(&mut self, first: usize, pairs: usize, rng: &mut Rng, counts: &mut ReadAndArtefactCounts) {
        let mut molecules: Vec<Molecule> = Vec::with_capacity(pairs);
        // Index of the molecule of each pair.
        let mut sequenced: Vec<usize> = Vec::with_capacity(pairs);
        for i in 0..pairs {
            let molecule = if i > 0 && rng.draw_bernoulli(self.output.duplicates) {
                counts.duplicate_pairs += 1;
                *rng.choose_item(&sequenced)
            } else {
                molecules.push(self.library.draw_molecule(rng, counts));
                molecules.len() - 1
            };
            sequenced.push(molecule);
            self.append_pair(&(first + i + 1).to_string(), &molecules[molecule], rng, counts);
        }
    }

    /// Appends the read pairs of molecules with UMIs to the FASTQ texts, in random order; with [`UmiParams::consensus`]
    /// one pair of consensus reads for each molecule, in the order of the molecules. Appends a row for each molecule to
    /// the table of molecules.
    fn append_families(
        &mut self,
        umi: &UmiParams,
        first: usize,
        pairs: usize,
        rng: &mut Rng,
        counts: &mut ReadAndArtefactCounts,
    ) {
        if first == 0 {
            self.texts[2].extend_from_slice(MOLECULE_TABLE_HEADER.as_bytes());
        }
        let mut families: Vec<(String, UmiMolecule)> = vec![];
        // Family, strand and number within the family of each pair.
        let mut members: Vec<(usize, usize, usize)> = vec![];
        let mut written = 0;
        while written < pairs {
            let mut molecule = UmiMolecule::draw_molecule(self.library, umi, rng, counts);
            let name = (first + written + 1).to_string();
            if umi.consensus {
                self.append_consensus(&name, &molecule, rng, counts);
                written += 1;
            } else {
                molecule.limit_num_pairs(pairs - written);
                written += molecule.num_pairs_of_both_strands();
                let strand = |k| usize::from(k >= molecule.pairs[0]);
                members.extend((0..molecule.num_pairs_of_both_strands()).map(|k| (families.len(), strand(k), k + 1)));
            }
            counts.duplicate_pairs += molecule.num_pairs_of_both_strands() as u64 - 1;
            let row_name = format!("sim:{}:{name}", self.output.sample);
            molecule.append_table_row(&row_name, self.output.contigs, &mut self.texts[2]);
            if !umi.consensus {
                families.push((name, molecule));
            }
        }
        rng.shuffle(&mut members);
        for (family, strand, k) in members {
            let (name, molecule) = &families[family];
            if let Some(molecule) = &molecule.strands[strand] {
                self.append_pair(&format!("{name}:{k}"), molecule, rng, counts);
            }
        }
    }

    /// Sequences all read pairs of a molecule and appends their consensus reads to the FASTQ texts.
    fn append_consensus(
        &mut self,
        number: &str,
        molecule: &UmiMolecule,
        rng: &mut Rng,
        counts: &mut ReadAndArtefactCounts,
    ) {
        let lead = molecule.strand_for_consensus_read1();
        // Consensus of each strand for both reads of the leading strand.
        let mut consensus: [[BaseLikelihoods; 2]; 2] = Default::default();
        for (strand, molecule_strand) in molecule.strands.iter().enumerate() {
            let Some(molecule_strand) = molecule_strand else { continue };
            for _ in 0..molecule.pairs[strand] {
                self.machine.sequence_both_mates(molecule_strand, &mut self.mates, rng, counts);
                for (number, mate) in self.mates.iter().enumerate() {
                    let template = molecule_strand.prefix_bp[number].min(mate.bases.len());
                    let end = number ^ strand ^ lead;
                    consensus[strand][end].add_read(&mate.bases[template..], &mate.quals[template..]);
                }
            }
        }
        let strand = if molecule.pairs[lead] > 0 { lead } else { 1 - lead };
        let Some(source) = &molecule.strands[strand] else { return };
        count_source(source, counts);
        let mut places = String::new();
        for mate in [0, 1] {
            let strands = [0, 1].map(|strand| consensus[strand][mate].call_consensus_bases());
            let [one, other] = strands;
            let called = combine_strand_consensuses(one, other);
            self.mates[mate].bases = called.iter().map(|c| c.0).collect();
            self.mates[mate].quals = called.iter().map(|c| c.1 + 33).collect();
            let mate_of_source = mate ^ strand ^ lead;
            let read_bp = source.prefix_bp[mate_of_source] + called.len();
            places += &self.format_mate_origin(source, mate_of_source, read_bp);
        }
        self.write_mates(number, &places);
    }

    fn append_pair(&mut self, name: &str, molecule: &Molecule, rng: &mut Rng, counts: &mut ReadAndArtefactCounts) {
        count_source(molecule, counts);
        self.machine.sequence_both_mates(molecule, &mut self.mates, rng, counts);
        let places = [0, 1].map(|mate| self.format_mate_origin(molecule, mate, self.mates[mate].molecule_bases));
        self.write_mates(name, &places.concat());
    }

    /// Formats the true reference position of a mate that reads `length` bases of a molecule; empty if read names do
    /// not contain it.
    fn format_mate_origin(&self, molecule: &Molecule, mate: usize, length: usize) -> String {
        if !self.output.true_positions {
            return String::new();
        }
        format_read_origin(molecule.reference_placement_of_mate(mate, length), self.output.contigs)
    }

    fn write_mates(&mut self, name: &str, places: &str) {
        for mate in 0..2 {
            let text = &mut self.texts[if self.output.interleaved { 0 } else { mate }];
            let _ = writeln!(text, "@sim:{}:{name}{places}/{}", self.output.sample, mate + 1);
            text.extend_from_slice(&self.mates[mate].bases);
            text.extend_from_slice(b"\n+\n");
            text.extend_from_slice(&self.mates[mate].quals);
            text.push(b'\n');
        }
    }

    fn compress_text(&mut self, file: usize) -> Vec<u8> {
        let text = &self.texts[file];
        let mut member = vec![0; self.compressor.gzip_compress_bound(text.len())];
        let size = self
            .compressor
            .gzip_compress(text, &mut member)
            .expect("a buffer of the size that libdeflate asks for is large enough");
        member.truncate(size);
        member
    }
}
