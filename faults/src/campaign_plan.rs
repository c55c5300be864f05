//! Lists the trials of a fault-injection campaign. A campaign may stop after any number of them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use fastrand::Rng;

use crate::fault::{FaultRepetition, InjectedFault, SystemCallKind};
use crate::fault_test_runner::{FaultTestRunner, JudgedRun};
use crate::file_damage::{DamageKind, choose_damage_positions};
use crate::oracle::{RunOutcome, new_verdict};
use crate::test_cases::TestCase;

/// One trial of a test case: a run with an injected fault, with a damaged or replaced input file, or two runs at the
/// same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultTrial {
    /// Run the command and inject this fault into its system calls.
    Fault(InjectedFault),
    /// Run the command twice at the same time. The second run starts after this delay.
    Twice(Duration),
    /// Run the command with a damaged input file.
    Damage {
        /// Path of the input file, relative to the input folder `{given}`.
        file: String,
        /// Kind of the damage.
        damage_kind: DamageKind,
        /// Offset in the file of the first damaged byte.
        at: usize,
    },
    /// Run the command, and replace an input file while it runs.
    Replace {
        /// Path of the input file, relative to the input folder `{given}`; one of [`TestCase::replaced_files`].
        file: String,
        /// Number of the call, among those that open a file, before which the file is replaced.
        at: u64,
    },
}

impl FaultTrial {
    /// Returns the two names by which result tables group the trial: kind of system call and effect of its fault;
    /// `damage` and the kind of damage; or `twice` or `replace` as both names.
    pub fn tally_category_names(&self) -> (&'static str, &'static str) {
        match self {
            FaultTrial::Fault(fault) => (fault.kind.call_kind_name(), fault.what.effect_name()),
            FaultTrial::Twice(_) => ("twice", "twice"),
            FaultTrial::Damage { damage_kind, .. } => ("damage", damage_kind.damage_name()),
            FaultTrial::Replace { .. } => ("replace", "replace"),
        }
    }

    /// Runs the trial. Returns `None` if the run never made the system call that should fail and is no violation, or if
    /// the damage would not change the file.
    ///
    /// # Errors
    /// The case fails without a fault, a process cannot be started, or a file of the trial cannot be read or written.
    pub fn run_trial(&self, bench: &mut FaultTestRunner, case: &TestCase) -> anyhow::Result<Option<JudgedRun>> {
        match self {
            FaultTrial::Fault(fault) => {
                let judged = bench.run_with_fault(case, *fault)?;
                Ok((judged.num_faults > 0 || judged.verdict.outcome.is_violation()).then_some(judged))
            }
            FaultTrial::Twice(apart) => Ok(Some(bench.run_twice_in_parallel(case, *apart)?)),
            FaultTrial::Damage { file, damage_kind, at } => {
                let whole = bench.read_input_file(file)?;
                let sealed = case.checksummed_files.contains(&file.as_str());
                match damage_kind.apply_damage_to_content(&whole, *at) {
                    Some(bytes) => Ok(Some(bench.run_with_damaged_input(case, file, &bytes, sealed)?)),
                    None => Ok(None),
                }
            }
            FaultTrial::Replace { file, at } => {
                let files = case.replaced_files.iter().find(|files| files[0] == file);
                let files = files.with_context(|| format!("{} does not replace {file}", case.name))?;
                let judged = bench.run_with_replaced_input(case, *files, *at)?;
                Ok((judged.num_faults > 0 || judged.verdict.outcome.is_violation()).then_some(judged))
            }
        }
    }
}

impl fmt::Display for FaultTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultTrial::Fault(fault) => fault.fmt(f),
            FaultTrial::Twice(apart) => write!(f, "twice:{}", apart.as_micros()),
            FaultTrial::Damage { file, damage_kind, at } => {
                write!(f, "damage:{}:{at}:{file}", damage_kind.damage_name())
            }
            FaultTrial::Replace { file, at } => write!(f, "replace:{at}:{file}"),
        }
    }
}

impl FromStr for FaultTrial {
    type Err = String;

    fn from_str(text: &str) -> Result<FaultTrial, String> {
        let wrong = || {
            format!(
                "'{text}' is not a trial: write KIND:WHAT:AT:EVERY, twice:MICROSECONDS, damage:HARM:AT:FILE or \
                 replace:AT:FILE"
            )
        };
        if let Some((at, file)) = text.strip_prefix("replace:").and_then(|rest| rest.split_once(':')) {
            return Ok(FaultTrial::Replace { file: file.to_owned(), at: at.parse().map_err(|_| wrong())? });
        }
        if let Some(apart) = text.strip_prefix("twice:") {
            return Ok(FaultTrial::Twice(Duration::from_micros(apart.parse().map_err(|_| wrong())?)));
        }
        let Some(damage) = text.strip_prefix("damage:") else { return text.parse().map(FaultTrial::Fault) };
        let [word, at, file] = damage.splitn(3, ':').collect::<Vec<_>>()[..] else { return Err(wrong()) };
        let damage_kind = DamageKind::ALL_DAMAGE_KINDS
            .into_iter()
            .find(|damage_kind| damage_kind.damage_name() == word)
            .ok_or_else(wrong)?;
        Ok(FaultTrial::Damage { file: file.to_owned(), damage_kind, at: at.parse().map_err(|_| wrong())? })
    }
}

