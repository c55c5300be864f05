//! Sorting of counted k-mers within the memory limit.
//!
//! Bins are not ranges of k-mers. So the k-mers of a bin are distributed to ranges by the first bases of the
//! canonical k-mer, and each range is sorted separately. A k-mer in a range is stored as the bytes of its remaining
//! bases, the first base in the highest bits, and one count per sample in LEB128: 7 bits per byte, lowest first, with
//! the highest bit set in all bytes but the last.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use genuma_work::parallel;

use crate::bin_buffers::BinBuffers;
use crate::bins::Bins;
use crate::counter_table::{
    CounterSink, CounterTable, DeviceRowRequest, DeviceTableRows, KMERS_PER_PREFETCH_BATCH, KmerSpectra,
};
use crate::plan::MemoryPlan;
use crate::superkmer::canonical_kmer_of_key;
use crate::{CountStats, Error, MAX_SAMPLES, NodeThreadsAndMemory};

/// Maximum size in bytes of a k-mer with counters of `samples` samples.
const fn max_record_bytes(samples: usize) -> usize {
    8 + 5 * samples
}

const _: () = assert!(MemoryPlan::SORT_RANGE_BUFFER_BYTES >= max_record_bytes(MAX_SAMPLES));

/// Minimum mean number of k-mers per bucket: so few that insertion sort is fast.
const KMERS_PER_BUCKET: u64 = 8;
/// Maximum binary logarithm of the number of buckets, so that they stay in the L1 cache.
const MAX_BUCKET_BITS: u32 = 12;

/// Assignment of k-mers to sort ranges, and encoding of the k-mers of a range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SortRangeLayout {
    /// Number of bits of a k-mer after those that determine its range.
    suffix_bits: u32,
    /// Number of bytes in which the bits of a k-mer after those of its range are stored.
    suffix_bytes: usize,
}

impl SortRangeLayout {
    /// Layout for `parts` ranges, a power of two.
    pub(crate) fn with_num_ranges(k: u32, parts: usize) -> Self {
        let low = 2 * k - parts.ilog2();
        Self { suffix_bits: low, suffix_bytes: low.div_ceil(8) as usize }
    }

    #[inline]
    fn range_of(&self, kmer: u64) -> usize {
        kmer.checked_shr(self.suffix_bits).unwrap_or(0) as usize
    }

    /// Writes the record of a k-mer at the start of `out`, which has at least [`max_record_bytes`] bytes. Returns the
    /// size of the record in bytes.
    #[inline]
    fn write_record(&self, kmer: u64, counts: &[u32], out: &mut [u8]) -> usize {
        out[..8].copy_from_slice(&(kmer << (64 - 8 * self.suffix_bytes)).to_be_bytes());
        let mut at = self.suffix_bytes;
        for &count in counts {
            let mut rest = count;
            while rest > 127 {
                out[at] = rest as u8 | 128;
                at += 1;
                rest >>= 7;
            }
            out[at] = rest as u8;
            at += 1;
        }
        at
    }

    /// Calls `each` with each k-mer of `records` of range `range`.
    #[inline]
    fn for_each_record<const S: usize>(&self, range: usize, records: &[u8], mut each: impl FnMut(u64, [u32; S])) {
        let high = (range as u64).checked_shl(self.suffix_bits).unwrap_or(0);
        let mut rest = records;
        while let Some((word, mut behind)) = rest.split_at_checked(self.suffix_bytes) {
            let low = word.iter().fold(0, |w, &byte| (w << 8) | u64::from(byte));
            let mut counts = [0; S];
            for count in &mut counts {
                let mut shift = 0;
                while let Some((&byte, next)) = behind.split_first() {
                    *count |= u32::from(byte & 127) << shift;
                    shift += 7;
                    behind = next;
                    if byte < 128 {
                        break;
                    }
                }
            }
            each(high | low & (u64::MAX >> (64 - self.suffix_bits)), counts);
            rest = behind;
        }
    }
}

