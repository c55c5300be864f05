//! A short fault campaign: some calls of each kind fail, some files are damaged, and every promise holds.
//!
//! `make fuzz-faults` is the long one. This build's own calls are seen where they pass the C library; those that rustix makes
//! do not (docs/reliability.md).

mod common;

use std::path::Path;

use common::{installed, scratch};
use genuma_faults::bench::Bench;
use genuma_faults::case::{Case, Given, cases};
use genuma_faults::plan::{Extent, Trial, attempt, shuffle, trials};
use genuma_faults::tally::Tally;

/// Trials of a case; each is a run of some 100 ms.
const EACH: usize = 16;

/// Runs some trials of every case whose verb is one of these, the same each time.
fn hold(verbs: &[&str]) {
    hold_in(verbs[0], verbs, |mut plan| {
        shuffle(&mut plan, 14);
        plan.truncate(EACH);
        plan
    });
}

/// Runs those trials of every case whose verb is one of these that are chosen from all.
fn hold_in(folder: &str, verbs: &[&str], choose: impl Fn(Vec<Trial>) -> Vec<Trial>) {
    let all = cases();
    // Measuring the machine's memory takes many seconds: those who need it are left to the long campaign.
    let cheap = |case: &&Case| !case.given.contains(&Given::Machine);
    let bwa = installed("bwa").is_some();
    let possible = |case: &&Case| bwa || !case.given.contains(&Given::Bwa);
    let cases: Vec<&Case> =
        all.iter().filter(|case| verbs.contains(&case.verb())).filter(cheap).filter(possible).collect();
    let folder = scratch(folder);
    let program = Path::new(env!("CARGO_BIN_EXE_genuma"));
    let mut bench = Bench::new(program, folder, &cases).expect("a bench");
    let mut tally = Tally::default();
    for case in cases {
        let extent = Extent { numbers: 100, regions: 20, pairs: 4 };
        let plan = trials(&mut bench, case, extent).expect("a case runs without faults");
        for trial in choose(plan) {
            if let Some(judged) = attempt(&trial, &mut bench, case) {
                tally.add(case, &trial, &judged);
            }
        }
    }
    assert!(tally.violations.is_empty(), "{}", tally.findings());
    assert!(tally.faults() > 0, "no fault happened");
}

#[test]
fn align_and_index() {
    hold(&["align", "index"]);
}

#[test]
fn call() {
    hold(&["call"]);
}

#[test]
fn steps() {
    hold(&["step"]);
}

#[test]
fn count_and_query() {
    hold(&["count", "query"]);
}

#[test]
fn tables_checking_and_tracking() {
    hold(&["table", "check", "track"]);
}

#[test]
fn run() {
    hold(&["run"]);
}

#[test]
fn small_verbs() {
    hold(&["simulate", "evaluate", "topology", "man", "completions"]);
}

#[test]
fn memory_that_is_refused_from_the_first_on() {
    let early = |trial: &Trial| {
        let text = trial.to_string();
        let number = text.strip_prefix("map:ENOMEM:").and_then(|rest| rest.strip_suffix(":1"));
        number.is_some_and(|number| number.parse::<u32>().is_ok_and(|number| number <= 12))
    };
    hold_in("no-memory", &["run", "simulate", "query"], |plan| plan.into_iter().filter(early).collect());
}
