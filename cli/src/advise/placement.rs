//! Placement of the advised strategy: the nodes that `--nodes` chooses, and command lines for use without genuma.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context;
use genuma_machine::topology::{Sysfs, TopologySource};
use genuma_machine::{IdSet, Topology};
use genuma_probe::MachineProfile;
use genuma_strategy::advisor::Advice;
use genuma_strategy::invocation::{OutputFormat, ReadInputMode};
use genuma_strategy::known_cases::{AdvisedPlacement, find_matching_cases};
use genuma_strategy::launch_commands::LaunchCommands;
use genuma_strategy::model::MachineModel;
use genuma_strategy::node_subset::{NodeSubset, choose_node_subset};
use genuma_strategy::{CpuSlot, InstanceMemoryPolicy, Invocation, Strategy, cpu_layout};
use genuma_work::publish::AtomicFileSet;

use super::Args;
use crate::errors::UsageError;
use crate::{command_line, external_aligner, json_file, logging, machine_profile};
use genuma_report::advice::{AdvisedRun, PlacementAdvice, placement_text};

/// Stands for the program in command lines if no command is given.
const COMMAND_PLACEHOLDER: &str = "COMMAND";
/// Device type of GPUs in a machine profile.
const GPU_KIND: &str = "gpu";

/// Chooses `count` of the nodes that this process may use, according to the profile, or to the distances that the
/// firmware reports if there is none.
///
/// # Errors
/// There are fewer nodes, or the profile is incomplete.
pub(super) fn choose_nodes(
    count: u32,
    topology: &Topology,
    profile: Option<&MachineProfile>,
) -> anyhow::Result<NodeSubset> {
    let machine = machine_model(topology, profile)?.context(
        "this process may use no NUMA node that has both CPUs and memory: there are no nodes to choose from",
    )?;
    Ok(choose_node_subset(&machine, count as usize).map_err(|error| UsageError(format!("--nodes: {error}")))?)
}

/// Builds the model of the nodes that `topology` allows; `None` if no node has both CPUs and memory.
///
/// # Errors
/// The profile is incomplete.
pub(super) fn machine_model(
    topology: &Topology,
    profile: Option<&MachineProfile>,
) -> anyhow::Result<Option<MachineModel>> {
    let Some(profile) = profile else { return Ok(MachineModel::from_topology(topology)) };
    let usable = topology.allowed_cpu_nodes().intersection(&topology.allowed_memory_nodes());
    let restricted = MachineProfile { topology: profile.topology.restricted_to_nodes(&usable), ..profile.clone() };
    Ok(Some(MachineModel::from_profile(&restricted)?))
}

/// Describes the placement of the advised strategy. `topology` is restricted to the nodes of `nodes`, if they were
/// chosen. `has_reads_option` says whether the reads are named by `--reads` and not in the command.
///
/// # Errors
/// The strategy is not possible on this machine.
pub(super) fn describe_placement(
    case: &AdvisedRun,
    advice: &Advice,
    invocation: &Invocation,
    topology: &Topology,
    nodes: Option<NodeSubset>,
    profile: Option<&MachineProfile>,
    has_reads_option: bool,
) -> anyhow::Result<PlacementAdvice> {
    let cpu_slots = cpu_layout::assign_cpu_slots(&advice.strategy, topology, case.threads)?;
    let has_read_parts = has_reads_option || cpu_slots.len() > 1;
    let commands: Vec<String> = if has_read_parts {
        (1..).zip(&cpu_slots).map(|(part, slot)| command_of_part(invocation, case.threads, slot, part)).collect()
    } else {
        vec![command_line::quote_for_shell(
            external_aligner::plain_run_command(invocation, case.threads).into_iter().map(OsString::from),
        )]
    };
    let gpus = profile.map_or(0, |profile| profile.devices.iter().filter(|device| device.kind == GPU_KIND).count());
    let advised = AdvisedPlacement {
        strategy: advice.strategy,
        nodes: case.machine.nodes.len(),
        threads: case.threads,
        hardware_threads: case.machine.nodes.iter().map(|node| node.threads as usize).sum(),
        gpus,
    };
    Ok(PlacementAdvice {
        nodes,
        launch: LaunchCommands::for_cpu_slots(&cpu_slots, &commands, topology),
        known_cases: find_matching_cases(&advised),
        has_read_parts,
    })
}

