//! The first reads of a run, in files of their own: for trials.
//!
//! They are a patient's: the files, in the folder for temporary ones, have no names, nobody else may open them, and they are gone with this
//! process, however it ends.

use std::fs::{File, Permissions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use genuma_reads::{
    AlignedOptions, Cut, Estimate, Lane, LaneFiles, NORMAL, ReadBatch, ReadLane, ReadRef, ReadStream,
    StreamOptions,
};

use crate::deal::lanes;
use crate::invocation::Reads;

/// Reads that are handed over at once.
const BATCH: usize = 1024;
/// One in so many reads of a sample is in its part.
const PART: u64 = 4;

/// Why there is no sample.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They can be read once only.
    #[error("{0}: no regular file, so that no sample of its reads can be taken; give the reads as files")]
    Pipe(PathBuf),
    /// The reads are not right.
    #[error(transparent)]
    Reads(#[from] genuma_reads::Error),
    /// The sample cannot be written.
    #[error("{folder}: cannot write a sample of the reads: {source}")]
    Write {
        /// Where.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Some reads from the beginning of the files, as plain text that only this process can read; gone when dropped.
#[derive(Debug)]
pub struct Sample {
    /// What `whole` and `part` name.
    _files: [Files; 2],
    /// All of it.
    pub whole: Reads,
    /// Its first quarter: what both take alike, as loading an index, is not in the difference of their times.
    pub part: Reads,
    /// Reads of the whole.
    pub reads: u64,
    /// Reads of the part.
    pub part_reads: u64,
    /// Bases (bp) of the whole.
    pub bases: u64,
    /// Reads in the files: counted if the sample has them all, else estimated from sizes.
    pub total: f64,
}

impl Sample {
    /// About the first `wanted` reads of `reads`, or all if there are fewer; of files of aligned reads, read as `aligned` says, with mates in
    /// turn those that have them.
    ///
    /// # Errors
    /// The reads are not in regular files, they are not right, or the sample cannot be written.
    pub fn take(reads: &Reads, aligned: &AlignedOptions, wanted: u64) -> Result<Sample, Error> {
        let lanes = lanes(reads, aligned);
        let paths: Vec<&Path> = lanes.iter().flat_map(|lane| lane.paths()).collect();
        if let Some(pipe) =
            paths.iter().find(|path| path.exists() && !path.is_file() || path.as_os_str() == "-")
        {
            return Err(Error::Pipe(pipe.to_path_buf()));
        }
        let options =
            StreamOptions { whole_headers: true, ahead: 1, ..StreamOptions::new(Cut::at_reads(BATCH)) };
        let mut stream = ReadStream::open(&lanes, options)?;
        let two = matches!(reads, Reads::Paired(_));
        let (mut whole, mut part) = (Files::create(two)?, Files::create(two)?);
        let mut batch = ReadBatch::new();
        let (mut taken, mut bases, mut ended) = (0, 0, false);
        while taken < wanted && !ended {
            ended = !stream.fill(&mut batch)?;
            if matches!(reads, Reads::Interleaved(_)) && !batch.paired {
                continue;
            }
            for i in 0..batch.len() {
                let mate = usize::from(two && i % 2 == 1);
                whole.write(mate, &batch.read(i))?;
                bases += batch.read(i).seq.len() as u64;
            }
            taken += batch.len() as u64;
        }
        let total = match ended {
            true => taken as f64,
            false if lanes.iter().any(|lane| matches!(lane, ReadLane::Aligned(_))) => {
                let lanes: Vec<Lane> = lanes.iter().map(lane_of).collect();
                (Estimate::of(&lanes).reads as f64).max(taken as f64)
            }
            false => {
                let sizes =
                    paths.iter().filter_map(|path| path.metadata().ok()).map(|m| m.len()).sum::<u64>();
                let first = &paths[..whole.files.len().min(paths.len())];
                let each = whole.bytes / first.len().max(1) as u64;
                let packed: Result<Vec<f64>, Error> = first.iter().map(|path| packing(path, each)).collect();
                let packing = packed?.iter().sum::<f64>() / first.len().max(1) as f64;
                (taken as f64 * sizes as f64 / (whole.bytes as f64 * packing).max(1.0)).max(taken as f64)
            }
        };
        whole.flush()?;
        let part_reads = part.first_of(&whole, taken / PART)?;
        part.flush()?;
        Ok(Sample {
            whole: whole.like(reads),
            part: part.like(reads),
            _files: [whole, part],
            reads: taken,
            part_reads,
            bases,
            total,
        })
    }
}

/// The files of a lane, for an estimate of what is in them.
fn lane_of(lane: &ReadLane) -> Lane {
    let files = match lane.clone() {
        ReadLane::Single(file) => LaneFiles::Single(file),
        ReadLane::Pair(one, two) => LaneFiles::Pair(one, two),
        ReadLane::Interleaved(file) => LaneFiles::Interleaved(file),
        ReadLane::Aligned(aligned) => LaneFiles::Aligned(aligned),
    };
    Lane::whole(NORMAL, files)
}

/// Bytes of a file for each of the first `bytes` that it holds: 1 where they are not packed.
fn packing(path: &Path, bytes: u64) -> Result<f64, Error> {
    let told = |source| genuma_reads::Error::Read { path: path.to_owned(), source };
    let share = || -> io::Result<f64> {
        let mut file = BufReader::new(File::open(path)?);
        if !file.fill_buf()?.starts_with(&GZIP) {
            return Ok(1.0);
        }
        let mut plain = MultiGzDecoder::new(file);
        let held = io::copy(&mut plain.by_ref().take(bytes), &mut io::sink())?;
        Ok(plain.get_mut().stream_position()? as f64 / held.max(1) as f64)
    };
    Ok(share().map_err(told)?)
}

/// First bytes of a gzip file (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// One file, or one for each mate.
#[derive(Debug)]
struct Files {
    files: Vec<BufWriter<File>>,
    bytes: u64,
}

fn failed(source: io::Error) -> Error {
    Error::Write { folder: std::env::temp_dir(), source }
}

impl Files {
    fn create(two: bool) -> Result<Files, Error> {
        let create = |_| {
            let file = tempfile::tempfile()?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            Ok(BufWriter::new(file))
        };
        let files: io::Result<_> = (0..if two { 2 } else { 1 }).map(create).collect();
        Ok(Files { files: files.map_err(failed)?, bytes: 0 })
    }

    /// What this process may open them by.
    fn path(&self, mate: usize) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.files[mate].get_ref().as_raw_fd()))
    }

    /// Reads like `like`, in these files.
    fn like(&self, like: &Reads) -> Reads {
        match like {
            Reads::Unnamed => Reads::Unnamed,
            Reads::Single(_) => Reads::Single(vec![self.path(0)]),
            Reads::Paired(_) => Reads::Paired(vec![[self.path(0), self.path(1)]]),
            Reads::Interleaved(_) => Reads::Interleaved(vec![self.path(0)]),
            Reads::Mixed(_) => Reads::Mixed(vec![self.path(0)]),
        }
    }

    fn write(&mut self, mate: usize, read: &ReadRef<'_>) -> Result<(), Error> {
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
        self.files[mate].write_all(&text).map_err(failed)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.files.iter_mut().try_for_each(Write::flush).map_err(failed)
    }

    /// Copies about the first `wanted` reads of `whole`; how many they are.
    fn first_of(&mut self, whole: &Files, wanted: u64) -> Result<u64, Error> {
        let two = self.files.len() == 2;
        let all = if two { Reads::Paired(Vec::new()) } else { Reads::Single(Vec::new()) };
        let all = whole.like(&all);
        let cut = Cut::at_reads(wanted.clamp(2, BATCH as u64) as usize);
        let options = StreamOptions { whole_headers: true, ..StreamOptions::new(cut) };
        let mut stream = ReadStream::open(&lanes(&all, &AlignedOptions::default()), options)?;
        let (mut batch, mut reads) = (ReadBatch::new(), 0);
        while reads < wanted && stream.fill(&mut batch)? {
            for i in 0..batch.len() {
                self.write(usize::from(two && i % 2 == 1), &batch.read(i))?;
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

    fn pair(folder: &Path, n: usize) -> Reads {
        let paths = [1, 2].map(|mate| folder.join(format!("r{mate}.fq")));
        for (mate, path) in (1..).zip(&paths) {
            fs::write(path, text(n, mate)).unwrap();
        }
        Reads::Paired(vec![paths])
    }

    #[test]
    fn the_beginning_and_its_quarter() {
        let no = AlignedOptions::default();
        let folder = tempfile::tempdir().unwrap();
        let sample = Sample::take(&pair(folder.path(), 20_000), &no, 10_000).unwrap();
        assert!((10_000..10_000 + BATCH as u64).contains(&sample.reads), "{}", sample.reads);
        assert!((sample.part_reads as f64 / sample.reads as f64 - 0.25).abs() < 0.1, "{}", sample.part_reads);
        assert_eq!(sample.bases, 10 * sample.reads);
        assert!((sample.total / 40_000.0 - 1.0).abs() < 0.03, "{}", sample.total);
        let Reads::Paired(files) = &sample.whole else { panic!("{:?}", sample.whole) };
        let second = fs::read_to_string(&files[0][1]).unwrap();
        assert_eq!(second, text(sample.reads as usize / 2, 2));
        let Reads::Paired(files) = &sample.part else { panic!("{:?}", sample.part) };
        assert_eq!(fs::read_to_string(&files[0][0]).unwrap(), text(sample.part_reads as usize / 2, 1));
        // Nobody can come by them, or find them when this process is gone.
        for file in sample._files.iter().flat_map(|files| &files.files) {
            let metadata = file.get_ref().metadata().unwrap();
            assert_eq!((metadata.nlink(), metadata.mode() & 0o777), (0, 0o600));
        }
    }

    #[test]
    fn packed_reads_are_estimated_by_how_their_beginning_is_packed() {
        let no = AlignedOptions::default();
        let folder = tempfile::tempdir().unwrap();
        // Reads that do not pack better than real ones: splitmix64.
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
        let sample = Sample::take(&Reads::Paired(vec![packed]), &no, 32_000).unwrap();
        assert!((sample.total / 200_000.0).ln().abs() < 0.02, "{}", sample.total);
    }

    #[test]
    fn few_reads_are_all_taken_and_counted() {
        let no = AlignedOptions::default();
        let folder = tempfile::tempdir().unwrap();
        let sample = Sample::take(&pair(folder.path(), 30), &no, 10_000).unwrap();
        assert_eq!((sample.reads, sample.total), (60, 60.0));
        assert!((14..=18).contains(&sample.part_reads), "{}", sample.part_reads);
        let fasta = folder.path().join("r.fa");
        fs::write(&fasta, ">a\nACGT\n>b\nAC\n").unwrap();
        let sample = Sample::take(&Reads::Single(vec![fasta]), &no, 10).unwrap();
        let Reads::Single(files) = &sample.whole else { panic!("{:?}", sample.whole) };
        assert_eq!(fs::read_to_string(&files[0]).unwrap(), ">a\nACGT\n>b\nAC\n");
    }

    #[test]
    fn no_sample_of_what_is_read_once_or_not_there() {
        let no = AlignedOptions::default();
        let refused =
            |path: &str| Sample::take(&Reads::Single(vec![path.into()]), &no, 10).unwrap_err().to_string();
        assert!(refused("-").starts_with("-: no regular file"));
        assert!(refused("/dev/null").contains("no regular file"));
        assert!(refused("/no/such/reads.fq").contains("/no/such/reads.fq"));
    }
}
