//! A synthetic mitochondrial genome: a circular contig in many copies, with homoplasmic and heteroplasmic variants.

use std::sync::Arc;

use crate::chromosome_sequence::ChromosomeSequence;
use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::germline::GermlineVariant;
use crate::reference_origins::ReferenceOrigins;
use crate::rng::Rng;
use crate::sequencing::CellChromosome;
use crate::variant::{ContigSpan, GenomePosition, SequenceEdit};

/// Name of the mitochondrial contig in a simulated genome.
pub(crate) const MITOCHONDRIAL_CONTIG_NAME: &str = "chrM";
/// Length of the mitochondrial genome, bp, as in humans.
pub(crate) const MITOCHONDRIAL_LENGTH_BP: usize = 16_569;
/// GC content of the mitochondrial genome, as in humans.
const GC_CONTENT: f64 = 0.44;
/// Number of homoplasmic variants, which all copies of the genome have.
const NUM_HOMOPLASMIC: usize = 12;
/// Number of heteroplasmic variants, which a share of the copies in tumour cells has.
const NUM_HETEROPLASMIC: usize = 6;
/// Lowest and highest share of the copies in tumour cells that have a heteroplasmic variant (chosen).
const HETEROPLASMY_RANGE: (f64, f64) = (0.03, 0.6);
/// Minimum distance between two variants, and of a variant from the ends of the contig, bp.
const MIN_SPACING_BP: usize = 200;

/// Variants of the mitochondrial genome of one person and the person's tumour.
#[derive(Debug)]
pub(crate) struct MitochondrialVariants {
    /// Index of the mitochondrial contig in the genome.
    contig: usize,
    /// Homoplasmic variants, which all copies in all cells have.
    pub germline: Vec<GermlineVariant>,
    /// Heteroplasmic variants of tumour cells, with the share of the copies that have each variant. A copy that has a
    /// variant also has all variants with a larger share.
    pub somatic: Vec<(SequenceEdit, f64)>,
}

/// Returns the genome with a random mitochondrial contig appended, or an error if it already has a contig of that name
/// ([`MITOCHONDRIAL_CONTIG_NAME`]).
pub(crate) fn add_mitochondrial_contig(genome: &Genome, rng: &mut Rng) -> Result<Genome> {
    if genome.names.iter().any(|n| n == MITOCHONDRIAL_CONTIG_NAME) {
        let message = format!(
            "the genome already has a contig {MITOCHONDRIAL_CONTIG_NAME}; remove the contig, or omit --mitochondrion"
        );
        return Err(Error::Parameters(message));
    }
    let mut genome = genome.clone();
    genome.names.push(MITOCHONDRIAL_CONTIG_NAME.into());
    genome.seqs.push(Arc::new((0..MITOCHONDRIAL_LENGTH_BP).map(|_| rng.draw_base(GC_CONTENT)).collect()));
    Ok(genome)
}

impl MitochondrialVariants {
    /// Draws the variants of one person and tumour. The mitochondrial contig is the last one of `genome`.
    pub(crate) fn draw_variants_of_person_and_tumour(genome: &Genome, rng: &mut Rng) -> Self {
        let contig = genome.seqs.len() - 1;
        let seq = &genome.seqs[contig];
        let mut places: Vec<usize> = vec![];
        while places.len() < NUM_HOMOPLASMIC + NUM_HETEROPLASMIC {
            let at = MIN_SPACING_BP + rng.draw_below(seq.len() - 2 * MIN_SPACING_BP);
            if places.iter().all(|p| p.abs_diff(at) >= MIN_SPACING_BP) {
                places.push(at);
            }
        }
        let mut edits = places.iter().map(|&pos| {
            let added = vec![rng.draw_other_base(seq[pos])];
            SequenceEdit { position: GenomePosition { contig, pos }, removed: vec![seq[pos]], added }
        });
        let germline: Vec<SequenceEdit> = edits.by_ref().take(NUM_HOMOPLASMIC).collect();
        let somatic: Vec<SequenceEdit> = edits.collect();
        let fraction = |i: usize, rng: &mut Rng| {
            // One fraction in each of the equal parts of the range on a logarithmic scale.
            let at = (i as f64 + rng.draw_unit_interval()) / NUM_HETEROPLASMIC as f64;
            HETEROPLASMY_RANGE.0 * (HETEROPLASMY_RANGE.1 / HETEROPLASMY_RANGE.0).powf(at)
        };
        let mut germline: Vec<GermlineVariant> =
            germline.into_iter().map(|edit| GermlineVariant { edit, haplotypes: [true; 2] }).collect();
        germline.sort_by_key(|g| g.edit.position);
        let somatic = somatic.into_iter().enumerate().map(|(i, edit)| (edit, fraction(i, rng))).collect();
        MitochondrialVariants { contig, germline, somatic }
    }

