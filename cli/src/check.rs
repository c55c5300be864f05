//! `genuma check`: compares a tumour sample with a normal sample before calling. It reads both samples once and
//! estimates identity, contamination, purity, depth and damage.

mod text;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use genuma_pair::check::{SamplePairCheckResult, compare_normal_with_tumours};
use genuma_pair::library::metrics::SamplePairLibraryMetrics;
use genuma_pair::pair_summary::SamplePairSummary;
use genuma_pair::sketch::SketchParams;
use genuma_reads::fasta::Reference;
use genuma_reads::{AlignedOptions, CramReference, Lane, ProgressCounters, check_lanes_for_one_pass};
use genuma_somatic::root_positions;
use genuma_work::ProgressListener;
use genuma_work::cost::measure_process_cost;
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use genuma_work::quantity;
use serde::Serialize;
use serde_json::Value;
use tracing::info;

use crate::call::messages;
use crate::call::sample_options::{NormalReadSource, SampleNameOptions, SamplesAndLanes, TumourReadFileOptions};
use crate::input_files::InputFileStates;
use crate::progress::UnitProgressDisplay;
use crate::read_layout::ReadLayoutOptions;
use crate::{aligned_files, command_line, json_file, logging, multiqc};

/// Check whether tumour and normal are from one person, and estimate contamination and purity.
///
/// Reports on standard output or in a file whether the samples come from one person, the contamination of each sample
/// with DNA of other people, purity and ploidy of the tumour, and for each library the depth, its evenness, duplicates
/// and DNA damage. All results but purity, ploidy and LOH need only the reads, without alignment or reference, for any
/// species. Shallow samples are enough to compare people; the other estimates need more depth, and are reported as
/// unknown where the depth is too low. `genuma call` reports the same and more. The exit code is 0 also if the samples
/// come from two people. In scripts, read `pair.identity.relation` in the file of --json: same, relatives, unrelated,
/// different (two people, related or not), same_or_relatives, or unknown (not enough data, or no clear result). For the
/// second and later tumours read `other_tumours[].pair.identity.relation`.
///
/// Memory: up to 2.2 GB for one tumour, less for genomes of under 160 Mbp, and up to 1.5 GB for each further tumour;
/// with --reference also one byte for each base of the genome (3.1 GB for a human genome). There is no option
/// `--memory`, because the estimates depend on the number of k-mers that are counted.
#[derive(Debug, clap::Args)]
#[command(
    about = "Check whether tumour and normal are from one person, and estimate contamination",
    after_help = "Examples:\n  \
    genuma check --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz\n  \
    With a reference, for purity and ploidy, and with JSON output:\n    \
    genuma check --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz \\\n      \
    --reference ref.fa --json pair.json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    tumor: TumourReadFileOptions<true>,
    /// Reads of the normal sample of the same person, as files in the same order as for --tumor, all of one sample;
    /// without NAME=
    #[arg(long, value_name = "READS", num_args = 1.., required = true, help_heading = "Input")]
    normal: Vec<PathBuf>,
    /// Reference genome, plain or compressed FASTA. CRAM input is decoded with it. Purity, ploidy and LOH need it: it
    /// shows which sites are neighbours in the genome and thus have the same copy number. The whole genome is held in
    /// memory, a byte for each base
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    reference: Option<PathBuf>,
    #[command(flatten)]
    layout: ReadLayoutOptions,

    /// File for the results [default: standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Also write all results as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Also write a summary for MultiQC to files that begin with this name: PREFIX_..._mqc.json
    #[arg(long, value_name = "PREFIX", help_heading = "Output")]
    multiqc: Option<PathBuf>,

    /// Threads [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    threads: Option<u16>,
}

/// Parameters of the k-mer sketch of `genuma check`: up to 8 million k-mers for small genomes, and up to 32 million for
/// large ones (about 2 GB of memory), enough for samples of low depth of large genomes.
const SKETCH_PARAMS: SketchParams =
    SketchParams { k: 31, min_quality: [20, 30], max_kmers_small_genome: 8_000_000, max_kmers: 32_000_000 };

/// Content of the JSON file that `--json` requests.
#[derive(Serialize)]
struct CheckReport<'a> {
    command: String,
    version: &'static str,
    /// Number of sequenced bases of the normal and of the first tumour.
    bases: [u64; 2],
    pair: &'a SamplePairSummary,
    library: &'a SamplePairLibraryMetrics,
    /// Record counts of the input files that have them; null if there are none
    /// ([`aligned_files::record_counts_to_json`]).
    aligned: Value,
    /// Results of the second and later tumours; the key is absent if there is one tumour.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_tumours: Vec<OtherTumourReport<'a>>,
}

