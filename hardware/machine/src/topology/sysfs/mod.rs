//! Reads the topology of a Linux system from `/sys` and `/proc`.
//!
//! Paths and formats are those of `Documentation/ABI/stable/sysfs-devices-node`, `.../sysfs-devices-system-cpu`,
//! `Documentation/admin-guide/cgroup-v2.rst` and `proc_pid_status(5)`. If a file is missing or has invalid content, a
//! default is used and noted in [`Topology::missing_notes`].

mod nodes;
mod cpus;
mod limits;

use std::collections::BTreeMap;
use std::path::Path;

use super::file_tree::{KernelFileReader, RunningSystemFiles, malformed_content_error, parse_byte_count};
use super::{Error, Topology, TopologySource, TransparentHugePageMode};
use crate::IdSet;

/// Topology source that reads the files of a running Linux system.
#[derive(Debug, Clone)]
pub struct Sysfs {
    files: RunningSystemFiles,
}

impl Sysfs {
    /// Creates a topology source for this machine, as this process sees it.
    pub fn new() -> Self {
        Sysfs::with_root(Path::new("/"))
    }

    /// Creates a topology source for the machine whose `/proc` and `/sys` are below the folder `root`.
    pub fn with_root(root: &Path) -> Self {
        Sysfs { files: RunningSystemFiles::with_root(root) }
    }

    /// The files that the topology is read from.
    pub(super) fn file_tree(&self) -> &RunningSystemFiles {
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
        read_topology(&KernelFileReader::new(&self.files), "this machine".to_owned())
    }
}

/// Nodes of this machine whose memory belongs to a GPU.
pub(crate) fn read_gpu_memory_nodes() -> IdSet {
    let files = RunningSystemFiles::with_root(Path::new("/"));
    nodes::read_gpu_memory_nodes(&KernelFileReader::new(&files))
}

/// Reads the topology through `reader`. `origin` describes the source.
pub(super) fn read_topology(reader: &KernelFileReader<'_>, origin: String) -> Result<Topology, Error> {
    let numbers = nodes::read_node_ids(reader);
    let ids = numbers.clone().unwrap_or_else(|| IdSet::from([0]));
    let lists = nodes::read_cpu_lists_of_nodes(reader, &ids, numbers.is_some());
    let (online, offline) = cpus::read_online_and_offline_cpus(reader, &lists)?;
    let lists = nodes::assign_cpus_to_nodes(reader, lists, &online);
    let nodes = nodes::read_nodes(reader, &ids, numbers.is_some(), &lists)?;
    let cpus = cpus::read_cpus(reader, &lists);
    let caches = cpus::read_caches(reader, &online);
    let allowed = limits::read_allowed_resources(reader, &online, &ids);
    let weights = read_interleave_weights(reader, &ids);
    let (kernel, processor) = (read_kernel_release(reader), read_processor_name(reader));
    let (page, transparent) = (read_page_bytes(reader), read_transparent_huge_page_mode(reader));
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

fn read_kernel_release(reader: &KernelFileReader<'_>) -> Option<String> {
    reader.value_or_add_missing_note(reader.read_text("/proc/sys/kernel/osrelease"), "the kernel release is unknown")
}

fn read_processor_name(reader: &KernelFileReader<'_>) -> Option<String> {
    let [name] = reader.value_or_add_missing_note(
        reader.read_values_of_keys("/proc/cpuinfo", ["model name"]),
        "the model of the processor is unknown",
    )?;
    name.filter(|name| !name.is_empty())
}

/// Reads the base page size in bytes from the first mapping of this process: that mapping is of a file, so it consists
/// of base pages.
fn read_page_bytes(reader: &KernelFileReader<'_>) -> u64 {
    const PATH: &str = "/proc/self/smaps";
    const INSTEAD: &str = "assuming 4 KiB";
    let Some([Some(size)]) =
        reader.value_or_add_missing_note(reader.read_values_of_keys(PATH, ["KernelPageSize"]), INSTEAD)
    else {
        reader.add_missing_note(format!("{PATH} does not contain the page size: {INSTEAD}"));
        return 4096;
    };
    let page = parse_byte_count(PATH, &size).and_then(|page| match page.is_power_of_two() {
        true => Ok(Some(page)),
        false => Err(malformed_content_error(PATH, format!("a page of {page} bytes"))),
    });
    reader.value_or_add_missing_note(page, INSTEAD).unwrap_or(4096)
}

fn read_transparent_huge_page_mode(reader: &KernelFileReader<'_>) -> Option<TransparentHugePageMode> {
    const PATH: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    const INSTEAD: &str = "assuming that there are no transparent huge pages";
    let Some(text) = reader.value_or_add_missing_note(reader.read_text(PATH), INSTEAD) else {
        reader.add_missing_note(format!("{PATH} cannot be read: {INSTEAD}"));
        return None;
    };
    let chosen = text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let mode = match chosen {
        Some("always") => Ok(Some(TransparentHugePageMode::Always)),
        Some("madvise") => Ok(Some(TransparentHugePageMode::Madvise)),
        Some("never") => Ok(Some(TransparentHugePageMode::Never)),
        _ => Err(malformed_content_error(PATH, format!("'{text}' selects none of always, madvise and never"))),
    };
    reader.value_or_add_missing_note(mode, INSTEAD)
}

/// Reads the kernel's weights for weighted interleave, by node.
fn read_interleave_weights(reader: &KernelFileReader<'_>, ids: &IdSet) -> Option<BTreeMap<u32, u32>> {
    let mut weights = BTreeMap::new();
    for id in ids.iter() {
        let path = format!("/sys/kernel/mm/mempolicy/weighted_interleave/node{id}");
        if let Some(weight) =
            reader.value_or_add_missing_note(reader.read_number(&path), "the weight of this node is unknown")
        {
            weights.insert(id, weight);
        }
    }
    Some(weights).filter(|weights| !weights.is_empty())
}
