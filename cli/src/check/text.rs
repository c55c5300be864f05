//! Formats the output of `genuma check` as text: one line for each property of the sample pair, with its 95% interval
//! where there is one.

use std::fmt::Write;

use genuma_pair::confidence_interval::Estimate;
use genuma_pair::depth_and_evenness::CoverageMetrics;
use genuma_pair::identity::Relation;
use genuma_pair::library::metrics::SamplePairLibraryMetrics;
use genuma_pair::pair_summary::SamplePairSummary;
use genuma_pair::site_tally::SUBSTITUTION_CLASS_NAMES;
use genuma_work::quantity;

/// Contamination levels (shares), compared with the lower end of the 95% interval: below 0.01 the contamination is
/// reported as low, from 0.01 on as moderate, from 0.03 on as HIGH. Empirical: at 1% contamination a foreign allele is
/// in one read of 200, about as often as sequencing errors.
const CONTAMINATION_LEVELS: [f64; 2] = [0.01, 0.03];
/// A substitution is reported as damage if its error rate is more than this many times the median rate of all six
/// substitutions. Empirical: without damage the rates differ less than twofold.
const MIN_DAMAGE_RATIO: f64 = 2.5;

/// Formats a share with its 95% interval in percent: `1.3 % (0.2 to 2.2)`.
fn format_percent(share: &Estimate) -> String {
    format!("{:.1} % ({:.1} to {:.1})", 100.0 * share.value, 100.0 * share.low, 100.0 * share.high)
}

/// Formats an estimate with its 95% interval: `2.40 (2.10 to 2.70)`.
fn format_estimate(value: &Estimate) -> String {
    format!("{:.2} ({:.2} to {:.2})", value.value, value.low, value.high)
}

/// Formats the comparison of one tumour with the normal as text, one line for each property. `bases` are the numbers of
/// sequenced bases of the normal and of the tumour.
pub(crate) fn format_pair_summary(
    pair: &SamplePairSummary,
    libraries: &SamplePairLibraryMetrics,
    bases: [u64; 2],
) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<28}{value}");
    };
    line("identity", describe_identity(pair));
    let names = ["normal", "tumour"];
    for (s, name) in names.iter().enumerate() {
        line(&format!("contamination of the {}", name), describe_contamination(pair, s));
    }
    if let Some(tumour) = &pair.tumour {
        let format_or_reason = |value: &Option<Estimate>, show: fn(&Estimate) -> String, none: &str| {
            value.as_ref().map_or_else(|| format!("not determined: {none}"), show)
        };
        let reason = format!(
            "{} ({} heterozygous sites and {} somatic changes at {:.0} molecules per site)",
            tumour.note, tumour.heterozygous_sites, tumour.changes, pair.coverage[0].mean_depth
        );
        line("purity", format_or_reason(&tumour.purity, format_percent, &reason));
        line("ploidy", format_or_reason(&tumour.ploidy, format_estimate, &reason));
        if let Some(lost) = tumour.loh_fraction {
            line("LOH", format!("{:.0} % of the genome", 100.0 * lost));
        }
        for other in &tumour.alternatives {
            line(
                "purity (alternative)",
                format!("purity {:.1} % with ploidy {:.2}", 100.0 * other.purity, other.ploidy),
            );
        }
    }
    for (s, library) in [&libraries.normal, &libraries.tumor].into_iter().enumerate() {
        let CoverageMetrics { mean_depth: depth, unevenness, low_depth_share: thin, .. } = &pair.coverage[s];
        line(
            &format!("depth of the {}", names[s]),
            format!(
                "{depth:.1} molecules per site; unevenness {:.0} %; {:.1} % of the sites have less than a fifth of the mean",
                100.0 * unevenness,
                100.0 * thin
            ),
        );
        let mut what = format!("{} read pairs, {}", library.pairs, quantity::format_bases(bases[s]));
        if let Some(copies) = &library.duplicates.share {
            let _ = write!(what, "; duplicates {}", format_percent(copies));
        }
        if let Some(adapters) = &library.adapter_share {
            let _ = write!(what, "; with adapters {}", format_percent(adapters));
        }
        line(&format!("library of the {}", names[s]), what);
        line(
            &format!("damage of the {}", names[s]),
            pair.substitution_error_rates[s]
                .as_ref()
                .map_or_else(|| "not determined: depth too low".into(), describe_damage),
        );
    }
    text
}

fn describe_identity(pair: &SamplePairSummary) -> String {
    let identity = &pair.identity;
    let distance = identity.genetic_distance.as_ref().map_or_else(String::new, |d| {
        format!("; genetic distance {} (0: same person, 0.5: close relatives, 1: unrelated)", format_estimate(d))
    });
    let relation = match identity.relation {
        Relation::Same => "same person",
        Relation::Relatives => {
            "DIFFERENT PEOPLE, close relatives (parent and child, or siblings): check for a sample swap"
        }
        Relation::Unrelated => "DIFFERENT PEOPLE: check for a sample swap",
        Relation::Different => {
            "DIFFERENT PEOPLE, possibly relatives (depth too low to decide): check for a sample swap"
        }
        Relation::SameOrRelatives => {
            "same person or close relatives, not two unrelated people (depth too low to decide)"
        }
        Relation::Unknown => "not determined: too few sites are covered deeply enough in both samples",
    };
    format!("{relation}{distance}")
}

fn describe_contamination(pair: &SamplePairSummary, sample: usize) -> String {
    let Some(contamination) = &pair.contamination[sample] else {
        return "not determined: depth too low, or different people".into();
    };
    let share = &contamination.share;
    let level = match share.low {
        low if low >= CONTAMINATION_LEVELS[1] => "HIGH",
        low if low >= CONTAMINATION_LEVELS[0] => "moderate",
        _ => "low",
    };
    format!("{level}: {}", format_percent(share))
}

fn describe_damage(rates: &[f64; 6]) -> String {
    let mut sorted = *rates;
    sorted.sort_by(f64::total_cmp);
    let median = (sorted[2] + sorted[3]) / 2.0;
    let elevated: Vec<String> = SUBSTITUTION_CLASS_NAMES
        .iter()
        .zip(rates)
        .filter(|(_, rate)| median > 0.0 && **rate > MIN_DAMAGE_RATIO * median)
        .map(|(name, rate)| format!("{name} is {:.1} times", rate / median))
        .collect();
    match elevated.is_empty() {
        true => {
            format!("none detected; one error in {:.0} high-quality bases", 1.0 / rates.iter().sum::<f64>().max(1e-9))
        }
        false => format!("{} as frequent as the median substitution error", elevated.join(", ")),
    }
}
