//! `genuma step`: runs one task of a distributed call.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use genuma_reads::fasta::Reference;
use genuma_somatic::distributed_call::{DistributedCallPlan, StepKind, StepTask, TaskRunner};
use genuma_somatic::known_info::KnownInfoSource;
use genuma_somatic::pipeline::{CallJob, Resources};
use genuma_storage::RunStore;
use genuma_storage::step_output::{self, StepOutput};
use genuma_work::cost::measure_process_cost;
use genuma_work::folder::WorkFolder;
use genuma_work::quantity;
use genuma_work::signals;
use genuma_work::unit::UnitStore;
use tracing::{info, warn};

use crate::call::blocking_warnings::BlockingWarningRule;
use crate::call::known_info::{self, KnownInfoOption};
use crate::call::provenance::{describe_input_file, describe_known_info_files};
use crate::call::result_files::{OptionalOutputPaths, OptionalOutputs};
use crate::call::watcher::CallWatcher;
use crate::call::{DistributedOutputOptions, judge_and_write_distributed_call};
use crate::distributed::{DistributedPlan, PLAN_OBJECT_NAME};
use crate::errors::UsageError;
use crate::{command_line, logging};

/// Run one task of a distributed call, planned with `genuma call --plan`, on any machine that can
/// access the run store.
///
/// A distributed call is a call that many machines compute together. It has the steps below. Each step
/// consists of tasks, and each task is one `genuma step`. Usually a program starts the tasks: the Slurm
/// script of `genuma call --plan --sbatch`, or a workflow engine (Nextflow, Snakemake); see
/// docs/guide/cluster.md. The steps are, in this order:
///   scatter   one task per shard of the reads: divides the k-mers into partitions
///   count     one task per partition: counts k-mers and selects those that only the tumour has
///   pick      one task: merges these candidate k-mers and skips those that the reference contains
///   label     one task per shard: collects tumour read pairs with candidate k-mers
///   assemble  one task: assembles these pairs into contigs
///   place     one task: places the contigs on the reference
///   recruit   one task per shard: collects the reads of all samples that overlap a candidate change
///   finish    one task: genotypes and filters the changes, and writes the results
///
/// The tasks of one step can run in parallel. A step can start when all tasks of the earlier steps are
/// done. Each task except `finish` writes one object (file) to the run store, atomically: a task may
/// be killed and repeated, or run twice at the same time. A task that is already done is skipped.
///
/// Without a step, prints the progress of the call.
#[derive(Debug, clap::Args)]
#[command(
    about = "Run one task of a distributed call (usually started by Slurm or a workflow engine)",
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    Plan a call with 4 shards and 8 partitions, and do all its tasks on this machine:\n    \
    genuma call --plan run --shards 4 --partitions 8 --tumor T_1.fq.gz T_2.fq.gz \\\n      \
    --normal N_1.fq.gz N_2.fq.gz --reference ref.fa -o calls\n    \
    for i in 1 2 3 4; do genuma step run scatter $i; done\n    \
    for i in 1 2 3 4 5 6 7 8; do genuma step run count $i; done; genuma step run pick\n    \
    for i in 1 2 3 4; do genuma step run label $i; done\n    \
    genuma step run assemble; genuma step run place\n    \
    for i in 1 2 3 4; do genuma step run recruit $i; done\n    \
    genuma step run finish\n  \
    Show the progress:\n    \
    genuma step run"
)]
pub(crate) struct Args {
    /// Run store: a folder, s3://bucket/prefix or gs://bucket/prefix
    run: String,
    /// Step that the task belongs to; without it the progress of the call is printed
    #[arg(value_parser = ["scatter", "count", "pick", "label", "assemble", "place", "recruit", "finish"])]
    step: Option<String>,
    /// Number of the task, from 1 on: that of the shard or partition; not needed for steps that have one task
    #[arg(value_name = "NUMBER")]
    number: Option<u32>,
    /// Do the task again even if it is done
    #[arg(long)]
    again: bool,
    /// For `finish`: write the results although a warning withholds them: wrong or incomplete reference, CRAM made with
    /// another reference, two people, tumour and normal swapped, another species, a sample with a depth below 4, or
    /// reads shorter than 30 bases on average. The warning is then in the VCF header, summary.json and report
    #[arg(long)]
    force: bool,
    /// For `finish`: treat every warning about the inputs or the result as an error, and write no results (see genuma call --help)
    #[arg(long, conflicts_with = "force")]
    strict: bool,
    /// Folder for the results of `finish`, instead of the planned one
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// For `finish`: also write small variants with FILTER PASS as MAF
    #[arg(long, value_name = "FILE")]
    maf: Option<PathBuf>,
    /// For `finish`: also write structural variants with FILTER PASS as BEDPE
    #[arg(long, value_name = "FILE")]
    bedpe: Option<PathBuf>,
    /// For `finish`: also write the content of summary.json to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// For `finish`: mutational signatures whose exposures are estimated (see genuma call --help)
    #[arg(long, value_name = "FILE")]
    signatures: Option<PathBuf>,
    /// For `finish`: INFO fields of known variants that the calls get (see genuma call --help)
    #[arg(long, value_name = "[VCF:]FIELDS", value_parser = known_info::parse_known_info)]
    known_info: Vec<KnownInfoOption>,

