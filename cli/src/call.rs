//! `genuma call`: from tumour and normal reads to somatic variants.

pub(crate) mod budget;
mod lengths;
mod outcome;
pub(crate) mod outputs;
pub(crate) mod panel;
pub(crate) mod room;
pub(crate) mod tumours;
pub(crate) mod watched;
mod why;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use clap::value_parser;
use genuma_kmers::Devices;
use genuma_reads::fasta::Reference;
use genuma_reads::{AlignedOptions, Genome, Lane, LaneFiles, check_lanes, check_lanes_once};
use genuma_somatic::outcome::Outcome;
use genuma_somatic::panel::Panel;
use genuma_somatic::pipeline::{Finished, Job, Means, Params};
use genuma_somatic::samples::Samples;
use genuma_work::clock::process_cost;
use genuma_work::unit::Store;
use tracing::{debug, info, warn};

use crate::failure::Usage;
use crate::fingerprint::Fingerprint;
use crate::forecast::input;
use crate::forecast::rates::MEASURED;
use crate::parts::making::{self, Asked};
use crate::report::markup::{counted, duration};
use crate::{aligned, command, gpu, sizes, voice};
use genuma_work::folder::{self, WorkFolder};
use genuma_work::signals;
use outputs::{Outputs, Tables};
use tumours::{Names, Tumours};
use watched::Watched;

/// Fewest occurrences in the tumour that make a k-mer interesting; judging comes later.
const LEAST_TUMOUR: u32 = 2;

/// Call somatic variants from tumour and normal reads.
///
/// Finds SNVs, MNVs, indels and structural variants that the tumour has and the normal lacks, by
/// comparing the k-mers of both samples; reads are not aligned. Reads are paired FASTQ, plain or
/// gzip'd, or BAM and CRAM in any order, whose alignments are not looked at; of any length from k up.
/// The samples may differ in depth and in read length. Any of these may come from a pipe, or as `-`, if
/// the work folder has room for a packed copy.
///
/// Writes into the output folder, when all is done:
///   somatic.vcf.gz   all calls, with index; FILTER is PASS or says why not
///   contigs.fa       the assembled alleles
///   supporting.bam   the reads behind the calls, with index (only with --reference)
///   summary.json     what was run, depths, counts, time and memory
///   report.html      the calls with their reads side by side: open it in a browser
///   genuma_*_mqc.json  what MultiQC shows of it, if it is run over the folder
///
/// The same reads and parameters give the same calls, byte for byte, whatever the threads, the
/// memory, and the lanes that the reads are split into.
#[derive(Debug, clap::Args)]
#[command(
    about = "Call somatic variants from tumour and normal reads",
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    One lane a sample, calls placed on a reference:\n    \
    genuma call --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz --reference ref.fa -o calls\n  \
    Two lanes of the tumour, at most 8 GiB of memory, k-mers that do not fit go to a fast disk:\n    \
    genuma call --tumor T1_1.fq.gz T1_2.fq.gz T2_1.fq.gz T2_2.fq.gz --normal N_1.fq.gz N_2.fq.gz \\\n      \
    --reference ref.fa --memory 8G --work /scratch/me/work -o calls\n  \
    Go on where an interrupted run stopped: the same command and\n    \
    --resume\n  \
    On many machines, in 8 shards and 8 partitions, by Slurm (see also genuma step --help):\n    \
    genuma call --plan run --shards 8 --parts 8 --sbatch --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz \\\n      \
    --reference ref.fa -o calls && sh run/submit.sh"
)]
pub(crate) struct Args {
    #[command(flatten)]
    tumor: Tumours<true>,
    /// Reads of the normal of the same person, in the same way
    #[arg(long, value_name = "READS", num_args = 1.., required = true, help_heading = "Input")]
    normal: Vec<PathBuf>,
    /// Name of the normal in the VCF and the BAM [default: the SM of BAM or CRAM, else NORMAL]
    #[arg(long, value_name = "NAME", value_parser = tumours::name, help_heading = "Input")]
    normal_name: Option<String>,
    /// Name of the only tumour, as NAME= before its first file gives it
    #[arg(long, value_name = "NAME", value_parser = tumours::name, help_heading = "Input")]
    tumor_name: Option<String>,
    /// Each FASTQ file holds read 1 and read 2 in turn: one file a lane, for all samples
    #[arg(long, help_heading = "Input")]
    interleaved: bool,
    /// Reference genome, plain or gzip'd FASTA, no index needed.
    /// Without it calls are placed on the assembled contigs of the normal
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    reference: Option<PathBuf>,
    /// Sequences that are looked for in both samples beside the reference, such as viruses: plain or gzip'd FASTA.
    /// What is there of them is in summary.json
    #[arg(long, value_name = "FASTA", help_heading = "Input")]
    screen: Option<PathBuf>,
    /// Panel of normals: a table of `genuma table union --counts samples`, of this k. What is called and other people's normals have gets
    /// the filter `panel`
    #[arg(long, value_name = "TABLE", help_heading = "Input")]
    panel: Option<PathBuf>,

