//! Draws a machine as SVG: sockets, nodes with their cores and caches, memory. Each socket is one SVG, so that they are
//! placed below each other in narrow windows.

use std::collections::BTreeMap;
use std::fmt::Write;

use genuma_machine::topology::{CacheKind, Cpu, NumaNode, Topology};
use genuma_work::quantity::{format_bytes, format_count_with_noun};

use crate::markup::escape_html;

/// Space around and between boxes, in SVG units.
const GAP: f64 = 10.0;
/// Minimum inner width of a node, for its text, in SVG units.
const MIN_NODE_WIDTH: f64 = 196.0;
/// Height of a line of text in SVG units.
const LINE_HEIGHT: f64 = 18.0;
const BANK_HEIGHT: f64 = 40.0;
/// Minimum side of a core's square in which its number is written, in SVG units.
const MIN_NUMBERED_CORE: f64 = 26.0;

/// A core and its hardware threads.
struct DrawnCore<'a> {
    cpus: Vec<&'a Cpu>,
}

/// Draws all sockets. Returns one SVG for each.
pub fn topology_drawing(topology: &Topology) -> String {
    nodes_by_socket(topology).iter().map(|(name, nodes)| draw_socket(topology, name, nodes)).collect()
}

/// Groups nodes by socket. Nodes without cores are groups of their own; if any node spans several sockets, all nodes
/// are.
fn nodes_by_socket(topology: &Topology) -> Vec<(String, Vec<&NumaNode>)> {
    let packages = |node: &NumaNode| -> Vec<u32> {
        let mut sockets: Vec<u32> = topology.cpus.iter().filter(|c| c.node == node.id).map(|c| c.package).collect();
        sockets.sort_unstable();
        sockets.dedup();
        sockets
    };
    let spans = topology.nodes.iter().any(|n| packages(n).len() > 1);
    let mut sockets: BTreeMap<u32, Vec<&NumaNode>> = BTreeMap::new();
    let mut alone = Vec::new();
    for node in &topology.nodes {
        match packages(node)[..] {
            [] => alone.push(("No socket".to_string(), vec![node])),
            [package] if !spans => sockets.entry(package).or_default().push(node),
            ref of => alone.push((format_count_with_noun(of.len() as u64, "socket"), vec![node])),
        }
    }
    let sockets = sockets.into_iter().map(|(package, nodes)| (format!("Socket {package}"), nodes));
    sockets.chain(alone).collect()
}

fn node_cores<'a>(topology: &'a Topology, node: &NumaNode) -> Vec<DrawnCore<'a>> {
    let mut cores: BTreeMap<u32, DrawnCore> = BTreeMap::new();
    for cpu in topology.cpus.iter().filter(|c| c.node == node.id) {
        let first = cpu.siblings.smallest_id().unwrap_or(cpu.id);
        cores.entry(first).or_insert_with(|| DrawnCore { cpus: Vec::new() }).cpus.push(cpu);
    }
    cores.into_values().collect()
}

/// Groups the cores of a node by the last-level cache that they share. If no cores share one, they are one group.
fn cores_by_cache<'a>(topology: &'a Topology, node: &NumaNode) -> Vec<Vec<DrawnCore<'a>>> {
    let data = topology.caches.iter().filter(|c| c.kind != CacheKind::Instruction);
    let last = data.clone().map(|c| c.level).max().unwrap_or(0);
    let lasts: Vec<_> = data.filter(|c| c.level == last).collect();
    let mut groups: BTreeMap<usize, Vec<DrawnCore>> = BTreeMap::new();
    for core in node_cores(topology, node) {
        let id = core.cpus[0].id;
        let at = lasts.iter().position(|c| c.cpus.contains(id)).unwrap_or(lasts.len());
        groups.entry(at).or_default().push(core);
    }
    // If every core has its own last-level cache, all cores form one group.
    if groups.values().all(|g| g.len() == 1) {
        return vec![groups.into_values().flatten().collect()];
    }
    groups.into_values().collect()
}

/// Describes the data caches of a node in lines of text: the caches of one core, then the shared caches.
fn cache_lines(topology: &Topology, node: &NumaNode) -> Vec<String> {
    let (mut own, mut shared) = (Vec::new(), Vec::new());
    let of_node = topology.caches.iter().filter(|c| !c.cpus.intersection(&node.cpus).is_empty());
    for cache in of_node.filter(|c| c.kind != CacheKind::Instruction) {
        let siblings =
            cache.cpus.smallest_id().and_then(|id| topology.find_cpu(id)).map_or(1, |cpu| cpu.siblings.len().max(1));
        let sharing = cache.cpus.len().div_ceil(siblings) as u64;
        let letter = if cache.kind == CacheKind::Data { "d" } else { "" };
        let name = format!("L{}{letter} {}", cache.level, format_bytes(cache.bytes));
        let (list, name) = if sharing > 1 {
            (&mut shared, format!("{name} for {}", format_count_with_noun(sharing, "core")))
        } else {
            (&mut own, name)
        };
        if !list.contains(&name) {
            list.push(name);
        }
    }
    let own = own.join(" · ");
    let own = if own.is_empty() { own } else { format!("Each core: {own}") };
    std::iter::once(own).chain(shared).filter(|line| !line.is_empty()).collect()
}

