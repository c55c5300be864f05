//! The chromosomes of every kind of cell in the samples.

use crate::genome::Genome;
use crate::germline::Germline;
use crate::karyotype::{Edits, Karyotype};
use crate::mitochondrion::Mitochondrion;
use crate::origin::Origins;
use crate::sequence::Sequence;
use crate::sequencing::{Chromosome, Mixture};
use crate::tumour::{Carriers, Placed, Tumour};
use crate::variant::Edit;

/// Chromosomes of the patient's cells and of another person's.
#[derive(Debug)]
pub struct Cells<'a> {
    normal: Vec<Chromosome<'a>>,
    /// One for each population of tumour cells.
    tumour: Vec<Vec<Chromosome<'a>>>,
    /// Share of each of these populations.
    shares: Vec<f64>,
    /// Another person's, or another species'.
    foreign: Vec<Chromosome<'a>>,
    mitochondria: Option<Mitochondria<'a>>,
}

/// Kinds of mitochondrial genomes, and the share of each in its cells.
#[derive(Debug)]
struct Mitochondria<'a> {
    normal: Vec<(f64, Chromosome<'a>)>,
    tumour: Vec<(f64, Chromosome<'a>)>,
    foreign: Vec<(f64, Chromosome<'a>)>,
}

impl<'a> Cells<'a> {
    /// Of the patient only.
    pub fn new(genome: &'a Genome, tumour: &'a Tumour, germline: &'a [Germline]) -> Self {
        let spell = |population: Option<usize>| -> Vec<Chromosome<'a>> {
            let haplotype = |h: usize| {
                let edits = edits_of(genome, tumour, germline, population, h);
                spell(genome, &population.map_or(&tumour.healthy, |p| &tumour.karyotypes[p])[h], &edits)
            };
            haplotype(0).into_iter().chain(haplotype(1)).collect()
        };
        // A population without cells is never sequenced.
        let cells = |p: usize| if tumour.shares[p] > 0.0 { spell(Some(p)) } else { vec![] };
        Cells {
            normal: spell(None),
            tumour: (0..tumour.shares.len()).map(cells).collect(),
            shares: tumour.shares.clone(),
            foreign: vec![],
            mitochondria: None,
        }
    }

    /// Adds another person, with chromosomes of these two haplotypes.
    pub(crate) fn add_person(&mut self, genome: &'a Genome, healthy: &'a [Karyotype; 2], germline: &'a [Germline]) {
        for (haplotype, karyotype) in healthy.iter().enumerate() {
            self.foreign.extend(spell(genome, karyotype, &germline_edits(genome, germline, haplotype)));
        }
    }

    /// Adds another species.
    pub(crate) fn add_species(&mut self, genome: &'a Genome) {
        for bases in &genome.seqs {
            let mut origins = Origins::default();
            origins.novel(bases.len());
            let sequence = Sequence::of(bases);
            self.foreign.push(Chromosome { sequence, origins, copies: 1, circular: false });
        }
    }

    /// Adds mitochondrial genomes: the patient's, and another person's if there is one.
    pub(crate) fn add_mitochondria(
        &mut self,
        genome: &'a Genome,
        patient: &'a Mitochondrion,
        other: Option<&'a Mitochondrion>,
    ) {
        self.mitochondria = Some(Mitochondria {
            normal: patient.normal(genome),
            tumour: patient.tumour(genome),
            foreign: other.map_or(vec![], |other| other.normal(genome)),
        });
    }

    /// Chromosomes of the patient where a share of the cells is the tumour's.
    pub fn patient(&self, tumour_share: f64) -> Mixture<'_> {
        let mut genomes = vec![(1.0 - tumour_share, self.normal.as_slice())];
        for (chromosomes, share) in self.tumour.iter().zip(&self.shares) {
            genomes.push((tumour_share * share, chromosomes.as_slice()));
        }
        genomes
    }

    /// Chromosomes of the other person or species.
    pub fn foreign(&self) -> Mixture<'_> {
        vec![(1.0, self.foreign.as_slice())]
    }

    /// Mitochondrial genomes where a share of the cells is the tumour's and one of the reads is foreign.
    pub fn mitochondria(&self, tumour_share: f64, foreign: f64) -> Mixture<'_> {
        let Some(kinds) = &self.mitochondria else { return vec![] };
        // Another species brings none.
        let foreign = if kinds.foreign.is_empty() { 0.0 } else { foreign };
        let own = 1.0 - foreign;
        [
            weighted(own * (1.0 - tumour_share), &kinds.normal),
            weighted(own * tumour_share, &kinds.tumour),
            weighted(foreign, &kinds.foreign),
        ]
        .concat()
    }
}

/// Each kind as a genome of its own.
fn weighted<'a>(weight: f64, kinds: &'a [(f64, Chromosome<'a>)]) -> Mixture<'a> {
    kinds.iter().map(|(share, c)| (weight * share, std::slice::from_ref(c))).collect()
}

fn spell<'a>(genome: &'a Genome, karyotype: &'a Karyotype, edits: &Edits<'a>) -> Vec<Chromosome<'a>> {
    let spelled = karyotype.spell(genome, edits).into_iter().zip(karyotype.origins(edits));
    spelled
        .zip(karyotype.copies())
        .map(|((sequence, origins), &copies)| Chromosome { sequence, origins, copies, circular: false })
        .collect()
}

fn germline_edits<'a>(genome: &Genome, germline: &'a [Germline], haplotype: usize) -> Edits<'a> {
    let mut late: Vec<Vec<&Edit>> = vec![vec![]; genome.seqs.len()];
    for g in germline.iter().filter(|g| g.haplotypes[haplotype]) {
        late[g.edit.at.contig].push(&g.edit);
    }
    Edits { early: late.clone(), late }
}

/// Small variants of one haplotype. Without a population: of the normal cells.
pub(crate) fn edits_of<'a>(
    genome: &Genome,
    tumour: &'a Tumour,
    germline: &'a [Germline],
    population: Option<usize>,
    haplotype: usize,
) -> Edits<'a> {
    let mut edits = germline_edits(genome, germline, haplotype);
    let Some(population) = population else { return edits };
    let carried = |p: &&Placed<Edit>| p.haplotype == haplotype && (p.clone == 0 || p.clone == population);
    for p in tumour.small.iter().chain(&tumour.inner).filter(carried) {
        edits.late[p.variant.at.contig].push(&p.variant);
        if p.carriers == Carriers::All {
            edits.early[p.variant.at.contig].push(&p.variant);
        }
    }
    edits.late.iter_mut().chain(&mut edits.early).for_each(|contig| contig.sort_by_key(|e| e.at));
    edits
}
