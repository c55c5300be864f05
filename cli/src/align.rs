//! `genuma align`: aligns reads to a reference.

mod lanes;
mod outcome;
mod scoring;
mod sequencing_unit;

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use genuma_align::bgzf::CompressionLevel;
use genuma_align::engine::genuma::GenumaEngineOptions;
use genuma_align::engine::{Engine, GenumaEngine, ReadLayout, genuma};
use genuma_align::header::{ProgramWithCommandLine, ReadGroup, format_unsorted_sam_header};
use genuma_align::index_placement::{
    self, IndexPlacementRequest, LoadedIndex, NodeMemoryMeasurements, choose_index_placement,
    residence_matches_placement,
};
use genuma_align::pipeline::{self, AlignOutput, AlignWorkerPool, DEFAULT_BATCH_BASES, ReadsToAlign};
use genuma_align::sort::markdup::{MarkdupOptions, ReadGroupLibraries};
use genuma_align::sort::{self, BamFileWriter, CramFileWriter, CramVersion, SortedFileHeader, Sorter};
use genuma_farm::assign_cpu_slots;
use genuma_machine::Topology;
use genuma_machine::topology::{Sysfs, TopologySource};
use genuma_probe::MachineProfile;
use genuma_probe::profile::BandwidthKernel;
use genuma_reads::fasta;
use genuma_reads::{
    AlignedInput, AlignedOptions, BatchLimits, CarriedTags, CramReference, ProgressCounters, ReadBatch, ReadStream,
    StreamLane, StreamOptions, parse_tag_name,
};
use genuma_work::counters::RunCounterRecorder;
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use genuma_work::{ProgressListener, quantity};
use tracing::{debug, info, warn};

use crate::call::memory_limits;
use crate::errors::{UsageError, require_existing_folder};
use crate::progress::UnitProgressDisplay;
use crate::{aligned_files, command_line, counter_table, logging, machine_profile, multiqc};
use outcome::{AlignOutcome, PlannedAndActualIndexPlacement, StageTimes};
use scoring::ScoringAndReportOptions;

/// Minimum memory for sorting (bytes): enough for one block of records and the merge buffers.
const MIN_SORT_MEMORY_BYTES: u64 = 64 << 20;

/// Values of `--placement`: memory placement of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IndexPlacement {
    /// A copy on each node if the copies fit easily, else pages spread over all nodes
    Auto,
    /// On the node of the thread that loads the index
    Local,
    /// Pages spread evenly over all nodes
    Interleave,
    /// Pages spread over all nodes by the kernel's weights (weighted interleave)
    Weighted,
    /// A copy on each node
    Replicate,
}

impl From<IndexPlacement> for IndexPlacementRequest {
    fn from(placement: IndexPlacement) -> IndexPlacementRequest {
        match placement {
            IndexPlacement::Auto => IndexPlacementRequest::Auto,
            IndexPlacement::Local => IndexPlacementRequest::Local,
            IndexPlacement::Interleave => IndexPlacementRequest::Interleave,
            IndexPlacement::Weighted => IndexPlacementRequest::Weighted,
            IndexPlacement::Replicate => IndexPlacementRequest::Replicate,
        }
    }
}

