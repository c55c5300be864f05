//! A topology as text for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::size::size;
use super::{Access, Cache, CacheKind, Node, Topology, Transparent};
use crate::IdSet;

impl Topology {
    /// The topology as text: a line that sums it up, facts, a table of nodes, caches, distances, what firmware says of
    /// access, what this process may use when that is less than there is, and what could not be read.
    pub fn table(&self) -> String {
        let mut parts = vec![self.summary(), self.facts(), self.node_table(), self.cache_table()];
        parts.extend([self.distance_table(), self.access_table(), self.confinement(), self.gaps()]);
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }

    fn summary(&self) -> String {
        let mut words = vec![many(self.nodes.len(), "node")];
        let threads = self.cpus.len().checked_div(self.cores(&self.all_cpus())).unwrap_or(1);
        words.push(many(self.cores(&self.all_cpus()), "core"));
        if threads > 1 {
            words.push(many(self.cpus.len(), "hardware thread"));
        }
        words.push(format!("{} of memory", size(self.nodes.iter().map(|node| node.memory).sum())));
        format!("{}: {}\n", self.origin, words.join(", "))
    }

    fn facts(&self) -> String {
        let mut facts = Vec::new();
        let mut fact =
            |name: &str, value: Option<String>| facts.extend(value.map(|v| vec![name.to_owned(), v]));
        fact("processor", self.processor.clone());
        fact("kernel", self.kernel.clone());
        fact("page", Some(size(self.page)));
        fact("transparent huge pages", self.transparent.map(|chosen| named_choice(chosen).to_owned()));
        if self.kernel.is_some() {
            fact("weighted interleave", Some(self.weights_in_words()));
        }
        fact("CPUs offline", Some(self.offline.to_string()).filter(|cpus| !cpus.is_empty()));
        grid(&facts, &[])
    }

    fn weights_in_words(&self) -> String {
        let Some(weights) = &self.weights else {
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
            self.nodes.iter().flat_map(|node| &node.huge_pages).map(|pool| pool.bytes).collect();
        let mut head = ["node", "package", "CPUs", "cores", "memory", "free"].map(str::to_owned).to_vec();
        head.extend(pools.iter().map(|bytes| format!("pages of {} (free)", size(*bytes))));
        head.extend(level.map(|level| format!("L{level}")));
        let mut rows = vec![head];
        for node in &self.nodes {
            let cores = self.cores(&node.cpus).to_string();
            let packages: IdSet =
                self.cpus.iter().filter(|cpu| cpu.node == node.id).map(|cpu| cpu.package).collect();
            let mut row = vec![node.id.to_string(), or_none(&packages.to_string())];
            row.extend([or_none(&node.cpus.to_string()), cores]);
            row.extend([size(node.memory), size(node.free)]);
            row.extend(pools.iter().map(|bytes| pool(node, *bytes)));
            row.extend(level.map(|level| self.caches_of(node, level)));
            rows.push(row);
        }
        let right: Vec<bool> = rows[0].iter().map(|name| name != "CPUs").collect();
        grid(&rows, &right)
    }

    /// The caches of one level that a node's CPUs have.
    fn caches_of(&self, node: &Node, level: u32) -> String {
        let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
        for cache in self.caches.iter().filter(|c| c.level == level && !c.cpus.and(&node.cpus).is_empty()) {
            *sizes.entry(cache.bytes).or_default() += 1;
        }
        let words = sizes.iter().map(|(bytes, count)| match count {
            1 => size(*bytes),
            count => format!("{count} × {}", size(*bytes)),
        });
        or_none(&words.collect::<Vec<_>>().join(" + "))
    }

    fn cache_table(&self) -> String {
        if self.caches.is_empty() {
            return String::new();
        }
        let mut alike: BTreeMap<(u32, CacheKind, u64, u32, usize), Vec<&Cache>> = BTreeMap::new();
        for cache in &self.caches {
            let key = (cache.level, cache.kind, cache.bytes, cache.line, cache.cpus.len());
            alike.entry(key).or_default().push(cache);
        }
        let mut rows =
            vec![["cache", "size", "line", "how many", "CPUs of each"].map(str::to_owned).to_vec()];
        for ((level, kind, bytes, line, cpus), caches) in alike {
            let kind = match kind {
                CacheKind::Data => "d",
                CacheKind::Instruction => "i",
                CacheKind::Unified => "",
            };
            let name = format!("L{level}{kind}");
            rows.push(vec![name, size(bytes), size(line.into()), caches.len().to_string(), cpus.to_string()]);
        }
        grid(&rows, &[false, true, true, true, true])
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
            let to = |to: &Node| from.distances.get(&to.id).map_or("?".to_owned(), u32::to_string);
            row.extend(self.nodes.iter().map(to));
            rows.push(row);
        }
        grid(&rows, &[&[false][..], &vec![true; self.nodes.len()]].concat())
    }

