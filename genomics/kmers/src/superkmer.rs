//! Super-k-mers: runs of k-mers whose roots share a minimizer, stored as one sequence.
//!
//! A record starts with a byte that holds the sample in its three highest bits and the number of k-mers minus one in
//! the others. The bases follow, four per byte, the first in the highest bits; unused bits of the last byte are zero.

use genuma_machine::simd_and_prefetch::SimdLevel;
use genuma_reads::packed_bases::{CodesAndPackedBases, PackedBases, WORD_BASES, mask_of_bits_after_bases};
use genuma_reads::{Mate, dna};

use crate::encode::{kmer_mask, reverse_complement_kmer};
use crate::minimizer::MinimizerFinder;

/// Number of bits of the first byte that hold the number of k-mers minus one; the others hold the sample.
const KMER_BITS: u32 = 5;

/// Maximum number of k-mers of a record: longer runs with one minimizer are rare, and the bases fit 128 bits.
pub(crate) const MAX_KMERS_PER_RECORD: usize = 1 << KMER_BITS;

/// Size in bytes of the longest record: 32 k-mers of 32 bases.
pub(crate) const MAX_RECORD_BYTES: usize = record_bytes(MAX_KMERS_PER_RECORD, 32);

/// Size in bytes of a record of `kmers` k-mers.
pub(crate) const fn record_bytes(kmers: usize, k: u32) -> usize {
    1 + (kmers + k as usize - 1).div_ceil(4)
}

/// A super-k-mer of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SuperKmer {
    /// Minimizer (hash) of all its roots.
    pub(crate) minimizer: u32,
    /// Position of its first base in the read.
    pub start: usize,
    /// Number of k-mers, 1..=[`MAX_KMERS_PER_RECORD`].
    pub kmers: usize,
}

/// Packs reads at 2 bits a base; holds reusable buffers. Bases of low quality are masked like N, so that no k-mer
/// contains them.
#[derive(Debug)]
pub(crate) struct QualityMaskingPacker {
    /// Minimum quality character (Phred + 33) of a base.
    min_letter: u8,
    read: CodesAndPackedBases,
}

impl QualityMaskingPacker {
    /// Packer that masks bases below the Phred quality `min_base_quality`.
    pub(crate) fn with_min_base_quality(min_base_quality: u8) -> Self {
        // Quality 0 accepts every letter, even an invalid one.
        let lowest = if min_base_quality == 0 { 0 } else { min_base_quality.saturating_add(33) };
        Self { min_letter: lowest, read: CodesAndPackedBases::default() }
    }

    /// Packs the bases of a mate; those below the minimum quality are masked.
    #[inline]
    pub(crate) fn pack_and_mask_read(&mut self, mate: Mate<'_>) -> &CodesAndPackedBases {
        self.read.encode_bases(mate.seq, mate.qual, self.min_letter);
        &self.read
    }
}

/// Cuts reads into super-k-mers; holds reusable buffers.
#[derive(Debug)]
pub(crate) struct SuperKmerCutter {
    k: usize,
    minimizers: MinimizerFinder,
}

impl SuperKmerCutter {
    /// Cutter for `k`-mers that uses vector instructions of `level`.
    pub(crate) fn for_kmer_length(k: u32, level: SimdLevel) -> Self {
        Self { k: k as usize, minimizers: MinimizerFinder::for_kmer_length(k, level) }
    }

    /// Calls `emit` with each super-k-mer of the read, in order.
    #[inline]
    pub(crate) fn cut_into_super_kmers(&mut self, read: &CodesAndPackedBases, mut emit: impl FnMut(SuperKmer)) {
        let Self { k, minimizers } = self;
        let packed = read.packed_bases();
        let mut whole = |at: usize, bases: usize| {
            if bases < *k {
                return;
            }
            minimizers.for_each_minimizer_run(&packed, at, bases, |minimizer, first, roots| {
                for done in (0..roots).step_by(MAX_KMERS_PER_RECORD) {
                    let kmers = MAX_KMERS_PER_RECORD.min(roots - done);
                    emit(SuperKmer { minimizer, start: at + first + done, kmers });
                }
            });
        };
        if read.has_non_acgt {
            let mut at = 0;
            for run in read.codes().split(|&c| c == dna::NOT_A_BASE_CODE) {
                whole(at, run.len());
                at += run.len() + 1;
            }
        } else {
            whole(0, read.codes().len());
        }
    }
}

