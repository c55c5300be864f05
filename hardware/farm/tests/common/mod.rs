//! What the tests of the farm have in common.
#![allow(dead_code)] // Each test file uses its part.

use std::hint::black_box;

use genuma_farm::CpuSlot;
use genuma_machine::placement::pin;

/// Assigns `n` workers to the available CPUs, round-robin.
pub fn cpu_slots(workers: usize) -> Vec<CpuSlot> {
    let cpus: Vec<u32> = pin::allowed_cpus().iter().collect();
    cpus.into_iter().cycle().take(workers).map(|cpu| CpuSlot { cpu: Some(cpu), node: None }).collect()
}

/// The same CPU slots, with node numbers as if the machine had several nodes.
pub fn seats_on(workers: usize, nodes: usize) -> Vec<CpuSlot> {
    let on = |(i, cpu_slot): (usize, CpuSlot)| CpuSlot { node: Some((i % nodes) as u32), ..cpu_slot };
    cpu_slots(workers).into_iter().enumerate().map(on).collect()
}

/// One step of splitmix64: randomness from a seed.
pub fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Computes on a number for the given number of steps; the result depends on every step.
pub fn toil(number: u64, steps: u64) -> u64 {
    (0..black_box(steps)).fold(number, |state, _| mix(state))
}
