//! `genuma align`: from reads to alignments.

mod lanes;
mod outcome;
mod scoring;
mod unit;

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use genuma_align::bgzf::Level;
use genuma_align::engine::{
    self, Engine, Genuma, Layout, Minibwa, Strobealign, genuma, minibwa, strobealign,
};
use genuma_align::header::{Command, ReadGroup, header};
use genuma_align::pipeline::{self, Job, Output, PIECE, Reads};
use genuma_align::placement::{self, Loaded, Measured, Wish, as_chosen, plan};
use genuma_align::sort::markdup::{Libraries, Marking};
use genuma_align::sort::{self, BamFile, CramFile, Header, Sorter};
use genuma_farm::seats;
use genuma_machine::Topology;
use genuma_machine::topology::{Source, Sysfs};
use genuma_probe::MachineProfile;
use genuma_probe::profile::Kernel;
use genuma_reads::fasta;
use genuma_reads::{
    Aligned, AlignedOptions, Cut, Genome, Meter, ReadBatch, ReadLane, ReadStream, StreamOptions,
};
use genuma_work::Watch;
use genuma_work::publish::{AtomicFile, Set};
use tracing::{debug, info, warn};

use crate::call::budget;
use crate::failure::{Usage, must_be_folder};
use crate::index::EngineName;
use crate::progress::Progress;
use crate::{aligned, command, machine, multiqc, sizes, voice};
use outcome::{Outcome, Placed, Seconds};
use scoring::Scoring;

/// Least memory for sorting: a block of records and what merges them.
const LEAST_MEMORY: u64 = 64 << 20;

/// Where the index is to lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Placement {
    /// Copies where they fit easily, else spread
    Auto,
    /// On the node of the thread that loads it
    Local,
    /// Evenly over all nodes, page by page
    Interleave,
    /// Over all nodes by the kernel's weights
    Weighted,
    /// A copy on each node
    Replicate,
}

impl From<Placement> for Wish {
    fn from(placement: Placement) -> Wish {
        match placement {
            Placement::Auto => Wish::Auto,
            Placement::Local => Wish::Local,
            Placement::Interleave => Wish::Interleave,
            Placement::Weighted => Wish::Weighted,
            Placement::Replicate => Wish::Replicate,
        }
    }
}

/// Align reads to a reference.
///
/// Records come in the order of the reads, with minibwa and strobealign those of their own command lines: SAM on stdout, or in
/// a file by that name (-o x.sam). -o x.bam or x.cram gives them sorted by coordinate, with an index, as `samtools sort` does, and
/// with --mark-duplicates the flags of `samtools fixmate -m | sort | markdup`, in the same pass.
///
/// Reads are FASTQ or FASTA, plain, gzip'd or BGZF; `-` is stdin. One file is single reads; two files, or four, ... are
/// read 1 and read 2 of one lane, or two, ... A BAM or CRAM file is a lane by itself: its reads as they were sequenced, mates
/// together, whatever the order of the records. The reads of a lane do not influence those of another.
///
/// The reference is indexed once, by `genuma index`. The same reads give the same records whatever the threads, the memory
/// and the placement.
#[derive(Debug, clap::Args)]
#[command(
    about = "Align reads to a reference",
    after_help = "Examples:\n  \
    Pairs to a sorted BAM with duplicates marked:\n    \
    genuma align ref.fa R_1.fq.gz R_2.fq.gz --mark-duplicates -R 'ID:r\\tSM:me' -o me.bam\n  \
    Two lanes with a read group each:\n    \
    genuma align ref.fa A_1.fq.gz A_2.fq.gz B_1.fq.gz B_2.fq.gz -R 'ID:a\\tSM:me' -R 'ID:b\\tSM:me' -o me.bam\n  \
    Interleaved pairs from a pipe, SAM to another:\n    \
    seqtk mergepe R_1.fq R_2.fq | genuma align --interleaved ref.fa - | samtools view -c -f 2"
)]
pub(crate) struct Args {
    /// Reference genome, plain or gzip'd FASTA, with the index that `genuma index` made beside it
    #[arg(value_name = "FASTA")]
    reference: PathBuf,
    /// Reads: one file, or files of read 1 and read 2 in turn, lane after lane; or BAM or CRAM files
    #[arg(value_name = "READS", required = true, num_args = 1..)]
    reads: Vec<PathBuf>,
    /// Each file holds read 1 and read 2 in turn: one file a lane
    #[arg(long, help_heading = "Input")]
    interleaved: bool,
    /// Each file holds reads without mates: one file a lane
    #[arg(long, conflicts_with = "interleaved", help_heading = "Input")]
    single: bool,
    /// Read group, such as 'ID:lane1\tSM:sample1\tLB:library1': one for all lanes, or one for each. Without ID: that, PL and PU
    /// by flowcell and lane in the names of the reads
    #[arg(short = 'R', long, value_name = "FIELDS", help_heading = "Input")]
    read_group: Vec<String>,

