//! Integers of any bit width, packed in an array of 64-bit words from the lowest bit of the first word on.

/// When an array is full it grows by its length divided by this number, so that growing takes little memory.
const ARRAY_GROWTH_DIVISOR: usize = 8;
/// Minimum number of words by which an array grows.
const MIN_GROWTH_WORDS: usize = 512;

/// Appends integers of any bit width to an array of words.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    words: Vec<u64>,
    num_bits: u64,
}

impl BitWriter {
    /// Appends the lowest `width` bits (0 to 64) of `value`. The higher bits must be 0.
    #[inline]
    pub(crate) fn push_bits(&mut self, value: u64, width: u32) {
        if width == 0 {
            return;
        }
        debug_assert!(width == 64 || value >> width == 0);
        let shift = (self.num_bits & 63) as u32;
        if shift == 0 {
            push_word_with_small_growth(&mut self.words, value);
        } else {
            if let Some(last) = self.words.last_mut() {
                *last |= value << shift;
            }
            if shift + width > 64 {
                push_word_with_small_growth(&mut self.words, value >> (64 - shift));
            }
        }
        self.num_bits += u64::from(width);
    }

    /// Number of bits written so far.
    pub(crate) fn num_bits(&self) -> u64 {
        self.num_bits
    }

    /// Number of bytes of allocated memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.words.capacity() * size_of::<u64>()) as u64
    }

    /// Returns all bits written so far as 64-bit words; unused bits of the last word are 0.
    pub(crate) fn into_words(self) -> Vec<u64> {
        self.words
    }
}

/// Appends a word. If the array is full, it grows by an eighth, at least by [`MIN_GROWTH_WORDS`].
#[inline]
pub(crate) fn push_word_with_small_growth(words: &mut Vec<u64>, word: u64) {
    if words.len() == words.capacity() {
        words.reserve_exact((words.len() / ARRAY_GROWTH_DIVISOR).max(MIN_GROWTH_WORDS));
    }
    words.push(word);
}

/// Reads `width` bits (0 to 64) from bit `at` on. Bits beyond the end are 0, so a wrong offset in a damaged file cannot
/// cause a panic.
#[inline]
pub(crate) fn read_bits(words: &[u64], at: u64, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let (word, shift) = ((at >> 6) as usize, (at & 63) as u32);
    let mut bits = words.get(word).copied().unwrap_or(0) >> shift;
    if shift + width > 64 {
        bits |= words.get(word + 1).copied().unwrap_or(0) << (64 - shift);
    }
    bits & (u64::MAX >> (64 - width))
}

/// Index (0 to 63) of the set bit with `rank` set bits below it. The word must have more than `rank` set bits.
#[inline]
pub(crate) fn position_of_nth_set_bit(mut word: u64, mut rank: u32) -> u32 {
    let mut place = 0;
    for half in [32, 16, 8, 4, 2, 1] {
        let ones = (word & ((1 << half) - 1)).count_ones();
        if rank >= ones {
            rank -= ones;
            place += half;
            word >>= half;
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_widths_come_back() {
        let numbers: Vec<(u64, u32)> = (0..2000u32)
            .map(|i| (i % 65, u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .map(|(width, value)| (if width == 0 { 0 } else { value >> (64 - width) }, width))
            .collect();
        let mut writer = BitWriter::default();
        numbers.iter().for_each(|&(value, width)| writer.push_bits(value, width));
        let num_bits = writer.num_bits();
        let words = writer.into_words();
        let mut at = 0;
        for (value, width) in numbers {
            assert_eq!(read_bits(&words, at, width), value, "{width} bits at {at}");
            at += u64::from(width);
        }
        assert_eq!((at, words.len() as u64), (num_bits, num_bits.div_ceil(64)));
        assert_eq!(read_bits(&words, u64::MAX - 70, 64), 0);
    }

    #[test]
    fn set_bits_are_selected() {
        for word in [1, u64::MAX, 0x8000_0000_0000_0001, 0xa5a5_0000_ffff_1234] {
            let places: Vec<u32> = (0..64).filter(|place| word >> place & 1 == 1).collect();
            for (rank, &place) in places.iter().enumerate() {
                assert_eq!(position_of_nth_set_bit(word, rank as u32), place);
            }
        }
    }
}
