//! Artificial reads: overlapping substrings of the sequences of a reference genome. In a tumour-only call they replace
//! the reads of the normal sample, so that sequence of the reference does not count as tumour-specific.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use genuma_work::ProgressCounters;

use crate::error::Error;
use crate::fasta::{FastaEvent, FastaReader};
use crate::pair_batch::{Mate, PairBatch};

/// Length of an artificial read in bases; reads at the ends of a sequence are shorter.
const READ_BASES: usize = 600;
/// Distance in bases between the starts of consecutive reads. Each k-mer of up to 32 bases is then in at least two
/// reads: a k-mer that occurs once could be a sequencing error.
const STEP_BASES: usize = 284;
/// Quality byte of all bases: Phred 40.
const BASE_QUALITY: u8 = b'I';

/// Approximate number of artificial reads of a sequence of `bases` bases, and of the bases of these reads.
pub(crate) fn estimate_artificial_reads_and_bases(bases: u64) -> [u64; 2] {
    let reads = bases / STEP_BASES as u64;
    [reads, reads * READ_BASES as u64]
}

/// Reader of the artificial reads of a FASTA file.
pub(crate) struct ReferenceReads<'a> {
    path: &'a Path,
    sample: u8,
    progress: &'a ProgressCounters,
    state: Mutex<State<'a>>,
}

enum State<'a> {
    Unopened,
    Open(Box<FastaReader<'a>>, SequenceCutter),
    /// The end of the file was reached, or an error occurred.
    Done,
}

impl<'a> ReferenceReads<'a> {
    /// Creates a reader of the artificial reads of a FASTA file, which count as reads of `sample`. The file is opened
    /// when the first batch is read.
    pub(crate) fn from_fasta_file(path: &'a Path, sample: u8, progress: &'a ProgressCounters) -> ReferenceReads<'a> {
        ReferenceReads { path, sample, progress, state: Mutex::new(State::Unopened) }
    }

    /// Replaces `batch` by the next batch; false if no reads are left. Each read is a pair whose second read is empty.
    ///
    /// # Errors
    /// The file cannot be read, or is no valid FASTA file.
    pub(crate) fn next_batch(&self, batch: &mut PairBatch) -> Result<bool, Error> {
        batch.clear();
        batch.sample = self.sample;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Unopened = *state {
            *state = State::Done;
            let reader = Box::new(FastaReader::open(self.path, self.progress)?);
            *state = State::Open(reader, SequenceCutter::default());
        }
        while batch.is_empty() {
            let State::Open(reader, cutter) = &mut *state else { return Ok(false) };
            match reader.read_events_of_chunk(&mut |event| cutter.add_event(event, batch)) {
                Ok(true) => {}
                Ok(false) => {
                    cutter.end_sequence(batch);
                    *state = State::Done;
                }
                Err(error) => {
                    *state = State::Done;
                    return Err(error);
                }
            }
        }
        Ok(true)
    }
}

/// Cuts reference sequences into overlapping reads of [`READ_BASES`] bases.
#[derive(Default)]
struct SequenceCutter {
    /// Name of the current sequence.
    name: Vec<u8>,
    /// The last bases of the current sequence that have been read from the file, in upper case.
    bases: Vec<u8>,
    /// Position in the sequence of the first base of `bases`.
    bases_start: usize,
    /// Number of reads that have been cut from the current sequence. Read 0 starts before the sequence, so that the
    /// first k-mers are in two reads, too.
    num_reads: usize,
    qualities: Vec<u8>,
    read_name: Vec<u8>,
}

impl SequenceCutter {
    fn add_event(&mut self, event: FastaEvent<'_>, batch: &mut PairBatch) {
        match event {
            FastaEvent::Header { name, .. } => {
                self.end_sequence(batch);
                self.name.clear();
                self.name.extend_from_slice(name);
            }
            FastaEvent::Bases(bases) => {
                self.bases.extend(bases.iter().map(u8::to_ascii_uppercase));
                self.cut_reads(batch, false);
            }
        }
    }

    /// Cuts the last reads of the current sequence, and prepares for the next one.
    fn end_sequence(&mut self, batch: &mut PairBatch) {
        self.cut_reads(batch, true);
        self.bases.clear();
        (self.bases_start, self.num_reads) = (0, 0);
    }

