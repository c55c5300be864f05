//! A sample of the roots of both samples, counted in good bases only, while reads are read for something else.
//!
//! Joint counters of all k-mers are full of the sequencer's errors, beside which a hundredth of another person does not show. So some roots are counted once
//! more, and only where all bases of the k-mer are good, once for a pair, however its mates overlap, and once for all PCR copies of it. Which roots depends on their bases alone: whether
//! each of the two bases that are equally far from the middle is strong (C, G) says one bit that is the same on both strands, and the first bits must
//! be those of a pattern. That is a few operations on 64 places at once. As more roots come than there is room for, one bit more is asked for and
//! half of them go: so what is there in the end depends neither on the order of the reads nor on threads nor on the shards that were added up.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard};

use genuma_kmers::encode::{mask, revcomp};
use genuma_kmers::{RootCounters, prefetch, widest};
use genuma_reads::packed::{Packed, WORD};
use genuma_reads::{Mate, Pair, dna};
use serde::{Deserialize, Serialize};

/// Bits of the pattern, the innermost pair of bases first: whether one of the two is strong and the other weak.
const PATTERN: u32 = 0b10_1100_1101;
/// How many it has; further bits are those of a hash.
const PATTERNED: u32 = 10;
/// Shards of the table, each with a lock of its own.
const SHARDS: usize = 64;
/// k-mers that a thread holds back for a shard.
const HELD: usize = 64;

/// The counts of k-mers: the root in the upper bits, as it is smaller of both strands; then the base before it and the one behind.
type Count = (u64, [Seen; 2]);

/// What a thread holds back: a k-mer, and who has it: the bit of [`Seen::begin`] in the lowest five bits, then the sample.
type Held = (u64, u32);

/// The counts of some k-mers: a table with open addresses. Places of all that come together are asked for before any of them is looked at.
#[derive(Debug, Default)]
struct Counts {
    slots: Vec<Count>,
    len: usize,
}

/// The key of a place that nobody has: no root of T alone is smaller than its reverse complement.
const FREE: u64 = u64::MAX;
/// Fewest places of a table.
const LEAST: usize = 1 << 11;

impl Counts {
    /// Where a k-mer is, or the first place behind that.
    #[inline(always)]
    fn place(&self, key: u64) -> usize {
        ((u128::from(mixed(key)) * self.slots.len() as u128) >> 64) as usize
    }

    /// The counts of a k-mer, which may be new. There has to be room for it.
    #[inline(always)]
    fn of(&mut self, key: u64) -> &mut [Seen; 2] {
        let mut at = self.place(key);
        while self.slots[at].0 != key {
            if self.slots[at].0 == FREE {
                self.slots[at].0 = key;
                self.len += 1;
                break;
            }
            at += 1;
            at = if at == self.slots.len() { 0 } else { at };
        }
        &mut self.slots[at].1
    }

    /// Makes room for so many more: four places in five are used at most.
    fn reserve(&mut self, more: usize) {
        let wanted = (self.len + more) * 5 / 4 + 1;
        if wanted > self.slots.len() {
            self.rebuild(wanted.max(self.slots.len() * 3 / 2).max(LEAST), |_| true);
        }
    }

    /// Moves those that are to be kept into a table of so many places.
    fn rebuild(&mut self, places: usize, kept: impl Fn(u64) -> bool) {
        let before = std::mem::replace(&mut self.slots, vec![(FREE, <[Seen; 2]>::default()); places]);
        self.len = 0;
        for (key, seen) in before.into_iter().filter(|(key, _)| *key != FREE && kept(*key)) {
            *self.of(key) = seen;
        }
    }

    /// Asks for the place of a k-mer, which may lie in two lines.
    #[inline(always)]
    fn fetch(&self, key: u64) {
        let slot = &self.slots[self.place(key)];
        prefetch(&slot.0);
        prefetch(&slot.1[1].begin);
    }

    /// Counts what a thread has held back.
    fn take(&mut self, held: &[Held]) {
        self.reserve(held.len());
        held.iter().for_each(|(key, _)| self.fetch(*key));
        for &(key, who) in held {
            self.of(key)[(who >> 5) as usize & 1].add(Seen::once(u64::from(who)));
        }
    }

    fn add(&mut self, counts: &[Count]) {
        self.reserve(counts.len());
        counts.iter().for_each(|(key, _)| self.fetch(*key));
        for (key, seen) in counts {
            self.of(*key).iter_mut().zip(seen).for_each(|(a, b)| a.add(*b));
        }
    }
}

/// How often a sample has a k-mer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
struct Seen {
    /// Pairs that have it.
    pairs: u32,
    /// A bit for each of them, of 32, chosen by how their mates begin: copies of a molecule have the same.
    begin: u32,
}

