//! Places segmental duplications: long copies of other parts of the genome that are nearly identical to them.

use genuma_reads::dna;

use super::random_sequence::create_mutated_copy;
use crate::rng::Rng;

/// Share of the genome that is overwritten with copies. Copies and their sources together are twice as much: about 5 %,
/// as in the human genome.
const DUPLICATED_SHARE: f64 = 0.027;
/// Minimum and maximum length of a segmental duplication, bp, and the divisor of the longest chromosome's length that
/// limits it.
const DUPLICATION_BP: (usize, usize, usize) = (1_000, 300_000, 20);
/// Minimum and maximum divergence of a copy from its source (share of bases); drawn log-uniformly.
const DIVERGENCE_RANGE: (f64, f64) = (0.001, 0.1);
/// Share of the copies that are placed near their source, and the maximum distance between the starts of both, bp. The
/// other copies are at random positions of the genome.
const NEARBY_COPIES: (f64, usize) = (0.5, 5_000_000);
/// Share of the copies that are made from an earlier copy.
const COPY_OF_COPY_SHARE: f64 = 0.4;

/// A span of a chromosome: index of the chromosome, first base (0-based), length (bp).
type ChromosomeSpan = (usize, usize, usize);

/// Overwrites random positions with copies of other parts of the genome, the most diverged copies first. Calls
/// `on_placed` with chromosome, position, length and divergence of each copy.
pub(crate) fn place_segmental_duplications(
    seqs: &mut [Vec<u8>],
    rng: &mut Rng,
    on_placed: &mut impl FnMut(usize, usize, usize, f64),
) {
    let total: usize = seqs.iter().map(Vec::len).sum();
    let mut left = (DUPLICATED_SHARE * total as f64) as usize;
    let longest = seqs.iter().map(Vec::len).max().unwrap_or(0) / DUPLICATION_BP.2;
    let longest = longest.clamp(1, DUPLICATION_BP.1);
    let mut wanted: Vec<(f64, usize)> = vec![];
    while left > 0 {
        let length = rng.draw_log_uniform(DUPLICATION_BP.0.min(longest), longest).min(left);
        let divergence = DIVERGENCE_RANGE.0 * (DIVERGENCE_RANGE.1 / DIVERGENCE_RANGE.0).powf(rng.draw_unit_interval());
        wanted.push((divergence, length));
        left -= length;
    }
    wanted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut copies: Vec<ChromosomeSpan> = vec![];
    for (divergence, length) in wanted {
        let again = !copies.is_empty() && rng.draw_bernoulli(COPY_OF_COPY_SHARE);
        let (from, start, room) = if again { *rng.choose_item(&copies) } else { random_source(seqs, rng) };
        let length = length.min(room);
        let mut copy = create_mutated_copy(&seqs[from][start..start + length], divergence, rng);
        if rng.draw_bernoulli(0.5) {
            copy = dna::reverse_complement(&copy);
        }
        let (to, at, _) = if rng.draw_bernoulli(NEARBY_COPIES.0) {
            let low = start.saturating_sub(NEARBY_COPIES.1);
            let high = (start + NEARBY_COPIES.1).min(seqs[from].len());
            (from, low + rng.draw_below(high - low), 0)
        } else {
            random_source(seqs, rng)
        };
        let length = copy.len().min(seqs[to].len() - at);
        seqs[to][at..at + length].copy_from_slice(&copy[..length]);
        on_placed(to, at, length, divergence);
        copies.push((to, at, length));
    }
}

/// Draws a random position as the start of a source or of a copy. The length of the returned span is that of the rest
/// of its chromosome.
fn random_source(seqs: &[Vec<u8>], rng: &mut Rng) -> ChromosomeSpan {
    let mut at = rng.draw_below(seqs.iter().map(Vec::len).sum());
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
    use crate::human_like_genome::random_sequence::draw_bases;

    #[test]
    fn copies_are_as_long_as_many_and_as_alike_as_they_are_said_to_be() {
        let mut rng = Rng::from_seed_and_labels(3, &[]);
        let mut seqs: Vec<Vec<u8>> = [400_000, 200_000].map(|n| draw_bases(n, 0.41, &mut rng)).into();
        let before = seqs.clone();
        let mut put = vec![];
        place_segmental_duplications(&mut seqs, &mut rng, &mut |to, at, length, divergence| {
            put.push((to, at, length, divergence))
        });
        assert_eq!([0, 1].map(|i| seqs[i].len()), [400_000, 200_000]);
        let share = put.iter().map(|p| p.2).sum::<usize>() as f64 / 6e5;
        assert!((0.02..0.028).contains(&share), "{share}");
        assert!(put.iter().all(|p| p.2 <= 21_000 && (0.001..=0.1).contains(&p.3)));
        assert!(put.windows(2).all(|w| w[0].3 >= w[1].3));
        // Most 16-mers of the youngest copies were in the genome before, on either strand.
        let words: std::collections::HashSet<Vec<u8>> = before
            .iter()
            .flat_map(|seq| [seq.clone(), dna::reverse_complement(seq)])
            .flat_map(|seq| seq.windows(16).map(<[u8]>::to_vec).collect::<Vec<_>>())
            .collect();
        let &(to, at, length, divergence) = put.last().unwrap();
        let copy = &seqs[to][at..at + length];
        let old = copy.windows(16).filter(|w| words.contains(*w)).count() as f64 / length as f64;
        assert!(divergence < 0.003 && old > 0.9, "{divergence} {old}");
    }
}
