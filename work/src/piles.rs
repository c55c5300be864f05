//! Piles: values that are worked on pile by pile, in memory as long as there is room, and beyond that on [shelves](crate::shelves) in a
//! file. Who puts values there and takes them need not know which.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::shelves::Shelves;
use crate::spill::Error;

/// Bytes of memory that are left; piles may share them.
#[derive(Debug, Clone)]
pub struct Room(Arc<AtomicU64>);

impl Room {
    /// So many bytes.
    pub fn of(bytes: u64) -> Room {
        Room(Arc::new(AtomicU64::new(bytes)))
    }

    /// Takes some, if there are so many.
    fn take(&self, bytes: u64) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }
}

/// What of a pile is in memory.
#[derive(Debug)]
struct Pile<T> {
    values: Vec<T>,
    /// Bytes of memory that they take.
    bytes: u64,
}

/// Piles by number, from 0 on.
#[derive(Debug)]
pub struct Piles<T> {
    room: Room,
    piles: Vec<Mutex<Pile<T>>>,
    shelves: Shelves,
}

impl<T: Serialize + DeserializeOwned> Piles<T> {
    /// `number` empty piles. What `room` has no bytes for goes into a file without a name in `folder`; `what` names its kind in messages.
    pub fn new(what: &'static str, folder: &Path, number: usize, room: &Room) -> Piles<T> {
        let empty = |_| Mutex::new(Pile { values: Vec::new(), bytes: 0 });
        let piles = (0..number).map(empty).collect();
        Piles { room: room.clone(), piles, shelves: Shelves::unnamed(what, folder, number) }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.piles.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.piles.is_empty()
    }

    /// Puts a value that takes so many bytes of memory on a pile.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&self, pile: usize, value: T, bytes: u64) -> Result<(), Error> {
        if !self.room.take(bytes) {
            return self.shelves.put(pile, &value);
        }
        let mut pile = self.lock(pile);
        pile.values.push(value);
        pile.bytes += bytes;
        Ok(())
    }

    /// Takes all values of a pile, in no order; it is empty then.
    ///
    /// # Errors
    /// The file cannot be read, or is not as it was written.
    pub fn take(&self, pile: usize) -> Result<Vec<T>, Error> {
        let empty = Pile { values: Vec::new(), bytes: 0 };
        let Pile { mut values, bytes } = std::mem::replace(&mut *self.lock(pile), empty);
        self.room.give_back(bytes);
        values.append(&mut self.shelves.take(pile)?);
        Ok(values)
    }

    fn lock(&self, pile: usize) -> MutexGuard<'_, Pile<T>> {
        // A thread that panicked in here takes the whole run down anyway.
        self.piles[pile].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_what_was_put_wherever_there_was_room() {
        let folder = tempfile::tempdir().unwrap();
        for room in [0, 3_000, 1 << 30] {
            let left = Room::of(room);
            let piles = Piles::new("test", folder.path(), 3, &left);
            let others = Piles::new("test", folder.path(), 2, &left);
            let text = |i: usize| "x".repeat(i % 50);
            (0..300).for_each(|i| piles.put(i % 3, (i, text(i)), 50).unwrap());
            let mut seen = Vec::new();
            for pile in 0..piles.len() {
                for (i, word) in piles.take(pile).unwrap() {
                    assert_eq!((i % 3, &word), (pile, &text(i)));
                    others.put(i % 2, i, 8).unwrap();
                }
                assert_eq!(piles.take(pile).unwrap(), []);
            }
            (0..others.len()).for_each(|pile| seen.append(&mut others.take(pile).unwrap()));
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..300), "{room}");
            // All of it is free again.
            assert_eq!(left.0.load(Relaxed), room);
        }
    }

    #[test]
    fn a_file_is_made_only_where_there_is_no_room() {
        let nowhere = Path::new("/no/such");
        let large = vec![7u8; 2 * crate::shelves::PIECE];
        let piles = Piles::new("test", nowhere, 1, &Room::of(1 << 20));
        piles.put(0, large.clone(), 1 << 20).unwrap();
        assert_eq!(piles.take(0).unwrap(), std::slice::from_ref(&large));
        piles.put(0, large.clone(), 1 << 20).unwrap();
        assert!(piles.put(0, large, 1).unwrap_err().to_string().contains("No such file"));
    }
}
