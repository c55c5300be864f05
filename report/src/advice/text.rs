//! Formats the advice as text, for the terminal, the log and the HTML page.

use std::fmt::Write;

use genuma_strategy::Strategy;
use genuma_strategy::advisor::{Advice, ConsideredStrategy, TrialStopReason};

use super::AdvisedRun;

/// Returns the advice as text: a line about the run, a table of strategies, and the decision.
pub fn format_advice(case: &AdvisedRun, advice: &Advice) -> String {
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
        let measured =
            advice.mean_and_range_of_trials_s(one.strategy).map_or("-".to_owned(), |[mean, ..]| format_seconds(mean));
        let _ = writeln!(
            text,
            "{:14} {:>12} {:>21} {measured:>12} {:>7}  {}",
            one.strategy.to_string(),
            format_seconds(predicted.seconds),
            format!("{} to {}", format_seconds(predicted.low), format_seconds(predicted.high)),
            one.measured.len(),
            describe_strategy_gain_or_advice(advice, one)
        );
    }
    for refused in &advice.refused {
        let strategy = refused.strategy.to_string();
        let why = refused.why.strip_prefix(&format!("{strategy}: ")).unwrap_or(&refused.why);
        let _ = writeln!(text, "{strategy:14} not possible: {why}");
    }
    let _ = writeln!(text, "\n{}\n{}", describe_trials(advice), describe_decision(advice));
    text
}

/// Describes one strategy in a few words: that it is advised, that it is the plain run, or else its speed relative to
/// the plain run (measured if trials measured both, otherwise predicted).
pub fn describe_strategy_gain_or_advice(advice: &Advice, one: &ConsideredStrategy) -> String {
    let plain = advice.considered.iter().find(|other| other.strategy == Strategy::PLAIN_RUN);
    if one.strategy == advice.strategy {
        return if one.strategy == Strategy::PLAIN_RUN { "advised: do nothing" } else { "advised" }.to_owned();
    }
    if one.strategy == Strategy::PLAIN_RUN {
        return "the plain run".to_owned();
    }
    let measured = |strategy| advice.mean_and_range_of_trials_s(strategy).map(|[mean, ..]| mean);
    let (against, how) = match (measured(Strategy::PLAIN_RUN), measured(one.strategy)) {
        (Some(plain), Some(own)) => (plain / own, "measured"),
        _ => (plain.map_or(f64::NAN, |plain| plain.predicted.seconds) / one.predicted.seconds, "predicted"),
    };
    format!("{} the plain run's speed, {how}", format_factor(against))
}

/// Describes how many trials were run and why they ended.
pub fn describe_trials(advice: &Advice) -> String {
    let spent = format!("{} s of {} s allowed", format_seconds(advice.spent_s), format_seconds(advice.budget_s));
    let n = advice.num_trials();
    let trials = format!("{n} trial{}", if n == 1 { "" } else { "s" });
    match advice.stopped {
        TrialStopReason::NoChoice => "No trials: there is only one strategy.".to_owned(),
        TrialStopReason::NoTrialsRequested => "No trials: the model decided alone.".to_owned(),
        TrialStopReason::FirstTrialTooLong => {
            format!(
                "No trials: the first would take more than the {} s allowed; the model decided alone.",
                format_seconds(advice.budget_s)
            )
        }
        TrialStopReason::BudgetUsedUp => format!("{trials}, {spent}: the next trial would have exceeded the limit."),
        TrialStopReason::NoTrialWorthwhile => {
            format!("{trials}, {spent}: another trial would cost more time than it is likely to save.")
        }
    }
}

/// States the advice in a sentence: what to do, and the expected gain with its 95% interval.
pub fn describe_decision(advice: &Advice) -> String {
    let verdict = &advice.verdict;
    let interval = format!("{} to {} in 19 of 20 cases", format_factor(verdict.low), format_factor(verdict.high));
    if advice.strategy == Strategy::PLAIN_RUN {
        return match verdict.strategy {
            Strategy::PLAIN_RUN if advice.num_trials() > 0 => {
                "Do nothing: the plain run is the fastest of those tried.".to_owned()
            }
            Strategy::PLAIN_RUN => "Do nothing: the model predicts that the plain run is the fastest.".to_owned(),
            other => format!(
                "Do nothing: {other} would be {} the plain run's speed ({interval}), which is not worth a change.",
                format_factor(verdict.gain)
            ),
        };
    }
    let sure = match (verdict.low >= 1.0, advice.num_trials() > 0, advice.stopped) {
        (true, true, _) => "",
        (true, false, _) => " This is a prediction of the model without trials.",
        (false, true, TrialStopReason::BudgetUsedUp) => {
            " There may be no gain: run more trials (--trial-budget) to find out."
        }
        (false, true, _) => " There may be no gain.",
        (false, false, _) => " There may be no gain; this is a prediction of the model without trials.",
    };
    format!(
        "Run it with --strategy {}: {} the plain run's speed is expected ({interval}).{sure}",
        advice.strategy,
        format_factor(verdict.gain)
    )
}

/// Explains in a short text, for the log of `genuma run`, why it chose the strategy.
pub fn explain_choice_for_log(case: &AdvisedRun, advice: &Advice) -> String {
    let by = match (advice.num_trials(), advice.stopped) {
        (0, TrialStopReason::FirstTrialTooLong) => {
            "predicted by the model, because the run is too short for trials".to_owned()
        }
        (0, _) => "predicted by the model".to_owned(),
        (n, _) => format!("after {n} trials of {} s in total", format_seconds(advice.spent_s)),
    };
    let gain = match advice.strategy {
        Strategy::PLAIN_RUN => "nothing else is expected to be faster".to_owned(),
        _ => format!("{} the plain run's speed is expected", format_factor(advice.verdict.gain)),
    };
    format!("{gain}, {by} ({} nodes, {})", case.machine.nodes.len(), case.source)
}

/// Formats seconds with three significant digits, but at most two decimals. A time that is unknown (not finite) is a
/// dash.
fn format_seconds(s: f64) -> String {
    match s {
        s if !s.is_finite() => "-".to_owned(),
        s if s >= 99.95 => format!("{s:.0}"),
        s if s >= 9.995 => format!("{s:.1}"),
        s => format!("{s:.2}"),
    }
}

fn format_factor(times: f64) -> String {
    format!("{times:.2}x")
}
