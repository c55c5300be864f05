//! A slice under a placement.

use std::ops::{Deref, DerefMut};

use bytemuck::Zeroable;

use super::fill::{self, Filled};
use super::residence::{self, Residence, Verdict};
use super::{Error, Placement};
use crate::sys::{self, Array};

/// A slice whose pages are where they were asked to be. All of them are faulted in when it is made.
///
/// ```
/// use genuma_machine::placement::{Error, Pages, Placed, Placement, Policy};
///
/// let asked = Placement { policy: Policy::Local, pages: Pages::Base };
/// let mut table: Placed<u64> = Placed::zeroed(1 << 16, &asked)?;
/// table[12] = 3;
/// let verdict = table.verify()?;
/// println!("{verdict}"); // 512 KiB local: node 0 128: as asked
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Placed<T> {
    elements: Array<T>,
    asked: Placement,
    used: Placement,
    shares: fill::Shares,
    unit: usize,
    scattered: usize,
}

impl<T: Copy + Zeroable> Placed<T> {
    /// `len` zero elements.
    ///
    /// # Errors
    /// When the placement names nodes that may not be used, or there is not enough memory where it says. Memory that others take
    /// between the check and the filling is not seen: a full node or control group then ends a process, as the kernel has it.
    pub fn zeroed(len: usize, placement: &Placement) -> Result<Self, Error> {
        let bytes = len.saturating_mul(size_of::<T>());
        // An empty slice has no memory, but its placement is checked all the same.
        let Filled { region, used, shares, unit, scattered } = fill::place(bytes.max(1), placement)?;
        let region = (bytes > 0).then_some(region);
        let elements = Array::new(region, len);
        Ok(Placed { elements, asked: placement.clone(), used, shares, unit, scattered })
    }

    /// A copy of `elements`.
    ///
    /// # Errors
    /// As for [`Placed::zeroed`].
    pub fn copy_of(elements: &[T], placement: &Placement) -> Result<Self, Error> {
        let mut placed = Placed::zeroed(elements.len(), placement)?;
        placed.copy_from_slice(elements);
        Ok(placed)
    }

    /// What was really done: other than asked where the kernel forbids or does not know the policy, there is but one node, or the huge
    /// pages asked for could not be had or would be too coarse.
    pub fn placement(&self) -> &Placement {
        &self.used
    }

    /// On which nodes its pages are now.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn residence(&self) -> Result<Residence, Error> {
        let Some((start, bytes)) = self.elements.memory() else {
            return Ok(Residence { page: sys::page() as u64, ..Residence::default() });
        };
        let unit = self.page();
        residence::of_mapping(start, unit, bytes / unit)
    }

    /// Compares what was asked with where the pages are now.
    ///
    /// # Errors
    /// When the kernel does not tell where they are.
    pub fn verify(&self) -> Result<Verdict, Error> {
        let found = self.residence()?;
        let (page, pages) = (self.page(), found.present() + found.absent);
        let per_unit = (self.unit / page) as u64;
        let misplaced = residence::misplaced(&found, &self.shares, pages, per_unit, self.scattered / page);
        let bytes = size_of_val(&self[..]) as u64;
        let fits = misplaced == 0 && found.absent == 0;
        Ok(Verdict { asked: self.asked.clone(), bytes, found, misplaced, fits })
    }

    /// Bytes of a page as they are counted.
    fn page(&self) -> usize {
        match self.used.pages {
            super::Pages::Huge(bytes) => bytes as usize,
            _ => sys::page(),
        }
    }
}

impl<T: Copy + Zeroable> Deref for Placed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.elements.as_slice()
    }
}

impl<T: Copy + Zeroable> DerefMut for Placed<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements.as_mut_slice()
    }
}
