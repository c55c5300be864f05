//! How a counter divides its memory.

use genuma_reads::Estimate;

use crate::collapse::piece_bytes;
use crate::minimizer::minimizer_length;
use crate::parts::{Grid, MAX_PARTS};
use crate::superkmer::MAX_RECORD;
use crate::tally::{MIN_SLOTS, slot_bytes};
use crate::{CountParams, MAX_SAMPLES, SPECTRUM_SLOTS};

/// K-mers a bin should have: at 30-fold depth or more their table then fits a core's own cache.
const KMERS_PER_BIN: u64 = 1 << 18;

/// Bytes of super-k-mers over their k-mers, about.
const BYTES_PER_KMER: (u64, u64) = (5, 4);

const KIB: u64 = 1024;
const MIN_BINS: u64 = 16;
const MAX_BINS: u64 = 1 << 14;
/// Bins of a partition where there are many partitions.
const FEWEST_OF_PART: u64 = 4;
/// Bins for each part that counted k-mers are sorted in.
const BINS_PER_PART: u64 = 4;
const MIN_EXTENT: u64 = 4 * KIB;
const MAX_EXTENT: u64 = 256 * KIB;
const MIN_PRIVATE: u64 = 256;
const MAX_PRIVATE: u64 = 512;
const MIN_PIECES: usize = 64;
const MAX_PIECES: usize = 8192;
/// Fewer bins rather than smaller extents, as long as there are bins enough.
const GOOD_EXTENT: u64 = 16 * KIB;

/// What is expected of reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// K-mers.
    pub kmers: u64,
    /// Bytes of their super-k-mers.
    pub bytes: u64,
}

impl Expected {
    /// Of so many reads and bases, as `k`-mers, which may be out of range. It decides on speed only: what is wrong with it costs time.
    pub fn of(reads: &Estimate, k: u32) -> Self {
        let k = k.clamp(crate::MIN_K, crate::MAX_K);
        let kmers = reads.kmers(k);
        // A minimizer is the smallest of so many m-mers, and another one comes twice in as many k-mers and one. The head of a record, the
        // bases that its k-mers share, and the bits that are left over in its last byte.
        let window = u64::from(k - 1 - minimizer_length(k));
        let records = kmers * 2 / (window + 1) + reads.reads.min(kmers);
        let bytes = records * (8 + 3 + 2 * u64::from(k - 1)) / 8 + kmers / 4;
        Self { kmers, bytes }
    }

    /// The same of one of `parts` partitions.
    pub fn share(&self, parts: u32) -> Self {
        Self { kmers: self.kmers / u64::from(parts), bytes: self.bytes / u64::from(parts) }
    }
}

/// Fewest partitions of the k-mer space of which each is expected to fit, if not more than [`MAX_PARTS`].
pub fn parts_wanted<const S: usize>(expected: &Expected, params: &CountParams) -> Option<u32> {
    let fits = |&parts: &u32| {
        let Expected { kmers, bytes } = expected.share(parts);
        let plan = Plan::new(&Demand::new::<S>(kmers, params.threads, Then::Seen), params.for_threads());
        // A sixteenth is for what the reads are other than expected.
        bytes + bytes / 16 <= plan.holds(params.scratch)
    };
    (1..=MAX_PARTS).find(fits)
}

/// What a count is expected to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// Partitions of the k-mer space, each in a reading of all reads.
    pub parts: u32,
    /// Bytes of memory in use at once, at most.
    pub memory: u64,
    /// Bytes of the spill file of one partition.
    pub spilled: u64,
}

/// The grid for so many k-mers in so many partitions: bins as small as in a count of them all by one process.
pub fn grid(kmers: u64, parts: u32) -> Grid {
    let parts = parts.clamp(1, MAX_PARTS);
    let bins = (kmers / KMERS_PER_BIN).clamp(MIN_BINS, MAX_BINS) / u64::from(parts);
    Grid { parts, bins: bins.max(FEWEST_OF_PART) as u32 }
}

/// The least memory in which `threads` threads can scatter into a grid, in bytes.
pub fn least_for_grid(grid: Grid, threads: usize) -> u64 {
    let (bins, demand) = (grid.all() as u64, Demand::new::<MAX_SAMPLES>(0, threads, Then::Sorted));
    let threads = threads as u64;
    let bins = (4 * bins * MIN_EXTENT).max(8 * bins * threads * MIN_PRIVATE);
    least_memory(threads as usize).max(bins + threads * demand.thread)
}

/// What a count is expected to take; `None` when more than [`MAX_PARTS`] partitions would be needed.
pub fn planned<const S: usize>(expected: &Expected, params: &CountParams) -> Option<Planned> {
    let parts = parts_wanted::<S>(expected, params)?;
    let Expected { kmers, bytes } = expected.share(parts);
    let demand = Demand::new::<S>(kmers, params.threads, Then::Seen);
    let plan = Plan::new(&demand, params.for_threads());
    let spilled = bytes.saturating_sub(plan.holds(0));
    Some(Planned { parts, memory: plan.takes(&demand, bytes), spilled })
}

