//! `genuma bench evaluate`: scores calls against the truth.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use genuma_simulate::evaluate::{
    ErrorsByRegion, EvaluationInputs, FilterMode, evaluate_calls, format_evaluation_tables,
};
use genuma_work::publish::AtomicFileSet;

use crate::{json_file, logging};

/// Compare calls with the true variants, and report recall and precision.
///
/// SNVs match if position and allele are the same. Indels of 1-49 bp match if they insert or delete the same number of
/// bases and their positions are at most 25 bp apart, left-aligned with --reference and as written without it; the
/// bases may differ. Complex replacements are split into substitutions and indels before they are compared, in truth
/// and calls alike. With --reference, groups of nearby variants also match if they result in the same sequence.
/// Structural variants, written as sequence, symbolic alleles or breakends, match if both ends of the adjacency are
/// within 50 bp; insertions match if their positions are within 50 bp and their lengths within 20%. Calls whose FILTER
/// is neither PASS nor `.` are ignored, but listed if they would have matched. Calls that `genuma call` made without a
/// reference are first placed on --reference by the sequence of their contigs; those that cannot be placed are counted
/// separately.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    genuma bench evaluate pair/truth.vcf calls/somatic.vcf.gz --reference pair/genome.fa\n  \
    genuma bench evaluate pair/truth.vcf mutect2.vcf.gz --reference pair/genome.fa \\\n    \
      --germline pair/germline.vcf --regions pair/repeats.bed --json scores.json")]
pub(crate) struct Args {
    /// VCF of the true variants, such as truth.vcf of `genuma bench simulate`
    truth: PathBuf,
    /// Calls: VCF of any caller, plain or gzipped
    calls: PathBuf,
    /// Reference genome, FASTA. It is used to left-align alleles, to count false calls in repeats separately, and to
    /// place calls that were made without a reference by the sequence of their contigs
    #[arg(long, value_name = "FASTA")]
    reference: Option<PathBuf>,
    /// Contigs of calls that `genuma call` made without a reference, FASTA [default: contigs.fa in the folder of the
    /// calls]
    #[arg(long, value_name = "FASTA")]
    contigs: Option<PathBuf>,
    /// Germline variants, such as germline.vcf of `genuma bench simulate`: false calls at these variants are marked
    #[arg(long, value_name = "VCF")]
    germline: Option<PathBuf>,
    /// Count false calls and missed variants also by region class: BED file with the class of each region in column 4,
    /// such as repeats.bed of `genuma bench simulate --genome-like`
    #[arg(long, alias = "kinds", value_name = "BED")]
    regions: Option<PathBuf>,
    /// Score all calls, not only those whose FILTER is PASS or `.`
    #[arg(long)]
    all_filters: bool,
    /// Also write all results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Maximum number of missed variants, and of false calls, that are listed
    #[arg(long, value_name = "N", default_value_t = 100)]
    list: usize,
}

/// Scores the calls, writes the JSON file of `--json`, and prints the tables.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let outcome = evaluate_calls(&EvaluationInputs {
        truth: &args.truth,
        calls: &args.calls,
        contigs: args.contigs.as_deref(),
        reference: args.reference.as_deref(),
        germline: args.germline.as_deref(),
        filters: if args.all_filters { FilterMode::All } else { FilterMode::PassOnly },
    })?;
    let kinds =
        args.regions.as_deref().map(|path| ErrorsByRegion::count_errors_by_region(&outcome, path)).transpose()?;
    if let Some(path) = &args.json {
        let mut set = AtomicFileSet::default();
        let mut json = outcome.to_json();
        if let Some(kinds) = &kinds {
            json["kinds"] = serde_json::to_value(kinds)?;
        }
        json_file::add_json_file_with_schema_number(
            path,
            json_file::schema_numbers::EVALUATION_SCHEMA_NUMBER,
            &json,
            &mut set,
        )?;
        set.publish_all()?;
    }
    logging::print_result(
        format_evaluation_tables(&outcome, args.list) + &kinds.map(|kinds| kinds.format_table()).unwrap_or_default(),
    )
}
