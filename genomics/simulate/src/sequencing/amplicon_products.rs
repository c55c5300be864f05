//! Multiplex PCR: finds the products of primer pairs on the chromosomes of a genome mixture, and draws products.

use super::fragments::{CellChromosome, Fragment, GenomeMixture};
use crate::amplicons::{Amplicon, AmpliconPanel};
use crate::rng::Rng;
use crate::variant::GenomePosition;

/// Longest PCR product, bp. The polymerase does not complete longer products.
const MAX_PRODUCT_BP: usize = 600;

/// The primers at the first and at the last base of a fragment, each from its 5' to its 3' end.
pub(crate) type PrimerPair<'a> = [&'a [u8]; 2];

/// The PCR products of an amplicon panel on the chromosomes of a genome mixture.
#[derive(Debug)]
pub(crate) struct AmpliconProducts<'a> {
    panel: &'a AmpliconPanel,
    products: Vec<AmpliconProduct<'a>>,
    /// Cumulative weights of the products: share of the cells × copies × efficiency of the amplicon.
    weights: Vec<f64>,
}

#[derive(Debug)]
struct AmpliconProduct<'a> {
    fragment: Fragment<'a>,
    /// Index of the amplicon in the panel.
    amplicon: usize,
    /// Whether the chromosome has the reverse complement of the amplicon.
    reverse: bool,
}

/// A position on a chromosome to which the 3' end of a primer binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PrimerSite {
    amplicon: usize,
    /// Position of the primer's 3' base on the chromosome.
    at: usize,
    /// 0 for the left primer of the amplicon, 1 for the right one.
    side: usize,
    /// Whether the chromosome has the reverse complement of the reference there.
    reverse: bool,
}

impl<'a> AmpliconProducts<'a> {
    /// Finds the products of a panel. A chromosome has a product of an amplicon if both primers bind to it, point
    /// towards each other, and enclose at most [`MAX_PRODUCT_BP`] bp. A primer binds wherever the reference base of its
    /// 3' end is on the chromosome.
    pub(crate) fn find_products(mixture: &GenomeMixture<'a>, panel: &'a AmpliconPanel) -> Self {
        let ends = sorted_primer_ends(panel);
        let positions: Vec<GenomePosition> = ends.iter().map(|end| end.0).collect();
        let (mut products, mut weights, mut sum) = (vec![], vec![], 0.0);
        for &(share, genome) in mixture.iter().filter(|g| g.0 > 0.0) {
            for chromosome in genome.iter().filter(|c| c.copies > 0) {
                let sites = primer_sites(chromosome, &positions, &ends);
                for product in sites.chunk_by(|a, b| a.amplicon == b.amplicon).flat_map(|sites| sites.windows(2)) {
                    if let Some(product) = find_product(chromosome, panel, [product[0], product[1]]) {
                        let efficiency = panel.amplicons[product.amplicon].relative_efficiency;
                        sum += share * chromosome.copies as f64 * efficiency;
                        products.push(product);
                        weights.push(sum);
                    }
                }
            }
        }
        AmpliconProducts { panel, products, weights }
    }

    /// Returns whether no primer pair has a product.
    pub(crate) fn is_empty(&self) -> bool {
        self.products.is_empty()
    }

    /// Draws a PCR product. Returns its fragment, and the primers that replace the bases at its ends.
    pub(crate) fn draw_amplicon_product(&self, rng: &mut Rng) -> (Fragment<'a>, PrimerPair<'a>) {
        let last = self.weights.len() - 1;
        let at = rng.draw_unit_interval() * self.weights[last];
        let product = &self.products[self.weights.partition_point(|&w| w <= at).min(last)];
        let [left, right] = self.panel.amplicons[product.amplicon].primers.each_ref().map(Vec::as_slice);
        (product.fragment, if product.reverse { [right, left] } else { [left, right] })
    }
}

/// Lists, sorted, the reference position of the 3' base of each primer, the index of the amplicon, and the end of the
/// amplicon at which the primer is (0 left, 1 right).
fn sorted_primer_ends(panel: &AmpliconPanel) -> Vec<(GenomePosition, usize, usize)> {
    let of_amplicon = |(i, a): (usize, &Amplicon)| {
        [0, 1].map(|side| (GenomePosition { contig: a.span.contig, pos: a.primer_3prime_positions()[side] }, i, side))
    };
    let mut ends: Vec<_> = panel.amplicons.iter().enumerate().flat_map(of_amplicon).collect();
    ends.sort_unstable();
    ends
}

/// Lists the positions of a chromosome to which primers bind, sorted by amplicon and position.
fn primer_sites(
    chromosome: &CellChromosome,
    positions: &[GenomePosition],
    ends: &[(GenomePosition, usize, usize)],
) -> Vec<PrimerSite> {
    let mut sites = vec![];
    chromosome.origins.for_each_copy_of_bases(positions, |i, at, reverse| {
        let (_, amplicon, side) = ends[i];
        sites.push(PrimerSite { amplicon, at, side, reverse });
    });
    sites.sort_unstable();
    sites
}

/// Returns the product of two neighbouring primer sites of an amplicon; `None` if the primers do not point towards each
/// other or are too far apart.
fn find_product<'a>(
    chromosome: &'a CellChromosome<'a>,
    panel: &AmpliconPanel,
    [low, high]: [PrimerSite; 2],
) -> Option<AmpliconProduct<'a>> {
    // On the forward strand the left primer comes first.
    if low.reverse != high.reverse || low.side == high.side || (low.side == 1) != low.reverse {
        return None;
    }
    let primer_bp = |site: PrimerSite| panel.amplicons[site.amplicon].primers[site.side].len();
    let start = (low.at + 1).checked_sub(primer_bp(low))?;
    let end = high.at + primer_bp(high);
    let fits = low.at < high.at && end <= chromosome.sequence.len() && end - start <= MAX_PRODUCT_BP;
    let fragment = Fragment::new(chromosome, start, end);
    fits.then_some(AmpliconProduct { fragment, amplicon: low.amplicon, reverse: low.reverse })
}
