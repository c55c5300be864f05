//! The list of targets that nearly no reads cover.

use std::fmt::Write;

use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::target_depth::MIN_COVERED_DEPTH;
use genuma_somatic::target_gaps::TargetGap;
use genuma_work::quantity::{format_count_with_noun, group_thousands};

use super::sample_label;
use crate::markup::escape_html;

/// Maximum number of targets in the list. `targets.tsv` has all.
const MAX_LISTED_GAPS: usize = 200;
/// Number of targets that the summary line names.
const GAPS_IN_LINE: usize = 3;

/// Returns the HTML list of targets with nearly no coverage: a line with the first ones, which opens a table. Empty
/// without such targets.
pub(super) fn target_gap_list(outcome: &CallSummary) -> String {
    let gaps = &outcome.target_gaps;
    if gaps.is_empty() {
        return String::new();
    }
    let first: Vec<String> = gaps.iter().take(GAPS_IN_LINE).map(short_name).collect();
    let more = if gaps.len() > GAPS_IN_LINE { " …" } else { "" };
    let mut html = format!(
        "<details class=\"gaps\"><summary><b>{}</b> with a depth below {MIN_COVERED_DEPTH} in a sample: {}{more}</summary>\n",
        format_count_with_noun(gaps.len() as u64, "target"),
        first.join(", ")
    );
    html.push_str("<div class=\"wide\"><table><thead><tr><th scope=\"col\">Target</th><th scope=\"col\">Name</th><th scope=\"col\">Genes</th>");
    let samples = usize::from(!outcome.has_normal)..outcome.samples.len();
    for sample in samples.clone() {
        let name = escape_html(sample_label(&outcome.samples, sample));
        let _ = write!(html, "<th scope=\"col\" class=\"n\">{name} depth</th>");
    }
    html.push_str("</tr></thead><tbody>\n");
    for gap in gaps.iter().take(MAX_LISTED_GAPS) {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>",
            interval(gap),
            escape_html(&gap.name),
            escape_html(&gap.genes.join(", "))
        );
        for depth in samples.clone().filter_map(|sample| gap.depths.get(sample)) {
            let _ = write!(html, "<td class=\"n\">{depth:.1}</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    if let Some(left_out @ 1..) = gaps.len().checked_sub(MAX_LISTED_GAPS) {
        let _ = writeln!(html, "<p class=\"note\">{} more are in targets.tsv.</p>", group_thousands(left_out as u64));
    }
    html + "</details>\n"
}

/// The gene of a target, or else its name, or else its interval.
fn short_name(gap: &TargetGap) -> String {
    match (gap.genes.first(), gap.name.as_str()) {
        (Some(gene), _) => format!("{} ({})", escape_html(gene), interval(gap)),
        (None, "") => interval(gap),
        (None, name) => format!("{} ({})", escape_html(name), interval(gap)),
    }
}

fn interval(gap: &TargetGap) -> String {
    format!("{}:{}–{}", escape_html(&gap.chrom), group_thousands(gap.start), group_thousands(gap.end))
}
