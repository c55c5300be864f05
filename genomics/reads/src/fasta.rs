//! Reading and writing a reference genome in FASTA format. The genome is kept in memory.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use genuma_work::ProgressCounters;
use genuma_work::publish::AtomicFile;

use crate::compression::DecompressError;
use crate::error::{ByteForDisplay, Error, FastaLineFault, FileFault, SequenceNameFault};
use crate::fastq::{detect_unsupported_content, is_iupac};
use crate::inflate::{Decompressor, FileReadOptions};

/// Number of bytes per read call.
const CHUNK_BYTES: usize = 256 << 10;

/// One sequence of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contig {
    /// Name: the first word of the header.
    pub name: String,
    /// Bases: IUPAC base codes in upper case.
    pub seq: Vec<u8>,
}

/// A reference genome in memory, with its sequences in the order of the FASTA file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    /// The sequences in the order of the file.
    pub contigs: Vec<Contig>,
    index: HashMap<String, usize>,
    /// Indices of the sequences whose header says that they are circular.
    circular_by_header: Vec<usize>,
}

impl Reference {
    /// Reads a FASTA file into memory with [`read_fasta_events`] and converts the bases to upper case.
    ///
    /// # Errors
    /// The errors of [`read_fasta_events`].
    pub fn read_fasta_file(path: &Path) -> Result<Self, Error> {
        let mut contigs: Vec<Contig> = Vec::new();
        let mut circular_by_header = Vec::new();
        read_fasta_events(path, |part| match part {
            FastaEvent::Header { name, comment } => {
                if says_circular(comment) {
                    circular_by_header.push(contigs.len());
                }
                contigs.push(Contig { name: String::from_utf8_lossy(name).into_owned(), seq: Vec::new() });
            }
            FastaEvent::Bases(bases) => {
                if let Some(contig) = contigs.last_mut() {
                    contig.seq.extend(bases.iter().map(u8::to_ascii_uppercase));
                }
            }
        })?;
        Ok(Reference { circular_by_header, ..Reference::from_contigs(contigs) })
    }

    /// Creates a reference from sequences, whose names must differ.
    pub fn from_contigs(contigs: Vec<Contig>) -> Reference {
        let index = contigs.iter().enumerate().map(|(i, c)| (c.name.clone(), i)).collect();
        Reference { contigs, index, circular_by_header: Vec::new() }
    }

    /// Whether a sequence is circular: its header says so (for example `circular`, but not `not circular`), or it has
    /// a usual name of the human mitochondrial genome. False for an index that is too large.
    pub fn is_circular(&self, contig: usize) -> bool {
        self.circular_by_header.contains(&contig)
            || self.contigs.get(contig).is_some_and(|contig| is_mitochondrial_name(&contig.name))
    }

    /// Names of the contigs, in their order.
    pub fn contig_names(&self) -> Vec<&str> {
        self.contigs.iter().map(|contig| contig.name.as_str()).collect()
    }

    /// Writes the reference to a plain FASTA file with 80 bases per line; headers have only the names. The file is
    /// written under a temporary name and then renamed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_fasta_file(&self, path: &Path) -> Result<(), Error> {
        let mut file = AtomicFile::create(path)?;
        for contig in &self.contigs {
            writeln!(file, ">{}", contig.name).map_err(Error::Io)?;
            for line in contig.seq.chunks(80) {
                file.write_all(line).and_then(|()| file.write_all(b"\n")).map_err(Error::Io)?;
            }
        }
        Ok(file.publish()?)
    }

    /// The sequence with this name; `None` if the reference has none.
    pub fn contig_named(&self, name: &str) -> Option<&Contig> {
        self.contig_index(name).map(|i| &self.contigs[i])
    }

    /// Index in [`Reference::contigs`] of the sequence with this name; `None` if the reference has none.
    pub fn contig_index(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }
}

/// Whether a sequence has a usual name of the human mitochondrial genome: that of UCSC, of Ensembl or of RefSeq.
pub fn is_mitochondrial_name(name: &str) -> bool {
    matches!(name, "chrM" | "chrMT" | "MT" | "M" | "NC_012920.1")
}

