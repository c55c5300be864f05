//! K-mer sketch of a pair of samples: counts of a sample of the k-mers of both, from bases of good quality only.
//!
//! The joint counters of all k-mers contain so many sequencing errors that a contamination of 1 % is not visible. The
//! sketch counts some of the k-mers a second time, more precisely: only k-mers whose bases all have good quality, once
//! per read pair even if its mates overlap, and once for all PCR duplicates of a molecule. A k-mer is counted if its
//! root (its middle k−2 bases) is sampled.
//!
//! Whether a root is sampled depends on its sequence alone. For each two bases at the same distance from the middle,
//! one bit says whether exactly one of them is strong (C or G); this bit is the same on both strands. The first bits
//! must equal a fixed pattern; 64 positions are tested at once. When the table of k-mers is full, the sampling level
//! rises: one more bit must match, and about half of the roots are dropped. So the final sketch depends neither on the
//! order of the reads nor on the number of threads or shards.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard};

use genuma_kmers::encode::{kmer_mask, reverse_complement_kmer};
use genuma_kmers::{RootCounters, prefetch, run_with_widest_simd};
use genuma_reads::packed_bases::{PackedBases, WORD_BASES};
use genuma_reads::{Mate, ReadPair, dna};
use serde::{Deserialize, Serialize};

/// Pattern that sampled roots must match, from the innermost two bases outwards: bit i is set if exactly one of the two
/// bases at distance i is strong (C or G).
const STRENGTH_PATTERN: u32 = 0b10_1100_1101;
/// Number of bits of the pattern. Higher sampling levels also require zero bits in a hash of the root.
const PATTERN_BITS: u32 = 10;
/// Number of shards of the table of k-mers; each shard has its own lock.
const NUM_SHARDS: usize = 64;
/// Number of k-mers that a thread collects for a shard before it locks the shard and adds them.
const BUFFERED_PER_SHARD: usize = 64;

/// A k-mer key with its counts in the normal and in the tumour. The key has the canonical root in the upper bits, then
/// the base before the root (2 bits) and the base after the root (2 bits).
type KmerCount = (u64, [PairCount; 2]);

/// A k-mer that is not yet in the table: its key, and the word `sample << 5 | b`, where b is the bit number for
/// [`PairCount::start_bits`].
type BufferedKmer = (u64, u32);

/// Hash table of k-mer counts with open addressing. Insertions come in groups, so that their slots can be prefetched
/// together.
#[derive(Debug, Default)]
struct CountTable {
    slots: Vec<KmerCount>,
    len: usize,
}

/// Key of an empty slot. No k-mer has this key, because a root of only T is not canonical.
const EMPTY_KEY: u64 = u64::MAX;
/// Minimum number of slots of a hash table.
const MIN_SLOTS: usize = 1 << 11;

impl CountTable {
    /// Index of the slot at which the search for a key starts.
    #[inline(always)]
    fn slot_index(&self, key: u64) -> usize {
        ((u128::from(hash_key(key)) * self.slots.len() as u128) >> 64) as usize
    }

    /// Returns the counts of a k-mer, after inserting it if it is new. The table must have a free slot.
    #[inline(always)]
    fn get_or_insert(&mut self, key: u64) -> &mut [PairCount; 2] {
        let mut at = self.slot_index(key);
        while self.slots[at].0 != key {
            if self.slots[at].0 == EMPTY_KEY {
                self.slots[at].0 = key;
                self.len += 1;
                break;
            }
            at += 1;
            at = if at == self.slots.len() { 0 } else { at };
        }
        &mut self.slots[at].1
    }

    /// Enlarges the table so that it is at most 80 % full after `additional` more k-mers.
    fn reserve(&mut self, additional: usize) {
        let needed = (self.len + additional) * 5 / 4 + 1;
        if needed > self.slots.len() {
            self.rebuild(needed.max(self.slots.len() * 3 / 2).max(MIN_SLOTS), |_| true);
        }
    }

    /// Moves the k-mers for which `kept` returns true to a new table of `num_slots` slots and drops the others.
    fn rebuild(&mut self, num_slots: usize, kept: impl Fn(u64) -> bool) {
        let before = std::mem::replace(&mut self.slots, vec![(EMPTY_KEY, <[PairCount; 2]>::default()); num_slots]);
        self.len = 0;
        for (key, seen) in before.into_iter().filter(|(key, _)| *key != EMPTY_KEY && kept(*key)) {
            *self.get_or_insert(key) = seen;
        }
    }

    /// Prefetches the slot of a k-mer into the cache; a slot may be in two cache lines.
    #[inline(always)]
    fn prefetch_slot(&self, key: u64) {
        let slot = &self.slots[self.slot_index(key)];
        prefetch(&slot.0);
        prefetch(&slot.1[1].start_bits);
    }

    /// Adds the k-mers that a thread has buffered to the counts.
    fn add_buffered(&mut self, held: &[BufferedKmer]) {
        self.reserve(held.len());
        held.iter().for_each(|(key, _)| self.prefetch_slot(*key));
        for &(key, who) in held {
            self.get_or_insert(key)[(who >> 5) as usize & 1].add(PairCount::single(u64::from(who)));
        }
    }