/// Align reads to a reference.
///
/// Writes SAM in the order of the reads to standard output, or to a file with -o x.sam. The records have the fields and
/// tags of bwa mem. -o x.bam and -o x.cram write records sorted by coordinate, with an index, as `samtools sort` does.
/// --mark-duplicates sets flag 0x400 as `samtools markdup` does after `fixmate -m`, separately for each library (LB),
/// in the same pass.
///
/// Reads are FASTQ or FASTA, plain or compressed; `-` is standard input. One file is a lane of single reads. Two files
/// are read 1 and read 2 of a lane, four files those of two lanes, and so on. A BAM, CRAM, CBQ, VBQ or BQ file is a
/// lane of its own: its reads are restored as they were sequenced and mates are joined, in whatever order the file has
/// them. Each lane is aligned as if it were the only one; only --mark-duplicates compares the reads of several lanes,
/// those of one library.
///
/// Index the reference once with `genuma index`. The same reads give the same records, whatever the number of
/// threads, the memory and the placement.
#[derive(Debug, clap::Args)]
#[command(
    about = "Align reads to a reference",
    after_help = "Examples:\n  \
    Read pairs to a sorted BAM file with duplicates marked:\n    \
    genuma align ref.fa R_1.fq.gz R_2.fq.gz --mark-duplicates -R 'ID:r\\tSM:me' -o me.bam\n  \
    Two lanes, each with its read group:\n    \
    genuma align ref.fa A_1.fq.gz A_2.fq.gz B_1.fq.gz B_2.fq.gz \\\n      \
    -R 'ID:a\\tSM:me' -R 'ID:b\\tSM:me' -o me.bam\n  \
    Interleaved pairs from a pipe, SAM to another pipe:\n    \
    seqtk mergepe R_1.fq R_2.fq | genuma align --interleaved ref.fa - | samtools view -c -f 2"
)]
pub(crate) struct Args {
    /// Reference genome, plain or compressed FASTA, next to the index that `genuma index` wrote
    #[arg(value_name = "FASTA")]
    reference: PathBuf,
    /// Reads: one FASTQ file of single reads, or files in the order read 1, read 2 of the first lane, read 1, read 2 of the
    /// second lane, and so on; or BAM, CRAM, CBQ, VBQ or BQ files
    #[arg(value_name = "READS", required = true, num_args = 1..)]
    reads: Vec<PathBuf>,
    /// Each file is one lane in which read 1 and read 2 alternate
    #[arg(long, help_heading = "Input")]
    interleaved: bool,
    /// Each file is one lane of reads without mates
    #[arg(long, conflicts_with = "interleaved", help_heading = "Input")]
    single: bool,
    /// Read group, such as 'ID:lane1\tSM:sample1\tLB:library1': one for all lanes, or one for each. If ID is missing,
    /// ID, PL and PU are derived from flowcell and lane in the read names; the other fields are not. Without -R records
    /// have no read group; those of BAM and CRAM input are not copied, so repeat them here
    #[arg(short = 'R', long, value_name = "FIELDS", help_heading = "Input")]
    read_group: Vec<String>,
    /// Copy these tags from BAM and CRAM reads to their records, such as RX,QX,MM,ML. `all` copies every tag except
    /// those that genuma writes itself and some others (list in docs/guide/align.md); with input that is already
    /// aligned, name the tags, because `all` would also copy tags of the earlier aligner [default: none]
    #[arg(long, value_name = "TAGS", value_parser = CarriedTags::parse_tag_list, help_heading = "Input")]
    tags: Option<CarriedTags>,

    /// File for the records: x.sam, x.bam or x.cram [default: SAM on standard output]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Version of CRAM for -o x.cram, as in `samtools view -O cram,version=3.1` [default: 3.0]
    #[arg(long, value_enum, value_name = "VERSION", help_heading = "Output")]
    cram_version: Option<CramVersionArg>,
    /// Mark duplicates, among the reads of one library (LB of the read group). All reads without LB count as one
    /// library: give LB with -R if there are several. Needs -o x.bam or x.cram
    #[arg(long, help_heading = "Output")]
    mark_duplicates: bool,
    /// Also write statistics, times and memory placement as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Also write a summary for MultiQC to files that begin with this name: PREFIX_..._mqc.json
    #[arg(long, value_name = "PREFIX", help_heading = "Output")]
    multiqc: Option<PathBuf>,

    /// Accepted from earlier versions; genuma is the only engine
    #[arg(long, hide = true, value_parser = crate::index::parse_obsolete_engine_option)]
    engine: Option<()>,
    #[command(flatten)]
    scoring: ScoringAndReportOptions,

