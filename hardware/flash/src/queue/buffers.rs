//! Pages that the kernel writes while the program does other things.
//!
//! A page must not be borrowed while it is written, so pages are reached by address here, which safe Rust does not do. The module
//! keeps account of who has a page: the kernel between [`Buffers::give`] and [`Buffers::take_back`], the program else.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use genuma_machine::placement::{self, Placed, Placement};

use crate::format::{PAGE, Page};

/// Pages by number, each at an address that stays.
#[derive(Debug)]
pub struct Buffers {
    first: NonNull<Page>,
    /// Whether the kernel has the page.
    given: Vec<bool>,
    /// Owns the memory; not borrowed any more once `first` was taken from it.
    _pages: Placed<Page>,
}

impl Buffers {
    /// So many pages, zero at first.
    ///
    /// # Errors
    /// No memory where it was asked for.
    pub fn new(len: usize, at: &Placement) -> Result<Buffers, placement::Error> {
        let mut pages: Placed<Page> = Placed::zeroed(len, at)?;
        let first = NonNull::from(&mut pages[..]).cast();
        Ok(Buffers { first, given: vec![false; len], _pages: pages })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.given.len()
    }

    /// The memory of all pages.
    pub fn memory(&self) -> libc::iovec {
        libc::iovec { iov_base: self.first.as_ptr().cast(), iov_len: self.len() * PAGE }
    }

    /// How many pages the kernel has.
    pub fn out(&self) -> usize {
        self.given.iter().filter(|given| **given).count()
    }

    /// Gives a page to the kernel; returns its address.
    ///
    /// # Panics
    /// When there is no such page, or the kernel has it.
    pub fn give(&mut self, page: usize) -> *mut u8 {
        assert!(!std::mem::replace(&mut self.given[page], true), "the kernel has page {page}");
        self.first.as_ptr().wrapping_add(page).cast()
    }

    /// Takes a page back.
    ///
    /// # Safety
    /// The kernel is done with it.
    pub(crate) unsafe fn take_back(&mut self, page: usize) {
        self.given[page] = false;
    }

    /// A page.
    ///
    /// # Panics
    /// When the kernel has it.
    pub fn page(&self, page: usize) -> &Page {
        assert!(!self.given[page], "the kernel has page {page}");
        // SAFETY: the page is one of ours (`given` has an element for it), was zero at first, and any bytes are a Page. The kernel does not
        // write it, and cannot be asked to while this borrow of `self` lives, because `give` borrows `self` alone.
        unsafe { self.first.add(page).as_ref() }
    }
}
