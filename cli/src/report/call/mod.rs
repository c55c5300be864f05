//! `report.html`: a finished call as one page that needs nothing else, not even a network.

mod calls;
mod charts;
mod errors;
mod pair;
mod pictures;
#[cfg(test)]
mod tests;
mod timeline;
mod verdict;
mod words;

use std::fmt::Write;

use genuma_somatic::event::Class;
use genuma_somatic::ledger::Ledger;
use genuma_somatic::outcome::Outcome;
use genuma_work::clock::UnitCost;

use crate::report::BASE_STYLE;
use crate::report::markup::{bytes, counted, duration, escape, fill, grouped, inside_script, short};
pub use calls::with_pictures;
use charts::CLASSES;

/// The page, complete: style, plots, table and the pictures of the reads.
pub(crate) fn render(outcome: &Outcome) -> String {
    let shown = calls::show(outcome);
    fill(include_str!("page.html"), |name| match name {
        "style" => [BASE_STYLE, include_str!("style.css")].concat(),
        "script" => include_str!("script.js").to_string(),
        "title" => escape(&title(outcome)),
        "version" => escape(&outcome.version),
        "run" => run(outcome),
        "numbers" => numbers(outcome),
        "verdict" => pair::verdict(outcome),
        "facts" => pair::facts(outcome),
        "samples" => pictures::pictures(outcome),
        "spectrum" => pictures::spectrum(outcome),
        "units" => units(&outcome.units),
        "errors" => errors::lines(&outcome.errors, &outcome.samples),
        "ledger" => ledger(&outcome.ledger),
        "charts" => charts::charts(outcome),
        "timeline" => timeline::plots(&outcome.timeline),
        "classes" => classes(outcome),
        "tumours" => menu(tumours(outcome)),
        "columns" => columns(tumours(outcome)),
        "ofTumours" => if tumours(outcome).is_empty() { "tumour's" } else { "tumours'" }.to_owned(),
        "whichTumours" => if tumours(outcome).is_empty() { "tumour" } else { "tumours" }.to_owned(),
        "filtered" => grouped(outcome.calls.iter().filter(|c| !c.filters.is_empty()).count() as u64),
        "notes" => notes(&shown),
        "rows" => shown.rows.clone(),
        "pictures" => inside_script(&shown.pictures),
        _ => String::new(),
    })
}

/// Names of the tumours, if there are several.
fn tumours(outcome: &Outcome) -> &[String] {
    match outcome.samples.get(1..) {
        Some(tumours @ [_, _, ..]) => tumours,
        _ => &[],
    }
}

/// What the page calls a sample.
fn name_of(samples: &[String], sample: usize) -> &str {
    match sample {
        0 => "Normal",
        1 if samples.len() <= 2 => "Tumour",
        _ => samples.get(sample).map_or("", |name| name),
    }
}

/// The menu by which tumours have a change.
fn menu(tumours: &[String]) -> String {
    if tumours.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        r#"<label class="js">Tumours <select id="tumours"><option value="">all</option><option value="shared">shared</option><option value="all">in all of them</option><option value="private">in one only</option>"#,
    );
    for (t, name) in tumours.iter().enumerate() {
        let _ = write!(html, r#"<option value="{t}">in {}</option>"#, escape(name));
    }
    html.push_str("</select></label>\n");
    html
}

/// Heads of the columns of several tumours.
fn columns(tumours: &[String]) -> String {
    let mut html = String::new();
    for name in tumours {
        let name = escape(name);
        let _ = writeln!(
            html,
            r#"<th scope="col" class="n tumour-column" data-sort="number" title="{name}: share of its read pairs that carry the change, and how many, of those that tell">{name}</th>"#
        );
    }
    html
}

fn passed(outcome: &Outcome, class: Class) -> u64 {
    outcome.calls.iter().filter(|c| c.class == class && c.filters.is_empty()).count() as u64
}

fn title(outcome: &Outcome) -> String {
    let total: u64 = CLASSES.into_iter().map(|c| passed(outcome, c)).sum();
    counted(total, "somatic change")
}

/// What was run on what.
fn run(outcome: &Outcome) -> String {
    let mut html = String::new();
    let mut line = |name: &str, value: String| {
        let _ = write!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    };
    line("Command", format!("<code>{}</code>", escape(&outcome.command)));
    for (sample, files) in outcome.inputs.iter().enumerate() {
        let files: Vec<String> = files.iter().map(|f| escape(f)).collect();
        line(&escape(name_of(&outcome.samples, sample)), files.join("<br>"));
    }
    let sequences = counted(outcome.sequences.len() as u64, "sequence");
    let length = short(outcome.sequences.iter().map(|s| s.1).sum::<u64>() as f64);
    line(
        "Reference",
        match &outcome.reference {
            Some(path) => format!("{} ({sequences}, {length}bp)", escape(path)),
            None => format!("none: calls are placed on the {sequences} assembled from the normal"),
        },
    );
    line("k-mer length", outcome.k.to_string());
    html
}

