//! What can be wrong with input or output files: one line that says what, where and what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::span::Offset;

/// Why reading or writing failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused to open or read a file.
    #[error("{}: cannot read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file does not appear under its name.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// Writing failed; the message names the file.
    #[error(transparent)]
    Named(io::Error),
    /// What waits on the disk cannot be written or read.
    #[error(transparent)]
    Spill(#[from] genuma_work::spill::Error),
    /// A file as a whole is not usable.
    #[error("{}: {fault}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: FileFault,
    },
    /// A FASTQ or BAM record is wrong.
    #[error("{}: record {record}{}: {fault}", path.display(), after(from))]
    Record {
        /// The file.
        path: PathBuf,
        /// Record number, from 1.
        record: u64,
        /// Where in the file records are counted from; absent when that is its beginning.
        from: Option<Box<Offset>>,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// A FASTA line is wrong.
    #[error("{}: line {line}: {fault}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// An odd number of mate files.
    #[error(
        "{}: has no mate file: give the files of read 1 and read 2 in turn, or say that mates are interleaved",
        path.display()
    )]
    Odd {
        /// The last file of the list.
        path: PathBuf,
    },
    /// No file for a sample.
    #[error("no reads given for the {sample} sample: name at least one lane of FASTQ files")]
    NoFiles {
        /// `normal` or `tumour`.
        sample: &'static str,
    },
    /// The same reads given twice.
    #[error("{} and {} are the same reads: give each file once", first.display(), second.display())]
    Twice {
        /// The file named first.
        first: PathBuf,
        /// The file named later.
        second: PathBuf,
    },
    /// Two mate files hold different numbers of records.
    #[error(
        "{}: {}ends after {records} records while {}{} goes on: mates are missing, give files that hold the same templates in the same order",
        short.display(), slice_from(from), if from.is_some() { "that of " } else { "" }, long.display()
    )]
    MatesMissing {
        /// The file that ends first.
        short: PathBuf,
        /// Records in it.
        records: u64,
        /// Where the slice begins that these are counted in; absent for a whole file.
        from: Option<Box<Offset>>,
        /// The file that goes on.
        long: PathBuf,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, fault: FileFault) -> Self {
        Error::File { path: path.into(), fault }
    }

    /// What the system said when a file was read, or what a reader below has to say of the file itself.
    pub(crate) fn reading(path: &Path, source: io::Error) -> Self {
        match source.get_ref().and_then(|inner| inner.downcast_ref::<FileFault>()) {
            Some(fault) => Error::file(path, fault.clone()),
            None => Error::Read { path: path.into(), source },
        }
    }

    pub(crate) fn record(path: &Path, record: u64, fault: RecordFault) -> Self {
        Error::Record { path: path.into(), record, from: None, fault }
    }
}

/// Where a record is counted from, unless that is the beginning of the file.
fn after(from: &Option<Box<Offset>>) -> String {
    from.as_deref()
        .filter(|from| **from > Offset::default())
        .map_or(String::new(), |from| format!(" after {from}"))
}

/// Which slice of a file is meant.
fn slice_from(from: &Option<Box<Offset>>) -> String {
    from.as_deref().map_or(String::new(), |from| format!("the slice from {from} on "))
}

/// What can be wrong with a whole file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// BAM without the block that marks its end, or CRAM without the container.
    #[error("has no end-of-file block: it is truncated, copy or make it again")]
    NoEnd,
    /// CRAM of a version that is not read.
    #[error("is CRAM {major}.{minor}, and 3.0 and 3.1 are read: write it again with samtools view -C")]
    CramVersion {
        /// Of the version.
        major: u8,
        /// Of the version.
        minor: u8,
    },
    /// CRAM whose reads lie as differences from a reference that was not given.
    #[error("is CRAM that cannot be read without its reference: give that with --reference")]
    NoReference,
    /// A sequence that CRAM needs is not in the reference.
    #[error("the reference {} has no sequence \"{name}\": give the one that the file was written against", reference.display())]
    ReferenceLacks {
        /// The FASTA file.
        reference: PathBuf,
        /// The sequence.
        name: String,
    },
    /// A sequence of the reference has another length than CRAM says.
    #[error(
        "sequence \"{name}\" of the reference {} has {is} bases and not {was}: give the one that the file was written against, and see that its index (.fai) is its own", reference.display()
    )]
    ReferenceLength {
        /// The FASTA file.
        reference: PathBuf,
        /// The sequence.
        name: String,
        /// Its length, ...
        is: usize,
        /// ... and that in the file.
        was: usize,
    },
    /// The reference has other bases than CRAM was written against.
    #[error(
        "was written against another reference (their sums differ at record {record}): give the very one"
    )]
    ReferenceDiffers {
        /// Number of a record, from 1.
        record: u64,
    },
    /// The header of BAM or CRAM is damaged.
    #[error("its header is damaged ({0}): copy or make the file again")]
    Header(&'static str),
    /// A read whose bases have no qualities.
    #[error("read \"{name}\" has no qualities: give reads with qualities")]
    NoQualities {
        /// Name of its template.
        name: String,
    },
    /// A read without a mate where nothing but pairs is taken.
    #[error(
        "read \"{name}\" has no mate in it, and nothing but pairs is taken: leave such reads out, or align them by themselves"
    )]
    Stray {
        /// Its name.
        name: String,
    },
    /// No byte in it, or a gzip file of nothing.
    #[error("is empty: give a file with at least one record")]
    Empty,
    /// A folder, pipe or device: genuma reads its input twice.
    #[error("is not a regular file: reads are read twice, so save them to a file first")]
    NotRegular,
    /// Another format, recognised by its first bytes.
    #[error("is {found}, not {wanted}: {remedy}")]
    Format {
        /// What it looks like.
        found: &'static str,
        /// What it should be.
        wanted: &'static str,
        /// What to do about it.
        remedy: &'static str,
    },
    /// Its slices were chosen when it had another size.
    #[error(
        "is {is} bytes long and was {was} when it was cut into slices: give the file as it was, or cut it again"
    )]
    Resized {
        /// Bytes that it had.
        was: u64,
        /// Bytes that it has.
        is: u64,
    },
    /// There is nothing that a slice could begin or end with where one does.
    #[error(
        "is not what it was when it was cut into slices, by what is at {0}: give the file as it was, or cut it again"
    )]
    Changed(Offset),
}

