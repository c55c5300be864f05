//! The result of `genuma run` as one line and as JSON.

use std::path::Path;

use genuma_strategy::page_placement::format_node_shares;
use genuma_strategy::run::{RunPlan, RunSummary};
use genuma_work::publish::FileSet;
use serde_json::{Value, json};
use tracing::warn;

use crate::json_file;

/// A finished run.
pub(crate) struct RunOutcome<'a> {
    pub(crate) command: String,
    pub(crate) plan: &'a RunPlan,
    pub(crate) summary: RunSummary,
}

impl RunOutcome<'_> {
    /// Warns of instances whose index or threads are not where they were requested.
    pub(crate) fn warn_about_placement(&self) {
        let cpu_slots = &self.plan.cpu_slots;
        for (i, (instance, seat)) in self.summary.instances.iter().zip(cpu_slots).enumerate() {
            if let (Some(false), Some(pages), Some(policy)) = (instance.as_asked, &instance.pages, &instance.policy) {
                warn!(
                    "instance {}: memory policy {policy} was requested, but the index is on {}: the records are the same, but may \
                     have taken longer; check that the requested nodes have enough free memory (numastat -m)",
                    i + 1,
                    format_node_shares(&pages.index)
                );
            }
            if let Some(found) = &instance.threads_found
                && !found.may_run_on.is_subset(&seat.cpus)
            {
                warn!(
                    "instance {}: was assigned CPUs {}, but its threads may run on {}: the records are the same, but may have taken \
                     longer; if the aligner binds threads to CPUs itself, switch that off",
                    i + 1,
                    seat.cpus,
                    found.may_run_on
                );
            }
        }
    }

    /// The summary line: number of reads, speed, and placement.
    pub(crate) fn format_summary_line(&self, out: Option<&Path>) -> String {
        let summary = &self.summary;
        let mut line = format!(
            "{} reads in {:.1} s ({:.0} reads/s), {:.1} s of CPU time; strategy {}",
            summary.reads,
            summary.wall_s,
            summary.reads_per_s(),
            summary.instances_cpu_s + summary.own_cpu_s,
            self.plan.strategy
        );
        let index = summary.index_bytes_by_node();
        if !index.is_empty() {
            line += &format!(", index on {}", format_node_shares(&index));
        }
        match out {
            Some(path) => line + &format!("; see {}", path.display()),
            None => line,
        }
    }

    /// Adds all values as a JSON file to `set`.
    pub(crate) fn write_json(&self, path: &Path, set: &mut FileSet) -> anyhow::Result<()> {
        json_file::add_json_output(path, json_file::schema::RUN_SCHEMA, &self.to_json(), set)
    }

    fn to_json(&self) -> Value {
        json!({
            "genuma": env!("CARGO_PKG_VERSION"),
            "command": self.command,
            "aligner": self.plan.invocations.first().map(|invocation| &invocation.aligner),
            "strategy": self.plan.strategy,
            "why": self.plan.why,
            "threads": self.plan.threads,
            "reads_per_s": self.summary.reads_per_s(),
            "run": self.summary,
        })
    }
}
