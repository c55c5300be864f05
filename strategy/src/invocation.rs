//! A parsed aligner command line: which words are reads, index, threads and output.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use genuma_reads::{AlignedInput, AlignedOptions};

/// A command line without its reads, threads and output, so that several instances can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// Name of the aligner as genuma uses it, such as `bwa mem`; the file name of an unknown program.
    pub aligner: String,
    /// Words of the command line as the user wrote it, with placeholders such as `{threads}`.
    pub given: Vec<OsString>,
    /// Words of an instance's command line, the program first. The instance writes to standard output.
    pub words: Vec<CommandWord>,
    /// The reads that the command line names.
    pub reads: ReadFiles,
    /// Options for reading the BAM, CRAM and BINSEQ files among the reads.
    pub aligned: AlignedOptions,
    /// How an instance reads its input.
    pub feed: ReadInputMode,
    /// Whether the aligner accepts unpaired reads in an interleaved file, recognised by their names.
    pub(crate) unpaired_in_interleaved: bool,
    /// Number of threads in the command line; `None` if it is missing or `{threads}`, so that genuma chooses. 1 for a
    /// known program without an option for threads, and for an unknown program without `{threads}`.
    pub threads: Option<usize>,
    /// The index that the aligner loads; `None` if genuma does not know it, as for an unknown program.
    pub index: Option<AlignerIndex>,
    /// Where the command would write its records if genuma did not run it.
    pub output: OutputTarget,
    /// Output format of the aligner.
    pub format: OutputFormat,
    /// Which other reads, besides its mate, can change the result for a read.
    pub depends: ReadDependence,
    /// Whether repeated plain runs give the same records in the same order.
    pub determinism: Determinism,
    /// Order in which an instance writes its records.
    pub order: RecordOrder,
}

/// One word of an instance's command line, made of fixed text and placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandWord(pub Vec<WordPart>);

/// A part of a word of an instance's command line: fixed text, or a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPart {
    /// Text that is the same for all instances.
    Text(OsString),
    /// Replaced by the number of threads of the instance.
    Threads,
    /// Replaced by the file of the reads, or of read 1 of pairs.
    Reads1,
    /// Replaced by the file of read 2 of pairs.
    Reads2,
    /// Replaced by the number of bases (bp) of a block of reads; see [`ReadDependence::Blocks`].
    BlockBases,
}

/// Read files of a command line; `-` is standard input. A BAM, CRAM or BINSEQ file may take the place of any file that has
/// all reads of a lane; its mates are paired, except in [`ReadFiles::Single`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadFiles {
    /// The command line names no reads; genuma's own options do. See [`Invocation::with_reads`].
    Unnamed,
    /// Files of single reads, one per lane.
    Single(Vec<PathBuf>),
    /// Read 1 and read 2 in two files per lane.
    Paired(Vec<[PathBuf; 2]>),
    /// Files in which read 1 and read 2 of each pair alternate.
    Interleaved(Vec<PathBuf>),
    /// Adjacent reads with the same name are mates, others are single reads. Mates must not be separated.
    Mixed(Vec<PathBuf>),
}

/// How an instance reads its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadInputMode {
    /// Standard input: single or interleaved reads. The command line has no word for reads.
    Stdin,
    /// One file or pipe with single or interleaved reads.
    OneFile,
    /// Two files or pipes, one with read 1 and one with read 2 of each pair.
    TwoFiles,
}

/// The index that the command names: its files, and how they are loaded into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlignerIndex {
    /// Files that the aligner loads into memory.
    pub files: Vec<PathBuf>,
    /// How the index is loaded into memory.
    pub loading: IndexLoading,
    /// Command that builds the index, for messages; `None` if the aligner also accepts a reference instead.
    pub made_by: Option<String>,
}

/// How an index is loaded into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexLoading {
    /// Each process reads the index into its own memory, and its memory policy places the pages.
    Private,
    /// The index file is memory-mapped: its pages are in the page cache, which all processes share.
    Mapped,
    /// Each process builds the index from the reference in its own memory.
    Built,
}

/// Where an aligner writes its records: standard output, or a file that the command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputTarget {
    /// The aligner writes its records to standard output.
    Stdout,
    /// The aligner writes its records to a file that the command line names. Instances write to standard output
    /// instead.
    File(PathBuf),
}

