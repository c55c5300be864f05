//! `genuma step`: one step of a call in parts.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use genuma_somatic::parts::{Kind, Parts, Step, Stepping};
use genuma_somatic::pipeline::{Job, Means};
use genuma_storage::Depot;
use genuma_storage::object::{self, Object};
use genuma_work::clock::process_cost;
use genuma_work::folder::WorkFolder;
use genuma_work::signals;
use genuma_work::unit::Store;
use tracing::{info, warn};

use crate::call::finish;
use crate::call::watched::Watched;
use crate::failure::Usage;
use crate::parts::{PLAN, RunPlan};
use crate::{command, sizes, voice};

/// Do one step of a call that was planned with `genuma call --plan`, on any machine that sees the place of the run.
///
/// The steps are, in this order: scatter (one a shard), count (one a partition), pick, label (one a shard), assemble, place, recruit
/// (one a shard), finish. All of one name may run at once; those of the next need all of them. Each leaves one object in the place of
/// the run, whole or not at all: it may be killed and done again, or done twice at once. What is done already is not done again.
///
/// Without a name: says what is done.
#[derive(Debug, clap::Args)]
#[command(
    about = "Do one step of a call in parts, on any machine",
    after_help = "Examples:\n  \
    Plan a call in 4 shards and 8 partitions, and do it on this machine:\n    \
    genuma call --plan run --shards 4 --parts 8 --tumor T_1.fq.gz T_2.fq.gz --normal N_1.fq.gz N_2.fq.gz \\\n      \
    --reference ref.fa -o calls\n    \
    for i in 1 2 3 4; do genuma step run scatter $i; done\n    \
    for i in 1 2 3 4 5 6 7 8; do genuma step run count $i; done; genuma step run pick\n    \
    for i in 1 2 3 4; do genuma step run label $i; done\n    \
    genuma step run assemble; genuma step run place\n    \
    for i in 1 2 3 4; do genuma step run recruit $i; done\n    \
    genuma step run finish\n  \
    What is done of it:\n    \
    genuma step run"
)]
pub(crate) struct Args {
    /// Place of the run: a folder, s3://bucket/prefix or gs://bucket/prefix
    run: String,
    /// Step to do; without it, what is done is told
    #[arg(value_parser = ["scatter", "count", "pick", "label", "assemble", "place", "recruit", "finish"])]
    step: Option<String>,
    /// Of which shard or partition, from 1 on; steps that there is one of need none
    #[arg(value_name = "NUMBER")]
    number: Option<u32>,
    /// Do it again, even if it is done
    #[arg(long)]
    again: bool,
    /// Folder for the results of `finish`, if not the one that was planned
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Threads [default: as planned]
    #[arg(short, long, value_name = "N", value_parser = command::threads(), help_heading = "Resources")]
    threads: Option<u16>,
    /// Most memory of the whole process, such as 8G or 512M (powers of 1024) [default: as planned]
    #[arg(long, value_name = "SIZE", value_parser = sizes::parse, help_heading = "Resources")]
    memory: Option<u64>,
    /// Folder for what has no room in memory, best on a disk of this machine; the step works in a folder of its own in there
    /// [default: $TMPDIR, else the folder of the run, else /tmp]
    #[arg(long, value_name = "DIR", help_heading = "Resources")]
    work: Option<PathBuf>,
}

/// Does the step, or tells what is done.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let base = base(args)?;
    let depot = Depot::open(&args.run, &base)?;
    let Some(plan) = RunPlan::find(&depot)? else {
        bail!("{depot}: holds no {PLAN}: plan the call with genuma call --plan {}", args.run);
    };
    let Some(name) = &args.step else { return tell(&plan, &depot) };
    let step = step(name, args.number, &plan.call)?;
    check(&plan, step)?;
    if step.kind != Kind::Finish && !args.again && is_done(&plan, &depot, step)? {
        info!("{step}: done already");
        return Ok(());
    }
    let start = Instant::now();
    let work = base.join(format!(
        ".genuma-{}-{}-{:08x}",
        step.object().unwrap_or("finish".into()),
        std::process::id(),
        random()
    ));
    let folder = WorkFolder::open(&work, false)?;
    heed_interruption(&work);
    let done = work_on(args, &plan, &depot, step, &work);
    let undivided = signals::undivided();
    signals::on_interruption(None);
    folder.remove();
    drop(undivided);
    let left = done?;
    info!(
        "{step}: done in {:.1} s, {} of memory at most{left}",
        start.elapsed().as_secs_f64(),
        sizes::show(process_cost().peak_bytes)
    );
    Ok(())
}

