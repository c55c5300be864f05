//! Maps each read separately: from its seeds to its placements. Reads go through the stages in groups; each stage
//! prefetches the memory that the next one reads.
//!
//! ```text
//!  letters -> packed -> seeds -> buckets -> ungapped placements -> promising ones with gaps -> placements of each read
//!                       prefetch  prefetch  prefetch
//!                       buckets   lists     the reference
//! ```

mod placement_list;

use std::ops::Range;

use genuma_machine::simd_and_prefetch::SimdLevel;

use crate::bases::{PackedReadBatch, low_bits_of_range_in_word};
use crate::diagonal::Diagonal;
use crate::gapped::{GappedAligner, GappedJob, GappedResult};
use crate::index::{BucketAndTag, IndexSlot, IndexView};
use crate::options::ScoringOptions;
use crate::placement::Placement;
use crate::syncmers::{SEED_BP, SyncmerFinder};
use crate::ungapped::{
    MAX_READ_WORDS, MismatchMasks, mask_and_count_mismatches, seed_matches_reference, set_to_best_ungapped_segment,
    ungapped_score_upper_bound,
};
pub(crate) use placement_list::{add_gapped_jobs, sort_and_filter_placements};

/// Number of reads that are processed together, stage by stage, so that their memory accesses overlap.
const READS_PER_GROUP: usize = 64;
/// Maximum number of positions from position lists of a read that are examined before pairing. Empirical: more
/// positions find more single reads and take longer.
const MAX_FIRST_POSITIONS: usize = 16;
/// Position lists of at most this many positions are always examined before pairing. Empirical.
const MAX_SHORT_LIST: usize = 12;
/// Maximum score deficit of a new ungapped placement relative to the best, in matches. Empirical.
const MAX_SCORE_DEFICIT: i32 = 25;
/// Maximum score deficit of a placement that is kept after gapped alignment, relative to the best, in matches.
/// Empirical.
const MAX_KEPT_SCORE_DEFICIT: i32 = 30;
/// Maximum score deficit with gaps, in matches, at which a placement that is not the best is aligned with gaps.
/// Empirical.
const MAX_RIVAL_SCORE_DEFICIT: i32 = 10;
/// Minimum upper bound of the score that gaps could gain, in matches, at which a placement is aligned with gaps.
/// Empirical.
const MIN_GAP_GAIN: i32 = 10;
/// Minimum score deficit of the best ungapped placement relative to a perfect match, in matches, at which a gap is
/// assumed to be likely. Empirical.
const POOR_SCORE_DEFICIT: i32 = 30;
/// Maximum number of placements of a read that are aligned with gaps.
const MAX_GAPPED_PLACEMENTS: usize = 4;
/// Maximum number of placements of a read that are kept; rescued ones are kept in addition.
const MAX_PLACEMENTS: usize = 256;
/// Distance in the list of diagonals at which reference bases are prefetched: while a read is compared on one diagonal,
/// the bases for the diagonal this far ahead are loaded.
pub(crate) const DIAGONALS_PREFETCHED_AHEAD: usize = 16;
/// Maximum length of a position list for which the positions in the primary assembly are counted separately from those
/// on ALT contigs.
const MAX_ALT_COUNTED_POSITIONS: usize = 600;
/// Number of seed hits of a read from which on positions on ALT contigs in its lists are skipped.
const MAX_HITS_WITH_ALT: usize = 400;
/// Distance (bp) within which two diagonals may belong to one gapped alignment.
const NEIGHBOUR_DISTANCE_BP: u64 = 150;

/// The position list of a frequent seed of a read that is not examined before pairing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeferredList {
    /// Offset of the list in the index ([`IndexView::position_list`]).
    pub list: u32,
    /// Number of positions of the list in the primary assembly; for a list with more than 600 positions, the number of
    /// all its positions, those on ALT contigs included.
    pub num_positions: u32,
    /// Whether positions on ALT contigs are examined, too.
    pub examine_alt: bool,
    /// Number of the read base at which the seed starts.
    pub seed_start: u16,
    /// Whether the reverse complement of the seed was hashed, because it is the smaller one.
    pub reverse: bool,
}

