//! Reads NUMA nodes from sysfs: CPUs, memory, distances, huge page pools, and latency and bandwidth according to
//! firmware.

use std::collections::BTreeMap;

use crate::IdSet;
use crate::topology::file_tree::{KernelFileReader, malformed_content_error, parse_byte_count, parse_number};
use crate::topology::{Error, FirmwareMemoryPerformance, HugePagePool, NumaNode};

const NODE_FOLDER: &str = "/sys/devices/system/node";

/// Distance of a node to itself if firmware reports none (`LOCAL_DISTANCE` in `include/linux/topology.h`).
const DEFAULT_LOCAL_DISTANCE: u32 = 10;
/// Distance of a node to any other node if firmware reports none (`REMOTE_DISTANCE` in `include/linux/topology.h`).
const DEFAULT_REMOTE_DISTANCE: u32 = 20;

/// Reads the numbers of the online nodes. `None` if the system shows no nodes.
pub(super) fn read_node_ids(reader: &KernelFileReader<'_>) -> Option<IdSet> {
    let path = format!("{NODE_FOLDER}/online");
    let listed = reader.read_id_list(&path).and_then(|listed| match listed {
        Some(ids) if ids.is_empty() => Err(malformed_content_error(&path, "no node is online")),
        listed => Ok(listed),
    });
    if let Some(ids) = reader.value_or_add_missing_note(listed, "the nodes are found otherwise") {
        return Some(ids);
    }
    let names = reader.value_or_add_missing_note(
        reader.list_folder(NODE_FOLDER).map(Some),
        "assuming that there are no node folders",
    );
    let names = names.unwrap_or_default();
    let ids: IdSet = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
    if ids.is_empty() {
        reader.add_missing_note(format!(
            "{NODE_FOLDER} does not exist (a kernel without NUMA, or a container that hides it): assuming one node 0 with all CPUs and \
             all memory"
        ));
        return None;
    }
    reader.add_missing_note(format!("{path} cannot be read: using the node folders next to it, {ids}"));
    Some(ids)
}

/// Reads each node's CPU list. `None` for a node whose list is unknown. A CPU in the lists of several nodes is kept in
/// the first of these lists only, and the other nodes keep their numbers and their memory.
pub(super) fn read_cpu_lists_of_nodes(
    reader: &KernelFileReader<'_>,
    ids: &IdSet,
    has_node_folders: bool,
) -> BTreeMap<u32, Option<IdSet>> {
    let mut lists: BTreeMap<u32, Option<IdSet>> = BTreeMap::new();
    for id in ids.iter() {
        let path = format!("{NODE_FOLDER}/node{id}/cpulist");
        let instead = match ids.len() {
            1 => format!("assuming that all CPUs belong to node {id}"),
            _ => format!("assuming that the CPUs that no other node lists belong to node {id}"),
        };
        let mut list = None;
        if has_node_folders {
            match reader.read_id_list(&path) {
                Ok(None) => reader.add_missing_note(format!("{path} cannot be read: {instead}")),
                read => list = reader.value_or_add_missing_note(read, &instead),
            }
        }
        for (other, taken) in lists.iter().filter_map(|(other, taken)| Some((other, taken.as_ref()?))) {
            let shared = list.as_ref().map(|list| list.intersection(taken)).unwrap_or_default();
            if !shared.is_empty() {
                reader.add_missing_note(format!(
                    "{path}: CPUs {shared} are also in node {other}: assuming that they belong to node {other} only"
                ));
                list = list.map(|list| list.difference(&shared));
            }
        }
        lists.insert(id, list);
    }
    lists
}

