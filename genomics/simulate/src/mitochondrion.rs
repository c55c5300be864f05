//! A made mitochondrial genome: circular, in many copies, some of which have variants of their own.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::germline::Germline;
use crate::origin::Origins;
use crate::rng::Rng;
use crate::sequence::Sequence;
use crate::sequencing::Chromosome;
use crate::variant::{Cut, Edit, Span};

/// Name of the contig.
pub const NAME: &str = "chrM";
/// Its length: that of the human one, bp.
pub const LENGTH: usize = 16_569;
/// Its GC content.
const GC: f64 = 0.44;
/// Variants that all copies have.
const HOMOPLASMIC: usize = 12;
/// Variants that some copies in tumour cells have.
const HETEROPLASMIC: usize = 6;
/// Smallest and largest share of the copies that have one of these.
const FRACTIONS: (f64, f64) = (0.03, 0.6);
/// Fewest bases between two variants, bp.
const SPACING: usize = 200;

/// Variants of the mitochondrial genome.
#[derive(Debug)]
pub(crate) struct Mitochondrion {
    /// The contig.
    contig: usize,
    /// In all copies of all cells.
    pub germline: Vec<Germline>,
    /// In tumour cells, with the share of their copies. A copy that has one has all that are more frequent.
    pub somatic: Vec<(Edit, f64)>,
}

/// The genome with a mitochondrial contig made for it at its end.
pub(crate) fn with_contig(genome: &Genome, rng: &mut Rng) -> Result<Genome> {
    if genome.names.iter().any(|n| n == NAME) {
        let message =
            format!("the genome already has a contig {NAME}; leave --mitochondrion out, or the contig");
        return Err(Error::Parameters(message));
    }
    let mut genome = genome.clone();
    genome.names.push(NAME.into());
    genome.seqs.push(Arc::new((0..LENGTH).map(|_| rng.base(GC)).collect()));
    Ok(genome)
}

impl Mitochondrion {
    /// Places the variants of one person, and of a tumour, on the last contig of `genome`.
    pub fn new(genome: &Genome, rng: &mut Rng) -> Self {
        let contig = genome.seqs.len() - 1;
        let seq = &genome.seqs[contig];
        let mut places: Vec<usize> = vec![];
        while places.len() < HOMOPLASMIC + HETEROPLASMIC {
            let at = SPACING + rng.below(seq.len() - 2 * SPACING);
            if places.iter().all(|p| p.abs_diff(at) >= SPACING) {
                places.push(at);
            }
        }
        let mut edits = places.iter().map(|&pos| {
            let added = vec![rng.other_base(seq[pos])];
            Edit { at: Cut { contig, pos }, removed: vec![seq[pos]], added }
        });
        let germline: Vec<Edit> = edits.by_ref().take(HOMOPLASMIC).collect();
        let somatic: Vec<Edit> = edits.collect();
        let fraction = |i: usize, rng: &mut Rng| {
            // One in each of as many equal parts of the range's logarithm.
            let at = (i as f64 + rng.unit()) / HETEROPLASMIC as f64;
            FRACTIONS.0 * (FRACTIONS.1 / FRACTIONS.0).powf(at)
        };
        let mut germline: Vec<Germline> =
            germline.into_iter().map(|edit| Germline { edit, haplotypes: [true; 2] }).collect();
        germline.sort_by_key(|g| g.edit.at);
        let somatic = somatic.into_iter().enumerate().map(|(i, edit)| (edit, fraction(i, rng))).collect();
        Mitochondrion { contig, germline, somatic }
    }

    /// The kinds of copies in a cell with their shares; `somatic` variants by falling share.
    fn kinds<'a>(&'a self, genome: &'a Genome, somatic: &[&'a (Edit, f64)]) -> Vec<(f64, Chromosome<'a>)> {
        let mut edits: Vec<&Edit> = self.germline.iter().map(|g| &g.edit).collect();
        let share = |i: usize| somatic.get(i).map_or(0.0, |v| v.1);
        let mut kinds = vec![(1.0 - share(0), self.ring(genome, &edits))];
        for (i, (edit, fraction)) in somatic.iter().enumerate() {
            edits.push(edit);
            edits.sort_by_key(|e| e.at);
            kinds.push((fraction - share(i + 1), self.ring(genome, &edits)));
        }
        kinds
    }

    /// Copies in normal cells.
    pub fn normal<'a>(&'a self, genome: &'a Genome) -> Vec<(f64, Chromosome<'a>)> {
        self.kinds(genome, &[])
    }

    /// Copies in tumour cells.
    pub fn tumour<'a>(&'a self, genome: &'a Genome) -> Vec<(f64, Chromosome<'a>)> {
        let mut somatic: Vec<&(Edit, f64)> = self.somatic.iter().collect();
        somatic.sort_by(|a, b| b.1.total_cmp(&a.1));
        self.kinds(genome, &somatic)
    }

    /// The circle, written twice so that fragments may cross its origin.
    fn ring<'a>(&self, genome: &'a Genome, edits: &[&'a Edit]) -> Chromosome<'a> {
        let seq = &genome.seqs[self.contig];
        let whole = Span { contig: self.contig, start: 0, end: seq.len() };
        let (mut sequence, mut origins) = (Sequence::default(), Origins::default());
        for _ in 0..2 {
            sequence.push_span(seq, whole, edits, false);
            origins.reference(whole, &[], false);
        }
        Chromosome { sequence, origins, copies: 1, circular: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_add_up_to_the_fractions() {
        let nuclear = Genome::new(vec!["a".into()], vec![b"ACGT".to_vec()]);
        let mut rng = Rng::stream(3, &[]);
        let genome = with_contig(&nuclear, &mut rng).unwrap();
        assert!(
            with_contig(&genome, &mut rng).unwrap_err().to_string().contains("already has a contig chrM")
        );
        let mitochondrion = Mitochondrion::new(&genome, &mut rng);
        let kinds = mitochondrion.tumour(&genome);
        assert!((kinds.iter().map(|k| k.0).sum::<f64>() - 1.0).abs() < 1e-9);
        for (edit, fraction) in &mitochondrion.somatic {
            let has = |c: &Chromosome| {
                assert_eq!(c.sequence.base(edit.at.pos), c.sequence.base(edit.at.pos + LENGTH));
                c.sequence.base(edit.at.pos) == edit.added[0]
            };
            let found: f64 = kinds.iter().filter(|k| has(&k.1)).map(|k| k.0).sum();
            assert!((found - fraction).abs() < 1e-9 && (0.03..=0.6).contains(fraction));
            assert!(mitochondrion.normal(&genome).iter().all(|k| !has(&k.1)));
        }
        for g in &mitochondrion.germline {
            assert!(kinds.iter().all(|k| k.1.sequence.base(g.edit.at.pos) == g.edit.added[0]));
        }
    }
}
