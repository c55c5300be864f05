//! Counting bins on devices, beside the threads that count them on CPUs.
//!
//! A device has a few lanes, each a thread of the host with a table, a queue and pinned memory of its own. A lane does with a bin what a thread does: takes the next,
//! sends its records as they lie, in as many pieces as its memory asks for, and takes what is wanted of the table. While one lane copies
//! another counts, so that a device always has work and nothing is under way twice. A table too small is made larger, and then
//! what a thread's table does is done: the roots are halved by a hash, and each half gets a pass of its own.
//!
//! Nothing of a table is taken before all of it is here. So when a device fails, what is missing are whole classes of roots of a bin, which
//! a thread counts; nobody sees the difference.

mod table;
mod staged;
#[cfg(test)]
mod twin;
mod opencl;
mod lane;
mod gain;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use genuma_gpu::Device;

pub use gain::{Gain, gain};
pub use lane::OnDevice;

/// Lanes of a device: one copies to it, one counts, one copies from it.
const LANES: usize = 3;

/// Most bytes of the host that a lane uses.
const MOST_HOST: u64 = 96 << 20;
/// Most bytes of a device that a lane uses: a table of ten million slots, where a bin has a quarter of a million k-mers.
const MOST_DEVICE: u64 = 384 << 20;

/// Devices that count beside the threads.
#[derive(Debug, Clone, Default)]
pub struct Devices {
    devices: Vec<Arc<Device>>,
    done: Arc<Done>,
}

/// What was counted where.
#[derive(Debug, Default)]
struct Done {
    bins: AtomicU64,
    on_devices: AtomicU64,
    lost: AtomicU64,
}

/// The same devices are equal, whatever they did.
impl PartialEq for Devices {
    fn eq(&self, other: &Self) -> bool {
        let (mine, others) = (&self.devices, &other.devices);
        mine.len() == others.len() && mine.iter().zip(others).all(|(one, two)| Arc::ptr_eq(one, two))
    }
}

impl Eq for Devices {}

impl Devices {
    /// These.
    pub fn new(devices: Vec<Arc<Device>>) -> Self {
        Self { devices, done: Arc::default() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// Bytes of the host's memory that they can make use of.
    pub(crate) fn wants(&self) -> u64 {
        let lanes = |device: &Arc<Device>| {
            let own = if device.described().shares_memory { MOST_DEVICE } else { 0 };
            LANES as u64 * (MOST_HOST + own.min(device.memory() / LANES as u64))
        };
        self.devices.iter().map(lanes).sum()
    }

    /// Lanes of all of them.
    pub(crate) fn most_lanes(&self) -> usize {
        LANES * self.devices.len()
    }

    /// The lanes of those that are not lost, with so many bytes of the host's memory for all.
    pub(crate) fn lanes(&self, reserved: u64) -> Vec<OnDevice> {
        let each = reserved / self.most_lanes().max(1) as u64;
        let alive = self.devices.iter().filter(|device| !device.is_lost());
        let lanes = alive.flat_map(|device| std::iter::repeat_n(device, LANES));
        let lane = |(number, device): (usize, &Arc<Device>)| {
            let memory = (device.memory() / LANES as u64).min(MOST_DEVICE);
            // Where a device's memory is the host's, tables and rows are two thirds of what a lane takes.
            let (host, device_bytes) = match device.described().shares_memory {
                true => (each / 3, memory.min(each / 3 * 2)),
                false => (each, memory),
            };
            let (device, devices, host) = (device.clone(), self.clone(), host.min(MOST_HOST));
            OnDevice { number, device, device_bytes, host_bytes: host, devices }
        };
        lanes.enumerate().map(lane).collect()
    }

    /// So many bins are counted, by whomever.
    pub(crate) fn counted(&self, bins: usize) {
        self.done.bins.fetch_add(bins as u64, Relaxed);
    }

    /// Their names.
    pub fn names(&self) -> Vec<&str> {
        self.devices.iter().map(|device| device.described().name.as_str()).collect()
    }

    /// What they did, in a line; nothing where there are none.
    pub fn told(&self) -> Option<String> {
        let [on, all, lost] =
            [&self.done.on_devices, &self.done.bins, &self.done.lost].map(|n| n.load(Relaxed));
        let names = self.names();
        let lost =
            if lost == 0 { String::new() } else { format!("; {lost} bins of lost devices by threads") };
        (!names.is_empty())
            .then(|| format!("{on} of {all} bins were counted by {}{lost}", names.join(" and ")))
    }

    /// How many bins were counted in all, how many of them by devices, and how many of those that devices had begun by threads.
    pub fn bins(&self) -> [u64; 3] {
        [&self.done.bins, &self.done.on_devices, &self.done.lost].map(|n| n.load(Relaxed))
    }

    /// Whether threads leave to them what they can do.
    pub(crate) fn alone(&self) -> bool {
        self.devices.iter().any(|device| device.is_alone())
    }

    fn counted_here(&self) {
        self.done.on_devices.fetch_add(1, Relaxed);
    }

    fn left_to_threads(&self) {
        self.done.lost.fetch_add(1, Relaxed);
    }
}
