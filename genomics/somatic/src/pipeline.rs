//! Runs a call in one process: the units in their order, and what each passes to the next.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use genuma_pair::library_properties::SamplePairLibraryProperties;
use genuma_reads::Lane;
use genuma_reads::fasta::Reference;
use genuma_reads::packed_reads::{PackedReadBlockIndex, PackedReadsFile};
use genuma_reads::targets::Targets;
use genuma_work::cost::{CostTimer, UnitCost};
use genuma_work::unit::UnitStore;
use genuma_work::{ProgressCounters, ProgressListener};

use crate::aligned_contig::AlignedContig;
use crate::assemble::Contig;
use crate::candidate_kmer::CandidateKmer;
use crate::count::{self, CountingResult, CountingUnit};
use crate::gene_annotation::GeneFile;
use crate::genotyping_unit::{self, GenotypingUnit, LocusInputs};
use crate::group_assembly::{GroupAssembler, GroupAssemblyParams};
use crate::known_variants::KnownVariants;
use crate::labelled_pair::build_candidate_lookup;
use crate::ledger::Ledger;
use crate::locus_ranges::{RecruitedPairBuckets, RecruitedPairsOnDisk};
use crate::panel_of_normals::{PanelHitCounts, PanelOfNormals};
use crate::provenance::Provenance;
use crate::read_passes::{ReadPasses, ReadSource};
use crate::recruit::{PairCountsByRecruitingKmer, RecruitingKmerIndex, RecruitingKmers};
use crate::result_warnings::{ResultWarning, SampleDepths, find_samples_below_min_depth};
use crate::sample_names::SampleNames;
use crate::target_depth::TargetsOption;
use crate::unit_results::{AssembleUnitResult, PlaceUnitInputs, PlaceUnitResult};
use crate::variant_trace::{TracedVariant, VariantTracer};

pub use crate::error::Error;
pub use crate::genotyping_unit::FinishedCall;
pub use crate::resources::{CallParams, DEFAULT_KMER_LENGTH, Resources};

/// Inputs and parameters of a call.
#[derive(Debug, Clone)]
pub struct CallJob {
    /// Reads of all samples, by lane.
    pub lanes: Vec<Lane>,
    /// Names of the normal and the tumours, as in the columns of the VCF.
    pub samples: SampleNames,
    /// FASTA file of the reference; without one, calls are placed on contigs assembled from the normal.
    pub reference: Option<PathBuf>,
    /// FASTA file of sequences that calls are screened for (`--screen`); `None` if there is none.
    pub screen: Option<PathBuf>,
    /// Target intervals (`--targets`), which require a reference; `None` if there are none.
    pub targets: Option<TargetsOption>,
    /// Parameters that determine the result, in addition to the reads.
    pub params: CallParams,
    /// Threads, memory and disk space that the call may use.
    pub resources: Resources,
    /// Store for the results of finished units, from which an interrupted call resumes.
    pub store: UnitStore,
    /// Variants to trace (`--why`); they require a reference.
    pub traced_variants: Vec<TracedVariant>,
    /// Panel of normals (`--panel`); `None` if there is none.
    pub panel: Option<PanelOfNormals>,
    /// Known variants with population frequencies (`--known`); `None` if there are none.
    pub known: Option<KnownVariants>,
    /// GFF3 file with genes for the annotation of calls (`--gff`); `None` if there is none.
    pub gff: Option<GeneFile>,
    /// Command line and input files, which are written to the results.
    pub provenance: Provenance,
}

/// The counted k-mers of all samples of a call, from which the call continues.
pub struct CountedSamples {
    counts: CountingResult,
    costs: Vec<UnitCost>,
    /// Number of bases of the reference that are A, C, G or T; `None` without a reference.
    genome_bases: Option<u64>,
    targets: Option<Targets>,
    tracer: Option<VariantTracer>,
}

impl CountedSamples {
    /// Returns a warning for each sample of `job` that is too shallow. The finished call has it too; here it is known
    /// before the units that take longest. Ambiguous bases of the reference are not counted here, so that a sample with
    /// a depth just below a limit may have the warning at the end only.
    pub fn find_shallow_samples(&self, job: &CallJob) -> Vec<ResultWarning> {
        let CountingResult { spectra, bases, target_depths, .. } = &self.counts;
        let targets = target_depths.as_ref().zip(self.targets.as_ref());
        let depths = SampleDepths { spectra, bases, reference_bases: self.genome_bases, targets };
        find_samples_below_min_depth(&job.samples, &depths)
    }
}

