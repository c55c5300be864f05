//! The HTML page of `genuma machine advise --explain`: machine, strategies, predicted and measured times, and the advice.

mod bars;
mod curves;
pub mod placement_text;
#[cfg(test)]
mod tests;
pub mod text;

use std::fmt::Write;

use genuma_strategy::Strategy;
use genuma_strategy::advisor::{Advice, RefusedStrategy};
use genuma_strategy::known_cases::KnownCase;
use genuma_strategy::launch_commands::LaunchCommands;
use genuma_strategy::model::{ApplicationModel, MachineModel, NodeModel};
use genuma_strategy::node_subset::NodeSubset;
use genuma_strategy::sweep::SweepPoint;
use genuma_work::quantity::{
    format_bytes, format_count_with_noun, format_duration, format_three_digits, format_with_si_prefix,
};
use serde::Serialize;

use super::BASE_STYLE;
use super::markup::{escape_html, fill_template};
use super::plot;

/// The aligner command that the advice is for, with the machine and the model of the application.
#[derive(Debug, Serialize)]
pub struct AdvisedRun {
    /// Name of the aligner.
    pub aligner: String,
    /// The command line as given, with the number of threads filled in.
    pub command: String,
    /// Number of threads of all instances together.
    pub threads: usize,
    /// Where the latency and bandwidth of the machine come from, as text.
    pub source: String,
    /// The machine that the command runs on.
    pub machine: MachineModel,
    /// The parameters of the command for the performance model, before any trial.
    pub application: ApplicationModel,
}

/// Placement of the advised strategy.
#[derive(Debug)]
pub struct PlacementAdvice {
    /// The chosen nodes; `None` if all nodes may be used.
    pub nodes: Option<NodeSubset>,
    /// Command lines for use without genuma.
    pub launch: LaunchCommands,
    /// Measurements of others that apply to the advised strategy.
    pub known_cases: Vec<&'static KnownCase>,
    /// Whether the command lines read parts of the reads that the user makes, and not the files of the command.
    pub has_read_parts: bool,
}

/// Returns the HTML page. It contains no script. `points` are the predicted run times by number of threads.
pub fn render_page(case: &AdvisedRun, advice: &Advice, placement: &PlacementAdvice, points: &[SweepPoint]) -> String {
    fill_template(include_str!("page.html"), |name| match name {
        "style" => [BASE_STYLE, include_str!("style.css")].concat(),
        "made_by" => format!("genuma {}", env!("CARGO_PKG_VERSION")),
        "aligner" => escape_html(&case.aligner),
        "command" => escape_html(&case.command),
        "decision" => escape_html(&text::describe_decision(advice)),
        "numbers" => key_numbers(case, advice),
        "times" => times_figure(case, advice),
        "curves" => curves::predicted_time_curves_figure(points, case, advice),
        "placement" => escape_html(&placement_text::format_placement(placement)),
        "trials" => escape_html(&text::describe_trials(advice)),
        "candidates" => candidate_rows(advice),
        "refused" => refused_list(&advice.refused),
        "source" => {
            escape_html(&case.source).replace("`genuma machine measure`", "<code>genuma machine measure</code>")
        }
        "nodes" => node_rows(&case.machine),
        "pairs" => node_pair_table(&case.machine),
        _ => String::new(),
    })
}

