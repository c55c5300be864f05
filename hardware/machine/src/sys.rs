//! Safe wrappers of the system calls that place memory and threads. Besides `placement/slab.rs`, only this module
//! uses `unsafe` for memory.
//!
//! mbind(2), set_mempolicy(2), get_mempolicy(2) and move_pages(2) have no wrapper in the C library, rustix or nix, so
//! they are called by number. Mode numbers are those of `include/uapi/linux/mempolicy.h`.
#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

use bytemuck::Zeroable;
use libc::{c_int, c_long, c_ulong, c_void};

use crate::IdSet;

/// Bits of a node mask: the largest number of nodes a kernel can be built for (`CONFIG_NODES_SHIFT` = 10).
const MAX_NODES: usize = 1024;
/// Bits of a CPU mask: the largest number of CPUs that x86-64 and arm64 kernels can be built for.
const MAX_CPUS: usize = 8192;
/// Bits of one word of a node or CPU mask.
const BITS_PER_WORD: usize = c_ulong::BITS as usize;
/// Advice `MADV_POPULATE_WRITE` of madvise(2), since Linux 5.14.
const MADV_POPULATE_WRITE: c_int = 23;
/// Advice `MADV_COLLAPSE` of madvise(2), since Linux 6.1.
const MADV_COLLAPSE: c_int = 25;
/// Pages per call of move_pages(2).
const MOVE_PAGES_BATCH: usize = 8192;

/// Merges the base pages in the address range into transparent huge pages. Keeps the content. The range must consist
/// of whole huge pages.
pub(crate) fn madvise_collapse(range: Range<usize>) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut::<c_void>(range.start);
    for advice in [libc::MADV_HUGEPAGE, MADV_COLLAPSE] {
        // SAFETY: neither advice changes the content of the range. For an unmapped address the kernel returns an
        // error.
        check_return_value(c_long::from(unsafe { libc::madvise(start, range.len(), advice) }))?;
    }
    Ok(())
}

/// A memory policy as the kernel represents it: mode and nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelMempolicy {
    /// The policy mode with its flags.
    pub mode: MempolicyMode,
    /// The nodes that the policy applies to.
    pub nodes: IdSet,
}

/// Mode of a kernel memory policy with its flags (`MPOL_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MempolicyMode(c_int);

impl MempolicyMode {
    /// Prefers one node, uses other nodes when it is full (`MPOL_PREFERRED`).
    pub(crate) const MPOL_PREFERRED: MempolicyMode = MempolicyMode(1);
    /// Uses the given nodes only (`MPOL_BIND`).
    pub(crate) const MPOL_BIND: MempolicyMode = MempolicyMode(2);
    /// Allocates pages round-robin over the given nodes (`MPOL_INTERLEAVE`).
    pub(crate) const MPOL_INTERLEAVE: MempolicyMode = MempolicyMode(3);
    /// Allocates on the node of the thread that first touches the page (`MPOL_LOCAL`).
    pub(crate) const MPOL_LOCAL: MempolicyMode = MempolicyMode(4);
    /// Prefers the given nodes, uses others when all are full (`MPOL_PREFERRED_MANY`, Linux 5.15).
    pub(crate) const MPOL_PREFERRED_MANY: MempolicyMode = MempolicyMode(5);
    /// Allocates pages round-robin over the given nodes in proportion to their weights (`MPOL_WEIGHTED_INTERLEAVE`,
    /// Linux 6.9).
    pub(crate) const MPOL_WEIGHTED_INTERLEAVE: MempolicyMode = MempolicyMode(6);

    /// Whether the policy spreads consecutive pages over several nodes. Ignores the mode flags (bits 8 and up), which
    /// define how nodes are numbered.
    pub(crate) fn is_interleaved(self) -> bool {
        [MempolicyMode::MPOL_INTERLEAVE, MempolicyMode::MPOL_WEIGHTED_INTERLEAVE]
            .contains(&MempolicyMode(self.0 & 0xff))
    }
}

