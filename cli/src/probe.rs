//! `genuma probe`: what this machine's memory does, measured.

mod summary;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::Args as ClapArgs;
use genuma_gpu::{Device, Trial, rates};
use genuma_machine::topology::{Source, Sysfs};
use genuma_probe::measure::{Machine, measure};
use genuma_probe::native::Native;
use genuma_probe::placement::{Outcome, check};
use genuma_probe::plan::{Plan, Wish};
use genuma_probe::profile::DeviceProfile;
use genuma_probe::{MachineProfile, dmi};
use genuma_work::publish::{AtomicFile, Set};
use tracing::info;

use crate::progress::Steps;
use crate::{report, voice};

/// Measure this machine's memory: latency, bandwidth, contention.
///
/// Measures the latency of caches and of each node's memory from each node's CPUs, the bandwidth of each of these
/// pairs and of memory spread over the nodes, latency under load, and what is left to each thread when many use one
/// memory. Threads are pinned and the kernel is asked where the buffers are. Other programs disturb the numbers:
/// their spread tells how much. Devices that OpenCL drives are measured at the end: copies to and from them, and
/// changes at random places of their memory.
///
/// Writes into the output folder, when all is done:
///   machine.json   every number with unit, repetitions, median and spread
///   machine.html   the same drawn, with a word on what it means: open it in a browser
///
/// Where nothing else runs the whole takes a minute on a small machine and up to ten on a large one, and --quick under a
/// minute where there are few nodes; how long is said at the start. What cannot be measured or read here is said, too.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    genuma probe --quick\n  \
    genuma probe -o server7\n  \
    genuma probe --from server7/machine.json -o server7\n  \
    genuma probe --placement\n\n\
    Exit code of --placement: 1 when the kernel takes a wish and something is elsewhere all the same.")]
pub(crate) struct Args {
    /// Measure less: fewer sizes, kernels and repetitions
    #[arg(long)]
    quick: bool,
    /// Folder for the results; made when missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Do not measure: draw the page of an earlier machine.json
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    from: Option<PathBuf>,
    /// Do not measure: ask for memory and threads in every way there is, and show where they came to be
    #[arg(long, conflicts_with_all = ["quick", "from", "out"])]
    placement: bool,
    /// Print JSON instead of a summary
    #[arg(long)]
    json: bool,
}

/// Measures, draws or checks, and prints on stdout what came out.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.placement {
        return placement(args.json);
    }
    let profile = match &args.from {
        Some(path) => MachineProfile::load(path)?,
        None => measured(args.quick)?,
    };
    write(&profile, &args.out, args.from.is_none())?;
    let mut text = Vec::new();
    match args.json {
        true => profile.write(&mut text)?,
        false => write!(text, "{}", summary::summary(&profile))?,
    }
    voice::print(text)
}

/// Measures this machine.
fn measured(quick: bool) -> anyhow::Result<MachineProfile> {
    let topology = Sysfs::new().topology()?;
    let plan = Plan::new(&topology, &if quick { Wish::quick() } else { Wish::full() })?;
    info!(
        "measuring takes about {:.0} s where nothing else runs; other programs make it longer and its numbers worse",
        plan.expected_s().max(1.0)
    );
    let machine = Machine {
        theory: dmi::read(Path::new(dmi::TABLE)),
        host: std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned()),
        now: SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()),
        topology: topology.clone(),
    };
    let steps = Steps::start(plan.expected_s());
    let mut native = Native::new(&topology);
    let watch = &mut |progress: &genuma_probe::measure::Progress| steps.at(progress.done_s, &progress.job);
    let mut profile = measure(machine, &plan, &mut native, watch)?;
    let (devices, missing) = devices();
    profile.devices = devices;
    profile.missing.extend(missing);
    Ok(profile)
}

/// Devices that OpenCL drives, measured, and what is wrong with those that cannot be.
fn devices() -> (Vec<DeviceProfile>, Vec<String>) {
    let found = genuma_gpu::find();
    let (mut devices, mut missing) = (Vec::new(), found.missing);
    for described in &found.devices {
        let opened = Device::open(described, &Trial::default());
        match opened.and_then(|parts| parts.iter().map(rates).collect::<Result<Vec<_>, _>>()) {
            Ok(measured) => devices.extend(measured.into_iter().map(|rates| DeviceProfile {
                name: described.name.clone(),
                kind: format!("{:?}", described.kind).to_lowercase(),
                driver: described.driver.clone(),
                memory: described.memory,
                node: described.node,
                to_gbs: rates.to_gbs,
                from_gbs: rates.from_gbs,
                random_mops: rates.random_mops,
            })),
            Err(error) => missing.push(error.to_string()),
        }
    }
    (devices, missing)
}

/// Writes the page, and the profile if it is new.
fn write(profile: &MachineProfile, folder: &Path, new: bool) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    let mut set = Set::default();
    let mut page = AtomicFile::create(folder.join("machine.html"))?;
    page.write_all(report::machine::render(profile).as_bytes())?;
    set.add(page.complete()?);
    if new {
        let mut json = AtomicFile::create(folder.join("machine.json"))?;
        profile.write(&mut json)?;
        set.add(json.complete()?);
    }
    set.publish()?;
    info!("{} is written", folder.join("machine.html").display());
    Ok(())
}

/// Asks for memory and threads in every way and shows where they came to be.
fn placement(json: bool) -> anyhow::Result<()> {
    let report = check(&Sysfs::new().topology()?);
    let text =
        if json { format!("{}\n", serde_json::to_string_pretty(&report)?) } else { report.to_string() };
    voice::print(text)?;
    match report.count(Outcome::Elsewhere) {
        0 => Ok(()),
        1 => anyhow::bail!("one ask came out elsewhere: placement does not work here"),
        n => anyhow::bail!("{n} asks came out elsewhere: placement does not work here"),
    }
}