/// Mapping results of one read: ranges of its placements, lists and seeds in [`MappedReads`], and facts about its
/// seeds.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadMappingRanges {
    /// Range (start, end) of the placements of the read in [`MappedReads::placements`].
    pub placements: (u32, u32),
    /// Range (start, end) of the deferred lists of the read in [`MappedReads::deferred`].
    pub deferred: (u32, u32),
    /// Range (start, end) of the seeds of the read in [`MappedReads::seeds`].
    pub seeds: (u32, u32),
    /// Number of occurrences in the reference of the read's median seed: about the number of sequences in the reference
    /// that are similar to the read. 0 if the median seed is not frequent.
    pub median_seed_copies: u32,
    /// Number of non-overlapping seeds of the read whose reference positions were all examined. A placement that was
    /// not found must have a mismatch in each of these seeds.
    pub examined_seeds: u16,
    /// Whether placements with good scores were dropped because there were too many.
    pub has_dropped_placements: bool,
}

/// Mapping results of a batch of reads. The vectors contain the results of all reads one after the other.
#[derive(Debug, Default)]
pub struct MappedReads {
    /// The reads of the batch at 2 bits a base, both strands.
    pub packed: PackedReadBatch,
    /// For each read, the ranges of its placements, deferred lists and seeds in the other vectors.
    pub mapping_ranges: Vec<ReadMappingRanges>,
    /// Placements of all reads. Those of a read are sorted: first those in the primary assembly, the best first, then
    /// those on ALT contigs, the best first.
    pub placements: Vec<Placement>,
    /// Deferred lists of all reads. Those of a read are sorted by length, the shortest first.
    pub deferred: Vec<DeferredList>,
    /// Start of each seed in its read, in bp, for all reads.
    pub seeds: Vec<u16>,
    /// CIGAR operations of all gapped placements, encoded as in BAM.
    pub cigars: Vec<u32>,
}

impl MappedReads {
    /// Removes the results of all reads and keeps the memory.
    pub fn clear(&mut self) {
        self.packed.remove_all_reads();
        self.mapping_ranges.clear();
        self.placements.clear();
        self.deferred.clear();
        self.seeds.clear();
        self.cigars.clear();
    }

    /// Placements of read number `read`: first those in the primary assembly, the best first, then those on ALT
    /// contigs, the best first.
    pub(crate) fn placements_of_read(&self, read: usize) -> &[Placement] {
        let (from, to) = self.mapping_ranges[read].placements;
        &self.placements[from as usize..to as usize]
    }

    /// Starts of the seeds of read number `read`, in bp from the start of the read.
    pub(crate) fn seed_starts_of_read(&self, read: usize) -> &[u16] {
        let (from, to) = self.mapping_ranges[read].seeds;
        &self.seeds[from as usize..to as usize]
    }

    /// Position lists of the frequent seeds of read number `read` that are examined only when mates are paired.
    pub(crate) fn deferred_lists_of_read(&self, read: usize) -> &[DeferredList] {
        let (from, to) = self.mapping_ranges[read].deferred;
        &self.deferred[from as usize..to as usize]
    }
}

#[derive(Debug, Clone, Copy)]
struct Seed {
    address: BucketAndTag,
    at: u16,
    reverse: bool,
}

/// Buffers that one worker thread reuses for mapping all its batches.
#[derive(Debug, Default)]
pub struct MappingBuffers {
    finder: SyncmerFinder,
    words: Vec<u64>,
    seeds: Vec<Seed>,
    hits: Vec<Diagonal>,
    /// Diagonals of the current read: those of its seeds with few positions and of its short position lists.
    read_diagonals: Vec<Diagonal>,
    lists: Vec<DeferredList>,
    /// For each read of a group, the ends of its ranges in `seeds`, `hits` and `lists`.
    ends: Vec<[usize; 3]>,
    /// Diagonals of each read of a group, sorted and without duplicates.
    diagonals: Vec<Diagonal>,
    /// Reusable buffer for the placements of the current read.
    of_one: Vec<Placement>,
    /// Placements of all reads before poor ones are dropped.
    placements: Vec<Placement>,
    jobs: Vec<GappedJob>,
    aligner: GappedAligner,
    ungapped_aligner: UngappedAligner,
}

/// The diagonal of a read whose seed, at base `at` of the read, matches the reference at packed position `place`.
#[inline(always)]
fn seed_diagonal(place: u64, at: u16, length: usize, reverse: bool) -> Diagonal {
    let anchor = if reverse { (length - SEED_BP) as u16 - at } else { at };
    Diagonal::new(place - u64::from(anchor), reverse, anchor)
}

