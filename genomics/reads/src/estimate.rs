//! Estimates the number of reads and bases in input files from their sizes and a sample of their first records.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::aligned::{self, AlignedInput};
use crate::compression::{CompressionFormat, NonGzipDecoder};
use crate::error::Error;
use crate::file_span::{FileSpan, VirtualOffset};
use crate::lane::{Lane, LaneFiles};
use crate::packed_read::packed_read_len_bytes;
use crate::pipe::is_regular_file;
use crate::reference_reads;

/// Maximum number of bytes of uncompressed text that are sampled from all files together.
const MAX_TOTAL_SAMPLE_BYTES: u64 = 32 << 20;
/// Minimum number of bytes of uncompressed text that are sampled from one file.
const MIN_FILE_SAMPLE_BYTES: u64 = 256 << 10;
/// Maximum number of bytes of uncompressed text that are sampled from one file.
const MAX_FILE_SAMPLE_BYTES: u64 = 4 << 20;

/// Bytes per read call.
const CHUNK_BYTES: usize = 16 << 10;

/// Estimated number of reads and bases in the files of some lanes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadEstimate {
    /// Number of bases of all reads, before trimming.
    pub bases: u64,
    /// Number of reads; each mate counts as one.
    pub reads: u64,
    /// Estimated size in bytes of the packed reads (see [`crate::packed_reads`]).
    pub packed_bytes: u64,
}

/// Size in bytes of the variable-length integers that the packed reads store for each read.
const VARINT_BYTES_PER_READ: u64 = 3;

/// Size in bytes of packed reads whose qualities are unknown, with 8 bits per quality, the maximum; without read names
/// and without letters other than A, C, G and T.
fn max_packed_bytes(ReadEstimate { bases, reads, .. }: ReadEstimate) -> u64 {
    reads * (packed_read_len_bytes(0, 0, 0) + VARINT_BYTES_PER_READ) + bases / 4 + bases
}

impl ReadEstimate {
    /// Estimates the contents of all lanes, or of their slices: counts the reads in a sample from the start of each
    /// file (256 KiB to 4 MiB of text; four times as much of BAM, CRAM and BINSEQ) and extrapolates by the size of the
    /// file. The result for a file that is sampled completely is exact. Pipes count as empty. A file without a whole
    /// record in its sample is assumed to have two bases per byte if it is compressed, else two fifths, and reads of
    /// 150 bases. The artificial reads of a reference genome are estimated from the size of its file.
    ///
    /// # Errors
    /// A file cannot be read. Invalid records and damaged compressed data are not reported here.
    pub fn estimate_reads_of_lanes(lanes: &[Lane]) -> Result<ReadEstimate, Error> {
        Ok(ReadEstimate::estimate_reads_by_sample(lanes)?.into_iter().sum())
    }

    /// Estimates the contents of the lanes of each sample, as [`ReadEstimate::estimate_reads_of_lanes`] does for all
    /// lanes. The index is the sample number.
    ///
    /// # Errors
    /// Those of [`ReadEstimate::estimate_reads_of_lanes`].
    pub fn estimate_reads_by_sample(lanes: &[Lane]) -> Result<Vec<ReadEstimate>, Error> {
        let files = lanes.iter().map(|lane| lane.paths_with_spans().count()).sum::<usize>();
        let look = (MAX_TOTAL_SAMPLE_BYTES / files.max(1) as u64).clamp(MIN_FILE_SAMPLE_BYTES, MAX_FILE_SAMPLE_BYTES);
        let mut each: Vec<ReadEstimate> = Vec::new();
        for lane in lanes {
            each.resize(each.len().max(usize::from(lane.sample) + 1), ReadEstimate::default());
            for (path, span) in lane.paths_with_spans() {
                let read_error = |source| Error::Read { path: path.into(), source };
                if !is_regular_file(path).map_err(read_error)? {
                    continue;
                }
                let own = &mut each[usize::from(lane.sample)];
                let estimate = match &lane.files {
                    LaneFiles::Aligned(aligned) => estimate_aligned_file(aligned, look)?,
                    LaneFiles::Reference(path) => estimate_reference(path).map_err(read_error)?,
                    _ => estimate_text_file(path, span, look).map_err(read_error)?,
                };
                *own = [*own, estimate].into_iter().sum();
            }
        }
        Ok(each)
    }

