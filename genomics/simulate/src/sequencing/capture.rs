//! Target capture: draws fragments that are enriched because they bind to the baits of the targets.

use std::ops::Range;

use super::fragments::{CellChromosome, Fragment, GenomeMixture};
use crate::rng::Rng;
use crate::targets::CaptureTargets;

/// Length of a bait, bp. A fragment is certainly captured if it overlaps a target by at least this length, or if one of
/// the two is shorter and within the other.
const BAIT_BP: usize = 120;
/// Maximum number of attempts to draw a captured fragment.
const MAX_CAPTURE_TRIES: usize = 1000;

/// The copies of the capture targets on the chromosomes of a genome mixture.
#[derive(Debug)]
pub(crate) struct TargetCopies<'a> {
    /// Copies of targets on chromosomes, sorted by chromosome and position.
    target_copies: Vec<TargetCopy>,
    /// Each chromosome, with the range of its copies in `target_copies`.
    chromosomes: Vec<(&'a CellChromosome<'a>, Range<usize>)>,
    /// Cumulative weights of the target copies: share of the cells × copies × capture efficiency × number of possible
    /// fragment starts.
    weights: Vec<f64>,
    /// Largest distance before a target at which a captured fragment may start, bp. Few fragments are longer.
    max_fragment_bp: usize,
    /// Number of target bases in the mixture, weighted by capture efficiency, relative to two copies of each target.
    relative_content: f64,
}

#[derive(Debug)]
struct TargetCopy {
    chromosome: usize,
    start: usize,
    end: usize,
}

impl<'a> TargetCopies<'a> {
    /// Finds the copies of the targets in a genome mixture. `reach` is a length that few fragments exceed, bp.
    pub(crate) fn find_target_copies(mixture: &GenomeMixture<'a>, targets: &CaptureTargets, reach: usize) -> Self {
        let (mut images, mut chromosomes, mut weights) = (vec![], vec![], vec![]);
        let (mut sum, mut bases) = (0.0, 0.0);
        for &(share, genome) in mixture.iter().filter(|g| g.0 > 0.0) {
            for chromosome in genome.iter().filter(|c| c.copies > 0) {
                let cells = share * chromosome.copies as f64;
                let mut here: Vec<(Range<usize>, f64)> = vec![];
                for stretch in chromosome.origins.all_segments() {
                    let within = targets.indices_of_overlapping_targets(stretch.span);
                    here.extend(within.map(|i| {
                        (stretch.chromosome_range_of_reference_span(targets.spans[i]), targets.relative_efficiency[i])
                    }));
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
        TargetCopies {
            target_copies: images,
            chromosomes,
            weights,
            max_fragment_bp: reach,
            relative_content: bases / (2.0 * healthy),
        }
    }

    /// Returns whether the mixture has no copy of any target.
    pub(crate) fn is_empty(&self) -> bool {
        self.target_copies.is_empty()
    }

    /// Returns the mean number of copies of a target per cell, relative to the two copies of a healthy cell. Targets
    /// are weighted by capture efficiency.
    pub(crate) fn target_copies_relative_to_healthy(&self) -> f64 {
        self.relative_content
    }

    /// Draws a captured fragment of `length` bp that neither begins nor ends with N. Its probability is proportional to
    /// the efficiency of the target, and to the length of their overlap up to the length of a bait. If all attempts
    /// fail, it starts with a random target, may begin or end with N, and ends with the chromosome at the latest.
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
        (fragment.begins_and_ends_without_n() && rng.draw_bernoulli(overlap as f64 / enough as f64)).then_some(fragment)
    }

    /// Returns how many of the bases `start..end` of a fragment are in targets.
    pub(crate) fn count_fragment_bases_in_targets(&self, fragment: &Fragment, start: usize, end: usize) -> usize {
        let on = self.chromosomes.iter().find(|c| std::ptr::eq(c.0, fragment.chromosome()));
        let Some((_, images)) = on else { return 0 };
        let images = &self.target_copies[images.clone()];
        let (start, end) = (fragment.start() + start, fragment.start() + end);
        let first = images.partition_point(|image| image.end <= start);
        let near = images[first..].iter().take_while(|image| image.start < end);
        near.map(|image| end.min(image.end) - start.max(image.start)).sum()
    }
}
