//! A sample of the roots of both samples, counted in good bases only, while reads are read for something else.
//!
//! Joint counters of all k-mers are full of the sequencer's errors, beside which a hundredth of another person does not show. So some roots are counted once
//! more, and only where all bases of the k-mer are good, once for a pair, however its mates overlap, and once for all PCR copies of it. Which roots depends on their bases alone: whether
//! each of the two bases that are equally far from the middle is strong (C, G) says one bit that is the same on both strands, and the first bits must
//! be those of a pattern. That is a few operations on 64 places at once. As more roots come than there is room for, one bit more is asked for and
//! half of them go: so what is there in the end depends neither on the order of the reads nor on threads nor on the shards that were added up.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use genuma_kmers::RootCounters;
use genuma_kmers::encode::{mask, revcomp};
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
const HELD: usize = 256;

/// The counts of k-mers: the root in the upper bits, as it is smaller of both strands; then the base before it and the one behind.
type Count = (u64, [Seen; 2]);

/// The counts of some k-mers. They come one by one to the end of a list, which is sorted now and then and goes into the sorted ones: a table
/// that no cache holds took more than twice as long.
#[derive(Debug, Default)]
struct Counts {
    sorted: Vec<Count>,
    pending: Vec<Count>,
}

/// Fewest k-mers that are sorted together.
const TOGETHER: usize = 1 << 12;

impl Counts {
    /// Whether it is time to sort.
    fn is_full(&self) -> bool {
        self.pending.len() >= TOGETHER.max(self.sorted.len() / 2)
    }

    /// Sorts what has come.
    fn settle(&mut self) {
        let Counts { sorted, pending } = self;
        pending.sort_unstable_by_key(|count| count.0);
        let mut all: Vec<Count> = Vec::with_capacity(sorted.len() + pending.len() / 4);
        let mut push = |count: Count| match all.last_mut().filter(|last| last.0 == count.0) {
            Some(last) => last.1.iter_mut().zip(count.1).for_each(|(a, b)| a.add(b)),
            None => all.push(count),
        };
        let mut known = sorted.drain(..).peekable();
        for count in pending.drain(..) {
            while let Some(before) = known.next_if(|before| before.0 <= count.0) {
                push(before);
            }
            push(count);
        }
        known.for_each(push);
        *sorted = all;
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

    fn add(&mut self, other: Seen) {
        self.pairs = self.pairs.saturating_add(other.pairs);
        self.begin |= other.begin;
    }

    /// Molecules, on average of such sets of bits, where that can be told: chance puts two molecules on one bit as often as is reckoned in.
    fn expected(self) -> Option<f64> {
        let bits = f64::from(self.begin.count_ones());
        (bits <= 16.0).then(|| -32.0 * (1.0 - bits / 32.0).ln())
    }

    /// Molecules, where that can be told.
    fn molecules(self) -> Option<u32> {
        self.expected().map(|molecules| (molecules.round() as u32).min(self.pairs))
    }
}

/// Spreads keys, which are no one's to choose.
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
    /// Most k-mers that are held of all roots, and twice as many for each bit that roots have to fit: so that of a small genome, whose reads
    /// have each of them often, a smaller share of the reads costs time.
    pub whole: usize,
    /// Most k-mers that are held at all; each takes some 36 bytes.
    pub most: usize,
}

impl SampleParams {
    /// Bases of a root.
    fn root(&self) -> usize {
        self.k as usize - 2
    }

    /// Most k-mers that are held of roots that fit so many bits.
    fn room(&self, level: u32) -> usize {
        self.whole.saturating_mul(1 << level.min(31)).min(self.most)
    }

