//! `genuma machine show`: shows the topology of this or another machine.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use genuma_gpu::{DeviceDescription, DeviceKind, DiscoveredDevices};
use genuma_machine::topology::{RecordedMachine, SyntheticMachine, Sysfs};
use genuma_machine::{Topology, TopologySource};
use genuma_work::publish::AtomicFile;
use genuma_work::quantity;
use serde::Serialize;

use crate::json_file::{JsonOutput, schema_numbers};
use crate::{device_list, logging};

/// Show the NUMA nodes, CPUs, caches and memory of a machine.
///
/// Shows CPUs, memory and huge pages of each NUMA node, the distances between nodes, the latency and bandwidth
/// that the firmware reports, and the limits of this process if it may not use the whole machine. The end of the output lists
/// what could not be read, and what was assumed instead. For this machine OpenCL devices are shown too.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    genuma machine show\n  \
    genuma machine show --json | jq '.nodes[].memory'\n  \
    genuma machine show --record server.txt\n  \
    genuma machine show --from server.txt\n  \
    genuma machine show --synthetic '8 nodes x 8 cores, 2 threads, 16 GiB'")]
pub(crate) struct Args {
    /// Print JSON instead of a table; sizes are in bytes
    #[arg(long)]
    json: bool,
    /// Show the machine of a recording that --record wrote, instead of this one
    #[arg(long, value_name = "RECORDING", conflicts_with = "synthetic")]
    from: Option<PathBuf>,
    /// Show the machine that this text describes: '2 nodes x 4 cores, 2 threads, 16 GiB, 1 memory-only node' has 2 NUMA
    /// nodes, each with 4 cores of 2 hardware threads and 16 GiB, and a node without CPUs with as much memory (more in
    /// docs/guide/topology.md)
    #[arg(long, value_name = "TEXT")]
    synthetic: Option<String>,
    /// Also record this machine in a text file; the recording has no names of hosts, users or control groups
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "synthetic"])]
    record: Option<PathBuf>,
}

/// The JSON output: the topology and, for this machine, the OpenCL devices.
#[derive(Debug, Serialize)]
struct TopologyJson {
    #[serde(flatten)]
    topology: Topology,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<DiscoveredDevices>,
}

/// Prints the topology and, with `--record`, writes a recording.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // Recorded first, so that a machine whose files cannot be interpreted still leaves a recording.
    if let Some(path) = &args.record {
        let mut file = AtomicFile::create(path)?;
        file.write_all(RecordedMachine::record_system(&Sysfs::new()).to_text().as_bytes())?;
        file.publish()?;
    }
    let source: Box<dyn TopologySource> = match (&args.from, &args.synthetic) {
        (Some(path), _) => Box::new(RecordedMachine::open(path)?),
        (None, Some(text)) => Box::new(text.parse::<SyntheticMachine>()?),
        (None, None) => Box::new(Sysfs::new()),
    };
    let topology = source.topology()?;
    // The devices of another machine are unknown.
    let found = (args.from.is_none() && args.synthetic.is_none()).then(device_list::list_devices_for_display);
    let text = match args.json {
        true => format!(
            "{}\n",
            serde_json::to_string_pretty(&JsonOutput::with_schema_number(
                schema_numbers::TOPOLOGY_SCHEMA_NUMBER,
                TopologyJson { topology, devices: found }
            ))?
        ),
        false => topology.format_topology() + &found.as_ref().map_or_else(String::new, devices_table),
    };
    logging::print_result(text)
}

/// Formats the OpenCL devices, one in a line, and the reasons why others are missing.
fn devices_table(found: &DiscoveredDevices) -> String {
    let mut text = String::from("\ndevices\n");
    for device in &found.devices {
        text += &format!("  {}\n", format_opencl_device_line(device));
    }
    for missing in &found.missing {
        text += &format!("  {missing}\n");
    }
    text
}

/// Describes an OpenCL device in one line.
pub(crate) fn format_opencl_device_line(device: &DeviceDescription) -> String {
    let DeviceDescription { number, name, kind, driver, global_memory_bytes: memory, compute_units: units, .. } =
        device;
    let kind = match kind {
        DeviceKind::Gpu => "GPU",
        DeviceKind::Accelerator => "accelerator",
        DeviceKind::Cpu => "the CPUs as a device",
        DeviceKind::Other => "device",
    };
    let memory_of = if device.shares_memory { "of the host's memory" } else { "of its own memory" };
    let node = device.numa_node.map_or(String::new(), |node| format!(", on node {node}"));
    let atomics = if device.has_int64_atomics { "" } else { ", no 64-bit atomics: cannot count k-mers" };
    format!(
        "{number}  {name}: {kind}, {units} units, {} {memory_of}{node}{atomics}; {driver}",
        quantity::format_bytes(*memory)
    )
}
