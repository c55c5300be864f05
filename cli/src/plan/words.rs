//! A plan as a table and some lines.

use std::fmt::Write;

use super::Plan;
use crate::forecast::rates::MACHINE;
use crate::report::markup::{counted, duration, short};
use crate::sizes;

/// The whole of a plan, as it is printed.
pub(crate) fn text(plan: &Plan) -> String {
    let mut text = input(plan);
    let forecast = &plan.forecast;
    if forecast.refused.is_none() {
        text += &table(plan);
        let readings = match forecast.partitions {
            1 => "1: all k-mers are counted in one reading of all reads".to_owned(),
            n => format!("{n}: all reads are read for each"),
        };
        let _ = writeln!(text, "\npartitions  {readings}");
        let copied = match forecast.copied {
            0 => "none: later passes read the files again".to_owned(),
            bytes => format!("{}: later passes read a packed copy of the reads", size(bytes)),
        };
        let _ = writeln!(text, "copy        {copied}");
        let _ = writeln!(text, "devices     {}", plan.gpu);
        let _ = writeln!(text, "scratch     {} in the work folder at most", size(forecast.scratch_bytes));
    }
    match (plan.energy_kwh, plan.watts) {
        (Some(kwh), Some(watts)) => {
            let _ = writeln!(text, "energy      {kwh:.2} kWh at {watts:.0} W");
        }
        _ if forecast.refused.is_some() => {}
        _ => text += "energy      unknown: give --watts\n",
    }
    if let Some(cost) = plan.cost {
        let _ = writeln!(text, "cost        {cost:.2}");
    }
    let _ = match plan.runs {
        0 => writeln!(
            text,
            "rates       those of an {MACHINE}: no earlier run of this machine is given (--from)"
        ),
        runs => writeln!(text, "rates       the medians of {}", counted(runs as u64, "earlier run")),
    };
    let verdict = match (&forecast.refused, forecast.fits) {
        (Some(why), _) => format!("does not fit: {why}"),
        (None, false) => "does not fit in the memory given".to_owned(),
        (None, true) => "fits".to_owned(),
    };
    let _ = writeln!(text, "\n{verdict}");
    forecast.advice.iter().for_each(|line| text += &format!("- {line}\n"));
    text
}

/// What the plan is for.
fn input(plan: &Plan) -> String {
    let given = &plan.given;
    let [normal, tumour] = given.bases.map(|n| short(n as f64));
    let reference = given
        .reference
        .map_or_else(|| "no reference".to_owned(), |n| format!("a reference of {}bp", short(n as f64)));
    let scratch = match given.means.scratch {
        u64::MAX => "as much scratch as it wants".to_owned(),
        bytes => format!("{} of scratch", sizes::show(bytes)),
    };
    format!(
        "tumour {tumour}bp, normal {normal}bp in reads of {}, {reference}\n{}, {} of memory, {scratch}\n\n",
        given.read_length,
        counted(given.means.threads as u64, "thread"),
        sizes::show(given.means.memory),
    )
}

/// Bytes, or a dash for none.
fn size(bytes: u64) -> String {
    if bytes == 0 { "-".to_owned() } else { sizes::show(bytes) }
}

/// The units under each other, and their sums.
fn table(plan: &Plan) -> String {
    let forecast = &plan.forecast;
    let mut rows = vec![["unit", "CPU", "time", "memory", "read", "written"].map(str::to_owned)];
    let row = |name: &str, seconds: [f64; 2], bytes: [u64; 3]| {
        let ([cpu, wall], [peak, read, written]) = (seconds.map(duration), bytes.map(size));
        [name.to_owned(), cpu, wall, peak, read, written]
    };
    for unit in &forecast.units {
        let bytes = [unit.peak_bytes, unit.read_bytes, unit.written_bytes];
        rows.push(row(unit.name, [unit.cpu_s, unit.wall_s], bytes));
    }
    let ([read, written], peak) = (forecast.moved(), forecast.peak_bytes());
    rows.push(row("all", [forecast.cpu_s(), forecast.wall_s()], [peak, read, written]));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(i, (cell, &width))| match i {
            0 => format!("{cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        });
        cells.collect::<String>() + "\n"
    };
    rows.iter().map(line).collect()
}
