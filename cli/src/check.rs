//! `genuma check`: whether two samples are a pair, in one pass over their reads.

mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use genuma_pair::check::{Checked, check};
use genuma_pair::facts::PairFacts;
use genuma_pair::library::facts::Libraries;
use genuma_pair::sampled::SampleParams;
use genuma_reads::fasta::Reference;
use genuma_reads::{AlignedOptions, Genome, Meter, check_lanes_once};
use genuma_somatic::sites;
use genuma_work::Watch;
use genuma_work::clock::process_cost;
use genuma_work::publish::Set;
use serde::Serialize;
use serde_json::Value;
use tracing::info;

use crate::call::tumours::{Names, Tumours};
use crate::progress::Progress;
use crate::{aligned, command, json, multiqc, sizes, voice};

/// Say whether a tumour and a normal are a pair, before anything is called.
///
/// One person or two? How much of each is another person's? How pure is the tumour, and how many copies of its genome has it? How
/// deep and even are the samples, how many pairs are copies, how damaged are they? All of that from the reads alone: nothing is aligned,
/// no reference is needed, the species does not matter. Shallow samples will do to tell people apart; the rest wants depth, and what
/// cannot be told is called so. `genuma call` tells the same, and more.
#[derive(Debug, clap::Args)]
#[command(
    about = "Say whether a tumour and a normal are a pair, before anything is called",
    after_help = "Examples:\n  \
    genuma check --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz\n  \
    With the reference purity and ploidy are better known, and everything as JSON:\n    \
    genuma check --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz --reference ref.fa --json pair.json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    tumor: Tumours<true>,
    /// Reads of the normal of the same person, in the same way
    #[arg(long, value_name = "READS", num_args = 1.., required = true, help_heading = "Input")]
    normal: Vec<PathBuf>,
    /// Each FASTQ file holds read 1 and read 2 in turn: one file a lane, for both samples
    #[arg(long, help_heading = "Input")]
    interleaved: bool,
    /// Reference genome, plain or gzip'd FASTA: sites that lie side by side tell purity and ploidy better. It is held in memory
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    reference: Option<PathBuf>,

    /// Also write all facts as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Also write what MultiQC shows of it, files that begin with this name: PREFIX_..._mqc.json
    #[arg(long, value_name = "PREFIX", help_heading = "Output")]
    multiqc: Option<PathBuf>,

    /// Threads [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads(), help_heading = "Resources")]
    threads: Option<u16>,
}

/// What is sampled: places enough for shallow samples of large genomes. With all else up to 2 GB are taken.
const SAMPLE: SampleParams = SampleParams { k: 31, quality: [20, 30], few: 8_000_000, most: 32_000_000 };

/// All that is told.
#[derive(Serialize)]
struct Told<'a> {
    command: String,
    version: &'static str,
    /// Bases read of the normal and of the tumour.
    bases: [u64; 2],
    pair: &'a PairFacts,
    library: &'a Libraries,
    /// What there was in files of aligned reads; null where there are none.
    aligned: Value,
    /// What tumours beyond the first are like, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<Other<'a>>,
}

/// A tumour beyond the first.
#[derive(Serialize)]
struct Other<'a> {
    sample: &'a str,
    bases: [u64; 2],
    pair: &'a PairFacts,
    library: &'a Libraries,
}

/// Looks at the reads and prints what they say.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let options = AlignedOptions { genome: Genome::of(args.reference.clone()), ..AlignedOptions::default() };
    let (samples, lanes) = args.tumor.lanes(&args.normal, Names::default(), args.interleaved, &options)?;
    check_lanes_once(&lanes)?;
    let genome = args.reference.as_deref().map(Reference::read).transpose()?;
    let threads = command::all_or(args.threads);
    let (meter, progress) = (Arc::new(Meter::default()), Progress::start());
    progress.begins("check", Some(meter.clone()));
    let checked = check(&lanes, samples.tumours().len(), SAMPLE, threads, &meter)?;
    let pair = |of: &Checked| {
        let looked = &of.looked;
        let places =
            genome.as_ref().map(|genome| sites::places(genome, &looked.roots(), looked.shape, threads));
        looked.finish(&places.unwrap_or_default(), None)
    };
    let pairs: Vec<PairFacts> = checked.iter().map(pair).collect();
    drop(progress);
    let mut text = String::new();
    for ((of, pair), name) in checked.iter().zip(&pairs).zip(samples.tumours()) {
        if samples.several() {
            text += &format!("{}{name}\n", if text.is_empty() { "" } else { "\n" });
        }
        text += &words::told(pair, &of.libraries, of.bases);
    }
    voice::print(text)?;
    let mut set = Set::default();
    if let Some(path) = &args.json {
        let all = || checked.iter().zip(&pairs);
        let Some((first, pair)) = all().next() else { return Ok(()) };
        let other = |((of, pair), sample)| -> Other<'_> {
            let (of, pair): (&Checked, &PairFacts) = (of, pair);
            let sample: &String = sample;
            Other { sample, bases: of.bases, pair, library: &of.libraries }
        };
        let told = Told {
            command: command::line(),
            version: env!("CARGO_PKG_VERSION"),
            bases: first.bases,
            pair,
            library: &first.libraries,
            aligned: aligned::value(&lanes),
            others: all().zip(samples.tumours()).skip(1).map(other).collect(),
        };
        json::add(path, &serde_json::to_value(&told)?, &mut set)?;
    }
    if let Some(prefix) = &args.multiqc {
        let looked: Vec<_> = checked.iter().map(|of| &of.libraries).zip(&pairs).collect();
        multiqc::add(prefix, &multiqc::of_pairs(samples.names(), &looked, prefix), &mut set)?;
    }
    set.publish()?;
    aligned::tell(&lanes);
    let cost = process_cost();
    info!("{:.1} s, {} of memory at most", start.elapsed().as_secs_f64(), sizes::show(cost.peak_bytes));
    Ok(())
}