/// Word index and bit of number `id` in a mask.
fn mask_position(id: u32) -> (usize, c_ulong) {
    (id as usize / BITS_PER_WORD, 1 << (id as usize % BITS_PER_WORD))
}

/// Encodes `ids` as a mask of `bits` bits. Fails with `InvalidInput` when a number is too large.
fn encode_mask(ids: &IdSet, bits: usize) -> io::Result<Vec<c_ulong>> {
    let mut words = vec![0; bits / BITS_PER_WORD];
    for id in ids.iter() {
        let (word, bit) = mask_position(id);
        *words.get_mut(word).ok_or(io::ErrorKind::InvalidInput)? |= bit;
    }
    Ok(words)
}

/// Decodes a mask: returns the numbers whose bits are set.
fn decode_mask(words: &[c_ulong]) -> IdSet {
    let set = |&id: &u32| words[mask_position(id).0] & mask_position(id).1 != 0;
    (0..(words.len() * BITS_PER_WORD) as u32).filter(set).collect()
}

/// Converts the return value of a system call: a negative value becomes the error in `errno`.
fn check_return_value(returned: c_long) -> io::Result<c_long> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// Whether `error` means that the system call is forbidden (seccomp, security module) or not implemented by this
/// kernel, not that its arguments are wrong.
pub(crate) fn is_call_forbidden(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EACCES))
}

/// Whether `error` of a call that sets a memory policy means that this process must run without memory policies: the
/// call is forbidden, or the kernel does not know the nodes that its files list (`EINVAL`), as in a container that
/// shows the files of another machine. The nodes were checked against these files before.
pub(crate) fn is_policy_refused(error: &io::Error) -> bool {
    is_call_forbidden(error) || is_invalid_argument(error)
}

/// Whether the error is `EINVAL`, which an older kernel returns for a policy mode that it lacks.
pub(crate) fn is_invalid_argument(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}

/// Size of a base page in bytes.
pub(crate) fn base_page_bytes() -> usize {
    // SAFETY: sysconf reads a constant.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

/// Sets the calling thread's memory policy. It applies to memory without a policy of its own.
pub(crate) fn set_thread_mempolicy(policy: &KernelMempolicy) -> io::Result<()> {
    let words = encode_mask(&policy.nodes, MAX_NODES)?;
    // The kernel reads one bit less than the given count.
    let (pointer, bits) = if policy.nodes.is_empty() { (std::ptr::null(), 0) } else { (words.as_ptr(), MAX_NODES + 1) };
    // SAFETY: the mask is MAX_NODES bits long and only read.
    check_return_value(unsafe { libc::syscall(libc::SYS_set_mempolicy, policy.mode.0, pointer, bits) }).map(drop)
}

/// Reads the calling thread's memory policy, which applies to memory without a policy of its own.
pub(crate) fn thread_mempolicy() -> io::Result<KernelMempolicy> {
    let mut mode: c_int = 0;
    let mut words: Vec<c_ulong> = vec![0; MAX_NODES / BITS_PER_WORD];
    let none = std::ptr::null::<c_void>();
    // SAFETY: `mode` and the mask are writable and live; the mask is MAX_NODES bits long, as stated in the call.
    check_return_value(unsafe {
        libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, words.as_mut_ptr(), MAX_NODES, none, 0)
    })?;
    Ok(KernelMempolicy { mode: MempolicyMode(mode), nodes: decode_mask(&words) })
}

/// Restricts the calling thread to `cpus` (sched_setaffinity).
pub(crate) fn set_thread_affinity(cpus: &IdSet) -> io::Result<()> {
    let words = encode_mask(cpus, MAX_CPUS)?;
    // SAFETY: the mask has the stated length and is only read; thread 0 is the calling thread.
    check_return_value(c_long::from(unsafe { libc::sched_setaffinity(0, MAX_CPUS / 8, words.as_ptr().cast()) }))
        .map(drop)
}

