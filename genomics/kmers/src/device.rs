//! Counting of bins on OpenCL devices, in addition to the CPU threads.
//!
//! A device has several lanes. A lane is a host thread with its own table, command queue and pinned memory. Like a
//! CPU thread, it takes the next bin, sends the records unchanged in as many pieces as its memory requires, and
//! fetches the requested rows of the table. While one lane copies, another one counts. A table that is too small is
//! enlarged; at the maximum size the class of roots is halved, as in a thread's table, and each half is counted in
//! its own pass.
//!
//! Rows of a table are passed on only after all of them were copied. So if a device fails, complete classes of roots
//! of a bin are missing, and a thread counts them. The result is the same.

mod table;
mod staged;
#[cfg(test)]
mod cpu_table;
mod opencl;
mod lane;
mod gain;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use genuma_gpu::Device;

use crate::scatter::ScatterDevice;

pub use gain::{CountingTimesWithAndWithoutDevices, estimate_times_with_and_without_devices};
pub(crate) use lane::DeviceLaneSettings;

/// Number of lanes of a device: one copies to it, one counts, one copies from it.
const LANES: usize = 3;

/// Maximum host memory of a lane in bytes.
const MAX_HOST_BYTES_PER_LANE: u64 = 96 << 20;
/// Maximum device memory of a lane in bytes: a table of ten million slots, where a bin has a quarter of a million
/// k-mers.
const MAX_DEVICE_BYTES_PER_LANE: u64 = 384 << 20;

/// OpenCL devices that count k-mers in addition to the CPU threads, and the device that scatters reads.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    devices: Vec<Arc<Device>>,
    scatter: ScatterDevice,
    statistics: Arc<BinStatistics>,
}

/// Numbers of bins counted by devices and threads.
#[derive(Debug, Default)]
struct BinStatistics {
    total: AtomicU64,
    on_devices: AtomicU64,
    taken_over: AtomicU64,
}

/// Two values are equal if they have the same devices, whatever these have counted.
impl PartialEq for Devices {
    fn eq(&self, other: &Self) -> bool {
        let (mine, others) = (&self.devices, &other.devices);
        self.scatter == other.scatter
            && mine.len() == others.len()
            && mine.iter().zip(others).all(|(one, two)| Arc::ptr_eq(one, two))
    }
}

impl Eq for Devices {}

impl Devices {
    /// OpenCL devices that count k-mers in addition to the CPU threads; the CPU scatters the reads.
    pub fn new(devices: Vec<Arc<Device>>) -> Self {
        Self { devices, ..Self::default() }
    }

    /// Returns the same OpenCL devices with `scatter` as the device that scatters reads.
    pub fn with_scatter_device(self, scatter: ScatterDevice) -> Self {
        Self { scatter, ..self }
    }

    /// The device that scatters reads: the CPU or an FPGA.
    pub fn scatter_device(&self) -> &ScatterDevice {
        &self.scatter
    }

    /// Whether no OpenCL device counts.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// Maximum number of bytes of host memory that the lanes of all devices can use.
    pub(crate) fn max_host_bytes(&self) -> u64 {
        let lanes = |device: &Arc<Device>| {
            let own = if device.description().shares_memory { MAX_DEVICE_BYTES_PER_LANE } else { 0 };
            LANES as u64 * (MAX_HOST_BYTES_PER_LANE + own.min(device.usable_memory_bytes() / LANES as u64))
        };
        self.devices.iter().map(lanes).sum()
    }

    /// Maximum number of lanes (host threads with a table each) of all devices together.
    pub(crate) fn max_lanes(&self) -> usize {
        LANES * self.devices.len()
    }

    /// Creates the lanes of the devices that have not failed; they share `reserved` bytes of host memory.
    pub(crate) fn create_usable_lanes(&self, reserved: u64) -> Vec<DeviceLaneSettings> {
        let each = reserved / self.max_lanes().max(1) as u64;
        let alive = self.devices.iter().filter(|device| !device.is_lost());
        let lanes = alive.flat_map(|device| std::iter::repeat_n(device, LANES));
        let lane = |(number, device): (usize, &Arc<Device>)| {
            let memory = (device.usable_memory_bytes() / LANES as u64).min(MAX_DEVICE_BYTES_PER_LANE);
            // If a device uses host memory, tables and rows take two thirds of the memory of a lane.
            let (host, device_bytes) = match device.description().shares_memory {
                true => (each / 3, memory.min(each / 3 * 2)),
                false => (each, memory),
            };
            let (device, devices, host) = (device.clone(), self.clone(), host.min(MAX_HOST_BYTES_PER_LANE));
            DeviceLaneSettings { number, device, device_bytes, host_bytes: host, statistics: devices }
        };
        lanes.enumerate().map(lane).collect()
    }

    /// Adds `bins` to the total number of bins that were counted.
    pub(crate) fn add_counted_bins(&self, bins: usize) {
        self.statistics.total.fetch_add(bins as u64, Relaxed);
    }

    /// Names of the devices.
    pub fn names(&self) -> Vec<&str> {
        self.devices.iter().map(|device| device.description().name.as_str()).collect()
    }

    /// One line about the bins that the devices counted; `None` without devices.
    pub fn summary(&self) -> Option<String> {
        let [on, all, lost] =
            [&self.statistics.on_devices, &self.statistics.total, &self.statistics.taken_over].map(|n| n.load(Relaxed));
        let names = self.names();
        let lost = if lost == 0 { String::new() } else { format!("; threads counted {lost} bins of lost devices") };
        (!names.is_empty()).then(|| format!("{on} of {all} bins were counted by {}{lost}", names.join(" and ")))
    }

    /// Numbers of bins that were counted: in total, by devices, and by threads after a device failed.
    pub fn bin_statistics(&self) -> [u64; 3] {
        [&self.statistics.total, &self.statistics.on_devices, &self.statistics.taken_over].map(|n| n.load(Relaxed))
    }

    /// Whether the threads leave all possible work to the devices (for tests).
    pub(crate) fn has_exclusive_device(&self) -> bool {
        self.devices.iter().any(|device| device.takes_all_work_from_host_threads())
    }

    fn add_device_bin(&self) {
        self.statistics.on_devices.fetch_add(1, Relaxed);
    }

    fn add_taken_over_bin(&self) {
        self.statistics.taken_over.fetch_add(1, Relaxed);
    }
}
