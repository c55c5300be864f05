//! The HTML page `report.html` of a finished call.

mod calls;
mod charts;
mod copy_number_chart;
mod errors;
mod sample_section;
mod sample_charts;
mod sequence_families;
mod signature_table;
mod target_gaps;
#[cfg(test)]
mod tests;
mod timeline;
mod assessment;
mod number_format;

use std::fmt::Write;

use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::event::EventClass;
use genuma_somatic::ledger::Ledger;
use genuma_somatic::result_warnings::ResultWarning;
use genuma_work::cost::UnitCost;
use genuma_work::quantity::{
    format_bytes, format_count_with_noun, format_duration, format_energy, format_with_si_prefix, group_thousands,
};
use genuma_work::timeline::Timeline;

use crate::BASE_STYLE;
use crate::markup::{escape_html, escape_script_json, fill_template};
use assessment::FindingLevel;
pub use calls::choose_calls_with_pileups;
use charts::SHOWN_EVENT_CLASSES;
use number_format::format_percent;

/// Returns the HTML page with style sheet, script, plots, table of calls and read pileups.
pub fn render_page(outcome: &CallSummary) -> String {
    let shown = calls::build_call_table_and_pileups(outcome);
    fill_template(include_str!("page.html"), |name| match name {
        "style" => [BASE_STYLE, include_str!("style.css")].concat(),
        "script" => include_str!("script.js").to_string(),
        "title" => escape_html(&page_title(outcome)),
        "heading" => escape_html(&page_heading(outcome)),
        "date" => escape_html(&outcome.date),
        "identity" => identity_lines(outcome),
        "version" => escape_html(&outcome.version),
        "run" => run_details(outcome),
        "numbers" => key_numbers(outcome),
        "gaps" => target_gaps::target_gap_list(outcome),
        "warnings" => warning_lines(outcome),
        "verdict" => sample_section::render_verdicts_and_problems(outcome),
        "findings" => sample_section::render_all_findings(outcome),
        "facts" => sample_section::sample_fact_rows(outcome),
        "families" => sequence_families::sequence_family_section(outcome),
        "familiesLink" => sequence_families::link_to_section(outcome).to_owned(),
        "samples" => sample_charts::sample_charts(outcome),
        "profile" => copy_number_chart::copy_number_profile_figure(outcome),
        "spectrum" => sample_charts::mutational_spectrum_figure(outcome),
        "signatures" => signature_table::signature_exposure_tables(outcome),
        "units" => unit_rows(&outcome.units, &outcome.timeline),
        "errors" => errors::error_rate_rows(&outcome.errors, &outcome.samples),
        "ledger" => ledger_rows(&outcome.ledger),
        "charts" => charts::kmer_spectrum_and_call_charts(outcome),
        "timeline" => timeline::timeline_plots(&outcome.timeline),
        "classes" => class_options(outcome),
        "tumours" => tumour_menu(several_tumours(outcome)),
        "columns" => tumour_column_heads(several_tumours(outcome)),
        "annotationColumns" => annotation_column_heads(outcome),
        "normalHead" => if outcome.has_normal { "Normal" } else { "" }.to_owned(),
        "ofTumours" => if several_tumours(outcome).is_empty() { "tumour's" } else { "tumours'" }.to_owned(),
        "whichTumours" => if several_tumours(outcome).is_empty() { "tumour" } else { "tumours" }.to_owned(),
        "filtered" => group_thousands(outcome.calls.iter().filter(|c| !c.filters.is_empty()).count() as u64),
        "notes" => truncation_notes(&shown),
        "rows" => shown.rows.clone(),
        "pictures" => escape_script_json(&shown.pictures),
        _ => String::new(),
    })
}

/// Names of the tumours if there are several, else an empty slice.
fn several_tumours(outcome: &CallSummary) -> &[String] {
    match outcome.samples.get(1..) {
        Some(tumours @ [_, _, ..]) => tumours,
        _ => &[],
    }
}

/// Name of a sample on the page.
fn sample_label(samples: &[String], sample: usize) -> &str {
    match sample {
        0 => "Normal",
        1 if samples.len() <= 2 => "Tumour",
        _ => samples.get(sample).map_or("", |name| name),
    }
}

