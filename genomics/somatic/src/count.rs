//! The counting unit, the first pass over the reads: counts the k-mers of all samples and selects candidate k-mers.
//!
//! If the k-mers fit neither in memory nor in the scratch space, they are divided into partitions. The partitions are
//! counted one after the other, each in its own pass over all reads. All k-mers of a root are in one partition, and
//! [`CandidateSelector`](crate::candidate_kmer::CandidateSelector) uses only the counts of one root and totals over all
//! reads. So the candidates and spectra of all partitions together equal those of a count in one pass. The result of
//! each partition is stored, so that an interrupted run can resume.
//!
//! If one pass suffices and the scratch space is large enough, this pass also writes the packed reads for later passes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use genuma_kmers::{
    BinGrid, CountForecast, CountParams, CountResult, ExpectedKmers, MAX_PARTITIONS, MAX_SAMPLES, Partition,
    PartitionOutcome, PreparePair, RootCounters, ShardKmerIndex, count_in_partitions,
};
use genuma_pair::assay::{Assay, AssayHints, RandomOrFixedEnds};
use genuma_pair::check::expected_pairs_per_sample;
use genuma_pair::library::metrics::SamplePairLibraryMetrics;
use genuma_pair::library::{LibraryTally, LibraryTallyCollector, RawAndTrimmedPair};
use genuma_pair::library_model::SamplePairLibraryProperties;
use genuma_pair::marker_kmers::contig_copies_and_screen::{ContigCopiesAndScreen, ReadAndKmerTotals};
use genuma_pair::marker_kmers::{MarkerKmers, MarkerTally};
use genuma_pair::pair_summary::ReferenceFreePairEvidence;
use genuma_pair::sketch::{KmerSketch, SketchParams};
use genuma_pair::sketches_per_tumour::{SketchBuilders, SketchWriters};
use genuma_reads::packed_reads::{self, PackedPairRecorder, PackedReadBlockIndex, PackedReadsWriter};
use genuma_reads::targets::Targets;
use genuma_reads::{Lane, ReadEstimate, ReadPair, RecordCounts, TUMOUR_SAMPLE, TrimCounts};
use genuma_work::spill::{self, LocalCopyOfObjectRange};
use genuma_work::unit::{self, UnitStore};
use genuma_work::{ProgressCounters, ProgressListener};
use serde::{Deserialize, Serialize};

use crate::candidate_kmer::{
    CandidateKmer, KmerDepths, POOLED_SELECTOR_NUMBER, group_by_kmer, median_kmer_depth,
    min_count_above_errors_at_depth,
};
use crate::candidate_selectors::CandidateSelectors;
use crate::kmer_lookup::KmerLookup;
use crate::ledger::{
    Ledger, MOST_TUMOUR_KMERS_NOT_IN_NORMAL_LEDGER_LINE, OFF_TARGET_LEDGER_LINE, SHALLOW_NORMAL_LEDGER_LINE,
    TOO_MANY_VARIANTS_LEDGER_LINE,
};
use crate::pair_preprocessor::PairPreprocessor;
use crate::reference_kmers::find_reference_kmers;
use crate::sample_names::SampleNames;
use crate::target_depth::{DepthConversionReadProperties, TargetDepths, TargetMarkerCounts, TargetMarkers};
use crate::tumour_alleles::TumourAlleles;
use crate::tumour_in_normal;

