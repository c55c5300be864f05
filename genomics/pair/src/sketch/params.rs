//! Parameters of a k-mer sketch, and the sampling level of a k-mer.

use serde::{Deserialize, Serialize};

use super::hash_key;
use super::pattern::{PATTERN_BITS, STRONG_BASE_PATTERN};

/// Parameters of a sketch: k-mer length, minimum base qualities and maximum number of k-mers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SketchParams {
    /// Length of the k-mers, 12 to 32.
    pub k: u32,
    /// Minimum Phred quality of the bases of the root, and of the first and last base of the k-mer. The latter are
    /// compared between the samples.
    pub min_quality: [u8; 2],
    /// Maximum number of k-mers of a sketch if the reads have up to 41 million k-mers (see [`SMALL_GENOME_KMERS`]). In
    /// such a small genome the sketch contains a large share of all roots. For larger genomes the limit doubles with
    /// each further sampling level.
    pub max_kmers_small_genome: usize,
    /// Upper limit of the number of k-mers of a sketch for any genome. A k-mer takes 30 to 45 bytes of memory.
    pub max_kmers: usize,
}

/// Number of distinct k-mers of the reads up to which [`SketchParams::max_kmers_small_genome`] is the limit.
const SMALL_GENOME_KMERS: usize = 40_960_000;

impl SketchParams {
    /// Length of a root in bases, k−2.
    pub(super) fn num_root_bases(&self) -> usize {
        self.k as usize - 2
    }

    /// Maximum number of k-mers of a sketch at a sampling level.
    pub(super) fn max_kmers_at_level(&self, level: u32) -> usize {
        let free = (SMALL_GENOME_KMERS / self.max_kmers_small_genome.max(1)).max(1).ilog2();
        self.max_kmers_small_genome.saturating_mul(1 << level.saturating_sub(free).min(31)).min(self.max_kmers)
    }

    /// Maximum number of k-mers of the sketch of a genome of `genome_bases` bases.
    pub fn max_kmers_for_genome(&self, genome_bases: u64) -> u64 {
        let held = |level: u32| genome_bases >> level <= self.max_kmers_at_level(level) as u64;
        let level = (0..64).find(|&level| held(level)).unwrap_or(64);
        (self.max_kmers_at_level(level) as u64).min(genome_bases)
    }

    /// Highest sampling level at which a k-mer is kept: number of leading bits of the pattern that its root matches; if
    /// all bits match, plus the number of leading zero bits of a hash of the root.
    #[inline(always)]
    pub(super) fn sampling_level_of_key(&self, key: u64) -> u32 {
        let (root, bases) = (key >> 4, self.num_root_bases());
        let strong = |at: usize| (root >> (2 * at) ^ root >> (2 * at + 1)) & 1;
        let inner = bases / 2;
        for i in 0..PATTERN_BITS.min(inner as u32) {
            let differ = strong(inner - 1 - i as usize) ^ strong(bases.div_ceil(2) + i as usize);
            if differ != u64::from(STRONG_BASE_PATTERN >> i & 1) {
                return i;
            }
        }
        PATTERN_BITS.min(inner as u32) + hash_key(root.wrapping_mul(0xd6e8_feb8_6659_fd93)).leading_zeros()
    }
}
