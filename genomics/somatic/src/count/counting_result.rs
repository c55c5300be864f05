//! Result of the counting unit: candidates are selected by depths and error rates that are known only after all
//! partitions are counted.

use genuma_pair::assay::RandomOrFixedEnds;
use genuma_pair::library::LibraryTally;
use genuma_pair::library::metrics::SamplePairLibraryMetrics;
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_pair::marker_kmers::MarkerTally;
use genuma_pair::marker_kmers::contig_copies_and_screen::{ContigCopiesAndScreen, ReadCountAndKmersPerRead};
use genuma_pair::pair_summary::ReferenceFreePairEvidence;
use genuma_reads::packed_reads::PackedReadBlockIndex;
use genuma_reads::{TUMOUR_SAMPLE, TrimCounts};
use serde::{Deserialize, Serialize};

use super::CountingUnit;
use super::packed_reads_budget::PackedReadsOutcome;
use super::pair_processor::TrimAndLibraryStats;
use super::partition_result::{InputTotalsBySample, PartitionCountResult};
use crate::candidate_kmer::{
    CandidateKmer, KmerDepths, POOLED_SELECTOR_NUMBER, group_candidates_by_kmer, median_kmer_depth_of_spectrum,
    min_count_above_errors_at_depth,
};
use crate::ledger::{
    Ledger, MOST_TUMOUR_KMERS_NOT_IN_NORMAL_LEDGER_LINE, OFF_TARGET_LEDGER_LINE, SHALLOW_NORMAL_LEDGER_LINE,
    TOO_MANY_VARIANTS_LEDGER_LINE,
};
use crate::target_depth::{DepthConversionReadProperties, TargetDepths, TargetMarkerCounts};
use crate::tumour_alleles::TumourAlleles;
use crate::tumour_in_normal;

/// Result of counting the k-mers of all samples.
#[derive(Serialize, Deserialize)]
pub struct CountingResult {
    /// Candidate k-mers, sorted by k-mer.
    pub candidates: Vec<CandidateKmer>,
    /// k-mer spectrum of each sample: number of distinct k-mers by number of occurrences.
    pub spectra: Vec<Vec<u64>>,
    /// Number of bases of each sample.
    pub bases: Vec<u64>,
    /// For each tumour the number of roots at which it and the normal have different alleles, as two people do.
    pub genotype_mismatches: Vec<u64>,
    /// For each tumour the alleles that it clearly has, with their counts in the normal.
    pub tumour_alleles: Vec<TumourAlleles>,
    /// For each sample, counts of trimmed reads and bases.
    pub trimmed: Vec<TrimCounts>,
    /// For each tumour, the library metrics of the tumour and the normal.
    pub libraries: Vec<SamplePairLibraryMetrics>,
    /// Depths of reference contigs and of screened sequences in the normal and the first tumour, estimated from marker
    /// k-mers.
    pub known_sequences: ContigCopiesAndScreen,
    /// Depths of the targets; `None` without targets.
    pub target_depths: Option<TargetDepths>,
    /// For each tumour, what the k-mer sketch of the tumour and the normal shows: sites, depths, and a summary with
    /// identity and contamination; empty if no sketch was taken, and in a tumour-only call.
    pub pair_evidence: Vec<ReferenceFreePairEvidence>,
    /// For each tumour, properties of its library and of the normal's library, such as depth, error rate and assay.
    pub library_models: Vec<SamplePairLibraryProperties>,
    /// Upper limit of the ratio of the allele fraction in the normal to that in the tumour that tumour cells in the
    /// normal cause, the largest over all tumours; 0 if the tumour alleles show no tumour cells in the normal, or are
    /// too few.
    pub tumour_in_normal_ratio: f64,
    /// Index of the packed reads in the work folder; `None` if they were not stored.
    pub packed_reads: Option<PackedReadBlockIndex>,
    /// Number of items that counting produced and skipped, with reasons.
    pub ledger: Ledger,
}

impl CountingResult {
    /// Median k-mer depth of the first tumour, without error k-mers.
    pub(crate) fn median_kmer_depth_of_first_tumour(&self) -> f64 {
        median_kmer_depth_of_spectrum(&self.spectra[usize::from(TUMOUR_SAMPLE)])
    }
}

/// Maximum share of a tumour's k-mers that may be absent from the normal. Above it, novel k-mers are skipped, unless
/// the assay is targeted. Two people differ in a twentieth of their k-mers, a tumour and its normal in a thousandth. If
/// the tissue was fixed, the normal may lack a fifth at a depth of 30. Without this limit, all sequence of another
/// species would be assembled.
const MAX_ABSENT_KMER_SHARE: f64 = 0.5;

