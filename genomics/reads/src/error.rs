//! Errors of input and output files. Each message is one line: where, what is wrong, what to do.

mod target_and_variant_faults;

use std::io;
use std::path::{Path, PathBuf};

use crate::compression::CompressionFormat;
use crate::file_span::VirtualOffset;

pub use target_and_variant_faults::{KnownVariantsFault, TargetFault};

/// Why reads cannot be read or written, or why an input file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call that opens or reads a file failed.
    #[error("{}: cannot read: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// An output file cannot be published.
    #[error(transparent)]
    Publish(#[from] genuma_work::publish::Error),
    /// An I/O error whose message names the file.
    #[error(transparent)]
    Io(io::Error),
    /// A spill file cannot be written or read.
    #[error(transparent)]
    Spill(#[from] genuma_work::spill::Error),
    /// A file cannot be used as a whole.
    #[error("{}: {fault}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with the file.
        fault: FileFault,
    },
    /// A FASTQ, BAM, CRAM or BINSEQ record is invalid.
    #[error("{}: record {record}{}: {fault}", path.display(), record_origin(slice_start))]
    Record {
        /// Path of the file.
        path: PathBuf,
        /// Record number, counted from 1.
        record: u64,
        /// Start of the slice from which the records are counted; `None` if they are counted from the start of the
        /// file.
        slice_start: Option<Box<VirtualOffset>>,
        /// What is wrong with the record.
        fault: RecordFault,
    },
    /// A FASTA line is invalid.
    #[error("{}: line {line}: {fault}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: u64,
        /// What is wrong with the line.
        fault: FastaLineFault,
    },
    /// A line of a targets file is invalid, or does not fit the reference.
    #[error("{}: line {line}: {fault}", path.display())]
    Target {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: u64,
        /// What is wrong with the line.
        fault: TargetFault,
    },
    /// A VCF file of known variants cannot be used.
    #[error("{}: {}{fault}", path.display(), line_prefix(*line))]
    KnownVariants {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from 1; 0 if the error does not belong to a line.
        line: u64,
        /// Why the file or the line cannot be used.
        fault: KnownVariantsFault,
    },
    /// A text is not a read structure.
    #[error("'{text}' is not a read structure such as 3M1S+T: {fault}")]
    ReadStructure {
        /// The read structure as the user gave it.
        text: String,
        /// What is wrong with the read structure.
        fault: &'static str,
    },
    /// In a list of FASTQ files of read 1 and read 2 in turn, a file of read 1 is not followed by its mate file.
    #[error(
        "{}: has no mate file: give the files of read 1 and read 2 in turn, or add --interleaved (mates alternate in each file) or --single (reads have no mates)",
        path.display()
    )]
    MissingMateFile {
        /// The file of read 1.
        path: PathBuf,
    },
    /// No input file was given for a sample.
    #[error("no reads given for the {sample} sample: give at least one FASTQ, BAM or CRAM file")]
    NoFiles {
        /// Which sample: `normal` or `tumour`.
        sample: &'static str,
    },
    /// Two inputs contain the same reads.
    #[error("{} and {} are the same reads: give each file once", first.display(), second.display())]
    DuplicateInput {
        /// The input that was given first.
        first: PathBuf,
        /// The input that was given later.
        second: PathBuf,
    },
    /// Two mate files have different numbers of records.
    #[error(
        "{}: {}ends after {records} records while {}{} continues: mates are missing, give files that have the same templates in the same order",
        shorter_path.display(), slice_origin(slice_start), if slice_start.is_some() { "that of " } else { "" }, longer_path.display()
    )]
    MatesMissing {
        /// The file with fewer records.
        shorter_path: PathBuf,
        /// Number of records in the shorter file or slice.
        records: u64,
        /// Start of the slice from which the records are counted; `None` for a whole file.
        slice_start: Option<Box<VirtualOffset>>,
        /// The file with more records.
        longer_path: PathBuf,
    },
}

