//! Minimizers: the m-mer of a k-mer with the smallest hash. The hash of an m-mer is that of the smaller of its two
//! strands.

use genuma_kmers::encode::{KmerOnBothStrands, kmer_mask, reverse_complement_kmer};

use crate::kmer_strings::KmerStrings;

/// Multiplier of the m-mer hash: 2^64 divided by the golden ratio, an odd number with well-mixed bits.
const MMER_HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// XORed with an m-mer before hashing, so that the m-mer of A only does not have the smallest hash.
const MMER_ORDER_MASK: u64 = 0x5d4c_3b2a_1908_f7e6;

/// Mask of the lowest bits of a hash. While hashes are compared, these bits contain the position of the m-mer in its
/// k-mer.
const POSITION_MASK: u64 = 31;

/// The minimizer of a k-mer: its hash and position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Minimizer {
    /// Hash of the m-mer, with the lowest five bits 0.
    pub(crate) hash: u64,
    /// Position of the first base of the m-mer, in the canonical k-mer or in the strings.
    pub(crate) at: u64,
}

/// Chooses the length of the minimizers for strings with `num_bases` bases in total, so that most minimizers occur at
/// few positions.
pub(crate) fn choose_minimizer_length(k: u32, num_bases: u64) -> u32 {
    let specific = num_bases.max(2).ilog2().div_ceil(2) + 1;
    specific.min(k - k / 4).max(1)
}

#[inline(always)]
fn hash_mmer(forward: u64, reverse: u64) -> u64 {
    (forward.min(reverse) ^ MMER_ORDER_MASK).wrapping_mul(MMER_HASH_MULTIPLIER) & !POSITION_MASK
}

/// Finds the minimizer of a k-mer, and its position in the canonical k-mer. Among equal m-mers, the first there.
#[inline]
pub(crate) fn find_minimizer(kmer: KmerOnBothStrands, k: u32, m: u32) -> Minimizer {
    let (forward, reverse) = (kmer.canonical(), kmer.forward.max(kmer.reverse));
    let (mmer_mask, last) = (kmer_mask(m), k - m);
    let mut least = u64::MAX;
    for at in 0..=last {
        let hash = hash_mmer(forward >> (2 * (last - at)) & mmer_mask, reverse >> (2 * at) & mmer_mask);
        least = least.min(hash | u64::from(at));
    }
    Minimizer { hash: least & !POSITION_MASK, at: least & POSITION_MASK }
}

/// Calls `each` for each k-mer of the strings, with its start, the k-mer and its minimizer. Positions are those in the
/// strings.
pub(crate) fn for_each_kmer_and_its_minimizer(
    strings: &KmerStrings,
    k: u32,
    m: u32,
    mut each: impl FnMut(u64, KmerOnBothStrands, Minimizer),
) {
    let mut window = MmerWindow::new(k, m);
    let mut start = 0;
    while let Some(end) = string_end(strings, start) {
        let forward = strings.kmer_at(start, k) >> 2;
        let mut kmer = KmerOnBothStrands { forward, reverse: reverse_complement_kmer(forward, k) };
        window.start_string(strings, start);
        for at in start..=end - u64::from(k) {
            kmer = crate::kmer_set::shift_base_into_kmer(kmer, strings.kmer_at(at + u64::from(k) - 1, 1), k);
            let (first, last) = window.move_to(kmer, at);
            each(at, kmer, if kmer.forward <= kmer.reverse { first } else { last });
        }
        start = end;
    }
}

/// Position after the last base of the string that begins at `start`; `None` at the end of all strings.
fn string_end(strings: &KmerStrings, start: u64) -> Option<u64> {
    let mut stretch = strings.range_in_one_string_around(start).filter(|_| start < strings.num_bases)?;
    while stretch.to < strings.num_bases
        && let Some(next) = strings.range_in_one_string_around(stretch.to).filter(|next| next.string == stretch.string)
    {
        stretch = next;
    }
    Some(stretch.to)
}

