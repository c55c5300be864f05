//! Formats the results of `genuma align`: as a log line, as JSON and for MultiQC.

use std::path::Path;
use std::time::Duration;

use genuma_align::engine::AlignerNameAndVersion;
use genuma_align::engine::genuma::{self, MAX_READ_BP};
use genuma_align::index_placement::{IndexCopyResidence, IndexPlacementWithReason};
use genuma_align::pipeline::AlignSummary;
use genuma_align::sort;
use genuma_work::cost::measure_process_cost;
use genuma_work::counters::RunCounters;
use genuma_work::publish::AtomicFileSet;
use serde_json::{Value, json};

use crate::{json_file, multiqc};

/// The memory placement that was chosen for the index, and the placement that the kernel reports.
pub(crate) struct PlannedAndActualIndexPlacement {
    /// The chosen placement and the reason for it.
    pub(crate) plan: IndexPlacementWithReason,
    /// Where the kernel reports the pages of each copy of the index.
    pub(crate) copies: Vec<IndexCopyResidence>,
    /// Whether the chosen and the reported placement agree; `None` if the kernel does not report the placement of
    /// pages.
    pub(crate) residence_matches_placement: Option<bool>,
}

/// Wall-clock time of each stage of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StageTimes {
    /// Loading of the index.
    pub(crate) load: Duration,
    /// Aligning.
    pub(crate) align: Duration,
    /// Sorting and merging of the records; 0 if the output is not sorted.
    pub(crate) sort: Duration,
    /// The whole run.
    pub(crate) total: Duration,
}

/// Results of a finished run of `genuma align`.
pub(crate) struct AlignOutcome {
    pub(crate) command: String,
    pub(crate) program: AlignerNameAndVersion,
    pub(crate) placement: PlannedAndActualIndexPlacement,
    pub(crate) aligned: AlignSummary,
    pub(crate) sorted: Option<sort::SortSummary>,
    pub(crate) times: StageTimes,
    /// What the process used, such as CPU time, memory and page faults; `None` without `--counters`.
    pub(crate) counters: Option<RunCounters>,
}

impl PlannedAndActualIndexPlacement {
    /// Formats one line for the log: the chosen placement, the reason, and the placement that the kernel reports.
    pub(crate) fn format_index_placement_line(&self) -> String {
        let IndexPlacementWithReason { placement, reason } = &self.plan;
        let copies: Vec<String> = self
            .copies
            .iter()
            .map(|found| match found.node {
                Some(node) => format!("copy {node}: {}", found.residence),
                None => found.residence.to_string(),
            })
            .collect();
        let observed = match (copies.is_empty(), self.residence_matches_placement) {
            (_, None) => "the kernel does not report the placement of its pages".to_owned(),
            (true, _) => "the engine does not report the addresses of its arrays".to_owned(),
            (false, Some(true)) => format!("pages on {}", copies.join("; ")),
            (false, Some(false)) => format!("but pages are on {}", copies.join("; ")),
        };
        format!("index {placement}, {reason}; {observed}")
    }

    fn to_json(&self) -> Value {
        let copies: Vec<Value> = self
            .copies
            .iter()
            .map(|IndexCopyResidence { node, residence }| {
                json!({
                    "for_node": node,
                    "page_bytes": residence.page_bytes,
                    "pages": residence.pages_by_node.iter().map(|(node, n)| (node.to_string(), json!(n))).collect::<serde_json::Map<_, _>>(),
                    "absent_pages": residence.absent_pages,
                })
            })
            .collect();
        json!({
            "chosen": self.plan.placement.to_string(),
            "why": self.plan.reason,
            "as_chosen": self.residence_matches_placement,
            "copies": copies,
        })
    }
}

/// Returns `part` as a percentage of `all`; 0 if `all` is 0.
fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

impl AlignOutcome {
    /// Returns a warning if reads are unmapped because they are too long for the mapper; otherwise `None`.
    pub(super) fn format_too_long_reads_warning(&self) -> Option<String> {
        let reads = self.aligned.skipped_reads.get(genuma::TOO_LONG_READS_LABEL).copied().filter(|reads| *reads > 0)?;
        Some(format!(
            "{reads} reads are longer than {MAX_READ_BP} bp and are written as unmapped: align long reads with an aligner made \
             for them, such as `genuma run -- minimap2 -ax map-ont ...`"
        ))
    }

