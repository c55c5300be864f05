//! Reads against haplotypes: which molecules have a change, and how surely.
//!
//! Every mate is laid without gaps on each haplotype of its contig ([`crate::haplotype`]), where its k-mers say, and its
//! bases and their qualities give the odds. A change is weighed by the best haplotype that has it against the best that
//! lacks it. A change of length of a tandem repeat is weighed by the length that the read shows instead. What the mates
//! and the copies of one molecule say is added up.

use crate::change::Change;
use crate::compare::Compared;
use crate::errors::{Errors, STRANGER};
use crate::genotype::{DOUBT, Kind, RARE};
use crate::haplotype::Haplotype;
use crate::label::Read;
use crate::lay::Recruit;
use crate::molecule::Molecules;
use crate::recruit::Kept;
use crate::repeat::{self, LengthChange};
use crate::slippage::Rate;
use genuma_reads::{NORMAL, TUMOUR};

/// A molecule must favour an allele by this factor (natural logarithm) to be counted for it.
const CLEAR: f64 = 3.0;

/// How one molecule sees a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Vote {
    /// The pair that stands for the molecule: an index among the recruited ones.
    pub pair: u32,
    /// Natural log of P(reads | tumour allele) / P(reads | normal allele).
    pub log_odds: f64,
    /// Whether the mate that says most runs with the contig.
    pub forward: bool,
    /// Whether read 1 of the pair runs with the contig, or read 2 against it.
    pub first_forward: bool,
    /// Distance of the change from the nearer end of that mate.
    pub from_end: u16,
    /// Phred quality of the bases that make the difference (median of them).
    pub quality: u8,
    /// Pairs of the molecule beyond the first.
    pub copies: u16,
}

impl Vote {
    /// For the tumour allele.
    pub fn alternative(&self) -> bool {
        self.log_odds > CLEAR
    }

    /// For the normal allele.
    pub fn reference(&self) -> bool {
        self.log_odds < -CLEAR
    }
}

/// A mate on the haplotypes of its contig.
#[derive(Debug, Clone)]
pub struct Weighed {
    /// Which of the contig's recruits.
    pub recruit: usize,
    /// The read along the contig.
    pub read: Read,
    /// Log-likelihood on each haplotype.
    likelihood: Vec<f64>,
    /// Where it begins, in contig coordinates, on the best haplotype that has everything and on the best of all.
    at: [i32; 2],
}

impl Weighed {
    /// Contig position of the first base on the haplotype that fits best.
    pub fn at(&self) -> i32 {
        self.at[1]
    }
}

/// Log-likelihood of the first so many bases of a read if all are right, for each number of them.
fn if_right(read: &Read, errors: &Errors) -> Vec<f64> {
    let mut sum = 0.0;
    let after = |&quality: &u8| {
        sum += errors.right[usize::from(quality.min(63))];
        sum
    };
    std::iter::once(0.0).chain(read.qual.iter().map(after)).collect()
}

/// A read laid without gaps on a haplotype from `at` on: its log-likelihood and its number of disagreeing good bases.
/// Bases beyond the haplotype count as guessed. `right` is what [`if_right`] says of the read.
fn likelihood(
    read: &Read,
    right: &[f64],
    at: i32,
    haplotype: &[u8],
    errors: &Errors,
    damage: &[[f64; 4]; 4],
) -> (f64, u32) {
    const BLOCK: usize = 32;
    let from = ((-at).max(0) as usize).min(read.seq.len());
    let to = read.seq.len().min((haplotype.len() as i32 - at).max(0) as usize).max(from);
    let mut sum = (read.seq.len() - (to - from)) as f64 * 0.25f64.ln() + right[to] - right[from];
    let mut differing = 0;
    let beside = haplotype.get((at + from as i32).max(0) as usize..).unwrap_or_default();
    let beside = &beside[..beside.len().min(to - from)];
    let blocks = read.seq[from..to].chunks(BLOCK).zip(beside.chunks(BLOCK));
    for (start, (bases, beside)) in (from..).step_by(BLOCK).zip(blocks).filter(|(_, (a, b))| a != b) {
        for ((i, &b), &h) in (start..).zip(bases).zip(beside).filter(|((_, b), h)| b != h) {
            let quality = read.qual[i];
            sum -= errors.right[usize::from(quality.min(63))];
            if b != b'N' && h != b'N' {
                sum += errors.wrong(quality, damage, h, b);
                differing += u32::from(quality >= 15);
            }
        }
    }
    (sum, differing)
}