/// Division of the k-mers of one sort range into buckets, which are sorted separately. The bits of a k-mer after those
/// that determine its range are the index of its bucket. Most buckets contain few k-mers.
#[derive(Debug, Clone, Copy)]
struct BucketLayout {
    /// Number of bits of a k-mer after those that determine its bucket.
    suffix_bits: u32,
    /// Number of bits that determine the bucket.
    index_bits: u32,
}

impl BucketLayout {
    /// Chooses the number of buckets for a range with `kmers` k-mers.
    fn for_kmers(layout: &SortRangeLayout, kmers: u64) -> Self {
        let bits = (kmers / KMERS_PER_BUCKET + 1).ilog2().min(MAX_BUCKET_BITS).min(layout.suffix_bits);
        Self { suffix_bits: layout.suffix_bits - bits, index_bits: bits }
    }

    fn len(self) -> usize {
        1 << self.index_bits
    }

    #[inline]
    fn of_kmer(self, kmer: u64) -> usize {
        kmer.checked_shr(self.suffix_bits).unwrap_or(0) as usize & (self.len() - 1)
    }
}

/// Reusable buffers in which a thread sorts.
#[derive(Debug, Default)]
struct SortBuffers<const S: usize> {
    /// The k-mers in the order of their records.
    unsorted: Vec<(u64, [u32; S])>,
    /// Number of k-mers per bucket at first, then the end of each bucket.
    bucket_ends: Vec<usize>,
    sorted: Vec<(u64, [u32; S])>,
}

impl<const S: usize> SortBuffers<S> {
    const BYTES_PER_KMER: usize = 2 * size_of::<(u64, [u32; S])>() + size_of::<usize>();

    /// Empties the buffers and reserves memory for `num_kmers` k-mers.
    fn start(&mut self, buckets: BucketLayout, num_kmers: u64) {
        for kmers in [&mut self.unsorted, &mut self.sorted] {
            kmers.clear();
            // Exactly as many, as a growing vector would reserve up to twice as many.
            kmers.reserve_exact(num_kmers as usize);
        }
        self.bucket_ends.clear();
        self.bucket_ends.resize(buckets.len(), 0);
    }

    #[inline]
    fn add(&mut self, buckets: BucketLayout, kmer: u64, counts: [u32; S]) {
        self.bucket_ends[buckets.of_kmer(kmer)] += 1;
        self.unsorted.push((kmer, counts));
    }

    /// Distributes the k-mers to their buckets and sorts each bucket.
    fn finish(&mut self, buckets: BucketLayout) {
        let Self { unsorted: found, bucket_ends: filled, sorted } = self;
        sorted.resize(found.len(), (0, [0; S]));
        // Start of the free part of each bucket.
        let mut end = 0;
        for n in &mut *filled {
            (*n, end) = (end, end + *n);
        }
        for kmer in &*found {
            let next = &mut filled[buckets.of_kmer(kmer.0)];
            sorted[*next] = *kmer;
            *next += 1;
        }
        let mut start = 0;
        for &end in &*filled {
            sorted[start..end].sort_unstable_by_key(|&(kmer, _)| kmer);
            start = end;
        }
    }
}

/// A [`CounterSink`] that writes the k-mers with a minimum total count to the sort ranges.
pub(crate) struct FrequentKmerWriter<'a> {
    k: u32,
    layout: SortRangeLayout,
    min_count: u32,
    buffers: BinBuffers<'a>,
    kept: u64,
}

impl<'a> FrequentKmerWriter<'a> {
    /// Creates a writer of `k`-mers with a total count of at least `min_count` to the sort ranges `parts`.
    pub(crate) fn with_min_count(k: u32, min_count: u32, parts: &'a Bins) -> Self {
        let layout = SortRangeLayout::with_num_ranges(k, parts.len());
        Self {
            k,
            layout,
            min_count,
            buffers: BinBuffers::allocate_for_bins(parts, MemoryPlan::SORT_RANGE_BUFFER_BYTES),
            kept: 0,
        }
    }

