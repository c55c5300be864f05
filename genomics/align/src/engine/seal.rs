//! The seal of an index: a small text file, stored with the index, that contains the checksums of the index and of
//! its reference.
//!
//! A damaged index, or the index of another reference, gives wrong alignments. So building an index also writes
//! `NAME.seal`, and loading an index checks it:
//!
//! ```text
//! genuma-seal 2
//! engine genuma-mapper 1
//! reference 5081000 1b851995
//! file ref.fa.gnm 5651720 c6e1d0a4
//! ```
//!
//! The numbers are the size (bytes) and the CRC-32 of a whole file: of the reference as it is on disk, and of the
//! index as it was in memory when it was written. Version 1 had a checksum of only a part of the reference, so that
//! some changes were not detected.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use genuma_work::parallel;
use genuma_work::publish::{AtomicFile, AtomicFileSet};

use super::{AlignerNameAndVersion, Error, append_extension};

const SEAL_HEADER_LINE: &str = "genuma-seal 2";
/// Number of bytes that a thread checksums at a time.
const CHECKSUM_RANGE_BYTES: u64 = 16 << 20;
/// Number of bytes that are read from a file at a time.
const READ_BUFFER_BYTES: usize = 1 << 20;

/// Path of the seal of an index: `file`, the first file of the index, with `.seal` appended.
pub fn seal_path(file: &Path) -> PathBuf {
    append_extension(file, "seal")
}

/// Size and CRC-32 of a file or memory area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum {
    /// Size of the file in bytes.
    pub size: u64,
    /// CRC-32 of all bytes.
    pub crc: u32,
}

impl Checksum {
    /// Computes the checksum of a file on disk with `threads` threads.
    ///
    /// # Errors
    /// The path is not a regular file, or the file cannot be read to its end.
    pub fn checksum_of_file(path: &Path, threads: usize) -> io::Result<Checksum> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
        }
        Checksum::of_ranges(metadata.len(), threads, |range, hasher| {
            let (mut at, mut buffer) = (range.start, vec![0; READ_BUFFER_BYTES]);
            while at < range.end {
                let n = (range.end - at).min(READ_BUFFER_BYTES as u64) as usize;
                file.read_exact_at(&mut buffer[..n], at)?;
                hasher.update(&buffer[..n]);
                at += n as u64;
            }
            Ok(())
        })
    }

    /// Computes the checksum of bytes in memory with `threads` threads.
    pub(crate) fn checksum_of_bytes(bytes: &[u8], threads: usize) -> Checksum {
        let summed = Checksum::of_ranges(bytes.len() as u64, threads, |range, hasher| {
            hasher.update(&bytes[range.start as usize..range.end as usize]);
            Ok::<_, Infallible>(())
        });
        match summed {
            Ok(sum) => sum,
            Err(never) => match never {},
        }
    }

    fn of_ranges<E: Send>(
        size: u64,
        threads: usize,
        add: impl Fn(Range<u64>, &mut crc32fast::Hasher) -> Result<(), E> + Sync,
    ) -> Result<Checksum, E> {
        let parts = parallel::try_map_in_order(
            size.div_ceil(CHECKSUM_RANGE_BYTES) as usize,
            threads,
            || (),
            |(), i| {
                let start = i as u64 * CHECKSUM_RANGE_BYTES;
                let mut hasher = crc32fast::Hasher::new();
                add(start..size.min(start + CHECKSUM_RANGE_BYTES), &mut hasher).map(|()| hasher)
            },
        )?;
        let mut all = crc32fast::Hasher::new();
        parts.iter().for_each(|part| all.combine(part));
        Ok(Checksum { size, crc: all.finalize() })
    }
}

/// Writes a file that is published atomically, and computes the checksum of the bytes written.
pub(super) struct ChecksummingWriter {
    path: PathBuf,
    file: AtomicFile,
    /// Bytes that are not yet written to the file.
    unwritten: Vec<u8>,
    size: u64,
    hasher: crc32fast::Hasher,
}

impl ChecksummingWriter {
    /// Creates the temporary file that will be published as `path`.
    pub(super) fn create_checksummed_file(path: &Path) -> Result<ChecksummingWriter, Error> {
        let (file, unwritten) = (AtomicFile::create(path)?, Vec::with_capacity(2 * READ_BUFFER_BYTES));
        Ok(ChecksummingWriter { path: path.to_path_buf(), file, unwritten, size: 0, hasher: crc32fast::Hasher::new() })
    }

    /// Appends bytes to the file and to the checksum.
    pub(super) fn write_and_checksum_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for some in bytes.chunks(READ_BUFFER_BYTES) {
            self.unwritten.extend_from_slice(some);
            if self.unwritten.len() >= READ_BUFFER_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.hasher.update(&self.unwritten);
        self.size += self.unwritten.len() as u64;
        self.file.write_all(&self.unwritten).map_err(genuma_reads::Error::Io)?;
        self.unwritten.clear();
        Ok(())
    }

