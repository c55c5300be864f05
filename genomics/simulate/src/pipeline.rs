//! Runs the whole simulation: genome, variants, chromosomes, truth files, reads.

use std::io::Write;
use std::path::Path;

use genuma_work::publish::{AtomicFile, AtomicFileSet};
use serde::Serialize;

use crate::amplicons::AmpliconPanel;
use crate::cell_genomes::CellGenomes;
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
use crate::repeat_map::RepeatMap;
use crate::rng::RandomStream;
use crate::samples::{PreparedSample, SampleSpec, SequencingInputs};
use crate::sequencing::{self, FastqSink, ReadAndArtefactCounts, SampleFastqSpec};
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
    /// Number of germline variants of the patient, heterozygous and homozygous.
    pub germline_variants: usize,
    /// Number of somatic SNVs, indels and MNVs that at least one tumour cell of the sample has.
    pub somatic_small: usize,
    /// Number of somatic structural variants that at least one tumour cell of the sample has.
    pub somatic_structural: usize,
    /// Number of read pairs of the tumour sample.
    pub tumor_pairs: usize,
    /// Number of read pairs of the normal sample.
    pub normal_pairs: usize,
    /// Contigs whose copy number differs between founder tumour cells and healthy cells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aneuploid: Vec<AneuploidContig>,
    /// Ploidy, LOH and subclonal copy number of the tumour; `None` if no contig was lost or gained in founder tumour
    /// cells.
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
/// Returns an error if a parameter is invalid, if the genome has no space for all variants, or if a file cannot be read
/// or written.
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
/// [`simulate_to_folder`] writes with the same parameters. No file is written.
///
/// # Errors
/// Returns the errors of [`simulate_to_folder`], and an error if `out` cannot be written.
pub fn stream_reads(
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
    let mut laid = Vec::new();
    let nuclear = match &params.genome {
        GenomeSource::File(path) => Genome::read_fasta(path)?,
        GenomeSource::Made { length, contigs, repeats } => synthetic_genome::generate_genome(
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
    let species = params.foreign.genome.as_deref().map(|path| read_foreign_genome(path, shortest)).transpose()?;
    let whole = if params.samples.mitochondrion > 0.0 {
        Some(mitochondrial_variants::add_mitochondrial_contig(
            &nuclear,
            &mut params.rng_for_stream(RandomStream::Mitochondrion),
        )?)
    } else {
        None
    };
    let genome = whole.as_ref().unwrap_or(&nuclear);
    let capture = params.capture.as_ref();
    let targets = capture
        .map(|c| {
            CaptureTargets::design_or_read(&c.targets, &nuclear, &mut params.rng_for_stream(RandomStream::Targets))
        })
        .transpose()?;
    let amplicons = params.sequencing.library.amplicons.as_ref();
    let amplicons = amplicons.map(|a| {
        let rng = &mut params.rng_for_stream(RandomStream::Amplicons);
        AmpliconPanel::design_amplicons(a, &nuclear, targets.as_ref().map(|t| t.spans.as_slice()), rng)
    });
    let amplicons = amplicons.transpose()?;
    let variants = place_all_variants(&nuclear, genome, params, targets.as_ref())?;
    let SimulatedVariants { tumour, germline, foreign, mitochondria, unstable } = &variants;

    let recurrent = recurrent_errors::draw_recurrent_errors(&nuclear, &params.recurrent);
    let mut set = AtomicFileSet::default();
    if let OutputTarget::Folder(out) = to {
        std::fs::create_dir_all(out).map_err(Error::add_path_to_error(out))?;
        genome.write_fasta(&out.join("genome.fa"), &mut set)?;
        let repeats = out.join("repeats.bed");
        if laid.is_empty() {
            // A `repeats.bed` of an earlier run describes another genome: remove it.
            set.remove_on_publish(repeats);
        } else {
            write_repeats_bed(&nuclear, &laid, &repeats, &mut set)?;
        }
        write_truth(genome, params, &variants, threads, out, &mut set)?;
        let recurrent = (!recurrent.is_empty()).then(|| truth::format_recurrent_error_vcf(genome, &recurrent));
        write_or_remove_file(&out.join("recurrent.vcf"), recurrent, &mut set)?;
        let primers = amplicons.as_ref().map(|panel| panel.to_primer_bed(genome));
        write_or_remove_file(&out.join("primers.bed"), primers, &mut set)?;
        if let Some(targets) = &targets {
            write_file_and_add_to_set(&out.join("targets.bed"), targets.to_bed(genome).as_bytes(), &mut set)?;
        }
    }
    drop(laid);

    let mut cells = CellGenomes::build(&nuclear, tumour, germline);
    if let Some(foreign) = foreign {
        cells.add_foreign_person(&nuclear, &tumour.healthy, foreign);
    }
    if let Some(species) = &species {
        cells.add_foreign_species(species);
    }
    if let Some([patient, other]) = mitochondria {
        cells.add_mitochondria(genome, patient, foreign.is_some().then_some(other));
    }
    if params.sequencing.library.umi.is_some() {
        let small = tumour.small.iter().chain(&tumour.amplified_span_deletions).map(|p| &p.variant);
        let inherited = germline.iter().chain(foreign.iter().flatten()).map(|g| &g.edit);
        cells.record_carried_variants(&nuclear, &small.chain(inherited).collect::<Vec<_>>());
    }
    let bench = SequencingInputs {
        genome: &nuclear,
        cells: &cells,
        ploidy: &tumour.ploidy,
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
                    None => set.remove_on_publish(molecules),
                }
                FastqSink::Files(paths, &mut set)
            }
            OutputTarget::Stream(wanted, out) if *wanted == sample => FastqSink::Stream(&mut **out),
            OutputTarget::Stream(..) => return Ok(ReadAndArtefactCounts::default()),
        };
        let output = SampleFastqSpec {
            interleaved: matches!(sink, FastqSink::Stream(_)),
            sample: name,
            contigs: &genome.names,
            true_positions: params.sequencing.true_positions,
            umi: params.sequencing.library.umi.as_ref(),
            pairs: prepared.pairs,
            duplicates: params.sequencing.duplicates,
            seed: prepared.seed,
            threads,
        };
        sequencing::sequence_library(&prepared.library, &prepared.machine, &output, sink)
    };
    let tumor_reads = sequence(SampleRole::Tumor, &tumor)?;
    let normal_reads = sequence(SampleRole::Normal, &normal)?;

    let of_mitochondria = |of: fn(&MitochondrialVariants) -> usize| mitochondria.as_ref().map_or(0, |m| of(&m[0]));
    let aneuploid = copy_numbers::list_aneuploid_contigs(&nuclear, tumour);
    let summary = SimulationSummary {
        genome_length: genome.length_bp(),
        germline_variants: germline.len() + of_mitochondria(|m| m.germline.len()),
        somatic_small: tumour.small.iter().filter(|p| tumour.is_in_sample(p)).count()
            + of_mitochondria(|m| m.somatic.len()),
        somatic_structural: tumour.structural_events(params.samples.purity).len(),
        tumor_pairs: tumor.pairs,
        normal_pairs: normal.pairs,
        tumor_content: (!aneuploid.is_empty()).then(|| CopyNumberSummary::from_tumour(&nuclear, tumour)),
        aneuploid,
        unstable_tracts: (params.unstable.share > 0.0).then_some(*unstable),
        target_bases: targets.as_ref().map(CaptureTargets::total_bases),
        tumor_reads: params.has_optional_effects().then_some(tumor_reads),
        normal_reads: params.has_optional_effects().then_some(normal_reads),
    };
    let report = serde_json::json!({ "schema": SUMMARY_SCHEMA_VERSION, "version": env!("CARGO_PKG_VERSION"), "parameters": params, "made": summary });
    if let OutputTarget::Folder(out) = to {
        write_file_and_add_to_set(&out.join("simulate.json"), format!("{report:#}\n").as_bytes(), &mut set)?;
    }
    set.publish_all()?;
    Ok(summary)
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