impl Error {
    /// Creates the error for a file with this fault.
    pub(crate) fn error_in_file(path: &Path, fault: FileFault) -> Self {
        Error::File { path: path.into(), fault }
    }

    /// Converts an I/O error of a reader of the file `path`: a [`FileFault`] inside it becomes [`Error::File`], any
    /// other error [`Error::Read`].
    pub(crate) fn from_reader_io_error(path: &Path, source: io::Error) -> Self {
        match source.get_ref().and_then(|inner| inner.downcast_ref::<FileFault>()) {
            Some(fault) => Error::error_in_file(path, fault.clone()),
            None => Error::Read { path: path.into(), source },
        }
    }

    /// Creates the error for a fault in record number `record` (counted from 1) of a file.
    pub(crate) fn error_in_record(path: &Path, record: u64, fault: RecordFault) -> Self {
        Error::Record { path: path.into(), record, slice_start: None, fault }
    }
}

/// Prefix `line N: ` of a message; empty for line 0.
fn line_prefix(line: u64) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

/// Text for a message that names the start of the slice from which records are counted; empty for the start of the
/// file.
fn record_origin(slice_start: &Option<Box<VirtualOffset>>) -> String {
    slice_start
        .as_deref()
        .filter(|from| **from > VirtualOffset::default())
        .map_or(String::new(), |from| format!(" after {from}"))
}

/// Text for a message that describes a slice; empty for a whole file.
fn slice_origin(from: &Option<Box<VirtualOffset>>) -> String {
    from.as_deref().map_or(String::new(), |from| format!("the slice from {from} on "))
}

