//! Units of work that survive an interruption: each leaves one file in the work folder, complete or not at all.
//!
//! The layout is described in `docs/formats/unit.md`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::{Clock, UnitCost};
use crate::publish::{self, AtomicFile};

const MAGIC: &[u8; 8] = b"GENUMAU9";
/// Bytes of the magic and of the length behind it, and of the checksum at the end.
const HEAD: u64 = 16;
const SUM: u64 = 4;
/// Bytes read at once, and of the longest string of bytes in a result.
const BUFFER: usize = 1 << 20;
const LONGEST: u64 = 1 << 30;

/// What can go wrong with a unit's file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be finished.
    #[error(transparent)]
    Finish(#[from] publish::Error),
    /// The file could not be written; the message names it.
    #[error(transparent)]
    Write(io::Error),
    /// The file could not be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's own words.
        source: io::Error,
    },
    /// The file is damaged.
    #[error("{path}: damaged ({what}); remove the work folder and start again without --resume")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: &'static str,
    },
    /// The file was made by another run.
    #[error(
        "{path}: made from other inputs or parameters ({difference}); give another --work, or leave out --resume"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// First line in which the two runs differ.
        difference: String,
    },
}

/// A run's place on disk.
#[derive(Debug, Clone)]
pub struct Store {
    /// The folder.
    pub work: PathBuf,
    /// What the results depend on, line by line.
    pub fingerprint: String,
    /// Whether finished units are taken from the folder.
    pub resume: bool,
}

impl Store {
    /// Where the result of a unit is when it is finished.
    pub fn path(&self, name: &str) -> PathBuf {
        self.work.join(format!("{name}.unit"))
    }

    /// Units whose results are in the folder, in the order of their names; whether these are of an equal run is not looked at.
    pub fn finished(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.work).ok();
        let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let unit = |name: std::ffi::OsString| Some(name.to_str()?.strip_suffix(".unit")?.to_owned());
        let mut names: Vec<String> = names.filter_map(unit).filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Removes the result of a unit that nobody needs any more; what cannot be removed goes with the folder.
    pub fn forget(&self, name: &str) {
        let _ = fs::remove_file(self.path(name));
    }

    /// Runs a unit, or takes its result from the work folder when an equal run has finished it.
    pub fn unit<T, E>(
        &self,
        name: &str,
        costs: &mut Vec<UnitCost>,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
    {
        let path = self.path(name);
        let clock = Clock::start();
        let (result, resumed) = match self.resume.then(|| self.load(&path)).transpose()?.flatten() {
            Some(result) => (result, true),
            None => {
                let result = work()?;
                self.save(&path, &result)?;
                (result, false)
            }
        };
        costs.push(UnitCost { resumed, ..clock.cost(name) });
        Ok(result)
    }

    fn save<T: Serialize>(&self, path: &Path, value: &T) -> Result<(), Error> {
        let mut file =
            Summed { file: AtomicFile::create(path)?, sum: crc32fast::Hasher::new(), failed: None };
        let fingerprint = self.fingerprint.as_bytes();
        for bytes in [MAGIC, &(fingerprint.len() as u64).to_le_bytes()[..], fingerprint] {
            file.write_all(bytes).map_err(|e| Error::Write(file.failed.take().unwrap_or(e)))?;
        }
        // The payload goes straight to the file: it can be as large as everything else in memory together.
        if let Err(error) = postcard::to_io(value, &mut file) {
            return Err(Error::Write(file.failed.unwrap_or_else(|| io::Error::other(error))));
        }
        let Summed { mut file, sum, .. } = file;
        file.write_all(&sum.finalize().to_le_bytes()).map_err(Error::Write)?;
        Ok(file.finish()?)
    }

    /// The result in `path`; `None` when there is no such file. It is read twice, once to sum it up and once to decode it, and never held whole.
    fn load<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Error> {
        let unread = |source| Error::Read { path: path.to_path_buf(), source };
        let damaged = |what| Error::Damaged { path: path.to_path_buf(), what };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(unread(source)),
        };
        let length = file.metadata().map_err(unread)?.len();
        let all = length.checked_sub(SUM).ok_or(damaged("too short"))?;
        let mut file = BufReader::with_capacity(BUFFER, file);
        let mut number = [0; 8];
        let fill = |file: &mut BufReader<File>, bytes: &mut [u8]| match file.read_exact(bytes) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(damaged("too short")),
            filled => filled.map_err(unread),
        };
        let other = damaged("not a unit file of this version");
        if all < HEAD {
            return Err(other);
        }
        fill(&mut file, &mut number)?;
        if number != *MAGIC {
            return Err(other);
        }
        file.rewind().map_err(unread)?;
        let mut sum = crc32fast::Hasher::new();
        let mut left = all;
        while left > 0 {
            let bytes = file.fill_buf().map_err(unread)?;
            let n = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if n == 0 {
                return Err(damaged("too short"));
            }
            sum.update(&bytes[..n]);
            file.consume(n);
            left -= n as u64;
        }
        let mut told = [0; SUM as usize];
        fill(&mut file, &mut told)?;
        if told != sum.finalize().to_le_bytes() {
            return Err(damaged("checksum"));
        }
        file.seek(SeekFrom::Start(MAGIC.len() as u64)).map_err(unread)?;
        fill(&mut file, &mut number)?;
        let len = u64::from_le_bytes(number);
        let payload = (all - HEAD).checked_sub(len).ok_or(damaged("too short"))?;
        let mut fingerprint = vec![0; len as usize];
        fill(&mut file, &mut fingerprint)?;
        let fingerprint = String::from_utf8_lossy(&fingerprint);
        if fingerprint != self.fingerprint {
            let difference = self
                .fingerprint
                .lines()
                .zip(fingerprint.lines().chain(std::iter::repeat("nothing")))
                .find(|(now, then)| now != then)
                .map_or("more inputs then".to_owned(), |(now, then)| format!("now {now}, then {then}"));
            return Err(Error::Foreign { path: path.to_path_buf(), difference });
        }
        // Holds one text or string of bytes at a time; what is not used of it takes no memory.
        let mut scratch = vec![0; payload.min(LONGEST) as usize];
        let value = postcard::from_io((file.take(payload), &mut scratch));
        value.map(|(value, _)| Some(value)).map_err(|_| damaged("contents"))
    }
}