impl SuperKmer {
    /// Writes the record at the start of `out`, at least [`MAX_RECORD_BYTES`] bytes, and returns its length. `read` is
    /// the packed read of the super-k-mer.
    #[inline]
    pub(crate) fn write_record(self, read: PackedBases<'_>, k: u32, sample: u8, out: &mut [u8]) -> usize {
        let bases = self.kmers + k as usize - 1;
        let [first, second] = [0, WORD_BASES].map(|from| {
            read.word_from_base(self.start + from)
                & !mask_of_bits_after_bases(bases.saturating_sub(from).min(WORD_BASES))
        });
        out[0] = (sample << KMER_BITS) | (self.kmers - 1) as u8;
        out[1..9].copy_from_slice(&first.to_be_bytes());
        out[9..17].copy_from_slice(&second.to_be_bytes());
        record_bytes(self.kmers, k)
    }
}

const _: () = assert!(MAX_RECORD_BYTES == 17);

/// A super-k-mer as a bin stores it: sample, number of k-mers, and packed bases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SuperKmerRecord<'a> {
    /// Number of the sample that the read is from; in a call 0 for the normal, 1 and up for tumours.
    pub sample: usize,
    /// Number of k-mers, 1..=[`MAX_KMERS_PER_RECORD`].
    pub kmers: usize,
    /// The packed bases; more bytes may follow.
    pub bases: &'a [u8],
}

/// Number of k-mers of a record, decoded from its first byte.
#[inline]
pub(crate) fn decode_num_kmers(head: u8) -> usize {
    usize::from(head) % MAX_KMERS_PER_RECORD + 1
}

/// Number of the sample of a record, decoded from its first byte.
#[inline]
pub(crate) fn decode_sample(head: u8) -> u8 {
    head >> KMER_BITS
}

/// Iterates over the records in `bytes`, which must be complete.
pub(crate) fn super_kmer_records(bytes: &[u8], k: u32) -> impl Iterator<Item = SuperKmerRecord<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&head, bases) = rest.split_first()?;
        let kmers = decode_num_kmers(head);
        let record = SuperKmerRecord { sample: usize::from(decode_sample(head)), kmers, bases };
        rest = &rest[record_bytes(kmers, k)..];
        Some(record)
    })
}

impl SuperKmerRecord<'_> {
    /// Returns all bases in one word, the first in the highest bits and zeros after the last, on the strand that gives
    /// the smaller number.
    #[inline]
    pub(crate) fn canonical_bases_as_word(&self, k: u32) -> u128 {
        let unused = 128 - 2 * (self.kmers as u32 + k - 1);
        let word = (u128::from(load(self.bases, 0)) << 64) | u128::from(load(self.bases, 8.min(self.bases.len())));
        let word = (word >> unused) << unused;
        word.min(revcomp_word(word) << unused)
    }
}

/// Buffer for the keys of the k-mers of a super-k-mer.
#[derive(Debug, Default)]
pub(crate) struct KmerKeyBuffer([u64; MAX_KMERS_PER_RECORD]);

impl KmerKeyBuffer {
    /// Returns the keys of the `kmers` k-mers of a word ([`SuperKmerRecord::canonical_bases_as_word`]), in any order.
    ///
    /// The key of a k-mer is `root << 4 | first << 2 | last` on the strand that gives the smaller key. The root
    /// decides, unless it is its own reverse complement; then the strand with the smaller pair of outer bases is
    /// taken, so that each canonical k-mer has one key.
    #[inline]
    pub(crate) fn compute_keys(&mut self, word: u128, kmers: usize, k: u32) -> &[u64] {
        self.compute_keys_at_simd_level(SimdLevel::widest_available(), word, kmers, k)
    }

