//! The engine `minibwa`.
//!
//! Records are those of `minibwa map` in the crate's version, with its defaults and the options of [`Options`]. There
//! are two differences because records are BAM records: a read without bases has `*` as its bases, where the command
//! line prints nothing (which is invalid SAM), and bases are upper-case letters of the 16 that BAM has.
//!
//! The index consists of two files: `PREFIX.l2b`, the sequences at 2 bits per base, and `PREFIX.mbw`, the
//! Burrows-Wheeler transform of both strands with a sampled suffix array; about 2.25 bytes per base in total. Loading
//! reads them into memory (`index_files.rs`). Two arrays have nearly all of the memory; the loading thread touches
//! them first. Before the C code uses the index, the index is verified: by its [`seal`], or by `verify.rs` if there
//! is no seal.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use genuma_reads::ReadBatch;
use genuma_reads::fasta::Reference;

use self::ffi::{Hits, Index, InsertSizeRange, MappingOptions, MappingTarget, PAIR_MATES, QueryBatch, ThreadArena};
use self::index_files::{BurrowsWheelerTransform, PackedSequences};
use self::insert_size::InsertSizesByOrientation;
use self::records::{MappedRead, Mate, RecordFormat};
use super::seal::{self, Checksum, IndexSeal};
use super::{BlockLimit, BlockRule, Engine, Error, IndexArray, Program, ReadLayout, append_extension};
use crate::sam::Contigs;

mod build;
mod index_files;
mod verify;
mod ffi;
mod insert_size;
mod records;

pub use build::{build_index, index_memory};

/// Maximum read length (bp): the C code counts bases with 32 bits.
const MAX_READ_BP: usize = i32::MAX as usize;
/// Number of templates whose seeds minibwa looks up together.
const TEMPLATES_PER_SEED_LOOKUP: i32 = 24;
/// Minimum number of reads in a block of interleaved pairs (`min_read_cnt` in `map-main.c` of minibwa).
const MIN_INTERLEAVED_BLOCK_READS: u64 = 40_000;

/// Preset of minibwa for a kind of reads (`-x`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// Short and long reads, by the length of each read (`adap`, the default).
    #[default]
    Adaptive,
    /// Short reads (`sr`).
    Short,
    /// Long reads (`lr`), which are never paired.
    Long,
}

/// Options of minibwa's command line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// Preset for the kind of reads (`-x`).
    pub preset: Preset,
    /// Read group IDs of the lanes (`-R`); a lane without ID gets no `RG` tag.
    pub read_groups: Vec<String>,
    /// Maximum number of secondary records of a read (`--outn`).
    pub max_secondary: u32,
    /// Soft-clip supplementary records, so that they keep all bases (`-Y`).
    pub soft_clip_supplementary: bool,
    /// The segment that begins first in the read is the primary one (`-5`).
    pub leftmost_is_primary: bool,
    /// Append the comments of the reads, which must be SAM tags, to the records (`-y`).
    pub copy_comments: bool,
    /// Number of bases (bp) in a block of pairs (`-K`); `None` is minibwa's default.
    pub block_bases: Option<u64>,
}

/// The engine `minibwa` with its index in memory.
pub struct Minibwa {
    index: Index,
    contigs: Contigs,
    options: Options,
    opts: MappingOptions,
    /// The options with which single reads, and mates before pairing, are mapped separately.
    single_read_opts: MappingOptions,
    unpaired_mate_opts: MappingOptions,
}

/// Buffers of a worker.
pub struct WorkerState {
    arena: ThreadArena,
    queries: QueryBatch,
}

/// Hits of the reads of a batch, and the insert sizes of its uniquely placed pairs.
#[derive(Default)]
pub struct MappedBatch {
    hits: Hits,
    pairs: u64,
    insert_sizes: InsertSizesByOrientation,
}

/// Insert sizes by orientation: FF, FR, RF, RR.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LibraryEstimate([InsertSizeRange; 4]);