impl CallJob {
    /// A call of the normal and one tumour, with default names and parameters and without optional inputs. Results of
    /// units and spilled data go to `work_folder`; results of an earlier run there are not used.
    pub fn with_defaults(
        lanes: Vec<Lane>,
        reference: Option<PathBuf>,
        resources: Resources,
        work_folder: PathBuf,
    ) -> CallJob {
        CallJob {
            lanes,
            samples: SampleNames::default(),
            reference,
            screen: None,
            targets: None,
            params: CallParams::with_defaults(true),
            resources,
            store: UnitStore { work_folder, fingerprint: String::new(), resume: false },
            traced_variants: Vec::new(),
            panel: None,
            known: None,
            gff: None,
            provenance: Provenance::default(),
        }
    }

    /// Paths of all input files: the reads, then the other files.
    pub fn input_paths(&self) -> impl Iterator<Item = &Path> {
        let others = [
            self.reference.as_deref(),
            self.screen.as_deref(),
            self.panel.as_ref().map(PanelOfNormals::table_path),
            self.targets.as_ref().map(|targets| targets.path.as_path()),
            self.known.as_ref().map(|known| known.path.as_path()),
            self.gff.as_ref().map(|gff| gff.path.as_path()),
        ];
        self.lanes.iter().flat_map(Lane::paths).chain(others.into_iter().flatten())
    }

    /// Runs all units of the call, from reads to events; units with a stored result are not run again. Reports progress
    /// to `watch`.
    ///
    /// # Errors
    /// As for the two methods that it consists of.
    pub fn run_call(&self, watch: &dyn ProgressListener) -> Result<FinishedCall, Error> {
        self.call_counted_samples(self.count_samples(watch)?, watch)
    }

    /// Runs the first unit of the call: counts the k-mers of all samples and selects candidate k-mers.
    ///
    /// # Errors
    /// An input cannot be read, or the result cannot be stored.
    pub fn count_samples(&self, watch: &dyn ProgressListener) -> Result<CountedSamples, Error> {
        let mut costs = Vec::new();
        let genome = self.read_reference()?;
        let genome_bases = genome.as_ref().map(count_acgt_bases);
        let tracer = genome
            .as_ref()
            .and_then(|genome| VariantTracer::for_variants(&self.traced_variants, genome, self.params.k));
        let targets = self.targets.as_ref().zip(genome.as_ref());
        let targets = targets.map(|(option, genome)| option.read_targets(genome)).transpose()?;
        drop(genome);
        let counts =
            self.store.run_or_load_unit("count", &mut costs, || self.count(genome_bases, targets.as_ref(), watch))?;
        count::remove_partition_units(&self.store);
        Ok(CountedSamples { counts, costs, genome_bases, targets, tracer })
    }

    /// Runs the units after counting.
    ///
    /// # Errors
    /// An input or a stored result cannot be read, or a result cannot be stored.
    pub fn call_counted_samples(
        &self,
        counted: CountedSamples,
        watch: &dyn ProgressListener,
    ) -> Result<FinishedCall, Error> {
        let CountedSamples { mut counts, mut costs, targets, mut tracer, .. } = counted;
        let mut ledger = Ledger::default();
        let copy = counts.packed_reads.take().map_or(Ok(None), |copied| self.open_packed_reads(copied))?;
        let passes = self.read_passes(copy.as_ref());
        ledger.append_lines(&counts.ledger);
        if let Some(tracer) = &mut tracer {
            trace_kmers(tracer, &passes, &counts.candidates, watch)?;
        }
        let panel = self.look_up_panel(&counts, &mut costs, &mut ledger, watch)?;
        let candidates = std::mem::take(&mut counts.candidates);
        let mut assembled = self.store.run_or_load_unit("assemble", &mut costs, || {
            self.assemble(&passes, candidates, &counts.library_models, tracer.as_mut(), watch)
        })?;
        ledger.append_lines(&assembled.ledger);
        if let Some(tracer) = &mut tracer {
            tracer.record_contigs(&assembled.contigs);
        }
        // Tracing needs the placement itself, so the unit is run again.
        let store = UnitStore { resume: self.store.resume && tracer.is_none(), ..self.store.clone() };
        let mut genome = None;
        let PlaceUnitResult { contigs, recruiting_kmers: wanted, ledger: lines } =
            store.run_or_load_unit("place", &mut costs, || {
                let (placed, read) = self.place(&mut assembled.contigs, &counts, tracer.as_mut(), watch)?;
                genome = read;
                Ok::<_, Error>(placed)
            })?;
        ledger.append_lines(&lines);
        let recruited =
            self.store.run_or_load_unit("recruit", &mut costs, || self.recruit(&passes, wanted, &contigs, watch))?;
        if copy.is_some() {
            // Later units do not need the packed reads. If the file cannot be removed it goes with the work folder.
            let _ = fs::remove_file(count::packed_reads_path(&self.store));
        }
        drop(copy);
        let genome = genome.map_or_else(|| self.read_reference(), |genome| Ok(Some(genome)))?;
        watch.unit_started("judge", None);
        let genotyping = GenotypingUnit {
            samples: &self.samples,
            counts,
            loci: LocusInputs {
                genome,
                contigs,
                assembled: &assembled.contigs,
                recruited,
                recruited_path: &self.recruited_pairs_path(),
            },
            params: &self.params,
            resources: &self.resources,
            work_dir: &self.store.work_folder,
            ledger,
            costs,
            tracer,
            panel,
            targets: self.targets.as_ref().zip(targets),
            known: self.known.as_ref(),
        };
        genotyping.run_genotyping()
    }

