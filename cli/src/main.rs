//! The door: one file a verb.

mod advise;
mod align;
mod aligned;
mod aligner;
mod call;
mod check;
mod command;
mod completions;
mod count;
mod evaluate;
mod failure;
mod fingerprint;
mod forecast;
mod gpu;
mod index;
mod json;
mod machine;
mod man;
mod memory;
mod multiqc;
mod note;
mod parts;
mod plan;
mod probe;
mod progress;
mod query;
mod report;
mod run;
mod simulate;
mod sizes;
mod stdout;
mod step;
mod table;
mod topology;
mod track;
mod voice;

use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use genuma_work::signals;

/// Somatic mutations from tumour and normal reads, without aligning the reads.
#[derive(Debug, Parser)]
#[command(name = "genuma", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Start with `genuma call --help`. To try genuma without data of your own, simulate a pair:\n\n  \
    genuma simulate -o pair\n  \
    genuma call --tumor pair/tumor_{1,2}.fq.gz --normal pair/normal_{1,2}.fq.gz \\\n    \
      --reference pair/genome.fa -o calls\n  \
    genuma evaluate pair/truth.vcf calls/somatic.vcf.gz --reference pair/genome.fa\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong usage, 129, 130 and 143 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    voice: voice::Voice,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Call(Box<call::Args>),
    Check(check::Args),
    Step(step::Args),
    Plan(Box<plan::Args>),
    Count(count::Args),
    Query(query::Args),
    Table(table::Args),
    Index(index::Args),
    Align(align::Args),
    Run(run::Args),
    Advise(advise::Args),
    Track(track::Args),
    Simulate(Box<simulate::Args>),
    Evaluate(evaluate::Args),
    Topology(topology::Args),
    Probe(probe::Args),
    Completions(completions::Args),
    Man(man::Args),
}

fn main() -> ExitCode {
    memory::hold_stack();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(asked) => return failure::answer(&asked),
    };
    cli.voice.set();
    failure::heed_threads();
    let done = signals::heed().context("signal handlers").and_then(|()| match cli.verb {
        Verb::Call(args) => call::run(*args),
        Verb::Check(args) => check::run(&args),
        Verb::Step(args) => step::run(&args),
        Verb::Plan(args) => plan::run(&args),
        Verb::Count(args) => count::run(&args),
        Verb::Query(args) => query::run(&args),
        Verb::Table(args) => table::run(&args),
        Verb::Index(args) => index::run(&args),
        Verb::Align(args) => align::run(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Advise(args) => advise::run(&args),
        Verb::Track(args) => track::run(&args),
        Verb::Simulate(args) => simulate::run(*args),
        Verb::Evaluate(args) => evaluate::run(args),
        Verb::Topology(args) => topology::run(&args),
        Verb::Probe(args) => probe::run(&args),
        Verb::Completions(args) => completions::run(&args),
        Verb::Man(args) => man::run(&args),
    });
    // A signal that is being heeded ends the program itself.
    let _undivided = signals::undivided();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use clap::error::ErrorKind;

    use super::*;

    /// All pages below a folder.
    fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if entry.is_dir() {
                pages(&entry, found);
            } else if entry.extension().is_some_and(|e| e == "md") {
                found.push(entry);
            }
        }
    }

    /// Commands in blocks of a page that begin with genuma, lines that go on joined.
    fn commands(page: &str) -> Vec<String> {
        let (mut commands, mut fenced, mut open): (Vec<String>, bool, bool) = (Vec::new(), false, false);
        for line in page.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let Some(text) = line.strip_prefix("    ").or(fenced.then_some(line)) else {
                open = false;
                continue;
            };
            let goes_on = text.ends_with('\\');
            let text = text.trim_end_matches('\\').trim();
            if open {
                commands.last_mut().expect("a command").push_str(&format!(" {text}"));
            } else {
                let begins = ["genuma ", "target/release/genuma "].iter().any(|name| text.starts_with(name));
                if !begins {
                    continue;
                }
                commands.push(text.to_owned());
            }
            open = goes_on;
        }
        commands
    }

    /// Words as a shell makes them of a command, up to a pipe, a redirection, another command or a comment.
    fn words(command: &str) -> Vec<String> {
        let ends = [" > ", " | ", " && ", " # ", " 2> ", " < ", " & ", "; "];
        let end = ends.iter().filter_map(|end| command.find(end)).min().unwrap_or(command.len());
        let shell = format!("set -f; printf '%s\\0' {}", &command[..end]);
        let output = Command::new("bash").args(["-c", &shell]).output().expect("bash starts");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn commands_of_the_documentation_are_understood() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found: Vec<PathBuf> =
            ["README.md", "CONTRIBUTING.md"].iter().map(|name| root.join(name)).collect();
        pages(&root.join("docs"), &mut found);
        let (mut understood, mut not) = (0, Vec::new());
        for page in found {
            for command in commands(&fs::read_to_string(&page).expect("a page")) {
                // Words that stand for others; the first line of a recording.
                if command.contains('…') || command.contains("...") || command == "genuma recording 1" {
                    continue;
                }
                understood += 1;
                if let Err(error) = Cli::try_parse_from(words(&command))
                    && !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
                {
                    not.push(format!("{}: {command}\n{error}", page.display()));
                }
            }
        }
        assert!(understood >= 80, "{understood} commands");
        assert!(not.is_empty(), "{}", not.join("\n"));
    }
}
