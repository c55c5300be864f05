//! What a process may use: its affinity, its cpuset, and the limits of its control groups.

use crate::IdSet;
use crate::topology::tree::{Reader, content, list, parse};
use crate::topology::{Allowed, Error};

const STATUS: &str = "/proc/self/status";
const GROUPS: &str = "/proc/self/cgroup";
const MOUNTS: &str = "/proc/self/mountinfo";

/// Version 1 writes no limit as the largest multiple of a page that it can hold.
const NO_LIMIT: u64 = 1 << 62;

/// What this process may use of the CPUs and nodes that are online.
pub fn allowed(reader: &Reader<'_>, cpus: &IdSet, nodes: &IdSet) -> Result<Allowed, Error> {
    let [may_run, may_take] =
        reader.values(STATUS, ["Cpus_allowed_list", "Mems_allowed_list"])?.unwrap_or_default();
    let limits = limits(reader)?;
    Ok(Allowed {
        cpus: within(reader, may_run, "Cpus_allowed_list", "CPU", cpus)?,
        nodes: within(reader, may_take, "Mems_allowed_list", "node", nodes)?,
        memory: limits.memory,
        cpu_time: limits.cpu_time,
    })
}

fn within(
    reader: &Reader<'_>,
    text: Option<String>,
    key: &str,
    what: &str,
    online: &IdSet,
) -> Result<IdSet, Error> {
    let Some(text) = text else {
        reader.miss(format!("{STATUS} has no {key}: every {what} is taken as allowed"));
        return Ok(online.clone());
    };
    let allowed = list(STATUS, &text)?;
    let usable = allowed.and(online);
    if usable.is_empty() {
        return Err(content(STATUS, format!("{key} '{allowed}' names no {what} that is online ({online})")));
    }
    Ok(usable)
}

/// The tightest limits of a process's control groups.
#[derive(Debug, Default)]
struct Limits {
    memory: Option<u64>,
    cpu_time: Option<f64>,
}

impl Limits {
    fn memory(&mut self, bytes: u64) {
        self.memory = Some(self.memory.map_or(bytes, |least| least.min(bytes)));
    }

    fn cpu_time(&mut self, cpus: f64) {
        self.cpu_time = Some(self.cpu_time.map_or(cpus, |least| least.min(cpus)));
    }
}

/// A mounted hierarchy of control groups, and the folders from this process's group up to the mount.
struct Hierarchy {
    version_2: bool,
    options: String,
    folders: Vec<String>,
}

fn limits(reader: &Reader<'_>) -> Result<Limits, Error> {
    let mut limits = Limits::default();
    let Some(groups) = reader.text(GROUPS)? else {
        reader.miss(format!("{GROUPS} cannot be read: limits of control groups are unknown"));
        return Ok(limits);
    };
    let mounts = reader.lines_with(MOUNTS, " - cgroup")?;
    let below_root = groups.lines().any(|line| line.rsplit(':').next().is_some_and(|path| path != "/"));
    if mounts.is_empty() && below_root {
        reader.miss(format!("{MOUNTS} shows no control groups: their limits are unknown"));
    }
    for hierarchy in mounts.iter().filter_map(|mount| hierarchy(mount, &groups)) {
        let has = |name: &str| hierarchy.options.split(',').any(|option| option == name);
        for folder in &hierarchy.folders {
            if hierarchy.version_2 {
                version_2(reader, folder, &mut limits)?;
            }
            if has("memory") {
                version_1_memory(reader, folder, &mut limits)?;
            }
            if has("cpu") {
                version_1_cpu(reader, folder, &mut limits)?;
            }
        }
    }
    Ok(limits)
}

