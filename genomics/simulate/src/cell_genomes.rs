//! Builds the chromosome sequences of every kind of cell in the samples: normal cells, tumour cells, and cells of a
//! contaminant (another person or species).

use std::ops::Range;
use std::sync::Arc;

use genuma_reads::dna;

use crate::chromosome_sequence::ChromosomeSequence;
use crate::genome::Genome;
use crate::germline::GermlineVariant;
use crate::karyotype::{HaplotypeSmallVariants, Karyotype};
use crate::mitochondrial_variants::MitochondrialVariants;
use crate::reference_origins::ReferenceOrigins;
use crate::sequencing::{CarriedVariant, CellChromosome, GenomeMixture};
use crate::truth;
use crate::tumour::{CarrierCopies, PlacedVariant, Tumour};
use crate::variant::{GenomePosition, SequenceEdit};

/// Chromosomes of the patient's normal and tumour cells, and of another person or species that contaminates the
/// samples.
#[derive(Debug)]
pub(crate) struct PatientAndForeignGenomes<'a> {
    normal: Vec<CellChromosome<'a>>,
    /// Chromosomes of each population of tumour cells; empty for a population that has no cells in the sample.
    tumour: Vec<Vec<CellChromosome<'a>>>,
    /// Share of each population among all tumour cells.
    shares: Vec<f64>,
    /// Chromosomes of another person or species; empty if there is no contaminant.
    foreign: Vec<CellChromosome<'a>>,
    mitochondria: Option<MitochondrialGenomes<'a>>,
}

/// Mitochondrial genomes of normal cells, of tumour cells and of another person, each with its share among the
/// mitochondrial genomes of these cells.
#[derive(Debug)]
struct MitochondrialGenomes<'a> {
    normal: Vec<(f64, CellChromosome<'a>)>,
    tumour: Vec<(f64, CellChromosome<'a>)>,
    foreign: Vec<(f64, CellChromosome<'a>)>,
}

impl<'a> PatientAndForeignGenomes<'a> {
    /// Builds the chromosomes of the patient's normal and tumour cells.
    pub(crate) fn build_patient_genomes(
        genome: &'a Genome,
        tumour: &'a Tumour,
        germline: &'a [GermlineVariant],
    ) -> Self {
        let spell = |population: Option<usize>| -> Vec<CellChromosome<'a>> {
            let haplotype = |h: usize| {
                let edits = collect_haplotype_small_variants(genome, tumour, germline, population, h);
                build_cell_chromosomes(
                    genome,
                    &population.map_or(&tumour.healthy, |p| &tumour.karyotypes[p])[h],
                    &edits,
                )
            };
            haplotype(0).into_iter().chain(haplotype(1)).collect()
        };
        // A population without cells is never sequenced.
        let cells = |p: usize| if tumour.population_shares[p] > 0.0 { spell(Some(p)) } else { vec![] };
        PatientAndForeignGenomes {
            normal: spell(None),
            tumour: (0..tumour.population_shares.len()).map(cells).collect(),
            shares: tumour.population_shares.clone(),
            foreign: vec![],
            mitochondria: None,
        }
    }

    /// Adds the chromosomes of another person, with these healthy haplotypes and germline variants.
    pub(crate) fn add_foreign_person(
        &mut self,
        genome: &'a Genome,
        healthy: &'a [Karyotype; 2],
        germline: &'a [GermlineVariant],
    ) {
        for (haplotype, karyotype) in healthy.iter().enumerate() {
            self.foreign.extend(build_cell_chromosomes(
                genome,
                karyotype,
                &germline_edits(genome, germline, haplotype),
            ));
        }
    }

    /// Adds the chromosomes of another species. Their bases have no position on the reference.
    pub(crate) fn add_foreign_species(&mut self, genome: &'a Genome) {
        for bases in &genome.seqs {
            let mut origins = ReferenceOrigins::default();
            origins.append_novel_length_bp(bases.len());
            let sequence = ChromosomeSequence::from_bases(bases);
            self.foreign.push(CellChromosome {
                sequence,
                origins,
                copies: 1,
                circular: false,
                carried_variants: vec![],
            });
        }
    }

    /// Adds the mitochondrial genomes of the patient and, if `other` is given, of another person.
    pub(crate) fn add_mitochondria(
        &mut self,
        genome: &'a Genome,
        patient: &'a MitochondrialVariants,
        other: Option<&'a MitochondrialVariants>,
    ) {
        self.mitochondria = Some(MitochondrialGenomes {
            normal: patient.build_mitochondria_of_normal_cells(genome),
            tumour: patient.build_mitochondria_of_tumour_cells(genome),
            foreign: other.map_or(vec![], |other| other.build_mitochondria_of_normal_cells(genome)),
        });
    }

    /// Records for each nuclear chromosome which of `variants` it has, so that the table of molecules can list them.
    pub(crate) fn record_variants_of_each_chromosome(&mut self, genome: &Genome, variants: &[&SequenceEdit]) {
        // An indel at the first base has no base before it.
        let mut variants: Vec<&SequenceEdit> = variants.iter().copied().filter(|v| v.position.pos > 0).collect();
        variants.sort_by_key(|variant| variant.position);
        let before = |v: &&SequenceEdit| GenomePosition { pos: v.position.pos - 1, ..v.position };
        let anchors: Vec<GenomePosition> = variants.iter().map(before).collect();
        let name = |v: &&SequenceEdit| {
            let (pos, reference, alternate) = truth::vcf_pos_and_alleles(genome, v);
            Arc::from(format!("{}:{pos}:{reference}:{alternate}", genome.names[v.position.contig]))
        };
        let names: Vec<Arc<str>> = variants.iter().map(name).collect();
        for chromosome in self.normal.iter_mut().chain(self.tumour.iter_mut().flatten()).chain(&mut self.foreign) {
            let mut carried = vec![];
            chromosome.origins.for_each_copy_of_bases(&anchors, |i, at, reverse| {
                let bases = carried_bases(chromosome, variants[i], at, reverse);
                carried.extend(bases.map(|bases| CarriedVariant { bases, name: names[i].clone() }));
            });
            carried.sort_by_key(|variant| variant.bases.start);
            chromosome.carried_variants = carried;
        }
    }

    /// Returns the patient's chromosomes, weighted so that `tumour_share` of the cells are tumour cells.
    pub(crate) fn patient_genome_mixture(&self, tumour_share: f64) -> GenomeMixture<'_> {
        let mut genomes = vec![(1.0 - tumour_share, self.normal.as_slice())];
        for (chromosomes, share) in self.tumour.iter().zip(&self.shares) {
            genomes.push((tumour_share * share, chromosomes.as_slice()));
        }
        genomes
    }

    /// Returns the chromosomes of the other person or species as a mixture of one genome, which has no chromosomes if
    /// there is no contaminant.
    pub(crate) fn foreign_genome_mixture(&self) -> GenomeMixture<'_> {
        vec![(1.0, self.foreign.as_slice())]
    }

    /// Returns the mitochondrial genomes with weights: `tumour_share` of the patient's cells are tumour cells, and
    /// `foreign` of the reads come from another person, if there is one.
    pub(crate) fn mitochondrial_genome_mixture(&self, tumour_share: f64, foreign: f64) -> GenomeMixture<'_> {
        let Some(kinds) = &self.mitochondria else { return vec![] };
        // Another species has no mitochondrial genome here.
        let foreign = if kinds.foreign.is_empty() { 0.0 } else { foreign };
        let own = 1.0 - foreign;
        [
            weighted_genomes(own * (1.0 - tumour_share), &kinds.normal),
            weighted_genomes(own * tumour_share, &kinds.tumour),
            weighted_genomes(foreign, &kinds.foreign),
        ]
        .concat()
    }
}

