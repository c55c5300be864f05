//! The table of calls, and their pictures as compact JSON that the page's script draws.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use genuma_somatic::event::Class;
use genuma_somatic::genotype::{Filter, Own, Support};
use genuma_somatic::outcome::{Outcome, Picture, Reported, Row};
use serde_json::{Value, json};

use crate::report::markup::{escape, grouped};

/// Most rows of the table. The VCF has all calls.
pub(crate) const MOST_ROWS: usize = 10_000;
/// Most pictures embedded.
pub(crate) const MOST_PICTURES: usize = 2_000;

/// What the page shows of the calls.
pub(crate) struct Shown {
    /// Table rows, by position.
    pub(crate) rows: String,
    /// Pictures by the number of their row, JSON.
    pub(crate) pictures: String,
    /// Calls that the table leaves out.
    pub(crate) rows_left_out: usize,
    /// Calls in the table without a picture because there are too many.
    pub(crate) pictures_left_out: usize,
}

/// Calls by index, PASS before filtered, the surest first.
fn best(calls: &[Reported]) -> Vec<usize> {
    let mut best: Vec<usize> = (0..calls.len()).collect();
    best.sort_by(|&a, &b| {
        let rank = |i: usize| !calls[i].filters.is_empty();
        rank(a).cmp(&rank(b)).then(calls[b].quality.total_cmp(&calls[a].quality)).then(a.cmp(&b))
    });
    best
}

/// The calls, by index, whose reads are shown: no others' need be drawn.
pub fn with_pictures(calls: &[Reported]) -> Vec<usize> {
    let mut drawn = best(calls);
    drawn.truncate(MOST_PICTURES);
    drawn
}

/// Writes the rows of the best calls, PASS before filtered, and the pictures of the best of them.
pub(crate) fn show(outcome: &Outcome) -> Shown {
    let calls = &outcome.calls;
    let (mut best, drawn) = (best(calls), with_pictures(calls));
    best.truncate(MOST_ROWS);
    best.sort_unstable();
    let rows = best.iter().map(|&n| row(n, &calls[n])).collect();
    let pictures: BTreeMap<String, Value> = drawn
        .iter()
        .filter(|&&n| !calls[n].picture.normal.is_empty())
        .map(|&n| (n.to_string(), picture(&calls[n].picture)))
        .collect();
    Shown {
        rows,
        pictures: json!(pictures).to_string(),
        rows_left_out: calls.len() - best.len(),
        pictures_left_out: best.len() - drawn.len(),
    }
}

