//! `genuma call --plan`: checks the inputs and writes the plan of a distributed call.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use genuma_kmers::{BinGrid, ExpectedKmers, bin_grid_for_kmers, min_memory_bytes_for_grid};
use genuma_planner::input;
use genuma_planner::rates::MEASURED_RATES;
use genuma_planner::step_forecast::StepTaskForecast;
use genuma_reads::ReadEstimate;
use genuma_reads::fasta::Reference;
use genuma_somatic::distributed_call::{DistributedCallPlan, StepKind};
use genuma_somatic::gene_annotation::GeneFile;
use genuma_somatic::known_variants::KnownVariants;
use genuma_somatic::panel_of_normals::PanelOfNormals;
use genuma_somatic::pipeline::{CallJob, count_acgt_bases};
use genuma_somatic::result_warnings::ResultWarning;
use genuma_somatic::target_depth::TargetsOption;
use genuma_storage::RunStore;
use genuma_work::quantity::{self, format_count_with_noun, format_duration};
use tracing::{info, warn};

use super::{DistributedPlan, PLAN_OBJECT_NAME, StepPlan, sbatch};
use crate::command_line;

/// Options of `genuma call --plan`.
pub(crate) struct PlanRequest<'a> {
    /// Location of the run store, to which the plan is written.
    pub(crate) run: &'a str,
    /// Number of shards of the reads; `None` for the default.
    pub(crate) shards: Option<u32>,
    /// Number of partitions of the k-mers; `None` for the default.
    pub(crate) num_partitions: Option<u32>,
    /// Whether to write a script that submits the steps to Slurm.
    pub(crate) sbatch: bool,
    /// Folder of the results.
    pub(crate) out: &'a Path,
    /// Warnings on the inputs, for the plan.
    pub(crate) warnings: Vec<ResultWarning>,
}

/// Default size of a shard, in bases of the reads; the default number of shards is 2 to 256. Chosen: a human
/// tumour/normal pair at 30x then has 8 shards.
const BASES_PER_SHARD: u64 = 25_000_000_000;

/// Divides the reads into shards, predicts the resources of each step, and writes the plan and, if requested, the Slurm
/// script to the run store. `job.resources` are the resources of one task.
///
/// # Errors
/// Reads cannot be read or divided into shards; the memory is too little to scatter reads; the run store has the plan
/// of another call, or is a bucket although a Slurm script is requested; the plan cannot be written.
pub(crate) fn write_distributed_plan(job: &CallJob, request: &PlanRequest<'_>) -> anyhow::Result<()> {
    if request.sbatch && request.run.contains("://") {
        bail!("--sbatch: give --plan a folder that all machines can access, because the logs are written there");
    }
    let scratch = std::env::temp_dir();
    let run_store = RunStore::open(request.run, &scratch)?;
    let estimate = ReadEstimate::estimate_reads_of_lanes(&job.lanes)?;
    let shards = request.shards.unwrap_or_else(|| estimate.bases.div_ceil(BASES_PER_SHARD).clamp(2, 256) as u32);
    let num_partitions = request.num_partitions.unwrap_or(shards);
    let sharding = genuma_reads::split_lanes_into_shards(&job.lanes, shards as usize)?;
    for lane in &sharding.under_split_lanes {
        warn!(
            "{lane}; the calls do not depend on how files are divided, but tasks of unequal size take longer: accept \
             this, or lower --shards"
        );
    }
    if let Some(message) = sharding.explain_fewer_shards() {
        warn!("{message}; the calls are the same, but fewer tasks can run at once");
    }
    let genome_bases =
        job.reference.as_deref().map(Reference::read_fasta_file).transpose()?.as_ref().map(count_acgt_bases);
    let grid = bin_grid_for_kmers(ExpectedKmers::from_read_estimate(&estimate, job.params.k).kmers, num_partitions);
    check_scatter_memory(job, grid)?;
    let lines = format!(
        "shards {}\npartitions {}\nbins {}\n",
        sharding.shards.len(),
        grid.num_partitions,
        grid.bins_per_partition
    );
    let call = DistributedCallPlan {
        shards: sharding.shards,
        samples: job.samples.clone(),
        grid,
        reference: job.reference.as_deref().map(canonical_path).transpose()?,
        screen: job.screen.as_deref().map(canonical_path).transpose()?,
        panel: job.panel.as_ref().map(with_canonical_table).transpose()?,
        known: job.known.as_ref().map(with_canonical_known).transpose()?,
        gff: job.gff.as_ref().map(with_canonical_gff).transpose()?,
        targets: job.targets.as_ref().map(with_canonical_targets).transpose()?,
        genome_bases,
        params: job.params.clone(),
        fingerprint: job.store.fingerprint.clone() + &lines,
    };
    run_store.create_store_folder()?;
    let out = std::path::absolute(request.out).context("the output folder")?;
    let replaces_plan = check_existing_plan(&run_store, &call, &out)?;
    let panel = job.panel.as_ref().map(|panel| input::measure_panel_size(panel.table_path())).transpose()?;
    let given = input::measure_forecast_input(&job.lanes, genome_bases, panel, job.params.k, job.resources.clone())?;
    let needs = given.forecast_steps(call.shards.len() as u32, grid, &MEASURED_RATES);
    let plan = DistributedPlan {
        genuma: env!("CARGO_PKG_VERSION").to_owned(),
        run: store_location(request.run)?,
        out,
        shards: call.shards.len() as u32,
        parts: grid.num_partitions,
        steps: needs.iter().map(|need| plan_step(need, &call, job.resources.threads)).collect(),
        lanes: job.lanes.clone(),
        warnings: request.warnings.clone(),
        provenance: job.provenance.clone(),
        call,
    };
    publish_plan(&run_store, &plan.to_checksummed_json()?, replaces_plan)?;
    report_plan(&plan, &needs);
    if request.sbatch {
        publish_sbatch_script(&run_store, &plan)?;
    }
    Ok(())
}

