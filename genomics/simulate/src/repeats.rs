//! Where the genome repeats itself: positions whose 31-mer occurs more than once, on either strand.

use genuma_reads::dna;

use crate::genome::Genome;

/// Length of the words looked at, bp.
pub const K: usize = 31;

/// k-mers sorted in memory at a time, so that a large genome takes several passes instead of much memory.
const PER_PASS: usize = 32 << 20;

/// For every contig and position, whether the 31-mer that starts there is a repeat.
#[derive(Debug)]
pub struct RepeatMap(Vec<Vec<bool>>);

impl RepeatMap {
    /// Sorts the canonical 31-mers of the whole genome, a part of them at a time.
    pub fn new(genome: &Genome) -> Self {
        let mut map: Vec<Vec<bool>> = genome.seqs.iter().map(|s| vec![false; s.len()]).collect();
        let passes = genome.length() / PER_PASS + 1;
        for pass in 0..passes {
            let mut words = vec![];
            for (contig, seq) in genome.seqs.iter().enumerate() {
                for_each_word(seq, |at, word| {
                    // The remainder of a hash: plain k-mers are far from evenly spread.
                    let hash = word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                    if hash as usize % passes == pass {
                        words.push((word, contig as u32, at as u32));
                    }
                });
            }
            words.sort_unstable();
            for pair in words.windows(2).filter(|p| p[0].0 == p[1].0) {
                for &(_, contig, at) in pair {
                    map[contig as usize][at as usize] = true;
                }
            }
        }
        RepeatMap(map)
    }

    /// Whether a 31-mer that touches the reference bases `start..end` (0-based) or their neighbours occurs more
    /// than once in the genome.
    pub fn touches(&self, contig: usize, start: usize, end: usize) -> bool {
        let starts = &self.0[contig];
        let from = start.saturating_sub(K).min(starts.len());
        starts[from..(end + 1).clamp(from, starts.len())].contains(&true)
    }
}

/// Calls `f` with the start and the canonical word of every 31-mer without N.
fn for_each_word(seq: &[u8], mut f: impl FnMut(usize, u64)) {
    let (mut forward, mut reverse, mut filled) = (0u64, 0u64, 0);
    for (i, &b) in seq.iter().enumerate() {
        let c = u64::from(dna::code(b));
        if c > 3 {
            filled = 0;
            continue;
        }
        forward = ((forward << 2) | c) & (u64::MAX >> (64 - 2 * K));
        reverse = (reverse >> 2) | ((3 - c) << (2 * (K - 1)));
        filled += 1;
        if filled >= K {
            f(i + 1 - K, forward.min(reverse));
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
        let map = RepeatMap::new(&Genome { names: vec!["a".into()], seqs: vec![seq] });
        let marked: Vec<usize> = (0..2000).filter(|&i| map.0[0][i]).collect();
        assert_eq!(marked, (500..530).chain(1500..1530).collect::<Vec<_>>());
        assert!(map.touches(0, 530, 531) && map.touches(0, 559, 560));
        assert!(!map.touches(0, 561, 562) && !map.touches(0, 490, 491));
    }
}
