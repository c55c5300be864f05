//! The index: the reference at two bits a base, and where its seeds are.
//!
//! A seed ([`crate::syncmers`]) is looked up by one cache line, its *bucket*: twelve slots, each a tag of the seed's hash and a place. A seed that
//! stands at more than three places has one slot, which says where its *list* begins: how many places on each strand, and the places. Tags
//! are short, so a slot may be another seed's: who looks compares the bases.
//!
//! ```text
//!  hash  8 bits: partition | where in it: bucket | tag (7 bits)
//!
//!  bucket, 64 bytes:  12 tags of one byte | which slots are lists, how many slots, whether the next bucket has more | 12 places of 4 bytes
//!  list:              places on the strand whose k-mer was hashed: how many, on the other one: how many, then both, each in order
//! ```
//!
//! Places have 32 bits. Of a longer reference one bit more stands in the tag, which leaves it six, and a list has two counts for each strand; from 8.6 Gbp
//! on, to 17, two, five and four.
//!
//! An index is one run of bytes ([`Index::new`]), the same in a file and in memory: about 1.1 bytes a base.

mod build;

use std::ops::{Deref, Range};

use bytemuck::{Pod, Zeroable};

use crate::bases::{WORD, base};

pub use build::{Built, build};

/// Bases before the first sequence and behind the last: no window round a read leaves the words.
pub const EDGE: u64 = 4096;
/// Bases between two sequences at least.
pub(crate) const BETWEEN: u64 = 64;
/// Slots of a bucket.
const SLOTS: usize = 12;
/// Parts that hashes are divided into by their first bits, each with buckets of its own.
const PARTITIONS: u64 = 256;
/// Buckets at the end of a partition that only take what does not fit into those before.
const SPARE: u64 = 16;
/// Places of a seed that have slots of their own.
const OWN_SLOTS: usize = 3;
/// What an index begins with; the last number is that of the format.
const MAGIC: [u8; 8] = *b"genuma\x00\x01";
/// Sections begin at multiples of it (bytes).
const ALIGNED: usize = 4096;

/// Twelve seeds.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u8; SLOTS],
    /// Which slots are lists (12 bits), how many slots there are (4), whether the next bucket has more of them (1).
    about: u32,
    places: [u32; SLOTS],
}

const COUNT_SHIFT: u32 = 12;
const MORE: u32 = 1 << 16;

/// A sequence of the reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contig {
    /// Its name.
    pub name: String,
    /// Where its first base is among the packed ones.
    pub start: u64,
    /// Its length (bp).
    pub length: u64,
}

impl Contig {
    /// The packed base behind its last one.
    pub fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// Why bytes are no index.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// They begin otherwise.
    #[error("not an index of genuma")]
    Other,
    /// They are an index of another version of it.
    #[error("an index of another version of genuma")]
    Version,
    /// They do not fit together.
    #[error("cut short or damaged")]
    Damaged,
    /// The reference has no room in one.
    #[error("a reference of {0} bases is too long: 17,000,000,000 are the most")]
    TooLong(u64),
    /// There were too many seeds in one place; does not happen with real sequence.
    #[error("too many seeds have hashes that are alike")]
    Crowded,
}

/// An index over bytes that somebody holds.
#[derive(Debug)]
pub struct Index<M> {
    bytes: M,
    contigs: Vec<Contig>,
    /// Which sequences are ALT contigs, and where the first one begins: beyond all bases where there is none.
    alt: Vec<bool>,
    first_alt: u64,
    /// The first sequence that ends behind each stretch of 65,536 packed bases.
    coarse: Vec<u32>,
    /// Packed bases that are none of the four in the reference, in order.
    holes: Vec<Range<u64>>,
    head: Head,
    words: Range<usize>,
    buckets: Range<usize>,
    lists: Range<usize>,
}

/// The numbers that an index begins with, behind [`MAGIC`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Head {
    contigs: u64,
    /// Bytes of all names, each with its NUL.
    names: u64,
    holes: u64,
    words: u64,
    /// Buckets of a partition, without the spare ones.
    buckets: u64,
    lists: u64,
    /// Bits of a place beyond 32.
    wide: u64,
}

