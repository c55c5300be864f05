//! Reads as two-bit base codes: one code per byte, and packed into 64-bit words.

use genuma_machine::simd_and_prefetch::run_with_widest_simd;

use crate::dna;

/// Number of bases in a 64-bit word, at 2 bits a base.
pub const WORD_BASES: usize = 32;
const HALF_WORD_BASES: usize = WORD_BASES / 2;

/// A read as base codes and as packed words. The memory is reused for all reads.
#[derive(Debug, Default)]
pub struct CodesAndPackedBases {
    /// Codes of the bases, 0 to 3 or [`dna::NOT_A_BASE_CODE`]; padded with zeros to a multiple of 32 bases.
    codes: Vec<u8>,
    /// The bases at two bits each, followed by one zero word.
    words: Vec<u64>,
    bases: usize,
    /// Whether some codes are [`dna::NOT_A_BASE_CODE`].
    pub has_non_acgt: bool,
}

impl CodesAndPackedBases {
    /// Replaces the read by the bases `seq`: encodes and packs them with the widest vector instructions of the CPU.
    /// Bases whose quality byte is below `min_quality` become [`dna::NOT_A_BASE_CODE`]. `qual` must be as long as
    /// `seq`.
    #[inline]
    pub fn encode_bases(&mut self, seq: &[u8], qual: &[u8], min_quality: u8) {
        run_with_widest_simd(
            #[inline(always)]
            || self.encode_bases_without_dispatch(seq, qual, min_quality),
        );
    }

    /// Like [`CodesAndPackedBases::encode_bases`], without a choice of vector instructions.
    #[inline(always)]
    pub fn encode_bases_without_dispatch(&mut self, seq: &[u8], qual: &[u8], min_quality: u8) {
        self.bases = seq.len();
        let words = seq.len().div_ceil(WORD_BASES);
        self.codes.resize(words * WORD_BASES, 0);
        self.words.resize(words + 1, 0);
        let (codes, rest) = self.codes.split_at_mut(seq.len());
        let mut all = 0;
        for ((to, &base), &quality) in codes.iter_mut().zip(seq).zip(qual) {
            *to = encode_base(base, quality < min_quality);
            all |= *to;
        }
        rest.fill(0);
        self.has_non_acgt = all & dna::NOT_A_BASE_CODE > 0;
        for (word, bases) in self.words.iter_mut().zip(self.codes.as_chunks::<WORD_BASES>().0) {
            let [a, b, c, d] = std::array::from_fn(|i| {
                let mut eight = [0; 8];
                eight.copy_from_slice(&bases[8 * i..8 * i + 8]);
                pack_eight(eight)
            });
            *word = a << 48 | b << 32 | c << 16 | d;
        }
        self.words[words] = 0;
    }

    /// The two-bit code of each base, or [`dna::NOT_A_BASE_CODE`].
    pub fn codes(&self) -> &[u8] {
        &self.codes[..self.bases]
    }

    /// The bases at 2 bits each, and whether the read has bases other than A, C, G and T.
    pub fn packed_bases(&self) -> PackedBases<'_> {
        PackedBases { words: &self.words, has_non_acgt: self.has_non_acgt }
    }
}

/// [`dna::encode_base`] computed without a table; [`dna::NOT_A_BASE_CODE`] also if `refused`.
#[inline(always)]
fn encode_base(base: u8, refused: bool) -> u8 {
    let upper = base & !0x20;
    let known = (upper == b'A') | (upper == b'C') | (upper == b'G') | (upper == b'T');
    if known & !refused { ((upper >> 1) ^ (upper >> 2)) & 3 } else { dna::NOT_A_BASE_CODE }
}

/// Packs eight codes into two bits each, the first in the highest bits.
#[inline(always)]
fn pack_eight(codes: [u8; 8]) -> u64 {
    let mut word = u64::from_be_bytes(codes) & 0x0303_0303_0303_0303;
    word = (word | (word >> 6)) & 0x000f_000f_000f_000f;
    word = (word | (word >> 12)) & 0x0000_00ff_0000_00ff;
    (word | (word >> 24)) & 0xffff
}

/// The bases of a read at two bits each.
#[derive(Debug, Clone, Copy)]
pub struct PackedBases<'a> {
    words: &'a [u64],
    /// Whether some bases are not A, C, G or T. The two bits of these bases have no meaning.
    pub has_non_acgt: bool,
}

