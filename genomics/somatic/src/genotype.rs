//! Votes of all samples → quality and filters.
//!
//! The tumour's allele fraction is unknown (purity, subclones, copy number), so it is fitted; the alternatives are
//! that all supporting reads are errors, or that the normal has the allele too (germline). Of several tumours of one person each has a fraction
//! of its own, which may be none: their evidence is added up.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::slippage::Rate;
use crate::vote::Vote;

/// Molecules of one sample by allele.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Support {
    /// Molecules with the normal allele.
    pub reference: u32,
    /// Molecules with the tumour allele.
    pub alternative: u32,
    /// Of those with the tumour allele, how many ran with the contig.
    pub forward: u32,
    /// Of those with the tumour allele, how many had read 1 run with the contig (F1R2).
    pub first_forward: u32,
    /// Of those with the normal allele, how many ran with the contig.
    pub reference_forward: u32,
    /// Of those with the normal allele, how many had read 1 run with the contig.
    pub reference_first_forward: u32,
    /// PCR copies: pairs beyond the first of each molecule.
    pub copies: u32,
}

impl Support {
    fn of(votes: &[Vote]) -> Support {
        let count = |wanted: &dyn Fn(&Vote) -> bool| votes.iter().filter(|v| wanted(v)).count() as u32;
        Support {
            reference: count(&Vote::reference),
            alternative: count(&Vote::alternative),
            forward: count(&|v| v.alternative() && v.forward),
            first_forward: count(&|v| v.alternative() && v.first_forward),
            reference_forward: count(&|v| v.reference() && v.forward),
            reference_first_forward: count(&|v| v.reference() && v.first_forward),
            copies: votes.iter().map(|v| u32::from(v.copies)).sum(),
        }
    }

    /// Molecules that speak for either allele.
    pub fn depth(&self) -> u32 {
        self.reference + self.alternative
    }

    /// Share of the tumour allele; 0 where there is no molecule.
    pub fn fraction(&self) -> f64 {
        if self.depth() == 0 { 0.0 } else { f64::from(self.alternative) / f64::from(self.depth()) }
    }
}

/// Why a call is not trusted. The names are those of the VCF's FILTER column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// The quality is under the threshold.
    LowQuality,
    /// Fewer than three distinct molecules.
    FewReads,
    /// The normal has the allele as a germline variant would.
    Germline,
    /// The normal has more of the allele than errors and a little contamination explain.
    TumourInNormal,
    /// Too few reads of the normal to tell.
    NormalDepth,
    /// Support on another strand than the other allele's.
    StrandBias,
    /// Support from one orientation of pairs, unlike the other allele's: damage.
    Orientation,
    /// Support from the ends of reads, unlike the other allele's.
    ReadEnds,
    /// Supporting bases are poor.
    BaseQuality,
    /// The contig fits several places equally well.
    Repeat,
    /// The contig differs from its place in too much to be changed from it.
    Divergent,
    /// The sequence turns back on itself nearby, as single strands do that fold in the library.
    FoldBack,
    /// Other people's normals have it as well.
    Panel,
}

impl Filter {
    /// All of them with the description for the VCF header.
    pub const ALL: [(Filter, &'static str, &'static str); 13] = [
        (Filter::LowQuality, "low_quality", "Quality under the threshold"),
        (Filter::FewReads, "few_reads", "Fewer than three distinct molecules support the tumour allele"),
        (Filter::Germline, "germline", "The normal carries the allele as a germline variant does"),
        (
            Filter::TumourInNormal,
            "tumour_in_normal",
            "The normal carries the allele beyond errors and slight contamination",
        ),
        (Filter::NormalDepth, "normal_depth", "Too few reads of the normal cover the place"),
        (Filter::StrandBias, "strand_bias", "Support from one strand, unlike the other allele's reads"),
        (
            Filter::Orientation,
            "orientation",
            "Support from one orientation of pairs, unlike the other allele's: damage of one strand",
        ),
        (Filter::ReadEnds, "read_ends", "Support from the ends of reads, unlike the other allele's"),
        (
            Filter::BaseQuality,
            "base_quality",
            "Supporting bases have poor qualities, unlike the other allele's",
        ),
        (Filter::Repeat, "repeat", "The tumour sequence fits several places of the genome equally well"),
        (
            Filter::Divergent,
            "divergent",
            "The tumour sequence differs from its place in so much that it comes from elsewhere",
        ),
        (
            Filter::FoldBack,
            "fold_back",
            "The sequence turns back on itself nearby and seldom, as molecules do that fold in the library",
        ),
        (
            Filter::Panel,
            "panel",
            "Normals of other people, in the panel, have it as well: an artefact that recurs, or germline",
        ),
    ];

