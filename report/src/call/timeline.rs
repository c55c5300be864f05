//! Plots of the CPU, memory and file I/O that a call used over time. The units of the call are shown as bands.

use genuma_work::energy::{EnergySource, WATTS_PER_BUSY_CORE, WATTS_PER_GB_OF_MEMORY};
use genuma_work::quantity::{format_bytes, format_duration, format_energy, group_thousands};
use genuma_work::timeline::{Timeline, UsageSample};

use crate::plot::{Axis, LegendKey, PlotArea, PlotSize, SMALL_PLOT_SIZE, html_figure};

/// Plot size with a wide left margin for byte counts.
const WIDE_TICK_PLOT: PlotSize = PlotSize { left: 80.0, ..SMALL_PLOT_SIZE };

const CPU_KEY: LegendKey<'static> = LegendKey { style: "cpu", name: "Cores busy" };
const MEMORY_KEY: LegendKey<'static> = LegendKey { style: "memory", name: "Memory" };
const READ_KEY: LegendKey<'static> = LegendKey { style: "read", name: "Read" };
const WRITTEN_KEY: LegendKey<'static> = LegendKey { style: "written", name: "Written" };

/// Maximum number of points of a curve. More would not be visible.
const MAX_POINTS: usize = 300;

/// Plots CPU, memory and file I/O over the time of the call. Empty if the call was too short.
pub fn timeline_plots(timeline: &Timeline) -> String {
    let samples = &timeline.samples;
    let Some(end) = samples.last().map(|last| last.elapsed_s).filter(|&s| s > 0.0 && samples.len() > 2) else {
        return String::new();
    };
    // Steps of equal length, because rates over short steps are noise.
    let step = (end / MAX_POINTS as f64).max(1.0).min(end / 3.0);
    let cores = rates_per_second(samples, step, |sample| sample.cpu_s);
    let memory: Vec<(f64, f64)> = samples.iter().map(|s| (s.elapsed_s, s.resident_bytes as f64 / MIB)).collect();
    let read = rates_per_second(samples, step, |sample| sample.read_bytes as f64 / MIB);
    let written = rates_per_second(samples, step, |sample| sample.written_bytes as f64 / MIB);
    let bands = unit_bands(timeline, end);
    let plot = |(key, label, write): (LegendKey<'static>, &'static str, fn(f64) -> String),
                curves: &[(LegendKey, &Vec<(f64, f64)>)]| {
        let max_value = curves.iter().flat_map(|curve| curve.1).map(|point| point.1).fold(1e-6, f64::max);
        let across = Axis::with_linear_scale(end, "time", format_duration);
        let mut field =
            PlotArea::empty(WIDE_TICK_PLOT, across, Axis::with_linear_scale(max_value * 1.15, label, write));
        field.add_named_x_axis_bands(&bands);
        curves.iter().for_each(|(key, points)| field.add_filled_curve(*key, points.iter().copied()));
        field.into_svg(&format!("{} over time, by unit", key.name))
    };
    let last = samples[samples.len() - 1];
    let energy = describe_energy(timeline, end);
    let peak = samples.iter().map(|sample| sample.resident_bytes).max().unwrap_or(0);
    [
        html_figure(
            "Processors over time",
            &format!("Busy cores; {} of CPU time in total. {energy}", format_duration(last.cpu_s)),
            &[],
            &plot((CPU_KEY, "cores busy", |n| format!("{n:.1}")), &[(CPU_KEY, &cores)]),
        ),
        html_figure(
            "Memory over time",
            &format!("Resident memory; the peak is {}.", format_bytes(peak)),
            &[],
            &plot((MEMORY_KEY, "MiB resident", format_tick), &[(MEMORY_KEY, &memory)]),
        ),
        html_figure(
            "Files over time",
            &format!(
                "{} read and {} written; {} and {} of these from and to the disk itself.",
                format_bytes(last.read_bytes),
                format_bytes(last.written_bytes),
                format_bytes(last.disk_read_bytes),
                format_bytes(last.disk_written_bytes)
            ),
            &[READ_KEY, WRITTEN_KEY],
            &plot((READ_KEY, "MiB per second", format_tick), &[(READ_KEY, &read), (WRITTEN_KEY, &written)]),
        ),
    ]
    .concat()
}

/// Says how much energy the call used in `seconds`, and how that is known.
fn describe_energy(timeline: &Timeline, seconds: f64) -> String {
    let Some(joules) = timeline.energy_j else {
        return format!(
            "Its energy is estimated: {}, with {WATTS_PER_BUSY_CORE} W for each busy core and {WATTS_PER_GB_OF_MEMORY} W for \
             each GB of memory.",
            format_energy(timeline.estimated_energy_j)
        );
    };
    let (energy, watts) = (format_energy(joules), joules / seconds);
    match timeline.energy_source {
        Some(EnergySource::PowerLog) => format!("The machine used {energy} ({watts:.0} W) by its power meter."),
        Some(EnergySource::Rapl) | None => {
            format!("The processors and the memory of the machine used {energy} ({watts:.0} W) by their own counters.")
        }
    }
}

