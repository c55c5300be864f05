//! Explains a contig by the most probable sequence of events (substitutions, gaps and jumps) near its position on the
//! genome.
//!
//! An alignment with gap costs is no good model of a tandem duplication: it would align the first copy with the
//! unrelated bases before it, and one event would become many small changes. In this model, each base of the contig
//! costs the negative log-probability of the event that makes it. A base that is copied from the genome nearby costs
//! nothing, whether it is the next base of the genome or the first base of a second copy. `docs/model/event.md` defines
//! the costs.

use std::ops::RangeInclusive;

use crate::affine_alignment::{Alignment, AlignmentOp};
use crate::change::{Breakend, Change, RetainedSide};
use crate::minisatellite::{
    MAX_MINISATELLITE_UNIT_BP, MIN_BASES_EQUAL_ONE_UNIT_BEFORE, MIN_MINISATELLITE_UNIT_BP,
    find_imperfect_minisatellites, num_positions_extending_repeat,
};

/// Costs of events in hundredths of natural-log units: negative logarithms of their probabilities. The formulas are
/// those of `docs/model/event.md`.
#[derive(Debug)]
pub(crate) struct EventModelParams {
    /// Cost of a substitution (formula 1). Unit: hundredths of natural-log units. Source: chosen, one substitution in
    /// 1000 bases with one of three bases. If higher: fewer substitutions are explained as part of a larger event.
    pub(crate) substitution: i32,
    /// Cost of a gap or a jump, not counting its length (formulas 2, 3). Unit: hundredths of natural-log units. Source:
    /// chosen, one in 10,000 bases. If higher: more substitutions are accepted instead of a larger event.
    pub(crate) event: i32,
    /// Cost of a base that is not copied from the genome nearby (formulas 2, 3). Unit: hundredths of natural-log units.
    /// Source: one of four bases. If higher: inserted bases are more often explained as copies.
    pub(crate) new_base: i32,
    /// Cost of the position in the window at which the contig continues after a jump (formula 3). Unit: hundredths of
    /// natural-log units. Source: ln of about 1500 possible positions in the window. If higher: fewer large events.
    pub(crate) nearby_position: i32,
    /// Cost of the position after a jump by one unit of a tandem repeat (formula 6). Unit: hundredths of natural-log
    /// units. Source: ln of two directions. If higher: more substitutions are accepted where a contig ends in a repeat
    /// that gained or lost a unit.
    pub(crate) repeat_place: i32,
    /// Cost of a position anywhere in the genome, for the second end of a distant junction (formula 4). Unit:
    /// hundredths of natural-log units. Source: ln of 3 billion possible positions. If higher: junctions of distant
    /// positions are explained by nearby events more often.
    pub(crate) distant_position: i32,
    /// Maximum distance between the ends of a junction on one strand that counts as nearby (formula 4). Unit: bp.
    /// Source: chosen, the margin of the window. If higher: longer duplications and deletions cost as little as nearby
    /// ones.
    pub(crate) max_local_junction_bp: usize,
    /// Length of the target-site duplication of an inserted element. Unit: bp. Source: chosen; L1 and Alu elements make 7
    /// to 20 bp, and the microhomology of the junctions shortens or lengthens what is seen. If higher: with a wider
    /// range, more junctions of other events are joined.
    pub(crate) target_site_duplication_bp: RangeInclusive<usize>,
    /// Length of the copy from which an element comes. Unit: bp. Source: chosen; more than the overlap of the two
    /// junctions of a reciprocal translocation, and the longest mobile elements of the human genome, endogenous
    /// retroviruses, have 9.5 kb. If higher: with a wider range, more junctions of other events are joined.
    pub(crate) element_bp: RangeInclusive<usize>,
    /// Minimum distance between the other ends of two junctions that are on different copies. Nearer ones are the two
    /// sides of a break, as in inversions and reciprocal translocations, or the ends of a longer copy. Unit: bp. Source:
    /// chosen, more than an element and the bases at its end. If higher: fewer elements with ends on two copies are
    /// joined.
    pub(crate) min_copy_distance_bp: usize,
    /// Number of bases at the end of an element that are searched for in the copy at its beginning. Unit: bases. Source:
    /// chosen. If higher: more words are shared, also by chance.
    pub(crate) element_end_bases: usize,
    /// Length of the words that two copies of a family share. Unit: bases. Source: chosen. If higher: diverged copies
    /// share fewer words.
    pub(crate) family_word_bases: usize,
    /// Minimum number of different words in the same order and distance that two copies of a family share. Unit: words.
    /// Source: chosen; unrelated sequences share less than one, copies that differ in a fifth of their bases 30. If
    /// higher: elements with ends on diverged copies stay two junctions.
    pub(crate) min_shared_words: usize,
    /// Width of the bins for the distances between shared words; copies differ by short indels. Unit: bp. Source:
    /// chosen. If higher: more words are shared, also by chance.
    pub(crate) max_word_shift_bp: usize,
}

