//! Runs the whole simulation: genome, variants, chromosomes, truth files, reads.

use std::io::Write;
use std::path::Path;

use genuma_work::publish::{AtomicFile, AtomicFileSet};
use serde::Serialize;

use crate::amplicons::AmpliconPanel;
use crate::cell_genomes::PatientAndForeignGenomes;
use crate::copy_number_summary::CopyNumberSummary;
use crate::copy_numbers::{self, AneuploidContig};
use crate::error::{Error, Result};
use crate::foreign_person::{self, Relationship};
use crate::genome::{Genome, write_file_and_add_to_set};
use crate::germline::{self, GermlineVariant};
use crate::healthy_ploidy::HealthyPloidy;
use crate::human_like_genome::{self, RepeatAndGapAnnotation};
use crate::integrations;
use crate::linked_variants;
use crate::mitochondrial_variants::{self, MitochondrialVariants};
use crate::msi;
use crate::occupied_regions::OccupiedRegions;
use crate::params::{GenomeSource, SimulationParams};
use crate::recurrent_errors;
use crate::repeated_kmers::RepeatedKmersOfSpans;
use crate::rng::RandomStream;
use crate::samples::{PreparedSample, SampleSpec, SequencingInputs};
use crate::sequencing::{self, FastqSink, ReadAndArtefactCounts, RecurrentError, SampleFastqSpec};
use crate::somatic;
use crate::synthetic_genome;
use crate::targets::CaptureTargets;
use crate::truth::{self, TruthRecordBuilder};
use crate::tumour::Tumour;
use crate::variant_placer::VariantPlacer;

/// Version of the schema of `simulate.json` (docs/schema/simulate.schema.json). It is raised when keys change
/// incompatibly.
const SUMMARY_SCHEMA_VERSION: u32 = 1;

/// Numbers of variants, reads and artefacts that were simulated.
#[derive(Debug, Clone, Serialize)]
pub struct SimulationSummary {
    /// Total length of the reference, bp.
    pub genome_length: usize,
    /// Number of germline variants of the patient, heterozygous and homozygous, including mitochondrial ones.
    pub germline_variants: usize,
    /// Number of somatic SNVs, indels and MNVs that at least one tumour cell of the sample has, including mitochondrial
    /// ones.
    pub somatic_small: usize,
    /// Number of somatic structural variants that at least one tumour cell of the sample has.
    pub somatic_structural: usize,
    /// Number of read pairs of the tumour sample.
    pub tumor_pairs: usize,
    /// Number of read pairs of the normal sample.
    pub normal_pairs: usize,
    /// Contigs whose haplotypes have other copy numbers in founder tumour cells than in healthy cells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aneuploid: Vec<AneuploidContig>,
    /// Ploidy, LOH and subclonal copy number of the tumour; `None` if `aneuploid` is empty, even if only subclones have
    /// other copy numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tumor_content: Option<CopyNumberSummary>,
    /// Number of tandem repeats with a somatic length change, and number of all repeats that could change; `None` if
    /// microsatellite instability is not simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unstable_tracts: Option<[usize; 2]>,
    /// Total length of the capture targets, bp; `None` without capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target_bases: Option<usize>,
    /// Numbers of molecules, reads and artefacts of the tumour sample; `None` if no optional effect is simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tumor_reads: Option<ReadAndArtefactCounts>,
    /// Numbers of molecules, reads and artefacts of the normal sample; `None` if no optional effect is simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) normal_reads: Option<ReadAndArtefactCounts>,
}

struct SimulatedVariants {
    tumour: Tumour,
    germline: Vec<GermlineVariant>,
    /// Germline variants of another person whose reads contaminate the samples.
    foreign: Option<Vec<GermlineVariant>>,
    /// Mitochondrial variants of the patient and of the other person.
    mitochondria: Option<[MitochondrialVariants; 2]>,
    /// Number of tandem repeats with a somatic length change, and number of all repeats that could change.
    unstable: [usize; 2],
}