/// Whether the comment of a FASTA header says that the sequence is circular: `circular`, `topology=circular`,
/// `circular=true`; but not `not circular` or `circular=false`.
fn says_circular(comment: &[u8]) -> bool {
    let comment = comment.to_ascii_lowercase();
    let words: Vec<&[u8]> = comment.split(|b| !b.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let word_at = |i: usize| words.get(i).copied().unwrap_or_default();
    (0..words.len()).any(|i| {
        let is_denied = i > 0 && matches!(word_at(i - 1), b"not" | b"non" | b"no")
            || matches!(word_at(i + 1), b"false" | b"no" | b"n" | b"f" | b"0");
        words[i] == b"circular" && !is_denied
    })
}

/// Checks that a sequence name, which must not be empty, has only bytes that are valid in SAM and VCF files.
///
/// # Errors
/// The name has a byte that is forbidden at its position.
pub fn check_sequence_name(name: &[u8]) -> Result<(), SequenceNameFault> {
    if let Some(&first @ (b'*' | b'=')) = name.first() {
        return Err(SequenceNameFault::InvalidFirstByte(ByteForDisplay(first)));
    }
    let forbidden = |b: &&u8| !b.is_ascii_graphic() || b"\\,\"`'()[]{}<>".contains(b);
    name.iter().find(forbidden).map_or(Ok(()), |&b| Err(SequenceNameFault::InvalidByte(ByteForDisplay(b))))
}

/// What [`read_fasta_events`] passes to its caller: a header, or some bases of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastaEvent<'a> {
    /// The header of a sequence.
    Header {
        /// First word of the header.
        name: &'a [u8],
        /// The rest of the header after the name and one blank.
        comment: &'a [u8],
    },
    /// The next bases of the sequence: IUPAC base codes as in the file, in upper or lower case. A sequence has several
    /// of these events.
    Bases(&'a [u8]),
}

/// Reads a FASTA file, plain or gzip, with any line ends, in upper or lower case. Calls `each` with its headers and
/// lines in order.
///
/// # Errors
/// The file cannot be read, is empty, or does not start with `>`; a name is missing or occurs twice; a sequence has no
/// bases or a byte that is not an IUPAC base code.
pub fn read_fasta_events(path: &Path, mut each: impl FnMut(FastaEvent<'_>)) -> Result<(), Error> {
    let progress = ProgressCounters::default();
    let mut reader = FastaReader::open(path, &progress)?;
    while reader.read_events_of_chunk(&mut each)? {}
    Ok(())
}

/// Reader of a FASTA file, chunk by chunk.
pub(crate) struct FastaReader<'a> {
    inflate: Decompressor<&'a ProgressCounters>,
    parser: Parser<'a>,
    /// Bytes of the file. `chunk[..kept]` is the start of a line whose end has not been read yet.
    chunk: Vec<u8>,
    kept: usize,
    is_start: bool,
}

impl<'a> FastaReader<'a> {
    /// Opens a plain or gzip FASTA file. `progress` counts the bytes that are read.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(path: &'a Path, progress: &'a ProgressCounters) -> Result<FastaReader<'a>, Error> {
        let inflate = Decompressor::open(path, progress, &FileReadOptions::default())?;
        let parser = Parser { path, line_number: 1, headers: Vec::new(), names: HashMap::new(), has_bases: false };
        Ok(FastaReader { inflate, parser, chunk: vec![0; CHUNK_BYTES], kept: 0, is_start: true })
    }

    /// Reads the next chunk of the file and calls `each` with its headers and lines. Returns false at the end of the
    /// file.
    ///
    /// # Errors
    /// The errors of [`read_fasta_events`].
    pub(crate) fn read_events_of_chunk(&mut self, each: &mut impl FnMut(FastaEvent<'_>)) -> Result<bool, Error> {
        let FastaReader { inflate, parser, chunk, kept, is_start } = self;
        if *kept == chunk.len() {
            chunk.resize(2 * *kept, 0);
        }
        let n = inflate.fill_buffer(&mut chunk[*kept..]).map_err(|damage| parser.decompression_error(damage))?;
        let filled = *kept + n;
        if std::mem::take(is_start)
            && let Some((found, remedy)) = detect_unsupported_content(&chunk[..filled])
        {
            return Err(Error::error_in_file(parser.path, FileFault::Format { found, wanted: "FASTA", remedy }));
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &chunk[..filled]) {
            parser.line(&chunk[start..end], each)?;
            start = end + 1;
        }
        if n == 0 {
            parser.line(&chunk[start..filled], each)?;
            parser.finish()?;
            return Ok(false);
        }
        chunk.copy_within(start..filled, 0);
        *kept = filled - start;
        Ok(true)
    }
}

struct Parser<'a> {
    path: &'a Path,
    /// Number, from 1, of the next line of the file.
    line_number: u64,
    /// Name and line number of each header so far.
    headers: Vec<(String, u64)>,
    /// Index in `headers` of each sequence name.
    names: HashMap<String, usize>,
    /// Whether the current sequence has bases.
    has_bases: bool,
}

