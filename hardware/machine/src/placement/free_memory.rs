//! Checks that there is enough free memory before any page is touched. Under `MPOL_BIND` a full node triggers the
//! kernel's out-of-memory killer, and so does a full control group.

use std::path::{Path, PathBuf};

use super::node_sets::{self, NumaNodeSets};
use super::scoped::divide_weights_by_gcd;
use super::{Error, MemoryPolicy};
use crate::{IdSet, sys};

/// Checks that `bytes` more bytes fit under `policy` with the memory that is free now. Used for memory that another
/// process will allocate.
///
/// # Errors
/// When the memory does not fit (the error says how much is free and where), or the policy names nodes that may not
/// be used.
pub fn check_memory_fits(bytes: u64, policy: &MemoryPolicy) -> Result<(), Error> {
    let nodes = NumaNodeSets::read_current_node_sets();
    nodes.check_policy(policy)?;
    check_available_memory(bytes, policy, &nodes)
}

/// Returns an error when `bytes` bytes under `policy` do not fit in the memory that is free now. Allocations of other
/// processes in the meantime are not considered.
pub(super) fn check_available_memory(bytes: u64, policy: &MemoryPolicy, nodes: &NumaNodeSets) -> Result<(), Error> {
    let asked = || policy.to_string();
    // Page tables take one page per 512 pages.
    let with_tables = |bytes: u64| bytes.saturating_add(bytes / 512);
    let refuse = |free: u64, place: String| match with_tables(bytes) > free {
        true => Err(Error::NotEnoughMemory { asked: asked(), bytes, free, place }),
        false => Ok(()),
    };
    if let Some(free) = read_cgroup_available_bytes() {
        refuse(free, "in this process's control group".to_owned())?;
    }
    let on = |set: &IdSet| match set.len() {
        1 => format!("on node {set}"),
        _ => format!("on nodes {set}"),
    };
    if nodes.has_one_usable_node() {
        return refuse(read_available_bytes().unwrap_or(u64::MAX), "on this machine".to_owned());
    }
    let free_on = |set: &IdSet| {
        set.iter().map(|node| read_node_available_bytes(node).unwrap_or(u64::MAX)).fold(0, u64::saturating_add)
    };
    match policy {
        MemoryPolicy::Bind(bound) => refuse(free_on(bound), on(bound)),
        MemoryPolicy::Weighted(weights) => {
            let weights = divide_weights_by_gcd(weights);
            let all: u64 = weights.values().copied().map(u64::from).sum();
            for (&node, &weight) in &weights {
                let share = (u128::from(bytes) * u128::from(weight) / u128::from(all)) as u64;
                let free = free_on(&IdSet::from([node]));
                if with_tables(share) > free {
                    let place = format!("on node {node}, which would get {weight} of every {all} pages");
                    return Err(Error::NotEnoughMemory { asked: asked(), bytes: share, free, place });
                }
            }
            Ok(())
        }
        _ => refuse(free_on(&nodes.usable), on(&nodes.usable)),
    }
}

/// Parses the line `Name: 12 kB` of a kernel file, with or without text before the name. Returns bytes.
fn parse_kilobytes_line(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split_whitespace().any(|word| word == name))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != name).skip(1);
    Some(words.next()?.parse::<u64>().ok()? * 1024)
}

/// Bytes that programs may still allocate on the machine (`MemAvailable`).
fn read_available_bytes() -> Option<u64> {
    parse_kilobytes_line(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Bytes that programs may still allocate on `node`: free memory plus at least half of the reclaimable memory, minus
/// the watermarks of the kernel. The formula is that of `MemAvailable` (`mm/show_mem.c`, `si_mem_available`).
fn read_node_available_bytes(node: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/node/node{node}/meminfo")).ok()?;
    let of = |name| parse_kilobytes_line(&text, name).unwrap_or(0);
    let reserve = parse_node_watermark_bytes(node, &std::fs::read_to_string("/proc/zoneinfo").unwrap_or_default());
    let reclaimable = |bytes: u64| bytes - reserve.min(bytes / 2);
    let cached = of("Active(file):") + of("Inactive(file):");
    let free = parse_kilobytes_line(&text, "MemFree:")? + reclaimable(cached) + reclaimable(of("SReclaimable:"));
    Some(free.saturating_sub(reserve))
}

/// Bytes that the kernel keeps free on `node`: the sum of the high watermarks of its zones, from the text of
/// /proc/zoneinfo.
fn parse_node_watermark_bytes(node: u32, zones: &str) -> u64 {
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
    pages * sys::base_page_bytes() as u64
}

/// Bytes left under the limits of this process's control group and its ancestors. `None` without a limit.
fn read_cgroup_available_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
            match controllers {
                "" => {
                    min_available_bytes_up_to_root(Path::new("/sys/fs/cgroup"), path, ["memory.max", "memory.current"])
                }
                "memory" => {
                    let files = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
                    min_available_bytes_up_to_root(Path::new("/sys/fs/cgroup/memory"), path, files)
                }
                _ => None,
            }
        })
        .min()
}

/// Smallest number of bytes left in the control group `path` below `root` or in one of its ancestors; cached file pages
/// count as left. A path that is valid outside of a container only does not exist below `root`; then `root` itself is
/// the control group of the container.
fn min_available_bytes_up_to_root(root: &Path, path: &str, [limit, usage]: [&str; 2]) -> Option<u64> {
    let group: PathBuf = root.join(path);
    let left_in = |group: &Path| {
        let limit: u64 = node_sets::read_and_parse_file(group.join(limit))?;
        let usage: u64 = node_sets::read_and_parse_file(group.join(usage))?;
        // I/O error ignored: a file of the kernel that may be absent.
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
        let pages = |node| parse_node_watermark_bytes(node, zones) / sys::base_page_bytes() as u64;
        assert_eq!([pages(0), pages(1), pages(10), pages(2)], [7, 11, 9, 0]);
    }

    #[test]
    fn lines_are_found_with_and_without_a_node_before_them() {
        assert_eq!(parse_kilobytes_line("MemTotal: 9 kB\nMemFree:   12 kB\n", "MemFree:"), Some(12 << 10));
        assert_eq!(parse_kilobytes_line("Node 3 MemFree:   12 kB\n", "MemFree:"), Some(12 << 10));
        assert_eq!(parse_kilobytes_line("Node 3 MemUsed:   12 kB\n", "MemFree:"), None);
    }

    #[test]
    fn more_than_the_machine_has_does_not_fit() {
        let nodes = NumaNodeSets { online: [0].into(), with_memory: [0].into(), usable: [0].into() };
        assert!(check_available_memory(1 << 20, &MemoryPolicy::Local, &nodes).is_ok());
        assert!(check_memory_fits(1 << 20, &MemoryPolicy::Local).is_ok());
        assert!(
            matches!(check_memory_fits(1 << 60, &MemoryPolicy::Local), Err(Error::NotEnoughMemory { bytes, .. }) if bytes == 1 << 60)
        );
        let error = check_available_memory(1 << 60, &MemoryPolicy::Local, &nodes).expect_err("an exbibyte").to_string();
        assert!(error.starts_with("local: 1048576 TiB do not fit: "), "{error}");
    }
}
