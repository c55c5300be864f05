//! minibwa as an engine.
//!
//! Records are those of `minibwa map` of the crate's version, with its defaults and with the options of [`Options`].
//! Two differences, because a record is a BAM record: a read of 0 bases has `*` for its bases where the command line prints
//! nothing (which is no SAM), and bases are upper case, of the 16 letters that BAM has.
//!
//! The index is two files: `PREFIX.l2b`, the sequences at 2 bits a base, and `PREFIX.mbw`, the Burrows-Wheeler transform of
//! both strands with a sampled suffix array: about 2.25 bytes a base in all. Loading reads them into memory (`image.rs`): two
//! arrays hold nearly all, and each is touched first by the loading thread. Before the C code sees any of it, it is known to be
//! whole: by the sums of its [`seal`], which are taken of what is in memory, or by `proof.rs` where there is no seal.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use genuma_reads::ReadBatch;
use genuma_reads::fasta::Reference;

use self::encode::{Format, Mapped, Mate};
use self::estimate::Distances;
use self::ffi::{Buffer, Hits, Index, Insert, Opts, PAIRED, Queries, Target};
use self::image::{Sequences, Transform};
use super::seal::{self, Seal, Sum};
use super::{Cut, Engine, Error, Layout, Limit, Program, Region, with_added};
use crate::sam::Contigs;

mod build;
mod image;
mod proof;
mod ffi;
mod estimate;
mod encode;

pub use build::{build_index, index_memory};

/// Longest read (bp): C counts bases with 32 bits.
const LONGEST: usize = i32::MAX as usize;
/// Reads whose seeds minibwa looks up at once: 24 templates.
const TOGETHER: i32 = 24;
/// Reads that end a block of interleaved pairs at the earliest (`min_read_cnt` in its `map-main.c`).
const FEWEST_READS: u64 = 40_000;

/// What kind of reads it is tuned for: the presets of `-x`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// Short and long reads, each after its length (`adap`, the default).
    #[default]
    Adaptive,
    /// Short reads (`sr`).
    Short,
    /// Long reads (`lr`): never paired.
    Long,
}

/// Options of its command line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// Kind of reads (`-x`).
    pub preset: Preset,
    /// Identifiers of the read groups, lane by lane (`-R`); a lane without one has no `RG` tag.
    pub read_groups: Vec<String>,
    /// Secondary records of a read at most (`--outn`).
    pub secondary: u32,
    /// Supplementary records keep all bases (`-Y`).
    pub soft_clips: bool,
    /// The piece that begins first in the read is its primary one (`-5`).
    pub primary_first: bool,
    /// Comments of the reads, which must be tags, are copied (`-y`).
    pub comments: bool,
    /// Bases (bp) of a block of pairs (`-K`), if not the default.
    pub block: Option<u64>,
}

/// minibwa with an index in memory.
pub struct Minibwa {
    index: Index,
    contigs: Contigs,
    options: Options,
    opts: Opts,
    /// The same for mapping each read alone: single reads, and mates.
    alone: Opts,
    mates: Opts,
}

/// A worker's buffers.
pub struct State {
    buffer: Buffer,
    queries: Queries,
}

/// The hits of a piece, and what its pairs say of their distance.
#[derive(Default)]
pub struct Draft {
    hits: Hits,
    pairs: u64,
    distances: Distances,
}

/// Insert sizes by orientation: FF, FR, RF, RR.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate([Insert; 4]);

impl Estimate {
    /// Mean and standard deviation (bp) of the distance between mates that face each other, if there are enough of them.
    pub fn facing(&self) -> Option<(f64, f64)> {
        let insert = self.0[1];
        (insert.failed == 0).then_some((insert.mean, insert.deviation))
    }
}

fn version() -> &'static str {
    let version: &'static CStr = CStr::from_bytes_with_nul(minibwa_sys::MB_VERSION).unwrap_or_default();
    version.to_str().unwrap_or_default()
}

fn program() -> Program {
    Program { name: "minibwa", version: version() }
}

