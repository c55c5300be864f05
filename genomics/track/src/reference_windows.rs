//! Reads many ranges of the reference in one pass over its FASTA file. Ranges that overlap are stored once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use genuma_reads::fasta::{FastaEvent, read_fasta_events};
use genuma_work::ProgressCounters;

use crate::error::Error;

/// A range of a reference sequence that is to be read. It may extend beyond the end of the sequence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReferenceWindowRequest {
    /// Name of the reference sequence.
    pub chrom: Arc<str>,
    /// 0-based position of the first base.
    pub from: usize,
    /// 0-based position after the last base.
    pub to: usize,
}

/// The bases of a requested range of the reference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReferenceWindow<'a> {
    /// 0-based position of the first base in `bases`.
    pub start: usize,
    /// Bases of the range, upper case; fewer than requested at the end of the sequence.
    pub bases: &'a [u8],
    /// Whether the reference has a sequence with the requested name.
    pub is_present: bool,
}

impl<'a> ReferenceWindow<'a> {
    /// The bases `from..to` (0-based positions on the reference), as far as the window contains them.
    pub fn bases_in_range(&self, from: usize, to: usize) -> &'a [u8] {
        let at = |pos: usize| pos.saturating_sub(self.start).min(self.bases.len());
        &self.bases[at(from)..at(to).max(at(from))]
    }
}

/// Consecutive bases of a reference sequence that cover one or several requested ranges.
#[derive(Debug)]
struct ReferenceStretch {
    from: usize,
    to: usize,
    bases: Vec<u8>,
}

/// The stretches of one reference sequence, ascending and disjoint.
#[derive(Debug, Default)]
struct SequenceStretches {
    is_present: bool,
    stretches: Vec<ReferenceStretch>,
}

/// The requested ranges of the reference.
#[derive(Debug, Default)]
pub(crate) struct ReferenceWindows(HashMap<Arc<str>, SequenceStretches>);

impl ReferenceWindows {
    /// Joins ranges that overlap; their bases are missing until they are read.
    fn from_requests(mut requests: Vec<ReferenceWindowRequest>) -> ReferenceWindows {
        requests.sort_unstable();
        let mut windows = ReferenceWindows::default();
        for ReferenceWindowRequest { chrom, from, to } in requests {
            let stretches = &mut windows.0.entry(chrom).or_default().stretches;
            match stretches.last_mut() {
                Some(last) if from <= last.to => last.to = last.to.max(to),
                _ => stretches.push(ReferenceStretch { from, to, bases: Vec::new() }),
            }
        }
        windows
    }

    /// The bases of a range that was requested.
    pub(crate) fn requested_window(&self, request: &ReferenceWindowRequest) -> ReferenceWindow<'_> {
        let &ReferenceWindowRequest { ref chrom, from, to } = request;
        let Some(SequenceStretches { is_present, stretches }) = self.0.get(chrom) else {
            return ReferenceWindow { start: from, ..ReferenceWindow::default() };
        };
        let index = stretches.partition_point(|stretch| stretch.from <= from).saturating_sub(1);
        let bases = stretches.get(index).map_or(&[][..], |stretch| {
            ReferenceWindow { start: stretch.from, bases: &stretch.bases, is_present: true }.bases_in_range(from, to)
        });
        ReferenceWindow { start: from, bases, is_present: *is_present }
    }
}

/// Reads the requested ranges.
///
/// # Errors
/// The reference cannot be read.
pub(crate) fn read_reference_windows(
    reference: &Path,
    requests: Vec<ReferenceWindowRequest>,
    meter: &ProgressCounters,
) -> Result<ReferenceWindows, Error> {
    let mut windows = ReferenceWindows::from_requests(requests);
    // The name of the current sequence if a range of it was requested, the number of its stretches that are complete,
    // the number of its bases that were read.
    let (mut current, mut done, mut at): (Option<Arc<str>>, usize, usize) = (None, 0, 0);
    read_fasta_events(reference, |part| match part {
        FastaEvent::Header { name, .. } => {
            let known = windows.0.get_key_value(&*String::from_utf8_lossy(name));
            current = known.map(|(name, _)| name.clone());
            let sequence = current.as_ref().and_then(|name| windows.0.get_mut(name));
            sequence.into_iter().for_each(|sequence| sequence.is_present = true);
            (done, at) = (0, 0);
        }
        FastaEvent::Bases(bases) => {
            let end = at + bases.len();
            let sequence = current.as_ref().and_then(|name| windows.0.get_mut(name));
            let here = sequence.map_or(&mut [][..], |sequence| &mut sequence.stretches);
            for ReferenceStretch { from, to, bases: found } in
                here[done..].iter_mut().take_while(|stretch| stretch.from < end)
            {
                if *from >= at {
                    found.reserve_exact(*to - *from);
                }
                let (from, to) = ((*from).max(at), (*to).min(end));
                if from < to {
                    found.extend(bases[from - at..to - at].iter().map(u8::to_ascii_uppercase));
                }
            }
            while here.get(done).is_some_and(|stretch| stretch.to <= end) {
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
        let windows = read_reference_windows(&path, wanted.to_vec(), &ProgressCounters::default()).unwrap();
        let found = wanted.each_ref().map(|request| windows.requested_window(request));
        assert_eq!(*found[0].bases, upper[400..]);
        assert_eq!(*found[1].bases, upper[10..200]);
        assert_eq!((found[2].bases, found[3].bases), (&b"CG"[..], &upper[20..21]));
        assert!(!found[4].is_present && found[0].is_present);
        assert_eq!(found[1].bases_in_range(5, 20), &upper[10..20]);
        assert_eq!(found[0].bases_in_range(490, 700), &upper[490..]);
        assert!(found[0].bases_in_range(0, 100).is_empty());
        // Overlapping ranges are stored once.
        let num_bases = windows.0["one"].stretches.iter().map(|stretch| stretch.bases.capacity()).sum::<usize>();
        assert_eq!((windows.0["one"].stretches.len(), num_bases), (2, 390));
    }
}
