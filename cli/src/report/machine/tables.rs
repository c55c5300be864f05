//! All figures of a profile as tables: what was measured, how often, how far it spread.

use std::fmt::Write;

use genuma_probe::MachineProfile;
use genuma_probe::profile::{Measured, Unit};

use super::findings::{Findings, kernel_name, pages_name, spot_name};
use crate::report::markup::{binary, counted, escape, figure, grouped};

/// Most rows of a table; `machine.json` has them all.
const MOST_ROWS: usize = 2_000;
/// Tables up to this length are open at first.
const SHORT: usize = 16;

/// A table of measured quantities. What stands before the figures has one heading a column.
struct Table {
    name: &'static str,
    heads: &'static [&'static str],
    rows: Vec<(Vec<String>, Measured)>,
}

impl Table {
    fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut html = opening(self.name, self.rows.len());
        html += "<thead><tr>";
        for head in self.heads {
            let _ = write!(html, r#"<th scope="col">{head}</th>"#);
        }
        html += r#"<th scope="col" class="n">Median</th><th scope="col">Unit</th><th scope="col" class="n" title="Median of the distances from the median">Spread</th><th scope="col" class="n">Smallest</th><th scope="col" class="n">Largest</th><th scope="col" class="n">Repetitions</th></tr></thead><tbody>"#;
        for (cells, m) in self.rows.iter().take(MOST_ROWS) {
            let cells: String = cells.iter().map(|c| format!("<td>{}</td>", escape(c))).collect();
            let unit = match m.unit {
                Unit::Nanoseconds => "ns",
                Unit::GigabytesPerSecond => "GB/s",
            };
            let _ = writeln!(
                html,
                r#"<tr>{cells}<td class="n"><b>{}</b></td><td>{unit}</td><td class="n">± {}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>"#,
                figure(m.median),
                figure(m.mad),
                figure(m.min),
                figure(m.max),
                m.repetitions
            );
        }
        html + &closing(self.rows.len())
    }
}

fn opening(name: &str, rows: usize) -> String {
    let open = if rows <= SHORT { " open" } else { "" };
    format!(
        r#"<details{open}><summary>{name} <span>{}</span></summary><div class="wide"><table>"#,
        counted(rows as u64, "row")
    )
}

fn closing(rows: usize) -> String {
    let rest = rows.saturating_sub(MOST_ROWS);
    let note = if rest > 0 {
        format!(r#"<p class="note">{} more are in machine.json.</p>"#, grouped(rest as u64))
    } else {
        String::new()
    };
    format!("</tbody></table></div>{note}</details>")
}

/// Every table of measured figures.
pub(crate) fn tables(profile: &MachineProfile) -> String {
    let node = |n: u32| format!("node {n}");
    let pages = |p| pages_name(p).to_string();
    let levels = Table {
        name: "Levels of the latency curve",
        heads: &["Level", "Buffers", "Cache"],
        rows: (profile.latency.levels.iter())
            .map(|l| {
                let buffers = format!("{} to {}", binary(l.from_bytes), binary(l.to_bytes));
                (vec![l.name.clone(), buffers, l.cache_bytes.map_or("–".to_string(), binary)], l.latency)
            })
            .collect(),
    };
    let pairs = Table {
        name: "Latency of memory",
        heads: &["Cores of", "Memory of", "Pages", "Buffer"],
        rows: (profile.latency.pairs.iter())
            .map(|p| {
                (vec![node(p.cpu_node), node(p.memory_node), pages(p.pages), binary(p.bytes)], p.latency)
            })
            .collect(),
    };
    let curves = Table {
        name: "Latency by size",
        heads: &["Cores of", "Memory of", "Pages", "Buffer"],
        rows: (profile.latency.curves.iter())
            .flat_map(|c| {
                c.points.iter().map(move |p| {
                    (vec![node(c.cpu_node), node(c.memory_node), pages(c.pages), binary(p.bytes)], p.latency)
                })
            })
            .collect(),
    };
    let bandwidth = Table {
        name: "Bandwidth",
        heads: &["Kernel", "Cores of", "Memory", "Pages", "Threads", "CPUs"],
        rows: (profile.bandwidth.iter())
            .map(|b| {
                let cores = b.cpu_node.map_or("several nodes".to_string(), node);
                let cells = vec![
                    kernel_name(b.kernel).to_string(),
                    cores,
                    spot_name(&b.memory),
                    pages(b.pages),
                    b.threads.to_string(),
                    b.cpus.to_string(),
                ];
                (cells, b.total)
            })
            .collect(),
    };
    let loaded = Table {
        name: "Latency under load",
        heads: &["Cores of", "Memory of", "Pages", "Injecting CPUs", "Traffic, GB/s"],
        rows: (profile.loaded.iter())
            .flat_map(|c| {
                c.points.iter().map(move |p| {
                    let rate = p.injected.map_or("none".to_string(), |m| figure(m.median));
                    let cells = vec![
                        node(c.cpu_node),
                        node(c.memory_node),
                        pages(c.pages),
                        c.injectors.to_string(),
                        rate,
                    ];
                    (cells, p.latency)
                })
            })
            .collect(),
    };
    let contention = Table {
        name: "Contention",
        heads: &["Kernel", "Memory", "Pages", "Threads", "A thread, GB/s"],
        rows: (profile.contention.iter())
            .flat_map(|c| {
                c.points.iter().map(move |p| {
                    let cells = vec![
                        kernel_name(c.kernel).to_string(),
                        spot_name(&c.memory),
                        pages(c.pages),
                        p.threads.to_string(),
                        figure(p.per_thread.median),
                    ];
                    (cells, p.total)
                })
            })
            .collect(),
    };
    [levels, pairs, curves, bandwidth, loaded, contention].iter().map(Table::html).collect()
}

/// The section of devices beside the CPUs; empty without any.
pub(crate) fn devices(profile: &MachineProfile) -> String {
    if profile.devices.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        r#"<section aria-labelledby="devices">
<h2 id="devices">Devices that OpenCL drives</h2>
<p class="note">Copies of pinned memory, and changes of 64-bit words at random places of a device's memory, which counting k-mers comes down to. The best of three.</p>
<div class="wide"><table><thead><tr><th scope="col">Device</th><th scope="col">Kind</th><th scope="col">Driver</th><th scope="col" class="n">Memory</th><th scope="col">Beside</th><th scope="col" class="n">To it, GB/s</th><th scope="col" class="n">From it, GB/s</th><th scope="col" class="n">Million changes/s</th></tr></thead><tbody>"#,
    );
    for d in &profile.devices {
        let beside = d.node.map_or("unknown".to_string(), |node| format!("node {node}"));
        let _ = writeln!(
            html,
            r#"<tr><td>{}</td><td>{}</td><td>{}</td><td class="n">{}</td><td>{beside}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>"#,
            escape(&d.name),
            escape(&d.kind),
            escape(&d.driver),
            binary(d.memory),
            figure(d.to_gbs),
            figure(d.from_gbs),
            figure(d.random_mops)
        );
    }
    html + "</tbody></table></div>\n</section>\n"
}

