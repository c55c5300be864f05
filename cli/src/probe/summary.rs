//! Formats a machine profile as a few lines.

use std::fmt::Write;

use genuma_machine::Topology;
use genuma_probe::MachineProfile;
use genuma_probe::profile::{BandwidthKernel, BandwidthMeasurement, BufferPageKind, Measurement, MemoryLocation};

use genuma_report::machine::describe_load_warning;

/// Formats the main measurements with their units, and what could not be measured.
pub(crate) fn format_profile_summary(profile: &MachineProfile) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_lines(&mut text, profile);
    text
}

fn write_lines(text: &mut String, profile: &MachineProfile) -> std::fmt::Result {
    let Topology { nodes, cpus, processor, .. } = &profile.topology;
    let processor = processor.as_deref().unwrap_or("unknown processor");
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    let (n, c) = (nodes.len(), cpus.len());
    writeln!(text, "{processor}: {n} node{}, {c} CPU{}", plural(n), plural(c))?;
    if let Some(load) = &profile.load {
        writeln!(text, "warning     {}", describe_load_warning(load))?;
    }
    match profile.theory.peak_gbs {
        Some(peak) => {
            let channels = profile.theory.channels.unwrap_or(0);
            writeln!(text, "theory      {peak:.1} GB/s over {channels} channels")?;
        }
        None => writeln!(text, "theory      unknown")?,
    }
    write_latency_lines(text, profile)?;
    write_bandwidth_lines(text, profile)?;
    for curve in &profile.loaded {
        if let Some(last) = curve.points.last()
            && let Some(injected) = last.injected
        {
            writeln!(
                text,
                "under load  node {} to memory {}: {} with {:.1} GB/s of other traffic",
                curve.cpu_node,
                curve.memory_node,
                describe_measurement(&last.latency),
                injected.median
            )?;
        }
    }
    for device in &profile.devices {
        let node = device.numa_node.map_or(String::new(), |node| format!(", on node {node}"));
        writeln!(
            text,
            "device      {}{node}: {:.1} GB/s to it, {:.1} GB/s from it, {:.0} M random changes/s",
            device.name, device.copy_to_device_gbs, device.copy_from_device_gbs, device.atomic_updates_mops
        )?;
    }
    let effort = &profile.effort;
    writeln!(text, "took        {:.0} s, {:.0} s were expected", effort.took_s, effort.expected_s)?;
    let missing = profile.missing.iter().map(|what| format!("missing     {what}\n"));
    text.extend(missing);
    Ok(())
}

fn write_latency_lines(text: &mut String, profile: &MachineProfile) -> std::fmt::Result {
    for level in &profile.latency.memory_levels {
        let size = level.cache_bytes.map_or(String::new(), |bytes| format!(" of {} KiB", bytes >> 10));
        writeln!(text, "latency     {}{size}: {}", level.name, describe_measurement(&level.latency))?;
    }
    for pair in &profile.latency.node_pairs {
        let pages = if pair.pages == BufferPageKind::Base { "base" } else { "huge" };
        let (from, to) = (pair.cpu_node, pair.memory_node);
        writeln!(
            text,
            "latency     node {from} to memory {to}, {pages} pages: {}",
            describe_measurement(&pair.latency)
        )?;
    }
    Ok(())
}

fn write_bandwidth_lines(text: &mut String, profile: &MachineProfile) -> std::fmt::Result {
    let cpu_nodes = profile.topology.allowed_cpu_nodes();
    let memory_nodes = profile.topology.allowed_memory_nodes();
    for (from, to) in cpu_nodes.iter().flat_map(|from| memory_nodes.iter().map(move |to| (from, to))) {
        for kernel in [BandwidthKernel::Triad, BandwidthKernel::Read, BandwidthKernel::Random] {
            if let Some(found) = profile.bandwidth_between(kernel, from, to) {
                writeln!(text, "bandwidth   node {from} to memory {to}, {}", describe_bandwidth(found))?;
            }
        }
    }
    for found in profile.bandwidth.iter().filter(|found| found.cpu_node.is_none()) {
        let place = match &found.memory {
            MemoryLocation::Node(node) => format!("memory {node}"),
            MemoryLocation::Interleaved(nodes) => format!("interleaved over {nodes}"),
            MemoryLocation::Weighted(_) => "weighted".to_owned(),
            MemoryLocation::Local => "each thread its local memory".to_owned(),
        };
        writeln!(text, "bandwidth   all nodes, {place}, {}", describe_bandwidth(found))?;
    }
    Ok(())
}

fn describe_bandwidth(bandwidth: &BandwidthMeasurement) -> String {
    let kernel = format!("{:?}", bandwidth.kernel).to_lowercase();
    format!("{kernel}, {} threads: {}", bandwidth.threads, describe_measurement(&bandwidth.total))
}

/// Formats a median with its range, such as `103.2 ns (median of 5, 101.0 to 110.9)`.
fn describe_measurement(measured: &Measurement) -> String {
    let unit = match measured.unit {
        genuma_probe::profile::MeasurementUnit::Nanoseconds => "ns",
        genuma_probe::profile::MeasurementUnit::GigabytesPerSecond => "GB/s",
    };
    let Measurement { median, min, max, repetitions, .. } = measured;
    format!("{median:.1} {unit} (median of {repetitions}, {min:.1} to {max:.1})")
}
