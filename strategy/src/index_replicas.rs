//! Checks that instances have enough memory, and copies memory-mapped indexes to the nodes of the instances.
//!
//! The pages of a mapped file stay on the node of the process that first read the file, whatever the memory policies of
//! the processes that map the file. Instances that need the index on their own nodes get a copy in a tmpfs that is
//! bound to these nodes, if this process may mount one. Otherwise they read the index into their own memory, which
//! follows their policy.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use genuma_machine::IdSet;
use genuma_machine::placement::{self, MemoryPolicy};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::cpu_layout::CpuSlot;
use crate::invocation::{AlignerIndex, CommandWord, IndexLoading, Invocation, WordPart};
use crate::strategy::{InstanceMemoryPolicy, Strategy};

/// Memory per thread in addition to the index, bytes: buffers of reads and records, tables of the aligner (estimate).
const BYTES_PER_THREAD: u64 = 64 << 20;
/// Memory per base of a block of reads, bytes. An aligner holds the text of the block that it reads, the block that it
/// processes, and the records of one block; genuma holds the text of two blocks.
const BYTES_PER_BLOCK_BASE: u64 = 16;

/// Prefix of the names of folders with replicas; the process ID and random letters follow.
const FOLDER_PREFIX: &str = "genuma-index-";

/// Unmount flags: detach at once, and do not follow links that somebody else may have created.
const UNMOUNT_FLAGS: UnmountFlags = UnmountFlags::DETACH.union(UnmountFlags::NOFOLLOW);

/// Mounted folders with replicas of this process.
static MOUNTED_FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn lock_mounted_folders() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    MOUNTED_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all replicas of this process. Call it before the process exits without running destructors.
pub fn remove_all_replicas() {
    std::mem::take(&mut *lock_mounted_folders()).iter().for_each(|folder| remove_replica(folder));
}

fn remove_replica(folder: &Path) {
    // The memory is freed when the last instance that maps it has ended.
    let _ = unmount(folder, UNMOUNT_FLAGS);
    let _ = fs::remove_dir(folder);
}

/// Why the memory of the instances cannot be checked, or an index cannot be copied to their nodes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The instances, or the replicas of the index, need more memory than is free.
    #[error("{instances} of {aligner} need {}: {refused}; choose fewer instances or another memory policy with --strategy", format_memory_need(*index, *working))]
    NotEnoughMemory {
        /// What needs the memory, for messages: the number of instances, or a replica of the index.
        instances: String,
        /// Name of the aligner.
        aligner: String,
        /// Size of an index, bytes.
        index: u64,
        /// Working memory of an instance in addition to the index, bytes.
        working: u64,
        /// Result of the memory check: what does not fit, and on which nodes.
        refused: Box<placement::Error>,
    },
    /// Index metadata cannot be read.
    #[error(transparent)]
    Index(#[from] crate::invocation::Error),
    /// The index cannot be copied.
    #[error("{path}: cannot copy the index into memory: {source}")]
    Copy {
        /// Path of the file.
        path: String,
        /// Error that the operating system reported.
        source: io::Error,
    },
}

fn format_memory_need(index: u64, working: u64) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    format!("{} MiB of index and about {} MiB of working memory each", mib(index), mib(working))
}

/// Folders with replicas of the index, which are removed on drop.
#[derive(Debug, Default)]
pub struct IndexReplicas(Vec<PathBuf>);

impl Drop for IndexReplicas {
    fn drop(&mut self) {
        for folder in &self.0 {
            if lock_mounted_folders().remove(folder) {
                remove_replica(folder);
            }
        }
    }
}

/// Checks that the instances with their indexes and reads fit into the memory that is free now. `block` is the size of
/// a block of reads in bases, 0 for an aligner without blocks.
///
/// # Errors
/// The instances do not fit, a memory policy names nodes that may not be used, or the size of an index file cannot be
/// read.
pub fn check_instances_fit_in_memory(invocation: &Invocation, cpu_slots: &[CpuSlot], block: u64) -> Result<(), Error> {
    let index = invocation.index.as_ref().map_or(Ok(0), AlignerIndex::total_index_bytes)?;
    let policies: BTreeSet<String> = cpu_slots.iter().map(policy_text).collect();
    for policy in policies {
        let alike: Vec<&CpuSlot> = cpu_slots.iter().filter(|cpu_slot| policy_text(cpu_slot) == policy).collect();
        let working = |cpu_slot: &CpuSlot| {
            cpu_slot.threads as u64 * BYTES_PER_THREAD + block.saturating_mul(BYTES_PER_BLOCK_BASE)
        };
        let bytes = alike.iter().map(|cpu_slot| index.saturating_add(working(cpu_slot))).fold(0, u64::saturating_add);
        let policy = alike[0].policy.clone().unwrap_or(MemoryPolicy::Local);
        placement::check_memory_fits(bytes, &policy).map_err(|refused| Error::NotEnoughMemory {
            instances: match alike.len() {
                1 => "an instance".to_owned(),
                n => format!("{n} instances"),
            },
            aligner: invocation.aligner.clone(),
            index,
            working: working(alike[0]),
            refused: Box::new(refused),
        })?;
    }
    Ok(())
}

