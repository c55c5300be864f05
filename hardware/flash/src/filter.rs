//! What tells that a key is absent without looking for it: a Bloom filter whose bits of a key are all in one cache line.
//!
//! Blocked Bloom filters: Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", 2007. A block is eight words, and a key
//! has one bit in each.

use std::sync::{Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};
use genuma_machine::placement::{self, Pages, Placed, Placement, Policy};
use genuma_machine::processor::{prefetch, widest};

use crate::hash::{below, hash};

/// Words of a block.
const WORDS: usize = 8;
/// Blocks of a part of a filter: 256 KiB, which a processor's own cache holds beside the keys that are added to it.
const PART: usize = 1 << 12;
/// Keys that wait for a part, for each of its blocks, before they are added: a block that is fetched gets several. Where that fits neither in the memory nor in
/// [`WAITING`] it is one.
const KEYS: usize = 4;
/// Bytes that keys wait in at most where more than one waits for each block.
const WAITING: u64 = 128 << 20;
/// Places between those of one part and of the next: a cache line, so that where parts are written does not fall on the same few sets of a cache.
const GAP: usize = 8;
/// So many keys before its own turn comes a key's block is asked for.
const AHEAD: usize = 64;
/// Bits of a hash that choose a bit of a word.
const BITS: u32 = u64::BITS.trailing_zeros();
/// Spreads a hash over the high bits once more: those that chose the block say nothing about the bits in it.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A cache line of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Block([u64; WORDS]);

impl Block {
    /// The bit of word `word`, from the highest bits down.
    #[inline(always)]
    fn bit(hash: u64, word: usize) -> u64 {
        (hash.wrapping_mul(SPREAD) >> (u64::BITS - BITS * (word as u32 + 1))) & u64::from(u64::BITS - 1)
    }

    #[inline(always)]
    fn add(&mut self, hash: u64) {
        for (word, bits) in self.0.iter_mut().enumerate() {
            *bits |= 1 << Block::bit(hash, word);
        }
    }

    /// Whether every word has its bit.
    #[inline(always)]
    fn has(&self, hash: u64) -> bool {
        let mut missing = 0;
        for (word, bits) in self.0.iter().enumerate() {
            missing |= (1 << Block::bit(hash, word)) & !bits;
        }
        missing == 0
    }
}

/// Blocks for so many keys of so many bits each.
pub fn blocks_for(keys: u64, bits_per_key: u32) -> usize {
    let bits = u128::from(keys) * u128::from(bits_per_key);
    bits.div_ceil(u128::from(u64::BITS) * WORDS as u128) as usize
}

/// Adds the keys with these hashes to some blocks of a filter of `all`, from block `first` on, to which all of them belong.
#[inline(always)]
fn add(blocks: &mut [Block], first: usize, all: usize, hashes: &[u64]) {
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&next) = hashes.get(i + AHEAD) {
            prefetch(&blocks[below(next, all) - first]);
        }
        blocks[below(hash, all) - first].add(hash);
    }
}

/// A filter that is being made, so many blocks at a time as there is memory for. Keys are gathered by the part of it that they belong to,
/// so that a processor's caches hold what is written.
#[derive(Debug)]
pub struct Making {
    /// Blocks of the filter.
    all: usize,
    /// The first of those that are made now.
    first: usize,
    blocks: Placed<Block>,
    /// Keys of a part that wait at most.
    list: usize,
    /// Hashes that wait, and a [`GAP`], for each part; none before the first, as where several threads add each has its own ([`Gathered`]).
    waiting: Vec<u64>,
    /// Of each part how many wait.
    filled: Vec<u32>,
}

impl Making {
    /// Bytes of a part with so many keys that wait for it.
    const fn each(list: usize) -> u64 {
        (PART * size_of::<Block>() + (list + GAP) * size_of::<u64>() + size_of::<u32>()) as u64
    }

    /// Keys that wait for a part of a filter of `all` blocks that is made in `bytes` of memory.
    fn list(all: usize, bytes: u64) -> usize {
        let parts = all.div_ceil(PART) as u64;
        let list = KEYS * PART;
        let fits = parts.saturating_mul(Self::each(list)) <= bytes;
        if fits && parts * (list * size_of::<u64>()) as u64 <= WAITING { list } else { PART }
    }

    /// So many blocks of a filter of `all` are made at a time in `bytes` of memory: all of them, or whole parts, at least one.
    fn at_once(all: usize, bytes: u64) -> usize {
        let parts = (bytes / Self::each(Self::list(all, bytes))).max(1) as usize;
        all.min(parts.saturating_mul(PART))
    }

    /// Bytes of memory for a filter of `all` blocks when there are `bytes`.
    pub fn memory(all: usize, bytes: u64) -> u64 {
        Self::at_once(all, bytes).div_ceil(PART) as u64 * Self::each(Self::list(all, bytes))
    }

