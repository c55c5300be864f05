//! The buffers that are measured on: placed, checked, and kept for the next job that needs the same.

use std::collections::BTreeMap;

use genuma_machine::IdSet;
use genuma_machine::placement::{Pages, Placed, Placement, Policy};

use crate::backend::Error;
use crate::chase::Line;
use crate::kernels::Arrays;
use crate::plan::Chase;
use crate::profile::{BufferCheck, PageKind, Spot};

/// Elements of a cache line: no line belongs to two threads.
const LINE_ELEMENTS: usize = 8;
/// What arrays hold at first: some controllers treat zeros apart.
const CONTENTS: [f64; 3] = [1.0, 2.0, 0.5];

/// A ring's buffer and a set of arrays, with what the kernel said of all that were made.
#[derive(Debug, Default)]
pub struct Buffers {
    ring: Option<(RingKey, Placed<Line>)>,
    arrays: Option<(ArraysKey, Vec<Set>)>,
    /// One entry a policy and kind of pages.
    pub checks: Vec<BufferCheck>,
    /// Pages that were asked for and not given.
    pub remarks: Vec<String>,
}

/// Node, pages, bytes.
type RingKey = (u32, PageKind, u64);
/// Where, pages, bytes; and the nodes of the threads where these matter.
type ArraysKey = (Spot, PageKind, u64, IdSet);

/// Three arrays for the threads of one node, or of all.
#[derive(Debug)]
pub struct Set {
    node: Option<u32>,
    arrays: [Placed<f64>; 3],
}

impl Buffers {
    /// The lines of a ring.
    pub fn ring(&mut self, job: &Chase) -> Result<&mut [Line], Error> {
        self.make_ring(job)?;
        Ok(self.ring.as_mut().map(|(_, lines)| part(lines, job.bytes)).unwrap_or_default())
    }

    /// Sets of arrays for threads on these nodes.
    pub fn arrays(
        &mut self,
        spot: &Spot,
        pages: PageKind,
        bytes: u64,
        nodes: &[u32],
    ) -> Result<&mut [Set], Error> {
        self.make_arrays(spot, pages, bytes, nodes)?;
        Ok(self.arrays.as_mut().map(|(_, sets)| &mut sets[..]).unwrap_or_default())
    }

    /// Both at once.
    pub(crate) fn ring_and_arrays(
        &mut self,
        job: &Chase,
        spot: &Spot,
        pages: PageKind,
        bytes: u64,
        nodes: &[u32],
    ) -> Result<(&mut [Line], &mut [Set]), Error> {
        self.make_ring(job)?;
        self.make_arrays(spot, pages, bytes, nodes)?;
        let lines = self.ring.as_mut().map(|(_, lines)| part(lines, job.bytes)).unwrap_or_default();
        let sets = self.arrays.as_mut().map(|(_, sets)| &mut sets[..]).unwrap_or_default();
        Ok((lines, sets))
    }

    fn make_ring(&mut self, job: &Chase) -> Result<(), Error> {
        let key = (job.memory_node, job.pages, job.buffer);
        if self.ring.as_ref().is_none_or(|(kept, _)| *kept != key) {
            self.ring = None;
            let lines = (job.buffer / size_of::<Line>() as u64) as usize;
            let policy = Policy::Bind(IdSet::from([job.memory_node]));
            let placed = self.place(lines, policy, job.pages)?;
            self.ring = Some((key, placed));
        }
        Ok(())
    }

    fn make_arrays(&mut self, spot: &Spot, pages: PageKind, bytes: u64, nodes: &[u32]) -> Result<(), Error> {
        let whose: IdSet = if *spot == Spot::Local { nodes.iter().copied().collect() } else { IdSet::new() };
        let key = (spot.clone(), pages, bytes, whose);
        if self.arrays.as_ref().is_some_and(|(kept, _)| *kept == key) {
            return Ok(());
        }
        self.arrays = None;
        let elements = (bytes / 3 / size_of::<f64>() as u64) as usize;
        let bind = |node: u32| Policy::Bind(IdSet::from([node]));
        let wanted: Vec<(Option<u32>, usize, Policy)> = match spot {
            Spot::Node(node) => vec![(None, elements, bind(*node))],
            Spot::Interleaved(nodes) => vec![(None, elements, Policy::Interleave(nodes.clone()))],
            Spot::Weighted(weights) => vec![(None, elements, Policy::Weighted(weights.clone()))],
            Spot::Local => {
                let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
                nodes.iter().for_each(|node| *threads.entry(*node).or_default() += 1);
                let share = |threads: usize| elements / nodes.len() * threads;
                threads.into_iter().map(|(node, n)| (Some(node), share(n), bind(node))).collect()
            }
        };
        let mut sets = Vec::with_capacity(wanted.len());
        for (node, elements, policy) in wanted {
            let mut array = |value: f64| -> Result<Placed<f64>, Error> {
                let mut placed: Placed<f64> = self.place(elements, policy.clone(), pages)?;
                placed.fill(value);
                Ok(placed)
            };
            let [a, b, c] = CONTENTS;
            sets.push(Set { node, arrays: [array(a)?, array(b)?, array(c)?] });
        }
        self.arrays = Some((key, sets));
        Ok(())
    }

