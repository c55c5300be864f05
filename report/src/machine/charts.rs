//! The plots of a machine profile.

use std::collections::BTreeSet;

use genuma_probe::MachineProfile;
use genuma_probe::profile::{
    BandwidthKernel, BandwidthMeasurement, BufferPageKind, ContentionCurve, LoadedLatencyCurve, Measurement,
    MemoryLevel, MemoryLocation,
};
use genuma_work::quantity::{format_bytes, format_count_with_noun, format_three_digits as number};

use super::key_figures::{
    MinMedianMax, ProfileKeyFigures, bandwidth_kernel_name, describe_memory_location, page_size_name,
};
use crate::markup::escape_html;
use crate::plot::{
    Axis, LegendKey, PlotArea, PlotPoint, PlotSize, SMALL_PLOT_SIZE, StackedHorizontalBar, horizontal_bar_chart,
    html_figure,
};

/// CSS classes of the lines of a plot, in the order of use.
const LINE_STYLES: [&str; 6] = ["one", "two", "three", "four", "five", "six"];
/// Size of the latency plot, which takes the whole width of the page.
const WIDE_PLOT: PlotSize = PlotSize { width: 920.0, height: 380.0, left: 62.0, right: 14.0, top: 10.0, bottom: 46.0 };
/// Widths of the left margin (names) and the right margin (values) of a bar chart, in SVG units.
const BAR_MARGINS: (f64, f64) = (148.0, 92.0);
/// Maximum number of lines of a plot. More lines could not be distinguished.
const MAX_LINES: usize = 6;

/// Formats a measurement with its spread: `105 ns ± 1.2, 9 repetitions`.
pub fn format_measurement(m: &Measurement, unit: &str) -> String {
    format!(
        "{} {unit} ± {}, {}",
        number(m.median),
        number(m.median_absolute_deviation),
        format_count_with_noun(u64::from(m.repetitions), "repetition")
    )
}

fn measured_point(x: f64, m: &Measurement, unit: &str, at: String) -> PlotPoint {
    PlotPoint { x, y: m.median, low: m.min, high: m.max, title: format!("{at}: {}", format_measurement(m, unit)) }
}

/// Returns an HTML figure without a plot. Its caption is the reason.
pub fn figure_without_plot(title: &str, why: &str) -> String {
    html_figure(title, why, &[], "")
}

/// Rounds `n` to 1, 2 or 5 times a power of ten: up if `up` is set, else down.
fn round_125(n: f64, up: bool) -> f64 {
    let power = 10f64.powf(n.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|s| s * power);
    let found =
        if up { steps.into_iter().find(|&s| s >= n * 0.999) } else { steps.into_iter().rfind(|&s| s <= n * 1.001) };
    found.unwrap_or(n)
}

