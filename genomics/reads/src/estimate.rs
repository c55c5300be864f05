//! How many bases files hold, as far as their sizes and a look at their beginnings tell.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::aligned::{self, Aligned};
use crate::lane::{Lane, LaneFiles};
use crate::packed_read::packed_bytes;
use crate::pipe::is_regular;
use crate::span::{Offset, Span};

/// Bytes of text that are looked at, of all files together, and of one at least and at most.
const LOOK: u64 = 32 << 20;
const LEAST_LOOK: u64 = 256 << 10;
const MOST_LOOK: u64 = 4 << 20;

/// Bytes that are read, and looked at, at once.
const CHUNK: usize = 16 << 10;

/// What files hold, about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Bases of all reads.
    pub bases: u64,
    /// Reads, mates counted one by one.
    pub reads: u64,
    /// Bytes that a [copy](crate::copy) of them takes.
    pub copied: u64,
}

/// Bytes of a pair's numbers in a copy, for each of its reads.
const NUMBERS: u64 = 3;

/// Bytes that reads take in a copy when nothing is known of them: with one quality a letter.
fn copied_at_most(Estimate { bases, reads, .. }: Estimate) -> u64 {
    reads * (packed_bytes(0, 0, 0) + NUMBERS) + bases / 4 + bases
}

impl Estimate {
    /// Of all files of all lanes, or of the slices of them that are the lanes': what their first few million letters hold, for each byte that these take on the disk, is taken for what the
    /// whole file holds, or the slice. A file that is looked at from end to end is known exactly. Pipes hold nothing, as nobody knows; of a file that shows no whole record,
    /// two bases a byte of gzip are assumed, two fifths a byte of plain text, and reads of 150 bases.
    pub fn of(lanes: &[Lane]) -> Estimate {
        Estimate::by_sample(lanes).into_iter().sum()
    }

    /// [`Estimate::of`] the lanes of each sample, by its number.
    pub fn by_sample(lanes: &[Lane]) -> Vec<Estimate> {
        let files = lanes.iter().map(|lane| lane.parts().count()).sum::<usize>();
        let look = (LOOK / files.max(1) as u64).clamp(LEAST_LOOK, MOST_LOOK);
        let mut each: Vec<Estimate> = Vec::new();
        for lane in lanes {
            each.resize(each.len().max(usize::from(lane.sample) + 1), Estimate::default());
            for (path, span) in lane.parts().filter(|(path, _)| is_regular(path).unwrap_or(false)) {
                let own = &mut each[usize::from(lane.sample)];
                let known = match &lane.files {
                    LaneFiles::Aligned(aligned) => of_aligned(aligned, look),
                    _ => None,
                };
                *own = [*own, known.unwrap_or_else(|| of_file(path, span, look))].into_iter().sum();
            }
        }
        each
    }

    /// k-mers of reads of such a number and length.
    pub fn kmers(&self, k: u32) -> u64 {
        self.bases.saturating_sub(self.reads * u64::from(k.saturating_sub(1)))
    }
}

impl std::iter::Sum for Estimate {
    fn sum<I: Iterator<Item = Estimate>>(all: I) -> Estimate {
        all.fold(Estimate::default(), |sum, own| Estimate {
            bases: sum.bases + own.bases,
            reads: sum.reads + own.reads,
            copied: sum.copied + own.copied,
        })
    }
}

/// By the first records of a file of aligned reads; `None` when there are none.
fn of_aligned(of: &Aligned, look: u64) -> Option<Estimate> {
    let size = of.path.metadata().ok()?.len();
    // What is read ahead of what is looked at counts little then.
    let [reads, bases, copied, used] = aligned::estimate(of, 4 * look)?;
    let scaled = |n: u64| (n as f64 * size as f64 / used.max(1) as f64) as u64;
    (reads > 0).then(|| Estimate {
        bases: scaled(bases),
        reads: scaled(reads),
        copied: scaled(copied + reads * NUMBERS),
    })
}

