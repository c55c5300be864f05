//! `genuma plan`: what a call will take, before it is begun.

mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::value_parser;
use genuma_reads::fasta::{Part, read_parts};
use genuma_reads::{AlignedOptions, Genome, check_lanes};
use genuma_somatic::pipeline::Means;
use genuma_work::publish::Set;
use serde::Serialize;

use crate::call::tumours::{Names, Tumours};
use crate::call::{budget, panel, room};
use crate::failure::Usage;
use crate::forecast::calibrate::{Run, calibrated};
use crate::forecast::input;
use crate::forecast::model::{Forecast, Given};
use crate::forecast::rates::{MEASURED, Rates};
use crate::{command, gpu, json, sizes, voice};

/// Say what a call will take: time, memory, scratch, energy, cost.
///
/// Give the arguments of `genuma call`, or sizes only. Tells of each unit its CPU time, time by the
/// clock, memory, bytes read and written; in how many partitions k-mers will be counted; what to
/// change so that it fits. Nothing is called, and nothing written but --json.
///
/// The number of partitions is what `genuma call` will use. Times and memory are bases times rates:
/// those of the machine genuma was measured on, or, better, of earlier runs on yours (--from).
///
/// Exit code 0: it fits. 1: it does not.
#[derive(Debug, clap::Args)]
#[command(
    about = "Say what a call will take",
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    A human genome at 30x/30x, from sizes:\n    \
    genuma plan --genome 3.1G --depth 30,30 --threads 16 --memory 16G --scratch 200G\n  \
    What `genuma call` with these arguments will take on this machine, by what an earlier run took:\n    \
    genuma plan --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz --reference ref.fa --memory 8G -o calls \\\n      \
    --from earlier/summary.json\n  \
    Energy and cost:\n    \
    genuma plan --genome 3.1G --depth 60,30 --threads 32 --memory 64G --watts 250 --price-per-kwh 0.3 --price-per-hour 1.2"
)]
pub(crate) struct Args {
    #[command(flatten)]
    tumor: Tumours<false>,
    /// Reads of the normal of the same person, in the same way
    #[arg(long, value_name = "READS", num_args = 1.., required_unless_present = "genome", help_heading = "Input")]
    normal: Vec<PathBuf>,
    /// Each FASTQ file holds read 1 and read 2 in turn: one file a lane, for all samples
    #[arg(long, help_heading = "Input")]
    interleaved: bool,
    /// Reference genome, plain or gzip'd FASTA; of one with an index (.fai) only that is read
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    reference: Option<PathBuf>,
    /// Panel of normals: a table of `genuma table union --counts samples`, of this k
    #[arg(long, value_name = "TABLE", help_heading = "Input")]
    panel: Option<PathBuf>,
    /// Instead of files: bases of the genome, such as 3.1G or 25M (powers of 1000); calls are placed on it
    #[arg(long, value_name = "BASES", value_parser = sizes::parse_bases, requires = "depth", conflicts_with_all = ["tumor", "normal", "interleaved", "reference"], help_heading = "Input")]
    genome: Option<u64>,
    /// How often the tumour's and the normal's reads cover it
    #[arg(long, value_name = "T,N", value_parser = depths, requires = "genome", help_heading = "Input")]
    depth: Option<[f64; 2]>,
    /// Bases of a read
    #[arg(long, value_name = "BASES", default_value_t = 150, value_parser = value_parser!(u32).range(24..=1_000_000), requires = "genome", help_heading = "Input")]
    read_length: u32,

    /// Length of k-mers in bases, 24 to 32
    #[arg(short, default_value_t = 31, value_name = "K", value_parser = value_parser!(u32).range(24..=32), help_heading = "Method")]
    k: u32,
    /// summary.json of earlier runs on this machine: times and memory are then the medians of theirs
    #[arg(long, value_name = "SUMMARY", num_args = 1.., help_heading = "Method")]
    from: Vec<PathBuf>,

    /// Threads [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Most memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse, help_heading = "Resources")]
    memory: Option<u64>,
    /// Folder for what does not fit in memory; here only what is free there is looked at
    /// [default: .work in the output folder]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    work: Option<PathBuf>,
    /// Most of that folder that k-mers which do not fit in memory, and a packed copy of the reads, may take, such as 100G
    /// [default: what is free there, less a twentieth and 1G at least]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse, help_heading = "Resources")]
    scratch: Option<u64>,
    #[command(flatten)]
    gpu: gpu::Gpus,

    /// Power that the machine takes while it calls
    #[arg(long, value_name = "W", value_parser = amount, help_heading = "Energy and cost")]
    watts: Option<f64>,
    /// Price of a kilowatt hour, in any money
    #[arg(long, value_name = "PRICE", value_parser = amount, help_heading = "Energy and cost")]
    price_per_kwh: Option<f64>,
    /// Price of the machine for an hour, in the same money
    #[arg(long, value_name = "PRICE", value_parser = amount, help_heading = "Energy and cost")]
    price_per_hour: Option<f64>,

    /// Folder where the call's results would go
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Also write the plan as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
}