/// Plots the latency of a memory access against the size of the buffer (pointer chain).
pub fn latency_curve_chart(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let curves = f.local_latency_curves_of_first_node();
    let all = || curves.iter().flat_map(|c| &c.points).filter(|p| p.bytes > 0 && p.latency.median > 0.0);
    let (Some(x), Some(y)) = (
        MinMedianMax::summarize_positive_values(all().map(|p| p.bytes as f64)),
        MinMedianMax::summarize_positive_values(all().map(|p| p.latency.median)),
    ) else {
        return figure_without_plot("Latency by size", "No latency curve was measured.");
    };
    // Margins below the lowest and above the highest step for the labels.
    let y_ends = (round_125(y.low * 0.6, false), round_125(y.high * 2.2, true));
    let x_ends = (x.low, if x.high > x.low { x.high } else { x.low * 2.0 });
    let powers = (0..22).map(|i| f64::from(1 << 10) * 4f64.powi(i));
    let ones = (-1..6).flat_map(|e| [1.0, 2.0, 5.0].map(|s| s * 10f64.powi(e)));
    let mut field = PlotArea::empty(
        WIDE_PLOT,
        Axis::with_logarithmic_scale(x_ends, powers, "buffer size", |n| format_bytes(n as u64)),
        Axis::with_logarithmic_scale(y_ends, ones, "ns per load", |n| {
            if n < 1.0 { format!("{n:.1}") } else { format!("{n:.0}") }
        }),
    );
    let node = curves.first().map_or(0, |c| c.cpu_node);
    add_cache_size_lines(&mut field, cache_sizes(profile, node), x_ends);
    let mut keys = Vec::new();
    for curve in &curves {
        let (style, name) = match curve.pages {
            BufferPageKind::Base => ("two", "base pages"),
            BufferPageKind::Huge => ("one", "huge pages"),
        };
        let key = LegendKey { style, name };
        let of = curve.points.iter().filter(|p| p.bytes > 0 && p.latency.median > 0.0);
        let points: Vec<PlotPoint> = of
            .map(|p| PlotPoint {
                low: p.latency.min.max(y_ends.0),
                ..measured_point(p.bytes as f64, &p.latency, "ns", format!("{}, {name}", format_bytes(p.bytes)))
            })
            .collect();
        field.add_line_with_error_bars(key, &points);
        keys.push(key);
    }
    // If latency does not rise from level to level, the levels are noise and are not labelled.
    let rising = profile.latency.memory_levels.windows(2).all(|w| w[0].latency.median < w[1].latency.median);
    if rising {
        add_level_labels(&mut field, &profile.latency.memory_levels, x_ends);
    }
    let steps = profile.latency.memory_levels.iter().filter(|l| l.latency.median > 0.0);
    let steps: Vec<String> = steps.map(|l| format!("{} {}", escape_html(&l.name), number(l.latency.median))).collect();
    let title = match steps.is_empty() || !rising {
        true => format!("A load takes {} to {} ns, by the size of the data", number(y.low), number(y.high)),
        false => format!("Each step is a level of memory: {} ns", steps.join(", ")),
    };
    let caption = format!(
        "One thread on node {node} follows a random pointer chain through a buffer on its own node, so each load depends on \
         the previous one. Dashed: cache sizes. Whiskers: smallest and largest repetition.{}",
        if curves.len() == 1 {
            format!(" Only {} pages were measured.", page_size_name(curves[0].pages))
        } else {
            String::new()
        }
    );
    let svg = field.into_svg(&format!("Latency against buffer size, on node {node}. {title}"));
    html_figure(&title, &caption, &keys, &format!(r#"<div class="wide broad">{svg}</div>"#))
}

/// Draws the sizes of the caches as vertical lines.
fn add_cache_size_lines(field: &mut PlotArea, sizes: Vec<(String, u64)>, x_ends: (f64, f64)) {
    for (row, (name, bytes)) in sizes.into_iter().enumerate() {
        if (x_ends.0..=x_ends.1).contains(&(bytes as f64)) {
            field.add_vertical_line(
                LegendKey { style: "six", name: "" },
                bytes as f64,
                &format!("{name} {}", format_bytes(bytes)),
                (row % 2) as f64,
            );
        }
    }
}

/// Writes the name and latency of each level of memory below its part of the curve.
fn add_level_labels(field: &mut PlotArea, levels: &[MemoryLevel], x_ends: (f64, f64)) {
    for level in levels {
        if level.latency.median <= 0.0 || level.from_bytes == 0 {
            continue;
        }
        let ends = [level.from_bytes as f64, level.to_bytes as f64].map(|b| b.clamp(x_ends.0, x_ends.1));
        let text = format!("{} {} ns", level.name, number(level.latency.median));
        // Keeps the label inside the plot.
        let half = text.len() as f64 * 3.6;
        let x = (field.x_position(ends[0]) + field.x_position(ends[1])) / 2.0;
        let x = x.clamp(WIDE_PLOT.left + half, WIDE_PLOT.width - WIDE_PLOT.right - half);
        let y = field.y_position(level.latency.median) + 22.0;
        field.add_text(x, y.min(WIDE_PLOT.height - WIDE_PLOT.bottom - 5.0), &text);
    }
}

/// Returns name and size in bytes of the data caches of a node's first usable CPU, from L1 on.
fn cache_sizes(profile: &MachineProfile, node: u32) -> Vec<(String, u64)> {
    let topology = &profile.topology;
    let first = topology
        .find_node(node)
        .and_then(|n| n.cpus.intersection(&topology.allowed.cpus).smallest_id().or(n.cpus.smallest_id()));
    let Some(cpu) = first else { return Vec::new() };
    let caches = topology.caches.iter().filter(|c| c.kind != genuma_machine::topology::CacheKind::Instruction);
    caches.filter(|c| c.cpus.contains(cpu)).map(|c| (format!("L{}", c.level), c.bytes)).collect()
}

/// Returns the node with the lowest number whose bandwidth to its own memory was measured, and these measurements. If
/// there are none, returns node 0 and an empty list.
pub fn local_bandwidths_of_first_node(f: ProfileKeyFigures<'_>) -> (u32, Vec<&BandwidthMeasurement>) {
    let own = |b: &&BandwidthMeasurement| b.cpu_node.is_some_and(|node| b.memory == MemoryLocation::Node(node));
    let all = &f.0.bandwidth;
    let Some(node) = all.iter().filter(own).filter_map(|b| b.cpu_node).min() else { return (0, Vec::new()) };
    (node, all.iter().filter(own).filter(|b| b.cpu_node == Some(node)).collect())
}

/// Plots the bandwidth of one node to its own memory, by bandwidth kernel: of one thread, and the maximum over all
/// thread counts.
pub fn bandwidth_by_kernel_chart(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let (node, entries) = local_bandwidths_of_first_node(f);
    let kernels: BTreeSet<BandwidthKernel> = entries.iter().map(|b| b.kernel).collect();
    if kernels.is_empty() {
        return figure_without_plot("Bandwidth by kernel", "No bandwidth of a node on its own memory was measured.");
    }
    let (one, all) =
        (LegendKey { style: "one", name: "one thread" }, LegendKey { style: "pale", name: "more threads" });
    let mut rows = Vec::new();
    for kernel in kernels {
        let of = || entries.iter().filter(|b| b.kernel == kernel);
        let alone = of().find(|b| b.threads == 1).map(|b| b.total);
        let Some(most) = of().max_by(|a, b| a.total.median.total_cmp(&b.total.median)) else { continue };
        let first = alone.map_or(0.0, |m| m.median);
        let crowd = format!(
            "{}: {}",
            format_count_with_noun(u64::from(most.threads), "thread"),
            format_measurement(&most.total, "GB/s")
        );
        let mut parts = Vec::new();
        if let Some(alone) = alone {
            parts.push((one, first, format!("one thread: {}", format_measurement(&alone, "GB/s"))));
        }
        parts.push((all, (most.total.median - first).max(0.0), crowd));
        let text = match alone {
            Some(_) if most.threads > 1 => format!("{} → {}", number(first), number(most.total.median)),
            _ => number(most.total.median),
        };
        rows.push(StackedHorizontalBar { name: bandwidth_kernel_name(kernel).to_string(), parts, text });
    }
    let title = match (
        entries.iter().find(|b| b.threads == 1 && b.kernel == BandwidthKernel::Triad),
        f.one_thread_local_bandwidth(),
    ) {
        (Some(b), _) => format!("One thread moves {} GB/s (triad)", number(b.total.median)),
        (None, Some(r)) => {
            format!("One thread moves {} GB/s ({})", number(r.total.median), bandwidth_kernel_name(r.kernel))
        }
        _ => "Bandwidth by kernel".to_string(),
    };
    html_figure(
        &title,
        &format!(
            "GB/s of node {node} on its own memory: one thread → maximum over all thread counts. Bytes as STREAM counts \
             them; lines that a store fetches first are not counted."
        ),
        &[one, all],
        &horizontal_bar_chart(&rows, BAR_MARGINS, &format!("Bandwidth by kernel on node {node}. {title}")),
    )
}

/// Plots the bandwidth of one node to its own memory against the number of threads. Empty if no bandwidth kernel was
/// measured with several numbers of threads.
pub fn bandwidth_by_threads_chart(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let (node, entries) = local_bandwidths_of_first_node(f);
    let kernels = [
        BandwidthKernel::Read,
        BandwidthKernel::Triad,
        BandwidthKernel::CopyNt,
        BandwidthKernel::Write,
        BandwidthKernel::Random,
        BandwidthKernel::Copy,
    ];
    let mut lines: Vec<(LegendKey, Vec<PlotPoint>)> = Vec::new();
    for kernel in kernels {
        let mut of: Vec<&&BandwidthMeasurement> = entries.iter().filter(|b| b.kernel == kernel).collect();
        of.sort_by_key(|b| (b.threads, b.pages));
        // Where base and huge pages were measured, huge pages are kept.
        of.reverse();
        of.dedup_by_key(|b| b.threads);
        of.reverse();
        if of.len() > 1 {
            let name = bandwidth_kernel_name(kernel);
            let points = of.iter().map(|b| {
                measured_point(
                    f64::from(b.threads),
                    &b.total,
                    "GB/s",
                    format!("{name}, {}", format_count_with_noun(u64::from(b.threads), "thread")),
                )
            });
            lines.push((LegendKey { style: LINE_STYLES[lines.len()], name }, points.collect()));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let best = lines.iter().flat_map(|l| &l.1).max_by(|a, b| a.y.total_cmp(&b.y)).map_or((0.0, 0.0), |p| (p.x, p.y));
    let title = format!(
        "Node {node} moves {} GB/s at most, with {}",
        number(best.1),
        format_count_with_noun(best.0 as u64, "thread")
    );
    let caption =
        format!("All threads are on node {node}, and so is their memory. Whiskers: smallest and largest repetition.");
    bandwidth_line_plot(&title, &caption, "threads", "GB/s, all together", &lines)
}

/// Plots lines of bandwidth against a number, such as the number of threads.
fn bandwidth_line_plot(title: &str, caption: &str, x: &str, y: &str, lines: &[(LegendKey, Vec<PlotPoint>)]) -> String {
    let all = || lines.iter().flat_map(|l| &l.1);
    let right = all().map(|p| p.x).fold(1.0, f64::max);
    let top = all().map(|p| p.high.max(p.y).max(p.low)).fold(0.0, f64::max);
    let top = if top > 0.0 { top } else { 1.0 };
    let mut field = PlotArea::empty(
        SMALL_PLOT_SIZE,
        Axis::with_whole_number_ticks(right * 1.03, x),
        Axis::with_linear_scale(top * 1.06, y, format_tick),
    );
    for (key, points) in lines {
        field.add_line_with_error_bars(*key, points);
    }
    let keys: Vec<LegendKey> = lines.iter().map(|l| l.0).collect();
    html_figure(title, caption, &keys, &field.into_svg(&format!("{y} against {x}. {title}")))
}

/// Formats the value of a tick without unnecessary decimals.
fn format_tick(n: f64) -> String {
    if (n - n.round()).abs() < 1e-6 {
        number(n.round() + 0.0).trim_end_matches(".00").trim_end_matches(".0").to_string()
    } else {
        format!("{n:.1}")
    }
}

/// Plots the bandwidth of the whole machine by memory placement, at the largest number of threads measured. Empty if
/// fewer than two placements were measured.
pub fn bandwidth_by_placement_chart(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let Some(kernel) = f.main_bandwidth_kernel() else { return String::new() };
    let threads = f
        .successful_bandwidth_measurements()
        .filter(|r| r.kernel == kernel && r.cpu_node.is_none())
        .map(|r| r.threads)
        .max();
    let Some(threads) = threads else { return String::new() };
    let mut rows: Vec<(&MemoryLocation, Measurement)> = Vec::new();
    for rate in f
        .successful_bandwidth_measurements()
        .filter(|r| r.kernel == kernel && r.cpu_node.is_none() && r.threads == threads)
    {
        match rows.iter_mut().find(|r| r.0 == rate.memory) {
            Some(row) if row.1.median < rate.total.median => row.1 = rate.total,
            Some(_) => {}
            None => rows.push((rate.memory, rate.total)),
        }
    }
    rows.sort_by(|a, b| b.1.median.total_cmp(&a.1.median));
    if rows.len() < 2 {
        return String::new();
    }
    let (best, worst) = (&rows[0], &rows[rows.len() - 1]);
    let title = format!(
        "All {threads} threads: {} GB/s at best, {} at worst, by memory placement",
        number(best.1.median),
        number(worst.1.median)
    );
    let key = LegendKey { style: "one", name: "" };
    let bar = |(spot, m): &(&MemoryLocation, Measurement)| StackedHorizontalBar {
        name: short_placement_name(spot),
        parts: vec![(key, m.median, format!("{}: {}", describe_memory_location(spot), format_measurement(m, "GB/s")))],
        text: number(m.median),
    };
    let rows: Vec<StackedHorizontalBar> = rows.iter().take(12).map(bar).collect();
    let caption = format!("GB/s of all threads together ({}).", bandwidth_kernel_name(kernel));
    html_figure(&title, &caption, &[], &horizontal_bar_chart(&rows, BAR_MARGINS, &title))
}

/// Returns a short name of a memory placement, for a bar chart.
fn short_placement_name(spot: &MemoryLocation) -> String {
    match spot {
        MemoryLocation::Node(node) => format!("all on node {node}"),
        MemoryLocation::Interleaved(_) => "interleaved".to_string(),
        MemoryLocation::Weighted(_) => "weighted interleave".to_string(),
        MemoryLocation::Local => "each on its own node".to_string(),
    }
}

/// Plots the latency of one thread against the bandwidth that other threads use at the same time.
pub fn loaded_latency_chart(profile: &MachineProfile) -> String {
    let mut curves: Vec<&LoadedLatencyCurve> = profile.loaded.iter().filter(|c| c.points.len() > 1).collect();
    // The first node's own memory first, then more distant memory.
    curves.sort_by_key(|c| (c.cpu_node, c.cpu_node != c.memory_node, c.memory_node));
    let left_out = curves.len().saturating_sub(4);
    curves.truncate(4);
    if curves.is_empty() {
        return figure_without_plot("Latency under load", "Not measured.");
    }
    let names: Vec<String> =
        curves.iter().map(|c| format!("node {} to memory of node {}", c.cpu_node, c.memory_node)).collect();
    let lines: Vec<(LegendKey, Vec<PlotPoint>)> = curves
        .iter()
        .zip(&names)
        .enumerate()
        .map(|(i, (curve, name))| {
            let points = curve.points.iter().map(|p| {
                let rate = p.injected.map_or(0.0, |m| m.median);
                measured_point(rate, &p.latency, "ns", format!("{} GB/s of traffic", number(rate)))
            });
            (LegendKey { style: LINE_STYLES[i], name }, points.collect())
        })
        .collect();
    let all = || lines.iter().flat_map(|l| &l.1);
    let (right, top) =
        (all().map(|p| p.x).fold(0.0, f64::max), all().map(|p| p.y.max(p.high).max(p.low)).fold(0.0, f64::max));
    let mut field = PlotArea::empty(
        SMALL_PLOT_SIZE,
        Axis::with_linear_scale(right.max(0.1) * 1.04, "traffic of the other threads, GB/s", format_tick),
        Axis::with_linear_scale(top.max(1.0) * 1.06, "ns per load", format_tick),
    );
    for (key, points) in &lines {
        field.add_line_with_error_bars(*key, points);
    }
    let first = &lines[0].1;
    let worst = first.iter().map(|p| p.y).fold(0.0, f64::max);
    let idle = first[0].y;
    let title = if worst > idle * 1.05 {
        format!("Under load the latency is {} ns instead of {} ns", number(worst), number(idle))
    } else {
        format!("Traffic did not increase the latency of {} ns", number(idle))
    };
    let more = match left_out {
        0 => String::new(),
        n => format!(" {} more in the tables.", format_count_with_noun(n as u64, "pair")),
    };
    let caption = format!("Latency of one thread while the other threads of the node read from the same memory.{more}");
    let keys: Vec<LegendKey> = lines.iter().map(|l| l.0).collect();
    html_figure(&title, &caption, &keys, &field.into_svg(&format!("Latency against injected bandwidth. {title}")))
}

/// Plots the total and the per-thread bandwidth against the number of threads, for the memory of one node with cores,
/// of memory-only nodes, and for interleaved memory.
pub fn contention_charts(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let all = f.contention_curves_of_main_kernel();
    let pages = all.iter().map(|c| c.pages).max();
    let all: Vec<&ContentionCurve> = all.into_iter().filter(|c| Some(c.pages) == pages).collect();
    // One node with cores represents all of them. Memory-only nodes and interleaved memory are shown as well.
    let own = f.nodes_with_cores();
    let mut shown: Vec<&ContentionCurve> = Vec::new();
    for curve in &all {
        let of_cores = |c: &ContentionCurve| matches!(c.memory, MemoryLocation::Node(n) if own.contains(&n));
        if !(of_cores(curve) && shown.iter().any(|c| of_cores(c))) {
            shown.push(curve);
        }
    }
    shown.truncate(MAX_LINES);
    if shown.is_empty() {
        return figure_without_plot("Contention", "Not measured.");
    }
    let names: Vec<String> = shown.iter().map(|c| describe_memory_location(&c.memory)).collect();
    let lines = |of: fn(&genuma_probe::profile::ContentionPoint) -> Measurement| -> Vec<(LegendKey, Vec<PlotPoint>)> {
        shown
            .iter()
            .zip(&names)
            .enumerate()
            .map(|(i, (curve, name))| {
                let points = curve.points.iter().map(|p| {
                    measured_point(
                        f64::from(p.threads),
                        &of(p),
                        "GB/s",
                        format!("{name}, {}", format_count_with_noun(u64::from(p.threads), "thread")),
                    )
                });
                (LegendKey { style: LINE_STYLES[i], name }, points.collect())
            })
            .collect()
    };
    let left_out = all.len() - shown.len();
    let rest = match left_out {
        0 => String::new(),
        n => format!(" {} more in the tables.", format_count_with_noun(n as u64, "curve")),
    };
    let [total_title, thread_title] = contention_titles(&f);
    let kernel = bandwidth_kernel_name(shown[0].kernel);
    let total = bandwidth_line_plot(
        &total_title,
        &format!(
            "Bandwidth of all threads together ({kernel}). The cores of the memory's node are used first, then those of other nodes.{rest}"
        ),
        "threads",
        "GB/s, all together",
        &lines(|p| p.total),
    );
    let each = bandwidth_line_plot(
        &thread_title,
        "The same, divided by the number of threads.",
        "threads",
        "GB/s per thread",
        &lines(|p| p.per_thread),
    );
    total + &each
}

/// Titles of the charts of the bandwidth of all threads together, and of each thread.
fn contention_titles(f: &ProfileKeyFigures<'_>) -> [String; 2] {
    let s = f.bandwidth_saturation();
    let total = match s {
        Some(s) if s.saturates_before_all_threads() => {
            format!(
                "{} reach {:.0}% of the bandwidth of one node's memory",
                format_count_with_noun(u64::from(s.threads), "thread"),
                s.share_of_max * 100.0
            )
        }
        Some(s) => format!(
            "The bandwidth of one node's memory still rises at {}",
            format_count_with_noun(u64::from(s.bandwidth_at_max_threads.0), "thread")
        ),
        None => "Bandwidth by number of threads".to_string(),
    };
    let of_thread = match s.and_then(|s| Some((s, s.one_thread_gbs.filter(|&a| a > 0.0)?))) {
        Some((s, alone)) if s.bandwidth_at_max_threads.0 > 1 => {
            format!(
                "With {} threads on one node's memory each has {:.0}% of the bandwidth of a single thread",
                s.bandwidth_at_max_threads.0,
                s.bandwidth_at_max_threads.1 / alone * 100.0
            )
        }
        _ => "Bandwidth per thread".to_string(),
    };
    [total, of_thread]
}