fn policy_text(cpu_slot: &CpuSlot) -> String {
    cpu_slot.policy.as_ref().map_or_else(String::new, MemoryPolicy::to_string)
}

/// Command lines of the instances, the replicas that they use, and a note for the user.
pub struct PreparedInvocations {
    /// Command line of each instance.
    pub invocations: Vec<Invocation>,
    /// Replicas of the index; keep them until all instances have ended.
    pub replicas: IndexReplicas,
    /// Message for the user: that a memory-mapped index was copied, or why it was not. `None` if the index is used
    /// unchanged.
    pub note: Option<String>,
}

/// Copies a memory-mapped index to the nodes of the instances, if `strategy` and any CPU slot have a memory policy. If
/// no folder for copies can be mounted, changes the commands so that each instance reads the index into its own memory.
/// Other indexes are used unchanged.
///
/// # Errors
/// The index cannot be read, or its copies do not fit in memory.
pub fn replicate_index_if_mapped(
    invocation: &Invocation,
    strategy: Strategy,
    cpu_slots: &[CpuSlot],
) -> Result<PreparedInvocations, Error> {
    let same = || vec![invocation.clone(); cpu_slots.len()];
    let index = match &invocation.index {
        Some(index) if index.loading == IndexLoading::Mapped && strategy.memory != InstanceMemoryPolicy::Default => {
            index
        }
        _ => return Ok(PreparedInvocations { invocations: same(), replicas: IndexReplicas::default(), note: None }),
    };
    let wanted = |cpu_slot: &CpuSlot| cpu_slot.policy.clone();
    if cpu_slots.iter().all(|cpu_slot| wanted(cpu_slot).is_none()) {
        return Ok(PreparedInvocations { invocations: same(), replicas: IndexReplicas::default(), note: None });
    }
    let mut replicas = IndexReplicas::default();
    let mut made: Vec<(String, Invocation)> = Vec::new();
    let mut invocations = Vec::new();
    for cpu_slot in cpu_slots {
        let options = tmpfs_policy_option(wanted(cpu_slot).as_ref(), &cpu_slot.nodes);
        if let Some((_, invocation)) = made.iter().find(|(known, _)| *known == options) {
            invocations.push(invocation.clone());
            continue;
        }
        let bytes = index.total_index_bytes()?;
        match mount_bound_folder(&options, bytes, &mut replicas) {
            Ok(folder) => {
                let policy = wanted(cpu_slot).unwrap_or(MemoryPolicy::Local);
                placement::check_memory_fits(bytes, &policy).map_err(|refused| Error::NotEnoughMemory {
                    instances: "a copy of the index".to_owned(),
                    aligner: invocation.aligner.clone(),
                    index: bytes,
                    working: 0,
                    refused: Box::new(refused),
                })?;
                let copied = copy_index(invocation, index, &folder)?;
                made.push((options, copied.clone()));
                invocations.push(copied);
            }
            Err(refused) => {
                let note = format!(
                    "the index is read into each instance's own memory instead of being mapped: no copy can be bound to nodes ({refused})"
                );
                let invocations = vec![without_mapping(invocation); cpu_slots.len()];
                return Ok(PreparedInvocations { invocations, replicas: IndexReplicas::default(), note: Some(note) });
            }
        }
    }
    let note = Some(format!("the mapped index was copied {} times, into memory of its nodes", made.len()));
    Ok(PreparedInvocations { invocations, replicas, note })
}

/// Returns the tmpfs mount option of a policy (tmpfs(5), `mpol`): interleave, also for weighted interleave, or else
/// bind.
fn tmpfs_policy_option(policy: Option<&MemoryPolicy>, nodes: &IdSet) -> String {
    match policy {
        Some(MemoryPolicy::Interleave(nodes)) | Some(MemoryPolicy::KernelWeighted(nodes)) => {
            format!("mpol=interleave:{nodes}")
        }
        Some(MemoryPolicy::Bind(nodes)) => format!("mpol=bind:{nodes}"),
        _ => format!("mpol=bind:{nodes}"),
    }
}

/// Removes the replicas in `folder` whose process has ended: a killed process leaves its replicas in memory. Removes
/// only mounted folders, because the process ID of a folder may belong to a process of another container, which is not
/// visible here.
fn remove_stale_replicas(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(FOLDER_PREFIX)?.split_once('-')).map(|(id, _)| id);
        let numbered = owner.filter(|id| id.parse::<u32>().is_ok());
        if numbered.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let folder = entry.path();
            if unmount(&folder, UNMOUNT_FLAGS).is_ok() {
                let _ = fs::remove_dir(folder);
            }
        }
    }
    Ok(())
}