/// Places all variants: nuclear variants on `nuclear`, mitochondrial variants on the last contig of `genome`.
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
            wanted = wanted.scaled_to_targets(targets.total_bases());
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
    placing(RandomStream::LinkedVariants, &mut |site| linked_variants::place_linked_variants(site, &params.linked))?;
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
    let others = params.foreign.tumor + params.foreign.normal > 0.0 && params.foreign.genome.is_none();
    let kin = params.foreign.kin;
    let foreign = others.then(|| {
        let (ploidy, rng) = (&tumour.ploidy, &mut params.rng_for_stream(RandomStream::ForeignPerson));
        match kin {
            Relationship::Unrelated => {
                foreign_person::draw_unrelated_person(nuclear, ploidy, &params.germline, &germline, rng)
            }
            _ => foreign_person::draw_relative(nuclear, ploidy, &params.germline, kin, &germline, &mut ground, rng),
        }
    });
    let other = if kin.shares_mitochondria() {
        RandomStream::MitochondrialVariants
    } else {
        RandomStream::ForeignMitochondrion
    };
    let mitochondria = (params.samples.mitochondrion > 0.0).then(|| {
        [RandomStream::MitochondrialVariants, other]
            .map(|stream| MitochondrialVariants::draw_variants(genome, &mut params.rng_for_stream(stream)))
    });
    Ok(SimulatedVariants { tumour, germline, foreign, mitochondria, unstable })
}

