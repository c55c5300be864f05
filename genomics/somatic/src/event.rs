//! Judged changes → events: copies of one change merged, junctions of one rearrangement joined.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::change::{Breakend, Change, SAME, STRUCTURAL, Side, is_small, near, position, same};
use crate::genotype::{FEWEST_PAIRS, Filter, Kind, PRIOR};
use crate::locus::Call;
use genuma_reads::Trimmed;

/// What an event is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Class {
    /// One base for another.
    Snv,
    /// Neighbouring bases for as many others.
    Mnv,
    /// Up to 49 bases inserted, deleted or both.
    Indel,
    /// 50 bases or more deleted.
    Del,
    /// 50 bases or more inserted.
    Ins,
    /// A tandem copy.
    Dup,
    /// A stretch turned round.
    Inv,
    /// Any other junction.
    Bnd,
}

impl Class {
    /// Name in reports and in the VCF's SVTYPE.
    pub fn name(self) -> &'static str {
        match self {
            Class::Snv => "SNV",
            Class::Mnv => "MNV",
            Class::Indel => "INDEL",
            Class::Del => "DEL",
            Class::Ins => "INS",
            Class::Dup => "DUP",
            Class::Inv => "INV",
            Class::Bnd => "BND",
        }
    }
}

/// One event: the calls that make it up, the best first.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What it is.
    pub class: Class,
    /// One call, or two for events with two junctions.
    pub calls: Vec<Call>,
    /// Position (0-based) of the first event on the same haplotype, if others are known to be on it.
    pub phase_set: Option<usize>,
}

/// Ends of two junctions this near belong to one event.
const PARTNER: usize = 60;

/// What the calls of one person have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Library {
    /// Whether its molecules fold back on themselves and are copied so.
    pub folds: bool,
    /// Bases known in both samples.
    pub bases: u64,
    /// Phred quality under which a call does not pass.
    pub least_quality: f64,
}

/// Share of the mates that fold back on themselves from which it is the library's doing and not the genome's.
const FOLDING: f64 = 6e-4;

impl Library {
    /// From what its reads look like.
    pub fn of(trimmed: &Trimmed, bases: u64, least_quality: f64) -> Library {
        Library { folds: trimmed.folding() > FOLDING, bases, least_quality }
    }
}

/// Distance of a junction's ends, bases, within which a strand folds back or jumps on while it is copied.
const LOCAL: usize = 1000;
/// Molecules, and their share at the place, up to which a local junction in a library that folds is its artefact: one that turns round,
/// and any other.
const TURNED: (u32, f64) = (7, 0.25);
const JUMPED: (u32, f64) = (4, 0.15);

/// The same in other libraries, in which a strand may fold back once in a while.
const RARELY_TURNED: (u32, f64) = (2, 0.0);
const NEVER: (u32, f64) = (0, 0.0);

/// Whether a junction may be an artefact of a library that folds, by what such have at most when they turn round and when not. A hairpin
/// of a repeat may lie in two places far apart, but its sequence shows what it is.
fn folded(call: &Call, [turned, jumped]: [(u32, f64); 2]) -> bool {
    let (most, share) = match &call.change {
        _ if call.turns_back => turned,
        Change::Junction { ends: [a, b], .. } if a.chrom == b.chrom && a.pos.abs_diff(b.pos) <= LOCAL => {
            if a.side == b.side { turned } else { jumped }
        }
        Change::Novel { .. } => jumped,
        _ => return false,
    };
    let support = &call.genotype.tumour;
    let all = support.depth().max(call.molecules);
    support.alternative <= most || f64::from(support.alternative) < share * f64::from(all)
}

/// Share of the calls on three molecules or more, of changes that sequencers hardly make, up to which those on two are believed: as many
/// as there would be if they were of the same kind. More of them are artefacts of the library.
const BELIEVED: f64 = 0.1;

/// Believes changes seen in two molecules only if they are as few as chance makes them.
fn doubt_the_few(calls: &mut [Call]) {
    let passing = |calls: &[Call], few: bool| {
        let is = |c: &&Call| c.kind == Kind::Rare && c.genotype.filters.is_empty();
        calls
            .iter()
            .filter(is)
            .filter(|c| ((c.genotype.tumour.alternative as usize) < FEWEST_PAIRS) == few)
            .count()
    };
    if passing(calls, true) as f64 <= BELIEVED * passing(calls, false) as f64 {
        return;
    }
    for call in calls {
        if (call.genotype.tumour.alternative as usize) < FEWEST_PAIRS {
            call.genotype.filters.insert(Filter::FewReads);
        }
    }
}