    /// x.sam, x.bam or x.cram; without it SAM goes to stdout
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Mark duplicates, within the library (LB) of their read group; wants -o x.bam or x.cram
    #[arg(long, help_heading = "Output")]
    mark_duplicates: bool,
    /// Also write what was done, with times and places, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Also write what MultiQC shows of it, files that begin with this name: PREFIX_..._mqc.json
    #[arg(long, value_name = "PREFIX", help_heading = "Output")]
    multiqc: Option<PathBuf>,

    /// Aligner
    #[arg(long, value_enum, default_value_t = EngineName::Minibwa, help_heading = "Method")]
    engine: EngineName,
    #[command(flatten)]
    scoring: Scoring,

    /// Threads that align [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Where the index lies on a machine with several nodes
    #[arg(long, value_enum, default_value_t = Placement::Auto, help_heading = "Resources")]
    placement: Placement,
    /// machine.json of `genuma probe` on this machine, for --placement auto [default: what GENUMA_MACHINE names]
    #[arg(long, value_name = "FILE", help_heading = "Resources")]
    machine: Option<PathBuf>,
    /// Memory for sorting, such as 8G or 512M (powers of 1024); what does not fit goes to the work folder
    /// [default: a quarter of what is free]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse, help_heading = "Resources")]
    memory: Option<u64>,
    /// Folder for what does not fit in memory [default: that of the output]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    work: Option<PathBuf>,
}

/// Where records go.
enum Target {
    Stdout,
    Sam(PathBuf),
    Bam(PathBuf),
    Cram(PathBuf),
}

impl Target {
    /// Whether records are sorted for it.
    fn is_sorted(&self) -> bool {
        matches!(self, Target::Bam(_) | Target::Cram(_))
    }
}

/// What a run of any engine needs.
struct Run<'a> {
    args: &'a Args,
    target: Target,
    groups: Vec<ReadGroup>,
    topology: Topology,
    /// Of the machine, if it was probed.
    measured: Option<Measured>,
    threads: usize,
    /// For sorting (bytes).
    memory: usize,
    progress: Progress,
    start: Instant,
}

/// Reads, the first of them in hand.
struct Opened {
    stream: ReadStream,
    first: ReadBatch,
    layouts: Vec<Layout>,
    meter: Arc<Meter>,
}

