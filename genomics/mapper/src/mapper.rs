//! Maps each read separately: from its seeds to its placements. Reads go through the stages in groups; each stage
//! prefetches the memory that the next one reads.
//!
//! ```text
//!  letters -> packed -> seeds -> buckets -> ungapped placements -> promising ones with gaps -> placements of each read
//!                       prefetch  prefetch  prefetch
//!                       buckets   lists     the reference
//! ```

use std::ops::Range;

use genuma_machine::processor::SimdLevel;

use crate::bases::{PackedReadBatch, low_bits_of_base_range};
use crate::diagonal::Diagonal;
use crate::gapped::{GappedAligner, GappedJob, GappedResult};
use crate::index::{BucketAddress, IndexSlot, IndexView};
use crate::options::ScoringOptions;
use crate::placement::Placement;
use crate::syncmers::{SEED_BP, SyncmerFinder};
use crate::ungapped::{
    MAX_READ_WORDS, MismatchMasks, count_mismatches, max_ungapped_score, place_ungapped, seed_matches_reference,
};

/// Number of reads that are processed together, stage by stage, so that their memory accesses overlap.
const READS_PER_GROUP: usize = 64;
/// Maximum number of list positions of a read that are examined before pairing. Empirical: more positions find more
/// single reads and take longer.
const MAX_FIRST_POSITIONS: usize = 16;
/// Lists of at most this many positions are always examined before pairing. Empirical.
const MAX_SHORT_LIST: usize = 12;
/// Maximum score deficit of an ungapped placement, in matches, relative to the best. Empirical.
const MAX_SCORE_DEFICIT: i32 = 25;
/// Maximum score deficit of a kept placement, in matches, relative to the best. Empirical.
const MAX_KEPT_SCORE_DEFICIT: i32 = 30;
/// Maximum score deficit, in matches, with which a competing placement is still aligned with gaps. Empirical.
const MAX_RIVAL_SCORE_DEFICIT: i32 = 10;
/// Minimum score, in matches, that gaps could gain for a placement to be aligned with gaps. Empirical.
const MIN_GAP_GAIN: i32 = 10;
/// Minimum score deficit, in matches, of the best ungapped placement at which a gap is assumed to be likely. Empirical.
const POOR_SCORE_DEFICIT: i32 = 30;
/// Maximum number of placements of a read that are aligned with gaps.
const MAX_GAPPED_PLACEMENTS: usize = 4;
/// Maximum number of placements of a read that are kept.
const MAX_PLACEMENTS: usize = 256;
/// Distance in the list of diagonals at which reference bases are prefetched: while one diagonal is aligned, those of
/// the diagonal this far ahead are loaded.
pub(crate) const PREFETCH_DISTANCE: usize = 16;
/// Maximum length of a position list whose positions on ALT contigs are counted.
const MAX_ALT_COUNTED_POSITIONS: usize = 600;
/// Maximum number of seed hits of a read for which positions on ALT contigs are examined.
const MAX_HITS_WITH_ALT: usize = 400;
/// Distance (bp) within which two diagonals may belong to one gapped alignment.
const NEIGHBOUR_DISTANCE_BP: u64 = 150;

/// The list of a frequent seed whose positions are not examined before pairing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeferredList {
    /// Position of the list in the index.
    pub list: u32,
    /// Number of positions of the list in the primary assembly; of a very long list, the number of all positions.
    pub num_positions: u32,
    /// Whether positions on ALT contigs are examined, too.
    pub examine_alt: bool,
    /// Start of the seed in the read.
    pub seed_start: u16,
    /// Whether the reverse complement of the seed was hashed.
    pub reverse: bool,
}