/// Calls by which an expectation is held against what was found, so that a few bases say little of the sample.
const WEIGHT: f64 = 5.0;
/// Rounds of reckoning how many calls are true from how likely they are, and how likely from how many.
const ROUNDS: usize = 20;

/// Moves the qualities of small changes by how frequent they are in this sample: what is judged with the odds of a mutation in
/// [`PRIOR`] bases is less likely where hardly any is sure, as in a normal held against itself: errors are as many as ever there
/// (empirical Bayes; Efron 2010, "Large-scale inference"). Where many are sure nothing is moved: it would let in more errors than calls.
fn weigh_by_frequency(calls: &mut [Call], bases: u64, least_quality: f64) {
    if bases == 0 {
        return;
    }
    let expected = bases as f64 * (-PRIOR).exp();
    for kind in [Kind::Common, Kind::Rare] {
        let is = |c: &Call| c.kind == kind && matches!(c.change, Change::Allele { .. });
        let doubted = |c: &Call| c.genotype.filters.iter().any(|&f| f != Filter::LowQuality);
        let nats: Vec<f64> = calls
            .iter()
            .filter(|c| is(c) && !doubted(c) && c.genotype.quality > 0.0)
            .map(|c| c.genotype.quality * std::f64::consts::LN_10 / 10.0)
            .collect();
        let mut shift = 0.0f64;
        for _ in 0..ROUNDS {
            let real: f64 = nats.iter().map(|n| 1.0 / (1.0 + (-n - shift).exp())).sum();
            shift = ((real + WEIGHT) / (expected + WEIGHT)).ln().min(0.0);
        }
        let shift = shift * 10.0 / std::f64::consts::LN_10;
        for genotype in calls.iter_mut().filter(|c| is(c)).map(|c| &mut c.genotype) {
            if genotype.quality <= 0.0 {
                continue;
            }
            genotype.quality = (genotype.quality + shift).clamp(0.0, 999.0);
            if genotype.quality < least_quality {
                genotype.filters.insert(Filter::LowQuality);
            } else {
                genotype.filters.remove(&Filter::LowQuality);
            }
        }
    }
}

/// Merges copies and pairs junctions. Events come sorted by position of their first call.
pub fn events(mut calls: Vec<Call>, library: &Library) -> Vec<Event> {
    weigh_by_frequency(&mut calls, library.bases, library.least_quality);
    doubt_the_few(&mut calls);
    let links = links(&calls);
    calls.sort_by(|a, b| {
        let loose = |c: &Call| matches!(c.change, Change::Novel { .. });
        let quality = |c: &Call| std::cmp::Reverse(c.genotype.quality as i64);
        let rank = |c: &Call| (c.genotype.filters.len(), loose(c), quality(c), c.locus);
        rank(a).cmp(&rank(b)).then_with(|| a.change.cmp(&b.change))
    });
    // Alleles are copies when they are equal; only junctions and loose ends, which are few, are compared by distance.
    let mut alleles: HashSet<Change> = HashSet::new();
    let (mut kept, mut structural): (Vec<Call>, Vec<usize>) = (Vec::new(), Vec::new());
    for call in calls {
        let fresh = match &call.change {
            Change::Allele { .. } => alleles.insert(call.change.clone()),
            change => {
                !structural.iter().any(|&i| same(&kept[i].change, change))
                    && !kept.iter().any(|k| k.genotype.filters.is_empty() && begins(&k.change, change))
            }
        };
        if fresh {
            if !matches!(call.change, Change::Allele { .. }) {
                structural.push(kept.len());
            }
            kept.push(call);
        }
    }
    let mut taken = vec![false; kept.len()];
    let mut events = Vec::new();
    for i in 0..kept.len() {
        if taken[i] {
            continue;
        }
        taken[i] = true;
        let partner = structural
            .iter()
            .copied()
            .filter(|&j| j > i && !taken[j])
            .find_map(|j| pair(&kept[i].change, &kept[j].change).map(|class| (j, class)));
        let (class, mut calls) = match partner {
            Some((j, class)) => {
                taken[j] = true;
                (class, vec![kept[i].clone(), kept[j].clone()])
            }
            None => (class_of(&kept[i].change), vec![kept[i].clone()]),
        };
        // Where reads end a few bases beyond, it is not known what is there.
        if let [Call { change: Change::Novel { sequence, .. }, genotype, .. }] = &mut calls[..]
            && sequence.len() < STRUCTURAL
        {
            genotype.filters.insert(Filter::ReadEnds);
        }
        // Two junctions bear each other out, unless both are of the few molecules that artefacts have, or both are hairpins: an
        // inversion has no base twice.
        let apart = calls.len() > 1 && !calls.iter().all(|call| call.turns_back);
        let most = if apart { [JUMPED; 2] } else { [TURNED, JUMPED] };
        let most = if library.folds { most } else { [RARELY_TURNED, NEVER] };
        if calls.iter().all(|call| folded(call, most)) {
            calls.iter_mut().for_each(|call| _ = call.genotype.filters.insert(Filter::FoldBack));
        }
        events.push(Event { class, calls, phase_set: None });
    }
    events.sort_by(|a, b| position(&a.calls[0].change).cmp(&position(&b.calls[0].change)));
    sets(&mut events, &links);
    events
}

