//! How much memory a call needs, and may use when the user does not say.

use std::fs;
use std::path::Path;

use genuma_somatic::pipeline::Means;

use crate::failure::Usage;
use crate::forecast::model;
use crate::sizes;

/// Fails when the memory is too little for the threads and a reference of so many bases.
pub(super) fn check(means: &Means, reference: Option<u64>) -> Result<(), Usage> {
    let Means { threads, memory, .. } = *means;
    let (threads_need, least) = (model::least_for_threads(threads), model::least_for(threads, reference));
    if memory >= least {
        return Ok(());
    }
    let (have, need) = (sizes::show(memory), sizes::show(least));
    Err(Usage(match reference {
        Some(_) if memory >= threads_need => {
            format!("{have} of memory are too little for the reference, which needs {need}: raise --memory")
        }
        _ => format!(
            "{have} of memory are too little: {threads} threads need {need} or more; raise --memory or lower --threads"
        ),
    }))
}

/// What a run may use of memory when the user does not say: half of what is free.
pub(crate) fn usual() -> u64 {
    available(Path::new("/")).map_or(4 << 30, |free| free / 2)
}

/// What the user asked for, or all that the machine has if that is less, which is told: plans for more would only be made in vain.
pub(crate) fn at_most_all(asked: u64) -> u64 {
    let all = in_meminfo(Path::new("/"), "MemTotal:").unwrap_or(asked);
    if asked > all {
        let (asked, all) = (sizes::show(asked), sizes::show(all));
        tracing::warn!("--memory: {asked} are more than the {all} of this machine, and taken as those");
    }
    asked.min(all)
}

/// A line of the machine's memory, bytes.
fn in_meminfo(root: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

/// Bytes that this process could still get: what the machine has free, or what its control groups leave.
///
/// `root` is `/`, elsewhere in tests. `None` when the system does not say.
pub(crate) fn available(root: &Path) -> Option<u64> {
    let machine = in_meminfo(root, "MemAvailable:");
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let left = groups.lines().flat_map(|line| left_in(root, line));
    machine.into_iter().chain(left).min()
}

/// What each level of one control group leaves; `line` is `ID:CONTROLLERS:PATH`, version 2 with empty controllers.
fn left_in(root: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (base, names) = match controllers {
        "" => ("sys/fs/cgroup", ["memory.max", "memory.current", "inactive_file"]),
        c if c.split(',').any(|c| c == "memory") => (
            "sys/fs/cgroup/memory",
            ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
        ),
        _ => return Vec::new(),
    };
    // A container may see its own group as the root of the tree, whatever the path says: levels may be missing.
    let base = root.join(base);
    let levels = Path::new(group.trim_start_matches('/')).ancestors().map(|level| base.join(level));
    levels.filter_map(|level| left_at(&level, names)).collect()
}

/// What one level leaves; cached file pages count as free, since the kernel gives them up.
fn left_at(level: &Path, [limit, usage, cached]: [&str; 3]) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(level.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number(limit)?;
    let stat = fs::read_to_string(level.join("memory.stat")).unwrap_or_default();
    let cached = stat.lines().find_map(|l| l.strip_prefix(cached)?.trim().parse::<u64>().ok()).unwrap_or(0);
    Some(limit.saturating_sub(number(usage).unwrap_or(0).saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n");

    #[test]
    fn too_little_is_told_with_what_is_needed() {
        let said = |memory, reference| {
            check(&Means { threads: 2, memory, scratch: 0, devices: Default::default() }, reference)
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default()
        };
        assert!(
            said(100 << 20, None)
                .contains("100 MiB of memory are too little: 2 threads need 128 MiB or more")
        );
        assert_eq!(said(128 << 20, None), "");
        assert_eq!(said(256 << 20, Some(100_000_000)), "");
        assert!(said(200 << 20, Some(100_000_000)).contains("for the reference, which needs 224 MiB: raise"));
    }

    #[test]
    fn the_tightest_limit_counts() {
        assert_eq!(available(machine(&[]).path()), None);
        assert_eq!(available(machine(&[MEMINFO]).path()), Some(8000 * 1024));

        let second = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/shop/bench\n"),
            ("sys/fs/cgroup/shop/bench/memory.max", "max\n"),
            ("sys/fs/cgroup/shop/memory.max", "1000000\n"),
            ("sys/fs/cgroup/shop/memory.current", "600000\n"),
            ("sys/fs/cgroup/shop/memory.stat", "anon 1\ninactive_file 200000\n"),
        ]);
        assert_eq!(available(second.path()), Some(600_000));

        let first = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "3:cpu:/\n2:memory,hugetlb:/docker/7\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "700000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n"),
            ("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 50000\n"),
        ]);
        assert_eq!(available(first.path()), Some(650_000));
    }
}
