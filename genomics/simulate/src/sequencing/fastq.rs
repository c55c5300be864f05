//! Read pairs into gzip'd FASTQ, in blocks that any thread may make.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use genuma_reads::atomic_file::AtomicFile;
use genuma_reads::dna;
use libdeflater::{CompressionLvl, Compressor};

use super::fragments::Fragment;
use super::{Pool, QualityModel, SequencingParams};
use crate::error::Result;
use crate::origin::Place;
use crate::rng::Rng;

/// Pairs made at a time; a block is a gzip member of its own and a random stream of its own.
const BLOCK: usize = 8192;
/// Low: random bases and qualities do not get much smaller with more effort.
const LEVEL: i32 = 1;

/// What is to be written.
#[derive(Debug)]
pub struct Output<'a> {
    /// Mates 1 and 2.
    pub paths: [PathBuf; 2],
    /// Goes into the read names.
    pub sample: &'a str,
    /// Names of the reference's contigs if read names are to tell where both mates come from.
    pub contigs: Option<&'a [String]>,
    /// Read pairs.
    pub pairs: usize,
    /// The sample's own random seed.
    pub seed: u64,
    /// Threads to use; the bytes do not depend on it.
    pub threads: usize,
}

/// Sequences a pool.
pub fn sequence(pool: &Pool, params: &SequencingParams, output: &Output) -> Result<()> {
    let model = QualityModel::new(params.read_length, params.error_rate);
    let blocks = output.pairs.div_ceil(BLOCK);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::sync_channel::<(usize, [Vec<u8>; 2])>(2 * output.threads);
    std::thread::scope(|scope| {
        for _ in 0..output.threads.max(1) {
            let (sender, next, model) = (sender.clone(), &next, &model);
            scope.spawn(move || {
                let mut maker = BlockMaker::new(pool, params, model);
                loop {
                    let block = next.fetch_add(1, Ordering::Relaxed);
                    // The receiver goes away when writing failed; then there is no use in going on.
                    if block >= blocks || sender.send((block, maker.make(block, output))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        write_in_order(receiver, &output.paths)
    })
}

fn write_in_order(receiver: mpsc::Receiver<(usize, [Vec<u8>; 2])>, paths: &[PathBuf; 2]) -> Result<()> {
    let mut files = [AtomicFile::create(&paths[0])?, AtomicFile::create(&paths[1])?];
    let (mut early, mut due) = (BTreeMap::new(), 0);
    for (block, members) in receiver {
        early.insert(block, members);
        while let Some(members) = early.remove(&due) {
            for (file, member) in files.iter_mut().zip(&members) {
                file.write_all(member)?;
            }
            due += 1;
        }
    }
    for file in files {
        file.finish()?;
    }
    Ok(())
}

/// One thread's buffers.
struct BlockMaker<'a> {
    pool: &'a Pool<'a>,
    params: &'a SequencingParams,
    model: &'a QualityModel,
    compressor: Compressor,
    texts: [Vec<u8>; 2],
}

/// A fragment and the strand that its first mate reads.
#[derive(Clone, Copy)]
struct Template<'a> {
    fragment: Fragment<'a>,
    reverse: bool,
}

impl Template<'_> {
    /// Where a mate of `length` bases comes from.
    fn place(&self, mate: usize, length: usize) -> Option<Place> {
        let last = self.reverse == (mate == 0);
        let place = self.fragment.end_place(length, last)?;
        Some(Place { reverse: place.reverse ^ last, ..place })
    }
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

impl<'a> BlockMaker<'a> {
    fn new(pool: &'a Pool<'a>, params: &'a SequencingParams, model: &'a QualityModel) -> Self {
        let level = CompressionLvl::new(LEVEL).expect("libdeflate has this level");
        let compressor = Compressor::new(level);
        BlockMaker { pool, params, model, compressor, texts: [vec![], vec![]] }
    }

    /// The gzip members of both mates.
    fn make(&mut self, block: usize, output: &Output) -> [Vec<u8>; 2] {
        let mut rng = Rng::stream(output.seed, &[block as u64]);
        let first = block * BLOCK;
        let pairs = BLOCK.min(output.pairs - first);
        self.texts.iter_mut().for_each(Vec::clear);
        let mut templates: Vec<Template> = Vec::with_capacity(pairs);
        let (mut bases, mut quals) = (vec![], vec![]);
        for i in 0..pairs {
            let template = if i > 0 && rng.chance(self.params.duplicates) {
                *rng.pick(&templates)
            } else {
                self.template(&mut rng)
            };
            templates.push(template);
            let length = self.params.read_length;
            let places = output.contigs.map_or_else(String::new, |contigs| {
                [0, 1].map(|mate| told(template.place(mate, length), contigs)).concat()
            });
            let fragment = template.fragment.bases;
            for (mate, text) in self.texts.iter_mut().enumerate() {
                bases.clear();
                if template.reverse == (mate == 0) {
                    bases.extend(fragment.iter().rev().take(length).map(|&b| dna::complement(b)));
                } else {
                    bases.extend(&fragment[..length.min(fragment.len())]);
                }
                self.model.read(mate, &mut bases, &mut quals, &mut rng);
                let _ = writeln!(text, "@sim:{}:{}{places}/{}", output.sample, first + i + 1, mate + 1);
                text.extend_from_slice(&bases);
                text.extend_from_slice(b"\n+\n");
                text.extend_from_slice(&quals);
                text.push(b'\n');
            }
        }
        [0, 1].map(|mate| self.compress(mate))
    }

    fn template(&self, rng: &mut Rng) -> Template<'a> {
        let shortest = self.params.read_length as f64;
        let length = (0..100)
            .map(|_| rng.normal(self.params.insert_mean, self.params.insert_sd))
            .find(|&l| l >= shortest)
            .unwrap_or(shortest);
        let fragment = self.pool.fragment(length as usize, rng);
        Template { fragment, reverse: rng.chance(0.5) }
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
