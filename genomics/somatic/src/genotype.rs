//! Computes the somatic quality and the filters of a change from the votes of the molecules of all samples.
//! Log-likelihoods and log-odds are natural logarithms, except in [`Log10LikelihoodRatios`].
//!
//! The allele fraction in the tumour is unknown (purity, subclones, copy number), so it is fitted. The alternative
//! hypotheses are that all supporting reads are errors, and that the normal has the allele too (germline, or at a lower
//! fraction that both samples share). If a patient has several tumours, each has its own fraction, which may be 0, and
//! their log-likelihoods are added.

use std::borrow::Cow;

use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::known_variants::PopulationFrequency;
use crate::molecule_vote::MoleculeVote;
use crate::sequencing_errors;
use crate::slippage::SlippageRate;

mod compared_votes;
mod filters;
mod likelihood;
mod result;

use compared_votes::VotesOfAllSamples;
pub(crate) use likelihood::somatic_over_shared_log_ratio;
use likelihood::{
    MoleculeCountsByLikelihoodRatio, error_log_likelihood, fitted_log_likelihood, log_likelihood_at_fraction,
};
pub use result::{AlleleSupport, Filter, GenotypingResult, Log10LikelihoodRatios, QualityLimits, TumourSupport};
pub(crate) use result::{log_odds_of_phred, phred_of_log_odds};

/// How frequent the errors are that look like a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorFrequency {
    /// Common errors: substitutions, and length changes of tandem repeats, also of short homopolymers if the reads have
    /// such errors.
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
    pub orientation_with_phasing_errors: Option<bool>,
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
    fn foreign_allele_log_ratio(&self, votes: &[MoleculeVote]) -> f64 {
        let [low, high] = [self.share[0] / 2.0, self.share[1]];
        let steps = GENOTYPE_MODEL_PARAMS.num_foreign_fractions;
        let fraction = |step: usize| low + (high - low) * step as f64 / (steps - 1) as f64;
        let votes = MoleculeCountsByLikelihoodRatio::from_votes(votes);
        (0..steps).map(|step| votes.log_likelihood_at_fraction(fraction(step))).fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Default for GenotypingParams {
    fn default() -> GenotypingParams {
        GenotypingParams::defaults_for_error_frequency(ErrorFrequency::Common)
    }
}

impl GenotypingParams {
    /// Parameters for a change that looks like errors of this frequency, with the default error probability.
    pub fn defaults_for_error_frequency(error_frequency: ErrorFrequency) -> GenotypingParams {
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
            orientation_with_phasing_errors: None,
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

/// Joins the votes of several samples, sorted by read pair.
pub(crate) fn pool_votes_of_samples(samples: &[Vec<MoleculeVote>]) -> Cow<'_, [MoleculeVote]> {
    if let [one] = samples {
        return Cow::Borrowed(one);
    }
    let mut all = samples.concat();
    all.sort_by_key(|vote| vote.pair);
    Cow::Owned(all)
}

/// Genotypes a change from the votes of the molecules of the normal and of each tumour.
pub fn genotype_change(
    normal: &[MoleculeVote],
    tumours: &[Vec<MoleculeVote>],
    params: GenotypingParams,
) -> GenotypingResult {
    let votes = VotesOfAllSamples::new(normal, tumours, params);
    let limits = votes.compute_quality_limits();
    let QualityLimits { against_error, against_germline, against_shared } = limits;
    let quality = phred_of_log_odds(against_error.min(against_germline).min(against_shared))
        .clamp(0.0, GENOTYPE_MODEL_PARAMS.max_quality);
    let odds = Log10LikelihoodRatios {
        tumour: votes.log_ratio_over_errors / std::f64::consts::LN_10,
        normal: (log_likelihood_at_fraction(normal, 0.0) - log_likelihood_at_fraction(normal, 0.5))
            / std::f64::consts::LN_10,
    };
    GenotypingResult {
        filters: votes.failed_filters(&limits, quality),
        normal: votes.normal_support,
        tumour: votes.tumour_support,
        tumours: if tumours.len() > 1 { tumour_supports(tumours, &params) } else { Vec::new() },
        quality,
        limits,
        odds,
    }
}

/// Support in each of several tumours. The tumour with the strongest evidence always has the change, if any of its
/// molecules supports it.
fn tumour_supports(tumours: &[Vec<MoleculeVote>], params: &GenotypingParams) -> Vec<TumourSupport> {
    let odds = |votes: &Vec<MoleculeVote>| {
        fitted_log_likelihood(votes, 1.0) - error_log_likelihood(votes, params.error_probability, params.slippage_rate)
    };
    let odds: Vec<f64> = tumours.iter().map(odds).collect();
    let most = odds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let own = |(votes, odds): (&Vec<MoleculeVote>, f64)| {
        let support = AlleleSupport::count_supporting_molecules(votes);
        TumourSupport {
            support,
            has: support.alternative > 0 && (odds >= GENOTYPE_MODEL_PARAMS.min_tumour_log_ratio || odds >= most),
        }
    };
    tumours.iter().zip(odds).map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Votes of `depth` molecules. The first `alternative` support the change.
    fn votes(alternative: u32, depth: u32) -> Vec<MoleculeVote> {
        (0..depth).map(|pair| MoleculeVote::for_test(pair, if pair < alternative { 9.0 } else { -9.0 })).collect()
    }

    #[test]
    fn alleles_of_few_in_a_thousand_may_be_shared() {
        let params = GenotypingParams { error_probability: 1e-5, ..GenotypingParams::default() };
        let quality = |in_normal| genotype_change(&votes(in_normal, 4178), &[votes(17, 5783)], params).quality;
        assert!(quality(5) < 3.0, "{}", quality(5));
        assert!(quality(0) > 20.0, "{}", quality(0));
    }

    #[test]
    fn alleles_of_a_tenth_in_several_tumours_may_be_shared() {
        let quality = |in_first, in_second| {
            let tumours = [votes(in_first, 40), votes(in_second, 40)];
            genotype_change(&votes(0, 29), &tumours, GenotypingParams::default()).quality
        };
        assert!(quality(4, 4) < 10.0, "{}", quality(4, 4));
        assert!(quality(11, 11) > 25.0, "{}", quality(11, 11));
        // The second tumour lacks the mutation, or has few tumour cells.
        assert!(quality(11, 0) > 25.0, "{}", quality(11, 0));
        assert!(quality(14, 5) > 20.0, "{}", quality(14, 5));
    }

    #[test]
    fn reads_after_a_homopolymer_may_share_an_error_of_one_strand() {
        let forward = |alternative, depth, is_forward| {
            let own = |vote| MoleculeVote { forward: is_forward, ..vote };
            votes(alternative, depth).into_iter().map(own).collect::<Vec<_>>()
        };
        let quality = |orientation_with_phasing_errors, on_other_strand| {
            let tumour = [forward(5, 9, false), forward(on_other_strand, 5, true)].concat();
            let normal = [forward(0, 9, false), forward(0, 4, true)].concat();
            let params = GenotypingParams { orientation_with_phasing_errors, ..GenotypingParams::default() };
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
                ..GenotypingParams::defaults_for_error_frequency(ErrorFrequency::Rare)
            };
            genotype_change(&votes(0, normal_depth), &[votes(in_tumour, 54)], params).quality
        };
        assert!(quality(3, 28) < 8.0);
        assert!(quality(10, 28) > quality(3, 28) + 8.0);
        assert!(quality(3, 100) > quality(3, 28) + 5.0);
    }
}