    /// Estimated number of k-mers with `k` bases in the reads.
    pub fn estimate_num_kmers(&self, k: u32) -> u64 {
        self.bases.saturating_sub(self.reads * u64::from(k.saturating_sub(1)))
    }
}

impl std::iter::Sum for ReadEstimate {
    fn sum<I: Iterator<Item = ReadEstimate>>(all: I) -> ReadEstimate {
        all.fold(ReadEstimate::default(), |sum, own| ReadEstimate {
            bases: sum.bases + own.bases,
            reads: sum.reads + own.reads,
            packed_bytes: sum.packed_bytes + own.packed_bytes,
        })
    }
}

/// Assumed number of bases of a FASTA file per byte of the compressed file. Usual for genomes and gzip.
const GZIP_BASES_PER_BYTE: u64 = 4;

/// Estimates the artificial reads of a reference genome (see [`crate::reference_reads`]) from the size of its FASTA
/// file.
fn estimate_reference(path: &Path) -> io::Result<ReadEstimate> {
    let mut head = Vec::new();
    File::open(path)?.take(CompressionFormat::MAX_MAGIC_BYTES as u64).read_to_end(&mut head)?;
    let size = path.metadata()?.len();
    let sequence = if CompressionFormat::detect(&head).is_some() { size * GZIP_BASES_PER_BYTE } else { size };
    let [reads, bases] = reference_reads::estimate_artificial_reads_and_bases(sequence);
    let held = ReadEstimate { bases, reads, packed_bytes: 0 };
    Ok(ReadEstimate { packed_bytes: max_packed_bytes(held), ..held })
}

/// Estimates the contents of a BAM, CRAM or BINSEQ file from its first records.
fn estimate_aligned_file(of: &AlignedInput, look: u64) -> Result<ReadEstimate, Error> {
    let size = of.path.metadata().map_err(|source| Error::Read { path: of.path.clone(), source })?.len();
    // Relative to this amount, the bytes that are read ahead count little.
    let [reads, bases, copied, used] = aligned::count_reads_in_first_bytes(of, 4 * look)?;
    let scaled = |n: u64| (n as f64 * size as f64 / used.max(1) as f64) as u64;
    if reads == 0 {
        return Ok(estimate_without_records(size, true));
    }
    let packed_bytes = scaled(copied + reads * VARINT_BYTES_PER_READ);
    Ok(ReadEstimate { bases: scaled(bases), reads: scaled(reads), packed_bytes })
}

/// Estimates the contents of a file of `size` bytes without a whole record in its sample.
fn estimate_without_records(size: u64, is_compressed: bool) -> ReadEstimate {
    let bases = if is_compressed { size * 2 } else { size * 2 / 5 };
    let held = ReadEstimate { bases, reads: bases / 150, packed_bytes: 0 };
    ReadEstimate { packed_bytes: max_packed_bytes(held), ..held }
}

/// Estimates the contents of a regular FASTQ file, or of a span of the file, from the first `look` bytes of its text.
fn estimate_text_file(path: &Path, span: Option<FileSpan>, look: u64) -> io::Result<ReadEstimate> {
    let from = span.map_or_else(VirtualOffset::default, |span| span.start);
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from.file_offset))?;
    let size = span.map_or(file.metadata()?.len(), |span| span.len_bytes());
    let sample = sample_file(file, from, span, look)?;
    let ReadEstimate { bases, reads, packed_bytes } = sample.estimate;
    if reads == 0 {
        return Ok(estimate_without_records(size, sample.is_compressed));
    }
    let scaled = |n: u64| (n as f64 * size as f64 / sample.disk_bytes as f64) as u64;
    Ok(ReadEstimate { bases: scaled(bases), reads: scaled(reads), packed_bytes: scaled(packed_bytes) })
}

/// Contents of the first part of a file.
#[derive(Debug, Default)]
struct FileSample {
    is_compressed: bool,
    /// Contents of the whole records in the sample.
    estimate: ReadEstimate,
    /// Number of compressed bytes in the file that the sampled records occupy.
    disk_bytes: u64,
}