impl Head {
    /// Where the sections lie: contigs, names, holes, words, buckets, lists; and how many bytes there are. None if that is beyond all memory.
    fn laid(&self) -> Option<([Range<usize>; 6], usize)> {
        let buckets = self.buckets.checked_add(SPARE)?.checked_mul(PARTITIONS)?;
        let sections = [
            (self.contigs, 16, 8),
            (self.names, 1, 8),
            (self.holes, 16, 8),
            (self.words, 8, ALIGNED),
            (buckets, 64, ALIGNED),
            (self.lists, 4, ALIGNED),
        ];
        let mut end = MAGIC.len() + size_of::<Head>();
        let mut ranges = [const { 0..0 }; 6];
        for (range, (items, size, aligned)) in ranges.iter_mut().zip(sections) {
            let start = end.checked_next_multiple_of(aligned)?;
            end = start.checked_add(usize::try_from(items.checked_mul(size)?).ok()?)?;
            *range = start..end;
        }
        Some((ranges, end))
    }
}

impl<M: Deref<Target = [u8]>> Index<M> {
    /// An index in `bytes`, which begin at a multiple of 64.
    ///
    /// # Errors
    /// They are none, or not one of this version, or end early. That the rest is as it was written is for a sum to tell.
    pub fn new(bytes: M) -> Result<Self, Error> {
        let numbers = MAGIC.len() + size_of::<Head>();
        let Some(begin) = bytes.get(..numbers) else { return Err(Error::Other) };
        if begin[..7] != MAGIC[..7] {
            return Err(Error::Other);
        }
        if begin[7] != MAGIC[7] {
            return Err(Error::Version);
        }
        let head: Head = bytemuck::pod_read_unaligned(&begin[MAGIC.len()..]);
        let ([contigs, names, holes, words, buckets, lists], end) = head.laid().ok_or(Error::Damaged)?;
        if bytes.len() != end || head.wide > 2 || head.contigs == 0 || head.buckets == 0 {
            return Err(Error::Damaged);
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let bases = head.words * WORD as u64;
        let mut all: Vec<Contig> = Vec::new();
        let mut texts = bytes[names].split(|&b| b == 0);
        for at in contigs.step_by(16) {
            let name = texts.next().ok_or(Error::Damaged)?;
            let name = String::from_utf8(name.to_vec()).map_err(|_| Error::Damaged)?;
            let contig = Contig { name, start: number(at), length: number(at + 8) };
            let before = all.last().map_or(EDGE, |last| last.end() + BETWEEN);
            let end = contig.start.checked_add(contig.length).and_then(|end| end.checked_add(EDGE));
            if contig.start < before || contig.length == 0 || end.is_none_or(|end| end > bases) {
                return Err(Error::Damaged);
            }
            all.push(contig);
        }
        let holes: Vec<Range<u64>> = holes.step_by(16).map(|at| number(at)..number(at + 8)).collect();
        if !holes.is_sorted_by(|a, b| a.end <= b.start) || holes.iter().any(|hole| hole.is_empty()) {
            return Err(Error::Damaged);
        }
        let mut coarse = Vec::new();
        for stretch in 0..=(bases >> 16) {
            let from = coarse.last().map_or(0, |&n| n as usize);
            let further = all[from..].iter().take_while(|contig| contig.end() <= stretch << 16).count();
            coarse.push((from + further).min(all.len() - 1) as u32);
        }
        Ok(Index {
            bytes,
            contigs: all,
            alt: Vec::new(),
            first_alt: u64::MAX,
            coarse,
            holes,
            head,
            words,
            buckets,
            lists,
        })
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The large arrays: bases, buckets, lists.
    pub fn arrays(&self) -> [(&'static str, &[u8]); 3] {
        let of = |range: &Range<usize>| &self.bytes[range.clone()];
        [("bases", of(&self.words)), ("buckets", of(&self.buckets)), ("lists", of(&self.lists))]
    }

    /// The sequences.
    pub fn contigs(&self) -> &[Contig] {
        &self.contigs
    }

    /// Says which sequences are ALT contigs: other forms of a part of the primary assembly. The file of an index does not tell.
    pub fn set_alt(&mut self, is_alt: impl FnMut(&Contig) -> bool) {
        self.alt = self.contigs.iter().map(is_alt).collect();
        let first = self.alt.iter().position(|&alt| alt);
        self.first_alt = first.map_or(u64::MAX, |first| self.contigs[first].start);
    }

    /// The arrays as what they are.
    pub fn view(&self) -> View<'_> {
        View {
            words: bytemuck::cast_slice(&self.bytes[self.words.clone()]),
            buckets: bytemuck::cast_slice(&self.bytes[self.buckets.clone()]),
            lists: bytemuck::cast_slice(&self.bytes[self.lists.clone()]),
            contigs: &self.contigs,
            alt: &self.alt,
            first_alt: self.first_alt,
            coarse: &self.coarse,
            holes: &self.holes,
            each: self.head.buckets,
            wide: self.head.wide as u32,
        }
    }
}

/// Where a seed is to be looked up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Address {
    bucket: u32,
    /// The hash's tag, as it stands in a slot but for strand and high bits.
    tag: u8,
}

/// An index, ready to be used.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// All bases.
    pub words: &'a [u64],
    buckets: &'a [Bucket],
    lists: &'a [u32],
    /// The sequences.
    pub contigs: &'a [Contig],
    alt: &'a [bool],
    first_alt: u64,
    coarse: &'a [u32],
    /// Packed bases that are none of the four in the reference, in order.
    pub holes: &'a [Range<u64>],
    each: u64,
    wide: u32,
}

