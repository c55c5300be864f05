//! Bases packed at two bits each, 32 per word, the first in the lowest bits: A = 0, C = 1, T = 2, G = 3. These codes
//! are two of the bits of the ASCII letters, so that packing needs no table. The complement of `b` is `b ^ 2`.

/// Number of bases in a 64-bit word, at 2 bits a base.
pub(crate) const BASES_PER_WORD: usize = 32;
/// Mask of a word with the lower of the two bits of each base set.
pub(crate) const LOW_BIT_OF_EACH_BASE: u64 = 0x5555_5555_5555_5555;
/// ASCII letter of each 2-bit base code (0 to 3).
pub const BASE_LETTERS: [u8; 4] = *b"ACTG";

/// Whether an ASCII character is A, C, G or T, in either case.
#[inline(always)]
pub fn is_acgt(letter: u8) -> bool {
    let upper = letter & 0xdf;
    (upper == b'A') | (upper == b'C') | (upper == b'G') | (upper == b'T')
}

/// Packs eight ASCII bases into 16 bits; an ambiguous base becomes one of the four bases.
#[inline(always)]
fn pack_eight(letters: u64) -> u64 {
    let x = (letters >> 1) & 0x0303_0303_0303_0303;
    let x = (x | x >> 6) & 0x000f_000f_000f_000f;
    let x = (x | x >> 12) & 0x0000_00ff_0000_00ff;
    (x | x >> 24) & 0xffff
}

/// Packs up to 32 ASCII bases into a word; a word with fewer bases is filled up with A.
#[inline(always)]
pub(crate) fn pack_letters_into_word(letters: &[u8]) -> u64 {
    let mut word = 0;
    let (whole, rest) = letters.as_chunks::<8>();
    for (i, eight) in whole.iter().enumerate() {
        word |= pack_eight(u64::from_le_bytes(*eight)) << (16 * i);
    }
    if !rest.is_empty() {
        let mut eight = [b'A'; 8];
        eight[..rest.len()].copy_from_slice(rest);
        word |= pack_eight(u64::from_le_bytes(eight)) << (16 * whole.len());
    }
    word
}

/// The reverse complement of a word of 32 bases.
#[inline(always)]
pub(crate) fn reverse_complement_word(word: u64) -> u64 {
    reverse_bases_of_word(word) ^ 0xaaaa_aaaa_aaaa_aaaa
}

/// Returns a word with its 32 bases in reverse order.
#[inline(always)]
pub(crate) fn reverse_bases_of_word(word: u64) -> u64 {
    let x = word.swap_bytes();
    let x = ((x >> 4) & 0x0f0f_0f0f_0f0f_0f0f) | ((x & 0x0f0f_0f0f_0f0f_0f0f) << 4);
    ((x >> 2) & 0x3333_3333_3333_3333) | ((x & 0x3333_3333_3333_3333) << 2)
}

/// The 32 bases of a packed sequence from base `at` on, which need not be the first base of a word.
#[inline(always)]
pub(crate) fn word_starting_at_base(words: &[u64], at: usize) -> u64 {
    let (i, shift) = (at / BASES_PER_WORD, 2 * (at % BASES_PER_WORD) as u32);
    (words[i] >> shift) | (words[i + 1] << 1 << (63 - shift))
}

/// Code (0 to 3) of base number `at` of a packed sequence.
#[inline(always)]
pub fn base_code_at(words: &[u64], at: usize) -> u8 {
    (words[at / BASES_PER_WORD] >> (2 * (at % BASES_PER_WORD)) & 3) as u8
}

/// Mask of a word with the lower of the two bits set for each of its first `n` bases; for all 32 bases if `n` is
/// larger.
#[inline(always)]
pub(crate) fn low_bits_of_first_bases(n: usize) -> u64 {
    if n >= BASES_PER_WORD { LOW_BIT_OF_EACH_BASE } else { LOW_BIT_OF_EACH_BASE & ((1 << (2 * n)) - 1) }
}

/// Mask of word `i` of a packed sequence with the lower of the two bits set for each base whose position in the
/// sequence is in `from..to`.
#[inline(always)]
pub(crate) fn low_bits_of_range_in_word(i: usize, from: usize, to: usize) -> u64 {
    low_bits_of_first_bases(to.saturating_sub(BASES_PER_WORD * i))
        & !low_bits_of_first_bases(from.saturating_sub(BASES_PER_WORD * i))
}

/// Packed reads of a batch: forward strand, reverse complement, and masks of ambiguous bases.
#[derive(Debug, Default, Clone)]
pub struct PackedReadBatch {
    words: Vec<u64>,
    reads: Vec<PackedRead>,
}

#[derive(Debug, Clone, Copy)]
struct PackedRead {
    at: u32,
    length: u32,
    has_ambiguous: bool,
}

/// One strand of a packed read: the read as sequenced, or its reverse complement.
#[derive(Debug, Clone, Copy)]
pub struct ReadStrand<'a> {
    /// The packed bases of the strand. On the forward strand, the last word is filled up with A.
    pub words: &'a [u64],
    /// The words of this strand and all words that follow in the batch, so that a fixed number of words can be read at
    /// once.
    pub words_to_end: &'a [u64],
    /// Masks with the lower of the two bits set for each ambiguous base, one per word; empty if the read has none.
    pub ambiguous: &'a [u64],
    /// Length of the read in bp.
    pub length: usize,
}

