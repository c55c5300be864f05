//! `machine.html`: what a machine's memory was measured to do, as one page that needs nothing else.

mod findings;
mod words;
mod drawing;
mod matrix;
mod charts;
mod maps;
mod tables;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use genuma_probe::MachineProfile;

use super::BASE_STYLE;
use super::markup::{binary, counted, date, duration, escape, figure, fill};
use findings::{Findings, kernel_name, spot_name};

/// The page, complete: style, words, drawing, plots and tables. There is no script in it.
pub(crate) fn render(profile: &MachineProfile) -> String {
    fill(include_str!("page.html"), |name| match name {
        "style" => [BASE_STYLE, include_str!("style.css")].concat(),
        "title" => escape(&title(profile)),
        "made_by" => escape(&profile.made_by),
        "machine" => machine(profile),
        "numbers" => numbers(profile),
        "words" => words::words(profile),
        "drawing" => drawing::drawing(&profile.topology),
        "drawn" => drawn(profile),
        "distances" => maps::distances(profile),
        "staircase" => charts::staircase(profile),
        "maps" => maps::maps(profile),
        "bandwidth" => [
            charts::kernels(profile),
            charts::by_threads(profile),
            charts::spots(profile),
            charts::loaded(profile),
        ]
        .concat(),
        "contention" => charts::contention(profile),
        "run" => run(profile),
        "devices" => tables::devices(profile),
        "tables" => tables::tables(profile),
        "checks" => tables::checks(profile),
        "missing" => tables::missing(profile),
        _ => String::new(),
    })
}

fn title(profile: &MachineProfile) -> String {
    format!("The memory of {}", profile.host.as_deref().unwrap_or("this machine"))
}

/// The machine in a line.
fn machine(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let t = &profile.topology;
    let memory: u64 = t.nodes.iter().map(|n| n.memory).sum();
    let mut says: Vec<String> = t.processor.iter().map(|p| escape(p)).collect();
    says.push(counted(f.packages() as u64, "socket"));
    let only = f.memory_only().len() as u64;
    says.push(
        counted(t.nodes.len() as u64, "NUMA node")
            + &if only > 0 { format!(" ({only} without cores)") } else { String::new() },
    );
    let cores = f.cores();
    says.push(counted(cores as u64, "core"));
    if t.cpus.len() > cores {
        says.push(counted(t.cpus.len() as u64, "hardware thread"));
    }
    says.push(format!("{} of memory", binary(memory)));
    says.extend(t.kernel.iter().map(|k| format!("Linux {}", escape(k))));
    says.join(" · ")
}

/// The key numbers.
fn numbers(profile: &MachineProfile) -> String {
    const UNKNOWN: &str = "unknown";
    let f = Findings(profile);
    let mut html = String::new();
    let mut tile = |name: &str, value: &str, more: &str| {
        let _ = write!(html, "<div><dt>{name}</dt><dd><b>{value}</b><span>{more}</span></dd></div>");
    };
    match f.local() {
        Some(l) if l.high > l.low * 1.03 => tile(
            "Local latency",
            &format!("{} ns", figure(l.middle)),
            &format!("{} to {} by node", figure(l.low), figure(l.high)),
        ),
        Some(l) => {
            tile("Local latency", &format!("{} ns", figure(l.middle)), "a load from a core's own node")
        }
        None => tile("Local latency", UNKNOWN, "not measured"),
    }
    match (f.local(), f.remote(), f.to_memory_only()) {
        (Some(l), Some(r), _) | (Some(l), None, Some(r)) => tile(
            "Remote latency",
            &format!("{:.1} × local", r.middle / l.middle),
            &format!("{} ns; at worst {:.1} ×", figure(r.middle), r.high / l.middle),
        ),
        _ if f.memory_nodes().len() > 1 => tile("Remote latency", UNKNOWN, "not measured"),
        _ => tile("Remote latency", "none", "all memory is on one node"),
    }
    match f.huge_gain() {
        Some(g) if g.clear() => tile(
            "Huge pages",
            &format!("{}{:.0}%", if g.share() > 0.0 { "−" } else { "+" }, g.share().abs() * 100.0),
            &format!("latency: {} instead of {} ns", figure(g.huge.median), figure(g.base.median)),
        ),
        Some(_) => tile("Huge pages", "no change", "of latency beyond its spread"),
        None => tile("Huge pages", UNKNOWN, "not compared with base pages"),
    }
    match f.one_thread() {
        Some(r) => tile(
            "One thread",
            &format!("{} GB/s", figure(r.total.median)),
            &format!("{}, own node", kernel_name(r.kernel)),
        ),
        None => tile("One thread", UNKNOWN, "bandwidth not measured"),
    }
    match f.kernel().and_then(|k| f.most(k)) {
        Some(r) => tile(
            if r.cpu_node.is_some() && f.cpu_nodes().len() > 1 { "One node" } else { "Whole machine" },
            &format!("{} GB/s", figure(r.total.median)),
            &format!(
                "{}, {}, {}",
                kernel_name(r.kernel),
                counted(u64::from(r.threads), "thread"),
                spot_name(r.memory)
            ),
        ),
        None => tile("Whole machine", UNKNOWN, "bandwidth not measured"),
    }
    match (f.of_theory(), profile.theory.peak_gbs) {
        (Some((share, best)), Some(peak)) => tile(
            "Share of the peak",
            &format!("{:.0}%", share * 100.0),
            &format!(
                "{} {} of theoretical {} GB/s",
                kernel_name(best.kernel),
                figure(best.total.median),
                figure(peak)
            ),
        ),
        (None, Some(peak)) => {
            tile("Theoretical peak", &format!("{} GB/s", figure(peak)), "none of it measured")
        }
        _ => tile(
            "Share of the peak",
            UNKNOWN,
            &escape(profile.theory.unknown_because.as_deref().unwrap_or("the firmware does not tell")),
        ),
    }
    html
}

/// What the drawing shows.
fn drawn(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let t = &profile.topology;
    let fields = if t.caches.is_empty() { "." } else { "; cores in one field share their last cache." };
    let mut says = vec![format!("Squares are cores{fields}")];
    if t.nodes.iter().any(|n| drawing::numbered(t, n)) {
        says.push("The number in a core is its first CPU's.".to_string());
    }
    if t.cpus.len() > f.cores() {
        says.push("Stripes in a core are its hardware threads.".to_string());
    }
    if t.cpus.iter().any(|c| !t.allowed.cpus.contains(c.id)) {
        says.push("Pale cores are barred to the process that measured.".to_string());
    }
    if !t.offline.is_empty() {
        says.push(format!("CPUs {} are offline and not drawn.", t.offline));
    }
    says.join(" ")
}

/// How it was measured.
fn run(profile: &MachineProfile) -> String {
    let mut html = String::new();
    let mut line = |name: &str, value: String| {
        let _ = write!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    };
    line("Measured", profile.made_at.map_or("at an unknown time".to_string(), date));
    line("By", escape(&profile.made_by));
    let e = &profile.effort;
    line("Plan", format!("{}: {}, expected {}", escape(&e.plan), duration(e.took_s), duration(e.expected_s)));
    line("Kernels", escape(&e.instructions));
    line("Topology from", escape(&profile.topology.origin));
    let theory = &profile.theory;
    line(
        "Theoretical peak",
        match theory.peak_gbs {
            Some(peak) => {
                let channels = theory
                    .channels
                    .map_or(String::new(), |n| format!(" by {}", counted(u64::from(n), "channel")));
                format!("{} GB/s{channels}", figure(peak))
            }
            None => "unknown".to_string(),
        },
    );
    html
}
