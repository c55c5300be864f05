//! `genuma machine advise`: recommends a memory strategy for an aligner on this machine.

pub(crate) mod placement;
mod sweep;
mod trials;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args as ClapArgs, value_parser};
use genuma_machine::Topology;
use genuma_machine::topology::{Sysfs, TopologySource};
use genuma_probe::MachineProfile;
use genuma_strategy::advisor::{self, Advice, AdviceRequest};
use genuma_strategy::aligner_model_params::find_aligner_model_params;
use genuma_strategy::instance::kill_all_instances;
use genuma_strategy::invocation::AlignerIndex;
use genuma_strategy::model::ApplicationModel;
use genuma_strategy::read_sample::ReadSample;
use genuma_strategy::replay::report::evaluate_advisor_on_table;
use genuma_strategy::run::RunPlan;
use genuma_strategy::{Invocation, Strategy, cpu_layout, index_replicas};
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use genuma_work::signals;
use tracing::{info, warn};

use crate::external_aligner::{self, ReadFileOptions};
use crate::{command_line, json_file, logging, machine_profile};
use genuma_report::advice::{self, AdvisedRun, PlacementAdvice, placement_text, text};
use trials::{TrialRunner, TrialSettings};

/// Recommend a memory strategy for an aligner on this machine.
///
/// Give the aligner's own command, as for `genuma run`. A memory strategy is a number of aligner instances that share
/// the reads, and a memory policy: the NUMA nodes on which the memory of each instance is (--strategy in `genuma run
/// --help`). A model of the machine's memory predicts the run time of each strategy. The best few strategies and the
/// plain run (the command unchanged) are then tried on the first reads, one after another, until the fastest is clear
/// or the trials have used their share of the time (--trial-budget). The records of the trials are discarded. The
/// answer states the expected gain with its uncertainty. The best strategy may be the plain run.
///
/// The answer also has the command lines for use without genuma: numactl, Slurm (srun, sbatch) and systemd-run, one line
/// for each instance with its CPUs and nodes. With --nodes, a job gets some of the nodes only: those with the fastest
/// access to each other's memory. --nodes also works without a command, and with the profile of another machine.
///
/// With --replay no aligner runs. Instead genuma tests how good its advice is, on a table of published run times of two
/// servers: it is fitted to the times on one server and chooses strategies for the other, in both directions, with and
/// without simulated trials. The result is the regret of its choices and of simple rules: the time that a choice
/// loses relative to the best strategy in the table.
#[derive(Debug, ClapArgs)]
#[command(
    about = "Recommend how to divide and place an aligner on the NUMA nodes of this machine",
    after_help = "Examples:\n  \
    genuma machine advise -- bwa mem -t {threads} ref.fa R_1.fq.gz R_2.fq.gz\n  \
    genuma machine advise --machine server7/machine.json --explain advice.html --sweep times.csv -- \\\n    \
    bowtie2 -p 64 -x ref -1 R_1.fq.gz -2 R_2.fq.gz\n  \
    genuma machine advise --machine server7/machine.json --nodes 4\n  \
    genuma machine advise --replay strategy/data/lenis2017.csv"
)]
pub(crate) struct Args {
    /// Measured profile of this machine: the machine.json that `genuma machine measure` wrote [default: the file that the
    /// environment variable GENUMA_MACHINE names, else an estimate from the node distances that the firmware reports]
    #[arg(long, value_name = "FILE", help_heading = "Method")]
    machine: Option<PathBuf>,
    /// Use the profile although it was measured while other programs used the machine
    #[arg(long, help_heading = "Method")]
    force: bool,
    /// Maximum time of the trials, including the loading of indexes, as a share of the predicted time of the whole run
    /// (0.05 is 5%); 0 runs no trials
    #[arg(long, alias = "pilot-budget", value_name = "SHARE", default_value = "0.05", value_parser = parse_share, help_heading = "Method")]
    trial_budget: f64,
    /// Strategies to choose from, in addition to the plain run, such as bind or 4xbind (see --strategy in `genuma run
    /// --help`) [default: all that differ on this machine, up to 8 instances]
    #[arg(long, value_name = "STRATEGY", num_args = 1.., help_heading = "Method")]
    strategies: Vec<Strategy>,

