//! Reads NUMA nodes from sysfs: CPUs, memory, distances, huge page pools, and latency and bandwidth according to
//! firmware.

use std::collections::BTreeMap;

use crate::IdSet;
use crate::topology::file_tree::{RecordingReader, malformed_content_error, parse_kernel_size, parse_number};
use crate::topology::{Error, FirmwareMemoryPerformance, HugePagePool, NumaNode};

const NODE_FOLDER: &str = "/sys/devices/system/node";

/// Distance of a node to itself and to others if firmware gives none (`include/linux/topology.h`).
const DEFAULT_LOCAL_DISTANCE: u32 = 10;
const DEFAULT_REMOTE_DISTANCE: u32 = 20;

/// Reads the numbers of the online nodes. `None` if the system shows no nodes.
pub(super) fn read_node_ids(reader: &RecordingReader<'_>) -> Result<Option<IdSet>, Error> {
    let path = format!("{NODE_FOLDER}/online");
    if let Some(ids) = reader.read_id_list(&path)? {
        if ids.is_empty() {
            return Err(malformed_content_error(&path, "no node is online"));
        }
        return Ok(Some(ids));
    }
    let names = reader.list_folder(NODE_FOLDER)?;
    let ids: IdSet = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
    if ids.is_empty() {
        reader.note_missing(format!(
            "{NODE_FOLDER} does not exist (a kernel without NUMA, or a container that hides it): assuming one node 0 with all CPUs and \
             all memory"
        ));
        return Ok(None);
    }
    reader.note_missing(format!("{path} cannot be read: using the node folders next to it, {ids}"));
    Ok(Some(ids))
}

/// Reads each node's CPU list. `None` for a node without a list, which is allowed only if it is the only node.
pub(crate) fn read_cpu_lists(
    reader: &RecordingReader<'_>,
    ids: &IdSet,
    has_node_folders: bool,
) -> Result<BTreeMap<u32, Option<IdSet>>, Error> {
    let mut lists = BTreeMap::new();
    let mut owners: BTreeMap<u32, u32> = BTreeMap::new();
    for id in ids.iter() {
        let path = format!("{NODE_FOLDER}/node{id}/cpulist");
        let list = if has_node_folders { reader.read_id_list(&path)? } else { None };
        match &list {
            None if ids.len() > 1 => {
                return Err(malformed_content_error(
                    &path,
                    format!("cannot be read, and no other file lists the CPUs of node {id}"),
                ));
            }
            None if has_node_folders => {
                reader.note_missing(format!("{path} cannot be read: assuming that all CPUs belong to node {id}"))
            }
            _ => (),
        }
        for cpu in list.iter().flat_map(IdSet::iter) {
            if let Some(other) = owners.insert(cpu, id) {
                return Err(malformed_content_error(&path, format!("CPU {cpu} is also in node {other}")));
            }
        }
        lists.insert(id, list);
    }
    Ok(lists)
}

/// Assigns every online CPU to its node. Fails if an online CPU is in no node's list.
pub(super) fn assign_cpus_to_nodes(
    reader: &RecordingReader<'_>,
    lists: BTreeMap<u32, Option<IdSet>>,
    online: &IdSet,
) -> Result<BTreeMap<u32, IdSet>, Error> {
    let mut cpus_by_node = BTreeMap::new();
    let mut unassigned = online.clone();
    for (id, list) in lists {
        let list = list.unwrap_or_else(|| online.clone());
        // Container file systems such as lxcfs show fewer online CPUs than the nodes list.
        let beyond = list.difference(online);
        if !beyond.is_empty() {
            reader.note_missing(format!(
                "node {id} lists CPUs {beyond} that /sys/devices/system/cpu/online does not: they are left out"
            ));
        }
        unassigned = unassigned.difference(&list);
        cpus_by_node.insert(id, list.intersection(online));
    }
    if !unassigned.is_empty() {
        return Err(malformed_content_error(
            "/sys/devices/system/cpu/online",
            format!("CPUs {unassigned} are in no node's cpulist"),
        ));
    }
    Ok(cpus_by_node)
}

/// Reads all nodes.
pub(super) fn read_nodes(
    reader: &RecordingReader<'_>,
    ids: &IdSet,
    has_node_folders: bool,
    cpus: &BTreeMap<u32, IdSet>,
) -> Result<Vec<NumaNode>, Error> {
    let mut nodes = Vec::new();
    for id in ids.iter() {
        let folder = format!("{NODE_FOLDER}/node{id}");
        let pools =
            if has_node_folders { format!("{folder}/hugepages") } else { "/sys/kernel/mm/hugepages".to_owned() };
        nodes.push(NumaNode {
            id,
            cpus: cpus[&id].clone(),
            memory_bytes: 0,
            free_bytes: 0,
            distances: BTreeMap::new(),
            huge_pages: read_huge_page_pools(reader, &pools)?,
            access: if has_node_folders { read_memory_access(reader, &folder)? } else { Vec::new() },
        });
    }
    read_node_memory(reader, &mut nodes, has_node_folders)?;
    read_distances(reader, &mut nodes, has_node_folders)?;
    Ok(nodes)
}

