//! Counts the outcomes of a campaign by subcommand, kind and outcome, with the commands that reproduce each
//! violation.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::campaign_plan::FaultTrial;
use crate::fault_bench::JudgedRun;
use crate::oracle::RunOutcome;
use crate::test_cases::TestCase;

/// Number of runs and faults in one cell of a table.
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

/// A run with a fault that did not behave correctly.
#[derive(Debug, Clone)]
pub struct FoundViolation {
    /// Name of the test case.
    pub case: &'static str,
    /// The fault or damage, in the form in which it can be repeated.
    pub trial: String,
    /// Which rule the run violated, and how.
    pub verdict: String,
}

/// Counts and violations of a campaign.
#[derive(Debug, Default)]
pub struct CampaignTally {
    cells: BTreeMap<(&'static str, &'static str, &'static str, RunOutcome), RunAndFaultCount>,
    /// Violations in the order in which they were found.
    pub violations: Vec<FoundViolation>,
}

impl CampaignTally {
    /// Counts a run with a fault by its outcome, and keeps its violation if there is one.
    pub fn count_trial(&mut self, case: &TestCase, trial: &FaultTrial, judged: &JudgedRun) {
        let (kind, what) = trial.tally_names();
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

    /// Returns the number of injected faults.
    pub fn total_injected_faults(&self) -> u64 {
        self.sum_cells(|_| true).faults
    }

    /// Returns the number of runs.
    pub fn total_runs(&self) -> u64 {
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

    /// Formats two Markdown tables: faults by subcommand and kind, and runs by subcommand and outcome.
    pub fn format_tables(&self) -> String {
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

    /// Returns all counts and violations as JSON.
    pub fn to_json(&self) -> Value {
        let cells = self.cells.iter().map(|((verb, kind, what, outcome), count)| {
            json!({ "verb": verb, "kind": kind, "what": what, "outcome": outcome.outcome_name(), "runs": count.runs, "faults": count.faults })
        });
        let violations =
            self.violations.iter().map(|v| json!({ "case": v.case, "trial": v.trial, "verdict": v.verdict }));
        json!({
            "runs": self.total_runs(),
            "faults": self.total_injected_faults(),
            "counts": cells.collect::<Vec<_>>(),
            "violations": violations.collect::<Vec<_>>(),
        })
    }

    /// Formats the violations, one line per case, kind of fault and outcome, with the first trial of each.
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
