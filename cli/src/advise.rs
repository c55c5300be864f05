//! `genuma advise`: which strategy suits a program on this machine.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args as ClapArgs;
use genuma_strategy::replay::report::replay;

/// Say which memory strategy suits an aligner.
///
/// With --replay the advisor is scored on published run times: a table of two servers, aligners fitted on one and
/// strategies chosen for the other, both ways, with and without simulated pilot runs, beside simple rules. Regret is the
/// time lost against the best strategy of the table.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  genuma advise --replay strategy/data/lenis2017.csv")]
pub struct Args {
    /// Score the advisor on this table of run times (columns as in the paper's data: docs/advisor.md)
    #[arg(long, value_name = "FILE")]
    replay: PathBuf,
}

/// Prints the score.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let name = args.replay.display().to_string();
    let text = fs::read_to_string(&args.replay).with_context(|| format!("{name}: cannot read"))?;
    let report = replay(&name, &text)?;
    match write!(std::io::stdout().lock(), "{report}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("standard output"),
        _ => Ok(()),
    }
}