/// Values of the costs of the event model (`docs/model/event.md`).
pub(crate) const EVENT_MODEL_PARAMS: EventModelParams = EventModelParams {
    substitution: 800,
    event: 920,
    new_base: 139,
    nearby_position: 730,
    repeat_place: 69,
    distant_position: 2180,
    max_local_junction_bp: 600,
    target_site_duplication_bp: 4..=30,
    element_bp: 100..=10_000,
    min_copy_distance_bp: 11_000,
    element_end_bases: 300,
    family_word_bases: 11,
    min_shared_words: 8,
    max_word_shift_bp: 32,
};

/// Cost of a jump to another position in the window of the genome.
const JUMP_COST: i32 = EVENT_MODEL_PARAMS.event + EVENT_MODEL_PARAMS.nearby_position;
/// Cost of a jump by one unit of a tandem repeat.
const UNIT_JUMP_COST: i32 = EVENT_MODEL_PARAMS.event + EVENT_MODEL_PARAMS.repeat_place;
/// Cost of an impossible explanation: half of the maximum, so that adding costs does not overflow.
const IMPOSSIBLE_COST: i32 = i32::MAX / 2;
/// Minimum cost of an explanation for which cheaper alternatives are searched: a jump and a substitution.
pub(crate) const MIN_COST_TO_SEARCH_ALTERNATIVES: i32 = JUMP_COST + EVENT_MODEL_PARAMS.substitution;
/// Minimum cost of an explanation at which alternatives are searched beside a minisatellite: two substitutions, which
/// cost more than a jump by a unit.
pub(crate) const MIN_COST_TO_SEARCH_ALTERNATIVES_AT_MINISATELLITE: i32 = 2 * EVENT_MODEL_PARAMS.substitution;

/// Number of bases of a unit of a minisatellite for each one that may differ from the next copy. Chosen.
const MIN_BASES_PER_OTHER_BASE: usize = 8;

/// A stretch of a contig that is copied from the genome, possibly with substitutions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopiedStretch {
    /// Index of the first base of the stretch in the contig.
    pub(crate) query_start: usize,
    /// Index of the first base of the stretch in the window of the genome.
    pub(crate) target_start: usize,
    pub(crate) len: usize,
}

impl CopiedStretch {
    /// Index after the last base of the stretch in the contig.
    pub(crate) fn query_end(&self) -> usize {
        self.query_start + self.len
    }

    /// Index after the last base of the stretch in the window of the genome.
    pub(crate) fn target_end(&self) -> usize {
        self.target_start + self.len
    }
}

/// Cost of an insertion of `len` new bases, or of a deletion of `len` bases.
fn gap_cost(len: usize, is_deletion: bool) -> i32 {
    let by_base = EVENT_MODEL_PARAMS.new_base.saturating_mul(i32::try_from(len).unwrap_or(i32::MAX));
    // docs/model/event.md (2)
    EVENT_MODEL_PARAMS.event + if is_deletion { by_base.min(EVENT_MODEL_PARAMS.nearby_position) } else { by_base }
}

