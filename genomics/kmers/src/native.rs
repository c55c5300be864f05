//! What the processor can do and safe Rust cannot ask for: instructions that not every processor has, and fetching a line ahead.
#![allow(unsafe_code)]

use crate::minimizer::Minimizers;
use crate::superkmer::{self, Codes, MAX_KMERS, Packed};

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

/// Makes a function that does what another does, with the widest vectors there are.
macro_rules! widest {
    ($(#[$doc:meta])* $name:ident = $work:path, ($($arg:ident: $kind:ty),*)) => {
        $(#[$doc])*
        pub fn $name($($arg: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi2")]
                fn avx512($($arg: $kind),*) {
                    $work($($arg),*);
                }
                #[target_feature(enable = "avx2,bmi2")]
                fn avx2($($arg: $kind),*) {
                    $work($($arg),*);
                }
                use std::arch::is_x86_feature_detected as has;
                if has!("avx2") && has!("bmi2") {
                    if has!("avx512f") && has!("avx512bw") && has!("avx512vl") {
                        // SAFETY: the processor has these instructions.
                        return unsafe { avx512($($arg),*) };
                    }
                    // SAFETY: the processor has these instructions.
                    return unsafe { avx2($($arg),*) };
                }
            }
            $work($($arg),*);
        }
    };
}

widest!(
    /// [`Minimizers::find_scalar`].
    find = Minimizers::find_scalar, (minimizers: &mut Minimizers, read: &Packed<'_>, start: usize, bases: usize)
);
widest!(
    /// [`Codes::load_scalar`].
    load = Codes::load_scalar, (codes: &mut Codes, seq: &[u8], qual: &[u8], lowest: u8)
);
widest!(
    /// [`superkmer::keys_scalar`].
    keys = superkmer::keys_scalar, (keys: &mut [u64; MAX_KMERS], word: u128, kmers: usize, k: u32)
);
