//! Tables of all measurements of a profile: median, spread, range, repetitions.

use std::fmt::Write;

use genuma_probe::MachineProfile;
use genuma_probe::profile::{Measurement, MeasurementUnit};
use genuma_work::quantity::{format_bytes, format_count_with_noun, format_three_digits, group_thousands};

use super::key_figures::{ProfileKeyFigures, bandwidth_kernel_name, describe_memory_location, page_size_name};
use crate::markup::escape_html;

/// Maximum number of rows of a table. `machine.json` has all rows.
const MAX_ROWS: usize = 2_000;
/// Tables with at most this number of rows are unfolded when the page is opened. The reader can unfold the others.
const MAX_UNFOLDED_ROWS: usize = 16;

/// A table of measurements. `heads` are the headings of the columns to the left of the measurement.
struct MeasurementTable {
    name: &'static str,
    heads: &'static [&'static str],
    rows: Vec<(Vec<String>, Measurement)>,
}

impl MeasurementTable {
    fn to_html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut html = table_opening(self.name, self.rows.len());
        html += "<thead><tr>";
        for head in self.heads {
            let _ = write!(html, r#"<th scope="col">{head}</th>"#);
        }
        html += r#"<th scope="col" class="n">Median</th><th scope="col">Unit</th><th scope="col" class="n" title="Median of the distances from the median">Spread</th><th scope="col" class="n">Smallest</th><th scope="col" class="n">Largest</th><th scope="col" class="n">Repetitions</th></tr></thead><tbody>"#;
        for (cells, m) in self.rows.iter().take(MAX_ROWS) {
            let cells: String = cells.iter().map(|c| format!("<td>{}</td>", escape_html(c))).collect();
            let unit = match m.unit {
                MeasurementUnit::Nanoseconds => "ns",
                MeasurementUnit::GigabytesPerSecond => "GB/s",
            };
            let _ = writeln!(
                html,
                r#"<tr>{cells}<td class="n"><b>{}</b></td><td>{unit}</td><td class="n">± {}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>"#,
                format_three_digits(m.median),
                format_three_digits(m.median_absolute_deviation),
                format_three_digits(m.min),
                format_three_digits(m.max),
                m.repetitions
            );
        }
        html + &table_closing(self.rows.len())
    }
}

fn table_opening(name: &str, rows: usize) -> String {
    let open = if rows <= MAX_UNFOLDED_ROWS { " open" } else { "" };
    format!(
        r#"<details{open}><summary>{name} <span>{}</span></summary><div class="wide"><table>"#,
        format_count_with_noun(rows as u64, "row")
    )
}

fn table_closing(rows: usize) -> String {
    let rest = rows.saturating_sub(MAX_ROWS);
    let note = if rest > 0 {
        format!(r#"<p class="note">{} more are in machine.json.</p>"#, group_thousands(rest as u64))
    } else {
        String::new()
    };
    format!("</tbody></table></div>{note}</details>")
}

/// Returns all measured latencies and bandwidths as HTML tables.
pub fn measurement_tables(profile: &MachineProfile) -> String {
    latency_tables(profile).iter().chain(&bandwidth_tables(profile)).map(MeasurementTable::to_html).collect()
}

fn node_name(n: u32) -> String {
    format!("node {n}")
}

fn latency_tables(profile: &MachineProfile) -> [MeasurementTable; 3] {
    let levels = MeasurementTable {
        name: "Levels of the latency curve",
        heads: &["Level", "Buffers", "Cache"],
        rows: (profile.latency.memory_levels.iter())
            .map(|l| {
                let buffers = format!("{} to {}", format_bytes(l.from_bytes), format_bytes(l.to_bytes));
                (vec![l.name.clone(), buffers, l.cache_bytes.map_or("–".to_string(), format_bytes)], l.latency)
            })
            .collect(),
    };
    let pairs = MeasurementTable {
        name: "Latency of memory",
        heads: &["Cores of", "Memory of", "Pages", "Buffer"],
        rows: (profile.latency.node_pairs.iter())
            .map(|p| {
                (
                    vec![
                        node_name(p.cpu_node),
                        node_name(p.memory_node),
                        page_size_name(p.pages).to_string(),
                        format_bytes(p.bytes),
                    ],
                    p.latency,
                )
            })
            .collect(),
    };
    let curves = MeasurementTable {
        name: "Latency by size",
        heads: &["Cores of", "Memory of", "Pages", "Buffer"],
        rows: (profile.latency.curves.iter())
            .flat_map(|c| {
                c.points.iter().map(move |p| {
                    (
                        vec![
                            node_name(c.cpu_node),
                            node_name(c.memory_node),
                            page_size_name(c.pages).to_string(),
                            format_bytes(p.bytes),
                        ],
                        p.latency,
                    )
                })
            })
            .collect(),
    };
    [levels, pairs, curves]
}

fn bandwidth_tables(profile: &MachineProfile) -> [MeasurementTable; 3] {
    let bandwidth = MeasurementTable {
        name: "Bandwidth",
        heads: &["Kernel", "Cores of", "Memory", "Pages", "Threads", "CPUs"],
        rows: (profile.bandwidth.iter())
            .map(|b| {
                let cores = b.cpu_node.map_or("several nodes".to_string(), node_name);
                let cells = vec![
                    bandwidth_kernel_name(b.kernel).to_string(),
                    cores,
                    describe_memory_location(&b.memory),
                    page_size_name(b.pages).to_string(),
                    b.threads.to_string(),
                    b.cpus.to_string(),
                ];
                (cells, b.total)
            })
            .collect(),
    };
    let loaded = MeasurementTable {
        name: "Latency under load",
        heads: &["Cores of", "Memory of", "Pages", "Injecting CPUs", "Traffic, GB/s"],
        rows: (profile.loaded.iter())
            .flat_map(|c| {
                c.points.iter().map(move |p| {
                    let rate = p.injected.map_or("none".to_string(), |m| format_three_digits(m.median));
                    let cells = vec![
                        node_name(c.cpu_node),
                        node_name(c.memory_node),
                        page_size_name(c.pages).to_string(),
                        c.injectors.to_string(),
                        rate,
                    ];
                    (cells, p.latency)
                })
            })
            .collect(),
    };
    let contention = MeasurementTable {
        name: "Contention",
        heads: &["Kernel", "Memory", "Pages", "Threads", "A thread, GB/s"],
        rows: (profile.contention.iter())
            .flat_map(|c| {
                c.points.iter().map(move |p| {
                    let cells = vec![
                        bandwidth_kernel_name(c.kernel).to_string(),
                        describe_memory_location(&c.memory),
                        page_size_name(c.pages).to_string(),
                        p.threads.to_string(),
                        format_three_digits(p.per_thread.median),
                    ];
                    (cells, p.total)
                })
            })
            .collect(),
    };
    [bandwidth, loaded, contention]
}

/// Returns the section on OpenCL devices as HTML. Empty without devices.
pub fn opencl_device_section(profile: &MachineProfile) -> String {
    if profile.devices.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        r#"<section aria-labelledby="devices">
<h2 id="devices">OpenCL devices</h2>
<p class="note">Bandwidth of copies of pinned memory, and rate of random 64-bit updates of device memory, which limits k-mer counting. Best of three runs.</p>
<div class="wide"><table><thead><tr><th scope="col">Device</th><th scope="col">Kind</th><th scope="col">Driver</th><th scope="col" class="n">Memory</th><th scope="col">Near</th><th scope="col" class="n">To it, GB/s</th><th scope="col" class="n">From it, GB/s</th><th scope="col" class="n">Million updates/s</th></tr></thead><tbody>"#,
    );
    for d in &profile.devices {
        let near = d.numa_node.map_or("unknown".to_string(), |node| format!("node {node}"));
        let _ = writeln!(
            html,
            r#"<tr><td>{}</td><td>{}</td><td>{}</td><td class="n">{}</td><td>{near}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>"#,
            escape_html(&d.name),
            escape_html(&d.kind),
            escape_html(&d.driver),
            format_bytes(d.memory_bytes),
            format_three_digits(d.copy_to_device_gbs),
            format_three_digits(d.copy_from_device_gbs),
            format_three_digits(d.atomic_updates_mops)
        );
    }
    html + "</tbody></table></div>\n</section>\n"
}

