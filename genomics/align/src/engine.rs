//! Aligners as engines: reads of a batch → alignment records, the same as the aligner's own command line writes.
//!
//! An engine knows nothing of threads. Whoever drives it (a farm, or one thread) gives each worker a
//! [`Engine::State`], cuts the reads as the engine's [`Cut`] says, and calls three functions:
//!
//! 1. [`Engine::map`], on any worker, for each *piece* (some consecutive reads: a [`ReadBatch`]): every read alone.
//!    What it finds stays in a [`Engine::Draft`].
//! 2. [`Engine::estimate`], once for each *block* (some consecutive pieces), when all its drafts are there: what the
//!    block says of its library, above all of the distance between mates. This is the only barrier, and it is cheap.
//! 3. [`Engine::finish`], on any worker, for each piece with the block's estimate: pairs mates, looks for lost ones, and
//!    appends the records.
//!
//! ```text
//!            piece 1 -> map -> draft 1 -.             .-> finish -> records 1
//!   block    piece 2 -> map -> draft 2 --+- estimate -+-> finish -> records 2
//!            piece 3 -> map -> draft 3 -'             '-> finish -> records 3
//! ```
//!
//! Workers need not wait at the barrier: they map pieces of the next block meanwhile. Two blocks under way are enough.
//!
//! Where blocks begin and end changes the answers, because the estimate is that of the block, so their limits are
//! the engine's ([`Limit`]): those at which its own command line cuts the same input. How a block is divided into
//! pieces changes nothing. Blocks never reach over the end of a lane. So the records depend on the reads of a lane
//! and on nothing else: not on threads, pieces or placement.
//!
//! | engine | block | a block's reads depend on each other by | pieces of a block |
//! |---|---|---|---|
//! | minibwa, paired, two files | 100 Mbp | insert sizes, estimated from all pairs of the block | any number |
//! | minibwa, paired, one file | 100 Mbp and 40,000 reads, or 1 Gbp | the same | any number |
//! | minibwa, single | – | nothing | any number |
//! | strobealign | more than 1 Mbp | random numbers, and insert sizes learnt pair by pair | one |
//!
//! Records are BAM records back to back, each with its `block_size` (see [`crate::sam`]), reads in input order, the other
//! records of a read right behind its first.

use std::ops::Range;
use std::path::{Path, PathBuf};

use genuma_reads::ReadBatch;
use genuma_work::parallel;

use crate::sam::{self, Contigs};

pub mod seal;
mod image;
pub mod genuma;
pub mod minibwa;
pub mod strobealign;

pub use genuma::Genuma;
pub use minibwa::Minibwa;
pub use strobealign::Strobealign;

/// What can go wrong while an index is made or loaded, or reads are mapped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reference cannot be read, or a file of the index not be written; the message names it.
    #[error(transparent)]
    File(#[from] genuma_reads::Error),
    /// A file of the index cannot be published.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's own words.
        source: std::io::Error,
    },
    /// The engine's instructions are not those of this processor.
    #[error("{engine} needs a processor with {needs}; choose another engine")]
    Processor {
        /// The engine.
        engine: &'static str,
        /// The instructions that it needs.
        needs: &'static str,
    },
    /// There is no index.
    #[error("{path}: no index; make it with `genuma index --engine {engine} {reference}`")]
    NoIndex {
        /// The file that is missing.
        path: PathBuf,
        /// The engine that needs it.
        engine: &'static str,
        /// What to index.
        reference: PathBuf,
    },
    /// The index is damaged, or not that of the reference.
    #[error("{path}: {what}; make the index again with `genuma index`")]
    Index {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The reference cannot be indexed or read.
    #[error("{path}: {what}")]
    Reference {
        /// The FASTA file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A read that the engine cannot map, or whose record BAM cannot hold.
    #[error("read {name}: {what}")]
    Read {
        /// Its name.
        name: String,
        /// What is wrong with it.
        what: String,
    },
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
        move |source| Error::Io { path: path.to_path_buf(), source }
    }

    fn read(name: &[u8], what: impl ToString) -> Error {
        let name = match name {
            [] => "without a name".to_owned(),
            _ => String::from_utf8_lossy(name).into_owned(),
        };
        Error::Read { name, what: what.to_string() }
    }

    fn record(name: &[u8]) -> impl FnOnce(sam::Error) -> Error + '_ {
        move |what| Error::read(name, what)
    }
}

/// How the reads of a lane come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Every read is a template.
    Single,
    /// Mates from two files.
    Paired,
    /// Mates that alternate in one file.
    Interleaved,
}

