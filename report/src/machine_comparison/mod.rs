//! The HTML page of `genuma plan --machines --html`: time, energy and cost of a call on each machine of a table.

#[cfg(test)]
mod tests;

use std::fmt::Write;

use genuma_planner::machine_comparison::{CallCost, CallOnMachine, MachineComparison};
use genuma_planner::machine_table::Machine;
use genuma_work::quantity::{
    format_bytes, format_duration, format_energy, format_three_digits, format_with_si_prefix, group_thousands,
};

use crate::BASE_STYLE;
use crate::markup::{escape_html, fill_template};
use crate::plot::{LegendKey, StackedHorizontalBar, horizontal_bar_chart, html_figure};

const BOUGHT_KEY: LegendKey<'static> = LegendKey { style: "bought", name: "bought, or without a price" };
const RENTED_KEY: LegendKey<'static> = LegendKey { style: "rented", name: "rented" };
/// Width that a letter of a chart takes, and the largest width of names and of values (SVG units).
const LETTER_WIDTH: f64 = 7.0;
const MAX_NAME_WIDTH: f64 = 190.0;
const VALUE_WIDTH: f64 = 95.0;

/// Returns the HTML page. It contains no script.
pub fn render_page(comparison: &MachineComparison) -> String {
    fill_template(include_str!("page.html"), |name| match name {
        "style" => [BASE_STYLE, include_str!("style.css")].concat(),
        "made_by" => format!("genuma {}", comparison.genuma),
        "input" => escape_html(&describe_input(comparison)),
        "rows" => cost_rows(comparison),
        "notes" => note_paragraphs(comparison),
        "charts" => charts(comparison),
        "relative" => relative_rows(comparison),
        "machines" => machine_rows(comparison),
        _ => String::new(),
    })
}

fn describe_input(comparison: &MachineComparison) -> String {
    let [normal, tumour] = comparison.bases.map(|n| format_with_si_prefix(n as f64));
    let reference = comparison
        .reference_bases
        .map_or_else(|| "no reference".to_owned(), |n| format!("a reference of {}bp", format_with_si_prefix(n as f64)));
    format!("Tumour {tumour}bp, normal {normal}bp, {reference}")
}

fn note_paragraphs(comparison: &MachineComparison) -> String {
    comparison.notes().iter().map(|note| format!("<p class=\"note after\">{}</p>\n", escape_html(note))).collect()
}

fn format_money(amount: Option<f64>) -> String {
    amount.map_or_else(|| "–".to_owned(), format_three_digits)
}