/// Checks that the run store has no plan, or the plan of this call with the same output folder. Returns whether it has
/// a plan.
fn check_existing_plan(run_store: &RunStore, call: &DistributedCallPlan, out: &Path) -> anyhow::Result<bool> {
    let Some(existing) = DistributedPlan::load(run_store)? else { return Ok(false) };
    if existing.call.fingerprint != call.fingerprint {
        bail!("{run_store}: contains the plan of another call; give another location, or remove that plan");
    }
    if existing.out != out {
        bail!(
            "{run_store}: contains this call with results in {0}; give -o {0} to plan it again, or --plan another location",
            existing.out.display()
        );
    }
    Ok(true)
}

fn store_location(run: &str) -> anyhow::Result<String> {
    Ok(if run.contains("://") {
        run.trim_end_matches('/').to_owned()
    } else {
        canonical_path(Path::new(run))?.display().to_string()
    })
}

fn check_scatter_memory(job: &CallJob, grid: BinGrid) -> anyhow::Result<()> {
    let min_memory_bytes = min_memory_bytes_for_grid(grid, job.resources.threads);
    if job.resources.memory < min_memory_bytes {
        let (have, need) = (quantity::format_bytes(job.resources.memory), quantity::format_bytes(min_memory_bytes));
        bail!(
            "{have} of memory is too little for a step that scatters reads into {} bins, which needs {need}: raise --memory or lower --threads",
            grid.num_bins()
        );
    }
    Ok(())
}

fn publish_sbatch_script(run_store: &RunStore, plan: &DistributedPlan) -> anyhow::Result<()> {
    let script = Path::new(&plan.run).join(sbatch::SBATCH_SCRIPT_OBJECT_NAME);
    publish_object(
        run_store,
        sbatch::SBATCH_SCRIPT_OBJECT_NAME,
        sbatch::render_sbatch_script(plan, &command_line::own_program_path()?).as_bytes(),
    )?;
    info!("start it with: sh {}", script.display());
    Ok(())
}

fn canonical_path(path: &Path) -> anyhow::Result<PathBuf> {
    fs::canonicalize(path).with_context(|| format!("{}: cannot read", path.display()))
}