fn is_unit_length(len: usize) -> bool {
    (MIN_MINISATELLITE_UNIT_BP..=MAX_MINISATELLITE_UNIT_BP).contains(&len)
}

/// Whether the inserted bases at `range` of `seq` are a unit of a minisatellite: the bases around continue the repeat,
/// with a few other bases, for the length of a unit and [`MIN_BASES_EQUAL_ONE_UNIT_BEFORE`] more.
fn is_gained_unit(seq: &[u8], range: &std::ops::Range<usize>) -> bool {
    let len = range.len();
    let is_copied = |q: usize| seq[q] == seq[q + len];
    is_unit_length(len)
        && num_positions_extending_repeat((0..range.start).rev().map(is_copied))
            + num_positions_extending_repeat((range.start..seq.len() - len).map(is_copied))
            >= len + MIN_BASES_EQUAL_ONE_UNIT_BEFORE
}

/// Whether the bases `deleted`, which `seq` lacks at index `at`, were a unit of a minisatellite: a copy of them, with a
/// few other bases, is next to `at`. The deletion may have been shifted, so that any base of the unit is the first.
fn is_lost_unit(seq: &[u8], at: usize, deleted: &[u8]) -> bool {
    let len = deleted.len();
    let is_rotation = |copy: &[u8]| {
        (0..len).any(|r| {
            let rotated = deleted[r..].iter().chain(&deleted[..r]);
            copy.iter().zip(rotated).filter(|(a, b)| a != b).count() <= len / MIN_BASES_PER_OTHER_BASE
        })
    };
    let before = at.checked_sub(len).map(|start| start..at);
    is_unit_length(len)
        && [before, Some(at..at + len)].into_iter().flatten().any(|c| seq.get(c).is_some_and(is_rotation))
}

/// Cost of explaining a contig `seq` by changes of the genome. Each change comes with its range on the contig.
pub(crate) fn cost_of_changes<'a>(
    seq: &[u8],
    changes: impl Iterator<Item = (&'a Change, &'a std::ops::Range<usize>)>,
) -> i32 {
    let cost = |(change, range): (&Change, &std::ops::Range<usize>)| match change {
        Change::Allele { reference, alternative, .. } if reference.len() == alternative.len() => {
            EVENT_MODEL_PARAMS.substitution.saturating_mul(i32::try_from(reference.len()).unwrap_or(i32::MAX))
        }
        // docs/model/event.md (6)
        Change::Allele { reference, .. } if range.is_empty() && is_lost_unit(seq, range.start, &reference[1..]) => {
            UNIT_JUMP_COST
        }
        Change::Allele { reference, .. } if range.is_empty() => gap_cost(reference.len() - 1, true),
        // Bases replaced by others.
        Change::Allele { reference, alternative, .. } if reference.len() > 1 && alternative.len() > 1 => {
            gap_cost(reference.len(), true) + gap_cost(range.len(), false) - EVENT_MODEL_PARAMS.event
        }
        Change::Allele { .. } if is_gained_unit(seq, range) => UNIT_JUMP_COST,
        // docs/model/event.md (3)
        Change::Allele { .. } => {
            let copied: usize = num_copied_bases_at_insertion(seq, range).iter().sum();
            let by_jump = gap_cost(range.len().saturating_sub(copied), false) + EVENT_MODEL_PARAMS.nearby_position;
            by_jump.min(gap_cost(range.len(), false))
        }
        Change::Junction { ends: [a, b], inserted, .. } => {
            let nearby_position =
                if is_local(a, b) { EVENT_MODEL_PARAMS.nearby_position } else { EVENT_MODEL_PARAMS.distant_position };
            // docs/model/event.md (4)
            gap_cost(inserted.len(), false) + nearby_position
        }
        Change::Novel { sequence, .. } => gap_cost(sequence.len(), false),
    };
    changes.map(cost).fold(0, i32::saturating_add)
}

