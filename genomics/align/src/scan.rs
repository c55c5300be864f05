//! Aligns sequences to a reference that is scanned from start to end. No index of the reference is needed.
//!
//! ```text
//! sequences -> seeds   -> count each seed in the reference        (first pass over the reference)
//!                      -> rare seeds -> ungapped extension        (second pass)
//!                                    -> best segments -> gapped extension -> hits
//! ```
//!
//! Cost: two passes over the reference for each batch of sequences. A batch holds as many sequences as memory allows,
//! at [`MEMORY_PER_BASE_BYTES`] bytes per base, but not more than [`max_sequence_bases_per_batch`]. Repetitive
//! sequences cost more, because every copy of the repeat is extended. The same bases of a sequence get at most
//! [`MAX_HITS_PER_PART`] hits.

mod extend;
mod mate_pairs;
mod ranking;
mod seeds;
mod segments;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use genuma_machine::simd_and_prefetch::prefetch;
use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::Reference;
use genuma_work::ProgressCounters;
use genuma_work::parallel::map_in_order;

use self::extend::{GappedAlignment, count_matching_bases, extend_gapped, extend_ungapped};
pub(crate) use self::mate_pairs::{
    FALLBACK_MAX_INSERT_SIZE_BP, choose_best_pair_and_set_mapq, estimate_max_insert_size,
};
use self::ranking::sort_deduplicate_and_set_mapq;
use self::seeds::{SEED_BP, Seed, SeedIndex, SeedLookupBuffers, SeedPosition, for_each_seed_batch};
use self::segments::{MIN_SEGMENTS_TO_DROP_DOMINATED, UngappedSegment, drop_dominated_segments, overlap_len};
use crate::hit::{CigarKind, CigarOp, Hit, Strand};

/// Memory (bytes) that the scan needs for each base of the sequences in a batch.
const MEMORY_PER_BASE_BYTES: u64 = 64;
/// Minimum and maximum of the number of sequence bases that a batch may have; it is otherwise computed from the memory
/// and the length of the reference.
const BATCH_BASES: Range<u64> = 1 << 20..1 << 29;
/// Minimum number of reference bases per sequence base of a batch, unless the batch is smaller than
/// [`MIN_BATCH_LIMIT_BASES`]. Larger seed tables cause more cache misses and do not save passes over the reference.
const MIN_REFERENCE_BASES_PER_SEQUENCE_BASE: u64 = 16;
/// Number of sequence bases that a batch may have even if the reference is short.
const MIN_BATCH_LIMIT_BASES: u64 = 4 << 20;
/// Number of passes over the reference for each batch: one counts the seeds, one extends them.
const PASSES_PER_BATCH: u64 = 2;
/// Number of reference bases that a thread scans at a time.
const CHUNK_BP: usize = 512 << 10;
/// Maximum number of occurrences in the reference up to which every seed is extended. Empirical: a higher value finds
/// more hits in repeats and takes longer.
const MAX_COUNT_ANY_SEED: u32 = 20;
/// Maximum number of occurrences in the reference up to which a seed is extended if its window has fewer than
/// [`NUM_SEEDS_WITH_HIGHER_LIMIT`] rarer seeds. Empirical.
const MAX_COUNT_SECOND_SEED: u32 = 500;
/// Maximum number of occurrences in the reference up to which the rarest seed of a window is extended. If it has more,
/// no seed of the window is extended. Empirical.
const MAX_COUNT_RAREST_SEED: u32 = 5_000;
/// Length (bp) of the windows into which a sequence is divided for selecting seeds.
const SEED_WINDOW_BP: usize = 24;
/// Number of rarest seeds of a window to which the higher limits [`MAX_COUNT_RAREST_SEED`] and
/// [`MAX_COUNT_SECOND_SEED`] apply.
const NUM_SEEDS_WITH_HIGHER_LIMIT: usize = 2;
/// Maximum number of hits for the same bases of a sequence.
const MAX_HITS_PER_PART: usize = 50;
/// Number of reference chunks after which dominated segments are dropped on all threads.
const CHUNKS_PER_ROUND: usize = 64;
/// Number of groups into which the sequences are divided, so that their dominated segments are dropped in parallel.
const SEQUENCE_SHARES: usize = 64;
/// Number of the last segments of a sequence with which a seed match is compared before it is extended: a match inside
/// one of these segments is skipped.
const RECENT_SEGMENTS: usize = 16;
/// Number of seed matches that are extended together, so that their memory accesses overlap.
const SEED_MATCHES_PER_BATCH: usize = 128;
/// Size of a CPU cache line (bytes).
const CACHE_LINE_BYTES: usize = 64;
/// Number of cache lines that are prefetched on each side of a seed match.
const PREFETCH_LINES: usize = 3;
/// Minimum alignment score of a hit. Empirical.
const MIN_HIT_SCORE: i32 = 25;
/// A segment is extended with gaps only if its score is at most this much below the best score of the segments that
/// cover the same bases.
const MAX_SCORE_DEFICIT_FOR_GAPS: i32 = 40;
/// A segment is extended with gaps only if fewer than this number of better segments cover the same bases.
const MAX_GAPPED_RIVALS: usize = 8;

