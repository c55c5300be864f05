//! Read pairs into gzip'd FASTQ, or a stream of it in which mates alternate, in blocks that any thread may make.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use genuma_work::publish::{AtomicFile, Set};
use libdeflater::{CompressionLvl, Compressor};

use super::counts::Counts;
use super::cycles::{Machine, Mate};
use super::library::Library;
use super::molecule::Molecule;
use super::tube::Kind;
use crate::error::{Error, Result};
use crate::origin::Place;
use crate::rng::Rng;

/// Pairs made at a time; a block is a gzip member of its own and a random stream of its own.
const BLOCK: usize = 8192;
/// Low: random bases and qualities do not get much smaller with more effort.
const LEVEL: i32 = 1;

/// What is to be written.
#[derive(Debug)]
pub struct Output<'a> {
    /// Whether mates alternate in one plain text, as a stream has them.
    pub interleaved: bool,
    /// Goes into the read names.
    pub sample: &'a str,
    /// Names of the reference's contigs if read names are to tell where both mates come from.
    pub contigs: Option<&'a [String]>,
    /// Read pairs.
    pub pairs: usize,
    /// Share of them that are copies of another one.
    pub duplicates: f64,
    /// The sample's own random seed.
    pub seed: u64,
    /// Threads to use; the bytes do not depend on it.
    pub threads: usize,
}

/// Where reads go.
pub enum Sink<'a> {
    /// A file for each mate, put into the set.
    Files([PathBuf; 2], &'a mut Set),
    /// One after the other.
    Stream(&'a mut dyn Write),
}

/// Sequences a library; says what became of it.
pub fn sequence(library: &Library, machine: &Machine, output: &Output, sink: Sink<'_>) -> Result<Counts> {
    let blocks = output.pairs.div_ceil(BLOCK);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel::<(usize, Block)>(2 * output.threads);
    std::thread::scope(|scope| {
        for i in 0..output.threads.max(1) {
            let (sender, next) = (sender.clone(), &next);
            let make = move || {
                let mut maker = BlockMaker::new(library, machine, output);
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    // The receiver goes away when writing failed; then there is no use in going on.
                    if block >= blocks || sender.send((block, maker.make(block))).is_err() {
                        return;
                    }
                }
            };
            // Any thread makes any block: one is enough.
            match std::thread::Builder::new().spawn_scoped(scope, make) {
                Err(source) if i == 0 => return Err(Error::Thread(source)),
                Err(_) => break,
                Ok(_) => {}
            }
        }
        drop(sender);
        write_in_order(receiver, sink)
    })
}

/// The gzip members of both mates of some pairs, or the text of both and nothing, and what became of their molecules.
type Block = ([Vec<u8>; 2], Counts);

fn write_in_order(receiver: mpsc::Receiver<(usize, Block)>, sink: Sink<'_>) -> Result<Counts> {
    match sink {
        Sink::Stream(out) => {
            let counts = in_order(receiver, |[text, _]| out.write_all(text))?;
            out.flush()?;
            Ok(counts)
        }
        Sink::Files(paths, set) => {
            let mut files = [AtomicFile::create(&paths[0])?, AtomicFile::create(&paths[1])?];
            let counts = in_order(receiver, |members| {
                files.iter_mut().zip(members).try_for_each(|(file, member)| file.write_all(member))
            })?;
            for file in files {
                set.add(file.complete()?);
            }
            Ok(counts)
        }
    }
}

/// Hands on blocks in their order.
fn in_order(
    receiver: mpsc::Receiver<(usize, Block)>,
    mut each: impl FnMut(&[Vec<u8>; 2]) -> std::io::Result<()>,
) -> Result<Counts> {
    let mut counts = Counts::default();
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

/// What a name tells of a place: contig, first and last base from 1, strand.
fn told(place: Option<Place>, contigs: &[String]) -> String {
    place.map_or_else(
        || ",*,0,0,+".to_owned(),
        |Place { span, reverse }| {
            let strand = if reverse { '-' } else { '+' };
            format!(",{},{},{},{strand}", contigs[span.contig], span.start + 1, span.end)
        },
    )
}

/// One thread's buffers.
struct BlockMaker<'a> {
    library: &'a Library<'a>,
    machine: &'a Machine<'a>,
    output: &'a Output<'a>,
    compressor: Compressor,
    mates: [Mate; 2],
    texts: [Vec<u8>; 2],
}

impl<'a> BlockMaker<'a> {
    fn new(library: &'a Library<'a>, machine: &'a Machine<'a>, output: &'a Output<'a>) -> Self {
        let level = CompressionLvl::new(LEVEL).expect("libdeflate has this level");
        let compressor = Compressor::new(level);
        let (mates, texts) = Default::default();
        BlockMaker { library, machine, output, compressor, mates, texts }
    }

    fn make(&mut self, block: usize) -> Block {
        let mut rng = Rng::stream(self.output.seed, &[block as u64]);
        let mut counts = Counts::default();
        let first = block * BLOCK;
        let pairs = BLOCK.min(self.output.pairs - first);
        self.texts.iter_mut().for_each(Vec::clear);
        let mut molecules: Vec<Molecule> = Vec::with_capacity(pairs);
        // The molecule of each pair.
        let mut sequenced: Vec<usize> = Vec::with_capacity(pairs);
        for i in 0..pairs {
            let molecule = if i > 0 && rng.chance(self.output.duplicates) {
                counts.duplicate_pairs += 1;
                *rng.pick(&sequenced)
            } else {
                molecules.push(self.library.molecule(&mut rng, &mut counts));
                molecules.len() - 1
            };
            sequenced.push(molecule);
            self.pair(first + i, &molecules[molecule], &mut rng, &mut counts);
        }
        let members = match self.output.interleaved {
            true => [std::mem::take(&mut self.texts[0]), Vec::new()],
            false => [0, 1].map(|mate| self.compress(mate)),
        };
        (members, counts)
    }

    fn pair(&mut self, number: usize, molecule: &Molecule, rng: &mut Rng, counts: &mut Counts) {
        counts.foreign_pairs += u64::from(molecule.kind == Kind::Foreign);
        counts.mitochondrial_pairs += u64::from(molecule.kind == Kind::Mitochondrion);
        counts.captured_pairs += u64::from(molecule.captured);
        self.machine.pair(molecule, &mut self.mates, rng, counts);
        let places = self.output.contigs.map_or_else(String::new, |contigs| {
            [0, 1].map(|mate| told(molecule.place(mate, self.mates[mate].passed), contigs)).concat()
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

    fn compress(&mut self, mate: usize) -> Vec<u8> {
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