fn version_2(reader: &Reader<'_>, folder: &str, limits: &mut Limits) -> Result<(), Error> {
    let path = format!("{folder}/memory.max");
    if let Some(text) = reader.text(&path)?.filter(|text| text != "max") {
        limits.memory(parse(&path, &text)?);
    }
    let path = format!("{folder}/cpu.max");
    if let Some(text) = reader.text(&path)? {
        let (quota, period) =
            text.split_once(' ').ok_or_else(|| content(&path, format!("'{text}' is no quota and period")))?;
        if quota != "max" {
            limits.cpu_time(share(&path, parse(&path, quota)?, parse(&path, period)?)?);
        }
    }
    Ok(())
}

fn version_1_memory(reader: &Reader<'_>, folder: &str, limits: &mut Limits) -> Result<(), Error> {
    let bytes: Option<u64> = reader.number(&format!("{folder}/memory.limit_in_bytes"))?;
    if let Some(bytes) = bytes.filter(|bytes| *bytes < NO_LIMIT) {
        limits.memory(bytes);
    }
    Ok(())
}

fn version_1_cpu(reader: &Reader<'_>, folder: &str, limits: &mut Limits) -> Result<(), Error> {
    let path = format!("{folder}/cpu.cfs_period_us");
    let quota: Option<i64> = reader.number(&format!("{folder}/cpu.cfs_quota_us"))?;
    // A quota of -1 is no limit.
    if let (Some(quota), Some(period)) = (quota.and_then(|q| u64::try_from(q).ok()), reader.number(&path)?) {
        limits.cpu_time(share(&path, quota, period)?);
    }
    Ok(())
}

fn share(path: &str, quota: u64, period: u64) -> Result<f64, Error> {
    if period == 0 {
        return Err(content(path, "a period of 0"));
    }
    Ok(quota as f64 / period as f64)
}

/// One line of `mountinfo` (`proc_pid_mountinfo(5)`) together with the group that this process has there.
fn hierarchy(mount: &str, groups: &str) -> Option<Hierarchy> {
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
    // A mount may show a group within the hierarchy; one outside of it (`/..`) is seen through the mount itself.
    let group = if root == "/" { group } else { group.strip_prefix(root).unwrap_or("") };
    let mut names: Vec<&str> = group.split('/').filter(|name| !name.is_empty()).collect();
    if names.contains(&"..") {
        names.clear();
    }
    let folder = |depth: usize| [&[point.trim_end_matches('/')], &names[..depth]].concat().join("/");
    Some(Hierarchy {
        version_2,
        options: options.to_owned(),
        folders: (0..=names.len()).rev().map(folder).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";

    #[test]
    fn groups_are_walked_up_to_their_mount() {
        let folders = |mount: &str, groups: &str| hierarchy(mount, groups).map(|found| found.folders);
        let user =
            ["/sys/fs/cgroup/user/job", "/sys/fs/cgroup/user", "/sys/fs/cgroup"].map(str::to_owned).to_vec();
        assert_eq!(folders(V2, "0::/user/job"), Some(user));
        assert_eq!(folders(V2, "0::/"), Some(vec!["/sys/fs/cgroup".to_owned()]));
        // In a namespace of its own a process may be above what it sees.
        assert_eq!(folders(V2, "0::/../other"), Some(vec!["/sys/fs/cgroup".to_owned()]));
        // A container without such a namespace: its own group is what is mounted.
        let bound = "30 23 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw";
        let job = ["/sys/fs/cgroup/job", "/sys/fs/cgroup"].map(str::to_owned).to_vec();
        assert_eq!(folders(bound, "0::/docker/x/job"), Some(job));
        // Version 1: the hierarchy that has the controller.
        let cpu = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct";
        let groups = "4:memory:/m\n1:cpu,cpuacct:/c\n0::/";
        let own = ["/sys/fs/cgroup/cpu,cpuacct/c", "/sys/fs/cgroup/cpu,cpuacct"].map(str::to_owned).to_vec();
        assert_eq!(folders(cpu, groups), Some(own));
        assert_eq!(folders(cpu, "0::/"), None);
        assert_eq!(folders("nonsense", groups), None);
    }
}
