//! Finds tandem repeats: homopolymers, and repeats of units of up to 6 bp.

/// A tandem repeat in a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TandemRepeat {
    /// First base, 0-based.
    pub start: usize,
    /// One past the last base.
    pub end: usize,
    /// Length of the repeated unit, bp; 1 for a homopolymer.
    pub unit: usize,
}

/// Longest repeat unit that is searched for, bp.
pub(crate) const MAX_REPEAT_UNIT_BP: usize = 6;

/// Returns the minimum length of a tandem repeat by the length of its unit, bp: 6 for homopolymers, 10 for dinucleotide
/// repeats, 4 units otherwise.
fn min_tandem_repeat_bp(unit: usize) -> usize {
    match unit {
        1 => 6,
        2 => 10,
        _ => 4 * unit,
    }
}

/// Lists all tandem repeats of a sequence, sorted by unit length and start. Each repeat is listed only with its
/// smallest unit.
pub(crate) fn list_tandem_repeats(seq: &[u8]) -> Vec<TandemRepeat> {
    let mut found = vec![];
    append_tandem_repeats(seq, &mut found);
    found
}

/// Appends all tandem repeats of a sequence to `found`, in the order of [`list_tandem_repeats`].
///
/// A repeat with a unit of u bases is a run of bases that each equal the base u positions before. The search tests only
/// every n-th base, where n is the minimum length of such a run, and so misses only runs that are too short.
pub(crate) fn append_tandem_repeats(seq: &[u8], found: &mut Vec<TandemRepeat>) {
    for unit in 1..=MAX_REPEAT_UNIT_BP {
        let repeats = |i: usize| seq[i] == seq[i - unit] && seq[i] != b'N';
        let needed = min_tandem_repeat_bp(unit) - unit;
        // Bases before this one cannot be in a run that extends further.
        let mut from = unit;
        let mut probe = unit + needed - 1;
        while probe < seq.len() {
            if !repeats(probe) {
                from = probe + 1;
                probe += needed;
                continue;
            }
            let first = (from..probe).rev().find(|&i| !repeats(i)).map_or(from, |i| i + 1);
            let end = (probe + 1..seq.len()).find(|&i| !repeats(i)).unwrap_or(seq.len());
            let start = first - unit;
            if end - start >= min_tandem_repeat_bp(unit) && smallest_unit_bp(&seq[start..start + unit]) == unit {
                found.push(TandemRepeat { start, end, unit });
            }
            from = end + 1;
            probe = end + needed;
        }
    }
}

/// Returns the length of the shortest unit of which `word` is a repetition, bp.
fn smallest_unit_bp(word: &[u8]) -> usize {
    let n = word.len();
    (1..=n).find(|&u| n.is_multiple_of(u) && (u..n).all(|i| word[i] == word[i - u])).unwrap_or(n)
}

/// Number of bases on either side of a position that are searched for a tandem repeat, bp: more than the minimum length
/// of any repeat.
const FLANK_BP: usize = 64;

/// Returns whether any of the bases `start..end`, or an adjacent base, is in a tandem repeat.
pub(crate) fn touches_tandem_repeat(seq: &[u8], start: usize, end: usize) -> bool {
    let (from, to) = (start.saturating_sub(1).min(seq.len()), (end + 1).min(seq.len()));
    // A repeat that is cut off at this distance is still long enough to be found.
    let first = from.saturating_sub(FLANK_BP);
    let near = &seq[first..(to + FLANK_BP).clamp(first, seq.len())];
    list_tandem_repeats(near).iter().any(|t| first + t.start < to && from < first + t.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_kind_once() {
        let seq = b"GCTAAAAAAAGTCACACACACACACGTTGACGACGACGACTTNNNNNNNNNNGT";
        let found = list_tandem_repeats(seq);
        let text = |t: &TandemRepeat| (std::str::from_utf8(&seq[t.start..t.end]).unwrap(), t.unit);
        let all: Vec<_> = found.iter().map(text).collect();
        assert_eq!(all, [("AAAAAAA", 1), ("CACACACACACAC", 2), ("GACGACGACGAC", 3)]);
        let touches = |start, end| touches_tandem_repeat(seq, start, end);
        assert!(touches(3, 3) && touches(10, 10) && !touches(0, 1) && !touches(51, 52));
    }

    #[test]
    fn finds_what_looking_at_every_base_finds() {
        let every_base = |seq: &[u8]| {
            let mut found = vec![];
            for unit in 1..=MAX_REPEAT_UNIT_BP {
                let mut start = 0;
                for i in unit..=seq.len() {
                    if i < seq.len() && seq[i] == seq[i - unit] && seq[i] != b'N' {
                        continue;
                    }
                    if i - start >= min_tandem_repeat_bp(unit) && smallest_unit_bp(&seq[start..start + unit]) == unit {
                        found.push(TandemRepeat { start, end: i, unit });
                    }
                    start = i + 1 - unit;
                }
            }
            found
        };
        let mut rng = crate::rng::Rng::from_seed_and_labels(4, &[]);
        let mut all = 0;
        for length in (0..60).chain([1000, 5000]) {
            for _ in 0..20 {
                // Few letters and copied units give many repeats.
                let mut seq: Vec<u8> = vec![];
                while seq.len() < length {
                    let unit = 1 + rng.draw_below(6);
                    if seq.len() > unit && rng.draw_bernoulli(0.3) {
                        for _ in 0..rng.draw_below(30) {
                            seq.push(seq[seq.len() - unit]);
                        }
                    } else {
                        seq.push(*rng.choose_item(b"ACACAGTN"));
                    }
                }
                let found = list_tandem_repeats(&seq);
                all += found.len();
                assert_eq!(found, every_base(&seq), "{}", String::from_utf8_lossy(&seq));
                // A window around a site is enough to find out whether the site is within a repeat.
                for at in (0..seq.len()).step_by(if length > 100 { 17 } else { 1 }) {
                    let lies = found.iter().any(|t| t.start <= at + 2 && at < t.end + 1);
                    assert_eq!(
                        touches_tandem_repeat(&seq, at, at + 2),
                        lies,
                        "{at} of {}",
                        String::from_utf8_lossy(&seq)
                    );
                }
            }
        }
        assert!(all > 1000, "{all}");
    }
}
