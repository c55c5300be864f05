//! What the kernel says of this process when it is called: where `/proc` is not mounted, as in a root with nothing but genuma in it.

// getrusage(2) fills a structure that is handed to it.
#![allow(unsafe_code)]

use crate::clock::ProcessCost;

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

/// What this process has cost so far. The memory may be that of the process that started it, which is why `/proc` is asked first.
pub fn cost() -> ProcessCost {
    let (cpu_s, peak_bytes) = usage(libc::RUSAGE_SELF);
    let (children_s, _) = usage(libc::RUSAGE_CHILDREN);
    ProcessCost { cpu_s, children_s, peak_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::process_cost;

    #[test]
    fn both_ways_tell_the_same() {
        let filled = vec![1_u8; 64 << 20];
        let sum: u64 = (0..20).flat_map(|_| &filled).map(|&byte| u64::from(std::hint::black_box(byte))).sum();
        assert_eq!(sum, 20 * 64 << 20);
        let (files, call) = (process_cost(), cost());
        assert!(call.cpu_s > 0.0 && (files.cpu_s - call.cpu_s).abs() < 0.5, "{files:?} {call:?}");
        assert!(
            call.peak_bytes + (4 << 20) >= files.peak_bytes && files.peak_bytes >= 64 << 20,
            "{files:?} {call:?}"
        );
    }
}
