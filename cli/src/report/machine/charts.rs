//! The plots of a machine.

use std::collections::BTreeSet;

use genuma_probe::MachineProfile;
use genuma_probe::profile::{Bandwidth, ContentionCurve, Kernel, LoadedCurve, Measured, PageKind, Spot};

use super::findings::{Findings, Range, kernel_name, pages_name, spot_name};
use crate::report::markup::{binary, counted, escape, figure as number};
use crate::report::plot::{Axis, Bar, Field, Key, Point, SMALL, Size, bars, figure};

/// Styles of lines, in the order they are given out.
const STYLES: [&str; 6] = ["one", "two", "three", "four", "five", "six"];
/// The latency curve takes the whole width.
const WIDE: Size = Size { width: 920.0, height: 380.0, left: 62.0, right: 14.0, top: 10.0, bottom: 46.0 };
/// Bars leave this much room for their names and their figures.
const BARS: (f64, f64) = (148.0, 92.0);
/// More lines than this cannot be told apart.
const MOST_LINES: usize = 6;

/// `105 ns, ± 1.2, 9 repetitions`.
pub(crate) fn told(m: &Measured, unit: &str) -> String {
    format!(
        "{} {unit} ± {}, {}",
        number(m.median),
        number(m.mad),
        counted(u64::from(m.repetitions), "repetition")
    )
}

fn point(x: f64, m: &Measured, unit: &str, at: String) -> Point {
    Point { x, y: m.median, low: m.min, high: m.max, title: format!("{at}: {}", told(m, unit)) }
}

/// A figure that says why it is empty.
pub(crate) fn absent(title: &str, why: &str) -> String {
    figure(title, why, &[], "")
}

/// The next round number from `n` up, or down: 1, 2 or 5 times a power of ten.
fn round(n: f64, up: bool) -> f64 {
    let power = 10f64.powf(n.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|s| s * power);
    let found = if up {
        steps.into_iter().find(|&s| s >= n * 0.999)
    } else {
        steps.into_iter().rfind(|&s| s <= n * 1.001)
    };
    found.unwrap_or(n)
}