/// Hits found by a scan of the reference, and numbers of sequences for which hits were skipped or dropped.
#[derive(Debug)]
pub struct ScanResult<T = Vec<Hit>> {
    /// For each sequence its hits, the best first; or what the callback of [`ReferenceScan::find_and_convert_hits`]
    /// returned for them.
    pub hits: Vec<T>,
    /// Number of sequences some of whose bases were skipped, because their seeds are too frequent in the reference.
    pub num_repetitive_sequences: u64,
    /// Number of sequences for which some hits were dropped, because there were too many for the same bases.
    pub sequences_with_dropped_hits: u64,
}

/// Some bases of one reference sequence: index of the sequence, and 0-based range of the bases.
pub(crate) type ReferenceRegion = (usize, Range<usize>);

/// The reference to be scanned and the resources of the scan. The hits do not depend on the threads or the memory.
#[derive(Debug, Clone, Copy)]
pub struct ReferenceScan<'a> {
    /// The reference that is scanned.
    pub genome: &'a Reference,
    /// The regions to be scanned, sorted and without overlaps; `None` scans the whole reference. An alignment that
    /// begins in a region may extend beyond the region.
    pub regions: Option<&'a [ReferenceRegion]>,
    /// Number of threads, at least 1.
    pub threads: usize,
    /// Memory (bytes) that the scan may use, at least 64 MB. The memory of the result is not included.
    pub memory_bytes: u64,
    /// Counts the reference bases that have been scanned, for progress reports.
    pub meter: &'a ProgressCounters,
}

/// Maximum number of sequence bases in a batch, for a reference of `reference` bases and `memory` bytes of memory.
pub fn max_sequence_bases_per_batch(reference: u64, memory: u64) -> u64 {
    (memory / MEMORY_PER_BASE_BYTES)
        .min(MIN_BATCH_LIMIT_BASES.max(reference / MIN_REFERENCE_BASES_PER_SEQUENCE_BASE))
        .clamp(BATCH_BASES.start, BATCH_BASES.end)
}

/// Memory (bytes) that a batch with this many sequence bases needs.
pub fn memory_bytes_for_sequence_bases(bases: u64) -> u64 {
    bases * MEMORY_PER_BASE_BYTES
}

