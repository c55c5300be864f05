//! `genuma completions`: what a shell needs to complete genuma's options.

use std::io::Write;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

/// Print the completion script of a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    genuma completions bash > ~/.local/share/bash-completion/completions/genuma\n  \
    genuma completions zsh  > ~/.zfunc/_genuma\n  \
    genuma completions fish > ~/.config/fish/completions/genuma.fish")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Writes the script to stdout.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "genuma", &mut script);
    std::io::stdout().write_all(&script).context("standard output")
}
