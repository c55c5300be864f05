//! Computes the somatic quality and the filters of a change from the votes of the molecules of all samples.
//! Log-likelihoods and log-odds are natural logarithms, except in [`Log10LikelihoodRatios`].
//!
//! The allele fraction in the tumour is unknown (purity, subclones, copy number), so it is fitted. The alternative
//! hypotheses are that all supporting reads are errors, and that the normal has the allele too (germline). If a patient
//! has several tumours, each has its own fraction, which may be 0, and their log-likelihoods are added.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::known_variants::PopulationFrequency;
use crate::molecule_vote::MoleculeVote;
use crate::sequencing_errors;
use crate::slippage::SlippageRate;

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
    pub(crate) fn from_votes(votes: &[MoleculeVote]) -> AlleleSupport {
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
    pub fn depth(&self) -> u32 {
        self.reference + self.alternative
    }

    /// Share of the informative molecules that support the tumour allele; 0 without informative molecules. All votes
    /// count, so for a long allele it differs from the allele fraction.
    fn supporting_vote_share(&self) -> f64 {
        f64::from(self.alternative) / f64::from(self.depth().max(1))
    }

    /// Share of the informative molecules that have the tumour allele; 0 without informative molecules. Molecules at
    /// the second end of a long allele do not count.
    pub fn allele_fraction(&self) -> f64 {
        // docs/model/genotype.md (22)
        let [reference, alternative] =
            [self.reference - self.at_second_end[0], self.alternative - self.at_second_end[1]];
        f64::from(alternative) / f64::from((reference + alternative).max(1))
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
    /// The bases that show the tumour allele have low quality.
    BaseQuality,
    /// The contig aligns to several loci equally well.
    Repeat,
    /// The contig differs so much from its locus that it probably comes from another locus.
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
    pub const ALL_FILTERS: [(Filter, &'static str, &'static str); 14] = [
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

    /// Sorts the better of two calls of one change first: fewer filters, then higher quality (Phred-scaled, rounded
    /// down).
    pub(crate) fn rank(&self) -> (usize, Reverse<i64>) {
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

/// How frequent the errors are that look like a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorFrequency {
    /// Common errors: substitutions, and length changes of tandem repeats.
    Common,
    /// Rare errors: indels outside tandem repeats, and junctions. The same rare error hardly ever occurs twice.
    Rare,
}

/// Parameters for genotyping one change: error rates, admixture, population frequency and thresholds.
#[derive(Debug, Clone, Copy)]
pub struct GenotypingParams {
    /// How frequent the errors are that look like the change.
    pub error_frequency: ErrorFrequency,
    /// Rate at which slippage of a tandem repeat looks like the change.
    pub slippage_rate: SlippageRate,
    /// Numbers of molecules of the normal, and of the tumours, at the position, whether they support an allele or not.
    pub num_molecules: [u32; 2],
    /// Minimum somatic quality (Phred) of a passing call.
    pub min_quality: f64,
    /// Minimum number of distinct molecules of a call whose change looks like a common error: see
    /// [`min_call_molecules_common_error`].
    pub min_molecules: usize,
    /// Natural logarithm of the prior odds of an error over a mutation.
    pub prior_log_odds: f64,
    /// Mapping quality of the contig.
    pub mapq: u8,
    /// Probability that a molecule without the change shows it although its bases are of good quality.
    pub error_probability: f64,
    /// Population frequency of the tumour allele.
    pub population_frequency: PopulationFrequency,
    /// Tumour cells in the normal, and DNA of another person in the tumour.
    pub admixture: Admixture,
    /// Whether the fragments of the tumours end at fixed positions, as in amplicon sequencing. Then all reads have the
    /// change at the same place and on the same strand, and copies of one molecule count as several
    /// ([`crate::pcr_errors`]).
    pub has_fixed_fragment_ends: bool,
    /// Whether the call has a normal sample.
    pub has_normal: bool,
    /// Whether the change is a substitution or a short indel.
    pub is_small_variant: bool,
    /// Orientation on the contig of the reads that pass a long homopolymer before a substitution to its base, which may
    /// be errors of these reads; `None` if there is no such homopolymer.
    pub phasing_error_strand: Option<bool>,
    /// Whether the molecules with the allele also have another small change nearby that is not a germline variant.
    pub is_linked: bool,
    /// Log-likelihood ratio (natural) of a somatic haplotype over a haplotype that normal and tumour share, from all
    /// molecules that cross this change or the changes that arose with it; `None` if no other change arose with it.
    pub haplotype_log_ratio: Option<f64>,
    /// Log-odds (natural) that the changes of the contig are a cluster of mutations rather than differences of another
    /// locus; 0 if they are no cluster.
    pub cluster_log_odds: f64,
}

/// Admixture of other DNA in the samples: tumour cells in the normal, and DNA of another person in the tumour.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Admixture {
    /// Ratio of the allele fraction in the normal to that in the tumour that tumour cells in the normal cause, at most;
    /// 0 if no tumour cells are known in the normal.
    pub tumour_in_normal_ratio: f64,
    /// DNA of another person in the tumour; `None` if none was detected.
    pub foreign_dna: Option<ForeignDna>,
}

/// DNA of another person in the tumour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ForeignDna {
    /// Smallest and largest plausible share of the tumour's molecules that come from the other person.
    pub share: [f64; 2],
    /// Share of the genome's positions at which the other person has an allele that the patient lacks.
    pub allele_frequency: f64,
}

impl ForeignDna {
    /// Log-likelihood ratio of an allele of the other person over no allele, for the votes of a tumour, at the
    /// best-fitting fraction: from half of the share (one copy) to the whole share (two copies).
    fn log_likelihood(&self, votes: &[MoleculeVote]) -> f64 {
        let [low, high] = [self.share[0] / 2.0, self.share[1]];
        let steps = GENOTYPE_MODEL_PARAMS.num_foreign_fractions;
        let fraction = |step: usize| low + (high - low) * step as f64 / (steps - 1) as f64;
        let votes = LikelihoodRatioCounts::from_votes(votes);
        (0..steps).map(|step| votes.log_likelihood(fraction(step))).fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Default for GenotypingParams {
    fn default() -> GenotypingParams {
        GenotypingParams::for_error_frequency(ErrorFrequency::Common)
    }
}

impl GenotypingParams {
    /// Parameters for a change that looks like errors of this frequency, with the default error probability.
    pub fn for_error_frequency(error_frequency: ErrorFrequency) -> GenotypingParams {
        GenotypingParams {
            error_frequency,
            slippage_rate: SlippageRate::default(),
            num_molecules: [0; 2],
            min_quality: GENOTYPE_MODEL_PARAMS.min_quality,
            min_molecules: MIN_CALL_MOLECULES_COMMON_ERROR,
            prior_log_odds: GENOTYPE_MODEL_PARAMS.somatic_prior_log_odds,
            mapq: 60,
            error_probability: match error_frequency {
                ErrorFrequency::Common => sequencing_errors::ERROR_MODEL_PARAMS.common_error_probability,
                ErrorFrequency::Rare => sequencing_errors::ERROR_MODEL_PARAMS.rare_error_probability,
            },
            population_frequency: PopulationFrequency::default(),
            admixture: Admixture::default(),
            has_fixed_fragment_ends: false,
            has_normal: true,
            is_small_variant: true,
            phasing_error_strand: None,
            is_linked: false,
            haplotype_log_ratio: None,
            cluster_log_odds: 0.0,
        }
    }

    /// Natural logarithm of the prior odds of a germline variant, over a somatic change.
    fn germline_prior_log_odds(&self) -> f64 {
        let p = &GENOTYPE_MODEL_PARAMS;
        // In a normal with tumour cells the reads of both look alike, so the frequency of germline variants decides.
        let has_tumour_cells = self.admixture.tumour_in_normal_ratio > 0.0;
        let unknown_log_odds = match self.error_frequency {
            ErrorFrequency::Common if has_tumour_cells => p.germline_in_tumour_cells_log_odds,
            _ => p.missed_germline_log_odds,
        };
        self.population_frequency.germline_prior_log_odds(unknown_log_odds)
    }

    /// Natural logarithm of the prior odds of an allele that normal and tumour share, over a somatic change.
    fn shared_prior_log_odds(&self) -> f64 {
        let p = &GENOTYPE_MODEL_PARAMS;
        let linked = if self.is_linked { (p.linked_allele_log_odds - self.cluster_log_odds).max(0.0) } else { 0.0 };
        // Copies of a sequence differ in indels as rarely, relative to substitutions, as mutations do.
        let rare = if self.is_small_variant { 0.0 } else { p.rare_allele_ratio.ln() };
        let repeat = (1.0 + self.slippage_rate.rate / p.shared_slippage_rate).ln();
        p.shared_allele_log_odds + linked + rare + repeat
    }
}

/// Minimum number of distinct molecules of a call whose change looks like a common error, unless the measured error
/// rate allows fewer (see [`min_call_molecules_common_error`]).
pub const MIN_CALL_MOLECULES_COMMON_ERROR: usize = GENOTYPE_MODEL_PARAMS.min_molecules;
/// Minimum number of distinct molecules of a call whose change looks like a rare error.
pub const MIN_CALL_MOLECULES_RARE_ERROR: usize = GENOTYPE_MODEL_PARAMS.min_molecules_rare_error;

/// Minimum number of distinct molecules of a call whose change looks like a common error. `error_rate` is the measured
/// probability of one given wrong base of good quality. If it is so low that two molecules outweigh the prior odds of
/// an error, two suffice; the somatic quality then decides whether the call passes.
pub fn min_call_molecules_common_error(error_rate: Option<f64>) -> usize {
    // docs/model/genotype.md (10)
    match error_rate {
        Some(rate) if rate <= GENOTYPE_MODEL_PARAMS.max_two_molecule_error_rate => MIN_CALL_MOLECULES_RARE_ERROR,
        _ => MIN_CALL_MOLECULES_COMMON_ERROR,
    }
}

/// Likelihood ratios of the molecules of a sample for an allele. Molecules with the same ratio are counted together:
/// most have the largest or the smallest possible ratio, so that a deep sample has few different ones.
struct LikelihoodRatioCounts {
    /// P(reads | allele) / P(reads | no allele), ascending, with the number of molecules.
    counts: Vec<(f64, f64)>,
    num_molecules: usize,
}

impl LikelihoodRatioCounts {
    fn from_votes(votes: &[MoleculeVote]) -> LikelihoodRatioCounts {
        /// Log-odds that differ by less than the inverse are the same but for rounding.
        const STEPS_PER_NAT: f64 = (1 << 20) as f64;
        let step_of = |vote: &MoleculeVote| (vote.log_odds * STEPS_PER_NAT).round() as i64;
        let mut steps: Vec<i64> = votes.iter().map(step_of).collect();
        steps.sort_unstable();
        let count = |same: &[i64]| ((same[0] as f64 / STEPS_PER_NAT).exp(), same.len() as f64);
        LikelihoodRatioCounts { counts: steps.chunk_by(|a, b| a == b).map(count).collect(), num_molecules: votes.len() }
    }

    /// Natural logarithm of the likelihood if the share `f` of the molecules has the allele.
    fn log_likelihood(&self, f: f64) -> f64 {
        // docs/model/genotype.md (1)
        self.counts.iter().map(|&(ratio, count)| count * ((1.0 - f) + f * ratio).ln()).sum()
    }

    /// Log-likelihood at the best-fitting share of molecules with the allele, which is at most `most`
    /// (expectation–maximisation; there is one maximum).
    fn fitted_log_likelihood(&self, most: f64) -> f64 {
        let mut f = 0.5 * most;
        for _ in 0..GENOTYPE_MODEL_PARAMS.num_fit_rounds {
            let expected: f64 = self
                .counts
                .iter()
                .map(|&(ratio, count)| {
                    let odds = f * ratio;
                    count * odds / ((1.0 - f) + odds)
                })
                .sum();
            // docs/model/genotype.md (2)
            f = (expected / self.num_molecules.max(1) as f64).min(most);
        }
        self.log_likelihood(f).max(self.log_likelihood(0.0))
    }
}

/// Log-likelihood (natural) of a sample's votes if the share `f` of its molecules has the allele.
fn log_likelihood(votes: &[MoleculeVote], f: f64) -> f64 {
    votes.iter().map(|v| ((1.0 - f) + f * v.log_odds.exp()).ln()).sum()
}

/// Log-likelihood of the votes at the best-fitting share of molecules with the allele, which is at most `most`.
fn fitted_log_likelihood(votes: &[MoleculeVote], most: f64) -> f64 {
    LikelihoodRatioCounts::from_votes(votes).fitted_log_likelihood(most)
}

/// Log-likelihood of the votes if no molecule has the allele. The slippage rate may be higher than its estimate: the
/// best-fitting rate is used, with a penalty for its distance from the estimate. Otherwise a rate 1.5 times the
/// estimate would look like an allele at a depth of hundreds.
fn error_log_likelihood(votes: &[MoleculeVote], error_probability: f64, slips: SlippageRate) -> f64 {
    let votes = LikelihoodRatioCounts::from_votes(votes);
    let best_at_rate = votes.log_likelihood(error_probability);
    if slips.rate == 0.0 {
        return best_at_rate;
    }
    let deviating = |step: usize| {
        let deviations = step as f64 / GENOTYPE_MODEL_PARAMS.rate_steps_per_deviation as f64;
        let more = slips.rate * ((slips.log_spread * deviations).exp() - 1.0);
        // docs/model/genotype.md (3)
        votes.log_likelihood((error_probability + more).min(0.5)) - deviations.powi(2) / 2.0
    };
    (1..=GENOTYPE_MODEL_PARAMS.max_rate_deviations * GENOTYPE_MODEL_PARAMS.rate_steps_per_deviation)
        .map(deviating)
        .fold(best_at_rate, f64::max)
}

/// Log-likelihood of the votes, averaged over allele fractions with the prior density `weight`.
fn averaged_log_likelihood(votes: &[MoleculeVote], weight: impl Fn(f64) -> f64) -> f64 {
    let votes = LikelihoodRatioCounts::from_votes(votes);
    average_over_fractions(votes.num_molecules, weight, |f| votes.log_likelihood(f))
}

/// Log-likelihood of the votes of normal and tumours if all of them have the allele at the same unknown fraction, which
/// is below that of a germline variant.
fn shared_log_likelihood(normal: &[MoleculeVote], tumours: &[MoleculeVote]) -> f64 {
    // docs/model/genotype.md (21)
    let most = GENOTYPE_MODEL_PARAMS.max_shared_fraction;
    let weight = |f: f64| f64::from(f < most);
    let [normal, tumours] = [normal, tumours].map(LikelihoodRatioCounts::from_votes);
    let num_molecules = normal.num_molecules + tumours.num_molecules;
    most.ln() + average_over_fractions(num_molecules, weight, |f| normal.log_likelihood(f) + tumours.log_likelihood(f))
}

/// Log-likelihood of the votes of normal and tumours if reads of one orientation show the allele by error, in both
/// samples with the same unknown rate.
fn phasing_error_log_likelihood(normal: &[MoleculeVote], tumours: &[MoleculeVote], is_forward: bool) -> f64 {
    // docs/model/genotype.md (26)
    let of_strand =
        |votes: &[MoleculeVote]| votes.iter().filter(|v| v.forward == is_forward).copied().collect::<Vec<_>>();
    shared_log_likelihood(&of_strand(normal), &of_strand(tumours))
}

/// Natural logarithm of a likelihood of `num_molecules` molecules, averaged over allele fractions with prior `weight`.
fn average_over_fractions(
    num_molecules: usize,
    weight: impl Fn(f64) -> f64,
    log_likelihood: impl Fn(f64) -> f64,
) -> f64 {
    // Even steps of the arcsine of the square root of a fraction: the likelihood of n molecules has the standard
    // deviation 1/(2 sqrt(n)) there, whatever the fraction is.
    let steps_per_unit = 2.0 * (num_molecules as f64).sqrt() * GENOTYPE_MODEL_PARAMS.fractions_per_deviation;
    let num_fractions =
        ((std::f64::consts::FRAC_PI_2 * steps_per_unit).ceil() as usize).max(GENOTYPE_MODEL_PARAMS.num_fractions);
    let points: Vec<(f64, f64)> = (0..num_fractions)
        .map(|i| (i as f64 + 0.5) / num_fractions as f64 * std::f64::consts::FRAC_PI_2)
        .map(|angle| (angle.sin().powi(2), (2.0 * angle).sin()))
        .map(|(f, step)| ((weight(f) * step).ln(), log_likelihood(f)))
        .collect();
    let total = points.iter().map(|p| p.0.exp()).sum::<f64>().ln();
    let highest = points.iter().map(|p| p.0 + p.1).fold(f64::NEG_INFINITY, f64::max);
    // docs/model/genotype.md (4)
    highest + points.iter().map(|p| (p.0 + p.1 - highest).exp()).sum::<f64>().ln() - total
}

/// Prior density of the allele fraction `f` of a heterozygous germline variant in the tumour: concentrated around one
/// half.
fn germline_fraction_density(f: f64) -> f64 {
    // A normal distribution as wide as that of 40 molecules.
    let bell = (-(f - 0.5).powi(2) / (2.0 * GENOTYPE_MODEL_PARAMS.germline_fraction_sd.powi(2))).exp()
        / (GENOTYPE_MODEL_PARAMS.germline_fraction_sd * (2.0 * std::f64::consts::PI).sqrt());
    // docs/model/genotype.md (5)
    (1.0 - GENOTYPE_MODEL_PARAMS.shifted_fraction_share) * bell + GENOTYPE_MODEL_PARAMS.shifted_fraction_share
}

/// Log-likelihood ratio of two different proportions over one common proportion, for `k` of `n` and `m` of `o`
/// observations.
fn share_difference_log_ratio([k, n]: [u32; 2], [m, o]: [u32; 2]) -> f64 {
    let term = |count: u32, p: f64| if count == 0 { 0.0 } else { f64::from(count) * p.ln() };
    let likelihood = |k: u32, n: u32, p: f64| term(k, p) + term(n - k, 1.0 - p);
    let share = |k: u32, n: u32| f64::from(k) / f64::from(n.max(1));
    let shared = share(k + m, n + o);
    likelihood(k, n, share(k, n)) + likelihood(m, o, share(m, o)) - likelihood(k, n, shared) - likelihood(m, o, shared)
}

/// Whether the votes for the tumour allele have a property clearly more often, or clearly less often, than the votes
/// for the normal allele.
fn has_bias<'a>(votes: impl Iterator<Item = &'a MoleculeVote>, trait_of: impl Fn(&MoleculeVote) -> bool) -> bool {
    let (mut alternative, mut reference) = ([0u32; 2], [0u32; 2]);
    for vote in votes {
        let counts = match (vote.supports_tumour_allele(), vote.supports_normal_allele()) {
            (true, _) => &mut alternative,
            (_, true) => &mut reference,
            _ => continue,
        };
        counts[0] += u32::from(trait_of(vote));
        counts[1] += 1;
    }
    // Pseudocount: four more reads of the other allele, half of them with the property. Without reads of the other
    // allele there is no difference.
    let reference = [reference[0] + 2, reference[1] + 4];
    let share = |[k, n]: [u32; 2]| f64::from(k) / f64::from(n.max(1));
    // At great depth any difference is significant; only a large one is an artefact.
    // docs/model/genotype.md (11)
    (share(alternative) - share(reference)).abs() > GENOTYPE_MODEL_PARAMS.min_bias_difference
        && share_difference_log_ratio(alternative, reference) > GENOTYPE_MODEL_PARAMS.min_bias_log_ratio
}

/// Joins the votes of several samples, sorted by read pair.
pub(crate) fn pool_votes_of_samples(samples: &[Vec<MoleculeVote>]) -> Cow<'_, [MoleculeVote]> {
    if let [one] = samples {
        return Cow::Borrowed(one);
    }
    let mut all = samples.concat();
    all.sort_by_key(|vote| vote.pair);
    Cow::Owned(all)
}

/// Sum of the terms in ascending order, so that rounding does not depend on the order given.
fn order_independent_sum(mut terms: Vec<f64>) -> f64 {
    terms.sort_by(f64::total_cmp);
    terms.into_iter().reduce(|sum, term| sum + term).unwrap_or(0.0)
}

/// Log-likelihood of the votes of a tumour that has the change at an unknown fraction. With several tumours, each has
/// the change with probability one half.
fn somatic_log_likelihood(tumour: &[MoleculeVote], several: bool) -> f64 {
    let present = averaged_log_likelihood(tumour, |_| 1.0);
    if !several {
        return present;
    }
    let absent = log_likelihood(tumour, 0.0);
    let most = present.max(absent);
    most + (0.5 * ((present - most).exp() + (absent - most).exp())).ln()
}

/// Log-likelihood of the votes of all tumours if the change is somatic. A clonal change of their common founder has a
/// fraction near one half in all tumours, like a germline variant. Therefore two models are averaged: independent
/// fractions, and one free fraction with all others near one half.
fn joint_somatic_log_likelihood(tumours: &[Vec<MoleculeVote>]) -> f64 {
    let several = tumours.len() > 1;
    let apart = order_independent_sum(tumours.iter().map(|votes| somatic_log_likelihood(votes, several)).collect());
    if !several {
        return apart;
    }
    let alike: Vec<f64> =
        tumours.iter().map(|votes| averaged_log_likelihood(votes, germline_fraction_density)).collect();
    let free: Vec<f64> = tumours.iter().map(|votes| averaged_log_likelihood(votes, |_| 1.0)).collect();
    let of = |one: usize| {
        let terms = (0..tumours.len()).map(|other| if other == one { free[other] } else { alike[other] });
        order_independent_sum(terms.collect())
    };
    let mut founders: Vec<f64> = (0..tumours.len()).map(of).collect();
    founders.sort_by(f64::total_cmp);
    let most = founders.iter().copied().fold(apart, f64::max);
    let founder = founders.iter().map(|of| (of - most).exp()).sum::<f64>() / founders.len() as f64;
    most + (0.5 * ((apart - most).exp() + founder)).ln()
}

/// Log-likelihood of the votes of all tumours at the best-fitting fractions. Each fraction after the first costs half
/// the logarithm of the number of molecules (BIC; Schwarz 1978). A tumour that does not gain this much has fraction 0;
/// otherwise the errors of several tumours would be explained one by one.
fn presence_log_likelihood(tumours: &[Vec<MoleculeVote>]) -> f64 {
    if let [one] = tumours {
        return fitted_log_likelihood(one, 1.0);
    }
    let molecules: usize = tumours.iter().map(Vec::len).sum();
    let cost = 0.5 * (molecules.max(1) as f64).ln();
    let none = order_independent_sum(tumours.iter().map(|votes| log_likelihood(votes, 0.0)).collect());
    let mut gains: Vec<f64> =
        tumours.iter().map(|votes| fitted_log_likelihood(votes, 1.0) - log_likelihood(votes, 0.0)).collect();
    gains.sort_by(f64::total_cmp);
    let Some(first) = gains.pop() else { return none };
    // docs/model/genotype.md (6)
    none + first + order_independent_sum(gains.into_iter().map(|gain| (gain - cost).max(0.0)).collect())
}

/// Support in each of several tumours. The tumour with the strongest evidence always has the change.
fn tumour_supports(tumours: &[Vec<MoleculeVote>], error_probability: f64, slips: SlippageRate) -> Vec<TumourSupport> {
    let odds = |votes: &Vec<MoleculeVote>| {
        fitted_log_likelihood(votes, 1.0) - error_log_likelihood(votes, error_probability, slips)
    };
    let odds: Vec<f64> = tumours.iter().map(odds).collect();
    let most = odds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let own = |(votes, odds): (&Vec<MoleculeVote>, f64)| {
        let support = AlleleSupport::from_votes(votes);
        TumourSupport {
            support,
            has: support.alternative > 0 && (odds >= GENOTYPE_MODEL_PARAMS.min_tumour_log_ratio || odds >= most),
        }
    };
    tumours.iter().zip(odds).map(own).collect()
}

/// Likelihood of the normal's votes if the normal does not have the allele, except for contamination with tumour DNA.
struct NormalWithoutAllele {
    /// Largest allele fraction in the normal that contamination with tumour DNA causes.
    max_contamination: f64,
    /// Log-likelihood of the normal's votes at the best-fitting contamination.
    log_likelihood_contaminated: f64,
    /// Log-likelihood of the normal's votes, including the prior odds of a normal without tumour cells.
    log_likelihood_with_prior: f64,
}

impl NormalWithoutAllele {
    /// Fits the contamination. `pooled` is the support in all tumours together; `in_normal` is the known ratio of the
    /// allele fraction in the normal to that in the tumour, or 0.
    fn fit(
        normal: &[MoleculeVote],
        tumours: &[Vec<MoleculeVote>],
        pooled: AlleleSupport,
        in_normal: f64,
    ) -> NormalWithoutAllele {
        // The fraction of a tumour with few molecules is uncertain.
        let own = tumours
            .iter()
            .map(|votes| AlleleSupport::from_votes(votes))
            .filter(|own| own.depth() >= GENOTYPE_MODEL_PARAMS.min_normal_depth);
        let most = own.map(|own| own.supporting_vote_share()).fold(pooled.supporting_vote_share(), f64::max);
        let ratio = GENOTYPE_MODEL_PARAMS.contamination_ratio.max(in_normal);
        // Contamination with tumour cells does not give the normal more of an allele than the tumour has.
        let max_contamination = GENOTYPE_MODEL_PARAMS.min_contamination.min(most).max(most * ratio);
        let log_likelihood_contaminated = fitted_log_likelihood(normal, max_contamination);
        // Most normals contain no tumour: contamination with tumour has to be likelier by the prior odds, unless it is
        // known.
        let pure_odds = if in_normal > 0.0 { 0.0 } else { GENOTYPE_MODEL_PARAMS.pure_normal_log_odds };
        // docs/model/genotype.md (7)
        let log_likelihood_with_prior = log_likelihood(normal, 0.0).max(log_likelihood_contaminated - pure_odds);
        NormalWithoutAllele { max_contamination, log_likelihood_contaminated, log_likelihood_with_prior }
    }
}

/// Log-likelihood ratio of a somatic allele of one tumour over an allele that normal and tumour share. `in_normal` is
/// the known ratio of the allele fraction in the normal to that in the tumour, or 0.
pub(crate) fn somatic_over_shared_log_ratio(normal: &[MoleculeVote], tumour: Vec<MoleculeVote>, in_normal: f64) -> f64 {
    let shared = shared_log_likelihood(normal, &tumour);
    let support = AlleleSupport::from_votes(&tumour);
    let tumours = [tumour];
    // docs/model/genotype.md (21)
    NormalWithoutAllele::fit(normal, &tumours, support, in_normal).log_likelihood_with_prior
        + joint_somatic_log_likelihood(&tumours)
        - shared
}

/// Genotypes a change from the votes of the molecules of the normal and of each tumour.
pub fn genotype_change(
    normal: &[MoleculeVote],
    tumours: &[Vec<MoleculeVote>],
    params: GenotypingParams,
) -> GenotypingResult {
    let several = tumours.len() > 1;
    let pooled = pool_votes_of_samples(tumours);
    let tumour = &pooled[..];
    let (n, t) = (AlleleSupport::from_votes(normal), AlleleSupport::from_votes(tumour));
    let over =
        |of: &dyn Fn(&[MoleculeVote]) -> f64| order_independent_sum(tumours.iter().map(|votes| of(votes)).collect());
    let present = presence_log_likelihood(tumours);
    let error_probability = params.error_probability;
    // Slippage has the same rate in all tumours.
    let absent = error_log_likelihood(tumour, error_probability, params.slippage_rate);
    let in_normal = params.admixture.tumour_in_normal_ratio;
    let NormalWithoutAllele { max_contamination, log_likelihood_contaminated, log_likelihood_with_prior } =
        NormalWithoutAllele::fit(normal, tumours, t, in_normal);
    // A germline variant has its fraction in the tumour too: one half, or one, without copy number changes.
    let heterozygous =
        log_likelihood(normal, 0.5) + over(&|votes| averaged_log_likelihood(votes, germline_fraction_density));
    let homozygous = log_likelihood(normal, 1.0) + over(&|votes| log_likelihood(votes, 1.0));
    let germline = heterozygous.max(homozygous);
    // docs/model/genotype.md (7)
    let somatic = log_likelihood_with_prior + joint_somatic_log_likelihood(tumours);
    let against_error = present - absent - params.prior_log_odds;
    // If few molecules support an allele, as at a short tandem duplication, the absence of the allele among many
    // molecules is evidence too: a germline variant would be as frequent as in the tumour.
    let expected =
        f64::from(t.alternative) * f64::from(params.num_molecules[0]) / f64::from(params.num_molecules[1].max(1));
    // This does not hold for repeat lengths: reads that end in the repeat support no allele.
    let expected = if n.alternative == 0 && params.error_frequency == ErrorFrequency::Rare { expected } else { 0.0 };
    // An allele of unknown fraction (Poisson counts, averaged over all fractions) is missing in the normal more often.
    let shared_expected = if expected > 0.0 {
        let ratio = expected / f64::from(t.alternative);
        f64::from(t.alternative + 1) * (1.0 + ratio).ln()
    } else {
        0.0
    };
    // docs/model/genotype.md (8)
    // Without a normal, `tumour_only.rs` compares with germline variants when all calls are known.
    let against_germline = match params.has_normal {
        true => (somatic - germline).max(expected) - params.germline_prior_log_odds(),
        false => f64::INFINITY,
    };
    // docs/model/genotype.md (21). With several tumours the fractions of each are unknown, so they are not compared
    // with a common one.
    let against_shared = match params.has_normal && tumours.len() == 1 {
        true => {
            let own = somatic - shared_log_likelihood(normal, tumour);
            let other_than_errors = somatic
                - params
                    .phasing_error_strand
                    .map_or(f64::NEG_INFINITY, |strand| phasing_error_log_likelihood(normal, tumour, strand));
            (params.haplotype_log_ratio.unwrap_or(own).max(shared_expected) - params.shared_prior_log_odds())
                .min(other_than_errors)
        }
        false => f64::INFINITY,
    };
    // docs/model/genotype.md (9)
    let limits = QualityLimits { against_error, against_germline, against_shared };
    let quality = phred_of_log_odds(against_error.min(against_germline).min(against_shared))
        .clamp(0.0, GENOTYPE_MODEL_PARAMS.max_quality);

    let supporting = || tumour.iter().filter(|v| v.supports_tumour_allele());
    let median = |votes: &mut dyn Iterator<Item = &MoleculeVote>| {
        let mut qualities: Vec<u8> = votes.map(|v| v.quality).collect();
        qualities.sort_unstable();
        qualities.get(qualities.len() / 2).copied()
    };
    let both = || normal.iter().filter(|v| v.supports_normal_allele()).chain(tumour);
    let mut filters = BTreeSet::new();
    let mut filter = |raise: bool, why: Filter| {
        if raise {
            filters.insert(why);
        }
    };
    // docs/model/genotype.md (10)
    filter(quality < params.min_quality, Filter::LowQuality);
    let fewest = match params.error_frequency {
        ErrorFrequency::Common => params.min_molecules,
        ErrorFrequency::Rare => MIN_CALL_MOLECULES_RARE_ERROR,
    };
    filter((t.alternative as usize) < fewest, Filter::FewReads);
    // One molecule of the normal may be an error if everything else is clear. Whether both samples share the allele is
    // the question itself.
    let forgiven = n.alternative == 1
        && phred_of_log_odds(against_error.min(against_germline)) >= GENOTYPE_MODEL_PARAMS.min_forgiving_quality;
    let more = if forgiven {
        fitted_log_likelihood(normal, max_contamination.max(1.0 / f64::from(n.depth())))
            - GENOTYPE_MODEL_PARAMS.min_tumour_excess_one_molecule
    } else {
        let excess = if in_normal > 0.0 {
            GENOTYPE_MODEL_PARAMS.min_tumour_excess_one_molecule
        } else {
            GENOTYPE_MODEL_PARAMS.min_tumour_excess
        };
        log_likelihood_contaminated - excess
    };
    // Compares one common allele fraction of the normal and a tumour with contamination at most. One tumour with
    // clearly more of the allele is enough.
    let alike_one = |votes: &Vec<MoleculeVote>| {
        more + fitted_log_likelihood(votes, 1.0) < fitted_log_likelihood(&[normal, votes].concat(), 1.0)
    };
    // Of several tumours, those with less of the allele than the normal do not count.
    let has_more = |votes: &&Vec<MoleculeVote>| {
        !several || AlleleSupport::from_votes(votes).supporting_vote_share() > n.supporting_vote_share()
    };
    let alike = n.alternative > 0 && tumours.iter().filter(has_more).all(alike_one);
    // Tumour cells in the normal may make as many molecules by chance.
    let of_tumour_cells = if in_normal > 0.0 {
        let deviation = (max_contamination * (1.0 - max_contamination) / f64::from(n.depth().max(1))).sqrt();
        max_contamination + GENOTYPE_MODEL_PARAMS.tumour_in_normal_deviations * deviation
    } else {
        0.0
    };
    let germline_like = n.alternative >= GENOTYPE_MODEL_PARAMS.min_germline_molecules
        && n.allele_fraction() >= GENOTYPE_MODEL_PARAMS.min_germline_fraction.max(of_tumour_cells);
    let known_germline = params.population_frequency.frequency_if_listed().is_some()
        && phred_of_log_odds(against_germline) < params.min_quality;
    filter(germline_like || known_germline, Filter::Germline);
    let is_foreign = params.admixture.foreign_dna.is_some_and(|foreign| {
        // docs/model/genotype.md (13)
        let other_person = log_likelihood(normal, 0.0) + over(&|votes| foreign.log_likelihood(votes));
        // Indels outside repeats and junctions are rarer between people than substitutions.
        let frequency = match params.error_frequency {
            ErrorFrequency::Common => foreign.allele_frequency,
            ErrorFrequency::Rare => foreign.allele_frequency * GENOTYPE_MODEL_PARAMS.rare_allele_ratio,
        };
        somatic - other_person < frequency.ln() + params.prior_log_odds
    });
    filter(is_foreign, Filter::Contamination);
    filter(alike && !germline_like, Filter::TumourInNormal);
    // Expected but absent tumour alleles count as half as many molecules with the other allele.
    let seen = f64::from(n.depth()).max(expected / std::f64::consts::LN_2);
    let is_shallow = seen < f64::from(params.population_frequency.min_normal_depth_to_pass());
    filter(params.has_normal && is_shallow, Filter::NormalDepth);
    let random_ends = !params.has_fixed_fragment_ends;
    filter(random_ends && has_bias(both(), |v| v.forward), Filter::StrandBias);
    filter(random_ends && has_bias(both(), |v| v.is_f1r2), Filter::Orientation);
    let at_ends = t.alternative > 0 && supporting().all(|v| v.distance_from_end < GENOTYPE_MODEL_PARAMS.read_end_bases);
    filter(
        random_ends && (at_ends || has_bias(both(), |v| v.distance_from_end < GENOTYPE_MODEL_PARAMS.read_end_bases)),
        Filter::ReadEnds,
    );
    let poor = median(&mut supporting()).is_some_and(|q| q < GENOTYPE_MODEL_PARAMS.min_median_base_quality);
    let others_poor = median(&mut both().filter(|v| v.supports_normal_allele()))
        .is_some_and(|q| q < GENOTYPE_MODEL_PARAMS.min_median_base_quality);
    filter(poor && !others_poor, Filter::BaseQuality);
    filter(params.mapq < GENOTYPE_MODEL_PARAMS.min_mapq, Filter::Repeat);
    let tumours = if several { tumour_supports(tumours, error_probability, params.slippage_rate) } else { Vec::new() };
    let odds = Log10LikelihoodRatios {
        tumour: (present - absent) / std::f64::consts::LN_10,
        normal: (log_likelihood(normal, 0.0) - log_likelihood(normal, 0.5)) / std::f64::consts::LN_10,
    };
    GenotypingResult { normal: n, tumour: t, tumours, quality, limits, odds, filters }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Votes of `depth` molecules. The first `alternative` support the change.
    fn votes(alternative: u32, depth: u32) -> Vec<MoleculeVote> {
        (0..depth).map(|pair| MoleculeVote::for_test(pair, if pair < alternative { 9.0 } else { -9.0 })).collect()
    }

    #[test]
    fn counting_equal_ratios_gives_the_likelihood_of_each_vote() {
        let votes = [votes(3, 40), vec![MoleculeVote::for_test(50, 1.5); 2]].concat();
        let counts = LikelihoodRatioCounts::from_votes(&votes);
        for f in [0.0, 0.01, 0.3, 0.99] {
            assert!((counts.log_likelihood(f) - log_likelihood(&votes, f)).abs() < 1e-4);
        }
        assert_eq!(counts.counts.len(), 3);
    }

    #[test]
    fn averages_are_exact_at_any_depth() {
        // The integral of a binomial likelihood over all fractions is that of the beta function.
        for (alternative, depth) in [(0, 0), (0, 30), (3, 30), (15, 30), (17, 5783), (2900, 5783)] {
            let log_binomial = |f: f64| {
                let term = |n: u32, p: f64| if n == 0 { 0.0 } else { f64::from(n) * p.ln() };
                term(alternative, f) + term(depth - alternative, 1.0 - f)
            };
            let average = average_over_fractions(depth as usize, |_| 1.0, log_binomial);
            let log_factorial = |n: u32| (1..=n).map(|i| f64::from(i).ln()).sum::<f64>();
            let exact = log_factorial(alternative) + log_factorial(depth - alternative) - log_factorial(depth + 1);
            assert!((average - exact).abs() < 0.02, "{alternative} of {depth}: {average}, {exact}");
        }
    }

    #[test]
    fn alleles_of_few_in_a_thousand_may_be_shared() {
        let params = GenotypingParams { error_probability: 1e-5, ..GenotypingParams::default() };
        let quality = |in_normal| genotype_change(&votes(in_normal, 4178), &[votes(17, 5783)], params).quality;
        assert!(quality(5) < 3.0, "{}", quality(5));
        assert!(quality(0) > 20.0, "{}", quality(0));
    }

    #[test]
    fn reads_after_a_homopolymer_may_share_an_error_of_one_strand() {
        let forward = |alternative, depth, is_forward| {
            let own = |vote| MoleculeVote { forward: is_forward, ..vote };
            votes(alternative, depth).into_iter().map(own).collect::<Vec<_>>()
        };
        let quality = |phasing_error_strand, on_other_strand| {
            let tumour = [forward(5, 9, false), forward(on_other_strand, 5, true)].concat();
            let normal = [forward(0, 9, false), forward(0, 4, true)].concat();
            let params = GenotypingParams { phasing_error_strand, ..GenotypingParams::default() };
            genotype_change(&normal, &[tumour], params).quality
        };
        assert!(quality(Some(false), 0) < quality(None, 0) - 8.0);
        assert_eq!(quality(Some(true), 0), quality(None, 0));
        assert_eq!(quality(Some(false), 3), quality(None, 3));
    }

    #[test]
    fn absence_in_the_normal_proves_less_for_alleles_of_few_molecules() {
        let quality = |in_tumour, normal_depth| {
            let params = GenotypingParams {
                num_molecules: [normal_depth, 54],
                ..GenotypingParams::for_error_frequency(ErrorFrequency::Rare)
            };
            genotype_change(&votes(0, normal_depth), &[votes(in_tumour, 54)], params).quality
        };
        assert!(quality(3, 28) < 8.0);
        assert!(quality(10, 28) > quality(3, 28) + 8.0);
        assert!(quality(3, 100) > quality(3, 28) + 5.0);
    }
}
