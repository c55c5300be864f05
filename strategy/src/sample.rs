//! The first reads of a run, in files of their own: for trials.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genuma_reads::{Cut, Meter, ReadBatch, ReadRef, ReadStream, StreamOptions};

use crate::deal::lanes;
use crate::invocation::Reads;

/// Reads that are handed over at once.
const BATCH: usize = 1024;
/// One in so many reads of a sample is in its part.
const PART: u64 = 4;

/// Folders of samples of this process.
static FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
/// Samples taken by this process.
static TAKEN: AtomicU32 = AtomicU32::new(0);

fn folders() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all samples of this process: for one that ends without dropping its values.
pub fn remove_all() {
    // What cannot be removed lies in the folder for temporary files.
    std::mem::take(&mut *folders()).iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
}

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
    #[error("{path}: cannot write a sample of the reads: {source}")]
    Write {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Some reads from the beginning of the files, as plain text; removed when dropped.
#[derive(Debug)]
pub struct Sample {
    folder: PathBuf,
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

impl Drop for Sample {
    fn drop(&mut self) {
        if folders().remove(&self.folder) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

impl Sample {
    /// About the first `wanted` reads of `reads`, or all if there are fewer.
    ///
    /// # Errors
    /// The reads are not in regular files, they are not right, or the sample cannot be written.
    pub fn take(reads: &Reads, wanted: u64) -> Result<Sample, Error> {
        let lanes = lanes(reads);
        let paths: Vec<&Path> = lanes.iter().flat_map(|lane| lane.paths()).collect();
        if let Some(pipe) =
            paths.iter().find(|path| path.exists() && !path.is_file() || path.as_os_str() == "-")
        {
            return Err(Error::Pipe(pipe.to_path_buf()));
        }
        let meter = Arc::new(Meter::default());
        let options = StreamOptions {
            whole_headers: true,
            ahead: 1,
            meter: Arc::clone(&meter),
            ..StreamOptions::new(Cut::at_reads(BATCH))
        };
        let mut stream = ReadStream::open(&lanes, options)?;
        let folder = new_folder()?;
        let two = matches!(reads, Reads::Paired(_));
        let mut sample = Sample {
            whole: named(reads, &folder, "whole"),
            part: named(reads, &folder, "part"),
            folder,
            reads: 0,
            part_reads: 0,
            bases: 0,
            total: 0.0,
        };
        let mut batch = ReadBatch::new();
        let mut whole = Files::create(&sample.folder, "whole", two)?;
        let mut part = Files::create(&sample.folder, "part", two)?;
        let mut ended = false;
        // How far the files were read when half of the sample was there: what is read ahead is in both.
        let mut half = (0, 0);
        while sample.reads < wanted && !ended {
            ended = !stream.fill(&mut batch)?;
            for i in 0..batch.len() {
                let mate = usize::from(two && i % 2 == 1);
                whole.write(mate, &batch.read(i))?;
                sample.bases += batch.read(i).seq.len() as u64;
            }
            sample.reads += batch.len() as u64;
            if sample.reads <= wanted / 2 {
                half = (sample.reads, meter.bytes_done());
            }
        }
        sample.total = match ended {
            true => sample.reads as f64,
            false => {
                let sizes =
                    paths.iter().filter_map(|path| path.metadata().ok()).map(|m| m.len()).sum::<u64>();
                let packed = paths.iter().any(|path| is_packed(path));
                let since = (sample.reads - half.0, meter.bytes_done().saturating_sub(half.1));
                let (reads, bytes) = if packed && since.1 > 0 { since } else { (sample.reads, whole.bytes) };
                (reads as f64 * sizes as f64 / bytes.max(1) as f64).max(sample.reads as f64)
            }
        };
        whole.finish()?;
        sample.part_reads = part.first_of(&sample.folder, sample.reads / PART)?;
        part.finish()?;
        Ok(sample)
    }
}

fn new_folder() -> Result<PathBuf, Error> {
    let number = TAKEN.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("genuma-sample-{}-{number}", std::process::id()));
    fs::create_dir(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
    folders().insert(folder.clone());
    Ok(folder)
}

/// Reads like `like` in the files of a folder.
fn named(like: &Reads, folder: &Path, name: &str) -> Reads {
    let [one, two] = files(folder, name);
    match like {
        Reads::Unnamed => Reads::Unnamed,
        Reads::Single(_) => Reads::Single(vec![one]),
        Reads::Paired(_) => Reads::Paired(vec![[one, two]]),
        Reads::Interleaved(_) => Reads::Interleaved(vec![one]),
        Reads::Mixed(_) => Reads::Mixed(vec![one]),
    }
}

fn files(folder: &Path, name: &str) -> [PathBuf; 2] {
    [1, 2].map(|mate| folder.join(format!("{name}_{mate}.fq")))
}

/// By the first bytes of gzip (RFC 1952, section 2.3.1).
fn is_packed(path: &Path) -> bool {
    let mut magic = [0; 2];
    File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == [0x1f, 0x8b]
}

/// One file, or one for each mate.
struct Files {
    files: Vec<(PathBuf, BufWriter<File>)>,
    bytes: u64,
}

impl Files {
    fn create(folder: &Path, name: &str, two: bool) -> Result<Files, Error> {
        let create = |path: PathBuf| match File::create(&path) {
            Ok(file) => Ok((path, BufWriter::new(file))),
            Err(source) => Err(Error::Write { path, source }),
        };
        let paths = files(folder, name).into_iter().take(if two { 2 } else { 1 });
        Ok(Files { files: paths.map(create).collect::<Result<_, _>>()?, bytes: 0 })
    }

    fn write(&mut self, mate: usize, read: &ReadRef<'_>) -> Result<(), Error> {
        let (path, file) = &mut self.files[mate];
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
        file.write_all(&text).map_err(|source| Error::Write { path: path.clone(), source })
    }

    fn finish(self) -> Result<(), Error> {
        let flush = |(path, mut file): (PathBuf, BufWriter<File>)| {
            file.flush().map_err(|source| Error::Write { path, source })
        };
        self.files.into_iter().try_for_each(flush)
    }

    /// Copies about the first `wanted` reads of the whole; how many they are.
    fn first_of(&mut self, folder: &Path, wanted: u64) -> Result<u64, Error> {
        let two = self.files.len() == 2;
        let all = if two {
            Reads::Paired(vec![files(folder, "whole")])
        } else {
            Reads::Single(vec![files(folder, "whole")[0].clone()])
        };
        let cut = Cut::at_reads(wanted.clamp(2, BATCH as u64) as usize);
        let options = StreamOptions { whole_headers: true, ..StreamOptions::new(cut) };
        let mut stream = ReadStream::open(&lanes(&all), options)?;
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
        let folder = tempfile::tempdir().unwrap();
        let sample = Sample::take(&pair(folder.path(), 20_000), 10_000).unwrap();
        assert!((10_000..10_000 + BATCH as u64).contains(&sample.reads), "{}", sample.reads);
        assert!((sample.part_reads as f64 / sample.reads as f64 - 0.25).abs() < 0.1, "{}", sample.part_reads);
        assert_eq!(sample.bases, 10 * sample.reads);
        assert!((sample.total / 40_000.0 - 1.0).abs() < 0.03, "{}", sample.total);
        let Reads::Paired(files) = &sample.whole else { panic!("{:?}", sample.whole) };
        let second = fs::read_to_string(&files[0][1]).unwrap();
        assert_eq!(second, text(sample.reads as usize / 2, 2));
        let Reads::Paired(files) = &sample.part else { panic!("{:?}", sample.part) };
        assert_eq!(fs::read_to_string(&files[0][0]).unwrap(), text(sample.part_reads as usize / 2, 1));
        let kept = sample.folder.clone();
        drop(sample);
        assert!(!kept.exists());
    }

    #[test]
    fn packed_reads_are_estimated_without_what_is_read_ahead() {
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
        let sample = Sample::take(&Reads::Paired(vec![packed]), 32_000).unwrap();
        assert!((sample.total / 200_000.0).ln().abs() < 0.25, "{}", sample.total);
    }

    #[test]
    fn few_reads_are_all_taken_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let sample = Sample::take(&pair(folder.path(), 30), 10_000).unwrap();
        assert_eq!((sample.reads, sample.total), (60, 60.0));
        assert!((14..=18).contains(&sample.part_reads), "{}", sample.part_reads);
        let fasta = folder.path().join("r.fa");
        fs::write(&fasta, ">a\nACGT\n>b\nAC\n").unwrap();
        let sample = Sample::take(&Reads::Single(vec![fasta]), 10).unwrap();
        let Reads::Single(files) = &sample.whole else { panic!("{:?}", sample.whole) };
        assert_eq!(fs::read_to_string(&files[0]).unwrap(), ">a\nACGT\n>b\nAC\n");
    }

    #[test]
    fn no_sample_of_what_is_read_once_or_not_there() {
        let refused =
            |path: &str| Sample::take(&Reads::Single(vec![path.into()]), 10).unwrap_err().to_string();
        assert!(refused("-").starts_with("-: no regular file"));
        assert!(refused("/dev/null").contains("no regular file"));
        assert!(refused("/no/such/reads.fq").contains("/no/such/reads.fq"));
    }
}
