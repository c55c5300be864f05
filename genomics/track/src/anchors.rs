//! The k-mers by which reads are known to come from a place.
//!
//! Those of the reference stand once in it, those with the change nowhere, and then only where the reference's own k-mer of the same bases beside the
//! change stands once: what would be another place's read with a wrong base is not taken for this one's, and both alleles are found alike. Every k-mer over
//! the change is taken and one in four beside it, so that unknown variants near the change hide no molecule.

use std::collections::HashSet;

use genuma_kmers::encode::kmers;
use genuma_somatic::sought::Sought;

use crate::place::Place;

/// Bases beside a change from which k-mers are taken.
const REACH: usize = 120;
/// One k-mer in so many is taken that does not touch the change.
const STRIDE: i32 = 4;
/// Fewest k-mers of the reference that stand once in it, for a place to be known.
const FEWEST: usize = 3;

/// A k-mer of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Anchor {
    kmer: u64,
    /// Whether the canonical strand is that of the place.
    forward: bool,
    /// Where it begins in the left frame, whose first base behind the cut is 0; absent where it says nothing of that.
    left: Option<i16>,
    /// The same of the right frame, whose first base behind the junction is 0.
    right: Option<i16>,
    /// What it lies over.
    over: Over,
    /// Another k-mer that must stand once in the reference; 0 for none.
    beside: u64,
}

/// What a k-mer lies over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Over {
    /// What stands beside the change.
    Beside,
    /// The reference's allele.
    Unchanged,
    /// The change: the reference has no such k-mer.
    Changed,
}

/// Where a k-mer that is looked for stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    rank: u32,
    /// Index of the place.
    pub place: u32,
    /// Whether the canonical strand is that of the place.
    pub forward: bool,
    /// Where it begins in the left frame.
    pub left: Option<i16>,
    /// Where it begins in the right frame.
    pub right: Option<i16>,
    /// What it lies over.
    pub over: Over,
}

/// All k-mers that are looked for.
#[derive(Debug)]
pub struct Anchors {
    /// To look with.
    pub sought: Sought,
    /// By rank.
    sites: Vec<Site>,
    /// Of each rank the first of its sites, and one more.
    starts: Vec<u32>,
    /// For each place whether it can be told from the rest of the genome.
    pub known: Vec<bool>,
    /// For each place whether nothing in the genome is like it: all of its k-mers stand once.
    pub alone: Vec<bool>,
}

/// Every k-mer of a place that may be taken.
fn candidates(place: &Place, k: u32) -> Vec<Anchor> {
    let size = k as usize;
    let mut all = Vec::new();
    let gap = place.gap.unwrap_or(0) as i32;
    let near = |at: i32, last: i32| {
        let touches = at <= gap && last >= 0;
        touches || (at.rem_euclid(STRIDE) == 0 && at >= -(REACH as i32) && last <= REACH as i32)
    };
    let mut reference = |(seq, cut): &(Vec<u8>, usize), is_left: bool| {
        for (start, kmer) in kmers(seq, k).filter(|(_, kmer)| kmer.forward != kmer.reverse) {
            let at = start as i32 - *cut as i32;
            if !near(at, at + size as i32) {
                continue;
            }
            let (left, right) = match (place.gap, is_left) {
                // What lies beyond the change is of the other frame.
                (Some(gap), true) => {
                    let (behind, substitution) = (at - gap as i32, place.is_substitution());
                    let left = (at < gap.max(1) as i32 || substitution).then_some(at);
                    (left, (at + size as i32 > 0 && !substitution).then_some(behind))
                }
                (_, true) => (Some(at), None),
                (_, false) => (None, Some(at)),
            };
            let [left, right] = [left, right].map(|at| at.map(|at| at as i16));
            let lies = at < gap && at + size as i32 > 0;
            let over = if lies { Over::Unchanged } else { Over::Beside };
            let (kmer, forward) = (kmer.canonical(), kmer.forward < kmer.reverse);
            all.push(Anchor { kmer, forward, left, right, over, beside: 0 });
        }
    };
    if let Some(left) = &place.left {
        reference(left, true);
    }
    // Where one read sees both sides, the left one's sequence has them all.
    if let (Some(right), None) = (&place.right, place.gap) {
        reference(right, false);
    }
    let [from, to] = place.cuts.map(|cut| cut as i32);
    let kmer_at = |side: &Option<(Vec<u8>, usize)>, at: i32| {
        let (seq, cut) = side.as_ref()?;
        let start = usize::try_from(*cut as i32 + at).ok()?;
        let kmer = kmers(seq.get(start..start + size)?, k).next()?.1;
        Some(kmer.canonical())
    };
    for (start, kmer) in kmers(&place.alternative, k).filter(|(_, kmer)| kmer.forward != kmer.reverse) {
        let start = start as i32;
        let end = start + size as i32;
        // One inside of long novel sequence in four.
        let inside = start >= from && end <= to && start.rem_euclid(STRIDE) != 0;
        if end <= from || start >= to.max(from) && !(from == to && start < from) || inside {
            continue;
        }
        let (before, behind) = ((from - start).max(0), (end - to).max(0));
        let beside = if before >= behind {
            kmer_at(&place.left, start - from)
        } else {
            kmer_at(&place.right, start - to)
        };
        let inside = start >= from && end <= to;
        let beside = if inside { Some(0) } else { beside };
        let Some(beside) = beside else { continue };
        let substitution = place.is_substitution();
        all.push(Anchor {
            kmer: kmer.canonical(),
            forward: kmer.forward < kmer.reverse,
            left: place.left.as_ref().map(|_| (start - from) as i16),
            right: place.right.as_ref().filter(|_| !substitution).map(|_| (start - to) as i16),
            over: Over::Changed,
            beside,
        });
    }
    // Beside a repeat some k-mers over the change are the reference's own of this place: they say nothing.
    let both = [&place.left, &place.right];
    let own: HashSet<u64> = both
        .into_iter()
        .flatten()
        .flat_map(|(seq, _)| kmers(seq, k))
        .map(|(_, kmer)| kmer.canonical())
        .collect();
    all.retain(|anchor| anchor.over != Over::Changed || !own.contains(&anchor.kmer));
    all
}

