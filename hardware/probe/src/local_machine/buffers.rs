//! Buffers for measurements: placed on nodes, checked, and kept for the next job that needs the same buffers.

use std::collections::BTreeMap;

use genuma_machine::IdSet;
use genuma_machine::placement::{MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice};

use crate::backend::Error;
use crate::bandwidth_kernels::ThreadStreamArrays;
use crate::plan::LatencyJob;
use crate::pointer_chain::CacheLine;
use crate::profile::{BufferPageKind, BufferPlacementCheck, MemoryLocation};

/// Array elements per cache line. A thread gets whole cache lines of an array, so that no line belongs to two threads.
const LINE_ELEMENTS: usize = 8;
/// Initial values of the three arrays. Not zero, because some memory controllers treat zeros differently.
const INITIAL_VALUES: [f64; 3] = [1.0, 2.0, 0.5];

/// The buffer of a pointer chain and a set of arrays, with the placement checks of all buffers so far.
#[derive(Debug, Default)]
pub(super) struct MeasurementBuffers {
    chain: Option<(ChainKey, PlacedSlice<CacheLine>)>,
    arrays: Option<(ArraysKey, Vec<NodeArrays>)>,
    /// Placement checks, one per policy and page kind.
    pub buffer_checks: Vec<BufferPlacementCheck>,
    /// Problems, one sentence each: placements and page kinds that the kernel did not provide.
    pub warnings: Vec<String>,
}

/// Key of a pointer chain's buffer: node, page kind, bytes.
type ChainKey = (u32, BufferPageKind, u64);
/// Key of arrays: location, page kind, bytes, and the nodes of the threads if they matter.
type ArraysKey = (MemoryLocation, BufferPageKind, u64, IdSet);

/// Three arrays for the threads of one node, or of all nodes.
#[derive(Debug)]
pub(super) struct NodeArrays {
    node: Option<u32>,
    arrays: [PlacedSlice<f64>; 3],
}

impl MeasurementBuffers {
    /// Returns the cache lines for the pointer chain of a job. Allocates the buffer if necessary.
    pub(super) fn get_or_allocate_chain_lines(&mut self, job: &LatencyJob) -> Result<&mut [CacheLine], Error> {
        self.allocate_chain(job)?;
        Ok(self.chain.as_mut().map(|(_, lines)| first_lines(lines, job.chain_bytes)).unwrap_or_default())
    }

    /// Returns sets of arrays for threads on `nodes`, one node per thread. `bytes` is the size of all arrays together.
    /// Allocates the arrays if necessary.
    pub(super) fn get_or_allocate_stream_arrays(
        &mut self,
        spot: &MemoryLocation,
        pages: BufferPageKind,
        bytes: u64,
        nodes: &[u32],
    ) -> Result<&mut [NodeArrays], Error> {
        self.allocate_arrays(spot, pages, bytes, nodes)?;
        Ok(self.arrays.as_mut().map(|(_, sets)| &mut sets[..]).unwrap_or_default())
    }

    /// Returns the pointer chain's cache lines and the sets of arrays for a loaded latency job.
    pub(crate) fn get_or_allocate_lines_and_arrays(
        &mut self,
        job: &LatencyJob,
        spot: &MemoryLocation,
        pages: BufferPageKind,
        bytes: u64,
        nodes: &[u32],
    ) -> Result<(&mut [CacheLine], &mut [NodeArrays]), Error> {
        self.allocate_chain(job)?;
        self.allocate_arrays(spot, pages, bytes, nodes)?;
        let lines = self.chain.as_mut().map(|(_, lines)| first_lines(lines, job.chain_bytes)).unwrap_or_default();
        let sets = self.arrays.as_mut().map(|(_, sets)| &mut sets[..]).unwrap_or_default();
        Ok((lines, sets))
    }

