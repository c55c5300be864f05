//! The calls to the kernel that place memory and threads, made safe. Nothing else in the crate is unsafe but `placement/slab.rs`.
//!
//! mbind(2), set_mempolicy(2), get_mempolicy(2) and move_pages(2) have no wrapper in the C library and none in rustix or nix, so they
//! are made by number. The numbers of modes are those of `include/uapi/linux/mempolicy.h`.
#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use bytemuck::Zeroable;
use libc::{c_int, c_long, c_ulong, c_void};

use crate::IdSet;

/// Nodes a mask has room for: the most any kernel is built for (`CONFIG_NODES_SHIFT` = 10).
const NODES: usize = 1024;
/// CPUs a mask has room for: the most x86-64 and arm64 are built for.
const CPUS: usize = 8192;
/// Bits of a mask's word.
const WORD: usize = c_ulong::BITS as usize;
/// `MADV_POPULATE_WRITE`, since Linux 5.14.
const POPULATE_WRITE: c_int = 23;
/// `MADV_COLLAPSE`, since Linux 6.1.
const COLLAPSE: c_int = 25;
/// Pages asked about in one call of move_pages.
const BATCH: usize = 8192;

/// Gathers the pages of whole huge pages, `range` of addresses, into huge ones; what is in them stays.
pub fn collapse(range: Range<usize>) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut::<c_void>(range.start);
    for advice in [libc::MADV_HUGEPAGE, COLLAPSE] {
        // SAFETY: neither advice changes what is read from the range; an address that is not mapped is an error of the kernel's.
        checked(c_long::from(unsafe { libc::madvise(start, range.len(), advice) }))?;
    }
    Ok(())
}

/// A memory policy as the kernel knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The mode, with its flags.
    pub mode: Mode,
    /// The nodes it is about.
    pub nodes: IdSet,
}

/// Mode of a memory policy, with its flags: `MPOL_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode(c_int);

impl Mode {
    /// One node before all others.
    pub(crate) const PREFERRED: Mode = Mode(1);
    /// These nodes and no other.
    pub(crate) const BIND: Mode = Mode(2);
    /// These nodes in turn.
    pub(crate) const INTERLEAVE: Mode = Mode(3);
    /// The node of the thread that touches the page.
    pub const LOCAL: Mode = Mode(4);
    /// These nodes before all others, since Linux 5.15.
    pub(crate) const PREFERRED_MANY: Mode = Mode(5);
    /// These nodes in turn, each as often as its weight says, since Linux 6.9.
    pub(crate) const WEIGHTED_INTERLEAVE: Mode = Mode(6);

    /// Whether one page after the other comes from another node. The bits above say how nodes are numbered.
    pub fn spreads(self) -> bool {
        [Mode::INTERLEAVE, Mode::WEIGHTED_INTERLEAVE].contains(&Mode(self.0 & 0xff))
    }
}

/// The word and the bit of `id` in a mask.
fn place(id: u32) -> (usize, c_ulong) {
    (id as usize / WORD, 1 << (id as usize % WORD))
}

/// The mask of `ids`, `bits` wide.
fn mask(ids: &IdSet, bits: usize) -> io::Result<Vec<c_ulong>> {
    let mut words = vec![0; bits / WORD];
    for id in ids.iter() {
        let (word, bit) = place(id);
        *words.get_mut(word).ok_or(io::ErrorKind::InvalidInput)? |= bit;
    }
    Ok(words)
}

/// The numbers whose bits are set.
fn ids(words: &[c_ulong]) -> IdSet {
    let set = |&id: &u32| words[place(id).0] & place(id).1 != 0;
    (0..(words.len() * WORD) as u32).filter(set).collect()
}

/// What a call returned, or the error it left.
fn checked(returned: c_long) -> io::Result<c_long> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// Whether a call is forbidden (seccomp, a security module) or unknown here, rather than wrong.
pub fn refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EACCES))
}

/// Whether the kernel does not know the mode asked for.
pub fn unknown(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}

/// Bytes of a page.
pub fn page() -> usize {
    // SAFETY: sysconf reads a constant.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Sets this thread's policy for memory that has none of its own.
pub(crate) fn set_policy(policy: &Policy) -> io::Result<()> {
    let words = mask(&policy.nodes, NODES)?;
    // The kernel reads one bit less than it is told.
    let (pointer, bits) =
        if policy.nodes.is_empty() { (std::ptr::null(), 0) } else { (words.as_ptr(), NODES + 1) };
    // SAFETY: the mask is NODES bits long and only read.
    checked(unsafe { libc::syscall(libc::SYS_set_mempolicy, policy.mode.0, pointer, bits) }).map(drop)
}

/// This thread's policy for memory that has none of its own.
pub fn policy() -> io::Result<Policy> {
    let mut mode: c_int = 0;
    let mut words: Vec<c_ulong> = vec![0; NODES / WORD];
    let none = std::ptr::null::<c_void>();
    // SAFETY: `mode` and the mask are ours to write; the mask is NODES bits long and the kernel is told so.
    checked(unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, words.as_mut_ptr(), NODES, none, 0)
    })?;
    Ok(Policy { mode: Mode(mode), nodes: ids(&words) })
}