/// Number of positions of a list in the primary assembly. Of a list with more than [`MAX_ALT_COUNTED_POSITIONS`]
/// positions, the number of all positions.
#[inline(always)]
fn count_primary_positions(view: &IndexView<'_>, list: u32) -> usize {
    let list = view.position_list(list);
    let all = list.num_positions();
    if !view.has_alt_contigs() || all > MAX_ALT_COUNTED_POSITIONS {
        return all;
    }
    all - list
        .positions_hashed_on_strand(false)
        .chain(list.positions_hashed_on_strand(true))
        .filter(|&place| view.is_on_alt_contig(place))
        .count()
}

/// Passes the diagonals of all positions of a deferred list to `each`, in order. Positions on ALT contigs are skipped
/// unless [`DeferredList::examine_alt`] is set.
#[inline(always)]
pub(crate) fn for_each_diagonal_of_deferred_list(
    view: &IndexView<'_>,
    deferred: &DeferredList,
    length: usize,
    mut each: impl FnMut(Diagonal),
) {
    let list = view.position_list(deferred.list);
    for reverse in [false, true] {
        let placements = list.positions_hashed_on_strand(deferred.reverse ^ reverse);
        if deferred.examine_alt || !view.has_alt_contigs() {
            placements.for_each(|place| each(seed_diagonal(place, deferred.seed_start, length, reverse)));
        } else {
            placements
                .filter(|place| !view.is_on_alt_contig(*place))
                .for_each(|place| each(seed_diagonal(place, deferred.seed_start, length, reverse)));
        }
    }
}

/// Finds the placements of reads, each read separately from its mate, and overwrites `mapped` with them. Reads have at
/// most [`crate::options::MAX_READ_BP`] bases.
pub fn map_reads<'a>(
    view: &IndexView<'_>,
    options: &ScoringOptions,
    vectors: SimdLevel,
    state: &mut MappingBuffers,
    reads: impl Iterator<Item = &'a [u8]>,
    mapped: &mut MappedReads,
) {
    mapped.clear();
    state.placements.clear();
    vectors.run_at_level(
        #[inline(always)]
        || {
            for read in reads {
                mapped.packed.push_read(read);
            }
        },
    );
    map_packed_reads(view, options, vectors, state, mapped);
}

/// Finds the placements of packed reads for [`map_reads`]. It has no type parameters, so that it is compiled once and
/// not in each crate that maps reads.
fn map_packed_reads(
    view: &IndexView<'_>,
    options: &ScoringOptions,
    vectors: SimdLevel,
    state: &mut MappingBuffers,
    mapped: &mut MappedReads,
) {
    vectors.run_at_level(
        #[inline(always)]
        || {
            for first in (0..mapped.packed.num_reads()).step_by(READS_PER_GROUP) {
                let last = (first + READS_PER_GROUP).min(mapped.packed.num_reads());
                state.find_seeds(view, &mapped.packed, first..last);
                state.look_up_seeds(view, &mapped.packed, first..last);
                state.gather_diagonals(view, mapped, first..last);
                state.align_ungapped(view, options, mapped, first..last);
            }
            state.align_gapped(view, options, mapped);
            state.select_placements(options, mapped);
        },
    );
}

impl MappingBuffers {
    /// Finds the seeds of a group of reads and prefetches their buckets.
    #[inline(always)]
    fn find_seeds(&mut self, view: &IndexView<'_>, packed: &PackedReadBatch, reads: Range<usize>) {
        self.seeds.clear();
        self.ends.clear();
        for read in reads {
            let strand = packed.read_strand(read, false);
            self.words.clear();
            self.words.extend_from_slice(strand.words);
            self.words.extend([0; 2]);
            let seeds = &mut self.seeds;
            self.finder.find_seeds(&self.words, 0, strand.length, |seed| {
                let at = seed.at as usize;
                if !strand.ambiguous.is_empty() {
                    let touched = (at / 32..strand.ambiguous.len())
                        .any(|i| strand.ambiguous[i] & low_bits_of_range_in_word(i, at, at + SEED_BP) != 0);
                    if touched {
                        return;
                    }
                }
                let address = view.bucket_and_tag_of_hash(seed.hash);
                view.prefetch_bucket(address);
                seeds.push(Seed { address, at: at as u16, reverse: seed.reverse });
            });
            self.ends.push([self.seeds.len(), 0, 0]);
        }
    }

