//! The table of calls, and the read pileups of the calls as compact JSON, which the script of the page draws.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use genuma_annotate::hgvs::shorten_protein_change;
use genuma_somatic::call_summary::{CallSummary, EventPileup, PileupRow, ReportedEvent};
use genuma_somatic::event::EventClass;
use genuma_somatic::genotype::{AlleleSupport, Filter, TumourSupport};
use genuma_somatic::vcf_record::{GeneEffect, KnownInfoValue};
use genuma_work::quantity::group_thousands;
use serde_json::{Value, json};

use crate::markup::escape_html;

/// Maximum number of calls in the table of the report. The VCF has all calls.
pub const MAX_CALL_TABLE_ROWS: usize = 10_000;
/// Maximum number of read pileups in the report.
pub const MAX_READ_PILEUPS: usize = 2_000;

/// Number of read pileups that are reserved for filtered calls if there are too many calls. Chosen: a quarter of all.
const FILTERED_PILEUPS: usize = MAX_READ_PILEUPS / 4;
/// Size of the table and the read pileups together, in bytes, beyond which no more read pileups are added. Chosen: the
/// page is then below 10 MB, small enough for browsers and e-mail.
const MAX_TABLE_AND_PILEUP_BYTES: usize = 9_500_000;

/// The table of calls and the read pileups of the report.
pub struct CallTableAndPileups {
    /// HTML of the table rows, sorted by position on the reference.
    pub rows: String,
    /// JSON object with the read pileups; the keys are indices of calls. Calls with an empty read pileup are left out.
    pub pictures: String,
    /// Number of calls that the table lacks because there are too many.
    pub rows_left_out: usize,
    /// Number of read pileups, with the empty ones.
    pub num_pileups: usize,
    /// Number of calls in the table that have no read pileup because there are too many.
    pub pileups_left_out: usize,
}

/// Returns the indices of the calls from the best to the worst: PASS before filtered calls, then by quality.
fn rank_calls(calls: &[ReportedEvent]) -> Vec<usize> {
    let mut best: Vec<usize> = (0..calls.len()).collect();
    best.sort_by(|&a, &b| {
        let rank = |i: usize| !calls[i].filters.is_empty();
        rank(a).cmp(&rank(b)).then(calls[b].quality.total_cmp(&calls[a].quality)).then(a.cmp(&b))
    });
    best
}

/// Returns the indices of the calls that the table contains, sorted by position.
fn calls_in_table(calls: &[ReportedEvent]) -> Vec<usize> {
    let mut best = rank_calls(calls);
    best.truncate(MAX_CALL_TABLE_ROWS);
    best.sort_unstable();
    best
}

/// Chooses the calls of the table that get a read pileup. Returns their indices, the most doubtful first: PASS calls by
/// increasing quality, then filtered calls by decreasing quality. If there are too many calls, filtered calls get
/// [`FILTERED_PILEUPS`] of the pileups, or more if few calls pass.
pub fn choose_calls_with_pileups(calls: &[ReportedEvent]) -> Vec<usize> {
    let (mut passed, mut filtered): (Vec<usize>, Vec<usize>) =
        calls_in_table(calls).into_iter().partition(|&n| calls[n].filters.is_empty());
    passed.sort_by(|&a, &b| calls[a].quality.total_cmp(&calls[b].quality).then(a.cmp(&b)));
    filtered.sort_by(|&a, &b| calls[b].quality.total_cmp(&calls[a].quality).then(a.cmp(&b)));
    let of_filtered = filtered.len().min(FILTERED_PILEUPS.max(MAX_READ_PILEUPS.saturating_sub(passed.len())));
    passed.truncate(MAX_READ_PILEUPS - of_filtered);
    filtered.truncate(of_filtered);
    passed.append(&mut filtered);
    passed
}

