//! Finds positions of a pair whose mates both have many positions: from the position lists of the seeds, it selects the
//! diagonals of each mate near which the other mate has a diagonal at a proper distance, before any reference base is
//! read.

use std::ops::Range;

use crate::diagonal::Diagonal;
use crate::index::IndexView;
use crate::insert_size::InsertSizeModels;
use crate::mapper::{DeferredList, for_each_diagonal_of_deferred_list};
use crate::placement::Placement;

/// Maximum length of a position list that is always examined: the first list, and the second one if the mates have no
/// fitting placements yet. Empirical.
const MAX_FIRST_LIST: u32 = 100_000;
/// Maximum length of a further list, while fewer than [`FEW_POSITIONS`] positions have been examined. Empirical.
const MAX_FURTHER_LIST: u32 = 20_000;
/// Number of examined positions below which further lists of up to [`MAX_FURTHER_LIST`] positions are examined.
/// Empirical.
const FEW_POSITIONS: u32 = 200;
/// Maximum total number of positions in the examined lists, once [`FEW_POSITIONS`] positions have been examined.
/// Empirical.
const MAX_TOTAL_POSITIONS: u32 = 400;
/// Maximum number of list positions that are examined for a read without a fitting mate. Empirical.
const MAX_UNPAIRED_READ_POSITIONS: u32 = 2_000;
/// Maximum number of diagonals of a read up to which all of them are kept, even those without a fitting diagonal of the
/// mate.
const MAX_UNJOINED_KEPT: usize = 256;
/// Maximum number of diagonals of a mate that are sorted without a filter. If there are more, only those near diagonals
/// of the other mate ([`OccupiedCells`]) are sorted.
const MAX_UNFILTERED: usize = 2_000;
/// Maximum number of diagonals of a read that are kept after joining.
const MAX_JOINED_DIAGONALS: usize = 4_000;
/// Tolerance (bp) of the insert size of two diagonals, because gaps may shift the ends of the reads.
const INSERT_SIZE_SLACK_BP: i64 = 30;
/// Seed count that marks a diagonal whose placement is already known.
const KNOWN_SEED_COUNT: u32 = 512;

/// Size of a cache line in bytes.
const CACHE_LINE_BYTES: usize = 64;

/// Placements and position lists of one mate, from which its diagonals are collected and paired with those of the other
/// mate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatePlacementsAndLists<'a> {
    /// Placements of the mate that have been found already.
    pub placements: &'a [Placement],
    /// Position lists of the mate's frequent seeds that are examined.
    pub lists: &'a [DeferredList],
    /// Read length (bp).
    pub length: usize,
}

impl MatePlacementsAndLists<'_> {
    /// Diagonals of the placements that have been found already.
    fn known_diagonals(&self) -> impl Iterator<Item = Diagonal> {
        let known = |place: &Placement| {
            Diagonal::new(place.left, place.reverse, place.anchor).with_seed_count(KNOWN_SEED_COUNT)
        };
        self.placements.iter().map(known)
    }

    /// Passes the diagonals of the known placements and of all positions in the position lists to `each`.
    #[inline(always)]
    fn for_each_diagonal(&self, view: &IndexView<'_>, mut each: impl FnMut(Diagonal)) {
        self.known_diagonals().for_each(&mut each);
        self.lists.iter().for_each(|list| for_each_diagonal_of_deferred_list(view, list, self.length, &mut each));
    }
}

/// Joins the diagonals of two mates that are at a proper distance; holds reusable buffers.
#[derive(Debug, Default)]
pub(crate) struct MateJoiner {
    cells: OccupiedCells,
    /// Diagonals of each mate, sorted and without duplicates.
    keys: [Vec<Diagonal>; 2],
    /// For each diagonal of each mate the largest total seed count of a pair that contains it; 0 if no diagonal of the
    /// other mate fits.
    marks: [Vec<u16>; 2],
    buffers: [Vec<Diagonal>; 2],
    found: [Vec<Diagonal>; 2],
}

