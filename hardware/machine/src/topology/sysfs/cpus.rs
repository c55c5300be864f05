//! Reads CPUs from sysfs: which are online, their packages, cores and siblings, and the caches they share.

use std::collections::BTreeMap;

use crate::IdSet;
use crate::topology::file_tree::{KernelFileReader, malformed_content_error, parse_byte_count};
use crate::topology::{CacheKind, Cpu, CpuCache, Error};

const CPU_FOLDER: &str = "/sys/devices/system/cpu";

/// Reads the CPUs that are online and those that are present but offline.
pub(super) fn read_online_and_offline_cpus(
    reader: &KernelFileReader<'_>,
    cpus_by_node: &BTreeMap<u32, Option<IdSet>>,
) -> Result<(IdSet, IdSet), Error> {
    let path = format!("{CPU_FOLDER}/online");
    let listed = reader.read_id_list(&path).and_then(|listed| match listed {
        Some(online) if online.is_empty() => Err(malformed_content_error(&path, "no CPU is online")),
        listed => Ok(listed),
    });
    let online = match reader.value_or_add_missing_note(listed, "the CPUs are found otherwise") {
        Some(online) => online,
        None => guess_online_cpus(reader, &path, cpus_by_node)?,
    };
    let present = reader.read_id_list(&format!("{CPU_FOLDER}/present"));
    let present = reader.value_or_add_missing_note(present, "assuming that no CPU is offline").unwrap_or_default();
    let offline = present.difference(&online);
    Ok((online, offline))
}

/// Finds the online CPUs without the file `online`: from the nodes' CPU lists, else from the affinity of this
/// process.
fn guess_online_cpus(
    reader: &KernelFileReader<'_>,
    path: &str,
    cpus_by_node: &BTreeMap<u32, Option<IdSet>>,
) -> Result<IdSet, Error> {
    let listed: IdSet = cpus_by_node.values().flatten().flat_map(IdSet::iter).collect();
    if !listed.is_empty() {
        reader.add_missing_note(format!("{path} cannot be read: using the CPUs that the nodes list, {listed}"));
        return Ok(listed);
    }
    const STATUS: &str = "/proc/self/status";
    if let Some([Some(text)]) = reader.read_values_of_keys(STATUS, ["Cpus_allowed_list"])? {
        let allowed = crate::topology::file_tree::parse_id_list(STATUS, &text)?;
        if allowed.is_empty() {
            return Err(malformed_content_error(STATUS, "no CPU is allowed"));
        }
        reader.add_missing_note(format!(
            "{path} cannot be read: assuming that the machine has only the CPUs of this process, {allowed}"
        ));
        return Ok(allowed);
    }
    Err(malformed_content_error(path, "cannot be read, and no other file lists the CPUs"))
}

/// CPUs whose kernel files have invalid content, and the first error.
#[derive(Default)]
struct MalformedCpuFiles {
    cpus: IdSet,
    first_error: Option<Error>,
}

impl MalformedCpuFiles {
    /// Returns the value that was read for CPU `id`. If the read failed, returns `None` and adds the CPU to the CPUs
    /// with malformed files.
    fn take<T>(&mut self, id: u32, read: Result<Option<T>, Error>) -> Option<T> {
        read.unwrap_or_else(|error| {
            self.cpus.insert(id);
            self.first_error.get_or_insert(error);
            None
        })
    }

    /// Adds one note for all CPUs with malformed files. `instead` says what is assumed for them.
    fn note(&self, reader: &KernelFileReader<'_>, instead: &str) {
        if let Some(error) = &self.first_error {
            let same = if self.cpus.len() > 1 { format!(" (and so on for CPUs {})", self.cpus) } else { String::new() };
            reader.add_missing_note(format!("{error}{same}: {instead}"));
        }
    }
}

/// Reads all online CPUs, sorted by number.
pub(super) fn read_cpus(reader: &KernelFileReader<'_>, cpus_by_node: &BTreeMap<u32, IdSet>) -> Vec<Cpu> {
    let online: IdSet = cpus_by_node.values().flat_map(IdSet::iter).collect();
    let mut cpus = Vec::new();
    let (mut without, mut malformed) = (IdSet::new(), MalformedCpuFiles::default());
    for (node, id) in cpus_by_node.iter().flat_map(|(node, list)| list.iter().map(move |id| (*node, id))) {
        let folder = format!("{CPU_FOLDER}/cpu{id}/topology");
        let package = malformed.take(id, read_cpu_package(reader, id));
        // The kernel writes -1 where the architecture has no core number.
        let core = malformed.take(id, reader.read_number::<i64>(&format!("{folder}/core_id")));
        let siblings = malformed.take(id, read_siblings(reader, &folder, id));
        if (core.is_none() || siblings.is_none()) && !malformed.cpus.contains(id) {
            without.insert(id);
        }
        cpus.push(Cpu {
            id,
            node,
            package: package.unwrap_or(0),
            core: core.and_then(|core| u32::try_from(core).ok()).unwrap_or(id),
            siblings: siblings.unwrap_or_else(|| IdSet::from([id])).intersection(&online),
        });
    }
    if !without.is_empty() {
        reader.add_missing_note(format!(
            "{CPU_FOLDER}/cpu*/topology of CPUs {without} cannot be read: assuming a separate core for each"
        ));
    }
    malformed.note(reader, "assuming package 0 and a separate core for each");
    cpus.sort_by_key(|cpu| cpu.id);
    cpus
}