/// Format of an aligner's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// SAM text with a header.
    Sam,
    /// Suffix array intervals of bwa aln (`.sai`): 68 bytes of options (bytes 56–59: number of threads), then the
    /// reads in order.
    Sai,
}

/// Which other reads, besides its mate, can change the result for a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDependence {
    /// No other read: reads may be distributed to instances in any way.
    Nothing,
    /// The other reads of the same block. A block ends after the first pair (or single read) with which it has at least
    /// `bases` bases and at least `min_reads` reads.
    Blocks {
        /// Minimum number of bases in a block.
        bases: u64,
        /// Whether `bases` is multiplied by the number of threads of the plain run. Only set if genuma chooses the
        /// threads.
        per_thread: bool,
        /// Whether a block of single reads always has an even number of reads; it then ends one read later where
        /// necessary.
        even: bool,
        /// Minimum number of reads of a block.
        min_reads: u64,
        /// Whether the aligner breaks ties by the number of the read in the input, so that an instance must also count
        /// the reads of other instances.
        numbered: bool,
    },
    /// All earlier reads of the input: only one instance is possible.
    AllEarlierReads,
}

/// Whether repeated plain runs write the same records in the same order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Determinism {
    /// Every run writes the same records in the same order.
    Exact,
    /// Every run writes the same records, in an order that depends on timing.
    Unordered,
    /// Records depend on timing, or on which reads an instance gets. The text is the reason, for the user.
    Nondeterministic(String),
}

/// Order in which an instance writes its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordOrder {
    /// In the order of the reads.
    InputOrder,
    /// In the order of the reads if the instance has one thread, else in an order that depends on timing.
    InputOrderWithOneThread,
}

/// Reason why genuma cannot run a command line.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program does not exist.
    #[error("{program}: no such program on PATH; install it or write its full path")]
    NotInstalled {
        /// Name of the program.
        program: String,
    },
    /// A file of the index is missing.
    #[error("{path}: the index of {aligner} is missing{}", made_by.as_ref().map(|c| format!("; make it with '{c}'")).unwrap_or_default())]
    NoIndex {
        /// Name of the aligner.
        aligner: String,
        /// Path of the missing file.
        path: String,
        /// Command that builds the index.
        made_by: Option<String>,
    },
    /// The command line and the options of genuma together name the reads twice or not at all.
    #[error("{aligner}: {why}")]
    Reads {
        /// Name of the aligner.
        aligner: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// The option is unknown or not possible with several instances, or lacks its value.
    #[error("{aligner}: {option}: {why}")]
    UnsupportedOption {
        /// Name of the aligner.
        aligner: String,
        /// The option as given.
        option: String,
        /// Why, and what to do instead.
        why: String,
    },
    /// The command line is not valid for the aligner.
    #[error("{aligner}: {why}")]
    Usage {
        /// Name of the aligner.
        aligner: String,
        /// What is wrong with the command, for the user.
        why: String,
    },
    /// The format of a file of reads cannot be determined.
    #[error(transparent)]
    Format(#[from] genuma_reads::Error),
    /// File metadata cannot be read.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file.
        path: String,
        /// Error that the operating system reported.
        source: io::Error,
    },
}

impl CommandWord {
    /// Creates a word of fixed text.
    pub fn fixed_text_word(word: impl Into<OsString>) -> CommandWord {
        CommandWord(vec![WordPart::Text(word.into())])
    }
}

impl ReadDependence {
    /// Returns the minimum number of bases in a block of reads of the plain run with `threads` threads; `None` for an
    /// aligner without blocks.
    pub fn min_block_bases(self, threads: usize) -> Option<u64> {
        match self {
            ReadDependence::Blocks { bases, per_thread: true, .. } => Some(bases.saturating_mul(threads as u64)),
            ReadDependence::Blocks { bases, .. } => Some(bases),
            ReadDependence::Nothing | ReadDependence::AllEarlierReads => None,
        }
    }
}

