//! `make fuzz-faults`: a campaign against a build of genuma, bounded by time.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Parser;
use genuma_faults::bench::{Bench, clear};
use genuma_faults::case::{Case, cases};
use genuma_faults::plan::{Extent, Trial, attempt, shuffle, trials};
use genuma_faults::tally::Tally;

/// Makes the system calls of a build of genuma fail, one by one, and judges what becomes of its results.
#[derive(Debug, Parser)]
struct Args {
    /// The build of genuma.
    #[arg(long)]
    program: PathBuf,
    /// How long to go on.
    #[arg(long, default_value = "60")]
    minutes: f64,
    /// Runs at once.
    #[arg(long, default_value = "2")]
    jobs: usize,
    /// Folder for what is run, best in memory; it is made, and removed in the end.
    #[arg(long, default_value = "/dev/shm/genuma-faults")]
    scratch: PathBuf,
    /// Only the case of this name, or those whose names begin so.
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
    /// Only trials that begin so, such as `write:`; a whole one, such as `write:ENOSPC:17:0`, is run and shown.
    #[arg(long, value_name = "TRIAL")]
    trial: Option<String>,
    /// Numbers of calls at which a series of faults begins, at most.
    #[arg(long, default_value = "500")]
    numbers: u64,
    /// Regions of a file to damage.
    #[arg(long, default_value = "200")]
    regions: usize,
    /// Order of the trials.
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Where to write the counts, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let program = fs::canonicalize(&args.program).with_context(|| args.program.display().to_string())?;
    let all = cases();
    let cases: Vec<&Case> = all.iter().filter(|case| wanted(case, &all, &args)).collect();
    if cases.is_empty() {
        bail!("no such case; there are {}", all.iter().map(|c| c.name).collect::<Vec<_>>().join(", "));
    }
    let begun = Instant::now();
    let folder = |i: usize| args.scratch.join(i.to_string());
    let benches = (0..args.jobs.max(1)).map(|i| Bench::new(&program, folder(i), &cases));
    let mut benches = benches.collect::<anyhow::Result<Vec<Bench>>>()?;

    // A whole trial is shown with all that is said.
    if let Some(trial) = args.trial.as_deref().and_then(|text| text.parse::<Trial>().ok()) {
        let mut right = true;
        for case in cases {
            let Some(judged) = trial.run(&mut benches[0], case)? else {
                println!("{} {trial}: never came", case.name);
                continue;
            };
            print!("{}", judged.stderr);
            println!("{} {trial}: {}", case.name, judged.verdict);
            right &= !judged.verdict.outcome.is_violation();
        }
        return Ok(ExitCode::from(u8::from(!right)));
    }

    let extent = Extent { numbers: args.numbers, regions: args.regions, pairs: 20 };
    let mut plan: Vec<(&Case, Trial)> = Vec::new();
    for case in &cases {
        let of = trials(&mut benches[0], case, extent)?;
        eprintln!("{}: {} trials", case.name, of.len());
        let meant =
            |trial: &Trial| args.trial.as_ref().is_none_or(|word| trial.to_string().starts_with(word));
        plan.extend(of.into_iter().filter(meant).map(|trial| (*case, trial)));
    }
    shuffle(&mut plan, args.seed);

    let (next, tally) = (AtomicUsize::new(0), Mutex::new((Tally::default(), HashMap::new())));
    let end = begun + Duration::from_secs_f64(args.minutes * 60.0);
    std::thread::scope(|scope| {
        for bench in &mut benches {
            let (next, tally, plan) = (&next, &tally, &plan);
            scope.spawn(move || {
                while Instant::now() < end {
                    let Some((case, trial)) = plan.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    let Some(judged) = attempt(trial, bench, case) else { continue };
                    let mut tally = tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    tally.0.add(case, trial, &judged);
                    if judged.verdict.outcome.is_violation() {
                        // The first of a kind is told at once.
                        let alike =
                            tally.1.entry((case.name, trial.series(), judged.verdict.outcome)).or_insert(0);
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
    println!("{}", tally.tables());
    print!("{}", tally.findings());
    println!(
        "{} faults in {} runs, {done} of {} trials in {:.1} minutes: {} violations",
        tally.faults(),
        tally.runs(),
        plan.len(),
        begun.elapsed().as_secs_f64() / 60.0,
        tally.violations.len()
    );
    if let Some(path) = &args.json {
        fs::write(path, tally.json().to_string()).with_context(|| path.display().to_string())?;
    }
    clear(&args.scratch)?;
    Ok(ExitCode::from(u8::from(!tally.violations.is_empty())))
}

/// A name that is a case's own means that case alone.
fn wanted(case: &Case, all: &[Case], args: &Args) -> bool {
    let named = |name: &String| {
        let whole = all.iter().any(|case| case.name == name);
        if whole { case.name == name } else { case.name.starts_with(name.as_str()) }
    };
    args.case.is_empty() || args.case.iter().any(named)
}
