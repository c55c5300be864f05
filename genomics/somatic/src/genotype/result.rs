//! Result of genotyping a change: support of the alleles, quality and filters.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use genuma_pair::confidence_interval::Estimate;
use serde::{Deserialize, Serialize};

use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::molecule_vote::MoleculeVote;

/// Numbers of molecules of one sample that support the normal allele (the sequence without the change) and the tumour
/// allele.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct AlleleSupport {
    /// Number of molecules that support the normal allele (the sequence without the change).
    pub reference: u32,
    /// Number of molecules that support the tumour allele.
    pub alternative: u32,
    /// Number of molecules with the tumour allele whose supporting read has the orientation of the contig.
    pub forward: u32,
    /// Number of molecules with the tumour allele whose read 1 has the orientation of the contig (F1R2).
    pub first_forward: u32,
    /// Number of molecules with the normal allele whose supporting read has the orientation of the contig.
    pub reference_forward: u32,
    /// Number of molecules with the normal allele whose read 1 has the orientation of the contig (F1R2).
    pub reference_first_forward: u32,
    /// Number of duplicate pairs: all pairs of each molecule beyond the first, for molecules of either allele.
    pub copies: u32,
    /// Numbers of molecules with the normal and with the tumour allele that are not counted in the allele fraction:
    /// those that show a long allele only at its second end.
    pub at_second_end: [u32; 2],
}

impl AlleleSupport {
    /// Counts the molecules that support each allele.
    pub(crate) fn count_supporting_molecules(votes: &[MoleculeVote]) -> AlleleSupport {
        let count = |wanted: &dyn Fn(&MoleculeVote) -> bool| votes.iter().filter(|v| wanted(v)).count() as u32;
        AlleleSupport {
            reference: count(&MoleculeVote::supports_normal_allele),
            alternative: count(&MoleculeVote::supports_tumour_allele),
            forward: count(&|v| v.supports_tumour_allele() && v.forward),
            first_forward: count(&|v| v.supports_tumour_allele() && v.is_f1r2),
            reference_forward: count(&|v| v.supports_normal_allele() && v.forward),
            reference_first_forward: count(&|v| v.supports_normal_allele() && v.is_f1r2),
            copies: votes.iter().map(|v| u32::from(v.duplicates)).sum(),
            at_second_end: [
                count(&|v| v.supports_normal_allele() && !v.counts_in_fraction),
                count(&|v| v.supports_tumour_allele() && !v.counts_in_fraction),
            ],
        }
    }

    /// Number of informative molecules: those that support either allele.
    pub fn num_informative_molecules(&self) -> u32 {
        self.reference + self.alternative
    }

    /// Share of the informative molecules that support the tumour allele; 0 without informative molecules. All votes
    /// count, so for a long allele it differs from the allele fraction.
    pub(crate) fn supporting_vote_share(&self) -> f64 {
        f64::from(self.alternative) / f64::from(self.num_informative_molecules().max(1))
    }

    /// Share of the informative molecules that have the tumour allele; 0 without informative molecules. Molecules at
    /// the second end of a long allele do not count.
    pub fn allele_fraction(&self) -> f64 {
        // docs/model/genotype.md (22)
        let [alternative, all] = self.molecules_in_fraction();
        f64::from(alternative) / f64::from(all.max(1))
    }

    /// The allele fraction with Wilson's 95 % interval; `None` without informative molecules. Each molecule counts once,
    /// whatever the number of its duplicates.
    pub fn allele_fraction_estimate(&self) -> Option<Estimate> {
        let [alternative, all] = self.molecules_in_fraction();
        Estimate::from_binomial(alternative.into(), all.into())
    }

    /// Numbers of molecules with the tumour allele, and with either allele, that count in the allele fraction.
    fn molecules_in_fraction(&self) -> [u32; 2] {
        let [reference, alternative] =
            [self.reference - self.at_second_end[0], self.alternative - self.at_second_end[1]];
        [alternative, reference + alternative]
    }
}

/// Reason why a call does not pass. [`Filter::filter_id`] returns the ID in the FILTER column of the VCF.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// The somatic quality is below the threshold.
    LowQuality,
    /// Too few distinct molecules have the allele: see [`min_call_molecules_common_error`].
    FewReads,
    /// The normal has the allele as often as a germline variant, or the allele is common in the population and the
    /// normal has too few reads to exclude it. Without a normal: the allele is as frequent as a germline variant.
    Germline,
    /// The normal has the allele more often than errors and slight contamination explain, but less often than a
    /// germline variant.
    TumourInNormal,
    /// The normal has too few informative molecules at the position.
    NormalDepth,
    /// The reads with the tumour allele are mostly on one strand, unlike the reads with the normal allele.
    StrandBias,
    /// The pairs with the tumour allele are nearly all of one orientation (F1R2 or F2R1), unlike the pairs with the
    /// normal allele: probably DNA damage.
    Orientation,
    /// The tumour allele is at the ends of its reads, unlike the normal allele.
    ReadEnds,
    /// The bases that show the tumour allele have low quality, unlike those that show the normal allele.
    BaseQuality,
    /// The contig aligns to several loci equally well.
    Repeat,
    /// The mates of the reads with the tumour allele lie elsewhere, unlike those of the normal allele: the reads come
    /// from another copy of the sequence.
    DiscordantMates,
    /// The contig probably comes from another locus or is a copy of another repeat-family member, or the change is a
    /// difference of an inserted element from its copy.
    Divergent,
    /// The allele is as frequent as the alleles of another person whose DNA is in the tumour sample.
    Contamination,
    /// The sequence at the change is a fold-back artefact of the library.
    FoldBack,
    /// Enough normals of the panel have the allele too.
    Panel,
}

