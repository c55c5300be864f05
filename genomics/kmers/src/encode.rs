//! Sequence → k-mers, both strands at once, two bits a base (the first base in the highest bits).

use genuma_reads::dna;

/// One window of `k` bases: itself and its reverse complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kmer {
    /// The window as read.
    pub forward: u64,
    /// Its reverse complement.
    pub reverse: u64,
}

impl Kmer {
    /// The smaller of the two strands.
    #[inline]
    pub fn canonical(self) -> u64 {
        self.forward.min(self.reverse)
    }
}

/// Low `2 * k` bits set, for `k` in 1..=32.
#[inline]
pub fn mask(k: u32) -> u64 {
    u64::MAX >> (64 - 2 * k)
}

/// Reverse complement of a `k`-base word.
#[inline]
pub fn revcomp(word: u64, k: u32) -> u64 {
    let mut x = !word;
    x = ((x >> 2) & 0x3333_3333_3333_3333) | ((x & 0x3333_3333_3333_3333) << 2);
    x = ((x >> 4) & 0x0f0f_0f0f_0f0f_0f0f) | ((x & 0x0f0f_0f0f_0f0f_0f0f) << 4);
    x.swap_bytes() >> (64 - 2 * k)
}

/// The word of an ASCII sequence of at most 32 bases; `None` when one is not A, C, G or T.
pub fn pack(seq: &[u8]) -> Option<u64> {
    seq.iter().try_fold(0u64, |w, &b| {
        let c = dna::code(b);
        (c < 4).then_some((w << 2) | u64::from(c))
    })
}

/// The ASCII sequence of a `k`-base word.
pub fn unpack(word: u64, k: u32) -> Vec<u8> {
    (0..k).rev().map(|i| dna::base((word >> (2 * i)) as u8 & 3)).collect()
}

/// Every window of `k` bases without a foreign letter, with its start in `seq`.
pub fn kmers(seq: &[u8], k: u32) -> Kmers<'_> {
    Kmers { seq, k: k as usize, mask: mask(k), top: 2 * (k - 1), end: 0, bases: 0, forward: 0, reverse: 0 }
}

/// The iterator of [`kmers`].
#[derive(Debug, Clone)]
pub struct Kmers<'a> {
    seq: &'a [u8],
    k: usize,
    mask: u64,
    top: u32,
    /// One past the last base seen.
    end: usize,
    /// Bases since the last foreign letter.
    bases: usize,
    forward: u64,
    reverse: u64,
}

impl Iterator for Kmers<'_> {
    type Item = (usize, Kmer);

    #[inline]
    fn next(&mut self) -> Option<(usize, Kmer)> {
        while let Some(&base) = self.seq.get(self.end) {
            self.end += 1;
            let code = u64::from(dna::code(base));
            if code > 3 {
                self.bases = 0;
                continue;
            }
            self.forward = ((self.forward << 2) | code) & self.mask;
            self.reverse = (self.reverse >> 2) | ((3 - code) << self.top);
            self.bases += 1;
            if self.bases >= self.k {
                return Some((self.end - self.k, Kmer { forward: self.forward, reverse: self.reverse }));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_match_their_packed_text() {
        let seq = b"ACGTTGCANNACGATTTACGACGATCGACTACGACTAGCATCGACATCAG";
        for k in [1, 5, 24, 31, 32] {
            let mut seen = 0;
            for (at, kmer) in kmers(seq, k) {
                let text = &seq[at..at + k as usize];
                assert_eq!(Some(kmer.forward), pack(text));
                assert_eq!(Some(kmer.reverse), pack(&dna::revcomp(text)));
                assert_eq!(kmer.reverse, revcomp(kmer.forward, k));
                assert_eq!(unpack(kmer.forward, k), text);
                seen += 1;
            }
            let expected = seq.windows(k as usize).filter(|w| !w.contains(&b'N')).count();
            assert_eq!(seen, expected);
        }
    }
}
