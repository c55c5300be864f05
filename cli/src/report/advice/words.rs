//! The answer in words: on a terminal, in a log, on a page.

use std::fmt::Write;

use genuma_strategy::Strategy;
use genuma_strategy::advisor::{Advice, Considered, Stopped};

use super::Case;

/// What was found, as text: a line on the case, a table, the decision.
pub(crate) fn table(case: &Case, advice: &Advice) -> String {
    let mut text = String::new();
    let app = &case.application;
    let nodes = case.machine.nodes.len();
    let _ = writeln!(
        text,
        "{}: {} threads, about {:.0} reads, an index of {:.1} MB; {nodes} node{}, {}\n",
        case.aligner,
        case.threads,
        app.reads,
        app.index_bytes as f64 / 1e6,
        if nodes == 1 { "" } else { "s" },
        case.source
    );
    let _ = writeln!(
        text,
        "{:14} {:>12} {:>21} {:>12} {:>7}  verdict",
        "strategy", "predicted s", "2 of 3 runs", "measured s", "trials"
    );
    for one in &advice.considered {
        let predicted = one.predicted;
        let measured = advice.measured(one.strategy).map_or("-".to_owned(), |[mean, ..]| seconds(mean));
        let _ = writeln!(
            text,
            "{:14} {:>12} {:>21} {measured:>12} {:>7}  {}",
            one.strategy.to_string(),
            seconds(predicted.seconds),
            format!("{} to {}", seconds(predicted.low), seconds(predicted.high)),
            one.measured.len(),
            verdict(advice, one)
        );
    }
    for refused in &advice.refused {
        let strategy = refused.strategy.to_string();
        let why = refused.why.strip_prefix(&format!("{strategy}: ")).unwrap_or(&refused.why);
        let _ = writeln!(text, "{strategy:14} cannot be had: {why}");
    }
    let _ = writeln!(text, "\n{}\n{}", trials(advice), decision(advice));
    text
}

/// What is held of a strategy, in a few words.
pub(crate) fn verdict(advice: &Advice, one: &Considered) -> String {
    let plain = advice.considered.iter().find(|other| other.strategy == Strategy::PLAIN);
    if one.strategy == advice.strategy {
        return if one.strategy == Strategy::PLAIN { "advised: do nothing" } else { "advised" }.to_owned();
    }
    if one.strategy == Strategy::PLAIN {
        return "the plain run".to_owned();
    }
    let measured = |strategy| advice.measured(strategy).map(|[mean, ..]| mean);
    let (against, how) = match (measured(Strategy::PLAIN), measured(one.strategy)) {
        (Some(plain), Some(own)) => (plain / own, "measured"),
        _ => (plain.map_or(f64::NAN, |plain| plain.predicted.seconds) / one.predicted.seconds, "predicted"),
    };
    format!("{} the plain run's speed, {how}", factor(against))
}

/// How the trials went.
pub(crate) fn trials(advice: &Advice) -> String {
    let spent = format!("{} s of {} s allowed", seconds(advice.spent_s), seconds(advice.budget_s));
    let n = advice.trials();
    let trials = format!("{n} trial{}", if n == 1 { "" } else { "s" });
    match advice.stopped {
        Stopped::NoChoice => "No trials: there is nothing to choose.".to_owned(),
        Stopped::NotWanted => "No trials: the model alone decided.".to_owned(),
        Stopped::TooShort => {
            format!(
                "No trials: the first would take more than the {} s allowed; the model alone decided.",
                seconds(advice.budget_s)
            )
        }
        Stopped::Spent => format!("{trials}, {spent}: the next would have taken more."),
        Stopped::Clear => format!("{trials}, {spent}: another would cost more than it is likely to gain."),
    }
}

/// What to do, and what it is worth.
pub(crate) fn decision(advice: &Advice) -> String {
    let verdict = &advice.verdict;
    let interval = format!("{} to {} in 19 of 20 cases", factor(verdict.low), factor(verdict.high));
    if advice.strategy == Strategy::PLAIN {
        return match verdict.strategy {
            Strategy::PLAIN if advice.trials() > 0 => {
                "Do nothing: the plain run is the fastest of those tried.".to_owned()
            }
            Strategy::PLAIN => "Do nothing: the plain run is the fastest, by the model alone.".to_owned(),
            other => format!(
                "Do nothing: {other} would be {} the plain run's speed ({interval}), which is not worth a change.",
                factor(verdict.gain)
            ),
        };
    }
    let sure = match (verdict.low >= 1.0, advice.trials() > 0, advice.stopped) {
        (true, true, _) => "",
        (true, false, _) => " This is the model's word alone.",
        (false, true, Stopped::Spent) => {
            " It may be no gain at all: more trials (--pilot-budget) would tell."
        }
        (false, true, _) => " It may be no gain at all.",
        (false, false, _) => " It may be no gain at all, and is the model's word alone.",
    };
    format!(
        "Run it with --strategy {}: {} the plain run's speed is expected ({interval}).{sure}",
        advice.strategy,
        factor(verdict.gain)
    )
}

/// Why `genuma run` takes what it takes, for a log.
pub(crate) fn short(case: &Case, advice: &Advice) -> String {
    let by = match (advice.trials(), advice.stopped) {
        (0, Stopped::TooShort) => "the run is too short for trials, so by the model alone".to_owned(),
        (0, _) => "by the model alone".to_owned(),
        (n, _) => format!("after {n} trials of {} s in all", seconds(advice.spent_s)),
    };
    let gain = match advice.strategy {
        Strategy::PLAIN => "nothing else is expected to be faster".to_owned(),
        _ => format!("{} the plain run's speed is expected", factor(advice.verdict.gain)),
    };
    format!("{gain}, {by} ({} nodes, {})", case.machine.nodes.len(), case.source)
}

/// Seconds with three digits.
fn seconds(s: f64) -> String {
    match s {
        s if !s.is_finite() => "-".to_owned(),
        s if s >= 99.95 => format!("{s:.0}"),
        s if s >= 9.995 => format!("{s:.1}"),
        s => format!("{s:.2}"),
    }
}

fn factor(times: f64) -> String {
    format!("{times:.2}x")
}