    /// Completes the file and adds it to `set`. Returns its path and the checksum of all bytes written.
    pub(super) fn finish_and_add_to_file_set(mut self, set: &mut AtomicFileSet) -> Result<(PathBuf, Checksum), Error> {
        self.flush()?;
        set.add_file(self.file.flush_to_partial_file()?);
        Ok((self.path, Checksum { size: self.size, crc: self.hasher.finalize() }))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn engine_line(program: AlignerNameAndVersion) -> String {
    format!("{} {}", program.name, program.version)
}

fn index_error(path: &Path, reason: impl Into<String>) -> Error {
    Error::Index { path: path.to_path_buf(), reason: reason.into() }
}

/// Checksums of an index and of its reference, as the file `NAME.seal` stores them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexSeal {
    path: PathBuf,
    engine: String,
    reference: Checksum,
    files: Vec<(String, Checksum)>,
}

impl IndexSeal {
    /// Writes the seal of an index that consists of `files`, and publishes it together with the files in `set`. The
    /// name of the seal is that of the first file with `.seal` appended.
    ///
    /// # Errors
    /// The seal cannot be written.
    pub(super) fn write_seal_and_publish_files(
        program: AlignerNameAndVersion,
        reference: Checksum,
        files: &[(PathBuf, Checksum)],
        mut set: AtomicFileSet,
    ) -> Result<(), Error> {
        let line = |Checksum { size, crc }: &Checksum| format!("{size} {crc:08x}");
        let mut text = format!("{SEAL_HEADER_LINE}\nengine {}\nreference {}\n", engine_line(program), line(&reference));
        for (file, sum) in files {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "file {} {}", file_name(file), line(sum));
        }
        let mut seal = ChecksummingWriter::create_checksummed_file(&seal_path(&files[0].0))?;
        seal.write_and_checksum_bytes(text.as_bytes())?;
        seal.finish_and_add_to_file_set(&mut set)?;
        Ok(set.publish_all()?)
    }