/// Removes stale replicas, mounts a new tmpfs folder for `bytes` bytes with the mount option `policy`, and adds it
/// to `replicas`.
fn mount_bound_folder(policy: &str, bytes: u64, replicas: &mut IndexReplicas) -> io::Result<PathBuf> {
    let folder = std::env::temp_dir();
    remove_stale_replicas(&folder)?;
    // The name is new, so that nobody can have created it before.
    let folder =
        tempfile::Builder::new().prefix(&format!("{FOLDER_PREFIX}{}-", std::process::id())).tempdir_in(folder)?.keep();
    // The file system itself needs slightly more than the files.
    let options = format!("{policy},mode=0700,size={}", bytes + bytes / 64 + (1 << 20));
    let options = CString::new(options).map_err(io::Error::other)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if let Err(refused) = mount(c"genuma", &folder, c"tmpfs", flags, options.as_c_str()) {
        fs::remove_dir(&folder)?;
        return Err(refused.into());
    }
    lock_mounted_folders().insert(folder.clone());
    replicas.0.push(folder.clone());
    Ok(folder)
}

/// Copies the index to `folder`. Returns the command line with the path of the copy.
fn copy_index(invocation: &Invocation, index: &AlignerIndex, folder: &Path) -> Result<Invocation, Error> {
    let parent = |path: &PathBuf| path.parent().map(Path::to_owned).unwrap_or_default();
    let mut files = Vec::new();
    for path in &index.files {
        let copy = folder.join(path.file_name().unwrap_or_default());
        fs::copy(path, &copy).map_err(|source| Error::Copy { path: path.display().to_string(), source })?;
        files.push(copy);
    }
    let old = index.files.first().map(parent).unwrap_or_default();
    let mut invocation = invocation.clone();
    for word in &mut invocation.words {
        if let [WordPart::Text(text)] = word.0.as_slice()
            && let Some(text) = relocate_word(text, &old, folder, &index.files)
        {
            *word = CommandWord::fixed_text_word(text);
        }
    }
    invocation.index = Some(AlignerIndex { files, ..index.clone() });
    Ok(invocation)
}

/// Replaces the folder `old` by `new` in a word of the command line that names the index, by its folder or by the
/// common prefix of its files. `None` if the word does not name the index.
fn relocate_word(word: &OsStr, old: &Path, new: &Path, files: &[PathBuf]) -> Option<OsString> {
    let path = Path::new(word);
    if path == old || path.join("") == old.join("") {
        return Some(new.as_os_str().to_owned());
    }
    let name = path.file_name()?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let prefix = |file: &PathBuf| {
        file.file_name().is_some_and(|file| file.as_bytes().starts_with(name.as_bytes()))
            && file.parent() == Some(folder)
    };
    files.iter().all(prefix).then(|| new.join(name).into_os_string())
}

