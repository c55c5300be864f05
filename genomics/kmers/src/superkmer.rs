//! Super-k-mers: runs of k-mers whose roots share a minimizer, stored as one piece of sequence.
//!
//! A record is one byte, the sample in its three highest bits and the number of k-mers less one below, followed by the
//! bases, four a byte, the first in the highest bits; the unused bits of the last byte are zero.

use genuma_machine::processor::Vectors;
use genuma_reads::packed::{Codes, Packed, WORD, after};
use genuma_reads::{Mate, dna};

use crate::encode::{mask, revcomp};
use crate::minimizer::Minimizers;

/// Bits of a record's first byte that hold the number of k-mers less one; the others hold the sample.
const KMER_BITS: u32 = 5;

/// K-mers in one record at most: a run of roots with one minimizer is seldom longer, and its bases fit 128 bits.
pub(crate) const MAX_KMERS: usize = 1 << KMER_BITS;

/// Bytes of the longest record: 32 k-mers of 32 bases.
pub(crate) const MAX_RECORD: usize = record_bytes(MAX_KMERS, 32);

/// Bytes of a record of `kmers` k-mers.
pub(crate) const fn record_bytes(kmers: usize, k: u32) -> usize {
    1 + (kmers + k as usize - 1).div_ceil(4)
}

/// One super-k-mer of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SuperKmer {
    /// Minimizer shared by the roots.
    pub(crate) minimizer: u32,
    /// First base, counted from the read's start.
    pub start: usize,
    /// Number of k-mers, 1..=[`MAX_KMERS`].
    pub kmers: usize,
}

/// Cuts reads into super-k-mers; keeps its memory between reads.
#[derive(Debug)]
pub struct Cutter {
    k: usize,
    /// Lowest quality letter (Phred + 33) a base may have.
    lowest: u8,
    minimizers: Minimizers,
    read: Codes,
}

impl Cutter {
    /// For `k`-mers without bases under Phred quality `min_base_quality`.
    pub fn new(k: u32, min_base_quality: u8) -> Self {
        // Quality 0 asks for nothing, so not even for a valid letter.
        let lowest = if min_base_quality == 0 { 0 } else { min_base_quality.saturating_add(33) };
        Self { k: k as usize, lowest, minimizers: Minimizers::new(k), read: Codes::default() }
    }

    /// For `k`-mers whose minimizers are of `m` bases, 16 and k-2 at most.
    pub(crate) fn with_minimizers(k: u32, m: u32) -> Self {
        Self { minimizers: Minimizers::with_length(k, m), ..Self::new(k, 0) }
    }

    /// Calls `emit` with every super-k-mer of the read, in order, and returns the read's packed bases.
    #[inline]
    pub fn cut(&mut self, mate: Mate<'_>, mut emit: impl FnMut(SuperKmer)) -> Packed<'_> {
        let Self { k, lowest, minimizers, read } = self;
        read.load(mate.seq, mate.qual, *lowest);
        let packed = read.packed();
        let mut whole = |at: usize, bases: usize| {
            if bases < *k {
                return;
            }
            minimizers.for_each_run(&packed, at, bases, |minimizer, first, roots| {
                for done in (0..roots).step_by(MAX_KMERS) {
                    let kmers = MAX_KMERS.min(roots - done);
                    emit(SuperKmer { minimizer, start: at + first + done, kmers });
                }
            });
        };
        if read.foreign {
            let mut at = 0;
            for run in read.codes().split(|&c| c == dna::NOT_A_BASE) {
                whole(at, run.len());
                at += run.len() + 1;
            }
        } else {
            whole(0, read.codes().len());
        }
        packed
    }
}

impl SuperKmer {
    /// Writes its record, of the `read` it was cut from, at the start of `out` (at least [`MAX_RECORD`] bytes) and returns the length.
    #[inline]
    pub(crate) fn write_record(self, read: Packed<'_>, k: u32, sample: u8, out: &mut [u8]) -> usize {
        let bases = self.kmers + k as usize - 1;
        let [first, second] =
            [0, WORD].map(|from| read.word(self.start + from) & !after(bases.saturating_sub(from).min(WORD)));
        out[0] = (sample << KMER_BITS) | (self.kmers - 1) as u8;
        out[1..9].copy_from_slice(&first.to_be_bytes());
        out[9..17].copy_from_slice(&second.to_be_bytes());
        record_bytes(self.kmers, k)
    }
}

const _: () = assert!(MAX_RECORD == 17);

/// A super-k-mer as stored.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Which sample has it.
    pub sample: usize,
    /// Number of k-mers, 1..=[`MAX_KMERS`].
    pub kmers: usize,
    /// The bases, and perhaps more bytes after them.
    pub bases: &'a [u8],
}

/// The records in `bytes`, which must be whole.
pub fn records(bytes: &[u8], k: u32) -> impl Iterator<Item = Record<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (&head, bases) = rest.split_first()?;
        let kmers = usize::from(head) % MAX_KMERS + 1;
        let record = Record { sample: usize::from(head >> KMER_BITS), kmers, bases };
        rest = &rest[record_bytes(kmers, k)..];
        Some(record)
    })
}

impl Record<'_> {
    /// All bases in one word, the first in the highest bits and zeros after the last, in the strand that is smaller.
    #[inline]
    pub fn word(&self, k: u32) -> u128 {
        let unused = 128 - 2 * (self.kmers as u32 + k - 1);
        let word =
            (u128::from(load(self.bases, 0)) << 64) | u128::from(load(self.bases, 8.min(self.bases.len())));
        let word = (word >> unused) << unused;
        word.min(revcomp_word(word) << unused)
    }
}

