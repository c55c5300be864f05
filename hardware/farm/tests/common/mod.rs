//! What the tests of the farm have in common.
#![allow(dead_code)] // Each test file uses its part.

use std::hint::black_box;

use genuma_farm::Seat;
use genuma_machine::placement::pin;

/// So many seats on the CPUs there are, over and over.
pub fn seats(workers: usize) -> Vec<Seat> {
    let cpus: Vec<u32> = pin::allowed().iter().collect();
    cpus.into_iter().cycle().take(workers).map(|cpu| Seat { cpu: Some(cpu), node: None }).collect()
}

/// The same seats, said to be on so many nodes.
pub fn seats_on(workers: usize, nodes: usize) -> Vec<Seat> {
    let on = |(i, seat): (usize, Seat)| Seat { node: Some((i % nodes) as u32), ..seat };
    seats(workers).into_iter().enumerate().map(on).collect()
}

/// One step of splitmix64: randomness from a seed.
pub fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Works for so many steps on a number; the result depends on every step.
pub fn toil(number: u64, steps: u64) -> u64 {
    (0..black_box(steps)).fold(number, |state, _| mix(state))
}
