//! Distributed call: steps that run as processes of their own, on several machines, and exchange objects of a run
//! store only.
//!
//! ```text
//! scatter, one per shard of the reads ─→ k-mers by partition, packed reads of the shard
//! count, one per partition            ─→ candidate k-mers and spectra of the partition
//! pick                                ─→ all candidate k-mers, without novel ones that the reference has
//! label, one per shard                ─→ labelled pairs, in buckets
//! assemble                            ─→ contigs
//! place                               ─→ positions and changes of the contigs, and the k-mers that recruit their reads
//! recruit, one per shard              ─→ recruited pairs of all samples, in buckets by locus
//! finish                              ─→ events, as in a call in one process
//! ```
//!
//! Together the steps do what the units of [`crate::pipeline`] do, with the same functions. An object is published
//! atomically, so a step may be repeated, or run twice at the same time. Data of shards is sorted before it is used, so
//! the result does not depend on the shards.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use genuma_kmers::{BinGrid, Partition};
use genuma_reads::fasta::Reference;
use genuma_reads::packed_reads::PackedReadsFile;
use genuma_reads::targets::Targets;
use genuma_reads::{Lane, ProgressCounters};
use genuma_storage::step_output::{self, StepOutput, StepOutputId};
use genuma_storage::{LocalObjectFile, RunStore};
use genuma_work::ProgressListener;
use genuma_work::cost::{CostTimer, UnitCost};
use genuma_work::disk_buckets::DiskBucketLocation;
use genuma_work::spill::LocalCopyOfObjectRange;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::assemble::Contig;
use crate::count::{CountingResult, CountingUnit, PartitionCountResult, ShardScatterResult};
use crate::error::Error;
use crate::gene_annotation::GeneFile;
use crate::genotyping_unit::{self, FinishedCall, GenotypingUnit, LocusInputs};
use crate::group_assembly::{self, GroupAssembler, GroupAssemblyParams};
use crate::known_variants::KnownVariants;
use crate::labelled_pair::build_candidate_lookup;
use crate::ledger::Ledger;
use crate::locus_ranges;
use crate::panel_of_normals::{PanelHitCounts, PanelOfNormals};
use crate::read_passes::{ReadPasses, ReadSource};
use crate::recruit::{PairCountsByRecruitingKmer, RecruitingKmerIndex};
use crate::resources::{CallParams, Resources};
use crate::sample_names::SampleNames;
use crate::target_depth::TargetsOption;
use crate::unit_results::{AssembleUnitResult, PlaceUnitInputs, PlaceUnitResult};

/// The plan of a distributed call: everything that determines the content of its objects in the run store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DistributedCallPlan {
    /// Lanes of reads of each shard.
    pub shards: Vec<Vec<Lane>>,
    /// Names of the samples. There is exactly one tumour: distributed calls support no more.
    #[serde(default)]
    pub samples: SampleNames,
    /// Number of partitions of the k-mers, and of bins in each partition.
    pub grid: BinGrid,
    /// FASTA file of the reference; without it, calls are placed on the assembled contigs of the normal.
    pub reference: Option<PathBuf>,
    /// FASTA file of sequences to screen for, such as viruses; `None` without screening.
    pub screen: Option<PathBuf>,
    /// The panel of normals. A plan without one omits this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<PanelOfNormals>,
    /// Known variants with population frequencies. A plan without them omits this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<KnownVariants>,
    /// GFF3 file with genes. A plan without annotation omits this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gff: Option<GeneFile>,
    /// Target intervals. A plan without them omits this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<TargetsOption>,
    /// Number of bases A, C, G and T of the reference; `None` without a reference.
    pub genome_bases: Option<u64>,
    /// Call parameters that determine the result.
    pub params: CallParams,
    /// All parameters and inputs as text, one item per line. Objects of a run with another fingerprint are rejected.
    pub fingerprint: String,
}

/// Kind of step of a distributed call, in the order in which the steps run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// One task per shard: divides the k-mers of the reads by partition, and packs the reads.
    Scatter,
    /// One task per partition: counts the k-mers and selects candidate k-mers.
    Count,
    /// One task: merges the candidate k-mers of all partitions and skips novel ones that the reference contains.
    Pick,
    /// One task per shard: finds the labelled pairs, which contain candidate k-mers.
    Label,
    /// One task: groups the labelled pairs and assembles contigs.
    Assemble,
    /// One task: places the contigs on the reference and finds their changes.
    Place,
    /// One task per shard: collects the read pairs of all samples that overlap a change.
    Recruit,
    /// One task: genotypes the recruited pairs and writes the result files.
    Finish,
}