    /// Looks up the seeds in their buckets: collects the diagonals of seeds with few positions, and prefetches the
    /// position lists of the others.
    #[inline(always)]
    fn look_up_seeds(&mut self, view: &IndexView<'_>, packed: &PackedReadBatch, reads: Range<usize>) {
        self.hits.clear();
        self.lists.clear();
        let mut from = 0;
        for (ends, read) in self.ends.iter_mut().zip(reads) {
            let length = packed.read_length(read);
            for seed in &self.seeds[from..ends[0]] {
                view.for_each_slot_with_tag(seed.address, |slot| match slot {
                    IndexSlot::Position(place, reversed) => {
                        self.hits.push(seed_diagonal(place, seed.at, length, reversed ^ seed.reverse));
                    }
                    IndexSlot::List(list) => {
                        view.prefetch_position_list(list);
                        self.lists.push(DeferredList {
                            list,
                            num_positions: 0,
                            examine_alt: false,
                            seed_start: seed.at,
                            reverse: seed.reverse,
                        });
                    }
                });
            }
            from = ends[0];
            *ends = [ends[0], self.hits.len(), self.lists.len()];
        }
    }

    /// Reads short position lists, collects the diagonals of each read and prefetches the reference bases on them.
    #[inline(always)]
    fn gather_diagonals(&mut self, view: &IndexView<'_>, mapped: &mut MappedReads, reads: Range<usize>) {
        self.diagonals.clear();
        let mut before = [0; 3];
        let more = &mut self.read_diagonals;
        for (ends, read) in self.ends.iter().zip(reads) {
            let length = mapped.packed.read_length(read);
            let seeds = &self.seeds[before[0]..ends[0]];
            let lists = &mut self.lists[before[2]..ends[2]];
            more.clear();
            more.extend_from_slice(&self.hits[before[1]..ends[1]]);
            before = *ends;
            let mut mapping_ranges = ReadMappingRanges::default();
            let mut read_lists = 0;
            if !lists.is_empty() {
                for list in &mut *lists {
                    list.num_positions = count_primary_positions(view, list.list) as u32;
                }
                lists.sort_unstable_by_key(|list| (list.num_positions, list.seed_start));
                let frequent = seeds.len() / 2 + lists.len();
                mapping_ranges.median_seed_copies =
                    frequent.checked_sub(seeds.len()).and_then(|i| lists.get(i)).map_or(0, |list| list.num_positions);
                let mut sum = 0;
                for list in &*lists {
                    let n = list.num_positions as usize;
                    if n > MAX_SHORT_LIST && sum + n > MAX_FIRST_POSITIONS {
                        break;
                    }
                    sum += n;
                    let list = DeferredList { examine_alt: more.len() < MAX_HITS_WITH_ALT, ..*list };
                    for_each_diagonal_of_deferred_list(view, &list, length, |diagonal| more.push(diagonal));
                    read_lists += 1;
                }
            }
            let deferred = &lists[read_lists..];
            let from = mapped.deferred.len() as u32;
            mapped.deferred.extend_from_slice(deferred);
            mapping_ranges.deferred = (from, mapped.deferred.len() as u32);
            let from = mapped.seeds.len() as u32;
            mapped.seeds.extend(seeds.iter().map(|seed| seed.at));
            mapping_ranges.seeds = (from, mapped.seeds.len() as u32);
            mapping_ranges.examined_seeds =
                count_examined_disjoint_seeds(&mapped.seeds[from as usize..], deferred, 0..length);
            more.sort_unstable();
            more.dedup_by(|one, other| one.is_same_diagonal(*other));
            let first = self.diagonals.len();
            for &diagonal in &*more {
                view.prefetch_reference_bases(diagonal.read_start_on_reference(), length);
                self.diagonals.push(diagonal);
            }
            mapping_ranges.placements = (first as u32, self.diagonals.len() as u32);
            mapped.mapping_ranges.push(mapping_ranges);
        }
    }

