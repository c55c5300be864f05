//! OpenCL devices, independent of what is computed on them: finds them with their memory and NUMA node
//! ([`find_devices`]), measures their speed ([`measure_device_rates`]), and runs kernels ([`Device`], [`DeviceQueue`]).
//!
//! The OpenCL library (`libOpenCL.so.1`) is loaded at run time on first use. So building needs no library, and a
//! machine without it has no devices. Every call that can fail returns an [`Error`]. After the first error a device
//! counts as lost and its resources are not released, because a lost driver may hang.
//!
//! Without the feature `gpu` the crate has the same types but finds no device and does not depend on OpenCL.

mod error;
mod test_settings;
#[cfg(feature = "gpu")]
mod pci_node;
mod discovery;
#[cfg(feature = "gpu")]
mod driver_query;
#[cfg(not(feature = "gpu"))]
#[path = "no_driver_query.rs"]
mod driver_query;
#[cfg(feature = "gpu")]
mod device;
#[cfg(not(feature = "gpu"))]
#[path = "no_device.rs"]
mod device;
mod rates;

pub use device::{Device, DeviceBuffer, DeviceKernel, DeviceQueue, KernelArg, PinnedHostBuffer};
pub use discovery::{DeviceDescription, DeviceKind, DiscoveredDevices, has_gpu_device_files};
pub use driver_query::find_devices;
pub use error::Error;
pub use rates::{DeviceRates, measure_device_rates};
pub use test_settings::DeviceTestSettings;