    /// Reads the seal of the index whose first file is `file`.
    ///
    /// # Errors
    /// The seal is missing, cannot be read, is not a seal, has another version, or is that of another engine.
    pub(super) fn read_seal(program: AlignerNameAndVersion, file: &Path) -> Result<IndexSeal, Error> {
        let path = seal_path(file);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let reason = format!("{} is missing: without it the index cannot be checked", path.display());
                return Err(index_error(file, reason));
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidData => String::new(),
            Err(e) => return Err(Error::io(&path)(e)),
        };
        if text.starts_with("genuma-seal 1\n") {
            return Err(index_error(
                &path,
                "made by an older version of genuma, which checked only a part of the reference",
            ));
        }
        let seal = IndexSeal::parse(&path, &text).ok_or_else(|| index_error(&path, "not the seal of an index"))?;
        if seal.engine != engine_line(program) {
            return Err(index_error(&path, format!("an index for {}, not {}", seal.engine, engine_line(program))));
        }
        Ok(seal)
    }

    fn parse(path: &Path, text: &str) -> Option<IndexSeal> {
        // A seal without its last line end may be incomplete.
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next()? != SEAL_HEADER_LINE {
            return None;
        }
        let engine = lines.next()?.strip_prefix("engine ")?.to_owned();
        let sum = |size: &str, crc: &str| {
            Some(Checksum { size: size.parse().ok()?, crc: u32::from_str_radix(crc, 16).ok()? })
        };
        let (size, crc) = lines.next()?.strip_prefix("reference ")?.split_once(' ')?;
        let reference = sum(size, crc)?;
        let file = |line: &str| {
            // A file name may contain spaces.
            let (rest, crc) = line.strip_prefix("file ")?.rsplit_once(' ')?;
            let (name, size) = rest.rsplit_once(' ')?;
            Some((name.to_owned(), sum(size, crc)?))
        };
        let files = lines.map(file).collect::<Option<_>>()?;
        Some(IndexSeal { path: path.to_path_buf(), engine, reference, files })
    }

    /// Compares the checksum of the reference file with that in the seal. A missing reference file is no error.
    ///
    /// # Errors
    /// The reference cannot be read, or has changed.
    pub(crate) fn check_reference_checksum(&self, reference: &Path, threads: usize) -> Result<(), Error> {
        if fs::metadata(reference).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            return Ok(());
        }
        if Checksum::checksum_of_file(reference, threads).map_err(Error::io(reference))? == self.reference {
            return Ok(());
        }
        Err(index_error(&self.path, format!("not an index of {} as it is now", reference.display())))
    }

    /// Compares the checksum `found` of an index file with that in the seal.
    ///
    /// # Errors
    /// The checksums differ, or the seal does not list the file.
    pub(super) fn check_index_file_checksum(&self, file: &Path, found: Checksum) -> Result<(), Error> {
        match self.files.iter().find(|(name, _)| *name == file_name(file)) {
            None => Err(index_error(&self.path, format!("does not name {}", file.display()))),
            Some((_, sum)) if *sum == found => Ok(()),
            Some((_, sum)) => {
                let how = if found.size == sum.size { "its bytes" } else { "its size" };
                Err(index_error(file, format!("damaged: {how} changed since it was made")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_parts_is_the_sum() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let bytes: Vec<u8> = (0..CHECKSUM_RANGE_BYTES as usize + 12_345).map(|i| (i * 31 / 8) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let expected = Checksum { size: bytes.len() as u64, crc: crc32fast::hash(&bytes) };
        assert_eq!([1, 2, 3].map(|threads| Checksum::checksum_of_file(&path, threads).unwrap()), [expected; 3]);
        assert_eq!([1, 3].map(|threads| Checksum::checksum_of_bytes(&bytes, threads)), [expected; 2]);
        std::fs::write(&path, b"").unwrap();
        let nothing = Checksum { size: 0, crc: 0 };
        assert_eq!(
            (Checksum::checksum_of_file(&path, 4).unwrap(), Checksum::checksum_of_bytes(b"", 4)),
            (nothing, nothing)
        );
        // A file that cannot be read to its end has no checksum, and neither has a folder.
        assert!(Checksum::checksum_of_file(dir.path(), 1).is_err());
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let [reference, one, two] = ["ref.fa", "ref.fa.a b", "ref.fa.c"].map(|name| dir.path().join(name));
        std::fs::write(&reference, "ACGT").unwrap();
        let program = AlignerNameAndVersion { name: "engine", version: "1" };
        assert!(IndexSeal::read_seal(program, &one).unwrap_err().to_string().contains("ref.fa.a b.seal is missing"));
        let sums = [b"first", b"other"].map(|bytes| Checksum::checksum_of_bytes(bytes, 1));
        let of_reference = Checksum::checksum_of_file(&reference, 1).unwrap();
        IndexSeal::write_seal_and_publish_files(
            program,
            of_reference,
            &[(one.clone(), sums[0]), (two.clone(), sums[1])],
            AtomicFileSet::default(),
        )
        .unwrap();
        let seal = IndexSeal::read_seal(program, &one).unwrap();
        seal.check_index_file_checksum(&one, sums[0]).unwrap();
        seal.check_index_file_checksum(&two, sums[1]).unwrap();
        seal.check_reference_checksum(&reference, 1).unwrap();

        let said = |result: Result<(), Error>| result.unwrap_err().to_string();
        assert!(said(seal.check_index_file_checksum(&two, sums[0])).contains("its bytes changed"));
        assert!(
            said(seal.check_index_file_checksum(&two, Checksum::checksum_of_bytes(b"othe", 1)))
                .contains("its size changed")
        );
        assert!(said(seal.check_index_file_checksum(&reference, sums[0])).contains("does not name"));
        std::fs::write(&reference, "ACGA").unwrap();
        assert!(said(seal.check_reference_checksum(&reference, 1)).contains("not an index of"));
        std::fs::remove_file(&reference).unwrap();
        seal.check_reference_checksum(&reference, 1).unwrap();

        let other = AlignerNameAndVersion { version: "2", ..program };
        let error = said(IndexSeal::read_seal(other, &one).map(drop));
        assert!(error.contains("an index for engine 1, not engine 2"), "{error}");
        let whole = std::fs::read_to_string(seal_path(&one)).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(seal_path(&one), &whole[..cut]).unwrap();
            // A seal that is cut at a line end may be valid, but lists fewer files.
            if let Ok(seal) = IndexSeal::read_seal(program, &one) {
                assert!(seal.check_index_file_checksum(&two, sums[1]).is_err(), "{cut}");
            }
        }
        std::fs::write(seal_path(&one), "genuma-seal 2\nengine x\n").unwrap();
        assert!(said(IndexSeal::read_seal(program, &one).map(drop)).contains("not the seal of an index"));
        std::fs::write(seal_path(&one), whole.replace("genuma-seal 2", "genuma-seal 1")).unwrap();
        let error = said(IndexSeal::read_seal(program, &one).map(drop));
        assert!(error.contains("made by an older version of genuma") && error.contains("`genuma index`"), "{error}");
    }

    #[test]
    fn a_change_of_any_part_of_the_reference_shows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ref.fa");
        let mut bytes: Vec<u8> =
            (0..6u32 << 20).map(|i| b"ACGT"[(i.wrapping_mul(2_654_435_761) >> 30) as usize]).collect();
        std::fs::write(&path, &bytes).unwrap();
        let before = Checksum::checksum_of_file(&path, 2).unwrap();
        // 29 kb between two of the 64 samples of which version 1 had checksums.
        let between = bytes.len() / 63 + (64 << 10);
        assert!(between + 29_000 < 2 * bytes.len() / 63);
        bytes[between..between + 29_000].fill(b'N');
        std::fs::write(&path, &bytes).unwrap();
        assert_ne!(Checksum::checksum_of_file(&path, 2).unwrap(), before);
    }
}
