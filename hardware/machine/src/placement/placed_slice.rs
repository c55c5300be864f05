//! A slice whose memory is placed on chosen NUMA nodes.

use std::ops::{Deref, DerefMut};

use bytemuck::Zeroable;

use super::fill::{self, FaultedInRegion};
use super::residence::{self, PageResidence, PlacementCheck};
use super::{Error, MemoryPlacement};
use crate::sys::{self, RegionArray};

/// A slice whose pages are placed on the requested NUMA nodes, where the kernel permits this. All pages are faulted in
/// when the slice is created.
///
/// ```
/// use genuma_machine::placement::{Error, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice};
///
/// let requested = MemoryPlacement { policy: MemoryPolicy::Local, page_size: PageSize::Base };
/// let mut table: PlacedSlice<u64> = PlacedSlice::new_zeroed(1 << 16, &requested)?;
/// table[12] = 3;
/// let check = table.verify_placement()?;
/// println!("{check}"); // 512 KiB local: node 0 128: as asked
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct PlacedSlice<T> {
    elements: RegionArray<T>,
    requested: MemoryPlacement,
    actual: MemoryPlacement,
    expected_distribution: fill::PageDistribution,
    unit_bytes: usize,
    scattered_bytes: usize,
}

impl<T: Copy + Zeroable> PlacedSlice<T> {
    /// Allocates `len` zeroed elements with the given placement.
    ///
    /// # Errors
    /// When the placement names nodes that may not be used or has an invalid huge page size, or when the nodes or the
    /// control group lack free memory. If other processes take memory between this check and the page faults, the
    /// kernel may still kill a process when a node or control group is full.
    pub fn new_zeroed(len: usize, placement: &MemoryPlacement) -> Result<Self, Error> {
        let bytes = len.saturating_mul(size_of::<T>());
        // An empty slice has no memory, but its placement is checked, too.
        let FaultedInRegion {
            region,
            applied_placement: used,
            expected_distribution: shares,
            unit_bytes: unit,
            scattered_bytes: scattered,
        } = fill::allocate_placed_region(bytes.max(1), placement)?;
        let region = (bytes > 0).then_some(region);
        let elements = RegionArray::new(region, len);
        Ok(PlacedSlice {
            elements,
            requested: placement.clone(),
            actual: used,
            expected_distribution: shares,
            unit_bytes: unit,
            scattered_bytes: scattered,
        })
    }

    /// Allocates a copy of `elements` with the given placement.
    ///
    /// # Errors
    /// As for [`PlacedSlice::new_zeroed`].
    pub fn from_slice(elements: &[T], placement: &MemoryPlacement) -> Result<Self, Error> {
        let mut placed = PlacedSlice::new_zeroed(elements.len(), placement)?;
        placed.copy_from_slice(elements);
        Ok(placed)
    }

    /// The placement that was applied. It differs from the requested placement if the kernel forbids or does not
    /// support the policy, the machine has one node, or huge pages are unavailable or too large for the distribution.
    pub fn applied_placement(&self) -> &MemoryPlacement {
        &self.actual
    }

    /// Queries on which nodes the pages of the slice are now.
    ///
    /// # Errors
    /// When the kernel cannot report the nodes.
    pub fn query_residence(&self) -> Result<PageResidence, Error> {
        let Some((start, bytes)) = self.elements.region_address_and_len_bytes() else {
            return Ok(PageResidence { page_bytes: sys::base_page_bytes() as u64, ..PageResidence::default() });
        };
        let unit = self.counted_page_bytes();
        residence::query_mapping_by_move_pages_or_numa_maps(start, unit, bytes / unit)
    }

    /// Compares the requested placement with the nodes on which the pages are now.
    ///
    /// # Errors
    /// When the kernel cannot report the nodes.
    pub fn verify_placement(&self) -> Result<PlacementCheck, Error> {
        let found = self.query_residence()?;
        let (page, pages) = (self.counted_page_bytes(), found.num_resident_pages() + found.absent_pages);
        let per_unit = (self.unit_bytes / page) as u64;
        let misplaced = residence::count_misplaced_pages(
            &found,
            &self.expected_distribution,
            pages,
            per_unit,
            self.scattered_bytes / page,
        );
        let bytes = size_of_val(&self[..]) as u64;
        let fits = misplaced == 0 && found.absent_pages == 0;
        Ok(PlacementCheck {
            requested: self.requested.clone(),
            bytes,
            residence: found,
            misplaced_pages: misplaced,
            is_as_requested: fits,
        })
    }

    /// Bytes of the pages in which residence is counted: the hugetlb page size, else the base page size.
    fn counted_page_bytes(&self) -> usize {
        match self.actual.page_size {
            super::PageSize::Huge(bytes) => bytes as usize,
            _ => sys::base_page_bytes(),
        }
    }
}

impl<T: Copy + Zeroable> Deref for PlacedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.elements.as_slice()
    }
}

impl<T: Copy + Zeroable> DerefMut for PlacedSlice<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.elements.as_mut_slice()
    }
}
