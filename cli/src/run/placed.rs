//! `genuma run` with a program that is not a known aligner: places its threads and memory on NUMA nodes, and passes on
//! its input, output and exit code.

use genuma_strategy::placed_command::PlacedCommand;
use genuma_strategy::{Strategy, cpu_layout};
use genuma_work::publish::AtomicFileSet;
use tracing::info;

use super::outcome::RunOutcome;
use super::{Args, parse_strategy};
use crate::errors::{ChildProgramFailed, UsageError};

/// Runs the command as one process. If the program fails, genuma ends with the same exit code; if signal N ended the
/// program, with 128 + N.
pub(super) fn run_placed_command(args: &Args) -> anyhow::Result<()> {
    let command = PlacedCommand::from_words(&args.command, args.counters);
    let program = command.program_name();
    command.check_installed()?;
    if let Some(out) = &args.out {
        return Err(UsageError(format!(
            "-o {}: genuma does not know {program} and passes its output on: leave out -o and redirect the output, or name the \
             file in the command; if {program} aligns reads, name them with --reads",
            out.display()
        ))
        .into());
    }
    args.read_args.check_no_reference_for_unknown_program(&program)?;
    let (strategy, why) = match args.strategy.as_str() {
        "auto" => {
            (Strategy::PLAIN_RUN, format!("genuma has no model of {program}, so choose another one with --strategy"))
        }
        word => parse_strategy(word)?,
    };
    command.check_strategy_has_one_instance(strategy).map_err(|e| UsageError(e.to_string()))?;
    let (topology, threads) = args.allowed_topology_and_threads()?;
    let mut cpu_slots = cpu_layout::assign_cpu_slots(&strategy, &topology, threads)?;
    args.request_pages(&mut cpu_slots, &topology);
    info!("strategy {strategy}: {why}");
    let summary = command.run(&cpu_slots[0])?;
    let exit_code = summary.exit_code;
    let outcome = RunOutcome { program, strategy, why, threads, cpu_slots: &cpu_slots, summary };
    outcome.warn_of_missing_huge_pages();
    outcome.publish_and_log_results(args.json.as_deref(), None, AtomicFileSet::default())?;
    match exit_code {
        Some(0) => Ok(()),
        code => Err(ChildProgramFailed(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)).into()),
    }
}
