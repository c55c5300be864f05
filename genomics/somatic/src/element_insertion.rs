//! Joins the two junctions of an inserted element, such as a mobile element, to one insertion (docs/model/event.md,
//! section "Inserted elements").
//!
//! An element that is longer than contigs shows as two junctions: its first bases are joined to the target site, and so
//! are its last bases. Both are placed on the copy of the genome that resembles them most.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use genuma_reads::dna::reverse_complement;
use genuma_reads::fasta::Reference;

use crate::change::{Breakend, Change, RetainedSide, change_sort_position, is_small_variant};
use crate::event::{Event, EventClass};
use crate::genotype::Filter;
use crate::locus::VariantCall;

/// Length in bp of the target-site duplication. L1 and Alu elements make 7 to 20 bp, and the microhomology of the
/// junctions shortens or lengthens what is seen. Chosen. A wider range accepts more junctions of other events.
const TARGET_SITE_DUPLICATION_BP: Range<usize> = 4..31;
/// Length in bp of the copy from which an element comes. The longest mobile elements of the human genome, endogenous
/// retroviruses, have 9.5 kb. The minimum exceeds the overlap of the two junctions of a reciprocal translocation. Chosen.
const ELEMENT_BP: Range<usize> = 100..10_001;
/// Minimum distance in bp between the other ends of two junctions that are on different copies. Nearer ones are the two
/// sides of a break, as in inversions and reciprocal translocations, or the ends of a longer copy. Chosen: more than an
/// element and the bases at its end.
const MIN_COPY_DISTANCE_BP: usize = 11_000;
/// Number of bases at the end of an element that are searched for in the copy at its beginning.
const ELEMENT_END_BASES: usize = 300;
/// Length of the words that two copies share.
const WORD_BASES: usize = 11;
/// Minimum number of different words in the same order and distance that two copies of one family share. Unrelated
/// sequences share less than one; of two copies that differ in a fifth of their bases 30 are expected. Chosen.
const MIN_SHARED_WORDS: usize = 8;
/// Maximum difference in bp of the distances between shared words. Copies differ by short indels.
const MAX_WORD_SHIFT_BP: usize = 32;

/// An element inserted between two positions of the genome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InsertedElement {
    /// Index of the chromosome of the target site.
    pub chrom: usize,
    /// 0-based positions of the target-site duplication, which is on both sides of the element.
    pub duplication: Range<usize>,
    /// The copy that has both ends of the element; `None` if different copies of a family resemble them.
    pub source: Option<ElementSource>,
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
            (source.is_some() || are_ends_of_one_family(first, last, genome)).then_some(InsertedElement {
                chrom,
                duplication,
                source,
                num_new_bases,
            })
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
    (a.chrom == b.chrom && TARGET_SITE_DUPLICATION_BP.contains(&duplication.len())).then_some((a.chrom, duplication))
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
    (start.chrom == end.chrom && ELEMENT_BP.contains(&range.len())).then_some(ElementSource {
        chrom: start.chrom,
        range,
        forward,
    })
}

/// Whether the two ends of an element are on different copies of one family: the copy with its first bases continues
/// with sequence like its last bases.
fn are_ends_of_one_family(first: &Breakend, last: &Breakend, genome: &Reference) -> bool {
    if first.chrom == last.chrom && first.pos.abs_diff(last.pos) < MIN_COPY_DISTANCE_BP {
        return false;
    }
    let element = bases_from(first, ELEMENT_BP.end, genome);
    let end = reverse_complement(&bases_from(last, ELEMENT_END_BASES, genome));
    let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
    for (at, word) in element.windows(WORD_BASES).enumerate().filter(|(_, word)| is_complex(word)) {
        places.entry(word).or_default().push(at);
    }
    // Shared words by their distance, in overlapping bins.
    let mut shared: HashMap<usize, HashSet<&[u8]>> = HashMap::new();
    for (at, word) in end.windows(WORD_BASES).enumerate() {
        for place in places.get(word).into_iter().flatten() {
            let bin = (place + ELEMENT_END_BASES - at) / MAX_WORD_SHIFT_BP;
            [bin, bin + 1].into_iter().for_each(|bin| _ = shared.entry(bin).or_default().insert(word));
        }
    }
    shared.values().any(|words| words.len() >= MIN_SHARED_WORDS)
}

/// Whether a word has three different bases or more: others are frequent in repeats of one or two bases.
fn is_complex(word: &[u8]) -> bool {
    b"ACGT".iter().filter(|base| word.contains(base)).count() > 2
}

/// Up to `len` bases of the genome from a breakend into the sequence that is kept there.
fn bases_from(end: &Breakend, len: usize, genome: &Reference) -> Vec<u8> {
    let seq = &genome.contigs[end.chrom].seq;
    match end.side {
        RetainedSide::Right => seq[end.pos..seq.len().min(end.pos + len)].to_vec(),
        RetainedSide::Left => reverse_complement(&seq[(end.pos + 1).saturating_sub(len)..=end.pos]),
    }
}

/// Makes one insertion of the two junctions of each inserted element, and filters the small changes inside the copy
/// from which it comes. Events stay sorted by the position of their first call.
pub(crate) fn join_element_junctions(events: &mut Vec<Event>, genome: &Reference) {
    for event in events.iter_mut() {
        if let [a, b] = &event.calls[..]
            && InsertedElement::from_junctions(&a.change, &b.change, genome).is_some()
        {
            event.class = EventClass::Ins;
        }
    }
    join_single_junctions(events, genome);
    filter_differences_of_copies(events, genome);
}

