//! An open OpenCL device: compiled programs, command queues and buffers. Only this module makes OpenCL calls that
//! allocate memory, copy data or run kernels.
//!
//! `unsafe` is needed for calls of the binding, which cannot check that buffers and kernels belong to the same
//! context. Here they belong to the queue that created them.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::SubDevice;
use opencl3::error_codes::ClError;
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, ClMem};
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_device_id};

use crate::{DeviceDescription, DeviceTestSettings, Error};

/// An OpenCL object that is released when dropped, unless the device is lost: then the driver may hang or crash on
/// any call.
#[derive(Debug)]
struct DeviceResource<T> {
    resource: ManuallyDrop<T>,
    is_device_lost: Arc<AtomicBool>,
}

impl<T> Deref for DeviceResource<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.resource
    }
}

impl<T> DerefMut for DeviceResource<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.resource
    }
}

impl<T> Drop for DeviceResource<T> {
    fn drop(&mut self) {
        if !self.is_device_lost.load(Relaxed) {
            // SAFETY: the object is not used again.
            unsafe { ManuallyDrop::drop(&mut self.resource) };
        }
    }
}

/// Compiled programs by their source and compiler options.
type CompiledPrograms = HashMap<(String, String), Arc<DeviceResource<Program>>>;

/// An open OpenCL device.
#[derive(Debug)]
pub struct Device {
    description: DeviceDescription,
    usable_memory_bytes: u64,
    test_settings: DeviceTestSettings,
    is_lost: Arc<AtomicBool>,
    context: DeviceResource<Context>,
    id: usize,
    programs: Mutex<CompiledPrograms>,
    _part: Option<DeviceResource<SubDevice>>,
}

impl Device {
    /// Opens a device. Returns one device, or several sub-devices if the test settings `trial` request them. The whole
    /// device replaces each sub-device that the driver does not create.
    ///
    /// # Errors
    /// The driver cannot create the context.
    pub fn open_whole_or_in_parts(
        described: &DeviceDescription,
        trial: &DeviceTestSettings,
    ) -> Result<Vec<Arc<Self>>, Error> {
        let whole = opencl3::device::Device::new(described.id as cl_device_id);
        let parts = trial.sub_devices.unwrap_or(1);
        if parts == 1 {
            return Ok(vec![Self::open_one(described, trial, None, described.name.clone())?]);
        }
        // CL_DEVICE_PARTITION_EQUALLY takes the number of units per sub-device, which may give more sub-devices than
        // requested.
        let units = (described.compute_units / parts).max(1);
        let cut = whole.create_sub_devices(&[0x1086, units as isize, 0]).unwrap_or_default();
        let mut cut: Vec<Option<SubDevice>> = cut.into_iter().map(Some).take(parts as usize).collect();
        cut.resize_with(parts as usize, || None);
        let name = |i: usize| format!("{}, part {}", described.name, i + 1);
        cut.into_iter().enumerate().map(|(i, part)| Self::open_one(described, trial, part, name(i))).collect()
    }

    fn open_one(
        described: &DeviceDescription,
        trial: &DeviceTestSettings,
        part: Option<SubDevice>,
        name: String,
    ) -> Result<Arc<Self>, Error> {
        let description = DeviceDescription { name, ..described.clone() };
        let id = part.as_ref().map_or(description.id, |part| part.id() as usize);
        let device = opencl3::device::Device::new(id as cl_device_id);
        let context = Context::from_device(&device).map_err(|why| driver_error(&description, "opening it", &why))?;
        let lost = Arc::new(AtomicBool::new(false));
        let hold = |thing| DeviceResource { resource: ManuallyDrop::new(thing), is_device_lost: lost.clone() };
        // A tenth of the memory is left to the driver and to other programs.
        let usable = description.global_memory_bytes / 10 * 9;
        Ok(Arc::new(Self {
            usable_memory_bytes: trial.memory_limit_bytes.map_or(usable, |limit| limit.min(usable)),
            test_settings: trial.clone(),
            context: hold(context),
            id,
            programs: Mutex::default(),
            _part: part.map(|part| DeviceResource { resource: ManuallyDrop::new(part), is_device_lost: lost.clone() }),
            is_lost: lost,
            description,
        }))
    }

