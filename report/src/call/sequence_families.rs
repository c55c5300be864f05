//! The table of the sequence families to which filtered calls belong.

use std::fmt::Write;

use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::sequence_families::{FamilyLocus, SequenceFamily};
use genuma_work::quantity::{format_count_with_noun, group_thousands};

use crate::markup::escape_html;

/// Maximum number of families in the table. `summary.json` has all.
const MAX_SHOWN_FAMILIES: usize = 20;

/// Returns the line of the table of contents that leads to the section. Empty without families.
pub(super) fn link_to_section(outcome: &CallSummary) -> &'static str {
    match outcome.sequence_families.is_empty() {
        true => "",
        false => "<li><a href=\"#families\">Sequence families</a></li>\n",
    }
}

/// Returns the section with the table of the families with most calls as HTML. Empty without families.
pub(super) fn sequence_family_section(outcome: &CallSummary) -> String {
    let families = &outcome.sequence_families;
    if families.is_empty() {
        return String::new();
    }
    let num_calls: u64 = families.iter().map(|family| family.num_calls).sum();
    let mut html = format!(
        "<section aria-labelledby=\"families\">\n<h2 id=\"families\">Sequence families of filtered calls</h2>\n\
         <p class=\"note\">{} with the filters divergent, discordant_mates or repeat, by the sequence family that their \
         contigs resemble: copies of a repeat, a paralog, or a copy that the reference lacks. The VCF has the other loci of \
         each call (PARALOGS).</p>\n\
         <div class=\"wide\"><table class=\"units\"><thead><tr><th scope=\"col\">First place</th>\
         <th scope=\"col\" class=\"n\" title=\"Places with calls; calls within 1 kb are at one place\">Places</th>\
         <th scope=\"col\" title=\"Other loci of the reference that the contigs resemble, at most three\">Other loci</th>\
         <th scope=\"col\" class=\"n\" title=\"Largest number of other loci that were found for one contig\">Loci found</th>\
         <th scope=\"col\" class=\"n\" title=\"Largest identity of a contig and one of its other loci\">Identity</th>\
         <th scope=\"col\" class=\"n\">Calls</th><th scope=\"col\" class=\"n\">Contigs</th></tr></thead>\n<tbody>\n",
        format_count_with_noun(num_calls, "call"),
    );
    families.iter().take(MAX_SHOWN_FAMILIES).for_each(|family| write_family_row(&mut html, family));
    html.push_str("</tbody></table></div>\n");
    if let Some(left_out @ 1..) = families.len().checked_sub(MAX_SHOWN_FAMILIES) {
        let _ = writeln!(
            html,
            "<p class=\"note\">The table shows the {MAX_SHOWN_FAMILIES} families with most calls; {} more are in \
             summary.json.</p>",
            group_thousands(left_out as u64)
        );
    }
    html + "</section>\n"
}

fn write_family_row(html: &mut String, family: &SequenceFamily) {
    let other_loci = match &family.other_loci[..] {
        [] => "none known".to_owned(),
        loci => loci.iter().map(format_locus).collect::<Vec<_>>().join("<br>"),
    };
    let _ = writeln!(
        html,
        "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td>{other_loci}</td><td class=\"n\">{}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        format_locus(&family.first_place),
        group_thousands(family.num_places),
        group_thousands(family.max_other_loci_of_contig),
        family.max_identity.map(|identity| format!("{:.1}\u{a0}%", 100.0 * identity)).unwrap_or_default(),
        group_thousands(family.num_calls),
        group_thousands(family.num_contigs),
    );
}

/// Sequence, first and last position; one position if they are the same.
fn format_locus(locus: &FamilyLocus) -> String {
    let FamilyLocus { chrom, start, end } = locus;
    let last = if start == end { String::new() } else { format!("–{}", group_thousands(*end)) };
    format!("{}:{}{last}", escape_html(chrom), group_thousands(*start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::tests::example_summary;
    use crate::testing::assert_html_is_nested;

    fn locus(chrom: &str, start: u64, end: u64) -> FamilyLocus {
        FamilyLocus { chrom: chrom.into(), start, end }
    }

    fn family(start: u64) -> SequenceFamily {
        SequenceFamily {
            first_place: locus("chr<1>", start, start + 120),
            num_places: 2,
            other_loci: vec![locus("chr2", 5_001, 5_300), locus("chr<3>", 70, 70)],
            max_other_loci_of_contig: 17,
            num_calls: 1_200,
            num_contigs: 31,
            max_identity: Some(0.9812),
        }
    }

    #[test]
    fn the_section_shows_the_families_with_most_calls() {
        let mut summary = example_summary(Vec::new());
        let page = |summary: &CallSummary| crate::call::render_page(summary);
        let without = page(&summary);
        assert!(!without.contains("id=\"families\"") && !without.contains("#families"));
        let alone = SequenceFamily {
            first_place: locus("chr9", 99, 99),
            other_loci: Vec::new(),
            max_other_loci_of_contig: 0,
            max_identity: None,
            ..family(0)
        };
        summary.sequence_families = vec![family(1_000), alone];
        let html = page(&summary);
        assert_html_is_nested(&html);
        for expected in [
            "<a href=\"#families\">",
            "<p class=\"note\">2,400 calls with the filters divergent, discordant_mates or repeat",
            "<tr><th scope=\"row\">chr&lt;1&gt;:1,000–1,120</th><td class=\"n\">2</td>\
             <td>chr2:5,001–5,300<br>chr&lt;3&gt;:70</td><td class=\"n\">17</td><td class=\"n\">98.1\u{a0}%</td>\
             <td class=\"n\">1,200</td><td class=\"n\">31</td></tr>",
            "<tr><th scope=\"row\">chr9:99</th><td class=\"n\">2</td><td>none known</td><td class=\"n\">0</td>\
             <td class=\"n\"></td><td class=\"n\">1,200</td>",
        ] {
            assert!(html.contains(expected), "{expected}\n{html}");
        }
        assert!(!html.contains("more are in summary.json"));
        summary.sequence_families = (0..1_021).map(|i| family(1_000 * i)).collect();
        let html = page(&summary);
        assert_html_is_nested(&html);
        assert_eq!(html.matches("<tr><th scope=\"row\">chr&lt;1&gt;").count(), 20);
        assert!(html.contains("The table shows the 20 families with most calls; 1,001 more are in summary.json."));
    }
}