impl PackedBases<'_> {
    /// All words of 32 bases each, the first base in the highest bits. At least one zero word follows the bases.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        self.words
    }

    /// 32 bases from base `at` on, the first in the highest bits; bases after the last word are zero.
    #[inline(always)]
    pub fn word_from_base(&self, at: usize) -> u64 {
        let (i, shift) = (at / 32, 2 * (at % 32));
        let [here, next] = [i, i + 1].map(|i| self.words.get(i).copied().unwrap_or(0));
        // Shift in two steps, because a shift by 64 is undefined.
        (here << shift) | ((next >> 1) >> (63 - shift))
    }

    /// The 32 consecutive 16-mers that start at the bases `at`, `at + 1`, … `at + 31`, at 2 bits a base; the first base
    /// of a 16-mer is in its highest bits.
    #[inline(always)]
    pub fn next_32_sixteen_mers(&self, at: usize) -> [u32; WORD_BASES] {
        let (here, next) = (self.word_from_base(at), self.word_from_base(at + WORD_BASES));
        let halves = [(here >> 32) as u32, here as u32, (next >> 32) as u32];
        let mut sixteens = [0; WORD_BASES];
        for (to, half) in sixteens.as_chunks_mut::<HALF_WORD_BASES>().0.iter_mut().zip(halves.windows(2)) {
            for (i, to) in (0..).zip(to) {
                *to = (half[0] << (2 * i)) | (half[1] >> 1 >> (31 - 2 * i));
            }
        }
        sixteens
    }
}

/// Mask of the bits of a word that come after its first `bases` bases (at most 32).
#[inline(always)]
pub fn mask_of_bits_after_bases(bases: usize) -> u64 {
    // Shift in two steps, because a shift by 64 is undefined.
    u64::MAX >> bases >> bases
}

/// The reverse complement of 16 bases at two bits each.
#[inline(always)]
pub fn reverse_complement_16_bases(bases: u32) -> u32 {
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
    fn vector_and_scalar_coding_agree() {
        let all: Vec<u8> = (0..=255).collect();
        for seq in [&all[..], &random_bases(150, 1), &random_bases(31, 2), &random_bases(64, 3), b"", b"A"] {
            let qual: Vec<u8> = (0..seq.len()).map(|i| 33 + (i % 41) as u8).collect();
            for lowest in [0, 33 + 7] {
                let [mut wide, mut scalar] = [const {
                    CodesAndPackedBases { codes: Vec::new(), words: Vec::new(), bases: 0, has_non_acgt: true }
                }; 2];
                wide.encode_bases(seq, &qual, lowest);
                scalar.encode_bases_without_dispatch(seq, &qual, lowest);
                let code =
                    |(&base, &quality)| if quality < lowest { dna::NOT_A_BASE_CODE } else { dna::encode_base(base) };
                assert!(wide.codes().iter().copied().eq(seq.iter().zip(&qual).map(code)));
                assert_eq!(wide.has_non_acgt, wide.codes().contains(&dna::NOT_A_BASE_CODE));
                for (i, &code) in wide.codes().iter().enumerate() {
                    assert_eq!(wide.words[i / 32] >> (62 - 2 * (i % 32)) & 3, u64::from(code & 3), "base {i}");
                }
                assert_eq!(wide.words.len(), seq.len().div_ceil(32) + 1);
                assert!(
                    (wide.codes, wide.words, wide.has_non_acgt) == (scalar.codes, scalar.words, scalar.has_non_acgt)
                );
            }
        }
    }

    #[test]
    fn sixteen_mers_agree_with_words() {
        let seq = random_bases(150, 5);
        let mut codes = CodesAndPackedBases::default();
        codes.encode_bases(&seq, &seq, 0);
        for at in 0..160 {
            let all = codes.packed_bases().next_32_sixteen_mers(at);
            for (i, sixteen) in all.into_iter().enumerate() {
                assert_eq!(sixteen, (codes.packed_bases().word_from_base(at + i) >> 32) as u32, "base {at} + {i}");
            }
        }
        let opposite = dna::reverse_complement(&seq[40..56]);
        let mut reverse_complemented = CodesAndPackedBases::default();
        reverse_complemented.encode_bases(&opposite, &opposite, 0);
        assert_eq!(
            reverse_complement_16_bases(codes.packed_bases().next_32_sixteen_mers(40)[0]),
            reverse_complemented.packed_bases().next_32_sixteen_mers(0)[0]
        );
        assert_eq!([0, 1, 31, 32].map(mask_of_bits_after_bases), [u64::MAX, u64::MAX >> 2, 3, 0]);
    }
}
