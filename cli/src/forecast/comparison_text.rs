//! Prints a comparison of machines as text, and writes it as JSON and HTML.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::bail;
use genuma_planner::machine_comparison::{CallOnMachine, MachineComparison};
use genuma_report::machine_comparison::render_page;
use genuma_work::publish::{AtomicFile, AtomicFileSet};
use genuma_work::quantity::{format_duration, format_three_digits, format_with_si_prefix, group_thousands};

use super::text_table::format_text_table;
use crate::{json_file, logging};

/// Prints a comparison, and writes it to the files that are given.
///
/// # Errors
/// The call fits on no machine; a file cannot be written.
pub(crate) fn print_and_write_comparison(
    comparison: &MachineComparison,
    json: Option<&Path>,
    html: Option<&Path>,
) -> anyhow::Result<()> {
    let mut set = AtomicFileSet::default();
    if let Some(path) = json {
        let schema = json_file::schema_numbers::MACHINE_COMPARISON_SCHEMA_NUMBER;
        json_file::add_json_file_with_schema_number(path, schema, comparison, &mut set)?;
    }
    if let Some(path) = html {
        let mut page = AtomicFile::create(path)?;
        page.write_all(render_page(comparison).as_bytes())?;
        set.add_file(page.flush_to_partial_file()?);
    }
    set.publish_all()?;
    logging::print_result(render_comparison(comparison))?;
    if comparison.machines.iter().all(|compared| compared.cost.is_none()) {
        bail!("the call fits on no machine");
    }
    Ok(())
}

fn render_comparison(comparison: &MachineComparison) -> String {
    let [normal, tumour] = comparison.bases.map(|n| format_with_si_prefix(n as f64));
    let mut text = format!("tumour {tumour}bp, normal {normal}bp\n\n");
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(comparison.machines.iter().filter_map(table_row));
    text += &format_text_table(&rows);
    text.push('\n');
    for compared in comparison.machines.iter().filter(|one| one.cost.is_none()) {
        let _ = writeln!(text, "{}: does not fit: {}", compared.machine.name, compared.why_it_does_not_fit());
    }
    comparison.notes().iter().for_each(|note| text += &format!("{note}\n"));
    text
}

const COLUMNS: [&str; 7] = ["machine", "time", "CPU", "energy", "calls", "cost of a call", "total"];

fn table_row(compared: &CallOnMachine) -> Option<[String; 7]> {
    let cost = compared.cost.as_ref()?;
    let money = |amount: Option<f64>| amount.map_or_else(|| "-".to_owned(), format_three_digits);
    let machines = if cost.num_machines > 1 { format!("{} x ", cost.num_machines) } else { String::new() };
    Some([
        format!("{machines}{}", compared.machine.name),
        format_duration(cost.wall_s),
        format_duration(cost.cpu_s),
        cost.energy_text(),
        group_thousands(cost.calls),
        money(cost.cost_per_call),
        money(cost.total_cost),
    ])
}
