//! Merges sorted runs of items with a loser tree (Knuth, The Art of Computer Programming, volume 3, section 5.4.1).
//! Items with equal keys come out in the order of their sources.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::Error;
use super::spill_file::{RunExtent, SortedRunFile};

/// An item that can be sorted, encoded as bytes. The bytes begin with the ordinal of the template to which the item
/// belongs: 8 bytes, little-endian.
pub(crate) trait SortItem {
    type Key: Copy + Ord;
    /// The maximum key. It is used for sources without further items.
    const MAX_KEY: Self::Key;

    /// Length (bytes) of the first item in `bytes`, which has one or more items.
    fn encoded_len(bytes: &[u8]) -> usize;

    fn key(item: &[u8]) -> Self::Key;
}

/// Number of bytes of a template ordinal.
pub(crate) const TEMPLATE_ORDINAL_BYTES: usize = 8;

/// Reads the template ordinal at the front of an item.
pub(crate) fn template_ordinal_of_item(item: &[u8]) -> u64 {
    item[..TEMPLATE_ORDINAL_BYTES].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

/// A sorted run of items in memory. `first_ordinal` must be added to the template ordinals in the items.
#[derive(Debug)]
pub(crate) struct InMemoryRun {
    pub(crate) items: Vec<u8>,
    pub(crate) first_ordinal: u64,
}

/// A sorted run in the spill file.
#[derive(Debug, Default)]
pub(crate) struct SpilledRun {
    pub(crate) extents: VecDeque<RunExtent>,
}

/// An extent that is to be read ahead, and the channel for the items read from it.
type ReadRequest = (RunExtent, Sender<Result<Vec<u8>, Error>>);

/// Threads that read and decompress extents before the merge needs them. The threads end when the merge is dropped.
#[derive(Debug)]
struct ReadAheadThreads(Sender<ReadRequest>);

impl ReadAheadThreads {
    fn new(spill: &Arc<SortedRunFile>, threads: usize) -> ReadAheadThreads {
        let (send, receive) = unbounded::<ReadRequest>();
        for _ in 0..threads {
            let (spill, receive) = (Arc::clone(spill), receive.clone());
            std::thread::spawn(move || {
                let mut scratch = Vec::new();
                for (extent, reply) in receive {
                    // The receiver is gone if the merge has failed.
                    let _ = reply.send(spill.read_extent_and_free(extent, &mut scratch));
                }
            });
        }
        ReadAheadThreads(send)
    }

    /// Requests the next extent of a run; `None` after the last one.
    fn request_next_extent(&self, run: &mut SpilledRun) -> Option<Receiver<Result<Vec<u8>, Error>>> {
        let extent = run.extents.pop_front()?;
        let (send, receive) = bounded(1);
        // The threads run as long as this sender exists.
        let _ = self.0.send((extent, send));
        Some(receive)
    }
}

#[derive(Debug)]
struct MergeSource {
    items: Vec<u8>,
    offset: usize,
    first_ordinal: u64,
    run: SpilledRun,
    pending: Option<Receiver<Result<Vec<u8>, Error>>>,
}

/// The item that comes next in the sort order of all merged runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MergedItem<'a> {
    /// Ordinal of the item's template among all templates of the input.
    pub(crate) ordinal: u64,
    /// The bytes of the item, including the ordinal stored in it.
    pub(crate) item: &'a [u8],
}

/// The next item of a source, as it competes in the tournament: its key, and the index of the source or [`EXHAUSTED`].
type Contestant<K> = (K, u32);

/// Source index of a contestant whose source has no further items. It loses against all others.
const EXHAUSTED: u32 = u32::MAX;

/// Merges sorted runs: repeatedly returns the smallest of the next items of all runs (loser tree; Knuth, The Art of
/// Computer Programming, volume 3, section 5.4.1).
pub(crate) struct LoserTree<I: SortItem> {
    sources: Vec<MergeSource>,
    /// The winner (the smallest item) at index 0, then the losers of the inner nodes.
    tree: Vec<Contestant<I::Key>>,
    read_ahead: Option<ReadAheadThreads>,
    /// The source of the last item, which must be advanced before the next item is returned.
    last_source: Option<usize>,
    item: PhantomData<I>,
}

