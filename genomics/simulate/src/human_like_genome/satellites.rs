//! Generates centromeric satellites: alpha satellite, which consists of higher-order repeats (HORs) of several
//! monomers, and simple satellites.

use super::random_sequence::{append_mutated_copy, create_mutated_copy, draw_bases};
use crate::rng::Rng;

/// Length of an alpha-satellite monomer, bp.
pub(crate) const ALPHA_MONOMER_BP: usize = 171;
/// Number of ancestral monomers, and divergence of each from their common ancestor.
const ANCESTRAL_MONOMERS: (usize, f64) = (5, 0.10);
/// Minimum and maximum divergence of a monomer in a higher-order repeat from its ancestral monomer.
const MONOMER_DIVERGENCE: (f64, f64) = (0.05, 0.12);
/// Minimum and maximum number of monomers in a higher-order repeat.
const MONOMERS_PER_HOR: (usize, usize) = (2, 16);
/// Minimum and maximum number of higher-order repeats in a block. The repeats of one block are more similar to each
/// other than to those of other blocks.
const HORS_PER_BLOCK: (usize, usize) = (5, 60);
/// Minimum and maximum divergence of a block from the rest of its array, and of a higher-order repeat from the rest of
/// its block.
const BLOCK_AND_HOR_DIVERGENCE: ((f64, f64), (f64, f64)) = ((0.002, 0.008), (0.0005, 0.003));
/// Share of the satellite at each end that consists of monomers in random order, and their divergence from the
/// ancestral monomers.
const MONOMERIC_FLANK: (f64, f64) = (0.05, 0.15);
/// Unit of the simple satellite, and divergence of its copies from the unit.
const SIMPLE_SATELLITE: (&[u8], f64) = (b"CATTC", 0.08);

/// The ancestral monomers from which all alpha satellites derive.
#[derive(Debug)]
pub(crate) struct AlphaMonomers(Vec<Vec<u8>>);

impl AlphaMonomers {
    /// Draws random sequences for the ancestral monomers.
    pub(super) fn with_random_monomers(rng: &mut Rng) -> Self {
        let first = draw_bases(ALPHA_MONOMER_BP, 0.38, rng);
        AlphaMonomers((0..ANCESTRAL_MONOMERS.0).map(|_| substituted_copy(&first, ANCESTRAL_MONOMERS.1, rng)).collect())
    }

    /// Generates the alpha satellite of one centromere, `length` bp. Also returns the number of monomers in its
    /// higher-order repeat.
    pub(super) fn generate_alpha_satellite(&self, length: usize, rng: &mut Rng) -> (Vec<u8>, usize) {
        let monomers = MONOMERS_PER_HOR.0 + rng.draw_below(MONOMERS_PER_HOR.1 - MONOMERS_PER_HOR.0 + 1);
        let first = rng.draw_below(ANCESTRAL_MONOMERS.0);
        let ancestor = |i: usize| &self.0[(first + i) % ANCESTRAL_MONOMERS.0];
        let monomer = |i: usize, rng: &mut Rng| {
            let divergence =
                MONOMER_DIVERGENCE.0 + (MONOMER_DIVERGENCE.1 - MONOMER_DIVERGENCE.0) * rng.draw_unit_interval();
            substituted_copy(ancestor(i), divergence, rng)
        };
        let row: Vec<u8> = (0..monomers).flat_map(|i| monomer(i, rng)).collect();
        let flank = (MONOMERIC_FLANK.0 * length as f64) as usize;
        let mut seq = Vec::with_capacity(length + row.len());
        self.extend_with_monomers(&mut seq, flank, rng);
        while seq.len() < length - flank {
            let ((low, high), (least, most)) = BLOCK_AND_HOR_DIVERGENCE;
            let block = create_mutated_copy(&row, low + (high - low) * rng.draw_unit_interval(), rng);
            let divergence = least + (most - least) * rng.draw_unit_interval();
            for _ in 0..HORS_PER_BLOCK.0 + rng.draw_below(HORS_PER_BLOCK.1 - HORS_PER_BLOCK.0 + 1) {
                if seq.len() < length - flank {
                    append_mutated_copy(&mut seq, &block, divergence, rng);
                }
            }
        }
        seq.truncate(length - flank);
        self.extend_with_monomers(&mut seq, length, rng);
        seq.truncate(length);
        (seq, monomers)
    }

    /// Appends monomers in random order until `seq` has at least `length` bases.
    fn extend_with_monomers(&self, seq: &mut Vec<u8>, length: usize, rng: &mut Rng) {
        while seq.len() < length {
            let monomer = rng.choose_item(self.0.as_slice());
            append_mutated_copy(seq, monomer, MONOMERIC_FLANK.1, rng);
        }
    }
}

/// Generates `length` bp of simple satellite.
pub(super) fn generate_simple_satellite(length: usize, rng: &mut Rng) -> Vec<u8> {
    let pure: Vec<u8> = SIMPLE_SATELLITE.0.iter().copied().cycle().take(length + length / 16).collect();
    let mut seq = create_mutated_copy(&pure, SIMPLE_SATELLITE.1, rng);
    seq.resize(length, b'A');
    seq
}

/// Returns a copy of `source` with substitutions only, so that its length does not change.
fn substituted_copy(source: &[u8], divergence: f64, rng: &mut Rng) -> Vec<u8> {
    let changed = |&base: &u8| if rng.draw_bernoulli(divergence) { rng.draw_other_base(base) } else { base };
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
            let mut rng = Rng::from_seed_and_labels(seed, &[]);
            let alpha = AlphaMonomers::with_random_monomers(&mut rng);
            let (seq, monomers) = alpha.generate_alpha_satellite(300_000, &mut rng);
            assert_eq!(seq.len(), 300_000);
            // Sequence of the middle recurs after one higher-order repeat, and usually not after one monomer.
            let row = monomers * ALPHA_MONOMER_BP;
            let part = &seq[100_000..200_000];
            let kept = |period: usize| {
                let near =
                    |at: usize| (period - 8..=period + 8).any(|p| part[at..at + 24] == part[at + p..at + p + 24]);
                let places = || (0..part.len() - period - 40).step_by(97);
                places().filter(|&at| near(at)).count() as f64 / places().count() as f64
            };
            assert!(kept(row) > 0.6, "{} of {monomers}", kept(row));
            assert!(kept(ALPHA_MONOMER_BP) < 0.3 * kept(row), "{} of {monomers}", kept(ALPHA_MONOMER_BP));
            let (one, two) = (&alpha.0[0], &alpha.0[1]);
            assert!((0.7..0.9).contains(&same(one, two)), "{}", same(one, two));
        }
        assert_eq!(generate_simple_satellite(1003, &mut Rng::from_seed_and_labels(1, &[])).len(), 1003);
    }
}
