//! The shares of reads that the tumour's own changes have, and what they say of how pure it is.

use crate::others::{Beside, LEAST, Others, seen};
use crate::segments::{self, Draws, Place, Segment};
use crate::states::State;

/// A change of the tumour's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Where it lies.
    pub place: Place,
    /// Molecules of the tumour without and with it.
    pub molecules: [u32; 2],
    /// Molecules of the normal, all without it.
    pub normal: u32,
}

/// Shares of reads that are told apart: 0 to 1 in so many steps.
const STEPS: usize = 2 * segments::STEPS;
/// Most changes that are looked at, every other one or less of them if there are more: they tell the purity to a hundredth.
const MOST: usize = 2_000;
/// Shares of the changes that only a part of the tumour's cells have: whichever fits, few being likelier. Shares of the others that are older than copies of their allele, where it has
/// several: whichever fits and is not far from half, as a genome may have been doubled early or late. And of those that are none or are where copies are not known.
const SUBCLONAL: [f64; 5] = [0.01, 0.08, 0.2, 0.4, 0.6];
const OLDER: [f64; 5] = [0.02, 0.25, 0.5, 0.75, 0.98];
const ANY: f64 = 0.03;
/// How likely anything is at least, and how small, or how large its inverse, a product of such becomes before its logarithm is taken.
const LEAST_CHANCE: f64 = 1e-12;
const SMALL: f64 = 1e-250;
/// Shares of the cells, in such parts of that of all.
const PARTS: usize = 8;

/// A change: how likely each share of reads is, the segment where it lies, and how much it counts.
struct Own {
    logs: Vec<f32>,
    /// How likely it is of any share.
    any: f64,
    /// How likely the normal has it, too.
    inherited: f64,
    /// How likely it would have been seen, were it of another person ([`Others::foreign`]).
    seen: [f64; 2],
    segment: Option<usize>,
    weight: f64,
}

/// The tumour's own changes.
pub struct Changes {
    all: Vec<Own>,
    others: Others,
    /// How many of them there are, without those that are reckoned to be inherited.
    pub count: f64,
}

impl Changes {
    /// With where they lie among segments, which are in the order of the genome. Two sides of one place are a root of so many bases apart. The variance of their
    /// shares is `varies` times the largest there is.
    pub fn of(
        changes: &[Change],
        beside: &Beside<'_>,
        segments: &[Segment],
        bases: u32,
        varies: f64,
    ) -> Changes {
        let mut changes: Vec<&Change> =
            changes.iter().filter(|change| change.molecules[1] >= LEAST).collect();
        changes.sort_unstable_by_key(|change| (change.place, change.molecules));
        let sides = |a: &Change, b: &Change| match (a.place, b.place) {
            (Some(a), Some(b)) => a.0 == b.0 && a.1.abs_diff(b.1) <= bases + 1,
            _ => false,
        };
        let weights: Vec<f64> = (0..changes.len())
            .map(|i| {
                let like = |j: Option<usize>| {
                    let other = j.and_then(|j| changes.get(j));
                    f64::from(u8::from(other.is_some_and(|other| sides(changes[i], other))))
                };
                1.0 / (1.0 + like(i.checked_sub(1)) + like(Some(i + 1)))
            })
            .collect();
        let others = Others::of(&changes.iter().map(|change| change.normal).collect::<Vec<_>>(), beside);
        let own = changes
            .iter()
            .zip(&weights)
            .map(|(change, weight)| weight * (1.0 - others.inherited(change.normal)));
        let count = own.sum::<f64>();
        let each = changes.len().div_ceil(MOST).max(1);
        let chosen = || changes.iter().zip(&weights).step_by(each);
        let deepest = chosen().map(|(c, _)| c.molecules[0] + c.molecules[1]).max().unwrap_or(0);
        let draws = Draws::new(deepest as usize, varies);
        let mut all: Vec<Own> = chosen()
            .map(|(change, weight)| {
                let logs = logs_of(change.molecules, &draws);
                let any = logs.iter().map(|log| f64::from(*log).exp()).sum::<f64>() / logs.len() as f64;
                let segment = segment_of(change.place, segments);
                let inherited = others.inherited(change.normal);
                let seen = others.foreign.map(|(share, _)| seen(change.molecules.iter().sum(), share));
                Own { logs, any, inherited, seen, segment, weight: *weight * each as f64 }
            })
            .collect();
        all.sort_by(|a, b| a.weight.total_cmp(&b.weight));
        Changes { all, others, count }
    }