/// What is wrong with a file as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// BAM without its final empty block, CRAM without its final empty container, or CBQ or VBQ without its end marker.
    #[error("has no end-of-file block: it is truncated, copy or make it again")]
    MissingEofMarker,
    /// The file has a CRAM version that is not supported.
    #[error("is CRAM {major}.{minor}, but only 2.0 to 3.1 are supported: convert it with samtools view -C")]
    CramVersion {
        /// Major version of the file.
        major: u8,
        /// Minor version of the file.
        minor: u8,
    },
    /// The CRAM file stores differences from a reference, and no reference was given.
    #[error(
        "is CRAM that cannot be decoded without its reference: give the reference with --reference, or a folder of sequences by MD5 sum with REF_PATH"
    )]
    ReferenceRequired,
    /// A sequence cannot be read from the folders that `REF_CACHE` and `REF_PATH` name.
    #[error(
        "is CRAM whose sequence \"{name}\" (M5 {md5}) cannot be read by REF_CACHE or REF_PATH ({reason}): give the reference with --reference"
    )]
    ReferenceSearchPath {
        /// Name of the sequence.
        name: String,
        /// MD5 sum of the sequence in the header of the CRAM file.
        md5: String,
        /// The paths that were tried, or what is wrong with the file that was found.
        reason: String,
    },
    /// The reference lacks a sequence that the CRAM file refers to.
    #[error("the reference {} has no sequence \"{name}\": give the reference that the file was made with", reference.display())]
    ReferenceMissingSequence {
        /// Path of the FASTA file of the reference.
        reference: PathBuf,
        /// Name of the sequence.
        name: String,
    },
    /// The length of a sequence differs between the reference and the CRAM header.
    #[error(
        "sequence \"{name}\" of the reference {} has {reference_bases} bases, but {file_bases} in the file: give the reference that the file was made with, and check that its index (.fai) belongs to it", reference.display()
    )]
    ReferenceLength {
        /// Path of the FASTA file of the reference.
        reference: PathBuf,
        /// Name of the sequence.
        name: String,
        /// Length of the sequence in the reference, in bases.
        reference_bases: usize,
        /// Length of the sequence in the header of the CRAM file, in bases.
        file_bases: usize,
    },
    /// The MD5 sums of the reference differ from those in the CRAM file.
    #[error("was made with another reference (checksums differ at record {record}): give that reference")]
    ReferenceDiffers {
        /// Number of the first record, counted from 1, of the container whose sums differ.
        record: u64,
    },
    /// The MD5 sum of a sequence differs between the reference and the CRAM header.
    #[error(
        "sequence \"{name}\" of the reference {} has other bases than in the file (M5): give the reference that the file was made with",
        reference.display()
    )]
    ReferenceMd5 {
        /// Path of the FASTA file of the reference.
        reference: PathBuf,
        /// Name of the sequence.
        name: String,
    },
    /// The header has no MD5 sum of the sequence in the field, and the slices that need its bases have none either.
    #[error(
        "sequence \"{0}\" has no M5 in the header, so the reference cannot be checked: add the M5 of the reference that the file was made with (samtools dict) to the @SQ lines with samtools reheader"
    )]
    ReferenceMd5Missing(String),
    /// A slice of a CRAM file needs more memory than a thread may use.
    #[error(
        "has a CRAM slice of {} MiB or more, but {} MiB are allowed: raise --memory, lower --threads, or make smaller slices with samtools view -C", slice_bytes >> 20, max_bytes >> 20
    )]
    SliceTooLarge {
        /// Size of the decompressed data in bytes, as far as known.
        slice_bytes: u64,
        /// Maximum size in bytes.
        max_bytes: u64,
    },
    /// The reference bases that are embedded in the CRAM file do not have the MD5 sum that the file states.
    #[error("has a damaged reference inside (checksums differ at record {record}): copy or make the file again")]
    EmbeddedReferenceDiffers {
        /// Number of the first record, counted from 1, of the damaged container.
        record: u64,
    },
    /// The header of a BAM, CRAM or BINSEQ file is damaged or not supported; the field describes why.
    #[error("its header is damaged ({0}): copy or make the file again")]
    Header(&'static str),
    /// The read groups of a file that must be of one sample have several sample names.
    #[error(
        "has reads of several samples ({names}), but a file is taken as one sample: divide it by read group with `samtools split`, and give each sample its own files; or, if all are one sample, give their read groups the same SM with `samtools reheader`"
    )]
    SeveralSamples {
        /// The sample names (`SM`), separated by commas.
        names: String,
    },
    /// A read without base qualities.
    #[error("read \"{name}\" has no qualities: give reads with qualities")]
    NoQualities {
        /// Name of the read.
        name: String,
    },
    /// A read has no mate in the file, but only pairs are accepted.
    #[error(
        "read \"{name}\" has no mate in the file, but only pairs are accepted: remove such reads, or align them separately"
    )]
    UnpairedRead {
        /// Name of the read.
        name: String,
    },
    /// SAM would take the record of the read in the field for a header line.
    #[error("read \"{0}\": its name begins with '@', so SAM cannot hold it: rename the reads")]
    NameBeginsWithAt(String),
    /// The file has no bytes, or is a gzip file without content.
    #[error("is empty: give a file with at least one record")]
    Empty,
    /// A targets file without an interval.
    #[error("has no targets: give BED or an interval list with at least one interval")]
    NoTargets,
    /// The input is a pipe or device, but must be a regular file because it is read more than once.
    #[error("is not a regular file: reads are read twice, so save them to a file first")]
    NotRegular,
    /// The input is a folder.
    #[error("is a folder: give the files in it")]
    Folder,
    /// The file has another format, recognised by its first bytes.
    #[error("is {found}, not {wanted}: {remedy}")]
    Format {
        /// The format that was found.
        found: &'static str,
        /// The format that was expected.
        wanted: &'static str,
        /// Advice for the user.
        remedy: &'static str,
    },
    /// The size of the file has changed since it was divided into slices.
    #[error(
        "is {new_bytes} bytes long and was {old_bytes} when the call was planned (genuma call --plan): restore the file, or plan the call again"
    )]
    SizeChanged {
        /// Size in bytes when the file was divided into slices.
        old_bytes: u64,
        /// Size in bytes now.
        new_bytes: u64,
    },
    /// The contents of the file have changed since it was divided into slices: a slice cannot start or end at the
    /// position in the field.
    #[error(
        "has changed since the call was planned (genuma call --plan; at {0}): restore the file, or plan the call again"
    )]
    ContentChanged(VirtualOffset),
}

