//! The plots of the samples: depth by GC, insert sizes, errors and qualities by cycle, contigs, mutational spectrum.
//! Plots without data are left out.

use genuma_pair::library::LibraryMetrics;
use genuma_pair::library::metrics::SingleCycleMetrics;
use genuma_somatic::call_summary::CallSummary;
use genuma_somatic::mutation_context::mutation_context_names;
use genuma_work::quantity::group_thousands;

use crate::markup::escape_html;
use crate::plot::{Axis, LegendKey, PlotArea, PlotPoint, PlotSize, html_figure};

const NORMAL_KEY: LegendKey<'static> = LegendKey { style: "normal", name: "Normal" };
const TUMOUR_KEY: LegendKey<'static> = LegendKey { style: "tumour", name: "Tumour" };
/// Legend entries: for each sample, those of read 1 and read 2.
const MATE_KEYS: [[LegendKey<'static>; 2]; 2] = [
    [
        LegendKey { style: "normal", name: "Normal, read 1" },
        LegendKey { style: "normal second", name: "Normal, read 2" },
    ],
    [
        LegendKey { style: "tumour", name: "Tumour, read 1" },
        LegendKey { style: "tumour second", name: "Tumour, read 2" },
    ],
];

/// Size of a plot that takes half of the width beside the facts table. The right margin leaves room for the label `100
/// %`.
const HALF_WIDTH_PLOT: PlotSize =
    PlotSize { width: 340.0, height: 220.0, left: 68.0, right: 20.0, top: 10.0, bottom: 46.0 };

/// Returns the plots of the normal and the first tumour, without the mutational spectrum.
pub fn sample_charts(outcome: &CallSummary) -> String {
    let libraries = [&outcome.libraries.normal, &outcome.libraries.tumor];
    [
        gc_chart(outcome),
        insert_size_chart(libraries),
        error_chart(libraries),
        base_quality_chart(libraries),
        contig_copy_chart(outcome),
    ]
    .concat()
}

fn format_percent_tick(share: f64) -> String {
    let percent = share * 100.0;
    // Tick values are round.
    let digits = if (percent - percent.round()).abs() < 1e-6 {
        0
    } else if percent >= 0.1 {
        1
    } else {
        2
    };
    format!("{percent:.digits$}\u{a0}%")
}

/// Size of the plot of one substitution in the mutational spectrum.
const SPECTRUM_PLOT: PlotSize =
    PlotSize { width: 210.0, height: 190.0, left: 34.0, right: 4.0, top: 24.0, bottom: 34.0 };
/// CSS classes of the six substitutions.
const SUBSTITUTION_STYLES: [&str; 6] = ["s1", "s2", "s3", "s4", "s5", "s6"];

/// Plots the mutational spectrum of the first tumour: number of SNVs that pass, by substitution and neighbouring bases.
/// Empty without such SNVs.
pub fn mutational_spectrum_figure(outcome: &CallSummary) -> String {
    let counts = &outcome.sample_summary.spectrum;
    let total: u64 = counts.iter().sum();
    if total == 0 || counts.len() != 96 {
        return String::new();
    }
    let max_count = counts.iter().copied().max().unwrap_or(0).max(4) as f64;
    let contexts = mutation_context_names();
    let mut svg = String::from(r#"<div class="sixths">"#);
    for (kind, own) in counts.chunks(16).enumerate() {
        // `A[C>A]A`
        let name = &contexts[kind * 16][2..5];
        let mut field = PlotArea::empty(
            SPECTRUM_PLOT,
            Axis::without_ticks(16.0, ""),
            Axis::with_whole_number_ticks(max_count * 1.05, ""),
        );
        for (i, (&n, context)) in own.iter().zip(&contexts[kind * 16..]).enumerate() {
            let i = i as f64;
            let title = format!("{context}: {}", group_thousands(n));
            field.add_vertical_bar(SUBSTITUTION_STYLES[kind], (i + 0.12, i + 0.88), n as f64, &title);
            let three: String = [&context[..1], &context[2..3], &context[6..]].concat();
            field.add_label_below_axis(i + 0.5, &three);
        }
        field.add_text(
            (SPECTRUM_PLOT.left + SPECTRUM_PLOT.width - SPECTRUM_PLOT.right) / 2.0,
            14.0,
            &format!("{name}  {}", group_thousands(own.iter().sum())),
        );
        svg.push_str(&field.into_svg(&format!("{name} by neighbouring bases: {} SNVs", own.iter().sum::<u64>())));
    }
    svg.push_str("</div>");
    html_figure(
        "Mutational spectrum",
        &format!(
            "{} SNVs that passed, on the strand of the C or T, by neighbouring bases. The pattern points to the mutational process: \
             C&gt;T before G to age, C&gt;A to smoking, C&gt;T and C&gt;G after T to APOBEC.",
            group_thousands(total)
        ),
        &[],
        &svg,
    )
}

fn gc_chart(outcome: &CallSummary) -> String {
    let Some(pair) = &outcome.sample_summary.pair else { return String::new() };
    let by_gc = pair.coverage.each_ref().map(|covered| &covered.depth_by_gc);
    if by_gc.iter().all(|own| own.len() < 3) {
        return String::new();
    }
    let points = || by_gc.into_iter().flatten();
    let max_depth = points().map(|p| p.1).fold(1.2, f64::max).min(4.0);
    let mut field = PlotArea::empty(
        HALF_WIDTH_PLOT,
        Axis::with_linear_scale(1.0, "GC content of about 30 bases", format_percent_tick),
        Axis::with_linear_scale(max_depth * 1.05, "depth relative to the mean", |n| format!("{n:.1}")),
    );
    field.add_horizontal_line(1.0);
    for (key, own) in [NORMAL_KEY, TUMOUR_KEY].into_iter().zip(by_gc) {
        field.add_line(key, own.iter().copied().map(Some));
    }
    html_figure(
        "Depth by GC",
        "Flat if depth does not depend on GC content. Where the samples differ, depth says less about copy number.",
        &[NORMAL_KEY, TUMOUR_KEY],
        &field.into_svg("Depth relative to the mean by GC content, of both samples"),
    )
}

/// Minimum number of read pairs with known insert size for a plot of insert sizes.
const MIN_PAIRS: u64 = 100;
/// Width of a column in the histogram of insert sizes, in bp.
const HISTOGRAM_STEP_BP: u64 = 10;

fn insert_size_chart(libraries: [&LibraryMetrics; 2]) -> String {
    // Fragments longer than the measurable length are rarely seen.
    let shown = libraries.map(|own| {
        let whole = own.insert.max_measurable / HISTOGRAM_STEP_BP;
        let counts = own.insert.histogram.iter().take(whole as usize);
        let pairs = own.examined_pairs.max(1) as f64;
        let enough = own.insert.histogram.iter().sum::<u64>() >= MIN_PAIRS;
        if enough { counts.map(|&n| n as f64 / pairs).collect() } else { Vec::new() }
    });
    let max_share = shown.iter().flatten().copied().fold(0.0, f64::max);
    if max_share <= 0.0 {
        return String::new();
    }
    let longest = shown.iter().map(|own| own.iter().rposition(|&n| n > 0.0).unwrap_or(0) + 2).max().unwrap_or(1);
    let mut field = PlotArea::empty(
        HALF_WIDTH_PLOT,
        Axis::with_linear_scale(longest as f64 * HISTOGRAM_STEP_BP as f64, "fragment length (bp)", |n| {
            group_thousands(n as u64)
        }),
        Axis::with_linear_scale(max_share * 1.1, "share of pairs per 10 bp", format_percent_tick),
    );
    let drawn = || [NORMAL_KEY, TUMOUR_KEY].into_iter().zip(&shown).filter(|(_, own)| !own.is_empty());
    for (key, own) in drawn() {
        let middle = |i: usize| (i as f64 + 0.5) * HISTOGRAM_STEP_BP as f64;
        field.add_filled_curve(key, own.iter().take(longest).enumerate().map(|(i, &n)| (middle(i), n)));
    }
    let max_measurable = libraries.map(|own| own.insert.max_measurable).into_iter().max().unwrap_or(0);
    html_figure(
        "Insert size",
        &format!(
            "Pairs whose mates overlap. Fragments longer than {max_measurable} bp cannot be measured with these reads."
        ),
        &drawn().map(|(key, _)| key).collect::<Vec<_>>(),
        &field.into_svg("Share of pairs by fragment length, of both samples"),
    )
}

/// Minimum number of sequencing cycles with data for a line in a plot by cycle.
const MIN_CYCLES: usize = 10;
/// Number of sequencing cycles that are averaged for one point of the curve of errors, because only few bases of each
/// cycle are in the overlap of both mates.
const SMOOTHED_CYCLES: usize = 5;

/// Plots a quantity by sequencing cycle, with a line for each mate of each sample. Each point is the mean of `step`
/// cycles.
fn cycle_chart(
    libraries: [&LibraryMetrics; 2],
    of: impl Fn(&SingleCycleMetrics) -> Option<f64>,
    step: usize,
    (label, write): (&str, fn(f64) -> String),
    [title, caption, described]: [&str; 3],
) -> String {
    let mean = |cycles: &[SingleCycleMetrics]| {
        let known: Vec<f64> = cycles.iter().filter_map(&of).collect();
        (known.len() * 2 > step).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let values = libraries
        .map(|own| own.mates.each_ref().map(|mate| mate.cycles.chunks(step).map(mean).collect::<Vec<Option<f64>>>()));
    let known = |own: &&Vec<Option<f64>>| own.iter().flatten().count() * step >= MIN_CYCLES;
    let lines =
        || values.iter().zip(MATE_KEYS).flat_map(|(mates, keys)| mates.iter().zip(keys)).filter(|(own, _)| known(own));
    let cycles = lines().map(|(own, _)| own.len() * step).max().unwrap_or(0);
    let max_value = lines().flat_map(|(own, _)| own.iter().flatten()).copied().fold(0.0, f64::max);
    if cycles == 0 || max_value <= 0.0 {
        return String::new();
    }
    let mut field = PlotArea::empty(
        HALF_WIDTH_PLOT,
        Axis::with_linear_scale(cycles as f64 * 1.04, "cycle", |n| group_thousands(n as u64)),
        Axis::with_linear_scale(max_value * 1.08, label, write),
    );
    for (own, key) in lines() {
        field.add_line(
            key,
            own.iter()
                .enumerate()
                .map(|(i, value)| value.map(|value| ((i * step) as f64 + (step + 1) as f64 / 2.0, value))),
        );
    }
    let keys: Vec<LegendKey<'_>> = lines().map(|(_, key)| key).collect();
    html_figure(title, caption, &keys, &field.into_svg(described))
}

fn error_chart(libraries: [&LibraryMetrics; 2]) -> String {
    cycle_chart(
        libraries,
        |cycle| cycle.errors,
        SMOOTHED_CYCLES,
        ("error rate", format_percent_tick),
        [
            "Sequencing errors by cycle",
            "Disagreements of overlapping mates. Errors increase towards the end of reads; a peak points to a fault of the run.",
            "Error rate by cycle, of both reads of both samples",
        ],
    )
}

fn base_quality_chart(libraries: [&LibraryMetrics; 2]) -> String {
    cycle_chart(
        libraries,
        |cycle| Some(cycle.quality),
        1,
        ("mean quality (Phred)", |n| group_thousands(n as u64)),
        [
            "Quality by cycle",
            "As reported by the sequencer: 20 means one error in 100 bases, 30 one in 1,000.",
            "Mean quality by cycle, of both reads of both samples",
        ],
    )
}

/// Maximum number of contigs in the plot; the longest are kept.
const MAX_CONTIGS: usize = 30;
/// Maximum length of a contig name in the plot, in letters. Longer names are shortened.
const MAX_NAME_LETTERS: usize = 12;
/// Maximum depth ratio in the plot. Larger ratios are drawn at the top.
const MAX_COPY_RATIO: f64 = 4.0;
const LABELLED_PLOT: PlotSize = PlotSize { bottom: 80.0, height: 254.0, ..HALF_WIDTH_PLOT };

/// Plots the depth of each contig in the first tumour relative to the normal, without organelles. Empty if fewer than
/// two contigs were measured.
fn contig_copy_chart(outcome: &CallSummary) -> String {
    let Some(karyotype) = &outcome.known_sequences.karyotype else { return String::new() };
    let measured_contigs =
        || karyotype.contigs.iter().filter(|c| c.tumour_normal_ratio.is_some() && c.status != "organelle");
    if measured_contigs().count() < 2 {
        return String::new();
    }
    let mut lengths: Vec<u64> = measured_contigs().map(|contig| contig.bases).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let min_length = lengths.get(MAX_CONTIGS - 1).copied().unwrap_or(0);
    let shown: Vec<_> = measured_contigs().filter(|contig| contig.bases >= min_length).take(MAX_CONTIGS).collect();
    let max_ratio =
        shown.iter().filter_map(|c| c.tumour_normal_ratio).map(|r| r.high).fold(1.6, f64::max).min(MAX_COPY_RATIO);
    let mut field = PlotArea::empty(
        LABELLED_PLOT,
        Axis::without_ticks(shown.len() as f64, ""),
        Axis::with_linear_scale(max_ratio * 1.05, "tumour / normal", |n| format!("{n:.1}")),
    );
    field.add_horizontal_line(1.0);
    for (i, contig) in shown.iter().enumerate() {
        let Some(ratio) = contig.tumour_normal_ratio else { continue };
        let style = match &contig.status[..] {
            "gained" => "gained",
            "lost" => "lost",
            _ => "kept",
        };
        let title =
            format!("{}: {}, {}", contig.name, super::number_format::format_number_with_interval(ratio), contig.status);
        let x = i as f64 + 0.5;
        field
            .add_point_with_error_bar(style, &PlotPoint { x, y: ratio.value, low: ratio.low, high: ratio.high, title });
        let name: String = match contig.name.chars().count() {
            n if n > MAX_NAME_LETTERS => contig.name.chars().take(MAX_NAME_LETTERS - 1).chain(['…']).collect(),
            _ => contig.name.clone(),
        };
        field.add_label_below_axis(x, &name);
    }
    let left_out = measured_contigs().count() - shown.len();
    let rest = if left_out > 0 {
        format!(" The {} longest; {} others are in summary.json.", shown.len(), group_thousands(left_out as u64))
    } else {
        String::new()
    };
    let keys = [
        LegendKey { style: "gained", name: "gained" },
        LegendKey { style: "lost", name: "lost" },
        LegendKey { style: "kept", name: "unchanged" },
    ];
    html_figure(
        "Depth of the contigs",
        &escape_html(&format!("Depth in the tumour relative to the normal, with 95 % intervals.{rest}")),
        &keys,
        &field.into_svg("Depth of each contig in the tumour relative to the normal"),
    )
}
