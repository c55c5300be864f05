//! Processor features that need `unsafe`: cache prefetching and running code compiled for SIMD instruction sets that
//! only some processors have.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Prefetches the cache line that holds the first byte of `value` into all cache levels. Does nothing on processors
/// other than x86-64.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no observable effect, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Whether `one` and `other` start in the same 64-byte cache line.
#[inline(always)]
pub fn do_both_start_in_same_cache_line<T>(one: &T, other: &T) -> bool {
    (std::ptr::from_ref(one).addr() ^ std::ptr::from_ref(other).addr()) < 64
}

/// Instruction sets, ordered: each set includes all sets before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
// Processors other than x86-64 have `Baseline` only.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
enum InstructionSet {
    /// Instructions that every processor of the architecture has: SSE2 on x86-64, NEON on arm64.
    Baseline,
    /// AVX2, BMI1, BMI2, POPCNT and LZCNT.
    Avx2,
    /// AVX-512 F, BW, VL and DQ (Intel Skylake, 2017).
    Avx512,
    /// AVX-512 with VPOPCNTDQ, BITALG, VBMI and VBMI2 (Intel Ice Lake 2019, AMD Zen 4): per-lane bit counts and byte
    /// permutations.
    Avx512Vbmi,
}

/// A SIMD instruction set that this processor supports. [`SimdLevel::run_at_level`] runs a closure compiled for the
/// set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SimdLevel(InstructionSet);

impl SimdLevel {
    /// All instruction sets that this processor supports, the narrowest first.
    pub fn available_simd_levels() -> &'static [SimdLevel] {
        static ALL: OnceLock<Vec<SimdLevel>> = OnceLock::new();
        ALL.get_or_init(|| {
            #[allow(unused_mut)]
            let mut all = vec![SimdLevel(InstructionSet::Baseline)];
            #[cfg(target_arch = "x86_64")]
            {
                use std::arch::is_x86_feature_detected as has;
                if has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt") {
                    all.push(SimdLevel(InstructionSet::Avx2));
                    if has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512dq") {
                        all.push(SimdLevel(InstructionSet::Avx512));
                        let bits = has!("avx512vpopcntdq") && has!("avx512bitalg");
                        if bits && has!("avx512vbmi") && has!("avx512vbmi2") {
                            all.push(SimdLevel(InstructionSet::Avx512Vbmi));
                        }
                    }
                }
            }
            all
        })
    }

    /// The widest instruction set that this processor supports.
    pub fn widest_available() -> SimdLevel {
        SimdLevel::available_simd_levels()[SimdLevel::available_simd_levels().len() - 1]
    }

    /// Runs `work` compiled for this instruction set. The closure and every function it calls must be
    /// `#[inline(always)]`, otherwise they are compiled for the baseline.
    #[inline]
    pub fn run_at_level<T>(self, work: impl FnOnce() -> T) -> T {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
            fn avx2<T>(work: impl FnOnce() -> T) -> T {
                work()
            }
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt,lzcnt")]
            fn avx512<T>(work: impl FnOnce() -> T) -> T {
                work()
            }
            #[target_feature(enable = "avx512vpopcntdq,avx512bitalg,avx512vbmi,avx512vbmi2")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt,lzcnt")]
            fn avx512_vbmi<T>(work: impl FnOnce() -> T) -> T {
                work()
            }
            // SAFETY: the processor has these instructions, because only `available_simd_levels` creates a `SimdLevel`.
            unsafe {
                match self.0 {
                    InstructionSet::Baseline => {}
                    InstructionSet::Avx2 => return avx2(work),
                    InstructionSet::Avx512 => return avx512(work),
                    InstructionSet::Avx512Vbmi => return avx512_vbmi(work),
                }
            }
        }
        work()
    }
}

/// Runs `work` compiled for the widest instruction set of this processor. See [`SimdLevel::run_at_level`].
#[inline]
pub fn run_with_widest_simd(work: impl FnOnce()) {
    SimdLevel::widest_available().run_at_level(work);
}
