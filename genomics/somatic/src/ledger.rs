//! What every stage of a call made, and what it left out and why: nothing goes without being counted.

use serde::{Deserialize, Serialize};

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The stage, as the units are called.
    pub stage: String,
    /// What was made or left out, in words.
    pub what: String,
    /// How many of them.
    pub count: u64,
    /// Whether it was left out.
    pub left_out: bool,
}

/// Lines in the order in which the stages ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The lines.
    pub lines: Vec<Line>,
}

impl Ledger {
    /// Notes what a stage made.
    pub fn made(&mut self, stage: &str, what: &str, count: u64) {
        self.push(stage, what, count, false);
    }

    /// Notes what a stage left out; nothing if there is none.
    pub fn left_out(&mut self, stage: &str, what: &str, count: u64) {
        if count > 0 {
            self.push(stage, what, count, true);
        }
    }

    /// Adds the lines of another.
    pub fn append(&mut self, other: &Ledger) {
        self.lines.extend_from_slice(&other.lines);
    }

    fn push(&mut self, stage: &str, what: &str, count: u64, left_out: bool) {
        self.lines.push(Line { stage: stage.to_owned(), what: what.to_owned(), count, left_out });
    }
}
