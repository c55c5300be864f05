//! Reports of the mates of a template: which placements are reported, and whether they are a proper pair.

use super::read_report::{
    ReadReport, bounded_mapq_without_mate, is_mostly_homopolymer, is_split_read, segment_mapq_upper_bound,
};
use super::rescue::is_searched_near_all_placements;
use super::{PairingBuffers, PairingContext, TemplateRead};
use crate::insert_size::five_prime_position;
use crate::mapper::MappedReads;
use crate::mapping_quality;
use crate::placement::Placement;

/// Factor by which the mapping-quality penalty for frequent seeds of both mates is multiplied. Empirical.
const COPIES_PENALTY_SHARE: f64 = 0.7;
/// Number of copies in the reference up to which the seeds that were compared with those of the mate are assumed to
/// show all copies. Empirical: raising the number raises mapping qualities in repeats.
const MAX_COPIES_SHOWN_BY_COMPARED_SEEDS: u32 = 1000;

/// Number of copies of a pair in the reference: the smaller of the numbers that the seeds of both mates have.
fn num_copies(reads: [&TemplateRead; 2]) -> u32 {
    let [first, second] = reads.map(|read| read.mapping_ranges.median_seed_copies);
    first.min(second)
}

/// Whether all copies of a pair were examined: all positions of the seeds of both mates were compared, or, if there are
/// few copies, those of some seeds.
fn are_all_copies_examined(reads: [&TemplateRead; 2]) -> bool {
    let some_compared =
        |read: &TemplateRead| read.joined > 0 && !read.has_skipped_mate_positions && !read.has_dropped_placements;
    reads.into_iter().all(TemplateRead::is_compared_with_mate)
        || num_copies(reads) <= MAX_COPIES_SHOWN_BY_COMPARED_SEEDS && reads.into_iter().all(some_compared)
}

/// Amount by which the copies of a pair lower its mapping quality if not all of them were examined.
fn penalty_for_copies(reads: [&TemplateRead; 2]) -> f64 {
    mapping_quality::mapq_penalty_for_tied_placements(num_copies(reads)) * COPIES_PENALTY_SHARE
}

impl PairingBuffers {
    /// Fills report number `report` for read number `read`, independently of its mate.
    pub(super) fn fill_report_without_mate(
        &mut self,
        job: &PairingContext<'_>,
        mapped: &MappedReads,
        report: usize,
        read: usize,
    ) {
        let report = &mut self.reports[report];
        report.placements.clear();
        report.placements.extend_from_slice(&self.reads[read].placements);
        let read = &self.reads[read];
        let homopolymer = |place: &Placement| is_mostly_homopolymer(mapped, read, place, job.options);
        let best = read.placements.iter().position(|place| !place.is_on_alt && !homopolymer(place)).unwrap_or(0);
        let primary =
            (!read.placements.is_empty()).then(|| (best, bounded_mapq_without_mate(mapped, read, best, job.options)));
        report.choose_reported_segments(mapped, read, primary, false, job.options);
    }

    /// Fills the reports of both mates; returns whether they are a proper pair.
    pub(super) fn fill_reports_of_pair(
        &mut self,
        job: &PairingContext<'_>,
        mapped: &MappedReads,
        first: usize,
    ) -> bool {
        self.pair_placements(job, first);
        let options = job.options;
        let reads = [&self.reads[first], &self.reads[first + 1]];
        let best = |read: &TemplateRead| read.placements.first().map_or(0, |place| place.score);
        let apart = best(reads[0]) + best(reads[1]) - options.unpaired_penalty;
        // As in bwa: a split read is placed where most of it aligns, independent of its mate.
        let whole = reads.iter().all(|read| !is_split_read(read, options));
        let pair = self.placement_pairs.first().copied().filter(|pair| whole && pair.score > apart);
        let Some(pair) = pair else {
            for mate in 0..2 {
                self.fill_report_without_mate(job, mapped, mate, first + mate);
            }
            return self.is_proper_pair(job, first);
        };
        let mut next = self.placement_pairs.get(1).map_or(apart, |pair| pair.score.max(apart));
        let step = options.match_score + options.mismatch_penalty + 1;
        let near = self.placement_pairs[1..].iter().filter(|pair| pair.score >= next - step).count();
        let mut copied = 0.0;
        if reads[0].deferred && reads[1].deferred {
            let complete = are_all_copies_examined(reads);
            if !complete {
                copied = penalty_for_copies(reads);
            }
            // A position that was not examined, near another placement of the mate.
            for mate in 0..2 {
                let (this, other) = (reads[mate], reads[1 - mate]);
                if complete && is_searched_near_all_placements(other, options) {
                    continue;
                }
                let rivals = mapping_quality::find_best_rival_score_and_count(
                    &other.placements,
                    usize::from(pair.which[1 - mate]),
                    other.length,
                    options,
                );
                let unseen = mapping_quality::likely_score_of_unexamined_placement(
                    &this.placements[usize::from(pair.which[mate])],
                    this.joined,
                    this.mapping_ranges.median_seed_copies,
                    this.length,
                    options,
                );
                next = next.max(unseen + rivals.best.unwrap_or(0));
            }
        }
        let of_pair = mapping_quality::pair_mapq(pair.score - next, near as u32, copied, options);
        for (mate, read) in reads.into_iter().enumerate() {
            let which = usize::from(pair.which[mate]);
            let own = bounded_mapq_without_mate(mapped, read, which, options);
            // A mate can raise the mapping quality by at most 40.
            let quality = if own > of_pair { own } else { of_pair.min(own + 40) };
            let quality = quality.min(segment_mapq_upper_bound(mapped, read, which, options));
            let report = &mut self.reports[mate];
            report.placements.clear();
            report.placements.extend_from_slice(&read.placements);
            report.choose_reported_segments(mapped, read, Some((which, quality)), true, options);
        }
        self.is_proper_pair(job, first)
    }

    /// Whether both mates have a primary placement, and these form a proper pair on one sequence.
    fn is_proper_pair(&self, job: &PairingContext<'_>, first: usize) -> bool {
        let primary = |report: &ReadReport| report.segments.first().map(|piece| report.placements[piece.place]);
        let [Some(a), Some(b)] = self.reports.each_ref().map(primary) else { return false };
        let ends =
            [five_prime_position(&a, self.reads[first].length), five_prime_position(&b, self.reads[first + 1].length)];
        job.inserts.score_of_proper_insert_size(ends, [a.reverse, b.reverse]).is_some()
            && job.view.contig_index_at(a.ref_start()) == job.view.contig_index_at(b.ref_start())
    }
}