/// Returns two HTML tables: on which nodes the measured buffers were, and the memory modules. Empty tables are left
/// out.
pub fn placement_and_memory_module_tables(profile: &MachineProfile) -> String {
    let mut html = String::new();
    if !profile.buffers.is_empty() {
        html += &table_opening("Placement, checked with the kernel", profile.buffers.len());
        html += r#"<thead><tr><th scope="col">Requested</th><th scope="col">Pages</th><th scope="col" class="n">Size</th><th scope="col">Found</th><th scope="col">As requested</th></tr></thead><tbody>"#;
        for b in profile.buffers.iter().take(MAX_ROWS) {
            let found: Vec<String> =
                b.bytes_by_node.iter().map(|(node, bytes)| format!("node {node}: {}", format_bytes(*bytes))).collect();
            let found = if found.is_empty() { "not reported by the kernel".to_string() } else { found.join(", ") };
            let verdict = match b.is_as_requested {
                Some(true) => r#"<span class="good">yes</span>"#,
                Some(false) => r#"<span class="bad">no</span>"#,
                None => "unknown",
            };
            let _ = writeln!(
                html,
                r#"<tr><td>{}</td><td>{}</td><td class="n">{}</td><td>{found}</td><td>{verdict}</td></tr>"#,
                escape_html(&b.requested_policy),
                page_size_name(b.page_kind),
                format_bytes(b.bytes)
            );
        }
        html += &table_closing(profile.buffers.len());
    }
    let modules = &profile.theory.modules;
    if !modules.is_empty() {
        html += &table_opening("Memory modules", modules.len());
        html += r#"<thead><tr><th scope="col">Slot</th><th scope="col">Bank</th><th scope="col" class="n">Size</th><th scope="col" class="n">MT/s</th><th scope="col" class="n">Bits</th></tr></thead><tbody>"#;
        let number = |n: Option<u32>| n.map_or("–".to_string(), |n| n.to_string());
        for m in modules.iter().take(MAX_ROWS) {
            let _ = writeln!(
                html,
                r#"<tr><td>{}</td><td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>"#,
                escape_html(&m.locator),
                escape_html(&m.bank),
                format_bytes(m.bytes),
                number(m.megatransfers_per_s),
                number(m.width_bits)
            );
        }
        html += &table_closing(modules.len());
    }
    html
}

/// Returns an HTML list of what could not be measured, with the reasons.
pub fn missing_measurements_list(profile: &MachineProfile) -> String {
    let reasons = ProfileKeyFigures(profile).missing_measurement_notes();
    if reasons.is_empty() {
        return "<p>Nothing: the whole plan was measured.</p>".to_string();
    }
    let items: String = reasons.iter().map(|s| format!("<li>{}</li>", escape_html(s))).collect();
    format!("<ul>{items}</ul>")
}
