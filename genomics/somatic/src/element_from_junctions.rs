//! The two junctions of an inserted element, such as a mobile element, as one insertion (docs/model/event.md, section
//! "Inserted elements").
//!
//! An element that is longer than contigs shows as two junctions: its first bases are joined to the target site, and so
//! are its last bases. Both are placed on the copy of the genome that resembles them most.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::Reference;

use crate::change::{Breakend, Change, RetainedSide};
use crate::event_model::{EVENT_MODEL_PARAMS, EventModelParams};

/// An element inserted between two positions of the genome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsertedElement {
    /// Index of the chromosome of the target site.
    pub chrom: usize,
    /// 0-based positions of the target-site duplication, which is on both sides of the element.
    pub duplication: Range<usize>,
    /// The copy that has both ends of the element; `None` if different copies of a family resemble them.
    pub source: Option<ElementSource>,
    /// The copies on which reads of the element are placed, as index of the chromosome and 0-based positions: the source,
    /// or the two copies on which the ends are.
    pub copies: Vec<(usize, Range<usize>)>,
    /// Number of bases at the ends of the element that the copies lack, such as a poly-A tail.
    pub num_new_bases: usize,
}

/// The copy in the genome that an inserted element resembles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementSource {
    /// Index of the chromosome.
    pub chrom: usize,
    /// 0-based positions of the copied bases.
    pub range: Range<usize>,
    /// Whether the element has the orientation of the copy.
    pub forward: bool,
}

impl InsertedElement {
    /// The element that two junctions insert; `None` if they are other events.
    pub fn from_junctions(a: &Change, b: &Change, genome: &Reference) -> Option<InsertedElement> {
        let (Change::Junction { ends: x, inserted: i, .. }, Change::Junction { ends: y, inserted: j, .. }) = (a, b)
        else {
            return None;
        };
        let num_new_bases = i.len() + j.len();
        let combinations = [(0, 0), (0, 1), (1, 0), (1, 1)];
        combinations.into_iter().find_map(|(m, n)| {
            let (chrom, duplication) = target_site(&x[m], &y[n])?;
            let (first, last) = match x[m].side {
                RetainedSide::Left => (&x[1 - m], &y[1 - n]),
                RetainedSide::Right => (&y[1 - n], &x[1 - m]),
            };
            let source = common_source(first, last);
            let copies = match &source {
                Some(source) => vec![(source.chrom, source.range.clone())],
                None => {
                    let len = copy_len_of_family(first, last, genome)?;
                    [first, last].map(|end| (end.chrom, kept_range(end, len))).to_vec()
                }
            };
            Some(InsertedElement { chrom, duplication, source, copies, num_new_bases })
        })
    }

    /// Number of inserted bases, with the second copy of the target site; `None` if it is unknown.
    pub fn inserted_len(&self) -> Option<usize> {
        self.source.as_ref().map(|source| source.range.len() + self.num_new_bases + self.duplication.len())
    }
}

/// The chromosome and the target-site duplication of an insertion between two breakends; `None` if they have none.
fn target_site(a: &Breakend, b: &Breakend) -> Option<(usize, Range<usize>)> {
    let (left, right) = match (a.side, b.side) {
        (RetainedSide::Left, RetainedSide::Right) => (a, b),
        (RetainedSide::Right, RetainedSide::Left) => (b, a),
        _ => return None,
    };
    let duplication = right.pos..left.pos + 1;
    (a.chrom == b.chrom && EVENT_MODEL_PARAMS.target_site_duplication_bp.contains(&duplication.len()))
        .then_some((a.chrom, duplication))
}

/// The copy between the breakend with the first bases of an element and the one with its last bases; `None` if they do
/// not face each other at the distance of an element.
fn common_source(first: &Breakend, last: &Breakend) -> Option<ElementSource> {
    let (start, end, forward) = match (first.side, last.side) {
        (RetainedSide::Right, RetainedSide::Left) => (first, last, true),
        (RetainedSide::Left, RetainedSide::Right) => (last, first, false),
        _ => return None,
    };
    let range = start.pos..end.pos + 1;
    (start.chrom == end.chrom && EVENT_MODEL_PARAMS.element_bp.contains(&range.len())).then_some(ElementSource {
        chrom: start.chrom,
        range,
        forward,
    })
}