    /// Flushes the buffers and returns the number of k-mers kept.
    pub(crate) fn flush_and_return_num_kept(self) -> Result<u64, Error> {
        self.buffers.flush_all_to_bins()?;
        Ok(self.kept)
    }
}

impl<const S: usize> CounterSink<S> for FrequentKmerWriter<'_> {
    fn take_table(&mut self, table: &mut CounterTable<S>, spectra: &mut KmerSpectra<S>) -> Result<(), Error> {
        let Self { k, layout, min_count, buffers, kept } = self;
        table.drain_kmers_with_min_count(*min_count, spectra, |kmers| {
            let mut places = [(0, 0); KMERS_PER_PREFETCH_BATCH];
            for (place, (key, _)) in places.iter_mut().zip(kmers) {
                let kmer = canonical_kmer_of_key(*key, *k);
                let part = layout.range_of(kmer);
                buffers.prefetch_buffer_of_bin(part);
                *place = (part, kmer);
            }
            for (&(part, kmer), (_, counts)) in places.iter().zip(kmers) {
                let bytes =
                    layout.write_record(kmer, counts, buffers.reserve_space_for_record(part, max_record_bytes(S))?);
                buffers.commit_record(part, bytes, 1);
            }
            *kept += kmers.len() as u64;
            Ok(())
        })
    }

    fn requested_rows(&self) -> DeviceRowRequest {
        DeviceRowRequest::Kmers { min_count: self.min_count }
    }

    fn take_rows(&mut self, rows: DeviceTableRows<'_, S>, _: u64) -> Result<(), Error> {
        let Self { k, layout, buffers, kept, .. } = self;
        for (&key, counts) in rows.keys.iter().zip(rows.counts) {
            let kmer = canonical_kmer_of_key(key, *k);
            let part = layout.range_of(kmer);
            let bytes = layout.write_record(kmer, counts, buffers.reserve_space_for_record(part, max_record_bytes(S))?);
            buffers.commit_record(part, bytes, 1);
        }
        *kept += rows.keys.len() as u64;
        Ok(())
    }
}

/// Counted k-mers that can be iterated once in sorted order.
#[derive(Debug)]
pub struct SortableKmers<const S: usize> {
    pub(crate) ranges: Bins,
    pub(crate) layout: SortRangeLayout,
    pub(crate) threads: usize,
    /// Bytes of memory in which each thread sorts k-mers.
    pub(crate) sort_bytes: usize,
    pub(crate) num_kept: u64,
    /// k-mer spectrum of each sample, with all k-mers, kept or not: `spectra[sample][m]` is the number of distinct
    /// canonical k-mers that the sample has `m` times; the last entry includes all higher counts; entry 0 is 0.
    pub spectra: [Vec<u64>; S],
    /// Numbers of the count, without the bytes in the spill file of the sort ranges.
    pub(crate) stats: CountStats<S>,
    /// Memory by NUMA node when all reads were in bins; empty with a single node, or if all bins were in a file.
    pub memory_by_node: Vec<NodeThreadsAndMemory>,
}

/// State with which the threads output the sort ranges in order: the number of the next range and the callback, which
/// only the thread of that range may call.
struct OutputTurn<W, E> {
    next_range: usize,
    callback: W,
    /// Set after a failure or panic: all threads stop.
    is_over: bool,
    failure: Option<E>,
}

impl<const S: usize> SortableKmers<S> {
    /// Number of k-mers kept.
    pub fn len(&self) -> u64 {
        self.num_kept
    }

    /// Whether no k-mer was kept.
    pub fn is_empty(&self) -> bool {
        self.num_kept == 0
    }

    /// Numbers of bases, k-mers, bins and bytes of the count until now.
    pub fn count_stats(&self) -> CountStats<S> {
        CountStats { spilled_bytes: self.stats.spilled_bytes + self.ranges.written_spill_bytes(), ..self.stats }
    }