impl PackedReadBatch {
    /// Removes all reads and keeps the memory.
    pub fn remove_all_reads(&mut self) {
        self.words.clear();
        self.reads.clear();
    }

    /// Number of reads in the batch; a pair has two.
    pub fn num_reads(&self) -> usize {
        self.reads.len()
    }

    /// Length (bp) of a read.
    #[inline(always)]
    pub fn read_length(&self, i: usize) -> usize {
        self.reads[i].length as usize
    }

    /// Packs and appends a read.
    #[inline(always)]
    pub fn push_read(&mut self, seq: &[u8]) {
        let at = self.words.len();
        let n = seq.len().div_ceil(BASES_PER_WORD);
        for letters in seq.chunks(BASES_PER_WORD) {
            self.words.push(pack_letters_into_word(letters));
        }
        let bases = seq.iter().fold(0, |n, &letter| n + u32::from(is_acgt(letter)));
        let odd = bases as usize != seq.len();
        if odd {
            let mut masks = vec![0; n];
            for (i, _) in seq.iter().enumerate().filter(|(_, letter)| !is_acgt(**letter)) {
                masks[i / BASES_PER_WORD] |= 1 << (2 * (i % BASES_PER_WORD));
            }
            for (word, mask) in self.words[at..].iter_mut().zip(&masks) {
                *word &= !(mask | mask << 1);
            }
            self.push_reversed(at, n, seq.len(), reverse_complement_word);
            self.words.extend_from_slice(&masks);
            self.push_reversed(at + 2 * n, n, seq.len(), reverse_bases_of_word);
        } else {
            self.push_reversed(at, n, seq.len(), reverse_complement_word);
        }
        self.reads.push(PackedRead { at: at as u32, length: seq.len() as u32, has_ambiguous: odd });
    }

    /// Appends the reverse or the reverse complement of a sequence of the batch: that of `length` bases in the `n`
    /// words from index `at` on. `turned` reverses, or reverse-complements, the bases of one word.
    #[inline(always)]
    fn push_reversed(&mut self, at: usize, n: usize, length: usize, turned: impl Fn(u64) -> u64) {
        let spare = 2 * (BASES_PER_WORD * n - length) as u32;
        for i in 0..n {
            let here = turned(self.words[at + n - 1 - i]);
            let next = if i + 1 < n { turned(self.words[at + n - 2 - i]) } else { 0 };
            self.words.push(if spare == 0 { here } else { here >> spare | next << (64 - spare) });
        }
    }

    /// The packed bases of read `i` as sequenced, or of its reverse complement if `reverse_bases` is set.
    #[inline(always)]
    pub fn read_strand(&self, i: usize, reverse_bases: bool) -> ReadStrand<'_> {
        let PackedRead { at, length, has_ambiguous: odd } = self.reads[i];
        let (at, length) = (at as usize, length as usize);
        let n = length.div_ceil(BASES_PER_WORD);
        let from = at + if reverse_bases { n } else { 0 };
        let further = &self.words[from..];
        let words = &further[..n];
        let odd = if odd { &self.words[from + 2 * n..from + 3 * n] } else { &[] };
        ReadStrand { words, words_to_end: further, ambiguous: odd, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(strand: ReadStrand<'_>) -> Vec<u8> {
        let odd = |i: usize| {
            !strand.ambiguous.is_empty() && strand.ambiguous[i / BASES_PER_WORD] >> (2 * (i % BASES_PER_WORD)) & 1 == 1
        };
        (0..strand.length)
            .map(|i| if odd(i) { b'N' } else { BASE_LETTERS[usize::from(base_code_at(strand.words, i))] })
            .collect()
    }

    #[test]
    fn reads_come_back_in_both_directions() {
        let mut state = 7u64;
        let mut packed = PackedReadBatch::default();
        let mut reads = Vec::new();
        for length in 0..200usize {
            let read: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let letters = if length % 3 == 0 { b"ACGTN" as &[u8] } else { b"ACGT" };
                    letters[(state >> 33) as usize % letters.len()]
                })
                .collect();
            packed.push_read(&read);
            reads.push(read);
        }
        for (i, read) in reads.iter().enumerate() {
            assert_eq!(&letters(packed.read_strand(i, false)), read);
            assert_eq!(letters(packed.read_strand(i, true)), genuma_reads::dna::reverse_complement(read));
        }
    }

    #[test]
    fn masks_are_of_the_bases_said() {
        let bits = |from, to| (0..4).map(|i| low_bits_of_range_in_word(i, from, to).count_ones()).sum::<u32>();
        assert_eq!((bits(0, 128), bits(5, 6), bits(31, 33), bits(7, 7)), (128, 1, 2, 0));
        assert_eq!(low_bits_of_range_in_word(1, 33, 40), low_bits_of_first_bases(8) & !low_bits_of_first_bases(1));
    }
}