    /// Reads the reference; `None` if there is none.
    fn read_reference(&self) -> Result<Option<Reference>, Error> {
        Ok(self.reference.as_deref().map(Reference::read_fasta_file).transpose()?)
    }

    /// The later passes over the reads, which read the packed reads if there are any.
    fn read_passes<'a>(&'a self, packed_reads: Option<&'a PackedReadsFile>) -> ReadPasses<'a> {
        ReadPasses {
            reads: packed_reads.map_or(ReadSource::Files(&self.lanes), ReadSource::Packed),
            num_samples: self.samples.num_samples(),
            threads: self.resources.threads,
            has_normal: self.samples.has_normal(),
        }
    }

    /// Places the contigs on the reference, finds their changes, and selects the k-mers that recruit reads. Also returns
    /// the reference.
    fn place(
        &self,
        contigs: &mut Vec<Contig>,
        counts: &CountingResult,
        tracer: Option<&mut VariantTracer>,
        watch: &dyn ProgressListener,
    ) -> Result<(PlaceUnitResult, Option<Reference>), Error> {
        let meter = Arc::new(ProgressCounters::new("the reference"));
        watch.unit_started("place", self.reference.is_some().then(|| meter.clone()));
        let genome = self.read_reference()?;
        let inputs = PlaceUnitInputs {
            genome: genome.as_ref(),
            k: self.params.k,
            threads: self.resources.threads,
            memory_bytes: self.resources.allocatable_memory_bytes(),
            thresholds: genotyping_unit::determine_call_thresholds(counts, &self.samples, &self.params),
            meter: &meter,
        };
        Ok((PlaceUnitResult::place_contigs_and_select_recruiting_kmers(contigs, &inputs, tracer), genome))
    }

    /// Looks up the candidate k-mers in the panel of normals; `None` if there is no panel.
    fn look_up_panel(
        &self,
        counts: &CountingResult,
        costs: &mut Vec<UnitCost>,
        ledger: &mut Ledger,
        watch: &dyn ProgressListener,
    ) -> Result<Option<PanelHitCounts>, Error> {
        let Some(panel) = &self.panel else { return Ok(None) };
        watch.unit_started("panel", None);
        let clock = CostTimer::start();
        let panel_counts = panel.count_normals_with_candidates(
            &counts.candidates,
            counts.median_kmer_depth_of_first_tumour(),
            self.resources.threads,
            self.resources.allocatable_memory_bytes(),
        )?;
        panel_counts.add_to_ledger(ledger);
        costs.push(clock.stop("panel"));
        Ok(Some(panel_counts))
    }

    /// First pass over the reads: counts k-mers and selects candidate k-mers.
    fn count(
        &self,
        genome_bases: Option<u64>,
        targets: Option<&Targets>,
        watch: &dyn ProgressListener,
    ) -> Result<CountingResult, Error> {
        let tumours = self.samples.tumour_names().len();
        let traced: u64 = self.traced_variants.iter().map(|variant| variant.memory_bytes(self.params.k)).sum();
        let resources = Resources { memory: self.resources.memory.saturating_sub(traced), ..self.resources.clone() };
        let params = resources.kmer_count_params(&self.params, genome_bases, tumours, self.store.work_folder.clone());
        let min_tumour_count = self.params.min_tumour_count;
        let (lanes, samples) = (&self.lanes, &self.samples);
        let (reference, screen) = (self.reference.as_deref(), self.screen.as_deref());
        Ok(CountingUnit {
            lanes,
            samples,
            params,
            min_tumour_count,
            assay: self.params.assay,
            genome_bases,
            reference,
            screen,
            targets,
            progress: watch,
        }
        .run_counting(&self.store)?)
    }

