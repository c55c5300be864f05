//! `genuma evaluate`: calls scored against the truth.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use genuma_simulate::evaluate::{Filters, Inputs, Kinds, evaluate, render};
use genuma_work::publish::AtomicFile;

use crate::voice;

/// Score calls against the truth.
///
/// SNVs match by exact allele. Indels of 1-49 bp match by the same change of length within 25 bp after
/// left-alignment. Some bases for some others count as the substitutions and indels that they come down to, whether truth
/// or calls join them; with --reference near variants also match when they spell the same sequence together. Structural
/// variants, written as sequence, symbolic alleles or breakends, match when both ends of
/// an adjacency lie within 50 bp; an insertion when its position and its length (within 20%) do. Calls that did not
/// pass their filters are ignored, but named where they would have been right. Calls that were made without a reference are
/// placed on --reference by the sequence of their contigs first; those that cannot be are counted.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    genuma evaluate pair/truth.vcf calls/somatic.vcf.gz --reference pair/genome.fa\n  \
    genuma evaluate pair/truth.vcf mutect2.vcf.gz --reference pair/genome.fa \\\n    \
      --germline pair/germline.vcf --kinds pair/repeats.bed --json scores.json")]
pub(crate) struct Args {
    /// The truth: VCF as written by `genuma simulate`
    truth: PathBuf,
    /// The calls: VCF of any caller, plain or gzip'd
    calls: PathBuf,
    /// Genome, FASTA: alleles are left-aligned, false calls in repeats are told from others, and calls that were made without a
    /// reference are placed by the sequence of their contigs
    #[arg(long, value_name = "FASTA")]
    reference: Option<PathBuf>,
    /// Sequences that calls made without a reference lie on, FASTA [default: contigs.fa beside the calls]
    #[arg(long, value_name = "FASTA")]
    contigs: Option<PathBuf>,
    /// Germline variants: false calls among them are marked
    #[arg(long, value_name = "VCF")]
    germline: Option<PathBuf>,
    /// What lies where, BED with names (repeats.bed of a human-like genome): false calls and misses are counted by name
    #[arg(long, value_name = "BED")]
    kinds: Option<PathBuf>,
    /// Score all calls, not only those that passed their filters
    #[arg(long)]
    all_filters: bool,
    /// Write everything as JSON, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Longest list of misses, and of false calls
    #[arg(long, value_name = "N", default_value_t = 100)]
    list: usize,
}

/// Scores and prints the tables on stdout.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let outcome = evaluate(&Inputs {
        truth: &args.truth,
        calls: &args.calls,
        contigs: args.contigs.as_deref(),
        reference: args.reference.as_deref(),
        germline: args.germline.as_deref(),
        filters: if args.all_filters { Filters::All } else { Filters::Pass },
    })?;
    let kinds = args.kinds.as_deref().map(|path| Kinds::of(&outcome, path)).transpose()?;
    if let Some(path) = &args.json {
        let mut file = AtomicFile::create(path)?;
        let mut json = outcome.to_json();
        if let Some(kinds) = &kinds {
            json["kinds"] = serde_json::to_value(kinds)?;
        }
        writeln!(file, "{json:#}")?;
        file.finish()?;
    }
    voice::print(render(&outcome, args.list) + &kinds.map(|kinds| kinds.render()).unwrap_or_default())
}