/// Builds the table of the best calls, and read pileups for those of [`choose_calls_with_pileups`], as far as the page
/// has room.
pub fn build_call_table_and_pileups(outcome: &CallSummary) -> CallTableAndPileups {
    let calls = &outcome.calls;
    let best = calls_in_table(calls);
    let annotation_cells = |call: &ReportedEvent| {
        let genes = outcome.annotation.as_ref().map_or_else(String::new, |_| gene_cells(call.gene.as_ref()));
        let known = if outcome.known_info_fields.is_empty() { String::new() } else { known_info_cell(call) };
        genes + &known
    };
    let rows: String = best.iter().map(|&n| call_row(n, &calls[n], &annotation_cells(&calls[n]))).collect();
    let mut left_bytes = MAX_TABLE_AND_PILEUP_BYTES.saturating_sub(rows.len());
    let mut pictures: BTreeMap<String, Value> = BTreeMap::new();
    let drawn = choose_calls_with_pileups(calls);
    let mut num_pileups = drawn.len();
    for (number, &n) in drawn.iter().enumerate() {
        let picture = pileup_to_json(&calls[n].picture);
        let Some(left) = left_bytes.checked_sub(picture.to_string().len()) else {
            num_pileups = number;
            break;
        };
        left_bytes = left;
        if !calls[n].picture.normal.is_empty() {
            pictures.insert(n.to_string(), picture);
        }
    }
    CallTableAndPileups {
        rows,
        pictures: json!(pictures).to_string(),
        rows_left_out: calls.len() - best.len(),
        num_pileups,
        pileups_left_out: best.len() - num_pileups,
    }
}

