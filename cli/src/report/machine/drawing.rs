//! The drawing of a machine: sockets, nodes with their cores and caches, banks of memory. One small SVG for each socket, so that
//! a narrow window puts them under each other.

use std::collections::BTreeMap;
use std::fmt::Write;

use genuma_machine::topology::{CacheKind, Cpu, Node, Topology};

use crate::report::markup::{binary, counted, escape};

/// Space around and between boxes.
const GAP: f64 = 10.0;
/// Least width of the inside of a node: its texts need it.
const LEAST: f64 = 196.0;
/// Height of a line of text.
const LINE: f64 = 18.0;
const MEMORY: f64 = 40.0;
/// Least side of a core with a number in it.
const NUMBERED: f64 = 26.0;

/// One core and its hardware threads.
struct Core<'a> {
    cpus: Vec<&'a Cpu>,
}

/// The drawings, one after the other.
pub(crate) fn drawing(topology: &Topology) -> String {
    houses(topology).iter().map(|(name, nodes)| house(topology, name, nodes)).collect()
}

/// Nodes by socket, in the order of their numbers; nodes without cores, and nodes that span sockets, stand alone.
fn houses(topology: &Topology) -> Vec<(String, Vec<&Node>)> {
    let packages = |node: &Node| -> Vec<u32> {
        let mut of: Vec<u32> =
            topology.cpus.iter().filter(|c| c.node == node.id).map(|c| c.package).collect();
        of.sort_unstable();
        of.dedup();
        of
    };
    let spans = topology.nodes.iter().any(|n| packages(n).len() > 1);
    let mut sockets: BTreeMap<u32, Vec<&Node>> = BTreeMap::new();
    let mut alone = Vec::new();
    for node in &topology.nodes {
        match packages(node)[..] {
            [] => alone.push(("No socket".to_string(), vec![node])),
            [package] if !spans => sockets.entry(package).or_default().push(node),
            ref of => alone.push((counted(of.len() as u64, "socket"), vec![node])),
        }
    }
    let sockets = sockets.into_iter().map(|(package, nodes)| (format!("Socket {package}"), nodes));
    sockets.chain(alone).collect()
}

fn cores<'a>(topology: &'a Topology, node: &Node) -> Vec<Core<'a>> {
    let mut cores: BTreeMap<u32, Core> = BTreeMap::new();
    for cpu in topology.cpus.iter().filter(|c| c.node == node.id) {
        let first = cpu.siblings.first().unwrap_or(cpu.id);
        cores.entry(first).or_insert_with(|| Core { cpus: Vec::new() }).cpus.push(cpu);
    }
    cores.into_values().collect()
}

/// The cores of a node, those that share the last cache together.
fn groups<'a>(topology: &'a Topology, node: &Node) -> Vec<Vec<Core<'a>>> {
    let data = topology.caches.iter().filter(|c| c.kind != CacheKind::Instruction);
    let last = data.clone().map(|c| c.level).max().unwrap_or(0);
    let lasts: Vec<_> = data.filter(|c| c.level == last).collect();
    let mut groups: BTreeMap<usize, Vec<Core>> = BTreeMap::new();
    for core in cores(topology, node) {
        let id = core.cpus[0].id;
        let at = lasts.iter().position(|c| c.cpus.contains(id)).unwrap_or(lasts.len());
        groups.entry(at).or_default().push(core);
    }
    // Caches of one core each make no groups.
    if groups.values().all(|g| g.len() == 1) {
        return vec![groups.into_values().flatten().collect()];
    }
    groups.into_values().collect()
}

