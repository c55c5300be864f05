//! The reference genome: reads FASTA files, and writes FASTA with its index.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use genuma_reads::dna;
use genuma_reads::fasta::Reference;
use genuma_work::publish::{AtomicFile, AtomicFileSet};

use crate::error::Result;

/// The contigs of a genome in file order, as upper-case A, C, G, T and N.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genome {
    /// Names of the contigs: the first word of each FASTA header.
    pub names: Vec<String>,
    /// Sequences of the contigs. They are reference-counted, so that cloning a genome does not copy them.
    pub seqs: Vec<Arc<Vec<u8>>>,
}

/// Bases per line of the FASTA output.
const FASTA_LINE_BASES: usize = 60;
/// Number of FASTA lines that are collected before each write.
const FASTA_LINES_PER_WRITE: usize = 20_000;

impl Genome {
    /// Creates a genome from contig names and as many sequences.
    pub fn from_sequences(names: Vec<String>, seqs: Vec<Vec<u8>>) -> Self {
        Genome { names, seqs: seqs.into_iter().map(Arc::new).collect() }
    }

    /// Reads a FASTA file, plain or gzipped. Bases other than A, C, G and T become N.
    pub fn read_fasta(path: &Path) -> Result<Self> {
        let reference = Reference::read_fasta_file(path)?;
        let clean = |seq: Vec<u8>| seq.into_iter().map(|b| dna::decode_base(dna::encode_base(b))).collect();
        let (names, seqs) = reference.contigs.into_iter().map(|c| (c.name, clean(c.seq))).unzip();
        Ok(Genome::from_sequences(names, seqs))
    }

    /// Returns the total length of all contigs, bp.
    pub fn length_bp(&self) -> usize {
        self.seqs.iter().map(|seq| seq.len()).sum()
    }

    /// Returns the length of the longest contig, bp.
    pub(crate) fn longest_contig_bp(&self) -> usize {
        self.seqs.iter().map(|seq| seq.len()).max().unwrap_or(0)
    }

    /// Returns the number of bases that are not N, over all contigs.
    pub(crate) fn num_acgt_bases(&self) -> usize {
        self.seqs.iter().map(|seq| seq.iter().filter(|&&b| b != b'N').count()).sum()
    }

    /// Writes the genome as FASTA to `path` (60 bases a line) and its index to `path.fai`. Adds both files to `set`,
    /// which publishes them later.
    pub fn write_fasta_and_index(&self, path: &Path, set: &mut AtomicFileSet) -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        let mut index = String::new();
        let mut written = 0;
        let mut text: Vec<u8> = Vec::with_capacity(FASTA_LINES_PER_WRITE * (FASTA_LINE_BASES + 1));
        for (name, seq) in self.names.iter().zip(&self.seqs) {
            let header = format!(">{name}\n");
            file.write_all(header.as_bytes())?;
            written += header.len();
            let _ = writeln!(index, "{name}\t{}\t{written}\t{FASTA_LINE_BASES}\t{}", seq.len(), FASTA_LINE_BASES + 1);
            for lines in seq.chunks(FASTA_LINES_PER_WRITE * FASTA_LINE_BASES) {
                text.clear();
                for line in lines.chunks(FASTA_LINE_BASES) {
                    text.extend_from_slice(line);
                    text.push(b'\n');
                }
                file.write_all(&text)?;
                written += text.len();
            }
        }
        set.add_file(file.flush_to_partial_file()?);
        let mut fai = path.as_os_str().to_owned();
        fai.push(".fai");
        write_file_and_add_to_set(Path::new(&fai), index.as_bytes(), set)
    }
}

/// Writes `content` to a file and adds the file to `set`, which publishes it later.
pub(crate) fn write_file_and_add_to_set(path: &Path, content: &[u8], set: &mut AtomicFileSet) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(content)?;
    set.add_file(file.flush_to_partial_file()?);
    Ok(())
}
