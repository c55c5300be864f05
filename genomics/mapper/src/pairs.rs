//! Pairs mates: examines positions that only the mate makes likely, searches for mates near the placements of their
//! mates (mate rescue), and selects a placement of each mate.

mod pair_report;
mod read_report;
mod rescue;

use genuma_machine::simd_and_prefetch::SimdLevel;

use crate::diagonal::Diagonal;
use crate::gapped::GappedJob;
use crate::index::IndexView;
use crate::insert_size::{InsertSizeModels, five_prime_position};
use crate::mapper::{
    DIAGONALS_PREFETCHED_AHEAD, MappedReads, ReadMappingRanges, UngappedAligner, add_gapped_jobs,
    count_examined_disjoint_seeds, for_each_diagonal_of_deferred_list, replace_by_gapped_if_better,
    sort_and_filter_placements,
};
use crate::mapping_quality;
use crate::mate_join::{
    MateJoiner, MatePlacementsAndLists, count_lists_to_examine_for_mate, count_lists_to_examine_for_unpaired_read,
};
use crate::options::ScoringOptions;
use crate::placement::Placement;
use crate::ungapped::MismatchMasks;

pub use read_report::{ReadReport, ReportedSegment};

/// Number of mismatches of both mates together below which the best pair counts as fitting, so that fewer position
/// lists are examined. Empirical.
const MAX_FITTING_MISMATCHES: i32 = 6;
/// If either mate has fewer placements than this, every placement of one is compared with every placement of the
/// other. Otherwise those of one mate are sorted by position, and only near ones are compared.
const MIN_PLACEMENTS_TO_SORT: usize = 4;
/// Number of pending diagonals at which they are aligned.
const PENDING_BATCH: usize = 64;
/// Number of position lists of a read that are prefetched.
const PREFETCHED_LISTS: usize = 3;
/// Score lead, in matches, of the best placement over any placement that has not been examined, from which on no
/// further positions of a single read are examined. Empirical.
const CLEAR_SCORE_MARGIN: i32 = 14;
/// Maximum score deficit with gaps, in matches, at which a placement that was found with the help of the mate is
/// aligned with gaps: the score of the mate may compensate it. Empirical.
const MAX_JOINED_SCORE_DEFICIT: i32 = 15;
/// Approximate number of positions that are sampled from the list of a frequent seed if a read has no placement because
/// all its seeds are frequent.
const SAMPLED_POSITIONS: usize = 64;
/// Minimum score, in matches, of a read near which mate rescue searches for the mate. Empirical.
const MIN_RESCUING_SCORE: i32 = 40;

/// A read of a template with its placements and with what was skipped in the search. Placements are sorted: those in
/// the primary assembly, the best first, then those on ALT contigs.
#[derive(Debug, Default, Clone)]
struct TemplateRead {
    placements: Vec<Placement>,
    /// Whether the read has position lists that were not examined completely.
    deferred: bool,
    /// Whether gapped alignments of the read are pending. They refer to its placements by number, so the order must not
    /// change.
    has_gapped_jobs: bool,
    /// Whether only a sample of the positions of the read's seeds was examined, because all of them are frequent.
    sampled: bool,
    /// Whether positions near positions of the mate were skipped.
    has_skipped_mate_positions: bool,
    /// Whether the read has position lists that were not compared with the positions of the mate.
    has_lists_not_joined: bool,
    /// Whether position lists were too long to be examined although they could contain the best position.
    has_skipped_lists: bool,
    /// Whether placements with good scores were dropped because there were too many.
    has_dropped_placements: bool,
    /// Results of the mapper for the read; `examined_seeds` is updated when deferred lists are examined.
    mapping_ranges: ReadMappingRanges,
    /// Number of non-overlapping seeds of the read of which all positions near positions of the mate's seeds were
    /// examined. This number limits the score that a pair which was not examined could have.
    joined: u16,
    length: usize,
    /// Number of the read in the batch.
    number: usize,
}

impl TemplateRead {
    /// Whether all positions of the read's seeds were compared with those of the mate.
    fn is_compared_with_mate(&self) -> bool {
        !self.has_lists_not_joined && !self.has_skipped_mate_positions && !self.has_dropped_placements
    }

    #[inline(always)]
    fn sort_placements(&mut self, options: &ScoringOptions) {
        self.has_dropped_placements |= sort_and_filter_placements(options, self.length, &mut self.placements);
    }
}

/// A pair of placements at a proper distance: its score, and the number of the placement of each mate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlacementPair {
    score: i32,
    which: [u16; 2],
}

