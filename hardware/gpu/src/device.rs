//! A device in use: programs compiled for it, lanes of work, memory. The only place that calls into the library to do work.
//!
//! `unsafe` is for the binding's calls, whose buffers and kernels could be of other devices: here they are of the lane that made them.
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

use crate::{Described, Error, Trial};

/// Something of the library's that is let go, unless the device is lost: then a driver may answer anything, or nothing.
#[derive(Debug)]
struct Held<T> {
    thing: ManuallyDrop<T>,
    lost: Arc<AtomicBool>,
}

impl<T> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.thing
    }
}

impl<T> DerefMut for Held<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.thing
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        if !self.lost.load(Relaxed) {
            // SAFETY: it is not used again.
            unsafe { ManuallyDrop::drop(&mut self.thing) };
        }
    }
}

/// Programs that are compiled, by their sources and options.
type Programs = HashMap<(String, String), Arc<Held<Program>>>;

/// A device in use.
#[derive(Debug)]
pub struct Device {
    described: Described,
    memory: u64,
    trial: Trial,
    lost: Arc<AtomicBool>,
    context: Held<Context>,
    id: usize,
    programs: Mutex<Programs>,
    /// Where it is a part of a device.
    _part: Option<Held<SubDevice>>,
}

impl Device {
    /// Opens a device, or all that a trial makes of it.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn open(described: &Described, trial: &Trial) -> Result<Vec<Arc<Self>>, Error> {
        let whole = opencl3::device::Device::new(described.id as cl_device_id);
        let parts = trial.split.unwrap_or(1);
        if parts == 1 {
            return Ok(vec![Self::with(described, trial, None, described.name.clone())?]);
        }
        // CL_DEVICE_PARTITION_EQUALLY: so many units each, which may make more devices than are wanted.
        let units = (described.units / parts).max(1);
        let cut = whole.create_sub_devices(&[0x1086, units as isize, 0]).unwrap_or_default();
        let mut cut: Vec<Option<SubDevice>> = cut.into_iter().map(Some).take(parts as usize).collect();
        cut.resize_with(parts as usize, || None);
        let name = |i: usize| format!("{}, part {}", described.name, i + 1);
        cut.into_iter().enumerate().map(|(i, part)| Self::with(described, trial, part, name(i))).collect()
    }

    fn with(
        described: &Described,
        trial: &Trial,
        part: Option<SubDevice>,
        name: String,
    ) -> Result<Arc<Self>, Error> {
        let described = Described { name, ..described.clone() };
        let id = part.as_ref().map_or(described.id, |part| part.id() as usize);
        let device = opencl3::device::Device::new(id as cl_device_id);
        let context = Context::from_device(&device).map_err(|why| call(&described, "opening it", &why))?;
        let lost = Arc::new(AtomicBool::new(false));
        let hold = |thing| Held { thing: ManuallyDrop::new(thing), lost: lost.clone() };
        // A tenth is for the driver and for who else uses it.
        let usable = described.memory / 10 * 9;
        Ok(Arc::new(Self {
            memory: trial.memory.map_or(usable, |limit| limit.min(usable)),
            trial: trial.clone(),
            context: hold(context),
            id,
            programs: Mutex::default(),
            _part: part.map(|part| Held { thing: ManuallyDrop::new(part), lost: lost.clone() }),
            lost,
            described,
        }))
    }

    /// What its driver says of it.
    pub fn described(&self) -> &Described {
        &self.described
    }

    /// Bytes that may be used of its memory.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Whether threads are to leave to it what it can do.
    pub fn is_alone(&self) -> bool {
        self.trial.alone
    }

    /// Whether a call has failed.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    /// A lane of work, beside others.
    ///
    /// # Errors
    /// The device fails.
    pub fn lane(self: &Arc<Self>) -> Result<Lane, Error> {
        // SAFETY: the device is the context's.
        let queue = self.call("making a queue", || unsafe {
            CommandQueue::create(&self.context, self.id as cl_device_id, 0)
        })?;
        Ok(Lane { queue: self.hold(queue), device: self.clone() })
    }

    /// A program, compiled when it is asked for the first time.
    fn program(&self, source: &str, options: &str) -> Result<Arc<Held<Program>>, Error> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source.to_owned(), options.to_owned());
        if let Some(program) = programs.get(&key) {
            return Ok(program.clone());
        }
        self.usable("compiling")?;
        let program =
            Program::create_and_build_from_source(&self.context, source, options).map_err(|log| {
                self.lost.store(true, Relaxed);
                let log =
                    log.lines().filter(|line| !line.trim().is_empty()).take(3).collect::<Vec<_>>().join("; ");
                Error::Program { device: self.described.name.clone(), log }
            })?;
        let program = Arc::new(self.hold(program));
        programs.insert(key, program.clone());
        Ok(program)
    }

    fn hold<T>(&self, thing: T) -> Held<T> {
        Held { thing: ManuallyDrop::new(thing), lost: self.lost.clone() }
    }

    /// That the device is there, and no trial makes it fail now.
    fn usable(&self, what: &'static str) -> Result<(), Error> {
        if self.is_lost() {
            return Err(Error::Lost { device: self.described.name.clone() });
        }
        if self.trial.fails() {
            self.lost.store(true, Relaxed);
            let why = "a failure made for a trial".into();
            return Err(Error::Call { device: self.described.name.clone(), what, why });
        }
        Ok(())
    }

    /// Makes a call; one that fails loses the device.
    fn call<T>(&self, what: &'static str, call: impl FnOnce() -> Result<T, ClError>) -> Result<T, Error> {
        self.usable(what)?;
        call().map_err(|why| {
            self.lost.store(true, Relaxed);
            self::call(&self.described, what, &why)
        })
    }
}