    /// Properties of the device as reported by the driver.
    pub fn description(&self) -> &DeviceDescription {
        &self.description
    }

    /// Bytes of device memory that may be used: nine tenths of the global memory, or the test limit if it is smaller.
    pub fn usable_memory_bytes(&self) -> u64 {
        self.usable_memory_bytes
    }

    /// Whether host threads leave all work that the device can do to the device. A test setting; normally threads and
    /// device share the work.
    pub fn takes_all_work_from_host_threads(&self) -> bool {
        self.test_settings.takes_all_work_from_host_threads
    }

    /// Whether the device is lost: an earlier call has failed.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Relaxed)
    }

    /// Creates a command queue, which runs concurrently with other queues of the device.
    ///
    /// # Errors
    /// An OpenCL call fails.
    pub fn create_queue(self: &Arc<Self>) -> Result<DeviceQueue, Error> {
        // SAFETY: the device belongs to the context.
        let queue = self.call_driver("making a queue", || unsafe {
            CommandQueue::create(&self.context, self.id as cl_device_id, 0)
        })?;
        Ok(DeviceQueue { queue: self.hold(queue), device: self.clone() })
    }

    /// Returns a compiled program. Compiles it on first use.
    fn compile_program(&self, source: &str, options: &str) -> Result<Arc<DeviceResource<Program>>, Error> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source.to_owned(), options.to_owned());
        if let Some(program) = programs.get(&key) {
            return Ok(program.clone());
        }
        self.check_usable("compiling")?;
        let program = Program::create_and_build_from_source(&self.context, source, options).map_err(|log| {
            self.is_lost.store(true, Relaxed);
            let log = log.lines().filter(|line| !line.trim().is_empty()).take(3).collect::<Vec<_>>().join("; ");
            Error::CompilationFailed { device: self.description.name.clone(), log }
        })?;
        let program = Arc::new(self.hold(program));
        programs.insert(key, program.clone());
        Ok(program)
    }

    fn hold<T>(&self, thing: T) -> DeviceResource<T> {
        DeviceResource { resource: ManuallyDrop::new(thing), is_device_lost: self.is_lost.clone() }
    }

    /// Checks that the device is not lost, and that the test settings do not require the current call to fail. If they
    /// do, the device is lost from then on. `what` describes the call, for error messages.
    fn check_usable(&self, what: &'static str) -> Result<(), Error> {
        if self.is_lost() {
            return Err(Error::DeviceLost { device: self.description.name.clone() });
        }
        if self.test_settings.count_call_and_decide_failure() {
            self.is_lost.store(true, Relaxed);
            let why = "a failure injected by the test settings".into();
            return Err(Error::DriverCallFailed { device: self.description.name.clone(), what, why });
        }
        Ok(())
    }

    /// Makes the OpenCL call `call`. If the call fails, the device is lost from then on. `what` describes the call, for
    /// error messages.
    fn call_driver<T>(&self, what: &'static str, call: impl FnOnce() -> Result<T, ClError>) -> Result<T, Error> {
        self.check_usable(what)?;
        call().map_err(|why| {
            self.is_lost.store(true, Relaxed);
            self::driver_error(&self.description, what, &why)
        })
    }
}

fn driver_error(device: &DeviceDescription, what: &'static str, why: &ClError) -> Error {
    Error::DriverCallFailed { device: device.name.clone(), what, why: format!("{why} ({})", why.0) }
}

/// A buffer in device memory, used with one queue.
#[derive(Debug)]
pub struct DeviceBuffer {
    buffer: DeviceResource<Buffer<u8>>,
    bytes: usize,
}

impl DeviceBuffer {
    /// Size of the buffer in bytes.
    pub fn len_bytes(&self) -> usize {
        self.bytes
    }
}