    /// Use only this many NUMA nodes: those with the fastest access to each other's memory, by latency and bandwidth
    /// [default: all]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..), help_heading = "Resources")]
    nodes: Option<u32>,
    /// Threads of all instances together [default: the number in the command, else all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    threads: Option<u16>,

    #[command(flatten)]
    read_args: ReadFileOptions,
    /// Do not advise, but test the advisor on this table of run times; docs/internals/advisor.md describes its columns
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "machine", "nodes", "strategies", "threads", "reads", "json", "explain", "sweep"], help_heading = "Input")]
    replay: Option<PathBuf>,

    /// Also write the advice as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Also write an HTML page that explains the advice
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    explain: Option<PathBuf>,
    /// Also write a table (CSV) of the predicted run time of each strategy with 1, 2, 4 ... threads, up to all hardware
    /// threads; --explain draws it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    sweep: Option<PathBuf>,

    /// Command line of the aligner
    #[arg(last = true, required_unless_present_any = ["replay", "nodes"], value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share.is_finite() && share >= 0.0 => Ok(share),
        _ => Err("give a share of the run's time of 0 or more, such as 0.05".to_owned()),
    }
}

/// Maximum number of aligner instances of the strategies that the advisor considers by default; `--strategies` is not
/// limited.
const MAX_INSTANCES: u32 = 8;
/// Number of reads at the start of the files from which the total number of reads is estimated.
const READS_TO_ESTIMATE_TOTAL: u64 = 32_000;
/// Number of reads that `genuma run --strategy auto` assumes if no reads can be sampled, for example from a pipe.
const ASSUMED_READS_OF_PIPE: f64 = 100e6;
/// Maximum share of the run's time that trials may take when `genuma run` chooses the strategy itself (0.02 is 2%).
/// Chosen: the trials then delay the run by at most 2%.
const AUTO_TRIAL_TIME_SHARE: f64 = 0.02;

/// Advises on an aligner command: runs trials, writes the requested files and prints the advice. With --replay, only
/// prints how good the advice is on a table of run times.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(table) = &args.replay {
        return print_replay_score(table);
    }
    if let (Some(count), []) = (args.nodes, &args.command[..]) {
        return placement::advise_nodes_without_command(args, count);
    }
    let invocation = args.read_args.parse_aligner_command(&args.command)?;
    invocation.check_program_and_index_exist()?;
    let topology = Sysfs::new().topology()?;
    let profile = match &args.machine {
        Some(path) => Some(machine_profile::require_matching_idle_profile(path, &topology, args.force)?),
        None => match machine_profile::profile_path_from_environment() {
            Some(path) => machine_profile::read_idle_profile_if_matching(&path, &topology, args.force)?,
            None => None,
        },
    };
    let nodes = args.nodes.map(|count| placement::choose_nodes(count, &topology, profile.as_ref())).transpose()?;
    let topology = match &nodes {
        Some(subset) => topology.restricted_to_nodes(&subset.nodes),
        None => topology,
    };
    let threads = args.threads.map(usize::from).or(invocation.threads).unwrap_or(topology.allowed.cpus.len().max(1));
    stop_instances_on_interruption();
    let sample =
        ReadSample::copy_first_reads_to_files(&invocation.reads, &invocation.aligned, READS_TO_ESTIMATE_TOTAL)?;
    let Some(case) =
        describe_advised_run(&invocation, &topology, threads, profile.as_ref(), sample.estimated_total_reads)?
    else {
        bail!("this process may use no NUMA node that has both CPUs and memory: there is no strategy to choose");
    };
    let candidates = cpu_layout::candidate_strategies(&topology, threads, MAX_INSTANCES);
    let strategies = if args.strategies.is_empty() { &candidates } else { &args.strategies };
    let budget = (args.trial_budget > 0.0).then_some(args.trial_budget);
    let advice = run_advisor(&case, &invocation, &topology, strategies, budget)?;
    let has_reads_option = args.read_args.is_reads_option_given();
    let placement = placement::describe_placement(
        &case,
        &advice,
        &invocation,
        &topology,
        nodes,
        profile.as_ref(),
        has_reads_option,
    )?;
    let mut set = AtomicFileSet::default();
    if let Some(path) = &args.json {
        write_json(path, &case, &advice, &placement, &mut set)?;
    }
    let points = || sweep::predict_times_over_thread_counts(&case, &advice);
    let mut add_text = |path: &Path, text: String| {
        let mut file = AtomicFile::create(path)?;
        file.write_all(text.as_bytes())?;
        set.add_file(file.flush_to_partial_file()?);
        anyhow::Ok(())
    };
    if let Some(path) = &args.explain {
        add_text(path, advice::render_page(&case, &advice, &placement, &points()))?;
    }
    if let Some(path) = &args.sweep {
        add_text(path, sweep::format_sweep_csv(&points(), &case, &advice))?;
    }
    set.publish_all()?;
    for path in [&args.explain, &args.sweep].into_iter().flatten() {
        info!("wrote {}", path.display());
    }
    let placement = placement_text::format_placement(&placement);
    logging::print_result(format!("{}\n{placement}", text::format_advice(&case, &advice)))
}

