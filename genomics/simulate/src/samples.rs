//! Prepares each sample for sequencing: collects its DNA sources and computes how many read pairs its depth needs.

use crate::amplicons::AmpliconPanel;
use crate::cell_genomes::PatientAndForeignGenomes;
use crate::error::{Error, Result};
use crate::genome::Genome;
use crate::healthy_ploidy::HealthyPloidy;
use crate::mitochondrial_variants;
use crate::params::SimulationParams;
use crate::rng::{RandomStream, Rng};
use crate::sequencing::{
    AmpliconProducts, ChromosomePool, CoverageModel, DnaComponent, DnaPool, DnaSource, FragmentSampling, GenomeMixture,
    InsertSizeDistribution, Library, LibraryRecurrentErrors, RecurrentError, Sequencer, TargetCopies,
    draw_fragment_by_coverage,
};
use crate::targets::CaptureTargets;

/// Number of read pairs that are drawn to measure how many bases one pair adds to the depth.
const PILOT_PAIRS: usize = 40_000;

/// Inputs for sequencing that are the same for both samples.
#[derive(Debug)]
pub(crate) struct SequencingInputs<'a> {
    /// The nuclear reference genome, without mitochondrial contig.
    pub genome: &'a Genome,
    /// Chromosomes of all kinds of cells.
    pub cells: &'a PatientAndForeignGenomes<'a>,
    /// Haplotypes of each contig that healthy cells have.
    pub ploidy: &'a HealthyPloidy,
    /// Targets of the capture; `None` without target capture.
    pub targets: Option<&'a CaptureTargets>,
    /// Amplicons whose PCR products are sequenced; `None` if fragments are random.
    pub amplicons: Option<&'a AmpliconPanel>,
    /// Recurrent errors: sites at which every library shows the same wrong base.
    pub recurrent: &'a [RecurrentError],
    /// Parameters of the whole simulation.
    pub params: &'a SimulationParams,
}

/// Depth and composition of one sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleSpec {
    /// Mean depth of the genome, of the capture targets, or of the amplicons, in reads.
    pub depth: f64,
    /// Share of the patient's cells in the sample that are tumour cells, 0 to 1.
    pub(crate) tumour_share: f64,
    /// Share of the sample's reads that come from another person or species, 0 to 1.
    pub foreign: f64,
    /// Random stream from which the reads of the sample are drawn.
    pub stream: RandomStream,
}

/// Random streams of a sample besides those of its blocks of reads.
#[derive(Clone, Copy)]
enum SampleStream {
    CoverageWave,
    AdapterIndices,
    PilotPairs,
    RecurrentErrors,
}

/// A sample that is ready to be sequenced: library, sequencer and number of read pairs.
#[derive(Debug)]
pub(crate) struct PreparedSample<'a> {
    /// The library from which the molecules of the sample are drawn.
    pub library: Library<'a>,
    /// Sequencer that reads both ends of each molecule.
    pub machine: Sequencer<'a>,
    /// Number of read pairs that give the depth of the sample.
    pub pairs: usize,
    /// Random seed from which the blocks of reads are drawn.
    pub seed: u64,
}

