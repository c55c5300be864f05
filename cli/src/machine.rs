//! `genuma machine`: describes and measures this machine, and recommends how to use it.

use clap::Subcommand;

use crate::{advise, probe, topology};

/// Show and measure this machine, and recommend how to run an aligner on it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(topology::Args),
    Measure(probe::Args),
    Advise(advise::Args),
}

/// Runs the subcommand of `genuma machine` that the user chose.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    match &args.command {
        Command::Show(args) => topology::run(args),
        Command::Measure(args) => probe::run(args),
        Command::Advise(args) => advise::run(args),
    }
}
