//! The genuma program: parses the command line and runs the chosen command. Each command is implemented in the module
//! of its name, except `machine show` (module `topology`) and `machine measure` (module `probe`).

mod advise;
mod align;
mod aligned_files;
mod bench;
mod bgzf_writer;
mod external_aligner;
mod call;
mod check;
mod command_line;
mod completions;
mod count;
mod counter_table;
mod evaluate;
mod first_reads;
mod errors;
mod fingerprint;
mod forecast;
mod fpga;
mod gpu;
mod index;
mod input_files;
mod json_file;
mod kmer_length;
mod kmers;
mod machine;
mod machine_profile;
mod man;
mod allocator;
mod multiqc;
mod device_list;
mod distributed;
mod former_command_names;
mod plan;
mod probe;
mod progress;
mod query;
mod read_layout;
mod run;
mod simulate;
mod stdout_state;
mod step;
mod table;
mod topology;
mod track;
mod logging;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use genuma_work::signals;

/// Find somatic variants in tumour and normal reads, without aligning the reads.
#[derive(Debug, Parser)]
#[command(name = "genuma", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Start with `genuma call --help`. To try genuma without data of your own, simulate a tumour/normal pair:\n\n  \
    genuma bench simulate -o pair\n  \
    genuma call --tumor pair/tumor_{1,2}.fq.gz --normal pair/normal_{1,2}.fq.gz \\\n    \
      --reference pair/genome.fa -o calls\n  \
    genuma bench evaluate pair/truth.vcf calls/somatic.vcf.gz --reference pair/genome.fa\n\n\
    Exit codes: 0 success; 1 failure, results withheld, or a forecast that the call does not fit in its memory \
    (`plan`, `call --dry-run`); 2 wrong usage; 129, 130, 143 interrupted by a signal. `genuma run` passes on the exit \
    code of a program that it does not know."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    verbosity: logging::Verbosity,
}

#[derive(Debug, Subcommand)]
enum Command {
    Call(Box<call::Args>),
    Check(check::Args),
    Track(track::Args),
    Align(align::Args),
    Index(index::Args),
    Run(run::Args),
    Kmers(kmers::Args),
    Machine(machine::Args),
    Plan(Box<plan::Args>),
    Step(step::Args),
    Bench(bench::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Commands that the help lists separately, below the commands that users need first.
const MORE_COMMANDS: [&str; 5] = ["plan", "step", "bench", "completions", "man"];

/// Returns the command-line parser. Its help lists [`MORE_COMMANDS`] separately.
fn build_command_parser() -> clap::Command {
    let mut genuma = Cli::command();
    let mut more = String::new();
    for name in MORE_COMMANDS {
        genuma = genuma.mut_subcommand(name, |command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            more.push_str(&format!("  {name:<11}  {about}\n"));
            command.hide(true)
        });
    }
    let after_help = genuma.get_after_help().map(ToString::to_string).unwrap_or_default();
    genuma.after_help(format!("More commands:\n{more}\n{after_help}"))
}

/// Parses a command line. Former names of commands are accepted. Stores whether the command has `--memory`, for messages.
fn parse_command_line(args: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = build_command_parser();
    let matches = command.try_get_matches_from_mut(former_command_names::replace_former_command_names(args))?;
    allocator::set_has_memory_option(has_argument(&command, &matches, "memory"));
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Whether the subcommand of a parsed command line has this argument, given or not.
fn has_argument(command: &clap::Command, matches: &ArgMatches, id: &str) -> bool {
    match matches.subcommand() {
        Some((name, matches)) => {
            command.find_subcommand(name).is_some_and(|command| has_argument(command, matches, id))
        }
        None => command.get_arguments().any(|argument| argument.get_id() == id),
    }
}

fn main() -> ExitCode {
    allocator::reserve_main_thread_stack();
    if let Some(done) = device_list::list_devices_if_child() {
        return done;
    }
    let cli = match parse_command_line(std::env::args_os()) {
        Ok(cli) => cli,
        Err(parse_error) => return errors::print_clap_message(&parse_error),
    };
    cli.verbosity.init_logging();
    errors::install_panic_hook();
    let result =
        signals::start_signal_thread().context("cannot install the signal handlers").and_then(|()| match cli.command {
            Command::Call(args) => call::run(*args),
            Command::Check(args) => check::run(&args),
            Command::Track(args) => track::run(&args),
            Command::Align(args) => align::run(&args),
            Command::Index(args) => index::run(&args),
            Command::Run(args) => run::run(&args),
            Command::Kmers(args) => kmers::run(&args),
            Command::Machine(args) => machine::run(&args),
            Command::Plan(args) => plan::run(&args),
            Command::Step(args) => step::run(&args),
            Command::Bench(args) => bench::run(args),
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => man::run(&args),
        });
    // While a signal handler is running, wait: the handler ends the process itself.
    let _undivided = signals::enter_critical_section();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => errors::report_error(&error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use clap::error::ErrorKind;

    use super::*;

    /// Appends all Markdown files below a folder to `pages`.
    fn collect_markdown_files(folder: &Path, pages: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                collect_markdown_files(&entry, pages);
            } else if entry.extension().is_some_and(|e| e == "md") {
                pages.push(entry);
            }
        }
    }

    /// The genuma commands in the code blocks of a Markdown page. Lines continued with a backslash are joined.
    fn genuma_commands_of_page(page: &str) -> Vec<String> {
        let (mut commands, mut fenced, mut continued): (Vec<String>, bool, bool) = (Vec::new(), false, false);
        for line in page.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let Some(text) = line.strip_prefix("    ").or(fenced.then_some(line)) else {
                continued = false;
                continue;
            };
            let continues = text.ends_with('\\');
            let text = text.trim_end_matches('\\').trim();
            if continued {
                commands.last_mut().expect("a command").push_str(&format!(" {text}"));
            } else {
                let begins = ["genuma ", "target/release/genuma "].iter().any(|name| text.starts_with(name));
                if !begins {
                    continue;
                }
                commands.push(text.to_owned());
            }
            continued = continues;
        }
        commands
    }

