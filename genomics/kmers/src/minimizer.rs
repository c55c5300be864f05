//! Finds the minimizer of each root of a sequence: the smallest hash of the canonical m-mers of the root. It is the
//! same on both strands.

use genuma_machine::simd_and_prefetch::SimdLevel;
use genuma_reads::packed_bases::{PackedBases, WORD_BASES, reverse_complement_16_bases};

/// Length m of minimizers for k-mers of length `k`: 11 from k = 24 on, about half a root for smaller k.
pub(crate) fn minimizer_length(k: u32) -> u32 {
    ((k - 2) / 2).min(11)
}

/// Number of lanes of the vector loops: a multiple of any vector width, so that no loop has a remainder.
const LANES: usize = WORD_BASES;

/// Finds the minimizers of sequences; holds reusable buffers.
#[derive(Debug)]
pub(crate) struct MinimizerFinder {
    level: SimdLevel,
    m: usize,
    /// Number of m-mers of a root.
    window: usize,
    /// Number of roots of the last sequence that was searched.
    roots: usize,
    /// At first the hash of the m-mer at each position, in the end the minimizer of the root at each position.
    hashes: Vec<u32>,
    scratch: Vec<u32>,
    /// Entry `i` is 1 if root `i + 1` has another minimizer than root `i`, and 0 otherwise; padded with zeros to a
    /// multiple of [`LANES`].
    changes: Vec<u8>,
}

impl MinimizerFinder {
    /// Finder for the roots of `k`-mers with minimizers of [`minimizer_length`] bases, which uses vector instructions
    /// of `level`.
    pub(crate) fn for_kmer_length(k: u32, level: SimdLevel) -> Self {
        Self::with_minimizer_length(k, minimizer_length(k), level)
    }

    /// Finder for the roots of `k`-mers with minimizers of `m` bases (at most 16 and k−2), which uses vector
    /// instructions of `level`.
    pub(crate) fn with_minimizer_length(k: u32, m: u32, level: SimdLevel) -> Self {
        let (m, window) = (m as usize, (k - 1 - m) as usize);
        Self { level, m, window, roots: 0, hashes: Vec::new(), scratch: Vec::new(), changes: Vec::new() }
    }

    /// Finds the minimizer of the root of each k-mer in the `bases` (at least k) bases from `start` on. Calls `each`
    /// for each run of k-mers with the same minimizer: with the minimizer, the number of the first k-mer (from 0 at
    /// `start`) and the number of k-mers.
    #[inline]
    pub(crate) fn for_each_minimizer_run(
        &mut self,
        read: &PackedBases<'_>,
        start: usize,
        bases: usize,
        mut each: impl FnMut(u32, usize, usize),
    ) {
        self.level.run_at_level(
            #[inline(always)]
            || self.find_scalar(read, start + 1, bases - 2),
        );
        let mut start = 0;
        for (i, &changes) in self.changes.as_chunks().0.iter().enumerate() {
            // One byte for each root.
            let mut left = u64::from_le_bytes(changes);
            while left != 0 {
                let end = i * size_of::<u64>() + left.trailing_zeros() as usize / 8 + 1;
                each(self.hashes[start], start, end - start);
                start = end;
                left &= left - 1;
            }
        }
        each(self.hashes[start], start, self.roots - start);
    }

    /// Fills `hashes` with minimizers and `changes` with the positions where they change. The minimum of a window is
    /// found by doubling the window of each position.
    #[inline(always)]
    fn find_scalar(&mut self, read: &PackedBases<'_>, start: usize, bases: usize) {
        let Self { m, window, roots, hashes, scratch: spare, changes, .. } = self;
        *roots = bases + 2 - *m - *window;
        // Whole blocks of lanes, plus the reach of the widest step.
        let lanes = (bases + 1 - *m).next_multiple_of(LANES);
        for numbers in [&mut *hashes, spare] {
            if numbers.len() < lanes + LANES {
                numbers.resize(lanes + LANES, 0);
            }
        }
        let unused = 32 - 2 * *m as u32;
        for (at, hashes) in (start..).step_by(LANES).zip(hashes[..lanes].as_chunks_mut::<LANES>().0) {
            // Only the first m of the 16 bases from each position count.
            for (hash, bases) in hashes.iter_mut().zip(read.next_32_sixteen_mers(at)) {
                *hash = hash_mmer((bases >> unused).min(reverse_complement_16_bases(bases) << unused >> unused));
            }
        }
        let mut width = 1;
        while width < *window {
            let step = width.min(*window - width);
            pairwise_min(hashes, spare, lanes, step);
            std::mem::swap(hashes, spare);
            width += step;
        }
        let last_root = *roots - 1;
        changes.resize(roots.next_multiple_of(LANES), 0);
        for (block, differ) in changes.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let near: &[u32; LANES] = hashes[block * LANES..].first_chunk().expect("lanes");
            let far: &[u32; LANES] = hashes[block * LANES + 1..].first_chunk().expect("lanes");
            for lane in 0..LANES {
                differ[lane] = u8::from(near[lane] != far[lane]);
            }
        }
        changes[last_root..].fill(0);
    }
}