    /// Folder for the results; made when missing
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    out: PathBuf,
    /// Also write the small changes that pass as MAF, for what reads no VCF. Genes and consequences are not known to genuma and not in it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    maf: Option<PathBuf>,
    /// Also write the structural variants that pass as BEDPE, a row for each junction
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    bedpe: Option<PathBuf>,
    /// Say what became of a variant, called or not: a VCF file, or one as CHROM:POS:REF>ALT; may be given several times.
    /// The answers go to standard output and into why.txt
    #[arg(long, value_name = "VARIANT", help_heading = "Output")]
    why: Vec<String>,
    /// Lowest quality (Phred) of a call that passes
    #[arg(long, value_name = "PHRED", default_value_t = 8.0, value_parser = quality, help_heading = "Output")]
    min_quality: f64,
    /// Normals of the panel that have what recurs, at least [default: 2]
    #[arg(long, value_name = "N", requires = "panel", value_parser = value_parser!(u32).range(1..=65_535), help_heading = "Output")]
    panel_least: Option<u32>,

    /// Length of k-mers in bases, 24 to 32: short ones need less depth, long ones tell repeats apart
    #[arg(short, default_value_t = 31, value_name = "K", value_parser = value_parser!(u32).range(24..=32), help_heading = "Method")]
    k: u32,
    /// k-mers with a base below this quality (Phred) are not counted; 0 counts all
    #[arg(long, value_name = "PHRED", default_value_t = 0, value_parser = value_parser!(u8).range(0..=60), help_heading = "Method")]
    min_base_quality: u8,

    /// Threads [default: all processors]
    #[arg(short, long, value_name = "N", value_parser = command::threads(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Most memory of the whole process, such as 8G or 512M (powers of 1024) [default: half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse, help_heading = "Resources")]
    memory: Option<u64>,
    /// Folder for what does not fit in memory and for finished steps, best on a fast disk; removed at success
    /// [default: .work in the output folder]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    work: Option<PathBuf>,
    /// Most of that folder that k-mers which do not fit in memory, and a packed copy of the reads for later passes, may take, such
    /// as 100G; where that is too little files are read more often [default: what is free there, less a twentieth and 1G at least]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse, help_heading = "Resources")]
    scratch: Option<u64>,
    #[command(flatten)]
    gpu: gpu::Gpus,
    /// Take up an interrupted run: steps it finished are not done again; inputs and parameters must be the same
    #[arg(long, help_heading = "Resources")]
    resume: bool,

    /// Do not call: write into this place what is to be done in parts, each by `genuma step` on any machine that sees it. A folder,
    /// s3://bucket/prefix or gs://bucket/prefix. --threads and --memory are those of one step [default: 4 or what this machine has, and
    /// at most 16G]
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["why", "work", "scratch", "resume", "gpu", "maf", "bedpe"], help_heading = "In parts")]
    plan: Option<String>,
    /// Shards that the reads are cut into: lanes, or pieces of plain or BGZF files [default: one for each 25 Gbases]
    #[arg(long, value_name = "N", requires = "plan", value_parser = value_parser!(u32).range(1..=512), help_heading = "In parts")]
    shards: Option<u32>,
    /// Partitions that the k-mers are counted in [default: as many as shards]
    #[arg(long, value_name = "N", requires = "plan", value_parser = value_parser!(u32).range(1..=1024), help_heading = "In parts")]
    parts: Option<u32>,
    /// Also write a script for Slurm, submit.sh: each kind of step an array job
    #[arg(long, requires = "plan", help_heading = "In parts")]
    sbatch: bool,
}

fn quality(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(quality) if (0.0..=1000.0).contains(&quality) => Ok(quality),
        _ => Err("give a number from 0 to 1000".into()),
    }
}

