//! Command lines that place the instances of a strategy without genuma: for numactl(8), Slurm and systemd-run(1).
//!
//! CPU and node numbers are those of the kernel. `docs/internals/advisor.md` lists which option stands for which memory
//! policy, with the sources.

use genuma_machine::placement::MemoryPolicy;
use genuma_machine::topology::Cpu;
use genuma_machine::{IdSet, Topology};
use serde::Serialize;

use crate::cpu_layout::CpuSlot;

#[cfg(test)]
mod tests;

/// Command lines that start all instances of a strategy, each on its CPUs and with its memory policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaunchCommands {
    /// Options of sbatch(1) and salloc(1) for a job in which all instances run, on one machine.
    pub sbatch_options: String,
    /// The command lines of each instance.
    pub instances: Vec<InstanceLaunch>,
}

/// Command lines of one instance: each of them alone starts it on its CPUs and with its memory policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstanceLaunch {
    /// CPUs of the instance.
    pub cpus: IdSet,
    /// Memory nodes of the instance.
    pub nodes: IdSet,
    /// Number of threads of the instance.
    pub threads: usize,
    /// Memory policy; `None` for the kernel's default.
    pub policy: Option<String>,
    /// The command started by numactl(8).
    pub numactl: String,
    /// The command started by srun(1), in a job that has the whole machine.
    pub srun: String,
    /// The command started by systemd-run(1) in a control group of its own. Needs root.
    pub systemd_run: String,
}

impl LaunchCommands {
    /// Builds the command lines of instances with these CPU slots. `commands` has the command of each instance as shell
    /// text.
    pub fn for_cpu_slots(cpu_slots: &[CpuSlot], commands: &[String], topology: &Topology) -> LaunchCommands {
        let all_nodes: IdSet = cpu_slots.iter().flat_map(|slot| slot.nodes.iter()).collect();
        let launch = |(slot, command): (&CpuSlot, &String)| InstanceLaunch {
            cpus: slot.cpus.clone(),
            nodes: slot.nodes.clone(),
            threads: slot.threads,
            policy: slot.policy.as_ref().map(MemoryPolicy::to_string),
            numactl: numactl_line(slot, command),
            srun: srun_line(slot, command),
            systemd_run: systemd_run_line(slot, &all_nodes, command),
        };
        LaunchCommands {
            sbatch_options: sbatch_options(cpu_slots, topology),
            instances: cpu_slots.iter().zip(commands).map(launch).collect(),
        }
    }
}

/// Returns the option of numactl(8) that sets the memory policy; `None` for the kernel's default.
fn numactl_memory_option(policy: Option<&MemoryPolicy>) -> Option<String> {
    Some(match policy? {
        MemoryPolicy::Local => "--localalloc".to_owned(),
        MemoryPolicy::Bind(nodes) => format!("--membind={nodes}"),
        MemoryPolicy::Interleave(nodes) => format!("--interleave={nodes}"),
        // numactl takes the weights from the kernel.
        weighted @ (MemoryPolicy::KernelWeighted(_) | MemoryPolicy::Weighted(_)) => {
            format!("--weighted-interleave={}", weighted.named_nodes())
        }
        MemoryPolicy::PreferredMany(nodes) => format!("--preferred-many={nodes}"),
    })
}

fn numactl_line(slot: &CpuSlot, command: &str) -> String {
    let memory = numactl_memory_option(slot.policy.as_ref()).map_or(String::new(), |option| format!(" {option}"));
    format!("numactl --physcpubind={}{memory} -- {command}", slot.cpus)
}

/// Puts numactl(8) before the command for a memory policy that only numactl can set. Binding is set in another way.
fn with_numactl_unless_bound(policy: Option<&MemoryPolicy>, command: &str) -> String {
    match policy {
        None | Some(MemoryPolicy::Bind(_)) => command.to_owned(),
        policy => {
            numactl_memory_option(policy).map_or(command.to_owned(), |option| format!("numactl {option} -- {command}"))
        }
    }
}

/// Builds the line for srun(1). The only memory policy of Slurm is binding, so numactl sets the others.
fn srun_line(slot: &CpuSlot, command: &str) -> String {
    let memory = match &slot.policy {
        Some(MemoryPolicy::Bind(nodes)) => format!(" --mem-bind=mask_mem:{}", hexadecimal_mask(nodes)),
        _ => String::new(),
    };
    format!(
        "srun --nodes=1 --ntasks=1 --overlap --cpus-per-task={} --cpu-bind=mask_cpu:{}{memory} {}",
        slot.cpus.len(),
        hexadecimal_mask(&slot.cpus),
        with_numactl_unless_bound(slot.policy.as_ref(), command)
    )
}

/// Builds the line for systemd-run(1). A control group restricts memory to nodes, which binds it. Under a policy that
/// may use other nodes when a node is full, the instance may use the nodes of all instances (`all_nodes`).
fn systemd_run_line(slot: &CpuSlot, all_nodes: &IdSet, command: &str) -> String {
    let nodes = match &slot.policy {
        None | Some(MemoryPolicy::Local | MemoryPolicy::PreferredMany(_)) => all_nodes,
        Some(_) => &slot.nodes,
    };
    format!(
        "systemd-run --scope -p AllowedCPUs={} -p AllowedMemoryNodes={nodes} -- {}",
        slot.cpus,
        with_numactl_unless_bound(slot.policy.as_ref(), command)
    )
}

/// Options of a job that has a whole machine, because CPU masks need all of its CPUs. The hint says whether the threads
/// need the second hardware threads of cores.
fn sbatch_options(cpu_slots: &[CpuSlot], topology: &Topology) -> String {
    let cpus: IdSet = cpu_slots.iter().flat_map(|slot| slot.cpus.iter()).collect();
    let is_first_of_core = |cpu: &&Cpu| {
        cpus.contains(cpu.id) && cpu.siblings.intersection(&cpus).smallest_id().is_none_or(|first| first == cpu.id)
    };
    let cores = topology.cpus.iter().filter(is_first_of_core).count();
    let threads: usize = cpu_slots.iter().map(|slot| slot.threads).sum();
    format!(
        "--nodes=1 --exclusive --mem=0 --ntasks={} --cpus-per-task={} --hint={}",
        cpu_slots.len(),
        cpu_slots.iter().map(|slot| slot.cpus.len()).max().unwrap_or(1),
        if threads > cores { "multithread" } else { "nomultithread" }
    )
}

/// Formats a set of numbers as a hexadecimal mask, `0x…`, as Slurm takes it.
fn hexadecimal_mask(ids: &IdSet) -> String {
    let digits = ids.iter().next_back().map_or(1, |last| last / 4 + 1);
    let digit = |n: u32| {
        let bits = (0..4).filter(|bit| ids.contains(4 * n + bit)).map(|bit| 1 << bit).sum::<u32>();
        char::from_digit(bits, 16).unwrap_or('0')
    };
    format!("0x{}", (0..digits).rev().map(digit).collect::<String>())
}