/// The C code is compiled for these instructions, and would end the process without a word.
fn check_processor() -> Result<(), Error> {
    #[cfg(target_arch = "x86_64")]
    if !(is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("popcnt")) {
        return Err(Error::Processor { engine: "minibwa", needs: "SSE4.2 and POPCNT" });
    }
    Ok(())
}

/// The two files of an index at `prefix`.
fn files(prefix: &Path) -> [PathBuf; 2] {
    ["l2b", "mbw"].map(|extension| with_added(prefix, extension))
}

/// Loads the index at `prefix` on the calling thread, and sees with `threads` threads that it is whole and of `reference`, if that is there.
fn open(prefix: &Path, reference: &Path, threads: usize) -> Result<Index, Error> {
    check_processor()?;
    let [l2b, mbw] = files(prefix);
    if let Some(path) = [&l2b, &mbw].into_iter().find(|f| !f.is_file()) {
        return Err(Error::NoIndex { path: path.clone(), engine: "minibwa", reference: reference.into() });
    }
    let seal = Seal::read(program(), &l2b)?;
    if let Some(seal) = &seal {
        seal.check_reference(reference, threads)?;
    }
    let whole = |file: &Path, bytes: &[u8]| match &seal {
        Some(seal) => seal.check(file, Sum::of_bytes(bytes, threads)),
        None => Ok(()),
    };
    let sequences = Sequences::read(&l2b, |bytes| whole(&l2b, bytes))?;
    let transform = Transform::read(&mbw, &sequences, |bytes| whole(&mbw, bytes))?;
    if seal.is_none() {
        let start = Instant::now();
        if reference.is_file() {
            proof::is_of(&sequences, &Reference::read(reference)?, threads)?;
        } else {
            proof::is_sound(&sequences)?;
            tracing::warn!("{} is not there: its index is not compared with it", reference.display());
        }
        proof::is_transform(&transform, &sequences, threads)?;
        tracing::warn!(
            "no {}: the index was proven base by base, which took {:.1} s; `genuma index` makes one that has it",
            seal::path(&l2b).display(),
            start.elapsed().as_secs_f64()
        );
    }
    Index::new(sequences, transform).map_err(Error::io(&mbw))
}

impl Minibwa {
    /// Loads the index at `prefix`, made from `reference`, on the calling thread; `threads` more check it.
    ///
    /// An index made by `minibwa index` has no seal: then it is compared with the reference and proven from first principles, which takes some
    /// CPU seconds for 100 Mbp, and a warning says so.
    ///
    /// # Errors
    /// The processor is too old, there is no index, it cannot be read, is damaged, or not one of `reference` (if that file is there).
    pub fn load(prefix: &Path, reference: &Path, options: Options, threads: usize) -> Result<Self, Error> {
        let index = open(prefix, reference, threads)?;
        let contigs = Contigs::new(index.contigs());

        let mut opts = Opts::new(match options.preset {
            Preset::Adaptive => None,
            Preset::Short => Some(ffi::SHORT),
            Preset::Long => Some(ffi::LONG),
        });
        let raw = opts.raw();
        raw.out_n = options.secondary.min(i32::MAX as u32) as i32;
        raw.flag |= if options.soft_clips { ffi::SOFT_CLIPS } else { 0 };
        raw.flag |= if options.primary_first { ffi::PRIMARY_FIRST } else { 0 };
        if let Some(bases) = options.block {
            (raw.mb_size, raw.max_mb_size) = (bases as i64, bases as i64);
        }
        let mut alone = opts.clone();
        alone.raw().flag &= !PAIRED;
        // Its command line counts templates, the library reads.
        alone.raw().sb_seq = TOGETHER;
        let mut mates = alone.clone();
        mates.raw().sb_seq = 2 * TOGETHER;
        Ok(Minibwa { index, contigs, options, opts, alone, mates })
    }
}

impl Engine for Minibwa {
    type State = State;
    type Draft = Draft;
    type Estimate = Estimate;

    fn program(&self) -> Program {
        program()
    }

    fn contigs(&self) -> &Contigs {
        &self.contigs
    }