    /// Threads that align [default: all CPUs]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Memory for sorting, such as 8G or 512M (powers of 1024); records that do not fit are spilled to the work
    /// folder [default: a quarter of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = "Resources")]
    memory: Option<u64>,
    /// Folder for spilled records [default: the folder of the output]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    work: Option<PathBuf>,
    /// Tags of --tags with a value for each base, which are reversed in records on the reverse strand. Always among them:
    /// OQ, U2, BQ, and cd, ce, ad, ae, bd, be, aq, bq of fgbio
    #[arg(long, value_name = "TAGS", value_delimiter = ',', value_parser = parse_tag_name, requires = "tags", help_heading = "Advanced")]
    tags_to_reverse: Vec<[u8; 2]>,
    /// Tags of --tags with bases, which are reverse-complemented in records on the reverse strand. Always among them: E2,
    /// SQ, and ac, bc of fgbio
    #[arg(long, value_name = "TAGS", value_delimiter = ',', value_parser = parse_tag_name, requires = "tags", help_heading = "Advanced")]
    tags_to_revcomp: Vec<[u8; 2]>,
    /// Where the index is stored on a machine with several NUMA nodes; does not change the alignments
    #[arg(long, value_enum, default_value_t = IndexPlacement::Auto, help_heading = "Advanced")]
    placement: IndexPlacement,
    /// Measured profile of this machine for --placement auto: the machine.json that `genuma machine measure` wrote [default: the
    /// file that the environment variable GENUMA_MACHINE names]
    #[arg(long, value_name = "FILE", help_heading = "Advanced")]
    machine: Option<PathBuf>,
    /// Count what the process uses: CPU time, memory on each NUMA node, context switches, CPU migrations, page faults,
    /// disk access; and, where the system permits perf events, cycles, instructions, cache misses and loads from memory
    /// of other NUMA nodes. The counts are logged at the end and written to --json
    #[arg(long, help_heading = "Advanced")]
    counters: bool,
}

/// Values of `--cram-version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CramVersionArg {
    /// For every program that reads CRAM
    #[value(name = "3.0")]
    V3_0,
    /// Smaller read names and tags; needs htslib 1.12 or htsjdk 4.3, or later. GATK 4.6.2 cannot read it
    #[value(name = "3.1")]
    V3_1,
}

impl From<CramVersionArg> for CramVersion {
    fn from(version: CramVersionArg) -> CramVersion {
        match version {
            CramVersionArg::V3_0 => CramVersion::V3_0,
            CramVersionArg::V3_1 => CramVersion::V3_1,
        }
    }
}

/// Destination and format of the records: file or standard output.
enum AlignmentOutput {
    Stdout,
    Sam(PathBuf),
    Bam(PathBuf),
    Cram(PathBuf),
}

impl AlignmentOutput {
    /// Returns whether the output is sorted by coordinate.
    fn is_sorted(&self) -> bool {
        matches!(self, AlignmentOutput::Bam(_) | AlignmentOutput::Cram(_))
    }
}

/// Options, output and resources of a run, without the reads and the index.
struct AlignRun<'a> {
    args: &'a Args,
    target: AlignmentOutput,
    read_groups: Vec<ReadGroup>,
    carried_tags: Arc<CarriedTags>,
    topology: Topology,
    /// Measured memory latency between nodes and bandwidth of each node; `None` without a profile of this machine.
    node_measurements: Option<NodeMemoryMeasurements>,
    threads: usize,
    /// Memory for sorting (bytes); 0 if the output is not sorted.
    sort_memory_bytes: usize,
    progress: UnitProgressDisplay,
    counting: Option<RunCounterRecorder>,
    started: Instant,
}

/// The open input files, with the first batch of reads.
struct OpenedReads {
    stream: ReadStream,
    first_batch: ReadBatch,
    layouts: Vec<ReadLayout>,
    meter: Arc<ProgressCounters>,
}