/// Returns the panel with the absolute path of its table.
fn with_canonical_table(panel: &PanelOfNormals) -> anyhow::Result<PanelOfNormals> {
    Ok(PanelOfNormals { table: canonical_path(&panel.table)?, ..panel.clone() })
}

/// Returns the known variants with the absolute path of their file.
fn with_canonical_known(known: &KnownVariants) -> anyhow::Result<KnownVariants> {
    Ok(KnownVariants { path: canonical_path(&known.path)? })
}

/// Returns the genes with the absolute path of their file.
fn with_canonical_gff(gff: &GeneFile) -> anyhow::Result<GeneFile> {
    Ok(GeneFile { path: canonical_path(&gff.path)? })
}

/// Returns the option `--targets` with the absolute path of its file.
fn with_canonical_targets(option: &TargetsOption) -> anyhow::Result<TargetsOption> {
    Ok(TargetsOption { path: canonical_path(&option.path)?, ..option.clone() })
}

/// Publishes the plan in the run store. An existing plan is replaced only if `replaces_plan` is set. Otherwise it is an
/// error if another process has published a different plan meanwhile.
fn publish_plan(run_store: &RunStore, text: &[u8], replaces_plan: bool) -> anyhow::Result<()> {
    if replaces_plan {
        return publish_object(run_store, PLAN_OBJECT_NAME, text);
    }
    let draft = run_store.create_temp_object(PLAN_OBJECT_NAME)?;
    fs::write(draft.path(), text).with_context(|| format!("{run_store}/{PLAN_OBJECT_NAME}"))?;
    if run_store.publish_if_absent(draft, PLAN_OBJECT_NAME)? {
        return Ok(());
    }
    // It may be this plan, if the answer to the first request for it was lost.
    let existing = run_store.open_object_if_exists(PLAN_OBJECT_NAME)?;
    match existing.map(|plan| plan.read_range(0..plan.len_bytes())).transpose()? {
        Some(bytes) if bytes == text => Ok(()),
        _ => bail!("{run_store}: another process planned a call there at the same time; give another location"),
    }
}

fn publish_object(run_store: &RunStore, name: &str, text: &[u8]) -> anyhow::Result<()> {
    let draft = run_store.create_temp_object(name)?;
    let mut file = fs::File::create(draft.path()).with_context(|| format!("{run_store}/{name}"))?;
    file.write_all(text).with_context(|| format!("{run_store}/{name}"))?;
    drop(file);
    Ok(run_store.publish(draft, name)?)
}

fn plan_step(need: &StepTaskForecast, call: &DistributedCallPlan, threads: usize) -> StepPlan {
    StepPlan {
        name: need.kind.command_line_name().to_owned(),
        tasks: call.num_tasks_of_step(need.kind),
        after: need.kind.preceding_step().iter().map(|kind| kind.command_line_name().to_owned()).collect(),
        threads,
        memory_mb: need.memory_bytes.div_ceil(1 << 20),
        minutes: (5.0 + need.wall_s * 3.0 / 60.0).ceil() as u64,
        scratch_mb: need.scratch_bytes.div_ceil(1 << 20),
    }
}

fn report_plan(plan: &DistributedPlan, needs: &[StepTaskForecast]) {
    let tasks = |kind: StepKind| f64::from(plan.call.num_tasks_of_step(kind));
    let cpu_s: f64 = needs.iter().map(|need| need.cpu_s * tasks(need.kind)).sum();
    let wall_s: f64 = needs.iter().map(|need| need.wall_s).sum();
    let max_memory_bytes = needs.iter().map(|need| need.memory_bytes).max().unwrap_or(0);
    info!(
        "{}: {} and {}; about {} of CPU time, {} if all tasks of a step run at once, at most {} of memory for a task; `genuma step {}` shows the progress",
        plan.run,
        format_count_with_noun(plan.shards.into(), "shard"),
        format_count_with_noun(plan.parts.into(), "partition"),
        format_duration(cpu_s),
        format_duration(wall_s),
        quantity::format_bytes(max_memory_bytes),
        plan.run,
    );
}