/// Aligns and writes.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let target = args.target()?;
    if args.engine != EngineName::Genuma && !args.scoring.is_default() {
        return Err(Usage(
            "options of bwa mem are for --engine genuma; the other engines have their defaults".into(),
        )
        .into());
    }
    let memory = if target.is_sorted() { args.sorting_memory()? } else { 0 };
    let genome = Genome::of(Some(args.reference.clone()));
    let options = AlignedOptions { work: Some(args.work_folder()), genome, ..AlignedOptions::default() };
    let (lanes, layouts) = lanes::lanes(&args.reads, args.interleaved, args.single, options)?;
    let groups = lanes::groups(&lanes::with_ids(&args.read_group, &lanes)?, lanes.len())?;
    let topology = Sysfs::new().topology()?;
    let measured = machine::profile(args.machine.as_deref(), &topology)?.map(|profile| measured(&profile));
    let threads = args.threads.map_or(topology.allowed.cpus.len().max(1), usize::from);
    let meter = Arc::new(Meter::default());
    let inflaters = (threads / 4).clamp(1, 8);
    let options = StreamOptions {
        ahead: 4,
        inflaters,
        meter: Arc::clone(&meter),
        ..StreamOptions::new(Cut::at_bases(PIECE))
    };
    let mut stream = ReadStream::open(&lanes, options)?;
    let mut first = ReadBatch::new();
    stream.fill(&mut first)?;
    let progress = Progress::start();
    let to_stdout = matches!(target, Target::Stdout);
    let run = Run { args, target, groups, topology, measured, threads, memory, progress, start };
    let reads = Opened { stream, first, layouts, meter };
    let aligned: Vec<Aligned> = lanes.into_iter().filter_map(ReadLane::into_aligned).collect();
    let done = match args.engine {
        EngineName::Genuma => run.genuma(reads),
        EngineName::Minibwa => run.minibwa(reads),
        EngineName::Strobealign => run.strobealign(reads),
    };
    for (file, tally) in aligned.iter().filter_map(|file| Some((file, file.tally()?))) {
        aligned::tell_of(&file.path.display().to_string(), tally);
    }
    match done {
        // Who reads it has seen enough.
        Err(error) if to_stdout && is_broken_pipe(&error) => Ok(()),
        Err(error) if to_stdout && error.is::<io::Error>() => Err(error.context("standard output")),
        done => done,
    }
}

/// What decides where an index lies.
fn measured(profile: &MachineProfile) -> Measured {
    let nodes = profile.topology.memory_nodes();
    let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (from, to)));
    let latency = |(from, to)| Some(((from, to), profile.latency_between(from, to)?.median));
    let bandwidth = |node| Some((node, profile.bandwidth_between(Kernel::Read, node, node)?.total.median));
    Measured {
        latency: pairs.filter_map(latency).collect(),
        bandwidth: nodes.iter().filter_map(bandwidth).collect(),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

impl Args {
    fn target(&self) -> Result<Target, Usage> {
        let target = match &self.out {
            None => Target::Stdout,
            Some(path) if path.as_os_str() == "-" => Target::Stdout,
            Some(path) => match path.extension().and_then(|e| e.to_str()) {
                Some("sam") => Target::Sam(path.clone()),
                Some("bam") => Target::Bam(path.clone()),
                Some("cram") => Target::Cram(path.clone()),
                _ => {
                    return Err(Usage(format!(
                        "-o {}: give a name that ends in .sam, .bam or .cram",
                        path.display()
                    )));
                }
            },
        };
        if self.mark_duplicates && !target.is_sorted() {
            return Err(Usage("--mark-duplicates wants sorted records: add -o x.bam or x.cram".to_owned()));
        }
        Ok(target)
    }

    /// Where what does not fit in memory goes.
    fn work_folder(&self) -> PathBuf {
        let beside = || match &self.out {
            Some(out) if out.as_os_str() != "-" => {
                out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).into()
            }
            _ => std::env::temp_dir(),
        };
        self.work.clone().unwrap_or_else(beside)
    }

    /// Memory for sorting (bytes); also sees that the work folder is one.
    fn sorting_memory(&self) -> anyhow::Result<usize> {
        let free = || budget::available(Path::new("/")).map_or(1 << 30, |free| (free / 4).max(LEAST_MEMORY));
        let memory = self.memory.map_or_else(free, budget::at_most_all);
        if memory < LEAST_MEMORY {
            let (have, need) = (sizes::show(memory), sizes::show(LEAST_MEMORY));
            return Err(Usage(format!(
                "{have} of memory are too little for sorting, which needs {need}: raise --memory"
            ))
            .into());
        }
        if let Some(work) = &self.work {
            must_be_folder(work, &format!("--work {}", work.display()))?;
        }
        debug!("{} of memory for sorting", sizes::show(memory));
        Ok(memory as usize)
    }
}

/// Bytes of files; those that are not there count nothing, as loading them will tell.
fn bytes(paths: &[PathBuf]) -> u64 {
    paths.iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum()
}