/// Writes `text` to a file and adds the file to `set`. Without text, removes the file of an earlier run.
fn write_or_remove_file(path: &Path, text: Option<String>, set: &mut AtomicFileSet) -> Result<()> {
    match text {
        Some(text) => write_file_and_add_to_set(path, text.as_bytes(), set),
        None => {
            set.remove_on_publish(path.to_owned());
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
    let mut file = AtomicFile::create(path)?;
    for ((name, seq), laid) in genome.names.iter().zip(&genome.seqs).zip(laid) {
        laid.write_bed(name, seq.len(), &mut file)?;
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
    let repeats = RepeatMap::from_spans(genome, truth::repeat_lookup_spans(tumour, patient), threads);
    let annotator = TruthRecordBuilder { genome, repeats: &repeats, ploidy: &tumour.ploidy };
    let mut write = |name: &str, text: String| write_file_and_add_to_set(&out.join(name), text.as_bytes(), set);
    write("truth.vcf", truth::format_somatic_vcf(&annotator, tumour, patient, sample))?;
    write("germline.vcf", truth::format_germline_vcf(genome, &tumour.ploidy, germline, patient))?;
    if let Some(foreign) = foreign {
        write("foreign.vcf", truth::format_germline_vcf(genome, &tumour.ploidy, foreign, other))?;
    }
    write("truth.bedpe", truth::format_bedpe(genome, &tumour.structural_events(params.samples.purity)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell_genomes::haplotype_edits;
    use crate::evaluate::vcf;
    use crate::germline::GermlineParams;
    use crate::params::SamplePairParams;
    use crate::rng::Rng;
    use crate::sequencing::SequencingParams;
    use crate::somatic::SomaticParams;
    use crate::tumour::PlacedVariant;
    use crate::variant::{BreakendSide, StructuralVariant};
    use genuma_reads::dna;
    use std::io::Read as _;

    fn params(length: usize, contigs: usize, seed: u64) -> SimulationParams {
        SimulationParams {
            genome: GenomeSource::Made { length, contigs, repeats: None },
            germline: GermlineParams::default(),
            somatic: SomaticParams { snvs: 20, indels: 20, svs: 12, largest_sv: 900, ..Default::default() },
            samples: SamplePairParams {
                depth_tumor: 3.0,
                depth_normal: 2.0,
                purity: 0.7,
                contamination: 0.05,
                ..Default::default()
            },
            sequencing: SequencingParams { duplicates: 0.1, ..Default::default() },
            seed,
            ..Default::default()
        }
    }

    fn files(params: &SimulationParams, threads: usize) -> Vec<(String, Vec<u8>)> {
        let folder = tempfile::tempdir().unwrap();
        simulate_to_folder(params, folder.path(), threads).unwrap();
        let entries = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path());
        let name = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
        let mut files: Vec<_> = entries.map(|p| (name(&p), std::fs::read(p).unwrap())).collect();
        files.sort();
        files
    }

    #[test]
    fn same_seed_same_bytes_whatever_the_threads() {
        let mut wanted = params(1_000_000, 2, 4);
        wanted.somatic.subclones = vec![0.4, 0.2];
        let one = files(&wanted, 1);
        let names: Vec<&str> = one.iter().map(|f| f.0.as_str()).collect();
        assert_eq!(
            names,
            [
                "genome.fa",
                "genome.fa.fai",
                "germline.vcf",
                "normal_1.fq.gz",
                "normal_2.fq.gz",
                "simulate.json",
                "truth.bedpe",
                "truth.vcf",
                "tumor_1.fq.gz",
                "tumor_2.fq.gz"
            ]
        );
        assert!(one == files(&wanted, 3));
        let other = files(&SimulationParams { seed: 5, ..wanted }, 1);
        assert!(one.iter().zip(&other).filter(|(a, _)| !a.0.ends_with("fai")).all(|(a, b)| a.1 != b.1));
    }

    #[test]
    fn repeats_of_an_earlier_genome_do_not_stay() {
        let folder = tempfile::tempdir().unwrap();
        let made = params(100_000, 1, 3);
        let human = SimulationParams { genome: GenomeSource::Human { length: 1_000_000 }, ..made.clone() };
        for (params, there) in [(&human, true), (&made, false)] {
            simulate_to_folder(params, folder.path(), 2).unwrap();
            assert_eq!(folder.path().join("repeats.bed").exists(), there);
        }
    }

    /// Names and bases of a FASTQ file.
    fn reads(gzipped: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut text = String::new();
        flate2::read::MultiGzDecoder::new(gzipped).read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        lines.chunks(4).map(|read| (read[0].to_owned(), read[1].as_bytes().to_vec())).collect()
    }

    #[test]
    fn names_tell_where_reads_come_from() {
        let mut wanted = params(400_000, 2, 9);
        let plain = files(&wanted, 1);
        wanted.sequencing.true_positions = true;
        let told = files(&wanted, 2);
        let genome = synthetic_genome::generate_genome(400_000, 2, None, &mut Rng::from_seed_and_labels(9, &[0]));
        let (mut placed, mut all, mut close) = (0, 0, 0);
        for (before, after) in plain.iter().zip(&told).filter(|(file, _)| file.0.ends_with("fq.gz")) {
            let mate = usize::from(after.0.ends_with("_2.fq.gz"));
            for (plain, (name, bases)) in reads(&before.1).iter().zip(reads(&after.1)) {
                let (name, number) = name.rsplit_once('/').unwrap();
                let fields: Vec<&str> = name.split(',').collect();
                assert_eq!((&plain.0, &plain.1), (&format!("{}/{number}", fields[0]), &bases));
                assert_eq!(fields.len(), 9);
                all += 1;
                let [contig, first, last, strand] = fields[1 + 4 * mate..][..4] else { unreachable!() };
                let Some(contig) = genome.names.iter().position(|n| n == contig) else { continue };
                placed += 1;
                let [first, last] = [first, last].map(|at| at.parse::<usize>().unwrap());
                let mut source = genome.seqs[contig][first - 1..last].to_vec();
                if strand == "-" {
                    source = dna::reverse_complement(&source);
                }
                // Compare from either end, because an indel shifts all bases behind it.
                let like = |a: &mut dyn Iterator<Item = (&u8, &u8)>| a.take(30).filter(|(a, b)| a == b).count() > 24;
                close += usize::from(
                    like(&mut bases.iter().zip(&source)) || like(&mut bases.iter().rev().zip(source.iter().rev())),
                );
            }
        }
        assert!(all > 10_000 && placed > all * 98 / 100 && placed < all, "{placed} of {all}");
        assert!(close > placed * 998 / 1000, "{close} of {placed}");
    }

    /// A tumour without germline variants, with its genome and the chromosomes of each haplotype.
    fn tumour(contigs: usize, seed: u64) -> (Genome, Tumour, [Vec<Vec<u8>>; 2]) {
        let params = params(300_000, contigs, seed);
        let genome =
            synthetic_genome::generate_genome(300_000, contigs, None, &mut Rng::from_seed_and_labels(seed, &[0]));
        let tumour = place_all_variants(&genome, &genome, &params, None).unwrap().tumour;
        let haplotypes = [0, 1].map(|h| {
            let edits = haplotype_edits(&genome, &tumour, &[], Some(0), h);
            let spelled = tumour.karyotypes[0][h].chromosome_sequences(&genome, &edits);
            spelled.iter().map(|sequence| sequence.bases_in_range(0..sequence.len())).collect()
        });
        (genome, tumour, haplotypes)
    }

    fn truth(genome: &Genome, tumour: &Tumour) -> Vec<vcf::VcfRecord> {
        let repeats = RepeatMap::from_spans(genome, truth::repeat_lookup_spans(tumour, None), 1);
        let annotator = TruthRecordBuilder { genome, repeats: &repeats, ploidy: &tumour.ploidy };
        let sample = truth::TumourSampleComposition { purity: 1.0, patient_share: 1.0 };
        let text = truth::format_somatic_vcf(&annotator, tumour, None, sample);
        vcf::parse_vcf(&text, Path::new("truth.vcf")).unwrap()
    }

    #[test]
    fn truth_applied_to_the_genome_spells_the_tumour() {
        for seed in 0..5 {
            let (genome, tumour, haplotypes) = tumour(1, seed);
            let mut changes: Vec<(usize, usize, usize, Vec<u8>)> = vec![];
            let seq = &genome.seqs[0];
            let haplotype_of = |pos: usize| {
                let small =
                    tumour.small.iter().find(|p| p.variant.position.pos + 1 == pos || p.variant.position.pos == pos);
                let large = || tumour.structural.iter().find(|p| p.variant.breakpoints()[0].pos == pos);
                small.map(|p| p.haplotype).or_else(|| large().map(|p| p.haplotype)).unwrap()
            };
            for record in truth(&genome, &tumour) {
                let (pos, end) = (record.pos, record.absolute_info_value("END"));
                let (start, end, bases) = match (record.alternate.as_str(), end) {
                    ("<DEL>", Some(end)) => (pos, end, vec![]),
                    ("<DUP>", Some(end)) => (pos, pos, seq[pos..end].to_vec()),
                    ("<INV>", Some(end)) => (pos, end, dna::reverse_complement(&seq[pos..end])),
                    (bnd, _) if bnd.contains(['[', ']']) => continue,
                    (bases, _) => (pos - 1, pos - 1 + record.reference.len(), bases.as_bytes().to_vec()),
                };
                assert_eq!(&seq[pos - 1..pos - 1 + record.reference.len()], record.reference.as_bytes());
                changes.push((haplotype_of(pos), start, end, bases));
            }
            for placed in &tumour.structural {
                if let StructuralVariant::Copy { from, to, inverted } = &placed.variant {
                    let copied = &seq[from.start..from.end];
                    let copied = if *inverted { dna::reverse_complement(copied) } else { copied.to_vec() };
                    changes.push((placed.haplotype, to.pos, to.pos, copied));
                }
            }
            assert_eq!(changes.len(), 52);
            changes.sort();
            for (h, spelled) in haplotypes.iter().enumerate() {
                let mut expected = seq.to_vec();
                for (_, start, end, bases) in changes.iter().rev().filter(|c| c.0 == h) {
                    expected.splice(start..end, bases.iter().copied());
                }
                assert!(spelled[0] == expected, "seed {seed}, haplotype {h}");
            }
        }
    }

    #[test]
    fn every_adjacency_is_in_its_haplotype() {
        const FLANK: usize = 40;
        for seed in 10..14 {
            let (genome, tumour, haplotypes) = tumour(3, seed);
            let mut classes = std::collections::BTreeSet::new();
            for placed in &tumour.structural {
                classes.insert(placed.variant.class_name());
                if matches!(placed.variant, StructuralVariant::Insertion(..)) {
                    continue;
                }
                for [a, b] in placed.variant.adjacencies() {
                    // Read towards the junction at one end and away from it at the other.
                    let towards = |e: &crate::variant::Breakend| {
                        let seq = &genome.seqs[e.contig];
                        match e.side {
                            BreakendSide::Left => seq[e.base + 1 - FLANK..=e.base].to_vec(),
                            BreakendSide::Right => dna::reverse_complement(&seq[e.base..e.base + FLANK]),
                        }
                    };
                    let junction = [towards(&a), dna::reverse_complement(&towards(&b))].concat();
                    let other_strand = dna::reverse_complement(&junction);
                    let occurs =
                        |chromosome: &[u8]| chromosome.windows(2 * FLANK).any(|w| w == junction || w == other_strand);
                    let in_tumour = haplotypes[placed.haplotype].iter().any(|c| occurs(c));
                    assert!(in_tumour, "{:?}", placed.variant);
                    assert!(!genome.seqs.iter().any(|c| occurs(c)), "{:?}", placed.variant);
                }
            }
            assert_eq!(classes.len(), 6);
        }
    }

    #[test]
    fn purity_clones_and_copies_decide_the_allele_fraction() {
        let (_, mut tumour, _) = tumour(1, 1);
        let small = tumour.small[0].clone();
        let at = small.variant.position;
        tumour.structural.clear();
        tumour.population_shares = vec![0.6, 0.4];
        tumour.karyotypes.push(tumour.karyotypes[0].clone());
        let of_clone = |clone| PlacedVariant { clone, ..small.clone() };
        assert_eq!(tumour.allele_fraction(&of_clone(0), 1.0), 0.5);
        assert_eq!(tumour.allele_fraction(&of_clone(0), 0.5), 0.25);
        assert_eq!(tumour.allele_fraction(&of_clone(1), 0.5), 0.1);
        let body = crate::variant::ContigSpan { contig: at.contig, start: at.pos - 100, end: at.pos + 100 };
        tumour.structural.push(PlacedVariant::on_all_copies(StructuralVariant::Deletion(body), 0, 0));
        assert_eq!(tumour.allele_fraction(&of_clone(0), 1.0), 1.0);
    }

    #[test]
    fn other_shares_and_other_reads_are_another_tumour_of_the_same_person() {
        let tumour = |subclones: [f64; 2], reads_seed| {
            let mut wanted = params(400_000, 1, 6);
            wanted.somatic.subclones = subclones.to_vec();
            wanted.reads_seed = Some(reads_seed);
            let files: std::collections::BTreeMap<String, Vec<u8>> = files(&wanted, 2).into_iter().collect();
            files
        };
        let (one, other) = (tumour([0.4, 0.0], 8), tumour([0.0, 0.5], 9));
        for name in ["genome.fa", "germline.vcf"] {
            assert!(one[name] == other[name], "{name}");
        }
        for name in ["tumor_1.fq.gz", "normal_2.fq.gz"] {
            assert!(one[name] != other[name], "{name}");
        }
        // Positions by clone.
        let truth = |files: &std::collections::BTreeMap<String, Vec<u8>>| {
            let text = String::from_utf8(files["truth.vcf"].clone()).unwrap();
            let mut clones = std::collections::BTreeMap::<usize, Vec<usize>>::new();
            for record in vcf::parse_vcf(&text, Path::new("truth.vcf")).unwrap() {
                clones.entry(record.absolute_info_value("CLONE").unwrap()).or_default().push(record.pos);
            }
            clones
        };
        let (one, other) = (truth(&one), truth(&other));
        assert_eq!([one.keys().collect::<Vec<_>>(), other.keys().collect()], [[&0, &1], [&0, &2]]);
        assert!(one[&0] == other[&0] && one.values().chain(other.values()).all(|positions| positions.len() > 5));
    }

    #[test]
    fn impossible_wishes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |change: fn(&mut SimulationParams)| {
            let mut wanted = params(50_000, 1, 1);
            change(&mut wanted);
            simulate_to_folder(&wanted, folder.path(), 1).unwrap_err().to_string()
        };
        assert!(refused(|p| p.somatic.snvs = 1000).contains("no space"));
        assert!(refused(|p| p.samples.purity = 1.5).contains("between 0 and 1"));
        assert!(refused(|p| p.somatic.subclones = vec![0.7, 0.7]).contains("at most 1"));
        assert!(refused(|p| p.somatic.subclones = vec![-0.1]).contains("negative"));
        assert!(refused(|p| p.genome = GenomeSource::File("/no/such.fa".into())).contains("/no/such.fa"));
        assert!(refused(|p| p.sequencing.read_length = 5).contains("--read-length"));
        let made =
            |p: &mut SimulationParams| p.genome = GenomeSource::Made { length: 50_000, contigs: 1, repeats: Some(1.1) };
        assert!(refused(made).contains("--repeats must"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