/// Returns the side of a core's square in SVG units, for a node with `cores` cores.
fn core_side(cores: usize) -> f64 {
    match cores {
        0..=4 => 40.0,
        5..=8 => 34.0,
        9..=16 => 26.0,
        17..=48 => 18.0,
        _ => 12.0,
    }
}

/// Returns whether the squares of a node's cores are large enough for their numbers; false if the node has no cores.
pub fn has_room_for_core_numbers(topology: &Topology, node: &NumaNode) -> bool {
    !node.cpus.is_empty() && core_side(node_cores(topology, node).len()) >= MIN_NUMBERED_CORE
}

/// Layout of the cores of a node: groups of cores, each in rows of squares.
struct CoreGrid {
    /// Side of a core's square in SVG units.
    cell: f64,
    /// Number of cores in a row of a group.
    columns: usize,
    /// Number of groups in a row.
    groups_per_row: usize,
    width: f64,
    height: f64,
}

impl CoreGrid {
    fn layout(groups: &[Vec<DrawnCore>]) -> CoreGrid {
        let total: usize = groups.iter().map(Vec::len).sum();
        let largest = groups.iter().map(Vec::len).max().unwrap_or(0);
        let cell = core_side(total);
        let columns = match largest {
            0..=4 => largest.max(1),
            5..=8 => 4,
            9..=32 => 8,
            _ => 16,
        };
        let (wide, high) = CoreGrid::group_size(cell, columns, largest);
        let across = (((MIN_NODE_WIDTH * 1.5 + 6.0) / (wide + 6.0)) as usize).clamp(1, groups.len().max(1));
        // As square as possible, with full rows.
        let rows = groups.len().div_ceil(across);
        let across = groups.len().div_ceil(rows.max(1)).max(1);
        CoreGrid {
            cell,
            columns,
            groups_per_row: across,
            width: across as f64 * (wide + 6.0) - 6.0,
            height: rows as f64 * (high + 6.0) - 6.0,
        }
    }

    /// Returns width and height of a group of `cores` cores in SVG units.
    fn group_size(cell: f64, columns: usize, cores: usize) -> (f64, f64) {
        let rows = cores.div_ceil(columns.max(1)).max(1);
        (columns as f64 * (cell + 3.0) + 5.0, rows as f64 * (cell + 3.0) + 5.0)
    }
}