/// The key numbers.
fn numbers(outcome: &Outcome) -> String {
    let mut html = String::new();
    let mut tile = |name: &str, value: String, more: String| {
        let _ = write!(html, "<div><dt>{name}</dt><dd><b>{value}</b>{more}</dd></div>");
    };
    let by_class = |classes: &[Class]| -> u64 { classes.iter().map(|&c| passed(outcome, c)).sum() };
    let mnvs = match by_class(&[Class::Mnv]) {
        0 => String::new(),
        n => format!(", and {}", counted(n, "MNV")),
    };
    tile("SNVs", grouped(by_class(&[Class::Snv])), format!("<span>PASS{mnvs}</span>"));
    tile("Indels", grouped(by_class(&[Class::Indel])), "<span>PASS, up to 49 bp</span>".into());
    let structural: Vec<String> = CLASSES[3..]
        .iter()
        .filter(|&&c| passed(outcome, c) > 0)
        .map(|&c| format!("{} {}", grouped(passed(outcome, c)), c.name()))
        .collect();
    let kinds = if structural.is_empty() { "PASS".to_string() } else { structural.join(" · ") };
    tile("Structural", grouped(by_class(&CLASSES[3..])), format!("<span>{kinds}</span>"));
    let genome = outcome.sequences.iter().map(|s| s.1).sum::<u64>();
    for (sample, kmer) in outcome.depths.kmer.iter().enumerate() {
        let name = &format!("{} depth", escape(name_of(&outcome.samples, sample)));
        let read = format!("{}bp read", short(outcome.bases[sample] as f64));
        match outcome.reference {
            Some(_) if genome > 0 => tile(
                name,
                format!("{:.0}×", outcome.bases[sample] as f64 / genome as f64),
                format!("<span>{read}; {:.0}× in k\u{2011}mers</span>", kmer),
            ),
            _ => tile(name, format!("{:.0}×", kmer), format!("<span>in k-mers; {read}</span>")),
        }
    }
    let sum = |of: fn(&UnitCost) -> f64| outcome.units.iter().map(of).sum::<f64>();
    let resumed = outcome.units.iter().any(|u| u.resumed);
    tile(
        "Time",
        duration(sum(|u| u.wall_s)),
        format!(
            "<span>{} of CPU{}</span>",
            duration(sum(|u| u.cpu_s)),
            if resumed { ", resumed" } else { "" }
        ),
    );
    let peak = outcome.units.iter().map(|u| u.peak_bytes).max().unwrap_or(0);
    tile("Peak memory", bytes(peak), "<span>resident</span>".into());
    html
}

/// The cost of each unit, one table row each.
fn units(units: &[UnitCost]) -> String {
    let mut html = String::new();
    for unit in units {
        let cores = if unit.wall_s > 0.0 { unit.cpu_s / unit.wall_s } else { 0.0 };
        let _ = write!(
            html,
            r#"<tr><th scope="row">{}</th><td class="n">{}</td><td class="n">{}</td><td class="n">{cores:.1}</td><td class="n">{}</td><td>{}</td></tr>"#,
            escape(&unit.name),
            duration(unit.wall_s),
            duration(unit.cpu_s),
            bytes(unit.peak_bytes),
            if unit.resumed { "taken from an earlier run" } else { "" }
        );
    }
    html
}

/// What each unit made and left out, one table row each.
fn ledger(ledger: &Ledger) -> String {
    let mut html = String::new();
    for line in &ledger.lines {
        let count = grouped(line.count);
        let [made, left_out] = if line.left_out { ["", &count] } else { [&count[..], ""] };
        let _ = write!(
            html,
            r#"<tr><td>{}</td><td>{}</td><td class="n">{made}</td><td class="n">{left_out}</td></tr>"#,
            escape(&line.stage),
            escape(&line.what),
        );
    }
    html
}

/// Options of the class menu.
fn classes(outcome: &Outcome) -> String {
    CLASSES
        .into_iter()
        .filter(|&class| outcome.calls.iter().any(|c| c.class == class))
        .map(|class| format!("<option>{}</option>", class.name()))
        .collect()
}

/// What the page leaves out, if anything.
fn notes(shown: &calls::Shown) -> String {
    let mut html = String::new();
    if shown.rows_left_out > 0 {
        let _ = write!(
            html,
            "<p class=\"note\">The table shows the best {}; {} more are in the VCF.</p>",
            counted(calls::MOST_ROWS as u64, "call"),
            grouped(shown.rows_left_out as u64)
        );
    }
    if shown.pictures_left_out > 0 {
        let _ = write!(
            html,
            "<p class=\"note\">The {} of the highest quality have a picture of their reads, PASS before filtered; \
             {} in this table have none.</p>",
            counted(calls::MOST_PICTURES as u64, "call"),
            grouped(shown.pictures_left_out as u64)
        );
    }
    html
}
