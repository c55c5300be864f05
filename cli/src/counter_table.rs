//! Formats and logs the resource counters (CPU time, memory, cache misses ...) at the end of `run`, `align` and `call`.

use std::collections::{BTreeMap, BTreeSet};

use genuma_work::counters::{CounterValue, NumaBalancingCounters, ProcessCounters, RunCounters};
use genuma_work::quantity::{format_bytes, group_thousands};
use tracing::info;

/// One cell of the table: its text, and a note if the number is missing, a lower bound or an estimate.
struct Cell {
    text: String,
    note: Option<(NoteKind, String)>,
}

/// Kind of a note: why a number is missing or inexact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NoteKind {
    Missing,
    LowerBound,
    Estimated,
}

impl NoteKind {
    fn label(self) -> &'static str {
        match self {
            NoteKind::Missing => "not counted (-)",
            NoteKind::LowerBound => "at least (>=)",
            NoteKind::Estimated => "estimated",
        }
    }
}

impl Cell {
    fn exact_value(text: String) -> Cell {
        Cell { text, note: None }
    }

    fn from_count(count: &CounterValue, format: fn(u64) -> String) -> Cell {
        let kind = match (count.value, count.at_least) {
            (None, _) => NoteKind::Missing,
            (Some(_), true) => NoteKind::LowerBound,
            (Some(_), false) => NoteKind::Estimated,
        };
        let text = match (count.value.map(format), count.at_least) {
            (None, _) => "-".to_owned(),
            (Some(number), true) => format!(">={number}"),
            (Some(number), false) => number,
        };
        Cell { text, note: count.note.clone().map(|note| (kind, note)) }
    }
}

/// Returns the rows of the table for a group of processes: name of the counter, and cell. All groups have the same
/// rows.
fn rows(counters: &ProcessCounters, nodes: &BTreeSet<u32>) -> Vec<(String, Cell)> {
    let seconds = |time: f64| Cell::exact_value(format!("{time:.2}"));
    let count = |count: &CounterValue| Cell::from_count(count, group_thousands);
    let bytes = |count: &CounterValue| Cell::from_count(count, format_bytes);
    let number = |number: u64| Cell::exact_value(group_thousands(number));
    let fixed = [
        ("user CPU time, s", seconds(counters.user_cpu_s)),
        ("system CPU time, s", seconds(counters.system_cpu_s)),
        ("peak memory", bytes(&counters.max_resident_bytes)),
        ("voluntary context switches", number(counters.voluntary_switches)),
        ("involuntary context switches", number(counters.involuntary_switches)),
        ("CPU migrations", count(&counters.cpu_migrations)),
        ("minor page faults", number(counters.minor_faults)),
        ("major page faults", number(counters.major_faults)),
        ("read from disk", bytes(&counters.disk_read_bytes)),
        ("written to disk", bytes(&counters.disk_write_bytes)),
        ("disk wait, ms", count(&counters.disk_wait_ms)),
        ("cycles", count(&counters.cycles)),
        ("instructions", count(&counters.instructions)),
        ("last-level cache misses", count(&counters.llc_misses)),
        ("remote loads", count(&counters.remote_loads)),
    ];
    let mut rows: Vec<(String, Cell)> = fixed.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect();
    let resident = &counters.resident_bytes_by_node;
    let all: u64 = resident.values().sum();
    for &node in nodes {
        let here = resident.get(&node).copied().unwrap_or(0);
        let cell = match &counters.resident_missing {
            Some(why) => Cell { text: "-".to_owned(), note: Some((NoteKind::Missing, why.clone())) },
            None => Cell::exact_value(format!("{:.1}%", 100.0 * here as f64 / all.max(1) as f64)),
        };
        rows.push((format!("memory on node {node}"), cell));
    }
    rows
}

/// Formats the counters as lines of text: a table with one column for each group of processes (name, counters), then
/// the notes on missing and inexact numbers, then the counters of the whole machine.
pub(crate) fn format_counter_table(
    columns: &[(String, &ProcessCounters)],
    machine: Option<&NumaBalancingCounters>,
) -> Vec<String> {
    let mut nodes: BTreeSet<u32> =
        columns.iter().flat_map(|(_, counters)| counters.resident_bytes_by_node.keys().copied()).collect();
    if nodes.is_empty() {
        nodes.insert(0);
    }
    let tables: Vec<Vec<(String, Cell)>> = columns.iter().map(|(_, counters)| rows(counters, &nodes)).collect();
    let Some(first) = tables.first() else { return Vec::new() };
    let name_width = first.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let widths: Vec<usize> = columns
        .iter()
        .zip(&tables)
        .map(|((head, _), rows)| {
            rows.iter().map(|(_, cell)| cell.text.chars().count()).chain([head.len()]).max().unwrap_or(0)
        })
        .collect();
    let line = |name: &str, cells: Vec<&str>| {
        let cells: String = cells.iter().zip(&widths).map(|(cell, &width)| format!("  {cell:>width$}")).collect();
        format!("{name:name_width$}{cells}")
    };
    let mut lines = vec![line("counters", columns.iter().map(|(head, _)| head.as_str()).collect())];
    let mut notes: BTreeMap<(NoteKind, &str), Vec<&str>> = BTreeMap::new();
    for (row, (name, _)) in first.iter().enumerate() {
        lines.push(line(name, tables.iter().map(|rows| rows[row].1.text.as_str()).collect()));
        for (kind, note) in tables.iter().filter_map(|rows| rows[row].1.note.as_ref()) {
            let names = notes.entry((*kind, note)).or_default();
            if names.last() != Some(&name.as_str()) {
                names.push(name);
            }
        }
    }
    lines.extend(notes.iter().map(|((kind, note), names)| format!("{}: {}: {note}", kind.label(), names.join(", "))));
    lines.extend(machine.map(format_machine_line));
    lines
}