/// Numbers of reads whose positions or placements were skipped or dropped. The mapping qualities take these into
/// account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IncompleteSearchReadCounts {
    /// Number of reads with skipped positions or dropped placements of any kind.
    pub reads: u64,
    /// Number of reads with only frequent seeds, for which a sample of the positions was examined.
    pub sampled: u64,
    /// Number of reads with too many positions near the mate to examine all, or with seeds too frequent to search for
    /// positions near the mate.
    pub joined: u64,
    /// Number of reads without a fitting mate whose frequent seeds were skipped although a position of these seeds
    /// could be the best one.
    pub lists: u64,
    /// Number of reads with more good placements than are kept.
    pub placements: u64,
}

/// Buffers that one worker thread reuses for pairing all its batches.
#[derive(Debug, Default)]
pub struct PairingBuffers {
    /// Numbers of reads so far whose positions or placements were skipped or dropped.
    pub skipped: IncompleteSearchReadCounts,
    reads: Vec<TemplateRead>,
    placement_pairs: Vec<PlacementPair>,
    joiner: MateJoiner,
    diagonals: Vec<Diagonal>,
    /// Diagonals that [`MateJoiner`] selected and that are not aligned yet, read by read.
    pending: Vec<Diagonal>,
    /// For each read with pending diagonals its number, and the end of its diagonals in `pending`.
    readers: Vec<(usize, usize)>,
    jobs: Vec<GappedJob>,
    aligner: crate::gapped::GappedAligner,
    ungapped_aligner: UngappedAligner,
    masks: MismatchMasks,
    counts: Vec<u32>,
    ends: [Vec<u64>; 2],
    order: Vec<(u64, u32)>,
    reports: [ReadReport; 2],
}

struct PairingContext<'a> {
    view: &'a IndexView<'a>,
    options: &'a ScoringOptions,
    inserts: &'a InsertSizeModels,
}

/// Completes the placements of a batch of reads. If `inserts` is given, consecutive reads are mates; otherwise all
/// reads are single. Calls `each` for each template with the number of its first read, the reports of its one or two
/// reads, and whether the template is a proper pair. The CIGAR operations of the placements are in `mapped`.
pub fn pair_and_report_templates<E>(
    view: &IndexView<'_>,
    options: &ScoringOptions,
    vectors: SimdLevel,
    state: &mut PairingBuffers,
    mapped: &mut MappedReads,
    inserts: Option<&InsertSizeModels>,
    mut each: impl FnMut(&MappedReads, usize, &[ReadReport], bool) -> Result<(), E>,
) -> Result<(), E> {
    let none = InsertSizeModels::default();
    let job = PairingContext { view, options, inserts: inserts.unwrap_or(&none) };
    let paired = inserts.is_some();
    complete_placements(&job, vectors, state, mapped, paired);
    state.count_skipped(mapped.mapping_ranges.len());
    if !paired {
        for read in 0..mapped.mapping_ranges.len() {
            state.fill_report_without_mate(&job, mapped, 0, read);
            each(mapped, read, &state.reports[..1], false)?;
        }
        return Ok(());
    }
    for first in (0..mapped.mapping_ranges.len()).step_by(2) {
        let proper = state.fill_reports_of_pair(&job, mapped, first);
        each(mapped, first, &state.reports, proper)?;
    }
    Ok(())
}

/// Completes the placements of a batch of reads for [`pair_and_report_templates`]. It has no type parameters, so that
/// it is compiled once and not in each crate that maps reads.
fn complete_placements(
    job: &PairingContext<'_>,
    vectors: SimdLevel,
    state: &mut PairingBuffers,
    mapped: &mut MappedReads,
    paired: bool,
) {
    vectors.run_at_level(
        #[inline(always)]
        || {
            state.load_reads(mapped);
            if paired {
                for pair in 0..mapped.mapping_ranges.len() / 2 {
                    PairingBuffers::prefetch(job, mapped, 2 * pair + 4);
                    state.select_diagonals_near_mate(job, mapped, 2 * pair);
                    state.align_pending_if_full(job, mapped);
                }
                state.align_pending(job, mapped);
            }
            let mates = if paired { 2 } else { 1 };
            for first in (0..mapped.mapping_ranges.len()).step_by(mates) {
                PairingBuffers::prefetch(job, mapped, first + 4);
                if !paired || state.is_unpaired(job, mapped, first) {
                    (first..first + mates).for_each(|read| state.search_deferred_lists(job, mapped, read));
                    state.align_pending_if_full(job, mapped);
                }
            }
            state.align_pending(job, mapped);
            for read in 0..mapped.mapping_ranges.len() {
                state.sample_positions(job, mapped, read);
            }
            state.align_gapped(job, mapped);
            if paired {
                for pair in 0..mapped.mapping_ranges.len() / 2 {
                    state.rescue_mates(job, mapped, 2 * pair);
                }
                state.align_gapped(job, mapped);
            }
        },
    );
}

