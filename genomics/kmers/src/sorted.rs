//! Counted k-mers in the order of their words, within the memory.
//!
//! Bins are no ranges of k-mers. So what is kept of a bin goes to parts, by the first bases of the canonical k-mer, and
//! each part is sorted for itself. A k-mer of a part takes the bytes of the bases that the part does not tell, the first
//! base in the highest bits, and the counter of each sample as a number of 7 bits a byte, the lowest first, the highest
//! bit set in all bytes but the last.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use genuma_work::parallel;

use crate::bins::Bins;
use crate::buffers::Buffers;
use crate::plan::Plan;
use crate::superkmer::canonical;
use crate::tally::{Harvest, Rows, Spectra, Tally, WAITING, Wanted};
use crate::{CountStats, Error, MAX_SAMPLES, NodeShare};

/// Most bytes of a k-mer with counters of `samples` samples.
const fn most_bytes(samples: usize) -> usize {
    8 + 5 * samples
}

const _: () = assert!(Plan::KEPT >= most_bytes(MAX_SAMPLES));

/// K-mers that a bucket should have: so few are sorted by insertion.
const KMERS_PER_BUCKET: u64 = 8;
/// More buckets than 2 to this would not stay in a core's nearest cache.
const MOST_BUCKET_BITS: u32 = 12;

/// Where k-mers go, and how they look there.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Bits of a k-mer behind those that name its part.
    low: u32,
    /// Bytes that hold them.
    bytes: usize,
}

impl Layout {
    /// For k-mers in `parts` parts, a power of two.
    pub fn new(k: u32, parts: usize) -> Self {
        let low = 2 * k - parts.ilog2();
        Self { low, bytes: low.div_ceil(8) as usize }
    }

    #[inline]
    fn part(&self, kmer: u64) -> usize {
        kmer.checked_shr(self.low).unwrap_or(0) as usize
    }

    /// Writes a k-mer at the start of `out`, at least [`most_bytes`], and returns how many bytes it takes.
    #[inline]
    fn write(&self, kmer: u64, counts: &[u32], out: &mut [u8]) -> usize {
        out[..8].copy_from_slice(&(kmer << (64 - 8 * self.bytes)).to_be_bytes());
        let mut at = self.bytes;
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

    /// Calls `each` with every k-mer of `records`, which belong to `part`.
    #[inline]
    fn read<const S: usize>(&self, part: usize, records: &[u8], mut each: impl FnMut(u64, [u32; S])) {
        let high = (part as u64).checked_shl(self.low).unwrap_or(0);
        let mut rest = records;
        while let Some((word, mut behind)) = rest.split_at_checked(self.bytes) {
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
            each(high | low & (u64::MAX >> (64 - self.low)), counts);
            rest = behind;
        }
    }
}

/// Ranges of a part's k-mers, by the bases behind those that name the part. Most hold a few k-mers, which are quickly sorted.
#[derive(Debug, Clone, Copy)]
struct Buckets {
    /// Bits of a k-mer behind those that name its bucket.
    low: u32,
    /// Bits that name the bucket.
    bits: u32,
}

impl Buckets {
    /// For `kmers` k-mers of a part.
    fn of(layout: &Layout, kmers: u64) -> Self {
        let bits = (kmers / KMERS_PER_BUCKET + 1).ilog2().min(MOST_BUCKET_BITS).min(layout.low);
        Self { low: layout.low - bits, bits }
    }

    fn len(self) -> usize {
        1 << self.bits
    }

    #[inline]
    fn of_kmer(self, kmer: u64) -> usize {
        kmer.checked_shr(self.low).unwrap_or(0) as usize & (self.len() - 1)
    }
}

/// What a thread sorts with; keeps its memory.
#[derive(Debug, Default)]
struct Sorting<const S: usize> {
    /// As they were found.
    found: Vec<(u64, [u32; S])>,
    /// How many of them each bucket has.
    filled: Vec<usize>,
    sorted: Vec<(u64, [u32; S])>,
}

impl<const S: usize> Sorting<S> {
    /// Bytes for each k-mer.
    const EACH: usize = 2 * size_of::<(u64, [u32; S])>() + size_of::<usize>();

    /// Begins with none, of `here` in all.
    fn start(&mut self, buckets: Buckets, here: u64) {
        for kmers in [&mut self.found, &mut self.sorted] {
            kmers.clear();
            // Not twice as many, as a vector would have it that grows.
            kmers.reserve_exact(here as usize);
        }
        self.filled.clear();
        self.filled.resize(buckets.len(), 0);
    }

    #[inline]
    fn add(&mut self, buckets: Buckets, kmer: u64, counts: [u32; S]) {
        self.filled[buckets.of_kmer(kmer)] += 1;
        self.found.push((kmer, counts));
    }