impl ReferenceScan<'_> {
    /// Number of sequences that form the next batch: as many of the first `lengths` (bp) as fit into memory, but at
    /// least one.
    pub fn count_sequences_that_fit_batch(&self, lengths: impl Iterator<Item = usize>) -> usize {
        let max_bases = max_sequence_bases_per_batch(self.total_region_bases(), self.memory_bytes);
        let mut bases = 0;
        let fits_batch = |length: &usize| {
            bases += *length as u64 + 1;
            bases <= max_bases
        };
        lengths.take_while(fits_batch).count().max(1)
    }

    /// Number of reference bases that are scanned in total, by all passes of all batches, for sequences of these
    /// lengths (bp).
    pub fn reference_bases_of_all_passes(&self, mut lengths: &[usize]) -> u64 {
        let mut num_batches = 0;
        while !lengths.is_empty() {
            lengths = &lengths[self.count_sequences_that_fit_batch(lengths.iter().copied())..];
            num_batches += 1;
        }
        num_batches * PASSES_PER_BATCH * self.total_region_bases()
    }

    fn total_region_bases(&self) -> u64 {
        match self.regions {
            Some(regions) => regions.iter().map(|(_, range)| range.len() as u64).sum(),
            None => self.genome.contigs.iter().map(|contig| contig.seq.len() as u64).sum(),
        }
    }

    /// The regions divided into chunks of at most [`CHUNK_BP`] bases.
    fn chunks(&self) -> Vec<ReferenceRegion> {
        let of = |(chrom, part): ReferenceRegion| {
            let end = part.end;
            part.step_by(CHUNK_BP).map(move |from| (chrom, from..(from + CHUNK_BP).min(end)))
        };
        let all = || {
            let contigs = self.genome.contigs.iter().enumerate();
            contigs.map(|(chrom, contig)| (chrom, 0..contig.seq.len())).collect()
        };
        self.regions.map_or_else(all, <[ReferenceRegion]>::to_vec).into_iter().flat_map(of).collect()
    }

    /// The bases of a chunk, and the following bases that a seed at the end of the chunk needs.
    fn chunk_bases(&self, (chrom, range): &ReferenceRegion) -> &[u8] {
        let seq = &self.genome.contigs[*chrom].seq;
        &seq[range.start..(range.end + SEED_BP - 1).min(seq.len())]
    }

    /// Aligns each sequence to the reference. Finds all alignments that contain an exact match of 22 bases and have a
    /// score of at least [`MIN_HIT_SCORE`] (match 1, mismatch −4, gap −6 and −1 per base, gaps of up to 35 bp). Bases
    /// with seeds that are too frequent in the reference are skipped, and the same bases get at most
    /// 50 hits, the best ones. The first hit of a sequence is primary; further hits of the same bases are secondary.
    ///
    /// # Panics
    /// A sequence has 1 Gbp or more.
    pub fn find_hits(&self, sequences: &[&[u8]]) -> ScanResult {
        self.find_and_convert_hits(sequences, |_, hits| hits)
    }

    /// Like [`ReferenceScan::find_hits`], but replaces the hits of each sequence by the value that `make` returns for
    /// them. `make` gets the index of the sequence and its hits. `make` is called on all threads, in any order.
    ///
    /// # Panics
    /// As [`ReferenceScan::find_hits`].
    pub fn find_and_convert_hits<T: Send>(
        &self,
        sequences: &[&[u8]],
        make: impl Fn(usize, Vec<Hit>) -> T + Sync,
    ) -> ScanResult<T> {
        let mut found = ScanResult {
            hits: Vec::with_capacity(sequences.len()),
            num_repetitive_sequences: 0,
            sequences_with_dropped_hits: 0,
        };
        let mut first = 0;
        while first < sequences.len() {
            let rest = &sequences[first..];
            let n = self.count_sequences_that_fit_batch(rest.iter().map(|sequence| sequence.len()));
            let some = SequenceBatch::new(&rest[..n]).find(self, |s, hits| make(first + s, hits));
            found.hits.extend(some.hits);
            found.num_repetitive_sequences += some.num_repetitive_sequences;
            found.sequences_with_dropped_hits += some.sequences_with_dropped_hits;
            first += n;
        }
        found
    }
}

/// A batch of sequences that are searched for together. All their bases are in one array.
struct SequenceBatch {
    bases: Vec<u8>,
    /// The reverse complements of the sequences, each at the same offset as the sequence in `bases`.
    revcomp_bases: Vec<u8>,
    /// Start of each sequence in `bases`, and the end of the last one. Sequences are separated by an `N`.
    starts: Vec<usize>,
}

/// An occurrence of a seed of a sequence in the reference that has not been extended yet.
struct SeedMatch {
    position: SeedPosition,
    /// Whether the sequence has the seed on the other strand than the reference.
    is_reverse: bool,
    ref_pos: usize,
}

