//! Reads that wait for their mates: in memory, packed, up to a bound; what has no room there goes to the disk, in parts by a hash of the name, and is brought
//! together when all has been read. So a file may have mates anywhere: near ones meet in memory, far ones on the disk.
//!
//! ```text
//! a read: 0 or 1 for read 1 or read 2, and 2 more if it has no qualities; bytes of its name; the name; the read, packed
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use genuma_work::spill::{Error, Piece, Spill};
use twox_hash::XxHash3_64;

use super::piece::Which;

/// Bytes of waiting reads that are held in memory for a file: those of 50,000 reads of 150 bases.
pub(super) const ROOM: u64 = 8 << 20;
/// Bytes that a read takes there beside its own.
const EACH: u64 = 48;
/// Parts that have a lock each.
const SHARDS: usize = 16;
/// Bytes of a file for each part on the disk, and such parts at least and at most: each is in memory as a whole once. A file of 100 GB whose mates are nowhere
/// near each other has parts of 200 MB.
const PART: u64 = 64 << 20;
const PARTS: [u64; 2] = [SHARDS as u64, 512];

/// Where a read's bytes are among others.
type Place = Range<usize>;

/// Hashes are hashed already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// By which mates meet.
pub(super) fn hash(name: &[u8]) -> u64 {
    XxHash3_64::oneshot(name)
}

/// Which of `n` parts a hash is in; larger hashes are in later ones.
fn part(hash: u64, n: usize) -> usize {
    ((u128::from(hash) * n as u128) >> 64) as usize
}

/// Which shard a hash is in.
pub(super) fn shard(hash: u64) -> usize {
    part(hash, SHARDS)
}

/// A waiting read, where it lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting<'a> {
    pub(super) which: Which,
    /// Without qualities.
    pub(super) plain: bool,
    pub(super) name: &'a [u8],
    /// Packed.
    pub(super) read: &'a [u8],
}

impl<'a> Waiting<'a> {
    /// Begins the bytes of a read; the packed read is to follow.
    pub(super) fn begin(which: Which, plain: bool, name: &[u8], out: &mut Vec<u8>) {
        out.push(u8::from(which == Which::Second) | u8::from(plain) << 1);
        // A SAM record has no name that is longer.
        out.push(name.len() as u8);
        out.extend_from_slice(name);
    }

    /// Of a read's bytes, which were made here or have the sum of such.
    pub(super) fn of(bytes: &'a [u8]) -> Waiting<'a> {
        let (name, read) = bytes[2..].split_at(usize::from(bytes[1]));
        let which = if bytes[0] & 1 == 0 { Which::First } else { Which::Second };
        Waiting { which, plain: bytes[0] & 2 != 0, name, read }
    }
}

/// How a read fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Met {
    /// Its mate had waited, and now lies here.
    Mate(Place),
    /// It waits.
    Waits,
    /// One of the same name waits that is the same read of its template.
    Same,
}

/// Reads of one file that wait.
pub(super) struct Mates {
    shards: [Mutex<Shard>; SHARDS],
    /// Bytes in memory, and how many there may be.
    held: AtomicU64,
    room: u64,
    spill: Spill,
    /// What lies where on the disk, by parts.
    parts: Mutex<Vec<Vec<Piece>>>,
}

#[derive(Default)]
struct Shard {
    bytes: Vec<u8>,
    /// By the hash of the name.
    waiting: HashMap<u64, Place, BuildHasherDefault<AsIs>>,
    /// Reads whose hash another name has.
    aside: Vec<Place>,
    /// Bytes of `bytes` that nobody waits in any more.
    dead: usize,
}

impl Mates {
    /// Of a file of so many bytes; what has no room goes to `folder`.
    pub(super) fn new(file_bytes: u64, room: u64, folder: &Path) -> Mates {
        let parts = (file_bytes / PART).clamp(PARTS[0], PARTS[1]) as usize;
        Mates {
            shards: Default::default(),
            held: AtomicU64::new(0),
            room,
            spill: Spill::unnamed("waiting mates'", folder),
            parts: Mutex::new(vec![Vec::new(); parts]),
        }
    }

    /// Shows reads, all of one shard, each with the hash of its name, to those that wait. `met` is told of each by its number; the bytes of mates that are found are
    /// put behind `found`.
    pub(super) fn meet<'a>(
        &self,
        shard: usize,
        reads: impl Iterator<Item = (u64, &'a [u8])>,
        found: &mut Vec<u8>,
        mut met: impl FnMut(usize, Met),
    ) {
        let mut shard = lock(&self.shards[shard]);
        let (mut more, mut less) = (0, 0);
        for (i, (hash, bytes)) in reads.enumerate() {
            let how = shard.meet(hash, bytes, found);
            match &how {
                Met::Waits => more += bytes.len() as u64 + EACH,
                Met::Mate(place) => less += place.len() as u64 + EACH,
                Met::Same => {}
            }
            met(i, how);
        }
        self.held.fetch_add(more, Relaxed);
        self.held.fetch_sub(less, Relaxed);
    }