/// Reads total and free bytes from a file such as `/proc/meminfo`.
fn read_total_and_free_bytes(reader: &RecordingReader<'_>, path: &str) -> Result<Option<(u64, u64)>, Error> {
    let Some([total, free]) = reader.read_values(path, ["MemTotal", "MemFree"])? else { return Ok(None) };
    let read = |value: Option<String>, key| match value {
        Some(value) => parse_kernel_size(path, &value),
        None => Err(malformed_content_error(path, format!("line {key} is missing"))),
    };
    let (total, free) = (read(total, "MemTotal")?, read(free, "MemFree")?);
    if free > total {
        return Err(malformed_content_error(
            path,
            format!("free memory ({free} bytes) exceeds total memory ({total} bytes)"),
        ));
    }
    Ok(Some((total, free)))
}

fn read_node_memory(reader: &RecordingReader<'_>, nodes: &mut [NumaNode], has_node_folders: bool) -> Result<(), Error> {
    const SYSTEM: &str = "/proc/meminfo";
    let system = read_total_and_free_bytes(reader, SYSTEM)?;
    let alone = nodes.len() == 1;
    for node in nodes.iter_mut() {
        let path = format!("{NODE_FOLDER}/node{}/meminfo", node.id);
        let own = if has_node_folders { read_total_and_free_bytes(reader, &path)? } else { None };
        (node.memory_bytes, node.free_bytes) = match (own, system) {
            (Some(own), _) => own,
            (None, Some(system)) if alone => {
                if has_node_folders {
                    reader.note_missing(format!("{path} cannot be read: using {SYSTEM}"));
                }
                system
            }
            (None, _) if has_node_folders => {
                return Err(malformed_content_error(
                    &path,
                    format!("cannot be read, and no other file has the memory size of node {}", node.id),
                ));
            }
            (None, _) => {
                return Err(malformed_content_error(SYSTEM, "cannot be read, and no other file has the memory size"));
            }
        };
    }
    // Kernels that initialise memory when it is first used report less memory for a node than it has.
    let sum: u64 = nodes.iter().map(|node| node.memory_bytes).sum();
    if let Some((total, free)) = system
        && total - total / 64 > sum
    {
        let mismatch = format!("the nodes' meminfo adds up to {} MiB, but {SYSTEM} has {} MiB", sum >> 20, total >> 20);
        match nodes {
            [node] => {
                (node.memory_bytes, node.free_bytes) = (total, free);
                reader.note_missing(format!("{mismatch}: using the latter"));
            }
            _ => reader.note_missing(format!("{mismatch}: which node has the rest is unknown")),
        }
    }
    Ok(())
}

fn read_distances(reader: &RecordingReader<'_>, nodes: &mut [NumaNode], has_node_folders: bool) -> Result<(), Error> {
    let ids: Vec<u32> = nodes.iter().map(|node| node.id).collect();
    let mut without = IdSet::new();
    for node in nodes.iter_mut() {
        let path = format!("{NODE_FOLDER}/node{}/distance", node.id);
        let row = match reader.read_text(&path)?.filter(|_| has_node_folders) {
            Some(text) => {
                text.split_whitespace().map(|word| parse_number(&path, word)).collect::<Result<Vec<u32>, _>>()?
            }
            None => {
                without.insert(node.id);
                ids.iter()
                    .map(|id| if *id == node.id { DEFAULT_LOCAL_DISTANCE } else { DEFAULT_REMOTE_DISTANCE })
                    .collect()
            }
        };
        if row.len() != ids.len() {
            return Err(malformed_content_error(
                &path,
                format!("a row of length {}, but {} nodes are online", row.len(), ids.len()),
            ));
        }
        node.distances = ids.iter().copied().zip(row).collect();
    }
    if has_node_folders && !without.is_empty() {
        reader.note_missing(format!(
            "nodes {without} have no file 'distance': {DEFAULT_LOCAL_DISTANCE} to themselves and {DEFAULT_REMOTE_DISTANCE} to others are assumed"
        ));
    }
    Ok(())
}

fn read_huge_page_pools(reader: &RecordingReader<'_>, folder: &str) -> Result<Vec<HugePagePool>, Error> {
    let mut pools = Vec::new();
    for name in reader.list_folder(folder)? {
        let Some(size) = name.strip_prefix("hugepages-") else { continue };
        let path = format!("{folder}/{name}");
        let total = reader.read_number(&format!("{path}/nr_hugepages"))?;
        let free = reader.read_number(&format!("{path}/free_hugepages"))?;
        if let (Some(total), Some(free)) = (total, free) {
            pools.push(HugePagePool {
                page_bytes: parse_kernel_size(&path, size)?,
                total_pages: total,
                free_pages: free,
            });
        }
    }
    pools.sort_by_key(|pool| pool.page_bytes);
    Ok(pools)
}

/// Reads `access0` and `access1` of a node (`Documentation/admin-guide/mm/numaperf.rst`).
fn read_memory_access(reader: &RecordingReader<'_>, folder: &str) -> Result<Vec<FirmwareMemoryPerformance>, Error> {
    let mut found = Vec::new();
    for class in 0..=1 {
        let folder = format!("{folder}/access{class}/initiators");
        let names = reader.list_folder(&folder)?;
        if names.is_empty() {
            continue;
        }
        let number = |name: &str| reader.read_number(&format!("{folder}/{name}"));
        found.push(FirmwareMemoryPerformance {
            initiator_class: class,
            initiators: names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect(),
            read_latency_ns: number("read_latency")?,
            write_latency_ns: number("write_latency")?,
            read_bandwidth_mbs: number("read_bandwidth")?,
            write_bandwidth_mbs: number("write_bandwidth")?,
        });
    }
    Ok(found)
}