/// Where a block ends: behind the first template with which it holds `bases` and `reads`, or `most` bases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Bases (bp).
    pub bases: u64,
    /// Reads: a pair is two.
    pub reads: u64,
    /// Bases (bp) that end it however few the reads.
    pub most: u64,
}

impl Limit {
    /// Whether a block that ends with a whole template and holds that much is complete.
    pub fn reached(&self, bases: u64, reads: u64) -> bool {
        (bases >= self.bases && reads >= self.reads) || bases >= self.most
    }
}

/// How the reads of a lane may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// No read depends on another: each piece is a block of its own, of any size.
    Anywhere,
    /// Into blocks, and each block into any number of pieces.
    Blocks(Limit),
    /// Into blocks of one piece each: the reads of a block are mapped in their order.
    Whole(Limit),
}

/// The `@PG` line's words of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// `ID` and `PN`.
    pub name: &'static str,
    /// `VN`.
    pub version: &'static str,
}

/// A large array of a loaded index, for placing and for asking where its pages are.
#[derive(Debug, Clone, Copy)]
pub struct Region<'a> {
    /// What it is.
    pub name: &'static str,
    /// Its memory.
    pub bytes: &'a [u8],
}

/// An aligner with its index in memory, shared by all workers.
///
/// The index is loaded by the thread that calls the engine's `load`, and each large array is touched first by that thread,
/// so its memory policy decides where the pages go. An engine may be loaded more than once: one copy for each node.
pub trait Engine: Send + Sync {
    /// What a worker keeps between batches: buffers. One for each worker.
    type State: Send;
    /// What [`Engine::map`] leaves for [`Engine::finish`]. Recycled: each `map` forgets what the last one left.
    type Draft: Default + Send;
    /// What a block says of its library.
    type Estimate: Send + Sync;

    /// Its words for the header.
    fn program(&self) -> Program;

    /// The sequences of the reference, in the order of the `@SQ` lines.
    fn contigs(&self) -> &Contigs;

    /// How reads that come like that must be cut.
    fn cut(&self, layout: Layout) -> Cut;

    /// Memory of the index (bytes).
    fn bytes(&self) -> u64;

    /// The large arrays of the index, those that the engine's crate shows.
    fn regions(&self) -> Vec<Region<'_>>;

    /// What a new worker needs.
    fn state(&self) -> Self::State;

    /// Maps each read of a piece alone.
    ///
    /// # Errors
    /// A read that the engine cannot map.
    fn map(&self, state: &mut Self::State, reads: &ReadBatch, draft: &mut Self::Draft) -> Result<(), Error>;

    /// What the drafts of a whole block, in order, say of its library.
    fn estimate<'d>(&self, drafts: impl Iterator<Item = &'d Self::Draft>) -> Self::Estimate
    where
        Self::Draft: 'd;

    /// Pairs the mates of a piece and appends all its records to `out`.
    ///
    /// # Errors
    /// A record that BAM cannot hold; `out` then ends with part of the piece.
    fn finish(
        &self,
        state: &mut Self::State,
        reads: &ReadBatch,
        draft: &mut Self::Draft,
        estimate: &Self::Estimate,
        out: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// What a worker left out so far, by kind: how many of its reads have places that were not looked at or not kept. `reads` is those of any kind.
    fn left_out(&self, _state: &Self::State) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// A block from its pieces, on the calling thread: what a farm does with many.
    ///
    /// `drafts` grows to one for each piece and is there to be used again.
    ///
    /// # Errors
    /// Those of [`Engine::map`] and [`Engine::finish`].
    fn block(
        &self,
        state: &mut Self::State,
        pieces: &[ReadBatch],
        drafts: &mut Vec<Self::Draft>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        drafts.resize_with(pieces.len().max(drafts.len()), Default::default);
        let drafts = &mut drafts[..pieces.len()];
        for (reads, draft) in pieces.iter().zip(&mut *drafts) {
            self.map(state, reads, draft)?;
        }
        let estimate = self.estimate(drafts.iter());
        for (reads, draft) in pieces.iter().zip(drafts) {
            self.finish(state, reads, draft, &estimate, out)?;
        }
        Ok(())
    }
}

/// `prefix` with `.extension` behind all it has.
fn with_added(prefix: &Path, extension: &str) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// Does `work` on `0..size`, a stretch at a time, by `threads` threads; gives what it made in order, or the first error that one had.
fn in_stretches<T: Send, E: Send>(
    size: u64,
    stretch: u64,
    threads: usize,
    work: impl Fn(Range<u64>) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let from = |i: usize| i as u64 * stretch;
    let stretches = size.div_ceil(stretch) as usize;
    parallel::try_in_order(stretches, threads, || (), |(), i| work(from(i)..size.min(from(i + 1))))
}