    /// Returns each different mitochondrial genome of a cell with its share of the copies. `somatic` are the
    /// heteroplasmic variants, sorted by decreasing share.
    fn build_mitochondrial_genomes<'a>(
        &'a self,
        genome: &'a Genome,
        somatic: &[&'a (SequenceEdit, f64)],
    ) -> Vec<(f64, CellChromosome<'a>)> {
        let mut edits: Vec<&SequenceEdit> = self.germline.iter().map(|g| &g.edit).collect();
        let share = |i: usize| somatic.get(i).map_or(0.0, |v| v.1);
        let mut kinds = vec![(1.0 - share(0), self.build_circular_chromosome(genome, &edits))];
        for (i, (edit, fraction)) in somatic.iter().enumerate() {
            edits.push(edit);
            edits.sort_by_key(|e| e.position);
            kinds.push((fraction - share(i + 1), self.build_circular_chromosome(genome, &edits)));
        }
        kinds
    }

    /// Returns the mitochondrial genomes of normal cells, each with its share of the copies.
    pub(crate) fn build_mitochondria_of_normal_cells<'a>(
        &'a self,
        genome: &'a Genome,
    ) -> Vec<(f64, CellChromosome<'a>)> {
        self.build_mitochondrial_genomes(genome, &[])
    }

    /// Returns the mitochondrial genomes of tumour cells, each with its share of the copies.
    pub(crate) fn build_mitochondria_of_tumour_cells<'a>(
        &'a self,
        genome: &'a Genome,
    ) -> Vec<(f64, CellChromosome<'a>)> {
        let mut somatic: Vec<&(SequenceEdit, f64)> = self.somatic.iter().collect();
        somatic.sort_by(|a, b| b.1.total_cmp(&a.1));
        self.build_mitochondrial_genomes(genome, &somatic)
    }

    /// Returns the circular chromosome with `edits` applied. Its sequence is stored twice in a row, so that fragments
    /// may span its origin.
    fn build_circular_chromosome<'a>(&self, genome: &'a Genome, edits: &[&'a SequenceEdit]) -> CellChromosome<'a> {
        let seq = &genome.seqs[self.contig];
        let whole = ContigSpan { contig: self.contig, start: 0, end: seq.len() };
        let (mut sequence, mut origins) = (ChromosomeSequence::default(), ReferenceOrigins::default());
        for _ in 0..2 {
            sequence.append_edited_span(seq, whole, edits, false);
            origins.append_edited_reference_span(whole, &[], false);
        }
        CellChromosome { sequence, origins, copies: 1, circular: true, carried_variants: vec![] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_add_up_to_the_fractions() {
        let nuclear = Genome::from_sequences(vec!["a".into()], vec![b"ACGT".to_vec()]);
        let mut rng = Rng::from_seed_and_labels(3, &[]);
        let genome = add_mitochondrial_contig(&nuclear, &mut rng).unwrap();
        assert!(
            add_mitochondrial_contig(&genome, &mut rng).unwrap_err().to_string().contains("already has a contig chrM")
        );
        let mitochondrion = MitochondrialVariants::draw_variants_of_person_and_tumour(&genome, &mut rng);
        let kinds = mitochondrion.build_mitochondria_of_tumour_cells(&genome);
        assert!((kinds.iter().map(|k| k.0).sum::<f64>() - 1.0).abs() < 1e-9);
        for (edit, fraction) in &mitochondrion.somatic {
            let has = |c: &CellChromosome| {
                assert_eq!(
                    c.sequence.base_at(edit.position.pos),
                    c.sequence.base_at(edit.position.pos + MITOCHONDRIAL_LENGTH_BP)
                );
                c.sequence.base_at(edit.position.pos) == edit.added[0]
            };
            let found: f64 = kinds.iter().filter(|k| has(&k.1)).map(|k| k.0).sum();
            assert!((found - fraction).abs() < 1e-9 && (0.03..=0.6).contains(fraction));
            assert!(mitochondrion.build_mitochondria_of_normal_cells(&genome).iter().all(|k| !has(&k.1)));
        }
        for g in &mitochondrion.germline {
            assert!(kinds.iter().all(|k| k.1.sequence.base_at(g.edit.position.pos) == g.edit.added[0]));
        }
    }
}