impl<'a> SequencingInputs<'a> {
    /// Collects the DNA sources of a sample and computes the number of read pairs for its depth.
    ///
    /// # Errors
    /// Returns an error if the patient's DNA in the sample has no copy of any target or amplicon.
    pub(crate) fn prepare_sample(&self, sample: &SampleSpec) -> Result<PreparedSample<'a>> {
        let reads = &self.params.sequencing;
        let seed = self.params.rng_for_stream(sample.stream).next_u64();
        let random = |what: SampleStream| Rng::from_seed_and_labels(seed, &[u64::MAX - what as u64]);
        let machine = Sequencer::new(reads, &mut random(SampleStream::AdapterIndices));
        let shared = self.params.rng_for_stream(RandomStream::Coverage);
        let coverage = CoverageModel::draw_coverage_model(
            &reads.coverage,
            self.genome,
            shared,
            random(SampleStream::CoverageWave),
        );
        let pilot = &mut random(SampleStream::PilotPairs);
        let sources = match self.amplicons {
            Some(panel) => self.amplified_components(sample, panel, &machine, pilot)?,
            None => self.sheared_components(sample, coverage.as_ref(), &machine, pilot)?,
        };
        let pairs = sources.iter().map(|s| s.share).sum::<f64>().round() as usize;
        let shown =
            || LibraryRecurrentErrors::draw_molecule_shares(self.recurrent, &mut random(SampleStream::RecurrentErrors));
        let recurrent = (!self.recurrent.is_empty()).then(shown);
        let library = Library::from_dna_pool(DnaPool::from_sources(sources, coverage), reads, recurrent);
        Ok(PreparedSample { library, machine, pairs, seed })
    }

    /// Lists the DNA sources of a sample with random fragments, each with its number of read pairs. `pilot` is the
    /// random generator for the pairs that are drawn to measure how many bases a pair covers.
    fn sheared_components(
        &self,
        sample: &SampleSpec,
        coverage: Option<&CoverageModel>,
        machine: &Sequencer,
        pilot: &mut Rng,
    ) -> Result<Vec<DnaComponent<'a>>> {
        let reads = &self.params.sequencing;
        let inserts = InsertSizeDistribution::insert_sizes_from_params(reads);
        let patient = self.cells.patient_genome_mixture(sample.tumour_share);
        let shortest = reads.longest_read_bp();
        let pool = ChromosomePool::from_genomes(&patient, shortest);
        let known = self.genome.num_acgt_bases() as f64;
        // The depth refers to two copies; amplified sequence adds to it.
        let amplified = self.params.copies.amplifications > 0;
        let content = if amplified {
            pool.mean_bases_per_cell() / (2 * self.genome.length_bp()) as f64
        } else {
            self.ploidy.dna_content_relative_to_diploid(self.genome)
        };
        let per_pair = if machine.has_uniform_read_length() {
            (2 * reads.read_length) as f64
        } else {
            mean_bases_per_pair(&inserts, machine, &mut pilot.clone())
        };

        let mut sources = vec![];
        let mut add = |pairs: f64, kind: DnaSource, sampling: FragmentSampling<'a>| {
            if pairs > 0.0 {
                sources.push(DnaComponent { share: pairs, dna_source: kind, sampling });
            }
        };
        let (own, foreign) = (1.0 - sample.foreign, sample.foreign);
        let mut anywhere = sample.depth * known / per_pair * content;
        let mut foreign_anywhere = anywhere * foreign;
        if let (Some(targets), Some(capture)) = (self.targets, &self.params.capture) {
            let caught = TargetCopies::find_target_copies(&patient, targets, inserts.rarely_exceeded_insert_bp());
            if caught.is_empty() {
                return Err(Error::Parameters("the tumour has no copy of any target; choose other targets".into()));
            }
            let on_target = mean_on_target_bases_per_pair(&caught, coverage, &inserts, machine, pilot);
            let content = if amplified { caught.target_copies_relative_to_healthy() } else { 1.0 };
            let pairs = sample.depth * targets.total_target_bp() as f64 / on_target * content;
            anywhere *= capture.off_target;
            add(pairs * own, DnaSource::Patient, FragmentSampling::Targets(caught));
            let others = TargetCopies::find_target_copies(
                &self.cells.foreign_genome_mixture(),
                targets,
                inserts.rarely_exceeded_insert_bp(),
            );
            if others.is_empty() {
                // Another species has no targets.
                foreign_anywhere = (anywhere + pairs) * foreign;
            } else {
                foreign_anywhere = anywhere * foreign;
                add(pairs * foreign, DnaSource::Foreign, FragmentSampling::Targets(others));
            }
        }
        add(anywhere * own, DnaSource::Patient, FragmentSampling::GenomeWide(pool));
        add(foreign_anywhere, DnaSource::Foreign, genome_wide_sampling(&self.cells.foreign_genome_mixture(), shortest));
        if self.params.samples.mitochondrion > 0.0 {
            let pairs =
                self.params.samples.mitochondrion * mitochondrial_variants::MITOCHONDRIAL_LENGTH_BP as f64 / per_pair;
            let mixture = self.cells.mitochondrial_genome_mixture(sample.tumour_share, foreign);
            add(pairs, DnaSource::Mitochondrion, genome_wide_sampling(&mixture, shortest));
        }
        Ok(sources)
    }

    /// Lists the DNA sources of a sample whose amplicons are sequenced, each with its number of read pairs. The number
    /// of PCR products depends on the primers and not on copy numbers, because laboratories dilute all libraries to one
    /// concentration.
    fn amplified_components(
        &self,
        sample: &SampleSpec,
        panel: &'a AmpliconPanel,
        machine: &Sequencer,
        pilot: &mut Rng,
    ) -> Result<Vec<DnaComponent<'a>>> {
        let patient = AmpliconProducts::find_products(&self.cells.patient_genome_mixture(sample.tumour_share), panel);
        if patient.is_empty() {
            return Err(Error::Parameters("the tumour has no copy of any amplicon; choose other targets".into()));
        }
        let bases: usize = (0..PILOT_PAIRS).map(|_| draw_product_bases(&patient, machine, pilot)).sum();
        let pairs = sample.depth * (panel.count_bases_in_amplicons() * PILOT_PAIRS) as f64 / bases as f64;
        let foreign = AmpliconProducts::find_products(&self.cells.foreign_genome_mixture(), panel);
        // Primers do not bind to another species.
        let foreign_share = if foreign.is_empty() { 0.0 } else { sample.foreign };
        let component = |share: f64, dna_source: DnaSource, products: AmpliconProducts<'a>| DnaComponent {
            share: pairs * share,
            dna_source,
            sampling: FragmentSampling::Amplicons(products),
        };
        let own = component(1.0 - sample.foreign, DnaSource::Patient, patient);
        let other = component(foreign_share, DnaSource::Foreign, foreign);
        Ok([own, other].into_iter().filter(|source| source.share > 0.0).collect())
    }
}