/// What is wrong with a FASTQ, BAM, CRAM or BINSEQ record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// The CRAM data are damaged; the field is the message of the decoder.
    #[error("damaged CRAM data ({0}): copy or make the file again")]
    CramCorrupt(String),
    /// The CRAM data are damaged, or have an encoding that the decoder does not know.
    #[error("cannot be decoded: damaged or unknown CRAM data; if samtools can read the file, convert it to BAM")]
    CramUndecodable,
    /// A BAM or BINSEQ record violates the specification; the field says how.
    #[error("is damaged ({0}): copy or make the file again")]
    RecordCorrupt(&'static str),
    /// The name or the value of a carried tag cannot be represented in SAM and CRAM.
    #[error("tag {tag} {reason}, which SAM does not allow: correct the tag or do not carry it")]
    InvalidTag {
        /// Name of the tag.
        tag: String,
        /// What is wrong with the tag.
        reason: &'static str,
    },
    /// The file has two primary records of the same read (1 or 2) of a template.
    #[error(
        "\"{name}\" has a second primary record for read {number}: each read may have one; do not merge files whose reads share names"
    )]
    DuplicatePrimary {
        /// Name of the template.
        name: String,
        /// Read number, 1 or 2.
        number: char,
    },
    /// The compressed data end too early.
    #[error("the {0} data end too early: the file is truncated, copy or make it again")]
    CompressedTruncated(CompressionFormat),
    /// The compressed data are damaged, or other data follow them. The text describes the damage.
    #[error("damaged {0} data ({1}): copy or make the file again")]
    CompressedCorrupt(CompressionFormat, String),
    /// The file ends within the record.
    #[error("the file ends inside the record: it is truncated, copy or make it again")]
    Truncated,
    /// The first line of the record does not start with `@`.
    #[error("starts with {0} instead of '@': FASTQ must have four lines per record; check the file")]
    MissingHeaderMark(ByteForDisplay),
    /// The third line of the record does not start with `+`.
    #[error("its third line starts with {0} instead of '+': FASTQ must have four lines per record; check the file")]
    MissingPlusLine(ByteForDisplay),
    /// The sequence continues on the third line of the record.
    #[error(
        "its sequence has several lines, but FASTQ must have four lines per record: join the lines with seqtk seq -l 0"
    )]
    SeveralSequenceLines,
    /// Sequence and quality string have different lengths.
    #[error("{seq} bases but {qual} qualities: the file is damaged, copy or make it again")]
    LengthMismatch {
        /// Number of bases in the sequence line.
        seq: usize,
        /// Number of letters in the quality line.
        qual: usize,
    },
    /// A byte in the sequence is neither an IUPAC base code nor `.` (N).
    #[error("{0} in the sequence is not a base (IUPAC letter)")]
    InvalidBase(ByteForDisplay),
    /// A base is stored as `=`, which stands for the base of the reference (SAM specification, section 1.4).
    #[error(
        "'=' in the sequence stands for the base of the reference, as samtools calmd -e writes it, and is not read: use the file from \
         before, or the original FASTQ"
    )]
    BaseOfReference,
    /// A quality byte is outside `!`..=`~`.
    #[error("{0} in the qualities is outside '!' to '~' (Phred+33)")]
    InvalidQuality(ByteForDisplay),
    /// The record has more bytes than the number in the field, so that it cannot be a read.
    #[error("longer than {0} bytes: not a FASTQ of reads, or damaged")]
    TooLong(usize),
    /// The header has no read name, or nothing before `/1` or `/2`.
    #[error("has no name: name every read")]
    MissingName,
    /// The name is longer than SAM allows.
    #[error("its name is {name_bytes} bytes long, but SAM allows {max_bytes}: shorten the names")]
    NameTooLong {
        /// Length of the name in bytes.
        name_bytes: usize,
        /// Maximum length in SAM, in bytes.
        max_bytes: usize,
    },
    /// A byte in the name that SAM forbids.
    #[error("{0} in its name is outside '!' to '~': SAM does not allow it, rename the reads")]
    InvalidNameByte(ByteForDisplay),
    /// The record that should be the mate, by its position in the mate file or in the same file, has another name.
    #[error("read \"{name}\" has mate \"{mate}\" in {}: mates must come in the same order", mate_path.display())]
    MateNameMismatch {
        /// Name of the read.
        name: String,
        /// Name of the read that should be its mate.
        mate: String,
        /// File of the mate.
        mate_path: PathBuf,
    },
    /// According to their headers, the first read is read 2 and its mate is read 1.
    #[error("\"{name}\" is read 2, and its mate in {} is read 1: give the files in the order read 1, read 2", mate_path.display())]
    ExchangedMates {
        /// Name of the template.
        name: String,
        /// File of the mate.
        mate_path: PathBuf,
    },
    /// According to their headers, both mates are the same read (1 or 2) of the template.
    #[error("\"{name}\" and its mate in {} are both read {number}: give read 1 and read 2", mate_path.display())]
    DuplicateMateNumber {
        /// Name of the template.
        name: String,
        /// Read number, 1 or 2.
        number: char,
        /// File of the mate.
        mate_path: PathBuf,
    },
    /// The last record of an interleaved file has no mate.
    #[error("has no mate: an interleaved file must have read 1 and read 2 alternately")]
    MissingMate,
}