/// Why counting the k-mers fails.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The reference cannot be read.
    #[error(transparent)]
    Reference(#[from] genuma_reads::Error),
    /// k-mers could not be counted.
    #[error(transparent)]
    Kmers(#[from] genuma_kmers::Error),
    /// The stored result of a partition is unusable.
    #[error(transparent)]
    Unit(#[from] unit::Error),
    /// The input gives no result, for example because a sample has no k-mers, or the scratch space is too small.
    /// Contains the message.
    #[error("{0}")]
    Input(String),
}

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
    /// identity and contamination; empty if no sketch was taken.
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

/// Path of the packed reads in the work folder.
pub(crate) fn packed_reads_path(store: &UnitStore) -> PathBuf {
    store.work_folder.join("reads.bins")
}

/// Expected number of bytes of recruited pairs in the work folder for each base of the reads. They are stored in
/// addition to the packed reads.
const RECRUITED_BYTES_PER_BASE: f64 = 1.0 / 16.0;

/// Number of bytes of scratch space to use for the packed reads. `None` if their size cannot be estimated, or if the
/// scratch space cannot hold them in addition to the k-mers of a single counting pass and, later, the recruited pairs.
pub fn packed_reads_budget_bytes(
    params: &CountParams,
    samples: usize,
    expected: &ExpectedKmers,
    estimate: &ReadEstimate,
) -> Option<u64> {
    let budget_bytes = min_packed_reads_bytes(params, estimate);
    let left = params.max_scratch_bytes.checked_sub(budget_bytes)?;
    let context = CountParams { max_scratch_bytes: left, ..params.clone() };
    let fits = num_partitions(&context, samples, expected) == Some(1) && left >= expected_recruited_bytes(estimate);
    (fits && estimate.packed_bytes > 0).then_some(budget_bytes)
}

/// Number of bytes of scratch space that suffice for the packed reads together with the spilled k-mers of one counting
/// pass, and later with the recruited pairs.
pub fn scratch_bytes_for_packed_reads(
    params: &CountParams,
    samples: usize,
    expected: &ExpectedKmers,
    estimate: &ReadEstimate,
) -> u64 {
    let none = CountParams { max_scratch_bytes: 0, ..params.clone() };
    let spill_peak_bytes = match num_partitions(&none, samples, expected) {
        Some(1) => 0,
        _ => expected.super_kmer_bytes + expected.super_kmer_bytes / 16,
    };
    min_packed_reads_bytes(params, estimate) + spill_peak_bytes.max(expected_recruited_bytes(estimate))
}

/// Number of partitions into which the k-mers of `samples` samples must be divided: see
/// [`CountParams::partitions_needed`].
fn num_partitions(params: &CountParams, samples: usize, expected: &ExpectedKmers) -> Option<u32> {
    match samples {
        0..=2 => params.partitions_needed::<2>(expected),
        3 | 4 => params.partitions_needed::<4>(expected),
        _ => params.partitions_needed::<MAX_SAMPLES>(expected),
    }
}

/// Expected memory and scratch use of counting the k-mers of `samples` samples: see
/// [`CountParams::forecast_resources`].
pub fn forecast_counting_resources(
    params: &CountParams,
    samples: usize,
    expected: &ExpectedKmers,
) -> Option<CountForecast> {
    match samples {
        0..=2 => params.forecast_resources::<2>(expected),
        3 | 4 => params.forecast_resources::<4>(expected),
        _ => params.forecast_resources::<MAX_SAMPLES>(expected),
    }
}

/// Number of bytes to reserve for the packed reads: their estimated size, a sixteenth as margin, and a block for each
/// thread, because the last block of a thread is not full.
fn min_packed_reads_bytes(params: &CountParams, estimate: &ReadEstimate) -> u64 {
    estimate.packed_bytes + estimate.packed_bytes / 16 + (params.threads * packed_reads::FULL_BLOCK_BYTES) as u64
}

/// Expected size in bytes of the recruited pairs in the work folder.
fn expected_recruited_bytes(estimate: &ReadEstimate) -> u64 {
    (estimate.bases as f64 * RECRUITED_BYTES_PER_BASE) as u64
}

/// Whether the packed reads were stored, or why they were not.
enum PackedReadsOutcome {
    Complete(PackedReadBlockIndex),
    /// Each shard of the reads has its own packed reads (distributed call).
    PerShard,
    /// The scratch space is too small for the packed reads, which need this number of bytes.
    ScratchTooSmall(u64),
    /// The packed reads exceeded their limit of this number of bytes.
    LimitExceeded(u64),
    /// The file of the packed reads, with a limit of this number of bytes, could not be written.
    WriteFailed(u64),
}

impl PackedReadsOutcome {
    /// Adds a line about the packed reads to the ledger.
    fn add_to_ledger(&self, ledger: &mut Ledger) {
        let mut no = |why: &str, bytes| {
            let what =
                format!("bytes of packed reads that were not written, {why}: later passes read the input files again");
            ledger.add_skipped("count", &what, bytes);
        };
        match self {
            // Its bytes go by which thread had which pairs.
            PackedReadsOutcome::Complete(copied) => {
                ledger.add_produced("count", PACKED_READS_LEDGER_LINE, copied.num_pairs())
            }
            PackedReadsOutcome::PerShard => {}
            PackedReadsOutcome::ScratchTooSmall(bytes) => no("because the scratch space is too small", *bytes),
            PackedReadsOutcome::LimitExceeded(bytes) => no("because they exceeded this limit", *bytes),
            PackedReadsOutcome::WriteFailed(bytes) => no("because of a write error", *bytes),
        }
    }
}

/// Name of the ledger line that counts the read pairs stored as packed reads in the work folder.
pub const PACKED_READS_LEDGER_LINE: &str = "pairs in the packed reads in the work folder, which later passes read";

/// Processes the read pairs of one thread: trims them, updates library statistics and the k-mer sketches, and writes
/// packed reads.
struct PairProcessor<'a, 'b> {
    preprocessor: PairPreprocessor,
    observer: LibraryTallyCollector,
    recorder: Option<PackedPairRecorder<'a>>,
    /// Writers of the k-mer sketches; `None` if an earlier pass has made the sketches.
    sketch_writers: Option<SketchWriters<'b>>,
}

impl<'a, 'b> PairProcessor<'a, 'b> {
    /// Creates a processor for `k`-mers. `expected` is the expected number of pairs of each sample.
    fn new(
        k: u32,
        expected: &[u64],
        packed_writer: Option<&'a PackedReadsWriter>,
        sketches: Option<&'b SketchBuilders>,
    ) -> Self {
        let (preprocessor, observer) =
            (PairPreprocessor::new(k, expected.len()), LibraryTallyCollector::with_expected_pairs(expected));
        let (recorder, sketch_writers) =
            (packed_writer.map(PackedReadsWriter::new_recorder), sketches.map(SketchBuilders::new_writers));
        PairProcessor { preprocessor, observer, recorder, sketch_writers }
    }
}

/// Trimming and library statistics of each sample, summed over all threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct ReadStats {
    trimmed: Vec<TrimCounts>,
    libraries: Vec<LibraryTally>,
    /// For each sample, record counts of its BAM and CRAM files, and of FASTQ files whose reads contain UMIs.
    aligned: Vec<RecordCounts>,
}

impl CountingResult {
    /// Median k-mer depth of the first tumour, without error k-mers.
    pub(crate) fn median_kmer_depth_of_first_tumour(&self) -> f64 {
        median_kmer_depth(&self.spectra[usize::from(TUMOUR_SAMPLE)])
    }
}

impl ReadStats {
    fn with_samples(samples: usize) -> ReadStats {
        let (trimmed, aligned) = (vec![TrimCounts::default(); samples], vec![RecordCounts::default(); samples]);
        ReadStats { trimmed, libraries: vec![LibraryTally::default(); samples], aligned }
    }

    fn add(&mut self, other: &ReadStats) {
        self.trimmed.iter_mut().zip(&other.trimmed).for_each(|(sum, partition)| sum.merge_counts(partition));
        self.libraries.iter_mut().zip(&other.libraries).for_each(|(sum, partition)| sum.merge_tally(partition));
        self.aligned.iter_mut().zip(&other.aligned).for_each(|(sum, partition)| sum.merge_counts(partition));
    }
}

/// Sums the statistics of all threads after all lanes were read. Also returns their writers of packed reads.
fn collect_read_stats<'a>(
    recorders_by_thread: Vec<PairProcessor<'a, '_>>,
    lanes: &[Lane],
    samples: usize,
) -> (ReadStats, Vec<PackedPairRecorder<'a>>) {
    let (mut stats, mut recorders) = (ReadStats::with_samples(samples), Vec::new());
    for (lane, tally) in lanes.iter().filter_map(|lane| Some((lane, lane.record_counts()?))) {
        stats.aligned[usize::from(lane.sample)].merge_counts(tally);
    }
    for PairProcessor { preprocessor, observer, recorder, .. } in recorders_by_thread {
        let (trimmed, libraries) = (preprocessor.trim_counts().collect(), observer.into_tallies());
        stats.add(&ReadStats { trimmed, libraries, aligned: Vec::new() });
        recorders.extend(recorder);
    }
    (stats, recorders)
}

impl PreparePair for PairProcessor<'_, '_> {
    fn prepare<'a>(&mut self, raw: ReadPair<'a>, sample: u8, added: &mut Vec<u8>) -> ReadPair<'a> {
        let cut = self.preprocessor.prepare(raw, sample, added);
        self.observer.add_pair(
            &RawAndTrimmedPair { raw, trimmed: cut, packed: self.preprocessor.packed_bases_of_last_pair(sample) },
            sample,
        );
        if let Some(sketch_writers) = &mut self.sketch_writers {
            sketch_writers.add_pair(cut, self.preprocessor.packed_bases_of_last_pair(sample), sample);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.push(cut, sample);
        }
        cut
    }
}

/// Input and parameters of the counting unit.
pub struct CountingUnit<'a> {
    /// Lanes of reads of all samples.
    pub lanes: &'a [Lane],
    /// Names of the normal and the tumours.
    pub samples: &'a SampleNames,
    /// Counting parameters for all partitions together.
    pub params: CountParams,
    /// Minimum number of occurrences of a candidate k-mer in a tumour.
    pub min_tumour_count: u32,
    /// The assay that the user specified; `None` if it is to be detected from the reads.
    pub assay: Option<Assay>,
    /// Number of bases A, C, G and T of the reference; `None` without a reference.
    pub genome_bases: Option<u64>,
    /// FASTA file of the reference. Novel k-mers that it contains are skipped.
    pub reference: Option<&'a Path>,
    /// FASTA file of sequences to screen for, such as viruses.
    pub screen: Option<&'a Path>,
    /// Targets whose depth is estimated. They require a reference.
    pub targets: Option<&'a Targets>,
    /// Receives the progress of each pass over the reads.
    pub progress: &'a dyn ProgressListener,
}

