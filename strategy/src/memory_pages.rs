//! Size of the memory pages of a program that genuma starts: transparent huge pages or base pages.
//!
//! The program is unmodified. It inherits the request: an environment variable for the C library, and a flag of prctl(2)
//! for the kernel.
#![allow(unsafe_code)] // Code between fork and exec.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::disable_transparent_huge_pages;
use serde::Serialize;

/// Environment variable that sets options of the GNU C library.
const TUNABLES_VARIABLE: &str = "GLIBC_TUNABLES";
/// Name of the option that makes malloc(3) request transparent huge pages if its value is 1 (glibc 2.35).
const MALLOC_HUGE_PAGES_TUNABLE: &[u8] = b"glibc.malloc.hugetlb";
/// Time from the start of a program to the first sample of its memory. The interval doubles after each sample, because
/// the kernel needs more time for a program with more memory.
const FIRST_SAMPLING_INTERVAL: Duration = Duration::from_millis(100);

/// Size of the pages of a program's anonymous memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryPages {
    /// As the kernel and the program decide.
    #[default]
    Default,
    /// Transparent huge pages: malloc(3) of the GNU C library (2.35 and later) requests them with madvise(2), and a
    /// flag that forbids them (prctl(2), `PR_SET_THP_DISABLE`) is removed.
    Huge,
    /// Base pages only: the flag that forbids transparent huge pages is set. Processes that the program starts inherit
    /// it.
    Base,
}

impl MemoryPages {
    /// Makes the process that `command` starts, and its children, use these pages.
    pub(crate) fn apply_to_command(self, command: &mut Command) {
        let is_disabled = match self {
            MemoryPages::Default => return,
            MemoryPages::Huge => false,
            MemoryPages::Base => true,
        };
        if self == MemoryPages::Huge {
            let inherited = env::var_os(TUNABLES_VARIABLE).unwrap_or_default();
            command.env(TUNABLES_VARIABLE, with_malloc_huge_pages(&inherited));
        }
        let set_flag = move || -> io::Result<()> { Ok(disable_transparent_huge_pages(is_disabled)?) };
        // SAFETY: only one system call runs between fork and exec; nothing allocates or locks.
        unsafe { command.pre_exec(set_flag) };
    }
}

/// Returns the value of [`TUNABLES_VARIABLE`] (`name=value:name=value`) with huge pages for malloc(3) in addition.
fn with_malloc_huge_pages(tunables: &OsStr) -> OsString {
    let others = tunables.as_bytes().split(|&byte| byte == b':');
    let is_other = |tunable: &&[u8]| {
        !tunable.is_empty() && tunable.split(|&byte| byte == b'=').next() != Some(MALLOC_HUGE_PAGES_TUNABLE)
    };
    let own = [MALLOC_HUGE_PAGES_TUNABLE, b"=1"].concat();
    let all: Vec<&[u8]> = others.filter(is_other).chain([own.as_slice()]).collect();
    OsString::from_vec(all.join(&b':'))
}

/// Anonymous memory of a program, and how much of it is in transparent huge pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HugePageUse {
    /// Anonymous memory of all processes, bytes.
    pub anonymous_bytes: u64,
    /// Part of it in transparent huge pages, bytes.
    pub huge_bytes: u64,
}

impl HugePageUse {
    /// Returns the share of the anonymous memory that is in huge pages, 0 to 1.
    pub fn huge_share(&self) -> f64 {
        self.huge_bytes as f64 / self.anonymous_bytes.max(1) as f64
    }

    /// Sums the memory of these processes. `None` if the kernel reports it for none, for example because all have ended.
    fn of_processes(ids: &[u32]) -> Option<HugePageUse> {
        let of_process = |id: &u32| parse_smaps_rollup(&fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?);
        ids.iter().filter_map(of_process).reduce(|a, b| HugePageUse {
            anonymous_bytes: a.anonymous_bytes + b.anonymous_bytes,
            huge_bytes: a.huge_bytes + b.huge_bytes,
        })
    }
}

/// Parses a `smaps_rollup` file (proc_pid_smaps(5)).
fn parse_smaps_rollup(text: &str) -> Option<HugePageUse> {
    let bytes = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    Some(HugePageUse { anonymous_bytes: bytes("Anonymous")?, huge_bytes: bytes("AnonHugePages")? })
}

/// Samples the memory of a program while it runs. The sample with the most anonymous memory counts.
#[derive(Debug)]
pub(crate) struct HugePageSampler {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Option<HugePageUse>>,
}

impl HugePageSampler {
    /// Starts to sample the processes that `process_ids` returns. The calling thread must not be pinned to the CPUs of
    /// the program, because the new thread inherits its affinity. Returns `None` if no thread can be started: then there
    /// is no sample.
    pub(crate) fn start(process_ids: impl Fn() -> Vec<u32> + Send + 'static) -> Option<HugePageSampler> {
        let (stop, stopped) = mpsc::channel();
        let sample = move || {
            let mut largest: Option<HugePageUse> = None;
            let mut interval = FIRST_SAMPLING_INTERVAL;
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let found = HugePageUse::of_processes(&process_ids());
                largest = largest.into_iter().chain(found).max_by_key(|sample| sample.anonymous_bytes);
                interval *= 2;
            }
            largest
        };
        let thread = thread::Builder::new().name("huge pages".to_owned()).spawn(sample).ok()?;
        Some(HugePageSampler { stop, thread })
    }

    /// Stops sampling, and returns the largest sample. `None` if the program ended before the first sample, or the
    /// kernel does not report huge pages.
    pub(crate) fn finish(self) -> Option<HugePageUse> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tunables_are_kept() {
        for (before, after) in [
            ("", "glibc.malloc.hugetlb=1"),
            ("glibc.malloc.arena_max=1", "glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1"),
            (
                "glibc.malloc.hugetlb=0:glibc.malloc.arena_max=1:glibc.malloc.hugetlb=2",
                "glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1",
            ),
            ("glibc.malloc.hugetlb_x=3", "glibc.malloc.hugetlb_x=3:glibc.malloc.hugetlb=1"),
        ] {
            assert_eq!(with_malloc_huge_pages(OsStr::new(before)), OsStr::new(after), "{before}");
        }
    }

    #[test]
    fn huge_pages_are_read() {
        let text = "55d0-7fff ---p 00000000 00:00 0   [rollup]\nRss: 900 kB\nAnonymous:          8192 kB\n\
                    LazyFree:              0 kB\nAnonHugePages:      6144 kB\nShmemPmdMapped:        0 kB\n";
        let found = parse_smaps_rollup(text).expect("a sample");
        assert_eq!(found, HugePageUse { anonymous_bytes: 8 << 20, huge_bytes: 6 << 20 });
        assert_eq!(found.huge_share(), 0.75);
        assert_eq!(parse_smaps_rollup("Anonymous: 8 kB\n"), None);
    }

    #[test]
    fn the_largest_sample_counts() {
        let own = std::process::id();
        let sampler = HugePageSampler::start(move || vec![own]).expect("a thread");
        let block = vec![1_u8; 32 << 20];
        thread::sleep(4 * FIRST_SAMPLING_INTERVAL);
        let sample = sampler.finish().expect("a sample");
        assert!(sample.anonymous_bytes >= block.len() as u64 && sample.huge_bytes <= sample.anonymous_bytes);
    }
}
