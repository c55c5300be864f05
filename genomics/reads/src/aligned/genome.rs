//! The reference that CRAM was written against: sequences of a FASTA file, read when they are wanted.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use noodles_fasta::fai;
use serde::{Deserialize, Serialize};

use crate::error::FileFault;
use crate::fasta::Reference;

/// A FASTA file. All copies of it share what has been found out of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Genome {
    path: Option<PathBuf>,
    #[serde(skip)]
    found: Arc<Mutex<Option<Arc<Sequences>>>>,
}

impl PartialEq for Genome {
    fn eq(&self, other: &Genome) -> bool {
        self.path == other.path
    }
}

impl Eq for Genome {}

/// Where the bases of each sequence are.
#[derive(Debug)]
enum Sequences {
    /// In a plain file, as its index says.
    Indexed { file: File, index: HashMap<Vec<u8>, fai::Record> },
    /// In memory: nothing of a gzip file can be read by itself.
    Held(HashMap<Vec<u8>, Arc<Vec<u8>>>),
}

impl Genome {
    /// Of a FASTA file, plain or gzip'd, if there is one.
    pub fn of(path: Option<PathBuf>) -> Genome {
        Genome { path, found: Arc::default() }
    }

    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The file, to be changed before it is read.
    pub fn path_mut(&mut self) -> Option<&mut PathBuf> {
        self.path.as_mut()
    }

    /// Bases of a sequence, upper-case, which has to have so many.
    ///
    /// # Errors
    /// There is no file, it cannot be read, or it lacks the sequence or has another of that name.
    pub fn sequence(&self, name: &[u8], length: usize) -> io::Result<Vec<u8>> {
        let Some(path) = &self.path else { return Err(io::Error::other(FileFault::NoReference)) };
        let lossy = || String::from_utf8_lossy(name).into_owned();
        let sequences = self.sequences(path)?;
        let lacks = || io::Error::other(FileFault::ReferenceLacks { reference: path.clone(), name: lossy() });
        let differs = |is: usize| {
            let (reference, name) = (path.clone(), lossy());
            io::Error::other(FileFault::ReferenceLength { reference, name, is, was: length })
        };
        let (file, record) = match &*sequences {
            Sequences::Held(all) => {
                let bases = all.get(name).ok_or_else(lacks)?;
                return if bases.len() == length { Ok(bases.to_vec()) } else { Err(differs(bases.len())) };
            }
            Sequences::Indexed { file, index } => (file, index.get(name).ok_or_else(lacks)?),
        };
        if record.length() as usize != length {
            return Err(differs(record.length() as usize));
        }
        let (line, width) = (record.line_base_count().get(), record.line_width().get());
        let bytes = record.length() / line * width + record.length() % line;
        let mut bases = vec![0; bytes as usize];
        file.read_exact_at(&mut bases, record.position())?;
        bases.retain(|base| !matches!(base, b'\n' | b'\r'));
        bases.make_ascii_uppercase();
        // An index that is not of this file.
        if bases.len() == length && !bases.contains(&b'>') { Ok(bases) } else { Err(differs(bases.len())) }
    }

    fn sequences(&self, path: &Path) -> io::Result<Arc<Sequences>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*found {
            return Ok(found.clone());
        }
        let named = |e: io::Error| io::Error::other(format!("the reference {}: {e}", path.display()));
        let file = File::open(path).map_err(named)?;
        let mut head = [0; 2];
        let n = file.read_at(&mut head, 0).map_err(named)?;
        let all = if head[..n] == [0x1f, 0x8b] {
            let reference = Reference::read(path).map_err(|e| io::Error::other(e.to_string()))?;
            let held = reference.contigs.into_iter();
            Sequences::Held(held.map(|contig| (contig.name.into_bytes(), Arc::new(contig.seq))).collect())
        } else {
            let beside = PathBuf::from(format!("{}.fai", path.display()));
            let index = if beside.exists() { fai::fs::read(&beside) } else { noodles_fasta::fs::index(path) };
            let index = index.map_err(named)?;
            let index =
                index.as_ref().iter().map(|record| (record.name().to_vec(), record.clone())).collect();
            Sequences::Indexed { file, index }
        };
        Ok(found.insert(Arc::new(all)).clone())
    }
}