    fn access_table(&self) -> String {
        let head =
            ["memory of", "seen from", "read latency", "write latency", "read bandwidth", "write bandwidth"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        for node in &self.nodes {
            // The nearest CPUs (class 1) matter to programs; where they are not described, the nearest of any kind.
            let Some(access) = node.access.iter().max_by_key(|access| access.class) else { continue };
            rows.push(access_row(node, access));
        }
        if rows.len() == 1 {
            return String::new();
        }
        format!("firmware says (HMAT)\n{}", grid(&rows, &[false, false, true, true, true, true]))
    }

    /// What this process may use, when it is less than there is.
    fn confinement(&self) -> String {
        let mut facts = Vec::new();
        let cpus = self.all_cpus();
        if self.allowed.cpus != cpus {
            facts.push(vec!["CPUs".to_owned(), format!("{} of {cpus}", self.allowed.cpus)]);
        }
        let with_memory: IdSet =
            self.nodes.iter().filter(|node| node.memory > 0).map(|node| node.id).collect();
        if self.memory_nodes() != with_memory {
            facts.push(vec![
                "memory of nodes".to_owned(),
                format!("{} of {with_memory}", self.memory_nodes()),
            ]);
        }
        if let Some(bytes) = self.allowed.memory {
            facts.push(vec!["memory".to_owned(), format!("{} (control group)", size(bytes))]);
        }
        if let Some(cpus) = self.allowed.cpu_time {
            facts.push(vec![
                "CPU time".to_owned(),
                format!("{} CPUs (control group)", (cpus * 100.0).round() / 100.0),
            ]);
        }
        if facts.is_empty() { String::new() } else { format!("this process may use\n{}", grid(&facts, &[])) }
    }

    fn gaps(&self) -> String {
        if self.missing.is_empty() {
            return String::new();
        }
        self.missing.iter().fold("missing\n".to_owned(), |mut text, sentence| {
            writeln!(text, "  {sentence}").expect("a string takes all");
            text
        })
    }

    fn all_cpus(&self) -> IdSet {
        self.cpus.iter().map(|cpu| cpu.id).collect()
    }

    /// How many cores these CPUs are threads of.
    fn cores(&self, cpus: &IdSet) -> usize {
        let of = self.cpus.iter().filter(|cpu| cpus.contains(cpu.id));
        of.map(|cpu| &cpu.siblings).collect::<BTreeSet<_>>().len()
    }
}

fn access_row(node: &Node, access: &Access) -> Vec<String> {
    let latency = |ns: Option<u64>| ns.map_or("?".to_owned(), |ns| format!("{ns} ns"));
    let bandwidth =
        |mbs: Option<u64>| mbs.map_or("?".to_owned(), |mbs| format!("{:.1} GB/s", mbs as f64 / 1e3));
    vec![
        format!("node {}", node.id),
        seen_from(&access.initiators),
        latency(access.read_latency_ns),
        latency(access.write_latency_ns),
        bandwidth(access.read_bandwidth_mbs),
        bandwidth(access.write_bandwidth_mbs),
    ]
}

fn seen_from(nodes: &IdSet) -> String {
    match nodes.len() {
        0 => "-".to_owned(),
        1 => format!("node {nodes}"),
        _ => format!("nodes {nodes}"),
    }
}

fn pool(node: &Node, bytes: u64) -> String {
    match node.huge_pages.iter().find(|pool| pool.bytes == bytes) {
        Some(pool) if pool.total > 0 => format!("{} ({})", pool.total, pool.free),
        Some(_) => "0".to_owned(),
        None => "-".to_owned(),
    }
}

fn named_choice(chosen: Transparent) -> &'static str {
    match chosen {
        Transparent::Always => "always",
        Transparent::Madvise => "where asked for (madvise)",
        Transparent::Never => "never",
    }
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// Rows in columns of equal width, the columns marked in `right` set to the right.
fn grid(rows: &[Vec<String>], right: &[bool]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| wide(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cell = |(column, cell): (usize, &String)| {
            let width = widths[column];
            if *right.get(column).unwrap_or(&false) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        };
        let line = row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