/// Checks everything that can be known before work starts, calls, and writes the results.
pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut job = args.job()?;
    if let Some(run) = &args.plan {
        budget::check(&job.means, inspect(&job)?)?;
        let Args { shards, parts, sbatch, out, .. } = &args;
        return making::plan(&job, &Asked { run, shards: *shards, parts: *parts, sbatch: *sbatch, out });
    }
    let panel = job.panel.as_ref().map(Panel::path);
    let known = job.reference.as_deref().into_iter().chain(job.screen.as_deref()).chain(panel);
    let inputs = job.lanes.iter().flat_map(Lane::paths).chain(known);
    let tables = args.maf.iter().chain(&args.bedpe).map(PathBuf::as_path);
    let apart = folder::check_apart(&job.store.work, inputs.chain(tables).chain([args.out.as_path()]));
    apart.map_err(|e| Usage(e.to_string()))?;
    let reference = inspect(&job)?;
    budget::check(&job.means, reference)?;
    let folder = OutFolder::open(&args.out)?;
    let work = WorkFolder::open(&job.store.work, args.resume)?;
    heed_interruption(&job.store.work, &folder);

    let begun = room::scratch(&job.store.work, args.scratch).and_then(|scratch| {
        job.means.scratch = scratch;
        foretell(&job, reference)?;
        Ok(Outputs::begin(&args.out, &args.tables())?)
    });
    let done = begun.and_then(|outputs| call(&job, outputs));
    aligned::tell(&job.lanes);
    // An interrupted run may end here too, by the loss of its files: the signal's word then stands.
    let undivided = signals::undivided();
    signals::on_interruption(None);
    match &done {
        Ok(outcome) => {
            work.remove();
            caution(outcome);
            farewell(outcome, &args.out, start);
        }
        Err(_) if work.leave() => warn!("{}", folder::kept(&job.store.work)),
        Err(_) => {}
    }
    drop(undivided);
    done.map(drop)
}

/// Writes the results of a call in parts into the folder `out`, which is made if it is missing, and says what was found.
pub(crate) fn finish(
    job: &Job,
    out: &Path,
    watched: &Watched,
    judge: impl FnOnce() -> Result<Finished, genuma_somatic::pipeline::Error>,
) -> anyhow::Result<()> {
    let start = Instant::now();
    let _folder = OutFolder::open(out)?;
    let outputs = Outputs::begin(out, &Tables::default())?;
    let outcome = outputs.write(job, &mut judge()?, watched)?;
    caution(&outcome);
    farewell(&outcome, out, start);
    Ok(())
}

/// Runs the units and writes the results.
fn call(job: &Job, outputs: Outputs<'_>) -> anyhow::Result<Outcome> {
    let watched = Watched::start();
    let mut finished = job.run(&watched)?;
    gpu::tell(&job.means.devices);
    let outcome = outputs.write(job, &mut finished, &watched)?;
    if !finished.answers.is_empty() {
        voice::print(why::told(&finished.answers))?;
    }
    Ok(outcome)
}

impl Args {
    fn tables(&self) -> Tables {
        Tables { maf: self.maf.clone(), bedpe: self.bedpe.clone() }
    }

