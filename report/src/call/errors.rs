//! The section of the report on sequencing errors: error rates by base quality, substitutions, and slippage in tandem
//! repeats.

use std::fmt::Write;

use genuma_somatic::sequencing_errors::{EstimatedErrorRates, SubstitutionRate};

use crate::markup::escape_html;

/// Maximum number of base qualities, and of substitutions, that are shown. `summary.json` has all of them.
const MAX_SHOWN_RATES: usize = 5;
/// Classes of tandem repeats whose slippage rate is shown, if the samples have such repeats: bases of the unit, number
/// of copies.
const SHOWN_REPEATS: [(u8, u8); 6] = [(1, 8), (1, 12), (1, 16), (1, 20), (2, 8), (2, 12)];

/// Returns the estimated error rates as rows of an HTML definition list. `samples` are the sample names.
pub fn error_rate_rows(learned: &EstimatedErrorRates, samples: &[String]) -> String {
    let mut html = String::new();
    let mut line = |name: &str, parts: Vec<String>| {
        let parts = if parts.is_empty() { "too few observations".to_owned() } else { parts.join("; ") };
        let _ = write!(html, "<div><dt>{name}</dt><dd>{parts}</dd></div>");
    };
    let wrong = &learned.by_quality;
    let step = wrong.len().div_ceil(MAX_SHOWN_RATES).max(1);
    let qualities = wrong.iter().rev().step_by(step).map(|w| format!("{} at Q{}", format_percent(w.share), w.quality));
    line("Error rate by base quality", qualities.collect());
    let mut by_share = learned.substitutions.clone();
    by_share.sort_by(|a, b| b.share.total_cmp(&a.share));
    line(
        "Most frequent substitution errors",
        by_share.iter().take(MAX_SHOWN_RATES).map(|s| describe_substitution(s, samples)).collect(),
    );
    let slips = SHOWN_REPEATS.iter().filter_map(|&(unit, copies)| {
        let found = learned.slippage.iter().find(|s| (s.unit, s.copies) == (unit, copies))?;
        let name = if unit == 1 { "one base" } else { "two bases" };
        let [shorter, longer] = [found.shorter, found.longer].map(format_percent);
        Some(format!("{name} {copies} times: {shorter} shorter, {longer} longer"))
    });
    line("Slippage in tandem repeats", slips.collect());
    html
}

fn describe_substitution(s: &SubstitutionRate, samples: &[String]) -> String {
    let sample = match super::sample_label(samples, s.sample.into()) {
        name @ ("Normal" | "Tumour") => name.to_lowercase(),
        name => escape_html(name),
    };
    let orientation = if s.first_forward { "F1R2" } else { "F2R1" };
    format!("{}\u{a0}&gt;\u{a0}{} {} ({sample}, {orientation})", s.from, s.to, format_percent(s.share))
}

/// Formats a share in percent with two significant digits.
fn format_percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 4.0) as usize } else { 0 };
    format!("{percent:.digits$}%")
}