impl AlignerIndex {
    /// Returns the total size of the index files, bytes.
    ///
    /// # Errors
    /// Metadata of a file cannot be read.
    pub fn total_index_bytes(&self) -> Result<u64, Error> {
        let bytes = |path: &PathBuf| {
            let io = |source| Error::Io { path: path.display().to_string(), source };
            fs::metadata(path).map(|m| m.len()).map_err(io)
        };
        self.files.iter().map(bytes).sum()
    }
}

impl Invocation {
    /// Returns the command line of an instance with `threads` threads. `reads` are the files or pipes from which it
    /// reads: none, one or two, according to [`Invocation::feed`]. `block` is the result of
    /// [`ReadDependence::min_block_bases`] for the plain run, or 0.
    pub fn build_instance_command(&self, threads: usize, block: u64, reads: &[&Path]) -> Vec<OsString> {
        let read = |n: usize| reads.get(n).map_or(OsStr::new("-"), |path| path.as_os_str());
        let word = |word: &CommandWord| {
            word.0.iter().fold(OsString::new(), |mut text, piece| {
                match piece {
                    WordPart::Text(plain) => text.push(plain),
                    WordPart::Threads => text.push(threads.to_string()),
                    WordPart::Reads1 => text.push(read(0)),
                    WordPart::Reads2 => text.push(read(1)),
                    WordPart::BlockBases => text.push(block.to_string()),
                }
                text
            })
        };
        self.words.iter().map(word).collect()
    }

    /// Adds `reads` to a command line that names no reads.
    ///
    /// # Errors
    /// The command line names reads itself, or needs pairs and `reads` has single reads, or `reads` names none.
    pub fn with_reads(mut self, reads: ReadFiles) -> Result<Invocation, Error> {
        let wrong = |why: &str| Err(Error::Reads { aligner: self.aligner.clone(), why: why.to_owned() });
        if self.reads != ReadFiles::Unnamed {
            return wrong("the command names its reads; omit --reads");
        }
        match (&reads, self.feed) {
            (ReadFiles::Unnamed, _) => return wrong("no reads; name them with --reads"),
            (ReadFiles::Single(_), ReadInputMode::TwoFiles) => {
                return wrong("{reads1} and {reads2} are mates; name two files of reads for each lane");
            }
            _ => {}
        }
        self.reads = reads;
        Ok(self)
    }

    /// Sets the options for reading files of aligned reads.
    ///
    /// # Errors
    /// A file of aligned reads, which has both mates, is given as the file of one mate; or a file cannot be read.
    pub fn with_aligned_read_options(mut self, options: AlignedOptions) -> Result<Invocation, Error> {
        let files = match &self.reads {
            ReadFiles::Paired(lanes) => lanes.as_flattened(),
            _ => &[],
        };
        for file in files {
            if !AlignedInput::is_bam_cram_or_binseq(file)? {
                continue;
            }
            let why = format!(
                "{}: holds both mates: name it alone, where the aligner takes one file with mates in turn (-p of bwa mem, --interleaved of bowtie2)",
                file.display()
            );
            return Err(Error::Reads { aligner: self.aligner, why });
        }
        self.aligned = options;
        Ok(self)
    }

    /// Checks that the program is installed.
    ///
    /// # Errors
    /// The program is missing.
    pub fn check_program_exists(&self) -> Result<(), Error> {
        check_program_installed(self.given.first().map(OsString::as_os_str).unwrap_or_default())
    }

    /// Checks that the program is installed and the index exists.
    ///
    /// # Errors
    /// The program or a file of the index is missing.
    pub fn check_program_and_index_exist(&self) -> Result<(), Error> {
        self.check_program_exists()?;
        let Some(index) = &self.index else { return Ok(()) };
        // I/O error ignored: reported as a missing index, with its path.
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

/// Checks that a program exists.
///
/// # Errors
/// The program is missing.
pub(crate) fn check_program_installed(program: &OsStr) -> Result<(), Error> {
    match find_program(program) {
        Some(_) => Ok(()),
        None => Err(Error::NotInstalled { program: program.to_string_lossy().into_owned() }),
    }
}

/// Finds a program: a path is used unchanged, a bare name is searched on `PATH`.
fn find_program(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        // I/O error ignored: reported as a missing program.
        return path.is_file().then(|| path.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // I/O error ignored: the folder is passed over, as a shell does.
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}