    fn sort_memory_bytes(&self) -> u64 {
        self.threads as u64 * (self.sort_bytes + self.ranges.bytes_per_extent()) as u64
    }

    /// Moves k-mers to the spill file until those in memory and the memory for sorting take at most `bytes`, or as
    /// little as possible.
    ///
    /// # Errors
    /// Returns an error if the spill file cannot be written.
    pub fn spill_to_shrink_memory_to(&self, bytes: u64) -> Result<(), Error> {
        self.ranges.spill_to_shrink_memory_to(bytes.saturating_sub(self.sort_memory_bytes()))
    }

    /// Calls `each` with all kept k-mers and their counters in ascending order, and frees each sort range afterwards:
    /// further calls find no k-mers. K-mers are canonical, with two bits per base and the first base in the highest
    /// bits.
    ///
    /// # Errors
    /// Returns an error if the spill file cannot be read or is damaged, or the first error of `each`, which is not
    /// called again.
    ///
    /// # Panics
    /// Panics if `each` panics.
    pub fn for_each_kmer<W, E>(&self, each: W) -> Result<(), E>
    where
        W: FnMut(u64, &[u32; S]) -> Result<(), E> + Send,
        E: From<Error> + Send,
    {
        let turn = Mutex::new(OutputTurn { next_range: 0, callback: each, is_over: false, failure: None });
        let (next, changed) = (AtomicUsize::new(0), Condvar::new());
        parallel::run_workers(self.threads.min(self.ranges.len()), |_| self.run_output_thread(&next, &turn, &changed));
        turn.into_inner().unwrap_or_else(PoisonError::into_inner).failure.map_or(Ok(()), Err)
    }

    /// Loop of one thread: takes the next range, sorts it, waits for its turn to output it, and frees it.
    fn run_output_thread<W, E>(&self, next: &AtomicUsize, turn: &Mutex<OutputTurn<W, E>>, changed: &Condvar)
    where
        W: FnMut(u64, &[u32; S]) -> Result<(), E>,
        E: From<Error>,
    {
        let _guard = EndOnPanic { turn, changed };
        let mut sorting = SortBuffers::default();
        loop {
            let part = next.fetch_add(1, Relaxed);
            if part >= self.ranges.len() {
                return;
            }
            let here = self.ranges.kmer_count_of_bin(part);
            let fits = here <= self.max_kmers_in_memory();
            let sorted = if fits { self.sort_range(part, 0..=u64::MAX, here, &mut sorting) } else { Ok(()) };
            let not_mine = |turn: &mut OutputTurn<W, E>| turn.next_range != part && !turn.is_over;
            let mut turn = changed.wait_while(lock(turn), not_mine).unwrap_or_else(PoisonError::into_inner);
            if turn.is_over {
                return;
            }
            let done = sorted.map_err(E::from).and_then(|()| {
                if fits {
                    return sorting.sorted.iter().try_for_each(|(kmer, counts)| (turn.callback)(*kmer, counts));
                }
                let range = 0..=u64::MAX;
                self.output_by_subranges(part, range, here, &mut sorting, &mut turn.callback)
            });
            self.ranges.free_bin(part);
            turn.next_range += 1;
            if let Err(failure) = done {
                turn.is_over = true;
                turn.failure = Some(failure);
            }
            drop(turn);
            changed.notify_all();
        }
    }

    /// Maximum number of k-mers that a thread can sort at once.
    fn max_kmers_in_memory(&self) -> u64 {
        (self.sort_bytes / SortBuffers::<S>::BYTES_PER_KMER) as u64
    }

