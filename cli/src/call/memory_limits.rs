//! Checks the memory budget of a call, and determines the default of `--memory`.

use std::fs;
use std::path::Path;

use genuma_planner::min_memory;
use genuma_reads::AlignedOptions;
use genuma_somatic::pipeline::Resources;
use genuma_work::quantity;

use crate::allocator;
use crate::command_line;
use crate::errors::{UsageError, describe_memory_ulimit};

/// If a memory budget is below this number of bytes, the error message says that the user probably omitted the unit,
/// such as G. Chosen: no machine has so little memory.
const MIN_PLAUSIBLE_MEMORY_BYTES: u64 = 1 << 16;

/// Returns the error for a memory budget of `memory` bytes, given or the default, that is less than the `needed` bytes.
/// `subject` is the start of a sentence with subject and verb, such as `2 threads need`. `alternative` is another
/// remedy than more memory.
pub(crate) fn too_little_memory_error(
    memory: u64,
    needed: u64,
    subject: &str,
    alternative: Option<&str>,
) -> UsageError {
    let (have, need) = (quantity::format_bytes(memory), quantity::format_bytes(needed));
    let alternative = alternative.map(|other| format!(" or {other}")).unwrap_or_default();
    // The default is half of what is left. A limit that leaves too little for it leaves hardly more to --memory.
    let is_limited = process_limits_left(Path::new("/")).into_iter().any(|left| left / 2 < needed);
    UsageError(match allocator::lowest_memory_ulimit().filter(|_| is_limited) {
        Some(limit) => {
            let limit = describe_memory_ulimit(limit);
            format!(
                "{have} of memory is too little: {subject} {need} or more, and {limit}: raise the limit{alternative}"
            )
        }
        None if memory < MIN_PLAUSIBLE_MEMORY_BYTES => format!(
            "{memory} bytes of memory is too little, {need} are needed: write a unit after the number, such as 8G"
        ),
        None => format!("{have} of memory is too little: {subject} {need} or more; raise --memory{alternative}"),
    })
}

/// Returns an error if the memory budget is too small for the number of threads, or for a reference of `reference`
/// bases.
pub(super) fn check_memory_budget(means: &Resources, reference: Option<u64>) -> Result<(), UsageError> {
    let Resources { threads, memory, .. } = *means;
    let (threads_need, min_memory) = (
        min_memory::min_memory_bytes_without_reference(threads),
        min_memory::min_call_memory_bytes(threads, reference),
    );
    if memory >= min_memory {
        return Ok(());
    }
    Err(match reference {
        Some(_) if memory >= threads_need => too_little_memory_error(memory, min_memory, "the reference needs", None),
        _ => too_little_memory_error(memory, min_memory, &format!("{threads} threads need"), Some("lower --threads")),
    })
}

/// Returns the maximum size in bytes of a CRAM slice for these values of `--memory` and `--threads`.
pub(crate) fn max_cram_slice_bytes_for_budget(memory: Option<u64>, threads: Option<u16>) -> u64 {
    let memory = memory.unwrap_or_else(default_memory_budget_bytes);
    AlignedOptions::max_cram_slice_bytes_for_memory(memory, command_line::threads_or_all_cpus(threads))
}

/// Returns the default of `--memory` in bytes: half of the available memory, or 4 GiB if that is unknown.
pub(crate) fn default_memory_budget_bytes() -> u64 {
    available_memory_bytes(Path::new("/")).map_or(4 << 30, |free| free / 2)
}

/// Limits the requested memory to the total memory of this machine (bytes). Warns if the request is larger.
pub(crate) fn cap_memory_to_machine_total(requested: u64) -> u64 {
    let total = read_meminfo_bytes(Path::new("/"), "MemTotal:").unwrap_or(requested);
    if requested > total {
        let (asked, all) = (quantity::format_bytes(requested), quantity::format_bytes(total));
        tracing::warn!(
            "--memory: {asked} are more than the {all} of this machine, so the limit is {all}: the result is the same, but other \
             programs may run out of memory; give less"
        );
    }
    requested.min(total)
}

/// Returns a value of `/proc/meminfo` in bytes; `None` if there is no such value. `name` is its name with the colon.
/// `root` is `/`, or another folder in tests.
fn read_meminfo_bytes(root: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
}

/// Returns the memory in bytes that this process can still allocate: the minimum of the available memory of the
/// machine, what is left in its control groups, and what is left under its limits on address space (`ulimit -v`, h_vmem
/// of Grid Engine) and on data (`ulimit -d`).
///
/// `root` is `/`, or another folder in tests. `None` if the system reports none of these.
pub(crate) fn available_memory_bytes(root: &Path) -> Option<u64> {
    let machine = read_meminfo_bytes(root, "MemAvailable:");
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let left = groups.lines().flat_map(|line| cgroup_memory_left(root, line));
    machine.into_iter().chain(left).chain(process_limits_left(root)).min()
}