    /// Sees that what waits in memory has room there. To be called when no shard is held.
    ///
    /// # Errors
    /// The disk has no room.
    pub(super) fn keep_room(&self) -> Result<(), Error> {
        if self.held.load(Relaxed) <= self.room {
            return Ok(());
        }
        // Others may have made room meanwhile.
        let mut parts = lock(&self.parts);
        if self.held.load(Relaxed) > self.room { self.put_away(&mut parts) } else { Ok(()) }
    }

    /// Puts all that waits on the disk.
    fn put_away(&self, parts: &mut [Vec<Piece>]) -> Result<(), Error> {
        let (mut out, n) = (Vec::new(), parts.len());
        for shard in &self.shards {
            let away = std::mem::take(&mut *lock(shard));
            let all = away.in_order();
            let bytes: u64 = all.iter().map(|(_, place)| place.len() as u64 + EACH).sum();
            self.held.fetch_sub(bytes, Relaxed);
            for same in all.chunk_by(|a, b| part(a.0, n) == part(b.0, n)) {
                out.clear();
                for (_, place) in same {
                    out.extend((place.len() as u32).to_le_bytes());
                    out.extend_from_slice(&away.bytes[place.clone()]);
                }
                parts[part(same[0].0, n)].push(self.spill.write(&out, out.len())?);
            }
        }
        Ok(())
    }

    /// Makes what still waits ready to be taken, when all reads were shown, and says in how many parts that is.
    ///
    /// # Errors
    /// The disk has no room.
    pub(super) fn settle(&self) -> Result<usize, Error> {
        let mut parts = lock(&self.parts);
        if parts.iter().all(Vec::is_empty) {
            return Ok(SHARDS);
        }
        self.put_away(&mut parts)?;
        Ok(parts.len())
    }

    /// Takes what waits in a part of those that [`Mates::settle`] has told of.
    ///
    /// # Errors
    /// The disk refuses.
    pub(super) fn take(&self, number: usize) -> Result<Rest, Error> {
        let pieces = std::mem::take(&mut lock(&self.parts)[number]);
        let mut rest = Rest::default();
        if pieces.is_empty() {
            // Nothing was put away, or nothing of this part.
            if let Some(shard) = self.shards.get(number) {
                let shard = std::mem::take(&mut *lock(shard));
                rest.places = shard.in_order().into_iter().map(|(_, place)| place).collect();
                rest.bytes = shard.bytes;
            }
        }
        let mut bytes = Vec::new();
        for piece in pieces {
            self.spill.read(&piece, &mut bytes)?;
            let (mut at, start) = (0, rest.bytes.len());
            while let Some(length) = bytes[at..].first_chunk() {
                let from = at + 4;
                at = from + u32::from_le_bytes(*length) as usize;
                rest.places.push(start + from..start + at);
            }
            rest.bytes.extend_from_slice(&bytes);
            self.spill.give_back(piece);
        }
        let Rest { bytes, places, .. } = &mut rest;
        let key = |place: &Place| {
            let read = Waiting::of(&bytes[place.clone()]);
            (read.name, read.which)
        };
        places.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        Ok(rest)
    }
}

impl Shard {
    fn meet(&mut self, hash: u64, bytes: &[u8], found: &mut Vec<u8>) -> Met {
        let read = Waiting::of(bytes);
        let Some(place) = self.waiting.get(&hash) else {
            let place = self.put(bytes);
            self.waiting.insert(hash, place);
            return Met::Waits;
        };
        let there = Waiting::of(&self.bytes[place.clone()]);
        if there.name != read.name {
            // They meet when all is read.
            let place = self.put(bytes);
            self.aside.push(place);
            return Met::Waits;
        }
        if there.which == read.which {
            return Met::Same;
        }
        let start = found.len();
        found.extend_from_slice(&self.bytes[place.clone()]);
        self.dead += place.len();
        self.waiting.remove(&hash);
        self.make_room();
        Met::Mate(start..found.len())
    }

