//! Memory of a node in pieces of equal size, whose pages come when they are first used.
//!
//! Unsafe, because pieces of one mapping are lent as slices that may be written while others are: no two pieces have the same number, and
//! pieces with different numbers share no byte.
#![allow(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::residence::{self, Residence};
use super::scoped::kernel_policy;
use super::{Error, Policy, nodes};
use crate::IdSet;
use crate::sys::{self, Kind, Region};

/// Memory that is lent in pieces. Its pages are huge where the kernel has them to give, and on one node as long as there is room.
///
/// ```
/// use genuma_machine::placement::Slab;
///
/// let slab = Slab::new(64 << 10, 100, None)?;
/// let mut piece = slab.take().expect("all are free");
/// piece[..5].copy_from_slice(b"reads");
/// drop(piece); // back to the slab
/// # Ok::<(), genuma_machine::placement::Error>(())
/// ```
#[derive(Debug)]
pub struct Slab {
    region: Region,
    /// Bytes of a piece.
    piece: usize,
    /// Pieces in all.
    pieces: usize,
    free: Mutex<Free>,
}

/// Pieces that nobody holds.
#[derive(Debug, Default)]
struct Free {
    /// Those that somebody held.
    used: BinaryHeap<Reverse<usize>>,
    /// All from this one on, never held since their pages were given away.
    fresh: usize,
}

/// A piece of a [`Slab`], whose bytes are what its last holder left there, or zero.
#[derive(Debug)]
pub struct Piece {
    slab: Arc<Slab>,
    number: usize,
}

impl Slab {
    /// Room for `pieces` of `piece` bytes each, on `node` as long as that has room, else on the node of whoever uses a page first.
    ///
    /// # Errors
    /// The system has no address space to give, or no node of that number.
    pub fn new(piece: usize, pieces: usize, node: Option<u32>) -> Result<Arc<Self>, Error> {
        let asked = || node.map_or_else(|| "memory".to_owned(), |node| format!("memory of node {node}"));
        let failed = |call| move |source| Error::System { asked: asked(), call, source };
        let too_large = || failed("mmap")(io::ErrorKind::OutOfMemory.into());
        let bytes = piece.checked_mul(pieces).ok_or_else(too_large)?;
        let huge = nodes::transparent_page().filter(|&unit| bytes >= unit);
        let align = huge.unwrap_or_else(sys::page);
        let region = Region::new(bytes, Kind::Base { align }).map_err(failed("mmap"))?;
        if let Err(error) = region.transparent(huge.is_some()) {
            tracing::debug!("{}: madvise: {error}", asked());
        }
        if let Some(node) = node {
            let prefer = Policy::PreferredMany(IdSet::from([node]));
            match kernel_policy(&prefer, |policy| region.bind(policy)) {
                Err(error) if sys::refused(&error) => {
                    nodes::degraded(nodes::LOCAL, &format!("mbind: {error}"));
                }
                done => done.map(drop).map_err(failed("mbind"))?,
            }
        }
        Ok(Arc::new(Slab { region, piece, pieces, free: Mutex::default() }))
    }

    /// The free piece of the lowest number, so that what is used lies together.
    pub fn take(self: &Arc<Self>) -> Option<Piece> {
        let mut free = self.free();
        let number = match free.used.pop() {
            Some(Reverse(number)) => number,
            None if free.fresh < self.pieces => {
                free.fresh += 1;
                free.fresh - 1
            }
            None => return None,
        };
        Some(Piece { slab: self.clone(), number })
    }

    /// Gives the pages that only free pieces lie in back to the system.
    ///
    /// # Errors
    /// The system refuses.
    pub fn release(&self) -> Result<(), Error> {
        let mut free = self.free();
        let mut used = std::mem::take(&mut free.used).into_sorted_vec();
        // Rising, as the reversed order falls.
        used.reverse();
        let mut released = Ok(());
        for run in used.chunk_by(|Reverse(a), Reverse(b)| a + 1 == *b) {
            let (Reverse(first), Reverse(last)) = (run[0], run[run.len() - 1]);
            let bytes = self.whole_pages(first * self.piece..(last + 1) * self.piece);
            // SAFETY: these pieces are free and stay so while `free` is locked.
            released = released.and_then(|()| unsafe { self.region.discard(bytes) });
        }
        free.used = used.into();
        released.map_err(|source| Error::System { asked: "memory".to_owned(), call: "madvise", source })
    }

