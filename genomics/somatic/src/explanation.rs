//! Explanations of a contig that the event model compared, with their costs (docs/model/event.md).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::event_model;

/// How an explanation derives the contig from the genome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExplanationKind {
    /// One alignment of the whole contig.
    WholeAlignment,
    /// Small changes in its segments, and junctions between them.
    Segments,
    /// Stretches copied from the genome nearby.
    NearbyCopies,
    /// Changes of the normal's haplotype.
    NormalHaplotype,
}

impl ExplanationKind {
    /// Description for `--why`.
    fn description(self) -> &'static str {
        match self {
            ExplanationKind::WholeAlignment => "one alignment of the whole contig",
            ExplanationKind::Segments => "segments and junctions",
            ExplanationKind::NearbyCopies => "copies of bases nearby",
            ExplanationKind::NormalHaplotype => "changes of the normal's haplotype",
        }
    }
}

/// An explanation of a contig by changes of the genome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// How the changes were found.
    pub kind: ExplanationKind,
    /// Negative logarithm of the probability of the changes, in hundredths of natural-log units.
    pub cost: i32,
    /// Number of changes.
    pub num_changes: usize,
}

impl Explanation {
    /// The explanation of the contig `seq` by changes, each with the range of its bases on the contig.
    pub(crate) fn from_changes<'a>(
        kind: ExplanationKind,
        seq: &[u8],
        changes: impl ExactSizeIterator<Item = (&'a Change, &'a Range<usize>)>,
    ) -> Explanation {
        let num_changes = changes.len();
        Explanation { kind, cost: event_model::cost_of_changes(seq, changes), num_changes }
    }

    /// Text of all explanations of a contig, the one that counts first.
    pub(crate) fn format_explanations(explanations: &[Explanation]) -> String {
        let text = |one: &Explanation| {
            let cost = f64::from(one.cost) / 100.0;
            let plural = if one.num_changes == 1 { "" } else { "s" };
            format!("{}: {} change{plural}, cost {cost:.1}", one.kind.description(), one.num_changes)
        };
        let texts: Vec<String> = explanations.iter().map(text).collect();
        texts.join("; not ")
    }
}