/// Chooses a strategy for `genuma run --strategy auto` on `machine`, for the nodes that `topology` allows. Returns the
/// strategy, and the reason for the choice as text.
/// Trials take at most [`AUTO_TRIAL_TIME_SHARE`] of the run's time. If no reads can be sampled, only the performance
/// model decides. The choice is the plain run on a machine with one NUMA node, and, with a warning, after a failed
/// trial.
pub(crate) fn choose_auto_strategy(
    invocation: &Invocation,
    machine: &Topology,
    topology: &Topology,
    threads: usize,
) -> anyhow::Result<(Strategy, String)> {
    let plain_run = |why: &str| Ok((Strategy::PLAIN_RUN, why.to_owned()));
    if topology.allowed_memory_nodes().len() < 2 {
        return plain_run("the machine has one NUMA node");
    }
    let profile = machine_profile::read_given_or_environment_profile(None, machine)?;
    stop_instances_on_interruption();
    // Errors in the reads are reported when the run reads them.
    let sample =
        ReadSample::copy_first_reads_to_files(&invocation.reads, &invocation.aligned, READS_TO_ESTIMATE_TOTAL).ok();
    let total = sample.as_ref().map_or(ASSUMED_READS_OF_PIPE, |sample| sample.estimated_total_reads);
    let Some(case) = describe_advised_run(invocation, topology, threads, profile.as_ref(), total)? else {
        return plain_run("no node has both CPUs and memory");
    };
    let budget = sample.map(|_| AUTO_TRIAL_TIME_SHARE);
    let strategies = cpu_layout::candidate_strategies(topology, threads, MAX_INSTANCES);
    match run_advisor(&case, invocation, topology, &strategies, budget) {
        Ok(advice) => Ok((advice.strategy, text::explain_choice_for_log(&case, &advice))),
        Err(error) => {
            warn!(
                "a trial of the aligner failed ({error:#}), so its command runs unchanged: the records are the same, but another \
                 memory strategy may be faster; --strategy chooses one without trials"
            );
            plain_run("a trial failed")
        }
    }
}

/// Installs a handler that stops the aligner instances and removes index copies if the program is interrupted, so that
/// a trial leaves no processes or files behind.
fn stop_instances_on_interruption() {
    signals::set_termination_handler(Some(Box::new(|| {
        kill_all_instances();
        index_replicas::remove_all_replicas();
        None
    })));
}

