//! Mate rescue: searches for a mate near the placements of the other mate.

use super::{MIN_RESCUING_SCORE, PairingBuffers, PairingContext, TemplateRead};
use crate::gapped::GappedJob;
use crate::insert_size::five_prime_position;
use crate::mapper::MappedReads;
use crate::options::ScoringOptions;
use crate::placement::Placement;
use crate::ungapped::{find_two_best_ungapped_positions, mask_and_count_mismatches, set_to_best_ungapped_segment};

/// Maximum number of placements of a read near which mate rescue searches for the mate.
const MAX_RESCUING_PLACEMENTS: usize = 50;
/// Number of placements of a read from which on mate rescue searches only for mates that lower the mapping quality.
const MANY_RESCUING_PLACEMENTS: usize = 8;
/// Maximum score deficit, in matches, of a pair that mate rescue could find, relative to the best pair.
const MAX_PAIR_SCORE_DEFICIT: i32 = 24;
/// Minimum score deficit relative to a perfect match, in matches, at which a placement of the best pair is aligned with
/// gaps.
const MIN_LOST_SCORE_FOR_GAPS: i32 = 20;
/// Maximum score deficit with gaps, in matches, relative to the best pair, at which the placements of another pair are
/// aligned with gaps: a pair further behind does not lower the mapping quality.
const MAX_RIVAL_PAIR_DEFICIT: i32 = 10;
/// Maximum number of pairs beside the best one whose placements are aligned with gaps.
const MAX_RIVAL_PAIRS: usize = 16;
/// Maximum length (bp) of the window in which a mate is searched for.
const MAX_RESCUE_WINDOW_BP: u64 = 20_000;

/// Whether mate rescue searches near all placements of a read whose scores are near the best one.
pub(super) fn is_searched_near_all_placements(read: &TemplateRead, options: &ScoringOptions) -> bool {
    let best = read.placements.first().map_or(0, |place| place.score);
    let next = read.placements.get(MAX_RESCUING_PLACEMENTS);
    best >= MIN_RESCUING_SCORE * options.match_score
        && next.is_none_or(|next| next.score < best - options.unpaired_penalty)
}

/// Upper bound of the score that gaps could gain for placement number `which` of a read; 0 if it was aligned with gaps.
#[inline(always)]
fn possible_gap_gain(read: &TemplateRead, which: u16) -> i32 {
    let place = &read.placements[usize::from(which)];
    if place.all_gaps_tried || place.is_gapped_alignment { 0 } else { place.max_gapped_score - place.net_score }
}

impl PairingBuffers {
    /// Mate rescue: searches for each mate near the best placements of the other mate. Before that, requests gapped
    /// alignments of the placements of the best pair.
    #[inline(always)]
    pub(super) fn rescue_mates(&mut self, job: &PairingContext<'_>, mapped: &MappedReads, first: usize) {
        self.pair_placements(job, first);
        let mending = self.request_gapped_alignments(job, first);
        let options = job.options;
        let top = self.placement_pairs.first().map_or(i32::MIN / 2, |pair| pair.score);
        let step = options.match_score + options.mismatch_penalty;
        for mate in 0..2 {
            let (x, y) = (first + mate, first + 1 - mate);
            let (best, other) = (
                self.reads[x].placements.first().map_or(0, |place| place.score),
                self.reads[y].placements.first().map_or(0, |place| place.score),
            );
            if best < MIN_RESCUING_SCORE * options.match_score {
                continue;
            }
            let length = self.reads[y].length;
            let full = length as i32 * options.match_score;
            let most = full - step * i32::from(self.reads[y].joined.min(6));
            let begun = self.jobs.len();
            let known = self.reads[y].placements.len();
            for i in 0..self.reads[x].placements.len().min(MAX_RESCUING_PLACEMENTS) {
                let place = self.reads[x].placements[i];
                if place.score < best - options.unpaired_penalty {
                    break;
                }
                let deficit =
                    if i < MANY_RESCUING_PLACEMENTS { MAX_PAIR_SCORE_DEFICIT } else { MAX_RIVAL_PAIR_DEFICIT };
                if place.score + most < top - deficit * options.match_score {
                    continue;
                }
                let end = five_prime_position(&place, self.reads[x].length);
                let enough = (full - 2 * step).min(other.max(full / 2)) - 2 * step;
                let there = self.reads[y].placements[..known].iter().any(|found| {
                    let ends = [end, five_prime_position(found, length)];
                    let worth = job.inserts.score_of_proper_insert_size(ends, [place.reverse, found.reverse]);
                    worth.is_some_and(|worth| found.score + worth >= enough)
                });
                if !there {
                    self.find_mate(job, mapped, y, &place, end);
                }
            }
            let has_gapped_jobs = mending[1 - mate] || self.jobs.len() > begun;
            if !has_gapped_jobs && self.reads[y].placements.len() > known {
                self.reads[y].placements.retain(|place| !place.is_rescued || place.score >= options.min_score);
                self.reads[y].sort_placements(options);
            }
        }
    }