    fn add_counts(&mut self, counts: &[KmerCount]) {
        self.reserve(counts.len());
        counts.iter().for_each(|(key, _)| self.prefetch_slot(*key));
        for (key, seen) in counts {
            self.get_or_insert(*key).iter_mut().zip(seen).for_each(|(a, b)| a.add(*b));
        }
    }
}

/// Number of read pairs and of molecules of one sample that contain a k-mer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
struct PairCount {
    /// Number of read pairs that contain the k-mer.
    pairs: u32,
    /// A set of 32 bits, from which molecules are counted: each read pair sets the bit that a hash of its read starts
    /// selects. Duplicates of one molecule set the same bit.
    start_bits: u32,
}

impl PairCount {
    fn single(begin: u64) -> PairCount {
        PairCount { pairs: 1, start_bits: 1 << (begin & 31) }
    }

    #[inline(always)]
    fn add(&mut self, other: PairCount) {
        self.pairs = self.pairs.saturating_add(other.pairs);
        self.start_bits |= other.start_bits;
    }

    /// Expected number of molecules for the number of set bits: −32·ln(1 − bits/32), which corrects for different
    /// molecules that set the same bit. `None` if more than 16 bits are set.
    fn expected_molecules(self) -> Option<f64> {
        static BY_BITS: LazyLock<[f64; 17]> =
            LazyLock::new(|| std::array::from_fn(|bits| -NUM_START_BITS * (1.0 - bits as f64 / NUM_START_BITS).ln()));
        BY_BITS.get(self.start_bits.count_ones() as usize).copied()
    }

    /// Number of molecules, at most the number of read pairs. `None` if more than 16 bits are set, because the estimate
    /// is then imprecise.
    fn num_molecules(self) -> Option<u32> {
        self.expected_molecules().map(|molecules| (molecules.round() as u32).min(self.pairs))
    }
}

/// Number of bits of the set into which the read starts of molecules are hashed.
const NUM_START_BITS: f64 = 32.0;
/// Minimum number of read pairs, summed over k-mers with 4 to 16 read pairs each, to estimate the duplicate share.
/// Chosen; with a higher value more small samples have no estimate (0).
const MIN_DUPLICATE_PAIRS: f64 = 1000.0;

/// Largest number of molecules that is counted by hashing read starts to 32 bits. For deeper k-mers the number is read
/// pairs × (1 − duplicate share).
pub(crate) const MAX_MOLECULES_COUNTED_BY_STARTS: usize = 16;

/// Probabilities `[true number of molecules][counted number]` without PCR duplicates. The counted number may be
/// smaller, because two molecules whose read starts set the same bit are counted as one.
pub(crate) fn molecule_count_probabilities()
-> &'static [[f64; MAX_MOLECULES_COUNTED_BY_STARTS + 1]; MAX_MOLECULES_COUNTED_BY_STARTS + 1] {
    static CHANCES: LazyLock<[[f64; MAX_MOLECULES_COUNTED_BY_STARTS + 1]; MAX_MOLECULES_COUNTED_BY_STARTS + 1]> =
        LazyLock::new(|| {
            let mut chances = [[0.0; MAX_MOLECULES_COUNTED_BY_STARTS + 1]; MAX_MOLECULES_COUNTED_BY_STARTS + 1];
            // Probability of each number of set bits.
            let mut bits = [0.0; MAX_MOLECULES_COUNTED_BY_STARTS + 1];
            bits[0] = 1.0;
            for (pairs, own) in chances.iter_mut().enumerate() {
                for (set, chance) in bits.iter().enumerate() {
                    let seen = PairCount { pairs: pairs as u32, start_bits: ((1u64 << set) - 1) as u32 };
                    own[seen.num_molecules().map_or(pairs, |molecules| molecules as usize)] += chance;
                }
                let same = |set: usize| set as f64 / NUM_START_BITS;
                let fewer = |set: usize| set.checked_sub(1).map_or(0.0, |one| bits[one] * (1.0 - same(one)));
                bits = std::array::from_fn(|set| bits[set] * same(set) + fewer(set));
            }
            chances
        });
    &CHANCES
}

/// Hash of a k-mer key that distributes keys over the slots. It is not safe against keys chosen by an adversary.
#[inline(always)]
fn hash_key(key: u64) -> u64 {
    let x = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

/// Parameters of a sketch: k-mer length, minimum base qualities and maximum number of k-mers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SketchParams {
    /// Length of the k-mers, 12 to 32.
    pub k: u32,
    /// Minimum Phred quality of the bases of the root, and of the first and last base of the k-mer. The latter are
    /// compared between the samples.
    pub min_quality: [u8; 2],
    /// Maximum number of k-mers of a sketch if the reads have up to 41 million k-mers (see [`SMALL_GENOME_KMERS`]). In
    /// such a small genome the sketch contains a large share of all roots. For larger genomes the limit doubles with
    /// each further sampling level.
    pub max_kmers_small_genome: usize,
    /// Upper limit of the number of k-mers of a sketch for any genome. A k-mer takes 30 to 45 bytes of memory.
    pub max_kmers: usize,
}

/// Number of distinct k-mers of the reads up to which [`SketchParams::max_kmers_small_genome`] is the limit.
const SMALL_GENOME_KMERS: usize = 40_960_000;