    /// Formats the last line of the log: number of reads or pairs, speed, shares of mapped, properly paired and
    /// duplicate reads, insert size, and the output file.
    pub(crate) fn format_summary_line(&self, out: Option<&Path>) -> String {
        let aligned = &self.aligned;
        let counts = &aligned.counts;
        let seconds = self.times.total.as_secs_f64();
        let (count, what) = match counts.paired_reads == counts.reads && counts.reads > 0 {
            true => (counts.reads / 2, "pairs"),
            false => (counts.reads, "reads"),
        };
        let mut line = format!(
            "{count} {what} in {seconds:.1} s ({:.0} {what}/s); {:.2}% of reads mapped",
            count as f64 / seconds.max(1e-3),
            percent(counts.mapped_reads, counts.reads)
        );
        if counts.paired_reads > 0 {
            line += &format!(", {:.2}% properly paired", percent(counts.properly_paired_reads, counts.paired_reads));
        }
        if let Some(inserts) = counts.compute_insert_size_statistics() {
            line += &format!(", insert size {:.0} ± {:.0}", inserts.mean, inserts.std_dev);
        }
        if let Some(marked) = self.sorted.as_ref().and_then(|sorted| sorted.duplicates) {
            let duplicates = marked.paired_duplicates + marked.single_duplicates;
            line += &format!(", {:.2}% duplicates", percent(duplicates, counts.reads));
        }
        if let Some(left_out) = aligned.skipped_reads.get("reads").filter(|reads| **reads > 0) {
            line += &format!(", {:.2}% with candidate positions left out", percent(*left_out, counts.reads));
        }
        match out {
            Some(path) => line + &format!("; see {}", path.display()),
            None => line,
        }
    }

    /// Returns the statistics of this alignment for MultiQC's table.
    pub(crate) fn to_multiqc_statistics(&self, sample: String) -> multiqc::AlignmentStatistics {
        let counts = &self.aligned.counts;
        let marked = self.sorted.as_ref().and_then(|sorted| sorted.duplicates);
        multiqc::AlignmentStatistics {
            sample,
            reads: counts.reads,
            mapped: percent(counts.mapped_reads, counts.reads),
            proper: (counts.paired_reads > 0).then(|| percent(counts.properly_paired_reads, counts.paired_reads)),
            duplicates: marked.map(|m| percent(m.paired_duplicates + m.single_duplicates, counts.reads)),
            insert: counts.compute_insert_size_statistics().map(|inserts| inserts.median as f64),
        }
    }

    /// Adds a JSON file at `path` with the results of this alignment (counts, times, placement) to `set`.
    pub(crate) fn add_json_file_to_set(&self, path: &Path, set: &mut AtomicFileSet) -> anyhow::Result<()> {
        json_file::add_json_file_with_schema_number(
            path,
            json_file::schema_numbers::ALIGN_SCHEMA_NUMBER,
            &self.to_json(),
            set,
        )
    }

    fn to_json(&self) -> Value {
        let AlignOutcome { command, program, placement: placed, aligned, sorted, times: seconds, counters } = self;
        let counts = &aligned.counts;
        let cost = measure_process_cost();
        let s = |time: Duration| json!(time.as_secs_f64());
        let workers: Vec<Value> = aligned
            .workers
            .iter()
            .map(|w| json!({ "cpu": w.cpu, "node": w.node, "tasks": w.tasks, "busy_s": w.busy_time.map(|b| b.as_secs_f64()) }))
            .collect();
        json!({
            "genuma": env!("CARGO_PKG_VERSION"),
            "command": command,
            "engine": { "name": program.name, "version": program.version },
            "reads": {
                "reads": counts.reads,
                "bases": counts.bases,
                "with_mate": counts.paired_reads,
                "mapped": counts.mapped_reads,
                "properly_paired": counts.properly_paired_reads,
            },
            "records": {
                "records": counts.records,
                "secondary": counts.secondary_records,
                "supplementary": counts.supplementary_records,
            },
            "insert_size": counts
                .compute_insert_size_statistics()
                .map(|i| json!({ "median": i.median, "mean": i.mean, "deviation": i.std_dev })),
            "duplicates": sorted.as_ref().and_then(|sorted| sorted.duplicates).map(|m| json!({
                "with_mate_mapped": m.paired_reads,
                "without": m.single_reads,
                "marked_with_mate_mapped": m.paired_duplicates,
                "marked_without": m.single_duplicates,
            })),
            "left_out": aligned.skipped_reads,
            "blocks": aligned.num_blocks,
            "spilled_bytes": sorted.map_or(0, |sorted| sorted.spilled_bytes),
            "placement": placed.to_json(),
            "seconds": { "load": s(seconds.load), "align": s(seconds.align), "sort": s(seconds.sort), "whole": s(seconds.total) },
            "worker_seconds": { "map": s(aligned.map_time), "finish": s(aligned.pairing_time), "shape": s(aligned.output_time) },
            "master_seconds": { "waiting_for_reads": s(aligned.input_wait_time), "writing": s(aligned.write_time) },
            "workers": workers,
            "cpu_seconds": cost.cpu_s,
            "peak_memory_bytes": cost.peak_bytes,
            "counters": counters,
        })
    }
}