/// Menu that filters the calls by the tumours that have them.
fn tumour_menu(tumours: &[String]) -> String {
    if tumours.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        r#"<label class="js">Tumours <select id="tumours"><option value="">all</option><option value="shared">shared</option><option value="all">in all of them</option><option value="private">in one only</option>"#,
    );
    for (t, name) in tumours.iter().enumerate() {
        let _ = write!(html, r#"<option value="{t}">in {}</option>"#, escape_html(name));
    }
    html.push_str("</select></label>\n");
    html
}

/// Table heads of the columns of several tumours.
fn tumour_column_heads(tumours: &[String]) -> String {
    let mut html = String::new();
    for name in tumours {
        let name = escape_html(name);
        let _ = writeln!(
            html,
            r#"<th scope="col" class="n tumour-column" data-sort="number" title="{name}: allele fraction, and read pairs with the change of all informative read pairs">{name}</th>"#
        );
    }
    html
}

/// Table heads of the columns of genes and known variants; empty without a GFF3 file and without such fields.
fn annotation_column_heads(outcome: &CallSummary) -> String {
    let genes = concat!(
        r#"<th scope="col" data-sort="text" title="Gene and consequence for the transcript that represents it">Gene</th>"#,
        "\n",
        r#"<th scope="col" data-sort="text" title="Change of the protein, or else of the transcript (HGVS)">Protein</th>"#,
        "\n"
    );
    let known = concat!(
        r#"<th scope="col" data-sort="text" title="Fields of the known variants (--known-info)">Known</th>"#,
        "\n"
    );
    [(outcome.annotation.is_some(), genes), (!outcome.known_info_fields.is_empty(), known)]
        .into_iter()
        .map(|(is_present, heads)| if is_present { heads } else { "" })
        .collect()
}

fn count_passed(outcome: &CallSummary, class: EventClass) -> u64 {
    outcome.calls.iter().filter(|c| c.class == class && c.filters.is_empty()).count() as u64
}

/// Number of calls that pass.
fn count_all_passed(outcome: &CallSummary) -> u64 {
    SHOWN_EVENT_CLASSES.into_iter().map(|class| count_passed(outcome, class)).sum()
}

/// Title of the page: the names of the tumours, and the heading.
fn page_title(outcome: &CallSummary) -> String {
    let names: Vec<&str> = outcome.samples.iter().skip(1).map(String::as_str).collect();
    format!("{}: {}", names.join(", "), page_heading(outcome))
}

/// The largest text of the page: the number of calls that pass, after the verdict if they cannot be trusted.
fn page_heading(outcome: &CallSummary) -> String {
    let total = format_count_with_noun(count_all_passed(outcome), "somatic change");
    let (level, verdict) = assessment::overall_verdict(&assessment::assess_sample_pair(outcome));
    if level == FindingLevel::Bad { format!("{verdict} ({total})") } else { total }
}

/// Names of the samples, assay, and name and MD5 sum of the reference.
fn identity_lines(outcome: &CallSummary) -> String {
    let mut html = String::new();
    let mut line = |name: &str, value: String| {
        let _ = write!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    };
    let normal = if outcome.has_normal { escape_html(&outcome.samples[0]) } else { "none".to_owned() };
    let tumours: Vec<String> = outcome.samples.iter().skip(1).map(|name| escape_html(name)).collect();
    line(if tumours.len() > 1 { "Tumours" } else { "Tumour" }, tumours.join(", "));
    line("Normal", normal);
    line("Assay", describe_assay(outcome));
    let identity = &outcome.reference_identity;
    let sequences = format_count_with_noun(outcome.sequences.len() as u64, "sequence");
    let reference = match (&outcome.reference, &identity.assembly) {
        (None, _) => format!("none: calls are placed on {sequences} assembled from the normal"),
        (Some(path), Some(assembly)) => format!("{} ({})", escape_html(assembly), escape_html(file_name(path))),
        (Some(path), None) => escape_html(file_name(path)),
    };
    line("Reference", reference);
    line("MD5 of the reference", format!("<code>{}</code>", escape_html(&identity.md5)));
    html
}

/// The last component of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The assay of the first tumour, the targets, and whether the call is tumour-only.
fn describe_assay(outcome: &CallSummary) -> String {
    let mut parts = vec![outcome.sample_summary.libraries.tumour.assay.assay.name().to_owned()];
    parts.push(match &outcome.targets {
        Some(targets) => format!(
            "{} of {} ({}bp)",
            format_count_with_noun(targets.targets, "target"),
            escape_html(file_name(&targets.path)),
            format_with_si_prefix(targets.bases as f64)
        ),
        None => "no targets given".to_owned(),
    });
    if !outcome.has_normal {
        parts.push("tumour only".to_owned());
    }
    parts.join(", ")
}