/// Joins events of one junction each to insertions. At least one junction must pass.
fn join_single_junctions(events: &mut Vec<Event>, genome: &Reference) {
    let mut ends: Vec<(usize, usize, usize)> = Vec::new();
    for (e, event) in events.iter().enumerate() {
        if let [VariantCall { change: Change::Junction { ends: own, .. }, .. }] = &event.calls[..] {
            ends.extend(own.iter().map(|end| (end.chrom, end.pos, e)));
        }
    }
    ends.sort_unstable();
    let mut is_joined = vec![false; events.len()];
    for (i, &(chrom, pos, e)) in ends.iter().enumerate() {
        let near =
            ends[i + 1..].iter().take_while(|end| end.0 == chrom && end.1 < pos + TARGET_SITE_DUPLICATION_BP.end);
        let is_partner = |other: &usize| {
            let [a, b] = [e, *other].map(|event| &events[event].calls[0].change);
            let passes = [e, *other].iter().any(|&event| events[event].calls[0].genotype.filters.is_empty());
            passes && InsertedElement::from_junctions(a, b, genome).is_some()
        };
        let mut single = near.map(|end| end.2).filter(|&other| other != e && !is_joined[e] && !is_joined[other]);
        let partner = single.find(is_partner);
        if let Some(other) = partner {
            (is_joined[e], is_joined[other]) = (true, true);
            let call = events[other].calls.remove(0);
            events[e].calls.push(call);
            events[e].class = EventClass::Ins;
            events[e].calls.sort_by_key(|call| (call.genotype.rank(), call.locus));
        }
    }
    events.retain(|event| !event.calls.is_empty());
    events.sort_by_key(|event| change_sort_position(&event.calls[0].change));
}

/// Filters small changes inside the copies from which passing insertions come: reads of the inserted element are placed
/// there, with the bases in which it differs from the copy.
fn filter_differences_of_copies(events: &mut [Event], genome: &Reference) {
    let source = |event: &Event| match &event.calls[..] {
        [a, b] if event.class == EventClass::Ins && a.genotype.filters.is_empty() => {
            InsertedElement::from_junctions(&a.change, &b.change, genome)?.source
        }
        _ => None,
    };
    let mut sources: Vec<(usize, usize, usize)> =
        events.iter().filter_map(source).map(|copy| (copy.chrom, copy.range.start, copy.range.end)).collect();
    sources.sort_unstable();
    for call in events.iter_mut().flat_map(|event| &mut event.calls).filter(|call| is_small_variant(&call.change)) {
        let (chrom, pos) = change_sort_position(&call.change);
        let from = sources.partition_point(|copy| (copy.0, copy.1 + ELEMENT_BP.end) <= (chrom, pos));
        let mut near = sources[from..].iter().take_while(|copy| (copy.0, copy.1) <= (chrom, pos));
        if near.any(|copy| pos < copy.2) {
            call.genotype.filters.insert(Filter::Divergent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::event_class_of_change;
    use crate::genotype::{ErrorFrequency, GenotypingResult};
    use crate::known_variants::PopulationFrequency;
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
    fn genome() -> Reference {
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

    type End = (usize, usize, RetainedSide);

    fn junction(a: End, b: End) -> Change {
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

    fn event(changes: &[Change]) -> Event {
        let call = |change: &Change| VariantCall {
            change: change.clone(),
            error_frequency: ErrorFrequency::Rare,
            genotype: GenotypingResult::default(),
            tumour_molecules: 0,
            population_frequency: PopulationFrequency::NoKnownVariants,
            panel_normals: None,
            is_fold_back: false,
            locus: 0,
            change_index: 0,
            supporting_pairs: Vec::new(),
            phased_changes: Vec::new(),
        };
        let class = event_class_of_change(&changes[0]);
        Event { class, calls: changes.iter().map(call).collect(), phase_set: None }
    }

    #[test]
    fn junctions_are_joined_and_differences_of_the_copy_are_filtered() {
        let snv = |chrom, pos| Change::Allele { chrom, pos, reference: b"A".to_vec(), alternative: b"C".to_vec() };
        let first = junction((0, 5014, Left), (1, 20_000, Right));
        let last = junction((0, 5000, Right), (1, 22_999, Left));
        let second = [junction((0, 7010, Left), (0, 10_000, Right)), junction((0, 7000, Right), (1, 22_999, Left))];
        let other = junction((0, 7005, Right), (1, 25_000, Left));
        let mut events: Vec<Event> = [second[0].clone(), second[1].clone(), other.clone()]
            .into_iter()
            .chain([snv(1, 19_999), snv(1, 20_000), snv(1, 22_999), snv(1, 23_000), snv(0, 20_500)])
            .map(|change| event(&[change]))
            .collect();
        events.push(event(&[first, last]));
        events.sort_by_key(|event| change_sort_position(&event.calls[0].change));
        join_element_junctions(&mut events, &genome());
        let insertions: Vec<usize> =
            events.iter().filter(|event| event.class == EventClass::Ins).map(|event| event.calls.len()).collect();
        assert_eq!(insertions, [2, 2]);
        assert!(events.iter().any(|event| event.class == EventClass::Bnd && event.calls[0].change == other));
        let is_filtered = |(chrom, pos)| {
            let of_event = |event: &&Event| event.calls[0].change == snv(chrom, pos);
            events.iter().find(of_event).unwrap().calls[0].genotype.filters.contains(&Filter::Divergent)
        };
        let places = [(1, 19_999), (1, 20_000), (1, 22_999), (1, 23_000), (0, 20_500)];
        assert_eq!(places.map(is_filtered), [false, true, true, false, false]);
    }
}
