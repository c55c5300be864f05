//! What was done, as a line and as JSON.

use std::path::Path;

use genuma_strategy::pages::shares;
use genuma_strategy::run::{Plan, Summary};
use genuma_work::publish::Set;
use serde_json::{Value, json};
use tracing::warn;

use crate::json;

/// A finished run.
pub(crate) struct Outcome<'a> {
    pub(crate) command: String,
    pub(crate) plan: &'a Plan,
    pub(crate) summary: Summary,
}

impl Outcome<'_> {
    /// Says which instances have their index or their threads elsewhere than asked.
    pub(crate) fn warn(&self) {
        let seats = &self.plan.seats;
        for (i, (instance, seat)) in self.summary.instances.iter().zip(seats).enumerate() {
            if let (Some(false), Some(pages), Some(policy)) =
                (instance.as_asked, &instance.pages, &instance.policy)
            {
                warn!("instance {}: {policy} was asked, but its index is on {}", i + 1, shares(&pages.index));
            }
            if let Some(found) = &instance.threads_found
                && !found.may_run_on.within(&seat.cpus)
            {
                warn!(
                    "instance {}: it was put on CPUs {}, but its threads may run on {}",
                    i + 1,
                    seat.cpus,
                    found.may_run_on
                );
            }
        }
    }

    /// The last line: how many, how fast, where.
    pub(crate) fn line(&self, out: Option<&Path>) -> String {
        let summary = &self.summary;
        let mut line = format!(
            "{} reads in {:.1} s ({:.0} reads/s), {:.1} s of CPU time; strategy {}",
            summary.reads,
            summary.wall_s,
            summary.reads_per_s(),
            summary.instances_cpu_s + summary.own_cpu_s,
            self.plan.strategy
        );
        let index = summary.index_on_nodes();
        if !index.is_empty() {
            line += &format!(", index on {}", shares(&index));
        }
        match out {
            Some(path) => line + &format!("; see {}", path.display()),
            None => line,
        }
    }

    /// Writes all numbers to a file of `set`.
    pub(crate) fn write(&self, path: &Path, set: &mut Set) -> anyhow::Result<()> {
        json::add(path, &self.json(), set)
    }

    fn json(&self) -> Value {
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
