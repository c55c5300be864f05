//! Result of counting one partition of the k-mers, and merging of several.

use genuma_kmers::Partition;
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_pair::marker_kmers::MarkerTally;
use genuma_pair::pair_summary::ReferenceFreePairEvidence;
use serde::{Deserialize, Serialize};

use super::Error;
use super::pair_processor::TrimAndLibraryStats;
use crate::candidate_kmer::CandidateKmer;
use crate::target_depth::TargetMarkerCounts;
use crate::tumour_alleles::TumourAlleles;

/// Result of counting the k-mers of one partition, or of several partitions merged.
#[derive(Serialize, Deserialize)]
pub struct PartitionCountResult {
    pub(super) partition: Partition,
    pub(super) candidates: Vec<CandidateKmer>,
    pub(super) spectra: Vec<Vec<u64>>,
    pub(super) genotype_mismatches: Vec<u64>,
    pub(super) tumour_alleles: Vec<TumourAlleles>,
    /// Number of novel k-mers, including those above the limit, which were not stored.
    pub(super) novel_candidates: u64,
    /// Number of novel k-mers that were skipped because the reference contains them.
    pub(super) reference_kmers: u64,
    /// Maximum size of the spill file in bytes.
    pub(super) spill_peak_bytes: u64,
    /// Counts of the marker k-mers of known sequences.
    pub(super) marker_tally: Option<MarkerTally>,
    /// Counts of the marker k-mers of the targets.
    pub(super) target_tally: Option<TargetMarkerCounts>,
    /// For each tumour, what its k-mer sketch shows: see [`CountingResult::pair_evidence`]. Only the first partition
    /// has it.
    pub(super) pair_evidence: Vec<ReferenceFreePairEvidence>,
    /// For each tumour, properties of its library and of the normal's library, such as depth, error rate and assay.
    /// Equal for all partitions.
    pub(super) library_models: Vec<SamplePairLibraryProperties>,
    /// Numbers of bases, k-mers and reads. Equal for all partitions.
    pub(super) totals: InputTotalsBySample,
}

/// Numbers of bases and k-mers of each sample, and statistics of the reads of all samples.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct InputTotalsBySample {
    pub(super) bases: Vec<u64>,
    pub(super) kmers: Vec<u64>,
    pub(super) stats: TrimAndLibraryStats,
}

/// Merges the results of all partitions.
pub(super) fn merge_all_partitions(results: Vec<PartitionCountResult>) -> Result<PartitionCountResult, Error> {
    let all = results.into_iter().map(Ok).reduce(|all, result| all?.merge(result?));
    all.unwrap_or_else(|| Err(Error::Input("there is no partition to count".into())))
}

impl PartitionCountResult {
    /// Removes the results that compare tumour and normal, for a tumour-only call, in which the reference replaces the
    /// normal.
    pub(super) fn without_normal_comparison(self) -> PartitionCountResult {
        PartitionCountResult {
            genotype_mismatches: vec![0; self.genotype_mismatches.len()],
            tumour_alleles: vec![TumourAlleles::default(); self.tumour_alleles.len()],
            pair_evidence: Vec::new(),
            ..self
        }
    }

    /// Merges the results of two disjoint sets of partitions.
    fn merge(mut self, other: PartitionCountResult) -> Result<PartitionCountResult, Error> {
        if self.totals != other.totals {
            return Err(Error::Input(
                "the reads changed while they were counted: start again without --resume and do not modify the input files".into(),
            ));
        }
        self.candidates.extend(other.candidates);
        for (all, partition) in self.spectra.iter_mut().zip(&other.spectra) {
            all.iter_mut().zip(partition).for_each(|(a, p)| *a += p);
        }
        let same = match (&mut self.marker_tally, &other.marker_tally) {
            (Some(marks), Some(others)) => marks.merge_partition_counts(others),
            (one, other) => one.is_none() && other.is_none(),
        };
        if !same {
            return Err(Error::Input(
                "the reference or the screened sequences changed while k-mers were counted: start again without --resume".into(),
            ));
        }
        let same = match (&mut self.target_tally, &other.target_tally) {
            (Some(tally), Some(others)) => tally.merge_partition_counts(others),
            (one, other) => one.is_none() && other.is_none(),
        };
        if !same {
            return Err(Error::Input(
                "the reference or the targets changed while k-mers were counted: start again without --resume".into(),
            ));
        }
        self.genotype_mismatches
            .iter_mut()
            .zip(other.genotype_mismatches)
            .for_each(|(all, partition)| *all += partition);
        self.tumour_alleles
            .iter_mut()
            .zip(&other.tumour_alleles)
            .for_each(|(all, partition)| all.merge_alleles(partition));
        if self.pair_evidence.is_empty() {
            self.pair_evidence = other.pair_evidence;
        }
        if self.library_models != other.library_models {
            return Err(Error::Input(
                "the saved results of two partitions do not match (library statistics): start again without --resume"
                    .into(),
            ));
        }
        self.novel_candidates += other.novel_candidates;
        self.reference_kmers += other.reference_kmers;
        self.spill_peak_bytes = self.spill_peak_bytes.max(other.spill_peak_bytes);
        Ok(self)
    }
}
