//! What tracking found, for people and for programs.

use std::fmt::Write as _;

use genuma_track::change::Record;
use genuma_track::pipeline::{Sample, Tracking};
use serde_json::{Value, json};

/// The columns of the table, and what they hold.
const COLUMNS: [(&str, &str); 17] = [
    ("sample", "name of the sample"),
    ("chrom", ""),
    ("pos", ""),
    ("id", ""),
    ("ref", ""),
    ("alt", "as in the VCF"),
    ("class", "SNV, MNV, INDEL or SV"),
    ("then", "share of the first tumour's reads, as the VCF has it"),
    ("changed", "molecules with the change"),
    ("molecules", "molecules that tell"),
    ("fraction", "the one in the other"),
    ("low", ""),
    ("high", "its interval of 95%"),
    ("error_rate", "share of the molecules that errors give the change"),
    ("expected", "molecules that errors make"),
    ("p", "probability that errors make as many or more"),
    ("verdict", "found, unsure, not_seen, no_molecules, in_normal, stands_out, or why it cannot be tracked"),
];

fn share(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if v < 1e-3 => format!("{v:.2e}"),
        v => format!("{v:.4}"),
    }
}

/// What each sample as a whole says, a line each.
pub(crate) fn wholes(tracking: &Tracking) -> Vec<String> {
    tracking.samples.iter().map(whole).collect()
}

fn whole(sample: &Sample) -> String {
    let w = &sample.whole;
    let percent = |x: f64| {
        let digits = if x == 0.0 || x >= 0.1 {
            1
        } else {
            (1.0 - (100.0 * x).log10().floor()).clamp(1.0, 6.0) as usize
        };
        format!("{:.digits$}%", 100.0 * x)
    };
    let said = match (w.molecules, w.detected) {
        (0, _) => "no molecules: nothing can be said",
        (_, true) => "tumour detected",
        (_, false) => "tumour not detected",
    };
    format!(
        "{}: {said}: {} of {} molecules at {} changes, {:.1} expected by errors, p = {:.1e}; tumour fraction {} ({} to {})",
        sample.name,
        w.changed,
        w.molecules,
        w.changes,
        w.expected,
        w.p,
        percent(w.tumour_fraction.value),
        percent(w.tumour_fraction.low),
        percent(w.tumour_fraction.high),
    )
}

fn place(record: &Record) -> String {
    let id = if record.id.is_empty() { "." } else { &record.id };
    format!("{}\t{}\t{id}\t{}\t{}", record.chrom, record.pos, record.reference, record.alternate)
}

/// The table.
pub(crate) fn render(tracking: &Tracking) -> String {
    let mut text = String::new();
    for line in wholes(tracking) {
        let _ = writeln!(text, "# {line}");
    }
    let meant = COLUMNS.iter().filter(|(_, what)| !what.is_empty());
    for (name, what) in meant {
        let _ = writeln!(text, "# {name}: {what}");
    }
    let names: Vec<&str> = COLUMNS.iter().map(|c| c.0).collect();
    let _ = writeln!(text, "{}", names.join("\t"));
    for sample in &tracking.samples {
        for (change, t) in tracking.changes.iter().zip(&sample.tracked) {
            let then = change.record.share.map_or(".".into(), share);
            let numbers = [t.fraction, t.low, t.high, t.error_rate].map(share).join("\t");
            let _ = writeln!(
                text,
                "{}\t{}\t{}\t{then}\t{}\t{}\t{numbers}\t{:.3}\t{:.2e}\t{}",
                sample.name,
                place(&change.record),
                change.class.name(),
                t.changed,
                t.molecules,
                t.expected,
                t.p,
                t.verdict.name()
            );
        }
        for untracked in &tracking.untracked {
            let nothing = ["."; 9].join("\t");
            let place = place(&untracked.record);
            let _ = writeln!(
                text,
                "{}\t{place}\t{nothing}\t.\tcannot be tracked: {}",
                sample.name, untracked.why
            );
        }
    }
    text
}

/// Everything.
pub(crate) fn json(tracking: &Tracking) -> Value {
    let named = |record: &Record| {
        json!({
            "chrom": record.chrom, "pos": record.pos, "id": record.id, "ref": record.reference, "alt": record.alternate,
            "then": record.share,
        })
    };
    let changes = |sample: &Sample| -> Vec<Value> {
        let each = tracking.changes.iter().zip(&sample.tracked);
        each.map(|(change, t)| {
            let mut value = named(&change.record);
            value["class"] = change.class.name().into();
            if let (Some(value), Ok(Value::Object(told))) = (value.as_object_mut(), serde_json::to_value(t)) {
                value.extend(told);
            }
            value
        })
        .collect()
    };
    let sample = |sample: &Sample| {
        json!({
            "name": sample.name,
            "normal": sample.is_normal,
            "pairs": sample.pairs,
            "whole": sample.whole,
            "errors": {
                "watched": sample.background.watched[0],
                "wrong": sample.background.watched[1],
                "shape": sample.background.shape,
            },
            "changes": changes(sample),
        })
    };
    let untracked: Vec<Value> = tracking
        .untracked
        .iter()
        .map(|u| {
            let mut value = named(&u.record);
            value["why"] = u.why.into();
            value
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "samples": tracking.samples.iter().map(sample).collect::<Vec<Value>>(),
        "untracked": untracked,
        "repeated": tracking.repeated.len(),
        "strangers": tracking.strangers,
        "kmers": tracking.kmers,
    })
}
