//! The table of the exposures of mutational signatures.

use std::fmt::Write;

use genuma_pair::confidence_interval::Estimate;
use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::signatures::SignatureExposures;
use genuma_work::quantity::{format_count_with_noun, group_thousands};

use super::number_format::{format_percent, format_share_with_interval};
use crate::markup::escape_html;

/// Length of the axis of the bars, from 0 to 100 %, in SVG units.
const AXIS_LENGTH: f64 = 200.0;

/// Returns the tables of the exposures of all tumours as HTML. Empty if no signatures were given.
pub(super) fn signature_exposure_tables(outcome: &CallSummary) -> String {
    let first = outcome.samples.get(1).map(|name| (name.as_str(), &outcome.sample_summary));
    let others = outcome.other_tumours.iter().map(|other| (other.sample.as_str(), &other.sample_summary));
    let fits = first.into_iter().chain(others).filter_map(|(name, own)| Some((name, own.signatures.as_ref()?)));
    let is_named = !outcome.other_tumours.is_empty();
    fits.map(|(name, fit)| signature_table(fit, outcome.has_normal, is_named.then_some(name))).collect()
}

/// Returns the table of the exposures of a tumour. `tumour` is its name if there are several tumours.
fn signature_table(fit: &SignatureExposures, has_normal: bool, tumour: Option<&str>) -> String {
    let mut html = String::from("<figure class=\"signatures\"><figcaption><h3>Mutational signatures");
    if let Some(tumour) = tumour {
        let _ = write!(html, ": {}", escape_html(tumour));
    }
    let matrix = escape_html(fit.matrix.rsplit('/').next().unwrap_or_default());
    let Some(similarity) = fit.cosine_similarity else {
        let why = fit.why_no_exposures.as_deref().unwrap_or_default();
        let _ = write!(
            html,
            "</h3><p>Exposures to the signatures of {matrix} were not estimated: {}.</p></figcaption></figure>",
            escape_html(why)
        );
        return html;
    };
    let basis = match fit.is_normalised_to_targets {
        true => "The signatures are normalised by the trinucleotides of the targets.",
        false => "The signatures are those of the whole reference.",
    };
    let without_normal = match has_normal {
        true => "",
        false => " The call has no normal, so germline SNVs are among the SNVs that passed.",
    };
    let poor_fit = if fit.is_poor_fit() { " The signatures explain the spectrum poorly." } else { "" };
    let _ = write!(
        html,
        "</h3><p>Shares of {} with a mutation context, by signature of the matrix {matrix}, with 95&nbsp;% intervals. The \
         intervals do not include the choice of signatures. {basis}{without_normal} The spectrum and its reconstruction \
         have a cosine similarity of {similarity:.3}.{poor_fit}</p></figcaption>\n\
         <div class=\"wide\"><table><thead><tr><th scope=\"col\">Signature</th><th scope=\"col\">0 to 100 %</th>\
         <th scope=\"col\">Exposure</th><th scope=\"col\" class=\"n\">SNVs</th></tr></thead>\n<tbody>",
        format_count_with_noun(fit.num_snvs, "passed SNV"),
    );
    for exposure in &fit.exposures {
        let class = if exposure.share.low > 0.0 { "" } else { " class=\"uncertain\"" };
        let snvs = (exposure.share.value * fit.num_snvs as f64).round() as u64;
        let _ = writeln!(
            html,
            "<tr{class}><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td class=\"n\">{}</td></tr>",
            escape_html(&exposure.signature),
            exposure_bar(exposure.share),
            format_share_with_interval(exposure.share),
            group_thousands(snvs),
        );
    }
    let explained: f64 = fit.exposures.iter().map(|exposure| exposure.share.value * fit.num_snvs as f64).sum();
    let not_explained = fit.num_snvs.saturating_sub(explained.round() as u64);
    let _ = writeln!(
        html,
        "<tr><th scope=\"row\">not explained</th><td></td><td>{}</td><td class=\"n\">{}</td></tr>",
        format_percent(not_explained as f64 / fit.num_snvs.max(1) as f64),
        group_thousands(not_explained),
    );
    html.push_str("</tbody></table></div>");
    add_notes(&mut html, fit);
    html.push_str("</figure>");
    html
}

/// Adds the notes below the table: signatures that are not in it, and what grey rows mean.
fn add_notes(html: &mut String, fit: &SignatureExposures) {
    let left_out = fit.num_signatures - fit.exposures.len() as u64;
    if left_out > 0 {
        let _ = write!(
            html,
            "<p class=\"note\">{} {} not detected: the exposure is 0 in the fit, or in more than 2.5&nbsp;% of the fits of \
             resampled SNVs.</p>",
            format_count_with_noun(left_out, "other signature"),
            if left_out == 1 { "was" } else { "were" },
        );
    }
    if fit.exposures.iter().any(|exposure| exposure.share.low <= 0.0) {
        html.push_str(
            "<p class=\"note\">Grey: the interval begins at 0, so the tumour may not have the signature.</p>",
        );
    }
}

/// Draws a bar for an exposure (share of the SNVs), with its interval.
fn exposure_bar(share: Estimate) -> String {
    let [value, low, high] = [share.value, share.low, share.high].map(|share| share.clamp(0.0, 1.0) * AXIS_LENGTH);
    format!(
        "<svg viewBox=\"0 0 {AXIS_LENGTH} 14\" class=\"tumour\" aria-hidden=\"true\"><path class=\"axis\" d=\"M0.5 0V14\"/>\
         <rect class=\"bar\" x=\"0\" y=\"3\" width=\"{value:.1}\" height=\"8\"/>\
         <path class=\"interval\" d=\"M{low:.1} 7H{high:.1}M{low:.1} 4V10M{high:.1} 4V10\"/></svg>"
    )
}