/// Passes bytes on to a file and sums them up.
struct Summed {
    file: AtomicFile,
    sum: crc32fast::Hasher,
    /// The file's own words when it refused: postcard does not hand them on.
    failed: Option<io::Error>,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            Ok(n) => {
                self.sum.update(&bytes[..n]);
                Ok(n)
            }
            Err(error) => Err(self.keep(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.keep(error))
    }
}

impl Summed {
    /// What stands for the file's own words until they are told.
    fn keep(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        self.failed = Some(error);
        kind.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_back_unless_damaged_or_foreign() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store { work: dir.path().into(), fingerprint: "k 31\nfile a".into(), resume: true };
        let mut costs = Vec::new();
        let run = |store: &Store, costs: &mut Vec<UnitCost>, value: u32| {
            store.unit("x", costs, || Ok::<_, Error>(vec![value]))
        };
        assert_eq!(run(&store, &mut costs, 1).unwrap(), [1]);
        assert_eq!(run(&store, &mut costs, 2).unwrap(), [1]);
        assert_eq!([costs[0].resumed, costs[1].resumed], [false, true]);
        assert_eq!(store.finished(), ["x"]);
        let afresh = Store { resume: false, ..store.clone() };
        assert_eq!(run(&afresh, &mut costs, 3).unwrap(), [3]);
        let other = Store { fingerprint: "k 25\nfile a".into(), ..store.clone() };
        let message = run(&other, &mut costs, 4).unwrap_err().to_string();
        assert!(message.contains("now k 25, then k 31"), "{message}");
        let path = dir.path().join("x.unit");
        let good = fs::read(&path).unwrap();
        for n in 0..good.len() {
            fs::write(&path, &good[..n]).unwrap();
            assert!(run(&store, &mut costs, 5).is_err(), "cut at {n}");
        }
        for n in 0..good.len() {
            let mut flipped = good.clone();
            flipped[n] ^= 1;
            fs::write(&path, flipped).unwrap();
            let message = run(&store, &mut costs, 5).unwrap_err().to_string();
            assert!(message.contains("damaged (") && message.contains("x.unit"), "{n}: {message}");
        }
        store.forget("x");
        assert!(store.finished().is_empty());
    }
}