    /// How likely their shares are in a tumour of some purity whose segments are in these states, and what share of them are another person's alleles then; `usual` are
    /// states of those that are in none.
    pub fn log(&self, purity: f64, states: &[&State], usual: &[(&State, f64)]) -> (f64, f64) {
        let of_each: Vec<Kinds> = states.iter().map(|state| kinds(purity, state)).collect();
        // Another person's cells have two copies of everything: where the tumour has few they are more of the reads.
        let deep: f64 = usual.iter().map(|(state, weight)| weight * depth(purity, state)).sum();
        let scarce: Vec<f64> = states.iter().map(|state| deep / depth(purity, state)).collect();
        let mut anywhere = Kinds::default();
        for (state, weight) in usual {
            let weighted =
                |kinds: Vec<(f64, f64)>| kinds.into_iter().map(move |(share, w)| (share, w * weight));
            anywhere
                .iter_mut()
                .zip(kinds(purity, state))
                .for_each(|(all, kinds)| all.extend(weighted(kinds)));
        }
        let mut sums = vec![[[0.0; OLDER.len()]; SUBCLONAL.len()]; self.others.shares.len()];
        // One logarithm of the product of many: of those that count alike.
        for alike in self.all.chunk_by(|a, b| a.weight == b.weight) {
            let weight = alike[0].weight;
            let mut products = vec![[[1.0f64; OLDER.len()]; SUBCLONAL.len()]; sums.len()];
            for own in alike {
                let kinds = own.segment.map_or(&anywhere, |segment| &of_each[segment]);
                let chance = |kinds: &Vec<(f64, f64)>| -> f64 {
                    kinds.iter().map(|(share, weight)| weight * own.at(*share).exp()).sum()
                };
                let [older, later, partly, inherited] = kinds.each_ref().map(chance);
                let scarce = own.segment.map_or(1.0, |segment| scarce[segment]);
                let foreign = self.others.foreign.iter().zip(own.seen).filter(|(_, seen)| *seen > 0.0);
                let foreign =
                    foreign.map(|((share, weight), seen)| weight * seen * own.at(share * scarce).exp());
                let foreign: f64 = foreign.sum();
                for ((products, sums), (share, _)) in
                    products.iter_mut().zip(&mut sums).zip(&self.others.shares)
                {
                    let other = share * foreign + (1.0 - share) * own.inherited * inherited + LEAST_CHANCE;
                    let own_share = (1.0 - share) * (1.0 - own.inherited);
                    for ((products, sums), part) in products.iter_mut().zip(sums).zip(SUBCLONAL) {
                        for ((product, sum), old) in products.iter_mut().zip(sums).zip(OLDER) {
                            let clonal = old * older + (1.0 - old) * later;
                            let chance = (1.0 - part) * clonal + part * partly;
                            *product *= own_share * ((1.0 - ANY) * chance + ANY * own.any) + other;
                            if !(SMALL..1.0 / SMALL).contains(product) {
                                *sum += weight * product.ln();
                                *product = 1.0;
                            }
                        }
                    }
                }
            }
            let each = sums.iter_mut().flatten().flatten().zip(products.iter().flatten().flatten());
            each.for_each(|(sum, product)| *sum += weight * product.ln());
        }
        let with_prior = |sums: [f64; OLDER.len()]| {
            // As a Beta(3, 3) has it: half is the likeliest, and few genomes have no such change or nothing else.
            let prior = |old: f64| 2.0 * (4.0 * old * (1.0 - old)).ln();
            sums.into_iter().zip(OLDER).map(|(sum, old)| sum + prior(old)).fold(f64::NEG_INFINITY, f64::max)
        };
        // As a Beta(1, 4) has it: a fifth on average. Where few changes leave it open they are not taken for those of a part of a purer tumour.
        let fewer = |part: f64| 3.0 * (1.0 - part).ln();
        let of_parts = |sums: [[f64; OLDER.len()]; SUBCLONAL.len()]| {
            let all = sums.into_iter().zip(SUBCLONAL);
            all.map(|(sums, part)| with_prior(sums) + fewer(part)).fold(f64::NEG_INFINITY, f64::max)
        };
        let all = sums.into_iter().zip(&self.others.shares);
        all.map(|(sums, (share, prior))| (of_parts(sums) + prior, *share))
            .fold((f64::NEG_INFINITY, 0.0), |a, b| if b.0 > a.0 { b } else { a })
    }
}