impl SketchParams {
    /// Length of a root in bases, k−2.
    fn root_bases(&self) -> usize {
        self.k as usize - 2
    }

    /// Maximum number of k-mers of a sketch at a sampling level.
    fn capacity(&self, level: u32) -> usize {
        let free = (SMALL_GENOME_KMERS / self.max_kmers_small_genome.max(1)).max(1).ilog2();
        self.max_kmers_small_genome.saturating_mul(1 << level.saturating_sub(free).min(31)).min(self.max_kmers)
    }

    /// Maximum number of k-mers of the sketch of a genome of `genome_bases` bases.
    pub fn max_kmers_for_genome(&self, genome_bases: u64) -> u64 {
        let held = |level: u32| genome_bases >> level <= self.capacity(level) as u64;
        let level = (0..64).find(|&level| held(level)).unwrap_or(64);
        (self.capacity(level) as u64).min(genome_bases)
    }

    /// Highest sampling level at which a k-mer is kept: number of leading bits of the pattern that its root matches; if
    /// all bits match, plus the number of leading zero bits of a hash of the root.
    #[inline(always)]
    fn level_of_key(&self, key: u64) -> u32 {
        let (root, bases) = (key >> 4, self.root_bases());
        let strong = |at: usize| (root >> (2 * at) ^ root >> (2 * at + 1)) & 1;
        let inner = bases / 2;
        for i in 0..PATTERN_BITS.min(inner as u32) {
            let differ = strong(inner - 1 - i as usize) ^ strong(bases.div_ceil(2) + i as usize);
            if differ != u64::from(STRENGTH_PATTERN >> i & 1) {
                return i;
            }
        }
        PATTERN_BITS.min(inner as u32) + hash_key(root.wrapping_mul(0xd6e8_feb8_6659_fd93)).leading_zeros()
    }
}

/// A k-mer sketch under construction, which all reader threads fill together through [`SketchWriter`]s.
#[derive(Debug)]
pub struct SketchBuilder {
    params: SketchParams,
    level: AtomicU32,
    num_kmers: AtomicUsize,
    shards: Vec<Mutex<CountTable>>,
    level_lock: Mutex<()>,
}