    /// Brings what was found into its buckets, and sorts each.
    fn finish(&mut self, buckets: Buckets) {
        let Self { found, filled, sorted } = self;
        sorted.resize(found.len(), (0, [0; S]));
        // Where each bucket's next one goes.
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

/// Takes the k-mers that are worth keeping out of a table of counters.
pub struct Keep<'a> {
    k: u32,
    layout: Layout,
    least: u32,
    buffers: Buffers<'a>,
    kept: u64,
}

impl<'a> Keep<'a> {
    /// Of `k`-mers seen at least `least` times, all samples summed.
    pub fn new(k: u32, least: u32, parts: &'a Bins) -> Self {
        let layout = Layout::new(k, parts.len());
        Self { k, layout, least, buffers: Buffers::new(parts, Plan::KEPT), kept: 0 }
    }

    /// Empties the buffers and says how many k-mers were kept.
    pub fn finish(self) -> Result<u64, Error> {
        self.buffers.finish()?;
        Ok(self.kept)
    }
}

impl<const S: usize> Harvest<S> for Keep<'_> {
    fn take(&mut self, tally: &mut Tally<S>, spectra: &mut Spectra<S>) -> Result<(), Error> {
        let Self { k, layout, least, buffers, kept } = self;
        tally.take_parts(*least, spectra, |kmers| {
            let mut places = [(0, 0); WAITING];
            for (place, (key, _)) in places.iter_mut().zip(kmers) {
                let kmer = canonical(*key, *k);
                let part = layout.part(kmer);
                buffers.fetch(part);
                *place = (part, kmer);
            }
            for (&(part, kmer), (_, counts)) in places.iter().zip(kmers) {
                let bytes = layout.write(kmer, counts, buffers.room(part, most_bytes(S))?);
                buffers.wrote(part, bytes, 1);
            }
            *kept += kmers.len() as u64;
            Ok(())
        })
    }

    fn wanted(&self) -> Wanted {
        Wanted::Kmers { least: self.least }
    }

    fn rows(&mut self, rows: Rows<'_, S>, _: u64) -> Result<(), Error> {
        let Self { k, layout, buffers, kept, .. } = self;
        for (&key, counts) in rows.keys.iter().zip(rows.counts) {
            let kmer = canonical(key, *k);
            let part = layout.part(kmer);
            let bytes = layout.write(kmer, counts, buffers.room(part, most_bytes(S))?);
            buffers.wrote(part, bytes, 1);
        }
        *kept += rows.keys.len() as u64;
        Ok(())
    }
}

/// K-mers with their counters, waiting to be handed out in order.
#[derive(Debug)]
pub struct Sorted<const S: usize> {
    pub(crate) parts: Bins,
    pub(crate) layout: Layout,
    pub(crate) threads: usize,
    /// Bytes that a thread may sort in.
    pub(crate) room: usize,
    pub(crate) kept: u64,
    /// `spectra[sample][m]`: distinct canonical k-mers that `sample` has `m` times, kept or not; the last slot also holds
    /// those it has more often; slot 0 is 0.
    pub spectra: [Vec<u64>; S],
    /// Of the spilled bytes those that the parts' own pool does not count.
    pub(crate) stats: CountStats<S>,
    /// Where the memory was when all reads were in bins; nothing where there is but one node, or all bins were in a file.
    pub shares: Vec<NodeShare>,
}

/// Whose turn it is to hand out.
struct Turn<W, E> {
    part: usize,
    each: W,
    /// The first failure, or that a thread panicked: nobody goes on.
    over: bool,
    failure: Option<E>,
}

impl<const S: usize> Sorted<S> {
    /// K-mers that were kept.
    pub fn len(&self) -> u64 {
        self.kept
    }

    /// Whether none was kept.
    pub fn is_empty(&self) -> bool {
        self.kept == 0
    }

    /// Sizes so far.
    pub fn stats(&self) -> CountStats<S> {
        CountStats { spilled_bytes: self.stats.spilled_bytes + self.parts.spilled(), ..self.stats }
    }

    /// Most bytes that are held while the k-mers are handed out.
    pub fn held(&self) -> u64 {
        self.parts.held() + self.room_bytes()
    }

    fn room_bytes(&self) -> u64 {
        self.threads as u64 * (self.room + self.parts.extent()) as u64
    }

    /// Moves k-mers to the spill file until [`Sorted::held`] is at most `bytes`, as far as that is possible.
    ///
    /// # Errors
    /// The spill file cannot be written.
    pub fn shrink(&self, bytes: u64) -> Result<(), Error> {
        self.parts.shrink(bytes.saturating_sub(self.room_bytes()))
    }