    fn put(&mut self, bytes: &[u8]) -> Place {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Closes ranks when most of the bytes are dead.
    fn make_room(&mut self) {
        if self.waiting.is_empty() && self.aside.is_empty() {
            self.bytes.clear();
            self.dead = 0;
        } else if self.dead > (64 << 10).max(self.bytes.len() / 2) {
            let mut bytes = Vec::with_capacity(self.bytes.len() - self.dead);
            for place in self.waiting.values_mut().chain(&mut self.aside) {
                let start = bytes.len();
                bytes.extend_from_slice(&self.bytes[place.clone()]);
                *place = start..bytes.len();
            }
            (self.bytes, self.dead) = (bytes, 0);
        }
    }

    /// All that waits, by hashes.
    fn in_order(&self) -> Vec<(u64, Place)> {
        let aside = self.aside.iter().map(|place| {
            let name = Waiting::of(&self.bytes[place.clone()]).name;
            (hash(name), place.clone())
        });
        let waiting = self.waiting.iter().map(|(&hash, place)| (hash, place.clone()));
        let mut all: Vec<(u64, Place)> = waiting.chain(aside).collect();
        all.sort_unstable_by_key(|(hash, place)| (*hash, place.start));
        all
    }
}

/// Reads that waited until all was read, by their names.
#[derive(Debug, Default)]
pub(super) struct Rest {
    bytes: Vec<u8>,
    places: Vec<Place>,
    next: usize,
}

impl Rest {
    /// The next read, and its mate if that is there too.
    pub(super) fn next(&mut self) -> Option<[Option<Waiting<'_>>; 2]> {
        let read = |i: usize| Some(Waiting::of(&self.bytes[self.places.get(i)?.clone()]));
        let (one, two) = (read(self.next)?, read(self.next + 1));
        let two = two.filter(|two| two.name == one.name && two.which != one.which);
        self.next += 1 + usize::from(two.is_some());
        Some(match one.which {
            Which::Second => [None, Some(one)],
            _ => [Some(one), two],
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked in here takes the whole run down anyway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(name: &str, which: Which) -> Vec<u8> {
        let mut bytes = Vec::new();
        Waiting::begin(which, false, name.as_bytes(), &mut bytes);
        bytes.extend(name.bytes());
        bytes
    }

    /// Shows reads to those that wait, and what came of each.
    fn meet(mates: &Mates, hash: u64, bytes: &[u8]) -> (Met, Vec<u8>) {
        let (mut found, mut how) = (Vec::new(), Met::Waits);
        mates.meet(shard(hash), [(hash, bytes)].into_iter(), &mut found, |_, met| how = met);
        mates.keep_room().unwrap();
        (how, found)
    }

    #[test]
    fn mates_meet_wherever_they_wait() {
        let folder = tempfile::tempdir().unwrap();
        for (room, file) in [(u64::MAX, 0), (2_000, 0), (0, 64 << 30)] {
            let mates = Mates::new(file, room, folder.path());
            let names: Vec<String> = (0..500).map(|i| format!("read{i}")).collect();
            let mut together = 0;
            let mut show = |name: &String, which| {
                let (how, found) = meet(&mates, hash(name.as_bytes()), &bytes(name, which));
                assert_ne!(how, Met::Same);
                if let Met::Mate(place) = how {
                    assert_eq!(Waiting::of(&found[place]).name, name.as_bytes());
                    together += 1;
                }
            };
            names.iter().for_each(|name| show(name, Which::Second));
            // The last hundred have no mate.
            names[..400].iter().rev().for_each(|name| show(name, Which::First));
            let mut lost = Vec::new();
            for part in 0..mates.settle().unwrap() {
                let mut rest = mates.take(part).unwrap();
                while let Some(pair) = rest.next() {
                    match pair {
                        [Some(one), Some(two)] => {
                            assert_eq!((one.name, one.read), (two.name, two.read));
                            together += 1;
                        }
                        [None, Some(two)] => lost.push(String::from_utf8(two.name.to_vec()).unwrap()),
                        other => panic!("{other:?}"),
                    }
                }
            }
            lost.sort_by_key(|name| name[4..].parse::<u32>().unwrap());
            assert_eq!((together, &lost[..]), (400, &names[400..]), "{room}");
            assert_eq!(mates.spill.written() > 0, room < u64::MAX);
        }
    }

    #[test]
    fn names_of_one_hash_are_not_taken_for_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let mates = Mates::new(0, u64::MAX, folder.path());
        // Both are shown with the hash of the first.
        let same = hash(b"a");
        assert_eq!(meet(&mates, same, &bytes("a", Which::First)).0, Met::Waits);
        assert_eq!(meet(&mates, same, &bytes("b", Which::Second)).0, Met::Waits);
        assert_eq!(meet(&mates, same, &bytes("a", Which::First)).0, Met::Same);
        let (how, found) = meet(&mates, same, &bytes("a", Which::Second));
        assert_eq!((how, found), (Met::Mate(0..4), bytes("a", Which::First)));
        let mut rest = (0..mates.settle().unwrap()).map(|part| mates.take(part).unwrap());
        assert!(rest.any(|mut rest| rest.next().is_some_and(|pair| pair[1].unwrap().name == b"b")));
    }
}