    fn cut(&self, layout: Layout) -> Cut {
        let opts = self.opts.get();
        let (bases, most) = (opts.mb_size as u64, opts.max_mb_size.max(opts.mb_size) as u64);
        match layout {
            _ if opts.flag & PAIRED == 0 => Cut::Anywhere,
            Layout::Single => Cut::Anywhere,
            Layout::Paired => Cut::Blocks(Limit { bases, reads: 0, most: bases }),
            Layout::Interleaved => Cut::Blocks(Limit { bases, reads: FEWEST_READS, most }),
        }
    }

    fn bytes(&self) -> u64 {
        self.index.bytes()
    }

    fn regions(&self) -> Vec<Region<'_>> {
        let [transform, samples] = self.index.arrays();
        let region = |name, bytes| Region { name, bytes };
        vec![region("transform", transform), region("suffix array", samples)]
    }

    fn state(&self) -> State {
        State { buffer: Buffer::new(), queries: Queries::default() }
    }

    fn map(&self, state: &mut State, reads: &ReadBatch, draft: &mut Draft) -> Result<(), Error> {
        for read in reads.iter() {
            if memchr::memchr(0, read.name).is_some() {
                return Err(Error::read(read.name, "its name has a NUL byte"));
            }
            if read.seq.len() > LONGEST {
                return Err(Error::read(read.name, "longer than 2 Gbp"));
            }
        }
        let opts = if reads.paired { &self.mates } else { &self.alone };
        let queries = (0..reads.len()).map(|i| reads.read(i)).map(|read| (read.name, read.seq));
        let target = Target { index: &self.index, opts };
        state.queries.map(target, &mut state.buffer, queries, &mut draft.hits);
        state.buffer.shrink(&self.opts);
        draft.distances.iter_mut().for_each(Vec::clear);
        draft.pairs = if reads.paired { reads.len() as u64 / 2 } else { 0 };
        for pair in 0..draft.pairs as usize {
            let mates = [0, 1].map(|mate| draft.hits.of(2 * pair + mate));
            estimate::add(&mut draft.distances, mates, &self.opts);
        }
        Ok(())
    }

    fn estimate<'d>(&self, drafts: impl Iterator<Item = &'d Draft>) -> Estimate {
        let (mut pairs, mut distances) = (0, Distances::default());
        for draft in drafts {
            pairs += draft.pairs;
            for (all, some) in distances.iter_mut().zip(&draft.distances) {
                all.extend_from_slice(some);
            }
        }
        Estimate(estimate::inserts(pairs, distances, &self.opts))
    }

    fn finish(
        &self,
        state: &mut State,
        reads: &ReadBatch,
        draft: &mut Draft,
        estimate: &Estimate,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let group = self.options.read_groups.get(reads.lane as usize).map_or("", String::as_str);
        let format = Format {
            opts: &self.opts,
            contigs: &self.contigs,
            group: group.as_bytes(),
            comments: self.options.comments,
            soft_clips: self.options.soft_clips,
        };
        if reads.paired {
            let paired = self.opts.get().flag & PAIRED != 0;
            let target = Target { index: &self.index, opts: &self.opts };
            for first in (0..reads.len() & !1).step_by(2) {
                let mates = [reads.read(first), reads.read(first + 1)];
                if paired {
                    let seqs = mates.map(|m| m.seq);
                    let State { buffer, queries } = state;
                    queries.pair(target, buffer, seqs, &estimate.0, &mut draft.hits, first);
                }
                let mates = [0, 1].map(|i| Mapped { read: mates[i], hits: draft.hits.of(first + i) });
                for i in 0..2 {
                    let mate = Mate { other: mates[1 - i], second: i == 1 };
                    encode::read(&format, mates[i], Some(mate), out)
                        .map_err(Error::record(mates[i].read.name))?;
                }
            }
        } else {
            for (i, read) in reads.iter().enumerate() {
                let this = Mapped { read, hits: draft.hits.of(i) };
                encode::read(&format, this, None, out).map_err(Error::record(read.name))?;
            }
        }
        draft.hits.clear();
        state.buffer.shrink(&self.opts);
        Ok(())
    }
}