    /// Requests gapped alignments of the placements of the best pair, if not all gaps have been tried, and of the
    /// placements of pairs that could come near its score with gaps. Returns for each mate whether an alignment was
    /// requested.
    #[inline(always)]
    fn request_gapped_alignments(&mut self, job: &PairingContext<'_>, first: usize) -> [bool; 2] {
        let Some(best) = self.placement_pairs.first() else { return [false; 2] };
        let options = job.options;
        let begun = self.jobs.len();
        for mate in 0..2 {
            let (read, which) = (&self.reads[first + mate], usize::from(best.which[mate]));
            let place = &read.placements[which];
            let full = read.length as i32 * options.match_score;
            if place.all_gaps_tried || place.net_score > full - MIN_LOST_SCORE_FOR_GAPS * options.match_score {
                continue;
            }
            let number = (first + mate) as u32;
            self.jobs.extend(GappedJob::for_placement(number, which as u32, place, read.length, false, options));
        }
        let least = best.score - MAX_RIVAL_PAIR_DEFICIT * options.match_score;
        for pair in self.placement_pairs[1..].iter().take(MAX_RIVAL_PAIRS) {
            let gains = [0, 1].map(|mate| possible_gap_gain(&self.reads[first + mate], pair.which[mate]));
            if pair.score + gains[0] + gains[1] < least {
                continue;
            }
            for (mate, gain) in gains.into_iter().enumerate() {
                let (number, which) = ((first + mate) as u32, u32::from(pair.which[mate]));
                let known = || self.jobs[begun..].iter().any(|job| job.read == number && job.place == which);
                if gain > 0 && !known() {
                    let read = &self.reads[first + mate];
                    let place = &read.placements[which as usize];
                    self.jobs.extend(GappedJob::for_placement(number, which, place, read.length, true, options));
                }
            }
        }
        [0, 1].map(|mate| self.jobs[begun..].iter().any(|job| job.read as usize == first + mate))
    }

    /// Searches for read number `y` near the placement `mate` of its mate, whose 5' end is at packed position `end`,
    /// and adds the placements found.
    #[inline(always)]
    fn find_mate(&mut self, job: &PairingContext<'_>, mapped: &MappedReads, y: usize, mate: &Placement, end: u64) {
        let length = self.reads[y].length;
        let bounds = job.view.contig_bounds(mate.ref_start());
        for (orientation, insert) in job.inserts.by_orientation.iter().enumerate() {
            let Some(insert) = insert else { continue };
            let strands = [orientation & 2 != 0, orientation & 1 != 0];
            for behind in [true, false] {
                let (own, reverse) = if behind { (strands[0], strands[1]) } else { (strands[1], strands[0]) };
                if own != mate.reverse {
                    continue;
                }
                // Range of the read's 5' end, then of its first base on the reference.
                let (low, high) = (insert.low - 1, insert.high - 1);
                let (from, to) = if behind { (low, high) } else { (-high, -low) };
                let shift = if reverse { length as i64 - 1 } else { 0 };
                let within = |at: i64| {
                    at.clamp(bounds.start as i64 - length as i64 / 2, bounds.end as i64 - length as i64 / 2) as u64
                };
                let (from, to) = (within(end as i64 + from - shift), within(end as i64 + to - shift + 1));
                if to <= from || length == 0 {
                    continue;
                }
                let strand = mapped.packed.read_strand(y, reverse);
                let found = find_two_best_ungapped_positions(
                    job.view.words,
                    strand,
                    from,
                    to.min(from + MAX_RESCUE_WINDOW_BP),
                    &mut self.counts,
                );
                for (differing, left) in found.into_iter().flatten() {
                    if 10 * differing as usize > 6 * length {
                        continue;
                    }
                    let mut place = Placement {
                        left,
                        reverse,
                        anchor: length as u16 / 2,
                        is_rescued: true,
                        ..Placement::default()
                    };
                    mask_and_count_mismatches(job.view.words, left, strand, &mut self.masks);
                    set_to_best_ungapped_segment(job.view, &self.masks, strand, &mut place, true, job.options);
                    let placements = &mut self.reads[y].placements;
                    if placements.iter().any(|other| other.left == left && other.reverse == reverse) {
                        continue;
                    }
                    self.jobs.extend(GappedJob::for_placement(
                        y as u32,
                        placements.len() as u32,
                        &place,
                        length,
                        false,
                        job.options,
                    ));
                    placements.push(place);
                }
            }
        }
    }
}
