//! One pair → what it says of each place that it comes from.
//!
//! A mate is laid by the k-mers that it has, without gaps, and only bases that the alleles differ in count. Its fit round the change is looked at besides: a mate that
//! fits neither allele says nothing.

use genuma_reads::{Mate, Pair, dna};
use genuma_somatic::sought::{KmerHit, Looking};

use crate::anchors::{Anchors, Over};
use crate::place::{Place, WATCHED};
use crate::seen::{MOST_WRONG, Seen, Starts, Wrong};

/// Bases beyond the change that are compared, where alleles of several lengths are.
const COMPARED: i32 = 48;
/// Bases on the other side by which the fit is judged there.
const AROUND: i32 = 32;
/// Of all bases compared so many, and one in so many, may be wrong.
const MAY_DIFFER: u32 = 3;
const FIT: u32 = 32;
/// Beyond a junction one base in so many may differ from the allele that a mate speaks for: one that is out of step by a slip differs sooner.
const CLEAN: u32 = 12;
/// On the kept side one in so many.
const KEPT: u32 = 8;
/// Good bases that a mate must show on either side of a junction.
const SHOWN: u32 = 6;
/// Bases of the kept side that a mate must show to speak of a junction.
const OVERLAP: i32 = 4;
/// Log-odds, in hundredths, from which on a base or a mate says anything.
pub(crate) const SAYS: i32 = 200;
/// Log-odds, in hundredths, from which on a molecule is counted for an allele; where alleles differ in length two good bases have to speak.
pub const CLEAR: i32 = 700;
pub(crate) const CLEAR_LENGTH: i32 = 1400;

/// Lowest quality of bases that say anything.
const FITTING: u8 = 15;

/// What a good base of each quality says: hundredths of the natural logarithm of P(right) / P(this one wrong base).
fn weights() -> [i32; 64] {
    std::array::from_fn(|q| {
        let error = 10f64.powf(-(q as f64) / 10.0).clamp(1e-4, 0.7);
        (100.0 * ((1.0 - error) / (error / 3.0)).ln()).max(0.0) as i32
    })
}

/// Where a mate may lie at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Laid {
    place: u32,
    /// Whether the mate runs with the place.
    along: bool,
    /// Whether `start` is in the left frame.
    is_left: bool,
    /// Position of the mate's first base.
    start: i32,
    /// What the k-mer lies over that says so.
    over: Over,
}

/// What a mate says.
#[derive(Debug, Clone, Copy)]
struct Told {
    place: u32,
    along: bool,
    odds: [i32; 2],
    good: u128,
    wrong: [Wrong; MOST_WRONG],
    /// More than there is room for: it does not speak of errors.
    wrongs: usize,
}

/// What a thread looks with; keeps its memory between pairs.
pub(crate) struct Looker<'a> {
    anchors: &'a Anchors,
    places: &'a [Place],
    weights: [i32; 64],
    looking: Looking,
    hits: Vec<KmerHit>,
    laid: Vec<Laid>,
    told: [Vec<Told>; 2],
    turned: Vec<u8>,
    qualities: Vec<u8>,
    /// Mates that fit neither allele of the place that they come from.
    pub strangers: u64,
}