    fn allocate_chain(&mut self, job: &LatencyJob) -> Result<(), Error> {
        let key = (job.memory_node, job.pages, job.buffer_bytes);
        if self.chain.as_ref().is_none_or(|(kept, _)| *kept != key) {
            self.chain = None;
            let lines = (job.buffer_bytes / size_of::<CacheLine>() as u64) as usize;
            let policy = MemoryPolicy::Bind(IdSet::from([job.memory_node]));
            let placed = self.allocate_and_check(lines, policy, job.pages)?;
            self.chain = Some((key, placed));
        }
        Ok(())
    }

    fn allocate_arrays(
        &mut self,
        spot: &MemoryLocation,
        pages: BufferPageKind,
        bytes: u64,
        nodes: &[u32],
    ) -> Result<(), Error> {
        let whose: IdSet = if *spot == MemoryLocation::Local { nodes.iter().copied().collect() } else { IdSet::new() };
        let key = (spot.clone(), pages, bytes, whose);
        if self.arrays.as_ref().is_some_and(|(kept, _)| *kept == key) {
            return Ok(());
        }
        self.arrays = None;
        let elements = (bytes / 3 / size_of::<f64>() as u64) as usize;
        let bind = |node: u32| MemoryPolicy::Bind(IdSet::from([node]));
        let wanted: Vec<(Option<u32>, usize, MemoryPolicy)> = match spot {
            MemoryLocation::Node(node) => vec![(None, elements, bind(*node))],
            MemoryLocation::Interleaved(nodes) => vec![(None, elements, MemoryPolicy::Interleave(nodes.clone()))],
            MemoryLocation::Weighted(weights) => vec![(None, elements, MemoryPolicy::Weighted(weights.clone()))],
            MemoryLocation::Local => {
                let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
                nodes.iter().for_each(|node| *threads.entry(*node).or_default() += 1);
                let share = |threads: usize| elements / nodes.len() * threads;
                threads.into_iter().map(|(node, n)| (Some(node), share(n), bind(node))).collect()
            }
        };
        let mut sets = Vec::with_capacity(wanted.len());
        for (node, elements, policy) in wanted {
            let mut array = |value: f64| -> Result<PlacedSlice<f64>, Error> {
                let mut placed: PlacedSlice<f64> = self.allocate_and_check(elements, policy.clone(), pages)?;
                placed.fill(value);
                Ok(placed)
            };
            let [a, b, c] = INITIAL_VALUES;
            sets.push(NodeArrays { node, arrays: [array(a)?, array(b)?, array(c)?] });
        }
        self.arrays = Some((key, sets));
        Ok(())
    }

    /// Allocates a buffer and checks on which nodes it is.
    fn allocate_and_check<T: Copy + bytemuck::Zeroable>(
        &mut self,
        elements: usize,
        policy: MemoryPolicy,
        pages: BufferPageKind,
    ) -> Result<PlacedSlice<T>, Error> {
        let asked = MemoryPlacement {
            policy,
            page_size: if pages == BufferPageKind::Huge { PageSize::Transparent } else { PageSize::Base },
        };
        let placed: PlacedSlice<T> = PlacedSlice::new_zeroed(elements, &asked)?;
        if placed.applied_placement().page_size != asked.page_size {
            self.add_warning(format!(
                "memory with {asked} was given in {} instead: its results are for this page size",
                placed.applied_placement().page_size
            ));
        }
        let bytes = size_of_val(&placed[..]) as u64;
        let (mut found, mut as_asked) = (BTreeMap::new(), None);
        match placed.verify_placement() {
            Ok(verdict) => {
                found = verdict
                    .residence
                    .pages_by_node
                    .iter()
                    .map(|(node, n)| (*node, n * verdict.residence.page_bytes))
                    .collect();
                as_asked = Some(verdict.is_as_requested);
                if !verdict.is_as_requested {
                    self.add_warning(format!("{verdict}"));
                }
            }
            Err(error) => self.add_warning(format!(
                "cannot query on which nodes memory with {asked} is, so its results may be those of another node: {error}"
            )),
        }
        self.add_check(BufferPlacementCheck {
            requested_policy: asked.policy.to_string(),
            page_kind: pages,
            bytes,
            bytes_by_node: found,
            is_as_requested: as_asked,
        });
        Ok(placed)
    }

