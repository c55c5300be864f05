//! `genuma man`: writes the manual pages.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;
use genuma_work::publish::{AtomicFile, AtomicFileSet};

/// Write the manual pages: one for genuma and one for each command and subcommand.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    genuma man ~/.local/share/man/man1     then `man genuma-call`\n  \
    genuma man . && man ./genuma-call.1")]
pub(crate) struct Args {
    /// Folder to write into; it is created if missing
    dir: PathBuf,
}

/// Writes `genuma.1`, `genuma-call.1` and so on: all pages or none.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let failed = || format!("{}: cannot write the manual pages", args.dir.display());
    fs::create_dir_all(&args.dir).with_context(failed)?;
    let mut genuma = crate::Cli::command().disable_help_subcommand(true);
    genuma.build();
    let mut set = AtomicFileSet::default();
    let mut commands = vec![&genuma];
    let mut num_visited = 0;
    while let Some(command) = commands.get(num_visited).copied() {
        num_visited += 1;
        commands.extend(command.get_subcommands());
    }
    for command in commands {
        let page = Man::new(command.clone());
        let mut file = AtomicFile::create(args.dir.join(page.get_filename()))?;
        page.render(&mut file).with_context(failed)?;
        set.add_file(file.flush_to_partial_file()?);
    }
    Ok(set.publish_all()?)
}
