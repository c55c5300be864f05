//! Where the genome repeats itself: places whose 31-mers occur more than once, on either strand.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use genuma_reads::dna;
use genuma_work::parallel::workers;

use crate::genome::Genome;
use crate::variant::Span;

/// Length of the words looked at, bp.
pub const K: usize = 31;

/// Bits of the filter for each word that is asked for, at least.
const BITS_PER_WORD: usize = 32;

/// Which words of the places asked for are repeats.
#[derive(Debug)]
pub(crate) struct RepeatMap<'a> {
    genome: &'a Genome,
    /// Whether each canonical 31-mer of these places occurs more than once in the genome.
    repeated: HashMap<u64, bool>,
}

/// The bases whose words touch `start..end` or its neighbours.
fn around(seq: &[u8], start: usize, end: usize) -> &[u8] {
    let from = start.saturating_sub(K).min(seq.len());
    &seq[from..(end + K).clamp(from, seq.len())]
}

/// Says of most words at once that nobody asked for them.
struct Filter {
    bits: Vec<u64>,
    shift: u32,
}

impl Filter {
    fn new<'w>(words: impl ExactSizeIterator<Item = &'w u64>) -> Self {
        let size = (words.len() * BITS_PER_WORD).next_power_of_two().max(64);
        let mut filter = Filter { bits: vec![0; size / 64], shift: 64 - size.trailing_zeros() };
        for &word in words {
            let bit = filter.bit(word);
            filter.bits[bit / 64] |= 1 << (bit % 64);
        }
        filter
    }

    /// Plain k-mers are far from evenly spread: the upper part of a product is.
    fn bit(&self, word: u64) -> usize {
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    fn may_have(&self, word: u64) -> bool {
        let bit = self.bit(word);
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }
}

impl<'a> RepeatMap<'a> {
    /// Looks for the words of some places in the whole genome, once through, by some threads. An end is exclusive.
    pub fn new(genome: &'a Genome, places: impl IntoIterator<Item = Span>, threads: usize) -> Self {
        let mut seen: HashMap<u64, u8> = HashMap::new();
        for Span { contig, start, end } in places {
            for_each_word(around(&genome.seqs[contig], start, end), |word| {
                seen.insert(word, 0);
            });
        }
        let filter = Filter::new(seen.keys());
        let next = AtomicUsize::new(0);
        // How often each word occurs in the contigs that one thread has been through: once, or more often.
        let count = || {
            let mut found: HashMap<u64, u8> = HashMap::new();
            while let Some(seq) = genome.seqs.get(next.fetch_add(1, Ordering::Relaxed)) {
                for_each_word(seq, |word| {
                    if filter.may_have(word) && seen.contains_key(&word) {
                        let times = found.entry(word).or_default();
                        *times = times.saturating_add(1);
                    }
                });
            }
            found
        };
        let counted = workers(threads.min(genome.seqs.len()), |_| count());
        for (word, times) in counted.into_iter().flatten() {
            seen.entry(word).and_modify(|all| *all = all.saturating_add(times));
        }
        RepeatMap { genome, repeated: seen.into_iter().map(|(word, times)| (word, times > 1)).collect() }
    }

    /// Whether a 31-mer that touches the reference bases `start..end` (0-based) or their neighbours occurs more
    /// than once in the genome. The bases must lie in one of the places that were given.
    pub fn touches(&self, contig: usize, start: usize, end: usize) -> bool {
        let mut any = false;
        for_each_word(around(&self.genome.seqs[contig], start, end), |word| {
            any |= self.repeated.get(&word).is_some_and(|&repeated| repeated);
        });
        any
    }
}

/// Calls `f` with the canonical word of every 31-mer without N.
fn for_each_word(seq: &[u8], mut f: impl FnMut(u64)) {
    let (mut forward, mut reverse, mut filled) = (0u64, 0u64, 0);
    for &b in seq {
        let c = u64::from(dna::code(b));
        if c > 3 {
            filled = 0;
            continue;
        }
        forward = ((forward << 2) | c) & (u64::MAX >> (64 - 2 * K));
        reverse = (reverse >> 2) | ((3 - c) << (2 * (K - 1)));
        filled += 1;
        if filled >= K {
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
        let mut rng = Rng::stream(3, &[]);
        let mut seq: Vec<u8> = (0..2000).map(|_| rng.base(0.5)).collect();
        let copy = dna::revcomp(&seq[500..560]);
        seq.splice(1500..1560, copy);
        let genome = Genome::new(vec!["a".into(), "b".into()], vec![seq, vec![b'N'; 40]]);
        for threads in [1, 2] {
            let map = RepeatMap::new(&genome, [Span { contig: 0, start: 0, end: 2000 }], threads);
            // A place touches the words that begin from 31 bases before it on.
            let marked: Vec<usize> = (0..2000).filter(|&i| map.touches(0, i, i)).collect();
            assert_eq!(marked, (500..561).chain(1500..1561).collect::<Vec<_>>());
            assert!(map.touches(0, 530, 531) && map.touches(0, 559, 560));
            assert!(!map.touches(0, 561, 562) && !map.touches(0, 490, 491));
            let few = RepeatMap::new(
                &genome,
                [498, 540, 700].map(|start| Span { contig: 0, start, end: start + 3 }),
                threads,
            );
            assert!(few.touches(0, 498, 501) && few.touches(0, 541, 542) && !few.touches(0, 700, 703));
        }
        assert!(!RepeatMap::new(&genome, [], 1).touches(1, 3, 4));
    }
}
