//! `make fuzz-faults`: a fault injection campaign against a build of genuma, with a time limit.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;
use genuma_faults::campaign_plan::{
    FaultTrial, TrialLimitsPerTestCase, plan_trials_of_test_case, run_trial_with_errors_as_violations, shuffle_trials,
};
use genuma_faults::fault_test_runner::{FaultTestRunner, remove_folder_if_exists};
use genuma_faults::tally::CampaignTally;
use genuma_faults::test_cases::{TestCase, all_test_cases};

/// Makes the system calls of a build of genuma fail, one by one, and checks the results.
#[derive(Debug, Parser)]
struct Args {
    /// Executable of genuma to test.
    #[arg(long)]
    program: PathBuf,
    /// Time limit of the campaign in minutes.
    #[arg(long, default_value = "60")]
    minutes: f64,
    /// Number of trials that run in parallel.
    #[arg(long, default_value = "2")]
    jobs: usize,
    /// Folder for temporary files, best in memory (tmpfs). It is created, and removed after a campaign; a run of one
    /// complete trial leaves it.
    #[arg(long, default_value = "/dev/shm/genuma-faults")]
    scratch: PathBuf,
    /// Run only the case of this name, or the cases whose names begin with it.
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
    /// Run only trials that begin with this text, such as `write:`. A complete trial, such as `write:ENOSPC:17:0`, is
    /// run once with each selected case, and its standard error and verdict are shown.
    #[arg(long, value_name = "TRIAL")]
    trial: Option<String>,
    /// For each kind of fault: maximum number of trials of a case, which differ in the number of the first failing
    /// call. An eighth of it for faults that also fail later calls.
    #[arg(long, default_value = "500")]
    numbers: u64,
    /// Number of evenly spaced positions at which input files are damaged, besides their first and last bytes.
    #[arg(long, default_value = "200")]
    regions: usize,
    /// Random seed that determines the order of the trials.
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Also write the counts and violations to this file, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let program = fs::canonicalize(&args.program).with_context(|| args.program.display().to_string())?;
    let all = all_test_cases();
    let cases: Vec<&TestCase> = all.iter().filter(|case| is_selected_case(case, &all, &args)).collect();
    if cases.is_empty() {
        bail!("no such case; there are {}", all.iter().map(|c| c.name).collect::<Vec<_>>().join(", "));
    }
    let begun = Instant::now();
    let folder = |i: usize| args.scratch.join(i.to_string());
    let benches = (0..args.jobs.max(1)).map(|i| FaultTestRunner::create(&program, folder(i), &cases));
    let mut benches = benches.collect::<anyhow::Result<Vec<FaultTestRunner>>>()?;

    // Run a complete trial and show its output.
    if let Some(trial) = args.trial.as_deref().and_then(|text| text.parse::<FaultTrial>().ok()) {
        return show_trial(&trial, &cases, &mut benches[0]);
    }

    let mut plan = plan_trials(&args, &cases, &mut benches[0])?;
    shuffle_trials(&mut plan, args.seed);

    let (next, tally) = (AtomicUsize::new(0), Mutex::new((CampaignTally::default(), HashMap::new())));
    let end = begun + Duration::from_secs_f64(args.minutes * 60.0);
    std::thread::scope(|scope| {
        for bench in &mut benches {
            let (next, tally, plan) = (&next, &tally, &plan);
            scope.spawn(move || {
                while Instant::now() < end {
                    let Some((case, trial)) = plan.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    let Some(judged) = run_trial_with_errors_as_violations(trial, bench, case) else { continue };
                    let mut tally = tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    tally.0.count_trial(case, trial, &judged);
                    if judged.verdict.outcome.is_violation() {
                        // Report the first violation of a kind at once.
                        let alike = tally
                            .1
                            .entry((case.name, trial.tally_category_names(), judged.verdict.outcome))
                            .or_insert(0);
                        *alike += 1;
                        if *alike == 1 {
                            eprintln!("{} {trial}: {}", case.name, judged.verdict);
                        }
                    }
                }
            });
        }
    });

    let (tally, _) = tally.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let done = next.into_inner().min(plan.len());
    println!("{}", tally.format_fault_and_outcome_tables());
    print!("{}", tally.format_violations());
    println!(
        "{} faults in {} runs, {done} of {} trials in {:.1} minutes: {} violations",
        tally.total_injected_faults(),
        tally.total_trials(),
        plan.len(),
        begun.elapsed().as_secs_f64() / 60.0,
        tally.violations.len()
    );
    if let Some(path) = &args.json {
        fs::write(path, tally.to_json().to_string()).with_context(|| path.display().to_string())?;
    }
    remove_folder_if_exists(&args.scratch)?;
    Ok(ExitCode::from(u8::from(!tally.violations.is_empty())))
}

/// Lists the trials of the selected cases that begin with the text of the option `--trial`, case by case.
fn plan_trials<'a>(
    args: &Args,
    cases: &[&'a TestCase],
    bench: &mut FaultTestRunner,
) -> anyhow::Result<Vec<(&'a TestCase, FaultTrial)>> {
    let extent = TrialLimitsPerTestCase { max_trials_per_fault: args.numbers, regions: args.regions, pairs: 20 };
    let mut plan = Vec::new();
    for case in cases {
        let of = plan_trials_of_test_case(bench, case, extent)?;
        eprintln!("{}: {} trials", case.name, of.len());
        let meant = |trial: &FaultTrial| args.trial.as_ref().is_none_or(|word| trial.to_string().starts_with(word));
        plan.extend(of.into_iter().filter(meant).map(|trial| (*case, trial)));
    }
    Ok(plan)
}

/// Runs the same trial with each case and prints its standard error and the verdict. The exit code is 1 if a verdict is
/// a violation.
fn show_trial(trial: &FaultTrial, cases: &[&TestCase], bench: &mut FaultTestRunner) -> anyhow::Result<ExitCode> {
    let mut right = true;
    for case in cases {
        let Some(judged) = trial.run_trial(bench, case)? else {
            println!("{} {trial}: never came", case.name);
            continue;
        };
        print!("{}", judged.stderr);
        println!("{} {trial}: {}", case.name, judged.verdict);
        right &= !judged.verdict.outcome.is_violation();
    }
    Ok(ExitCode::from(u8::from(!right)))
}

/// Returns whether the option `--case` selects a case; without the option, all cases are selected. A name that is a
/// complete case name selects this case only.
fn is_selected_case(case: &TestCase, all: &[TestCase], args: &Args) -> bool {
    let named = |name: &String| {
        let whole = all.iter().any(|case| case.name == name);
        if whole { case.name == name } else { case.name.starts_with(name.as_str()) }
    };
    args.case.is_empty() || args.case.iter().any(named)
}
