//! The section of the report on the samples: whether the sample pair can be trusted, and a table of all facts.

use std::fmt::Write;

use genuma_pair::assay::AssayDecision;
use genuma_pair::confidence_interval::Estimate;
use genuma_pair::identity::Relation;
use genuma_pair::library::LibraryMetrics;
use genuma_pair::pair_summary::SamplePairSummary;
use genuma_pair::site_tally::SUBSTITUTION_CLASS_NAMES;
use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::msi::MicrosatelliteInstability;
use genuma_somatic::target_depth::{CallTargetSummary, TargetCoverage};
use genuma_work::quantity::{format_count_with_noun, format_with_si_prefix, group_thousands};

use super::assessment::{self, Finding, FindingLevel};
use super::number_format::{format_number_with_interval, format_percent, format_share_with_interval};
use crate::markup::escape_html;

/// Returns the icon of a finding's level. Levels differ in shape as well as in colour.
fn level_icon(level: FindingLevel) -> String {
    let (style, label, form) = match level {
        FindingLevel::Good => {
            ("good", "Good", r#"<circle cx="8" cy="8" r="7.5"/><path d="M4.4 8.3l2.6 2.6 4.7-5.4"/>"#)
        }
        FindingLevel::Check => {
            ("look", "Check", r#"<path class="form" d="M8 .8l7.6 13.9H.4z"/><path d="M8 5.6v4.3M8 12.2v.3"/>"#)
        }
        FindingLevel::Bad => (
            "bad",
            "Bad",
            r#"<rect x=".5" y=".5" width="15" height="15" rx="2"/><path d="M4.7 4.7l6.6 6.6M11.3 4.7l-6.6 6.6"/>"#,
        ),
        FindingLevel::Unknown => (
            "untold",
            "Unknown",
            r#"<circle cx="8" cy="8" r="7"/><path d="M5.8 6.3c.2-3 4.6-2.8 4.3-.2-.2 1.4-2 1.5-2.1 3.1M8 11.7v.3"/>"#,
        ),
    };
    format!(r#"<span class="level {style}"><svg viewBox="0 0 16 16" aria-hidden="true">{form}</svg>{label}</span>"#)
}

/// Returns the overall verdict and the findings that need attention, for each tumour.
pub fn render_verdicts_and_problems(outcome: &CallSummary) -> String {
    render_for_each_tumour(outcome, verdict_with_problems)
}

/// Returns all findings, for each tumour.
pub fn render_all_findings(outcome: &CallSummary) -> String {
    render_for_each_tumour(outcome, |outcome| list_findings(&assessment::assess_sample_pair(outcome)))
}

/// Renders a part of the page for each tumour, preceded by the name of the tumour if there are several.
fn render_for_each_tumour(outcome: &CallSummary, render: impl Fn(&CallSummary) -> String) -> String {
    let mut html = String::new();
    if let [first, ..] = super::several_tumours(outcome) {
        let _ = write!(html, r#"<p class="note">{}</p>"#, escape_html(first));
    }
    html.push_str(&render(outcome));
    for other in &outcome.other_tumours {
        let _ = write!(html, r#"<p class="note">{}</p>"#, escape_html(&other.sample));
        html.push_str(&render(&outcome.summary_for_additional_tumour(other)));
    }
    html
}

fn verdict_with_problems(outcome: &CallSummary) -> String {
    let mut findings = assessment::assess_sample_pair(outcome);
    let (level, message) = assessment::overall_verdict(&findings);
    let verdict = format!(r#"<p class="verdict">{} <b>{message}</b></p>"#, level_icon(level));
    findings.retain(|finding| finding.level >= FindingLevel::Check);
    verdict + &list_findings(&findings)
}

fn list_findings(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut html = r#"<ul class="findings">"#.to_owned();
    for finding in findings {
        let _ = write!(
            html,
            "<li>{}<span><b>{}</b> {}</span></li>",
            level_icon(finding.level),
            finding.topic,
            escape_html(&finding.message)
        );
    }
    html.push_str("</ul>");
    html
}

/// Rows of the facts table, as HTML. Its columns are the name of the fact, the normal and the tumour.
struct FactRows {
    html: String,
    has_normal: bool,
}

impl FactRows {
    fn add_group(&mut self, name: &str) {
        let _ = write!(self.html, r#"<tr class="group"><th colspan="3" scope="rowgroup">{name}</th></tr>"#);
    }

    /// Adds a row with one value for each sample. Values are HTML.
    fn add_row_per_sample(&mut self, name: &str, [normal, tumour]: [String; 2]) {
        let normal = if self.has_normal { normal } else { String::new() };
        let _ = write!(self.html, r#"<tr><th scope="row">{name}</th><td>{normal}</td><td>{tumour}</td></tr>"#);
    }

    /// Adds a row with one value for both samples. The value is HTML.
    fn add_row_for_both_samples(&mut self, name: &str, value: &str) {
        let _ = write!(self.html, r#"<tr><th scope="row">{name}</th><td colspan="2">{value}</td></tr>"#);
    }

    /// Adds a row with a value for the tumour only. The value is HTML.
    fn add_row_for_tumour(&mut self, name: &str, value: String) {
        self.add_row_per_sample(name, [String::new(), value]);
    }
}

/// Returns the table cell for an unknown value, which states the reason.
fn unknown_cell(why: &str) -> String {
    format!(r#"<span class="of">unknown: {}</span>"#, escape_html(why))
}

/// Returns the reason why a fact that needs the normal is unknown: there is no normal, or else `why`.
fn reason_or_no_normal<'a>(outcome: &CallSummary, why: &'a str) -> &'a str {
    if outcome.has_normal { why } else { "there is no normal" }
}

/// Returns HTML of a value, followed by a remark in grey.
fn with_remark(value: &str, remark: &str) -> String {
    format!(r#"{value} <span class="of">{remark}</span>"#)
}

fn estimate_or_unknown(found: Option<Estimate>, write: fn(Estimate) -> String, why: &str) -> String {
    found.map_or_else(|| unknown_cell(why), write)
}

/// Returns all facts about the samples as rows of an HTML table. Facts about contigs and screened sequences are known
/// for the first tumour only.
pub fn sample_fact_rows(outcome: &CallSummary) -> String {
    let mut rows = FactRows { html: String::new(), has_normal: outcome.has_normal };
    if let [first, ..] = super::several_tumours(outcome) {
        rows.add_group(&format!("Normal and {}", escape_html(first)));
    }
    add_identity_and_purity(&mut rows, outcome);
    rows.add_group("The genome");
    add_contigs(&mut rows, outcome);
    add_mutations(&mut rows, outcome);
    add_coverage(&mut rows, outcome);
    add_libraries(&mut rows, outcome);
    add_screened_sequences(&mut rows, outcome);
    for other in &outcome.other_tumours {
        rows.add_group(&format!("Normal and {}", escape_html(&other.sample)));
        let summary = outcome.summary_for_additional_tumour(other);
        add_identity_and_purity(&mut rows, &summary);
        rows.add_group("The genome");
        add_mutations(&mut rows, &summary);
        add_coverage(&mut rows, &summary);
        add_libraries(&mut rows, &summary);
    }
    rows.html
}

fn add_identity_and_purity(rows: &mut FactRows, outcome: &CallSummary) {
    let pair = outcome.sample_summary.pair.as_ref();
    rows.add_group("Identity, contamination, purity");
    let Some(pair) = pair else {
        let why = reason_or_no_normal(outcome, "the samples were not compared");
        rows.add_row_for_both_samples("Identity, contamination, purity", &unknown_cell(why));
        return;
    };
    let identity = &pair.identity;
    let relation = match identity.relation {
        Relation::Same => "same person",
        Relation::Relatives => "close relatives",
        Relation::Unrelated => "different people",
        Relation::Different => "different people, possibly relatives",
        Relation::SameOrRelatives => "same person or close relatives",
        Relation::Unknown => "",
    };
    let basis = match identity.genetic_distance {
        Some(distance) => format!(
            "genetic distance {} (0: same person, 1: unrelated); {} sites",
            format_number_with_interval(distance),
            group_thousands(identity.sites)
        ),
        None => format!("from {} pairs of reads", group_thousands(identity.sites)),
    };
    let person = if relation.is_empty() {
        unknown_cell("too few sites are covered in both samples")
    } else {
        with_remark(relation, &basis)
    };
    rows.add_row_for_both_samples("Identity", &person);
    let shallow = || unknown_cell("depth too low, or too few sites");
    let het = |s: usize| identity.heterozygosity.map_or_else(shallow, |own| format_percent(own[s]));
    rows.add_row_per_sample("Heterozygous sites", [het(0), het(1)]);
    let why = assessment::contamination_unknown_reason(Some(pair));
    let contamination =
        |s: usize| estimate_or_unknown(pair.contamination[s].map(|own| own.share), format_share_with_interval, why);
    rows.add_row_per_sample("Contamination", [contamination(0), contamination(1)]);
    let of_one = identity.may_be_same_person();
    let why = outcome.sample_summary.why_no_tumour_in_normal.as_deref();
    let reason = if of_one {
        why.unwrap_or(assessment::DEFAULT_UNKNOWN_TIN_REASON)
    } else {
        "the samples are of different people"
    };
    let in_normal = outcome.sample_summary.tumour_in_normal.filter(|_| of_one);
    let in_normal = estimate_or_unknown(in_normal, format_share_with_interval, reason);
    add_purity(rows, pair, in_normal);
}

/// Adds purity, ploidy and LOH. `in_normal`: HTML of the cell with the share of tumour cells in the normal.
fn add_purity(rows: &mut FactRows, pair: &SamplePairSummary, in_normal: String) {
    let why = &assessment::purity_unknown_reason(Some(pair));
    let Some(purity) = pair.tumour.as_ref().and_then(|t| t.purity) else {
        // Ploidy and LOH follow from the purity, and so do alternatives.
        rows.add_row_per_sample("Tumour cells", [in_normal, unknown_cell(why)]);
        return;
    };
    rows.add_row_per_sample("Tumour cells", [in_normal, format_share_with_interval(purity)]);
    rows.add_row_for_tumour(
        "Ploidy",
        estimate_or_unknown(pair.tumour.as_ref().and_then(|t| t.ploidy), format_number_with_interval, why),
    );
    rows.add_row_for_tumour(
        "LOH",
        pair.tumour.as_ref().and_then(|t| t.loh_fraction).map_or_else(
            || unknown_cell(why),
            |lost| {
                if lost < MIN_LOH_FRACTION { "none".into() } else { format!("{} of the genome", format_percent(lost)) }
            },
        ),
    );
    let alternatives = pair.tumour.as_ref().map_or(&[][..], |t| &t.alternatives);
    if !alternatives.is_empty() {
        let other = |other: &genuma_pair::purity::AlternativePurityFit| {
            format!("purity {}, ploidy {:.2}", format_percent(other.purity), other.ploidy)
        };
        let all: Vec<String> = alternatives.iter().map(other).collect();
        rows.add_row_for_tumour("Alternative purity and ploidy", all.join("; "));
    }
}

/// Minimum length (bp) of a contig that is reported as gained or lost. Chosen: shorter contigs are unplaced scaffolds,
/// in which a single deletion or a repeat looks like a changed copy number.
const MIN_REPORTED_CONTIG_BASES: u64 = 100_000;
/// Minimum LOH fraction that is shown as a number. Smaller fractions are shown as "none", because one or two sites can
/// show LOH by chance. Chosen.
const MIN_LOH_FRACTION: f64 = 0.001;
/// Maximum number of names in a list of contigs. The number of further contigs is shown.
const MAX_NAMES: usize = 8;

fn list_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = names.map(escape_html).collect();
    match all.len() {
        0 => "none".into(),
        n if n <= MAX_NAMES => all.join(", "),
        n => format!("{}, and {} more", all[..MAX_NAMES].join(", "), n - MAX_NAMES),
    }
}

fn add_contigs(rows: &mut FactRows, outcome: &CallSummary) {
    match &outcome.known_sequences.karyotype {
        None => rows.add_row_for_both_samples(
            "Sex, contigs, mitochondria",
            &unknown_cell(reason_or_no_normal(outcome, "no reference")),
        ),
        Some(karyotype) => {
            let sex = |s: usize| match karyotype.sex[s].strip_prefix("unknown: ") {
                Some(why) => unknown_cell(why),
                None => escape_html(&karyotype.sex[s]),
            };
            rows.add_row_per_sample("Sex", [sex(0), sex(1)]);
            if let Some(lost) = karyotype.y_loss {
                rows.add_row_for_tumour("Loss of Y", format!("in {} of the cells", format_share_with_interval(lost)));
            }
            let assessed = || karyotype.contigs.iter().filter(|contig| contig.bases >= MIN_REPORTED_CONTIG_BASES);
            let known = assessed().any(|contig| contig.tumour_normal_ratio.is_some());
            for (name, word) in [("Contigs gained", "gained"), ("Contigs lost", "lost")] {
                let names = assessed().filter(|c| c.status == word).map(|c| &*c.name);
                let value = if known { list_names(names) } else { unknown_cell("too few reads, or no long contig") };
                rows.add_row_for_tumour(name, value);
            }
            let mitochondria = |s: usize| {
                estimate_or_unknown(
                    karyotype.mitochondrial_copies[s],
                    format_number_with_interval,
                    "no sequence is called MT or chrM, or too few reads",
                )
            };
            rows.add_row_per_sample("Mitochondrial genomes per diploid genome", [mitochondria(0), mitochondria(1)]);
        }
    }
}

/// Adds rows with mutation burden and microsatellite instability.
fn add_mutations(rows: &mut FactRows, outcome: &CallSummary) {
    let burden = outcome
        .sample_summary
        .burden
        .map_or_else(|| unknown_cell("no bases are covered in both samples"), format_number_with_interval);
    rows.add_row_for_tumour("Mutation burden (SNVs and indels per Mbp)", burden);
    rows.add_row_for_tumour("Unstable tandem repeats (MSI)", describe_repeats(outcome.sample_summary.repeats));
}

/// Levels of microsatellite instability, as shares of unstable repeats: stable below the first level, MSI-high above
/// the second. Stable tumours have less than 1%; MSIsensor (Niu 2014) uses 3.5%.
const MSI_LEVELS: [f64; 2] = [0.01, 0.035];
/// Minimum number of examined repeats for a statement on microsatellite instability.
const MIN_REPEATS: u64 = 100;

fn describe_repeats(repeats: Option<MicrosatelliteInstability>) -> String {
    let Some(repeats) = repeats else { return unknown_cell("no reference, or no repeats in it") };
    let level = match repeats.share.value {
        _ if repeats.tracts < MIN_REPEATS => "too few repeats",
        share if share < MSI_LEVELS[0] => "stable",
        share if share <= MSI_LEVELS[1] => "few unstable",
        _ => "MSI-high",
    };
    let basis = format!("{level}; {} of {}", group_thousands(repeats.unstable), group_thousands(repeats.tracts));
    with_remark(&format_share_with_interval(repeats.share), &basis)
}

fn add_coverage(rows: &mut FactRows, outcome: &CallSummary) {
    rows.add_group("Coverage");
    if let Some(targets) = &outcome.targets {
        add_target_coverage(rows, targets);
    }
    let Some(pair) = &outcome.sample_summary.pair else {
        let why = reason_or_no_normal(outcome, "the samples were not compared");
        rows.add_row_for_both_samples("Depth, evenness", &unknown_cell(why));
        return;
    };
    let each = |of: &dyn Fn(usize) -> String| [of(0), of(1)];
    let covered = |s: usize| &pair.coverage[s];
    rows.add_row_per_sample(
        "Molecules per site (high-quality bases)",
        each(&|s| format!("{:.1}", covered(s).mean_depth)),
    );
    rows.add_row_per_sample(
        "Unevenness of depth (coefficient of variation beyond chance)",
        each(&|s| format!("{:.2}", covered(s).unevenness)),
    );
    rows.add_row_per_sample(
        "Sites below a fifth of the mean depth",
        each(&|s| format_percent(covered(s).low_depth_share)),
    );
    rows.add_row_per_sample(
        "Depth relative to the mean, by GC content",
        each(&|s| {
            let by_gc = &covered(s).depth_by_gc;
            let least = by_gc.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            let most = by_gc.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            match least.zip(most) {
                Some((least, most)) if by_gc.len() > 1 => {
                    let at = |(gc, depth): &(f64, f64)| format!("{depth:.2} at {:.0}\u{a0}% GC", gc * 100.0);
                    format!("{} to {}", at(least), at(most))
                }
                _ => unknown_cell("too few sites"),
            }
        }),
    );
    rows.add_row_per_sample(
        "Most frequent substitution error",
        each(&|s| {
            let worst = pair.substitution_error_rates[s].iter().flatten().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
            let value = worst.filter(|(_, rate)| **rate > 0.0).map(|(at, rate)| {
                let not_increased = "not increased";
                let factor = assessment::find_damaged_substitution(pair, s)
                    .map(|(_, times)| format!("{times:.1} times the median"));
                with_remark(
                    &format!("{} {}", escape_html(SUBSTITUTION_CLASS_NAMES[at]), format_percent(*rate)),
                    factor.as_deref().unwrap_or(not_increased),
                )
            });
            value.unwrap_or_else(|| unknown_cell("too few bases"))
        }),
    );
}

/// Adds rows with the depth of the targets.
fn add_target_coverage(rows: &mut FactRows, targets: &CallTargetSummary) {
    let [normal, tumour, ..] = &targets.samples[..] else { return };
    let mut each = |name: &str, of: &dyn Fn(&TargetCoverage) -> String| {
        rows.add_row_per_sample(name, [of(normal), of(tumour)]);
    };
    each("Depth on target, mean (from k-mers, with duplicates)", &|covered| format!("{:.1}", covered.mean_depth));
    each("Depth on target, median", &|covered| format!("{:.1}", covered.median_depth));
    each("Target bases with a depth of 20 or more", &|covered| format_percent(covered.share_at_20x));
    each("Targets with nearly no coverage (targets.tsv)", &|covered| {
        with_remark(&group_thousands(covered.uncovered_targets), &format!("of {}", group_thousands(targets.targets)))
    });
    if let Some(&callable) = targets.callable_bases.first() {
        let share = callable as f64 / targets.bases.max(1) as f64;
        let value = format!("{}bp", format_with_si_prefix(callable as f64));
        rows.add_row_for_both_samples(
            "Callable target bases",
            &with_remark(&value, &format!("{} of the targets", format_percent(share))),
        );
    }
}

/// Returns HTML of the assay, followed by the reason why it was chosen.
fn describe_assay(decision: &AssayDecision) -> String {
    with_remark(decision.assay.name(), &escape_html(&decision.reason))
}

fn add_libraries(rows: &mut FactRows, outcome: &CallSummary) {
    let both = [&outcome.libraries.normal, &outcome.libraries.tumor];
    rows.add_group("Reads and libraries");
    if both.iter().all(|library| library.pairs == 0) {
        rows.add_row_for_both_samples("Reads", &unknown_cell("the libraries were not examined"));
        return;
    }
    let used = &outcome.sample_summary.libraries;
    rows.add_row_per_sample("Assay", [&used.normal, &used.tumour].map(|library| describe_assay(&library.assay)));
    let each = |of: &dyn Fn(&LibraryMetrics) -> String| both.map(of);
    const FEW: &str = "too few reads";
    rows.add_row_per_sample(
        "Read pairs",
        each(&|own| {
            with_remark(&group_thousands(own.pairs), &format!("{}bp", format_with_si_prefix(own.bases as f64)))
        }),
    );
    rows.add_row_per_sample("Read length", each(&describe_read_lengths));
    rows.add_row_per_sample("Base quality of read 1 and read 2", each(&describe_quality));
    rows.add_row_per_sample("GC content", each(&|own| own.gc.map_or_else(|| unknown_cell(FEW), format_percent)));
    rows.add_row_per_sample(
        "Pairs with adapter sequence",
        each(&|own| estimate_or_unknown(own.adapter_share, format_share_with_interval, FEW)),
    );
    rows.add_row_per_sample("Insert size", each(&describe_insert_size));
    rows.add_row_per_sample(
        "Sequencing error rate",
        each(&|own| {
            let rate = |rate| match (own.errors.compared_rate, own.errors.expected_from_quality) {
                (Some(compared), Some(promised)) => with_remark(
                    &format_share_with_interval(rate),
                    &format!(
                        "where mates overlap {}; expected from qualities {}",
                        format_percent(compared.value),
                        format_percent(promised)
                    ),
                ),
                _ => format_share_with_interval(rate),
            };
            own.errors.rate.map_or_else(|| unknown_cell("too few overlapping mates"), rate)
        }),
    );
    rows.add_row_per_sample(
        "PCR duplicates",
        each(&|own| {
            let word = own.duplicates.note.strip_prefix("unknown: ");
            match (own.duplicates.pcr_duplicates, word) {
                (Some(copied), None) => {
                    with_remark(&format_share_with_interval(copied), &escape_html(&own.duplicates.note))
                }
                (_, why) => unknown_cell(why.unwrap_or("depth is unknown")),
            }
        }),
    );
    rows.add_row_per_sample(
        "Library size (unique molecules)",
        each(&|own| {
            let told = |n: Estimate| {
                let [value, low, high] = [n.value, n.low, n.high].map(format_with_si_prefix);
                format!("{value} ({low}–\u{2060}{high})")
            };
            own.duplicates.molecules.map_or_else(|| unknown_cell("too few duplicates"), told)
        }),
    );
    rows.add_row_per_sample("Telomeric pairs per million", each(&describe_telomeres));
    if let Some(ratio) = outcome.libraries.telomeres {
        rows.add_row_for_tumour("Telomeric pairs relative to the normal", format_number_with_interval(ratio));
    }
}

fn describe_read_lengths(own: &LibraryMetrics) -> String {
    let of = |[least, usual, most]: [u64; 3]| match least == most {
        true => usual.to_string(),
        false => format!("{usual} ({least}–{most})"),
    };
    match own.mates.each_ref().map(|mate| of(mate.lengths)) {
        [one, two] if one == two => one,
        [one, two] => format!("{one} and {two}"),
    }
}

fn describe_quality(own: &LibraryMetrics) -> String {
    let [one, two] = own.mates.each_ref().map(|mate| mate.quality.zip(mate.q30));
    match one.zip(two) {
        Some((one, two)) => with_remark(
            &format!("{:.1} and {:.1}", one.0, two.0),
            &format!("mean; bases of Q30 or more: {} and {}", format_percent(one.1), format_percent(two.1)),
        ),
        None => unknown_cell("too few reads"),
    }
}

fn describe_insert_size(own: &LibraryMetrics) -> String {
    let insert = &own.insert;
    let overlapping = insert
        .overlapping_share
        .map_or_else(String::new, |o| format!("; mates of {} of the pairs overlap", format_percent(o.value)));
    match insert.quantiles {
        [Some(least), Some(quarter), Some(middle), Some(three)] => with_remark(
            &format!("{middle} ({quarter}–{three})"),
            &format!("median and quartiles; 5\u{a0}% up to {least}"),
        ),
        [_, _, Some(middle), _] => with_remark(&format!("median {middle}"), &overlapping[2.min(overlapping.len())..]),
        [Some(least), ..] => with_remark(
            &format!("most above {}", insert.max_measurable),
            &format!("longer fragments cannot be measured; 5\u{a0}% up to {least}{overlapping}"),
        ),
        _ if own.examined_pairs > 0 && insert.overlapping_share.is_some() => with_remark(
            &format!("nearly all above {}", insert.max_measurable),
            &format!("longer fragments cannot be measured{overlapping}"),
        ),
        _ => unknown_cell("too few pairs"),
    }
}

fn describe_telomeres(own: &LibraryMetrics) -> String {
    let telomeres = &own.telomeres;
    match (telomeres.per_million, &telomeres.motif) {
        (Some(rate), Some(motif)) => with_remark(&format_number_with_interval(rate), &escape_html(motif)),
        (Some(_), None) => "almost none".into(),
        _ => unknown_cell("too few pairs"),
    }
}

/// Maximum number of screened sequences in the table, and of calls that match such a sequence.
const MAX_SCREENED_ROWS: usize = 12;

fn add_screened_sequences(rows: &mut FactRows, outcome: &CallSummary) {
    let Some(screen) = &outcome.known_sequences.screen else { return };
    rows.add_group("Screened sequences");
    for found in screen.detected.iter().take(MAX_SCREENED_ROWS) {
        let name = match &found.most_similar {
            Some(like) => with_remark(&escape_html(&found.name), &format!("similar to {}", escape_html(like))),
            None => escape_html(&found.name),
        };
        let of = |s: usize| {
            let own = &found.samples[s];
            let remark = format!(
                "{} reads, {} per million; {} of the sequence covered",
                group_thousands(own.reads.round() as u64),
                format_with_si_prefix(own.reads_per_million),
                format_percent(own.breadth)
            );
            if own.reads < 0.5 { escape_html(&own.note) } else { with_remark(&escape_html(&own.note), &remark) }
        };
        rows.add_row_per_sample(&name, [of(0), of(1)]);
    }
    let mut rest = match screen.not_detected {
        0 => "no other sequences".into(),
        n => format_count_with_noun(n, "sequence") + " not detected",
    };
    let more = screen.detected.len().saturating_sub(MAX_SCREENED_ROWS);
    if more > 0 {
        let _ =
            write!(rest, "; {} detected, listed in summary.json", format_count_with_noun(more as u64, "more sequence"));
    }
    if screen.indistinguishable > 0 {
        let _ = write!(
            rest,
            "; {} cannot be distinguished from other sequences or from the reference",
            group_thousands(screen.indistinguishable)
        );
    }
    rows.add_row_for_both_samples("Other screened sequences", &rest);
    let calls: Vec<String> = outcome
        .screened_calls
        .iter()
        .take(MAX_SCREENED_ROWS)
        .map(|call| {
            let strand = if call.forward { "" } else { ", reverse strand" };
            format!(
                "{}:{} {}",
                escape_html(&call.chrom),
                group_thousands(call.pos),
                with_remark(
                    &escape_html(&call.name),
                    &format!("from position {}{strand}; {}", group_thousands(call.sequence_pos), escape_html(&call.id))
                )
            )
        })
        .collect();
    if !calls.is_empty() {
        let more = match outcome.screened_calls.len().saturating_sub(MAX_SCREENED_ROWS) {
            0 => String::new(),
            n => format!("<br>and {}", format_count_with_noun(n as u64, "more call")),
        };
        rows.add_row_for_tumour("Calls that insert a screened sequence", calls.join("<br>") + &more);
    }
}