    /// Aligns a group of reads without gaps on their diagonals, and requests gapped alignments for promising
    /// placements.
    #[inline(always)]
    fn align_ungapped(
        &mut self,
        view: &IndexView<'_>,
        options: &ScoringOptions,
        mapped: &mut MappedReads,
        reads: Range<usize>,
    ) {
        for read in reads {
            let (from, to) = mapped.mapping_ranges[read].placements;
            let first = self.placements.len();
            let diagonals = &self.diagonals[from as usize..to as usize];
            mapped.mapping_ranges[read].has_dropped_placements = self.ungapped_aligner.align_ungapped_on_diagonals(
                view,
                options,
                &mapped.packed,
                read,
                diagonals,
                None,
                &mut self.placements,
            );
            add_gapped_jobs(
                options,
                read,
                mapped.packed.read_length(read),
                &self.placements,
                first,
                MAX_RIVAL_SCORE_DEFICIT * options.match_score,
                &mut self.jobs,
            );
            mapped.mapping_ranges[read].placements = (first as u32, self.placements.len() as u32);
        }
    }

    #[inline(always)]
    fn align_gapped(&mut self, view: &IndexView<'_>, options: &ScoringOptions, mapped: &mut MappedReads) {
        let (packed, placements) = (&mapped.packed, &mut self.placements);
        let strand = |read, reverse| packed.read_strand(read as usize, reverse);
        self.aligner.align_jobs(view, options, &mut self.jobs, &mut mapped.cigars, strand, |found| {
            replace_by_gapped_if_better(&mut placements[found.place as usize], &found);
        });
    }

    /// Sorts the placements of each read, drops those with poor scores, and stores the others in `mapped`.
    #[inline(always)]
    fn select_placements(&mut self, options: &ScoringOptions, mapped: &mut MappedReads) {
        for read in 0..mapped.mapping_ranges.len() {
            let (from, to) = mapped.mapping_ranges[read].placements;
            self.of_one.clear();
            self.of_one.extend_from_slice(&self.placements[from as usize..to as usize]);
            mapped.mapping_ranges[read].has_dropped_placements |=
                sort_and_filter_placements(options, mapped.packed.read_length(read), &mut self.of_one);
            let first = mapped.placements.len() as u32;
            mapped.placements.extend_from_slice(&self.of_one);
            mapped.mapping_ranges[read].placements = (first, mapped.placements.len() as u32);
        }
    }
}

/// Number of non-overlapping seeds in the range `bases` of a read whose reference positions were all examined, because
/// their lists are not deferred.
#[inline(always)]
pub(crate) fn count_examined_disjoint_seeds(seeds: &[u16], deferred: &[DeferredList], bases: Range<usize>) -> u16 {
    let (mut sure, mut end) = (0, bases.start);
    for &at in seeds {
        if usize::from(at) >= end
            && usize::from(at) + SEED_BP <= bases.end
            && deferred.iter().all(|list| list.seed_start != at)
        {
            sure += 1;
            end = usize::from(at) + SEED_BP;
        }
    }
    sure
}

/// Replaces a placement by the better alignment found for it, if there is one. The best score of a part is that of
/// either. Records whether all gaps were tried.
#[inline(always)]
pub(crate) fn replace_by_gapped_if_better(place: &mut Placement, found: &GappedResult) {
    if let Some(better) = found.better {
        let Placement { is_rescued, is_on_alt, .. } = *place;
        let score = place.score.max(better.score);
        *place = Placement { is_rescued, is_on_alt, is_gapped_alignment: true, score, ..better };
    }
    place.all_gaps_tried |= found.covers_all_gaps;
}

/// A diagonal of a read with an upper bound of the ungapped score and the number of mismatches on it.
#[derive(Debug, Clone, Copy)]
struct UngappedHit {
    diagonal: Diagonal,
    worth: i32,
    differing: u32,
}

/// Maximum number of mismatches of the [`MAX_PLACEMENTS`] hits with the fewest mismatches, without those on ALT contigs;
/// the length of the read if there are fewer hits. `counts` is a buffer: number of hits by number of mismatches.
#[inline]
fn max_kept_mismatches(view: &IndexView<'_>, hits: &[UngappedHit], counts: &mut Vec<usize>, length: usize) -> usize {
    counts.clear();
    counts.resize(length + 1, 0);
    let is_primary = |hit: &&UngappedHit| !view.is_on_alt_contig(hit.diagonal.anchor_start_on_reference());
    hits.iter().filter(is_primary).for_each(|hit| counts[hit.differing as usize] += 1);
    let mut num_hits = 0;
    let reaches_maximum = |n: &usize| {
        num_hits += n;
        num_hits >= MAX_PLACEMENTS
    };
    counts.iter().position(reaches_maximum).unwrap_or(length)
}

