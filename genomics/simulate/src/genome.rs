//! The reference genome: read from FASTA, written as FASTA with its index.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use genuma_reads::dna;
use genuma_reads::fasta::Reference;
use genuma_work::publish::{AtomicFile, Set};

use crate::error::Result;

/// Contigs in file order, upper-case A, C, G, T and N.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genome {
    /// Contig names: the first word of each header.
    pub names: Vec<String>,
    /// Contig sequences.
    pub seqs: Vec<Vec<u8>>,
}

const LINE: usize = 60;

impl Genome {
    /// Reads FASTA, plain or gzip'd; letters other than A, C, G and T become N.
    pub fn read(path: &Path) -> Result<Self> {
        let reference = Reference::read(path)?;
        let clean = |seq: Vec<u8>| seq.into_iter().map(|b| dna::base(dna::code(b))).collect();
        let (names, seqs) = reference.contigs.into_iter().map(|c| (c.name, clean(c.seq))).unzip();
        Ok(Genome { names, seqs })
    }

    /// Bases of all contigs.
    pub fn length(&self) -> usize {
        self.seqs.iter().map(Vec::len).sum()
    }

    /// Bases of the longest contig.
    pub fn longest_contig(&self) -> usize {
        self.seqs.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Bases that are not N.
    pub fn known_bases(&self) -> usize {
        self.seqs.iter().flatten().filter(|&&b| b != b'N').count()
    }

    /// Writes `path` (60 bases a line) and `path.fai`, and puts them into `set`.
    pub fn write(&self, path: &Path, set: &mut Set) -> Result<()> {
        let mut text = Vec::with_capacity(self.length() + self.length() / LINE + 100);
        let mut index = String::new();
        for (name, seq) in self.names.iter().zip(&self.seqs) {
            text.extend_from_slice(format!(">{name}\n").as_bytes());
            let _ = writeln!(index, "{name}\t{}\t{}\t{LINE}\t{}", seq.len(), text.len(), LINE + 1);
            for line in seq.chunks(LINE) {
                text.extend_from_slice(line);
                text.push(b'\n');
            }
        }
        write_file(path, &text, set)?;
        let mut fai = path.as_os_str().to_owned();
        fai.push(".fai");
        write_file(Path::new(&fai), index.as_bytes(), set)
    }
}

/// Writes a file at once, and puts it into `set`.
pub(crate) fn write_file(path: &Path, content: &[u8], set: &mut Set) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(content)?;
    set.add(file.complete()?);
    Ok(())
}
