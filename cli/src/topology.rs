//! `genuma topology`: what this machine, or another, is made of.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use genuma_gpu::{Described, Found, Kind};
use genuma_machine::topology::{Recorded, Synthetic, Sysfs};
use genuma_machine::{Source, Topology};
use genuma_work::publish::AtomicFile;
use serde::Serialize;

use crate::{sizes, voice};

/// Show the nodes, CPUs, caches and memory of a machine.
///
/// Tells of each NUMA node its CPUs, memory and huge pages, of all nodes their distances and what firmware says of
/// latency and bandwidth, and what this process may use when that is less than there is. What could not be read is
/// listed at the end, with what was assumed instead. Of this machine the devices that OpenCL drives are shown as well.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    genuma topology\n  \
    genuma topology --json | jq '.nodes[].memory'\n  \
    genuma topology --record server.txt\n  \
    genuma topology --from server.txt\n  \
    genuma topology --synthetic '8 nodes x 8 cores, 2 threads, 16 GiB'")]
pub(crate) struct Args {
    /// Print JSON instead of a table; sizes are in bytes
    #[arg(long)]
    json: bool,
    /// Show the machine of a recording instead of this one
    #[arg(long, value_name = "RECORDING", conflicts_with = "synthetic")]
    from: Option<PathBuf>,
    /// Show a machine that is described, such as '2 nodes x 4 cores, 2 threads, 16 GiB, 1 memory-only node'
    #[arg(long, value_name = "TEXT")]
    synthetic: Option<String>,
    /// Record this machine in a text file, too; no names of hosts, users or control groups go into it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "synthetic"])]
    record: Option<PathBuf>,
}

/// What is shown as JSON.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    topology: Topology,
    #[serde(skip_serializing_if = "Option::is_none")]
    devices: Option<Found>,
}

/// Prints the topology on stdout.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // First, so that a machine that cannot be understood leaves a recording all the same.
    if let Some(path) = &args.record {
        let mut file = AtomicFile::create(path)?;
        file.write_all(Recorded::of(&Sysfs::new()).to_text().as_bytes())?;
        file.finish()?;
    }
    let source: Box<dyn Source> = match (&args.from, &args.synthetic) {
        (Some(path), _) => Box::new(Recorded::open(path)?),
        (None, Some(text)) => Box::new(text.parse::<Synthetic>()?),
        (None, None) => Box::new(Sysfs::new()),
    };
    let topology = source.topology()?;
    // Of another machine nobody can say.
    let found = (args.from.is_none() && args.synthetic.is_none()).then(genuma_gpu::find);
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&Shown { topology, devices: found })?),
        false => topology.table() + &found.as_ref().map_or_else(String::new, table),
    };
    voice::print(text)
}

/// Devices under each other, and what is missing.
fn table(found: &Found) -> String {
    let mut text = String::from("\ndevices\n");
    for device in &found.devices {
        text += &format!("  {}\n", line(device));
    }
    for missing in &found.missing {
        text += &format!("  {missing}\n");
    }
    text
}

/// A device in a line.
pub(crate) fn line(device: &Described) -> String {
    let Described { number, name, kind, driver, memory, units, .. } = device;
    let kind = match kind {
        Kind::Gpu => "GPU",
        Kind::Accelerator => "accelerator",
        Kind::Cpu => "the CPUs as a device",
        Kind::Other => "device",
    };
    let memory_of = if device.shares_memory { "of the host's memory" } else { "of its own memory" };
    let node = device.node.map_or(String::new(), |node| format!(", on node {node}"));
    let atomics = if device.atomics { "" } else { ", no 64-bit atomics: cannot count" };
    format!(
        "{number}  {name}: {kind}, {units} units, {} {memory_of}{node}{atomics}; {driver}",
        sizes::show(*memory)
    )
}
