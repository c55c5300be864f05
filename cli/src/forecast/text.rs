//! Prints a forecast as text, and writes it as JSON.

use std::fmt::Write;
use std::path::Path;

use anyhow::bail;
use genuma_planner::accelerators::CountingForecast;
use genuma_planner::cost::ForecastWithCost;
use genuma_planner::input::ForecastInput;
use genuma_planner::rate_source::RateSource;
use genuma_planner::rates::MACHINE_OF_MEASURED_RATES;
use genuma_somatic::pipeline::Resources;
use genuma_work::publish::AtomicFileSet;
use genuma_work::quantity::{self, format_count_with_noun, format_duration, format_energy, format_with_si_prefix};

use super::options::CostOptions;
use super::text_table::format_text_table;
use crate::{gpu, json_file, logging};

/// Prints the forecast of a call with this input, and writes it to the file `json` if one is given.
///
/// # Errors
/// The call does not fit in memory and disk space; a requested GPU is missing; the file cannot be written.
pub(crate) fn print_and_write_forecast(
    input: ForecastInput,
    rates: &RateSource,
    gpu: &gpu::GpuOptions,
    costs: &CostOptions,
    json: Option<&Path>,
) -> anyhow::Result<()> {
    let Resources { threads, memory, .. } = input.resources;
    let devices = gpu.describe_device_choice(input.expected_num_kmer_occurrences(), threads, memory)?;
    let mut plan = ForecastWithCost::new(input, rates, devices, &costs.power_and_prices());
    if costs.accelerators {
        plan = plan.with_accelerators();
    }
    if let Some(path) = json {
        let mut set = AtomicFileSet::default();
        json_file::add_json_file_with_schema_number(
            path,
            json_file::schema_numbers::FORECAST_SCHEMA_NUMBER,
            &serde_json::to_value(&plan)?,
            &mut set,
        )?;
        set.publish_all()?;
    }
    logging::print_result(render_forecast_with_cost(&plan))?;
    if !plan.forecast.fits {
        bail!("the call does not fit: {}", plan.forecast.advice.join("; "));
    }
    Ok(())
}

/// Formats the whole output of `genuma plan` and `genuma call --dry-run` as text.
fn render_forecast_with_cost(plan: &ForecastWithCost) -> String {
    let mut text = render_input(plan);
    let forecast = &plan.forecast;
    if forecast.refused.is_none() {
        text += &render_units(plan);
        let readings = match forecast.partitions {
            1 => "1: all k-mers are counted in one pass over the reads".to_owned(),
            n => format!("{n}: the reads are read once for each"),
        };
        let _ = writeln!(text, "\npartitions  {readings}");
        let packed_reads = match forecast.packed_bytes {
            0 => "none: later passes read the files again".to_owned(),
            bytes => format!("{}: later passes read packed reads", size_or_dash(bytes)),
        };
        let _ = writeln!(text, "packed      {packed_reads}");
        let _ = writeln!(text, "devices     {}", plan.devices);
        let _ = writeln!(text, "scratch     {} in the work folder at most", size_or_dash(forecast.scratch_bytes));
    }
    if !plan.accelerators.is_empty() {
        let _ = writeln!(text, "\n{}", render_accelerators(plan));
    }
    if let Some(kwh) = plan.energy_kwh {
        let energy = format_energy(kwh * 3.6e6);
        let _ = match plan.watts {
            Some(watts) => writeln!(text, "energy      {energy} at {watts:.0} W"),
            None => writeln!(text, "energy      {energy}, estimated from CPU time and memory; --watts gives the power"),
        };
    }
    if let Some(cost) = plan.cost {
        let _ = writeln!(text, "cost        {cost:.2}");
    }
    let rates = match (plan.num_earlier_runs, &plan.machine_speed) {
        (0, None) => format!(
            "measured on an {MACHINE_OF_MEASURED_RATES}; measure this machine with --measure, or give earlier runs on it with --from"
        ),
        (0, Some(speed)) => format!(
            "measured on an {MACHINE_OF_MEASURED_RATES}; this machine takes {:.2} times its CPU time (a call of simulated reads took {:.1} CPU s)",
            speed.cpu_time_ratio(),
            speed.cpu_s
        ),
        (runs, _) => format!("the medians of {}", format_count_with_noun(runs as u64, "earlier run")),
    };
    let _ = writeln!(text, "rates       {rates}");
    let verdict = match (&forecast.refused, forecast.fits) {
        (Some(why), _) => format!("does not fit: {why}"),
        (None, false) => "does not fit in the memory given".to_owned(),
        (None, true) => "fits".to_owned(),
    };
    let _ = writeln!(text, "\n{verdict}");
    forecast.advice.iter().for_each(|line| text += &format!("- {line}\n"));
    text
}

/// Formats the input and the resources of the call.
fn render_input(plan: &ForecastWithCost) -> String {
    let given = &plan.input;
    let [normal, tumour] = given.bases.map(|n| format_with_si_prefix(n as f64));
    let reference = given
        .reference_bases
        .map_or_else(|| "no reference".to_owned(), |n| format!("a reference of {}bp", format_with_si_prefix(n as f64)));
    let scratch = match given.resources.scratch {
        u64::MAX => "unlimited scratch space".to_owned(),
        bytes => format!("{} of scratch space", quantity::format_bytes(bytes)),
    };
    format!(
        "tumour {tumour}bp, normal {normal}bp in reads of {}, {reference}\n{}, {} of memory, {scratch}\n\n",
        given.read_length,
        format_count_with_noun(given.resources.threads as u64, "thread"),
        quantity::format_bytes(given.resources.memory),
    )
}

/// Formats a size in bytes; 0 is a dash.
fn size_or_dash(bytes: u64) -> String {
    if bytes == 0 { "-".to_owned() } else { quantity::format_bytes(bytes) }
}

/// Formats a table with a row for each way to count the k-mers.
fn render_accelerators(plan: &ForecastWithCost) -> String {
    let head = ["k-mers counted by", "CPU", "time", "energy", "rates"].map(str::to_owned);
    let row = |way: &CountingForecast| {
        let [cpu, wall] = [way.cpu_s, way.wall_s].map(format_duration);
        [way.counted_by.to_owned(), cpu, wall, format_energy(way.energy_j), way.basis.to_owned()]
    };
    let rows: Vec<_> = std::iter::once(head).chain(plan.accelerators.iter().map(row)).collect();
    format_text_table(&rows)
}

/// Formats a table with a row for each unit of the call, and a row of totals.
fn render_units(plan: &ForecastWithCost) -> String {
    let forecast = &plan.forecast;
    let mut rows = vec![["unit", "CPU", "time", "memory", "read", "written"].map(str::to_owned)];
    let row = |name: &str, seconds: [f64; 2], bytes: [u64; 3]| {
        let ([cpu, wall], [peak, read, written]) = (seconds.map(format_duration), bytes.map(size_or_dash));
        [name.to_owned(), cpu, wall, peak, read, written]
    };
    for unit in &forecast.units {
        let bytes = [unit.peak_bytes, unit.read_bytes, unit.written_bytes];
        rows.push(row(unit.name, [unit.cpu_s, unit.wall_s], bytes));
    }
    let ([read, written], peak) = (forecast.total_read_and_written_bytes(), forecast.peak_memory_bytes());
    rows.push(row("all", [forecast.total_cpu_s(), forecast.total_wall_s()], [peak, read, written]));
    format_text_table(&rows)
}