/// By the first `look` bytes of the text of a regular file, or of a stretch of one.
fn of_file(path: &Path, span: Option<Span>, look: u64) -> Estimate {
    let from = span.map_or_else(Offset::default, |span| span.from);
    let open = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from.byte))?;
        Ok::<_, io::Error>((file.metadata()?.len(), file))
    };
    let (size, seen) = match open() {
        Ok((size, file)) => (span.map_or(size, |span| span.bytes()), look_at(file, from, span, look)),
        Err(_) => return Estimate::default(),
    };
    let scaled = |n: u64| (n as f64 * size as f64 / seen.bytes as f64) as u64;
    match seen.estimate {
        Estimate { reads: 0, .. } => {
            let bases = if seen.gzip { size * 2 } else { size * 2 / 5 };
            let held = Estimate { bases, reads: bases / 150, copied: 0 };
            Estimate { copied: copied_at_most(held), ..held }
        }
        Estimate { bases, reads, copied } => {
            Estimate { bases: scaled(bases), reads: scaled(reads), copied: scaled(copied) }
        }
    }
}

/// What was seen of a file.
#[derive(Debug, Default)]
struct Seen {
    gzip: bool,
    /// Whole records.
    estimate: Estimate,
    /// Bytes on the disk that they take.
    bytes: u64,
}

fn look_at(file: File, from: Offset, span: Option<Span>, look: u64) -> Seen {
    let mut disk = Counted { inner: BufReader::with_capacity(CHUNK, file), used: 0 };
    let gzip = disk.fill_buf().is_ok_and(|head| head.starts_with(&[0x1f, 0x8b]));
    let before = u64::from(from.within);
    let records = match gzip {
        // The look may go beyond a stretch of BGZF: what is seen there stands for the stretch as well.
        true => {
            let mut text = MultiGzDecoder::new(&mut disk);
            // What cannot be read is told by whoever reads it.
            let _ = io::copy(&mut text.by_ref().take(before), &mut io::sink());
            Records::of(text.take(look))
        }
        false => Records::of(Read::take(&mut disk, span.map_or(look, |span| span.bytes().min(look)))),
    };
    let Records { seen, whole, text, .. } = records;
    let bytes = (disk.used as f64 * whole as f64 / (before + text).max(1) as f64).max(1.0) as u64;
    Seen { gzip, estimate: seen, bytes }
}

/// Whole records at the beginning of a text.
#[derive(Debug, Default)]
struct Records {
    seen: Estimate,
    /// Their bytes.
    whole: u64,
    /// Bytes of the text.
    text: u64,
    /// Lines of the record in hand that have ended, and letters of the one that has not.
    lines: u32,
    letters: u64,
    /// The last byte.
    last: u8,
    /// Bases of the record in hand, those of them that are none of four, and letters of its header.
    bases: u64,
    unknown: u64,
    header: u64,
    /// Qualities that it has.
    kinds: u128,
}

impl Records {
    /// Of a text; one that is damaged counts as far as it goes, and is told by whoever reads it.
    fn of(mut text: impl Read) -> Records {
        let (mut records, mut buffer) = (Records::default(), [0; CHUNK]);
        while let Ok(n @ 1..) = text.read(&mut buffer) {
            records.take(&buffer[..n]);
        }
        records
    }

    /// Goes on with the next piece of the text.
    fn take(&mut self, piece: &[u8]) {
        let mut at = 0;
        for end in memchr::memchr_iter(b'\n', piece) {
            self.look(&piece[at..end]);
            let before = piece[at..end].last().copied().unwrap_or(if at == 0 { self.last } else { b'\n' });
            let carriage_return = before == b'\r';
            let letters = self.letters + (end - at) as u64 - u64::from(carriage_return);
            self.letters = 0;
            at = end + 1;
            match self.lines {
                0 => self.header = letters,
                1 => self.bases = letters,
                3 => {
                    self.seen.bases += self.bases;
                    self.seen.reads += 1;
                    // A pair has one name, of the first word of its header.
                    let kinds = self.kinds.count_ones() as usize;
                    let packed = packed_bytes(self.bases, self.unknown, kinds);
                    self.seen.copied += packed + NUMBERS + self.header / 2;
                    self.whole = self.text + at as u64;
                    (self.unknown, self.kinds) = (0, 0);
                }
                _ => {}
            }
            self.lines = (self.lines + 1) % 4;
        }
        self.look(&piece[at..]);
        self.letters += (piece.len() - at) as u64;
        self.last = piece.last().copied().unwrap_or(self.last);
        self.text += piece.len() as u64;
    }
}

