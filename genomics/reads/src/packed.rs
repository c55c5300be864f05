//! Reads as codes and as words of two bits a base.

use genuma_machine::processor::widest;

use crate::dna;

/// Bases of a word.
pub const WORD: usize = 32;
/// And of half of one.
const HALF: usize = WORD / 2;

/// A read in two forms; keeps its memory between reads.
#[derive(Debug, Default)]
pub struct Codes {
    /// Bases as 0..=3, and [`dna::NOT_A_BASE`]; zeros up to a whole word.
    codes: Vec<u8>,
    /// The same, two bits a base, and one word more.
    words: Vec<u64>,
    /// Number of bases.
    bases: usize,
    /// Some are not bases.
    pub foreign: bool,
}

impl Codes {
    /// Codes and packs bases; those with a quality letter under `lowest` become foreign letters.
    #[inline]
    pub fn load(&mut self, seq: &[u8], qual: &[u8], lowest: u8) {
        widest(
            #[inline(always)]
            || self.load_scalar(seq, qual, lowest),
        );
    }

    /// [`Codes::load`], whatever the processor.
    #[inline(always)]
    pub fn load_scalar(&mut self, seq: &[u8], qual: &[u8], lowest: u8) {
        self.bases = seq.len();
        let words = seq.len().div_ceil(WORD);
        self.codes.resize(words * WORD, 0);
        self.words.resize(words + 1, 0);
        let (codes, rest) = self.codes.split_at_mut(seq.len());
        let mut all = 0;
        for ((to, &base), &quality) in codes.iter_mut().zip(seq).zip(qual) {
            *to = code(base, quality < lowest);
            all |= *to;
        }
        rest.fill(0);
        self.foreign = all & dna::NOT_A_BASE > 0;
        for (word, bases) in self.words.iter_mut().zip(self.codes.as_chunks::<WORD>().0) {
            let [a, b, c, d] = std::array::from_fn(|i| {
                let mut eight = [0; 8];
                eight.copy_from_slice(&bases[8 * i..8 * i + 8]);
                packed(eight)
            });
            *word = a << 48 | b << 32 | c << 16 | d;
        }
        self.words[words] = 0;
    }

    /// Each base's code.
    pub fn codes(&self) -> &[u8] {
        &self.codes[..self.bases]
    }

    /// The packed bases.
    pub fn packed(&self) -> Packed<'_> {
        Packed { words: &self.words, foreign: self.foreign }
    }
}

/// As [`dna::code`], by arithmetic; [`dna::NOT_A_BASE`] also when `refused`.
#[inline(always)]
fn code(base: u8, refused: bool) -> u8 {
    let upper = base & !0x20;
    let known = (upper == b'A') | (upper == b'C') | (upper == b'G') | (upper == b'T');
    if known & !refused { ((upper >> 1) ^ (upper >> 2)) & 3 } else { dna::NOT_A_BASE }
}

/// Eight codes, two bits each, the first in the highest bits.
#[inline(always)]
fn packed(codes: [u8; 8]) -> u64 {
    let mut word = u64::from_be_bytes(codes) & 0x0303_0303_0303_0303;
    word = (word | (word >> 6)) & 0x000f_000f_000f_000f;
    word = (word | (word >> 12)) & 0x0000_00ff_0000_00ff;
    (word | (word >> 24)) & 0xffff
}

/// The bases of a read, two bits each.
#[derive(Debug, Clone, Copy)]
pub struct Packed<'a> {
    words: &'a [u64],
    /// Some letters are not bases: their bits say nothing.
    pub foreign: bool,
}