/// Length of the copy with the first bases of an element, to the sequence there that resembles its last bases; `None`
/// unless the two ends are on different copies of one family.
fn copy_len_of_family(first: &Breakend, last: &Breakend, genome: &Reference) -> Option<usize> {
    let EventModelParams {
        element_bp,
        min_copy_distance_bp,
        element_end_bases,
        family_word_bases,
        min_shared_words,
        max_word_shift_bp,
        ..
    } = EVENT_MODEL_PARAMS;
    if first.chrom == last.chrom && first.pos.abs_diff(last.pos) < min_copy_distance_bp {
        return None;
    }
    let element = bases_from(first, *element_bp.end(), genome);
    let end = reverse_complement(&bases_from(last, element_end_bases, genome));
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (at, word) in element.windows(family_word_bases).enumerate().filter(|(_, word)| is_complex(word)) {
        places.entry(word).or_default().push(at);
    }
    // Shared words by their distance, in overlapping bins.
    let mut shared: HashMap<usize, HashSet<&[u8]>> = HashMap::new();
    for (at, word) in end.windows(family_word_bases).enumerate() {
        for place in places.get(word).into_iter().flatten() {
            let bin = (place + element_end_bases - at) / max_word_shift_bp;
            [bin, bin + 1].into_iter().for_each(|bin| _ = shared.entry(bin).or_default().insert(word));
        }
    }
    let most = shared.iter().max_by_key(|(bin, words)| (words.len(), Reverse(**bin)))?;
    // A bin covers twice its width, so that the copy ends before the end of the bin.
    let len = ((most.0 + 1) * max_word_shift_bp).min(*element_bp.end());
    (most.1.len() >= min_shared_words).then_some(len)
}

/// Whether a word has three different bases or more: others are frequent in repeats of one or two bases.
fn is_complex(word: &[u8]) -> bool {
    b"ACGT".iter().filter(|base| word.contains(base)).count() > 2
}

/// The 0-based positions of `len` bases from a breakend into the sequence that is kept there.
fn kept_range(end: &Breakend, len: usize) -> Range<usize> {
    match end.side {
        RetainedSide::Right => end.pos..end.pos + len,
        RetainedSide::Left => (end.pos + 1).saturating_sub(len)..end.pos + 1,
    }
}