impl Parser<'_> {
    fn error_at(&self, line: u64, fault: FastaLineFault) -> Error {
        Error::Line { path: PathBuf::from(self.path), line, fault }
    }

    fn decompression_error(&self, damage: DecompressError) -> Error {
        let (format, what) = match damage {
            DecompressError::Io(source) => return Error::Read { path: self.path.into(), source },
            DecompressError::ContentChanged(at) => {
                return Error::error_in_file(self.path, FileFault::ContentChanged(at));
            }
            DecompressError::Truncated(format) => (format, "they end too early".to_owned()),
            DecompressError::Corrupt(format, what) => (format, what),
        };
        self.error_at(self.line_number, FastaLineFault::Compressed(format, what))
    }

    fn line(&mut self, line: &[u8], each: &mut impl FnMut(FastaEvent<'_>)) -> Result<(), Error> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(header) = line.strip_prefix(b">") {
            self.header(header, each)?;
        } else if !line.is_empty() {
            if self.headers.is_empty() {
                return Err(self.error_at(self.line_number, FastaLineFault::MissingHeader(ByteForDisplay(line[0]))));
            }
            if let Some(&b) = line.iter().find(|&&b| !is_iupac(b)) {
                return Err(self.error_at(self.line_number, FastaLineFault::InvalidBase(ByteForDisplay(b))));
            }
            self.has_bases = true;
            each(FastaEvent::Bases(line));
        }
        self.line_number += 1;
        Ok(())
    }

    fn header(&mut self, header: &[u8], each: &mut impl FnMut(FastaEvent<'_>)) -> Result<(), Error> {
        self.check_last()?;
        let end = header.iter().position(u8::is_ascii_whitespace).unwrap_or(header.len());
        if end == 0 {
            return Err(self.error_at(self.line_number, FastaLineFault::MissingName));
        }
        let name = String::from_utf8_lossy(&header[..end]).into_owned();
        if let Err(fault) = check_sequence_name(&header[..end]) {
            return Err(self.error_at(self.line_number, FastaLineFault::Name { name, fault }));
        }
        if let Some(first) = self.names.insert(name.clone(), self.headers.len()) {
            let first = self.headers[first].1;
            return Err(self.error_at(self.line_number, FastaLineFault::Duplicate { name, first }));
        }
        self.headers.push((name, self.line_number));
        self.has_bases = false;
        each(FastaEvent::Header { name: &header[..end], comment: header.get(end + 1..).unwrap_or_default() });
        Ok(())
    }

    /// Checks that the sequence that ends here has bases, if there is one.
    fn check_last(&self) -> Result<(), Error> {
        match self.headers.last() {
            Some((name, line)) if !self.has_bases => Err(self.error_at(*line, FastaLineFault::NoBases(name.clone()))),
            _ => Ok(()),
        }
    }

    fn finish(&self) -> Result<(), Error> {
        self.check_last()?;
        if self.headers.is_empty() {
            return Err(Error::error_in_file(self.path, FileFault::Empty));
        }
        Ok(())
    }
}
