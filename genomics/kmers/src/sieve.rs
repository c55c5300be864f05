//! Which parts of a sequence can hold any of some k-mers: those whose roots have the minimizer of one of them.
//!
//! A k-mer and the same k-mer in a read have the same root, and so the same minimizer, whichever strand is read. A read of 150
//! bases has some sixteen minimizers where it has 120 k-mers, and they are found in vectors; so one question to a filter answers for seven
//! k-mers, and nothing is missed.

use genuma_machine::processor::prefetch;
use genuma_reads::packed::Packed;
use genuma_reads::{Mate, dna};

use crate::MAX_K;
use crate::superkmer::{Cutter, SuperKmer};

/// Length of the minimizers: as long as a hash can be, so that few other places of a genome have the same. A root of 22 bases, the
/// shortest there is use for, still has seven of them.
const LENGTH: u32 = 16;

/// Bits of the filter for each minimizer in it, at least.
const BITS: usize = 16;

/// The minimizers of some k-mers.
#[derive(Debug)]
pub struct Sieve {
    k: u32,
    /// A Bloom filter, two bits of a word for each minimizer; a power of two of words.
    words: Vec<u64>,
    shift: u32,
}

/// What a thread needs to sift; keeps its memory between sequences.
#[derive(Debug)]
pub struct Sifter {
    cutter: Cutter,
    pieces: Vec<SuperKmer>,
}

/// Word and bits of a minimizer in a filter.
fn place(minimizer: u32, shift: u32) -> (usize, u64) {
    // Minimizers are small numbers by selection.
    let spread = u64::from(minimizer ^ (minimizer >> 15)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((spread >> shift) as usize, 1 << (spread & 63) | 1 << (spread >> 6 & 63))
}

impl Sieve {
    /// Lets the `kmers` through, of `k` bases (24 to 32), either strand of each.
    pub fn new(k: u32, kmers: impl Iterator<Item = u64>) -> Self {
        let mut sifter = Sifter::new(k);
        let mut minimizers = Vec::with_capacity(kmers.size_hint().0);
        let mut letters = [0; MAX_K as usize];
        let letters = &mut letters[..k as usize];
        for kmer in kmers {
            (0..)
                .zip(letters.iter_mut().rev())
                .for_each(|(i, letter)| *letter = dna::base((kmer >> (2 * i)) as u8 & 3));
            sifter.cutter.cut(Mate { seq: letters, qual: letters }, |piece| {
                // Neighbours mostly have the same.
                if minimizers.last() != Some(&piece.minimizer) {
                    minimizers.push(piece.minimizer);
                }
            });
        }
        minimizers.sort_unstable();
        minimizers.dedup();
        let words = (minimizers.len() * BITS / 64).next_power_of_two().max(16);
        let mut sieve = Self { k, words: vec![0; words], shift: 64 - words.trailing_zeros() };
        for minimizer in minimizers {
            let (word, bits) = place(minimizer, sieve.shift);
            sieve.words[word] |= bits;
        }
        sieve
    }

    /// Calls `each` with the stretches of `seq`, in order and apart from each other, that may hold one of the k-mers: all that do lie whole
    /// in one of them. Foreign letters are in none. Returns the packed bases.
    #[inline]
    pub fn sift<'a>(
        &self,
        seq: &[u8],
        sifter: &'a mut Sifter,
        mut each: impl FnMut(std::ops::Range<usize>),
    ) -> Packed<'a> {
        let Sifter { cutter, pieces } = sifter;
        pieces.clear();
        let packed = cutter.cut(Mate { seq, qual: seq }, |piece| {
            prefetch(&self.words[place(piece.minimizer, self.shift).0]);
            pieces.push(piece);
        });
        // First and last but one k-mer of what is let through.
        let mut open: Option<std::ops::Range<usize>> = None;
        let bases = |kmers: std::ops::Range<usize>| kmers.start..kmers.end + self.k as usize - 1;
        for piece in pieces {
            let (word, bits) = place(piece.minimizer, self.shift);
            if self.words[word] & bits != bits {
                continue;
            }
            let end = piece.start + piece.kmers;
            match &mut open {
                Some(kmers) if kmers.end == piece.start => kmers.end = end,
                _ => open.replace(piece.start..end).into_iter().for_each(|kmers| each(bases(kmers))),
            }
        }
        open.into_iter().for_each(|kmers| each(bases(kmers)));
        packed
    }
}

impl Sifter {
    /// For `k`-mers.
    pub fn new(k: u32) -> Self {
        Self { cutter: Cutter::with_minimizers(k, LENGTH.min(k - 2)), pieces: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::kmers;
    use crate::tests::random_bases;

    #[test]
    fn what_is_looked_for_lies_in_a_stretch_and_little_else_does() {
        for k in [24, 31, 32] {
            let mut seq = random_bases(200_000, u64::from(k));
            seq[777] = b'N';
            seq[5_000..5_040].fill(b'A');
            let all: Vec<(usize, u64)> = kmers(&seq, k).map(|(at, kmer)| (at, kmer.canonical())).collect();
            let wanted: Vec<(usize, u64)> = all.iter().copied().step_by(701).collect();
            let sieve = Sieve::new(k, wanted.iter().map(|w| w.1));
            for turned in [false, true] {
                let read = if turned { dna::revcomp(&seq) } else { seq.clone() };
                let mut sifter = Sifter::new(k);
                let mut stretches = Vec::new();
                sieve.sift(&read, &mut sifter, |stretch| stretches.push(stretch));
                assert!(stretches.windows(2).all(|two| two[0].start < two[1].start));
                for &(at, _) in &wanted {
                    let at = if turned { seq.len() - at - k as usize } else { at };
                    let within = |s: &std::ops::Range<usize>| s.start <= at && at + k as usize <= s.end;
                    assert!(stretches.iter().any(within), "k {k}, {at}, turned {turned}");
                }
                let sifted: usize = stretches.iter().map(|s| s.len() + 1 - k as usize).sum();
                assert!(sifted * 20 < seq.len(), "{sifted} k-mers of {}", seq.len());
                assert!(stretches.iter().all(|s| !read[s.clone()].contains(&b'N')));
            }
        }
        let nothing = Sieve::new(31, std::iter::empty());
        nothing.sift(&random_bases(10_000, 1), &mut Sifter::new(31), |_| panic!("nothing is looked for"));
    }
}
