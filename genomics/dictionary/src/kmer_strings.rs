//! The strings of a dictionary, stored one after another at 2 bits per base, with the position at which each begins.

use crate::bits::{push_word_with_small_growth, read_bits};

/// Number of bases in a 64-bit word, at 2 bits a base.
const WORD_BASES: u64 = 32;
/// Log2 of the number of bases in a block. For each block the number of strings that begin before it is stored.
const BLOCK_BASES_LOG2: u32 = 10;
const BLOCK_BASES: u64 = 1 << BLOCK_BASES_LOG2;
/// Number of bits that store the offset of a string's start in its block.
const START_BITS: u32 = 16;

/// The strings into which the k-mers of a dictionary were joined, at 2 bits a base.
#[derive(Debug, Default)]
pub(crate) struct KmerStrings {
    /// Bases at 2 bits each, the first in the highest bits of the first word.
    pub(crate) bases: Vec<u64>,
    pub(crate) num_bases: u64,
    /// For each block, the number of strings that begin in earlier blocks; then twice the number of all strings.
    pub(crate) starts_before_block: Vec<u64>,
    /// For each string, the offset of its first base in its block, in 16 bits; four strings in each word.
    pub(crate) starts: Vec<u64>,
    pub(crate) num_strings: u64,
}

/// A range of bases that all belong to one string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StringRange {
    /// Number of the string, from 0.
    pub(crate) string: u64,
    /// Position of the first base of the range.
    pub(crate) from: u64,
    /// Position after the last base of the range.
    pub(crate) to: u64,
}

impl KmerStrings {
    /// Number of words of the three arrays: bases, block counts, string starts.
    pub(crate) fn array_lengths_in_words(num_bases: u64, num_strings: u64) -> [u64; 3] {
        [num_bases.div_ceil(WORD_BASES), num_bases.div_ceil(BLOCK_BASES) + 2, num_strings.div_ceil(4)]
    }

    /// Starts a new, empty string; the bases pushed next belong to it.
    pub(crate) fn begin_string(&mut self) {
        let block = self.num_bases >> BLOCK_BASES_LOG2;
        while self.starts_before_block.len() as u64 <= block {
            push_word_with_small_growth(&mut self.starts_before_block, self.num_strings);
        }
        let (place, shift) = (self.num_bases & (BLOCK_BASES - 1), self.num_strings % 4 * u64::from(START_BITS));
        match self.starts.last_mut() {
            Some(last) if shift > 0 => *last |= place << shift,
            _ => push_word_with_small_growth(&mut self.starts, place),
        }
        self.num_strings += 1;
    }

    /// Appends a base (0 to 3 for A, C, G, T) to the last string.
    #[inline]
    pub(crate) fn push_base(&mut self, code: u64) {
        let place = self.num_bases % WORD_BASES;
        let bits = code << (62 - 2 * place);
        match self.bases.last_mut() {
            Some(last) if place > 0 => *last |= bits,
            _ => push_word_with_small_growth(&mut self.bases, bits),
        }
        self.num_bases += 1;
    }

    /// Completes the block counts after the last string.
    pub(crate) fn complete_string_start_counts(&mut self) {
        let num_blocks = self.num_bases.div_ceil(BLOCK_BASES) + 2;
        while (self.starts_before_block.len() as u64) < num_blocks {
            push_word_with_small_growth(&mut self.starts_before_block, self.num_strings);
        }
    }

