//! Reads against haplotypes: which molecules have a change, and how surely.
//!
//! Every mate is laid without gaps on each haplotype of its contig ([`crate::haplotype`]), where its k-mers say, and its
//! bases and their qualities give the odds. A change is weighed by the best haplotype that has it against the best that
//! lacks it. A change of length of a tandem repeat is weighed by the length that the read shows instead. What the mates
//! and the copies of one molecule say is added up.

use crate::change::Change;
use crate::compare::Compared;
use crate::errors::Errors;
use crate::genotype::{DOUBT, Kind, RARE};
use crate::haplotype::Haplotype;
use crate::lay::Recruit;
use crate::molecule::Molecules;
use crate::recruit::Kept;
use crate::repeat::{self, LengthChange};
use crate::slippage::Rate;
use crate::vote::Vote;
use crate::weigh::{Weighed, by_haplotypes, weigh};
use genuma_reads::NORMAL;

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

/// What kind of errors look like finding `f` of a contig.
pub fn kind(contig: &Compared, f: usize) -> Kind {
    let substitutes = |a: &[u8], b: &[u8]| a.len() == b.len();
    match &contig.findings[f].change {
        Change::Allele { reference, alternative, .. } if substitutes(reference, alternative) => Kind::Common,
        Change::Allele { .. } if repeat::in_run(contig, f) => Kind::Common,
        _ => Kind::Rare,
    }
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

    /// Molecules of the normal and of the tumours that reach finding `f`, whether they tell the alleles apart or not. A read of a stretch that a junction
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
                heads[usize::from(self.pairs[pair as usize].sample != NORMAL)].push(self.molecules.of(pair));
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
        kind(self.contig, f)
    }

    /// What the molecules of all samples say of finding `f`, by sample, in the order of their pairs.
    pub fn votes(&self, f: usize) -> Vec<Vec<Vote>> {
        self.votes_and_slips(f).0
    }

    /// The same, and how often slips of a repeat look like the finding: never if it changes no length of one.
    pub(crate) fn votes_and_slips(&self, f: usize) -> (Vec<Vec<Vote>>, Rate) {
        let length = LengthChange::of(self.contig, f, &self.weighed, self.recruits, self.pairs);
        let slips = length.as_ref().map_or(Rate::default(), |change| change.slips(self.errors));
        let doubt = match self.kind(f) {
            Kind::Common => DOUBT,
            Kind::Rare => RARE,
        };
        let mut votes = vec![Vec::new(); self.errors.samples()];
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
        let by_molecule = |(sample, own): (u8, Vec<Vote>)| {
            let damaged = |first: bool| one.map_or(doubt, |to| self.errors.damaged(sample, first, to, doubt));
            let made = [false, true].map(|first| damaged(first).max(slips.rate));
            self.by_molecule(own, doubt, made)
        };
        ((0..).zip(votes).map(by_molecule).collect(), slips)
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