/// Reads the CPUs that a thread may run on. Thread 0 is the calling thread; the process ID is the process's first
/// thread.
pub(crate) fn thread_affinity(thread: u32) -> io::Result<IdSet> {
    let mut words: Vec<c_ulong> = vec![0; MAX_CPUS / BITS_PER_WORD];
    // SAFETY: the mask is writable and has the stated length.
    check_return_value(c_long::from(unsafe {
        libc::sched_getaffinity(thread as libc::pid_t, MAX_CPUS / 8, words.as_mut_ptr().cast())
    }))?;
    Ok(decode_mask(&words))
}

/// Total and free memory of the machine in bytes (sysinfo).
pub(crate) fn total_and_free_memory_bytes() -> io::Result<[u64; 2]> {
    let mut info = std::mem::MaybeUninit::<libc::sysinfo>::uninit();
    // SAFETY: the structure is writable; the kernel fills all of it unless the call fails.
    let info = unsafe {
        check_return_value(c_long::from(libc::sysinfo(info.as_mut_ptr())))?;
        info.assume_init()
    };
    let unit = u64::from(info.mem_unit.max(1));
    // `totalram` and `freeram` are 32-bit integers on 32-bit processors.
    #[allow(clippy::useless_conversion)]
    Ok([info.totalram, info.freeram].map(|units| u64::from(units) * unit))
}

/// The CPU that the calling thread runs on now. Takes a few nanoseconds. Returns 0 where the kernel cannot report the
/// CPU.
pub(crate) fn current_cpu() -> u32 {
    // SAFETY: the call has no argument. It returns -1 on a kernel without it, which becomes 0.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// The CPU and the NUMA node that the calling thread runs on now (getcpu).
pub(crate) fn current_cpu_and_node() -> io::Result<(u32, u32)> {
    let (mut cpu, mut node) = (0_u32, 0_u32);
    // SAFETY: both numbers are writable; the third argument is unused since Linux 2.6.24.
    check_return_value(unsafe {
        libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, std::ptr::null::<c_void>())
    })?;
    Ok((cpu, node))
}

/// Queries the NUMA node of each of `num_pages` pages of `page_bytes` bytes, starting at `address` (move_pages).
/// Calls `visit` once per page in address order: with the node, or with `None` for a page that is not resident.
pub(crate) fn query_page_nodes(
    address: usize,
    page_bytes: usize,
    num_pages: usize,
    mut visit: impl FnMut(Option<u32>),
) -> io::Result<()> {
    let mut addresses: Vec<usize> = Vec::with_capacity(MOVE_PAGES_BATCH.min(num_pages));
    let mut status: Vec<c_int> = vec![0; MOVE_PAGES_BATCH.min(num_pages)];
    for first in (0..num_pages).step_by(MOVE_PAGES_BATCH) {
        addresses.clear();
        addresses.extend((first..num_pages.min(first + MOVE_PAGES_BATCH)).map(|page| address + page * page_bytes));
        let none = std::ptr::null::<c_void>();
        // SAFETY: without a node list the call moves nothing. It reads `addresses` and writes as many numbers to
        // `status`. An address that is not mapped gets an error as its status.
        check_return_value(unsafe {
            libc::syscall(libc::SYS_move_pages, 0, addresses.len(), addresses.as_ptr(), none, status.as_mut_ptr(), 0)
        })?;
        status[..addresses.len()].iter().for_each(|&node| visit(u32::try_from(node).ok()));
    }
    Ok(())
}

/// Size of the pages of a mapping: base pages, or huge pages of a hugetlb pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MappingPageKind {
    /// Base pages of the machine.
    Base {
        /// Alignment of the first byte: a power of two, at least a base page.
        align_bytes: usize,
    },
    /// Pages of this many bytes from the hugetlb pool.
    HugePool(usize),
}