/// Draws a socket with its nodes, or a node that belongs to no single socket.
fn draw_socket(topology: &Topology, name: &str, nodes: &[&NumaNode]) -> String {
    let drawn: Vec<(f64, f64, String)> = nodes.iter().map(|node| draw_node(topology, node)).collect();
    let wide = drawn.iter().map(|d| d.0).fold(0.0, f64::max);
    let high = drawn.iter().map(|d| d.1).fold(0.0, f64::max);
    let columns = match nodes.len() {
        0..=2 => nodes.len().max(1),
        3..=4 => 2,
        _ => 4,
    };
    let rows = nodes.len().div_ceil(columns);
    let width = columns as f64 * (wide + GAP) + GAP;
    let height = rows as f64 * (high + GAP) + LINE_HEIGHT + GAP * 1.4;
    let described =
        format!("{name}: {}", nodes.iter().map(|n| describe_node(topology, n)).collect::<Vec<String>>().join("; "));
    let mut svg = format!(
        r#"<svg viewBox="0 0 {width:.0} {height:.0}" style="width:{width:.0}px" role="img" aria-label="{}"><rect class="socket" x=".5" y=".5" width="{:.0}" height="{:.0}" rx="8"/><text class="label" x="{GAP}" y="{LINE_HEIGHT}">{}</text>"#,
        escape_html(&described),
        width - 1.0,
        height - 1.0,
        escape_html(name)
    );
    for (i, (_, _, node)) in drawn.iter().enumerate() {
        let x = GAP + (i % columns) as f64 * (wide + GAP);
        let y = LINE_HEIGHT + GAP + (i / columns) as f64 * (high + GAP);
        let _ = write!(svg, r#"<g transform="translate({x:.1} {y:.1})">{node}</g>"#);
    }
    svg + "</svg>"
}

fn describe_node(topology: &Topology, node: &NumaNode) -> String {
    let cores = node_cores(topology, node).len() as u64;
    let what = if cores == 0 { "no cores".to_string() } else { format_count_with_noun(cores, "core") };
    format!("node {} with {what} and {} of memory", node.id, format_bytes(node.memory_bytes))
}

/// Draws a node. Returns its width, its height and its SVG.
fn draw_node(topology: &Topology, node: &NumaNode) -> (f64, f64, String) {
    let groups = cores_by_cache(topology, node);
    let grid = CoreGrid::layout(&groups);
    let count: usize = groups.iter().map(Vec::len).sum();
    let width = grid.width.max(MIN_NODE_WIDTH) + 2.0 * GAP;
    let mut svg = String::new();
    let mut y = LINE_HEIGHT + 2.0;
    let threads = node.cpus.len();
    let label = match count {
        0 => "no cores".to_string(),
        _ if threads > count => format!("{}, {threads} threads", format_count_with_noun(count as u64, "core")),
        _ => format_count_with_noun(count as u64, "core"),
    };
    let _ = write!(
        svg,
        r#"<text class="label" x="{GAP}" y="{y}"><tspan class="strong">Node {}</tspan></text><text x="{:.1}" y="{y}" text-anchor="end">{label}</text>"#,
        node.id,
        width - GAP
    );
    y += GAP;
    if count > 0 {
        let left = (width - grid.width) / 2.0;
        for (i, group) in groups.iter().enumerate() {
            let (wide, high) = CoreGrid::group_size(grid.cell, grid.columns, groups[0].len().max(group.len()));
            let x = left + (i % grid.groups_per_row) as f64 * (wide + 6.0);
            let top = y + (i / grid.groups_per_row) as f64 * (high + 6.0);
            let _ = write!(
                svg,
                r#"<rect class="shared" x="{x:.1}" y="{top:.1}" width="{wide:.1}" height="{high:.1}" rx="4"/>"#
            );
            for (j, core) in group.iter().enumerate() {
                let cx = x + 4.0 + (j % grid.columns) as f64 * (grid.cell + 3.0);
                let cy = top + 4.0 + (j / grid.columns) as f64 * (grid.cell + 3.0);
                svg += &draw_core(topology, core, (cx, cy), grid.cell);
            }
        }
        y += grid.height + 4.0;
        for line in cache_lines(topology, node) {
            y += LINE_HEIGHT - 2.0;
            let _ = write!(svg, r#"<text x="{:.1}" y="{y:.1}" text-anchor="middle">{line}</text>"#, width / 2.0);
        }
        y += GAP * 0.7;
    }
    let _ = write!(svg, r#"<path class="wire" d="M{:.1} {y:.1}v{GAP}"/>"#, width / 2.0);
    y += GAP;
    let usable = topology.allowed.nodes.contains(node.id);
    let (style, text) = match (node.memory_bytes, usable) {
        (0, _) => ("bank none", "no memory of its own".to_string()),
        (bytes, _) if node.is_gpu_memory => ("bank none", format!("Memory of a GPU, {}", format_bytes(bytes))),
        (bytes, true) => ("bank", format!("Memory {}", format_bytes(bytes))),
        (bytes, false) => ("bank none", format!("Memory {}, not allowed", format_bytes(bytes))),
    };
    let _ = write!(
        svg,
        r#"<rect class="{style}" x="{GAP}" y="{y:.1}" width="{:.1}" height="{BANK_HEIGHT}" rx="4"/><text class="label" x="{:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
        width - 2.0 * GAP,
        width / 2.0,
        y + BANK_HEIGHT / 2.0 + 4.5
    );
    y += BANK_HEIGHT + GAP;
    let outline = format!(r#"<rect class="node" x="0" y="0" width="{width:.1}" height="{y:.1}" rx="6"/>"#);
    (width, y, outline + &svg)
}

/// Draws a core as a square with one stripe for each hardware thread and, if there is room, the number of its first
/// CPU.
fn draw_core(topology: &Topology, core: &DrawnCore, (x, y): (f64, f64), cell: f64) -> String {
    let n = core.cpus.len().max(1);
    let width = (cell - (n - 1) as f64) / n as f64;
    let ids: Vec<String> = core.cpus.iter().map(|c| c.id.to_string()).collect();
    let mut svg = format!("<g><title>Core with CPU {}</title>", ids.join(" and "));
    for (i, cpu) in core.cpus.iter().enumerate() {
        let style = if topology.allowed.cpus.contains(cpu.id) { "core" } else { "core barred" };
        let _ = write!(
            svg,
            r#"<rect class="{style}" x="{:.1}" y="{y:.1}" width="{width:.1}" height="{cell:.1}" rx="{:.1}"/>"#,
            x + i as f64 * (width + 1.0),
            (cell / 10.0).min(2.5)
        );
    }
    if cell >= MIN_NUMBERED_CORE && core.cpus[0].id < 1000 {
        let pale = if topology.allowed.cpus.contains(core.cpus[0].id) { "" } else { " pale" };
        let _ = write!(
            svg,
            r#"<text class="id{pale}" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            x + cell / 2.0,
            y + cell / 2.0 + 4.0,
            core.cpus[0].id
        );
    }
    svg + "</g>"
}
