//! `genuma plan`: predicts the resources of a call.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::value_parser;
use genuma_planner::calibration::EarlierRun;
use genuma_planner::input::{self, ForecastInput};
use genuma_planner::machine_comparison::MachineComparison;
use genuma_planner::machine_table::read_machine_table;
use genuma_planner::rate_source::RateSource;
use genuma_reads::fasta::{FastaEvent, read_fasta_events};
use genuma_reads::{AlignedOptions, CramReference, check_lanes};
use genuma_somatic::pipeline::Resources;
use genuma_work::quantity;

use crate::call::sample_options::{
    SampleNameOptions, SamplesAndLanes, TumourReadFileOptions, choose_normal_read_source,
};
use crate::call::{disk_space, memory_limits, messages, panel};
use crate::forecast::machine_speed::measure_machine_speed;
use crate::forecast::options::{CostOptions, MachineComparisonOptions};
use crate::forecast::{comparison_text, text};
use crate::kmer_length::{choose_kmer_length, kmer_length_for_mean_read_length};
use crate::read_layout::ReadLayoutOptions;
use crate::{command_line, gpu};

/// Default of `--read-length` in bp: usual for Illumina sequencers.
const DEFAULT_READ_LENGTH_BP: u32 = 150;

/// Predict the resources of a call: time, memory, disk space, energy, cost.
///
/// Give reads and reference as for `genuma call`, or only the sizes of genome and samples (--genome,
/// --depth). The other options of `call` are not accepted here, and the forecast ignores what they
/// cost; --why, for example, adds one pass over the reads.
///
/// Prints CPU time, wall-clock time, memory, bytes read and bytes written for each unit (stage) of the
/// call, the number of partitions of the k-mers (each partition needs one pass over the reads; later
/// passes use the packed reads if --scratch has room), and advice if the call does not fit. No variants
/// are called, and no file is written except that of --json.
///
/// Times and memory are calculated from the number of bases and from rates, such as CPU seconds per
/// Gbase. The rates were measured on the machine of genuma's authors. With --measure they are scaled
/// to the speed of your machine. With --from they come from earlier runs on your machine, which makes
/// the prediction more accurate.
///
/// Exit code 0: the call fits in the memory of --memory. 1: it does not, or --scratch is so small that
/// counting would need more than 4096 passes over the reads. Otherwise too little disk space only makes
/// the call slower.
#[derive(Debug, clap::Args)]
#[command(
    about = "Predict the resources of a call",
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    A human genome at 30x/30x, from sizes:\n    \
    genuma plan --genome 3.1G --depth 30,30 --threads 16 --memory 16G --scratch 200G\n  \
    `genuma call` with these arguments on this machine (as `genuma call --dry-run`), calibrated with an earlier run:\n    \
    genuma plan --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz \\\n      \
    --reference ref.fa --memory 8G -o calls --from earlier/summary.json\n  \
    Energy and cost:\n    \
    genuma plan --genome 3.1G --depth 60,30 --threads 32 --memory 64G \\\n      \
    --watts 250 --price-per-kwh 0.3 --price-per-hour 1.2\n  \
    Time, energy and cost of 1,000 patients on each machine of a table:\n    \
    genuma plan --genome 3.1G --depth 60,30 --machines machines.tsv --calls 1000 --price-per-kwh 0.3"
)]
pub(crate) struct Args {
    #[command(flatten)]
    tumor: TumourReadFileOptions<false>,
    /// Reads of the normal sample of the same person, as files in the same order as for --tumor, all of one sample;
    /// without NAME=. Without --normal a tumour-only call is forecast, with the reference in place of the normal
    #[arg(long, value_name = "READS", num_args = 1.., help_heading = "Input")]
    normal: Vec<PathBuf>,
    #[command(flatten)]
    layout: ReadLayoutOptions,
    /// Reference genome, plain or compressed FASTA; if it has an index (.fai), only the index is read. CRAM input is
    /// decoded with it
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    reference: Option<PathBuf>,
    /// Panel of normals, if the call uses one: a k-mer table made by `genuma kmers union --counts samples`, with the
    /// same k, or the dictionary that `genuma kmers compact` made of it
    #[arg(long, value_name = "TABLE", help_heading = "Input")]
    panel: Option<PathBuf>,
    /// Size of the reference genome in bases, instead of files: such as 3.1G or 25M (powers of 1000)
    #[arg(long, value_name = "BASES", value_parser = quantity::parse_bases, requires = "depth", conflicts_with_all = ["tumor", "normal", "interleaved", "single", "umi", "reference"], help_heading = "Input")]
    genome: Option<u64>,
    /// Mean depths of the tumour and the normal, both required, such as 60,30; needed with --genome
    #[arg(long, value_name = "T,N", value_parser = parse_depths, requires = "genome", help_heading = "Input")]
    depth: Option<[f64; 2]>,
    /// Length of a read in bases; only with --genome
    #[arg(long, value_name = "BASES", default_value_t = DEFAULT_READ_LENGTH_BP, value_parser = value_parser!(u32).range(24..=1_000_000), requires = "genome", help_heading = "Input")]
    read_length: u32,

    /// Length of k-mers in bases, 17 to 32 [default: 31; for a mean read length below 52
    /// bases, the largest odd number up to 0.6 of it, at least 17]
    #[arg(short, value_name = "K", value_parser = command_line::call_kmer_length_parser(), help_heading = "Method")]
    k: Option<u32>,
    /// summary.json of earlier runs on this machine; times and memory are then predicted from the medians of these
    /// runs
    #[arg(long, value_name = "SUMMARY", num_args = 1.., help_heading = "Method")]
    from: Vec<PathBuf>,
    /// Measure the speed of this machine first, with a call of simulated reads that takes about a quarter of a minute of
    /// CPU time; predicted times are scaled to it
    #[arg(long, conflicts_with = "from", help_heading = "Method")]
    measure: bool,

