//! Satellites: monomers side by side by the thousand, in rows that are repeated as a whole, and shorter ones.

use super::bases::{aged, extend_aged, random};
use crate::rng::Rng;

/// Length of a monomer of the alpha satellite, bp.
pub(crate) const MONOMER: usize = 171;
/// Ancestors of the monomers, and how far each is from what all come from. Two monomers are 20% to 40% apart.
const ANCESTORS: (usize, f64) = (5, 0.10);
/// How far a monomer of a row is from its ancestor, from and to.
const IN_ROW: (f64, f64) = (0.05, 0.12);
/// Fewest and most monomers of a row.
const ROW: (usize, usize) = (2, 16);
/// Rows of one block, which are nearer to each other than to others.
const BLOCK: (usize, usize) = (5, 60);
/// Difference of a block from its array, from and to, and of a row from its block.
const DIFFERENCE: ((f64, f64), (f64, f64)) = ((0.002, 0.008), (0.0005, 0.003));
/// Part of the satellite on either side of the rows that is monomers without order, and how far these are from their
/// ancestors.
const FLANK: (f64, f64) = (0.05, 0.15);
/// The satellite of five bases: unit and divergence.
const SIMPLE: (&[u8], f64) = (b"CATTC", 0.08);

/// The monomers that all alpha satellites come from.
#[derive(Debug)]
pub(crate) struct Alpha(Vec<Vec<u8>>);

impl Alpha {
    /// Random ones.
    pub fn new(rng: &mut Rng) -> Self {
        let first = random(MONOMER, 0.38, rng);
        Alpha((0..ANCESTORS.0).map(|_| substituted(&first, ANCESTORS.1, rng)).collect())
    }

    /// The satellite of one centromere, `length` bp. Also says how many monomers its rows have.
    pub fn array(&self, length: usize, rng: &mut Rng) -> (Vec<u8>, usize) {
        let monomers = ROW.0 + rng.below(ROW.1 - ROW.0 + 1);
        let first = rng.below(ANCESTORS.0);
        let ancestor = |i: usize| &self.0[(first + i) % ANCESTORS.0];
        let monomer = |i: usize, rng: &mut Rng| {
            let divergence = IN_ROW.0 + (IN_ROW.1 - IN_ROW.0) * rng.unit();
            substituted(ancestor(i), divergence, rng)
        };
        let row: Vec<u8> = (0..monomers).flat_map(|i| monomer(i, rng)).collect();
        let flank = (FLANK.0 * length as f64) as usize;
        let mut seq = Vec::with_capacity(length + row.len());
        self.unordered(&mut seq, flank, rng);
        while seq.len() < length - flank {
            let ((low, high), (least, most)) = DIFFERENCE;
            let block = aged(&row, low + (high - low) * rng.unit(), rng);
            let divergence = least + (most - least) * rng.unit();
            for _ in 0..BLOCK.0 + rng.below(BLOCK.1 - BLOCK.0 + 1) {
                if seq.len() < length - flank {
                    extend_aged(&mut seq, &block, divergence, rng);
                }
            }
        }
        seq.truncate(length - flank);
        self.unordered(&mut seq, length, rng);
        seq.truncate(length);
        (seq, monomers)
    }

    /// Adds monomers without order until there are `length` bases.
    fn unordered(&self, seq: &mut Vec<u8>, length: usize, rng: &mut Rng) {
        while seq.len() < length {
            let monomer = rng.pick(self.0.as_slice());
            extend_aged(seq, monomer, FLANK.1, rng);
        }
    }
}

/// `length` bp of a unit of five bases, over and over.
pub fn simple(length: usize, rng: &mut Rng) -> Vec<u8> {
    let pure: Vec<u8> = SIMPLE.0.iter().copied().cycle().take(length + length / 16).collect();
    let mut seq = aged(&pure, SIMPLE.1, rng);
    seq.resize(length, b'A');
    seq
}

/// A copy of the same length.
fn substituted(source: &[u8], divergence: f64, rng: &mut Rng) -> Vec<u8> {
    let changed = |&base: &u8| if rng.chance(divergence) { rng.other_base(base) } else { base };
    source.iter().map(changed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &[u8], b: &[u8]) -> f64 {
        a.iter().zip(b).filter(|(a, b)| a == b).count() as f64 / a.len().min(b.len()) as f64
    }

    #[test]
    fn rows_of_monomers_are_repeated_and_monomers_are_apart() {
        for seed in 0..4 {
            let mut rng = Rng::stream(seed, &[]);
            let alpha = Alpha::new(&mut rng);
            let (seq, monomers) = alpha.array(300_000, &mut rng);
            assert_eq!(seq.len(), 300_000);
            // Words of the middle come back after one row, and as a rule not after one monomer.
            let row = monomers * MONOMER;
            let part = &seq[100_000..200_000];
            let kept = |period: usize| {
                let near = |at: usize| {
                    (period - 8..=period + 8).any(|p| part[at..at + 24] == part[at + p..at + p + 24])
                };
                let places = || (0..part.len() - period - 40).step_by(97);
                places().filter(|&at| near(at)).count() as f64 / places().count() as f64
            };
            assert!(kept(row) > 0.6, "{} of {monomers}", kept(row));
            assert!(kept(MONOMER) < 0.3 * kept(row), "{} of {monomers}", kept(MONOMER));
            let (one, two) = (&alpha.0[0], &alpha.0[1]);
            assert!((0.7..0.9).contains(&same(one, two)), "{}", same(one, two));
        }
        assert_eq!(simple(1003, &mut Rng::stream(1, &[])).len(), 1003);
    }
}