/// Tiles with the key numbers.
fn key_numbers(case: &AdvisedRun, advice: &Advice) -> String {
    let mut html = String::new();
    let mut tile = |name: &str, value: &str, more: &str| {
        let _ = write!(html, "<div><dt>{name}</dt><dd><b>{value}</b><span>{more}</span></dd></div>");
    };
    let verdict = &advice.verdict;
    let (strategy, gain) = match advice.strategy {
        Strategy::PLAIN_RUN => ("do nothing".to_owned(), "no gain".to_owned()),
        other => (other.to_string(), format!("{:.2} ×", verdict.gain)),
    };
    let between = match advice.strategy {
        Strategy::PLAIN_RUN => "over the plain run".to_owned(),
        _ => format!("the plain run's; {:.2} to {:.2} in 19 of 20 cases", verdict.low, verdict.high),
    };
    tile("Advice", &escape_html(&strategy), "for genuma run --strategy");
    tile("Speed", &gain, &between);
    let plain = advice.considered.iter().find(|one| one.strategy == Strategy::PLAIN_RUN);
    let whole =
        advice.mean_and_range_of_trials_s(Strategy::PLAIN_RUN).map(|[mean, ..]| (mean, "extrapolated from its trials"));
    if let Some((seconds, how)) = whole.or(plain.map(|one| (one.predicted.seconds, "as the model predicts"))) {
        tile("The plain run", &format_duration(seconds), how);
    }
    let app = &case.application;
    tile("Reads", &format_with_si_prefix(app.reads), "estimated from file sizes");
    tile("Index", &format_bytes(app.index_bytes), "each instance has a copy");
    html
}

fn times_figure(case: &AdvisedRun, advice: &Advice) -> String {
    let whiskers = "Bars are seconds of the whole run. Whiskers: of predictions, the interval of two of three runs; of \
                    measured times, the shortest and the longest trial.";
    let title = format!("{} on {}", escape_html(&case.aligner), format_count_with_noun(case.threads as u64, "thread"));
    plot::html_figure(&title, whiskers, &bars::STRATEGY_TIME_LEGEND, &bars::strategy_time_chart(advice))
}

fn candidate_rows(advice: &Advice) -> String {
    let mut rows = String::new();
    for one in &advice.considered {
        let measured =
            advice.mean_and_range_of_trials_s(one.strategy).map_or("–".to_owned(), |[mean, least, most]| {
                if one.measured.len() > 1 {
                    format!(
                        "{} ({} to {})",
                        format_three_digits(mean),
                        format_three_digits(least),
                        format_three_digits(most)
                    )
                } else {
                    format_three_digits(mean)
                }
            });
        let predicted = one.predicted;
        let _ = write!(
            rows,
            "<tr{}><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{} to {}</td><td class=\"n\">{measured}</td>\
             <td class=\"n\">{}</td><td>{}</td></tr>",
            if one.strategy == advice.strategy { " class=\"advised\"" } else { "" },
            one.strategy,
            format_three_digits(predicted.seconds),
            format_three_digits(predicted.low),
            format_three_digits(predicted.high),
            one.measured.len(),
            escape_html(&text::describe_strategy_gain_or_advice(advice, one))
        );
    }
    rows
}

fn refused_list(refused: &[RefusedStrategy]) -> String {
    if refused.is_empty() {
        return "<p class=\"note\">All strategies that were considered are possible.</p>".to_owned();
    }
    let items: String = refused
        .iter()
        .map(|one| format!("<div><dt>{}</dt><dd>{}</dd></div>", one.strategy, escape_html(&one.why)))
        .collect();
    format!("<dl class=\"run\">{items}</dl>")
}

fn node_rows(machine: &MachineModel) -> String {
    let row = |node: &NodeModel| {
        format!(
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            node.id,
            node.cores,
            node.threads,
            format_bytes(node.memory_bytes)
        )
    };
    machine.nodes.iter().map(row).collect()
}

/// Table of latency and bandwidth between all pairs of nodes.
fn node_pair_table(machine: &MachineModel) -> String {
    let all = 0..machine.nodes.len();
    let id = |index: usize| machine.nodes[index].id;
    let head: String = all.clone().map(|to| format!("<th scope=\"col\" class=\"n\">to {}</th>", id(to))).collect();
    let row = |from: usize| {
        let cell = |to: usize| {
            format!(
                "<td class=\"n\">{} ns<br>{} GB/s</td>",
                format_three_digits(machine.latency_ns[from][to]),
                format_three_digits(machine.bandwidth_gbs[from][to])
            )
        };
        format!("<tr><th scope=\"row\">from {}</th>{}</tr>", id(from), all.clone().map(cell).collect::<String>())
    };
    let rows: String = all.clone().map(row).collect();
    format!("<table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>")
}