fn row(n: usize, call: &Reported) -> String {
    let mut html = String::new();
    let class = if call.filters.is_empty() { "call" } else { "call filtered" };
    let has: Vec<&str> = call.tumours.iter().map(|own| if own.has { "1" } else { "0" }).collect();
    let has = if has.is_empty() { String::new() } else { format!(r#" data-has="{}""#, has.concat()) };
    let _ = write!(html, r#"<tr class="{class}" id="call-{}" data-n="{n}"{has}>"#, escape(&call.id));
    let place = format!("{}:{}", call.chrom, grouped(call.pos));
    let _ = write!(
        html,
        r#"<td><button class="open" aria-expanded="false" aria-label="Reads of {0}"></button></td><th scope="row" data-v="{n}">{0}</th>"#,
        escape(&place)
    );
    let _ = write!(html, r#"<td><i class="swatch {}"></i>{}</td>"#, style(call.class), call.class.name());
    let _ = write!(html, "<td>{}</td>", change(call));
    let _ = write!(html, r#"<td class="n" data-v="{0:.3}">{0:.0}</td>"#, call.quality);
    let fraction = call.tumour.fraction();
    let _ = write!(
        html,
        r#"<td class="n" data-v="{fraction:.4}"><i class="share" style="--share:{fraction:.3}"></i>{fraction:.2}</td>"#
    );
    for support in [&call.tumour, &call.normal] {
        html.push_str(&supporting(support));
    }
    if call.filters.is_empty() {
        html.push_str(r#"<td><span class="pass">PASS</span></td>"#);
    } else {
        html.push_str("<td>");
        for filter in &call.filters {
            let _ = write!(
                html,
                r#"<span class="filter" title="{}">{}</span> "#,
                escape(described(filter)),
                escape(filter)
            );
        }
        html.push_str("</td>");
    }
    let copies: String = call.tumours.iter().map(|own| format!(" {}", own.support.copies)).collect();
    let _ = write!(
        html,
        r#"<td class="id" data-contig="{}" data-copies="{} {}{copies}">{}</td>"#,
        escape(&call.contig),
        call.normal.copies,
        call.tumour.copies,
        escape(&call.id)
    );
    for own in &call.tumours {
        html.push_str(&of_tumour(own));
    }
    html.push_str("</tr>\n");
    html
}

/// `0.47 18 / 38` of one of several tumours; faded where it has not the change.
fn of_tumour(own: &Own) -> String {
    let (support, fraction) = (&own.support, own.support.fraction());
    format!(
        r#"<td class="n{}" data-v="{fraction:.4}"><i class="share" style="--share:{fraction:.3}"></i>{fraction:.2} <span class="of" data-pairs="{1} {2}">{1} / {2}</span></td>"#,
        if own.has { "" } else { " absent" },
        support.alternative,
        support.depth(),
    )
}

/// `18 / 38`: pairs with the change of all that tell.
fn supporting(support: &Support) -> String {
    format!(
        r#"<td class="n" data-v="{0}">{0} <span class="of" data-pairs="{2} {3}">/ {1}</span></td>"#,
        grouped(support.alternative.into()),
        grouped(support.depth().into()),
        support.alternative,
        support.depth()
    )
}

fn described(filter: &str) -> &'static str {
    Filter::ALL.iter().find(|f| f.1 == filter).map_or("", |f| f.2)
}

/// Class of the style sheet.
fn style(class: Class) -> &'static str {
    match class {
        Class::Snv | Class::Mnv => "snv",
        Class::Indel => "indel",
        _ => "sv",
    }
}

/// What changed, in a few words.
fn change(call: &Reported) -> String {
    let [reference, alternative] = &call.alleles;
    let base = |allele: &str| !allele.is_empty() && allele.bytes().all(|b| b.is_ascii_alphabetic());
    let title = |text: String| {
        format!(r#"<span title="{} &gt; {}">{text}</span>"#, escape(reference), escape(alternative))
    };
    if let Some((chrom, pos)) = &call.other {
        let there = format!("to {}:{}", escape(chrom), grouped(*pos));
        let bases = grouped(pos.abs_diff(call.pos));
        return match call.class {
            _ if *chrom != call.chrom => there,
            Class::Del => format!("−{bases} bp, {there}"),
            Class::Dup => format!("+{bases} bp, {there}"),
            _ => format!("{there} ({bases} bp)"),
        };
    }
    if !base(reference) || !base(alternative) {
        return escape(alternative);
    }
    let shared = reference.bytes().zip(alternative.bytes()).take_while(|(a, b)| a == b).count();
    let (gone, new) = (&reference[shared..], &alternative[shared..]);
    match (gone.len(), new.len()) {
        (0, n) => title(format!("+{} bp <code>{}</code>", grouped(n as u64), shortened(new))),
        (n, 0) => title(format!("−{} bp <code>{}</code>", grouped(n as u64), shortened(gone))),
        _ => {
            title(format!("<code>{}</code> → <code>{}</code>", shortened(reference), shortened(alternative)))
        }
    }
}

/// Bases, the middle of long ones left out. `bases` are ASCII letters.
fn shortened(bases: &str) -> String {
    match bases.len() {
        0..=16 => bases.to_string(),
        n => format!("{}…{}", &bases[..8], &bases[n - 6..]),
    }
}

/// `[normal, tumour, from, to, [[flags, from, cells], …]]`; flags: 1 unless of the normal + 2·(1 normal's allele, 2 tumour's, 0
/// unclear) + 8·forward + 16·copy + 32·(number of the tumour, from 0).
fn picture(picture: &Picture) -> Value {
    let flags = |row: &Row| {
        let allele = match row.alternative {
            None => 0,
            Some(false) => 1,
            Some(true) => 2,
        };
        let tumour = u32::from(row.sample).saturating_sub(1);
        let sample = u32::from(row.sample != 0) + 32 * tumour;
        sample + 2 * allele + 8 * u32::from(row.forward) + 16 * u32::from(row.copy)
    };
    let mut rows: Vec<&Row> = picture.rows.iter().collect();
    rows.sort_by_key(|r| Reverse(r.alternative));
    rows.sort_by_key(|r| r.sample);
    let rows: Vec<Value> = rows.iter().map(|r| json!([flags(r), r.from, packed(&r.cells)])).collect();
    json!([picture.normal, picture.tumour, picture.change.0, picture.change.1, rows])
}

/// Runs of three dots or more as their number: `..A......` → `..A6`.
fn packed(cells: &str) -> String {
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
        assert_eq!(packed("..A......-…"), "..A6-…");
        assert_eq!(packed(&".".repeat(121)), "121");
        assert_eq!(packed(""), "");
    }
}