/// Assigns every online CPU to a node: to the one that lists it, else to the first node whose list is unknown, else to
/// a node with CPUs of the same package, else to the first node with CPUs.
pub(super) fn assign_cpus_to_nodes(
    reader: &KernelFileReader<'_>,
    lists: BTreeMap<u32, Option<IdSet>>,
    online: &IdSet,
) -> BTreeMap<u32, IdSet> {
    let mut cpus_by_node: BTreeMap<u32, IdSet> = BTreeMap::new();
    let mut unassigned = online.clone();
    let unlisted = lists.iter().find(|(_, list)| list.is_none()).map(|(id, _)| *id);
    for (id, list) in lists {
        let list = list.unwrap_or_default();
        // Container file systems such as lxcfs show fewer online CPUs than the nodes list.
        let beyond = list.difference(online);
        if !beyond.is_empty() {
            reader.add_missing_note(format!(
                "node {id} lists CPUs {beyond} that /sys/devices/system/cpu/online does not: they are left out"
            ));
        }
        unassigned = unassigned.difference(&list);
        cpus_by_node.insert(id, list.intersection(online));
    }
    if unassigned.is_empty() {
        return cpus_by_node;
    }
    let listed = cpus_by_node.clone();
    let first = listed.iter().find(|(_, cpus)| !cpus.is_empty()).or(listed.first_key_value()).map_or(0, |(id, _)| *id);
    let mut added: BTreeMap<u32, IdSet> = BTreeMap::new();
    for cpu in unassigned.iter() {
        let node = unlisted.or_else(|| node_of_package(reader, &listed, cpu)).unwrap_or(first);
        added.entry(node).or_default().insert(cpu);
    }
    for (id, cpus) in added {
        if unlisted.is_none() {
            reader.add_missing_note(format!(
                "/sys/devices/system/cpu/online: CPUs {cpus} are in no node's cpulist: assuming that they belong to node {id}"
            ));
        }
        let own = cpus_by_node.entry(id).or_default();
        cpus.iter().for_each(|cpu| own.insert(cpu));
    }
    cpus_by_node
}

/// The first node with a CPU of the same package as CPU `cpu`.
fn node_of_package(reader: &KernelFileReader<'_>, listed: &BTreeMap<u32, IdSet>, cpu: u32) -> Option<u32> {
    // Notes about numbers that make no sense are made where all CPUs are read.
    let package = |cpu| super::cpus::read_cpu_package(reader, cpu).ok().flatten();
    let own = package(cpu)?;
    listed.iter().find(|(_, cpus)| cpus.iter().any(|other| package(other) == Some(own))).map(|(id, _)| *id)
}

/// Nodes whose memory belongs to a GPU, according to the driver of the GPUs: on some machines (POWER9 with V100, GH200)
/// the kernel manages that memory as a node.
pub(super) fn read_gpu_memory_nodes(reader: &KernelFileReader<'_>) -> IdSet {
    const GPUS: &str = "/proc/driver/nvidia/gpus";
    let instead = "assuming that this GPU's memory is no node";
    let gpus = reader.value_or_add_missing_note(reader.list_folder(GPUS).map(Some), instead).unwrap_or_default();
    let status = |gpu: &String| {
        let path = format!("{GPUS}/{gpu}/numa_status");
        let [node] = reader.value_or_add_missing_note(reader.read_values_of_keys(&path, ["Node"]), instead)?;
        // A negative number, or a word, means that the memory is not a node.
        node?.parse().ok()
    };
    gpus.iter().filter_map(status).collect()
}

/// Reads memory, huge page pools, distances, and latency and bandwidth according to firmware of the nodes `ids`. `cpus`
/// has the CPUs of each node.
pub(super) fn read_nodes(
    reader: &KernelFileReader<'_>,
    ids: &IdSet,
    has_node_folders: bool,
    cpus: &BTreeMap<u32, IdSet>,
) -> Result<Vec<NumaNode>, Error> {
    let mut nodes = Vec::new();
    let of_gpus = read_gpu_memory_nodes(reader);
    for id in ids.iter() {
        let folder = format!("{NODE_FOLDER}/node{id}");
        let pools =
            if has_node_folders { format!("{folder}/hugepages") } else { "/sys/kernel/mm/hugepages".to_owned() };
        nodes.push(NumaNode {
            id,
            cpus: cpus[&id].clone(),
            memory_bytes: 0,
            free_bytes: 0,
            is_gpu_memory: of_gpus.contains(id) && cpus[&id].is_empty(),
            distances: BTreeMap::new(),
            huge_pages: read_huge_page_pools(reader, &pools),
            access: if has_node_folders { read_memory_access(reader, &folder) } else { Vec::new() },
        });
    }
    read_node_memory(reader, &mut nodes, has_node_folders)?;
    read_distances(reader, &mut nodes, has_node_folders);
    Ok(nodes)
}

