//! Examines the first reads of FASTQ files for mistakes that no record shows by itself.

use std::path::{Path, PathBuf};

use genuma_reads::{BatchLimits, ReadBatch, ReadStream, StreamLane, StreamOptions};
use tracing::warn;

/// Number of reads that are examined at the start of each file.
const EXAMINED_READS: usize = 1000;

/// Lowest byte of a quality in Phred+64: Solexa's lowest quality was -5.
const MIN_PHRED64: u8 = b';';
/// Highest byte of a quality in Phred+64 that sequencers wrote: 40, and 41 after recalibration; a few more for safety.
const MAX_PHRED64: u8 = b'l';
/// Highest byte of a quality in Phred+33 that sequencers of short reads write: 41.
const MAX_SEQUENCER_PHRED33: u8 = b'J';

/// Names and range of the qualities of the first reads of a FASTQ file.
struct FirstReads {
    path: PathBuf,
    /// Names without `/1` and `/2`.
    names: Vec<Vec<u8>>,
    /// Lowest and highest byte of the qualities; `None` without qualities.
    qualities: Option<(u8, u8)>,
}

impl FirstReads {
    /// Reads the first records of a regular file. `None` for a pipe, which can be read only once, and for a file that
    /// cannot be read, whose fault is reported when all of it is read.
    fn read(path: &Path) -> Option<FirstReads> {
        let lane = StreamLane::Single(path.to_path_buf());
        if lane.has_pipe() {
            return None;
        }
        let options =
            StreamOptions { batches_ahead: 1, ..StreamOptions::new(BatchLimits::with_reads_per_batch(EXAMINED_READS)) };
        let mut batch = ReadBatch::new();
        // I/O error ignored: reported when the file is opened for all of its reads.
        ReadStream::open(&[lane], options).ok()?.fill_batch(&mut batch).ok()?;
        let qualities = batch.iter().flat_map(|read| read.qual);
        let range = qualities.fold(None, |range, &quality| {
            let (min, max) = range.unwrap_or((quality, quality));
            Some((min.min(quality), max.max(quality)))
        });
        let without_mate_number =
            |name: &[u8]| [b"/1", b"/2"].iter().find_map(|end| name.strip_suffix(*end)).unwrap_or(name).to_vec();
        let names = batch.iter().map(|read| without_mate_number(read.name)).collect();
        Some(FirstReads { path: path.to_path_buf(), names, qualities: range })
    }

    /// Whether the qualities are in the range of Phred+64, and too high for a sequencer in Phred+33.
    fn has_phred64(&self) -> bool {
        self.qualities
            .is_some_and(|(min, max)| min >= MIN_PHRED64 && (MAX_SEQUENCER_PHRED33 + 1..=MAX_PHRED64).contains(&max))
    }

    /// Whether the reads of both files have the same names in the same order.
    fn has_mates_in(&self, other: &FirstReads) -> bool {
        !self.names.is_empty() && self.names.iter().zip(&other.names).all(|(one, two)| one == two)
    }
}

/// Warns of qualities in Phred+64. With `are_single`, the reads have no mates (`--single`): also warns of files that are
/// mates of the file before.
pub(crate) fn warn_of_phred64_and_mate_files<'a>(fastq: impl IntoIterator<Item = &'a Path>, are_single: bool) {
    let files: Vec<FirstReads> = fastq.into_iter().filter_map(FirstReads::read).collect();
    for file in files.iter().filter(|file| file.has_phred64()) {
        warn!(
            "{}: qualities seem to be in Phred+64 (first {EXAMINED_READS} reads) but are read as Phred+33, 31 too \
             high, so wrong bases count as good ones. Convert them with `seqtk seq -Q64 -V`",
            file.path.display()
        );
    }
    for pair in files.windows(2).filter(|pair| are_single && pair[0].has_mates_in(&pair[1])) {
        warn!(
            "{} and {}: have reads of the same names in the same order, so they are mates: omit --single, which reads them as unrelated",
            pair[0].path.display(),
            pair[1].path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(names: &[&str], quality: &str) -> FirstReads {
        let text: String = names.iter().map(|name| format!("@{name}\nACGT\n+\n{quality}\n")).collect();
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("a file");
        FirstReads::read(file.path()).expect("reads")
    }

    #[test]
    fn phred64_is_recognised_by_its_range() {
        for (quality, is_phred64) in [
            ("BBhh", true),
            (";Tgh", true),
            ("IIII", false),
            ("#FFF", false),
            ("JJJJ", false),
            ("5hhh", false),
            ("~~~~", false),
        ] {
            assert_eq!(file(&["a"], quality).has_phred64(), is_phred64, "{quality}");
        }
        let missing = FirstReads::read(Path::new("/nowhere"));
        assert!(missing.is_none());
    }

    #[test]
    fn mates_are_recognised_by_their_names() {
        let pair = [file(&["a/1", "b/1"], "FFFF"), file(&["a/2", "b/2"], "FFFF")];
        assert!(pair[0].has_mates_in(&pair[1]));
        assert!(!pair[0].has_mates_in(&file(&["b/2", "a/2"], "FFFF")));
    }
}
