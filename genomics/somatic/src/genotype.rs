//! Votes of both samples → quality and filters.
//!
//! The tumour's allele fraction is unknown (purity, subclones, copy number), so it is fitted; the alternatives are
//! that all supporting reads are errors, or that the normal has the allele too (germline).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::evidence::Vote;

/// Reads of one sample by allele, one a pair, PCR copies left out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Support {
    /// Pairs for the normal allele.
    pub reference: u32,
    /// Pairs for the tumour allele.
    pub alternative: u32,
    /// Of those for the tumour allele, how many ran with the contig.
    pub forward: u32,
    /// PCR copies that were left out.
    pub copies: u32,
}

impl Support {
    /// Pairs that speak for either allele.
    pub fn depth(&self) -> u32 {
        self.reference + self.alternative
    }

    /// Share of the tumour allele; 0 where there is no read.
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
    /// Fewer than three distinct pairs.
    FewReads,
    /// The normal has the allele as a germline variant would.
    Germline,
    /// The normal has more of the allele than errors and a little contamination explain.
    TumourInNormal,
    /// Too few reads of the normal to tell.
    NormalDepth,
    /// All support on one strand, against the odds.
    StrandBias,
    /// All support from the ends of reads.
    ReadEnds,
    /// Supporting bases are poor.
    BaseQuality,
    /// The contig fits several places equally well.
    Repeat,
}

impl Filter {
    /// All of them with the description for the VCF header.
    pub const ALL: [(Filter, &'static str, &'static str); 9] = [
        (Filter::LowQuality, "low_quality", "Quality under the threshold"),
        (Filter::FewReads, "few_reads", "Fewer than three distinct read pairs support the tumour allele"),
        (Filter::Germline, "germline", "The normal carries the allele as a germline variant does"),
        (
            Filter::TumourInNormal,
            "tumour_in_normal",
            "The normal carries the allele beyond errors and slight contamination",
        ),
        (Filter::NormalDepth, "normal_depth", "Too few reads of the normal cover the place"),
        (Filter::StrandBias, "strand_bias", "Support from one strand only, against the odds"),
        (Filter::ReadEnds, "read_ends", "Support from the ends of reads only"),
        (Filter::BaseQuality, "base_quality", "Supporting bases have poor qualities"),
        (Filter::Repeat, "repeat", "The tumour sequence fits several places of the genome equally well"),
    ];

    /// The name in the FILTER column.
    pub fn name(self) -> &'static str {
        Filter::ALL.iter().find(|f| f.0 == self).map_or("unknown", |f| f.1)
    }
}

/// The verdict on one change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Genotype {
    /// Support in the normal.
    pub normal: Support,
    /// Support in the tumour.
    pub tumour: Support,
    /// Phred-scaled probability that the change is not somatic.
    pub quality: f64,
    /// Reasons against it; empty means PASS.
    pub filters: BTreeSet<Filter>,
}

/// What the verdict depends on beside the votes.
#[derive(Debug, Clone, Copy)]
pub struct Params {
    /// Lowest quality that passes.
    pub least_quality: f64,
    /// Places in the genome where an error could have made such a change, per true change: the prior odds.
    pub prior: f64,
    /// Probability that a read shows an allele it does not have, whatever its bases say.
    pub doubt: f64,
    /// Mapping quality of the contig.
    pub mapq: u8,
}

impl Default for Params {
    fn default() -> Params {
        Params { least_quality: 8.0, prior: 11.0, doubt: 1e-4, mapq: 60 }
    }
}

/// Fewest distinct pairs that a call rests on: two pairs agree by chance once in some thousand bases at 30x.
pub const FEWEST_PAIRS: usize = 3;

/// Natural-log likelihood of a sample's votes when a share `f` of its molecules has the allele. Each vote's odds are
/// bounded by `doubt`, the probability that it is wrong for reasons its bases cannot show.
fn log_likelihood(votes: &[Vote], f: f64, doubt: f64) -> f64 {
    votes
        .iter()
        .map(|v| {
            let odds = v.log_odds.clamp(doubt.ln(), -doubt.ln()).exp();
            ((1.0 - f) + f * odds).ln()
        })
        .sum()
}