/// The warnings on the inputs and on the result.
fn warning_lines(outcome: &CallSummary) -> String {
    let line = |warning: &ResultWarning| {
        let head = if warning.withholds_results { "Do not trust these calls" } else { "Warning" };
        format!("<p class=\"warning\">{head}: {}</p>\n", escape_html(&warning.message))
    };
    outcome.warnings.iter().map(line).collect()
}

/// Command, input files, k-mer length, time and memory of the run.
fn run_details(outcome: &CallSummary) -> String {
    let mut html = String::new();
    let mut line = |name: &str, value: String| {
        let _ = write!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    };
    line("Command", format!("<code>{}</code>", escape_html(&outcome.command)));
    if !outcome.has_normal {
        line("Normal", "none: the reference takes its place".to_owned());
    }
    for (sample, files) in outcome.inputs.iter().enumerate().skip(usize::from(!outcome.has_normal)) {
        let files: Vec<String> = files.iter().map(|f| escape_html(f)).collect();
        line(&escape_html(sample_label(&outcome.samples, sample)), files.join("<br>"));
    }
    let sequences = format_count_with_noun(outcome.sequences.len() as u64, "sequence");
    let length = format_with_si_prefix(outcome.sequences.iter().map(|s| s.1).sum::<u64>() as f64);
    line(
        "Reference",
        match &outcome.reference {
            Some(path) => format!("{} ({sequences}, {length}bp)", escape_html(path)),
            None => format!("none: calls are placed on the {sequences} assembled from the normal"),
        },
    );
    if let Some(annotation) = &outcome.annotation {
        let genes = format_count_with_noun(annotation.genes, "gene");
        let transcripts = format_count_with_noun(annotation.transcripts, "transcript");
        line("Genes", format!("{} ({genes}, {transcripts})", escape_html(&annotation.path)));
    }
    if let Some(targets) = &outcome.targets {
        let merged = match targets.intervals - targets.targets {
            0 => String::new(),
            n => format!("; {} merged", format_count_with_noun(n, "interval")),
        };
        line(
            "Targets",
            format!(
                "{} ({}, {}bp, extended by {} bp on both sides{merged})",
                escape_html(&targets.path),
                format_count_with_noun(targets.targets, "target"),
                format_with_si_prefix(targets.bases as f64),
                targets.padding_bp
            ),
        );
    }
    line("k-mer length", outcome.k.to_string());
    let sum = |of: fn(&UnitCost) -> f64| format_duration(outcome.units.iter().map(of).sum::<f64>());
    let resumed = if outcome.units.iter().any(|unit| unit.resumed) { ", resumed" } else { "" };
    line("Time", format!("{}; {} of CPU time{resumed}", sum(|unit| unit.wall_s), sum(|unit| unit.cpu_s)));
    let peak = outcome.units.iter().map(|unit| unit.peak_bytes).max().unwrap_or(0);
    line("Peak memory", format!("{} resident", format_bytes(peak)));
    html
}

