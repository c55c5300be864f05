//! Records of a piece → templates: mates that lie near each other meet here, the others by way of [`Mates`].

use std::path::Path;

use crate::batch::Mate;
use crate::error::{Error, RecordFault};
use crate::packed_read::{PackedRef, Packer};

use super::mates::{self, Mates, Met, Rest, Waiting};
use super::piece::{Piece, Read, Which, check_letters};
use super::tally::Tally;

/// A read, or two that are mates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Template<'a> {
    pub(crate) name: &'a [u8],
    /// Read 1 and read 2, as far as they are there; what has no mate by its flags comes first.
    pub(crate) mates: [Option<Mate<'a>>; 2],
}

/// Where a read of a template is.
#[derive(Debug, Clone, Copy)]
enum At {
    Nowhere,
    /// Number of the read in the piece.
    Piece(u32),
    /// Bytes of those that have waited.
    Waited(u32, u32),
}

/// A template, complete with a read of the piece.
#[derive(Debug, Clone, Copy)]
struct Done {
    /// The number of that read.
    last: u32,
    mates: [At; 2],
}

/// A read whose mate is not in the piece.
#[derive(Debug, Clone, Copy)]
struct Left {
    hash: u64,
    read: u32,
    /// Its bytes in `packed`.
    from: u32,
    to: u32,
}

/// What a thread pairs with; it keeps its memory.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    /// By hashes of names: numbers of reads, from 1, whose mates have not come.
    slots: Vec<u32>,
    hashes: Vec<u64>,
    met: Vec<bool>,
    done: Vec<Done>,
    left: Vec<Left>,
    packed: Vec<u8>,
    found: Vec<u8>,
    packer: Packer,
    letters: Letters,
}

/// The letters of a template.
#[derive(Debug, Default)]
struct Letters([[Vec<u8>; 2]; 2]);

impl Letters {
    /// The bases and qualities of a read that has waited.
    fn unpack(&mut self, i: usize, read: &Waiting<'_>) {
        let [seq, qual] = &mut self.0[i];
        // It was packed here, and has its sum if it was on the disk.
        let packed = PackedRef::of(read.read).expect("a read as it was packed");
        packed.bases_into(seq);
        packed.quals_into(qual);
        if read.plain {
            qual.clear();
        }
    }

    fn mates(&self, there: [bool; 2]) -> [Option<Mate<'_>>; 2] {
        let mate = |i: usize| there[i].then(|| Mate { seq: &self.0[i][0], qual: &self.0[i][1] });
        [mate(0), mate(1)]
    }
}

