//! One copy per node.

use super::nodes::{self, Nodes};
use super::{Error, Pages, Placed, Placement, Policy, Scoped, pin};
use crate::{IdSet, sys};

/// One `T` on each of some nodes; a reader gets the one nearest to it.
///
/// ```
/// use genuma_machine::placement::{Error, Pages, Replicated};
/// use genuma_machine::IdSet;
///
/// let table = Replicated::of_slice(&[1_u64, 2, 3], &IdSet::from([0]), Pages::Base)?;
/// assert_eq!(table.local()[1], 2);
/// assert!(table.on(0).is_some() && table.on(7).is_none());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Replicated<T> {
    copies: Vec<(u32, T)>,
    /// For each CPU the copy that is nearest; CPUs beyond take the first.
    nearest: Vec<u32>,
}

impl<T: Send> Replicated<T> {
    /// Calls `make` once for each of `nodes`, in rising order, each time in a new thread that runs on the node's CPUs (where it has any)
    /// and takes memory from that node only.
    ///
    /// Memory that `make` is the first to touch is the node's: large allocations are, small ones may come from what an allocator
    /// kept. [`Replicated::of_slice`] copies plain data with certainty.
    ///
    /// # Errors
    /// When a node may not be used, or what `make` returns.
    ///
    /// # Panics
    /// When `make` does.
    pub fn new<E>(nodes: &IdSet, mut make: impl FnMut(u32) -> Result<T, E> + Send) -> Result<Self, E>
    where
        E: From<Error> + Send,
    {
        Nodes::read().check(&Policy::Bind(nodes.clone()))?;
        let mut copies = Vec::with_capacity(nodes.len());
        for node in nodes.iter() {
            let make = &mut make;
            let on_node = move || {
                let _pinned = match pin::to_node(node) {
                    Ok(pinned) => Some(pinned),
                    Err(Error::NodeWithoutCpu { .. }) => None,
                    Err(error) => return Err(error.into()),
                };
                let _memory = Scoped::new(&Policy::Bind(IdSet::from([node])))?;
                make(node)
            };
            let made = std::thread::scope(|scope| scope.spawn(on_node).join());
            copies.push((node, made.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?));
        }
        let nearest = nearest_copies(nodes);
        Ok(Replicated { copies, nearest })
    }
}

impl<T: bytemuck::Zeroable + Copy + Send + Sync> Replicated<Placed<T>> {
    /// A copy of `elements` in each node's memory.
    ///
    /// # Errors
    /// When a node may not be used or lacks the room.
    pub fn of_slice(elements: &[T], nodes: &IdSet, pages: Pages) -> Result<Self, Error> {
        Replicated::new(nodes, |node| {
            Placed::copy_of(elements, &Placement { policy: Policy::Bind(IdSet::from([node])), pages })
        })
    }
}

impl<T> Replicated<T> {
    /// The copy nearest to the CPU this runs on: its own node's where there is one. Costs a few nanoseconds; keep the reference in
    /// a hot loop of a pinned thread.
    pub fn local(&self) -> &T {
        let copy = self.nearest.get(sys::cpu() as usize).copied().unwrap_or(0);
        &self.copies[copy as usize].1
    }

    /// The copy on `node`.
    pub fn on(&self, node: u32) -> Option<&T> {
        self.iter().find(|&(on, _)| on == node).map(|(_, copy)| copy)
    }

    /// Each node and its copy, by rising number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.copies.iter().map(|(node, copy)| (*node, copy))
    }
}

/// For each CPU the index of the copy nearest to its node.
fn nearest_copies(copies: &IdSet) -> Vec<u32> {
    let mut table = Vec::new();
    for node in Nodes::read().online.iter() {
        let nearest = nodes::nearest(node, copies).first();
        let copy = copies.iter().position(|id| Some(id) == nearest).unwrap_or(0);
        for cpu in nodes::cpus(node).iter() {
            let cpu = cpu as usize;
            table.resize(table.len().max(cpu + 1), 0);
            table[cpu] = copy as u32;
        }
    }
    table
}