impl Records {
    /// Looks at letters of the line in hand.
    fn look(&mut self, letters: &[u8]) {
        match self.lines {
            1 => {
                let unknown = letters.iter().filter(|letter| !b"ACGT\r".contains(letter));
                self.unknown += unknown.count() as u64;
            }
            3 => {
                let quals = letters.iter().filter(|&&letter| letter != b'\r');
                self.kinds = quals.fold(self.kinds, |kinds, &qual| kinds | 1 << (qual & 0x7f));
            }
            _ => {}
        }
    }
}

/// Counts the bytes that are taken from it.
struct Counted<R> {
    inner: R,
    used: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.used += n as u64;
        Ok(n)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.used += n as u64;
        self.inner.consume(n);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Write as _;
    use std::path::PathBuf;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::lane::TUMOUR;

    /// A text of `n` reads of 40 to 139 bases.
    fn fastq(n: u64) -> (String, Estimate) {
        let (mut text, mut all) = (String::new(), Estimate { bases: 0, reads: n, copied: 0 });
        let mut state = 1u64;
        for i in 0..n {
            let len = 40 + i % 100;
            let seq: String = (0..len)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    ['A', 'C', 'G', 'T'][(state >> 62) as usize]
                })
                .collect();
            let end = if i % 2 == 0 { "\r\n" } else { "\n" };
            write!(text, "@read{i}\n{seq}{end}+\n{}{end}", "I".repeat(len as usize)).unwrap();
            all.bases += len;
            all.copied += 6 + len.div_ceil(4) + NUMBERS + format!("@read{i}").len() as u64 / 2;
        }
        (text, all)
    }

    fn of(path: PathBuf) -> Estimate {
        Estimate::of(&[Lane::whole(TUMOUR, LaneFiles::Single(path))])
    }

    #[test]
    fn small_files_are_known_and_large_ones_nearly() {
        let folder = tempfile::tempdir().unwrap();
        for (n, tolerance) in [(1000, 0.0), (60_000, 0.01)] {
            let (text, all) = fastq(n);
            let plain = folder.path().join("plain.fq");
            std::fs::write(&plain, &text).unwrap();
            let gzip = folder.path().join("gzip.fq.gz");
            for (level, members) in [(1, 1), (6, 1), (6, 30)] {
                let mut packed = Vec::new();
                for member in text.as_bytes().chunks(text.len().div_ceil(members)) {
                    let mut encoder = GzEncoder::new(&mut packed, Compression::new(level));
                    encoder.write_all(member).unwrap();
                    encoder.finish().unwrap();
                }
                std::fs::write(&gzip, packed).unwrap();
                for path in [&plain, &gzip] {
                    let found = of(path.clone());
                    let near = |a: u64, b: u64| (a as f64 - b as f64).abs() <= tolerance * b as f64;
                    assert!(
                        near(found.bases, all.bases)
                            && near(found.reads, all.reads)
                            && near(found.copied, all.copied),
                        "{found:?} {all:?}"
                    );
                }
            }
        }
        assert_eq!(Estimate { bases: 1500, reads: 10, copied: 0 }.kmers(31), 1200);
        assert_eq!(Estimate { bases: 100, reads: 10, copied: 0 }.kmers(31), 0);
    }

    #[test]
    fn what_shows_no_record_is_guessed_by_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, gzip) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&plain, [b'@'; 1000]).unwrap();
        std::fs::write(&gzip, [0x1f, 0x8b].repeat(500)).unwrap();
        assert_eq!(of(plain).bases, 400);
        assert_eq!(of(gzip).bases, 2000);
        assert_eq!(of(folder.path().join("none")), Estimate::default());
        assert_eq!(of(PathBuf::from("/dev/zero")), Estimate::default());
        assert_eq!(of(PathBuf::from("-")), Estimate::default());
    }
}