/// Returns how many of the position lists of a mate are examined. `lists` is sorted by length. The first list is
/// examined, and the second one if the mates have no fitting placements yet (`fitting` is false), unless it is too
/// long. Further lists are examined up to a total number of positions, because the seeds of short lists may contain
/// sequencing errors.
pub(crate) fn count_lists_to_examine_for_mate(lists: &[DeferredList], fitting: bool) -> usize {
    let mut sum = 0;
    for (n, list) in lists.iter().enumerate() {
        let most = match (n, fitting) {
            (0, _) | (1, false) => MAX_FIRST_LIST,
            _ if sum < FEW_POSITIONS => MAX_FURTHER_LIST,
            _ => MAX_TOTAL_POSITIONS.saturating_sub(sum),
        };
        if list.num_positions > most {
            return n;
        }
        sum += list.num_positions;
    }
    lists.len()
}

/// Returns how many of the deferred lists of a read without a fitting mate are examined: the shortest ones that have at
/// most [`MAX_UNPAIRED_READ_POSITIONS`] positions in total. `lists` is sorted by length.
pub(crate) fn count_lists_to_examine_for_unpaired_read(lists: &[DeferredList]) -> usize {
    let mut sum = 0;
    let few = |list: &&DeferredList| {
        sum += list.num_positions;
        sum <= MAX_UNPAIRED_READ_POSITIONS
    };
    lists.iter().take_while(few).count()
}