impl Pairing {
    /// Hands on the templates that are complete with the reads of a piece, in the order of the last one of each. With no `mates` each read is one.
    ///
    /// # Errors
    /// Two reads that are the same of one template; bases that are none; the disk has no room for those that wait; and those of `each`.
    pub(super) fn pair<E: From<Error>>(
        &mut self,
        piece: &Piece,
        path: &Path,
        mates: Option<&Mates>,
        mut each: impl FnMut(Template<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.done.clear();
        self.left.clear();
        match mates {
            Some(mates) => self.match_up(piece, path, mates)?,
            None => {
                let one = |i: u32| Done { last: i, mates: [At::Piece(i), At::Nowhere] };
                self.done.extend((0..piece.reads.len() as u32).map(one));
            }
        }
        let Pairing { done, found, letters, .. } = self;
        for Done { last, mates } in done.iter() {
            for (i, at) in mates.iter().enumerate() {
                match *at {
                    At::Nowhere => {}
                    At::Piece(read) => {
                        let read = &piece.reads[read as usize];
                        let [seq, qual] = &mut letters.0[i];
                        piece.letters(read, seq, qual);
                        check_letters(seq).map_err(|fault| piece.fault(read, path, fault))?;
                    }
                    At::Waited(from, to) => {
                        letters.unpack(i, &Waiting::of(&found[from as usize..to as usize]));
                    }
                }
            }
            let there = mates.map(|at| !matches!(at, At::Nowhere));
            let name = piece.name(&piece.reads[*last as usize]);
            each(Template { name, mates: letters.mates(there) })?;
        }
        Ok(())
    }

    fn match_up(&mut self, piece: &Piece, path: &Path, mates: &Mates) -> Result<(), Error> {
        self.within(piece, path)?;
        if self.left.is_empty() {
            return Ok(());
        }
        self.with_others(piece, path, mates)?;
        // Those that lie in the piece are in order, those that have waited come behind them.
        self.done.sort_unstable_by_key(|done| done.last);
        Ok(mates.keep_room()?)
    }

    /// Finds mates within the piece.
    fn within(&mut self, piece: &Piece, path: &Path) -> Result<(), Error> {
        let reads = &piece.reads;
        let slots = (2 * reads.len()).next_power_of_two();
        self.slots.clear();
        self.slots.resize(slots, 0);
        self.hashes.clear();
        self.met.clear();
        self.met.resize(reads.len(), false);
        for (i, read) in reads.iter().enumerate() {
            if read.which == Which::Alone {
                self.hashes.push(0);
                self.met[i] = true;
                self.done.push(Done { last: i as u32, mates: [At::Piece(i as u32), At::Nowhere] });
                continue;
            }
            let name = piece.name(read);
            let hash = mates::hash(name);
            self.hashes.push(hash);
            let mut slot = hash as usize & (slots - 1);
            loop {
                let Some(there) = (self.slots[slot] as usize).checked_sub(1) else {
                    self.slots[slot] = i as u32 + 1;
                    break;
                };
                let other = &reads[there];
                if !self.met[there] && self.hashes[there] == hash && piece.name(other) == name {
                    if other.which == read.which {
                        return Err(same_mate(piece, read, path));
                    }
                    (self.met[there], self.met[i]) = (true, true);
                    let (one, two) = if read.which == Which::First { (i, there) } else { (there, i) };
                    let mates = [At::Piece(one as u32), At::Piece(two as u32)];
                    self.done.push(Done { last: i as u32, mates });
                    break;
                }
                slot = (slot + 1) & (slots - 1);
            }
        }
        let Pairing { left, hashes, met, .. } = self;
        let alone = (0..reads.len() as u32).filter(|&i| !met[i as usize]);
        left.extend(alone.map(|read| Left { hash: hashes[read as usize], read, from: 0, to: 0 }));
        Ok(())
    }

    /// Shows the others to those of other pieces.
    fn with_others(&mut self, piece: &Piece, path: &Path, mates: &Mates) -> Result<(), Error> {
        let Pairing { done, left, packed, found, packer, letters: Letters([[seq, qual], _]), .. } = self;
        packed.clear();
        found.clear();
        for left in left.iter_mut() {
            let read = &piece.reads[left.read as usize];
            left.from = packed.len() as u32;
            Waiting::begin(read.which, read.plain, piece.name(read), packed);
            piece.letters(read, seq, qual);
            check_letters(seq).map_err(|fault| piece.fault(read, path, fault))?;
            // As many qualities as bases, whatever they are.
            qual.resize(seq.len(), b'!');
            packer.pack(seq, qual, packed);
            left.to = packed.len() as u32;
        }
        // Those of a shard together, which takes one lock each.
        left.sort_unstable_by_key(|left| (mates::shard(left.hash), left.read));
        let mut same = None;
        for of_shard in left.chunk_by(|a, b| mates::shard(a.hash) == mates::shard(b.hash)) {
            let reads =
                of_shard.iter().map(|left| (left.hash, &packed[left.from as usize..left.to as usize]));
            mates.meet(mates::shard(of_shard[0].hash), reads, found, |i, met| {
                let last = of_shard[i].read;
                match met {
                    Met::Mate(at) => {
                        let (here, there) = (At::Piece(last), At::Waited(at.start as u32, at.end as u32));
                        let first = piece.reads[last as usize].which == Which::First;
                        done.push(Done { last, mates: if first { [here, there] } else { [there, here] } });
                    }
                    Met::Waits => {}
                    Met::Same => same = Some(last),
                }
            });
        }
        same.map_or(Ok(()), |read| Err(same_mate(piece, &piece.reads[read as usize], path)))
    }

    /// Hands on up to `most` of those that waited to the end; false when there are none left.
    ///
    /// # Errors
    /// Those of `each`.
    pub(super) fn rest<E>(
        &mut self,
        rest: &mut Rest,
        most: usize,
        tally: &mut Tally,
        mut each: impl FnMut(Template<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        for _ in 0..most {
            let Some(both) = rest.next() else { return Ok(false) };
            for (i, read) in both.iter().enumerate() {
                if let Some(read) = read {
                    self.letters.unpack(i, read);
                }
            }
            let name = both.iter().flatten().next().map_or(&b""[..], |read| read.name);
            if both.iter().any(Option::is_none) {
                tally.lost.count(name);
            }
            each(Template { name, mates: self.letters.mates(both.map(|read| read.is_some())) })?;
        }
        Ok(true)
    }
}

fn same_mate(piece: &Piece, read: &Read, path: &Path) -> Error {
    let name = String::from_utf8_lossy(piece.name(read)).into_owned();
    let number = if read.which == Which::First { '1' } else { '2' };
    piece.fault(read, path, RecordFault::SameRead { name, number })
}
