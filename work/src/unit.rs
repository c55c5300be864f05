//! Results of restartable units: one file per unit in the work folder, either complete or absent. The layout is
//! described in `docs/formats/unit.md`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cost::{CostTimer, UnitCost};
use crate::publish::{self, AtomicFile};

const MAGIC: &[u8; 8] = b"GENUMAUA";
/// Bytes before the fingerprint in a unit file: the magic number and the length of the fingerprint, 8 bytes each.
const HEADER_BYTES: u64 = 16;
/// Bytes of the checksum (CRC-32) at the end of a unit file.
const CHECKSUM_BYTES: u64 = 4;
/// Size of the read buffer in bytes.
const READ_BUFFER_BYTES: usize = 1 << 20;
const MAX_STRING_BYTES: u64 = 1 << 30;

/// Why the result of a unit cannot be stored or loaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be created, or the complete file could not be renamed to its final name.
    #[error(transparent)]
    Publish(#[from] publish::Error),
    /// The file could not be written; the message contains its path.
    #[error(transparent)]
    Write(io::Error),
    /// The file could not be read.
    #[error("{path}: {source}")]
    Read {
        /// Path of the unit file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is damaged, or is not a unit file of this version.
    #[error("{path}: damaged ({what}); remove the work folder and start again without --resume")]
    Damaged {
        /// Path of the unit file.
        path: PathBuf,
        /// The check that failed.
        what: &'static str,
    },
    /// The file was made by a run with other inputs or parameters.
    #[error(
        "{path}: made from other inputs or parameters ({difference}); name another folder with --work, or leave out --resume"
    )]
    OtherRun {
        /// Path of the unit file.
        path: PathBuf,
        /// First line of the fingerprint in which the two runs differ.
        difference: String,
    },
}

/// Stores the results of finished units in the work folder of a run, and loads them when a run resumes.
#[derive(Debug, Clone)]
pub struct UnitStore {
    /// Folder with the results of finished units; a run resumes from it.
    pub work_folder: PathBuf,
    /// Everything that the results depend on (inputs, parameters, version), one item per line. A stored result with
    /// another fingerprint is an error.
    pub fingerprint: String,
    /// Whether stored results are loaded instead of running the unit again.
    pub resume: bool,
}

impl UnitStore {
    /// Path of the file with the result of the unit `name`.
    pub fn unit_result_path(&self, name: &str) -> PathBuf {
        self.work_folder.join(format!("{name}.unit"))
    }

