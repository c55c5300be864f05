//! What the call used over time: processors, memory, bytes read and written, with the units as bands.

use genuma_work::timeline::{Sample, Timeline};

use crate::report::markup::{bytes, duration, short};
use crate::report::plot::{Axis, Field, Key, SMALL, Size, figure};

/// Bytes have long ticks.
const WIDE_TICKS: Size = Size { left: 80.0, ..SMALL };

const CPU: Key<'static> = Key { style: "cpu", name: "Cores busy" };
const MEMORY: Key<'static> = Key { style: "memory", name: "Memory" };
const READ: Key<'static> = Key { style: "read", name: "Read" };
const WRITTEN: Key<'static> = Key { style: "written", name: "Written" };

/// Most points of a curve: more than that cannot be seen.
const POINTS: usize = 300;

/// The plots, or nothing of a call that was too short for any.
pub(crate) fn plots(timeline: &Timeline) -> String {
    let samples = &timeline.samples;
    let Some(end) = samples.last().map(|last| last.s).filter(|&s| s > 0.0 && samples.len() > 2) else {
        return String::new();
    };
    // Steps of one length: a rate over a moment says nothing.
    let step = (end / POINTS as f64).max(1.0).min(end / 3.0);
    let cores = rates(samples, step, |sample| sample.cpu_s);
    let memory: Vec<(f64, f64)> = samples.iter().map(|s| (s.s, s.resident_bytes as f64)).collect();
    let read = rates(samples, step, |sample| sample.read_bytes as f64);
    let written = rates(samples, step, |sample| sample.written_bytes as f64);
    let bands = bands(timeline, end);
    let plot = |(key, label, write): (Key<'static>, &'static str, fn(f64) -> String),
                curves: &[(Key, &Vec<(f64, f64)>)]| {
        let most = curves.iter().flat_map(|curve| curve.1).map(|point| point.1).fold(1e-6, f64::max);
        let across = Axis::linear(end, "time", duration);
        let mut field = Field::new(WIDE_TICKS, across, Axis::linear(most * 1.15, label, write));
        field.bands(&bands);
        curves.iter().for_each(|(key, points)| field.curve(*key, points.iter().copied()));
        field.finish(&format!("{} over time, by unit", key.name))
    };
    let last = samples[samples.len() - 1];
    let energy = timeline.energy_j.map_or_else(String::new, |j| {
        format!(" The machine's processors took {:.3} kWh, {:.0} W.", j / 3.6e6, j / end)
    });
    let peak = samples.iter().map(|sample| sample.resident_bytes).max().unwrap_or(0);
    [
        figure(
            "Processors over time",
            &format!("Cores busy; {} of CPU in all.{energy}", duration(last.cpu_s)),
            &[],
            &plot((CPU, "cores busy", |n| format!("{n:.1}")), &[(CPU, &cores)]),
        ),
        figure(
            "Memory over time",
            &format!("Resident; {} at most.", bytes(peak)),
            &[],
            &plot((MEMORY, "bytes resident", short), &[(MEMORY, &memory)]),
        ),
        figure(
            "Files over time",
            &format!(
                "{} read and {} written, of which the disk itself {} and {}.",
                bytes(last.read_bytes),
                bytes(last.written_bytes),
                bytes(last.disk_read_bytes),
                bytes(last.disk_written_bytes)
            ),
            &[READ, WRITTEN],
            &plot((READ, "bytes a second", short), &[(READ, &read), (WRITTEN, &written)]),
        ),
    ]
    .concat()
}

/// From when to when each unit worked.
fn bands(timeline: &Timeline, end: f64) -> Vec<(f64, f64, &str)> {
    let units = &timeline.units;
    let ends = units.iter().skip(1).map(|next| next.at.s).chain([end]);
    units.iter().zip(ends).map(|(unit, until)| (unit.at.s, until, &unit.name[..])).collect()
}

/// What `of` a sample grew by a second, in steps of about `step` seconds.
fn rates(samples: &[Sample], step: f64, of: impl Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    let mut from = &samples[0];
    for sample in samples {
        let seconds = sample.s - from.s;
        if seconds >= step * 0.9 {
            let rate = (of(sample) - of(from)).max(0.0) / seconds;
            if points.is_empty() {
                points.push((from.s, rate));
            }
            points.push((sample.s, rate));
            from = sample;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::assert_nested;
    use genuma_work::timeline::Began;

    fn sample(s: f64) -> Sample {
        let n = (s * 1e6) as u64;
        Sample {
            s,
            cpu_s: 2.0 * s,
            resident_bytes: 1 << 30,
            read_bytes: n,
            written_bytes: n / 2,
            ..Sample::default()
        }
    }

    #[test]
    fn units_are_bands_and_rates_are_by_the_second() {
        let samples: Vec<Sample> = (0..5000).map(|i| sample(f64::from(i))).collect();
        let points = rates(&samples, 20.0, |sample| sample.cpu_s);
        assert!(points.len() > 200 && points.len() < POINTS);
        assert!(points.iter().all(|point| (point.1 - 2.0).abs() < 1e-9));
        let began = |name: &str, s| Began { name: name.into(), at: sample(s) };
        let units = vec![began("count, partition 1 of 2", 0.0), began("<b>", 3000.0)];
        let html = plots(&Timeline { units, samples, energy_j: Some(3.6e6) });
        assert_nested(&html);
        assert_eq!(html.matches("<figure>").count(), 3);
        for part in ["count, partition 1 of 2", "&lt;b&gt;", "1.000 kWh", "1.1 GB at most"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("NaN"));
    }

    #[test]
    fn a_short_call_has_no_plots() {
        assert_eq!(plots(&Timeline::default()), "");
        let samples = vec![sample(0.0), sample(0.0), sample(0.0)];
        assert_eq!(plots(&Timeline { samples, ..Timeline::default() }), "");
        let samples = [0.0, 0.1, 0.2, 0.3].map(sample).to_vec();
        assert_nested(&plots(&Timeline { samples, ..Timeline::default() }));
    }
}