/// What a slot says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The seed stands there (packed bases), its reverse complement was hashed or not.
    Place(u64, bool),
    /// There is a list.
    List(u32),
}

/// Where in the index a hash belongs: its partition, its bucket there, and its tag.
#[inline(always)]
fn belongs(hash: u64, each: u64, wide: u32) -> (u64, u64, u8) {
    let bucket = ((hash << 8 >> 32) * each) >> 32;
    (hash >> 56, bucket, (hash >> 3) as u8 & (0x7f >> wide))
}

impl<'a> View<'a> {
    /// Where the seed of a hash is looked up.
    #[inline(always)]
    pub fn address(&self, hash: u64) -> Address {
        let (partition, bucket, tag) = belongs(hash, self.each, self.wide);
        Address { bucket: (partition * (self.each + SPARE) + bucket) as u32, tag }
    }

    /// Asks for the bucket.
    #[inline(always)]
    pub fn prefetch(&self, address: Address) {
        genuma_machine::processor::prefetch(&self.buckets[address.bucket as usize]);
    }

    /// Hands what the slots say that may be the seed's to `each`.
    #[inline(always)]
    pub fn slots(&self, address: Address, mut each: impl FnMut(Slot)) {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let wanted = u64::from(address.tag) * ONES;
        let compared = u64::from(0x7fu8 >> self.wide) * ONES;
        let mut at = address.bucket as usize;
        loop {
            let bucket = &self.buckets[at];
            let count = bucket.about >> COUNT_SHIFT & 15;
            let (low, high) = bucket.tags.split_first_chunk::<8>().expect("twelve tags");
            let high: [u8; 4] = high.try_into().expect("four tags");
            let equal = |tags: u64| {
                let other = (tags ^ wanted) & compared;
                !(other + 0x7f7f_7f7f_7f7f_7f7f) & (ONES << 7)
            };
            // One bit a slot, eight apart.
            let (low, high) = (equal(u64::from_le_bytes(*low)), equal(u64::from(u32::from_le_bytes(high))));
            for (mut found, first) in [(low, 0), (high & 0x8080_8080, 8)] {
                while found != 0 {
                    let slot = first + found.trailing_zeros() as usize / 8;
                    found &= found - 1;
                    if slot >= count as usize {
                        break;
                    }
                    let place = bucket.places[slot];
                    each(if bucket.about >> slot & 1 == 1 {
                        Slot::List(place)
                    } else {
                        let tag = bucket.tags[slot];
                        let high = u64::from(tag & 0x7f) >> (7 - self.wide);
                        Slot::Place(high << 32 | u64::from(place), tag >> 7 == 1)
                    });
                }
            }
            at += 1;
            if bucket.about & MORE == 0 || at == self.buckets.len() {
                return;
            }
        }
    }

