//! Reads many ranges of the reference in one pass over its FASTA file.

use std::collections::HashMap;
use std::path::Path;

use genuma_reads::fasta::{FastaEvent, read_fasta};
use genuma_work::ProgressCounters;

use crate::error::Error;

/// A range of a reference sequence that is to be read. It may extend beyond the end of the sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReferenceWindowRequest {
    /// Name of the reference sequence.
    pub chrom: String,
    /// 0-based position of the first base.
    pub from: usize,
    /// 0-based position after the last base.
    pub to: usize,
}

/// The bases of a requested range of the reference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReferenceWindow {
    /// 0-based position of the first base in `bases`.
    pub start: usize,
    /// Bases of the range, upper case; fewer than requested at the end of the sequence.
    pub bases: Vec<u8>,
    /// Whether the reference has a sequence with the requested name.
    pub is_present: bool,
}

impl ReferenceWindow {
    /// The bases `from..to` (0-based positions on the reference), as far as the window contains them.
    pub fn bases_in_range(&self, from: usize, to: usize) -> &[u8] {
        let at = |pos: usize| pos.saturating_sub(self.start).min(self.bases.len());
        &self.bases[at(from)..at(to).max(at(from))]
    }
}

/// Reads the requested ranges; the result has their order.
///
/// # Errors
/// The reference cannot be read.
pub(crate) fn read_reference_windows(
    reference: &Path,
    requests: &[ReferenceWindowRequest],
    meter: &ProgressCounters,
) -> Result<Vec<ReferenceWindow>, Error> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    (0..requests.len()).for_each(|i| by_name.entry(&requests[i].chrom).or_default().push(i));
    by_name.values_mut().for_each(|all| all.sort_by_key(|&i| (requests[i].from, requests[i].to)));
    let mut windows: Vec<ReferenceWindow> =
        requests.iter().map(|w| ReferenceWindow { start: w.from, ..ReferenceWindow::default() }).collect();
    // For the current sequence: its requests, the number of completed requests, the number of bases read.
    let (mut here, mut done, mut at): (&[usize], usize, usize) = (&[], 0, 0);
    read_fasta(reference, |part| match part {
        FastaEvent::Header { name, .. } => {
            here = by_name.get(&*String::from_utf8_lossy(name)).map_or(&[], Vec::as_slice);
            here.iter().for_each(|&i| windows[i].is_present = true);
            (done, at) = (0, 0);
        }
        FastaEvent::Bases(bases) => {
            let end = at + bases.len();
            for &i in here[done..].iter().take_while(|&&i| requests[i].from < end) {
                let (from, to) = (requests[i].from.max(at), requests[i].to.min(end));
                if from < to {
                    windows[i].bases.extend(bases[from - at..to - at].iter().map(u8::to_ascii_uppercase));
                }
            }
            while here.get(done).is_some_and(|&i| requests[i].to <= end) {
                done += 1;
            }
            at = end;
            meter.add_bytes(bases.len() as u64);
        }
    })?;
    Ok(windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_whole_across_lines_and_end_with_the_sequence() {
        let seq: Vec<u8> = (0..500).map(|i| b"acgtn"[i * i % 5]).collect();
        let lines: Vec<u8> = seq.chunks(60).flat_map(|l| [l, b"\n"].concat()).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("genome.fa");
        std::fs::write(&path, [b">one two\n", &lines[..], b">other\nACGT\n"].concat()).unwrap();
        let upper = seq.to_ascii_uppercase();
        let want = |chrom: &str, from, to| ReferenceWindowRequest { chrom: chrom.into(), from, to };
        let wanted =
            [want("one", 400, 600), want("one", 10, 200), want("other", 1, 3), want("one", 20, 21), want("none", 0, 5)];
        let found = read_reference_windows(&path, &wanted, &ProgressCounters::default()).unwrap();
        assert_eq!(found[0].bases, upper[400..]);
        assert_eq!(found[1].bases, upper[10..200]);
        assert_eq!((found[2].bases.as_slice(), found[3].bases.as_slice()), (&b"CG"[..], &upper[20..21]));
        assert!(!found[4].is_present && found[0].is_present);
        assert_eq!(found[1].bases_in_range(5, 20), &upper[10..20]);
        assert_eq!(found[0].bases_in_range(490, 700), &upper[490..]);
        assert!(found[0].bases_in_range(0, 100).is_empty());
    }
}
