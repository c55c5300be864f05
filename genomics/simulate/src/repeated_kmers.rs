//! Finds out which 31-mers of given spans occur more than once in the genome, on either strand.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use genuma_reads::dna;
use genuma_work::parallel::run_workers;

use crate::genome::Genome;
use crate::variant::ContigSpan;

/// Length of the k-mers that define a repeat, bp.
pub(crate) const REPEAT_DETECTION_KMER_BP: usize = 31;

/// Minimum number of bits of the Bloom filter per stored k-mer. More bits give fewer false positives and take more
/// memory.
const MIN_FILTER_BITS_PER_KMER: usize = 32;

/// For the k-mers of requested spans: whether they occur more than once in the genome.
#[derive(Debug)]
pub(crate) struct RepeatedKmersOfSpans<'a> {
    genome: &'a Genome,
    /// For each canonical 31-mer of the requested spans: whether it occurs more than once in the genome.
    is_repeated: HashMap<u64, bool>,
}

/// Returns the bases `start..end`, extended by one k-mer length on both sides.
fn bases_around(seq: &[u8], start: usize, end: usize) -> &[u8] {
    let from = start.saturating_sub(REPEAT_DETECTION_KMER_BP).min(seq.len());
    &seq[from..(end + REPEAT_DETECTION_KMER_BP).clamp(from, seq.len())]
}

/// Bloom filter with one hash function, which rejects most k-mers that are in no requested span.
struct KmerFilter {
    bits: Vec<u64>,
    shift: u32,
}

impl KmerFilter {
    fn new<'w>(words: impl ExactSizeIterator<Item = &'w u64>) -> Self {
        let size = (words.len() * MIN_FILTER_BITS_PER_KMER).next_power_of_two().max(64);
        let mut filter = KmerFilter { bits: vec![0; size / 64], shift: 64 - size.trailing_zeros() };
        for &word in words {
            let bit = filter.bit_index(word);
            filter.bits[bit / 64] |= 1 << (bit % 64);
        }
        filter
    }

    /// Returns the bit of a k-mer: the upper bits of a multiplicative hash, because k-mers are unevenly distributed.
    fn bit_index(&self, word: u64) -> usize {
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    fn may_contain(&self, word: u64) -> bool {
        let bit = self.bit_index(word);
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }
}

impl<'a> RepeatedKmersOfSpans<'a> {
    /// Counts the k-mers of the given spans in the whole genome, in one pass with several threads.
    pub(crate) fn count_kmers_of_spans(
        genome: &'a Genome,
        places: impl IntoIterator<Item = ContigSpan>,
        threads: usize,
    ) -> Self {
        let mut seen: HashMap<u64, u8> = HashMap::new();
        for ContigSpan { contig, start, end } in places {
            for_each_kmer(bases_around(&genome.seqs[contig], start, end), |word| {
                seen.insert(word, 0);
            });
        }
        let filter = KmerFilter::new(seen.keys());
        let next = AtomicUsize::new(0);
        // Counts occurrences in the contigs that one thread processes.
        let count = || {
            let mut found: HashMap<u64, u8> = HashMap::new();
            while let Some(seq) = genome.seqs.get(next.fetch_add(1, Ordering::Relaxed)) {
                for_each_kmer(seq, |word| {
                    if filter.may_contain(word) && seen.contains_key(&word) {
                        let times = found.entry(word).or_default();
                        *times = times.saturating_add(1);
                    }
                });
            }
            found
        };
        let counted = run_workers(threads.min(genome.seqs.len()), |_| count());
        for (word, times) in counted.into_iter().flatten() {
            seen.entry(word).and_modify(|all| *all = all.saturating_add(times));
        }
        RepeatedKmersOfSpans { genome, is_repeated: seen.into_iter().map(|(word, times)| (word, times > 1)).collect() }
    }

    /// Returns whether a 31-mer that overlaps or adjoins the bases `start..end` (0-based) of a contig occurs more than
    /// once in the genome. The bases must be within one of the requested spans.
    pub(crate) fn touches_repeat(&self, contig: usize, start: usize, end: usize) -> bool {
        let mut any = false;
        for_each_kmer(bases_around(&self.genome.seqs[contig], start, end), |word| {
            any |= self.is_repeated.get(&word).is_some_and(|&repeated| repeated);
        });
        any
    }
}

/// Calls `f` with the canonical form of each 31-mer without N.
fn for_each_kmer(seq: &[u8], mut f: impl FnMut(u64)) {
    let (mut forward, mut reverse, mut filled) = (0u64, 0u64, 0);
    for &b in seq {
        let c = u64::from(dna::encode_base(b));
        if c > 3 {
            filled = 0;
            continue;
        }
        forward = ((forward << 2) | c) & (u64::MAX >> (64 - 2 * REPEAT_DETECTION_KMER_BP));
        reverse = (reverse >> 2) | ((3 - c) << (2 * (REPEAT_DETECTION_KMER_BP - 1)));
        filled += 1;
        if filled >= REPEAT_DETECTION_KMER_BP {
            f(forward.min(reverse));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn marks_copies_on_both_strands_and_nothing_else() {
        let mut rng = Rng::from_seed_and_labels(3, &[]);
        let mut seq: Vec<u8> = (0..2000).map(|_| rng.draw_base(0.5)).collect();
        let copy = dna::reverse_complement(&seq[500..560]);
        seq.splice(1500..1560, copy);
        let genome = Genome::from_sequences(vec!["a".into(), "b".into()], vec![seq, vec![b'N'; 40]]);
        for threads in [1, 2] {
            let map = RepeatedKmersOfSpans::count_kmers_of_spans(
                &genome,
                [ContigSpan { contig: 0, start: 0, end: 2000 }],
                threads,
            );
            // A site touches the k-mers that begin up to 31 bases before it.
            let marked: Vec<usize> = (0..2000).filter(|&i| map.touches_repeat(0, i, i)).collect();
            assert_eq!(marked, (500..561).chain(1500..1561).collect::<Vec<_>>());
            assert!(map.touches_repeat(0, 530, 531) && map.touches_repeat(0, 559, 560));
            assert!(!map.touches_repeat(0, 561, 562) && !map.touches_repeat(0, 490, 491));
            let few = RepeatedKmersOfSpans::count_kmers_of_spans(
                &genome,
                [498, 540, 700].map(|start| ContigSpan { contig: 0, start, end: start + 3 }),
                threads,
            );
            assert!(
                few.touches_repeat(0, 498, 501) && few.touches_repeat(0, 541, 542) && !few.touches_repeat(0, 700, 703)
            );
        }
        assert!(!RepeatedKmersOfSpans::count_kmers_of_spans(&genome, [], 1).touches_repeat(1, 3, 4));
    }
}
