//! What the processor can do and safe Rust cannot ask for: fetching a line ahead, and instructions that not every processor has.
#![allow(unsafe_code)]

use std::sync::OnceLock;

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

/// Whether two places start in one cache line of 64 bytes.
#[inline(always)]
pub fn in_one_line<T>(one: &T, other: &T) -> bool {
    (std::ptr::from_ref(one).addr() ^ std::ptr::from_ref(other).addr()) < 64
}

/// Sets of instructions, each with all of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
// Other processors have the first only.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
enum Set {
    /// What every processor of the kind has: SSE2 on x86-64, NEON on arm64.
    Plain,
    /// AVX2, and bits counted.
    Avx2,
    /// AVX-512 as of 2017 (Skylake).
    Avx512,
    /// AVX-512 as of 2019 (Ice Lake, Zen 4): bits counted and bytes moved in vectors.
    Avx512Bits,
}

/// A set of vector instructions that this processor has: loops are compiled for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vectors(Set);

impl Vectors {
    /// All that this processor has, the narrowest first.
    pub fn all() -> &'static [Vectors] {
        static ALL: OnceLock<Vec<Vectors>> = OnceLock::new();
        ALL.get_or_init(|| {
            #[allow(unused_mut)]
            let mut all = vec![Vectors(Set::Plain)];
            #[cfg(target_arch = "x86_64")]
            {
                use std::arch::is_x86_feature_detected as has;
                if has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt") {
                    all.push(Vectors(Set::Avx2));
                    if has!("avx512f") && has!("avx512bw") && has!("avx512vl") && has!("avx512dq") {
                        all.push(Vectors(Set::Avx512));
                        let bits = has!("avx512vpopcntdq") && has!("avx512bitalg");
                        if bits && has!("avx512vbmi") && has!("avx512vbmi2") {
                            all.push(Vectors(Set::Avx512Bits));
                        }
                    }
                }
            }
            all
        })
    }

    /// The widest that this processor has.
    pub fn widest() -> Vectors {
        Vectors::all()[Vectors::all().len() - 1]
    }

    /// Does `work` with these. What it calls has to be `#[inline(always)]`, and so has the closure itself, to be made for them.
    #[inline]
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
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
            fn avx512_bits<T>(work: impl FnOnce() -> T) -> T {
                work()
            }
            // SAFETY: the processor has these instructions, as only what `all` found is ever made.
            unsafe {
                match self.0 {
                    Set::Plain => {}
                    Set::Avx2 => return avx2(work),
                    Set::Avx512 => return avx512(work),
                    Set::Avx512Bits => return avx512_bits(work),
                }
            }
        }
        work()
    }
}

/// Does `work` with the widest vectors there are, as [`Vectors::run`] does.
#[inline]
pub fn widest(work: impl FnOnce()) {
    Vectors::widest().run(work);
}
