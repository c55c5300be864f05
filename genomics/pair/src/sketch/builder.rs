//! A sketch under construction, which all reader threads fill together.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use genuma_kmers::run_with_widest_simd;
use genuma_reads::ReadPair;
use genuma_reads::packed_bases::PackedBases;

use super::count_table::{BufferedKmer, CountTable, EMPTY_KEY, KmerKeyAndCounts};
use super::mate_kmers::{append_sampled_kmer_keys, hash_read_starts};
use super::params::SketchParams;
use super::pattern::PatternScan;
use super::{KmerSketch, hash_key};

/// Number of shards of the table of k-mers; each shard has its own lock.
const NUM_SHARDS: usize = 64;

/// Number of k-mers that a thread collects for a shard before it locks the shard and adds them.
const BUFFERED_PER_SHARD: usize = 64;

/// A k-mer sketch under construction, which all reader threads fill together through [`SketchWriter`]s.
#[derive(Debug)]
pub struct SketchBuilder {
    params: SketchParams,
    level: AtomicU32,
    num_kmers: AtomicUsize,
    shards: Vec<Mutex<CountTable>>,
    level_lock: Mutex<()>,
}

/// Locks a mutex even if a thread panicked with it: the counts are still consistent, and the panic propagates from
/// its own thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl SketchBuilder {
    /// Creates a builder without k-mers.
    pub fn empty(params: SketchParams) -> SketchBuilder {
        SketchBuilder {
            params,
            level: AtomicU32::new(0),
            num_kmers: AtomicUsize::new(0),
            shards: (0..NUM_SHARDS).map(|_| Mutex::default()).collect(),
            level_lock: Mutex::default(),
        }
    }

    /// Creates a writer through which one thread adds read pairs.
    pub fn new_writer(&self) -> SketchWriter<'_> {
        SketchWriter {
            builder: self,
            level: 0,
            buffers: vec![[BufferedKmer::default(); BUFFERED_PER_SHARD]; NUM_SHARDS],
            buffer_lens: [0; NUM_SHARDS],
            keys: Vec::new(),
            scan: PatternScan::default(),
        }
    }

    /// Locks a shard and calls `add` with it and the current sampling level. Raises the level afterwards if the sketch
    /// is full.
    fn add_to_shard(&self, shard: usize, add: impl FnOnce(&mut CountTable, u32)) {
        let mut own = lock(&self.shards[shard]);
        // A thread that raises the level visits this shard afterwards.
        let level = self.level.load(Relaxed);
        let before = own.len;
        add(&mut own, level);
        // The shard must still be locked here: a thread that removes k-mers would otherwise subtract them before they
        // are added.
        let more = own.len - before;
        let all = self.num_kmers.fetch_add(more, Relaxed) + more;
        drop(own);
        if more > 0 && all > self.params.max_kmers_at_level(level) {
            self.raise_level_while_full();
        }
    }

    /// Raises the sampling level until the sketch fits its maximum size. Each step drops about half of the roots.
    fn raise_level_while_full(&self) {
        let _one = lock(&self.level_lock);
        loop {
            let level = self.level.load(Relaxed);
            if self.num_kmers.load(Relaxed) <= self.params.max_kmers_at_level(level) {
                return;
            }
            self.level.store(level + 1, Relaxed);
            self.retain_level(level + 1);
        }
    }

    /// Drops the k-mers whose own sampling level is below `level`.
    fn retain_level(&self, level: u32) {
        for shard in &self.shards {
            let mut own = lock(shard);
            let (before, num_slots) = (own.len, own.slots.len());
            own.resize_and_retain(num_slots, |key| self.params.sampling_level_of_key(key) >= level);
            self.num_kmers.fetch_sub(before - own.len, Relaxed);
        }
    }

    /// Adds the counts of a finished sketch with the same parameters, from another shard of the reads.
    pub(crate) fn merge_sketch(&self, other: &KmerSketch) {
        {
            let _one = lock(&self.level_lock);
            if self.level.load(Relaxed) < other.level {
                self.level.store(other.level, Relaxed);
                self.retain_level(other.level);
            }
        }
        let mut by_shard: Vec<Vec<KmerKeyAndCounts>> = vec![Vec::new(); NUM_SHARDS];
        for piece in other.counts.chunks(1 << 16) {
            piece.iter().for_each(|count| by_shard[shard_index(count.0)].push(*count));
            for (shard, counts) in by_shard.iter_mut().enumerate() {
                self.add_to_shard(shard, |own, level| {
                    counts.retain(|(key, _)| other.level >= level || self.params.sampling_level_of_key(*key) >= level);
                    own.add_counts(counts);
                });
                counts.clear();
            }
        }
    }

    /// Takes the finished sketch out of the builder, which has no k-mers afterwards but keeps its sampling level. All
    /// writers must have been dropped.
    pub fn take_sketch(&self) -> KmerSketch {
        self.raise_level_while_full();
        let level = self.level.load(Relaxed);
        let mut counts = Vec::with_capacity(self.num_kmers.swap(0, Relaxed));
        for shard in &self.shards {
            let own = std::mem::take(&mut *lock(shard));
            counts.extend(own.slots.into_iter().filter(|(key, _)| *key != EMPTY_KEY));
        }
        counts.sort_unstable_by_key(|count| count.0);
        KmerSketch { params: self.params, level, counts }
    }
}