/// Runs a simulation and writes its files to the folder `out`, which is created if needed.
///
/// The files are `genome.fa` with its index, `tumor_{1,2}.fq.gz`, `normal_{1,2}.fq.gz`, `truth.vcf`, `germline.vcf`,
/// `truth.bedpe` and `simulate.json`; with a human-like genome also `repeats.bed`, with capture `targets.bed`, with
/// another person's reads `foreign.vcf`, with recurrent errors `recurrent.vcf`, with amplicons `primers.bed`, with UMIs
/// `{tumor,normal}_molecules.tsv.gz`. All files appear together when all are complete.
///
/// # Errors
/// Returns an error if a parameter is invalid, if the genome has no space for all somatic variants, or if a file cannot
/// be read or written.
pub fn simulate_to_folder(params: &SimulationParams, out: &Path, threads: usize) -> Result<SimulationSummary> {
    run_simulation(params, OutputTarget::Folder(out), threads)
}

/// One of the two simulated samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleRole {
    /// The tumour sample: a mixture of tumour cells and normal cells.
    Tumor,
    /// The normal sample: normal cells of the patient, and some tumour cells if the normal is contaminated with tumour.
    Normal,
}

/// Writes the reads of one sample to `out` as uncompressed interleaved FASTQ. They are the same reads that
/// [`simulate_to_folder`] writes with the same parameters. No file is written. The reads of the other sample are not
/// generated; their [`ReadAndArtefactCounts`] are 0.
///
/// # Errors
/// Returns the errors of [`simulate_to_folder`], and an error if `out` cannot be written.
pub fn write_interleaved_reads_of_sample(
    params: &SimulationParams,
    sample: SampleRole,
    out: &mut dyn Write,
    threads: usize,
) -> Result<SimulationSummary> {
    run_simulation(params, OutputTarget::Stream(sample, out), threads)
}

