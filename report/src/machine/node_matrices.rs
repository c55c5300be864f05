//! Heat maps of latency, bandwidth and firmware distance between NUMA nodes.

use std::collections::BTreeSet;

use genuma_probe::MachineProfile;
use genuma_probe::profile::BandwidthKernel;
use genuma_work::quantity::{format_count_with_noun, format_three_digits as number};

use super::charts::{figure_without_plot, format_measurement, local_bandwidths_of_first_node};
use super::heat_map::{HeatMap, HeatMapCell};
use super::key_figures::{ProfileKeyFigures, bandwidth_kernel_name};
use crate::plot::html_figure;

/// Axis titles of the heat maps.
const NODE_AXES: (&str, &str) = ("cores of node", "memory of node");
/// Draws the heat maps of latency and bandwidth between nodes as HTML. If there is only one node, returns sentences
/// with its latency and bandwidth instead.
pub fn latency_and_bandwidth_heat_maps(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let (rows, columns) = matrix_nodes(f);
    if rows.len() > 1 || columns.len() > 1 {
        return format!(r#"<div class="charts">{}{}</div>"#, latency_matrix(profile), bandwidth_matrix(profile));
    }
    let mut sentences = vec!["There is one node, so all cores have the same distance to the memory.".to_string()];
    if let Some(local) = f.local_memory_latency_range_ns() {
        sentences.push(format!("A load takes {} ns.", number(local.middle)));
    }
    if let (Some(kernel), (node, _)) = (most_measured_kernel(f), local_bandwidths_of_first_node(f))
        && let Some(b) = profile.bandwidth_between(kernel, node, node)
    {
        sentences.push(format!(
            "{} of the node move {} GB/s ({}).",
            format_count_with_noun(u64::from(b.threads), "thread"),
            number(b.total.median),
            bandwidth_kernel_name(kernel)
        ));
    }
    format!("<p>{}</p>", sentences.join(" "))
}

/// Returns the rows (nodes with cores) and the columns (nodes with memory) of the heat maps.
fn matrix_nodes(f: ProfileKeyFigures) -> (Vec<u32>, Vec<u32>) {
    (f.nodes_with_cores(), f.nodes_with_memory())
}

/// Draws the heat map of the memory latency between nodes.
fn latency_matrix(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let (rows, columns) = matrix_nodes(f);
    let cells: Vec<Option<HeatMapCell>> = rows
        .iter()
        .flat_map(|&cpu| columns.iter().map(move |&memory| (cpu, memory)))
        .map(|(cpu, memory)| {
            let m = profile.dram_latency_between(cpu, memory)?;
            Some(HeatMapCell {
                value: m.median,
                text: number(m.median),
                title: format!("cores of node {cpu}, memory of node {memory}: {}", format_measurement(m, "ns")),
            })
        })
        .collect();
    let title = match (f.local_memory_latency_range_ns(), f.max_remote_memory_latency_ns()) {
        (Some(local), Some(farthest)) => {
            format!("The latency of the farthest memory is {:.1} times that of a core's own", farthest / local.middle)
        }
        (Some(local), None) => format!("The latency of memory is {} ns", number(local.middle)),
        _ => "Latency from node to node".to_string(),
    };
    if cells.iter().all(Option::is_none) {
        return figure_without_plot(&title, "No latency between nodes was measured.");
    }
    let described = format!("Latency in ns for {} by {} nodes. {title}", rows.len(), columns.len());
    let matrix = HeatMap { rows: &rows, columns: &columns, cells, style: "two", axes: NODE_AXES, alt_text: described };
    html_figure(
        &title,
        "ns per load, on huge pages if available. Stronger colours are slower.",
        &[],
        &format!(r#"<div class="wide">{}</div>"#, matrix.to_svg()),
    )
}

/// Returns the bandwidth kernel that was measured on most pairs of nodes; `None` if none was measured.
fn most_measured_kernel(f: ProfileKeyFigures) -> Option<BandwidthKernel> {
    let pairs = |kernel: BandwidthKernel| {
        let all = f.nodes_with_cores().into_iter().flat_map(|c| f.nodes_with_memory().into_iter().map(move |m| (c, m)));
        all.filter(|&(c, m)| f.0.bandwidth_between(kernel, c, m).is_some()).count()
    };
    let kernels: BTreeSet<BandwidthKernel> = f.0.bandwidth.iter().map(|b| b.kernel).collect();
    let max_pairs = kernels.iter().map(|&k| pairs(k)).max().filter(|&n| n > 0)?;
    let preferred = [BandwidthKernel::Triad, BandwidthKernel::Read, BandwidthKernel::Copy];
    preferred.into_iter().chain(kernels).find(|&k| pairs(k) == max_pairs)
}

/// Draws the heat map of the memory bandwidth between nodes.
fn bandwidth_matrix(profile: &MachineProfile) -> String {
    let f = ProfileKeyFigures(profile);
    let (rows, columns) = matrix_nodes(f);
    let Some(kernel) = most_measured_kernel(f) else {
        return figure_without_plot("Bandwidth from node to node", "No bandwidth between nodes was measured.");
    };
    let mut threads = BTreeSet::new();
    let mut cells = Vec::new();
    for &cpu in &rows {
        for &memory in &columns {
            cells.push(profile.bandwidth_between(kernel, cpu, memory).map(|b| {
                threads.insert(b.threads);
                HeatMapCell {
                    value: b.total.median,
                    text: number(b.total.median),
                    title: format!(
                        "{} on node {cpu}, memory of node {memory}: {}",
                        format_count_with_noun(u64::from(b.threads), "thread"),
                        format_measurement(&b.total, "GB/s")
                    ),
                }
            }));
        }
    }
    let title = match f.bandwidth_ranges_by_kind_of_node_pair(kernel) {
        (Some(own), Some(other), _) => format!(
            "From another node a node's threads get at worst {:.0}% of the bandwidth of their own memory",
            other.low / own.middle * 100.0
        ),
        (Some(own), None, _) => {
            format!("A node's threads move {} GB/s to and from its memory", number(own.middle))
        }
        _ => "Bandwidth from node to node".to_string(),
    };
    let threads: Vec<String> = threads.iter().map(u32::to_string).collect();
    let described = format!("Bandwidth in GB/s for {} by {} nodes. {title}", rows.len(), columns.len());
    let matrix = HeatMap { rows: &rows, columns: &columns, cells, style: "one", axes: NODE_AXES, alt_text: described };
    let caption = format!(
        "GB/s of {} threads of the node together ({}). Stronger colours are faster.",
        threads.join(" or "),
        bandwidth_kernel_name(kernel)
    );
    html_figure(&title, &caption, &[], &format!(r#"<div class="wide">{}</div>"#, matrix.to_svg()))
}

/// Draws the heat map of the distances between nodes that the firmware reports (ACPI SLIT). Empty for one node.
pub fn node_distance_heat_map(profile: &MachineProfile) -> String {
    let nodes = &profile.topology.nodes;
    if nodes.len() < 2 {
        return String::new();
    }
    let ids: Vec<u32> = nodes.iter().map(|n| n.id).collect();
    let cells = nodes
        .iter()
        .flat_map(|from| {
            ids.iter().map(move |to| {
                from.distances.get(to).map(|&d| HeatMapCell {
                    value: f64::from(d),
                    text: d.to_string(),
                    title: format!("from node {} to node {to}: {d}", from.id),
                })
            })
        })
        .collect();
    let described = "Distances between nodes as reported by the firmware".to_string();
    let matrix =
        HeatMap { rows: &ids, columns: &ids, cells, style: "six", axes: ("from node", "to node"), alt_text: described };
    html_figure(
        "Distances reported by the firmware",
        "Relative to a node's own memory, which is 10 (ACPI SLIT). Rely on the measured values below.",
        &[],
        &format!(r#"<div class="wide">{}</div>"#, matrix.to_svg()),
    )
}
