//! Segmental duplications: long stretches that are there a second time, nearly as they were.

use genuma_reads::dna;

use super::bases::aged;
use crate::rng::Rng;

/// Copies put in, as share of the genome: with what they are copies of it is twice as much.
const SHARE: f64 = 0.027;
/// Shortest and longest, bp, and the largest part of a chromosome.
const LENGTHS: (usize, usize, usize) = (1_000, 300_000, 20);
/// Smallest and largest divergence. As many lie between 0.1% and 1% as between 1% and 10%.
const DIVERGENCE: (f64, f64) = (0.001, 0.1);
/// Share of the copies that stay on their chromosome, and how far away they lie then at most, bp.
const NEAR: (f64, usize) = (0.5, 5_000_000);
/// Share of those that are copies of a copy.
const AGAIN: f64 = 0.4;

/// A copy: chromosome, first base, length.
type Place = (usize, usize, usize);

/// Copies stretches over others, the oldest first. `put` is told of chromosome, place, length and divergence of each.
pub(crate) fn duplicate(seqs: &mut [Vec<u8>], rng: &mut Rng, put: &mut impl FnMut(usize, usize, usize, f64)) {
    let total: usize = seqs.iter().map(Vec::len).sum();
    let mut left = (SHARE * total as f64) as usize;
    let longest = seqs.iter().map(Vec::len).max().unwrap_or(0) / LENGTHS.2;
    let longest = longest.clamp(1, LENGTHS.1);
    let mut wanted: Vec<(f64, usize)> = vec![];
    while left > 0 {
        let length = rng.log_uniform(LENGTHS.0.min(longest), longest).min(left);
        let divergence = DIVERGENCE.0 * (DIVERGENCE.1 / DIVERGENCE.0).powf(rng.unit());
        wanted.push((divergence, length));
        left -= length;
    }
    wanted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut copies: Vec<Place> = vec![];
    for (divergence, length) in wanted {
        let again = !copies.is_empty() && rng.chance(AGAIN);
        let (from, start, room) = if again { *rng.pick(&copies) } else { anywhere(seqs, rng) };
        let length = length.min(room);
        let mut copy = aged(&seqs[from][start..start + length], divergence, rng);
        if rng.chance(0.5) {
            copy = dna::revcomp(&copy);
        }
        let (to, at, _) = if rng.chance(NEAR.0) {
            let low = start.saturating_sub(NEAR.1);
            let high = (start + NEAR.1).min(seqs[from].len());
            (from, low + rng.below(high - low), 0)
        } else {
            anywhere(seqs, rng)
        };
        let length = copy.len().min(seqs[to].len() - at);
        seqs[to][at..at + length].copy_from_slice(&copy[..length]);
        put(to, at, length, divergence);
        copies.push((to, at, length));
    }
}

/// A random place, with the bases up to the end of its chromosome.
fn anywhere(seqs: &[Vec<u8>], rng: &mut Rng) -> Place {
    let mut at = rng.below(seqs.iter().map(Vec::len).sum());
    let mut chromosome = 0;
    while at >= seqs[chromosome].len() {
        at -= seqs[chromosome].len();
        chromosome += 1;
    }
    (chromosome, at, seqs[chromosome].len() - at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::human::bases::random;

    #[test]
    fn copies_are_as_long_as_many_and_as_alike_as_they_are_said_to_be() {
        let mut rng = Rng::stream(3, &[]);
        let mut seqs: Vec<Vec<u8>> = [400_000, 200_000].map(|n| random(n, 0.41, &mut rng)).into();
        let before = seqs.clone();
        let mut put = vec![];
        duplicate(&mut seqs, &mut rng, &mut |to, at, length, divergence| {
            put.push((to, at, length, divergence))
        });
        assert_eq!([0, 1].map(|i| seqs[i].len()), [400_000, 200_000]);
        let share = put.iter().map(|p| p.2).sum::<usize>() as f64 / 6e5;
        assert!((0.02..0.028).contains(&share), "{share}");
        assert!(put.iter().all(|p| p.2 <= 21_000 && (0.001..=0.1).contains(&p.3)));
        assert!(put.windows(2).all(|w| w[0].3 >= w[1].3));
        // Most words of the youngest copies were there before, on either strand.
        let words: std::collections::HashSet<Vec<u8>> = before
            .iter()
            .flat_map(|seq| [seq.clone(), dna::revcomp(seq)])
            .flat_map(|seq| seq.windows(16).map(<[u8]>::to_vec).collect::<Vec<_>>())
            .collect();
        let &(to, at, length, divergence) = put.last().unwrap();
        let copy = &seqs[to][at..at + length];
        let old = copy.windows(16).filter(|w| words.contains(*w)).count() as f64 / length as f64;
        assert!(divergence < 0.003 && old > 0.9, "{divergence} {old}");
    }
}
