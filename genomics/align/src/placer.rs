//! A loaded index and the mapping of sequences and pairs against it.

use std::fs;
use std::path::{Path, PathBuf};

use genuma_reads::fasta::Reference;
use minibwa::{Aligner, Hit, Index, Meth, Opts, ThreadBuf};

/// Memory that building an index takes, bytes a base (measured on 100 Mbp: 11.1).
pub const INDEX_BYTES_PER_BASE: u64 = 12;

/// What can go wrong while an index is made or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// minibwa refused.
    #[error("index of {path}: {source}")]
    Index {
        /// The reference or index prefix.
        path: PathBuf,
        /// minibwa's own words.
        source: minibwa::Error,
    },
    /// The index was made from another reference.
    #[error(
        "{path}: an index of another reference ({difference}); make it again with `minibwa index`, or remove it"
    )]
    Foreign {
        /// The index prefix.
        path: PathBuf,
        /// First sequence in which they differ.
        difference: String,
    },
    /// A sequence could not be mapped.
    #[error("mapping {name}: {source}")]
    Map {
        /// Name of the sequence.
        name: String,
        /// minibwa's own words.
        source: minibwa::Error,
    },
    /// An index file could not be renamed to its final name.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's own words.
        source: std::io::Error,
    },
}

/// A reference index in memory, shared by all threads.
pub struct Placer {
    index: Index,
    opts: Opts,
}

/// The two files of an index at `prefix`.
fn index_files(prefix: &Path) -> [PathBuf; 2] {
    ["l2b", "mbw"].map(|ext| {
        let mut name = prefix.as_os_str().to_owned();
        name.push(".");
        name.push(ext);
        PathBuf::from(name)
    })
}

impl Placer {
    /// Whether a complete index stands at `prefix`.
    pub fn index_exists(prefix: &Path) -> bool {
        index_files(prefix).iter().all(|f| f.is_file())
    }

    /// Builds the index of `fasta` (plain, upper-case) at `prefix`; both files appear only when complete.
    pub fn build(fasta: &Path, prefix: &Path, threads: usize) -> Result<(), Error> {
        let mut partial = prefix.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        Index::build_from_fasta(fasta, &partial, false, threads as u32)
            .map_err(|source| Error::Index { path: fasta.to_path_buf(), source })?;
        for (from, to) in index_files(&partial).iter().zip(index_files(prefix)) {
            fs::rename(from, &to).map_err(|source| Error::Io { path: to.clone(), source })?;
        }
        Ok(())
    }

    /// Loads the index at `prefix`, which must be of `genome`: same names and lengths in the same order.
    pub fn load(prefix: &Path, genome: &Reference) -> Result<Placer, Error> {
        let index = Index::load(prefix, false)
            .map_err(|source| Error::Index { path: prefix.to_path_buf(), source })?;
        let foreign = |difference| Error::Foreign { path: prefix.to_path_buf(), difference };
        if index.n_contigs() != genome.contigs.len() {
            let (n, m) = (index.n_contigs(), genome.contigs.len());
            return Err(foreign(format!("it has {n} sequences, the reference {m}")));
        }
        for ((name, len), contig) in index.contigs().zip(&genome.contigs) {
            if name != contig.name || len != contig.seq.len() as i64 {
                let (here, bases) = (&contig.name, contig.seq.len());
                return Err(foreign(format!(
                    "{name} of {len} bp stands where the reference has {here} of {bases} bp"
                )));
            }
        }
        Ok(Placer { index, opts: Opts::new().set_out_n(50) })
    }

    /// A mapper for one thread.
    pub fn mapper(&self) -> Mapper<'_> {
        Mapper { placer: self, buffer: ThreadBuf::new() }
    }
}

/// One thread's way to the index.
pub struct Mapper<'a> {
    placer: &'a Placer,
    buffer: ThreadBuf,
}

impl Mapper<'_> {
    /// All alignments of one sequence, primary, supplementary and secondary.
    pub fn map(&mut self, name: &[u8], seq: &[u8]) -> Result<Vec<Hit>, Error> {
        if seq.is_empty() {
            return Ok(Vec::new());
        }
        Aligner::new(&self.placer.index, &self.placer.opts)
            .map(&mut self.buffer, name, seq, Meth::None)
            .map_err(|source| map_error(name, source))
    }

    /// All alignments of two mates, paired as minibwa pairs them.
    pub fn map_pair(&mut self, name: &[u8], mates: [&[u8]; 2]) -> Result<[Vec<Hit>; 2], Error> {
        if mates.iter().any(|m| m.is_empty()) {
            return Ok([self.map(name, mates[0])?, self.map(name, mates[1])?]);
        }
        let (one, two) = Aligner::new(&self.placer.index, &self.placer.opts)
            .map_pair(&mut self.buffer, name, mates[0], name, mates[1])
            .map_err(|source| map_error(name, source))?;
        Ok([one, two])
    }
}

fn map_error(name: &[u8], source: minibwa::Error) -> Error {
    Error::Map { name: String::from_utf8_lossy(name).into_owned(), source }
}