/// Returns the command line changed so that each instance reads the index into its own memory instead of mapping it.
fn without_mapping(invocation: &Invocation) -> Invocation {
    let mut invocation = invocation.clone();
    match invocation.aligner.as_str() {
        "bowtie2" => invocation.words.retain(|word| *word != CommandWord::fixed_text_word("--mm")),
        aligner if aligner.starts_with("snap-aligner") => {
            invocation.words.retain(|word| *word != CommandWord::fixed_text_word("-map"));
            invocation.words.push(CommandWord::fixed_text_word(OsString::from_vec(b"-map-".to_vec())));
        }
        _ => {}
    }
    if let Some(index) = &mut invocation.index {
        index.loading = IndexLoading::Private;
    }
    invocation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_presets::parse_command;
    use crate::memory_pages::MemoryPages;
    use std::os::unix::fs::symlink;

    fn cpu_slot(nodes: &[u32], policy: Option<MemoryPolicy>) -> CpuSlot {
        let nodes: IdSet = nodes.iter().copied().collect();
        CpuSlot { cpus: IdSet::from([0]), nodes, policy, threads: 1, pages: MemoryPages::Default }
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_does_not_fit_is_refused_with_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("huge");
        fs::File::create(&file).and_then(|file| file.set_len(1 << 42)).expect("a sparse file");
        let mut invocation = parse_command(&words("tool {reads}")).expect("a template");
        invocation.index = Some(AlignerIndex { files: vec![file], loading: IndexLoading::Private, made_by: None });
        let cpu_slots = [cpu_slot(&[0], None), cpu_slot(&[0], None)];
        let said = check_instances_fit_in_memory(&invocation, &cpu_slots, 0).expect_err("8 TiB").to_string();
        assert!(said.starts_with("2 instances of tool need 4194304 MiB of index and about 64 MiB"), "{said}");
        assert!(
            said.contains("do not fit")
                && said.ends_with("choose fewer instances or another memory policy with --strategy"),
            "{said}"
        );
        invocation.index = None;
        assert!(check_instances_fit_in_memory(&invocation, &cpu_slots, 1000).is_ok());
    }

    #[test]
    fn copies_of_a_process_that_is_gone_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let gone = (4_000_000..).find(|id| !Path::new(&format!("/proc/{id}")).exists()).expect("a number");
        let own = std::process::id();
        let made =
            [format!("{FOLDER_PREFIX}{gone}-0"), format!("{FOLDER_PREFIX}{own}-0"), format!("{FOLDER_PREFIX}x-0")];
        let made = made.map(|name| folder.path().join(name));
        for folder in &made {
            fs::create_dir(folder).expect("a folder");
            if let Err(refused) = mount(c"genuma", folder, c"tmpfs", MountFlags::NOSUID, c"size=64k") {
                let said = format!("skipped: copies_of_a_process_that_is_gone_are_removed: {refused}\n");
                let _ = io::Write::write_all(&mut io::stderr(), said.as_bytes());
                return;
            }
        }
        let plain = folder.path().join(format!("{FOLDER_PREFIX}{gone}-1"));
        fs::create_dir(&plain).expect("a folder");
        // A link that somebody created to a folder mounted elsewhere.
        let link = folder.path().join(format!("{FOLDER_PREFIX}{gone}-2"));
        symlink(&made[2], &link).expect("a link");
        fs::write(made[2].join("file"), "").expect("a file");
        remove_stale_replicas(folder.path()).expect("a folder that can be read");
        remove_replica(&link);
        let left = made.each_ref().map(|folder| folder.exists());
        let still_mounted = made[2].join("file").exists();
        made.iter().skip(1).for_each(|folder| remove_replica(folder));
        assert_eq!((left, plain.exists(), still_mounted), ([false, true, true], true, true));
    }

    #[test]
    fn a_copy_is_named_instead_of_the_index_and_goes_in_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let prefix = folder.path().join("g");
        let files: Vec<PathBuf> = ["1", "2", "3", "4", "rev.1", "rev.2"]
            .iter()
            .map(|part| folder.path().join(format!("g.{part}.bt2")))
            .collect();
        files.iter().for_each(|file| fs::write(file, "index").expect("a file"));
        let line = format!("bowtie2 --mm -x {} -U r.fq", prefix.display());
        let invocation = parse_command(&words(&line)).expect("a command");
        assert_eq!(invocation.index.as_ref().expect("an index").loading, IndexLoading::Mapped);
        let bound = [
            cpu_slot(&[0], Some(MemoryPolicy::Bind([0].into()))),
            cpu_slot(&[0], Some(MemoryPolicy::Bind([0].into()))),
        ];
        let strategy = Strategy { instances: 2, memory: InstanceMemoryPolicy::Bind };
        let prepared = replicate_index_if_mapped(&invocation, strategy, &bound).expect("copies or private loading");
        let command = prepared.invocations[1].build_instance_command(1, 0, &[]);
        let text: Vec<_> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        match prepared.replicas.0.as_slice() {
            // Both instances share the copy of their node.
            [copy] => {
                assert!(
                    text.contains(&"--mm".to_owned()) && text.contains(&copy.join("g").display().to_string()),
                    "{text:?}"
                );
                assert_eq!(fs::read(copy.join("g.rev.2.bt2")).expect("a copy"), b"index");
                let copy = copy.clone();
                drop(prepared);
                assert!(!copy.exists());
            }
            // Without the privilege to mount.
            [] => {
                assert!(!text.contains(&"--mm".to_owned()) && text.contains(&prefix.display().to_string()), "{text:?}");
                assert!(prepared.note.is_some_and(|note| note.contains("own memory")));
            }
            more => panic!("one copy for one node, not {more:?}"),
        }
        // No memory policy is requested.
        let plain = replicate_index_if_mapped(&invocation, Strategy::PLAIN_RUN, &[cpu_slot(&[0], None)])
            .expect("nothing to do");
        assert!(plain.note.is_none() && plain.invocations == [invocation]);
    }

    #[test]
    fn folders_and_prefixes_are_found_in_words() {
        let files = [PathBuf::from("/data/snap/Genome"), PathBuf::from("/data/snap/OverflowTable")];
        let moved = |word: &str| relocate_word(OsStr::new(word), Path::new("/data/snap"), Path::new("/n"), &files);
        assert_eq!(moved("/data/snap"), Some("/n".into()));
        assert_eq!(moved("/data/snap/"), Some("/n".into()));
        assert_eq!(moved("/data"), None);
        assert_eq!(moved("-t"), None);
    }
}
