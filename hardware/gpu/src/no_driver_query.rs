//! Replaces the query of the OpenCL drivers in a build without the feature `gpu`.

use crate::discovery::DiscoveredDevices;

/// Why there is no device.
pub(crate) const NO_DEVICE_SUPPORT: &str =
    "this build cannot use devices: it lacks the feature `gpu`, which `make build` has";

/// Finds no device: this build cannot load the OpenCL library.
pub fn find_devices() -> DiscoveredDevices {
    DiscoveredDevices { devices: Vec::new(), missing: vec![NO_DEVICE_SUPPORT.into()] }
}
