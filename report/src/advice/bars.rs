//! Bar chart of the predicted and the measured time of each strategy.

use std::fmt::Write;

use genuma_strategy::advisor::Advice;
use genuma_work::quantity::{format_duration, format_three_digits};

use crate::markup::escape_html;
use crate::plot::LegendKey;

/// Legend of the bar chart.
pub const STRATEGY_TIME_LEGEND: [LegendKey<'static>; 2] = [
    LegendKey { style: "predicted", name: "predicted" },
    LegendKey { style: "measured", name: "measured on a sample" },
];

const CHART_WIDTH: f64 = 900.0;
/// Width reserved for the strategy names on the left, in SVG units.
const NAMES_WIDTH: f64 = 120.0;
/// Width reserved for the times on the right, in SVG units.
const VALUES_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 13.0;
const ROW_HEIGHT: f64 = 46.0;
const AXIS_HEIGHT: f64 = 40.0;

/// One bar of the chart: a time with the ends of its interval, in seconds.
struct TimeBar {
    seconds: f64,
    low: f64,
    high: f64,
    key: LegendKey<'static>,
}

/// Draws the predicted and the measured time of each strategy as SVG, sorted by predicted time.
pub fn strategy_time_chart(advice: &Advice) -> String {
    let rows = list_strategy_rows(advice);
    let max_s = rows.iter().flat_map(|(_, _, bars)| bars).map(|bar| bar.high.max(bar.seconds)).fold(0.0, f64::max);
    let most = if max_s > 0.0 { max_s } else { 1.0 };
    let across = |s: f64| NAMES_WIDTH + (CHART_WIDTH - NAMES_WIDTH - VALUES_WIDTH) * s / most;
    let height = ROW_HEIGHT * rows.len() as f64 + AXIS_HEIGHT;
    let mut svg = format!(
        r#"<svg viewBox="0 0 {CHART_WIDTH} {height}" role="img" aria-label="{}">"#,
        escape_html(&describe_chart(&rows))
    );
    let floor = height - AXIS_HEIGHT;
    for tick in axis_ticks(most) {
        let _ = write!(
            svg,
            r#"<path class="grid" d="M{0:.1} 0V{floor}"/><text x="{0:.1}" y="{1}" text-anchor="middle">{2}</text>"#,
            across(tick),
            floor + 17.0,
            // Rounded, so that floating-point noise is not shown.
            (tick * 1e9).round() / 1e9
        );
    }
    let _ = write!(
        svg,
        r#"<text class="label" x="{}" y="{}" text-anchor="middle">seconds of the whole run</text>"#,
        (NAMES_WIDTH + CHART_WIDTH - VALUES_WIDTH) / 2.0,
        floor + 35.0
    );
    for (n, (name, advised, bars)) in rows.iter().enumerate() {
        let top = ROW_HEIGHT * n as f64;
        let _ = write!(
            svg,
            r#"<text class="{}" x="{}" y="{}" text-anchor="end">{}</text>"#,
            if *advised { "label strong" } else { "label" },
            NAMES_WIDTH - 10.0,
            top + ROW_HEIGHT / 2.0 + 4.0,
            escape_html(name)
        );
        for (b, bar) in bars.iter().enumerate() {
            let all = bars.len() as f64 * (BAR_HEIGHT + 3.0) - 3.0;
            let y = top + (ROW_HEIGHT - all) / 2.0 + b as f64 * (BAR_HEIGHT + 3.0);
            add_time_bar(&mut svg, name, bar, y, across);
        }
    }
    svg + "</svg>"
}

/// Lists the strategies: name, whether it is advised, and the bars of its times.
fn list_strategy_rows(advice: &Advice) -> Vec<(String, bool, Vec<TimeBar>)> {
    advice
        .considered
        .iter()
        .map(|one| {
            let p = one.predicted;
            let mut bars = vec![TimeBar { seconds: p.seconds, low: p.low, high: p.high, key: STRATEGY_TIME_LEGEND[0] }];
            bars.extend(advice.mean_and_range_of_trials_s(one.strategy).map(|[mean, low, high]| TimeBar {
                seconds: mean,
                low,
                high,
                key: STRATEGY_TIME_LEGEND[1],
            }));
            bars.retain(|bar| bar.seconds.is_finite());
            (one.strategy.to_string(), one.strategy == advice.strategy, bars)
        })
        .collect()
}

/// Draws a bar with its top at `y`. `across` gives the horizontal position of a time in seconds.
fn add_time_bar(svg: &mut String, name: &str, bar: &TimeBar, y: f64, across: impl Fn(f64) -> f64) {
    let middle = y + BAR_HEIGHT / 2.0;
    let (from, to) = (across(bar.low.max(0.0)), across(bar.high));
    let title = format!(
        "{name}, {}: {} ({} to {})",
        bar.key.name,
        format_duration(bar.seconds),
        format_duration(bar.low),
        format_duration(bar.high)
    );
    let _ = write!(
        svg,
        r#"<g class="{}"><title>{}</title><rect class="bar" x="{NAMES_WIDTH}" y="{y:.1}" width="{:.1}" height="{BAR_HEIGHT}"/>"#,
        bar.key.style,
        escape_html(&title),
        (across(bar.seconds) - NAMES_WIDTH).max(1.0)
    );
    if to - from > 0.5 {
        let (up, down) = (middle - 4.0, middle + 4.0);
        let _ = write!(
            svg,
            r#"<path class="whisker" d="M{from:.1} {middle:.1}H{to:.1}M{from:.1} {up:.1}V{down:.1}M{to:.1} {up:.1}V{down:.1}"/>"#
        );
    }
    let end = to.max(across(bar.seconds));
    let _ = write!(
        svg,
        r#"</g><text class="number" x="{:.1}" y="{:.1}">{}</text>"#,
        end + 7.0,
        middle + 4.0,
        format_three_digits(bar.seconds)
    );
}

/// Returns about five round tick values from 0 to `most`.
fn axis_ticks(most: f64) -> Vec<f64> {
    let power = 10f64.powf((most / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * power).find(|&s| s >= most / 5.0 * 0.999);
    let step = step.unwrap_or(most);
    (0..).map(|i| f64::from(i) * step).take_while(|&tick| tick <= most).collect()
}

/// Describes the chart as text for screen readers.
fn describe_chart(rows: &[(String, bool, Vec<TimeBar>)]) -> String {
    let describe_row = |(name, _, bars): &(String, bool, Vec<TimeBar>)| {
        let bars: Vec<String> =
            bars.iter().map(|bar| format!("{} {}", bar.key.name, format_duration(bar.seconds))).collect();
        format!("{name}: {}", bars.join(", "))
    };
    rows.iter().map(describe_row).collect::<Vec<_>>().join("; ")
}
