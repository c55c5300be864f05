//! Memory with a policy. A registry keeps every block, so that freeing an unknown address is an error.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::sync::{Mutex, MutexGuard, PoisonError};

use genuma_machine::placement::{self, MemoryPlacement, PageResidence, PlacedSlice, query_address_range_residence};

use crate::request::{page_size, parse_policy, placement_differences};
use crate::status::{Failure, Fulfilled};

/// Blocks in use, by their first address.
static BLOCKS: Mutex<BTreeMap<usize, PlacedSlice<u8>>> = Mutex::new(BTreeMap::new());

fn lock_blocks() -> MutexGuard<'static, BTreeMap<usize, PlacedSlice<u8>>> {
    // Every change is one insertion or removal, so a panic leaves the map consistent.
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates `bytes` zeroed bytes under `policy` and faults in all pages. Returns the first address.
pub(crate) fn allocate(bytes: usize, policy: &str, flags: c_uint) -> Result<Fulfilled<*mut u8>, Failure> {
    if bytes == 0 {
        return Err(Failure::invalid("bytes is 0"));
    }
    let requested = MemoryPlacement { policy: parse_policy(policy)?, page_size: page_size(flags)? };
    let mut block: PlacedSlice<u8> = PlacedSlice::new_zeroed(bytes, &requested)?;
    let differences = placement_differences(&requested, block.applied_placement());
    let start = block.as_mut_ptr();
    lock_blocks().insert(start.expose_provenance(), block);
    Ok(Fulfilled { value: start, differences })
}

/// Frees the block that starts at `address`.
pub(crate) fn free(address: usize) -> Result<(), Failure> {
    let block = lock_blocks().remove(&address);
    // Unmapping a large block takes long, so the lock is released before.
    block
        .map(drop)
        .ok_or_else(|| Failure::invalid(format!("{address:#x} is not memory of genuma_alloc, or it was freed before")))
}

/// Counts the pages of an address range on each node, whatever allocated the memory. Where the kernel forbids
/// move_pages(2), whole blocks of [`allocate`] are counted by numa_maps.
pub(crate) fn query_pages(start: usize, bytes: usize) -> Result<PageResidence, Failure> {
    let end = start.checked_add(bytes).ok_or_else(|| Failure::invalid("the range ends beyond the address space"))?;
    let counted = query_address_range_residence(start..end);
    let counted = counted.or_else(|error| match lock_blocks().get(&start) {
        Some(block) if block.len() == bytes => block.query_residence(),
        _ => Err::<_, placement::Error>(error),
    });
    Ok(counted?)
}