impl Seen {
    fn once(begin: u64) -> Seen {
        Seen { pairs: 1, begin: 1 << (begin & 31) }
    }

    #[inline(always)]
    fn add(&mut self, other: Seen) {
        self.pairs = self.pairs.saturating_add(other.pairs);
        self.begin |= other.begin;
    }

    /// Molecules, on average of such sets of bits, where that can be told: chance puts two molecules on one bit as often as is reckoned in.
    fn expected(self) -> Option<f64> {
        static BY_BITS: LazyLock<[f64; 17]> =
            LazyLock::new(|| std::array::from_fn(|bits| -32.0 * (1.0 - bits as f64 / 32.0).ln()));
        BY_BITS.get(self.begin.count_ones() as usize).copied()
    }

    /// Molecules, where that can be told.
    fn molecules(self) -> Option<u32> {
        self.expected().map(|molecules| (molecules.round() as u32).min(self.pairs))
    }
}

/// Up to so many molecules are told from how they begin.
pub const TOLD: usize = 16;

/// For each number of molecules that a sample has of a k-mer, none copied, the chances of each number that is told: those of one beginning are counted once.
pub fn told() -> &'static [[f64; TOLD + 1]; TOLD + 1] {
    static CHANCES: LazyLock<[[f64; TOLD + 1]; TOLD + 1]> = LazyLock::new(|| {
        let mut chances = [[0.0; TOLD + 1]; TOLD + 1];
        // By how many bits.
        let mut bits = [0.0; TOLD + 1];
        bits[0] = 1.0;
        for (pairs, own) in chances.iter_mut().enumerate() {
            for (set, chance) in bits.iter().enumerate() {
                let seen = Seen { pairs: pairs as u32, begin: ((1u64 << set) - 1) as u32 };
                own[seen.molecules().map_or(pairs, |told| told as usize)] += chance;
            }
            let same = |set: usize| set as f64 / 32.0;
            let fewer = |set: usize| set.checked_sub(1).map_or(0.0, |one| bits[one] * (1.0 - same(one)));
            bits = std::array::from_fn(|set| bits[set] * same(set) + fewer(set));
        }
        chances
    });
    &CHANCES
}

/// Spreads keys, which are no one's to choose.
#[inline(always)]
fn mixed(key: u64) -> u64 {
    let x = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

/// What is sampled, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleParams {
    /// Length of the k-mers, 12 to 32.
    pub k: u32,
    /// Lowest quality (Phred) of a root's bases, and of the two beside it, which are compared.
    pub quality: [u8; 2],
    /// Most k-mers that are held where reads have up to some [`SMALL`] of them: each root that is sampled is a large share of all then, and reads have it often. Of
    /// more twice as many for each bit that roots have to fit beyond.
    pub few: usize,
    /// Most k-mers that are held at all; each takes 30 to 45 bytes.
    pub most: usize,
}

/// See [`SampleParams::few`].
const SMALL: usize = 40_960_000;

impl SampleParams {
    /// Bases of a root.
    fn root(&self) -> usize {
        self.k as usize - 2
    }

    /// Most k-mers that are held of roots that fit so many bits.
    fn room(&self, level: u32) -> usize {
        let free = (SMALL / self.few.max(1)).max(1).ilog2();
        self.few.saturating_mul(1 << level.saturating_sub(free).min(31)).min(self.most)
    }

    /// Most k-mers that are held of a genome of so many bases.
    pub fn most_of(&self, bases: u64) -> u64 {
        let held = |level: u32| bases >> level <= self.room(level) as u64;
        let level = (0..64).find(|&level| held(level)).unwrap_or(64);
        (self.room(level) as u64).min(bases)
    }

    /// How many bits the root of a k-mer fits, the pattern's and then those of a hash.
    #[inline(always)]
    fn level(&self, key: u64) -> u32 {
        let (root, bases) = (key >> 4, self.root());
        let strong = |at: usize| (root >> (2 * at) ^ root >> (2 * at + 1)) & 1;
        let inner = bases / 2;
        for i in 0..PATTERNED.min(inner as u32) {
            let differ = strong(inner - 1 - i as usize) ^ strong(bases.div_ceil(2) + i as usize);
            if differ != u64::from(PATTERN >> i & 1) {
                return i;
            }
        }
        PATTERNED.min(inner as u32) + mixed(root.wrapping_mul(0xd6e8_feb8_6659_fd93)).leading_zeros()
    }
}