    /// Threads [default: as planned]
    #[arg(short, long, value_name = "N", value_parser = command_line::thread_count_parser(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Maximum memory of the whole process, such as 8G or 512M (powers of 1024) [default: as planned]
    #[arg(long, value_name = "SIZE", value_parser = quantity::parse_bytes, help_heading = "Resources")]
    memory: Option<u64>,
    /// Folder for data that does not fit in memory, best on a local disk; the task creates its own work folder in it
    /// [default: $TMPDIR, else the folder of the run store, else /tmp]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    work: Option<PathBuf>,
}

/// Runs the task, or prints the progress of the call if no step is given.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let base = choose_scratch_folder(args)?;
    let run_store = RunStore::open(&args.run, &base)?;
    let Some(plan) = DistributedPlan::load(&run_store)? else {
        bail!("{run_store}: contains no {PLAN_OBJECT_NAME}: plan the call with genuma call --plan {}", args.run);
    };
    let Some(name) = &args.step else { return print_progress(&plan, &run_store) };
    let step = parse_step(name, args.number, &plan.call)?;
    check_inputs_unchanged(&plan, step)?;
    if step.kind != StepKind::Finish && !args.again && is_task_done(&plan, &run_store, step)? {
        info!("{step}: is already done");
        return Ok(());
    }
    let start = Instant::now();
    let work = base.join(format!(
        ".genuma-{}-{}-{:08x}",
        step.object_name().unwrap_or("finish".into()),
        std::process::id(),
        random_number()
    ));
    let folder = WorkFolder::open(&work, false)?;
    leave_work_folder_on_interruption(&work);
    let done = run_task(args, &plan, &run_store, step, &work);
    let undivided = signals::enter_critical_section();
    signals::set_termination_handler(None);
    folder.remove();
    drop(undivided);
    let left = done?;
    info!(
        "{step}: done in {:.1} s, {} of memory at most{left}",
        start.elapsed().as_secs_f64(),
        quantity::format_bytes(measure_process_cost().peak_bytes)
    );
    Ok(())
}

