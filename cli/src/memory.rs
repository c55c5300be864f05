//! Memory that the system refuses ends the program in one line, be it asked by Rust, which would abort, or by the aligners' C code, which does
//! not look and would write to address 0.
#![allow(unsafe_code)] // Allocators, which hand every call on.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::fmt::Write as _;
use std::fs;

use mimalloc::MiMalloc;
use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};

use genuma_work::signals;

/// Gives memory back to the system soon after it is freed. The C library's allocator kept 1.5 GB of finished bins
/// resident beside what the next units needed, which `--memory` has to pay for.
#[global_allocator]
static ALLOCATOR: Given = Given;

struct Given;

// SAFETY: all contracts are mimalloc's, which keeps them; what it gives is handed on, or the call does not come back.
unsafe impl GlobalAlloc for Given {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout, handed on.
        given(unsafe { MiMalloc.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout, handed on.
        given(unsafe { MiMalloc.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's memory, which came from mimalloc, and its layout.
        given(unsafe { MiMalloc.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the same.
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

/// Gives what is free back to the system now, that of threads which have ended too.
pub(crate) fn give_back() {
    // SAFETY: it may be called at any time, and touches only what nobody holds.
    unsafe { mi_collect(true) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_malloc(size: usize) -> *mut c_void {
    // SAFETY: the caller keeps the C library's contract, or breaks it as it would without us.
    given(unsafe { __real_malloc(size) }, size)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_calloc(items: usize, size: usize) -> *mut c_void {
    // SAFETY: the caller keeps the C library's contract, or breaks it as it would without us.
    given(unsafe { __real_calloc(items, size) }, items.saturating_mul(size))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the caller keeps the C library's contract, or breaks it as it would without us.
    given(unsafe { __real_realloc(memory, size) }, size)
}

/// Stack that the first thread has from the beginning.
const STACK: usize = 512 << 10;
/// What the kernel maps beyond what is asked for.
const SPARE: u64 = 64 << 10;

/// Lets the first thread's stack grow while there is memory: the kernel enlarges it when it is touched, and ends with SIGSEGV a program whose limit on memory
/// (`ulimit -v`) has been used up by then. Those of other threads are mapped as they start.
pub(crate) fn hold_stack() {
    if let Some(limit) = getrlimit(Resource::As).current {
        let pages = fs::read_to_string("/proc/self/statm").ok();
        let pages = pages.and_then(|pages| pages.split(' ').next()?.parse::<u64>().ok()).unwrap_or(0);
        if pages * page_size() as u64 + STACK as u64 + SPARE > limit {
            refused(STACK);
        }
    }
    touch();
}

#[inline(never)]
fn touch() {
    std::hint::black_box([0u8; STACK]);
}

/// Memory of so many bytes, if it was given.
fn given<T>(memory: *mut T, bytes: usize) -> *mut T {
    if memory.is_null() && bytes > 0 {
        refused(bytes);
    }
    memory
}

#[cold]
fn refused(bytes: usize) -> ! {
    signals::give_up(|| {
        // Without memory of its own.
        let mut line = Line { text: [0; 200], length: 0 };
        let _ = writeln!(
            line,
            "genuma: error: the system refuses {} KiB of memory: use fewer --threads, less --memory, or a machine \
             or limit (ulimit -v, a container's memory) with more of it",
            bytes.div_ceil(1024)
        );
        let _ = rustix::io::write(rustix::stdio::stderr(), &line.text[..line.length]);
    })
}

/// A line of a fixed length at most.
struct Line {
    text: [u8; 200],
    length: usize,
}

impl std::fmt::Write for Line {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        let room = self.text.get_mut(self.length..self.length + more.len()).ok_or(std::fmt::Error)?;
        room.copy_from_slice(more.as_bytes());
        self.length += more.len();
        Ok(())
    }
}