    /// The job as the library wants it.
    fn job(&self) -> anyhow::Result<Job> {
        let work = self.work.clone().unwrap_or_else(|| self.out.join(".work"));
        let genome = Genome::of(self.reference.clone());
        // Steps run where that may not be.
        let options = AlignedOptions {
            work: self.plan.is_none().then(|| work.clone()),
            genome,
            ..AlignedOptions::default()
        };
        let names = Names { normal: self.normal_name.as_deref(), tumour: self.tumor_name.as_deref() };
        let (samples, mut all) = self.tumor.lanes(&self.normal, names, self.interleaved, &options)?;
        if self.plan.is_some() {
            if samples.several() {
                return Err(Usage("--plan: several tumours are called in one process, not in parts; lanes of one tumour go behind one --tumor".into()).into());
            }
            // Steps run in other folders.
            all.iter_mut().try_for_each(absolute)?;
        }
        let params = Params {
            k: self.k,
            min_base_quality: self.min_base_quality,
            least_tumour: LEAST_TUMOUR,
            least_quality: self.min_quality,
        };
        let means = match self.plan {
            // Those of one step, on machines that may be others.
            Some(_) => Means {
                threads: self.threads.map_or_else(|| command::all_or(None).min(STEP_THREADS), usize::from),
                memory: self.memory.unwrap_or(STEP_MEMORY),
                scratch: u64::MAX,
                devices: Devices::default(),
            },
            None => {
                let means = means(self.threads, self.memory, self.scratch)?;
                let devices = self.gpu.choose(&all, self.k, means.threads, means.memory)?;
                Means { devices, ..means }
            }
        };
        let piped = all.iter().any(Lane::has_pipe);
        if piped && (self.plan.is_some() || self.resume) {
            let option = if self.resume { "--resume" } else { "--plan" };
            let why = format!("{option}: reads from a pipe can be read once only: save them to files");
            return Err(Usage(why).into());
        }
        if piped {
            check_lanes_once(&all)?
        } else {
            check_lanes(&all)?
        }
        let panel =
            self.panel.as_deref().map(|table| panel::open(table, self.k, self.panel_least)).transpose()?;
        let store = Store {
            work,
            fingerprint: fingerprint(
                &samples,
                &all,
                self.reference.as_deref(),
                self.screen.as_deref(),
                panel.as_ref(),
                &params,
            )?,
            resume: self.resume,
        };
        let why = why::questions(&self.why, self.reference.as_deref())?;
        Ok(Job {
            lanes: all,
            samples,
            reference: self.reference.clone(),
            screen: self.screen.clone(),
            params,
            means,
            store,
            why,
            panel,
        })
    }
}

/// What a step of a call in parts may use when nobody says, at most: the machines that do it may have more than this one, or less.
const STEP_THREADS: usize = 4;
const STEP_MEMORY: u64 = 16 << 30;

/// Makes the paths of a lane absolute.
fn absolute(lane: &mut Lane) -> anyhow::Result<()> {
    let make = |path: &mut PathBuf| {
        *path = std::path::absolute(&*path).with_context(|| path.display().to_string())?;
        Ok(())
    };
    match &mut lane.files {
        LaneFiles::Pair(one, two) => [one, two].into_iter().try_for_each(make),
        LaneFiles::Interleaved(one) | LaneFiles::Single(one) => make(one),
        LaneFiles::Aligned(aligned) => {
            make(&mut aligned.path)?;
            aligned.options.genome.path_mut().map_or(Ok(()), make)
        }
    }
}

/// What a call may use when a user asks for this. What is free in the work folder is known when there is one.
///
/// # Errors
/// The memory is too little for the threads.
fn means(threads: Option<u16>, memory: Option<u64>, scratch: Option<u64>) -> Result<Means, Usage> {
    let memory = memory.map_or_else(budget::usual, budget::at_most_all);
    let scratch = scratch.unwrap_or(u64::MAX);
    let means = Means { threads: command::all_or(threads), memory, scratch, devices: Devices::default() };
    budget::check(&means, None)?;
    debug!("{} threads, {} of memory", means.threads, sizes::show(memory));
    Ok(means)
}

/// Whether some of the reads can be read once only.
fn piped(job: &Job) -> bool {
    job.lanes.iter().any(Lane::has_pipe)
}

/// Looks at the inputs for what would otherwise fail late, and says how many bases the reference has.
fn inspect(job: &Job) -> anyhow::Result<Option<u64>> {
    // What is in a pipe is seen when it is read.
    let lengths = if piped(job) { Vec::new() } else { lengths::of_samples(&job.lanes)? };
    for (sample, length) in lengths.iter().enumerate().filter(|(_, length)| **length != lengths[0]) {
        let (name, normal) = (job.samples.word(sample), lengths[0]);
        warn!("reads of the {name} have {length} bases, those of the normal {normal}: called all the same");
    }
    let Some(path) = &job.reference else { return Ok(None) };
    Ok(Some(Reference::read(path)?.contigs.iter().map(|c| c.seq.len() as u64).sum()))
}

/// Says what the call will take, before it is begun. What an interrupted run has left to do is not known.
///
/// # Errors
/// It cannot be done with its means.
fn foretell(job: &Job, reference: Option<u64>) -> anyhow::Result<()> {
    if piped(job) {
        info!("reads come from a pipe: what the call will take is not known");
        return Ok(());
    }
    let panel = job.panel.as_ref().map(|panel| input::panel(panel.path())).transpose()?;
    let given = input::of(&job.lanes, reference, panel, job.params.k, job.means.clone());
    let forecast = given.forecast(&MEASURED);
    if let Some(why) = forecast.refused {
        bail!("{why}: {}", forecast.advice.join("; "));
    }
    if !job.store.resume {
        info!(
            "planned: counting in {}; about {}, {} of memory and {} in the work folder (`genuma plan` says more)",
            counted(forecast.partitions.into(), "partition"),
            duration(forecast.wall_s()),
            sizes::show(forecast.peak_bytes()),
            sizes::show(forecast.scratch_bytes)
        );
    }
    Ok(())
}

