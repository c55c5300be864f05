//! Formats the placement of an advice as text: nodes, command lines for use without genuma, and known cases.

use std::fmt::Write;

use genuma_strategy::known_cases::PolicyEffect;
use genuma_strategy::launch_commands::InstanceLaunch;
use genuma_strategy::node_subset::NodeSubset;

use super::PlacementAdvice;

/// Returns the placement as text.
pub fn format_placement(advice: &PlacementAdvice) -> String {
    let mut text = String::new();
    if let Some(subset) = &advice.nodes {
        text += &format_node_subset(subset);
        text.push('\n');
    }
    for case in &advice.known_cases {
        let effect = match case.effect {
            PolicyEffect::Slower => "Warning: measured elsewhere as slower",
            PolicyEffect::Faster => "Measured elsewhere as faster",
        };
        let _ = writeln!(text, "{effect}: {}. Sources: {}.\n", case.finding, case.sources.join("; "));
    }
    text + &format_command_lines(advice)
}

fn format_node_subset(subset: &NodeSubset) -> String {
    let NodeSubset { nodes, available, .. } = subset;
    let count = nodes.len();
    let first: String = available.iter().take(count).map(|node| node.to_string()).collect::<Vec<_>>().join(",");
    let comparison = if subset.is_exhaustive {
        "no choice of as many nodes is better by more than 1 %".to_owned()
    } else {
        "found by exchanging nodes, because there are too many choices to compare all".to_owned()
    };
    format!(
        "Nodes {nodes} of {available}: {:.0} ns and {:.1} GB/s between them on average, cost {:.3} (nodes {first}: {:.3}); \
         {comparison}.\nUse them with `genuma run --on-nodes {nodes}`, or with the command lines below.\n",
        subset.mean_latency_ns, subset.mean_bandwidth_gbs, subset.cost, subset.cost_of_first_nodes
    )
}

/// Returns the command lines that place the instances without genuma.
pub fn format_command_lines(advice: &PlacementAdvice) -> String {
    let mut text = "The same placement without genuma:\n".to_owned();
    if advice.has_read_parts {
        let parts = advice.launch.instances.len();
        let names = if parts == 1 { "part1".to_owned() } else { format!("part1 to part{parts}") };
        let _ = writeln!(
            text,
            "First divide the reads into {names}, as FASTQ with whole pairs; at the end join the outputs in this order."
        );
    }
    type Line = fn(&InstanceLaunch) -> &str;
    let slurm = format!("Slurm, in a job with the options {}", advice.launch.sbatch_options);
    let tools: [(&str, Line); 3] =
        [("numactl", |one| &one.numactl), (&slurm, |one| &one.srun), ("systemd, as root", |one| &one.systemd_run)];
    // Several instances run at the same time.
    let (end, wait) = if advice.launch.instances.len() > 1 { (" &", "    wait\n") } else { ("", "") };
    for (tool, line) in tools {
        let _ = writeln!(text, "  {tool}:");
        for one in &advice.launch.instances {
            let _ = writeln!(text, "    {}{end}", line(one));
        }
        text += wait;
    }
    text
}