/// Cost of an unaligned end of a contig.
pub(crate) fn cost_of_unaligned_end(len: usize) -> i32 {
    // docs/model/event.md (4)
    gap_cost(len, false)
}

fn is_local(a: &Breakend, b: &Breakend) -> bool {
    a.chrom == b.chrom && a.side != b.side && a.pos.abs_diff(b.pos) <= EVENT_MODEL_PARAMS.max_local_junction_bp
}

/// For an insertion at `range` of `seq`: how many bases before its start, and from its start on, equal the base
/// `range.len()` further. Their sum is the length of the copied stretch if the insertion is a second copy of adjacent
/// bases, with or without new bases between the copies; it may be longer by chance.
pub(crate) fn num_copied_bases_at_insertion(seq: &[u8], range: &std::ops::Range<usize>) -> [usize; 2] {
    let len = range.len();
    let is_copied = |q: &usize| seq[*q] == seq[q + len];
    [(0..range.start).rev().take_while(is_copied).count(), (range.start..seq.len() - len).take_while(is_copied).count()]
}

/// Which state the best path to a base of the contig came from (Viterbi traceback).
#[derive(Clone, Copy, PartialEq, Eq)]
enum TracebackState {
    /// From the previous base of the contig, on the same diagonal.
    Diagonal = 0,
    /// From the best state of the previous row, by a jump to another position of the window.
    Jump = 1,
    /// From the previous base of the contig, which is the last of new bases that are not copied from the window.
    NewBases = 2,
    /// The base before, one unit of a tandem repeat further right in the window: the contig has another copy.
    GainedUnit = 3,
    /// The base before, one unit of a tandem repeat further left in the window.
    LostUnit = 4,
}

/// The jumps by one unit of a minisatellite in a window of the genome.
#[derive(Debug, Default)]
struct UnitJumps {
    /// For each index of the window, the unit in bp by which a jump back may end there; 0 if none may. Empty if the
    /// window has no minisatellite.
    gained: Vec<u8>,
    /// For each index of the window, the unit in bp by which a jump ahead may end there; 0 if none may.
    lost: Vec<u8>,
}

impl UnitJumps {
    fn find_in_window(window: &[u8]) -> UnitJumps {
        let mut jumps = UnitJumps::default();
        for (range, unit) in find_imperfect_minisatellites(window) {
            if jumps.gained.is_empty() {
                (jumps.gained, jumps.lost) = (vec![0; window.len()], vec![0; window.len()]);
            }
            for j in range.start..(range.end + 1).min(window.len()) {
                if j + unit <= range.end && j > 0 && jumps.gained[j] == 0 {
                    jumps.gained[j] = unit as u8;
                }
                if j >= range.start + unit && j > unit && jumps.lost[j] == 0 {
                    jumps.lost[j] = unit as u8;
                }
            }
        }
        jumps
    }

    /// The cheapest jump by a unit to index `j`, from the costs of the base before: its cost without the base, and its
    /// kind.
    fn cheapest_jump_to(&self, j: usize, costs_before: &[i32]) -> Option<(i32, TracebackState)> {
        let jump = |unit: u8, from: usize, origin| {
            (unit > 0).then(|| costs_before.get(from)).flatten().map(|cost| (cost + UNIT_JUMP_COST, origin))
        };
        let gained =
            jump(self.gained[j], (j + usize::from(self.gained[j])).wrapping_sub(1), TracebackState::GainedUnit);
        let lost = jump(self.lost[j], j.wrapping_sub(1 + usize::from(self.lost[j])), TracebackState::LostUnit);
        [gained, lost].into_iter().flatten().min_by_key(|(cost, _)| *cost)
    }