/// Destination of the simulation's output.
enum OutputTarget<'a> {
    /// All files are written to this folder.
    Folder(&'a Path),
    /// Only the reads of one sample are written, to this stream.
    Stream(SampleRole, &'a mut dyn Write),
}

fn run_simulation(params: &SimulationParams, mut to: OutputTarget<'_>, threads: usize) -> Result<SimulationSummary> {
    params.validate()?;
    let (nuclear, laid) = read_or_make_genome(params, threads)?;
    let shortest = params.sequencing.longest_read_bp();
    let species = params.foreign.genome.as_deref().map(|path| read_foreign_genome(path, shortest)).transpose()?;
    let whole = add_mitochondrion(params, &nuclear)?;
    let genome = whole.as_ref().unwrap_or(&nuclear);
    let targets = design_targets(params, &nuclear)?;
    let amplicons = design_amplicons(params, &nuclear, targets.as_ref())?;
    let variants = place_all_variants(&nuclear, genome, params, targets.as_ref())?;

    let recurrent = recurrent_errors::draw_recurrent_errors(&nuclear, &params.recurrent);
    let mut set = AtomicFileSet::default();
    if let OutputTarget::Folder(out) = to {
        std::fs::create_dir_all(out).map_err(Error::add_path_to_error(out))?;
        genome.write_fasta_and_index(&out.join("genome.fa"), &mut set)?;
        write_repeats_bed(&nuclear, &laid, &out.join("repeats.bed"), &mut set)?;
        write_truth(genome, params, &variants, threads, out, &mut set)?;
        write_library_files(genome, &recurrent, amplicons.as_ref(), targets.as_ref(), out, &mut set)?;
    }
    drop(laid);

    let cells = build_cell_genomes(params, &nuclear, genome, &variants, species.as_ref());
    let bench = SequencingInputs {
        genome: &nuclear,
        cells: &cells,
        ploidy: &variants.tumour.ploidy,
        targets: targets.as_ref(),
        amplicons: amplicons.as_ref(),
        recurrent: &recurrent,
        params,
    };
    let [tumor_sample, normal_sample] = sample_specs(params);
    let (tumor, normal) = (bench.prepare_sample(&tumor_sample)?, bench.prepare_sample(&normal_sample)?);
    let mut sequence = |sample: SampleRole, prepared: &PreparedSample| {
        let name = if sample == SampleRole::Tumor { "tumor" } else { "normal" };
        let sink = match &mut to {
            OutputTarget::Folder(out) => {
                let mut paths = [1, 2].map(|mate| out.join(format!("{name}_{mate}.fq.gz"))).to_vec();
                let molecules = out.join(format!("{name}_molecules.tsv.gz"));
                match params.sequencing.library.umi {
                    Some(_) => paths.push(molecules),
                    None => set.remove_file_on_publish(molecules),
                }
                FastqSink::Files(paths, &mut set)
            }
            OutputTarget::Stream(wanted, out) if *wanted == sample => FastqSink::Stream(&mut **out),
            OutputTarget::Stream(..) => return Ok(ReadAndArtefactCounts::default()),
        };
        let interleaved = matches!(sink, FastqSink::Stream(_));
        let output = SampleFastqSpec { interleaved, ..fastq_spec(params, genome, name, prepared, threads) };
        sequencing::sequence_library(&prepared.library, &prepared.machine, &output, sink)
    };
    let tumor_reads = sequence(SampleRole::Tumor, &tumor)?;
    let normal_reads = sequence(SampleRole::Normal, &normal)?;

    let summary = SimulationSummary {
        tumor_pairs: tumor.pairs,
        normal_pairs: normal.pairs,
        target_bases: targets.as_ref().map(CaptureTargets::total_target_bp),
        tumor_reads: params.should_report_read_counts().then_some(tumor_reads),
        normal_reads: params.should_report_read_counts().then_some(normal_reads),
        ..summarize_variants(params, &nuclear, genome, &variants)
    };
    let report = serde_json::json!({ "schema": SUMMARY_SCHEMA_VERSION, "version": env!("CARGO_PKG_VERSION"), "parameters": params, "made": summary });
    if let OutputTarget::Folder(out) = to {
        write_file_and_add_to_set(&out.join("simulate.json"), format!("{report:#}\n").as_bytes(), &mut set)?;
    }
    set.publish_all()?;
    Ok(summary)
}

/// Adds the mitochondrial contig to the genome if the samples have mitochondria.
fn add_mitochondrion(params: &SimulationParams, nuclear: &Genome) -> Result<Option<Genome>> {
    let rng = || params.rng_for_stream(RandomStream::Mitochondrion);
    let add = || mitochondrial_variants::add_mitochondrial_contig(nuclear, &mut rng());
    (params.samples.mitochondrion > 0.0).then(add).transpose()
}

/// Writes the recurrent errors, primers and targets of the libraries. Where this run has none of the first two, removes
/// the file of an earlier run.
fn write_library_files(
    genome: &Genome,
    recurrent: &[RecurrentError],
    amplicons: Option<&AmpliconPanel>,
    targets: Option<&CaptureTargets>,
    out: &Path,
    set: &mut AtomicFileSet,
) -> Result<()> {
    let recurrent = (!recurrent.is_empty()).then(|| truth::format_recurrent_error_vcf(genome, recurrent));
    write_or_remove_file(&out.join("recurrent.vcf"), recurrent, set)?;
    let primers = amplicons.map(|panel| panel.format_primers_as_bed(genome));
    write_or_remove_file(&out.join("primers.bed"), primers, set)?;
    if let Some(targets) = targets {
        write_file_and_add_to_set(&out.join("targets.bed"), targets.format_targets_as_bed(genome).as_bytes(), set)?;
    }
    Ok(())
}

fn fastq_spec<'a>(
    params: &'a SimulationParams,
    genome: &'a Genome,
    name: &'a str,
    prepared: &PreparedSample,
    threads: usize,
) -> SampleFastqSpec<'a> {
    SampleFastqSpec {
        interleaved: false,
        sample: name,
        contigs: &genome.names,
        true_positions: params.sequencing.true_positions,
        umi: params.sequencing.library.umi.as_ref(),
        pairs: prepared.pairs,
        duplicates: params.sequencing.duplicates,
        seed: prepared.seed,
        threads,
    }
}