fn genome_wide_sampling<'a>(mixture: &GenomeMixture<'a>, shortest: usize) -> FragmentSampling<'a> {
    FragmentSampling::GenomeWide(ChromosomePool::from_genomes(mixture, shortest))
}

/// Draws a PCR product and returns the number of its bases that the two mates read together (bp). Bases in the overlap
/// of the mates count twice.
fn draw_product_bases(products: &AmpliconProducts, machine: &Sequencer, rng: &mut Rng) -> usize {
    let product_bp = products.draw_amplicon_product(rng).0.len();
    machine.draw_template_bp_of_mates(rng).map(|length| length.min(product_bp)).iter().sum()
}

/// Returns the mean number of molecule bases that the two mates of a pair read (bp). Bases in the overlap of the mates
/// count twice.
fn mean_bases_per_pair(inserts: &InsertSizeDistribution, machine: &Sequencer, rng: &mut Rng) -> f64 {
    let pair = |rng: &mut Rng| {
        let insert = inserts.draw_insert(rng).insert_length_bp();
        machine.draw_template_bp_of_mates(rng).map(|length| length.min(insert)).iter().sum::<usize>()
    };
    (0..PILOT_PAIRS).map(|_| pair(rng)).sum::<usize>() as f64 / PILOT_PAIRS as f64
}

/// Returns the mean number of target bases that the two mates of a pair from a captured fragment read (bp). Bases in
/// the overlap of the mates count twice.
fn mean_on_target_bases_per_pair(
    caught: &TargetCopies,
    coverage: Option<&CoverageModel>,
    inserts: &InsertSizeDistribution,
    machine: &Sequencer,
    rng: &mut Rng,
) -> f64 {
    let pair = |rng: &mut Rng| {
        let insert = inserts.draw_insert(rng).insert_length_bp();
        if insert == 0 {
            return 0;
        }
        let fragment = draw_fragment_by_coverage(|rng| caught.draw_fragment(insert, rng), coverage, rng);
        let n = fragment.len();
        let [first, second] = machine.draw_template_bp_of_mates(rng).map(|length| length.min(n));
        caught.count_fragment_bases_in_targets(&fragment, 0, first)
            + caught.count_fragment_bases_in_targets(&fragment, n - second, n)
    };
    (0..PILOT_PAIRS).map(|_| pair(rng)).sum::<usize>() as f64 / PILOT_PAIRS as f64
}