/// The output folder. One that this run made goes again when nothing was written into it.
struct OutFolder<'a> {
    path: &'a Path,
    new: bool,
}

impl<'a> OutFolder<'a> {
    /// Makes the folder when it is missing.
    fn open(path: &'a Path) -> anyhow::Result<Self> {
        let new = !path.exists();
        fs::create_dir_all(path)
            .with_context(|| format!("{}: cannot make the output folder", path.display()))?;
        Ok(OutFolder { path, new })
    }
}

impl Drop for OutFolder<'_> {
    fn drop(&mut self) {
        if self.new {
            // Not empty: then it stays, as it should.
            let _ = fs::remove_dir(self.path);
        }
    }
}

/// What the calls depend on.
fn fingerprint(
    samples: &Samples,
    lanes: &[Lane],
    reference: Option<&Path>,
    screen: Option<&Path>,
    panel: Option<&Panel>,
    params: &Params,
) -> anyhow::Result<String> {
    let Params { k, min_base_quality, least_tumour, least_quality } = params;
    let mut fingerprint = Fingerprint::new()
        .parameter("k", k)
        .parameter("min-base-quality", min_base_quality)
        .parameter("least-tumour", least_tumour)
        .parameter("min-quality", least_quality);
    if *samples != Samples::default() {
        fingerprint = fingerprint.parameter("samples", samples.names().join(" "));
    }
    for lane in lanes {
        for path in lane.paths() {
            let word = samples.word(lane.sample.into());
            // No run takes up one that reads a pipe.
            fingerprint = match lane.has_pipe() {
                true => fingerprint.parameter(&word, path.display()),
                false => fingerprint.file(&word, path)?,
            };
        }
    }
    let fingerprint = match reference {
        Some(path) => fingerprint.file("reference", path)?,
        None => fingerprint.parameter("reference", "none"),
    };
    let fingerprint = match screen {
        Some(path) => fingerprint.file("screen", path)?,
        None => fingerprint,
    };
    let fingerprint = match panel {
        Some(panel) => fingerprint.file("panel", &panel.table)?.parameter("panel-least", panel.least),
        None => fingerprint,
    };
    Ok(fingerprint.lines())
}

fn heed_interruption(work: &Path, folder: &OutFolder<'_>) {
    let (folder, out, new) = (work.to_path_buf(), folder.path.to_path_buf(), folder.new);
    signals::on_interruption(Some(Box::new(move || {
        let stays = folder::leave(&folder);
        drop(OutFolder { path: &out, new });
        stays.then(|| folder::kept(&folder))
    })));
}

/// What the user has to know before believing the calls: samples of two people, evidence left out.
fn caution(outcome: &Outcome) {
    if let Some(share) = outcome.strangers {
        warn!(
            "the samples look like two people's: at {:.3}% of the places known in both each has an allele that the other lacks; \
             what is called is mostly how these people differ",
            100.0 * share
        );
    }
    for line in outcome.ledger.lines.iter().filter(|l| l.left_out && WEIGHING.contains(&&l.stage[..])) {
        warn!("left out: {}: {}", line.what, line.count);
    }
}

/// Units whose left-out lines are of evidence, where others leave out what says nothing.
const WEIGHING: [&str; 3] = ["select", "recruit", "judge"];

/// The last line: what was found, what it took, where it is.
fn farewell(outcome: &Outcome, out: &Path, start: Instant) {
    let passed = outputs::passed(outcome);
    let classes: Vec<String> = passed.iter().map(|(class, n)| format!("{n} {class}")).collect();
    info!(
        "{} calls pass{}; {:.1} s, {} of memory at most; see {}",
        passed.values().sum::<u64>(),
        if classes.is_empty() { String::new() } else { format!(" ({})", classes.join(", ")) },
        start.elapsed().as_secs_f64(),
        sizes::show(process_cost().peak_bytes),
        out.join(outputs::REPORT).display()
    );
}