impl Packed<'_> {
    /// All words, of 32 bases each, the first in the highest bits, and one or more of nothing.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        self.words
    }

    /// 32 bases from base `at` on, the first in the highest bits; what lies beyond the read's last word is zero.
    #[inline(always)]
    pub fn word(&self, at: usize) -> u64 {
        let (i, shift) = (at / 32, 2 * (at % 32));
        let [here, next] = [i, i + 1].map(|i| self.words.get(i).copied().unwrap_or(0));
        // Shifting by 64 is not defined, so the second word moves in two steps.
        (here << shift) | ((next >> 1) >> (63 - shift))
    }

    /// For each of 32 bases from base `at` on the 16 bases that begin there, as in [`Packed::word`].
    #[inline(always)]
    pub fn sixteens(&self, at: usize) -> [u32; WORD] {
        let (here, next) = (self.word(at), self.word(at + WORD));
        let halves = [(here >> 32) as u32, here as u32, (next >> 32) as u32];
        let mut sixteens = [0; WORD];
        for (to, half) in sixteens.as_chunks_mut::<HALF>().0.iter_mut().zip(halves.windows(2)) {
            for (i, to) in (0..).zip(to) {
                *to = (half[0] << (2 * i)) | (half[1] >> 1 >> (31 - 2 * i));
            }
        }
        sixteens
    }
}

/// The bits of a word of 32 bases after its first `bases`, 32 at most.
#[inline(always)]
pub fn after(bases: usize) -> u64 {
    // Shifting by 64 is not defined, so the bits move in two steps.
    u64::MAX >> bases >> bases
}

/// The reverse complement of 16 bases.
#[inline(always)]
pub fn reversed(bases: u32) -> u32 {
    let x = !bases;
    let x = ((x >> 2) & 0x3333_3333) | ((x & 0x3333_3333) << 2);
    let x = ((x >> 4) & 0x0f0f_0f0f) | ((x & 0x0f0f_0f0f) << 4);
    x.swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_bases(n: usize, mut seed: u64) -> Vec<u8> {
        let mut next = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(seed >> 62) as usize]
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn reads_are_coded_and_packed_alike_by_all_processors() {
        let all: Vec<u8> = (0..=255).collect();
        for seq in [&all[..], &random_bases(150, 1), &random_bases(31, 2), &random_bases(64, 3), b"", b"A"] {
            let qual: Vec<u8> = (0..seq.len()).map(|i| 33 + (i % 41) as u8).collect();
            for lowest in [0, 33 + 7] {
                let [mut wide, mut scalar] =
                    [const { Codes { codes: Vec::new(), words: Vec::new(), bases: 0, foreign: true } }; 2];
                wide.load(seq, &qual, lowest);
                scalar.load_scalar(seq, &qual, lowest);
                let code =
                    |(&base, &quality)| if quality < lowest { dna::NOT_A_BASE } else { dna::code(base) };
                assert!(wide.codes().iter().copied().eq(seq.iter().zip(&qual).map(code)));
                assert_eq!(wide.foreign, wide.codes().contains(&dna::NOT_A_BASE));
                for (i, &code) in wide.codes().iter().enumerate() {
                    assert_eq!(
                        wide.words[i / 32] >> (62 - 2 * (i % 32)) & 3,
                        u64::from(code & 3),
                        "base {i}"
                    );
                }
                assert_eq!(wide.words.len(), seq.len().div_ceil(32) + 1);
                assert!(
                    (wide.codes, wide.words, wide.foreign) == (scalar.codes, scalar.words, scalar.foreign)
                );
            }
        }
    }

    #[test]
    fn sixteen_bases_from_each_on_are_those_of_the_words() {
        let seq = random_bases(150, 5);
        let mut codes = Codes::default();
        codes.load(&seq, &seq, 0);
        for at in 0..160 {
            let all = codes.packed().sixteens(at);
            for (i, sixteen) in all.into_iter().enumerate() {
                assert_eq!(sixteen, (codes.packed().word(at + i) >> 32) as u32, "base {at} + {i}");
            }
        }
        let opposite = dna::revcomp(&seq[40..56]);
        let mut turned = Codes::default();
        turned.load(&opposite, &opposite, 0);
        assert_eq!(reversed(codes.packed().sixteens(40)[0]), turned.packed().sixteens(0)[0]);
        assert_eq!([0, 1, 31, 32].map(after), [u64::MAX, u64::MAX >> 2, 3, 0]);
    }
}