/// What the caches are, a line each: those of one core, and those that cores share.
fn caches(topology: &Topology, node: &Node) -> Vec<String> {
    let (mut own, mut shared) = (Vec::new(), Vec::new());
    let of_node = topology.caches.iter().filter(|c| !c.cpus.and(&node.cpus).is_empty());
    for cache in of_node.filter(|c| c.kind != CacheKind::Instruction) {
        let siblings =
            cache.cpus.first().and_then(|id| topology.cpu(id)).map_or(1, |cpu| cpu.siblings.len().max(1));
        let sharing = cache.cpus.len().div_ceil(siblings) as u64;
        let letter = if cache.kind == CacheKind::Data { "d" } else { "" };
        let name = format!("L{}{letter} {}", cache.level, binary(cache.bytes));
        let (list, name) = if sharing > 1 {
            (&mut shared, format!("{name} for {}", counted(sharing, "core")))
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

/// Side of a core where a node has so many.
fn cell(cores: usize) -> f64 {
    match cores {
        0..=4 => 40.0,
        5..=8 => 34.0,
        9..=16 => 26.0,
        17..=48 => 18.0,
        _ => 12.0,
    }
}

/// Whether there is room for numbers in a node's cores.
pub(crate) fn numbered(topology: &Topology, node: &Node) -> bool {
    !node.cpus.is_empty() && cell(cores(topology, node).len()) >= NUMBERED
}

/// How a node's cores are laid out.
struct Grid {
    /// Side of a core.
    cell: f64,
    /// Cores in a row of a group.
    columns: usize,
    /// Groups in a row.
    across: usize,
    width: f64,
    height: f64,
}

impl Grid {
    fn of(groups: &[Vec<Core>]) -> Grid {
        let total: usize = groups.iter().map(Vec::len).sum();
        let largest = groups.iter().map(Vec::len).max().unwrap_or(0);
        let cell = cell(total);
        let columns = match largest {
            0..=4 => largest.max(1),
            5..=8 => 4,
            9..=32 => 8,
            _ => 16,
        };
        let (wide, high) = Grid::group(cell, columns, largest);
        let across = (((LEAST * 1.5 + 6.0) / (wide + 6.0)) as usize).clamp(1, groups.len().max(1));
        // As square as the room allows, without a lone last row.
        let rows = groups.len().div_ceil(across);
        let across = groups.len().div_ceil(rows.max(1)).max(1);
        Grid {
            cell,
            columns,
            across,
            width: across as f64 * (wide + 6.0) - 6.0,
            height: rows as f64 * (high + 6.0) - 6.0,
        }
    }

    /// Width and height of a group.
    fn group(cell: f64, columns: usize, cores: usize) -> (f64, f64) {
        let rows = cores.div_ceil(columns.max(1)).max(1);
        (columns as f64 * (cell + 3.0) + 5.0, rows as f64 * (cell + 3.0) + 5.0)
    }
}

/// A socket, or a node that stands alone.
fn house(topology: &Topology, name: &str, nodes: &[&Node]) -> String {
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
    let height = rows as f64 * (high + GAP) + LINE + GAP * 1.4;
    let described = format!(
        "{name}: {}",
        nodes.iter().map(|n| node_words(topology, n)).collect::<Vec<String>>().join("; ")
    );
    let mut svg = format!(
        r#"<svg viewBox="0 0 {width:.0} {height:.0}" style="width:{width:.0}px" role="img" aria-label="{}"><rect class="socket" x=".5" y=".5" width="{:.0}" height="{:.0}" rx="8"/><text class="label" x="{GAP}" y="{LINE}">{}</text>"#,
        escape(&described),
        width - 1.0,
        height - 1.0,
        escape(name)
    );
    for (i, (_, _, node)) in drawn.iter().enumerate() {
        let x = GAP + (i % columns) as f64 * (wide + GAP);
        let y = LINE + GAP + (i / columns) as f64 * (high + GAP);
        let _ = write!(svg, r#"<g transform="translate({x:.1} {y:.1})">{node}</g>"#);
    }
    svg + "</svg>"
}

fn node_words(topology: &Topology, node: &Node) -> String {
    let cores = cores(topology, node).len() as u64;
    let what = if cores == 0 { "no cores".to_string() } else { counted(cores, "core") };
    format!("node {} with {what} and {} of memory", node.id, binary(node.memory))
}

/// A node's box: its width, its height, its drawing.
fn draw_node(topology: &Topology, node: &Node) -> (f64, f64, String) {
    let groups = groups(topology, node);
    let grid = Grid::of(&groups);
    let count: usize = groups.iter().map(Vec::len).sum();
    let width = grid.width.max(LEAST) + 2.0 * GAP;
    let mut svg = String::new();
    let mut y = LINE + 2.0;
    let threads = node.cpus.len();
    let told = match count {
        0 => "no cores".to_string(),
        _ if threads > count => format!("{}, {threads} threads", counted(count as u64, "core")),
        _ => counted(count as u64, "core"),
    };
    let _ = write!(
        svg,
        r#"<text class="label" x="{GAP}" y="{y}"><tspan class="strong">Node {}</tspan></text><text x="{:.1}" y="{y}" text-anchor="end">{told}</text>"#,
        node.id,
        width - GAP
    );
    y += GAP;
    if count > 0 {
        let left = (width - grid.width) / 2.0;
        for (i, group) in groups.iter().enumerate() {
            let (wide, high) = Grid::group(grid.cell, grid.columns, groups[0].len().max(group.len()));
            let x = left + (i % grid.across) as f64 * (wide + 6.0);
            let top = y + (i / grid.across) as f64 * (high + 6.0);
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
        for line in caches(topology, node) {
            y += LINE - 2.0;
            let _ =
                write!(svg, r#"<text x="{:.1}" y="{y:.1}" text-anchor="middle">{line}</text>"#, width / 2.0);
        }
        y += GAP * 0.7;
    }
    let _ = write!(svg, r#"<path class="wire" d="M{:.1} {y:.1}v{GAP}"/>"#, width / 2.0);
    y += GAP;
    let usable = topology.allowed.nodes.contains(node.id);
    let (style, text) = match (node.memory, usable) {
        (0, _) => ("bank none", "no memory of its own".to_string()),
        (bytes, true) => ("bank", format!("Memory {}", binary(bytes))),
        (bytes, false) => ("bank none", format!("Memory {}, barred", binary(bytes))),
    };
    let _ = write!(
        svg,
        r#"<rect class="{style}" x="{GAP}" y="{y:.1}" width="{:.1}" height="{MEMORY}" rx="4"/><text class="label" x="{:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
        width - 2.0 * GAP,
        width / 2.0,
        y + MEMORY / 2.0 + 4.5
    );
    y += MEMORY + GAP;
    let outline = format!(r#"<rect class="node" x="0" y="0" width="{width:.1}" height="{y:.1}" rx="6"/>"#);
    (width, y, outline + &svg)
}

/// A core: one stripe a hardware thread, its first CPU's number where there is room.
fn draw_core(topology: &Topology, core: &Core, (x, y): (f64, f64), cell: f64) -> String {
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
    if cell >= NUMBERED && core.cpus[0].id < 1000 {
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
