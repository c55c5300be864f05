//! The memory that instances need: whether it is there, and copies of an index that is mapped from its files.
//!
//! The pages of a mapped file lie where the process was that first read it, whatever the policies of those that map it. So instances that want
//! their index on their own nodes get a copy in a file system in memory (tmpfs) that is bound to these nodes, if this process may mount one.
//! Otherwise they are told to read the index into memory of their own, which follows their policy.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use genuma_machine::IdSet;
use genuma_machine::placement::{self, Policy};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::invocation::{Index, Invocation, Loading, Piece, Word};
use crate::layout::Seat;
use crate::strategy::{Memory, Strategy};

/// Memory of a thread (bytes) beside the index: buffers of reads and records, tables of the aligner.
const OF_THREAD: u64 = 64 << 20;
/// Bytes for a base (bp) of a block: an aligner holds a block that it reads, one that it answers and the records of one, and genuma the
/// text of two.
const OF_BASE: u64 = 16;

/// What folders of copies are called; the process and some letters follow.
const NAME: &str = "genuma-index-";

/// How a copy goes: at once, and never what a link of its name points to, which somebody else may have put there.
const GONE: UnmountFlags = UnmountFlags::DETACH.union(UnmountFlags::NOFOLLOW);

/// Copies of indexes of this process.
static MOUNTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn mounted() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    MOUNTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all copies of this process: for one that ends without dropping its values.
pub fn remove_all() {
    std::mem::take(&mut *mounted()).iter().for_each(|folder| remove(folder));
}

fn remove(folder: &Path) {
    // The memory is given back when the last instance that maps it is gone.
    let _ = unmount(folder, GONE);
    let _ = fs::remove_dir(folder);
}