    /// Window index of the base from which the unit jump `origin` led to index `j`; `None` if `origin` is no unit jump.
    fn index_before(&self, j: usize, origin: u8) -> Option<usize> {
        if origin == TracebackState::GainedUnit as u8 {
            Some(j + usize::from(self.gained[j]) - 1)
        } else if origin == TracebackState::LostUnit as u8 {
            Some(j - 1 - usize::from(self.lost[j]))
        } else {
            None
        }
    }
}

/// Finds the cheapest way to compose `seq` of stretches copied from `window` and new bases between them (Viterbi).
/// Returns the stretches in the order of the contig. Among ways of equal cost it prefers the fewest jumps, then the
/// leftmost positions. Returns no stretches if the cheapest way uses new bases only.
pub(crate) fn find_cheapest_copied_stretches(seq: &[u8], window: &[u8]) -> Vec<CopiedStretch> {
    let (n, m) = (seq.len(), window.len());
    let p = &EVENT_MODEL_PARAMS;
    let mut origins = vec![TracebackState::Diagonal as u8; n * m];
    let unit_jumps = UnitJumps::find_in_window(window);
    let mut costs_before = Vec::new();
    // For each prefix of the contig: the best last base in the window, and whether new bases follow a copied base.
    let (mut best_ends, mut new_after_copy) = (Vec::with_capacity(n), Vec::with_capacity(n));
    let mut costs = vec![p.nearby_position; m];
    // Cost of the contig so far if its last base is copied, and if it is new.
    let (mut best_cost, mut new_cost) = (p.nearby_position, p.event);
    for (i, &base) in seq.iter().enumerate() {
        let (jump, after_new) = (best_cost + JUMP_COST, new_cost + p.nearby_position);
        let (entry, entry_origin) =
            if jump <= after_new { (jump, TracebackState::Jump) } else { (after_new, TracebackState::NewBases) };
        new_after_copy.push(best_cost + p.event <= new_cost);
        new_cost = (best_cost + p.event).min(new_cost) + p.new_base;
        let row = &mut origins[i * m..(i + 1) * m];
        if !unit_jumps.gained.is_empty() {
            costs_before.clone_from(&costs);
        }
        let mut best = (i32::MAX, 0);
        // Cost of the base before, on the same diagonal.
        let mut diagonal = if i == 0 { p.nearby_position } else { IMPOSSIBLE_COST };
        for j in 0..m {
            let before = std::mem::replace(&mut diagonal, costs[j]);
            let (mut cost, mut origin) =
                if before <= entry { (before, TracebackState::Diagonal) } else { (entry, entry_origin) };
            if i > 0
                && !costs_before.is_empty()
                && let Some((by_unit, unit_origin)) = unit_jumps.cheapest_jump_to(j, &costs_before)
                && by_unit < cost
            {
                (cost, origin) = (by_unit, unit_origin);
            }
            row[j] = origin as u8;
            if window[j] != base || base == b'N' {
                cost += p.substitution;
            }
            costs[j] = cost;
            if cost < best.0 {
                best = (cost, j);
            }
        }
        best_cost = best.0;
        best_ends.push(best.1);
    }
    trace_stretches(&origins, m, &unit_jumps, &best_ends, &new_after_copy, new_cost < best_cost)
}

/// Follows the traceback from the last base of the contig to the first, and returns the copied stretches.
fn trace_stretches(
    origins: &[u8],
    m: usize,
    unit_jumps: &UnitJumps,
    best_ends: &[usize],
    new_after_copy: &[bool],
    ends_in_new: bool,
) -> Vec<CopiedStretch> {
    let mut stretches: Vec<CopiedStretch> = Vec::new();
    let (mut i, mut in_new) = (best_ends.len(), ends_in_new);
    // Window index of the current base, if it is copied.
    let mut j = best_ends.last().copied().unwrap_or(0);
    let mut end = i;
    while i > 0 {
        i -= 1;
        if in_new {
            if new_after_copy[i] && i > 0 {
                (in_new, j, end) = (false, best_ends[i - 1], i);
            }
            continue;
        }
        let origin = origins[i * m + j];
        if i > 0 && origin == TracebackState::Diagonal as u8 {
            j -= 1;
            continue;
        }
        stretches.push(CopiedStretch { query_start: i, target_start: j, len: end - i });
        end = i;
        in_new = origin == TracebackState::NewBases as u8;
        if !in_new && i > 0 {
            j = unit_jumps.index_before(j, origin).unwrap_or(best_ends[i - 1]);
        }
    }
    stretches.reverse();
    stretches
}

