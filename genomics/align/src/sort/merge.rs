//! Merging sorted sequences of items by a tree of losers (Knuth, The Art of Computer Programming, volume 3, section
//! 5.4.1). Equal items come out in the order of their sources.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::Error;
use super::spill::{Extent, Spill};

/// Something that is sorted. As bytes, it begins with the ordinal of its template: 8 bytes, little-endian.
pub(crate) trait Item {
    /// What it is sorted by.
    type Key: Copy + Ord;
    /// No key is greater.
    const LAST: Self::Key;

    /// Bytes of the item that begins `bytes`.
    fn length(bytes: &[u8]) -> usize;

    /// Its key.
    fn key(item: &[u8]) -> Self::Key;
}

/// Bytes of an ordinal.
pub(crate) const ORDINAL: usize = 8;

/// The ordinal that begins an item.
pub(crate) fn ordinal(item: &[u8]) -> u64 {
    item[..ORDINAL].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

/// Sorted items in memory, whose ordinals count from `base`.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) items: Vec<u8>,
    pub(crate) base: u64,
}

/// Sorted items in the spill file.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) extents: VecDeque<Extent>,
}

/// A piece that is to be read ahead, and where to send it.
type Request = (Extent, Sender<Result<Vec<u8>, Error>>);

/// Threads that read and unpack ahead of the merge. They end when the merge is dropped.
#[derive(Debug)]
struct Ahead(Sender<Request>);

impl Ahead {
    fn new(spill: &Arc<Spill>, threads: usize) -> Ahead {
        let (send, receive) = unbounded::<Request>();
        for _ in 0..threads {
            let (spill, receive) = (Arc::clone(spill), receive.clone());
            std::thread::spawn(move || {
                let mut scratch = Vec::new();
                for (extent, reply) in receive {
                    // Nobody waits any more when the merge has failed.
                    let _ = reply.send(spill.take(extent, &mut scratch));
                }
            });
        }
        Ahead(send)
    }

    /// Begins to read the next piece of a run.
    fn ask(&self, run: &mut Run) -> Option<Receiver<Result<Vec<u8>, Error>>> {
        let extent = run.extents.pop_front()?;
        let (send, receive) = bounded(1);
        // The threads live as long as this sender.
        let _ = self.0.send((extent, send));
        Some(receive)
    }
}

#[derive(Debug)]
struct Source {
    items: Vec<u8>,
    at: usize,
    base: u64,
    run: Run,
    next: Option<Receiver<Result<Vec<u8>, Error>>>,
}

/// An item as it comes out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merged<'a> {
    /// Ordinal of its template among all.
    pub(crate) ordinal: u64,
    /// The item, its own ordinal included.
    pub(crate) item: &'a [u8],
}

/// A contestant: its key, and its source or [`DONE`].
type Player<K> = (K, u32);

/// Loses to every source.
const DONE: u32 = u32::MAX;

/// The merge.
pub(crate) struct Merge<I: Item> {
    sources: Vec<Source>,
    /// The winner at 0, then the losers of the tree.
    tree: Vec<Player<I::Key>>,
    ahead: Option<Ahead>,
    /// The source that the last item came from: still to be moved on.
    taken: Option<usize>,
    item: PhantomData<I>,
}

