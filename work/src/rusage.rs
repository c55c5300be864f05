//! Resource usage by getrusage(2), for systems where `/proc` is not mounted.

// getrusage(2) fills a structure through a pointer.
#![allow(unsafe_code)]

/// CPU time in seconds and peak resident memory in bytes of `who`: `RUSAGE_SELF` (this process) or `RUSAGE_CHILDREN`
/// (the largest child).
fn get_rusage(who: libc::c_int) -> (f64, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid, writable rusage; all-zero bytes are a valid value in case the call fails.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss.max(0) as u64 * 1024)
}

/// CPU time in seconds of all threads of this process, and its peak resident memory in bytes. The kernel may report
/// the memory of the parent process instead, so `/proc` is preferred where it is available.
pub(crate) fn own_usage() -> (f64, u64) {
    get_rusage(libc::RUSAGE_SELF)
}

/// CPU time in seconds of terminated child processes that this process has waited for.
pub(crate) fn children_cpu_s() -> f64 {
    get_rusage(libc::RUSAGE_CHILDREN).0
}
