//! A slab of equal-sized buffers, optionally on one NUMA node, whose pages are allocated on first use.
//!
//! `unsafe` is needed because several buffers of one mapping are used as mutable slices at the same time. No two
//! buffers have the same index, and buffers with different indices share no byte.
#![allow(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::residence::{self, PageResidence};
use super::scoped::set_policy_with_fallback;
use super::{Error, MemoryPolicy, node_sets};
use crate::IdSet;
use crate::sys::{self, MappedRegion, MappingPageKind};

/// Memory from which users borrow buffers of equal size. Uses huge pages if the kernel has free ones and, if a NUMA
/// node is given, only this node as long as it has free memory.
///
/// ```
/// use genuma_machine::placement::Slab;
///
/// let slab = Slab::reserve_address_space(64 << 10, 100, None)?;
/// let mut buffer = slab.take_buffer().expect("all buffers are free");
/// buffer[..5].copy_from_slice(b"reads");
/// drop(buffer); // returns the buffer to the slab
/// # Ok::<(), genuma_machine::placement::Error>(())
/// ```
#[derive(Debug)]
pub struct Slab {
    region: MappedRegion,
    /// Size of a buffer in bytes.
    buffer_bytes: usize,
    num_buffers: usize,
    free_buffers: Mutex<FreeBuffers>,
}

/// Indices of the buffers that nobody uses.
#[derive(Debug, Default)]
struct FreeBuffers {
    /// Buffers that were used and returned.
    returned: BinaryHeap<Reverse<usize>>,
    /// Index of the first buffer that was never used; all later buffers are free, too.
    first_unused: usize,
}

/// A buffer borrowed from a [`Slab`]. Dropping it returns it to the slab. Its bytes are zero, or what its last user
/// wrote.
#[derive(Debug)]
pub struct SlabBuffer {
    slab: Arc<Slab>,
    index: usize,
}

impl Slab {
    /// Reserves address space for `num_buffers` buffers of `buffer_bytes` bytes each. Their pages are allocated on
    /// `node` as long as it has free memory. If `node` is `None`, each page is on the node of the thread that touches
    /// the page first.
    ///
    /// # Errors
    /// When the process has too little free address space, or `node` does not exist. Where the kernel forbids memory
    /// policies, `node` has no effect and a warning is logged once.
    pub fn reserve_address_space(
        buffer_bytes: usize,
        num_buffers: usize,
        node: Option<u32>,
    ) -> Result<Arc<Self>, Error> {
        let asked = || node.map_or_else(|| "memory".to_owned(), |node| format!("memory of node {node}"));
        let failed = |call| move |source| Error::SystemCallFailed { asked: asked(), call, source };
        let too_large = || failed("mmap")(io::ErrorKind::OutOfMemory.into());
        let bytes = buffer_bytes.checked_mul(num_buffers).ok_or_else(too_large)?;
        let huge = node_sets::read_transparent_huge_page_size_bytes().filter(|&unit| bytes >= unit);
        let align = huge.unwrap_or_else(sys::base_page_bytes);
        let region =
            MappedRegion::map_anonymous(bytes, MappingPageKind::Base { align_bytes: align }).map_err(failed("mmap"))?;
        if let Err(error) = region.advise_transparent_huge_pages(huge.is_some()) {
            tracing::debug!("{}: madvise: {error}", asked());
        }
        if let Some(node) = node {
            let prefer = MemoryPolicy::PreferredMany(IdSet::from([node]));
            match set_policy_with_fallback(&prefer, |policy| region.apply_mempolicy(policy)) {
                Err(error) if sys::is_policy_refused(&error) => {
                    node_sets::warn_placement_degraded(node_sets::LOCAL_FALLBACK_MESSAGE, &format!("mbind: {error}"));
                }
                done => done.map(drop).map_err(failed("mbind"))?,
            }
        }
        Ok(Arc::new(Slab { region, buffer_bytes, num_buffers, free_buffers: Mutex::default() }))
    }

    /// Takes the free buffer with the lowest index, so that used buffers are adjacent. `None` if all buffers are in
    /// use.
    pub fn take_buffer(self: &Arc<Self>) -> Option<SlabBuffer> {
        let mut free = self.lock_free_buffers();
        let number = match free.returned.pop() {
            Some(Reverse(number)) => number,
            None if free.first_unused < self.num_buffers => {
                free.first_unused += 1;
                free.first_unused - 1
            }
            None => return None,
        };
        Some(SlabBuffer { slab: self.clone(), index: number })
    }

    /// Gives the pages that contain only free buffers back to the operating system.
    ///
    /// # Errors
    /// When the system call fails.
    pub fn release_free_pages(&self) -> Result<(), Error> {
        let mut free = self.lock_free_buffers();
        let mut used = std::mem::take(&mut free.returned).into_sorted_vec();
        // The reversed order is descending, so reversing makes it ascending.
        used.reverse();
        let mut released = Ok(());
        for run in used.chunk_by(|Reverse(a), Reverse(b)| a + 1 == *b) {
            let (Reverse(first), Reverse(last)) = (run[0], run[run.len() - 1]);
            let bytes = self.whole_pages_within(first * self.buffer_bytes..(last + 1) * self.buffer_bytes);
            // SAFETY: these buffers are free and stay free while `free` is locked.
            released = released.and_then(|()| unsafe { self.region.discard_pages(bytes) });
        }
        free.returned = used.into();
        released.map_err(|source| Error::SystemCallFailed { asked: "memory".to_owned(), call: "madvise", source })
    }

