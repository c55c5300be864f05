//! Reads what this process may use: its affinity, its cpuset, and the limits of its control groups.

use crate::IdSet;
use crate::topology::file_tree::{KernelFileReader, malformed_content_error, parse_id_list, parse_number};
use crate::topology::{AllowedResources, Error};

const STATUS_PATH: &str = "/proc/self/status";
const CGROUP_PATH: &str = "/proc/self/cgroup";
const MOUNTINFO_PATH: &str = "/proc/self/mountinfo";

/// Minimum value of the memory limit file that means "no limit", in bytes: control groups version 1 have no other value
/// for it.
const CGROUP_V1_UNLIMITED_BYTES: u64 = 1 << 62;

/// Reads which of the online CPUs and nodes this process may use, and its memory and CPU time limits.
pub(super) fn read_allowed_resources(reader: &KernelFileReader<'_>, cpus: &IdSet, nodes: &IdSet) -> AllowedResources {
    let status = reader.read_values_of_keys(STATUS_PATH, ["Cpus_allowed_list", "Mems_allowed_list"]);
    let [may_run, may_take] = reader.value_or_add_missing_note(status, "everything is allowed").unwrap_or_default();
    let limits = read_cgroup_limits(reader);
    AllowedResources {
        cpus: parse_allowed_ids(reader, may_run, "Cpus_allowed_list", "CPU", cpus),
        nodes: parse_allowed_ids(reader, may_take, "Mems_allowed_list", "node", nodes),
        memory_limit_bytes: limits.memory_bytes,
        cpu_time_limit_cpus: limits.cpu_time_cpus,
    }
}

fn parse_allowed_ids(
    reader: &KernelFileReader<'_>,
    text: Option<String>,
    key: &str,
    what: &str,
    online: &IdSet,
) -> IdSet {
    let instead = format!("assuming that every {what} is allowed");
    let Some(text) = text else {
        reader.add_missing_note(format!("{STATUS_PATH} has no {key}: {instead}"));
        return online.clone();
    };
    let usable = parse_id_list(STATUS_PATH, &text).and_then(|allowed| {
        let usable = allowed.intersection(online);
        match usable.is_empty() {
            true => Err(malformed_content_error(
                STATUS_PATH,
                format!("{key} '{allowed}' names no {what} that is online ({online})"),
            )),
            false => Ok(Some(usable)),
        }
    });
    reader.value_or_add_missing_note(usable, &instead).unwrap_or_else(|| online.clone())
}

/// The tightest memory and CPU time limits over all control groups of the process.
#[derive(Debug, Default)]
struct CgroupLimits {
    memory_bytes: Option<u64>,
    cpu_time_cpus: Option<f64>,
}

impl CgroupLimits {
    fn tighten_memory(&mut self, bytes: u64) {
        self.memory_bytes = Some(self.memory_bytes.map_or(bytes, |least| least.min(bytes)));
    }

    fn tighten_cpu_time(&mut self, cpus: f64) {
        self.cpu_time_cpus = Some(self.cpu_time_cpus.map_or(cpus, |least| least.min(cpus)));
    }
}

/// A mounted control group hierarchy, and the folders from this process's group up to the mount point.
struct CgroupHierarchy {
    is_version_2: bool,
    mount_options: String,
    folders: Vec<String>,
}

fn read_cgroup_limits(reader: &KernelFileReader<'_>) -> CgroupLimits {
    let mut limits = CgroupLimits::default();
    const INSTEAD: &str = "limits of control groups are unknown";
    let Some(groups) = reader.value_or_add_missing_note(reader.read_text(CGROUP_PATH), INSTEAD) else {
        reader.add_missing_note(format!("{CGROUP_PATH} cannot be read: {INSTEAD}"));
        return limits;
    };
    let mounts = reader.read_lines_containing(MOUNTINFO_PATH, " - cgroup").map(Some);
    let mounts = reader.value_or_add_missing_note(mounts, INSTEAD).unwrap_or_default();
    let below_root = groups.lines().any(|line| line.rsplit(':').next().is_some_and(|path| path != "/"));
    if mounts.is_empty() && below_root {
        reader.add_missing_note(format!("{MOUNTINFO_PATH} shows no control groups: their limits are unknown"));
    }
    for hierarchy in mounts.iter().filter_map(|mount| parse_hierarchy(mount, &groups)) {
        let has = |name: &str| hierarchy.mount_options.split(',').any(|option| option == name);
        for folder in &hierarchy.folders {
            let (mut memory, mut cpu_time) = (Vec::new(), Vec::new());
            if hierarchy.is_version_2 {
                memory.push(read_version_2_memory_limit(reader, folder));
                cpu_time.push(read_version_2_cpu_limit(reader, folder));
            }
            if has("memory") {
                memory.push(read_version_1_memory_limit(reader, folder));
            }
            if has("cpu") {
                cpu_time.push(read_version_1_cpu_limit(reader, folder));
            }
            let instead = "this limit is unknown";
            memory
                .into_iter()
                .filter_map(|read| reader.value_or_add_missing_note(read, instead))
                .for_each(|n| limits.tighten_memory(n));
            cpu_time
                .into_iter()
                .filter_map(|read| reader.value_or_add_missing_note(read, instead))
                .for_each(|n| limits.tighten_cpu_time(n));
        }
    }
    limits
}

