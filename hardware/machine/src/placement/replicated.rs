//! Data replicated on NUMA nodes, one copy per node.

use std::thread::ScopedJoinHandle;

use super::node_sets::{self, NumaNodeSets};
use super::{Error, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice, ScopedMemoryPolicy, pin};
use crate::{IdSet, sys};

/// One copy of a `T` on each of several NUMA nodes. Readers get the copy nearest to their CPU.
///
/// ```
/// use genuma_machine::placement::{Error, PageSize, ReplicatedPerNode};
/// use genuma_machine::IdSet;
///
/// let table = ReplicatedPerNode::from_slice(&[1_u64, 2, 3], &IdSet::from([0]), PageSize::Base)?;
/// assert_eq!(table.nearest_copy()[1], 2);
/// assert!(table.find_copy_on_node(0).is_some() && table.find_copy_on_node(7).is_none());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct ReplicatedPerNode<T> {
    copies: Vec<(u32, T)>,
    /// Index of the nearest copy for each CPU. CPUs beyond the end use the first copy.
    nearest_copy_by_cpu: Vec<u32>,
}

impl<T: Send> ReplicatedPerNode<T> {
    /// Calls `make` once for each of `nodes`, in ascending order, each time in a new thread that runs on the node's
    /// CPUs (if it has any) and allocates memory on that node only.
    ///
    /// Memory that `make` is the first to touch is on the node. This holds for large allocations; small ones may come
    /// from memory that the allocator has kept. [`ReplicatedPerNode::from_slice`] copies plain data reliably.
    ///
    /// # Errors
    /// When a node may not be used, a thread cannot be started, or `make` returns an error.
    ///
    /// # Panics
    /// When `make` panics.
    pub fn new<E>(nodes: &IdSet, mut make: impl FnMut(u32) -> Result<T, E> + Send) -> Result<Self, E>
    where
        E: From<Error> + Send,
    {
        NumaNodeSets::read_current_node_sets().check_policy(&MemoryPolicy::Bind(nodes.clone()))?;
        let mut copies = Vec::with_capacity(nodes.len());
        for node in nodes.iter() {
            let make = &mut make;
            let on_node = move || {
                let _pinned = match pin::pin_to_node(node) {
                    Ok(pinned) => Some(pinned),
                    Err(Error::NodeWithoutCpu { .. }) => None,
                    Err(error) => return Err(error.into()),
                };
                let _memory = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Bind(IdSet::from([node])))?;
                make(node)
            };
            let made = std::thread::scope(|scope| {
                std::thread::Builder::new().spawn_scoped(scope, on_node).map(ScopedJoinHandle::join)
            });
            let made = made.map_err(|source| Error::SystemCallFailed {
                asked: format!("a copy on node {node}"),
                call: "a thread to make it",
                source,
            })?;
            copies.push((node, made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?));
        }
        let nearest = nearest_copies(nodes);
        Ok(ReplicatedPerNode { copies, nearest_copy_by_cpu: nearest })
    }
}

impl<T: bytemuck::Zeroable + Copy + Send + Sync> ReplicatedPerNode<PlacedSlice<T>> {
    /// Copies `elements` to the memory of each node.
    ///
    /// # Errors
    /// When a node may not be used or has too little free memory.
    pub fn from_slice(elements: &[T], nodes: &IdSet, pages: PageSize) -> Result<Self, Error> {
        ReplicatedPerNode::new(nodes, |node| {
            PlacedSlice::from_slice(
                elements,
                &MemoryPlacement { policy: MemoryPolicy::Bind(IdSet::from([node])), page_size: pages },
            )
        })
    }
}

impl<T> ReplicatedPerNode<T> {
    /// The copy nearest to the CPU that the calling thread runs on. A lookup takes a few nanoseconds, so keep the
    /// reference in a hot loop of a pinned thread.
    pub fn nearest_copy(&self) -> &T {
        let copy = self.nearest_copy_by_cpu.get(sys::current_cpu() as usize).copied().unwrap_or(0);
        &self.copies[copy as usize].1
    }

    /// The copy on `node`, if there is one.
    pub fn find_copy_on_node(&self, node: u32) -> Option<&T> {
        self.iter_copies().find(|&(on, _)| on == node).map(|(_, copy)| copy)
    }

    /// Iterates over nodes and their copies, in ascending order of node numbers.
    pub fn iter_copies(&self) -> impl Iterator<Item = (u32, &T)> {
        self.copies.iter().map(|(node, copy)| (*node, copy))
    }
}

/// For each CPU, the index of the copy nearest to the CPU's node.
fn nearest_copies(copies: &IdSet) -> Vec<u32> {
    let mut table = Vec::new();
    for node in NumaNodeSets::read_current_node_sets().online.iter() {
        let nearest = node_sets::nearest_nodes(node, copies).smallest_id();
        let copy = copies.iter().position(|id| Some(id) == nearest).unwrap_or(0);
        for cpu in node_sets::read_node_cpus(node).iter() {
            let cpu = cpu as usize;
            table.resize(table.len().max(cpu + 1), 0);
            table[cpu] = copy as u32;
        }
    }
    table
}