/// How many trials of each sort a campaign makes with each test case.
#[derive(Debug, Clone, Copy)]
pub struct TrialLimitsPerTestCase {
    /// For each kind of fault: maximum number of trials, which differ in the number of the first failing call. An
    /// eighth of it for faults that also fail later calls.
    pub max_trials_per_fault: u64,
    /// Number of evenly spaced positions at which input files are damaged, besides their first and last bytes.
    pub regions: usize,
    /// Number of trials in which the command runs twice at the same time.
    pub pairs: u64,
}

/// Runs a test case without faults to count its system calls, and lists its trials: faults by kind of call, then
/// replacements of input files, then two runs at the same time, then damage of input files. `extent` limits their
/// number.
///
/// # Errors
/// The test case fails without faults, its output with the shim differs, a result is published before it is synced, or
/// an input cannot be read.
pub fn plan_trials_of_test_case(
    bench: &mut FaultTestRunner,
    case: &TestCase,
    extent: TrialLimitsPerTestCase,
) -> anyhow::Result<Vec<FaultTrial>> {
    let seen = bench.run_and_count_system_calls(case)?;
    let mut trials = Vec::new();
    for kind in SystemCallKind::ALL_CALL_KINDS {
        let calls = seen.num_calls_of_kind(kind);
        for &(what, every) in kind.faults_to_inject() {
            // If each following call fails too, the position of the first matters little.
            let most = if every == FaultRepetition::Once {
                extent.max_trials_per_fault
            } else {
                extent.max_trials_per_fault.div_ceil(8)
            };
            let of = |at| FaultTrial::Fault(InjectedFault { kind, what, at, every });
            trials.extend(evenly_spaced_numbers(calls, most).map(of));
        }
    }
    let num_opens = seen.num_calls_of_kind(SystemCallKind::Open);
    for [file, _] in case.replaced_files {
        let numbers = evenly_spaced_numbers(num_opens, extent.max_trials_per_fault.div_ceil(8));
        trials.extend(numbers.map(|at| FaultTrial::Replace { file: (*file).to_owned(), at }));
    }
    trials.extend((0..extent.pairs).map(|i| FaultTrial::Twice(Duration::from_micros(i * i * 500))));
    for file in case.checksummed_files.iter().chain(case.unchecked_files) {
        let length = bench.read_input_file(file)?.len();
        for at in choose_damage_positions(length, extent.regions) {
            trials.extend(DamageKind::ALL_DAMAGE_KINDS.map(|damage_kind| FaultTrial::Damage {
                file: (*file).to_owned(),
                damage_kind,
                at,
            }));
        }
    }
    Ok(trials)
}

/// Returns the numbers 1 to `calls` or, if these are more than `most`, `most` evenly spaced ones of them.
fn evenly_spaced_numbers(calls: u64, most: u64) -> impl Iterator<Item = u64> {
    let picked = calls.min(most);
    (0..picked).map(move |i| 1 + i * calls / picked)
}

/// Shuffles trials, so that an interrupted campaign has run some trials of each sort.
pub fn shuffle_trials<T>(trials: &mut [T], seed: u64) {
    Rng::with_seed(seed).shuffle(trials);
}

/// Runs a trial as [`FaultTrial::run_trial`] does, but never fails: if the trial cannot be run, the returned verdict is
/// a violation with the error.
pub fn run_trial_with_errors_as_violations(
    trial: &FaultTrial,
    bench: &mut FaultTestRunner,
    case: &TestCase,
) -> Option<JudgedRun> {
    trial.run_trial(bench, case).unwrap_or_else(|error| {
        let verdict = new_verdict(RunOutcome::WrongExitCode, format!("the campaign failed: {error:#}"));
        Some(JudgedRun { verdict, num_faults: 0, stderr: String::new() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in
            ["write:ENOSPC:17:0", "twice:2500", "damage:zero:512:pair/genome.fa.gnm", "replace:3:pair/genome.fa"]
        {
            assert_eq!(text.parse::<FaultTrial>().expect("a trial").to_string(), text);
        }
        assert!("damage:zero".parse::<FaultTrial>().is_err());
    }

    #[test]
    fn all_numbers_or_some_evenly() {
        assert_eq!(evenly_spaced_numbers(3, 9).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(evenly_spaced_numbers(100, 4).collect::<Vec<_>>(), [1, 26, 51, 76]);
        assert_eq!(evenly_spaced_numbers(0, 4).count(), 0);
    }
}
