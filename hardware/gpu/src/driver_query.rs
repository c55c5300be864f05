//! Asks the OpenCL drivers for their devices.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use opencl3::device::{CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, Device};
use opencl3::error_codes::DLOPEN_RUNTIME_LOAD_FAILED;
use opencl3::platform::get_platforms;

use crate::discovery::{DeviceDescription, DeviceKind, DiscoveredDevices};
use crate::pci_node;

/// Finds all OpenCL devices that are available, are little-endian and have a compiler; whether they have 64-bit atomics
/// is not checked. Missing drivers and other devices are listed in [`DiscoveredDevices::missing`].
pub fn find_devices() -> DiscoveredDevices {
    // If two threads call drivers for the first time at the same moment, one of them gets no devices (ocl-icd 2.3
    // with PoCL 3.1).
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = DiscoveredDevices::default();
    let platforms = match get_platforms() {
        Ok(platforms) => platforms,
        Err(error) => {
            // Error codes of the driver loader without a driver, and of the binding without a loader.
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
            // CL_DEVICE_NOT_FOUND: the driver has no device.
            Err(error) => {
                let none = error.0 == -1;
                found.missing.push(if none { format!("{name}: no device") } else { format!("{name}: {error}") });
                continue;
            }
        };
        for id in ids {
            let device = Device::new(id);
            match describe_device(&device, &name, found.devices.len()) {
                Ok(described) => found.devices.push(described),
                Err(why) => found.missing.push(format!("{name}: a device cannot be used: {why}")),
            }
        }
    }
    found
}

fn describe_device(device: &Device, platform: &str, number: usize) -> Result<DeviceDescription, String> {
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
        kind if kind & CL_DEVICE_TYPE_GPU != 0 => DeviceKind::Gpu,
        kind if kind & CL_DEVICE_TYPE_ACCELERATOR != 0 => DeviceKind::Accelerator,
        kind if kind & CL_DEVICE_TYPE_CPU != 0 => DeviceKind::Cpu,
        _ => DeviceKind::Other,
    };
    let pci = read_pci_address(device);
    Ok(DeviceDescription {
        number,
        kind,
        vendor: device.vendor().unwrap_or_default().trim().to_owned(),
        driver: format!("{platform} {}", device.driver_version().unwrap_or_default().trim()),
        opencl_version: device.version().unwrap_or_default().trim().to_owned(),
        global_memory_bytes: device.global_mem_size().map_err(told)?,
        max_allocation_bytes: device.max_mem_alloc_size().map_err(told)?,
        local_memory_bytes: device.local_mem_size().map_err(told)?,
        compute_units: device.max_compute_units().map_err(told)?,
        shares_memory: device.host_unified_memory().unwrap_or(false),
        has_int64_atomics: device.extensions().map_err(told)?.contains("cl_khr_int64_base_atomics"),
        numa_node: pci
            .as_deref()
            .and_then(|address| pci_node::read_numa_node_of_pci_device(Path::new("/sys"), address)),
        pci_address: pci,
        name,
        id: device.id() as usize,
    })
}

/// Reads the PCI address through an OpenCL extension of Khronos or NVIDIA. `None` without such an extension.
fn read_pci_address(device: &Device) -> Option<String> {
    let extensions = device.extensions().unwrap_or_default();
    if extensions.contains("cl_khr_pci_bus_info") {
        let info = device.pcibusinfokhr_intel().ok()?;
        return Some(pci_node::format_pci_address(info.pci_domain, info.pci_bus, info.pci_device, info.pci_function));
    }
    if extensions.contains("cl_nv_device_attribute_query") {
        let (bus, slot) = (device.pci_bus_id_nv().ok()?, device.pci_slot_id_nv().ok()?);
        return Some(pci_node::format_pci_address(0, bus, slot >> 3, slot & 7));
    }
    None
}
