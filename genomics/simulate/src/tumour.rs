//! All that a tumour has of its own: where it is, on which haplotype and in which cells, and how much of the reads show it.

use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::karyotype::Karyotype;
use crate::ploidy::Ploidy;
use crate::rng::Rng;
use crate::variant::{Cut, Edit, Structural};

/// What is placed: a small variant or a structural one.
#[derive(Debug, Clone)]
pub struct Placed<V> {
    /// The change.
    pub variant: V,
    /// 0 or 1.
    pub haplotype: usize,
    /// 0 is the founder clone, present in every tumour cell; then the subclones.
    pub clone: usize,
    /// Which copies of an amplified span have it.
    pub carriers: Carriers,
    /// The cluster that it belongs to, from 1.
    pub cluster: Option<usize>,
}

impl<V> Placed<V> {
    /// On every copy of its haplotype, in no cluster.
    pub fn new(variant: V, haplotype: usize, clone: usize) -> Self {
        Placed { variant, haplotype, clone, carriers: Carriers::All, cluster: None }
    }
}

/// Which copies of a span have a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carriers {
    /// All: it is older than the amplification, or there is none.
    All,
    /// About half: it arose on the way.
    Half,
}

/// All somatic variants of a tumour.
#[derive(Debug)]
pub struct Tumour {
    /// SNVs, indels and substitutions of several bases by position.
    pub small: Vec<Placed<Edit>>,
    /// Structural variants by their first cut.
    pub structural: Vec<Placed<Structural>>,
    /// Deletions of 50 bp and more inside an amplified span: structural to tell, but spelled as small ones are.
    pub inner: Vec<Placed<Edit>>,
    /// Share of the tumour cells that belong to each population: founder only, then each subclone.
    pub shares: Vec<f64>,
    /// The two haplotypes of each population.
    pub(crate) karyotypes: Vec<[Karyotype; 2]>,
    /// Those of healthy cells.
    pub healthy: [Karyotype; 2],
    /// How many copies of each contig healthy cells have.
    pub ploidy: Ploidy,
}

/// A structural variant as the truth tells it.
#[derive(Debug)]
pub struct Event {
    /// The change.
    pub variant: Structural,
    /// 0 or 1.
    pub haplotype: usize,
    /// See [`Placed::clone`].
    pub clone: usize,
    /// Expected share of the tumour sample's reads at its breakpoints that show it.
    pub(crate) allele_fraction: f64,
    /// Copies of its span in a tumour cell, if it is amplified.
    pub copies: Option<f64>,
}

impl Tumour {
    /// A tumour without variants. `subclones` are their shares of the tumour cells; what has none is in other samples of the person.
    pub fn new(genome: &Genome, subclones: &[f64], ploidy: Ploidy) -> Result<Self> {
        let subclonal: f64 = subclones.iter().sum();
        if subclonal > 1.0 + 1e-9 || subclones.iter().any(|&f| f < 0.0) {
            let message =
                "the subclones' shares must not be negative, and sum up to at most 1; make them smaller";
            return Err(Error::Parameters(message.into()));
        }
        let mut shares = vec![(1.0 - subclonal).max(0.0)];
        shares.extend(subclones);
        let healthy = Karyotype::healthy(genome, &ploidy);
        let karyotypes = vec![healthy.clone(); shares.len()];
        Ok(Tumour { small: vec![], structural: vec![], inner: vec![], shares, karyotypes, healthy, ploidy })
    }

    /// Share of the tumour cells that carry the variants of a clone.
    pub(crate) fn cellular_fraction(&self, clone: usize) -> f64 {
        if clone == 0 { 1.0 } else { self.shares[clone] }
    }

    /// Whether any tumour cell of the sample has what a clone has.
    pub(crate) fn is_here<V>(&self, placed: &Placed<V>) -> bool {
        self.cellular_fraction(placed.clone) > 0.0
    }

    /// Whether no tumour cell has a contig's haplotype.
    pub fn is_lost(&self, contig: usize, haplotype: usize) -> bool {
        self.karyotypes[0][haplotype].copies()[contig] == 0
    }

    /// The structural variant whose body a place lies in.
    fn round(&self, at: Cut) -> Option<&Placed<Structural>> {
        self.structural.iter().find(|p| {
            p.variant.body().is_some_and(|b| b.contig == at.contig && b.start <= at.pos && at.pos < b.end)
        })
    }

    /// The haplotype beside a structural variant that a small one has to be on.
    fn beside(&self, at: Cut) -> Option<usize> {
        // On the haplotype that the structural variant left alone it is neither lost nor doubled; copies of an
        // amplified span are worth having.
        self.round(at).map(|p| match p.variant {
            Structural::Amplification { .. } => p.haplotype,
            _ => 1 - p.haplotype,
        })
    }

