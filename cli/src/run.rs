//! `genuma run`: somebody else's aligner, unmodified, under the strategy that suits the machine.

mod outcome;

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::Arc;

use genuma_machine::topology::{Source, Sysfs};
use genuma_reads::Meter;
use genuma_strategy::instance::{Words, kill_all};
use genuma_strategy::invocation::{Determinism, Output, Reads};
use genuma_strategy::merge::Program;
use genuma_strategy::run::{Error, Plan, Summary};
use genuma_strategy::{Invocation, Strategy, layout, replica};
use genuma_work::Watch;
use genuma_work::publish::{AtomicFile, Set};
use genuma_work::signals;
use tracing::{debug, info, warn};

use crate::aligner::{self, Given};
use crate::failure::Usage;
use crate::progress::Progress;
use crate::{advise, aligned, command, voice};
use outcome::Outcome;

/// Run an aligner, unmodified, where the machine's memory suits it.
///
/// The command is the aligner's own, as you would type it: bwa (mem, aln, samse, sampe), bwa-mem2, minibwa, bowtie2, minimap2, strobealign,
/// SNAP or GEM3. genuma reads the reads once and deals them to one or several instances of the aligner, each on its own CPUs and memory, and
/// merges what they write into the order of the reads: the same records as the plain command would give, and one more @PG line.
///
/// Reads may be in BAM, CRAM (with --reference) or CBQ: named where the aligner takes one file with mates in turn (-p of bwa mem), or with
/// --reads.
///
/// {threads} in the command is the number of threads that genuma chooses. Any other program that reads FASTQ and writes SAM, read by read
/// in the order of the reads, runs as well: write {reads1} and {reads2}, or {reads}, or nothing for standard input, where its reads belong,
/// and name the files with --reads.
#[derive(Debug, clap::Args)]
#[command(
    about = "Run any aligner where the machine's memory suits it",
    after_help = "Examples:\n  \
    bwa mem on all CPUs:\n    \
    genuma run -- bwa mem -t {threads} ref.fa R_1.fq.gz R_2.fq.gz > out.sam\n  \
    Four instances, each with its memory on its own nodes:\n    \
    genuma run --strategy 4xbind -o out.sam -- bowtie2 -p 64 -x ref -1 R_1.fq.gz -2 R_2.fq.gz\n  \
    Reads from a BAM file, mates together whatever its order:\n    \
    genuma run -- bwa mem -p -t {threads} ref.fa R.bam > out.sam\n  \
    A program genuma does not know:\n    \
    genuma run --reads R_1.fq.gz R_2.fq.gz -- mapper --cpus {threads} ref.idx {reads1} {reads2}"
)]
pub(crate) struct Args {
    /// How many instances, and where the memory of each lies: auto, or default, local, interleave, weighted or bind, or several
    /// instances as 4xbind
    #[arg(long, value_name = "WORD", default_value = "auto", help_heading = "Method")]
    strategy: String,

    /// Threads of all instances together [default: those that the command says, else all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads(), help_heading = "Resources")]
    threads: Option<u16>,

    #[command(flatten)]
    given: Given,

    /// Where the records go [default: where the command says, else stdout]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Also write what was done, with times and places, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,

    /// The aligner and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let invocation = args.given.understand(&args.command)?;
    let out = args.target(&invocation)?;
    invocation.check()?;
    let topology = Sysfs::new().topology()?;
    let all = topology.allowed.cpus.len().max(1);
    let threads = args.threads.map(usize::from).or(invocation.threads).unwrap_or(all);
    let (strategy, why) = match args.strategy.as_str() {
        "auto" => advise::choose(&invocation, &topology, threads)?,
        word => (word.parse::<Strategy>().map_err(|e| Usage(e.to_string()))?, "you chose it".to_owned()),
    };
    Plan::check(&invocation, strategy).map_err(|e| Usage(e.to_string()))?;
    if let (Determinism::Loose(why), 2..) = (&invocation.determinism, strategy.instances) {
        warn!("records may differ from those of the plain run: {why}");
    }
    let seats = layout::seats(&strategy, &topology, threads)?;
    replica::fit(&invocation, &seats, invocation.depends.block(threads).unwrap_or(0))?;
    signals::on_interruption(Some(Box::new(|| {
        kill_all();
        replica::remove_all();
        None
    })));
    let prepared = replica::prepare(&invocation, strategy, &seats)?;
    if let Some(note) = &prepared.note {
        info!("{note}");
    }
    info!("strategy {strategy}: {why}");
    let alone = seats.len() == 1 && tracing::enabled!(tracing::Level::INFO);
    let plan = Plan {
        strategy,
        why,
        seats,
        invocations: prepared.invocations,
        threads,
        plain: aligner::plain(&invocation, threads),
        genuma: Program {
            name: "genuma".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            line: command::line(),
        },
        words: if alone { Words::Passed } else { Words::Logged },
    };
    debug!("{} threads on {} instances", threads, plan.seats.len());
    let mut set = Set::default();
    let Some(summary) = plan_to(&plan, out.as_ref(), &mut set)? else { return Ok(()) };
    drop(prepared.replicas);
    let outcome = Outcome { command: command::line(), plan: &plan, summary };
    outcome.warn();
    for (file, tally) in &outcome.summary.aligned {
        let file = file.display().to_string();
        aligned::tell_of(&file, tally);
        let with_mates = tally.records - tally.secondary - tally.supplementary - tally.alone;
        if matches!(plan.invocations[0].reads, Reads::Single(_)) && with_mates > 0 {
            warn!(
                "{file}: {with_mates} reads have mates, and were aligned without them, as the command says"
            );
        }
    }
    if let Some(path) = &args.json {
        outcome.write(path, &mut set)?;
    }
    set.publish()?;
    info!("{}", outcome.line(out.as_deref()));
    Ok(())
}

impl Args {
    /// The file that records go to; none for standard output.
    fn target(&self, invocation: &Invocation) -> Result<Option<PathBuf>, Usage> {
        match (&self.out, &invocation.output) {
            (None, Output::Stdout) => Ok(None),
            (None, Output::File(path)) => Ok(Some(path.clone())),
            (Some(path), Output::Stdout) if path.as_os_str() == "-" => Ok(None),
            (Some(path), Output::Stdout) => Ok(Some(path.clone())),
            (Some(path), Output::File(other)) => Err(Usage(format!(
                "-o {} and {} in the command: name one output",
                path.display(),
                other.display()
            ))),
        }
    }
}

/// Runs a plan into a file of `set` or to standard output; none when whoever reads that has seen enough.
fn plan_to(plan: &Plan, out: Option<&PathBuf>, set: &mut Set) -> anyhow::Result<Option<Summary>> {
    let meter = Arc::new(Meter::default());
    let progress = Progress::start();
    progress.begins("run", Some(Arc::clone(&meter)));
    match out {
        Some(path) => {
            let mut file = AtomicFile::create(path)?;
            let summary = plan.run(meter, &mut file)?;
            set.add(file.complete()?);
            Ok(Some(summary))
        }
        None => {
            let mut stdout = voice::results()?;
            match plan.run(meter, &mut stdout) {
                Ok(summary) => {
                    stdout.flush()?;
                    Ok(Some(summary))
                }
                Err(Error::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
                Err(Error::Write(error)) => Err(anyhow::Error::new(error).context("standard output")),
                Err(error) => Err(error.into()),
            }
        }
    }
}
