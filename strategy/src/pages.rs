//! Where the pages of an instance are, as the kernel says while it runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use genuma_machine::IdSet;
use genuma_machine::placement::Policy;
use serde::Serialize;

use crate::invocation::Index;

/// A range of memory counts to the index if it holds at least this part of the index's bytes.
const PART_OF_INDEX: u64 = 16;
/// Smaller ranges are stacks and buffers.
const LEAST: u64 = 64 << 10;
/// Part of the index's pages that may be elsewhere than asked: the kernel falls back when a node is short, and buffers of threads may look
/// like a small index.
const TOLERANCE: f64 = 0.1;

/// Bytes on each node.
pub(crate) type OnNodes = BTreeMap<u32, u64>;

/// Memory of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Pages {
    /// All of it (bytes of each node).
    pub all: OnNodes,
    /// Its large ranges, but for files that are not the index's: the index (bytes of each node).
    pub index: OnNodes,
}

/// The index that is looked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sought {
    /// Bytes of its files.
    bytes: u64,
    /// Its files, as the kernel writes them.
    files: Vec<String>,
}

impl Sought {
    pub fn new(index: Option<&Index>) -> Self {
        let files = index.map(|index| index.files.as_slice()).unwrap_or_default();
        let written = |path: &PathBuf| {
            let path = path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string();
            // seq_file_path() in fs/proc/task_mmu.c.
            path.replace('\n', "\\012").replace('\t', "\\011").replace('=', "\\075").replace(' ', "\\040")
        };
        let bytes = index.and_then(|index| index.bytes().ok()).unwrap_or(0);
        Sought { bytes, files: files.iter().map(written).collect() }
    }
}

/// Memory of all processes of a group. None if they are gone or the system does not tell.
pub(crate) fn of_group(group: u32, index: &Sought) -> Option<Pages> {
    let mut pages = Pages::default();
    for id in processes(group) {
        if let Ok(maps) = fs::read_to_string(format!("/proc/{id}/numa_maps")) {
            pages.add(&maps, index);
        }
    }
    (!pages.all.is_empty()).then_some(pages)
}

/// The processes of a group.
pub(crate) fn processes(group: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let within = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok();
        stat.and_then(|stat| group_of(&stat)) == Some(group)
    };
    all.filter(within).collect()
}

/// The group of a process, from its `stat` (proc_pid_stat(5), field 5).
fn group_of(stat: &str) -> Option<u32> {
    stat.rsplit(')').next()?.split_whitespace().nth(2)?.parse().ok()
}

impl Pages {
    /// What was found later, unless the instance has given back of its index since: it does before it ends.
    pub(crate) fn or_later(self, later: Pages) -> Pages {
        let index = |pages: &Pages| pages.index.values().sum::<u64>();
        if index(&later) < index(&self) { self } else { later }
    }

    /// Adds the ranges of a `numa_maps` (numa(7)): `7f00 interleave:0-1 anon=8 dirty=8 N0=4 N1=4 kernelpagesize_kB=4`.
    fn add(&mut self, maps: &str, index: &Sought) {
        for line in maps.lines() {
            let mut on = OnNodes::new();
            let mut page = 4;
            for word in line.split_whitespace() {
                let Some((name, value)) = word.split_once('=') else { continue };
                let Ok(value) = value.parse::<u64>() else { continue };
                if name == "kernelpagesize_kB" {
                    page = value;
                } else if let Some(Ok(node)) = name.strip_prefix('N').map(str::parse) {
                    on.insert(node, value);
                }
            }
            // Programs and libraries lie where they were first read, by whomever.
            let file = line.split_whitespace().find_map(|word| word.strip_prefix("file="));
            let foreign = file.is_some_and(|file| !index.files.iter().any(|of_index| of_index == file));
            let large = on.values().sum::<u64>() * page * 1024 >= (index.bytes / PART_OF_INDEX).max(LEAST);
            let of_index = large && !foreign;
            for (node, pages) in on {
                *self.all.entry(node).or_default() += pages * page * 1024;
                if of_index {
                    *self.index.entry(node).or_default() += pages * page * 1024;
                }
            }
        }
    }