/// Mapping results of one read except the placements themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadMappingRanges {
    /// Range of the placements of the read in the placements of all reads.
    pub places: (u32, u32),
    /// Range of the deferred lists of the read in the deferred lists of all reads.
    pub deferred: (u32, u32),
    /// Range of the seed starts of the read in the seed starts of all reads.
    pub seeds: (u32, u32),
    /// Number of occurrences in the reference of the read's median seed: about the number of near copies of the read.
    pub copies: u32,
    /// Number of non-overlapping seeds of the read whose positions were all examined. A placement that was not found
    /// must have a mismatch in each of these seeds.
    pub examined_seeds: u16,
    /// Whether placements with good scores were dropped because there were too many.
    pub has_dropped_placements: bool,
}

/// Mapping result of a batch of reads.
#[derive(Debug, Default)]
pub struct MappedReads {
    /// The reads of the batch at 2 bits a base, both strands.
    pub packed: PackedReadBatch,
    /// For each read, the ranges of its placements, lists and seeds in the other vectors.
    pub summary: Vec<ReadMappingRanges>,
    /// Placements of each read: those in the primary assembly, the best first, then those on ALT contigs, the best
    /// first.
    pub places: Vec<Placement>,
    /// Deferred lists of each read, the shortest first.
    pub deferred: Vec<DeferredList>,
    /// Start of each seed of each read.
    pub seeds: Vec<u16>,
    /// CIGAR operations of all gapped placements.
    pub cigars: Vec<u32>,
}

impl MappedReads {
    /// Removes the results of all reads and keeps the memory.
    pub fn clear(&mut self) {
        self.packed.clear();
        self.summary.clear();
        self.places.clear();
        self.deferred.clear();
        self.seeds.clear();
        self.cigars.clear();
    }

    /// Placements of read number `read`, those in the primary assembly first, the best first.
    pub fn placements_of_read(&self, read: usize) -> &[Placement] {
        let (from, to) = self.summary[read].places;
        &self.places[from as usize..to as usize]
    }

    /// Offsets in the read at which its seeds start.
    pub(crate) fn seed_offsets_of(&self, read: usize) -> &[u16] {
        let (from, to) = self.summary[read].seeds;
        &self.seeds[from as usize..to as usize]
    }

    /// Position lists of frequent seeds of a read that are examined only when mates are paired.
    pub(crate) fn deferred_lists_of_read(&self, read: usize) -> &[DeferredList] {
        let (from, to) = self.summary[read].deferred;
        &self.deferred[from as usize..to as usize]
    }
}

#[derive(Debug, Clone, Copy)]
struct Seed {
    address: BucketAddress,
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
    /// Diagonals of the current read: those of its seeds with one position and of its short position lists.
    read_diagonals: Vec<Diagonal>,
    lists: Vec<DeferredList>,
    /// For each read of a group, the ends of its ranges in `seeds`, `hits` and `lists`.
    ends: Vec<[usize; 3]>,
    /// Diagonals of each read of a group, sorted and without duplicates.
    diagonals: Vec<Diagonal>,
    /// Buffer for the placements of the current read.
    of_one: Vec<Placement>,
    /// Placements of all reads before the selection.
    places: Vec<Placement>,
    jobs: Vec<GappedJob>,
    aligner: GappedAligner,
    ungapped_aligner: UngappedAligner,
}

/// The diagonal of a read whose seed at read base `at` matches the reference at packed position `place`.
#[inline(always)]
fn seed_diagonal(place: u64, at: u16, length: usize, reverse: bool) -> Diagonal {
    let anchor = if reverse { (length - SEED_BP) as u16 - at } else { at };
    Diagonal::new(place - u64::from(anchor), reverse, anchor)
}

/// Number of positions of a list in the primary assembly; all positions of a long list.
#[inline(always)]
fn count_primary_positions(view: &IndexView<'_>, list: u32) -> usize {
    let list = view.position_list(list);
    let all = list.len();
    if !view.has_alt() || all > MAX_ALT_COUNTED_POSITIONS {
        return all;
    }
    all - list
        .positions_of_hashed_strand(false)
        .chain(list.positions_of_hashed_strand(true))
        .filter(|&place| view.is_alt(place))
        .count()
}

