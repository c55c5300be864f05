//! Formats a topology as text for the user.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::format_size::format_size;
use super::{CacheKind, CpuCache, FirmwareMemoryPerformance, NumaNode, Topology, TransparentHugePageMode};
use crate::IdSet;

impl Topology {
    /// Formats the topology as text: a summary line, general facts, tables of nodes, caches, distances and memory
    /// access (firmware), the restrictions of this process if there are any, and what could not be read.
    pub fn format_topology(&self) -> String {
        let mut parts = vec![self.summary(), self.facts_table(), self.node_table(), self.cache_table()];
        parts.extend([self.distance_table(), self.access_table(), self.restrictions_table(), self.missing_section()]);
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    fn summary(&self) -> String {
        let mut words = vec![format_count(self.nodes.len(), "node")];
        let threads = self.cpus.len().checked_div(self.count_cores(&self.online_cpus())).unwrap_or(1);
        words.push(format_count(self.count_cores(&self.online_cpus()), "core"));
        if threads > 1 {
            words.push(format_count(self.cpus.len(), "hardware thread"));
        }
        words.push(format!("{} of memory", format_size(self.memory_bytes())));
        format!("{}: {}\n", self.origin, words.join(", "))
    }

    fn facts_table(&self) -> String {
        let mut facts = Vec::new();
        let mut fact = |name: &str, value: Option<String>| facts.extend(value.map(|v| vec![name.to_owned(), v]));
        fact("processor", self.processor.clone());
        fact("kernel", self.kernel.clone());
        fact("page", Some(format_size(self.page_bytes)));
        fact(
            "transparent huge pages",
            self.transparent_huge_pages.map(|chosen| describe_transparent_huge_pages(chosen).to_owned()),
        );
        if self.kernel.is_some() {
            fact("weighted interleave", Some(self.describe_interleave_weights()));
        }
        let of_gpus: IdSet = self.nodes.iter().filter(|node| node.is_gpu_memory).map(|node| node.id).collect();
        fact(
            "memory of GPUs",
            Some(format!("{} (not used)", format_node_list(&of_gpus))).filter(|_| !of_gpus.is_empty()),
        );
        fact("CPUs offline", Some(self.offline_cpus.to_string()).filter(|cpus| !cpus.is_empty()));
        format_grid(&facts, &[])
    }

    fn describe_interleave_weights(&self) -> String {
        let Some(weights) = &self.interleave_weights else {
            return "none shown (Linux 6.9 and later have it)".to_owned();
        };
        let different: BTreeSet<u32> = weights.values().copied().collect();
        if let (Some(weight), 1) = (different.first(), different.len()) {
            return format!("weight {weight} on every node");
        }
        let words: Vec<String> =
            weights.iter().map(|(node, weight)| format!("weight {weight} on node {node}")).collect();
        words.join(", ")
    }

    fn node_table(&self) -> String {
        let level = self.caches.iter().map(|cache| cache.level).max();
        let pools: BTreeSet<u64> =
            self.nodes.iter().flat_map(|node| &node.huge_pages).map(|pool| pool.page_bytes).collect();
        let mut head = ["node", "package", "CPUs", "cores", "memory", "free"].map(str::to_owned).to_vec();
        head.extend(pools.iter().map(|bytes| format!("pages of {} (free)", format_size(*bytes))));
        head.extend(level.map(|level| format!("L{level}")));
        let mut rows = vec![head];
        for node in &self.nodes {
            let cores = self.count_cores(&node.cpus).to_string();
            let packages: IdSet = self.cpus.iter().filter(|cpu| cpu.node == node.id).map(|cpu| cpu.package).collect();
            let mut row = vec![node.id.to_string(), or_dash(&packages.to_string())];
            row.extend([or_dash(&node.cpus.to_string()), cores]);
            row.extend([format_size(node.memory_bytes), format_size(node.free_bytes)]);
            row.extend(pools.iter().map(|bytes| format_huge_page_pool(node, *bytes)));
            row.extend(level.map(|level| self.format_node_caches(node, level)));
            rows.push(row);
        }
        let right: Vec<bool> = rows[0].iter().map(|name| name != "CPUs").collect();
        format_grid(&rows, &right)
    }

    /// Formats the caches of one level that the CPUs of a node have, for example `2 × 32 MiB`.
    fn format_node_caches(&self, node: &NumaNode, level: u32) -> String {
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        for cache in self.caches.iter().filter(|c| c.level == level && !c.cpus.intersection(&node.cpus).is_empty()) {
            *sizes.entry(cache.bytes).or_default() += 1;
        }
        let words = sizes.iter().map(|(bytes, count)| match count {
            1 => format_size(*bytes),
            count => format!("{count} × {}", format_size(*bytes)),
        });
        or_dash(&words.collect::<Vec<_>>().join(" + "))
    }

    fn cache_table(&self) -> String {
        if self.caches.is_empty() {
            return String::new();
        }
        let mut identical_caches: BTreeMap<(u32, CacheKind, u64, u32, usize), Vec<&CpuCache>> = BTreeMap::new();
        for cache in &self.caches {
            let key = (cache.level, cache.kind, cache.bytes, cache.line_bytes, cache.cpus.len());
            identical_caches.entry(key).or_default().push(cache);
        }
        let mut rows = vec![["cache", "size", "line", "how many", "CPUs of each"].map(str::to_owned).to_vec()];
        for ((level, kind, bytes, line, cpus), caches) in identical_caches {
            let kind = match kind {
                CacheKind::Data => "d",
                CacheKind::Instruction => "i",
                CacheKind::Unified => "",
            };
            let name = format!("L{level}{kind}");
            rows.push(vec![
                name,
                format_size(bytes),
                format_size(line.into()),
                caches.len().to_string(),
                cpus.to_string(),
            ]);
        }
        format_grid(&rows, &[false, true, true, true, true])
    }

    fn distance_table(&self) -> String {
        if self.nodes.len() < 2 {
            return String::new();
        }
        let mut head = vec!["distance".to_owned()];
        head.extend(self.nodes.iter().map(|to| to.id.to_string()));
        let mut rows = vec![head];
        for from in &self.nodes {
            let mut row = vec![format!("from {}", from.id)];
            let to = |to: &NumaNode| from.distances.get(&to.id).map_or("?".to_owned(), u32::to_string);
            row.extend(self.nodes.iter().map(to));
            rows.push(row);
        }
        format_grid(&rows, &[&[false][..], &vec![true; self.nodes.len()]].concat())
    }

    fn access_table(&self) -> String {
        let head = ["memory of", "seen from", "read latency", "write latency", "read bandwidth", "write bandwidth"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for node in &self.nodes {
            // Class 1 (nearest CPUs) is the one that matters to programs; without it the nearest initiators of any
            // kind are shown.
            let Some(access) = node.access.iter().max_by_key(|access| access.initiator_class) else { continue };
            rows.push(access_row(node, access));
        }
        if rows.len() == 1 {
            return String::new();
        }
        format!("firmware says (HMAT)\n{}", format_grid(&rows, &[false, false, true, true, true, true]))
    }

    /// Formats the CPUs, nodes, memory and CPU time that this process may use, where these are less than the whole
    /// machine. Empty without restrictions.
    fn restrictions_table(&self) -> String {
        let mut facts = Vec::new();
        let cpus = self.online_cpus();
        if self.allowed.cpus != cpus {
            facts.push(vec!["CPUs".to_owned(), format!("{} of {cpus}", self.allowed.cpus)]);
        }
        let with_memory = self.memory_nodes();
        if self.allowed_memory_nodes() != with_memory {
            facts.push(vec!["memory of nodes".to_owned(), format!("{} of {with_memory}", self.allowed_memory_nodes())]);
        }
        if let Some(bytes) = self.allowed.memory_limit_bytes {
            facts.push(vec!["memory".to_owned(), format!("{} (control group)", format_size(bytes))]);
        }
        if let Some(cpus) = self.allowed.cpu_time_limit_cpus {
            facts.push(vec!["CPU time".to_owned(), format!("{} CPUs (control group)", (cpus * 100.0).round() / 100.0)]);
        }
        if facts.is_empty() { String::new() } else { format!("this process may use\n{}", format_grid(&facts, &[])) }
    }

    fn missing_section(&self) -> String {
        if self.missing_notes.is_empty() {
            return String::new();
        }
        self.missing_notes.iter().fold("missing\n".to_owned(), |mut text, sentence| {
            writeln!(text, "  {sentence}").expect("a string takes all");
            text
        })
    }

    fn online_cpus(&self) -> IdSet {
        self.cpus.iter().map(|cpu| cpu.id).collect()
    }

    /// Number of cores that the given CPUs belong to.
    fn count_cores(&self, cpus: &IdSet) -> usize {
        let of = self.cpus.iter().filter(|cpu| cpus.contains(cpu.id));
        of.map(|cpu| &cpu.siblings).collect::<BTreeSet<_>>().len()
    }
}

fn access_row(node: &NumaNode, access: &FirmwareMemoryPerformance) -> Vec<String> {
    let latency = |ns: Option<u64>| ns.map_or("?".to_owned(), |ns| format!("{ns} ns"));
    let bandwidth = |mbs: Option<u64>| mbs.map_or("?".to_owned(), |mbs| format!("{:.1} GB/s", mbs as f64 / 1e3));
    vec![
        format!("node {}", node.id),
        format_node_list(&access.initiators),
        latency(access.read_latency_ns),
        latency(access.write_latency_ns),
        bandwidth(access.read_bandwidth_mbs),
        bandwidth(access.write_bandwidth_mbs),
    ]
}

fn format_node_list(nodes: &IdSet) -> String {
    match nodes.len() {
        0 => "-".to_owned(),
        1 => format!("node {nodes}"),
        _ => format!("nodes {nodes}"),
    }
}

fn format_huge_page_pool(node: &NumaNode, bytes: u64) -> String {
    match node.huge_pages.iter().find(|pool| pool.page_bytes == bytes) {
        Some(pool) if pool.total_pages > 0 => format!("{} ({})", pool.total_pages, pool.free_pages),
        Some(_) => "0".to_owned(),
        None => "-".to_owned(),
    }
}

fn describe_transparent_huge_pages(chosen: TransparentHugePageMode) -> &'static str {
    match chosen {
        TransparentHugePageMode::Always => "always",
        TransparentHugePageMode::Madvise => "where asked for (madvise)",
        TransparentHugePageMode::Never => "never",
    }
}

fn format_count(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// Formats rows in columns of equal width. Columns marked in `right` are right-aligned.
fn format_grid(rows: &[Vec<String>], right: &[bool]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| wide(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cell = |(column, cell): (usize, &String)| {
            let width = widths[column];
            if *right.get(column).unwrap_or(&false) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        };
        let line = row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
