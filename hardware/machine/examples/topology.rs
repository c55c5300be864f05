//! Prints the topology of this machine, of a recording, or of a machine that is described:
//!
//!     cargo run -p genuma-machine --example topology
//!     cargo run -p genuma-machine --example topology -- hardware/machine/tests/machines/4-nodes.txt
//!     cargo run -p genuma-machine --example topology -- '8 nodes × 8 cores, 16 GiB'

use std::path::Path;

use genuma_machine::topology::{Error, Recorded, Synthetic, Sysfs};
use genuma_machine::{Source, Topology};

fn topology(of: Option<String>) -> Result<Topology, Error> {
    let source: Box<dyn Source> = match of {
        None => Box::new(Sysfs::new()),
        Some(file) if Path::new(&file).exists() => Box::new(Recorded::open(Path::new(&file))?),
        Some(description) => Box::new(description.parse::<Synthetic>()?),
    };
    source.topology()
}

fn main() -> Result<(), Error> {
    let topology = topology(std::env::args().nth(1))?;
    print!("{}", topology.table());
    println!(
        "memory may be placed on nodes {}, threads on nodes {}",
        topology.memory_nodes(),
        topology.cpu_nodes()
    );
    Ok(())
}