    /// The name in the FILTER column.
    pub fn name(self) -> &'static str {
        Filter::ALL.iter().find(|f| f.0 == self).map_or("unknown", |f| f.1)
    }
}

/// What one of several tumours says.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Own {
    /// Its molecules.
    #[serde(flatten)]
    pub support: Support,
    /// Whether it has the change.
    pub has: bool,
}

/// Evidence by itself, without what is thought likely before: logarithms to base 10.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Odds {
    /// The tumours having the change, at the shares that fit best, over errors.
    pub tumour: f64,
    /// The normal not having it over having it as a heterozygous germline variant.
    pub normal: f64,
}

/// The verdict on one change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Genotype {
    /// Support in the normal.
    pub normal: Support,
    /// Support in the tumour, in all of them together where there are several.
    pub tumour: Support,
    /// Each tumour by itself, where there are several.
    pub tumours: Vec<Own>,
    /// Phred-scaled probability that the change is not somatic.
    pub quality: f64,
    /// What the molecules say, as the logarithm to base 10 of a ratio of likelihoods.
    pub odds: Odds,
    /// Reasons against it; empty means PASS.
    pub filters: BTreeSet<Filter>,
}

/// Probability that a molecule shows an allele it does not have, whatever its bases say: damage and PCR.
pub(crate) const DOUBT: f64 = 1e-4;

/// The same for what sequencers and PCR hardly make.
pub(crate) const RARE: f64 = 1e-6;

/// What a change is, as far as errors are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Wrong bases, or lengths of repeats, make the same.
    Common,
    /// Bases lost or put in outside repeats, and junctions: what sequencers hardly ever make, and never twice alike.
    Rare,
}

/// What the verdict depends on beside the votes.
#[derive(Debug, Clone, Copy)]
pub struct Params {
    /// What kind of change it is.
    pub kind: Kind,
    /// How often slips of a repeat look like it.
    pub slips: Rate,
    /// Molecules of the normal and of the tumours at the place, whether they tell the alleles apart or not.
    pub molecules: [u32; 2],
    /// Lowest quality that passes.
    pub least_quality: f64,
    /// Places in the genome where an error could have made such a change, per true change: the prior odds.
    pub prior: f64,
    /// Mapping quality of the contig.
    pub mapq: u8,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            kind: Kind::Common,
            slips: Rate::default(),
            molecules: [0; 2],
            least_quality: 8.0,
            prior: PRIOR,
            mapq: 60,
        }
    }
}

/// Prior odds (natural logarithm) of a base not having mutated in the tumour, before the sample tells how many have.
pub(crate) const PRIOR: f64 = 11.0;