/// Up to `len` bases of the genome from a breakend into the sequence that is kept there.
fn bases_from(end: &Breakend, len: usize, genome: &Reference) -> Vec<u8> {
    let seq = &genome.contigs[end.chrom].seq;
    let range = kept_range(end, len);
    let bases = &seq[range.start..range.end.min(seq.len())];
    match end.side {
        RetainedSide::Right => bases.to_vec(),
        RetainedSide::Left => reverse_complement(bases),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use RetainedSide::{Left, Right};
    use genuma_reads::fasta::Contig;

    fn bases(n: usize, mut state: u64) -> Vec<u8> {
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            b"ACGT"[(state >> 60) as usize % 4]
        };
        std::iter::repeat_with(next).take(n).collect()
    }

    /// Two sequences of 30 kb. Each has a copy of an element of 3 kb; they differ in every thirtieth base. The copies begin
    /// at 10 kb, and at 20 kb on the second sequence.
    pub(crate) fn genome() -> Reference {
        let element = bases(3000, 3);
        let mut other = element.clone();
        other.iter_mut().step_by(30).for_each(|base| *base = if *base == b'A' { b'C' } else { b'A' });
        let seqs = [(10_000, 1, element), (20_000, 2, other)].map(|(at, seed, copy)| {
            let mut seq = bases(30_000, seed);
            seq[at..at + copy.len()].copy_from_slice(&copy);
            seq
        });
        Reference::from_contigs(seqs.into_iter().map(|seq| Contig { name: "c".into(), seq }).collect())
    }

    pub(crate) type End = (usize, usize, RetainedSide);

    pub(crate) fn junction(a: End, b: End) -> Change {
        let mut ends = [a, b].map(|(chrom, pos, side)| Breakend { chrom, pos, side });
        ends.sort();
        Change::Junction { ends, inserted: Vec::new(), homology: 0 }
    }

    fn element(a: [End; 2], b: [End; 2]) -> Option<InsertedElement> {
        let [a, b] = [a, b].map(|[x, y]| junction(x, y));
        let found = InsertedElement::from_junctions(&a, &b, &genome());
        assert_eq!(found, InsertedElement::from_junctions(&b, &a, &genome()));
        found
    }

    #[test]
    fn two_junctions_of_one_copy_are_an_insertion() {
        let target = [(0, 5014, Left), (0, 5000, Right)];
        let forward = element([target[0], (0, 10_000, Right)], [(0, 12_999, Left), target[1]]).unwrap();
        assert_eq!((forward.chrom, forward.duplication.clone(), forward.inserted_len()), (0, 5000..5015, Some(3015)));
        assert_eq!(forward.source, Some(ElementSource { chrom: 0, range: 10_000..13_000, forward: true }));
        let reverse = element([target[0], (1, 22_999, Left)], [(1, 20_000, Right), target[1]]).unwrap();
        assert_eq!(reverse.source, Some(ElementSource { chrom: 1, range: 20_000..23_000, forward: false }));
    }

    #[test]
    fn ends_on_two_copies_of_a_family_are_an_insertion_of_unknown_length() {
        let target = [(0, 5014, Left), (0, 5000, Right)];
        let found = element([target[0], (0, 10_000, Right)], [(1, 22_999, Left), target[1]]).unwrap();
        assert_eq!((found.source.clone(), found.inserted_len()), (None, None));
        let [(0, first), (1, last)] = &found.copies[..] else { panic!("{found:?}") };
        assert!(first.start == 10_000 && (13_000..13_064).contains(&first.end), "{first:?}");
        assert!(last.end == 23_000 && (19_936..=20_000).contains(&last.start), "{last:?}");
        assert!(element([target[0], (0, 12_999, Left)], [(1, 20_000, Right), target[1]]).is_some());
        // The last bases are not of the family, or the copies have opposite orientations.
        assert_eq!(element([target[0], (0, 10_000, Right)], [(1, 15_000, Left), target[1]]), None);
        assert_eq!(element([target[0], (0, 10_000, Right)], [(1, 20_000, Right), target[1]]), None);
    }

    #[test]
    fn other_events_are_no_insertions() {
        // A reciprocal translocation: with a few lost bases, and with duplicated ones at both breaks.
        assert_eq!(element([(0, 5000, Left), (1, 8004, Right)], [(1, 8000, Left), (0, 5003, Right)]), None);
        for overlap in [4, 15, 30, 60, 99] {
            let b = [(1, 8000 + overlap, Left), (0, 5000, Right)];
            assert_eq!(element([(0, 5015, Left), (1, 8001, Right)], b), None, "{overlap}");
        }
        // A reciprocal translocation within two copies of the family.
        assert_eq!(element([(0, 11_000, Left), (1, 21_001, Right)], [(1, 21_010, Left), (0, 10_990, Right)]), None);
        // Inversions, without and with duplicated bases at their ends, and within inverted copies.
        for shift in [0, 12] {
            let end = |pos: usize| pos + shift;
            assert_eq!(
                element([(0, end(4000), Left), (0, end(9000), Left)], [(0, 4001, Right), (0, 9001, Right)]),
                None
            );
        }
        // A duplication and a deletion that share a breakpoint.
        assert_eq!(element([(0, 5000, Right), (0, 25_000, Left)], [(0, 5010, Left), (0, 7000, Right)]), None);
        // An unbalanced translocation beside another one, and a copy of more than 10 kb.
        assert_eq!(element([(0, 5014, Left), (1, 3000, Right)], [(0, 25_000, Left), (0, 5000, Right)]), None);
        assert_eq!(element([(0, 5014, Left), (1, 3000, Right)], [(1, 13_100, Left), (0, 5000, Right)]), None);
        // A copied stretch without target-site duplication stays two junctions.
        assert_eq!(element([(0, 5000, Left), (1, 20_000, Right)], [(1, 22_999, Left), (0, 5001, Right)]), None);
    }
}
