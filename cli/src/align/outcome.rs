//! What was done, as a line and as JSON.

use std::path::Path;
use std::time::Duration;

use genuma_align::engine::Program;
use genuma_align::pipeline::Summary;
use genuma_align::placement::{Found, Plan};
use genuma_align::sort;
use genuma_work::clock::process_cost;
use genuma_work::publish::Set;
use serde_json::{Value, json};

use crate::{json, multiqc};

/// Where the index was to be and where it is.
pub(crate) struct Placed {
    pub(crate) plan: Plan,
    pub(crate) found: Vec<Found>,
    /// Whether both agree; nothing where the kernel does not tell where it is.
    pub(crate) as_chosen: Option<bool>,
}

/// What the stages took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds {
    pub(crate) load: Duration,
    pub(crate) align: Duration,
    pub(crate) sort: Duration,
    pub(crate) whole: Duration,
}

/// A finished run.
pub(crate) struct Outcome {
    pub(crate) command: String,
    pub(crate) program: Program,
    pub(crate) placed: Placed,
    pub(crate) aligned: Summary,
    pub(crate) sorted: Option<sort::Summary>,
    pub(crate) seconds: Seconds,
}

impl Placed {
    /// One line: what was chosen, why, and what the kernel says.
    pub(crate) fn line(&self) -> String {
        let Plan { choice, why } = &self.plan;
        let copies: Vec<String> = self
            .found
            .iter()
            .map(|found| match found.copy {
                Some(node) => format!("copy {node}: {}", found.residence),
                None => found.residence.to_string(),
            })
            .collect();
        let found = match (copies.is_empty(), self.as_chosen) {
            (_, None) => "the kernel does not tell where its pages are".to_owned(),
            (true, _) => "the engine does not show where its arrays are".to_owned(),
            (false, Some(true)) => format!("pages on {}", copies.join("; ")),
            (false, Some(false)) => format!("but pages are on {}", copies.join("; ")),
        };
        format!("index {choice}, {why}; {found}")
    }

    fn json(&self) -> Value {
        let copies: Vec<Value> = self
            .found
            .iter()
            .map(|Found { copy, residence }| {
                json!({
                    "for_node": copy,
                    "page_bytes": residence.page,
                    "pages": residence.nodes.iter().map(|(node, n)| (node.to_string(), json!(n))).collect::<serde_json::Map<_, _>>(),
                    "absent_pages": residence.absent,
                })
            })
            .collect();
        json!({
            "chosen": self.plan.choice.to_string(),
            "why": self.plan.why,
            "as_chosen": self.as_chosen,
            "copies": copies,
        })
    }
}

/// Hundredths of `all`; 0 of nothing.
fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

impl Outcome {
    /// The last line: how many, how fast, how well, where.
    pub(crate) fn line(&self, out: Option<&Path>) -> String {
        let aligned = &self.aligned;
        let tally = &aligned.tally;
        let seconds = self.seconds.whole.as_secs_f64();
        let (count, what) = match tally.paired == tally.reads && tally.reads > 0 {
            true => (tally.reads / 2, "pairs"),
            false => (tally.reads, "reads"),
        };
        let mut line = format!(
            "{count} {what} in {seconds:.1} s ({:.0} {what}/s); {:.2}% of reads mapped",
            count as f64 / seconds.max(1e-3),
            percent(tally.mapped, tally.reads)
        );
        if tally.paired > 0 {
            line += &format!(", {:.2}% properly paired", percent(tally.proper, tally.paired));
        }
        if let Some(inserts) = tally.inserts() {
            line += &format!(", insert size {:.0} ± {:.0}", inserts.mean, inserts.deviation);
        }
        if let Some(marked) = self.sorted.as_ref().and_then(|sorted| sorted.marked) {
            let duplicates = marked.paired_duplicates + marked.single_duplicates;
            line += &format!(", {:.2}% duplicates", percent(duplicates, tally.reads));
        }
        if let Some(left_out) = aligned.left_out.get("reads").filter(|reads| **reads > 0) {
            line += &format!(", {:.2}% with places left out", percent(*left_out, tally.reads));
        }
        match out {
            Some(path) => line + &format!("; see {}", path.display()),
            None => line,
        }
    }

    /// What MultiQC shows of it.
    pub(crate) fn columns(&self, sample: String) -> multiqc::Aligned {
        let tally = &self.aligned.tally;
        let marked = self.sorted.as_ref().and_then(|sorted| sorted.marked);
        multiqc::Aligned {
            sample,
            reads: tally.reads,
            mapped: percent(tally.mapped, tally.reads),
            proper: (tally.paired > 0).then(|| percent(tally.proper, tally.paired)),
            duplicates: marked.map(|m| percent(m.paired_duplicates + m.single_duplicates, tally.reads)),
            insert: tally.inserts().map(|inserts| inserts.median as f64),
        }
    }

    /// Writes all numbers to a file of `set`.
    pub(crate) fn write(&self, path: &Path, set: &mut Set) -> anyhow::Result<()> {
        json::add(path, &self.json(), set)
    }

    fn json(&self) -> Value {
        let Outcome { command, program, placed, aligned, sorted, seconds } = self;
        let tally = &aligned.tally;
        let cost = process_cost();
        let s = |time: Duration| json!(time.as_secs_f64());
        let workers: Vec<Value> = aligned
            .workers
            .iter()
            .map(|w| json!({ "cpu": w.cpu, "node": w.node, "tasks": w.tasks, "busy_s": w.busy.map(|b| b.as_secs_f64()) }))
            .collect();
        json!({
            "genuma": env!("CARGO_PKG_VERSION"),
            "command": command,
            "engine": { "name": program.name, "version": program.version },
            "reads": {
                "reads": tally.reads,
                "bases": tally.bases,
                "with_mate": tally.paired,
                "mapped": tally.mapped,
                "properly_paired": tally.proper,
            },
            "records": {
                "records": tally.records,
                "secondary": tally.secondary,
                "supplementary": tally.supplementary,
            },
            "insert_size": tally.inserts().map(|i| json!({ "median": i.median, "mean": i.mean, "deviation": i.deviation })),
            "duplicates": sorted.as_ref().and_then(|sorted| sorted.marked).map(|m| json!({
                "with_mate_mapped": m.paired,
                "without": m.single,
                "marked_with_mate_mapped": m.paired_duplicates,
                "marked_without": m.single_duplicates,
            })),
            "left_out": aligned.left_out,
            "blocks": aligned.blocks,
            "spilled_bytes": sorted.map_or(0, |sorted| sorted.spilled),
            "placement": placed.json(),
            "seconds": { "load": s(seconds.load), "align": s(seconds.align), "sort": s(seconds.sort), "whole": s(seconds.whole) },
            "worker_seconds": { "map": s(aligned.map), "finish": s(aligned.finish), "shape": s(aligned.shape) },
            "master_seconds": { "waiting_for_reads": s(aligned.wait), "writing": s(aligned.write) },
            "workers": workers,
            "cpu_seconds": cost.cpu_s,
            "peak_memory_bytes": cost.peak_bytes,
        })
    }
}