/// Returns the bytes that this process can still map under each of its limits on address space and on data.
fn process_limits_left(root: &Path) -> Vec<u64> {
    // I/O error ignored: files of the kernel that may be absent.
    let read = |name: &str| fs::read_to_string(root.join("proc/self").join(name)).unwrap_or_default();
    let (limits, status) = (read("limits"), read("status"));
    let left = |(limit, mapped): (&str, &str)| {
        let limit = limits.lines().find_map(|line| line.strip_prefix(limit))?;
        let limit: u64 = limit.split_whitespace().next()?.parse().ok()?;
        let mapped_kib = status.lines().find_map(|line| line.strip_prefix(mapped)?.trim().strip_suffix(" kB"));
        let mapped = mapped_kib.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * 1024;
        Some(limit.saturating_sub(mapped))
    };
    [("Max address space", "VmSize:"), ("Max data size", "VmData:")].into_iter().filter_map(left).collect()
}

/// Returns the memory in bytes that is left in a control group and in each of its ancestors with a limit. `line` is a
/// line of
/// `/proc/self/cgroup`: `ID:CONTROLLERS:PATH`, with empty controllers in version 2.
fn cgroup_memory_left(root: &Path, line: &str) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (base, names) = match controllers {
        "" => ("sys/fs/cgroup", ["memory.max", "memory.current", "inactive_file"]),
        c if c.split(',').any(|c| c == "memory") => {
            ("sys/fs/cgroup/memory", ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"])
        }
        _ => return Vec::new(),
    };
    // Inside a container the root of the tree may be the container's own group, so some levels may be missing.
    let base = root.join(base);
    let levels = Path::new(group.trim_start_matches('/')).ancestors().map(|level| base.join(level));
    levels.filter_map(|level| cgroup_level_memory_left(&level, names)).collect()
}

/// Returns the memory in bytes that is left in one control group; the strings are the names of its files and keys.
/// Inactive file pages count as free because the kernel reclaims them.
fn cgroup_level_memory_left(level: &Path, [limit, usage, cached]: [&str; 3]) -> Option<u64> {
    // I/O error ignored: a file of the kernel that may be absent.
    let number = |name: &str| fs::read_to_string(level.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number(limit)?;
    // I/O error ignored: a file of the kernel that may be absent.
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
        let message = |memory, reference| {
            check_memory_budget(&Resources { threads: 2, memory, scratch: 0, devices: Default::default() }, reference)
                .err()
                .map(|e| e.to_string())
                .unwrap_or_default()
        };
        assert!(message(100 << 20, None).contains("100 MiB of memory is too little: 2 threads need 128 MiB or more"));
        assert_eq!(message(128 << 20, None), "");
        assert!(
            message(8 << 10, None).contains("8192 bytes of memory is too little, 128 MiB are needed: write a unit")
        );
        assert!(message(8, None).contains("8 bytes of memory is too little, 128 MiB are needed: write a unit"));
        assert_eq!(message(256 << 20, Some(100_000_000)), "");
        assert!(message(200 << 20, Some(100_000_000)).contains("the reference needs 224 MiB or more; raise --memory"));
    }

    #[test]
    fn the_tightest_limit_counts() {
        assert_eq!(available_memory_bytes(machine(&[]).path()), None);
        assert_eq!(available_memory_bytes(machine(&[MEMINFO]).path()), Some(8000 * 1024));

        let second = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "0::/shop/bench\n"),
            ("sys/fs/cgroup/shop/bench/memory.max", "max\n"),
            ("sys/fs/cgroup/shop/memory.max", "1000000\n"),
            ("sys/fs/cgroup/shop/memory.current", "600000\n"),
            ("sys/fs/cgroup/shop/memory.stat", "anon 1\ninactive_file 200000\n"),
        ]);
        assert_eq!(available_memory_bytes(second.path()), Some(600_000));

        let first = machine(&[
            MEMINFO,
            ("proc/self/cgroup", "3:cpu:/\n2:memory,hugetlb:/docker/7\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "700000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n"),
            ("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 50000\n"),
        ]);
        assert_eq!(available_memory_bytes(first.path()), Some(650_000));

        let header = "Limit                     Soft Limit           Hard Limit           Units     \n";
        let limits =
            |soft: &str| format!("{header}Max address space         {soft}              unlimited            bytes\n");
        let status = ("proc/self/status", "VmPeak:\t 3000 kB\nVmSize:\t    2000 kB\n");
        let limited = |soft: &str| machine(&[MEMINFO, ("proc/self/limits", &limits(soft)), status]);
        assert_eq!(available_memory_bytes(limited("5120000").path()), Some(5_120_000 - 2000 * 1024));
        assert_eq!(available_memory_bytes(limited("1024").path()), Some(0));
        assert_eq!(available_memory_bytes(limited("unlimited").path()), Some(8000 * 1024));
        let data = "Max data size             3000000              unlimited            bytes\n";
        let status = ("proc/self/status", "VmSize:\t 9000 kB\nVmData:\t    1000 kB\n");
        let limited = machine(&[MEMINFO, ("proc/self/limits", &(limits("unlimited") + data)), status]);
        assert_eq!(available_memory_bytes(limited.path()), Some(3_000_000 - 1000 * 1024));
    }
}