    /// For a filter of up to `all` blocks in so many bytes of memory; begins one of so many.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(all: usize, bytes: u64) -> Result<Self, placement::Error> {
        let at = Placement { policy: Policy::Local, pages: Pages::Transparent };
        let blocks = Placed::zeroed(Self::at_once(all, bytes), &at)?;
        let (parts, list) = (blocks.len().div_ceil(PART), Self::list(all, bytes));
        Ok(Self { all, first: 0, blocks, list, waiting: Vec::new(), filled: vec![0; parts] })
    }

    /// Blocks of the filter, and the first of those that are made now.
    pub fn begun(&self) -> (usize, usize) {
        (self.all, self.first)
    }

    /// How many blocks are made at a time.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Begins the blocks from `first` on of a filter of `all`.
    pub fn begin(&mut self, all: usize, first: usize) {
        (self.all, self.first) = (all, first);
        self.filled.fill(0);
        self.blocks.fill(Block::zeroed());
    }

    /// Adds the key with this hash to the blocks that are made now, in the end, if it belongs to one of them.
    #[inline]
    pub fn push(&mut self, hash: u64) {
        // What lies before the first is beyond the last, too.
        let block = below(hash, self.all).wrapping_sub(self.first);
        if block >= self.blocks.len() {
            return;
        }
        let part = block / PART;
        let at = part * (self.list + GAP) + self.filled[part] as usize;
        match self.waiting.get_mut(at) {
            Some(waiting) => *waiting = hash,
            None => self.first_waits(at, hash),
        }
        self.filled[part] += 1;
        if self.filled[part] as usize == self.list {
            self.empty(part);
        }
    }

    /// The blocks that are made now, with all keys that were pushed.
    pub fn finish(&mut self) -> &[Block] {
        (0..self.filled.len()).for_each(|part| self.empty(part));
        &self.blocks[..self.blocks.len().min(self.all - self.first)]
    }

    #[cold]
    fn first_waits(&mut self, at: usize, hash: u64) {
        self.waiting.resize(self.filled.len() * (self.list + GAP), 0);
        self.waiting[at] = hash;
    }

    #[cold]
    fn empty(&mut self, part: usize) {
        let filled = std::mem::take(&mut self.filled[part]) as usize;
        let from = part * (self.list + GAP);
        let hashes = self.waiting.get(from..from + filled).unwrap_or_default();
        widest(
            #[inline(always)]
            || add(&mut self.blocks, self.first, self.all, hashes),
        );
    }
}

/// The fewest keys that a thread gathers for a part before it adds them.
const FEWEST: usize = 1 << 8;

/// The blocks of a [`Making`], to which several threads add. A bit is set whoever sets it, so that the order of keys does not show.
#[derive(Debug)]
pub struct Shared<'m> {
    all: usize,
    first: usize,
    /// How many blocks there are.
    len: usize,
    parts: Vec<Mutex<&'m mut [Block]>>,
    /// Keys that each thread gathers for a part.
    list: usize,
}

/// The keys that one thread has gathered.
#[derive(Debug)]
pub struct Gathered {
    waiting: Vec<u64>,
    filled: Vec<u32>,
}

impl Making {
    /// For so many threads, which together hold no more keys than one would.
    pub fn share(&mut self, threads: usize) -> Shared<'_> {
        let list = (self.list / threads.max(1)).max(FEWEST);
        let (all, first, len) = (self.all, self.first, self.blocks.len());
        Shared { all, first, len, parts: self.blocks.chunks_mut(PART).map(Mutex::new).collect(), list }
    }
}

impl Shared<'_> {
    /// For one thread.
    pub fn gather(&self) -> Gathered {
        let parts = self.parts.len();
        Gathered { waiting: vec![0; parts * (self.list + GAP)], filled: vec![0; parts] }
    }

    fn empty(&self, part: usize, hashes: &[u64]) {
        let mut blocks = self.parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        widest(
            #[inline(always)]
            || add(&mut blocks, self.first + part * PART, self.all, hashes),
        );
    }
}

impl Gathered {
    /// Adds keys, in the end, to those blocks that are made now.
    pub fn push_all(&mut self, shared: &Shared<'_>, keys: &[u64]) {
        let stride = shared.list + GAP;
        for &key in keys {
            let hash = hash(key);
            // What lies before the first is beyond the last, too.
            let block = below(hash, shared.all).wrapping_sub(shared.first);
            if block >= shared.len {
                continue;
            }
            let part = block / PART;
            let filled = self.filled[part] as usize;
            self.waiting[part * stride + filled] = hash;
            self.filled[part] = filled as u32 + 1;
            if filled + 1 == shared.list {
                self.filled[part] = 0;
                shared.empty(part, &self.waiting[part * stride..][..shared.list]);
            }
        }
    }