impl<I: SortItem> LoserTree<I> {
    /// Starts the merge of `runs`, which are in the file `spill`, and of `pieces`, which are in memory. Items with
    /// equal keys come out in this order. Up to `threads` threads read the file ahead.
    pub(crate) fn start_merge(
        runs: Vec<SpilledRun>,
        pieces: Vec<InMemoryRun>,
        spill: &Arc<SortedRunFile>,
        threads: usize,
    ) -> Result<LoserTree<I>, Error> {
        let read_ahead = (!runs.is_empty()).then(|| ReadAheadThreads::new(spill, threads.clamp(1, runs.len())));
        let from_file = |mut run| {
            let next = read_ahead.as_ref().and_then(|a| a.request_next_extent(&mut run));
            MergeSource { items: Vec::new(), offset: 0, first_ordinal: 0, run, pending: next }
        };
        let mut sources: Vec<MergeSource> = runs.into_iter().map(from_file).collect();
        sources.extend(pieces.into_iter().map(|InMemoryRun { items, first_ordinal }| MergeSource {
            items,
            offset: 0,
            first_ordinal,
            run: SpilledRun::default(),
            pending: None,
        }));
        let n = sources.len();
        let mut merge = LoserTree {
            sources,
            tree: vec![(I::MAX_KEY, EXHAUSTED); n.max(1)],
            read_ahead,
            last_source: None,
            item: PhantomData,
        };
        // The leaves are 0..n; the nodes above are decided from below.
        let mut winners = vec![(I::MAX_KEY, EXHAUSTED); 2 * n.max(1)];
        for s in 0..n {
            winners[n + s] = merge.next_contestant(s)?;
        }
        for node in (1..n).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            (winners[node], merge.tree[node]) = if b < a { (b, a) } else { (a, b) };
        }
        merge.tree[0] = winners[1];
        Ok(merge)
    }

    /// Reads the key of the next item of source `s`; [`EXHAUSTED`] after the last item.
    fn next_contestant(&mut self, s: usize) -> Result<Contestant<I::Key>, Error> {
        let source = &mut self.sources[s];
        while source.offset == source.items.len() {
            let Some(next) = source.pending.take() else {
                source.items = Vec::new();
                source.offset = 0;
                return Ok((I::MAX_KEY, EXHAUSTED));
            };
            // The reply is missing only if the reading thread has panicked.
            source.items = next.recv().unwrap_or(Err(Error::ReadAheadStopped))?;
            source.offset = 0;
            source.pending = self.read_ahead.as_ref().and_then(|a| a.request_next_extent(&mut source.run));
        }
        Ok((I::key(&source.items[source.offset..]), s as u32))
    }

    /// The next item in sort order; `None` after the last.
    pub(crate) fn next_merged_item(&mut self) -> Result<Option<MergedItem<'_>>, Error> {
        if let Some(s) = self.last_source.take() {
            let source = &mut self.sources[s];
            source.offset += I::encoded_len(&source.items[source.offset..]);
            let mut winner = self.next_contestant(s)?;
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
        if s == EXHAUSTED {
            return Ok(None);
        }
        self.last_source = Some(s as usize);
        let source = &self.sources[s as usize];
        let rest = &source.items[source.offset..];
        let item = &rest[..I::encoded_len(rest)];
        Ok(Some(MergedItem { ordinal: source.first_ordinal + template_ordinal_of_item(item), item }))
    }
}

/// Sorts encoded items by key. Items with equal keys keep their order.
pub(crate) fn sort_items_by_key<I: SortItem>(items: &[u8]) -> Vec<u8> {
    let mut order = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        order.push((I::key(rest), items.len() - rest.len()));
        rest = &rest[I::encoded_len(rest)..];
    }
    order.sort_unstable();
    let mut sorted = Vec::with_capacity(items.len());
    for (_, at) in order {
        sorted.extend_from_slice(&items[at..at + I::encoded_len(&items[at..])]);
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An item of 8 bytes for the ordinal and one byte for the key.
    struct Byte;

    impl SortItem for Byte {
        type Key = u8;
        const MAX_KEY: u8 = u8::MAX;

        fn encoded_len(_: &[u8]) -> usize {
            9
        }

        fn key(item: &[u8]) -> u8 {
            item[8]
        }
    }

    fn piece(keys: &[u8], first_ordinal: u64) -> InMemoryRun {
        let items = keys.iter().enumerate().flat_map(|(i, &k)| [&(i as u64).to_le_bytes()[..], &[k]].concat());
        InMemoryRun { items: items.collect(), first_ordinal }
    }

    fn merged(pieces: Vec<InMemoryRun>) -> Vec<(u8, u64)> {
        let spill = Arc::new(SortedRunFile::prepare_in_folder(std::path::Path::new("/nowhere")));
        let mut merge = LoserTree::<Byte>::start_merge(Vec::new(), pieces, &spill, 1).expect("no file");
        let mut all = Vec::new();
        while let Some(m) = merge.next_merged_item().expect("no file") {
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
            let mut expected: Vec<(u8, u64)> =
                (0..n).flat_map(|s| (10 * s..).zip(keys(s)).map(|(o, k)| (k, o)).collect::<Vec<_>>()).collect();
            expected.sort_unstable();
            assert_eq!(found, expected);
        }
    }
}