    /// Opens the packed reads of the first pass. `None` if they are missing or incomplete; later passes then read the
    /// input files, and a warning is logged if there is one to come.
    fn open_packed_reads(&self, copied: PackedReadBlockIndex) -> Result<Option<PackedReadsFile>, Error> {
        let path = count::packed_reads_path(&self.store);
        let copy = PackedReadsFile::open(&path, copied)?;
        let wanted =
            !self.traced_variants.is_empty() || !self.store.names_of_finished_units().contains(&"recruit".to_owned());
        if copy.is_none() && wanted {
            tracing::warn!(
                "{}: the packed reads are missing or incomplete; the input files are read again: the calls are the same, but take \
                 longer; nothing needs to be done",
                path.display()
            );
        }
        Ok(copy)
    }

    /// Second pass over the reads: collects the labelled pairs, groups them and assembles the groups.
    fn assemble(
        &self,
        passes: &ReadPasses<'_>,
        candidates: Vec<CandidateKmer>,
        libraries: &[SamplePairLibraryProperties],
        tracer: Option<&mut VariantTracer>,
        watch: &dyn ProgressListener,
    ) -> Result<AssembleUnitResult, Error> {
        let meter = Arc::new(ProgressCounters::default());
        watch.unit_started("assemble", Some(meter.clone()));
        let k = self.params.k;
        let lookup = build_candidate_lookup(k, &candidates);
        let traced = tracer.as_ref().map(|tracer| tracer.candidate_ranks_by_variant(&candidates)).unwrap_or_default();
        // The other half is for the buckets that threads are working on, and for contigs.
        let (threads, memory, work) =
            (self.resources.threads, self.resources.allocatable_memory_bytes() / 2, &self.store.work_folder);
        let tumours = self.samples.tumour_names().len();
        let assembler = GroupAssembler::empty(GroupAssemblyParams {
            candidates,
            num_tumours: tumours,
            k,
            threads,
            memory_bytes: memory,
            work_dir: work,
            traced_kmers: &traced,
            libraries,
        });
        passes.for_each_labelled_pair(&lookup, &meter, |pair| Ok(assembler.add_pair(pair)?))?;
        drop(lookup);
        let assembled_groups = assembler.group_and_assemble_pairs()?;
        if let Some(tracer) = tracer {
            tracer.record_pairs_and_groups(&assembled_groups.traced);
        }
        Ok(AssembleUnitResult::from_group_assembly_result(assembled_groups))
    }

    fn recruited_pairs_path(&self) -> PathBuf {
        self.store.work_folder.join("recruit.bins")
    }

    /// Third pass over the reads: recruits the pairs of all samples that overlap a change.
    fn recruit(
        &self,
        passes: &ReadPasses<'_>,
        wanted: RecruitingKmers,
        contigs: &[AlignedContig],
        watch: &dyn ProgressListener,
    ) -> Result<RecruitedPairsOnDisk, Error> {
        let meter = Arc::new(ProgressCounters::default());
        watch.unit_started("recruit", Some(meter.clone()));
        let index = RecruitingKmerIndex::from_recruiting_kmers(wanted);
        let (seen, shelving) = (
            PairCountsByRecruitingKmer::zero_counts(&index, self.samples.num_samples()),
            RecruitedPairBuckets::create_buckets(contigs, &self.recruited_pairs_path())?,
        );
        passes.recruit_pairs(&index, &seen, &meter, |pair| Ok(shelving.add_pair(pair)?))?;
        Ok(shelving.merge_and_downsample_shards(
            &[],
            &index,
            &index.compute_locus_depths(&seen, contigs.len()),
            self.resources.threads,
        )?)
    }
}

/// Number of bases of a reference that are A, C, G or T.
pub fn count_acgt_bases(genome: &Reference) -> u64 {
    let panel_counts = |seq: &Vec<u8>| seq.iter().filter(|b| b"ACGT".contains(b)).count() as u64;
    genome.contigs.iter().map(|c| panel_counts(&c.seq)).sum()
}

/// One more pass over the reads (`--why`), which counts the k-mers of the traced variants.
fn trace_kmers(
    tracer: &mut VariantTracer,
    passes: &ReadPasses<'_>,
    candidates: &[CandidateKmer],
    watch: &dyn ProgressListener,
) -> Result<(), Error> {
    let meter = Arc::new(ProgressCounters::default());
    watch.unit_started("why", Some(meter.clone()));
    passes
        .for_each_pair(&meter, |pair, sample, scratch, hits| tracer.count_kmers_in_pair(pair, sample, scratch, hits))?;
    tracer.record_candidates(candidates);
    Ok(())
}