impl StepKind {
    /// All kinds of steps, in the order in which they run.
    pub const ALL_STEP_KINDS: [StepKind; 8] = [
        StepKind::Scatter,
        StepKind::Count,
        StepKind::Pick,
        StepKind::Label,
        StepKind::Assemble,
        StepKind::Place,
        StepKind::Recruit,
        StepKind::Finish,
    ];

    /// Name of the step in `genuma step`, such as `scatter`.
    pub fn command_line_name(self) -> &'static str {
        match self {
            StepKind::Scatter => "scatter",
            StepKind::Count => "count",
            StepKind::Pick => "pick",
            StepKind::Label => "label",
            StepKind::Assemble => "assemble",
            StepKind::Place => "place",
            StepKind::Recruit => "recruit",
            StepKind::Finish => "finish",
        }
    }

    /// The kind of step with this name in `genuma step`; `None` if there is none.
    pub fn from_command_line_name(name: &str) -> Option<StepKind> {
        StepKind::ALL_STEP_KINDS.into_iter().find(|kind| kind.command_line_name() == name)
    }

    /// Whether there is one task of this kind for each shard of the reads.
    pub fn has_task_per_shard(self) -> bool {
        matches!(self, StepKind::Scatter | StepKind::Label | StepKind::Recruit)
    }

    /// The kind of step whose tasks must all be done before a task of this kind starts; `None` for the first kind.
    pub fn preceding_step(self) -> Option<StepKind> {
        let at = StepKind::ALL_STEP_KINDS.iter().position(|&kind| kind == self)?;
        at.checked_sub(1).map(|before| StepKind::ALL_STEP_KINDS[before])
    }
}

/// One task of a distributed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StepTask {
    /// Kind of step that the task belongs to.
    pub kind: StepKind,
    /// Number of the shard or partition that the task processes, from 1; 1 if the step has only one task.
    pub number: u32,
}

/// Formats the task as the arguments of `genuma step run`.
impl fmt::Display for StepTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            kind if kind.has_task_per_shard() || kind == StepKind::Count => {
                write!(f, "{} {}", kind.command_line_name(), self.number)
            }
            kind => f.write_str(kind.command_line_name()),
        }
    }
}

impl StepTask {
    /// Name of the object in the run store that the task publishes; `None` for the last step, which writes result
    /// files.
    pub fn object_name(self) -> Option<String> {
        match self.kind {
            StepKind::Finish => None,
            _ => Some(self.to_string().replace(' ', "-")),
        }
    }
}

impl DistributedCallPlan {
    /// Number of tasks of a kind of step: the number of shards or partitions, or 1.
    pub fn num_tasks_of_step(&self, kind: StepKind) -> u32 {
        match kind {
            StepKind::Count => self.grid.num_partitions,
            kind if kind.has_task_per_shard() => self.shards.len() as u32,
            _ => 1,
        }
    }

    /// The tasks of a kind of step, ascending by number.
    pub fn tasks_of_step(&self, kind: StepKind) -> impl Iterator<Item = StepTask> + use<> {
        (1..=self.num_tasks_of_step(kind)).map(move |number| StepTask { kind, number })
    }

    /// Opens the object that a task published; `None` if the task is not done.
    ///
    /// # Errors
    /// The object cannot be read, is damaged, or belongs to another run.
    pub fn open_task_output(
        &self,
        run_store: &RunStore,
        step: StepTask,
    ) -> Result<Option<StepOutput>, step_output::Error> {
        let Some(name) = step.object_name() else { return Ok(None) };
        let (step, fingerprint) = (step.to_string(), &self.fingerprint);
        StepOutput::find_step_output(run_store, &StepOutputId { step: &step, name: &name, fingerprint })
    }
}

/// Value in the object of a labelling task; the object also contains the labelled pairs.
#[derive(Serialize, Deserialize)]
struct LabelStepResult {
    buckets: Vec<DiskBucketLocation>,
}

/// Value in the object of the assembly task.
#[derive(Serialize, Deserialize)]
struct AssembleStepResult {
    /// Result of the counting tasks, without the candidate k-mers.
    counts: CountingResult,
    contigs: AssembleUnitResult,
}

