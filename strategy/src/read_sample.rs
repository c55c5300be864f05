//! Copies the first reads of a run into temporary files for trials.
//!
//! The reads are patient data. The files have no names, are accessible to this process only, and disappear when the
//! process ends for any reason.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use genuma_reads::{
    AlignedOptions, BatchLimits, FileFault, Lane, LaneFiles, NORMAL_SAMPLE, ReadBatch, ReadEstimate, ReadRef,
    ReadStream, StreamLane, StreamOptions, sample_file_bytes_per_text_byte,
};

use crate::batching::lanes_of_read_files;
use crate::invocation::ReadFiles;

/// Reads per batch while copying.
const READS_PER_BATCH: usize = 1024;
/// Divisor of the number of reads in the sample that gives the number of reads in the part [`ReadSample::part`].
const PART_DIVISOR: u64 = 4;

/// Reason why no sample can be taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file of reads is not a regular file, so it can be read only once.
    #[error("{0}: not a regular file, so that no sample of its reads can be taken; give the reads as files")]
    NotRegularFile(PathBuf),
    /// The reads cannot be read.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// The sample cannot be written.
    #[error("{folder}: cannot write a sample of the reads: {source}")]
    Write {
        /// Folder of the sample.
        folder: PathBuf,
        /// Error that the operating system reported.
        source: io::Error,
    },
}

/// The first reads of a run as plain text in private temporary files, which are removed on drop.
#[derive(Debug)]
pub struct ReadSample {
    /// The open temporary files of `whole` and `part`; closing them removes them.
    _files: [SampleFiles; 2],
    /// Files with all reads of the sample.
    pub whole: ReadFiles,
    /// Files with the first quarter of the reads of the sample. The difference of run times on `whole` and on `part`
    /// does not contain constant costs, such as loading the index.
    pub part: ReadFiles,
    /// Number of reads in `whole`; a pair has two.
    pub reads: u64,
    /// Number of reads in `part`; a pair has two.
    pub part_reads: u64,
    /// Bases of the sample, bp.
    pub bases: u64,
    /// Number of reads in all files of the run: exact if the sample has all reads, else estimated from file sizes.
    pub estimated_total_reads: f64,
}

impl ReadSample {
    /// Copies about the first `wanted` reads of `reads` to temporary files, or all reads if there are fewer. Files of
    /// aligned reads are read with the options `aligned`; their pairs are written interleaved. Unpaired reads of
    /// interleaved files are left out.
    ///
    /// # Errors
    /// The reads are not in regular files or cannot be read, or the sample cannot be written.
    pub fn copy_first_reads_to_files(
        reads: &ReadFiles,
        aligned: &AlignedOptions,
        wanted: u64,
    ) -> Result<ReadSample, Error> {
        let lanes = lanes_of_read_files(reads, aligned)?;
        let paths: Vec<&Path> = lanes.iter().flat_map(|lane| lane.paths()).collect();
        // I/O error ignored: reported when the file is opened.
        if let Some(pipe) = paths.iter().find(|path| path.exists() && !path.is_file() || path.as_os_str() == "-") {
            return Err(Error::NotRegularFile(pipe.to_path_buf()));
        }
        let options = StreamOptions {
            uses_whole_header_as_name: true,
            accepts_unusual_fastq: true,
            batches_ahead: 1,
            ..StreamOptions::new(BatchLimits::with_reads_per_batch(READS_PER_BATCH))
        };
        let mut stream = ReadStream::open(&lanes, options)?;
        let two = matches!(reads, ReadFiles::Paired(_));
        let (mut whole, mut part) = (SampleFiles::create_files(two)?, SampleFiles::create_files(two)?);
        let mut batch = ReadBatch::new();
        let (mut taken, mut bases, mut ended) = (0, 0, false);
        while taken < wanted && !ended {
            ended = !stream.fill_batch(&mut batch)?;
            if matches!(reads, ReadFiles::Interleaved(_)) && !batch.is_paired {
                continue;
            }
            for i in 0..batch.len() {
                let mate = usize::from(two && i % 2 == 1);
                whole.write_read(mate, &batch.read(i))?;
                bases += batch.read(i).seq.len() as u64;
            }
            taken += batch.len() as u64;
        }
        if let (0, Some(first)) = (taken, paths.first()) {
            let (path, fault) = (first.to_path_buf(), FileFault::Empty);
            return Err(genuma_reads::Error::File { path, fault }.into());
        }
        let total = match ended {
            true => taken as f64,
            false if lanes.iter().any(|lane| matches!(lane, StreamLane::Aligned(_))) => {
                let lanes: Vec<Lane> = lanes.iter().map(to_lane).collect();
                (ReadEstimate::estimate_reads_of_lanes(&lanes)?.reads as f64).max(taken as f64)
            }
            false => {
                // I/O error ignored: an estimate of files that were read before.
                let sizes = paths.iter().filter_map(|path| path.metadata().ok()).map(|m| m.len()).sum::<u64>();
                let first = &paths[..whole.files.len().min(paths.len())];
                let each = whole.bytes / first.len().max(1) as u64;
                let packed: Result<Vec<f64>, _> =
                    first.iter().map(|path| sample_file_bytes_per_text_byte(path, each)).collect();
                let packing = packed?.iter().sum::<f64>() / first.len().max(1) as f64;
                (taken as f64 * sizes as f64 / (whole.bytes as f64 * packing).max(1.0)).max(taken as f64)
            }
        };
        whole.flush_files()?;
        let part_reads = part.copy_first_reads(&whole, taken / PART_DIVISOR)?;
        part.flush_files()?;
        Ok(ReadSample {
            whole: whole.as_read_files(reads),
            part: part.as_read_files(reads),
            _files: [whole, part],
            reads: taken,
            part_reads,
            bases,
            estimated_total_reads: total,
        })
    }
}