    /// How many bits the root of a k-mer fits, the pattern's and then those of a hash.
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
            held: (0..SHARDS).map(|_| Vec::with_capacity(HELD)).collect(),
            found: Vec::new(),
            strong: Vec::new(),
        }
    }

    /// Adds occurrences of k-mers of one shard.
    fn add(&self, shard: usize, counts: impl Iterator<Item = Count>) {
        let level = self.level.load(Relaxed);
        let mut own = lock(&self.shards[shard]);
        own.pending.extend(counts.filter(|(key, _)| level == 0 || self.params.level(*key) >= level));
        if !own.is_full() {
            return;
        }
        let more = self.settle(&mut own);
        drop(own);
        if more > self.params.room(level) {
            self.make_room();
        }
    }

    /// Sorts what has come of a shard, and says how many k-mers all shards hold.
    fn settle(&self, own: &mut Counts) -> usize {
        let before = own.sorted.len();
        own.settle();
        // While the shard is locked: who takes some of them out would else count them off before they were counted.
        let more = own.sorted.len() - before;
        self.held.fetch_add(more, Relaxed) + more
    }

    /// Leaves half of the roots out, as often as there are too many.
    fn make_room(&self) {
        let _one = lock(&self.raising);
        loop {
            let level = self.level.load(Relaxed);
            let room = self.params.room(level);
            if self.held.load(Relaxed) <= room {
                return;
            }
            // Some may have come that were asked for before.
            if self.keep(level) > room {
                self.level.store(level + 1, Relaxed);
                self.keep(level + 1);
            }
        }
    }

    /// Keeps the roots that fit so many bits, and says how many k-mers these are.
    fn keep(&self, level: u32) -> usize {
        let mut all = 0;
        for shard in &self.shards {
            let mut own = lock(shard);
            let before = own.sorted.len();
            own.sorted.retain(|(key, _)| self.params.level(*key) >= level);
            own.pending.retain(|(key, _)| self.params.level(*key) >= level);
            self.held.fetch_sub(before - own.sorted.len(), Relaxed);
            all += own.sorted.len();
        }
        all
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
            for (shard, own) in by_shard.iter_mut().enumerate() {
                self.add(shard, own.drain(..));
            }
        }
    }

    /// All that was sampled, when all samplers have ended.
    pub fn finish(self) -> Sampled {
        for shard in &self.shards {
            self.settle(&mut lock(shard));
        }
        self.make_room();
        let level = self.level.load(Relaxed);
        self.keep(level);
        let own =
            |shard: Mutex<Counts>| shard.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut counts: Vec<Count> = self.shards.into_iter().flat_map(|shard| own(shard).sorted).collect();
        counts.sort_unstable();
        Sampled { params: self.params, level, counts }
    }
}

fn shard_of(key: u64) -> usize {
    // The table's own bits are the highest and the lowest.
    (mixed(key) >> 20) as usize % SHARDS
}

/// Takes the sample of the pairs that one thread sees.
#[derive(Debug)]
pub struct Sampler<'a> {
    sampling: &'a Sampling,
    held: Vec<Vec<Count>>,
    found: Vec<u64>,
    strong: Vec<u64>,
}

impl Sampler<'_> {
    /// Looks at a pair of a sample, as it was cut; its packed bases may go on behind that.
    pub fn see(&mut self, pair: Pair<'_>, packed: [Packed<'_>; 2], sample: u8) {
        let level = self.sampling.level.load(Relaxed);
        self.found.clear();
        for (mate, packed) in pair.mates.into_iter().zip(packed) {
            find(mate, packed, &self.sampling.params, level, &mut self.strong, &mut self.found);
        }
        if self.found.is_empty() {
            return;
        }
        let once = Seen::once(begin(&pair, packed));
        let seen = if sample == 0 { [once, Seen::default()] } else { [Seen::default(), once] };
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable();
        // A pair is one molecule, which says a thing once: not twice where its mates overlap, and nothing where it has a root in two places.
        for own in found.chunk_by(|a, b| a >> 4 == b >> 4) {
            if own.iter().all(|key| *key == own[0]) {
                self.put(own[0], seen);
            }
        }
        self.found = found;
    }

    fn put(&mut self, key: u64, seen: [Seen; 2]) {
        let shard = shard_of(key);
        let held = &mut self.held[shard];
        held.push((key, seen));
        if held.len() == HELD {
            self.sampling.add(shard, held.drain(..));
        }
    }
}

