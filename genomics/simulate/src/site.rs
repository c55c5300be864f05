//! Where somatic variants are placed: the genome, what of it is taken, and the tumour that is being made.

use crate::error::Error;
use crate::genome::Genome;
use crate::ground::Ground;
use crate::karyotype::Karyotype;
use crate::rng::Rng;
use crate::small::Made;
use crate::tumour::{Placed, Tumour};
use crate::variant::{Cut, Span, Structural};

/// Times a random place is tried before giving up.
pub const TRIES: usize = 2000;

/// All that placing needs.
#[derive(Debug)]
pub struct Site<'a, 'g> {
    /// The reference.
    pub genome: &'g Genome,
    /// Which parts of it are taken.
    pub(crate) ground: &'a mut Ground<'g>,
    /// What has been placed.
    pub tumour: &'a mut Tumour,
    /// Random numbers.
    pub rng: &'a mut Rng,
    /// Fewest bases between two variants or breakpoints.
    pub spacing: usize,
}

/// The error for variants that find no place.
pub fn no_room(what: &str, placed: usize, wanted: usize) -> Error {
    Error::Parameters(format!(
        "no room for {wanted} {what} in this genome (placed {placed}); ask for fewer, or lower the spacing"
    ))
}

impl Site<'_, '_> {
    /// One of the clones, all alike.
    pub(crate) fn random_clone(&mut self) -> usize {
        self.rng.below(self.tumour.shares.len())
    }

    /// Whether a small variant can be where it was made.
    pub fn is_free(&self, made: &Made) -> bool {
        self.ground.is_free(made.reserved, self.spacing) && self.tumour.has_room(made.edit.at)
    }

    /// Carries a structural variant out in every population that has it, if its place is free.
    pub fn settle(&mut self, clone: usize, variant: Structural) -> bool {
        if !self.has_room(&variant) {
            return false;
        }
        let first = self.rng.below(2);
        [first, 1 - first].into_iter().any(|haplotype| self.carry_out(haplotype, clone, &variant))
    }

    /// Whether the place of a structural variant is free, and the variant one.
    pub fn has_room(&self, variant: &Structural) -> bool {
        let ground = &*self.ground;
        let mut cuts = variant.cuts().into_iter();
        cuts.all(|c| ground.is_free(round(c), self.spacing) && !ground.in_body(c))
            && variant.body().is_none_or(|b| !ground.overlaps_body(b) && !ground.holds_taken(b, self.spacing))
            && !copies_itself(self.genome, variant)
    }

    /// Carries a structural variant that has room out on a haplotype; says whether that has all of its places.
    pub(crate) fn carry_out(&mut self, haplotype: usize, clone: usize, variant: &Structural) -> bool {
        let cuts = variant.cuts();
        if cuts.iter().any(|c| self.tumour.is_lost(c.contig, haplotype)) {
            return false;
        }
        let carriers = (0..self.tumour.shares.len()).filter(|&p| clone == 0 || p == clone);
        let carriers: Vec<usize> = carriers.collect();
        let mut changed: Vec<Karyotype> =
            carriers.iter().map(|&p| self.tumour.karyotypes[p][haplotype].clone()).collect();
        if changed.iter_mut().any(|k| k.apply(variant).is_err()) {
            return false;
        }
        for (&p, karyotype) in carriers.iter().zip(changed) {
            self.tumour.karyotypes[p][haplotype] = karyotype;
        }
        cuts.iter().for_each(|c| self.ground.take(round(*c)));
        if let Some(body) = variant.body() {
            self.ground.take_body(body);
        }
        self.tumour.structural.push(Placed::new(variant.clone(), haplotype, clone));
        true
    }
}

/// The bases beside a cut.
fn round(cut: Cut) -> Span {
    Span { contig: cut.contig, start: cut.pos.saturating_sub(1), end: cut.pos + 1 }
}

/// Whether the variant would change nothing: the inversion of a palindrome.
fn copies_itself(genome: &Genome, variant: &Structural) -> bool {
    let Structural::Inversion(span) = variant else { return false };
    let bases = &genome.seqs[span.contig][span.start..span.end];
    genuma_reads::dna::revcomp(bases) == bases
}
