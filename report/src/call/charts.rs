//! The plots of the k-mer spectrum and of the calls in the report.

use genuma_kmers::MAX_SAMPLES;
use genuma_somatic::call_summary::{CallSummary, ReportedEvent};
use genuma_somatic::event::EventClass;
use genuma_work::quantity::{format_count_with_noun, format_with_si_prefix, group_thousands};

use super::{sample_label, several_tumours};
use crate::markup::escape_html;
use crate::plot::{self, Axis, LegendKey, PlotArea, SMALL_PLOT_SIZE, StackedHorizontalBar, html_figure};

/// The classes of calls, in the order in which the page shows them.
pub const SHOWN_EVENT_CLASSES: [EventClass; 8] = [
    EventClass::Snv,
    EventClass::Mnv,
    EventClass::Indel,
    EventClass::Del,
    EventClass::Ins,
    EventClass::Dup,
    EventClass::Inv,
    EventClass::Bnd,
];

/// CSS classes that colour the samples, the normal first.
const SAMPLE_STYLES: [&str; MAX_SAMPLES] =
    ["normal", "tumour", "tumour t2", "tumour t3", "tumour t4", "tumour t5", "tumour t6", "tumour t7"];
const SUBSTITUTION_KEY: LegendKey<'static> = LegendKey { style: "snv", name: "SNV, MNV" };
const INDEL_KEY: LegendKey<'static> = LegendKey { style: "indel", name: "Indel" };
const STRUCTURAL_KEY: LegendKey<'static> = LegendKey { style: "sv", name: "Structural" };
const FILTERED_KEY: LegendKey<'static> = LegendKey { style: "filtered", name: "Filtered" };

/// Returns the legend entry of a class of calls.
fn class_legend_key(class: EventClass) -> LegendKey<'static> {
    match class {
        EventClass::Snv | EventClass::Mnv => SUBSTITUTION_KEY,
        EventClass::Indel => INDEL_KEY,
        _ => STRUCTURAL_KEY,
    }
}

/// Returns the plots of the k-mer spectrum and of the calls as HTML.
pub fn kmer_spectrum_and_call_charts(outcome: &CallSummary) -> String {
    let calls = &outcome.calls;
    [
        kmer_spectrum_chart(outcome),
        class_chart(calls),
        allele_fraction_charts(outcome),
        if outcome.has_normal { tumour_normal_chart(calls) } else { String::new() },
        tumour_comparison_charts(outcome),
        quality_chart(calls),
        filter_chart(calls),
    ]
    .concat()
}

fn is_passed(call: &ReportedEvent) -> bool {
    call.filters.is_empty()
}

fn kmer_spectrum_chart(outcome: &CallSummary) -> String {
    let depths = &outcome.depths.kmer;
    let last = (depths.iter().copied().fold(0.0, f64::max) * 3.0).ceil().max(10.0);
    let shown = |sample: usize| outcome.spectra[sample].iter().take(last as usize + 1);
    let first = usize::from(!outcome.has_normal);
    let keys: Vec<LegendKey<'_>> = (first..depths.len().min(outcome.spectra.len()))
        .map(|sample| LegendKey { style: SAMPLE_STYLES[sample], name: sample_label(&outcome.samples, sample) })
        .collect();
    // Height of the peak of single-copy k-mers; error k-mers are left out.
    let peak = (first..first + keys.len())
        .flat_map(|s| shown(s).skip(((depths[s] * 0.4) as usize).max(2)))
        .max()
        .map_or(1.0, |&n| n.max(1) as f64);
    let mut field = PlotArea::empty(
        SMALL_PLOT_SIZE,
        Axis::with_linear_scale(last, "occurrences of a k-mer", |n| group_thousands(n as u64)),
        Axis::with_linear_scale(peak * 1.3, "distinct k-mers", format_with_si_prefix),
    );
    for (sample, &key) in (first..).zip(&keys) {
        field.add_filled_curve(key, shown(sample).enumerate().skip(1).map(|(m, &n)| (m as f64, n as f64)));
    }
    for (sample, &key) in (first..).zip(&keys) {
        field.add_vertical_line(
            key,
            depths[sample],
            &format!("{} {:.0}×", key.name.to_lowercase(), depths[sample]),
            sample as f64,
        );
    }
    html_figure(
        "k-mer spectrum",
        "The peak is the depth of single-copy sequence. k-mers that occur once or twice are mostly sequencing \
         errors; they are clipped at the top.",
        &keys,
        &field.into_svg("k-mer spectrum of the normal and the tumour"),
    )
}

