//! The reference genome: read from FASTA, written as FASTA with its index.

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};

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
        let text = read_maybe_gzip(path)?;
        let (mut names, mut seqs): (Vec<String>, Vec<Vec<u8>>) = (vec![], vec![]);
        for (i, line) in text.split(|&b| b == b'\n').enumerate() {
            let fail =
                |what: &str| Error::Format { path: path.into(), line: i as u64 + 1, what: what.into() };
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some(header) = line.strip_prefix(b">") {
                let name = String::from_utf8_lossy(header);
                let name = name.split_whitespace().next().ok_or_else(|| fail("a contig without a name"))?;
                if names.iter().any(|n| n == name) {
                    return Err(fail(&format!("contig {name} is there twice; rename one")));
                }
                names.push(name.to_owned());
                seqs.push(vec![]);
            } else if !line.is_empty() {
                let seq =
                    seqs.last_mut().ok_or_else(|| fail("sequence before the first '>': not a FASTA file"))?;
                seq.extend(line.iter().map(|&b| genuma_reads::dna::base(genuma_reads::dna::code(b))));
            }
        }
        if seqs.iter().all(Vec::is_empty) {
            return Err(Error::Format {
                path: path.into(),
                line: 1,
                what: "no sequence in this FASTA file".into(),
            });
        }
        Ok(Genome { names, seqs })
    }

    /// Bases of all contigs.
    pub fn length(&self) -> usize {
        self.seqs.iter().map(Vec::len).sum()
    }

    /// Bases that are not N.
    pub fn known_bases(&self) -> usize {
        self.seqs.iter().flatten().filter(|&&b| b != b'N').count()
    }

    /// Writes `path` (60 bases a line) and `path.fai`.
    pub fn write(&self, path: &Path) -> Result<()> {
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
        write_file(path, &text)?;
        let mut fai = path.as_os_str().to_owned();
        fai.push(".fai");
        write_file(Path::new(&fai), index.as_bytes())
    }
}

/// The content of a file, unpacked when it is gzip'd.
pub(crate) fn read_maybe_gzip(path: &Path) -> Result<Vec<u8>> {
    let raw = std::fs::read(path).map_err(Error::io(path))?;
    if !raw.starts_with(&[0x1f, 0x8b]) {
        return Ok(raw);
    }
    let mut text = vec![];
    flate2::read::MultiGzDecoder::new(raw.as_slice()).read_to_end(&mut text).map_err(Error::io(path))?;
    Ok(text)
}

/// Writes a small file at once.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    std::fs::write(path, content).map_err(Error::io(path))
}
