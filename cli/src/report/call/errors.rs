//! What the reads get wrong, in three lines.

use std::fmt::Write;

use genuma_somatic::errors::{Learned, Substitution};

use crate::report::markup::escape;

/// Qualities and substitutions shown; all are in `summary.json`.
const MOST: usize = 5;
/// Repeats shown, where the samples have them: bases of the unit, copies.
const REPEATS: [(u8, u8); 6] = [(1, 8), (1, 12), (1, 16), (1, 20), (2, 8), (2, 12)];

/// Lines of a definition list.
pub(crate) fn lines(learned: &Learned, samples: &[String]) -> String {
    let mut html = String::new();
    let mut line = |name: &str, parts: Vec<String>| {
        let parts = if parts.is_empty() { "too few to tell".to_owned() } else { parts.join("; ") };
        let _ = write!(html, "<div><dt>{name}</dt><dd>{parts}</dd></div>");
    };
    let wrong = &learned.wrong;
    let step = wrong.len().div_ceil(MOST).max(1);
    let qualities =
        wrong.iter().rev().step_by(step).map(|w| format!("{} at Q{}", percent(w.share), w.quality));
    line("Bases read wrong", qualities.collect());
    let mut most = learned.substitutions.clone();
    most.sort_by(|a, b| b.share.total_cmp(&a.share));
    line("Most frequent of them", most.iter().take(MOST).map(|s| substitution(s, samples)).collect());
    let slips = REPEATS.iter().filter_map(|&(unit, copies)| {
        let found = learned.slips.iter().find(|s| (s.unit, s.copies) == (unit, copies))?;
        let name = if unit == 1 { "one base" } else { "two bases" };
        let [shorter, longer] = [found.shorter, found.longer].map(percent);
        Some(format!("{name} {copies} times: {shorter} shorter, {longer} longer"))
    });
    line("Repeats read with another length", slips.collect());
    html
}

fn substitution(s: &Substitution, samples: &[String]) -> String {
    let sample = match super::name_of(samples, s.sample.into()) {
        name @ ("Normal" | "Tumour") => name.to_lowercase(),
        name => escape(name),
    };
    let orientation = if s.first_forward { "F1R2" } else { "F2R1" };
    format!("{}\u{a0}&gt;\u{a0}{} {} ({sample}, {orientation})", s.from, s.to, percent(s.share))
}

/// A share with two digits that say something.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 4.0) as usize } else { 0 };
    format!("{percent:.digits$}%")
}