/// Samples the first `look` bytes of text of a file that is open at the start of the span.
///
/// # Errors
/// The file cannot be read. Damaged data end the sample.
fn sample_file(file: File, from: VirtualOffset, span: Option<FileSpan>, look: u64) -> io::Result<FileSample> {
    let mut disk = CountingReader { inner: BufReader::with_capacity(CHUNK_BYTES, file), bytes_consumed: 0 };
    let (is_compressed, mut text) = decompress_sample(&mut disk)?;
    let before = u64::from(from.offset_in_block);
    io::copy(&mut text.by_ref().take(before), &mut io::sink()).map(drop).or_else(accept_damage)?;
    // The sample of a BGZF span may extend beyond the span, which is equally representative.
    let plain_span = span.filter(|_| !is_compressed);
    let records = RecordScanner::scan_all(text.take(plain_span.map_or(look, |span| span.len_bytes().min(look))))?;
    let RecordScanner { estimate, record_bytes: whole, text_bytes: text, .. } = records;
    let disk_bytes = (disk.bytes_consumed as f64 * whole as f64 / (before + text).max(1) as f64).max(1.0) as u64;
    Ok(FileSample { is_compressed, estimate, disk_bytes })
}

/// Returns whether a file is compressed, and a reader of its text.
fn decompress_sample<R: Read>(disk: &mut CountingReader<BufReader<R>>) -> io::Result<(bool, Box<dyn Read + '_>)> {
    let format = loop {
        match disk.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            head => break CompressionFormat::detect(head?),
        }
    };
    let text: Box<dyn Read + '_> = match format {
        Some(CompressionFormat::Gzip) => Box::new(MultiGzDecoder::new(disk)),
        Some(CompressionFormat::Bzip2) => Box::new(NonGzipDecoder::new_bzip2(disk)),
        Some(CompressionFormat::Xz) => Box::new(NonGzipDecoder::new_xz(disk)),
        Some(CompressionFormat::Zstd) => Box::new(NonGzipDecoder::new_zstd(disk)),
        None => Box::new(disk),
    };
    Ok((format.is_some(), text))
}

/// Returns the bytes of a regular file per byte of its text, over the first `max_bytes` bytes of the text; 1 if the file is
/// not compressed.
///
/// # Errors
/// The file cannot be read, or the compressed data are damaged.
pub fn sample_file_bytes_per_text_byte(path: &Path, max_bytes: u64) -> Result<f64, Error> {
    let sample = || -> io::Result<f64> {
        let mut disk =
            CountingReader { inner: BufReader::with_capacity(CHUNK_BYTES, File::open(path)?), bytes_consumed: 0 };
        let (_, text) = decompress_sample(&mut disk)?;
        let text_bytes = io::copy(&mut text.take(max_bytes), &mut io::sink())?;
        Ok(disk.bytes_consumed as f64 / text_bytes.max(1) as f64)
    };
    sample().map_err(|source| Error::Read { path: path.into(), source })
}

/// Returns an error of a system call. Damaged data are reported when the file is read.
fn accept_damage(error: io::Error) -> io::Result<()> {
    if error.raw_os_error().is_some() { Err(error) } else { Ok(()) }
}

/// Counts the whole records at the start of a FASTQ text.
#[derive(Debug, Default)]
struct RecordScanner {
    estimate: ReadEstimate,
    /// Size in bytes of the whole records in the text that was scanned so far.
    record_bytes: u64,
    text_bytes: u64,
    /// Number of complete lines of the current record. `line_bytes` is the size of the current line.
    lines_done: u32,
    line_bytes: u64,
    /// The last byte of the previous chunk.
    last_byte: u8,
    bases: u64,
    /// Number of letters of the current record other than A, C, G and T.
    non_acgt: u64,
    /// Length in bytes of the header of the current record.
    header_bytes: u64,
    /// Set of the quality bytes of the current record; bit `q` is set if quality `q` occurs.
    quality_set: u128,
}

