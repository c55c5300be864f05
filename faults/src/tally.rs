//! What came of a campaign: counts by verb, kind and outcome, and the commands that show each violation again.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::bench::Judged;
use crate::case::Case;
use crate::oracle::Outcome;
use crate::plan::Trial;

/// Runs and faults of one cell of a table.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    runs: u64,
    faults: u64,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.runs += other.runs;
        self.faults += other.faults;
    }
}

/// A trial that broke a promise.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Of which case.
    pub case: &'static str,
    /// Which trial.
    pub trial: String,
    /// What became of it.
    pub verdict: String,
}

/// The counts.
#[derive(Debug, Default)]
pub struct Tally {
    cells: BTreeMap<(&'static str, &'static str, &'static str, Outcome), Count>,
    /// In the order in which they were found.
    pub violations: Vec<Violation>,
}

impl Tally {
    /// Counts a trial.
    pub fn add(&mut self, case: &Case, trial: &Trial, judged: &Judged) {
        let (kind, what) = trial.series();
        let outcome = judged.verdict.outcome;
        let cell = self.cells.entry((case.verb(), kind, what, outcome)).or_default();
        cell.add(Count { runs: 1, faults: judged.fired });
        if outcome.is_violation() {
            let (trial, verdict) = (trial.to_string(), judged.verdict.to_string());
            self.violations.push(Violation { case: case.name, trial, verdict });
        }
    }

    fn sum(&self, of: impl Fn(&(&'static str, &'static str, &'static str, Outcome)) -> bool) -> Count {
        let mut sum = Count::default();
        self.cells.iter().filter(|(key, _)| of(key)).for_each(|(_, count)| sum.add(*count));
        sum
    }

    /// All faults that happened.
    pub fn faults(&self) -> u64 {
        self.sum(|_| true).faults
    }

    /// All runs in which one happened.
    pub fn runs(&self) -> u64 {
        self.sum(|_| true).runs
    }

    fn names(
        &self,
        of: impl Fn(&(&'static str, &'static str, &'static str, Outcome)) -> &'static str,
    ) -> Vec<&'static str> {
        let mut names: Vec<_> = self.cells.keys().map(of).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Two tables in Markdown: faults by verb and kind, and runs by verb and outcome.
    pub fn tables(&self) -> String {
        let (verbs, kinds) = (self.names(|key| key.0), self.names(|key| key.1));
        let mut text = row("faults", verbs.iter().copied().chain(["all"]));
        text += &rule(verbs.len() + 1);
        for kind in kinds.iter().copied() {
            let cells = verbs.iter().map(|verb| self.sum(|key| key.0 == *verb && key.1 == kind).faults);
            let all = self.sum(|key| key.1 == kind).faults;
            text += &row(kind, cells.chain([all]).map(number));
        }
        let cells = verbs.iter().map(|verb| self.sum(|key| key.0 == *verb).faults).chain([self.faults()]);
        text += &row("all", cells.map(number));
        text.push('\n');
        text += &row("runs", verbs.iter().copied().chain(["all"]));
        text += &rule(verbs.len() + 1);
        for outcome in Outcome::ALL {
            let cells = verbs.iter().map(|verb| self.sum(|key| key.0 == *verb && key.3 == outcome).runs);
            let all = self.sum(|key| key.3 == outcome).runs;
            text += &row(outcome.word(), cells.chain([all]).map(number));
        }
        text
    }

    /// All counts and violations for programs.
    pub fn json(&self) -> Value {
        let cells = self.cells.iter().map(|((verb, kind, what, outcome), count)| {
            json!({ "verb": verb, "kind": kind, "what": what, "outcome": outcome.word(), "runs": count.runs, "faults": count.faults })
        });
        let violations =
            self.violations.iter().map(|v| json!({ "case": v.case, "trial": v.trial, "verdict": v.verdict }));
        json!({
            "runs": self.runs(),
            "faults": self.faults(),
            "counts": cells.collect::<Vec<_>>(),
            "violations": violations.collect::<Vec<_>>(),
        })
    }

    /// Violations alike in case, kind of fault and outcome in one line each, with the first of them.
    pub fn findings(&self) -> String {
        let mut alike: BTreeMap<(&str, String, &str), (u64, &Violation)> = BTreeMap::new();
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

fn number(number: u64) -> String {
    if number == 0 { "·".to_owned() } else { number.to_string() }
}

fn row(head: &str, cells: impl Iterator<Item = impl AsRef<str>>) -> String {
    let cells: String = cells.map(|cell| format!(" {} |", cell.as_ref())).collect();
    format!("| {head} |{cells}\n")
}

fn rule(columns: usize) -> String {
    format!("|---|{}\n", "---:|".repeat(columns))
}
