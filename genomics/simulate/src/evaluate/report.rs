//! Formats the evaluation result as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::scores::{EvaluationResult, UniqueOrRepeat, VariantClass, VariantPositionAndAlleles, VariantScores};

const CLASSES: [(VariantClass, &str); 3] =
    [(VariantClass::Snv, "SNV"), (VariantClass::Indel, "INDEL"), (VariantClass::Sv, "SV")];
const REGION_TYPES: [(Option<UniqueOrRepeat>, &str); 3] =
    [(None, "all"), (Some(UniqueOrRepeat::Unique), "unique"), (Some(UniqueOrRepeat::Repeat), "repeat")];

fn format_ratio(x: Option<f64>) -> String {
    x.map_or("-".into(), |x| format!("{x:.4}"))
}

/// Formats scores, missed variants and false calls as text tables. At most `listed` missed variants and as many false
/// calls are listed.
pub fn format_evaluation_tables(outcome: &EvaluationResult, listed: usize) -> String {
    let mut out = String::new();
    for note in &outcome.notes {
        let _ = writeln!(out, "{note}\n");
    }
    let _ = writeln!(out, "class  part     truth     TP     FN     FP  recall  precision      F1");
    for (class, name) in CLASSES {
        for (part, part_name) in REGION_TYPES {
            let s = outcome.scores_of_class(class, part);
            let truth = s.true_positives + s.false_negatives;
            let (recall, precision, f1) = (format_ratio(s.recall()), format_ratio(s.precision()), format_ratio(s.f1()));
            let (tp, missed, fp) = (s.true_positives, s.false_negatives, s.false_positives);
            let _ = writeln!(
                out,
                "{name:<6} {part_name:<6} {truth:>7} {tp:>6} {missed:>6} {fp:>6} {recall:>7} {precision:>10} {f1:>7}"
            );
        }
    }
    if !outcome.structural.is_empty() {
        let each = outcome.structural.iter().map(|(class, [found, all])| format!("{class} {found}/{all}"));
        let _ = writeln!(out, "\nSV events found: {}", each.collect::<Vec<_>>().join(", "));
        let [same, turned, inserted] = outcome.structural_matches;
        let _ = writeln!(
            out,
            "of these {same} as written, {turned} with another orientation, {inserted} as insertion instead of duplication or copy (or the reverse)"
        );
    }
    let place = |p: &VariantPositionAndAlleles| format!("{}\t{}\t{}\t{}", p.chrom, p.pos, p.reference, p.alternate);
    if !outcome.misses.is_empty() && listed > 0 {
        let _ = writeln!(out, "\nMisses ({})\nclass\tpart\tchrom\tpos\tref\talt\ttruth\twhy", outcome.misses.len());
        for m in outcome.misses.iter().take(listed) {
            let _ = writeln!(out, "{:?}\t{:?}\t{}\t{}\t{}", m.class, m.part, place(&m.place), m.about, m.why);
        }
        append_omitted_count(&mut out, outcome.misses.len(), listed);
    }
    if !outcome.false_calls.is_empty() && listed > 0 {
        let count = outcome.false_calls.len();
        let _ = writeln!(out, "\nFalse calls ({count})\nclass\tpart\tchrom\tpos\tref\talt\tqual\tfilter\tnote");
        for f in outcome.false_calls.iter().take(listed) {
            let (quality, filter, note) = (&f.quality, &f.filter, &f.note);
            let place = place(&f.place);
            let _ = writeln!(out, "{:?}\t{:?}\t{place}\t{quality}\t{filter}\t{note}", f.class, f.part);
        }
        append_omitted_count(&mut out, count, listed);
    }
    out
}

fn append_omitted_count(out: &mut String, all: usize, listed: usize) {
    if all > listed {
        let _ = writeln!(out, "... and {} more", all - listed);
    }
}

impl EvaluationResult {
    /// Returns scores, missed variants, false calls and notes as JSON.
    pub fn to_json(&self) -> Value {
        let scores = |s: VariantScores| {
            json!({
                "tp": s.true_positives, "fn": s.false_negatives, "fp": s.false_positives,
                "recall": s.recall(), "precision": s.precision(), "f1": s.f1(),
            })
        };
        let classes: Map<String, Value> = CLASSES
            .iter()
            .map(|&(class, name)| {
                let parts: Map<String, Value> = REGION_TYPES
                    .iter()
                    .map(|&(part, p)| (p.to_owned(), scores(self.scores_of_class(class, part))))
                    .collect();
                (name.to_owned(), Value::Object(parts))
            })
            .collect();
        let found =
            |(class, [found, all]): (&String, &[usize; 2])| (class.clone(), json!({"found": found, "all": all}));
        let structural: Map<String, Value> = self.structural.iter().map(found).collect();
        let [same, turned, inserted] = self.structural_matches;
        json!({
            "notes": self.notes,
            "classes": classes,
            "sv_classes": structural,
            "sv_matches": { "same": same, "other_orientation": turned, "as_insertion": inserted },
            "misses": self.misses,
            "false_calls": self.false_calls,
        })
    }
}