impl LibraryEstimate {
    /// Mean and standard deviation (bp) of the insert size of mates that face each other (FR); `None` if there are
    /// too few such pairs.
    pub fn forward_reverse_mean_sd(&self) -> Option<(f64, f64)> {
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

/// Checks that the processor has the instructions for which the C code is compiled. Otherwise the C code would end
/// the process without a message.
fn check_processor() -> Result<(), Error> {
    #[cfg(target_arch = "x86_64")]
    if !(is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("popcnt")) {
        return Err(Error::Processor { engine: "minibwa", needs: "SSE4.2 and POPCNT" });
    }
    Ok(())
}

/// Paths of the two files of the index at `prefix`.
fn index_files(prefix: &Path) -> [PathBuf; 2] {
    ["l2b", "mbw"].map(|extension| append_extension(prefix, extension))
}

/// Loads the index at `prefix` on the calling thread. Checks with `threads` threads that the index is complete and
/// belongs to `reference`, if that file exists.
fn load_index(prefix: &Path, reference: &Path, threads: usize) -> Result<Index, Error> {
    check_processor()?;
    let [l2b, mbw] = index_files(prefix);
    if let Some(path) = [&l2b, &mbw].into_iter().find(|f| !f.is_file()) {
        return Err(Error::NoIndex { path: path.clone(), engine: "minibwa", reference: reference.into() });
    }
    let seal = IndexSeal::read_seal(program(), &l2b)?;
    if let Some(seal) = &seal {
        seal.check_reference(reference, threads)?;
    }
    let check_whole = |file: &Path, bytes: &[u8]| match &seal {
        Some(seal) => seal.check_file(file, Checksum::from_bytes(bytes, threads)),
        None => Ok(()),
    };
    let sequences = PackedSequences::read_file(&l2b, |bytes| check_whole(&l2b, bytes))?;
    let transform = BurrowsWheelerTransform::read_file(&mbw, &sequences, |bytes| check_whole(&mbw, bytes))?;
    if seal.is_none() {
        let start = Instant::now();
        if reference.is_file() {
            verify::check_sequences(&sequences, &Reference::read(reference)?, threads)?;
        } else {
            verify::check_ambiguous_ranges(&sequences)?;
            tracing::warn!(
                "{} does not exist, so the index is used without comparing it with the reference: check that it is the index of \
                 your reference",
                reference.display()
            );
        }
        verify::check_transform(&transform, &sequences, threads)?;
        tracing::warn!(
            "{} is missing: the index was verified base by base, which took {:.1} s, and is right; an index built by `genuma index` \
             has this file and needs no such check",
            seal::seal_path(&l2b).display(),
            start.elapsed().as_secs_f64()
        );
    }
    Index::new(sequences, transform).map_err(Error::io(&mbw))
}

impl Minibwa {
    /// Loads the index at `prefix`, which was built from `reference`, on the calling thread; `threads` threads check
    /// it.
    ///
    /// An index made by `minibwa index` has no seal. Such an index is compared with the reference and verified base
    /// by base, which takes some CPU seconds per 100 Mbp; a warning reports that.
    ///
    /// # Errors
    /// The processor is too old; or the index is missing, cannot be read, is damaged, or is not the index of
    /// `reference` (if that file exists).
    pub fn load_index(prefix: &Path, reference: &Path, options: Options, threads: usize) -> Result<Self, Error> {
        let index = load_index(prefix, reference, threads)?;
        let contigs = Contigs::new(index.contigs());

        let mut opts = MappingOptions::new(match options.preset {
            Preset::Adaptive => None,
            Preset::Short => Some(ffi::SHORT_READ_PRESET),
            Preset::Long => Some(ffi::LONG_READ_PRESET),
        });
        let raw = opts.raw_options_mut();
        raw.out_n = options.max_secondary.min(i32::MAX as u32) as i32;
        raw.flag |= if options.soft_clip_supplementary { ffi::SOFT_CLIP_SUPPLEMENTARY } else { 0 };
        raw.flag |= if options.leftmost_is_primary { ffi::LEFTMOST_IS_PRIMARY } else { 0 };
        if let Some(bases) = options.block_bases {
            (raw.mb_size, raw.max_mb_size) = (bases as i64, bases as i64);
        }
        let mut alone = opts.clone();
        alone.raw_options_mut().flag &= !PAIR_MATES;
        // minibwa's command line counts templates, its library counts reads.
        alone.raw_options_mut().sb_seq = TEMPLATES_PER_SEED_LOOKUP;
        let mut mates = alone.clone();
        mates.raw_options_mut().sb_seq = 2 * TEMPLATES_PER_SEED_LOOKUP;
        Ok(Minibwa { index, contigs, options, opts, single_read_opts: alone, unpaired_mate_opts: mates })
    }
}

impl Engine for Minibwa {
    type WorkerState = WorkerState;
    type MappedBatch = MappedBatch;
    type LibraryEstimate = LibraryEstimate;

    fn program(&self) -> Program {
        program()
    }

    fn contigs(&self) -> &Contigs {
        &self.contigs
    }

    fn block_rule(&self, layout: ReadLayout) -> BlockRule {
        let opts = self.opts.raw_options();
        let (bases, most) = (opts.mb_size as u64, opts.max_mb_size.max(opts.mb_size) as u64);
        match layout {
            _ if opts.flag & PAIR_MATES == 0 => BlockRule::AnyBatch,
            ReadLayout::Single => BlockRule::AnyBatch,
            ReadLayout::Paired => {
                BlockRule::BlocksOfBatches(BlockLimit { min_bases: bases, min_reads: 0, max_bases: bases })
            }
            ReadLayout::Interleaved => BlockRule::BlocksOfBatches(BlockLimit {
                min_bases: bases,
                min_reads: MIN_INTERLEAVED_BLOCK_READS,
                max_bases: most,
            }),
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.index.memory_bytes()
    }

    fn index_arrays(&self) -> Vec<IndexArray<'_>> {
        let [transform, samples] = self.index.large_arrays();
        let region = |name, bytes| IndexArray { name, bytes };
        vec![region("transform", transform), region("suffix array", samples)]
    }

    fn new_state(&self) -> WorkerState {
        WorkerState { arena: ThreadArena::new(), queries: QueryBatch::default() }
    }

    fn map_batch(&self, state: &mut WorkerState, reads: &ReadBatch, mapped: &mut MappedBatch) -> Result<(), Error> {
        for read in reads.iter() {
            if memchr::memchr(0, read.name).is_some() {
                return Err(Error::read(read.name, "its name has a NUL byte"));
            }
            if read.seq.len() > MAX_READ_BP {
                return Err(Error::read(read.name, "longer than 2 Gbp"));
            }
        }
        let opts = if reads.is_paired { &self.unpaired_mate_opts } else { &self.single_read_opts };
        let queries = (0..reads.len()).map(|i| reads.read(i)).map(|read| (read.name, read.seq));
        let target = MappingTarget { index: &self.index, opts };
        state.queries.map_reads(target, &mut state.arena, queries, &mut mapped.hits);
        state.arena.shrink_memory(&self.opts);
        mapped.insert_sizes.iter_mut().for_each(Vec::clear);
        mapped.pairs = if reads.is_paired { reads.len() as u64 / 2 } else { 0 };
        for pair in 0..mapped.pairs as usize {
            let mates = [0, 1].map(|mate| mapped.hits.hits_of_read(2 * pair + mate));
            insert_size::add_pair(&mut mapped.insert_sizes, mates, &self.opts);
        }
        Ok(())
    }

    fn estimate_library<'d>(&self, batches: impl Iterator<Item = &'d MappedBatch>) -> LibraryEstimate {
        let (mut pairs, mut insert_sizes) = (0, InsertSizesByOrientation::default());
        for mapped in batches {
            pairs += mapped.pairs;
            for (all, some) in insert_sizes.iter_mut().zip(&mapped.insert_sizes) {
                all.extend_from_slice(some);
            }
        }
        LibraryEstimate(insert_size::estimate_insert_sizes(pairs, insert_sizes, &self.opts))
    }

    fn write_records(
        &self,
        state: &mut WorkerState,
        reads: &ReadBatch,
        mapped: &mut MappedBatch,
        estimate: &LibraryEstimate,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let group = self.options.read_groups.get(reads.lane_index as usize).map_or("", String::as_str);
        let format = RecordFormat {
            opts: &self.opts,
            contigs: &self.contigs,
            group: group.as_bytes(),
            comments: self.options.copy_comments,
            soft_clips: self.options.soft_clip_supplementary,
        };
        if reads.is_paired {
            let paired = self.opts.raw_options().flag & PAIR_MATES != 0;
            let target = MappingTarget { index: &self.index, opts: &self.opts };
            for first in (0..reads.len() & !1).step_by(2) {
                let mates = [reads.read(first), reads.read(first + 1)];
                if paired {
                    let seqs = mates.map(|m| m.seq);
                    let WorkerState { arena, queries } = state;
                    queries.pair_mates(target, arena, seqs, &estimate.0, &mut mapped.hits, first);
                }
                let mates = [0, 1].map(|i| MappedRead { read: mates[i], hits: mapped.hits.hits_of_read(first + i) });
                for i in 0..2 {
                    let mate = Mate { other: mates[1 - i], is_read2: i == 1 };
                    records::write_read_records(&format, mates[i], Some(mate), out)
                        .map_err(Error::record(mates[i].read.name))?;
                }
            }
        } else {
            for (i, read) in reads.iter().enumerate() {
                let this = MappedRead { read, hits: mapped.hits.hits_of_read(i) };
                records::write_read_records(&format, this, None, out).map_err(Error::record(read.name))?;
            }
        }
        mapped.hits.clear();
        state.arena.shrink_memory(&self.opts);
        Ok(())
    }
}
