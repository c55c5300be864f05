//! Places memory under each policy and a thread on each CPU, and prints where the kernel says they are:
//!
//!     cargo run -p genuma-machine --example placement

use genuma_machine::placement::{
    Error, MemoryPlacement, MemoryPolicy, PageSize, PlacedSlice, ReplicatedPerNode, ScopedMemoryPolicy, pin,
    query_slice_residence,
};
use genuma_machine::topology::Sysfs;
use genuma_machine::{IdSet, TopologySource};

/// Elements of a table of 64 MiB.
const LEN: usize = 8 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nodes = Sysfs::new().topology()?.allowed_memory_nodes();
    tables(&nodes)?;
    copies(&nodes)?;
    foreign_memory(&nodes)?;
    threads()?;
    Ok(())
}

/// Memory of our own.
fn tables(nodes: &IdSet) -> Result<(), Error> {
    let policies = [
        MemoryPolicy::Local,
        MemoryPolicy::Bind(nodes.iter().take(1).collect()),
        MemoryPolicy::Interleave(nodes.clone()),
        MemoryPolicy::Weighted(nodes.iter().zip([3, 1].into_iter().cycle()).collect()),
        MemoryPolicy::KernelWeighted(nodes.clone()),
        MemoryPolicy::PreferredMany(nodes.clone()),
    ];
    for policy in policies {
        for pages in [PageSize::Base, PageSize::Transparent] {
            let table: PlacedSlice<u64> =
                PlacedSlice::new_zeroed(LEN, &MemoryPlacement { policy: policy.clone(), page_size: pages })?;
            println!("{}; really {}", table.verify_placement()?, table.applied_placement());
        }
    }
    Ok(())
}

/// A copy of a table per node: a reader gets its own node's.
fn copies(nodes: &IdSet) -> Result<(), Error> {
    let table: Vec<u32> = (0..1 << 20).collect();
    let copies = ReplicatedPerNode::from_slice(&table, nodes, PageSize::Transparent)?;
    for (_, copy) in copies.iter_copies() {
        println!("copy: {}", copy.verify_placement()?);
    }
    println!("the nearest to this thread ends with {:?}", copies.nearest_copy().last());
    Ok(())
}

/// Memory that somebody else's code allocates.
fn foreign_memory(nodes: &IdSet) -> Result<(), Error> {
    let spread = ScopedMemoryPolicy::set_thread_policy(&MemoryPolicy::Interleave(nodes.clone()))?;
    let index = vec![1_u8; 64 << 20];
    println!("foreign memory under {}: {}", spread.applied_policy(), query_slice_residence(&index)?);
    Ok(())
}

/// This thread on each CPU in turn.
fn threads() -> Result<(), Error> {
    for cpu in pin::allowed_cpus().iter() {
        let _pinned = pin::pin_to_cpu(cpu)?;
        let pin::ThreadLocation { cpu: on, node } = pin::current_location();
        println!("asked for CPU {cpu}: on CPU {on} of node {node}");
    }
    Ok(())
}
