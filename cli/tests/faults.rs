//! A short fault campaign: some system calls of each kind fail, some files are damaged, and all promises of
//! docs/internals/reliability.md hold.
//!
//! `make fuzz-faults` runs the long campaign. This build only intercepts calls that go through the C library; calls
//! of rustix do not (docs/internals/reliability.md).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use crate::common::{data, genuma, installed, names, scratch, text};
use genuma_faults::campaign_plan::{
    FaultTrial, TrialLimitsPerTestCase, plan_trials_of_test_case, run_trial_with_errors_as_violations, shuffle_trials,
};
use genuma_faults::fault::{FaultEffect, FaultRepetition, InjectedFault, SystemCallKind};
use genuma_faults::fault_test_runner::FaultTestRunner;
use genuma_faults::shim::{FaultShim, ShimActions};
use genuma_faults::tally::CampaignTally;
use genuma_faults::test_cases::{TestCase, all_test_cases};
use genuma_faults::test_inputs::TestInput;

/// Number of trials of a case; each is a run of about 100 ms.
const EACH: usize = 8;

/// The file that is the sign of a complete set of results.
const SUMMARY: &str = "summary.json";

/// Runs some trials of every case of these commands, the same each time.
fn run_fixed_trials(verbs: &[&str]) {
    run_trials(verbs[0], verbs, |mut plan| {
        shuffle_trials(&mut plan, 14);
        plan.truncate(EACH);
        plan
    });
}

/// Runs the trials that `choose` selects of every case of these commands.
fn run_trials(folder: &str, verbs: &[&str], choose: impl Fn(Vec<FaultTrial>) -> Vec<FaultTrial>) {
    let all = all_test_cases();
    // Measuring the machine's memory takes many seconds: cases that need it are left to the long campaign.
    let cheap = |case: &&TestCase| !case.inputs.contains(&TestInput::MachineProfile);
    let bwa = installed("bwa").is_some();
    let possible = |case: &&TestCase| bwa || !case.inputs.contains(&TestInput::BwaIndex);
    let cases: Vec<&TestCase> =
        all.iter().filter(|case| verbs.contains(&case.subcommand())).filter(cheap).filter(possible).collect();
    let folder = scratch(folder);
    let program = Path::new(env!("CARGO_BIN_EXE_genuma"));
    let mut bench = FaultTestRunner::create(program, folder, &cases).expect("a bench");
    let mut tally = CampaignTally::default();
    for case in cases {
        let extent = TrialLimitsPerTestCase { max_trials_per_fault: 100, regions: 20, pairs: 4 };
        let plan = plan_trials_of_test_case(&mut bench, case, extent).expect("a case runs without faults");
        for trial in choose(plan) {
            if let Some(judged) = run_trial_with_errors_as_violations(&trial, &mut bench, case) {
                tally.count_trial(case, &trial, &judged);
            }
        }
    }
    assert!(tally.violations.is_empty(), "{}", tally.format_violations());
    assert!(tally.total_injected_faults() > 0, "no fault happened");
}

const ALIGN: &[&str] = &["align", "index"];
const CALL: &[&str] = &["call"];
const STEP: &[&str] = &["step"];
const COUNT: &[&str] = &["count", "query"];
const TABLES_AND_SAMPLES: &[&str] = &["table", "compact", "check", "track"];
const RUN: &[&str] = &["run"];
const SMALL: &[&str] = &["plan", "simulate", "evaluate", "topology", "man", "completions"];
/// Subcommands of which every case measures the machine, which takes many seconds: only the long campaign has them.
const LONG_CAMPAIGN_ONLY: &[&str] = &["advise", "probe"];

#[test]
fn align_and_index() {
    run_fixed_trials(ALIGN);
}

#[test]
fn call() {
    run_fixed_trials(CALL);
}

#[test]
fn steps() {
    run_fixed_trials(STEP);
}

#[test]
fn count_and_query() {
    run_fixed_trials(COUNT);
}

#[test]
fn tables_checking_and_tracking() {
    run_fixed_trials(TABLES_AND_SAMPLES);
}

#[test]
fn run() {
    run_fixed_trials(RUN);
}

#[test]
fn small_verbs() {
    run_fixed_trials(SMALL);
}

