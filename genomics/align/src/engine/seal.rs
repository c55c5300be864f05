//! The seal of an index: a small text file beside it that tells a whole index of this reference from any other.
//!
//! The index files of the engines have no checksums, and their loaders trust what they read: a damaged or foreign index
//! gives wrong answers or none. So building an index also writes `NAME.seal`, and loading one checks it:
//!
//! ```text
//! genuma-seal 2
//! engine minibwa 0.6-r416
//! reference 5081000 1b851995
//! file ref.fa.l2b 1270912 8ab0a2f1
//! file ref.fa.mbw 3651720 c6e1d0a4
//! ```
//!
//! Numbers are sizes in bytes and CRC-32 sums, each over all bytes of a file: of the reference as it lies on the disk, and of
//! the index as it was in memory when it was written. Version 1 had a sample of the reference, in which a change could hide.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use genuma_work::publish::{AtomicFile, Set};

use super::{Error, Program, in_stretches, with_added};

const FIRST_LINE: &str = "genuma-seal 2";
/// Bytes that a thread sums at a time.
const STRETCH: u64 = 16 << 20;
/// Bytes of a file that are read at once.
const BUFFER: usize = 1 << 20;

/// The seal of the index whose first file is `file`.
pub fn path(file: &Path) -> PathBuf {
    with_added(file, "seal")
}

/// What all bytes of something come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// How many (bytes).
    pub size: u64,
    /// Their CRC-32.
    pub crc: u32,
}

impl Sum {
    /// Of a file as it is on the disk, by `threads` threads.
    ///
    /// # Errors
    /// It is no regular file, or cannot be read to its end.
    pub fn of_file(path: &Path, threads: usize) -> io::Result<Sum> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
        }
        Sum::of_stretches(about.len(), threads, |range, hasher| {
            let (mut at, mut buffer) = (range.start, vec![0; BUFFER]);
            while at < range.end {
                let n = (range.end - at).min(BUFFER as u64) as usize;
                file.read_exact_at(&mut buffer[..n], at)?;
                hasher.update(&buffer[..n]);
                at += n as u64;
            }
            Ok(())
        })
    }

    /// Of what is in memory, by `threads` threads.
    pub(crate) fn of_bytes(bytes: &[u8], threads: usize) -> Sum {
        let summed = Sum::of_stretches(bytes.len() as u64, threads, |range, hasher| {
            hasher.update(&bytes[range.start as usize..range.end as usize]);
            Ok::<_, Infallible>(())
        });
        match summed {
            Ok(sum) => sum,
            Err(never) => match never {},
        }
    }

    fn of_stretches<E: Send>(
        size: u64,
        threads: usize,
        add: impl Fn(Range<u64>, &mut crc32fast::Hasher) -> Result<(), E> + Sync,
    ) -> Result<Sum, E> {
        let parts = in_stretches(size, STRETCH, threads, |range| {
            let mut hasher = crc32fast::Hasher::new();
            add(range, &mut hasher).map(|()| hasher)
        })?;
        let mut all = crc32fast::Hasher::new();
        parts.iter().for_each(|part| all.combine(part));
        Ok(Sum { size, crc: all.finalize() })
    }
}

/// A file being written atomically, and the sum of what it is meant to hold.
pub(super) struct Summed {
    path: PathBuf,
    file: AtomicFile,
    /// What is neither summed nor written yet.
    waiting: Vec<u8>,
    size: u64,
    hasher: crc32fast::Hasher,
}