impl Drop for Sampler<'_> {
    fn drop(&mut self) {
        for (shard, held) in self.held.iter_mut().enumerate() {
            self.sampling.add(shard, held.drain(..));
        }
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

/// Appends the k-mers of a mate whose roots fit `level` bits and whose bases are good.
fn find(
    mate: Mate<'_>,
    packed: Packed<'_>,
    params: &SampleParams,
    level: u32,
    strong: &mut Vec<u64>,
    found: &mut Vec<u64>,
) {
    let (k, root) = (params.k as usize, params.root());
    let Some(last) = mate.seq.len().checked_sub(k) else { return };
    strong.clear();
    strong.extend((0..mate.seq.len()).step_by(2 * WORD).map(|at| strong_of(packed, at)));
    strong.push(0);
    // Which of 64 bases from one on are strong, the first in the highest bit.
    let at = |from: usize| {
        let (i, shift) = (from / 64, from % 64);
        (strong[i] << shift) | (strong.get(i + 1).copied().unwrap_or(0) >> 1 >> (63 - shift))
    };
    let asked = level.min(PATTERNED).min(root as u32 / 2);
    for start in (0..=last).step_by(64) {
        // The root of a k-mer begins a base behind it.
        let mut fit = u64::MAX << (63 - (last - start).min(63));
        for i in 0..asked as usize {
            let differ = at(start + root / 2 - i) ^ at(start + 1 + root.div_ceil(2) + i);
            fit &= if PATTERN >> i & 1 == 1 { differ } else { !differ };
        }
        while fit != 0 {
            let one = fit.leading_zeros();
            fit ^= 1 << (63 - one);
            let here = start + one as usize;
            let letters = &mate.seq[here..here + k];
            if is_good(&mate.qual[here..here + k], params.quality)
                && !(packed.foreign && letters.iter().any(|&letter| dna::code(letter) > 3))
            {
                let key = key_of(packed.word(here) >> (2 * (WORD - k)), params.k);
                found.extend(key.filter(|&key| level <= asked || params.level(key) >= level));
            }
        }
    }
}

/// A bit for each of 64 bases from one on: whether it is C or G.
fn strong_of(packed: Packed<'_>, at: usize) -> u64 {
    let half = |at: usize| {
        // The two bits of C and G differ.
        let word = packed.word(at);
        let mut x = (word ^ word >> 1) & 0x5555_5555_5555_5555;
        x = (x | x >> 1) & 0x3333_3333_3333_3333;
        x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
        x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
        x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
        (x | x >> 16) & 0xffff_ffff
    };
    half(at) << 32 | half(at + WORD)
}

/// Whether the quality letters of a k-mer, 12 at least, are good enough inside and at both ends.
fn is_good(qual: &[u8], [inner, ends]: [u8; 2]) -> bool {
    let (ends, last) = (ends + 33, qual.len() - 1);
    if qual[0] < ends || qual[last] < ends {
        return false;
    }
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    let lowest = (HIGHEST >> 7) * u64::from(inner + 33);
    // The highest bit of each of eight letters stays, where the letter is not below the lowest.
    let eight = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&qual[at..at + 8]);
        let letters = u64::from_le_bytes(bytes);
        letters | ((letters | HIGHEST) - lowest)
    };
    let whole = (0..=last - 7).step_by(8).fold(eight(last - 7), |all, at| all & eight(at));
    whole & HIGHEST == HIGHEST
}

/// The key of a k-mer whose root is not its own reverse complement.
fn key_of(kmer: u64, k: u32) -> Option<u64> {
    let bases = k - 2;
    let (first, last) = (kmer >> (2 * (k - 1)), kmer & 3);
    let root = (kmer >> 2) & mask(bases);
    let reverse = revcomp(root, bases);
    match root.cmp(&reverse) {
        std::cmp::Ordering::Less => Some(root << 4 | first << 2 | last),
        std::cmp::Ordering::Greater => Some(reverse << 4 | (3 - last) << 2 | (3 - first)),
        std::cmp::Ordering::Equal => None,
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
    pub fn root_bases(&self) -> u32 {
        self.params.k - 2
    }

    /// Whether a root is there, as it is smaller of both strands.
    pub fn has(&self, root: u64) -> bool {
        let at = self.counts.partition_point(|count| count.0 >> 4 < root);
        self.counts.get(at).is_some_and(|count| count.0 >> 4 == root)
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
            let params = SampleParams { k, quality: [20, 30], whole: usize::MAX, most: usize::MAX };
            // By letters.
            let mut expected: BTreeMap<u64, [Seen; 2]> = BTreeMap::new();
            for (i, mates) in pairs.iter().enumerate() {
                let keys = |seq: &Vec<u8>| -> Vec<u64> {
                    seq.windows(k as usize).filter_map(|w| key_of(pack(w)?, k)).collect()
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
            for (whole, most) in [3_000, 500, 100, 2].map(|most| (usize::MAX, most)).into_iter().chain([
                (40, usize::MAX),
                (1_000, usize::MAX),
                (3, 90),
            ]) {
                let params = SampleParams { whole, most, ..params };
                let part = sampled(&pairs, &[70; 100], params);
                let fits: Vec<_> =
                    expected.iter().filter(|(key, _)| params.level(**key) >= part.level).collect();
                assert!(
                    part.counts.iter().map(|(key, count)| (key, count)).eq(fits.iter().copied()),
                    "{whole} {most}"
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
    fn both_strands_fit_alike_and_poor_bases_do_not_count() {
        let params = SampleParams { k: 31, quality: [20, 30], whole: usize::MAX, most: usize::MAX };
        let seq = random(3_000, 5);
        let levels = |seq: &[u8]| -> Vec<u32> {
            let keys = seq.windows(31).filter_map(|w| key_of(pack(w)?, 31));
            keys.map(|key| params.level(key)).collect()
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
        let params = SampleParams { k: 31, quality: [20, 30], whole: usize::MAX, most: usize::MAX };
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
