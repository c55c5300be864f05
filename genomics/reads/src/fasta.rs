//! FASTA: a reference genome, whole in memory.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use genuma_work::Meter;
use genuma_work::publish::AtomicFile;

use crate::error::{Error, FileFault, LineFault, NameFault, Shown};
use crate::fastq::is_iupac;
use crate::inflate::{Access, Damage, Inflate};

const CHUNK: usize = 256 << 10;

/// One sequence of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contig {
    /// First word of its header.
    pub name: String,
    /// Its bases: upper-case IUPAC letters.
    pub seq: Vec<u8>,
}

/// A reference genome, in the order of its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reference {
    /// The sequences.
    pub contigs: Vec<Contig>,
    index: HashMap<String, usize>,
}

impl Reference {
    /// Reads a FASTA file: [`read_parts`] with letters in upper case.
    ///
    /// # Errors
    /// Those of [`read_parts`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let mut contigs: Vec<Contig> = Vec::new();
        read_parts(path, |part| match part {
            Part::Header { name, .. } => {
                contigs.push(Contig { name: String::from_utf8_lossy(name).into_owned(), seq: Vec::new() });
            }
            Part::Bases(bases) => {
                if let Some(contig) = contigs.last_mut() {
                    contig.seq.extend(bases.iter().map(u8::to_ascii_uppercase));
                }
            }
        })?;
        Ok(Reference::from_contigs(contigs))
    }

    /// A reference from sequences in memory, which must have different names.
    pub fn from_contigs(contigs: Vec<Contig>) -> Reference {
        let index = contigs.iter().enumerate().map(|(i, c)| (c.name.clone(), i)).collect();
        Reference { contigs, index }
    }

    /// Writes it as plain FASTA, 80 bases a line, atomically.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let mut file = AtomicFile::create(path)?;
        for contig in &self.contigs {
            writeln!(file, ">{}", contig.name).map_err(Error::Named)?;
            for line in contig.seq.chunks(80) {
                file.write_all(line).and_then(|()| file.write_all(b"\n")).map_err(Error::Named)?;
            }
        }
        Ok(file.finish()?)
    }

    /// The sequence of that name.
    pub fn contig(&self, name: &str) -> Option<&Contig> {
        self.position(name).map(|i| &self.contigs[i])
    }

    /// Where in [`Reference::contigs`] the sequence of that name is.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }
}

/// Fails on a name that a sequence must not have in SAM and VCF files.
///
/// # Errors
/// The first byte that is forbidden where it is.
pub fn check_name(name: &[u8]) -> Result<(), NameFault> {
    if let Some(&first @ (b'*' | b'=')) = name.first() {
        return Err(NameFault::Start(Shown(first)));
    }
    let forbidden = |b: &&u8| !b.is_ascii_graphic() || b"\\,\"`'()[]{}<>".contains(b);
    name.iter().find(forbidden).map_or(Ok(()), |&b| Err(NameFault::Holds(Shown(b))))
}

/// A piece of a FASTA file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A sequence begins.
    Header {
        /// First word of the header.
        name: &'a [u8],
        /// What stands behind it and one blank.
        comment: &'a [u8],
    },
    /// The next bases of the sequence: IUPAC letters as they stand in the file, in either case.
    Bases(&'a [u8]),
}

/// Reads a FASTA file, plain or gzip, with any line ends and any case, and hands it over piece by piece, in its order.
///
/// # Errors
/// A file that cannot be read, is empty, does not start with `>`, names a sequence twice or not at all, has a
/// sequence without bases or a letter that is no base.
pub fn read_parts(path: &Path, each: impl FnMut(Part<'_>)) -> Result<(), Error> {
    let meter = Meter::default();
    let mut inflate = Inflate::open(path, &meter, &Access::default())?;
    let mut parser = Parser { path, line: 1, headers: Vec::new(), names: HashMap::new(), bases: false, each };
    // `chunk[..kept]` is the start of a line whose end has not been read yet.
    let (mut chunk, mut kept) = (vec![0; CHUNK], 0);
    loop {
        if kept == chunk.len() {
            chunk.resize(2 * kept, 0);
        }
        let n = inflate.fill(&mut chunk[kept..]).map_err(|damage| parser.damaged(damage))?;
        let filled = kept + n;
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &chunk[..filled]) {
            parser.line(&chunk[start..end])?;
            start = end + 1;
        }
        if n == 0 {
            parser.line(&chunk[start..filled])?;
            return parser.finish();
        }
        chunk.copy_within(start..filled, 0);
        kept = filled - start;
    }
}

struct Parser<'a, F> {
    path: &'a Path,
    /// Number of the next line.
    line: u64,
    /// Name and line of each header.
    headers: Vec<(String, u64)>,
    /// Where in `headers` a name is.
    names: HashMap<String, usize>,
    /// Whether the last sequence has bases.
    bases: bool,
    each: F,
}

impl<F: FnMut(Part<'_>)> Parser<'_, F> {
    fn fault(&self, line: u64, fault: LineFault) -> Error {
        Error::Line { path: PathBuf::from(self.path), line, fault }
    }

    fn damaged(&self, damage: Damage) -> Error {
        let what = match damage {
            Damage::Io(source) => return Error::Read { path: self.path.into(), source },
            Damage::Changed(at) => return Error::file(self.path, FileFault::Changed(at)),
            Damage::Truncated => "they end before their end".to_owned(),
            Damage::Corrupt(what) => what,
        };
        self.fault(self.line, LineFault::Gzip(what))
    }

    fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(header) = line.strip_prefix(b">") {
            self.header(header)?;
        } else if !line.is_empty() {
            if self.headers.is_empty() {
                return Err(self.fault(self.line, LineFault::NoHeader(Shown(line[0]))));
            }
            if let Some(&b) = line.iter().find(|&&b| !is_iupac(b)) {
                return Err(self.fault(self.line, LineFault::Letter(Shown(b))));
            }
            self.bases = true;
            (self.each)(Part::Bases(line));
        }
        self.line += 1;
        Ok(())
    }

    fn header(&mut self, header: &[u8]) -> Result<(), Error> {
        self.check_last()?;
        let end = header.iter().position(u8::is_ascii_whitespace).unwrap_or(header.len());
        if end == 0 {
            return Err(self.fault(self.line, LineFault::NoName));
        }
        let name = String::from_utf8_lossy(&header[..end]).into_owned();
        if let Err(fault) = check_name(&header[..end]) {
            return Err(self.fault(self.line, LineFault::Name { name, fault }));
        }
        if let Some(first) = self.names.insert(name.clone(), self.headers.len()) {
            let first = self.headers[first].1;
            return Err(self.fault(self.line, LineFault::Duplicate { name, first }));
        }
        self.headers.push((name, self.line));
        self.bases = false;
        (self.each)(Part::Header {
            name: &header[..end],
            comment: header.get(end + 1..).unwrap_or_default(),
        });
        Ok(())
    }

    /// A contig that ends must have bases.
    fn check_last(&self) -> Result<(), Error> {
        match self.headers.last() {
            Some((name, line)) if !self.bases => Err(self.fault(*line, LineFault::NoBases(name.clone()))),
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<(), Error> {
        self.check_last()?;
        if self.headers.is_empty() {
            return Err(Error::file(self.path, FileFault::Empty));
        }
        Ok(())
    }
}