    /// Fills `sorting` with the `num_kmers` k-mers of sort range `range_index` whose values are in `range`, sorted.
    fn sort_range(
        &self,
        range_index: usize,
        range: std::ops::RangeInclusive<u64>,
        num_kmers: u64,
        sorting: &mut SortBuffers<S>,
    ) -> Result<(), Error> {
        let buckets = BucketLayout::for_kmers(&self.layout, num_kmers);
        sorting.start(buckets, num_kmers);
        self.ranges.for_each_extent_of_bin(range_index, |records| {
            self.layout.for_each_record(range_index, records, |kmer, counts| {
                if range.contains(&kmer) {
                    sorting.add(buckets, kmer, counts);
                }
            });
        })?;
        sorting.finish(buckets);
        Ok(())
    }

    /// Outputs the `num_kmers` k-mers of a sort range whose values are in `range`. If they are more than can be sorted
    /// at once, the two halves of `range` are output one after the other.
    fn output_by_subranges<E: From<Error>>(
        &self,
        range_index: usize,
        range: std::ops::RangeInclusive<u64>,
        num_kmers: u64,
        sorting: &mut SortBuffers<S>,
        each: &mut impl FnMut(u64, &[u32; S]) -> Result<(), E>,
    ) -> Result<(), E> {
        if num_kmers <= self.max_kmers_in_memory().max(1) {
            self.sort_range(range_index, range, num_kmers, sorting)?;
            return sorting.sorted.iter().try_for_each(|(kmer, counts)| each(*kmer, counts));
        }
        let (first, last) = range.into_inner();
        let middle = first + (last - first) / 2;
        let mut lower = 0;
        self.ranges.for_each_extent_of_bin(range_index, |records| {
            self.layout.for_each_record(range_index, records, |kmer, _: [u32; S]| {
                lower += u64::from((first..=middle).contains(&kmer));
            });
        })?;
        self.output_by_subranges(range_index, first..=middle, lower, sorting, each)?;
        self.output_by_subranges(range_index, middle + 1..=last, num_kmers - lower, sorting, each)
    }
}

/// Guard that stops the other threads if this thread panics.
struct EndOnPanic<'a, W, E> {
    turn: &'a Mutex<OutputTurn<W, E>>,
    changed: &'a Condvar,
}