impl Summed {
    pub fn create(path: &Path) -> Result<Summed, Error> {
        let (file, waiting) = (AtomicFile::create(path)?, Vec::with_capacity(2 * BUFFER));
        Ok(Summed { path: path.to_path_buf(), file, waiting, size: 0, hasher: crc32fast::Hasher::new() })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        for some in bytes.chunks(BUFFER) {
            self.waiting.extend_from_slice(some);
            if self.waiting.len() >= BUFFER {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.hasher.update(&self.waiting);
        self.size += self.waiting.len() as u64;
        self.file.write_all(&self.waiting).map_err(genuma_reads::Error::Named)?;
        self.waiting.clear();
        Ok(())
    }

    /// Leaves only the publishing to be done; what it is meant to hold is what the seal shall say.
    pub fn complete(mut self, set: &mut Set) -> Result<(PathBuf, Sum), Error> {
        self.flush()?;
        set.add(self.file.complete()?);
        Ok((self.path, Sum { size: self.size, crc: self.hasher.finalize() }))
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn engine_line(program: Program) -> String {
    format!("{} {}", program.name, program.version)
}

fn wrong(path: &Path, what: impl Into<String>) -> Error {
    Error::Index { path: path.to_path_buf(), what: what.into() }
}

/// What a seal says of itself, file by file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seal {
    path: PathBuf,
    engine: String,
    reference: Sum,
    files: Vec<(String, Sum)>,
}

impl Seal {
    /// Seals an index, `files`, the first of which names the seal, and publishes it together with those that are in `set`.
    ///
    /// # Errors
    /// The seal cannot be written.
    pub fn write(
        program: Program,
        reference: Sum,
        files: &[(PathBuf, Sum)],
        mut set: Set,
    ) -> Result<(), Error> {
        let line = |Sum { size, crc }: &Sum| format!("{size} {crc:08x}");
        let mut text =
            format!("{FIRST_LINE}\nengine {}\nreference {}\n", engine_line(program), line(&reference));
        for (file, sum) in files {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "file {} {}", name_of(file), line(sum));
        }
        let mut seal = Summed::create(&path(&files[0].0))?;
        seal.write(text.as_bytes())?;
        seal.complete(&mut set)?;
        Ok(set.publish()?)
    }

    /// The seal of the index whose first file is `file`; none if it has none: it was made by the engine's own command line.
    ///
    /// # Errors
    /// It cannot be read, is no seal, or is that of another version.
    pub fn read(program: Program, file: &Path) -> Result<Option<Seal>, Error> {
        let path = path(file);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => String::new(),
            Err(e) => return Err(Error::io(&path)(e)),
        };
        if text.starts_with("genuma-seal 1\n") {
            return Err(wrong(&path, "of an older genuma, which looked at a part of the reference only"));
        }
        let seal = Seal::parse(&path, &text).ok_or_else(|| wrong(&path, "not the seal of an index"))?;
        if seal.engine != engine_line(program) {
            return Err(wrong(&path, format!("an index for {}, not {}", seal.engine, engine_line(program))));
        }
        Ok(Some(seal))
    }

    fn parse(path: &Path, text: &str) -> Option<Seal> {
        // A seal without its last line end may lack more.
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let engine = lines.next()?.strip_prefix("engine ")?.to_owned();
        let sum = |size: &str, crc: &str| {
            Some(Sum { size: size.parse().ok()?, crc: u32::from_str_radix(crc, 16).ok()? })
        };
        let (size, crc) = lines.next()?.strip_prefix("reference ")?.split_once(' ')?;
        let reference = sum(size, crc)?;
        let file = |line: &str| {
            // A name may have blanks.
            let (rest, crc) = line.strip_prefix("file ")?.rsplit_once(' ')?;
            let (name, size) = rest.rsplit_once(' ')?;
            Some((name.to_owned(), sum(size, crc)?))
        };
        let files = lines.map(file).collect::<Option<_>>()?;
        Some(Seal { path: path.to_path_buf(), engine, reference, files })
    }

    /// Holds the reference against what was indexed, if that file is there: an index does without it.
    ///
    /// # Errors
    /// It cannot be read, or is another one.
    pub(crate) fn check_reference(&self, reference: &Path, threads: usize) -> Result<(), Error> {
        if !reference.is_file() {
            return Ok(());
        }
        if Sum::of_file(reference, threads).map_err(Error::io(reference))? == self.reference {
            return Ok(());
        }
        Err(wrong(&self.path, format!("not an index of {} as it is now", reference.display())))
    }

    /// Holds what a file of the index comes to against what it came to when it was made.
    ///
    /// # Errors
    /// It does not, or is none of this index.
    pub fn check(&self, file: &Path, found: Sum) -> Result<(), Error> {
        match self.files.iter().find(|(name, _)| *name == name_of(file)) {
            None => Err(wrong(&self.path, format!("does not name {}", file.display()))),
            Some((_, sum)) if *sum == found => Ok(()),
            Some((_, sum)) => {
                let how = if found.size == sum.size { "its bytes" } else { "its size" };
                Err(wrong(file, format!("damaged: {how} changed since it was made")))
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
        let bytes: Vec<u8> = (0..STRETCH as usize + 12_345).map(|i| (i * 31 / 8) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let expected = Sum { size: bytes.len() as u64, crc: crc32fast::hash(&bytes) };
        assert_eq!([1, 2, 3].map(|threads| Sum::of_file(&path, threads).unwrap()), [expected; 3]);
        assert_eq!([1, 3].map(|threads| Sum::of_bytes(&bytes, threads)), [expected; 2]);
        std::fs::write(&path, b"").unwrap();
        let nothing = Sum { size: 0, crc: 0 };
        assert_eq!((Sum::of_file(&path, 4).unwrap(), Sum::of_bytes(b"", 4)), (nothing, nothing));
        // A file that cannot be read to its end has no sum; nor has what is no file.
        assert!(Sum::of_file(dir.path(), 1).is_err());
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let [reference, one, two] = ["ref.fa", "ref.fa.a b", "ref.fa.c"].map(|name| dir.path().join(name));
        std::fs::write(&reference, "ACGT").unwrap();
        let program = Program { name: "engine", version: "1" };
        assert_eq!(Seal::read(program, &one).unwrap(), None, "there is no seal yet");
        let sums = [b"first", b"other"].map(|bytes| Sum::of_bytes(bytes, 1));
        let of_reference = Sum::of_file(&reference, 1).unwrap();
        Seal::write(program, of_reference, &[(one.clone(), sums[0]), (two.clone(), sums[1])], Set::default())
            .unwrap();
        let seal = Seal::read(program, &one).unwrap().unwrap();
        seal.check(&one, sums[0]).unwrap();
        seal.check(&two, sums[1]).unwrap();
        seal.check_reference(&reference, 1).unwrap();

        let said = |result: Result<(), Error>| result.unwrap_err().to_string();
        assert!(said(seal.check(&two, sums[0])).contains("its bytes changed"));
        assert!(said(seal.check(&two, Sum::of_bytes(b"othe", 1))).contains("its size changed"));
        assert!(said(seal.check(&reference, sums[0])).contains("does not name"));
        std::fs::write(&reference, "ACGA").unwrap();
        assert!(said(seal.check_reference(&reference, 1)).contains("not an index of"));
        std::fs::remove_file(&reference).unwrap();
        seal.check_reference(&reference, 1).unwrap();

        let other = Program { version: "2", ..program };
        let error = said(Seal::read(other, &one).map(drop));
        assert!(error.contains("an index for engine 1, not engine 2"), "{error}");
        let whole = std::fs::read_to_string(path(&one)).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(path(&one), &whole[..cut]).unwrap();
            // Cut at the end of a line it may be a seal, but of fewer files.
            if let Some(seal) = Seal::read(program, &one).ok().flatten() {
                assert!(seal.check(&two, sums[1]).is_err(), "{cut}");
            }
        }
        std::fs::write(path(&one), "genuma-seal 2\nengine x\n").unwrap();
        assert!(said(Seal::read(program, &one).map(drop)).contains("not the seal of an index"));
        std::fs::write(path(&one), whole.replace("genuma-seal 2", "genuma-seal 1")).unwrap();
        let error = said(Seal::read(program, &one).map(drop));
        assert!(error.contains("of an older genuma") && error.contains("`genuma index`"), "{error}");
    }

    #[test]
    fn a_change_of_any_part_of_the_reference_shows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ref.fa");
        let mut bytes: Vec<u8> =
            (0..6u32 << 20).map(|i| b"ACGT"[(i.wrapping_mul(2_654_435_761) >> 30) as usize]).collect();
        std::fs::write(&path, &bytes).unwrap();
        let before = Sum::of_file(&path, 2).unwrap();
        // 29 kb between two of the 64 samples that version 1 took.
        let between = bytes.len() / 63 + (64 << 10);
        assert!(between + 29_000 < 2 * bytes.len() / 63);
        bytes[between..between + 29_000].fill(b'N');
        std::fs::write(&path, &bytes).unwrap();
        assert_ne!(Sum::of_file(&path, 2).unwrap(), before);
    }
}
