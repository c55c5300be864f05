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