/// Aligns reads on diagonals without gaps; holds reusable buffers.
#[derive(Debug, Default)]
pub(crate) struct UngappedAligner {
    hits: Vec<UngappedHit>,
    hits_by_mismatches: Vec<usize>,
    masks: MismatchMasks,
}

impl UngappedAligner {
    /// Aligns a read without gaps on each of the sorted diagonals whose anchor seed matches the reference, and appends
    /// the placements. Those with a score far below the best score are left out; `best` is the best score on diagonals
    /// that were examined before. Returns whether placements were left out because there were too many.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn align_ungapped_on_diagonals(
        &mut self,
        view: &IndexView<'_>,
        options: &ScoringOptions,
        packed: &PackedReadBatch,
        read: usize,
        diagonals: &[Diagonal],
        best: Option<i32>,
        placements: &mut Vec<Placement>,
    ) -> bool {
        let UngappedAligner { hits, hits_by_mismatches, masks } = self;
        let strands = [packed.read_strand(read, false), packed.read_strand(read, true)];
        let length = strands[0].length;
        let full = length as i32 * options.match_score;
        let (lost, near) = (options.match_score + options.mismatch_penalty, MAX_SCORE_DEFICIT * options.match_score);
        let limit = (view.words.len() - MAX_READ_WORDS - 2) as u64 * 32;
        let first = placements.len();
        // Score of the best diagonal over the whole read: diagonals that cannot come near it need no closer look.
        let mut least = best.unwrap_or(i32::MIN / 2) - near;
        let place = |diagonal: Diagonal| Placement {
            left: diagonal.read_start_on_reference(),
            reverse: diagonal.is_reverse(),
            anchor: diagonal.anchor_start_in_read(),
            ..Placement::default()
        };
        hits.clear();
        for (i, &diagonal) in diagonals.iter().enumerate() {
            if let Some(ahead) = diagonals.get(i + DIAGONALS_PREFETCHED_AHEAD) {
                view.prefetch_reference_bases(ahead.read_start_on_reference(), length);
            }
            if diagonal.read_start_on_reference() >= limit {
                continue;
            }
            let strand = strands[usize::from(diagonal.is_reverse())];
            let differing = mask_and_count_mismatches(view.words, diagonal.read_start_on_reference(), strand, masks);
            if seed_matches_reference(masks, usize::from(diagonal.anchor_start_in_read())) {
                // A placement on an ALT contig does not displace others.
                if !view.is_on_alt_contig(diagonal.anchor_start_on_reference()) {
                    least = least.max(full - lost * differing as i32 - near);
                }
                if diagonals.len() == 1 {
                    let mut place = place(diagonal);
                    set_to_best_ungapped_segment(view, masks, strand, &mut place, false, options);
                    placements.push(place);
                    return false;
                }
                let mut most = full - options.match_score * differing as i32;
                if best.is_some() && most >= least {
                    most = ungapped_score_upper_bound(masks, strand, options);
                }
                hits.push(UngappedHit { diagonal, worth: most, differing });
            }
        }
        let (near_best, mut crowded) = (least, false);
        if hits.len() > MAX_PLACEMENTS {
            // No more than this number is kept, so that worse diagonals can be skipped.
            let max_mismatches = max_kept_mismatches(view, hits, hits_by_mismatches, length);
            least = least.max(full - lost * max_mismatches as i32);
        }
        let many = hits.len() > 1 && least > full / 2;
        for i in 0..hits.len() {
            let UngappedHit { diagonal, worth, .. } = hits[i];
            let near = |other: Option<&UngappedHit>| {
                other.is_some_and(|other| other.diagonal.is_near_diagonal(diagonal, NEIGHBOUR_DISTANCE_BP))
            };
            let neighbour = near(hits.get(i + 1)) || near(i.checked_sub(1).and_then(|i| hits.get(i)));
            if many && worth < least && !neighbour {
                crowded |= worth >= near_best;
                continue;
            }
            let strand = strands[usize::from(diagonal.is_reverse())];
            mask_and_count_mismatches(view.words, diagonal.read_start_on_reference(), strand, masks);
            let mut place = place(diagonal);
            // With deferred lists the neighbours of a diagonal are unknown.
            set_to_best_ungapped_segment(view, masks, strand, &mut place, neighbour || best.is_some(), options);
            placements.push(place);
        }
        placements[first..]
            .sort_unstable_by_key(|place| (place.is_on_alt, -place.net_score, place.left, place.reverse));
        crowded
    }
}
