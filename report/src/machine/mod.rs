//! The HTML page `machine.html` of a machine profile that `genuma machine measure` wrote.

mod key_figures;
mod text;
mod drawing;
mod heat_map;
mod charts;
mod node_matrices;
mod tables;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use genuma_probe::MachineProfile;
use genuma_work::quantity::{
    format_bytes, format_count_with_noun, format_date_and_time, format_duration, format_three_digits,
};

use super::BASE_STYLE;
use super::markup::{escape_html, fill_template};
use key_figures::{ProfileKeyFigures, bandwidth_kernel_name, describe_memory_location};

/// Returns the HTML page with style sheet, text, drawing, plots and tables. It contains no script.
pub fn render_page(profile: &MachineProfile) -> String {
    fill_template(include_str!("page.html"), |name| match name {
        "style" => [BASE_STYLE, include_str!("style.css")].concat(),
        "title" => escape_html(&page_title(profile)),
        "made_by" => escape_html(&profile.made_by),
        "machine" => machine_line(profile),
        "numbers" => key_numbers(profile),
        "words" => text::machine_advice_section(profile),
        "drawing" => drawing::topology_drawing(&profile.topology),
        "drawn" => drawing_legend(profile),
        "distances" => node_matrices::node_distance_heat_map(profile),
        "staircase" => charts::latency_curve_chart(profile),
        "maps" => node_matrices::latency_and_bandwidth_heat_maps(profile),
        "bandwidth" => [
            charts::bandwidth_by_kernel_chart(profile),
            charts::bandwidth_by_threads_chart(profile),
            charts::bandwidth_by_placement_chart(profile),
            charts::loaded_latency_chart(profile),
        ]
        .concat(),
        "contention" => charts::contention_charts(profile),
        "run" => run_details(profile),
        "devices" => tables::opencl_device_section(profile),
        "tables" => tables::measurement_tables(profile),
        "checks" => tables::placement_and_memory_module_tables(profile),
        "missing" => tables::missing_measurements_list(profile),
        _ => String::new(),
    })
}

fn page_title(profile: &MachineProfile) -> String {
    format!("The memory of {}", profile.host.as_deref().unwrap_or("this machine"))
}

/// One line on the machine: processor, sockets, NUMA nodes, cores, memory.
fn machine_line(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let t = &profile.topology;
    let memory = t.memory_bytes();
    let mut parts: Vec<String> = t.processor.iter().map(|p| escape_html(p)).collect();
    parts.push(format_count_with_noun(f.num_sockets() as u64, "socket"));
    let only = f.memory_only_nodes().len() as u64;
    parts.push(
        format_count_with_noun(t.nodes.len() as u64, "NUMA node")
            + &if only > 0 { format!(" ({only} without cores)") } else { String::new() },
    );
    let cores = f.num_cores();
    parts.push(format_count_with_noun(cores as u64, "core"));
    if t.cpus.len() > cores {
        parts.push(format_count_with_noun(t.cpus.len() as u64, "hardware thread"));
    }
    parts.push(format!("{} of memory", format_bytes(memory)));
    parts.extend(t.kernel.iter().map(|k| format!("Linux {}", escape_html(k))));
    parts.join(" · ")
}

/// Tiles with the key numbers.
fn key_numbers(profile: &MachineProfile) -> String {
    let mut html = String::new();
    add_latency_tiles(&mut html, profile);
    add_bandwidth_tiles(&mut html, profile);
    html
}

/// The value of a tile for a quantity that was not measured.
const UNKNOWN: &str = "unknown";

fn add_tile(html: &mut String, name: &str, value: &str, more: &str) {
    let _ = write!(html, "<div><dt>{name}</dt><dd><b>{value}</b><span>{more}</span></dd></div>");
}

fn add_latency_tiles(html: &mut String, profile: &MachineProfile) {
    let f = ProfileKeyFigures(profile);
    let mut tile = |name: &str, value: &str, more: &str| add_tile(html, name, value, more);
    match f.local_memory_latency_range_ns() {
        Some(l) if l.high > l.low * 1.03 => tile(
            "Local latency",
            &format!("{} ns", format_three_digits(l.middle)),
            &format!("{} to {} by node", format_three_digits(l.low), format_three_digits(l.high)),
        ),
        Some(l) => {
            tile("Local latency", &format!("{} ns", format_three_digits(l.middle)), "a load from a core's own node")
        }
        None => tile("Local latency", UNKNOWN, "not measured"),
    }
    match (f.local_memory_latency_range_ns(), f.remote_memory_latency_range_ns(), f.memory_only_node_latency_range_ns())
    {
        (Some(l), Some(r), _) | (Some(l), None, Some(r)) => tile(
            "Remote latency",
            &format!("{:.1} × local", r.middle / l.middle),
            &format!("{} ns; at worst {:.1} ×", format_three_digits(r.middle), r.high / l.middle),
        ),
        _ if f.nodes_with_memory().len() > 1 => tile("Remote latency", UNKNOWN, "not measured"),
        _ => tile("Remote latency", "none", "all memory is on one node"),
    }
    match f.base_and_huge_page_latencies() {
        Some(g) if g.is_huge_page_effect_significant() => tile(
            "Huge pages",
            &format!(
                "{}{:.0}%",
                if g.huge_page_latency_reduction() > 0.0 { "−" } else { "+" },
                g.huge_page_latency_reduction().abs() * 100.0
            ),
            &format!(
                "latency: {} instead of {} ns",
                format_three_digits(g.huge.median),
                format_three_digits(g.base.median)
            ),
        ),
        Some(_) => tile("Huge pages", "no change", "of the latency beyond its spread"),
        None => tile("Huge pages", UNKNOWN, "not compared with base pages"),
    }
}