/// Aligns the reads and writes the records.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let counting = args.counters.then(RunCounterRecorder::start);
    let target = args.parse_output()?;
    let memory = if target.is_sorted() { args.sort_memory_bytes()? } else { 0 };
    let options = AlignedOptions {
        temp_folder: Some(args.work_folder()),
        reference: CramReference::new(Some(args.reference.clone())),
        max_slice_bytes: memory_limits::max_cram_slice_bytes_for_budget(args.memory, args.threads),
        ..AlignedOptions::default()
    };
    let (mut lanes, mut layouts) = lanes::group_files_into_lanes(&args.reads, args.interleaved, args.single, options)?;
    let mut groups = args.read_group.clone();
    lanes::leave_out_empty_lanes(&mut lanes, &mut layouts, &mut groups)?;
    let carried_tags = args.carried_tags(&lanes)?;
    let groups = lanes::parse_read_groups(&lanes::complete_read_groups_without_id(&groups, &lanes)?, lanes.len())?;
    let topology = Sysfs::new().topology()?;
    let measured = machine_profile::read_given_or_environment_profile(args.machine.as_deref(), &topology)?
        .map(|profile| node_measurements(&profile));
    let threads = args.threads.map_or(topology.allowed.cpus.len().max(1), usize::from);
    let meter = Arc::new(ProgressCounters::default());
    let options = StreamOptions {
        batches_ahead: 4,
        inflate_threads: (threads / 4).clamp(1, 8),
        carried_tags: carried_tags.clone(),
        progress: Arc::clone(&meter),
        ..StreamOptions::new(BatchLimits::with_bases_per_batch(DEFAULT_BATCH_BASES))
    };
    let mut stream = ReadStream::open(&lanes, options)?;
    let mut first = ReadBatch::new();
    stream.fill_batch(&mut first)?;
    let progress = UnitProgressDisplay::start();
    let to_stdout = matches!(target, AlignmentOutput::Stdout);
    let run = AlignRun {
        args,
        target,
        read_groups: groups,
        carried_tags: carried_tags.unwrap_or_default(),
        topology,
        node_measurements: measured,
        threads,
        sort_memory_bytes: memory,
        progress,
        counting,
        started: start,
    };
    let aligned: Vec<AlignedInput> = lanes.into_iter().filter_map(StreamLane::into_aligned_input).collect();
    let done = run.align(OpenedReads { stream, first_batch: first, layouts, meter });
    for (file, tally) in aligned.iter().filter_map(|file| Some((file, file.record_counts()?))) {
        aligned_files::log_record_counts_of_lane(&file.path.display().to_string(), tally);
    }
    match done {
        // The reader of the pipe has closed it: this is no error.
        Err(error) if to_stdout && is_broken_pipe(&error) => Ok(()),
        Err(error) if to_stdout && error.is::<io::Error>() => Err(error.context("standard output")),
        done => done,
    }
}