impl PairingBuffers {
    fn count_skipped(&mut self, reads: usize) {
        let PairingBuffers { skipped, reads: all, .. } = self;
        for read in &all[..reads] {
            skipped.reads += u64::from(
                read.sampled
                    || read.has_skipped_mate_positions
                    || read.has_skipped_lists
                    || read.has_dropped_placements,
            );
            skipped.sampled += u64::from(read.sampled);
            skipped.joined += u64::from(read.has_skipped_mate_positions);
            skipped.lists += u64::from(read.has_skipped_lists);
            skipped.placements += u64::from(read.has_dropped_placements);
        }
    }

    #[inline(always)]
    fn load_reads(&mut self, mapped: &MappedReads) {
        let n = mapped.mapping_ranges.len();
        if self.reads.len() < n {
            self.reads.resize_with(n, TemplateRead::default);
        }
        for (i, read) in self.reads[..n].iter_mut().enumerate() {
            read.placements.clear();
            read.placements.extend_from_slice(mapped.placements_of_read(i));
            read.mapping_ranges = mapped.mapping_ranges[i];
            read.joined = read.mapping_ranges.examined_seeds;
            read.deferred = !mapped.deferred_lists_of_read(i).is_empty();
            read.has_lists_not_joined = read.deferred;
            (read.has_gapped_jobs, read.sampled, read.has_skipped_mate_positions, read.has_skipped_lists) =
                (false, false, false, false);
            read.has_dropped_placements = read.mapping_ranges.has_dropped_placements;
            read.length = mapped.packed.read_length(i);
            read.number = i;
        }
    }

    /// Finds all pairs of placements of two mates at a proper distance and sorts them, the best first. Placements on
    /// ALT contigs are not paired.
    #[inline(always)]
    fn pair_placements(&mut self, job: &PairingContext<'_>, first: usize) {
        let PairingBuffers { reads, placement_pairs, ends, order, .. } = self;
        placement_pairs.clear();
        let (one, two) = (&reads[first], &reads[first + 1]);
        for (ends, read) in ends.iter_mut().zip([one, two]) {
            ends.clear();
            ends.extend(read.placements.iter().map(|place| five_prime_position(place, read.length)));
        }
        let [one_ends, two_ends] = &*ends;
        let mut add = |x: usize, y: usize| {
            let (a, b) = (&one.placements[x], &two.placements[y]);
            let Some(worth) =
                job.inserts.score_of_proper_insert_size([one_ends[x], two_ends[y]], [a.reverse, b.reverse])
            else {
                return;
            };
            if !a.is_on_alt && job.view.contig_index_at(a.ref_start()) == job.view.contig_index_at(b.ref_start()) {
                placement_pairs.push(PlacementPair { score: a.score + b.score + worth, which: [x as u16, y as u16] });
            }
        };
        if one_ends.len().min(two_ends.len()) < MIN_PLACEMENTS_TO_SORT {
            for x in 0..one_ends.len() {
                (0..two_ends.len()).for_each(|y| add(x, y));
            }
        } else {
            // Sort one mate's positions and compare only those that are near.
            order.clear();
            order.extend(two_ends.iter().copied().zip(0u32..));
            order.sort_unstable();
            for (x, &end) in one_ends.iter().enumerate() {
                let near = order.partition_point(|other| other.0 + job.inserts.max_distance < end);
                let near = order[near..].iter().take_while(|other| other.0 <= end + job.inserts.max_distance);
                near.for_each(|other| add(x, other.1 as usize));
            }
        }
        placement_pairs.sort_unstable_by_key(|pair| (-pair.score, pair.which));
    }

