//! `genuma topology`: what this machine, or another, is made of.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use genuma_machine::Source;
use genuma_machine::topology::{Recorded, Synthetic, Sysfs};
use genuma_work::publish::AtomicFile;

use crate::voice;

/// Show the nodes, CPUs, caches and memory of a machine.
///
/// Tells of each NUMA node its CPUs, memory and huge pages, of all nodes their distances and what firmware says of
/// latency and bandwidth, and what this process may use when that is less than there is. What could not be read is
/// listed at the end, with what was assumed instead.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    genuma topology\n  \
    genuma topology --json | jq '.nodes[].memory'\n  \
    genuma topology --record server.txt\n  \
    genuma topology --from server.txt\n  \
    genuma topology --synthetic '8 nodes x 8 cores, 2 threads, 16 GiB'")]
pub struct Args {
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

/// Prints the topology on stdout.
pub fn run(args: &Args) -> anyhow::Result<()> {
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
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string_pretty(&topology)?),
        false => topology.table(),
    };
    voice::print(text)
}
