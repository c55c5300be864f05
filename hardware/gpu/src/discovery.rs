//! Descriptions of the OpenCL devices of the machine.

use serde::{Deserialize, Serialize};

/// OpenCL type of a device: GPU, CPU or accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A graphics card, or the graphics part of a processor.
    Gpu,
    /// An OpenCL accelerator that is neither CPU nor GPU.
    Accelerator,
    /// The CPUs of this machine as an OpenCL device: no faster than host threads, but useful for tests.
    Cpu,
    /// Another type of device.
    Other,
}

/// Properties of a device as reported by its driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDescription {
    /// Number that selects the device, from 0.
    pub number: usize,
    /// Name of the device, as its driver reports it.
    pub name: String,
    /// GPU, CPU or accelerator.
    pub kind: DeviceKind,
    /// Vendor, as the driver reports it.
    pub vendor: String,
    /// Name of the platform (the driver) and version of the driver.
    pub driver: String,
    /// OpenCL version that the device supports, as the driver reports it.
    #[serde(rename = "opencl")]
    pub opencl_version: String,
    /// Global memory in bytes.
    #[serde(rename = "memory")]
    pub global_memory_bytes: u64,
    /// Maximum size of one allocation in bytes.
    #[serde(rename = "largest")]
    pub max_allocation_bytes: u64,
    /// Local memory per work-group in bytes.
    #[serde(rename = "local")]
    pub local_memory_bytes: u64,
    /// Number of parallel compute units: multiprocessors of a GPU, cores of a CPU.
    #[serde(rename = "units")]
    pub compute_units: u32,
    /// Whether the device uses the host's memory instead of memory of its own.
    pub shares_memory: bool,
    /// Whether the device has 64-bit atomics, which counting needs.
    #[serde(rename = "atomics")]
    pub has_int64_atomics: bool,
    /// PCI address (`domain:bus:device.function`). `None` if the driver does not report it.
    #[serde(rename = "pci")]
    pub(crate) pci_address: Option<String>,
    /// NUMA node that the device is attached to. `None` if the kernel does not report it.
    #[serde(rename = "node")]
    pub numa_node: Option<u32>,
    /// OpenCL device ID, valid in this process only.
    #[serde(skip)]
    pub(crate) id: usize,
}

/// The usable OpenCL devices of the machine, and problems of the others.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct DiscoveredDevices {
    /// Devices that are available, are little-endian and have a compiler, in the order of their numbers.
    pub devices: Vec<DeviceDescription>,
    /// Missing drivers and unusable devices, one line each.
    pub missing: Vec<String>,
}

/// Whether a device file exists that could belong to a GPU. This check is cheap, while initialising the OpenCL drivers
/// takes a second and 100 MB of memory.
pub fn has_gpu_device_files() -> bool {
    let named = |folder: &str, start: &str| {
        // I/O error ignored: a folder that cannot be listed shows no device.
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with(start))
    };
    named("/dev/dri", "render") || named("/dev", "nvidia0") || named("/dev", "kfd") || named("/dev", "dxg")
}