/// The sample that is being taken. Threads take it together.
#[derive(Debug)]
pub struct Sampling {
    params: SampleParams,
    level: AtomicU32,
    held: AtomicUsize,
    shards: Vec<Mutex<Counts>>,
    raising: Mutex<()>,
}

/// What was sampled, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    params: SampleParams,
    /// Bits that roots had to fit: one root in two to this power is there.
    level: u32,
    counts: Vec<Count>,
}

/// A lock. Who panicked with it has left the counts as they are, and the panic goes on in its thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Sampling {
    /// Nothing yet.
    pub fn new(params: SampleParams) -> Sampling {
        Sampling {
            params,
            level: AtomicU32::new(0),
            held: AtomicUsize::new(0),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            raising: Mutex::default(),
        }
    }

    /// For one thread.
    pub fn sampler(&self) -> Sampler<'_> {
        Sampler {
            sampling: self,
            level: 0,
            held: vec![[Held::default(); HELD]; SHARDS],
            filled: [0; SHARDS],
            found: Vec::new(),
            fitting: Fitting::default(),
        }
    }

    /// Lets `add` add k-mers to a shard, told how many bits their roots have to fit.
    fn add(&self, shard: usize, add: impl FnOnce(&mut Counts, u32)) {
        let mut own = lock(&self.shards[shard]);
        // Who raises it comes to this shard afterwards.
        let level = self.level.load(Relaxed);
        let before = own.len;
        add(&mut own, level);
        // While the shard is locked: who takes some of them out would else count them off before they were counted.
        let more = own.len - before;
        let all = self.held.fetch_add(more, Relaxed) + more;
        drop(own);
        if more > 0 && all > self.params.room(level) {
            self.make_room();
        }
    }

    /// Leaves half of the roots out, as often as there are too many.
    fn make_room(&self) {
        let _one = lock(&self.raising);
        loop {
            let level = self.level.load(Relaxed);
            if self.held.load(Relaxed) <= self.params.room(level) {
                return;
            }
            self.level.store(level + 1, Relaxed);
            self.keep(level + 1);
        }
    }

    /// Keeps the roots that fit so many bits.
    fn keep(&self, level: u32) {
        for shard in &self.shards {
            let mut own = lock(shard);
            let (before, places) = (own.len, own.slots.len());
            own.rebuild(places, |key| self.params.level(key) >= level);
            self.held.fetch_sub(before - own.len, Relaxed);
        }
    }

    /// Adds what was sampled elsewhere, in the same way.
    pub fn add_sampled(&self, other: &Sampled) {
        {
            let _one = lock(&self.raising);
            if self.level.load(Relaxed) < other.level {
                self.level.store(other.level, Relaxed);
                self.keep(other.level);
            }
        }
        let mut by_shard: Vec<Vec<Count>> = vec![Vec::new(); SHARDS];
        for piece in other.counts.chunks(1 << 16) {
            piece.iter().for_each(|count| by_shard[shard_of(count.0)].push(*count));
            for (shard, counts) in by_shard.iter_mut().enumerate() {
                self.add(shard, |own, level| {
                    counts.retain(|(key, _)| other.level >= level || self.params.level(*key) >= level);
                    own.add(counts);
                });
                counts.clear();
            }
        }
    }

    /// All that was sampled, when all samplers have ended.
    pub fn finish(self) -> Sampled {
        self.make_room();
        let level = self.level.load(Relaxed);
        let mut counts = Vec::with_capacity(self.held.load(Relaxed));
        for shard in self.shards {
            let own = shard.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
            counts.extend(own.slots.into_iter().filter(|(key, _)| *key != FREE));
        }
        counts.sort_unstable_by_key(|count| count.0);
        Sampled { params: self.params, level, counts }
    }
}

fn shard_of(key: u64) -> usize {
    // Places of the table are by the highest bits.
    (mixed(key >> 4) >> 20) as usize % SHARDS
}

/// Takes the sample of the pairs that one thread sees.
#[derive(Debug)]
pub struct Sampler<'a> {
    sampling: &'a Sampling,
    /// How many bits all fit that is held back.
    level: u32,
    /// By shard, and how many these are.
    held: Vec<[Held; HELD]>,
    filled: [usize; SHARDS],
    found: Vec<u64>,
    fitting: Fitting,
}