/// Reads the package of a CPU. `None` where it is unknown: the kernel writes -1 where the architecture has no package
/// number.
pub(super) fn read_cpu_package(reader: &KernelFileReader<'_>, id: u32) -> Result<Option<u32>, Error> {
    let number = reader.read_number::<i64>(&format!("{CPU_FOLDER}/cpu{id}/topology/physical_package_id"))?;
    Ok(number.and_then(|number| u32::try_from(number).ok()))
}

/// Reads the hardware threads of a CPU's core. Kernels before 5.3 have only `thread_siblings_list`.
fn read_siblings(reader: &KernelFileReader<'_>, folder: &str, id: u32) -> Result<Option<IdSet>, Error> {
    for name in ["core_cpus_list", "thread_siblings_list"] {
        let path = format!("{folder}/{name}");
        if let Some(siblings) = reader.read_id_list(&path)? {
            if !siblings.contains(id) {
                return Err(malformed_content_error(&path, format!("'{siblings}' lacks CPU {id} itself")));
            }
            return Ok(Some(siblings));
        }
    }
    Ok(None)
}

/// Reads all caches of the online CPUs, each cache once.
pub(super) fn read_caches(reader: &KernelFileReader<'_>, online: &IdSet) -> Vec<CpuCache> {
    let mut caches: BTreeMap<(u32, CacheKind, IdSet), CpuCache> = BTreeMap::new();
    let (mut without, mut sizeless) = (IdSet::new(), IdSet::new());
    let mut malformed = MalformedCpuFiles::default();
    for id in online.iter() {
        let mut index = 0;
        let folder = |index| format!("{CPU_FOLDER}/cpu{id}/cache/index{index}");
        while let Some(level) = reader.read_number::<u32>(&format!("{}/level", folder(index))).transpose() {
            match level.and_then(|level| read_cache(reader, &folder(index), id, level)) {
                Ok(Some(cache)) => {
                    let cpus = cache.cpus.intersection(online);
                    let key = (cache.level, cache.kind, cpus.clone());
                    caches.entry(key).or_insert(CpuCache { cpus, ..cache });
                }
                Ok(None) => sizeless.insert(id),
                Err(error) => {
                    malformed.take::<()>(id, Err(error));
                }
            }
            index += 1;
        }
        if index == 0 {
            without.insert(id);
        }
    }
    if !without.is_empty() {
        reader.add_missing_note(format!(
            "{CPU_FOLDER}/cpu*/cache of CPUs {without} cannot be read: their caches are unknown"
        ));
    }
    if !sizeless.is_empty() {
        reader.add_missing_note(format!("CPUs {sizeless} have caches of unknown size: these caches are left out"));
    }
    malformed.note(reader, "these caches are left out");
    let mut caches: Vec<CpuCache> = caches.into_values().collect();
    caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.smallest_id()));
    caches
}

/// Reads one cache of a CPU. `None` if its size is unknown.
fn read_cache(reader: &KernelFileReader<'_>, folder: &str, id: u32, level: u32) -> Result<Option<CpuCache>, Error> {
    let path = format!("{folder}/type");
    let kind = match reader.read_text(&path)?.as_deref() {
        Some("Data") => CacheKind::Data,
        Some("Instruction") => CacheKind::Instruction,
        Some("Unified") | None => CacheKind::Unified,
        Some(other) => return Err(malformed_content_error(&path, format!("'{other}' is not a cache type"))),
    };
    let path = format!("{folder}/size");
    let Some(size) = reader.read_text(&path)? else { return Ok(None) };
    let size = parse_byte_count(&path, &size)?;
    if size == 0 {
        return Ok(None);
    }
    let line = reader.read_number(&format!("{folder}/coherency_line_size"))?.filter(|line| *line > 0).unwrap_or(64);
    let path = format!("{folder}/shared_cpu_list");
    let cpus = reader.read_id_list(&path)?.unwrap_or_else(|| IdSet::from([id]));
    if !cpus.contains(id) {
        return Err(malformed_content_error(&path, format!("'{cpus}' lacks CPU {id} itself")));
    }
    Ok(Some(CpuCache { level, kind, bytes: size, line_bytes: line, cpus }))
}
