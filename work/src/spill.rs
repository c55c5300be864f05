//! Spill files: where what memory has no room for waits, in pieces, each with a sum that is compared when it is read.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::FallocateFlags;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

/// What can go wrong with a spill file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses.
    #[error(
        "cannot {doing} {file} ({:.1} GB so far): {source}; {}", *.at as f64 / 1e9,
        if *.doing == "write" { .file.more_room() } else { .file.again() }
    )]
    Refused {
        /// `read` or `write`.
        doing: &'static str,
        /// The file.
        file: SpillFile,
        /// Bytes in the file.
        at: u64,
        /// What the system says.
        source: io::Error,
    },
    /// What comes back is not what was written.
    #[error("{file} is damaged: the {len} bytes from byte {at} on are not what was written; {}", .file.again())]
    Damaged {
        /// The file.
        file: SpillFile,
        /// Where the bytes start.
        at: u64,
        /// How many they are.
        len: usize,
    },
    /// It may grow no further.
    #[error("{file} has reached the {:.1} GB that it may take; {}", *.limit as f64 / 1e9, .file.more_room())]
    Full {
        /// The file.
        file: SpillFile,
        /// Bytes that it may have.
        limit: u64,
    },
}

/// A spill file, as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillFile {
    /// Whose it is: `k-mer`, `sorting`.
    what: &'static str,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// In this folder, without a name: nobody but this process reads it.
    In(PathBuf),
    /// Under this name: a run that goes on reads it.
    At(PathBuf),
    /// In the object of this name: other steps read it.
    Object(String),
}

/// A local file that has the bytes of a step's object from `start` on.
#[derive(Debug, Clone, Copy)]
pub struct ObjectFile<'a> {
    /// The object's name, for messages.
    pub name: &'a str,
    /// The file.
    pub path: &'a Path,
    /// Which byte of the object is its first.
    pub start: u64,
}

impl fmt::Display for SpillFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::In(folder) => write!(f, "the {} spill file in {}", self.what, folder.display()),
            Place::At(path) => write!(f, "the {} spill file {}", self.what, path.display()),
            Place::Object(name) => write!(f, "{name} ({} part)", self.what),
        }
    }
}

impl SpillFile {
    /// What to do when it cannot be written.
    fn more_room(&self) -> &'static str {
        match self.place {
            Place::In(_) => "give more memory, or a work folder with more room",
            Place::At(_) | Place::Object(_) => "give a work folder with more room",
        }
    }

    /// What to do when it cannot be read, or is damaged.
    fn again(&self) -> &'static str {
        match self.place {
            Place::In(_) => "check the disk, then start again",
            Place::At(_) => "check the disk, then remove that folder, or start again without --resume",
            Place::Object(_) => "check the disk, then do the step that made it again",
        }
    }
}

/// A piece of a spill file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Where it starts.
    pub at: u64,
    /// Bytes that count.
    pub len: u32,
    /// Their checksum (XXH3, 64 bits).
    pub sum: u64,
}

/// A spill file. One without a name is made at the first write, so that nothing is left behind even by a kill.
#[derive(Debug)]
pub struct Spill {
    name: SpillFile,
    file: OnceLock<File>,
    /// Where pieces are counted from: this place is the file's first byte.
    start: u64,
    /// Bytes that the file may have.
    limit: u64,
    end: AtomicU64,
    written: AtomicU64,
    /// Places that hold nothing any more.
    free: Mutex<Vec<u64>>,
}

impl Spill {
    /// One without a name, in `folder`.
    pub fn unnamed(what: &'static str, folder: &Path) -> Spill {
        Spill::of(SpillFile { what, place: Place::In(folder.to_owned()) })
    }

    /// The same, of `limit` bytes at most.
    pub fn within(self, limit: u64) -> Spill {
        Spill { limit, ..self }
    }