/// Data that all counting passes use.
#[derive(Clone, Copy)]
struct CountContext<'a> {
    /// Marker k-mers, whose counts are recorded.
    recorded_kmers: &'a RecordedKmers,
    /// Expected number of pairs of each sample.
    expected_pairs: &'a [u64],
}

/// Marker k-mers, whose counts are recorded while all k-mers are counted.
struct RecordedKmers {
    /// Marker k-mers of the reference contigs and of the sequences to screen for.
    marker_kmers: Option<MarkerKmers>,
    /// Marker k-mers of the targets.
    target_markers: Option<TargetMarkers>,
}

/// What scattering a shard of the reads returns in addition to the file with its k-mers and packed reads.
#[derive(Serialize, Deserialize)]
pub struct ShardScatterResult {
    /// Index of the shard's k-mers in the file.
    pub shard: ShardKmerIndex,
    /// Index of the shard's packed reads in the file.
    pub packed_reads: PackedReadBlockIndex,
    /// Trimming and library statistics of the shard.
    read_stats: ReadStats,
    /// For each tumour, the k-mer sketch of the shard's reads of this tumour and the normal.
    sketches: Vec<KmerSketch>,
}

/// Result of counting the k-mers of one partition, or of several partitions merged.
#[derive(Serialize, Deserialize)]
pub struct PartitionCountResult {
    partition: Partition,
    candidates: Vec<CandidateKmer>,
    spectra: Vec<Vec<u64>>,
    genotype_mismatches: Vec<u64>,
    tumour_alleles: Vec<TumourAlleles>,
    /// Number of novel k-mers, including those above the limit, which were not stored.
    novel_candidates: u64,
    /// Number of novel k-mers that were skipped because the reference contains them.
    reference_kmers: u64,
    /// Maximum size of the spill file in bytes.
    spill_peak_bytes: u64,
    /// Counts of the marker k-mers of known sequences.
    marker_tally: Option<MarkerTally>,
    /// Counts of the marker k-mers of the targets.
    target_tally: Option<TargetMarkerCounts>,
    /// For each tumour, what its k-mer sketch shows: see [`CountingResult::pair_evidence`]. Only the first partition
    /// has it.
    pair_evidence: Vec<ReferenceFreePairEvidence>,
    /// For each tumour, properties of its library and of the normal's library, such as depth, error rate and assay.
    /// Equal for all partitions.
    library_models: Vec<SamplePairLibraryProperties>,
    /// Numbers of bases, k-mers and reads. Equal for all partitions.
    totals: SampleTotals,
}

/// Numbers of bases and k-mers of each sample, and statistics of its reads.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct SampleTotals {
    bases: Vec<u64>,
    kmers: Vec<u64>,
    stats: ReadStats,
}

/// Maximum share of a tumour's k-mers that may be absent from the normal. Above it, novel k-mers are skipped. Two
/// people differ in a twentieth of their k-mers, a tumour and its normal in a thousandth. If the tissue was fixed, the
/// normal may lack a fifth at a depth of 30. Without this limit, all sequence of another species would be assembled.
const MAX_ABSENT_KMER_SHARE: f64 = 0.5;

/// Maximum number of novel k-mers of a tumour for small genomes. If there are more, all novel k-mers are skipped.
/// Chosen: a higher value takes more memory.
const MAX_NOVEL_CANDIDATES: u64 = 64_000_000;
/// Maximum number of novel k-mers of a tumour for each base of the reference, if this gives more than
/// [`MAX_NOVEL_CANDIDATES`]. Sequencing errors make one novel k-mer in 60 bases at a depth of 30; a normal with a depth
/// below 5 misses one in 30 bases by chance.
const MAX_NOVEL_CANDIDATES_PER_BASE: f64 = 1.0 / 30.0;

/// Bytes of memory to reserve for candidate k-mers, for each base of the reference: for the final k-mers, and half as
/// much while they are collected.
pub const CANDIDATE_KMER_BYTES_PER_REFERENCE_BASE: f64 = 1.2;

/// Parameters of the k-mer sketch: 320,000 to 640,000 k-mers for genomes of up to about 40 Mbp, up to 3 million for
/// larger ones, in a table of about 110 MB for each tumour. If a genome has one heterozygous site in 1,500 bases, this
/// gives enough of them to estimate contamination.
pub const KMER_SKETCH_PARAMS: SketchParams =
    SketchParams { k: 31, min_quality: [20, 30], max_kmers_small_genome: 640_000, max_kmers: 3_000_000 };

/// Share of the scratch space for packed reads if reads come from pipes; the k-mers get the rest. A base takes 0.55 to
/// 1.3 bytes in packed reads and up to 1.3 bytes in k-mers.
const PIPED_PACKED_READS_SHARE: f64 = 0.45;
/// Bytes of scratch space that always suffice for each base of reads from pipes.
const PIPED_SCRATCH_BYTES_PER_BASE: f64 = 2.6;

/// Makes the error for reads from a pipe whose k-mers and packed reads do not fit in the scratch space. Such reads can
/// be read only once. `bases` is the number of bases, if all of them were read.
fn pipe_scratch_error(bases: Option<u64>) -> Error {
    let advice = match bases {
        Some(bases) => {
            let gib = (bases as f64 * PIPED_SCRATCH_BYTES_PER_BASE / f64::from(1 << 30)).ceil() as u64;
            format!("for {bases} bases set --scratch {gib}G and use a work folder with that much free space")
        }
        None => {
            "set --scratch to 2.6 bytes per base or more and use a work folder with that much free space".to_owned()
        }
    };
    Error::Input(format!(
        "reads from a pipe cannot be read again, and the scratch space is too small for their k-mers and packed reads: {advice}, \
         or increase --memory, or save the reads to files"
    ))
}

/// Prefix of the names under which partition results are stored.
const PARTITION_UNIT_PREFIX: &str = "count-";

fn partition_unit_name(partition: Partition) -> String {
    format!("{PARTITION_UNIT_PREFIX}{}", partition.label())
}

/// Partitions whose results are in the work folder.
fn finished_partitions(store: &UnitStore) -> Vec<Partition> {
    let partition = |name: &String| Partition::from_label(name.strip_prefix(PARTITION_UNIT_PREFIX)?);
    store.finished_units().iter().filter_map(partition).collect()
}

/// Removes the stored results of partitions, after the result of the whole counting unit is stored.
pub(crate) fn remove_partition_units(store: &UnitStore) {
    finished_partitions(store).into_iter().for_each(|partition| store.remove_result(&partition_unit_name(partition)));
}

