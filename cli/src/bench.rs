//! `genuma bench`: simulates reads with known variants, and scores calls.

use clap::Subcommand;

use crate::{evaluate, simulate};

/// Simulate reads with known variants, and score calls.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Simulate(Box<simulate::Args>),
    Evaluate(evaluate::Args),
}

/// Runs the subcommand of `genuma bench` that the user chose.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Command::Simulate(args) => simulate::run(*args),
        Command::Evaluate(args) => evaluate::run(args),
    }
}
