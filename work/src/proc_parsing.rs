//! Parses files of `/proc` that several modules read.

use std::collections::BTreeMap;

/// Returns the fields of a `stat` file (proc_pid_stat(5)) after the command name, which may contain spaces. The first
/// returned field is field 3, the state.
pub fn stat_fields_after_name(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit(')').next().unwrap_or_default().split_whitespace()
}

/// Parses the peak resident memory in bytes (`VmHWM`) from a `status` file (proc_pid_status(5)).
pub(crate) fn parse_peak_resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Parses the resident bytes by node from one line of a `numa_maps` file (numa(7)), such as `7f00 interleave:0-1 anon=8
/// dirty=8 N0=4 N1=4 kernelpagesize_kB=4`.
pub fn parse_resident_bytes_by_node(range: &str) -> BTreeMap<u32, u64> {
    let mut by_node = BTreeMap::new();
    let mut page_kib = 4;
    for (name, number) in range.split_whitespace().filter_map(|word| word.split_once('=')) {
        let Ok(number) = number.parse::<u64>() else { continue };
        if name == "kernelpagesize_kB" {
            page_kib = number;
        } else if let Some(Ok(node)) = name.strip_prefix('N').map(str::parse) {
            by_node.insert(node, number);
        }
    }
    by_node.values_mut().for_each(|pages| *pages *= page_kib * 1024);
    by_node
}