/// Converts a lane to the type that [`ReadEstimate::estimate_reads_of_lanes`] takes.
fn to_lane(lane: &StreamLane) -> Lane {
    let files = match lane.clone() {
        StreamLane::Single(file) => LaneFiles::Single(file),
        StreamLane::Pair(one, two) => LaneFiles::Pair(one, two),
        StreamLane::Interleaved(file) => LaneFiles::Interleaved(file),
        StreamLane::Aligned(aligned) => LaneFiles::Aligned(aligned),
    };
    Lane::with_whole_files(NORMAL_SAMPLE, files)
}

/// Temporary files of a sample: one, or one each for read 1 and read 2.
#[derive(Debug)]
struct SampleFiles {
    files: Vec<BufWriter<File>>,
    bytes: u64,
}

fn write_error(source: io::Error) -> Error {
    Error::Write { folder: std::env::temp_dir(), source }
}

impl SampleFiles {
    fn create_files(two: bool) -> Result<SampleFiles, Error> {
        let create = |_| {
            let file = tempfile::tempfile()?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            Ok(BufWriter::new(file))
        };
        let files: io::Result<_> = (0..if two { 2 } else { 1 }).map(create).collect();
        Ok(SampleFiles { files: files.map_err(write_error)?, bytes: 0 })
    }