impl Sampler<'_> {
    /// Looks at a pair of a sample, as it was cut; its packed bases may go on behind that.
    pub fn see(&mut self, pair: Pair<'_>, packed: [Packed<'_>; 2], sample: u8) {
        let level = self.sampling.level.load(Relaxed);
        if level != self.level {
            self.raise(level);
        }
        let params = &self.sampling.params;
        self.found.clear();
        self.fitting.look(pair.mates.map(|mate| mate.seq.len()), packed, params, level);
        let (fitting, found) = (self.fitting.of_mates(), &mut self.found);
        widest(
            #[inline(always)]
            || {
                for ((mate, packed), fit) in pair.mates.into_iter().zip(packed).zip(fitting) {
                    find(mate, packed, params, level, fit, found);
                }
            },
        );
        if self.found.is_empty() {
            return;
        }
        let who = u32::from(sample) << 5 | (begin(&pair, packed) & 31) as u32;
        let mut found = std::mem::take(&mut self.found);
        // A pair is one molecule, which says a thing once: not twice where its mates overlap, and nothing where it has a root in two places. Mostly all are
        // different, which a bit for each shows.
        let mut roots = 0u64;
        found.iter().for_each(|key| roots |= 1 << (mixed(key >> 4) & 63));
        if roots.count_ones() as usize == found.len() {
            found.iter().for_each(|&key| self.put(key, who));
        } else {
            found.sort_unstable();
            for own in found.chunk_by(|a, b| a >> 4 == b >> 4) {
                if own.iter().all(|key| *key == own[0]) {
                    self.put(own[0], who);
                }
            }
        }
        self.found = found;
    }

    /// Leaves out what does not fit so many bits.
    #[cold]
    fn raise(&mut self, level: u32) {
        let params = self.sampling.params;
        for (held, filled) in self.held.iter_mut().zip(&mut self.filled) {
            *filled = keep(&mut held[..*filled], |key| params.level(key) >= level);
        }
        self.level = level;
    }

    #[inline(always)]
    fn put(&mut self, key: u64, who: u32) {
        let shard = shard_of(key);
        let at = self.filled[shard];
        self.held[shard][at] = (key, who);
        self.filled[shard] = at + 1;
        if at + 1 == HELD {
            self.pass_on(shard);
        }
    }

    /// Counts what is held back of a shard.
    #[inline(never)]
    fn pass_on(&mut self, shard: usize) {
        let (fit, params) = (self.level, self.sampling.params);
        let held = &mut self.held[shard][..std::mem::take(&mut self.filled[shard])];
        self.sampling.add(shard, |own, level| {
            let kept = if level > fit { keep(held, |key| params.level(key) >= level) } else { held.len() };
            own.take(&held[..kept]);
        });
    }
}

/// Moves those that are to be kept to the front, and says how many they are.
fn keep(held: &mut [Held], kept: impl Fn(u64) -> bool) -> usize {
    let mut n = 0;
    for i in 0..held.len() {
        if kept(held[i].0) {
            held[n] = held[i];
            n += 1;
        }
    }
    n
}

impl Drop for Sampler<'_> {
    fn drop(&mut self) {
        (0..SHARDS).for_each(|shard| self.pass_on(shard));
    }
}

/// A hash of how both mates begin, which of them is the first or not.
fn begin(pair: &Pair<'_>, packed: [Packed<'_>; 2]) -> u64 {
    const BASES: usize = 16;
    let word = |i: usize| {
        let bases = pair.mates[i].seq.len().min(BASES);
        let word = packed[i].word(0) >> (2 * (WORD - BASES)) >> (2 * (BASES - bases));
        mixed(1 << (2 * bases) | word)
    };
    mixed(word(0).wrapping_add(word(1))) >> 32
}

/// Where k-mers begin in both mates whose roots fit the pattern.
#[derive(Debug, Default)]
struct Fitting {
    /// The bases of one mate behind those of the other, each with some of nothing behind it.
    words: Vec<u64>,
    /// A bit for each base, from the highest on: whether it is strong.
    strong: Vec<u64>,
    /// The same of k-mers: whether one begins there that fits.
    fit: Vec<u64>,
    /// Words of `fit` that are the first mate's.
    first: usize,
}

/// Words of 64 bases that are looked at together.
const LANES: usize = 8;

