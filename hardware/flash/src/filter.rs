//! What tells that a key is absent without looking for it: a Bloom filter whose bits of a key are all in one cache line.
//!
//! Blocked Bloom filters: Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", 2007. A block is eight words, and a key
//! has one bit in each.

use bytemuck::{Pod, Zeroable};

use crate::hash::below;
use crate::native::{self, prefetch};

/// Words of a block.
const WORDS: usize = 8;
/// A filter that is being made has a multiple of so many blocks, so that it can be folded.
const FOLDS: usize = 1 << 10;
/// Blocks of a part of a filter: 1 MiB. As many keys of a part wait to be added to it.
const PART: usize = 1 << 14;
/// Places of those that wait from part to part: a cache line more than there are, so that where parts are written does not fall on the
/// same few sets of a cache.
const STRIDE: usize = PART + 8;
/// So many keys before its own turn comes a key's block is asked for.
const AHEAD: usize = 16;
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
    (bits.div_ceil(u128::from(Block::zeroed().0.len() as u64 * 64)) as usize).next_multiple_of(FOLDS)
}

/// Adds the keys with these hashes to a filter of at least one block.
#[inline(always)]
pub fn add(blocks: &mut [Block], hashes: &[u64]) {
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&next) = hashes.get(i + AHEAD) {
            fetch(blocks, next);
        }
        blocks[below(hash, blocks.len())].add(hash);
    }
}

/// Keys on their way into a filter, gathered by the part of it that they belong to, so that a processor's caches hold what is written.
#[derive(Debug)]
pub struct Gather {
    /// Blocks of the filter.
    blocks: usize,
    /// Hashes that wait, [`STRIDE`] places for each part.
    waiting: Vec<u64>,
    /// Of each part how many wait.
    filled: Vec<u32>,
}

impl Gather {
    /// Bytes for a filter of so many blocks.
    pub fn memory(blocks: usize) -> u64 {
        (blocks.div_ceil(PART) * (STRIDE * size_of::<u64>() + size_of::<u32>())) as u64
    }

    /// For a filter of so many blocks.
    pub fn new(blocks: usize) -> Self {
        let parts = blocks.div_ceil(PART);
        Self { blocks, waiting: vec![0; parts * STRIDE], filled: vec![0; parts] }
    }

    /// Adds the key with this hash to the filter, in the end.
    #[inline]
    pub fn push(&mut self, hash: u64, filter: &mut [Block]) {
        if self.blocks == 0 {
            return;
        }
        let part = below(hash, self.blocks) / PART;
        self.waiting[part * STRIDE + self.filled[part] as usize] = hash;
        self.filled[part] += 1;
        if self.filled[part] as usize == PART {
            self.empty(part, filter);
        }
    }

    /// Adds all that wait.
    pub fn finish(&mut self, filter: &mut [Block]) {
        (0..self.filled.len()).for_each(|part| self.empty(part, filter));
    }

    #[cold]
    fn empty(&mut self, part: usize, filter: &mut [Block]) {
        let filled = std::mem::take(&mut self.filled[part]) as usize;
        native::add(filter, &self.waiting[part * STRIDE..][..filled]);
    }
}

/// Halves a filter that was made for more keys than came, as often as `bits_per_key` allows: a key's block in the half is half of its block,
/// rounded down, and its bits are the same. Returns the number of blocks left; they are the first ones.
pub fn fold(blocks: &mut [Block], keys: u64, bits_per_key: u32) -> usize {
    let needed = u128::from(keys) * u128::from(bits_per_key);
    let mut len = blocks.len();
    while len > 1 && len.is_multiple_of(2) && (len / 2) as u128 * (WORDS as u128 * 64) >= needed {
        len /= 2;
        for half in 0..len {
            let (a, b) = (blocks[2 * half], blocks[2 * half + 1]);
            blocks[half] = Block(std::array::from_fn(|word| a.0[word] | b.0[word]));
        }
    }
    len
}

/// Asks for the block of a hash.
#[inline(always)]
pub fn fetch(blocks: &[Block], hash: u64) {
    if !blocks.is_empty() {
        prefetch(&blocks[below(hash, blocks.len())]);
    }
}

/// For each hash whether a key of it may be there. A filter without blocks knows nothing.
#[inline(always)]
pub fn sieve(blocks: &[Block], hashes: &[u64], may: &mut [bool]) {
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
    use crate::hash::hash;

    fn may_have(blocks: &[Block], key: u64) -> bool {
        let (mut plain, mut native) = ([false], [false]);
        sieve(blocks, &[hash(key)], &mut plain);
        crate::native::sieve(blocks, &[hash(key)], &mut native);
        assert_eq!(plain, native);
        plain[0]
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
            keys(n).for_each(|key| add(&mut blocks, &[hash(key)]));
            assert!(keys(n).all(|key| may_have(&blocks, key)));
            let absent = (0..n).map(|i| (1 << 63) | i);
            let wrong = absent.filter(|&key| may_have(&blocks, key)).count();
            assert!((wrong as f64) < most * n as f64, "{bits} bits: {wrong} of {n}");
        }
    }

    #[test]
    fn a_folded_filter_is_one_made_small() {
        let n = 5000;
        let mut large = vec![Block::zeroed(); 64 * FOLDS];
        keys(n).for_each(|key| add(&mut large, &[hash(key)]));
        let len = fold(&mut large, n, 12);
        assert!((118..=235).contains(&len), "{len} blocks");
        let mut small = vec![Block::zeroed(); len];
        keys(n).for_each(|key| add(&mut small, &[hash(key)]));
        assert_eq!(large[..len], small);
    }

    #[test]
    fn gathered_keys_make_the_same_filter() {
        let n = 300_000;
        for blocks in [1, PART, 3 * PART + 5] {
            let hashes: Vec<u64> = keys(n).map(hash).collect();
            let (mut gathered, mut plain) = (vec![Block::zeroed(); blocks], vec![Block::zeroed(); blocks]);
            let mut gather = Gather::new(blocks);
            hashes.iter().for_each(|&hash| gather.push(hash, &mut gathered));
            gather.finish(&mut gathered);
            add(&mut plain, &hashes);
            assert!(gathered == plain, "{blocks} blocks");
        }
        Gather::new(0).push(3, &mut []);
    }

    #[test]
    fn without_blocks_every_key_may_be_there() {
        fetch(&[], hash(3));
        assert!(may_have(&[], 3));
        assert_eq!(blocks_for(0, 12), 0);
    }
}