    /// If a mate has deferred lists that could contain the best pair, selects the diagonals of both mates that are at a
    /// proper distance, and adds them to the pending diagonals.
    #[inline(always)]
    fn select_diagonals_near_mate(&mut self, job: &PairingContext<'_>, mapped: &MappedReads, first: usize) {
        let [one, two] = [&self.reads[first], &self.reads[first + 1]];
        if !one.deferred && !two.deferred {
            return;
        }
        let options = job.options;
        let best = |read: &TemplateRead| read.placements.first().map_or(0, |place| place.score);
        let (bests, deferred) = ([best(one), best(two)], [one.deferred, two.deferred]);
        // A position that was not examined has further mismatches.
        let bounds = [one, two].map(|read| {
            mapping_quality::max_score_of_unexamined_placement(
                read.mapping_ranges.examined_seeds + 1,
                read.length,
                options,
            )
        });
        let full = (one.length + two.length) as i32 * options.match_score;
        let rescuer = MIN_RESCUING_SCORE * options.match_score;
        self.pair_placements(job, first);
        let top = self.placement_pairs.first().map_or(0, |pair| pair.score);
        let wanted = if deferred[0] && deferred[1] {
            top - options.unpaired_penalty - 1 < bounds[0] + bounds[1]
        } else {
            deferred[0] && bests[1] < rescuer || deferred[1] && bests[0] < rescuer
        };
        if !wanted {
            return;
        }
        let fitting = top > full - MAX_FITTING_MISMATCHES * (options.match_score + options.mismatch_penalty);
        let lists = [0, 1].map(|mate| {
            let lists = mapped.deferred_lists_of_read(first + mate);
            lists.split_at(count_lists_to_examine_for_mate(lists, fitting))
        });
        for (mate, (_, others)) in lists.iter().enumerate() {
            let i = first + mate;
            self.reads[i].has_lists_not_joined = !others.is_empty();
            self.reads[i].joined =
                count_examined_disjoint_seeds(mapped.seed_starts_of_read(i), others, 0..self.reads[i].length);
        }
        let PairingBuffers { reads, joiner, pending, readers, .. } = self;
        let mates = [0, 1].map(|mate| {
            let read = &reads[first + mate];
            MatePlacementsAndLists { placements: &read.placements, lists: lists[mate].0, length: read.length }
        });
        let more = joiner.select_diagonals_near_mate(job.view, job.inserts, mates);
        for mate in 0..2 {
            let found = joiner.selected_diagonals(mate);
            reads[first + mate].has_skipped_mate_positions =
                more[mate] || lists[mate].0.is_empty() && !lists[mate].1.is_empty();
            for diagonal in found.iter().take(DIAGONALS_PREFETCHED_AHEAD) {
                job.view.prefetch_reference_bases(diagonal.read_start_on_reference(), reads[first + mate].length);
            }
            pending.extend_from_slice(found);
            readers.push((first + mate, pending.len()));
        }
    }

    /// Whether the mates of a pair with deferred lists have no pair of placements that scores higher than two unpaired
    /// placements.
    #[inline(always)]
    fn is_unpaired(&mut self, job: &PairingContext<'_>, mapped: &MappedReads, first: usize) -> bool {
        if mapped.deferred_lists_of_read(first).is_empty() && mapped.deferred_lists_of_read(first + 1).is_empty() {
            return false;
        }
        self.pair_placements(job, first);
        let best = |i: usize| self.reads[i].placements.first().map_or(0, |place| place.score);
        let apart = best(first) + best(first + 1) - job.options.unpaired_penalty;
        self.placement_pairs.first().is_none_or(|pair| pair.score <= apart)
    }

    /// Examines the deferred lists of a read without a fitting mate, if they could contain the best position and are
    /// not too long. Adds the diagonals found to the pending diagonals.
    #[inline(always)]
    fn search_deferred_lists(&mut self, job: &PairingContext<'_>, mapped: &MappedReads, i: usize) {
        let PairingBuffers { reads, joiner, pending, readers, .. } = self;
        let read = &mut reads[i];
        let lists = mapped.deferred_lists_of_read(i);
        if lists.is_empty() {
            return;
        }
        let unseen = mapping_quality::max_score_of_unexamined_placement(
            read.mapping_ranges.examined_seeds + 1,
            read.length,
            job.options,
        );
        let wanted = match &read.placements[..] {
            [] => true,
            // Two placements that equal the reference.
            [best, next, ..] if best.score == next.score && best.score > unseen => false,
            [best, ..] => best.score - CLEAR_SCORE_MARGIN * job.options.match_score < unseen,
        };
        if !wanted {
            return;
        }
        let n = count_lists_to_examine_for_unpaired_read(lists);
        read.has_skipped_lists = n < lists.len();
        if n == 0 {
            return;
        }
        read.mapping_ranges.examined_seeds =
            count_examined_disjoint_seeds(mapped.seed_starts_of_read(i), &lists[n..], 0..read.length);
        read.deferred = read.has_skipped_lists;
        let mate = MatePlacementsAndLists { placements: &read.placements, lists: &lists[..n], length: read.length };
        joiner.collect_unplaced_diagonals(job.view, mate);
        let found = joiner.selected_diagonals(0);
        for diagonal in found.iter().take(DIAGONALS_PREFETCHED_AHEAD) {
            job.view.prefetch_reference_bases(diagonal.read_start_on_reference(), read.length);
        }
        pending.extend_from_slice(found);
        readers.push((i, pending.len()));
    }

