//! The reference of a CRAM file: sequences of a FASTA file, read on demand.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use noodles_fasta::fai;
use serde::{Deserialize, Serialize};

use crate::compression::CompressionFormat;
use crate::error::FileFault;
use crate::fasta::Reference;
use crate::md5_sum::md5_hex;

/// The FASTA file of the reference that CRAM files refer to, if there is one. Clones share the open file and its
/// index.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CramReference {
    path: Option<PathBuf>,
    #[serde(skip)]
    sequences_cache: Arc<Mutex<Option<Arc<Sequences>>>>,
    /// Names of sequences and MD5 sums for which [`CramReference::check_sequence_md5`] has succeeded.
    #[serde(skip)]
    checked_md5: Arc<Mutex<HashSet<NamedMd5>>>,
}

impl PartialEq for CramReference {
    fn eq(&self, other: &CramReference) -> bool {
        self.path == other.path
    }
}

impl Eq for CramReference {}

/// Name of a sequence, and its MD5 sum in lower-case hexadecimal digits.
type NamedMd5 = (Vec<u8>, String);

/// Where the bases of a sequence are read from.
#[derive(Debug)]
enum Sequences {
    /// A plain FASTA file with its index, which is read from the `.fai` file or, without one, made in memory.
    Indexed { file: File, index: HashMap<Vec<u8>, fai::Record> },
    /// Memory: a compressed file has no random access and is read as a whole.
    InMemory(HashMap<Vec<u8>, Arc<Vec<u8>>>),
}

impl CramReference {
    /// Creates the reference from a FASTA file, plain or compressed, which is opened when it is needed; `None` for no
    /// reference.
    pub fn new(path: Option<PathBuf>) -> CramReference {
        CramReference { path, sequences_cache: Arc::default(), checked_md5: Arc::default() }
    }

    /// Path of the FASTA file; `None` without a reference.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Path of the FASTA file. The caller may change it before the file is opened.
    pub fn path_mut(&mut self) -> Option<&mut PathBuf> {
        self.path.as_mut()
    }

    /// Reads the bases of a sequence, in upper case. Their number must be `length`.
    ///
    /// # Errors
    /// There is no reference, the file cannot be read, or the sequence is missing or has another length.
    pub fn read_sequence(&self, name: &[u8], length: usize) -> io::Result<Vec<u8>> {
        let Some(path) = &self.path else { return Err(io::Error::other(FileFault::ReferenceRequired)) };
        let lossy = || String::from_utf8_lossy(name).into_owned();
        let sequences = self.sequences(path)?;
        let lacks = || io::Error::other(FileFault::ReferenceMissingSequence { reference: path.clone(), name: lossy() });
        let differs = |is: usize| {
            let (reference, name) = (path.clone(), lossy());
            io::Error::other(FileFault::ReferenceLength { reference, name, reference_bases: is, file_bases: length })
        };
        let (file, record) = match &*sequences {
            Sequences::InMemory(all) => {
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
        file.read_exact_at(&mut bases, record.position()).map_err(name_reference(path))?;
        bases.retain(|base| !matches!(base, b'\n' | b'\r'));
        bases.make_ascii_uppercase();
        // Another length, or a header among the bases, means that the index belongs to another file.
        if bases.len() == length && !bases.contains(&b'>') { Ok(bases) } else { Err(differs(bases.len())) }
    }

    /// Checks that the bases of a sequence have the MD5 sum `expected` (hexadecimal digits). A correct sum is computed
    /// only once for each sequence. Without a FASTA file nothing is checked.
    ///
    /// # Errors
    /// They have another sum, or cannot be read (see [`CramReference::read_sequence`]).
    pub(super) fn check_sequence_md5(&self, name: &[u8], length: usize, expected: &str) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let checked = (name.to_vec(), expected.to_ascii_lowercase());
        let lock = || self.checked_md5.lock().unwrap_or_else(PoisonError::into_inner);
        if lock().contains(&checked) {
            return Ok(());
        }
        if md5_hex(&self.read_sequence(name, length)?) != checked.1 {
            let (reference, name) = (path.clone(), String::from_utf8_lossy(name).into_owned());
            return Err(io::Error::other(FileFault::ReferenceMd5 { reference, name }));
        }
        lock().insert(checked);
        Ok(())
    }

    fn sequences(&self, path: &Path) -> io::Result<Arc<Sequences>> {
        let mut found = self.sequences_cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*found {
            return Ok(found.clone());
        }
        let named = name_reference(path);
        let file = File::open(path).map_err(&named)?;
        let mut head = [0; CompressionFormat::MAX_MAGIC_BYTES];
        let n = file.read_at(&mut head, 0).map_err(&named)?;
        let all = if CompressionFormat::detect(&head[..n]).is_some() {
            let reference = Reference::read_fasta_file(path).map_err(|e| io::Error::other(e.to_string()))?;
            let held = reference.contigs.into_iter();
            Sequences::InMemory(held.map(|contig| (contig.name.into_bytes(), Arc::new(contig.seq))).collect())
        } else {
            let beside = PathBuf::from(format!("{}.fai", path.display()));
            let index = if beside.try_exists().map_err(&named)? {
                fai::fs::read(&beside)
            } else {
                noodles_fasta::fs::index(path)
            };
            let index = index.map_err(&named)?;
            let index = index.as_ref().iter().map(|record| (record.name().to_vec(), record.clone())).collect();
            Sequences::Indexed { file, index }
        };
        Ok(found.insert(Arc::new(all)).clone())
    }
}

/// Returns a function that adds the path of the reference to an error.
fn name_reference(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    move |e| io::Error::other(format!("the reference {}: {e}", path.display()))
}
