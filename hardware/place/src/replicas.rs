//! One copy of read-only data on each of several nodes.

use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::sync::{Arc, Mutex, PoisonError};

use genuma_machine::IdSet;
use genuma_machine::placement::{MemoryPlacement, MemoryPolicy, PlacedSlice, ReplicatedPerNode, check_memory_fits};

use crate::request::{page_size, parse_nodes, placement_differences};
use crate::status::{Failure, Fulfilled};

/// Copies of data, one on each of several nodes.
#[derive(Debug)]
pub(crate) struct Replicas {
    copies: ReplicatedPerNode<PlacedSlice<u8>>,
}

/// Replicas in use, by their address. The registry owns them; `Arc`, because callers have pointers to them that must stay
/// valid while the map moves its entries.
static REPLICAS: Mutex<BTreeMap<usize, Arc<Replicas>>> = Mutex::new(BTreeMap::new());

impl Replicas {
    /// First address of the copy nearest to the CPU that the calling thread runs on.
    pub(crate) fn nearest_copy(&self) -> *const u8 {
        self.copies.nearest_copy().as_ptr()
    }

    /// First address of the copy on `node`.
    pub(crate) fn copy_on_node(&self, node: i32) -> Result<*const u8, Failure> {
        let copy = u32::try_from(node).ok().and_then(|node| self.copies.find_copy_on_node(node));
        copy.map(|copy| copy.as_ptr()).ok_or_else(|| {
            let nodes: IdSet = self.copies.iter_copies().map(|(node, _)| node).collect();
            Failure::no_node(format!("no copy on node {node}: there are copies on nodes {nodes}"))
        })
    }
}

/// Copies `data` to each of `nodes`. Returns the address of the replicas. After an error no copy is left.
pub(crate) fn replicate(data: &[u8], nodes: &str, flags: c_uint) -> Result<Fulfilled<*const Replicas>, Failure> {
    if data.is_empty() {
        return Err(Failure::invalid("bytes is 0"));
    }
    let (nodes, page_size) = (parse_nodes(nodes)?, page_size(flags)?);
    let on = |node| MemoryPolicy::Bind(IdSet::from([node]));
    // So that nothing is copied in vain.
    nodes.iter().try_for_each(|node| check_memory_fits(data.len() as u64, &on(node)))?;
    let copies = ReplicatedPerNode::from_slice(data, &nodes, page_size)?;
    let differences_of = |(node, copy): (u32, &PlacedSlice<u8>)| {
        placement_differences(&MemoryPlacement { policy: on(node), page_size }, copy.applied_placement())
    };
    // What one copy lacks, the others lack too: the first one is enough for a message.
    let differences = copies.iter_copies().map(differences_of).find(|found| !found.is_empty()).unwrap_or_default();
    let replicas = Arc::new(Replicas { copies });
    let address = Arc::as_ptr(&replicas);
    REPLICAS.lock().unwrap_or_else(PoisonError::into_inner).insert(address.expose_provenance(), replicas);
    Ok(Fulfilled { value: address, differences })
}

/// Frees all copies of the replicas at `address`.
pub(crate) fn free(address: usize) -> Result<(), Failure> {
    let replicas = REPLICAS.lock().unwrap_or_else(PoisonError::into_inner).remove(&address);
    // Unmapping large copies takes long, so the lock is released before.
    replicas.map(drop).ok_or_else(|| {
        Failure::invalid(format!("{address:#x} is not what genuma_replicate returned, or it was freed before"))
    })
}
