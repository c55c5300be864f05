//! What lies between nodes: latency and bandwidth as measured, and distances as the firmware tells them.

use std::collections::BTreeSet;

use genuma_probe::MachineProfile;
use genuma_probe::profile::Kernel;

use super::charts::{absent, at_home, told};
use super::findings::{Findings, kernel_name};
use super::matrix::{Cell, Matrix};
use crate::report::markup::{counted, figure as number};
use crate::report::plot::figure;

/// What the sides of a matrix of measured figures are.
const NODES: (&str, &str) = ("cores of node", "memory of node");
/// Latency and bandwidth from node to node: two matrices, or a sentence where there is only one pair.
pub(crate) fn maps(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let (rows, columns) = sides(f);
    if rows.len() > 1 || columns.len() > 1 {
        return format!(r#"<div class="charts">{}{}</div>"#, latency_map(profile), bandwidth_map(profile));
    }
    let mut says = vec!["There is one node, so there is one way from cores to memory.".to_string()];
    if let Some(local) = f.local() {
        says.push(format!("A load takes {} ns.", number(local.middle)));
    }
    if let (Some(kernel), (node, _)) = (pair_kernel(f), at_home(f))
        && let Some(b) = profile.bandwidth_between(kernel, node, node)
    {
        says.push(format!(
            "{} of it move {} GB/s ({}).",
            counted(u64::from(b.threads), "thread"),
            number(b.total.median),
            kernel_name(kernel)
        ));
    }
    format!("<p>{}</p>", says.join(" "))
}

/// Rows and columns of the matrices: nodes with cores, nodes with memory.
fn sides(f: Findings) -> (Vec<u32>, Vec<u32>) {
    (f.cpu_nodes(), f.memory_nodes())
}

/// Latency of each pair of nodes.
fn latency_map(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let (rows, columns) = sides(f);
    let cells: Vec<Option<Cell>> = rows
        .iter()
        .flat_map(|&cpu| columns.iter().map(move |&memory| (cpu, memory)))
        .map(|(cpu, memory)| {
            let m = profile.latency_between(cpu, memory)?;
            Some(Cell {
                value: m.median,
                text: number(m.median),
                title: format!("cores of node {cpu}, memory of node {memory}: {}", told(m, "ns")),
            })
        })
        .collect();
    let title = match (f.local(), f.farthest()) {
        (Some(local), Some(farthest)) => {
            format!("The farthest memory takes {:.1} times as long as a core's own", farthest / local.middle)
        }
        (Some(local), None) => format!("Memory answers after {} ns", number(local.middle)),
        _ => "Latency from node to node".to_string(),
    };
    if cells.iter().all(Option::is_none) {
        return absent(&title, "No latency between nodes was measured.");
    }
    let described = format!("Latency in ns for {} by {} nodes. {title}", rows.len(), columns.len());
    let matrix = Matrix { rows: &rows, columns: &columns, cells, style: "two", axes: NODES, described };
    figure(
        &title,
        "ns a load, on huge pages where there are any. The stronger the colour, the slower.",
        &[],
        &format!(r#"<div class="wide">{}</div>"#, matrix.draw()),
    )
}

/// The kernel measured on most pairs of nodes.
fn pair_kernel(f: Findings) -> Option<Kernel> {
    let pairs = |kernel: Kernel| {
        let all = f.cpu_nodes().into_iter().flat_map(|c| f.memory_nodes().into_iter().map(move |m| (c, m)));
        all.filter(|&(c, m)| f.0.bandwidth_between(kernel, c, m).is_some()).count()
    };
    let kernels: BTreeSet<Kernel> = f.0.bandwidth.iter().map(|b| b.kernel).collect();
    let most = kernels.iter().map(|&k| pairs(k)).max().filter(|&n| n > 0)?;
    let preferred = [Kernel::Triad, Kernel::Read, Kernel::Copy];
    preferred.into_iter().chain(kernels).find(|&k| pairs(k) == most)
}

/// Bandwidth of each pair of nodes.
fn bandwidth_map(profile: &MachineProfile) -> String {
    let f = Findings(profile);
    let (rows, columns) = sides(f);
    let Some(kernel) = pair_kernel(f) else {
        return absent("Bandwidth from node to node", "No bandwidth between nodes was measured.");
    };
    let mut threads = BTreeSet::new();
    let mut cells = Vec::new();
    for &cpu in &rows {
        for &memory in &columns {
            cells.push(profile.bandwidth_between(kernel, cpu, memory).map(|b| {
                threads.insert(b.threads);
                Cell {
                    value: b.total.median,
                    text: number(b.total.median),
                    title: format!(
                        "{} on node {cpu}, memory of node {memory}: {}",
                        counted(u64::from(b.threads), "thread"),
                        told(&b.total, "GB/s")
                    ),
                }
            }));
        }
    }
    let title = match f.pair_rates(kernel) {
        (Some(own), Some(other), _) => format!(
            "A node's threads get {:.0}% of their own bank's bandwidth from another node, at worst",
            other.low / own.middle * 100.0
        ),
        (Some(own), None, _) => {
            format!("A node's threads move {} GB/s to and from its memory", number(own.middle))
        }
        _ => "Bandwidth from node to node".to_string(),
    };
    let threads: Vec<String> = threads.iter().map(u32::to_string).collect();
    let described = format!("Bandwidth in GB/s for {} by {} nodes. {title}", rows.len(), columns.len());
    let matrix = Matrix { rows: &rows, columns: &columns, cells, style: "one", axes: NODES, described };
    let caption = format!(
        "GB/s of {} threads of the node together ({}). The stronger the colour, the more.",
        threads.join(" or "),
        kernel_name(kernel)
    );
    figure(&title, &caption, &[], &format!(r#"<div class="wide">{}</div>"#, matrix.draw()))
}

/// The firmware's distances, where there is more than one node.
pub(crate) fn distances(profile: &MachineProfile) -> String {
    let nodes = &profile.topology.nodes;
    if nodes.len() < 2 {
        return String::new();
    }
    let ids: Vec<u32> = nodes.iter().map(|n| n.id).collect();
    let cells = nodes
        .iter()
        .flat_map(|from| {
            ids.iter().map(move |to| {
                from.distances.get(to).map(|&d| Cell {
                    value: f64::from(d),
                    text: d.to_string(),
                    title: format!("from node {} to node {to}: {d}", from.id),
                })
            })
        })
        .collect();
    let described = "Distances between nodes as the firmware gives them".to_string();
    let matrix =
        Matrix { rows: &ids, columns: &ids, cells, style: "six", axes: ("from node", "to node"), described };
    figure(
        "What the firmware says of distances",
        "Relative to 10, a node's own memory (ACPI SLIT). The measured figures below are what counts.",
        &[],
        &format!(r#"<div class="wide">{}</div>"#, matrix.draw()),
    )
}