/// Prior odds (natural logarithm) of a germline variant that the normal's reads have missed over a somatic one.
const GERMLINE: f64 = 2.4;
/// Prior odds (natural logarithm) of a normal without tumour in it.
const CONTAMINATED: f64 = 2.5;
/// Fewest distinct molecules that a call rests on: two agree by chance once in some thousand bases at 30x.
pub const FEWEST_PAIRS: usize = 3;
/// Fewest of them for a change that sequencers hardly make.
pub const FEWEST_RARE: usize = 2;
/// Fewest molecules of the normal that tell its alleles.
const NORMAL_DEPTH: u32 = 6;
/// Log-likelihood ratio from which the tumour clearly has more of an allele than the normal.
const CLEARLY_MORE: f64 = 2.2;
/// The same where the normal has it in one molecule.
const CLEARLY_MORE_THAN_ONE: f64 = 1.0;
/// Quality from which one molecule of the normal is taken for wrong.
const CLEAR: f64 = 20.0;
/// Log-likelihood ratio from which the tumour allele's reads are clearly unlike the other allele's.
const CLEARLY_UNLIKE: f64 = 8.0;
/// Bases from the end of a read that count as its end.
const END: u16 = 8;
/// Phred quality under which the median supporting base is poor.
const POOR: u8 = 15;
/// Mapping quality under which a contig may lie elsewhere.
const PLACED: u8 = 3;

/// Natural-log likelihood of a sample's votes when a share `f` of its molecules has the allele.
fn log_likelihood(votes: &[Vote], f: f64) -> f64 {
    votes.iter().map(|v| ((1.0 - f) + f * v.log_odds.exp()).ln()).sum()
}

/// The share of molecules with the allele that explains the votes best, up to `most`, and its log-likelihood
/// (expectation–maximisation, which climbs to the one maximum there is).
fn fitted(votes: &[Vote], most: f64) -> f64 {
    let mut f = 0.5 * most;
    for _ in 0..40 {
        let expected: f64 = votes
            .iter()
            .map(|v| {
                let odds = f * v.log_odds.exp();
                odds / ((1.0 - f) + odds)
            })
            .sum();
        f = (expected / votes.len().max(1) as f64).min(most);
    }
    log_likelihood(votes, f).max(log_likelihood(votes, 0.0))
}

/// Standard deviations up to which a rate is believed to be more than it was estimated, and how many are tried for each.
const FARTHEST: usize = 4;
const FINE: usize = 4;

/// The log-likelihood of votes of which none has the allele but by errors: of the rates of slips that the votes may have had, the one that
/// explains most. At a depth of hundreds a rate that is half as high again as was thought would else be an allele.
fn without(votes: &[Vote], doubt: f64, slips: Rate) -> f64 {
    let usual = log_likelihood(votes, doubt);
    if slips.rate == 0.0 {
        return usual;
    }
    let deviating = |step: usize| {
        let deviations = step as f64 / FINE as f64;
        let more = slips.rate * ((slips.spread * deviations).exp() - 1.0);
        log_likelihood(votes, (doubt + more).min(0.5)) - deviations.powi(2) / 2.0
    };
    (1..=FARTHEST * FINE).map(deviating).fold(usual, f64::max)
}

/// Allele fractions at which likelihoods are summed up.
const STEPS: usize = 50;

/// Natural log of the likelihood of votes, averaged over allele fractions that are as likely as `weight` says.
fn averaged(votes: &[Vote], weight: impl Fn(f64) -> f64) -> f64 {
    let points: Vec<(f64, f64)> = (0..STEPS)
        .map(|i| (i as f64 + 0.5) / STEPS as f64)
        .map(|f| (weight(f).ln(), log_likelihood(votes, f)))
        .collect();
    let total = points.iter().map(|p| p.0.exp()).sum::<f64>().ln();
    let highest = points.iter().map(|p| p.0 + p.1).fold(f64::NEG_INFINITY, f64::max);
    highest + points.iter().map(|p| (p.0 + p.1 - highest).exp()).sum::<f64>().ln() - total
}

/// Share of a tumour's genome in which gains and losses may have moved a germline allele's fraction anywhere.
const MOVED: f64 = 0.25;

/// How likely a heterozygous germline allele has the fraction `f` of a tumour's molecules: one half mostly.
fn germline_fraction(f: f64) -> f64 {
    // A bell as wide as that of forty molecules, of area one.
    let bell =
        (-(f - 0.5).powi(2) / (2.0 * 0.08f64.powi(2))).exp() / (0.08 * (2.0 * std::f64::consts::PI).sqrt());
    (1.0 - MOVED) * bell + MOVED
}

