//! Nodes: their CPUs, memory, distances, pools of huge pages, and what firmware says of access to them.

use std::collections::BTreeMap;

use crate::IdSet;
use crate::topology::tree::{Reader, bytes, content, parse};
use crate::topology::{Access, Error, HugePages, Node};

const FOLDER: &str = "/sys/devices/system/node";

/// The kernel's own distances where firmware gives none (`include/linux/topology.h`).
const LOCAL: u32 = 10;
const REMOTE: u32 = 20;

/// Numbers of the nodes that are online; `None` when the system shows no nodes.
pub fn numbers(reader: &Reader<'_>) -> Result<Option<IdSet>, Error> {
    let path = format!("{FOLDER}/online");
    if let Some(ids) = reader.list(&path)? {
        if ids.is_empty() {
            return Err(content(&path, "no node is online"));
        }
        return Ok(Some(ids));
    }
    let names = reader.names(FOLDER)?;
    let ids: IdSet = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
    if ids.is_empty() {
        reader.miss(format!(
            "{FOLDER} is not there (a kernel without NUMA, or a container that hides it): one node 0 with all CPUs and \
             all memory is assumed"
        ));
        return Ok(None);
    }
    reader.miss(format!("{path} cannot be read: the folders beside it are taken as the nodes, {ids}"));
    Ok(Some(ids))
}

/// The CPUs that each node lists; nothing for the only node when it has no list.
pub(crate) fn cpu_lists(
    reader: &Reader<'_>,
    ids: &IdSet,
    shown: bool,
) -> Result<BTreeMap<u32, Option<IdSet>>, Error> {
    let mut lists = BTreeMap::new();
    let mut owners: BTreeMap<u32, u32> = BTreeMap::new();
    for id in ids.iter() {
        let path = format!("{FOLDER}/node{id}/cpulist");
        let list = if shown { reader.list(&path)? } else { None };
        match &list {
            None if ids.len() > 1 => {
                return Err(content(
                    &path,
                    format!("cannot be read, and nothing else tells node {id}'s CPUs"),
                ));
            }
            None if shown => reader.miss(format!("{path} cannot be read: all CPUs are taken as node {id}'s")),
            _ => (),
        }
        for cpu in list.iter().flat_map(IdSet::iter) {
            if let Some(other) = owners.insert(cpu, id) {
                return Err(content(&path, format!("CPU {cpu} is in node {other}, too")));
            }
        }
        lists.insert(id, list);
    }
    Ok(lists)
}

/// The online CPUs of each node.
pub fn settle(
    reader: &Reader<'_>,
    lists: BTreeMap<u32, Option<IdSet>>,
    online: &IdSet,
) -> Result<BTreeMap<u32, IdSet>, Error> {
    let mut settled = BTreeMap::new();
    let mut homeless = online.clone();
    for (id, list) in lists {
        let list = list.unwrap_or_else(|| online.clone());
        // Container file systems such as lxcfs show fewer CPUs online than nodes list.
        let beyond = list.without(online);
        if !beyond.is_empty() {
            reader.miss(format!(
                "node {id} lists CPUs {beyond} that /sys/devices/system/cpu/online does not: they are left out"
            ));
        }
        homeless = homeless.without(&list);
        settled.insert(id, list.and(online));
    }
    if !homeless.is_empty() {
        return Err(content(
            "/sys/devices/system/cpu/online",
            format!("CPUs {homeless} are in no node's cpulist"),
        ));
    }
    Ok(settled)
}

/// All nodes.
pub fn nodes(
    reader: &Reader<'_>,
    ids: &IdSet,
    shown: bool,
    cpus: &BTreeMap<u32, IdSet>,
) -> Result<Vec<Node>, Error> {
    let mut nodes = Vec::new();
    for id in ids.iter() {
        let folder = format!("{FOLDER}/node{id}");
        let pools = if shown { format!("{folder}/hugepages") } else { "/sys/kernel/mm/hugepages".to_owned() };
        nodes.push(Node {
            id,
            cpus: cpus[&id].clone(),
            memory: 0,
            free: 0,
            distances: BTreeMap::new(),
            huge_pages: huge_pages(reader, &pools)?,
            access: if shown { access(reader, &folder)? } else { Vec::new() },
        });
    }
    memory(reader, &mut nodes, shown)?;
    distances(reader, &mut nodes, shown)?;
    Ok(nodes)
}

