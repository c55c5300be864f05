//! Resource usage by getrusage(2) and wait4(2).

// getrusage(2) and wait4(2) fill structures through pointers.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Resources that one or several processes used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ResourceUsage {
    /// CPU time in user mode, s.
    pub user_cpu_s: f64,
    /// CPU time in the kernel, s.
    pub system_cpu_s: f64,
    /// Peak resident memory in bytes; for several processes, that of the process with the highest peak.
    pub max_resident_bytes: u64,
    /// Page faults without access to a disk.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// Voluntary context switches: a thread waited for something.
    pub voluntary_switches: u64,
    /// Involuntary context switches: the kernel took the CPU from a thread that could have run on.
    pub involuntary_switches: u64,
    /// Bytes read from disks; 0 if the kernel does not account for them.
    pub disk_read_bytes: u64,
    /// Bytes written to disks, including delayed writes; 0 if the kernel does not account for them.
    pub disk_write_bytes: u64,
}

/// Unit of `ru_inblock` and `ru_oublock` of getrusage(2), in bytes.
const BLOCK_BYTES: u64 = 512;

impl ResourceUsage {
    fn from_kernel(usage: &libc::rusage) -> ResourceUsage {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
        ResourceUsage {
            user_cpu_s: seconds(usage.ru_utime),
            system_cpu_s: seconds(usage.ru_stime),
            max_resident_bytes: count(usage.ru_maxrss) * 1024,
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            disk_read_bytes: count(usage.ru_inblock) * BLOCK_BYTES,
            disk_write_bytes: count(usage.ru_oublock) * BLOCK_BYTES,
        }
    }

    /// CPU time in user mode and in the kernel, s.
    pub fn total_cpu_s(&self) -> f64 {
        self.user_cpu_s + self.system_cpu_s
    }
}

/// Resource usage of `who`: `RUSAGE_SELF` (this process) or `RUSAGE_CHILDREN` (ended children).
fn get_rusage(who: libc::c_int) -> ResourceUsage {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid, writable rusage; all-zero bytes are a valid value in case the call fails.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    ResourceUsage::from_kernel(&usage)
}

/// Resource usage of all threads of this process. The kernel may report the peak memory of the parent process instead,
/// so `/proc` is preferred where it is available.
pub(crate) fn usage_of_this_process() -> ResourceUsage {
    get_rusage(libc::RUSAGE_SELF)
}

/// CPU time in seconds of terminated child processes that this process has waited for.
pub(crate) fn measure_children_cpu_s() -> f64 {
    get_rusage(libc::RUSAGE_CHILDREN).total_cpu_s()
}

/// Waits until the child process `id` ends. Returns its exit status and the resources used by the child and by those of
/// its own children that it waited for.
///
/// # Errors
/// There is no such child, for example because it has been waited for already.
pub fn wait_for_child(id: u32) -> io::Result<(ExitStatus, ResourceUsage)> {
    let mut status: libc::c_int = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: `status` and `usage` are valid and writable; all-zero bytes are a valid rusage.
        let (waited, usage) = unsafe {
            let waited = libc::wait4(id as libc::pid_t, &raw mut status, 0, usage.as_mut_ptr());
            (waited, usage.assume_init())
        };
        if waited >= 0 {
            return Ok((ExitStatus::from_raw(status), ResourceUsage::from_kernel(&usage)));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
