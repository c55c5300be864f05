//! An aligner's command line, understood: which of its words are reads, index, threads and output.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use genuma_reads::{Aligned, AlignedOptions};

/// A command line with its reads, threads and output taken out, so that several instances of it may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// The program's name as genuma knows it, such as `bwa mem`; the file name of an unknown program.
    pub aligner: String,
    /// The command as it was given, `{threads}` and the like still in it.
    pub given: Vec<OsString>,
    /// The words of an instance's command, the program first. It writes to standard output.
    pub words: Vec<Word>,
    /// The reads it was given.
    pub reads: Reads,
    /// How files of aligned reads (BAM, CRAM, CBQ) among them are read.
    pub aligned: AlignedOptions,
    /// How an instance takes its reads.
    pub feed: Feed,
    /// Whether it takes reads without mates among mates in turn, by their names.
    pub(crate) strays: bool,
    /// Threads that it was given; none if it says nothing or `{threads}`, so that genuma chooses.
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
    /// In which order an instance writes its records.
    pub order: Order,
}

/// A word of an instance's command line: pieces without space between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word(pub Vec<Piece>);

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Always the same.
    Text(OsString),
    /// The number of threads.
    Threads,
    /// The file of reads, or of read 1 of pairs.
    Reads1,
    /// The file of read 2.
    Reads2,
    /// Bases (bp) of a block of reads; see [`Depends::Blocks`].
    Block,
}

/// Reads of a command line. A file named `-` is standard input. Files of aligned reads (BAM, CRAM, CBQ) may stand wherever a file of all reads of a
/// lane may: with their mates, except in [`Reads::Single`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reads {
    /// It names none: genuma's own options do. See [`Invocation::with_reads`].
    Unnamed,
    /// No mates.
    Single(Vec<PathBuf>),
    /// Read 1 and read 2 in two files, lane by lane.
    Paired(Vec<[PathBuf; 2]>),
    /// Mates in turn.
    Interleaved(Vec<PathBuf>),
    /// The aligner itself looks: neighbours of one name are mates, others single reads. Never deal mates apart.
    Mixed(Vec<PathBuf>),
}

/// How an instance takes its reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// From standard input: single reads, or mates in turn. Its command has no word for reads.
    Stdin,
    /// From one file, which may be a pipe: single reads, or mates in turn.
    One,
    /// From two files, which may be pipes: read 1 and read 2.
    Two,
}

/// The index of an aligner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Its files.
    pub files: Vec<PathBuf>,
    /// How it comes into memory.
    pub loading: Loading,
    /// The command that makes it, for messages; none if the file is not made by the aligner.
    pub made_by: Option<String>,
}

/// How an index comes into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// Each process reads it into memory of its own, which follows the process's policy.
    Private,
    /// Mapped from the file: its pages are where the page cache put them.
    Mapped,
    /// Each process makes it anew from the sequences, in memory of its own.
    Built,
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
    /// bwa aln's suffix array intervals (`.sai`): 68 bytes of options, of which 4 from byte 56 on are the number of threads, then
    /// reads in their order.
    Sai,
}

/// What an aligner's answer for a read depends on, besides that read and its mate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depends {
    /// Nothing: reads may be dealt as one likes.
    Nothing,
    /// The reads of its block: a block ends behind the first pair (or read) at which it has that many bases (bp).
    Blocks {
        /// Bases of a block.
        bases: u64,
        /// Whether that is for each thread of the plain run, not in all. So only if genuma chooses the threads.
        per_thread: bool,
        /// Whether a block ends at an even number of reads even if they are single.
        even: bool,
        /// Fewest reads of a block.
        least_reads: u64,
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
    /// Records depend on timing, or on which reads an instance gets; why.
    Loose(String),
}

/// In which order an instance writes its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As its reads came.
    AsRead,
    /// As its reads came if it has one thread, else by timing.
    AsReadByOneThread,
}

/// A command that cannot be run as it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such program.
    #[error("{program}: no such program on PATH; install it or write its full path")]
    NotInstalled {
        /// Its name.
        program: String,
    },
    /// A file of the index is not there.
    #[error("{path}: the index of {aligner} is missing{}", made_by.as_ref().map(|c| format!("; make it with '{c}'")).unwrap_or_default())]
    NoIndex {
        /// The aligner.
        aligner: String,
        /// The file.
        path: String,
        /// The command that makes it.
        made_by: Option<String>,
    },
    /// Reads are named twice or not at all.
    #[error("{aligner}: {why}")]
    Reads {
        /// The aligner.
        aligner: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// An option that several instances cannot have, or that is not known.
    #[error("{aligner}: {option}: {why}")]
    Refused {
        /// The aligner.
        aligner: String,
        /// The option, as it was written.
        option: String,
        /// Why, and what to do instead.
        why: String,
    },
    /// The command line is not one of the aligner's.
    #[error("{aligner}: {why}")]
    Usage {
        /// The aligner.
        aligner: String,
        /// What is wrong.
        why: String,
    },
    /// A file cannot be looked at.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Word {
    /// A word that is always the same.
    pub fn plain(word: impl Into<OsString>) -> Word {
        Word(vec![Piece::Text(word.into())])
    }
}