/// Reads total and free bytes from a file such as `/proc/meminfo`.
fn read_total_and_free_bytes(reader: &KernelFileReader<'_>, path: &str) -> Result<Option<(u64, u64)>, Error> {
    let Some([total, free]) = reader.read_values_of_keys(path, ["MemTotal", "MemFree"])? else { return Ok(None) };
    let read = |value: Option<String>, key| match value {
        Some(value) => parse_byte_count(path, &value),
        None => Err(malformed_content_error(path, format!("line {key} is missing"))),
    };
    let (total, free) = (read(total, "MemTotal")?, read(free, "MemFree")?);
    if free > total {
        reader.add_missing_note(format!(
            "{path}: free memory ({free} bytes) exceeds total memory ({total} bytes): assuming that all of it is free"
        ));
    }
    Ok(Some((total, free.min(total))))
}

/// Reads total and free memory of all nodes. If one node has no usable file, its memory is the system's memory minus
/// that of all other nodes. If several nodes have no usable file, they are assumed to have no memory; if no node has a
/// usable file, the first node is assumed to have all memory. The only node of a machine gets the system's memory if
/// its file has less by more than 1/64.
fn read_node_memory(
    reader: &KernelFileReader<'_>,
    nodes: &mut [NumaNode],
    has_node_folders: bool,
) -> Result<(), Error> {
    const SYSTEM: &str = "/proc/meminfo";
    let system = read_total_and_free_bytes(reader, SYSTEM);
    let system = reader.value_or_add_missing_note(system, "the memory size of the machine is unknown");
    let mut unknown = Vec::new();
    for (i, node) in nodes.iter_mut().enumerate() {
        let path = format!("{NODE_FOLDER}/node{}/meminfo", node.id);
        let own = if has_node_folders { read_total_and_free_bytes(reader, &path) } else { Ok(None) };
        match reader.value_or_add_missing_note(own, "its memory size is found otherwise") {
            Some(own) => (node.memory_bytes, node.free_bytes) = own,
            None => unknown.push(i),
        }
    }
    let (known, known_free) =
        nodes.iter().fold((0, 0), |(total, free), node| (total + node.memory_bytes, free + node.free_bytes));
    match (&unknown[..], system) {
        ([], _) => (),
        (_, None) if known == 0 => {
            return Err(malformed_content_error(SYSTEM, "cannot be read, and no other file has the memory size"));
        }
        ([only], Some((total, free))) => {
            let node = &mut nodes[*only];
            let rest = total.saturating_sub(known);
            (node.memory_bytes, node.free_bytes) = (rest, free.saturating_sub(known_free).min(rest));
            if has_node_folders {
                let path = format!("{NODE_FOLDER}/node{}/meminfo", node.id);
                let others = if known > 0 { ", without the memory of other nodes" } else { "" };
                reader.add_missing_note(format!("{path} cannot be read: using {SYSTEM}{others}"));
            }
        }
        (_, system) => {
            let ids: IdSet = unknown.iter().map(|i| nodes[*i].id).collect();
            reader.add_missing_note(format!(
                "{NODE_FOLDER}/node*/meminfo of nodes {ids} cannot be read: assuming that they have no memory"
            ));
            // All memory is somewhere: without any node's size, the first node has it.
            if let (0, Some(all), Some(node)) = (known, system, nodes.first_mut()) {
                (node.memory_bytes, node.free_bytes) = all;
                reader.add_missing_note(format!(
                    "no node has a memory size: assuming that node {} has all memory",
                    node.id
                ));
            }
        }
    }
    // Kernels that initialise memory when it is first used report less memory for a node than it has.
    let sum: u64 = nodes.iter().map(|node| node.memory_bytes).sum();
    if let Some((total, free)) = system
        && total - total / 64 > sum
    {
        let mismatch = format!("the nodes' meminfo adds up to {} MiB, but {SYSTEM} has {} MiB", sum >> 20, total >> 20);
        match nodes {
            [node] if !node.is_gpu_memory => {
                (node.memory_bytes, node.free_bytes) = (total, free);
                reader.add_missing_note(format!("{mismatch}: using the latter"));
            }
            _ => reader.add_missing_note(format!("{mismatch}: which node has the rest is unknown")),
        }
    }
    Ok(())
}

