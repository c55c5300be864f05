//! Which devices there are.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use opencl3::device::{
    CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, Device,
};
use opencl3::error_codes::DLOPEN_RUNTIME_LOAD_FAILED;
use opencl3::platform::get_platforms;
use serde::Serialize;

use crate::node;

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A graphics processor.
    Gpu,
    /// Another processor made for such work.
    Accelerator,
    /// The CPUs of this machine, driven as a device: no gain beside threads, but good to test with.
    Cpu,
    /// Something else.
    Other,
}

/// A device as its driver describes it. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Described {
    /// Number by which it is asked for.
    pub number: usize,
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Who made it.
    pub vendor: String,
    /// The platform, which is the driver's name, and the driver's version.
    pub driver: String,
    /// Version of OpenCL.
    pub opencl: String,
    /// Its memory.
    pub memory: u64,
    /// Largest piece that can be had of it.
    pub largest: u64,
    /// Memory that a work-group shares.
    pub local: u64,
    /// Compute units.
    pub units: u32,
    /// Whether its memory is the host's.
    pub shares_memory: bool,
    /// Whether it changes 64-bit words atomically, which counting needs.
    pub atomics: bool,
    /// Its place on the PCI bus.
    pub(crate) pci: Option<String>,
    /// The NUMA node on which it hangs.
    pub node: Option<u32>,
    /// By which the library knows it: good in this process only.
    #[serde(skip)]
    pub(crate) id: usize,
}

/// What was found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Found {
    /// Devices that can be used.
    pub devices: Vec<Described>,
    /// What is missing or does not answer, a line each.
    pub missing: Vec<String>,
}

/// Looks for devices; what does not answer is left out and told.
pub fn find() -> Found {
    // Drivers that are asked for the first time by two threads answer one of them too early, with nothing (ocl-icd 2.3 with PoCL 3.1).
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = Found::default();
    let platforms = match get_platforms() {
        Ok(platforms) => platforms,
        Err(error) => {
            // What the loader of drivers says where it has none, and what the binding says where there is no loader.
            found.missing.push(match error.0 {
                -1001 => "no OpenCL driver is installed".into(),
                DLOPEN_RUNTIME_LOAD_FAILED => "there is no OpenCL library (libOpenCL.so.1)".into(),
                _ => format!("the OpenCL library does not work: {error}"),
            });
            return found;
        }
    };
    if platforms.is_empty() {
        found.missing.push("no OpenCL driver is installed".into());
    }
    for platform in platforms {
        let name = platform.name().unwrap_or_else(|_| "an OpenCL driver".into());
        let ids = match platform.get_devices(CL_DEVICE_TYPE_ALL) {
            Ok(ids) => ids,
            // CL_DEVICE_NOT_FOUND: a driver without a device.
            Err(error) => {
                let none = error.0 == -1;
                found.missing.push(if none {
                    format!("{name}: no device")
                } else {
                    format!("{name}: {error}")
                });
                continue;
            }
        };
        for id in ids {
            let device = Device::new(id);
            match describe(&device, &name, found.devices.len()) {
                Ok(described) => found.devices.push(described),
                Err(why) => found.missing.push(format!("{name}: a device cannot be used: {why}")),
            }
        }
    }
    found
}

fn describe(device: &Device, platform: &str, number: usize) -> Result<Described, String> {
    let told = |error: opencl3::error_codes::ClError| error.to_string();
    let name = device.name().map_err(told)?.trim().to_owned();
    for (has, what) in [
        (device.available(), "it is not available"),
        (device.compiler_available(), "its driver has no compiler"),
        (device.endian_little(), "it is big-endian"),
    ] {
        if !has.map_err(told)? {
            return Err(format!("{name}: {what}"));
        }
    }
    let kind = match device.dev_type().map_err(told)? {
        kind if kind & CL_DEVICE_TYPE_GPU != 0 => Kind::Gpu,
        kind if kind & CL_DEVICE_TYPE_ACCELERATOR != 0 => Kind::Accelerator,
        kind if kind & CL_DEVICE_TYPE_CPU != 0 => Kind::Cpu,
        _ => Kind::Other,
    };
    let pci = pci(device);
    Ok(Described {
        number,
        kind,
        vendor: device.vendor().unwrap_or_default().trim().to_owned(),
        driver: format!("{platform} {}", device.driver_version().unwrap_or_default().trim()),
        opencl: device.version().unwrap_or_default().trim().to_owned(),
        memory: device.global_mem_size().map_err(told)?,
        largest: device.max_mem_alloc_size().map_err(told)?,
        local: device.local_mem_size().map_err(told)?,
        units: device.max_compute_units().map_err(told)?,
        shares_memory: device.host_unified_memory().unwrap_or(false),
        atomics: device.extensions().map_err(told)?.contains("cl_khr_int64_base_atomics"),
        node: pci.as_deref().and_then(|address| node::node(Path::new("/sys"), address)),
        pci,
        name,
        id: device.id() as usize,
    })
}

/// Place on the PCI bus, in each vendor's way of saying it.
fn pci(device: &Device) -> Option<String> {
    let extensions = device.extensions().unwrap_or_default();
    if extensions.contains("cl_khr_pci_bus_info") {
        let info = device.pcibusinfokhr_intel().ok()?;
        return Some(node::address(info.pci_domain, info.pci_bus, info.pci_device, info.pci_function));
    }
    if extensions.contains("cl_nv_device_attribute_query") {
        let (bus, slot) = (device.pci_bus_id_nv().ok()?, device.pci_slot_id_nv().ok()?);
        return Some(node::address(0, bus, slot >> 3, slot & 7));
    }
    None
}

/// Whether the kernel shows a device that could be a GPU: looking for these files costs nothing, while drivers take a second and
/// a hundred megabytes.
pub fn has_device_files() -> bool {
    let named = |folder: &str, start: &str| {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with(start))
    };
    named("/dev/dri", "render") || named("/dev", "nvidia0") || named("/dev", "kfd") || named("/dev", "dxg")
}
