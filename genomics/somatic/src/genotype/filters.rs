//! The filters of a change (docs/model/genotype.md, 10 to 13).

use std::collections::BTreeSet;

use super::compared_votes::VotesOfAllSamples;
use super::likelihood::{fitted_log_likelihood, log_likelihood_at_fraction};
use super::result::{AlleleSupport, Filter, QualityLimits, phred_of_log_odds};
use super::{ErrorFrequency, MIN_CALL_MOLECULES_RARE_ERROR};
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::molecule_vote::MoleculeVote;

impl VotesOfAllSamples<'_> {
    /// Returns the filters that the change fails. `quality` is Phred-scaled.
    pub(super) fn failed_filters(&self, limits: &QualityLimits, quality: f64) -> BTreeSet<Filter> {
        let params = &self.params;
        let min_molecules = match params.error_frequency {
            ErrorFrequency::Common => params.min_molecules,
            ErrorFrequency::Rare => MIN_CALL_MOLECULES_RARE_ERROR,
        };
        let is_germline_like = self.is_as_frequent_as_germline();
        let is_known_germline = params.population_frequency.frequency_if_listed().is_some()
            && phred_of_log_odds(limits.against_germline) < params.min_quality;
        // docs/model/genotype.md (10)
        let tests = [
            (quality < params.min_quality, Filter::LowQuality),
            ((self.tumour_support.alternative as usize) < min_molecules, Filter::FewReads),
            (is_germline_like || is_known_germline, Filter::Germline),
            (self.is_foreign(), Filter::Contamination),
            (!is_germline_like && self.is_as_frequent_in_normal(limits), Filter::TumourInNormal),
            (params.has_normal && self.is_normal_shallow(), Filter::NormalDepth),
            (params.mapq < GENOTYPE_MODEL_PARAMS.min_mapq, Filter::Repeat),
        ];
        tests
            .into_iter()
            .chain(self.test_reads())
            .filter_map(|(is_failed, filter)| is_failed.then_some(filter))
            .collect()
    }

    /// Whether the normal has the allele as often as a germline variant.
    fn is_as_frequent_as_germline(&self) -> bool {
        let max_contamination = self.normal_without_allele.max_contamination;
        // Tumour cells in the normal may make as many molecules by chance.
        let of_tumour_cells = if self.params.admixture.tumour_in_normal_ratio > 0.0 {
            let variance = max_contamination * (1.0 - max_contamination)
                / f64::from(self.normal_support.num_informative_molecules().max(1));
            max_contamination + GENOTYPE_MODEL_PARAMS.tumour_in_normal_deviations * variance.sqrt()
        } else {
            0.0
        };
        self.normal_support.alternative >= GENOTYPE_MODEL_PARAMS.min_germline_molecules
            && self.normal_support.supporting_vote_share()
                >= GENOTYPE_MODEL_PARAMS.min_germline_fraction.max(of_tumour_cells)
    }

    /// Whether the normal has the allele, and no tumour has clearly more of it than contamination explains.
    fn is_as_frequent_in_normal(&self, limits: &QualityLimits) -> bool {
        let (params, normal) = (&GENOTYPE_MODEL_PARAMS, self.normal_support);
        // One molecule of the normal may be an error if everything else is clear. Whether both samples share the allele
        // is the question itself.
        let is_one_error = normal.alternative == 1
            && phred_of_log_odds(limits.against_error.min(limits.against_germline)) >= params.min_forgiving_quality;
        let contaminated = if is_one_error {
            let fraction =
                self.normal_without_allele.max_contamination.max(1.0 / f64::from(normal.num_informative_molecules()));
            fitted_log_likelihood(self.normal, fraction) - params.min_tumour_excess_one_molecule
        } else if self.params.admixture.tumour_in_normal_ratio > 0.0 {
            self.normal_without_allele.log_likelihood_contaminated - params.min_tumour_excess_one_molecule
        } else {
            self.normal_without_allele.log_likelihood_contaminated - params.min_tumour_excess
        };
        // Compares one common allele fraction of the normal and a tumour with contamination at most. One tumour with
        // clearly more of the allele is enough.
        let is_alike = |votes: &Vec<MoleculeVote>| {
            contaminated + fitted_log_likelihood(votes, 1.0)
                < fitted_log_likelihood(&[self.normal, votes].concat(), 1.0)
        };
        // Of several tumours, those with less of the allele than the normal do not count.
        let has_more = |votes: &&Vec<MoleculeVote>| {
            self.tumours.len() == 1
                || AlleleSupport::count_supporting_molecules(votes).supporting_vote_share()
                    > normal.supporting_vote_share()
        };
        normal.alternative > 0 && self.tumours.iter().filter(has_more).all(is_alike)
    }

    /// Whether the allele is as frequent as the alleles of another person whose DNA is in the tumour.
    fn is_foreign(&self) -> bool {
        self.params.admixture.foreign_dna.is_some_and(|foreign| {
            // docs/model/genotype.md (13)
            let other_person = log_likelihood_at_fraction(self.normal, 0.0)
                + self.sum_log_likelihood_over_tumours(|votes| foreign.foreign_allele_log_ratio(votes));
            // Indels outside repeats and junctions are rarer between people than substitutions.
            let frequency = match self.params.error_frequency {
                ErrorFrequency::Common => foreign.allele_frequency,
                ErrorFrequency::Rare => foreign.allele_frequency * GENOTYPE_MODEL_PARAMS.rare_allele_ratio,
            };
            self.somatic - other_person < frequency.ln() + self.params.prior_log_odds
        })
    }

    /// Whether the normal has too few molecules. Expected but absent tumour alleles count as half as many molecules
    /// with the other allele.
    fn is_normal_shallow(&self) -> bool {
        let depth = f64::from(self.normal_support.num_informative_molecules())
            .max(self.expected_in_normal / std::f64::consts::LN_2);
        depth < f64::from(self.params.population_frequency.min_normal_depth_to_pass())
    }

    /// Tests the strands, the read ends and the qualities of the supporting reads; only the qualities if fragment ends
    /// are fixed. Returns for each filter whether the change fails it.
    fn test_reads(&self) -> [(bool, Filter); 4] {
        let supporting = || self.pooled.iter().filter(|v| v.supports_tumour_allele());
        let both = || self.normal.iter().filter(|v| v.supports_normal_allele()).chain(self.pooled.iter());
        let is_at_end = |v: &MoleculeVote| v.distance_from_end < GENOTYPE_MODEL_PARAMS.read_end_bases;
        let is_low = |quality: Option<u8>| quality.is_some_and(|q| q < GENOTYPE_MODEL_PARAMS.min_median_base_quality);
        let has_low_quality = is_low(median_quality(supporting()))
            && !is_low(median_quality(both().filter(|v| v.supports_normal_allele())));
        let has_random_ends = !self.params.has_fixed_fragment_ends;
        let are_all_at_ends = self.tumour_support.alternative > 0 && supporting().all(is_at_end);
        [
            (has_random_ends && has_bias(both(), |v| v.forward), Filter::StrandBias),
            (has_random_ends && has_bias(both(), |v| v.is_f1r2), Filter::Orientation),
            (has_random_ends && (are_all_at_ends || has_bias(both(), is_at_end)), Filter::ReadEnds),
            (has_low_quality, Filter::BaseQuality),
        ]
    }
}

fn median_quality<'a>(votes: impl Iterator<Item = &'a MoleculeVote>) -> Option<u8> {
    let mut qualities: Vec<u8> = votes.map(|v| v.quality).collect();
    qualities.sort_unstable();
    qualities.get(qualities.len() / 2).copied()
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