fn read_distances(reader: &KernelFileReader<'_>, nodes: &mut [NumaNode], has_node_folders: bool) {
    let ids: Vec<u32> = nodes.iter().map(|node| node.id).collect();
    let instead = format!("{DEFAULT_LOCAL_DISTANCE} to themselves and {DEFAULT_REMOTE_DISTANCE} to others are assumed");
    let mut without = IdSet::new();
    for node in nodes.iter_mut() {
        let path = format!("{NODE_FOLDER}/node{}/distance", node.id);
        let row = match has_node_folders {
            true => read_distance_row(reader, &path, ids.len()),
            false => Ok(None),
        };
        if matches!(row, Ok(None)) {
            without.insert(node.id);
        }
        let default = |id: &u32| if *id == node.id { DEFAULT_LOCAL_DISTANCE } else { DEFAULT_REMOTE_DISTANCE };
        let row = reader.value_or_add_missing_note(row, &instead).unwrap_or_else(|| ids.iter().map(default).collect());
        node.distances = ids.iter().copied().zip(row).collect();
    }
    if has_node_folders && !without.is_empty() {
        reader.add_missing_note(format!("nodes {without} have no file 'distance': {instead}"));
    }
}

/// Reads the distances of a node to the `num_nodes` online nodes.
fn read_distance_row(reader: &KernelFileReader<'_>, path: &str, num_nodes: usize) -> Result<Option<Vec<u32>>, Error> {
    let Some(text) = reader.read_text(path)? else { return Ok(None) };
    let row: Vec<u32> = text.split_whitespace().map(|word| parse_number(path, word)).collect::<Result<_, _>>()?;
    match row.len() == num_nodes {
        true => Ok(Some(row)),
        false => {
            let why = format!("a row of length {}, but {num_nodes} nodes are online", row.len());
            Err(malformed_content_error(path, why))
        }
    }
}

fn read_huge_page_pools(reader: &KernelFileReader<'_>, folder: &str) -> Vec<HugePagePool> {
    let instead = "this pool of huge pages is left out";
    let names = reader.value_or_add_missing_note(reader.list_folder(folder).map(Some), instead).unwrap_or_default();
    let pools = names.iter().filter_map(|name| {
        let size = name.strip_prefix("hugepages-")?;
        reader.value_or_add_missing_note(read_huge_page_pool(reader, &format!("{folder}/{name}"), size), instead)
    });
    let mut pools: Vec<HugePagePool> = pools.collect();
    pools.sort_by_key(|pool| pool.page_bytes);
    pools
}

/// Reads the huge page pool in the folder `path`, whose pages have the size `size`. `None` if the kernel does not
/// report the number of pages.
fn read_huge_page_pool(reader: &KernelFileReader<'_>, path: &str, size: &str) -> Result<Option<HugePagePool>, Error> {
    let total = reader.read_number(&format!("{path}/nr_hugepages"))?;
    let free = reader.read_number(&format!("{path}/free_hugepages"))?;
    let (Some(total_pages), Some(free_pages)) = (total, free) else { return Ok(None) };
    Ok(Some(HugePagePool { page_bytes: parse_byte_count(path, size)?, total_pages, free_pages }))
}

/// Reads `access0` and `access1` of a node (`Documentation/admin-guide/mm/numaperf.rst`).
fn read_memory_access(reader: &KernelFileReader<'_>, folder: &str) -> Vec<FirmwareMemoryPerformance> {
    let instead = "this value of the firmware is left out";
    let mut found = Vec::new();
    for class in 0..=1 {
        let folder = format!("{folder}/access{class}/initiators");
        let names =
            reader.value_or_add_missing_note(reader.list_folder(&folder).map(Some), instead).unwrap_or_default();
        if names.is_empty() {
            continue;
        }
        let number =
            |name: &str| reader.value_or_add_missing_note(reader.read_number(&format!("{folder}/{name}")), instead);
        found.push(FirmwareMemoryPerformance {
            initiator_class: class,
            initiators: names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect(),
            read_latency_ns: number("read_latency"),
            write_latency_ns: number("write_latency"),
            read_bandwidth_mbs: number("read_bandwidth"),
            write_bandwidth_mbs: number("write_bandwidth"),
        });
    }
    found
}