/// Runs the task. Returns the end of the final log message: the size of the object, or a note about the run store.
fn run_task(
    args: &Args,
    plan: &DistributedPlan,
    run_store: &RunStore,
    step: StepTask,
    work: &Path,
) -> anyhow::Result<String> {
    let planned = plan.find_step_plan(step.kind)?;
    let means = Resources {
        threads: args.threads.map_or(planned.threads, usize::from),
        memory: args.memory.unwrap_or(planned.memory_mb << 20),
        scratch: u64::MAX,
        devices: Default::default(),
    };
    let watched = CallWatcher::start(None, None);
    let runner = TaskRunner {
        call: &plan.call,
        store: run_store,
        resources: means.clone(),
        work_dir: work,
        progress: &watched,
        check_inputs: &|| Ok(check_inputs_unchanged(plan, step)?),
    };
    if step.kind != StepKind::Finish {
        runner.run_task(step)?;
        let object = plan.call.open_task_output(run_store, step)?;
        return Ok(object.map_or_else(String::new, |object| {
            format!("; {} in {}", quantity::format_bytes(object.len_bytes()), object.object_path_or_url())
        }));
    }
    let out = args.out.as_ref().unwrap_or(&plan.out);
    let rule = BlockingWarningRule::from_force_and_strict(args.force, args.strict);
    if args.signatures.is_some() && plan.call.reference.is_none() {
        return Err(UsageError("--signatures: the call was planned without --reference".into()).into());
    }
    let known = plan.call.known.as_ref().map(|known| known.path.as_path());
    let known_info = known_info::known_info_sources(&args.known_info, known)?;
    check_known_info(&known_info, plan.call.reference.as_deref())?;
    let known_info_files = describe_known_info_files(&known_info)?;
    let paths = OptionalOutputPaths { maf: args.maf.clone(), bedpe: args.bedpe.clone(), json: args.json.clone() };
    let options = OptionalOutputs::new(paths, args.signatures.as_deref(), known_info)?;
    let mut provenance = plan.provenance.clone();
    if let Some(path) = &args.signatures {
        provenance.inputs.push(describe_input_file("signatures", path)?);
    }
    provenance.inputs.extend(known_info_files);
    let job = CallJob {
        panel: plan.call.panel.clone(),
        known: plan.call.known.clone(),
        gff: plan.call.gff.clone(),
        lanes: plan.lanes.clone(),
        samples: plan.call.samples.clone(),
        reference: plan.call.reference.clone(),
        screen: plan.call.screen.clone(),
        targets: plan.call.targets.clone(),
        params: plan.call.params.clone(),
        resources: means,
        store: UnitStore { work_folder: work.to_owned(), fingerprint: plan.call.fingerprint.clone(), resume: false },
        traced_variants: Vec::new(),
        provenance,
    };
    let outputs = DistributedOutputOptions { out, options, warnings: plan.warnings.clone(), rule };
    judge_and_write_distributed_call(&job, outputs, &watched, || {
        let finished = runner.run_finish_task()?;
        // The files were read after the check at the start.
        check_inputs_unchanged(plan, step)?;
        Ok(finished)
    })?;
    Ok(format!("; the run store {run_store} is no longer needed"))
}

/// Checks the files of `--known-info` before the changes are genotyped.
fn check_known_info(sources: &[KnownInfoSource], reference: Option<&Path>) -> anyhow::Result<()> {
    match reference {
        _ if sources.is_empty() => Ok(()),
        None => Err(UsageError("--known-info: the call was planned without --reference".into()).into()),
        Some(path) => Ok(known_info::check_known_info(sources, &Reference::read_fasta_file(path)?)?),
    }
}

/// Returns the folder in which the task creates its work folder.
fn choose_scratch_folder(args: &Args) -> anyhow::Result<PathBuf> {
    let base = match (&args.work, std::env::var_os("TMPDIR")) {
        (Some(work), _) => work.clone(),
        (None, Some(folder)) => folder.into(),
        (None, None) if args.run.contains("://") => "/tmp".into(),
        (None, None) => args.run.clone().into(),
    };
    std::path::absolute(&base).with_context(|| base.display().to_string())
}

fn random_number() -> u32 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() as u32
}

fn parse_step(name: &str, number: Option<u32>, call: &DistributedCallPlan) -> Result<StepTask, UsageError> {
    // The parser accepts known names only.
    let kind = StepKind::from_command_line_name(name).ok_or_else(|| UsageError(format!("{name}: no such step")))?;
    let tasks = call.num_tasks_of_step(kind);
    let number = match number {
        Some(number) => number,
        None if tasks == 1 => 1,
        None => return Err(UsageError(format!("{name}: give the number of the task, 1 to {tasks}"))),
    };
    if !(1..=tasks).contains(&number) {
        return Err(UsageError(format!("{name} {number}: the tasks of this run have numbers 1 to {tasks}")));
    }
    Ok(StepTask { kind, number })
}