/// The distinct k-mers of all places of which one must know how often they stand in the reference, ascending.
pub fn asked(places: &[Place], k: u32) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::new();
    for place in places {
        all.extend(candidates(place, k).iter().flat_map(|a| [a.kmer, a.beside]).filter(|&kmer| kmer != 0));
    }
    all.sort_unstable();
    all.dedup();
    all
}

impl Anchors {
    /// Takes those that tell the places. `asked` are k-mers, ascending, and `copies` how often each stands in the reference.
    pub fn of(places: &[Place], k: u32, asked: &[u64], copies: &[u8]) -> Anchors {
        let copies = |kmer: u64| asked.binary_search(&kmer).map_or(0, |at| copies[at]);
        let mut entries: Vec<(u64, Site)> = Vec::new();
        let (mut known, mut alone) = (Vec::with_capacity(places.len()), Vec::with_capacity(places.len()));
        for (number, place) in (0..).zip(places) {
            let all = candidates(place, k);
            let fits = |a: &&Anchor| match a.over == Over::Changed {
                true => copies(a.kmer) == 0 && (a.beside == 0 || copies(a.beside) == 1),
                false => copies(a.kmer) == 1,
            };
            let taken: Vec<&Anchor> = all.iter().filter(fits).collect();
            let changed = taken.iter().filter(|a| a.over == Over::Changed).count();
            // A change that reads of another place show as well is that place's.
            let new = all.iter().filter(|a| a.over == Over::Changed && copies(a.kmer) == 0).count();
            let over = all.iter().filter(|a| a.over == Over::Changed).count();
            let tells = changed > 0 && new == over && taken.len() - changed >= FEWEST;
            known.push(tells);
            alone.push(tells && taken.len() == all.len());
            if tells {
                let site = |a: &&Anchor| Site {
                    rank: 0,
                    place: number,
                    forward: a.forward,
                    left: a.left,
                    right: a.right,
                    over: a.over,
                };
                entries.extend(taken.iter().map(|a| (a.kmer, site(a))));
            }
        }
        entries.sort_unstable();
        entries.dedup();
        let (mut kmers, mut sites, mut starts) = (Vec::new(), Vec::with_capacity(entries.len()), Vec::new());
        for (kmer, site) in entries {
            if kmers.last() != Some(&kmer) {
                kmers.push(kmer);
                starts.push(sites.len() as u32);
            }
            sites.push(Site { rank: kmers.len() as u32 - 1, ..site });
        }
        starts.push(sites.len() as u32);
        Anchors { sought: Sought::new(k, kmers.into_iter()), sites, starts, known, alone }
    }

    /// Where a k-mer stands.
    pub fn sites(&self, rank: u32) -> &[Site] {
        &self.sites[self.starts[rank as usize] as usize..self.starts[rank as usize + 1] as usize]
    }
}
