//! Which changes of a contig the same molecules have: neighbouring substitutions become one change, others that pass are in phase.

use std::collections::HashMap;

use crate::change::Change;
use crate::compare::{Compared, Finding};
use crate::errors::Errors;
use crate::event::{Class, Event, class_of, position};
use crate::evidence::Vote;
use crate::locus::{Call, Locus};
use crate::recruit::Kept;

/// Molecules that tell the alleles of two changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shared {
    /// Those with both changes.
    pub both: u32,
    /// Those with only the first, and with only the second.
    pub only: [u32; 2],
}

/// Fewest molecules that have two changes both.
const FEWEST: u32 = 2;
/// One for so many of them, beside one, may have only the first of two neighbouring changes by a wrong base, and as many only the second.
const MISREAD: u32 = 10;

impl Shared {
    /// From the votes of one sample on two changes of a contig, each in the order of their molecules.
    pub fn of(first: &[Vote], second: &[Vote]) -> Shared {
        let mut shared = Shared::default();
        let mut second = second.iter().peekable();
        for a in first {
            while second.next_if(|b| b.pair < a.pair).is_some() {}
            let Some(b) = second.next_if(|b| b.pair == a.pair) else { continue };
            shared.both += u32::from(a.alternative() && b.alternative());
            shared.only[0] += u32::from(a.alternative() && b.reference());
            shared.only[1] += u32::from(a.reference() && b.alternative());
        }
        shared
    }

    /// Adds those of another sample.
    pub fn add(&mut self, other: &Shared) {
        self.both += other.both;
        self.only[0] += other.only[0];
        self.only[1] += other.only[1];
    }

    /// Whether the two came about together: no molecule has one of them alone, but for errors. Were one of them older, or the
    /// germline's, many would have it alone.
    pub fn at_once(&self) -> bool {
        self.both >= FEWEST && self.only[0].max(self.only[1]) <= 1 + self.both / MISREAD
    }

    /// Whether the two lie on one haplotype: of the molecules with the rarer one, most have the other too.
    pub fn in_phase(&self) -> bool {
        self.both >= FEWEST && self.both > self.only[0].min(self.only[1])
    }
}

/// A substitution: sequence, position, bases before and after.
fn substitution(change: &Change) -> Option<(usize, usize, &[u8], &[u8])> {
    match change {
        Change::Allele { chrom, pos, reference, alternative } if reference.len() == alternative.len() => {
            Some((*chrom, *pos, reference, alternative))
        }
        _ => None,
    }
}

/// Two substitutions of neighbouring bases as one change.
fn joined_change(a: &Change, b: &Change) -> Option<Change> {
    let (a, b) = (substitution(a)?, substitution(b)?);
    let (first, second) = if a.1 < b.1 { (a, b) } else { (b, a) };
    (first.0 == second.0 && first.1 + first.2.len() == second.1).then(|| Change::Allele {
        chrom: first.0,
        pos: first.1,
        reference: [first.2, second.2].concat(),
        alternative: [first.3, second.3].concat(),
    })
}

/// The same as findings, `a` before `b` on their contig.
fn joined(a: &Finding, b: &Finding) -> Option<Finding> {
    let change = joined_change(&a.change, &b.change).filter(|_| a.at.end == b.at.start)?;
    let mut normal = a.left_normal.clone();
    normal.get_mut(b.at.clone())?.copy_from_slice(b.left_normal.get(b.at.clone())?);
    Some(Finding {
        change,
        at: a.at.start..b.at.end,
        left_normal: normal.clone(),
        right_normal: normal,
        right_shift: 0,
        mapq: a.mapq.min(b.mapq),
    })
}

/// The findings of a contig, by index and in its order, that neighbour the one before them.
fn neighbours(contig: &Compared) -> Vec<[usize; 2]> {
    let mut order: Vec<usize> = (0..contig.findings.len()).collect();
    order.sort_by_key(|&f| (contig.findings[f].at.start, f));
    let adjacent = |two: &&[usize]| joined(&contig.findings[two[0]], &contig.findings[two[1]]).is_some();
    order.windows(2).filter(adjacent).map(|two| [two[0], two[1]]).collect()
}

/// Two neighbouring substitutions by the change they make together, and the molecules of both samples that show them.
pub type Neighbours = (Change, Shared);