impl CountingUnit<'_> {
    /// Counts the k-mers of all samples in as few partitions as the scratch space allows, and selects candidate k-mers.
    ///
    /// # Errors
    /// Reads cannot be read, a spill file or unit cannot be written or read, a sample has no k-mers, or the scratch
    /// space is too small.
    pub fn run_counting(&self, store: &UnitStore) -> Result<CountingResult, Error> {
        let done = if store.resume { finished_partitions(store) } else { Vec::new() };
        // Report damaged inputs before hours of work.
        let recorded = self.choose_recorded_kmers()?;
        let each = ReadEstimate::estimate_lanes_by_sample(self.lanes);
        let pairs = expected_pairs_per_sample(&each, self.samples.num_samples());
        let context = CountContext { recorded_kmers: &recorded, expected_pairs: &pairs };
        let loaded: Vec<PartitionCountResult> = done
            .iter()
            .map(|&partition| self.load_or_count_partition(store, partition, 0, None, context))
            .collect::<Result<_, _>>()?;
        let mut novel: u64 = loaded.iter().map(|result| result.novel_candidates).sum();
        let mut models = loaded.first().map(|result| result.library_models.clone());
        let estimate = each.into_iter().sum();
        let expected = ExpectedKmers::from_read_estimate(&estimate, self.params.k);
        let piped = self.lanes.iter().any(Lane::has_pipe);
        let budget_bytes = match piped {
            // The number of reads in a pipe is unknown.
            true => Some((self.params.max_scratch_bytes as f64 * PIPED_PACKED_READS_SHARE) as u64),
            false => packed_reads_budget_bytes(&self.params, self.samples.num_samples(), &expected, &estimate),
        };
        let mut packed_outcome = PackedReadsOutcome::ScratchTooSmall(estimate.packed_bytes);
        let mut whole = || {
            let Some(budget_bytes) = budget_bytes else {
                return Ok(self.count_partition(Partition::WHOLE_KMER_SPACE, 0, None, None, context)?.0);
            };
            let (result, packed_reads) = self.count_in_one_pass(store, budget_bytes, context)?;
            packed_outcome = packed_reads;
            Ok(result)
        };
        let one = |partition| match if partition == Partition::WHOLE_KMER_SPACE {
            whole()
        } else {
            self.load_or_count_partition(store, partition, novel, models.as_deref(), context)
        } {
            Ok(result) => {
                novel += result.novel_candidates;
                models.get_or_insert_with(|| result.library_models.clone());
                Ok(PartitionOutcome::Counted(result))
            }
            Err(Error::Kmers(genuma_kmers::Error::TooLarge { .. })) if piped => Err(pipe_scratch_error(None)),
            Err(Error::Kmers(genuma_kmers::Error::TooLarge { read_share, .. })) => {
                Ok(PartitionOutcome::TooLarge(read_share))
            }
            Err(error) => Err(error),
        };
        let scratch = self.params.max_scratch_bytes;
        let too_large = |partition| {
            Error::Kmers(genuma_kmers::Error::TooLarge { partition, scratch_bytes: scratch, read_share: 1.0 })
        };
        let (used, made) = count_in_partitions(self.num_partitions(&expected)?, &done, one, too_large)?;
        let results: Vec<PartitionCountResult> =
            loaded.into_iter().filter(|result| used.contains(&result.partition)).chain(made).collect();
        let parts = results.len() as u64;
        let all = merge_all_partitions(results)?;
        if piped && !matches!(packed_outcome, PackedReadsOutcome::Complete(_)) {
            return Err(pipe_scratch_error(Some(all.totals.bases.iter().sum())));
        }
        self.finish(all, parts, packed_outcome)
    }

    /// Number of partitions that will probably suffice.
    fn num_partitions(&self, expected: &ExpectedKmers) -> Result<u32, Error> {
        num_partitions(&self.params, self.samples.num_samples(), expected).ok_or_else(|| {
            Error::Input(format!(
                "about {:.0} GB of k-mers would need more than {MAX_PARTITIONS} passes over all reads: set --scratch {}G or more, or raise --memory",
                expected.super_kmer_bytes as f64 / 1e9,
                (expected.super_kmer_bytes >> 34) + 1
            ))
        })
    }

    /// Counts all k-mers in one pass and writes the packed reads, at most `budget_bytes` bytes. A failure to write them
    /// causes only a warning.
    fn count_in_one_pass(
        &self,
        store: &UnitStore,
        budget_bytes: u64,
        context: CountContext<'_>,
    ) -> Result<(PartitionCountResult, PackedReadsOutcome), Error> {
        let path = packed_reads_path(store);
        let refused = |error: spill::Error| {
            tracing::warn!(
                "packed reads cannot be written ({error}), so later passes read the input files again: the calls are the same, but \
                 take longer; check the disk of the work folder (--work)"
            );
            PackedReadsOutcome::WriteFailed(budget_bytes)
        };
        let packed_writer = match PackedReadsWriter::create(&path, budget_bytes) {
            Ok(packed_writer) => packed_writer,
            Err(error) => {
                return Ok((
                    self.count_partition(Partition::WHOLE_KMER_SPACE, 0, None, None, context)?.0,
                    refused(error),
                ));
            }
        };
        let counted =
            self.count_partition(Partition::WHOLE_KMER_SPACE, 0, None, Some((&packed_writer, budget_bytes)), context);
        let counted = counted.map(|(result, recorders)| (result, packed_writer.finish(recorders)));
        if !matches!(counted, Ok((_, Ok(_)))) {
            // The space is needed for other files. If the file cannot be removed it goes with the work folder.
            let _ = fs::remove_file(&path);
        }
        let (result, copied) = counted?;
        let packed_outcome = copied.map_or_else(
            |error| match error {
                spill::Error::Full { max_bytes, .. } => PackedReadsOutcome::LimitExceeded(max_bytes),
                error => refused(error),
            },
            PackedReadsOutcome::Complete,
        );
        Ok((result, packed_outcome))
    }

    /// Loads the result of a partition from the work folder, or counts the partition.
    fn load_or_count_partition(
        &self,
        store: &UnitStore,
        partition: Partition,
        novel: u64,
        models: Option<&[SamplePairLibraryProperties]>,
        context: CountContext<'_>,
    ) -> Result<PartitionCountResult, Error> {
        let name = partition_unit_name(partition);
        let result: PartitionCountResult = store.run_or_load(&name, &mut Vec::new(), || {
            Ok::<_, Error>(self.count_partition(partition, novel, models, None, context)?.0)
        })?;
        if result.partition != partition {
            let path = store.unit_path(&name);
            return Err(unit::Error::Damaged { path, what: "another partition" }.into());
        }
        Ok(result)
    }

    /// Maximum number of novel k-mers of all tumours together, over all partitions.
    fn max_novel_candidates(&self) -> u64 {
        let by_genome = (self.genome_bases.unwrap_or(0) as f64 * MAX_NOVEL_CANDIDATES_PER_BASE) as u64;
        let of_one = MAX_NOVEL_CANDIDATES.max(by_genome);
        of_one * self.samples.tumour_names().len() as u64
    }

    /// Counts the k-mers of one partition. `novel` is the number of novel k-mers in the partitions counted before;
    /// `models` describes the libraries, if a partition was counted before. `packed_reads` is the writer of packed
    /// reads and the bytes of scratch space that they may take.
    fn count_partition<'a>(
        &self,
        partition: Partition,
        novel: u64,
        models: Option<&[SamplePairLibraryProperties]>,
        packed_reads: Option<(&'a PackedReadsWriter, u64)>,
        context: CountContext<'_>,
    ) -> Result<(PartitionCountResult, Vec<PackedPairRecorder<'a>>), Error> {
        match self.samples.num_samples() {
            0..=2 => self.count_partition_with::<2>(partition, novel, models, packed_reads, context),
            3 | 4 => self.count_partition_with::<4>(partition, novel, models, packed_reads, context),
            _ => self.count_partition_with::<MAX_SAMPLES>(partition, novel, models, packed_reads, context),
        }
    }

    /// Counts the k-mers of one partition with counters for `S` samples; `S` is at least the number of samples.
    fn count_partition_with<'a, const S: usize>(
        &self,
        partition: Partition,
        novel: u64,
        models: Option<&[SamplePairLibraryProperties]>,
        packed_reads: Option<(&'a PackedReadsWriter, u64)>,
        context: CountContext<'_>,
    ) -> Result<(PartitionCountResult, Vec<PackedPairRecorder<'a>>), Error> {
        let meter = Arc::new(ProgressCounters::default());
        let name =
            if partition == Partition::WHOLE_KMER_SPACE { "count".to_owned() } else { format!("count, {partition}") };
        self.progress.unit_started(&name, Some(meter.clone()));
        let scratch = self.params.max_scratch_bytes - packed_reads.map_or(0, |(_, budget_bytes)| budget_bytes);
        let markers = context.recorded_kmers.target_markers.as_ref().map_or(0, TargetMarkers::memory_bytes);
        let memory_bytes = self.params.memory_bytes.saturating_sub(markers).max(self.params.memory_bytes / 2);
        let params = CountParams { partition, max_scratch_bytes: scratch, memory_bytes, ..self.params.clone() };
        let selectors = OnceLock::new();
        // Every pass would make the same sketch, so only the first partition makes it.
        let sketches = (partition.number() == 0 || models.is_none()).then(|| self.new_sketches());
        let mut library = models.map_or_else(LibrarySketches::default, LibrarySketches::from_models);
        let (counted, recorders_by_thread) = genuma_kmers::count(
            self.lanes,
            &params,
            &meter,
            || {
                let packed_writer = packed_reads.map(|(packed_writer, _)| packed_writer);
                PairProcessor::new(params.k, context.expected_pairs, packed_writer, sketches.as_ref())
            },
            |kmers: &[u64; S], preparers| {
                if let Some(sketches) = &sketches {
                    preparers
                        .iter_mut()
                        .for_each(|preparer: &mut PairProcessor<'_, '_>| preparer.sketch_writers = None);
                    let mut tallies = vec![LibraryTally::default(); self.samples.num_samples()];
                    for preparer in preparers.iter() {
                        let own = preparer.observer.tallies();
                        tallies.iter_mut().zip(own).for_each(|(sum, own)| sum.merge_tally(own));
                    }
                    library = LibrarySketches::new(&tallies, sketches, &self.assay_hints());
                }
                let selectors = selectors.get_or_init(|| self.new_selectors(kmers, novel, &library.models));
                root_visitor(selectors, context.recorded_kmers)
            },
        )?;
        let (stats, recorders) = collect_read_stats(recorders_by_thread, self.lanes, self.samples.num_samples());
        let mut result = self.partition_result(partition, counted, stats, selectors.get(), context.recorded_kmers)?;
        result.pair_evidence = library.sketches.iter().map(ReferenceFreePairEvidence::from_sketch).collect();
        result.library_models = library.models;
        self.drop_reference_kmers(&mut result)?;
        Ok((result, recorders))
    }

    /// Creates the selectors of candidate k-mers. `kmers` has the number of k-mers of each sample, `novel` the number
    /// of novel k-mers in the partitions counted before.
    fn new_selectors(
        &self,
        kmers: &[u64],
        novel: u64,
        libraries: &[SamplePairLibraryProperties],
    ) -> CandidateSelectors {
        let max_novel = self.max_novel_candidates().saturating_sub(novel);
        let kmers = &kmers[..self.samples.num_samples()];
        CandidateSelectors::for_tumours(
            self.params.k,
            self.min_tumour_count,
            kmers,
            self.genome_bases,
            max_novel,
            libraries,
        )
    }

    /// Information on the assay other than from the reads: the options of the user.
    fn assay_hints(&self) -> AssayHints {
        AssayHints { given: self.assay, genome_bases: self.genome_bases }
    }

    /// Creates empty k-mer sketches, one for each tumour.
    fn new_sketches(&self) -> SketchBuilders {
        SketchBuilders::empty_for_tumours(KMER_SKETCH_PARAMS, self.samples.tumour_names().len())
    }

    /// Chooses the marker k-mers of the reference contigs, of the sequences to screen for, and of the targets.
    fn choose_recorded_kmers(&self) -> Result<RecordedKmers, Error> {
        let k = self.params.k;
        let select = |(targets, path): (&Targets, &Path)| {
            TargetMarkers::select_markers(targets, path, k, self.samples.num_samples(), self.params.threads)
        };
        Ok(RecordedKmers {
            marker_kmers: MarkerKmers::select_markers(k, self.reference, self.screen)?,
            target_markers: self.targets.zip(self.reference).map(select).transpose()?,
        })
    }

    /// Builds the result of a partition after all its k-mers are counted.
    fn partition_result<const S: usize>(
        &self,
        partition: Partition,
        counted: CountResult<CandidateKmer, S>,
        read_stats: ReadStats,
        selectors: Option<&CandidateSelectors>,
        recorded: &RecordedKmers,
    ) -> Result<PartitionCountResult, Error> {
        let (stats, samples) = (counted.stats, self.samples.num_samples());
        for sample in 0..samples {
            if stats.kmers[sample] == 0 {
                let (k, name) = (self.params.k, self.samples.display_name(sample));
                return Err(Error::Input(format!(
                    "the {name} has no read with {k} consecutive bases without N: check the files, or give a smaller -k"
                )));
            }
        }
        let [bases, kmers] = [stats.bases, stats.kmers].map(|all| all[..samples].to_vec());
        Ok(PartitionCountResult {
            partition,
            candidates: counted.selected,
            spectra: counted.spectra.into_iter().take(samples).collect(),
            genotype_mismatches: selectors.map(CandidateSelectors::num_genotype_mismatches).unwrap_or_default(),
            tumour_alleles: selectors
                .map_or_else(|| vec![TumourAlleles::default(); samples - 1], CandidateSelectors::tumour_alleles),
            novel_candidates: selectors.map_or(0, CandidateSelectors::num_novel_candidates),
            reference_kmers: 0,
            spill_peak_bytes: stats.peak_spill_bytes,
            marker_tally: recorded.marker_kmers.as_ref().map(MarkerKmers::take_recorded_counts),
            target_tally: recorded.target_markers.as_ref().map(TargetMarkers::take_recorded_counts),
            pair_evidence: Vec::new(),
            library_models: Vec::new(),
            totals: SampleTotals { bases, kmers, stats: read_stats },
        })
    }

    /// Writes the k-mers and the packed reads of all lanes, which form one shard of the reads, to a new file at `path`.
    ///
    /// # Errors
    /// Reads cannot be read, the memory is too small for the grid, or the file cannot be written.
    pub fn scatter_shard(&self, grid: BinGrid, path: &Path) -> Result<ShardScatterResult, Error> {
        let meter = Arc::new(ProgressCounters::default());
        self.progress.unit_started("scatter", Some(meter.clone()));
        let packed_writer = PackedReadsWriter::create(path, u64::MAX).map_err(genuma_kmers::Error::from)?;
        let sketches = self.new_sketches();
        let expected =
            expected_pairs_per_sample(&ReadEstimate::estimate_lanes_by_sample(self.lanes), self.samples.num_samples());
        let prepare = || PairProcessor::new(self.params.k, &expected, Some(&packed_writer), Some(&sketches));
        let (scattered, recorders_by_thread) =
            ShardKmerIndex::scatter_lanes(self.lanes, grid, &self.params, &meter, prepare)?;
        let (stats, recorders) = collect_read_stats(recorders_by_thread, self.lanes, self.samples.num_samples());
        let copied = packed_writer.finish(recorders).map_err(genuma_kmers::Error::from)?;
        let shard = ShardKmerIndex::write_shard(scattered, grid, packed_writer.spill_file())?;
        Ok(ShardScatterResult { shard, packed_reads: copied, read_stats: stats, sketches: sketches.take_sketches() })
    }

    /// Counts the partition that [`CountingUnit::params`] specifies, from the files of all shards.
    ///
    /// # Errors
    /// An object cannot be read or is damaged, or a sample has no k-mers.
    pub fn count_scattered_partition(
        &self,
        scattered: &[(&ShardScatterResult, LocalCopyOfObjectRange<'_>)],
    ) -> Result<PartitionCountResult, Error> {
        let meter = Arc::new(ProgressCounters::new("k-mers"));
        self.progress.unit_started("count", Some(meter.clone()));
        let shards: Vec<_> = scattered.iter().map(|(one, file)| (one.shard.clone(), *file)).collect();
        let (selectors, recorded) = (OnceLock::new(), self.choose_recorded_kmers()?);
        let mut stats = ReadStats::with_samples(self.samples.num_samples());
        scattered.iter().for_each(|(one, _)| stats.add(&one.read_stats));
        let sketches = self.new_sketches();
        scattered.iter().for_each(|(one, _)| sketches.merge_sketches(&one.sketches));
        let library = LibrarySketches::new(&stats.libraries, &sketches, &self.assay_hints());
        let counted = genuma_kmers::count_partition_from_shards(&shards, &self.params, &meter, |kmers| {
            root_visitor(selectors.get_or_init(|| self.new_selectors(kmers, 0, &library.models)), &recorded)
        })?;
        drop(shards);
        let mut result = self.partition_result(self.params.partition, counted, stats, selectors.get(), &recorded)?;
        if self.params.partition.number() == 0 {
            result.pair_evidence = library.sketches.iter().map(ReferenceFreePairEvidence::from_sketch).collect();
        }
        result.library_models = library.models;
        Ok(result)
    }

    /// Merges the results of all partitions of a distributed call into the result of the counting unit.
    ///
    /// # Errors
    /// There are no partitions, or they come from different reads.
    pub fn merge_partition_results(&self, results: Vec<PartitionCountResult>) -> Result<CountingResult, Error> {
        let parts = results.len() as u64;
        let mut all = merge_all_partitions(results)?;
        // The candidates of each partition are sorted, but not those of all together.
        all.candidates.sort_unstable();
        self.drop_reference_kmers(&mut all)?;
        self.finish(all, parts, PackedReadsOutcome::PerShard)
    }

    /// Removes novel k-mers that the reference contains: they are not somatic, only missing in the normal.
    fn drop_reference_kmers(&self, result: &mut PartitionCountResult) -> Result<(), Error> {
        let Some(path) = self.reference else { return Ok(()) };
        if result.novel_candidates > self.max_novel_candidates() {
            // All novel k-mers are skipped later.
            return Ok(());
        }
        let meter = Arc::new(ProgressCounters::new("the reference"));
        meter.add_expected_bytes(self.genome_bases.unwrap_or(0));
        self.progress.unit_started("count, against the reference", Some(meter.clone()));
        let candidates = &mut result.candidates;
        // Whether a k-mer is novel does not depend on the tumour.
        let mut novel: Vec<u64> =
            candidates.iter().filter(|candidate| !candidate.is_branching()).map(|candidate| candidate.kmer).collect();
        novel.dedup();
        let lookup = KmerLookup::build(self.params.k, novel.iter().copied());
        let known = find_reference_kmers(path, &lookup, self.params.threads, &meter)?;
        result.reference_kmers += known.iter().filter(|&&known| known).count() as u64;
        let mut rank = 0;
        candidates.retain(|candidate| {
            if candidate.is_branching() {
                return true;
            }
            while novel.get(rank).is_some_and(|&kmer| kmer < candidate.kmer) {
                rank += 1;
            }
            !known.get(rank).copied().unwrap_or(false)
        });
        Ok(())
    }

    /// Median depth of a base in a sample, computed from the median k-mer depth and the mean read length; `None` if the
    /// spectrum does not show a depth.
    fn median_base_depth(&self, spectrum: &[u64], bases: u64, pairs: u64) -> Option<f64> {
        let (kmer, length) = (median_kmer_depth(spectrum), bases as f64 / (2 * pairs).max(1) as f64);
        let starts = length + 1.0 - f64::from(self.params.k);
        (kmer > 0.0 && starts >= 1.0).then(|| kmer * length / starts)
    }

    /// Builds the result of the counting unit from the merged results of all partitions.
    fn finish(
        &self,
        all: PartitionCountResult,
        parts: u64,
        packed_outcome: PackedReadsOutcome,
    ) -> Result<CountingResult, Error> {
        let all = if self.samples.has_normal() { all } else { all.without_normal_comparison() };
        let PartitionCountResult {
            mut candidates,
            spectra,
            genotype_mismatches,
            tumour_alleles,
            novel_candidates: novel,
            reference_kmers: known,
            spill_peak_bytes,
            marker_tally: marks,
            target_tally,
            pair_evidence,
            library_models,
            totals: SampleTotals { bases, stats: ReadStats { trimmed, libraries, aligned }, .. },
            ..
        } = all;
        let too_many_novel = novel > self.max_novel_candidates();
        if too_many_novel {
            candidates.retain(CandidateKmer::is_branching);
        }
        candidates.sort_unstable();
        let mut ledger = Ledger::default();
        let each = match packed_outcome {
            PackedReadsOutcome::PerShard => "each counted from the data of all shards",
            _ => "each counted in its own pass over the reads",
        };
        ledger.add_produced("count", &format!("partitions of the k-mer space, {each}"), parts);
        ledger.add_produced("count", "bytes of the k-mer spill file in the work folder, at most", spill_peak_bytes);
        packed_outcome.add_to_ledger(&mut ledger);
        let others = self.samples.tumour_names().len().saturating_sub(1) as u64;
        if others > 0 && marks.is_some() {
            let what = "tumours beyond the first, for which contig depths, sex and screened sequences are not reported";
            ledger.add_skipped("count", what, others);
        }
        for (aligned, sample) in aligned.iter().zip((0..).map(|sample| self.samples.display_name(sample))) {
            if aligned.records > 0 {
                ledger.add_produced("count", &format!("{sample}: records of aligned reads"), aligned.records);
            }
            if aligned.with_umi > 0 {
                let line = format!("{sample}: reads whose UMI was taken from tags or from their bases");
                ledger.add_produced("count", &line, aligned.with_umi);
            }
            for (what, n) in aligned.describe_skipped_and_missing_counts() {
                ledger.add_skipped("count", &format!("{sample}: {what}"), n);
            }
        }
        for (trimmed, sample) in trimmed.iter().zip((0..).map(|sample| self.samples.display_name(sample))) {
            let mut made = |what: &str, n: u64| ledger.add_produced("count", &format!("{sample}: {what}"), n);
            made("pairs read", trimmed.pairs);
            made("fold-back reads", trimmed.fold_back_mates);
            let mut left_out = |what: &str, n: u64| ledger.add_skipped("count", &format!("{sample}: {what}"), n);
            left_out("adapter bases trimmed from reads longer than their fragment", trimmed.adapter_bases);
            left_out("bases trimmed from tails of quality 2 or less", trimmed.low_quality_bases);
            left_out("bases trimmed from poly-G tails", trimmed.poly_g_bases);
        }
        let is_targeted = target_tally.is_some() || SamplePairLibraryProperties::has_targeted_assay(&library_models);
        let fragment_ends = SamplePairLibraryProperties::random_or_fixed_ends_by_sample(&library_models);
        for (sample, _) in fragment_ends.iter().enumerate().filter(|(_, ends)| **ends == RandomOrFixedEnds::Fixed) {
            let what = "pairs of fragments with fixed ends (amplicons), each of which counts as a molecule";
            let line = format!("{}: {what}", self.samples.display_name(sample));
            ledger.add_produced("count", &line, trimmed[sample].pairs);
        }
        // The depths are known only after all partitions are counted.
        let median_depths_of_samples: Vec<f64> = spectra.iter().map(|spectrum| median_kmer_depth(spectrum)).collect();
        let median_depths = values_by_selector(median_depths_of_samples.iter().copied());
        let error_rates = SamplePairLibraryProperties::pooled_then_tumour_error_rates(&library_models);
        let has_error_rate = |p: &CandidateKmer| error_rates.get(usize::from(p.selector)).is_some_and(Option::is_some);
        candidates.retain(|p| {
            !p.needs_high_quality() || has_error_rate(p) || p.is_in_repeat(median_depths[usize::from(p.selector)])
        });
        let in_normal = tumour_in_normal_by_selector(&tumour_alleles, median_depths_of_samples[0]);
        candidates.retain(|p| p.tumour_in_normal_percent <= in_normal[usize::from(p.selector)]);
        if self.genome_bases.is_none() {
            let depth = values_by_selector(KmerDepths::from_spectra(&spectra).kmer);
            candidates.retain(|p| {
                f64::from(p.tumour_count) >= min_count_above_errors_at_depth(depth[usize::from(p.selector)])
            });
        }
        let made = group_by_kmer(&candidates).count() as u64;
        ledger.add_produced("count", "candidate k-mers", made);
        if too_many_novel {
            // Off target, reads are few in both samples of a capture.
            let line = match (self.samples.has_normal(), is_targeted) {
                (false, _) => TOO_MANY_VARIANTS_LEDGER_LINE,
                (true, true) => OFF_TARGET_LEDGER_LINE,
                (true, false) => SHALLOW_NORMAL_LEDGER_LINE,
            };
            ledger.add_skipped("select", line, novel);
        }
        let known = if too_many_novel { 0 } else { known };
        if known > 0 {
            let what = "tumour k-mers whose root the normal lacks but the reference has, so they are not novel";
            ledger.add_skipped("select", what, known);
        }
        let of_tumour = spectra.iter().skip(TUMOUR_SAMPLE.into()).map(|spectrum| count_solid_kmers(spectrum)).max();
        // In a capture the k-mers of single off-target reads may be more than those of the targets.
        // In a deep library recurrent errors make more candidates than a small panel has k-mers, but not as frequent
        // ones.
        let is_error = |p: &CandidateKmer| has_error_rate(p) && (p.tumour_count as usize) < MIN_SOLID_COUNT;
        let foreign = group_by_kmer(&candidates).filter(|same| !same.iter().all(is_error)).count() as u64;
        if !is_targeted && (foreign + known) as f64 > MAX_ABSENT_KMER_SHARE * of_tumour.unwrap_or(0) as f64 {
            let all = group_by_kmer(&candidates).count();
            candidates.retain(CandidateKmer::is_branching);
            ledger.add_skipped(
                "select",
                MOST_TUMOUR_KMERS_NOT_IN_NORMAL_LEDGER_LINE,
                (all - group_by_kmer(&candidates).count()) as u64,
            );
        }
        let copied = match packed_outcome {
            PackedReadsOutcome::Complete(copied) => Some(copied),
            _ => None,
        };
        let depth = |i: usize| self.median_base_depth(&spectra[i], bases[i], libraries[i].num_pairs());
        let k = f64::from(self.params.k);
        let reads = [0, 1].map(|i: usize| {
            let tally = &libraries[i];
            let number = (2 * tally.num_pairs()) as f64;
            ReadAndKmerTotals {
                num_reads: number,
                kmers_per_read: (tally.num_bases() as f64 / number.max(1.0) + 1.0 - k).max(1.0),
            }
        });
        let mut known =
            marks.map_or_else(ContigCopiesAndScreen::default, |marks| ContigCopiesAndScreen::from_tally(&marks, reads));
        if !self.samples.has_normal() {
            // Copy numbers and sex are those of the normal and of the tumour relative to it.
            known.karyotype = None;
        }
        let pair = |i: usize| {
            let depths = [depth(0), depth(i)];
            SamplePairLibraryMetrics::from_tallies([&libraries[0], &libraries[i]], [&trimmed[0], &trimmed[i]], depths)
        };
        let read_bases = |i: usize| bases[i] as f64 / (2 * libraries[i].num_pairs()).max(1) as f64;
        let read_bases: Vec<f64> = (0..self.samples.num_samples()).map(read_bases).collect();
        let libraries: Vec<SamplePairLibraryMetrics> = (1..self.samples.num_samples()).map(pair).collect();
        let target_depths = target_tally.map(|tally| {
            let normal = libraries.first().map(|pair| &pair.normal);
            let each = normal.into_iter().chain(libraries.iter().map(|pair| &pair.tumor));
            let reads = each.zip(&read_bases).map(|(library, &bases)| DepthConversionReadProperties {
                bases,
                error_rate: library.errors.rate.map_or(0.0, |rate| rate.value),
            });
            TargetDepths::from_marker_counts(&tally, &reads.collect::<Vec<_>>(), self.params.k)
        });
        Ok(CountingResult {
            candidates,
            spectra,
            bases,
            genotype_mismatches,
            tumour_alleles,
            trimmed,
            libraries,
            known_sequences: known,
            target_depths,
            pair_evidence,
            library_models,
            tumour_in_normal_ratio: f64::from(in_normal[usize::from(POOLED_SELECTOR_NUMBER)]) / 100.0,
            packed_reads: copied,
            ledger,
        })
    }
}

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

/// Returns the function that the counter calls for each root: it selects candidate k-mers and records the counts of
/// marker k-mers.
fn root_visitor<'a, const S: usize>(
    selectors: &'a CandidateSelectors,
    recorded: &'a RecordedKmers,
) -> impl Fn(&RootCounters<S>, &mut Vec<CandidateKmer>) + Sync + use<'a, S> {
    move |root, candidates| {
        selectors.select_from_root(root, candidates);
        if let Some(marks) = &recorded.marker_kmers {
            marks.record_root_counts(root);
        }
        if let Some(targets) = &recorded.target_markers {
            targets.record_root_counts(root);
        }
    }
}