    /// Sorted names of the units that have a result file in the work folder. The fingerprints of these files are not
    /// compared.
    pub fn names_of_finished_units(&self) -> Vec<String> {
        // I/O error ignored: without a work folder no unit is finished.
        let entries = fs::read_dir(&self.work_folder).ok();
        let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
        let unit = |name: std::ffi::OsString| Some(name.to_str()?.strip_suffix(".unit")?.to_owned());
        let mut names: Vec<String> = names.filter_map(unit).filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Removes the stored result of a unit, if there is one. Errors are ignored, because the file is removed with the
    /// work folder at the latest.
    pub fn remove_unit_result(&self, name: &str) {
        let _ = fs::remove_file(self.unit_result_path(name));
    }

    /// Returns the result of the unit `name`: loads the stored result if [`UnitStore::resume`] is set and there is one,
    /// otherwise calls `work` and stores its result. Appends the cost of the unit to `costs`.
    ///
    /// # Errors
    /// The errors of `work`; the result cannot be stored; or the stored result cannot be loaded, for example because
    /// its fingerprint differs.
    pub fn run_or_load_unit<T, E>(
        &self,
        name: &str,
        costs: &mut Vec<UnitCost>,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<Error>,
    {
        let path = self.unit_result_path(name);
        let clock = CostTimer::start();
        let (result, resumed) = match self.resume.then(|| self.load(&path)).transpose()?.flatten() {
            Some(result) => (result, true),
            None => {
                let result = work()?;
                self.save(&path, &result)?;
                (result, false)
            }
        };
        costs.push(UnitCost { resumed, ..clock.stop(name) });
        Ok(result)
    }

    fn save<T: Serialize>(&self, path: &Path, value: &T) -> Result<(), Error> {
        let mut file = ChecksummedFile {
            file: AtomicFile::create_private(path)?,
            checksum: crc32fast::Hasher::new(),
            write_error: None,
        };
        let fingerprint = self.fingerprint.as_bytes();
        for bytes in [MAGIC, &(fingerprint.len() as u64).to_le_bytes()[..], fingerprint] {
            file.write_all(bytes).map_err(|e| Error::Write(file.write_error.take().unwrap_or(e)))?;
        }
        // The value is serialised directly into the file, because its bytes can be as large as all other data in
        // memory.
        if let Err(error) = postcard::to_io(value, &mut file) {
            return Err(Error::Write(file.write_error.unwrap_or_else(|| io::Error::other(error))));
        }
        let ChecksummedFile { mut file, checksum: sum, .. } = file;
        file.write_all(&sum.finalize().to_le_bytes()).map_err(Error::Write)?;
        Ok(file.publish()?)
    }

    /// Loads the result from `path`; `None` if the file does not exist. Reads the file twice, first for the checksum
    /// and then to decode it, and never holds the whole file in memory.
    fn load<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Error> {
        let read_error = |source| Error::Read { path: path.to_path_buf(), source };
        let damaged = |what| Error::Damaged { path: path.to_path_buf(), what };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(read_error(source)),
        };
        let length = file.metadata().map_err(read_error)?.len();
        let checked_bytes = length.checked_sub(CHECKSUM_BYTES).ok_or(damaged("too short"))?;
        let mut file = BufReader::with_capacity(READ_BUFFER_BYTES, file);
        let mut number = [0; 8];
        let fill = |file: &mut BufReader<File>, bytes: &mut [u8]| match file.read_exact(bytes) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(damaged("too short")),
            filled => filled.map_err(read_error),
        };
        let not_a_unit_file = damaged("not a unit file of this version");
        if checked_bytes < HEADER_BYTES {
            return Err(not_a_unit_file);
        }
        fill(&mut file, &mut number)?;
        if number != *MAGIC {
            return Err(not_a_unit_file);
        }
        file.rewind().map_err(read_error)?;
        let mut sum = crc32fast::Hasher::new();
        let mut left = checked_bytes;
        while left > 0 {
            let bytes = file.fill_buf().map_err(read_error)?;
            let n = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if n == 0 {
                return Err(damaged("too short"));
            }
            sum.update(&bytes[..n]);
            file.consume(n);
            left -= n as u64;
        }
        let mut stored_checksum = [0; CHECKSUM_BYTES as usize];
        fill(&mut file, &mut stored_checksum)?;
        if stored_checksum != sum.finalize().to_le_bytes() {
            return Err(damaged("checksum"));
        }
        file.seek(SeekFrom::Start(MAGIC.len() as u64)).map_err(read_error)?;
        fill(&mut file, &mut number)?;
        let len = u64::from_le_bytes(number);
        let payload = (checked_bytes - HEADER_BYTES).checked_sub(len).ok_or(damaged("too short"))?;
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
            return Err(Error::OtherRun { path: path.to_path_buf(), difference });
        }
        // Buffer for one string or byte array at a time; pages that are not touched take no memory.
        let mut scratch = vec![0; payload.min(MAX_STRING_BYTES) as usize];
        let value = postcard::from_io((file.take(payload), &mut scratch));
        value.map(|(value, _)| Some(value)).map_err(|_| damaged("contents"))
    }
}

/// Writes to a file and computes the checksum of the bytes.
struct ChecksummedFile {
    file: AtomicFile,
    checksum: crc32fast::Hasher,
    /// The last write error. It is stored here because postcard drops the error of the writer.
    write_error: Option<io::Error>,
}

impl Write for ChecksummedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            Ok(n) => {
                self.checksum.update(&bytes[..n]);
                Ok(n)
            }
            Err(error) => Err(self.keep_error(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().map_err(|error| self.keep_error(error))
    }
}

impl ChecksummedFile {
    /// Stores a write error for the later report and returns another error of the same kind for the caller.
    fn keep_error(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        self.write_error = Some(error);
        kind.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_loaded_unless_damaged_or_of_another_run() {
        let dir = tempfile::tempdir().unwrap();
        let store = UnitStore { work_folder: dir.path().into(), fingerprint: "k 31\nfile a".into(), resume: true };
        let mut costs = Vec::new();
        let run = |store: &UnitStore, costs: &mut Vec<UnitCost>, value: u32| {
            store.run_or_load_unit("x", costs, || Ok::<_, Error>(vec![value]))
        };
        assert_eq!(run(&store, &mut costs, 1).unwrap(), [1]);
        assert_eq!(run(&store, &mut costs, 2).unwrap(), [1]);
        assert_eq!([costs[0].resumed, costs[1].resumed], [false, true]);
        assert_eq!(store.names_of_finished_units(), ["x"]);
        let afresh = UnitStore { resume: false, ..store.clone() };
        assert_eq!(run(&afresh, &mut costs, 3).unwrap(), [3]);
        let other = UnitStore { fingerprint: "k 25\nfile a".into(), ..store.clone() };
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
        store.remove_unit_result("x");
        assert!(store.names_of_finished_units().is_empty());
    }
}
