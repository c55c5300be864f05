//! The ledger of a call: counts of what each stage produced and skipped, with reasons.

use serde::{Deserialize, Serialize};

/// Description of the ledger line for novel k-mers (the normal lacks their root) that were skipped because there are
/// too many of them, so the normal must be too shallow.
pub const SHALLOW_NORMAL_LEDGER_LINE: &str =
    "tumour k-mers whose root the normal lacks, skipped because there are too many of them: the normal is too shallow";

/// Description of the ledger line for novel k-mers that were skipped because the normal lacks more than half of the
/// tumour's k-mers, as if the tumour were of another species.
pub const MOST_TUMOUR_KMERS_NOT_IN_NORMAL_LEDGER_LINE: &str = "tumour k-mers inside sequence that the normal lacks, skipped because they are more than half of all: check that the samples are of one species";

/// Description of the ledger line for novel k-mers that were skipped in a call with targets because there are too many
/// of them: outside the targets the normal has few reads.
pub const OFF_TARGET_LEDGER_LINE: &str = "tumour k-mers whose root the normal lacks, skipped because there are too many of them: outside the targets the normal has few reads";

/// Description of the ledger line for novel k-mers that were skipped in a call without a normal because there are too
/// many of them.
pub const TOO_MANY_VARIANTS_LEDGER_LINE: &str = "tumour k-mers whose root the reference lacks, skipped because there are too many of them: the person has more variants than a call without a normal can examine";

/// Description of the ledger line for contigs without a position on the reference although most of their bases are in
/// k-mers that the normal has, too. Such contigs are of the person's genome, so the reference lacks a part of it.
pub const UNPLACED_NORMAL_SEQUENCE_LEDGER_LINE: &str =
    "contigs without a position on the reference although most of their sequence is the normal's";

/// Description of the ledger line for contigs with small variants that only the tumour has. It is written if DNA of
/// another species was detected.
pub const TUMOUR_ONLY_CONTIGS_LEDGER_LINE: &str = "contigs with small variants that only the tumour has";

/// Description of the ledger line for contigs with five changes or more that the normal lacks, as DNA of another species
/// has. It is written if such DNA was detected.
pub const OTHER_SPECIES_CONTIGS_LEDGER_LINE: &str =
    "contigs that seem to be of another species, which the normal lacks";

/// A line of the ledger: the number of items of one kind that a stage produced or skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerLine {
    /// Name of the stage: that of its unit, such as `assemble`.
    pub stage: String,
    /// Description of the items, and of the reason if they were skipped.
    #[serde(alias = "what")]
    pub description: String,
    /// Number of items that the stage produced or skipped.
    pub count: u64,
    /// Whether the items were skipped; false if they were produced.
    #[serde(alias = "left_out")]
    pub skipped: bool,
}

/// The ledger of a call: the lines of all stages, in the order in which the stages ran. In JSON it is an array.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger {
    /// The lines, in the order of the stages.
    pub lines: Vec<LedgerLine>,
}

impl Ledger {
    /// Appends a line: `stage` produced `count` items with the description `what`.
    pub fn append_produced_line(&mut self, stage: &str, what: &str, count: u64) {
        self.push(stage, what, count, false);
    }

    /// Appends a line: `stage` skipped `count` items with the description `what`. A count of 0 gives no line.
    pub fn append_skipped_line(&mut self, stage: &str, what: &str, count: u64) {
        if count > 0 {
            self.push(stage, what, count, true);
        }
    }

    /// Sum of the counts of all lines of any stage with this description; 0 if there is none.
    pub fn sum_counts_of_description(&self, description: &str) -> u64 {
        self.lines.iter().filter(|line| line.description == description).map(|line| line.count).sum()
    }

    /// Appends the lines of another ledger.
    pub fn append_lines(&mut self, other: &Ledger) {
        self.lines.extend_from_slice(&other.lines);
    }

    /// Inserts the lines of another ledger before the first line of `stage`, or at the end if there is no such line.
    pub(crate) fn insert_lines_before_stage(&mut self, stage: &str, other: &Ledger) {
        let at = self.lines.iter().position(|line| line.stage == stage).unwrap_or(self.lines.len());
        self.lines.splice(at..at, other.lines.iter().cloned());
    }

    fn push(&mut self, stage: &str, what: &str, count: u64, skipped: bool) {
        self.lines.push(LedgerLine { stage: stage.to_owned(), description: what.to_owned(), count, skipped });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_in_order_and_nothing_left_out_is_no_line() {
        let (mut one, mut two) = (Ledger::default(), Ledger::default());
        one.append_produced_line("count", "pairs", 0);
        one.append_skipped_line("count", "copies", 0);
        two.append_produced_line("assemble", "groups", 7);
        two.append_skipped_line("assemble", "lone pairs", 3);
        one.append_lines(&two);
        let mut three = Ledger::default();
        three.append_produced_line("panel", "known", 5);
        let mut between = one.clone();
        between.insert_lines_before_stage("assemble", &three);
        assert_eq!(between.lines[1], three.lines[0]);
        assert_eq!(between.lines[2..], one.lines[1..]);
        between.insert_lines_before_stage("judge", &three);
        assert_eq!(between.lines.last(), three.lines.last());
        let lines: Vec<(&str, &str, u64, bool)> =
            one.lines.iter().map(|l| (&l.stage[..], &l.description[..], l.count, l.skipped)).collect();
        assert_eq!(
            lines,
            [("count", "pairs", 0, false), ("assemble", "groups", 7, false), ("assemble", "lone pairs", 3, true)]
        );
    }
}
