//! The bandwidth kernels for AVX2 and AVX-512. Non-temporal stores exist as intrinsics only. The kernels over two and
//! three arrays alternate between the arrays vector by vector, as C compilers generate these loops. LLVM would
//! process several vectors of one array, then of the next, which on Zen 4 moves 9% less than C with 512-bit vectors
//! and 19% more with 256-bit vectors. The other kernels are the scalar loops compiled for wider vectors.
// `unsafe` because the compiler does not know which instructions the machine has, and because vector loads and stores
// take pointers.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    _mm_sfence, _mm256_add_pd, _mm256_loadu_pd, _mm256_mul_pd, _mm256_set1_pd, _mm256_storeu_pd, _mm256_stream_pd,
    _mm512_add_pd, _mm512_loadu_pd, _mm512_mul_pd, _mm512_set1_pd, _mm512_storeu_pd, _mm512_stream_pd,
};
use std::hint::black_box;

use super::scalar;
use crate::profile::BandwidthKernel;

/// Runs a sequential kernel with 256-bit vectors.
pub(super) fn run_sequential_kernel_avx2(
    kernel: BandwidthKernel,
    a: &mut [f64],
    b: &mut [f64],
    c: &mut [f64],
    q: f64,
) -> u64 {
    assert!(is_x86_feature_detected!("avx2"));
    // SAFETY: the machine has AVX2, as asserted above.
    unsafe { with_avx2(kernel, a, b, c, q) }
}

/// Runs a sequential kernel with 512-bit vectors.
pub(super) fn run_sequential_kernel_avx512(
    kernel: BandwidthKernel,
    a: &mut [f64],
    b: &mut [f64],
    c: &mut [f64],
    q: f64,
) -> u64 {
    assert!(is_x86_feature_detected!("avx512f"));
    // SAFETY: the machine has AVX-512F, as asserted above.
    unsafe { with_avx512(kernel, a, b, c, q) }
}

/// Defines the kernels of one instruction set: loops over vectors with `$lanes` elements, non-temporal stores of such
/// vectors, and the scalar loops for read and write.
macro_rules! kernels {
    (
        $feature:literal, $lanes:literal, $load:ident, $set:ident, $store:ident, $keep:ident, $mul:ident, $add:ident;
        $all:ident, $write:ident, $copy:ident, $map:ident, $combine:ident
    ) => {
        #[target_feature(enable = $feature)]
        fn $all(kernel: BandwidthKernel, a: &mut [f64], b: &mut [f64], c: &mut [f64], q: f64) -> u64 {
            match kernel {
                BandwidthKernel::WriteNt => $write(a, q),
                BandwidthKernel::CopyNt => $copy(c, a),
                // A factor of one that is unknown to the compiler, as in `scalar.rs`.
                BandwidthKernel::Copy => $map(c, a, black_box(1.0)),
                BandwidthKernel::Scale => $map(b, c, q),
                BandwidthKernel::Add => $combine(c, a, b, black_box(1.0)),
                BandwidthKernel::Triad => $combine(a, b, c, q),
                _ => return scalar::run_sequential_kernel(kernel, a, b, c, q),
            }
            0
        }

        #[target_feature(enable = $feature)]
        fn $write(to: &mut [f64], q: f64) {
            let (head, vectors, tail) = split_at_alignment::<$lanes>(to);
            head.fill(q);
            for vector in vectors {
                // SAFETY: `vector` is as large as a vector register and aligned to its size (`split_at_alignment`).
                unsafe { $store(vector.as_mut_ptr(), $set(q)) };
            }
            tail.fill(q);
            _mm_sfence();
        }

        #[target_feature(enable = $feature)]
        fn $copy(to: &mut [f64], from: &[f64]) {
            let length = to.len().min(from.len());
            let (head, vectors, tail) = split_at_alignment::<$lanes>(&mut to[..length]);
            let (first, rest) = from[..length].split_at(head.len());
            let (middle, last) = rest.split_at(vectors.len() * $lanes);
            head.copy_from_slice(first);
            for (vector, from) in vectors.iter_mut().zip(middle.as_chunks::<$lanes>().0) {
                // SAFETY: both are as large as a vector register; the store's target is aligned to its size
                // (`split_at_alignment`), and the load needs no alignment.
                unsafe { $store(vector.as_mut_ptr(), $load(from.as_ptr())) };
            }
            tail.copy_from_slice(last);
            _mm_sfence();
        }

        #[target_feature(enable = $feature)]
        fn $map(to: &mut [f64], from: &[f64], q: f64) {
            let length = to.len().min(from.len());
            let (to, to_rest) = to[..length].as_chunks_mut::<$lanes>();
            let (from, from_rest) = from[..length].as_chunks::<$lanes>();
            for (to, from) in to.iter_mut().zip(from) {
                // SAFETY: both are as large as a vector register, and neither load nor store needs alignment.
                unsafe { $keep(to.as_mut_ptr(), $mul($set(q), $load(from.as_ptr()))) };
            }
            for (to, from) in to_rest.iter_mut().zip(from_rest) {
                *to = q * from;
            }
        }

        #[target_feature(enable = $feature)]
        fn $combine(to: &mut [f64], x: &[f64], y: &[f64], q: f64) {
            let length = to.len().min(x.len()).min(y.len());
            let (to, to_rest) = to[..length].as_chunks_mut::<$lanes>();
            let (x, x_rest) = x[..length].as_chunks::<$lanes>();
            let (y, y_rest) = y[..length].as_chunks::<$lanes>();
            for ((to, x), y) in to.iter_mut().zip(x).zip(y) {
                // SAFETY: all are as large as a vector register, and neither loads nor store need alignment.
                unsafe {
                    let scaled = $mul($set(q), $load(y.as_ptr()));
                    $keep(to.as_mut_ptr(), $add($load(x.as_ptr()), scaled));
                }
            }
            for ((to, x), y) in to_rest.iter_mut().zip(x_rest).zip(y_rest) {
                *to = x + q * y;
            }
        }
    };
}

kernels!(
    "avx2", 4, _mm256_loadu_pd, _mm256_set1_pd, _mm256_stream_pd, _mm256_storeu_pd, _mm256_mul_pd, _mm256_add_pd;
    with_avx2, write_avx2, copy_avx2, map_avx2, combine_avx2
);
kernels!(
    "avx512f", 8, _mm512_loadu_pd, _mm512_set1_pd, _mm512_stream_pd, _mm512_storeu_pd, _mm512_mul_pd, _mm512_add_pd;
    with_avx512, write_avx512, copy_avx512, map_avx512, combine_avx512
);

/// Splits `numbers` into the elements before the first vector-aligned address, whole aligned vectors, and the
/// remaining elements.
fn split_at_alignment<const LANES: usize>(numbers: &mut [f64]) -> (&mut [f64], &mut [[f64; LANES]], &mut [f64]) {
    let before = numbers.as_ptr().align_offset(LANES * size_of::<f64>()).min(numbers.len());
    let (head, rest) = numbers.split_at_mut(before);
    let (vectors, tail) = rest.as_chunks_mut::<LANES>();
    (head, vectors, tail)
}