/// Returns the energy in joules of a unit of the call, which the timeline may have in several stretches: `count,
/// partition 1 of 2`. `None` if the timeline does not have it.
pub fn unit_energy_j(timeline: &Timeline, unit: &str) -> Option<f64> {
    let is_of_unit = |name: &str| name.strip_prefix(unit).is_some_and(|rest| rest.is_empty() || rest.starts_with(','));
    let energy_j = timeline.units.iter().zip(timeline.unit_energy_j());
    energy_j.filter(|(start, _)| is_of_unit(&start.name)).map(|(_, joules)| joules).reduce(|a, b| a + b)
}

const MIB: f64 = (1u64 << 20) as f64;

/// Formats the value of a tick: `0.05`, `1.5`, `12,000`.
fn format_tick(n: f64) -> String {
    match n {
        n if n >= 10.0 || n == 0.0 => group_thousands(n.round() as u64),
        n if n >= 1.0 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

/// Returns start and end (seconds since the start of the call) and name of each unit. `end` is the end of the last
/// unit.
fn unit_bands(timeline: &Timeline, end: f64) -> Vec<(f64, f64, &str)> {
    let units = &timeline.units;
    let ends = units.iter().skip(1).map(|next| next.at.elapsed_s).chain([end]);
    units.iter().zip(ends).map(|(unit, until)| (unit.at.elapsed_s, until, &unit.name[..])).collect()
}

/// Returns points (time in seconds, increase per second) of the cumulative quantity `of`, about `step` seconds apart.
fn rates_per_second(samples: &[UsageSample], step: f64, of: impl Fn(&UsageSample) -> f64) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut from = &samples[0];
    for sample in samples {
        let seconds = sample.elapsed_s - from.elapsed_s;
        if seconds >= step * 0.9 {
            let rate = (of(sample) - of(from)).max(0.0) / seconds;
            if points.is_empty() {
                points.push((from.elapsed_s, rate));
            }
            points.push((sample.elapsed_s, rate));
            from = sample;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_html_is_nested;
    use genuma_work::timeline::UnitStart;

    fn sample(s: f64) -> UsageSample {
        let n = (s * 1e6) as u64;
        UsageSample {
            elapsed_s: s,
            cpu_s: 2.0 * s,
            resident_bytes: 1 << 30,
            read_bytes: n,
            written_bytes: n / 2,
            ..UsageSample::default()
        }
    }

    #[test]
    fn units_are_bands_and_rates_are_by_the_second() {
        let samples: Vec<UsageSample> = (0..5000).map(|i| sample(f64::from(i))).collect();
        let points = rates_per_second(&samples, 20.0, |sample| sample.cpu_s);
        assert!(points.len() > 200 && points.len() < MAX_POINTS);
        assert!(points.iter().all(|point| (point.1 - 2.0).abs() < 1e-9));
        let began = |name: &str, s| UnitStart { name: name.into(), at: sample(s) };
        let units = vec![began("count, partition 1 of 2", 0.0), began("<b>", 3000.0)];
        let estimated = Timeline { units, samples, estimated_energy_j: 7200.0, ..Timeline::default() };
        let html = timeline_plots(&estimated);
        assert!(html.contains("estimated: 2.00 Wh, with 12 W for each busy core"), "{html}");
        let measured =
            Timeline { energy_j: Some(3.6e6), energy_source: Some(EnergySource::PowerLog), ..estimated.clone() };
        assert!(timeline_plots(&measured).contains("1.00 kWh (720 W) by its power meter"));
        let html = timeline_plots(&Timeline { energy_source: Some(EnergySource::Rapl), ..measured });
        assert_html_is_nested(&html);
        assert_eq!(html.matches("<figure>").count(), 3);
        for part in
            ["count, partition 1 of 2", "&lt;b&gt;", "1.00 kWh (720 W) by their own counters", "the peak is 1 GiB"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("NaN"));
    }

    #[test]
    fn units_have_the_energy_of_all_their_stretches() {
        let at = |s: f64, joules: f64| UsageSample {
            energy_j: Some(joules),
            estimated_energy_j: joules / 10.0,
            ..sample(s)
        };
        let began = |name: &str, s, joules| UnitStart { name: name.into(), at: at(s, joules) };
        let units = vec![
            began("count, partition 1 of 2", 0.0, 0.0),
            began("count, partition 2 of 2", 1.0, 100.0),
            began("counting", 2.0, 150.0),
            began("place", 3.0, 151.0),
        ];
        let mut timeline =
            Timeline { units, samples: vec![at(4.0, 190.0)], energy_j: Some(190.0), ..Timeline::default() };
        let energy_j = |timeline: &Timeline| ["count", "place", "judge"].map(|unit| unit_energy_j(timeline, unit));
        assert_eq!(energy_j(&timeline), [Some(150.0), Some(39.0), None]);
        timeline.energy_j = None;
        let estimated = energy_j(&timeline);
        assert!((estimated[0].unwrap() - 15.0).abs() < 1e-9 && (estimated[1].unwrap() - 3.9).abs() < 1e-9);
    }

    #[test]
    fn a_short_call_has_no_plots() {
        assert_eq!(timeline_plots(&Timeline::default()), "");
        let samples = vec![sample(0.0), sample(0.0), sample(0.0)];
        assert_eq!(timeline_plots(&Timeline { samples, ..Timeline::default() }), "");
        let samples = [0.0, 0.1, 0.2, 0.3].map(sample).to_vec();
        assert_html_is_nested(&timeline_plots(&Timeline { samples, ..Timeline::default() }));
    }
}