fn cost_rows(comparison: &MachineComparison) -> String {
    let mut html = String::new();
    for compared in &comparison.machines {
        let name = escape_html(&compared.machine.name);
        let Some(cost) = &compared.cost else {
            let _ = write!(
                html,
                r#"<tr><th scope="row">{name}</th><td colspan="7">does not fit: {}</td></tr>"#,
                escape_html(compared.why_it_does_not_fit())
            );
            continue;
        };
        let cells = [
            group_thousands(cost.num_machines),
            format_duration(cost.wall_s),
            format_duration(cost.cpu_s),
            cost.energy_text(),
            group_thousands(cost.calls),
            format_money(cost.cost_per_call),
            format_money(cost.total_cost),
        ];
        let _ = write!(html, r#"<tr><th scope="row">{name}</th>{}</tr>"#, number_cells(&cells));
    }
    html
}

fn number_cells(cells: &[String]) -> String {
    cells.iter().map(|cell| format!(r#"<td class="n">{}</td>"#, escape_html(cell))).collect()
}

/// Title and caption of a chart, value of a machine, format of the value.
type Chart = (&'static str, &'static str, fn(&Machine, &CallCost) -> Option<f64>, fn(f64) -> String);

const CHARTS: [Chart; 6] = [
    ("Time of a call", "Wall-clock time.", |_, cost| Some(cost.wall_s), format_duration),
    ("Energy of a call", "Power times time, or an estimate.", |_, cost| Some(cost.energy_kwh * 3.6e6), format_energy),
    ("CPU time of a call", "Of all threads.", |_, cost| Some(cost.cpu_s), format_duration),
    ("Price of the machine", "Of one machine that is bought.", |machine, _| machine.price, format_three_digits),
    ("Cost of a call", "Total divided by the number of calls.", |_, cost| cost.cost_per_call, format_three_digits),
    ("Total", "Machines, energy and hours of all calls.", |_, cost| cost.total_cost, format_three_digits),
];

fn charts(comparison: &MachineComparison) -> String {
    let fitting: Vec<(&Machine, &CallCost)> =
        comparison.machines.iter().filter_map(|one| Some((&one.machine, one.cost.as_ref()?))).collect();
    let longest = fitting.iter().map(|(machine, _)| machine.name.chars().count()).max().unwrap_or(0);
    let names = (longest as f64 * LETTER_WIDTH + 16.0).min(MAX_NAME_WIDTH);
    let mut html = String::new();
    for (title, caption, value_of, format) in CHARTS {
        let values: Vec<(&Machine, f64)> =
            fitting.iter().filter_map(|(machine, cost)| Some((*machine, value_of(machine, cost)?))).collect();
        if values.is_empty() {
            continue;
        }
        let bars: Vec<StackedHorizontalBar> =
            values.iter().map(|(machine, value)| bar(machine, *value, format)).collect();
        let described: Vec<String> = bars.iter().map(|bar| format!("{}: {}", bar.name, bar.text)).collect();
        let keys: Vec<LegendKey> = [BOUGHT_KEY, RENTED_KEY]
            .into_iter()
            .filter(|key| bars.iter().any(|bar| bar.parts[0].0.style == key.style))
            .collect();
        let keys = if keys.len() > 1 { &keys[..] } else { &[] };
        let svg = horizontal_bar_chart(&bars, (names, VALUE_WIDTH), &described.join("; "));
        html += &html_figure(title, caption, keys, &svg);
    }
    html
}

fn bar<'a>(machine: &Machine, value: f64, format: fn(f64) -> String) -> StackedHorizontalBar<'a> {
    let key = if machine.price_per_hour.is_some() { RENTED_KEY } else { BOUGHT_KEY };
    let name = shorten(&machine.name);
    let text = format(value);
    let title = format!("{}: {text}", machine.name);
    StackedHorizontalBar { name, parts: vec![(key, value, title)], text }
}

/// Shortens a name to the width that a chart has for it.
fn shorten(name: &str) -> String {
    let most = ((MAX_NAME_WIDTH - 16.0) / LETTER_WIDTH) as usize;
    match name.chars().count() > most {
        true => name.chars().take(most - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// Time, energy, power, price and cost as multiples of those of the first machine on which the call fits.
fn relative_rows(comparison: &MachineComparison) -> String {
    let fitting = || comparison.machines.iter().filter_map(|one| Some((&one.machine, one.cost.as_ref()?)));
    let values = |machine: &Machine, cost: &CallCost| {
        let watts = cost.energy_kwh * 3.6e6 / cost.wall_s;
        [Some(cost.wall_s), Some(cost.energy_kwh), Some(watts), machine.price, cost.cost_per_call]
    };
    let Some(first) = fitting().next().map(|(machine, cost)| values(machine, cost)) else { return String::new() };
    let mut html = String::new();
    for (machine, cost) in fitting() {
        let cells: Vec<String> = values(machine, cost)
            .iter()
            .zip(first)
            .map(|(value, first)| match value.zip(first.filter(|&first| first > 0.0)) {
                Some((value, first)) => format!("{:.2}", value / first),
                None => "–".to_owned(),
            })
            .collect();
        let _ = write!(html, r#"<tr><th scope="row">{}</th>{}</tr>"#, escape_html(&machine.name), number_cells(&cells));
    }
    html
}

fn machine_rows(comparison: &MachineComparison) -> String {
    let mut html = String::new();
    for CallOnMachine { machine, .. } in &comparison.machines {
        let cells = [
            group_thousands(machine.threads as u64),
            format_bytes(machine.memory),
            if machine.scratch == u64::MAX { "no limit".to_owned() } else { format_bytes(machine.scratch) },
            format!("{}", machine.cpu_time),
            machine.watts.map_or_else(|| "–".to_owned(), |watts| format!("{watts:.0}")),
            format_money(machine.price),
            format_money(machine.price_per_hour),
        ];
        let _ = write!(
            html,
            r#"<tr><th scope="row">{}</th>{}<td>{}</td></tr>"#,
            escape_html(&machine.name),
            number_cells(&cells),
            escape_html(&machine.source)
        );
    }
    html
}