/// Value in the object of the placement task.
#[derive(Serialize, Deserialize)]
struct PlaceStepResult {
    /// Result of the counting tasks, without the candidate k-mers.
    counts: CountingResult,
    /// Ledger of all earlier steps.
    ledger: Ledger,
    places: PlaceUnitResult,
    /// All assembled contigs, if there is no reference; otherwise empty.
    assembled: Vec<Contig>,
}

/// Value in the object of a recruiting task; the object also contains the recruited pairs.
#[derive(Serialize, Deserialize)]
struct RecruitStepResult {
    buckets: Vec<DiskBucketLocation>,
    /// Number of pairs with each recruiting k-mer in each sample.
    seen: Vec<u32>,
}

/// Runs tasks of a distributed call on this machine.
pub struct TaskRunner<'a> {
    /// The plan of the call.
    pub call: &'a DistributedCallPlan,
    /// Run store through which the tasks exchange objects.
    pub store: &'a RunStore,
    /// Threads, memory and disk space that the task may use.
    pub resources: Resources,
    /// Folder for spilled data, not shared with other tasks.
    pub work_dir: &'a Path,
    /// Receives the units that start and the number of bytes read.
    pub progress: &'a dyn ProgressListener,
    /// Checks, before the object of the task is published, that the input files are still those that were planned.
    pub check_inputs: &'a dyn Fn() -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
}

/// The value of an object, and the parts of its data that were copied to this machine.
struct FetchedObject<T> {
    name: String,
    fetched: LocalObjectFile,
    value: T,
}

impl<T> FetchedObject<T> {
    fn file(&self) -> LocalCopyOfObjectRange<'_> {
        LocalCopyOfObjectRange {
            name: &self.name,
            path: self.fetched.local_path(),
            object_offset: self.fetched.object_offset(),
        }
    }
}