/// What the reads of locus `l` say of its neighbouring substitutions.
pub fn weigh_neighbours(l: usize, loci: &[Locus], pairs: &[Kept], errors: &Errors) -> Vec<Neighbours> {
    let contig = &loci[l].contig;
    let found = neighbours(contig);
    if found.is_empty() {
        return Vec::new();
    }
    let evidence = loci[l].evidence(loci, pairs, errors);
    let weigh = |[a, b]: [usize; 2]| {
        let mut shared = Shared::default();
        for (first, second) in evidence.votes(a).iter().zip(&evidence.votes(b)) {
            shared.add(&Shared::of(first, second));
        }
        joined_change(&contig.findings[a].change, &contig.findings[b].change).map(|change| (change, shared))
    };
    found.into_iter().filter_map(weigh).collect()
}

/// Makes one change of neighbouring substitutions that came about together, on all contigs alike, by what is told on the contig where
/// most molecules have both.
pub fn join_neighbours(loci: &mut [Locus], weighed: impl IntoIterator<Item = Neighbours>) {
    let mut best: HashMap<Change, Shared> = HashMap::new();
    for (change, shared) in weighed {
        let known = best.entry(change).or_insert(shared);
        if shared.both > known.both {
            *known = shared;
        }
    }
    best.retain(|_, shared| shared.at_once());
    if !best.is_empty() {
        loci.iter_mut().for_each(|locus| join(&mut locus.contig, |change| best.contains_key(change)));
    }
}

/// Joins the neighbours on a contig that make a change of which `together` holds.
fn join(contig: &mut Compared, together: impl Fn(&Change) -> bool) {
    let change = |f: usize| &contig.findings[f].change;
    let mut two = neighbours(contig);
    two.retain(|&[a, b]| joined_change(change(a), change(b)).is_some_and(|c| together(&c)));
    let mut gone = vec![false; contig.findings.len()];
    // From the last to the first: each takes along what follows it.
    for [a, b] in two.into_iter().rev() {
        if let Some(whole) = joined(&contig.findings[a], &contig.findings[b]) {
            contig.findings[a] = whole;
            gone[b] = true;
        }
    }
    let mut gone = gone.into_iter();
    contig.findings.retain(|_| gone.next() != Some(true));
}

/// Whether a change that passes is one that can be in phase with others.
fn is_small(change: &Change) -> bool {
    matches!(class_of(change), Class::Snv | Class::Mnv | Class::Indel)
}

/// Notes which small changes of a contig that pass are in phase, from what the tumour's molecules say of each: with the first of
/// two the second.
pub(crate) fn note(calls: &mut [Call], votes: &[Vec<Vote>]) {
    let fit = |c: &Call| c.genotype.filters.is_empty() && is_small(&c.change);
    for a in 0..calls.len() {
        let others = (a + 1..calls.len()).filter(|&b| fit(&calls[a]) && fit(&calls[b]));
        let others = others.filter(|&b| Shared::of(&votes[a], &votes[b]).in_phase());
        calls[a].in_phase = others.map(|b| calls[b].change.clone()).collect();
    }
}

/// Two changes in phase.
pub(crate) type Link = [Change; 2];

/// What was noted, whichever of the contigs that show a change its call is taken from.
pub(crate) fn links(calls: &[Call]) -> Vec<Link> {
    calls.iter().flat_map(|c| c.in_phase.iter().map(|other| [c.change.clone(), other.clone()])).collect()
}