/// Returns the HTML row of a call. `annotation_cells`: HTML of the columns with genes and known variants.
fn call_row(n: usize, call: &ReportedEvent, annotation_cells: &str) -> String {
    let mut html = String::new();
    let class = if call.filters.is_empty() { "call" } else { "call filtered" };
    let has: Vec<&str> = call.tumours.iter().map(|own| if own.has { "1" } else { "0" }).collect();
    let has = if has.is_empty() { String::new() } else { format!(r#" data-has="{}""#, has.concat()) };
    let _ = write!(html, r#"<tr class="{class}" id="call-{}" data-n="{n}"{has}>"#, escape_html(&call.id));
    let place = format!("{}:{}", call.chrom, group_thousands(call.pos));
    let _ = write!(
        html,
        r#"<td><button class="open" aria-expanded="false" aria-label="Reads of {0}"></button></td><th scope="row" data-v="{n}">{0}</th>"#,
        escape_html(&place)
    );
    let _ = write!(html, r#"<td><i class="swatch {}"></i>{}</td>"#, class_style(call.class), call.class.class_name());
    let _ = write!(html, "<td>{}</td>{annotation_cells}", describe_change(call));
    let _ = write!(html, r#"<td class="n" data-v="{0:.3}">{0:.0}</td>"#, call.quality);
    html.push_str(&fraction_cell(&call.tumour));
    for support in [&call.tumour, &call.normal] {
        html.push_str(&support_cell(support));
    }
    if call.filters.is_empty() {
        html.push_str(r#"<td><span class="pass">PASS</span></td>"#);
    } else {
        html.push_str("<td>");
        for filter in &call.filters {
            let _ = write!(
                html,
                r#"<span class="filter" title="{}">{}</span> "#,
                escape_html(describe_filter(filter)),
                escape_html(filter)
            );
        }
        html.push_str("</td>");
    }
    let copies: String = call.tumours.iter().map(|own| format!(" {}", own.support.copies)).collect();
    let _ = write!(
        html,
        r#"<td class="id" data-contig="{}" data-copies="{} {}{copies}">{}</td>"#,
        escape_html(&call.contig),
        call.normal.copies,
        call.tumour.copies,
        escape_html(&call.id)
    );
    for own in &call.tumours {
        html.push_str(&tumour_cell(own));
    }
    html.push_str("</tr>\n");
    html
}

/// Returns the table cells with the gene and the change of the protein.
fn gene_cells(gene: Option<&GeneEffect>) -> String {
    let Some(gene) = gene else { return "<td></td><td></td>".to_owned() };
    let short = gene.hgvs_p.as_deref().map(shorten_protein_change);
    let change = short.as_deref().or(gene.hgvs_c.as_deref()).unwrap_or_default();
    let names: Vec<&str> = [gene.hgvs_c.as_deref(), gene.hgvs_p.as_deref()].into_iter().flatten().collect();
    format!(
        r#"<td class="gene" title="{}">{} <span class="of">{}</span></td><td title="{} {}">{}</td>"#,
        escape_html(&gene.transcript),
        escape_html(&gene.gene),
        escape_html(&gene.consequence.replace('&', ", ").replace('_', " ")),
        escape_html(&gene.transcript),
        escape_html(&names.join(" ")),
        escape_html(change)
    )
}

/// Returns the table cell with the INFO fields of known variants.
fn known_info_cell(call: &ReportedEvent) -> String {
    const MAX_CHARACTERS: usize = 32;
    let field = |KnownInfoValue { id, value }: &KnownInfoValue| {
        let text = value.replace("%20", " ");
        // Blanks, so that lines can end at words.
        let words = text.replace('_', " ");
        let shown: String = words.chars().take(MAX_CHARACTERS).collect();
        let more = if shown.len() < text.len() { "…" } else { "" };
        format!(
            r#"<span title="{0}={1}"><span class="of">{0}</span> {2}{more}</span>"#,
            escape_html(id),
            escape_html(&text),
            escape_html(&shown)
        )
    };
    format!(r#"<td class="known">{}</td>"#, call.known_info.iter().map(field).collect::<Vec<_>>().join(" "))
}

/// Returns the table cell with an allele fraction and its 95 % interval, as `0.47 (0.32–0.62)`.
fn fraction_cell(support: &AlleleSupport) -> String {
    let fraction = support.allele_fraction();
    let interval = support.allele_fraction_estimate().map_or_else(String::new, |estimate| {
        format!(" <span class=\"of\">({:.2}–\u{2060}{:.2})</span>", estimate.low, estimate.high)
    });
    format!(
        r#"<td class="n" data-v="{fraction:.4}"><i class="share" style="--share:{fraction:.3}"></i>{fraction:.2}{interval}</td>"#
    )
}

/// Returns the table cell with a call's allele fraction and support in one of several tumours, as `0.47 18 / 38`. It is
/// faded if this tumour does not have the change.
fn tumour_cell(own: &TumourSupport) -> String {
    let (support, fraction) = (&own.support, own.support.allele_fraction());
    let title = support.allele_fraction_estimate().map_or_else(String::new, |estimate| {
        format!(r#" title="95 % interval {:.2} to {:.2}""#, estimate.low, estimate.high)
    });
    format!(
        r#"<td class="n{}"{title} data-v="{fraction:.4}"><i class="share" style="--share:{fraction:.3}"></i>{fraction:.2} <span class="of" data-pairs="{1} {2}">{1} / {2}</span></td>"#,
        if own.has { "" } else { " absent" },
        support.alternative,
        support.num_informative_molecules(),
    )
}

/// Returns the table cell with the support of a call in one sample, as `18 / 38`: read pairs with the change, of all
/// informative read pairs.
fn support_cell(support: &AlleleSupport) -> String {
    format!(
        r#"<td class="n" data-v="{0}">{0} <span class="of" data-pairs="{2} {3}">/ {1}</span></td>"#,
        group_thousands(support.alternative.into()),
        group_thousands(support.num_informative_molecules().into()),
        support.alternative,
        support.num_informative_molecules()
    )
}

fn describe_filter(filter: &str) -> &'static str {
    Filter::ALL_FILTERS.iter().find(|f| f.1 == filter).map_or("", |f| f.2)
}

/// Returns the CSS class for a class of calls.
fn class_style(class: EventClass) -> &'static str {
    match class {
        EventClass::Snv | EventClass::Mnv => "snv",
        EventClass::Indel => "indel",
        _ => "sv",
    }
}

/// Describes the change of a call in a few words, as HTML.
fn describe_change(call: &ReportedEvent) -> String {
    let [reference, alternative] = &call.alleles;
    let base = |allele: &str| !allele.is_empty() && allele.bytes().all(|b| b.is_ascii_alphabetic());
    let title = |text: String| {
        format!(r#"<span title="{} &gt; {}">{text}</span>"#, escape_html(reference), escape_html(alternative))
    };
    if let Some((chrom, pos)) = &call.other {
        let partner = format!("to {}:{}", escape_html(chrom), group_thousands(*pos));
        let bases = group_thousands(pos.abs_diff(call.pos));
        return match call.class {
            _ if *chrom != call.chrom => partner,
            EventClass::Del => format!("−{bases} bp, {partner}"),
            EventClass::Dup => format!("+{bases} bp, {partner}"),
            _ => format!("{partner} ({bases} bp)"),
        };
    }
    if !base(reference) || !base(alternative) {
        return escape_html(alternative);
    }
    let shared = reference.bytes().zip(alternative.bytes()).take_while(|(a, b)| a == b).count();
    let (gone, new) = (&reference[shared..], &alternative[shared..]);
    match (gone.len(), new.len()) {
        (0, n) => title(format!("+{} bp <code>{}</code>", group_thousands(n as u64), abbreviate_bases(new))),
        (n, 0) => title(format!("−{} bp <code>{}</code>", group_thousands(n as u64), abbreviate_bases(gone))),
        _ => title(format!(
            "<code>{}</code> → <code>{}</code>",
            abbreviate_bases(reference),
            abbreviate_bases(alternative)
        )),
    }
}

/// Shortens a long sequence by leaving out its middle. `bases` must be ASCII letters.
fn abbreviate_bases(bases: &str) -> String {
    match bases.len() {
        0..=16 => bases.to_string(),
        n => format!("{}…{}", &bases[..8], &bases[n - 6..]),
    }
}

/// Encodes a read pileup as `[normal, tumour, from, to, [[flags, from, cells], …]]`: the sequences of both alleles, the
/// range of the change, and the rows. `flags` is the sum of 1 for a read of a tumour, 2 × allele (1 of the normal, 2 of
/// the tumour, 0 unclear), 8 for a forward read, 16 for a duplicate, and 32 × number of the tumour, from 0.
fn pileup_to_json(picture: &EventPileup) -> Value {
    let flags = |row: &PileupRow| {
        let allele = match row.supports_tumour_allele {
            None => 0,
            Some(false) => 1,
            Some(true) => 2,
        };
        let tumour = u32::from(row.sample).saturating_sub(1);
        let sample = u32::from(row.sample != 0) + 32 * tumour;
        sample + 2 * allele + 8 * u32::from(row.forward) + 16 * u32::from(row.is_duplicate)
    };
    let mut rows: Vec<&PileupRow> = picture.rows.iter().collect();
    rows.sort_by_key(|r| Reverse(r.supports_tumour_allele));
    rows.sort_by_key(|r| r.sample);
    let rows: Vec<Value> = rows.iter().map(|r| json!([flags(r), r.start, run_length_encode_dots(&r.cells)])).collect();
    json!([picture.normal, picture.tumour, picture.change.0, picture.change.1, rows])
}

/// Replaces runs of three or more dots by their length: `..A......` becomes `..A6`.
fn run_length_encode_dots(cells: &str) -> String {
    let mut out = String::new();
    let mut dots = 0;
    let flush = |out: &mut String, dots: usize| match dots {
        0..=2 => out.extend(std::iter::repeat_n('.', dots)),
        _ => out.push_str(&dots.to_string()),
    };
    for cell in cells.chars() {
        if cell == '.' {
            dots += 1;
        } else {
            flush(&mut out, dots);
            dots = 0;
            out.push(cell);
        }
    }
    flush(&mut out, dots);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_packed() {
        assert_eq!(run_length_encode_dots("..A......-…"), "..A6-…");
        assert_eq!(run_length_encode_dots(&".".repeat(121)), "121");
        assert_eq!(run_length_encode_dots(""), "");
    }
}