/// Returns the memory latency between nodes and the read bandwidth of each node from its own CPUs, to place the index.
fn node_measurements(profile: &MachineProfile) -> NodeMemoryMeasurements {
    let nodes = profile.topology.allowed_memory_nodes();
    let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (from, to)));
    let latency = |(from, to)| Some(((from, to), profile.dram_latency_between(from, to)?.median));
    let bandwidth = |node| Some((node, profile.bandwidth_between(BandwidthKernel::Read, node, node)?.total.median));
    NodeMemoryMeasurements {
        latency_ns: pairs.filter_map(latency).collect(),
        bandwidth_gb_s: nodes.iter().filter_map(bandwidth).collect(),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

impl Args {
    fn parse_output(&self) -> Result<AlignmentOutput, UsageError> {
        let target = match &self.out {
            None => AlignmentOutput::Stdout,
            Some(path) if path.as_os_str() == "-" => AlignmentOutput::Stdout,
            Some(path) => match path.extension().and_then(|e| e.to_str()) {
                Some("sam") => AlignmentOutput::Sam(path.clone()),
                Some("bam") => AlignmentOutput::Bam(path.clone()),
                Some("cram") => AlignmentOutput::Cram(path.clone()),
                _ => {
                    return Err(UsageError(format!(
                        "-o {}: give a name that ends in .sam, .bam or .cram",
                        path.display()
                    )));
                }
            },
        };
        if self.mark_duplicates && !target.is_sorted() {
            return Err(UsageError("--mark-duplicates needs sorted records: add -o x.bam or x.cram".to_owned()));
        }
        if self.cram_version.is_some() && !matches!(target, AlignmentOutput::Cram(_)) {
            return Err(UsageError("--cram-version needs CRAM output: add -o x.cram".to_owned()));
        }
        Ok(target)
    }

    /// Returns the tags that are copied from the reads to the records (`--tags`); `None` without the option. Warns if
    /// some lanes cannot have tags. Fails if no lane can have tags.
    fn carried_tags(&self, lanes: &[StreamLane]) -> anyhow::Result<Option<Arc<CarriedTags>>> {
        let Some(tags) = self.tags.clone() else { return Ok(None) };
        let tags = tags
            .with_strand_dependent_tags(self.tags_to_reverse.clone(), self.tags_to_revcomp.clone())
            .map_err(|reason| UsageError(format!("--tags-to-reverse and --tags-to-revcomp: {reason}")))?;
        let mut lanes_with_tags = 0;
        for lane in lanes {
            if let StreamLane::Aligned(file) = lane {
                lanes_with_tags += usize::from(file.format_has_tags()?);
            }
        }
        if lanes_with_tags == 0 {
            let reason =
                "--tags is for reads of BAM or CRAM files: BINSEQ has no tags, and -C copies those in FASTQ headers";
            return Err(UsageError(reason.to_owned()).into());
        }
        let (num_lanes, num_without_tags) = (lanes.len(), lanes.len() - lanes_with_tags);
        if num_without_tags > 0 {
            warn!(
                "{num_without_tags} of {num_lanes} lanes are FASTQ or BINSEQ files, which have no tags, so \
                 their records get none by --tags: for FASTQ with SAM tags in its headers add -C, else give these \
                 reads as BAM or CRAM"
            );
        }
        Ok(Some(Arc::new(tags)))
    }

    /// Returns the folder for spilled records: `--work`, else that of the output, else the system's temporary folder.
    fn work_folder(&self) -> PathBuf {
        let output_folder = || match &self.out {
            Some(out) if out.as_os_str() != "-" => {
                out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).into()
            }
            _ => std::env::temp_dir(),
        };
        self.work.clone().unwrap_or_else(output_folder)
    }

    /// Returns the memory for sorting (bytes): that of `--memory`, at most the memory of the machine, or else a quarter
    /// of the free memory. Fails if the memory is too small, or if the folder of `--work` does not exist.
    fn sort_memory_bytes(&self) -> anyhow::Result<usize> {
        let free = || {
            memory_limits::available_memory_bytes(Path::new("/"))
                .map_or(1 << 30, |free| (free / 4).max(MIN_SORT_MEMORY_BYTES))
        };
        let memory = self.memory.map_or_else(free, memory_limits::cap_memory_to_machine_total);
        if memory < MIN_SORT_MEMORY_BYTES {
            return Err(
                memory_limits::too_little_memory_error(memory, MIN_SORT_MEMORY_BYTES, "sorting needs", None).into()
            );
        }
        if let Some(work) = &self.work {
            require_existing_folder(work, &format!("--work {}", work.display()))?;
        }
        debug!("{} of memory for sorting", quantity::format_bytes(memory));
        Ok(memory as usize)
    }
}

