//! `genuma man`: the manual pages.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;

/// Write the manual pages: one of genuma and one a verb.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    genuma man ~/.local/share/man/man1     then `man genuma-call`\n  \
    genuma man . && man ./genuma-call.1")]
pub struct Args {
    /// Folder to write into; made when missing
    dir: PathBuf,
}

/// Writes `genuma.1`, `genuma-call.1` and so on.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let failed = || format!("{}: cannot write the manual pages", args.dir.display());
    fs::create_dir_all(&args.dir).with_context(failed)?;
    clap_mangen::generate_to(crate::Cli::command().disable_help_subcommand(true), &args.dir)
        .with_context(failed)
}
