//! The contigs of the reference and the weights of their reads, from the files that a caller's command names.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use genuma_reads::{AlignedInput, AlignedOptions, CramReference};

use super::callers::CallerCommand;
use super::intervals::{Contig, CumulativeWeight};
use super::read_index::{IndexError, find_index, read_weights};

/// What the balance of the intervals is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightSource {
    /// Bytes of the reads, from the indexes of the files.
    Reads,
    /// Lengths of the contigs.
    Length,
}

impl WeightSource {
    /// Name in the log and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            WeightSource::Reads => "reads",
            WeightSource::Length => "length",
        }
    }
}

/// Contigs of the reference, and the weight of their reads.
#[derive(Debug, Clone)]
pub struct CallerInput {
    /// Contigs, in the order of the header of the first file of reads, or of the reference.
    pub contigs: Vec<Contig>,
    /// Weights of the contigs.
    pub weights: Vec<CumulativeWeight>,
    /// What the weights are.
    pub source: WeightSource,
}

/// Reason why the reference cannot be divided.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Neither reads nor a reference are known.
    #[error(
        "{caller}: the command names no BAM or CRAM file and no FASTA file, by which genuma divides the reference: name the \
         reads with --reads, or the reference with --reference"
    )]
    NoFiles {
        /// Name of the caller.
        caller: String,
    },
    /// A file of reads cannot be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// An index of reads cannot be read.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The index of the reference cannot be read.
    #[error("{}: the index of the reference cannot be read: {source}; make it with 'samtools faidx {}'", path.display(), reference.display())]
    FastaIndex {
        /// The index.
        path: PathBuf,
        /// The reference.
        reference: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// The files have no contigs.
    #[error("{}: has no contigs", path.display())]
    NoContigs {
        /// The file of reads, or the index of the reference.
        path: PathBuf,
    },
    /// The name of a contig is not possible in an interval as text.
    #[error(
        "contig '{name}': its name has a ':', ',' or '{{', so programs may misread {{interval}}: write {{bed}} in the command instead"
    )]
    AmbiguousName {
        /// Name of the contig.
        name: String,
    },
}

impl CallerInput {
    /// Reads the contigs and weights. `reads` and `reference` are used instead of the files that the command names.
    ///
    /// # Errors
    /// There are no files, a file or its index cannot be read, or the name of a contig is not possible in an interval.
    pub fn read(
        caller: &CallerCommand,
        reads: &[PathBuf],
        reference: Option<&Path>,
    ) -> Result<CallerInput, InputError> {
        let reads = if reads.is_empty() { &caller.reads } else { reads };
        let reference = reference.or(caller.reference.as_deref());
        let input = match (reads, reference) {
            ([], None) => return Err(InputError::NoFiles { caller: caller.name.clone() }),
            ([], Some(reference)) => CallerInput::from_fasta_index(reference)?,
            (reads, reference) => CallerInput::from_reads(reads, reference)?,
        };
        let is_ambiguous = |contig: &&Contig| contig.name.contains([':', ',', '{']);
        match input.contigs.iter().find(is_ambiguous) {
            Some(contig) if !caller.accepts_several_regions() => {
                Err(InputError::AmbiguousName { name: contig.name.clone() })
            }
            _ => Ok(input),
        }
    }

    fn from_reads(reads: &[PathBuf], reference: Option<&Path>) -> Result<CallerInput, InputError> {
        let (mut contigs, mut weights): (Vec<Contig>, Vec<CumulativeWeight>) = (Vec::new(), Vec::new());
        let mut indexes: HashMap<String, usize> = HashMap::new();
        for path in reads {
            let reference = CramReference::new(reference.map(Path::to_owned));
            let header =
                AlignedInput::new(path, AlignedOptions { reference, ..AlignedOptions::default() }).read_header()?;
            let of_file = read_weights(&find_index(path)?)?;
            if contigs.is_empty() {
                let contig = |sequence: &genuma_reads::HeaderSequence| Contig {
                    name: sequence.name.clone(),
                    length: sequence.length,
                };
                contigs = header.sequences.iter().map(contig).collect();
                indexes = contigs.iter().enumerate().map(|(n, contig)| (contig.name.clone(), n)).collect();
                weights = vec![CumulativeWeight::default(); contigs.len()];
            }
            for (sequence, weight) in header.sequences.iter().zip(&of_file) {
                if let Some(&contig) = indexes.get(&sequence.name) {
                    weights[contig] = weights[contig].add(weight);
                }
            }
        }
        if contigs.is_empty() {
            return Err(InputError::NoContigs { path: reads[0].clone() });
        }
        Ok(CallerInput { contigs, weights, source: WeightSource::Reads })
    }

    fn from_fasta_index(reference: &Path) -> Result<CallerInput, InputError> {
        let mut name = OsString::from(reference);
        name.push(".fai");
        let path = PathBuf::from(name);
        let error = |source| InputError::FastaIndex { path: path.clone(), reference: reference.to_owned(), source };
        let text = fs::read_to_string(&path).map_err(error)?;
        let contig = |line: &str| {
            let (name, rest) = line.split_once('\t')?;
            let length = rest.split('\t').next()?.parse().ok()?;
            Some(Contig { name: name.to_owned(), length })
        };
        let contigs: Option<Vec<Contig>> = text.lines().map(contig).collect();
        let contigs = contigs.ok_or_else(|| error(io::ErrorKind::InvalidData.into()))?;
        if contigs.is_empty() {
            return Err(InputError::NoContigs { path });
        }
        let weights = contigs.iter().map(|contig| CumulativeWeight::of_length(contig.length)).collect();
        Ok(CallerInput { contigs, weights, source: WeightSource::Length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_reads_the_lengths_of_the_reference_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let reference = folder.path().join("r.fa");
        let caller = |line: &str| {
            CallerCommand::parse(&line.split(' ').map(OsString::from).collect::<Vec<_>>()).expect("a command")
        };
        let error = CallerInput::read(&caller("call {bed}"), &[], Some(&reference)).unwrap_err().to_string();
        assert!(error.contains("r.fa.fai") && error.contains("samtools faidx"), "{error}");
        fs::write(folder.path().join("r.fa.fai"), "a\t100\t3\t60\t61\nHLA-A*01:01\t50\t200\t60\t61\n").expect("a file");
        let input = CallerInput::read(&caller("call {bed}"), &[], Some(&reference)).expect("contigs");
        assert_eq!(input.contigs.iter().map(|contig| contig.length).collect::<Vec<_>>(), [100, 50]);
        assert_eq!(input.source, WeightSource::Length);
        let error = CallerInput::read(&caller("call {interval}"), &[], Some(&reference)).unwrap_err().to_string();
        assert!(error.contains("HLA-A*01:01") && error.contains("write {bed}"), "{error}");
        let error = CallerInput::read(&caller("call {bed}"), &[], None).unwrap_err().to_string();
        assert!(error.contains("--reads"), "{error}");
    }
}