    /// Splits a command into arguments as bash does, up to a pipe, a redirection, a second command or a comment. Text in
    /// single quotes is kept.
    fn split_like_shell(command: &str) -> Vec<String> {
        let ends = [" > ", " | ", " && ", " # ", " 2> ", " < ", " & ", "; "];
        let is_quoted = |at: usize| command[..at].matches('\'').count() % 2 == 1;
        let places = ends.iter().flat_map(|end| command.match_indices(end)).map(|(at, _)| at);
        let end = places.filter(|&at| !is_quoted(at)).min().unwrap_or(command.len());
        let shell = format!("set -f; printf '%s\\0' {}", &command[..end]);
        let output = Command::new("bash").args(["-c", &shell]).output().expect("bash starts");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn commands_in_documentation_parse() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut pages: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md"].iter().map(|name| root.join(name)).collect();
        collect_markdown_files(&root.join("docs"), &mut pages);
        let (mut num_parsed, mut failures) = (0, Vec::new());
        for page in pages {
            // Dated pages keep the words that were typed then.
            let is_dated =
                ["evidence", "decisions"].iter().any(|folder| page.parent().is_some_and(|p| p.ends_with(folder)));
            for command in genuma_commands_of_page(&fs::read_to_string(&page).expect("a page")) {
                // Skip commands with placeholders, and the first line of a topology recording.
                if command.contains('…') || command.contains("...") || command == "genuma recording 1" {
                    continue;
                }
                num_parsed += 1;
                let args = split_like_shell(&command);
                let parsed = match is_dated {
                    true => parse_command_line(args.into_iter().map(OsString::from)),
                    false => Cli::try_parse_from(args),
                };
                if let Err(error) = parsed
                    && !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
                {
                    failures.push(format!("{}: {command}\n{error}", page.display()));
                }
            }
        }
        assert!(num_parsed >= 80, "{num_parsed} commands");
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}