impl Filter {
    /// All filters, each with its ID and its description in the VCF header.
    pub const ALL_FILTERS: [(Filter, &'static str, &'static str); 15] = [
        (Filter::LowQuality, "low_quality", "Quality below the threshold"),
        (Filter::FewReads, "few_reads", "Fewer than three distinct molecules support the tumour allele"),
        (
            Filter::Germline,
            "germline",
            "The normal has the allele as often as a germline variant, or the allele is common in the population and the normal has too few reads to exclude it; without a normal: the allele fraction and the population frequency are those of a germline variant",
        ),
        (
            Filter::TumourInNormal,
            "tumour_in_normal",
            "The normal has more of the allele than errors and slight contamination explain",
        ),
        (Filter::NormalDepth, "normal_depth", "Too few reads of the normal cover the position"),
        (Filter::StrandBias, "strand_bias", "Supporting reads have one strand, unlike the other allele's reads"),
        (
            Filter::Orientation,
            "orientation",
            "Supporting pairs have one orientation, unlike the other allele's: damage of one strand",
        ),
        (Filter::ReadEnds, "read_ends", "Supporting bases are at the ends of reads, unlike the other allele's"),
        (Filter::BaseQuality, "base_quality", "Supporting bases have low quality, unlike the other allele's"),
        (Filter::Repeat, "repeat", "The tumour sequence fits several positions of the genome equally well"),
        (
            Filter::DiscordantMates,
            "discordant_mates",
            "The mates of the supporting reads lie elsewhere, unlike the other allele's: the reads come from another copy of the sequence",
        ),
        (
            Filter::Divergent,
            "divergent",
            "The tumour sequence has so many differences that it comes from another position of the genome",
        ),
        (
            Filter::Contamination,
            "contamination",
            "The allele is as frequent as those of another person, whose DNA is in the tumour sample",
        ),
        (
            Filter::FoldBack,
            "fold_back",
            "The sequence nearby is followed by its reverse complement: a fold-back artefact of the library",
        ),
        (Filter::Panel, "panel", "Normals of the panel have the allele too: a recurrent artefact, or germline"),
    ];

    /// The ID in the FILTER column.
    pub fn filter_id(self) -> &'static str {
        Filter::ALL_FILTERS.iter().find(|f| f.0 == self).map_or("unknown", |f| f.1)
    }
}

/// Support of the tumour allele in one of several tumours.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TumourSupport {
    /// Number of molecules of this tumour that support each allele.
    #[serde(flatten)]
    pub support: AlleleSupport,
    /// Whether this tumour has the change (another tumour of the patient may have it instead).
    pub has: bool,
}

/// Likelihood ratios without priors, as decadic logarithms.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Log10LikelihoodRatios {
    /// Likelihood that the tumours have the change, at the best-fitting fractions, over the likelihood that all
    /// supporting reads are errors.
    pub tumour: f64,
    /// Likelihood that the normal lacks the allele, over the likelihood of a heterozygous germline variant.
    pub normal: f64,
}

/// Log-odds (natural) of a somatic change over each other explanation; infinite if it is not considered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QualityLimits {
    /// Log-odds over errors of the reads.
    pub against_error: f64,
    /// Log-odds over a germline variant.
    pub against_germline: f64,
    /// Log-odds over an allele that normal and tumour share.
    pub against_shared: f64,
}

impl Default for QualityLimits {
    fn default() -> QualityLimits {
        QualityLimits { against_error: f64::INFINITY, against_germline: f64::INFINITY, against_shared: f64::INFINITY }
    }
}

/// Result of genotyping one change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GenotypingResult {
    /// Number of molecules of the normal that support each allele.
    pub normal: AlleleSupport,
    /// Number of molecules of the tumour, or of all tumours together, that support each allele.
    pub tumour: AlleleSupport,
    /// Support in each tumour; empty with a single tumour.
    pub tumours: Vec<TumourSupport>,
    /// Phred-scaled probability that the change is not somatic.
    pub quality: f64,
    /// The log-odds that limit the quality: it is the lowest of them.
    pub limits: QualityLimits,
    /// Likelihood ratios of the change, without priors.
    pub odds: Log10LikelihoodRatios,
    /// Filters that the call failed; empty means PASS.
    pub filters: BTreeSet<Filter>,
}

impl GenotypingResult {
    /// Limits the quality to the log-odds (natural) of a mutation, and adds the filter `low_quality` if the quality is
    /// below `min_quality`. Returns the limit, Phred-scaled, from 0 to the maximum quality.
    pub(crate) fn limit_quality(&mut self, log_odds: f64, min_quality: f64) -> f64 {
        let limit = phred_of_log_odds(log_odds).clamp(0.0, GENOTYPE_MODEL_PARAMS.max_quality);
        self.quality = self.quality.min(limit);
        if self.quality < min_quality {
            self.filters.insert(Filter::LowQuality);
        }
        limit
    }

    /// Sort key that puts the better of two calls of one change first: fewer filters, then higher quality
    /// (Phred-scaled, rounded down).
    pub(crate) fn sort_key_best_first(&self) -> (usize, Reverse<i64>) {
        (self.filters.len(), Reverse(self.quality as i64))
    }
}

/// Converts log-odds (natural) to a Phred-scaled quality.
pub(crate) fn phred_of_log_odds(log_odds: f64) -> f64 {
    log_odds * 10.0 / std::f64::consts::LN_10
}

/// Converts a Phred-scaled quality to log-odds (natural).
pub(crate) fn log_odds_of_phred(quality: f64) -> f64 {
    quality * std::f64::consts::LN_10 / 10.0
}
