//! A small genome with many repeats, and reads of every kind from it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use genuma_align::engine::{BlockRule, Engine, ReadLayout};
use genuma_align::sam::{split_bam_records, write_sam_line};
use genuma_reads::{ReadBatch, ReadRef};

/// Random numbers (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % sides as u64) as usize
    }

    pub fn bases(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| b"ACGT"[self.roll(4)]).collect()
    }

    /// A copy with errors: one base in `rate` changed, a tenth as many inserted and deleted.
    pub fn copy(&mut self, seq: &[u8], rate: usize) -> Vec<u8> {
        let mut copy = Vec::with_capacity(seq.len() + 8);
        for &base in seq {
            match self.roll(rate * 10) {
                0..10 => copy.push(b"ACGT"[self.roll(4)]),
                10 => copy.extend([base, b"ACGT"[self.roll(4)]]),
                11 => {}
                _ => copy.push(base),
            }
        }
        copy
    }
}

pub fn revcomp(seq: &[u8]) -> Vec<u8> {
    genuma_reads::dna::reverse_complement(seq)
}

/// Three sequences: unique, with two families of repeats at two ages, a tandem repeat, and a stretch of N.
pub fn genome(seed: u64) -> Vec<(String, Vec<u8>)> {
    let mut dice = Dice(seed);
    let families = [dice.bases(300), dice.bases(2500)];
    let unit = dice.bases(37);
    [("chr1", 400_000), ("chr2", 150_000), ("HLA*01:02", 9_000)]
        .into_iter()
        .map(|(name, length)| {
            let mut seq = Vec::with_capacity(length + 3000);
            while seq.len() < length {
                let n = 500 + dice.roll(3000);
                seq.extend(dice.bases(n));
                let rate = [8, 60, 100_000][dice.roll(3)];
                match dice.roll(5) {
                    0 | 1 => seq.extend(dice.copy(&families[0], rate)),
                    2 => {
                        let copy = dice.copy(&families[1], rate);
                        seq.extend(if dice.roll(2) == 0 { copy } else { revcomp(&copy) });
                    }
                    3 => seq.extend(dice.copy(&unit.repeat(20), rate)),
                    _ => {}
                }
            }
            let at = length / 3;
            seq[at..at + 200].fill(b'N');
            (name.to_owned(), seq)
        })
        .collect()
}

pub fn write_fasta(path: &Path, genome: &[(String, Vec<u8>)]) {
    let mut text = Vec::new();
    for (name, seq) in genome {
        writeln!(text, ">{name} a comment").unwrap();
        seq.chunks(70).for_each(|line| text.extend([line, b"\n"].concat()));
    }
    fs::write(path, text).unwrap();
}

/// A test read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Read {
    pub name: String,
    pub comment: String,
    pub seq: Vec<u8>,
    pub qual: Vec<u8>,
}

fn read(dice: &mut Dice, name: &str, seq: Vec<u8>) -> Read {
    let qual = seq.iter().map(|_| b'#' + dice.roll(39) as u8).collect();
    Read { name: name.to_owned(), comment: format!("BC:Z:{}\tXN:i:{}", name.len(), dice.roll(999)), seq, qual }
}

/// A random part of the genome.
fn place<'g>(dice: &mut Dice, genome: &'g [(String, Vec<u8>)], n: usize) -> &'g [u8] {
    // The shortest sequence is chosen rarely.
    let seq = &genome[[0, 0, 0, 1, 1, 2][dice.roll(6)]].1;
    let n = n.min(seq.len() - 1);
    let at = dice.roll(seq.len() - n);
    &seq[at..at + n]
}

/// Pairs: most of them proper; some on one strand, chimeric, random, of N, short, or without bases.
pub fn pairs(genome: &[(String, Vec<u8>)], n: usize, seed: u64) -> Vec<Read> {
    let mut dice = Dice(seed);
    let mut reads = Vec::new();
    for i in 0..n {
        let insert = 200 + (0..6).map(|_| dice.roll(70)).sum::<usize>();
        let fragment = place(&mut dice, genome, insert).to_vec();
        let mut mates = [fragment[..150].to_vec(), revcomp(&fragment[fragment.len() - 150..])];
        match dice.roll(60) {
            0 => mates[1] = place(&mut dice, genome, 150).to_vec(),
            1 => mates[1] = dice.bases(150),
            2 => mates = [dice.bases(150), dice.bases(120)],
            3 => mates[0] = [&mates[0][..90], &place(&mut dice, genome, 200)[..60]].concat(),
            4 => mates[dice.roll(2)] = vec![b'N'; 100],
            5 => mates[0].truncate([1, 18, 30, 45][dice.roll(4)]),
            6 => mates[dice.roll(2)].clear(),
            7 => mates[1] = revcomp(&mates[1]),
            8 => mates[0][40..43].fill(b'N'),
            _ => {}
        }
        let rate = [1000, 100, 30, 12][dice.roll(4)];
        let turned = dice.roll(2);
        for mate in 0..2 {
            let seq = dice.copy(&mates[mate ^ turned], rate);
            reads.push(read(&mut dice, &format!("p{i}"), seq));
        }
    }
    reads
}

