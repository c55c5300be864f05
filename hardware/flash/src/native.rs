//! What the processor can do and safe Rust cannot ask for: fetching a line ahead, and instructions that not every processor has.
#![allow(unsafe_code)]

use crate::filter::{self, Block};

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

/// [`filter::add`] with the widest vectors there are.
pub fn add(blocks: &mut [Block], first: usize, all: usize, hashes: &[u64]) {
    #[cfg(target_arch = "x86_64")]
    {
        let avx2 = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi2");
        if avx2 && std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has these instructions.
            return unsafe { add_avx512(blocks, first, all, hashes) };
        }
        if avx2 {
            // SAFETY: the processor has these instructions.
            return unsafe { add_avx2(blocks, first, all, hashes) };
        }
    }
    filter::add(blocks, first, all, hashes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,bmi2")]
fn add_avx512(blocks: &mut [Block], first: usize, all: usize, hashes: &[u64]) {
    filter::add(blocks, first, all, hashes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn add_avx2(blocks: &mut [Block], first: usize, all: usize, hashes: &[u64]) {
    filter::add(blocks, first, all, hashes);
}

/// [`filter::sieve`] with the widest vectors there are.
pub fn sieve(blocks: &[Block], hashes: &[u64], may: &mut [bool]) {
    #[cfg(target_arch = "x86_64")]
    {
        let avx2 = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("bmi2");
        if avx2 && std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has these instructions.
            return unsafe { sieve_avx512(blocks, hashes, may) };
        }
        if avx2 {
            // SAFETY: the processor has these instructions.
            return unsafe { sieve_avx2(blocks, hashes, may) };
        }
    }
    filter::sieve(blocks, hashes, may);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,bmi2")]
fn sieve_avx512(blocks: &[Block], hashes: &[u64], may: &mut [bool]) {
    filter::sieve(blocks, hashes, may);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn sieve_avx2(blocks: &[Block], hashes: &[u64], may: &mut [bool]) {
    filter::sieve(blocks, hashes, may);
}
