//! The kernels as plain loops. `x86.rs` compiles the same loops once more for wider vectors.

use std::hint::black_box;

use super::{LINE, STRIDE};
use crate::profile::Kernel;

/// Bytes left over when the strided ring is divided by its step: the golden section of the step, so that lap after lap falls
/// between the accesses of earlier laps.
const OFFSET: usize = 624;

/// The kernels that go through arrays from front to back.
#[inline(always)]
pub fn stream(kernel: Kernel, a: &mut [f64], b: &mut [f64], c: &mut [f64], q: f64) -> u64 {
    match kernel {
        // A factor of one that the compiler does not know keeps this a loop of loads and stores: a plain copy would
        // become a call of memcpy, which goes past the caches when arrays are large.
        Kernel::Copy | Kernel::CopyNt => map(c, a, black_box(1.0)),
        Kernel::Scale => map(b, c, q),
        Kernel::Add => combine(c, a, b, black_box(1.0)),
        Kernel::Triad => combine(a, b, c, q),
        Kernel::Read => return sum(a),
        Kernel::Write | Kernel::WriteNt => fill(a, q),
        Kernel::Random | Kernel::Strided => {}
    }
    0
}

#[inline(always)]
fn map(to: &mut [f64], from: &[f64], q: f64) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = q * from;
    }
}

#[inline(always)]
fn combine(to: &mut [f64], x: &[f64], y: &[f64], q: f64) {
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

/// Sum of the bits: unlike that of the numbers it may be taken in any order, so in vectors.
#[inline(always)]
pub fn sum(from: &[f64]) -> u64 {
    from.iter().fold(0, |sum, x| sum.wrapping_add(x.to_bits()))
}

/// Reads the first element of as many lines as there are, in random order with repeats; their sum.
pub fn random(from: &[f64], seed: u64) -> u64 {
    let elements = LINE / size_of::<f64>();
    let lines = (from.len() / elements) as u64;
    // Knuth's linear congruential generator (MMIX): one multiplication a step, its upper half is random enough.
    let mut state = seed;
    let mut sum = 0u64;
    for _ in 0..lines {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let line = (u128::from(state) * u128::from(lines)) >> 64;
        sum = sum.wrapping_add(from[line as usize * elements].to_bits());
    }
    sum
}

/// Adds one to a byte in every 1009 of a ring (lenis2018, eq. 3.3), as often as there are lines; how often.
///
/// Numbers may turn into any other: nothing but this kernel should mind.
pub fn strided(array: &mut [f64]) -> u64 {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(array);
    let accesses = bytes.len() / LINE;
    let short = (bytes.len() + STRIDE - OFFSET) % STRIDE;
    let ring = bytes.len().saturating_sub(short).max(1);
    let mut at = 0;
    for _ in 0..accesses {
        bytes[at] = bytes[at].wrapping_add(1);
        at += STRIDE;
        while at >= ring {
            at -= ring;
        }
    }
    accesses as u64
}