/// Log-likelihood ratio of `k` of `n` and `m` of `o` being draws of two shares over one.
fn unlike([k, n]: [u32; 2], [m, o]: [u32; 2]) -> f64 {
    let term = |count: u32, p: f64| if count == 0 { 0.0 } else { f64::from(count) * p.ln() };
    let likelihood = |k: u32, n: u32, p: f64| term(k, p) + term(n - k, 1.0 - p);
    let share = |k: u32, n: u32| f64::from(k) / f64::from(n.max(1));
    let shared = share(k + m, n + o);
    likelihood(k, n, share(k, n)) + likelihood(m, o, share(m, o))
        - likelihood(k, n, shared)
        - likelihood(m, o, shared)
}

/// Whether the votes for the tumour allele have a trait clearly oftener, or clearly more seldom, than those for the other.
fn differs<'a>(votes: impl Iterator<Item = &'a Vote>, trait_of: impl Fn(&Vote) -> bool) -> bool {
    let (mut alternative, mut reference) = ([0u32; 2], [0u32; 2]);
    for vote in votes {
        let counts = match (vote.alternative(), vote.reference()) {
            (true, _) => &mut alternative,
            (_, true) => &mut reference,
            _ => continue,
        };
        counts[0] += u32::from(trait_of(vote));
        counts[1] += 1;
    }
    // As if half of a few more reads of the other allele had it: where there are none, nothing is unlike.
    let reference = [reference[0] + 2, reference[1] + 4];
    let share = |[k, n]: [u32; 2]| f64::from(k) / f64::from(n.max(1));
    // At great depth any difference is clear; only a great one tells of an artefact.
    (share(alternative) - share(reference)).abs() > 0.3 && unlike(alternative, reference) > CLEARLY_UNLIKE
}

/// The votes of some samples, in the order of their pairs.
pub(crate) fn pooled(samples: &[Vec<Vote>]) -> Cow<'_, [Vote]> {
    if let [one] = samples {
        return Cow::Borrowed(one);
    }
    let mut all = samples.concat();
    all.sort_by_key(|vote| vote.pair);
    Cow::Owned(all)
}

/// A sum that does not depend on the order.
fn sum(mut terms: Vec<f64>) -> f64 {
    terms.sort_by(f64::total_cmp);
    terms.into_iter().reduce(|sum, term| sum + term).unwrap_or(0.0)
}

/// Log-likelihood of the votes of a tumour that has the change, at whatever fraction; of one of several, that as likely has not.
fn of_somatic(tumour: &[Vote], several: bool) -> f64 {
    let present = averaged(tumour, |_| 1.0);
    if !several {
        return present;
    }
    let absent = log_likelihood(tumour, 0.0);
    let most = present.max(absent);
    most + (0.5 * ((present - most).exp() + (absent - most).exp())).ln()
}

/// Log-likelihood of the votes of all tumours when the change is somatic, at most as likely each for itself as one of them with the others as frequent as a
/// germline allele: what the founder of all of them had is in half of their molecules, too, so several that look so say no more of a germline variant than one.
fn of_somatic_in_all(tumours: &[Vec<Vote>]) -> f64 {
    let several = tumours.len() > 1;
    let apart = sum(tumours.iter().map(|votes| of_somatic(votes, several)).collect());
    if !several {
        return apart;
    }
    let alike: Vec<f64> = tumours.iter().map(|votes| averaged(votes, germline_fraction)).collect();
    let free: Vec<f64> = tumours.iter().map(|votes| averaged(votes, |_| 1.0)).collect();
    let of = |one: usize| {
        let terms = (0..tumours.len()).map(|other| if other == one { free[other] } else { alike[other] });
        sum(terms.collect())
    };
    let mut founders: Vec<f64> = (0..tumours.len()).map(of).collect();
    founders.sort_by(f64::total_cmp);
    let most = founders.iter().copied().fold(apart, f64::max);
    let founder = founders.iter().map(|of| (of - most).exp()).sum::<f64>() / founders.len() as f64;
    most + (0.5 * ((apart - most).exp() + founder)).ln()
}