/// Sets each of the first `lanes` entries of `to` to the smaller of two entries of `from` at distance `step`.
#[inline(always)]
fn pairwise_min(from: &[u32], to: &mut [u32], lanes: usize, step: usize) {
    for at in (0..lanes).step_by(LANES) {
        let near: &[u32; LANES] = from[at..].first_chunk().expect("lanes");
        let far: &[u32; LANES] = from[at + step..].first_chunk().expect("lanes");
        let to: &mut [u32; LANES] = to[at..].first_chunk_mut().expect("lanes");
        for lane in 0..LANES {
            to[lane] = near[lane].min(far[lane]);
        }
    }
}

/// Hash of an m-mer (m ≤ 16), a bijection. In alphabetical order poly-A would be the minimizer of too many roots.
#[inline]
fn hash_mmer(mmer: u32) -> u32 {
    (mmer ^ 0x2545_f491).wrapping_mul(0x9e37_79b1)
}

/// Index of the bin, below `bins`, of all roots with this minimizer.
#[inline]
pub(crate) fn bin_of_minimizer_hash(minimizer: u32, bins: usize) -> usize {
    // Minimizers are small numbers by selection, so they are hashed again.
    let spread = (minimizer ^ (minimizer >> 15)).wrapping_mul(0x85eb_ca77);
    ((u64::from(spread) * bins as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{pack, reverse_complement_kmer};
    use crate::tests::random_bases;
    use genuma_reads::dna;
    use genuma_reads::packed_bases::CodesAndPackedBases;

    fn by_definition(root: &[u8], m: u32) -> u32 {
        let words = root.windows(m as usize).filter_map(pack);
        words.map(|w| hash_mmer(w.min(reverse_complement_kmer(w, m)) as u32)).min().expect("a root has m-mers")
    }

    /// The minimizer of each root of the bases from `start` on.
    fn of_roots(minimizers: &mut MinimizerFinder, read: &CodesAndPackedBases, start: usize, bases: usize) -> Vec<u32> {
        let (mut found, mut last) = (Vec::new(), None);
        minimizers.for_each_minimizer_run(&read.packed_bases(), start, bases, |minimizer, first, roots| {
            assert_eq!(first, found.len());
            assert!(roots > 0 && last.replace(minimizer) != Some(minimizer));
            found.extend(std::iter::repeat_n(minimizer, roots));
        });
        found
    }

    fn loaded(seq: &[u8]) -> CodesAndPackedBases {
        let mut codes = CodesAndPackedBases::default();
        codes.encode_bases_without_dispatch(seq, seq, 0);
        codes
    }

    #[test]
    fn minimizers_match_their_definition_on_both_strands() {
        for k in [12, 13, 24, 25, 31, 32] {
            let level = SimdLevel::widest_available();
            let mut minimizers = MinimizerFinder::for_kmer_length(k, level);
            for len in (k as usize..k as usize + 70).chain([150, 1000, 151]) {
                let seq = random_bases(len, u64::from(k));
                let expected: Vec<u32> =
                    (seq.windows(k as usize)).map(|w| by_definition(&w[1..w.len() - 1], minimizer_length(k))).collect();
                let read = loaded(&seq);
                assert_eq!(of_roots(&mut minimizers, &read, 0, len), expected, "k {k}, {len} bases");
                let roots = ..expected.len();
                let (hashes, changes) = (minimizers.hashes[roots].to_vec(), minimizers.changes.clone());
                minimizers.find_scalar(&read.packed_bases(), 1, len - 2);
                assert!(minimizers.hashes[roots] == hashes && minimizers.changes == changes);

                let other = loaded(&dna::reverse_complement(&seq));
                let mut reversed = of_roots(&mut minimizers, &other, 0, len);
                reversed.reverse();
                assert_eq!(reversed, expected);
                // The longest length that fits a hash.
                let m = (k - 2).min(16);
                let longer: Vec<u32> = seq.windows(k as usize).map(|w| by_definition(&w[1..w.len() - 1], m)).collect();
                assert_eq!(
                    of_roots(&mut MinimizerFinder::with_minimizer_length(k, m, level), &read, 0, len),
                    longer,
                    "{m}"
                );
                let start = (len - k as usize) / 2;
                assert_eq!(of_roots(&mut minimizers, &read, start, len - start), expected[start..]);
            }
        }
    }

    #[test]
    fn bins_are_in_range_and_all_used() {
        for bins in [1, 3, 64, 1000] {
            let mut used = vec![0u32; bins];
            (0..100_000).for_each(|i| used[bin_of_minimizer_hash(hash_mmer(i) >> 4, bins)] += 1);
            assert!(used.iter().all(|&n| n > 0));
        }
    }
}
