//! Search for the roots that match the sampling pattern, 64 positions at once.

use genuma_kmers::run_with_widest_simd;
use genuma_reads::packed_bases::{PackedBases, WORD_BASES};
use serde::{Deserialize, Serialize};

/// Pattern that sampled roots must match, from the innermost two bases outwards: bit i is set if exactly one of the two
/// bases at distance i is strong (C or G).
pub(super) const STRONG_BASE_PATTERN: u32 = 0b10_1100_1101;

/// Number of bits of the pattern. Higher sampling levels also require zero bits in a hash of the root.
pub(super) const PATTERN_BITS: u32 = 10;

/// Buffers of a search for the k-mers of both mates whose roots match the sampling pattern, 64 positions at once.
#[derive(Debug, Default)]
pub(super) struct PatternScan {
    /// Packed bases of both mates; zero words follow each mate.
    words: Vec<u64>,
    /// One bit per base, the highest bit first: whether the base is strong (C or G).
    strong: Vec<u64>,
    /// One bit per base, the highest bit first: whether a k-mer whose root matches the pattern starts there.
    matches: Vec<u64>,
    /// Number of words of `matches` that belong to read 1.
    first_mate_words: usize,
}

/// Number of 64-bit words that are processed together (SIMD lanes).
const SIMD_LANES: usize = 8;

impl PatternScan {
    /// Searches two mates with the given numbers of bases; the packed bases may be longer. The results are in
    /// `matches`.
    pub(super) fn scan_pair(&mut self, bases: [usize; 2], packed: [PackedBases<'_>; 2], root_bases: usize, level: u32) {
        self.words.clear();
        for (bases, packed) in bases.into_iter().zip(packed) {
            self.words.extend_from_slice(&packed.words()[..bases.div_ceil(WORD_BASES)]);
            let whole = self.words.len().next_multiple_of(2) + 2;
            self.words.resize(whole, 0);
        }
        self.first_mate_words = bases[0].div_ceil(2 * WORD_BASES) + 1;
        let PatternScan { words, strong, matches: fit, .. } = self;
        // The root of a k-mer starts one base after the k-mer.
        run_with_widest_simd(
            #[inline(always)]
            || scan_pattern(words, root_bases, 1, level, strong, fit),
        );
    }

    /// Returns the words of `matches` of each mate.
    pub(super) fn matches_by_mate(&self) -> [&[u64]; 2] {
        let (one, two) = self.matches.split_at(self.first_mate_words);
        [one, two]
    }
}

/// Searches the roots that match the first `level` bits of the sampling pattern. Writes one bit per base of `words` to
/// `matches`: whether such a root of `root_bases` bases starts `offset` bases (0 or 1) after this base.
#[inline(always)]
fn scan_pattern(
    words: &mut Vec<u64>,
    root_bases: usize,
    offset: u32,
    level: u32,
    strong: &mut Vec<u64>,
    matches: &mut Vec<u64>,
) {
    words.resize(words.len().next_multiple_of(2 * SIMD_LANES), 0);
    let all = words.len() / 2;
    strong.resize(all + 1, 0);
    matches.resize(all, 0);
    strong[all] = 0;
    let lanes = strong.as_chunks_mut::<SIMD_LANES>().0.iter_mut().zip(words.as_chunks::<{ 2 * SIMD_LANES }>().0);
    for (strong, words) in lanes {
        for i in 0..SIMD_LANES {
            strong[i] = strong_bits(words[2 * i]) << 32 | strong_bits(words[2 * i + 1]);
        }
    }
    for (at, matches) in matches.as_chunks_mut::<SIMD_LANES>().0.iter_mut().enumerate() {
        let (mut here, mut next) = ([0; SIMD_LANES], [0; SIMD_LANES]);
        here.copy_from_slice(&strong[at * SIMD_LANES..][..SIMD_LANES]);
        next.copy_from_slice(&strong[at * SIMD_LANES + 1..][..SIMD_LANES]);
        let mut fits = [u64::MAX; SIMD_LANES];
        for i in 0..level.min(PATTERN_BITS).min(root_bases as u32 / 2) {
            let (one, other) = (offset + root_bases as u32 / 2 - 1 - i, offset + (root_bases as u32).div_ceil(2) + i);
            let flip = if STRONG_BASE_PATTERN >> i & 1 == 1 { 0 } else { u64::MAX };
            for lane in 0..SIMD_LANES {
                // A shift by 64 bits is undefined, so the second word is shifted in two steps.
                let at = |from: u32| (here[lane] << from) | (next[lane] >> 1 >> (63 - from));
                fits[lane] &= at(one) ^ at(other) ^ flip;
            }
        }
        *matches = fits;
    }
}

/// Length of the roots of a sketch, and the number of pattern bits by which they were sampled. With these, the sampled
/// roots can be found in a reference without looking up each of its positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SketchRootSampling {
    /// Length of a root in bases.
    pub root_bases: u32,
    /// Sampling level: the roots match as many leading bits of the sampling pattern, but at most [`PATTERN_BITS`].
    pub(super) pattern_level: u32,
}

impl SketchRootSampling {
    /// Describes a sketch that contains all roots of `bases` bases.
    pub fn without_sampling(bases: u32) -> SketchRootSampling {
        SketchRootSampling { root_bases: bases, pattern_level: 0 }
    }

    /// Finds the positions in packed bases at which a sampled root may start. At levels above `PATTERN_BITS` other
    /// roots match, too. Writes one bit per position to `matches`, 64 to a word, the highest bit first: whether a root
    /// that matches the pattern starts there. Bits of roots that extend beyond the last base are undefined. `scratch`
    /// is memory that is reused between calls.
    pub fn find_pattern_matches(&self, packed: PackedBases<'_>, scratch: &mut [Vec<u64>; 2], matches: &mut Vec<u64>) {
        let [words, strong] = scratch;
        words.clear();
        words.extend_from_slice(packed.words());
        run_with_widest_simd(
            #[inline(always)]
            || scan_pattern(words, self.root_bases as usize, 0, self.pattern_level, strong, matches),
        );
    }
}

/// Returns one bit per base of a packed word of 32 bases: whether the base is strong (C or G).
#[inline(always)]
fn strong_bits(word: u64) -> u64 {
    // C = 01 and G = 10: their two bits differ.
    let mut x = (word ^ word >> 1) & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0xffff_ffff
}