impl<W, E> Drop for EndOnPanic<'_, W, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.turn).is_over = true;
            self.changed.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::kmer_mask;
    use crate::extents::ExtentPool;
    use crate::node_assignment::NodeAssignment;
    use crate::tests::Random;

    #[test]
    fn kmers_survive_a_round_trip_through_ranges() {
        let random = &mut Random(9);
        for k in [12, 24, 31, 32] {
            for parts in [4, 64, 4096] {
                let layout = SortRangeLayout::with_num_ranges(k, parts);
                for kmer in [0, 1, kmer_mask(k), kmer_mask(k) - 1, random.below(u64::MAX) & kmer_mask(k)] {
                    let counts = [0, 1, 127, 128, 1 << 14, u32::MAX];
                    let mut bytes = [0xff; 128];
                    let len = layout.write_record(kmer, &counts, &mut bytes);
                    assert!(len <= max_record_bytes(counts.len()));
                    let mut records = bytes[..len].to_vec();
                    records.extend_from_within(..);
                    let mut found = Vec::new();
                    layout.for_each_record(layout.range_of(kmer), &records, |kmer, counts: [u32; 6]| {
                        found.push((kmer, counts))
                    });
                    assert_eq!(found, [(kmer, counts); 2], "k {k}, {parts} parts");
                }
            }
        }
    }

    /// Sorted k-mers of 12 bases, most of them in the first of four ranges; a thread may sort `room` bytes at once.
    fn sorted(n: u64, room: usize, dir: &std::path::Path) -> (SortableKmers<1>, Vec<(u64, [u32; 1])>) {
        let parts = Bins::create_empty(
            4,
            ExtentPool::with_unnamed_file(4096, 4, 3, NodeAssignment::for_this_machine(3), dir, u64::MAX)
                .expect("memory"),
        );
        let layout = SortRangeLayout::with_num_ranges(12, 4);
        let random = &mut Random(n);
        let mut kmers = std::collections::BTreeMap::new();
        for _ in 0..n {
            let kmer = random.below(kmer_mask(12)) >> random.below(12);
            kmers.insert(kmer, [random.below(1 << 20) as u32]);
        }
        let mut buffers = BinBuffers::allocate_for_bins(&parts, MemoryPlan::SORT_RANGE_BUFFER_BYTES);
        for (&kmer, counts) in &kmers {
            let part = layout.range_of(kmer);
            let bytes = layout.write_record(
                kmer,
                counts,
                buffers.reserve_space_for_record(part, max_record_bytes(1)).expect("room"),
            );
            buffers.commit_record(part, bytes, 1);
        }
        buffers.flush_all_to_bins().expect("room");
        let stats = CountStats {
            bases: [0],
            kmers: [0],
            distinct: 0,
            super_kmer_bytes: 0,
            spilled_bytes: 0,
            peak_spill_bytes: 0,
            bins: 0,
            extra_passes: 0,
        };
        let kept = kmers.len() as u64;
        let spectra = [Vec::new()];
        let shares = Vec::new();
        (
            SortableKmers {
                ranges: parts,
                layout,
                threads: 3,
                sort_bytes: room,
                num_kept: kept,
                spectra,
                stats,
                memory_by_node: shares,
            },
            kmers.into_iter().collect(),
        )
    }

    #[test]
    fn ranges_of_any_size_are_output_in_order() {
        let dir = tempfile::tempdir().expect("a folder");
        for (n, room) in [(0, 4096), (1, 4096), (20_000, 1 << 20), (20_000, 4096), (500, 0)] {
            let (sorted, expected) = sorted(n, room, dir.path());
            sorted.spill_to_shrink_memory_to(0).expect("room");
            let mut found = Vec::new();
            let done = sorted.for_each_kmer(|kmer, &counts| {
                found.push((kmer, counts));
                Ok::<_, Error>(())
            });
            done.expect("readable");
            assert!(found == expected, "{n} k-mers, {room} bytes");
            assert_eq!(sorted.len(), expected.len() as u64);
        }
    }

    #[test]
    fn buckets_are_sorted_for_any_distribution() {
        let random = &mut Random(4);
        let layout = SortRangeLayout::with_num_ranges(31, 64);
        for n in [0, 1, 20, 1000, 60_000] {
            let buckets = BucketLayout::for_kmers(&layout, n);
            // Spread over the range, and most of them close together.
            for spread in [56, 30, 3] {
                let mut expected: Vec<_> =
                    (0..n).map(|_| 3 << 56 | random.below(1 << spread)).map(|kmer| (kmer, [kmer as u32])).collect();
                let mut sorting = SortBuffers::default();
                for _ in 0..2 {
                    sorting.start(buckets, n);
                    expected.iter().for_each(|&(kmer, counts)| sorting.add(buckets, kmer, counts));
                    sorting.finish(buckets);
                }
                expected.sort_unstable();
                assert!(sorting.sorted == expected, "{n} k-mers");
            }
        }
    }

    #[test]
    fn the_first_failure_ends_the_output() {
        let dir = tempfile::tempdir().expect("a folder");
        let (sorted, _) = sorted(5000, 1 << 20, dir.path());
        let mut seen = 0;
        let done = sorted.for_each_kmer(|_, _| {
            seen += 1;
            if seen < 3000 { Ok(()) } else { Err(Error::InvalidParams(format!("at {seen}"))) }
        });
        assert_eq!(done.expect_err("a failure").to_string(), "at 3000");
        assert_eq!(seen, 3000);
    }

    #[test]
    #[should_panic(expected = "at ")]
    fn a_panic_propagates_to_the_caller() {
        let dir = tempfile::tempdir().expect("a folder");
        let (sorted, _) = sorted(5000, 1 << 20, dir.path());
        let _ = sorted.for_each_kmer(|kmer, _| -> Result<(), Error> { panic!("at {kmer}") });
    }
}