    #[inline(always)]
    fn align_pending_if_full(&mut self, job: &PairingContext<'_>, mapped: &MappedReads) {
        if self.pending.len() >= PENDING_BATCH {
            self.align_pending(job, mapped);
        }
    }

    /// Aligns the pending diagonals. Their reference bases have been prefetched.
    #[inline(always)]
    fn align_pending(&mut self, job: &PairingContext<'_>, mapped: &MappedReads) {
        let mut from = 0;
        for n in 0..self.readers.len() {
            let (read, to) = self.readers[n];
            self.diagonals.clear();
            self.diagonals.extend_from_slice(&self.pending[from..to]);
            self.align_diagonals(job, mapped, read);
            from = to;
        }
        self.pending.clear();
        self.readers.clear();
    }

    /// Prefetches the first position lists of the reads `first` and `first` + 1.
    #[inline(always)]
    fn prefetch(job: &PairingContext<'_>, mapped: &MappedReads, first: usize) {
        for read in first..(first + 2).min(mapped.mapping_ranges.len()) {
            for list in mapped.deferred_lists_of_read(read).iter().take(PREFETCHED_LISTS) {
                job.view.prefetch_position_list(list.list);
            }
        }
    }

    /// If a read has no placement because all of its seeds are frequent, aligns it at a sample of the positions of its
    /// rarest seed.
    #[inline(always)]
    fn sample_positions(&mut self, job: &PairingContext<'_>, mapped: &MappedReads, i: usize) {
        if !self.reads[i].placements.is_empty() {
            return;
        }
        let Some(list) = mapped.deferred_lists_of_read(i).first() else { return };
        let step = (list.num_positions as usize).div_ceil(SAMPLED_POSITIONS);
        self.diagonals.clear();
        let mut n = 0;
        for_each_diagonal_of_deferred_list(job.view, list, self.reads[i].length, |diagonal| {
            if n % step == 0 {
                self.diagonals.push(diagonal);
            }
            n += 1;
        });
        self.reads[i].deferred = true;
        self.reads[i].sampled = step > 1;
        self.align_diagonals(job, mapped, i);
    }

    /// Aligns a read without gaps on the diagonals in `diagonals`, adds the placements with good scores, and requests
    /// gapped alignments.
    #[inline(always)]
    fn align_diagonals(&mut self, job: &PairingContext<'_>, mapped: &MappedReads, i: usize) {
        let read = &mut self.reads[i];
        let best = read.placements.first().map_or(i32::MIN / 2, |place| place.score);
        let first = read.placements.len();
        let (packed, diagonals) = (&mapped.packed, &self.diagonals);
        read.has_dropped_placements |= self.ungapped_aligner.align_ungapped_on_diagonals(
            job.view,
            job.options,
            packed,
            i,
            diagonals,
            Some(best),
            &mut read.placements,
        );
        add_gapped_jobs(
            job.options,
            i,
            read.length,
            &read.placements,
            first,
            MAX_JOINED_SCORE_DEFICIT * job.options.match_score,
            &mut self.jobs,
        );
        read.has_gapped_jobs |= self.jobs.last().is_some_and(|job| job.read as usize == i);
        if !read.has_gapped_jobs {
            read.sort_placements(job.options);
        }
    }

    /// Runs all pending gapped alignments.
    #[inline(always)]
    fn align_gapped(&mut self, job: &PairingContext<'_>, mapped: &mut MappedReads) {
        let PairingBuffers { reads, jobs, aligner, .. } = self;
        if jobs.is_empty() {
            return;
        }
        let mut touched: Vec<u32> = jobs.iter().map(|job| job.read).collect();
        touched.sort_unstable();
        touched.dedup();
        let packed = &mapped.packed;
        let strand = |read: u32, reverse| packed.read_strand(read as usize, reverse);
        aligner.align_jobs(job.view, job.options, jobs, &mut mapped.cigars, strand, |found| {
            replace_by_gapped_if_better(&mut reads[found.read as usize].placements[found.place as usize], &found);
        });
        for i in touched {
            let read = &mut reads[i as usize];
            read.has_gapped_jobs = false;
            read.placements.retain(|place| !place.is_rescued || place.score >= job.options.min_score);
            read.sort_placements(job.options);
        }
    }
}

#[cfg(test)]
mod tests;
