//! `genuma advise`: which strategy suits an aligner on this machine.

mod trials;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use genuma_machine::Topology;
use genuma_machine::topology::{Source, Sysfs};
use genuma_probe::MachineProfile;
use genuma_strategy::advisor::{self, Advice, Question};
use genuma_strategy::application::preset;
use genuma_strategy::instance::kill_all;
use genuma_strategy::invocation::Index;
use genuma_strategy::model::{Application, Machine};
use genuma_strategy::replay::report::replay;
use genuma_strategy::run::Plan;
use genuma_strategy::sample::Sample;
use genuma_strategy::{Invocation, Strategy, layout, replica};
use genuma_work::publish::{AtomicFile, Set};
use genuma_work::signals;
use tracing::{info, warn};

use crate::aligner::{self, Given};
use crate::report::advice::{self, Case, words};
use crate::{command, json, machine, voice};
use trials::{Trials, Wish};

/// Say which memory strategy suits an aligner on this machine.
///
/// The command is the aligner's own, as for `genuma run`. A model of the machine's memory predicts how long each strategy
/// takes: how many instances, and where the memory of each lies. Then the best few, and always the plain run, are tried on
/// the first reads, one after another, until it is clear which is fastest or the trials have had their share of the time.
/// Their records are thrown away. The answer says what is gained, give or take, and may be to do nothing.
///
/// With --replay the advisor is scored on published run times: a table of two servers, aligners fitted on one and
/// strategies chosen for the other, both ways, with and without simulated trials, beside simple rules. Regret is the
/// time lost against the best strategy of the table.
#[derive(Debug, ClapArgs)]
#[command(
    about = "Say which memory strategy suits an aligner",
    after_help = "Examples:\n  \
    genuma advise -- bwa mem -t {threads} ref.fa R_1.fq.gz R_2.fq.gz\n  \
    genuma advise --machine server7/machine.json --explain advice.html -- bowtie2 -p 64 -x ref -1 R_1.fq.gz -2 R_2.fq.gz\n  \
    genuma advise --replay strategy/data/lenis2017.csv"
)]
pub(crate) struct Args {
    /// What `genuma probe` measured of this machine [default: the file that GENUMA_MACHINE names, else distances as the firmware
    /// tells them]
    #[arg(long, value_name = "FILE", help_heading = "Method")]
    machine: Option<PathBuf>,
    /// Time that trials may take, loading of indexes counted, as a share of the run; 0 for no trials
    #[arg(long, value_name = "SHARE", default_value = "0.05", value_parser = share, help_heading = "Method")]
    pilot_budget: f64,
    /// Strategies to choose among, beside the plain run [default: all that differ on this machine, up to 8 instances]
    #[arg(long, value_name = "WORD", num_args = 1.., help_heading = "Method")]
    strategies: Vec<Strategy>,

    /// Threads of all instances together [default: those that the command says, else all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads(), help_heading = "Resources")]
    threads: Option<u16>,

    #[command(flatten)]
    given: Given,
    /// Score the advisor on this table of run times instead (columns: docs/advisor.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "machine", "strategies", "threads", "reads", "json", "explain"], help_heading = "Input")]
    replay: Option<PathBuf>,

    /// Also write the answer as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Also write a page that explains the answer
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    explain: Option<PathBuf>,

    /// The aligner and its arguments
    #[arg(last = true, required_unless_present = "replay", value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn share(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(share) if share.is_finite() && share >= 0.0 => Ok(share),
        _ => Err("a share of the run from 0, such as 0.05".to_owned()),
    }
}

/// Most instances that are thought of.
const MOST_INSTANCES: u32 = 8;
/// Reads that are looked at to tell how many there are.
const LOOK: u64 = 32_000;
/// Reads of a run of which nothing is known, because they come through a pipe.
const UNKNOWN_READS: f64 = 100e6;
/// Share of the run that `genuma run` lets trials take.
const RUN_BUDGET: f64 = 0.02;

/// Advises, or scores the advisor.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(table) = &args.replay {
        return score(table);
    }
    let invocation = args.given.understand(&args.command)?;
    invocation.check()?;
    let topology = Sysfs::new().topology()?;
    let threads =
        args.threads.map(usize::from).or(invocation.threads).unwrap_or(topology.allowed.cpus.len().max(1));
    let profile = match &args.machine {
        Some(path) => Some(machine::of_this(path, &topology)?),
        None => machine::profile(None, &topology)?,
    };
    interruptible();
    let look = Sample::take(&invocation.reads, &invocation.aligned, LOOK)?;
    let Some(case) = Case::new(&invocation, &topology, threads, profile.as_ref(), look.total)? else {
        bail!(
            "no node of this machine has both CPUs and memory for this process: there is nothing to choose"
        );
    };
    let all = layout::candidates(&topology, threads, MOST_INSTANCES);
    let strategies = if args.strategies.is_empty() { &all } else { &args.strategies };
    let budget = (args.pilot_budget > 0.0).then_some(args.pilot_budget);
    let advice = case.ask(&invocation, &topology, strategies, budget)?;
    let mut set = Set::default();
    if let Some(path) = &args.json {
        write_json(path, &case, &advice, &mut set)?;
    }
    if let Some(path) = &args.explain {
        let mut page = AtomicFile::create(path)?;
        page.write_all(advice::render(&case, &advice).as_bytes())?;
        set.add(page.complete()?);
    }
    set.publish()?;
    if let Some(path) = &args.explain {
        info!("{} is written", path.display());
    }
    voice::print(words::table(&case, &advice))
}