/// Does it; what is left says how many bytes its object has.
fn work_on(args: &Args, plan: &RunPlan, depot: &Depot, step: Step, work: &Path) -> anyhow::Result<String> {
    let planned = plan.of(step.kind)?;
    let means = Means {
        threads: args.threads.map_or(planned.threads, usize::from),
        memory: args.memory.unwrap_or(planned.memory_mb << 20),
        scratch: u64::MAX,
        devices: Default::default(),
    };
    let watched = Watched::start();
    let stepping = Stepping { parts: &plan.call, depot, means: means.clone(), work, watch: &watched };
    if step.kind != Kind::Finish {
        stepping.run(step)?;
        let object = plan.call.done(depot, step)?;
        return Ok(object.map_or_else(String::new, |object| {
            format!("; {} in {}", sizes::show(object.bytes()), object.name())
        }));
    }
    let out = args.out.as_ref().unwrap_or(&plan.out);
    let job = Job {
        panel: plan.call.panel.clone(),
        lanes: plan.lanes.clone(),
        samples: plan.call.samples.clone(),
        reference: plan.call.reference.clone(),
        screen: plan.call.screen.clone(),
        params: plan.call.params.clone(),
        means,
        store: Store { work: work.to_owned(), fingerprint: plan.call.fingerprint.clone(), resume: false },
        why: Vec::new(),
    };
    finish(&job, out, &watched, || stepping.finish())?;
    Ok(format!("; the place of the run, {depot}, is not needed any more"))
}

/// Where a step makes a folder of its own.
fn base(args: &Args) -> anyhow::Result<PathBuf> {
    let base = match (&args.work, std::env::var_os("TMPDIR")) {
        (Some(work), _) => work.clone(),
        (None, Some(folder)) => folder.into(),
        (None, None) if args.run.contains("://") => "/tmp".into(),
        (None, None) => args.run.clone().into(),
    };
    std::path::absolute(&base).with_context(|| base.display().to_string())
}

fn random() -> u32 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() as u32
}

fn step(name: &str, number: Option<u32>, parts: &Parts) -> Result<Step, Usage> {
    // The parser knows the names.
    let kind = Kind::of_name(name).ok_or_else(|| Usage(format!("{name}: no such step")))?;
    let tasks = parts.tasks(kind);
    let number = match number {
        Some(number) => number,
        None if tasks == 1 => 1,
        None => return Err(Usage(format!("{name}: which? Give a number, 1 to {tasks}"))),
    };
    if !(1..=tasks).contains(&number) {
        return Err(Usage(format!("{name} {number}: there are 1 to {tasks} of this run")));
    }
    Ok(Step { kind, number })
}

/// Fails when a file that the step reads changed since the run was planned.
fn check(plan: &RunPlan, step: Step) -> anyhow::Result<()> {
    if step.kind == Kind::Scatter {
        for lane in &plan.call.shards[step.number as usize - 1] {
            lane.paths()
                .try_for_each(|path| plan.check(&plan.call.samples.word(lane.sample.into()), path))?;
        }
    }
    let Parts { reference, screen, panel, .. } = &plan.call;
    if let Some(path) = reference
        && matches!(step.kind, Kind::Count | Kind::Pick | Kind::Place | Kind::Finish)
    {
        plan.check("reference", path)?;
    }
    if let Some(panel) = panel
        && step.kind == Kind::Finish
    {
        plan.check("panel", &panel.table)?;
    }
    match screen {
        Some(path) if matches!(step.kind, Kind::Count | Kind::Finish) => plan.check("screen", path),
        _ => Ok(()),
    }
}

/// Whether there is an object of the step that others can use.
fn is_done(plan: &RunPlan, depot: &Depot, step: Step) -> anyhow::Result<bool> {
    match plan.call.done(depot, step) {
        Ok(object) => Ok(object.is_some()),
        Err(error @ (object::Error::Damaged { .. } | object::Error::Foreign { .. })) => {
            warn!("{error}: so it is done now");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Says what is done.
fn tell(plan: &RunPlan, depot: &Depot) -> anyhow::Result<()> {
    let mut text = String::new();
    for kind in Kind::ALL.into_iter().filter(|&kind| kind != Kind::Finish) {
        let objects: Vec<Option<Object>> =
            plan.call.steps(kind).map(|step| plan.call.done(depot, step)).collect::<Result<_, _>>()?;
        let done: Vec<&Object> = objects.iter().flatten().collect();
        // The sum of nothing is less than 0.
        let cpu_s = done.iter().fold(0.0, |sum, object| sum + object.cost().cpu_s);
        let bytes: u64 = done.iter().map(|object| object.bytes()).sum();
        let missing: Vec<String> = (1..)
            .zip(&objects)
            .filter(|(_, object)| object.is_none())
            .map(|(n, _): (u32, _)| n.to_string())
            .collect();
        text += &format!(
            "{:<9} {:>4} of {:<4} {cpu_s:>9.1} CPU s  {:>9}",
            kind.name(),
            done.len(),
            objects.len(),
            sizes::show(bytes)
        );
        text += &if missing.is_empty() || missing.len() == objects.len() {
            "\n".to_owned()
        } else {
            format!("  missing: {}\n", missing.join(" "))
        };
    }
    text += &format!(
        "results   {}\n",
        if plan.out.join(crate::call::outputs::REPORT).exists() {
            plan.out.display().to_string()
        } else {
            "not there yet".into()
        }
    );
    voice::print(text)?;
    Ok(())
}

fn heed_interruption(work: &Path) {
    let work = work.to_path_buf();
    signals::on_interruption(Some(Box::new(move || {
        genuma_work::folder::leave(&work);
        Some("the same command does it again".to_owned())
    })));
}
