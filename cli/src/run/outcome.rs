//! Formats the result of `genuma run` as a log line and as JSON.

use std::path::Path;

use genuma_strategy::memory_pages::MemoryPages;
use genuma_strategy::page_placement::format_node_shares;
use genuma_strategy::run::RunSummary;
use genuma_strategy::{CpuSlot, Strategy};
use genuma_work::counters::ProcessCounters;
use genuma_work::publish::AtomicFileSet;
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::{command_line, counter_table, json_file};

/// Minimum anonymous memory of a program (bytes) of which a part is expected in huge pages if they are requested: 32 huge
/// pages.
const MIN_BYTES_FOR_HUGE_PAGES: u64 = 64 << 20;

/// Results of a finished run of `genuma run`.
pub(crate) struct RunOutcome<'a> {
    /// Name of the aligner or other program.
    pub(crate) program: String,
    pub(crate) strategy: Strategy,
    /// Reason why the strategy was chosen.
    pub(crate) why: String,
    pub(crate) threads: usize,
    pub(crate) cpu_slots: &'a [CpuSlot],
    pub(crate) summary: RunSummary,
}

impl RunOutcome<'_> {
    /// Warns if the files have no reads.
    pub(crate) fn warn_of_missing_reads(&self) {
        if self.summary.reads == Some(0) {
            warn!("the files have no reads, so the output has only a header: check that they should be empty");
        }
    }

    /// Warns if the index of an instance is not on the requested nodes, or if its threads may run on other CPUs than
    /// assigned.
    pub(crate) fn warn_of_wrong_placement(&self) {
        for (i, (instance, seat)) in self.summary.instances.iter().zip(self.cpu_slots).enumerate() {
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

    /// Warns if huge pages were requested and a program with much memory has none.
    pub(crate) fn warn_of_missing_huge_pages(&self) {
        for instance in &self.summary.instances {
            if let (MemoryPages::Huge, Some(found)) = (instance.requested_pages, instance.huge_pages)
                && found.huge_bytes == 0
                && found.anonymous_bytes >= MIN_BYTES_FOR_HUGE_PAGES
            {
                warn!(
                    "{}: huge pages were requested, but none of its {} MiB are in huge pages: the results are the same, but may have \
                     taken longer; programs with another malloc than that of glibc 2.35 or later do not request them",
                    self.program,
                    found.anonymous_bytes >> 20
                );
                return;
            }
        }
    }

    /// Formats the last line of the log: number of reads and speed, or of records and intervals,
    /// or the exit code; then CPU time, strategy and
    /// placement of the index.
    fn format_summary_line(&self, out: Option<&Path>) -> String {
        let summary = &self.summary;
        let mut line = match (summary.reads, summary.reads_per_s(), &summary.intervals) {
            (_, _, Some(intervals)) => format!(
                "{} records of {} intervals in {:.1} s (slots busy {:.0}% of the time, longest interval {:.1} s)",
                intervals.num_records,
                intervals.num_intervals,
                summary.wall_s,
                100.0 * intervals.busy_share,
                intervals.longest_interval_s
            ),
            (Some(reads), Some(per_s), _) => format!("{reads} reads in {:.1} s ({per_s:.0} reads/s)", summary.wall_s),
            _ => format!(
                "{} ended with exit code {} after {:.1} s",
                self.program,
                summary.exit_code.unwrap_or_default(),
                summary.wall_s
            ),
        };
        line +=
            &format!(", {:.1} s of CPU time; strategy {}", summary.instances_cpu_s + summary.own_cpu_s, self.strategy);
        let index = summary.index_bytes_by_node();
        if !index.is_empty() {
            line += &format!(", index on {}", format_node_shares(&index));
        }
        let huge_pages = summary.instances.iter().filter_map(|instance| instance.huge_pages);
        let largest = huge_pages.max_by_key(|found| found.anonymous_bytes);
        if let Some(found) = largest {
            line += &format!(", {:.0}% of its memory in huge pages", 100.0 * found.huge_share());
        }
        match out {
            Some(path) => line + &format!("; see {}", path.display()),
            None => line,
        }
    }

    /// Publishes the files in `set`. Before that, adds the results as JSON if the path `json` is given. Logs counters
    /// and a summary. `out` is the file of the records.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn publish_and_log_results(
        &self,
        json: Option<&Path>,
        out: Option<&Path>,
        mut set: AtomicFileSet,
    ) -> anyhow::Result<()> {
        if let Some(path) = json {
            json_file::add_json_file_with_schema_number(
                path,
                json_file::schema_numbers::RUN_COMMAND_SCHEMA_NUMBER,
                &self.to_json(),
                &mut set,
            )?;
        }
        set.publish_all()?;
        self.log_counters();
        info!("{}", self.format_summary_line(out));
        Ok(())
    }

    /// Logs the counters of the instances, of genuma itself and of the machine, if counters were requested.
    fn log_counters(&self) {
        let instances = &self.summary.instances;
        let name = |n: usize| match instances.len() {
            1 => self.program.clone(),
            _ => format!("instance {}", n + 1),
        };
        let columns = instances.iter().enumerate().filter_map(|(n, i)| Some((name(n), i.counters.as_ref()?)));
        let own = self.summary.own_counters.iter().map(|own| ("genuma".to_owned(), own));
        let columns: Vec<(String, &ProcessCounters)> = columns.chain(own).collect();
        counter_table::log_counter_table(&columns, self.summary.machine_counters.as_ref());
    }

    fn to_json(&self) -> Value {
        json!({
            "genuma": env!("CARGO_PKG_VERSION"),
            "command": command_line::quoted_command_line(),
            "aligner": self.summary.reads.map(|_| &self.program),
            "strategy": self.strategy,
            "why": self.why,
            "threads": self.threads,
            "reads_per_s": self.summary.reads_per_s(),
            "run": self.summary,
        })
    }
}