/// What is wrong with a FASTA line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FastaLineFault {
    /// The compressed data are damaged or truncated; the text describes the damage.
    #[error("damaged {0} data ({1}): copy or make the file again")]
    Compressed(CompressionFormat, String),
    /// The file does not start with a header.
    #[error("starts with {0} instead of '>': not a FASTA file; give FASTA, plain or compressed with gzip")]
    MissingHeader(ByteForDisplay),
    /// A header without a name.
    #[error("'>' without a name: name every sequence")]
    MissingName,
    /// A sequence name that SAM and VCF forbid.
    #[error("sequence name \"{name}\" {fault}, which SAM and VCF forbid: rename it")]
    Name {
        /// Name of the sequence, as in the FASTA header.
        name: String,
        /// What is wrong with the name.
        fault: SequenceNameFault,
    },
    /// A sequence name that occurred before.
    #[error("sequence name \"{name}\" was used on line {first}: rename one of them")]
    Duplicate {
        /// Name of the sequence, as in the FASTA header.
        name: String,
        /// Line number of the first occurrence of the name.
        first: u64,
    },
    /// A sequence has no bases; the field is its name.
    #[error("sequence \"{0}\" has no bases: remove it or complete the file")]
    NoBases(String),
    /// A byte that is not an IUPAC base code.
    #[error("{0} is not a base (IUPAC letter)")]
    InvalidBase(ByteForDisplay),
}

/// Why SAM forbids the name of a reference sequence (SAM specification, section 1.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SequenceNameFault {
    /// The first character is forbidden at the start of a name.
    #[error("starts with {0}")]
    InvalidFirstByte(ByteForDisplay),
    /// A character is forbidden anywhere in a name.
    #[error("holds {0}")]
    InvalidByte(ByteForDisplay),
}

/// A byte that is displayed in messages as a character or, if it is not printable, as its hexadecimal value. A line
/// feed is displayed as "an empty line".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteForDisplay(pub u8);

impl std::fmt::Display for ByteForDisplay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            b'\n' => write!(f, "an empty line"),
            b @ b' '..=b'~' => write!(f, "'{}'", b as char),
            b => write!(f, "byte 0x{b:02x}"),
        }
    }
}
