//! Chart of the predicted run times of strategies by number of threads.

use genuma_strategy::Strategy;
use genuma_strategy::advisor::Advice;
use genuma_strategy::sweep::SweepPoint;
use genuma_work::quantity::format_duration;

use super::AdvisedRun;
use crate::plot::{Axis, LegendKey, PlotArea, PlotPoint, PlotSize, html_figure};

const CURVE_PLOT: PlotSize =
    PlotSize { width: 900.0, height: 380.0, left: 112.0, right: 16.0, top: 12.0, bottom: 48.0 };
/// CSS classes of the curves, in the order of the strategies. Their number limits the number of curves, because more
/// curves would not be readable.
const CURVE_STYLES: [&str; 6] = ["curve1", "curve2", "curve3", "curve4", "curve5", "curve6"];

/// Tick values of the time axis, in seconds.
const TIME_TICKS_S: [f64; 27] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 300.0, 420.0, 600.0, 900.0, 1200.0, 1800.0,
    2700.0, 3600.0, 5400.0, 7200.0, 14_400.0, 28_800.0, 86_400.0, 172_800.0, 432_000.0,
];
/// A curve with a single point is drawn as a short horizontal line, from its number of threads divided by this factor
/// to its number of threads.
const SINGLE_POINT_STROKE_FACTOR: f64 = 1.04;

/// Returns the strategies that the chart shows: the plain run, and those whose fastest prediction over all numbers of
/// threads is fastest. There are at most as many as [`CURVE_STYLES`].
fn charted_strategies(points: &[SweepPoint]) -> Vec<Strategy> {
    let mut strategies: Vec<Strategy> = points.iter().map(|point| point.strategy).collect();
    strategies.dedup();
    let shortest_s = |strategy: &Strategy| {
        let own = points.iter().filter(|point| point.strategy == *strategy);
        own.filter_map(|point| point.predicted.as_ref().ok())
            .map(|predicted| predicted.seconds)
            .fold(f64::INFINITY, f64::min)
    };
    strategies.retain(|strategy| shortest_s(strategy).is_finite());
    let is_plain = |strategy: &Strategy| *strategy == Strategy::PLAIN_RUN;
    strategies.sort_by(|a, b| is_plain(b).cmp(&is_plain(a)).then(shortest_s(a).total_cmp(&shortest_s(b))));
    strategies.truncate(CURVE_STYLES.len());
    strategies
}

/// Returns the chart as an HTML figure, or a note if no time can be predicted or the machine has one hardware thread.
/// Measured times are points with error bars.
pub fn predicted_time_curves_figure(points: &[SweepPoint], case: &AdvisedRun, advice: &Advice) -> String {
    let strategies = charted_strategies(points);
    let curve = |strategy: Strategy| -> Vec<(f64, f64)> {
        let own = points.iter().filter(|point| point.strategy == strategy);
        own.filter_map(|point| Some((f64::from(point.threads), point.predicted.as_ref().ok()?.seconds))).collect()
    };
    let measured: Vec<(Strategy, [f64; 3])> = strategies
        .iter()
        .filter_map(|&strategy| Some((strategy, advice.mean_and_range_of_trials_s(strategy)?)))
        .collect();
    let seconds = strategies.iter().flat_map(|&strategy| curve(strategy)).map(|(_, seconds)| seconds);
    let seconds: Vec<f64> =
        seconds.chain(measured.iter().flat_map(|(_, times)| *times)).filter(|s| s.is_finite()).collect();
    let (least, most) = seconds.iter().fold((f64::INFINITY, 0.0f64), |(least, most), &s| (least.min(s), most.max(s)));
    let max_threads = points.iter().map(|point| point.threads).max().unwrap_or(1);
    if !(least > 0.0 && most.is_finite()) || max_threads < 2 {
        return "<p class=\"note\">No curve: there is one hardware thread, or no time can be predicted.</p>".to_owned();
    }
    let powers = (0..=31).map(|power| f64::from(1u32 << power));
    let threads = Axis::with_logarithmic_scale((1.0, f64::from(max_threads)), powers, "threads", |n| n.to_string());
    let range_s = (least / 1.3, most * 1.3);
    let time =
        Axis::with_logarithmic_scale(range_s, TIME_TICKS_S.into_iter(), "time of the whole run", format_duration);
    let mut plot = PlotArea::empty(CURVE_PLOT, threads, time);
    let names: Vec<String> = strategies.iter().map(Strategy::to_string).collect();
    let keys: Vec<LegendKey> = CURVE_STYLES.iter().zip(&names).map(|(style, name)| LegendKey { style, name }).collect();
    for (key, &strategy) in keys.iter().zip(&strategies) {
        let mut points = curve(strategy);
        if let [(threads, seconds)] = points[..] {
            points.insert(0, (threads / SINGLE_POINT_STROKE_FACTOR, seconds));
        }
        plot.add_line(*key, points.into_iter().map(Some));
        for (_, [mean, low, high]) in measured.iter().filter(|(of, _)| *of == strategy) {
            let title = format!("{strategy}: measured {}", format_duration(*mean));
            let point = PlotPoint { x: case.threads as f64, y: *mean, low: *low, high: *high, title };
            plot.add_point_with_error_bar(key.style, &point);
        }
    }
    let caption = "Curves are predicted, from the trial of the plain run if there was one. Dots are measured by trials. The plain run and \
                   the five fastest strategies.";
    let title = "Run time by number of threads";
    html_figure(title, caption, &keys, &plot.into_svg(&format!("{title}: {}", names.join(", "))))
}