fn add_bandwidth_tiles(html: &mut String, profile: &MachineProfile) {
    let f = ProfileKeyFigures(profile);
    let mut tile = |name: &str, value: &str, more: &str| add_tile(html, name, value, more);
    match f.one_thread_local_bandwidth() {
        Some(r) => tile(
            "One thread",
            &format!("{} GB/s", format_three_digits(r.total.median)),
            &format!("{}, own node", bandwidth_kernel_name(r.kernel)),
        ),
        None => tile("One thread", UNKNOWN, "bandwidth not measured"),
    }
    match f.main_bandwidth_kernel().and_then(|k| f.max_bandwidth_of_kernel(k)) {
        Some(r) => tile(
            if r.cpu_node.is_some() && f.nodes_with_cores().len() > 1 { "One node" } else { "Whole machine" },
            &format!("{} GB/s", format_three_digits(r.total.median)),
            &format!(
                "{}, {}, {}",
                bandwidth_kernel_name(r.kernel),
                format_count_with_noun(u64::from(r.threads), "thread"),
                describe_memory_location(r.memory)
            ),
        ),
        None => tile("Whole machine", UNKNOWN, "bandwidth not measured"),
    }
    match (f.max_bandwidth_share_of_peak(), profile.theory.peak_gbs) {
        (Some((share, best)), Some(peak)) => tile(
            "Share of the peak",
            &format!("{:.0}%", share * 100.0),
            &format!(
                "{} {} of theoretical {} GB/s",
                bandwidth_kernel_name(best.kernel),
                format_three_digits(best.total.median),
                format_three_digits(peak)
            ),
        ),
        (None, Some(peak)) => {
            tile("Theoretical peak", &format!("{} GB/s", format_three_digits(peak)), "bandwidth not measured")
        }
        _ => tile(
            "Share of the peak",
            UNKNOWN,
            &escape_html(profile.theory.unknown_because.as_deref().unwrap_or("the firmware does not report it")),
        ),
    }
}

fn drawing_legend(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let t = &profile.topology;
    let fields = if t.caches.is_empty() { "." } else { "; cores in one field share their last cache." };
    let mut sentences = vec![format!("Squares are cores{fields}")];
    if t.nodes.iter().any(|n| drawing::has_room_for_core_numbers(t, n)) {
        sentences.push("The number in a core is its first CPU's.".to_string());
    }
    if t.cpus.len() > f.num_cores() {
        sentences.push("Stripes in a core are its hardware threads.".to_string());
    }
    if t.cpus.iter().any(|c| !t.allowed.cpus.contains(c.id)) {
        sentences.push("Pale cores were not allowed to the measuring process.".to_string());
    }
    if !t.offline_cpus.is_empty() {
        sentences.push(format!("CPUs {} are offline and not drawn.", t.offline_cpus));
    }
    sentences.join(" ")
}

/// Text of the warning that the machine was measured under load. `load`: what used the machine.
pub fn describe_load_warning(load: &str) -> String {
    format!(
        "other programs used the machine ({load}): latencies are too high and bandwidths too low; measure again on the \
         idle machine. `genuma machine advise` refuses this profile without --force"
    )
}

/// Date, program, plan and theoretical peak of the measurement.
fn run_details(profile: &MachineProfile) -> String {
    let mut html = String::new();
    let mut line = |name: &str, value: String| {
        let _ = write!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    };
    line("Measured", profile.made_at.map_or("at an unknown time".to_string(), format_date_and_time));
    if let Some(load) = &profile.load {
        line("Warning", escape_html(&describe_load_warning(load)));
    }
    line("By", escape_html(&profile.made_by));
    let e = &profile.effort;
    line(
        "Plan",
        format!("{}: {}, expected {}", escape_html(&e.plan), format_duration(e.took_s), format_duration(e.expected_s)),
    );
    line("Kernels", escape_html(&e.instructions));
    line("Topology from", escape_html(&profile.topology.origin));
    let theory = &profile.theory;
    line(
        "Theoretical peak",
        match theory.peak_gbs {
            Some(peak) => {
                let channels = theory
                    .channels
                    .map_or(String::new(), |n| format!(" by {}", format_count_with_noun(u64::from(n), "channel")));
                format!("{} GB/s{channels}", format_three_digits(peak))
            }
            None => "unknown".to_string(),
        },
    );
    html
}