impl Fitting {
    /// Looks at mates of so many bases, which may be cut.
    fn look(&mut self, bases: [usize; 2], packed: [Packed<'_>; 2], params: &SampleParams, level: u32) {
        self.words.clear();
        for (bases, packed) in bases.into_iter().zip(packed) {
            self.words.extend_from_slice(&packed.words()[..bases.div_ceil(WORD)]);
            let whole = self.words.len().next_multiple_of(2) + 2;
            self.words.resize(whole, 0);
        }
        self.first = bases[0].div_ceil(2 * WORD) + 1;
        let Fitting { words, strong, fit, .. } = self;
        // The root of a k-mer begins a base behind it.
        widest(
            #[inline(always)]
            || fits(words, params.root(), 1, level, strong, fit),
        );
    }

    /// Those of each mate.
    fn of_mates(&self) -> [&[u64]; 2] {
        let (one, two) = self.fit.split_at(self.first);
        [one, two]
    }
}

/// Puts into `fit` a bit for each base of `words`: whether a root of so many bases that begins `behind` bases behind it, 1 at most, fits so many bits of the pattern.
#[inline(always)]
fn fits(
    words: &mut Vec<u64>,
    root: usize,
    behind: u32,
    level: u32,
    strong: &mut Vec<u64>,
    fit: &mut Vec<u64>,
) {
    words.resize(words.len().next_multiple_of(2 * LANES), 0);
    let all = words.len() / 2;
    strong.resize(all + 1, 0);
    fit.resize(all, 0);
    strong[all] = 0;
    let lanes = strong.as_chunks_mut::<LANES>().0.iter_mut().zip(words.as_chunks::<{ 2 * LANES }>().0);
    for (strong, words) in lanes {
        for i in 0..LANES {
            strong[i] = strong_of(words[2 * i]) << 32 | strong_of(words[2 * i + 1]);
        }
    }
    for (at, fit) in fit.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let (mut here, mut next) = ([0; LANES], [0; LANES]);
        here.copy_from_slice(&strong[at * LANES..][..LANES]);
        next.copy_from_slice(&strong[at * LANES + 1..][..LANES]);
        let mut fits = [u64::MAX; LANES];
        for i in 0..level.min(PATTERNED).min(root as u32 / 2) {
            let (one, other) = (behind + root as u32 / 2 - 1 - i, behind + (root as u32).div_ceil(2) + i);
            let flip = if PATTERN >> i & 1 == 1 { 0 } else { u64::MAX };
            for lane in 0..LANES {
                // Shifting by 64 is not defined, so the second word moves in two steps.
                let at = |from: u32| (here[lane] << from) | (next[lane] >> 1 >> (63 - from));
                fits[lane] &= at(one) ^ at(other) ^ flip;
            }
        }
        *fit = fits;
    }
}

/// What the roots are like that were sampled, so that most of a genome need not be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Bases of a root.
    pub bases: u32,
    /// Bits of the pattern that it fits.
    level: u32,
}

impl Shape {
    /// Of all roots of so many bases.
    pub fn of_all(bases: u32) -> Shape {
        Shape { bases, level: 0 }
    }

    /// Puts into `fit` a bit for each place in packed bases, 64 to a word, the first the highest: whether a root that begins there could have been sampled. What reaches beyond
    /// the bases may be told of, too. `memory` is for using it again.
    pub fn find(&self, packed: Packed<'_>, memory: &mut [Vec<u64>; 2], fit: &mut Vec<u64>) {
        let [words, strong] = memory;
        words.clear();
        words.extend_from_slice(packed.words());
        widest(
            #[inline(always)]
            || fits(words, self.bases as usize, 0, self.level, strong, fit),
        );
    }
}

/// Appends the k-mers of a mate whose bases are good and whose roots fit `level` bits, of which `fit` says those of the pattern.
#[inline(always)]
fn find(
    mate: Mate<'_>,
    packed: Packed<'_>,
    params: &SampleParams,
    level: u32,
    fit: &[u64],
    found: &mut Vec<u64>,
) {
    let (k, root) = (params.k as usize, params.root());
    let Some(last) = mate.seq.len().checked_sub(k) else { return };
    let asked = level.min(PATTERNED).min(root as u32 / 2);
    for (word, fit) in fit.iter().enumerate().take(last / 64 + 1) {
        let start = 64 * word;
        let mut fit = fit & (u64::MAX << (63 - (last - start).min(63)));
        let before = found.len();
        found.resize(before + fit.count_ones() as usize, 0);
        let mut n = before;
        // Without a branch that depends on the bases, as there is no telling.
        while fit != 0 {
            let one = fit.leading_zeros();
            fit ^= 1 << (63 - one);
            let here = start + one as usize;
            let (key, turns) = key_of(packed.word(here) >> (2 * (WORD - k)), params.k);
            found[n] = key;
            let mut good = is_good(&mate.qual[here..here + k], params.quality) & !turns;
            if packed.foreign {
                good &= mate.seq[here..here + k].iter().all(|&base| dna::code(base) < 4);
            }
            if level > asked {
                good &= params.level(key) >= level;
            }
            n += usize::from(good);
        }
        found.truncate(n);
    }
}

/// A bit for each of the 32 bases of a word: whether it is C or G.
#[inline(always)]
fn strong_of(word: u64) -> u64 {
    // The two bits of C and G differ.
    let mut x = (word ^ word >> 1) & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0xffff_ffff
}