/// Single reads of all lengths with distinct names.
pub fn singles(genome: &[(String, Vec<u8>)], seed: u64) -> Vec<Read> {
    let mut dice = Dice(seed);
    let mut reads: Vec<Read> = pairs(genome, 600, seed + 1);
    for n in [0, 1, 2, 18, 19, 20, 30, 31, 64, 324, 325, 326, 1000, 3000, 10_000, 30_000, 100_000] {
        for rate in [7, 50, 10_000] {
            let piece = place(&mut dice, genome, n).to_vec();
            let seq = dice.copy(&piece, rate);
            reads.push(read(&mut dice, "", if rate == 50 { revcomp(&seq) } else { seq }));
        }
    }
    // Reads with two or three parts of the genome, and random reads.
    for n in [120, 400, 5000] {
        let seq: Vec<u8> = (0..3).flat_map(|_| place(&mut dice, genome, n).to_vec()).collect();
        reads.push(read(&mut dice, "", seq));
        let seq = dice.bases(n);
        reads.push(read(&mut dice, "", seq));
    }
    reads.push(read(&mut dice, "", vec![b'N'; 151]));
    let piece = place(&mut dice, genome, 150).to_vec();
    let mut rna = read(&mut dice, "", piece);
    rna.seq.iter_mut().filter(|b| **b == b'T').for_each(|b| *b = b'U');
    reads.push(rna);
    for (i, read) in reads.iter_mut().enumerate() {
        read.name = format!("s{i}.{}{}", read.seq.len(), ["", "/1", "/2", "/3"][i % 4]);
    }
    reads
}

pub fn write_fastq<'r>(path: &Path, reads: impl Iterator<Item = &'r Read>) {
    let mut text = Vec::new();
    for read in reads {
        writeln!(text, "@{} {}", read.name, read.comment).unwrap();
        text.extend([&read.seq[..], b"\n+\n", &read.qual, b"\n"].concat());
    }
    fs::write(path, text).unwrap();
}

/// One file, or one for each mate.
pub fn write_reads(folder: &Path, reads: &[Read], layout: ReadLayout) -> Vec<PathBuf> {
    if layout != ReadLayout::Paired {
        let path = folder.join("reads.fq");
        write_fastq(&path, reads.iter());
        return vec![path];
    }
    let paths = ["reads_1.fq", "reads_2.fq"].map(|name| folder.join(name));
    for (mate, path) in paths.iter().enumerate() {
        write_fastq(path, reads.iter().skip(mate).step_by(2));
    }
    paths.to_vec()
}

/// Groups reads into blocks as the engine requires, each in batches of at most `templates` templates.
pub fn blocks(engine: &impl Engine, reads: &[Read], layout: ReadLayout, templates: usize) -> Vec<Vec<ReadBatch>> {
    let paired = layout != ReadLayout::Single;
    let limit = match engine.block_rule(layout) {
        BlockRule::EachBatch => None,
        BlockRule::MinBases(limit) => Some(limit),
    };
    let mut blocks: Vec<Vec<ReadBatch>> = Vec::new();
    let (mut complete, mut bases) = (true, 0);
    for template in reads.chunks(if paired { 2 } else { 1 }) {
        if complete {
            blocks.push(Vec::new());
            bases = 0;
        }
        let block = blocks.last_mut().unwrap();
        let full = |b: &ReadBatch| b.len() >= templates * template.len();
        if block.last().is_none_or(full) {
            let mut piece = ReadBatch::new();
            piece.is_paired = paired;
            block.push(piece);
        }
        for read in template {
            let Read { name, comment, seq, qual } = read;
            let (name, comment) = (name.as_bytes(), comment.as_bytes());
            block.last_mut().unwrap().push(ReadRef { name, comment, tags: b"", seq, qual });
            bases += read.seq.len() as u64;
        }
        complete = limit.is_some_and(|limit| bases >= limit);
    }
    blocks
}

/// The records of all blocks, made on this thread.
pub fn answer<E: Engine>(engine: &E, blocks: &[Vec<ReadBatch>]) -> Vec<u8> {
    let (mut state, mut drafts, mut out) = (engine.new_worker_state(), Vec::new(), Vec::new());
    for pieces in blocks {
        engine.align_block(&mut state, pieces, &mut drafts, &mut out).unwrap();
    }
    out
}

/// The records of all blocks, made on three threads; a batch is finished by another worker than the one that mapped
/// it.
pub fn answer_in_parallel<E: Engine>(engine: &E, blocks: &[Vec<ReadBatch>]) -> Vec<u8> {
    const WORKERS: usize = 3;
    let mut states: Vec<E::WorkerState> = (0..WORKERS).map(|_| engine.new_worker_state()).collect();
    let mut all = Vec::new();
    for pieces in blocks {
        let mut drafts: Vec<E::MappedBatch> = pieces.iter().map(|_| E::MappedBatch::default()).collect();
        let mut outs: Vec<Vec<u8>> = pieces.iter().map(|_| Vec::new()).collect();
        let estimate = std::cell::RefCell::new(None);
        for finishing in [false, true] {
            if finishing {
                *estimate.borrow_mut() = Some(engine.estimate_library(drafts.iter()));
            }
            let estimate = estimate.borrow();
            let estimate = estimate.as_ref();
            let mut shares: Vec<Vec<_>> = (0..WORKERS).map(|_| Vec::new()).collect();
            for (i, task) in pieces.iter().zip(&mut drafts).zip(&mut outs).enumerate() {
                shares[(i + usize::from(finishing)) % WORKERS].push(task);
            }
            std::thread::scope(|scope| {
                for (state, share) in states.iter_mut().zip(shares) {
                    scope.spawn(move || {
                        for ((reads, draft), out) in share {
                            match estimate {
                                None => engine.map_batch(state, reads, draft).unwrap(),
                                Some(estimate) => engine.write_records(state, reads, draft, estimate, out).unwrap(),
                            }
                        }
                    });
                }
            });
        }
        all.extend(outs.concat());
    }
    all
}

/// Records as SAM lines.
pub fn lines(engine: &impl Engine, bytes: &[u8]) -> Vec<String> {
    let mut text = Vec::new();
    for record in split_bam_records(bytes) {
        write_sam_line(record.unwrap(), engine.contigs(), &mut text).unwrap();
    }
    String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
}