/// Log-likelihood of the votes of all tumours when each has the change as frequently as fits best. Each fraction beyond the first costs what a parameter does
/// (half the logarithm of the molecules; Schwarz 1978), and a tumour whose molecules are not worth that has none: errors of several tumours would else be
/// explained one by one.
fn present(tumours: &[Vec<Vote>]) -> f64 {
    if let [one] = tumours {
        return fitted(one, 1.0);
    }
    let molecules: usize = tumours.iter().map(Vec::len).sum();
    let cost = 0.5 * (molecules.max(1) as f64).ln();
    let none = sum(tumours.iter().map(|votes| log_likelihood(votes, 0.0)).collect());
    let mut gains: Vec<f64> =
        tumours.iter().map(|votes| fitted(votes, 1.0) - log_likelihood(votes, 0.0)).collect();
    gains.sort_by(f64::total_cmp);
    let Some(first) = gains.pop() else { return none };
    none + first + sum(gains.into_iter().map(|gain| (gain - cost).max(0.0)).collect())
}

/// Log-likelihood ratio from which one of several tumours has a change that is called: as frequent in its molecules as fits best, against errors. One molecule
/// in thirty has it, one in a hundred not.
const ITS_OWN: f64 = 3.0;

/// What each of several tumours says of a change. That one which speaks most for it has it.
fn each(tumours: &[Vec<Vote>], doubt: f64, slips: Rate) -> Vec<Own> {
    let odds = |votes: &Vec<Vote>| fitted(votes, 1.0) - without(votes, doubt, slips);
    let odds: Vec<f64> = tumours.iter().map(odds).collect();
    let most = odds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let own = |(votes, odds): (&Vec<Vote>, f64)| {
        let support = Support::of(votes);
        Own { support, has: support.alternative > 0 && (odds >= ITS_OWN || odds >= most) }
    };
    tumours.iter().zip(odds).map(own).collect()
}

