//! Stretches of the reference, taken out of it as it streams by.

use std::collections::HashMap;
use std::path::Path;

use genuma_reads::fasta::{Part, read_parts};
use genuma_work::Meter;

use crate::error::Error;

/// Bases `from..to` of a sequence, of which there may be fewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Name of the sequence.
    pub chrom: String,
    /// First base.
    pub from: usize,
    /// One past the last.
    pub to: usize,
}

/// What a stretch holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    /// Position of its first base.
    pub from: usize,
    /// Upper-case letters.
    pub bases: Vec<u8>,
    /// Whether the reference has the sequence.
    pub there: bool,
}

impl Window {
    /// Bases `from..to` in coordinates of the reference, as far as there are any.
    pub fn slice(&self, from: usize, to: usize) -> &[u8] {
        let at = |pos: usize| pos.saturating_sub(self.from).min(self.bases.len());
        &self.bases[at(from)..at(to).max(at(from))]
    }
}

/// Takes out what is wanted, in the same order.
///
/// # Errors
/// A reference that cannot be read.
pub fn windows(reference: &Path, wanted: &[Wanted], meter: &Meter) -> Result<Vec<Window>, Error> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    (0..wanted.len()).for_each(|i| by_name.entry(&wanted[i].chrom).or_default().push(i));
    by_name.values_mut().for_each(|all| all.sort_by_key(|&i| (wanted[i].from, wanted[i].to)));
    let mut windows: Vec<Window> =
        wanted.iter().map(|w| Window { from: w.from, ..Window::default() }).collect();
    // Of the sequence in hand: what is wanted of it, how many of these are done with, and how many of its bases went by.
    let (mut here, mut done, mut at): (&[usize], usize, usize) = (&[], 0, 0);
    read_parts(reference, |part| match part {
        Part::Header { name, .. } => {
            here = by_name.get(&*String::from_utf8_lossy(name)).map_or(&[], Vec::as_slice);
            here.iter().for_each(|&i| windows[i].there = true);
            (done, at) = (0, 0);
        }
        Part::Bases(bases) => {
            let end = at + bases.len();
            for &i in here[done..].iter().take_while(|&&i| wanted[i].from < end) {
                let (from, to) = (wanted[i].from.max(at), wanted[i].to.min(end));
                if from < to {
                    windows[i].bases.extend(bases[from - at..to - at].iter().map(u8::to_ascii_uppercase));
                }
            }
            while here.get(done).is_some_and(|&i| wanted[i].to <= end) {
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
        let want = |chrom: &str, from, to| Wanted { chrom: chrom.into(), from, to };
        let wanted = [
            want("one", 400, 600),
            want("one", 10, 200),
            want("other", 1, 3),
            want("one", 20, 21),
            want("none", 0, 5),
        ];
        let found = windows(&path, &wanted, &Meter::default()).unwrap();
        assert_eq!(found[0].bases, upper[400..]);
        assert_eq!(found[1].bases, upper[10..200]);
        assert_eq!((found[2].bases.as_slice(), found[3].bases.as_slice()), (&b"CG"[..], &upper[20..21]));
        assert!(!found[4].there && found[0].there);
        assert_eq!(found[1].slice(5, 20), &upper[10..20]);
        assert_eq!(found[0].slice(490, 700), &upper[490..]);
        assert!(found[0].slice(0, 100).is_empty());
    }
}
