//! `genuma kmers`: counts k-mers, looks them up, and combines k-mer tables.

use clap::Subcommand;

use crate::{count, query, table};

/// Count k-mers, look them up, and combine k-mer tables.
#[derive(Debug, clap::Args)]
#[command(
    about = "Count k-mers, look them up, and combine k-mer tables",
    after_help = "Examples:\n  \
    A panel of normals: the number of normals with each k-mer, if at least two have it:\n    \
    genuma kmers union --counts samples --min 2 normals/*.gkt -o panel.gkt\n  \
    The k-mers of a child that neither parent has:\n    \
    genuma kmers subtract child.gkt mother.gkt father.gkt -o new.gkt\n  \
    The k-mers with counts of at least 10, as text:\n    \
    genuma kmers filter --min 10 S.gkt -o S.tsv\n  \
    The k-mers as a dictionary, a fifth of the bytes, to be looked up in memory:\n    \
    genuma kmers compact S.gkt -o S.gkd"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Count(count::Args),
    Query(query::Args),
    #[command(flatten)]
    Table(table::Command),
}

/// Runs the subcommand of `genuma kmers` that the user chose.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Count(args) => count::run(args),
        Command::Query(args) => query::run(args),
        Command::Table(command) => table::run(command),
    }
}