/// Judges a change from what the molecules of the normal and of each tumour say.
pub fn judge(normal: &[Vote], tumours: &[Vec<Vote>], params: Params) -> Genotype {
    let several = tumours.len() > 1;
    let pooled = pooled(tumours);
    let tumour = &pooled[..];
    let (n, t) = (Support::of(normal), Support::of(tumour));
    let over = |of: &dyn Fn(&[Vote]) -> f64| sum(tumours.iter().map(|votes| of(votes)).collect());
    let present = present(tumours);
    let doubt = match params.kind {
        Kind::Common => DOUBT,
        Kind::Rare => RARE,
    };
    // Slips are as frequent in one tumour as in the other.
    let absent = without(tumour, doubt, params.slips);
    // A tumour of a few molecules says little of its fraction.
    let own = tumours.iter().map(|votes| Support::of(votes)).filter(|own| own.depth() >= NORMAL_DEPTH);
    let most = own.map(|own| own.fraction()).fold(t.fraction(), f64::max);
    let contaminated = 0.02f64.max(most * 0.1);
    let clean = fitted(normal, contaminated);
    // Most normals hold no tumour: that one with the allele does, and has no germline variant, has to be likelier by as much.
    let pure = log_likelihood(normal, 0.0).max(clean - CONTAMINATED);
    // A germline variant has its fraction in the tumour too: a half, or all, where nothing was gained or lost.
    let heterozygous = log_likelihood(normal, 0.5) + over(&|votes| averaged(votes, germline_fraction));
    let homozygous = log_likelihood(normal, 1.0) + over(&|votes| log_likelihood(votes, 1.0));
    let germline = heterozygous.max(homozygous);
    let somatic = pure + of_somatic_in_all(tumours);
    let against_error = present - absent - params.prior;
    // Where few molecules tell the alleles apart, as at a short tandem copy, none with the allele among many says as much: as a
    // germline variant it would be as frequent there as in the tumour.
    let expected =
        f64::from(t.alternative) * f64::from(params.molecules[0]) / f64::from(params.molecules[1].max(1));
    // Not so of a repeat's length: reads that end in it tell neither.
    let expected = if n.alternative == 0 && params.kind == Kind::Rare { expected } else { 0.0 };
    let against_germline = (somatic - germline).max(expected) - GERMLINE;
    let quality = (against_error.min(against_germline) * 10.0 / std::f64::consts::LN_10).clamp(0.0, 999.0);

    let supporting = || tumour.iter().filter(|v| v.alternative());
    let median = |votes: &mut dyn Iterator<Item = &Vote>| {
        let mut qualities: Vec<u8> = votes.map(|v| v.quality).collect();
        qualities.sort_unstable();
        qualities.get(qualities.len() / 2).copied()
    };
    let both = || normal.iter().filter(|v| v.reference()).chain(tumour);
    let mut filters = BTreeSet::new();
    let mut filter = |raise: bool, why: Filter| {
        if raise {
            filters.insert(why);
        }
    };
    filter(quality < params.least_quality, Filter::LowQuality);
    let fewest = match params.kind {
        Kind::Common => FEWEST_PAIRS,
        Kind::Rare => FEWEST_RARE,
    };
    filter((t.alternative as usize) < fewest, Filter::FewReads);
    // One molecule of the normal may be wrong where all else is clear.
    let forgiven = n.alternative == 1 && quality >= CLEAR;
    let more = if forgiven {
        fitted(normal, contaminated.max(1.0 / f64::from(n.depth()))) - CLEARLY_MORE_THAN_ONE
    } else {
        clean - CLEARLY_MORE
    };
    // One allele fraction for the normal and a tumour against one that the normal has by contamination at most. It is enough that one tumour has more.
    let alike_one = |votes: &Vec<Vote>| more + fitted(votes, 1.0) < fitted(&[normal, votes].concat(), 1.0);
    // Of several those that have less than the normal say nothing of that.
    let has_more = |votes: &&Vec<Vote>| !several || Support::of(votes).fraction() > n.fraction();
    let alike = n.alternative > 0 && tumours.iter().filter(has_more).all(alike_one);
    let germline_like = n.alternative >= 3 && n.fraction() >= 0.1;
    filter(germline_like, Filter::Germline);
    filter(alike && !germline_like, Filter::TumourInNormal);
    // As many of the allele expected and not seen say as much as half as many of the other allele seen of a heterozygous one.
    let seen = f64::from(n.depth()).max(expected / std::f64::consts::LN_2);
    filter(seen < f64::from(NORMAL_DEPTH), Filter::NormalDepth);
    filter(differs(both(), |v| v.forward), Filter::StrandBias);
    filter(differs(both(), |v| v.first_forward), Filter::Orientation);
    let at_ends = t.alternative > 0 && supporting().all(|v| v.from_end < END);
    filter(at_ends || differs(both(), |v| v.from_end < END), Filter::ReadEnds);
    let poor = median(&mut supporting()).is_some_and(|q| q < POOR);
    let others_poor = median(&mut both().filter(|v| v.reference())).is_some_and(|q| q < POOR);
    filter(poor && !others_poor, Filter::BaseQuality);
    filter(params.mapq < PLACED, Filter::Repeat);
    let tumours = if several { each(tumours, doubt, params.slips) } else { Vec::new() };
    let odds = Odds {
        tumour: (present - absent) / std::f64::consts::LN_10,
        normal: (log_likelihood(normal, 0.0) - log_likelihood(normal, 0.5)) / std::f64::consts::LN_10,
    };
    Genotype { normal: n, tumour: t, tumours, quality, odds, filters }
}