/// What can be wrong with a FASTQ or BAM record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// CRAM is damaged; what the decoder says.
    #[error("damaged CRAM data ({0}): copy or make the file again")]
    Corrupt(String),
    /// A BAM record is not what the specification says.
    #[error("is damaged ({0}): copy or make the file again")]
    Damaged(&'static str),
    /// Two primary records of a name are the same read of it.
    #[error(
        "\"{name}\" is read {number}, as an earlier record of that name is: each read may have one primary record, and files whose reads share names must not be merged"
    )]
    SameRead {
        /// Name of the template.
        name: String,
        /// 1 or 2.
        number: char,
    },
    /// The compressed stream ends too early.
    #[error("the gzip data end before their end: the file is truncated, copy or make it again")]
    GzipTruncated,
    /// The compressed stream is damaged or followed by something else.
    #[error("damaged gzip data ({0}): copy or make the file again")]
    GzipCorrupt(String),
    /// The file ends within the record.
    #[error("the file ends in the middle of it: the file is truncated, copy or make it again")]
    Truncated,
    /// The first line is not a header.
    #[error("starts with {0} instead of '@': not four lines a record, or damaged")]
    NoAt(Shown),
    /// The third line is not a separator.
    #[error("its third line starts with {0} instead of '+': not four lines a record, or damaged")]
    NoPlus(Shown),
    /// Sequence and quality differ in length.
    #[error("{seq} bases but {qual} qualities: the file is damaged, copy or make it again")]
    Lengths {
        /// Length of the sequence.
        seq: usize,
        /// Length of the quality string.
        qual: usize,
    },
    /// A letter that is not in the IUPAC alphabet.
    #[error("{0} in the sequence is not a base (IUPAC letter)")]
    Letter(Shown),
    /// A quality outside `!`..=`~`.
    #[error("{0} in the qualities is outside '!' to '~' (Phred+33)")]
    Quality(Shown),
    /// The record is too long to be a read.
    #[error("longer than {0} bytes: not a FASTQ of reads, or damaged")]
    TooLong(usize),
    /// The header has no name, or nothing before `/1`.
    #[error("has no name: name every read")]
    NoName,
    /// The name does not fit a SAM record.
    #[error("its name is {length} bytes long, and SAM holds {longest}: shorten the names")]
    LongName {
        /// Bytes of the name.
        length: usize,
        /// The longest that SAM allows.
        longest: usize,
    },
    /// The name holds a byte that no SAM record can have in it.
    #[error("{0} in its name is outside '!' to '~': SAM has no place for it, rename the reads")]
    NameLetter(Shown),
    /// The mate has another name.
    #[error("read \"{name}\" has mate \"{mate}\" in {}: mates must come in the same order", mate_path.display())]
    Names {
        /// Name of this read.
        name: String,
        /// Name of the read that should be its mate.
        mate: String,
        /// File of the mate.
        mate_path: PathBuf,
    },
    /// Both mates say that they are the same read of the template.
    #[error("\"{name}\" and its mate in {} both say that they are read {number}: give read 1 and read 2", mate_path.display())]
    SameMate {
        /// Name of the template.
        name: String,
        /// 1 or 2.
        number: char,
        /// File of the mate.
        mate_path: PathBuf,
    },
    /// The last record of an interleaved file has no mate.
    #[error("has no mate: an interleaved file holds read 1 and read 2 in turn")]
    NoMate,
}

/// What can be wrong with a FASTA line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// The compressed stream is damaged or truncated.
    #[error("damaged gzip data ({0}): copy or make the file again")]
    Gzip(String),
    /// The file does not start with a header.
    #[error("starts with {0} instead of '>': not a FASTA file")]
    NoHeader(Shown),
    /// A header without a name.
    #[error("'>' without a name: name every sequence")]
    NoName,
    /// A name that no SAM or VCF file may have in it.
    #[error("sequence name \"{name}\" {fault}, which SAM and VCF forbid: rename it")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        fault: NameFault,
    },
    /// A name that was used before.
    #[error("sequence name \"{name}\" was used on line {first}: rename one of them")]
    Duplicate {
        /// The name.
        name: String,
        /// Line of its first use.
        first: u64,
    },
    /// A record without any base.
    #[error("sequence \"{0}\" has no bases: remove it or complete the file")]
    NoBases(String),
    /// A letter that is not in the IUPAC alphabet.
    #[error("{0} is not a base (IUPAC letter)")]
    Letter(Shown),
}

/// What SAM forbids in the name of a sequence (specification, section 1.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// The first character.
    #[error("starts with {0}")]
    Start(Shown),
    /// Any character.
    #[error("holds {0}")]
    Holds(Shown),
}

/// A byte as it is shown in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown(pub u8);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            b'\n' => write!(f, "an empty line"),
            b @ b' '..=b'~' => write!(f, "'{}'", b as char),
            b => write!(f, "byte 0x{b:02x}"),
        }
    }
}