/// The strategy of a run for which none is asked, and why: within a fiftieth of the run's time, or else by the model alone.
pub(crate) fn choose(
    invocation: &Invocation,
    topology: &Topology,
    threads: usize,
) -> anyhow::Result<(Strategy, String)> {
    let plain = |why: &str| Ok((Strategy::PLAIN, why.to_owned()));
    if topology.memory_nodes().len() < 2 {
        return plain("one node: nothing to place");
    }
    let profile = machine::profile(None, topology)?;
    interruptible();
    // What is wrong with the reads is told when they are read.
    let look = Sample::take(&invocation.reads, &invocation.aligned, LOOK).ok();
    let total = look.as_ref().map_or(UNKNOWN_READS, |look| look.total);
    let Some(case) = Case::new(invocation, topology, threads, profile.as_ref(), total)? else {
        return plain("no node has both CPUs and memory");
    };
    let budget = look.map(|_| RUN_BUDGET);
    let strategies = layout::candidates(topology, threads, MOST_INSTANCES);
    match case.ask(invocation, topology, &strategies, budget) {
        Ok(advice) => Ok((advice.strategy, words::short(&case, &advice))),
        Err(error) => {
            warn!("a trial failed, so the plain run it is: {error:#}");
            plain("a trial failed")
        }
    }
}

/// An interrupted trial leaves nothing.
fn interruptible() {
    signals::on_interruption(Some(Box::new(|| {
        kill_all();
        replica::remove_all();
        None
    })));
}

impl Case {
    /// None if no node has both CPUs and memory.
    fn new(
        invocation: &Invocation,
        topology: &Topology,
        threads: usize,
        profile: Option<&MachineProfile>,
        reads: f64,
    ) -> anyhow::Result<Option<Case>> {
        let machine = match profile {
            Some(profile) => Some(Machine::from_profile(profile)?),
            None => Machine::from_topology(topology),
        };
        let Some(machine) = machine else { return Ok(None) };
        let source = match profile {
            Some(_) => "as `genuma probe` measured it",
            None => "by the distances that the firmware tells; `genuma probe` would measure them",
        };
        let index_bytes = invocation.index.as_ref().map_or(Ok(0), Index::bytes)?;
        Ok(Some(Case {
            aligner: invocation.aligner.clone(),
            command: aligner::plain(invocation, threads).join(" "),
            threads,
            source: source.to_owned(),
            machine,
            application: preset(&invocation.aligner).application(index_bytes, reads),
        }))
    }

    /// Asks the advisor; trials are real runs.
    fn ask(
        &self,
        invocation: &Invocation,
        topology: &Topology,
        strategies: &[Strategy],
        budget: Option<f64>,
    ) -> anyhow::Result<Advice> {
        let threads = self.threads;
        let refuse = |strategy: Strategy| {
            let seats = || {
                Plan::check(invocation, strategy)?;
                let seats = layout::seats(&strategy, topology, threads)?;
                replica::fit(invocation, &seats, invocation.depends.block(threads).unwrap_or(0))?;
                anyhow::Ok(())
            };
            seats().err().map(|error| error.to_string())
        };
        let most = strategies.iter().map(|strategy| strategy.instances).max().unwrap_or(1);
        let wanted = Cell::new(0);
        let trials: RefCell<Option<Trials<'_>>> = RefCell::new(None);
        let question = Question {
            machine: &self.machine,
            app: self.application,
            threads: u32::try_from(threads).unwrap_or(u32::MAX),
            strategies,
            budget,
        };
        let expected = |app: &Application, plain: genuma_strategy::model::Prediction| {
            let (reads, seconds) = trials::expected(app, plain, most, &self.machine);
            wanted.set(reads);
            seconds
        };
        let run = |strategy: Strategy| {
            let mut trials = trials.borrow_mut();
            let trials = match &mut *trials {
                Some(trials) => trials,
                none => {
                    let reads = self.application.reads;
                    let budget = budget.unwrap_or(0.0);
                    let wish = Wish { reads, most, budget, sample: wanted.get() };
                    none.insert(Trials::new(invocation, topology, threads, &wish)?)
                }
            };
            trials.run(strategy)
        };
        advisor::advise(&question, refuse, expected, run)
    }
}

fn write_json(path: &Path, case: &Case, advice: &Advice, set: &mut Set) -> anyhow::Result<()> {
    let all = serde_json::json!({
        "genuma": env!("CARGO_PKG_VERSION"),
        "case": case,
        "advice": advice,
        "in_words": words::decision(advice),
    });
    json::add(path, &all, set)
}

/// Prints how the advisor does on published run times.
fn score(table: &Path) -> anyhow::Result<()> {
    let name = table.display().to_string();
    let text = fs::read_to_string(table).with_context(|| format!("{name}: cannot read"))?;
    voice::print(replay(&name, &text)?.to_string())
}