impl MateJoiner {
    /// Finds for each of two mates the diagonals without a known placement near which the other mate has a diagonal. If
    /// a mate has few diagonals, all of those without a known placement are found. The results are in
    /// [`Self::selected_diagonals`]. Returns for each mate whether diagonals with few seeds were dropped because there
    /// were too many.
    #[inline(always)]
    pub(crate) fn select_diagonals_near_mate(
        &mut self,
        view: &IndexView<'_>,
        inserts: &InsertSizeModels,
        mates: [MatePlacementsAndLists<'_>; 2],
    ) -> [bool; 2] {
        let totals = mates.map(|mate| {
            mate.placements.len() + mate.lists.iter().map(|list| list.num_positions as usize).sum::<usize>()
        });
        let highest = inserts.by_orientation.iter().flatten().map(|insert| insert.high).max().unwrap_or(0);
        let reach = (highest + INSERT_SIZE_SLACK_BP) as u64 + (mates[0].length + mates[1].length) as u64;
        self.cells.resize_for(32 * view.words.len() as u64, reach);
        // If there are many: of the mate with more positions, only those with an occupied cell of the other mate
        // nearby are sorted; then the same for the other mate.
        let (fewer, more) = if totals[0] <= totals[1] { (0, 1) } else { (1, 0) };
        let all = totals.map(|total| total <= MAX_UNFILTERED);
        if !all[more] {
            mates[fewer].for_each_diagonal(view, |key| self.cells.set(key));
        }
        self.collect_diagonals(view, mates[more], more, all[more]);
        if !all[more] && !self.cells.clear_all(totals[fewer]) {
            mates[fewer].for_each_diagonal(view, |key| self.cells.clear(key));
        }
        if !all[fewer] {
            self.keys[more].iter().for_each(|&key| self.cells.set(key));
        }
        self.collect_diagonals(view, mates[fewer], fewer, all[fewer]);
        if !all[fewer] {
            self.keys[more].iter().for_each(|&key| self.cells.clear(key));
        }
        self.mark_joined(inserts, mates);
        [0, 1].map(|mate| self.keep_joined(mate, all[mate] && self.keys[mate].len() <= MAX_UNJOINED_KEPT))
    }

    /// Finds all diagonals of a read without a fitting mate, except those with a known placement. The results are in
    /// [`Self::selected_diagonals`] of mate 0.
    #[inline(always)]
    pub(crate) fn collect_unplaced_diagonals(&mut self, view: &IndexView<'_>, read: MatePlacementsAndLists<'_>) {
        self.collect_diagonals(view, read, 0, true);
        let [found, _] = &mut self.found;
        found.clear();
        found.extend(self.keys[0].iter().filter(|key| key.seed_count() < KNOWN_SEED_COUNT));
    }

    /// Sorted diagonals of a mate that the last call of [`Self::select_diagonals_near_mate`] or of
    /// [`Self::collect_unplaced_diagonals`] found.
    pub(crate) fn selected_diagonals(&self, mate: usize) -> &[Diagonal] {
        &self.found[mate]
    }

    /// Collects the diagonals of mate `number`, sorted and with their seed counts: all diagonals, or only those near an
    /// occupied cell of the other mate.
    #[inline(always)]
    fn collect_diagonals(&mut self, view: &IndexView<'_>, mate: MatePlacementsAndLists<'_>, number: usize, all: bool) {
        let MateJoiner { cells, keys, buffers: [some, merged], .. } = self;
        let keys = &mut keys[number];
        keys.clear();
        keys.extend(mate.known_diagonals());
        keys.sort_unstable();
        keys.push(Diagonal::AFTER_ALL_DIAGONALS);
        for list in mate.lists {
            let most = view.position_list(list.list).num_positions() + 1;
            if some.len() < most {
                some.resize(most, Diagonal::AFTER_ALL_DIAGONALS);
            }
            let mut n = 0;
            if all {
                for_each_diagonal_of_deferred_list(view, list, mate.length, |key| {
                    some[n] = key;
                    n += 1;
                });
            } else {
                for_each_diagonal_of_deferred_list(view, list, mate.length, |key| {
                    some[n] = key;
                    n += usize::from(cells.near(key));
                });
            }
            some[n] = Diagonal::AFTER_ALL_DIAGONALS;
            merge_diagonals(keys, &some[..=n], merged);
        }
        keys.pop();
    }

    /// Sets the marks of all diagonals: the largest total seed count of a pair of diagonals at a proper distance. The
    /// seed count of a known placement is the number of position lists of the mate.
    #[inline(always)]
    fn mark_joined(&mut self, inserts: &InsertSizeModels, mates: [MatePlacementsAndLists<'_>; 2]) {
        let MateJoiner { keys, marks, .. } = self;
        for (marks, keys) in marks.iter_mut().zip(&*keys) {
            marks.clear();
            marks.resize(keys.len(), 0);
        }
        let five_prime_position = |key: Diagonal, mate: usize| {
            key.read_start_on_reference() as i64 + if key.is_reverse() { mates[mate].length as i64 - 1 } else { 0 }
        };
        let seed_count = |key: Diagonal, mate: usize| {
            if key.seed_count() >= KNOWN_SEED_COUNT { mates[mate].lists.len() as u32 } else { key.seed_count() }
        };
        for (orientation, insert) in inserts.by_orientation.iter().enumerate() {
            let Some(insert) = insert else { continue };
            let strands = [orientation & 2 != 0, orientation & 1 != 0];
            for (a, b) in [(0, 1), (1, 0)] {
                // Mate a is before mate b on the reference.
                let behind = strand_range(&keys[b], strands[1]);
                let mut low = behind.start;
                for x in strand_range(&keys[a], strands[0]) {
                    let key = keys[a][x];
                    let at = five_prime_position(key, a);
                    let far = |other: Diagonal| five_prime_position(other, b) - at + 1;
                    while low < behind.end && far(keys[b][low]) < insert.low - INSERT_SIZE_SLACK_BP {
                        low += 1;
                    }
                    for y in low..behind.end {
                        let other = keys[b][y];
                        if far(other) > insert.high + INSERT_SIZE_SLACK_BP {
                            break;
                        }
                        let both = (seed_count(key, a) + seed_count(other, b)) as u16;
                        marks[a][x] = marks[a][x].max(both);
                        marks[b][y] = marks[b][y].max(both);
                    }
                }
            }
        }
    }

    /// Keeps the diagonals of a mate that have a mark (or all) and no known placement. If there are too many, keeps
    /// those with the highest marks and, of those with the lowest mark that is kept, every n-th one. Returns whether
    /// there were too many.
    #[inline(always)]
    fn keep_joined(&mut self, mate: usize, all: bool) -> bool {
        let MateJoiner { keys, marks, found, .. } = self;
        let joined = || {
            let keys = keys[mate].iter().zip(&marks[mate]);
            keys.filter(|(key, mark)| (all || **mark > 0) && key.seed_count() < KNOWN_SEED_COUNT)
                .map(|(key, mark)| (*key, *mark))
        };
        let found = &mut found[mate];
        found.clear();
        found.extend(joined().map(|(key, _)| key));
        if found.len() <= MAX_JOINED_DIAGONALS {
            return false;
        }
        let most = joined().map(|(_, mark)| mark).max().unwrap_or(0);
        let mut counts = vec![0; usize::from(most) + 1];
        joined().for_each(|(_, mark)| counts[usize::from(mark)] += 1);
        let (mut left, mut least) = (MAX_JOINED_DIAGONALS, most);
        while counts[usize::from(least)] <= left {
            left -= counts[usize::from(least)];
            least -= 1;
        }
        let step = counts[usize::from(least)].div_ceil(left.max(1));
        let mut n = 0;
        found.clear();
        found.extend(
            joined()
                .filter(|(_, mark)| {
                    n += usize::from(*mark == least);
                    *mark > least || *mark == least && n % step == 0
                })
                .map(|(key, _)| key),
        );
        true
    }
}

/// Index range of the diagonals on a strand, in sorted diagonals.
#[inline(always)]
fn strand_range(keys: &[Diagonal], reverse: bool) -> Range<usize> {
    let middle = keys.partition_point(|key| !key.is_reverse());
    if reverse { middle..keys.len() } else { 0..middle }
}

/// Merges the sorted diagonals `more` into the sorted diagonals `all`. Equal diagonals become one with the sum of their
/// seed counts. Both end with [`Diagonal::AFTER_ALL_DIAGONALS`]; `merged` is a reusable buffer.
#[inline(always)]
fn merge_diagonals(all: &mut Vec<Diagonal>, more: &[Diagonal], merged: &mut Vec<Diagonal>) {
    let most = all.len() + more.len();
    if merged.len() < most {
        merged.resize(most, Diagonal::AFTER_ALL_DIAGONALS);
    }
    let (mut i, mut j, mut n) = (0, 0, 0);
    let mut last = Diagonal::AFTER_ALL_DIAGONALS;
    // Without branches except the end, because the order of the diagonals is unpredictable.
    while i + 1 < all.len() || j + 1 < more.len() {
        let (one, other) = (all[i], more[j]);
        let first = one <= other;
        let next = if first { one } else { other };
        i += usize::from(first);
        j += usize::from(!first);
        let again = next.is_same_diagonal(last);
        n += usize::from(!again);
        last = if again { last.with_seed_count(last.seed_count() + next.seed_count()) } else { next };
        merged[n - 1] = last;
    }
    merged[n] = Diagonal::AFTER_ALL_DIAGONALS;
    merged.truncate(n + 1);
    std::mem::swap(all, merged);
}

/// One bit for each cell (block of the reference): whether a mate has a diagonal that starts in the cell. All bits are
/// clear between calls.
#[derive(Debug, Default)]
struct OccupiedCells {
    bits: Vec<u8>,
    /// Base-2 logarithm of the cell size (bp).
    cell_bits: u32,
}

impl OccupiedCells {
    /// Sets the cell size to a power of two above `reach` bases, for a reference of `bases` bases.
    fn resize_for(&mut self, bases: u64, reach: u64) {
        self.cell_bits = u64::BITS - reach.leading_zeros();
        let needed = (bases >> self.cell_bits) as usize / 8 + 3;
        if self.bits.len() < needed {
            self.bits.resize(needed, 0);
        }
    }

    /// Byte and bit of the cell of a diagonal. Bit 0 is a cell before the reference.
    #[inline(always)]
    fn at(&self, key: Diagonal) -> (usize, u32) {
        let cell = (key.read_start_on_reference() >> self.cell_bits) as usize + 1;
        (cell / 8, (cell % 8) as u32)
    }

    #[inline(always)]
    fn set(&mut self, key: Diagonal) {
        let (byte, bit) = self.at(key);
        self.bits[byte] |= 1 << bit;
    }

    #[inline(always)]
    fn clear(&mut self, key: Diagonal) {
        let (byte, _) = self.at(key);
        self.bits[byte] = 0;
    }

    /// Clears all bits if that is less work than clearing the bits of `diagonals` diagonals one by one. Returns whether
    /// the bits were cleared.
    fn clear_all(&mut self, diagonals: usize) -> bool {
        let less = self.bits.len() < CACHE_LINE_BYTES * diagonals;
        if less {
            self.bits.fill(0);
        }
        less
    }

    /// Whether the cell of a diagonal, the previous cell or the next cell is occupied.
    #[inline(always)]
    fn near(&self, key: Diagonal) -> bool {
        let before = (key.read_start_on_reference() >> self.cell_bits) as usize;
        let bytes = &self.bits[before / 8..before / 8 + 2];
        u16::from_le_bytes([bytes[0], bytes[1]]) >> (before % 8) & 7 != 0
    }
}

#[cfg(test)]
mod tests {
    use genuma_machine::simd_and_prefetch::SimdLevel;
    use genuma_reads::dna::reverse_complement;

    use super::*;
    use crate::index::tests::{Dice, index};
    use crate::insert_size::InsertSizesByOrientation;
    use crate::mapper::{self, MappedReads};
    use crate::options::ScoringOptions;

    fn some(dice: &mut Dice, n: usize, bases: usize) -> Vec<Diagonal> {
        let mut keys: Vec<Diagonal> =
            (0..n).map(|_| Diagonal::new(dice.roll(bases) as u64, dice.roll(2) == 1, dice.roll(100) as u16)).collect();
        keys.sort_unstable();
        keys.dedup_by(|one, other| one.is_same_diagonal(*other));
        keys
    }

    /// Diagonals of a mate near which the other mate has one, by comparing all with all.
    fn naive(keys: &[Vec<Diagonal>; 2], lengths: [i64; 2], low: i64, high: i64, mate: usize) -> Vec<(u64, bool)> {
        let first = |key: &Diagonal, mate: usize| {
            key.read_start_on_reference() as i64 + if key.is_reverse() { lengths[mate] - 1 } else { 0 }
        };
        let joins = |key: &Diagonal, other: &Diagonal| {
            let away = first(other, 1 - mate) - first(key, mate);
            let far = if key.is_reverse() { -away } else { away } + 1;
            key.is_reverse() != other.is_reverse()
                && (low - INSERT_SIZE_SLACK_BP..=high + INSERT_SIZE_SLACK_BP).contains(&far)
        };
        let joined = keys[mate].iter().filter(|key| keys[1 - mate].iter().any(|other| joins(key, other)));
        let mut joined: Vec<_> = joined.map(|key| (key.read_start_on_reference(), key.is_reverse())).collect();
        joined.sort_unstable_by_key(|&(left, reverse)| (reverse, left));
        joined.dedup();
        joined
    }

    #[test]
    fn what_joins_is_what_a_naive_loop_says() {
        // Whole copies, reverse-complemented copies, and halves with only one mate.
        let mut dice = Dice(4);
        let whole = dice.bases(400);
        let turned = reverse_complement(&whole);
        let kinds = [&whole[..], &turned, &whole[..200], &whole[200..], &turned[..200]];
        for copies in [150, 1800] {
            let mut letters = Vec::new();
            for _ in 0..copies {
                let n = 100 + dice.roll(400);
                letters.extend(dice.bases(n));
                letters.extend_from_slice(kinds[dice.roll(kinds.len())]);
            }
            let index = index(&[("copies".into(), letters)]);
            let view = index.view();
            let reads = [whole[..150].to_vec(), reverse_complement(&whole[250..])];
            let mut mapped = MappedReads::default();
            let (options, vectors) = (ScoringOptions::default(), SimdLevel::widest_available());
            let letters = reads.iter().map(Vec::as_slice);
            mapper::map_reads(&view, &options, vectors, &mut Default::default(), letters, &mut mapped);
            let mates = [0, 1].map(|mate| {
                let lists = mapped.deferred_lists_of_read(mate);
                MatePlacementsAndLists {
                    placements: mapped.placements_of_read(mate),
                    lists: &lists[..count_lists_to_examine_for_mate(lists, false)],
                    length: 150,
                }
            });
            let keys = mates.map(|mate| {
                let mut keys = Vec::new();
                mate.lists
                    .iter()
                    .for_each(|list| for_each_diagonal_of_deferred_list(&view, list, 150, |key| keys.push(key)));
                keys.sort_unstable();
                keys.dedup_by(|one, other| one.is_same_diagonal(*other));
                keys
            });
            for from in [300, 700] {
                let mut insert_sizes = InsertSizesByOrientation::default();
                insert_sizes[1] = (from..from + 200).collect();
                let inserts = InsertSizeModels::estimate_from_insert_sizes(insert_sizes, 1);
                let insert = inserts.by_orientation[1].as_ref().unwrap();
                let mut joiner = MateJoiner::default();
                assert_eq!(joiner.select_diagonals_near_mate(&view, &inserts, mates), [false; 2]);
                for mate in 0..2 {
                    let found: Vec<_> = joiner
                        .selected_diagonals(mate)
                        .iter()
                        .map(|key| (key.read_start_on_reference(), key.is_reverse()))
                        .collect();
                    let all = keys[mate].len() <= MAX_UNJOINED_KEPT;
                    let expected = naive(&keys, [150; 2], insert.low, insert.high, mate);
                    assert!(all || found == expected, "{} {}", found.len(), expected.len());
                    assert!(!all || found.len() >= expected.len());
                }
                assert!(joiner.cells.bits.iter().all(|bits| *bits == 0));
                assert!(copies == 150 || joiner.selected_diagonals(0).len() > 300);
            }
        }
    }

    #[test]
    fn merging_counts_each_once() {
        let mut dice = Dice(1);
        for _ in 0..300 {
            let lists: Vec<Vec<Diagonal>> = (0..4)
                .map(|_| {
                    let n = dice.roll(40);
                    some(&mut dice, n, 60)
                })
                .collect();
            let (mut all, mut merged) = (vec![Diagonal::AFTER_ALL_DIAGONALS], Vec::new());
            for list in &lists {
                merge_diagonals(&mut all, &[&list[..], &[Diagonal::AFTER_ALL_DIAGONALS]].concat(), &mut merged);
            }
            assert_eq!(all.pop(), Some(Diagonal::AFTER_ALL_DIAGONALS));
            assert!(all.is_sorted());
            let count =
                |key: Diagonal| lists.iter().flatten().filter(|other| other.is_same_diagonal(key)).count() as u32;
            assert!(all.iter().all(|key| key.seed_count() == count(*key)));
            assert!(
                lists.iter().flatten().all(|key| all.iter().filter(|other| other.is_same_diagonal(*key)).count() == 1)
            );
        }
    }

    #[test]
    fn cells_know_what_is_within_reach() {
        let mut dice = Dice(2);
        let mut cells = OccupiedCells::default();
        for _ in 0..200 {
            let (bases, reach) = (1 + dice.roll(1 << 20), 1 + dice.roll(5000));
            cells.resize_for(bases as u64, reach as u64);
            let n = dice.roll(20);
            let keys = some(&mut dice, n, bases);
            keys.iter().for_each(|key| cells.set(*key));
            for other in some(&mut dice, 200, bases) {
                let cell_bits = |far: u64| {
                    keys.iter()
                        .any(|key| key.read_start_on_reference().abs_diff(other.read_start_on_reference()) <= far)
                };
                assert!(cells.near(other) || !cell_bits(reach as u64));
                assert!(!cells.near(other) || cell_bits(4 * reach as u64));
            }
            keys.iter().for_each(|key| cells.clear(*key));
            assert!(cells.bits.iter().all(|bits| *bits == 0));
        }
    }
}