/// A buffer in host memory that the driver has pinned, so that the device can copy from and to it directly (DMA).
#[derive(Debug)]
pub struct PinnedHostBuffer {
    address: *mut u8,
    bytes: usize,
    // The mapping is valid as long as the buffer exists.
    _buffer: DeviceResource<Buffer<u8>>,
}

// SAFETY: the value owns its bytes; nothing else has a pointer to them.
unsafe impl Send for PinnedHostBuffer {}

impl Deref for PinnedHostBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the driver mapped this many bytes at the address, until the buffer is released.
        unsafe { std::slice::from_raw_parts(self.address, self.bytes) }
    }
}

impl DerefMut for PinnedHostBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: see above; `&mut self` makes this the only borrow.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.bytes) }
    }
}

/// A kernel (device function) of a compiled program.
#[derive(Debug)]
pub struct DeviceKernel {
    kernel: DeviceResource<opencl3::kernel::Kernel>,
    _program: Arc<DeviceResource<Program>>,
}

/// A value that is passed to an OpenCL kernel.
#[derive(Debug, Clone, Copy)]
pub enum KernelArg<'a> {
    /// A `__global` buffer.
    Buffer(&'a DeviceBuffer),
    /// A `uint`.
    U32(u32),
    /// A `ulong`.
    U64(u64),
}

/// An in-order command queue of a device. Queues run concurrently with each other.
#[derive(Debug)]
pub struct DeviceQueue {
    queue: DeviceResource<CommandQueue>,
    device: Arc<Device>,
}

impl DeviceQueue {
    /// The device of this queue.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Allocates `bytes` bytes of device memory with undefined content.
    ///
    /// # Errors
    /// There is not enough memory, or an OpenCL call fails.
    pub fn allocate_buffer(&self, bytes: usize) -> Result<DeviceBuffer, Error> {
        let buffer = self.create_buffer(CL_MEM_READ_WRITE, bytes)?;
        Ok(DeviceBuffer { buffer, bytes })
    }

    fn create_buffer(&self, flags: u64, bytes: usize) -> Result<DeviceResource<Buffer<u8>>, Error> {
        // SAFETY: the buffer gets no host pointer.
        let made = self.device.call_driver("taking memory", || unsafe {
            Buffer::create(&self.device.context, flags, bytes, std::ptr::null_mut())
        })?;
        Ok(self.device.hold(made))
    }

    /// Allocates `bytes` bytes of pinned host memory with undefined content.
    ///
    /// # Errors
    /// There is not enough memory, or an OpenCL call fails.
    pub fn allocate_pinned_buffer(&self, bytes: usize) -> Result<PinnedHostBuffer, Error> {
        let buffer = self.create_buffer(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes)?;
        let mut at: *mut c_void = std::ptr::null_mut();
        self.device.call_driver("mapping memory", || {
            let flags = CL_MAP_READ | CL_MAP_WRITE;
            // SAFETY: the whole of a buffer of this context is mapped; the call waits until it is mapped.
            unsafe { self.queue.enqueue_map_buffer(&buffer, CL_BLOCKING, flags, 0, bytes, &mut at, &[]) }
        })?;
        Ok(PinnedHostBuffer { address: at.cast(), bytes, _buffer: buffer })
    }

    /// Copies `bytes` to the start of a device buffer. Waits until they are copied.
    ///
    /// # Errors
    /// An OpenCL call fails.
    ///
    /// # Panics
    /// If `bytes` is longer than the buffer.
    pub fn copy_to_device(&self, to: &mut DeviceBuffer, bytes: &[u8]) -> Result<(), Error> {
        assert!(bytes.len() <= to.bytes, "more bytes than the device's memory has");
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the bytes fit, and the call waits until they are read.
        let write = || unsafe { self.queue.enqueue_write_buffer(&mut to.buffer, CL_BLOCKING, 0, bytes, &[]) };
        self.device.call_driver("copying to it", write).map(drop)
    }