/// Why instances cannot have their memory.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is too little of it.
    #[error("{instances} of {aligner} need {}: {refused}; choose fewer instances, or another strategy", parts(*index, *working))]
    TooLarge {
        /// How many instances, in words.
        instances: String,
        /// The aligner.
        aligner: String,
        /// Bytes of an index.
        index: u64,
        /// Bytes that an instance needs besides.
        working: u64,
        /// What does not fit where.
        refused: Box<placement::Error>,
    },
    /// The index cannot be looked at.
    #[error(transparent)]
    Index(#[from] crate::invocation::Error),
    /// The index cannot be copied.
    #[error("{path}: cannot copy the index into memory: {source}")]
    Copy {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

fn parts(index: u64, working: u64) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    format!("{} MiB of index and about {} MiB of working memory each", mib(index), mib(working))
}

/// Copies of an index; removed when dropped.
#[derive(Debug, Default)]
pub struct Replicas(Vec<PathBuf>);

impl Drop for Replicas {
    fn drop(&mut self) {
        for folder in &self.0 {
            if mounted().remove(folder) {
                remove(folder);
            }
        }
    }
}

/// Refuses instances that do not fit into the memory that is free. `block` is the size (bp) of a block.
///
/// # Errors
/// They do not fit, or the index is not there.
pub fn fit(invocation: &Invocation, seats: &[Seat], block: u64) -> Result<(), Error> {
    let index = invocation.index.as_ref().map_or(Ok(0), Index::bytes)?;
    let policies: BTreeSet<String> = seats.iter().map(policy_text).collect();
    for policy in policies {
        let alike: Vec<&Seat> = seats.iter().filter(|seat| policy_text(seat) == policy).collect();
        let working = |seat: &Seat| seat.threads as u64 * OF_THREAD + block.saturating_mul(OF_BASE);
        let bytes = alike.iter().map(|seat| index.saturating_add(working(seat))).fold(0, u64::saturating_add);
        let policy = alike[0].policy.clone().unwrap_or(Policy::Local);
        placement::fits(bytes, &policy).map_err(|refused| Error::TooLarge {
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

fn policy_text(seat: &Seat) -> String {
    seat.policy.as_ref().map_or_else(String::new, Policy::to_string)
}

/// What each instance is to be called with, the copies that these commands name, and a word on what was done, if there is one.
pub struct Prepared {
    /// For each seat.
    pub invocations: Vec<Invocation>,
    /// To be kept until all instances are gone.
    pub replicas: Replicas,
    /// What was done about a mapped index.
    pub note: Option<String>,
}

/// Sees to it that the index of each instance can lie where `strategy` wants it.
///
/// # Errors
/// The index cannot be read, or its copies do not fit.
pub fn prepare(invocation: &Invocation, strategy: Strategy, seats: &[Seat]) -> Result<Prepared, Error> {
    let same = || vec![invocation.clone(); seats.len()];
    let index = match &invocation.index {
        Some(index) if index.loading == Loading::Mapped && strategy.memory != Memory::Default => index,
        _ => return Ok(Prepared { invocations: same(), replicas: Replicas::default(), note: None }),
    };
    let wanted = |seat: &Seat| seat.policy.clone();
    if seats.iter().all(|seat| wanted(seat).is_none()) {
        return Ok(Prepared { invocations: same(), replicas: Replicas::default(), note: None });
    }
    let mut replicas = Replicas::default();
    let mut made: Vec<(String, Invocation)> = Vec::new();
    let mut invocations = Vec::new();
    for seat in seats {
        let options = mount_policy(wanted(seat).as_ref(), &seat.nodes);
        if let Some((_, invocation)) = made.iter().find(|(known, _)| *known == options) {
            invocations.push(invocation.clone());
            continue;
        }
        let bytes = index.bytes()?;
        match bound_folder(&options, bytes, &mut replicas) {
            Ok(folder) => {
                let policy = wanted(seat).unwrap_or(Policy::Local);
                placement::fits(bytes, &policy).map_err(|refused| Error::TooLarge {
                    instances: "a copy of the index".to_owned(),
                    aligner: invocation.aligner.clone(),
                    index: bytes,
                    working: 0,
                    refused: Box::new(refused),
                })?;
                let copied = copied(invocation, index, &folder)?;
                made.push((options, copied.clone()));
                invocations.push(copied);
            }
            Err(refused) => {
                let note = format!(
                    "the index is read into each instance's own memory instead of being mapped: no copy can be bound to nodes ({refused})"
                );
                let invocations = vec![unmapped(invocation); seats.len()];
                return Ok(Prepared { invocations, replicas: Replicas::default(), note: Some(note) });
            }
        }
    }
    let note = Some(format!("the mapped index was copied {} times, into memory of its nodes", made.len()));
    Ok(Prepared { invocations, replicas, note })
}

/// The option of tmpfs for a policy (tmpfs(5), `mpol`).
fn mount_policy(policy: Option<&Policy>, nodes: &IdSet) -> String {
    match policy {
        Some(Policy::Interleave(nodes)) | Some(Policy::KernelWeighted(nodes)) => {
            format!("mpol=interleave:{nodes}")
        }
        Some(Policy::Bind(nodes)) => format!("mpol=bind:{nodes}"),
        _ => format!("mpol=bind:{nodes}"),
    }
}

/// Removes copies in `folder` whose process is gone: one that was killed outright leaves its memory taken. Only what is mounted here is touched:
/// a process of another container may have a number that says nothing here.
fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(NAME)?.split_once('-')).map(|(id, _)| id);
        let numbered = owner.filter(|id| id.parse::<u32>().is_ok());
        if numbered.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let folder = entry.path();
            if unmount(&folder, GONE).is_ok() {
                let _ = fs::remove_dir(folder);
            }
        }
    }
    Ok(())
}

/// A new folder of a file system in memory.
fn bound_folder(policy: &str, bytes: u64, replicas: &mut Replicas) -> io::Result<PathBuf> {
    let folder = std::env::temp_dir();
    sweep(&folder)?;
    // Nobody can have made something of that name before.
    let folder =
        tempfile::Builder::new().prefix(&format!("{NAME}{}-", std::process::id())).tempdir_in(folder)?.keep();
    // A little more than the files, for what the file system itself needs.
    let options = format!("{policy},mode=0700,size={}", bytes + bytes / 64 + (1 << 20));
    let options = CString::new(options).map_err(io::Error::other)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if let Err(refused) = mount(c"genuma", &folder, c"tmpfs", flags, options.as_c_str()) {
        fs::remove_dir(&folder)?;
        return Err(refused.into());
    }
    mounted().insert(folder.clone());
    replicas.0.push(folder.clone());
    Ok(folder)
}

/// Copies the index and names the copy in the command.
fn copied(invocation: &Invocation, index: &Index, folder: &Path) -> Result<Invocation, Error> {
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
        if let [Piece::Text(text)] = word.0.as_slice()
            && let Some(text) = moved(text, &old, folder, &index.files)
        {
            *word = Word::plain(text);
        }
    }
    invocation.index = Some(Index { files, ..index.clone() });
    Ok(invocation)
}