/// Log-likelihood ratio from which the tumour clearly has more of an allele than the normal.
const CLEARLY_MORE: f64 = 2.2;

/// How much better two allele fractions explain both samples than one does (natural logarithm).
fn difference(n: &Support, t: &Support) -> f64 {
    let likelihood = |s: &Support, f: f64| {
        let term = |count: u32, p: f64| if count == 0 { 0.0 } else { f64::from(count) * p.ln() };
        term(s.alternative, f) + term(s.reference, 1.0 - f)
    };
    if n.fraction() >= t.fraction() {
        return 0.0;
    }
    let shared = f64::from(n.alternative + t.alternative) / f64::from(n.depth() + t.depth()).max(1.0);
    likelihood(n, n.fraction()) + likelihood(t, t.fraction()) - likelihood(n, shared) - likelihood(t, shared)
}

/// Judges a change from the votes of each sample, PCR copies already left out.
pub fn judge(normal: &[Vote], tumour: &[Vote], copies: [u32; 2], params: Params) -> Genotype {
    let support = |votes: &[Vote], copies: u32| Support {
        reference: votes.iter().filter(|v| v.reference()).count() as u32,
        alternative: votes.iter().filter(|v| v.alternative()).count() as u32,
        forward: votes.iter().filter(|v| v.alternative() && v.forward).count() as u32,
        copies,
    };
    let (n, t) = (support(normal, copies[0]), support(tumour, copies[1]));
    let doubt = params.doubt;
    let grid = |votes: &[Vote], from: f64, to: f64| {
        (0..=40)
            .map(|i| log_likelihood(votes, from + (to - from) * f64::from(i) / 40.0, doubt))
            .fold(f64::NEG_INFINITY, f64::max)
    };
    let present = grid(tumour, 0.02, 1.0);
    let absent = log_likelihood(tumour, doubt.min(0.01), doubt);
    let clean = grid(normal, 0.0, 0.02f64.max(t.fraction() * 0.1));
    let germline =
        [0.5, 1.0].map(|f| log_likelihood(normal, f, doubt)).into_iter().fold(f64::NEG_INFINITY, f64::max);
    let against_error = present - absent - params.prior;
    // A heterozygous germline variant every thousand bases or so against a somatic one: the same prior, milder.
    let against_germline = clean - germline - 0.3 * params.prior;
    let quality = (against_error.min(against_germline) * 10.0 / std::f64::consts::LN_10).clamp(0.0, 999.0);

    let supporting: Vec<&Vote> = tumour.iter().filter(|v| v.alternative()).collect();
    let mut qualities: Vec<u8> = supporting.iter().map(|v| v.quality).collect();
    qualities.sort_unstable();
    let mut filters = BTreeSet::new();
    let mut filter = |raise: bool, why: Filter| {
        if raise {
            filters.insert(why);
        }
    };
    filter(quality < params.least_quality, Filter::LowQuality);
    filter((t.alternative as usize) < FEWEST_PAIRS, Filter::FewReads);
    let alike = n.alternative > 0 && difference(&n, &t) < CLEARLY_MORE;
    let germline_like = n.alternative >= 3 && n.fraction() >= 0.1;
    filter(germline_like, Filter::Germline);
    filter(alike && !germline_like, Filter::TumourInNormal);
    filter(n.depth() < 6, Filter::NormalDepth);
    let one_sided = t.forward == 0 || t.forward == t.alternative;
    filter(one_sided && t.alternative >= 14, Filter::StrandBias);
    filter(!supporting.is_empty() && supporting.iter().all(|v| v.from_end < 8), Filter::ReadEnds);
    filter(qualities.get(qualities.len() / 2).is_some_and(|&q| q < 15), Filter::BaseQuality);
    filter(params.mapq < 3, Filter::Repeat);
    Genotype { normal: n, tumour: t, quality, filters }
}