fn format_machine_line(machine: &NumaBalancingCounters) -> String {
    let NumaBalancingCounters { numa_hint_faults, numa_hint_faults_local, numa_pages_migrated } = machine;
    match (numa_hint_faults.value, numa_hint_faults_local.value, numa_pages_migrated.value) {
        (Some(faults), Some(local), Some(migrated)) => format!(
            "whole machine: {} NUMA hint faults, {} of them local; {} pages migrated",
            group_thousands(faults),
            group_thousands(local),
            group_thousands(migrated)
        ),
        _ => format!(
            "not counted (-): NUMA hint faults: {}",
            numa_hint_faults.note.as_deref().unwrap_or("/proc/vmstat lacks them")
        ),
    }
}

/// Logs the table of the counters, with one column for each group of processes (name, counters), and the counters of
/// the whole machine.
pub(crate) fn log_counter_table(columns: &[(String, &ProcessCounters)], machine: Option<&NumaBalancingCounters>) {
    for line in format_counter_table(columns, machine) {
        info!("{line}");
    }
}

/// Logs the table of the counters of this process, if they were recorded.
pub(crate) fn log_counters_of_this_process(counters: Option<&RunCounters>) {
    if let Some(RunCounters { process, machine }) = counters {
        log_counter_table(&[("genuma".to_owned(), process)], Some(machine));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> ProcessCounters {
        ProcessCounters {
            user_cpu_s: 12.345,
            system_cpu_s: 0.5,
            max_resident_bytes: CounterValue::with_exact_value(3 << 30),
            voluntary_switches: 1234,
            involuntary_switches: 7,
            cpu_migrations: CounterValue::with_lower_bound_and_reason(5, "sampled"),
            minor_faults: 100,
            major_faults: 0,
            disk_read_bytes: CounterValue::with_exact_value(0),
            disk_write_bytes: CounterValue::with_exact_value(4096),
            disk_wait_ms: CounterValue::missing_with_reason("off"),
            cycles: CounterValue::missing_with_reason("forbidden"),
            instructions: CounterValue::missing_with_reason("forbidden"),
            llc_misses: CounterValue { value: Some(9), at_least: false, note: Some("extrapolated".to_owned()) },
            remote_loads: CounterValue::missing_with_reason("no PMU"),
            resident_bytes_by_node: BTreeMap::from([(0, 300), (2, 100)]),
            resident_missing: None,
        }
    }

    fn machine() -> NumaBalancingCounters {
        let count = CounterValue::with_exact_value;
        NumaBalancingCounters {
            numa_hint_faults: count(3),
            numa_hint_faults_local: count(2),
            numa_pages_migrated: count(1),
        }
    }

    #[test]
    fn every_missing_number_has_its_reason_once() {
        let (one, two) = (example(), ProcessCounters { resident_missing: Some("ended".to_owned()), ..example() });
        let columns = [("instance 1".to_owned(), &one), ("instance 2".to_owned(), &two)];
        let lines = format_counter_table(&columns, Some(&machine()));
        let row = |name: &str| lines.iter().find(|line| line.starts_with(name)).expect("a row").clone();
        let cells = |name: &str| row(name)[name.len()..].split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(cells("CPU migrations"), [">=5", ">=5"]);
        assert_eq!(cells("cycles"), ["-", "-"]);
        assert_eq!(cells("memory on node 0"), ["75.0%", "-"]);
        assert_eq!(cells("memory on node 2"), ["25.0%", "-"]);
        for note in [
            "not counted (-): cycles, instructions: forbidden",
            "not counted (-): disk wait, ms: off",
            "not counted (-): remote loads: no PMU",
            "not counted (-): memory on node 0, memory on node 2: ended",
            "at least (>=): CPU migrations: sampled",
            "estimated: last-level cache misses: extrapolated",
            "whole machine: 3 NUMA hint faults, 2 of them local; 1 pages migrated",
        ] {
            assert_eq!(lines.iter().filter(|line| *line == note).count(), 1, "{note}: {lines:#?}");
        }
    }

    #[test]
    fn hint_faults_that_are_off_are_not_zero() {
        let off = CounterValue::missing_with_reason("balancing is off");
        let machine = NumaBalancingCounters {
            numa_hint_faults: off.clone(),
            numa_hint_faults_local: off.clone(),
            numa_pages_migrated: off,
        };
        assert_eq!(format_machine_line(&machine), "not counted (-): NUMA hint faults: balancing is off");
    }
}
