//! The minimizer of every root of a sequence: the smallest hash among the root's canonical m-mers, so that both
//! strands of a root have the same one.

use crate::encode::mask;

/// Length of the m-mers a root is represented by: 11 from k = 24 on, about half a root below.
pub fn minimizer_length(k: u32) -> u32 {
    ((k - 2) / 2).min(11)
}

/// Finds minimizers; keeps its memory between sequences.
#[derive(Debug)]
pub struct Minimizers {
    m: u32,
    /// How many m-mers a root has.
    window: usize,
    hashes: Vec<u32>,
    spare: Vec<u32>,
}

impl Minimizers {
    /// For the roots of `k`-mers.
    pub fn new(k: u32) -> Self {
        let m = minimizer_length(k);
        Self { m, window: (k - 1 - m) as usize, hashes: Vec::new(), spare: Vec::new() }
    }

    /// One minimizer for each k-mer of `codes` (bases as 0..=3, at least k of them): that of the k-2 bases in its
    /// middle.
    pub fn of_roots(&mut self, codes: &[u8]) -> &[u32] {
        self.hash(&codes[1..codes.len() - 1]);
        self.slide();
        &self.hashes
    }

    /// Hashes of all canonical m-mers of `codes`.
    fn hash(&mut self, codes: &[u8]) {
        let (mask, top) = (mask(self.m) as u32, 2 * (self.m - 1));
        let (mut forward, mut reverse) = (0u32, 0u32);
        let mut roll = |code: u8| {
            forward = ((forward << 2) | u32::from(code)) & mask;
            reverse = (reverse >> 2) | ((3 - u32::from(code)) << top);
            scatter(forward.min(reverse))
        };
        let (lead, rest) = codes.split_at(self.m as usize - 1);
        for &code in lead {
            roll(code);
        }
        self.hashes.clear();
        self.hashes.extend(rest.iter().map(|&code| roll(code)));
    }

    /// Replaces each hash by the minimum of the window that starts at it, doubling the width in steps that the
    /// compiler turns into vector code.
    fn slide(&mut self) {
        let mut width = 1;
        while width < self.window {
            let step = width.min(self.window - width);
            self.spare.clear();
            let (near, far) = (&self.hashes, &self.hashes[step..]);
            self.spare.extend(near.iter().zip(far).map(|(&a, &b)| a.min(b)));
            std::mem::swap(&mut self.hashes, &mut self.spare);
            width += step;
        }
    }
}

/// An order of m-mers that is not the alphabet's: poly-A would otherwise be the minimizer of half the genome.
/// Different m-mers (m <= 16) get different hashes.
#[inline]
fn scatter(mmer: u32) -> u32 {
    (mmer ^ 0x2545_f491).wrapping_mul(0x9e37_79b1)
}

/// The bin, below `bins`, of all roots with this minimizer.
#[inline]
pub fn bin_of(minimizer: u32, bins: usize) -> usize {
    // Minimizers are small numbers by selection, so they are spread out again first.
    let spread = (minimizer ^ (minimizer >> 15)).wrapping_mul(0x85eb_ca77);
    ((u64::from(spread) * bins as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{pack, revcomp};
    use crate::tests::random_bases;
    use genuma_reads::dna;

    fn by_definition(root: &[u8], m: u32) -> u32 {
        let words = root.windows(m as usize).filter_map(pack);
        words.map(|w| scatter(w.min(revcomp(w, m)) as u32)).min().expect("a root has m-mers")
    }

    #[test]
    fn minimizers_are_those_of_the_definition_on_both_strands() {
        for k in [12, 13, 24, 25, 31, 32] {
            let mut minimizers = Minimizers::new(k);
            for len in [k as usize, k as usize + 1, 150] {
                let seq = random_bases(len, u64::from(k));
                let codes: Vec<u8> = seq.iter().map(|&b| dna::code(b)).collect();
                let other: Vec<u8> = codes.iter().rev().map(|&c| 3 - c).collect();
                let expected: Vec<u32> = (seq.windows(k as usize))
                    .map(|w| by_definition(&w[1..w.len() - 1], minimizer_length(k)))
                    .collect();
                assert_eq!(minimizers.of_roots(&codes), expected);
                let mut reversed = minimizers.of_roots(&other).to_vec();
                reversed.reverse();
                assert_eq!(reversed, expected);
            }
        }
    }

    #[test]
    fn bins_are_in_range_and_all_used() {
        for bins in [1, 3, 64, 1000] {
            let mut used = vec![0u32; bins];
            (0..100_000).for_each(|i| used[bin_of(scatter(i) >> 4, bins)] += 1);
            assert!(used.iter().all(|&n| n > 0));
        }
    }
}