/// A word that names the index, be it by a prefix of its files' names or by their folder, with another folder.
fn moved(word: &OsStr, old: &Path, new: &Path, files: &[PathBuf]) -> Option<OsString> {
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

/// The same with an index in memory of its own.
fn unmapped(invocation: &Invocation) -> Invocation {
    let mut invocation = invocation.clone();
    match invocation.aligner.as_str() {
        "bowtie2" => invocation.words.retain(|word| *word != Word::plain("--mm")),
        aligner if aligner.starts_with("snap-aligner") => {
            invocation.words.retain(|word| *word != Word::plain("-map"));
            invocation.words.push(Word::plain(OsString::from_vec(b"-map-".to_vec())));
        }
        _ => {}
    }
    if let Some(index) = &mut invocation.index {
        index.loading = Loading::Private;
    }
    invocation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::understand;
    use std::os::unix::fs::symlink;

    fn seat(nodes: &[u32], policy: Option<Policy>) -> Seat {
        let nodes: IdSet = nodes.iter().copied().collect();
        Seat { cpus: IdSet::from([0]), nodes, policy, threads: 1 }
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_does_not_fit_is_refused_with_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("huge");
        fs::File::create(&file).and_then(|file| file.set_len(1 << 42)).expect("a sparse file");
        let mut invocation = understand(&words("tool {reads}")).expect("a template");
        invocation.index = Some(Index { files: vec![file], loading: Loading::Private, made_by: None });
        let seats = [seat(&[0], None), seat(&[0], None)];
        let said = fit(&invocation, &seats, 0).expect_err("8 TiB").to_string();
        assert!(said.starts_with("2 instances of tool need 4194304 MiB of index and about 64 MiB"), "{said}");
        assert!(
            said.contains("do not fit") && said.ends_with("choose fewer instances, or another strategy"),
            "{said}"
        );
        invocation.index = None;
        assert!(fit(&invocation, &seats, 1000).is_ok());
    }

    #[test]
    fn copies_of_a_process_that_is_gone_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let gone = (4_000_000..).find(|id| !Path::new(&format!("/proc/{id}")).exists()).expect("a number");
        let own = std::process::id();
        let made = [format!("{NAME}{gone}-0"), format!("{NAME}{own}-0"), format!("{NAME}x-0")];
        let made = made.map(|name| folder.path().join(name));
        for folder in &made {
            fs::create_dir(folder).expect("a folder");
            if let Err(refused) = mount(c"genuma", folder, c"tmpfs", MountFlags::NOSUID, c"size=64k") {
                let said = format!("skipped: copies_of_a_process_that_is_gone_are_removed: {refused}\n");
                let _ = io::Write::write_all(&mut io::stderr(), said.as_bytes());
                return;
            }
        }
        let plain = folder.path().join(format!("{NAME}{gone}-1"));
        fs::create_dir(&plain).expect("a folder");
        // A link that somebody made to what is mounted elsewhere.
        let link = folder.path().join(format!("{NAME}{gone}-2"));
        symlink(&made[2], &link).expect("a link");
        fs::write(made[2].join("file"), "").expect("a file");
        sweep(folder.path()).expect("a folder that can be read");
        remove(&link);
        let left = made.each_ref().map(|folder| folder.exists());
        let still_mounted = made[2].join("file").exists();
        made.iter().skip(1).for_each(|folder| remove(folder));
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
        let invocation = understand(&words(&line)).expect("a command");
        assert_eq!(invocation.index.as_ref().expect("an index").loading, Loading::Mapped);
        let bound = [seat(&[0], Some(Policy::Bind([0].into()))), seat(&[0], Some(Policy::Bind([0].into())))];
        let strategy = Strategy { instances: 2, memory: Memory::Bind };
        let prepared = prepare(&invocation, strategy, &bound).expect("copies or private loading");
        let command = prepared.invocations[1].command(1, 0, &[]);
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
            // Not privileged.
            [] => {
                assert!(
                    !text.contains(&"--mm".to_owned()) && text.contains(&prefix.display().to_string()),
                    "{text:?}"
                );
                assert!(prepared.note.is_some_and(|note| note.contains("own memory")));
            }
            more => panic!("one copy for one node, not {more:?}"),
        }
        // Nothing is asked of the memory.
        let plain = prepare(&invocation, Strategy::PLAIN, &[seat(&[0], None)]).expect("nothing to do");
        assert!(plain.note.is_none() && plain.invocations == [invocation]);
    }

    #[test]
    fn folders_and_prefixes_are_found_in_words() {
        let files = [PathBuf::from("/data/snap/Genome"), PathBuf::from("/data/snap/OverflowTable")];
        let moved = |word: &str| moved(OsStr::new(word), Path::new("/data/snap"), Path::new("/n"), &files);
        assert_eq!(moved("/data/snap"), Some("/n".into()));
        assert_eq!(moved("/data/snap/"), Some("/n".into()));
        assert_eq!(moved("/data"), None);
        assert_eq!(moved("-t"), None);
    }
}