impl Own {
    /// Log-likelihood of a share.
    fn at(&self, share: f64) -> f64 {
        let at = share.clamp(0.0, 1.0) * STEPS as f64;
        let from = (at as usize).min(STEPS - 1);
        let part = at - from as f64;
        f64::from(self.logs[from]) * (1.0 - part) + f64::from(self.logs[from + 1]) * part
    }
}

/// Log-likelihoods of shares of reads, given that the change was seen.
fn logs_of([without, with]: [u32; 2], draws: &Draws) -> Vec<f32> {
    let n = (without + with) as usize;
    (0..=STEPS)
        .map(|i| {
            let missed: f64 = (0..(LEAST as usize).min(n)).map(|k| draws.log(i, k, n).exp()).sum();
            (draws.log(i, with as usize, n) - (1.0 - missed).max(1e-3).ln()) as f32
        })
        .collect()
}

fn segment_of(place: Place, segments: &[Segment]) -> Option<usize> {
    let (contig, at) = place?;
    let behind = segments.partition_point(|segment| (segment.place.0, segment.place.1) <= (contig, at));
    let i = behind.checked_sub(1)?;
    (segments[i].place.0 == contig).then_some(i)
}

/// Shares of reads that changes may have, and how likely each is: of those older than copies of their allele, of later ones, of those of some of the cells, and of
/// inherited alleles.
type Kinds = [Vec<(f64, f64)>; 4];

/// How many copies there are in all cells, healthy ones among them, on average.
fn depth(purity: f64, state: &State) -> f64 {
    (purity * state.copies.iter().sum::<f64>() + 2.0 * (1.0 - purity)).max(1e-9)
}

/// Those in a state: in all copies of an allele where they are older than these, or in one; in one of some of the cells; and of inherited ones in all copies and in
/// healthy cells.
fn kinds(purity: f64, state: &State) -> Kinds {
    let [a, b] = state.copies;
    let depth = depth(purity, state);
    let each = purity / depth;
    let with = |copies: f64, weight: f64| (each * copies, weight);
    // Of two alleles with several copies each has half of what is older. Some are of a time between.
    let [older, later] = if a < 1.5 {
        [(); 2].map(|()| vec![with(a.max(1.0), 1.0)])
    } else {
        let older = if b >= 1.5 { vec![with(a, 0.5), with(b, 0.5)] } else { vec![with(a, 1.0)] };
        [older, vec![with(1.0, 0.9), with(a / 2.0 + 0.5, 0.1)]]
    };
    let parts = (1..=PARTS).map(|i| (each * i as f64 / (PARTS as f64 + 0.7), 1.0 / PARTS as f64)).collect();
    let inherited = [a, b].map(|copies| ((purity * copies + 1.0 - purity) / depth, 0.5)).to_vec();
    [older, later, parts, inherited]
}