    /// A new file at `path`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(what: &'static str, path: &Path) -> Result<Spill, Error> {
        Spill::at(what, path, File::options().read(true).write(true).create(true).truncate(true), "write")
    }

    /// The file at `path`, for reading only.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(what: &'static str, path: &Path) -> Result<Spill, Error> {
        Spill::at(what, path, File::options().read(true), "read")
    }

    /// Pieces of an object, for reading only.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn object(what: &'static str, file: &ObjectFile<'_>) -> Result<Spill, Error> {
        let spill = Spill::of(SpillFile { what, place: Place::Object(file.name.to_owned()) });
        let opened = File::open(file.path).map_err(spill.refused("read"))?;
        Ok(Spill { file: OnceLock::from(opened), start: file.start, ..spill })
    }

    fn of(name: SpillFile) -> Spill {
        let (end, written) = Default::default();
        Spill { name, file: OnceLock::new(), start: 0, limit: u64::MAX, end, written, free: Mutex::default() }
    }

    fn at(what: &'static str, path: &Path, open: &OpenOptions, doing: &'static str) -> Result<Spill, Error> {
        let spill = Spill::of(SpillFile { what, place: Place::At(path.to_owned()) });
        let file = open.open(path).map_err(spill.refused(doing))?;
        Ok(Spill { file: OnceLock::from(file), ..spill })
    }

    /// Bytes written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// Most bytes that the file has had so far: places of pieces, those that hold nothing any more too.
    pub fn peak(&self) -> u64 {
        self.end.load(Relaxed)
    }

    /// Writes `bytes` to a place of `room` bytes, which is as many for all pieces if places are [freed](Spill::free).
    ///
    /// # Errors
    /// The file cannot be written, or has no place left within its limit.
    pub fn write(&self, bytes: &[u8], room: usize) -> Result<Piece, Error> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let at = free.map_or_else(|| self.grow(room as u64), Ok)?;
        let file = self.file().map_err(self.refused("write"))?;
        file.write_all_at(bytes, at).map_err(self.refused("write"))?;
        self.written.fetch_add(bytes.len() as u64, Relaxed);
        Ok(Piece { at, len: bytes.len() as u32, sum: XxHash3_64::oneshot(bytes) })
    }

    /// The place of another `room` bytes at the end of the file.
    fn grow(&self, room: u64) -> Result<u64, Error> {
        let further = |end: u64| end.checked_add(room).filter(|&end| end <= self.limit);
        let grown = self.end.fetch_update(Relaxed, Relaxed, further);
        grown.map_err(|_| Error::Full { file: self.name.clone(), limit: self.limit })
    }

    /// Reads a piece.
    ///
    /// # Errors
    /// The file cannot be read, or is not as it was written.
    pub fn read(&self, piece: &Piece, into: &mut Vec<u8>) -> Result<(), Error> {
        let file = self.file().map_err(self.refused("read"))?;
        into.resize(piece.len as usize, 0);
        let Some(at) = piece.at.checked_sub(self.start) else { return Err(self.damaged(piece)) };
        match file.read_exact_at(into, at) {
            Ok(()) if XxHash3_64::oneshot(into) == piece.sum => Ok(()),
            // A file that ends too early is damaged as well.
            Err(e) if e.kind() != ErrorKind::UnexpectedEof => Err(self.refused("read")(e)),
            _ => Err(self.damaged(piece)),
        }
    }

    /// What says that a piece is not what was written.
    pub fn damaged(&self, piece: &Piece) -> Error {
        Error::Damaged { file: self.name.clone(), at: piece.at, len: piece.len as usize }
    }

    /// Lets another piece have the place of this one.
    pub fn free(&self, piece: Piece) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(piece.at);
    }

    /// Gives the room of a piece back to the disk.
    pub fn give_back(&self, piece: Piece) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if let Some(file) = self.file.get() {
            // Some file systems cannot; then the room comes back at the end.
            let _ = rustix::fs::fallocate(file, hole, piece.at, piece.len.into());
        }
    }

    /// Gives all its room back to the disk: nobody reads it any more.
    pub fn give_up(&self) {
        if let Some(file) = self.file.get() {
            // What cannot be cut goes with the file.
            let _ = file.set_len(0);
        }
    }

    /// Waits until all that was written is on the disk.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&self) -> Result<(), Error> {
        self.file.get().map_or(Ok(()), |file| file.sync_all().map_err(self.refused("write")))
    }

    fn file(&self) -> io::Result<&File> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let Place::In(folder) = &self.name.place else { return Err(ErrorKind::NotFound.into()) };
        let made = tempfile::tempfile_in(folder)?;
        Ok(self.file.get_or_init(|| made))
    }

    /// A value that cannot be made of bytes, or bytes of it.
    pub(crate) fn formless(&self, why: &postcard::Error) -> Error {
        self.refused("use")(io::Error::other(why.to_string()))
    }

    fn refused(&self, doing: &'static str) -> impl FnOnce(io::Error) -> Error + '_ {
        move |source| Error::Refused { doing, file: self.name.clone(), at: self.end.load(Relaxed), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told() {
        let spill = Spill::unnamed("k-mer", Path::new("/scratch"));
        spill.file.set(File::options().write(true).open("/dev/full").unwrap()).unwrap();
        assert_eq!(
            spill.write(b"bytes", 4096).unwrap_err().to_string(),
            "cannot write the k-mer spill file in /scratch (0.0 GB so far): No space left on device (os error 28); \
             give more memory, or a work folder with more room"
        );
        let said =
            Spill::unnamed("sorting", Path::new("/no/such")).write(b"bytes", 5).unwrap_err().to_string();
        assert!(
            said.starts_with("cannot write the sorting spill file in /no/such (0.0 GB so far): No such"),
            "{said}"
        );
    }

    #[test]
    fn a_file_grows_to_its_limit_and_no_further() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::unnamed("k-mer", folder.path()).within(10_000);
        let [first, second] = [1, 2].map(|byte| spill.write(&[byte; 3000], 4096).unwrap());
        let said = spill.write(&[3; 3000], 4096).unwrap_err().to_string();
        assert!(said.contains("has reached the 0.0 GB that it may take; give more memory"), "{said}");
        spill.free(first);
        let third = spill.write(&[3; 3000], 4096).unwrap();
        let mut buffer = Vec::new();
        for (byte, piece) in [(3, third), (2, second)] {
            spill.read(&piece, &mut buffer).unwrap();
            assert_eq!(buffer, [byte; 3000]);
        }
        assert_eq!((spill.peak(), spill.written()), (8192, 9000));
        let nothing = Spill::unnamed("k-mer", Path::new("/no/such")).within(0);
        assert!(matches!(nothing.write(b"bytes", 5), Err(Error::Full { limit: 0, .. })));
    }

    #[test]
    fn a_flipped_bit_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bins");
        let spill = Spill::create("k-mer", &path).unwrap();
        let pieces = [1, 2].map(|byte| spill.write(&[byte; 3000], 4096).unwrap());
        spill.sync().unwrap();
        let spill = Spill::open("k-mer", &path).unwrap();
        File::options().write(true).open(&path).unwrap().write_all_at(&[2 ^ 64], 4096 + 1234).unwrap();
        let mut buffer = Vec::new();
        spill.read(&pieces[0], &mut buffer).unwrap();
        assert_eq!(buffer, [1; 3000]);
        let again = "check the disk, then remove that folder, or start again without --resume";
        for len in [2 * 4096, 4096] {
            File::options().write(true).open(&path).unwrap().set_len(len).unwrap();
            assert_eq!(
                spill.read(&pieces[1], &mut buffer).unwrap_err().to_string(),
                format!(
                    "the k-mer spill file {} is damaged: the 3000 bytes from byte 4096 on are not what was written; {again}",
                    path.display()
                )
            );
        }
    }

    #[test]
    fn a_file_without_a_name_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::unnamed("sorting", folder.path());
        let pieces: Vec<Piece> = (0..9).map(|byte| spill.write(&[byte; 5000], 5000).unwrap()).collect();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut buffer = Vec::new();
        for (byte, piece) in pieces.iter().enumerate().rev() {
            spill.read(piece, &mut buffer).unwrap();
            assert_eq!(buffer, [byte as u8; 5000]);
            spill.give_back(*piece);
        }
        assert_eq!(spill.written(), 9 * 5000);
    }
}