/// Converts values by sample to values by selector number: index 0 ([`POOLED_SELECTOR_NUMBER`]) is the sum over all
/// tumours, the other indices are single tumours.
fn values_by_selector(of_samples: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut by_rule: Vec<f64> = of_samples.into_iter().collect();
    by_rule[usize::from(POOLED_SELECTOR_NUMBER)] = by_rule.iter().skip(TUMOUR_SAMPLE.into()).sum();
    by_rule
}

/// For each tumour, the k-mer sketch of the tumour and the normal, and the properties of both libraries.
#[derive(Default)]
struct LibrarySketches {
    /// One sketch for each tumour; empty if an earlier pass made the sketches.
    sketches: Vec<KmerSketch>,
    /// One library model for each tumour.
    models: Vec<SamplePairLibraryProperties>,
}

impl LibrarySketches {
    /// Finishes the sketches and estimates the library models. `tallies` has the library statistics of all samples.
    fn new(tallies: &[LibraryTally], sketches: &SketchBuilders, context: &AssayHints) -> LibrarySketches {
        let mut sketches = sketches.take_sketches();
        let model = |(sketch, tumour): (&KmerSketch, &LibraryTally)| {
            SamplePairLibraryProperties::from_tallies_and_sketch([&tallies[0], tumour], sketch, context)
        };
        let models: Vec<SamplePairLibraryProperties> = sketches.iter().zip(&tallies[1..]).map(model).collect();
        for (sketch, model) in sketches.iter_mut().zip(&models) {
            for (sample, library) in [&model.normal, &model.tumour].into_iter().enumerate() {
                if library.fragment_ends == RandomOrFixedEnds::Fixed {
                    sketch.treat_pairs_as_molecules(sample);
                }
            }
        }
        LibrarySketches { sketches, models }
    }

