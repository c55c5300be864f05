//! CPUs: which are online, their packages, cores and siblings, and the caches they share.

use std::collections::BTreeMap;

use crate::IdSet;
use crate::topology::tree::{Reader, bytes, content, parse};
use crate::topology::{Cache, CacheKind, Cpu, Error};

const FOLDER: &str = "/sys/devices/system/cpu";

/// The CPUs that are online, and those that are there but are not.
pub fn online(reader: &Reader<'_>, lists: &BTreeMap<u32, Option<IdSet>>) -> Result<(IdSet, IdSet), Error> {
    let path = format!("{FOLDER}/online");
    let online = match reader.list(&path)? {
        Some(online) => online,
        None => elsewhere(reader, &path, lists)?,
    };
    if online.is_empty() {
        return Err(content(&path, "no CPU is online"));
    }
    let present = reader.list(&format!("{FOLDER}/present"))?.unwrap_or_default();
    let offline = present.without(&online);
    Ok((online, offline))
}

/// The CPUs that are online, as other files tell them.
fn elsewhere(reader: &Reader<'_>, path: &str, lists: &BTreeMap<u32, Option<IdSet>>) -> Result<IdSet, Error> {
    let listed: IdSet = lists.values().flatten().flat_map(IdSet::iter).collect();
    if !listed.is_empty() {
        reader.miss(format!("{path} cannot be read: the CPUs that the nodes list are taken, {listed}"));
        return Ok(listed);
    }
    const STATUS: &str = "/proc/self/status";
    if let Some([Some(text)]) = reader.values(STATUS, ["Cpus_allowed_list"])? {
        let allowed = crate::topology::tree::list(STATUS, &text)?;
        reader.miss(format!("{path} cannot be read: the CPUs of this process are taken for all, {allowed}"));
        return Ok(allowed);
    }
    Err(content(path, "cannot be read, and nothing else tells the CPUs"))
}

/// All online CPUs, by number.
pub fn cpus(reader: &Reader<'_>, lists: &BTreeMap<u32, IdSet>) -> Result<Vec<Cpu>, Error> {
    let online: IdSet = lists.values().flat_map(IdSet::iter).collect();
    let mut cpus = Vec::new();
    let mut without = IdSet::new();
    for (node, id) in lists.iter().flat_map(|(node, list)| list.iter().map(move |id| (*node, id))) {
        let folder = format!("{FOLDER}/cpu{id}/topology");
        // The kernel says -1 where the architecture tells no package.
        let package = reader.number::<i64>(&format!("{folder}/physical_package_id"))?;
        let core = reader.number::<i64>(&format!("{folder}/core_id"))?;
        let siblings = siblings(reader, &folder, id)?;
        if core.is_none() || siblings.is_none() {
            without.insert(id);
        }
        let number = |found: Option<i64>, otherwise| match found {
            Some(number) if number >= 0 => u32::try_from(number).unwrap_or(otherwise),
            _ => otherwise,
        };
        cpus.push(Cpu {
            id,
            node,
            package: number(package, 0),
            core: number(core, id),
            siblings: siblings.unwrap_or_else(|| IdSet::from([id])).and(&online),
        });
    }
    if !without.is_empty() {
        reader.miss(format!(
            "{FOLDER}/cpu*/topology of CPUs {without} cannot be read: each is taken as a core of its own"
        ));
    }
    cpus.sort_by_key(|cpu| cpu.id);
    Ok(cpus)
}

/// The hardware threads of a CPU's core; kernels before 5.3 know only the older name.
fn siblings(reader: &Reader<'_>, folder: &str, id: u32) -> Result<Option<IdSet>, Error> {
    for name in ["core_cpus_list", "thread_siblings_list"] {
        let path = format!("{folder}/{name}");
        if let Some(siblings) = reader.list(&path)? {
            if !siblings.contains(id) {
                return Err(content(&path, format!("'{siblings}' lacks CPU {id} itself")));
            }
            return Ok(Some(siblings));
        }
    }
    Ok(None)
}

/// All caches of the online CPUs, each once.
pub fn caches(reader: &Reader<'_>, online: &IdSet) -> Result<Vec<Cache>, Error> {
    let mut caches: BTreeMap<(u32, CacheKind, IdSet), Cache> = BTreeMap::new();
    let (mut without, mut sizeless) = (IdSet::new(), IdSet::new());
    for id in online.iter() {
        let mut index = 0;
        let folder = |index| format!("{FOLDER}/cpu{id}/cache/index{index}");
        while let Some(level) = reader.number::<u32>(&format!("{}/level", folder(index)))? {
            match cache(reader, &folder(index), id, level)? {
                Some(cache) => {
                    let cpus = cache.cpus.and(online);
                    let key = (cache.level, cache.kind, cpus.clone());
                    caches.entry(key).or_insert(Cache { cpus, ..cache });
                }
                None => sizeless.insert(id),
            }
            index += 1;
        }
        if index == 0 {
            without.insert(id);
        }
    }
    if !without.is_empty() {
        reader
            .miss(format!("{FOLDER}/cpu*/cache of CPUs {without} cannot be read: their caches are unknown"));
    }
    if !sizeless.is_empty() {
        reader.miss(format!("CPUs {sizeless} have caches of unknown size: those are left out"));
    }
    let mut caches: Vec<Cache> = caches.into_values().collect();
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    Ok(caches)
}

/// One cache of a CPU; `None` when nothing tells its size.
fn cache(reader: &Reader<'_>, folder: &str, id: u32, level: u32) -> Result<Option<Cache>, Error> {
    let path = format!("{folder}/type");
    let kind = match reader.text(&path)?.as_deref() {
        Some("Data") => CacheKind::Data,
        Some("Instruction") => CacheKind::Instruction,
        Some("Unified") | None => CacheKind::Unified,
        Some(other) => return Err(content(&path, format!("'{other}' is no kind of cache"))),
    };
    let path = format!("{folder}/size");
    let Some(size) = reader.text(&path)? else { return Ok(None) };
    let size = bytes(&path, &size)?;
    let path = format!("{folder}/coherency_line_size");
    let line = reader.text(&path)?.map_or(Ok(64), |text| parse(&path, &text))?;
    let path = format!("{folder}/shared_cpu_list");
    let cpus = reader.list(&path)?.unwrap_or_else(|| IdSet::from([id]));
    if !cpus.contains(id) {
        return Err(content(&path, format!("'{cpus}' lacks CPU {id} itself")));
    }
    Ok(Some(Cache { level, kind, bytes: size, line, cpus }))
}
