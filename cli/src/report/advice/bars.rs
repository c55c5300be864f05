//! Predicted and measured seconds of each candidate, as bars with whiskers.

use std::fmt::Write;

use genuma_strategy::advisor::Advice;

use crate::report::markup::{duration, escape, figure};
use crate::report::plot::Key;

/// What is drawn.
pub(crate) const KEYS: [Key<'static>; 2] =
    [Key { style: "predicted", name: "predicted" }, Key { style: "measured", name: "measured on a sample" }];

const WIDTH: f64 = 900.0;
/// Kept free for names at the left and figures at the right.
const NAMES: f64 = 120.0;
const FIGURES: f64 = 90.0;
const BAR: f64 = 13.0;
const ROW: f64 = 46.0;
const FLOOR: f64 = 40.0;

/// A bar and its whisker (s).
struct Bar {
    seconds: f64,
    low: f64,
    high: f64,
    key: Key<'static>,
}

/// All candidates, by predicted time.
pub(crate) fn chart(advice: &Advice) -> String {
    let rows: Vec<(String, bool, Vec<Bar>)> = advice
        .considered
        .iter()
        .map(|one| {
            let p = one.predicted;
            let mut bars = vec![Bar { seconds: p.seconds, low: p.low, high: p.high, key: KEYS[0] }];
            bars.extend(advice.measured(one.strategy).map(|[mean, low, high]| Bar {
                seconds: mean,
                low,
                high,
                key: KEYS[1],
            }));
            bars.retain(|bar| bar.seconds.is_finite());
            (one.strategy.to_string(), one.strategy == advice.strategy, bars)
        })
        .collect();
    let most =
        rows.iter().flat_map(|(_, _, bars)| bars).map(|bar| bar.high.max(bar.seconds)).fold(0.0, f64::max);
    let most = if most > 0.0 { most } else { 1.0 };
    let across = |s: f64| NAMES + (WIDTH - NAMES - FIGURES) * s / most;
    let height = ROW * rows.len() as f64 + FLOOR;
    let mut svg = format!(
        r#"<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{}">"#,
        escape(&described(&rows))
    );
    let floor = height - FLOOR;
    for tick in ticks(most) {
        let _ = write!(
            svg,
            r#"<path class="grid" d="M{0:.1} 0V{floor}"/><text x="{0:.1}" y="{1}" text-anchor="middle">{2}</text>"#,
            across(tick),
            floor + 17.0,
            // As short as it is round.
            (tick * 1e9).round() / 1e9
        );
    }
    let _ = write!(
        svg,
        r#"<text class="label" x="{}" y="{}" text-anchor="middle">seconds of the whole run</text>"#,
        (NAMES + WIDTH - FIGURES) / 2.0,
        floor + 35.0
    );
    for (n, (name, advised, bars)) in rows.iter().enumerate() {
        let top = ROW * n as f64;
        let _ = write!(
            svg,
            r#"<text class="{}" x="{}" y="{}" text-anchor="end">{}</text>"#,
            if *advised { "label strong" } else { "label" },
            NAMES - 10.0,
            top + ROW / 2.0 + 4.0,
            escape(name)
        );
        for (b, bar) in bars.iter().enumerate() {
            let all = bars.len() as f64 * (BAR + 3.0) - 3.0;
            let y = top + (ROW - all) / 2.0 + b as f64 * (BAR + 3.0);
            let middle = y + BAR / 2.0;
            let (from, to) = (across(bar.low.max(0.0)), across(bar.high));
            let title = format!(
                "{name}, {}: {} ({} to {})",
                bar.key.name,
                duration(bar.seconds),
                duration(bar.low),
                duration(bar.high)
            );
            let _ = write!(
                svg,
                r#"<g class="{}"><title>{}</title><rect class="bar" x="{NAMES}" y="{y:.1}" width="{:.1}" height="{BAR}"/>"#,
                bar.key.style,
                escape(&title),
                (across(bar.seconds) - NAMES).max(1.0)
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
                figure(bar.seconds)
            );
        }
    }
    svg + "</svg>"
}

/// About five round numbers from 0.
fn ticks(most: f64) -> Vec<f64> {
    let power = 10f64.powf((most / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * power).find(|&s| s >= most / 5.0 * 0.999);
    let step = step.unwrap_or(most);
    (0..).map(|i| f64::from(i) * step).take_while(|&tick| tick <= most).collect()
}

/// The same for those who cannot see it.
fn described(rows: &[(String, bool, Vec<Bar>)]) -> String {
    let of = |(name, _, bars): &(String, bool, Vec<Bar>)| {
        let bars: Vec<String> =
            bars.iter().map(|bar| format!("{} {}", bar.key.name, duration(bar.seconds))).collect();
        format!("{name}: {}", bars.join(", "))
    };
    rows.iter().map(of).collect::<Vec<_>>().join("; ")
}