/// Latency against the size of what is chased over.
pub(crate) fn staircase(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let curves = f.staircases();
    let all = || curves.iter().flat_map(|c| &c.points).filter(|p| p.bytes > 0 && p.latency.median > 0.0);
    let (Some(x), Some(y)) =
        (Range::of(all().map(|p| p.bytes as f64)), Range::of(all().map(|p| p.latency.median)))
    else {
        return absent("Latency by size", "No latency curve was measured.");
    };
    // Room under the lowest step and over the highest for what is written there.
    let y_ends = (round(y.low * 0.6, false), round(y.high * 2.2, true));
    let x_ends = (x.low, if x.high > x.low { x.high } else { x.low * 2.0 });
    let powers = (0..22).map(|i| f64::from(1 << 10) * 4f64.powi(i));
    let ones = (-1..6).flat_map(|e| [1.0, 2.0, 5.0].map(|s| s * 10f64.powi(e)));
    let mut field = Field::new(
        WIDE,
        Axis::logarithmic(x_ends, powers, "bytes chased over", |n| binary(n as u64)),
        Axis::logarithmic(y_ends, ones, "ns a load", |n| {
            if n < 1.0 { format!("{n:.1}") } else { format!("{n:.0}") }
        }),
    );
    let node = curves.first().map_or(0, |c| c.cpu_node);
    for (row, (name, bytes)) in capacities(profile, node).into_iter().enumerate() {
        if (x_ends.0..=x_ends.1).contains(&(bytes as f64)) {
            field.mark(
                Key { style: "six", name: "" },
                bytes as f64,
                &format!("{name} {}", binary(bytes)),
                (row % 2) as f64,
            );
        }
    }
    let mut keys = Vec::new();
    for curve in &curves {
        let (style, name) = match curve.pages {
            PageKind::Base => ("two", "base pages"),
            PageKind::Huge => ("one", "huge pages"),
        };
        let key = Key { style, name };
        let of = curve.points.iter().filter(|p| p.bytes > 0 && p.latency.median > 0.0);
        let points: Vec<Point> = of
            .map(|p| Point {
                low: p.latency.min.max(y_ends.0),
                ..point(p.bytes as f64, &p.latency, "ns", format!("{}, {name}", binary(p.bytes)))
            })
            .collect();
        field.series(key, &points);
        keys.push(key);
    }
    // Steps that fall are noise: they are in the tables, but no levels of memory.
    let rising = profile.latency.levels.windows(2).all(|w| w[0].latency.median < w[1].latency.median);
    for level in profile.latency.levels.iter().filter(|_| rising) {
        if level.latency.median <= 0.0 || level.from_bytes == 0 {
            continue;
        }
        let ends = [level.from_bytes as f64, level.to_bytes as f64].map(|b| b.clamp(x_ends.0, x_ends.1));
        let text = format!("{} {} ns", level.name, number(level.latency.median));
        // Inside the field, whatever the width of the step.
        let half = text.len() as f64 * 3.6;
        let x = (field.across(ends[0]) + field.across(ends[1])) / 2.0;
        let x = x.clamp(WIDE.left + half, WIDE.width - WIDE.right - half);
        let y = field.down(level.latency.median) + 22.0;
        field.text(x, y.min(WIDE.height - WIDE.bottom - 5.0), &text);
    }
    let steps = profile.latency.levels.iter().filter(|l| l.latency.median > 0.0);
    let steps: Vec<String> =
        steps.map(|l| format!("{} {}", escape(&l.name), number(l.latency.median))).collect();
    let title = match steps.is_empty() || !rising {
        true => format!("A load takes {} to {} ns, by the size of the data", number(y.low), number(y.high)),
        false => format!("Each step is a level of memory: {} ns", steps.join(", ")),
    };
    let caption = format!(
        "One thread on node {node} follows a random chain through a buffer on its own node; each load needs the one before. Dashed: sizes of \
         the caches. Whiskers: smallest and largest repetition.{}",
        if curves.len() == 1 {
            format!(" Only {} pages were measured.", pages_name(curves[0].pages))
        } else {
            String::new()
        }
    );
    let svg = field.finish(&format!("Latency against bytes chased over, on node {node}. {title}"));
    figure(&title, &caption, &keys, &format!(r#"<div class="wide broad">{svg}</div>"#))
}

/// Caches for data that a CPU of this node uses, nearest first.
fn capacities(profile: &MachineProfile, node: u32) -> Vec<(String, u64)> {
    let topology = &profile.topology;
    let first =
        topology.node(node).and_then(|n| n.cpus.and(&topology.allowed.cpus).first().or(n.cpus.first()));
    let Some(cpu) = first else { return Vec::new() };
    let caches =
        topology.caches.iter().filter(|c| c.kind != genuma_machine::topology::CacheKind::Instruction);
    caches.filter(|c| c.cpus.contains(cpu)).map(|c| (format!("L{}", c.level), c.bytes)).collect()
}

/// Bandwidth entries of the first node that was measured on its own memory.
pub(crate) fn at_home(f: Findings<'_>) -> (u32, Vec<&Bandwidth>) {
    let own = |b: &&Bandwidth| b.cpu_node.is_some_and(|node| b.memory == Spot::Node(node));
    let all = &f.0.bandwidth;
    let Some(node) = all.iter().filter(own).filter_map(|b| b.cpu_node).min() else { return (0, Vec::new()) };
    (node, all.iter().filter(own).filter(|b| b.cpu_node == Some(node)).collect())
}

/// One node's bandwidth by kernel: one thread, and the most that any number of its threads reach.
pub(crate) fn kernels(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let (node, entries) = at_home(f);
    let kernels: BTreeSet<Kernel> = entries.iter().map(|b| b.kernel).collect();
    if kernels.is_empty() {
        return absent("Bandwidth by kernel", "No bandwidth of a node on its own memory was measured.");
    }
    let (one, all) = (Key { style: "one", name: "one thread" }, Key { style: "pale", name: "more threads" });
    let mut rows = Vec::new();
    for kernel in kernels {
        let of = || entries.iter().filter(|b| b.kernel == kernel);
        let alone = of().find(|b| b.threads == 1).map(|b| b.total);
        let Some(most) = of().max_by(|a, b| a.total.median.total_cmp(&b.total.median)) else { continue };
        let first = alone.map_or(0.0, |m| m.median);
        let crowd = format!("{}: {}", counted(u64::from(most.threads), "thread"), told(&most.total, "GB/s"));
        let mut parts = Vec::new();
        if let Some(alone) = alone {
            parts.push((one, first, format!("one thread: {}", told(&alone, "GB/s"))));
        }
        parts.push((all, (most.total.median - first).max(0.0), crowd));
        let text = match alone {
            Some(_) if most.threads > 1 => format!("{} → {}", number(first), number(most.total.median)),
            _ => number(most.total.median),
        };
        rows.push(Bar { name: kernel_name(kernel).to_string(), parts, text });
    }
    let title = match (entries.iter().find(|b| b.threads == 1 && b.kernel == Kernel::Triad), f.one_thread()) {
        (Some(b), _) => format!("One thread moves {} GB/s (triad)", number(b.total.median)),
        (None, Some(r)) => {
            format!("One thread moves {} GB/s ({})", number(r.total.median), kernel_name(r.kernel))
        }
        _ => "Bandwidth by kernel".to_string(),
    };
    figure(
        &title,
        &format!(
            "GB/s of node {node} on its own memory: one thread → the most of any number of its threads. Bytes as STREAM counts \
             them; lines that a store fetches first are not counted."
        ),
        &[one, all],
        &bars(&rows, BARS, &format!("Bandwidth by kernel on node {node}. {title}")),
    )
}

/// One node's bandwidth against the number of its threads.
pub(crate) fn by_threads(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let (node, entries) = at_home(f);
    let kernels = [Kernel::Read, Kernel::Triad, Kernel::CopyNt, Kernel::Write, Kernel::Random, Kernel::Copy];
    let mut lines: Vec<(Key, Vec<Point>)> = Vec::new();
    for kernel in kernels {
        let mut of: Vec<&&Bandwidth> = entries.iter().filter(|b| b.kernel == kernel).collect();
        of.sort_by_key(|b| (b.threads, b.pages));
        // Base pages stand before huge ones: the last of each number of threads is kept.
        of.reverse();
        of.dedup_by_key(|b| b.threads);
        of.reverse();
        if of.len() > 1 {
            let name = kernel_name(kernel);
            let points = of.iter().map(|b| {
                point(
                    f64::from(b.threads),
                    &b.total,
                    "GB/s",
                    format!("{name}, {}", counted(u64::from(b.threads), "thread")),
                )
            });
            lines.push((Key { style: STYLES[lines.len()], name }, points.collect()));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let best =
        lines.iter().flat_map(|l| &l.1).max_by(|a, b| a.y.total_cmp(&b.y)).map_or((0.0, 0.0), |p| (p.x, p.y));
    let title = format!(
        "Node {node} moves {} GB/s at most, with {}",
        number(best.1),
        counted(best.0 as u64, "thread")
    );
    let caption = format!(
        "All threads are on node {node}, and so is their memory. Whiskers: smallest and largest repetition."
    );
    line_plot(&title, &caption, "threads", "GB/s, all together", &lines)
}

/// A plot of bandwidth lines against whole numbers.
fn line_plot(title: &str, caption: &str, x: &str, y: &str, lines: &[(Key, Vec<Point>)]) -> String {
    let all = || lines.iter().flat_map(|l| &l.1);
    let right = all().map(|p| p.x).fold(1.0, f64::max);
    let top = all().map(|p| p.high.max(p.y).max(p.low)).fold(0.0, f64::max);
    let top = if top > 0.0 { top } else { 1.0 };
    let mut field = Field::new(SMALL, Axis::whole(right * 1.03, x), Axis::linear(top * 1.06, y, axis_number));
    for (key, points) in lines {
        field.series(*key, points);
    }
    let keys: Vec<Key> = lines.iter().map(|l| l.0).collect();
    figure(title, caption, &keys, &field.finish(&format!("{y} against {x}. {title}")))
}

/// Figures of an axis: no more digits than they need.
fn axis_number(n: f64) -> String {
    if (n - n.round()).abs() < 1e-6 {
        number(n.round() + 0.0).trim_end_matches(".00").trim_end_matches(".0").to_string()
    } else {
        format!("{n:.1}")
    }
}

/// The whole machine's bandwidth by where memory lies, each at the most threads measured.
pub(crate) fn spots(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let Some(kernel) = f.kernel() else { return String::new() };
    let threads = f.rates().filter(|r| r.kernel == kernel && r.cpu_node.is_none()).map(|r| r.threads).max();
    let Some(threads) = threads else { return String::new() };
    let mut rows: Vec<(&Spot, Measured)> = Vec::new();
    for rate in f.rates().filter(|r| r.kernel == kernel && r.cpu_node.is_none() && r.threads == threads) {
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
        "All {threads} threads: {} GB/s at best, {} at worst, by where memory lies",
        number(best.1.median),
        number(worst.1.median)
    );
    let key = Key { style: "one", name: "" };
    let bar = |(spot, m): &(&Spot, Measured)| Bar {
        name: short_spot(spot),
        parts: vec![(key, m.median, format!("{}: {}", spot_name(spot), told(m, "GB/s")))],
        text: number(m.median),
    };
    let rows: Vec<Bar> = rows.iter().take(12).map(bar).collect();
    let caption = format!("GB/s of all threads together ({}).", kernel_name(kernel));
    figure(&title, &caption, &[], &bars(&rows, BARS, &title))
}

/// Where memory lies, short enough for the side of a plot.
fn short_spot(spot: &Spot) -> String {
    match spot {
        Spot::Node(node) => format!("all on node {node}"),
        Spot::Interleaved(_) => "interleaved".to_string(),
        Spot::Weighted(_) => "weighted interleave".to_string(),
        Spot::Local => "each on its own node".to_string(),
    }
}

/// Latency of one thread against the traffic of others.
pub(crate) fn loaded(profile: &MachineProfile) -> String {
    let mut curves: Vec<&LoadedCurve> = profile.loaded.iter().filter(|c| c.points.len() > 1).collect();
    // The first node's own memory first, then what is farther.
    curves.sort_by_key(|c| (c.cpu_node, c.cpu_node != c.memory_node, c.memory_node));
    let left_out = curves.len().saturating_sub(4);
    curves.truncate(4);
    if curves.is_empty() {
        return absent("Latency under load", "It was not measured.");
    }
    let names: Vec<String> =
        curves.iter().map(|c| format!("node {} to memory of node {}", c.cpu_node, c.memory_node)).collect();
    let lines: Vec<(Key, Vec<Point>)> = curves
        .iter()
        .zip(&names)
        .enumerate()
        .map(|(i, (curve, name))| {
            let points = curve.points.iter().map(|p| {
                let rate = p.injected.map_or(0.0, |m| m.median);
                point(rate, &p.latency, "ns", format!("{} GB/s of traffic", number(rate)))
            });
            (Key { style: STYLES[i], name }, points.collect())
        })
        .collect();
    let all = || lines.iter().flat_map(|l| &l.1);
    let (right, top) = (
        all().map(|p| p.x).fold(0.0, f64::max),
        all().map(|p| p.y.max(p.high).max(p.low)).fold(0.0, f64::max),
    );
    let mut field = Field::new(
        SMALL,
        Axis::linear(right.max(0.1) * 1.04, "traffic of the other threads, GB/s", axis_number),
        Axis::linear(top.max(1.0) * 1.06, "ns a load", axis_number),
    );
    for (key, points) in &lines {
        field.series(*key, points);
    }
    let first = &lines[0].1;
    let worst = first.iter().map(|p| p.y).fold(0.0, f64::max);
    let idle = first[0].y;
    let title = if worst > idle * 1.05 {
        format!("Under load a look-up waits {} ns instead of {} ns", number(worst), number(idle))
    } else {
        format!("Traffic did not lengthen a look-up's wait of {} ns", number(idle))
    };
    let more = match left_out {
        0 => String::new(),
        n => format!(" {} more in the tables.", counted(n as u64, "pair")),
    };
    let caption =
        format!("One thread chases while the node's other threads read from the same memory.{more}");
    let keys: Vec<Key> = lines.iter().map(|l| l.0).collect();
    figure(&title, &caption, &keys, &field.finish(&format!("Latency against injected bandwidth. {title}")))
}

/// Total and per-thread bandwidth as threads join: one node's memory against spread memory.
pub(crate) fn contention(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let all = f.contention();
    let pages = all.iter().map(|c| c.pages).max();
    let all: Vec<&ContentionCurve> = all.into_iter().filter(|c| Some(c.pages) == pages).collect();
    // One node stands for all; memory-only nodes and spread memory are shown beside it.
    let own = f.cpu_nodes();
    let mut shown: Vec<&ContentionCurve> = Vec::new();
    for curve in &all {
        let of_cores = |c: &ContentionCurve| matches!(c.memory, Spot::Node(n) if own.contains(&n));
        if !(of_cores(curve) && shown.iter().any(|c| of_cores(c))) {
            shown.push(curve);
        }
    }
    shown.truncate(MOST_LINES);
    if shown.is_empty() {
        return absent("Contention", "It was not measured.");
    }
    let names: Vec<String> = shown.iter().map(|c| spot_name(&c.memory)).collect();
    let lines = |of: fn(&genuma_probe::profile::ContentionPoint) -> Measured| -> Vec<(Key, Vec<Point>)> {
        shown
            .iter()
            .zip(&names)
            .enumerate()
            .map(|(i, (curve, name))| {
                let points = curve.points.iter().map(|p| {
                    point(
                        f64::from(p.threads),
                        &of(p),
                        "GB/s",
                        format!("{name}, {}", counted(u64::from(p.threads), "thread")),
                    )
                });
                (Key { style: STYLES[i], name }, points.collect())
            })
            .collect()
    };
    let left_out = all.len() - shown.len();
    let rest = match left_out {
        0 => String::new(),
        n => format!(" {} more in the tables.", counted(n as u64, "curve")),
    };
    let s = f.saturation();
    let title = match s {
        Some(s) if s.reached() => {
            format!(
                "{} can draw {:.0}% of what one node's memory gives",
                counted(u64::from(s.threads), "thread"),
                s.share * 100.0
            )
        }
        Some(s) => format!(
            "One node's memory still gives more to the last of {}",
            counted(u64::from(s.last.0), "thread")
        ),
        None => "Bandwidth as threads join".to_string(),
    };
    let kernel = kernel_name(shown[0].kernel);
    let total = line_plot(
        &title,
        &format!(
            "Bandwidth of all threads together ({kernel}). The cores beside the memory join first, then those of other nodes.{rest}"
        ),
        "threads",
        "GB/s, all together",
        &lines(|p| p.total),
    );
    let title = match s.and_then(|s| Some((s, s.alone.filter(|&a| a > 0.0)?))) {
        Some((s, alone)) if s.last.0 > 1 => {
            format!(
                "With {} threads on one node's memory, each has {:.0}% of what one has alone",
                s.last.0,
                s.last.1 / alone * 100.0
            )
        }
        _ => "What is left to each thread".to_string(),
    };
    let each = line_plot(
        &title,
        "The same, divided by the number of threads.",
        "threads",
        "GB/s a thread",
        &lines(|p| p.per_thread),
    );
    total + &each
}
