//! The minimizer of every root of a sequence: the smallest hash among the root's canonical m-mers, so that both
//! strands of a root have the same one.

use crate::encode::mask;
use crate::native;

/// Length of the m-mers a root is represented by: 11 from k = 24 on, about half a root below.
pub fn minimizer_length(k: u32) -> u32 {
    ((k - 2) / 2).min(11)
}

/// Lanes of the loops below: a multiple of what any vector has, so that they have no remainders.
const LANES: usize = 32;

/// Finds minimizers; keeps its memory between sequences.
#[derive(Debug)]
pub struct Minimizers {
    m: usize,
    /// How many m-mers a root has.
    window: usize,
    /// Roots of the last sequence.
    roots: usize,
    /// Numbers of the lanes in use, and some more: first m-mers, in the end minimizers.
    forward: Vec<u32>,
    reverse: Vec<u32>,
    spare: Vec<u32>,
    /// Bit `i % LANES` of number `i / LANES`: root `i + 1` has another minimizer than root `i`.
    changes: Vec<u32>,
}

impl Minimizers {
    /// For the roots of `k`-mers.
    pub fn new(k: u32) -> Self {
        let m = minimizer_length(k);
        let [forward, reverse, spare, changes] = [const { Vec::new() }; 4];
        let (m, window) = (m as usize, (k - 1 - m) as usize);
        Self { m, window, roots: 0, forward, reverse, spare, changes }
    }

    /// Finds a minimizer for each k-mer of `codes` (bases as 0..=3, at least k of them): that of the k-2 bases in its
    /// middle. Calls `each` with the minimizer, the first k-mer and the number of k-mers of every run that shares one.
    #[inline]
    pub fn for_each_run(&mut self, codes: &[u8], mut each: impl FnMut(u32, usize, usize)) {
        native::find(self, &codes[1..codes.len() - 1]);
        let mut start = 0;
        for (i, &changes) in self.changes.iter().enumerate() {
            let mut left = changes;
            while left != 0 {
                let end = i * LANES + left.trailing_zeros() as usize + 1;
                each(self.forward[start], start, end - start);
                start = end;
                left &= left - 1;
            }
        }
        each(self.forward[start], start, self.roots - start);
    }

    /// Fills `forward` with minimizers and `changes` with where they change. The m-mers of `codes` are put together, and
    /// the smallest hashes found, by doubling what each lane spans.
    #[inline(always)]
    pub(crate) fn find_scalar(&mut self, codes: &[u8]) {
        let Self { m, window, roots, forward, reverse, spare, changes } = self;
        *roots = codes.len() + 2 - *m - *window;
        // What is wanted, whole lanes, and what the widest step reaches beyond.
        let lanes = codes.len().next_multiple_of(LANES);
        for numbers in [&mut *forward, reverse, spare] {
            if numbers.len() < lanes + LANES {
                numbers.resize(lanes + LANES, 0);
            }
        }
        for ((forward, reverse), &code) in forward.iter_mut().zip(reverse.iter_mut()).zip(codes) {
            *forward = u32::from(code);
            *reverse = 3 - u32::from(code);
        }
        let mut width = 1;
        while width < *m {
            let step = width.min(*m - width);
            let (up, low) = (2 * step as u32, mask(step as u32) as u32);
            combine(forward, spare, lanes, step, |near, far| (near << up) | (far & low));
            std::mem::swap(forward, spare);
            let (down, up) = (2 * (width - step) as u32, 2 * width as u32);
            combine(reverse, spare, lanes, step, |near, far| near | ((far >> down) << up));
            std::mem::swap(reverse, spare);
            width += step;
        }
        for (forward, reverse) in forward[..lanes].iter_mut().zip(&reverse[..lanes]) {
            *forward = scatter((*forward).min(*reverse));
        }
        let mut width = 1;
        while width < *window {
            let step = width.min(*window - width);
            combine(forward, spare, lanes, step, |near, far| near.min(far));
            std::mem::swap(forward, spare);
            width += step;
        }
        changes.clear();
        let (words, last) = ((*roots - 1) / LANES, (*roots - 1) % LANES);
        for i in 0..=words {
            let near: &[u32; LANES] = forward[i * LANES..].first_chunk().expect("lanes");
            let far: &[u32; LANES] = forward[i * LANES + 1..].first_chunk().expect("lanes");
            let mut differ = [0; LANES];
            for lane in 0..LANES {
                differ[lane] = u8::from(near[lane] != far[lane]);
            }
            // Eight bytes of 0 or 1 become as many bits.
            let bits = |eight: &[u8; 8]| {
                (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
            };
            let change = (differ.as_chunks().0.iter().rev()).fold(0, |all, eight| (all << 8) | bits(eight));
            changes.push(change);
        }
        changes[words] &= (1 << last) - 1;
    }
}

/// Sets each of the first `lanes` numbers of `to` to `join` of two of `from`, `step` apart.
#[inline(always)]
fn combine(from: &[u32], to: &mut [u32], lanes: usize, step: usize, join: impl Fn(u32, u32) -> u32) {
    for at in (0..lanes).step_by(LANES) {
        let near: &[u32; LANES] = from[at..].first_chunk().expect("lanes");
        let far: &[u32; LANES] = from[at + step..].first_chunk().expect("lanes");
        let to: &mut [u32; LANES] = to[at..].first_chunk_mut().expect("lanes");
        for lane in 0..LANES {
            to[lane] = join(near[lane], far[lane]);
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

    /// One minimizer for each root.
    fn of_roots(minimizers: &mut Minimizers, codes: &[u8]) -> Vec<u32> {
        let (mut found, mut last) = (Vec::new(), None);
        minimizers.for_each_run(codes, |minimizer, start, roots| {
            assert_eq!(start, found.len());
            assert!(roots > 0 && last.replace(minimizer) != Some(minimizer));
            found.extend(std::iter::repeat_n(minimizer, roots));
        });
        found
    }

    #[test]
    fn minimizers_are_those_of_the_definition_on_both_strands() {
        for k in [12, 13, 24, 25, 31, 32] {
            let mut minimizers = Minimizers::new(k);
            for len in (k as usize..k as usize + 70).chain([150, 1000, 151]) {
                let seq = random_bases(len, u64::from(k));
                let codes: Vec<u8> = seq.iter().map(|&b| dna::code(b)).collect();
                let other: Vec<u8> = codes.iter().rev().map(|&c| 3 - c).collect();
                let expected: Vec<u32> = (seq.windows(k as usize))
                    .map(|w| by_definition(&w[1..w.len() - 1], minimizer_length(k)))
                    .collect();
                assert_eq!(of_roots(&mut minimizers, &codes), expected, "k {k}, {len} bases");
                let (forward, changes) = (minimizers.forward.clone(), minimizers.changes.clone());
                minimizers.find_scalar(&codes[1..len - 1]);
                assert!(
                    minimizers.forward[..expected.len()] == forward[..expected.len()]
                        && minimizers.changes == changes
                );
                let mut reversed = of_roots(&mut minimizers, &other);
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