impl RecordScanner {
    /// Counts the records of a text. Damaged compressed data are counted up to the damage.
    ///
    /// # Errors
    /// A system call failed.
    fn scan_all(mut text: impl Read) -> io::Result<RecordScanner> {
        let (mut records, mut buffer) = (RecordScanner::default(), [0; CHUNK_BYTES]);
        loop {
            match text.read(&mut buffer) {
                Ok(n @ 1..) => records.scan(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => return read.map(drop).or_else(accept_damage).map(|()| records),
            }
        }
    }

    /// Counts the records in the next part of the text.
    fn scan(&mut self, piece: &[u8]) {
        let mut at = 0;
        for end in memchr::memchr_iter(b'\n', piece) {
            self.scan_line(&piece[at..end]);
            let before = piece[at..end].last().copied().unwrap_or(if at == 0 { self.last_byte } else { b'\n' });
            let carriage_return = before == b'\r';
            let letters = self.line_bytes + (end - at) as u64 - u64::from(carriage_return);
            self.line_bytes = 0;
            at = end + 1;
            match self.lines_done {
                0 => self.header_bytes = letters,
                1 => self.bases = letters,
                3 => {
                    self.estimate.bases += self.bases;
                    self.estimate.reads += 1;
                    // A pair has one name, the first word of its header.
                    let kinds = self.quality_set.count_ones() as usize;
                    let packed = packed_read_len_bytes(self.bases, self.non_acgt, kinds);
                    self.estimate.packed_bytes += packed + VARINT_BYTES_PER_READ + self.header_bytes / 2;
                    self.record_bytes = self.text_bytes + at as u64;
                    (self.non_acgt, self.quality_set) = (0, 0);
                }
                _ => {}
            }
            self.lines_done = (self.lines_done + 1) % 4;
        }
        self.scan_line(&piece[at..]);
        self.line_bytes += (piece.len() - at) as u64;
        self.last_byte = piece.last().copied().unwrap_or(self.last_byte);
        self.text_bytes += piece.len() as u64;
    }
}

impl RecordScanner {
    /// Examines some bytes of the current line.
    fn scan_line(&mut self, letters: &[u8]) {
        match self.lines_done {
            1 => {
                let unknown = letters.iter().filter(|letter| !b"ACGT\r".contains(letter));
                self.non_acgt += unknown.count() as u64;
            }
            3 => {
                let quals = letters.iter().filter(|&&letter| letter != b'\r');
                self.quality_set = quals.fold(self.quality_set, |kinds, &qual| kinds | 1 << (qual & 0x7f));
            }
            _ => {}
        }
    }
}

/// A reader that counts the bytes read through it.
struct CountingReader<R> {
    inner: R,
    bytes_consumed: u64,
}

impl<R: BufRead> Read for CountingReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.bytes_consumed += n as u64;
        Ok(n)
    }
}

impl<R: BufRead> BufRead for CountingReader<R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        self.bytes_consumed += n as u64;
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
    use crate::lane::TUMOUR_SAMPLE;

    /// A text of `n` reads with 40 to 139 bases.
    fn fastq(n: u64) -> (String, ReadEstimate) {
        let (mut text, mut all) = (String::new(), ReadEstimate { bases: 0, reads: n, packed_bytes: 0 });
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
            all.packed_bytes += 6 + len.div_ceil(4) + VARINT_BYTES_PER_READ + format!("@read{i}").len() as u64 / 2;
        }
        (text, all)
    }

    fn estimate_file(path: PathBuf) -> ReadEstimate {
        ReadEstimate::estimate_reads_of_lanes(&[Lane::with_whole_files(TUMOUR_SAMPLE, LaneFiles::Single(path))])
            .unwrap()
    }

    #[test]
    fn small_files_are_counted_and_large_ones_estimated() {
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
                    let found = estimate_file(path.clone());
                    let near = |a: u64, b: u64| (a as f64 - b as f64).abs() <= tolerance * b as f64;
                    assert!(
                        near(found.bases, all.bases)
                            && near(found.reads, all.reads)
                            && near(found.packed_bytes, all.packed_bytes),
                        "{found:?} {all:?}"
                    );
                }
            }
        }
        assert_eq!(ReadEstimate { bases: 1500, reads: 10, packed_bytes: 0 }.estimate_num_kmers(31), 1200);
        assert_eq!(ReadEstimate { bases: 100, reads: 10, packed_bytes: 0 }.estimate_num_kmers(31), 0);
    }

    #[test]
    fn files_without_records_are_estimated_from_their_size() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, gzip) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&plain, [b'@'; 1000]).unwrap();
        std::fs::write(&gzip, [0x1f, 0x8b].repeat(500)).unwrap();
        assert_eq!(estimate_file(plain).bases, 400);
        assert_eq!(estimate_file(gzip).bases, 2000);
        let none = Lane::with_whole_files(TUMOUR_SAMPLE, LaneFiles::Single(folder.path().join("none")));
        assert!(ReadEstimate::estimate_reads_of_lanes(&[none]).unwrap_err().to_string().contains("none"));
        assert_eq!(estimate_file(PathBuf::from("/dev/zero")), ReadEstimate::default());
        assert_eq!(estimate_file(PathBuf::from("-")), ReadEstimate::default());
    }
}