/// Whether a loose end is the beginning, or the other side, of what `whole` shows to its end: a junction there, or an insertion.
fn begins(whole: &Change, loose: &Change) -> bool {
    let Change::Novel { end, .. } = loose else { return false };
    match whole {
        Change::Junction { ends, .. } => ends.iter().any(|e| near(e, end, SAME)),
        Change::Allele { chrom, pos, reference, alternative } => {
            *chrom == end.chrom && alternative.len() > reference.len() + SAME && pos.abs_diff(end.pos) <= SAME
        }
        Change::Novel { .. } => false,
    }
}

/// The class of a lone change.
pub(crate) fn class_of(change: &Change) -> Class {
    match change {
        Change::Allele { reference, alternative, .. } => match (reference.len(), alternative.len()) {
            (1, 1) => Class::Snv,
            (r, a) if r == a => Class::Mnv,
            (r, a) if r >= a + STRUCTURAL => Class::Del,
            (r, a) if a >= r + STRUCTURAL => Class::Ins,
            _ => Class::Indel,
        },
        Change::Junction { ends: [a, b], .. } if a.chrom == b.chrom => match (a.side, b.side) {
            (Side::Left, Side::Right) => Class::Del,
            (Side::Right, Side::Left) => Class::Dup,
            _ => Class::Bnd,
        },
        Change::Junction { .. } => Class::Bnd,
        Change::Novel { .. } => Class::Ins,
    }
}

/// Whether two changes are the two sides of one event, and of which class.
fn pair(a: &Change, b: &Change) -> Option<Class> {
    match (a, b) {
        (Change::Novel { end: x, .. }, Change::Novel { end: y, .. }) => {
            (near(x, y, PARTNER) && x.side != y.side).then_some(Class::Ins)
        }
        (Change::Junction { ends: x, .. }, Change::Junction { ends: y, .. }) => {
            let inverted =
                |e: &[Breakend; 2], side| e[0].chrom == e[1].chrom && e[0].side == side && e[1].side == side;
            let both = |l, r| inverted(x, l) && inverted(y, r);
            if (both(Side::Left, Side::Right) || both(Side::Right, Side::Left))
                && near(&x[0], &y[0], PARTNER)
                && near(&x[1], &y[1], PARTNER)
            {
                return Some(Class::Inv);
            }
            // A copy put elsewhere, or a reciprocal translocation: both junctions leave from one place, to two sides.
            x.iter().enumerate().find_map(|(i, p)| {
                y.iter().enumerate().find_map(|(j, q)| {
                    let (other, another) = (&x[1 - i], &y[1 - j]);
                    (near(p, q, PARTNER)
                        && p.side != q.side
                        && other.chrom == another.chrom
                        && other.side != another.side)
                        .then_some(Class::Bnd)
                })
            })
        }
        _ => None,
    }
}

/// Two changes in phase.
type Link = [Change; 2];

/// What was noted, whichever of the contigs that show a change its call is taken from.
fn links(calls: &[Call]) -> Vec<Link> {
    calls.iter().flat_map(|c| c.in_phase.iter().map(|other| [c.change.clone(), other.clone()])).collect()
}

/// Puts events that pass, sorted by position, into sets of those in phase: each set has the position of its first.
fn sets(events: &mut [Event], links: &[Link]) {
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
