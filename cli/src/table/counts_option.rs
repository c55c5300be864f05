//! The option `--counts` of `genuma kmers union`, `intersect` and `subtract`.

use clap::Arg;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use genuma_tables::rule::{CountMode, SetOperation};

/// Parses a value of `--counts`.
///
/// # Errors
/// There is no such mode.
pub(super) fn parse_count_mode(name: &str) -> Result<CountMode, String> {
    CountMode::from_name(name).ok_or_else(|| format!("no mode has the name {name}"))
}

/// Returns the help of a value of `--counts` for an operation.
fn describe_count_mode(operation: SetOperation, counts: CountMode) -> &'static str {
    match (operation, counts) {
        (SetOperation::Intersect, CountMode::First) => "Counts of the first table",
        (SetOperation::Intersect, CountMode::Last) => "Counts of the last table",
        (SetOperation::Subtract, CountMode::First) => {
            "K-mers that no other table has, with the counts of the first table"
        }
        (_, CountMode::Sum) => "Sum of the counts",
        (_, CountMode::Max) => "Largest count",
        (_, CountMode::Min) => "Smallest count above 0",
        (_, CountMode::First) => "Counts of the first table that has the k-mer",
        (_, CountMode::Last) => "Counts of the last table that has the k-mer",
        (_, CountMode::Samples) => "Number of samples that have the k-mer, over all tables: makes a panel of normals",
        (_, CountMode::Columns) => "All counts: each sample of each table is a sample of the result, at most 8",
        (_, CountMode::Difference) => "Count in the first table minus the counts in the other tables, at least 0",
    }
}

/// Completes the definition of the option `--counts`: help, and the values that the operation allows.
pub(super) fn define_counts_option(operation: SetOperation, counts: Arg) -> Arg {
    let allowed = CountMode::ALL_COUNT_MODES.into_iter().filter(|mode| operation.allows(*mode));
    let values = allowed.map(|mode| PossibleValue::new(mode.name()).help(describe_count_mode(operation, mode)));
    let parser = PossibleValuesParser::new(values).try_map(|name| parse_count_mode(&name));
    let modes_for_any_samples = match operation {
        SetOperation::Intersect => "samples, columns or first",
        SetOperation::Subtract => "first",
        SetOperation::Union | SetOperation::Filter => "samples or columns",
    };
    counts.value_parser(parser).help(format!(
        "How the counts of the tables are combined. Tables with several samples are combined sample by sample and \
         must have the same samples in the same order (not for --counts {modes_for_any_samples}) [default: {}]",
        operation.default_count_mode().name()
    ))
}