/// Lets the calling thread run on `cpus` only.
pub(crate) fn set_affinity(cpus: &IdSet) -> io::Result<()> {
    let words = mask(cpus, CPUS)?;
    // SAFETY: the mask is as long as said and only read; 0 is the calling thread.
    checked(c_long::from(unsafe { libc::sched_setaffinity(0, CPUS / 8, words.as_ptr().cast()) })).map(drop)
}

/// The CPUs that the thread `thread` may run on; 0 is the calling thread, the process's number its first thread.
pub fn affinity(thread: u32) -> io::Result<IdSet> {
    let mut words: Vec<c_ulong> = vec![0; CPUS / WORD];
    // SAFETY: the mask is ours to write and as long as said.
    checked(c_long::from(unsafe {
        libc::sched_getaffinity(thread as libc::pid_t, CPUS / 8, words.as_mut_ptr().cast())
    }))?;
    Ok(ids(&words))
}

/// Bytes of memory that there are, and that are free.
pub fn memory() -> io::Result<[u64; 2]> {
    let mut info = std::mem::MaybeUninit::<libc::sysinfo>::uninit();
    // SAFETY: the structure is ours to write, and the kernel fills all of it unless it says that it failed.
    let info = unsafe {
        checked(c_long::from(libc::sysinfo(info.as_mut_ptr())))?;
        info.assume_init()
    };
    let unit = u64::from(info.mem_unit.max(1));
    // Words of 32 bits where the processor's are.
    #[allow(clippy::useless_conversion)]
    Ok([info.totalram, info.freeram].map(|units| u64::from(units) * unit))
}

/// The CPU this runs on, in a few nanoseconds.
pub fn cpu() -> u32 {
    // SAFETY: no argument; -1 (a kernel without it) becomes 0.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// The CPU and the node this runs on, as the kernel says.
pub(crate) fn cpu_and_node() -> io::Result<(u32, u32)> {
    let (mut cpu, mut node) = (0_u32, 0_u32);
    // SAFETY: both numbers are ours to write; the third argument is unused since Linux 2.6.24.
    checked(unsafe {
        libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, std::ptr::null::<c_void>())
    })?;
    Ok((cpu, node))
}

/// Whether memory under the address is resident, a page at a time, and on which node: asks move_pages about `count` pages of `unit` bytes
/// from `address` on and gives each answer to `each`: the node, or nothing for a page that is not there.
pub fn pages(address: usize, unit: usize, count: usize, mut each: impl FnMut(Option<u32>)) -> io::Result<()> {
    let mut asked: Vec<usize> = Vec::with_capacity(BATCH.min(count));
    let mut status: Vec<c_int> = vec![0; BATCH.min(count)];
    for first in (0..count).step_by(BATCH) {
        asked.clear();
        asked.extend((first..count.min(first + BATCH)).map(|page| address + page * unit));
        let none = std::ptr::null::<c_void>();
        // SAFETY: without a list of nodes the call moves nothing; it reads `asked` and writes as many numbers to `status`. Addresses that
        // are not mapped get an error as their status.
        checked(unsafe {
            libc::syscall(libc::SYS_move_pages, 0, asked.len(), asked.as_ptr(), none, status.as_mut_ptr(), 0)
        })?;
        status[..asked.len()].iter().for_each(|&node| each(u32::try_from(node).ok()));
    }
    Ok(())
}

/// Pages of a region that mmap gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The machine's base pages; the region starts at a multiple of so many bytes.
    Base {
        /// A power of two, at least a page.
        align: usize,
    },
    /// Pages of so many bytes out of the pool of huge pages.
    Pool(usize),
}

/// Anonymous private memory, all zero, a mapping of its own. Nothing reads or writes it before it becomes an [`Array`].
#[derive(Debug)]
pub struct Region {
    reserved: NonNull<c_void>,
    reserved_bytes: usize,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a region owns its memory, which is bound to no thread.
unsafe impl Send for Region {}
// SAFETY: what takes `&self` touches the memory through atomics or in the kernel only.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `bytes`, rounded up to whole pages. Memory of base pages has a page that nobody may touch on both sides, so that the kernel
    /// never merges it with a neighbour's mapping.
    pub fn new(bytes: usize, kind: Kind) -> io::Result<Region> {
        let (unit, slack, prot, more) = match kind {
            // What is never used is not set aside, as far as the system lets it be so.
            Kind::Base { align } => (page(), align + page(), libc::PROT_NONE, libc::MAP_NORESERVE),
            Kind::Pool(unit) => {
                let size = (unit.trailing_zeros() as c_int) << libc::MAP_HUGE_SHIFT;
                (unit, 0, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_HUGETLB | size)
            }
        };
        let too_large = || io::Error::from_raw_os_error(libc::ENOMEM);
        let bytes = bytes.max(1).checked_next_multiple_of(unit).ok_or_else(too_large)?;
        let reserved_bytes = bytes.checked_add(slack).ok_or_else(too_large)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | more;
        // SAFETY: a new mapping wherever the kernel likes it touches no memory that is in use.
        let reserved = unsafe { libc::mmap(std::ptr::null_mut(), reserved_bytes, prot, flags, -1, 0) };
        if reserved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let reserved = NonNull::new(reserved).ok_or_else(too_large)?;
        let start = match kind {
            Kind::Base { align } => {
                let first = reserved.as_ptr().cast::<u8>().wrapping_add(page());
                first.wrapping_add(first.align_offset(align))
            }
            Kind::Pool(_) => reserved.as_ptr().cast(),
        };
        let start = NonNull::new(start).ok_or_else(too_large)?;
        let region = Region { reserved, reserved_bytes, start, bytes };
        if let Kind::Base { .. } = kind {
            // SAFETY: the range lies within the reservation: a page and less than `align` bytes before it, at least a page after it.
            checked(c_long::from(unsafe {
                libc::mprotect(region.start.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE)
            }))?;
        }
        Ok(region)
    }