/// For each selector, the upper limit, in percent, of the ratio of the allele fraction in the normal to that in the
/// tumour that tumour cells in the normal cause; for the pooled selector, the largest of all tumours. 0 where the
/// tumour alleles show no tumour cells in the normal, or are too few.
fn tumour_in_normal_by_selector(alleles: &[TumourAlleles], modal_depth: f64) -> Vec<u8> {
    let percent =
        |alleles: &TumourAlleles| match tumour_in_normal::estimate_fraction_ratio_before_calls(alleles, modal_depth) {
            Some(ratio) if ratio.low >= MIN_TUMOUR_IN_NORMAL_RATIO => (100.0 * ratio.high).ceil() as u8,
            _ => 0,
        };
    let of_tumours: Vec<u8> = alleles.iter().map(percent).collect();
    let pooled = of_tumours.iter().copied().max().unwrap_or(0);
    std::iter::once(pooled).chain(of_tumours).collect()
}

/// Minimum ratio of the allele fraction in the normal to that in the tumour (lower end of its interval) at which the
/// normal counts as containing tumour cells. Chosen: a lower ratio is tolerated in every normal.
const MIN_TUMOUR_IN_NORMAL_RATIO: f64 = 0.02;

/// Converts values by sample to values by selector number: index 0 ([`POOLED_SELECTOR_NUMBER`]) is the sum over all
/// tumours, the other indices are single tumours.
fn values_by_selector(of_samples: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut by_rule: Vec<f64> = of_samples.into_iter().collect();
    by_rule[usize::from(POOLED_SELECTOR_NUMBER)] = by_rule.iter().skip(TUMOUR_SAMPLE.into()).sum();
    by_rule
}

/// Minimum number of occurrences of a k-mer that is certainly not an error. Chosen; a higher value misses more k-mers
/// of shallow samples.
const MIN_SOLID_COUNT: usize = 8;

/// Number of distinct k-mers of a sample that occur at least [`MIN_SOLID_COUNT`] times, so that they are certainly not
/// errors.
pub(crate) fn count_distinct_solid_kmers(spectrum: &[u64]) -> u64 {
    spectrum.iter().skip(MIN_SOLID_COUNT).sum()
}