/// Moves the jump after the first stretch to the right until the stretch has `min_len` bases, as far as the bases
/// before and after the jump are equal. Of equal explanations the leftmost jump was found.
pub(crate) fn move_first_jump_right(stretches: &mut [CopiedStretch], seq: &[u8], window: &[u8], min_len: usize) {
    let [first, second, ..] = stretches else { return };
    while first.len < min_len
        && second.len > min_len
        && second.query_start == first.query_end()
        && window.get(first.target_end()) == Some(&seq[first.query_end()])
        && window[second.target_start] == seq[second.query_start]
    {
        first.len += 1;
        *second = CopiedStretch {
            query_start: second.query_start + 1,
            target_start: second.target_start + 1,
            len: second.len - 1,
        };
    }
}

/// Converts copied stretches to an alignment of the contig with the window. If a stretch begins, in the window, before
/// the end of the previous one, it is a second copy: its first bases, or the last bases of the previous stretch, become
/// an insertion. At least `min_flank` bases of that stretch must remain. `None` if the contig is too short to show the
/// whole copy.
pub(crate) fn alignment_from_copied_stretches(stretches: &[CopiedStretch], min_flank: usize) -> Option<Alignment> {
    let mut ops: Vec<AlignmentOp> = Vec::new();
    let mut current = *stretches.first()?;
    let start = current.target_start;
    for next in &stretches[1..] {
        let new_bases = next.query_start - current.query_end();
        let mut next = *next;
        let (mut inserted, mut deleted) = (new_bases, 0);
        if next.target_start >= current.target_end() {
            deleted = next.target_start - current.target_end();
        } else {
            let copied = current.target_end() - next.target_start;
            inserted += copied;
            if next.len >= copied + min_flank {
                next = CopiedStretch {
                    query_start: next.query_start + copied,
                    target_start: current.target_end(),
                    len: next.len - copied,
                };
            } else if current.len >= copied + min_flank {
                current.len -= copied;
            } else {
                return None;
            }
        }
        ops.push(AlignmentOp::Match(current.len as u32));
        ops.extend((inserted > 0).then_some(AlignmentOp::Insert(inserted as u32)));
        ops.extend((deleted > 0).then_some(AlignmentOp::Delete(deleted as u32)));
        current = next;
    }
    ops.push(AlignmentOp::Match(current.len as u32));
    Some(Alignment { start, ops, score: 0 })
}