/// Puts events that pass, sorted by position, into sets of those in phase: each set has the position of its first.
pub(crate) fn sets(events: &mut [Event], links: &[Link]) {
    let passing = |e: &Event| e.calls[0].genotype.filters.is_empty() && is_small(&e.calls[0].change);
    let at: HashMap<&Change, usize> =
        (0..).zip(events.iter()).filter(|(_, e)| passing(e)).map(|(i, e)| (&e.calls[0].change, i)).collect();
    // The first of the set each event is in, as far as known: the lowest index of those linked.
    let mut first: Vec<usize> = (0..events.len()).collect();
    let mut linked = vec![false; events.len()];
    let root = |first: &[usize], mut i: usize| {
        while first[i] != i {
            i = first[i];
        }
        i
    };
    for [a, b] in links {
        let (Some(&a), Some(&b)) = (at.get(a), at.get(b)) else { continue };
        if position(&events[a].calls[0].change).0 != position(&events[b].calls[0].change).0 {
            continue;
        }
        let (x, y) = (root(&first, a), root(&first, b));
        first[x.max(y)] = x.min(y);
        (linked[a], linked[b]) = (true, true);
    }
    for i in (0..events.len()).filter(|&i| linked[i]) {
        events[i].phase_set = Some(position(&events[root(&first, i)].calls[0].change).1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(pair: u32, log_odds: f64) -> Vote {
        let (forward, first_forward) = (true, true);
        Vote { pair, log_odds, forward, first_forward, from_end: 50, quality: 37, copies: 0 }
    }

    #[test]
    fn molecules_are_those_that_tell_both() {
        let votes = |of: &[(u32, f64)]| of.iter().map(|&(pair, odds)| vote(pair, odds)).collect::<Vec<_>>();
        let first = votes(&[(1, 9.0), (2, 9.0), (4, -9.0), (5, 9.0), (6, 1.0), (9, 9.0)]);
        let second = votes(&[(0, 9.0), (2, 9.0), (3, 9.0), (4, 9.0), (5, -9.0), (6, 9.0), (9, 0.5)]);
        assert_eq!(Shared::of(&first, &second), Shared { both: 1, only: [1, 1] });
        assert_eq!(Shared::of(&first, &[]), Shared::default());
        let mut sum = Shared { both: 3, only: [0, 2] };
        sum.add(&Shared::of(&first, &second));
        assert_eq!(sum, Shared { both: 4, only: [1, 3] });
    }

    #[test]
    fn changes_at_once_have_no_molecules_of_their_own() {
        let shared = |both, first, second| Shared { both, only: [first, second] };
        for (both, first, second) in [(2, 0, 0), (3, 1, 0), (8, 1, 1), (20, 3, 2), (100, 11, 5)] {
            assert!(shared(both, first, second).at_once());
        }
        for (both, first, second) in [(0, 0, 0), (1, 0, 0), (3, 2, 0), (20, 0, 4), (100, 12, 0)] {
            assert!(!shared(both, first, second).at_once());
        }
    }

    /// A contig of `ACGT` repeated, with changed bases: of each, where it lies on the contig and in the genome.
    fn contig(places: &[(usize, usize)]) -> Compared {
        let normal = b"ACGT".repeat(10);
        let mut seq = normal.clone();
        places.iter().for_each(|&(at, _)| seq[at] = b'N');
        let finding = |&(at, pos): &(usize, usize)| {
            let mut undone = seq.clone();
            undone[at] = normal[at];
            let (reference, alternative) = (vec![normal[at]], vec![at as u8]);
            Finding {
                change: Change::Allele { chrom: 0, pos, reference, alternative },
                at: at..at + 1,
                left_normal: undone.clone(),
                right_normal: undone,
                right_shift: 0,
                mapq: 60,
            }
        };
        Compared {
            findings: places.iter().map(finding).collect(),
            novel: vec![true; seq.len()],
            weight: vec![400; seq.len()],
            assembled: 0..seq.len(),
            depth: 9,
            diagonals: [None; 2],
            seq,
        }
    }

    /// Contig range, position and tumour bases of each finding once all neighbours are joined.
    fn all_joined(places: &[(usize, usize)]) -> Vec<(std::ops::Range<usize>, usize, Vec<u8>)> {
        let mut contig = contig(places);
        join(&mut contig, |_| true);
        let told = |f: &Finding| {
            // Undone are all its bases and no others.
            for i in 0..contig.seq.len() {
                let expected = if f.at.contains(&i) { b"ACGT"[i % 4] } else { contig.seq[i] };
                assert_eq!(f.left_normal[i], expected);
            }
            assert_eq!(f.left_normal, f.right_normal);
            let (_, pos, _, alternative) = substitution(&f.change).unwrap();
            (f.at.clone(), pos, alternative.to_vec())
        };
        contig.findings.iter().map(told).collect()
    }

    #[test]
    fn neighbours_are_joined_in_the_order_of_the_genome() {
        assert_eq!(all_joined(&[(9, 109), (10, 110)]), [(9..11, 109, vec![9, 10])]);
        // The contig runs against the genome here.
        assert_eq!(all_joined(&[(9, 112), (10, 111), (11, 110)]), [(9..12, 110, vec![11, 10, 9])]);
        // Whatever the order of findings; what is no neighbour stays.
        let apart = [(20, 120), (10, 110), (12, 112), (9, 109), (21, 121)];
        assert_eq!(
            all_joined(&apart),
            [(20..22, 120, vec![20, 21]), (12..13, 112, vec![12]), (9..11, 109, vec![9, 10])]
        );
        // Neighbours on the contig that are none in the genome.
        assert_eq!(all_joined(&[(9, 109), (10, 310)]).len(), 2);
    }
}
