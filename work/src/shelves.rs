//! Shelves: values that memory has no room for, put away on one of many shelves and taken from there shelf by shelf.
//!
//! All shelves share one spill file. What is put on a shelf waits in memory until it fills a piece of [`PIECE`] bytes.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::spill::{Error, ObjectFile, Piece, Spill};

/// Bytes of a piece of the file; the memory that each shelf may take while it is filled.
pub const PIECE: usize = 64 << 10;

/// What lies on a shelf.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shelf {
    /// Values.
    pub values: u64,
    /// Their bytes.
    pub bytes: u64,
    pieces: Vec<Piece>,
}

/// A shelf that is being filled.
#[derive(Debug, Default)]
struct Open {
    shelf: Shelf,
    /// What is not in the file yet.
    last: Vec<u8>,
}

/// Shelves by number, from 0 on.
#[derive(Debug)]
pub struct Shelves {
    spill: Spill,
    shelves: Vec<Mutex<Open>>,
}

impl Shelves {
    /// `number` empty shelves in a file without a name in `folder`; `what` names its kind in messages.
    pub fn unnamed(what: &'static str, folder: &Path, number: usize) -> Shelves {
        Shelves::with(Spill::unnamed(what, folder), (0..number).map(|_| Shelf::default()))
    }

    /// `number` empty shelves in a new file at `path`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(what: &'static str, path: &Path, number: usize) -> Result<Shelves, Error> {
        Ok(Shelves::with(Spill::create(what, path)?, (0..number).map(|_| Shelf::default())))
    }

    /// Shelves that [`Shelves::finish`] left in the file at `path`, for reading.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(what: &'static str, path: &Path, shelves: Vec<Shelf>) -> Result<Shelves, Error> {
        Ok(Shelves::with(Spill::open(what, path)?, shelves.into_iter()))
    }

    /// Shelves that [`Shelves::finish`] left in what is now an object, for reading.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn object(what: &'static str, file: &ObjectFile<'_>, shelves: Vec<Shelf>) -> Result<Shelves, Error> {
        Ok(Shelves::with(Spill::object(what, file)?, shelves.into_iter()))
    }

    fn with(spill: Spill, shelves: impl Iterator<Item = Shelf>) -> Shelves {
        let open = |shelf| Mutex::new(Open { shelf, last: Vec::new() });
        Shelves { spill, shelves: shelves.map(open).collect() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.shelves.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shelves.is_empty()
    }

    /// Puts a value on a shelf, behind those that are there.
    ///
    /// # Errors
    /// The file cannot be written, or the value has no form in bytes.
    pub fn put(&self, shelf: usize, value: &impl Serialize) -> Result<(), Error> {
        let mut open = self.lock(shelf);
        let Open { shelf, last } = &mut *open;
        let before = last.len();
        *last = postcard::to_extend(value, std::mem::take(last)).map_err(|e| self.spill.formless(&e))?;
        shelf.values += 1;
        shelf.bytes += (last.len() - before) as u64;
        let whole = last.len() / PIECE * PIECE;
        for piece in last[..whole].chunks(PIECE) {
            shelf.pieces.push(self.spill.write(piece, PIECE)?);
        }
        last.drain(..whole);
        Ok(())
    }

    /// All values of a shelf, in the order in which they were put there.
    ///
    /// # Errors
    /// The file cannot be read, or is not as it was written.
    pub fn read<T: DeserializeOwned>(&self, shelf: usize) -> Result<Vec<T>, Error> {
        let open = self.lock(shelf);
        let (mut bytes, mut piece) = (Vec::with_capacity(open.shelf.bytes as usize), Vec::new());
        for at in &open.shelf.pieces {
            self.spill.read(at, &mut piece)?;
            bytes.extend_from_slice(&piece);
        }
        bytes.extend_from_slice(&open.last);
        let (mut values, mut rest) = (Vec::with_capacity(open.shelf.values as usize), &bytes[..]);
        for _ in 0..open.shelf.values {
            let (value, behind) = postcard::take_from_bytes(rest).map_err(|e| self.spill.formless(&e))?;
            values.push(value);
            rest = behind;
        }
        Ok(values)
    }

    /// The same, and the shelf is empty: its place in the file is used again.
    ///
    /// # Errors
    /// Those of [`Shelves::read`].
    pub fn take<T: DeserializeOwned>(&self, shelf: usize) -> Result<Vec<T>, Error> {
        let values = self.read(shelf)?;
        let Open { shelf, .. } = std::mem::take(&mut *self.lock(shelf));
        shelf.pieces.into_iter().for_each(|piece| self.spill.free(piece));
        Ok(values)
    }

    /// What lies on each shelf, all of it in the file and on the disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&self) -> Result<Vec<Shelf>, Error> {
        let finish = |shelf: usize| {
            let mut open = self.lock(shelf);
            let Open { shelf, last } = &mut *open;
            if !last.is_empty() {
                // Nothing more is put there: so it takes no more place than it needs.
                shelf.pieces.push(self.spill.write(last, last.len())?);
                last.clear();
            }
            Ok(shelf.clone())
        };
        let shelves = (0..self.shelves.len()).map(finish).collect::<Result<_, Error>>()?;
        self.spill.sync()?;
        Ok(shelves)
    }

    fn lock(&self, shelf: usize) -> std::sync::MutexGuard<'_, Open> {
        // A thread that panicked in here takes the whole run down anyway.
        self.shelves[shelf].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of all sizes, some longer than a piece.
    fn value(i: usize) -> (usize, Vec<u8>) {
        (i, vec![i as u8; i * 7919 % 5000 + if i.is_multiple_of(97) { 3 * PIECE } else { 0 }])
    }

    #[test]
    fn values_come_back_in_order_and_places_are_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.bins");
        let shelves = Shelves::create("test", &path, 3).unwrap();
        (0..600).for_each(|i| shelves.put(i % 3, &value(i)).unwrap());
        let expected = |shelf: usize| (0..600).filter(move |i| i % 3 == shelf).map(value);
        for shelf in [2, 0, 1] {
            let values: Vec<(usize, Vec<u8>)> = shelves.take(shelf).unwrap();
            assert!(values.into_iter().eq(expected(shelf)));
            assert!(shelves.read::<(usize, Vec<u8>)>(shelf).unwrap().is_empty());
        }
        let size = || std::fs::metadata(&path).unwrap().len();
        let before = size();
        (0..300).for_each(|i| shelves.put(0, &value(i)).unwrap());
        let left = shelves.finish().unwrap();
        assert_eq!((left[0].values, left[1].values, size()), (300, 0, before));

        let again = Shelves::open("test", &path, left.clone()).unwrap();
        assert!(again.read::<(usize, Vec<u8>)>(0).unwrap().into_iter().eq((0..300).map(value)));
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let again = Shelves::open("test", &path, left).unwrap();
        let message = again.read::<(usize, Vec<u8>)>(0).unwrap_err().to_string();
        assert!(message.contains("x.bins is damaged"), "{message}");
    }

    #[test]
    fn little_needs_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let shelves = Shelves::unnamed("test", &folder.path().join("no/such"), 1);
        shelves.put(0, &value(1)).unwrap();
        assert_eq!(shelves.take::<(usize, Vec<u8>)>(0).unwrap(), [value(1)]);
        assert!(shelves.put(0, &value(97)).unwrap_err().to_string().contains("No such file"));
    }
}