impl<'a> Looker<'a> {
    /// For these places.
    pub fn new(anchors: &'a Anchors, places: &'a [Place]) -> Looker<'a> {
        Looker {
            anchors,
            places,
            weights: weights(),
            looking: anchors.sought.looking(),
            hits: Vec::new(),
            laid: Vec::new(),
            told: Default::default(),
            turned: Vec::new(),
            qualities: Vec::new(),
            strangers: 0,
        }
    }

    /// Whether a mate carries any k-mer that is looked for.
    pub(crate) fn may_tell(&mut self, pair: &Pair<'_>) -> bool {
        self.hits.clear();
        pair.mates.iter().any(|mate| {
            self.anchors.sought.find(mate.seq, &mut self.looking, &mut self.hits);
            !self.hits.is_empty()
        })
    }

    /// What a pair says, place by place.
    pub fn look(&mut self, pair: &Pair<'_>, sample: u8, mut each: impl FnMut(Seen)) {
        for (i, mate) in pair.mates.iter().enumerate() {
            self.lay(mate.seq);
            self.told[i].clear();
            self.tell(i, *mate);
        }
        let starts = Starts::of(pair);
        let [one, two] = &self.told;
        let (mut one, mut two) = (one.iter().peekable(), two.iter().peekable());
        loop {
            let place = match (one.peek(), two.peek()) {
                (Some(a), Some(b)) => a.place.min(b.place),
                (Some(a), None) => a.place,
                (None, Some(b)) => b.place,
                (None, None) => break,
            };
            let own = [one.next_if(|t| t.place == place), two.next_if(|t| t.place == place)];
            // A mate of a repeat may lie in two ways: the first of them is as good.
            while one.next_if(|t| t.place == place).is_some() {}
            while two.next_if(|t| t.place == place).is_some() {}
            let seen = together(place, sample, starts, own);
            if seen.odds != [0; 2] || seen.good != 0 || seen.torn {
                each(seen);
            }
        }
    }

    /// Finds where a mate may lie.
    fn lay(&mut self, seq: &[u8]) {
        let k = self.anchors.sought.k() as i32;
        self.hits.clear();
        self.laid.clear();
        self.anchors.sought.find(seq, &mut self.looking, &mut self.hits);
        for hit in &self.hits {
            for site in self.anchors.sites(hit.rank) {
                let along = hit.forward == site.forward;
                let at = if along { hit.at as i32 } else { seq.len() as i32 - hit.at as i32 - k };
                for (is_left, there) in [(true, site.left), (false, site.right)] {
                    self.laid.extend(there.map(|there| Laid {
                        place: site.place,
                        along,
                        is_left,
                        start: i32::from(there) - at,
                        over: site.over,
                    }));
                }
            }
        }
        self.laid.sort_unstable();
        self.laid.dedup();
    }

    /// Says what a mate says, where it lies.
    fn tell(&mut self, mate: usize, Mate { seq, qual }: Mate<'_>) {
        if self.laid.iter().any(|laid| !laid.along) {
            self.turned.clear();
            self.turned.extend(seq.iter().rev().map(|&b| dna::complement(b)));
            self.qualities.clear();
            self.qualities.extend(qual.iter().rev());
        }
        for group in self.laid.chunk_by(|a, b| (a.place, a.along) == (b.place, b.along)) {
            let Laid { place: number, along, .. } = group[0];
            let place = &self.places[number as usize];
            let read = if along { (seq, qual) } else { (&self.turned[..], &self.qualities[..]) };
            let read = Read { seq: read.0, qual: read.1, weights: &self.weights };
            let mut told =
                Told { place: number, along, odds: [0; 2], good: 0, wrong: Default::default(), wrongs: 0 };
            // Where the genome has something alike, and where alleles differ in length, an allele's own k-mer must be there.
            let lenient = place.is_substitution() && self.anchors.alone[number as usize];
            let shows = |over: Over| lenient || group.iter().any(|laid| laid.over == over);
            let mut best = [u32::MAX; 2];
            let mut strange = false;
            for laid in group {
                let frame = usize::from(!laid.is_left);
                let Some(weighed) = weigh(place, laid, &read) else { continue };
                if weighed.differing > MAY_DIFFER + weighed.compared / FIT {
                    strange = true;
                } else if weighed.differing < best[frame] {
                    best[frame] = weighed.differing;
                    let borne_out = shows(if weighed.odds > 0 { Over::Changed } else { Over::Unchanged });
                    told.odds[frame] = if borne_out && weighed.clean { weighed.odds } else { 0 };
                    if laid.is_left && place.is_substitution() {
                        watch(place, laid.start, &read, &mut told);
                    }
                }
            }
            if best != [u32::MAX; 2] {
                self.told[mate].push(told);
            } else {
                self.strangers += u64::from(strange);
            }
        }
    }
}

/// A mate along a place.
struct Read<'a> {
    seq: &'a [u8],
    qual: &'a [u8],
    weights: &'a [i32; 64],
}

impl Read<'_> {
    fn quality(&self, i: usize) -> u8 {
        self.qual[i].saturating_sub(33).min(63)
    }

    fn weight(&self, i: usize) -> i32 {
        self.weights[usize::from(self.quality(i))]
    }
}

/// A mate on both alleles in one frame.
struct Weighed {
    /// For the change, in hundredths.
    odds: i32,
    /// Good bases compared, and of them those that differ from the allele that fits better.
    compared: u32,
    differing: u32,
    /// Whether it goes on beyond the junction as the allele that it speaks for does.
    clean: bool,
}