    /// Calls `each` with every k-mer kept and its counters. The canonical k-mers come as words of two bits a base, the
    /// first base in the highest bits, and rise.
    ///
    /// # Errors
    /// The spill file cannot be read, or is damaged; the first error of `each`, which is not called again.
    ///
    /// # Panics
    /// When `each` does.
    pub fn for_each<W, E>(&self, each: W) -> Result<(), E>
    where
        W: FnMut(u64, &[u32; S]) -> Result<(), E> + Send,
        E: From<Error> + Send,
    {
        let turn = Mutex::new(Turn { part: 0, each, over: false, failure: None });
        let (next, changed) = (AtomicUsize::new(0), Condvar::new());
        parallel::workers(self.threads.min(self.parts.len()), |_| self.hand_out(&next, &turn, &changed));
        turn.into_inner().unwrap_or_else(PoisonError::into_inner).failure.map_or(Ok(()), Err)
    }

    /// What each thread does: takes the next part, sorts it, waits for its turn.
    fn hand_out<W, E>(&self, next: &AtomicUsize, turn: &Mutex<Turn<W, E>>, changed: &Condvar)
    where
        W: FnMut(u64, &[u32; S]) -> Result<(), E>,
        E: From<Error>,
    {
        let _guard = OverOnPanic { turn, changed };
        let mut sorting = Sorting::default();
        loop {
            let part = next.fetch_add(1, Relaxed);
            if part >= self.parts.len() {
                return;
            }
            let here = self.parts.kmers(part);
            let fits = here <= self.most();
            let sorted = if fits { self.sort(part, 0..=u64::MAX, here, &mut sorting) } else { Ok(()) };
            let not_mine = |turn: &mut Turn<W, E>| turn.part != part && !turn.over;
            let mut turn = changed.wait_while(lock(turn), not_mine).unwrap_or_else(PoisonError::into_inner);
            if turn.over {
                return;
            }
            let done = sorted.map_err(E::from).and_then(|()| {
                if fits {
                    return sorting.sorted.iter().try_for_each(|(kmer, counts)| (turn.each)(*kmer, counts));
                }
                let range = 0..=u64::MAX;
                self.by_ranges(part, range, here, &mut sorting, &mut turn.each)
            });
            self.parts.free(part);
            turn.part += 1;
            if let Err(failure) = done {
                turn.over = true;
                turn.failure = Some(failure);
            }
            drop(turn);
            changed.notify_all();
        }
    }

    /// K-mers that a thread can sort at once.
    fn most(&self) -> u64 {
        (self.room / Sorting::<S>::EACH) as u64
    }

    /// Fills `sorting` with the k-mers of a part that are in `range`, `here` in all, sorted.
    fn sort(
        &self,
        part: usize,
        range: std::ops::RangeInclusive<u64>,
        here: u64,
        sorting: &mut Sorting<S>,
    ) -> Result<(), Error> {
        let buckets = Buckets::of(&self.layout, here);
        sorting.start(buckets, here);
        self.parts.read(part, |records| {
            self.layout.read(part, records, |kmer, counts| {
                if range.contains(&kmer) {
                    sorting.add(buckets, kmer, counts);
                }
            });
        })?;
        sorting.finish(buckets);
        Ok(())
    }

    /// Hands out a range of a part, `here` k-mers, that may be more than can be sorted at once.
    fn by_ranges<E: From<Error>>(
        &self,
        part: usize,
        range: std::ops::RangeInclusive<u64>,
        here: u64,
        sorting: &mut Sorting<S>,
        each: &mut impl FnMut(u64, &[u32; S]) -> Result<(), E>,
    ) -> Result<(), E> {
        if here <= self.most().max(1) {
            self.sort(part, range, here, sorting)?;
            return sorting.sorted.iter().try_for_each(|(kmer, counts)| each(*kmer, counts));
        }
        let (first, last) = range.into_inner();
        let middle = first + (last - first) / 2;
        let mut lower = 0;
        self.parts.read(part, |records| {
            self.layout.read(part, records, |kmer, _: [u32; S]| {
                lower += u64::from((first..=middle).contains(&kmer));
            });
        })?;
        self.by_ranges(part, first..=middle, lower, sorting, each)?;
        self.by_ranges(part, middle + 1..=last, here - lower, sorting, each)
    }
}

/// Tells the other threads to stop when its own panics.
struct OverOnPanic<'a, W, E> {
    turn: &'a Mutex<Turn<W, E>>,
    changed: &'a Condvar,
}