/// Reads or makes the genome. The annotation of repeats and gaps is empty unless the genome is like the human one.
///
/// # Errors
/// The genome cannot be read, or all contigs are shorter than a read.
fn read_or_make_genome(params: &SimulationParams, threads: usize) -> Result<(Genome, Vec<RepeatAndGapAnnotation>)> {
    let mut laid = Vec::new();
    let nuclear = match &params.genome {
        GenomeSource::File(path) => Genome::read_fasta(path)?,
        GenomeSource::Made { length, contigs, repeats } => synthetic_genome::generate_synthetic_genome(
            *length,
            *contigs,
            *repeats,
            &mut params.rng_for_stream(RandomStream::Genome),
        ),
        GenomeSource::Human { length } => {
            let genome;
            (genome, laid) = human_like_genome::generate_human_like_genome(
                *length,
                &mut params.rng_for_stream(RandomStream::Genome),
                threads,
            );
            genome
        }
    };
    let shortest = params.sequencing.longest_read_bp();
    if nuclear.longest_contig_bp() < shortest {
        return Err(Error::Parameters(format!(
            "no contig of the genome is as long as a read ({shortest} bp): lower --read-length, or use a longer genome"
        )));
    }
    Ok((nuclear, laid))
}

fn design_targets(params: &SimulationParams, nuclear: &Genome) -> Result<Option<CaptureTargets>> {
    let capture = params.capture.as_ref();
    capture
        .map(|c| {
            CaptureTargets::design_or_read_targets(
                &c.targets,
                nuclear,
                &mut params.rng_for_stream(RandomStream::Targets),
            )
        })
        .transpose()
}

fn design_amplicons(
    params: &SimulationParams,
    nuclear: &Genome,
    targets: Option<&CaptureTargets>,
) -> Result<Option<AmpliconPanel>> {
    let amplicons = params.sequencing.library.amplicons.as_ref();
    let amplicons = amplicons.map(|a| {
        let rng = &mut params.rng_for_stream(RandomStream::Amplicons);
        AmpliconPanel::design_amplicons(a, nuclear, targets.map(|t| t.spans.as_slice()), rng)
    });
    amplicons.transpose()
}

/// Builds the genomes of all cells of both samples. `genome` is the nuclear genome with the mitochondrial contig, if
/// there is one.
fn build_cell_genomes<'a>(
    params: &SimulationParams,
    nuclear: &'a Genome,
    genome: &'a Genome,
    variants: &'a SimulatedVariants,
    species: Option<&'a Genome>,
) -> PatientAndForeignGenomes<'a> {
    let SimulatedVariants { tumour, germline, foreign, mitochondria, .. } = variants;
    let mut cells = PatientAndForeignGenomes::build_patient_genomes(nuclear, tumour, germline);
    if let Some(foreign) = foreign {
        cells.add_foreign_person(nuclear, &tumour.healthy, foreign);
    }
    if let Some(species) = species {
        cells.add_foreign_species(species);
    }
    if let Some([patient, other]) = mitochondria {
        cells.add_mitochondria(genome, patient, foreign.is_some().then_some(other));
    }
    if params.sequencing.library.umi.is_some() {
        let small = tumour.small.iter().chain(&tumour.amplified_span_deletions).map(|p| &p.variant);
        let inherited = germline.iter().chain(foreign.iter().flatten()).map(|g| &g.edit);
        cells.record_variants_of_each_chromosome(nuclear, &small.chain(inherited).collect::<Vec<_>>());
    }
    cells
}

/// Summarizes the variants; numbers of reads are not set.
fn summarize_variants(
    params: &SimulationParams,
    nuclear: &Genome,
    genome: &Genome,
    variants: &SimulatedVariants,
) -> SimulationSummary {
    let SimulatedVariants { tumour, germline, mitochondria, unstable, .. } = variants;
    let of_mitochondria = |of: fn(&MitochondrialVariants) -> usize| mitochondria.as_ref().map_or(0, |m| of(&m[0]));
    let aneuploid = copy_numbers::list_aneuploid_contigs(nuclear, tumour);
    SimulationSummary {
        genome_length: genome.length_bp(),
        germline_variants: germline.len() + of_mitochondria(|m| m.germline.len()),
        somatic_small: tumour.small.iter().filter(|p| tumour.is_variant_in_sample(p)).count()
            + of_mitochondria(|m| m.somatic.len()),
        somatic_structural: tumour.list_structural_variants_in_sample(params.samples.purity).len(),
        tumor_pairs: 0,
        normal_pairs: 0,
        tumor_content: (!aneuploid.is_empty()).then(|| CopyNumberSummary::average_over_tumour_cells(nuclear, tumour)),
        aneuploid,
        unstable_tracts: (params.unstable.share > 0.0).then_some(*unstable),
        target_bases: None,
        tumor_reads: None,
        normal_reads: None,
    }
}

