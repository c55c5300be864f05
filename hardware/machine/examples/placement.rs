//! Places memory under each policy and a thread on each CPU, and prints where the kernel says they are:
//!
//!     cargo run -p genuma-machine --example placement

use genuma_machine::placement::{
    Error, Pages, Placed, Placement, Policy, Replicated, Scoped, pin, residence_of,
};
use genuma_machine::topology::Sysfs;
use genuma_machine::{IdSet, Source};

/// Elements of a table of 64 MiB.
const LEN: usize = 8 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes = Sysfs::new().topology()?.memory_nodes();
    tables(&nodes)?;
    copies(&nodes)?;
    foreign_memory(&nodes)?;
    threads()?;
    Ok(())
}

/// Memory of our own.
fn tables(nodes: &IdSet) -> Result<(), Error> {
    let policies = [
        Policy::Local,
        Policy::Bind(nodes.iter().take(1).collect()),
        Policy::Interleave(nodes.clone()),
        Policy::Weighted(nodes.iter().zip([3, 1].into_iter().cycle()).collect()),
        Policy::KernelWeighted(nodes.clone()),
        Policy::PreferredMany(nodes.clone()),
    ];
    for policy in policies {
        for pages in [Pages::Base, Pages::Transparent] {
            let table: Placed<u64> = Placed::zeroed(LEN, &Placement { policy: policy.clone(), pages })?;
            println!("{}; really {}", table.verify()?, table.placement());
        }
    }
    Ok(())
}

/// A copy of a table per node: a reader gets its own node's.
fn copies(nodes: &IdSet) -> Result<(), Error> {
    let table: Vec<u32> = (0..1 << 20).collect();
    let copies = Replicated::of_slice(&table, nodes, Pages::Transparent)?;
    for (_, copy) in copies.iter() {
        println!("copy: {}", copy.verify()?);
    }
    println!("the nearest to this thread ends with {:?}", copies.local().last());
    Ok(())
}

/// Memory that somebody else's code allocates.
fn foreign_memory(nodes: &IdSet) -> Result<(), Error> {
    let spread = Scoped::new(&Policy::Interleave(nodes.clone()))?;
    let index = vec![1_u8; 64 << 20];
    println!("foreign memory under {}: {}", spread.policy(), residence_of(&index)?);
    Ok(())
}

/// This thread on each CPU in turn.
fn threads() -> Result<(), Error> {
    for cpu in pin::allowed().iter() {
        let _pinned = pin::to_cpu(cpu)?;
        let pin::Here { cpu: on, node } = pin::here();
        println!("asked for CPU {cpu}: on CPU {on} of node {node}");
    }
    Ok(())
}
