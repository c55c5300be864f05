//! Bases as two bits, 32 in a word, the first in the lowest bits: A = 0, C = 1, T = 2, G = 3, which are two bits of their ASCII letters, so
//! that packing needs no table. The complement of `b` is `b ^ 2`.

/// Bases of a word.
pub const WORD: usize = 32;
/// The lower bit of every base.
pub const LOW: u64 = 0x5555_5555_5555_5555;
/// Letters of the codes.
pub const LETTERS: [u8; 4] = *b"ACTG";

/// Whether a letter is one of the four bases, in either case.
#[inline(always)]
pub fn is_base(letter: u8) -> bool {
    let upper = letter & 0xdf;
    (upper == b'A') | (upper == b'C') | (upper == b'G') | (upper == b'T')
}

/// Packs eight letters; what is no base becomes one of the four.
#[inline(always)]
fn pack_eight(letters: u64) -> u64 {
    let x = (letters >> 1) & 0x0303_0303_0303_0303;
    let x = (x | x >> 6) & 0x000f_000f_000f_000f;
    let x = (x | x >> 12) & 0x0000_00ff_0000_00ff;
    (x | x >> 24) & 0xffff
}

/// Packs up to 32 letters; behind them is A.
#[inline(always)]
pub(crate) fn pack_word(letters: &[u8]) -> u64 {
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

/// The reverse complement of 32 bases.
#[inline(always)]
pub(crate) fn reverse_complement(word: u64) -> u64 {
    reverse(word) ^ 0xaaaa_aaaa_aaaa_aaaa
}

/// 32 bases, the last first.
#[inline(always)]
pub fn reverse(word: u64) -> u64 {
    let x = word.swap_bytes();
    let x = ((x >> 4) & 0x0f0f_0f0f_0f0f_0f0f) | ((x & 0x0f0f_0f0f_0f0f_0f0f) << 4);
    ((x >> 2) & 0x3333_3333_3333_3333) | ((x & 0x3333_3333_3333_3333) << 2)
}

/// 32 bases from base `at` on.
#[inline(always)]
pub fn window(words: &[u64], at: usize) -> u64 {
    let (i, shift) = (at / WORD, 2 * (at % WORD) as u32);
    (words[i] >> shift) | (words[i + 1] << 1 << (63 - shift))
}

/// The base at `at`.
#[inline(always)]
pub fn base(words: &[u64], at: usize) -> u8 {
    (words[at / WORD] >> (2 * (at % WORD)) & 3) as u8
}

/// The lower bits of the first `n` of the 32 bases of a word; all from 32 on.
#[inline(always)]
pub fn first(n: usize) -> u64 {
    if n >= WORD { LOW } else { LOW & ((1 << (2 * n)) - 1) }
}

/// The lower bits of bases `from..to` of word `i` of a sequence.
#[inline(always)]
pub fn between(i: usize, from: usize, to: usize) -> u64 {
    first(to.saturating_sub(WORD * i)) & !first(from.saturating_sub(WORD * i))
}

/// Reads, packed: forward and reverse complement, and where letters are no bases.
#[derive(Debug, Default, Clone)]
pub struct Packed {
    words: Vec<u64>,
    reads: Vec<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    at: u32,
    length: u32,
    odd: bool,
}

/// A packed read, one direction of it.
#[derive(Debug, Clone, Copy)]
pub struct Strand<'a> {
    /// Bases; behind the last one is A, forwards.
    pub words: &'a [u64],
    /// The same with whatever is behind them in memory.
    pub further: &'a [u64],
    /// The lower bit of each letter that is no base; empty where all are.
    pub odd: &'a [u64],
    /// Bases (bp).
    pub length: usize,
}

impl Packed {
    /// Forgets the reads and keeps the memory.
    pub fn clear(&mut self) {
        self.words.clear();
        self.reads.clear();
    }

    /// How many reads there are.
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Length (bp) of a read.
    #[inline(always)]
    pub fn length(&self, i: usize) -> usize {
        self.reads[i].length as usize
    }

    /// Appends a read.
    #[inline(always)]
    pub fn push(&mut self, seq: &[u8]) {
        let at = self.words.len();
        let n = seq.len().div_ceil(WORD);
        for letters in seq.chunks(WORD) {
            self.words.push(pack_word(letters));
        }
        let bases = seq.iter().fold(0, |n, &letter| n + u32::from(is_base(letter)));
        let odd = bases as usize != seq.len();
        if odd {
            let mut masks = vec![0; n];
            for (i, _) in seq.iter().enumerate().filter(|(_, letter)| !is_base(**letter)) {
                masks[i / WORD] |= 1 << (2 * (i % WORD));
            }
            for (word, mask) in self.words[at..].iter_mut().zip(&masks) {
                *word &= !(mask | mask << 1);
            }
            self.turn(at, n, seq.len(), reverse_complement);
            self.words.extend_from_slice(&masks);
            self.turn(at + 2 * n, n, seq.len(), reverse);
        } else {
            self.turn(at, n, seq.len(), reverse_complement);
        }
        self.reads.push(Slot { at: at as u32, length: seq.len() as u32, odd });
    }

    /// Appends the `n` words from `at` on, which have `length` bases, turned round: each word by `turned`.
    #[inline(always)]
    fn turn(&mut self, at: usize, n: usize, length: usize, turned: impl Fn(u64) -> u64) {
        let spare = 2 * (WORD * n - length) as u32;
        for i in 0..n {
            let here = turned(self.words[at + n - 1 - i]);
            let next = if i + 1 < n { turned(self.words[at + n - 2 - i]) } else { 0 };
            self.words.push(if spare == 0 { here } else { here >> spare | next << (64 - spare) });
        }
    }

    /// A read in one direction.
    #[inline(always)]
    pub fn strand(&self, i: usize, reverse: bool) -> Strand<'_> {
        let Slot { at, length, odd } = self.reads[i];
        let (at, length) = (at as usize, length as usize);
        let n = length.div_ceil(WORD);
        let from = at + if reverse { n } else { 0 };
        let further = &self.words[from..];
        let words = &further[..n];
        let odd = if odd { &self.words[from + 2 * n..from + 3 * n] } else { &[] };
        Strand { words, further, odd, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(strand: Strand<'_>) -> Vec<u8> {
        let odd = |i: usize| !strand.odd.is_empty() && strand.odd[i / WORD] >> (2 * (i % WORD)) & 1 == 1;
        (0..strand.length)
            .map(|i| if odd(i) { b'N' } else { LETTERS[usize::from(base(strand.words, i))] })
            .collect()
    }

    #[test]
    fn reads_come_back_in_both_directions() {
        let mut state = 7u64;
        let mut packed = Packed::default();
        let mut reads = Vec::new();
        for length in 0..200usize {
            let read: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let letters = if length % 3 == 0 { b"ACGTN" as &[u8] } else { b"ACGT" };
                    letters[(state >> 33) as usize % letters.len()]
                })
                .collect();
            packed.push(&read);
            reads.push(read);
        }
        for (i, read) in reads.iter().enumerate() {
            assert_eq!(&letters(packed.strand(i, false)), read);
            assert_eq!(letters(packed.strand(i, true)), genuma_reads::dna::revcomp(read));
        }
    }

    #[test]
    fn masks_are_of_the_bases_said() {
        let bits = |from, to| (0..4).map(|i| between(i, from, to).count_ones()).sum::<u32>();
        assert_eq!((bits(0, 128), bits(5, 6), bits(31, 33), bits(7, 7)), (128, 1, 2, 0));
        assert_eq!(between(1, 33, 40), first(8) & !first(1));
    }
}