    /// Same as [`Self::compute_keys`], with given vector instructions.
    #[inline]
    pub(crate) fn compute_keys_at_simd_level(
        &mut self,
        vectors: SimdLevel,
        word: u128,
        kmers: usize,
        k: u32,
    ) -> &[u64] {
        let keys = &mut self.0;
        vectors.run_at_level(
            #[inline(always)]
            || keys_scalar(keys, word, kmers, k),
        );
        &self.0[..kmers]
    }
}

/// Number of lanes of the vector loop.
const LANES: usize = 8;

/// Writes the keys of the first `kmers` k-mers.
#[inline(always)]
fn keys_scalar(keys: &mut [u64; MAX_KMERS_PER_RECORD], word: u128, kmers: usize, k: u32) {
    let root_mask = kmer_mask(k - 2);
    let halves = |word: u128| ((word >> 64) as u64, word as u64);
    let (forward, reverse) = (halves(word), halves(revcomp_word(word) << (128 - 2 * (kmers as u32 + k - 1))));
    // Key of the k bases from base `at` on.
    let key = |(high, low): (u64, u64), at: u64| {
        let kmer = ((high << (2 * at)) | (low >> 1 >> (63 - 2 * at))) >> (64 - 2 * k);
        (((kmer >> 2) & root_mask) << 4) | ((kmer >> (2 * k - 2)) << 2) | (kmer & 3)
    };
    let last = kmers as u64 - 1;
    for (first, keys) in (0..kmers as u64).step_by(LANES).zip(keys.as_chunks_mut::<LANES>().0) {
        for (lane, out) in (0..).zip(keys) {
            let at = first + lane;
            *out = key(forward, at).min(key(reverse, last.wrapping_sub(at) % MAX_KMERS_PER_RECORD as u64));
        }
    }
}

/// Reverse complement of the 64 bases in a word.
#[inline(always)]
fn revcomp_word(word: u128) -> u128 {
    (u128::from(reverse_complement_kmer(word as u64, 32)) << 64)
        | u128::from(reverse_complement_kmer((word >> 64) as u64, 32))
}

/// Canonical k-mer of a key.
#[inline]
pub(crate) fn canonical_kmer_of_key(key: u64, k: u32) -> u64 {
    let kmer = ((key >> 2 & 3) << (2 * (k - 1))) | (key >> 4 << 2) | (key & 3);
    kmer.min(reverse_complement_kmer(kmer, k))
}

