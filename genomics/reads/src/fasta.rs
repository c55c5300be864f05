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
    /// Reads a FASTA file, plain or gzip, with any line ends and any case.
    ///
    /// # Errors
    /// A file that cannot be read, is empty, does not start with `>`, names a sequence twice or not at all, has a
    /// sequence without bases or a letter that is no base.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let meter = Meter::default();
        let mut inflate = Inflate::open(path, &meter, &Access::default())?;
        let mut parser = Parser { path, line: 1, headers: Vec::new(), reference: Reference::default() };
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

struct Parser<'a> {
    path: &'a Path,
    /// Number of the next line.
    line: u64,
    /// Line of each contig's header.
    headers: Vec<u64>,
    reference: Reference,
}

impl Parser<'_> {
    fn fault(&self, line: u64, fault: LineFault) -> Error {
        Error::Line { path: PathBuf::from(self.path), line, fault }
    }

    fn damaged(&self, damage: Damage) -> Error {
        let what = match damage {
            Damage::Io(source) => return Error::Read { path: self.path.into(), source },
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
            let Some(contig) = self.reference.contigs.last_mut() else {
                return Err(self.fault(self.line, LineFault::NoHeader(Shown(line[0]))));
            };
            if let Some(&b) = line.iter().find(|&&b| !is_iupac(b)) {
                return Err(self.fault(self.line, LineFault::Letter(Shown(b))));
            }
            contig.seq.extend(line.iter().map(u8::to_ascii_uppercase));
        }
        self.line += 1;
        Ok(())
    }

    fn header(&mut self, header: &[u8]) -> Result<(), Error> {
        self.check_last()?;
        let word = header.split(|b| b.is_ascii_whitespace()).next().unwrap_or_default();
        if word.is_empty() {
            return Err(self.fault(self.line, LineFault::NoName));
        }
        let name = String::from_utf8_lossy(word).into_owned();
        if let Err(fault) = check_name(word) {
            return Err(self.fault(self.line, LineFault::Name { name, fault }));
        }
        let at = self.reference.contigs.len();
        if let Some(first) = self.reference.index.insert(name.clone(), at) {
            return Err(self.fault(self.line, LineFault::Duplicate { name, first: self.headers[first] }));
        }
        self.headers.push(self.line);
        self.reference.contigs.push(Contig { name, seq: Vec::new() });
        Ok(())
    }

    /// A contig that ends must have bases.
    fn check_last(&self) -> Result<(), Error> {
        match (self.reference.contigs.last(), self.headers.last()) {
            (Some(contig), Some(&line)) if contig.seq.is_empty() => {
                Err(self.fault(line, LineFault::NoBases(contig.name.clone())))
            }
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<Reference, Error> {
        self.check_last()?;
        if self.reference.contigs.is_empty() {
            return Err(Error::file(self.path, FileFault::Empty));
        }
        Ok(self.reference)
    }
}