/// Returns the command line of the instance that aligns part `part` of the reads, as shell text. The parts are files
/// that the user makes.
fn command_of_part(invocation: &Invocation, threads: usize, slot: &CpuSlot, part: usize) -> String {
    let files: Vec<PathBuf> = match invocation.feed {
        ReadInputMode::Stdin => Vec::new(),
        ReadInputMode::OneFile => vec![format!("part{part}.fq").into()],
        ReadInputMode::TwoFiles => [1, 2].map(|mate| format!("part{part}_{mate}.fq").into()).to_vec(),
    };
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let block = invocation.depends.min_block_bases(threads).unwrap_or(0);
    let words = invocation.build_instance_command(slot.threads, block, &paths);
    let input = if files.is_empty() { format!(" < part{part}.fq") } else { String::new() };
    let extension = match invocation.format {
        OutputFormat::Sam => "sam",
        OutputFormat::Sai => "sai",
    };
    format!("{}{input} > part{part}.{extension}", command_line::quote_for_shell(words.into_iter()))
}

/// `genuma machine advise --nodes` without a command: chooses the nodes, and prints command lines that keep any program
/// on them. The machine is that of the profile, or this one if there is no profile.
pub(super) fn advise_nodes_without_command(args: &Args, count: u32) -> anyhow::Result<()> {
    refuse_options_that_need_a_command(args)?;
    let path = args.machine.clone().or_else(machine_profile::profile_path_from_environment);
    let profile = path.map(|path| machine_profile::read_idle_profile(&path, args.force)).transpose()?;
    let topology = match &profile {
        Some(profile) => profile.topology.clone(),
        None => Sysfs::new().topology()?,
    };
    let subset = choose_nodes(count, &topology, profile.as_ref())?;
    let restricted = topology.restricted_to_nodes(&subset.nodes);
    let threads = args.threads.map_or(restricted.allowed.cpus.len(), usize::from);
    let strategy = Strategy { instances: 1, memory: InstanceMemoryPolicy::Bind };
    let mut cpu_slots = cpu_layout::assign_cpu_slots(&strategy, &restricted, threads)?;
    for slot in &mut cpu_slots {
        // A machine with one allowed node needs no policy. But this one has more nodes.
        slot.policy = Some(genuma_machine::placement::MemoryPolicy::Bind(slot.nodes.clone()));
    }
    let advice = PlacementAdvice {
        nodes: Some(subset),
        launch: LaunchCommands::for_cpu_slots(&cpu_slots, &[COMMAND_PLACEHOLDER.to_owned()], &restricted),
        known_cases: Vec::new(),
        has_read_parts: false,
    };
    if let Some(path) = &args.json {
        let mut set = AtomicFileSet::default();
        let json = serde_json::json!({
            "genuma": env!("CARGO_PKG_VERSION"),
            "nodes": advice.nodes,
            "launch": advice.launch,
            "known_cases": advice.known_cases,
        });
        json_file::add_json_file_with_schema_number(
            path,
            json_file::schema_numbers::ADVICE_SCHEMA_NUMBER,
            &json,
            &mut set,
        )?;
        set.publish_all()?;
    }
    logging::print_result(placement_text::format_placement(&advice))
}

/// Returns an error if an option is given that has no meaning without the command of an aligner.
fn refuse_options_that_need_a_command(args: &Args) -> Result<(), UsageError> {
    let given = [
        ("--strategies", !args.strategies.is_empty()),
        ("--reads", args.read_args.is_reads_option_given()),
        ("--explain", args.explain.is_some()),
        ("--sweep", args.sweep.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(UsageError(format!("{option}: give the command of an aligner after --, or leave it out")))
        }
        None => Ok(()),
    }
}

/// Restricts a run to the nodes that the user names.
///
/// # Errors
/// The process may not use a node, or the nodes have no CPUs or no memory.
pub(crate) fn restrict_to_named_nodes(topology: Topology, nodes: Option<&IdSet>) -> Result<Topology, UsageError> {
    let Some(nodes) = nodes else { return Ok(topology) };
    let usable = topology.allowed_cpu_nodes().intersection(&topology.allowed_memory_nodes());
    if nodes.is_empty() || !nodes.is_subset(&usable) {
        return Err(UsageError(format!(
            "--on-nodes {nodes}: this process may use the CPUs and the memory of nodes {usable}: name some of them"
        )));
    }
    Ok(topology.restricted_to_nodes(nodes))
}

#[cfg(test)]
mod tests;
