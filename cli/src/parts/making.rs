//! `genuma call --plan`: checks the inputs and writes what is to be done.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use genuma_kmers::{Expected, grid, least_for_grid};
use genuma_reads::Estimate;
use genuma_reads::fasta::Reference;
use genuma_somatic::panel::Panel;
use genuma_somatic::parts::{Kind, Parts};
use genuma_somatic::pipeline::{Job, known_bases};
use genuma_storage::Depot;
use tracing::{info, warn};

use super::{PLAN, RunPlan, Steps, sbatch};
use crate::forecast::input;
use crate::forecast::rates::MEASURED;
use crate::forecast::steps::Need;
use crate::report::markup::{counted, duration};
use crate::sizes;

/// What a user asks of a run in parts.
pub(crate) struct Asked<'a> {
    /// Where it is to be.
    pub(crate) run: &'a str,
    /// Shards of the reads, if said.
    pub(crate) shards: Option<u32>,
    /// Partitions of the k-mer space, if said.
    pub(crate) parts: Option<u32>,
    /// Whether a script for Slurm is wanted.
    pub(crate) sbatch: bool,
    /// Folder of the results.
    pub(crate) out: &'a Path,
}

/// Bases of a shard when nobody says: of a human pair at 30x there are 8.
const SHARD: u64 = 25_000_000_000;

/// Plans the job, whose means are those of one step.
///
/// # Errors
/// Reads that cannot be read or cut; another plan is there; the plan cannot be written.
pub(crate) fn plan(job: &Job, asked: &Asked<'_>) -> anyhow::Result<()> {
    if asked.sbatch && asked.run.contains("://") {
        bail!("--sbatch: give --plan a folder that all machines see: logs are to be there");
    }
    let scratch = std::env::temp_dir();
    let depot = Depot::open(asked.run, &scratch)?;
    let held = Estimate::of(&job.lanes);
    let shards = asked.shards.unwrap_or_else(|| held.bases.div_ceil(SHARD).clamp(2, 256) as u32);
    let parts = asked.parts.unwrap_or(shards);
    let cut = genuma_reads::shards(&job.lanes, shards as usize)?;
    cut.uncut.iter().for_each(|lane| warn!("{lane}"));
    cut.shortfall().iter().for_each(|line| warn!("{line}"));
    let genome_bases = job.reference.as_deref().map(Reference::read).transpose()?.as_ref().map(known_bases);
    let grid = grid(Expected::of(&held, job.params.k).kmers, parts);
    let least = least_for_grid(grid, job.means.threads);
    if job.means.memory < least {
        let (have, need) = (sizes::show(job.means.memory), sizes::show(least));
        bail!(
            "{have} of memory are too little for a step that scatters reads into {} bins, which needs {need}: raise --memory or lower --threads",
            grid.all()
        );
    }
    let lines = format!("shards {}\npartitions {}\nbins {}\n", cut.shards.len(), grid.parts, grid.bins);
    let call = Parts {
        shards: cut.shards,
        samples: job.samples.clone(),
        grid,
        reference: job.reference.as_deref().map(full).transpose()?,
        screen: job.screen.as_deref().map(full).transpose()?,
        panel: job.panel.as_ref().map(whole).transpose()?,
        genome_bases,
        params: job.params.clone(),
        fingerprint: job.store.fingerprint.clone() + &lines,
    };
    depot.create()?;
    if let Some(there) = RunPlan::find(&depot)?
        && there.call.fingerprint != call.fingerprint
    {
        bail!("{depot}: holds the plan of another call; give another place, or remove what is there");
    }
    let panel = job.panel.as_ref().map(|panel| input::panel(panel.path())).transpose()?;
    let given = input::of(&job.lanes, genome_bases, panel, job.params.k, job.means.clone());
    let needs = given.steps(call.shards.len() as u32, grid, &MEASURED);
    let place = if asked.run.contains("://") {
        asked.run.trim_end_matches('/').to_owned()
    } else {
        full(Path::new(asked.run))?.display().to_string()
    };
    let plan = RunPlan {
        genuma: env!("CARGO_PKG_VERSION").to_owned(),
        run: place,
        out: std::path::absolute(asked.out).context("the output folder")?,
        shards: call.shards.len() as u32,
        parts: grid.parts,
        steps: needs.iter().map(|need| steps(need, &call, job.means.threads)).collect(),
        lanes: job.lanes.clone(),
        call,
    };
    leave(&depot, PLAN, &serde_json::to_vec_pretty(&plan)?)?;
    tell(&plan, &needs);
    if asked.sbatch {
        let script = Path::new(&plan.run).join(sbatch::SCRIPT);
        leave(&depot, sbatch::SCRIPT, sbatch::script(&plan, &program()?).as_bytes())?;
        info!("start it with: sh {}", script.display());
    }
    Ok(())
}

/// This program, by its full path.
fn program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("the path of genuma")
}

fn full(path: &Path) -> anyhow::Result<PathBuf> {
    fs::canonicalize(path).with_context(|| format!("{}: cannot read", path.display()))
}

/// A panel by its full path.
fn whole(panel: &Panel) -> anyhow::Result<Panel> {
    Ok(Panel { table: full(&panel.table)?, ..panel.clone() })
}

fn leave(depot: &Depot, name: &str, text: &[u8]) -> anyhow::Result<()> {
    let draft = depot.draft(name)?;
    let mut file = fs::File::create(draft.path()).with_context(|| format!("{depot}/{name}"))?;
    file.write_all(text).with_context(|| format!("{depot}/{name}"))?;
    drop(file);
    Ok(depot.publish(draft, name)?)
}

fn steps(need: &Need, call: &Parts, threads: usize) -> Steps {
    Steps {
        name: need.kind.name().to_owned(),
        tasks: call.tasks(need.kind),
        after: need.kind.after().iter().map(|kind| kind.name().to_owned()).collect(),
        threads,
        memory_mb: need.memory.div_ceil(1 << 20),
        minutes: (5.0 + need.wall_s * 3.0 / 60.0).ceil() as u64,
        scratch_mb: need.scratch.div_ceil(1 << 20),
    }
}

fn tell(plan: &RunPlan, needs: &[Need]) {
    let tasks = |kind: Kind| f64::from(plan.call.tasks(kind));
    let cpu_s: f64 = needs.iter().map(|need| need.cpu_s * tasks(need.kind)).sum();
    let wall_s: f64 = needs.iter().map(|need| need.wall_s).sum();
    let most = needs.iter().map(|need| need.memory).max().unwrap_or(0);
    info!(
        "{}: {} and {}; about {} of CPU, {} where all steps of a kind run at once, {} of memory at most; `genuma step {}` says what is done",
        plan.run,
        counted(plan.shards.into(), "shard"),
        counted(plan.parts.into(), "partition"),
        duration(cpu_s),
        duration(wall_s),
        sizes::show(most),
        plan.run,
    );
}
