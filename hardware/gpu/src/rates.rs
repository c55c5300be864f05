//! Measures the speed of a device: copies to and from it, and atomic updates at random addresses of its memory.
//!
//! `unsafe` is needed to start a kernel: the caller must pass buffers of the size that the kernel expects.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use crate::{Device, Error, KernelArg};

/// Measured speed of a device: for each quantity the best of a few repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DeviceRates {
    /// Bandwidth of copies from pinned host memory to the device, in GB/s.
    #[serde(rename = "to_gbs")]
    pub copy_to_device_gbs: f64,
    /// Bandwidth of copies from the device to pinned host memory, in GB/s.
    #[serde(rename = "from_gbs")]
    pub copy_from_device_gbs: f64,
    /// Rate of atomic updates of 64-bit words at random positions of a table, in millions per second.
    #[serde(rename = "random_mops")]
    pub atomic_updates_mops: f64,
    /// Size in bytes of the table and of each copy.
    pub bytes: u64,
}

/// Maximum size in bytes of the table and of each copy. Both are smaller on devices with little memory.
const MAX_TABLE_BYTES: u64 = 64 << 20;
const REPETITIONS: u32 = 3;
const WORK_ITEMS: usize = 1 << 14;
const WORK_GROUP_SIZE: usize = 64;

/// Measures a device. Takes a fraction of a second plus the compilation of a kernel.
///
/// # Errors
/// An OpenCL call fails, or the device has no 64-bit atomics.
pub fn measure_device_rates(device: &Arc<Device>) -> Result<DeviceRates, Error> {
    if !device.description().has_int64_atomics {
        let what = "it has no 64-bit atomics (cl_khr_int64_base_atomics)".into();
        return Err(Error::UnsuitableDevice { device: device.description().name.clone(), what });
    }
    let most = MAX_TABLE_BYTES
        .min(device.usable_memory_bytes() / 4)
        .min(device.description().max_allocation_bytes)
        .max(1 << 16);
    let bits = most.ilog2() - 3;
    let bytes = 8usize << bits;
    let lane = device.create_queue()?;
    let (mut table, mut staging) = (lane.allocate_buffer(bytes)?, lane.allocate_pinned_buffer(bytes)?);
    let kernel = lane.create_kernel(include_str!("rates.cl"), "", "scattered")?;
    staging.fill(0);
    let mut best = [f64::INFINITY; 3];
    let mut timed = |which: usize, work: &mut dyn FnMut() -> Result<(), Error>| {
        let start = Instant::now();
        work()?;
        best[which] = best[which].min(start.elapsed().as_secs_f64().max(1e-9));
        Ok::<(), Error>(())
    };
    // Updates per work-item: enough for some hundredths of a second.
    let steps = 256u32;
    for _ in 0..REPETITIONS {
        timed(0, &mut || lane.copy_to_device(&mut table, &staging))?;
        timed(1, &mut || {
            let args = [KernelArg::Buffer(&table), KernelArg::U32(bits), KernelArg::U32(steps)];
            // SAFETY: the kernel has these arguments, and indices of `bits` bits are within the table.
            unsafe { lane.enqueue_kernel(&kernel, &args, WORK_ITEMS / WORK_GROUP_SIZE, WORK_GROUP_SIZE)? };
            lane.wait_until_done()
        })?;
        timed(2, &mut || lane.copy_from_device(&table, &mut staging))?;
    }
    let [to, random, from] = best;
    let all = bytes as f64;
    Ok(DeviceRates {
        copy_to_device_gbs: all / to / 1e9,
        copy_from_device_gbs: all / from / 1e9,
        atomic_updates_mops: f64::from(steps) * WORK_ITEMS as f64 / random / 1e6,
        bytes: bytes as u64,
    })
}