fn call(device: &Described, what: &'static str, why: &ClError) -> Error {
    Error::Call { device: device.name.clone(), what, why: format!("{why} ({})", why.0) }
}

/// Memory of a device, in bytes, of one lane.
#[derive(Debug)]
pub struct Memory {
    buffer: Held<Buffer<u8>>,
    bytes: usize,
}

impl Memory {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

/// Memory of the host that the driver has pinned, so that the device copies from and to it by itself.
#[derive(Debug)]
pub struct Staging {
    at: *mut u8,
    bytes: usize,
    // The mapping goes with the buffer.
    _buffer: Held<Buffer<u8>>,
}

// SAFETY: it owns its bytes, which nobody else has a pointer to.
unsafe impl Send for Staging {}

impl Deref for Staging {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the driver mapped so many bytes there, until the buffer goes.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }
}

impl DerefMut for Staging {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and it is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.bytes) }
    }
}

/// A kernel of a lane.
#[derive(Debug)]
pub struct Kernel {
    kernel: Held<opencl3::kernel::Kernel>,
    _program: Arc<Held<Program>>,
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy)]
pub enum Arg<'a> {
    /// `__global` memory.
    Memory(&'a Memory),
    /// `uint`.
    U32(u32),
    /// `ulong`.
    U64(u64),
}

/// A queue of work of a device: what is asked for is done one after the other, beside other lanes.
#[derive(Debug)]
pub struct Lane {
    queue: Held<CommandQueue>,
    device: Arc<Device>,
}

impl Lane {
    /// Its device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Takes memory of the device, of undefined content.
    ///
    /// # Errors
    /// There is not so much, or the device fails.
    pub fn memory(&self, bytes: usize) -> Result<Memory, Error> {
        let buffer = self.buffer(CL_MEM_READ_WRITE, bytes)?;
        Ok(Memory { buffer, bytes })
    }

    fn buffer(&self, flags: u64, bytes: usize) -> Result<Held<Buffer<u8>>, Error> {
        // SAFETY: the buffer gets no pointer of ours.
        let made = self.device.call("taking memory", || unsafe {
            Buffer::create(&self.device.context, flags, bytes, std::ptr::null_mut())
        })?;
        Ok(self.device.hold(made))
    }