/// What the memory is divided for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// K-mers that are expected.
    pub kmers: u64,
    /// Threads.
    pub threads: usize,
    /// Bytes of a slot of a table.
    slot: usize,
    /// Bytes of a super-k-mer on hold.
    piece: usize,
    /// Bytes a thread needs beside buffers and tables: spectra, one read's minimizers.
    thread: u64,
    /// What comes of counted k-mers.
    pub then: Then,
}

/// What comes of counted k-mers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// They are looked at, root by root.
    Seen,
    /// They are sorted.
    Sorted,
}

impl Demand {
    /// For counters of `S` samples.
    pub fn new<const S: usize>(kmers: u64, threads: usize, then: Then) -> Self {
        let thread = 32 * KIB + (S * SPECTRUM_SLOTS * size_of::<u64>()) as u64;
        Self { kmers, threads, slot: slot_bytes::<S>(), piece: piece_bytes::<S>(), thread, then }
    }

    /// Fewest bytes that suffice.
    fn least(&self) -> u64 {
        let thread = (2 * MIN_SLOTS * self.slot + 2 * MIN_PIECES * self.piece) as u64;
        let bins = MIN_BINS + MIN_BINS / BINS_PER_PART;
        2 * bins * MIN_EXTENT + 2 * (thread + bins * MIN_PRIVATE + self.thread) * self.threads as u64
    }
}

/// Division of the memory. All sizes in bytes unless named otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Number of bins.
    pub bins: usize,
    /// Number of parts that counted k-mers are sorted in, a power of two, or 0.
    pub parts: usize,
    /// Size of an extent, the piece in which bins and parts grow and spill.
    pub extent: usize,
    /// Extents that may be in memory at once, at least one for each bin and part.
    pub extents: usize,
    /// Size of the buffer each thread has for each bin.
    pub private: usize,
    /// Super-k-mers a thread holds to collapse equal ones.
    pub pieces: usize,
    /// Slots of a thread's hash table; it may hold two tables while it grows.
    pub slots: usize,
    /// What a thread may sort in when the tables are gone.
    pub room: usize,
}

/// The least memory `threads` threads can count in, in bytes, whatever the number of samples.
pub fn least_memory(threads: usize) -> u64 {
    Demand::new::<MAX_SAMPLES>(0, threads, Then::Sorted).least()
}

impl Plan {
    /// For `memory` bytes, at least [`least_memory`].
    pub fn new(demand: &Demand, memory: u64) -> Self {
        let threads = demand.threads as u64;
        let left = memory - threads * demand.thread;
        // A quarter for extents being filled and an eighth for private buffers, at their smallest.
        let most = (left / 4 / GOOD_EXTENT).min(left / 8 / (threads * MIN_PRIVATE));
        let bins = (demand.kmers / KMERS_PER_BIN).clamp(MIN_BINS, MAX_BINS).min(most.max(MIN_BINS));
        Self::with_bins(bins, demand, memory)
    }

    /// With bins of a given number, if `memory` has room for them.
    pub(crate) fn of_grid(grid: Grid, demand: &Demand, memory: u64) -> Option<Self> {
        let (bins, threads) = (grid.all() as u64, demand.threads as u64);
        let left = memory.checked_sub(threads * demand.thread)?;
        // As above, of extents at their smallest.
        let fits = bins * MIN_EXTENT <= left / 4 && bins * threads * MIN_PRIVATE <= left / 8;
        fits.then(|| Self::with_bins(bins, demand, memory))
    }

    fn with_bins(bins: u64, demand: &Demand, memory: u64) -> Self {
        let (threads, slot, kmers) = (demand.threads as u64, demand.slot as u64, demand.kmers);
        let memory = memory - threads * demand.thread;
        let parts = match demand.then {
            Then::Seen => 0,
            Then::Sorted => 1 << (bins / BINS_PER_PART).ilog2(),
        };
        let memory = memory - threads * parts * MIN_PRIVATE;

        // Tables for bins four times the average whose k-mers all differ, if that leaves half for the bins. Private
        // buffers are gone before the tables come.
        let table = 2 * slot * (4 * kmers / bins).max(MIN_SLOTS as u64);
        let tables = (2 * table * threads).clamp(memory / 16, memory / 2);
        let private = (tables / (threads * bins)).clamp(MIN_PRIVATE, MAX_PRIVATE);

        let pool = memory - tables.max(private * bins * threads);
        // Each thread also reads spilled extents into memory, one at a time.
        let own = bins + parts + threads;
        // Half of what is being filled is empty: little of the pool if much of what comes has room in it, more where nearly
        // all goes to the disk, which wants long pieces.
        let fits = kmers.saturating_mul(BYTES_PER_KMER.0) / BYTES_PER_KMER.1 < 4 * pool;
        let extent =
            if fits { (pool / 16 / own).max(GOOD_EXTENT).min(pool / 4 / own) } else { pool / 4 / own };
        let extent = extent.clamp(MIN_EXTENT, MAX_EXTENT) / MIN_EXTENT * MIN_EXTENT;
        let thread = (tables / threads) as usize;
        let pieces = (thread / 8 / demand.piece).clamp(MIN_PIECES, MAX_PIECES);
        Self {
            bins: bins as usize,
            parts: parts as usize,
            extent: extent as usize,
            extents: (pool / extent - threads) as usize,
            private: private as usize,
            pieces,
            slots: (thread - pieces * demand.piece) / 2 / demand.slot,
            room: thread,
        }
    }

