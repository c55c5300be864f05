//! minibwa as an engine.
//!
//! Records are those of `minibwa map` of the crate's version, with its defaults and with the options of [`Options`].
//! Two differences, because a record is a BAM record: a read of 0 bases has `*` for its bases where the command line prints
//! nothing (which is no SAM), and bases are upper case, of the 16 letters that BAM has.
//!
//! The index is two files: `PREFIX.l2b`, the sequences at 2 bits a base, and `PREFIX.mbw`, the Burrows-Wheeler transform of
//! both strands with a sampled suffix array: about 2.25 bytes a base in all. Loading reads them into memory
//! from C's allocator: two arrays hold nearly all, and each is touched first by the loading thread.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use genuma_reads::ReadBatch;
use genuma_reads::fasta::Reference;

use self::encode::{Format, Mapped, Mate};
use self::estimate::Distances;
use self::ffi::{Buffer, Hits, Index, Insert, Opts, PAIRED, Queries, Target};
use super::{Cut, Engine, Error, Layout, Limit, Program, Region, seal, with_added};
use crate::sam::Contigs;

mod ffi;
mod estimate;
mod encode;

/// Longest read (bp): C counts bases with 32 bits.
const LONGEST: usize = i32::MAX as usize;
/// Reads whose seeds minibwa looks up at once: 24 templates.
const TOGETHER: i32 = 24;
/// Bytes of the table of the 4^10 prefixes that loading makes.
const PREFIXES: u64 = 32 << 20;
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
    bytes: u64,
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

/// 64-bit numbers at the start of a file, and its size.
fn head<const N: usize>(path: &Path, magic: &[u8]) -> Result<([u64; N], u64), Error> {
    let mut file = File::open(path).map_err(Error::io(path))?;
    let size = file.metadata().map_err(Error::io(path))?.len();
    let mut numbers = [[0; 8]; N];
    let read = file.read_exact(numbers.as_flattened_mut());
    if read.is_err() || !numbers[0].starts_with(magic) {
        return Err(Error::Index { path: path.into(), what: "not an index of minibwa".into() });
    }
    Ok((numbers.map(u64::from_le_bytes), size))
}

/// Bytes of some arrays, each its number of items and their size; none if that is beyond all files.
fn sum(arrays: &[(u64, u64)]) -> Option<u64> {
    arrays.iter().try_fold(0u64, |sum, &(items, size)| sum.checked_add(items.checked_mul(size)?))
}

/// Whether both files are as long as their heads say and belong together; the C code would not notice. Gives their bytes.
fn check_sizes(prefix: &Path) -> Result<u64, Error> {
    let [l2b, mbw] = files(prefix);
    let wrong = |path: &Path, what: String| Error::Index { path: path.into(), what };
    let damaged = |path: &Path| wrong(path, "cut short or damaged".into());
    let ([_, contigs, bases, ambiguous, masked, names, comments, packed], size) = head(&l2b, b"L2B\x01")?;
    let before = sum(&[(1, 64), (contigs, 8), (ambiguous, 16), (masked, 16), (packed, 8)])
        .ok_or_else(|| damaged(&l2b))?;
    let texts = sum(&[(names, 1), (comments, 1)]).ok_or_else(|| damaged(&l2b))?;
    if before.checked_add(texts) != Some(size) || packed != bases.div_ceil(32) {
        return Err(damaged(&l2b));
    }
    // Each sequence has a name and a comment that end with NUL: the C code looks for those ends.
    let mut file = File::open(&l2b).map_err(Error::io(&l2b))?;
    file.seek(SeekFrom::Start(before)).map_err(Error::io(&l2b))?;
    for length in [names, comments] {
        let mut texts = Vec::new();
        Read::by_ref(&mut file).take(length).read_to_end(&mut texts).map_err(Error::io(&l2b))?;
        if memchr::memchr_iter(0, &texts).count() as u64 != contigs || texts.last().is_some_and(|&b| b != 0) {
            return Err(damaged(&l2b));
        }
    }
    // Magic and sample rate, place of the end, four cumulative counts.
    let ([first, end, counts @ .., length], other) = head::<6>(&mbw, b"MBW\x02")?;
    if end > length || ![&counts[..], &[length]].concat().is_sorted() {
        return Err(damaged(&mbw));
    }
    if bases.checked_mul(2) != Some(length) {
        return Err(wrong(&mbw, format!("not of the genome that {} has", l2b.display())));
    }
    // Blocks of 128 bases: 32 bytes of bases, 32 of counts; counts behind the last.
    let blocks = length.div_ceil(128);
    let samples = match first >> 32 {
        rate @ 0..32 => length.saturating_add(1 << rate) >> rate,
        _ => return Err(damaged(&mbw)),
    };
    if sum(&[(1, 48), (blocks, 64), (1, 32), (1, 8), (samples, 8)]) != Some(other) {
        return Err(damaged(&mbw));
    }
    Ok(size + other)
}

/// Builds the index of `reference` (FASTA, plain or gzip) at `prefix` and seals it. The files appear when all is complete.
///
/// Takes about 12 bytes of memory a base. The suffix array is sorted by one thread, whatever `threads`: the crate is
/// built without OpenMP.
///
/// # Errors
/// The processor is too old, the reference is no FASTA, or a file cannot be written.
pub fn build_index(reference: &Path, prefix: &Path, threads: usize) -> Result<(), Error> {
    check_processor()?;
    // The C code takes anything for FASTA, and aborts when it finds no bases.
    Reference::read(reference)
        .map_err(|e| Error::Reference { path: reference.into(), what: e.to_string() })
        .map(drop)?;
    let partial = with_added(prefix, "partial");
    let parts = files(&partial);
    let built = match Index::build(reference, &partial, threads) {
        // A full disk goes unnoticed by the C code.
        Some(()) => check_sizes(&partial).map(drop),
        None => Err(Error::Reference { path: reference.into(), what: "minibwa could not index it".into() }),
    };
    let renamed = built.and_then(|()| {
        for (from, to) in parts.iter().zip(files(prefix)) {
            fs::rename(from, &to).map_err(Error::io(&to))?;
        }
        seal::write(program(), reference, &files(prefix))
    });
    renamed.inspect_err(|_| {
        for part in &parts {
            // The error that matters is the first one.
            let _ = fs::remove_file(part);
        }
    })
}

impl Minibwa {
    /// Loads the index at `prefix`, made from `reference`, on the calling thread; `threads` more check its sums.
    ///
    /// An index made by `minibwa index` has no seal: then only its sizes are checked, and a warning says so.
    ///
    /// # Errors
    /// The processor is too old, there is no index, it is damaged, or it is not one of `reference` (if that file is there).
    pub fn load(prefix: &Path, reference: &Path, options: Options, threads: usize) -> Result<Self, Error> {
        check_processor()?;
        let files = files(prefix);
        if let Some(path) = files.iter().find(|f| !f.is_file()) {
            let (path, reference) = (path.clone(), reference.into());
            return Err(Error::NoIndex { path, engine: "minibwa", reference });
        }
        let size = check_sizes(prefix)?;
        if !seal::check(program(), reference, &files, threads)? {
            let path = seal::path(&files[0]);
            tracing::warn!("no {}: the bytes of the index are not checked", path.display());
        }
        let index = Index::load(prefix)
            .ok_or_else(|| Error::Index { path: files[1].clone(), what: "minibwa refuses it".into() })?;
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
        Ok(Minibwa { index, contigs, bytes: size + PREFIXES, options, opts, alone, mates })
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
        self.bytes
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