fn shard_index(key: u64) -> usize {
    // The table position uses the highest bits of the hash, so the shard uses others.
    (hash_key(key >> 4) >> 20) as usize % NUM_SHARDS
}

/// Adds the read pairs of one thread to a sketch. K-mers are buffered; dropping the writer adds the rest.
#[derive(Debug)]
pub struct SketchWriter<'a> {
    builder: &'a SketchBuilder,
    /// Minimum sampling level of the buffered k-mers.
    level: u32,
    /// For each shard the k-mers that are not yet added to it.
    buffers: Vec<[BufferedKmer; BUFFERED_PER_SHARD]>,
    buffer_lens: [usize; NUM_SHARDS],
    keys: Vec<u64>,
    scan: PatternScan,
}

impl SketchWriter<'_> {
    /// Adds a trimmed read pair of a sample (0: normal, 1: tumour) to the sketch. The packed bases may be longer than
    /// the trimmed mates.
    pub fn add_pair(&mut self, pair: ReadPair<'_>, packed: [PackedBases<'_>; 2], sample: u8) {
        let level = self.builder.level.load(Relaxed);
        if level != self.level {
            self.set_sampling_level(level);
        }
        let params = &self.builder.params;
        self.keys.clear();
        self.scan.scan_pair(pair.mates.map(|mate| mate.seq.len()), packed, params.num_root_bases(), level);
        let (fitting, found) = (self.scan.matches_by_mate(), &mut self.keys);
        run_with_widest_simd(
            #[inline(always)]
            || {
                for ((mate, packed), fit) in pair.mates.into_iter().zip(packed).zip(fitting) {
                    append_sampled_kmer_keys(mate, packed, params, level, fit, found);
                }
            },
        );
        if self.keys.is_empty() {
            return;
        }
        let who = u32::from(sample) << 5 | (hash_read_starts(&pair, packed) & 31) as u32;
        let mut found = std::mem::take(&mut self.keys);
        // A read pair is one molecule and counts once: not twice where its mates overlap, and not at all if it has a
        // root with different neighbouring bases. Usually all roots differ, which a 64-bit set shows quickly.
        let mut roots = 0u64;
        found.iter().for_each(|key| roots |= 1 << (hash_key(key >> 4) & 63));
        if roots.count_ones() as usize == found.len() {
            found.iter().for_each(|&key| self.push_key(key, who));
        } else {
            found.sort_unstable();
            for own in found.chunk_by(|a, b| a >> 4 == b >> 4) {
                if own.iter().all(|key| *key == own[0]) {
                    self.push_key(own[0], who);
                }
            }
        }
        self.keys = found;
    }

    /// Sets the sampling level of this writer and drops buffered k-mers whose own level is lower. Called after the
    /// level of the sketch has risen.
    #[cold]
    fn set_sampling_level(&mut self, level: u32) {
        let params = self.builder.params;
        for (held, filled) in self.buffers.iter_mut().zip(&mut self.buffer_lens) {
            *filled = retain_in_front(&mut held[..*filled], |key| params.sampling_level_of_key(key) >= level);
        }
        self.level = level;
    }

    #[inline(always)]
    fn push_key(&mut self, key: u64, source: u32) {
        let shard = shard_index(key);
        let at = self.buffer_lens[shard];
        self.buffers[shard][at] = (key, source);
        self.buffer_lens[shard] = at + 1;
        if at + 1 == BUFFERED_PER_SHARD {
            self.flush_shard(shard);
        }
    }

    /// Adds the buffered k-mers of a shard to the sketch.
    #[inline(never)]
    fn flush_shard(&mut self, shard: usize) {
        let (fit, params) = (self.level, self.builder.params);
        let held = &mut self.buffers[shard][..std::mem::take(&mut self.buffer_lens[shard])];
        self.builder.add_to_shard(shard, |own, level| {
            let kept = if level > fit {
                retain_in_front(held, |key| params.sampling_level_of_key(key) >= level)
            } else {
                held.len()
            };
            own.add_buffered_kmers(&held[..kept]);
        });
    }
}

/// Moves the k-mers for which `kept` returns true to the front of the slice, and returns their number.
fn retain_in_front(held: &mut [BufferedKmer], kept: impl Fn(u64) -> bool) -> usize {
    let mut n = 0;
    for i in 0..held.len() {
        if kept(held[i].0) {
            held[n] = held[i];
            n += 1;
        }
    }
    n
}

impl Drop for SketchWriter<'_> {
    fn drop(&mut self) {
        (0..NUM_SHARDS).for_each(|shard| self.flush_shard(shard));
    }
}
