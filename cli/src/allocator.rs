//! Memory allocator of the program. If the system refuses memory, the program ends with an error message. Without this
//! module Rust would abort without one, and C code that does not check for failed allocations would write to address 0.
#![allow(unsafe_code)] // Allocators, which hand every call on.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use mimalloc::MiMalloc;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};

use genuma_work::signals;

/// The global allocator. mimalloc returns freed memory to the system soon. With the malloc of glibc, 1.5 GB of freed
/// bins stayed resident and counted against `--memory`.
#[global_allocator]
static ALLOCATOR: ExitingAllocator = ExitingAllocator;

struct ExitingAllocator;

// SAFETY: mimalloc fulfils all contracts; its result is returned unchanged, or the call does not return.
unsafe impl GlobalAlloc for ExitingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is the caller's.
        exit_if_allocation_failed(unsafe { MiMalloc.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is the caller's.
        exit_if_allocation_failed(unsafe { MiMalloc.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the memory came from mimalloc, with the caller's layout.
        exit_if_allocation_failed(unsafe { MiMalloc.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as in `realloc`.
        unsafe { MiMalloc.dealloc(memory, layout) }
    }
}

// The linker calls `__wrap_f` where C code calls `f`, and `f` where `__real_f` is called (`build.rs`).
unsafe extern "C" {
    fn mi_collect(force: bool);
    fn __real_malloc(size: usize) -> *mut c_void;
    fn __real_calloc(items: usize, size: usize) -> *mut c_void;
    fn __real_realloc(memory: *mut c_void, size: usize) -> *mut c_void;
}

/// Returns free memory of mimalloc to the system: that of the calling thread and that of ended threads.
pub(crate) fn return_free_memory_to_system() {
    // SAFETY: it may be called at any time and touches only free memory.
    unsafe { mi_collect(true) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_malloc(size: usize) -> *mut c_void {
    // SAFETY: the caller keeps the contract of the C library.
    exit_if_allocation_failed(unsafe { __real_malloc(size) }, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_calloc(items: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller keeps the contract of the C library.
    exit_if_allocation_failed(unsafe { __real_calloc(items, size) }, items.saturating_mul(size))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller keeps the contract of the C library.
    exit_if_allocation_failed(unsafe { __real_realloc(memory, size) }, size)
}

/// Bytes of stack that are reserved for the main thread at start.
const STACK_BYTES: usize = 512 << 10;
/// Bytes that the kernel maps in addition to the stack that is reserved. Empirical.
const KERNEL_SLACK_BYTES: u64 = 128 << 10;

/// Reserves stack for the main thread while memory is available; ends the program with an error message if the limit on
/// memory (`ulimit -v`) leaves too little. The kernel grows this stack on demand, and kills the program with SIGSEGV if
/// the limit is then used up. The stacks of other threads are mapped when they start.
pub(crate) fn reserve_main_thread_stack() {
    if let Some(limit) = getrlimit(Resource::As).current {
        let pages = fs::read_to_string("/proc/self/statm").ok();
        let pages = pages.and_then(|pages| pages.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0);
        if pages * page_size() as u64 + STACK_BYTES as u64 + KERNEL_SLACK_BYTES > limit {
            exit_out_of_memory(STACK_BYTES);
        }
    }
    touch_stack();
}

/// A limit of this process on memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryUlimit {
    /// The limit in bytes.
    pub(crate) bytes: u64,
    /// What is limited, for messages.
    pub(crate) subject: &'static str,
    /// The command of the shell that sets the limit.
    pub(crate) command: &'static str,
}

/// Returns the least of the limits of this process on address space and on data; `None` without a limit.
pub(crate) fn lowest_memory_ulimit() -> Option<MemoryUlimit> {
    let limits = [
        (Resource::As, "the address space of this process", "ulimit -v"),
        (Resource::Data, "the memory for data of this process", "ulimit -d"),
    ];
    let limit = |(resource, subject, command)| {
        getrlimit(resource).current.map(|bytes| MemoryUlimit { bytes, subject, command })
    };
    limits.into_iter().filter_map(limit).min_by_key(|limit| limit.bytes)
}

/// Whether the command that runs has the option `--memory`, which messages then name.
static HAS_MEMORY_OPTION: AtomicBool = AtomicBool::new(false);

/// Stores whether the command that runs has the option `--memory`.
pub(crate) fn set_has_memory_option(has_option: bool) {
    HAS_MEMORY_OPTION.store(has_option, Relaxed);
}

/// Whether the command that runs has the option `--memory`.
pub(crate) fn has_memory_option() -> bool {
    HAS_MEMORY_OPTION.load(Relaxed)
}

#[inline(never)]
fn touch_stack() {
    // By reference: without optimisation a value would be copied, and take the stack twice.
    std::hint::black_box(&[0u8; STACK_BYTES]);
}

/// Returns `memory`, the result of an allocation of `bytes` bytes. Ends the program with an error message if the
/// allocation failed.
fn exit_if_allocation_failed<T>(memory: *mut T, bytes: usize) -> *mut T {
    if memory.is_null() && bytes > 0 {
        exit_out_of_memory(bytes);
    }
    memory
}

#[cold]
fn exit_out_of_memory(bytes: usize) -> ! {
    signals::exit_after_failure(|| {
        // The message is formatted without allocating.
        let mut line = FixedLine { text: [0; 250], length: 0 };
        let options = if has_memory_option() { "--threads or --memory" } else { "--threads" };
        let _ =
            write!(line, "genuma: error: out of memory ({} KiB requested): lower {options}, ", bytes.div_ceil(1024));
        let _ = match lowest_memory_ulimit() {
            Some(limit) => writeln!(line, "or raise the limit ({}: now {} KiB)", limit.command, limit.bytes / 1024),
            None => writeln!(line, "or raise the limit on memory of the container or batch job"),
        };
        let _ = rustix::io::write(rustix::stdio::stderr(), &line.text[..line.length]);
    })
}

/// A text buffer of fixed size, into which a message is formatted without allocating memory.
struct FixedLine {
    text: [u8; 250],
    length: usize,
}

impl std::fmt::Write for FixedLine {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let room = self.text.get_mut(self.length..self.length + more.len()).ok_or(std::fmt::Error)?;
        room.copy_from_slice(more.as_bytes());
        self.length += more.len();
        Ok(())
    }
}
