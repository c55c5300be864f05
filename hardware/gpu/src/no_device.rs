//! Replaces OpenCL devices in a build without the feature `gpu`: opening one is an error, so no value of these types
//! exists.

use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::driver_query::NO_DEVICE_SUPPORT;
use crate::{DeviceDescription, DeviceTestSettings, Error};

/// An open device.
#[derive(Debug)]
pub struct Device(Infallible);

/// A buffer in device memory.
#[derive(Debug)]
pub struct DeviceBuffer(Infallible);

/// A buffer in host memory that the driver has pinned.
#[derive(Debug)]
pub struct PinnedHostBuffer(Infallible);

/// A kernel of a compiled program.
#[derive(Debug)]
pub struct DeviceKernel(Infallible);

/// A command queue of a device.
#[derive(Debug)]
pub struct DeviceQueue(Infallible);

/// A value that is passed to a kernel.
#[derive(Debug, Clone, Copy)]
pub enum KernelArg<'a> {
    /// A buffer.
    Buffer(&'a DeviceBuffer),
    /// A 32-bit number.
    U32(u32),
    /// A 64-bit number.
    U64(u64),
}

impl Device {
    /// Returns an error: this build cannot open a device.
    ///
    /// # Errors
    /// Always.
    pub fn open_whole_or_in_parts(
        described: &DeviceDescription,
        _trial: &DeviceTestSettings,
    ) -> Result<Vec<Arc<Self>>, Error> {
        Err(Error::UnsuitableDevice { device: described.name.clone(), what: NO_DEVICE_SUPPORT.into() })
    }

    /// Properties of the device.
    pub fn description(&self) -> &DeviceDescription {
        match self.0 {}
    }

    /// Bytes of device memory that may be used.
    pub fn usable_memory_bytes(&self) -> u64 {
        match self.0 {}
    }

    /// Whether host threads leave all work that the device can do to the device.
    pub fn takes_all_work_from_host_threads(&self) -> bool {
        match self.0 {}
    }

    /// Whether the device is lost.
    pub fn is_lost(&self) -> bool {
        match self.0 {}
    }

    /// Creates a command queue.
    ///
    /// # Errors
    /// None: there is no device.
    pub fn create_queue(self: &Arc<Self>) -> Result<DeviceQueue, Error> {
        match self.0 {}
    }
}

impl DeviceBuffer {
    /// Size of the buffer in bytes.
    pub fn len_bytes(&self) -> usize {
        match self.0 {}
    }
}

impl Deref for PinnedHostBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self.0 {}
    }
}

impl DerefMut for PinnedHostBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self.0 {}
    }
}

#[allow(unsafe_code, reason = "the signature of the method with a device")]
impl DeviceQueue {
    /// The device of this queue.
    pub fn device(&self) -> &Arc<Device> {
        match self.0 {}
    }

    /// Allocates device memory.
    ///
    /// # Errors
    /// None: there is no device. So it is with all methods of a queue.
    pub fn allocate_buffer(&self, _bytes: usize) -> Result<DeviceBuffer, Error> {
        match self.0 {}
    }

    /// Allocates pinned host memory.
    pub fn allocate_pinned_buffer(&self, _bytes: usize) -> Result<PinnedHostBuffer, Error> {
        match self.0 {}
    }

    /// Copies bytes to a device buffer.
    pub fn copy_to_device(&self, _to: &mut DeviceBuffer, _bytes: &[u8]) -> Result<(), Error> {
        match self.0 {}
    }

    /// Copies the first bytes of a device buffer.
    pub fn copy_from_device(&self, _from: &DeviceBuffer, _bytes: &mut [u8]) -> Result<(), Error> {
        match self.0 {}
    }

    /// Fills the first words of a buffer.
    pub fn enqueue_fill_with_word(&self, _memory: &mut DeviceBuffer, _word: u32, _words: usize) -> Result<(), Error> {
        match self.0 {}
    }

    /// Creates a kernel.
    pub fn create_kernel(&self, _source: &str, _options: &str, _name: &str) -> Result<DeviceKernel, Error> {
        match self.0 {}
    }

    /// Enqueues a kernel.
    ///
    /// # Safety
    /// Number and types of the arguments must match the kernel.
    pub unsafe fn enqueue_kernel(
        &self,
        _kernel: &DeviceKernel,
        _args: &[KernelArg<'_>],
        _groups: usize,
        _size: usize,
    ) -> Result<(), Error> {
        match self.0 {}
    }

    /// Waits until all enqueued commands are done.
    pub fn wait_until_done(&self) -> Result<(), Error> {
        match self.0 {}
    }
}