impl TaskRunner<'_> {
    /// Runs a task that publishes an object, even if the object exists already.
    ///
    /// # Errors
    /// The step has no task with this number, or is the last step; an earlier step that the task needs is not done; an
    /// object, the reads or the reference cannot be read or are damaged; the object of the task cannot be written.
    pub fn run_task(&self, step: StepTask) -> Result<(), Error> {
        let of = |n: u32| Error::Input(format!("{step}: the number must be between 1 and {n}"));
        let tasks = self.call.num_tasks_of_step(step.kind);
        if !(1..=tasks).contains(&step.number) {
            return Err(of(tasks));
        }
        match step.kind {
            StepKind::Scatter => self.run_scatter(step),
            StepKind::Count => self.run_count(step),
            StepKind::Pick => self.run_pick(step),
            StepKind::Label => self.run_label(step),
            StepKind::Assemble => self.run_assemble(step),
            StepKind::Place => self.run_place(step),
            StepKind::Recruit => self.run_recruit(step),
            StepKind::Finish => Err(Error::Input("the step finish writes result files and publishes no object".into())),
        }
    }

    /// Publishes the object of a task. `write` writes the data that precedes the value.
    fn publish_result<T: Serialize>(
        &self,
        step: StepTask,
        write: impl FnOnce(&Path) -> Result<T, Error>,
    ) -> Result<(), Error> {
        let clock = CostTimer::start();
        let name = step.object_name().unwrap_or_default();
        let draft = self.store.create_temp_object(&name).map_err(step_output::Error::from)?;
        let value = write(draft.path())?;
        (self.check_inputs)().map_err(Error::InputChanged)?;
        let text = step.to_string();
        let label = StepOutputId { step: &text, name: &name, fingerprint: &self.call.fingerprint };
        Ok(step_output::publish_step_output(self.store, draft, &label, &value, clock.stop(&text))?)
    }

    fn open_object(&self, step: StepTask) -> Result<StepOutput, Error> {
        let (text, name) = (step.to_string(), step.object_name().unwrap_or_default());
        let label = StepOutputId { step: &text, name: &name, fingerprint: &self.call.fingerprint };
        Ok(StepOutput::find_required_step_output(self.store, &label)?)
    }

    fn read_result<T: DeserializeOwned>(&self, step: StepTask) -> Result<T, Error> {
        Ok(self.open_object(step)?.read_value()?)
    }

    /// Copies an object from the run store: its value, and the range of its data that `which` returns.
    fn fetch_object<T: DeserializeOwned>(
        &self,
        step: StepTask,
        which: impl FnOnce(&StepOutput, &T) -> std::ops::Range<u64>,
    ) -> Result<FetchedObject<T>, Error> {
        let step_output = self.open_object(step)?;
        let value = step_output.read_value()?;
        let fetched = step_output.fetch_range_to_file(which(&step_output, &value))?;
        Ok(FetchedObject { name: step_output.object_path_or_url().to_owned(), fetched, value })
    }

    fn count_unit<'b>(
        &'b self,
        lanes: &'b [Lane],
        partition: Partition,
        targets: Option<&'b Targets>,
    ) -> CountingUnit<'b> {
        let DistributedCallPlan { params, genome_bases, reference, screen, .. } = self.call;
        // Only a step that counts a partition has candidates, those of this partition.
        let bases = genome_bases.map(|bases| bases / u64::from(partition.num_partitions()));
        let tumours = self.call.samples.tumour_names().len();
        let kmer_count_params = self.resources.kmer_count_params(params, bases, tumours, self.work_dir.to_owned());
        CountingUnit {
            lanes,
            samples: &self.call.samples,
            params: genuma_kmers::CountParams { partition, ..kmer_count_params },
            min_tumour_count: params.min_tumour_count,
            assay: params.assay,
            genome_bases: *genome_bases,
            reference: reference.as_deref(),
            screen: screen.as_deref(),
            targets,
            progress: self.progress,
        }
    }

    fn run_scatter(&self, step: StepTask) -> Result<(), Error> {
        let lanes = &self.call.shards[step.number as usize - 1];
        self.publish_result(step, |path| {
            Ok(self.count_unit(lanes, Partition::WHOLE_KMER_SPACE, None).scatter_shard(self.call.grid, path)?)
        })
    }

    fn run_count(&self, step: StepTask) -> Result<(), Error> {
        let grid = self.call.grid;
        let partition = Partition::from_number_and_total(step.number - 1, grid.num_partitions);
        let partition = partition.ok_or_else(|| Error::Input(format!("{step}: there is no such partition")))?;
        self.publish_result(step, |_| {
            let open = |step| {
                self.fetch_object(step, |_, one: &ShardScatterResult| one.shard.byte_range_of_partition(partition))
            };
            let shards = self.call.tasks_of_step(StepKind::Scatter).map(open).collect::<Result<Vec<_>, _>>()?;
            let scattered: Vec<_> = shards.iter().map(|shard| (&shard.value, shard.file())).collect();
            let targets = self.call.targets.as_ref().zip(self.call.reference.as_deref());
            let targets = targets.map(|(option, path)| option.read_targets_for_reference_file(path)).transpose()?;
            Ok(self.count_unit(&[], partition, targets.as_ref()).count_scattered_partition(&scattered)?)
        })
    }

    fn run_pick(&self, step: StepTask) -> Result<(), Error> {
        self.publish_result(step, |_| {
            self.progress.unit_started(&step.to_string(), None);
            let shares = self.call.tasks_of_step(StepKind::Count).map(|step| self.read_result(step));
            let shares: Vec<PartitionCountResult> = shares.collect::<Result<_, _>>()?;
            Ok(self.count_unit(&[], Partition::WHOLE_KMER_SPACE, None).merge_partition_results(shares)?)
        })
    }

    /// Reads the result of all counting tasks, which the step `pick` has merged.
    fn read_counts(&self) -> Result<CountingResult, Error> {
        self.read_result(StepTask { kind: StepKind::Pick, number: 1 })
    }

    fn fetch_packed_reads(&self, shard: u32) -> Result<(PackedReadsFile, LocalObjectFile), Error> {
        let step = StepTask { kind: StepKind::Scatter, number: shard };
        let opened = self.fetch_object(step, |_, one: &ShardScatterResult| 0..one.packed_reads.file_bytes())?;
        let copy = PackedReadsFile::open_object_copy(&opened.file(), opened.value.packed_reads.clone())?;
        Ok((copy, opened.fetched))
    }

    fn passes<'b>(&self, copy: &'b PackedReadsFile) -> ReadPasses<'b> {
        let samples = self.call.samples.num_samples();
        ReadPasses {
            reads: ReadSource::Packed(copy),
            num_samples: samples,
            threads: self.resources.threads,
            has_normal: self.call.samples.has_normal(),
        }
    }

    fn start_meter(&self, step: StepTask) -> Arc<ProgressCounters> {
        let meter = Arc::new(ProgressCounters::default());
        self.progress.unit_started(&step.to_string(), Some(meter.clone()));
        meter
    }

    fn run_label(&self, step: StepTask) -> Result<(), Error> {
        let meter = self.start_meter(step);
        self.publish_result(step, |path| {
            let candidates = self.read_counts()?.candidates;
            let lookup = build_candidate_lookup(self.call.params.k, &candidates);
            drop(candidates);
            let (copy, _fetched) = self.fetch_packed_reads(step.number)?;
            let writer = group_assembly::LabelledPairWriter::create(path)?;
            self.passes(&copy).for_each_labelled_pair(&lookup, &meter, |pair| Ok(writer.write_pair(&pair)?))?;
            Ok(LabelStepResult { buckets: writer.finish_buckets()? })
        })
    }

    fn run_assemble(&self, step: StepTask) -> Result<(), Error> {
        self.progress.unit_started(&step.to_string(), None);
        self.publish_result(step, |_| {
            let mut counts = self.read_counts()?;
            let candidates = std::mem::take(&mut counts.candidates);
            let (threads, memory) = (self.resources.threads, self.resources.allocatable_memory_bytes() / 2);
            let k = self.call.params.k;
            let tumours = self.call.samples.tumour_names().len();
            let params = GroupAssemblyParams {
                candidates,
                num_tumours: tumours,
                k,
                threads,
                memory_bytes: memory,
                work_dir: self.work_dir,
                traced_kmers: &[],
                libraries: &counts.library_models,
            };
            let mut assembler = GroupAssembler::empty(params);
            let mut fetched = Vec::new();
            for label in self.call.tasks_of_step(StepKind::Label) {
                let obj = self.fetch_object(label, |output, _: &LabelStepResult| output.data_blocks_range())?;
                let file = LocalCopyOfObjectRange { name: &obj.name, path: obj.fetched.local_path(), object_offset: 0 };
                if !assembler.add_labelled_pairs_of_shard(&file, obj.value.buckets)? {
                    let object = obj.name;
                    return Err(step_output::Error::Damaged { object, what: "buckets of labelled pairs" }.into());
                }
                fetched.push(obj.fetched);
            }
            let contigs = AssembleUnitResult::from_group_assembly_result(assembler.group_and_assemble_pairs()?);
            Ok(AssembleStepResult { counts, contigs })
        })
    }

    fn read_reference(&self) -> Result<Option<Reference>, Error> {
        Ok(self.call.reference.as_deref().map(Reference::read_fasta_file).transpose()?)
    }

    fn run_place(&self, step: StepTask) -> Result<(), Error> {
        let meter = Arc::new(ProgressCounters::new("the reference"));
        self.progress.unit_started(&step.to_string(), self.call.reference.is_some().then(|| meter.clone()));
        self.publish_result(step, |_| {
            let assembled = StepTask { kind: StepKind::Assemble, number: 1 };
            let AssembleStepResult { mut counts, contigs: AssembleUnitResult { mut contigs, ledger: lines } } =
                self.read_result(assembled)?;
            let mut ledger = std::mem::take(&mut counts.ledger);
            ledger.append_lines(&lines);
            let genome = self.read_reference()?;
            let context = PlaceUnitInputs {
                genome: genome.as_ref(),
                k: self.call.params.k,
                threads: self.resources.threads,
                memory_bytes: self.resources.allocatable_memory_bytes(),
                thresholds: genotyping_unit::determine_call_thresholds(&counts, &self.call.samples, &self.call.params),
                meter: &meter,
            };
            let places = PlaceUnitResult::place_contigs_and_select_recruiting_kmers(&mut contigs, &context, None);
            Ok(PlaceStepResult { counts, ledger, places, assembled: contigs })
        })
    }

    fn read_placed_contigs(&self) -> Result<PlaceStepResult, Error> {
        self.read_result(StepTask { kind: StepKind::Place, number: 1 })
    }

    fn run_recruit(&self, step: StepTask) -> Result<(), Error> {
        let meter = self.start_meter(step);
        self.publish_result(step, |path| {
            let PlaceStepResult { places: PlaceUnitResult { contigs, recruiting_kmers: wanted, .. }, .. } =
                self.read_placed_contigs()?;
            let index = RecruitingKmerIndex::from_recruiting_kmers(wanted);
            let seen = PairCountsByRecruitingKmer::zero_counts(&index, self.call.samples.num_samples());
            let writer = locus_ranges::RecruitedPairBuckets::create_buckets_for_shard(step.number, &contigs, path)?;
            drop(contigs);
            let (copy, _fetched) = self.fetch_packed_reads(step.number)?;
            self.passes(&copy).recruit_pairs(&index, &seen, &meter, |pair| Ok(writer.add_pair(pair)?))?;
            Ok(RecruitStepResult { buckets: writer.flush_shard_buckets()?, seen: seen.counts_by_rank_and_sample() })
        })
    }

    /// Runs the task of the last step: genotypes all recruited pairs. The costs in the result are those of all steps.
    ///
    /// # Errors
    /// An earlier step is not done; an object or the reference cannot be read or is damaged; spilled data cannot be
    /// written.
    pub fn run_finish_task(&self) -> Result<FinishedCall, Error> {
        let mut costs = self.collect_costs()?;
        let clock = CostTimer::start();
        self.progress.unit_started("recruited pairs of all shards", None);
        let PlaceStepResult { counts, mut ledger, places, assembled } = self.read_placed_contigs()?;
        let PlaceUnitResult { contigs, recruiting_kmers: wanted, ledger: lines } = places;
        ledger.append_lines(&lines);
        let index = RecruitingKmerIndex::from_recruiting_kmers(wanted);
        let seen = PairCountsByRecruitingKmer::zero_counts(&index, self.call.samples.num_samples());
        let (mut shards, mut fetched) = (Vec::new(), Vec::new());
        let recruits = self.work_dir.join("recruit.bins");
        let writer = locus_ranges::RecruitedPairBuckets::create_buckets(&contigs, &recruits)?;
        for step in self.call.tasks_of_step(StepKind::Recruit) {
            let obj = self.fetch_object(step, |output, _: &RecruitStepResult| output.data_blocks_range())?;
            let file = LocalCopyOfObjectRange { name: &obj.name, path: obj.fetched.local_path(), object_offset: 0 };
            if !seen.merge_shard_counts(&obj.value.seen) || obj.value.buckets.len() != writer.num_buckets() {
                let object = obj.name;
                return Err(step_output::Error::Damaged { object, what: "buckets of recruited pairs" }.into());
            }
            shards.push(locus_ranges::RecruitedPairBuckets::open_shard_buckets(&file, obj.value.buckets)?);
            fetched.push(obj.fetched);
        }
        let deep = index.compute_locus_depths(&seen, contigs.len());
        let recruited = writer.merge_and_downsample_shards(&shards, &index, &deep, self.resources.threads)?;
        drop((shards, fetched, index, seen, deep));
        costs.push(clock.stop("merge recruited pairs"));
        let panel = self.look_up_panel(&mut costs, &mut ledger)?;
        self.progress.unit_started("judge", None);
        let genome = self.read_reference()?;
        let targets = match (&self.call.targets, &genome) {
            (Some(option), Some(genome)) => Some((option, option.read_targets(genome)?)),
            _ => None,
        };
        let genotyping = GenotypingUnit {
            samples: &self.call.samples,
            counts,
            loci: LocusInputs { genome, contigs, assembled: &assembled, recruited, recruited_path: &recruits },
            params: &self.call.params,
            resources: &self.resources,
            work_dir: self.work_dir,
            ledger,
            costs,
            tracer: None,
            panel,
            targets,
            known: self.call.known.as_ref(),
        };
        genotyping.run_genotyping()
    }

    /// Looks up the candidate k-mers in the panel of normals, if there is one.
    fn look_up_panel(&self, costs: &mut Vec<UnitCost>, ledger: &mut Ledger) -> Result<Option<PanelHitCounts>, Error> {
        let Some(panel) = &self.call.panel else { return Ok(None) };
        self.progress.unit_started("panel", None);
        let (clock, counts) = (CostTimer::start(), self.read_counts()?);
        let (usual, room) = (counts.median_kmer_depth_of_first_tumour(), self.resources.allocatable_memory_bytes());
        let hits = panel.count_normals_with_candidates(&counts.candidates, usual, self.resources.threads, room)?;
        let mut lines = Ledger::default();
        hits.add_to_ledger(&mut lines);
        // At the position that the lines have in a call in one process.
        ledger.insert_lines_before_stage("assemble", &lines);
        costs.push(clock.stop("panel"));
        Ok(Some(hits))
    }

    /// Reads the costs of all tasks before the last.
    fn collect_costs(&self) -> Result<Vec<UnitCost>, Error> {
        let before = StepKind::ALL_STEP_KINDS.into_iter().filter(|&kind| kind != StepKind::Finish);
        let steps = before.flat_map(|kind| self.call.tasks_of_step(kind));
        steps.map(|step| Ok(self.open_object(step)?.task_cost().clone())).collect()
    }
}
