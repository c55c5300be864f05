//! Formats the results of tracking as a table and as JSON.

use std::fmt::Write as _;

use genuma_track::change::VcfAlleleRecord;
use genuma_track::pipeline::{SampleTrackingResult, TrackingResult};
use serde_json::{Value, json};

/// Names and descriptions of the table's columns. A column without a description is described together with the next
/// one.
const COLUMNS: [(&str, &str); 17] = [
    ("sample", "name of the sample"),
    ("chrom", ""),
    ("pos", ""),
    ("id", ""),
    ("ref", ""),
    ("alt", "as in the VCF"),
    ("class", "SNV, MNV, INDEL or SV"),
    ("first_af", "allele fraction in the first tumour, from the VCF"),
    ("changed", "molecules with the variant"),
    ("molecules", "informative molecules: those with the variant and those without"),
    ("fraction", "share of the informative molecules with the variant"),
    ("low", ""),
    ("high", "95% interval of fraction"),
    ("error_rate", "share of molecules that show the variant because of errors"),
    ("expected", "expected molecules with the variant from errors alone"),
    ("p", "probability of at least as many molecules with the variant from errors alone"),
    ("verdict", "found, unsure, not_seen, no_molecules, in_normal, stands_out, or why the variant cannot be tracked"),
];

fn format_share(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if v < 1e-3 => format!("{v:.2e}"),
        v => format!("{v:.4}"),
    }
}

/// Returns a line for each sample: whether tumour DNA was detected, and the tumour fraction.
pub(crate) fn format_tumour_detection_lines(tracking: &TrackingResult) -> Vec<String> {
    tracking.samples.iter().map(summarize_sample).collect()
}

fn summarize_sample(sample: &SampleTrackingResult) -> String {
    let w = &sample.result;
    let percent = |x: f64| {
        let digits =
            if x == 0.0 || x >= 0.1 { 1 } else { (1.0 - (100.0 * x).log10().floor()).clamp(1.0, 6.0) as usize };
        format!("{:.digits$}%", 100.0 * x)
    };
    let statement = match (w.molecules, w.detected) {
        (0, _) => "no informative molecules",
        (_, true) => "tumour detected",
        (_, false) => "tumour not detected",
    };
    format!(
        "{}: {statement}: {} of {} molecules at {} variants, {:.1} expected from errors, p = {:.1e}; tumour fraction {} ({} to {})",
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

fn variant_columns(record: &VcfAlleleRecord) -> String {
    let id = if record.id.is_empty() { "." } else { &record.id };
    format!("{}\t{}\t{id}\t{}\t{}", record.chrom, record.pos, record.reference, record.alternate)
}

/// Formats the results as a table: comment lines that begin with `#`, a header line, and one line for each sample and
/// variant.
pub(crate) fn render_tracking_table(tracking: &TrackingResult) -> String {
    let mut text = String::new();
    for line in format_tumour_detection_lines(tracking) {
        let _ = writeln!(text, "# {line}");
    }
    let meant = COLUMNS.iter().filter(|(_, what)| !what.is_empty());
    for (name, what) in meant {
        let _ = writeln!(text, "# {name}: {what}");
    }
    let names: Vec<&str> = COLUMNS.iter().map(|c| c.0).collect();
    let _ = writeln!(text, "{}", names.join("\t"));
    for sample in &tracking.samples {
        for (change, t) in tracking.changes.iter().zip(&sample.changes) {
            let then = change.record.allele_fraction.map_or(".".into(), format_share);
            let numbers = [t.fraction, t.low, t.high, t.error_rate].map(format_share).join("\t");
            let _ = writeln!(
                text,
                "{}\t{}\t{}\t{then}\t{}\t{}\t{numbers}\t{:.3}\t{:.2e}\t{}",
                sample.name,
                variant_columns(&change.record),
                change.class.class_name(),
                t.changed,
                t.molecules,
                t.expected,
                t.p,
                t.verdict.verdict_name()
            );
        }
        for untracked in &tracking.untracked {
            let nothing = ["."; 9].join("\t");
            let place = variant_columns(&untracked.record);
            let _ = writeln!(text, "{}\t{place}\t{nothing}\t.\tcannot be tracked: {}", sample.name, untracked.reason);
        }
    }
    text
}

/// Returns the results as a JSON object (docs/schema/track.schema.json).
pub(crate) fn tracking_to_json(tracking: &TrackingResult) -> Value {
    let named = |record: &VcfAlleleRecord| {
        json!({
            "chrom": &*record.chrom, "pos": record.pos, "id": record.id, "ref": record.reference, "alt": record.alternate,
            "first_af": record.allele_fraction,
        })
    };
    let changes = |sample: &SampleTrackingResult| -> Vec<Value> {
        let each = tracking.changes.iter().zip(&sample.changes);
        each.map(|(change, t)| {
            let mut value = named(&change.record);
            value["class"] = change.class.class_name().into();
            if let (Some(value), Ok(Value::Object(told))) = (value.as_object_mut(), serde_json::to_value(t)) {
                value.extend(told);
            }
            value
        })
        .collect()
    };
    let sample = |sample: &SampleTrackingResult| {
        json!({
            "name": sample.name,
            "normal": sample.is_normal,
            "pairs": sample.pairs,
            "summary": sample.result,
            "errors": {
                "flank_molecules": sample.background.flank_molecules[0],
                "flank_errors": sample.background.flank_molecules[1],
                "shape": sample.background.gamma_shape,
            },
            "changes": changes(sample),
        })
    };
    let untracked: Vec<Value> = tracking
        .untracked
        .iter()
        .map(|u| {
            let mut value = named(&u.record);
            value["reason"] = u.reason.into();
            value
        })
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "samples": tracking.samples.iter().map(sample).collect::<Vec<Value>>(),
        "untracked": untracked,
        "duplicate_records": tracking.duplicate_records.len(),
        "unassigned_mates": tracking.unassigned_mates,
        "kmers": tracking.kmers,
    })
}
