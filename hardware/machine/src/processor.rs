//! What the processor can do and safe Rust cannot ask for: fetching a line ahead, and instructions that not every processor has.
#![allow(unsafe_code)]

/// Asks for the cache line that `place` starts in.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that shows, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Does `work` with the widest vectors there are. What it calls has to be `#[inline(always)]`, and so has the closure itself, to be made
/// for them.
#[inline]
pub fn widest(work: impl FnOnce()) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi2")]
        fn avx512(work: impl FnOnce()) {
            work();
        }
        #[target_feature(enable = "avx2,bmi2")]
        fn avx2(work: impl FnOnce()) {
            work();
        }
        use std::arch::is_x86_feature_detected as has;
        if has!("avx2") && has!("bmi2") {
            if has!("avx512f") && has!("avx512bw") && has!("avx512vl") {
                // SAFETY: the processor has these instructions.
                return unsafe { avx512(work) };
            }
            // SAFETY: the processor has these instructions.
            return unsafe { avx2(work) };
        }
    }
    work();
}