/// Anonymous private memory in its own mapping, zeroed. Its bytes are used only after it has become a [`RegionArray`],
/// or as the buffers of a slab.
#[derive(Debug)]
pub(crate) struct MappedRegion {
    reservation: NonNull<c_void>,
    reservation_bytes: usize,
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: a region owns its memory, which is not bound to a thread.
unsafe impl Send for MappedRegion {}
// SAFETY: methods that take `&self` access the memory through atomics or in the kernel only.
unsafe impl Sync for MappedRegion {}

impl MappedRegion {
    /// Maps `bytes` bytes, rounded up to whole pages. A region of base pages has an inaccessible guard page on each
    /// side, so that the kernel never merges it with a neighbouring mapping.
    pub(crate) fn map_anonymous(bytes: usize, kind: MappingPageKind) -> io::Result<MappedRegion> {
        let (unit, slack, prot, more) = match kind {
            // No swap is reserved for pages that are never used, as far as the system allows it.
            MappingPageKind::Base { align_bytes: align } => {
                (base_page_bytes(), align + base_page_bytes(), libc::PROT_NONE, libc::MAP_NORESERVE)
            }
            MappingPageKind::HugePool(unit) => {
                let size = (unit.trailing_zeros() as c_int) << libc::MAP_HUGE_SHIFT;
                (unit, 0, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_HUGETLB | size)
            }
        };
        let too_large = || io::Error::from_raw_os_error(libc::ENOMEM);
        let bytes = bytes.max(1).checked_next_multiple_of(unit).ok_or_else(too_large)?;
        let reserved_bytes = bytes.checked_add(slack).ok_or_else(too_large)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | more;
        // SAFETY: a new mapping at an address that the kernel chooses overlaps no memory in use.
        let reserved = unsafe { libc::mmap(std::ptr::null_mut(), reserved_bytes, prot, flags, -1, 0) };
        if reserved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let reserved = NonNull::new(reserved).ok_or_else(too_large)?;
        let start = match kind {
            MappingPageKind::Base { align_bytes: align } => {
                let first = reserved.as_ptr().cast::<u8>().wrapping_add(base_page_bytes());
                first.wrapping_add(first.align_offset(align))
            }
            MappingPageKind::HugePool(_) => reserved.as_ptr().cast(),
        };
        let start = NonNull::new(start).ok_or_else(too_large)?;
        let region = MappedRegion { reservation: reserved, reservation_bytes: reserved_bytes, start, len_bytes: bytes };
        if let MappingPageKind::Base { .. } = kind {
            // SAFETY: the range is inside the reservation: it has a page and less than `align_bytes` bytes before it,
            // and at least a page after it.
            check_return_value(c_long::from(unsafe {
                libc::mprotect(region.start.as_ptr().cast(), bytes, libc::PROT_READ | libc::PROT_WRITE)
            }))?;
        }
        Ok(region)
    }

    /// Address of the first byte of the region.
    pub(crate) fn start_address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// Length of the region in bytes, a multiple of the page size.
    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Pointer to the first byte of the region.
    pub(crate) fn as_mut_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the pages of `range` (bytes, whole pages) to the kernel. They are zero when they are used again.
    ///
    /// # Safety
    /// No reference to a byte of the range may exist.
    pub(crate) unsafe fn discard_pages(&self, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.len_bytes);
        let start = self.start.as_ptr().wrapping_add(range.start);
        // SAFETY: the range is within the region, and no reference to it exists.
        check_return_value(c_long::from(unsafe { libc::madvise(start.cast(), range.len(), libc::MADV_DONTNEED) }))
            .map(drop)
    }

    /// Enables (`huge`) or disables transparent huge pages for the region.
    pub(crate) fn advise_transparent_huge_pages(&self, huge: bool) -> io::Result<()> {
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the advice changes no content, and the region owns the range.
        check_return_value(c_long::from(unsafe { libc::madvise(self.start.as_ptr().cast(), self.len_bytes, advice) }))
            .map(drop)
    }