impl AlignRun<'_> {
    /// Returns the read group ID of each lane; empty if there are no read groups.
    fn read_group_ids(&self) -> Vec<String> {
        self.read_groups.iter().map(|group| group.id().to_owned()).collect()
    }

    /// Loads the index, aligns, writes the records and reports the result.
    fn align(self, reads: OpenedReads) -> anyhow::Result<()> {
        let loading = Instant::now();
        let (engine, placed) = self.load_engine()?;
        let load = loading.elapsed();

        self.progress.unit_started("align", Some(Arc::clone(&reads.meter)));
        let aligning = Instant::now();
        let nearest = engine.nearest_copy();
        let contigs = nearest.contigs();
        for name in (0..contigs.num_contigs()).filter_map(|number| contigs.contig_name(number as i32)) {
            fasta::check_sequence_name(name.as_bytes()).map_err(|fault| {
                anyhow::anyhow!(
                    "the index has a sequence \"{name}\", whose name {fault}, which SAM forbids: rename it in the reference, \
                     and make the index again"
                )
            })?;
        }
        let sample = self.sample_name();
        let line = command_line::quoted_command_line();
        let command =
            ProgramWithCommandLine { name: "genuma", version: env!("CARGO_PKG_VERSION"), command_line: &line };
        let header = format_unsorted_sam_header(nearest.contigs(), &self.read_groups, nearest.program(), command);
        let workers = AlignWorkerPool { engine: &engine, cpu_slots: assign_cpu_slots(&self.topology, self.threads) };
        let reads = ReadsToAlign { stream: reads.stream, first_batch: reads.first_batch, layouts: reads.layouts };
        let mut set = AtomicFileSet::default();
        let (aligned, align, sorted, sort) = self.write_records(&workers, reads, &header, aligning, &mut set)?;
        let seconds = StageTimes { load, align, sort, total: self.started.elapsed() };
        let outcome = AlignOutcome {
            command: line,
            program: nearest.program(),
            placement: placed,
            aligned,
            sorted,
            times: seconds,
            counters: self.counting.map(RunCounterRecorder::finish),
        };
        drop(self.progress);
        if let Some(warning) = outcome.format_too_long_reads_warning() {
            warn!("{warning}");
        }
        if let Some(path) = &self.args.json {
            outcome.add_json_file_to_set(path, &mut set)?;
        }
        if let Some(prefix) = &self.args.multiqc {
            let sections = multiqc::build_align_sections(&outcome.to_multiqc_statistics(sample));
            multiqc::add_multiqc_section_files(prefix, &sections, &mut set)?;
        }
        set.publish_all()?;
        let out = self.args.out.as_deref().filter(|_| !matches!(self.target, AlignmentOutput::Stdout));
        counter_table::log_counters_of_this_process(outcome.counters.as_ref());
        info!("{}", outcome.format_summary_line(out));
        Ok(())
    }

    /// Loads the index into the memory of the nodes, and logs where it is.
    fn load_engine(&self) -> anyhow::Result<(LoadedIndex<GenumaEngine>, PlannedAndActualIndexPlacement)> {
        let reference = &self.args.reference;
        let options = GenumaEngineOptions {
            carried_tags: Arc::clone(&self.carried_tags),
            ..self.args.scoring.to_engine_options(self.read_group_ids())?
        };
        // I/O error ignored: loading the index reports it.
        let index_bytes = fs::metadata(genuma::index_path(reference)).map_or(0, |file| file.len());
        let load = || GenumaEngine::load_index(reference, reference, options.clone(), self.threads);
        self.progress.unit_started("load", None);
        let measured = self.node_measurements.as_ref();
        let plan = choose_index_placement(self.args.placement.into(), &self.topology, measured, index_bytes);
        let engine = LoadedIndex::load_with_placement(&plan.placement, load).map_err(|error| match error {
            index_placement::Error::Engine(error) => anyhow::Error::new(error),
            other => other.into(),
        })?;
        let observed = engine.query_index_residence();
        if let Err(error) = &observed {
            // For example in a container without the permission to ask the kernel. Nothing depends on the answer.
            warn!(
                "cannot check on which NUMA nodes the index is ({error}): alignments are the same, only this check is skipped; \
                 in a container, allow the system call"
            );
        }
        let residence_matches_placement =
            observed.as_ref().ok().map(|found| residence_matches_placement(&plan.placement, found));
        let placed =
            PlannedAndActualIndexPlacement { residence_matches_placement, plan, copies: observed.unwrap_or_default() };
        info!("{}", placed.format_index_placement_line());
        if placed.residence_matches_placement == Some(false) {
            warn!(
                "the index is not on the NUMA nodes that were chosen for it: alignments are the same, but may take longer; \
                 check that these nodes have enough free memory (numastat -m)"
            );
        }
        Ok((engine, placed))
    }

    /// Aligns the reads and writes the records. Returns summary and time of aligning, and summary and time of sorting
    /// (`None` and 0 if the output is not sorted). A file is added to `set`, but not published.
    fn write_records<E: Engine>(
        &self,
        workers: &AlignWorkerPool<'_, E>,
        reads: ReadsToAlign,
        header: &str,
        aligning: Instant,
        set: &mut AtomicFileSet,
    ) -> anyhow::Result<(pipeline::AlignSummary, Duration, Option<sort::SortSummary>, Duration)> {
        Ok(match &self.target {
            AlignmentOutput::Stdout => {
                let mut out = logging::lock_stdout_for_results()?;
                let aligned = align_to_sam(workers, reads, header, &mut out)?;
                (aligned, aligning.elapsed(), None, Duration::ZERO)
            }
            AlignmentOutput::Sam(path) => {
                let mut out = AtomicFile::create(path)?;
                let aligned = align_to_sam(workers, reads, header, &mut out)?;
                set.add_file(out.flush_to_partial_file()?);
                (aligned, aligning.elapsed(), None, Duration::ZERO)
            }
            AlignmentOutput::Bam(path) => {
                let header_of_file = SortedFileHeader::from_sam_header(header)?;
                let file = BamFileWriter::create(path, header_of_file, CompressionLevel::default())?;
                self.align_and_sort(workers, reads, header, |sorter| sorter.write_bam(file, set))?
            }
            AlignmentOutput::Cram(path) => {
                let genome = CramReference::new(Some(self.args.reference.clone()));
                let version = self.args.cram_version.map_or_else(CramVersion::default, CramVersion::from);
                let header_of_file = SortedFileHeader::from_sam_header(header)?;
                let file = CramFileWriter::create(path, header_of_file, &genome)?.with_version(version);
                self.align_and_sort(workers, reads, header, |sorter| sorter.write_cram(file, set))?
            }
        })
    }

    /// Returns the sample name for reports: the first SM of the read groups, else the name of the output file or,
    /// without one, of the first file of reads. File names lose their extension.
    fn sample_name(&self) -> String {
        let named = self.read_groups.iter().find_map(|group| group.tag_value("SM"));
        let file = || self.args.out.as_deref().unwrap_or(&self.args.reads[0]).file_stem();
        named.map_or_else(|| file().unwrap_or_default().to_string_lossy().into_owned(), str::to_owned)
    }

    /// Aligns the reads, sorts the records, and writes them with `write`. Returns summary and time of both stages.
    fn align_and_sort<E: Engine>(
        &self,
        workers: &AlignWorkerPool<'_, E>,
        reads: ReadsToAlign,
        header: &str,
        write: impl FnOnce(Sorter) -> Result<sort::SortSummary, sort::Error>,
    ) -> anyhow::Result<(pipeline::AlignSummary, Duration, Option<sort::SortSummary>, Duration)> {
        let aligning = Instant::now();
        let options = self.sort_options(header);
        let mut sorter = Sorter::new(&options);
        let aligned = workers.align_reads(reads, AlignOutput::Sorted(&mut sorter, options.markdup.clone()))?;
        let align = aligning.elapsed();
        self.progress.unit_started("sort", None);
        let sorting = Instant::now();
        let sorted = write(sorter)?;
        Ok((aligned, align, Some(sorted), sorting.elapsed()))
    }

    fn sort_options(&self, header: &str) -> sort::SortOptions {
        let marking = self.args.mark_duplicates.then(|| {
            let libraries = Some(ReadGroupLibraries::parse_libraries_from_sam_header(header));
            Arc::new(MarkdupOptions { libraries, ..MarkdupOptions::default() })
        });
        sort::SortOptions {
            memory_bytes: self.sort_memory_bytes,
            threads: self.threads,
            work_dir: self.args.work_folder(),
            markdup: marking,
        }
    }
}

/// Aligns the reads, and writes the SAM header and the records to `out` in the order of the reads.
fn align_to_sam<E: Engine>(
    workers: &AlignWorkerPool<'_, E>,
    reads: ReadsToAlign,
    header: &str,
    out: &mut dyn Write,
) -> anyhow::Result<pipeline::AlignSummary> {
    out.write_all(header.as_bytes())?;
    let aligned = workers.align_reads(reads, AlignOutput::Sam(out)).map_err(|error| match error {
        pipeline::Error::Write(error) => anyhow::Error::new(error),
        other => other.into(),
    })?;
    out.flush()?;
    Ok(aligned)
}