/// Total and free bytes from a file such as `/proc/meminfo`.
fn total_and_free(reader: &Reader<'_>, path: &str) -> Result<Option<(u64, u64)>, Error> {
    let Some([total, free]) = reader.values(path, ["MemTotal", "MemFree"])? else { return Ok(None) };
    let read = |value: Option<String>, key| match value {
        Some(value) => bytes(path, &value),
        None => Err(content(path, format!("there is no line {key}"))),
    };
    let (total, free) = (read(total, "MemTotal")?, read(free, "MemFree")?);
    if free > total {
        return Err(content(path, format!("of {total} bytes of memory {free} are free")));
    }
    Ok(Some((total, free)))
}

fn memory(reader: &Reader<'_>, nodes: &mut [Node], shown: bool) -> Result<(), Error> {
    const SYSTEM: &str = "/proc/meminfo";
    let system = total_and_free(reader, SYSTEM)?;
    let alone = nodes.len() == 1;
    for node in nodes.iter_mut() {
        let path = format!("{FOLDER}/node{}/meminfo", node.id);
        let own = if shown { total_and_free(reader, &path)? } else { None };
        (node.memory, node.free) = match (own, system) {
            (Some(own), _) => own,
            (None, Some(system)) if alone => {
                if shown {
                    reader.miss(format!("{path} cannot be read: {SYSTEM} stands in for it"));
                }
                system
            }
            (None, _) if shown => {
                return Err(content(
                    &path,
                    format!("cannot be read, and nothing else tells node {}'s memory", node.id),
                ));
            }
            (None, _) => {
                return Err(content(
                    SYSTEM,
                    "cannot be read, and nothing else tells how much memory there is",
                ));
            }
        };
    }
    // Kernels that initialise memory when it is first needed count less of it in a node than there is.
    let sum: u64 = nodes.iter().map(|node| node.memory).sum();
    if let Some((total, free)) = system
        && total - total / 64 > sum
    {
        let told =
            format!("the nodes' meminfo tells of {} MiB and {SYSTEM} of {} MiB", sum >> 20, total >> 20);
        match nodes {
            [node] => {
                (node.memory, node.free) = (total, free);
                reader.miss(format!("{told}: the latter is taken"));
            }
            _ => reader.miss(format!("{told}: which node has the rest is unknown")),
        }
    }
    Ok(())
}

fn distances(reader: &Reader<'_>, nodes: &mut [Node], shown: bool) -> Result<(), Error> {
    let ids: Vec<u32> = nodes.iter().map(|node| node.id).collect();
    let mut without = IdSet::new();
    for node in nodes.iter_mut() {
        let path = format!("{FOLDER}/node{}/distance", node.id);
        let row = match reader.text(&path)?.filter(|_| shown) {
            Some(text) => {
                text.split_whitespace().map(|word| parse(&path, word)).collect::<Result<Vec<u32>, _>>()?
            }
            None => {
                without.insert(node.id);
                ids.iter().map(|id| if *id == node.id { LOCAL } else { REMOTE }).collect()
            }
        };
        if row.len() != ids.len() {
            return Err(content(
                &path,
                format!("a row of length {}, but {} nodes are online", row.len(), ids.len()),
            ));
        }
        node.distances = ids.iter().copied().zip(row).collect();
    }
    if shown && !without.is_empty() {
        reader.miss(format!(
            "nodes {without} have no file 'distance': {LOCAL} to themselves, {REMOTE} to others is assumed"
        ));
    }
    Ok(())
}

fn huge_pages(reader: &Reader<'_>, folder: &str) -> Result<Vec<HugePages>, Error> {
    let mut pools = Vec::new();
    for name in reader.names(folder)? {
        let Some(size) = name.strip_prefix("hugepages-") else { continue };
        let path = format!("{folder}/{name}");
        let total = reader.number(&format!("{path}/nr_hugepages"))?;
        let free = reader.number(&format!("{path}/free_hugepages"))?;
        if let (Some(total), Some(free)) = (total, free) {
            pools.push(HugePages { bytes: bytes(&path, size)?, total, free });
        }
    }
    pools.sort_by_key(|pool| pool.bytes);
    Ok(pools)
}

/// `access0` and `access1` of a node (`Documentation/admin-guide/mm/numaperf.rst`).
fn access(reader: &Reader<'_>, folder: &str) -> Result<Vec<Access>, Error> {
    let mut found = Vec::new();
    for class in 0..=1 {
        let folder = format!("{folder}/access{class}/initiators");
        let names = reader.names(&folder)?;
        if names.is_empty() {
            continue;
        }
        let number = |name: &str| reader.number(&format!("{folder}/{name}"));
        found.push(Access {
            class,
            initiators: names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect(),
            read_latency_ns: number("read_latency")?,
            write_latency_ns: number("write_latency")?,
            read_bandwidth_mbs: number("read_bandwidth")?,
            write_bandwidth_mbs: number("write_bandwidth")?,
        });
    }
    Ok(found)
}
