//! What the kernel says of this process when it is called: where `/proc` is not mounted, as in a root with nothing but genuma in it.

// getrusage(2) fills a structure that is handed to it.
#![allow(unsafe_code)]

/// Seconds of processor time of those that `who` names, and the highest resident memory of one of them in bytes.
fn usage(who: libc::c_int) -> (f64, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is ours to write; zeroes, of which it is made, are valid should the call fail.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss.max(0) as u64 * 1024)
}

/// Of this process, all threads. The memory may be that of the process that started it, which is why `/proc` is asked first.
pub fn own() -> (f64, u64) {
    usage(libc::RUSAGE_SELF)
}

/// Seconds of processor time of child processes that it has waited for.
pub fn children_s() -> f64 {
    usage(libc::RUSAGE_CHILDREN).0
}