impl<W, E> Drop for OverOnPanic<'_, W, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.turn).over = true;
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
    use crate::encode::mask;
    use crate::extents::Pool;
    use crate::nodes::Nodes;
    use crate::tests::Random;

    #[test]
    fn kmers_come_back_from_their_parts() {
        let random = &mut Random(9);
        for k in [12, 24, 31, 32] {
            for parts in [4, 64, 4096] {
                let layout = Layout::new(k, parts);
                for kmer in [0, 1, mask(k), mask(k) - 1, random.below(u64::MAX) & mask(k)] {
                    let counts = [0, 1, 127, 128, 1 << 14, u32::MAX];
                    let mut bytes = [0xff; 128];
                    let len = layout.write(kmer, &counts, &mut bytes);
                    assert!(len <= most_bytes(counts.len()));
                    let mut records = bytes[..len].to_vec();
                    records.extend_from_within(..);
                    let mut found = Vec::new();
                    layout.read(layout.part(kmer), &records, |kmer, counts: [u32; 6]| {
                        found.push((kmer, counts))
                    });
                    assert_eq!(found, [(kmer, counts); 2], "k {k}, {parts} parts");
                }
            }
        }
    }

    /// `n` k-mers of 12 bases, most of them in the first of four parts; a thread may sort `room` bytes at once.
    fn sorted(n: u64, room: usize, dir: &std::path::Path) -> (Sorted<1>, Vec<(u64, [u32; 1])>) {
        let parts = Bins::new(4, Pool::new(4096, 4, 3, Nodes::here(3), dir, u64::MAX).expect("memory"));
        let layout = Layout::new(12, 4);
        let random = &mut Random(n);
        let mut kmers = std::collections::BTreeMap::new();
        for _ in 0..n {
            let kmer = random.below(mask(12)) >> random.below(12);
            kmers.insert(kmer, [random.below(1 << 20) as u32]);
        }
        let mut buffers = Buffers::new(&parts, Plan::KEPT);
        for (&kmer, counts) in &kmers {
            let part = layout.part(kmer);
            let bytes = layout.write(kmer, counts, buffers.room(part, most_bytes(1)).expect("room"));
            buffers.wrote(part, bytes, 1);
        }
        buffers.finish().expect("room");
        let stats = CountStats {
            bases: [0],
            kmers: [0],
            distinct: 0,
            packed_bytes: 0,
            spilled_bytes: 0,
            spill_peak: 0,
            bins: 0,
            extra_passes: 0,
        };
        let kept = kmers.len() as u64;
        let spectra = [Vec::new()];
        let shares = Vec::new();
        (
            Sorted { parts, layout, threads: 3, room, kept, spectra, stats, shares },
            kmers.into_iter().collect(),
        )
    }

    #[test]
    fn parts_of_any_size_come_out_in_order() {
        let dir = tempfile::tempdir().expect("a folder");
        for (n, room) in [(0, 4096), (1, 4096), (20_000, 1 << 20), (20_000, 4096), (500, 0)] {
            let (sorted, expected) = sorted(n, room, dir.path());
            sorted.shrink(0).expect("room");
            let mut found = Vec::new();
            let done = sorted.for_each(|kmer, &counts| {
                found.push((kmer, counts));
                Ok::<_, Error>(())
            });
            done.expect("readable");
            assert!(found == expected, "{n} k-mers, {room} bytes");
            assert_eq!(sorted.len(), expected.len() as u64);
        }
    }

    #[test]
    fn buckets_are_in_order_whatever_is_in_them() {
        let random = &mut Random(4);
        let layout = Layout::new(31, 64);
        for n in [0, 1, 20, 1000, 60_000] {
            let buckets = Buckets::of(&layout, n);
            // Spread, and most of them close together.
            for spread in [56, 30, 3] {
                let mut expected: Vec<_> = (0..n)
                    .map(|_| 3 << 56 | random.below(1 << spread))
                    .map(|kmer| (kmer, [kmer as u32]))
                    .collect();
                let mut sorting = Sorting::default();
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
    fn the_first_failure_ends_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let (sorted, _) = sorted(5000, 1 << 20, dir.path());
        let mut seen = 0;
        let done = sorted.for_each(|_, _| {
            seen += 1;
            if seen < 3000 { Ok(()) } else { Err(Error::Params(format!("at {seen}"))) }
        });
        assert_eq!(done.expect_err("a failure").to_string(), "at 3000");
        assert_eq!(seen, 3000);
    }

    #[test]
    #[should_panic(expected = "at ")]
    fn a_panic_goes_on_in_the_caller() {
        let dir = tempfile::tempdir().expect("a folder");
        let (sorted, _) = sorted(5000, 1 << 20, dir.path());
        let _ = sorted.for_each(|kmer, _| -> Result<(), Error> { panic!("at {kmer}") });
    }
}