/// Weighs the recruited reads of a contig; those that fit none of the haplotypes are left out.
pub fn weigh(
    haplotypes: &[Haplotype],
    recruits: &[Recruit],
    pairs: &[Kept],
    errors: &Errors,
) -> Vec<Weighed> {
    let weigh_one = |(r, recruit): (usize, &Recruit)| {
        let read = recruit.oriented(pairs);
        let right = if_right(&read, errors);
        let damage = errors.damage_of(pairs[recruit.pair as usize].sample, recruit.first_forward());
        let (mut best, mut differing) = (f64::NEG_INFINITY, u32::MAX);
        let mut at = [recruit.at[0]; 2];
        let mut tried: Vec<i32> = Vec::new();
        let mut on = |(h, haplotype): (usize, &Haplotype)| {
            let mut here = f64::NEG_INFINITY;
            tried.clear();
            for &shift in &haplotype.shifts {
                for offset in recruit.at {
                    let start = offset + shift;
                    if tried.contains(&start) {
                        continue;
                    }
                    tried.push(start);
                    let (sum, wrong) = likelihood(&read, &right, start, &haplotype.seq, errors, damage);
                    if sum > here {
                        here = sum;
                        if h == 0 {
                            at[0] = offset;
                        }
                    }
                    if sum > best {
                        (best, differing, at[1]) = (sum, wrong, offset);
                    }
                }
            }
            here
        };
        let likelihood = haplotypes.iter().enumerate().map(&mut on).collect();
        let stranger = f64::from(differing) > STRANGER * read.seq.len() as f64;
        (!stranger).then_some(Weighed { recruit: r, read, likelihood, at })
    };
    recruits.iter().enumerate().filter_map(weigh_one).collect()
}

/// Log-likelihood by which a read fits where it lies better than elsewhere.
const ELSEWHERE: f64 = 3.0;

/// Log-odds of a mate for finding `f` by the haplotypes that have it and those that lack it. A read that clearly comes from one that does
/// not reach the place, as from beyond another junction of the contig, says nothing: `None`.
fn by_haplotypes(weighed: &Weighed, haplotypes: &[Haplotype], f: usize) -> Option<f64> {
    let best = |has: Option<bool>| {
        let own = haplotypes.iter().zip(&weighed.likelihood).filter(|(h, _)| h.has[f] == has);
        own.map(|(_, l)| *l).fold(f64::NEG_INFINITY, f64::max)
    };
    let (with, without) = (best(Some(true)), best(Some(false)));
    let tells = with.is_finite() && without.is_finite() && best(None) < with.max(without) + ELSEWHERE;
    tells.then_some(with - without)
}

/// All that speaks for or against the changes of one contig.
#[derive(Debug)]
pub struct Evidence<'a> {
    contig: &'a Compared,
    recruits: &'a [Recruit],
    pairs: &'a [Kept],
    errors: &'a Errors,
    haplotypes: Vec<Haplotype>,
    weighed: Vec<Weighed>,
    molecules: Molecules,
}

