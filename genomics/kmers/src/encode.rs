//! Encoding of sequences as k-mers of both strands, two bits per base, the first base in the highest bits.

use genuma_reads::dna;

/// A k-mer and its reverse complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KmerOnBothStrands {
    /// The k-mer on the strand of the sequence.
    pub forward: u64,
    /// The reverse complement of the k-mer.
    pub reverse: u64,
}

impl KmerOnBothStrands {
    /// Returns the canonical k-mer: the smaller number of both strands.
    #[inline]
    pub fn canonical(self) -> u64 {
        self.forward.min(self.reverse)
    }
}

/// Mask of the lowest `2 * k` bits, for `k` in 1..=32.
#[inline]
pub fn kmer_mask(k: u32) -> u64 {
    u64::MAX >> (64 - 2 * k)
}

/// Reverse complement of a packed sequence of `k` bases (1 to 32).
#[inline]
pub fn reverse_complement_kmer(word: u64, k: u32) -> u64 {
    let mut x = !word;
    x = ((x >> 2) & 0x3333_3333_3333_3333) | ((x & 0x3333_3333_3333_3333) << 2);
    x = ((x >> 4) & 0x0f0f_0f0f_0f0f_0f0f) | ((x & 0x0f0f_0f0f_0f0f_0f0f) << 4);
    x.swap_bytes() >> (64 - 2 * k)
}

/// Packs an ASCII sequence of at most 32 bases at 2 bits a base, the last in the lowest bits; `None` if a base is not
/// A, C, G or T in upper or lower case.
pub fn pack(seq: &[u8]) -> Option<u64> {
    seq.iter().try_fold(0u64, |w, &b| {
        let c = dna::encode_base(b);
        (c < 4).then_some((w << 2) | u64::from(c))
    })
}

/// ASCII sequence of a packed sequence of `k` bases.
pub fn unpack(word: u64, k: u32) -> Vec<u8> {
    (0..k).rev().map(|i| dna::decode_base((word >> (2 * i)) as u8 & 3)).collect()
}

/// Iterates over all k-mers of `seq` (ASCII) without a base other than A, C, G, T in upper or lower case; yields their
/// start and both strands.
pub fn kmers(seq: &[u8], k: u32) -> KmerIterator<'_> {
    KmerIterator { seq, k: k as usize, mask: kmer_mask(k), top: 2 * (k - 1), end: 0, bases: 0, forward: 0, reverse: 0 }
}

/// Iterator over the k-mers of a sequence ([`kmers`]).
#[derive(Debug, Clone)]
pub struct KmerIterator<'a> {
    seq: &'a [u8],
    k: usize,
    mask: u64,
    top: u32,
    /// Number of bases of the sequence that were read so far.
    end: usize,
    /// Number of consecutive A, C, G or T before `end`.
    bases: usize,
    forward: u64,
    reverse: u64,
}

impl Iterator for KmerIterator<'_> {
    type Item = (usize, KmerOnBothStrands);

    #[inline]
    fn next(&mut self) -> Option<(usize, KmerOnBothStrands)> {
        while let Some(&base) = self.seq.get(self.end) {
            self.end += 1;
            let code = u64::from(dna::encode_base(base));
            if code > 3 {
                self.bases = 0;
                continue;
            }
            self.forward = ((self.forward << 2) | code) & self.mask;
            self.reverse = (self.reverse >> 2) | ((3 - code) << self.top);
            self.bases += 1;
            if self.bases >= self.k {
                return Some((self.end - self.k, KmerOnBothStrands { forward: self.forward, reverse: self.reverse }));
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
                assert_eq!(Some(kmer.reverse), pack(&dna::reverse_complement(text)));
                assert_eq!(kmer.reverse, reverse_complement_kmer(kmer.forward, k));
                assert_eq!(unpack(kmer.forward, k), text);
                seen += 1;
            }
            let expected = seq.windows(k as usize).filter(|w| !w.contains(&b'N')).count();
            assert_eq!(seen, expected);
        }
    }
}