impl CountingUnit<'_> {
    /// Builds the result of the counting unit from the merged results of all partitions.
    pub(super) fn build_counting_result(
        &self,
        all: PartitionCountResult,
        parts: u64,
        packed_outcome: PackedReadsOutcome,
    ) -> CountingResult {
        let mut all = if self.samples.has_normal() { all } else { all.without_normal_comparison() };
        let mut ledger = Ledger::default();
        let each = match packed_outcome {
            PackedReadsOutcome::PerShard => "each counted from the data of all shards",
            _ => "each counted in its own pass over the reads",
        };
        ledger.append_produced_line("count", &format!("partitions of the k-mer space, {each}"), parts);
        ledger.append_produced_line(
            "count",
            "bytes of the k-mer spill file in the work folder, at most",
            all.spill_peak_bytes,
        );
        packed_outcome.add_to_ledger(&mut ledger);
        self.add_reads_to_ledger(&all, &mut ledger);
        let tumour_in_normal_ratio = self.keep_final_candidates(&mut all, &mut ledger);
        let PartitionCountResult { spectra, totals, library_models, .. } = all;
        let InputTotalsBySample { bases, stats: TrimAndLibraryStats { trimmed, libraries: tallies, .. }, .. } = totals;
        let depth = |i: usize| self.median_base_depth(&spectra[i], bases[i], tallies[i].num_pairs());
        let pair = |i: usize| {
            let depths = [depth(0), depth(i)];
            SamplePairLibraryMetrics::from_tallies([&tallies[0], &tallies[i]], [&trimmed[0], &trimmed[i]], depths)
        };
        let libraries: Vec<SamplePairLibraryMetrics> = (1..self.samples.num_samples()).map(pair).collect();
        CountingResult {
            known_sequences: self.known_sequences(all.marker_tally, &tallies),
            target_depths: all.target_tally.map(|tally| self.target_depths(&tally, &bases, &tallies, &libraries)),
            candidates: all.candidates,
            spectra,
            bases,
            genotype_mismatches: all.genotype_mismatches,
            tumour_alleles: all.tumour_alleles,
            trimmed,
            libraries,
            pair_evidence: all.pair_evidence,
            library_models,
            tumour_in_normal_ratio,
            packed_reads: packed_outcome.into_packed_reads_index(),
            ledger,
        }
    }

    /// Adds what was read and trimmed of each sample to the ledger.
    fn add_reads_to_ledger(&self, all: &PartitionCountResult, ledger: &mut Ledger) {
        let TrimAndLibraryStats { trimmed, aligned, .. } = &all.totals.stats;
        let others = self.samples.tumour_names().len().saturating_sub(1) as u64;
        if others > 0 && all.marker_tally.is_some() {
            let what = "tumours beyond the first, for which contig depths, sex and screened sequences are not reported";
            ledger.append_skipped_line("count", what, others);
        }
        for (aligned, sample) in aligned.iter().zip((0..).map(|sample| self.samples.name_in_messages(sample))) {
            if aligned.records > 0 {
                ledger.append_produced_line("count", &format!("{sample}: records of aligned reads"), aligned.records);
            }
            if aligned.with_umi > 0 {
                let line = format!("{sample}: reads whose UMI was taken from tags or from their bases");
                ledger.append_produced_line("count", &line, aligned.with_umi);
            }
            for (what, n) in aligned.describe_skipped_and_missing_counts() {
                ledger.append_skipped_line("count", &format!("{sample}: {what}"), n);
            }
        }
        for (trimmed, sample) in trimmed.iter().zip((0..).map(|sample| self.samples.name_in_messages(sample))) {
            let mut made = |what: &str, n: u64| ledger.append_produced_line("count", &format!("{sample}: {what}"), n);
            made("pairs read", trimmed.pairs);
            made("fold-back reads", trimmed.fold_back_mates);
            let mut left_out =
                |what: &str, n: u64| ledger.append_skipped_line("count", &format!("{sample}: {what}"), n);
            left_out("adapter bases trimmed from reads longer than their fragment", trimmed.adapter_bases);
            left_out("bases trimmed from tails of quality 2 or less", trimmed.low_quality_bases);
            left_out("bases trimmed from poly-G tails", trimmed.poly_g_bases);
        }
        let fragment_ends = SamplePairLibraryProperties::random_or_fixed_ends_by_sample(&all.library_models);
        for (sample, _) in fragment_ends.iter().enumerate().filter(|(_, ends)| **ends == RandomOrFixedEnds::Fixed) {
            let what = "pairs of fragments with fixed ends (amplicons), each of which counts as a molecule";
            let line = format!("{}: {what}", self.samples.name_in_messages(sample));
            ledger.append_produced_line("count", &line, trimmed[sample].pairs);
        }
    }

    /// Removes the candidates that errors explain at the final depths and error rates, and those that are more frequent
    /// in the normal than its tumour cells explain. Also removes all novel k-mers if there are too many, or if most
    /// k-mers of the tumour are not in the normal (except with targets or a targeted assay). Sorts the others. Returns
    /// the upper limit of the ratio of the allele fraction in the normal to that in the tumour
    /// ([`CountingResult::tumour_in_normal_ratio`]).
    fn keep_final_candidates(&self, all: &mut PartitionCountResult, ledger: &mut Ledger) -> f64 {
        let too_many_novel = all.novel_candidates > self.max_novel_candidates();
        let PartitionCountResult { candidates, spectra, library_models, .. } = all;
        if too_many_novel {
            candidates.retain(CandidateKmer::is_branching);
        }
        candidates.sort_unstable();
        let depths_of_samples: Vec<f64> =
            spectra.iter().map(|spectrum| median_kmer_depth_of_spectrum(spectrum)).collect();
        let depths = values_by_selector(depths_of_samples.iter().copied());
        let error_rates = SamplePairLibraryProperties::pooled_then_tumour_error_rates(library_models);
        let has_error_rate = |p: &CandidateKmer| error_rates.get(usize::from(p.selector)).is_some_and(Option::is_some);
        candidates.retain(|p| {
            !p.needs_high_quality_bases() || has_error_rate(p) || p.is_in_repeat(depths[usize::from(p.selector)])
        });
        let in_normal = tumour_in_normal_by_selector(&all.tumour_alleles, depths_of_samples[0]);
        candidates.retain(|p| p.tumour_in_normal_percent <= in_normal[usize::from(p.selector)]);
        if self.genome_bases.is_none() {
            let depth = values_by_selector(KmerDepths::estimate_depths_from_spectra(spectra).kmer);
            candidates.retain(|p| {
                f64::from(p.tumour_count) >= min_count_above_errors_at_depth(depth[usize::from(p.selector)])
            });
        }
        ledger.append_produced_line("count", "candidate k-mers", group_candidates_by_kmer(candidates).count() as u64);
        // In a deep library recurrent errors make more candidates than a small panel has k-mers, but not as frequent
        // ones.
        let is_error = |p: &CandidateKmer| has_error_rate(p) && (p.tumour_count as usize) < MIN_SOLID_COUNT;
        let foreign = group_candidates_by_kmer(candidates).filter(|same| !same.iter().all(is_error)).count() as u64;
        self.drop_sequence_of_others(all, too_many_novel, foreign, ledger);
        f64::from(in_normal[usize::from(POOLED_SELECTOR_NUMBER)]) / 100.0
    }

    /// Removes the novel k-mers if most k-mers of the tumour, of which `foreign` are candidates, are not in the normal;
    /// not with targets or a targeted assay. `too_many_novel`: they were removed because of their number. Adds what was
    /// skipped to the ledger.
    fn drop_sequence_of_others(
        &self,
        all: &mut PartitionCountResult,
        too_many_novel: bool,
        foreign: u64,
        ledger: &mut Ledger,
    ) {
        let is_targeted =
            all.target_tally.is_some() || SamplePairLibraryProperties::has_targeted_assay(&all.library_models);
        if too_many_novel {
            // Off target, reads are few in both samples of a capture.
            let line = match (self.samples.has_normal(), is_targeted) {
                (false, _) => TOO_MANY_VARIANTS_LEDGER_LINE,
                (true, true) => OFF_TARGET_LEDGER_LINE,
                (true, false) => SHALLOW_NORMAL_LEDGER_LINE,
            };
            ledger.append_skipped_line("select", line, all.novel_candidates);
        }
        let known = if too_many_novel { 0 } else { all.reference_kmers };
        if known > 0 {
            let what = "tumour k-mers whose root the normal lacks but the reference has, so they are not novel";
            ledger.append_skipped_line("select", what, known);
        }
        let of_tumours =
            all.spectra.iter().skip(TUMOUR_SAMPLE.into()).map(|spectrum| count_distinct_solid_kmers(spectrum));
        // In a capture the k-mers of single off-target reads may be more than those of the targets.
        let max_absent = MAX_ABSENT_KMER_SHARE * of_tumours.max().unwrap_or(0) as f64;
        if !is_targeted && (foreign + known) as f64 > max_absent {
            let before = group_candidates_by_kmer(&all.candidates).count();
            all.candidates.retain(CandidateKmer::is_branching);
            let dropped = (before - group_candidates_by_kmer(&all.candidates).count()) as u64;
            ledger.append_skipped_line("select", MOST_TUMOUR_KMERS_NOT_IN_NORMAL_LEDGER_LINE, dropped);
        }
    }

    /// Median depth of a base in a sample, computed from the median k-mer depth and the mean read length; `None` if the
    /// spectrum does not show a depth.
    fn median_base_depth(&self, spectrum: &[u64], bases: u64, pairs: u64) -> Option<f64> {
        let (kmer, length) = (median_kmer_depth_of_spectrum(spectrum), bases as f64 / (2 * pairs).max(1) as f64);
        let starts = length + 1.0 - f64::from(self.params.k);
        (kmer > 0.0 && starts >= 1.0).then(|| kmer * length / starts)
    }

    /// Estimates the depths of reference contigs and screened sequences in the normal and the first tumour.
    fn known_sequences(&self, markers: Option<MarkerTally>, tallies: &[LibraryTally]) -> ContigCopiesAndScreen {
        let reads = [0, 1].map(|i: usize| {
            let num_reads = (2 * tallies[i].num_pairs()) as f64;
            let mean_length = tallies[i].num_bases() as f64 / num_reads.max(1.0);
            let kmers_per_read = (mean_length + 1.0 - f64::from(self.params.k)).max(1.0);
            ReadCountAndKmersPerRead { num_reads, kmers_per_read }
        });
        let mut known = markers.map_or_else(ContigCopiesAndScreen::default, |marks| {
            ContigCopiesAndScreen::from_marker_tally(&marks, reads)
        });
        if !self.samples.has_normal() {
            // Copy numbers and sex are those of the normal and of the tumour relative to it.
            known.karyotype = None;
        }
        known
    }

    /// Estimates the depth of each target in each sample. `bases` and `tallies` are those of the samples, `libraries`
    /// those of the tumours.
    fn target_depths(
        &self,
        counts: &TargetMarkerCounts,
        bases: &[u64],
        tallies: &[LibraryTally],
        libraries: &[SamplePairLibraryMetrics],
    ) -> TargetDepths {
        let normal = libraries.first().map(|pair| &pair.normal);
        let samples = normal.into_iter().chain(libraries.iter().map(|pair| &pair.tumor)).zip(bases.iter().zip(tallies));
        let reads = samples.map(|(library, (&bases, tally))| DepthConversionReadProperties {
            bases: bases as f64 / (2 * tally.num_pairs()).max(1) as f64,
            error_rate: library.errors.rate.map_or(0.0, |rate| rate.value),
        });
        TargetDepths::from_marker_counts(counts, &reads.collect::<Vec<_>>(), self.params.k)
    }
}
