//! The bandwidth kernels as plain loops. `x86.rs` compiles the same loops for wider vectors.

use std::hint::black_box;

use super::{CACHE_LINE_BYTES, STRIDE_BYTES};
use crate::profile::BandwidthKernel;

/// Remainder of the ring length divided by the stride in the strided kernel: the golden section of the stride, so that
/// the accesses of each lap lie between those of earlier laps.
const STRIDE_REMAINDER: usize = 624;

/// Runs a kernel that goes through the arrays from front to back. Non-temporal kernels use normal stores here. Returns
/// the sum of the bit patterns for read, else 0.
#[inline(always)]
pub(super) fn run_sequential_kernel(
    kernel: BandwidthKernel,
    a: &mut [f64],
    b: &mut [f64],
    c: &mut [f64],
    q: f64,
) -> u64 {
    match kernel {
        // A factor of one that is unknown to the compiler keeps this a loop of loads and stores. A plain copy would
        // become a call of memcpy, which bypasses the caches for large arrays.
        BandwidthKernel::Copy | BandwidthKernel::CopyNt => scale_into(c, a, black_box(1.0)),
        BandwidthKernel::Scale => scale_into(b, c, q),
        BandwidthKernel::Add => add_scaled_into(c, a, b, black_box(1.0)),
        BandwidthKernel::Triad => add_scaled_into(a, b, c, q),
        BandwidthKernel::Read => return sum_bit_patterns(a),
        BandwidthKernel::Write | BandwidthKernel::WriteNt => fill(a, q),
        BandwidthKernel::Random | BandwidthKernel::Strided => {}
    }
    0
}

#[inline(always)]
fn scale_into(to: &mut [f64], from: &[f64], q: f64) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = q * from;
    }
}

#[inline(always)]
fn add_scaled_into(to: &mut [f64], x: &[f64], y: &[f64], q: f64) {
    for ((to, x), y) in to.iter_mut().zip(x).zip(y) {
        *to = x + q * y;
    }
}

#[inline(always)]
fn fill(to: &mut [f64], q: f64) {
    for to in to {
        *to = q;
    }
}

/// Sum of the bit patterns. Unlike a floating-point sum, this sum does not depend on the order, so the compiler can
/// vectorise it.
#[inline(always)]
pub(super) fn sum_bit_patterns(from: &[f64]) -> u64 {
    from.iter().fold(0, |sum, x| sum.wrapping_add(x.to_bits()))
}

/// Reads the first elements of randomly chosen cache lines (with repeats). Reads as many lines as the array has.
/// Returns the sum of the bit patterns of the elements.
pub(super) fn read_random_cache_lines(from: &[f64], seed: u64) -> u64 {
    let elements = CACHE_LINE_BYTES / size_of::<f64>();
    let lines = (from.len() / elements) as u64;
    // Knuth's linear congruential generator (MMIX): one multiplication per step; its upper half is random enough.
    let mut state = seed;
    let mut sum = 0u64;
    for _ in 0..lines {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let line = (u128::from(state) * u128::from(lines)) >> 64;
        sum = sum.wrapping_add(from[line as usize * elements].to_bits());
    }
    sum
}

/// Increments one byte in every 1009 bytes of the array, taken as a ring (lenis2018, eq. 3.3). Increments as many bytes
/// as the array has cache lines. Returns the number of increments.
///
/// The function may turn an element into any other number, so no other kernel may depend on the values.
pub(super) fn increment_strided_bytes(array: &mut [f64]) -> u64 {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(array);
    let accesses = bytes.len() / CACHE_LINE_BYTES;
    let short = (bytes.len() + STRIDE_BYTES - STRIDE_REMAINDER) % STRIDE_BYTES;
    let ring = bytes.len().saturating_sub(short).max(1);
    let mut at = 0;
    for _ in 0..accesses {
        bytes[at] = bytes[at].wrapping_add(1);
        at += STRIDE_BYTES;
        while at >= ring {
            at -= ring;
        }
    }
    accesses as u64
}
