//! Reads the topology of a Linux system from `/sys` and `/proc`.
//!
//! Paths and formats are those of `Documentation/ABI/stable/sysfs-devices-node`, `.../sysfs-devices-system-cpu`,
//! `Documentation/admin-guide/cgroup-v2.rst` and `proc_pid_status(5)`. Every file may be absent. Where a default is
//! reasonable it is used and noted in [`Topology::missing_notes`].

mod nodes;
mod cpus;
mod limits;

use std::collections::BTreeMap;
use std::path::Path;

use super::file_tree::{LiveFiles, RecordingReader, malformed_content_error, parse_number};
use super::{Error, Topology, TopologySource, TransparentHugePageMode};
use crate::IdSet;

/// Topology source that reads the files of a running Linux system.
#[derive(Debug, Clone)]
pub struct Sysfs {
    files: LiveFiles,
}

impl Sysfs {
    /// This machine, as this process sees it.
    pub fn new() -> Self {
        Sysfs::with_root(Path::new("/"))
    }

    /// The machine whose `/proc` and `/sys` are below the folder `root`.
    pub fn with_root(root: &Path) -> Self {
        Sysfs { files: LiveFiles::with_root(root) }
    }

    /// The files that the topology is read from.
    pub(super) fn file_tree(&self) -> &LiveFiles {
        &self.files
    }
}

impl Default for Sysfs {
    fn default() -> Self {
        Sysfs::new()
    }
}

impl TopologySource for Sysfs {
    /// Reads `/sys` and `/proc/self`. Call it before threads are pinned: the allowed CPUs are those of the process's
    /// first thread.
    fn topology(&self) -> Result<Topology, Error> {
        read_topology(&RecordingReader::new(&self.files), "this machine".to_owned())
    }
}

/// Reads the topology through `reader`. `origin` describes the source.
pub(super) fn read_topology(reader: &RecordingReader<'_>, origin: String) -> Result<Topology, Error> {
    let numbers = nodes::read_node_ids(reader)?;
    let ids = numbers.clone().unwrap_or_else(|| IdSet::from([0]));
    let lists = nodes::read_cpu_lists(reader, &ids, numbers.is_some())?;
    let (online, offline) = cpus::read_online_and_offline(reader, &lists)?;
    let lists = nodes::assign_cpus_to_nodes(reader, lists, &online)?;
    let nodes = nodes::read_nodes(reader, &ids, numbers.is_some(), &lists)?;
    let cpus = cpus::read_cpus(reader, &lists)?;
    let caches = cpus::read_caches(reader, &online)?;
    let allowed = limits::read_allowed_resources(reader, &online, &ids)?;
    let weights = read_interleave_weights(reader, &ids)?;
    let (kernel, processor) = (read_kernel_release(reader)?, read_processor_name(reader)?);
    let (page, transparent) = (read_page_bytes(reader)?, read_transparent_huge_page_mode(reader)?);
    let missing = reader.take_missing_notes();
    Ok(Topology {
        origin,
        kernel,
        processor,
        page_bytes: page,
        transparent_huge_pages: transparent,
        cpus,
        offline_cpus: offline,
        caches,
        nodes,
        allowed,
        interleave_weights: weights,
        missing_notes: missing,
    })
}

fn read_kernel_release(reader: &RecordingReader<'_>) -> Result<Option<String>, Error> {
    reader.read_text("/proc/sys/kernel/osrelease")
}

fn read_processor_name(reader: &RecordingReader<'_>) -> Result<Option<String>, Error> {
    let found = reader.read_values("/proc/cpuinfo", ["model name"])?;
    Ok(found.and_then(|[name]| name).filter(|name| !name.is_empty()))
}

/// Reads the base page size in bytes: that of this process's first mapping, which is file-backed and so has base
/// pages.
fn read_page_bytes(reader: &RecordingReader<'_>) -> Result<u64, Error> {
    const PATH: &str = "/proc/self/smaps";
    let Some([Some(size)]) = reader.read_values(PATH, ["KernelPageSize"])? else {
        reader.note_missing(format!("{PATH} does not contain the page size: assuming 4 KiB"));
        return Ok(4096);
    };
    let page = super::file_tree::parse_kernel_size(PATH, &size)?;
    if !page.is_power_of_two() {
        return Err(malformed_content_error(PATH, format!("a page of {page} bytes")));
    }
    Ok(page)
}

fn read_transparent_huge_page_mode(reader: &RecordingReader<'_>) -> Result<Option<TransparentHugePageMode>, Error> {
    const PATH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Some(text) = reader.read_text(PATH)? else {
        reader.note_missing(format!("{PATH} cannot be read: assuming that there are no transparent huge pages"));
        return Ok(None);
    };
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    match chosen {
        Some("always") => Ok(Some(TransparentHugePageMode::Always)),
        Some("madvise") => Ok(Some(TransparentHugePageMode::Madvise)),
        Some("never") => Ok(Some(TransparentHugePageMode::Never)),
        _ => Err(malformed_content_error(PATH, format!("'{text}' selects none of always, madvise and never"))),
    }
}

/// Reads the kernel's weights for weighted interleave, by node.
fn read_interleave_weights(reader: &RecordingReader<'_>, ids: &IdSet) -> Result<Option<BTreeMap<u32, u32>>, Error> {
    let mut weights = BTreeMap::new();
    for id in ids.iter() {
        let path = format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{id}");
        if let Some(text) = reader.read_text(&path)? {
            weights.insert(id, parse_number(&path, &text)?);
        }
    }
    Ok(Some(weights).filter(|weights| !weights.is_empty()))
}