    fn add_warning(&mut self, remark: String) {
        if !self.warnings.contains(&remark) {
            self.warnings.push(remark);
        }
    }

    /// Adds a buffer to the placement check of its policy and page kind.
    fn add_check(&mut self, check: BufferPlacementCheck) {
        let same = |kept: &&mut BufferPlacementCheck| {
            (&kept.requested_policy, kept.page_kind) == (&check.requested_policy, check.page_kind)
        };
        let Some(kept) = self.buffer_checks.iter_mut().find(same) else {
            self.buffer_checks.push(check);
            return;
        };
        kept.bytes += check.bytes;
        for (node, bytes) in check.bytes_by_node {
            *kept.bytes_by_node.entry(node).or_default() += bytes;
        }
        kept.is_as_requested = kept.is_as_requested.zip(check.is_as_requested).map(|(before, now)| before && now);
    }
}

fn first_lines(lines: &mut [CacheLine], bytes: u64) -> &mut [CacheLine] {
    let count = lines.len().min((bytes / size_of::<CacheLine>() as u64) as usize);
    &mut lines[..count]
}

/// Splits arrays among threads; `nodes` has the node of each. A set is split among the threads of its node, or among
/// all threads if it has no node, in whole cache lines. Returns one part for each thread, which may be empty.
pub(crate) fn split_arrays_among_threads<'a>(sets: &'a mut [NodeArrays], nodes: &[u32]) -> Vec<ThreadStreamArrays<'a>> {
    let mut parts: Vec<Option<ThreadStreamArrays>> = nodes.iter().map(|_| None).collect();
    for set in sets {
        let mine = |at: &usize| set.node.is_none_or(|node| nodes[*at] == node);
        let threads: Vec<usize> = (0..nodes.len()).filter(mine).collect();
        let [a, b, c] = &mut set.arrays;
        let each = a.len().div_ceil(threads.len().max(1)).next_multiple_of(LINE_ELEMENTS).max(LINE_ELEMENTS);
        let cut = a.chunks_mut(each).zip(b.chunks_mut(each)).zip(c.chunks_mut(each));
        for (thread, ((a, b), c)) in threads.into_iter().zip(cut) {
            parts[thread] = Some(ThreadStreamArrays { a, b, c });
        }
    }
    // Arrays with fewer lines than threads leave some threads without a share.
    let none = || ThreadStreamArrays { a: &mut [], b: &mut [], c: &mut [] };
    parts.into_iter().map(|part| part.unwrap_or_else(none)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(node: Option<u32>, length: usize) -> NodeArrays {
        let asked = MemoryPlacement::from(MemoryPolicy::Local);
        let array = || PlacedSlice::new_zeroed(length, &asked).expect("a small array");
        NodeArrays { node, arrays: [array(), array(), array()] }
    }

    fn lengths(parts: &[ThreadStreamArrays]) -> Vec<usize> {
        parts.iter().map(|part| part.a.len()).collect()
    }

    #[test]
    fn arrays_are_shared_out_in_whole_lines() {
        let mut one = [set(None, 1000)];
        let parts = split_arrays_among_threads(&mut one, &[0, 0, 1]);
        assert_eq!(lengths(&parts), [336, 336, 328]);
        assert!(parts.iter().all(|part| (part.b.len(), part.c.len()) == (part.a.len(), part.a.len())));
        assert_eq!(lengths(&split_arrays_among_threads(&mut [set(None, 16)], &[0, 0, 0])), [8, 8, 0]);
    }

    #[test]
    fn threads_get_arrays_of_their_node() {
        let mut sets = [set(Some(3), 64), set(Some(5), 32)];
        sets[1].arrays[0].fill(7.0);
        let parts = split_arrays_among_threads(&mut sets, &[5, 3, 3, 5]);
        assert_eq!(lengths(&parts), [16, 32, 32, 16]);
        assert!(parts[0].a.iter().chain(&*parts[3].a).all(|x| *x == 7.0));
        assert!(parts[1].a.iter().all(|x| *x == 0.0));
    }
}