/// The ungapped segments that a thread has found in one chunk of the reference.
struct ChunkSegments {
    /// For each sequence its segments, and the number of segments at which dominated segments are dropped next.
    segments_by_sequence: Vec<(Vec<UngappedSegment>, usize)>,
    /// Sequences with at least one segment.
    touched_sequences: Vec<u32>,
}

/// Buffers that one scanning thread reuses.
struct ScanScratch {
    scratch: SeedLookupBuffers,
    seed_matches: Vec<SeedMatch>,
    found: ChunkSegments,
}

impl SequenceBatch {
    fn new(sequences: &[&[u8]]) -> SequenceBatch {
        let (mut bases, mut revcomp_bases, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        for sequence in sequences {
            bases.extend(sequence.iter().map(u8::to_ascii_uppercase));
            revcomp_bases.extend(reverse_complement(sequence));
            bases.push(b'N');
            revcomp_bases.push(b'N');
            starts.push(bases.len());
        }
        assert!(bases.len() < 1 << 30, "a sequence of 1 Gbp or more");
        SequenceBatch { bases, revcomp_bases, starts }
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    fn range(&self, sequence: usize) -> Range<usize> {
        self.starts[sequence]..self.starts[sequence + 1] - 1
    }

    fn oriented(&self, sequence: usize, reverse: bool) -> &[u8] {
        let bases = if reverse { &self.revcomp_bases } else { &self.bases };
        &bases[self.range(sequence)]
    }

    fn find<T: Send>(&self, scan: &ReferenceScan<'_>, make: impl Fn(usize, Vec<Hit>) -> T + Sync) -> ScanResult<T> {
        let (seeds, num_repetitive_sequences) = self.select_rare_seeds(scan);
        let sequences_with_dropped_hits: Vec<AtomicBool> = (0..self.len()).map(|_| AtomicBool::new(false)).collect();
        let segments = self.extend_seeds(scan, &seeds, &sequences_with_dropped_hits);
        drop(seeds);
        let hits = map_in_order(
            self.len(),
            scan.threads,
            || (),
            |(), s| {
                let (hits, dropped_segments) = self.hits_of_sequence(scan.genome, s, segments[s].clone());
                sequences_with_dropped_hits[s].fetch_or(dropped_segments, Relaxed);
                make(s, hits)
            },
        );
        let sequences_with_dropped_hits = sequences_with_dropped_hits
            .iter()
            .filter(|sequences_with_dropped_hits| sequences_with_dropped_hits.load(Relaxed))
            .count() as u64;
        ScanResult { hits, num_repetitive_sequences, sequences_with_dropped_hits }
    }

    /// Selects the seeds that are extended, by their number of occurrences in the reference. Also returns the number
    /// of sequences with a window in which every seed is too frequent.
    fn select_rare_seeds(&self, scan: &ReferenceScan<'_>) -> (SeedIndex, u64) {
        let seeds = self.index_seeds(|_| true);
        let counts: Vec<AtomicU32> = (0..seeds.num_distinct_seeds()).map(|_| AtomicU32::new(0)).collect();
        let chunks = scan.chunks();
        let count = |scratch: &mut SeedLookupBuffers, i: usize| {
            seeds.for_each_indexed_seed(scratch, scan.chunk_bases(&chunks[i]), |number, _| {
                if counts[number].load(Relaxed) <= MAX_COUNT_RAREST_SEED {
                    counts[number].fetch_add(1, Relaxed);
                }
            });
            scan.meter.add_bytes(chunks[i].1.len() as u64);
        };
        map_in_order(chunks.len(), scan.threads, SeedLookupBuffers::default, count);
        // Number of occurrences in the reference of the seed at each base.
        let mut count_at = vec![0; self.bases.len()];
        for (number, count) in counts.iter().enumerate() {
            let count = count.load(Relaxed);
            seeds
                .positions_of_seed(number)
                .iter()
                .for_each(|position| count_at[position.position_in_joined_sequences()] = count);
        }
        drop((seeds, counts));
        let (mut chosen, mut num_repetitive_sequences, mut counts_in_window) =
            (vec![false; self.bases.len()], 0, Vec::new());
        for s in 0..self.len() {
            let mut left_out = false;
            for from in self.range(s).step_by(SEED_WINDOW_BP) {
                let within = from..(from + SEED_WINDOW_BP).min(self.range(s).end);
                counts_in_window.clear();
                counts_in_window.extend(within.map(|at| (count_at[at], at)).filter(|(count, _)| *count > 0));
                counts_in_window.sort_unstable();
                for (n, &(count, at)) in counts_in_window.iter().enumerate() {
                    let max_count = match n {
                        0 => MAX_COUNT_RAREST_SEED,
                        _ if n < NUM_SEEDS_WITH_HIGHER_LIMIT => MAX_COUNT_SECOND_SEED,
                        _ => MAX_COUNT_ANY_SEED,
                    };
                    if count > max_count {
                        left_out |= n == 0;
                        break;
                    }
                    chosen[at] = true;
                }
            }
            num_repetitive_sequences += u64::from(left_out);
        }
        (self.index_seeds(|at| chosen[at]), num_repetitive_sequences)
    }

    /// Indexes the seeds that begin at bases for which `wanted` is true.
    fn index_seeds(&self, wanted: impl Fn(usize) -> bool) -> SeedIndex {
        let mut positions = Vec::new();
        for (number, s) in (0..).zip(0..self.len()) {
            let Range { start, end } = self.range(s);
            for_each_seed_batch(&self.bases[start..end], |some| {
                let own = some.iter().map(|seed| Seed { at: seed.at + start as u32, ..*seed });
                let wanted = own.filter(|seed| wanted(seed.at as usize));
                positions.extend(wanted.map(|seed| SeedPosition::from_seed_in_sequence(seed, number)));
            });
        }
        SeedIndex::index_seed_positions(positions)
    }

    fn new_scratch(&self) -> ScanScratch {
        ScanScratch {
            scratch: SeedLookupBuffers::default(),
            seed_matches: Vec::with_capacity(SEED_MATCHES_PER_BATCH),
            found: ChunkSegments {
                segments_by_sequence: vec![(Vec::new(), MIN_SEGMENTS_TO_DROP_DOMINATED); self.len()],
                touched_sequences: Vec::new(),
            },
        }
    }

    /// Extends every occurrence of the seeds in the reference without gaps. Returns the segments of each sequence, and
    /// sets `sequences_with_dropped_hits` for each sequence that had too many segments for the same bases.
    fn extend_seeds(
        &self,
        scan: &ReferenceScan<'_>,
        seeds: &SeedIndex,
        sequences_with_dropped_hits: &[AtomicBool],
    ) -> Vec<Vec<UngappedSegment>> {
        let &ReferenceScan { genome, threads, meter, .. } = scan;
        let chunks = scan.chunks();
        // Consecutive sequences are handled by one thread.
        let sequences_per_share = self.len().div_ceil(SEQUENCE_SHARES).max(1);
        let share = |s: usize| Mutex::new(vec![Vec::new(); sequences_per_share.min(self.len() - s)]);
        let shares: Vec<Mutex<Vec<Vec<UngappedSegment>>>> =
            (0..self.len()).step_by(sequences_per_share).map(share).collect();
        let extend_chunk = |ScanScratch { scratch, seed_matches, found }: &mut ScanScratch, i: usize| {
            let (chrom, Range { start, end }) = chunks[i];
            let reference = &genome.contigs[chrom].seq;
            let mut extend_chunk = |seed_matches: &mut Vec<SeedMatch>| {
                self.extend_matches(seed_matches, found, chrom, reference, sequences_with_dropped_hits);
                seed_matches.clear();
            };
            seeds.for_each_indexed_seed(scratch, scan.chunk_bases(&chunks[i]), |number, Seed { at, reverse, .. }| {
                for &position in seeds.positions_of_seed(number) {
                    prefetch(&self.starts[position.sequence_index()]);
                    seed_matches.push(SeedMatch {
                        position,
                        is_reverse: position.is_canonical_reverse() != reverse,
                        ref_pos: start + at as usize,
                    });
                    if seed_matches.len() == SEED_MATCHES_PER_BATCH {
                        extend_chunk(seed_matches);
                    }
                }
            });
            extend_chunk(seed_matches);
            meter.add_bytes((end - start) as u64);
            let ChunkSegments { segments_by_sequence, touched_sequences } = found;
            let mut all = vec![Vec::new(); shares.len()];
            touched_sequences
                .drain(..)
                .for_each(|s| all[s as usize / sequences_per_share].append(&mut segments_by_sequence[s as usize].0));
            all
        };
        // Segments are dropped after a fixed number of chunks, so that the result does not depend on the threads.
        for first in (0..chunks.len()).step_by(CHUNKS_PER_ROUND) {
            let round = (chunks.len() - first).min(CHUNKS_PER_ROUND);
            let found = map_in_order(round, threads, || self.new_scratch(), |state, i| extend_chunk(state, first + i));
            let take = |(): &mut (), share: usize| {
                let mut lists = shares[share].lock().unwrap_or_else(PoisonError::into_inner);
                for segment in found.iter().flat_map(|found| &found[share]) {
                    lists[segment.sequence as usize % sequences_per_share].push(*segment);
                }
                for (s, list) in (share * sequences_per_share..)
                    .zip(lists.iter_mut())
                    .filter(|(_, list)| list.len() >= MIN_SEGMENTS_TO_DROP_DOMINATED)
                {
                    sequences_with_dropped_hits[s]
                        .fetch_or(drop_dominated_segments(list, self.range(s).len()), Relaxed);
                }
            };
            map_in_order(shares.len(), threads, || (), take);
        }
        shares.into_iter().flat_map(|share| share.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Extends seed matches without gaps. Each step is done for all matches before the next step, and prefetches the
    /// memory that the next step needs.
    fn extend_matches(
        &self,
        seed_matches: &[SeedMatch],
        ChunkSegments { segments_by_sequence, touched_sequences }: &mut ChunkSegments,
        chrom: usize,
        reference: &[u8],
        sequences_with_dropped_hits: &[AtomicBool],
    ) {
        for SeedMatch { position, is_reverse, .. } in seed_matches {
            prefetch(&segments_by_sequence[position.sequence_index()]);
            let first =
                if *is_reverse { self.revcomp_position(*position) } else { position.position_in_joined_sequences() };
            let bases = if *is_reverse { &self.revcomp_bases } else { &self.bases };
            for line in (first.saturating_sub(CACHE_LINE_BYTES * PREFETCH_LINES)
                ..first + CACHE_LINE_BYTES * PREFETCH_LINES)
                .step_by(CACHE_LINE_BYTES)
            {
                bases.get(line).into_iter().for_each(prefetch);
            }
        }
        for SeedMatch { position, .. } in seed_matches {
            segments_by_sequence[position.sequence_index()].0.last().into_iter().for_each(prefetch);
        }
        for &SeedMatch { position, is_reverse, ref_pos } in seed_matches {
            let sequence = position.sequence_index();
            let own = self.range(sequence);
            let q = if is_reverse { self.revcomp_position(position) } else { position.position_in_joined_sequences() }
                - own.start;
            let diagonal = ref_pos as i64 - q as i64;
            let (list, limit) = &mut segments_by_sequence[sequence];
            // Catches most duplicates; the others are dropped with the dominated segments.
            let already_covered = list.iter().rev().take(RECENT_SEGMENTS).any(|segment| {
                segment.diagonal == diagonal
                    && segment.reverse == is_reverse
                    && segment.scored_range.base_range().contains(&q)
            });
            if already_covered {
                continue;
            }
            let scored_range = extend_ungapped(self.oriented(sequence, is_reverse), reference, q, ref_pos);
            if scored_range.score >= MIN_HIT_SCORE {
                let (sequence, chrom) = (sequence as u32, chrom as u32);
                if list.is_empty() {
                    touched_sequences.push(sequence);
                    *limit = MIN_SEGMENTS_TO_DROP_DOMINATED;
                }
                list.push(UngappedSegment { sequence, chrom, reverse: is_reverse, diagonal, scored_range });
                if list.len() >= *limit {
                    let dropped_segments = drop_dominated_segments(list, own.len());
                    sequences_with_dropped_hits[sequence as usize].fetch_or(dropped_segments, Relaxed);
                    // A sequence with many segments that all stay is not examined again at every new segment.
                    *limit = MIN_SEGMENTS_TO_DROP_DOMINATED.max(2 * list.len());
                }
            }
        }
    }

    /// Position of the reverse complement of a seed in `revcomp_bases`.
    fn revcomp_position(&self, position: SeedPosition) -> usize {
        let Range { start, end } = self.range(position.sequence_index());
        start + end - position.position_in_joined_sequences() - SEED_BP
    }

    /// Makes the hits of a sequence from its segments. Also returns whether segments were dropped because too many
    /// covered the same bases.
    fn hits_of_sequence(
        &self,
        genome: &Reference,
        sequence: usize,
        mut segments: Vec<UngappedSegment>,
    ) -> (Vec<Hit>, bool) {
        let length = self.range(sequence).len();
        let dropped_segments = drop_dominated_segments(&mut segments, length);
        segments.sort_unstable_by_key(UngappedSegment::best_first_sort_key);
        let mut hits: Vec<Hit> = Vec::with_capacity(segments.len());
        for (i, one) in segments.iter().enumerate() {
            let own = one.query_range(length);
            let bases = one.scored_range.base_range();
            let (from, to) = (one.ref_position_of_base(bases.start), one.ref_position_of_base(bases.end));
            // The segment is part of a gapped alignment.
            let already_covered = hits.iter().any(|hit| {
                hit.tid == one.chrom as usize
                    && (hit.strand == Strand::Reverse) == one.reverse
                    && hit.ref_start <= from
                    && to <= hit.ref_end
                    && hit.query_start <= own.start
                    && own.end <= hit.query_end
            });
            if already_covered {
                continue;
            }
            let better =
                segments[..i].iter().filter(|other| overlap_len(&own, &other.query_range(length)) * 5 >= own.len() * 4);
            let (mut rivals, mut best) = (0, 0);
            better.for_each(|other| (rivals, best) = (rivals + 1, best.max(other.scored_range.score)));
            let gaps = rivals < MAX_GAPPED_RIVALS && best <= one.scored_range.score + MAX_SCORE_DEFICIT_FOR_GAPS;
            hits.push(self.make_hit(genome, one, gaps));
        }
        sort_deduplicate_and_set_mapq(&mut hits);
        (hits, dropped_segments)
    }

    fn make_hit(&self, genome: &Reference, segment: &UngappedSegment, gaps: bool) -> Hit {
        let query = self.oriented(segment.sequence as usize, segment.reverse);
        let reference = &genome.contigs[segment.chrom as usize].seq;
        let Range { start: from, end: to } = segment.scored_range.base_range();
        let score = segment.scored_range.score;
        let alignment = if gaps {
            extend_gapped(query, reference, segment.diagonal, segment.scored_range)
        } else {
            let target = (segment.ref_position_of_base(from), segment.ref_position_of_base(to));
            let cigar = vec![CigarOp { kind: CigarKind::Match, len: (to - from) as u32 }];
            let equal = count_matching_bases(&query[from..to], &reference[target.0..target.1]);
            GappedAlignment { query: (from, to), target, score, cigar, equal }
        };
        let (from, to) = alignment.query;
        let (start, end) = if segment.reverse { (query.len() - to, query.len() - from) } else { (from, to) };
        Hit {
            tid: segment.chrom as usize,
            ref_start: alignment.target.0,
            ref_end: alignment.target.1,
            query_start: start,
            query_end: end,
            strand: if segment.reverse { Strand::Reverse } else { Strand::Forward },
            mapq: 0,
            score: alignment.score,
            alignment_columns: alignment.cigar.iter().map(|op| op.len as usize).sum(),
            matching_bases: alignment.equal,
            proper_pair: false,
            is_primary: false,
            is_secondary: false,
            cigar: alignment.cigar,
        }
    }
}

#[cfg(test)]
mod tests;