    /// Cuts all reads whose bases have been read. At the end of the sequence (`at_end`), the last reads are shorter.
    /// Reads without A, C, G and T are left out.
    fn cut_reads(&mut self, batch: &mut PairBatch, at_end: bool) {
        let known_end = self.bases_start + self.bases.len();
        loop {
            // Starts are shifted by one step, because the first read starts before the sequence.
            let (shifted_start, shifted_end) = (self.num_reads * STEP_BASES, self.num_reads * STEP_BASES + READ_BASES);
            let (start, end) = (shifted_start.saturating_sub(STEP_BASES), shifted_end - STEP_BASES);
            if end > known_end && (!at_end || start >= known_end) {
                break;
            }
            let read = &self.bases[start - self.bases_start..end.min(known_end) - self.bases_start];
            if read.iter().any(|base| b"ACGT".contains(base)) {
                self.read_name.clear();
                self.read_name.extend_from_slice(&self.name);
                // Writing to memory does not fail.
                let _ = write!(self.read_name, ":{shifted_start}");
                self.qualities.resize(READ_BASES, BASE_QUALITY);
                let mate = Mate { seq: read, qual: &self.qualities[..read.len()] };
                batch.push(&self.read_name, [mate, Mate::WITHOUT_BASES]);
            }
            self.num_reads += 1;
        }
        // Bases before the start of the next read are not needed.
        let next_start = (self.num_reads * STEP_BASES).saturating_sub(STEP_BASES);
        let used = next_start.saturating_sub(self.bases_start).min(self.bases.len());
        if used >= READ_BASES {
            self.bases.drain(..used);
            self.bases_start += used;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn each_kmer_is_in_two_reads_or_more() {
        let mut x = 7u64;
        let mut sequence = |bases: usize| -> Vec<u8> {
            let mut base = || {
                x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                b"ACGTacgt"[(x >> 61) as usize]
            };
            (0..bases).map(|_| base()).collect()
        };
        let sequences = [sequence(40), sequence(700), sequence(100_000), vec![b'N'; 2_000], sequence(601)];
        let mut text = Vec::new();
        for (i, sequence) in sequences.iter().enumerate() {
            writeln!(text, ">s{i} comment").unwrap();
            sequence.chunks(61).for_each(|line| text.extend(line.iter().chain(b"\r\n")));
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genome.fa");
        std::fs::write(&path, text).unwrap();
        let progress = ProgressCounters::default();
        let (reads, mut batch) = (ReferenceReads::from_fasta_file(&path, 0, &progress), PairBatch::default());
        let (mut counts, mut names): (HashMap<Vec<u8>, usize>, Vec<Vec<u8>>) = Default::default();
        while reads.next_batch(&mut batch).unwrap() {
            for pair in batch.iter() {
                assert!(pair.mates[0].seq.len() <= READ_BASES && pair.mates[1].seq.is_empty());
                assert_eq!(pair.mates[0].seq.len(), pair.mates[0].qual.len());
                pair.mates[0].seq.windows(32).for_each(|kmer| *counts.entry(kmer.to_vec()).or_default() += 1);
                names.push(pair.name.to_vec());
            }
        }
        for sequence in sequences.iter().filter(|sequence| sequence[0] != b'N') {
            for kmer in sequence.to_ascii_uppercase().windows(32) {
                assert!(counts.get(kmer).is_some_and(|&n| (2..=3).contains(&n)), "{:?}", counts.get(kmer));
            }
        }
        let all: usize = sequences.iter().filter(|s| s[0] != b'N').map(|s| s.len() - 31).sum();
        assert_eq!(counts.len(), all, "no k-mer across sequences");
        let num_reads = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), num_reads);
    }

    #[test]
    fn an_invalid_file_is_an_error_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genome.fa");
        std::fs::write(&path, ">a\nAC-GT\n").unwrap();
        let progress = ProgressCounters::default();
        let (reads, mut batch) = (ReferenceReads::from_fasta_file(&path, 0, &progress), PairBatch::default());
        assert!(reads.next_batch(&mut batch).is_err());
        assert!(!reads.next_batch(&mut batch).unwrap());
    }
}
