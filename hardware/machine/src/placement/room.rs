//! Whether there is memory enough, asked before any page is touched: under `MPOL_BIND` a full node calls the kernel's killer of processes,
//! and so does a full control group.

use std::path::{Path, PathBuf};

use super::nodes::{self, Nodes};
use super::scoped::reduced;
use super::{Error, Policy};
use crate::{IdSet, sys};

/// Whether `bytes` more would fit under `policy`, as far as is known now: for memory that another process will take.
///
/// # Errors
/// They do not, with what is free and where; or the policy names nodes that may not be used.
pub fn fits(bytes: u64, policy: &Policy) -> Result<(), Error> {
    let nodes = Nodes::read();
    nodes.check(policy)?;
    check(bytes, policy, &nodes)
}

/// Refuses `bytes` under `policy` where they do not fit. What other processes take in the meantime is not known.
pub(super) fn check(bytes: u64, policy: &Policy, nodes: &Nodes) -> Result<(), Error> {
    let asked = || policy.to_string();
    // One page of tables for 512 pages.
    let with_tables = |bytes: u64| bytes.saturating_add(bytes / 512);
    let refuse = |free: u64, place: String| match with_tables(bytes) > free {
        true => Err(Error::TooLarge { asked: asked(), bytes, free, place }),
        false => Ok(()),
    };
    if let Some(free) = available_in_group() {
        refuse(free, "in this process's control group".to_owned())?;
    }
    let on = |set: &IdSet| match set.len() {
        1 => format!("on node {set}"),
        _ => format!("on nodes {set}"),
    };
    if nodes.single() {
        return refuse(available().unwrap_or(u64::MAX), "on this machine".to_owned());
    }
    let free_on = |set: &IdSet| {
        set.iter().map(|node| available_on(node).unwrap_or(u64::MAX)).fold(0, u64::saturating_add)
    };
    match policy {
        Policy::Bind(bound) => refuse(free_on(bound), on(bound)),
        Policy::Weighted(weights) => {
            let weights = reduced(weights);
            let all: u64 = weights.values().copied().map(u64::from).sum();
            for (&node, &weight) in &weights {
                let share = (u128::from(bytes) * u128::from(weight) / u128::from(all)) as u64;
                let free = free_on(&IdSet::from([node]));
                if with_tables(share) > free {
                    let place = format!("on node {node}, which would get {weight} of every {all} pages");
                    return Err(Error::TooLarge { asked: asked(), bytes: share, free, place });
                }
            }
            Ok(())
        }
        _ => refuse(free_on(&nodes.usable), on(&nodes.usable)),
    }
}

/// Bytes of a line `Name: 12 kB`, wherever the name stands in it.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_whitespace().any(|word| word == name))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != name).skip(1);
    Some(words.next()?.parse::<u64>().ok()? * 1024)
}

/// Bytes that programs may still take on the machine.
fn available() -> Option<u64> {
    kilobytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Bytes that programs may still take on `node`: free ones and half of what can be reclaimed at least, less what the kernel keeps for
/// itself, as `MemAvailable` has it for the machine (`mm/show_mem.c`, `si_mem_available`).
fn available_on(node: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/node/node{node}/meminfo")).ok()?;
    let of = |name| kilobytes(&text, name).unwrap_or(0);
    let reserve = reserve(node, &std::fs::read_to_string("/proc/zoneinfo").unwrap_or_default());
    let reclaimable = |bytes: u64| bytes - reserve.min(bytes / 2);
    let cached = of("Active(file):") + of("Inactive(file):");
    let free = kilobytes(&text, "MemFree:")? + reclaimable(cached) + reclaimable(of("SReclaimable:"));
    Some(free.saturating_sub(reserve))
}

/// Bytes the kernel likes to keep free on `node`: the high watermarks of its zones, from /proc/zoneinfo.
fn reserve(node: u32, zones: &str) -> u64 {
    let zone_of_node = format!("Node {node},");
    let mut here = false;
    let mut pages = 0;
    for line in zones.lines() {
        if line.starts_with("Node ") {
            here = line.starts_with(&zone_of_node);
        } else if here && let Some(high) = line.trim_start().strip_prefix("high ") {
            pages += high.trim().parse().unwrap_or(0);
        }
    }
    pages * sys::page() as u64
}

/// Bytes left under the limits of this process's control group and those above it; none where nothing limits it.
fn available_in_group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
            match controllers {
                "" => left(Path::new("/sys/fs/cgroup"), path, ["memory.max", "memory.current"]),
                "memory" => {
                    let files = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
                    left(Path::new("/sys/fs/cgroup/memory"), path, files)
                }
                _ => None,
            }
        })
        .min()
}

/// The least that is left in the group `path` below `root` or in a group above it. A path from outside of a container leads nowhere; then
/// the root is the container's own group.
fn left(root: &Path, path: &str, [limit, usage]: [&str; 2]) -> Option<u64> {
    let group: PathBuf = root.join(path);
    let left_in = |group: &Path| {
        let limit: u64 = nodes::read(group.join(limit))?;
        let usage: u64 = nodes::read(group.join(usage))?;
        let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let cached: u64 = ["inactive_file ", "active_file "]
            .iter()
            .filter_map(|name| stat.lines().find_map(|line| line.strip_prefix(name))?.parse::<u64>().ok())
            .sum();
        Some(limit.saturating_sub(usage.saturating_sub(cached)))
    };
    group.ancestors().take_while(|group| group.starts_with(root)).filter_map(left_in).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_are_those_of_the_nodes_zones() {
        let zones = "Node 0, zone      DMA\n  pages free 1\n        high     7\nNode 1, zone   Normal\n        high     5\n\
                     Node 1, zone  Movable\n        high     6\nNode 10, zone   Normal\n        high     9\n";
        let pages = |node| reserve(node, zones) / sys::page() as u64;
        assert_eq!([pages(0), pages(1), pages(10), pages(2)], [7, 11, 9, 0]);
    }

    #[test]
    fn lines_are_found_with_and_without_a_node_before_them() {
        assert_eq!(kilobytes("MemTotal: 9 kB\nMemFree:   12 kB\n", "MemFree:"), Some(12 << 10));
        assert_eq!(kilobytes("Node 3 MemFree:   12 kB\n", "MemFree:"), Some(12 << 10));
        assert_eq!(kilobytes("Node 3 MemUsed:   12 kB\n", "MemFree:"), None);
    }

    #[test]
    fn more_than_the_machine_has_does_not_fit() {
        let nodes = Nodes { online: [0].into(), memory: [0].into(), usable: [0].into() };
        assert!(check(1 << 20, &Policy::Local, &nodes).is_ok());
        assert!(fits(1 << 20, &Policy::Local).is_ok());
        assert!(
            matches!(fits(1 << 60, &Policy::Local), Err(Error::TooLarge { bytes, .. }) if bytes == 1 << 60)
        );
        let error = check(1 << 60, &Policy::Local, &nodes).expect_err("an exbibyte").to_string();
        assert!(error.starts_with("local: 1048576 TiB do not fit: "), "{error}");
    }
}
