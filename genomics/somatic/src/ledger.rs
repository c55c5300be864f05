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

    /// Adds the lines of another where a stage begins, or behind all where there is none of that name.
    pub(crate) fn insert_before(&mut self, stage: &str, other: &Ledger) {
        let at = self.lines.iter().position(|line| line.stage == stage).unwrap_or(self.lines.len());
        self.lines.splice(at..at, other.lines.iter().cloned());
    }

    fn push(&mut self, stage: &str, what: &str, count: u64, left_out: bool) {
        self.lines.push(Line { stage: stage.to_owned(), what: what.to_owned(), count, left_out });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_in_order_and_nothing_left_out_is_no_line() {
        let (mut one, mut two) = (Ledger::default(), Ledger::default());
        one.made("count", "pairs", 0);
        one.left_out("count", "copies", 0);
        two.made("assemble", "groups", 7);
        two.left_out("assemble", "lone pairs", 3);
        one.append(&two);
        let mut three = Ledger::default();
        three.made("panel", "known", 5);
        let mut between = one.clone();
        between.insert_before("assemble", &three);
        assert_eq!(between.lines[1], three.lines[0]);
        assert_eq!(between.lines[2..], one.lines[1..]);
        between.insert_before("judge", &three);
        assert_eq!(between.lines.last(), three.lines.last());
        let lines: Vec<(&str, &str, u64, bool)> =
            one.lines.iter().map(|l| (&l.stage[..], &l.what[..], l.count, l.left_out)).collect();
        assert_eq!(
            lines,
            [
                ("count", "pairs", 0, false),
                ("assemble", "groups", 7, false),
                ("assemble", "lone pairs", 3, true)
            ]
        );
    }
}