impl<'a> CheckReport<'a> {
    /// Returns the report on all tumours; `None` without tumours. `results` and `pairs` have one element for each tumour.
    fn of_results(
        results: &'a [SamplePairCheckResult],
        pairs: &'a [SamplePairSummary],
        tumours: &'a [String],
        lanes: &[Lane],
    ) -> Option<CheckReport<'a>> {
        let mut tumours = results.iter().zip(pairs).zip(tumours);
        let ((first, pair), _) = tumours.next()?;
        let other_tumours = tumours.map(|((result, pair), sample)| OtherTumourReport {
            sample,
            bases: result.bases,
            pair,
            library: &result.libraries,
        });
        Some(CheckReport {
            command: command_line::quoted_command_line(),
            version: env!("CARGO_PKG_VERSION"),
            bases: first.bases,
            pair,
            library: &first.libraries,
            aligned: aligned_files::record_counts_to_json(lanes),
            other_tumours: other_tumours.collect(),
        })
    }
}

/// Results of the second or a later tumour, compared with the normal.
#[derive(Serialize)]
struct OtherTumourReport<'a> {
    sample: &'a str,
    bases: [u64; 2],
    pair: &'a SamplePairSummary,
    library: &'a SamplePairLibraryMetrics,
}

/// Runs `genuma check`: reads the samples, prints the summary, and writes the JSON and MultiQC files.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let options = AlignedOptions { reference: CramReference::new(args.reference.clone()), ..AlignedOptions::default() };
    let SamplesAndLanes { samples, lanes, warnings } = args.tumor.open_samples_and_lanes(
        NormalReadSource::Files(&args.normal),
        SampleNameOptions::default(),
        &args.layout,
        &options,
    )?;
    messages::log_warnings(&warnings);
    check_lanes_for_one_pass(&lanes)?;
    let input_files = InputFileStates::record_lane_file_states(&lanes, args.reference.as_deref())?;
    let genome = args.reference.as_deref().map(Reference::read_fasta_file).transpose()?;
    let threads = command_line::threads_or_all_cpus(args.threads);
    let (meter, progress) = (Arc::new(ProgressCounters::default()), UnitProgressDisplay::start());
    progress.unit_started("check", Some(meter.clone()));
    let checked = compare_normal_with_tumours(&lanes, samples.tumour_names().len(), SKETCH_PARAMS, threads, &meter)?;
    let pairs: Vec<SamplePairSummary> =
        checked.iter().map(|result| summarise_pair(result, genome.as_ref(), threads)).collect();
    drop(progress);
    input_files.check_files_unchanged()?;
    let text = format_results(&checked, &pairs, samples.tumour_names());
    let mut set = AtomicFileSet::default();
    match &args.out {
        Some(path) => {
            let mut file = AtomicFile::create(path)?;
            file.write_all(text.as_bytes())?;
            set.add_file(file.flush_to_partial_file()?);
        }
        None => logging::print_result(text)?,
    }
    if let Some(path) = &args.json
        && let Some(report) = CheckReport::of_results(&checked, &pairs, samples.tumour_names(), &lanes)
    {
        json_file::add_json_file_with_schema_number(
            path,
            json_file::schema_numbers::CHECK_SCHEMA_NUMBER,
            &serde_json::to_value(&report)?,
            &mut set,
        )?;
    }
    if let Some(prefix) = &args.multiqc {
        let results: Vec<_> = checked.iter().map(|of| &of.libraries).zip(&pairs).collect();
        multiqc::add_multiqc_section_files(
            prefix,
            &multiqc::build_check_sections(samples.names(), &results, prefix),
            &mut set,
        )?;
    }
    set.publish_all()?;
    aligned_files::log_record_counts(&lanes);
    let cost = measure_process_cost();
    info!("{:.1} s, {} peak memory", start.elapsed().as_secs_f64(), quantity::format_bytes(cost.peak_bytes));
    Ok(())
}

/// Estimates the purity of a tumour and summarises what was found on tumour and normal. Without a genome there are no
/// copy numbers.
fn summarise_pair(result: &SamplePairCheckResult, genome: Option<&Reference>, threads: usize) -> SamplePairSummary {
    let evidence = &result.evidence;
    let positions = genome.map(|genome| {
        let roots = evidence.list_roots_to_locate();
        root_positions::locate_unique_roots(genome, &roots, evidence.sketch_shape, threads)
    });
    let names = genome.map(Reference::contig_names).unwrap_or_default();
    evidence.estimate_purity_and_summarise(&positions.unwrap_or_default(), &names, None)
}

fn format_results(checked: &[SamplePairCheckResult], pairs: &[SamplePairSummary], tumours: &[String]) -> String {
    let mut text = String::new();
    for ((of, pair), name) in checked.iter().zip(pairs).zip(tumours) {
        if tumours.len() > 1 {
            text += &format!("{}{name}\n", if text.is_empty() { "" } else { "\n" });
        }
        text += &text::format_pair_summary(pair, &of.libraries, of.bases);
    }
    text
}