/// Each case runs here or only in the long campaign, and each command and each step of the command line has a case.
#[test]
fn all_commands_and_steps_have_a_case() {
    let cases = all_test_cases();
    let groups = [ALIGN, CALL, STEP, COUNT, TABLES_AND_SAMPLES, RUN, SMALL, LONG_CAMPAIGN_ONLY].concat();
    let subcommands: BTreeSet<&str> = cases.iter().map(TestCase::subcommand).collect();
    assert_eq!(subcommands, groups.iter().copied().collect());
    // The help texts are those of all commands; the program and its groups of commands are none themselves.
    let help = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    for file in fs::read_dir(help).expect("the help texts") {
        let name = file.expect("a file").file_name().into_string().expect("a name");
        let command = name.trim_end_matches(".txt").replacen('-', " ", 1);
        let is_group = ["genuma", "kmers", "machine", "bench"].contains(&command.as_str());
        let start = format!("{command} ");
        assert!(is_group || cases.iter().any(|case| case.line.starts_with(&start)), "{command} has no case");
    }
    for step in ["scatter", "count", "pick", "label", "assemble", "place", "recruit", "finish"] {
        let words = format!(" {step} ");
        let has_step = |case: &TestCase| case.line.starts_with("step ") && case.line.contains(&words);
        assert!(cases.iter().any(has_step), "the step {step} has no case");
    }
    let aligned = ["bam", "cram", "cbq"].map(|format| format!("normal.{format}"));
    assert!(aligned.iter().all(|file| cases.iter().any(|case| case.line.contains(file))));
}

/// All cases of these commands with an input that is replaced at some of the calls that open a file.
#[test]
fn inputs_that_are_replaced_meanwhile() {
    let replaced = |trial: &FaultTrial| matches!(trial, FaultTrial::Replace { .. });
    run_trials("replaced", &["count", "track", "step"], |plan| plan.into_iter().filter(replaced).step_by(3).collect());
}

/// A kill between two renames leaves new and old files, but a new summary only if all are new.
#[test]
fn the_summary_of_a_call_is_renamed_last() {
    let folder = scratch("renames");
    let [out, work] = ["out", "work"].map(|name| folder.join(name));
    let program = Path::new(env!("CARGO_BIN_EXE_genuma"));
    let shim = FaultShim::write_shim_into_folder(&folder).expect("a library");
    let call = |at: Option<u64>| {
        let mut command = genuma();
        command.args(data().call_with(&out, &["--resume", "--threads", "2", "--work", text(&work)]));
        let kind = SystemCallKind::Rename;
        let fault = at.map(|at| InjectedFault { kind, what: FaultEffect::Kill, at, every: FaultRepetition::Once });
        let under = format!("{}/", out.display());
        let actions = ShimActions { fault, ..ShimActions::default() };
        shim.preload_into_command(&mut command, program, &under, &folder.join("page"), actions).expect("a page");
        command.output().expect("genuma starts").status
    };
    // A new file has another inode, because the old one is there until all are renamed.
    let inodes = || -> BTreeMap<String, u64> {
        let visible = names(&out).into_iter().filter(|name| !name.starts_with('.'));
        visible.map(|name| (name.clone(), fs::metadata(out.join(&name)).expect("a file").ino())).collect()
    };
    assert!(call(None).success());
    let mut num_killed = 0;
    loop {
        let before = inodes();
        let status = call(Some(num_killed + 1));
        if status.success() {
            break;
        }
        assert_eq!(status.signal(), Some(9), "{status}");
        num_killed += 1;
        let after = inodes();
        assert!(after.keys().eq(before.keys()), "{after:?}");
        let is_new = |name: &String| after[name] != before[name];
        assert!(!is_new(&SUMMARY.to_owned()) || after.keys().all(is_new), "killed at rename {num_killed}: {after:?}");
    }
    assert!(num_killed as usize >= inodes().len(), "{num_killed} renames");
}

#[test]
fn memory_that_is_refused_from_the_first_on() {
    let early = |trial: &FaultTrial| {
        let text = trial.to_string();
        let number = text.strip_prefix("map:ENOMEM:").and_then(|rest| rest.strip_suffix(":1"));
        number.is_some_and(|number| number.parse::<u32>().is_ok_and(|number| number <= 12))
    };
    run_trials("no-memory", &["run", "simulate", "query"], |plan| plan.into_iter().filter(early).collect());
}