fn sample_specs(params: &SimulationParams) -> [SampleSpec; 2] {
    let of = &params.samples;
    let tumor = SampleSpec {
        depth: of.depth_tumor,
        tumour_share: of.purity,
        foreign: params.foreign.tumor,
        stream: RandomStream::Tumour,
    };
    let normal = SampleSpec {
        depth: of.depth_normal,
        tumour_share: of.contamination,
        foreign: params.foreign.normal,
        stream: RandomStream::Normal,
    };
    [tumor, normal]
}

fn read_foreign_genome(path: &Path, shortest: usize) -> Result<Genome> {
    let genome = Genome::read_fasta(path)?;
    if genome.longest_contig_bp() < shortest {
        let message = format!(
            "{}: no contig is as long as a read ({shortest} bp): lower --read-length, or use a longer genome",
            path.display()
        );
        return Err(Error::Parameters(message));
    }
    Ok(genome)
}

/// Draws and places the variants of the patient, the tumour and the contaminating person: nuclear ones on `nuclear`,
/// mitochondrial ones (if simulated) on the last contig of `genome`.
fn place_all_variants(
    nuclear: &Genome,
    genome: &Genome,
    params: &SimulationParams,
    targets: Option<&CaptureTargets>,
) -> Result<SimulatedVariants> {
    let mut ground = OccupiedRegions::empty(nuclear);
    let ploidy = match params.genome {
        GenomeSource::Human { .. } => HealthyPloidy::for_male(nuclear),
        _ => HealthyPloidy::all_diploid(),
    };
    let mut tumour = Tumour::without_variants(nuclear, &params.somatic.subclones, ploidy)?;
    let mut wanted = params.somatic.clone();
    if let (Some(targets), Some(capture)) = (targets, &params.capture) {
        ground.restrict_draws_to_spans(Some(&targets.spans));
        if capture.fewer_variants {
            wanted = wanted.reduce_to_fit_targets(targets.total_target_bp());
        }
    }
    let mut placing = |stream: RandomStream, place: &mut dyn FnMut(&mut VariantPlacer) -> Result<()>| {
        let mut rng = params.rng_for_stream(stream);
        let spacing = params.somatic.spacing;
        place(&mut VariantPlacer {
            genome: nuclear,
            occupied: &mut ground,
            tumour: &mut tumour,
            rng: &mut rng,
            min_spacing_bp: spacing,
        })
    };
    placing(RandomStream::CopyNumbers, &mut |site| copy_numbers::place_copy_number_changes(site, &params.copies))?;
    placing(RandomStream::Somatic, &mut |site| somatic::place_somatic_variants(site, &wanted))?;
    placing(RandomStream::LinkedVariants, &mut |site| {
        linked_variants::place_variant_clusters_and_mnvs(site, &params.linked)
    })?;
    placing(RandomStream::Integrations, &mut |site| integrations::place_integrations(site, &params.integrated))?;
    let mut unstable = [0; 2];
    placing(RandomStream::Microsatellites, &mut |site| {
        unstable = msi::resize_microsatellites(site, &params.unstable)?;
        Ok(())
    })?;
    ground.restrict_draws_to_spans(None);
    let germline = germline::place_germline_variants(
        nuclear,
        &tumour.ploidy,
        &params.germline,
        &mut ground,
        &mut params.rng_for_stream(RandomStream::Germline),
    );
    let foreign = draw_variants_of_foreign_person(nuclear, params, &tumour.ploidy, &germline, &mut ground);
    let mitochondria = draw_mitochondrial_variants(genome, params);
    Ok(SimulatedVariants { tumour, germline, foreign, mitochondria, unstable })
}