    /// Returns the path under /proc through which this process can open a file.
    fn proc_path(&self, mate: usize) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.files[mate].get_ref().as_raw_fd()))
    }

    /// Returns the files as [`ReadFiles`] of the same variant as `like`.
    fn as_read_files(&self, like: &ReadFiles) -> ReadFiles {
        match like {
            ReadFiles::Unnamed => ReadFiles::Unnamed,
            ReadFiles::Single(_) => ReadFiles::Single(vec![self.proc_path(0)]),
            ReadFiles::Paired(_) => ReadFiles::Paired(vec![[self.proc_path(0), self.proc_path(1)]]),
            ReadFiles::Interleaved(_) => ReadFiles::Interleaved(vec![self.proc_path(0)]),
            ReadFiles::Mixed(_) => ReadFiles::Mixed(vec![self.proc_path(0)]),
        }
    }

    fn write_read(&mut self, mate: usize, read: &ReadRef<'_>) -> Result<(), Error> {
        let fasta = read.qual.is_empty() && !read.seq.is_empty();
        let mut text = vec![if fasta { b'>' } else { b'@' }];
        for part in [read.name, b"\n", read.seq, b"\n"] {
            text.extend_from_slice(part);
        }
        if !fasta {
            for part in [b"+\n", read.qual, b"\n"] {
                text.extend_from_slice(part);
            }
        }
        self.bytes += text.len() as u64;
        self.files[mate].write_all(&text).map_err(write_error)
    }

    fn flush_files(&mut self) -> Result<(), Error> {
        self.files.iter_mut().try_for_each(Write::flush).map_err(write_error)
    }

    /// Copies about the first `wanted` reads of `whole` and returns their number.
    fn copy_first_reads(&mut self, whole: &SampleFiles, wanted: u64) -> Result<u64, Error> {
        let two = self.files.len() == 2;
        let all = if two { ReadFiles::Paired(Vec::new()) } else { ReadFiles::Single(Vec::new()) };
        let all = whole.as_read_files(&all);
        let cut = BatchLimits::with_reads_per_batch(wanted.clamp(2, READS_PER_BATCH as u64) as usize);
        let options = StreamOptions { uses_whole_header_as_name: true, ..StreamOptions::new(cut) };
        let mut stream = ReadStream::open(&lanes_of_read_files(&all, &AlignedOptions::default())?, options)?;
        let (mut batch, mut reads) = (ReadBatch::new(), 0);
        while reads < wanted && stream.fill_batch(&mut batch)? {
            for i in 0..batch.len() {
                self.write_read(usize::from(two && i % 2 == 1), &batch.read(i))?;
            }
            reads += batch.len() as u64;
        }
        Ok(reads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    fn text(n: usize, mate: usize) -> String {
        (0..n).map(|i| format!("@r{i}/{mate} c\nACGTACGTAC\n+\nFFFFFFFFFF\n")).collect()
    }

    fn pair(folder: &Path, n: usize) -> ReadFiles {
        let paths = [1, 2].map(|mate| folder.join(format!("r{mate}.fq")));
        for (mate, path) in (1..).zip(&paths) {
            fs::write(path, text(n, mate)).unwrap();
        }
        ReadFiles::Paired(vec![paths])
    }

    #[test]
    fn the_beginning_and_its_quarter() {
        let no = AlignedOptions::default();
        let folder = tempfile::tempdir().unwrap();
        let sample = ReadSample::copy_first_reads_to_files(&pair(folder.path(), 20_000), &no, 10_000).unwrap();
        assert!((10_000..10_000 + READS_PER_BATCH as u64).contains(&sample.reads), "{}", sample.reads);
        assert!((sample.part_reads as f64 / sample.reads as f64 - 0.25).abs() < 0.1, "{}", sample.part_reads);
        assert_eq!(sample.bases, 10 * sample.reads);
        assert!((sample.estimated_total_reads / 40_000.0 - 1.0).abs() < 0.03, "{}", sample.estimated_total_reads);
        let ReadFiles::Paired(files) = &sample.whole else { panic!("{:?}", sample.whole) };
        let second = fs::read_to_string(&files[0][1]).unwrap();
        assert_eq!(second, text(sample.reads as usize / 2, 2));
        let ReadFiles::Paired(files) = &sample.part else { panic!("{:?}", sample.part) };
        assert_eq!(fs::read_to_string(&files[0][0]).unwrap(), text(sample.part_reads as usize / 2, 1));
        // Other processes cannot open the files, and nobody finds them after this process has ended.
        for file in sample._files.iter().flat_map(|files| &files.files) {
            let metadata = file.get_ref().metadata().unwrap();
            assert_eq!((metadata.nlink(), metadata.mode() & 0o777), (0, 0o600));
        }
    }

    #[test]
    fn packed_reads_are_estimated_by_how_their_beginning_is_packed() {
        let no = AlignedOptions::default();
        let folder = tempfile::tempdir().unwrap();
        // SplitMix64 gives reads that do not compress better than real ones.
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z ^ (z >> 27)
        };
        let packed = [1, 2].map(|mate| {
            let path = folder.path().join(format!("p{mate}.fq"));
            let mut text = String::new();
            for i in 0..100_000 {
                let bases: String = (0..4).map(|_| format!("{:024b}", random() >> 40)).collect();
                let bases = bases.replace('0', "A").replace('1', "C");
                let quals: String = (0..6).map(|_| format!("{:016X}", random())).collect();
                text += &format!("@r{i}/{mate}\n{bases}\n+\n{quals}\n");
            }
            fs::write(&path, text).unwrap();
            let done = std::process::Command::new("gzip").arg("-1").arg(&path).status().unwrap();
            assert!(done.success());
            PathBuf::from(format!("{}.gz", path.display()))
        });
        let sample = ReadSample::copy_first_reads_to_files(&ReadFiles::Paired(vec![packed]), &no, 32_000).unwrap();
        assert!((sample.estimated_total_reads / 200_000.0).ln().abs() < 0.02, "{}", sample.estimated_total_reads);
    }

    #[test]
    fn few_reads_are_all_taken_and_counted() {
        let no = AlignedOptions::default();
        let folder = tempfile::tempdir().unwrap();
        let sample = ReadSample::copy_first_reads_to_files(&pair(folder.path(), 30), &no, 10_000).unwrap();
        assert_eq!((sample.reads, sample.estimated_total_reads), (60, 60.0));
        assert!((14..=18).contains(&sample.part_reads), "{}", sample.part_reads);
        let fasta = folder.path().join("r.fa");
        fs::write(&fasta, ">a\nACGT\n>b\nAC\n").unwrap();
        let sample = ReadSample::copy_first_reads_to_files(&ReadFiles::Single(vec![fasta]), &no, 10).unwrap();
        let ReadFiles::Single(files) = &sample.whole else { panic!("{:?}", sample.whole) };
        assert_eq!(fs::read_to_string(&files[0]).unwrap(), ">a\nACGT\n>b\nAC\n");
    }

    #[test]
    fn no_sample_of_what_is_read_once_or_not_there() {
        let no = AlignedOptions::default();
        let refused = |path: &str| {
            ReadSample::copy_first_reads_to_files(&ReadFiles::Single(vec![path.into()]), &no, 10)
                .unwrap_err()
                .to_string()
        };
        assert!(refused("-").starts_with("-: not a regular file"));
        assert!(refused("/dev/null").contains("not a regular file"));
        assert!(refused("/no/such/reads.fq").contains("/no/such/reads.fq"));
    }
}