/// Whether the quality letters of a k-mer are good enough inside and at both ends.
#[inline(always)]
fn is_good(qual: &[u8], [inner, ends]: [u8; 2]) -> bool {
    let [Some(first), Some(last)] = [qual.first(), qual.last()] else { return false };
    let inside = match (qual.first_chunk(), qual.last_chunk()) {
        // They overlap.
        (Some(begin), Some(end)) => are_good([begin, end], inner + 33),
        _ => qual.iter().all(|&letter| letter >= inner + 33),
    };
    inside & (*first.min(last) >= ends + 33)
}

/// Whether no letter is below `lowest`, which is below 128.
#[inline(always)]
fn are_good(letters: [&[u8; 16]; 2], lowest: u8) -> bool {
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    let lowest = (HIGHEST >> 7) * u64::from(lowest);
    let good = letters.into_iter().fold(HIGHEST, |good, letters| {
        let both = u128::from_le_bytes(*letters);
        // The highest bit of each of eight letters stays, where the letter is not below the lowest.
        [both as u64, (both >> 64) as u64]
            .into_iter()
            .fold(good, |good, eight| good & (eight | ((eight | HIGHEST) - lowest)))
    });
    good == HIGHEST
}

/// The key of a k-mer, and whether its root is its own reverse complement: then it says nothing.
#[inline(always)]
fn key_of(kmer: u64, k: u32) -> (u64, bool) {
    let bases = k - 2;
    let (first, last) = (kmer >> (2 * (k - 1)), kmer & 3);
    let root = (kmer >> 2) & mask(bases);
    let reverse = revcomp(root, bases);
    let [one, other] = [root << 4 | first << 2 | last, reverse << 4 | (3 - last) << 2 | (3 - first)];
    (if root < reverse { one } else { other }, root == reverse)
}

/// Which roots were sampled. Hardly any that is asked about is there: a bit says so of most.
#[derive(Debug)]
pub struct Known<'a> {
    counts: &'a [Count],
    /// Sixteen bits for each k-mer.
    sieve: Vec<u64>,
}

impl Known<'_> {
    /// Where the bit of a root is.
    #[inline(always)]
    fn bit(&self, root: u64) -> (usize, u64) {
        let hash = mixed(root);
        (((u128::from(hash) * self.sieve.len() as u128) >> 64) as usize, 1 << (hash & 63))
    }

    /// Whether a root is there, as it is smaller of both strands.
    #[inline]
    pub fn has(&self, root: u64) -> bool {
        let (word, bit) = self.bit(root);
        self.sieve[word] & bit > 0 && {
            let at = self.counts.partition_point(|count| count.0 >> 4 < root);
            self.counts.get(at).is_some_and(|count| count.0 >> 4 == root)
        }
    }
}

/// Molecules that have a k-mer, where such a share of pairs are `copies`.
fn molecules(seen: Seen, copies: f64) -> u32 {
    seen.molecules().unwrap_or_else(|| (f64::from(seen.pairs) * (1.0 - copies)).round() as u32)
}

impl Sampled {
    /// Share of all roots that are there.
    pub fn share(&self) -> f64 {
        (-f64::from(self.level)).exp2()
    }

    /// Bases of a root.
    pub(crate) fn root_bases(&self) -> u32 {
        self.params.k - 2
    }

    /// What the roots are like.
    pub fn shape(&self) -> Shape {
        Shape { bases: self.root_bases(), level: self.level }
    }

