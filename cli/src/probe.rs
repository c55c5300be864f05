//! `genuma machine measure`: measures the memory of this machine.

mod machine_load;
mod summary;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::Args as ClapArgs;
use genuma_gpu::{Device, DeviceTestSettings, measure_device_rates};
use genuma_machine::topology::{Sysfs, TopologySource};
use genuma_probe::local_machine::LocalMachine;
use genuma_probe::measure::{UnmeasuredMachineFacts, measure_profile};
use genuma_probe::placement_check::{PlacementOutcome, check_memory_and_thread_placement};
use genuma_probe::plan::{MeasurementPlan, PlanOptions};
use genuma_probe::profile::DeviceProfile;
use genuma_probe::{MachineProfile, smbios};
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use tracing::{info, warn};

use crate::device_list;
use crate::json_file::{JsonOutput, schema_numbers};
use crate::logging;
use crate::progress::MeasurementProgressDisplay;
use genuma_report as report;
use machine_load::CpuPressureMeter;

/// Measure this machine's memory: latency, bandwidth, contention.
///
/// The results describe how fast each NUMA node reaches the memory of each other node. `genuma align`
/// and `genuma machine advise` (--machine), and `genuma run` (environment variable GENUMA_MACHINE), use
/// them to choose where threads and memory are placed.
///
/// Measures the latency of the caches, the latency and bandwidth of each node's memory from each node's
/// CPUs, the bandwidth of memory interleaved over the nodes, the latency while other threads use the
/// memory, and the bandwidth of each thread when many threads use one node's memory (contention).
/// Threads are pinned to CPUs, and the kernel is asked to put the buffers on given nodes. OpenCL
/// devices are measured last: copies to and from them, and updates at random addresses of their memory.
/// Other programs disturb the measurements: on a machine that is in use nothing is measured unless
/// --force is given.
///
/// Writes into the output folder, when all is done:
///   machine.json   all measurements with unit, repetitions, median and spread
///   machine.html   the same as charts with explanations: open it in a browser
///
/// On an idle machine this takes one minute (small machine) to ten minutes (large machine), and with
/// --quick less than a minute if there are few nodes. The expected time is shown at the start. What
/// cannot be measured or read on this machine is listed at the end.
#[derive(Debug, ClapArgs)]
#[command(
    about = "Measure this machine's memory: latency, bandwidth, contention",
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    genuma machine measure --quick\n  \
    genuma machine measure -o server7\n  \
    genuma machine measure --from server7/machine.json -o server7\n  \
    genuma machine measure --placement\n\n\
    Exit code of --placement: 1 if the kernel accepts a request but places memory or threads elsewhere."
)]
pub(crate) struct Args {
    /// Measure less, which is faster: fewer buffer sizes, kinds of access and repetitions
    #[arg(long)]
    quick: bool,
    /// Folder for the results; it is created if missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Do not measure: write machine.html from the machine.json of an earlier run
    #[arg(long, value_name = "FILE", conflicts_with = "quick")]
    from: Option<PathBuf>,
    /// Do not measure: test whether memory and threads can be placed on this machine. Tries each memory
    /// policy and each CPU, and shows on which NUMA nodes and CPUs the kernel put memory and threads
    #[arg(long, conflicts_with_all = ["quick", "from", "out"])]
    placement: bool,
    /// Measure although other programs use the machine. The profile then notes this: `genuma machine advise` refuses it
    /// without --force, and `genuma align` and `genuma run` use it with a warning
    #[arg(long, conflicts_with_all = ["from", "placement"])]
    force: bool,
    /// Print JSON instead of a summary
    #[arg(long)]
    json: bool,
}

/// Measures the machine or loads an earlier profile, writes the files and prints the result. With `--placement` it only
/// checks the placement and prints the result.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.placement {
        return print_placement_check(args.json);
    }
    let profile = match &args.from {
        Some(path) => MachineProfile::read_file(path)?,
        None => measure_machine(args.quick, args.force)?,
    };
    write_results(&profile, &args.out, args.from.is_none())?;
    let mut text = Vec::new();
    match args.json {
        true => profile.write_json(&mut text)?,
        false => write!(text, "{}", summary::format_profile_summary(&profile))?,
    }
    logging::print_result(text)
}

