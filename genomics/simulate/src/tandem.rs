//! Tandem repeats: homopolymers and short units repeated side by side.

/// One tandem repeat of a contig.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tract {
    /// First base, 0-based.
    pub start: usize,
    /// One past the last base.
    pub end: usize,
    /// Length of the repeated unit, bp; 1 is a homopolymer.
    pub unit: usize,
}

/// Longest unit looked for, bp.
pub const LONGEST_UNIT: usize = 6;

/// Fewest bases that make a tract of a unit length: 6 for homopolymers, 5 dinucleotides, 4 of anything longer.
fn shortest(unit: usize) -> usize {
    match unit {
        1 => 6,
        2 => 10,
        _ => 4 * unit,
    }
}

/// All tracts of a sequence, by unit and then by start. A tract is reported with its smallest unit only.
pub fn tracts(seq: &[u8]) -> Vec<Tract> {
    let mut found = vec![];
    find_tracts(seq, &mut found);
    found
}

/// Adds all tracts of a sequence to `found`, as [`tracts`] gives them.
///
/// A tract of unit u is a run of bases that equal the u-th base before them. Only every n-th base is looked at, where n
/// is the shortest run that counts: a run cannot lie between two of them.
pub(crate) fn find_tracts(seq: &[u8], found: &mut Vec<Tract>) {
    for unit in 1..=LONGEST_UNIT {
        let repeats = |i: usize| seq[i] == seq[i - unit] && seq[i] != b'N';
        let needed = shortest(unit) - unit;
        // Bases before this one are known not to be in a run that reaches further.
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
            if end - start >= shortest(unit) && smallest_unit(&seq[start..start + unit]) == unit {
                found.push(Tract { start, end, unit });
            }
            from = end + 1;
            probe = end + needed;
        }
    }
}

/// The shortest word that `word` is a whole number of copies of.
fn smallest_unit(word: &[u8]) -> usize {
    let n = word.len();
    (1..=n).find(|&u| n.is_multiple_of(u) && (u..n).all(|i| word[i] == word[i - u])).unwrap_or(n)
}

/// Bases on either side of a place that decide whether it lies in a tract: more than the shortest tract of any unit has.
const DECIDE: usize = 64;

/// Whether any base of `start..end` of a sequence, or a base beside it, lies in a tract.
pub(crate) fn touches_tract(seq: &[u8], start: usize, end: usize) -> bool {
    let (from, to) = (start.saturating_sub(1).min(seq.len()), (end + 1).min(seq.len()));
    // What is left of a tract that is cut off farther away is still long enough to be one.
    let first = from.saturating_sub(DECIDE);
    let near = &seq[first..(to + DECIDE).clamp(first, seq.len())];
    tracts(near).iter().any(|t| first + t.start < to && from < first + t.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_each_kind_once() {
        let seq = b"GCTAAAAAAAGTCACACACACACACGTTGACGACGACGACTTNNNNNNNNNNGT";
        let found = tracts(seq);
        let text = |t: &Tract| (std::str::from_utf8(&seq[t.start..t.end]).unwrap(), t.unit);
        let all: Vec<_> = found.iter().map(text).collect();
        assert_eq!(all, [("AAAAAAA", 1), ("CACACACACACAC", 2), ("GACGACGACGAC", 3)]);
        let touches = |start, end| touches_tract(seq, start, end);
        assert!(touches(3, 3) && touches(10, 10) && !touches(0, 1) && !touches(51, 52));
    }

    #[test]
    fn finds_what_looking_at_every_base_finds() {
        let every_base = |seq: &[u8]| {
            let mut found = vec![];
            for unit in 1..=LONGEST_UNIT {
                let mut start = 0;
                for i in unit..=seq.len() {
                    if i < seq.len() && seq[i] == seq[i - unit] && seq[i] != b'N' {
                        continue;
                    }
                    if i - start >= shortest(unit) && smallest_unit(&seq[start..start + unit]) == unit {
                        found.push(Tract { start, end: i, unit });
                    }
                    start = i + 1 - unit;
                }
            }
            found
        };
        let mut rng = crate::rng::Rng::stream(4, &[]);
        let mut all = 0;
        for length in (0..60).chain([1000, 5000]) {
            for _ in 0..20 {
                // Few letters, and copies of what is there already, make many tracts.
                let mut seq: Vec<u8> = vec![];
                while seq.len() < length {
                    let unit = 1 + rng.below(6);
                    if seq.len() > unit && rng.chance(0.3) {
                        for _ in 0..rng.below(30) {
                            seq.push(seq[seq.len() - unit]);
                        }
                    } else {
                        seq.push(*rng.pick(b"ACACAGTN"));
                    }
                }
                let found = tracts(&seq);
                all += found.len();
                assert_eq!(found, every_base(&seq), "{}", String::from_utf8_lossy(&seq));
                // Near a place it can be told whether that lies in one.
                for at in (0..seq.len()).step_by(if length > 100 { 17 } else { 1 }) {
                    let lies = found.iter().any(|t| t.start <= at + 2 && at < t.end + 1);
                    assert_eq!(
                        touches_tract(&seq, at, at + 2),
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
