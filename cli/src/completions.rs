//! `genuma completions`: prints a shell's completion script.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::logging;

/// Print the completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    genuma completions bash > ~/.local/share/bash-completion/completions/genuma\n  \
    genuma completions zsh  > ~/.zfunc/_genuma\n  \
    genuma completions fish > ~/.config/fish/completions/genuma.fish")]
pub(crate) struct Args {
    /// Shell to complete for
    shell: Shell,
}

/// Writes the completion script to stdout.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "genuma", &mut script);
    logging::print_result(script)
}
