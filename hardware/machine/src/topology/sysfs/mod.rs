//! The topology of a Linux system, from the files its kernel shows of it.
//!
//! Paths and formats are those of `Documentation/ABI/stable/sysfs-devices-node`, `.../sysfs-devices-system-cpu`,
//! `Documentation/admin-guide/cgroup-v2.rst` and `proc_pid_status(5)`. Every file may be absent: where something
//! sensible can stand in it does, and the topology says so.

mod nodes;
mod cpus;
mod limits;

use std::collections::BTreeMap;
use std::path::Path;

use super::tree::{Live, Reader, content, parse};
use super::{Error, Source, Topology, Transparent};
use crate::IdSet;

/// A running Linux system.
#[derive(Debug, Clone)]
pub struct Sysfs {
    live: Live,
}

impl Sysfs {
    /// This machine, as this process sees it.
    pub fn new() -> Self {
        Sysfs::at(Path::new("/"))
    }

    /// The machine whose `/proc` and `/sys` lie in this folder.
    pub fn at(root: &Path) -> Self {
        Sysfs { live: Live::at(root) }
    }

    pub(super) fn tree(&self) -> &Live {
        &self.live
    }
}

impl Default for Sysfs {
    fn default() -> Self {
        Sysfs::new()
    }
}

impl Source for Sysfs {
    /// Reads `/sys` and `/proc/self`. Call it before threads are pinned: what is allowed is what the process's first
    /// thread may use.
    fn topology(&self) -> Result<Topology, Error> {
        read(&Reader::new(&self.live), "this machine".to_owned())
    }
}

/// Reads the topology from a tree of files.
pub(super) fn read(reader: &Reader<'_>, origin: String) -> Result<Topology, Error> {
    let numbers = nodes::numbers(reader)?;
    let ids = numbers.clone().unwrap_or_else(|| IdSet::from([0]));
    let lists = nodes::cpu_lists(reader, &ids, numbers.is_some())?;
    let (online, offline) = cpus::online(reader, &lists)?;
    let lists = nodes::settle(reader, lists, &online)?;
    let nodes = nodes::nodes(reader, &ids, numbers.is_some(), &lists)?;
    let cpus = cpus::cpus(reader, &lists)?;
    let caches = cpus::caches(reader, &online)?;
    let allowed = limits::allowed(reader, &online, &ids)?;
    let weights = weights(reader, &ids)?;
    let (kernel, processor) = (kernel(reader)?, processor(reader)?);
    let (page, transparent) = (page(reader)?, transparent(reader)?);
    let missing = reader.take_missing();
    Ok(Topology {
        origin,
        kernel,
        processor,
        page,
        transparent,
        cpus,
        offline,
        caches,
        nodes,
        allowed,
        weights,
        missing,
    })
}

fn kernel(reader: &Reader<'_>) -> Result<Option<String>, Error> {
    reader.text("/proc/sys/kernel/osrelease")
}

fn processor(reader: &Reader<'_>) -> Result<Option<String>, Error> {
    let found = reader.values("/proc/cpuinfo", ["model name"])?;
    Ok(found.and_then(|[name]| name).filter(|name| !name.is_empty()))
}

/// Bytes of a page: of the first mapping of this process, which is a file's and so has base pages.
fn page(reader: &Reader<'_>) -> Result<u64, Error> {
    const PATH: &str = "/proc/self/smaps";
    let Some([Some(size)]) = reader.values(PATH, ["KernelPageSize"])? else {
        reader.miss(format!("{PATH} tells no size of a page: 4 KiB are assumed"));
        return Ok(4096);
    };
    let page = super::tree::bytes(PATH, &size)?;
    if !page.is_power_of_two() {
        return Err(content(PATH, format!("a page of {page} bytes")));
    }
    Ok(page)
}

fn transparent(reader: &Reader<'_>) -> Result<Option<Transparent>, Error> {
    const PATH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Some(text) = reader.text(PATH)? else {
        reader.miss(format!("{PATH} cannot be read: no transparent huge pages, as far as can be seen"));
        return Ok(None);
    };
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    match chosen {
        Some("always") => Ok(Some(Transparent::Always)),
        Some("madvise") => Ok(Some(Transparent::Madvise)),
        Some("never") => Ok(Some(Transparent::Never)),
        _ => Err(content(PATH, format!("'{text}' chooses none of always, madvise and never"))),
    }
}

/// The kernel's weights of interleaving.
fn weights(reader: &Reader<'_>, ids: &IdSet) -> Result<Option<BTreeMap<u32, u32>>, Error> {
    let mut weights = BTreeMap::new();
    for id in ids.iter() {
        let path = format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{id}");
        if let Some(text) = reader.text(&path)? {
            weights.insert(id, parse(&path, &text)?);
        }
    }
    Ok(Some(weights).filter(|weights| !weights.is_empty()))
}