/// Hashes of all m-mers of a k-mer, updated while the k-mer moves along a string.
struct MmerWindow {
    k: u32,
    m: u32,
    /// Ring buffer: the hash of the m-mer at position `p` is at index `p % 32`.
    hashes: [u64; 32],
    /// Position of the first m-mer with the smallest hash; `last` is the position of the last one, `least` the hash.
    first: u64,
    last: u64,
    least: u64,
}

impl MmerWindow {
    fn new(k: u32, m: u32) -> MmerWindow {
        MmerWindow { k, m, hashes: [0; 32], first: 0, last: 0, least: u64::MAX }
    }

    /// Prepares the window for a string whose first k-mer begins at `start`: hashes all m-mers of this k-mer but the
    /// last.
    fn start_string(&mut self, strings: &KmerStrings, start: u64) {
        for at in start..start + u64::from(self.k - self.m) {
            let forward = strings.kmer_at(at, self.m);
            self.hashes[at as usize % 32] = hash_mmer(forward, reverse_complement_kmer(forward, self.m));
        }
        // Makes `move_to` look at all of them.
        self.first = start.wrapping_sub(1);
    }

    /// Moves the window by one base to the k-mer that begins at `at`. Returns the first and the last m-mer with the
    /// smallest hash.
    #[inline]
    fn move_to(&mut self, kmer: KmerOnBothStrands, at: u64) -> (Minimizer, Minimizer) {
        let end = at + u64::from(self.k - self.m);
        let newest = hash_mmer(kmer.forward & kmer_mask(self.m), kmer.reverse >> (2 * (self.k - self.m)));
        self.hashes[end as usize % 32] = newest;
        let left_behind = self.first.wrapping_add(1) == at;
        if left_behind {
            (self.first, self.last, self.least) = (at, at, self.hashes[at as usize % 32]);
            (at + 1..=end).for_each(|place| self.compare(place));
        } else {
            self.compare(end);
        }
        (Minimizer { hash: self.least, at: self.first }, Minimizer { hash: self.least, at: self.last })
    }

    #[inline]
    fn compare(&mut self, place: u64) {
        let hash = self.hashes[place as usize % 32];
        if hash < self.least {
            (self.first, self.last, self.least) = (place, place, hash);
        } else if hash == self.least {
            self.last = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use genuma_work::hash::mix_bits;

    use super::*;

    #[test]
    fn both_strands_and_the_window_agree() {
        for (k, m) in [(15, 11), (21, 7), (24, 13), (31, 5), (32, 20), (32, 3), (2, 2)] {
            let mut strings = KmerStrings::default();
            let mut state = 3u64;
            for string in 0..40u64 {
                strings.begin_string();
                for i in 0..u64::from(k) + string {
                    state = mix_bits(state + 1);
                    // Repeats of a few bases have the same m-mer in many places.
                    strings.push_base(if string % 3 == 0 { i % (1 + string % 5) % 4 } else { state & 3 });
                }
            }
            strings.complete_string_start_counts();
            let mut num_kmers = 0;
            for_each_kmer_and_its_minimizer(&strings, k, m, |start, kmer, minimizer| {
                let forward = strings.kmer_at(start, k);
                assert_eq!(kmer, KmerOnBothStrands { forward, reverse: reverse_complement_kmer(forward, k) });
                let found = find_minimizer(kmer, k, m);
                assert_eq!(
                    found,
                    find_minimizer(KmerOnBothStrands { forward: kmer.reverse, reverse: kmer.forward }, k, m)
                );
                let at = if kmer.forward <= kmer.reverse { found.at } else { u64::from(k - m) - found.at };
                assert_eq!(minimizer, Minimizer { hash: found.hash, at: start + at });
                num_kmers += 1;
            });
            assert_eq!(num_kmers, (0..40).map(|string| string + 1).sum::<u64>());
        }
    }
}