/// Loads eight bytes from offset `at` on, the first in the highest bits, padded with zeros.
#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    let rest = &bytes[at..];
    match rest.first_chunk() {
        Some(word) => u64::from_be_bytes(*word),
        None => rest.iter().enumerate().fold(0, |w, (i, &b)| w | (u64::from(b) << (56 - 8 * i))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{kmers, unpack};
    use crate::tests::{by_definition, random_bases};

    /// Returns the records of a read as bytes, and its super-k-mers.
    fn records(seq: &[u8], qual: &[u8], k: u32, min_base_quality: u8, sample: u8) -> (Vec<u8>, Vec<SuperKmer>) {
        let (mut bytes, mut super_kmers) = (Vec::new(), Vec::new());
        let mut packer = QualityMaskingPacker::with_min_base_quality(min_base_quality);
        let read = packer.pack_and_mask_read(Mate { seq, qual });
        let mut cutter = SuperKmerCutter::for_kmer_length(k, SimdLevel::widest_available());
        cutter.cut_into_super_kmers(read, |super_kmer| super_kmers.push(super_kmer));
        for &super_kmer in &super_kmers {
            let mut record = [0xffu8; MAX_RECORD_BYTES];
            let len = super_kmer.write_record(read.packed_bases(), k, sample, &mut record);
            bytes.extend_from_slice(&record[..len]);
        }
        (bytes, super_kmers)
    }

    #[test]
    fn keys_are_those_of_the_reads_kmers() {
        for k in [12, 13, 24, 25, 31, 32] {
            for len in [0, 5, k as usize - 1, k as usize, k as usize + 1, 63, 64, 65, 150, 1000] {
                let mut seq = random_bases(len, 7 * u64::from(k));
                if len >= 150 {
                    seq[40] = b'N';
                    seq[97] = b'n';
                }
                let (bytes, _) = records(&seq, &vec![b'I'; len], k, 0, 7);
                let (mut found, mut keys, mut scalar) =
                    (Vec::<u64>::new(), KmerKeyBuffer::default(), KmerKeyBuffer::default());
                for record in super::super_kmer_records(&bytes, k) {
                    assert_eq!(record.sample, 7);
                    found.extend(keys.compute_keys(record.canonical_bases_as_word(k), record.kmers, k));
                    keys_scalar(&mut scalar.0, record.canonical_bases_as_word(k), record.kmers, k);
                    assert_eq!(scalar.0[..record.kmers], keys.0[..record.kmers]);
                }
                let mut expected: Vec<u64> =
                    kmers(&seq, k).map(|(_, m)| by_definition(&unpack(m.forward, k))).collect();
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected, "k {k}, {len} bases");
            }
        }
    }

    #[test]
    fn both_strands_have_one_word() {
        for (k, len) in [(12, 12), (12, 43), (25, 37), (31, 31), (32, 63), (31, 62)] {
            let seq = random_bases(len, 11 + len as u64);
            let word = |seq: &[u8]| {
                let codes = seq.iter().map(|&b| dna::encode_base(b)).collect::<Vec<_>>();
                let bytes: Vec<u8> = (codes.chunks(4))
                    .map(|c| (0..4).fold(0, |w, i| (w << 2) | c.get(i).copied().unwrap_or(0)))
                    .chain([0xff; 3]) // what follows a record does not matter
                    .collect();
                SuperKmerRecord { sample: 0, kmers: len + 1 - k as usize, bases: &bytes }.canonical_bases_as_word(k)
            };
            let text = seq.clone().min(dna::reverse_complement(&seq));
            let expected = text.iter().fold(0u128, |w, &b| (w << 2) | u128::from(dna::encode_base(b)));
            let expected = expected << (128 - 2 * len);
            assert_eq!(word(&seq), expected, "{len} bases");
            assert_eq!(word(&dna::reverse_complement(&seq)), expected, "{len} bases");
        }
    }

    #[test]
    fn low_quality_bases_cut_reads_like_n() {
        let seq = random_bases(150, 3);
        let mut qual = vec![33 + 20; 150];
        qual[60] = 33 + 19;
        let mut cut = seq.clone();
        cut[60] = b'N';
        assert_eq!(records(&seq, &qual, 25, 20, 0), records(&cut, &[b'I'; 150], 25, 20, 0));
        assert_eq!(records(&seq, &qual, 25, 19, 0), records(&seq, &[b'I'; 150], 25, 0, 0));
        assert_eq!(records(&seq, &[0; 150], 25, 0, 0), records(&seq, &[b'I'; 150], 25, 0, 0));
    }

    #[test]
    fn long_runs_are_cut_to_fit_a_record() {
        let (bytes, super_kmers) = records(&[b'A'; 500], &[b'I'; 500], 31, 0, 0);
        let (last, full) = super_kmers.split_last().expect("pieces");
        assert!(full.len() == 14 && full.iter().all(|p| p.kmers == MAX_KMERS_PER_RECORD));
        assert_eq!(last.kmers, 470 % MAX_KMERS_PER_RECORD);
        let mut n = 0;
        for record in super::super_kmer_records(&bytes, 31) {
            assert!(
                KmerKeyBuffer::default()
                    .compute_keys(record.canonical_bases_as_word(31), record.kmers, 31)
                    .iter()
                    .all(|&key| key == 0)
            );
            n += record.kmers;
        }
        assert_eq!(n, 470);
    }
}