/// Counts calls in the columns of a histogram. Each column is a stack: legend entry and number of calls. `place`
/// returns the position of a call on the x axis, from 0 to 1, and its legend entry.
fn count_calls_by_column<'a>(
    calls: impl Iterator<Item = &'a ReportedEvent>,
    keys: &[LegendKey<'static>],
    columns: usize,
    place: impl Fn(&ReportedEvent) -> (f64, LegendKey<'static>),
) -> Vec<Vec<(LegendKey<'static>, u64)>> {
    let mut stacks = vec![keys.iter().map(|&k| (k, 0)).collect::<Vec<_>>(); columns];
    for call in calls {
        let (at, key) = place(call);
        let column = ((at * columns as f64) as usize).min(columns - 1);
        for (k, n) in &mut stacks[column] {
            *n += u64::from(k.style == key.style);
        }
    }
    stacks
}

fn tallest_stack(stacks: &[Vec<(LegendKey<'static>, u64)>]) -> f64 {
    stacks.iter().map(|s| s.iter().map(|x| x.1).sum::<u64>()).max().unwrap_or(0).max(4) as f64
}

/// Plots histograms of the allele fractions of passed calls: one for the tumour, or one for each of several tumours.
fn allele_fraction_charts(outcome: &CallSummary) -> String {
    let calls = outcome.calls.iter().filter(|c| is_passed(c));
    let several = several_tumours(outcome);
    if several.is_empty() {
        return allele_fraction_chart("the tumour", calls, |c| c.tumour.allele_fraction());
    }
    let of_one = |(t, name): (usize, &String)| {
        let own = calls.clone().filter(|c| c.tumours.get(t).is_some_and(|own| own.has));
        allele_fraction_chart(name, own, |c| c.tumours[t].support.allele_fraction())
    };
    several.iter().enumerate().map(of_one).collect()
}

fn allele_fraction_chart<'a>(
    tumour: &str,
    calls: impl Iterator<Item = &'a ReportedEvent>,
    fraction: impl Fn(&ReportedEvent) -> f64,
) -> String {
    const COLUMNS: usize = 40;
    let keys = [SUBSTITUTION_KEY, INDEL_KEY, STRUCTURAL_KEY];
    let stacks = count_calls_by_column(calls, &keys, COLUMNS, |c| (fraction(c), class_legend_key(c.class)));
    let mut field = PlotArea::empty(
        SMALL_PLOT_SIZE,
        Axis::with_linear_scale(1.0, "allele fraction", |n| format!("{n:.1}")),
        Axis::with_linear_scale(tallest_stack(&stacks) * 1.08, "calls", |n| group_thousands(n as u64)),
    );
    field.add_stacked_columns(1.0 / COLUMNS as f64, &stacks);
    html_figure(
        &format!("Allele fractions in {}", escape_html(tumour)),
        "PASS calls. Clonal heterozygous variants pile up at half the purity; subclonal variants are lower.",
        &keys,
        &field.into_svg(&format!("Histogram of allele fractions in {tumour} of PASS calls by class")),
    )
}

/// Plots for several tumours the allele fractions in each further tumour against those in the first, one point for each
/// passed call.
fn tumour_comparison_charts(outcome: &CallSummary) -> String {
    let [first, others @ ..] = several_tumours(outcome) else { return String::new() };
    let tenths = |n: f64| format!("{n:.1}");
    let compare_with_first = |(t, name): (usize, &String)| {
        let [across, up] = [first, name].map(|name| format!("allele fraction in {name}"));
        let mut field = PlotArea::empty(
            SMALL_PLOT_SIZE,
            Axis::with_linear_scale(1.0, &across, tenths),
            Axis::with_linear_scale(1.0, &up, tenths),
        );
        let keys = [SUBSTITUTION_KEY, INDEL_KEY, STRUCTURAL_KEY];
        for wanted in keys {
            let of = |c: &&ReportedEvent| is_passed(c) && class_legend_key(c.class).style == wanted.style;
            let point = |c: &ReportedEvent| {
                Some((c.tumours.first()?.support.allele_fraction(), c.tumours.get(t + 1)?.support.allele_fraction()))
            };
            field.add_points(wanted, outcome.calls.iter().filter(of).take(MAX_POINTS).filter_map(point));
        }
        html_figure(
            &format!("{} against {}", escape_html(first), escape_html(name)),
            &points_caption("PASS calls. Variants of only one of the two tumours are on its axis.", &outcome.calls),
            &keys,
            &field.into_svg(&format!("Allele fractions in {first} and {name}, one point per call")),
        )
    };
    others.iter().enumerate().map(compare_with_first).collect()
}

/// Maximum number of points of one class in a scatter plot. More points would hide each other.
const MAX_POINTS: usize = 5_000;

/// Returns the caption of a scatter plot: the text `what`, followed by a note if there are so many calls that some may
/// not be drawn.
fn points_caption(what: &str, calls: &[ReportedEvent]) -> String {
    match calls.len() {
        n if n > MAX_POINTS => format!(
            "{what} Of {} calls at most {} of each kind are drawn.",
            group_thousands(n as u64),
            group_thousands(MAX_POINTS as u64)
        ),
        _ => what.to_owned(),
    }
}

/// Plots the allele fraction in the normal against that in the tumour, one point for each call.
fn tumour_normal_chart(calls: &[ReportedEvent]) -> String {
    let tenths = |n: f64| format!("{n:.1}");
    let mut field = PlotArea::empty(
        SMALL_PLOT_SIZE,
        Axis::with_linear_scale(1.0, "allele fraction in the tumour", tenths),
        Axis::with_linear_scale(1.0, "allele fraction in the normal", tenths),
    );
    let keys = [FILTERED_KEY, SUBSTITUTION_KEY, INDEL_KEY, STRUCTURAL_KEY];
    for wanted in keys {
        let of =
            |c: &&ReportedEvent| if is_passed(c) { class_legend_key(c.class) } else { FILTERED_KEY }.style == wanted.style;
        field.add_points(
            wanted,
            calls.iter().filter(of).take(MAX_POINTS).map(|c| (c.tumour.allele_fraction(), c.normal.allele_fraction())),
        );
    }
    html_figure(
        "Tumour against normal",
        &points_caption(
            "Somatic variants are at the bottom. Variants that the normal has too are germline, or from tumour cells in the normal.",
            calls,
        ),
        &[SUBSTITUTION_KEY, INDEL_KEY, STRUCTURAL_KEY, FILTERED_KEY],
        &field.into_svg("Allele fractions in tumour and normal, one point per call"),
    )
}

fn quality_chart(calls: &[ReportedEvent]) -> String {
    const COLUMNS: usize = 40;
    let keys = [SUBSTITUTION_KEY, INDEL_KEY, STRUCTURAL_KEY, FILTERED_KEY];
    let mut all: Vec<f64> = calls.iter().map(|c| c.quality).collect();
    all.sort_by(f64::total_cmp);
    // The best hundredth of the calls shares the last column.
    let top = all.get(all.len() * 99 / 100).copied().unwrap_or(0.0);
    let last = (top / 40.0).ceil().max(1.0) * 40.0;
    let stacks = count_calls_by_column(calls.iter(), &keys, COLUMNS, |c| {
        (c.quality / last, if is_passed(c) { class_legend_key(c.class) } else { FILTERED_KEY })
    });
    // There can be very many filtered calls of quality 0. Only their column may be clipped.
    let rest = tallest_stack(&stacks[1..]);
    let mut field = PlotArea::empty(
        SMALL_PLOT_SIZE,
        Axis::with_linear_scale(last, "quality (Phred)", |n| group_thousands(n as u64)),
        Axis::with_linear_scale(tallest_stack(&stacks).min(rest * 1.6) * 1.08, "calls", |n| group_thousands(n as u64)),
    );
    let most = field.max_y() as u64;
    let clipped: Vec<Vec<(LegendKey<'static>, u64)>> = stacks
        .iter()
        .map(|stack| {
            let mut room = most;
            stack
                .iter()
                .map(|&(k, n)| {
                    let part = n.min(room);
                    room -= part;
                    (k, part)
                })
                .collect()
        })
        .collect();
    field.add_stacked_columns(last / COLUMNS as f64, &clipped);
    let first: u64 = stacks[0].iter().map(|s| s.1).sum();
    let cut = if first > most {
        format!(" The first column is clipped: it has {}.", format_count_with_noun(first, "call"))
    } else {
        String::new()
    };
    html_figure(
        "Quality of the calls",
        &format!("Quality 20 means a probability of 1 % that the change is not somatic, 30 of 0.1 %.{cut}"),
        &keys,
        &field.into_svg("Histogram of call qualities, PASS by class and filtered"),
    )
}

/// Draws a horizontal stacked bar for each row, with its counts as text. `described` is the text for screen readers.
fn count_bars(rows: &[(String, Vec<(LegendKey<'static>, u64)>)], described: &str) -> String {
    let rows: Vec<StackedHorizontalBar> = rows
        .iter()
        .map(|(name, parts)| {
            let numbers: Vec<String> = parts.iter().map(|p| group_thousands(p.1)).collect();
            let part = |&(key, n): &(LegendKey<'static>, u64)| {
                (key, n as f64, format!("{}: {}", key.name, group_thousands(n)))
            };
            StackedHorizontalBar {
                name: name.clone(),
                parts: parts.iter().map(part).collect(),
                text: numbers.join(" + "),
            }
        })
        .collect();
    // Width for the longest text.
    let letters = rows.iter().map(|bar| bar.text.len()).max().unwrap_or(0);
    plot::horizontal_bar_chart(&rows, (122.0, (8.0 * letters as f64 + 8.0).max(96.0)), described)
}

fn class_chart(calls: &[ReportedEvent]) -> String {
    let rows: Vec<(String, Vec<(LegendKey<'static>, u64)>)> = SHOWN_EVENT_CLASSES
        .into_iter()
        .map(|class| {
            let count = |pass: bool| calls.iter().filter(|c| c.class == class && is_passed(c) == pass).count() as u64;
            (class.class_name().to_string(), vec![(class_legend_key(class), count(true)), (FILTERED_KEY, count(false))])
        })
        .filter(|(_, parts)| parts.iter().any(|p| p.1 > 0))
        .collect();
    html_figure(
        "Calls by class",
        "PASS calls in colour, filtered calls in grey.",
        &[SUBSTITUTION_KEY, INDEL_KEY, STRUCTURAL_KEY, FILTERED_KEY],
        &count_bars(&rows, "Number of calls by class, PASS and filtered"),
    )
}

fn filter_chart(calls: &[ReportedEvent]) -> String {
    let mut rows: Vec<(String, Vec<(LegendKey<'static>, u64)>)> = Vec::new();
    for filter in calls.iter().flat_map(|c| &c.filters) {
        match rows.iter_mut().find(|r| r.0 == *filter) {
            Some(row) => row.1[0].1 += 1,
            None => rows.push((filter.clone(), vec![(FILTERED_KEY, 1)])),
        }
    }
    rows.sort_by(|a, b| b.1[0].1.cmp(&a.1[0].1).then_with(|| a.0.cmp(&b.0)));
    html_figure(
        "Calls by filter",
        "A call may fail several filters and is counted under each.",
        &[],
        &count_bars(&rows, "Number of filtered calls by filter"),
    )
}