/// Tiles with the key numbers.
fn key_numbers(outcome: &CallSummary) -> String {
    let mut html = String::new();
    let mut tile = |name: &str, value: String, more: String| {
        let _ = write!(html, "<div><dt>{name}</dt><dd><b>{value}</b>{more}</dd></div>");
    };
    let by_class = |classes: &[EventClass]| -> u64 { classes.iter().map(|&c| count_passed(outcome, c)).sum() };
    let mnvs = match by_class(&[EventClass::Mnv]) {
        0 => String::new(),
        n => format!(", and {}", format_count_with_noun(n, "MNV")),
    };
    tile("SNVs", group_thousands(by_class(&[EventClass::Snv])), format!("<span>PASS{mnvs}</span>"));
    tile("Indels", group_thousands(by_class(&[EventClass::Indel])), "<span>PASS, up to 49 bp</span>".into());
    let structural: Vec<String> = SHOWN_EVENT_CLASSES[3..]
        .iter()
        .filter(|&&c| count_passed(outcome, c) > 0)
        .map(|&c| format!("{} {}", group_thousands(count_passed(outcome, c)), c.class_name()))
        .collect();
    let kinds = if structural.is_empty() { "PASS".to_string() } else { structural.join(" · ") };
    tile("Structural", group_thousands(by_class(&SHOWN_EVENT_CLASSES[3..])), format!("<span>{kinds}</span>"));
    if let Some(burden) = outcome.sample_summary.burden {
        let callable = outcome.targets.as_ref().and_then(|targets| targets.callable_bases.first());
        let of = callable.map_or_else(String::new, |&n| format!(" of {}bp", format_with_si_prefix(n as f64)));
        tile(
            "Burden",
            format!("{:.1}", burden.value),
            format!("<span>SNVs and indels per callable Mbp{of} ({:.1}–{:.1})</span>", burden.low, burden.high),
        );
    }
    let genome = outcome.sequences.iter().map(|s| s.1).sum::<u64>();
    for (sample, kmer) in outcome.depths.kmer.iter().enumerate().skip(usize::from(!outcome.has_normal)) {
        let name = &format!("{} depth", escape_html(sample_label(&outcome.samples, sample)));
        let read = format!("{}bp sequenced", format_with_si_prefix(outcome.bases[sample] as f64));
        if let Some(on_target) = outcome.targets.as_ref().and_then(|targets| targets.samples.get(sample)) {
            tile(
                &format!("{name} on target"),
                format!("{:.0}×", on_target.mean_depth),
                format!(
                    "<span>{} of the bases 20× or more; {} not covered; {read}</span>",
                    format_percent(on_target.share_at_20x),
                    format_count_with_noun(on_target.uncovered_targets, "target")
                ),
            );
            continue;
        }
        match outcome.reference {
            Some(_) if genome > 0 => tile(
                name,
                format!("{:.0}×", outcome.bases[sample] as f64 / genome as f64),
                format!("<span>{read}; {:.0}× in k\u{2011}mers</span>", kmer),
            ),
            _ => tile(name, format!("{:.0}×", kmer), format!("<span>in k-mers; {read}</span>")),
        }
    }
    html
}

/// Table rows with time, CPU time and memory of each unit.
fn unit_rows(units: &[UnitCost], timeline: &Timeline) -> String {
    let mut html = String::new();
    for unit in units {
        let cores = if unit.wall_s > 0.0 { unit.cpu_s / unit.wall_s } else { 0.0 };
        let energy = timeline::unit_energy_j(timeline, &unit.name).map_or_else(|| "–".to_owned(), format_energy);
        let _ = write!(
            html,
            r#"<tr><th scope="row">{}</th><td class="n">{}</td><td class="n">{}</td><td class="n">{cores:.1}</td><td class="n">{energy}</td><td class="n">{}</td><td>{}</td></tr>"#,
            escape_html(&unit.name),
            format_duration(unit.wall_s),
            format_duration(unit.cpu_s),
            format_bytes(unit.peak_bytes),
            if unit.resumed { "resumed from an earlier run" } else { "" }
        );
    }
    html
}

/// Table rows of the ledger: what each stage produced and skipped.
fn ledger_rows(ledger: &Ledger) -> String {
    let mut html = String::new();
    for line in &ledger.lines {
        let count = group_thousands(line.count);
        let [produced, skipped] = if line.skipped { ["", &count] } else { [&count[..], ""] };
        let _ = write!(
            html,
            r#"<tr><td>{}</td><td>{}</td><td class="n">{produced}</td><td class="n">{skipped}</td></tr>"#,
            escape_html(&line.stage),
            escape_html(&line.description),
        );
    }
    html
}

/// Options of the menu that filters by class.
fn class_options(outcome: &CallSummary) -> String {
    SHOWN_EVENT_CLASSES
        .into_iter()
        .filter(|&class| outcome.calls.iter().any(|c| c.class == class))
        .map(|class| format!("<option>{}</option>", class.class_name()))
        .collect()
}

/// Notes on calls and read pileups that are not on the page because there are too many.
fn truncation_notes(shown: &calls::CallTableAndPileups) -> String {
    let mut html = String::new();
    if shown.rows_left_out > 0 {
        let _ = write!(
            html,
            "<p class=\"note\">The table shows the best {}; {} more are in the VCF.</p>",
            format_count_with_noun(calls::MAX_CALL_TABLE_ROWS as u64, "call"),
            group_thousands(shown.rows_left_out as u64)
        );
    }
    if shown.pileups_left_out > 0 {
        let _ = write!(
            html,
            "<p class=\"note\">The {} that need a look most have a picture of their reads: PASS of the lowest quality, and \
             filtered of the highest; {} in this table have none.</p>",
            format_count_with_noun(shown.num_pileups as u64, "call"),
            group_thousands(shown.pileups_left_out as u64)
        );
    }
    html
}