    /// To ask whether a root is there.
    pub fn known(&self) -> Known<'_> {
        let mut known = Known { counts: &self.counts, sieve: vec![0; (self.counts.len() / 4).max(1)] };
        for (key, _) in &self.counts {
            let (word, bit) = known.bit(key >> 4);
            known.sieve[word] |= bit;
        }
        known
    }

    /// Share of each sample's pairs that are copies of another, as far as sampled k-mers of up to 16 pairs tell: less than there are where it is deeper.
    pub fn copies(&self) -> [f64; 2] {
        [0, 1].map(|s| {
            let told =
                self.counts.iter().map(|(_, seen)| seen[s]).filter(|seen| (4..=16).contains(&seen.pairs));
            let sum = told.fold([0.0; 2], |sum, seen| match seen.expected() {
                Some(molecules) => [sum[0] + f64::from(seen.pairs), sum[1] + molecules],
                None => sum,
            });
            if sum[0] < 1000.0 { 0.0 } else { (1.0 - sum[1] / sum[0]).max(0.0) }
        })
    }

    /// Every root, how many pairs of each sample have it, and in how many molecules. Pairs are as many times more wherever there are more of them; molecules are
    /// counted less well where many have a k-mer, so that stretches that are deeper would seem deeper still.
    pub fn depths(&self) -> impl Iterator<Item = (u64, [u32; 2], [u32; 2])> + '_ {
        let copies = self.copies();
        self.counts.chunk_by(|a, b| a.0 >> 4 == b.0 >> 4).map(move |own| {
            let sum = |of: &dyn Fn(Seen, usize) -> u32| {
                [0, 1].map(|s| own.iter().fold(0u32, |sum, (_, seen)| sum.saturating_add(of(seen[s], s))))
            };
            (own[0].0 >> 4, sum(&|seen, _| seen.pairs), sum(&|seen, s| molecules(seen, copies[s])))
        })
    }

    /// Every root with its counters, in molecules.
    pub fn roots(&self) -> impl Iterator<Item = RootCounters> + '_ {
        self.roots_and_copies().map(|(root, _)| root)
    }

    /// The same, and how many molecules of each sample begin like another one of the sample that has the root with other bases beside it: copies of one, of
    /// which one is wrong, or two by chance. Where copies are alike they are one molecule.
    pub fn roots_and_copies(&self) -> impl Iterator<Item = (RootCounters, [u32; 2])> + '_ {
        let copies = self.copies();
        self.counts.chunk_by(|a, b| a.0 >> 4 == b.0 >> 4).map(move |own| {
            let mut counts = [[0; 2]; 16];
            let mut twice = [0; 2];
            for (i, (key, seen)) in own.iter().enumerate() {
                counts[(key & 15) as usize] = [molecules(seen[0], copies[0]), molecules(seen[1], copies[1])];
                for (_, before) in &own[..i] {
                    twice
                        .iter_mut()
                        .enumerate()
                        .for_each(|(s, n)| *n += (before[s].begin & seen[s].begin).count_ones());
                }
            }
            (RootCounters { stem: own[0].0 >> 4, counts }, twice)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use genuma_kmers::encode::pack;
    use genuma_reads::packed::Codes;

    use super::*;

    /// As often as molecules with beginnings that are drawn show it.
    #[test]
    fn molecules_are_told_as_often_as_chance_has_it() {
        let mut seed = 3u64;
        let mut begin = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            seed >> 40
        };
        for (molecules, chances) in told().iter().enumerate() {
            let mut seen = [0u32; TOLD + 1];
            const TRIES: u32 = 20_000;
            for _ in 0..TRIES {
                let mut all = Seen::default();
                (0..molecules).for_each(|_| all.add(Seen::once(begin())));
                seen[all.molecules().unwrap() as usize] += 1;
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

    /// Pairs of a random genome, on both strands: mates of 100 bases, fragments of 150 to 450.
    fn pairs(genome: &[u8], n: usize) -> Vec<[Vec<u8>; 2]> {
        let piece = |i: usize| {
            let (start, len) = ((i * 7919) % (genome.len() - 450), 150 + (i * 31) % 300);
            let fragment = &genome[start..start + len];
            let fragment = if i.is_multiple_of(2) { fragment.to_vec() } else { dna::revcomp(fragment) };
            [fragment[..100].to_vec(), dna::revcomp(&fragment)[..100].to_vec()]
        };
        (0..n).map(piece).collect()
    }

    fn packed(seq: &[u8]) -> Codes {
        let mut codes = Codes::default();
        codes.load(seq, seq, 0);
        codes
    }

    fn sampled(pairs: &[[Vec<u8>; 2]], qual: &[u8], params: SampleParams) -> Sampled {
        let sampling = Sampling::new(params);
        let mut sampler = sampling.sampler();
        for (i, [a, b]) in pairs.iter().enumerate() {
            let mate = |seq| Mate { seq, qual };
            let codes = [a, b].map(|seq| packed(seq));
            let pair = Pair { name: b"p", mates: [mate(a), mate(b)] };
            sampler.see(pair, codes.each_ref().map(Codes::packed), (i % 2) as u8);
        }
        drop(sampler);
        sampling.finish()
    }

    #[test]
    fn what_is_sampled_are_the_roots_that_fit_each_once_a_pair() {
        let genome = random(4_000, 1);
        let pairs = pairs(&genome, 400);
        for k in [24, 25, 31, 32] {
            let params = SampleParams { k, quality: [20, 30], few: usize::MAX, most: usize::MAX };
            // By letters.
            let mut expected: BTreeMap<u64, [Seen; 2]> = BTreeMap::new();
            for (i, mates) in pairs.iter().enumerate() {
                let keys = |seq: &Vec<u8>| -> Vec<u64> {
                    seq.windows(k as usize)
                        .map(|w| key_of(pack(w).unwrap(), k))
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
                let once = begin(&Pair { name: b"p", mates: [b, a] }, [two.packed(), one.packed()]);
                let once = Seen::once(once);
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
                let params = SampleParams { few, most, ..params };
                let part = sampled(&pairs, &[70; 100], params);
                let fits: Vec<_> =
                    expected.iter().filter(|(key, _)| params.level(**key) >= part.level).collect();
                assert!(
                    part.counts.iter().map(|(key, count)| (key, count)).eq(fits.iter().copied()),
                    "{few} {most}"
                );
                let fit = |level| expected.keys().filter(|key| params.level(**key) >= level).count();
                assert!(part.counts.len() <= params.room(part.level));
                assert!((0..part.level).all(|level| fit(level) > params.room(level)), "as many as have room");
                // In another order, and in two shards.
                let turned: Vec<_> = pairs.iter().rev().cloned().collect();
                assert_eq!(pairs.len() % 2, 0);
                let other = sampled(&turned, &[70; 100], params);
                let swapped = |c: &(u64, [Seen; 2])| (c.0, [c.1[1], c.1[0]]);
                assert!(
                    other.level == part.level && other.counts.iter().map(swapped).eq(part.counts.clone())
                );
                let together = Sampling::new(params);
                for shard in [&pairs[..100], &pairs[100..]] {
                    together.add_sampled(&sampled(shard, &[70; 100], params));
                }
                assert_eq!(together.finish(), part);
            }
        }
    }

    #[test]
    fn places_of_roots_that_fit_are_found() {
        let seq = random(333, 3);
        for (bases, level) in
            [(29, 0), (29, 1), (29, 4), (29, 10), (29, 14), (30, 5), (23, 3), (10, 5), (11, 2)]
        {
            let params = SampleParams { k: bases + 2, quality: [0; 2], few: 1, most: 1 };
            let (mut memory, mut fit) = Default::default();
            Shape { bases, level }.find(packed(&seq).packed(), &mut memory, &mut fit);
            for (at, root) in seq.windows(bases as usize).enumerate() {
                let fits = params.level(pack(root).unwrap() << 4) >= level.min(PATTERNED).min(bases / 2);
                assert_eq!(fit[at / 64] << (at % 64) >> 63 == 1, fits, "{bases} {level} {at}");
            }
        }
    }

    #[test]
    fn both_strands_fit_alike_and_poor_bases_do_not_count() {
        let params = SampleParams { k: 31, quality: [20, 30], few: usize::MAX, most: usize::MAX };
        let seq = random(3_000, 5);
        let levels = |seq: &[u8]| -> Vec<u32> {
            let keys = seq.windows(31).map(|w| key_of(pack(w).unwrap(), 31));
            keys.map(|(key, _)| params.level(key)).collect()
        };
        let (here, mut there) = (levels(&seq), levels(&dna::revcomp(&seq)));
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
        // Whatever its quality, no letter but a base counts.
        let mut unknown = one.clone();
        unknown[0][0][50] = b'N';
        assert_eq!(sampled(&unknown, &qual, params).counts.len(), 140 - 31);
        for (length, at, letter) in
            (12..=32).flat_map(|k| (0..k).map(move |at| (k, at, 33 + (7 * at % 50) as u8)))
        {
            let mut qual = vec![33 + 30; length];
            qual[at] = letter;
            let wanted = if at == 0 || at == length - 1 { 30 } else { 20 };
            assert_eq!(is_good(&qual, [20, 30]), letter - 33 >= wanted, "{length} {at} {letter}");
        }
    }

    #[test]
    fn copies_of_a_molecule_are_one() {
        let genome = random(100_000, 9);
        let pairs = pairs(&genome, 4_000);
        let params = SampleParams { k: 31, quality: [20, 30], few: usize::MAX, most: usize::MAX };
        let depth = |of: &Sampled| {
            of.roots().flat_map(|root| root.counts).map(|c| u64::from(c[0] + c[1])).sum::<u64>()
        };
        let once = sampled(&pairs, &[70; 100], params);
        let copied: Vec<_> = pairs.iter().flat_map(|pair| [pair, pair, pair]).cloned().collect();
        // Every pair three times, in both samples in turn: each has it one and a half times.
        let thrice = sampled(&copied, &[70; 100], params);
        assert!(
            once.copies()[0] < 0.03 && thrice.copies().iter().all(|c| (0.28..0.42).contains(c)),
            "{:?}",
            thrice.copies()
        );
        let (one, three) = (depth(&once) as f64, depth(&thrice) as f64);
        assert!(three < 2.2 * one, "{one} {three}");
    }
}