fn read_version_2_memory_limit(reader: &KernelFileReader<'_>, folder: &str) -> Result<Option<u64>, Error> {
    let path = format!("{folder}/memory.max");
    reader.read_text(&path)?.filter(|text| text != "max").map(|text| parse_number(&path, &text)).transpose()
}

fn read_version_2_cpu_limit(reader: &KernelFileReader<'_>, folder: &str) -> Result<Option<f64>, Error> {
    let path = format!("{folder}/cpu.max");
    let Some(text) = reader.read_text(&path)? else { return Ok(None) };
    let (quota, period) = text
        .split_once(' ')
        .ok_or_else(|| malformed_content_error(&path, format!("'{text}' is not a quota and a period")))?;
    match quota {
        "max" => Ok(None),
        _ => quota_cpus(&path, parse_number(&path, quota)?, parse_number(&path, period)?).map(Some),
    }
}

fn read_version_1_memory_limit(reader: &KernelFileReader<'_>, folder: &str) -> Result<Option<u64>, Error> {
    let bytes: Option<u64> = reader.read_number(&format!("{folder}/memory.limit_in_bytes"))?;
    Ok(bytes.filter(|bytes| *bytes < CGROUP_V1_UNLIMITED_BYTES))
}

fn read_version_1_cpu_limit(reader: &KernelFileReader<'_>, folder: &str) -> Result<Option<f64>, Error> {
    let path = format!("{folder}/cpu.cfs_period_us");
    let quota: Option<i64> = reader.read_number(&format!("{folder}/cpu.cfs_quota_us"))?;
    // A quota of -1 means no limit.
    match (quota.and_then(|q| u64::try_from(q).ok()), reader.read_number(&path)?) {
        (Some(quota), Some(period)) => quota_cpus(&path, quota, period).map(Some),
        _ => Ok(None),
    }
}

fn quota_cpus(path: &str, quota: u64, period: u64) -> Result<f64, Error> {
    if period == 0 {
        return Err(malformed_content_error(path, "a period of 0"));
    }
    Ok(quota as f64 / period as f64)
}

/// Parses `mount`, a line of `mountinfo` (proc_pid_mountinfo(5)), as a control group hierarchy, and finds this
/// process's control group in that hierarchy. `groups` is the text of `/proc/self/cgroup`. `None` if the line is
/// malformed or the process has no control group in the hierarchy.
fn parse_hierarchy(mount: &str, groups: &str) -> Option<CgroupHierarchy> {
    let (place, system) = mount.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (place.next()?, place.next()?);
    let mut system = system.split(' ');
    let (version_2, options) = (system.next()? == "cgroup2", system.nth(1)?);
    // `0::/path` in version 2, `4:cpu,cpuacct:/path` in version 1.
    let group = groups.lines().find_map(|line| {
        let (_, line) = line.split_once(':')?;
        let (controllers, path) = line.split_once(':')?;
        let mut controllers = controllers.split(',');
        let ours = controllers.clone().any(|name| options.split(',').any(|option| option == name));
        (if version_2 { controllers.next() == Some("") } else { ours }).then_some(path)
    })?;
    // The mount may show a group inside the hierarchy. A group outside of it (`/..`) is visible as the mount point
    // itself.
    let group = if root == "/" { group } else { group.strip_prefix(root).unwrap_or("") };
    let mut names: Vec<&str> = group.split('/').filter(|name| !name.is_empty()).collect();
    if names.contains(&"..") {
        names.clear();
    }
    let folder = |depth: usize| [&[point.trim_end_matches('/')], &names[..depth]].concat().join("/");
    Some(CgroupHierarchy {
        is_version_2: version_2,
        mount_options: options.to_owned(),
        folders: (0..=names.len()).rev().map(folder).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn groups_are_walked_up_to_their_mount() {
        let folders = |mount: &str, groups: &str| parse_hierarchy(mount, groups).map(|found| found.folders);
        let user = ["/sys/fs/cgroup/user/job", "/sys/fs/cgroup/user", "/sys/fs/cgroup"].map(str::to_owned).to_vec();
        assert_eq!(folders(V2, "0::/user/job"), Some(user));
        assert_eq!(folders(V2, "0::/"), Some(vec!["/sys/fs/cgroup".to_owned()]));
        // In a cgroup namespace the process's group may be outside of the visible hierarchy.
        assert_eq!(folders(V2, "0::/../other"), Some(vec!["/sys/fs/cgroup".to_owned()]));
        // A container without a cgroup namespace: the container's own group is mounted.
        let bound = "30 23 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw";
        let job = ["/sys/fs/cgroup/job", "/sys/fs/cgroup"].map(str::to_owned).to_vec();
        assert_eq!(folders(bound, "0::/docker/x/job"), Some(job));
        // Version 1: the hierarchy with the controller is used.
        let cpu = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct";
        let groups = "4:memory:/m\n1:cpu,cpuacct:/c\n0::/";
        let own = ["/sys/fs/cgroup/cpu,cpuacct/c", "/sys/fs/cgroup/cpu,cpuacct"].map(str::to_owned).to_vec();
        assert_eq!(folders(cpu, groups), Some(own));
        assert_eq!(folders(cpu, "0::/"), None);
        assert_eq!(folders("nonsense", groups), None);
    }
}