/// Draws the germline variants of the contaminating person; `None` if the samples have no reads of a person of this
/// genome. `germline` are the variants of the patient.
fn draw_variants_of_foreign_person(
    nuclear: &Genome,
    params: &SimulationParams,
    ploidy: &HealthyPloidy,
    germline: &[GermlineVariant],
    ground: &mut OccupiedRegions,
) -> Option<Vec<GermlineVariant>> {
    let foreign = &params.foreign;
    if foreign.tumor + foreign.normal <= 0.0 || foreign.genome.is_some() {
        return None;
    }
    let rng = &mut params.rng_for_stream(RandomStream::ForeignPerson);
    Some(match foreign.kin {
        Relationship::Unrelated => {
            foreign_person::draw_variants_of_unrelated_person(nuclear, ploidy, &params.germline, germline, rng)
        }
        kin => foreign_person::draw_variants_of_relative(nuclear, ploidy, &params.germline, kin, germline, ground, rng),
    })
}

/// Draws the mitochondrial variants of the patient and of the contaminating person, on the last contig of `genome`;
/// `None` without a mitochondrion.
fn draw_mitochondrial_variants(genome: &Genome, params: &SimulationParams) -> Option<[MitochondrialVariants; 2]> {
    let foreign = if params.foreign.kin.shares_mitochondria() {
        RandomStream::MitochondrialVariants
    } else {
        RandomStream::ForeignMitochondrion
    };
    (params.samples.mitochondrion > 0.0).then(|| {
        [RandomStream::MitochondrialVariants, foreign].map(|stream| {
            MitochondrialVariants::draw_variants_of_person_and_tumour(genome, &mut params.rng_for_stream(stream))
        })
    })
}

/// Writes `text` to a file and adds the file to `set`. Without text, removes the file of an earlier run.
fn write_or_remove_file(path: &Path, text: Option<String>, set: &mut AtomicFileSet) -> Result<()> {
    match text {
        Some(text) => write_file_and_add_to_set(path, text.as_bytes(), set),
        None => {
            set.remove_file_on_publish(path.to_owned());
            Ok(())
        }
    }
}

fn write_repeats_bed(
    genome: &Genome,
    laid: &[RepeatAndGapAnnotation],
    path: &Path,
    set: &mut AtomicFileSet,
) -> Result<()> {
    if laid.is_empty() {
        // A file of an earlier run describes another genome.
        set.remove_file_on_publish(path.to_owned());
        return Ok(());
    }
    let mut file = AtomicFile::create(path)?;
    for ((name, seq), laid) in genome.names.iter().zip(&genome.seqs).zip(laid) {
        laid.write_elements_as_bed(name, seq.len(), &mut file)?;
    }
    set.add_file(file.flush_to_partial_file()?);
    Ok(())
}

fn write_truth(
    genome: &Genome,
    params: &SimulationParams,
    variants: &SimulatedVariants,
    threads: usize,
    out: &Path,
    set: &mut AtomicFileSet,
) -> Result<()> {
    let SimulatedVariants { tumour, germline, foreign, mitochondria, .. } = variants;
    let own = if foreign.is_some() { 1.0 - params.foreign.tumor } else { 1.0 };
    let sample = truth::TumourSampleComposition { purity: params.samples.purity, patient_share: own };
    let [patient, other] = match mitochondria {
        Some(both) => both.each_ref().map(Some),
        None => [None; 2],
    };
    let repeats = RepeatedKmersOfSpans::count_kmers_of_spans(
        genome,
        truth::list_spans_to_check_for_repeats(tumour, patient),
        threads,
    );
    let annotator = TruthRecordBuilder { genome, repeats: &repeats, ploidy: &tumour.ploidy };
    let mut write = |name: &str, text: String| write_file_and_add_to_set(&out.join(name), text.as_bytes(), set);
    write("truth.vcf", truth::format_somatic_vcf(&annotator, tumour, patient, sample))?;
    write("germline.vcf", truth::format_germline_vcf(genome, &tumour.ploidy, germline, patient))?;
    if let Some(foreign) = foreign {
        write("foreign.vcf", truth::format_germline_vcf(genome, &tumour.ploidy, foreign, other))?;
    }
    write(
        "truth.bedpe",
        truth::format_structural_variants_as_bedpe(
            genome,
            &tumour.list_structural_variants_in_sample(params.samples.purity),
        ),
    )
}

#[cfg(test)]
mod tests;