/// Passes the diagonals of all positions of a deferred list to `each`, in order. Positions on ALT contigs are included
/// only if the list says so.
#[inline(always)]
pub(crate) fn for_each_listed_diagonal(
    view: &IndexView<'_>,
    deferred: &DeferredList,
    length: usize,
    mut each: impl FnMut(Diagonal),
) {
    let list = view.position_list(deferred.list);
    for reverse in [false, true] {
        let places = list.positions_of_hashed_strand(deferred.reverse ^ reverse);
        if deferred.examine_alt || !view.has_alt() {
            places.for_each(|place| each(seed_diagonal(place, deferred.seed_start, length, reverse)));
        } else {
            places
                .filter(|place| !view.is_alt(*place))
                .for_each(|place| each(seed_diagonal(place, deferred.seed_start, length, reverse)));
        }
    }
}

/// Finds the placements of reads, each read separately. Reads have at most [`crate::options::MAX_READ_BP`] bases.
pub fn map_reads<'a>(
    view: &IndexView<'_>,
    options: &ScoringOptions,
    vectors: SimdLevel,
    state: &mut MappingBuffers,
    reads: impl Iterator<Item = &'a [u8]>,
    mapped: &mut MappedReads,
) {
    mapped.clear();
    state.places.clear();
    vectors.run_at_level(
        #[inline(always)]
        || {
            for read in reads {
                mapped.packed.push_read(read);
            }
            for first in (0..mapped.packed.len()).step_by(READS_PER_GROUP) {
                let last = (first + READS_PER_GROUP).min(mapped.packed.len());
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
    /// Finds seeds and prefetches their buckets.
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
                        .any(|i| strand.ambiguous[i] & low_bits_of_base_range(i, at, at + SEED_BP) != 0);
                    if touched {
                        return;
                    }
                }
                let address = view.bucket_address(seed.hash);
                view.prefetch_bucket(address);
                seeds.push(Seed { address, at: at as u16, reverse: seed.reverse });
            });
            self.ends.push([self.seeds.len(), 0, 0]);
        }
    }

    /// Looks up buckets and prefetches lists.
    #[inline(always)]
    fn look_up_seeds(&mut self, view: &IndexView<'_>, packed: &PackedReadBatch, reads: Range<usize>) {
        self.hits.clear();
        self.lists.clear();
        let mut from = 0;
        for (ends, read) in self.ends.iter_mut().zip(reads) {
            let length = packed.read_length(read);
            for seed in &self.seeds[from..ends[0]] {
                view.for_each_slot(seed.address, |slot| match slot {
                    IndexSlot::Position(place, reversed) => {
                        self.hits.push(seed_diagonal(place, seed.at, length, reversed ^ seed.reverse));
                    }
                    IndexSlot::List(list) => {
                        view.prefetch_list(list);
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

    /// Reads short lists, collects the diagonals and prefetches their reference bases.
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
            let mut summary = ReadMappingRanges::default();
            let mut read_lists = 0;
            if !lists.is_empty() {
                for list in &mut *lists {
                    list.num_positions = count_primary_positions(view, list.list) as u32;
                }
                lists.sort_unstable_by_key(|list| (list.num_positions, list.seed_start));
                let frequent = seeds.len() / 2 + lists.len();
                summary.copies =
                    frequent.checked_sub(seeds.len()).and_then(|i| lists.get(i)).map_or(0, |list| list.num_positions);
                let mut sum = 0;
                for list in &*lists {
                    let n = list.num_positions as usize;
                    if n > MAX_SHORT_LIST && sum + n > MAX_FIRST_POSITIONS {
                        break;
                    }
                    sum += n;
                    let list = DeferredList { examine_alt: more.len() < MAX_HITS_WITH_ALT, ..*list };
                    for_each_listed_diagonal(view, &list, length, |diagonal| more.push(diagonal));
                    read_lists += 1;
                }
            }
            let deferred = &lists[read_lists..];
            let from = mapped.deferred.len() as u32;
            mapped.deferred.extend_from_slice(deferred);
            summary.deferred = (from, mapped.deferred.len() as u32);
            let from = mapped.seeds.len() as u32;
            mapped.seeds.extend(seeds.iter().map(|seed| seed.at));
            summary.seeds = (from, mapped.seeds.len() as u32);
            summary.examined_seeds = count_examined_seeds(&mapped.seeds[from as usize..], deferred, 0..length);
            more.sort_unstable();
            more.dedup_by(|one, other| one.is_same_diagonal(*other));
            let first = self.diagonals.len();
            for &diagonal in &*more {
                view.prefetch_bases(diagonal.read_start(), length);
                self.diagonals.push(diagonal);
            }
            summary.places = (first as u32, self.diagonals.len() as u32);
            mapped.summary.push(summary);
        }
    }

    /// Aligns reads on their diagonals without gaps.
    #[inline(always)]
    fn align_ungapped(
        &mut self,
        view: &IndexView<'_>,
        options: &ScoringOptions,
        mapped: &mut MappedReads,
        reads: Range<usize>,
    ) {
        for read in reads {
            let (from, to) = mapped.summary[read].places;
            let first = self.places.len();
            let diagonals = &self.diagonals[from as usize..to as usize];
            mapped.summary[read].has_dropped_placements = self.ungapped_aligner.align_candidates(
                view,
                options,
                &mapped.packed,
                read,
                diagonals,
                None,
                &mut self.places,
            );
            add_gapped_jobs(
                options,
                read,
                mapped.packed.read_length(read),
                &self.places,
                first,
                MAX_RIVAL_SCORE_DEFICIT * options.match_score,
                &mut self.jobs,
            );
            mapped.summary[read].places = (first as u32, self.places.len() as u32);
        }
    }

    #[inline(always)]
    fn align_gapped(&mut self, view: &IndexView<'_>, options: &ScoringOptions, mapped: &mut MappedReads) {
        let (packed, places) = (&mapped.packed, &mut self.places);
        let strand = |read, reverse| packed.read_strand(read as usize, reverse);
        self.aligner.align_jobs(view, options, &mut self.jobs, &mut mapped.cigars, strand, |found| {
            replace_if_better(&mut places[found.place as usize], &found);
        });
    }

    /// Sorts the placements of each read and drops placements with poor scores.
    #[inline(always)]
    fn select_placements(&mut self, options: &ScoringOptions, mapped: &mut MappedReads) {
        for read in 0..mapped.summary.len() {
            let (from, to) = mapped.summary[read].places;
            self.of_one.clear();
            self.of_one.extend_from_slice(&self.places[from as usize..to as usize]);
            mapped.summary[read].has_dropped_placements |=
                sort_and_filter(options, mapped.packed.read_length(read), &mut self.of_one);
            let first = mapped.places.len() as u32;
            mapped.places.extend_from_slice(&self.of_one);
            mapped.summary[read].places = (first, mapped.places.len() as u32);
        }
    }
}

/// Number of non-overlapping seeds in `bases` of a read whose positions were all examined: their lists are not
/// deferred.
#[inline(always)]
pub(crate) fn count_examined_seeds(seeds: &[u16], deferred: &[DeferredList], bases: Range<usize>) -> u16 {
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

/// Replaces a placement by the gapped alignment found for it if that has a higher net score.
#[inline(always)]
pub(crate) fn replace_if_better(place: &mut Placement, found: &GappedResult) {
    if found.best.net_score > place.net_score {
        let Placement { is_rescued, alt, .. } = *place;
        *place = Placement { is_rescued, alt, is_gapped_form: true, ..found.best };
    }
    place.gaps_exhausted |= found.covers_all_gaps;
}

/// A diagonal of a read with its maximum ungapped score and its number of mismatches.
#[derive(Debug, Clone, Copy)]
struct UngappedHit {
    diagonal: Diagonal,
    worth: i32,
    differing: u32,
}

/// Aligns reads on diagonals without gaps; holds reusable buffers.
#[derive(Debug, Default)]
pub(crate) struct UngappedAligner {
    hits: Vec<UngappedHit>,
    hits_by_mismatches: Vec<usize>,
    masks: MismatchMasks,
}

impl UngappedAligner {
    /// Aligns a read without gaps on each of the sorted diagonals. Appends the placements whose score is not much
    /// below the best new score or below `best`, the best score of diagonals examined before. Returns whether
    /// placements were dropped because there were too many.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn align_candidates(
        &mut self,
        view: &IndexView<'_>,
        options: &ScoringOptions,
        packed: &PackedReadBatch,
        read: usize,
        diagonals: &[Diagonal],
        best: Option<i32>,
        places: &mut Vec<Placement>,
    ) -> bool {
        let UngappedAligner { hits, hits_by_mismatches, masks } = self;
        let strands = [packed.read_strand(read, false), packed.read_strand(read, true)];
        let length = strands[0].length;
        let full = length as i32 * options.match_score;
        let (lost, near) = (options.match_score + options.mismatch_penalty, MAX_SCORE_DEFICIT * options.match_score);
        let limit = (view.words.len() - MAX_READ_WORDS - 2) as u64 * 32;
        let first = places.len();
        // Score of the best diagonal over the whole read: diagonals that cannot come near it need no closer look.
        let mut least = best.unwrap_or(i32::MIN / 2) - near;
        let place = |diagonal: Diagonal| Placement {
            left: diagonal.read_start(),
            reverse: diagonal.is_reverse(),
            anchor: diagonal.anchor(),
            ..Placement::default()
        };
        hits.clear();
        for (i, &diagonal) in diagonals.iter().enumerate() {
            if let Some(ahead) = diagonals.get(i + PREFETCH_DISTANCE) {
                view.prefetch_bases(ahead.read_start(), length);
            }
            if diagonal.read_start() >= limit {
                continue;
            }
            let strand = strands[usize::from(diagonal.is_reverse())];
            let differing = count_mismatches(view.words, diagonal.read_start(), strand, masks);
            if seed_matches_reference(masks, usize::from(diagonal.anchor())) {
                // A placement on an ALT contig does not displace others.
                if !view.is_alt(diagonal.read_start() + u64::from(diagonal.anchor())) {
                    least = least.max(full - lost * differing as i32 - near);
                }
                if diagonals.len() == 1 {
                    let mut place = place(diagonal);
                    place_ungapped(view, masks, strand, &mut place, false, options);
                    places.push(place);
                    return false;
                }
                let mut most = full - options.match_score * differing as i32;
                if best.is_some() && most >= least {
                    most = max_ungapped_score(masks, strand, options);
                }
                hits.push(UngappedHit { diagonal, worth: most, differing });
            }
        }
        let (near_best, mut crowded) = (least, false);
        if hits.len() > MAX_PLACEMENTS {
            // No more than this number is kept, so that worse diagonals can be skipped.
            hits_by_mismatches.clear();
            hits_by_mismatches.resize(length + 1, 0);
            let assembled =
                |hits: &&UngappedHit| !view.is_alt(hits.diagonal.read_start() + u64::from(hits.diagonal.anchor()));
            hits.iter().filter(assembled).for_each(|hits| hits_by_mismatches[hits.differing as usize] += 1);
            let mut seen = 0;
            let last = hits_by_mismatches.iter().position(|n| {
                seen += n;
                seen >= MAX_PLACEMENTS
            });
            least = least.max(full - lost * last.unwrap_or(length) as i32);
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
            count_mismatches(view.words, diagonal.read_start(), strand, masks);
            let mut place = place(diagonal);
            // With deferred lists the neighbours of a diagonal are unknown.
            place_ungapped(view, masks, strand, &mut place, neighbour || best.is_some(), options);
            places.push(place);
        }
        places[first..].sort_unstable_by_key(|place| (place.alt, -place.net_score, place.left, place.reverse));
        crowded
    }
}

/// Requests gapped alignments of the sorted placements, from number `first` on, that gaps may improve. The best
/// placement on an ALT contig is treated like the best of all placements.
#[inline(always)]
pub(crate) fn add_gapped_jobs(
    options: &ScoringOptions,
    read: usize,
    length: usize,
    places: &[Placement],
    first: usize,
    behind: i32,
    jobs: &mut Vec<GappedJob>,
) {
    let best = |places: &[Placement]| places.first().map_or(i32::MIN / 2, |place| place.net_score);
    let best = best(&places[first..]);
    let bad = best <= length as i32 * options.match_score - POOR_SCORE_DEFICIT * options.match_score;
    let mut n = 0;
    for (i, place) in places.iter().enumerate().skip(first) {
        let first_alt = place.alt && i > first && !places[i - 1].alt;
        // If even the best placement is poor, any competitor of similar score may be the one that a gap improves.
        let gaps_exhausted = bad && place.net_score >= best - MAX_RIVAL_SCORE_DEFICIT * options.match_score;
        let rival = i > first && !first_alt && !gaps_exhausted;
        let worth_it = first_alt
            || gaps_exhausted
            || place.max_gapped_score >= place.net_score + MIN_GAP_GAIN * options.match_score;
        if i > first && (!gaps_exhausted && place.max_gapped_score < best - behind || !worth_it) {
            continue;
        }
        // Another diagonal of the same alignment; the band of the better one contains it.
        let known = (places[first..i].iter())
            .any(|other| other.reverse == place.reverse && other.left.abs_diff(place.left) < 8);
        if known {
            continue;
        }
        jobs.extend(GappedJob::for_placement(read as u32, i as u32, place, length, rival, options));
        n += 1;
        if n == MAX_GAPPED_PLACEMENTS {
            break;
        }
    }
}

/// Sorts placements: primary assembly before ALT contigs, the best first. Drops placements with poor scores and
/// placements that share a diagonal with a better one. Returns whether further placements were dropped because there
/// were too many.
#[inline(always)]
pub(crate) fn sort_and_filter(options: &ScoringOptions, length: usize, places: &mut Vec<Placement>) -> bool {
    if places.len() < 2 {
        return false;
    }
    places.sort_unstable_by_key(|place| (place.alt, -place.score, place.left, place.reverse));
    let near = places[0].score - MAX_KEPT_SCORE_DEFICIT * options.match_score;
    let (mut kept, mut gapped, mut crowded) = (0, false, false);
    for i in 0..places.len() {
        let place = places[i];
        // A placement of other bases of the read is compared with the best placement of these bases.
        let same = |other: &&Placement| !place.covers_different_bases(other, length);
        let matters = place.score >= near
            || place.score >= options.min_score
                && places[..kept]
                    .iter()
                    .find(same)
                    .is_none_or(|best| place.score >= best.score - MAX_KEPT_SCORE_DEFICIT * options.match_score);
        // A rescued placement is kept in any case.
        let room = kept < MAX_PLACEMENTS || place.is_rescued;
        if !matters || !room {
            crowded |= matters;
            continue;
        }
        // Seeds give each diagonal only once.
        let gaps = place.is_gapped_form;
        let form =
            (gapped || gaps || place.is_rescued) && places[..kept].iter().any(|other| other.shares_diagonal(&place));
        if !form {
            places[kept] = place;
            kept += 1;
            gapped |= gaps || place.is_rescued;
        }
    }
    places.truncate(kept);
    crowded
}
