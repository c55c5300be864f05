//! Known variants: the frequency of an allele in the population determines the probability that the patient inherited
//! it.

use std::path::PathBuf;

use genuma_reads::fasta::Reference;
use genuma_reads::known_vcf::SmallVariant;
use genuma_reads::population_frequencies::PopulationFrequencies;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::error::Error;
use crate::genotype_params::GENOTYPE_MODEL_PARAMS;
use crate::ledger::Ledger;

/// The VCF file of known variants (`--known`), with allele frequencies of a population.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownVariants {
    /// Path of the VCF file.
    pub path: PathBuf,
}

/// Whether the file of known variants lists an allele, and its population frequency.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum PopulationFrequency {
    /// No known variants are given, or they do not include changes of this kind (junctions and novel sequence).
    #[default]
    NoKnownVariants,
    /// The file of known variants does not list the allele.
    Unlisted,
    /// The file lists the allele: its frequency in the population, 0 to 1.
    Listed(f64),
}

impl PopulationFrequency {
    /// Natural logarithm of the prior odds that an allele is germline rather than somatic. `unknown_log_odds` are the
    /// odds without known variants.
    pub(crate) fn germline_prior_log_odds(self, unknown_log_odds: f64) -> f64 {
        let p = &GENOTYPE_MODEL_PARAMS;
        // docs/model/genotype.md (15)
        let unlisted = unknown_log_odds + p.unlisted_germline_share.ln();
        match self {
            PopulationFrequency::NoKnownVariants => unknown_log_odds,
            PopulationFrequency::Unlisted => unlisted,
            PopulationFrequency::Listed(frequency) => {
                let carriers = 1.0 - (1.0 - frequency).powi(2);
                unlisted.max(carriers.ln() + p.somatic_prior_log_odds)
            }
        }
    }

    /// Minimum depth of the normal, in molecules that support one of the alleles, for a call to pass: with fewer, a
    /// germline variant cannot be excluded.
    pub(crate) fn min_normal_depth_to_pass(self) -> u32 {
        match self {
            PopulationFrequency::NoKnownVariants => GENOTYPE_MODEL_PARAMS.min_normal_depth,
            _ => GENOTYPE_MODEL_PARAMS.min_normal_depth_known,
        }
    }

    /// The population frequency, if the known variants list the allele; otherwise `None`.
    pub fn frequency_if_listed(self) -> Option<f64> {
        match self {
            PopulationFrequency::Listed(frequency) => Some(frequency),
            _ => None,
        }
    }
}

impl KnownVariants {
    /// Checks the beginning of the file and its index, so that a wrong file is reported before hours of work. The content
    /// of a pipe can be read only once, so it is not checked.
    ///
    /// # Errors
    /// The file cannot be read, is no VCF file or does not fit the reference.
    pub fn check_file_start_and_index(&self, genome: &Reference) -> Result<(), Error> {
        let read_error = |source| genuma_reads::Error::Read { path: self.path.clone(), source };
        if self.path.metadata().map_err(read_error)?.is_file() {
            PopulationFrequencies::check_vcf_header_and_index(&self.path, genome)?;
        }
        Ok(())
    }

    /// Reads the population frequencies of the small variants among `changes`, and adds lines to the ledger.
    ///
    /// # Errors
    /// The file cannot be read, is no VCF file or does not fit the reference.
    pub(crate) fn read_frequencies_of_changes<'a>(
        &self,
        changes: impl Iterator<Item = &'a Change>,
        genome: &Reference,
        ledger: &mut Ledger,
    ) -> Result<KnownVariantFrequencies, Error> {
        let mut variants: Vec<SmallVariant> = changes.filter_map(small_variant).collect();
        variants.sort_unstable();
        variants.dedup();
        let found = PopulationFrequencies::read_vcf_file(&self.path, genome, &variants)?;
        let listed = variants.iter().filter(|variant| found.frequency_of_variant(variant).is_some()).count() as u64;
        ledger.append_produced_line("known", "changes that the known variants have", listed);
        ledger.append_skipped_line(
            "known",
            "known variants without a frequency: 0.001 is assumed",
            found.num_variants_without_frequency,
        );
        Ok(KnownVariantFrequencies(Some(found)))
    }
}

/// Population frequencies of the small variants of a call; empty if no known variants are given.
#[derive(Debug, Default)]
pub struct KnownVariantFrequencies(Option<PopulationFrequencies>);

impl KnownVariantFrequencies {
    /// Looks up the population frequency of a change.
    pub(crate) fn frequency_of_change(&self, change: &Change) -> PopulationFrequency {
        match self.0.as_ref().zip(small_variant(change)) {
            None => PopulationFrequency::NoKnownVariants,
            Some((known, variant)) => {
                known.frequency_of_variant(&variant).map_or(PopulationFrequency::Unlisted, PopulationFrequency::Listed)
            }
        }
    }
}

/// The change as a small variant (SNV, MNV or indel); `None` for junctions and novel sequence.
fn small_variant(change: &Change) -> Option<SmallVariant> {
    match change {
        Change::Allele { chrom, pos, reference, alternative } => {
            Some(SmallVariant::from_untrimmed_alleles(*chrom, *pos, reference, alternative))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_alleles_are_more_probably_inherited() {
        let p = &GENOTYPE_MODEL_PARAMS;
        let with_normal = p.missed_germline_log_odds;
        let odds = [
            PopulationFrequency::Unlisted,
            PopulationFrequency::Listed(1e-9),
            PopulationFrequency::Listed(1e-4),
            PopulationFrequency::Listed(0.3),
        ]
        .map(|frequency| frequency.germline_prior_log_odds(with_normal));
        assert_eq!(odds[0], odds[1]);
        assert!(odds[0] < 0.0 && odds[1] < odds[2] && odds[2] < odds[3], "{odds:?}");
        assert!(PopulationFrequency::NoKnownVariants.germline_prior_log_odds(with_normal) > odds[0]);
        // Without a normal nothing was compared yet.
        let without_normal = PopulationFrequency::Unlisted.germline_prior_log_odds(p.germline_log_odds);
        assert!(without_normal > odds[0] && without_normal < odds[3]);
    }
}