    /// Number of bytes of allocated memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let words = self.bases.capacity() + self.starts_before_block.capacity() + self.starts.capacity();
        (words * size_of::<u64>()) as u64
    }

    /// The `k` bases (1 to 32) from position `at` on, the first in the highest bits. Bases beyond the end are 0.
    #[inline]
    pub(crate) fn kmer_at(&self, at: u64, k: u32) -> u64 {
        let (word, shift) = ((at / WORD_BASES) as usize, (at % WORD_BASES * 2) as u32);
        let mut bits = self.bases.get(word).copied().unwrap_or(0) << shift;
        if shift + 2 * k > 64 {
            bits |= self.bases.get(word + 1).copied().unwrap_or(0) >> (64 - shift);
        }
        bits >> (64 - 2 * k)
    }

    /// Number of the strings that begin before a block.
    #[inline]
    fn starts_before(&self, block: u64) -> u64 {
        // The minimum matters only for a damaged file.
        self.starts_before_block.get(block as usize).map_or(self.num_strings, |&starts| starts.min(self.num_strings))
    }

    /// Offset in bases of the start of a string in its block.
    #[inline]
    fn start_in_block(&self, string: u64) -> u64 {
        read_bits(&self.starts, string * u64::from(START_BITS), START_BITS)
    }

    /// Positions of the first bases of all strings, in their order.
    pub(crate) fn start_positions(&self) -> impl Iterator<Item = u64> + '_ {
        let num_blocks = self.num_bases.div_ceil(BLOCK_BASES);
        (0..num_blocks).flat_map(move |block| {
            (self.starts_before(block)..self.starts_before(block + 1))
                .map(move |string| (block << BLOCK_BASES_LOG2) + self.start_in_block(string))
        })
    }

    /// A range of bases around position `at` that belongs to one string. The range ends with the string, or extends at
    /// least 1,024 bases beyond `at`; its start may be after the start of the string. `None` if no string begins at
    /// `at` or before.
    #[inline]
    pub(crate) fn range_in_one_string_around(&self, at: u64) -> Option<StringRange> {
        let block = at >> BLOCK_BASES_LOG2;
        let (first, end, next_end) =
            (self.starts_before(block), self.starts_before(block + 1), self.starts_before(block + 2));
        let mut from = block << BLOCK_BASES_LOG2;
        let mut next = first;
        let mut to = ((block + 2) << BLOCK_BASES_LOG2).min(self.num_bases);
        while next < end {
            let start = (block << BLOCK_BASES_LOG2) + self.start_in_block(next);
            if start > at {
                to = start;
                break;
            }
            from = start;
            next += 1;
        }
        if next == end && end < next_end {
            to = ((block + 1) << BLOCK_BASES_LOG2) + self.start_in_block(next);
        }
        Some(StringRange { string: next.checked_sub(1)?, from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_their_stretches_come_back() {
        let lengths: Vec<u64> =
            (0..400).map(|i: u64| 5 + i * i % 97 + u64::from(i.is_multiple_of(50)) * 5000).collect();
        let mut strings = KmerStrings::default();
        let mut bases = Vec::new();
        for &length in &lengths {
            strings.begin_string();
            for i in 0..length {
                let code = (((i * 7 + length) * 0x9e37_79b9) >> 9) & 3;
                strings.push_base(code);
                bases.push(code);
            }
        }
        strings.complete_string_start_counts();
        let words = [&strings.bases, &strings.starts_before_block, &strings.starts].map(|words| words.len() as u64);
        assert_eq!(words, KmerStrings::array_lengths_in_words(strings.num_bases, strings.num_strings));
        for at in 0..bases.len() {
            let k = (bases.len() - at).min(31);
            let kmer = bases[at..at + k].iter().fold(0, |kmer, code| kmer << 2 | code);
            assert_eq!(strings.kmer_at(at as u64, k as u32), kmer);
        }
        let starts: Vec<u64> = (0..lengths.len()).map(|string| lengths[..string].iter().sum()).collect();
        assert!(strings.start_positions().eq(starts), "starts of the strings");
        let mut start = 0;
        for (number, length) in lengths.into_iter().enumerate() {
            for at in start..start + length {
                let found = strings.range_in_one_string_around(at).expect("a string");
                assert_eq!(found.string, number as u64);
                assert!(found.from >= start && found.from <= at && found.to <= start + length, "{at}: {found:?}");
                assert!(found.to == start + length || found.to > at + BLOCK_BASES, "{at}: {found:?}");
                assert!(found.from == start || at - found.from < BLOCK_BASES, "{at}: {found:?}");
            }
            start += length;
        }
    }
}