impl Run<'_> {
    fn genuma(self, reads: Opened) -> anyhow::Result<()> {
        let reference = self.args.reference.clone();
        let options = self.args.scoring.options(self.ids())?;
        let threads = self.threads;
        let files = [genuma::index_path(&reference)];
        self.align(reads, bytes(&files), || Genuma::load(&reference, &reference, options.clone(), threads))
    }

    fn minibwa(self, reads: Opened) -> anyhow::Result<()> {
        let reference = self.args.reference.clone();
        let read_groups = self.ids();
        let threads = self.threads;
        let options = minibwa::Options { read_groups, ..minibwa::Options::default() };
        let files = ["l2b", "mbw"].map(|extension| with_added(&reference, extension));
        self.align(reads, bytes(&files), || Minibwa::load(&reference, &reference, options.clone(), threads))
    }

    fn strobealign(self, reads: Opened) -> anyhow::Result<()> {
        let reference = self.args.reference.clone();
        let read_groups = self.ids();
        let threads = self.threads;
        // Its command line looks at the first file only.
        let step = if reads.layouts.first() == Some(&Layout::Paired) { 2 } else { 1 };
        let length = strobealign::read_length(reads.first.iter().step_by(step).map(|read| read.seq.len()));
        let options = strobealign::Options { read_groups, ..strobealign::Options::default() };
        let files = [strobealign::index_path(&reference, length), reference.clone()];
        let aligned = self.align(reads, bytes(&files), || {
            Strobealign::load(&reference, &reference, length, options.clone(), threads)
        });
        aligned.map_err(|error| match error.downcast_ref() {
            Some(engine::Error::NoIndex { path, .. }) => anyhow::anyhow!(
                "{}: no index for reads of {length} bp; make it with `genuma index --engine strobealign --read-length \
                 {length} {}`",
                path.display(),
                reference.display()
            ),
            _ => error,
        })
    }

    /// The identifier of each lane's read group; none where there are no groups.
    fn ids(&self) -> Vec<String> {
        self.groups.iter().map(|group| group.id().to_owned()).collect()
    }

    /// Loads, aligns, writes, and says what was done.
    fn align<E: Engine>(
        self,
        reads: Opened,
        index_bytes: u64,
        load: impl Fn() -> Result<E, engine::Error> + Sync,
    ) -> anyhow::Result<()> {
        self.progress.begins("load", None);
        let plan = plan(self.args.placement.into(), &self.topology, self.measured.as_ref(), index_bytes);
        let loading = Instant::now();
        let engine = Loaded::load(&plan.choice, load).map_err(|error| match error {
            placement::Error::Engine(error) => anyhow::Error::new(error),
            other => other.into(),
        })?;
        let found = engine.found();
        if let Err(error) = &found {
            // As in a container that may not ask; nothing depends on the answer.
            warn!("{error}: whether the index is where it was to be is not known");
        }
        let as_chosen = found.as_ref().ok().map(|found| as_chosen(&plan.choice, found));
        let placed = Placed { as_chosen, plan, found: found.unwrap_or_default() };
        info!("{}", placed.line());
        if placed.as_chosen == Some(false) {
            warn!("the index is not where it was to be: alignments are the same, but may take longer");
        }
        let load = loading.elapsed();

        self.progress.begins("align", Some(Arc::clone(&reads.meter)));
        let aligning = Instant::now();
        let one = engine.nearest();
        let contigs = one.contigs();
        for name in (0..contigs.len()).filter_map(|number| contigs.name(number as i32)) {
            fasta::check_name(name.as_bytes()).map_err(|fault| {
                anyhow::anyhow!(
                    "the index has a sequence \"{name}\", whose name {fault}, which SAM forbids: rename it in the reference, \
                     and make the index again"
                )
            })?;
        }
        let sample = self.sample();
        let line = command::line();
        let command = Command { name: "genuma", version: env!("CARGO_PKG_VERSION"), line: &line };
        let header = header(one.contigs(), &self.groups, one.program(), command);
        let job = Job { engine: &engine, seats: seats(&self.topology, self.threads) };
        let reads = Reads { stream: reads.stream, first: reads.first, layouts: reads.layouts };
        let mut set = Set::default();
        let (aligned, align, sorted, sort) = match &self.target {
            Target::Stdout => {
                let mut out = voice::results()?;
                let aligned = sam(&job, reads, &header, &mut out)?;
                (aligned, aligning.elapsed(), None, Duration::ZERO)
            }
            Target::Sam(path) => {
                let mut out = AtomicFile::create(path)?;
                let aligned = sam(&job, reads, &header, &mut out)?;
                set.add(out.complete()?);
                (aligned, aligning.elapsed(), None, Duration::ZERO)
            }
            Target::Bam(path) => {
                let file = BamFile::create(path, Header::sorted(&header)?, Level::default())?;
                self.sorted(&job, reads, &header, |sorter| sorter.finish(file, &mut set))?
            }
            Target::Cram(path) => {
                let genome = Genome::of(Some(self.args.reference.clone()));
                let file = CramFile::create(path, Header::sorted(&header)?, &genome)?;
                self.sorted(&job, reads, &header, |sorter| sorter.finish_cram(file, &mut set))?
            }
        };
        let seconds = Seconds { load, align, sort, whole: self.start.elapsed() };
        let outcome = Outcome { command: line, program: one.program(), placed, aligned, sorted, seconds };
        drop(self.progress);
        if let Some(path) = &self.args.json {
            outcome.write(path, &mut set)?;
        }
        if let Some(prefix) = &self.args.multiqc {
            let sections = multiqc::of_alignment(&outcome.columns(sample));
            multiqc::add(prefix, &sections, &mut set)?;
        }
        set.publish()?;
        let out = self.args.out.as_deref().filter(|_| !matches!(self.target, Target::Stdout));
        info!("{}", outcome.line(out));
        Ok(())
    }

    /// Whose reads they are: what the first read group that says so calls the sample, else the file.
    fn sample(&self) -> String {
        let named = self.groups.iter().find_map(|group| group.field("SM"));
        let file = || self.args.out.as_deref().unwrap_or(&self.args.reads[0]).file_stem();
        named.map_or_else(|| file().unwrap_or_default().to_string_lossy().into_owned(), str::to_owned)
    }

    /// Aligns, sorts, and has `write` write the records. What was aligned and how long that took, and the same of sorting.
    fn sorted<E: Engine>(
        &self,
        job: &Job<'_, E>,
        reads: Reads,
        header: &str,
        write: impl FnOnce(Sorter) -> Result<sort::Summary, sort::Error>,
    ) -> anyhow::Result<(pipeline::Summary, Duration, Option<sort::Summary>, Duration)> {
        let aligning = Instant::now();
        let options = self.sorting(header);
        let mut sorter = Sorter::new(&options);
        let aligned = job.run(reads, Output::Sorter(&mut sorter, options.marking.clone()))?;
        let align = aligning.elapsed();
        self.progress.begins("sort", None);
        let sorting = Instant::now();
        let sorted = write(sorter)?;
        Ok((aligned, align, Some(sorted), sorting.elapsed()))
    }

    /// How records are sorted.
    fn sorting(&self, header: &str) -> sort::Options {
        let marking = self.args.mark_duplicates.then(|| {
            let libraries = Some(Libraries::from_header(header));
            Arc::new(Marking { libraries, ..Marking::default() })
        });
        sort::Options { memory: self.memory, threads: self.threads, work: self.args.work_folder(), marking }
    }
}

/// Aligns to SAM text.
fn sam<E: Engine>(
    job: &Job<'_, E>,
    reads: Reads,
    header: &str,
    out: &mut dyn Write,
) -> anyhow::Result<pipeline::Summary> {
    out.write_all(header.as_bytes())?;
    let aligned = job.run(reads, Output::Sam(out)).map_err(|error| match error {
        pipeline::Error::Write(error) => anyhow::Error::new(error),
        other => other.into(),
    })?;
    out.flush()?;
    Ok(aligned)
}

/// `path` with `.extension` behind all it has.
fn with_added(path: &Path, extension: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}