    /// Takes pinned memory of the host, of undefined content.
    ///
    /// # Errors
    /// There is not so much, or the device fails.
    pub fn staging(&self, bytes: usize) -> Result<Staging, Error> {
        let buffer = self.buffer(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes)?;
        let mut at: *mut c_void = std::ptr::null_mut();
        self.device.call("mapping memory", || {
            let flags = CL_MAP_READ | CL_MAP_WRITE;
            // SAFETY: the whole of a buffer of this context; the call waits until it is mapped.
            unsafe { self.queue.enqueue_map_buffer(&buffer, CL_BLOCKING, flags, 0, bytes, &mut at, &[]) }
        })?;
        Ok(Staging { at: at.cast(), bytes, _buffer: buffer })
    }

    /// Copies bytes to the start of a device's memory, and waits until they are there.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If there are more than the memory has.
    pub fn write(&self, to: &mut Memory, bytes: &[u8]) -> Result<(), Error> {
        assert!(bytes.len() <= to.bytes, "more bytes than the device's memory has");
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: it fits, and the call waits until the bytes are read.
        let write = || unsafe { self.queue.enqueue_write_buffer(&mut to.buffer, CL_BLOCKING, 0, bytes, &[]) };
        self.device.call("copying to it", write).map(drop)
    }

    /// Copies the first bytes of a device's memory, and waits until they are here.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the memory has fewer.
    pub fn read(&self, from: &Memory, bytes: &mut [u8]) -> Result<(), Error> {
        assert!(bytes.len() <= from.bytes, "more bytes than the device's memory has");
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: it fits, and the call waits until the bytes are written.
        let read = || unsafe { self.queue.enqueue_read_buffer(&from.buffer, CL_BLOCKING, 0, bytes, &[]) };
        self.device.call("copying from it", read).map(drop)
    }

    /// Sets the first `words` words of 4 bytes, when all before is done.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the memory has fewer.
    pub fn fill(&self, memory: &mut Memory, word: u32, words: usize) -> Result<(), Error> {
        assert!(words * 4 <= memory.bytes, "more bytes than the device's memory has");
        let pattern = word.to_ne_bytes();
        // The binding takes the pattern's type for the buffer's.
        let fill = || {
            let (queue, buffer) = (self.queue.get(), memory.buffer.get());
            // SAFETY: the queue and the buffer are of one context, and it fits; the pattern is copied by the call.
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
        self.device.call("clearing memory", fill).map(drop)
    }

    /// A kernel of a program, which is compiled once a device with these options.
    ///
    /// # Errors
    /// The driver cannot compile it, or the device fails.
    pub fn kernel(&self, source: &str, options: &str, name: &str) -> Result<Kernel, Error> {
        let program = self.device.program(source, options)?;
        let kernel =
            self.device.call("making a kernel", || opencl3::kernel::Kernel::create(&program, name))?;
        Ok(Kernel { kernel: self.device.hold(kernel), _program: program })
    }

    /// Starts a kernel of `groups` work-groups of `size` items each, when all before is done.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Safety
    /// The arguments are those that the kernel has, and with them it stays within the memory it is given.
    pub unsafe fn start(
        &self,
        kernel: &Kernel,
        args: &[Arg<'_>],
        groups: usize,
        size: usize,
    ) -> Result<(), Error> {
        if groups == 0 {
            return Ok(());
        }
        self.device.call("starting a kernel", || {
            for (at, arg) in (0u32..).zip(args) {
                // SAFETY: the caller vouches for number and types.
                unsafe {
                    match arg {
                        Arg::Memory(memory) => kernel.kernel.set_arg(at, &memory.buffer.get()),
                        Arg::U32(n) => kernel.kernel.set_arg(at, n),
                        Arg::U64(n) => kernel.kernel.set_arg(at, n),
                    }?;
                }
            }
            let (all, none) = (groups * size, std::ptr::null());
            // SAFETY: one dimension, whose sizes are read by the call; the caller vouches for the kernel.
            unsafe { self.queue.enqueue_nd_range_kernel(kernel.kernel.get(), 1, none, &all, &size, &[]) }
        })?;
        // What is not sent off waits until somebody waits for it.
        self.device.call("starting a kernel", || self.queue.flush())
    }

    /// Waits until all is done.
    ///
    /// # Errors
    /// The device fails.
    pub fn wait(&self) -> Result<(), Error> {
        self.device.call("waiting for it", || self.queue.finish())
    }
}
