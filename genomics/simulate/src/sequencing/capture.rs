//! Target capture: draws fragments that the baits of the targets capture.

use std::ops::Range;

use super::fragments::{CellChromosome, Fragment, GenomeMixture};
use crate::rng::Rng;
use crate::targets::CaptureTargets;

/// Length of a bait, bp. A fragment is always captured if it overlaps a target by at least this length, or contains a
/// shorter target.
const BAIT_BP: usize = 120;
/// Maximum number of attempts to draw a captured fragment.
const MAX_CAPTURE_TRIES: usize = 1000;

/// The copies of the targets on the chromosomes of a mixture.
#[derive(Debug)]
pub(crate) struct CapturedTargets<'a> {
    /// Target copies, sorted by chromosome and position.
    target_copies: Vec<TargetCopy>,
    /// Each chromosome, with the range of its target copies.
    chromosomes: Vec<(&'a CellChromosome<'a>, Range<usize>)>,
    /// Cumulative weights of the target copies: cells × efficiency × possible fragment starts.
    weights: Vec<f64>,
    /// Bases before a target at which a captured fragment may begin, bp. Few fragments are longer.
    max_fragment_bp: usize,
    /// Efficiency-weighted target bases of the mixture, relative to two copies of each target.
    relative_content: f64,
}

#[derive(Debug)]
struct TargetCopy {
    chromosome: usize,
    start: usize,
    end: usize,
}

impl<'a> CapturedTargets<'a> {
    /// Finds the targets in a mixture of genomes. `reach` is the length of long fragments, bp.
    pub(crate) fn find_targets(mixture: &GenomeMixture<'a>, targets: &CaptureTargets, reach: usize) -> Self {
        let (mut images, mut chromosomes, mut weights) = (vec![], vec![], vec![]);
        let (mut sum, mut bases) = (0.0, 0.0);
        for &(share, genome) in mixture.iter().filter(|g| g.0 > 0.0) {
            for chromosome in genome.iter().filter(|c| c.copies > 0) {
                let cells = share * chromosome.copies as f64;
                let mut here: Vec<(Range<usize>, f64)> = vec![];
                for stretch in chromosome.origins.all_segments() {
                    let within = targets.overlapping_targets(stretch.span);
                    here.extend(
                        within.map(|i| (stretch.chromosome_range(targets.spans[i]), targets.relative_efficiency[i])),
                    );
                }
                here.sort_by_key(|(image, _)| image.start);
                let first = images.len();
                for (Range { start, end }, efficiency) in here {
                    sum += cells * efficiency * (end - start + reach) as f64;
                    bases += cells * efficiency * (end - start) as f64;
                    weights.push(sum);
                    images.push(TargetCopy { chromosome: chromosomes.len(), start, end });
                }
                chromosomes.push((chromosome, first..images.len()));
            }
        }
        let healthy: f64 =
            targets.spans.iter().zip(&targets.relative_efficiency).map(|(s, e)| s.length_bp() as f64 * e).sum();
        CapturedTargets {
            target_copies: images,
            chromosomes,
            weights,
            max_fragment_bp: reach,
            relative_content: bases / (2.0 * healthy),
        }
    }

    /// Returns whether the mixture has no targets.
    pub(crate) fn is_empty(&self) -> bool {
        self.target_copies.is_empty()
    }

    /// Returns the mean number of target copies per cell, relative to a healthy cell. Efficiently captured targets
    /// count more.
    pub(crate) fn target_copies_relative_to_healthy(&self) -> f64 {
        self.relative_content
    }

    /// Draws a captured fragment. The probability is proportional to the efficiency of its target and, up to the bait
    /// length, to the overlap with it.
    pub(crate) fn draw_fragment(&self, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let caught = (0..MAX_CAPTURE_TRIES).find_map(|_| self.try_fragment(length, rng));
        caught.unwrap_or_else(|| {
            let TargetCopy { chromosome, start, .. } = self.target_copies[rng.draw_below(self.target_copies.len())];
            let chromosome = self.chromosomes[chromosome].0;
            Fragment::new(chromosome, start, (start + length).min(chromosome.sequence.len()))
        })
    }

    fn try_fragment(&self, length: usize, rng: &mut Rng) -> Option<Fragment<'a>> {
        let last = self.weights.len() - 1;
        let at = rng.draw_unit_interval() * self.weights[last];
        let image = &self.target_copies[self.weights.partition_point(|&w| w <= at).min(last)];
        let chromosome = self.chromosomes[image.chromosome].0;
        // Draw from the same number of starts for every fragment length, so that all lengths have equal chances.
        let start = (image.start + rng.draw_below(image.end - image.start + self.max_fragment_bp))
            .checked_sub(self.max_fragment_bp)?;
        let end = start + length;
        if end > chromosome.sequence.len() || end <= image.start {
            return None;
        }
        let overlap = end.min(image.end) - start.max(image.start);
        let enough = BAIT_BP.min(image.end - image.start).min(length);
        let fragment = Fragment::new(chromosome, start, end);
        (fragment.has_known_ends() && rng.draw_bernoulli(overlap as f64 / enough as f64)).then_some(fragment)
    }

    /// Counts the target bases among the bases `start..end` of a fragment.
    pub(crate) fn count_target_bases(&self, fragment: &Fragment, start: usize, end: usize) -> usize {
        let on = self.chromosomes.iter().find(|c| std::ptr::eq(c.0, fragment.chromosome()));
        let Some((_, images)) = on else { return 0 };
        let images = &self.target_copies[images.clone()];
        let (start, end) = (fragment.start() + start, fragment.start() + end);
        let first = images.partition_point(|image| image.end <= start);
        let near = images[first..].iter().take_while(|image| image.start < end);
        near.map(|image| end.min(image.end) - start.max(image.start)).sum()
    }
}