    /// Full extents that may be in memory.
    pub fn spare(&self) -> usize {
        self.extents - self.bins - self.parts
    }

    /// Bytes of records that have room, about, in memory and in a spill file of `scratch` bytes; extents being filled are half full.
    pub fn holds(&self, scratch: u64) -> u64 {
        let extent = self.extent as u64;
        let full = (self.spare() as u64).saturating_add(scratch / extent);
        full.saturating_mul(extent).saturating_add(self.bins as u64 * extent / 2)
    }

    /// Bytes of memory in use at once when records of so many bytes come, about: extents, and the larger of private buffers and tables.
    fn takes(&self, demand: &Demand, bytes: u64) -> u64 {
        let (threads, bins, extent) = (demand.threads as u64, self.bins as u64, self.extent as u64);
        let open = bins + self.parts as u64 + threads;
        let full = (bytes.saturating_sub(bins * extent / 2) / extent).min(self.spare() as u64);
        let kmers = (demand.kmers / bins).max(MIN_SLOTS as u64);
        let table = (2 * demand.slot as u64 * kmers).min(self.room as u64);
        let private = self.private as u64 * bins;
        (open + full) * extent + threads * (private.max(table) + demand.thread)
    }

    /// Size of the buffer each thread has for each part.
    pub const KEPT: usize = MIN_PRIVATE as usize;
}

const _: () = assert!(MIN_PRIVATE as usize >= MAX_RECORD && MIN_EXTENT >= MAX_PRIVATE);

#[cfg(test)]
mod tests {
    use super::*;

    fn holds<const S: usize>(threads: usize, kmers: u64, then: Then) {
        let demand = Demand::new::<S>(kmers, threads, then);
        let least = demand.least();
        assert!(least <= least_memory(threads));
        for memory in [least, least + 1, 3 * least, 1 << 30, 1 << 34].into_iter().filter(|&m| m >= least) {
            let plan = Plan::new(&demand, memory);
            let pool = (plan.extents + threads) * plan.extent;
            let scatter = plan.private * plan.bins * threads;
            let tables = threads * (2 * plan.slots * demand.slot + plan.pieces * demand.piece);
            let parts = threads * plan.parts * Plan::KEPT;
            let sorting = threads * plan.room;
            let most = pool + scatter.max(tables + parts).max(sorting);
            assert!(most as u64 + threads as u64 * demand.thread <= memory, "{plan:?}");
            assert!(plan.extents >= plan.bins + plan.parts && plan.slots >= MIN_SLOTS, "{plan:?}");
            assert_eq!(plan.parts > 0, then == Then::Sorted);
        }
    }

    #[test]
    fn what_is_planned_fits_and_follows_the_means() {
        let reads = Estimate { bases: 90_000_000_000, reads: 600_000_000, copied: 0 };
        let expected = Expected::of(&reads, 31);
        let with = |memory, scratch| {
            let (work, part) = (std::path::PathBuf::new(), crate::Part::WHOLE);
            let params = CountParams {
                k: 31,
                min_base_quality: 0,
                threads: 16,
                memory,
                work,
                scratch,
                part,
                devices: Default::default(),
            };
            let planned = planned::<2>(&expected, &params).expect("partitions enough");
            assert_eq!(Some(planned.parts), params.parts_wanted::<2>(&expected));
            assert!(planned.memory <= memory && planned.spilled <= scratch, "{planned:?}");
            planned
        };
        let all = with(200 << 30, 0);
        assert_eq!((all.parts, all.spilled), (1, 0));
        assert!(all.memory > expected.bytes && all.memory < 2 * expected.bytes, "{all:?}");
        let spilling = with(4 << 30, 1 << 40);
        assert!(spilling.parts == 1 && spilling.spilled > expected.bytes / 2, "{spilling:?}");
        assert!(with(4 << 30, 20 << 30).parts > 1);
        assert!(with(4 << 30, 0).parts > with(4 << 30, 20 << 30).parts);
    }

    #[test]
    fn every_plan_stays_within_its_memory() {
        for threads in [1, 2, 5, 64] {
            for kmers in [0, 1_000, 280_000_000, 300_000_000_000] {
                for then in [Then::Seen, Then::Sorted] {
                    holds::<1>(threads, kmers, then);
                    holds::<2>(threads, kmers, then);
                    holds::<MAX_SAMPLES>(threads, kmers, then);
                }
            }
        }
    }
}