impl<'a> Evidence<'a> {
    /// Weighs the reads laid on a contig by `haplotypes`, the contig itself first.
    pub fn of(
        contig: &'a Compared,
        haplotypes: Vec<Haplotype>,
        recruits: &'a [Recruit],
        pairs: &'a [Kept],
        errors: &'a Errors,
    ) -> Evidence<'a> {
        let weighed = weigh(&haplotypes, recruits, pairs, errors);
        let mut members: Vec<u32> = recruits.iter().map(|r| r.pair).collect();
        members.dedup();
        let molecules = Molecules::among(&members, pairs);
        Evidence { contig, recruits, pairs, errors, haplotypes, weighed, molecules }
    }

    /// The molecules of the contig's pairs.
    pub fn molecules(&self) -> &Molecules {
        &self.molecules
    }

    /// What one mate says of finding `f`; 0 when it says nothing.
    fn log_odds(&self, weighed: &Weighed, f: usize, length: Option<&LengthChange<'_>>) -> f64 {
        match length {
            Some(change) => change.log_odds(weighed, &self.recruits[weighed.recruit].at, self.errors),
            None => by_haplotypes(weighed, &self.haplotypes, f).unwrap_or(0.0),
        }
    }

    /// A mate's vote on finding `f`; `None` when it does not reach the change.
    fn vote(&self, weighed: &Weighed, f: usize, log_odds: f64) -> Option<Vote> {
        let (at, recruit) = (&self.contig.findings[f].at, &self.recruits[weighed.recruit]);
        // A read that favours the tumour's allele lies where the contig has it.
        let begin = weighed.at[usize::from(log_odds < 0.0)];
        let len = weighed.read.seq.len() as i32;
        let reach = |edge: usize| (edge as i32 - begin).min(len - (edge as i32 - begin));
        let from_end = u16::try_from(reach(at.start).max(reach(at.end))).ok()?;
        let start = (at.start as i32 - begin).clamp(0, len - 1) as usize;
        let end = (at.end as i32 - begin).clamp(start as i32 + 1, len) as usize;
        let mut around: Vec<u8> = weighed.read.qual[start..end].to_vec();
        around.sort_unstable();
        Some(Vote {
            pair: recruit.pair,
            log_odds,
            forward: recruit.forward,
            first_forward: recruit.first_forward(),
            from_end,
            quality: around[around.len() / 2],
            copies: 0,
        })
    }

    /// Molecules of both samples that reach finding `f`, whether they tell the alleles apart or not. A read of a stretch that a junction
    /// has doubled may lie in either copy, and reaches the junction in one.
    pub fn molecules_at(&self, f: usize) -> [u32; 2] {
        let finding = &self.contig.findings[f];
        let at = &finding.at;
        let joined = matches!(finding.change, Change::Junction { .. });
        let mut heads: [Vec<u32>; 2] = Default::default();
        for weighed in &self.weighed {
            let here = by_haplotypes(weighed, &self.haplotypes, f).is_some();
            let reaches = |begin: &i32| {
                *begin <= at.start as i32 && *begin + weighed.read.seq.len() as i32 >= at.end as i32
            };
            let either = joined && self.recruits[weighed.recruit].at.iter().any(reaches);
            if here && (either || reaches(&weighed.at())) {
                let pair = self.recruits[weighed.recruit].pair;
                heads[usize::from(self.pairs[pair as usize].sample)].push(self.molecules.of(pair));
            }
        }
        heads.map(|mut own| {
            own.sort_unstable();
            own.dedup();
            own.len() as u32
        })
    }

    /// What kind of errors look like finding `f`.
    pub fn kind(&self, f: usize) -> Kind {
        let substitutes = |a: &[u8], b: &[u8]| a.len() == b.len();
        match &self.contig.findings[f].change {
            Change::Allele { reference, alternative, .. } if substitutes(reference, alternative) => {
                Kind::Common
            }
            Change::Allele { .. } if repeat::in_run(self.contig, f) => Kind::Common,
            _ => Kind::Rare,
        }
    }

    /// What the molecules of both samples say of finding `f`, by sample, in the order of their pairs.
    pub fn votes(&self, f: usize) -> [Vec<Vote>; 2] {
        self.votes_and_slips(f).0
    }

    /// The same, and how often slips of a repeat look like the finding: never if it changes no length of one.
    pub fn votes_and_slips(&self, f: usize) -> ([Vec<Vote>; 2], Rate) {
        let length = LengthChange::of(self.contig, f, &self.weighed, self.recruits, self.pairs);
        let slips = length.as_ref().map_or(Rate::default(), |change| change.slips(self.errors));
        let doubt = match self.kind(f) {
            Kind::Common => DOUBT,
            Kind::Rare => RARE,
        };
        let mut votes: [Vec<Vote>; 2] = Default::default();
        for weighed in &self.weighed {
            let log_odds = self.log_odds(weighed, f, length.as_ref());
            if log_odds != 0.0 {
                let sample = self.pairs[self.recruits[weighed.recruit].pair as usize].sample;
                votes[usize::from(sample)].extend(self.vote(weighed, f, log_odds));
            }
        }
        let finding = &self.contig.findings[f];
        // What a damaged base looks like, and a repeat that slipped while it was copied, both mates and all copies show.
        let one = (finding.at.len() == 1 && finding.right_shift == 0)
            .then(|| [finding.left_normal[finding.at.start], self.contig.seq[finding.at.start]]);
        let [normal, tumour] = votes;
        let votes = [(NORMAL, normal), (TUMOUR, tumour)].map(|(sample, own)| {
            let damaged = |first: bool| one.map_or(doubt, |to| self.errors.damaged(sample, first, to, doubt));
            let made = [false, true].map(|first| damaged(first).max(slips.rate));
            self.by_molecule(own, doubt, made)
        });
        (votes, slips)
    }

    /// Adds up the votes of mates and copies. `doubt` is how often a molecule lacks an allele that it has, `made` how often it shows
    /// the tumour's without having it, by orientation.
    fn by_molecule(&self, mut votes: Vec<Vote>, doubt: f64, made: [f64; 2]) -> Vec<Vote> {
        let bounds = made.map(|made| (doubt.ln(), -made.ln()));
        let bounded = |log_odds: f64, first: bool| {
            let (least, most) = bounds[usize::from(first)];
            log_odds.clamp(least, most)
        };
        votes.sort_by_key(|vote| (self.molecules.of(vote.pair), vote.pair));
        let same = |a: &Vote, b: &Vote| self.molecules.of(a.pair) == self.molecules.of(b.pair);
        let sum = |votes: &[Vote]| {
            let telling =
                votes.iter().fold(&votes[0], |a, b| if b.log_odds.abs() > a.log_odds.abs() { b } else { a });
            // A molecule is never surer than that it says so for reasons its bases do not show.
            let log_odds: f64 = votes.iter().map(|v| bounded(v.log_odds, v.first_forward)).sum();
            let pairs = votes.chunk_by(|a, b| a.pair == b.pair).count();
            let pair = self.molecules.of(telling.pair);
            let log_odds = bounded(log_odds, telling.first_forward);
            Vote { pair, log_odds, copies: (pairs - 1) as u16, ..*telling }
        };
        votes.chunk_by(same).map(sum).collect()
    }
}