impl Depends {
    /// Bases (bp) of a block of the plain run with so many threads, if it works in blocks.
    pub fn block(self, threads: usize) -> Option<u64> {
        match self {
            Depends::Blocks { bases, per_thread: true, .. } => Some(bases.saturating_mul(threads as u64)),
            Depends::Blocks { bases, .. } => Some(bases),
            Depends::Nothing | Depends::Everything => None,
        }
    }
}

impl Index {
    /// Bytes of its files.
    ///
    /// # Errors
    /// A file cannot be looked at.
    pub fn bytes(&self) -> Result<u64, Error> {
        let bytes = |path: &PathBuf| {
            let io = |source| Error::Io { path: path.display().to_string(), source };
            fs::metadata(path).map(|m| m.len()).map_err(io)
        };
        self.files.iter().map(bytes).sum()
    }
}

impl Invocation {
    /// The command of one instance with so many `threads`. `reads` are the files or pipes it reads: none, one or two, as
    /// [`Invocation::feed`] says. `block` is what [`Depends::block`] says of the plain run; 0 where it says nothing.
    pub fn command(&self, threads: usize, block: u64, reads: &[&Path]) -> Vec<OsString> {
        let read = |n: usize| reads.get(n).map_or(OsStr::new("-"), |path| path.as_os_str());
        let word = |word: &Word| {
            word.0.iter().fold(OsString::new(), |mut text, piece| {
                match piece {
                    Piece::Text(plain) => text.push(plain),
                    Piece::Threads => text.push(threads.to_string()),
                    Piece::Reads1 => text.push(read(0)),
                    Piece::Reads2 => text.push(read(1)),
                    Piece::Block => text.push(block.to_string()),
                }
                text
            })
        };
        self.words.iter().map(word).collect()
    }

    /// The same with `reads` that the command line does not name.
    ///
    /// # Errors
    /// The command line names reads itself, or takes pairs from two files where `reads` are not.
    pub fn with_reads(mut self, reads: Reads) -> Result<Invocation, Error> {
        let wrong = |why: &str| Err(Error::Reads { aligner: self.aligner.clone(), why: why.to_owned() });
        if self.reads != Reads::Unnamed {
            return wrong("the command names its reads; leave --reads away");
        }
        match (&reads, self.feed) {
            (Reads::Unnamed, _) => return wrong("no reads; name them with --reads"),
            (Reads::Single(_), Feed::Two) => {
                return wrong("{reads1} and {reads2} stand for mates; name two files of reads for each lane");
            }
            _ => {}
        }
        self.reads = reads;
        Ok(self)
    }

    /// The same with files of aligned reads among its reads read as `options` say.
    ///
    /// # Errors
    /// Such a file stands for one mate of a lane: it holds both.
    pub fn with_aligned(mut self, options: AlignedOptions) -> Result<Invocation, Error> {
        if let Reads::Paired(lanes) = &self.reads
            && let Some(file) = lanes.iter().flatten().find(|file| Aligned::is(file))
        {
            let why = format!(
                "{}: holds both mates: name it alone, where the aligner takes one file with mates in turn (-p of bwa mem, --interleaved of bowtie2)",
                file.display()
            );
            return Err(Error::Reads { aligner: self.aligner, why });
        }
        self.aligned = options;
        Ok(self)
    }

    /// Whether its program is installed and its index is there.
    ///
    /// # Errors
    /// Says what is missing.
    pub fn check(&self) -> Result<(), Error> {
        let program = self.given.first().map(OsString::as_os_str).unwrap_or_default();
        if find(program).is_none() {
            return Err(Error::NotInstalled { program: program.to_string_lossy().into_owned() });
        }
        let Some(index) = &self.index else { return Ok(()) };
        match index.files.iter().find(|path| !path.exists()) {
            None => Ok(()),
            Some(path) => Err(Error::NoIndex {
                aligner: self.aligner.clone(),
                path: path.display().to_string(),
                made_by: index.made_by.clone(),
            }),
        }
    }
}

/// Where a program is: a path as it is, a bare name on `PATH`.
fn find(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return path.is_file().then(|| path.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