    /// Threads [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Maximum memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = "Resources")]
    memory: Option<u64>,
    /// Work folder of the call; only its free space is used in the prediction [default: .work in the output folder]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    work: Option<PathBuf>,
    /// Maximum disk space in the work folder for k-mers that do not fit in memory and for packed reads (a compact copy
    /// of the input), such as 100G [default: the free space there, less 5% or 1G, whichever is more]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = "Resources")]
    scratch: Option<u64>,
    #[command(flatten)]
    gpu: gpu::GpuOptions,

    #[command(flatten)]
    costs: CostOptions,
    #[command(flatten)]
    comparison: MachineComparisonOptions,

    /// Output folder of the call: the free space there is used in the prediction if --work is not given
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Also write the forecast as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
}

/// Parses the depths of tumour and normal, such as `30,30`.
fn parse_depths(text: &str) -> Result<[f64; 2], String> {
    let depth = |text: &str| text.trim().parse().ok().filter(|depth| (0.01..=100_000.0).contains(depth));
    let both = text.split_once(',').and_then(|(tumour, normal)| Some([depth(tumour)?, depth(normal)?]));
    both.ok_or_else(|| "give the tumour's depth and the normal's, such as 60,30".to_owned())
}

/// Prints the forecast.
///
/// # Errors
/// The arguments contradict each other, an input cannot be read, or the call does not fit in memory and disk space.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let input = args.call_input()?;
    if let Some(path) = &args.comparison.machines {
        let machines = read_machine_table(path)?;
        let machine_use = args.comparison.machine_use(args.costs.power_and_prices().price_per_kwh);
        let comparison = MachineComparison::compare_machines(&input, machines, &machine_use);
        return comparison_text::print_and_write_comparison(
            &comparison,
            args.json.as_deref(),
            args.comparison.html.as_deref(),
        );
    }
    let rates = if args.measure {
        // More threads than CPUs, as in a plan for another machine, would wait for each other.
        let threads = input.resources.threads.min(command_line::threads_or_all_cpus(None));
        RateSource::Measured(measure_machine_speed(args.work_folder(), threads)?)
    } else if args.from.is_empty() {
        RateSource::BuiltIn
    } else {
        RateSource::EarlierRuns(args.from.iter().map(|path| EarlierRun::load(path)).collect::<Result<_, _>>()?)
    };
    text::print_and_write_forecast(input, &rates, &args.gpu, &args.costs, args.json.as_deref())
}

impl Args {
    /// The folder whose free space is used in the prediction.
    fn work_folder(&self) -> &Path {
        self.work.as_deref().or(self.out.as_deref()).unwrap_or(Path::new("."))
    }

    fn call_input(&self) -> anyhow::Result<ForecastInput> {
        let resources = Resources {
            threads: command_line::threads_or_all_cpus(self.threads),
            memory: self.memory.unwrap_or_else(memory_limits::default_memory_budget_bytes),
            scratch: match self.scratch {
                Some(scratch) => scratch,
                None => disk_space::choose_scratch_bytes(self.work_folder(), None)?,
            },
            devices: Default::default(),
        };
        let read_length = u64::from(self.read_length);
        let panel_bytes = |k: u32| -> anyhow::Result<_> {
            let open = |table| -> anyhow::Result<_> {
                Ok(input::measure_panel_size(panel::open_panel_of_normals(table, k, None)?.table_path())?)
            };
            self.panel.as_deref().map(open).transpose()
        };
        if let (Some(genome), Some(depths)) = (self.genome, self.depth) {
            let k = self.k.unwrap_or_else(|| kmer_length_for_mean_read_length(read_length as f64));
            let [tumour, normal] = depths;
            let sizes = ForecastInput::from_genome_and_depths(genome, [normal, tumour], read_length, k, resources);
            return Ok(ForecastInput { panel: panel_bytes(k)?, ..sizes });
        }
        let options =
            AlignedOptions { reference: CramReference::new(self.reference.clone()), ..AlignedOptions::default() };
        let normal = choose_normal_read_source(&self.normal, self.reference.as_deref())?;
        let SamplesAndLanes { lanes, mut warnings, .. } =
            self.tumor.open_samples_and_lanes(normal, SampleNameOptions::default(), &self.layout, &options)?;
        check_lanes(&lanes)?;
        let reference = self.reference.as_deref().map(reference_bases).transpose()?;
        let (k, short_reads) = choose_kmer_length(self.k, &lanes)?;
        warnings.extend(short_reads);
        messages::log_warnings(&warnings);
        Ok(input::measure_forecast_input(&lanes, reference, panel_bytes(k)?, k, resources)?)
    }
}

/// Returns the number of bases of a reference, from its index (.fai) if there is one, else from the FASTA file.
fn reference_bases(path: &Path) -> anyhow::Result<u64> {
    fs::metadata(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let index_path = format!("{}.fai", path.display());
    let index = match fs::read_to_string(&index_path) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("{index_path}: cannot read"))?,
    };
    let length = |line: &str| line.split('\t').nth(1)?.parse::<u64>().ok();
    let lengths: Option<Vec<u64>> = index.lines().map(length).collect();
    if let Some(lengths) = lengths.filter(|lengths| !lengths.is_empty()) {
        return Ok(lengths.iter().sum());
    }
    let mut bases = 0;
    read_fasta_events(path, |part| {
        if let FastaEvent::Bases(more) = part {
            bases += more.len() as u64;
        }
    })?;
    Ok(bases)
}
