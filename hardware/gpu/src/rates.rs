//! How fast a device is: copies to it and from it, and changes at random places of its memory.
//!
//! `unsafe` is for starting a kernel: it is given the table whose size it is told.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use crate::{Arg, Device, Error};

/// Best of a few repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rates {
    /// Pinned memory of the host to the device, GB/s.
    pub to_gbs: f64,
    /// And back, GB/s.
    pub from_gbs: f64,
    /// Atomic changes of 64-bit words at random places of a table, millions a second.
    pub random_mops: f64,
    /// Bytes of the table, and of what was copied.
    pub bytes: u64,
}

/// Bytes that are copied, and of the table; less where the device has less.
const MOST: u64 = 64 << 20;
const REPETITIONS: u32 = 3;
const ITEMS: usize = 1 << 14;
const GROUP: usize = 64;

/// Measures a device, which takes a fraction of a second and the time of a compilation.
///
/// # Errors
/// The device fails, or has no 64-bit atomics.
pub fn rates(device: &Arc<Device>) -> Result<Rates, Error> {
    if !device.described().atomics {
        let what = "it has no 64-bit atomics (cl_khr_int64_base_atomics)".into();
        return Err(Error::Unfit { device: device.described().name.clone(), what });
    }
    let most = MOST.min(device.memory() / 4).min(device.described().largest).max(1 << 16);
    let bits = most.ilog2() - 3;
    let bytes = 8usize << bits;
    let lane = device.lane()?;
    let (mut table, mut staging) = (lane.memory(bytes)?, lane.staging(bytes)?);
    let kernel = lane.kernel(include_str!("rates.cl"), "", "scattered")?;
    staging.fill(0);
    let mut best = [f64::INFINITY; 3];
    let mut timed = |which: usize, work: &mut dyn FnMut() -> Result<(), Error>| {
        let start = Instant::now();
        work()?;
        best[which] = best[which].min(start.elapsed().as_secs_f64().max(1e-9));
        Ok::<(), Error>(())
    };
    // As many as take a processor some hundredths of a second.
    let steps = 256u32;
    for _ in 0..REPETITIONS {
        timed(0, &mut || lane.write(&mut table, &staging))?;
        timed(1, &mut || {
            let args = [Arg::Memory(&table), Arg::U32(bits), Arg::U32(steps)];
            // SAFETY: the kernel has these arguments, and places of `bits` bits lie within the table.
            unsafe { lane.start(&kernel, &args, ITEMS / GROUP, GROUP)? };
            lane.wait()
        })?;
        timed(2, &mut || lane.read(&table, &mut staging))?;
    }
    let [to, random, from] = best;
    let all = bytes as f64;
    Ok(Rates {
        to_gbs: all / to / 1e9,
        from_gbs: all / from / 1e9,
        random_mops: f64::from(steps) * ITEMS as f64 / random / 1e6,
        bytes: bytes as u64,
    })
}