    /// Copies the first bytes of a device buffer to `bytes`. Waits until they are copied.
    ///
    /// # Errors
    /// An OpenCL call fails.
    ///
    /// # Panics
    /// If `bytes` is longer than the buffer.
    pub fn copy_from_device(&self, from: &DeviceBuffer, bytes: &mut [u8]) -> Result<(), Error> {
        assert!(bytes.len() <= from.bytes, "more bytes than the device's memory has");
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the bytes fit, and the call waits until they are written.
        let read = || unsafe { self.queue.enqueue_read_buffer(&from.buffer, CL_BLOCKING, 0, bytes, &[]) };
        self.device.call_driver("copying from it", read).map(drop)
    }

    /// Enqueues filling the first `words` 4-byte words of a buffer with `word`.
    ///
    /// # Errors
    /// An OpenCL call fails.
    ///
    /// # Panics
    /// If the buffer is shorter than `words` words.
    pub fn enqueue_fill_with_word(&self, memory: &mut DeviceBuffer, word: u32, words: usize) -> Result<(), Error> {
        assert!(words * 4 <= memory.bytes, "more bytes than the device's memory has");
        let pattern = word.to_ne_bytes();
        // The binding would derive the pattern size from the element type of the buffer.
        let fill = || {
            let (queue, buffer) = (self.queue.get(), memory.buffer.get());
            // SAFETY: queue and buffer belong to one context, and the words fit. The call copies the pattern.
            let event = unsafe {
                opencl3::command_queue::enqueue_fill_buffer(
                    queue,
                    buffer,
                    pattern.as_ptr().cast(),
                    pattern.len(),
                    0,
                    words * 4,
                    0,
                    std::ptr::null(),
                )
            };
            event.map(opencl3::event::Event::new).map_err(ClError)
        };
        self.device.call_driver("clearing memory", fill).map(drop)
    }

    /// Creates the kernel `name` of the program with the OpenCL C source `source`. The program is compiled with the
    /// compiler options `options`, once for each device, source and options.
    ///
    /// # Errors
    /// The program does not compile, or an OpenCL call fails.
    pub fn create_kernel(&self, source: &str, options: &str, name: &str) -> Result<DeviceKernel, Error> {
        let program = self.device.compile_program(source, options)?;
        let kernel = self.device.call_driver("making a kernel", || opencl3::kernel::Kernel::create(&program, name))?;
        Ok(DeviceKernel { kernel: self.device.hold(kernel), _program: program })
    }

    /// Enqueues a kernel with `groups` work-groups of `size` work-items each, and submits all commands of the queue to
    /// the device. Does nothing if `groups` is 0.
    ///
    /// # Errors
    /// An OpenCL call fails.
    ///
    /// # Safety
    /// The number and types of the arguments must match the kernel, and the kernel must not access memory outside of
    /// the buffers that it gets.
    pub unsafe fn enqueue_kernel(
        &self,
        kernel: &DeviceKernel,
        args: &[KernelArg<'_>],
        groups: usize,
        size: usize,
    ) -> Result<(), Error> {
        if groups == 0 {
            return Ok(());
        }
        self.device.call_driver("starting a kernel", || {
            for (at, arg) in (0u32..).zip(args) {
                // SAFETY: the caller guarantees number and types of the arguments.
                unsafe {
                    match arg {
                        KernelArg::Buffer(memory) => kernel.kernel.set_arg(at, &memory.buffer.get()),
                        KernelArg::U32(n) => kernel.kernel.set_arg(at, n),
                        KernelArg::U64(n) => kernel.kernel.set_arg(at, n),
                    }?;
                }
            }
            let (all, none) = (groups * size, std::ptr::null());
            // SAFETY: the range has one dimension, whose sizes the call reads; the caller guarantees the kernel's
            // accesses.
            unsafe { self.queue.enqueue_nd_range_kernel(kernel.kernel.get(), 1, none, &all, &size, &[]) }
        })?;
        // Without a flush the commands are not submitted until someone waits for them.
        self.device.call_driver("starting a kernel", || self.queue.flush())
    }

    /// Waits until all enqueued commands are done.
    ///
    /// # Errors
    /// An OpenCL call fails.
    pub fn wait_until_done(&self) -> Result<(), Error> {
        self.device.call_driver("waiting for it", || self.queue.finish())
    }
}
