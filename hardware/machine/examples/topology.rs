//! Prints the topology of this machine, of a recording, or of a machine that is described:
//!
//!     cargo run -p genuma-machine --example topology
//!     cargo run -p genuma-machine --example topology -- hardware/machine/tests/machines/4-nodes.txt
//!     cargo run -p genuma-machine --example topology -- '8 nodes × 8 cores, 16 GiB'

use std::path::Path;

use genuma_machine::topology::{Error, RecordedMachine, SyntheticMachine, Sysfs};
use genuma_machine::{Topology, TopologySource};

fn topology(of: Option<String>) -> Result<Topology, Error> {
    let source: Box<dyn TopologySource> = match of {
        None => Box::new(Sysfs::new()),
        Some(file) if Path::new(&file).exists() => Box::new(RecordedMachine::open(Path::new(&file))?),
        Some(description) => Box::new(description.parse::<SyntheticMachine>()?),
    };
    source.topology()
}

fn main() -> Result<(), Error> {
    let topology = topology(std::env::args().nth(1))?;
    print!("{}", topology.format_topology());
    println!(
        "memory may be placed on nodes {}, threads on nodes {}",
        topology.allowed_memory_nodes(),
        topology.allowed_cpu_nodes()
    );
    Ok(())
}