    /// Library models of an earlier pass, without sketches.
    fn from_models(models: &[SamplePairLibraryProperties]) -> LibrarySketches {
        LibrarySketches { sketches: Vec::new(), models: models.to_vec() }
    }
}

fn merge_all_partitions(results: Vec<PartitionCountResult>) -> Result<PartitionCountResult, Error> {
    let all = results.into_iter().map(Ok).reduce(|all, result| all?.merge(result?));
    all.unwrap_or_else(|| Err(Error::Input("there is no partition to count".into())))
}

impl PartitionCountResult {
    /// Removes the results that compare tumour and normal, for a tumour-only call, in which the reference replaces the
    /// normal.
    fn without_normal_comparison(self) -> PartitionCountResult {
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

/// Minimum number of occurrences of a k-mer that is certainly not an error. Chosen; a higher value misses more k-mers
/// of shallow samples.
const MIN_SOLID_COUNT: usize = 8;

/// Number of distinct k-mers of a sample that occur at least [`MIN_SOLID_COUNT`] times, so that they are certainly not
/// errors.
pub(crate) fn count_solid_kmers(spectrum: &[u64]) -> u64 {
    spectrum.iter().skip(MIN_SOLID_COUNT).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl ProgressListener for Silent {
        fn unit_started(&self, _: &str, _: Option<Arc<ProgressCounters>>) {}
    }

    /// The merged result of two partitions, each with `novel` novel k-mers, of which `given` were output, and 10
    /// branching k-mers.
    fn joined(novel: u64, given: u64) -> CountingResult {
        let folder = tempfile::tempdir().unwrap();
        let params = CountParams {
            k: 31,
            min_base_quality: 0,
            threads: 1,
            memory_bytes: 1 << 30,
            work_dir: folder.path().into(),
            max_scratch_bytes: u64::MAX,
            partition: Partition::WHOLE_KMER_SPACE,
            devices: Default::default(),
        };
        let samples = SampleNames::default();
        let counting = CountingUnit {
            lanes: &[],
            samples: &samples,
            params,
            min_tumour_count: 2,
            assay: None,
            genome_bases: Some(1_000_000),
            reference: None,
            screen: None,
            targets: None,
            progress: &Silent,
        };
        let result = |first: u64| {
            let candidate = |kmer, depth| CandidateKmer {
                kmer,
                tumour_count: 9,
                root_depth: depth,
                selector: TUMOUR_SAMPLE,
                ..CandidateKmer::default()
            };
            let candidates =
                (0..given).map(|i| candidate(first + i, 0)).chain((0..10).map(|i| candidate(first + 1000 + i, 20)));
            let read = SampleTotals { bases: vec![9; 2], kmers: vec![9; 2], stats: ReadStats::with_samples(2) };
            let mut spectrum = vec![0; 1024];
            spectrum[20] = 1_000_000;
            let (spectra, candidates) = (vec![spectrum.clone(), spectrum], candidates.collect());
            PartitionCountResult {
                partition: Partition::WHOLE_KMER_SPACE,
                candidates,
                spectra,
                genotype_mismatches: vec![0],
                tumour_alleles: vec![TumourAlleles::default()],
                novel_candidates: novel,
                reference_kmers: 0,
                spill_peak_bytes: 0,
                marker_tally: None,
                target_tally: None,
                pair_evidence: Vec::new(),
                library_models: Vec::new(),
                totals: read,
            }
        };
        counting
            .finish(
                merge_all_partitions(vec![result(5000), result(0)]).unwrap(),
                2,
                PackedReadsOutcome::ScratchTooSmall(0),
            )
            .unwrap()
    }

    #[test]
    fn too_many_unknown_kmers_are_left_out_all_of_them_and_told() {
        let lines = |counts: &CountingResult| counts.ledger.lines.iter().filter(|l| l.stage == "select").count();
        let few = joined(100, 100);
        assert_eq!((few.candidates.len(), lines(&few)), (220, 0));
        assert!(few.candidates.is_sorted());
        // Neither partition exceeds the limit, both together do.
        let many = joined(MAX_NOVEL_CANDIDATES / 2 + 1, 100);
        assert_eq!((many.candidates.len(), lines(&many)), (20, 1));
        let line = many.ledger.lines.iter().find(|l| l.stage == "select").unwrap();
        assert!(line.skipped && line.count == MAX_NOVEL_CANDIDATES + 2);
    }
}