    /// Whether the index is where it was to be: under `policy`, or where that is none on `nodes`.
    pub(crate) fn index_is_on(&self, policy: &Policy, nodes: &IdSet) -> bool {
        let all: u64 = self.index.values().sum();
        let share = |bytes: u64| bytes as f64 / all.max(1) as f64;
        let named = policy.nodes();
        let on = |node: u32| share(self.index.get(&node).copied().unwrap_or(0));
        let within = |nodes: &IdSet| nodes.iter().map(on).sum::<f64>() >= 1.0 - TOLERANCE;
        if all == 0 {
            return true;
        }
        match policy {
            Policy::Local => within(nodes),
            Policy::Bind(_) | Policy::PreferredMany(_) => within(&named),
            Policy::Interleave(_) => {
                let even = 1.0 / named.len().max(1) as f64;
                within(&named) && named.iter().all(|node| (on(node) - even).abs() <= TOLERANCE)
            }
            Policy::KernelWeighted(_) => within(&named) && named.iter().all(|node| on(node) > 0.0),
            Policy::Weighted(weights) => {
                let sum: u32 = weights.values().sum();
                let asked = |weight: u32| f64::from(weight) / f64::from(sum.max(1));
                weights.iter().all(|(&node, &weight)| (on(node) - asked(weight)).abs() <= TOLERANCE)
            }
        }
    }
}

/// `node 0 60%, node 1 40%`.
pub fn shares(on: &OnNodes) -> String {
    let all: u64 = on.values().sum();
    let share = |(node, bytes): (&u32, &u64)| {
        format!("node {node} {:.0}%", 100.0 * *bytes as f64 / all.max(1) as f64)
    };
    on.iter().map(share).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invocation::Loading;

    const MAPS: &str = "\
5600 default file=/usr/bin/bwa mapped=30 N0=30 kernelpagesize_kB=4
5700 default file=/usr/lib/libc.so.6 mapped=500 N1=500 kernelpagesize_kB=4
6000 default file=/data/my\\040index mapped=600 N0=600 kernelpagesize_kB=4
7f00 bind:1 anon=1000 dirty=1000 active=0 N1=1000 kernelpagesize_kB=4
7f10 bind:1 anon=2 dirty=2 N0=1 N1=1 kernelpagesize_kB=2048
7ffe default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4
";

    fn on(bytes: &[(u32, u64)]) -> Pages {
        Pages { all: OnNodes::new(), index: bytes.iter().copied().collect() }
    }

    #[test]
    fn an_instance_that_gives_its_index_back_has_had_it() {
        let (whole, half, more) = (on(&[(0, 8), (1, 8)]), on(&[(1, 8)]), on(&[(0, 16), (1, 16)]));
        assert_eq!(whole.clone().or_later(half.clone()), whole);
        assert_eq!(half.or_later(whole.clone()), whole);
        assert_eq!(whole.or_later(more.clone()), more);
    }

    #[test]
    fn ranges_are_summed_by_node() {
        let mut pages = Pages::default();
        let files = Sought::new(Some(&Index {
            files: vec!["/data/my index".into()],
            loading: Loading::Mapped,
            made_by: None,
        }));
        pages.add(MAPS, &Sought { bytes: 16 << 20, ..files });
        assert_eq!(pages.all, [(0, 633 * 4096 + (2 << 20)), (1, 1500 * 4096 + (2 << 20))].into());
        assert_eq!(pages.index, [(0, 600 * 4096 + (2 << 20)), (1, 1000 * 4096 + (2 << 20))].into());
        assert_eq!(shares(&[(0, 25), (3, 75)].into()), "node 0 25%, node 3 75%");
    }

    #[test]
    fn an_index_is_where_it_was_asked_to_be_or_not() {
        let nodes = IdSet::from([0, 1]);
        let bind = Policy::Bind([1].into());
        assert!(on(&[(1, 100)]).index_is_on(&bind, &nodes));
        assert!(on(&[(0, 5), (1, 95)]).index_is_on(&bind, &nodes));
        assert!(!on(&[(0, 50), (1, 50)]).index_is_on(&bind, &nodes));
        let spread = Policy::Interleave([0, 1].into());
        assert!(on(&[(0, 48), (1, 52)]).index_is_on(&spread, &nodes));
        assert!(!on(&[(0, 90), (1, 10)]).index_is_on(&spread, &nodes));
        assert!(!on(&[(2, 100)]).index_is_on(&Policy::Local, &nodes));
        assert!(on(&[(0, 100)]).index_is_on(&Policy::Local, &nodes));
        let weighted = Policy::Weighted([(0, 3), (1, 1)].into());
        assert!(on(&[(0, 75), (1, 25)]).index_is_on(&weighted, &nodes));
        assert!(!on(&[(0, 50), (1, 50)]).index_is_on(&weighted, &nodes));
        assert!(on(&[]).index_is_on(&bind, &nodes));
    }

    #[test]
    fn this_process_is_found_in_its_group() {
        let stat = fs::read_to_string("/proc/self/stat").expect("a stat");
        let group = group_of(&stat).expect("a group");
        // The kernel may be built without NUMA.
        if fs::metadata("/proc/self/numa_maps").is_ok() {
            let pages = of_group(group, &Sought::default()).expect("pages of a living process");
            assert!(pages.all.values().sum::<u64>() > 0);
        }
        assert_eq!(of_group(u32::MAX, &Sought::default()), None);
    }
}