/// Builds the models of the machine and of the aligner run that the advisor needs. Returns `None` if there is no
/// profile and no node has both CPUs and memory.
fn describe_advised_run(
    invocation: &Invocation,
    topology: &Topology,
    threads: usize,
    profile: Option<&MachineProfile>,
    reads: f64,
) -> anyhow::Result<Option<AdvisedRun>> {
    let Some(machine) = placement::machine_model(topology, profile)? else { return Ok(None) };
    let source = match profile {
        Some(_) => "measured by `genuma machine measure`",
        None => "estimated from the node distances that the firmware reports; `genuma machine measure` measures it",
    };
    let index_bytes = invocation.index.as_ref().map_or(Ok(0), AlignerIndex::total_index_bytes)?;
    Ok(Some(AdvisedRun {
        aligner: invocation.aligner.clone(),
        command: external_aligner::plain_run_command(invocation, threads).join(" "),
        threads,
        source: source.to_owned(),
        machine,
        application: find_aligner_model_params(&invocation.aligner).to_application_model(index_bytes, reads),
    }))
}

/// Runs the advisor: predicts the run time of each strategy, tries the best strategies on the aligner within the
/// time `budget` (share of the run's time; `None` for no trials), and returns the advice.
fn run_advisor(
    run: &AdvisedRun,
    invocation: &Invocation,
    topology: &Topology,
    strategies: &[Strategy],
    budget: Option<f64>,
) -> anyhow::Result<Advice> {
    let threads = run.threads;
    let reason_to_refuse = |strategy: Strategy| {
        let cpu_slots = || {
            RunPlan::check_aligner_allows_several_instances(invocation, strategy)?;
            let cpu_slots = cpu_layout::assign_cpu_slots(&strategy, topology, threads)?;
            index_replicas::check_instances_fit_in_memory(
                invocation,
                &cpu_slots,
                invocation.depends.min_block_bases(threads).unwrap_or(0),
            )?;
            anyhow::Ok(())
        };
        cpu_slots().err().map(|error| error.to_string())
    };
    let max_instances = strategies.iter().map(|strategy| strategy.instances).max().unwrap_or(1);
    let sample_reads = Cell::new(0);
    let trials: RefCell<Option<TrialRunner<'_>>> = RefCell::new(None);
    let question = AdviceRequest {
        machine: &run.machine,
        app: run.application,
        threads: u32::try_from(threads).unwrap_or(u32::MAX),
        strategies,
        budget,
    };
    let expected = |app: &ApplicationModel, plain_prediction: genuma_strategy::model::RunPrediction| {
        let (reads, seconds) =
            trials::estimate_trial_reads_and_time(app, plain_prediction, max_instances, &run.machine);
        sample_reads.set(reads);
        seconds
    };
    let run = |strategy: Strategy| {
        let mut trials = trials.borrow_mut();
        let trials = match &mut *trials {
            Some(trials) => trials,
            none => {
                let reads = run.application.reads;
                let budget = budget.unwrap_or(0.0);
                let wish = TrialSettings {
                    run_reads: reads,
                    max_instances,
                    time_share: budget,
                    sample_reads: sample_reads.get(),
                };
                none.insert(TrialRunner::copy_first_reads_for_trials(invocation, topology, threads, &wish)?)
            }
        };
        trials.run_trial(strategy)
    };
    advisor::advise_strategy(&question, reason_to_refuse, expected, run)
}

fn write_json(
    path: &Path,
    case: &AdvisedRun,
    advice: &Advice,
    placement: &PlacementAdvice,
    set: &mut AtomicFileSet,
) -> anyhow::Result<()> {
    let json = serde_json::json!({
        "genuma": env!("CARGO_PKG_VERSION"),
        "case": case,
        "advice": advice,
        "in_words": text::describe_decision(advice),
        "nodes": placement.nodes,
        "launch": placement.launch,
        "known_cases": placement.known_cases,
    });
    json_file::add_json_file_with_schema_number(path, json_file::schema_numbers::ADVICE_SCHEMA_NUMBER, &json, set)
}

/// Tests the advisor on published run times (`--replay`) and prints the result: the time lost by its choices.
fn print_replay_score(table: &Path) -> anyhow::Result<()> {
    let name = table.display().to_string();
    let text = fs::read_to_string(table).with_context(|| format!("{name}: cannot read"))?;
    logging::print_result(evaluate_advisor_on_table(&name, &text)?.to_string())
}
