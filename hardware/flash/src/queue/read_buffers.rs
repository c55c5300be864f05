//! Page buffers to which the kernel writes asynchronously.
//!
//! A page must not be borrowed while the kernel may write to it, so pages are accessed through raw pointers. The module
//! records which pages are lent to the kernel: those between [`ReadBuffers::lend_page_to_kernel`] and
//! [`ReadBuffers::take_page_back`].
#![allow(unsafe_code)]

use std::ptr::NonNull;

use genuma_machine::placement::{self, MemoryPlacement, PlacedSlice};

use crate::format::{PAGE_BYTES, Page};

/// Page buffers at fixed addresses, numbered from 0.
#[derive(Debug)]
pub(super) struct ReadBuffers {
    first: NonNull<Page>,
    /// For each page buffer, whether the kernel may write to it because a read is in flight.
    is_lent: Vec<bool>,
    /// Owner of the memory. It is never accessed directly, only through the pointer `first`.
    _pages: PlacedSlice<Page>,
}

impl ReadBuffers {
    /// Allocates `len` pages, initially zero.
    ///
    /// # Errors
    /// There is no memory on the requested nodes.
    pub(super) fn allocate(len: usize, at: &MemoryPlacement) -> Result<ReadBuffers, placement::Error> {
        let mut pages: PlacedSlice<Page> = PlacedSlice::new_zeroed(len, at)?;
        let first = NonNull::from(&mut pages[..]).cast();
        Ok(ReadBuffers { first, is_lent: vec![false; len], _pages: pages })
    }

    /// Number of pages.
    pub(super) fn len(&self) -> usize {
        self.is_lent.len()
    }

    /// The memory of all page buffers as an iovec, to register it with the kernel.
    pub(super) fn as_iovec(&self) -> libc::iovec {
        libc::iovec { iov_base: self.first.as_ptr().cast(), iov_len: self.len() * PAGE_BYTES }
    }

    /// Number of page buffers that are lent to the kernel.
    pub(super) fn num_lent_pages(&self) -> usize {
        self.is_lent.iter().filter(|given| **given).count()
    }

    /// Lends a page to the kernel and returns its address.
    ///
    /// # Panics
    /// When there is no such page, or the kernel has it already.
    pub(super) fn lend_page_to_kernel(&mut self, page: usize) -> *mut u8 {
        assert!(!std::mem::replace(&mut self.is_lent[page], true), "the kernel has page {page}");
        self.first.as_ptr().wrapping_add(page).cast()
    }

    /// Takes a page back from the kernel.
    ///
    /// # Safety
    /// The kernel must have finished with the page.
    pub(crate) unsafe fn take_page_back(&mut self, page: usize) {
        self.is_lent[page] = false;
    }

    /// Borrows a page.
    ///
    /// # Panics
    /// When the kernel has it.
    pub(super) fn borrow_page(&self, page: usize) -> &Page {
        assert!(!self.is_lent[page], "the kernel has page {page}");
        // SAFETY: the page exists (`is_lent` has an element for it), was zero at first, and any bytes are a valid
        // Page. The kernel does not write to it, and cannot get it while this borrow of `self` lives, because
        // `lend_page_to_kernel` borrows `self` mutably.
        unsafe { self.first.add(page).as_ref() }
    }
}