/// Returns an error if an input file that the task reads has changed since the call was planned.
fn check_inputs_unchanged(plan: &DistributedPlan, step: StepTask) -> anyhow::Result<()> {
    if step.kind == StepKind::Scatter {
        for lane in &plan.call.shards[step.number as usize - 1] {
            lane.paths().try_for_each(|path| {
                plan.check_input_unchanged(&plan.call.samples.name_in_messages(lane.sample.into()), path)
            })?;
        }
    }
    let DistributedCallPlan { reference, screen, panel, targets, known, gff, .. } = &plan.call;
    if let Some(path) = reference
        && matches!(step.kind, StepKind::Count | StepKind::Pick | StepKind::Place | StepKind::Finish)
    {
        plan.check_input_unchanged("reference", path)?;
    }
    if let Some(panel) = panel
        && step.kind == StepKind::Finish
    {
        plan.check_input_unchanged("panel", &panel.table)?;
    }
    if let Some(known) = known
        && step.kind == StepKind::Finish
    {
        plan.check_input_unchanged("known", &known.path)?;
    }
    if let Some(gff) = gff
        && step.kind == StepKind::Finish
    {
        plan.check_input_unchanged("gff", &gff.path)?;
    }
    if let Some(targets) = targets
        && matches!(step.kind, StepKind::Count | StepKind::Finish)
    {
        plan.check_input_unchanged("targets", &targets.path)?;
    }
    match screen {
        Some(path) if matches!(step.kind, StepKind::Count | StepKind::Finish) => {
            plan.check_input_unchanged("screen", path)
        }
        _ => Ok(()),
    }
}

/// Returns whether the run store has a valid object of the task. A damaged object, or one of another plan, counts as
/// missing, with a warning.
fn is_task_done(plan: &DistributedPlan, run_store: &RunStore, step: StepTask) -> anyhow::Result<bool> {
    match plan.call.open_task_output(run_store, step) {
        Ok(object) => Ok(object.is_some()),
        Err(step_output::Error::Damaged { object, what }) => {
            warn!(
                "{object}: damaged ({what}), so the task is done again now and replaces it; nothing else needs to be done"
            );
            Ok(false)
        }
        Err(step_output::Error::OtherRun { object, difference }) => {
            warn!(
                "{object}: made for another plan ({difference}), so the task is done again now and replaces it; \
                 if you need both plans, give each its own run store"
            );
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Prints for each step but `finish` how many of its tasks are done, and whether the results are written.
fn print_progress(plan: &DistributedPlan, run_store: &RunStore) -> anyhow::Result<()> {
    let mut text = String::new();
    for kind in StepKind::ALL_STEP_KINDS.into_iter().filter(|&kind| kind != StepKind::Finish) {
        let objects: Vec<Option<StepOutput>> = plan
            .call
            .tasks_of_step(kind)
            .map(|step| plan.call.open_task_output(run_store, step))
            .collect::<Result<_, _>>()?;
        let done: Vec<&StepOutput> = objects.iter().flatten().collect();
        // The sum of an empty iterator of floats is -0.
        let cpu_s = done.iter().fold(0.0, |sum, object| sum + object.task_cost().cpu_s);
        let bytes: u64 = done.iter().map(|object| object.len_bytes()).sum();
        let missing: Vec<String> =
            (1..).zip(&objects).filter(|(_, object)| object.is_none()).map(|(n, _): (u32, _)| n.to_string()).collect();
        text += &format!(
            "{:<9} {:>4} of {:<4} {cpu_s:>9.1} CPU s  {:>9}",
            kind.command_line_name(),
            done.len(),
            objects.len(),
            quantity::format_bytes(bytes)
        );
        text += &if missing.is_empty() || missing.len() == objects.len() {
            "\n".to_owned()
        } else {
            format!("  missing: {}\n", missing.join(" "))
        };
    }
    text += &format!(
        "results   {}\n",
        // I/O error ignored: the progress then shows no results.
        if plan.out.join(crate::call::result_files::REPORT_FILE_NAME).exists() {
            plan.out.display().to_string()
        } else {
            "not written yet".into()
        }
    );
    logging::print_result(text)?;
    Ok(())
}

fn leave_work_folder_on_interruption(work: &Path) {
    let work = work.to_path_buf();
    signals::set_termination_handler(Some(Box::new(move || {
        genuma_work::folder::keep_only_resumable_files(&work);
        Some("repeat the command to do the task again".to_owned())
    })));
}
