//! The page of `genuma advise --explain`: the machine, the candidates, predicted and measured times, the decision.

mod bars;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use std::fmt::Write;

use genuma_strategy::Strategy;
use genuma_strategy::advisor::{Advice, Refused};
use genuma_strategy::model::{Application, Machine};
use serde::Serialize;

use super::BASE_STYLE;
use super::markup::{bytes, counted, duration, escape, figure, fill};
use super::plot;

/// A command on a machine, and what is known of both.
#[derive(Debug, Serialize)]
pub(crate) struct Case {
    /// The aligner's name.
    pub(crate) aligner: String,
    /// The command as it was given.
    pub(crate) command: String,
    /// Threads of all instances together.
    pub(crate) threads: usize,
    /// Where the machine's numbers are from, in words.
    pub(crate) source: String,
    /// The machine.
    pub(crate) machine: Machine,
    /// The run, before any trial.
    pub(crate) application: Application,
}

/// The page, complete. There is no script in it.
pub(crate) fn render(case: &Case, advice: &Advice) -> String {
    fill(include_str!("page.html"), |name| match name {
        "style" => [BASE_STYLE, include_str!("style.css")].concat(),
        "made_by" => format!("genuma {}", env!("CARGO_PKG_VERSION")),
        "aligner" => escape(&case.aligner),
        "command" => escape(&case.command),
        "decision" => escape(&words::decision(advice)),
        "numbers" => numbers(case, advice),
        "times" => times(case, advice),
        "trials" => escape(&words::trials(advice)),
        "candidates" => candidates(advice),
        "refused" => refused(&advice.refused),
        "source" => escape(&case.source).replace("`genuma probe`", "<code>genuma probe</code>"),
        "nodes" => nodes(&case.machine),
        "pairs" => pairs(&case.machine),
        _ => String::new(),
    })
}

/// The key numbers.
fn numbers(case: &Case, advice: &Advice) -> String {
    let mut html = String::new();
    let mut tile = |name: &str, value: &str, more: &str| {
        let _ = write!(html, "<div><dt>{name}</dt><dd><b>{value}</b><span>{more}</span></dd></div>");
    };
    let verdict = &advice.verdict;
    let (strategy, gain) = match advice.strategy {
        Strategy::PLAIN => ("do nothing".to_owned(), "no gain".to_owned()),
        other => (other.to_string(), format!("{:.2} ×", verdict.gain)),
    };
    let between = match advice.strategy {
        Strategy::PLAIN => "to be had over the plain run".to_owned(),
        _ => format!("the plain run's; {:.2} to {:.2} in 19 of 20 cases", verdict.low, verdict.high),
    };
    tile("Advice", &escape(&strategy), "for genuma run --strategy");
    tile("Speed", &gain, &between);
    let plain = advice.considered.iter().find(|one| one.strategy == Strategy::PLAIN);
    let whole = advice.measured(Strategy::PLAIN).map(|[mean, ..]| (mean, "as its trials foretell"));
    if let Some((seconds, how)) = whole.or(plain.map(|one| (one.predicted.seconds, "as the model predicts")))
    {
        tile("The plain run", &duration(seconds), how);
    }
    let app = &case.application;
    tile("Reads", &super::markup::short(app.reads), "by the files' sizes");
    tile("Index", &bytes(app.index_bytes), "of which each instance has a copy");
    html
}

fn times(case: &Case, advice: &Advice) -> String {
    let whiskers = "Bars are seconds of the whole run. Whiskers: of predictions, where two of three runs should lie; of \
                    measured times, the least and the most of the trials.";
    let title = format!("{} on {}", escape(&case.aligner), counted(case.threads as u64, "thread"));
    plot::figure(&title, whiskers, &bars::KEYS, &bars::chart(advice))
}

fn candidates(advice: &Advice) -> String {
    let mut rows = String::new();
    for one in &advice.considered {
        let measured = advice.measured(one.strategy).map_or("–".to_owned(), |[mean, least, most]| {
            if one.measured.len() > 1 {
                format!("{} ({} to {})", figure(mean), figure(least), figure(most))
            } else {
                figure(mean)
            }
        });
        let predicted = one.predicted;
        let _ = write!(
            rows,
            "<tr{}><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{} to {}</td><td class=\"n\">{measured}</td>\
             <td class=\"n\">{}</td><td>{}</td></tr>",
            if one.strategy == advice.strategy { " class=\"advised\"" } else { "" },
            one.strategy,
            figure(predicted.seconds),
            figure(predicted.low),
            figure(predicted.high),
            one.measured.len(),
            escape(&words::verdict(advice, one))
        );
    }
    rows
}

fn refused(refused: &[Refused]) -> String {
    if refused.is_empty() {
        return "<p class=\"note\">All strategies that were thought of can be had.</p>".to_owned();
    }
    let items: String = refused
        .iter()
        .map(|one| format!("<div><dt>{}</dt><dd>{}</dd></div>", one.strategy, escape(&one.why)))
        .collect();
    format!("<dl class=\"run\">{items}</dl>")
}

fn nodes(machine: &Machine) -> String {
    let row = |(n, node): (usize, &genuma_strategy::model::Node)| {
        format!(
            "<tr><th scope=\"row\">{n}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            node.cores,
            node.threads,
            bytes(node.memory_bytes)
        )
    };
    machine.nodes.iter().enumerate().map(row).collect()
}

/// Latency and bandwidth from each node to each; of one node there is one pair.
fn pairs(machine: &Machine) -> String {
    let all = 0..machine.nodes.len();
    let head: String = all.clone().map(|to| format!("<th scope=\"col\" class=\"n\">to {to}</th>")).collect();
    let row = |from: usize| {
        let cell = |to: usize| {
            format!(
                "<td class=\"n\">{} ns<br>{} GB/s</td>",
                figure(machine.latency_ns[from][to]),
                figure(machine.bandwidth_gbs[from][to])
            )
        };
        format!("<tr><th scope=\"row\">from {from}</th>{}</tr>", all.clone().map(cell).collect::<String>())
    };
    let rows: String = all.clone().map(row).collect();
    format!("<table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table>")
}
