//! Counts the trials of a campaign by subcommand (as test cases name it), kind of fault and outcome, and keeps the
//! violations with the commands that reproduce them.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::campaign_plan::FaultTrial;
use crate::fault_test_runner::JudgedRun;
use crate::oracle::RunOutcome;
use crate::test_cases::TestCase;

/// Number of runs and of injected faults in one cell of a result table.
#[derive(Debug, Clone, Copy, Default)]
struct RunAndFaultCount {
    runs: u64,
    faults: u64,
}

impl RunAndFaultCount {
    fn add(&mut self, other: RunAndFaultCount) {
        self.runs += other.runs;
        self.faults += other.faults;
    }
}

/// A trial in which the program did not behave correctly.
#[derive(Debug, Clone)]
pub struct FoundViolation {
    /// Name of the test case.
    pub case: &'static str,
    /// The trial as text, in the form that the option `--trial` takes.
    pub trial: String,
    /// The rule that the run violated, and the evidence.
    pub verdict: String,
}

/// Results of a campaign: number of runs and faults by subcommand, kind of fault and outcome, and all violations.
#[derive(Debug, Default)]
pub struct CampaignTally {
    cells: BTreeMap<(&'static str, &'static str, &'static str, RunOutcome), RunAndFaultCount>,
    /// The violations, in the order in which they were found.
    pub violations: Vec<FoundViolation>,
}

impl CampaignTally {
    /// Adds a trial to the counts and, if it is a violation, to the violations.
    pub fn count_trial(&mut self, case: &TestCase, trial: &FaultTrial, judged: &JudgedRun) {
        let (kind, what) = trial.tally_category_names();
        let outcome = judged.verdict.outcome;
        let cell = self.cells.entry((case.subcommand(), kind, what, outcome)).or_default();
        cell.add(RunAndFaultCount { runs: 1, faults: judged.num_faults });
        if outcome.is_violation() {
            let (trial, verdict) = (trial.to_string(), judged.verdict.to_string());
            self.violations.push(FoundViolation { case: case.name, trial, verdict });
        }
    }

    fn sum_cells(
        &self,
        of: impl Fn(&(&'static str, &'static str, &'static str, RunOutcome)) -> bool,
    ) -> RunAndFaultCount {
        let mut sum = RunAndFaultCount::default();
        self.cells.iter().filter(|(key, _)| of(key)).for_each(|(_, count)| sum.add(*count));
        sum
    }

    /// Returns the number of injected faults of all trials.
    pub fn total_injected_faults(&self) -> u64 {
        self.sum_cells(|_| true).faults
    }

    /// Returns the number of trials. A run that repeats or resumes another is not counted.
    pub fn total_trials(&self) -> u64 {
        self.sum_cells(|_| true).runs
    }

    fn distinct_names(
        &self,
        of: impl Fn(&(&'static str, &'static str, &'static str, RunOutcome)) -> &'static str,
    ) -> Vec<&'static str> {
        let mut names: Vec<_> = self.cells.keys().map(of).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Formats two Markdown tables: number of faults by kind and subcommand, and number of runs by outcome and
    /// subcommand.
    pub fn format_fault_and_outcome_tables(&self) -> String {
        let (verbs, kinds) = (self.distinct_names(|key| key.0), self.distinct_names(|key| key.1));
        let mut text = format_row("faults", verbs.iter().copied().chain(["all"]));
        text += &format_rule(verbs.len() + 1);
        for kind in kinds.iter().copied() {
            let cells = verbs.iter().map(|verb| self.sum_cells(|key| key.0 == *verb && key.1 == kind).faults);
            let all = self.sum_cells(|key| key.1 == kind).faults;
            text += &format_row(kind, cells.chain([all]).map(format_count));
        }
        let cells =
            verbs.iter().map(|verb| self.sum_cells(|key| key.0 == *verb).faults).chain([self.total_injected_faults()]);
        text += &format_row("all", cells.map(format_count));
        text.push('\n');
        text += &format_row("runs", verbs.iter().copied().chain(["all"]));
        text += &format_rule(verbs.len() + 1);
        for outcome in RunOutcome::ALL_OUTCOMES {
            let cells = verbs.iter().map(|verb| self.sum_cells(|key| key.0 == *verb && key.3 == outcome).runs);
            let all = self.sum_cells(|key| key.3 == outcome).runs;
            text += &format_row(outcome.outcome_name(), cells.chain([all]).map(format_count));
        }
        text
    }

    /// Returns all counts and all violations as JSON.
    pub fn to_json(&self) -> Value {
        let cells = self.cells.iter().map(|((verb, kind, what, outcome), count)| {
            json!({ "verb": verb, "kind": kind, "what": what, "outcome": outcome.outcome_name(), "runs": count.runs, "faults": count.faults })
        });
        let violations =
            self.violations.iter().map(|v| json!({ "case": v.case, "trial": v.trial, "verdict": v.verdict }));
        json!({
            "runs": self.total_trials(),
            "faults": self.total_injected_faults(),
            "counts": cells.collect::<Vec<_>>(),
            "violations": violations.collect::<Vec<_>>(),
        })
    }

    /// Formats the violations: one line per case, kind of fault and outcome, with their number and the command that
    /// reproduces the first of them.
    pub fn format_violations(&self) -> String {
        let mut alike: BTreeMap<(&str, String, &str), (u64, &FoundViolation)> = BTreeMap::new();
        for violation in &self.violations {
            let mut parts = violation.trial.split(':');
            let series = format!("{}:{}", parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let outcome = violation.verdict.split(':').next().unwrap_or_default();
            alike.entry((violation.case, series, outcome)).or_insert((0, violation)).0 += 1;
        }
        let mut text = String::new();
        for ((case, series, _), (count, first)) in alike {
            let verdict = &first.verdict;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{count:5}  {case} {series}  make fuzz-faults ARGS=\"--case {case} --trial {}\"  {verdict}",
                first.trial
            );
        }
        text
    }
}

fn format_count(number: u64) -> String {
    if number == 0 { "·".to_owned() } else { number.to_string() }
}

fn format_row(head: &str, cells: impl Iterator<Item = impl AsRef<str>>) -> String {
    let cells: String = cells.map(|cell| format!(" {} |", cell.as_ref())).collect();
    format!("| {head} |{cells}\n")
}

fn format_rule(columns: usize) -> String {
    format!("|---|{}\n", "---:|".repeat(columns))
}
