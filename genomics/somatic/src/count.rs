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
    BinGrid, CountParams, CountResult, CountedOrTooLarge, ExpectedKmers, MAX_PARTITIONS, MAX_SAMPLES, Partition,
    RootCounters, ShardKmerIndex, count_all_partitions,
};
use genuma_pair::assay::{Assay, GivenAssayAndGenomeSize};
use genuma_pair::check::expected_read_pairs_per_sample;
use genuma_pair::library::LibraryTally;
use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_pair::marker_kmers::MarkerKmers;
use genuma_pair::pair_summary::ReferenceFreePairEvidence;
use genuma_pair::sketch::{KmerSketch, SketchParams};
use genuma_pair::sketches_per_tumour::SketchBuilders;
use genuma_reads::packed_reads::{PackedPairRecorder, PackedReadBlockIndex, PackedReadsWriter};
use genuma_reads::targets::Targets;
use genuma_reads::{Lane, ReadEstimate};
use genuma_work::spill::{self, LocalCopyOfObjectRange};
use genuma_work::unit::{self, UnitStore};
use genuma_work::{ProgressCounters, ProgressListener};
use serde::{Deserialize, Serialize};

use crate::candidate_kmer::CandidateKmer;
use crate::candidate_selectors::CandidateSelectors;
use crate::kmer_lookup::KmerLookup;
use crate::reference_kmers::find_kmers_in_reference;
use crate::sample_names::SampleNames;
use crate::target_depth::TargetMarkers;
use crate::tumour_alleles::TumourAlleles;

mod counting_result;
mod sketches_and_library_models;
mod packed_reads_budget;
mod pair_processor;
mod partition_result;
#[cfg(test)]
mod tests;

pub use counting_result::CountingResult;
pub(crate) use counting_result::count_distinct_solid_kmers;
pub use packed_reads_budget::{
    PACKED_READS_LEDGER_LINE, forecast_counting_resources, packed_reads_budget_bytes, scratch_bytes_for_reads_and_kmers,
};
use packed_reads_budget::{
    PACKED_READS_SHARE_OF_PIPE_SCRATCH, PackedReadsOutcome, make_pipe_scratch_error, min_partitions_for_samples,
};
use pair_processor::{PairProcessor, TrimAndLibraryStats, sum_stats_of_threads};
pub use partition_result::PartitionCountResult;
use partition_result::{InputTotalsBySample, merge_all_partitions};
use sketches_and_library_models::SketchesAndLibraryModels;

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

/// Path of the packed reads in the work folder.
pub(crate) fn packed_reads_path(store: &UnitStore) -> PathBuf {
    store.work_folder.join("reads.bins")
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
    read_stats: TrimAndLibraryStats,
    /// For each tumour, the k-mer sketch of the shard's reads of this tumour and the normal.
    sketches: Vec<KmerSketch>,
}

/// Maximum number of novel k-mers for each tumour, for small genomes. If all tumours together have more than this
/// allows, all novel k-mers are skipped. Chosen: a higher value takes more memory.
const MAX_NOVEL_CANDIDATES: u64 = 64_000_000;
/// Maximum number of novel k-mers for each tumour and base of the reference, if this gives more than
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

/// Prefix of the names under which partition results are stored.
const PARTITION_UNIT_PREFIX: &str = "count-";

fn partition_unit_name(partition: Partition) -> String {
    format!("{PARTITION_UNIT_PREFIX}{}", partition.file_name_label())
}

/// Partitions whose results are in the work folder.
fn finished_partitions(store: &UnitStore) -> Vec<Partition> {
    let partition = |name: &String| Partition::from_file_name_label(name.strip_prefix(PARTITION_UNIT_PREFIX)?);
    store.names_of_finished_units().iter().filter_map(partition).collect()
}