impl<I: Item> Merge<I> {
    /// Begins with `runs` and then `pieces` as sources. Up to `threads` read ahead.
    pub(crate) fn new(
        runs: Vec<Run>,
        pieces: Vec<Piece>,
        spill: &Arc<Spill>,
        threads: usize,
    ) -> Result<Merge<I>, Error> {
        let ahead = (!runs.is_empty()).then(|| Ahead::new(spill, threads.clamp(1, runs.len())));
        let from_file = |mut run| {
            let next = ahead.as_ref().and_then(|a| a.ask(&mut run));
            Source { items: Vec::new(), at: 0, base: 0, run, next }
        };
        let mut sources: Vec<Source> = runs.into_iter().map(from_file).collect();
        sources.extend(pieces.into_iter().map(|Piece { items, base }| Source {
            items,
            at: 0,
            base,
            run: Run::default(),
            next: None,
        }));
        let n = sources.len();
        let mut merge =
            Merge { sources, tree: vec![(I::LAST, DONE); n.max(1)], ahead, taken: None, item: PhantomData };
        // The leaves are 0..n; the nodes above them are decided from below.
        let mut winners = vec![(I::LAST, DONE); 2 * n.max(1)];
        for s in 0..n {
            winners[n + s] = merge.player(s)?;
        }
        for node in (1..n).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            (winners[node], merge.tree[node]) = if b < a { (b, a) } else { (a, b) };
        }
        merge.tree[0] = winners[1];
        Ok(merge)
    }

    /// What a source sends into the tree next.
    fn player(&mut self, s: usize) -> Result<Player<I::Key>, Error> {
        let source = &mut self.sources[s];
        while source.at == source.items.len() {
            let Some(next) = source.next.take() else {
                source.items = Vec::new();
                source.at = 0;
                return Ok((I::LAST, DONE));
            };
            // Only a thread that panicked does not answer.
            source.items = next.recv().unwrap_or(Err(Error::Lost))?;
            source.at = 0;
            source.next = self.ahead.as_ref().and_then(|a| a.ask(&mut source.run));
        }
        Ok((I::key(&source.items[source.at..]), s as u32))
    }

    /// The next item in order.
    pub(crate) fn next(&mut self) -> Result<Option<Merged<'_>>, Error> {
        if let Some(s) = self.taken.take() {
            let source = &mut self.sources[s];
            source.at += I::length(&source.items[source.at..]);
            let mut winner = self.player(s)?;
            let mut node = (self.sources.len() + s) / 2;
            while node > 0 {
                if self.tree[node] < winner {
                    std::mem::swap(&mut self.tree[node], &mut winner);
                }
                node /= 2;
            }
            self.tree[0] = winner;
        }
        let (_, s) = self.tree[0];
        if s == DONE {
            return Ok(None);
        }
        self.taken = Some(s as usize);
        let source = &self.sources[s as usize];
        let rest = &source.items[source.at..];
        let item = &rest[..I::length(rest)];
        Ok(Some(Merged { ordinal: source.base + ordinal(item), item }))
    }
}

/// Brings items into order; equal ones stay as they were.
pub(crate) fn sorted<I: Item>(items: &[u8]) -> Vec<u8> {
    let mut order = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        order.push((I::key(rest), items.len() - rest.len()));
        rest = &rest[I::length(rest)..];
    }
    order.sort_unstable();
    let mut sorted = Vec::with_capacity(items.len());
    for (_, at) in order {
        sorted.extend_from_slice(&items[at..at + I::length(&items[at..])]);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An item of 8 bytes for the ordinal and one for the key.
    struct Byte;

    impl Item for Byte {
        type Key = u8;
        const LAST: u8 = u8::MAX;

        fn length(_: &[u8]) -> usize {
            9
        }

        fn key(item: &[u8]) -> u8 {
            item[8]
        }
    }

    fn piece(keys: &[u8], base: u64) -> Piece {
        let items =
            keys.iter().enumerate().flat_map(|(i, &k)| [&(i as u64).to_le_bytes()[..], &[k]].concat());
        Piece { items: items.collect(), base }
    }

    fn merged(pieces: Vec<Piece>) -> Vec<(u8, u64)> {
        let spill = Arc::new(Spill::new(std::path::Path::new("/nowhere")));
        let mut merge = Merge::<Byte>::new(Vec::new(), pieces, &spill, 1).expect("no file");
        let mut all = Vec::new();
        while let Some(m) = merge.next().expect("no file") {
            all.push((m.item[8], m.ordinal));
        }
        all
    }

    #[test]
    fn equal_items_keep_their_order_and_the_last_key_is_a_key() {
        assert_eq!(merged(Vec::new()), []);
        assert_eq!(merged(vec![piece(&[], 0)]), []);
        assert_eq!(merged(vec![piece(&[255, 255], 5)]), [(255, 5), (255, 6)]);
        assert_eq!(
            merged(vec![piece(&[1, 255], 0), piece(&[], 2), piece(&[0, 1, 1, 255], 2)]),
            [(0, 2), (1, 0), (1, 3), (1, 4), (255, 1), (255, 5)]
        );
    }

    #[test]
    fn any_number_of_sources() {
        for n in 1..40u64 {
            let keys = |s: u64| {
                let mut keys: Vec<u8> = (0..s % 7).map(|i| (s * 31 + i * 17) as u8).collect();
                keys.sort_unstable();
                keys
            };
            let found = merged((0..n).map(|s| piece(&keys(s), 10 * s)).collect());
            let mut expected: Vec<(u8, u64)> = (0..n)
                .flat_map(|s| (10 * s..).zip(keys(s)).map(|(o, k)| (k, o)).collect::<Vec<_>>())
                .collect();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}