    /// Its first address.
    pub fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// Its length in bytes, whole pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its first byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Gives the pages of `range` (bytes, whole pages) back; they are zero when they are used again.
    ///
    /// # Safety
    /// Nobody may borrow a byte of the range.
    pub unsafe fn discard(&self, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.bytes);
        let start = self.start.as_ptr().wrapping_add(range.start);
        // SAFETY: the range is within the region, and nobody has a reference to it.
        checked(c_long::from(unsafe { libc::madvise(start.cast(), range.len(), libc::MADV_DONTNEED) }))
            .map(drop)
    }

    /// Asks for transparent huge pages, or for none.
    pub fn transparent(&self, huge: bool) -> io::Result<()> {
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the advice changes no content, and the range is ours.
        checked(c_long::from(unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, advice) }))
            .map(drop)
    }

    /// Puts the whole region under a policy; pages that are there already stay where they are.
    pub fn bind(&self, policy: &Policy) -> io::Result<()> {
        let words = mask(&policy.nodes, NODES)?;
        let (pointer, bits) =
            if policy.nodes.is_empty() { (std::ptr::null(), 0) } else { (words.as_ptr(), NODES + 1) };
        // SAFETY: the range is ours, the mask is as long as said and only read, no flag asks to move pages.
        checked(unsafe {
            libc::syscall(libc::SYS_mbind, self.start.as_ptr(), self.bytes, policy.mode.0, pointer, bits, 0)
        })
        .map(drop)
    }

    /// Faults the pages of `range` (bytes, whole pages) in, with their content kept. Base pages only touch where the kernel is older than
    /// 5.14; there a lack of memory ends the process instead of being an error.
    pub(crate) fn populate(&self, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.bytes);
        let start = self.start.as_ptr().wrapping_add(range.start);
        loop {
            // SAFETY: the range is within the region; populating changes no content.
            let done = unsafe { libc::madvise(start.cast(), range.len(), POPULATE_WRITE) };
            match checked(c_long::from(done)) {
                Ok(_) => return Ok(()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR | libc::EAGAIN) => {}
                    Some(libc::EINVAL | libc::EPERM | libc::ENOSYS) => break,
                    _ => return Err(error),
                },
            }
        }
        for offset in range.step_by(page()) {
            // SAFETY: the byte is within the region, mapped for reading and writing; all accesses to it are atomic until the region
            // becomes an array, which takes it by value.
            unsafe { AtomicU8::from_ptr(self.start.as_ptr().add(offset)) }.fetch_or(0, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the reservation is ours and whole; nothing borrows from it any more. A failure would leave it mapped, no worse.
        unsafe { libc::munmap(self.reserved.as_ptr(), self.reserved_bytes) };
    }
}

/// Elements in a region of their own, zero at first.
#[derive(Debug)]
pub struct Array<T> {
    region: Option<Region>,
    start: NonNull<T>,
    len: usize,
}

// SAFETY: an array owns its elements, as a Box<[T]> does.
unsafe impl<T: Send> Send for Array<T> {}
// SAFETY: `&Array` gives `&[T]` and nothing else.
unsafe impl<T: Sync> Sync for Array<T> {}

impl<T: Copy + Zeroable> Array<T> {
    /// The first `len` elements of the region's memory; no region is needed where they take no bytes.
    ///
    /// # Panics
    /// When the region is too small or not aligned for them.
    pub fn new(region: Option<Region>, len: usize) -> Array<T> {
        let start = match &region {
            Some(region) => region.start.cast(),
            None => NonNull::dangling(),
        };
        let room = region.as_ref().map_or(0, Region::bytes);
        assert!(size_of::<T>().checked_mul(len).is_some_and(|bytes| bytes <= room), "region too small");
        assert!(start.is_aligned(), "region not aligned");
        Array { region, start, len }
    }

    /// First address and length in bytes of the memory the elements are in.
    pub fn memory(&self) -> Option<(usize, usize)> {
        self.region.as_ref().map(|region| (region.address(), region.bytes))
    }

    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: `new` checked length and alignment; the memory was zero, which is a T, and only Ts were written since.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The elements, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as for `as_slice`; `&mut self` makes it the only borrow.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}