/// Measures this machine.
///
/// # Errors
/// Other programs use the machine and `force` is not set; or the machine cannot be measured.
fn measure_machine(quick: bool, force: bool) -> anyhow::Result<MachineProfile> {
    let topology = Sysfs::new().topology()?;
    let load = machine_load::describe_current_load(Path::new("/"), topology.cpus.len());
    match &load {
        Some(load) if force => warn!(
            "other programs use the machine ({load}): latencies will be too high and bandwidths too low. The profile \
             notes this: `genuma machine advise` accepts it only with --force, and `genuma align` and `genuma run` \
             warn. Measure again when the machine is idle"
        ),
        Some(load) => bail!(
            "other programs use the machine ({load}), so its memory cannot be measured: wait until it is idle, or give --force"
        ),
        None => {}
    }
    let plan =
        MeasurementPlan::new(&topology, &if quick { PlanOptions::quick_plan() } else { PlanOptions::full_plan() })?;
    info!(
        "measuring takes about {:.0} s on an idle machine; other programs make it slower and less accurate",
        plan.expected_s().max(1.0)
    );
    let machine = UnmeasuredMachineFacts {
        theory: smbios::read_theoretical_bandwidth(Path::new(smbios::SMBIOS_TABLE_PATH)),
        host: std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned()),
        unix_time_s: SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs()),
        topology: topology.clone(),
    };
    let steps = MeasurementProgressDisplay::start(plan.expected_s());
    let mut native = LocalMachine::new(&topology);
    let watch = &mut |progress: &genuma_probe::measure::MeasurementProgress| {
        steps.show_measurement_step(progress.done_s, &progress.next_job)
    };
    let pressure = CpuPressureMeter::start();
    let mut profile = measure_profile(machine, &plan, &mut native, watch)?;
    profile.load = load.or_else(|| {
        let load = pressure.describe_load_since_start()?;
        warn!(
            "other programs used the machine during the measurement ({load}), so latencies may be too high and \
             bandwidths too low. The profile notes this, and `genuma machine advise` accepts it only with --force: \
             measure again when the machine is idle"
        );
        Some(load)
    });
    let (devices, missing) = measure_devices();
    profile.devices = devices;
    profile.missing.extend(missing);
    Ok(profile)
}

/// Measures the OpenCL devices. Also returns the reasons why devices could not be measured.
fn measure_devices() -> (Vec<DeviceProfile>, Vec<String>) {
    let found = device_list::find_devices_if_child_lists_any();
    let (mut devices, mut missing) = (Vec::new(), found.missing);
    for described in &found.devices {
        let opened = Device::open_whole_or_in_parts(described, &DeviceTestSettings::default());
        match opened.and_then(|parts| parts.iter().map(measure_device_rates).collect::<Result<Vec<_>, _>>()) {
            Ok(measured) => devices.extend(measured.into_iter().map(|rates| DeviceProfile {
                name: described.name.clone(),
                kind: format!("{:?}", described.kind).to_lowercase(),
                driver: described.driver.clone(),
                memory_bytes: described.global_memory_bytes,
                numa_node: described.numa_node,
                copy_to_device_gbs: rates.copy_to_device_gbs,
                copy_from_device_gbs: rates.copy_from_device_gbs,
                atomic_updates_mops: rates.atomic_updates_mops,
            })),
            Err(error) => missing.push(error.to_string()),
        }
    }
    (devices, missing)
}

/// Writes machine.html into `folder` and, if the profile is `new` (not loaded from a file), machine.json.
fn write_results(profile: &MachineProfile, folder: &Path, new: bool) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    let mut set = AtomicFileSet::default();
    let mut page = AtomicFile::create(folder.join("machine.html"))?;
    page.write_all(report::machine::render_page(profile).as_bytes())?;
    set.add_file(page.flush_to_partial_file()?);
    if new {
        let mut json = AtomicFile::create(folder.join("machine.json"))?;
        profile.write_json(&mut json)?;
        set.add_file(json.flush_to_partial_file()?);
    }
    set.publish_all()?;
    info!("wrote {}", folder.join("machine.html").display());
    Ok(())
}

/// Requests memory and threads with each memory policy and on each CPU, and prints on which nodes and CPUs the kernel
/// put them. Fails if the kernel put some of them elsewhere than requested.
fn print_placement_check(json: bool) -> anyhow::Result<()> {
    let report = check_memory_and_thread_placement(&Sysfs::new().topology()?);
    let text = if json {
        format!(
            "{}\n",
            serde_json::to_string_pretty(&JsonOutput::with_schema_number(
                schema_numbers::PLACEMENT_CHECK_SCHEMA_NUMBER,
                &report
            ))?
        )
    } else {
        report.to_string()
    };
    logging::print_result(text)?;
    match report.count_rows_with_outcome(PlacementOutcome::Elsewhere) {
        0 => Ok(()),
        1 => anyhow::bail!("one request was placed elsewhere: memory placement does not work on this machine"),
        n => anyhow::bail!("{n} requests were placed elsewhere: memory placement does not work on this machine"),
    }
}
