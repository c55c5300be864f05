//! A profile in a few lines.

use std::fmt::Write;

use genuma_machine::Topology;
use genuma_probe::MachineProfile;
use genuma_probe::profile::{Bandwidth, Kernel, Measured, PageKind, Spot};

/// The key numbers with their units, and what is missing.
pub(crate) fn summary(profile: &MachineProfile) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = lines(&mut text, profile);
    text
}

fn lines(text: &mut String, profile: &MachineProfile) -> std::fmt::Result {
    let Topology { nodes, cpus, processor, .. } = &profile.topology;
    let processor = processor.as_deref().unwrap_or("unknown processor");
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    let (n, c) = (nodes.len(), cpus.len());
    writeln!(text, "{processor}: {n} node{}, {c} CPU{}", plural(n), plural(c))?;
    match profile.theory.peak_gbs {
        Some(peak) => {
            let channels = profile.theory.channels.unwrap_or(0);
            writeln!(text, "theory      {peak:.1} GB/s over {channels} channels")?;
        }
        None => writeln!(text, "theory      unknown")?,
    }
    for level in &profile.latency.levels {
        let size = level.cache_bytes.map_or(String::new(), |bytes| format!(" of {} KiB", bytes >> 10));
        writeln!(text, "latency     {}{size}: {}", level.name, spread(&level.latency))?;
    }
    for pair in &profile.latency.pairs {
        let pages = if pair.pages == PageKind::Base { "base" } else { "huge" };
        let (from, to) = (pair.cpu_node, pair.memory_node);
        writeln!(text, "latency     node {from} to memory {to}, {pages} pages: {}", spread(&pair.latency))?;
    }
    let cpu_nodes = profile.topology.cpu_nodes();
    let memory_nodes = profile.topology.memory_nodes();
    for (from, to) in cpu_nodes.iter().flat_map(|from| memory_nodes.iter().map(move |to| (from, to))) {
        for kernel in [Kernel::Triad, Kernel::Read, Kernel::Random] {
            if let Some(found) = profile.bandwidth_between(kernel, from, to) {
                writeln!(text, "bandwidth   node {from} to memory {to}, {}", rate(found))?;
            }
        }
    }
    for found in profile.bandwidth.iter().filter(|found| found.cpu_node.is_none()) {
        let place = match &found.memory {
            Spot::Node(node) => format!("memory {node}"),
            Spot::Interleaved(nodes) => format!("interleaved over {nodes}"),
            Spot::Weighted(_) => "weighted".to_owned(),
            Spot::Local => "each its own".to_owned(),
        };
        writeln!(text, "bandwidth   all nodes, {place}, {}", rate(found))?;
    }
    for curve in &profile.loaded {
        if let Some(last) = curve.points.last()
            && let Some(injected) = last.injected
        {
            writeln!(
                text,
                "under load  node {} to memory {}: {} at {:.1} GB/s of others",
                curve.cpu_node,
                curve.memory_node,
                spread(&last.latency),
                injected.median
            )?;
        }
    }
    for device in &profile.devices {
        let node = device.node.map_or(String::new(), |node| format!(", on node {node}"));
        writeln!(
            text,
            "device      {}{node}: {:.1} GB/s to it, {:.1} GB/s from it, {:.0} M random changes/s",
            device.name, device.to_gbs, device.from_gbs, device.random_mops
        )?;
    }
    let effort = &profile.effort;
    writeln!(text, "took        {:.0} s, {:.0} s were expected", effort.took_s, effort.expected_s)?;
    let missing = profile.missing.iter().map(|what| format!("missing     {what}\n"));
    text.extend(missing);
    Ok(())
}

fn rate(found: &Bandwidth) -> String {
    let kernel = format!("{:?}", found.kernel).to_lowercase();
    format!("{kernel}, {} threads: {}", found.threads, spread(&found.total))
}

/// `103.2 ns (median of 5, 101.0 to 110.9)`.
fn spread(measured: &Measured) -> String {
    let unit = match measured.unit {
        genuma_probe::profile::Unit::Nanoseconds => "ns",
        genuma_probe::profile::Unit::GigabytesPerSecond => "GB/s",
    };
    let Measured { median, min, max, repetitions, .. } = measured;
    format!("{median:.1} {unit} (median of {repetitions}, {min:.1} to {max:.1})")
}
