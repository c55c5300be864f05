//! Fragments caught by baits for targets.

use std::ops::Range;

use super::fragments::{Chromosome, Fragment, Mixture};
use crate::rng::Rng;
use crate::targets::Targets;

/// A fragment with that many bases of a target, or all of a shorter target's, is caught for certain: the length of a bait.
const BAIT: usize = 120;
/// Times a fragment is looked for.
const TRIES: usize = 1000;

/// Targets as they lie on the chromosomes of a mixture.
#[derive(Debug)]
pub struct Captured<'a> {
    /// By chromosome, and then by place.
    images: Vec<Image>,
    /// Each chromosome, and which of the images are on it.
    chromosomes: Vec<(&'a Chromosome<'a>, Range<usize>)>,
    /// Running sums of cells × efficiency × possible starts of fragments.
    weights: Vec<f64>,
    /// Bases before a target at which fragments may begin; the longest fragments may be longer.
    reach: usize,
    /// Efficiency-weighted bases of the targets in the mixture, relative to two copies of each.
    content: f64,
}

#[derive(Debug)]
struct Image {
    chromosome: usize,
    start: usize,
    end: usize,
}

impl<'a> Captured<'a> {
    /// The targets in a mixture of genomes; `reach`: the length of long fragments, bp.
    pub fn new(mixture: &Mixture<'a>, targets: &Targets, reach: usize) -> Self {
        let (mut images, mut chromosomes, mut weights) = (vec![], vec![], vec![]);
        let (mut sum, mut bases) = (0.0, 0.0);
        for &(share, genome) in mixture.iter().filter(|g| g.0 > 0.0) {
            for chromosome in genome.iter().filter(|c| c.copies > 0) {
                let cells = share * chromosome.copies as f64;
                let mut here: Vec<(Range<usize>, f64)> = vec![];
                for stretch in chromosome.origins.stretches() {
                    let within = targets.within(stretch.span);
                    here.extend(within.map(|i| (stretch.image(targets.spans[i]), targets.efficiency[i])));
                }
                here.sort_by_key(|(image, _)| image.start);
                let first = images.len();
                for (Range { start, end }, efficiency) in here {
                    sum += cells * efficiency * (end - start + reach) as f64;
                    bases += cells * efficiency * (end - start) as f64;
                    weights.push(sum);
                    images.push(Image { chromosome: chromosomes.len(), start, end });
                }
                chromosomes.push((chromosome, first..images.len()));
            }
        }
        let healthy: f64 =
            targets.spans.iter().zip(&targets.efficiency).map(|(s, e)| s.length() as f64 * e).sum();
        Captured { images, chromosomes, weights, reach, content: bases / (2.0 * healthy) }
    }

    /// Whether there is nothing to catch.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// Copies of the targets in an average cell, relative to a healthy one's; well captured ones count more.
    pub fn content(&self) -> f64 {
        self.content
    }

    /// A random fragment that was caught. The chance of each goes with the efficiency of its target and, up to a bait's
    /// length, with the bases that it has of it.
    pub fn fragment(&self, length: usize, rng: &mut Rng) -> Fragment<'a> {
        let caught = (0..TRIES).find_map(|_| self.attempt(length, rng));
        caught.unwrap_or_else(|| {
            let Image { chromosome, start, .. } = self.images[rng.below(self.images.len())];
            let chromosome = self.chromosomes[chromosome].0;
            Fragment::new(chromosome, start, (start + length).min(chromosome.sequence.len()))
        })
    }

    fn attempt(&self, length: usize, rng: &mut Rng) -> Option<Fragment<'a>> {
        let last = self.weights.len() - 1;
        let at = rng.unit() * self.weights[last];
        let image = &self.images[self.weights.partition_point(|&w| w <= at).min(last)];
        let chromosome = self.chromosomes[image.chromosome].0;
        // The same number of starts for fragments of every length, so that all have their share.
        let start =
            (image.start + rng.below(image.end - image.start + self.reach)).checked_sub(self.reach)?;
        let end = start + length;
        if end > chromosome.sequence.len() || end <= image.start {
            return None;
        }
        let overlap = end.min(image.end) - start.max(image.start);
        let enough = BAIT.min(image.end - image.start).min(length);
        let fragment = Fragment::new(chromosome, start, end);
        (fragment.has_known_ends() && rng.chance(overlap as f64 / enough as f64)).then_some(fragment)
    }

    /// How many of the bases `start..end` of a fragment are of targets.
    pub fn overlap(&self, fragment: &Fragment, start: usize, end: usize) -> usize {
        let on = self.chromosomes.iter().find(|c| std::ptr::eq(c.0, fragment.chromosome()));
        let Some((_, images)) = on else { return 0 };
        let images = &self.images[images.clone()];
        let (start, end) = (fragment.start() + start, fragment.start() + end);
        let first = images.partition_point(|image| image.end <= start);
        let near = images[first..].iter().take_while(|image| image.start < end);
        near.map(|image| end.min(image.end) - start.max(image.start)).sum()
    }
}