/// Returns the range of a chromosome that shows a variant, with one base on either side; `None` if the chromosome lacks
/// the variant. `at` is the chromosome position of the base before the variant, and `reverse` is whether the chromosome
/// has the reverse complement of the reference there.
fn carried_bases(
    chromosome: &CellChromosome,
    variant: &SequenceEdit,
    at: usize,
    reverse: bool,
) -> Option<Range<usize>> {
    let onwards = |n: usize| if reverse { at.checked_sub(n) } else { Some(at + n) };
    let behind = onwards(variant.added.len() + 1)?;
    let next = GenomePosition { pos: variant.reference_end(), ..variant.position };
    if chromosome.origins.reference_position_of_base(behind) != Some(next) {
        return None;
    }
    let bases = at.min(behind)..at.max(behind) + 1;
    let spelled = chromosome.sequence.bases_in_range(bases.start + 1..bases.end - 1);
    let spelled = if reverse { dna::reverse_complement(&spelled) } else { spelled };
    (spelled == variant.added).then_some(bases)
}

/// Returns each mitochondrial genome as a genome of its own, with its share multiplied by `weight`.
fn weighted_genomes<'a>(weight: f64, kinds: &'a [(f64, CellChromosome<'a>)]) -> GenomeMixture<'a> {
    kinds.iter().map(|(share, c)| (weight * share, std::slice::from_ref(c))).collect()
}

fn build_cell_chromosomes<'a>(
    genome: &'a Genome,
    karyotype: &'a Karyotype,
    edits: &HaplotypeSmallVariants<'a>,
) -> Vec<CellChromosome<'a>> {
    let spelled = karyotype
        .build_chromosome_sequences(genome, edits)
        .into_iter()
        .zip(karyotype.list_reference_origins_of_chromosomes(edits));
    spelled
        .zip(karyotype.copies_per_chromosome())
        .map(|((sequence, origins), &copies)| CellChromosome {
            sequence,
            origins,
            copies,
            circular: false,
            carried_variants: vec![],
        })
        .collect()
}

fn germline_edits<'a>(
    genome: &Genome,
    germline: &'a [GermlineVariant],
    haplotype: usize,
) -> HaplotypeSmallVariants<'a> {
    let mut late: Vec<Vec<&SequenceEdit>> = vec![vec![]; genome.seqs.len()];
    for g in germline.iter().filter(|g| g.haplotypes[haplotype]) {
        late[g.edit.position.contig].push(&g.edit);
    }
    HaplotypeSmallVariants { early: late.clone(), late }
}

/// Returns the small variants of one haplotype in a population of tumour cells, and its deletions within amplified
/// spans, sorted by position. Without a population: those of normal cells, which are the germline variants only.
pub(crate) fn collect_haplotype_small_variants<'a>(
    genome: &Genome,
    tumour: &'a Tumour,
    germline: &'a [GermlineVariant],
    population: Option<usize>,
    haplotype: usize,
) -> HaplotypeSmallVariants<'a> {
    let mut edits = germline_edits(genome, germline, haplotype);
    let Some(population) = population else { return edits };
    let carried =
        |p: &&PlacedVariant<SequenceEdit>| p.haplotype == haplotype && (p.clone == 0 || p.clone == population);
    for p in tumour.small.iter().chain(&tumour.amplified_span_deletions).filter(carried) {
        edits.late[p.variant.position.contig].push(&p.variant);
        if p.carriers == CarrierCopies::All {
            edits.early[p.variant.position.contig].push(&p.variant);
        }
    }
    edits.late.iter_mut().chain(&mut edits.early).for_each(|contig| contig.sort_by_key(|e| e.position));
    edits
}
