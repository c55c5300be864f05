//! The ground that everything else is put on: stretches of different GC content.

use super::bases::extend_random;
use crate::rng::Rng;

/// Shortest and longest stretch, bp, and the largest part of its chromosome.
const LENGTHS: (usize, usize, usize) = (100_000, 1_000_000, 8);
/// Lowest and highest GC content. Low ones are more frequent: two thirds lie below the middle.
const GC: (f64, f64) = (0.35, 0.55);
/// How often the content changes a little inside of a stretch (bp), and by how much at most.
const WITHIN: (usize, usize, f64) = (1_000, 10_000, 0.02);

/// GC content along a chromosome.
#[derive(Debug)]
pub(crate) struct Isochores {
    /// First base and GC content of each stretch.
    starts: Vec<(usize, f64)>,
}

impl Isochores {
    /// Random sequence of `length` bases, and what it is like.
    pub fn lay(length: usize, rng: &mut Rng) -> (Vec<u8>, Self) {
        let mut seq = Vec::with_capacity(length);
        let mut starts = vec![];
        let (shortest, longest, part) = LENGTHS;
        let longest = longest.min(length / part).max(1);
        while seq.len() < length {
            let gc = GC.0 + (GC.1 - GC.0) * rng.unit().powi(2);
            starts.push((seq.len(), gc));
            let end = length.min(seq.len() + rng.log_uniform(shortest.min(longest), longest));
            while seq.len() < end {
                let stretch = rng.log_uniform(WITHIN.0, WITHIN.1).min(end - seq.len());
                let gc = gc + WITHIN.2 * (2.0 * rng.unit() - 1.0);
                extend_random(&mut seq, stretch, gc, rng);
            }
        }
        (seq, Isochores { starts })
    }

    /// GC content of the stretch that a base lies in.
    pub fn gc(&self, at: usize) -> f64 {
        let next = self.starts.partition_point(|s| s.0 <= at);
        self.starts[next - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_have_the_content_that_they_are_said_to_have() {
        let (seq, isochores) = Isochores::lay(2_000_000, &mut Rng::stream(1, &[]));
        assert_eq!(seq.len(), 2_000_000);
        let starts: Vec<usize> = isochores.starts.iter().map(|s| s.0).collect();
        assert!(starts.len() > 7 && starts.windows(2).all(|w| w[1] - w[0] >= 100_000));
        for (i, &start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(seq.len());
            let strong = seq[start..end].iter().filter(|b| b"GC".contains(b)).count();
            let gc = strong as f64 / (end - start) as f64;
            assert!((gc - isochores.gc(start)).abs() < 0.02, "{gc} {}", isochores.gc(start));
            assert_eq!(isochores.gc(start), isochores.gc(end - 1));
        }
    }
}