    /// Applies a memory policy to the whole region (mbind). Pages that are already resident stay on their nodes.
    pub(crate) fn apply_mempolicy(&self, policy: &KernelMempolicy) -> io::Result<()> {
        let words = encode_mask(&policy.nodes, MAX_NODES)?;
        let (pointer, bits) =
            if policy.nodes.is_empty() { (std::ptr::null(), 0) } else { (words.as_ptr(), MAX_NODES + 1) };
        // SAFETY: the region owns the range, the mask has the stated length and is only read, and no flag requests a
        // migration.
        check_return_value(unsafe {
            libc::syscall(libc::SYS_mbind, self.start.as_ptr(), self.len_bytes, policy.mode.0, pointer, bits, 0)
        })
        .map(drop)
    }

    /// Faults in the pages of `range` (bytes, whole pages) and keeps their content. On kernels before 5.14 it touches
    /// the pages; if memory runs out there, the kernel kills the process instead of returning an error.
    pub(crate) fn fault_in_pages(&self, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.len_bytes);
        let start = self.start.as_ptr().wrapping_add(range.start);
        loop {
            // SAFETY: the range is within the region; MADV_POPULATE_WRITE changes no content.
            let done = unsafe { libc::madvise(start.cast(), range.len(), MADV_POPULATE_WRITE) };
            match check_return_value(c_long::from(done)) {
                Ok(_) => return Ok(()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR | libc::EAGAIN) => {}
                    Some(libc::EINVAL | libc::EPERM | libc::ENOSYS) => break,
                    _ => return Err(error),
                },
            }
        }
        for offset in range.step_by(base_page_bytes()) {
            // SAFETY: the byte is within the region and mapped for reading and writing. All accesses to it are atomic
            // until the region becomes an array, which takes it by value.
            unsafe { AtomicU8::from_ptr(self.start.as_ptr().add(offset)) }.fetch_or(0, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for MappedRegion {
    fn drop(&mut self) {
        // SAFETY: the region owns the whole reservation and nothing borrows from it any more. If the call fails, the
        // memory stays mapped.
        unsafe { libc::munmap(self.reservation.as_ptr(), self.reservation_bytes) };
    }
}

/// Elements in their own memory region, initially zero.
#[derive(Debug)]
pub(crate) struct RegionArray<T> {
    region: Option<MappedRegion>,
    start: NonNull<T>,
    len: usize,
}

// SAFETY: an array owns its elements, as a Box<[T]> does.
unsafe impl<T: Send> Send for RegionArray<T> {}
// SAFETY: `&RegionArray` gives `&[T]` and nothing else.
unsafe impl<T: Sync> Sync for RegionArray<T> {}

impl<T: Copy + Zeroable> RegionArray<T> {
    /// Creates an array of `len` elements at the start of the region. Pass no region when the elements occupy no
    /// bytes.
    ///
    /// # Panics
    /// When the region is too small or not aligned for the elements.
    pub(crate) fn new(region: Option<MappedRegion>, len: usize) -> RegionArray<T> {
        let start = match &region {
            Some(region) => region.start.cast(),
            None => NonNull::dangling(),
        };
        let region_bytes = region.as_ref().map_or(0, MappedRegion::len_bytes);
        assert!(size_of::<T>().checked_mul(len).is_some_and(|bytes| bytes <= region_bytes), "region too small");
        assert!(start.is_aligned(), "region not aligned");
        RegionArray { region, start, len }
    }

    /// Address and length in bytes of the region that holds the elements. `None` when there is no region.
    pub(crate) fn region_address_and_len_bytes(&self) -> Option<(usize, usize)> {
        self.region.as_ref().map(|region| (region.start_address(), region.len_bytes))
    }

    /// The elements as a slice.
    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: `new` checked length and alignment. The memory was zero, which is a valid T, and only values of T
        // were written since.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The elements as a mutable slice.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: see `as_slice`; `&mut self` makes this the only borrow.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}