/// The keys of a super-k-mer's k-mers; keeps its memory.
#[derive(Debug, Default)]
pub struct Keys([u64; MAX_KMERS]);

impl Keys {
    /// The key of each of the `kmers` k-mers of a [`Record::word`], in either order.
    ///
    /// The key of a k-mer is `stem << 4 | first << 2 | last` in the strand that makes it smaller. The stem decides,
    /// unless it is its own reverse complement; then the strand with the smaller pair of flanking bases is taken, so
    /// that a canonical k-mer always has one key.
    #[inline]
    pub fn of(&mut self, word: u128, kmers: usize, k: u32) -> &[u64] {
        self.by(Vectors::widest(), word, kmers, k)
    }

    /// The same by these vectors.
    #[inline]
    pub fn by(&mut self, vectors: Vectors, word: u128, kmers: usize, k: u32) -> &[u64] {
        let keys = &mut self.0;
        vectors.run(
            #[inline(always)]
            || keys_scalar(keys, word, kmers, k),
        );
        &self.0[..kmers]
    }
}

/// Lanes of the loop below.
const LANES: usize = 8;

/// Fills `keys` as far as there are k-mers.
#[inline(always)]
fn keys_scalar(keys: &mut [u64; MAX_KMERS], word: u128, kmers: usize, k: u32) {
    let stem = mask(k - 2);
    let halves = |word: u128| ((word >> 64) as u64, word as u64);
    let (forward, reverse) = (halves(word), halves(revcomp_word(word) << (128 - 2 * (kmers as u32 + k - 1))));
    // The key of the k bases from base `at` on.
    let key = |(high, low): (u64, u64), at: u64| {
        let kmer = ((high << (2 * at)) | (low >> 1 >> (63 - 2 * at))) >> (64 - 2 * k);
        (((kmer >> 2) & stem) << 4) | ((kmer >> (2 * k - 2)) << 2) | (kmer & 3)
    };
    let last = kmers as u64 - 1;
    for (first, keys) in (0..kmers as u64).step_by(LANES).zip(keys.as_chunks_mut::<LANES>().0) {
        for (lane, out) in (0..).zip(keys) {
            let at = first + lane;
            *out = key(forward, at).min(key(reverse, last.wrapping_sub(at) % MAX_KMERS as u64));
        }
    }
}

/// The reverse complement of 64 bases.
#[inline(always)]
fn revcomp_word(word: u128) -> u128 {
    (u128::from(revcomp(word as u64, 32)) << 64) | u128::from(revcomp((word >> 64) as u64, 32))
}

/// The canonical k-mer with this key.
#[inline]
pub fn canonical(key: u64, k: u32) -> u64 {
    let kmer = ((key >> 2 & 3) << (2 * (k - 1))) | (key >> 4 << 2) | (key & 3);
    kmer.min(revcomp(kmer, k))
}

/// Eight bytes from `at` on, the first in the highest bits; zeros where there are fewer.
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

    /// Bytes of all records of a read, and the read's super-k-mers.
    fn records(
        seq: &[u8],
        qual: &[u8],
        k: u32,
        min_base_quality: u8,
        sample: u8,
    ) -> (Vec<u8>, Vec<SuperKmer>) {
        let (mut bytes, mut pieces) = (Vec::new(), Vec::new());
        let mut cutter = Cutter::new(k, min_base_quality);
        let packed = cutter.cut(Mate { seq, qual }, |piece| pieces.push(piece));
        for &piece in &pieces {
            let mut record = [0xffu8; MAX_RECORD];
            let len = piece.write_record(packed, k, sample, &mut record);
            bytes.extend_from_slice(&record[..len]);
        }
        (bytes, pieces)
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
                let (mut found, mut keys, mut scalar) = (Vec::<u64>::new(), Keys::default(), Keys::default());
                for record in super::records(&bytes, k) {
                    assert_eq!(record.sample, 7);
                    found.extend(keys.of(record.word(k), record.kmers, k));
                    keys_scalar(&mut scalar.0, record.word(k), record.kmers, k);
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
                let codes = seq.iter().map(|&b| dna::code(b)).collect::<Vec<_>>();
                let bytes: Vec<u8> = (codes.chunks(4))
                    .map(|c| (0..4).fold(0, |w, i| (w << 2) | c.get(i).copied().unwrap_or(0)))
                    .chain([0xff; 3]) // what follows a record does not matter
                    .collect();
                Record { sample: 0, kmers: len + 1 - k as usize, bases: &bytes }.word(k)
            };
            let text = seq.clone().min(dna::revcomp(&seq));
            let expected = text.iter().fold(0u128, |w, &b| (w << 2) | u128::from(dna::code(b)));
            let expected = expected << (128 - 2 * len);
            assert_eq!(word(&seq), expected, "{len} bases");
            assert_eq!(word(&dna::revcomp(&seq)), expected, "{len} bases");
        }
    }

    #[test]
    fn low_quality_bases_cut_like_foreign_letters() {
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
        let (bytes, pieces) = records(&[b'A'; 500], &[b'I'; 500], 31, 0, 0);
        let (last, full) = pieces.split_last().expect("pieces");
        assert!(full.len() == 14 && full.iter().all(|p| p.kmers == MAX_KMERS));
        assert_eq!(last.kmers, 470 % MAX_KMERS);
        let mut n = 0;
        for record in super::records(&bytes, 31) {
            assert!(Keys::default().of(record.word(31), record.kmers, 31).iter().all(|&key| key == 0));
            n += record.kmers;
        }
        assert_eq!(n, 470);
    }
}