/// Where buffers were asked to be and where they were, and the modules of memory.
pub(crate) fn checks(profile: &MachineProfile) -> String {
    let mut html = String::new();
    if !profile.buffers.is_empty() {
        html += &opening("Placement, checked with the kernel", profile.buffers.len());
        html += r#"<thead><tr><th scope="col">Asked for</th><th scope="col">Pages</th><th scope="col" class="n">Size</th><th scope="col">Found</th><th scope="col">As asked</th></tr></thead><tbody>"#;
        for b in profile.buffers.iter().take(MOST_ROWS) {
            let found: Vec<String> =
                b.found.iter().map(|(node, bytes)| format!("node {node}: {}", binary(*bytes))).collect();
            let found =
                if found.is_empty() { "the kernel does not tell".to_string() } else { found.join(", ") };
            let verdict = match b.as_asked {
                Some(true) => r#"<span class="good">yes</span>"#,
                Some(false) => r#"<span class="bad">no</span>"#,
                None => "unknown",
            };
            let _ = writeln!(
                html,
                r#"<tr><td>{}</td><td>{}</td><td class="n">{}</td><td>{found}</td><td>{verdict}</td></tr>"#,
                escape(&b.asked),
                pages_name(b.pages),
                binary(b.bytes)
            );
        }
        html += &closing(profile.buffers.len());
    }
    let modules = &profile.theory.modules;
    if !modules.is_empty() {
        html += &opening("Memory modules", modules.len());
        html += r#"<thead><tr><th scope="col">Slot</th><th scope="col">Bank</th><th scope="col" class="n">Size</th><th scope="col" class="n">MT/s</th><th scope="col" class="n">Bits</th></tr></thead><tbody>"#;
        let number = |n: Option<u32>| n.map_or("–".to_string(), |n| n.to_string());
        for m in modules.iter().take(MOST_ROWS) {
            let _ = writeln!(
                html,
                r#"<tr><td>{}</td><td>{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>"#,
                escape(&m.locator),
                escape(&m.bank),
                binary(m.bytes),
                number(m.mts),
                number(m.width)
            );
        }
        html += &closing(modules.len());
    }
    html
}

/// What is missing and why.
pub(crate) fn missing(profile: &MachineProfile) -> String {
    let says = Findings(profile).missing();
    if says.is_empty() {
        return "<p>Nothing: all of the plan was measured.</p>".to_string();
    }
    let items: String = says.iter().map(|s| format!("<li>{}</li>", escape(s))).collect();
    format!("<ul>{items}</ul>")
}