    /// Queries on which nodes the pages of the slab are now. Fast for a slab of any size, because the kernel counts
    /// the pages of the whole mapping.
    ///
    /// # Errors
    /// When the kernel cannot report the nodes.
    pub fn query_residence(&self) -> Result<PageResidence, Error> {
        residence::query_mapping_by_numa_maps_or_move_pages(
            self.region.start_address(),
            sys::base_page_bytes(),
            self.region.len_bytes() / sys::base_page_bytes(),
        )
    }

    /// The largest range of whole pages inside the byte range `bytes`.
    fn whole_pages_within(&self, bytes: Range<usize>) -> Range<usize> {
        let (page, end) = (sys::base_page_bytes(), bytes.end.min(self.region.len_bytes()));
        let start = bytes.start.next_multiple_of(page);
        start..(end / page * page).max(start)
    }

    fn lock_free_buffers(&self) -> MutexGuard<'_, FreeBuffers> {
        // Every change is made in one step, so a panic leaves the value consistent.
        self.free_buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for SlabBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let Slab { region, buffer_bytes: piece, .. } = &*self.slab;
        // SAFETY: the bytes are within the region, which lives as long as the slab. They are zero or were written
        // before. No other buffer has this index while this buffer lives.
        unsafe { std::slice::from_raw_parts(region.as_mut_ptr().add(self.index * piece), *piece) }
    }
}

impl DerefMut for SlabBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let Slab { region, buffer_bytes: piece, .. } = &*self.slab;
        // SAFETY: see `deref`; `&mut self` makes this the only borrow.
        unsafe { std::slice::from_raw_parts_mut(region.as_mut_ptr().add(self.index * piece), *piece) }
    }
}

impl Drop for SlabBuffer {
    fn drop(&mut self) {
        self.slab.lock_free_buffers().returned.push(Reverse(self.index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_and_come_back() {
        let slab = Slab::reserve_address_space(5000, 7, None).expect("memory");
        let mut pieces: Vec<SlabBuffer> = std::iter::from_fn(|| slab.take_buffer()).collect();
        assert_eq!(pieces.len(), 7);
        for (piece, byte) in pieces.iter_mut().zip(1..) {
            assert_eq!(piece.len(), 5000);
            assert!(piece.iter().all(|&b| b == 0));
            piece.fill(byte);
        }
        for (piece, byte) in pieces.iter().zip(1..) {
            assert!(piece.iter().all(|&b| b == byte));
        }
        pieces.swap_remove(4);
        pieces.swap_remove(2);
        let lowest = slab.take_buffer().expect("two are free");
        assert!(lowest.iter().all(|&b| b == 3), "what its last holder left there");
    }

    #[test]
    fn what_is_free_is_given_back() {
        let page = sys::base_page_bytes();
        let slab = Slab::reserve_address_space(4 * page, 100, None).expect("memory");
        let mut pieces: Vec<SlabBuffer> = std::iter::from_fn(|| slab.take_buffer()).collect();
        pieces.iter_mut().for_each(|piece| piece.fill(1));
        assert_eq!(slab.query_residence().expect("told").num_resident_pages(), 400);
        // Indices 20 to 59 and 99.
        drop(pieces.drain(20..60));
        pieces.pop();
        slab.release_free_pages().expect("given back");
        assert_eq!(slab.query_residence().expect("told").num_resident_pages(), 400 - 4 * 41);
        assert!(pieces.iter().all(|piece| piece.iter().all(|&b| b == 1)), "what is held stays");
        assert!(slab.take_buffer().expect("free").iter().all(|&b| b == 0));
    }

    #[test]
    fn pieces_smaller_than_a_page_are_given_back_by_whole_pages() {
        let page = sys::base_page_bytes();
        let slab = Slab::reserve_address_space(page / 2 * 3, 4, None).expect("memory");
        let mut pieces: Vec<SlabBuffer> = std::iter::from_fn(|| slab.take_buffer()).collect();
        pieces.iter_mut().for_each(|piece| piece.fill(1));
        pieces.remove(1);
        slab.release_free_pages().expect("given back");
        assert_eq!(slab.query_residence().expect("told").num_resident_pages(), 5);
        assert!(pieces.iter().all(|piece| piece.iter().all(|&b| b == 1)));
    }

    #[test]
    fn threads_take_and_leave_at_once() {
        let slab = Slab::reserve_address_space(64, 8, None).expect("memory");
        std::thread::scope(|scope| {
            for byte in 1..=4 {
                let slab = &slab;
                scope.spawn(move || {
                    for _ in 0..10_000 {
                        let mut two =
                            [slab.take_buffer(), slab.take_buffer()].map(|piece| piece.expect("two for each"));
                        two.iter_mut().for_each(|piece| piece.fill(byte));
                        assert!(two.iter().all(|piece| piece.iter().all(|&b| b == byte)));
                    }
                });
            }
        });
        assert_eq!(std::iter::from_fn(|| slab.take_buffer()).collect::<Vec<_>>().len(), 8);
    }
}