    /// Places a buffer and asks the kernel where it is.
    fn place<T: Copy + bytemuck::Zeroable>(
        &mut self,
        elements: usize,
        policy: Policy,
        pages: PageKind,
    ) -> Result<Placed<T>, Error> {
        let asked = Placement {
            policy,
            pages: if pages == PageKind::Huge { Pages::Transparent } else { Pages::Base },
        };
        let placed: Placed<T> = Placed::zeroed(elements, &asked)?;
        if placed.placement().pages != asked.pages {
            self.remark(format!("{asked}: in {} instead", placed.placement().pages));
        }
        let bytes = size_of_val(&placed[..]) as u64;
        let (mut found, mut as_asked) = (BTreeMap::new(), None);
        match placed.verify() {
            Ok(verdict) => {
                found = verdict.found.nodes.iter().map(|(node, n)| (*node, n * verdict.found.page)).collect();
                as_asked = Some(verdict.fits);
                if !verdict.fits {
                    self.remark(format!("{verdict}"));
                }
            }
            Err(error) => self.remark(format!("where {asked} is cannot be asked: {error}")),
        }
        self.note(BufferCheck { asked: asked.policy.to_string(), pages, bytes, found, as_asked });
        Ok(placed)
    }

    fn remark(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Adds a buffer to what is known of its policy.
    fn note(&mut self, check: BufferCheck) {
        let same = |kept: &&mut BufferCheck| (&kept.asked, kept.pages) == (&check.asked, check.pages);
        let Some(kept) = self.checks.iter_mut().find(same) else {
            self.checks.push(check);
            return;
        };
        kept.bytes += check.bytes;
        for (node, bytes) in check.found {
            *kept.found.entry(node).or_default() += bytes;
        }
        kept.as_asked = kept.as_asked.zip(check.as_asked).map(|(before, now)| before && now);
    }
}

fn part(lines: &mut [Line], bytes: u64) -> &mut [Line] {
    let count = lines.len().min((bytes / size_of::<Line>() as u64) as usize);
    &mut lines[..count]
}

/// Shares arrays out to threads on `nodes`, in their order: each set to the threads that it is for, in whole cache lines.
pub(crate) fn shared_out<'a>(sets: &'a mut [Set], nodes: &[u32]) -> Vec<Arrays<'a>> {
    let mut parts: Vec<Option<Arrays>> = nodes.iter().map(|_| None).collect();
    for set in sets {
        let mine = |at: &usize| set.node.is_none_or(|node| nodes[*at] == node);
        let threads: Vec<usize> = (0..nodes.len()).filter(mine).collect();
        let [a, b, c] = &mut set.arrays;
        let each = a.len().div_ceil(threads.len().max(1)).next_multiple_of(LINE_ELEMENTS).max(LINE_ELEMENTS);
        let cut = a.chunks_mut(each).zip(b.chunks_mut(each)).zip(c.chunks_mut(each));
        for (thread, ((a, b), c)) in threads.into_iter().zip(cut) {
            parts[thread] = Some(Arrays { a, b, c });
        }
    }
    // Arrays of fewer lines than threads leave some without.
    let none = || Arrays { a: &mut [], b: &mut [], c: &mut [] };
    parts.into_iter().map(|part| part.unwrap_or_else(none)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(node: Option<u32>, length: usize) -> Set {
        let asked = Placement::from(Policy::Local);
        let array = || Placed::zeroed(length, &asked).expect("a small array");
        Set { node, arrays: [array(), array(), array()] }
    }

    fn lengths(parts: &[Arrays]) -> Vec<usize> {
        parts.iter().map(|part| part.a.len()).collect()
    }

    #[test]
    fn arrays_are_shared_out_in_whole_lines() {
        let mut one = [set(None, 1000)];
        let parts = shared_out(&mut one, &[0, 0, 1]);
        assert_eq!(lengths(&parts), [336, 336, 328]);
        assert!(parts.iter().all(|part| (part.b.len(), part.c.len()) == (part.a.len(), part.a.len())));
        assert_eq!(lengths(&shared_out(&mut [set(None, 16)], &[0, 0, 0])), [8, 8, 0]);
    }

    #[test]
    fn threads_get_arrays_of_their_node() {
        let mut sets = [set(Some(3), 64), set(Some(5), 32)];
        sets[1].arrays[0].fill(7.0);
        let parts = shared_out(&mut sets, &[5, 3, 3, 5]);
        assert_eq!(lengths(&parts), [16, 32, 32, 16]);
        assert!(parts[0].a.iter().chain(&*parts[3].a).all(|x| *x == 7.0));
        assert!(parts[1].a.iter().all(|x| *x == 0.0));
    }
}