    /// Adds all that were gathered.
    pub fn finish(self, shared: &Shared<'_>) {
        let stride = shared.list + GAP;
        for (part, &filled) in self.filled.iter().enumerate() {
            shared.empty(part, &self.waiting[part * stride..][..filled as usize]);
        }
    }
}

/// Asks for the block of a hash.
#[inline(always)]
pub fn fetch(blocks: &[Block], hash: u64) {
    if !blocks.is_empty() {
        prefetch(&blocks[below(hash, blocks.len())]);
    }
}

/// For each hash whether a key of it may be there. A filter without blocks knows nothing.
pub fn sieve(blocks: &[Block], hashes: &[u64], may: &mut [bool]) {
    widest(
        #[inline(always)]
        || sieve_scalar(blocks, hashes, may),
    );
}

/// [`sieve`], whatever the processor.
#[inline(always)]
fn sieve_scalar(blocks: &[Block], hashes: &[u64], may: &mut [bool]) {
    if blocks.is_empty() {
        may.fill(true);
        return;
    }
    for (&hash, may) in hashes.iter().zip(may) {
        *may = blocks[below(hash, blocks.len())].has(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_have(blocks: &[Block], key: u64) -> bool {
        let (mut plain, mut native) = ([false], [false]);
        sieve_scalar(blocks, &[hash(key)], &mut plain);
        sieve(blocks, &[hash(key)], &mut native);
        assert_eq!(plain, native);
        plain[0]
    }

    fn add_to(blocks: &mut [Block], hashes: &[u64]) {
        add(blocks, 0, blocks.len(), hashes);
    }

    /// Keys as different as neighbouring numbers, and as sorted k-mers that share all but their ends.
    fn keys(n: u64) -> impl Iterator<Item = u64> {
        (0..n).map(|i| if i % 2 == 0 { i } else { i << 40 })
    }

    #[test]
    fn finds_all_and_little_else() {
        let n = 200_000;
        for (bits, most) in [(8, 0.04), (12, 0.008), (16, 0.003)] {
            let mut blocks = vec![Block::zeroed(); blocks_for(n, bits)];
            keys(n).for_each(|key| add_to(&mut blocks, &[hash(key)]));
            assert!(keys(n).all(|key| may_have(&blocks, key)));
            let absent = (0..n).map(|i| (1 << 63) | i);
            let wrong = absent.filter(|&key| may_have(&blocks, key)).count();
            assert!((wrong as f64) < most * n as f64, "{bits} bits: {wrong} of {n}");
        }
    }

    #[test]
    fn a_filter_made_in_pieces_is_the_same() {
        let n = 300_000;
        let hashes: Vec<u64> = keys(n).map(hash).collect();
        for all in [1, PART, 3 * PART + 5] {
            let mut plain = vec![Block::zeroed(); all];
            add_to(&mut plain, &hashes);
            for bytes in [0, 2 * Making::each(PART), 3 * Making::each(KEYS * PART), u64::MAX] {
                let mut making = Making::new(4 * PART, bytes).unwrap();
                let mut made = Vec::new();
                while made.len() < all {
                    making.begin(all, made.len());
                    hashes.iter().for_each(|&hash| making.push(hash));
                    made.extend_from_slice(making.finish());
                }
                assert!(made == plain, "{all} blocks in {bytes} bytes");
            }
        }
        Making::new(0, u64::MAX).unwrap().push(3);
    }

    #[test]
    fn a_filter_made_by_several_threads_is_the_same() {
        let all: Vec<u64> = keys(300_000).collect();
        for blocks in [1, PART, 3 * PART + 5] {
            let mut plain = vec![Block::zeroed(); blocks];
            all.iter().for_each(|&key| add_to(&mut plain, &[hash(key)]));
            for (threads, bytes) in [(1, u64::MAX), (3, u64::MAX), (3, 0)] {
                let mut making = Making::new(blocks, bytes).unwrap();
                let shared = making.share(threads);
                std::thread::scope(|scope| {
                    for keys in all.chunks(all.len().div_ceil(threads)) {
                        let shared = &shared;
                        scope.spawn(move || {
                            let mut gathered = shared.gather();
                            keys.chunks(999).for_each(|some| gathered.push_all(shared, some));
                            gathered.finish(shared);
                        });
                    }
                });
                let made = making.finish();
                assert!(*made == plain[..made.len()], "{blocks} blocks by {threads} threads");
            }
        }
    }

    #[test]
    fn without_blocks_every_key_may_be_there() {
        fetch(&[], hash(3));
        assert!(may_have(&[], 3));
        assert_eq!(blocks_for(0, 12), 0);
    }
}