/// Whether a junction is a tandem duplication: it joins the end of a stretch of the genome to the start of this
/// stretch.
pub(crate) fn are_ends_of_tandem_duplication(ends: &[Breakend; 2]) -> bool {
    let [first, last] = ends;
    first.chrom == last.chrom
        && first.side == RetainedSide::Right
        && last.side == RetainedSide::Left
        && first.pos <= last.pos
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(n: usize, seed: u64) -> Vec<u8> {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            b"ACGT"[(x >> 60) as usize & 3]
        };
        (0..n).map(|_| next()).collect()
    }

    fn stretch(query_start: usize, target_start: usize, len: usize) -> CopiedStretch {
        CopiedStretch { query_start, target_start, len }
    }

    #[test]
    fn one_event_is_found_whatever_its_kind() {
        let window = random(900, 1);
        let read = |parts: &[&[u8]]| find_cheapest_copied_stretches(&parts.concat(), &window);
        assert_eq!(read(&[&window[300..500]]), [stretch(0, 300, 200)]);
        // A deletion, a duplication, and a duplication with 6 new bases.
        assert_eq!(read(&[&window[200..300], &window[541..641]]), [stretch(0, 200, 100), stretch(100, 541, 100)]);
        let found = read(&[&window[200..400], &window[329..480]]);
        let [a, b] = found[..] else { panic!("{found:?}") };
        assert_eq!((a.target_end() - b.target_start, a.query_end()), (71, b.query_start));
        let found = read(&[&window[200..400], b"CCCCCC", &window[329..480]]);
        let [a, b] = found[..] else { panic!("{found:?}") };
        assert_eq!(b.query_start + a.target_end() - a.query_end() - b.target_start, 77);
        // New bases at an end, and nothing but new bases.
        let novel = random(60, 5);
        let found = read(&[&window[200..400], &novel]);
        assert!(found.len() == 1 && found[0].query_end().abs_diff(200) <= 3, "{found:?}");
        let found = read(&[&novel, &window[200..400]]);
        assert!(found.len() == 1 && found[0].query_start.abs_diff(60) <= 3, "{found:?}");
        assert_eq!(read(&[]), []);
    }

    #[test]
    fn substitutions_are_not_taken_for_events() {
        let window = random(900, 2);
        let mut seq = window[300..500].to_vec();
        for at in [40, 52, 55, 70, 71, 90, 110, 130] {
            seq[at] = if seq[at] == b'A' { b'C' } else { b'A' };
        }
        assert_eq!(find_cheapest_copied_stretches(&seq, &window), [stretch(0, 300, 200)]);
    }

    #[test]
    fn a_unit_of_a_repeat_is_gained_or_lost_before_bases_change() {
        let unit = random(40, 3);
        let mut other = unit.clone();
        for at in [8, 30] {
            other[at] = if other[at] == b'A' { b'C' } else { b'A' };
        }
        let (left, right) = (random(300, 4), random(300, 5));
        let window = [&left[..], &unit, &other, &unit, &unit, &right].concat();
        // The contig lost the first copy, and ends where the copies are equal again: two bases differ from the genome.
        let lost = [&left[200..], &other, &unit].concat();
        let found = find_cheapest_copied_stretches(&lost, &window);
        let [a, b] = found[..] else { panic!("{found:?}") };
        assert_eq!((a.target_start, b.target_start - a.target_end(), b.query_end()), (200, 40, lost.len()));
        let gained = [&left[200..], &unit, &unit, &other].concat();
        let found = find_cheapest_copied_stretches(&gained, &window);
        let [a, b] = found[..] else { panic!("{found:?}") };
        assert_eq!((a.target_start, a.target_end() - b.target_start, b.query_end()), (200, 40, gained.len()));
        // A contig with both flanks shows no change of the length.
        let mut changed = window[200..560].to_vec();
        for at in [108, 130] {
            changed[at] = other[at - 100];
        }
        assert_eq!(find_cheapest_copied_stretches(&changed, &window), [stretch(0, 200, 360)]);
        // The costs of the same changes.
        let cost = |seq: &[u8], reference: &[u8], alternative: &[u8], range: std::ops::Range<usize>| {
            let (reference, alternative) = (reference.to_vec(), alternative.to_vec());
            let change = Change::Allele { chrom: 0, pos: 0, reference, alternative };
            cost_of_changes(seq, [(&change, &range)].into_iter())
        };
        assert_eq!(cost(&lost, &[b"T", &unit[..]].concat(), b"T", 100..100), UNIT_JUMP_COST);
        assert_eq!(cost(&gained, b"T", &[b"T", &unit[..]].concat(), 100..140), UNIT_JUMP_COST);
        let copy = [&left[200..], &unit, &unit, &right].concat();
        assert_eq!(cost(&copy, b"T", &[b"T", &unit[..]].concat(), 100..140), JUMP_COST);
    }

    #[test]
    fn a_short_first_stretch_grows_as_far_as_bases_are_equal() {
        let (unit, left, right) = (random(40, 3), random(60, 4), random(60, 5));
        let window = [&left[..], &unit, &unit, &right].concat();
        let seq = [&unit[30..], &unit, &unit, &right].concat();
        let mut stretches = [stretch(0, 90, 10), stretch(10, 60, 140)];
        move_first_jump_right(&mut stretches, &seq, &window, 25);
        assert_eq!(stretches, [stretch(0, 90, 25), stretch(25, 75, 125)]);
        let mut differing = [stretch(0, 40, 10), stretch(10, 60, 140)];
        move_first_jump_right(&mut differing, &seq, &window, 70);
        assert!(differing[0].len < 70, "{differing:?}");
    }

    #[test]
    fn a_copy_is_aligned_where_the_contig_shows_it_whole() {
        let ops = |stretches: &[CopiedStretch]| alignment_from_copied_stretches(stretches, 12).map(|a| a.ops);
        use AlignmentOp::{Delete, Insert, Match};
        let deletion = [stretch(0, 10, 100), stretch(100, 351, 100)];
        assert_eq!(ops(&deletion), Some(vec![Match(100), Delete(241), Match(100)]));
        let late = [stretch(0, 10, 40), stretch(40, 20, 100)];
        assert_eq!(ops(&late), Some(vec![Match(40), Insert(30), Match(70)]));
        let early = [stretch(0, 10, 100), stretch(106, 80, 40)];
        assert_eq!(ops(&early), Some(vec![Match(70), Insert(36), Match(40)]));
        assert_eq!(ops(&[stretch(0, 10, 40), stretch(40, 15, 40)]), None);
        assert_eq!(ops(&[]), None);
    }

    #[test]
    fn costs_of_changes_follow_the_model() {
        let seq = b"TTACGTGGCAACGTGGCAGG";
        let allele = |reference: &[u8], alternative: &[u8]| Change::Allele {
            chrom: 0,
            pos: 7,
            reference: reference.to_vec(),
            alternative: alternative.to_vec(),
        };
        let cost =
            |change: &Change, range: std::ops::Range<usize>| cost_of_changes(seq, [(change, &range)].into_iter());
        let p = &EVENT_MODEL_PARAMS;
        assert_eq!(cost(&allele(b"A", b"C"), 4..5), p.substitution);
        assert_eq!(cost(&allele(b"AC", b"A"), 4..4), p.event + p.new_base);
        assert_eq!(cost(&allele(&[b'A'; 300], b"A"), 4..4), p.event + p.nearby_position);
        assert_eq!(cost(&allele(b"AC", b"GTT"), 4..7), p.event + 5 * p.new_base);
        // The second copy of ACGTGGCA, and bases that are no copy.
        assert_eq!(cost(&allele(b"A", b"AACGTGGCA"), 10..18), p.event + p.nearby_position);
        assert_eq!(cost(&allele(b"A", b"ATGGCA"), 5..10), p.event + 5 * p.new_base);
        // The second copy of ACGTGGCA after two new bases.
        let seq = b"TTACGTGGCACCACGTGGCAGG";
        let copy = allele(b"A", b"ACCACGTGGCA");
        assert_eq!(
            cost_of_changes(seq, [(&copy, &(10..20))].into_iter()),
            p.event + p.nearby_position + 2 * p.new_base
        );
        let end = |pos, side| Breakend { chrom: 0, pos, side };
        let junction = |to| Change::Junction {
            ends: [end(5, RetainedSide::Right), end(to, RetainedSide::Left)],
            inserted: vec![b'A'],
            homology: 0,
        };
        assert_eq!(cost(&junction(90), 4..5), p.event + p.nearby_position + p.new_base);
        assert_eq!(cost(&junction(9000), 4..5), p.event + p.distant_position + p.new_base);
        assert_eq!(
            cost(&Change::Novel { end: end(4, RetainedSide::Left), sequence: vec![b'A'; 5] }, 4..4),
            p.event + 5 * p.new_base
        );
    }
}