    /// The list that begins there; an empty one if there is none.
    #[inline(always)]
    pub fn list(&self, at: u32) -> List<'a> {
        let counts = 2usize << self.wide;
        let from = self.lists.get(at as usize..).unwrap_or_default();
        let (counts, places) = from.split_at_checked(counts).unwrap_or_default();
        List { counts, places }
    }

    /// Asks for the beginning of a list.
    #[inline(always)]
    pub(crate) fn prefetch_list(&self, at: u32) {
        if let Some(first) = self.lists.get(at as usize) {
            genuma_machine::processor::prefetch(first);
        }
    }

    /// Asks for `length` bases from a place on: those of a read, two lines of memory at most.
    #[inline(always)]
    pub(crate) fn prefetch_bases(&self, at: u64, length: usize) {
        let last = (at as usize + length) / WORD;
        if let (Some(one), Some(two)) = (self.words.get(at as usize / WORD), self.words.get(last)) {
            genuma_machine::processor::prefetch(one);
            // Asking again for what is under way is not free.
            if !genuma_machine::processor::in_one_line(one, two) {
                genuma_machine::processor::prefetch(two);
            }
        }
    }

    /// Number of the sequence that has the packed base `at`, or of the next one, or of the last.
    #[inline(always)]
    pub fn contig_at(&self, at: u64) -> usize {
        let mut number = self.coarse.get((at >> 16) as usize).map_or(self.contigs.len() - 1, |&n| n as usize);
        while number + 1 < self.contigs.len() && self.contigs[number].end() <= at {
            number += 1;
        }
        number
    }

    /// Whether the sequence that has the packed base `at` is an ALT contig.
    #[inline(always)]
    pub fn is_alt(&self, at: u64) -> bool {
        at >= self.first_alt && self.alt[self.contig_at(at)]
    }

    /// Whether there are ALT contigs.
    #[inline(always)]
    pub(crate) fn has_alt(&self) -> bool {
        self.first_alt != u64::MAX
    }

    /// The packed bases that a window may have: of the sequence that has base `at`.
    #[inline(always)]
    pub fn bounds(&self, at: u64) -> Range<u64> {
        let contig = &self.contigs[self.contig_at(at)];
        contig.start..contig.end()
    }

    /// The holes that overlap some packed bases.
    pub fn holes_in(&self, range: Range<u64>) -> &'a [Range<u64>] {
        let from = self.holes.partition_point(|hole| hole.end <= range.start);
        let count = self.holes[from..].iter().take_while(|hole| hole.start < range.end).count();
        &self.holes[from..from + count]
    }

    /// The code of a packed base.
    #[inline(always)]
    pub fn base(&self, at: u64) -> u8 {
        base(self.words, at as usize)
    }
}

/// Places of a seed that has many.
#[derive(Debug, Clone, Copy)]
pub struct List<'a> {
    counts: &'a [u32],
    places: &'a [u32],
}

impl<'a> List<'a> {
    /// How many there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.counts.iter().map(|&n| n as usize).sum::<usize>().min(self.places.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those where the k-mer was hashed (packed bases), or those where its reverse complement was, in order.
    #[inline(always)]
    pub fn on(&self, reverse: bool) -> impl Iterator<Item = u64> + Clone + use<'a> {
        let half = self.counts.len() / 2;
        let first = if reverse { half } else { 0 };
        let skipped: usize = self.counts[..first].iter().map(|&n| n as usize).sum();
        let mut places = self.places.get(skipped..).unwrap_or_default();
        self.counts[first..first + half].iter().enumerate().flat_map(move |(high, &n)| {
            let (these, others) = places.split_at(places.len().min(n as usize));
            places = others;
            these.iter().map(move |&place| (high as u64) << 32 | u64::from(place))
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
