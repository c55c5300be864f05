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
}

/// The shortest word that `word` is a whole number of copies of.
fn smallest_unit(word: &[u8]) -> usize {
    let n = word.len();
    (1..=n).find(|&u| n.is_multiple_of(u) && (u..n).all(|i| word[i] == word[i - u])).unwrap_or(n)
}

/// Tracts of one contig with a fast look-up by position.
#[derive(Debug)]
pub struct TractIndex {
    /// Sorted by start.
    pub tracts: Vec<Tract>,
    covered: Vec<bool>,
}

impl TractIndex {
    /// Finds the tracts of `seq`.
    pub fn new(seq: &[u8]) -> Self {
        let mut tracts = tracts(seq);
        tracts.sort_unstable_by_key(|t| (t.start, t.unit));
        let mut covered = vec![false; seq.len()];
        for t in &tracts {
            covered[t.start..t.end].fill(true);
        }
        TractIndex { tracts, covered }
    }

    /// Whether any base of `start..end`, or a base beside it, lies in a tract.
    pub fn touches(&self, start: usize, end: usize) -> bool {
        let from = start.saturating_sub(1).min(self.covered.len());
        self.covered[from..(end + 1).clamp(from, self.covered.len())].contains(&true)
    }
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
        let index = TractIndex::new(seq);
        assert!(
            index.touches(3, 3) && index.touches(10, 10) && !index.touches(0, 1) && !index.touches(51, 52)
        );
    }
}