/// `30,30`: two depths.
fn depths(text: &str) -> Result<[f64; 2], String> {
    let depth = |text: &str| text.trim().parse().ok().filter(|depth| (0.01..=100_000.0).contains(depth));
    let both = text.split_once(',').and_then(|(tumour, normal)| Some([depth(tumour)?, depth(normal)?]));
    both.ok_or_else(|| "give the tumour's depth and the normal's, such as 60,30".to_owned())
}

/// A number from 0 on.
fn amount(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..=1e9).contains(&number) => Ok(number),
        _ => Err("give a number from 0 on".into()),
    }
}

/// A plan, as it is written.
#[derive(Debug, Serialize)]
pub(crate) struct Plan {
    /// Version of genuma.
    genuma: &'static str,
    given: Given,
    /// Earlier runs that the rates are the medians of.
    runs: usize,
    rates: Rates,
    forecast: Forecast,
    /// Devices that will count beside the threads, or why none; times are without.
    gpu: String,
    /// Power of the machine, if known.
    watts: Option<f64>,
    energy_kwh: Option<f64>,
    /// Of energy and hours, as far as prices are given.
    cost: Option<f64>,
}

/// Plans, prints the plan, and fails when it does not fit.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.price_per_kwh.is_some() && args.watts.is_none() && args.from.is_empty() {
        return Err(Usage("--price-per-kwh needs the power of the machine: give --watts".into()).into());
    }
    let runs: Vec<Run> = args.from.iter().map(|path| Run::load(path)).collect::<Result<_, _>>()?;
    let (given, rates) = (args.given()?, calibrated(&runs));
    let forecast = given.forecast(&rates);
    let gpu = args.gpu.words(given.kmers(), given.means.threads, given.means.memory)?;
    let watts = args.watts.or(rates.watts);
    let hours = forecast.wall_s() / 3600.0;
    let energy_kwh = watts.filter(|_| forecast.refused.is_none()).map(|watts| watts * hours / 1000.0);
    let prices = [args.price_per_kwh.zip(energy_kwh), args.price_per_hour.zip(Some(hours))];
    let cost = prices.iter().flatten().map(|(price, amount)| price * amount).reduce(|a, b| a + b);
    let plan = Plan {
        genuma: env!("CARGO_PKG_VERSION"),
        given,
        runs: runs.len(),
        rates,
        forecast,
        gpu,
        watts,
        energy_kwh,
        cost,
    };
    if let Some(path) = &args.json {
        let mut set = Set::default();
        json::add(path, &serde_json::to_value(&plan)?, &mut set)?;
        set.publish()?;
    }
    voice::print(words::text(&plan))?;
    if !plan.forecast.fits {
        bail!("the call does not fit: {}", plan.forecast.advice.join("; "));
    }
    Ok(())
}

impl Args {
    fn given(&self) -> anyhow::Result<Given> {
        let means = Means {
            threads: command::all_or(self.threads),
            memory: self.memory.unwrap_or_else(budget::usual),
            scratch: self.scratch.map_or_else(|| self.free(), Ok)?,
            devices: Default::default(),
        };
        let read_length = u64::from(self.read_length);
        let panel = match &self.panel {
            Some(table) => Some(input::panel(panel::open(table, self.k, None)?.path())?),
            None => None,
        };
        if let (Some(genome), Some(depths)) = (self.genome, self.depth) {
            let [tumour, normal] = depths.map(|depth| (genome as f64 * depth) as u64);
            let bases = [normal, tumour];
            let bytes = bases.map(|n| (n as f64 * MEASURED.gzip) as u64);
            let copied = bases.iter().map(|&n| (n as f64 * MEASURED.copy) as u64).sum();
            return Ok(Given {
                bases,
                bytes,
                samples: 2,
                copied,
                read_length,
                files: 4,
                aligned: 0,
                panel,
                reference: Some(genome),
                k: self.k,
                means,
            });
        }
        let options =
            AlignedOptions { genome: Genome::of(self.reference.clone()), ..AlignedOptions::default() };
        let (_, lanes) = self.tumor.lanes(&self.normal, Names::default(), self.interleaved, &options)?;
        check_lanes(&lanes)?;
        let reference = self.reference.as_deref().map(bases_of).transpose()?;
        Ok(input::of(&lanes, reference, panel, self.k, means))
    }

    /// What k-mers and a copy of the reads would get of the work folder, or of the folder that it would be made in.
    fn free(&self) -> anyhow::Result<u64> {
        let folder = self.work.as_deref().or(self.out.as_deref()).unwrap_or(Path::new("."));
        let there = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
        room::scratch(there, None)
    }
}

/// Bases of a reference: of its index, or of the FASTA itself.
fn bases_of(path: &Path) -> anyhow::Result<u64> {
    fs::metadata(path).with_context(|| format!("{}: cannot read", path.display()))?;
    let index = fs::read_to_string(format!("{}.fai", path.display())).unwrap_or_default();
    let length = |line: &str| line.split('\t').nth(1)?.parse::<u64>().ok();
    let lengths: Option<Vec<u64>> = index.lines().map(length).collect();
    if let Some(lengths) = lengths.filter(|lengths| !lengths.is_empty()) {
        return Ok(lengths.iter().sum());
    }
    let mut bases = 0;
    read_parts(path, |part| {
        if let Part::Bases(more) = part {
            bases += more.len() as u64;
        }
    })?;
    Ok(bases)
}
