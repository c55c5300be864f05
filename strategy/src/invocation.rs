//! An aligner's command line, understood: which of its words are reads, index, threads and output.

use std::ffi::OsString;
use std::path::PathBuf;

/// A command line with its reads, threads and output taken out, so that several instances of it may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// The program's name as genuma knows it, such as `bwa mem`; the file name of an unknown program.
    pub aligner: String,
    /// The words of the command, the program first.
    pub words: Vec<Word>,
    /// The reads it was given.
    pub reads: Reads,
    /// Threads that it was given, if it says.
    pub threads: Option<usize>,
    /// Its index, if known.
    pub index: Option<Index>,
    /// Where its output goes.
    pub output: Output,
    /// What its output is.
    pub format: Format,
    /// What its answer for a read depends on besides the read.
    pub depends: Depends,
    /// Whether its plain run gives the same records in the same order each time.
    pub determinism: Determinism,
}

/// A word of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Always the same.
    Plain(OsString),
    /// The number of threads, with what stands around it (such as `-t` glued to it).
    Threads {
        /// What stands before the number in the same word.
        before: String,
        /// What stands behind it.
        after: String,
    },
    /// The file of reads, or of read 1 of pairs.
    Reads1,
    /// The file of read 2.
    Reads2,
    /// Bases (bp) of a block of reads; see [`Depends::Blocks`].
    Block {
        /// What stands before the number in the same word.
        before: String,
    },
}

/// Reads of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reads {
    /// No mates.
    Single(Vec<PathBuf>),
    /// Read 1 and read 2 in two files, lane by lane.
    Paired(Vec<[PathBuf; 2]>),
    /// Mates in turn.
    Interleaved(Vec<PathBuf>),
}

/// The index of an aligner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Its files.
    pub files: Vec<PathBuf>,
    /// How it comes into memory.
    pub loading: Loading,
}

/// How an index comes into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// Each process reads it into memory of its own, which follows the process's policy.
    Private,
    /// Mapped from the file: its pages are where the page cache put them.
    Mapped,
}

/// Where output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// To standard output.
    Stdout,
    /// The command line named a file; instances write to standard output instead.
    File(PathBuf),
}

/// What an aligner writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// SAM text.
    Sam,
    /// bwa aln's suffix array intervals (`.sai`).
    Sai,
}

/// What an aligner's answer for a read depends on, besides that read and its mate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depends {
    /// Nothing: reads may be dealt as one likes.
    Nothing,
    /// The reads of its block: a block ends where it has that many bases (bp).
    Blocks {
        /// Bases for each thread of the plain run, or in all.
        bases: u64,
        /// Whether ties are broken by the read's number in the input, so that an instance must count those it did not get.
        numbered: bool,
    },
    /// All reads before it: one instance only.
    Everything,
}

/// Whether a plain run repeats itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Determinism {
    /// The same bytes each time.
    Exact,
    /// The same records in an order that depends on timing.
    Unordered,
    /// Records depend on timing; why.
    Loose(String),
}
