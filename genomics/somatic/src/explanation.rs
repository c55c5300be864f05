//! The alternative explanations of a contig that the event model compared, with their costs (docs/model/event.md).

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::event_model;

/// Method by which an explanation derives the contig from the genome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExplanationMethod {
    /// The whole contig is aligned with the genome once.
    WholeAlignment,
    /// The contig has several aligned segments, with small changes in them and junctions between them.
    Segments,
    /// The contig consists of stretches copied from the genome nearby.
    NearbyCopies,
    /// The contig has changes relative to the normal's haplotype, which has germline changes.
    NormalHaplotype,
}

impl ExplanationMethod {
    /// Text that describes the method for `--why`.
    fn description(self) -> &'static str {
        match self {
            ExplanationMethod::WholeAlignment => "one alignment of the whole contig",
            ExplanationMethod::Segments => "segments and junctions",
            ExplanationMethod::NearbyCopies => "copies of bases nearby",
            ExplanationMethod::NormalHaplotype => "changes of the normal's haplotype",
        }
    }
}

/// Method, cost and number of changes of an explanation of a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// Method by which the changes were found.
    pub kind: ExplanationMethod,
    /// Cost: negative logarithm of the probability of the changes, in hundredths of natural-log units.
    pub cost: i32,
    /// Number of changes in the explanation.
    pub num_changes: usize,
}

impl Explanation {
    /// Computes the cost of explaining the contig `seq` by these changes, each with its range on the contig.
    pub(crate) fn from_changes<'a>(
        kind: ExplanationMethod,
        seq: &[u8],
        changes: impl ExactSizeIterator<Item = (&'a Change, &'a Range<usize>)>,
    ) -> Explanation {
        let num_changes = changes.len();
        Explanation { kind, cost: event_model::cost_of_changes(seq, changes), num_changes }
    }

    /// Formats explanations of a contig as text, in the given order: the selected one must be first.
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