    /// On which nodes its pages are now. Those of all the slab are counted by the kernel, which is quick however large it is.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn residence(&self) -> Result<Residence, Error> {
        residence::counted_by_kernel(self.region.address(), sys::page(), self.region.bytes() / sys::page())
    }

    /// The whole pages within `bytes`.
    fn whole_pages(&self, bytes: Range<usize>) -> Range<usize> {
        let (page, end) = (sys::page(), bytes.end.min(self.region.bytes()));
        let start = bytes.start.next_multiple_of(page);
        start..(end / page * page).max(start)
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        // Every change is made in one step, so that a panic leaves it whole.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let Slab { region, piece, .. } = &*self.slab;
        // SAFETY: the bytes are within the region, which lives as long as the slab, are zero or what was written, and nobody else has
        // this number as long as this piece lives.
        unsafe { std::slice::from_raw_parts(region.start().add(self.number * piece), *piece) }
    }
}

impl DerefMut for Piece {
    fn deref_mut(&mut self) -> &mut [u8] {
        let Slab { region, piece, .. } = &*self.slab;
        // SAFETY: as for `deref`; `&mut self` makes it the only borrow.
        unsafe { std::slice::from_raw_parts_mut(region.start().add(self.number * piece), *piece) }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.slab.free().used.push(Reverse(self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_and_come_back() {
        let slab = Slab::new(5000, 7, None).expect("memory");
        let mut pieces: Vec<Piece> = std::iter::from_fn(|| slab.take()).collect();
        assert_eq!(pieces.len(), 7);
        for (piece, byte) in pieces.iter_mut().zip(1..) {
            assert_eq!(piece.len(), 5000);
            assert!(piece.iter().all(|&b| b == 0));
            piece.fill(byte);
        }
        for (piece, byte) in pieces.iter().zip(1..) {
            assert!(piece.iter().all(|&b| b == byte));
        }
        pieces.swap_remove(4);
        pieces.swap_remove(2);
        let lowest = slab.take().expect("two are free");
        assert!(lowest.iter().all(|&b| b == 3), "what its last holder left there");
    }

    #[test]
    fn what_is_free_is_given_back() {
        let page = sys::page();
        let slab = Slab::new(4 * page, 100, None).expect("memory");
        let mut pieces: Vec<Piece> = std::iter::from_fn(|| slab.take()).collect();
        pieces.iter_mut().for_each(|piece| piece.fill(1));
        assert_eq!(slab.residence().expect("told").present(), 400);
        // Numbers 20 to 59 and 99.
        drop(pieces.drain(20..60));
        pieces.pop();
        slab.release().expect("given back");
        assert_eq!(slab.residence().expect("told").present(), 400 - 4 * 41);
        assert!(pieces.iter().all(|piece| piece.iter().all(|&b| b == 1)), "what is held stays");
        assert!(slab.take().expect("free").iter().all(|&b| b == 0));
    }

    #[test]
    fn pieces_smaller_than_a_page_are_given_back_by_whole_pages() {
        let page = sys::page();
        let slab = Slab::new(page / 2 * 3, 4, None).expect("memory");
        let mut pieces: Vec<Piece> = std::iter::from_fn(|| slab.take()).collect();
        pieces.iter_mut().for_each(|piece| piece.fill(1));
        pieces.remove(1);
        slab.release().expect("given back");
        assert_eq!(slab.residence().expect("told").present(), 5);
        assert!(pieces.iter().all(|piece| piece.iter().all(|&b| b == 1)));
    }

    #[test]
    fn threads_take_and_leave_at_once() {
        let slab = Slab::new(64, 8, None).expect("memory");
        std::thread::scope(|scope| {
            for byte in 1..=4 {
                let slab = &slab;
                scope.spawn(move || {
                    for _ in 0..10_000 {
                        let mut two = [slab.take(), slab.take()].map(|piece| piece.expect("two for each"));
                        two.iter_mut().for_each(|piece| piece.fill(byte));
                        assert!(two.iter().all(|piece| piece.iter().all(|&b| b == byte)));
                    }
                });
            }
        });
        assert_eq!(std::iter::from_fn(|| slab.take()).collect::<Vec<_>>().len(), 8);
    }
}
