//! Generates isochores: stretches of random sequence of 100 kb to 1 Mb (at most an eighth of the chromosome), each with
//! its own GC content.

use super::random_sequence::append_random_bases;
use crate::rng::Rng;

/// Minimum and maximum length of an isochore, bp, and the divisor of the chromosome length that limits both.
const ISOCHORE_BP: (usize, usize, usize) = (100_000, 1_000_000, 8);
/// Lowest and highest GC content of an isochore. Low values are more frequent, as in the human genome.
const GC_RANGE: (f64, f64) = (0.35, 0.55);
/// Variation of the GC content within an isochore: minimum and maximum length of a stretch (bp), and largest difference
/// of its GC content from that of the isochore.
const GC_FLUCTUATION: (usize, usize, f64) = (1_000, 10_000, 0.02);

/// GC content of each isochore along a chromosome.
#[derive(Debug)]
pub(crate) struct Isochores {
    /// First base (0-based) and GC content (0 to 1) of each isochore.
    starts: Vec<(usize, f64)>,
}

impl Isochores {
    /// Generates `length` random bases, and returns them with their isochores.
    pub(super) fn generate_bases_and_isochores(length: usize, rng: &mut Rng) -> (Vec<u8>, Self) {
        let mut seq = Vec::with_capacity(length);
        let mut starts = vec![];
        let (shortest, longest, part) = ISOCHORE_BP;
        let longest = longest.min(length / part).max(1);
        while seq.len() < length {
            let gc = GC_RANGE.0 + (GC_RANGE.1 - GC_RANGE.0) * rng.draw_unit_interval().powi(2);
            starts.push((seq.len(), gc));
            let end = length.min(seq.len() + rng.draw_log_uniform(shortest.min(longest), longest));
            while seq.len() < end {
                let stretch = rng.draw_log_uniform(GC_FLUCTUATION.0, GC_FLUCTUATION.1).min(end - seq.len());
                let gc = gc + GC_FLUCTUATION.2 * (2.0 * rng.draw_unit_interval() - 1.0);
                append_random_bases(&mut seq, stretch, gc, rng);
            }
        }
        (seq, Isochores { starts })
    }

    /// Returns the GC content of the isochore that contains the base `at`.
    pub(super) fn gc_content_at(&self, at: usize) -> f64 {
        let next = self.starts.partition_point(|s| s.0 <= at);
        self.starts[next - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_have_the_content_that_they_are_said_to_have() {
        let (seq, isochores) =
            Isochores::generate_bases_and_isochores(2_000_000, &mut Rng::from_seed_and_labels(1, &[]));
        assert_eq!(seq.len(), 2_000_000);
        let starts: Vec<usize> = isochores.starts.iter().map(|s| s.0).collect();
        assert!(starts.len() > 7 && starts.windows(2).all(|w| w[1] - w[0] >= 100_000));
        for (i, &start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(seq.len());
            let strong = seq[start..end].iter().filter(|b| b"GC".contains(b)).count();
            let gc = strong as f64 / (end - start) as f64;
            assert!((gc - isochores.gc_content_at(start)).abs() < 0.02, "{gc} {}", isochores.gc_content_at(start));
            assert_eq!(isochores.gc_content_at(start), isochores.gc_content_at(end - 1));
        }
    }
}