    /// Whether two places lie in the same structural variant, or neither in any.
    pub(crate) fn beside_same(&self, a: Cut, b: Cut) -> bool {
        let variant = |at| self.round(at).map(std::ptr::from_ref);
        variant(a) == variant(b)
    }

    /// Whether there is a haplotype for a small variant.
    pub fn has_room(&self, at: Cut) -> bool {
        self.beside(at).is_none_or(|haplotype| !self.is_lost(at.contig, haplotype))
    }

    /// The haplotype of a small variant, and which of its copies have it.
    pub fn carriers(&self, at: Cut, rng: &mut Rng) -> (usize, Carriers) {
        let mut haplotype = self.beside(at).unwrap_or_else(|| rng.below(2));
        if self.is_lost(at.contig, haplotype) {
            haplotype = 1 - haplotype;
        }
        let amplified = self.round(at).is_some_and(|p| matches!(p.variant, Structural::Amplification { .. }));
        let half = amplified && rng.chance(0.5);
        (haplotype, if half { Carriers::Half } else { Carriers::All })
    }

    /// Copies of a place in an average tumour cell.
    fn copies(&self, at: Cut) -> f64 {
        let change = |p: &Placed<Structural>| match p.variant.body() {
            Some(b) if b.contig == at.contig && b.start <= at.pos && at.pos < b.end => {
                f64::from(p.variant.copies_added()) * self.cellular_fraction(p.clone)
            }
            _ => 0.0,
        };
        2.0 + self.structural.iter().map(change).sum::<f64>() + self.gained(at)
    }

    /// Copies of a place that an average tumour cell has too many or, negative, too few because of whole chromosomes.
    fn gained(&self, at: Cut) -> f64 {
        let cell = |pair: &[Karyotype; 2]| pair.iter().map(|k| k.gained(at)).sum::<f64>();
        self.shares.iter().zip(&self.karyotypes).map(|(share, pair)| share * cell(pair)).sum()
    }

    /// Copies of what a clone has at `at` in an average tumour cell.
    fn alleles<V>(&self, placed: &Placed<V>, at: Cut) -> f64 {
        let beyond_one = |population: usize| {
            let (all, late) = self.karyotypes[population][placed.haplotype].occurrences(at);
            let count = if placed.carriers == Carriers::All { all } else { late };
            self.shares[population] * (count as f64 - 1.0)
        };
        let carriers = (0..self.shares.len()).filter(|&p| placed.clone == 0 || p == placed.clone);
        self.cellular_fraction(placed.clone) + carriers.map(beyond_one).sum::<f64>()
    }

    /// Expected share of the tumour sample's reads that show a small variant.
    pub(crate) fn allele_fraction(&self, placed: &Placed<Edit>, purity: f64) -> f64 {
        let at = placed.variant.at;
        purity * self.alleles(placed, at)
            / (purity * self.copies(at) + (1.0 - purity) * self.ploidy.copies(at.contig) as f64)
    }

    /// The structural variants, those inside amplified spans last.
    pub fn events(&self, purity: f64) -> Vec<Event> {
        let event = |p: &Placed<Structural>| {
            let cut = p.variant.cuts()[0];
            // The base left of the cut is there as often as the chromosome is.
            let left = Cut { pos: cut.pos - 1, ..cut };
            let (junctions, copies) = match p.variant {
                Structural::Amplification { copies, .. } => (copies as f64 - 1.0, Some(self.copies(cut))),
                _ => (1.0, None),
            };
            let absent = 2.0 - self.ploidy.copies(cut.contig) as f64;
            let extra = copies.map_or_else(|| self.gained(left), |copies| copies - 2.0);
            Event {
                variant: p.variant.clone(),
                haplotype: p.haplotype,
                clone: p.clone,
                allele_fraction: purity * (self.alleles(p, left) * junctions)
                    / (2.0 + purity * extra - (1.0 - purity) * absent),
                copies,
            }
        };
        let inner = |p: &Placed<Edit>| Event {
            variant: Structural::Deletion(p.variant.span()),
            haplotype: p.haplotype,
            clone: p.clone,
            allele_fraction: self.allele_fraction(p, purity),
            copies: None,
        };
        let (structural, inside) = (self.structural.iter(), self.inner.iter());
        let structural = structural.filter(|p| self.is_here(p)).map(event);
        structural.chain(inside.filter(|p| self.is_here(p)).map(inner)).collect()
    }
}
