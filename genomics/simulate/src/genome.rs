//! The reference genome: read from FASTA, written as FASTA with its index.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use genuma_reads::dna;
use genuma_reads::fasta::Reference;
use genuma_work::publish::{AtomicFile, Set};

use crate::error::Result;

/// Contigs in file order, upper-case A, C, G, T and N.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genome {
    /// Contig names: the first word of each header.
    pub names: Vec<String>,
    /// Contig sequences. A genome that has one contig more shares the others.
    pub seqs: Vec<Arc<Vec<u8>>>,
}

/// Bases of a line of FASTA.
const LINE: usize = 60;
/// Lines put together before they are written.
const LINES: usize = 20_000;

impl Genome {
    /// Contigs with these names and sequences, of which there must be as many.
    pub fn new(names: Vec<String>, seqs: Vec<Vec<u8>>) -> Self {
        Genome { names, seqs: seqs.into_iter().map(Arc::new).collect() }
    }

    /// Reads FASTA, plain or gzip'd; letters other than A, C, G and T become N.
    pub fn read(path: &Path) -> Result<Self> {
        let reference = Reference::read(path)?;
        let clean = |seq: Vec<u8>| seq.into_iter().map(|b| dna::base(dna::code(b))).collect();
        let (names, seqs) = reference.contigs.into_iter().map(|c| (c.name, clean(c.seq))).unzip();
        Ok(Genome::new(names, seqs))
    }

    /// Bases of all contigs.
    pub fn length(&self) -> usize {
        self.seqs.iter().map(|seq| seq.len()).sum()
    }

    /// Bases of the longest contig.
    pub(crate) fn longest_contig(&self) -> usize {
        self.seqs.iter().map(|seq| seq.len()).max().unwrap_or(0)
    }

    /// Bases that are not N.
    pub fn known_bases(&self) -> usize {
        self.seqs.iter().map(|seq| seq.iter().filter(|&&b| b != b'N').count()).sum()
    }

    /// Writes `path` (60 bases a line) and `path.fai`, and puts them into `set`.
    pub fn write(&self, path: &Path, set: &mut Set) -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        let mut index = String::new();
        let mut written = 0;
        let mut text: Vec<u8> = Vec::with_capacity(LINES * (LINE + 1));
        for (name, seq) in self.names.iter().zip(&self.seqs) {
            let header = format!(">{name}\n");
            file.write_all(header.as_bytes())?;
            written += header.len();
            let _ = writeln!(index, "{name}\t{}\t{written}\t{LINE}\t{}", seq.len(), LINE + 1);
            for lines in seq.chunks(LINES * LINE) {
                text.clear();
                for line in lines.chunks(LINE) {
                    text.extend_from_slice(line);
                    text.push(b'\n');
                }
                file.write_all(&text)?;
                written += text.len();
            }
        }
        set.add(file.complete()?);
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