/// A finished k-mer sketch: k-mers with their counts, sorted by k-mer key (root, base before, base after).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KmerSketch {
    params: SketchParams,
    /// Sampling level: one root in 2^level is in the sketch.
    level: u32,
    counts: Vec<KmerCount>,
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
        if more > 0 && all > self.params.capacity(level) {
            self.raise_level_while_full();
        }
    }

    /// Raises the sampling level until the sketch fits its maximum size. Each step drops about half of the roots.
    fn raise_level_while_full(&self) {
        let _one = lock(&self.level_lock);
        loop {
            let level = self.level.load(Relaxed);
            if self.num_kmers.load(Relaxed) <= self.params.capacity(level) {
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
            own.rebuild(num_slots, |key| self.params.level_of_key(key) >= level);
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
        let mut by_shard: Vec<Vec<KmerCount>> = vec![Vec::new(); NUM_SHARDS];
        for piece in other.counts.chunks(1 << 16) {
            piece.iter().for_each(|count| by_shard[shard_index(count.0)].push(*count));
            for (shard, counts) in by_shard.iter_mut().enumerate() {
                self.add_to_shard(shard, |own, level| {
                    counts.retain(|(key, _)| other.level >= level || self.params.level_of_key(*key) >= level);
                    own.add_counts(counts);
                });
                counts.clear();
            }
        }
    }

    /// Takes the finished sketch out of the builder, which is empty afterwards. All writers must have been dropped.
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
    /// Sampling level that all buffered k-mers have at least.
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
        self.scan.scan_pair(pair.mates.map(|mate| mate.seq.len()), packed, params, level);
        let (fitting, found) = (self.scan.matches_by_mate(), &mut self.keys);
        run_with_widest_simd(
            #[inline(always)]
            || {
                for ((mate, packed), fit) in pair.mates.into_iter().zip(packed).zip(fitting) {
                    collect_kmers(mate, packed, params, level, fit, found);
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
            *filled = retain_in_front(&mut held[..*filled], |key| params.level_of_key(key) >= level);
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
            let kept =
                if level > fit { retain_in_front(held, |key| params.level_of_key(key) >= level) } else { held.len() };
            own.add_buffered(&held[..kept]);
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

/// Hash of the first 16 bases of both mates; it is the same if the mates are swapped.
fn hash_read_starts(pair: &ReadPair<'_>, packed: [PackedBases<'_>; 2]) -> u64 {
    const BASES: usize = 16;
    let word = |i: usize| {
        let bases = pair.mates[i].seq.len().min(BASES);
        let word = packed[i].word_from_base(0) >> (2 * (WORD_BASES - BASES)) >> (2 * (BASES - bases));
        hash_key(1 << (2 * bases) | word)
    };
    hash_key(word(0).wrapping_add(word(1))) >> 32
}

/// Buffers of a search for the k-mers of both mates whose roots match the sampling pattern, 64 positions at once.
#[derive(Debug, Default)]
struct PatternScan {
    /// Packed bases of both mates; zero words follow each mate.
    words: Vec<u64>,
    /// One bit per base, the highest bit first: whether the base is strong (C or G).
    strong: Vec<u64>,
    /// One bit per base, the highest bit first: whether a k-mer whose root matches the pattern starts there.
    matches: Vec<u64>,
    /// Number of words of `matches` that belong to read 1.
    first_mate_words: usize,
}

/// Number of 64-bit words that are processed together (SIMD lanes).
const SIMD_LANES: usize = 8;

impl PatternScan {
    /// Searches two mates with the given numbers of bases; the packed bases may be longer. The results are in
    /// `matches`.
    fn scan_pair(&mut self, bases: [usize; 2], packed: [PackedBases<'_>; 2], params: &SketchParams, level: u32) {
        self.words.clear();
        for (bases, packed) in bases.into_iter().zip(packed) {
            self.words.extend_from_slice(&packed.words()[..bases.div_ceil(WORD_BASES)]);
            let whole = self.words.len().next_multiple_of(2) + 2;
            self.words.resize(whole, 0);
        }
        self.first_mate_words = bases[0].div_ceil(2 * WORD_BASES) + 1;
        let PatternScan { words, strong, matches: fit, .. } = self;
        // The root of a k-mer starts one base after the k-mer.
        run_with_widest_simd(
            #[inline(always)]
            || scan_pattern(words, params.root_bases(), 1, level, strong, fit),
        );
    }

    /// Returns the words of `matches` of each mate.
    fn matches_by_mate(&self) -> [&[u64]; 2] {
        let (one, two) = self.matches.split_at(self.first_mate_words);
        [one, two]
    }
}

/// Searches the roots that match the first `level` bits of the sampling pattern. Writes one bit per base of `words` to
/// `matches`: whether such a root of `root_bases` bases starts `offset` bases (0 or 1) after this base.
#[inline(always)]
fn scan_pattern(
    words: &mut Vec<u64>,
    root_bases: usize,
    offset: u32,
    level: u32,
    strong: &mut Vec<u64>,
    matches: &mut Vec<u64>,
) {
    words.resize(words.len().next_multiple_of(2 * SIMD_LANES), 0);
    let all = words.len() / 2;
    strong.resize(all + 1, 0);
    matches.resize(all, 0);
    strong[all] = 0;
    let lanes = strong.as_chunks_mut::<SIMD_LANES>().0.iter_mut().zip(words.as_chunks::<{ 2 * SIMD_LANES }>().0);
    for (strong, words) in lanes {
        for i in 0..SIMD_LANES {
            strong[i] = strong_bits(words[2 * i]) << 32 | strong_bits(words[2 * i + 1]);
        }
    }
    for (at, matches) in matches.as_chunks_mut::<SIMD_LANES>().0.iter_mut().enumerate() {
        let (mut here, mut next) = ([0; SIMD_LANES], [0; SIMD_LANES]);
        here.copy_from_slice(&strong[at * SIMD_LANES..][..SIMD_LANES]);
        next.copy_from_slice(&strong[at * SIMD_LANES + 1..][..SIMD_LANES]);
        let mut fits = [u64::MAX; SIMD_LANES];
        for i in 0..level.min(PATTERN_BITS).min(root_bases as u32 / 2) {
            let (one, other) = (offset + root_bases as u32 / 2 - 1 - i, offset + (root_bases as u32).div_ceil(2) + i);
            let flip = if STRENGTH_PATTERN >> i & 1 == 1 { 0 } else { u64::MAX };
            for lane in 0..SIMD_LANES {
                // A shift by 64 bits is undefined, so the second word is shifted in two steps.
                let at = |from: u32| (here[lane] << from) | (next[lane] >> 1 >> (63 - from));
                fits[lane] &= at(one) ^ at(other) ^ flip;
            }
        }
        *matches = fits;
    }
}

/// Length of the roots of a sketch, and the number of pattern bits by which they were sampled. With these, the sampled
/// roots can be found in a reference without looking up each of its positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SketchRootSampling {
    /// Length of a root in bases.
    pub root_bases: u32,
    /// Number of leading bits of the sampling pattern that the roots match.
    pattern_level: u32,
}

impl SketchRootSampling {
    /// Describes a sketch that contains all roots of `bases` bases.
    pub fn for_all_roots(bases: u32) -> SketchRootSampling {
        SketchRootSampling { root_bases: bases, pattern_level: 0 }
    }

    /// Finds the sampled roots in packed bases. Writes one bit per position to `matches`, 64 to a word, the highest bit
    /// first: whether a root that matches the pattern starts there. Bits of roots that extend beyond the last base are
    /// undefined. `scratch` is memory that is reused between calls.
    pub fn find_sampled_roots(&self, packed: PackedBases<'_>, scratch: &mut [Vec<u64>; 2], matches: &mut Vec<u64>) {
        let [words, strong] = scratch;
        words.clear();
        words.extend_from_slice(packed.words());
        run_with_widest_simd(
            #[inline(always)]
            || scan_pattern(words, self.root_bases as usize, 0, self.pattern_level, strong, matches),
        );
    }
}

/// Appends the keys of the k-mers of a mate whose bases have good quality and whose sampling level is at least `level`.
/// `matches` has one bit per base for the k-mers whose roots match the pattern.
#[inline(always)]
fn collect_kmers(
    mate: Mate<'_>,
    packed: PackedBases<'_>,
    params: &SketchParams,
    level: u32,
    matches: &[u64],
    keys: &mut Vec<u64>,
) {
    let (k, root) = (params.k as usize, params.root_bases());
    let Some(last) = mate.seq.len().checked_sub(k) else { return };
    let asked = level.min(PATTERN_BITS).min(root as u32 / 2);
    for (word, matches) in matches.iter().enumerate().take(last / 64 + 1) {
        let start = 64 * word;
        let mut matches = matches & (u64::MAX << (63 - (last - start).min(63)));
        let before = keys.len();
        keys.resize(before + matches.count_ones() as usize, 0);
        let mut n = before;
        // Without a branch that depends on the bases, as it could not be predicted.
        while matches != 0 {
            let one = matches.leading_zeros();
            matches ^= 1 << (63 - one);
            let here = start + one as usize;
            let (key, turns) = canonical_key(packed.word_from_base(here) >> (2 * (WORD_BASES - k)), params.k);
            keys[n] = key;
            let mut good = has_min_quality(&mate.qual[here..here + k], params.min_quality) & !turns;
            if packed.has_non_acgt {
                good &= mate.seq[here..here + k].iter().all(|&base| dna::encode_base(base) < 4);
            }
            if level > asked {
                good &= params.level_of_key(key) >= level;
            }
            n += usize::from(good);
        }
        keys.truncate(n);
    }
}

/// Returns one bit per base of a packed word of 32 bases: whether the base is strong (C or G).
#[inline(always)]
fn strong_bits(word: u64) -> u64 {
    // C = 01 and G = 10: their two bits differ.
    let mut x = (word ^ word >> 1) & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0xffff_ffff
}

/// Whether the base qualities of a k-mer (`qual`: Phred + 33) reach the minimum for inner bases and the minimum for its
/// first and last base.
#[inline(always)]
fn has_min_quality(qual: &[u8], [inner, ends]: [u8; 2]) -> bool {
    let [Some(first), Some(last)] = [qual.first(), qual.last()] else { return false };
    let inside = match (qual.first_chunk(), qual.last_chunk()) {
        // The two chunks of 16 letters overlap.
        (Some(begin), Some(end)) => is_every_letter_at_least([begin, end], inner + 33),
        _ => qual.iter().all(|&letter| letter >= inner + 33),
    };
    inside & (*first.min(last) >= ends + 33)
}

/// Whether all of 32 quality characters (Phred + 33, below 128) are at least `lowest`.
#[inline(always)]
fn is_every_letter_at_least(letters: [&[u8; 16]; 2], lowest: u8) -> bool {
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    let lowest = (HIGHEST >> 7) * u64::from(lowest);
    let good = letters.into_iter().fold(HIGHEST, |good, letters| {
        let both = u128::from_le_bytes(*letters);
        // The highest bit of each byte stays set if the letter is not below the lowest.
        [both as u64, (both >> 64) as u64]
            .into_iter()
            .fold(good, |good, eight| good & (eight | ((eight | HIGHEST) - lowest)))
    });
    good == HIGHEST
}

/// Returns the key of a k-mer on the strand on which its root is canonical, and whether the root is its own reverse
/// complement. Such k-mers are not used, because their strand is undefined.
#[inline(always)]
fn canonical_key(kmer: u64, k: u32) -> (u64, bool) {
    let bases = k - 2;
    let (first, last) = (kmer >> (2 * (k - 1)), kmer & 3);
    let root = (kmer >> 2) & kmer_mask(bases);
    let reverse = reverse_complement_kmer(root, bases);
    let [one, other] = [root << 4 | first << 2 | last, reverse << 4 | (3 - last) << 2 | (3 - first)];
    (if root < reverse { one } else { other }, root == reverse)
}

/// Index of the roots of a sketch for membership tests. Most tested roots are absent; a bit filter (Bloom filter)
/// rejects those quickly.
#[derive(Debug)]
pub(crate) struct SketchRootIndex<'a> {
    counts: &'a [KmerCount],
    /// Bit filter with 16 bits per k-mer.
    filter: Vec<u64>,
}

impl SketchRootIndex<'_> {
    /// Index of the word and mask of the bit of a root in the filter.
    #[inline(always)]
    fn filter_bit(&self, root: u64) -> (usize, u64) {
        let hash = hash_key(root);
        (((u128::from(hash) * self.filter.len() as u128) >> 64) as usize, 1 << (hash & 63))
    }

    /// Whether the sketch contains this canonical root.
    #[inline]
    pub(crate) fn contains_root(&self, root: u64) -> bool {
        let (word, bit) = self.filter_bit(root);
        self.filter[word] & bit > 0 && {
            let at = self.counts.partition_point(|count| count.0 >> 4 < root);
            self.counts.get(at).is_some_and(|count| count.0 >> 4 == root)
        }
    }
}

/// Estimated number of molecules with a k-mer. If too many start bits are set, it is the number of read pairs times one
/// minus `duplicate_share`.
fn estimate_molecules(count: PairCount, duplicate_share: f64) -> u32 {
    count.num_molecules().unwrap_or_else(|| (f64::from(count.pairs) * (1.0 - duplicate_share)).round() as u32)
}

impl KmerSketch {
    /// Share of all roots of the samples' k-mers that are in the sketch (0 to 1): 1 / 2^level.
    pub fn sampled_root_share(&self) -> f64 {
        (-f64::from(self.level)).exp2()
    }

    /// Length of a root in bases, k−2.
    pub(crate) fn root_bases(&self) -> u32 {
        self.params.k - 2
    }

    /// Returns the length of the roots, and the number of pattern bits by which they were sampled.
    pub(crate) fn root_sampling(&self) -> SketchRootSampling {
        SketchRootSampling { root_bases: self.root_bases(), pattern_level: self.level }
    }

    /// Builds an index for tests whether a root is in the sketch.
    pub(crate) fn build_root_index(&self) -> SketchRootIndex<'_> {
        let mut known = SketchRootIndex { counts: &self.counts, filter: vec![0; (self.counts.len() / 4).max(1)] };
        for (key, _) in &self.counts {
            let (word, bit) = known.filter_bit(key >> 4);
            known.filter[word] |= bit;
        }
        known
    }

    /// Estimates the share of the read pairs of each sample that are PCR duplicates, from k-mers in 4 to 16 read pairs.
    /// Deeper k-mers have more molecules than the start bits can count. 0 if there are too few such k-mers.
    pub(crate) fn duplicate_shares(&self) -> [f64; 2] {
        [0, 1].map(|s| {
            let counted = self.counts.iter().map(|(_, seen)| seen[s]).filter(|seen| (4..=16).contains(&seen.pairs));
            let sum = counted.fold([0.0; 2], |sum, seen| match seen.expected_molecules() {
                Some(molecules) => [sum[0] + f64::from(seen.pairs), sum[1] + molecules],
                None => sum,
            });
            if sum[0] < MIN_DUPLICATE_PAIRS { 0.0 } else { (1.0 - sum[1] / sum[0]).max(0.0) }
        })
    }

    /// Iterates over the roots, each with its number of read pairs and its number of molecules in both samples. The
    /// number of read pairs is proportional to the depth; the number of molecules is less precise for deep roots.
    pub(crate) fn root_depths(&self) -> impl Iterator<Item = (u64, [u32; 2], [u32; 2])> + '_ {
        let copies = self.duplicate_shares();
        self.counts.chunk_by(|a, b| a.0 >> 4 == b.0 >> 4).map(move |own| {
            let sum = |of: &dyn Fn(PairCount, usize) -> u32| {
                [0, 1].map(|s| own.iter().fold(0u32, |sum, (_, seen)| sum.saturating_add(of(seen[s], s))))
            };
            (own[0].0 >> 4, sum(&|seen, _| seen.pairs), sum(&|seen, s| estimate_molecules(seen, copies[s])))
        })
    }

    /// Iterates over the roots with their 16 counters per sample, in read pairs (duplicates included).
    pub(crate) fn root_counters_in_read_pairs(&self) -> impl Iterator<Item = RootCounters> + '_ {
        self.counts.chunk_by(|a, b| a.0 >> 4 == b.0 >> 4).map(|own| {
            let mut counts = [[0; 2]; 16];
            own.iter().for_each(|(key, seen)| counts[(key & 15) as usize] = seen.map(|of_sample| of_sample.pairs));
            RootCounters { root: own[0].0 >> 4, counts }
        })
    }

    /// From now on counts each read pair of a sample as a molecule of its own. This is for libraries with fixed
    /// fragment ends, in which different molecules start alike.
    pub fn treat_pairs_as_molecules(&mut self, sample: usize) {
        for (_, seen) in &mut self.counts {
            // As many bits as pairs.
            let counts = &mut seen[sample];
            counts.start_bits = u32::MAX.checked_shl(counts.pairs).map_or(u32::MAX, |others| !others);
        }
    }

    /// Iterates over the roots with their 16 counters per sample, in molecules.
    pub fn root_counters_in_molecules(&self) -> impl Iterator<Item = RootCounters> + '_ {
        self.root_counters_with_shared_starts().map(|(root, _)| root)
    }

    /// Iterates over the roots with their 16 counters per sample, in molecules. The array is for each sample the number
    /// of molecules that start like another molecule of the sample but have other bases before or after the root:
    /// duplicates with a sequencing error, or coincidences. Duplicates without an error are one molecule.
    pub fn root_counters_with_shared_starts(&self) -> impl Iterator<Item = (RootCounters, [u32; 2])> + '_ {
        let copies = self.duplicate_shares();
        self.counts.chunk_by(|a, b| a.0 >> 4 == b.0 >> 4).map(move |own| {
            let mut counts = [[0; 2]; 16];
            let mut twice = [0; 2];
            for (i, (key, seen)) in own.iter().enumerate() {
                counts[(key & 15) as usize] =
                    [estimate_molecules(seen[0], copies[0]), estimate_molecules(seen[1], copies[1])];
                for (_, before) in &own[..i] {
                    twice
                        .iter_mut()
                        .enumerate()
                        .for_each(|(s, n)| *n += (before[s].start_bits & seen[s].start_bits).count_ones());
                }
            }
            (RootCounters { root: own[0].0 >> 4, counts }, twice)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use genuma_kmers::encode::pack;
    use genuma_reads::packed_bases::BaseCodes;

    use super::*;

    /// The matrix agrees with random read starts.
    #[test]
    fn molecule_count_matrix_matches_random_starts() {
        let mut seed = 3u64;
        let mut begin = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed >> 40
        };
        for (molecules, chances) in molecule_count_probabilities().iter().enumerate() {
            let mut seen = [0u32; MAX_MOLECULES_COUNTED_BY_STARTS + 1];
            const TRIES: u32 = 20_000;
            for _ in 0..TRIES {
                let mut all = PairCount::default();
                (0..molecules).for_each(|_| all.add(PairCount::single(begin())));
                seen[all.num_molecules().unwrap() as usize] += 1;
            }
            for (told, (seen, chance)) in seen.into_iter().zip(chances).enumerate() {
                let (seen, most) =
                    (f64::from(seen) / f64::from(TRIES), 0.001 + 5.0 * (chance / f64::from(TRIES)).sqrt());
                assert!((seen - chance).abs() < most, "{molecules} told as {told}: {seen}, {chance}");
            }
        }
    }

    fn random(n: usize, mut seed: u64) -> Vec<u8> {
        let mut next = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(seed >> 62) as usize]
        };
        (0..n).map(|_| next()).collect()
    }

    /// Read pairs of a random genome, from both strands: mates of 100 bases, fragments of 150 to 450.
    fn pairs(genome: &[u8], n: usize) -> Vec<[Vec<u8>; 2]> {
        let piece = |i: usize| {
            let (start, len) = ((i * 7919) % (genome.len() - 450), 150 + (i * 31) % 300);
            let fragment = &genome[start..start + len];
            let fragment = if i.is_multiple_of(2) { fragment.to_vec() } else { dna::reverse_complement(fragment) };
            [fragment[..100].to_vec(), dna::reverse_complement(&fragment)[..100].to_vec()]
        };
        (0..n).map(piece).collect()
    }

    fn packed(seq: &[u8]) -> BaseCodes {
        let mut codes = BaseCodes::default();
        codes.encode_bases(seq, seq, 0);
        codes
    }

    fn sampled(pairs: &[[Vec<u8>; 2]], qual: &[u8], params: SketchParams) -> KmerSketch {
        let sampling = SketchBuilder::empty(params);
        let mut sampler = sampling.new_writer();
        for (i, [a, b]) in pairs.iter().enumerate() {
            let mate = |seq| Mate { seq, qual };
            let codes = [a, b].map(|seq| packed(seq));
            let pair = ReadPair { name: b"p", mates: [mate(a), mate(b)] };
            sampler.add_pair(pair, codes.each_ref().map(BaseCodes::packed), (i % 2) as u8);
        }
        drop(sampler);
        sampling.take_sketch()
    }

    #[test]
    fn sketch_contains_matching_roots_once_per_pair() {
        let genome = random(4_000, 1);
        let pairs = pairs(&genome, 400);
        for k in [24, 25, 31, 32] {
            let params =
                SketchParams { k, min_quality: [20, 30], max_kmers_small_genome: usize::MAX, max_kmers: usize::MAX };
            // Expected counts from the letters.
            let mut expected: BTreeMap<u64, [PairCount; 2]> = BTreeMap::new();
            for (i, mates) in pairs.iter().enumerate() {
                let keys = |seq: &Vec<u8>| -> Vec<u64> {
                    seq.windows(k as usize)
                        .map(|w| canonical_key(pack(w).unwrap(), k))
                        .filter(|key| !key.1)
                        .map(|key| key.0)
                        .collect()
                };
                let [mut own, other] = mates.each_ref().map(keys);
                own.extend(other);
                own.sort_unstable();
                own.dedup();
                assert!(own.is_sorted_by(|a, b| a >> 4 != b >> 4), "no root twice in a random genome");
                let [a, b] = mates.each_ref().map(|seq| Mate { seq, qual: &[] });
                let [one, two] = mates.each_ref().map(|seq| packed(seq));
                let once = hash_read_starts(&ReadPair { name: b"p", mates: [b, a] }, [two.packed(), one.packed()]);
                let once = PairCount::single(once);
                own.iter().for_each(|key| expected.entry(*key).or_default()[i % 2].add(once));
            }
            let whole = sampled(&pairs, &[70; 100], params);
            assert_eq!((whole.level, whole.counts.len()), (0, expected.len()));
            assert!(whole.counts.iter().copied().eq(expected.clone()));
            for (few, most) in [3_000, 500, 100, 2].map(|most| (usize::MAX, most)).into_iter().chain([
                (4, usize::MAX),
                (1_000, usize::MAX),
                (3, 90),
            ]) {
                let params = SketchParams { max_kmers_small_genome: few, max_kmers: most, ..params };
                let part = sampled(&pairs, &[70; 100], params);
                let fits: Vec<_> =
                    expected.iter().filter(|(key, _)| params.level_of_key(**key) >= part.level).collect();
                assert!(part.counts.iter().map(|(key, count)| (key, count)).eq(fits.iter().copied()), "{few} {most}");
                let fit = |level| expected.keys().filter(|key| params.level_of_key(**key) >= level).count();
                assert!(part.counts.len() <= params.capacity(part.level));
                assert!((0..part.level).all(|level| fit(level) > params.capacity(level)), "as many as have room");
                // In another order, and in two shards.
                let turned: Vec<_> = pairs.iter().rev().cloned().collect();
                assert_eq!(pairs.len() % 2, 0);
                let other = sampled(&turned, &[70; 100], params);
                let swapped = |c: &(u64, [PairCount; 2])| (c.0, [c.1[1], c.1[0]]);
                assert!(other.level == part.level && other.counts.iter().map(swapped).eq(part.counts.clone()));
                let together = SketchBuilder::empty(params);
                for shard in [&pairs[..100], &pairs[100..]] {
                    together.merge_sketch(&sampled(shard, &[70; 100], params));
                }
                assert_eq!(together.take_sketch(), part);
            }
        }
    }

    #[test]
    fn positions_of_matching_roots_are_found() {
        let seq = random(333, 3);
        for (bases, level) in [(29, 0), (29, 1), (29, 4), (29, 10), (29, 14), (30, 5), (23, 3), (10, 5), (11, 2)] {
            let params = SketchParams { k: bases + 2, min_quality: [0; 2], max_kmers_small_genome: 1, max_kmers: 1 };
            let (mut memory, mut fit) = Default::default();
            SketchRootSampling { root_bases: bases, pattern_level: level }.find_sampled_roots(
                packed(&seq).packed(),
                &mut memory,
                &mut fit,
            );
            for (at, root) in seq.windows(bases as usize).enumerate() {
                let fits = params.level_of_key(pack(root).unwrap() << 4) >= level.min(PATTERN_BITS).min(bases / 2);
                assert_eq!(fit[at / 64] << (at % 64) >> 63 == 1, fits, "{bases} {level} {at}");
            }
        }
    }

    #[test]
    fn both_strands_match_equally_and_poor_bases_do_not_count() {
        let params =
            SketchParams { k: 31, min_quality: [20, 30], max_kmers_small_genome: usize::MAX, max_kmers: usize::MAX };
        let seq = random(3_000, 5);
        let levels = |seq: &[u8]| -> Vec<u32> {
            let keys = seq.windows(31).map(|w| canonical_key(pack(w).unwrap(), 31));
            keys.map(|(key, _)| params.level_of_key(key)).collect()
        };
        let (here, mut there) = (levels(&seq), levels(&dna::reverse_complement(&seq)));
        there.reverse();
        assert_eq!(here, there);
        let half = here.iter().filter(|level| **level >= 1).count();
        assert!((1_300..1_700).contains(&half), "{half}");
        let one = vec![[seq[..100].to_vec(), seq[500..600].to_vec()]];
        let mut qual = [70u8; 100];
        assert_eq!(sampled(&one, &qual, params).counts.len(), 140);
        qual[50] = 33 + 19;
        assert_eq!(sampled(&one, &qual, params).counts.len(), 140 - 2 * 31);
        qual[50] = 33 + 29;
        assert_eq!(sampled(&one, &qual, params).counts.len(), 140 - 2 * 2);
        qual[50] = 33 + 30;
        assert_eq!(sampled(&one, &qual, params).counts.len(), 140);
        // A letter other than A, C, G or T never counts, whatever its quality.
        let mut unknown = one.clone();
        unknown[0][0][50] = b'N';
        assert_eq!(sampled(&unknown, &qual, params).counts.len(), 140 - 31);
        for (length, at, letter) in (12..=32).flat_map(|k| (0..k).map(move |at| (k, at, 33 + (7 * at % 50) as u8))) {
            let mut qual = vec![33 + 30; length];
            qual[at] = letter;
            let wanted = if at == 0 || at == length - 1 { 30 } else { 20 };
            assert_eq!(has_min_quality(&qual, [20, 30]), letter - 33 >= wanted, "{length} {at} {letter}");
        }
    }

    #[test]
    fn duplicates_of_a_molecule_count_once() {
        let genome = random(100_000, 9);
        let pairs = pairs(&genome, 4_000);
        let params =
            SketchParams { k: 31, min_quality: [20, 30], max_kmers_small_genome: usize::MAX, max_kmers: usize::MAX };
        let depth = |of: &KmerSketch| {
            of.root_counters_in_molecules().flat_map(|root| root.counts).map(|c| u64::from(c[0] + c[1])).sum::<u64>()
        };
        let once = sampled(&pairs, &[70; 100], params);
        let copied: Vec<_> = pairs.iter().flat_map(|pair| [pair, pair, pair]).cloned().collect();
        // Each pair three times, alternating between the samples: each sample has it one and a half times.
        let thrice = sampled(&copied, &[70; 100], params);
        assert!(
            once.duplicate_shares()[0] < 0.03 && thrice.duplicate_shares().iter().all(|c| (0.28..0.42).contains(c)),
            "{:?}",
            thrice.duplicate_shares()
        );
        let (one, three) = (depth(&once) as f64, depth(&thrice) as f64);
        assert!(three < 2.2 * one, "{one} {three}");
    }
}