/// Removes the stored results of partitions, after the result of the whole counting unit is stored.
pub(crate) fn remove_partition_units(store: &UnitStore) {
    finished_partitions(store)
        .into_iter()
        .for_each(|partition| store.remove_unit_result(&partition_unit_name(partition)));
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
        let each = ReadEstimate::estimate_reads_by_sample(self.lanes)?;
        let pairs = expected_read_pairs_per_sample(&each, self.samples.num_samples());
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
            true => Some((self.params.max_scratch_bytes as f64 * PACKED_READS_SHARE_OF_PIPE_SCRATCH) as u64),
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
                Ok(CountedOrTooLarge::Counted(result))
            }
            Err(Error::Kmers(genuma_kmers::Error::TooLarge { .. })) if piped => Err(make_pipe_scratch_error(None)),
            Err(Error::Kmers(genuma_kmers::Error::TooLarge { read_share, .. })) => {
                Ok(CountedOrTooLarge::TooLarge(read_share))
            }
            Err(error) => Err(error),
        };
        let scratch = self.params.max_scratch_bytes;
        let too_large = |partition| {
            Error::Kmers(genuma_kmers::Error::TooLarge { partition, scratch_bytes: scratch, read_share: 1.0 })
        };
        let (used, made) = count_all_partitions(self.num_partitions(&expected)?, &done, one, too_large)?;
        let results: Vec<PartitionCountResult> =
            loaded.into_iter().filter(|result| used.contains(&result.partition)).chain(made).collect();
        let parts = results.len() as u64;
        let all = merge_all_partitions(results)?;
        if piped && !matches!(packed_outcome, PackedReadsOutcome::Complete(_)) {
            return Err(make_pipe_scratch_error(Some(all.totals.bases.iter().sum())));
        }
        Ok(self.build_counting_result(all, parts, packed_outcome))
    }

    /// Number of partitions that will probably suffice.
    fn num_partitions(&self, expected: &ExpectedKmers) -> Result<u32, Error> {
        min_partitions_for_samples(&self.params, self.samples.num_samples(), expected).ok_or_else(|| {
            Error::Input(format!(
                "about {:.0} GB of k-mers would need more than {MAX_PARTITIONS} passes over all reads: set --scratch {}G or more, or raise --memory",
                expected.super_kmer_bytes as f64 / 1e9,
                (expected.super_kmer_bytes >> 34) + 1
            ))
        })
    }

    /// Counts all k-mers in one pass and writes the packed reads, at most `budget_bytes` bytes. If they cannot be
    /// written, the outcome says so, and a write error is logged as a warning.
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
        let result: PartitionCountResult = store.run_or_load_unit(&name, &mut Vec::new(), || {
            Ok::<_, Error>(self.count_partition(partition, novel, models, None, context)?.0)
        })?;
        if result.partition != partition {
            let path = store.unit_result_path(&name);
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
        let mut library = models
            .map_or_else(SketchesAndLibraryModels::default, SketchesAndLibraryModels::from_models_of_earlier_pass);
        let (counted, recorders_by_thread) = genuma_kmers::count_partition(
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
                    library = SketchesAndLibraryModels::finish_sketches_and_estimate_models(
                        &tallies,
                        sketches,
                        &self.given_assay_and_genome_size(),
                    );
                }
                let selectors = selectors.get_or_init(|| self.new_selectors(kmers, novel, &library.models));
                root_visitor(selectors, context.recorded_kmers)
            },
        )?;
        let (stats, recorders) = sum_stats_of_threads(recorders_by_thread, self.lanes, self.samples.num_samples());
        let mut result = self.partition_result(partition, counted, stats, selectors.get(), context.recorded_kmers)?;
        result.pair_evidence =
            library.sketches.iter().map(ReferenceFreePairEvidence::estimate_without_reference).collect();
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
    fn given_assay_and_genome_size(&self) -> GivenAssayAndGenomeSize {
        GivenAssayAndGenomeSize { given: self.assay, genome_bases: self.genome_bases }
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
        read_stats: TrimAndLibraryStats,
        selectors: Option<&CandidateSelectors>,
        recorded: &RecordedKmers,
    ) -> Result<PartitionCountResult, Error> {
        let (stats, samples) = (counted.stats, self.samples.num_samples());
        for sample in 0..samples {
            if stats.kmers[sample] == 0 {
                let (k, name) = (self.params.k, self.samples.name_in_messages(sample));
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
            novel_candidates: selectors.map_or(0, CandidateSelectors::num_novel_candidates_found),
            reference_kmers: 0,
            spill_peak_bytes: stats.peak_spill_bytes,
            marker_tally: recorded.marker_kmers.as_ref().map(MarkerKmers::take_recorded_counts),
            target_tally: recorded.target_markers.as_ref().map(TargetMarkers::take_recorded_counts),
            pair_evidence: Vec::new(),
            library_models: Vec::new(),
            totals: InputTotalsBySample { bases, kmers, stats: read_stats },
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
        let estimates = ReadEstimate::estimate_reads_by_sample(self.lanes)?;
        let expected = expected_read_pairs_per_sample(&estimates, self.samples.num_samples());
        let prepare = || PairProcessor::new(self.params.k, &expected, Some(&packed_writer), Some(&sketches));
        let (scattered, recorders_by_thread) =
            ShardKmerIndex::scatter_lanes_of_shard(self.lanes, grid, &self.params, &meter, prepare)?;
        let (stats, recorders) = sum_stats_of_threads(recorders_by_thread, self.lanes, self.samples.num_samples());
        let copied = packed_writer.finish(recorders).map_err(genuma_kmers::Error::from)?;
        let shard = ShardKmerIndex::append_bins_to_file(scattered, grid, packed_writer.spill_file())?;
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
        let mut stats = TrimAndLibraryStats::zero_stats(self.samples.num_samples());
        scattered.iter().for_each(|(one, _)| stats.merge_stats(&one.read_stats));
        let sketches = self.new_sketches();
        scattered.iter().for_each(|(one, _)| sketches.merge_sketches(&one.sketches));
        let library = SketchesAndLibraryModels::finish_sketches_and_estimate_models(
            &stats.libraries,
            &sketches,
            &self.given_assay_and_genome_size(),
        );
        let counted = genuma_kmers::count_partition_from_shards(&shards, &self.params, &meter, |kmers| {
            root_visitor(selectors.get_or_init(|| self.new_selectors(kmers, 0, &library.models)), &recorded)
        })?;
        drop(shards);
        let mut result = self.partition_result(self.params.partition, counted, stats, selectors.get(), &recorded)?;
        if self.params.partition.number() == 0 {
            result.pair_evidence =
                library.sketches.iter().map(ReferenceFreePairEvidence::estimate_without_reference).collect();
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
        Ok(self.build_counting_result(all, parts, PackedReadsOutcome::PerShard))
    }

    /// Removes novel k-mers that the reference contains: they are not somatic, only missing in the normal. Does nothing
    /// without a reference, or if there are so many novel k-mers that all are skipped later.
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
        let lookup = KmerLookup::from_kmer_iter(self.params.k, novel.iter().copied());
        let known = find_kmers_in_reference(path, &lookup, self.params.threads, &meter)?;
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
}

/// Returns the function that the counter calls for each root: it selects candidate k-mers and records the counts of
/// marker k-mers.
fn root_visitor<'a, const S: usize>(
    selectors: &'a CandidateSelectors,
    recorded: &'a RecordedKmers,
) -> impl Fn(&RootCounters<S>, &mut Vec<CandidateKmer>) + Sync + use<'a, S> {
    move |root, candidates| {
        selectors.append_candidates_of_root(root, candidates);
        if let Some(marks) = &recorded.marker_kmers {
            marks.record_root_counts(root);
        }
        if let Some(targets) = &recorded.target_markers {
            targets.record_marker_counts_of_root(root);
        }
    }
}