/// Holds a mate against both alleles in one frame; `None` where it does not reach the junction.
fn weigh(place: &Place, laid: &Laid, read: &Read<'_>) -> Option<Weighed> {
    let (reference, cut) = if laid.is_left { place.left.as_ref()? } else { place.right.as_ref()? };
    let substitution = place.is_substitution();
    let with = place.cuts[usize::from(!laid.is_left)] as i32;
    let watched = WATCHED as i32;
    let (from, to) = match (laid.is_left, substitution) {
        (true, true) => (-watched, watched),
        (true, false) => (-AROUND, COMPARED),
        (false, _) => (-COMPARED, AROUND),
    };
    let (first, last) = (laid.start, laid.start + read.seq.len() as i32);
    // On the kept side it must begin, and beyond it go on.
    let reaches = match (laid.is_left, substitution) {
        (true, true) => first < to && last > from,
        (true, false) => first <= -OVERLAP && last > 0,
        (false, _) => first < 0 && last >= OVERLAP,
    };
    if !reaches {
        return None;
    }
    let (mut odds, mut compared, mut differing, mut sides) = (0, 0, [0u32; 2], [[0u32; 3]; 2]);
    for c in from.max(first)..to.min(last) {
        let i = (c - first) as usize;
        let base = read.seq[i];
        let at = |seq: &[u8], cut: i32| usize::try_from(cut + c).ok().and_then(|at| seq.get(at).copied());
        let (Some(new), Some(old)) = (at(&place.alternative, with), at(reference, *cut as i32)) else {
            continue;
        };
        // What is worth nothing does not add up to anything.
        if base == b'N' || read.quality(i) < FITTING {
            continue;
        }
        if new != old {
            odds += read.weight(i) * (i32::from(base == new) - i32::from(base == old));
        }
        compared += 1;
        let differs = [u32::from(base != new), u32::from(base != old)];
        (0..2).for_each(|i| differing[i] += differs[i]);
        let side = &mut sides[usize::from(laid.is_left == (c >= 0))];
        (0..2).for_each(|i| side[i] += differs[i]);
        side[2] += 1;
    }
    let own = usize::from(odds < 0);
    let like = |[kept, beyond]: [[u32; 3]; 2]| {
        let enough = kept[2] >= SHOWN && beyond[2] >= SHOWN;
        enough && kept[own] <= kept[2] / KEPT && beyond[own] <= beyond[2] / CLEAN
    };
    let clean = substitution || like(sides);
    Some(Weighed { odds, compared, differing: differing[0].min(differing[1]), clean })
}

/// Notes the bases round a substitution: those that are the reference's, and those that are not.
fn watch(place: &Place, start: i32, read: &Read<'_>, told: &mut Told) {
    let Some((reference, cut)) = &place.left else { return };
    (told.good, told.wrongs) = (0, 0);
    let watched = WATCHED as i32;
    for c in (-watched).max(start)..watched.min(start + read.seq.len() as i32) {
        let i = (c - start) as usize;
        let Some(&old) = usize::try_from(*cut as i32 + c).ok().and_then(|at| reference.get(at)) else {
            continue;
        };
        let (base, weight, at) = (dna::code(read.seq[i]), read.weight(i), (c + watched) as u8);
        if dna::code(old) > 3 || base > 3 {
            continue;
        }
        if base == dna::code(old) {
            told.good |= u128::from(weight >= CLEAR) << at;
        } else if weight >= SAYS {
            if let Some(wrong) = told.wrong.get_mut(told.wrongs) {
                *wrong = Wrong { at, base, odds: weight as i16 };
            }
            told.wrongs += 1;
        }
    }
}

/// What both mates say together.
fn together(place: u32, sample: u8, starts: Starts, mates: [Option<&Told>; 2]) -> Seen {
    // Read 1 runs with the place, or read 2 against it.
    let first_forward = mates[0].map_or_else(|| mates[1].is_some_and(|t| !t.along), |t| t.along);
    let mut seen = Seen {
        place,
        sample,
        starts,
        first_forward,
        odds: [0; 2],
        torn: false,
        good: 0,
        wrong: Default::default(),
        wrongs: 0,
    };
    let own = || mates.iter().flatten();
    for frame in 0..2 {
        let says = || own().map(|t| t.odds[frame]);
        seen.torn |= says().any(|o| o >= SAYS) && says().any(|o| o <= -SAYS);
        seen.odds[frame] = says().sum::<i32>().clamp(-30_000, 30_000) as i16;
    }
    if seen.torn {
        seen.odds = [0; 2];
    }
    if own().any(|t| t.wrongs > MOST_WRONG) {
        return seen;
    }
    let wrong = |t: &Told| t.wrong.into_iter().take(t.wrongs);
    let mut all: Vec<Wrong> = own().flat_map(|t| wrong(t)).collect();
    all.sort_unstable();
    seen.good = own().fold(0, |good, t| good | t.good);
    // Where the mates contradict each other neither is believed.
    for at in all.chunk_by(|a, b| a.at == b.at) {
        let one = at.iter().all(|w| w.base == at[0].base);
        if !one || seen.good >> at[0].at & 1 == 1 {
            seen.good &= !(1u128 << at[0].at);
        } else if let Some(place) = seen.wrong.get_mut(usize::from(seen.wrongs)) {
            *place = Wrong { odds: at.iter().map(|w| w.odds).sum(), ..at[0] };
            seen.wrongs += 1;
        } else {
            (seen.good, seen.wrongs, seen.wrong) = (0, 0, Default::default());
            return seen;
        }
    }
    seen
}
